"""The table of metrics: each calibration error has its row, its limits and its scorers."""

import numpy as np
import pytest

from skcalib import metrics
from skcalib._errors.power import Power
from skcalib.metrics._table import METRICS, metric_of, scorers

ERRORS = [name for name in metrics.__all__ if name.endswith("calibration_error")]
every_row = pytest.mark.parametrize("name", METRICS)


def test_every_error_has_a_row():
    assert ERRORS
    assert set(ERRORS) == set(METRICS), (
        "each exported error needs a row in skcalib/metrics/_table.py"
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
    if METRICS[name].power is None:
        return
    found = metrics.calibration_error_interval(
        labels, scores, metric=METRICS[name].function, n_resamples=30, random_state=0
    )
    assert low <= found.low <= found.high <= high


@every_row
def test_a_binned_row_names_the_defaults_of_its_function(name):
    row, rng = METRICS[name], np.random.default_rng(2)
    if "binning" not in row.defaults:
        return
    scores = rng.random(300)
    labels = rng.random(300) < scores
    options = {option: row.defaults[option] for option in ("norm", "binning", "method")}
    if "groups" in row.defaults:
        options |= {"groups": "predicted_class", "reduce": "max"}
        assert row.function(labels, scores) == row.function(labels, scores, **options)
    else:
        assert row.function(labels, scores) == metrics.calibration_error(
            labels, scores, **options
        )


@every_row
def test_value_interval_and_test_come_from_the_power_of_the_row(name):
    row, rng = METRICS[name], np.random.default_rng(3)
    scores = rng.random(200)
    labels = rng.random(200) < scores**2
    options = {"metric": row.function, "n_resamples": 30, "random_state": 0}
    if (
        name == "kernel_calibration_error"
    ):  # canonical: the only one with a test and no interval
        assert metrics.calibration_test(labels, scores, **options).pvalue < 0.05
        return
    assert issubclass(row.power, Power), (
        f"{name}: a row needs the power that its interval and test come from"
    )
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
