"""Explicit finite-sample bounds on estimators, sample splits, binning and class-wise scaling."""

from math import log, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.stats import betabinom

from skcalib._input.scalars import check_confidence_level, check_number
from skcalib.guarantees._checks import check_count, check_rows_per_bin


def sample_split_epsilon(n_binning, n_estimation, n_bins, *, confidence_level=0.9):
    r"""Tolerance promised before any data for equal-mass bins of one half, estimated on the other half (UMS).

    With probability at least `confidence_level`, the event frequency of every bin differs from its estimate by at most
    the returned number. The scores must have no ties; the event frequencies may be anything.

    Parameters
    ----------
    n_binning : int
        Rows that form the bins, at least ``2 * n_bins``.
    n_estimation : int
        Rows of the second part, whose labels estimate the event frequencies.
    n_bins : int
        Number of equal-mass bins.
    confidence_level : float, default=0.9
        Probability, over both samples, that every bin is within the tolerance.

    Returns
    -------
    epsilon : float
        Tolerance in (0, 1]; 1 promises nothing.

    Raises
    ------
    ValueError
        If `n_binning` is below ``2 * n_bins`` or an argument is out of range.

    See Also
    --------
    skcalib.guarantees.conditional_epsilon : The tolerance when all rows do both jobs.

    Notes
    -----
    Consecutive bin edges have at least ``m = floor(n_binning / n_bins) - 1`` spacings of the order statistics between
    them, so the probability mass of a bin is at least ``Beta(m, n_binning + 1 - m)`` in distribution and its count `N`
    in the second half at least beta-binomial. Given `N`, Hoeffding's inequality holds for the labels. The tolerance is
    the root of

    .. math:: B \; E[\min(1, 2 \exp(-2 N \epsilon^2))] = 1 - \text{confidence level}.

    In the role of Appendix B of [1]_, which prints 17,500 rows for a tolerance of 0.1 at 90 % with 10 bins; its
    constants are not reproduced. The usual route (2-well-balanced bins, then Hoeffding for the counts and for the
    labels with half of the error probability each) gives 18,194. The exact law of the counts, used here, brings it to
    5,420 in two halves, and no split at all (Theorem 3) to 2,660.

    References
    ----------
    .. [1] Gupta, C. and Ramdas, A. (2021). Distribution-free calibration guarantees for histogram binning without
       sample splitting. ICML.

    Examples
    --------
    >>> from skcalib.guarantees import conditional_epsilon, sample_split_epsilon
    >>> round(sample_split_epsilon(1500, 1500, 10), 3), round(conditional_epsilon(3000, 10), 3)
    (0.136, 0.094)
    """
    miscoverage = 1.0 - check_confidence_level(confidence_level)
    n_binning, n_bins = check_rows_per_bin(n_binning, n_bins, name="n_binning")
    n_estimation = check_count(n_estimation, "n_estimation")
    spacings = n_binning // n_bins - 1
    rows = np.arange(n_estimation + 1)
    probability = betabinom.pmf(rows, n_estimation, spacings, n_binning + 1 - spacings)

    def excess(epsilon):
        failure = np.minimum(1.0, 2.0 * np.exp(-2.0 * rows * epsilon**2))
        return n_bins * float(probability @ failure) - miscoverage

    return 1.0 if excess(1.0) >= 0.0 else float(brentq(excess, 0.0, 1.0, xtol=1e-13))


def plugin_square_bound(n_samples, n_bins, calibration_error, *, confidence_level=0.9):
    r"""Bound on the estimation error of the plugin estimate of the squared calibration error.

    For a model with `n_bins` distinct outputs whose l2 calibration error is `calibration_error`, the plugin estimate
    ``sum_b n_b / n (s_b - y_b)**2`` on fresh rows differs from ``calibration_error**2`` by at most the returned number,
    with probability at least `confidence_level`.

    Parameters
    ----------
    n_samples : int
        Fresh rows.
    n_bins : int
        Number of distinct outputs of the model.
    calibration_error : float
        True l2 calibration error E, in [0, 1].
    confidence_level : float, default=0.9
        Probability that the bound holds, in (0, 1).

    Returns
    -------
    bound : float
        Bound on ``|estimate - calibration_error**2|``; it grows as ``E / sqrt(n) + B / n``.

    Raises
    ------
    ValueError
        If a number is out of range.

    See Also
    --------
    debiased_square_bound : The same for the debiased estimate, of order ``E / sqrt(n) + sqrt(B) / n``.

    Notes
    -----
    In the role of Theorem F.6 of [1]_, with constants of its own and without its condition that the bins be well
    balanced. With ``d_b = s_b - P(y | b)``, ``e_b = y_b - P(y | b)``, ``t = log(5 / (1 - confidence_level))``, the
    error is ``(sum p_b d_b^2 - E^2) - 2 sum p_b d_b e_b + sum p_b e_b^2`` for the observed shares ``p_b``. Each line
    fails with probability ``exp(-t)`` on either side:

    * ``sum p_b d_b^2`` is a mean of independent squares in [0, 1] whose second moment is at most E^2: Bernstein gives
      ``E sqrt(2 t / n) + t / (3 n)``; hence also ``sqrt(sum p_b d_b^2) <= E + sqrt(t / (2 n))``;
    * given the scores, ``2 sum p_b d_b e_b`` is sub-Gaussian (Hoeffding): ``sqrt(sum p_b d_b^2) sqrt(2 t / n)``;
    * given the scores, ``sqrt(n_b) e_b`` are independent and sub-Gaussian with factor 1/4, so the sum of their squares
      is at most ``(B + 2 sqrt(B t) + 2 t) / 4`` [2]_ (upper side only).

    References
    ----------
    .. [1] Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration. NeurIPS.
    .. [2] Hsu, D., Kakade, S. and Zhang, T. (2012). A tail inequality for quadratic forms of subgaussian random
       vectors. Electronic Communications in Probability, 17.

    Examples
    --------
    >>> from skcalib.guarantees import plugin_square_bound
    >>> round(plugin_square_bound(1000, 10, 0.0), 4), round(plugin_square_bound(1000, 100, 0.0), 4)
    (0.0128, 0.0421)
    """
    n_samples = check_count(n_samples, "n_samples")
    n_bins = check_count(n_bins, "n_bins")
    error = check_number(calibration_error, "calibration_error", at_least=0.0, at_most=1.0)
    t = log(5.0 / (1.0 - check_confidence_level(confidence_level)))
    noise = (n_bins + 2.0 * sqrt(n_bins * t) + 2.0 * t) / (4.0 * n_samples)
    return 2.0 * error * sqrt(2.0 * t / n_samples) + 4.0 * t / (3.0 * n_samples) + noise


def debiased_square_bound(n_samples, n_bins, calibration_error, *, confidence_level=0.9, n_singletons=0):
    r"""Bound on the estimation error of the debiased estimate of the squared calibration error.

    For a model with `n_bins` distinct outputs whose l2 calibration error is `calibration_error`, the debiased estimate
    ``sum_b n_b / n ((s_b - y_b)**2 - y_b (1 - y_b) / (n_b - 1))`` on fresh rows differs from ``calibration_error**2``
    by at most the returned number, with probability at least `confidence_level`.

    Parameters
    ----------
    n_samples : int
        Fresh rows.
    n_bins : int
        Number of distinct outputs of the model.
    calibration_error : float
        True l2 calibration error E, in [0, 1].
    confidence_level : float, default=0.9
        Probability that the bound holds, in (0, 1).
    n_singletons : int, default=0
        Observed number of bins with exactly one row, which the estimate counts as 0.

    Returns
    -------
    bound : float
        Bound on ``|estimate - calibration_error**2|``; it grows as ``E / sqrt(n) + sqrt(B) / n``.

    Raises
    ------
    ValueError
        If a number is out of range.

    See Also
    --------
    plugin_square_bound : The same for the plugin estimate.

    Notes
    -----
    In the role of Theorem F.9 of [1]_, with constants of its own and without its condition that the bins be well
    balanced. A single row in a bin costs the estimate at most ``1 / n``. Apart from that it is unbiased, and with the
    notation of `plugin_square_bound`, ``v_b = P(y | b) (1 - P(y | b)) <= 1/4``, its variance has three uncorrelated
    parts:

    * that of ``sum p_b d_b^2``, at most ``E^2 (1 - E^2) / n``;
    * that of ``2 sum p_b d_b e_b``, the mean of ``4 p_b^2 d_b^2 v_b / n_b``, at most ``E^2 / n``;
    * that of ``sum p_b (e_b^2 - y_b (1 - y_b) / (n_b - 1))``, the mean of ``2 p_b^2 v_b^2 / (n_b (n_b - 1))`` summed
      over bins of two rows or more, at most ``B / (4 n^2)``.

    Chebyshev's inequality turns the variance into the bound. It grows as ``(1 - confidence_level)**-0.5`` where the
    theorem has a logarithm; at extreme levels the plugin bound plus ``B / (4 n)`` is smaller and is returned, since the
    debiasing term lies between 0 and ``B / (2 n)``.

    References
    ----------
    .. [1] Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration. NeurIPS.

    Examples
    --------
    Ten times the bins make the bound of the debiased square about three times as large.

    >>> from skcalib.guarantees import debiased_square_bound
    >>> round(debiased_square_bound(1000, 10, 0.0), 4), round(debiased_square_bound(1000, 100, 0.0), 4)
    (0.005, 0.0158)
    """
    tail = plugin_square_bound(n_samples, n_bins, calibration_error, confidence_level=confidence_level)
    n_samples, n_bins = int(n_samples), int(n_bins)
    n_singletons = check_count(n_singletons, "n_singletons", minimum=0)
    square = float(calibration_error) ** 2
    variance = square * (2.0 - square) / n_samples + n_bins / (4.0 * n_samples**2)
    chebyshev = sqrt(variance / (1.0 - confidence_level))
    return min(chebyshev, tail + n_bins / (4.0 * n_samples)) + n_singletons / n_samples


def binning_mse_bound(n_bins, *, balance=2.0):
    r"""Largest increase of the Brier score (mean squared error) that binning a model's outputs can cause.

    Parameters
    ----------
    n_bins : int
        Number of bins.
    balance : float, default=2.0
        The bins are `balance`-well-balanced: each holds at most ``balance / n_bins`` of the population.

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
    Lemma D.6 of [1]_. If ``g`` is replaced by its mean ``h`` in each bin, the Brier score changes by
    ``E[(h - g)(h + g - 2 y)]``, at most ``2 E|h - g|``. In a bin of width ``w_b`` the outputs are within ``w_b`` of
    their mean, the widths sum to at most 1 and each bin holds at most ``balance / B``. (Outputs in an interval are on
    average within *half* its width of their mean, so half of the lemma's bound holds too.)

    References
    ----------
    .. [1] Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration. NeurIPS.

    Examples
    --------
    >>> from skcalib.guarantees import binning_mse_bound
    >>> binning_mse_bound(100)
    0.04
    """
    n_bins = check_count(n_bins, "n_bins")
    return min(1.0, 2.0 * check_number(balance, "balance", at_least=1.0) / n_bins)


def classwise_scaling_bound(
    n_samples,
    n_classes,
    max_deviation,
    bounds,
    *,
    loss_lipschitz,
    map_lipschitz=1.0,
    loss_range=1.0,
    confidence_level=0.9,
):
    r"""How far the mean loss on the calibration rows can be from the expected loss, for any class-wise scaling.

    With probability at least `confidence_level`, for *every* choice of one parameter ``a_k`` per predicted class with
    ``|a_k - a_0| <= max_deviation`` and all of them within `bounds`, the mean loss on the calibration rows differs
    from its expectation by at most the returned number. The parameters that minimise the mean loss therefore have an
    expected loss within twice that number of the best possible.

    Parameters
    ----------
    n_samples : int
        Calibration rows.
    n_classes : int
        Number of parameters: of classes, or of groups.
    max_deviation : float
        Largest distance of a class's parameter from the shared one, in [0, inf]. 0 is one parameter for all classes.
    bounds : tuple of float
        Lowest and highest value of a parameter.
    loss_lipschitz : float
        Lipschitz constant of the loss in the calibrated scores.
    map_lipschitz : float, default=1.0
        Lipschitz constant of the calibrated scores in the parameter; only its product with `loss_lipschitz` counts.
    loss_range : float, default=1.0
        Largest minus smallest value of the loss for parameters within `bounds`.
    confidence_level : float, default=0.9
        Probability that the bound holds, in (0, 1).

    Returns
    -------
    bound : float
        In the unit of the loss; at most `loss_range`.

    Raises
    ------
    ValueError
        If a number is out of range.

    See Also
    --------
    classwise_temperature_bound : The same for temperatures and log-loss.

    Notes
    -----
    In the role of Theorem 4.1 of [1]_: a bound in the same quantities, with a proof and constants of its own. Cover the
    parameters by a grid of ``N_0`` values for the shared one and ``N`` deviations for each class (clipped to `bounds`):
    every choice is within ``r = width / (2 N_0) + max_deviation / N`` of one of ``N_0 N^K`` grid points. Hoeffding's
    inequality holds on all grid points together, and moving to the nearest one changes the mean loss and its
    expectation by at most ``r`` times the Lipschitz constant ``L`` each:

    .. math:: 2 L r + M \sqrt{\frac{\log(2 / \delta) + \log N_0 + K \log N}{2 n}}.

    The smallest value over ``N_0, N`` in powers of two is returned, or over ``N`` for K parameters without a shared one
    (``r = width / (2 N)``, ``N^K`` points) where that is smaller. A small `max_deviation` thus costs like one
    parameter, a large one like K.

    References
    ----------
    .. [1] Zhao, Y., Chen, J. and Oymak, S. (2020). On the role of dataset quality and heterogeneity in model
       confidence. arXiv:2002.09831.

    Examples
    --------
    Freedom for each of 100 classes costs much more than one parameter for all.

    >>> from skcalib.guarantees import classwise_scaling_bound
    >>> [round(classwise_scaling_bound(5000, 100, deviation, (0.5, 2.0), loss_lipschitz=1.0), 3)
    ...  for deviation in (0.0, 0.01, float("inf"))]
    [0.033, 0.053, 0.228]
    """
    n_samples = check_count(n_samples, "n_samples")
    n_classes = check_count(n_classes, "n_classes")
    deviation = check_number(max_deviation, "max_deviation", at_least=0.0, infinite=True)
    slope = check_number(loss_lipschitz, "loss_lipschitz", at_least=0.0)
    slope *= check_number(map_lipschitz, "map_lipschitz", at_least=0.0)
    loss_range = check_number(loss_range, "loss_range", at_least=0.0)
    low, high = (check_number(bound, "bounds") for bound in bounds)
    if not low <= high:
        raise ValueError(f"bounds must be (lowest, highest), found {bounds!r}.")
    log_failure = log(2.0 / (1.0 - check_confidence_level(confidence_level)))
    width = high - low
    log_points = log(2.0) * np.arange(40)
    half_mesh = np.exp(-log_points)
    # radius and log-size of the covers: shared parameter plus deviations, and separate parameters
    shared = np.add.outer(width / 2.0 * half_mesh, min(deviation, width) * half_mesh)
    log_shared = np.add.outer(log_points, n_classes * log_points)
    radius = np.append(shared, width / 2.0 * half_mesh)
    log_size = np.append(log_shared, n_classes * log_points)
    values = 2.0 * slope * radius + loss_range * np.sqrt((log_failure + log_size) / (2.0 * n_samples))
    return min(loss_range, float(values.min()))


def classwise_temperature_bound(
    n_samples, n_classes, max_deviation, bounds=(1e-2, 1e2), *, logit_range, confidence_level=0.9
):
    r"""How far the mean log-loss can be from the expected one, for any class-wise temperature scaling.

    Parameters
    ----------
    n_samples : int
        Calibration rows.
    n_classes : int
        Number of classes, at least 2.
    max_deviation : float
        Largest distance of a class's inverse temperature from the shared one, in [0, inf].
    bounds : tuple of float, default=(1e-2, 1e2)
        Lowest and highest inverse temperature, both positive.
    logit_range : float
        Largest minus smallest logit that a row can have.
    confidence_level : float, default=0.9
        Probability that the bound holds, in (0, 1).

    Returns
    -------
    bound : float
        In nats. With that probability the fitted temperatures have an expected log-loss within twice this number of
        the best within the constraint.

    Raises
    ------
    ValueError
        If a number is out of range.

    See Also
    --------
    classwise_scaling_bound : The general bound, and its proof.

    Notes
    -----
    In the role of Corollary 4.2 of [1]_, with the constants of `classwise_scaling_bound`: the log-loss of
    ``softmax(a * logits)`` lies between 0 and ``log(1 + (K - 1) exp(a * logit_range))``, and its derivative in ``a``,
    mean logit minus logit of the label, is at most `logit_range` in size.

    References
    ----------
    .. [1] Zhao, Y., Chen, J. and Oymak, S. (2020). On the role of dataset quality and heterogeneity in model
       confidence. arXiv:2002.09831.

    Examples
    --------
    >>> from skcalib.guarantees import classwise_temperature_bound
    >>> round(classwise_temperature_bound(10_000, 10, 0.0, (0.5, 2.0), logit_range=5.0), 2)
    0.28
    """
    logit_range = check_number(logit_range, "logit_range", at_least=0.0)
    n_classes = check_count(n_classes, "n_classes", minimum=2)
    low, high = (check_number(bound, "bounds", at_least=0.0) for bound in bounds)
    return classwise_scaling_bound(
        n_samples,
        n_classes,
        max_deviation,
        (low, high),
        loss_lipschitz=logit_range,
        loss_range=float(np.logaddexp(0.0, log(n_classes - 1) + high * logit_range)),
        confidence_level=confidence_level,
    )
