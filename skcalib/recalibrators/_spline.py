"""Spline calibration: a smooth curve in the log-odds, as flexible as the samples pay
for.
"""

from __future__ import annotations

from functools import cached_property
from numbers import Integral
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import BSpline, PPoly

from skcalib._input.sklearn_private import Interval
from skcalib._intervals.one_probability.normal import (
    covariances_of,
    limits_about,
    quantile_of,
)
from skcalib._intervals.one_probability.regression import regression
from skcalib._rows.blocks import condensed, weights_or_ones
from skcalib._rows.sorting import DistinctScores, sorted_scores
from skcalib._solvers.leave_one_out import inverse_hessian, left_out_log_odds
from skcalib._solvers.logistic import fit_logistic
from skcalib._solvers.temperature import smoothed_inverse_temperature
from skcalib.maps import Expit, piecewise_polynomial
from skcalib.maps.checks import knots, matrix, number, numbers
from skcalib.recalibrators._base import RIDGE
from skcalib.recalibrators._binary import BinaryRecalibrator
from skcalib.recalibrators._clipping import ClippedRecalibrator

# Candidate curvature penalties, the stiffest first: nearly a straight line. Each fit
# begins where the last one ended.
_PENALTIES = (1e4, 100.0, 10.0, 1.0, 0.1)
# Number of rows from which on cells of rows choose the penalty.
_FEWEST_ROWS = 1 << 13
# Ridge on the distance from temperature scaling at each knot, in log-odds: the weight
# of less than half a row.
_IDENTITY_RIDGE = 0.1
# The curvature is measured over at least this range of log-odds.
_SMALLEST_WIDTH = 1.0
# Knots that are nearer to each other are one: between them a slope would be a ratio of
# rounding errors.
_SMALLEST_GAP = 1e-6  # in units of their range, or of the smallest width
# The roughness penalty of the limits of one probability, at most.
_STRAIGHTEST_IN_LIMITS = 1.0


class SplineCalibration(ClippedRecalibrator, BinaryRecalibrator):
    """Spline calibration: the sigmoid of a natural cubic spline in the log-odds.

    The map becomes more flexible with more calibration samples: the weight of a
    curvature penalty is chosen by minimising the leave-one-out log-loss. Beyond the
    outer knots, the map continues as a straight line in the log-odds.

    Parameters
    ----------
    n_knots : int, default=8
        Number of knots, at least 2. The knots are placed at quantiles of the scores,
        including the lowest and the highest score. Tied knots are merged.
    roughness_penalty : float, default=None
        Weight of the curvature penalty
        ``roughness_penalty / 2 * integral(second derivative ** 2)``, which is added to
        the log-loss, summed over the samples. None selects it from {.1, 1, 10, 100,
        1e4} by approximate leave-one-out cross-validation [2]_.
    monotone : bool, default=False
        Whether to constrain the map to be non-decreasing, so that the ranking is
        preserved.
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
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    provenance_ : dict
        Provenance of the fit: method, parameters, number of samples, events per class,
        versions, and a hash of the samples.
    clip_ : float
        The learned floor, or the clipping constant.
    floor_ : float
        The learned floor; 0 if there is none.
    knots_ : ndarray of shape (`n_knots_`,)
        Knots on the log-odds scale. For K > 2 classes, this and the next three
        attributes are lists with one entry per class.
    knot_log_odds_ : ndarray of shape (`n_knots_`,)
        Calibrated log-odds at the knots.
    spline_coefficients_ : ndarray of shape (4, `n_knots_` - 1)
        Coefficients of the natural cubic spline through these points: those of each
        piece, in powers of the distance from its left knot, starting with the cubic
        term.
    roughness_penalty_ : float
        Weight of the curvature penalty that was used.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    skcalib.IsotonicCalibration : A non-decreasing map without a parametric form.
    skcalib.QuadraticScaling : A parabola in the log-odds.
    skcalib.StackedRecalibrator : A mixture of several recalibrators.

    Notes
    -----
    A small ridge penalty at the knots pulls the map toward temperature scaling, with a
    temperature that is fitted to Platt's targets. The map is therefore finite even if
    the classes are separable. The non-negative slopes of ``monotone=True`` are those of
    an I-spline.

    References
    ----------
    .. [1] Lucena (2018), Spline-based probability calibration.
    .. [2] Rad and Maleki (2020), A scalable estimate of the out-of-sample prediction
        error via approximate leave-one-out cross-validation.

    Examples
    --------
    Events that occur only at intermediate scores, which no increasing map can
    represent:

    >>> import numpy as np
    >>> from skcalib import SplineCalibration
    >>> scores = np.linspace(0.01, 0.99, 300)
    >>> spline = SplineCalibration().fit(scores, abs(scores - 0.5) < 0.2)
    >>> (spline.predict_proba([0.1, 0.5, 0.9])[:, 1] > 0.5).tolist()
    [False, True, False]
    """

    _parameter_constraints = {
        **ClippedRecalibrator._parameter_constraints,
        **BinaryRecalibrator._parameter_constraints,
        "n_knots": [Interval(Integral, 2, None, closed="left")],
        "roughness_penalty": [RIDGE, None],
        "monotone": ["boolean"],
    }

    _part_attributes = {
        "knots_": knots,
        "knot_log_odds_": numbers,
        "roughness_penalty_": number,
        "spline_coefficients_": matrix,
    }
    _needs_classes = "any"
    _scale = "log_odds"
    _takes_shortcuts = True

    # for two classes; a list with one entry per class for more
    knots_: np.ndarray
    knot_log_odds_: np.ndarray
    spline_coefficients_: np.ndarray
    roughness_penalty_: float

    def __init__(
        self,
        n_knots: int = 8,
        *,
        roughness_penalty: float | None = None,
        monotone: bool = False,
        clip: float | Literal["auto"] | None = "auto",
        multiclass: Literal["ovr", "top_label"] = "ovr",
        normalize: bool = True,
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.n_knots = n_knots
        self.roughness_penalty = roughness_penalty
        self.monotone = monotone
        self.clip = clip
        self.multiclass = multiclass
        self.normalize = normalize
        self.input = input
        self.classes = classes

    def _fit_binary(self, log_odds, labels, sample_weight, shortcuts=None):
        """Fit a natural cubic spline of the log-odds (n,) to boolean labels (n,), with
        the roughness penalty that predicts best, or the one given; return the
        `LimitsMaker`. `shortcuts` may hold an earlier fit to start from.
        """
        near_fit = None
        if shortcuts is not None:
            near_fit = shortcuts.near_fit
        # If the roughness penalty is given, both fits have the same, so that their
        # splines are close.
        starts_near_optimum = (
            near_fit is not None and self.roughness_penalty is not None
        )
        # 1. Splines with knots at quantiles of the log-odds.
        knots = _quantile_knots(log_odds, labels, sample_weight, self.n_knots)
        basis = _NaturalSplines(knots)

        # 2. Condensed rows, on which the penalty is chosen in less time: all rows with
        # the same label and nearly equal log-odds become one weighted row.
        condensed_rows = (log_odds, labels, sample_weight)
        if not starts_near_optimum:
            condensed_rows = condensed(*condensed_rows, fewest_rows=_FEWEST_ROWS)

        # 3. Temperature scaling, to which the ridge pulls the spline.
        inverse_temperature = smoothed_inverse_temperature(
            log_odds,
            labels,
            sample_weight,
            condensed_rows,
            start=getattr(near_fit, "_inverse_to_start_from", None),
        )
        if shortcuts is not None:
            self._inverse_to_start_from = inverse_temperature
        fit = _penalised_spline(basis, inverse_temperature, self.monotone)

        # 4. The roughness penalty, and the coefficients fitted to the condensed rows.
        start = None
        if starts_near_optimum:
            # The spline that has, at these knots, the log-odds of the earlier one.
            earlier_log_odds = near_fit._calibrated_log_odds(knots)
            start = np.linalg.solve(basis.at_knots, earlier_log_odds)
            if self.monotone:
                start = np.maximum(start, fit.lower)
        self.roughness_penalty_, coef = self._best_penalty(
            fit, basis, start, *condensed_rows
        )

        # 5. With that penalty, the fit to all rows.
        if len(condensed_rows[0]) < len(log_odds):
            coef = fit(
                lambda rows: basis.features(log_odds[rows]),
                labels,
                sample_weight,
                self.roughness_penalty_,
                start=coef,
            )
        self.knots_ = knots
        self.knot_log_odds_ = basis.at_knots @ coef
        # `bends` are second derivatives by the position, log-odds divided by the width.
        second_derivatives = basis.bends @ coef / basis.width**2
        self.spline_coefficients_ = _cubic_pieces(
            knots, self.knot_log_odds_, second_derivatives
        )
        # A strong penalty gives the limits of a straight line, which are too narrow for
        # the curves that the samples do not rule out: the limits take a weaker one.
        penalty = fit.penalty_matrix(
            min(self.roughness_penalty_, _STRAIGHTEST_IN_LIMITS)
        )
        return regression(basis.features, coef, fit.centre, penalty)

    def _limits_at(self, level):
        # the function of log-odds (n,) that returns a column with those of the curve,
        # and one with its variance by each estimate of the covariance
        curve = self._limits.derived(self._curve_of_limits)
        quantile = quantile_of(self._limits.state, level)

        def limits_at(scores, probabilities):
            """Return the lower and upper limits (n,) of the event's frequency at scores
            (n, C).
            """
            log_odds, *variances = curve(self._new_binary_scores(scores)).T
            # the largest, at least 0 in spite of rounding
            variance = np.maximum.reduce([*variances, np.zeros(len(log_odds))])
            half = quantile * np.sqrt(variance)
            return limits_about(log_odds, half, half)

        return limits_at

    def _curve_of_limits(self, state):
        """Return the function of log-odds (n,) that returns those of the curve about
        which the limits are, and their variances, (n, 2 or 3), from the state.
        """
        basis = _NaturalSplines(self.knots_)
        return basis.curve_and_variances(state["coef"], covariances_of(state))

    def _best_penalty(self, fit, basis, start, log_odds, labels, sample_weight):
        """Return the roughness penalty, the one given or that of least leave-one-out
        log-loss, and the coefficients (d,) that ``fit`` finds with it. `basis` makes
        the features of log-odds (n,); with a given penalty the fit starts from `start`
        (d,) or None.
        """
        features = basis.features(log_odds)

        def features_of(rows):
            """Return the features (d, n_rows) of a slice of the rows."""
            return features[:, rows]

        if self.roughness_penalty is not None:
            penalty = float(self.roughness_penalty)
            coef = fit(features_of, labels, sample_weight, penalty, start)
            return penalty, coef
        # From the strongest penalty to the weakest, each fit starts from the last one.
        coef = None
        least_loss = np.inf
        for penalty in _PENALTIES:
            coef = fit(features_of, labels, sample_weight, penalty, start=coef)
            loss = _leave_one_out_loss(
                features, labels, sample_weight, coef, fit.penalty_matrix(penalty)
            )
            # Of equal losses, the weakest penalty is taken.
            if loss <= least_loss:
                least_loss = loss
                best = (float(penalty), coef)
        return best

    def _forget_start(self):
        vars(self).pop("_inverse_to_start_from", None)

    def _calibrated_log_odds(self, log_odds):
        """Return the calibrated log-odds (n,) of log-odds (n,)."""
        # Beyond the outer knots the map is straight: it follows the tangent there.
        inside = np.clip(log_odds, self.knots_[0], self.knots_[-1])
        spline = self._spline
        slope = spline(inside, 1)
        return spline(inside) + slope * (log_odds - inside)

    def _map(self, log_odds):
        """Return the map from log-odds to the probability: the sigmoid of cubic pieces,
        and of their tangents beyond the outer knots.
        """
        spline = self._spline
        knots = self.knots_
        ends = knots[[0, -1]]
        # Each tangent is a pair (value, slope).
        tangent_at_first, tangent_at_last = np.column_stack(
            (spline(ends), spline(ends, 1))
        )
        # Nodes take the constant first, SciPy the coefficient of the highest power.
        cubics = self.spline_coefficients_[::-1].T
        pieces = piecewise_polynomial(
            log_odds,
            cuts=knots,
            origins=[knots[0], *knots[:-1], knots[-1]],
            coefficients=[tangent_at_first, *cubics, tangent_at_last],
        )
        return Expit(pieces)

    @property
    def _spline(self):
        """The spline between the outer knots, as SciPy evaluates it."""
        return PPoly.construct_fast(self.spline_coefficients_, self.knots_)

    def _check_attributes(self):
        """Raise a ValueError unless the fitted attributes, which were read from a JSON
        document, are consistent with each other.
        """
        if self.spline_coefficients_.shape != (4, len(self.knots_) - 1):
            raise ValueError(
                "spline_coefficients_ must contain four coefficients for each interval"
                " between knots"
            )


class _NaturalSplines:
    """Natural cubic splines with given knots (n_knots,), as a linear function of
    n_knots coefficients: the value at the first knot, and those of the slope. If the
    latter are not negative, the spline never falls.

    The slope is a sum of quadratic B-splines of the position, which is 0 at the first
    knot and 1 at the last. The first two B-splines have one coefficient together, and
    so have the last two, so that the second derivative vanishes at the outer knots.

    Attributes
    ----------
    knots : ndarray of shape (n_knots,)
        The knots, in log-odds.
    width : float
        The range of the knots.
    position : ndarray of shape (n_knots,)
        Positions of the knots.
    slopes, integrals : BSpline
        For a position, the n_knots - 1 functions of which the slope is a sum, and their
        integrals from the first knot on.
    """

    def __init__(self, knots):
        self.knots = knots
        self.width = knots[-1] - knots[0]
        self.position = self._positions(knots)
        # There are n_slopes + 2 quadratic B-splines; the first two share the first
        # coefficient, the last two the last one: 0, 0, 1, 2, ..., last, last.
        n_slopes = len(knots) - 1
        coefficient_of_spline = np.clip(np.arange(n_slopes + 2) - 1, 0, n_slopes - 1)
        # Column k is function k: coefficients of 1 for the B-splines that share the
        # coefficient k, and 0 for the others.
        table = np.eye(n_slopes)[coefficient_of_spline]
        # Quadratic B-splines need the outer knots twice more.
        padded = np.pad(self.position, 2, mode="edge")
        self.slopes = BSpline(padded, table, 2)
        self.integrals = self.slopes.antiderivative()

    @cached_property
    def at_knots(self):
        """The matrix (n_knots, n_knots) that takes the coefficients of a spline to its
        values at the knots.
        """
        return self.features(self.knots).T

    @cached_property
    def bends(self):
        """The matrix (n_knots, n_knots) that takes the coefficients of a spline to its
        second derivatives, by the position, at the knots.
        """
        bends_of_slopes = self.slopes.derivative()(self.position)
        return np.column_stack((np.zeros(len(self.position)), bends_of_slopes))

    def features(self, log_odds):
        """Return the features (n_knots, n) of log-odds (n,), whose coefficients are
        those of a spline: ones, and the integrals of the functions that make up the
        slope. Beyond the outer knots they are straight lines.
        """
        position = self._positions(log_odds)  # 0 at the first knot, 1 at the last
        inside = np.clip(position, 0, 1)
        features = np.vstack((np.ones(len(position)), self.integrals(inside).T))
        # Beyond the outer knots the slope stays what it is at the knot.
        beyond = np.flatnonzero(inside != position)
        slopes = self.slopes(inside[beyond]).T
        features[1:, beyond] += slopes * (position - inside)[beyond]
        return features

    def curve_and_variances(self, coef, covariances):
        """Return a piecewise polynomial with several values at each log-odds: the
        spline with coefficients (n_knots,), which is cubic, and its variance by each of
        some covariances (n_knots, n_knots) of these, of degree 6.
        """
        # 1. The features (4, n_knots + 1, n_knots) by power, the highest first: a line,
        # the cubics between two knots, and another line.
        bends = self.bends / self.width**2
        cubics = _cubic_pieces(self.knots, self.at_knots, bends)
        ends = self.slopes(self.position[[0, -1]]) / self.width
        first, last = np.column_stack((np.zeros(2), ends))
        # a line has no cubic and no quadratic term
        none = np.zeros((2, 1, len(self.knots)))
        left = np.concatenate((none, [[first]], [[self.at_knots[0] - first]]))
        right = np.concatenate((none, [[last]], [[self.at_knots[-1]]]))
        features = np.concatenate((left, cubics, right), axis=1)
        # 2. The product of powers a and b, which count from 3, is power 6 - a - b.
        polynomials = np.zeros((7, features.shape[1], 1 + len(covariances)))
        polynomials[3:, :, 0] = features @ coef
        for k, covariance in enumerate(covariances, start=1):
            weighted = features @ covariance
            for a in range(4):
                products = np.sum(weighted[a] * features, axis=-1)
                polynomials[a : a + 4, :, k] += products
        # The origin of the first line is one below the first knot.
        breaks = np.concatenate(([self.knots[0] - 1], self.knots, [self.knots[-1] + 1]))
        return PPoly.construct_fast(polynomials, breaks)

    def roughness(self, inverse_temperature):
        """Return the matrix R (n_knots, n_knots) for which ``coef @ R @ coef`` is the
        integral, over temperature-scaled log-odds, of the spline's squared second
        derivative.

        The factor `inverse_temperature` scales the log-odds.
        """
        # The second derivative by the position is linear between two knots. Where it
        # goes from l to r over a step h, its square has the integral
        # h / 6 * (l^2 + r^2 + (l + r)^2); `bends` gives l and r from coefficients.
        step = np.diff(self.position)[:, None]
        left = self.bends[:-1]
        right = self.bends[1:]
        integral = 0
        for bends in (left, right, left + right):
            integral = integral + bends.T @ (step / 6 * bends)
        # In x = scale * position, a second derivative is divided by scale^2, and its
        # square by scale^4; the integral over x instead of the position brings one
        # factor back: 1 / scale^3.
        scale = max(inverse_temperature * self.width, _SMALLEST_WIDTH)
        return integral / scale**3

    def _positions(self, log_odds):
        """Return the positions of log-odds: 0 at the first knot, 1 at the last."""
        return (log_odds - self.knots[0]) / self.width


class _PenalisedSpline(NamedTuple):
    """A logistic regression on the d features of splines, with a ridge and a roughness
    penalty.

    `centre` (d,) are the coefficients that the ridge pulls to; `ridge` and `roughness`
    are the matrices (d, d) of the two penalties; `lower` (d,) are bounds of the
    coefficients, or None.
    """

    centre: np.ndarray
    ridge: np.ndarray
    roughness: np.ndarray
    lower: np.ndarray | None

    def penalty_matrix(self, penalty):
        """Return the matrix (d, d) of the ridge plus `penalty` times the roughness."""
        return self.ridge + penalty * self.roughness

    def __call__(self, features, targets, sample_weight, penalty, start):
        """Return the coefficients (d,) fitted with the roughness penalty, from `start`
        or the centre of the ridge; ``features(rows)`` returns (d, n_rows).
        """
        if start is None:
            start = self.centre
        return fit_logistic(
            features,
            targets,
            sample_weight,
            start=start,
            centre=self.centre,
            penalty=self.penalty_matrix(penalty),
            lower=self.lower,
        )


def _penalised_spline(basis, inverse_temperature, monotone):
    """Return the `_PenalisedSpline` for a `_NaturalSplines`, with a ridge on the
    distance from temperature scaling at the knots.
    """
    n_slopes = len(basis.knots) - 1
    # Temperature scaling is a straight line in the log-odds: its value at the first
    # knot, then its slope by the position, which is the same everywhere.
    straight_line = np.append(basis.knots[0], np.full(n_slopes, basis.width))
    lower = None
    if monotone:
        # A spline whose slopes have coefficients of at least 0 never falls.
        lower = np.append(-np.inf, np.zeros(n_slopes))
    return _PenalisedSpline(
        centre=inverse_temperature * straight_line,
        ridge=_IDENTITY_RIDGE * basis.at_knots.T @ basis.at_knots,
        roughness=basis.roughness(inverse_temperature),
        lower=lower,
    )


def _cubic_pieces(knots, values, second_derivatives):
    """Return the coefficients (4, n_knots - 1) of the cubic between each two knots, the
    highest power first, from its values and second derivatives (n_knots,) at the knots;
    of several splines if these have further axes.

    This takes a twelfth of the time of `CubicSpline`.
    """
    step = np.diff(knots).reshape(-1, *[1] * (values.ndim - 1))
    left = second_derivatives[:-1]
    right = second_derivatives[1:]
    cubic = np.diff(second_derivatives, axis=0) / (6 * step)
    quadratic = left / 2
    slope = np.diff(values, axis=0) / step - step * (2 * left + right) / 6
    constant = values[:-1]
    return np.stack((cubic, quadratic, slope, constant))


def _quantile_knots(log_odds, labels, sample_weight, n_knots):
    """Return increasing knots, at least two: `n_knots` evenly spaced quantiles of the
    log-odds (n,), from the lowest to the highest, with nearly equal ones merged.
    """
    # The k-th quantile is where the cumulative weight is k / (n_knots - 1) of the
    # total. Both sides are multiplied by n_knots - 1, so that counts stay integers.
    if sample_weight is None:
        scores = sorted_scores(log_odds)
        cumulative = (n_knots - 1) * np.arange(1, len(scores) + 1)
    else:
        table = DistinctScores.from_rows(log_odds, labels, sample_weight)
        scores = table.scores
        cumulative = (n_knots - 1) * table.weight[1:]
    total = cumulative[-1] / (n_knots - 1)
    wanted = np.arange(n_knots) * total
    # A quantile that falls between two scores is their mean, so that the knots are the
    # same if the labels are swapped, which reverses the order of the scores.
    last = len(scores) - 1
    at_most = np.minimum(np.searchsorted(cumulative, wanted, "left"), last)
    above = np.minimum(np.searchsorted(cumulative, wanted, "right"), last)
    knots = np.unique((scores[at_most] + scores[above]) / 2)
    # Between knots next to each other a cubic would have huge coefficients.
    gap = _SMALLEST_GAP * max(knots[-1] - knots[0], _SMALLEST_WIDTH)
    knots = knots[np.append(np.diff(knots) > gap, True)]
    if len(knots) == 1:
        return knots + [0.0, 1.0]
    return knots


def _leave_one_out_loss(features, targets, sample_weight, coef, penalty):
    """Return the log-loss, summed over the rows, of each row under the fit to the
    others, approximated by one Newton step from the fit `coef` (d,) to all. The penalty
    is ``coef @ penalty @ coef / 2``, up to its centre.
    """
    weight = weights_or_ones(sample_weight, len(targets))
    inverse = inverse_hessian(
        lambda rows: features[:, rows], len(targets), sample_weight, coef, penalty
    )
    log_odds = left_out_log_odds(features, targets, sample_weight, coef, inverse)
    return weight @ (np.logaddexp(0, log_odds) - targets * log_odds)
