"""Explicit finite-sample bounds on estimators, sample splits, binning and class-wise
scaling.
"""

from __future__ import annotations

from math import log

import numpy as np
from scipy.optimize import brentq
from scipy.stats import betabinom

from skcalib._input.scalars import check_confidence_level, check_number
from skcalib.guarantees._uniform_mass import check_count, check_rows_per_bin


def sample_split_epsilon(
    n_binning: int, n_estimation: int, n_bins: int, *, confidence_level: float = 0.9
) -> float:
    r"""Tolerance of equal-mass binning with sample splitting (UMS).

    With probability at least `confidence_level`, the event frequency of every bin
    differs from its estimate by at most the returned number. The scores must have no
    ties; the event frequencies may be arbitrary.

    Parameters
    ----------
    n_binning : int
        Number of samples used to form the bins, at least ``2 * n_bins``.
    n_estimation : int
        Number of samples in the second part, whose labels are used to estimate the
        event frequencies.
    n_bins : int
        Number of equal-mass bins.
    confidence_level : float, default=0.9
        Probability, over both samples, that every bin is within the tolerance.

    Returns
    -------
    epsilon : float
        Tolerance in (0, 1]; a tolerance of 1 guarantees nothing.

    Raises
    ------
    ValueError
        If `n_binning` is below ``2 * n_bins`` or an argument is out of range.

    See Also
    --------
    skcalib.guarantees.conditional_epsilon : The tolerance without a split.

    Notes
    -----
    Consecutive bin edges have at least ``m = floor(n_binning / n_bins) - 1`` spacings
    of the order statistics between them, so the probability mass of a bin is
    stochastically at least ``Beta(m, n_binning + 1 - m)``, and its count `N` in the
    second part is stochastically at least beta-binomial. Given `N`, Hoeffding's
    inequality applies to the labels. The tolerance is the root of

    .. math:: B \; E[\min(1, 2 \exp(-2 N \epsilon^2))] = 1 - \text{confidence level}.

    This bound replaces Appendix B of [1]_, which gives 17,500 samples for a tolerance
    of 0.1 with 10 bins at a confidence level of 90%; the constants in that appendix are
    not reproduced. The usual derivation (2-well-balanced bins, then Hoeffding's
    inequality for the counts and for the labels, with half of the error probability
    each) gives 18,194. With the exact distribution of the counts, which this function
    uses, 5,420 samples in two halves are sufficient; without a split (Theorem 3), 2,660
    samples are sufficient.

    References
    ----------
    .. [1] Gupta, C. and Ramdas, A. (2021). Distribution-free calibration guarantees for
        histogram binning without sample splitting. ICML.

    Examples
    --------
    >>> from skcalib.guarantees import conditional_epsilon, sample_split_epsilon
    >>> (
    ...     round(sample_split_epsilon(1500, 1500, 10), 3),
    ...     round(conditional_epsilon(3000, 10), 3),
    ... )
    (0.136, 0.094)
    """
    miscoverage = 1.0 - check_confidence_level(confidence_level)
    n_binning, n_bins = check_rows_per_bin(n_binning, n_bins, name="n_binning")
    n_estimation = check_count(n_estimation, "n_estimation")
    # The probability of a bin between quantiles of n_binning scores is a spacing of
    # uniform order statistics, which has a beta distribution; the number of estimation
    # rows in it is then beta-binomial.
    spacings = n_binning // n_bins - 1
    rows = np.arange(n_estimation + 1)
    probability = betabinom.pmf(rows, n_estimation, spacings, n_binning + 1 - spacings)

    def excess(epsilon):
        """Return the bound on the probability that any bin fails (Hoeffding's
        inequality and a union bound) minus the allowed probability.
        """
        failure = np.minimum(1.0, 2.0 * np.exp(-2.0 * rows * epsilon**2))
        return n_bins * float(probability @ failure) - miscoverage

    if excess(1.0) >= 0.0:
        return 1.0
    return float(brentq(excess, 0.0, 1.0, xtol=1e-13))


def binning_mse_bound(n_bins: int, *, balance: float = 2.0) -> float:
    r"""Largest increase in the Brier score that binning can cause.

    Parameters
    ----------
    n_bins : int
        Number of bins.
    balance : float, default=2.0
        Balance of the bins: each contains at most a share of ``balance / n_bins`` of
        the population.

    Returns
    -------
    bound : float
        ``2 * balance / n_bins``, at most 1.

    Raises
    ------
    ValueError
        If a number is out of range.

    See Also
    --------
    skcalib.guarantees.well_balanced_alpha : Estimates `balance` from counts.

    Notes
    -----
    This is Lemma D.6 of [1]_. If ``g`` is replaced by its mean ``h`` in each bin, the
    Brier score changes by ``E[(h - g)(h + g - 2 y)]``, which is at most ``2 E|h - g|``.
    In a bin of width ``w_b``, the outputs are within ``w_b`` of their mean, the widths
    sum to at most 1, and each bin contains at most a share of ``balance / B``. (The
    mean distance of outputs in an interval from their mean is at most *half* its width,
    so half of the lemma's bound also holds.)

    References
    ----------
    .. [1] Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration.
        NeurIPS.

    Examples
    --------
    >>> from skcalib.guarantees import binning_mse_bound
    >>> binning_mse_bound(100)
    0.04
    """
    n_bins = check_count(n_bins, "n_bins")
    return min(1.0, 2.0 * check_number(balance, "balance", at_least=1.0) / n_bins)


def classwise_temperature_bound(
    n_samples: int,
    n_classes: int,
    max_deviation: float,
    bounds: tuple[float, float] = (1e-2, 1e2),
    *,
    logit_range: float,
    confidence_level: float = 0.9,
) -> float:
    r"""Bound on the generalisation gap of class-wise temperature scaling.

    With probability at least `confidence_level`, the following holds for *every* choice
    of one inverse temperature ``a_k`` per predicted class such that
    ``|a_k - a_0| <= max_deviation`` and all inverse temperatures lie within `bounds`:
    the mean log-loss on the calibration samples differs from its expectation by at most
    the returned number. The expected log-loss of the fitted temperatures therefore
    exceeds the smallest possible value by at most twice that number.

    Parameters
    ----------
    n_samples : int
        Number of calibration samples.
    n_classes : int
        Number of classes, at least 2.
    max_deviation : float
        Largest deviation of a class's inverse temperature from the shared inverse
        temperature, in [0, inf]. 0 means one temperature for all classes.
    bounds : tuple of float, default=(1e-2, 1e2)
        Lowest and highest inverse temperature, both non-negative.
    logit_range : float
        Largest possible difference between two logits of the same sample.
    confidence_level : float, default=0.9
        Probability that the bound holds, in (0, 1).

    Returns
    -------
    bound : float
        The bound, in nats.

    Raises
    ------
    ValueError
        If a number is out of range.

    See Also
    --------
    skcalib.ClasswiseTemperatureScaling : The recalibrator.

    Notes
    -----
    This bound replaces Theorem 4.1 and Corollary 4.2 of [1]_. It depends on the same
    quantities, but has a separate proof and different constants. The log-loss of
    ``softmax(a * logits)`` lies between 0 and
    ``M = log(1 + (K - 1) exp(a * logit_range))``, and its derivative in ``a``, the mean
    logit minus the logit of the label, is at most ``L = logit_range`` in absolute
    value. Cover the inverse temperatures by a grid of ``N_0`` values for the shared
    inverse temperature and ``N`` deviations for each class (clipped to `bounds`): every
    choice is within ``r = width / (2 N_0) + max_deviation / N`` of one of ``N_0 N^K``
    grid points. Hoeffding's inequality, with a union bound, holds at all grid points
    simultaneously, and moving to the nearest grid point changes the mean loss and its
    expectation by at most ``L r`` each:

    .. math:: 2 L r + M \sqrt{\frac{\log(2 / \delta) + \log N_0 + K \log N}{2 n}}.

    The function returns the smallest value over ``N_0, N`` in powers of two, or the
    smallest value over ``N`` for K temperatures without a shared temperature (``r =
    width / (2 N)``, ``N^K`` points) if that is smaller; the result is at most ``M``.
    With a small `max_deviation`, the bound is therefore comparable to that for one
    parameter, and with a large one, to that for K parameters.

    References
    ----------
    .. [1] Zhao, Y., Chen, J. and Oymak, S. (2020). On the role of dataset quality and
        heterogeneity in model confidence. arXiv:2002.09831.

    Examples
    --------
    With a free temperature for each of 100 classes, the bound is much larger than with
    one temperature for all classes.

    >>> from skcalib.guarantees import classwise_temperature_bound
    >>> [
    ...     round(
    ...         classwise_temperature_bound(
    ...             100_000, 100, deviation, (0.5, 2.0), logit_range=5.0
    ...         ),
    ...         2,
    ...     )
    ...     for deviation in (0.0, 0.01, float("inf"))
    ... ]
    [0.11, 0.21, 0.78]
    """
    n_samples = check_count(n_samples, "n_samples")
    n_classes = check_count(n_classes, "n_classes", minimum=2)
    deviation = check_number(
        max_deviation, "max_deviation", at_least=0.0, infinite=True
    )
    logit_range = check_number(logit_range, "logit_range", at_least=0.0)
    low, high = (check_number(bound, "bounds", at_least=0.0) for bound in bounds)
    if not low <= high:
        raise ValueError(f"bounds must be (lowest, highest), found {bounds!r}.")
    log_failure = log(2.0 / (1.0 - check_confidence_level(confidence_level)))
    loss_range = float(np.logaddexp(0.0, log(n_classes - 1) + high * logit_range))
    width = high - low
    # Finite covers of the possible temperatures give a bound each, of which the
    # smallest is taken. The radius of a cover is the largest distance of a choice of
    # temperatures from the nearest point of the cover, its log-size the logarithm of
    # the number of points. All are made of even grids of 1, 2, 4, ... values.
    log_points = log(2.0) * np.arange(40)
    reciprocal = np.exp(-log_points)  # 1 / number of values
    # 1. A shared temperature and a deviation of each class: all pairs of grids, (40,
    # 40), the first for the temperature and the second for the deviations.
    radius_of_shared = width / 2.0 * reciprocal
    radius_of_deviation = min(deviation, width) * reciprocal
    radius = np.add.outer(radius_of_shared, radius_of_deviation)
    log_size = np.add.outer(log_points, n_classes * log_points)
    # 2. A temperature of each class by itself, (40,).
    radius = np.append(radius, width / 2.0 * reciprocal)
    log_size = np.append(log_size, n_classes * log_points)
    # From a point of the cover to a choice within the radius, the mean loss and its
    # expectation change by at most logit_range times the radius each. At the points
    # Hoeffding's inequality and a union bound hold.
    hoeffding = loss_range * np.sqrt((log_failure + log_size) / (2.0 * n_samples))
    bounds_by_cover = 2.0 * logit_range * radius + hoeffding
    return min(loss_range, float(bounds_by_cover.min()))
