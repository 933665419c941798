"""One function makes scores of whatever comes: classifiers, arrays, tensors, tables."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC

from skcalib import (
    CrossFittedClassifier,
    HistogramBinning,
    PlattScaling,
    RecalibratedClassifierCV,
    TemperatureScaling,
)
from skcalib.metrics import calibration_error


class Wrapped(ClassifierMixin, BaseEstimator):
    """A logistic regression whose answers are changed."""

    def __init__(self, change=None):
        self.change = change

    def fit(self, X, y):
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.change(self.model_.predict_proba(X))


class Deciding(Wrapped):
    """The same with a decision function alone."""

    predict_proba = property()  # hidden

    def decision_function(self, X):
        return self.change(self.model_.decision_function(X))


@pytest.fixture(scope="module")
def rows():
    return make_classification(300, 8, n_informative=5, n_classes=3, random_state=0)


@pytest.fixture(scope="module")
def two(rows):
    X, y = rows
    return X, (y > 0).astype(int)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_every_floating_type_of_a_classifier(rows, dtype, method):
    kind = Wrapped if method == "predict_proba" else Deciding
    X, y = rows
    model = RecalibratedClassifierCV(
        kind(lambda scores: scores.astype(dtype)), TemperatureScaling()
    ).fit(X, y)
    exact = RecalibratedClassifierCV(
        kind(lambda scores: scores), TemperatureScaling()
    ).fit(X, y)
    off = np.abs(model.predict_proba(X) - exact.predict_proba(X)).max()
    assert off <= {np.float16: 0.02, np.float32: 1e-4, np.float64: 0}[dtype]


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.astype(object),
        lambda p: p.tolist(),
        lambda p: np.ma.masked_array(p, mask=np.zeros(p.shape, bool)),
        lambda p: np.asfortranarray(p),
        lambda p: p.astype(">f8"),
    ],
    ids=["object", "list", "unmasked", "fortran", "bigendian"],
)
def test_containers_of_a_classifier_give_the_same(rows, change):
    X, y = rows
    found = CrossFittedClassifier(Wrapped(change)).fit_transform(X, y)
    wanted = CrossFittedClassifier(Wrapped(lambda p: p)).fit_transform(X, y)
    np.testing.assert_array_equal(found, wanted)


ODD = {
    "columns": (Wrapped, lambda p: p[:, :1], r"shape \(\d+, 1\).*one column per class"),
    "outputs": (Wrapped, lambda p: [p, p], r"shape \(2, \d+, \d\)"),
    "rows": (Wrapped, lambda p: p[1:], r"returned \d+ rows for \d+ rows of X"),
    "masked": (
        Wrapped,
        lambda p: np.ma.masked_array(p, mask=p > 0.9),
        "predict_proba of Wrapped is masked in row",
    ),
    "texts": (Wrapped, lambda p: p.astype(str), "predict_proba of Wrapped must be num"),
    "missing": (
        Wrapped,
        lambda p: np.where(p > 0.9, np.nan, p),
        "predict_proba of Wrapped contains NaN in row",
    ),
    "sums": (Wrapped, lambda p: p / 2, "rows of predict_proba of Wrapped must sum"),
    "complex": (Wrapped, lambda p: p + 0j, "must contain real scores"),
    "two columns": (
        Deciding,
        lambda z: np.column_stack((-z[:, 0], z[:, 0])) if z.ndim == 2 else z,
        r"decision_function of Deciding has shape \(\d+, 2\)",
    ),
    "infinite": (Deciding, lambda z: z / 0, "contains (NaN|infinity) in row"),
}


@pytest.mark.parametrize(("kind", "change", "message"), ODD.values(), ids=ODD)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_odd_classifiers_get_one_clear_error(rows, kind, change, message):
    X, y = rows
    with pytest.raises(ValueError, match=message):
        RecalibratedClassifierCV(kind(change), PlattScaling()).fit(X, y)
    with pytest.raises(ValueError, match=message):
        CrossFittedClassifier(kind(change)).fit_transform(X, y)


def test_a_decision_function_of_two_columns_for_two_classes(two):
    X, y = two
    model = Deciding(lambda z: np.column_stack((-z, z)))
    with pytest.raises(ValueError, match=r"shape \(\d+, 2\).*the second of two"):
        RecalibratedClassifierCV(model, PlattScaling()).fit(X, y)


def test_a_classifier_without_classes(two):
    class Nameless(Wrapped):
        def fit(self, X, y):
            super().fit(X, y)
            del self.classes_
            return self

    with pytest.raises(TypeError, match="Nameless has no classes_ after fit"):
        CrossFittedClassifier(Nameless(lambda p: p)).fit_transform(*two)


def test_pairwise_columns_are_no_classes(rows):
    X, y = rows
    pairwise = SVC(decision_function_shape="ovo")
    assert pairwise.fit(X, y).decision_function(X).shape == (300, 3)
    for kind in (RecalibratedClassifierCV, CrossFittedClassifier):
        options = {"recalibrator": TemperatureScaling()}
        if kind is CrossFittedClassifier:
            options = {"response_method": "decision_function"}
        model = kind(pairwise, **options)
        fit = getattr(model, "fit_transform", model.fit)
        with pytest.raises(ValueError, match="is not that of the predicted.*ovr"):
            fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [SVC(), OneVsOneClassifier(SVC())], ids=["ovr", "1v1"]
)
def test_ties_between_votes_are_no_reason(model):
    X, y = make_classification(
        600, 12, n_informative=8, n_classes=10, n_clusters_per_class=1,
        class_sep=0.3, flip_y=0.3, random_state=0,
    )  # fmt: skip
    fitted = RecalibratedClassifierCV(model, TemperatureScaling(), ensemble=False)
    fitted.fit(X, y)
    bare = fitted.calibrated_classifiers_[0].estimator.predict(X)
    found = accuracy_score(y, fitted.predict(X))
    assert found > accuracy_score(y, bare) - 0.05


def test_arrow_tables_are_scores():
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(3), 200)
    y = (scores.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)
    table = pa.table({name: scores[:, k] for k, name in enumerate("abc")})
    for method in (TemperatureScaling(), HistogramBinning(3)):
        wanted = method.fit(scores, y).predict_proba(scores)
        np.testing.assert_array_equal(method.fit(table, y).predict_proba(table), wanted)
    assert calibration_error(y, table) == calibration_error(y, scores)
    column = pa.chunked_array([scores[:50, 0], scores[50:, 0]])
    assert calibration_error(y == 0, column) == calibration_error(y == 0, scores[:, 0])
    repeated = pa.Table.from_arrays(list(table.columns), names=["a", "b", "b"])
    with pytest.raises(ValueError, match="2 columns named 'b'"):
        TemperatureScaling().fit(repeated, y)


def test_a_display_of_a_model_that_is_not_fitted(two):
    pytest.importorskip("matplotlib")
    from skcalib.displays import ReliabilityDisplay

    with pytest.raises(NotFittedError):
        ReliabilityDisplay.from_estimator(LogisticRegression(), *two)


def test_lazy_tables_are_refused_by_name():
    pl = pytest.importorskip("polars")
    lazy = pl.LazyFrame({"p": [0.1, 0.9]})
    with pytest.raises(TypeError, match=r"found a LazyFrame.*skcalib\.engines"):
        calibration_error([0, 1], lazy)
