"""The tolerance that uniform-mass binning guarantees before any data are seen, and its
inverses.
"""

from __future__ import annotations

from functools import partial
from math import log, sqrt
from typing import Literal

from skcalib._input.scalars import (
    check_confidence_level,
    check_int,
    check_number,
    check_option,
)

_FINEST = 1e-12  # smallest tolerance that is accepted: it needs more than 1e24 rows


def conditional_epsilon(
    n_samples: int,
    n_bins: int,
    *,
    confidence_level: float = 0.9,
    keep_boundary: bool = False,
) -> float:
    r"""Tolerance that holds for all bins of uniform-mass binning simultaneously.

    With probability at least `confidence_level` over the calibration samples, *every*
    predicted probability differs from the event frequency among the samples that
    receive it by at most the returned number. The expected calibration error is then at
    most this number for every l_p norm.

    Parameters
    ----------
    n_samples : int
        Number of calibration samples, at least ``2 * n_bins``.
    n_bins : int
        Number of bins, fixed beforehand.
    confidence_level : float, default=0.9
        Probability with which the guarantee holds, in (0, 1).
    keep_boundary : bool, default=False
        Whether the samples on the bin boundaries are included in the bin means (as in
        the original method of Zadrozny and Elkan).

    Returns
    -------
    epsilon : float
        The tolerance. If it is 1 or larger, nothing is guaranteed.

    Raises
    ------
    ValueError
        If ``n_samples < 2 * n_bins`` or `confidence_level` is outside (0, 1).

    See Also
    --------
    skcalib.guarantees.marginal_epsilon : The smaller tolerance for one random sample.
    skcalib.guarantees.uniform_mass_certificate : The tighter tolerance once the labels
        are known.

    Notes
    -----
    This is Theorem 3 of [1]_, with ``m = floor(n / B) - 1`` and error probability
    ``a = 1 - confidence_level``, or Corollary 1 if the last term is included:

    .. math:: \epsilon = \sqrt{\frac{\log(2 B / a)}{2 m}} \; \left[ + \frac{1}{\lfloor n / B \rfloor} \right].

    The tolerance never increases with `n_samples` and always increases with `n_bins`,
    because ``floor(n / B)`` never decreases with n and never increases with B.

    References
    ----------
    .. [1] Gupta, C. and Ramdas, A. (2021). Distribution-free calibration guarantees for
        histogram binning without sample splitting. ICML.

    Examples
    --------
    >>> from skcalib.guarantees import conditional_epsilon
    >>> round(conditional_epsilon(2900, 10, keep_boundary=True), 4)
    0.0992
    """  # noqa: E501
    return uniform_mass_epsilon(
        n_samples, n_bins, confidence_level, "conditional", keep_boundary
    )


def marginal_epsilon(
    n_samples: int,
    n_bins: int,
    *,
    confidence_level: float = 0.9,
    keep_boundary: bool = False,
) -> float:
    r"""Tolerance of uniform-mass binning for the bin of one random future sample.

    With probability at least `confidence_level` over the calibration samples *and* the
    future sample, the probability predicted for that sample differs from the event
    frequency in its bin by at most the returned number.

    Parameters
    ----------
    n_samples : int
        Number of calibration samples, at least ``2 * n_bins``.
    n_bins : int
        Number of bins, fixed beforehand.
    confidence_level : float, default=0.9
        Probability with which the guarantee holds, in (0, 1).
    keep_boundary : bool, default=False
        Whether the samples on the bin boundaries are included in the bin means; this
        adds ``1 / floor(n / B)`` to the tolerance, as in Corollary 1.

    Returns
    -------
    epsilon : float
        The tolerance. If it is 1 or larger, nothing is guaranteed.

    Raises
    ------
    ValueError
        If ``n_samples < 2 * n_bins`` or `confidence_level` is outside (0, 1).

    See Also
    --------
    skcalib.guarantees.conditional_epsilon : The tolerance that holds for all bins
        simultaneously.
    skcalib.guarantees.max_n_bins : The largest number of bins for a given tolerance.

    Notes
    -----
    This is Theorem 4 of [1]_, with ``m = floor(n / B) - 1`` and error probability
    ``a = 1 - confidence_level``:

    .. math:: \epsilon = \sqrt{\frac{\log(2 / a)}{2 m}}.

    For 1500 samples and 10 bins, the tolerance is 0.1003; the paper states "< 0.1",
    which is true for 1510 or more samples. With one bin, it equals the conditional
    tolerance.

    References
    ----------
    .. [1] Gupta, C. and Ramdas, A. (2021). Distribution-free calibration guarantees for
        histogram binning without sample splitting. ICML.

    Examples
    --------
    >>> from skcalib.guarantees import marginal_epsilon
    >>> round(marginal_epsilon(1500, 10), 4), round(marginal_epsilon(1510, 10), 4)
    (0.1003, 0.0999)
    """
    return uniform_mass_epsilon(
        n_samples, n_bins, confidence_level, "marginal", keep_boundary
    )


def expected_error_bound(n_samples: int, n_bins: int) -> float:
    r"""Bound on the expected calibration error of uniform-mass binning.

    The bound holds for every l_p norm with p in [1, 2].

    Parameters
    ----------
    n_samples : int
        Number of calibration samples, at least ``2 * n_bins``.
    n_bins : int
        Number of bins, fixed beforehand.

    Returns
    -------
    bound : float
        ``sqrt(n_bins / (2 * n_samples))``, a bound on the mean of the true error over
        calibration sets.

    Raises
    ------
    ValueError
        If ``n_samples < 2 * n_bins``.

    See Also
    --------
    skcalib.guarantees.conditional_epsilon : The tolerance that holds for all bins
        simultaneously.
    skcalib.guarantees.max_n_bins : The largest number of bins for a given tolerance.

    Notes
    -----
    This is the last part of Theorem 4 of [1]_. A bin with ``m_b`` samples strictly
    inside contains ``(m_b + 1) / (n + 1)`` of the population on average, regardless of
    its labels, and its squared error is at most ``1 / (4 m_b)`` on average. The sum is
    at most ``B / (2 (n + 1))`` because ``m_b >= 1``.

    References
    ----------
    .. [1] Gupta, C. and Ramdas, A. (2021). Distribution-free calibration guarantees for
        histogram binning without sample splitting. ICML.

    Examples
    --------
    >>> from skcalib.guarantees import expected_error_bound
    >>> expected_error_bound(2000, 10)
    0.05
    """
    n_samples, n_bins = check_rows_per_bin(n_samples, n_bins)
    return sqrt(n_bins / (2.0 * n_samples))


def max_n_bins(
    n_samples: int,
    epsilon: float,
    *,
    confidence_level: float = 0.9,
    kind: Literal["conditional", "marginal"] = "conditional",
    keep_boundary: bool = False,
) -> int:
    """Largest number of bins for which the tolerance `epsilon` is guaranteed.

    Parameters
    ----------
    n_samples : int
        Number of calibration samples, at least 2.
    epsilon : float
        Required tolerance, which must be positive.
    confidence_level : float, default=0.9
        Probability with which the guarantee holds, in (0, 1).
    kind : {"conditional", "marginal"}, default="conditional"
        Type of guarantee: that of `conditional_epsilon` or that of `marginal_epsilon`.
    keep_boundary : bool, default=False
        Whether the samples on the bin boundaries are included in the bin means.

    Returns
    -------
    n_bins : int
        The largest number of bins, at most ``n_samples // 2``.

    Raises
    ------
    ValueError
        If the tolerance cannot be met even with a single bin.

    See Also
    --------
    skcalib.guarantees.min_n_samples : The smallest number of samples for a given
        tolerance.
    skcalib.guarantees.conditional_epsilon : The tolerance that holds for all bins
        simultaneously.
    skcalib.displays.BinCountDisplay : Plots the tolerance against the number of bins.

    References
    ----------
    Gupta and Ramdas (2021), Distribution-free calibration guarantees for histogram
    binning without sample splitting.

    Examples
    --------
    >>> from skcalib.guarantees import conditional_epsilon, max_n_bins
    >>> (
    ...     max_n_bins(20_000, 0.05),
    ...     conditional_epsilon(20_000, 17) <= 0.05 < conditional_epsilon(20_000, 18),
    ... )
    (17, True)
    """
    n_samples = check_count(n_samples, "n_samples", minimum=2)
    epsilon = check_number(epsilon, "epsilon", at_least=_FINEST)

    def tolerance(n_bins):
        """Return the tolerance that `n_samples` give with a number of bins."""
        return uniform_mass_epsilon(
            n_samples, n_bins, confidence_level, kind, keep_boundary
        )

    def is_too_large(n_bins):
        """Return whether a number of bins makes the tolerance exceed `epsilon`."""
        return tolerance(n_bins) > epsilon

    # The tolerance never falls with the number of bins: see `conditional_epsilon`. A
    # bin takes two rows.
    most_bins = n_samples // 2
    first_too_large = _smallest(is_too_large, above=0, at_most=most_bins + 1)
    n_bins = first_too_large - 1
    if n_bins == 0:
        needed = min_n_samples(
            1,
            epsilon,
            confidence_level=confidence_level,
            kind=kind,
            keep_boundary=keep_boundary,
        )
        raise ValueError(
            f"epsilon={epsilon} cannot be guaranteed with n_samples={n_samples}: even"
            f" a single bin guarantees only epsilon={tolerance(1):.4g}; use at least"
            f" {needed} samples or a larger epsilon."
        )
    return n_bins


def min_n_samples(
    n_bins: int,
    epsilon: float,
    *,
    confidence_level: float = 0.9,
    kind: Literal["conditional", "marginal"] = "conditional",
    keep_boundary: bool = False,
) -> int:
    """Smallest number of samples for which the tolerance `epsilon` is guaranteed.

    Parameters
    ----------
    n_bins : int
        Number of bins.
    epsilon : float
        Required tolerance, which must be positive.
    confidence_level : float, default=0.9
        Probability with which the guarantee holds, in (0, 1).
    kind : {"conditional", "marginal"}, default="conditional"
        Type of guarantee: that of `conditional_epsilon` or that of `marginal_epsilon`.
    keep_boundary : bool, default=False
        Whether the samples on the bin boundaries are included in the bin means.

    Returns
    -------
    n_samples : int
        The smallest number of samples, at least ``2 * n_bins``. Every larger number
        also suffices.

    Raises
    ------
    ValueError
        If `epsilon` is below 1e-12 or another argument is out of range.

    See Also
    --------
    skcalib.guarantees.max_n_bins : The largest number of bins for a given tolerance.
    skcalib.guarantees.conditional_epsilon : The tolerance that holds for all bins
        simultaneously.

    References
    ----------
    Gupta and Ramdas (2021), Distribution-free calibration guarantees for histogram
    binning without sample splitting.

    Examples
    --------
    Number of samples required for ten bins and a tolerance of .1, for all bins
    simultaneously and for the bin of one random sample:

    >>> from skcalib.guarantees import min_n_samples
    >>> min_n_samples(10, 0.1), min_n_samples(10, 0.1, kind="marginal")
    (2660, 1510)
    """
    n_bins = check_count(n_bins, "n_bins")
    epsilon = check_number(epsilon, "epsilon", at_least=_FINEST)

    def suffices(n_samples):
        """Return whether a number of samples gives the tolerance `epsilon`."""
        tolerance = uniform_mass_epsilon(
            n_samples, n_bins, confidence_level, kind, keep_boundary
        )
        return tolerance <= epsilon

    enough = 2 * n_bins
    while not suffices(enough):
        enough *= 2
    return _smallest(suffices, above=2 * n_bins - 1, at_most=enough)


def uniform_mass_epsilon(n_samples, n_bins, confidence_level, kind, keep_boundary):
    """Return the tolerance of uniform-mass binning: the largest difference between a
    predicted probability and the event frequency of its bin, for all bins together
    (`kind` "conditional") or for the bin of one random sample ("marginal").
    `keep_boundary` says that samples on the edges of bins count in their means.
    """
    n_samples, n_bins = check_rows_per_bin(n_samples, n_bins)
    check_option(kind, "kind", ("conditional", "marginal"))
    miscoverage = 1.0 - check_confidence_level(confidence_level)
    # Intervals that must hold together: those of all bins, or that of one bin.
    n_intervals = n_bins if kind == "conditional" else 1
    rows = n_samples // n_bins  # least number of rows of a bin, with its upper edge
    # Gupta and Ramdas (2021), Theorem 3 (conditional) and Theorem 4 (marginal), without
    # the tie-breaking delta
    epsilon = sqrt(log(2.0 * n_intervals / miscoverage) / (2.0 * (rows - 1)))
    if keep_boundary:
        # Corollary 1: one more row moves a mean by that much
        return epsilon + 1.0 / rows
    return epsilon


def _smallest(holds, *, above, at_most):
    """Return by bisection the smallest integer in (above, at_most] for which ``holds``
    is true, as it must be for all larger ones.
    """
    while at_most - above > 1:
        middle = (above + at_most) // 2
        if holds(middle):
            at_most = middle
        else:
            above = middle
    return at_most


# Numbers of rows that a bound asks for may be far beyond any sample.
check_count = partial(check_int, maximum=10**100)


def union_level(confidence_level, n_events):
    """Return the level for each of `n_events` intervals that together keep
    `confidence_level` (union bound).
    """
    return 1.0 - (1.0 - check_confidence_level(confidence_level)) / n_events


def check_rows_per_bin(n_samples, n_bins, *, name="n_samples"):
    """Return both as ints, or raise an error if there are fewer than two rows per bin.
    With fewer rows, a bin may have no row strictly inside.
    """
    n_samples = check_count(n_samples, name)
    n_bins = check_count(n_bins, "n_bins")
    if n_samples < 2 * n_bins:
        raise ValueError(
            f"{name}={n_samples} is too small for n_bins={n_bins}: the bounds need at"
            f" least two rows in each bin; ask for at most {n_samples // 2} bins, or"
            f" use at least {2 * n_bins} rows."
        )
    return n_samples, n_bins
