"""Hints where users stumble; nothing is said about what is as it should be."""

import warnings
from importlib import import_module

import numpy as np
import pytest
from _catalog import metrics_, refused
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from skcalib import PlattScaling, RecalibratedClassifierCV
from skcalib.metrics import (
    BinStatistics,
    brier_decomposition,
    calibration_by_group,
    calibration_error,
    calibration_error_interval,
    calibration_slope_intercept,
    calibration_test,
    expected_calibration_error,
    groupwise_calibration_error,
    maximum_calibration_error,
    reliability_curve,
)

RNG = np.random.default_rng(0)
SCORES = RNG.random(50)
Y = (RNG.random(50) < SCORES).astype(int)
PREDICTED = (SCORES > 0.5).astype(int)
every_metric = pytest.mark.parametrize("metric", metrics_("labels"))


@every_metric
def test_swapped_arguments(metric):
    with refused(ValueError, "y_true contains probabilities", "swapped"):
        metric(SCORES, Y)
    with refused(ValueError, "y_true contains probabilities", "swapped"):
        # a probability may be exactly 0 or 1
        metric(np.append(SCORES, [0.0, 1.0]), np.append(Y, [0, 1]))


@pytest.mark.parametrize(
    "y_proba", [PREDICTED, PREDICTED.astype(bool), PREDICTED.tolist(), Y]
)
def test_labels_for_probabilities(y_proba):
    for metric in (
        calibration_error,
        expected_calibration_error,
        brier_decomposition,
        reliability_curve,
    ):
        with pytest.warns(
            UserWarning, match=r"exactly 0 or 1 in every row.*predict_proba"
        ):
            metric(Y, y_proba)


@pytest.mark.parametrize(
    "y_proba",
    [
        SCORES,
        # a tree, or a recalibrator with pure bins, predicts them
        PREDICTED.astype(float),
        np.append(PREDICTED[:-1], 0.5),  # one score in between
        np.zeros(50),
        np.column_stack((1 - PREDICTED, PREDICTED)),
    ],
)
def test_no_hint_at_labels(y_proba):
    expected_calibration_error(Y, y_proba)


@pytest.mark.parametrize(
    ("metric", "params", "words"),
    [
        (
            expected_calibration_error,
            {"n_bins": 15},
            ("expected_calibration_error", "'n_bins'", "EqualWidth(15)"),
        ),
        (
            maximum_calibration_error,
            {"strategy": "uniform"},
            ("'strategy'", "binning="),
        ),
        (
            groupwise_calibration_error,
            {"num_bins": 3},
            ("groupwise_calibration_error", "binning="),
        ),
        (reliability_curve, {"bins": 3}, ("reliability_curve", "binning=")),
        (
            calibration_error_interval,
            {"n_bins": 15},
            ("calibration_error has", "EqualWidth(15)"),
        ),
        (
            calibration_error_interval,
            {"alpha": 0.1},
            ("Intervals take confidence_level=0.9",),
        ),
        (calibration_test, {"n_bins": 15}, ("calibration_test", "EqualWidth(15)")),
        (
            calibration_by_group,
            {"alpha": 0.1},
            ("calibration_by_group", "write confidence_level=0.9"),
        ),
        (calibration_slope_intercept, {"alpha": 0.1}, ("write confidence_level=0.9",)),
        (
            calibration_error,
            {"bandwidth": 1},
            ("'bandwidth': it has y_true, y_proba, norm",),
        ),
    ],
)
def test_keywords_of_other_libraries(metric, params, words):
    with refused(TypeError, "no parameter", *words):
        metric(Y, SCORES, **params)


def test_another_name_of_the_probabilities():
    with refused(TypeError, "reliability_curve", "'y_prob'", "write y_proba="):
        reliability_curve(y_true=Y, y_prob=SCORES)


@pytest.mark.filterwarnings("ignore:50 of 50 scores are distinct:UserWarning")
@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        (
            "CumulativeDifferenceDisplay",
            {"random_state": 0},
            ("'random_state': it has y_true, y_proba", "legend_kw."),
        ),
        (
            "MurphyDisplay",
            {"random_state": 0},
            ("'random_state': it has y_true, y_proba",),
        ),
        (
            "ReliabilityDisplay",
            {"n_bins": 10},
            ("'n_bins': write binning=EqualWidth(15)",),
        ),
        (
            "ReliabilityDisplay",
            {"alpha": 0.1},
            ("'alpha': write confidence_level=0.9",),
        ),
        ("ReliabilityDisplay", {"lw": 2}, ("'lw': write line_kw",)),
        ("ValidityDisplay", {"random_state": 0}, ("'random_state': it has",)),
    ],
)
def test_options_that_a_display_does_not_have(name, params, words):
    pytest.importorskip("matplotlib")
    display = getattr(import_module("skcalib.displays"), name)
    with refused(TypeError, f"{name} has no parameter", *words):
        display.from_predictions(Y, SCORES, **params)


@pytest.mark.parametrize(
    "params", [{"curve": "smooth"}, {"groups": SCORES}, {"sample_weight": SCORES}]
)
def test_options_that_need_the_rows_name_the_constructor_that_has_them(params):
    pytest.importorskip("matplotlib")
    display = import_module("skcalib.displays").ReliabilityDisplay
    (name,) = params
    with refused(
        TypeError, f"{name}= is a parameter of ReliabilityDisplay.from_predictions"
    ):
        display.from_statistics(reliability_curve(Y, SCORES), **params)
    with refused(TypeError, "dict of them", "from_statistics"):
        display.from_predictions(reliability_curve(Y, SCORES))


def test_few_rows_are_no_sign():
    assert expected_calibration_error([0, 1, 1], [0, 1, 0]) == pytest.approx(1 / 3)


def test_different_indices():
    pandas = pytest.importorskip("pandas")
    y, scores = pandas.Series(Y), pandas.Series(SCORES)
    expected = calibration_error(Y, SCORES, binning=3)
    shuffled = scores.sample(frac=1, random_state=0)
    with pytest.warns(UserWarning, match="y_true and y_proba have different indices"):
        calibration_error(y, shuffled, binning=3)
    with pytest.warns(
        UserWarning, match="y_proba and sample_weight have different indices"
    ):
        calibration_error(
            Y,
            scores,
            sample_weight=pandas.Series(np.ones(50), index=range(1, 51)),
            binning=3,
        )
    for one, other in (
        (y, scores),
        (y, SCORES),
        (y.to_numpy(), shuffled.sort_index()),
        (y, SCORES.tolist()),
    ):
        assert calibration_error(one, other, binning=3) == pytest.approx(expected)


def _rare(function, **options):
    scores, y = np.full(60, 0.01), np.arange(60) < 2
    return lambda: function(y, scores, **options)


_FRACTIONS = {"sample_weight": np.full(60, 0.5), "n_resamples": 5}
_FEW = {"clusters": np.arange(60) // 2, "n_resamples": 5}
_OF_HALF = BinStatistics.from_predictions(
    [0, 1] * 30, [0.3] * 60, [0, 0.4, 1], np.full(60, 0.55)
)


@pytest.mark.parametrize(
    "call",
    [
        _rare(calibration_test, method="hosmer_lemeshow"),
        _rare(calibration_test, **_FRACTIONS),
        _rare(calibration_test, metric=calibration_error, **_FEW),
        _rare(calibration_by_group, groups=np.arange(60) % 2, **_FRACTIONS),
        _rare(calibration_by_group, groups=np.arange(60) % 2, **_FEW),
        _rare(calibration_error_interval, **_FRACTIONS),
        _rare(
            calibration_error_interval,
            metric=expected_calibration_error,
            interval="basic",
            n_resamples=5,
        ),
        lambda: expected_calibration_error(Y, PREDICTED),
        lambda: expected_calibration_error(Y[:, None], SCORES),
        lambda: calibration_error_interval(_OF_HALF, n_resamples=5),
        lambda: calibration_test(_OF_HALF, n_resamples=5, metric=calibration_error),
        lambda: PlattScaling(input="logit").fit(SCORES, Y),
        lambda: RecalibratedClassifierCV(KNeighborsClassifier(3)).fit(
            SCORES[:, None], Y, sample_weight=np.ones(50)
        ),
        lambda: cross_val_score(
            PlattScaling(input="logit"),
            SCORES[:, None],
            Y,
            cv=2,
            scoring="neg_log_loss",
        ),
    ],
    ids=range(14),
)
def test_warnings_point_at_the_line_of_the_caller(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert {one.filename for one in caught} == {__file__}
    assert {one.lineno for one in caught} == {call.__code__.co_firstlineno}
