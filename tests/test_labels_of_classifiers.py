"""Labels that a wrapped classifier does not learn, and the scores that it has once it
is fitted.
"""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import LinearSVC

from skcalib import (
    CrossFittedClassifier,
    PlattScaling,
    RecalibratedClassifierCV,
    TemperatureScaling,
)
from skcalib.decisions import CertifiedThresholdClassifier
from skcalib.metrics import calibration_error

X, FULL = make_classification(800, 4, n_redundant=0, flip_y=0.1, random_state=0)
MARKED = np.where(np.random.default_rng(0).random(800) < 0.5, -1, FULL)
IS_MARKED = MARKED == -1


@pytest.mark.parametrize(
    "model", [SelfTrainingClassifier(GaussianNB()), LabelSpreading()], ids=str
)
@pytest.mark.parametrize(
    "ensemble", [pytest.param(True, marks=pytest.mark.slow), False, "auto"]
)
def test_unlabelled_rows_are_no_class(model, ensemble):
    recalibrated = RecalibratedClassifierCV(model, PlattScaling(), ensemble=ensemble)
    recalibrated.fit(X, MARKED)
    assert recalibrated.classes_.tolist() == [0, 1]
    proba = recalibrated.predict_proba(X[IS_MARKED])
    bare = model.fit(X, MARKED).predict_proba(X[IS_MARKED])
    assert log_loss(FULL[IS_MARKED], proba) < log_loss(FULL[IS_MARKED], bare) + 0.02


def test_unlabelled_rows_train_and_do_not_recalibrate():
    """The shared recalibrator is fitted to the labelled rows, with the scores that the
    classifiers of the folds give them.
    """
    model = SelfTrainingClassifier(GaussianNB())
    splits = [
        (np.arange(400), np.arange(400, 800)),
        (np.arange(400, 800), np.arange(400)),
    ]
    recalibrated = RecalibratedClassifierCV(model, PlattScaling(), cv=splits).fit(
        X, MARKED
    )
    scores = np.empty((800, 2))
    for train, test in splits:
        fitted = SelfTrainingClassifier(GaussianNB()).fit(X[train], MARKED[train])
        scores[test] = fitted.predict_proba(X[test])
    expected = PlattScaling().fit(scores[~IS_MARKED], MARKED[~IS_MARKED])
    shared = recalibrated.calibrated_classifiers_[0].recalibrator
    np.testing.assert_allclose(shared.slope_, expected.slope_, rtol=1e-9)
    cross_fitted = CrossFittedClassifier(model, cv=splits).fit_transform(X, MARKED)
    np.testing.assert_array_equal(cross_fitted, scores)


def test_text_labels_beside_marks():
    """scikit-learn's semi-supervised classifiers take objects: text, and -1."""
    y = np.array(["no", "yes"], dtype=object)[FULL]
    y[IS_MARKED] = -1
    model = SelfTrainingClassifier(GaussianNB())
    recalibrated = RecalibratedClassifierCV(model, PlattScaling()).fit(X, y)
    assert recalibrated.classes_.tolist() == ["no", "yes"]
    numbers = RecalibratedClassifierCV(model, PlattScaling()).fit(X, MARKED)
    np.testing.assert_array_equal(
        recalibrated.predict_proba(X), numbers.predict_proba(X)
    )


def test_minus_one_is_a_class_of_other_classifiers():
    y = np.where(X[:, 0] > 1, -1, FULL)
    model = RecalibratedClassifierCV(LogisticRegression(), PlattScaling()).fit(X, y)
    assert model.classes_.tolist() == [-1, 0, 1]


class Forgetful(ClassifierMixin, BaseEstimator):
    """A classifier that leaves out one label."""

    def fit(self, X, y):
        self.model_ = GaussianNB().fit(X[y != 2], y[y != 2])
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


@pytest.mark.parametrize("wrapper", [RecalibratedClassifierCV, CrossFittedClassifier])
def test_labels_that_the_classifier_leaves_out_are_named(wrapper):
    y = np.where(X[:, 0] > 1, 2, FULL)
    with pytest.raises(
        ValueError, match="fitted to samples with the label 2, which is not among"
    ):
        wrapper(Forgetful()).fit(X, y)
    frozen = FrozenEstimator(Forgetful().fit(X, FULL))
    with pytest.raises(ValueError, match="label 2 in row"):
        wrapper(frozen).fit(X, y)


def test_certificates_leave_unlabelled_rows_out():
    model = SelfTrainingClassifier(GaussianNB())
    certified = CertifiedThresholdClassifier(model, target=0.3, random_state=0)
    certified.fit(X, MARKED)
    assert certified.classes_.tolist() == [0, 1]
    assert certified.certificate_.n_samples < 300


def test_rows_of_weight_zero_define_no_class():
    weight = np.where(IS_MARKED, 0.0, 1.0)
    p = GaussianNB().fit(X, FULL).predict_proba(X)
    fitted = PlattScaling().fit(p, MARKED, sample_weight=weight)
    expected = PlattScaling().fit(p[~IS_MARKED], FULL[~IS_MARKED])
    assert fitted.classes_.tolist() == [0, 1]
    np.testing.assert_allclose(fitted.slope_, expected.slope_)
    error = calibration_error(MARKED, p, sample_weight=weight)
    assert error == pytest.approx(calibration_error(FULL[~IS_MARKED], p[~IS_MARKED]))
    model = RecalibratedClassifierCV(LogisticRegression(), PlattScaling())
    assert model.fit(X, MARKED, sample_weight=weight).classes_.tolist() == [0, 1]
    # columns of three classes, of which one has no weight: which one is not guessed
    three = np.column_stack((np.zeros(800), p))
    for fit in (PlattScaling().fit, TemperatureScaling().fit):
        with pytest.raises(ValueError, match="leave out the columns of -1"):
            fit(three, MARKED, sample_weight=weight)
    fitted = TemperatureScaling(classes=[-1, 0, 1]).fit(three, MARKED, weight)
    assert fitted.classes_.tolist() == [-1, 0, 1]


def _search(template, candidates):
    return GridSearchCV(Pipeline([("model", template)]), {"model": candidates}, cv=3)


SEARCHES = [
    _search(LinearSVC(), [RandomForestClassifier(5, random_state=0)]),
    _search(RidgeClassifierCV(), [LogisticRegression(), GaussianNB()]),
    _search(RandomForestClassifier(5), [LinearSVC()]),
    StackingClassifier([("a", LogisticRegression()), ("b", GaussianNB())]),
]


@pytest.mark.slow
@pytest.mark.parametrize("model", SEARCHES, ids=range(4))
@pytest.mark.parametrize("ensemble", [True, False, "auto"])
def test_the_fitted_model_says_which_scores_it_has(model, ensemble):
    recalibrated = RecalibratedClassifierCV(model, PlattScaling(), ensemble=ensemble)
    proba = recalibrated.fit(X, FULL).predict_proba(X)
    assert log_loss(FULL, proba) < 0.6
    cross_fitted = CrossFittedClassifier(model)
    scores = cross_fitted.fit_transform(X, FULL)
    fitted = model.fit(X, FULL)
    expected = getattr(fitted, cross_fitted.response_method_)(X)
    assert scores.shape[1] == (1 if expected.ndim == 1 else 2)


class OfTwoKinds(ClassifierMixin, BaseEstimator):
    """A model that has a decision function if the first training row is the first of
    all, and both methods or only probabilities otherwise.
    """

    def __init__(self, other):
        self.other = other

    def fit(self, X, y):
        self.model_ = LinearSVC() if X[0, 0] == self.first_ else self.other
        self.model_.fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    first_ = X[0, 0]

    def __getattr__(self, name):
        if name in ("decision_function", "predict_proba") and "model_" in vars(self):
            return getattr(self.model_, name)
        raise AttributeError(name)

    def predict(self, X):
        return self.model_.predict(X)


def test_folds_of_different_kinds():
    for model in (RecalibratedClassifierCV, CrossFittedClassifier):
        both = model(OfTwoKinds(LogisticRegression()))
        scores = both.fit(X, FULL)
        assert scores.classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="no scoring method in common"):
        CrossFittedClassifier(OfTwoKinds(GaussianNB())).fit_transform(X, FULL)
    with pytest.raises(ValueError, match="that of fold 0 has predict_proba"):
        RecalibratedClassifierCV(OfTwoKinds(GaussianNB())).fit(X, FULL)
    # Pairs that do not share a recalibrator may have different scores.
    apart = RecalibratedClassifierCV(
        OfTwoKinds(GaussianNB()), PlattScaling(), ensemble=True
    ).fit(X, FULL)
    methods = {pair.response_method for pair in apart.calibrated_classifiers_}
    assert methods == {"predict_proba", "decision_function"}
    assert log_loss(FULL, apart.predict_proba(X)) < 0.5


def test_many_classes_of_a_frozen_classifier_give_no_warning():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(900, 5))
    y = np.arange(900) % 30
    frozen = FrozenEstimator(GaussianNB().fit(features, y))
    model = RecalibratedClassifierCV(frozen, TemperatureScaling())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(features[:40], y[:40])
    assert len(model.classes_) == 30


def test_weights_that_go_to_a_step_by_name_give_no_warning():
    weight = np.linspace(0.5, 1.5, 800)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    recalibrated = RecalibratedClassifierCV(model, PlattScaling())
    with pytest.warns(UserWarning, match="used only for the recalibration"):
        recalibrated.fit(X, FULL, sample_weight=weight)
    recalibrated.fit(
        X, FULL, sample_weight=weight, logisticregression__sample_weight=weight
    )
