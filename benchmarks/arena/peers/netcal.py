"""netcal: Bayesian binning into quantiles and logistic calibration."""

import numpy as np
from netcal.binning import BBQ
from netcal.scaling import LogisticCalibration


def _positive(make):
    def fit_predict(probs_cal, labels_cal, probs_test):
        method = make()
        method.fit(probs_cal[:, 1].astype(float), labels_cal)
        p = method.transform(probs_test[:, 1].astype(float)).reshape(-1)
        return np.column_stack((1 - p, p))

    return fit_predict


BINARY = {"BBQ": _positive(BBQ), "logistic": _positive(LogisticCalibration)}
MULTICLASS = {}
