"""Numbers derived by hand, and where other libraries disagree: one stated convention
each.
"""

import math

import numpy as np
import pytest
from scipy.special import expit, logit

from skcalib import HistogramBinning, PlattScaling, ScalingBinning, TemperatureScaling
from skcalib.binning import EqualMass, EqualWidth, UniqueScores
from skcalib.metrics import (
    calibration_error,
    expected_calibration_error,
    groupwise_calibration_error,
    maximum_calibration_error,
    reliability_curve,
)


def _ece(y_true, y_proba, n_bins, **options):
    return expected_calibration_error(
        y_true, y_proba, binning=EqualWidth(n_bins), **options
    )


# --- Where the libraries disagree: right-closed bins on [0, 1], the first closed on both sides  # noqa: E501


def test_scores_on_the_edges_of_ten_bins():
    # Each in a bin of its own: (.1 + .2 + .7 + .6 + .3 + .1) / 6. With left-closed bins
    # it is .2667.
    assert _ece(
        [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.9], 10
    ) == pytest.approx(2 / 6)


def test_scores_on_the_edges_of_fifteen_bins():
    # 0 and 1/15 share the first bin, k/15 has the k-th alone. All labels 1: the mean of
    # 1 - s is 1/2, the largest gap that of the first bin, 1 - 1/30.
    scores = np.linspace(0, 1, 16)
    curve = reliability_curve(np.ones(16, dtype=bool), scores, binning=EqualWidth(15))
    assert curve.count.tolist() == [2] + [1] * 14
    assert _ece(np.ones(16, dtype=bool), scores, 15) == pytest.approx(1 / 2)
    assert maximum_calibration_error(np.ones(16, dtype=bool), scores) == pytest.approx(
        1 - 1 / 30
    )


def test_a_half_belongs_to_the_lower_of_two_bins():
    # (.5, .5): gap 1/2 with weight 2/3; .9: gap .9 with 1/3. Left-closed: |2/3 - 1.9/3|
    # = .033.
    assert _ece([1, 1, 0], [0.5, 0.5, 0.9], 2) == pytest.approx((2 * 0.5 + 0.9) / 3)


@pytest.mark.parametrize(("scores", "y"), [([1, 0.95], [0, 1]), ([0, 0.05], [1, 0])])
def test_zero_and_one_have_no_bin_of_their_own(scores, y):
    # One bin: |.975 - .5|, and |.025 - .5|. Apart: (1 + .05) / 2 = .525.
    assert _ece(y, scores, 10) == pytest.approx(0.475)


def test_two_bins_are_two():
    # {.2, .4}: |.3 - .5|; {.6, .8}: |.7 - .5|. Where `num_bins` counts edges it is 0.
    assert _ece([1, 0, 0, 1], [0.2, 0.4, 0.6, 0.8], 2) == pytest.approx(0.2)
    assert expected_calibration_error(
        [1, 0, 0, 1], [0.2, 0.4, 0.6, 0.8], binning=2
    ) == pytest.approx(0.2)


def test_order_of_the_rows_does_not_count():
    # Five ties across a cut at 3 of 6 rows: all of them stay below it.
    scores, y = np.array([0.5] * 5 + [0.7]), np.array([1, 0, 0, 1, 0, 1])
    for order in (np.arange(6), np.arange(6)[::-1], np.array([3, 5, 0, 2, 4, 1])):
        # |.5 - 2/5| 5/6 + |.7 - 1| / 6
        found = expected_calibration_error(y[order], scores[order], binning=2)
        assert found == pytest.approx((5 * 0.1 + 0.3) / 6)


def test_uniform_bins_span_the_unit_interval_and_not_the_scores():
    assert reliability_curve(
        [0, 1, 1], [0.4, 0.5, 0.6], binning=EqualWidth(2)
    ).edges.tolist() == [0, 0.5, 1]


def test_two_columns_are_the_positive_class():
    # P(1) = .2, .4, .9 with y = 0, 1, 1, one bin: |.5 - 2/3|. Top label: .8 right, .6
    # wrong, .9 right: |2.3/3 - 2/3|.
    proba = np.array([[0.8, 0.2], [0.6, 0.4], [0.1, 0.9]])
    assert _ece([0, 1, 1], proba, 1) == pytest.approx(2 / 3 - 1 / 2)
    assert _ece([0, 1, 1], proba, 1, multiclass="top_label") == pytest.approx(
        2.3 / 3 - 2 / 3
    )


def test_norm_2_takes_the_root():
    # One bin with the gap .3: the error is .3, its square .09.
    y, s = [1, 0, 0, 0, 0], [0.5] * 5
    assert _ece(y, s, 1, norm=2) == pytest.approx(0.3)
    assert calibration_error(
        y, s, method="plugin", squared=True, binning=1
    ) == pytest.approx(0.09)


def test_top_label_is_the_confidence_error_and_not_the_mean_over_classes():
    # Confidence .8 for both classes, right in 5 of 5 and 3 of 5 rows: 4/5 pooled,
    # errors of .2 each apart.
    proba = np.repeat([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]], 5, axis=0)
    y = [0, 0, 0, 0, 0, 1, 1, 1, 2, 2]
    assert _ece(y, proba, 10) == pytest.approx(0)
    assert groupwise_calibration_error(y, proba, reduce="weighted") == pytest.approx(
        0.2
    )


@pytest.mark.slow
def test_float32_scores_are_summed_in_float64():
    # A float32 accumulator gives .2556.
    scores = np.full(20_000_000, 0.8, dtype=np.float32)
    y = np.ones(len(scores), dtype=bool)
    assert expected_calibration_error(y, scores) == pytest.approx(
        1 - float(np.float32(0.8)), abs=1e-9
    )
    assert expected_calibration_error(y, scores, binning=10) == pytest.approx(
        0.2, abs=1e-7
    )


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_one_hot_probabilities_are_clipped_at_one_documented_constant(n_classes):
    # 20 of 300 rows wrong: P(predicted) = 280/300 where (K - 1) exp(-g / T) = 20 / 280,
    # with the gap g = log-odds of 1 - 2^-52. With other constants 1 / T differs by a
    # factor of 2.5.
    predicted = np.arange(300) % n_classes
    y = np.where(np.arange(300) < 280, predicted, (predicted + 1) % n_classes)
    gap = 52 * math.log(2) + math.log1p(-(2**-52))
    model = TemperatureScaling().fit(np.eye(n_classes)[predicted], y)
    assert model.temperature_ == pytest.approx(
        gap / math.log(14 * (n_classes - 1)), rel=1e-8
    )
    assert model.predict_proba(np.eye(n_classes))[0, 0] == pytest.approx(280 / 300)


def test_labels_one_and_two():
    # Taken as numbers the error is .91: here the label 2 is named, and it is .09.
    assert _ece([2, 2, 2, 2], [0.91] * 4, 10, pos_label=2) == pytest.approx(0.09)


def test_training_scores_get_what_their_bin_learned():
    # [a, b) in fit and (a, b] in transform predicts 0 for a score of exactly .5 that
    # was always an event.
    model = HistogramBinning(EqualWidth(2)).fit([0.5, 0.5, 0.9], [1, 1, 0])
    assert model.predict_proba([0.5, 0.9])[:, 1].tolist() == [1, 0]


# --- Kumar, Liang and Ma


def test_debiased_error_by_hand():
    # Bins of 4: s = .15, y = 1/4 and s = .65, y = 3/4. Each: .01 - (3/16) / 3 = -.0525.
    # Printed with (1 - y)^2 it would be .01 - (9/16) / 3 and .01 - (1/16) / 3.
    y, s = [0, 0, 0, 1, 0, 1, 1, 1], [0.15] * 4 + [0.65] * 4
    assert calibration_error(y, s, binning=2, squared=True) == pytest.approx(-0.0525)
    assert calibration_error(y, s, binning=2) == 0


def test_unbiased_error_by_hand():
    # One bin, residuals y - s of .8, -.4, .6, -.2: mean .2, squares 1.2. Variance (1.2
    # - 4 * .04) / 3, over 4.
    y, s = [1, 0, 1, 0], [0.2, 0.4, 0.4, 0.2]
    expected = 0.2**2 - (1.2 - 0.16) / 3 / 4
    assert calibration_error(
        y, s, binning=1, method="unbiased", squared=True
    ) == pytest.approx(expected)


def test_debiased_l1_error_by_hand():
    # One bin of 4 with s = .6 and y = 1/2: R ~ N(1/2, 1/16), 2 * .1 - E|.6 - R|, a
    # folded normal.
    m, v = 0.1, 1 / 16
    folded = math.sqrt(2 * v / math.pi) * math.exp(-(m**2) / (2 * v)) + m * math.erf(
        m / math.sqrt(2 * v)
    )
    y, s = [0, 1, 0, 1], [0.6] * 4
    assert 2 * m - folded < 0
    assert calibration_error(y, s, norm=1, binning=1) == 0
    y, s = [0, 1] * 200, [0.6] * 400
    v = 1 / 1600
    folded = math.sqrt(2 * v / math.pi) * math.exp(-(m**2) / (2 * v)) + m * math.erf(
        m / math.sqrt(2 * v)
    )
    assert calibration_error(y, s, norm=1, binning=1) == pytest.approx(2 * m - folded)


def test_marginal_error_weighs_classes_equally():
    # Class gaps in one bin: |.5 - 1/2|, |.3 - 1/4|, |.2 - 1/4|: root of (0 + .0025 +
    # .0025) / 3, weights 1 / K each.
    proba = np.tile([0.5, 0.3, 0.2], (4, 1))
    found = calibration_error(
        [0, 0, 1, 2], proba, method="plugin", multiclass="marginal", binning=1
    )
    assert found == pytest.approx(math.sqrt(0.005 / 3))


def test_marginal_sums_signed_squares_and_clips_once():
    # 20 of 40 rows each of class 0 and 1, scores .5, .1, .4: 0 - .25/39, .16 - .25/39
    # and .16 - 0. Clipped one by one the first would be 0.
    proba, y = np.tile([0.5, 0.1, 0.4], (40, 1)), np.arange(40) % 2
    found = calibration_error(
        y, proba, multiclass="marginal", binning=1, labels=[0, 1, 2]
    )
    assert found == pytest.approx(math.sqrt((0.32 - 0.5 / 39) / 3))


def test_a_binned_error_can_hide_the_true_one():
    # Example 3.2 in small: the truth is 0 or 1 where the model says .5 -+ .01, so that
    # both halves of the one bin cancel. True error .49 and .51, binned error 0.
    s = np.array([0.49, 0.51] * 50)
    y = np.array([1, 0] * 50)
    assert expected_calibration_error(y, s, norm=2, binning=1) == pytest.approx(0)
    assert expected_calibration_error(
        y, s, norm=2, binning=UniqueScores()
    ) == pytest.approx(0.51)


# --- Roelofs, Cain, Shlens and Mozer


def test_label_binned_error_by_hand():
    # One bin with y = 1/2: |.3 - .5| and |.9 - .5|; by bins |.6 - .5|.
    assert calibration_error(
        [0, 1], [0.3, 0.9], norm=1, binning=1, method="label_binned"
    ) == pytest.approx(0.3)
    assert calibration_error(
        [0, 1], [0.3, 0.9], norm=1, binning=1, method="plugin"
    ) == pytest.approx(0.1)


# --- Gupta and Ramdas


def test_example_1():
    # P(h = .2) = .9 and P(h = .8) = .1 with E[Y | h] = .3 and .6, as 100 rows: gaps of
    # .1 and .2.
    s = np.repeat([0.2, 0.8], [90, 10])
    y = np.r_[np.arange(90) < 27, np.arange(10) < 6]
    for binning in (UniqueScores(), EqualWidth(15), EqualMass(10)):
        assert expected_calibration_error(y, s, binning=binning) == pytest.approx(
            0.9 * 0.1 + 0.1 * 0.2
        )
        assert expected_calibration_error(
            y, s, norm=2, binning=binning
        ) == pytest.approx(math.sqrt(0.013))
        assert maximum_calibration_error(y, s, binning=binning) == pytest.approx(0.2)


# --- Zhao, Chen and Oymak


def test_errors_of_opposite_sign_cancel_in_a_bucket():
    # of 100 rows each, 58 and 42 are right
    y = np.repeat([0, 2, 1, 2], [58, 42, 42, 58])

    def forecast(confidence):
        first, second = confidence
        rest = lambda c: [c, (1 - c) / 2 - 0.01, (1 - c) / 2 + 0.01]  # noqa: E731
        a, b, c = rest(second)
        return np.repeat([rest(first), [b, a, c]], 100, axis=0)

    # Temperature scaling says .5 to both: .08 for each class, 0 together, whatever the
    # bins.
    for n_bins in (1, 3, 15):
        assert _ece(y, forecast((0.5, 0.5)), n_bins) == pytest.approx(0, abs=1e-12)
    assert groupwise_calibration_error(
        y, forecast((0.5, 0.5)), reduce="max"
    ) == pytest.approx(0.08)
    assert groupwise_calibration_error(
        y, forecast((0.5, 0.5)), reduce="mean"
    ) == pytest.approx(0.08)
    # Class-wise scaling says .6 and .44: .02 each. Apart in 15 bins, |.52 - .5| in one
    # that holds both.
    for n_bins in (1, 3, 15):
        assert _ece(y, forecast((0.6, 0.44)), n_bins) == pytest.approx(0.02)
    assert groupwise_calibration_error(
        y, forecast((0.6, 0.44)), reduce="max"
    ) == pytest.approx(0.02)


# --- Small simulations


@pytest.mark.slow
def test_bias_of_three_estimators():
    # formulas 1: calibrated Beta(2.8, .05), n = 500, 15 equal-mass bins; the truth is
    # 0. Over 2000 runs the standard errors are 1e-5 (plugin) and less; "debiased" errs
    # where scores vary within a bin, "unbiased" does not.
    rng = np.random.default_rng(0)
    squares = {"plugin": [], "debiased": [], "unbiased": []}
    for _ in range(2000):
        s = rng.beta(2.8, 0.05, 500)
        y = rng.random(500) < s
        for method, found in squares.items():
            found.append(calibration_error(y, s, method=method, squared=True))
    mean = {method: np.mean(found) for method, found in squares.items()}
    error = {
        method: np.std(found) / math.sqrt(2000) for method, found in squares.items()
    }
    assert max(error.values()) < 1.5e-5
    assert mean["plugin"] == pytest.approx(36e-5, abs=4 * error["plugin"])
    assert mean["debiased"] == pytest.approx(-4.8e-5, abs=4 * error["debiased"])
    assert mean["unbiased"] == pytest.approx(-0.1e-5, abs=4 * error["unbiased"])
    assert mean["debiased"] < -2e-5


def _population_error(model, a=2, c=1, n_grid=20_000):
    """Return the squared error of a binned model for P(Y | z) = sigmoid(a logit(z) +
    c), z uniform.
    """
    z = (np.arange(n_grid) + 0.5) / n_grid
    truth = expit(a * logit(z) + c)
    values, bins = np.unique(model.predict_proba(z)[:, 1], return_inverse=True)
    share = np.bincount(bins) / n_grid
    return share @ (values - np.bincount(bins, truth) / np.bincount(bins)) ** 2


def _mean_errors(n, n_bins, n_repeats=125):
    rng = np.random.default_rng(0)
    histogram, scaling = [], []
    for _ in range(n_repeats):
        z = rng.random(n)
        y = rng.random(n) < expit(2 * logit(z) + 1)
        histogram.append(_population_error(HistogramBinning(n_bins).fit(z, y)))
        scaling.append(
            _population_error(ScalingBinning(PlattScaling(), n_bins).fit(z, y))
        )
    return np.mean(histogram), np.mean(scaling)


@pytest.mark.slow
def test_scaling_binning_is_more_sample_efficient():
    # formulas 1: n 1000 -> 2000 with 10 bins halves both (1.91 and 1.87 over 600
    # repeats); B 5 -> 20 at n = 2000 multiplies the error of histogram binning by 3.79
    # and changes that of scaling-binning by 5.6 %. A mean of 125 squares with a spread
    # of half their size has a standard error of 4.5 %, a ratio 6.3 %: four of them are
    # allowed.
    (histogram_1000, scaling_1000), (histogram_2000, scaling_2000) = (
        _mean_errors(n, 10) for n in (1000, 2000)
    )
    assert histogram_1000 / histogram_2000 == pytest.approx(1.91, rel=0.25)
    assert scaling_1000 / scaling_2000 == pytest.approx(1.87, rel=0.4)
    (histogram_5, scaling_5), (histogram_20, scaling_20) = (
        _mean_errors(2000, n_bins) for n_bins in (5, 20)
    )
    assert histogram_20 / histogram_5 == pytest.approx(3.79, rel=0.25)
    assert scaling_20 / scaling_5 == pytest.approx(1, abs=0.33)
    assert scaling_20 < histogram_20 / 2
