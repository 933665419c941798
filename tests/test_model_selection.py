"""The rule for searches: the best candidate within a calibration error, as a loop would
choose it.
"""

import pickle
import warnings

import numpy as np
import pytest
from _catalog import refused
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from skcalib import (
    CrossFittedClassifier,
    IsotonicCalibration,
    PlattScaling,
    ScalingBinning,
    TemperatureScaling,
    VectorScaling,
)
from skcalib.evaluation import recalibration_gain
from skcalib.metrics import reliability_curve
from skcalib.model_selection import sharpest_within


def results(squares, objective):
    squares = np.array(squares)
    return {
        **{
            f"split{i}_test_squared_calibration_error": -squares[:, i]
            for i in range(squares.shape[1])
        },
        "mean_test_squared_calibration_error": -squares.mean(axis=1),
        "mean_test_objective": np.array(objective),
    }


def test_best_objective_within_the_limit():
    # limit .1^2 = .01. Means .004, .009, .02; standard errors with two folds |a - b| /
    # 2: .001, .004, .001. Upper ends at z = 1: .005 (within), .013 (not), .021 (not);
    # at z = 0 the second is within, and the better one.
    cv_results = results(
        [[0.003, 0.005], [0.005, 0.013], [0.019, 0.021]], [-0.3, -0.2, -0.1]
    )
    assert sharpest_within(0.1)(cv_results) == 0
    assert sharpest_within(0.1, n_standard_errors=0)(cv_results) == 1
    assert sharpest_within(0.2)(cv_results) == 2


def test_signed_squares_are_averaged_not_their_roots():
    # -.02 and .03: mean .005, within .1^2 only because the negative square counts
    assert (
        sharpest_within(0.1, n_standard_errors=0)(
            results([[-0.02, 0.03], [0.02, 0.03]], [-0.3, -0.1])
        )
        == 0
    )


def test_none_within_the_limit_warns_and_takes_the_best_calibrated():
    with pytest.warns(
        UserWarning, match=r"No candidate is within max_error=0.01: the best .* 0.0707"
    ):
        assert (
            sharpest_within(0.01)(results([[0.02, 0.02], [0.005, 0.005]], [-0.1, -0.3]))
            == 1
        )


def test_candidates_that_failed_are_left_out():
    cv_results = results([[np.nan, 0.0], [0.001, 0.001]], [-0.1, -0.3])
    assert sharpest_within(0.1)(cv_results) == 1
    with pytest.raises(ValueError, match="No candidate has a finite score"):
        sharpest_within(0.1)(results([[np.nan, 0.0]], [-0.1]))


def test_bad_arguments():
    for arguments, message in [
        ({"max_error": 0}, "max_error"),
        ({"max_error": 1.5}, "max_error"),
        ({"max_error": 0.1, "n_standard_errors": -1}, "n_standard_errors must"),
        ({"max_error": 0.1, "objective": "nonsense"}, "nonsense"),
    ]:
        with pytest.raises(ValueError, match=message):
            sharpest_within(**arguments)
    with pytest.raises(ValueError, match=r"scoring=rule\.scoring"):
        sharpest_within(0.1)({"mean_test_score": np.zeros(2)})


def test_in_a_search_equals_the_choice_by_hand():
    X, y = load_breast_cancer(return_X_y=True)
    rule = sharpest_within(0.05, objective="neg_log_loss", binning=5)
    search = GridSearchCV(
        make_pipeline(CrossFittedClassifier(GaussianNB()), ScalingBinning()),
        {"scalingbinning__binning__n_bins": [2, 4, 8, 16]},
        scoring=rule.scoring,
        refit=rule,
        cv=3,
    )
    with warnings.catch_warnings():
        # whether one is within is not the question here
        warnings.simplefilter("ignore", UserWarning)
        search = clone(search).fit(X, y)
    squares = -np.column_stack(
        [
            search.cv_results_[f"split{i}_test_squared_calibration_error"]
            for i in range(3)
        ]
    )
    upper = squares.mean(axis=1) + squares.std(axis=1, ddof=1) / np.sqrt(3)
    objective = search.cv_results_["mean_test_objective"]
    allowed = [i for i in range(4) if upper[i] <= 0.05**2]
    expected = (
        max(allowed, key=lambda i: objective[i]) if allowed else int(np.argmin(upper))
    )
    assert search.best_index_ == expected
    assert repr(pickle.loads(pickle.dumps(rule))) == repr(rule)


def test_a_search_by_string_labels():
    X, y = make_classification(400, random_state=0)
    rule = sharpest_within(0.5)
    search = GridSearchCV(
        LogisticRegression(), {"C": [1e-6, 1.0]}, scoring=rule.scoring, refit=rule
    )
    assert search.fit(X, np.array(["no", "yes"])[y]).best_params_ == {"C": 1.0}


# Gain of recalibrating


def _over_confident(n=400, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(n_classes), n)
    y = np.array([rng.choice(n_classes, p=row) for row in truth])
    proba = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    return y, proba[:, 1] if n_classes == 2 else proba


def gain_twin(y, proba, recalibrator, loss, folds, weight):
    proba = np.column_stack((1 - proba, proba)) if proba.ndim == 1 else proba
    gains = np.empty((len(folds), len(y)))
    for k, (train, _) in enumerate(folds):
        fitted = clone(recalibrator).fit(
            proba[train], y[train], sample_weight=weight[train]
        )
        for row in range(len(y)):
            losses = []
            for forecast in (proba[row], fitted.predict_proba(proba[row : row + 1])[0]):
                if loss == "log":
                    losses.append(-np.log(forecast[y[row]]))
                else:
                    losses.append(
                        ((forecast - np.eye(len(forecast))[y[row]]) ** 2).sum()
                    )
                    losses[-1] /= 2 if len(forecast) == 2 else 1
            gains[k, row] = losses[0] - losses[1]
    of_fold = np.empty(len(y), dtype=int)
    for k, (_, test) in enumerate(folds):
        of_fold[test] = k
    own, total = gains[of_fold, np.arange(len(y))], weight.sum()
    mean = weight @ own / total
    n_folds = len(folds)
    jackknife = (
        (n_folds - 1) / n_folds * ((gains - gains.mean(axis=0)) ** 2).sum(axis=0)
    )
    deviation = own - mean
    error = np.sqrt(weight @ (deviation**2 + jackknife)) / total
    # Student's quantile for a variance that is estimated from values of this kurtosis
    kurtosis = total * (weight @ deviation**4) / (weight @ deviation**2) ** 2
    degrees = 2 * total / max(kurtosis - 1, 2 / 3)
    half_width = student.ppf(0.95, degrees) * error
    return mean, mean - half_width, mean + half_width


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["log", "brier"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_gain_equals_a_loop(loss, n_classes):
    y, proba = _over_confident(n_classes=n_classes)
    weight = 1.0 + np.arange(400) % 3
    folds = list(KFold(4).split(y))
    options = {"recalibrator": TemperatureScaling(), "loss": loss, "cv": folds}
    found = recalibration_gain(y, proba, sample_weight=weight, **options)
    assert found == pytest.approx(
        gain_twin(y, proba, TemperatureScaling(), loss, folds, weight), rel=1e-6
    )
    assert found.low > 0
    plain = recalibration_gain(y, proba, **options)
    assert plain == pytest.approx(
        gain_twin(y, proba, TemperatureScaling(), loss, folds, np.ones(400)), rel=1e-6
    )


@pytest.mark.slow
def test_gain_of_labels_of_any_kind_and_order_of_rows():
    y, proba = _over_confident()
    expected = recalibration_gain(y, proba, recalibrator=PlattScaling())
    assert recalibration_gain(
        y, np.column_stack((1 - proba, proba)), recalibrator=PlattScaling()
    ) == pytest.approx(expected)
    words = np.array(["no", "yes"])[y]
    assert recalibration_gain(
        words, proba, recalibrator=PlattScaling(), pos_label="yes"
    ) == pytest.approx(expected)
    order = np.random.default_rng(1).permutation(400)
    assert recalibration_gain(
        y[order], proba[order], recalibrator=PlattScaling()
    ) == pytest.approx(expected)
    y, proba = _over_confident(n_classes=3)
    expected = recalibration_gain(y, proba)
    assert recalibration_gain(np.array(["a", "b", "c"])[y], proba) == pytest.approx(
        expected
    )
    assert expected.low > 0


def test_gain_weights_are_repeated_rows():
    y, proba = _over_confident()
    weight = np.arange(400) % 3
    rows = np.repeat(np.arange(400), weight)
    weighted = recalibration_gain(
        y, proba, recalibrator=IsotonicCalibration(), loss="brier", sample_weight=weight
    )
    repeated = recalibration_gain(
        y[rows], proba[rows], recalibrator=IsotonicCalibration(), loss="brier"
    )
    assert weighted == pytest.approx(repeated)


def test_gain_of_a_map_that_learns_the_frequencies_alone_is_that_of_fresh_rows():
    # Stratified folds have the frequencies of the rows they test: 19 intercepts in 300
    # calibrated rows then seem to cost nothing. In fact each costs about half a nat in
    # all, and as much again as what is learned is tested.
    n_classes, found = 20, []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        proba = rng.uniform(0.9, 1.1, (300, n_classes))
        proba /= proba.sum(axis=1, keepdims=True)
        y = (proba.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
        model = VectorScaling(alpha=100.0, alpha_intercept=1e-3)
        gain = recalibration_gain(
            y, proba, recalibrator=model, labels=range(n_classes)
        ).estimate
        model = clone(model).set_params(classes=range(n_classes)).fit(proba, y)
        fitted = model.predict_proba(proba)
        # the exact gain on fresh labels
        found.append((gain, (proba * np.log(fitted / proba)).sum(axis=1).mean()))
    gain, expected = np.mean(found, axis=0)
    assert expected < -0.02
    assert gain == pytest.approx(expected, rel=0.6)


def test_gain_of_rows_that_teach_nothing():
    # the second fold's other rows are all of one class: its rows stay as they are
    y, proba = (
        np.r_[np.zeros(10), np.arange(10) % 2].astype(int),
        np.linspace(0.1, 0.9, 20),
    )
    halves = [(np.arange(10, 20), np.arange(10)), (np.arange(10), np.arange(10, 20))]
    found = recalibration_gain(y, proba, recalibrator=PlattScaling(), cv=halves)
    fitted = PlattScaling().fit(proba[10:], y[10:]).predict_proba(proba[:10])[:, 1]
    assert found.estimate == pytest.approx(
        (np.log1p(-fitted) - np.log1p(-proba[:10])).sum() / 20
    )
    assert np.isnan(found.low)
    assert "1 of 2 folds" in found.reason
    of_one_class = recalibration_gain([1, 1], [0.5, 0.7], labels=[0, 1])
    assert np.isnan(of_one_class).all()
    assert of_one_class.reason.startswith("all samples have the same label")


def test_gain_refuses():
    y, proba = _over_confident(50)
    for options, words in (
        ({"loss": "zero_one"}, ["loss", "'log'", "'brier'", "'zero_one'"]),
        ({"confidence_level": 90}, ["confidence_level", "0.9"]),
        ({"cv": [([0, 1], [2, 3])]}, ["cv", "every row exactly once"]),
    ):
        with refused(ValueError, *words):
            recalibration_gain(y, proba, recalibrator=PlattScaling(), **options)
    with refused(TypeError, "recalibrator", "fit"):
        recalibration_gain(y, proba, recalibrator="isotonic")
    with refused(ValueError, "BinStatistics", "each row"):
        recalibration_gain(reliability_curve(y, proba))


@pytest.mark.slow
@pytest.mark.parametrize("power", [1, 2])
def test_interval_of_the_gain_covers(power):
    # The gain of the maps that the folds made, on the true frequencies: its exact
    # expectation for these scores.
    covered = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        truth = rng.beta(1, 2, 300)
        proba = truth**power / (truth**power + (1 - truth) ** power)
        y = rng.random(300) < truth
        folds = list(KFold(5, shuffle=True, random_state=seed).split(y))
        low, high = recalibration_gain(y, proba, recalibrator=PlattScaling(), cv=folds)[
            1:
        ]
        new = np.empty(300)
        for train, test in folds:
            new[test] = (
                PlattScaling()
                .fit(proba[train], y[train])
                .predict_proba(proba[test])[:, 1]
            )
        expected = truth * np.log(new / proba) + (1 - truth) * np.log(
            (1 - new) / (1 - proba)
        )
        covered.append(low <= expected.mean() <= high)
    assert np.mean(covered) >= 0.8
