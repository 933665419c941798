"""The design card, literally: metrics as scorers, bin counts by nested names, every
recalibrator in a pipeline.
"""

import pickle

import numpy as np
import pytest
from _catalog import RECALIBRATORS, each_of, refused
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import get_scorer as sklearn_scorer
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from skcalib import (
    CrossFittedClassifier,
    GroupwiseRecalibrator,
    HistogramBinning,
    PlattScaling,
    RecalibratedClassifierCV,
    ScalingBinning,
    StackedRecalibrator,
)
from skcalib.binning import (
    EqualMass,
    EqualWidth,
    FixedEdges,
    MinimumMass,
    MonotonicSweep,
)
from skcalib.export import from_dict, to_dict, to_sql
from skcalib.metrics import calibration_error, expected_calibration_error
from skcalib.metrics._registry import METRICS

X, CODES = make_classification(240, n_features=5, flip_y=0.2, random_state=0)
LABELS = {
    "0/1": CODES,
    "words": np.array(["no", "yes"])[CODES],
    "objects": np.array(["no", "yes"], dtype=object)[CODES],
    "booleans": CODES == 1,
    "{1, 2}": CODES + 1,
    "{-1, 1}": 2 * CODES - 1,
}
PROBA = cross_val_predict(GaussianNB(), X, CODES, cv=3, method="predict_proba")[:, 1]
FOLDS = [test for _, test in StratifiedKFold(3).split(X, CODES)]
every_metric = pytest.mark.parametrize(
    "metric", [row.function for row in METRICS.values()], ids=list(METRICS)
)
every_labels = pytest.mark.parametrize("y", LABELS.values(), ids=LABELS.keys())


def _scorer(metric, **options):
    return make_scorer(
        metric, response_method="predict_proba", greater_is_better=False, **options
    )


@every_metric
@pytest.mark.parametrize(
    "y",
    [
        pytest.param(y, marks=[pytest.mark.slow] if number else [], id=kind)
        for number, (kind, y) in enumerate(LABELS.items())
    ],
)
def test_every_metric_in_make_scorer(metric, y):
    scores = cross_val_score(GaussianNB(), X, y, scoring=_scorer(metric), cv=3)
    expected = [-metric(CODES[test], PROBA[test]) for test in FOLDS]
    # no NaN, and the second class is the event
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    search = GridSearchCV(
        GaussianNB(), {"var_smoothing": [1e-9]}, scoring=_scorer(metric), cv=3
    ).fit(X, y)
    np.testing.assert_allclose(search.best_score_, np.mean(expected), atol=1e-12)
    last = cross_val_score(
        GaussianNB(), X, y, scoring=_scorer(metric, pos_label=np.unique(y)[1]), cv=3
    )
    np.testing.assert_allclose(last, expected, atol=1e-12)


@every_labels
def test_the_event_is_that_of_scikit_learns_log_loss(y):
    model = GaussianNB().fit(X, y)
    two = calibration_error(y, model.predict_proba(X), squared=True)
    assert calibration_error(y, model.predict_proba(X)[:, 1], squared=True) == two
    assert np.isfinite(sklearn_scorer("neg_log_loss")(model, X, y))


def test_rows_of_one_label_get_the_line_to_write():
    words = LABELS["words"]
    one = words == "yes"
    with refused(ValueError, "one class only ('yes')", "labels=[other, 'yes']"):
        _scorer(expected_calibration_error)(
            GaussianNB().fit(X, words), X[one], words[one]
        )
    told = _scorer(expected_calibration_error, labels=["no", "yes"])
    assert np.isfinite(told(GaussianNB().fit(X, words), X[one], words[one]))


NESTED = [
    (HistogramBinning(), "binning__n_bins", 10),
    (ScalingBinning(), "binning__n_bins", 10),
    (ScalingBinning(), "recalibrator__loss", "log"),
    (MinimumMass(), "base__n_bins", 15),
    (MonotonicSweep(), "base__n_bins", 15),
    (GroupwiseRecalibrator(), "recalibrator__loss", "log"),
    (GroupwiseRecalibrator(HistogramBinning()), "recalibrator__binning__n_bins", 10),
    (make_pipeline(HistogramBinning()), "histogrambinning__binning__n_bins", 10),
    (
        RecalibratedClassifierCV(recalibrator=HistogramBinning()),
        "recalibrator__binning__n_bins",
        10,
    ),
]


@pytest.mark.parametrize(("estimator", "name", "default"), NESTED, ids=str)
def test_nested_names_are_listed_and_can_be_set(estimator, name, default):
    listed = estimator.get_params(deep=True)
    assert listed[name] == default
    assert name not in estimator.get_params(deep=False)
    other = {
        "log": "brier" if isinstance(estimator, GroupwiseRecalibrator) else "squared"
    }.get(default, 7)
    changed = clone(estimator).set_params(**{name: other})
    assert clone(changed).get_params()[name] == other
    assert estimator.get_params()[name] == default  # not shared
    same = clone(estimator).set_params(**listed)  # what is listed can be set
    assert same.get_params().keys() == listed.keys()


def test_a_search_over_bins_by_nested_names():
    model = make_pipeline(CrossFittedClassifier(GaussianNB(), cv=3), HistogramBinning())
    grid = [
        {"histogrambinning__binning__n_bins": [3, 6]},
        {"histogrambinning__binning": [EqualMass(5), EqualWidth(5), 5]},
        {
            "histogrambinning__binning": [EqualWidth()],
            "histogrambinning__binning__n_bins": [4],
        },
    ]
    search = GridSearchCV(
        model, grid, scoring=_scorer(expected_calibration_error), cv=3
    ).fit(X, LABELS["words"])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    alone = (
        clone(model)
        .set_params(histogrambinning__binning__n_bins=6)
        .fit(X, LABELS["words"])
    )
    assert alone[-1].n_bins_ == 6


@pytest.mark.slow
@pytest.mark.parametrize("recalibrator", each_of(RECALIBRATORS))
def test_every_recalibrator_in_a_pipeline(recalibrator):
    model = make_pipeline(
        CrossFittedClassifier(GaussianNB(), cv=2), clone(recalibrator)
    )
    scores = cross_val_score(
        model, X, LABELS["words"], scoring=_scorer(expected_calibration_error), cv=2
    )
    assert np.isfinite(scores).all()
    proba = clone(model).fit(X, LABELS["{1, 2}"]).predict_proba(X)
    assert proba.shape == (240, 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1)


# Another value of each parameter; what a class does not have is left out.
_OTHER = {
    "input": "logit",
    "multiclass": "top_label",
    "normalize": False,
    "randomize": True,
    "center": False,
    "max_n_knots": 4,
    "binning": EqualWidth(4),
    "clip": 0.2,
    "alpha": 0.3,
    "classes": [5, 6],
    "cv": 7,
}


@pytest.mark.parametrize(
    "recalibrator",
    each_of([*RECALIBRATORS, GroupwiseRecalibrator(min_group_size=20)]),
)
def test_a_parameter_set_after_the_fit_asks_for_a_new_fit(recalibrator):
    fitted = clone(recalibrator).fit(PROBA, CODES)
    expected = fitted.predict_proba(PROBA)
    for name in _OTHER.keys() & fitted.get_params(deep=False).keys():
        before = getattr(fitted, name)
        fitted.set_params(**{name: _OTHER[name]})
        if _OTHER[name] != before:
            for use in (fitted.predict_proba, fitted.predict, fitted.transform):
                with refused(ValueError, f"was fitted with {name}=", "Fit it again"):
                    use(PROBA)
        fitted.set_params(**{name: before})
        if not getattr(fitted, "randomize", False):
            # as it was: nothing to say
            np.testing.assert_array_equal(fitted.predict_proba(PROBA), expected)
    # no forecast depends on these
    for name, value in (("n_jobs", 1), ("verbose", False), ("random_state", 3)):
        if name in fitted.get_params(deep=False):
            assert (
                fitted.set_params(**{name: value}).predict_proba(PROBA).shape
                == expected.shape
            )


@pytest.mark.parametrize("edges", [np.array([0, 0.3, 0.6, 1]), [0, 0.3, 0.6, 1]])
def test_edges_changed_in_place_after_the_fit_ask_for_a_new_fit(edges):
    y = CODES
    fitted = HistogramBinning(FixedEdges(edges)).fit(PROBA, y)
    expected = str(fitted.certificate())
    edges[1] = 0.25
    for use in (
        fitted.certificate,
        lambda: fitted.predict_proba(PROBA),
        lambda: to_dict(fitted),
    ):
        with refused(
            ValueError,
            "fitted with binning__edges=",
            "0.25",
            "is now",
            "Fit it again",
        ):
            use()
    edges[1] = 0.3
    assert str(fitted.certificate()) == expected


def test_a_nested_parameter_set_after_the_fit_asks_for_a_new_fit():
    fitted = GroupwiseRecalibrator(PlattScaling(), min_group_size=20).fit(PROBA, CODES)
    expected = fitted.predict_proba(PROBA)
    fitted.set_params(recalibrator__class_pooling=3.0)
    for use in (fitted.predict_proba, lambda _: to_dict(fitted)):
        with refused(
            ValueError,
            "fitted with recalibrator__class_pooling='auto'",
            "is now 3.0",
            "Fit it again",
        ):
            use(PROBA)
    fitted.set_params(recalibrator__class_pooling="auto")
    np.testing.assert_array_equal(fitted.predict_proba(PROBA), expected)
    np.testing.assert_array_equal(
        fitted.set_params(recalibrator=PlattScaling()).predict_proba(PROBA), expected
    )
    members = [PlattScaling(), ScalingBinning(PlattScaling(), EqualMass(4))]
    stack = StackedRecalibrator(members, cv=2).fit(PROBA, CODES)
    expected = stack.predict_proba(PROBA)
    members[1].set_params(binning__n_bins=5)
    with refused(ValueError, "recalibrators__1__binning__n_bins=4", "is now 5"):
        stack.predict_proba(PROBA)
    members[1].set_params(binning__n_bins=4, random_state=3)
    np.testing.assert_array_equal(stack.predict_proba(PROBA), expected)
    members.append(PlattScaling())
    with refused(ValueError, "recalibrators=", "is now"):
        stack.predict_proba(PROBA)
    fitted.set_params(recalibrator__input="logit")
    with refused(
        ValueError, "GroupwiseRecalibrator was fitted with input='probability'"
    ):
        fitted.predict_proba(PROBA)


def test_exports_ask_for_a_new_fit_too():
    fitted = from_dict(to_dict(PlattScaling().fit(PROBA, CODES)))
    copied = pickle.loads(pickle.dumps(fitted)).set_params(input="logit")
    for use in (to_dict, to_sql):
        with refused(ValueError, "was fitted with input='probability'"):
            use(copied)
    with refused(ValueError, "was fitted with input='probability'"):
        fitted.set_params(input="logit").predict_proba(PROBA)
