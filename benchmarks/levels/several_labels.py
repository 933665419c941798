"""Promises about samples with several labels each, which depend on each other."""

import numpy as np
from scipy.special import ndtr

from benchmarks.levels.promises import Promise, without_noise
from benchmarks.levels.shapes import SHAPES, Sample
from skcalib.metrics import (
    calibration_error_interval,
    calibration_test,
    expected_calibration_error,
)

__all__ = ["SEVERAL_LABELS"]

_LABELS, _CORRELATION = 8, 0.6  # of the normal deviates behind the labels of a sample
# Numbers of labels and of samples, and correlations, of the shapes of an interval.
_NUMBERS, _SIZES, _CORRELATIONS = (3, 10), (100, 500), (0.0, 0.3, 0.6, 0.9)


def _alike(curve, n_labels=_LABELS, n_samples=300, correlation=_CORRELATION):
    def sample(rng):
        shape = (n_samples, n_labels)
        scores = rng.beta(2, 4, size=shape)
        truth = curve(scores)
        shared = rng.normal(size=(shape[0], 1))
        deviate = np.sqrt(correlation) * shared
        deviate = deviate + np.sqrt(1 - correlation) * rng.normal(size=shape)
        return Sample(scores, truth, (ndtr(deviate) < truth).astype(int))

    return sample


def _rejects(sample, seed):
    found = calibration_test(
        sample.labels,
        sample.scores,
        metric=expected_calibration_error,
        n_resamples=199,
        random_state=seed,
    )
    return found.pvalue <= 0.05


def _covers(sample, seed):
    """Return whether the interval of the mean error of the labels holds the mean of
    their errors without noise.
    """
    found = calibration_error_interval(
        sample.labels,
        sample.scores,
        metric=expected_calibration_error,
        n_resamples=300,
        random_state=seed,
    )
    errors = []
    for scores, truth, labels in zip(
        sample.scores.T, sample.truth.T, sample.labels.T, strict=True
    ):
        of_label = Sample(scores, truth, labels)
        errors.append(without_noise(of_label, expected_calibration_error))
    return found.low <= np.mean(errors) <= found.high


_CALIBRATED, _OFF = (
    f"{_LABELS} labels alike, {name}, 300 rows" for name in ("calibrated", "p^1.6")
)
SHAPES |= {
    _CALIBRATED: _alike(lambda scores: scores),
    _OFF: _alike(lambda scores: scores**1.6),
}
# All labels are predicted too high: what their deviations have in common makes the
# error uncertain.
_TOO_HIGH = {}
for n_labels in _NUMBERS:
    for n_samples in _SIZES:
        for correlation in _CORRELATIONS:
            name = f"{n_labels} labels of correlation {correlation:g}, p^1.5"
            _TOO_HIGH[f"{name}, {n_samples} rows"] = _alike(
                lambda scores: scores**1.5, n_labels, n_samples, correlation
            )
SHAPES |= _TOO_HIGH
SEVERAL_LABELS = {
    "size": [
        Promise("resampled ECE, several labels", 0.05, _rejects, (_CALIBRATED,)),
    ],
    "coverage": [Promise("ECE, several labels", 0.9, _covers, (_OFF, *_TOO_HIGH))],
}
