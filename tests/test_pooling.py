"""Several forecasts as one: by definition, at its edges, and in the estimator."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from skcalib import (
    PlattScaling,
    RecalibratedClassifierCV,
    Recalibrator,
    StackedRecalibrator,
)
from skcalib._rows.pooling import POOLING_EXPONENT, geometric_pool
from skcalib.export import from_dict, to_dict


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_pool_is_the_normalised_geometric_mean_to_a_power(n_classes):
    rng = np.random.default_rng(0)
    forecasts = list(rng.dirichlet(np.ones(n_classes), (3, 20)))
    powers = np.prod(forecasts, axis=0) ** (1.1 / 3)
    expected = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(geometric_pool(forecasts, 1.1), expected, atol=1e-12)


def test_forecasts_that_agree_are_left_as_they_are():
    forecast = np.random.default_rng(0).dirichlet(np.ones(3), 20)
    pooled = geometric_pool([forecast] * 4)
    np.testing.assert_allclose(pooled, forecast, atol=1e-12)


def test_one_zero_is_no_veto_and_zeros_of_all_are():
    forecasts = [np.array([[1.0, 0.0, 0.0]]), np.array([[0.0, 1.0, 0.0]])]
    np.testing.assert_allclose(geometric_pool(forecasts), [[0.5, 0.5, 0.0]], atol=1e-7)


def test_rows_that_do_not_sum_to_one_keep_their_sum():
    forecast = np.array([[0.8, 0.6, 0.4]])
    np.testing.assert_allclose(geometric_pool([forecast, forecast]), forecast)


@pytest.fixture(scope="module")
def rows():
    X, y = make_classification(
        600, n_informative=4, n_classes=3, flip_y=0.2, random_state=0
    )
    return X[:400], y[:400], X[400:], y[400:]


def test_the_estimator_pools_the_fold_models_and_the_model_of_all_rows(rows):
    X, y, X_new, _ = rows
    model = RecalibratedClassifierCV(GaussianNB(), PlattScaling()).fit(X, y)
    pairs = model.calibrated_classifiers_
    assert len(pairs) == 6
    of_all = GaussianNB().fit(X, y)
    np.testing.assert_array_equal(
        pairs[-1].estimator.predict_proba(X_new), of_all.predict_proba(X_new)
    )
    each = [pair.predict_proba(X_new) for pair in pairs]
    assert model.pooling_exponent_ == POOLING_EXPONENT
    np.testing.assert_allclose(
        model.predict_proba(X_new), geometric_pool(each, POOLING_EXPONENT), atol=1e-12
    )
    # a row alone, and among many
    alone = [model.predict_proba(row[None])[0] for row in X_new[:5]]
    np.testing.assert_allclose(alone, model.predict_proba(X_new)[:5], atol=1e-12)


def test_with_true_the_probabilities_are_averaged(rows):
    X, y, X_new, _ = rows
    model = RecalibratedClassifierCV(GaussianNB(), PlattScaling(), ensemble=True)
    model.fit(X, y)
    each = [pair.predict_proba(X_new) for pair in model.calibrated_classifiers_]
    assert len(each) == 5
    assert model.pooling_exponent_ is None
    np.testing.assert_allclose(model.predict_proba(X_new), np.mean(each, axis=0))
    one = RecalibratedClassifierCV(GaussianNB(), PlattScaling(), ensemble=False)
    assert one.fit(X, y).pooling_exponent_ is None


def test_json_pools_in_the_same_way(rows):
    X, y, X_new, _ = rows
    model = RecalibratedClassifierCV(GaussianNB(), PlattScaling()).fit(X, y)
    document = json.loads(json.dumps(to_dict(model)))
    scores = np.array(
        [pair.estimator.predict_proba(X_new) for pair in model.calibrated_classifiers_]
    )
    np.testing.assert_allclose(
        from_dict(document).predict_proba(scores),
        model.predict_proba(X_new),
        rtol=0,
        atol=1e-12,
    )
    # Without an exponent it is a mean.
    document["fitted"]["pooling_exponent_"] = None
    each = [pair.predict_proba(X_new) for pair in model.calibrated_classifiers_]
    np.testing.assert_allclose(
        from_dict(document).predict_proba(scores), np.mean(each, axis=0)
    )
    document["fitted"]["pooling_exponent_"] = -1.0
    with pytest.raises(ValueError, match="pooling_exponent_: must be a positive"):
        from_dict(document)


@pytest.mark.slow
def test_a_pool_predicts_better_than_a_mean():
    X, y = load_digits(return_X_y=True)
    forest = RandomForestClassifier(30, random_state=0)
    model = RecalibratedClassifierCV(forest, StackedRecalibrator()).fit(
        X[:900], y[:900]
    )
    each = [pair.predict_proba(X[900:]) for pair in model.calibrated_classifiers_]
    true = np.arange(len(each[0])), y[900:]

    def log_loss(p):
        return -np.log(p[true]).mean()

    of_folds = np.mean(each[:-1], axis=0)
    assert log_loss(model.predict_proba(X[900:])) < log_loss(of_folds) - 0.005


def test_a_pool_takes_the_stack_unless_it_loses_by_half_a_standard_error():
    """Pooling gains, too, so that a stack that gains little alone is taken; one
    classifier needs a gain of half a standard error.
    """
    X, y = make_classification(200, flip_y=0.3, random_state=3)
    pooled = RecalibratedClassifierCV(GaussianNB()).fit(X, y)
    assert pooled.calibrated_classifiers_[0].recalibrator.n_standard_errors == -0.5
    alone = RecalibratedClassifierCV(GaussianNB(), ensemble=False).fit(X, y)
    assert alone.calibrated_classifiers_[0].recalibrator.n_standard_errors == 0.5
    given = Recalibrator(n_standard_errors=1)
    given = RecalibratedClassifierCV(GaussianNB(), given).fit(X, y)
    assert given.calibrated_classifiers_[0].recalibrator.n_standard_errors == 1
