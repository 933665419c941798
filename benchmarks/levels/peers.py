"""Promises of other libraries, where they make some and are installed."""

from functools import partial
from importlib.util import find_spec

import numpy as np

from benchmarks.levels.decisions import PEERS, broken_and_accepted
from benchmarks.levels.promises import Promise, without_noise
from skcalib.binning import EqualMass
from skcalib.metrics import calibration_error

__all__ = ["peer_promises"]

_CALIBRATED = ("calibrated, n = 500", "calibrated, n = 60", "rare, calibrated, n = 500")
_SEQUENCES = {"default": "bonferroni_holm", "fixed sequence": "fixed_sequence"}
_CURVES = ("calibrated, n = 500", "s^1.1, n = 500", "s^1.6, n = 1500")


def peer_promises():
    """Return the intervals, tests and certified thresholds of the peers that are
    installed, and who is missing.
    """
    intervals, tests, broken, missing = [], [], [], []
    for package, add in (
        ("calibration", _uncertainty_calibration),
        ("mapie", _mapie),
        ("mcgrad", _mcgrad),
    ):
        if find_spec(package) is None:
            missing.append(package)
        else:
            add(intervals, tests)
    if find_spec("mapie") is not None:
        broken += [
            Promise(f"MAPIE, {name}: precision", 0.1, partial(_controlled, name), PEERS)
            for name in _SEQUENCES
        ]
    if find_spec("statsmodels") is None:
        missing.append("statsmodels")
    else:
        tests.append(
            Promise("statsmodels: Hosmer-Lemeshow", 0.05, _statsmodels, _CALIBRATED)
        )
    return intervals, tests, broken, missing


def _uncertainty_calibration(intervals, tests):
    from calibration import get_calibration_error_uncertainties

    def covers(sample, seed):
        np.random.seed(seed)  # noqa: NPY002
        low, _, high = get_calibration_error_uncertainties(
            sample.scores, sample.labels.astype(int), p=2
        )
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


def _controlled(sequence, sample, seed):
    from mapie.risk_control import BinaryClassificationController

    grid = np.linspace(0, 0.99, 100)
    controller = BinaryClassificationController(
        lambda X: np.column_stack((1 - X, X)),
        "precision",
        0.9,
        list_predict_params=grid if sequence == "default" else grid[::-1],
        fwer_method=_SEQUENCES[sequence],
    )
    best = controller.calibrate(
        sample.scores, sample.labels.astype(int)
    ).best_predict_param
    return broken_and_accepted(
        "precision", 0.1, sample, np.inf if best is None else best
    )


def _mcgrad(intervals, tests):
    from mcgrad.metrics import ecce_pvalue

    def rejects(sample, seed):
        return ecce_pvalue(sample.labels.astype(int), sample.scores) <= 0.05

    tests.append(Promise("MCGrad: Kuiper", 0.05, rejects, _CALIBRATED))


def _statsmodels(sample, seed):
    from statsmodels.stats.diagnostic_gen import test_chisquare_binning

    counts = np.column_stack((~sample.labels, sample.labels)).astype(float)
    expected = np.column_stack((1 - sample.scores, sample.scores))
    return (
        test_chisquare_binning(counts, expected, sort_var=sample.scores, bins=10).pvalue
        <= 0.05
    )
