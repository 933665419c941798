"""Temperature scaling: one number that divides the logits."""

from numbers import Real

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax

from skcalib._input.sklearn_private import StrOptions
from skcalib._rows.blocks import row_blocks
from skcalib._rows.links import clip_probability
from skcalib._solvers.newton import minimise_convex
from skcalib.recalibrators._base import LogitRecalibrator
from skcalib.recalibrators._clipping import CLIP_CONSTRAINT

_WARM_START_ROWS = 2000
# Inverse temperatures are sought within these multiples of 1 / (largest spread of a row of logits).
_RELATIVE_BOUNDS = (1e-6, 1e6)
# Spreads of a row of logits for which single precision does: squares lose nothing of weight, and the inverse
# temperatures, up to 1e6 / spread, are in range.
_SINGLE_SPREADS = (1e-12, 1e4)


class TemperatureScaling(LogitRecalibrator):
    """Temperature scaling: ``softmax(logits / temperature)``.

    Parameters
    ----------
    loss : {"log", "brier"} or callable, default="log"
        What is minimised. Log-loss is convex in the inverse temperature: Newton steps inside a bracket find it to a
        relative 1e-8. The Brier score, or a metric ``loss(y_true, y_proba)`` (smaller is better; `sample_weight` is
        passed on if there is one), is searched on a grid and then by Brent's method (Algorithm 1 of [2]_).
    input : {"probability", "logit"}, default="probability"
        What the scores are. One column of logits is the log-odds of the positive class.
    classes : array-like, default=None
        Labels of the columns, for a calibration set in which a class is missing.
    clip : float or "auto", default=None
        Probabilities are clipped to [clip, 1 - clip] before they become log-odds; None means 2^-52. "auto" goes up, to
        .03 at most, where that gains more than 1 nat of log-likelihood: for models that say exactly 0 and 1.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    clip_ : float
        The clipping constant used.
    temperature_ : float
        In the sense of Guo et al. [1]_: above 1 for an over-confident model, also for two classes.
    inverse_temperature_ : float
        ``1 / temperature_``.

    Notes
    -----
    The inverse temperature stays positive, so that decisions never change. On separable data it would be infinite: it
    ends where nothing is left of the loss in floating point. For a model that is always wrong it would be negative: it
    ends on a bound, a millionth of what makes the logits spread by 1.

    References
    ----------
    .. [1] Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks.
    .. [2] Zhao, Chen and Oymak (2020), On the role of dataset quality and heterogeneity in model confidence.

    Examples
    --------
    Right in 3 of 4 cases at log-odds of 2 log(3): the temperature 2 makes that 3/4.

    >>> import numpy as np
    >>> from skcalib import TemperatureScaling
    >>> log_odds = np.full(4, 2 * np.log(3))
    >>> round(TemperatureScaling(input="logit").fit(log_odds, [1, 1, 1, 0]).temperature_, 6)
    2.0
    """

    _parameter_constraints = {
        **LogitRecalibrator._parameter_constraints,
        **CLIP_CONSTRAINT,
        "loss": [StrOptions({"log", "brier"}), callable],
    }
    _keeps_decisions = True
    _needs_classes = "two"
    _works_on_log_odds = True

    def __init__(self, *, loss="log", input="probability", classes=None, clip=None):
        self.loss = loss
        self.input = input
        self.classes = classes
        self.clip = clip

    def _fit_logits(self, logits, codes, sample_weight):
        inverse = fit_inverse_temperature(logits, codes, sample_weight)
        if self.loss != "log":
            objective = self._objective(logits, codes, sample_weight)
            inverse = _search_inverse_temperature(objective, around=inverse)
        self.inverse_temperature_ = float(inverse)
        self.temperature_ = float(1 / inverse)

    def _predict_logits(self, logits):
        return np.multiply(logits, self.inverse_temperature_, dtype=np.float64)  # float32 could overflow

    def _objective(self, logits, codes, sample_weight):
        """Return the loss as a function of the inverse temperature."""
        y_true = self.classes_[codes]
        options = {} if sample_weight is None else {"sample_weight": sample_weight}

        def objective(inverse):
            y_proba = clip_probability(softmax(logits * inverse, axis=1))
            if self.loss == "brier":
                return _brier(y_proba, codes, sample_weight)
            value = self.loss(y_true, y_proba, **options)
            if not isinstance(value, Real) or np.isnan(value):
                raise ValueError(f"loss must return a number, found {value!r} at the temperature {1 / inverse:.6g}.")
            return float(value)

        return objective


def fit_inverse_temperature(logits, codes, sample_weight=None, bounds=None):
    """Return the inverse temperature of least log-loss within `bounds`.

    A sample of the rows gives the start. For float32 logits of more than two classes single precision gets close, so
    that few passes over all rows are left in double precision.
    """
    rough = np.float64
    if bounds is None:
        spread = max(float(_spread(logits[rows]).max()) for rows in row_blocks(*logits.shape))
        bounds = tuple(bound / spread for bound in _RELATIVE_BOUNDS) if spread > 0 else (1.0, 1.0)
        if logits.shape[1] > 2 and _SINGLE_SPREADS[0] < spread < _SINGLE_SPREADS[1]:
            rough = logits.dtype
    inverse = 1.0
    step = len(logits) // _WARM_START_ROWS
    if step > 1:
        weight = None if sample_weight is None else sample_weight[::step]
        warm = _minimum(inverse, bounds, logits[::step], codes[::step], weight, 1e-2, rough)
        inverse = warm if bounds[0] < warm < bounds[1] else inverse  # on a bound the few rows were separable
    if rough == np.float32:
        inverse = _minimum(inverse, bounds, logits, codes, sample_weight, 1e-3, rough)
    return _minimum(inverse, bounds, logits, codes, sample_weight)


def _minimum(start, bounds, logits, codes, sample_weight, tolerance=1e-6, dtype=np.float64):
    """Return the inverse temperature of least log-loss, whose derivative is monotone."""

    def derivatives(inverse):
        return _log_loss_derivatives(inverse[0], logits, codes, sample_weight, dtype)

    return float(minimise_convex(derivatives, np.array([start]), bounds, tolerance)[0])


def _spread(logits):
    """Return the largest minus the smallest logit of each row."""
    if logits.shape[1] == 2:
        return np.abs(np.subtract(logits[:, 1], logits[:, 0], dtype=np.float64))
    return np.subtract(logits.max(axis=1), logits.min(axis=1), dtype=np.float64)


def row_derivatives(inverse, logits, codes, dtype=np.float64):
    """Yield, for blocks of rows, the first two derivatives of each row's log-loss: E[z] - z_y and Var[z].

    `inverse` is one inverse temperature, or one a row. `dtype` is what a row is computed in.
    """
    if logits.shape[1] == 2:
        yield from _two_class_derivatives(inverse, logits, codes)
        return
    ones, inverse = np.ones(logits.shape[1], dtype), np.asarray(inverse, dtype)
    for rows in row_blocks(*logits.shape):
        z = logits[rows].astype(dtype)
        z -= z.max(axis=1, keepdims=True)
        likelihood = (inverse if inverse.ndim == 0 else inverse[rows, None]) * z
        np.exp(likelihood, out=likelihood)
        total = likelihood @ ones
        mean = np.vecdot(likelihood, z) / total
        z_true = z[np.arange(len(z)), codes[rows]]
        z *= z
        variance = np.maximum(np.vecdot(likelihood, z) / total - mean**2, 0)
        yield rows, mean - z_true, variance


def _two_class_derivatives(inverse, logits, codes):
    """Yield the same from the margin of the true class over the other: -m q and m^2 q (1 - q), q that of the other."""
    for rows in row_blocks(*logits.shape):
        margin = np.subtract(logits[rows, 1], logits[rows, 0], dtype=np.float64)
        margin *= 2 * codes[rows] - 1
        other = expit(-margin * (inverse if np.ndim(inverse) == 0 else inverse[rows]))
        slope = -margin * other
        yield rows, slope, -slope * margin * (1 - other)


def _log_loss_derivatives(inverse, logits, codes, sample_weight, dtype):
    """Return the first two derivatives of the summed log-loss, shape (1,)."""
    weight = np.ones(len(logits)) if sample_weight is None else sample_weight
    slope, curvature = np.zeros(1), np.zeros(1)
    for rows, row_slope, row_curvature in row_derivatives(inverse, logits, codes, dtype):
        slope += weight[rows] @ row_slope
        curvature += weight[rows] @ row_curvature
    return slope, curvature


def _search_inverse_temperature(objective, around):
    """Return the best inverse temperature within a factor of 30: a grid, then Brent's method between neighbours."""
    grid = np.log(around) + np.linspace(-np.log(30), np.log(30), 61)
    values = [objective(np.exp(point)) for point in grid]
    best = min(np.flatnonzero(values == np.min(values)), key=lambda i: abs(i - len(grid) // 2))  # of ties the nearest
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    refined = minimize_scalar(lambda point: objective(np.exp(point)), bounds=bounds, options={"xatol": 1e-10})
    return np.exp(refined.x if refined.fun < values[best] else grid[best])


def _brier(y_proba, codes, sample_weight):
    """Return the mean of ``sum_k (p_k - [y = k])^2``."""
    p_true = y_proba[np.arange(len(codes)), codes]
    return np.average(np.einsum("ij,ij->i", y_proba, y_proba) - 2 * p_true + 1, weights=sample_weight)
