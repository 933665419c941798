"""The recalibrators as calibrators of the public benchmark CalArena
(https://github.com/probkit/CalArena).

A calibrator there has ``fit(p_cal, y_cal)``, which returns nothing, and
``predict_proba(p_test)``, which returns (n, K) probabilities. p is (n,), (n, 1) or (n,
2) for two classes and (n, K) for K. A registry maps names to factories; results go to a
file of that name. In a checkout of CalArena, with skcalib and this repository on the
path, the whole `custom_calibrators.py` is::

    from benchmarks.arena.calarena import CUSTOM_CALIBRATORS

and
``python run_benchmark.py --benchmark tabrepo-binary --calibrator skcalib-StackedRecalibrator``
runs one of them.
"""  # noqa: E501

import warnings
from functools import partial

import numpy as np

import skcalib

__all__ = ["CUSTOM_CALIBRATORS", "CalArenaCalibrator"]

_NAMES = (
    "BetaCalibration",
    "Recalibrator",
    "ClasswiseTemperatureScaling",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "HistogramBinning",
    "IsotonicCalibration",
    "MatrixScaling",
    "PlattScaling",
    "QuadraticScaling",
    "ScalingBinning",
    "SplineCalibration",
    "StackedRecalibrator",
    "TemperatureScaling",
    "UniformMassBinning",
    "VectorScaling",
    "VennAbers",
)


class CalArenaCalibrator:
    """A recalibrator in the form that CalArena takes.

    Parameters
    ----------
    make_recalibrator : callable
        Returns an unfitted recalibrator; called with ``classes=``, because a
        calibration part may miss a class.
    """

    def __init__(self, make_recalibrator):
        self.make_recalibrator = make_recalibrator

    def fit(self, p_cal, y_cal):
        """Fit the recalibrator to probabilities and to labels 0 to K - 1."""
        p_cal = np.asarray(p_cal)
        n_classes = max(2, p_cal.shape[1] if p_cal.ndim == 2 else 1)
        self.recalibrator_ = self.make_recalibrator(classes=np.arange(n_classes))
        with warnings.catch_warnings():
            # hundreds of experiments: the results tell
            warnings.simplefilter("ignore", UserWarning)
            self.recalibrator_.fit(p_cal, np.asarray(y_cal).astype(np.int64))

    def predict_proba(self, p_test):
        """Return recalibrated probabilities, float64 (n, K)."""
        return np.asarray(
            self.recalibrator_.predict_proba(np.asarray(p_test)), dtype=np.float64
        )


CUSTOM_CALIBRATORS = {
    f"skcalib-{name}": partial(CalArenaCalibrator, getattr(skcalib, name))
    for name in _NAMES
}
