"""Hints where users stumble; nothing is said about what is as it should be."""

import numpy as np
import pytest
from _catalog import metrics_, refused

from skcalib.metrics import (
    brier_decomposition,
    calibration_error,
    expected_calibration_error,
    reliability_curve,
)

RNG = np.random.default_rng(0)
SCORES = RNG.random(50)
Y = (RNG.random(50) < SCORES).astype(int)
PREDICTED = (SCORES > 0.5).astype(int)
every_metric = pytest.mark.parametrize("metric", metrics_("labels"))


@every_metric
def test_swapped_arguments(metric):
    with refused(ValueError, "y_true holds probabilities", "swapped"):
        metric(SCORES, Y)


@pytest.mark.parametrize("y_proba", [PREDICTED, PREDICTED.astype(bool), PREDICTED.tolist(), Y])
def test_labels_for_probabilities(y_proba):
    for metric in (calibration_error, expected_calibration_error, brier_decomposition, reliability_curve):
        with pytest.warns(UserWarning, match=r"exactly 0 or 1 in every row.*predict_proba"):
            metric(Y, y_proba)


@pytest.mark.parametrize(
    "y_proba",
    [
        SCORES,
        PREDICTED.astype(float),  # a tree, or a recalibrator with pure bins, predicts them
        np.append(PREDICTED[:-1], 0.5),  # one score in between
        np.zeros(50),
        np.column_stack((1 - PREDICTED, PREDICTED)),
    ],
)
def test_no_hint_at_labels(y_proba):
    expected_calibration_error(Y, y_proba)


def test_few_rows_are_no_sign():
    assert expected_calibration_error([0, 1, 1], [0, 1, 0]) == pytest.approx(1 / 3)


def test_different_indices():
    pandas = pytest.importorskip("pandas")
    y, scores = pandas.Series(Y), pandas.Series(SCORES)
    expected = calibration_error(Y, SCORES, binning=3)
    shuffled = scores.sample(frac=1, random_state=0)
    with pytest.warns(UserWarning, match="y_true and y_proba have different indices"):
        calibration_error(y, shuffled, binning=3)
    with pytest.warns(UserWarning, match="y_proba and sample_weight have different indices"):
        calibration_error(Y, scores, sample_weight=pandas.Series(np.ones(50), index=range(1, 51)), binning=3)
    for one, other in ((y, scores), (y, SCORES), (y.to_numpy(), shuffled.sort_index()), (y, SCORES.tolist())):
        assert calibration_error(one, other, binning=3) == pytest.approx(expected)
