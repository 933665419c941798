"""Promises about clusters as a sample of clusters: few and many hospitals of unequal
size, each one's own numbers, their mean, and a hospital that was not in the study.
"""

from functools import cache, partial

import numpy as np
from scipy.special import expit, logit, ndtri, stdtrit

from benchmarks.levels.promises import Promise
from benchmarks.levels.shapes import SHAPES, Sample, _copula
from skcalib.displays._reliability_curves import CurveMaker
from skcalib.evaluation import calibration_by_cluster

__all__ = ["HOSPITALS"]

_NUMBERS = 3, 5, 10, 25, 50
_DEVIATIONS = 0.1, 0.4
_MEAN = 0.2  # over hospitals, of the intercept in log-odds
_SMALLEST, _LARGEST = 50, 1000  # rows of a hospital, log-uniform
_RISK = 2, 5  # Beta distribution of the scores
# Hospitals, samples of each, and the Beta distribution of the scores: 22 to 36 % of the
# first two kinds have no event.
_FEW_EVENTS = {
    "20 hospitals of 50, risk .02": (20, 50, (1, 49)),
    "60 hospitals of 15, risk .1": (60, 15, (1, 9)),
    "6 hospitals of 100, risk .05": (6, 100, (1, 19)),
}


def _hospitals(number, deviation):
    """Hospitals of unequal size, whose log-odds are off by a number of their own."""

    def sample(rng):
        sizes = np.exp(rng.uniform(np.log(_SMALLEST), np.log(_LARGEST), number))
        code = np.repeat(np.arange(number), sizes.astype(int))
        intercept = _MEAN + deviation * rng.standard_normal(number)
        scores = rng.beta(2, 5, len(code))
        truth = expit(logit(scores) + intercept[code])
        return Sample(scores, truth, rng.random(len(code)) < truth, clusters=code)

    return sample


def _hospitals_with_few_events(number, size, risk, deviation):
    """Hospitals of equal size, many of which have no event."""

    def sample(rng):
        code = np.repeat(np.arange(number), size)
        intercept = _MEAN + deviation * rng.standard_normal(number)
        scores = rng.beta(*risk, len(code)).clip(1e-9)
        truth = expit(logit(scores) + intercept[code])
        return Sample(scores, truth, rng.random(len(code)) < truth, clusters=code)

    return sample


_FOUND = {}  # tables by sample: each promise is about the same ones


def _table(sample):
    key = hash((sample.scores.tobytes(), sample.labels.tobytes()))
    if key not in _FOUND:
        _FOUND[key] = calibration_by_cluster(
            sample.labels, sample.scores, sample.clusters, confidence_level=0.9
        )
    return _FOUND[key]


@cache
def _ratio(intercept, risk=_RISK):
    """Return the events per expected event of a hospital with an intercept, if scores
    have the Beta distribution of these parameters.
    """
    scores = np.random.default_rng(0).beta(*risk, 100_000).clip(1e-9)
    return expit(logit(scores) + intercept).mean() / scores.mean()


@cache
def _true_value(quantity, deviation, risk=_RISK):
    """Return the mean slope over hospitals, the number of the median hospital, or the
    events per expected event over all hospitals.
    """
    if quantity == "slope":
        return 1.0
    if quantity == "intercept":
        return _MEAN
    if quantity == "population_observed_expected":
        points = _points(deviation)
        return float(np.mean([_ratio(point, risk) for point in points]))
    return _ratio(_MEAN, risk)


def _points(deviation, n=200):
    """Return evenly likely intercepts of a new hospital."""
    return (_MEAN + deviation * ndtri((np.arange(n) + 0.5) / n)).tolist()


def _covers_new(quantity, deviation, sample, seed, risk=_RISK):
    """Return the probability that the limits hold the number of a new hospital."""
    found = _table(sample).prediction.get(quantity)
    if found is None:
        return np.nan
    if quantity == "slope":
        return float(found.low <= 1 <= found.high)
    values = np.array(_points(deviation))
    if quantity == "observed_expected":
        values = np.array([_ratio(point, risk) for point in values.tolist()])
    return np.mean((found.low <= values) & (values <= found.high))


def _usual_interval_covers_new(deviation, sample, seed):
    """Return the probability that a t interval with the estimated deviation between
    hospitals, as if it were known, holds the ratio of a new hospital.
    """
    table = _table(sample)
    mean, low, high = np.log(table.pooled["observed_expected"])
    number = len(table.cluster)
    error = (high - low) / 2 / stdtrit(number - 1, 0.95)
    width = np.hypot(table.between["observed_expected"], error)
    width *= stdtrit(number - 2, 0.95)
    values = np.log([_ratio(point) for point in _points(deviation)])
    return np.mean(np.abs(values - mean) <= width)


def _covers_pooled(quantity, deviation, sample, seed, risk=_RISK):
    found = _table(sample).pooled.get(quantity)
    if found is None:
        return np.nan
    return float(found.low <= _true_value(quantity, deviation, risk) <= found.high)


def _covers_each(quantity, sample, seed):
    """Return the share of hospitals whose own limits hold their own number."""
    table = _table(sample)
    first = np.flatnonzero(np.diff(sample.clusters, prepend=-1))
    intercept = (logit(sample.truth) - logit(sample.scores))[first]
    truth = {"slope": np.ones(len(first)), "intercept": intercept}
    if quantity == "observed_expected":
        expected = np.bincount(sample.clusters, sample.scores)
        ratio = np.bincount(sample.clusters, sample.truth) / expected
    else:
        ratio = truth[quantity]
    low = getattr(table, f"{quantity}_low")
    high = getattr(table, f"{quantity}_high")
    known = ~np.isnan(low)
    if not known.any():
        return np.nan
    return np.mean(((low <= ratio) & (ratio <= high))[known])


def _covers_bins(uses_clusters, sample, seed):
    """Return the share of the bars of a reliability diagram that hold the event
    frequency which the scores of the bin have over all hospitals.
    """
    maker = CurveMaker(binning=5, metric=None, random_state=seed)
    clusters = sample.clusters if uses_clusters else None
    numbers = maker.from_predictions(
        sample.labels, {None: sample.scores}, clusters=clusters
    )
    (curve,) = numbers["curves"]
    edges = curve.statistics.edges
    bins = np.clip(np.searchsorted(edges, sample.scores) - 1, 0, len(edges) - 2)
    truth = np.bincount(bins, sample.truth) / np.bincount(bins)
    low, high = curve.bars
    known = ~np.isnan(low)
    if not known.any():
        return np.nan
    return np.mean(((low <= truth) & (truth <= high))[known])


def _unequal(number):
    """Calibrated hospitals of unequal size, whose rows share a normal deviate."""

    def sample(rng):
        sizes = np.exp(rng.uniform(np.log(_SMALLEST), np.log(_LARGEST), number))
        return _copula(
            sizes.astype(int).tolist(), lambda rng, n: rng.random(n), correlation=0.1
        )(rng)

    return sample


SHAPES |= {
    f"{number} hospitals, deviation {str(deviation).lstrip('0')}": _hospitals(
        number, deviation
    )
    for number in _NUMBERS
    for deviation in _DEVIATIONS
}
SHAPES |= {
    f"{number} hospitals alike within": _unequal(number) for number in _NUMBERS[1:]
}
SHAPES |= {
    f"{name}, deviation {str(deviation).lstrip('0')}": _hospitals_with_few_events(
        *design, deviation
    )
    for name, design in _FEW_EVENTS.items()
    for deviation in _DEVIATIONS
}
# Three of unequal size are worth fewer than three of equal size: no bars.
_BARS = tuple(f"{number} hospitals alike within" for number in _NUMBERS[1:])
_WORDS = {
    "observed_expected": "O/E",
    "intercept": "intercept",
    "slope": "slope",
}


def _name_of_pooled(quantity):
    if quantity == "slope":
        return "mean slope over hospitals"
    if quantity == "population_observed_expected":
        return "O/E over all samples of hospitals"
    return f"{_WORDS[quantity]} of the median hospital"


def _with_few_events():
    promises = []
    for name, (_, _, risk) in _FEW_EVENTS.items():
        for deviation in _DEVIATIONS:
            shapes = (f"{name}, deviation {str(deviation).lstrip('0')}",)
            for quantity in (
                "intercept",
                "observed_expected",
                "population_observed_expected",
            ):
                kept = partial(_covers_pooled, quantity, deviation, risk=risk)
                promises.append(Promise(_name_of_pooled(quantity), 0.9, kept, shapes))
            kept = partial(_covers_new, "intercept", deviation, risk=risk)
            promises.append(Promise("intercept of a new hospital", 0.9, kept, shapes))
    return promises


def _by_cluster():
    promises = []
    for deviation in _DEVIATIONS:
        for quantity, words in _WORDS.items():
            shapes = tuple(
                f"{number} hospitals, deviation {str(deviation).lstrip('0')}"
                for number in _NUMBERS
            )
            if quantity == "slope" and deviation != _DEVIATIONS[0]:
                continue  # slopes do not vary here
            kinds = {
                f"{words} of a new hospital": partial(_covers_new, quantity, deviation),
                _name_of_pooled(quantity): partial(_covers_pooled, quantity, deviation),
                f"{words} of each hospital": partial(_covers_each, quantity),
            }
            promises += [
                Promise(name, 0.9, kept, shapes) for name, kept in kinds.items()
            ]
    return promises


HOSPITALS = [
    *_by_cluster(),
    *_with_few_events(),
    Promise(
        "usual t interval of a further hospital's O/E",
        0.9,
        partial(_usual_interval_covers_new, _DEVIATIONS[0]),
        tuple(f"{number} hospitals, deviation .1" for number in _NUMBERS[1:]),
    ),
    Promise("bars by cluster", 0.9, partial(_covers_bins, True), _BARS),
    Promise("bars without clusters", 0.9, partial(_covers_bins, False), _BARS),
]
