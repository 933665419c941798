"""Our recalibrators in the form of the public benchmark CalArena, run by a small copy
of what it does.
"""

import inspect

import numpy as np
import pytest

import skcalib
from benchmarks.arena.calarena import CUSTOM_CALIBRATORS, CalArenaCalibrator


def _one_experiment(factory, p_cal, y_cal, p_test, y_test):
    """What the benchmark does: a fresh calibrator, fitted, predicts; its (n, K) rows
    are scored by label.
    """
    calibrator = factory()
    assert calibrator.fit(p_cal, y_cal) is None
    predicted = calibrator.predict_proba(p_test)
    assert isinstance(predicted, np.ndarray)
    return predicted, _brier(predicted, y_test)


def _brier(proba, y):
    return np.mean(np.sum((proba - np.eye(proba.shape[1])[y]) ** 2, axis=1))


def _part(n, n_classes, seed, dtype=np.float32):
    rng = np.random.default_rng(seed)
    logits = 3 * rng.standard_normal((n, n_classes))
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    truth = proba**0.25 / (proba**0.25).sum(axis=1, keepdims=True)
    return proba.astype(dtype), np.array(
        [rng.choice(n_classes, p=row) for row in truth]
    )


@pytest.mark.parametrize("name", CUSTOM_CALIBRATORS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_calibrator_runs_and_helps_an_overconfident_model(name, n_classes):
    (p_cal, y_cal), (p_test, y_test) = (
        _part(400, n_classes, 0),
        _part(400, n_classes, 1),
    )
    predicted, score = _one_experiment(
        CUSTOM_CALIBRATORS[name], p_cal, y_cal, p_test, y_test
    )
    assert predicted.shape == (400, n_classes)
    np.testing.assert_allclose(predicted.sum(axis=1), 1, atol=1e-6)
    assert score < _brier(p_test, y_test)


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_one_column_is_the_second_class(shape):
    (p_cal, y_cal), (p_test, y_test) = (
        _part(200, 2, 0, np.float64),
        _part(50, 2, 1, np.float64),
    )
    factory = CUSTOM_CALIBRATORS["skcalib-PlattScaling"]
    both, _ = _one_experiment(factory, p_cal, y_cal, p_test, y_test)
    columns = (p[:, 1].reshape(shape) for p in (p_cal, p_test))
    p_cal_one, p_test_one = columns
    one, _ = _one_experiment(
        factory, p_cal_one, y_cal.astype(float), p_test_one, y_test
    )
    np.testing.assert_allclose(one, both, atol=1e-12)


def test_a_class_may_be_missing_from_the_calibration_part():
    p_cal, y_cal = _part(300, 4, 0)
    kept = y_cal != 2
    calibrator = CUSTOM_CALIBRATORS["skcalib-MatrixScaling"]()
    calibrator.fit(p_cal[kept], y_cal[kept])
    assert calibrator.predict_proba(p_cal).shape == (300, 4)


def test_the_registry_has_fresh_calibrators_of_every_default_recalibrator():
    factory = CUSTOM_CALIBRATORS["skcalib-TemperatureScaling"]
    assert isinstance(factory(), CalArenaCalibrator)
    assert factory() is not factory()
    fitted = {
        one
        for one in (getattr(skcalib, name) for name in dir(skcalib))
        if inspect.isclass(one)
        and issubclass(one, skcalib.recalibrators.BaseRecalibrator)
    }
    # The base; what needs groups, features or a known prior has no place in a benchmark
    # of scores and labels.
    special = {
        "BaseRecalibrator",
        "GroupwiseRecalibrator",
        "MulticalibratedRecalibrator",
        "PriorShift",
    }
    assert {one.__name__ for one in fitted} - special == {
        name.removeprefix("skcalib-") for name in CUSTOM_CALIBRATORS
    }
