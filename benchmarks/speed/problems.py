"""Seeded inputs of the jobs: one event, and many classes."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

__all__ = ["Problem", "binary", "many_classes", "no_input"]

_BLOCK_ROWS = 1 << 10


class Problem(NamedTuple):
    """Input of a job: probabilities (n,) or (n, K), labels (n,), and for many classes
    the logits.
    """

    scores: np.ndarray
    labels: np.ndarray
    logits: np.ndarray | None = None

    @property
    def size(self):
        """The shape of the scores as text."""
        return " x ".join(f"{length:,}" for length in self.scores.shape)

    def halves(self):
        """Return the first half of the rows, to fit, and the second, to forecast."""
        half = len(self.labels) // 2
        return [
            Problem(*(field[rows] for field in self))
            for rows in (slice(0, half), slice(half, None))
        ]


@lru_cache(maxsize=1)
def binary(n):
    """Return uniform float64 scores of an event that is a little rarer than they say,
    labels 0 and 1.
    """
    rng = np.random.default_rng(0)
    scores = rng.random(n)
    return Problem(scores, (rng.random(n) < scores**1.2).astype(np.int64))


@lru_cache(maxsize=1)
def many_classes(n, n_classes):
    """Return float32 probabilities and logits of an over-confident model (its
    temperature is about 1.5).
    """
    rng = np.random.default_rng(0)
    logits = 2 * rng.standard_normal((n, n_classes), dtype=np.float32)
    scores, labels = np.empty_like(logits), np.empty(n, dtype=np.int64)
    for start in range(0, n, _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        scores[rows] = _softmax(logits[rows])
        cumulative = np.cumsum(_softmax(logits[rows] / 1.5), axis=1, dtype=np.float64)
        cut = rng.random((len(cumulative), 1)) * cumulative[:, -1:]
        labels[rows] = np.minimum((cumulative < cut).sum(axis=1), n_classes - 1)
    n_present = min(n, n_classes)
    labels[:n_present] = np.arange(n_present)  # a row of each class
    return Problem(scores, labels, logits)


def no_input():
    """Return nothing: for a job that is an import."""
    return Problem(np.empty(0), np.empty(0, dtype=np.int64))


def _softmax(logits):
    likelihood = np.exp(logits - logits.max(axis=1, keepdims=True))
    return likelihood / likelihood.sum(axis=1, keepdims=True)
