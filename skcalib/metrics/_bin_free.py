"""Calibration errors without bins: the cumulative difference and the neighbours in score."""

import numpy as np

from skcalib._cells.reductions import check_rows_or_bins
from skcalib._input.scalars import check_int
from skcalib.binning._distinct_scores import DistinctScores
from skcalib.metrics._errors import check_norm, error_root, power_over_tasks

__all__ = [
    "check_n_neighbors",
    "error_over_tasks",
    "kolmogorov_smirnov_calibration_error",
    "kuiper_calibration_error",
    "nearest",
    "neighborhood_calibration_error",
]


def kolmogorov_smirnov_calibration_error(
    y_true,
    y_proba=None,
    *,
    multiclass="auto",
    class_weight=None,
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Kolmogorov-Smirnov calibration error: the largest cumulative difference of labels and scores.

    ``max_t |mean of (y - s) over rows with s <= t, all rows counted|``: tied scores enter as one. Errors of opposite
    sign cancel along the way, so that it is a lower bound of the l1 error.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels; or the sums of bins with one distinct score each, in place of `y_true`, `y_proba` and all that
        describes rows.
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
    skcalib.metrics.kuiper_calibration_error : The worst interval of scores.
    skcalib.metrics.calibration_test : Is the error more than noise?

    References
    ----------
    Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu and Hartley (2021), Calibration of neural networks using splines.

    Examples
    --------
    The differences y - s add up to -.2, -.6, -.2 and 0 over four rows.

    >>> from skcalib.metrics import kolmogorov_smirnov_calibration_error
    >>> round(kolmogorov_smirnov_calibration_error([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.8]), 6)
    0.15
    """
    return error_over_tasks(
        lambda task: _kolmogorov_smirnov(task.distinct_scores()),
        1,
        y_true,
        y_proba,
        multiclass=multiclass,
        class_weight=class_weight,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


def kuiper_calibration_error(
    y_true,
    y_proba=None,
    *,
    multiclass="auto",
    class_weight=None,
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Kuiper calibration error: the largest cumulative difference of labels and scores over any interval of scores.

    ``max_{a, b} |sum of (y - s) over rows with a < s <= b| / n``: the range of the cumulative differences. The error is
    at least their largest absolute value (`kolmogorov_smirnov_calibration_error`). It is at most twice as large, and a
    lower bound of the l1 error. Also known as ECCE-R and as the cutoff calibration error.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels; or the sums of bins with one distinct score each, in place of `y_true`, `y_proba` and all that
        describes rows.
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
    skcalib.metrics.kolmogorov_smirnov_calibration_error : The largest cumulative difference.
    skcalib.metrics.calibration_test : Is the error more than noise?

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu (2022), Metrics of calibration for probabilistic predictions.

    Examples
    --------
    The differences y - s add up to -.2, .4, -.2 and .0 over four rows: from -.2 to .4.

    >>> from skcalib.metrics import kuiper_calibration_error
    >>> round(kuiper_calibration_error([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8]), 6)
    0.15
    """
    return error_over_tasks(
        lambda task: _kuiper(task.distinct_scores()),
        1,
        y_true,
        y_proba,
        multiclass=multiclass,
        class_weight=class_weight,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


def neighborhood_calibration_error(
    y_true,
    y_proba=None,
    *,
    n_neighbors=None,
    norm=1,
    multiclass="auto",
    class_weight=None,
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Calibration error with the event frequency of each row taken over its neighbours in score.

    The neighbours of a row are all rows within the smallest distance that holds `n_neighbors` rows, itself included.
    Tied scores are neighbours together, so the order of the rows does not matter. Like a plugin error with few rows a
    bin it is too large for few neighbours.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    n_neighbors : int, default=None
        Least number of neighbours (total weight), between 1 and n; None means the square root of n, rounded up.
    norm : float or {"l1", "l2", "max"}, default=1
        p >= 1, or ``np.inf`` for the largest row.
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
        weights are negative or all zero. Also if `n_neighbors` is not between 1 and n.

    See Also
    --------
    skcalib.metrics.kde_calibration_error : A kernel estimate without bins.
    skcalib.metrics.calibration_error : The debiased binned error.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error estimation, Eq. 2.

    Examples
    --------
    With all rows as neighbours the frequency is 1/2 everywhere.

    >>> from skcalib.metrics import neighborhood_calibration_error
    >>> round(neighborhood_calibration_error([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.8], n_neighbors=4), 6)
    0.2
    """
    norm = check_norm(norm)
    return error_over_tasks(
        lambda task: _neighborhood_power(DistinctScores.from_rows(*task), norm, n_neighbors),
        norm,
        y_true,
        y_proba,
        multiclass=multiclass,
        class_weight=class_weight,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


def error_over_tasks(task_power, norm, y_true, y_proba, *, multiclass, class_weight, sample_weight, pos_label, labels):
    """Validate, sum the powers of the binary problems and take the root."""
    data = check_rows_or_bins(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
        multiclass=multiclass,
    )
    return error_root(power_over_tasks(data, task_power, norm, multiclass, class_weight), norm)


def _cumulative_difference(table):
    """Return the sums of w (y - s) over the k lowest distinct scores, k = 0, 1, ..., divided by the total weight."""
    expected = np.append(0.0, np.cumsum(np.diff(table.weight) * table.scores))
    return (table.positives - expected) / table.weight[-1]


def _kolmogorov_smirnov(table):
    return np.abs(_cumulative_difference(table)).max()  # Gupta et al., Eq. 5


def _kuiper(table):
    return np.ptp(_cumulative_difference(table))  # Arrieta-Ibarra et al., ECCE-R


def _neighborhood_power(table, norm, n_neighbors):
    """Return the mean over rows of |s_i - mean label of the neighbours of s_i|^p (Roelofs et al., Eq. 2)."""
    n_neighbors = check_n_neighbors(n_neighbors, table.weight[-1])
    left, right = nearest(table.scores.astype(np.float64), table.weight, n_neighbors)
    frequency = (table.positives[right] - table.positives[left]) / (table.weight[right] - table.weight[left])
    gap = np.abs(table.scores - frequency)
    return gap.max() if norm == np.inf else np.diff(table.weight) @ gap**norm / table.weight[-1]


def check_n_neighbors(n_neighbors, n_rows):
    """Return the number of neighbours that `n_neighbors` means for this number of rows."""
    if n_neighbors is None:
        return min(np.ceil(np.sqrt(n_rows)), n_rows)  # weights may add up to less than 1
    return check_int(n_neighbors, "n_neighbors", maximum=n_rows)


def nearest(distinct, cumulative, n_neighbors):
    """Return for each distinct score the range [left, right) of those within the least distance that holds enough."""
    own = np.arange(len(distinct))
    # Narrowest window from each left end that is heavy enough: its right end, infinity where there is none.
    end = np.searchsorted(cumulative, cumulative[:-1] + n_neighbors, side="left") - 1
    end_score = np.append(distinct, np.inf)[end]
    start = _first_true(own, lambda a: end_score[a] - distinct >= distinct - distinct[a])
    wider = np.where(start > 0, distinct - distinct[start - 1], np.inf)
    radius = np.minimum(end_score[start] - distinct, wider)
    left = _first_true(own, lambda a: distinct - distinct[a] <= radius)
    beyond = _first_true(own[::-1], lambda b: distinct[len(own) - 1 - b] - distinct <= radius)
    return left, len(own) - beyond


def _first_true(highest, holds):
    """Return, row by row, the first index in [0, highest] where `holds`; it does at `highest` and from then on."""
    low, high = np.full_like(highest, -1), highest.copy()
    while np.any(high - low > 1):
        middle = np.maximum((low + high) // 2, 0)
        true = holds(middle)
        low, high = np.where(true, low, middle), np.where(true, middle, high)
    return high
