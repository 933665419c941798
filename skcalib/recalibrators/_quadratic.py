"""Quadratic scaling: a parabola of the log-odds, held near temperature scaling."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skcalib._fitting.partial_pooling import PooledMap
from skcalib._intervals.one_probability.regression import regression
from skcalib._solvers.logistic import fit_logistic
from skcalib._solvers.temperature import root_mean_square, smoothed_inverse_temperature
from skcalib.maps import Expit, piecewise_polynomial
from skcalib.maps.checks import number, range_of_numbers
from skcalib.recalibrators._base import RIDGE
from skcalib.recalibrators._partially_pooled import PartiallyPooledRecalibrator

# The square is scaled by a typical log-odds, and this is its lower limit.
_SMALLEST_SPREAD = 0.3


class QuadraticScaling(PartiallyPooledRecalibrator):
    """Quadratic scaling: the sigmoid of a parabola in the log-odds.

    ``sigmoid(intercept + slope * log_odds + curvature * log_odds**2)``.

    The fit minimises the log-loss, with a ridge penalty that pulls the map toward
    temperature scaling. Beyond the range of the calibration set, the map continues as a
    straight line in the log-odds, so that the parabola does not turn where there are no
    data.

    Parameters
    ----------
    alpha : float, default=1.0
        Strength of the ridge penalty, at least 0: ``alpha / 2`` times the squared
        distance of the coefficients of ``(1, z, z**2 / s)`` from (0, 1, 0) is added to
        the log-loss summed over the samples. Here z is the temperature-scaled log-odds,
        and s is the root mean square of z or .3, whichever is larger. 0 gives the
        unpenalised fit. Unlike `class_pooling` for K classes, `alpha` is not learned
        from the data.
    monotone : bool, default=False
        Whether to constrain the slope to be non-negative everywhere, so that the
        ranking is preserved.
    class_pooling : float or "auto", default="auto"
        For K > 2 classes, the strength, at least 0, of the ridge penalty that pulls the
        parabola of each class toward a common parabola, which is fitted with the
        penalty `alpha` jointly to all K one-vs-rest problems. ``class_pooling *
        n_classes / 2`` times the squared distance of the coefficients, in the
        coordinates of `alpha`, is added to the log-loss of the class, summed over the
        samples. The penalty has less influence with more samples. "auto" lowers it from
        1 to .3, .1 and .03, as long as this improves the loss on held-out samples. 0
        fits each class separately with the penalty `alpha`, which needs several hundred
        samples per class.
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
    intercept_, slope_, curvature_ : float
        Coefficients of the parabola. For K > 2 classes, these and the following
        attribute are lists with one entry per class.
    log_odds_range_ : tuple of two floats
        Range in which the parabola applies: the lowest and the highest log-odds of the
        calibration set, over all classes if `class_pooling` pools them.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    skcalib.PlattScaling : A slope and an intercept on the log-odds scale.
    skcalib.BetaCalibration : Two slopes and an intercept, with a separate slope for
        each end of the map.
    skcalib.SplineCalibration : A smooth map without a fixed shape.

    Notes
    -----
    The temperature is fitted to Platt's targets, so that it is finite even if the
    classes are separable.

    ``class_pooling="auto"`` uses a weaker penalty only if the log-loss of the K-class
    predictions, summed over held-out samples, falls by more than 5 nats, and stops when
    it rises. The fit of each class without a given sample is approximated by one Newton
    step. This takes as long as two to five fits. With more than 50 classes, or fewer
    than 30 samples per class, `class_pooling` is 1.

    References
    ----------
    .. [1] Platt (1999), Probabilistic outputs for support vector machines, for the
        targets.

    Examples
    --------
    Log-odds of -1, 0 and 1 that should be -1, 0 and 3 are corrected by the parabola ``2
    z + z^2``:

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib import QuadraticScaling
    >>> log_odds = np.repeat([-1.0, 0.0, 1.0], 10000)
    >>> y = np.arange(30000) % 10000 < np.repeat(10000 * expit([-1, 0, 3]), 10000)
    >>> quadratic = QuadraticScaling(alpha=0, input="logit").fit(log_odds, y)
    >>> round(quadratic.slope_, 2), round(quadratic.curvature_, 2)
    (2.0, 1.0)
    """

    _parameter_constraints = {
        **PartiallyPooledRecalibrator._parameter_constraints,
        "alpha": [RIDGE],
        "monotone": ["boolean"],
    }

    _part_attributes = {
        "intercept_": number,
        "slope_": number,
        "curvature_": number,
        "log_odds_range_": range_of_numbers,
    }

    # for two classes; a list with one entry per class for more
    intercept_: float
    slope_: float
    curvature_: float
    log_odds_range_: tuple[float, float]

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        monotone: bool = False,
        class_pooling: float | Literal["auto"] = "auto",
        clip: float | Literal["auto"] | None = "auto",
        multiclass: Literal["ovr", "top_label"] = "ovr",
        normalize: bool = True,
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.alpha = alpha
        self.monotone = monotone
        self.class_pooling = class_pooling
        self.clip = clip
        self.multiclass = multiclass
        self.normalize = normalize
        self.input = input
        self.classes = classes

    @property
    def _needs_classes(self):
        """Which classes must occur in the rows of a fit: "all", any "two", or "any"."""
        # The ridge keeps the fit finite, also with rows of one class alone.
        if self.alpha > 0:
            return "any"
        return super()._needs_classes

    def _fit_binary(self, log_odds, labels, sample_weight):
        """Fit the parabola by a penalised logistic regression."""
        coef, _, ends = self._fit_parabola(log_odds, labels, sample_weight)
        self._set_map(coef, *ends)
        return regression(self._limits_position, coef)

    def _limits_position(self, scores):
        """Return the features (3, n) of log-odds (n,): those of the parabola, and
        beyond the range of the fit those of its tangents at the ends.
        """
        low, high = self.log_odds_range_
        width = _width(low, high)
        inside = np.clip(scores, low, high)
        features = _features(inside, low, width)
        beyond = (scores - inside) / width
        # The coefficients of rows 1 and 2 are the slopes, times the width, at the low
        # and at the high end: these are the slopes of the tangents.
        features[1] += np.where(beyond < 0, beyond, 0.0)
        features[2] += np.where(beyond > 0, beyond, 0.0)
        return features

    def _fit_pooled(self, problems):
        """Return the `PooledMap`: one parabola, fitted to the `ClassProblems` of all
        classes together, to which `class_pooling` pulls each class's own.
        """
        log_odds, labels, sample_weight = problems.flat  # of all classes, (K n,)
        coef, ridge_matrix, ends = self._fit_parabola(log_odds, labels, sample_weight)
        low, high = ends
        return PooledMap(
            features=partial(_features, low=low, width=_width(low, high)),
            coef=coef,
            distance=ridge_matrix,
            lower=self._lower,
            ends=ends,
        )

    def _fit_parabola(self, log_odds, labels, sample_weight):
        """Return the coefficients (3,) of a parabola, its value at the low end and its
        slopes at both times the width, fitted to log-odds (n,) and boolean labels; the
        matrix M (3, 3) of the ridge ``|M @ (coef - centre)|^2``; and the lowest and the
        highest log-odds.
        """
        low = float(log_odds.min())
        high = float(log_odds.max())
        width = _width(low, high)
        inverse_temperature = smoothed_inverse_temperature(
            log_odds, labels, sample_weight
        )
        typical_log_odds = root_mean_square(log_odds, sample_weight)
        ridge_matrix = _matrix_for_ridge(
            low, width, inverse_temperature, typical_log_odds
        )
        # The ridge pulls to temperature scaling, a straight line with the value
        # inverse_temperature * low at the low end, and the same slope at both ends.
        temperature_scaling = inverse_temperature * np.array([low, width, width])
        coef = fit_logistic(
            lambda rows: _features(log_odds[rows], low, width),
            labels,
            sample_weight,
            centre=temperature_scaling,
            penalty=self.alpha * ridge_matrix.T @ ridge_matrix,
            lower=self._lower,
        )
        return coef, ridge_matrix, (low, high)

    @property
    def _lower(self):
        """Lower bounds (3,) of the coefficients, None without `monotone`: the value at
        the low end is free, the slopes are at least 0.
        """
        if self.monotone:
            return np.array([-np.inf, 0, 0])
        return None

    def _set_map(self, coef, low, high):
        """Set ``intercept_ + slope_ z + curvature_ z^2`` from the coefficients (3,) of
        a fit to log-odds from `low` to `high`: the value at `low`, and the slopes at
        both times the width.
        """
        width = _width(low, high)
        at_low, slope_low, slope_high = coef / [1, width, width]
        # The slope at z is slope_ + 2 * curvature_ * z.
        self.curvature_ = float((slope_high - slope_low) / (2 * width))
        self.slope_ = float(slope_low - 2 * self.curvature_ * low)
        self.intercept_ = float(at_low - self.slope_ * low - self.curvature_ * low**2)
        self.log_odds_range_ = (low, high)

    def _map(self, log_odds):
        """Return the map from log-odds to the probability: the sigmoid of the parabola,
        and of its tangents beyond the range of the fit.
        """
        low, high = self.log_odds_range_
        parabola = np.polynomial.Polynomial(
            [self.intercept_, self.slope_, self.curvature_]
        )
        derivative = parabola.deriv()
        tangent_at_low = (parabola(low), derivative(low))
        if low == high:
            pieces = piecewise_polynomial(log_odds, [], [low], [tangent_at_low])
            return Expit(pieces)
        tangent_at_high = (parabola(high), derivative(high))
        pieces = piecewise_polynomial(
            log_odds,
            cuts=[low, high],
            origins=[low, 0, high],
            coefficients=[tangent_at_low, parabola.coef, tangent_at_high],
        )
        return Expit(pieces)


def _width(low, high):
    """Return the width of the range [low, high], or 1 if that is 0, to divide by."""
    if high > low:
        return high - low
    return 1.0


def _features(log_odds, low, width):
    """Return the features (3, n) of log-odds in [low, low + width], whose coefficients
    are a parabola's value at the low end and its slopes at both, times the width: it
    never falls if neither is negative.
    """
    position = (log_odds - low) / width  # 0 at the low end, 1 at the high end
    # The slope at a position t is (1 - t) * slope_low + t * slope_high. The features
    # are the integrals of the two weights from 0 to t.
    weight_of_low = position - position**2 / 2
    weight_of_high = position**2 / 2
    return np.stack((np.ones(len(position)), weight_of_low, weight_of_high))


def _matrix_for_ridge(low, width, inverse_temperature, root_mean_square):
    """Return the matrix M (3, 3) for the ridge ``|M @ (coef - centre)|^2`` on the
    coefficients of `_features`.

    M converts them to the coefficients of ``A + B z + C z^2 / s``, where z =
    inverse_temperature * x, and s is the root mean square of z: on this scale
    deviations of all three coefficients have the same weight.
    """
    # 1. From the value at the low end and the slopes at both ends to a + b x + c x^2:
    # c = (slope_high - slope_low) / (2 width)
    # b = slope_low - 2 c low
    # a = value_at_low - b low - c low^2
    half_square = low**2 / (2 * width)
    to_polynomial = np.array(
        [
            [1, -(low + half_square), half_square],
            [0, 1 + low / width, -low / width],
            [0, -1 / (2 * width), 1 / (2 * width)],
        ]
    )
    # The coefficients of `_features` are slopes times the width.
    to_polynomial = to_polynomial / [1, width, width]
    # 2. To (A, B, C): a = A, b = B * inverse_temperature and
    # c = C * inverse_temperature^2 / s.
    spread = max(inverse_temperature * root_mean_square, _SMALLEST_SPREAD)
    units = np.array([1, inverse_temperature, inverse_temperature**2 / spread])
    return to_polynomial / units[:, None]
