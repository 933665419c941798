"""Promises of `calibration_summary`: each of its intervals, at .95, over models that
are right, off and rare.
"""

from functools import cache, partial

import numpy as np
from scipy.special import expit, logit

from benchmarks.levels.promises import Promise, _weight_type
from benchmarks.levels.shapes import SHAPES, Sample
from skcalib.evaluation import calibration_summary

__all__ = ["SUMMARY", "of_shape"]

_POPULATION = 300_000  # rows, of many samples, that the true values are taken from
_QUANTILES = {"e50": 0.5, "e90": 0.9, "emax": 1.0}
_NAMES = (
    "observed_expected",
    "intercept",
    "slope",
    "brier_score",
    "scaled_brier_score",
    "auc",
    "ici",
    *_QUANTILES,
)


def _of(n, draw, curve=lambda s: s):
    def sample(rng):
        scores = draw(rng, n)
        truth = curve(scores)
        return Sample(scores, truth, rng.random(n) < truth)

    return sample


def _counted(rng):
    """500 independent rows as counts: each (score, label) stands once, with the number
    of its rows as weight.
    """
    scores = rng.integers(1, 40, 500) / 40
    rows, counts = np.unique(
        np.column_stack((scores, rng.random(500) < scores**1.3)),
        axis=0,
        return_counts=True,
    )
    return Sample(rows[:, 0], rows[:, 0] ** 1.3, rows[:, 1] == 1, counts)


def _populated(draw):
    """Return the shape with its population: scores, event probabilities and weights of
    many samples.
    """

    @cache
    def population():
        rng, parts, n = np.random.default_rng(12345), [], 0
        while n < _POPULATION:
            sample = draw(rng)
            n += len(sample.scores)
            weight = (
                np.ones(len(sample.scores))
                if sample.sample_weight is None
                else sample.sample_weight
            )
            parts.append((sample.scores, sample.truth, weight))
        return [np.concatenate(columns) for columns in zip(*parts, strict=True)]

    return lambda rng: draw(rng)._replace(population=population)


SHAPES |= {
    "shifted by -.5 in log-odds, n = 500": _of(
        500,
        lambda rng, n: rng.random(n),
        lambda s: expit(logit(np.clip(s, 1e-9, 1 - 1e-9)) - 0.5),
    ),
    "24 events in 2,400": _of(2400, lambda rng, n: rng.beta(1, 99, n)),
    "counts as weights, s^1.3, 500 rows": _counted,
}
_SHAPES = (
    "calibrated, n = 500",
    "s^1.6, n = 200",
    "s^1.6, n = 1500",
    "shifted by -.5 in log-odds, n = 500",
    "24 events in 2,400",
    "tied, s^1.6, n = 300",
    "clusters, calibrated, 60 of 20",
    "clusters, s^1.6, 60 of 20",
    "counts as weights, s^1.3, 500 rows",
    "importance weights, calibrated, 800 rows",
)
SHAPES |= {shape: _populated(SHAPES[shape]) for shape in _SHAPES}


def of_shape(n, draw, curve=lambda s: s):
    """Return a shape of n rows with its population: scores that are drawn, and event
    probabilities by a curve.
    """
    return _populated(_of(n, draw, curve))


@cache
def _true_summary(population):
    """Return the summary of the population: each row is an event and a non-event,
    weighted by their probabilities.
    """
    scores, truth, weight = population()
    labels = np.repeat([1, 0], len(scores))
    both = np.concatenate((weight * truth, weight * (1 - truth)))
    return calibration_summary(
        labels, np.tile(scores, 2), sample_weight=both, n_resamples=1
    )


def _true_distance(sample, name):
    """Return mean or quantile of the distance of the true probabilities from the scores
    of the sample.
    """
    weight = (
        np.ones(len(sample.scores))
        if sample.sample_weight is None
        else sample.sample_weight
    )
    gap = np.abs(sample.truth - sample.scores)
    if name == "ici":
        return np.average(gap, weights=weight)
    order = np.argsort(gap)
    share = np.cumsum(weight[order]) / weight.sum()
    return gap[order][np.searchsorted(share, _QUANTILES[name] - 1e-12)]


_FOUND = {}  # summaries by sample: each promise is about the same ones


def _holds(name, sample, seed):
    distance = name == "ici" or name in _QUANTILES
    key = hash((sample.scores.tobytes(), sample.labels.tobytes(), seed, distance))
    if key not in _FOUND:
        _FOUND[key] = calibration_summary(
            sample.labels,
            sample.scores,
            sample_weight=sample.sample_weight,
            weight_type=_weight_type(sample),
            clusters=sample.clusters,
            labels=[0, 1],
            n_resamples=199 if distance else 1,
            random_state=seed,
        )
    found = getattr(_FOUND[key], name)
    if np.isnan(found.low):
        return np.nan  # no limits, which is said
    truth = (
        _true_distance(sample, name)
        if distance
        else getattr(_true_summary(sample.population), name).estimate
    )
    return found.low - 1e-12 <= truth <= found.high + 1e-12


SUMMARY = [
    Promise(f"summary: {name.replace('_', ' ')}", 0.95, partial(_holds, name), _SHAPES)
    for name in _NAMES
]
