"""Single numbers: one error, one wording, everywhere."""

from fractions import Fraction

import numpy as np
import pytest
from _catalog import refused
from scipy import stats

from skcalib import PriorShift, binning, guarantees, metrics, simulation
from skcalib._input.scalars import (
    check_confidence_level,
    check_int,
    check_number,
    check_option,
    resolve_norm,
)
from skcalib.displays import BinCountDisplay
from skcalib.model_selection import sharpest_within

LABELS, SCORES = np.arange(40) % 3 == 0, np.linspace(0.01, 0.99, 40)


@pytest.mark.parametrize(
    "value", [0, -1, 1.0, 2.5, True, "3", None, np.nan, 10**30, [3]]
)
def test_not_an_int(value):
    # as scikit-learn's own error for a parameter, it is both
    for kind in (ValueError, TypeError):
        with refused(kind, "n_rows must be an int of at ", "found " + repr(value)):
            check_int(value, "n_rows")


def test_ints():
    assert [check_int(value, "n") for value in (1, np.int8(3), np.uint64(7))] == [
        1,
        3,
        7,
    ]
    assert check_int(0, "n", minimum=0) == 0
    with refused(ValueError, "at most 1,000", "1001"):
        check_int(1001, "n", maximum=1000)


@pytest.mark.parametrize(
    "value", ["1", None, True, np.nan, np.inf, -np.inf, 10**400, -(10**400), 1j, [1.0]]
)
def test_not_a_number(value):
    with refused(ValueError, "x must be a finite number", "found "):
        check_number(value, "x")


def test_numbers():
    assert [
        check_number(value, "x") for value in (1, np.float32(0.5), Fraction(1, 4), -2)
    ] == [1, 0.5, 0.25, -2]
    assert check_number(np.inf, "x", infinite=True) == np.inf
    assert check_number(np.inf, "x", above=0, infinite=True) == np.inf
    assert check_number(0, "x", at_least=0, at_most=1) == 0
    for bounds, words in (
        ({"at_least": 0.5}, "of at least 0.5"),
        ({"above": 0}, "above 0"),
        ({"above": -1, "below": 0}, "above -1 and below 0"),
        ({"at_most": -1}, "of at most -1"),
    ):
        with refused(ValueError, words, "found 0"):
            check_number(0, "x", **bounds)


def test_options():
    assert check_option("a", "mode", ("a", None)) == "a"
    assert check_option(None, "mode", ("a", None)) is None
    for value in ("b", None, 3, ["a"], np.array(["a"])):
        with refused(ValueError, "mode must be one of 'a', 'c'", "found"):
            check_option(value, "mode", ("a", "c"))


def test_norms():
    assert [resolve_norm(norm) for norm in ("l1", "l2", "max", 1, 2.5, np.inf)] == [
        1,
        2,
        np.inf,
        1,
        2.5,
        np.inf,
    ]
    for norm in ("l3", 0.5, None, True, np.nan, ["l1"]):
        with refused(ValueError, "norm must be", "'l1', 'l2' or 'max'", "found"):
            resolve_norm(norm)


def test_confidence_levels():
    assert check_confidence_level(np.float32(0.5)) == 0.5
    for level in (0, 1, 90, -0.1, np.nan, "high", None, True):
        with refused(
            ValueError, "confidence_level must be", "90 % as 0.9", f"found {level!r}"
        ):
            check_confidence_level(level)


LEVELS = [
    lambda level: metrics.calibration_error_interval(
        LABELS, SCORES, confidence_level=level
    ),
    lambda level: metrics.calibration_slope_intercept(
        LABELS, SCORES, confidence_level=level
    ),
    lambda level: metrics.reliability_curve(LABELS, SCORES).interval(level),
    lambda level: guarantees.conditional_epsilon(100, 5, confidence_level=level),
    lambda level: guarantees.event_frequency_interval([1], [3], confidence_level=level),
    lambda level: guarantees.max_n_bins(1000, 0.1, confidence_level=level),
]


@pytest.mark.parametrize("call", LEVELS)
def test_one_wording_for_levels(call):
    with refused(
        ValueError,
        "confidence_level must be a number strictly between 0 and 1",
        "found 95",
    ):
        call(95)


COUNTS = {
    "n_resamples": [
        lambda n: metrics.calibration_error_interval(LABELS, SCORES, n_resamples=n),
        lambda n: metrics.calibration_test(LABELS, SCORES, n_resamples=n),
    ],
    "n_bins": [
        lambda n: binning.EqualWidth(n).bin_edges(SCORES),
        lambda n: binning.EqualMass(n).bin_edges(SCORES),
        lambda n: binning.EqualMass(n).bin_edges(SCORES, sample_weight=SCORES),
        lambda n: binning.InformationPreserving(n).bin_edges(SCORES),
        lambda n: metrics.calibration_error(LABELS, SCORES, binning=n),
    ],
    "n_simulations": [
        lambda n: simulation.CalibrationModel(
            stats.uniform(), simulation.PowerCurve(2)
        ).estimates(metrics.expected_calibration_error, 20, n)
    ],
    "n_neighbors": [
        lambda n: metrics.neighborhood_calibration_error(LABELS, SCORES, n_neighbors=n)
    ],
}
every_count = pytest.mark.parametrize(
    ("name", "call"), [(name, call) for name, calls in COUNTS.items() for call in calls]
)


@every_count
@pytest.mark.parametrize("value", [10**30, 10**400, 0, -3])
def test_one_wording_for_counts(name, call, value):
    with refused(ValueError, f"{name} must be an int of at ", "found " + repr(value)):
        call(value)


def test_bounds_for_samples_beyond_any_memory():
    assert guarantees.conditional_epsilon(10**30, 10) < 1e-14
    with refused(ValueError, "n_samples must be an int of at most"):
        guarantees.conditional_epsilon(10**400, 10)


TEXTS = {
    "epsilons": lambda: metrics.validity_curve(LABELS, SCORES, epsilons=["0.1", "0.5"]),
    "class_weight": lambda: metrics.calibration_error(
        LABELS,
        np.column_stack((1 - SCORES, SCORES)),
        multiclass="marginal",
        class_weight={0: "1", 1: "2"},
    ),
    "positives": lambda: guarantees.event_frequency_interval(["1"], [3]),
    "counts": lambda: guarantees.well_balanced_alpha(["1", "2"]),
    "predictions": lambda: guarantees.independent_bins_certificate(
        [1], [3], ["0.5"], edges="fixed"
    ),
    "edges of FixedEdges": (
        lambda: binning.FixedEdges(["0", "0.5", "1"]).bin_edges(SCORES)
    ),
    "edges": lambda: metrics.BinStatistics.from_predictions(LABELS, SCORES, ["0", "1"]),
    "target_prior": lambda: PriorShift("balanced", ["0.5", "0.5"]).fit(SCORES, LABELS),
    "train_prior": lambda: PriorShift({0: "0.5", 1: 0.5}).fit(SCORES, LABELS),
    "n_standard_errors": lambda: sharpest_within(0.1, n_standard_errors="1"),
    "max_error": lambda: sharpest_within("0.1"),
    "binning": lambda: sharpest_within(0.1, binning="5"),
    "n_samples": lambda: BinCountDisplay.from_guarantee("1000"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_no_number(name):
    with refused((ValueError, TypeError), f"{name} must be"):
        TEXTS[name]()
