"""What every recalibrator shares: labels, shapes and types of scores, weights,
composition, extension.
"""

import pickle
import warnings
from functools import cache

import joblib
import numpy as np
import pytest
from _catalog import RECALIBRATORS, check_each, each_of, fits_missing_class, refused
from _twins import repeated
from scipy.special import expit, logit, softmax
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from skcalib import (
    CrossFittedClassifier,
    GroupwiseRecalibrator,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    RecalibratedClassifierCV,
    Recalibrator,
    ScalingBinning,
    StackedRecalibrator,
    TemperatureScaling,
)
from skcalib.binning import BaseBinning, EqualMass, EqualWidth
from skcalib.metrics import calibration_error, reliability_curve
from skcalib.recalibrators import BinaryRecalibrator, LogitRecalibrator


def _binary(n=200):
    rng = np.random.default_rng(0)
    scores = np.round(rng.beta(0.7, 0.7, n), 3)
    return scores, (rng.random(n) < 0.2 + 0.5 * scores).astype(int)


def _many(n=240, n_classes=3):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(n_classes, 0.5), n)
    return proba, np.array(
        [rng.choice(n_classes, p=row) for row in 0.6 * proba + 0.4 / n_classes]
    )


_STACKS = (Recalibrator, StackedRecalibrator)

# Those whose map does not depend on the scale of the scores, at the training scores.
# Centered knots are means. Ties that the softmax splits by rounding are no ties any
# more for Venn-Abers. Stacks predict scores that lie between knots. Cautious ones
# choose by a threshold.
SCALE_FREE = [
    one
    for one in RECALIBRATORS
    if not (
        getattr(one, "centered", False)
        or repr(one) == "VennAbers()"
        or isinstance(one, _STACKS)
    )
]

SAMPLES = {"two classes": _binary, "three classes": _many}


@pytest.fixture(params=SAMPLES.values(), ids=SAMPLES.keys())
def sample(request):
    return request.param()


@cache
def _fit_once(text, draw):
    original = next(one for one in RECALIBRATORS if repr(one) == text)
    return clone(original).fit(*draw())


def _fitted(recalibrator, sample):
    """Return what `recalibrator`, of the catalogue, is after a fit to `sample`, one of
    `SAMPLES`: many tests read it, and none may change it.
    """
    draw = _binary if sample[0].ndim == 1 else _many
    return _fit_once(repr(recalibrator), draw)


def _expected(recalibrator, sample):
    """Return the probabilities of the scores to which `_fitted` is fitted."""
    return _fitted(recalibrator, sample).predict_proba(sample[0])


LABELS = {
    "bool": np.array([False, True]),
    "1, 2": np.array([1, 2]),
    "-1, 1": np.array([-1, 1]),
    "float": np.array([0.0, 1.0]),
    "uint8": np.array([7, 200], dtype=np.uint8),
    "str": np.array(["no", "yes"]),
    "object": np.array(["no", "yes"], dtype=object),
    "object of int": np.array([3, 5], dtype=object),
}


def test_labels_of_any_type_give_the_same_probabilities(recalibrator):
    scores, y = _binary()
    expected = _expected(recalibrator, (scores, y))
    decisions = _fitted(recalibrator, (scores, y)).predict(scores)

    def check(kind):
        names = LABELS[kind]
        found = clone(recalibrator).fit(scores, names[y])
        np.testing.assert_array_equal(found.predict_proba(scores), expected)
        assert found.classes_.tolist() == names.tolist()
        assert found.predict(scores).tolist() == names[decisions].tolist()
        found.fit(scores, names[y].tolist())
        np.testing.assert_array_equal(found.predict_proba(scores), expected)

    check_each(check, LABELS)


def test_labels_of_many_classes(recalibrator):
    scores, y = _many()
    expected = _expected(recalibrator, (scores, y))

    def check(names):
        recalibrator.fit(scores, np.array(names)[y])
        np.testing.assert_array_equal(recalibrator.predict_proba(scores), expected)
        assert recalibrator.classes_.tolist() == names

    check_each(check, [[1, 2, 3], ["b", "d", "x"], [-7.0, 0.0, 2.0]])


def test_pandas_and_polars_give_the_same(recalibrator, sample):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    scores, y = sample
    expected = _expected(recalibrator, sample)
    names = [f"score{k}" for k in range(scores.shape[1])] if scores.ndim == 2 else None
    index = np.random.default_rng(1).permutation(len(y)) + 1000
    frame = (
        pandas.Series(scores, index=index)
        if names is None
        else pandas.DataFrame(scores, index, names)
    )
    for labels in (
        pandas.Series(y, index=index[::-1]),
        pandas.Series(y, dtype="Int64"),
        pandas.Categorical(y),
    ):
        np.testing.assert_allclose(
            recalibrator.fit(frame, labels).predict_proba(frame), expected, atol=1e-7
        )
    frame = (
        polars.Series(scores)
        if names is None
        else polars.DataFrame(scores, schema=names)
    )
    np.testing.assert_allclose(
        recalibrator.fit(frame, polars.Series(y)).predict_proba(frame),
        expected,
        atol=1e-7,
    )
    if names is not None:
        assert recalibrator.feature_names_in_.tolist() == names


def test_one_and_two_columns_are_the_same_problem(recalibrator):
    scores, y = _binary()
    expected = _expected(recalibrator, (scores, y))
    for columns in (scores[:, None], np.column_stack((1 - scores, scores))):
        np.testing.assert_allclose(
            recalibrator.fit(columns, y).predict_proba(columns), expected, atol=1e-9
        )
    log_odds = logit(np.clip(scores, 1e-3, 1 - 1e-3))
    recalibrator.set_params(input="logit")
    expected = clone(recalibrator).fit(log_odds, y).predict_proba(log_odds)
    for columns in (log_odds[:, None], np.column_stack((0 * log_odds, log_odds))):
        np.testing.assert_allclose(
            recalibrator.fit(columns, y).predict_proba(columns), expected, atol=1e-9
        )


@pytest.mark.parametrize("original", each_of(SCALE_FREE))
def test_logits_are_probabilities_on_another_scale(original, sample):
    # Methods on probabilities see the softmax; those on the scale that is given see the
    # same order for two classes.
    scores, y = sample
    recalibrator = clone(original)
    scores = np.clip(scores, 0.01, 0.99)
    scores = scores if scores.ndim == 1 else scores / scores.sum(axis=1, keepdims=True)
    logits = logit(scores) if scores.ndim == 1 else np.log(scores) + 3
    expected = clone(recalibrator).fit(scores, y).predict_proba(scores)
    found = recalibrator.set_params(input="logit").fit(logits, y).predict_proba(logits)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_containers_and_types_of_scores_give_the_same(recalibrator, sample):
    scores, y = sample
    scores = np.round(scores * 64) / 64  # exact in float16
    scores = (
        scores
        if scores.ndim == 1
        else np.column_stack((scores[:, :2] / 2, 1 - scores[:, :2].sum(axis=1) / 2))
    )
    expected = clone(recalibrator).fit(scores, y).predict_proba(scores)
    for given in (
        scores.tolist(),
        scores.astype(np.float32),
        scores.astype(np.float16),
        scores.astype(object),
        scores.astype(np.longdouble),
        np.asfortranarray(scores),
        np.repeat(scores, 2, axis=0)[::2],
    ):
        found = clone(recalibrator).fit(given, y).predict_proba(given)
        np.testing.assert_allclose(found, expected, atol=1e-6)
        assert found.dtype == np.float64


def test_integers_are_scores(recalibrator):
    scores, y = np.array([0, 1, 1, 0, 1, 0, 1, 0]), np.array([0, 1, 0, 0, 1, 1, 1, 0])
    expected = (
        clone(recalibrator).fit(scores.astype(float), y).predict_proba([0.0, 1.0])
    )
    np.testing.assert_array_equal(
        recalibrator.fit(scores, y).predict_proba([0, 1]), expected
    )


def test_rows_sum_to_one(recalibrator, sample):
    scores, y = sample
    proba = _expected(recalibrator, sample)
    assert proba.shape == (len(y), y.max() + 1)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-12)
    assert proba.min() >= 0
    assert proba.max() <= 1


def test_probabilities_stay_inside_at_the_ends(recalibrator):
    scores, y = (
        np.array([0.0, 0, 1, 1, 0.5, 0.5, 1e-300, 1 - 2**-53]),
        np.array([0, 1, 0, 1, 0, 1, 0, 1]),
    )
    proba = recalibrator.fit(scores, y).predict_proba(
        np.array([0.0, 5e-324, 1e-300, 0.5, 1 - 2**-53, 1.0])
    )
    assert np.isfinite(proba).all()
    assert proba.min() >= 0
    if hasattr(recalibrator, "slope_") or hasattr(recalibrator, "temperature_"):
        assert np.isfinite(log_loss([0, 1] * 3, proba))
        assert 0 < proba.min() <= proba.max() < 1


def test_predict_is_the_most_probable_class(recalibrator, sample):
    scores, _ = sample
    fitted = _fitted(recalibrator, sample)
    most_probable = fitted.predict_proba(scores).argmax(axis=1)
    if getattr(recalibrator, "multiclass", None) == "top_label" and scores.ndim == 2:
        most_probable = scores.argmax(axis=1)
    np.testing.assert_array_equal(
        fitted.predict(scores), fitted.classes_[most_probable]
    )


def test_fit_returns_self_and_changes_no_parameter(recalibrator, sample):
    before = repr(recalibrator.get_params())
    assert recalibrator.fit(*sample) is recalibrator
    assert repr(recalibrator.get_params()) == before
    check_is_fitted(recalibrator)


def test_input_is_left_alone(recalibrator, sample):
    scores, y = sample
    copies = scores.copy(), y.copy()
    recalibrator.fit(scores, y).predict_proba(scores)
    np.testing.assert_array_equal(scores, copies[0])
    np.testing.assert_array_equal(y, copies[1])


def test_read_only_memory(recalibrator, sample, tmp_path):
    scores, y = sample
    expected = _expected(recalibrator, sample)
    joblib.dump((scores, y), tmp_path / "rows")
    mapped_scores, mapped_y = joblib.load(tmp_path / "rows", mmap_mode="r")
    found = recalibrator.fit(mapped_scores, mapped_y).predict_proba(mapped_scores)
    np.testing.assert_array_equal(found, expected)


def test_pickle_and_joblib_keep_the_map(recalibrator, sample, tmp_path):
    scores, _ = sample
    fitted = _fitted(recalibrator, sample)
    joblib.dump(fitted, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "model")):
        np.testing.assert_array_equal(
            copy.predict_proba(scores), fitted.predict_proba(scores)
        )


def test_transform_is_predict_proba(recalibrator, sample):
    scores, y = sample
    fitted = _fitted(recalibrator, sample)
    proba = fitted.predict_proba(scores)
    np.testing.assert_array_equal(fitted.transform(scores), proba)
    np.testing.assert_array_equal(recalibrator.fit_transform(scores, y), proba)


def test_width_and_names_of_the_scores_are_kept(recalibrator, sample):
    scores, y = sample
    recalibrator.fit(scores, np.array(["a", "b", "c"])[y])
    assert recalibrator.n_features_in_ == (1 if scores.ndim == 1 else 3)
    prefix = type(recalibrator).__name__.lower()
    names = [f"{prefix}_{label}" for label in "abc"[: len(recalibrator.classes_)]]
    assert recalibrator.get_feature_names_out().tolist() == names
    assert not hasattr(recalibrator, "feature_names_in_")


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output(recalibrator, sample, container):
    library = pytest.importorskip(container)
    scores, y = sample
    scores = scores if scores.ndim == 2 else scores[:, None]
    frame = library.DataFrame(
        scores,
        **{
            "schema" if container == "polars" else "columns": list("abc")[
                : scores.shape[1]
            ]
        },
    )
    out = recalibrator.set_output(transform=container).fit(frame, y).transform(frame)
    assert isinstance(out, library.DataFrame)
    assert list(out.columns) == recalibrator.get_feature_names_out().tolist()
    np.testing.assert_array_equal(np.asarray(out), recalibrator.predict_proba(frame))
    # a chain of recalibrators hands the names on
    chain = (
        make_pipeline(recalibrator, HistogramBinning(3))
        .set_output(transform=container)
        .fit(frame, y)
    )
    assert (
        list(chain.transform(frame).columns)
        == chain[-1].get_feature_names_out().tolist()
    )


# --- Weights


def test_integer_weights_are_repeated_rows(weighted_recalibrator, sample):
    scores, y = sample
    weights = np.random.default_rng(1).integers(0, 4, len(y))
    found = clone(weighted_recalibrator).fit(scores, y, weights).predict_proba(scores)
    expected = weighted_recalibrator.fit(*repeated(weights, scores, y)).predict_proba(
        scores
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_rows_of_weight_zero_change_nothing(weighted_recalibrator, sample):
    scores, y = sample
    keep = np.arange(len(y)) % 3 > 0
    found = (
        clone(weighted_recalibrator).fit(scores, y, 2.0 * keep).predict_proba(scores)
    )
    expected = weighted_recalibrator.fit(
        scores[keep], y[keep], np.full(keep.sum(), 2.0)
    ).predict_proba(scores)
    np.testing.assert_array_equal(found, expected)


def test_weights_of_one_are_no_weights(weighted_recalibrator, sample):
    scores, y = sample
    found = (
        clone(weighted_recalibrator)
        .fit(scores, y, sample_weight=np.ones(len(y)))
        .predict_proba(scores)
    )
    expected = _expected(weighted_recalibrator, sample)
    np.testing.assert_allclose(found, expected, atol=1e-9)


# --- Many classes


def test_all_zero_row_becomes_uniform():
    # Each one-vs-rest map says 0 below 1/2: the row (.3, .3, .4) gets three zeros.
    scores, y = np.repeat(np.eye(3) * 0.7 + 0.1, 2, axis=0), [0, 0, 1, 1, 2, 2]
    model = HistogramBinning(EqualWidth(2)).fit(scores, y)
    np.testing.assert_allclose(model.predict_proba([[0.1, 0.1, 0.8]]), [[0, 0, 1]])
    np.testing.assert_allclose(model.predict_proba([[0.3, 0.3, 0.4]]), 1 / 3)
    raw = model.set_params(normalize=False).fit(scores, y)
    np.testing.assert_array_equal(raw.predict_proba([[0.3, 0.3, 0.4]]), 0)


@pytest.mark.parametrize(
    "model",
    [
        HistogramBinning(5),
        IsotonicCalibration(),
        PlattScaling(clip=None, class_pooling=0),
        ScalingBinning(binning=5),
    ],
)
def test_one_vs_rest_is_a_binary_fit_a_class(model):
    scores, y = _many()
    raw = clone(model).set_params(normalize=False).fit(scores, y).predict_proba(scores)
    for k in range(3):
        alone = clone(model).fit(scores[:, k], y == k).predict_proba(scores[:, k])[:, 1]
        np.testing.assert_allclose(raw[:, k], alone, atol=1e-12)
    normalized = clone(model).fit(scores, y).predict_proba(scores)
    np.testing.assert_allclose(normalized, raw / raw.sum(axis=1, keepdims=True))
    # accepts rows that do not sum to 1
    calibration_error(y, raw, multiclass="marginal", binning=5)


@pytest.mark.parametrize(
    "model",
    [
        HistogramBinning(5),
        IsotonicCalibration(),
        PlattScaling(clip=None),
        ScalingBinning(binning=5),
    ],
)
def test_top_label_calibrates_the_confidence_and_keeps_the_decision(model):
    scores, y = _many()
    model.set_params(multiclass="top_label").fit(scores, y)
    predicted, confidence = scores.argmax(axis=1), scores.max(axis=1)
    alone = clone(model).fit(confidence, predicted == y).predict_proba(confidence)[:, 1]
    proba = model.predict_proba(scores)
    rows = np.arange(len(y))
    np.testing.assert_allclose(proba[rows, predicted], alone)
    np.testing.assert_array_equal(model.predict(scores), predicted)
    others = scores.copy()
    others[rows, predicted] = 0
    expected = others / others.sum(axis=1, keepdims=True) * (1 - alone)[:, None]
    expected[rows, predicted] = alone
    np.testing.assert_allclose(proba, expected, atol=1e-12)


def test_top_label_keeps_the_decision_where_the_spread_would_change_it():
    # Right in 1 of 4 cases at .6: the class predicted gets 1/4 and the other of two
    # that matter more.
    scores = np.tile([0.6, 0.3, 0.1], (4, 1))
    model = HistogramBinning(1, multiclass="top_label", classes=[0, 1, 2]).fit(
        scores, [0, 1, 1, 2]
    )
    np.testing.assert_allclose(
        model.predict_proba(scores[:1]), [[0.25, 0.5625, 0.1875]]
    )
    assert model.predict(scores[:1]).tolist() == [0]


def test_scaling_never_says_zero_for_a_class_without_a_score():
    scores = np.array(
        [[0.9, 0.1, 0], [0.2, 0.8, 0], [0, 0.3, 0.7], [0.5, 0.5, 0], [1, 0, 0]]
    )
    for multiclass in ("ovr", "top_label"):
        proba = (
            PlattScaling(multiclass=multiclass)
            .fit(scores, [0, 1, 2, 1, 0])
            .predict_proba(scores)
        )
        assert 0 < proba.min() <= proba.max() < 1


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_probabilities_that_are_said_to_be_logits(columns):
    proba, y = _many(n_classes=max(columns, 2))
    scores = proba[:, -columns:]
    with pytest.warns(
        UserWarning, match='looks like probabilities.*input="probability"'
    ):
        TemperatureScaling(input="logit").fit(scores, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TemperatureScaling(input="logit").fit(np.log(scores), y)
        TemperatureScaling(input="logit").fit(scores + (1 if columns > 1 else 0.5), y)
        TemperatureScaling(input="logit").fit(np.zeros_like(scores), y)


def test_features_in_place_of_scores_name_the_way():
    X = np.random.default_rng(0).normal(size=(40, 3))
    with refused(
        ValueError, "[0, 1]", 'input="logit"', "CrossFittedClassifier(classifier)"
    ):
        PlattScaling().fit(X, np.arange(40) % 3)
    with refused(ValueError, "[0, 1]", "CrossFittedClassifier(classifier)"):
        make_pipeline(LinearDiscriminantAnalysis(), PlattScaling()).fit(
            X, np.arange(40) % 3
        )


def test_labels_that_can_only_be_column_numbers(recalibrator):
    proba, y = _many(n=60, n_classes=5)
    y = np.where(y == 3, 0, y)
    named = clone(recalibrator).set_params(classes=range(5))
    if not fits_missing_class(recalibrator):
        with refused(ValueError, "needs rows of every class", "class 3"):
            recalibrator.fit(proba, y)
        return
    expected, found = named.fit(proba, y), recalibrator.fit(proba, y)
    assert found.classes_.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(
        found.predict_proba(proba), expected.predict_proba(proba)
    )


def test_labels_that_could_mean_other_columns():
    proba, y = _many(n=60, n_classes=4)
    shifted = np.where(y == 0, 1, y)  # {1, 2, 3} for four columns
    for labels in (
        shifted,
        shifted.astype(float) - 1,
        np.where(y == 3, 7, 0),
        np.where(y == 3, -1, 0),
        y > 1,
    ):
        with refused(ValueError, "4 classes", "classes="):
            PlattScaling().fit(proba, labels)
    with refused(ValueError, "only the label 0", "classes=[0, 1]"):
        PlattScaling().fit(proba[:, 0], np.zeros(60, int))
    many = np.random.default_rng(0).dirichlet(np.ones(1000), 300)
    # a type that cannot hold the classes
    labels = np.arange(300).astype(np.uint8) % 200
    assert TemperatureScaling().fit(many, labels).classes_.tolist() == list(range(1000))


def test_a_clip_of_ones_own_is_left_alone():
    class Capped(BinaryRecalibrator):
        def __init__(
            self,
            clip=5.0,
            *,
            input="probability",
            classes=None,
            multiclass="ovr",
            normalize=True,
        ):
            self.clip = clip
            self.input = input
            self.classes = classes
            self.multiclass = multiclass
            self.normalize = normalize

        _scale = "log_odds"

        def _fit_binary(self, log_odds, labels, sample_weight):
            self.largest_ = float(np.abs(log_odds).max())

        def _predict_binary(self, log_odds):
            return expit(np.clip(log_odds, -self.clip, self.clip))

    model = Capped(clip=5.0).fit([0.0, 1.0], [0, 1])
    assert model.largest_ == pytest.approx(52 * np.log(2))
    assert model.predict_proba([1.0])[0, 1] == pytest.approx(expit(5))
    assert not hasattr(model, "clip_")


def test_a_class_missing_from_the_calibration_set(recalibrator):
    scores, y = _many()
    rows = y != 1
    recalibrator.set_params(classes=["a", "b", "c"])
    names = np.array(["a", "b", "c"])
    if fits_missing_class(recalibrator):
        proba = recalibrator.fit(scores[rows], names[y[rows]]).predict_proba(scores)
        assert proba.shape == (len(y), 3)
        assert recalibrator.classes_.tolist() == ["a", "b", "c"]
        np.testing.assert_allclose(proba.sum(axis=1), 1)
    else:
        with refused(ValueError, type(recalibrator).__name__, "'b'"):
            recalibrator.fit(scores[rows], names[y[rows]])


def test_classes_must_be_those_of_the_columns():
    scores, y = _many()
    for classes, word in (
        (["b", "a", "c"], "sorted"),
        (["a", "b"], "2 labels"),
        (["a", "a", "b"], "unique"),
    ):
        with refused(ValueError, "classes", word):
            PlattScaling(classes=classes).fit(scores, np.array(["a", "b", "c"])[y])


# --- Parameters and composition


def test_nested_parameters_of_a_default_object():
    model = HistogramBinning()
    assert model.binning is None
    assert repr(model.set_params(binning__n_bins=7).binning) == "EqualMass(n_bins=7)"
    assert (
        HistogramBinning(EqualWidth(3)).set_params(binning__n_bins=7).binning.n_bins
        == 7
    )
    both = HistogramBinning(EqualWidth(3)).set_params(
        binning=EqualMass(4), binning__n_bins=9
    )
    assert repr(both.binning) == "EqualMass(n_bins=9)"
    reset = HistogramBinning(EqualWidth(3)).set_params(binning=None, binning__n_bins=9)
    assert repr(reset.binning) == "EqualMass(n_bins=9)"
    assert (
        clone(HistogramBinning())
        .set_params(binning__n_bins=7)
        .get_params()["binning__n_bins"]
        == 7
    )
    with refused(ValueError, "binning=5", "EqualMass(n_bins=10)"):
        HistogramBinning(5).set_params(binning__n_bins=7)
    with pytest.raises(ValueError, match="Invalid parameter 'bins'"):
        HistogramBinning().set_params(binning__bins=7)
    with pytest.raises(ValueError, match="Invalid parameter 'bin'"):
        HistogramBinning().set_params(bin__n_bins=7)


@pytest.mark.slow
@pytest.mark.parametrize(
    "grid",
    [
        {"histogrambinning__binning__n_bins": [5, 10, 20]},
        {
            "histogrambinning__binning": [EqualMass(), EqualWidth()],
            "histogrambinning__binning__n_bins": [5, 10],
        },
        {"histogrambinning__binning": [5, 10, None]},
    ],
)
def test_search_over_bins(grid):
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(
        CrossFittedClassifier(GaussianNB(), cv=3), HistogramBinning()
    )
    search = GridSearchCV(pipeline, grid, scoring="neg_brier_score", cv=3).fit(X, y)
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    assert search.best_estimator_[-1].bin_values_.shape == (
        search.best_estimator_[-1].n_bins_,
    )


def test_recalibrators_chain(recalibrator, sample):
    scores, y = sample
    chain = make_pipeline(clone(recalibrator), IsotonicCalibration()).fit(scores, y)
    first = _expected(recalibrator, sample)
    expected = IsotonicCalibration().fit(first, y).predict_proba(first)
    np.testing.assert_array_equal(chain.predict_proba(scores), expected)
    assert chain.score(scores, y) == np.mean(chain.predict(scores) == y)


def test_cross_val_predict_of_scores(recalibrator, sample):
    scores, y = sample
    scores = scores if scores.ndim == 2 else scores[:, None]
    proba = cross_val_predict(recalibrator, scores, y, cv=3, method="predict_proba")
    np.testing.assert_allclose(proba.sum(axis=1), 1)


@pytest.mark.parametrize("original", each_of(SCALE_FREE))
def test_decision_function_is_a_logit(original):
    recalibrator = clone(original)
    X, y = load_breast_cancer(return_X_y=True)
    model = LogisticRegression(C=1e-4, max_iter=5000).fit(X[::2], y[::2])
    on_logits = (
        clone(recalibrator)
        .set_params(input="logit")
        .fit(model.decision_function(X[1::2]), y[1::2])
    )
    found = on_logits.predict_proba(model.decision_function(X))
    expected = recalibrator.fit(model.predict_proba(X[1::2]), y[1::2]).predict_proba(
        model.predict_proba(X)
    )
    agreement = np.mean(np.abs(found - expected) < 0.02)
    assert agreement > 0.95  # the scale between the knots differs for isotonic maps


# --- Extension in a few lines


class Offset(BinaryRecalibrator):
    """Shift of the log-odds to the base rate: a recalibrator in two short methods."""

    _scale = "log_odds"

    def __init__(
        self, *, input="probability", classes=None, multiclass="ovr", normalize=True
    ):
        self.input = input
        self.classes = classes
        self.multiclass = multiclass
        self.normalize = normalize

    def _fit_binary(self, log_odds, labels, sample_weight):
        self.offset_ = float(
            logit(np.average(labels, weights=sample_weight))
            - np.average(log_odds, weights=sample_weight)
        )

    def _predict_binary(self, log_odds):
        return expit(log_odds + self.offset_)


class Thirds(BaseBinning):
    """Three bins: a strategy in one method."""

    def _edges(self, scores, y, sample_weight):
        return np.array([0, 1 / 3, 2 / 3, 1])


def test_a_recalibrator_of_a_user_works_everywhere(sample):
    scores, y = sample
    names = np.array(["a", "b", "c"])
    weights = np.arange(len(y)) % 3
    model = clone(Offset()).fit(scores, names[y], weights)
    assert np.ndim(model.offset_) == (0 if scores.ndim == 1 else 1)
    expected = Offset().fit(*repeated(weights, scores, names[y])).predict_proba(scores)
    np.testing.assert_allclose(model.predict_proba(scores), expected)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict(scores), model.predict(scores)
    )
    binned = ScalingBinning(Offset(), 4).fit(scores, y)
    scaler = binned.recalibrator_ if scores.ndim == 1 else binned.recalibrator_[0]
    assert isinstance(scaler, Offset)
    make_pipeline(Offset(), TemperatureScaling()).fit(scores, y).predict_proba(scores)
    logits = (
        logit(np.clip(scores, 0.01, 0.99))
        if scores.ndim == 1
        else np.log(np.clip(scores, 0.01, 1))
    )
    Offset(input="logit", multiclass="top_label").fit(logits, y).predict_proba(logits)
    with refused(ValueError, "X", "NaN"):
        model.predict_proba(np.full_like(scores, np.nan))


def test_a_strategy_of_a_user_works_everywhere(sample):
    scores, y = sample
    model = HistogramBinning(Thirds()).fit(scores, y)
    edges = model.bin_edges_ if scores.ndim == 1 else model.bin_edges_[0]
    assert edges.tolist() == [0, 1 / 3, 2 / 3, 1]
    ScalingBinning(binning=Thirds(), input="logit").fit(
        logit(np.clip(_binary()[0], 0.01, 0.99)), _binary()[1]
    )
    assert calibration_error(y, scores, binning=Thirds()) == calibration_error(
        y, scores, binning=clone(Thirds())
    )
    assert reliability_curve(y, scores, binning=Thirds()).n_bins == 3
    assert isinstance(Thirds(), BaseEstimator)


def test_softmax_of_logits_is_what_binary_methods_see():
    scores, y = _many()
    logits = np.log(scores + 1e-3)
    expected = (
        PlattScaling()
        .fit(softmax(logits, axis=1), y)
        .predict_proba(softmax(logits, axis=1))
    )
    np.testing.assert_allclose(
        PlattScaling(input="logit").fit(logits, y).predict_proba(logits), expected
    )


def test_codes_cannot_be_written_to_and_those_of_logits_have_room():
    class Codes(LogitRecalibrator):
        def __init__(self, *, input="probability", classes=None):
            self.input = input
            self.classes = classes

        def _fit_logits(self, logits, codes, sample_weight):
            self.codes_dtype_ = codes.dtype

        def _predict_logits(self, logits):
            return logits

    class Writes(Codes):
        def _fit_scores(self, scores, codes, sample_weight):
            codes[:] = 0

    scores, y = [[0.1, 0.9], [0.8, 0.2]], np.array([True, False])
    assert Codes().fit(scores, y).codes_dtype_ == np.intp
    with pytest.raises(ValueError, match="read-only"):
        Writes().fit(scores, y)
    assert y.tolist() == [True, False]


def test_a_repeated_column_name_is_refused_by_name():
    pandas = pytest.importorskip("pandas")
    proba, y = _many(n=60)
    table = pandas.DataFrame(proba, columns=["a", "b", "a"])
    for fit in (
        lambda: PlattScaling().fit(table, y),
        lambda: CrossFittedClassifier(GaussianNB()).fit_transform(table, y),
        lambda: RecalibratedClassifierCV(GaussianNB()).fit(table, y),
        lambda: GroupwiseRecalibrator(groups="b").fit(table, y > 0),
    ):
        with refused(ValueError, "X has 2 columns named 'a'"):
            fit()
