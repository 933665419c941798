"""probmetrics: the implementations that CalArena compares."""

import numpy as np
from probmetrics.calibrators import get_calibrator


def _method(name):
    def fit_predict(probs_cal, labels_cal, probs_test):
        calibrator = get_calibrator(name)
        calibrator.fit(probs_cal, labels_cal)
        return np.asarray(calibrator.predict_proba(probs_test))

    return fit_predict


BINARY = {
    name: _method(name)
    for name in ("temp-scaling", "affine-scaling", "quadratic-scaling")
}
MULTICLASS = {
    name: _method(name)
    for name in ("temp-scaling", "ivap", "svs", "sms", "logistic-mix")
}
