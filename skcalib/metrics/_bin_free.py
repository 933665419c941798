"""Calibration errors without bins: cumulative differences, neighbours in score, and
kernel smoothing.
"""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from skcalib._cells.statistics import BinStatistics
from skcalib._errors.bin_free import (
    KolmogorovSmirnovError,
    KuiperError,
    NeighborhoodError,
)
from skcalib._errors.kde import KdeError
from skcalib._errors.smooth import SmoothError


def kolmogorov_smirnov_calibration_error(
    y_true: ArrayLike | BinStatistics,
    y_proba: ArrayLike | None = None,
    *,
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    class_weight: ArrayLike | dict | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Kolmogorov-Smirnov calibration error: the largest cumulative difference.

    The error is ``max_t |sum of (y - s) over samples with s <= t| / n``; the residuals
    of tied scores are added together. Errors of opposite sign cancel in the sum, so
    this error is a lower bound on the l1 error.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels, or bin sums with one distinct score per bin, which replace `y_true`,
        `y_proba` and all other per-sample arguments.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`.
    class_weight : array-like of shape (K,) or dict, default=None
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: a sample with weight 2 counts twice.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    error : float
        Error in [0, 1].

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero.

    See Also
    --------
    skcalib.metrics.kuiper_calibration_error : The largest difference over an interval
        of scores.
    skcalib.metrics.calibration_test : Tests whether the error is larger than expected
        by chance.

    References
    ----------
    Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu and Hartley (2021), Calibration of
    neural networks using splines.

    Examples
    --------
    Overconfident forecasts: the log-odds are twice what they should be.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import kolmogorov_smirnov_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> round(kolmogorov_smirnov_calibration_error(y_true, y_proba), 3)
    0.057

    Computed by hand: the cumulative sums of y - s over these four samples are -.2, -.6,
    -.2 and 0, and .6 / 4 = .15.

    >>> from skcalib.metrics import kolmogorov_smirnov_calibration_error
    >>> round(
    ...     kolmogorov_smirnov_calibration_error([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.8]), 6
    ... )
    0.15
    """
    error = KolmogorovSmirnovError(multiclass=multiclass, class_weight=class_weight)
    return error.value(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


def kuiper_calibration_error(
    y_true: ArrayLike | BinStatistics,
    y_proba: ArrayLike | None = None,
    *,
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    class_weight: ArrayLike | dict | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Kuiper calibration error: the largest difference over any interval of scores.

    The error is ``max_{a, b} |sum of (y - s) over rows with a < s <= b| / n``, the
    range of the cumulative differences. The error is at least as large as their maximum
    absolute value (`kolmogorov_smirnov_calibration_error`) and at most twice as large.
    It is a lower bound on the l1 error. It is also known as ECCE-R and as the cutoff
    calibration error.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels, or bin sums with one distinct score per bin, which replace `y_true`,
        `y_proba` and all other per-sample arguments.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`.
    class_weight : array-like of shape (K,) or dict, default=None
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: a sample with weight 2 counts twice.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    error : float
        Error in [0, 1].

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero.

    See Also
    --------
    skcalib.metrics.kolmogorov_smirnov_calibration_error : The largest cumulative
        difference.
    skcalib.metrics.calibration_test : Tests whether the error is larger than expected
        by chance.

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu (2022), Metrics of calibration for
    probabilistic predictions.

    Examples
    --------
    Overconfident forecasts: the log-odds are twice what they should be.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import kuiper_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> round(kuiper_calibration_error(y_true, y_proba), 3)
    0.057

    The cumulative sums of y - s over four samples are -.2, .4, -.2 and .0; they range
    from
    -.2 to .4, and .6 / 4 = .15.

    >>> from skcalib.metrics import kuiper_calibration_error
    >>> round(kuiper_calibration_error([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8]), 6)
    0.15
    """
    error = KuiperError(multiclass=multiclass, class_weight=class_weight)
    return error.value(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


def neighborhood_calibration_error(
    y_true: ArrayLike | BinStatistics,
    y_proba: ArrayLike | None = None,
    *,
    n_neighbors: int | None = None,
    norm: float | Literal["l1", "l2", "max"] = 1,
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    class_weight: ArrayLike | dict | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Calibration error with event frequencies estimated from neighbouring scores.

    The neighbours of a sample are all samples within the smallest distance that
    includes `n_neighbors` samples, including the sample itself. Tied scores are always
    neighbours, so the order of the samples does not matter. Like a plugin error with
    few samples per bin, this error is biased upwards with few neighbours.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    n_neighbors : int, default=None
        Minimum number of neighbours (total weight), between 1 and n; None means the
        square root of n, rounded up.
    norm : float or {"l1", "l2", "max"}, default=1
        The norm p >= 1, or ``np.inf`` for the maximum over samples.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`.
    class_weight : array-like of shape (K,) or dict, default=None
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Weights. Integers are frequency weights: a sample with weight 2 counts twice.
        Other weights are relative: a common factor has no effect.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    error : float
        Error in [0, 1].

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero. Also raised
        if `n_neighbors` is not between 1 and n.

    See Also
    --------
    skcalib.metrics.kde_calibration_error : A kernel estimate without bins.
    skcalib.metrics.calibration_error : The debiased binned error.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error
    estimation, Eq. 2.

    Examples
    --------
    Overconfident forecasts: the log-odds are twice what they should be.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import neighborhood_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> round(neighborhood_calibration_error(y_true, y_proba), 3)
    0.105

    With all samples as neighbours, the event frequency is 1/2 at every score.

    >>> from skcalib.metrics import neighborhood_calibration_error
    >>> round(
    ...     neighborhood_calibration_error(
    ...         [0, 0, 1, 1], [0.2, 0.4, 0.6, 0.8], n_neighbors=4
    ...     ),
    ...     6,
    ... )
    0.2
    """
    error = NeighborhoodError(
        n_neighbors=n_neighbors,
        norm=norm,
        multiclass=multiclass,
        class_weight=class_weight,
    )
    return error.value(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


def kde_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike | None = None,
    *,
    norm: float | Literal["l1", "l2", "max"] = 1,
    bandwidth: float | None = None,
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    class_weight: ArrayLike | dict | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Calibration error by kernel regression: the mean of ``|E[Y | s] - s|^p``.

    Both the density of the scores and the event frequency are kernel estimates
    (triweight kernel, reflected at 0 and at 1, so that no mass lies outside [0, 1]).
    Use this error for scores from a continuous model. For a model with few distinct
    scores, use `calibration_error` with `UniqueScores`.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    norm : float or {"l1", "l2", "max"}, default=1
        The norm p >= 1, which must be finite.
    bandwidth : float, default=None
        Standard deviation of the kernel, whose half-width is three times as large. None
        means the normal reference rule ``1.06 std(scores) n^(-1/5)``.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`.
    class_weight : array-like of shape (K,) or dict, default=None
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Weights. Integers are frequency weights: a sample with weight 2 counts twice.
        Other weights are relative: a common factor has no effect.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    error : float
        Error in [0, 1].

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero. Also raised
        if `norm` is infinite or `bandwidth` is not positive.

    See Also
    --------
    skcalib.metrics.smooth_calibration_error : A smoothed error without bins.
    skcalib.metrics.calibration_error : The debiased binned error.

    Notes
    -----
    The normal reference rule gives a standard deviation, as in the implementation by
    the authors of the method; the text of their paper can also be read as giving the
    half-width. The sums are computed on a grid of at least 32 cells per half-width, by
    a cosine transform, in O(n).

    References
    ----------
    Zhang, Kailkhura and Han (2020), Mix-n-Match: ensemble and compositional methods for
    uncertainty calibration in deep learning.

    Examples
    --------
    Overconfident forecasts: the log-odds are twice what they should be.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import kde_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> round(kde_calibration_error(y_true, y_proba), 3)
    0.093

    With one distinct score, the error is its distance from the event frequency,
    ``3/4 - 1/2``.

    >>> from skcalib.metrics import kde_calibration_error
    >>> kde_calibration_error([0, 1, 1, 1], [0.5, 0.5, 0.5, 0.5])
    0.25
    """
    error = KdeError(
        norm=norm,
        bandwidth=bandwidth,
        multiclass=multiclass,
        class_weight=class_weight,
    )
    return error.value(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


def smooth_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike | None = None,
    *,
    bandwidth: float | None = None,
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    class_weight: ArrayLike | dict | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Smooth calibration error (smECE), with a self-consistent kernel width.

    ``smECE_sigma`` is the integral of the absolute residual ``y - s``, smoothed by a
    Gaussian of standard deviation sigma that is reflected at 0 and at 1. It decreases
    as sigma grows; the error is the value of sigma at which ``smECE_sigma`` equals
    sigma. The error has no parameters to choose, and small changes in the scores have
    little effect on it. The error never exceeds the error of the unsmoothed
    frequencies, and is within a constant factor of the distance to the nearest
    calibrated predictor.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    bandwidth : float, default=None
        Fixed sigma for the smoothing, in (0, 1). None means the self-consistent value,
        at which sigma equals the error.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`.
    class_weight : array-like of shape (K,) or dict, default=None
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: a sample with weight 2 counts twice.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    error : float
        Error in [0, 1].

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], weights are negative or all zero, or the bandwidth
        is not in (0, 1).

    See Also
    --------
    skcalib.metrics.kde_calibration_error : A kernel estimate without bins.
    skcalib.metrics.calibration_error : The debiased binned error.

    Notes
    -----
    The fixed point is found by solving the equation rather than by searching a grid of
    sigmas. If it is below 5e-4, the smECE at sigma = 5e-4 is returned. Some other
    implementations omit the mirror image of a score of exactly 0 or 1, so such samples
    have only half their weight.

    References
    ----------
    Blasiok and Nakkiran (2024), Smooth ECE: principled reliability diagrams via kernel
    smoothing.

    Examples
    --------
    Overconfident forecasts: the log-odds are twice what they should be.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import smooth_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> round(smooth_calibration_error(y_true, y_proba), 3)
    0.091

    All residuals are 1/4, so the error is 1/4 for any amount of smoothing.

    >>> from skcalib.metrics import smooth_calibration_error
    >>> round(
    ...     smooth_calibration_error(
    ...         [1, 1, 1, 1], [0.75, 0.75, 0.75, 0.75], labels=[0, 1]
    ...     ),
    ...     6,
    ... )
    0.25
    """
    error = SmoothError(
        bandwidth=bandwidth, multiclass=multiclass, class_weight=class_weight
    )
    return error.value(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )
