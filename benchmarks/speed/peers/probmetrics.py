"""probmetrics: temperature, vector and matrix scaling on torch."""

import numpy as np
from probmetrics.calibrators import get_calibrator

from benchmarks.speed.floors import import_seconds
from benchmarks.speed.peers import Contender


def _fit_predict(method, **config):
    def run(problem):
        calibrator = get_calibrator(method, **config)
        calibrator.fit(problem.scores, problem.labels)
        return np.asarray(calibrator.predict_proba(problem.scores))

    return Contender(run)


def _fit_then_forecast(method, **config):
    def run(problem):
        known, fresh = problem.halves()
        calibrator = get_calibrator(method, **config)
        calibrator.fit(known.scores, known.labels)
        return np.asarray(calibrator.predict_proba(fresh.scores))

    return Contender(run)


_UNPENALISED = {
    f"sms_lambda_{part}": 0.0 for part in ("intercept", "diagonal", "off_diagonal")
}

JOBS = {
    "temperature, 1000 classes": _fit_predict("temp-scaling"),
    "temperature, 100 classes": _fit_predict("temp-scaling"),
    "vector scaling": _fit_then_forecast("svs"),
    "matrix scaling, structured": _fit_then_forecast("sms"),
    "matrix scaling, unpenalised": _fit_then_forecast("sms", **_UNPENALISED),
    "import": Contender(lambda problem: import_seconds("probmetrics.calibrators")),
}
