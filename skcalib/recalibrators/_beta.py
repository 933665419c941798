"""Beta calibration: the map between two beta densities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skcalib._fitting.partial_pooling import PooledMap, slope_unit
from skcalib._input.sklearn_private import StrOptions
from skcalib._solvers.logistic import fit_logistic, platt_targets
from skcalib.maps import Affine, Expit, LogSides
from skcalib.maps.checks import number
from skcalib.recalibrators._base import RIDGE
from skcalib.recalibrators._features import FeatureRecalibrator
from skcalib.recalibrators._partially_pooled import PartiallyPooledRecalibrator


class BetaCalibration(FeatureRecalibrator, PartiallyPooledRecalibrator):
    """Beta calibration: ``sigmoid(a * log(s) - b * log(1 - s) + c)`` with a, b >= 0.

    The map is exact if the scores of both classes follow beta distributions. Unlike
    `PlattScaling`, it can change scores near 0 and near 1 differently. The map never
    decreases.

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}, default="abm"
        Parameters to fit. "abm" fits all three. "am" fits the midpoint and a common
        slope ``a = b`` (the family of `PlattScaling`). "ab" fits a and b, with the
        midpoint fixed at 1/2, that is, ``c = (a - b) log(2)``.
    smooth_targets : bool, default=True
        Whether to minimise the log-loss for Platt's targets ``(N+ + 1) / (N+ + 2)`` and
        ``1 / (N- + 2)`` instead of 1 and 0. This prevents the map from becoming too
        steep if a small sample separates the classes, and is required if a class is
        missing. With `class_pooling` above 0, N+ and N- are the counts over all K
        problems, and a class may be missing.
    alpha : float, default=None
        Strength of the ridge penalty, at least 0: ``alpha / 2 * ((a - 1)**2 + (b -
        1)**2)`` is added to the log-loss, summed over the samples. The penalty
        stabilises the slopes if all scores lie near one end of the scale, and has less
        influence with more samples. None means 1 with smoothed targets, and 0 without
        them (as in Kull et al.).
    features : str, int or list of these, default=None
        Columns of `X`, by name or position, that enter the log-odds linearly beside the
        score, such as an age or the length of a text. The other columns are the scores.
        Features are numbers without missing values, and require two classes.
        Their coefficients have a ridge penalty, on the scale of standardised features,
        whose strength maximises the marginal likelihood; it may be infinite, which
        leaves the features out.
    class_pooling : float or "auto", default="auto"
        For K > 2 classes, the strength, at least 0, of the ridge penalty that pulls the
        map of each class toward a common map, which is fitted with the penalty `alpha`
        jointly to all K one-vs-rest problems.
        ``class_pooling * n_classes / 2 * ((a - a_all)**2 / s**2 + (b - b_all)**2 / s**2 + (m - m_all)**2)``
        is added to the log-loss of the class, summed over the samples. Here m is the
        calibrated log-odds at a score of 1/2, and s is the mean of a_all and b_all. The
        penalty has less influence with more samples. "auto" lowers it from 1 to .3, .1
        and .03, as long as this improves the loss on held-out samples: see
        `QuadraticScaling`. 0 fits each class separately with the penalty `alpha`, which
        needs several hundred samples per class.
    clip : "auto", float or None, default="auto"
        How probabilities are kept away from 0 and 1 before conversion to log-odds.
        "auto" learns a floor f: a probability p becomes
        ``(1 - n_classes * f) * p + f``, which preserves the order of the scores. f is 0
        unless a larger value, up to .1, improves the log-likelihood by more than half a
        nat. With a number, probabilities are clipped to [clip, 1 - clip]; with None, to
        [2^-52, 1 - 2^-52].
    multiclass : {"ovr", "top_label"}, default="ovr"
        For K > 2 classes, whether to calibrate each class against the rest, or only the
        confidence of the predicted class.
    normalize : bool, default=True
        Whether to normalise the K one-vs-rest probabilities to sum to 1.
    input : {"probability", "logit"}, default="probability"
        Scale of the scores. A single column of logits is the log-odds of the positive
        class.
    classes : array-like, default=None
        Labels of the columns; required if a class is missing from the calibration set.

    Attributes
    ----------
    class_pooling_ : float
        Strength of the ridge penalty that was used; 0 for two classes and for top-label
        calibration.
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    provenance_ : dict
        Provenance of the fit: method, parameters, number of samples, events per class,
        versions, and a hash of the samples.
    clip_ : float
        The learned floor, or the clipping constant.
    floor_ : float
        The learned floor; 0 if there is none.
    a_, b_, c_ : float
        Parameters of the map. For K > 2 classes, these are lists with one entry per
        class.
    feature_coef_ : ndarray of shape (n_features,)
        Change of the calibrated log-odds per unit of each feature. This attribute and
        the next two exist only if `features` is given.
    feature_mean_ : ndarray of shape (n_features,)
        Mean of each feature, at which it changes nothing.
    feature_penalty_ : float
        The selected strength of the ridge penalty; infinity if the features are left
        out.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    skcalib.PlattScaling : A slope and an intercept on the log-odds scale.
    skcalib.QuadraticScaling : A parabola in the log-odds.
    skcalib.SplineCalibration : A smooth map without a fixed shape.

    References
    ----------
    Kull, Silva Filho and Flach (2017), Beta calibration: a well-founded and easily
    implemented improvement on logistic calibration for binary classifiers.

    Examples
    --------
    A map that halves the log-odds near 0 and doubles them near 1:

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib import BetaCalibration
    >>> scores = np.repeat([0.1, 0.5, 0.9], 10000)
    >>> frequency = expit(0.5 * np.log(scores) - 2 * np.log(1 - scores))
    >>> y = np.arange(30000) % 10000 < 10000 * frequency
    >>> beta = BetaCalibration(alpha=0).fit(scores, y)
    >>> round(beta.a_, 2), round(beta.b_, 2), round(abs(beta.c_), 2)
    (0.5, 2.0, 0.0)
    """  # noqa: E501

    _parameter_constraints = {
        **FeatureRecalibrator._parameter_constraints,
        **PartiallyPooledRecalibrator._parameter_constraints,
        "parameters": [StrOptions({"abm", "am", "ab"})],
        "smooth_targets": ["boolean"],
        "alpha": [RIDGE, None],
    }

    _part_attributes = {"a_": number, "b_": number, "c_": number}

    # for two classes; a list with one entry per class for more
    a_: float
    b_: float
    c_: float

    def __init__(
        self,
        parameters: Literal["abm", "am", "ab"] = "abm",
        *,
        smooth_targets: bool = True,
        alpha: float | None = None,
        features: str | int | Sequence[str | int] | None = None,
        class_pooling: float | Literal["auto"] = "auto",
        clip: float | Literal["auto"] | None = "auto",
        multiclass: Literal["ovr", "top_label"] = "ovr",
        normalize: bool = True,
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.parameters = parameters
        self.smooth_targets = smooth_targets
        self.alpha = alpha
        self.features = features
        self.class_pooling = class_pooling
        self.clip = clip
        self.multiclass = multiclass
        self.normalize = normalize
        self.input = input
        self.classes = classes

    @property
    def _needs_classes(self):
        """Which classes must occur in the rows of a fit: "all", any "two", or "any"."""
        # Smoothed targets keep the fit finite, also with rows of one class alone.
        if self.smooth_targets:
            return "any"
        return super()._needs_classes

    def _fit_binary(self, log_odds, labels, sample_weight, side_features=None):
        """Fit a logistic regression on log(s) and -log(1 - s) of the scores s, given as
        log-odds (n,), and on `side_features`, a `SideFeatures` or None, to boolean
        labels; return the `LimitsMaker`.
        """
        targets = labels
        if self.smooth_targets:
            targets = platt_targets(labels, sample_weight)
        samples = (lambda rows: self._features(log_odds[rows]), targets, sample_weight)
        if side_features is None:
            coef = fit_logistic(*samples, **self._ridge)
        else:
            fit = side_features.fit_logistic(*samples, **self._ridge)
            coef, side_coef, strength = fit
            self._set_features(side_features, side_coef, strength)
        self._set_map(coef)
        return self._regression(coef, side_features)

    def _own_position(self, scores):
        return self._features(scores)

    def _fit_pooled(self, problems):
        """Return the `PooledMap`: one logistic regression, fitted to the
        `ClassProblems` of all classes together, to which `class_pooling` pulls the
        coefficients of each.
        """
        coef = problems.fit_pooled(self._features, self.smooth_targets, **self._ridge)
        # The ridge is on |distance @ (coef - pooled coef)|^2: deviations of a slope are
        # divided by the mean of the pooled slopes, those of an intercept count as they
        # are.
        unit = slope_unit(coef[self._is_slope].mean(), problems)
        distance = np.diag(np.where(self._is_slope, 1 / unit, 1.0))
        return PooledMap(
            self._features, coef, distance, self._lower, self.smooth_targets
        )

    @property
    def _lower(self):
        """Lower bounds (d,): 0 for slopes (Kull et al., Section 4: the optimum under
        that constraint), minus infinity for the intercept, the last.
        """
        slope = 0.0
        intercept = -np.inf
        bounds = {
            "abm": [slope, slope, intercept],
            "am": [slope, intercept],
            "ab": [slope, slope],
        }
        return np.array(bounds[self.parameters])

    @property
    def _is_slope(self):
        """Which of the d coefficients are slopes, booleans (d,); the other one is the
        intercept, which has no lower bound.
        """
        return self._lower == 0

    @property
    def _ridge(self):
        """Arguments of `fit_logistic`: lower bounds, and a ridge that pulls slopes to
        1, the same for a and b, which a swap of the labels exchanges, and leaves the
        intercept free.
        """
        strength = self.alpha
        if strength is None and self.smooth_targets:
            strength = 1.0
        elif strength is None:
            strength = 0.0
        if self.parameters == "am":
            # One coefficient is both slopes, and has the ridge of both.
            strength = 2 * strength
        return {
            "centre": np.where(self._is_slope, 1.0, 0.0),
            "penalty": strength * self._is_slope,
            "lower": self._lower,
        }

    def _features(self, log_odds):
        """Return the features (d, n) of scores s with the log-odds (n,): log(2 s) and
        -log(2 (1 - s)), or for "am" their sum. For all parameters but "ab", the last
        feature is 1, for the intercept.
        """
        if self.parameters == "am":
            slope_features = log_odds[None]
        else:
            # log(2) and -log(2) make both features 0 at s = 1/2
            slope_features = _log_features(log_odds) + np.log([[2], [0.5]])
        if self.parameters == "ab":
            return slope_features
        return np.vstack((slope_features, np.ones(len(log_odds))))

    def _set_map(self, coef):
        """Set a, b and c from the coefficients (d,): one or both slopes, and the
        log-odds at 1/2 unless fixed at 0.
        """
        self.a_ = float(coef[0])
        self.b_ = self.a_
        if self.parameters != "am":
            self.b_ = float(coef[1])
        at_half = 0.0
        if self.parameters != "ab":
            at_half = float(coef[-1])
        # a log(2 s) - b log(2 (1 - s)) = a log(s) - b log(1 - s) + (a - b) log(2)
        self.c_ = at_half + (self.a_ - self.b_) * float(np.log(2))

    def _map(self, log_odds):
        """Return the node of the event's probability from that of the score."""
        sides = LogSides(log_odds)
        slopes = np.array([self.a_, self.b_])
        if self.features is not None:
            return Expit(self._with_features(sides, slopes, self.c_))
        return Expit(Affine(sides, slopes[None], np.array([self.c_])))


def _log_features(log_odds):
    """Return log(s) and -log(1 - s), (2, n), for the log-odds of s, by log(1 +
    exp(-|z|)), which cannot overflow.
    """
    softplus = np.log1p(np.exp(-np.abs(log_odds)))
    log_score = np.minimum(log_odds, 0) - softplus
    minus_log_rest = np.maximum(log_odds, 0) + softplus
    return np.stack((log_score, minus_log_rest))
