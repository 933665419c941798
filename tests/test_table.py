"""The table of metrics: each calibration error has its row, its limits and its
scorers.
"""

from inspect import signature

import numpy as np
import pytest

from skcalib import metrics
from skcalib._cells.tasks import BinaryTask
from skcalib._errors.error import CalibrationError, ErrorPower
from skcalib.metrics._registry import METRICS, metric_of, scorers

ERRORS = [name for name in metrics.__all__ if name.endswith("calibration_error")]
every_row = pytest.mark.parametrize("name", METRICS)


def test_every_error_has_a_row():
    assert ERRORS
    assert set(ERRORS) <= set(METRICS), (
        "each exported error needs a row in skcalib/metrics/_registry.py"
    )
    for name, row in METRICS.items():
        assert row.function is getattr(metrics, name)
        assert metric_of(row.function) is row
    assert metric_of(lambda y_true, y_proba: 0.0) is None


@every_row
def test_the_interval_stays_inside_the_limits(name):
    rng = np.random.default_rng(1)
    scores = rng.random(60)
    labels = rng.random(60) < scores
    low, high = METRICS[name].limits
    if not METRICS[name].error().has_interval:
        return
    found = metrics.calibration_error_interval(
        labels, scores, metric=METRICS[name].function, n_resamples=30, random_state=0
    )
    assert low <= found.low <= found.high <= high


@every_row
def test_an_error_has_the_parameters_and_the_defaults_of_its_function(name):
    row, rng = METRICS[name], np.random.default_rng(2)
    of_rows = {"y_true", "y_proba", "sample_weight", "pos_label", "labels"}
    of_function = dict(signature(row.function).parameters)
    of_error = signature(row.error).parameters
    # the threshold of the decision error is no part of the number
    expected = set(of_function) - of_rows - {"return_threshold"}
    assert expected <= set(of_error)
    for parameter in expected:
        assert of_error[parameter].default == of_function[parameter].default
    scores = rng.random(300)
    labels = rng.random(300) < scores
    assert row.error().value(labels, scores) == row.function(labels, scores)


@every_row
def test_an_error_is_frozen(name):
    error = METRICS[name].error()
    with pytest.raises(AttributeError):
        error.multiclass = "marginal"
    assert type(error).__name__ in repr(error)


@every_row
def test_value_interval_and_test_come_from_the_power_of_the_row(name):
    row, rng = METRICS[name], np.random.default_rng(3)
    scores = rng.random(200)
    labels = rng.random(200) < scores**2
    options = {"metric": row.function, "n_resamples": 30, "random_state": 0}
    # canonical: the only one with a test and no interval
    if name == "kernel_calibration_error":
        assert metrics.calibration_test(labels, scores, **options).pvalue < 0.05
        return
    error = row.error()
    assert isinstance(error, CalibrationError), (
        f"{name}: a row needs the error that its interval and test come from"
    )
    task = BinaryTask(scores, labels, None)
    for most in (None, 50):
        assert isinstance(error.of_task(task, most), ErrorPower)
    found = metrics.calibration_error_interval(
        labels, scores, interval="inverted", **options
    )
    assert found.estimate == row.function(labels, scores)
    assert (found.low > 0) == (
        metrics.calibration_test(labels, scores, **options).pvalue < 0.05
    )


def test_scorers_are_those_of_the_table():
    assert set(scorers()) <= set(metrics.get_scorer_names())
    for name, row in METRICS.items():
        assert any(function is row.function for function, _ in scorers().values()), name
