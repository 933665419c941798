"""Entries of scores with a known calibration curve."""

import numpy as np
from scipy import stats

from registry._entry import Entry
from skcalib.simulation import CalibrationModel, GlmCurve, PlattCurve, PowerCurve

_BY_SEARCH = "found by Nelder and Mead's method, to 1e-6: see test_simulation.py"


def _true_errors(curve):
    """Return a function that gives the true errors of uniform scores with a curve."""

    def result(rows):
        model = CalibrationModel(stats.uniform(), curve)
        return [model.true_calibration_error(norm) for norm in (1, 2, np.inf)]

    return result


ENTRIES = {
    "skcalib.simulation.CalibrationModel": Entry(
        job="doc/examples/plan_labels.py",
        result=lambda rows: CalibrationModel(stats.uniform(), PowerCurve(2)).sample(
            5, random_state=0
        ),
    ),
    "skcalib.simulation.GlmCurve": Entry(
        job="doc/examples/trust_in_a_metric.py",
        result=_true_errors(GlmCurve("logit", "log", -0.3, 1.5)),
    ),
    "skcalib.simulation.PlattCurve": Entry(
        job="doc/examples/plan_labels.py", result=_true_errors(PlattCurve(2, 1))
    ),
    "skcalib.simulation.PowerCurve": Entry(
        job="doc/examples/trust_in_a_metric.py",
        result=_true_errors(PowerCurve(2)),
        no_paper="a formula",
    ),
    "skcalib.simulation.fit_calibration_curve": Entry(
        job="doc/examples/trust_in_a_metric.py", not_frozen=_BY_SEARCH
    ),
    "skcalib.simulation.fit_score_distribution": Entry(
        job="doc/examples/trust_in_a_metric.py", not_frozen=_BY_SEARCH
    ),
}
