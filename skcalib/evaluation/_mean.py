"""The mean of one number per sample, with its interval."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skcalib._inference.results import IntervalEstimate
from skcalib._input.label_weights import warn_of_counts
from skcalib._input.labels import check_groups
from skcalib._input.scalars import (
    as_numbers,
    check_confidence_level,
    check_number,
    check_option,
)
from skcalib._input.scores import check_sample_weight
from skcalib._intervals.influence import Influence
from skcalib._intervals.rare import mean_loss_interval
from skcalib._rows.blocks import taken
from skcalib._rows.sorting import distinct_values


def mean_interval(
    values: ArrayLike,
    *,
    largest: float | None = None,
    confidence_level: float = 0.9,
    sample_weight: ArrayLike | None = None,
    weight_type: Literal["frequency", "importance"] = "frequency",
    clusters: ArrayLike | None = None,
) -> IntervalEstimate:
    """Mean of one number per sample, with its confidence interval.

    The numbers may be losses, costs, gains, or 0 and 1 for a share of the samples.

    Parameters
    ----------
    values : array-like of shape (n,)
        One finite number per sample.
    largest : float, default=None
        The largest possible value, if no value can be below 0. The interval then stays
        within these limits and is valid even if a few samples carry most of the sum,
        such as a share of rare events. None means values without limits.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).
    sample_weight : array-like of shape (n,), default=None
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"}, default="frequency"
        Meaning of the weights. "frequency": a weight of 2 means two identical samples.
        "importance": each sample was observed once and represents more or less than one
        (to correct for the sampling design).
    clusters : array-like of shape (n,), default=None
        Cluster of each sample: dependent samples (from the same patient or match) share
        a value.

    Returns
    -------
    mean : IntervalEstimate
        Named tuple (estimate, low, high) with a `reason`: the limits are NaN if the
        samples do not determine them.

    Raises
    ------
    ValueError
        If values are missing, infinite, or outside the limits that `largest` implies,
        or if weights or clusters are invalid.

    Warns
    -----
    UserWarning
        If weights are not integers and ``weight_type="frequency"``.

    See Also
    --------
    compare : Proper scores and calibration errors of models, with paired differences.

    Notes
    -----
    The interval without `largest` is that of Student's t distribution, with degrees of
    freedom from the kurtosis of the values [1]_. With `clusters`, the variance is the
    jackknife variance of their sums (CR3), with Satterthwaite degrees of freedom for
    the within-cluster correlation [2]_. If clusters, or samples with importance
    weights, are worth fewer than three of equal weight, the limits are NaN. With
    `largest`, the interval is a gamma interval [3]_ for the effective number of
    samples.

    References
    ----------
    .. [1] Satterthwaite (1946), An approximate distribution of estimates of variance
       components.
    .. [2] Bell and McCaffrey (2002), Bias reduction in standard errors for linear
       regression with multi-stage samples.
    .. [3] Fay and Feuer (1997), Confidence intervals for directly standardized rates: a
       method based on the gamma distribution.

    Examples
    --------
    Samples that cost 1 with probability 0.2, with or without dependence:

    >>> import numpy as np
    >>> from skcalib.evaluation import mean_interval
    >>> patient = np.repeat(np.arange(50), 10)
    >>> cost = np.random.default_rng(0).random(50)[patient] < 0.2
    >>> independent = mean_interval(cost, largest=1)
    >>> dependent = mean_interval(cost, largest=1, clusters=patient)
    >>> round(independent.high - independent.low, 2)
    0.06
    >>> round(dependent.high - dependent.low, 2)
    0.21
    """
    level = check_confidence_level(confidence_level)
    check_option(weight_type, "weight_type", ("frequency", "importance"))
    values, largest = _check_values(values, largest)
    cluster = None
    if clusters is not None:
        _, cluster = check_groups(clusters, len(values), name="clusters")
    weight = check_sample_weight(sample_weight, len(values))
    if weight is not None:
        if weight_type == "frequency":
            warn_of_counts(None, weight)
        has_weight = weight > 0
        values = values[has_weight]
        weight = weight[has_weight]
        cluster = taken(cluster, has_weight)  # None stays None
    if cluster is not None:
        _, cluster = distinct_values(cluster)
    estimate = float(np.average(values, weights=weight))
    influence = Influence(
        values - estimate, weight, weight_type == "importance", cluster
    )
    if largest is None:
        limits = influence.interval(estimate, level)
    else:
        limits = mean_loss_interval(values, largest, influence, level)
    low, high, reason = limits
    if largest is not None and not reason:
        high = min(high, float(largest))
    return IntervalEstimate(
        estimate, low, high, reason=reason, quantity="Mean", confidence_level=level
    )


def _check_values(values, largest):
    """Return the values (n,) as float64, and the largest possible one or None; raise if
    there are none, or one is missing or out of range.
    """
    values = as_numbers(values, "values")
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(
            f"values must hold one number per sample, found shape {values.shape}."
        )
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"values is missing or infinite in row {row}.")
    if largest is not None:
        largest = check_number(largest, "largest", above=0)
        if values.min() < 0 or values.max() > largest:
            raise ValueError(
                f"values must lie between 0 and largest={largest:g}, found"
                f" {values.min():g} to {values.max():g}."
            )
    return values, largest
