"""betacal: beta calibration of its authors."""

import numpy as np
from betacal import BetaCalibration


def _beta(probs_cal, labels_cal, probs_test):
    p = (
        BetaCalibration("abm")
        .fit(probs_cal[:, 1:], labels_cal)
        .predict(probs_test[:, 1:])
    )
    return np.column_stack((1 - p, p))


BINARY = {"beta": _beta}
MULTICLASS = {}
