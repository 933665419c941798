"""Outcomes at a horizon when some samples are not observed for that long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skcalib._input.groups import refuse_measurements
from skcalib._input.labels import check_groups
from skcalib._input.tensors import as_array


class CensoredLabels(NamedTuple):
    """Labels at the horizon with the weights that stand in for censored samples.

    Parameters
    ----------
    y : ndarray of int, shape (n,)
        1 if the event happened by the horizon; 0 if it did not, or is not known.
    sample_weight : ndarray of float64, shape (n,)
        Inverse probability of being observed; 0 if the outcome is not known.
    weight_type : str
        "importance": pass it to every function that takes `weight_type`.
    """

    y: np.ndarray
    sample_weight: np.ndarray
    weight_type: Literal["importance"]


def censored_labels(
    time: ArrayLike,
    event: ArrayLike,
    horizon: float,
    *,
    censoring: ArrayLike | Callable | None = None,
    groups: ArrayLike | None = None,
) -> CensoredLabels:
    """Turn times to an event into labels at a horizon, weighted for censoring.

    A customer who joined two months ago has not left, but nobody knows whether they
    will have left within a year. To drop such samples, or to count them as non-events,
    biases every calibration statistic. Instead, samples whose outcome is known
    represent those that were lost before: each has the inverse of its probability of
    not being censored as its weight.

    Parameters
    ----------
    time : array-like of shape (n,)
        Time until the event or, for censored samples, until the end of observation.
        Not negative.
    event : array-like of shape (n,)
        1 or True if `time` is that of the event, 0 or False if observation ended
        without it.
    horizon : float
        Time up to which events count, in the unit of `time`.
    censoring : array-like of shape (n,) or callable, default=None
        Probability of not being censored before ``min(time, horizon)``, one for each
        sample, or a function that returns these probabilities for an array of times.
        None means the Kaplan-Meier estimate from `time` and `event`.
    groups : array-like of shape (n,), default=None
        Groups with different censoring, such as countries or years of entry. The
        Kaplan-Meier curve of the censoring is estimated in each.

    Returns
    -------
    labels : CensoredLabels
        The named tuple ``(y, sample_weight, weight_type)``.

    Raises
    ------
    ValueError
        If lengths differ, a time is negative or missing, `event` has other values than
        0 and 1, a probability is not in (0, 1], `censoring` and `groups` are both
        given, or no sample is observed until the horizon.

    See Also
    --------
    expand_soft_labels : Labels that are distributions.
    skcalib.metrics.calibration_slope_intercept : Accepts the weights.

    Notes
    -----
    With the probability G of not being censored, the weight is 1 / G(time-) for an
    event by the horizon, 1 / G(horizon) for a sample observed beyond it, and 0 for one
    censored at or before it [1]_. If an event and a censoring have the same time, the
    event comes first. Without groups, the weighted event frequency is then 1 minus the
    Kaplan-Meier estimate at the horizon. Censoring must not depend on the outcome given
    the groups.

    The weights depend on the outcome, so the default ``weight_type="frequency"`` is
    wrong for them. Intervals treat G as known. In simulations of 100 to 1,000 samples
    with 10 or more events, 95 % intervals of the bias covered .940 to .979 and were at
    most 17 % wider than intervals that account for the estimate of G.

    References
    ----------
    .. [1] Graf, Schmoor, Sauerbrei and Schumacher (1999), Assessment and comparison of
       prognostic classification schemes for survival data.

    Examples
    --------
    Five customers, observed for up to 14 months, and whether they left within 12:

    >>> from skcalib import censored_labels
    >>> months, left = [3, 5, 8, 13, 14], [1, 0, 1, 0, 1]
    >>> y, weight, weight_type = censored_labels(months, left, horizon=12)
    >>> y.tolist(), weight.round(3).tolist()
    ([1, 0, 1, 0, 0], [1.0, 0.0, 1.333, 1.333, 1.333])

    Use them with scores, for example those of a model of churn:

    >>> from skcalib.metrics import expected_calibration_error
    >>> scores = [0.7, 0.3, 0.6, 0.2, 0.4]
    >>> ece = expected_calibration_error(y, scores, sample_weight=weight, binning=1)
    >>> round(ece, 2)
    0.01
    """
    times, is_event = _checked_times(time, event)
    end = np.asarray(horizon, dtype=np.float64)
    if end.ndim or not np.isfinite(end) or end <= 0:
        raise ValueError(f"horizon must be a positive number, got {horizon!r}.")
    if censoring is not None and groups is not None:
        raise ValueError(
            "censoring and groups are both given. groups is used only to estimate the"
            " censoring: omit one of them."
        )
    happened = is_event & (times <= end)
    is_known = happened | (times > end)
    if censoring is not None:
        probability = _given_probability(censoring, np.minimum(times, end), is_known)
    elif groups is None:
        probability = _kaplan_meier(times, is_event, end)
    else:
        names, codes = check_groups(groups, len(times), scores_name="time")
        refuse_measurements(names, "groups")
        probability = np.empty(len(times))
        for code, name in enumerate(names):
            rows = codes == code
            probability[rows] = _kaplan_meier(
                times[rows], is_event[rows], end, f" in group {name}"
            )
    weight = np.zeros(len(times))
    weight[is_known] = 1 / probability[is_known]
    return CensoredLabels(happened.astype(np.intp), weight, "importance")


def _checked_times(time, event):
    """Return times (n,) as float64 and events (n,) as booleans, or raise."""
    times = np.asarray(as_array(time)[0])
    events = np.asarray(as_array(event)[0])
    if times.ndim != 1 or events.ndim != 1 or len(times) != len(events):
        raise ValueError(
            f"time has shape {times.shape} and event has shape {events.shape}: both"
            " must have one number for each sample."
        )
    if len(times) == 0:
        raise ValueError("time is empty: give at least one sample.")
    if times.dtype.kind not in "biuf":
        raise ValueError(
            f"time must hold numbers, got values of type {times.dtype}. Convert dates"
            " to the time since the start of observation."
        )
    times = times.astype(np.float64)
    is_wrong = ~(np.isfinite(times) & (times >= 0))
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise ValueError(f"time is {times[row]:g} in row {row}: it must be 0 or more.")
    is_wrong = (events != 0) & (events != 1)
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise ValueError(
            f"event is {events[row]!r} in row {row}: it must be 1 or True for an event,"
            " and 0 or False for a censored sample. For other codes, pass for example"
            " event == 2."
        )
    return times, events == 1


def _given_probability(censoring, until, is_known):
    """Return the caller's probabilities (n,) of not being censored before the times
    `until` (n,), or raise where a sample of known outcome has none.
    """
    if callable(censoring):
        censoring = censoring(until)
    probability = np.asarray(as_array(censoring)[0], dtype=np.float64)
    if probability.shape != until.shape:
        raise ValueError(
            f"censoring has shape {probability.shape}: it must give one probability for"
            f" each of the {len(until)} samples."
        )
    is_wrong = is_known & ~((probability > 0) & (probability <= 1))
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise ValueError(
            f"censoring is {probability[row]:g} in row {row}: the probability of not"
            " being censored must be above 0 and at most 1."
        )
    return probability


def _kaplan_meier(times, is_event, horizon, where=""):
    """Return the estimated probabilities (n,) of not being censored: before `times`
    (n,), or up to the horizon for later ones.

    `where` names the samples in an error.
    """
    # If the last of all was censored, the estimate says nothing of later times.
    last = times.max()
    if last <= horizon and not is_event[times == last].all():
        raise ValueError(
            f"The longest observation{where} ends at {last:g} without an event, so the"
            f" outcome at horizon={horizon:g} is not known. Choose an earlier horizon."
        )
    censoring_times, n_censored = np.unique(times[~is_event], return_counts=True)
    # Samples with an event at a time of censoring are not at risk of the latter.
    n_later = len(times) - np.searchsorted(np.sort(times), censoring_times, "right")
    # The probability of not being censored after the first 0, 1, ... censoring times.
    remaining = np.cumprod(1 - n_censored / (n_later + n_censored))
    remaining = np.concatenate(([1.0], remaining))
    before = remaining[np.searchsorted(censoring_times, times, "left")]
    at_horizon = remaining[np.searchsorted(censoring_times, horizon, "right")]
    return np.where(times > horizon, at_horizon, before)
