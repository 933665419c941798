"""A bound on class-wise temperatures for each class, for a reproduction."""

from scipy.stats import binom

from skcalib._input.scalars import check_confidence_level, check_number
from skcalib.guarantees import classwise_temperature_bound
from skcalib.guarantees._uniform_mass import check_count


def per_class_temperature_bound(
    n_samples: int,
    n_classes: int,
    p_min: float,
    bounds: tuple[float, float] = (1e-2, 1e2),
    *,
    logit_range: float,
    confidence_level: float = 0.9,
) -> float:
    r"""Largest distance of the mean log-loss of each class's rows from its expectation,
    for any temperatures.

    With probability at least `confidence_level` over the calibration rows, in *every*
    class and for *every* inverse temperature within `bounds`, the mean log-loss of the
    rows predicted as that class differs from its expectation by at most the returned
    number. Each class has a temperature of its own.

    Parameters
    ----------
    n_samples : int
        Calibration rows.
    n_classes : int
        Number of classes K, at least 2.
    p_min : float
        Share of the population that is predicted as the rarest class, in (0, 1 / K].
    bounds : tuple of float, default=(1e-2, 1e2)
        Lowest and highest inverse temperature, both positive.
    logit_range : float
        Largest minus smallest logit that a row can have.
    confidence_level : float, default=0.9
        Probability that the bound holds, in (0, 1), for all classes together.

    Returns
    -------
    bound : float
        In nats. With that probability each class's fitted temperature has an expected
        log-loss within twice this number of that class's best. It is at most the range
        of the loss.

    Raises
    ------
    ValueError
        If an argument is not a number or out of its range; `p_min` must be above 0 and
        at most ``1 / n_classes``.

    See Also
    --------
    classwise_temperature_bound : The bound for the mean loss over all rows, with
        temperatures near each other.

    Notes
    -----
    In the role of Corollary 4.2 of [1]_ for each class, with a proof and constants of
    its own. Let ``a`` be one minus the confidence level. The number of rows of a class
    is binomial with a share of at least `p_min`, so that with probability ``1 - a / 2``
    every class has at least

    .. math:: m = \max \{m : P(\mathrm{Bin}(n, p_{\min}) < m) \le a / (2 K)\}

    rows. Given their number, the rows of a class are independent, and
    `classwise_temperature_bound` with one temperature, m rows and error probability
    ``a / (2 K)`` holds for it. The bound falls like :math:`1 / \sqrt{n \, p_{\min}}`.

    References
    ----------
    .. [1] Zhao, Y., Chen, J. and Oymak, S. (2020). On the role of dataset quality and
        heterogeneity in model confidence. arXiv:2002.09831.

    Examples
    --------
    A class with a twentieth of the rows is known about half as well as one with a
    fifth.

    >>> from benchmarks.papers._class_temperatures import per_class_temperature_bound
    >>> [
    ...     round(
    ...         per_class_temperature_bound(
    ...             10_000, 5, share, (0.5, 2.0), logit_range=5.0
    ...         ),
    ...         2,
    ...     )
    ...     for share in (0.2, 0.05)
    ... ]
    [0.64, 1.27]
    """
    n_samples = check_count(n_samples, "n_samples", maximum=10**12)
    n_classes = check_count(n_classes, "n_classes", minimum=2)
    p_min = check_number(p_min, "p_min", above=0.0, at_most=1.0 / n_classes)
    each = (1.0 - check_confidence_level(confidence_level)) / (2.0 * n_classes)
    # a class may have no rows at all: one row promises no more than the range of the
    # loss either
    least_rows = max(1, int(binom.ppf(each, n_samples, p_min)))
    return classwise_temperature_bound(
        least_rows,
        n_classes,
        0.0,
        bounds,
        logit_range=logit_range,
        confidence_level=1.0 - each,
    )
