"""Intervals by test inversion: against plain loops, exact binomial limits, and the
resampling test.
"""

import math
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from _catalog import refused
from scipy.special import expit
from scipy.stats import binom
from sklearn.metrics import brier_score_loss

from skcalib._cells.cells import Cells
from skcalib._cells.tasks import BinaryTask
from skcalib._inference import count_draws
from skcalib._inference.count_draws import CountDraws
from skcalib._inference.count_laws import count_masses
from skcalib._inference.results import IntervalEstimate
from skcalib._inference.uniform_blocks import ListedNumbers, UniformBlock
from skcalib._intervals import binomial_interval
from skcalib.binning import EqualMass, EqualWidth, FixedEdges, UniqueScores
from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    calibration_test,
    expected_calibration_error,
    groupwise_calibration_error,
    kde_calibration_error,
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
    maximum_calibration_error,
    neighborhood_calibration_error,
    smooth_calibration_error,
    sweep_calibration_error,
)
from skcalib.metrics._registry import METRICS as TABLE

METRICS = {
    "l2": calibration_error,
    "l1": partial(calibration_error, norm=1),
    "l3": partial(calibration_error, norm=3, method="plugin"),
    "unbiased": partial(calibration_error, method="unbiased"),
    "label binned": partial(calibration_error, method="label_binned"),
    "ECE": expected_calibration_error,
    "maximum": maximum_calibration_error,
    "sweep": sweep_calibration_error,
    "sweep of equal width": partial(
        sweep_calibration_error, binning=EqualWidth(), norm=2
    ),
    "KDE": kde_calibration_error,
    "KS": kolmogorov_smirnov_calibration_error,
    "Kuiper": kuiper_calibration_error,
    "neighborhood": neighborhood_calibration_error,
    "smooth": smooth_calibration_error,
    "by class": groupwise_calibration_error,
    "by group": partial(
        groupwise_calibration_error, groups=np.arange(400) % 3, reduce="weighted"
    ),
}
every_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


def sample(n=400, power=1.6, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    return rng.random(n) < scores**power, scores


@pytest.mark.slow
@every_metric
def test_every_metric(metric):
    labels, scores = sample()
    options = {"metric": metric, "n_resamples": 99, "random_state": 0}
    found = calibration_error_interval(labels, scores, **options)
    assert found.estimate == metric(labels, scores)
    assert 0 <= found.low < found.high < 0.5
    assert found == calibration_error_interval(
        labels, scores, interval="inverted", **options
    )
    assert all(isinstance(value, float) for value in found)
    calibrated = calibration_error_interval(*sample(power=1.0, seed=1), **options)
    assert calibrated.low == 0 < calibrated.high


@pytest.mark.slow
@every_metric
def test_clusters_widen(metric):
    # Clusters of ten identical rows: as if there were a tenth of the rows, about
    # sqrt(10) times as wide.
    labels, scores = (np.repeat(part, 10) for part in sample(60, power=3))
    metric = (
        metric
        if "groups" not in getattr(metric, "keywords", {})
        else groupwise_calibration_error
    )
    options = {"metric": metric, "n_resamples": 99, "random_state": 0}
    rows = calibration_error_interval(labels, scores, **options)
    clusters = calibration_error_interval(
        labels, scores, clusters=np.repeat(np.arange(60), 10), **options
    )
    assert clusters.estimate == rows.estimate
    assert clusters.high - clusters.low > 1.5 * (rows.high - rows.low)


@pytest.mark.parametrize(
    ("positives", "n", "score"),
    [(3, 40, 0.3), (0, 500, 0.002), (20, 20, 0.9), (70, 90, 0.5)],
)
@pytest.mark.parametrize("metric", [calibration_error, maximum_calibration_error])
def test_one_score_is_clopper_and_pearson(positives, n, score, metric):
    labels = np.arange(n) < positives
    found = calibration_error_interval(
        labels,
        np.full(n, score),
        metric=metric,
        binning=1,
        labels=[0, 1],
        n_resamples=20_000,
        random_state=0,
    )
    low, high = (
        float(limit[0])
        for limit in binomial_interval([positives], [n], confidence_level=0.9)
    )
    inside = low <= score <= high
    expected_low = 0 if inside else min(abs(low - score), abs(high - score))
    expected_high = max(abs(low - score), abs(high - score))
    assert found.low == pytest.approx(expected_low, abs=0.06 * (high - low))
    assert found.high == pytest.approx(expected_high, abs=0.06 * (high - low))


def test_an_estimate_above_its_interval_says_why():
    scores = np.linspace(0.05, 0.95, 60)
    # as calibrated as can be: fifty bins of a row or two show noise alone
    y = np.arange(60) * 3 % 10 < 10 * scores
    result = calibration_error_interval(
        y, scores, metric=expected_calibration_error, binning=50, random_state=0
    )
    assert result.estimate > result.high
    assert result.reason == "the estimate includes label noise"
    assert "; the estimate includes label noise). " in repr(result)
    inside = IntervalEstimate(0.1, 0.05, 0.2)
    assert not inside.reason
    assert repr(inside) == "0.10 (0.05 to 0.20)."


def test_no_event_is_not_a_point():
    # A calibrated model with scores .002 and no event among 500: P(no event) = (1 -
    # f)^500 = .05 at f = .006.
    found = calibration_error_interval(
        np.zeros(500),
        np.full(500, 0.002),
        labels=[0, 1],
        n_resamples=20_000,
        random_state=0,
    )
    assert found.low == 0
    assert found.high == pytest.approx(1 - 0.05 ** (1 / 500) - 0.002, rel=0.05)


def plain_interval(labels, scores, edges, n_draws, rng):
    """Invert the test in plain loops: rows drawn one by one, a fine grid of c, the
    observed direction only.
    """
    bins = np.searchsorted(edges[1:-1], scores, side="left")
    n_bins = len(edges) - 1
    count = np.bincount(bins, minlength=n_bins)
    mean_score = np.bincount(bins, scores, n_bins) / count

    def power(frequency):
        square = (mean_score - frequency) ** 2 - frequency * (1 - frequency) / (
            count - 1
        )
        return count @ square / len(scores)

    def frequencies(events):
        return np.bincount(bins, events, n_bins) / count

    deviation = frequencies(labels) - mean_score
    uniform = rng.random((n_draws, len(scores)))
    observed = power(frequencies(labels))
    values = {}
    for c in np.linspace(0, 2, 81):
        probability = np.clip(scores + c * deviation[bins], 0, 1)
        drawn = np.array([power(frequencies(row < probability)) for row in uniform])
        truth = math.sqrt(
            count @ (frequencies(probability) - mean_score) ** 2 / len(scores)
        )
        values[c] = truth, drawn
    floor = max(observed, np.median(values[0][1]))
    low = [
        truth for truth, drawn in values.values() if np.mean(drawn >= observed) >= 0.05
    ]
    high = [
        truth for truth, drawn in values.values() if np.mean(drawn <= floor) >= 0.05
    ]
    return (0 if np.mean(values[0][1] >= observed) >= 0.05 else low[0]), high[-1]


@pytest.mark.slow
@pytest.mark.parametrize("power", [1.3, 1.8])
def test_search_equals_a_plain_grid(power):
    labels, scores = sample(300, power)
    edges = EqualMass(6).bin_edges(scores)
    expected = plain_interval(labels, scores, edges, 500, np.random.default_rng(1))
    found = calibration_error_interval(
        labels,
        scores,
        binning=FixedEdges(edges),
        method="debiased",
        n_resamples=4000,
        random_state=0,
    )
    assert found[1:] == pytest.approx(expected, abs=0.15 * (expected[1] - expected[0]))


def test_limits_of_the_square_are_squares():
    labels, scores = sample()
    plain = calibration_error_interval(labels, scores, binning=10, random_state=0)
    squared = calibration_error_interval(
        labels, scores, binning=10, squared=True, random_state=0
    )
    assert squared[1:] == pytest.approx([limit**2 for limit in plain[1:]])


def test_the_default_error_of_a_sure_model_lies_inside_its_interval():
    # Scores that vary within a bin: the papers' square takes away more noise than there
    # is, and its root is often 0.
    outside = {"auto": 0, "debiased": 0}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        log_odds = rng.standard_normal(4000) * 2 + np.where(
            rng.random(4000) < 0.1, 6, -8
        )
        scores, labels = expit(log_odds), rng.random(4000) < expit(0.8 * log_odds)
        for method in outside:
            found = calibration_error_interval(
                labels, scores, method=method, n_resamples=99, random_state=0
            )
            outside[method] += not found.low <= found.estimate <= found.high
    assert outside["auto"] == 0 < outside["debiased"]


def test_levels_are_nested():
    labels, scores = sample()
    limits = [
        calibration_error_interval(
            labels, scores, binning=10, confidence_level=level, random_state=0
        )[1:]
        for level in (0.5, 0.9, 0.99)
    ]
    lows, highs = zip(*limits, strict=True)
    assert lows[0] > lows[1] > lows[2]
    assert highs[0] < highs[1] < highs[2]


@pytest.mark.parametrize(
    "metric", [calibration_error, expected_calibration_error, smooth_calibration_error]
)
def test_weights_are_repetitions(metric):
    labels, scores = sample(300)
    weights = np.random.default_rng(1).integers(0, 4, 300)
    options = {
        "metric": metric,
        "n_resamples": 2000 if metric is calibration_error else 400,
        "random_state": 0,
    }
    weighted = calibration_error_interval(
        labels, scores, sample_weight=weights, **options
    )
    repeated = calibration_error_interval(
        np.repeat(labels, weights), np.repeat(scores, weights), **options
    )
    assert weighted == pytest.approx(repeated, abs=0.1 * (repeated.high - repeated.low))


@pytest.mark.parametrize(
    "options", [{}, {"multiclass": "marginal"}, {"multiclass": "marginal", "norm": 1}]
)
@pytest.mark.parametrize("metric", [calibration_error, sweep_calibration_error])
def test_many_classes(metric, options):
    rng = np.random.default_rng(2)
    proba = rng.dirichlet(np.ones(3), 300)
    labels = np.array(["a", "b", "c"])[
        [rng.choice(3, p=row**2 / (row**2).sum()) for row in proba]
    ]
    options = {"metric": metric, "n_resamples": 60, "random_state": 0, **options}
    found = calibration_error_interval(labels, proba, **options)
    assert 0 < found.low < found.estimate < found.high
    clusters = calibration_error_interval(
        labels, proba, clusters=np.arange(300) // 3, **options
    )
    assert 0 < clusters.low < clusters.high


def test_marginal_error_of_two_classes_is_that_of_one():
    # Both columns have the same deviations in mirrored bins: one sample and not two,
    # also where they are drawn.
    labels, scores = sample(300)
    both = np.column_stack((1 - scores, scores))
    edges = FixedEdges(np.linspace(0, 1, 7))
    options = {"binning": edges, "n_resamples": 4000, "random_state": 0}
    one = calibration_error_interval(labels, scores, **options)
    marginal = calibration_error_interval(
        labels, both, multiclass="marginal", **options
    )
    assert marginal == pytest.approx(one, abs=0.05 * (one.high - one.low))


def test_classes_that_do_not_sum_to_one_are_drawn_by_themselves():
    rng = np.random.default_rng(3)
    proba = rng.random((300, 3))
    found = calibration_error_interval(
        rng.integers(0, 3, 300), proba, multiclass="marginal", random_state=0
    )
    assert 0 < found.low < found.high


@pytest.mark.slow
@pytest.mark.parametrize("name", ["l2", "ECE", "sweep", "KS", "smooth"])
def test_zero_is_excluded_where_the_test_rejects(name):
    agree = 0
    for seed in range(15):
        labels, scores = sample(100, power=1.3, seed=seed)
        options = {"metric": METRICS[name], "n_resamples": 99, "random_state": seed}
        low = calibration_error_interval(labels, scores, **options).low
        agree += (low > 0) == (
            calibration_test(labels, scores, **options).pvalue < 0.05
        )
    assert agree == 15


def test_few_draws_are_honest():
    # With fewer than twenty draws no value is among the most extreme 5 %: every error
    # remains possible.
    labels, scores = sample()
    for n_resamples in (1, 10, 18):
        found = calibration_error_interval(
            labels, scores, binning=5, n_resamples=n_resamples, random_state=0
        )
        assert found.low == 0
        assert found.high > 0.3


@pytest.mark.parametrize(
    ("labels", "scores"),
    [
        ([1], [0.25]),
        ([0], [0.0]),
        ([1], [0.0]),
        ([0, 1] * 5, [0.0, 1.0] * 5),
        ([1] * 5, [0.25] * 5),
        ([0] * 4, [0.5] * 4),
    ],
)
@pytest.mark.parametrize(
    "metric",
    [
        value
        for name, value in METRICS.items()
        if name not in ("by group", "l2", "l1", "unbiased")
    ],
)
def test_few_rows_and_extreme_scores(metric, labels, scores):
    found = calibration_error_interval(
        labels, scores, metric=metric, labels=[0, 1], n_resamples=50, random_state=0
    )
    assert np.isfinite(found).all()
    assert 0 <= found.low <= found.high <= 1


@pytest.mark.filterwarnings("ignore:clusters=")
def test_events_alone_in_clusters_leave_an_interval_a_width():
    """Rows of score 0 among the others of a bin can be events where the bin is off."""
    scores = np.tile([0.0, 0.1, 0.5, 0.9], 7)
    found = calibration_error_interval(
        np.ones(28, dtype=int),
        scores,
        norm=1,
        method="plugin",
        binning=EqualMass(2),
        clusters=np.arange(28) // 4,
        labels=[0, 1],
        n_resamples=99,
        random_state=0,
    )
    assert found.estimate == pytest.approx(1 - scores.mean())
    assert found.low < found.estimate - 0.02


def test_segments_are_not_clusters():
    labels, scores = sample(300)
    subject = np.arange(300) % 5
    worst = calibration_error_interval(
        labels,
        scores,
        metric=groupwise_calibration_error,
        groups=subject,
        binning=2,
        random_state=0,
    )
    errors = groupwise_calibration_error(
        labels, scores, groups=subject, binning=2, reduce=None
    )
    assert worst.estimate == max(errors.values())
    with refused(ValueError, "groups=", "calibration_error", "clusters="):
        calibration_error_interval(labels, scores, groups=subject)
    with refused(ValueError, "groups=", "brier_score_loss", "clusters="):
        calibration_error_interval(
            labels, scores, metric=brier_score_loss, groups=subject
        )


def test_ten_thousand_rows_are_quick():
    # 60 ms on a free machine; the cost does not grow with the rows beyond that of the
    # error.
    labels, scores = sample(10_000)
    calibration_error_interval(labels, scores, random_state=0)
    start = time.process_time()
    calibration_error_interval(labels, scores, random_state=0)
    assert time.process_time() - start < 0.2


def test_bad_input():
    labels, scores = sample(40)
    call = partial(calibration_error_interval, labels, scores, binning=3)
    for level in (0, 1, 90, -0.5, math.nan):
        with refused(ValueError, "confidence_level", repr(level)):
            call(confidence_level=level)
    for n_resamples in (0, 1.5, True, "many"):
        with refused(ValueError, "n_resamples", repr(n_resamples)):
            call(n_resamples=n_resamples)
    with refused(ValueError, "interval", "'bca'"):
        call(interval="bca")
    with refused(ValueError, "stratify", "basic"):
        call(stratify=True)
    with refused(ValueError, "inverted", "basic"):
        calibration_error_interval(
            labels, scores, metric=brier_score_loss, interval="inverted"
        )
    with refused(ValueError, "clusters", "39", "40"):
        call(clusters=np.arange(39))
    with refused(TypeError, "metric must return a number", "dict"):
        calibration_error_interval(
            labels, scores, metric=partial(groupwise_calibration_error, reduce=None)
        )
    with refused(TypeError, "metric", "'ece'"):
        calibration_error_interval(labels, scores, metric="ece")
    with refused(ValueError, "fewer than two rows"):
        calibration_error_interval([1], [0.25], labels=[0, 1])


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("sweep_calibration_error", {}),
        ("sweep_calibration_error", {"binning": EqualWidth()}),
        ("kolmogorov_smirnov_calibration_error", {}),
        ("kuiper_calibration_error", {}),
        ("neighborhood_calibration_error", {}),
        ("kde_calibration_error", {}),
        ("smooth_calibration_error", {}),
    ],
)
def test_many_draws_at_once_equal_the_metric(name, params, tied):
    # Among the draws are labels that rise from score to score, and nearly separable
    # ones: many bins for the sweep.
    rng = np.random.default_rng(5)
    scores = np.sort(rng.integers(1, 60, 150) / 60 if tied else rng.random(150))
    draws = [rng.random(150) < scores**0.7 for _ in range(5)]
    draws += [scores > 0.4, (scores > 0.4) ^ (np.arange(150) % 149 == 70)]
    _, inverse, weight = np.unique(scores, return_inverse=True, return_counts=True)
    frequency = np.array([np.bincount(inverse, labels) / weight for labels in draws])
    row = TABLE[name]
    expected = [row.function(labels, scores, **params) for labels in draws]
    is_smooth = name in ("kde_calibration_error", "smooth_calibration_error")
    power = row.error(**params).of_task(BinaryTask(scores, draws[0], None), most=150)
    assert power.power(frequency) == pytest.approx(
        expected, abs=2e-3 if is_smooth else 1e-12
    )


def calibrated_cells(weight, score, ratio=0.0):
    squares = weight * (score**2 + ratio * score * (1 - score))
    return Cells(None, None, weight, weight * score, weight * score, squares)


def test_counts_have_the_moments_of_rows():
    # Rows drawn from their own scores: mean sum s, variance sum s (1 - s), also where
    # scores vary within a bin.
    score, ratio, n = (
        np.array([0.5, 0.02, 0.97, 0.4]),
        np.array([0.3, 0.1, 0.0, 0.5]),
        np.array([200.0, 40, 300, 7]),
    )
    draws = CountDraws(
        calibrated_cells(n, score, ratio), 20_000, np.random.RandomState(0)
    )
    counts = np.concatenate(list(draws(score))) * n
    assert counts == pytest.approx(np.rint(counts))
    variance = n * score * (1 - score) * (1 - ratio)
    assert counts.mean(axis=0) == pytest.approx(
        n * score, abs=4 * math.sqrt(variance.max() / 20_000)
    )
    assert counts.var(axis=0) == pytest.approx(variance, rel=0.08)
    few = np.concatenate(
        list(
            CountDraws(calibrated_cells(n, score), 20_000, np.random.RandomState(0))(
                score
            )
        )
    )
    share = np.bincount(np.rint(few[:, 1] * 40).astype(int), minlength=6)[:6] / 20_000
    assert share == pytest.approx(binom.pmf(np.arange(6), 40, 0.02), abs=0.012)


@pytest.mark.parametrize("is_rare", [False, True])
@pytest.mark.parametrize("most_stored", [0, 1 << 23])
def test_sums_of_listed_events_are_those_of_the_draws(
    monkeypatch, most_stored, is_rare
):
    monkeypatch.setattr(count_draws, "MOST_STORED", most_stored)
    rng = np.random.default_rng(0)
    n = rng.integers(2, 300, 64).astype(float)
    score = rng.beta(0.3, 3, len(n))
    if is_rare:  # hardly any cell has an event
        score /= 1000
    else:
        n[:3] = 1, 1, 5000
        score[:4] = 0.001, 1, 0.6, 0.3
    cells = calibrated_cells(n, score)
    labels = cells.weighted_label * (rng.random(len(n)) < 0.3)
    draws = CountDraws(
        replace(cells, weighted_label=labels), 300, np.random.RandomState(0)
    )
    weight = rng.normal(size=len(n))

    def square(frequency, cells):
        return weight[cells] * (frequency - score[cells]) ** 2

    def linear(frequency, cells):
        return weight[cells] * frequency

    hypotheses = [score, rng.permutation(score), score * 0, 1.5 * score, 20 * score]
    for c, frequency in enumerate(hypotheses):
        frequency = np.minimum(frequency, 1)
        drawn = np.concatenate(list(draws(frequency, c)))
        np.testing.assert_allclose(
            draws.sums([square, linear], frequency, c),
            [weight @ (drawn - score).T ** 2, weight @ drawn.T],
            atol=1e-12,
        )
    assert (draws._listed is not None) == (is_rare and most_stored == 0)


@pytest.mark.parametrize("n_cells", [1, 3, 40])
@pytest.mark.parametrize("most_events", [0, 1, 6])
def test_listed_numbers_of_several_blocks_are_compared_with_each_value(
    most_events, n_cells
):
    rng = np.random.default_rng(most_events)
    blocks = [UniformBlock(rng.random((size, n_cells))) for size in (64, 64, 5)]
    uniform = np.concatenate([block.uniform for block in blocks])
    floor = rng.random(n_cells)
    floor[-1] = 0  # all numbers of this cell
    floor[1:2] = 1  # none
    listed = ListedNumbers(iter(blocks), floor, 133)
    tables = rng.normal(size=(2, most_events + 1, n_cells))
    tables[:, 0] = 0
    for _ in range(3):
        cumulative = floor + (1 - floor) * rng.random((most_events, n_cells))
        cumulative.sort(axis=0)
        counts = np.zeros(uniform.shape, dtype=int)
        for values in cumulative:
            counts += uniform > values
        expected = [table[counts, np.arange(n_cells)].sum(axis=1) for table in tables]
        found = listed.sums(cumulative, list(tables))
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_no_number_is_listed_above_a_floor_of_one():
    listed = ListedNumbers([UniformBlock(np.full((7, 3), 0.5))], np.ones(3), 7)
    (sums,) = listed.sums(np.ones((2, 3)), [np.ones((3, 3))])
    np.testing.assert_array_equal(sums, np.zeros(7))


def two_modes(seed, n=500):
    """Scores of .02 and .98, of which the high ones are events in 90 %."""
    rng = np.random.default_rng(seed)
    high = rng.random(n) < 0.5
    scores, truth = np.where(high, 0.98, 0.02), np.where(high, 0.9, 0.02)
    return rng.random(n) < truth, scores, truth


def test_counts_vary_as_the_residuals_do_at_the_observed_frequency():
    labels, scores, _ = two_modes(0)
    bins = BinaryTask(scores, labels, None).statistics(FixedEdges([0, 1]))
    residual = labels - scores
    assert bins.residual_factor[0] == pytest.approx(
        np.var(residual)
        / (labels.var() * (1 - scores.var() / (scores.mean() * (1 - scores.mean()))))
    )
    draws = CountDraws(bins, 20_000, np.random.RandomState(0))
    at_scores, observed = (
        np.concatenate(list(draws(frequency, c)))
        for frequency, c in ((bins.mean_score, 0), (bins.event_frequency, 1))
    )
    assert 500 * at_scores.var() == pytest.approx(
        np.mean(scores * (1 - scores)), rel=0.05
    )
    # twice as large
    assert 500 * observed.var() == pytest.approx(np.var(residual), rel=0.05)


@pytest.mark.parametrize("f", [0.0, 1e-300, 1.6e-16, 1e-9, 0.1, 0.4, 0.5, 0.7, 1.0])
def test_masses_of_counts_are_binomial(f):
    """Also where none of 2,000 has an event with a probability below all floats."""
    n = np.array([1.0, 2, 30, 500, 2000])
    found = count_masses(n, np.full(5, f), np.zeros(5), 2001)
    expected = binom.pmf(np.arange(2001)[:, None], n, f)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)
    # A count with half of the variance has the same mean, up to its last mass.
    half = count_masses(n[2:], np.full(3, f), np.full(3, 0.5), 2001)
    np.testing.assert_allclose(half.sum(axis=0), 1)
    if 0.1 <= f <= 0.7:
        np.testing.assert_allclose(np.arange(2001) @ half, n[2:] * f, rtol=0.02)


@pytest.mark.slow
def test_one_bin_over_two_modes_is_covered():
    covered = []
    for seed in range(150):
        labels, scores, truth = two_modes(seed)
        found = calibration_error_interval(
            labels, scores, binning=1, n_resamples=99, random_state=seed
        )
        covered.append(found.low <= abs(np.mean(scores - truth)) <= found.high)
    assert np.mean(covered) >= 0.83  # .69 to .76 before


def test_few_draws_are_the_first_of_many():
    # Many draws of a cell are put in order, few are not.
    rng = np.random.default_rng(7)
    n, score = (
        np.full(30, 400.0),
        np.concatenate((rng.random(10) / 50, 1 - rng.random(10) / 50, rng.random(10))),
    )
    n[:3], score[[5, 15]] = (1, 2, 3), (0, 1)
    cells = calibrated_cells(n, score, rng.random(30) / 2)
    few, many = (
        next(CountDraws(cells, size, np.random.RandomState(0))(score))
        for size in (100, 1000)
    )
    np.testing.assert_array_equal(few, many[:100])


def test_unique_scores_with_many_rows_keep_their_memory():
    labels, scores = sample(5000)
    found = calibration_error_interval(
        labels,
        scores,
        binning=UniqueScores(),
        norm=1,
        method="plugin",
        n_resamples=50,
        random_state=0,
    )
    assert np.isfinite(found).all()
