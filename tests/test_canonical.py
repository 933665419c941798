"""The kernel calibration error of K classes: value, and the test that draws labels."""

import numpy as np
import pytest
from _catalog import refused

from skcalib._errors import kernel
from skcalib._input.scored_labels import check_scored_labels
from skcalib.metrics import (
    calibration_error_interval,
    calibration_test,
    kernel_calibration_error,
)


def _rows(n, n_classes, seed=0, exponent=1.0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), n)
    true = proba**exponent / (proba**exponent).sum(axis=1, keepdims=True)
    return (np.cumsum(true, axis=1) < rng.random((n, 1))).sum(axis=1), proba


def _twin(y, proba, bandwidth):
    n, total, distances = len(y), 0.0, []
    for i in range(n):
        for j in range(n):
            if i != j:
                distance = (
                    sum(abs(a - b) for a, b in zip(proba[i], proba[j], strict=True)) / 2
                )
                distances.append(distance)
                nu = bandwidth or 1.0
                inner = sum(
                    ((k == y[i]) - a) * ((k == y[j]) - b)
                    for k, (a, b) in enumerate(zip(proba[i], proba[j], strict=True))
                )
                total += np.exp(-distance / nu) * inner
    return total / n / (n - 1) if bandwidth else _twin(y, proba, np.median(distances))


def test_sanity_values():
    """Equal rows, labels 0 and 1: <(.5, -.5), (-.5, .5)> = -.5. Three rows: by hand,
    formulas page.
    """
    assert kernel_calibration_error([0, 1], [[0.5, 0.5]] * 2) == pytest.approx(
        -0.5, abs=1e-12
    )
    proba = [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]]
    # Pairs: (1, 2): e0 - p, e1 - p: -.62 + .38 -> .38 - .8 = -.42; TV .4 to the third
    # row.
    inner = (
        -0.42,
        (0.5 * -0.2 + -0.3 * -0.2 + -0.2 * 0.4),
        (-0.5 * -0.2 + 0.7 * -0.2 + -0.2 * 0.4),
    )
    expected = (inner[0] + np.exp(-0.4) * (inner[1] + inner[2])) / 3
    assert expected == pytest.approx(-0.193626, abs=1e-6)
    assert kernel_calibration_error([0, 1, 2], proba, bandwidth=1) == pytest.approx(
        expected, abs=1e-9
    )


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("bandwidth", [None, 0.3])
def test_value_is_that_of_the_pairs(n_classes, bandwidth, monkeypatch):
    y, proba = _rows(31, n_classes)
    monkeypatch.setattr(kernel, "_ROWS", 4)  # several blocks, the last ones cut
    monkeypatch.setattr(kernel, "_COLUMNS", 5)
    found = kernel_calibration_error(y, proba, bandwidth=bandwidth or "median")
    assert found == pytest.approx(_twin(y, proba, bandwidth), abs=1e-12)
    if n_classes == 2:
        assert found == pytest.approx(
            kernel_calibration_error(y, proba[:, 1], bandwidth=bandwidth or "median")
        )


def test_integer_weights_are_repeated_rows(monkeypatch):
    y, proba = _rows(40, 3)
    weight = np.random.default_rng(1).integers(0, 4, 40)
    for most in (512, 10):
        monkeypatch.setattr(kernel, "_LANDMARKS", most)
        found = kernel_calibration_error(y, proba, sample_weight=weight)
        again = kernel_calibration_error(
            np.repeat(y, weight), np.repeat(proba, weight, axis=0)
        )
        assert found == pytest.approx(again, abs=1e-12)


def test_statistic_of_the_test_is_the_error_while_all_rows_are_landmarks():
    y, proba = _rows(50, 3)
    drawn, _ = _rows(50, 3, seed=3)
    data = check_scored_labels(y, proba)
    error = kernel.KernelError(bandwidth=0.4)
    found = error.drawn_statistics(data, [(drawn, None, {})])
    expected = [
        50 * 49 * kernel_calibration_error(labels, proba, bandwidth=0.4)
        for labels in (y, drawn)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)  # float32


@pytest.mark.parametrize(
    "options",
    [{}, {"sample_weight": np.arange(300) % 3}, {"clusters": np.arange(300) // 2}],
)
def test_it_sees_what_is_wrong_and_nothing_else(options):
    options = {
        "metric": kernel_calibration_error,
        "random_state": 0,
        "n_resamples": 199,
        "labels": range(3),
        **options,
    }
    y, proba = _rows(300, 3, exponent=2.5)
    found = calibration_test(y, proba, **options)
    assert found.pvalue <= 0.02
    assert found.statistic == kernel_calibration_error(
        y, proba, sample_weight=options.get("sample_weight")
    )
    assert calibration_test(*_rows(300, 3), **options).pvalue > 0.05


def test_refusals():
    y, proba = _rows(30, 3)
    with refused(ValueError, "bandwidth", "median", "-1"):
        kernel_calibration_error(y, proba, bandwidth=-1)
    with refused(ValueError, "bandwidth", "scott"):
        kernel_calibration_error(y, proba, bandwidth="scott")
    with refused(ValueError, "at least two"):
        kernel_calibration_error([0], [[0.2, 0.8]], labels=[0, 1])
    with refused(ValueError, "no interval", "calibration_test"):
        calibration_error_interval(y, proba, metric=kernel_calibration_error)
    with refused(TypeError, "multiclass", "kernel_calibration_error"):
        calibration_test(
            y, proba, metric=kernel_calibration_error, multiclass="marginal"
        )


@pytest.mark.slow
@pytest.mark.parametrize(("n", "n_classes"), [(60, 2), (100, 3), (150, 10)])
def test_level(n, n_classes):
    """Of 80 calibrated samples 4 are expected below .05; more than 10 have a chance of
    .2 %.
    """
    rejected = 0
    for seed in range(80):
        options = {
            "metric": kernel_calibration_error,
            "n_resamples": 99,
            "random_state": seed,
        }
        y, proba = _rows(n, n_classes, seed=seed)
        rejected += (
            calibration_test(y, proba, labels=range(n_classes), **options).pvalue
            <= 0.05
        )
    assert 1 <= rejected <= 10


@pytest.mark.slow
def test_many_classes_and_rows_take_seconds_not_minutes():
    y, proba = _rows(10_000, 100)
    assert abs(kernel_calibration_error(y, proba)) < 1e-3
