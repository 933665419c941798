"""Promises about one probability, and about a whole curve: limits of `predict_interval`
hold the event frequency at a score, a simultaneous band that at all scores.
"""

from functools import partial

import numpy as np
from scipy.special import expit, logit, ndtr

from benchmarks.levels.promises import Promise
from benchmarks.levels.shapes import SHAPES, Sample
from skcalib import (
    BetaCalibration,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    QuadraticScaling,
    SplineCalibration,
    StackedRecalibrator,
    TemperatureScaling,
    VectorScaling,
    VennAbers,
)
from skcalib._intervals.few_events import FEWEST_FOR_NORMAL
from skcalib.metrics import reliability_curve

__all__ = ["METHODS", "PROBABILITIES", "holds_curve", "limits_hold"]

_LEVEL = 0.9
_POINTS = (0.05, 0.25, 0.5, 0.75, 0.95)  # quantiles of the scores
_SIZES = (100, 1000, 10_000)
_CLUSTER = 10  # samples of a cluster, which share a score and half of their luck
# Clusters of which four hold most samples; their scores are alike.
_UNEQUAL = (200, 100, 60, 40, *[20] * 16)


def _in_middle(rng, n):
    return rng.beta(2, 2, n)


def _wide(rng, n):
    return expit(3 * rng.normal(size=n))


def _tied(rng, n):
    return (rng.binomial(11, 0.5, n) + 0.5) / 12


def _rare(rng, n):
    return expit(-4 + rng.normal(size=n))


def _line(slope):
    return lambda scores: expit(slope * logit(scores))


def _s_shaped(scores):
    return 0.1 + 0.8 * expit(3 * logit(scores))


def _plateaus(scores):
    return np.select([scores < 0.35, scores < 0.65], [0.2, 0.5], 0.8)


# Scores, and the event frequency at each.
_WORLDS = {
    "linear": (_in_middle, _line(0.7)),
    "S-shaped": (_in_middle, _s_shaped),
    "plateau": (_in_middle, _plateaus),
    "strong": (_in_middle, _line(3.0)),
    "rare": (_rare, _line(0.8)),
    "ties": (_tied, _line(0.7)),
    "floor": (_wide, lambda scores: 0.03 + 0.94 * scores),
    "weights": (_in_middle, _line(0.7)),
    "clusters": (_in_middle, _line(0.7)),
    "noise": (_in_middle, lambda scores: np.full(len(scores), 0.3)),
}


def _shape(world, n):
    draw, curve = _WORLDS[world]

    def sample(rng):
        scores = draw(rng, n)
        luck = rng.random(n)
        weight = clusters = None
        if world == "weights":
            weight = rng.gamma(1, size=n)
        if world == "clusters":
            clusters = np.arange(n) // _CLUSTER
            scores = scores[clusters]
            luck = np.where(rng.random(n) < 0.5, luck[clusters], luck)
        truth = curve(scores)
        return Sample(scores, truth, luck < truth, weight, clusters, None, "importance")

    return sample


def _unequal(rng):
    clusters = np.repeat(np.arange(len(_UNEQUAL)), _UNEQUAL)
    own = rng.normal(size=(2, len(clusters)))
    shared = rng.normal(size=(2, len(_UNEQUAL)))[:, clusters]
    scores = expit(own[0] + 0.7 * shared[0])
    truth = _line(0.7)(scores)
    labels = ndtr(np.sqrt(0.8) * own[1] + np.sqrt(0.2) * shared[1]) < truth
    return Sample(scores, truth, labels, clusters=clusters)


_SHAPES = {
    f"one score, {world}, n = {n:,}": _shape(world, n)
    for n in _SIZES
    for world in _WORLDS
}
_FEW_CLUSTERS = "one score, linear, 20 unequal clusters"
SHAPES |= {**_SHAPES, _FEW_CLUSTERS: _unequal}

METHODS = {
    "Platt scaling": PlattScaling(),
    "beta calibration": BetaCalibration(),
    "quadratic scaling": QuadraticScaling(),
    "temperature scaling": TemperatureScaling(),
    "spline calibration": SplineCalibration(),
    "isotonic regression": IsotonicCalibration(),
    "Venn-Abers": VennAbers(),
    "histogram binning": HistogramBinning(),
    "stacked recalibrator": StackedRecalibrator(),
}
_OF_CLASSES = {
    "temperature scaling, 4 classes": TemperatureScaling(),
    "vector scaling, 4 classes": VectorScaling(),
    "matrix scaling, 4 classes": MatrixScaling(),
}


def _fitted(recalibrator, sample):
    return recalibrator.fit(
        sample.scores, sample.labels, sample.sample_weight, clusters=sample.clusters
    )


def _share_held(recalibrator, sample, seed):
    """Return the share of five scores whose limits hold the event frequency."""
    points = np.quantile(sample.scores, _POINTS, method="nearest")
    of_point = [np.flatnonzero(sample.scores == point)[0] for point in points]
    truth = sample.truth[of_point]
    if len(np.unique(sample.labels)) < 2:
        return np.nan  # no fit, which is said
    low, high = _fitted(recalibrator, sample).predict_interval(points, _LEVEL).T
    if np.isnan(low).any():
        return np.nan  # which is said
    return float(np.mean((low <= truth) & (truth <= high)))


def _share_held_of_classes(recalibrator, sample, seed):
    """Return the share of the probabilities of 20 rows whose limits hold the truth."""
    rows = np.random.default_rng(seed).integers(len(sample.scores), size=20)
    fitted = _fitted(recalibrator, sample)
    low, high = np.moveaxis(fitted.predict_interval(sample.scores[rows]), -1, 0)
    truth = sample.truth[rows]
    return float(np.mean((low <= truth) & (truth <= high)))


def limits_hold(method, world, sample, seed):
    """Return the share of five scores whose limits by a method of `METHODS` hold the
    event frequency; NaN with so few events that a warning says so.
    """
    n_events = np.count_nonzero(sample.labels)
    if min(n_events, len(sample.labels) - n_events) < FEWEST_FOR_NORMAL:
        return np.nan
    return _share_held(METHODS[method], sample, seed)


def holds_curve(world, sample, seed):
    """Return whether the simultaneous band holds the frequencies at all scores."""
    band = reliability_curve(
        sample.labels, sample.scores, simultaneous=True, confidence_level=_LEVEL
    )
    at = np.searchsorted(band.score, sample.scores)
    held = (band.low[at] <= sample.truth) & (sample.truth <= band.high[at])
    return bool(held.all())


_INDEPENDENT = [
    f"one score, {world}, n = {n:,}"
    for n in _SIZES
    for world in _WORLDS
    if world not in ("weights", "clusters")
]
PROBABILITIES = [
    *(
        Promise(
            f"limits of one probability, {name}",
            _LEVEL,
            partial(_share_held, recalibrator),
            (*_SHAPES, _FEW_CLUSTERS),
        )
        for name, recalibrator in METHODS.items()
    ),
    *(
        Promise(
            f"limits of one probability, {name}",
            _LEVEL,
            partial(_share_held_of_classes, recalibrator),
            ("4 classes, calibrated, n = 600", "4 classes, p^1.5, n = 600"),
        )
        for name, recalibrator in _OF_CLASSES.items()
    ),
    Promise(
        "simultaneous band", _LEVEL, partial(holds_curve, None), tuple(_INDEPENDENT)
    ),
]
