"""Spline calibration: a smooth curve in the log-odds, as flexible as the rows pay for."""

from functools import cached_property
from numbers import Integral
from operator import itemgetter

import numpy as np
from scipy.interpolate import BSpline, PPoly
from scipy.special import expit

from skcalib._input.sklearn_private import BOOLEAN, Interval
from skcalib._rows.blocks import condensed
from skcalib._rows.links import clip_probability
from skcalib._rows.sorting import DistinctScores, sorted_scores
from skcalib._solvers.leave_one_out import inverse_hessian, left_out_log_odds
from skcalib._solvers.logistic import fit_logistic
from skcalib._solvers.temperature import smoothed_inverse_temperature
from skcalib.binning._monotonic_sweep import equal_mass_below
from skcalib.recalibrators._attributes import knots, matrix, number, numbers
from skcalib.recalibrators._base import RIDGE, BinaryRecalibrator
from skcalib.recalibrators._clipping import ClippedRecalibrator
from skcalib.recalibrators._map_forms import polynomials
from skcalib.recalibrators._maps import Expit

# Candidate curvature penalties, the stiffest first: nearly a straight line. Each fit begins where the last one ended.
_PENALTIES = (1e4, 100.0, 10.0, 1.0, 0.1)
# Ridge on the distance from temperature scaling at each knot, in log-odds: the weight of less than half a row.
_IDENTITY_RIDGE = 0.1
# The curvature is measured over at least this range of log-odds.
_SMALLEST_WIDTH = 1.0
# Knots that are nearer to each other are one: between them a slope would be a ratio of rounding errors.
_SMALLEST_GAP = 1e-6  # in units of their range, or of the smallest width


class SplineCalibration(
    ClippedRecalibrator, BinaryRecalibrator, positional=("n_knots",)
):
    """Spline calibration: the sigmoid of a natural cubic spline in the temperature-scaled log-odds.

    The map is more flexible with more calibration rows: the weight of a penalty on the curvature is the one with the
    least leave-one-out log-loss. Beyond the outer knots the map continues as a straight line in the log-odds.

    Parameters
    ----------
    n_knots : int, default=8
        Number of knots, at least 2: quantiles of the scores, the lowest and the highest included. Tied knots merge.
    roughness_penalty : float, default=None
        Weight of the curvature penalty ``roughness_penalty / 2 * integral(second derivative ** 2)`` on the log-loss
        summed over the rows. None chooses from {.1, 1, 10, 100, 1e4} by approximate leave-one-out [2]_.
    monotone : bool, default=False
        Whether the map is kept from falling, so that the ranking stays.
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
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    provenance_ : dict
        Where the fit comes from: method, parameters, rows, events by class, versions, and a hash of the rows.
    clip_ : float
        The learned floor, or the clipping constant.
    floor_ : float
        The learned floor, 0 if there is none.
    knots_ : ndarray of shape (`n_knots_`,)
        Knots on the log-odds of the scores. For K > 2 classes these four are lists with one entry per class.
    knot_log_odds_ : ndarray of shape (`n_knots_`,)
        Calibrated log-odds at the knots.
    spline_coefficients_ : ndarray of shape (4, `n_knots_` - 1)
        The natural cubic spline through them: coefficients of each piece above its left knot, the cubic one first.
    roughness_penalty_ : float
        Weight of the curvature penalty that was used.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or not what `input` says, `y` has another length or only one class, or a
        parameter is out of its range.

    See Also
    --------
    skcalib.IsotonicCalibration : Any increasing map.
    skcalib.QuadraticScaling : A parabola on the log-odds.
    skcalib.StackedRecalibrator : A mixture of several recalibrators.

    Notes
    -----
    A small ridge at the knots pulls the map toward temperature scaling, with a temperature that is fitted to Platt's
    targets. So the map is finite for separable classes. The nonnegative slopes of ``monotone=True`` are those of an
    I-spline.

    References
    ----------
    .. [1] Lucena (2018), Spline-based probability calibration.
    .. [2] Rad and Maleki (2020), A scalable estimate of the out-of-sample prediction error via approximate
       leave-one-out cross-validation.

    Examples
    --------
    An event that happens at middle scores only, which no parametric map can follow:

    >>> import numpy as np
    >>> from skcalib import SplineCalibration
    >>> scores = np.linspace(0.01, 0.99, 300)
    >>> spline = SplineCalibration().fit(scores, abs(scores - 0.5) < 0.2)
    >>> (spline.predict_proba([0.1, 0.5, 0.9])[:, 1] > 0.5).tolist()
    [False, True, False]
    """

    n_knots: [Interval(Integral, 2, None, closed="left")] = 8
    roughness_penalty: [RIDGE, None] = None
    monotone: [BOOLEAN] = False

    _part_attributes = {
        "knots_": knots,
        "knot_log_odds_": numbers,
        "roughness_penalty_": number,
        "spline_coefficients_": matrix,
    }
    _needs_classes = "any"
    _scale = "log_odds"

    def _fit_binary(self, log_odds, labels, sample_weight):
        knots = _quantile_knots(log_odds, labels, sample_weight, self.n_knots)
        basis = _NaturalSplines(knots)
        at_knots = basis.features(knots).T
        few = condensed(log_odds, labels, sample_weight)
        inverse_temperature = smoothed_inverse_temperature(
            log_odds, labels, sample_weight, few
        )
        ridge, roughness = (
            _IDENTITY_RIDGE * at_knots.T @ at_knots,
            basis.roughness(inverse_temperature),
        )
        start = inverse_temperature * np.append(
            knots[0], np.full(len(knots) - 1, basis.width)
        )  # temperature scaling
        lower = np.append(-np.inf, np.zeros(len(knots) - 1)) if self.monotone else None

        def fit(features, labels, sample_weight, penalty, near):
            penalty = ridge + penalty * roughness
            return fit_logistic(
                features,
                labels,
                sample_weight,
                near=near,
                start=start,
                penalty=penalty,
                lower=lower,
            )

        features, fits, coef = basis.features(few[0]), [], start
        candidates = (
            _PENALTIES if self.roughness_penalty is None else (self.roughness_penalty,)
        )
        for candidate in candidates:
            coef, loss = (
                fit(lambda rows: features[:, rows], *few[1:], candidate, coef),
                0.0,
            )
            if len(candidates) > 1:
                loss = _leave_one_out_loss(
                    features, *few[1:], coef, ridge + candidate * roughness
                )
            fits.append((loss, float(candidate), coef))
        _, self.roughness_penalty_, coef = min(reversed(fits), key=itemgetter(0))
        if len(few[0]) < len(log_odds):
            of_rows = (
                (lambda rows: basis.features(log_odds[rows])),
                labels,
                sample_weight,
            )
            coef = fit(*of_rows, self.roughness_penalty_, coef)
        self.knots_, self.knot_log_odds_ = knots, at_knots @ coef
        # The cubic pieces from their ends' values and second derivatives: a twelfth of the time of `CubicSpline`.
        bend, step = basis.bends @ coef / basis.width**2, np.diff(knots)
        slope = (
            np.diff(self.knot_log_odds_) / step - step * (2 * bend[:-1] + bend[1:]) / 6
        )
        self.spline_coefficients_ = np.stack(
            (np.diff(bend) / (6 * step), bend[:-1] / 2, slope, self.knot_log_odds_[:-1])
        )

    def _predict_binary(self, log_odds):
        inside, spline = (
            np.clip(log_odds, self.knots_[0], self.knots_[-1]),
            self._spline,
        )
        return clip_probability(
            expit(spline(inside) + spline(inside, 1) * (log_odds - inside))
        )

    def _map(self, log_odds):
        # The cubic pieces, and the tangents at the outer knots.
        spline, knots = self._spline, self.knots_
        ends = knots[[0, -1]]
        tangents = np.column_stack((spline(ends), spline(ends, 1)))
        coefficients = [tangents[0], *self.spline_coefficients_[::-1].T, tangents[1]]
        return Expit(
            polynomials(log_odds, knots, [ends[0], *knots[:-1], ends[1]], coefficients)
        )

    @property
    def _spline(self):
        return PPoly.construct_fast(self.spline_coefficients_, self.knots_)

    def _check_attributes(self):
        if self.spline_coefficients_.shape != (4, len(self.knots_) - 1):
            raise ValueError(
                "spline_coefficients_ must hold four coefficients between each two knots"
            )


class _NaturalSplines:
    """Natural cubic splines by their value at the first knot and nonnegative slopes, for which they never fall.

    The slopes are quadratic B-splines of the position: 0 at the first knot, 1 at the last. The first two of them are
    tied, and the last two, so that the second derivative vanishes at the outer knots.
    """

    def __init__(self, knots):
        self.first, self.width = knots[0], knots[-1] - knots[0]
        self.position = self._positions(knots)
        n_slopes = len(knots) - 1
        tied = np.clip(np.arange(n_slopes + 2) - 1, 0, n_slopes - 1)
        self.slopes = BSpline(
            np.pad(self.position, 2, mode="edge"), np.eye(n_slopes)[tied], 2
        )
        self.integrals = self.slopes.antiderivative()

    @cached_property
    def bends(self):
        """Second derivatives of the features at the knots, in the position."""
        return np.column_stack(
            (np.zeros(len(self.position)), self.slopes.derivative()(self.position))
        )

    def features(self, log_odds):
        """Return ones and the integrals of the slopes up to each of the log-odds (d, n), straight beyond the knots."""
        position = self._positions(log_odds)
        inside = np.clip(position, 0, 1)
        features = np.vstack((np.ones(len(position)), self.integrals(inside).T))
        beyond = np.flatnonzero(inside != position)
        features[1:, beyond] += (
            self.slopes(inside[beyond]).T * (position - inside)[beyond]
        )
        return features

    def roughness(self, inverse_temperature):
        """Return the matrix of the integral of the second derivative squared, in temperature-scaled log-odds.

        That derivative is linear between knots, where the integral of a product is
        ``step / 6 * (l l' + r r' + (l + r) (l' + r'))`` for the values l, l' on the left and r, r' on the right.
        """
        step = np.diff(self.position)[:, None]
        left, right = self.bends[:-1], self.bends[1:]
        integral = sum(
            values.T @ (step / 6 * values) for values in (left, right, left + right)
        )
        return integral / max(inverse_temperature * self.width, _SMALLEST_WIDTH) ** 3

    def _positions(self, log_odds):
        return (log_odds - self.first) / self.width


def _quantile_knots(log_odds, labels, sample_weight, n_knots):
    """Return those of `n_knots` quantiles that are apart, at least two: the cuts of equal-mass bins and both ends."""
    if sample_weight is None:
        ranks = -(-np.arange(n_knots) * len(log_odds) // (n_knots - 1))
        knots = np.unique(sorted_scores(log_odds)[np.maximum(ranks - 1, 0)])
    else:
        table = DistinctScores.from_rows(log_odds, labels, sample_weight)
        below = equal_mass_below(table, n_knots - 1, np.arange(n_knots))
        knots = np.unique(table.scores[np.maximum(below - 1, 0)])
    gap = _SMALLEST_GAP * max(knots[-1] - knots[0], _SMALLEST_WIDTH)
    knots = knots[np.append(np.diff(knots) > gap, True)]
    return knots if len(knots) > 1 else knots + [0.0, 1.0]


def _leave_one_out_loss(features, targets, sample_weight, coef, penalty):
    """Return the log-loss, summed over the rows, of the fits without them: each one Newton step from `coef` [2].

    The features are those of a row in each column (d, n).
    """
    weight = np.ones(len(targets)) if sample_weight is None else sample_weight
    inverse = inverse_hessian(
        lambda rows: features[:, rows], len(targets), sample_weight, coef, penalty
    )
    log_odds = left_out_log_odds(features, targets, sample_weight, coef, inverse)
    return weight @ (np.logaddexp(0, log_odds) - targets * log_odds)
