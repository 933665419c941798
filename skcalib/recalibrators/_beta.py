"""Beta calibration: the map between two beta densities."""

import numpy as np
from scipy.special import log_expit

from skcalib._links import clip_probability, expit
from skcalib._validation import StrOptions
from skcalib.recalibrators._base import BinaryRecalibrator
from skcalib.recalibrators._logistic import fit_logistic
from skcalib.recalibrators._scaling import location_scale, platt_targets


class BetaCalibration(BinaryRecalibrator):
    """Beta calibration: ``sigmoid(a * log(s) - b * log(1 - s) + c)`` with a and b not negative.

    The map that is right where the scores of both classes follow beta distributions. Unlike `PlattScaling` it bends the
    scores near 0 otherwise than those near 1. It never decreases.

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}, default="abm"
        What is fitted: all three, ``a = b`` and the midpoint (`PlattScaling`'s family), or a and b with the midpoint
        held at 1/2, that is ``c = (a - b) log(2)``.
    smooth_targets : bool, default=False
        Whether log-loss is fitted to Platt's targets ``(N+ + 1) / (N+ + 2)`` and ``1 / (N- + 2)`` in place of 1 and 0.
        It keeps the map moderate where few rows separate the classes, and is what a missing class needs.
    input : {"probability", "logit"}, default="probability"
        What the scores are. One column of logits is the log-odds of the positive class.
    classes : array-like, default=None
        Labels of the columns, for a calibration set in which a class is missing.
    multiclass : {"ovr", "top_label"}, default="ovr"
        K > 2 classes: each against the rest, or the confidence of the predicted class alone.
    normalize : bool, default=True
        Whether the K one-vs-rest probabilities are made to sum to 1.
    clip : float or "auto", default=None
        Probabilities are clipped to [clip, 1 - clip] before they become log-odds; None means 2^-52. "auto" goes up, to
        .03 at most, where that gains more than 1 nat of log-likelihood: for models that say exactly 0 and 1.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    clip_ : float
        The clipping constant used.
    a_, b_, c_ : float
        Parameters of the map. For K > 2 classes lists with one entry a class.

    References
    ----------
    Kull, Silva Filho and Flach (2017), Beta calibration: a well-founded and easily implemented improvement on logistic
    calibration for binary classifiers.

    Examples
    --------
    A map that is a root near 0 and doubles the log-odds near 1:

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib import BetaCalibration
    >>> scores = np.repeat([0.1, 0.5, 0.9], 10000)
    >>> frequency = expit(0.5 * np.log(scores) - 2 * np.log(1 - scores))
    >>> y = np.arange(30000) % 10000 < 10000 * frequency
    >>> beta = BetaCalibration().fit(scores, y)
    >>> round(beta.a_, 2), round(beta.b_, 2), round(abs(beta.c_), 2)
    (0.5, 2.0, 0.0)
    """

    _parameter_constraints = {
        **BinaryRecalibrator._parameter_constraints,
        "parameters": [StrOptions({"abm", "am", "ab"})],
        "smooth_targets": ["boolean"],
    }
    _scale = "log_odds"

    def __init__(
        self,
        parameters="abm",
        *,
        smooth_targets=False,
        input="probability",
        classes=None,
        multiclass="ovr",
        normalize=True,
        clip=None,
    ):
        self.parameters = parameters
        self.smooth_targets = smooth_targets
        self.input = input
        self.classes = classes
        self.multiclass = multiclass
        self.normalize = normalize
        self.clip = clip

    @property
    def _fits_missing_class(self):
        return self.smooth_targets

    def _fit_binary(self, log_odds, labels, sample_weight):
        targets = platt_targets(labels, sample_weight) if self.smooth_targets else labels.astype(np.float64)
        if self.parameters == "am":
            (self.a_,), self.c_ = _fit_slopes(log_odds[:, None], targets, sample_weight)
            self.b_ = self.a_
        elif self.parameters == "abm":
            (self.a_, self.b_), self.c_ = _fit_slopes(_log_features(log_odds), targets, sample_weight)
        else:
            # a log(2 s) - b log(2 (1 - s)) is 0 at s = 1/2
            features = _log_features(log_odds) + np.log([2, 0.5])
            (self.a_, self.b_), _ = _fit_slopes(features, targets, sample_weight, intercept=False)
            self.c_ = (self.a_ - self.b_) * float(np.log(2))

    def _predict_binary(self, log_odds):
        return clip_probability(expit(_log_features(log_odds) @ np.array([self.a_, self.b_]) + self.c_))


def _log_features(log_odds):
    """Return log(s) and -log(1 - s)."""
    return np.column_stack((log_expit(log_odds), -log_expit(-log_odds)))


def _fit_slopes(features, targets, sample_weight, *, intercept=True):
    """Return the slopes, not negative, and the intercept of least log-loss.

    Where a slope would be negative the others are fitted without it (Kull et al., Section 4): the optimum of the convex
    loss under the constraint.
    """
    centre, scale = zip(*(location_scale(column, sample_weight) for column in features.T), strict=True)
    centre, scale = np.array(centre) * intercept, np.array(scale)
    scaled = (features - centre) / scale
    if not intercept:
        slopes = fit_logistic(scaled, targets, sample_weight, lower=np.zeros(scaled.shape[1])) / scale
        return slopes.tolist(), 0.0
    design = np.column_stack((scaled, np.ones(len(scaled))))
    coef = fit_logistic(design, targets, sample_weight, lower=np.append(np.zeros(scaled.shape[1]), -np.inf))
    slopes = coef[:-1] / scale
    return slopes.tolist(), float(coef[-1] - slopes @ centre)
