"""Few events, few heavy rows and clusters without events: levels of the trend, of two
models and of the calibration slope, and families of such worlds to search.
"""

from functools import cache, partial

import numpy as np
from scipy.special import expit, logit, ndtri

from benchmarks.levels.promises import Promise
from benchmarks.levels.shapes import SHAPES, Sample, _copula
from skcalib.evaluation import compare
from skcalib.metrics import calibration_slope_intercept
from skcalib.monitoring import calibration_trend

__all__ = [
    "FEW_EVENTS",
    "FEW_EVENTS_AXES",
    "FEW_EVENTS_EXPECTED",
    "FEW_EVENTS_FAMILIES",
    "HEAVY_ROWS",
    "models_differ",
]

_LARGEST_RISK = 0.6
_SLOPE_DEVIATION = 0.4  # of clusters from each other


# --- Worlds ---------------------------------------------------------------------------


def _rare(world, rng):
    """Risks with a sum of about `expected events`, which drift from the first row to
    the last and spread besides.
    """
    n = round(world["n"])
    drift = 1 + world["drift of risk"] * np.linspace(-1, 1, n)
    risk = drift * rng.lognormal(0, world["spread of risk"], n)
    risk = np.minimum(risk * world["expected events"] / risk.sum(), _LARGEST_RISK)
    return Sample(risk, risk, rng.random(n) < risk)


def _heavy(world, rng):
    """Uniform scores, of which a random share has a larger weight."""
    n = round(world["n"])
    scores = rng.uniform(1e-6, 1 - 1e-6, n)
    is_heavy = rng.random(n) < world["share of heavy"]
    weight = np.where(is_heavy, world["weight of heavy"], 1.0)
    return Sample(
        scores, scores, rng.random(n) < scores, weight, weight_type="importance"
    )


def _partly_empty(world, rng):
    """Equal clusters of which a share is expected to hold no event, with a common shift
    of the rows of a cluster on the log-odds.
    """
    n_clusters = round(world["clusters"])
    code = np.repeat(np.arange(n_clusters), round(world["size of cluster"]))
    mean_events = -np.log(max(world["share empty"], 1e-4))
    mean_risk = min(mean_events / world["size of cluster"], 0.5)
    scores = expit(logit(mean_risk) + rng.normal(size=len(code)))
    shift = world["deviation of clusters"] * rng.normal(size=n_clusters)
    truth = expit(logit(scores) + shift[code])
    return Sample(scores, truth, rng.random(len(code)) < truth, clusters=code)


def _risks_of_a_twentieth(rng, n):
    return np.clip(rng.beta(1, 19, n), 1e-9, 1 - 1e-9)


def _slopes_that_differ(n_clusters, size, rng):
    """Clusters with a risk of about .03, each with its own slope."""
    code = np.repeat(np.arange(n_clusters), size)
    deviate = rng.normal(size=len(code))
    scores = expit(logit(0.03) + deviate)
    slope = 1 + _SLOPE_DEVIATION * rng.normal(size=n_clusters)
    truth = expit(logit(0.03) + slope[code] * deviate)
    return Sample(
        scores,
        truth,
        rng.random(len(code)) < truth,
        clusters=code,
        population=_population_of_slopes,
    )


@cache
def _population_of_slopes():
    """Return scores, and the mean risk at each over all clusters."""
    deviate = ndtri((np.arange(5000) + 0.5) / 5000)
    slopes = 1 + _SLOPE_DEVIATION * ndtri((np.arange(200) + 0.5) / 200)
    truth = expit(logit(0.03) + slopes[:, None] * deviate).mean(axis=0)
    return expit(logit(0.03) + deviate), truth


@cache
def _true_slope(population):
    """Return the slope of the truth of a population on the log-odds of its scores."""
    scores, truth = population()
    labels = np.repeat([True, False], len(scores))
    weight = np.append(truth, 1 - truth)
    found = calibration_slope_intercept(
        labels, np.tile(scores, 2), sample_weight=weight
    )
    return found.slope.estimate


# --- Whether a promise is kept --------------------------------------------------------


def _trend_rejects(world, sample, seed):
    time = np.arange(len(sample.labels))
    found = calibration_trend(
        sample.labels, sample.scores, time, clusters=sample.clusters
    )
    return found.pvalue <= 0.05  # without a p-value nothing is rejected


def brier_by_hand(y_true, y_proba, sample_weight=None, labels=None):
    """A function of a user."""
    return np.average((y_proba - y_true) ** 2, weights=sample_weight)


def models_differ(metric, sample, seed, **options):
    """Two models whose scores lie as far below as above the truth, in random rows: both
    have the same expected Brier score in each row, and any other loss of one is as
    likely that of the other.
    """
    rng = np.random.default_rng([seed, 2])
    factor = np.where(rng.random(len(sample.truth)) < 0.5, 0.5, 1.5)
    models = {
        "first": np.minimum(factor * sample.truth, 1 - 1e-9),
        "second": np.minimum((2 - factor) * sample.truth, 1 - 1e-9),
    }
    found = compare(
        sample.labels,
        models,
        metrics=metric,
        labels=[0, 1],
        n_resamples=99,
        random_state=seed,
        **options,
    )
    pvalue = found.pvalue[1]
    return np.nan if np.isnan(pvalue) else pvalue <= 0.05


def _models_differ(metric, world, sample, seed):
    return models_differ(metric, sample, seed)


def _slope_holds(world, sample, seed):
    options = {"clusters": sample.clusters, "labels": [False, True]}
    if sample.sample_weight is not None:
        options["sample_weight"] = sample.sample_weight
        options["weight_type"] = sample.weight_type
    try:
        slope = calibration_slope_intercept(sample.labels, sample.scores, **options)
    except ValueError:
        return np.nan  # one class, or separate ones
    low, high = slope.slope.low, slope.slope.high
    true_slope = 1.0
    if sample.population is not None:
        true_slope = _true_slope(sample.population)
    return np.nan if np.isnan(low) else low <= true_slope <= high


FEW_EVENTS_AXES = {
    "expected events": (0.1, 10, True),
    "drift of risk": (0, 0.95),
    "spread of risk": (1e-3, 1.5, True),
    "share of heavy": (0.005, 0.3, True),
    "weight of heavy": (2, 200, True),
    "clusters": (6, 60, True),
    "size of cluster": (8, 100, True),
    "share empty": (0, 0.4),
    "deviation of clusters": (0, 0.3),
}
_RARE = ("n", "expected events", "drift of risk", "spread of risk")
_HEAVY = ("n", "share of heavy", "weight of heavy")
_EMPTY = ("clusters", "size of cluster", "share empty", "deviation of clusters")
# The fields of `search.Family`.
FEW_EVENTS_FAMILIES = [
    ("few events: trend", "size", 0.05, _RARE, _rare, _trend_rejects),
    *(
        (
            f"few events: {words}",
            "size",
            0.05,
            _RARE,
            _rare,
            partial(_models_differ, metric),
        )
        for words, metric in (
            ("two models", "brier_score"),
            ("log-loss of two models", "log_loss"),
            ("squared error of two models", "squared_calibration_error"),
            ("ECE of two models", "expected_calibration_error"),
            ("a user's loss of two models", brier_by_hand),
        )
    ),
    ("heavy rows: slope", "coverage", 0.9, _HEAVY, _heavy, _slope_holds),
    ("empty clusters: slope", "coverage", 0.9, _EMPTY, _partly_empty, _slope_holds),
]


# --- Fixed shapes ---------------------------------------------------------------------

_EVENTS = []
for _number in (0.5, 1, 3, 10):
    for _words, _drift, _spread in (
        ("risk moves with time", 0.5, 1e-3),
        ("spread risks", 0.0, 1.0),
    ):
        _name = f"{_number:g} events expected, {_words}, n = 400"
        _world = {
            "n": 400,
            "expected events": _number,
            "drift of risk": _drift,
            "spread of risk": _spread,
        }
        SHAPES[_name] = partial(_rare, _world)
        _EVENTS.append(_name)
_WEIGHTED = []
for _rows, _share, _weight in ((200, 0.05, 50), (1000, 0.02, 50), (1000, 0.05, 50)):
    _name = f"weight {_weight} for {100 * _share:g} % at random, n = {_rows}"
    _world = {"n": _rows, "share of heavy": _share, "weight of heavy": _weight}
    SHAPES[_name] = partial(_heavy, _world)
    _WEIGHTED.append(_name)
_CLUSTERED = []
for _number, _size, _share in ((6, 40, 0.0), (20, 50, 0.2), (20, 50, 0.4)):
    _name = f"{_number} clusters of {_size}, {100 * _share:g} % without events"
    _world = {
        "clusters": _number,
        "size of cluster": _size,
        "share empty": _share,
        "deviation of clusters": 0.2,
    }
    SHAPES[_name] = partial(_partly_empty, _world)
    _CLUSTERED.append(_name)
for _number, _size, _correlation in ((100, 10, 0.5), (100, 10, 0.9), (30, 40, 0.5)):
    _name = f"{_number} clusters of {_size}, risk .05, correlation {_correlation}"
    SHAPES[_name] = _copula([_size] * _number, _risks_of_a_twentieth, _correlation)
    _CLUSTERED.append(_name)
_name = "40 clusters of 25, slopes that differ by .4"
SHAPES[_name] = partial(_slopes_that_differ, 40, 25)
_CLUSTERED.append(_name)

FEW_EVENTS_EXPECTED = tuple(_EVENTS)
HEAVY_ROWS = tuple(_WEIGHTED)
FEW_EVENTS = {
    "size": [
        Promise(
            "trend, few events", 0.05, partial(_trend_rejects, {}), FEW_EVENTS_EXPECTED
        ),
        Promise(
            "compare, brier_score, few events",
            0.05,
            partial(models_differ, "brier_score"),
            FEW_EVENTS_EXPECTED,
        ),
    ],
    "coverage": [
        Promise(
            "calibration slope, heavy rows",
            0.9,
            partial(_slope_holds, {}),
            HEAVY_ROWS,
        ),
        Promise(
            "calibration slope, clusters",
            0.9,
            partial(_slope_holds, {}),
            tuple(_CLUSTERED),
        ),
    ],
}
