"""Promises on data that were found to break them: rare outcomes, heavy rows, clusters
of unequal size, and shares that change.
"""

from functools import cache, partial

import numpy as np
from scipy.optimize import brentq
from scipy.signal import lfilter
from scipy.special import expit, logit, ndtr, ndtri

from benchmarks.levels.promises import Promise, covers
from benchmarks.levels.shapes import SHAPES, Sample, _copula
from benchmarks.levels.summary import of_shape
from skcalib._cells.tasks import BinaryTask
from skcalib.binning import EqualWidth, FixedEdges
from skcalib.decisions import (
    certified_abstention,
    certified_routing,
    certified_threshold,
    net_benefit,
)
from skcalib.evaluation import calibration_summary, compare
from skcalib.evaluation._summary_numbers import OF_ROWS, SummaryRows
from skcalib.metrics import (
    calibration_by_group,
    calibration_error,
    calibration_test,
    kuiper_calibration_error,
    reliability_curve,
)
from skcalib.metrics._slope import coefficient
from skcalib.monitoring import calibration_change

__all__ = ["HARD"]

_GRID_ROWS = 200_000  # of a population whose scores are evenly spaced


# --- Net benefit ----------------------------------------------------------------------


@cache
def _even_scores():
    scores = (np.arange(_GRID_ROWS) + 0.5) / _GRID_ROWS
    return scores, scores


def _uniform(n):
    def sample(rng):
        scores = rng.random(n)
        labels = rng.random(n) < scores
        return Sample(scores, scores, labels, population=_even_scores)

    return sample


def _not_quite_precise(rng):
    """Uniform scores; from .95 on .93 of the rows have the event."""
    scores = rng.random(500)
    truth = np.where(scores >= 0.95, 0.93, scores)
    return Sample(scores, truth, rng.random(500) < truth)


@cache
def _rare_scores():
    rng = np.random.default_rng(12345)
    scores = rng.beta(1, 1999, 10 * _GRID_ROWS)
    return scores, scores


def _five_events(rng):
    scores = rng.beta(1, 1999, 10_000)
    labels = rng.random(10_000) < scores
    return Sample(scores, scores, labels, population=_rare_scores)


def _almost_one_model(n):
    """Scores (n, 2) of a calibrated model, and of one that has 1 - s on 1 % of rows."""

    def sample(rng):
        first = rng.random(n)
        second = np.where(rng.random(n) < 0.01, 1 - first, first)
        labels = rng.random(n) < first
        return Sample(np.column_stack((first, second)), first, labels)

    return sample


_UNEQUAL = [150] * 2 + [10] * 30
_ONE_LARGE = [400] + [2] * 100


def _even_clusters(sizes):
    draw = _copula(sizes, lambda rng, n: rng.random(n))
    return lambda rng: draw(rng)._replace(population=_even_scores)


@cache
def _true_benefit(population, thresholds):
    scores, truth = population()
    gain = [
        np.mean((scores >= t) * (truth - (1 - truth) * t / (1 - t))) for t in thresholds
    ]
    return np.array(gain)


def _covers_benefit(thresholds, sample, seed, *, standardize=False, **options):
    thresholds = np.atleast_1d(thresholds)
    found = net_benefit(
        sample.labels,
        sample.scores,
        thresholds=thresholds,
        standardize=standardize,
        clusters=sample.clusters,
        labels=[0, 1],
        n_resamples=300,
        random_state=seed,
        **options,
    )
    truth = _true_benefit(sample.population, tuple(thresholds.tolist()))
    if standardize:
        truth = truth / sample.population()[1].mean()
    return _all_within(found.low, truth, found.high)


def _all_within(low, truth, high):
    """Return whether all limits hold the truth; NaN where there are none."""
    if np.isnan(low).all():
        return np.nan
    return float(not np.any((low > truth) | (high < truth)))


def _standardised(threshold, sample, seed):
    if not sample.labels.any():
        return np.nan  # there is no such number
    return _covers_benefit(threshold, sample, seed, standardize=True)


def _claims_benefit(sample, seed):
    found = net_benefit(sample.labels, sample.scores, thresholds=[0.95], labels=[0, 1])
    return found.low[0] > 0


def _covers_difference(sample, seed):
    first, second = sample.scores.T
    found = net_benefit(
        sample.labels, first, thresholds=[0.5], reference=second, labels=[0, 1]
    )
    # .01 of rows differ, and are worth |2 s - 1| each
    return _all_within(found.low, 0.005, found.high)


SHAPES |= {f"uniform, calibrated, {n:,} rows": _uniform(n) for n in (500, 2000, 10_000)}
SHAPES |= {
    "precision .93 from .95 on, 500 rows": _not_quite_precise,
    "5 events in 10,000": _five_events,
    "clusters, 2 of 150 and 30 of 10, uniform": _even_clusters(_UNEQUAL),
}
SHAPES |= {
    f"two models that differ on 1 % of {n:,} rows": _almost_one_model(n)
    for n in (300, 6000)
}
_BENEFIT = [
    Promise(
        f"net benefit at {str(t).lstrip('0')}",
        0.9,
        partial(_covers_benefit, t),
        (f"uniform, calibrated, {n:,} rows",),
    )
    for t, n in ((0.95, 500), (0.98, 2000), (0.99, 10_000))
]
_BENEFIT += [
    Promise(
        "net benefit, band .01 to .99",
        0.9,
        partial(_covers_benefit, np.arange(1, 100) / 100, simultaneous=True),
        ("uniform, calibrated, 500 rows", "uniform, calibrated, 2,000 rows"),
    ),
    Promise(
        "standardised net benefit at .001",
        0.9,
        partial(_standardised, 0.001),
        ("5 events in 10,000",),
    ),
    Promise(
        "net benefit of one model less another's, at .5",
        0.9,
        _covers_difference,
        ("two models that differ on 1 % of 6,000 rows",),
    ),
    *(
        Promise(
            f"net benefit in clusters, at .{digit}",
            0.9,
            partial(_covers_benefit, digit / 10),
            ("clusters, 2 of 150 and 30 of 10, uniform",),
        )
        for digit in (3, 6, 9)
    ),
]
_CLAIM = Promise(
    "claim that treating from .95 on is better than treating nobody",
    0.05,
    _claims_benefit,
    ("precision .93 from .95 on, 500 rows",),
)


# --- Heavy and light rows -------------------------------------------------------------


def _heavy_and_light(rng):
    """200 calibrated rows near .5 of weight 20, and 20,000 near .01 of weight .2."""
    scores = np.concatenate(
        (0.45 + 0.1 * rng.random(200), 0.005 + 0.01 * rng.random(20_000))
    )
    weight = np.repeat([20.0, 0.2], [200, 20_000])
    return Sample(scores, scores, rng.random(len(scores)) < scores, weight)


_HEAVY = "200 rows of weight 20 and 20,000 of .2"
SHAPES[_HEAVY] = _heavy_and_light


def _rejects_weighted(method, sample, seed):
    found = calibration_test(
        sample.labels,
        sample.scores,
        method=method,
        sample_weight=sample.sample_weight,
        weight_type="importance",
    )
    return found.pvalue <= 0.05


def _covers_weighted_bias(groups, sample, seed):
    code = (
        sample.scores > 0.1 if groups == "apart" else np.arange(len(sample.scores)) % 2
    )
    table = calibration_by_group(
        sample.labels,
        sample.scores,
        code,
        sample_weight=sample.sample_weight,
        weight_type="importance",
        n_resamples=19,
        random_state=seed,
    )
    low, high = np.asarray(table.bias_low), np.asarray(table.bias_high)
    return float(np.mean((low <= 0) & (high >= 0)))


def _covers_bin(position, sample, seed):
    curve = reliability_curve(
        sample.labels,
        sample.scores,
        binning=FixedEdges([0, 0.1, 1]),
        sample_weight=sample.sample_weight,
        weight_type="importance",
    )
    low, high = curve.interval()
    return low[position] <= curve.mean_score[position] <= high[position]


_WEIGHTED_TESTS = [
    Promise(
        f"{name} with importance weights",
        0.05,
        partial(_rejects_weighted, method),
        (_HEAVY,),
    )
    for name, method in (
        ("Kuiper", "kuiper"),
        ("Kolmogorov-Smirnov", "kolmogorov_smirnov"),
        ("Spiegelhalter", "spiegelhalter"),
    )
]
_WEIGHTED_INTERVALS = [
    Promise(
        "bias by group, groups mixed",
        0.9,
        partial(_covers_weighted_bias, "mixed"),
        (_HEAVY,),
    ),
    Promise(
        "bias by group, light and heavy rows apart",
        0.9,
        partial(_covers_weighted_bias, "apart"),
        (_HEAVY,),
    ),
    Promise("interval of the light bin", 0.9, partial(_covers_bin, 0), (_HEAVY,)),
    Promise("interval of the heavy bin", 0.9, partial(_covers_bin, 1), (_HEAVY,)),
]


# --- One bin, and rows in the order of time -------------------------------------------


def _one_bin_off(rng):
    """Calibrated but for one of 15 bins, where events are rarer by .3."""
    scores = rng.random(600)
    truth = scores - 0.3 * (np.abs(scores - 0.5) < 1 / 30)
    return Sample(scores, truth, rng.random(600) < truth)


def _in_order_of_time(rng):
    """Calibrated rows whose labels come from normal deviates of autocorrelation .8."""
    noise = rng.normal(size=2200)
    deviate = lfilter([0.6], [1, -0.8], noise)[200:]  # .8^2 + .6^2 = 1
    scores = rng.random(2000)
    return Sample(scores, scores, ndtr(deviate) < scores)


def _rejects_in_blocks(size, sample, seed):
    """Return whether calibration is rejected, with blocks of rows as clusters."""
    found = calibration_test(
        sample.labels,
        sample.scores,
        metric=kuiper_calibration_error,
        n_resamples=99,
        random_state=seed,
        clusters=np.arange(2000) // size,
    )
    return found.pvalue <= 0.05


def _rejects_in_order(method, sample, seed):
    found = calibration_test(sample.labels, sample.scores, method=method)
    return found.pvalue <= 0.05


_TIME = "autocorrelation .8, 2,000 rows"
_ONE_BIN = "one of 15 bins off by .3, 600 rows"
SHAPES |= {_TIME: _in_order_of_time, _ONE_BIN: _one_bin_off}
_IN_TIME = [
    Promise(
        f"{name} without clusters",
        0.05,
        partial(_rejects_in_order, method),
        (_TIME,),
    )
    for name, method in (
        ("Kuiper", "kuiper"),
        ("Kolmogorov-Smirnov", "kolmogorov_smirnov"),
    )
]
_IN_TIME.append(
    Promise(
        "resampled Kuiper, blocks of 50 rows as clusters",
        0.05,
        partial(_rejects_in_blocks, 50),
        (_TIME,),
    )
)
_PLUGIN_BINS = partial(
    calibration_error, norm=1, binning=EqualWidth(15), method="plugin"
)


# --- Two models -----------------------------------------------------------------------


def _equal_models(sizes, correlation=0.3):
    """Scores (n, 2) of two equally good models y = 1{z + u + e > 0}, of which rows of a
    cluster share a part of z, u and e.
    """

    def sample(rng):
        code = np.repeat(np.arange(len(sizes)), sizes)
        shared = rng.normal(size=(3, len(sizes)))[:, code]
        own = rng.normal(size=(3, len(code)))
        z, u, e = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own
        scores = ndtr(np.column_stack((z, u)) / np.sqrt(2))
        return Sample(scores, ndtr(z + u), z + u + e > 0, clusters=code)

    return sample


def _sampled_models(rng):
    """500 rows of which one in 50 stands for 50."""
    sample = _equal_models([1] * 500)(rng)
    weight = np.where(rng.random(500) < 0.02, 50.0, 1.0)
    return sample._replace(sample_weight=weight, clusters=None)


def _differs(metric, sample, seed):
    models = dict(zip(("first", "second"), sample.scores.T, strict=True))
    found = compare(
        sample.labels,
        models,
        metrics=metric,
        sample_weight=sample.sample_weight,
        weight_type="importance",
        clusters=sample.clusters,
        n_resamples=19,
        random_state=seed,
    )
    return found.pvalue[1] <= 0.05


SHAPES |= {
    "two models, one row in 50 of weight 50": _sampled_models,
    "two models, clusters, 2 of 150 and 30 of 10": _equal_models(_UNEQUAL),
    "two models, clusters, one of 400 and 100 of 2": _equal_models(_ONE_LARGE),
}
_PAIRED = [
    Promise(
        f"compare, {metric}",
        0.05,
        partial(_differs, metric),
        (
            "two models, one row in 50 of weight 50",
            "two models, clusters, 2 of 150 and 30 of 10",
            "two models, clusters, one of 400 and 100 of 2",
        ),
    )
    for metric in ("log_loss", "brier_score")
]


# --- Numbers of a summary -------------------------------------------------------------


def _binormal(n_events, n_others, area):
    """Normal scores of both classes, whose distance gives the area."""
    distance = np.sqrt(2) * ndtri(area)

    def sample(rng):
        labels = np.arange(n_events + n_others) < n_events
        x = rng.normal(size=len(labels)) + distance * labels
        # log-odds of an event among as many rows
        odds = distance * (x - distance / 2) + np.log(n_events / n_others)
        return Sample(expit(odds), expit(odds), labels)

    return sample


def _covers_area(area, sample, seed):
    found = calibration_summary(
        sample.labels, sample.scores, n_resamples=1, random_state=seed
    ).auc
    return _all_within(np.array(found.low), area, np.array(found.high))


_AREAS = (
    (0.99, 3, 997),
    (0.99, 10, 990),
    (0.75, 5, 100),
    (0.75, 20, 100),
    (0.9, 100, 900),
)
_SUMMARY = []
for _area, _events, _others in _AREAS:
    _shape = f"{_events} events, {_others} others"
    _shape += f", area {str(_area).lstrip('0')}"
    SHAPES[_shape] = _binormal(_events, _others, _area)
    _SUMMARY.append(
        Promise("summary: auc", 0.95, partial(_covers_area, _area), (_shape,))
    )


def _covers_number(name, sample, seed):
    """Return whether the interval of a number holds that of the population; computed
    without the rest of a summary, which takes longer.
    """
    task = BinaryTask(sample.scores, sample.labels, None)
    if name == "intercept":
        if sample.labels.all() or not sample.labels.any():
            return np.nan
        found = coefficient(task, "intercept", 0.95)
    else:
        found = OF_ROWS[name](SummaryRows.of_task(task, "frequency", None, 0.95))
    truth = _true_numbers(sample.population)[name]
    return _all_within(np.array(found.low - 1e-12), truth, np.array(found.high + 1e-12))


@cache
def _true_numbers(population):
    scores, truth, _ = population()
    log_odds = logit(scores)
    return {
        "observed_expected": truth.sum() / scores.sum(),
        "brier_score": np.mean(truth * (1 - scores) ** 2 + (1 - truth) * scores**2),
        "intercept": brentq(
            lambda shift: np.sum(expit(log_odds + shift) - truth), -5, 5, xtol=1e-10
        ),
    }


SHAPES |= {
    "constant .99, 100 rows": of_shape(100, lambda rng, n: np.full(n, 0.99)),
    "Beta(1, 999), calibrated, 1,000 rows": of_shape(
        1000, lambda rng, n: rng.beta(1, 999, n)
    ),
    **{
        f"Beta(.5, 5), events at 1/11, {n} rows": of_shape(
            n, lambda rng, n: rng.beta(0.5, 5, n), lambda s: np.full(len(s), 1 / 11)
        )
        for n in (200, 500)
    },
    "Beta(1, 19), events at .05, 400 rows": of_shape(
        400, lambda rng, n: rng.beta(1, 19, n), lambda s: np.full(len(s), 0.05)
    ),
    "log-odds 2.5 times too large, 250 rows": of_shape(
        250,
        lambda rng, n: expit(3 * rng.normal(size=n)),
        lambda s: expit(0.4 * logit(s)),
    ),
}
_NUMBERS = {
    "observed_expected": (
        "constant .99, 100 rows",
        "Beta(1, 999), calibrated, 1,000 rows",
    ),
    "brier_score": (
        "constant .99, 100 rows",
        "Beta(1, 999), calibrated, 1,000 rows",
    ),
    "intercept": (
        "Beta(.5, 5), events at 1/11, 500 rows",
        "Beta(.5, 5), events at 1/11, 200 rows",
        "Beta(1, 19), events at .05, 400 rows",
        "log-odds 2.5 times too large, 250 rows",
    ),
}
for _name, _shapes in _NUMBERS.items():
    _words = f"summary: {_name.replace('_', ' ')}"
    _SUMMARY.append(Promise(_words, 0.95, partial(_covers_number, _name), _shapes))


# --- Two samples ----------------------------------------------------------------------


def _two_groups(before, after, n=300):
    """Scores near 0 and near 1, of which the upper are too high by .5 in both samples
    of n rows; the shares of these change.
    """

    def sample(rng):
        is_high = rng.random(2 * n) < np.repeat([before, after], n)
        scores = np.where(is_high, rng.beta(150, 2, 2 * n), rng.beta(2, 150, 2 * n))
        truth = scores - 0.5 * is_high
        return Sample(scores, truth, rng.random(2 * n) < truth)

    return sample


_CHANGES = {}  # by sample: two promises are about the same ones


def _change(sample, seed):
    key = hash((sample.scores.tobytes(), sample.labels.tobytes(), seed))
    if key not in _CHANGES:
        _CHANGES[key] = _compared_halves(sample, seed)
    return _CHANGES[key]


def _compared_halves(sample, seed):
    half = len(sample.scores) // 2
    return calibration_change(
        sample.labels[:half],
        sample.scores[:half],
        sample.labels[half:],
        sample.scores[half:],
        norm=1,
        method="plugin",
        labels=[0, 1],
        n_resamples=199,
        random_state=seed,
    )


def _covers_no_shift(sample, seed):
    shift = _change(sample, seed).shift
    return shift.low <= 0 <= shift.high


_SHARES = tuple(
    f"two groups, the upper too high, shares {name}"
    for name in (".10 to .88", ".95 to .05", ".95 to .05, 150 + 150 rows")
)
SHAPES |= dict(
    zip(
        _SHARES,
        (
            _two_groups(0.1, 0.88),
            _two_groups(0.95, 0.05),
            _two_groups(0.95, 0.05, n=150),
        ),
        strict=True,
    )
)


# --- Certificates ---------------------------------------------------------------------


def _lost_answers(loss, n):
    """Answers that are lost at exactly the limit, none gained."""

    def sample(rng):
        truth = np.full(n, loss)
        return Sample(np.full(n, 0.9), truth, rng.random(n) < truth)

    return sample


def _routes(loss, sample, seed):
    found = certified_routing(
        ~sample.labels,
        np.ones(len(sample.labels), dtype=bool),
        sample.scores,
        max_loss=loss,
        thresholds=[0.5],
    )
    return found.found, float(found.found)


def _alike_in_clusters(sizes, share):
    """A world just below the floor of .9, where a share of clusters is right or wrong
    as a whole.
    """

    def sample(rng):
        order = rng.permutation(sizes)
        code = np.repeat(np.arange(len(order)), order)
        scores = 0.5 + 0.5 * rng.random(len(code))
        truth = np.full(len(code), 0.8999)
        is_whole = (rng.random(len(order)) < share)[code]
        one_draw = rng.random(len(order))[code]
        labels = np.where(is_whole, one_draw, rng.random(len(code))) < truth
        return Sample(scores, truth, labels, clusters=code)

    return sample


def _breaks_precision(sample, seed):
    found = certified_threshold(
        sample.labels,
        sample.scores,
        promise="precision",
        target=0.9,
        clusters=sample.clusters,
        labels=[False, True],
    )
    accepted = 2 * (1 - max(found.threshold, 0.5)) if found.found else 0.0
    # every threshold that is found breaks the floor
    return found.found, accepted


def _breaks_in_clusters(certify, sample, seed):
    """Return the same for rows that are right or wrong."""
    found = certify(sample.labels, sample.scores, clusters=sample.clusters)
    return found.found, float(found.found)


def _abstention(correct, confidence, clusters):
    return certified_abstention(
        correct, confidence, max_error=0.1, thresholds=[0.5], clusters=clusters
    )


def _routing_in_clusters(correct, confidence, clusters):
    """Route to a small model, where the large one is always right."""
    large = np.ones(len(correct), dtype=bool)
    return certified_routing(
        correct, large, confidence, max_loss=0.1, thresholds=[0.5], clusters=clusters
    )


_CLUSTERS = {
    "below the floor, 300 clusters of 5": ([5] * 300, 0.3),
    "below the floor, clusters, 2 of 150 and 30 of 10": (_UNEQUAL, 0.3),
    "below the floor, 30 clusters of 10 alike": ([10] * 30, 1.0),
}
SHAPES |= {name: _alike_in_clusters(*world) for name, world in _CLUSTERS.items()}
_ROUTED = {
    f"{n:,} rows, .01 lost, none gained": (_lost_answers(0.01, n), 0.01)
    for n in (163, 2082)
}
SHAPES |= {name: draw for name, (draw, _) in _ROUTED.items()}

HARD = {
    "coverage": [
        *_BENEFIT,
        *_WEIGHTED_INTERVALS,
        Promise("l1, plugin, 15 bins", 0.9, partial(covers, _PLUGIN_BINS), (_ONE_BIN,)),
        *_SUMMARY,
        Promise("shift between two samples", 0.9, _covers_no_shift, _SHARES),
    ],
    "size": [
        _CLAIM,
        *_WEIGHTED_TESTS,
        *_IN_TIME,
        *_PAIRED,
        Promise(
            "change",
            0.05,
            lambda sample, seed: _change(sample, seed).pvalue <= 0.05,
            _SHARES,
        ),
    ],
    "broken": [
        Promise("precision, in clusters", 0.1, _breaks_precision, tuple(_CLUSTERS)),
        *(
            Promise(
                f"{name}, in clusters",
                0.1,
                partial(_breaks_in_clusters, certify),
                tuple(_CLUSTERS),
            )
            for name, certify in (
                ("error when answered", _abstention),
                ("routing", _routing_in_clusters),
            )
        ),
        Promise("routing of all rows", 0.1, partial(_routes, 0.01), tuple(_ROUTED)),
    ],
}
