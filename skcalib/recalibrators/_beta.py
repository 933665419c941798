"""Beta calibration: the map between two beta densities."""

import numpy as np
from scipy.special import expit

from skcalib._input.sklearn_private import BOOLEAN, StrOptions
from skcalib._rows.links import clip_probability
from skcalib._solvers.logistic import fit_logistic, platt_targets
from skcalib.recalibrators._attributes import number
from skcalib.recalibrators._maps import Affine, Expit, LogSides
from skcalib.recalibrators._partial_pooling import (
    PartiallyPooledRecalibrator,
    PooledMap,
    slope_unit,
)


class BetaCalibration(PartiallyPooledRecalibrator, positional=("parameters",)):
    """Beta calibration: ``sigmoid(a * log(s) - b * log(1 - s) + c)`` with a and b not negative.

    The map is exact if the scores of both classes follow beta distributions. Unlike `PlattScaling` it can change scores
    near 0 and scores near 1 differently. It never decreases.

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}, default="abm"
        What is fitted: all three, ``a = b`` and the midpoint (`PlattScaling`'s family), or a and b with the midpoint
        held at 1/2, that is ``c = (a - b) log(2)``.
    smooth_targets : bool, default=True
        Whether log-loss is fitted to Platt's targets ``(N+ + 1) / (N+ + 2)`` and ``1 / (N- + 2)`` in place of 1 and 0.
        It keeps the map moderate where few rows separate the classes, and is what a missing class needs. With
        `class_pooling` above 0, N+ and N- are the counts of all K problems, and a class may be missing.
    class_pooling : float or "auto", default="auto"
        For K > 2 classes: the ridge, at least 0, that pulls the map of each class toward a common map, which is fitted
        to all K one-vs-rest problems at once. ``class_pooling * n_classes / 2 * ((a - a_all)**2 / s**2 + (b -
        b_all)**2 / s**2 + (m - m_all)**2)`` is added to the log-loss of the class, summed over the rows. m is the
        log-odds at a score of 1/2, s the mean of a_all and b_all. The ridge matters less with more rows. "auto" lowers
        it from 1 to .3, .1 and .03, as long as left-out rows are predicted better: see `QuadraticScaling`. 0 fits each
        class alone, which needs some hundred rows for each class.
    clip : "auto", float or None, default="auto"
        What keeps probabilities away from 0 and 1 before they become log-odds. "auto" learns a floor f: a probability p
        becomes ``(1 - n_classes * f) * p + f``, which keeps the order of the scores. f is 0 unless a larger one, up to
        .1, gains over half a nat of log-likelihood. A number clips to [clip, 1 - clip], None to [2^-52, 1 - 2^-52].
    multiclass : {"ovr", "top_label"}, default="ovr"
        K > 2 classes: each against the rest, or the confidence of the predicted class alone.
    normalize : bool, default=True
        Whether the K one-vs-rest probabilities are made to sum to 1.
    input : {"probability", "logit"}, default="probability"
        What the scores are. One column of logits is the log-odds of the positive class.
    classes : array-like, default=None
        Labels of the columns, for a calibration set in which a class is missing.

    Attributes
    ----------
    class_pooling_ : float
        The ridge that was used; 0 for two classes and with top labels.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    provenance_ : dict
        Where the fit comes from: method, parameters, rows, events by class, versions, and a hash of the rows.
    clip_ : float
        The learned floor, or the clipping constant.
    floor_ : float
        The learned floor, 0 if there is none.
    a_, b_, c_ : float
        Parameters of the map. For K > 2 classes lists with one entry per class.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or not what `input` says, `y` has another length or only one class, or a
        parameter is out of its range.

    See Also
    --------
    skcalib.PlattScaling : A slope and an intercept on the log-odds.
    skcalib.QuadraticScaling : A parabola on the log-odds.
    skcalib.SplineCalibration : A smooth map without a fixed shape.

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

    parameters: [StrOptions({"abm", "am", "ab"})] = "abm"
    smooth_targets: [BOOLEAN] = True

    _part_attributes = {"a_": number, "b_": number, "c_": number}

    @property
    def _needs_classes(self):
        return "any" if self.smooth_targets else super()._needs_classes

    def _fit_binary(self, log_odds, labels, sample_weight):
        targets = (
            platt_targets(labels, sample_weight) if self.smooth_targets else labels
        )
        coef = fit_logistic(
            lambda rows: self._features(log_odds[rows]),
            targets,
            sample_weight,
            lower=self._lower,
        )
        self._set_map(coef)

    def _fit_pooled(self, problems):
        coef, is_slope = (
            problems.fit_pooled(self._features, self.smooth_targets, lower=self._lower),
            self._lower == 0,
        )
        distance = np.where(
            is_slope, 1 / slope_unit(coef[is_slope].mean(), problems), 1.0
        )
        return PooledMap(
            self._features, coef, np.diag(distance), self._lower, self.smooth_targets
        )

    @property
    def _lower(self):
        # A slope that would be negative is 0 (Kull et al., Section 4): the optimum under that constraint.
        return np.repeat(
            [0, -np.inf], [1 if self.parameters == "am" else 2, self.parameters != "ab"]
        )

    def _features(self, log_odds):
        """Return log(2 s) and -log(2 (1 - s)), which are 0 at s = 1/2, or their sum; and ones unless 1/2 is held."""
        slopes = (
            log_odds[None]
            if self.parameters == "am"
            else _log_features(log_odds) + np.log([[2], [0.5]])
        )
        return (
            slopes
            if self.parameters == "ab"
            else np.vstack((slopes, np.ones(len(log_odds))))
        )

    def _set_map(self, coef):
        self.a_, self.b_ = (
            float(coef[0]),
            float(coef[0 if self.parameters == "am" else 1]),
        )
        at_half = 0.0 if self.parameters == "ab" else float(coef[-1])
        self.c_ = at_half + (self.a_ - self.b_) * float(np.log(2))

    def _predict_binary(self, log_odds):
        log_score, minus_log_rest = _log_features(
            log_odds
        )  # not a matrix product: that rounds by the number of rows
        return clip_probability(
            expit(self.a_ * log_score + self.b_ * minus_log_rest + self.c_)
        )

    def _map(self, log_odds):
        return Expit(
            Affine(
                LogSides(log_odds), np.array([[self.a_, self.b_]]), np.array([self.c_])
            )
        )


def _log_features(log_odds):
    """Return log(s) and -log(1 - s), shape (2, n)."""
    softplus = np.log1p(np.exp(-np.abs(log_odds)))
    return np.stack(
        (np.minimum(log_odds, 0) - softplus, np.maximum(log_odds, 0) + softplus)
    )
