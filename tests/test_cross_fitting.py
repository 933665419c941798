"""Cross-fitting: out-of-fold scores against a plain loop, and everything a pipeline
asks of them.
"""

import pickle

import numpy as np
import pytest
from _catalog import check_or_fail
from scipy import sparse
from scipy.special import softmax
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_iris, make_classification
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import linear_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from skcalib import (
    CrossFittedClassifier,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    RecalibratedClassifierCV,
)

BY_DESIGN = (
    "fit_transform gives out-of-fold scores, transform those of the model fitted on all"
    " rows"
)
EXPECTED_FAILURES = {
    "check_transformer_general": BY_DESIGN,
    "check_transformer_data_not_an_array": BY_DESIGN,
}


@pytest.mark.slow
@parametrize_with_checks(
    [
        CrossFittedClassifier(LogisticRegression()),
        CrossFittedClassifier(LinearSVC(random_state=0)),
    ]
)
def test_estimator_checks(estimator, check):
    check_or_fail(check, estimator, EXPECTED_FAILURES)


@pytest.fixture
def binary():
    return make_classification(120, 6, flip_y=0.2, random_state=0)


@pytest.fixture
def iris():
    return load_iris(return_X_y=True)


def plain_loop(estimator, X, y, splits, method, sample_weight=None):
    """Score row by row with the model of the one fold that tests it."""
    rows = [None] * len(y)
    for train, test in splits:
        params = (
            {} if sample_weight is None else {"sample_weight": sample_weight[train]}
        )
        model = clone(estimator).fit(X[train], y[train], **params)
        for i in test:
            rows[i] = np.atleast_1d(getattr(model, method)(X[[i]])[0])
    return np.array(rows)


@pytest.mark.parametrize(
    ("data", "estimator", "method", "width"),
    [
        ("binary", GaussianNB(), "predict_proba", 2),
        ("binary", LinearSVC(random_state=0), "decision_function", 1),
        ("iris", GaussianNB(), "predict_proba", 3),
        ("iris", LinearSVC(random_state=0), "decision_function", 3),
    ],
)
def test_fit_transform_equals_a_plain_loop_over_folds(
    data, estimator, method, width, request
):
    X, y = request.getfixturevalue(data)
    cv = StratifiedKFold(4, shuffle=True, random_state=1)
    cross_fitted = CrossFittedClassifier(estimator, cv=cv)
    scores = cross_fitted.fit_transform(X, y)
    assert scores.shape == (len(y), width)
    assert cross_fitted.response_method_ == method
    np.testing.assert_allclose(
        scores, plain_loop(estimator, X, y, cv.split(X, y), method), rtol=1e-12
    )
    reference = cross_val_predict(estimator, X, y, cv=cv, method=method)
    np.testing.assert_allclose(scores, reference.reshape(len(y), width), rtol=1e-12)


def test_transform_uses_the_model_fitted_on_all_rows(iris):
    X, y = iris
    expected = GaussianNB().fit(X, y).predict_proba(X)
    for cross_fitted in (
        CrossFittedClassifier(GaussianNB()).fit(X, y),
        CrossFittedClassifier(GaussianNB()),
    ):
        if not hasattr(cross_fitted, "estimator_"):
            out_of_fold = cross_fitted.fit_transform(X, y)
            assert np.abs(out_of_fold - expected).max() > 1e-3
        np.testing.assert_array_equal(cross_fitted.transform(X), expected)


def test_response_method_can_be_chosen(binary):
    X, y = binary
    logits = CrossFittedClassifier(
        LogisticRegression(), response_method="decision_function"
    ).fit_transform(X, y)
    probabilities = CrossFittedClassifier(LogisticRegression()).fit_transform(X, y)
    np.testing.assert_allclose(1 / (1 + np.exp(-logits[:, 0])), probabilities[:, 1])


def test_response_method_of_a_classifier_without_it():
    with pytest.raises(TypeError, match="LinearSVC has none of them"):
        CrossFittedClassifier(LinearSVC(), response_method="predict_proba").fit(
            [[0.0], [1.0]], [0, 1]
        )


# Splitters
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (
            RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
            "RepeatedStratifiedKFold.*row 0 is in 2",
        ),
        (ShuffleSplit(2, test_size=0.3, random_state=0), "row .* is in 0"),
        (PredefinedSplit(np.repeat([-1, 0, 1], 40)), "row 0 is in 0"),
        ([(np.arange(60), np.arange(60, 120))], r"cv \(list\).*row 0 is in 0"),
        (
            [(np.arange(120), np.arange(120))],
            "trains fold 0 on row 0 and also tests it",
        ),
        (
            [(np.arange(60), np.arange(60, 121))],
            "not made for this X with 120 rows",
        ),
        ([(np.arange(0), np.arange(120))], "trains fold 0 on 0 rows"),
        ([], "no splits"),
        (1, "k-fold"),
    ],
)
def test_splitters_that_do_not_cover_each_row_once_are_refused(cv, message, binary):
    with pytest.raises(ValueError, match=message):
        CrossFittedClassifier(GaussianNB(), cv=cv).fit_transform(*binary)


@pytest.mark.parametrize("cv", [TimeSeriesSplit(), ShuffleSplit(1, random_state=0)])
def test_the_way_that_the_refusal_names_works(cv, binary):
    X, y = binary
    with pytest.raises(ValueError, match="exactly one test fold") as refusal:
        CrossFittedClassifier(GaussianNB(), cv=cv).fit_transform(X, y)
    message = str(refusal.value)
    assert "RecalibratedClassifierCV(model, recalibrator, ensemble=False" in message
    assert f"cv={type(cv).__name__}(" in message
    model = RecalibratedClassifierCV(
        GaussianNB(), PlattScaling(), ensemble=False, cv=cv
    ).fit(X, y)
    scores, labels = [], []
    for train, test in cv.split(X):
        fold = GaussianNB().fit(X[train], y[train])
        scores.append(fold.predict_proba(X[test]))
        labels.append(y[test])
    platt = PlattScaling().fit(np.concatenate(scores), np.concatenate(labels))
    expected = platt.predict_proba(GaussianNB().fit(X, y).predict_proba(X))
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-7)
    searched = GridSearchCV(
        model, {"recalibrator": [PlattScaling(), IsotonicCalibration()]}, cv=cv
    ).fit(X, y)
    assert len(searched.cv_results_["mean_test_score"]) == 2


def test_splits_may_be_masks_and_negative_indices(binary):
    X, y = binary
    even = np.arange(120) % 2 == 0
    expected = CrossFittedClassifier(
        GaussianNB(), cv=[(~even, even), (even, ~even)]
    ).fit_transform(X, y)
    indices = [
        (np.flatnonzero(~even), np.flatnonzero(even) - 120),
        (np.flatnonzero(even), np.flatnonzero(~even)),
    ]
    np.testing.assert_array_equal(
        CrossFittedClassifier(GaussianNB(), cv=indices).fit_transform(X, y), expected
    )


def test_a_splitter_without_a_fixed_seed_is_asked_once(binary):
    # Asked twice, KFold(shuffle=True) would give two partitions and rows would be
    # scored by models that saw them.
    X, y = binary
    X = np.column_stack([X, np.arange(120)])
    nearest = DecisionTreeClassifier(random_state=0)
    labels = np.random.default_rng(0).integers(0, 2, 120)
    own = CrossFittedClassifier(nearest, cv=KFold(3, shuffle=True)).fit_transform(
        X, labels
    )[np.arange(120), labels]
    # A fully grown tree knows the label of each row that it saw; of other rows it
    # guesses, right about half the time.
    assert 0.3 < own.mean() < 0.7


# Frozen and foreign classifiers
# --------------------------------------------------------------------------------------


class Undersampled(ClassifierMixin, BaseEstimator):
    """A pipeline of a resampler and a classifier: fits to as many rows of each class,
    and scores all rows.
    """

    def fit(self, X, y):
        self.model_ = LogisticRegression().fit(*_undersample(X, y))
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def _undersample(X, y):
    size = np.bincount(y).min()
    rows = np.concatenate([np.flatnonzero(y == label)[:size] for label in (0, 1)])
    return X[rows], y[rows]


def test_a_resampler_belongs_inside():
    """Before this step it changes the labels that the recalibrator learns from."""
    X, y = make_classification(
        8000, 4, n_informative=3, n_redundant=1, weights=[0.95], random_state=0
    )
    train, test = slice(4000), slice(4000, None)

    def mean_forecast(classifier, *rows):
        model = make_pipeline(CrossFittedClassifier(classifier), PlattScaling())
        return model.fit(*rows).predict_proba(X[test])[:, 1].mean()

    inside = mean_forecast(Undersampled(), X[train], y[train])
    before = mean_forecast(LogisticRegression(), *_undersample(X[train], y[train]))
    assert inside == pytest.approx(y[test].mean(), abs=0.01)
    assert before > 2 * y[test].mean()


class CountedFits(ClassifierMixin, BaseEstimator):
    """A classifier that counts how often any copy of it is fitted."""

    fits = []

    def fit(self, X, y, sample_weight=None):
        type(self).fits.append(len(y))
        self.model_ = GaussianNB().fit(X, y, sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def test_a_frozen_classifier_is_asked_and_never_fitted(iris):
    X, y = iris
    model = CountedFits().fit(X[::2], y[::2])
    CountedFits.fits.clear()
    cross_fitted = CrossFittedClassifier(FrozenEstimator(model), cv=1000)
    np.testing.assert_array_equal(
        cross_fitted.fit_transform(X[1::2], y[1::2]), model.predict_proba(X[1::2])
    )
    np.testing.assert_array_equal(cross_fitted.transform(X), model.predict_proba(X))
    assert CountedFits.fits == []


def test_a_frozen_classifier_keeps_a_class_that_y_lacks(iris):
    X, y = iris
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    cross_fitted = CrossFittedClassifier(frozen)
    assert cross_fitted.fit_transform(X[:80], y[:80]).shape == (80, 3)
    np.testing.assert_array_equal(cross_fitted.classes_, [0, 1, 2])


def test_a_frozen_classifier_must_know_the_labels(iris):
    X, y = iris
    frozen = FrozenEstimator(GaussianNB().fit(X[:100], y[:100]))
    with pytest.raises(
        ValueError, match="label 2 in row 100, which the frozen classifier has not seen"
    ):
        CrossFittedClassifier(frozen).fit(X, y)


class ReversedClasses(ClassifierMixin, BaseEstimator):
    """A classifier that keeps its classes in descending order."""

    def fit(self, X, y):
        self.model_ = LogisticRegression(max_iter=1000).fit(X, y)
        self.classes_ = self.model_.classes_[::-1]
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)[:, ::-1]

    def decision_function(self, X):
        scores = self.model_.decision_function(X)
        return -scores if scores.ndim == 1 else scores[:, ::-1]


@pytest.mark.parametrize("response_method", ["predict_proba", "decision_function"])
@pytest.mark.parametrize("data", ["binary", "iris"])
def test_columns_are_sorted_whatever_the_order_of_the_classifier(
    data, response_method, request
):
    X, y = request.getfixturevalue(data)
    scores = [
        CrossFittedClassifier(estimator, response_method=response_method).fit_transform(
            X, y
        )
        for estimator in (ReversedClasses(), LogisticRegression(max_iter=1000))
    ]
    np.testing.assert_allclose(*scores)


# A class missing from a training fold
# --------------------------------------------------------------------------------


def splits_without_class(y, missing):
    """Return two folds: the first is trained without the class `missing`, which is
    tested there alone.
    """
    half = np.arange(len(y)) % 2 == 0
    test = half | (y == missing)
    return [
        (np.flatnonzero(~test), np.flatnonzero(test)),
        (np.flatnonzero(test), np.flatnonzero(~test)),
    ]


def test_a_missing_class_has_probability_zero(iris):
    X, y = iris
    splits = splits_without_class(y, missing=1)
    scores = CrossFittedClassifier(GaussianNB(), cv=splits).fit_transform(X, y)
    (train, test), (_, rest) = splits
    assert (scores[test, 1] == 0).all()
    np.testing.assert_array_equal(
        scores[np.ix_(test, [0, 2])],
        GaussianNB().fit(X[train], y[train]).predict_proba(X[test]),
    )
    assert (scores[rest] > 0).any(axis=0).all()
    np.testing.assert_allclose(scores.sum(axis=1), 1)


def test_a_single_class_in_a_training_fold_has_probability_one():
    X, y = np.arange(8.0).reshape(-1, 1), np.repeat([0, 1], 4)
    scores = CrossFittedClassifier(DecisionTreeClassifier(), cv=KFold(2)).fit_transform(
        X, y
    )
    np.testing.assert_array_equal(scores, np.repeat([[0, 1], [1, 0]], 4, axis=0))


def test_a_missing_class_has_the_logit_of_no_probability(iris):
    # The softmax of its logit is below 2^-52, what log-odds are clipped to; the other
    # logits are left alone.
    X, y = iris
    X, y = np.vstack([X, X + 9]), np.concatenate([y, y + 3])
    splits = splits_without_class(y, missing=1)
    estimator = LinearSVC(random_state=0)
    scores = CrossFittedClassifier(estimator, cv=splits).fit_transform(X, y)
    train, test = splits[0]
    seen = [0, 2, 3, 4, 5]
    expected = estimator.fit(X[train], y[train]).decision_function(X[test])
    np.testing.assert_array_equal(scores[np.ix_(test, seen)], expected)
    np.testing.assert_allclose(
        scores[test, 1], expected.min(axis=1) - 52 * np.log(2), rtol=1e-12
    )
    assert np.isfinite(scores).all()
    assert (softmax(scores[test], axis=1)[:, 1] <= 2.0**-52).all()


def test_two_of_three_classes_in_a_training_fold_keep_their_log_odds(iris):
    X, y = iris
    splits = splits_without_class(y, missing=1)
    estimator = LogisticRegression(max_iter=1000)
    scores = CrossFittedClassifier(
        estimator, cv=splits, response_method="decision_function"
    ).fit_transform(X, y)
    train, test = splits[0]
    expected = estimator.fit(X[train], y[train]).predict_proba(X[test])
    np.testing.assert_allclose(
        softmax(scores[test], axis=1)[:, [0, 2]], expected, rtol=1e-9
    )


def test_a_decision_between_two_needs_both():
    class OneClass(LinearSVC):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def decision_function(self, X):
            return np.zeros(len(X))

    with pytest.raises(
        ValueError, match="at least two classes in the training part of every fold"
    ):
        CrossFittedClassifier(OneClass(), cv=KFold(2)).fit_transform(
            np.zeros((6, 1)), [0, 0, 0, 1, 1, 1]
        )


def test_one_versus_one_decisions_are_refused(iris):
    X, y = iris
    y = np.where(X[:, 1] > 3, 3, y)
    with pytest.raises(ValueError, match=r"shape \(\d+, 6\).*one column per class"):
        CrossFittedClassifier(SVC(decision_function_shape="ovo")).fit_transform(X, y)


# Containers, labels and types
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array([False, True]),
        np.array([-1, 1]),
        np.array([1, 2]),
    ],
)
def test_labels_of_any_kind_give_the_same_scores(labels, binary):
    X, y = binary
    cross_fitted = CrossFittedClassifier(GaussianNB())
    expected = CrossFittedClassifier(GaussianNB()).fit_transform(X, y)
    np.testing.assert_array_equal(cross_fitted.fit_transform(X, labels[y]), expected)
    np.testing.assert_array_equal(
        cross_fitted.fit_transform(X, labels[y].tolist()), expected
    )
    np.testing.assert_array_equal(cross_fitted.classes_, labels)


def test_labels_in_a_series_with_any_index(binary):
    pd = pytest.importorskip("pandas")
    X, y = binary
    series = pd.Series(np.array(["no", "yes"])[y], index=np.arange(len(y))[::-1] + 7)
    frame = pd.DataFrame(X, columns=list("abcdef"), index=series.index)
    cross_fitted = CrossFittedClassifier(GaussianNB())
    expected = CrossFittedClassifier(GaussianNB()).fit_transform(X, y)
    np.testing.assert_array_equal(cross_fitted.fit_transform(frame, series), expected)
    assert cross_fitted.n_features_in_ == 6
    np.testing.assert_array_equal(cross_fitted.feature_names_in_, list("abcdef"))


def test_float32_stays_float32(binary):
    class Float32(LogisticRegression):
        def predict_proba(self, X):
            return super().predict_proba(X).astype(np.float32)

    X, y = binary
    cross_fitted = CrossFittedClassifier(Float32())
    scores = cross_fitted.fit_transform(X.astype(np.float32), y)
    assert (
        scores.dtype == cross_fitted.transform(X.astype(np.float32)).dtype == np.float32
    )
    np.testing.assert_allclose(
        scores,
        CrossFittedClassifier(LogisticRegression()).fit_transform(X, y),
        atol=1e-4,
    )


@pytest.mark.parametrize(
    "container", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array]
)
def test_sparse_rows(container, binary):
    X, y = binary
    cross_fitted = CrossFittedClassifier(LogisticRegression(), passthrough=[1])
    scores = cross_fitted.fit_transform(container(X), y)
    expected = CrossFittedClassifier(LogisticRegression()).fit_transform(X, y)
    np.testing.assert_allclose(scores, np.column_stack([expected, X[:, 1]]), atol=1e-6)
    assert cross_fitted.transform(container(X)).shape == (120, 3)


def test_rows_that_are_texts():
    texts, y = ["a b", "a a", "b c", "c c"] * 5, [0, 0, 1, 1] * 5
    cross_fitted = CrossFittedClassifier(
        make_pipeline(CountVectorizer(token_pattern=r"\w"), MultinomialNB())
    )
    assert cross_fitted.fit_transform(texts, y).shape == (20, 2)
    assert not hasattr(cross_fitted, "n_features_in_")
    assert (cross_fitted.transform(["a a a", "c c c"]).argmax(axis=1) == [0, 1]).all()


def test_a_precomputed_kernel_is_cut_in_both_directions(binary):
    X, y = binary
    kernel = CrossFittedClassifier(SVC(kernel="precomputed")).fit_transform(
        linear_kernel(X), y
    )
    np.testing.assert_allclose(
        kernel,
        CrossFittedClassifier(SVC(kernel="linear")).fit_transform(X, y),
        atol=1e-6,
    )


@pytest.mark.slow
def test_the_same_scores_with_jobs_after_pickling_and_cloning(iris):
    X, y = iris
    cross_fitted = CrossFittedClassifier(GaussianNB(), cv=3)
    expected = cross_fitted.fit_transform(X, y)
    np.testing.assert_array_equal(
        clone(cross_fitted).set_params(n_jobs=2).fit_transform(X, y), expected
    )
    restored = pickle.loads(pickle.dumps(cross_fitted))
    np.testing.assert_array_equal(restored.transform(X), cross_fitted.transform(X))


# Passed columns
# --------------------------------------------------------------------------------------


def classifier_of_numbers():
    """Return a classifier that takes a frame and reads its numbers alone."""
    from sklearn.compose import make_column_transformer

    return make_pipeline(
        make_column_transformer(("passthrough", ["x0", "x1"])), GaussianNB()
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_strings_pass_through_a_frame(library, binary):
    frame_library = pytest.importorskip(library)
    X, y = binary
    region = np.array(["north", "south", "west"])[np.arange(120) % 3]
    frame = frame_library.DataFrame(
        {"x0": X[:, 0], "region": region, "x1": X[:, 1], "age": np.arange(120)}
    )
    cross_fitted = CrossFittedClassifier(
        classifier_of_numbers(), passthrough=["region", -1]
    )
    out_of_fold = cross_fitted.fit_transform(frame, y)
    names = ["crossfittedclassifier_0", "crossfittedclassifier_1", "region", "age"]
    for result in (out_of_fold, cross_fitted.transform(frame)):
        assert type(result) is type(frame)
        assert (
            list(result.columns)
            == names
            == cross_fitted.get_feature_names_out().tolist()
        )
        assert list(result["region"]) == list(region)
        assert list(result["age"]) == list(range(120))
    expected = CrossFittedClassifier(GaussianNB()).fit_transform(X[:, :2], y)
    np.testing.assert_array_equal(out_of_fold[names[1]], expected[:, 1])


def test_a_pandas_frame_keeps_its_index_and_categories(binary):
    pd = pytest.importorskip("pandas")
    X, y = binary
    frame = pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1]}, index=np.arange(120) % 50)
    frame["region"] = pd.Categorical(np.array(["north", "south"])[np.arange(120) % 2])
    result = CrossFittedClassifier(
        classifier_of_numbers(), passthrough="region"
    ).fit_transform(frame, y)
    pd.testing.assert_series_equal(result["region"], frame["region"])


def test_columns_are_found_by_name_in_each_frame(binary):
    pd = pytest.importorskip("pandas")
    X, y = binary
    frame = pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "region": "north"})
    cross_fitted = CrossFittedClassifier(
        classifier_of_numbers(), passthrough="region"
    ).fit(frame, y)
    assert (
        cross_fitted.transform(frame[["region", "x1", "x0"]])["region"] == "north"
    ).all()
    with pytest.raises(ValueError, match="passthrough names the column 'region'"):
        cross_fitted.transform(frame[["x0", "x1"]])


def test_numbers_pass_through_an_array_and_strings_through_an_object_array(binary):
    X, y = binary
    scores = CrossFittedClassifier(GaussianNB()).fit_transform(X, y)
    result = CrossFittedClassifier(GaussianNB(), passthrough=[2, 0]).fit_transform(X, y)
    np.testing.assert_array_equal(result, np.column_stack([scores, X[:, [2, 0]]]))
    assert result.dtype == np.float64

    class FirstColumns(GaussianNB):
        def fit(self, X, y):
            return super().fit(np.asarray(X)[:, :6].astype(float), y)

        def predict_proba(self, X):
            return super().predict_proba(np.asarray(X)[:, :6].astype(float))

    region = np.array(["north", "south"])[y]
    mixed = np.column_stack([X.astype(object), region])
    for rows in (mixed, mixed.tolist()):
        result = CrossFittedClassifier(FirstColumns(), passthrough=-1).fit_transform(
            rows, y
        )
        assert result.dtype == object
        np.testing.assert_array_equal(result[:, 2], region)
        np.testing.assert_array_equal(result[:, :2].astype(float), scores)


@pytest.mark.parametrize(
    ("passthrough", "message"),
    [
        (True, "False or the names or integer positions"),
        ([0.5], "False or the names or integer positions"),
        (None, "False or the names or integer positions"),
        ("region", "names the column 'region', but X has no column names"),
        ([0, 6], "asks for column 6, but X has 6 columns"),
        (-7, "asks for column -7, but X has 6 columns"),
    ],
)
def test_columns_that_are_not_there(passthrough, message, binary):
    for method in ("fit", "fit_transform"):
        with pytest.raises(ValueError, match=message):
            getattr(
                CrossFittedClassifier(GaussianNB(), passthrough=passthrough), method
            )(*binary)


def test_a_frame_with_two_columns_of_one_name_is_refused(binary):
    pd = pytest.importorskip("pandas")
    X, y = binary
    frame = pd.DataFrame(X, columns=[*"abcde", "crossfittedclassifier_1"])
    cross_fitted = CrossFittedClassifier(GaussianNB(), passthrough=[5])
    with pytest.raises(ValueError, match="several columns the same name"):
        cross_fitted.fit_transform(frame, y)


# Names and output containers
# --------------------------------------------------------------------------------------


def test_one_name_a_score(binary, iris):
    X, y = iris
    named = CrossFittedClassifier(GaussianNB()).fit(X, np.array(["a", "b", "c"])[y])
    assert named.get_feature_names_out().tolist() == [
        f"crossfittedclassifier_{label}" for label in "abc"
    ]
    X, y = binary
    cross_fitted = CrossFittedClassifier(LinearSVC(), passthrough=[1, -1]).fit(X, y)
    assert cross_fitted.get_feature_names_out().tolist() == [
        "crossfittedclassifier_1",
        "x1",
        "x5",
    ]
    assert cross_fitted.get_feature_names_out(list("abcdef")).tolist() == [
        "crossfittedclassifier_1",
        "b",
        "f",
    ]
    with pytest.raises(ValueError, match="input_features should have length"):
        cross_fitted.get_feature_names_out(["a"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("passthrough", [False, [0]])
def test_set_output(library, passthrough, iris):
    frame_library = pytest.importorskip(library)
    X, y = iris
    cross_fitted = CrossFittedClassifier(
        GaussianNB(), passthrough=passthrough
    ).set_output(transform=library)
    for result in (cross_fitted.fit_transform(X, y), cross_fitted.transform(X)):
        assert isinstance(result, frame_library.DataFrame)
        assert list(result.columns) == cross_fitted.get_feature_names_out().tolist()


def test_names_reach_the_end_of_a_pipeline(iris):
    pipeline = make_pipeline(CrossFittedClassifier(GaussianNB()), PlattScaling()).fit(
        *iris
    )
    assert pipeline[:-1].get_feature_names_out().tolist() == [
        f"crossfittedclassifier_{k}" for k in range(3)
    ]


# Metadata
# --------------------------------------------------------------------------------------


@pytest.fixture
def grouped():
    """Groups of eight rows with the same features and label: a tree knows the label of
    a group that it has seen.
    """
    generator = np.random.default_rng(0)
    groups = np.tile(np.arange(30), 8)
    return (
        generator.normal(size=(30, 2))[groups],
        generator.permutation(30)[groups] % 2,
        groups,
    )


def test_groups_reach_the_splitter(grouped):
    X, y, groups = grouped
    tree, cv = DecisionTreeClassifier(random_state=0), GroupKFold(5)
    expected = plain_loop(tree, X, y, cv.split(X, y, groups), "predict_proba")
    assert 0.2 < expected[np.arange(240), y].mean() < 0.8  # without the groups it is 1
    np.testing.assert_array_equal(
        CrossFittedClassifier(tree).fit_transform(X, y)[np.arange(240), y], 1
    )

    cross_fitted = CrossFittedClassifier(tree, cv=cv)
    np.testing.assert_array_equal(
        cross_fitted.fit_transform(X, y, groups=groups), expected
    )
    np.testing.assert_array_equal(
        cross_fitted.fit_transform(X, y, groups=groups.tolist()), expected
    )
    splits = list(cv.split(X, y, groups))
    np.testing.assert_array_equal(
        CrossFittedClassifier(tree, cv=splits).fit_transform(X, y), expected
    )
    with config_context(enable_metadata_routing=True):
        np.testing.assert_array_equal(
            cross_fitted.fit_transform(X, y, groups=groups), expected
        )
    assert cross_fitted.fit(X, y, groups=groups).estimator_.get_n_leaves() > 1
    with pytest.raises(ValueError, match="groups"):
        cross_fitted.fit_transform(X, y)


@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_splitter_through_a_search(routing, grouped):
    X, y, groups = grouped
    pipeline = make_pipeline(
        CrossFittedClassifier(DecisionTreeClassifier(random_state=0), cv=GroupKFold(3)),
        HistogramBinning(binning=2),
    )
    name = "groups" if routing else "crossfittedclassifier__groups"
    with config_context(enable_metadata_routing=routing):
        pipeline.fit(X, y, **{name: groups})
        expected = CrossFittedClassifier(
            DecisionTreeClassifier(random_state=0), cv=GroupKFold(3)
        )
        scores = expected.fit_transform(X, y, groups=groups)
        np.testing.assert_array_equal(
            pipeline.predict_proba(X),
            HistogramBinning(binning=2)
            .fit(scores, y)
            .predict_proba(expected.transform(X)),
        )
        splits = GroupKFold(2) if routing else list(GroupKFold(2).split(X, y, groups))
        search = GridSearchCV(
            pipeline,
            {"histogrambinning__binning": [1, 2]},
            cv=splits,
            error_score="raise",
        )
        search.fit(X, y, **{name: groups})
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_sample_weight_reaches_every_fit(binary):
    X, y = binary
    weight = np.random.default_rng(0).integers(1, 5, len(y)).astype(float)
    cv = StratifiedKFold(3)
    expected = plain_loop(GaussianNB(), X, y, cv.split(X, y), "predict_proba", weight)
    for given in (weight, weight.tolist()):
        cross_fitted = CrossFittedClassifier(GaussianNB(), cv=cv)
        np.testing.assert_allclose(
            cross_fitted.fit_transform(X, y, sample_weight=given), expected, rtol=1e-12
        )
        np.testing.assert_array_equal(
            cross_fitted.transform(X),
            GaussianNB().fit(X, y, sample_weight=weight).predict_proba(X),
        )
    pipeline = make_pipeline(CrossFittedClassifier(GaussianNB(), cv=cv), PlattScaling())
    pipeline.fit(
        X,
        y,
        crossfittedclassifier__sample_weight=weight,
        plattscaling__sample_weight=weight,
    )
    platt = PlattScaling().fit(expected, y, sample_weight=weight)
    np.testing.assert_allclose(
        pipeline.predict_proba(X),
        platt.predict_proba(cross_fitted.transform(X)),
        rtol=1e-9,
    )


def test_sample_weight_is_routed_by_request(binary):
    X, y = binary
    weight = np.arange(len(y)) % 4 + 1.0
    expected = CrossFittedClassifier(GaussianNB()).fit_transform(
        X, y, sample_weight=weight
    )
    with config_context(enable_metadata_routing=True):
        requesting = CrossFittedClassifier(
            GaussianNB().set_fit_request(sample_weight=True)
        )
        np.testing.assert_array_equal(
            requesting.fit_transform(X, y, sample_weight=weight), expected
        )
        pipeline = make_pipeline(
            requesting, PlattScaling().set_fit_request(sample_weight=True)
        )
        pipeline.fit(X, y, sample_weight=weight)
        platt = PlattScaling().fit(expected, y, sample_weight=weight)
        scores = GaussianNB().fit(X, y, sample_weight=weight).predict_proba(X)
        np.testing.assert_allclose(
            pipeline.predict_proba(X), platt.predict_proba(scores), rtol=1e-9
        )

        ignoring = CrossFittedClassifier(
            GaussianNB().set_fit_request(sample_weight="other")
        )
        np.testing.assert_array_equal(
            ignoring.fit_transform(X, y, other=weight), expected
        )
        with pytest.raises(TypeError, match="sample_weight"):
            ignoring.fit_transform(X, y, sample_weight=weight)


def test_routes_are_declared():
    with config_context(enable_metadata_routing=True):
        estimator = GaussianNB().set_fit_request(sample_weight=True)
        routing = CrossFittedClassifier(
            estimator, cv=GroupKFold()
        ).get_metadata_routing()
        for method in ("fit", "fit_transform"):
            assert routing.consumes(method, ["sample_weight", "groups", "other"]) == {
                "sample_weight",
                "groups",
            }


@pytest.mark.parametrize(
    "weight", [np.ones(3), np.full(120, np.nan), np.zeros(120), -np.ones(120)]
)
def test_weights_that_are_none(weight, binary):
    with pytest.raises(ValueError, match="sample_weight"):
        CrossFittedClassifier(GaussianNB()).fit_transform(*binary, sample_weight=weight)


# Searches
# --------------------------------------------------------------------------------------


def test_a_cached_search_fits_the_classifier_cv_plus_one_times_a_split(
    binary, tmp_path
):
    # Two outer splits and the refit on all rows, each 4 folds + 1 = 15 fits, for 1
    # candidate as for 6.
    X, y = binary
    for binnings in ([2], [2, 3, 4, 5, 6, 7]):
        CountedFits.fits.clear()
        pipeline = Pipeline(
            [
                ("scores", CrossFittedClassifier(CountedFits(), cv=4)),
                ("bins", HistogramBinning()),
            ],
            memory=str(tmp_path / f"{len(binnings)} candidates"),
        )
        search = GridSearchCV(
            pipeline, {"bins__binning": binnings}, cv=2, error_score="raise"
        ).fit(X, y)
        assert len(search.cv_results_["params"]) == len(binnings)
        assert sorted(CountedFits.fits) == sorted(
            [45, 45, 45, 45, 60] * 2 + [90, 90, 90, 90, 120]
        )


def test_a_cached_pipeline_equals_one_that_is_not(binary, tmp_path):
    X, y = binary
    steps = [
        ("scores", CrossFittedClassifier(GaussianNB())),
        ("bins", HistogramBinning(binning=4)),
    ]
    expected = Pipeline(steps).fit(X, y).predict_proba(X)
    for _ in range(2):
        cached = Pipeline(clone(Pipeline(steps)).steps, memory=str(tmp_path)).fit(X, y)
        np.testing.assert_array_equal(cached.predict_proba(X), expected)


@pytest.mark.slow
def test_a_search_over_the_classifier(binary):
    search = GridSearchCV(
        make_pipeline(CrossFittedClassifier(LogisticRegression()), PlattScaling()),
        {
            "crossfittedclassifier__estimator__C": [1e-4, 1.0],
            "crossfittedclassifier__cv": [2, 5],
        },
        scoring="neg_log_loss",
        error_score="raise",
    ).fit(*binary)
    assert search.best_params_["crossfittedclassifier__estimator__C"] == 1.0


# Bad input
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        (
            {"response_method": "predict"},
            ValueError,
            "response_method must be one of 'auto'",
        ),
        ({"estimator": None}, TypeError, "estimator must be a classifier, found None"),
        ({"estimator": GaussianNB}, TypeError, "estimator must be a classifier"),
        (
            {"estimator": CountVectorizer()},
            TypeError,
            "predict_proba or decision_function, but CountVectorizer",
        ),
        ({"cv": "five"}, ValueError, "cv"),
    ],
)
def test_bad_parameters(params, error, message, binary):
    with pytest.raises(error, match=message):
        CrossFittedClassifier(**{"estimator": GaussianNB(), **params}).fit_transform(
            *binary
        )


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((0, 2)), [], "X has no rows"),
        (np.zeros((4, 2)), [0, 1, 0], "3 rows but X has 4"),
        (np.zeros((4, 2)), [1, 1, 1, 1], "only one class"),
        (np.zeros((4, 2)), [0.5, 0.7, 0.1, 0.2], "Unknown label type"),
        (np.zeros((4, 2)), None, "y is None"),
        (np.zeros((4, 2)), [0, 1, np.nan, 1], "row 2"),
    ],
)
def test_bad_data(X, y, message):
    for method in ("fit", "fit_transform"):
        with pytest.raises(ValueError, match=message):
            getattr(CrossFittedClassifier(GaussianNB(), cv=2), method)(X, y)
