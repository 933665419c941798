"""Intervals of event frequencies and the balance of bins, from counts."""

import numpy as np

from skcalib._input.scalars import as_numbers, check_confidence_level
from skcalib._intervals import binomial_interval
from skcalib.guarantees._uniform_mass import union_level


def event_frequency_interval(
    positives,
    counts,
    *,
    confidence_level=0.9,
    simultaneous=True,
    interval="clopper_pearson",
):
    """Confidence intervals for the event frequency of each bin.

    Parameters
    ----------
    positives : array-like of shape (n_bins,) or scalar
        Number of events in each bin. Fractions are allowed where weights count as frequencies.
    counts : array-like of shape (n_bins,) or scalar
        Number of rows in each bin.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).
    simultaneous : bool, default=True
        True: all intervals cover at once with that probability (union bound over the bins that have rows).
        False: each interval covers with that probability.
    interval : {"clopper_pearson", "hoeffding", "wilson"}, default="clopper_pearson"
        Clopper-Pearson and Hoeffding keep the level for every sample size, and Clopper-Pearson is never the wider of
        the two. Wilson's score interval is narrower and keeps it approximately.

    Returns
    -------
    low, high : ndarray of float64, shape (n_bins,)
        Limits within [0, 1]; (0, 1) for a bin without rows.

    Raises
    ------
    ValueError
        If a count is negative or not finite, or a bin has more events than rows.

    See Also
    --------
    skcalib.metrics.reliability_curve : The bins of a reliability diagram as numbers.
    skcalib.guarantees.CalibrationCertificate : The promise, and its conditions.

    Notes
    -----
    The labels of a bin must be independent of its edges: edges fixed beforehand, formed on other rows, or, if only
    rows strictly inside the bins count, order statistics of the scores.

    References
    ----------
    Clopper and Pearson (1934), The use of confidence or fiducial limits illustrated in the case of the binomial.
    Wilson (1927), Probable inference, the law of succession, and statistical inference. Hoeffding (1963), Probability
    inequalities for sums of bounded random variables.

    Examples
    --------
    No event in 40 rows, 30 events in 50 rows, and a bin without rows:

    >>> from skcalib.guarantees import event_frequency_interval
    >>> low, high = event_frequency_interval([0, 30, 0], [40, 50, 0])
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.452, 0.0], [0.088, 0.736, 1.0])
    """
    confidence_level = check_confidence_level(confidence_level)
    positives, counts = check_frequencies(positives, counts)
    n_intervals = max(1, np.count_nonzero(counts)) if simultaneous else 1
    level = union_level(confidence_level, n_intervals)
    return binomial_interval(
        positives, counts, confidence_level=level, interval=interval
    )


def well_balanced_alpha(counts):
    r"""Smallest alpha for which the bins are alpha-well-balanced, by the shares of fresh rows.

    Parameters
    ----------
    counts : array-like of shape (n_bins,)
        Rows (or weight) of each bin, of rows that did *not* form the bins.

    Returns
    -------
    alpha : float
        At least 1; 1 for equal counts, infinite where a bin is empty.

    Raises
    ------
    ValueError
        If `counts` is empty, all zero, negative or not finite.

    See Also
    --------
    skcalib.guarantees.binning_mse_bound : What binning costs in squared error.
    skcalib.ScalingBinning : A smooth map whose values are then binned.

    Notes
    -----
    Definition 4.2 of [1]_: every bin holds between ``1 / (alpha B)`` and ``alpha / B`` of the population.

    References
    ----------
    .. [1] Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration. NeurIPS.

    Examples
    --------
    The smallest bin has 20 % instead of 25 %, the largest 30 %.

    >>> from skcalib.guarantees import well_balanced_alpha
    >>> well_balanced_alpha([20, 25, 30, 25])
    1.25
    """
    _, counts = check_frequencies(0.0, counts)
    if counts.ndim != 1 or not counts.sum() > 0:
        raise ValueError(
            f"counts must be a vector with a positive sum, got shape {counts.shape}, sum {counts.sum()}."
        )
    if not counts.all():
        return float("inf")
    ratio = len(counts) * counts / counts.sum()
    return float(max(ratio.max(), 1.0 / ratio.min()))


def check_frequencies(positives, counts):
    """Return both as float64 arrays of one shape, or raise at the first entry that is no frequency."""
    positives, counts = as_numbers(positives, "positives"), as_numbers(counts, "counts")
    if positives.shape != counts.shape and positives.ndim and counts.ndim:
        raise ValueError(
            f"positives and counts need one shape, found {positives.shape} and {counts.shape}."
        )
    positives, counts = np.broadcast_arrays(positives, counts)
    # sums of fractional weights may miss each other by rounding
    valid = (
        np.isfinite(counts)
        & (counts >= 0.0)
        & (positives >= 0.0)
        & (positives <= counts * (1.0 + 1e-9))
    )
    if not valid.all():
        where = tuple(int(i) for i in np.argwhere(~valid)[0])
        raise ValueError(
            "positives and counts must satisfy 0 <= positives <= counts < inf, got "
            f"positives={positives[where]} and counts={counts[where]} at index {where if where else '()'}."
        )
    return positives, counts
