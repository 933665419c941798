"""Intervals for event frequencies and the balance of bins, from counts."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from skcalib._input.scalars import as_numbers, check_confidence_level
from skcalib._intervals import binomial_interval
from skcalib.guarantees._uniform_mass import union_level


def event_frequency_interval(
    positives: ArrayLike,
    counts: ArrayLike,
    *,
    confidence_level: float = 0.9,
    simultaneous: bool = True,
    interval: Literal["clopper_pearson", "hoeffding", "wilson"] = "clopper_pearson",
) -> tuple[np.ndarray, np.ndarray]:
    """Confidence intervals for the event frequency of each bin.

    Parameters
    ----------
    positives : array-like of shape (n_bins,) or scalar
        Number of events in each bin. Fractions are allowed for frequency weights.
    counts : array-like of shape (n_bins,) or scalar
        Number of samples in each bin.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).
    simultaneous : bool, default=True
        True means that all intervals cover simultaneously with probability
        `confidence_level` (by a union bound over the non-empty bins). False means that
        each interval covers with this probability.
    interval : {"clopper_pearson", "hoeffding", "wilson"}, default="clopper_pearson"
        Clopper-Pearson and Hoeffding intervals have at least the stated coverage for
        every sample size, and the Clopper-Pearson interval is never the wider of the
        two. Wilson's score interval is narrower, and its coverage is approximate.

    Returns
    -------
    low, high : ndarray of float64, shape (n_bins,)
        Limits within [0, 1]; they are 0 and 1 for an empty bin.

    Raises
    ------
    ValueError
        If a count is negative or not finite, or a bin has more events than samples.

    See Also
    --------
    skcalib.metrics.reliability_curve : The data of a reliability diagram, without a
        plot.
    skcalib.guarantees.CalibrationCertificate : The guarantee and its conditions.

    Notes
    -----
    The labels of a bin must be independent of its edges. This holds if the edges are
    fixed beforehand, if they are formed on other samples, or if they are order
    statistics of the scores and only samples strictly inside the bins are counted.

    References
    ----------
    Clopper and Pearson (1934), The use of confidence or fiducial limits illustrated in
    the case of the binomial. Wilson (1927), Probable inference, the law of succession,
    and statistical inference. Hoeffding (1963), Probability inequalities for sums of
    bounded random variables.

    Examples
    --------
    The bins contain no events in 40 samples, 30 events in 50 samples, and no samples:

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


def well_balanced_alpha(counts: ArrayLike) -> float:
    r"""Smallest alpha for which the bins are alpha-well-balanced.

    Parameters
    ----------
    counts : array-like of shape (n_bins,)
        Number of samples (or total weight) in each bin, for samples that were *not*
        used to form the bins.

    Returns
    -------
    alpha : float
        Value of alpha, at least 1: it is 1 for equal counts and infinite if a bin is
        empty.

    Raises
    ------
    ValueError
        If `counts` is empty, all zero, negative or not finite.

    See Also
    --------
    skcalib.guarantees.binning_mse_bound : The increase in squared error due to binning.
    skcalib.ScalingBinning : Bins the values of a smooth map.

    Notes
    -----
    By Definition 4.2 of [1]_, every bin contains between ``1 / (alpha B)`` and
    ``alpha / B`` of the population.

    References
    ----------
    .. [1] Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration.
        NeurIPS.

    Examples
    --------
    The smallest bin contains 20% of the samples instead of 25%, and the largest
    contains 30%.

    >>> from skcalib.guarantees import well_balanced_alpha
    >>> well_balanced_alpha([20, 25, 30, 25])
    1.25
    """
    _, counts = check_frequencies(positives=0.0, counts=counts)
    if counts.ndim != 1 or not counts.sum() > 0:
        raise ValueError(
            f"counts must be a vector with a positive sum, found shape {counts.shape},"
            f" sum {counts.sum()}."
        )
    if not counts.all():
        return float("inf")
    # Share of each bin over the share 1 / B that it would have in equal bins.
    ratio = len(counts) * counts / counts.sum()
    return float(max(ratio.max(), 1.0 / ratio.min()))


def check_frequencies(positives, counts):
    """Return both as float64 arrays of the same shape, or raise an error at the first
    entry that violates 0 <= positives <= counts < inf.
    """
    positives = as_numbers(positives, "positives")
    counts = as_numbers(counts, "counts")
    if positives.shape != counts.shape and positives.ndim and counts.ndim:
        raise ValueError(
            f"positives and counts must have the same shape, found {positives.shape}"
            f" and {counts.shape}."
        )
    positives, counts = np.broadcast_arrays(positives, counts)
    # Sums of fractional weights may differ by rounding.
    valid = (
        np.isfinite(counts)
        & (counts >= 0.0)
        & (positives >= 0.0)
        & (positives <= counts * (1.0 + 1e-9))
    )
    if not valid.all():
        index = tuple(np.argwhere(~valid)[0].tolist())
        raise ValueError(
            "positives and counts must satisfy 0 <= positives <= counts < inf, got"
            f" positives={positives[index]} and counts={counts[index]} at index"
            f" {index}."
        )
    return positives, counts


def grade_upper_limits(
    n_events: ArrayLike, n_samples: ArrayLike, *, confidence_level: float = 0.9
) -> np.ndarray:
    """Upper limits for the event frequencies of ordered grades with few or no events.

    Parameters
    ----------
    n_events : array-like of int, shape (n_grades,)
        Number of events in each grade, best grade first.
    n_samples : array-like of int, shape (n_grades,)
        Number of samples in each grade, at least one.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1): the limits are one-sided.

    Returns
    -------
    limits : ndarray of float64, shape (n_grades,)
        Upper limit of each grade's event frequency.

    Raises
    ------
    ValueError
        If the counts are not whole numbers, a grade has no samples, or has more events
        than samples, or `confidence_level` is outside (0, 1).

    See Also
    --------
    skcalib.guarantees.event_frequency_interval : Limits for each bin separately.
    skcalib.metrics.calibration_by_group : Tests whether the scores of the grades are
        calibrated.

    Notes
    -----
    This is the most prudent estimate of [1]_. A grade's event frequency is at most that
    of the worse grades. It is therefore largest if all of these grades have the same
    frequency, so the Clopper-Pearson limit of the grade and all worse grades together
    is an upper limit. If there are no events, the limit is ``1 - (1 -
    confidence_level)**(1 / N)``, where N is the number of samples in the grade and the
    worse grades. Two assumptions are needed: the grades are in the right order, and the
    events are independent. Each limit is valid separately; the limits are not valid
    simultaneously.

    References
    ----------
    .. [1] Pluto, K. and Tasche, D. (2005). Thinking positively. Risk.

    Examples
    --------
    A portfolio without defaults has 100, 200 and 300 customers, from the best grade to
    the worst:

    >>> from skcalib.guarantees import grade_upper_limits
    >>> grade_upper_limits([0, 0, 0], [100, 200, 300]).round(5).tolist()
    [0.00383, 0.00459, 0.00765]
    """
    n_events, n_samples = check_frequencies(n_events, n_samples)
    if n_samples.ndim != 1 or len(n_samples) == 0:
        raise ValueError(
            "n_samples must be a vector with one number for each grade, found shape"
            f" {n_samples.shape}."
        )
    if np.any(n_samples < 1):
        empty = int(np.argmin(n_samples))
        raise ValueError(f"Each grade needs a sample; grade {empty} has none.")
    for name, counts in (("n_events", n_events), ("n_samples", n_samples)):
        if np.any(counts != np.floor(counts)):
            raise ValueError(f"{name} must be whole numbers, found {counts.tolist()}.")
    level = check_confidence_level(confidence_level)
    # From the grade to the worst one: sums from the end.
    events = np.cumsum(n_events[::-1])[::-1]
    samples = np.cumsum(n_samples[::-1])[::-1]
    # Clopper and Pearson: the beta quantile is the frequency at which as few events as
    # these have the probability 1 - level. If all are events there is none below 1.
    others = np.maximum(samples - events, 1)
    return np.where(samples > events, betaincinv(events + 1, others, level), 1.0)
