"""Rules that one line holds: a test that fails where that line is another one."""

import numpy as np
import pytest
from _catalog import refused
from scipy.special import expit
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags

from skcalib import (
    HistogramBinning,
    IsotonicCalibration,
    Recalibrator,
)
from skcalib._cells.reductions import binary_tasks
from skcalib._errors.binned import BinnedError
from skcalib._errors.sweep import SweepPower
from skcalib._fitting.floor import _quantiles
from skcalib._fitting.folds import cross_validation_folds
from skcalib._fitting.ridge_path import ridges_to_try
from skcalib._inference.bias import rows_bias_test
from skcalib._inference.results import IntervalEstimate
from skcalib._inference.shift_test import bias_test
from skcalib._input.label_weights import LabelWeights
from skcalib._input.scored_labels import check_scored_labels
from skcalib._input.scores import checked_scores
from skcalib._intervals.influence import Influence
from skcalib._rows.blocks import effective_size
from skcalib._rows.links import impossible, impossible_at_clip
from skcalib._rows.pooling import geometric_pool
from skcalib._solvers.leave_one_out import left_out_log_odds
from skcalib.binning import (
    EqualMass,
    EqualWidth,
    FixedEdges,
    MinimumMass,
    PoolAdjacentViolators,
    UniqueScores,
)
from skcalib.decisions import ExpectedCostClassifier, net_benefit
from skcalib.decisions._routing import (
    _chance,
    score_statistic,
    unconditional_pvalue,
)
from skcalib.evaluation import calibration_by_cluster
from skcalib.evaluation._paired_differences import mean_over_pairs
from skcalib.export._json_values import Defect, check_keys
from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    kde_calibration_error,
    reliability_curve,
)
from skcalib.monitoring import calibration_trend
from skcalib.recalibrators._group_parts import parts_of_groups


class Told:
    """A fitted recalibrator that predicts what it is told."""

    def __init__(self, proba):
        self.proba = np.array(proba)

    def predict_proba(self, scores):
        return self.proba


def pays(rarest, gain, half_width=0.0):
    """Return whether a gain counts as proven: ten rows, of which one holds a rare event
    and is lifted to a half; one row is wrong.
    """
    before = np.tile([0.4, 0.6], (10, 1))
    before[0] = [rarest, 1 - rarest]
    after = before.copy()
    after[0] = 0.5
    codes = np.ones(10, dtype=int)
    codes[9] = 0
    cautious = Recalibrator(n_standard_errors=0.5)
    cautious.recalibrator_ = Told(after)
    cautious.gain_ = IntervalEstimate(gain, gain - half_width, gain + half_width)
    return cautious._gain_is_certain(Told(before), before, codes, None)


def test_a_rare_event_counts_below_one_over_n_squared():
    # Ten rows support .05, which is more than 1/100, though it is less than 1/10: the
    # loss of .01 a row decides. They do not support .002: log(.5/.002) = 5.5 nats.
    assert not pays(0.05, gain=-0.01)
    assert pays(0.002, gain=-0.01)


def test_the_surprise_is_as_uncertain_as_it_is_large():
    # s = 5.5 nats. A loss of .3 s in ten rows leaves .7 s, more than half of s; a loss
    # of .6 s leaves .4 s, which is less than half of s and more than nothing.
    surprise = np.log(0.5 / 0.002)
    assert pays(0.002, gain=-0.03 * surprise)
    assert not pays(0.002, gain=-0.06 * surprise)
    # Without a rare event half the standard error decides: of ten rows with limits at
    # .02 on both sides of level .9 it is 10 x .02 / 1.645 / 2 = .0608.
    assert pays(0.4, gain=0.00609, half_width=0.02)
    assert not pays(0.4, gain=0.00607, half_width=0.02)


def test_a_sum_of_weights_that_rounding_puts_below_the_least_is_enough():
    # eight times .1 is .7999999999999999
    scores = np.arange(1, 17) / 20
    edges = MinimumMass(UniqueScores(), min_weight=0.8).bin_edges(
        scores, sample_weight=np.full(16, 0.1)
    )
    assert len(edges) == 3
    assert edges[1] == pytest.approx(0.425)
    # what is missing beyond rounding is missing
    edges = MinimumMass(UniqueScores(), min_weight=0.8 + 1e-9).bin_edges(
        scores, sample_weight=np.full(16, 0.1)
    )
    assert edges.tolist() == [0, 1]  # nine rows, and the seven that are left over


@pytest.mark.parametrize(
    ("cost_matrix", "actions", "takes_many"),
    [
        ([[0, 1], [5, 0]], None, False),
        ([[0, 1, 2], [5, 0, 1]], ["a", "b", "c"], False),
        ([[0, 1], [5, 0], [1, 1]], ["a", "b"], True),
        (lambda X: np.zeros((len(X), 3, 2)), ["a", "b"], True),
    ],
    ids=["2 x 2", "2 x 3", "3 x 2", "function"],
)
def test_a_cost_matrix_of_two_rows_takes_two_classes_only(
    cost_matrix, actions, takes_many
):
    X, y = make_classification(
        90, n_informative=4, n_classes=3, random_state=0, n_features=6
    )
    model = ExpectedCostClassifier(LogisticRegression(), cost_matrix, actions=actions)
    assert get_tags(model).classifier_tags.multi_class == takes_many
    if takes_many:
        model.fit(X, y)
        return
    with refused(ValueError, "a cost_matrix of two rows", "3 classes"):
        model.fit(X, y)
    model.fit(X, y > 0)


def test_a_row_that_sums_to_one_within_rounding_is_left_as_it_is():
    # The second row is normalised; the first one is off by 1e-13, which is rounding.
    off_by_rounding = [0.3, 0.7 + 1e-13]
    scores = np.array([off_by_rounding, [0.3, 0.7 + 1e-8]])
    found, _, _ = checked_scores(scores, name="X")
    assert found[0].tolist() == off_by_rounding
    assert found[1].sum() == pytest.approx(1, abs=1e-15)
    assert found[1, 0] < 0.3


def test_nothing_is_avoided_at_a_threshold_of_zero():
    # There the price of a treatment is 0; with harm it would be minus infinity.
    found = net_benefit([1, 0, 0], [0.9, 0.6, 0.2], thresholds=[0, 0.25], harm=0.05)
    assert np.isnan(found.interventions_avoided[0])
    assert np.isfinite(found.interventions_avoided[1])


def test_a_quantile_is_the_middle_of_its_share():
    # Ten rows of one weight as two: each half is shown by its third row, whose share
    # of the weight is 2.5 of 10 and 7.5 of 10.
    first = np.linspace(0.05, 0.95, 10)
    scores = np.column_stack((first, 1 - first))
    rows, share = _quantiles(scores, np.zeros(10, dtype=int), np.ones(10), 2)
    assert share == 5
    assert sorted(rows.tolist()) == [2, 7]


def test_another_strategy_with_the_same_number_of_bins_asks_for_a_new_fit():
    scores = expit(np.linspace(-3, 3, 60))
    fitted = HistogramBinning(EqualMass(5)).fit(scores, np.arange(60) % 2)
    fitted.predict_proba(scores)
    fitted.set_params(binning=EqualWidth(5))
    with refused(ValueError, "EqualMass(n_bins=5)", "EqualWidth(n_bins=5)"):
        fitted.predict_proba(scores)
    fitted.set_params(binning=EqualMass(5))
    fitted.predict_proba(scores)


def test_clusters_never_make_unequal_importance_weights_worth_more_rows():
    # In each cluster the weighted residuals 9 (0 - .1) and 1 (1 - .1) cancel, so that
    # the clusters alone would make the bias certain, and the residuals alone would make
    # an independent row of 1.8 rows: (81 x .01 + .81) / (9 x .01 + .81). By the
    # variance under calibration, which is equal, it is (81 + 1) / (9 + 1) = 8.2 rows.
    cluster = np.repeat(np.arange(100), 2)
    labels = np.tile([False, True], 100)
    scores, weight = np.full(200, 0.1), np.tile([9.0, 1.0], 100)
    # The weights of the other label are declared to be equal.
    known = LabelWeights(weight, weight, "declared")
    found, reason = rows_bias_test(
        scores, labels, 0.9, weight, label_weights=known, cluster=cluster
    )
    assert not reason
    expected = bias_test(scores, weight @ labels / 8.2, 0.9, weight / 8.2, 0.09)
    assert found == pytest.approx(expected)
    assert found.high > 0.04


def test_an_impossible_class_is_filled_at_the_clipping_constant_of_its_row():
    # two possible classes of logit a: log(2 exp(a)) = a + log(2); and a row without
    # impossible classes stays
    logits = np.array([[3.0, -np.inf, 3.0], [1.0, 2.0, 0.0]])
    found = impossible_at_clip(logits, impossible(logits))
    expected = 3.0 + np.log(2) - 52 * np.log(2)
    np.testing.assert_allclose(found, [[3.0, expected, 3.0], [1.0, 2.0, 0.0]])


def test_the_default_bandwidth_of_a_kernel_is_the_normal_reference_rule():
    rng = np.random.default_rng(0)
    scores = rng.random(50)
    y = rng.random(50) < scores**2
    bandwidth = 1.06 * scores.std() * 50 ** (-1 / 5)
    assert kde_calibration_error(y, scores) == pytest.approx(
        kde_calibration_error(y, scores, bandwidth=bandwidth), rel=1e-12
    )


def test_a_bootstrap_mirrors_its_resamples_at_the_estimate():
    rng = np.random.default_rng(0)
    scores, y = rng.random(30), np.arange(30) % 3 == 0
    values = []

    def mean_cube(y_true, y_proba, sample_weight=None):
        values.append(np.average((y_true - y_proba) ** 3, weights=sample_weight))
        return values[-1]

    with pytest.warns(UserWarning, match="interval="):
        found = calibration_error_interval(
            y, scores, metric=mean_cube, n_resamples=40, random_state=0
        )
    low, high = np.quantile(values[-40:], [0.05, 0.95])
    assert found.estimate == values[0]
    assert found.low == pytest.approx(2 * found.estimate - high)
    assert found.high == pytest.approx(2 * found.estimate - low)


def test_the_level_of_routing_may_be_higher_between_its_shares():
    # The largest chance over a dense grid of shares is below what is reported.
    statistic = score_statistic(0, 1, 12, 0.1)
    shares = np.linspace(0, 0.45, 300).tolist()
    largest = max(_chance(share, statistic, 12, 0.1) for share in shares)
    reported = unconditional_pvalue(statistic, 12, 0.1)
    assert largest + 1e-4 < reported < largest + 3e-4


def test_an_influence_is_the_jackknifes():
    rng = np.random.default_rng(0)
    scores = rng.random(12)
    y = rng.random(12) < scores
    bins = FixedEdges([0, 0.5, 1])
    options = {"binning": bins, "squared": True, "norm": 2, "method": "unbiased"}
    task = next(iter(binary_tasks(check_scored_labels(y, scores), "auto")))
    unit = np.arange(12)
    _, influence, _ = mean_over_pairs(task, unit, 12, BinnedError(**options))
    without = np.array(
        [
            calibration_error(np.delete(y, row), np.delete(scores, row), **options)
            for row in unit
        ]
    )
    np.testing.assert_allclose(influence, 11 * (without.mean() - without), atol=1e-12)


def test_bins_whose_frequencies_tie_do_not_end_the_sweep():
    # Two bins have frequencies of 1/2 each, which is monotone; three would fall. Their
    # mean scores are .2 and .75: (|.2 - .5| + |.75 - .5|) / 2 = .275.
    scores, y = np.array([0.1, 0.3, 0.6, 0.9]), np.array([0, 1, 0, 1])
    task = next(iter(binary_tasks(check_scored_labels(y, scores), "auto")))
    power = SweepPower(task.cells(None))
    assert power.observed == pytest.approx(0.275)
    assert power.power(np.array([[0.0, 1, 0, 1]])) == pytest.approx(0.275)


def test_a_pooled_probability_of_one_class_against_the_rest_is_at_most_one():
    # cubes of .99, .9 and .9 in proportion, times the sum 2.79: 1.115, .837 and .837
    forecast = np.array([[0.99, 0.9, 0.9]])
    found = geometric_pool([forecast, forecast], 3.0)
    cubes = forecast**3
    rest = 2.79 * cubes[0, 1] / cubes.sum()
    np.testing.assert_allclose(found, [[1.0, rest, rest]], rtol=1e-12)


def test_rows_in_clusters_tell_at_most_what_independent_ones_tell():
    # Residuals of 1/2 that cancel in each cluster, and weights of 1 and 9: an
    # independent row is worth (1 + 81) / (1 + 9) = 8.2 of weight.
    residual = np.tile([-0.5, 0.5], 100)
    weight = np.repeat([1.0, 9.0], 100)
    cluster = np.repeat(np.arange(100), 2)
    effect, reason = Influence(residual, weight, True, cluster).design_effect(0.9)
    assert not reason
    assert effect == pytest.approx(8.2)


def test_a_bin_of_clusters_with_equal_sums_counts_independent_rows():
    # One event in each pair of rows: the variance of the clusters is 0.
    y_true = np.tile([1, 0], 30)
    y_proba = np.full(60, 0.4)
    pairs = reliability_curve(
        y_true, y_proba, binning=1, clusters=np.repeat(np.arange(30), 2)
    )
    independent = reliability_curve(y_true, y_proba, binning=1)
    np.testing.assert_allclose(pairs.interval(0.9), independent.interval(0.9))


def test_clusters_with_equal_sums_have_no_interval():
    values = np.tile([0.4, -0.1, -0.3], 4)
    influence = Influence(values, cluster=np.repeat(np.arange(4), 3))
    low, high, reason = influence.interval(1.0, 0.9)
    assert np.isnan([low, high]).all()
    assert "same sum" in reason


def test_a_line_through_all_rows_has_no_interval():
    found = calibration_trend([1, 0, 0], [0.99] * 3, [3, 4, 4], pos_label=1)
    assert found.slope.estimate == pytest.approx(1)
    assert np.isnan([found.slope.low, found.slope.high]).all()


def test_tails_of_scores_next_to_0_and_1():
    """Certain scores of one group, with weights that are no counts: the events are as
    many as the scores near 1, so that the shift hardly matters.
    """
    scores = np.array([0.9, 1, 0, 1, 0, 0.5, 0, 1])
    test = bias_test(scores, 5 * 0.3, 0.9, np.full(8, 0.3))
    assert -1 <= test.low <= 0 <= test.high <= 1
    assert 0 < test.pvalue <= 1


def test_a_cluster_that_expects_no_event_has_no_ratio():
    scores = np.r_[np.zeros(3), np.full(6, 0.5)]
    labels = np.array([1, 0, 0, 1, 0, 0, 1, 1, 0])
    with pytest.warns(UserWarning, match="exactly 0 or 1"):
        found = calibration_by_cluster(labels, scores, np.repeat(["a", "b", "c"], 3))
    assert np.isnan(found.observed_expected[0])
    assert "no events are expected" in found.reason[0]
    assert found.observed_expected[1:].tolist() == [2 / 3, 4 / 3]


def test_folds_are_the_same_whichever_label_is_the_event():
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((30, 1))
    codes = (np.arange(30) % 3 > 0).astype(int)
    folds = cross_validation_folds(3, logits, codes, input="logit")
    turned = cross_validation_folds(3, -logits, 1 - codes, input="logit")
    for one, other in zip(folds, turned, strict=True):
        np.testing.assert_array_equal(one.test, other.test)


def test_one_of_the_rows_that_a_weight_stands_for_is_left_out():
    features = np.array([[0.5], [1.0]])
    coef, inverse = np.array([1.0, 0.2]), np.array([[0.6, 0.1], [0.1, 0.4]])
    target = np.array([1.0])
    one = left_out_log_odds(features, target, None, coef, inverse)
    three = left_out_log_odds(features, target, np.array([3.0]), coef, inverse)
    part = left_out_log_odds(features, target, np.array([0.1]), coef, inverse)
    assert three == one < part < coef @ features


def test_fewer_than_thirty_rows_a_class_try_the_strongest_ridge_alone():
    ridges = [1.0, 0.3, 0.1]
    assert ridges_to_try(ridges, 90, 3) == ridges
    assert ridges_to_try(ridges, 89, 3) == [1.0]
    assert ridges_to_try(ridges, 81.0, 3) == [1.0]


def test_a_document_has_no_key_that_nobody_knows():
    check_keys({"a": 1, "b": 2}, {"a"}, {"b"}, "the document")
    with refused(Defect, "the document", "has the unknown key 'c'"):
        check_keys({"a": 1, "c": 2}, {"a"}, {"b"}, "the document")


def test_blocks_of_pooled_violators_end_between_their_scores():
    edges = PoolAdjacentViolators().bin_edges([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    assert edges.tolist() == [0, 0.5, 1]


def test_small_groups_are_merged_by_shrunken_residuals():
    # Mean residuals .5, .3, .1 and .9 of 2, 8, 9 and 5 rows are, with ten rows more
    # that have none, 1 / 12, 2.4 / 18, .9 / 19 and 4.5 / 15: the third group is next to
    # the first one.
    sizes = np.array([2, 8, 9, 5])
    part = parts_of_groups(sizes, 10, sizes * np.array([0.5, 0.3, 0.1, 0.9]))
    assert part.tolist() == [0, 1, 0, 1]


def test_a_probability_that_each_logit_reaches_belongs_to_minus_infinity():
    steps = IsotonicCalibration(input="logit").fit([-1.0, 0, 1, 2], [0, 1, 0, 1])
    assert np.ravel(steps.inverse_transform([0.0])).tolist() == [-np.inf]


def test_weights_are_worth_the_rows_that_kish_counts():
    """(1 + 2 + 3)^2 / (1 + 4 + 9); equal weights are worth as many rows as there are,
    and no weight is worth none.
    """
    assert effective_size(6.0, 14.0) == 36 / 14
    assert effective_size(0.0, 0.0) == 0
    of_groups = effective_size(np.array([3.0, 0.0]), np.array([3.0, 0.0]))
    np.testing.assert_array_equal(of_groups, [3, 0])
