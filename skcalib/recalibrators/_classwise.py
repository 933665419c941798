"""Class-wise temperature scaling: a temperature for each predicted class, held near a
shared one.
"""

from __future__ import annotations

from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skcalib._input.sklearn_private import Interval, StrOptions
from skcalib._input.tensors import like, namespace_of
from skcalib._solvers.newton import minimise_convex
from skcalib._solvers.sums import (
    cast,
    chosen,
    class_sums,
    row_weights,
    same_type,
    working_dtype,
)
from skcalib._solvers.temperature import fit_inverse_temperature, row_derivatives
from skcalib.maps import (
    Choice,
    Expit,
    Scaled,
    class_probabilities,
    piecewise_polynomial,
    predicted_class,
)
from skcalib.maps._forms import log_odds_of
from skcalib.maps.checks import amounts, check_lengths, positive, within
from skcalib.recalibrators._clipping import ClippedRecalibrator
from skcalib.recalibrators._logit import LogitRecalibrator

_TOLERANCE = 1e-11  # relative change of an inverse temperature


class ClasswiseTemperatureScaling(ClippedRecalibrator, LogitRecalibrator):
    """Class-wise temperature scaling (CTS): one temperature per predicted class.

    ``softmax(inverse_temperature[predicted class] * logits)``.

    Use this method for models that are overconfident for some classes and
    underconfident for others because the classes differ in label noise or in size.
    Predicted classes never change.

    Parameters
    ----------
    max_deviation : float or "auto", default="auto"
        Maximum deviation of a class's inverse temperature from the shared one (Gamma in
        [1]_). 0 gives `TemperatureScaling`; infinity fits each class separately, which
        needs a few hundred samples per class: with 20 samples in each of 150 classes,
        this doubles the log-loss. "auto" allows for the variation between classes that
        exceeds chance (see Notes).
    bounds : tuple of two floats, default=(1e-2, 1e2)
        Limits for every inverse temperature. Without limits, a class with only correct
        predictions would have an infinite inverse temperature, and a class with only
        wrong predictions a negative one.
    clip : "auto", float or None, default="auto"
        How probabilities are kept away from 0 and 1 before conversion to log-odds.
        "auto" learns a floor f: a probability p becomes
        ``(1 - n_classes * f) * p + f``, which preserves the order of the scores. f is 0
        unless a larger value, up to .1, improves the log-likelihood by more than half a
        nat. With a number, probabilities are clipped to [clip, 1 - clip]; with None, to
        [2^-52, 1 - 2^-52].
    input : {"probability", "logit"}, default="probability"
        Scale of the scores. A single column of logits is the log-odds of the positive
        class.
    classes : array-like, default=None
        Labels of the columns; required if a class is missing from the calibration set.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    provenance_ : dict
        Provenance of the fit: method, parameters, number of samples, events per class,
        versions, and a hash of the samples.
    clip_ : float
        The learned floor, or the clipping constant.
    floor_ : float
        The learned floor; 0 if there is none.
    max_deviation_ : float
        The largest deviation allowed.
    inverse_temperature_ : ndarray of shape (n_classes,)
        Inverse temperature of each predicted class. A class that is never predicted in
        the calibration set uses the shared inverse temperature.
    shared_inverse_temperature_ : float
        The centre of the deviations. If several centres are optimal, this is the one
        nearest to the pooled optimum.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    GroupwiseRecalibrator : Applies any method by predicted class, or by any other
        group.

    Notes
    -----
    The fit finds the exact optimum. The log-loss is a sum over the predicted classes,
    and each term is convex in its inverse temperature. For a given centre, the best
    inverse temperature of a class is its own optimum, clipped to the allowed deviation.
    The remaining problem is convex in the centre alone.

    ``max_deviation="auto"`` means ``variance / (2 * standard_error)``. The variance is
    that of the separate inverse temperatures of the classes around the shared one, by
    the method of moments [2]_. This variance is estimated as the variance of the score
    statistics (the slopes of the log-losses at the shared value) minus the variance
    expected if the classes did not differ, and is at least 0. The standard error is
    that of the inverse temperature of a typical class, and is estimated from the
    variance of the samples' slopes. If the standard error is as large as the spread of
    the classes, they may deviate by half of that spread. With n samples, the limit
    grows like sqrt(n), so with many samples it does not constrain any class. For
    classes that do not differ, the result is temperature scaling. For normally
    distributed deviations and errors, the limit with the smallest squared error is
    between ``0.8 * variance / standard_error`` (few samples) and
    ``variance / standard_error`` (many samples). Half of this is used, because
    overconfidence increases the log-loss more than underconfidence.

    References
    ----------
    .. [1] Zhao, Chen and Oymak (2020), On the role of dataset quality and heterogeneity
        in model confidence.
    .. [2] DerSimonian and Laird (1986), Meta-analysis in clinical trials.

    Examples
    --------
    All log-odds are 2 log(3) in absolute value. Of the samples predicted as class 1, 3
    of 4 are correct, so their log-odds must be halved. Of the samples predicted as
    class 0, 9 of 10 are correct, so their log-odds are calibrated.

    >>> import numpy as np
    >>> from skcalib import ClasswiseTemperatureScaling
    >>> log_odds = np.repeat([2 * np.log(3), -2 * np.log(3)], [40, 40])
    >>> y = np.repeat([1, 0, 0, 1], [30, 10, 36, 4])
    >>> for max_deviation in (np.inf, 0.1, "auto"):
    ...     cts = ClasswiseTemperatureScaling(max_deviation, input="logit").fit(
    ...         log_odds, y
    ...     )
    ...     print(
    ...         cts.inverse_temperature_.round(3).tolist(), round(cts.max_deviation_, 2)
    ...     )
    [1.0, 0.5] inf
    [0.813, 0.613] 0.1
    [0.935, 0.534] 0.2
    """

    _parameter_constraints = {
        **ClippedRecalibrator._parameter_constraints,
        **LogitRecalibrator._parameter_constraints,
        "max_deviation": [
            Interval(Real, 0, np.inf, closed="both"),
            StrOptions({"auto"}),
        ],
        "bounds": ["array-like"],
    }

    _fits_tensors = True
    _keeps_decisions = True
    _leaves_impossible_out = True
    _needs_classes = "two"

    _attributes = {
        **ClippedRecalibrator._attributes,
        "inverse_temperature_": amounts,
        "shared_inverse_temperature_": positive,
        "max_deviation_": within(0, np.inf, infinite=True),
    }

    max_deviation_: float
    inverse_temperature_: np.ndarray
    shared_inverse_temperature_: float

    def __init__(
        self,
        max_deviation: float | Literal["auto"] = "auto",
        bounds: ArrayLike = (0.01, 100.0),
        *,
        clip: float | Literal["auto"] | None = "auto",
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.max_deviation = max_deviation
        self.bounds = bounds
        self.clip = clip
        self.input = input
        self.classes = classes

    def _fit_logits(self, logits, codes, sample_weight):
        """Fit an inverse temperature to the rows of each predicted class, within
        `max_deviation_` of a shared one, to logits (n, K).
        """
        bounds = _check_bounds(self.bounds)
        # 1. One inverse temperature for all rows.
        pooled = fit_inverse_temperature(logits, codes, sample_weight, bounds)
        # 2. That of each predicted class alone, (K,); NaN if no row depends on it.
        losses = _PredictedClassLosses(logits, codes, sample_weight)
        start = np.full(logits.shape[1], pooled)
        best = _minimise(losses.derivatives, start, bounds)
        best = np.where(losses.has_optimum, best, np.nan)
        # 3. The deviation that is allowed, and the shared inverse temperature that is
        # best with it.
        if self.max_deviation == "auto":
            slope, curvature, squared_slope = losses.moments(start)
            self.max_deviation_ = _warranted_deviation(slope, curvature, squared_slope)
        else:
            self.max_deviation_ = float(self.max_deviation)
        shared = _shared_optimum(losses, best, pooled, self.max_deviation_, bounds)
        self.shared_inverse_temperature_ = float(shared)
        self.inverse_temperature_ = _clipped(best, shared, self.max_deviation_)

    def _map(self, logits):
        """Return a choice, by the predicted class, between softmaxes of logits scaled
        for it.
        """
        check_lengths(self, len(self.classes_), "inverse_temperature_")
        if len(self.classes_) == 2:
            # Log-odds up to 0 predict the first class, greater ones the second.
            slopes = [[0.0, slope] for slope in self.inverse_temperature_.tolist()]
            return Expit(
                piecewise_polynomial(log_odds_of(logits), [0.0], [0.0, 0.0], slopes)
            )
        maps = []
        for inverse in self.inverse_temperature_.tolist():
            maps.append(class_probabilities(Scaled(logits, inverse)))
        return Choice(predicted_class(logits), tuple(maps))


class _PredictedClassLosses:
    """The log-loss of the samples of each predicted class as a function of its inverse
    temperature.

    Parameters
    ----------
    logits : array of shape (n, n_classes)
        Logits of NumPy, or a tensor.
    codes : array of int, shape (n,)
        Column of each label's class.
    sample_weight : array of shape (n,) or None
        Weights.

    Attributes
    ----------
    predicted : array of int, shape (n,)
        Predicted class of each row.
    has_optimum : ndarray of bool, shape (n_classes,)
        Whether some row that is predicted as the class depends on its temperature.
    """

    def __init__(self, logits, codes, sample_weight):
        self.logits = logits
        self.codes = codes
        xp = namespace_of(logits)
        self.weight = row_weights(sample_weight, logits)
        self.predicted = xp.argmax(logits, axis=1)
        # Rows of equal logits do not change with the temperature. A class with only
        # such rows has no optimum.
        is_decided = xp.max(logits, axis=1) > xp.min(logits, axis=1)
        dtype = working_dtype(logits)
        (n_decided,) = class_sums(
            self.predicted, logits.shape[1], cast(is_decided, dtype)
        )
        self.has_optimum = n_decided > 0

    def derivatives(self, inverse):
        """Return the first two derivatives of each class's loss at the inverse
        temperatures (n_classes,), as an array (2, n_classes).
        """
        return self.moments(inverse)[:2]

    def moments(self, inverse):
        """Return weighted sums over the rows of each predicted class, (3, n_classes):
        of the first derivatives of the log-loss with respect to the inverse
        temperature, of the second derivatives, and of the squared first derivatives.

        `inverse` (n_classes,) is the inverse temperature of each class.
        """
        n_classes = len(inverse)
        sums = np.zeros((3, n_classes))
        factor = like(self.logits, inverse.astype(working_dtype(self.logits)))
        inverse_of_rows = chosen(factor, self.predicted)
        blocks = row_derivatives(inverse_of_rows, self.logits, self.codes)
        for rows, slope, curvature in blocks:
            predicted = self.predicted[rows]
            weight = self.weight[rows]
            weight, slope, curvature = same_type(weight, slope, curvature)
            vectors = (weight * slope, weight * curvature, weight * slope**2)
            sums += class_sums(predicted, n_classes, *vectors)
        return sums


def _warranted_deviation(slope, curvature, squared_slope):
    """Return how far the inverse temperatures of classes may be from a shared one
    (Notes of `ClasswiseTemperatureScaling`): their variance between classes by the
    moments of DerSimonian and Laird, over twice a typical standard error.

    `slope`, `curvature` and `squared_slope` are sums, by predicted class, of the
    log-loss's first and second derivative at the shared temperature and of the first
    one squared. A class's own optimum is about slope / curvature away, with the
    variance squared_slope / curvature^2; its weight is the curvature.
    """
    is_informative = curvature > 0
    slope = slope[is_informative]
    curvature = curvature[is_informative]
    squared_slope = squared_slope[is_informative]
    total = curvature.sum()
    share = curvature / total
    degrees = 1 - np.sum(share**2)  # 0 for a single class
    if degrees <= 0 or squared_slope.sum() == 0:
        return 0.0
    # Cochran's Q, and its expected value if all classes had the same optimum
    scatter = np.sum(slope**2 / curvature)
    expected_scatter = np.sum((1 - share) * squared_slope / curvature)
    variance = max(scatter - expected_scatter, 0.0) / (total * degrees)
    standard_error = np.sqrt(np.sum(squared_slope / curvature) / total)
    return float(variance / (2 * standard_error))


def _shared_optimum(losses, best, pooled, max_deviation, bounds):
    """Return the centre of least loss of the classes' inverse temperatures, if each
    takes its own optimum, `best` (n_classes,) or NaN, moved to within `max_deviation`.
    `pooled`, that of all rows, decides between centres of equal loss.
    """
    if not losses.has_optimum.any():
        return pooled
    # From every centre between `first` and `last`, all optima are within reach.
    first = np.nanmax(best) - max_deviation
    last = np.nanmin(best) + max_deviation
    if first <= last:
        return np.clip(pooled, first, last)

    def derivatives(centre):
        """Return the first two derivatives, (2, 1), of the loss summed over the
        classes, with respect to the centre (1,).
        """
        inverse = _clipped(best, centre[0], max_deviation)
        # A class at its own optimum does not move with the centre; the others do.
        moves = inverse != best
        derivatives_of_classes = losses.derivatives(inverse) * moves
        return derivatives_of_classes.sum(axis=1, keepdims=True)

    (centre,) = _minimise(derivatives, np.array([pooled]), bounds)
    return centre


def _clipped(best, centre, max_deviation):
    """Return each class's optimum (n_classes,) within the deviation from the centre;
    the centre for a class without an optimum (NaN).
    """
    within = np.clip(best, centre - max_deviation, centre + max_deviation)
    return np.where(np.isnan(best), centre, within)


def _minimise(derivatives, start, bounds):
    """Return the minima (n_functions,) within `bounds` of separate convex functions
    from their first two derivatives. Bounds are tried first: the loss of a class
    without errors falls for ever, and steps would reach the upper one slowly.
    """

    def falling(points):
        """Return the derivatives at points (n_functions,), with a tiny negative slope
        if both are 0: every row is then classified correctly with a probability that
        rounds to 1, and the exact loss still falls.
        """
        slope, curvature = derivatives(points)
        is_flat = (slope == 0) & (curvature == 0)
        return np.where(is_flat, -np.finfo(np.float64).tiny, slope), curvature

    low = np.full_like(start, bounds[0])
    high = np.full_like(start, bounds[1])
    slope_at_low, _ = falling(low)
    slope_at_high, _ = falling(high)
    start = np.where(slope_at_low > 0, low, np.clip(start, low, high))
    start = np.where(slope_at_high < 0, high, start)
    return minimise_convex(falling, start, bounds, _TOLERANCE)


def _check_bounds(bounds):
    """Return the bounds as two floats; raise a ValueError unless 0 < low <= high."""
    are_numbers = len(bounds) == 2 and all(isinstance(bound, Real) for bound in bounds)
    if not are_numbers or not 0 < bounds[0] <= bounds[1] < np.inf:
        raise ValueError(
            f"bounds must be two finite numbers with 0 < low <= high, found {bounds!r}."
        )
    return float(bounds[0]), float(bounds[1])
