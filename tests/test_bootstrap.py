"""Bootstrap intervals, on request: against a bootstrap of rows, and what each option promises."""

import math
from functools import partial

import numpy as np
import pytest
from _catalog import refused
from sklearn.metrics import brier_score_loss, roc_auc_score

from skcalib.binning import EqualMass, EqualWidth, FixedEdges
from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    expected_calibration_error,
    groupwise_calibration_error,
    kde_calibration_error,
    kolmogorov_smirnov_calibration_error,
    maximum_calibration_error,
    neighborhood_calibration_error,
    smooth_calibration_error,
    sweep_calibration_error,
)


def sample(n=400, power=1.6, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    return rng.random(n) < scores**power, scores


def row_bootstrap(labels, scores, statistic, rng, clusters=None, size=2000):
    """Resample rows, or whole clusters of them, and compute the statistic anew each time."""
    n = len(labels)
    clusters = np.arange(n) if clusters is None else clusters
    members = [np.flatnonzero(clusters == c) for c in np.unique(clusters)]
    values = []
    for _ in range(size):
        rows = np.concatenate([members[c] for c in rng.integers(0, len(members), len(members))])
        values.append(statistic(labels[rows], scores[rows]))
    return np.array(values)


@pytest.mark.parametrize("method", ["debiased", "unbiased", "plugin"])
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.slow
def test_cells_are_as_good_as_rows(method, clustered):
    # Wide bins, so that the scores within a cell vary and must be resampled as well.
    labels, scores = sample(300)
    clusters = np.repeat(np.arange(60), 5) if clustered else None
    edges = FixedEdges(np.linspace(0, 1, 3))
    options = {"binning": edges, "method": method}

    def squared(y, s):
        return calibration_error(y, s, squared=True, **options)

    power, plugin = squared(labels, scores), calibration_error(labels, scores, binning=edges, method="plugin") ** 2
    resampled = row_bootstrap(labels, scores, squared, np.random.default_rng(1), clusters)
    low, high = np.quantile(resampled, [0.05, 0.95])
    found = calibration_error_interval(
        labels,
        scores,
        squared=True,
        interval="basic" if method == "plugin" else "corrected",
        n_resamples=20_000,
        clusters=clusters,
        random_state=0,
        **options,
    )
    # Formulas 1: debiased square minus the resamples' distance from the plugin square; basic for the plugin itself.
    expected = (power - (high - plugin), power - (low - plugin))
    assert found.estimate == power
    assert found[1:] == pytest.approx(expected, abs=0.06 * (high - low))


def test_limits_are_roots_of_the_limits_of_the_square():
    labels, scores = sample()
    options = {"binning": 10, "interval": "corrected", "random_state": 0}
    squared = calibration_error_interval(labels, scores, squared=True, **options)
    plain = calibration_error_interval(labels, scores, **options)
    assert plain == pytest.approx([math.sqrt(max(value, 0)) for value in squared], abs=1e-12)
    calibrated = calibration_error_interval(*sample(power=1.0), **options)
    assert calibrated.low == 0
    assert calibration_error_interval(*sample(power=1.0), squared=True, **options).low < 0


def test_kinds():
    labels, scores = sample()
    options = {"metric": expected_calibration_error, "random_state": 0}
    estimate, low, high = calibration_error_interval(labels, scores, interval="percentile", **options)
    basic = calibration_error_interval(labels, scores, interval="basic", **options)
    assert basic == pytest.approx((estimate, 2 * estimate - high, 2 * estimate - low))
    # The plugin error is too large, and resampling makes it larger by about as much again.
    assert basic.high < high
    with refused(ValueError, "corrected", "debiased"):
        calibration_error_interval(labels, scores, interval="corrected", **options)
    with refused(ValueError, "corrected", "debiased"):
        calibration_error_interval(labels, scores, interval="corrected", metric=smooth_calibration_error)


@pytest.mark.parametrize(
    "metric",
    [
        calibration_error,
        expected_calibration_error,
        maximum_calibration_error,
        sweep_calibration_error,
        partial(calibration_error, norm=1),
        partial(calibration_error, method="label_binned"),
        partial(expected_calibration_error, norm=2, binning=EqualMass(5)),
        partial(sweep_calibration_error, base=EqualWidth(), norm=2),
        kde_calibration_error,
        kolmogorov_smirnov_calibration_error,
        neighborhood_calibration_error,
        smooth_calibration_error,
        groupwise_calibration_error,
        partial(groupwise_calibration_error, groups=np.arange(400) % 3),
    ],
    ids=lambda metric: getattr(metric, "__name__", str(getattr(metric, "keywords", "")).split(":")[0]),
)
@pytest.mark.parametrize("interval", ["basic", "percentile"])
def test_every_metric(metric, interval):
    labels, scores = sample()
    options = {"metric": metric, "interval": interval, "n_resamples": 50, "random_state": 0}
    found = calibration_error_interval(labels, scores, **options)
    assert found.estimate == metric(labels, scores)
    assert 0 <= found.low < found.high < 0.5
    assert found == calibration_error_interval(labels, scores, **options)
    assert all(isinstance(value, float) for value in found)
    # Whole clusters of ten identical rows: as if there were a tenth of the rows, about sqrt(10) times as wide.
    options["metric"] = metric if "groups" not in getattr(metric, "keywords", {}) else groupwise_calibration_error
    ten = calibration_error_interval(
        np.repeat(labels[:100], 10), np.repeat(scores[:100], 10), clusters=np.repeat(np.arange(100), 10), **options
    )
    assert ten.high - ten.low > found.high - found.low


def test_any_function_of_labels_and_scores():
    labels, scores = sample()
    brier = calibration_error_interval(labels, scores, metric=brier_score_loss, n_resamples=200, random_state=0)
    assert brier.low < brier.estimate == brier_score_loss(labels, scores) < brier.high

    def negative(y, s, sample_weight=None):
        return -brier_score_loss(y, s, sample_weight=sample_weight)

    mirrored = calibration_error_interval(labels, scores, metric=negative, n_resamples=200, random_state=0)
    assert mirrored == pytest.approx((-brier.estimate, -brier.high, -brier.low))  # nothing is cut off at 0
    auc = calibration_error_interval(labels, scores, metric=roc_auc_score, n_resamples=20, n_jobs=2, random_state=0)
    assert auc == calibration_error_interval(labels, scores, metric=roc_auc_score, n_resamples=20, random_state=0)


def test_stratified_resamples_keep_the_class_frequencies():
    labels, scores = sample(200)

    def base_rate(y, s, sample_weight=None):
        return float(np.average(y, weights=sample_weight))

    fixed = calibration_error_interval(labels, scores, metric=base_rate, stratify=True, n_resamples=50, random_state=0)
    assert fixed.low == pytest.approx(fixed.high)
    free = calibration_error_interval(labels, scores, metric=base_rate, n_resamples=50, random_state=0)
    assert free.high - free.low > 0.05
    # One bin: the error is |mean score - base rate|, and only the scores vary once classes are fixed.
    one_bin = {"metric": expected_calibration_error, "binning": 1, "interval": "basic", "random_state": 0}
    narrow = calibration_error_interval(labels, scores, stratify=True, **one_bin)
    wide = calibration_error_interval(labels, scores, **one_bin)
    assert narrow.high - narrow.low < 0.9 * (wide.high - wide.low)


@pytest.mark.parametrize("metric", [calibration_error, smooth_calibration_error])
def test_weights_are_repetitions(metric):
    labels, scores = sample(300)
    weights = np.random.default_rng(1).integers(0, 4, 300)
    kind = "corrected" if metric is calibration_error else "basic"
    options = {"metric": metric, "interval": kind, "n_resamples": 4000 if kind == "corrected" else 300}
    options["random_state"] = 0
    weighted = calibration_error_interval(labels, scores, sample_weight=weights, **options)
    repeated = calibration_error_interval(np.repeat(labels, weights), np.repeat(scores, weights), **options)
    assert weighted.estimate == pytest.approx(repeated.estimate, rel=1e-9)
    assert weighted[1:] == pytest.approx(repeated[1:], abs=0.1 * (repeated.high - repeated.low))


@pytest.mark.parametrize(
    "options", [{}, {"multiclass": "marginal"}, {"multiclass": "marginal", "class_weight": [1, 0, 0]}]
)
@pytest.mark.parametrize("stratify", [False, True])
def test_many_classes(options, stratify):
    rng = np.random.default_rng(2)
    proba = rng.dirichlet(np.ones(3), 300)
    labels = np.array(["a", "b", "c"])[[rng.choice(3, p=row**2 / (row**2).sum()) for row in proba]]
    found = calibration_error_interval(
        labels, proba, binning=5, n_resamples=300, stratify=stratify, interval="corrected", random_state=0, **options
    )
    assert found.estimate == calibration_error(labels, proba, binning=5, **options)
    assert found.low < found.estimate < found.high
    if "class_weight" in options:  # one class of weight 1 is the binary problem, drawn row by row instead of by cells
        alone = calibration_error_interval(
            labels == "a", proba[:, 0], binning=5, n_resamples=300, interval="corrected", random_state=0
        )
        assert found.estimate == pytest.approx(alone.estimate)
        if not stratify:
            assert found[1:] == pytest.approx(alone[1:], abs=0.2 * (alone.high - alone.low))


def test_one_row_and_rows_that_are_all_alike():
    options = {"interval": "basic", "labels": [0, 1], "n_resamples": 10}
    one = calibration_error_interval([1], [0.25], metric=expected_calibration_error, **options)
    assert one == pytest.approx((0.75, 0.75, 0.75))
    options["interval"] = "corrected"
    same = calibration_error_interval([1] * 5, [0.25] * 5, binning=1, **options)
    assert same == pytest.approx((0.75, 0.75, 0.75))
    with refused(ValueError, "fewer than two rows"):
        calibration_error_interval([1], [0.25], **options)


def test_bad_input():
    labels, scores = sample(40)
    call = partial(calibration_error_interval, labels, scores, interval="corrected", binning=3)
    with refused(ValueError, "stratify", "clusters"):
        call(stratify=True, clusters=np.arange(40))
    with refused(ValueError, "clusters", "39", "40"):
        call(clusters=np.arange(39))
