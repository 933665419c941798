"""RecalibratedClassifierCV against scikit-learn's, against a plain loop, and with every
recalibrator.
"""

import inspect
import pickle

import numpy as np
import pytest
from _catalog import refused
from scipy.special import expit
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import (
    load_iris,
    make_classification,
    make_multilabel_classification,
)
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import linear_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from skcalib import (
    CrossFittedClassifier,
    GroupwiseRecalibrator,
    HistogramBinning,
    IsotonicCalibration,
    MulticalibratedRecalibrator,
    PlattScaling,
    RecalibratedClassifierCV,
    Recalibrator,
    ScalingBinning,
    StackedRecalibrator,
    TemperatureScaling,
)
from skcalib._rows.pooling import POOLING_EXPONENT

RECALIBRATORS = [
    HistogramBinning(binning=3),
    IsotonicCalibration(),
    PlattScaling(),
    ScalingBinning(binning=3),
    TemperatureScaling(),
]


# scikit-learn 1.6 makes checks from classes with fewer rows than the five folds, which
# StratifiedKFold remarks upon.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The least populated class in y")
@parametrize_with_checks(
    [
        # two folds: more of them only repeat the fits
        RecalibratedClassifierCV(
            LogisticRegression(), recalibrator=PlattScaling(), ensemble=True, cv=2
        )
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The least populated class in y")
@parametrize_with_checks(
    [
        RecalibratedClassifierCV(),
        RecalibratedClassifierCV(
            LogisticRegression(), recalibrator=IsotonicCalibration(), ensemble=False
        ),
        RecalibratedClassifierCV(LogisticRegression(), recalibrator=HistogramBinning()),
    ]
)
def test_estimator_checks_of_other_forms(estimator, check):
    check(estimator)


@pytest.fixture
def binary():
    return make_classification(300, 8, flip_y=0.2, class_sep=0.6, random_state=0)


@pytest.fixture
def iris():
    X, y = load_iris(return_X_y=True)
    return (
        StandardScaler().fit_transform(X)
        + np.random.default_rng(0).normal(size=X.shape),
        y,
    )


@pytest.fixture
def weight():
    return np.random.default_rng(1).integers(0, 4, 300).astype(float)


# The same as scikit-learn where both exist
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("method", "recalibrator"),
    [("sigmoid", PlattScaling()), ("isotonic", IsotonicCalibration())],
)
def test_the_probabilities_of_calibrated_classifier_cv(
    method, recalibrator, weighted, ensemble, binary, weight
):
    X, y = binary
    sample_weight = weight[::2] if weighted else None
    theirs = CalibratedClassifierCV(
        LinearSVC(random_state=0), method=method, ensemble=ensemble
    )
    ours = RecalibratedClassifierCV(
        LinearSVC(random_state=0), recalibrator=recalibrator, ensemble=ensemble
    )
    theirs, ours = (
        model.fit(X[::2], y[::2], sample_weight=sample_weight)
        for model in (theirs, ours)
    )
    expected = theirs.predict_proba(X[1::2])
    assert expected[:, 1].std() > 0.05
    # promised: 1e-4
    np.testing.assert_allclose(ours.predict_proba(X[1::2]), expected, atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X[1::2]), theirs.predict(X[1::2]))


def test_isotonic_probabilities_of_many_folds_and_of_a_frozen_classifier(binary):
    X, y = binary
    frozen = FrozenEstimator(LinearSVC(random_state=0).fit(X[::2], y[::2]))
    for estimator, cv in ((LinearSVC(random_state=0), 10), (frozen, None)):
        ensemble = cv is not None
        theirs = CalibratedClassifierCV(
            estimator, method="isotonic", cv=cv, ensemble=ensemble
        )
        ours = RecalibratedClassifierCV(
            estimator, recalibrator=IsotonicCalibration(), cv=cv, ensemble=ensemble
        )
        theirs, ours = (model.fit(X[1::2], y[1::2]) for model in (theirs, ours))
        assert len(ours.calibrated_classifiers_) == len(theirs.calibrated_classifiers_)
        np.testing.assert_allclose(
            ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9
        )


# The same as a plain loop
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "recalibrator", RECALIBRATORS, ids=lambda recalibrator: type(recalibrator).__name__
)
@pytest.mark.parametrize(
    "estimator", [GaussianNB(), LogisticRegression()], ids=["probability", "logit"]
)
@pytest.mark.parametrize("data", ["binary", "iris"])
def test_plain_loop(data, estimator, recalibrator, request):
    X, y = request.getfixturevalue(data)
    is_logit = hasattr(estimator, "decision_function")
    method = "decision_function" if is_logit else "predict_proba"
    told = clone(recalibrator).set_params(input="logit" if is_logit else "probability")
    cv = StratifiedKFold(3)

    pairs = []
    for train, test in cv.split(X, y):
        model = clone(estimator).fit(X[train], y[train])
        pairs.append((model, clone(told).fit(getattr(model, method)(X[test]), y[test])))
    expected = np.mean(
        [pair[1].predict_proba(getattr(pair[0], method)(X)) for pair in pairs], axis=0
    )
    ensemble = RecalibratedClassifierCV(
        estimator, recalibrator=recalibrator, cv=cv, ensemble=True
    ).fit(X, y)
    np.testing.assert_allclose(ensemble.predict_proba(X), expected, rtol=1e-8)
    np.testing.assert_allclose(ensemble.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(ensemble.predict(X), expected.argmax(axis=1))

    scores = cross_val_predict(estimator, X, y, cv=cv, method=method)
    model, fitted = clone(estimator).fit(X, y), clone(told).fit(scores, y)
    single = RecalibratedClassifierCV(
        estimator, recalibrator=recalibrator, cv=cv, ensemble=False
    ).fit(X, y)
    np.testing.assert_allclose(
        single.predict_proba(X),
        fitted.predict_proba(getattr(model, method)(X)),
        rtol=1e-8,
    )

    shared = RecalibratedClassifierCV(estimator, recalibrator=recalibrator, cv=cv).fit(
        X, y
    )
    models = [*(of_fold for of_fold, _ in pairs), model]
    pooled = [fitted.predict_proba(getattr(model, method)(X)) for model in models]
    # the normalised geometric mean, to the power that the package names
    powers = np.prod(np.clip(pooled, 2.0**-52, 1), axis=0) ** (POOLING_EXPONENT / 4)
    powers[np.max(pooled, axis=0) == 0] = 0  # what all exclude
    expected = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shared.predict_proba(X), expected, 1e-8, 1e-12)
    np.testing.assert_array_equal(shared.predict(X), expected.argmax(axis=1))
    assert not hasattr(shared, "gain_")


# The default
# --------------------------------------------------------------------------------------


def test_the_default_is_a_recalibrator_of_probabilities(binary):
    X, y = binary
    default = RecalibratedClassifierCV(LogisticRegression()).fit(X, y)
    scores = cross_val_predict(LogisticRegression(), X, y, method="predict_proba")
    cautious = Recalibrator(classes=[0, 1]).fit(scores, y)
    np.testing.assert_allclose(default.gain_, cautious.gain_, rtol=1e-6)
    assert type(default.chosen_) is type(cautious.chosen_)
    nothing_given = RecalibratedClassifierCV().fit(X, y)
    explicit = RecalibratedClassifierCV(
        LinearSVC(random_state=0), Recalibrator(), cv=StratifiedKFold(5)
    )
    np.testing.assert_array_equal(
        nothing_given.predict_proba(X), explicit.fit(X, y).predict_proba(X)
    )


def test_the_model_stays_as_it_is_where_nothing_is_gained():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    # what logistic regression assumes
    y = (rng.logistic(size=1500) < X.sum(axis=1)).astype(int)
    model = RecalibratedClassifierCV(LogisticRegression()).fit(X[:500], y[:500])
    assert repr(model.chosen_).startswith("Uncalibrated(")
    assert model.gain_.low < 0
    assert len(model.calibrated_classifiers_) == 1
    bare = LogisticRegression().fit(X[:500], y[:500])
    np.testing.assert_allclose(model.predict_proba(X), bare.predict_proba(X), rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X), bare.predict(X))
    kept = RecalibratedClassifierCV(FrozenEstimator(bare)).fit(X[500:], y[500:])
    np.testing.assert_allclose(kept.predict_proba(X), bare.predict_proba(X), rtol=1e-9)


def test_sure_scores_are_recalibrated_and_the_gain_is_shown(binary):
    X, y = binary
    tree = DecisionTreeClassifier(random_state=0)
    model = RecalibratedClassifierCV(tree).fit(X[:200], y[:200])
    assert type(model.chosen_) is StackedRecalibrator
    # a tree's log-loss is 36 for each row that it is wrong in
    assert model.gain_.low > 1
    assert len({id(pair.recalibrator) for pair in model.calibrated_classifiers_}) == 1
    # of five folds and of all rows
    assert len(model.calibrated_classifiers_) == 6
    after = log_loss(y[200:], model.predict_proba(X[200:]))
    assert after < 0.1 * log_loss(
        y[200:], tree.fit(X[:200], y[:200]).predict_proba(X[200:])
    )
    model.set_params(recalibrator=PlattScaling()).fit(X[:200], y[:200])
    assert not hasattr(model, "gain_")
    assert not hasattr(model, "chosen_")


@pytest.mark.slow
def test_the_default_is_never_worse_than_the_bare_model_by_more_than_noise():
    for seed in range(2):
        X, y = make_classification(
            1200, 8, n_informative=3, n_classes=2 + seed, flip_y=0.1, random_state=seed
        )
        for estimator in (
            GaussianNB(),
            LogisticRegression(),
            KNeighborsClassifier(),
            DecisionTreeClassifier(),
        ):
            losses = []
            for model in (estimator, RecalibratedClassifierCV(estimator)):
                proba = model.fit(X[:200], y[:200]).predict_proba(X[200:])
                losses.append(
                    -np.log(np.clip(proba[np.arange(1000), y[200:]], 2.0**-52, 1))
                )
            gap = losses[1] - losses[0]
            assert gap.mean() <= 2.33 * gap.std() / 1000**0.5 + 1e-9, estimator


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize(
    "recalibrator", RECALIBRATORS, ids=lambda recalibrator: type(recalibrator).__name__
)
def test_integer_weights_are_repeated_rows(recalibrator, ensemble, binary, weight):
    X, y = binary
    repeated = np.repeat(np.arange(300), weight.astype(int))
    half = np.arange(300) < 150
    splits = [(np.flatnonzero(a), np.flatnonzero(~a)) for a in (half, ~half)]
    repeated_splits = [
        (np.flatnonzero(a[repeated]), np.flatnonzero(~a[repeated]))
        for a in (half, ~half)
    ]
    # GaussianNB adds the same variance either way only if the features' variance
    # agrees.
    estimator = GaussianNB(var_smoothing=0)
    model = RecalibratedClassifierCV(
        estimator, recalibrator=recalibrator, ensemble=ensemble
    )
    weighted = clone(model).set_params(cv=splits).fit(X, y, sample_weight=weight)
    copied = clone(model).set_params(cv=repeated_splits).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(
        weighted.predict_proba(X), copied.predict_proba(X), atol=1e-7
    )


# Labels and containers
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
@pytest.mark.parametrize("recalibrator", [PlattScaling(), TemperatureScaling()])
@pytest.mark.parametrize("ensemble", [True, False])
def test_labels_of_any_kind_give_the_same_probabilities(
    labels, recalibrator, ensemble, binary
):
    X, y = binary
    model = RecalibratedClassifierCV(
        GaussianNB(), recalibrator=recalibrator, ensemble=ensemble
    )
    expected = clone(model).fit(X, y)
    named = clone(model).fit(X, labels[y].tolist())
    np.testing.assert_array_equal(named.predict_proba(X), expected.predict_proba(X))
    np.testing.assert_array_equal(named.classes_, labels)
    np.testing.assert_array_equal(named.predict(X), labels[expected.predict(X)])


def test_frames_and_series_with_any_index(binary):
    pd = pytest.importorskip("pandas")
    X, y = binary
    frame = pd.DataFrame(X, columns=list("abcdefgh"), index=np.arange(300)[::-1] + 5)
    series = pd.Series(np.array(["no", "yes"])[y], index=frame.index)
    model = RecalibratedClassifierCV().fit(
        frame, series, sample_weight=pd.Series(np.ones(300), index=frame.index)
    )
    np.testing.assert_allclose(
        model.predict_proba(frame),
        RecalibratedClassifierCV().fit(X, y).predict_proba(X),
    )
    assert model.n_features_in_ == 8
    np.testing.assert_array_equal(model.feature_names_in_, list("abcdefgh"))


def test_rows_that_are_texts():
    texts, y = ["a b", "a a", "b c", "c c"] * 5, [0, 0, 1, 1] * 5
    model = RecalibratedClassifierCV(
        make_pipeline(CountVectorizer(token_pattern=r"\w"), LinearSVC())
    ).fit(texts, y)
    np.testing.assert_array_equal(model.predict(["a a a", "c c c"]), [0, 1])
    assert not hasattr(model, "n_features_in_")


def test_a_precomputed_kernel(binary):
    X, y = binary
    kernel = RecalibratedClassifierCV(SVC(kernel="precomputed"), ensemble=False).fit(
        linear_kernel(X), y
    )
    linear = RecalibratedClassifierCV(SVC(kernel="linear"), ensemble=False).fit(X, y)
    np.testing.assert_allclose(
        kernel.predict_proba(linear_kernel(X)), linear.predict_proba(X), atol=1e-6
    )
    automatic = RecalibratedClassifierCV(SVC(kernel="precomputed")).fit(
        linear_kernel(X), y
    )
    np.testing.assert_array_equal(
        automatic.predict_proba(linear_kernel(X)),
        kernel.predict_proba(linear_kernel(X)),
    )
    with pytest.raises(ValueError, match="precomputed kernel: use ensemble=False"):
        RecalibratedClassifierCV(SVC(kernel="precomputed"), ensemble=True).fit(
            linear_kernel(X), y
        )


@pytest.mark.parametrize("ensemble", [True, False, "auto"])
@pytest.mark.slow
def test_the_same_probabilities_with_jobs_and_after_pickling(ensemble, iris):
    X, y = iris
    model = RecalibratedClassifierCV(
        GaussianNB(), PlattScaling(), cv=3, ensemble=ensemble
    ).fit(X, y)
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(
        clone(model).set_params(n_jobs=2).fit(X, y).predict_proba(X), expected
    )
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict_proba(X), expected
    )


# What the recalibrator is told
# --------------------------------------------------------------------------------------


class Recorder(ClassifierMixin, BaseEstimator):
    """A recalibrator that keeps what it is given, and predicts the event
    frequencies.
    """

    def __init__(self, input="unset", classes=None):
        self.input = input
        self.classes = classes

    def fit(self, scores, y, sample_weight=None):
        self.given_ = scores, y, sample_weight
        self.classes_ = np.unique(y) if self.classes is None else self.classes
        self.frequency_ = np.array(
            [np.average(y == label, weights=sample_weight) for label in self.classes_]
        )
        return self

    def predict_proba(self, scores):
        return np.tile(self.frequency_, (len(scores), 1))

    def transform(self, scores):
        return self.predict_proba(scores)

    def fit_transform(self, scores, y, sample_weight=None):
        return self.fit(scores, y, sample_weight).transform(scores)


class Outer(Recorder):
    """A recalibrator with another one inside, whose `input` and `classes` are its
    own.
    """

    def __init__(self, recalibrator):
        self.recalibrator = recalibrator

    classes = None


@pytest.mark.parametrize(
    ("estimator", "scale", "width"),
    [(LinearSVC(), "logit", 1), (GaussianNB(), "probability", 2)],
)
@pytest.mark.parametrize("ensemble", [True, False])
def test_the_recalibrator_is_told_its_scale_and_classes(
    estimator, scale, width, ensemble, binary
):
    X, y = binary
    recorder = Recorder()
    model = RecalibratedClassifierCV(
        estimator, recalibrator=recorder, ensemble=ensemble
    ).fit(X, y)
    for pair in model.calibrated_classifiers_:
        assert pair.recalibrator.input == scale
        np.testing.assert_array_equal(pair.recalibrator.classes, [0, 1])
        assert pair.recalibrator.given_[0].shape[1] == width
    assert recorder.input == "unset"


def test_the_recalibrator_inside_a_recalibrator_is_told(binary):
    X, y = binary
    outer = Outer(Recorder())
    model = RecalibratedClassifierCV(recalibrator=outer).fit(X, y)
    inner = model.calibrated_classifiers_[0].recalibrator.recalibrator
    assert inner.input == "logit"
    np.testing.assert_array_equal(inner.classes, [0, 1])
    assert outer.recalibrator.input == "unset"


def test_in_a_pipeline_the_first_step_is_told_the_scale_and_every_step_the_classes(
    iris,
):
    X, y = iris
    pipeline = make_pipeline(Recorder(), "passthrough", Recorder())
    model = RecalibratedClassifierCV(
        LinearSVC(), recalibrator=pipeline, ensemble=False
    ).fit(X, y)
    first, _, last = model.calibrated_classifiers_[0].recalibrator
    assert (first.input, last.input) == ("logit", "unset")
    np.testing.assert_array_equal([first.classes, last.classes], [[0, 1, 2]] * 2)


def test_a_pipeline_of_recalibrators(binary, weight):
    X, y = binary
    pipeline = make_pipeline(PlattScaling(), IsotonicCalibration())
    model = RecalibratedClassifierCV(recalibrator=pipeline, cv=4, ensemble=False).fit(
        X, y, sample_weight=weight
    )
    scores = cross_val_predict(
        LinearSVC(random_state=0),
        X,
        y,
        cv=4,
        method="decision_function",
        params={"sample_weight": weight},
    )
    platt = PlattScaling(input="logit").fit(scores, y, sample_weight=weight)
    isotonic = IsotonicCalibration().fit(
        platt.transform(scores), y, sample_weight=weight
    )
    svc = LinearSVC(random_state=0).fit(X, y, sample_weight=weight)
    expected = isotonic.predict_proba(platt.transform(svc.decision_function(X)))
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9)

    with config_context(enable_metadata_routing=True):
        routed = RecalibratedClassifierCV(recalibrator=pipeline, cv=4, ensemble=False)
        np.testing.assert_array_equal(
            routed.fit(X, y, sample_weight=weight).predict_proba(X),
            model.predict_proba(X),
        )


def test_a_classifier_of_scikit_learn_as_recalibrator(binary):
    X, y = binary
    recalibrator = make_pipeline(FunctionTransformer(), LogisticRegression(C=np.inf))
    model = RecalibratedClassifierCV(recalibrator=recalibrator).fit(
        X, np.array(["no", "yes"])[y]
    )
    plain = RecalibratedClassifierCV(
        recalibrator=PlattScaling(smooth_targets=False, clip=None)
    ).fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X), plain.predict_proba(X), atol=1e-3
    )


def test_several_labels_per_row_are_recalibrated_one_by_one():
    """What scikit-learn #13060 asks of `CalibratedClassifierCV`."""
    X, tags = make_multilabel_classification(1200, n_classes=3, random_state=0)
    weight = np.random.default_rng(0).integers(1, 4, 600)
    model = RecalibratedClassifierCV(GaussianNB(), PlattScaling())
    tagger = MultiOutputClassifier(model).fit(X[:600], tags[:600], sample_weight=weight)
    bare = MultiOutputClassifier(GaussianNB()).fit(
        X[:600], tags[:600], sample_weight=weight
    )
    losses = {
        name: [
            log_loss(tags[600:, k], proba)
            for k, proba in enumerate(one.predict_proba(X[600:]))
        ]
        for name, one in (("bare", bare), ("recalibrated", tagger))
    }
    assert np.all(np.array(losses["recalibrated"]) < losses["bare"])
    for k, proba in enumerate(tagger.predict_proba(X[600:])):
        alone = clone(model).fit(X[:600], tags[:600, k], sample_weight=weight)
        np.testing.assert_array_equal(proba, alone.predict_proba(X[600:]))
    np.testing.assert_array_equal(
        tagger.predict(X[600:]),
        np.column_stack([p.argmax(axis=1) for p in tagger.predict_proba(X[600:])]),
    )


def test_a_single_recalibrator_predicts_its_own_classes(iris):
    # Spreading what top-label calibration takes from the top class may lift another
    # above it; predict keeps the class.
    X, y = iris
    y = np.where(np.random.default_rng(1).random(len(y)) < 0.6, (y + 1) % 3, y)
    recalibrator = HistogramBinning(binning=5, multiclass="top_label")
    model = RecalibratedClassifierCV(
        GaussianNB(), recalibrator=recalibrator, ensemble=False
    ).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), GaussianNB().fit(X, y).predict(X))
    assert (model.predict_proba(X).argmax(axis=1) != model.predict(X)).any()


# Missing classes
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator", [GaussianNB(), LogisticRegression()], ids=["probability", "logit"]
)
@pytest.mark.parametrize(
    "recalibrator", RECALIBRATORS, ids=lambda recalibrator: type(recalibrator).__name__
)
def test_a_class_missing_from_the_training_rows_of_a_fold_gets_probability_zero_there(
    estimator, recalibrator, iris, weight
):
    X, y = iris
    weight = weight[:150]
    half = np.arange(150) % 2 == 0
    test = half | (y == 1)
    cv = [(np.flatnonzero(~test), np.flatnonzero(test))]
    model = RecalibratedClassifierCV(estimator, recalibrator, cv=cv, ensemble=True)
    proba = model.fit(X, y, sample_weight=weight).predict_proba(X)
    assert (proba[:, 1] == 0).all()
    known = (y != 1) & half
    frozen = FrozenEstimator(
        clone(estimator).fit(X[~test], y[~test], sample_weight=weight[~test])
    )
    binary = RecalibratedClassifierCV(frozen, recalibrator=recalibrator)
    binary.fit(X[known], y[known], sample_weight=weight[known])
    np.testing.assert_allclose(proba[:, [0, 2]], binary.predict_proba(X), rtol=1e-9)


def test_a_class_rarer_than_the_folds():
    # One row of the class 2: four of five folds are trained with it and test without
    # it, one the other way round.
    X = (
        np.random.default_rng(0).normal(size=(101, 2))
        + np.r_[np.repeat([[0, 0], [2, 2]], 50, axis=0), [[9, 9]]]
    )
    y = np.r_[np.repeat([0, 1], 50), 2]
    for recalibrator in (
        PlattScaling(),
        IsotonicCalibration(),
        HistogramBinning(binning=4),
    ):
        for ensemble in (True, False, "auto"):
            model = RecalibratedClassifierCV(
                GaussianNB(), recalibrator=recalibrator, ensemble=ensemble, cv=5
            )
            with pytest.warns(UserWarning, match="least populated class"):
                proba = model.fit(X, y).predict_proba(X)
            np.testing.assert_allclose(proba.sum(axis=1), 1)
            assert np.isfinite(proba).all()
            assert (proba[:50].argmax(axis=1) == 0).mean() > 0.8


def test_a_fold_trained_on_one_class_cannot_be_recalibrated():
    X, y = np.arange(20.0).reshape(-1, 1), np.repeat([0, 1], 10)
    with pytest.raises(ValueError, match=r"cv trains fold 0 on only one class \(1\)"):
        RecalibratedClassifierCV(DecisionTreeClassifier(), cv=KFold(2)).fit(X, y)


def test_a_fold_that_tests_new_classes_alone(iris):
    X, y = iris
    with pytest.raises(
        ValueError, match="In fold 0 of cv, the training part has none of the classes"
    ):
        RecalibratedClassifierCV(
            GaussianNB(), cv=[(np.arange(100), np.arange(100, 150))], ensemble=True
        ).fit(X, y)


def test_leave_one_out_recalibrates_all_scores_at_once(binary):
    X, y = binary
    with pytest.raises(ValueError, match="a single row"):
        RecalibratedClassifierCV(GaussianNB(), cv=LeaveOneOut(), ensemble=True).fit(
            X[:30], y[:30]
        )
    model = RecalibratedClassifierCV(
        GaussianNB(), PlattScaling(), cv=LeaveOneOut(), ensemble=False
    ).fit(X[:30], y[:30])
    scores = cross_val_predict(
        GaussianNB(), X[:30], y[:30], cv=LeaveOneOut(), method="predict_proba"
    )
    platt = PlattScaling().fit(scores, y[:30])
    expected = platt.predict_proba(GaussianNB().fit(X[:30], y[:30]).predict_proba(X))
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9)


# Frozen classifiers
# --------------------------------------------------------------------------------------


def test_a_frozen_classifier_is_recalibrated_on_all_rows(binary):
    X, y = binary
    classifier = LogisticRegression().fit(X[:150], y[:150])
    model = RecalibratedClassifierCV(
        FrozenEstimator(classifier), recalibrator=IsotonicCalibration(), cv=10_000
    )
    model.fit(X[150:], y[150:])
    assert len(model.calibrated_classifiers_) == 1
    isotonic = IsotonicCalibration(input="logit").fit(
        classifier.decision_function(X[150:]), y[150:]
    )
    expected = isotonic.predict_proba(classifier.decision_function(X))
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-8)
    assert (
        len(
            model.set_params(ensemble=True, cv=3)
            .fit(X[150:], y[150:])
            .calibrated_classifiers_
        )
        == 3
    )


def test_a_frozen_classifier_keeps_a_class_that_the_calibration_rows_lack(iris):
    X, y = iris
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    for ensemble in ("auto", True):
        model = RecalibratedClassifierCV(frozen, ensemble=ensemble).fit(
            X[:100], y[:100]
        )
        np.testing.assert_array_equal(model.classes_, [0, 1, 2])
        assert model.predict_proba(X).shape == (150, 3)
    with pytest.raises(
        ValueError, match="label 3 in row 0, which the frozen classifier has not seen"
    ):
        model.fit(X, y + 3)
    with pytest.raises(NotFittedError):
        RecalibratedClassifierCV(FrozenEstimator(GaussianNB())).fit(X, y)


def test_weights_of_rows_that_a_frozen_classifier_scores(binary, weight):
    X, y = binary
    frozen = FrozenEstimator(GaussianNB().fit(X[:150], y[:150]))
    model = RecalibratedClassifierCV(frozen, PlattScaling()).fit(
        X[150:], y[150:], sample_weight=weight[150:]
    )
    platt = PlattScaling().fit(
        frozen.predict_proba(X[150:]), y[150:], sample_weight=weight[150:]
    )
    np.testing.assert_allclose(
        model.predict_proba(X), platt.predict_proba(frozen.predict_proba(X)), rtol=1e-8
    )


# Metadata
# --------------------------------------------------------------------------------------


@pytest.fixture
def grouped():
    """Groups of eight rows with the same features and label: a tree knows the label of
    a group that it has seen.
    """
    generator = np.random.default_rng(0)
    groups = np.tile(np.arange(40), 8)
    return (
        generator.normal(size=(40, 2))[groups],
        generator.permutation(40)[groups] % 2,
        groups,
    )


@pytest.mark.parametrize("ensemble", [True, False, "auto"])
@pytest.mark.parametrize("routing", [True, False])
def test_groups_reach_the_splitter(ensemble, routing, grouped):
    X, y, groups = grouped
    tree = DecisionTreeClassifier(random_state=0)
    model = RecalibratedClassifierCV(
        tree, PlattScaling(), cv=GroupKFold(4), ensemble=ensemble
    )
    with config_context(enable_metadata_routing=routing):
        proba = model.fit(X, y, groups=groups).predict_proba(X)
    splits = list(GroupKFold(4).split(X, y, groups))
    np.testing.assert_array_equal(
        clone(model).set_params(cv=splits).fit(X, y).predict_proba(X), proba
    )
    # The tree knows nothing of a new group, and the recalibrator must find that out.
    # Rows alone would hide it.
    recalibrator = model.calibrated_classifiers_[0].recalibrator
    assert np.ptp(recalibrator.predict_proba([[1.0, 0.0], [0.0, 1.0]])[:, 1]) < 0.5
    by_rows = (
        clone(model).set_params(cv=5).fit(X, y).calibrated_classifiers_[0].recalibrator
    )
    assert np.ptp(by_rows.predict_proba([[1.0, 0.0], [0.0, 1.0]])[:, 1]) > 0.8
    with pytest.raises(ValueError, match="groups"):
        model.fit(X, y)


def test_groups_reach_the_splitter_through_a_search(grouped):
    # Without routing a search keeps `groups` for its own splitter; the name of a
    # pipeline's step tells them apart.
    X, y, groups = grouped
    model = make_pipeline(
        RecalibratedClassifierCV(
            DecisionTreeClassifier(random_state=0), cv=GroupKFold(3)
        )
    )
    grid = {
        "recalibratedclassifiercv__ensemble": [True, False],
        "recalibratedclassifiercv__recalibrator": [
            PlattScaling(),
            IsotonicCalibration(),
        ],
    }
    search = GridSearchCV(
        model, grid, cv=GroupKFold(2), scoring="neg_log_loss", error_score="raise"
    )
    plain = clone(search).fit(
        X, y, groups=groups, recalibratedclassifiercv__groups=groups
    )
    with config_context(enable_metadata_routing=True):
        routed = clone(search).fit(X, y, groups=groups)
    np.testing.assert_array_equal(
        plain.cv_results_["mean_test_score"], routed.cv_results_["mean_test_score"]
    )


def test_splitters_that_repeat_or_skip_rows(grouped):
    X, y, groups = grouped
    tree = DecisionTreeClassifier(max_depth=1)
    for cv, params in (
        (GroupShuffleSplit(6, random_state=0), {"groups": groups}),
        (RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0), {}),
    ):
        ensemble = RecalibratedClassifierCV(tree, cv=cv).fit(X, y, **params)
        assert len(ensemble.calibrated_classifiers_) == 6
        with pytest.raises(
            ValueError, match=r"must not test a row twice.*ensemble=True"
        ):
            RecalibratedClassifierCV(tree, cv=cv, ensemble=False).fit(X, y, **params)
    with pytest.raises(ValueError, match="and also tests it on that row"):
        RecalibratedClassifierCV(tree, cv=[(np.arange(100), np.arange(99, 200))]).fit(
            X, y
        )


@pytest.mark.parametrize("ensemble", [True, False])
def test_weights_are_routed_by_request(ensemble, binary, weight):
    X, y = binary
    model = RecalibratedClassifierCV(GaussianNB(), PlattScaling(), ensemble=ensemble)
    expected = clone(model).fit(X, y, sample_weight=weight).predict_proba(X)
    default = (
        RecalibratedClassifierCV(None, PlattScaling(), ensemble=ensemble)
        .fit(X, y, sample_weight=weight)
        .predict_proba(X)
    )
    unweighted = clone(model).fit(X, y).predict_proba(X)
    assert np.abs(expected - unweighted).max() > 1e-3
    with config_context(enable_metadata_routing=True):
        requesting = clone(model).set_params(
            estimator=GaussianNB().set_fit_request(sample_weight=True)
        )
        np.testing.assert_array_equal(
            requesting.fit(X, y, sample_weight=weight).predict_proba(X), expected
        )
        np.testing.assert_array_equal(
            RecalibratedClassifierCV(None, PlattScaling(), ensemble=ensemble)
            .fit(X, y, sample_weight=weight)
            .predict_proba(X),
            default,
        )
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            model.fit(X, y, sample_weight=weight)
        routing = requesting.set_fit_request(sample_weight=True).get_metadata_routing()
        assert routing.consumes("fit", ["sample_weight", "groups"]) == {"sample_weight"}
        alone = RecalibratedClassifierCV(
            KNeighborsClassifier(), PlattScaling(), ensemble=ensemble
        ).set_fit_request(sample_weight=True)
        proba = make_pipeline(alone).fit(X, y, sample_weight=weight).predict_proba(X)
        assert np.abs(proba - clone(alone).fit(X, y).predict_proba(X)).max() > 1e-3
        pipeline = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False), requesting
        )
        assert np.isfinite(
            pipeline.fit(X, y, sample_weight=weight).predict_proba(X)
        ).all()


def test_a_classifier_without_weights_is_warned_about(binary, weight):
    X, y = binary
    model = RecalibratedClassifierCV(
        KNeighborsClassifier(), PlattScaling(), cv=3, ensemble=False
    )
    with pytest.warns(
        UserWarning, match="KNeighborsClassifier.fit does not accept sample_weight"
    ):
        model.fit(X, y, sample_weight=weight)
    scores = cross_val_predict(
        KNeighborsClassifier(), X, y, cv=3, method="predict_proba"
    )
    platt = PlattScaling().fit(scores, y, sample_weight=weight)
    expected = platt.predict_proba(KNeighborsClassifier().fit(X, y).predict_proba(X))
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9)


def test_a_recalibrator_without_weights_is_refused(binary, weight):
    recalibrator = make_pipeline(FunctionTransformer(), KNeighborsClassifier())
    for without in (recalibrator, recalibrator[-1]):
        with pytest.raises(
            ValueError,
            match="(?s)sample_weight was passed, but fit of .* does not accept it",
        ):
            RecalibratedClassifierCV(recalibrator=without).fit(
                *binary, sample_weight=weight
            )


@pytest.mark.parametrize(
    "found",
    [
        LogisticRegression(),
        CalibratedClassifierCV(LogisticRegression()),
        GridSearchCV(LogisticRegression(), {"C": [1, 2]}),
        FrozenEstimator(LogisticRegression()),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_classifier_is_no_recalibrator(binary, found):
    with pytest.raises(
        TypeError,
        match="recalibrator must be a recalibrator of scores.*LogisticRegression",
    ):
        RecalibratedClassifierCV(LinearSVC(), found).fit(*binary)
    with pytest.raises(
        TypeError, match="recalibrator must be a recalibrator of scores"
    ):
        ScalingBinning(found).fit([0.2, 0.8], [0, 1])


def test_what_holds_a_recalibrator_is_one(binary):
    X, y = binary
    search = GridSearchCV(PlattScaling(input="logit"), {"loss": ["log"]}, cv=2)
    frozen = FrozenEstimator(
        PlattScaling(input="logit").fit(
            LinearSVC(random_state=0).fit(X, y).decision_function(X), y
        )
    )
    for recalibrator in (search, frozen):
        proba = (
            RecalibratedClassifierCV(LinearSVC(random_state=0), recalibrator)
            .fit(X, y)
            .predict_proba(X)
        )
        assert proba.shape == (len(y), 2)


def test_the_recalibrator_may_be_the_second_argument(binary):
    X, y = binary
    for model in (
        RecalibratedClassifierCV(LinearSVC(random_state=0), IsotonicCalibration()),
        RecalibratedClassifierCV(
            LinearSVC(random_state=0), recalibrator=IsotonicCalibration()
        ),
    ):
        assert (
            type(model.fit(X, y).calibrated_classifiers_[0].recalibrator)
            is IsotonicCalibration
        )


def test_parameters_of_scikit_learn_get_a_hint(binary):
    with refused(
        TypeError, "'method'", "recalibrator=IsotonicCalibration()", "PlattScaling()"
    ):
        RecalibratedClassifierCV(LinearSVC(), method="isotonic")
    with refused(ValueError, "cv", "'prefit'", "FrozenEstimator(model)"):
        RecalibratedClassifierCV(LinearSVC(), cv="prefit").fit(*binary)
    with refused(ValueError, "cv", "'prefit'", "FrozenEstimator(model)"):
        CrossFittedClassifier(LinearSVC(), cv="prefit").fit_transform(*binary)
    parameters = inspect.signature(RecalibratedClassifierCV).parameters
    assert list(parameters) == [
        "estimator",
        "recalibrator",
        "cv",
        "n_jobs",
        "ensemble",
        "verbose",
    ]


# Parameters
# --------------------------------------------------------------------------------------


def test_nested_parameters_of_the_defaults(binary):
    model = RecalibratedClassifierCV().set_params(
        recalibrator__recalibrator__cv=3, estimator__C=0.5
    )
    assert model.get_params()["recalibrator__recalibrator__cv"] == 3
    assert model.get_params()["estimator__C"] == 0.5
    grid = {"recalibrator__n_standard_errors": [0, 2]}
    search = GridSearchCV(
        RecalibratedClassifierCV(cv=2), grid, cv=2, error_score="raise"
    )
    assert isinstance(search.fit(*binary).best_estimator_.recalibrator, Recalibrator)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        (
            {"ensemble": "yes"},
            ValueError,
            "ensemble must be True, False or 'auto', found 'yes'",
        ),
        ({"ensemble": None}, ValueError, "ensemble must be True"),
        (
            {"estimator": CountVectorizer()},
            TypeError,
            "estimator must be a classifier with predict_proba or",
        ),
        (
            {"estimator": "svc"},
            TypeError,
            "estimator must be a classifier, found 'svc'",
        ),
        (
            {"recalibrator": "platt"},
            TypeError,
            "recalibrator must have fit and predict_proba, but 'platt' has no fit",
        ),
        (
            {"recalibrator": LinearSVC()},
            TypeError,
            r"LinearSVC\(\) has no predict_proba",
        ),
        ({"cv": "five"}, ValueError, "cv"),
    ],
)
def test_bad_parameters(params, error, message, binary):
    with pytest.raises(error, match=message):
        RecalibratedClassifierCV(**params).fit(*binary)


@pytest.mark.parametrize(
    ("X", "y", "sample_weight", "message"),
    [
        (np.zeros((0, 2)), [], None, "X has no rows"),
        (np.zeros((4, 2)), [0, 1, 0], None, "3 rows but X has 4"),
        (np.zeros((4, 2)), ["a"] * 4, None, r"only one class \('a'\)"),
        (np.zeros((4, 2)), [0.5, 0.7, 0.1, 0.2], None, "Unknown label type"),
        (
            np.zeros((4, 2)),
            [0, 1, 0, 1],
            [1, 1, 1],
            r"sample_weight must have shape \(4,\)",
        ),
        (np.zeros((4, 2)), [0, 1, 0, 1], [1, 1, np.nan, 1], "row 2 is nan"),
        (np.zeros((4, 2)), [0, 1, 0, 1], [1, 1, 0, -1], "row 3 is -1"),
        (np.zeros((4, 2)), [0, 1, 0, 1], [0, 0, 0, 0], "zero in every row"),
    ],
)
def test_bad_data(X, y, sample_weight, message):
    with pytest.raises(ValueError, match=message):
        RecalibratedClassifierCV(GaussianNB(), cv=2).fit(X, y, sample_weight)


def test_tags_are_those_of_the_classifier():
    class TwoClasses(LogisticRegression):
        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.classifier_tags.multi_class = False
            tags.input_tags.allow_nan = True
            return tags

    tags = get_tags(RecalibratedClassifierCV(TwoClasses()))
    assert not tags.classifier_tags.multi_class
    assert tags.input_tags.allow_nan
    assert tags.input_tags.sparse
    assert get_tags(RecalibratedClassifierCV()).classifier_tags.multi_class


def test_not_fitted_yet():
    for method in ("predict", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(RecalibratedClassifierCV(), method)([[0.0]])


@pytest.mark.parametrize(
    "recalibrator",
    [
        MulticalibratedRecalibrator(features="age"),
        GroupwiseRecalibrator(groups=0),
        make_pipeline(PlattScaling(), MulticalibratedRecalibrator(features=[0, 1])),
    ],
    ids=["features", "groups", "pipeline"],
)
def test_a_recalibrator_that_takes_columns_is_refused_by_name(recalibrator):
    X, y = np.zeros((20, 2)), np.arange(20) % 2
    with pytest.raises(
        ValueError, match="columns of X, but RecalibratedClassifierCV .* passthrough"
    ):
        RecalibratedClassifierCV(LogisticRegression(), recalibrator).fit(X, y)


# --- Rows in the order of time ------------------------------------------------------


def _time_series(n=600):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (rng.random(n) < expit(2 * X[:, 0])).astype(int)


@pytest.mark.parametrize("ensemble", [False, "auto"])
def test_rows_that_are_never_tested_only_train(ensemble):
    X, y = _time_series()
    cv = TimeSeriesSplit(4)
    weight = np.random.default_rng(1).uniform(0.5, 2, 600)
    model = RecalibratedClassifierCV(
        LogisticRegression(), PlattScaling(), cv=cv, ensemble=ensemble
    ).fit(X, y, sample_weight=weight)
    scores, rows = [], []
    for train, test in cv.split(X):
        fold = LogisticRegression().fit(X[train], y[train], weight[train])
        scores.append(fold.decision_function(X[test]))
        rows.append(test)
    rows = np.concatenate(rows)
    assert len(rows) < 600
    platt = PlattScaling(input="logit").fit(
        np.concatenate(scores), y[rows], weight[rows]
    )
    whole = LogisticRegression().fit(X, y, weight)
    expected = platt.predict_proba(whole.decision_function(X))
    assert len(model.calibrated_classifiers_) == 1
    assert model.predict_proba(X) == pytest.approx(expected, rel=1e-6)


def test_time_ordered_folds_in_any_order_and_inside_a_search():
    X, y = _time_series()
    splits = list(TimeSeriesSplit(3).split(X))
    params = {"recalibrator": PlattScaling(), "ensemble": False}
    forward = RecalibratedClassifierCV(LogisticRegression(), cv=splits, **params)
    backward = RecalibratedClassifierCV(LogisticRegression(), cv=splits[::-1], **params)
    expected = forward.fit(X, y).predict_proba(X)
    assert (backward.fit(X, y).predict_proba(X) == expected).all()
    search = GridSearchCV(
        RecalibratedClassifierCV(LogisticRegression(), cv=TimeSeriesSplit(3)),
        {"recalibrator": [PlattScaling(), IsotonicCalibration()]},
        scoring="neg_brier_score",
        cv=TimeSeriesSplit(3),
    ).fit(X, y)
    assert search.best_score_ > -0.25


def test_a_row_that_is_tested_twice_is_refused_for_one_recalibrator():
    X, y = _time_series()
    rows = np.arange(600)
    splits = [(rows[:300], rows[300:]), (rows[:200], rows[200:400])]
    model = RecalibratedClassifierCV(LogisticRegression(), cv=splits, ensemble=False)
    with pytest.raises(ValueError, match="row 300 is in 2 test folds"):
        model.fit(X, y)


def test_no_fold_splits_a_cluster():
    class Recording(LogisticRegression):
        """Keeps the rows of each fit."""

        rows = []

        def fit(self, X, y):
            self.rows.append(set(X[:, 0].tolist()))
            return super().fit(X, y)

    rng = np.random.default_rng(0)
    X = np.c_[np.arange(200.0), rng.normal(size=200)]
    y = rng.random(200) < 1 / (1 + np.exp(-X[:, 1]))
    clusters = np.array([f"patient {k}" for k in np.arange(200) // 4])
    model = RecalibratedClassifierCV(Recording(), PlattScaling())
    Recording.rows.clear()
    model.fit(X, y, clusters=clusters)
    assert len(Recording.rows) == 6  # five folds, and all rows
    for rows in Recording.rows:
        fitted = np.isin(np.arange(200), list(rows))
        assert not set(clusters[fitted]) & set(clusters[~fitted])
    with pytest.raises(ValueError, match="cv divides a cluster"):
        RecalibratedClassifierCV(LogisticRegression(), cv=KFold(3)).fit(
            X, y, clusters=clusters
        )
    # the gain is that of clusters
    two = np.arange(200) % 2
    found = RecalibratedClassifierCV(LogisticRegression(), cv=2).fit(X, y, clusters=two)
    assert "number of clusters is 2" in found.gain_.reason
    with pytest.raises(ValueError, match="weight_type"):
        RecalibratedClassifierCV(LogisticRegression()).fit(X, y, weight_type="counts")
