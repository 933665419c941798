"""Results look alike: frozen, as a data frame, as a page of a notebook, as text."""

import pickle
from dataclasses import FrozenInstanceError, fields, is_dataclass

import numpy as np
import pytest
from scipy import stats

import skcalib
from skcalib import evaluation, guarantees, metrics, monitoring, simulation
from skcalib._inference.results import IntervalEstimate

RNG = np.random.default_rng(0)
SCORES = RNG.beta(1, 2, 400)
Y = (RNG.random(400) < SCORES).astype(int)
GROUPS = np.where(SCORES > 0.3, "high", "low")
DRAWS = {"n_resamples": 20, "random_state": 0}


def _verification():
    model = skcalib.ScalingBinning(binning=5).fit(SCORES, Y)
    return model.verify(SCORES, Y, max_error=0.5)


def _curve_fits():
    return simulation.fit_calibration_curve(SCORES, Y)


def _estimator_bias():
    model = simulation.CalibrationModel(stats.uniform(), simulation.PowerCurve(1))
    return model.estimator_bias(metrics.calibration_error, 50, 5, random_state=0)


# Results of a few values: each unpacks in the order of its fields.
RECORDS = {
    "CalibrationTestResult": lambda: metrics.calibration_test(Y, SCORES, **DRAWS),
    "CalibrationSlopeIntercept": lambda: metrics.calibration_slope_intercept(Y, SCORES),
    "ScoreDecomposition": lambda: metrics.brier_decomposition(Y, SCORES),
    "SegmentTestResult": lambda: metrics.segment_calibration_test(
        Y, SCORES, SCORES[:, None], **DRAWS
    ),
    "Verification": _verification,
    "EstimatorBias": _estimator_bias,
    "CurveFits": _curve_fits,
    "ErrorAutocorrelation": lambda: monitoring.error_autocorrelation(
        Y, SCORES, np.arange(len(Y))
    ),
    "CurveFit": lambda: _curve_fits().table[0],
}
TABLES = {
    "CalibrationSummary": lambda: evaluation.calibration_summary(Y, SCORES, **DRAWS),
    "ModelComparison": lambda: evaluation.compare(
        Y, {"a": SCORES, "b": SCORES**2}, metrics=["brier_score"], **DRAWS
    ),
    "CrossValidatedRecalibrators": lambda: evaluation.cross_validate(
        Y, SCORES, {"platt": skcalib.PlattScaling()}
    ),
    "GroupCalibration": lambda: metrics.calibration_by_group(
        Y, SCORES, GROUPS, **DRAWS
    ),
    "BinStatistics": lambda: metrics.reliability_curve(Y, SCORES, binning=5),
    "CalibrationChange": lambda: monitoring.calibration_change(
        Y[:200], SCORES[:200], Y[200:], SCORES[200:], **DRAWS
    ),
}


@pytest.mark.parametrize("name", [*RECORDS, *TABLES])
def test_a_result_is_a_frozen_dataclass_that_shows_itself(name):
    pytest.importorskip("pandas")
    result = {**RECORDS, **TABLES}[name]()
    assert type(result).__name__ == name
    assert is_dataclass(result)
    with pytest.raises((FrozenInstanceError, AttributeError)):
        setattr(result, fields(result)[0].name, None)
    frame = result.to_frame()
    assert len(frame) >= 1
    assert len(frame.columns) > 1
    assert "<table" in result._repr_html_()
    assert str(result)
    assert repr(result)
    restored = pickle.loads(pickle.dumps(result))
    assert repr(restored) == repr(result)


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_unpacks_in_the_order_of_its_fields(name):
    record = RECORDS[name]()
    values = list(record)
    named = [getattr(record, field.name) for field in fields(record)]
    if name == "ScoreDecomposition":
        named.remove(record.within_bins)  # its last field, which does not unpack
    assert len(values) == len(named)
    assert all(value is other for value, other in zip(values, named, strict=True))


def test_statistic_and_pvalue_unpack():
    result = metrics.calibration_test(Y, SCORES, **DRAWS)
    statistic, pvalue = result
    assert (statistic, pvalue) == (result.statistic, result.pvalue)
    assert repr(result) == str(result) == "No miscalibration is detectable (p = 0.19)."


def test_an_interval_estimate_stays_a_tuple():
    estimate = metrics.calibration_error_interval(Y, SCORES, **DRAWS)
    assert isinstance(estimate, tuple)
    assert isinstance(estimate, IntervalEstimate)
    assert "<table>" in estimate._repr_html_()


def test_a_certificate_is_a_frozen_dataclass_of_sentences():
    certificate = guarantees.independent_bins_certificate(
        [20, 180], [200, 200], [0.1, 0.9], edges="fixed"
    )
    assert is_dataclass(certificate)
    assert str(certificate).startswith("With 90 % confidence, every predicted")
    assert repr(certificate) == str(certificate)
    assert "<p>" in certificate._repr_html_()
    pytest.importorskip("pandas")
    frame = certificate.to_frame()
    assert frame.columns.tolist() == ["problem", "bin", "low", "high"]
    assert frame["low"].tolist() == list(certificate.low)
    both = guarantees.independent_bins_certificate(
        [[20, 180], [5]], [[200, 200], [400]], [[0.1, 0.9], [0.01]], edges="fixed"
    )
    assert both.to_frame()["problem"].tolist() == [0, 0, 1]
    assert both.to_frame()["bin"].tolist() == [0, 1, 0]
