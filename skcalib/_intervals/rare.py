"""Intervals for rare outcomes that have one form at all counts: an area under the ROC
curve with few events, and a mean loss that a few surprises carry.
"""

import numpy as np
from scipy.special import gammaincinv, ndtri

from skcalib._intervals.roots import bracketed_root
from skcalib._rows.blocks import weights_or_ones


def area_limits(area, n_events, n_others, confidence_level, variance=0.0):
    """Return the limits of an area under the ROC curve, by Newcombe's method 5.

    They are the areas t with ``|area - t| = z sqrt(V(t))``, where V is the variance of
    Hanley and McNeil under t. So they have a width where all events lie above all
    others. Where DeLong's variance of the samples is larger than V at the estimate,
    each side is that much longer: Hanley and McNeil's holds for scores that are about
    exponential.

    Parameters
    ----------
    area : float
        The estimate.
    n_events, n_others : float
        Number of samples of each class.
    confidence_level : float
        Coverage, in (0, 1).
    variance : float, default=0.0
        DeLong's variance.

    Returns
    -------
    low, high : float
        The limits.

    References
    ----------
    Newcombe (2006), Confidence intervals for an effect size measure based on the
    Mann-Whitney statistic, part 2.
    """
    z = ndtri((1 + confidence_level) / 2)

    def hanley_mcneil(t):
        """Return the variance of an area if the true one is t (Hanley and McNeil 1982),
        with both class sizes replaced by their mean as Newcombe does.
        """
        others_of_class = (n_events + n_others) / 2 - 1
        bracket = 1 + others_of_class * ((1 - t) / (2 - t) + t / (1 + t))
        return t * (1 - t) * bracket / (n_events * n_others)

    variance_at_estimate = hanley_mcneil(area)
    stretch = 1.0
    if variance_at_estimate > 0:
        stretch = np.sqrt(max(variance / variance_at_estimate, 1.0))

    def excess(t):
        """Return the distance of the estimate from an area t less the largest distance
        that the interval allows: 0 at its limits.
        """
        return np.abs(area - t) - stretch * z * np.sqrt(hanley_mcneil(t))

    limits = []
    for end in (0.0, 1.0):
        if area == end:
            limits.append(end)  # nothing lies beyond the estimate
            continue
        # An area of 0 or 1 solves the equation itself: the search starts beside it.
        near = area
        if area in (0.0, 1.0):
            near = abs(area - 1e-9)
        root = bracketed_root(excess, np.array([near]), np.array([end]))
        limits.append(float(root[0]))
    return tuple(limits)


def loss_limits(total, variance, largest, n_rows, confidence_level):
    """Return confidence limits of a mean of losses that are not negative, from
    quantiles of gamma distributions.

    A sum of losses of which a few samples carry most is a Poisson sum. Its lower limit
    is the quantile of the gamma law with the sum's mean and variance, its upper one
    that of the law with one more row of the largest loss that there can be (Fay and
    Feuer 1997). For losses of 0 and 1 these are Garwood's exact limits of a Poisson
    count; for many samples they are normal.

    Losses can also be alike because no row of a smaller loss was drawn: with ten rows
    of about .25 a mean of .2 is not excluded. So the variance behind the lower limit
    theta contains that of samples without a loss, (m - theta) theta with the observed
    mean m, which is what a score test adds for an empty cell (Wilson 1927).

    Parameters
    ----------
    total, variance : float
        Sum of the losses, and its variance: the sum of their squared deviations.
    largest : float
        The largest loss that a row can have.
    n_rows : float
        Number of samples.
    confidence_level : float
        Coverage, in (0, 1).

    Returns
    -------
    low, high : float
        The limits of the mean.
    """
    tail = (1 - confidence_level) / 2
    mean = total / n_rows
    # 1. The normal lower limit theta = m - a, with the variance v of a row and that of
    # samples without a loss: a^2 = c (v + (m - a) a), c = z^2 / n. This is quadratic in
    # a, which is `below_mean`.
    c = ndtri(tail) ** 2 / n_rows
    root = np.sqrt((c * mean) ** 2 + 4 * (1 + c) * c * variance / n_rows)
    below_mean = min((c * mean + root) / (2 * (1 + c)), mean)
    # The variance of samples without a loss in the sum of n rows: n (m - theta) theta.
    no_loss_variance = n_rows * below_mean * (mean - below_mean)
    # 2. The quantiles of the gamma laws.
    low = _gamma_quantile(total, variance + no_loss_variance, tail)
    high = _gamma_quantile(total + largest, variance + largest**2, 1 - tail)
    return float(low / n_rows), float(high / n_rows)


def mean_loss_interval(loss, largest, influence, confidence_level):
    """Return the lower and the upper limit of a weighted mean of losses by
    `loss_limits`, and why they are NaN (else an empty text).

    Parameters
    ----------
    loss : ndarray of shape (n,)
        Losses, not negative.
    largest : float
        The largest loss that a row can have.
    influence : Influence
        The losses minus their mean, with weights and clusters: its design effect turns
        the weights into numbers of independent rows.
    confidence_level : float
        Coverage, in (0, 1).
    """
    effect, reason = influence.design_effect(confidence_level)
    if reason:
        return np.nan, np.nan, reason
    weight = weights_or_ones(influence.weight, len(loss))
    weight = weight / effect
    low, high = loss_limits(
        float(weight @ loss),
        float(weight @ influence.values**2),
        largest,
        float(weight.sum()),
        confidence_level,
    )
    return low, high, ""


def _gamma_quantile(mean, variance, probability):
    """Return a quantile of the gamma law with this mean and variance (its scale is
    variance / mean); without variance the mean.
    """
    if variance <= 0 or mean <= 0:
        return mean
    return variance / mean * gammaincinv(mean**2 / variance, probability)
