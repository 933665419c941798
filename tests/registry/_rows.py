"""The rows that the registry's objects are fitted to."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

RESULTS_PATH = Path(__file__).parents[1] / "golden_results.json"
FITS_PATH = Path(__file__).parents[1] / "golden_recalibrators.json"


@dataclass(frozen=True)
class Rows:
    """Frozen rows: two classes by one score, and three classes.

    `y`, `scores`, `weight`, `cluster` and the features `X` belong together, and so do
    `label` and `proba`.
    """

    y: np.ndarray
    scores: np.ndarray
    weight: np.ndarray
    cluster: np.ndarray
    X: np.ndarray
    label: np.ndarray
    proba: np.ndarray

    @cached_property
    def inner_scores(self):
        """Scores away from 0 and 1, whose log-odds decide nothing by clipping."""
        return np.clip(self.scores, 0.02, 0.98)


def frozen_rows():
    """Return the rows. They are in the file, so that no stream of random numbers
    decides what results are.
    """
    frozen = json.loads(RESULTS_PATH.read_text("utf-8"))["data"]
    return Rows(**{name: np.array(values) for name, values in frozen.items()})


@dataclass(frozen=True)
class FitRows:
    """Rows for the frozen fits of recalibrators, and the scores that are predicted."""

    scores: np.ndarray
    y: np.ndarray
    log_odds: np.ndarray
    y_of_log_odds: np.ndarray
    logits: np.ndarray
    label: np.ndarray


# Those that float32 holds (or rounds to 0 or 1), so that both types see the same
# scores.
NEW_SCORES = np.array(
    [
        0.0,
        1e-300,
        2.0**-60,
        2.0**-20,
        0.0625,
        0.25,
        0.3125,
        0.5,
        0.75,
        1 - 2.0**-20,
        1 - 2.0**-53,
        1.0,
    ]
)[:, None]
NEW_LOG_ODDS = np.array(
    [-1e4, -40.0, -3.0, -0.125, 0.0, 2.0**-30, 0.5, 2.25, 36.5, 800.0]
)[:, None]
NEW_PROBA = np.array(
    [
        [0.5, 0.25, 0.25],
        [0.125, 0.5, 0.375],
        [0, 0, 1],
        [0, 0.5, 0.5],
        [2.0**-20, 2.0**-20, 1 - 2.0**-19],
    ]
)


def fit_rows():
    """Return the rows for fits: ties, and scores of exactly 0 and 1 among them. They
    are in the file, as those above.
    """
    frozen = json.loads(FITS_PATH.read_text("utf-8"))["rows"]
    return FitRows(**{name: np.array(values) for name, values in frozen.items()})
