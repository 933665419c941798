"""Worlds for the search of what a calibration map does to a certificate from the rows
that the map was fitted to.

The probability of being right is almost flat and lies just below what is promised, so
that each set of rows that passes breaks the promise. A map of the same rows then puts
those first that were right by chance.
"""

from functools import lru_cache, partial

import numpy as np
from scipy.special import expit, logit, softmax

from benchmarks.levels.decisions import out_of_fold
from benchmarks.levels.shapes import Sample
from skcalib import (
    IsotonicCalibration,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
)
from skcalib.decisions import certified_threshold

__all__ = ["SAME_ROWS", "SAME_ROWS_AXES"]

_BINARY_ROWS, _ROWS_OF_CLASSES = 20_000, 5000  # that the true risk is taken from

SAME_ROWS_AXES = {  # name -> lowest value, highest, and whether equal steps are factors
    "rows": (100, 3000, True),
    "classes": (3, 50, True),
    "mean score": (0.1, 0.95, False),
    "spread": (0.2, 4, True),  # standard deviation of the log-odds, or of the logits
    "tilt": (0, 1, False),  # slope of the truth in the log-odds of the confidence
    "below": (0.001, 0.5, True),  # how far the truth lies below the floor, in log-odds
    "risk": (0.02, 0.4, False),
}
_OF_TWO = ("rows", "mean score", "spread", "tilt", "below", "risk")
_OF_MANY = ("rows", "classes", "spread", "tilt", "below", "risk")


def _share_right(world, log_odds):
    """Return how often rows with these log-odds of the score are right."""
    floor = logit(1 - world["risk"]) - world["below"]
    return expit(floor + world["tilt"] * (log_odds - log_odds.mean()))


def _two_classes(world, rng, n):
    log_odds = logit(world["mean score"]) + world["spread"] * rng.normal(size=n)
    return expit(log_odds), _share_right(world, log_odds)


def _many_classes(world, rng, n):
    """Scores (n, K), and the truth: the predicted class, or one of the others in
    proportion to their scores.
    """
    n_classes = round(world["classes"])
    scores = softmax(world["spread"] * rng.normal(size=(n, n_classes)), axis=1)
    rows = np.arange(n)
    predicted = scores.argmax(axis=1)
    confidence = np.minimum(scores[rows, predicted], 1 - 1e-12)
    right = _share_right(world, logit(confidence))
    truth = scores.copy()
    truth[rows, predicted] = 0
    truth *= ((1 - right) / truth.sum(axis=1))[:, None]
    truth[rows, predicted] = right
    return scores, truth


def _draw(draw, world, rng):
    scores, truth = draw(world, rng, round(world["rows"]))
    if truth.ndim == 1:
        labels = (rng.random(len(truth)) < truth).astype(int)
    else:
        passed = rng.random((len(truth), 1)) > np.cumsum(truth, axis=1)[:, :-1]
        labels = passed.sum(axis=1)
    population = partial(_population, draw, tuple(world.items()))
    return Sample(scores, truth, labels, population=population)


@lru_cache(maxsize=8)
def _population(draw, items):
    n = _BINARY_ROWS if draw is _two_classes else _ROWS_OF_CLASSES
    return draw(dict(items), np.random.default_rng(12345), n)


def _breaks(recalibrator, promise, way, world, sample, seed):
    """Return whether a threshold breaks its promise after a map of the same rows, and
    what it accepts of new ones.
    """
    if len(np.unique(sample.labels)) < 2:
        return np.nan, np.nan  # no map
    n_classes = 2 if sample.scores.ndim == 1 else sample.scores.shape[1]
    fitted = recalibrator(classes=np.arange(n_classes))
    fitted = fitted.fit(sample.scores, sample.labels)
    proba = fitted.predict_proba(sample.scores)
    if way == "cross-fitted":
        proba = out_of_fold(recalibrator(classes=[0, 1]), sample)
    found = certified_threshold(
        sample.labels,
        proba,
        promise=promise,
        target=1 - world["risk"] if promise == "precision" else world["risk"],
        labels=np.arange(n_classes),
        fitted_on={"unsaid": None, "said": fitted}.get(way, way),
    )
    scores, truth = sample.population()
    new = fitted.predict_proba(scores)
    accepted = found.accepts(new)
    if not accepted.any():
        return False, 0.0
    right = truth
    if truth.ndim == 2:
        right = truth[np.arange(len(truth)), new.argmax(axis=1)]
    return 1 - right[accepted].mean() > world["risk"] + 1e-9, accepted.mean()


def _family(name, recalibrator, promise, way):
    draw, axes = _two_classes, _OF_TWO
    if promise == "error_when_answered":
        draw, axes = _many_classes, _OF_MANY
    kept = partial(_breaks, recalibrator, promise, way)
    return name, "broken", 0.1, axes, partial(_draw, draw), kept


_ERROR = "error_when_answered"
SAME_ROWS = [
    _family(
        "precision, Platt's map of the same rows", PlattScaling, "precision", "unsaid"
    ),
    _family(
        "precision, Platt's map of the same rows, fitted_on",
        PlattScaling,
        "precision",
        "said",
    ),
    _family(
        "precision, cross-fitted Platt's map",
        PlattScaling,
        "precision",
        "cross-fitted",
    ),
    _family(
        "precision, isotonic map of the same rows",
        IsotonicCalibration,
        "precision",
        "unsaid",
    ),
    _family(
        "precision, cross-fitted isotonic map",
        IsotonicCalibration,
        "precision",
        "cross-fitted",
    ),
    _family(
        "error when answered, temperature of the same rows",
        TemperatureScaling,
        _ERROR,
        "unsaid",
    ),
    _family(
        "error when answered, temperature of the same rows, fitted_on",
        TemperatureScaling,
        _ERROR,
        "said",
    ),
    _family(
        "error when answered, vector scaling of the same rows",
        VectorScaling,
        _ERROR,
        "unsaid",
    ),
]
