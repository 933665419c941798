"""Complementary log-log: a calibration map with another link function."""

import numpy as np
from scipy.optimize import minimize

from skcalib.maps import Clip, Exp, Scaled
from skcalib.maps.checks import number
from skcalib.recalibrators._binary import BinaryRecalibrator


class ComplementaryLogLog(BinaryRecalibrator):
    """The map ``1 - exp(-exp(slope * log_odds + intercept))``.

    It approaches 1 faster than 0.

    Parameters
    ----------
    multiclass : {"ovr", "top_label"}, default="ovr"
        K > 2 classes: each against the rest, or the confidence of the predicted class
        alone.
    normalize : bool, default=True
        Whether to normalise the K one-vs-rest probabilities to sum to 1.
    input : {"probability", "logit"}, default="probability"
        What the scores are. One column of logits is the log-odds of the positive class.
    classes : array-like, default=None
        Labels of the columns, for a calibration set in which a class is missing.

    Attributes
    ----------
    slope_, intercept_ : float
        Parameters of the map. For K > 2 classes lists with one entry per class.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or not what `input` says, `y` has another length
        or only one class, or a parameter is out of its range.

    See Also
    --------
    skcalib.PlattScaling : The same with the logistic link, which is symmetric.

    Examples
    --------
    >>> from skcalib import ComplementaryLogLog
    >>> scores, y = [0.1, 0.4, 0.6, 0.7] * 25, [0, 0, 1, 1, 0, 1, 0, 1] * 12 + [0] * 4
    >>> fitted = ComplementaryLogLog().fit(scores, y)
    >>> 0 < fitted.predict_proba([0.5])[0, 1] < 1
    True
    """

    _scale = "log_odds"
    _part_attributes = {"slope_": number, "intercept_": number}

    # for two classes; a list with one entry per class for more
    slope_: float
    intercept_: float

    def _fit_binary(self, scores, labels, sample_weight):
        def log_loss(parameters):
            hazard = np.exp(np.clip(parameters[0] * scores + parameters[1], -30, 30))
            losses = np.where(labels, -np.log(-np.expm1(-hazard) + 1e-300), hazard)
            return np.average(losses, weights=sample_weight)

        # so exact that the order of the rows does not matter
        best = minimize(log_loss, [0.5, 0.0], method="Nelder-Mead", tol=1e-10)
        self.slope_, self.intercept_ = best.x.tolist()

    def _map(self, log_odds):
        hazard = Exp(Clip(Scaled(log_odds, self.slope_, self.intercept_), -30, 3))
        return Scaled(Exp(Scaled(hazard, -1.0)), -1.0, 1.0)
