"""Calibration by group against separate fits by hand, and everything that a pipeline
asks of it.
"""

import pickle
import warnings

import numpy as np
import pytest
from _catalog import check_or_fail, refused
from _twins import equal_mass_edges, repeated
from scipy.special import expit, logit
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_common import EXPECTED_FAILURES

from skcalib import (
    BetaCalibration,
    ClasswiseTemperatureScaling,
    CrossFittedClassifier,
    GroupwiseRecalibrator,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    RecalibratedClassifierCV,
    TemperatureScaling,
    UniformMassBinning,
)
from skcalib.export import to_sql
from skcalib.metrics import groupwise_calibration_error


@pytest.mark.slow
@parametrize_with_checks(
    [
        GroupwiseRecalibrator(TemperatureScaling(input="logit")),
        GroupwiseRecalibrator(PlattScaling(input="logit"), min_group_size=2),
    ]
)
def test_estimator_checks(estimator, check):
    check_or_fail(check, estimator, EXPECTED_FAILURES)


def _binary(n=600, seed=0):
    """Scores that are too low in one group, too high in another and right in a third,
    small one.
    """
    rng = np.random.default_rng(seed)
    groups = np.array(["high", "low", "right"])[rng.choice(3, n, p=[0.5, 0.45, 0.05])]
    log_odds = rng.normal(scale=1.5, size=n)
    shift = np.select([groups == "high", groups == "low"], [-1.5, 1.5], 0.0)
    return (
        expit(log_odds),
        (rng.random(n) < expit(log_odds + shift)).astype(int),
        groups,
    )


def _many(n=600, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 0.4), n)
    power = np.linspace(0.3, 2, n_classes)[proba.argmax(axis=1), None]
    truth = proba**power / (proba**power).sum(axis=1, keepdims=True)
    return proba, np.array([rng.choice(n_classes, p=row) for row in truth])


METHODS = [
    PlattScaling(),
    IsotonicCalibration(),
    HistogramBinning(binning=4),
    BetaCalibration(),
    TemperatureScaling(),
]


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_each_group_has_the_fit_of_its_own_rows(method):
    scores, y, groups = _binary()
    model = GroupwiseRecalibrator(method, min_group_size=100).fit(
        scores, y, groups=groups
    )
    found = model.predict_proba(scores, groups=groups)
    for name in ("high", "low"):
        rows = groups == name
        alone = clone(method).fit(scores[rows], y[rows])
        np.testing.assert_array_equal(found[rows], alone.predict_proba(scores[rows]))
    rows = groups == "right"  # fewer than 100
    pooled = clone(method).fit(scores, y)
    np.testing.assert_array_equal(found[rows], pooled.predict_proba(scores[rows]))
    assert model.groups_.tolist() == ["high", "low", "right"]
    assert model.group_sizes_.tolist() == [
        np.sum(groups == name) for name in model.groups_
    ]
    assert model.recalibrators_["right"] is model.pooled_recalibrator_
    assert model.recalibrators_["high"] is not model.pooled_recalibrator_
    np.testing.assert_array_equal(
        model.predict(scores, groups=groups), found.argmax(axis=1)
    )
    np.testing.assert_array_equal(model.transform(scores, groups=groups), found)
    np.testing.assert_array_equal(
        clone(model).fit_transform(scores, y, groups=groups), found
    )


def test_errors_by_group_shrink():
    scores, y, groups = _binary(4000)
    new_scores, new_y, new_groups = _binary(4000, seed=1)
    pooled = PlattScaling().fit(scores, y).predict_proba(new_scores)[:, 1]
    model = GroupwiseRecalibrator(PlattScaling()).fit(scores, y, groups=groups)
    by_group = model.predict_proba(new_scores, groups=new_groups)[:, 1]
    errors = [
        groupwise_calibration_error(
            new_y,
            one,
            groups=new_groups,
            reduce="weighted",
            method="debiased",
            binning=10,
        )
        for one in (pooled, by_group)
    ]
    assert errors[1] < 0.3 * errors[0]


@pytest.mark.parametrize("shrinkage", [0, 10.0, 1e9])
def test_shrinkage_mixes_with_the_pooled_fit(shrinkage):
    scores, y, groups = _binary()
    model = GroupwiseRecalibrator(
        PlattScaling(), shrinkage=shrinkage, min_group_size=1
    ).fit(scores, y, groups=groups)
    pooled = PlattScaling().fit(scores, y).predict_proba(scores)
    for name in np.unique(groups):
        rows = groups == name
        share = rows.sum() / (rows.sum() + shrinkage)
        own = PlattScaling().fit(scores[rows], y[rows]).predict_proba(scores[rows])
        expected = share * own + (1 - share) * pooled[rows]
        np.testing.assert_allclose(
            model.predict_proba(scores, groups=groups)[rows], expected, atol=1e-12
        )


# --- Where groups come from


def test_every_source_of_groups_gives_the_same():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    scores, y, groups = _binary()
    sites = np.unique(groups, return_inverse=True)[1]
    expected = (
        GroupwiseRecalibrator(PlattScaling())
        .fit(scores, y, groups=groups)
        .predict_proba(scores, groups=groups)
    )
    frame = pandas.DataFrame({"a": 1 - scores, "site": groups, "b": scores})
    for X, key in (
        (frame, "site"),
        (frame, 1),
        (frame.assign(site=frame.site.astype("category")), "site"),
        (polars.DataFrame({"a": 1 - scores, "site": groups, "b": scores}), "site"),
        (np.column_stack((sites, scores)), 0),
        (np.column_stack((scores, sites)), -1),
        (np.column_stack((scores.astype(object), groups)), 1),
        (
            [
                [score, group]
                for score, group in zip(scores.tolist(), groups.tolist(), strict=True)
            ],
            1,
        ),
    ):
        model = GroupwiseRecalibrator(PlattScaling(), groups=key).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-9)
        assert model.n_features_in_ == len(X[0]) if isinstance(X, list) else X.shape[1]
    assert GroupwiseRecalibrator(PlattScaling(), groups="site").fit(
        frame, y
    ).feature_names_in_.tolist() == list(frame)
    lookup = dict(zip(scores.tolist(), groups.tolist(), strict=True))
    model = GroupwiseRecalibrator(
        PlattScaling(), groups=lambda X: [lookup[score] for score in X]
    ).fit(scores, y)
    np.testing.assert_allclose(model.predict_proba(scores), expected, atol=1e-12)
    for given in (
        groups.tolist(),
        pandas.Series(groups, index=range(5, 605)),
        polars.Series(groups),
        groups.astype("O"),
    ):
        model = GroupwiseRecalibrator(PlattScaling(), groups=None).fit(
            scores, y, groups=given
        )
        np.testing.assert_allclose(
            model.predict_proba(scores, groups=given), expected, atol=1e-12
        )


@pytest.mark.parametrize("kind", ["int", "bool", "datetime", "float"])
def test_groups_of_any_type(kind):
    scores, y, groups = _binary()
    codes = np.unique(groups, return_inverse=True)[1]
    names = {
        "int": np.array([7, -2, 900]),
        "bool": np.array([True, False, False]),
        "datetime": np.array(["2024-01", "2024-02", "2023-12"], dtype="datetime64[M]"),
        "float": np.array([0.5, -1.0, 2.0]),
    }[kind][codes]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GroupwiseRecalibrator(PlattScaling()).fit(scores, y, groups=names)
        found = model.predict_proba(scores, groups=names)
    rows = names == names[0]
    alone = PlattScaling().fit(scores[rows], y[rows])
    np.testing.assert_array_equal(found[rows], alone.predict_proba(scores[rows]))


def test_the_predicted_class_is_a_group_of_its_own():
    proba, y = _many()
    assert isinstance(
        GroupwiseRecalibrator().fit(proba, y).pooled_recalibrator_, TemperatureScaling
    )
    model = GroupwiseRecalibrator(TemperatureScaling(clip=None)).fit(proba, y)
    found, predicted = model.predict_proba(proba), proba.argmax(axis=1)
    for k in range(4):
        rows = predicted == k
        alone = TemperatureScaling(classes=range(4), clip=None).fit(
            proba[rows], y[rows]
        )
        np.testing.assert_array_equal(found[rows], alone.predict_proba(proba[rows]))
    # that is class-wise temperature scaling with any deviation allowed
    any_deviation = ClasswiseTemperatureScaling(np.inf, clip=None).fit(proba, y)
    np.testing.assert_allclose(found, any_deviation.predict_proba(proba), atol=1e-7)
    np.testing.assert_array_equal(model.predict(proba), predicted)
    for one in (proba[:, 1], logit(proba[:, 1])):
        is_logit = one.min() < 0
        method = PlattScaling(input="logit" if is_logit else "probability")
        model = GroupwiseRecalibrator(method).fit(one, y == 1)
        rows = one > (0 if is_logit else 0.5)
        alone = clone(method).fit(one[rows], y[rows] == 1)
        np.testing.assert_array_equal(
            model.predict_proba(one)[rows], alone.predict_proba(one[rows])
        )


def test_a_class_never_predicted_is_no_unseen_group():
    proba, y = _many()
    rows = proba.argmax(axis=1) != 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GroupwiseRecalibrator().fit(proba[rows], y[rows])
        found = model.predict_proba(proba)
        anything = (
            GroupwiseRecalibrator(min_group_size=0)
            .fit(proba[rows], y[rows])
            .predict_proba(proba)
        )
    pooled = TemperatureScaling().fit(proba[rows], y[rows]).predict_proba(proba[~rows])
    np.testing.assert_array_equal(found[~rows], pooled)
    np.testing.assert_array_equal(anything[~rows], pooled)
    assert model.group_sizes_[2] == 0


def test_unseen_groups_use_the_pooled_fit_with_one_warning():
    scores, y, groups = _binary()
    model = GroupwiseRecalibrator(PlattScaling()).fit(scores, y, groups=groups)
    given = np.array(["low", "new", "other", "new"])
    with pytest.warns(
        UserWarning, match=r"3 rows use the pooled fit .* 'new', 'other'"
    ) as caught:
        found = model.predict_proba(scores[:4], groups=given)
    assert len(caught) == 1
    with pytest.warns(
        UserWarning,
        match=r"^1 row uses the pooled fit because of groups that .*: 'new'\.$",
    ):
        model.predict_proba(scores[:1], groups=["new"])
    np.testing.assert_array_equal(
        found[1:], PlattScaling().fit(scores, y).predict_proba(scores[1:4])
    )
    with pytest.warns(UserWarning, match="'a', .*, 'f', ...") as caught:
        model.predict_proba(scores[:7], groups=list("abcdefg"))


# --- Groups with few rows


def test_small_groups_are_merged_by_what_the_pooled_fit_leaves():
    # Twelve sites of 30 rows: in six of them the event is rarer than the score says, in
    # six more frequent.
    rng = np.random.default_rng(0)
    site = np.repeat(np.arange(12), 30)
    scores = rng.uniform(0.2, 0.8, len(site))
    y = rng.random(len(site)) < expit(logit(scores) + np.where(site % 2 == 0, -2, 2))
    model = GroupwiseRecalibrator(
        PlattScaling(), min_group_size=180, merge_small_groups=True
    ).fit(scores, y, groups=site)
    rarer, oftener = model.recalibrators_[0], model.recalibrators_[1]
    assert rarer is not oftener
    assert all(
        model.recalibrators_[k] is (oftener if k % 2 else rarer) for k in range(12)
    )
    rows = site % 2 == 0
    expected = PlattScaling().fit(scores[rows], y[rows]).predict_proba(scores[rows])
    np.testing.assert_allclose(
        model.predict_proba(scores, groups=site)[rows], expected, atol=1e-12
    )
    # the shrinkage of merged groups goes by the rows of all of them
    shrunken = (
        clone(model)
        .set_params(shrinkage=60)
        .fit(scores, y, groups=site)
        .predict_proba(scores, groups=site)
    )
    pooled = PlattScaling().fit(scores, y).predict_proba(scores)
    # 180 / 240
    np.testing.assert_allclose(
        shrunken[rows], 0.75 * expected + 0.25 * pooled[rows], atol=1e-12
    )
    # what is left over joins the last merged groups; too little for one part stays
    # pooled
    uneven = GroupwiseRecalibrator(
        PlattScaling(), min_group_size=150, merge_small_groups=True
    ).fit(scores, y, groups=site)
    sizes = [
        sum(one is other for one in uneven.recalibrators_.values())
        for other in uneven.recalibrators_.values()
    ]
    assert sorted(sizes) == [5] * 5 + [7] * 7
    alone = GroupwiseRecalibrator(
        PlattScaling(), min_group_size=400, merge_small_groups=True
    ).fit(scores, y, groups=site)
    assert all(
        one is alone.pooled_recalibrator_ for one in alone.recalibrators_.values()
    )


def test_bundles_of_predicted_classes():
    proba, y = _many(n=400, n_classes=8)
    model = GroupwiseRecalibrator(min_group_size=120, merge_small_groups=True).fit(
        proba, y
    )
    parts = {id(one) for one in model.recalibrators_.values()} - {
        id(model.pooled_recalibrator_)
    }
    assert 2 <= len(parts) <= 3
    assert np.isfinite(log_loss(y, model.predict_proba(proba)))


def test_a_group_without_a_class_that_its_method_needs_uses_the_pooled_fit():
    scores, y, groups = _binary()
    y = np.where(groups == "low", 1, y)
    for method, defined in (
        (TemperatureScaling(), False),
        (BetaCalibration(smooth_targets=False), False),
        (PlattScaling(), True),
    ):
        model = GroupwiseRecalibrator(method).fit(scores, y, groups=groups)
        assert (
            model.recalibrators_["low"] is not model.pooled_recalibrator_
        ) == defined
        assert np.isfinite(log_loss(y, model.predict_proba(scores, groups=groups)))


class _Foreign(ClassifierMixin, BaseEstimator):
    """A recalibrator of another house, without `classes` and `sample_weight`."""

    def fit(self, X, y):
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def test_any_object_that_fits_scores_is_a_recalibrator():
    proba, y = _many()
    groups = np.arange(600) % 3
    model = GroupwiseRecalibrator(_Foreign()).fit(proba, y, groups=groups)
    rows = groups == 1
    expected = LogisticRegression().fit(proba[rows], y[rows]).predict_proba(proba[rows])
    np.testing.assert_allclose(
        model.predict_proba(proba, groups=groups)[rows], expected
    )
    # A group that lacks a class gives other columns: the pooled fit serves it.
    lacking = np.where(y == 0, 0, groups)
    model.fit(proba, y, groups=lacking)
    assert model.recalibrators_[1] is model.pooled_recalibrator_
    assert model.predict_proba(proba, groups=lacking).shape == (600, 4)


def test_an_error_in_a_group_names_it():
    scores, y, groups = _binary()
    method = UniformMassBinning(epsilon=0.2)
    method.fit(scores, y)
    with refused(ValueError, "groups", "'right'", "epsilon"):
        GroupwiseRecalibrator(method, min_group_size=10).fit(scores, y, groups=groups)


def test_integer_weights_are_repeated_rows():
    scores, y, groups = _binary()
    weights = np.random.default_rng(2).integers(0, 4, len(y))
    for options in (
        {},
        {"shrinkage": 20.0},
        {"min_group_size": 60, "merge_small_groups": True},
    ):
        model = GroupwiseRecalibrator(PlattScaling(), **options).fit(
            scores, y, weights, groups
        )
        rows = clone(model)
        s, labels, g = repeated(weights, scores, y, groups)
        rows.fit(s, labels, groups=g)
        assert model.group_sizes_.tolist() == rows.group_sizes_.tolist()
        np.testing.assert_allclose(
            model.predict_proba(scores, groups=groups),
            rows.predict_proba(scores, groups=groups),
            atol=1e-9,
        )
    with refused(ValueError, "sample_weight"):
        GroupwiseRecalibrator(UniformMassBinning(3)).fit(scores, y, weights, groups)


# --- Top-label binning given the predicted class (Gupta and Ramdas 2022)


def _top_label_histogram_binning(proba, y, new, n_bins):
    """Return the confidence of each new row by a plain loop: bins and frequencies of
    each predicted class.
    """
    found = np.empty(len(new))
    for k in range(proba.shape[1]):
        rows = [
            i
            for i in range(len(y))
            if max(range(proba.shape[1]), key=lambda j, i=i: (proba[i, j], -j)) == k
        ]
        confidence = [proba[i, k] for i in rows]
        edges = equal_mass_edges(confidence, n_bins)
        for i, row in enumerate(new):
            if row.argmax() == k:
                bin_ = sum(row[k] > edge for edge in edges[1:-1])
                inside = [
                    j
                    for j, s in zip(rows, confidence, strict=True)
                    if sum(s > e for e in edges[1:-1]) == bin_
                ]
                found[i] = sum(y[j] == k for j in inside) / len(inside)
    return found


def test_top_label_histogram_binning_given_the_predicted_class():
    proba, y = _many()
    new, _ = _many(200, seed=1)
    model = GroupwiseRecalibrator(HistogramBinning(5, multiclass="top_label")).fit(
        proba, y
    )
    found = model.predict_proba(new)
    confidence = np.take_along_axis(found, new.argmax(axis=1)[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(
        confidence, _top_label_histogram_binning(proba, y, new, 5), atol=1e-12
    )
    np.testing.assert_array_equal(model.predict(new), new.argmax(axis=1))
    # the spread alone would decide otherwise
    assert np.any(found.argmax(axis=1) != new.argmax(axis=1))
    np.testing.assert_allclose(found.sum(axis=1), 1)


@pytest.mark.slow
def test_top_label_calibration_holds_given_the_predicted_class():
    # Errors of opposite sign cancel in the confidence: binning all classes together
    # leaves them.
    proba, y = _many(20_000)
    new, new_y = _many(20_000, seed=1)
    together, apart = (
        one.fit(proba, y).predict_proba(new)
        for one in (
            HistogramBinning(10, multiclass="top_label"),
            GroupwiseRecalibrator(HistogramBinning(10, multiclass="top_label")),
        )
    )
    predicted = new.argmax(axis=1)
    errors = [
        groupwise_calibration_error(
            new_y == predicted,
            np.take_along_axis(one, predicted[:, None], axis=1)[:, 0],
            groups=predicted,
            reduce="mean",
            method="debiased",
            binning=10,
        )
        for one in (together, apart)
    ]
    assert errors[1] < 0.3 * errors[0]


@pytest.mark.parametrize(
    "method",
    [
        PlattScaling,
        BetaCalibration,
        IsotonicCalibration,
        HistogramBinning,
        UniformMassBinning,
    ],
    ids=str,
)
def test_every_binary_method_composes(method):
    proba, y = _many()
    model = GroupwiseRecalibrator(method(multiclass="top_label")).fit(proba, y)
    np.testing.assert_array_equal(model.predict(proba), proba.argmax(axis=1))


# --- Pipelines


def _table(n=400, seed=0):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    site = rng.choice(["north", "south"], n)
    x = rng.normal(size=n)
    y = np.where(
        rng.random(n) < expit(x + np.where(site == "north", -2, 2)), "yes", "no"
    )
    return pandas.DataFrame({"x": x, "noise": rng.normal(size=n), "site": site}), y


class _WithoutSite(GaussianNB):
    """A classifier that does not look at the site."""

    def fit(self, X, y):
        return super().fit(X[["x", "noise"]], y)

    def predict_proba(self, X):
        return super().predict_proba(X[["x", "noise"]])


@pytest.mark.slow
def test_a_column_passes_through_a_pipeline():
    X, y = _table()
    model = make_pipeline(
        CrossFittedClassifier(_WithoutSite(), passthrough="site"),
        GroupwiseRecalibrator(PlattScaling(), groups="site"),
    )
    proba = cross_val_predict(model, X, y, method="predict_proba", cv=4)
    pooled = make_pipeline(CrossFittedClassifier(_WithoutSite()), PlattScaling())
    assert (
        log_loss(y, proba)
        < log_loss(y, cross_val_predict(pooled, X, y, method="predict_proba", cv=4))
        - 0.1
    )
    search = GridSearchCV(
        model,
        {
            "groupwiserecalibrator__shrinkage": [0, 1000],
            "groupwiserecalibrator__recalibrator": [None, PlattScaling()],
        },
        scoring="neg_log_loss",
        cv=3,
    ).fit(X, y)
    assert search.best_params_["groupwiserecalibrator__shrinkage"] == 0
    assert isinstance(
        search.best_params_["groupwiserecalibrator__recalibrator"], PlattScaling
    )


def test_inside_a_recalibrated_classifier():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.array(["a", "b", "c"])[(X + rng.normal(size=(300, 3))).argmax(axis=1)]
    # a decision function, probabilities
    for classifier in (LogisticRegression(), GaussianNB()):
        for method in (None, PlattScaling(), GroupwiseRecalibrator(min_group_size=10)):
            model = RecalibratedClassifierCV(
                classifier, recalibrator=GroupwiseRecalibrator(method), cv=3
            ).fit(X, y)
            proba = model.predict_proba(X)
            np.testing.assert_allclose(proba.sum(axis=1), 1)
            assert log_loss(y, proba) < 1
            fitted = model.calibrated_classifiers_[0].recalibrator
            assert fitted.input == (
                "logit" if isinstance(classifier, LogisticRegression) else "probability"
            )


def test_groups_are_metadata():
    scores, y, groups = _binary()
    pipe = make_pipeline(GroupwiseRecalibrator(PlattScaling(), groups=None))
    pipe.fit(scores[:, None], y, groupwiserecalibrator__groups=groups)
    with config_context(enable_metadata_routing=True):
        step = GroupwiseRecalibrator(PlattScaling(), groups=None)
        step.set_fit_request(groups=True).set_predict_proba_request(groups=True)
        routed = make_pipeline(step).fit(scores[:, None], y, groups=groups)
        found = routed.predict_proba(scores[:, None], groups=groups)
    np.testing.assert_array_equal(
        found, pipe[-1].predict_proba(scores[:, None], groups=groups)
    )


def test_clone_parameters_pickle_and_names():
    scores, y, groups = _binary()
    model = GroupwiseRecalibrator().set_params(
        recalibrator__loss="brier", shrinkage=3.0
    )
    assert isinstance(model.recalibrator, TemperatureScaling)
    model.fit(scores, y, groups=groups)
    for other in (
        pickle.loads(pickle.dumps(model)),
        clone(model).fit(scores, y, groups=groups),
    ):
        expected = model.predict_proba(scores, groups=groups)
        np.testing.assert_array_equal(
            other.predict_proba(scores, groups=groups), expected
        )
    assert model.get_feature_names_out().tolist() == [
        "groupwiserecalibrator_0",
        "groupwiserecalibrator_1",
    ]
    assert model.recalibrator.classes is None  # the parameter is left as it was
    names = np.array(["no", "yes"])
    labelled = clone(model).fit(scores, names[y], groups=groups)
    np.testing.assert_array_equal(
        labelled.predict_proba(scores, groups=groups), expected
    )
    assert set(labelled.predict(scores, groups=groups)) == {"no", "yes"}
    single = clone(model).fit(scores.astype(np.float32), y, groups=groups)
    np.testing.assert_allclose(
        single.predict_proba(scores.astype(np.float32), groups=groups),
        expected,
        atol=1e-5,
    )


# --- Errors


def test_groups_that_are_missing_or_do_not_fit():
    scores, y, groups = _binary()
    given = GroupwiseRecalibrator(PlattScaling()).fit(scores, y, groups=groups)
    for method in (given.predict_proba, given.predict, given.transform):
        with refused(ValueError, "groups is missing", "column of X"):
            method(scores)
    decided = GroupwiseRecalibrator(PlattScaling()).fit(scores, y)
    with refused(ValueError, "groups was passed", "predicted_class"):
        decided.predict_proba(scores, groups=groups)
    with refused(ValueError, "groups is missing"):
        GroupwiseRecalibrator(groups=None).fit(scores, y)
    with refused(ValueError, "groups has 599 rows", "600"):
        GroupwiseRecalibrator().fit(scores, y, groups=groups[:-1])
    with refused(ValueError, "groups", "missing", "row 3"):
        GroupwiseRecalibrator().fit(
            scores, y, groups=["a", "b", "a", None] + ["a"] * 596
        )
    with refused(ValueError, "groups", "row 1"):
        given.predict_proba(scores[:2], groups=[1.0, np.nan])
    with refused(ValueError, "groups", "types"):
        GroupwiseRecalibrator().fit(
            scores, y, groups=np.array(["a", 1] * 300, dtype=object)
        )
    with refused(ValueError, "two sources"):
        GroupwiseRecalibrator(groups=1).fit(
            np.column_stack((scores, scores)), y, groups=groups
        )
    with refused(ValueError, "groups has 2 rows"):
        GroupwiseRecalibrator(groups=lambda X: ["a", "b"]).fit(scores, y)


def test_columns_that_are_not_there():
    pandas = pytest.importorskip("pandas")
    scores, y, groups = _binary()
    frame = pandas.DataFrame({"score": scores, "site": groups})
    with refused(ValueError, "'ward'", "['score', 'site']"):
        GroupwiseRecalibrator(groups="ward").fit(frame, y)
    with refused(ValueError, "'site'", "no column names"):
        GroupwiseRecalibrator(groups="site").fit(scores[:, None], y)
    for key in (2, -3):
        with refused(ValueError, f"column {key}", "2 columns"):
            GroupwiseRecalibrator(groups=key).fit(frame, y)
    with refused(ValueError, "no scores are left"):
        GroupwiseRecalibrator(groups=0).fit(scores[:, None], y)
    with refused(ValueError, "groups", "True"):
        GroupwiseRecalibrator(groups=True).fit(scores, y)
    with refused(ValueError, "column 1", "0 columns"):
        GroupwiseRecalibrator(groups=1).fit(scores, y)
    with refused(ValueError, "X must", "string"):
        GroupwiseRecalibrator(groups="score").fit(frame, y)  # what is left is no score
    model = GroupwiseRecalibrator(PlattScaling(), groups="site").fit(frame, y)
    with refused(ValueError, "'site'"):
        model.predict_proba(frame[["score"]])
    with pytest.raises(ValueError, match="feature names"):
        model.predict_proba(frame.rename(columns={"score": "other"}))


def test_parameters_are_checked():
    scores, y, _ = _binary()
    for options in (
        {"min_group_size": -1},
        {"shrinkage": -0.1},
        {"merge_small_groups": "yes"},
        {"groups": 1.5},
        {"recalibrator": 3},
    ):
        with pytest.raises(
            ValueError,
            match=f"'{next(iter(options))}' parameter of GroupwiseRecalibrator",
        ):
            GroupwiseRecalibrator(**options).fit(scores, y)


# --- Ids of randomised bins


def _randomised():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    rng = np.random.default_rng(0)
    scores, site = rng.random(2000).round(1), rng.choice(["north", "south"], 2000)
    frame = pd.DataFrame(
        {"p": scores, "site": site, "id": [f"row-{k}" for k in range(2000)]}
    )
    y = rng.random(2000) < np.where(site == "north", scores, scores / 2)
    bins = UniformMassBinning(5, randomize=True, random_state=0)
    return (
        GroupwiseRecalibrator(bins, groups="site").fit(frame[["p", "site"]], y),
        frame,
        y,
    )


def test_ids_break_ties_by_group():
    model, frame, _ = _randomised()
    X, ids = frame[["p", "site"]], frame["id"]
    found = model.predict_proba(X, ids=ids)
    for site, own in model.recalibrators_.items():
        rows = (frame["site"] == site).to_numpy()
        expected = own.predict_proba(X["p"][rows].to_numpy(), ids=ids[rows])
        np.testing.assert_array_equal(found[rows], expected)
        tied = found[rows & (frame["p"] == frame["p"].iloc[0]).to_numpy(), 1]
        assert len(np.unique(tied)) <= 3
    # ties are broken
    assert (
        max(len(np.unique(found[(frame["p"] == p).to_numpy(), 1])) for p in frame["p"])
        > 2
    )
    np.testing.assert_array_equal(model.transform(X, ids=ids), found)
    np.testing.assert_array_equal(
        model.predict(X, ids=ids), model.classes_[found.argmax(axis=1)]
    )


def test_ids_in_sql_beside_a_column_of_groups():
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb")
    model, frame, _ = _randomised()
    frame.loc[0, "site"] = "a site that was not seen"
    frame["n"] = range(len(frame))
    text = to_sql(model, score="p", dialect="duckdb", ids="id")
    found = duckdb.sql(f"SELECT {text} AS c FROM frame ORDER BY n").fetchnumpy()["c"]
    with pytest.warns(UserWarning, match="not seen in fit"):
        expected = model.predict_proba(frame[["p", "site"]], ids=frame["id"])[:, 1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_ids_are_routed():
    model, frame, y = _randomised()
    with config_context(enable_metadata_routing=True):
        model = model.set_predict_proba_request(ids=True).set_predict_request(ids=True)
        pipeline = make_pipeline(FunctionTransformer(), model)
        X, ids = frame[["p", "site"]], frame["id"]
        found = pipeline.predict_proba(X, ids=ids)
        np.testing.assert_array_equal(found, model.predict_proba(X, ids=ids))
        np.testing.assert_array_equal(
            pipeline.predict(X, ids=ids), model.classes_[found.argmax(axis=1)]
        )


def test_ids_of_other_methods_are_refused():
    model = GroupwiseRecalibrator(PlattScaling()).fit(
        [0.1, 0.4, 0.6, 0.9] * 20, [0, 0, 1, 1] * 20
    )
    with pytest.raises(TypeError, match="UniformMassBinning.*PlattScaling"):
        model.predict_proba([0.5], ids=["a"])
