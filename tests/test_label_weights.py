"""Weights that depend on the label: against plain twins, and for every function that
takes `weight_type`.
"""

import inspect
import warnings

import numpy as np
import pytest
from _catalog import refused
from scipy.stats import chi2, norm

import skcalib
from skcalib import PlattScaling, decisions, evaluation, metrics, monitoring
from skcalib._cells.binned import counted_rows
from skcalib._cells.reductions import one_task
from skcalib._fitting.gains import Design, expected_variance
from skcalib._inference.bias import rows_bias_test
from skcalib._inference.closed_form import maximum_pvalue, range_pvalue
from skcalib._inference.label_dependence import RowsInCells
from skcalib._inference.weighted_draws import MultiplierDraws, SampledLabelDraws
from skcalib._input.label_weights import (
    few_effective_events,
    label_weights,
    looks_like_counts,
    weight_of_event,
)
from skcalib._input.scored_labels import check_scored_labels
from skcalib.binning import EqualMass, FixedEdges
from skcalib.decisions import net_benefit
from skcalib.evaluation import describe_weights
from skcalib.metrics import (
    calibration_by_group,
    calibration_error,
    calibration_error_interval,
    calibration_slope_intercept,
    calibration_test,
    kernel_calibration_error,
    segment_calibration_test,
)

# Modules in which the public functions that take weights are looked for.
_MODULES = (skcalib, metrics, evaluation, decisions, monitoring)


def clicks(seed, n=8000, keep=20, centre=-3.0, factor=1.0):
    """All events of a log and one of `keep` other samples, with weights 1 and `keep`;
    events have `factor` times the probability that the scores say.
    """
    rng = np.random.default_rng(seed)
    scores = 1 / (1 + np.exp(-rng.normal(centre, 1.0, n)))
    y = rng.random(n) < factor * scores
    kept = y | (rng.random(n) < 1 / keep)
    weight = np.where(y, 1.0, keep)
    return y[kept].astype(int), scores[kept], weight[kept]


def hidden(seed, **options):
    """The same with weights that also differ at random: no function of the label."""
    y, scores, weight = clicks(seed, **options)
    return y, scores, weight * np.random.default_rng(seed).uniform(0.8, 1.25, len(y))


def importance(weight, weight_type="importance"):
    return {"sample_weight": weight, "weight_type": weight_type}


def test_the_form_is_decided_by_structure():
    y, scores, weight = clicks(0)
    labels = y == 1
    assert label_weights(labels, weight, "frequency") is None
    known = label_weights(labels, weight)
    assert known.form == "label"
    np.testing.assert_array_equal(known.other, np.where(labels, 20, 1))
    assert label_weights(labels, np.full(len(y), 3.0)).form == "constant"
    unknown = label_weights(labels, hidden(0)[2])
    assert unknown.form == "observed"
    assert unknown.other is None
    # Weights by score, but known for both labels.
    with_event, without_event = np.sqrt(scores), 1 + scores
    both = {0: without_event, 1: with_event}
    declared = label_weights(labels, np.where(labels, with_event, without_event), both)
    assert declared.form == "declared"
    product = with_event * without_event * scores * (1 - scores)
    np.testing.assert_allclose(declared.null_variance(scores), product)
    # Rows keep what was decided on all of them, also rows of one label.
    assert known[labels].form == "label"
    assert known[labels].other.tolist() == [20.0] * labels.sum()


def test_the_sample_has_events_with_the_probability_that_the_weights_say():
    """Of s n events w1 = 1 are kept, of (1 - s) n others one of 20: by counting."""
    scores = np.array([0.01, 0.2, 0.9])
    labels = np.array([True, False, True])
    known = label_weights(labels, np.where(labels, 1.0, 20.0))
    probability, with_event, without_event = known.event_probability(scores, labels)
    np.testing.assert_allclose(probability, scores / (scores + (1 - scores) / 20))
    assert with_event.tolist() == [1, 1, 1]
    assert without_event.tolist() == [20, 20, 20]
    # The mean of w (y - s) is 0, and its variance w1 w0 s (1 - s).
    mean = probability * (1 - scores) - (1 - probability) * 20 * scores
    np.testing.assert_allclose(mean, 0, atol=1e-12)
    square = probability * (1 - scores) ** 2 + (1 - probability) * (20 * scores) ** 2
    np.testing.assert_allclose(square, known.null_variance(scores))


def test_one_class_does_not_say_what_the_other_label_weighs():
    """Forty clicks of a log that keeps one of 80 other rows: none of these was kept."""
    y, scores = np.ones(40, dtype=int), np.full(40, 0.4)
    alone = label_weights(y == 1, np.ones(40))
    assert alone.form == "observed"
    options = {"labels": [0, 1], "n_resamples": 9, **importance(np.ones(40))}
    table = calibration_by_group(y, scores, np.zeros(40), **options)
    assert np.isnan(table.bias_low[0])
    assert "number of non-events is 0" in table.reason[0]
    declared = options | {"weight_type": {0: 80.0, 1: 1.0}}
    table = calibration_by_group(y, scores, np.zeros(40), **declared)
    assert table.bias_low[0] < 0 <= table.bias_high[0]


def test_a_weight_that_few_samples_show_is_unknown():
    """One non-click in 40, of a log in which .75 are expected: half of such logs have
    none, and what holds for the other half is no answer for all.
    """
    labels = np.arange(40) > 0
    weight = np.where(labels, 1.0, 80.0)
    scores = np.full(40, 0.4)
    # 40 (1 - s) w1 / (s w0 + (1 - s) w1)
    assert 40 * 0.6 / (0.4 * 80 + 0.6) == pytest.approx(0.736, abs=1e-3)
    assert label_weights(labels, weight).form == "label"
    assert label_weights(labels, weight, scores=scores).form == "observed"
    likely = np.full(40, 0.1)  # 4.0 are expected
    assert label_weights(labels, weight, scores=likely).form == "label"
    # Ten that were seen show it, whatever the scores say.
    labels = np.arange(40) > 9
    weight = np.where(labels, 1.0, 80.0)
    assert label_weights(labels, weight, scores=scores).form == "label"
    assert label_weights(labels, weight, {0: 80, 1: 1}, scores=scores).is_known
    y = (np.arange(40) > 2).astype(int)
    options = {"labels": [0, 1], "n_resamples": 9}
    options |= importance(np.where(y == 1, 1.0, 80.0))
    table = calibration_by_group(y, scores, np.zeros(40), **options)
    assert np.isnan(table.bias_low[0])
    assert "pass them as weight_type={label: weight}" in table.reason[0]
    declared = options | {"weight_type": {0: 80.0, 1: 1.0}}
    table = calibration_by_group(y, scores, np.zeros(40), **declared)
    assert np.isfinite(table.bias_low[0])


def test_what_a_dict_must_hold():
    y, scores, weight = clicks(1)
    for wrong, words in (
        ({0: 20, 1: 2}, "row 4 has 1, not 2"),
        ({0: 20}, "both|each of the two labels"),
        ({0: 20, 2: 1}, "keys"),
        ({0: np.ones(3), 1: 1}, "shape"),
        ({0: 20, 1: np.nan}, "finite"),
    ):
        with pytest.raises(ValueError, match=words):
            calibration_test(y, scores, method="kuiper", **importance(weight, wrong))
    three = np.arange(len(y)) % 3
    with refused(ValueError, "two classes"):
        calibration_test(
            three,
            np.full((len(y), 3), 1 / 3),
            n_resamples=5,
            **importance(weight, {0: 20, 1: 1}),
        )
    with refused(ValueError, "weight_type"):
        calibration_test(y, scores, **importance(weight, "sampled"))


def test_closed_forms_by_hand():
    y, scores, weight = clicks(2)
    options = importance(weight)
    residual = weight * (y - scores)
    square = 20 * scores * (1 - scores)  # w1 w0 s (1 - s)
    sums = np.append(np.cumsum(residual[np.argsort(scores)]), 0)
    deviation = np.sqrt(square.sum())
    kuiper = calibration_test(y, scores, method="kuiper", **options)
    assert kuiper.pvalue == pytest.approx(range_pvalue(np.ptp(sums) / deviation))
    largest = calibration_test(y, scores, method="kolmogorov_smirnov", **options)
    expected = maximum_pvalue(np.abs(sums).max() / deviation)
    assert largest.pvalue == pytest.approx(expected)
    z = residual @ (1 - 2 * scores) / np.sqrt(square @ (1 - 2 * scores) ** 2)
    spiegelhalter = calibration_test(y, scores, method="spiegelhalter", **options)
    assert spiegelhalter == pytest.approx((z, 2 * norm.sf(abs(z))))
    edges = FixedEdges([0, 0.03, 0.1, 1])
    test = calibration_test(
        y, scores, method="hosmer_lemeshow", binning=edges, **options
    )
    statistic = 0.0
    for rows in (scores <= 0.03, (scores > 0.03) & (scores <= 0.1), scores > 0.1):
        mean = np.average(scores[rows], weights=weight[rows])
        mean_variance = np.average(
            scores[rows] * (1 - scores[rows]), weights=weight[rows]
        )
        # The test takes the variance of equal scores.
        spread = mean * (1 - mean) / mean_variance
        statistic += residual[rows].sum() ** 2 / (spread * square[rows].sum())
    assert test == pytest.approx((statistic, chi2.sf(statistic, 3)))


def test_unknown_weights_take_observed_squares():
    y, scores, weight = hidden(3)
    options = importance(weight)
    bias = weight @ (y - scores) / weight.sum()
    square = (weight * (y - scores - bias)) ** 2
    z = weight * (y - scores) @ (1 - 2 * scores)
    z /= np.sqrt(square @ (1 - 2 * scores) ** 2)
    found = calibration_test(y, scores, method="spiegelhalter", **options)
    assert found.statistic == pytest.approx(z)
    table = calibration_by_group(
        y, scores, np.zeros(len(y)), n_resamples=5, random_state=0, **options
    )
    # Student's quantile is larger than the normal one by little.
    half = 1.645 * np.sqrt(square.sum()) / weight.sum()
    limits = table.bias_low[0], table.bias_high[0]
    assert limits == pytest.approx((-bias - half, -bias + half), abs=0.1 * half)
    # The noise of a bin is the sum of uncentred squares over the squared weight.
    found = calibration_error_interval(
        y,
        scores,
        metric=calibration_error,
        binning=FixedEdges([0, 0.05, 1]),
        squared=True,
        n_resamples=19,
        random_state=0,
        **options,
    )
    expected = 0.0
    for rows in (scores <= 0.05, scores > 0.05):
        total = weight[rows].sum()
        residual = weight[rows] * (y - scores)[rows]
        gap = (residual.sum() ** 2 - residual @ residual) / total**2
        expected += total / weight.sum() * gap
    assert found.estimate == pytest.approx(expected)


def test_the_bias_has_the_variance_of_both_weights():
    """Far from few events: the normal test by hand, and a Student interval."""
    for seed in range(5):
        y, scores, weight = clicks(seed, n=40_000)
        known = label_weights(y == 1, weight)
        test, reason = rows_bias_test(scores, y, 0.9, weight, label_weights=known)
        assert reason == ""
        residual = weight @ (y - scores)
        z = residual / np.sqrt(20 * np.sum(scores * (1 - scores)))
        assert test.pvalue == pytest.approx(2 * norm.sf(abs(z)), abs=0.02)
        centred = weight * (y - scores - residual / weight.sum())
        half = 1.645 * np.sqrt(centred @ centred) / weight.sum()
        assert test.high - test.low == pytest.approx(2 * half, rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.0, 0.6])
def test_the_bias_is_covered_with_few_events(factor):
    # About three events expected in the sample; the exact law holds at all counts.
    missed, rejected = 0, 0
    for seed in range(80):
        y, scores, weight = clicks(seed, n=3000, centre=-7.5, factor=factor)
        known = label_weights(y == 1, weight, {0: 20.0, 1: 1.0})
        test, reason = rows_bias_test(scores, y, 0.9, weight, label_weights=known)
        truth = np.average(scores, weights=weight) * (1 - factor)
        missed += not (test.low <= truth <= test.high) or bool(reason)
        rejected += test.pvalue <= 0.05
    assert missed / 80 <= 0.1 + 2.5 * np.sqrt(0.09 / 80)
    if factor == 1:
        assert rejected / 80 <= 0.05 + 2.5 * np.sqrt(0.0475 / 80)


def _cells_and_rows(y, scores, weight, weight_type="importance"):
    data = check_scored_labels(y, scores, sample_weight=weight)
    data = counted_rows(data, weight_type)
    task = one_task(data, "auto")
    cells = task.bin_cells(FixedEdges([0, 0.05, 0.2, 1]))
    cell = cells.cell_of(task.scores)[:, None]
    rows = RowsInCells(
        cell, task.scores[:, None], task.labels[:, None], task.sample_weight
    )
    return task, cells, rows


def test_drawn_labels_have_the_frequencies_of_the_sample():
    y, scores, weight = clicks(4)
    task, cells, rows = _cells_and_rows(y, scores, weight)
    draw = SampledLabelDraws(
        cells, rows, task.label_weights, 4000, np.random.RandomState(0)
    )
    drawn = np.concatenate(list(draw(cells.mean_score)))
    np.testing.assert_allclose(drawn.mean(axis=0), cells.mean_score, rtol=0.02)
    for k in range(3):
        inside = rows.cell[:, 0] == k
        variance = 20 * np.sum((scores * (1 - scores))[inside])
        variance /= weight[inside].sum() ** 2
        assert drawn[:, k].var() == pytest.approx(variance, rel=0.12)
    # One draw, row by row.
    draw = SampledLabelDraws(
        cells, rows, task.label_weights, 1, np.random.RandomState(0)
    )
    (one,) = draw(cells.mean_score)
    generator = np.random.default_rng([np.random.RandomState(0).randint(2**31 - 1), 0])
    uniform = generator.random((len(y), 1), dtype=np.float32)[:, 0]
    in_sample = scores / (scores + (1 - scores) / 20)
    event = uniform < in_sample
    drawn_weight = np.where(event, 1, 20.0)
    for k in range(3):
        inside = rows.cell[:, 0] == k
        total = np.sum((drawn_weight * (event - scores))[inside])
        total *= weight.sum() / drawn_weight.sum() / weight[inside].sum()
        assert one[0, k] == pytest.approx(cells.mean_score[k] + total)


def test_residuals_are_multiplied_by_signs():
    y, scores, weight = hidden(5)
    _, cells, rows = _cells_and_rows(y, scores, weight)
    cluster = np.arange(len(y)) // 3
    draw = MultiplierDraws(cells, rows, cluster, 2, np.random.RandomState(0))
    frequency = cells.mean_score + np.array([0.01, 0, -0.05])
    (drawn,) = draw(frequency)
    generator = np.random.default_rng([np.random.RandomState(0).randint(2**31 - 1), 0])
    n_clusters = cluster.max() + 1
    signs = 2.0 * generator.integers(0, 2, (n_clusters, 2), dtype=np.int8) - 1
    shift = (frequency - cells.mean_score)[rows.cell[:, 0]]
    for k in range(3):
        inside = rows.cell[:, 0] == k
        residual = (weight * (y - scores - shift))[inside] / weight[inside].sum()
        moved = (
            residual @ signs[cluster[inside]] * np.sqrt(n_clusters / (n_clusters - 1))
        )
        np.testing.assert_allclose(drawn[:, k], frequency[k] + moved)


def test_segments_by_loops():
    y, scores, weight = clicks(6)
    side = np.where(np.arange(len(y)) % 2, "a", "b")
    found = segment_calibration_test(
        y, scores, side[:, None], n_resamples=19, random_state=0, **importance(weight)
    )
    worth = weight.sum() / (weight @ weight)  # the factor of the weights
    table = dict(zip(found.segments.segment, found.segments.statistic, strict=True))
    # Sums over cells of nearly equal scores: with one cell the statistic is the bias.
    for name, rows in (("all rows", side != ""), ("x0 = a", side == "a")):
        variance = worth**2 * 20 * np.sum((scores * (1 - scores))[rows]) + 1
        total = worth * np.sum((weight * (y - scores))[rows])
        assert table[name] >= abs(total) / np.sqrt(variance) * (1 - 1e-9)
    few = hidden(7, n=1500, centre=-5.0)
    unknown = segment_calibration_test(
        few[0], few[1], np.ones((len(few[0]), 1)), n_resamples=9, **importance(few[2])
    )
    assert np.isnan(unknown.pvalue)
    assert "effective number of at least 20 events" in str(unknown)


def test_events_of_unknown_weights_must_be_worth_twenty():
    y, scores, weight = hidden(8)
    assert few_effective_events(y == 1, weight) == ""
    first = np.flatnonzero(y)[19:]
    kept = np.ones(len(y), dtype=bool)
    kept[first] = False  # 19 events, of nearly equal weight
    y, scores, weight = y[kept], scores[kept], weight[kept]
    events = weight[y == 1]
    worth = events.sum() ** 2 / (events @ events)
    reason = few_effective_events(y == 1, weight)
    assert f"number of events is {worth:.2g}, below 20" in reason
    test = calibration_test(y, scores, n_resamples=9, **importance(weight))
    assert np.isnan(test.pvalue)
    assert reason in str(test)
    kernel = calibration_test(
        y, scores, metric=kernel_calibration_error, n_resamples=9, **importance(weight)
    )
    assert np.isnan(kernel.pvalue)
    found = calibration_error_interval(y, scores, n_resamples=9, **importance(weight))
    assert np.isnan(found.low)
    assert found.reason == reason
    table = calibration_by_group(
        y, scores, np.zeros(len(y)), n_resamples=9, **importance(weight)
    )
    assert np.isnan(table.bias_low[0])
    assert table.reason[0] == reason


def test_few_events_of_a_sampled_log():
    """With known weights the odds of the events in the sample take the place of the
    scores, so that the trend is that of samples without weights.
    """
    y, scores, weight = clicks(14, n=3000, centre=-7.0)
    time = np.random.default_rng(14).random(len(y))
    assert 1 < y.sum() < 10
    odds = 20 * scores / (1 - scores)
    for weight_type in ("importance", {0: 20, 1: 1}):
        found = monitoring.calibration_trend(
            y, scores, time, **importance(weight, weight_type)
        )
        alone = monitoring.calibration_trend(y, odds / (1 + odds), time)
        assert found.pvalue == pytest.approx(alone.pvalue, abs=1e-12)
        assert np.isfinite(found.slope.low)
    # Two models: a normal law of the sum of w D, whose variance is sum w1 w0 p (1 - p)
    # (D1 - D0)^2 at the probability p of equal losses, while 10 to 20 are expected.
    y, scores, weight = clicks(15, n=3000, centre=-5.2)
    first = 0.5 * scores
    second = np.where(np.arange(len(y)) % 2 == 0, 1.5, 1.45) * scores
    with_event = (1 - second) ** 2 - (1 - first) ** 2
    without = second**2 - first**2
    p = -without / (with_event - without)
    variance = np.sum(20 * p * (1 - p) * (with_event - without) ** 2)
    found = evaluation.compare(
        y,
        {"first": first, "second": second},
        metrics="brier_score",
        **importance(weight),
    )
    total = np.sum(weight * np.where(y == 1, with_event, without))
    expected = 2 * norm.sf(abs(total) / np.sqrt(variance))
    assert found.pvalue[1] == pytest.approx(expected)


def test_unknown_weights_need_twenty_events_everywhere():
    y, scores, weight = hidden(16, n=3000, centre=-6.0)
    assert 5 < y.sum() < 20
    unknown = importance(weight)
    known = importance(np.where(y == 1, 1.0, 20.0))
    new = np.full(50, 0.01)

    def reasons_and_limits(options):
        benefit = decisions.net_benefit(y, scores, thresholds=[0.01], **options)
        gain = evaluation.recalibration_gain(
            y, scores, recalibrator=PlattScaling(), **options
        )
        performance = monitoring.estimated_performance(
            y, scores, new, metrics=["event_frequency"], **options
        )
        return {
            "benefit": (benefit.reason[0], benefit.low[0]),
            "gain": (gain.reason, gain.low),
            "performance": (performance.reason[0], performance.low[0]),
        }

    for reason, low in reasons_and_limits(unknown).values():
        assert "below 20" in reason
        assert np.isnan(low)
    for reason, low in reasons_and_limits(known).values():
        assert reason == ""
        assert np.isfinite(low)


def test_the_net_benefit_of_a_sampled_log_is_as_exact_as_its_observed_squares():
    """Events weigh 1: there are none of weight 200 that the sample happens to lack."""
    y, scores, weight = clicks(18, keep=200, centre=-5.0)
    found = decisions.net_benefit(
        y, scores, thresholds=[0.01], **importance(weight, {0: 200, 1: 1})
    )
    gain = (scores >= 0.01) * np.where(y == 1, 1, -0.01 / 0.99)
    centred = weight * (gain - weight @ gain / weight.sum())
    width = 2 * 1.645 * np.sqrt(centred @ centred) / weight.sum()
    assert found.high[0] - found.low[0] == pytest.approx(width, rel=0.1)


def test_weights_of_each_label_count_the_rows_that_they_are_worth():
    """Maps that smooth take weights for numbers of rows: (sum w)^2 / sum w1 w0."""
    y, scores, weight = clicks(17, keep=200, centre=-5.0)
    known = label_weights(y == 1, weight)
    assert known.row_factor == pytest.approx(weight.sum() / (200 * len(y)))
    found = expected_variance(
        scores, 2 * scores, "brier", Design(weight, importance=True), known
    )
    gains = np.column_stack((scores**2, (1 - scores) ** 2))
    gains -= np.column_stack((4 * scores**2, (1 - 2 * scores) ** 2))
    step = gains[:, 1] - gains[:, 0]
    variance = 200 * scores * (1 - scores) * step**2
    assert found == pytest.approx(variance.sum() / weight.sum() ** 2)
    # Hardly more than chance: a map whose weights are scaled by Kish's number, in which
    # the 130 events count for one, loses 30 times as much.
    gain = evaluation.recalibration_gain(
        y, scores, recalibrator=PlattScaling(), **importance(weight)
    )
    assert gain.low < 0 < gain.high


def test_other_metrics_need_both_weights():
    def largest_gap(y_true, y_proba, *, sample_weight=None):
        return np.abs(np.average(y_true - y_proba, weights=sample_weight))

    y, scores, weight = clicks(9)
    options = {"metric": largest_gap, "n_resamples": 99, "random_state": 0}
    found = calibration_test(y, scores, **options, **importance(weight))
    z = weight @ (y - scores) / np.sqrt(20 * np.sum(scores * (1 - scores)))
    assert found.pvalue == pytest.approx(2 * norm.sf(abs(z)), abs=0.15)
    with refused(ValueError, "simulated labels", "weight_type={label: weight}"):
        calibration_test(y, scores, **options, **importance(hidden(9)[2]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"n_resamples": 99},
        {"metric": calibration_error, "n_resamples": 99},
        {"metric": kernel_calibration_error, "n_resamples": 99},
        {"method": "hosmer_lemeshow", "binning": EqualMass(5)},
    ],
    ids=["sweep", "unbiased", "kernel", "hosmer_lemeshow"],
)
@pytest.mark.parametrize("world", [clicks, hidden])
def test_tests_keep_their_level(world, options):
    if world is hidden and "method" in options:
        pytest.skip("a bin then needs 20 effective events")
    n_samples = 40
    rejected = 0
    for seed in range(100, 100 + n_samples):
        y, scores, weight = world(seed, n=2500)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few events in a bin
            test = calibration_test(y, scores, **options, **importance(weight))
        rejected += test.pvalue <= 0.05
    assert rejected / n_samples <= 0.05 + 2.5 * np.sqrt(0.0475 / n_samples)


def test_weights_of_each_label_are_no_counts():
    y, scores, weight = clicks(10)
    assert looks_like_counts(y == 1, np.random.default_rng(0).integers(1, 5, len(y)))
    assert not looks_like_counts(y == 1, weight)
    assert looks_like_counts(y[:9] == 1, weight[:9])  # so few rows may do so by chance
    with pytest.warns(UserWarning, match="as if one label had been sampled"):
        calibration_test(y, scores, method="kuiper", sample_weight=weight)
    found = describe_weights(y, weight)
    assert tuple(found) == ("importance", "label", 20, 1)
    assert "all others 20" in str(found)
    assert describe_weights(y, weight, weight_type="frequency").form == "counts"
    assert describe_weights(y, np.ones(len(y))).form == "counts"
    assert describe_weights(y, np.full(len(y), 0.5)).form == "constant"
    assert describe_weights(y, hidden(10)[2]).form == "observed"
    names = np.where(y == 1, "yes", "no")
    both = describe_weights(names, weight, weight_type={"yes": 1, "no": 20})
    assert both.form == "declared"


# How each public function that takes `weight_type` is called with labels, scores and
# keywords for the weights. What is missing here fails the first of the next tests.
_CALLS = {
    "calibration_test": lambda y, s, **w: metrics.calibration_test(
        y, s, n_resamples=19, **w
    ),
    "calibration_error_interval": lambda y, s, **w: metrics.calibration_error_interval(
        y, s, n_resamples=19, **w
    ),
    "calibration_by_group": lambda y, s, **w: metrics.calibration_by_group(
        y, s, np.arange(len(y)) % 2, n_resamples=19, **w
    ),
    "calibration_slope_intercept": lambda y, s, **w: (
        metrics.calibration_slope_intercept(y, s, **w)
    ),
    "segment_calibration_test": lambda y, s, **w: metrics.segment_calibration_test(
        y, s, np.arange(len(y))[:, None] % 2, n_resamples=19, **w
    ),
    "reliability_curve": metrics.reliability_curve,
    "calibration_summary": lambda y, s, **w: evaluation.calibration_summary(
        y, s, n_resamples=19, **w
    ),
    "compare": lambda y, s, **w: evaluation.compare(
        y, {"one": s, "two": s**1.1}, n_resamples=19, **w
    ),
    "cross_validate": lambda y, s, **w: evaluation.cross_validate(
        y, s, {"platt": PlattScaling()}, random_state=0, **w
    ),
    "recalibration_gain": lambda y, s, **w: evaluation.recalibration_gain(
        y, s, recalibrator=PlattScaling(), cv=3, **w
    ),
    "advise": lambda y, s, **w: evaluation.advise(y, s, random_state=0, **w),
    "describe_weights": lambda y, s, **w: evaluation.describe_weights(y, **w),
    "net_benefit": lambda y, s, **w: decisions.net_benefit(
        y, s, thresholds=[0.05, 0.2], **w
    ),
    "calibration_change": lambda y, s, **w: monitoring.calibration_change(
        y, s, y[::-1], s[::-1], n_resamples=19, **_pair(w)
    ),
    "calibration_trend": lambda y, s, **w: monitoring.calibration_trend(
        y, s, np.arange(len(y)) % 7, **w
    ),
    "estimated_performance": lambda y, s, **w: monitoring.estimated_performance(
        y, s, s, **w
    ),
}
# These take no labels, so that no weight can depend on them.
_WITHOUT_LABELS = {"mean_interval"}


def _pair(weights):
    weight = weights["sample_weight"]
    return weights | {"sample_weight": (weight, weight[::-1])}


def _functions_with_weight_type():
    found = {}
    for module in _MODULES:
        for name in module.__all__:
            function = getattr(module, name)
            if inspect.isclass(function) or not callable(function):
                continue
            if "weight_type" in inspect.signature(function).parameters:
                found[name] = function
    return found


def test_every_function_with_a_weight_type_is_called_here():
    assert (
        _functions_with_weight_type().keys() - _WITHOUT_LABELS - _CALLS.keys() == set()
    )


_NAMES = sorted(_CALLS.keys() & _functions_with_weight_type().keys())


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("weight_type", ["importance", {0: 20.0, 1: 1.0}])
def test_every_function_takes_weights_of_each_label(name, weight_type):
    y, scores, weight = clicks(11, n=4000, centre=-2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = _CALLS[name](y, scores, **importance(weight, weight_type))
    assert "nan" not in repr(found).lower()


def _finite_calls():
    """Names of functions that answer with the fewest events that they promise: ten with
    known weights (two errors in bins and two samples need 20), 20 with unknown ones.
    """
    needs_more = {
        "calibration_change",  # ten in each sample, of which the halves are compared
        "compare",  # among others two errors in bins
        "advise",  # halves of the samples
    }
    for name in _NAMES:
        if name not in needs_more:
            yield name


@pytest.mark.parametrize("name", _finite_calls())
def test_every_function_answers_above_the_fewest_events(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        y, scores, weight = clicks(104, n=2500, centre=-5.7)
        assert y.sum() == 14
        found = _CALLS[name](y, scores, **importance(weight))
        assert "nan" not in repr(found).lower()
        if name in ("calibration_by_group", "segment_calibration_test"):
            return  # each half of the rows needs its own 20 events
        y, scores, weight = hidden(103, n=2500, centre=-5.2)
        assert y.sum() == 22
        found = _CALLS[name](y, scores, **importance(weight))
        assert "nan" not in repr(found).lower()


_WITH_CLUSTERS = [
    name
    for name, function in _functions_with_weight_type().items()
    if name in _CALLS and "clusters" in inspect.signature(function).parameters
]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(_WITH_CLUSTERS))
def test_every_function_answers_for_six_clusters(name):
    rng = np.random.default_rng(3)
    scores = rng.random(360)
    y = (rng.random(360) < scores).astype(int)
    code = np.arange(360) // 60
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if name == "calibration_change":
            found = monitoring.calibration_change(
                y, scores, y[::-1], scores[::-1], n_resamples=19, clusters=(code, code)
            )
        else:
            found = _CALLS[name](y, scores, clusters=code)
    assert "nan" not in repr(found).lower()


# A reliability curve is a table of sums, whatever the weights mean.
_SILENT = {"describe_weights", "reliability_curve"}


@pytest.mark.parametrize("name", [name for name in _NAMES if name not in _SILENT])
def test_every_function_warns_of_counts_that_follow_the_label(name):
    y, scores, weight = clicks(12, n=4000, centre=-2.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _CALLS[name](y, scores, sample_weight=weight, weight_type="frequency")
    texts = " ".join(str(one.message) for one in caught)
    assert "as if one label had been sampled" in texts


def test_the_weight_of_an_event_is_that_beside_a_non_event_of_its_score():
    """Weights 1 / s are those of the score alone, though events are lighter; hidden
    ones have a factor of 1 / 20 for events, and noise. One event as heavy as non-events
    may stand for others.
    """
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.02, 0.6, 4000)
    labels = rng.random(4000) < scores
    assert weight_of_event(1 / scores, labels, scores) == pytest.approx(1, abs=0.01)
    weight = np.where(labels, 1, 20) / scores * rng.uniform(0.7, 1.4, 4000)
    assert weight_of_event(weight, labels, scores) == pytest.approx(1 / 20, rel=0.03)
    weight[np.flatnonzero(labels)[0]] *= 20
    assert weight_of_event(weight, labels, scores) == 1


def test_limits_where_labels_decide_hidden_weights_are_as_wide_as_known_ones():
    """All events and one of twenty others: with the weights known, the product of both
    is; hidden behind a little noise, each is taken beside its own label.
    """
    rng = np.random.default_rng(1)
    z = rng.normal(-4, 1, 20_000)
    scores = 1 / (1 + np.exp(-z))
    labels = rng.random(20_000) < scores
    kept = labels | (rng.random(20_000) < 0.05)
    scores, labels = scores[kept], labels[kept]
    weight = np.where(labels, 1.0, 20.0)
    noisy = weight * rng.uniform(0.98, 1.02, len(weight))
    slopes, benefits = [], []
    for w in (weight, noisy):
        options = {"sample_weight": w, "weight_type": "importance"}
        slope = calibration_slope_intercept(labels, scores, **options).slope
        benefit = net_benefit(labels, scores, thresholds=[0.05], **options)
        slopes.append(slope.high - slope.low)
        benefits.append(benefit.high[0] - benefit.low[0])
    assert slopes[1] == pytest.approx(slopes[0], rel=0.15)
    assert benefits[1] == pytest.approx(benefits[0], rel=0.1)
