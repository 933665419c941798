"""Your own recalibrator: a calibration map with another link function."""

import numpy as np
from scipy.optimize import minimize

from skcalib.maps import Clip, Exp, Scaled
from skcalib.maps.checks import number
from skcalib.recalibrators import BinaryRecalibrator


class ComplementaryLogLog(BinaryRecalibrator):
    """``1 - exp(-exp(slope * log_odds + intercept))``: approaches 1 faster than 0."""

    _scale = "log_odds"
    _part_attributes = {"slope_": number, "intercept_": number}

    def _fit_binary(self, scores, labels, sample_weight):
        def log_loss(parameters):
            hazard = np.exp(np.clip(parameters[0] * scores + parameters[1], -30, 30))
            losses = np.where(labels, -np.log(-np.expm1(-hazard) + 1e-300), hazard)
            return np.average(losses, weights=sample_weight)

        # tight enough that the order of the rows does not matter
        best = minimize(log_loss, [0.5, 0.0], method="Nelder-Mead", tol=1e-10)
        self.slope_, self.intercept_ = best.x.tolist()

    def _map(self, log_odds):
        hazard = Exp(Clip(Scaled(log_odds, self.slope_, self.intercept_), -30, 3))
        return Scaled(Exp(Scaled(hazard, -1.0)), -1.0, 1.0)
