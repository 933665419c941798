"""Calibration errors without bins: the cumulative difference and the neighbours in score."""

from numbers import Integral

import numpy as np

from skcalib._input.scored_labels import check_scored_labels
from skcalib.binning._distinct_scores import DistinctScores
from skcalib.metrics._errors import check_norm, error_root, power_over_tasks

__all__ = ["error_over_tasks", "kolmogorov_smirnov_calibration_error", "neighborhood_calibration_error"]


def kolmogorov_smirnov_calibration_error(
    y_true,
    y_proba,
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
        For input that has no answer.

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
        lambda task: _kolmogorov_smirnov(*task),
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
    y_proba,
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

    The neighbours of a row are all rows within the least distance that holds `n_neighbors` of them, the row itself
    among them: ties are neighbours together, whatever the order of the rows. Like a plugin error with few rows a bin it
    is too large for few neighbours.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    n_neighbors : int, default=None
        Least number of neighbours (total weight), between 1 and n; None means the square root of n, rounded up.
    norm : float, default=1
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
        For input that has no answer, and for `n_neighbors` outside 1 to n.

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
        lambda task: _neighborhood_power(*task, norm, n_neighbors),
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
    data = check_scored_labels(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
        multiclass=multiclass,
    )
    return error_root(power_over_tasks(data, task_power, norm, multiclass, class_weight), norm)


def _kolmogorov_smirnov(scores, labels, sample_weight):
    """Return max_s |sum over scores up to s of (y - s)| / n (Gupta et al., Eq. 5), a tied block as a whole."""
    table = DistinctScores.from_rows(scores, labels, sample_weight)
    expected = np.cumsum(np.diff(table.weight) * table.scores)
    return np.abs(table.positives[1:] - expected).max() / table.weight[-1]


def _neighborhood_power(scores, labels, sample_weight, norm, n_neighbors):
    """Return the mean over rows of |s_i - mean label of the neighbours of s_i|^p (Roelofs et al., Eq. 2)."""
    table = DistinctScores.from_rows(scores, labels, sample_weight)
    n_neighbors = _check_n_neighbors(n_neighbors, table.weight[-1])
    left, right = _nearest(table.scores.astype(np.float64), table.weight, n_neighbors)
    frequency = (table.positives[right] - table.positives[left]) / (table.weight[right] - table.weight[left])
    gap = np.abs(table.scores - frequency)
    return gap.max() if norm == np.inf else np.diff(table.weight) @ gap**norm / table.weight[-1]


def _check_n_neighbors(n_neighbors, n_rows):
    if n_neighbors is None:
        return min(np.ceil(np.sqrt(n_rows)), n_rows)  # weights may add up to less than 1
    if not isinstance(n_neighbors, Integral) or isinstance(n_neighbors, bool) or not 1 <= n_neighbors <= n_rows:
        raise ValueError(f"n_neighbors must be an int from 1 to the {n_rows:g} rows, found {n_neighbors!r}.")
    return n_neighbors


def _nearest(distinct, cumulative, n_neighbors):
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
