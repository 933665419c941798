"""Calibration errors by kernel smoothing, on a grid with a cosine transform."""

from typing import NamedTuple

import numpy as np
from scipy.fft import dct
from scipy.optimize import brentq
from scipy.special import hyp0f1

from skcalib._input.scalars import check_number
from skcalib.metrics._bin_free import error_over_tasks
from skcalib.metrics._errors import check_norm
from skcalib._errors.score_grid import SKETCH, ScoreGrid, cosine_coefficients, trapezoid

__all__ = [
    "kde_bandwidth",
    "kde_calibration_error",
    "kde_error_power",
    "kde_kernel",
    "smooth_calibration_error",
    "smooth_fixed_point",
]

# Grid cells per unit of kernel width (half-width or standard deviation) that keep the rounding of scores to the grid
# below 1e-3 of the width, and the finest grid.
_CELLS_PER_WIDTH = 32
_COARSEST_GRID, _FINEST_GRID = 1 << 11, 1 << 16
_REACH, _STEP = 6, 1e-3  # standard deviations that a Gaussian reaches, and the relative step of a slope
_SERIES_END = 4.0  # of the triweight kernel's characteristic function: its closed form cancels below


def kde_calibration_error(
    y_true,
    y_proba=None,
    *,
    norm=1,
    bandwidth=None,
    multiclass="auto",
    class_weight=None,
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Calibration error by kernel regression: the mean of ``|E[Y | s] - s|^p`` with the density of the scores smoothed.

    Both the density of the scores and the event frequency are kernel estimates (triweight kernel, reflected at 0 and
    at 1, so that no mass leaves [0, 1]). For scores from a continuous model; a model of few distinct scores is
    blurred, see `calibration_error` with `UniqueScores`.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    norm : float or {"l1", "l2", "max"}, default=1
        p >= 1, finite.
    bandwidth : float, default=None
        Standard deviation of the kernel, whose half-width is three times that; None means the normal reference rule
        ``1.06 std(scores) n^(-1/5)``.
    multiclass : {"auto", "top_label", "marginal"}, default="auto"
        See `calibration_error`.
    class_weight : array-like of shape (K,) or dict, default=None
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Weights, which count as repeated rows.
    pos_label : int, float, bool or str, default=None
        The label that one column of scores is the probability of.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    error : float
        In [0, 1].

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score is missing or outside [0, 1], or
        weights are negative or all zero. Also if `norm` is infinite or `bandwidth` is not positive.

    See Also
    --------
    skcalib.metrics.smooth_calibration_error : A smoothed error without bins.
    skcalib.metrics.calibration_error : The debiased binned error.

    Notes
    -----
    The rule is one for standard deviations, and is taken so here as in the authors' program; the text of the paper can
    be read as one for the half-width. The sums run over a grid of at least 32 cells a half-width, by a cosine
    transform, in O(n).

    References
    ----------
    Zhang, Kailkhura and Han (2020), Mix-n-Match: ensemble and compositional methods for uncertainty calibration in
    deep learning.

    Examples
    --------
    One distinct score: the distance to the event frequency, 3/4 - 1/2.

    >>> from skcalib.metrics import kde_calibration_error
    >>> kde_calibration_error([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5])
    0.25
    """
    norm = check_norm(norm)
    if norm == np.inf:
        raise ValueError("norm=np.inf has no kernel estimate: use a finite norm or maximum_calibration_error.")
    if bandwidth is not None:
        check_number(bandwidth, "bandwidth", above=0)
    return error_over_tasks(
        lambda task: _kde_power(*task, norm, bandwidth),
        norm,
        y_true,
        y_proba,
        multiclass=multiclass,
        class_weight=class_weight,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


def smooth_calibration_error(
    y_true,
    y_proba=None,
    *,
    multiclass="auto",
    class_weight=None,
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Smooth calibration error (smECE): residuals are smoothed as much as the error itself is large.

    ``smECE_sigma`` is the integral of the absolute residual ``y - s``, smoothed by a Gaussian of standard deviation
    sigma that is reflected at 0 and at 1. It falls as sigma grows; the error is the one sigma that equals it. There is
    nothing to choose, and a small change of the scores changes it little. It is never above the error of the
    unsmoothed frequencies, and within a constant factor of the distance to the nearest calibrated forecast.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    multiclass : {"auto", "top_label", "marginal"}, default="auto"
        See `calibration_error`.
    class_weight : array-like of shape (K,) or dict, default=None
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Weights, which count as repeated rows.
    pos_label : int, float, bool or str, default=None
        The label that one column of scores is the probability of.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    error : float
        In [0, 1].

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score is missing or outside [0, 1], or
        weights are negative or all zero.

    See Also
    --------
    skcalib.metrics.kde_calibration_error : A kernel estimate without bins.
    skcalib.metrics.calibration_error : The debiased binned error.

    Notes
    -----
    The fixed point is solved for, not searched on a grid of sigmas; below 5e-4 smECE at that sigma is returned. A
    program that does not give a score of exactly 0 or 1 its full mirror image counts such rows half.

    References
    ----------
    Blasiok and Nakkiran (2024), Smooth ECE: principled reliability diagrams via kernel smoothing.

    Examples
    --------
    All residuals are 1/4: they add up whatever the smoothing.

    >>> from skcalib.metrics import smooth_calibration_error
    >>> round(smooth_calibration_error([1, 1, 1, 1], [0.75, 0.75, 0.75, 0.75], labels=[0, 1]), 6)
    0.25
    """
    return error_over_tasks(
        lambda task: smooth_fixed_point(*task),
        1,
        y_true,
        y_proba,
        multiclass=multiclass,
        class_weight=class_weight,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


def _kde_power(scores, labels, sample_weight, norm, bandwidth):
    """Return the integral of |E[Y | s] - s|^p over the estimated density of the scores (Zhang et al., Eq. 8)."""
    total, weight = _shares(scores, sample_weight)
    mean, low, high = weight @ scores, float(scores.min()), float(scores.max())
    if low == high:
        return abs(weight @ labels - mean) ** norm
    width = _reference_bandwidth(scores, weight, mean, total) if bandwidth is None else bandwidth
    grid, kernel = kde_kernel(width, low, high)
    masses = grid.rounded(scores, lambda rows: (weight[rows], weight[rows] * labels[rows]))
    density, events = np.maximum(dct(cosine_coefficients(masses) * kernel, type=1), 0)
    return kde_error_power(events, density, norm, grid.points)


def kde_bandwidth(scores, sample_weight):
    """Return the standard deviation of the kernel by the normal reference rule."""
    total, weight = _shares(scores, sample_weight)
    return _reference_bandwidth(scores, weight, weight @ scores, total)


def _reference_bandwidth(scores, weight, mean, total):
    return 1.06 * np.sqrt(weight @ (scores - mean) ** 2) * total ** (-1 / 5)


def kde_kernel(bandwidth, low, high, coarsest=1 << 10, cells_per_width=_CELLS_PER_WIDTH):
    """Return the grid for scores between two numbers, and the factors of its cosine coefficients."""
    half_width = np.clip(3 * bandwidth, 8 / _FINEST_GRID, None)  # the triweight kernel's variance is 1/9
    fineness = int(np.clip(2 ** np.ceil(np.log2(cells_per_width / half_width)), coarsest, _FINEST_GRID))
    grid = ScoreGrid.around(low, high, fineness, reach=int(min(half_width, 1) * fineness) + 1)
    wave = grid.waves(half_width)
    # Characteristic function of the density 35/32 (1 - u^2)^3 on [-1, 1]: 105 j_3(w) / w^3, by its series for small w.
    factor, large = np.empty_like(wave), wave > _SERIES_END
    factor[~large] = hyp0f1(4.5, -(wave[~large] ** 2) / 4)
    w = wave[large]
    factor[large] = 105 * ((15 - 6 * w**2) * np.sin(w) - (15 - w**2) * w * np.cos(w)) / w**7
    return grid, factor


def kde_error_power(events, density, norm, points):
    """Return the power of the error of smoothed events, on the points of a grid, and their density."""
    frequency = np.divide(events, density, out=np.zeros_like(events), where=density > 0)
    gap = np.minimum(np.abs(frequency - points), 1)
    return trapezoid(gap**norm * density) / trapezoid(density)


def smooth_fixed_point(scores, labels, sample_weight):
    """Return the sigma at which smECE_sigma = sigma (Blasiok and Nakkiran, Definition 2); labels may be fractions.

    Grids become finer while the error is below the narrowest width that they can show. It is then near that width, so
    that the next grid need only reach a little beyond the scores.
    """
    total = len(scores) if sample_weight is None else sample_weight.sum()

    def residual(rows):
        share = (1 if sample_weight is None else sample_weight[rows]) / total
        return (share * np.subtract(labels[rows], scores[rows], dtype=np.float64),)

    finest = ScoreGrid(_FINEST_GRID, 0, _FINEST_GRID).rounded(scores, residual)[0]
    held = np.flatnonzero(finest != 0) / _FINEST_GRID
    if not len(held):
        return 0.0
    fineness, widest = _COARSEST_GRID, 1.0
    while True:
        reach = fineness if widest == 1 else int(_REACH * widest * fineness)
        grid = ScoreGrid.around(held[0], held[-1], fineness, reach)
        smoothed = _SmoothedResidual(grid, cosine_coefficients(grid.coarsened(finest)))
        narrowest = _CELLS_PER_WIDTH / fineness
        at_narrowest = smoothed.sketch(narrowest)
        if at_narrowest > narrowest:
            return _fixed_point(smoothed, narrowest, widest)
        if fineness == _FINEST_GRID:
            return smoothed(narrowest)
        widest = 2 * narrowest
        fineness *= 4 if at_narrowest < narrowest / 2 and 4 * fineness <= _FINEST_GRID else 2


class _SmoothedResidual(NamedTuple):
    """smECE_sigma: the integral over [0, 1] of the absolute residual smoothed by a reflected Gaussian."""

    grid: ScoreGrid
    coefficients: np.ndarray

    def __call__(self, sigma):
        return self._of(sigma, self.coefficients)

    def sketch(self, sigma):
        """Return it on a coarser grid, which leaves out coefficients that the smoothing makes 0."""
        return self._of(sigma, self.coefficients[: self.grid.n_cells // SKETCH + 1])

    def _of(self, sigma, coefficients):
        wave = self.grid.waves(sigma, len(coefficients))
        return trapezoid(np.abs(dct(coefficients * np.exp(-(wave**2) / 2), type=1)))


def _fixed_point(smoothed, narrowest, widest):
    """Return the sigma at which smECE_sigma = sigma, which is above `narrowest` and hardly above `widest`.

    smECE_sigma never rises in sigma, so that there is one. It is solved for on a coarser grid, and one secant step on
    the whole grid makes it exact.
    """

    def excess(sigma):
        return smoothed.sketch(sigma) - sigma

    if excess(widest) >= 0:
        return widest
    above = min(2 * narrowest, widest)
    sigma = brentq(excess, narrowest, above if excess(above) < 0 else widest, xtol=1e-9)
    slope = (excess(sigma * (1 + _STEP)) - excess(sigma)) / (sigma * _STEP)
    return min(sigma - (smoothed(sigma) - sigma) / slope, 1.0)


def _shares(scores, sample_weight):
    """Return the total weight and each row's share of it."""
    if sample_weight is None:
        return len(scores), np.full(len(scores), 1 / len(scores))
    total = sample_weight.sum()
    return total, sample_weight / total
