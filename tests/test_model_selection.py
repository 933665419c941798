"""The rule for searches: the best candidate within a calibration error, as a loop would choose it."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from skcalib import CrossFittedClassifier, ScalingBinning
from skcalib.model_selection import sharpest_within


def results(squares, objective):
    squares = np.array(squares)
    return {
        **{f"split{i}_test_squared_calibration_error": -squares[:, i] for i in range(squares.shape[1])},
        "mean_test_squared_calibration_error": -squares.mean(axis=1),
        "mean_test_objective": np.array(objective),
    }


def test_best_objective_within_the_limit():
    # limit .1^2 = .01. Means .004, .009, .02; standard errors with two folds |a - b| / 2: .001, .004, .001.
    # Upper ends at z = 1: .005 (within), .013 (not), .021 (not); at z = 0 the second is within, and the better one.
    cv_results = results([[0.003, 0.005], [0.005, 0.013], [0.019, 0.021]], [-0.3, -0.2, -0.1])
    assert sharpest_within(0.1)(cv_results) == 0
    assert sharpest_within(0.1, z=0)(cv_results) == 1
    assert sharpest_within(0.2)(cv_results) == 2


def test_signed_squares_are_averaged_not_their_roots():
    # -.02 and .03: mean .005, within .1^2 only because the negative square counts
    assert sharpest_within(0.1, z=0)(results([[-0.02, 0.03], [0.02, 0.03]], [-0.3, -0.1])) == 0


def test_none_within_the_limit_warns_and_takes_the_best_calibrated():
    with pytest.warns(UserWarning, match=r"No candidate is within max_error=0.01: the best .* 0.0707"):
        assert sharpest_within(0.01)(results([[0.02, 0.02], [0.005, 0.005]], [-0.1, -0.3])) == 1


def test_candidates_that_failed_are_left_out():
    cv_results = results([[np.nan, 0.0], [0.001, 0.001]], [-0.1, -0.3])
    assert sharpest_within(0.1)(cv_results) == 1
    with pytest.raises(ValueError, match="No candidate has a finite score"):
        sharpest_within(0.1)(results([[np.nan, 0.0]], [-0.1]))


def test_bad_arguments():
    for arguments, message in [
        ({"max_error": 0}, "max_error"),
        ({"max_error": 1.5}, "max_error"),
        ({"max_error": 0.1, "z": -1}, "z must"),
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
        warnings.simplefilter("ignore", UserWarning)  # whether one is within is not the question here
        search = clone(search).fit(X, y)
    squares = -np.column_stack([search.cv_results_[f"split{i}_test_squared_calibration_error"] for i in range(3)])
    upper = squares.mean(axis=1) + squares.std(axis=1, ddof=1) / np.sqrt(3)
    objective = search.cv_results_["mean_test_objective"]
    allowed = [i for i in range(4) if upper[i] <= 0.05**2]
    expected = max(allowed, key=lambda i: objective[i]) if allowed else int(np.argmin(upper))
    assert search.best_index_ == expected
    assert repr(pickle.loads(pickle.dumps(rule))) == repr(rule)
