"""Promises of other libraries, where they make some and are installed."""

from functools import partial
from importlib.util import find_spec

import numpy as np

from benchmarks.levels.promises import Promise, without_noise
from skcalib.binning import EqualMass
from skcalib.metrics import calibration_error

__all__ = ["peer_promises"]

_CALIBRATED = ("calibrated, n = 500", "calibrated, n = 60", "rare, calibrated, n = 500")
_CURVES = ("calibrated, n = 500", "s^1.1, n = 500", "s^1.6, n = 1500")


def peer_promises():
    """Return the intervals and the tests of the peers that are installed, and the names of the others."""
    intervals, tests, missing = [], [], []
    for package, add in (("calibration", _uncertainty_calibration), ("mapie", _mapie), ("mcgrad", _mcgrad)):
        if find_spec(package) is None:
            missing.append(package)
        else:
            add(intervals, tests)
    if find_spec("statsmodels") is None:
        missing.append("statsmodels")
    else:
        tests.append(Promise("statsmodels: Hosmer-Lemeshow", 0.05, _statsmodels, _CALIBRATED))
    return intervals, tests, missing


def _uncertainty_calibration(intervals, tests):
    from calibration import get_calibration_error_uncertainties

    def covers(sample, seed):
        np.random.seed(seed)  # noqa: NPY002
        low, _, high = get_calibration_error_uncertainties(sample.scores, sample.labels.astype(int), p=2)
        plugin = partial(calibration_error, binning=EqualMass(15), method="plugin")
        return low <= without_noise(sample, plugin) <= high

    intervals.append(Promise("uncertainty-calibration: l2", 0.9, covers, _CURVES))


def _mapie(intervals, tests):
    from mapie.metrics import calibration

    for name in ("kolmogorov_smirnov", "kuiper", "spiegelhalter"):
        pvalue = getattr(calibration, f"{name}_p_value")

        def rejects(sample, seed, pvalue=pvalue):
            return pvalue(sample.labels.astype(int), sample.scores) <= 0.05

        tests.append(Promise(f"MAPIE: {name}", 0.05, rejects, _CALIBRATED))


def _mcgrad(intervals, tests):
    from mcgrad.metrics import ecce_pvalue

    def rejects(sample, seed):
        return ecce_pvalue(sample.labels.astype(int), sample.scores) <= 0.05

    tests.append(Promise("MCGrad: Kuiper", 0.05, rejects, _CALIBRATED))


def _statsmodels(sample, seed):
    from statsmodels.stats.diagnostic_gen import test_chisquare_binning

    counts = np.column_stack((~sample.labels, sample.labels)).astype(float)
    expected = np.column_stack((1 - sample.scores, sample.scores))
    return test_chisquare_binning(counts, expected, sort_var=sample.scores, bins=10).pvalue <= 0.05
