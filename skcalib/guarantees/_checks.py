"""Checks of scalar arguments that the bounds share."""

from math import inf, isfinite
from numbers import Integral, Real

from skcalib._intervals import check_confidence_level


def union_level(confidence_level, n_events):
    """Return the level for each of `n_events` intervals that together keep `confidence_level` (union bound)."""
    return 1.0 - (1.0 - check_confidence_level(confidence_level)) / n_events


def check_option(value, name, options):
    """Raise unless `value` is one of `options`."""
    if value not in options:
        raise ValueError(f"{name} must be one of {list(options)}, got {value!r}.")


def check_integer(value, name, *, minimum=1):
    """Return `value` as an int, or raise where it is not a whole number of at least `minimum`."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}.")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}.")
    return int(value)


def check_real(value, name, *, low=-inf, high=inf, finite=True):
    """Return `value` as a float, or raise where it is not a number within [low, high]."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    if not low <= value <= high or (finite and not isfinite(value)):
        raise ValueError(f"{name} must be {'a finite number ' if finite else ''}within [{low}, {high}], got {value}.")
    return float(value)


def check_rows_per_bin(n_samples, n_bins, *, name="n_samples"):
    """Return both as ints, or raise unless there are two rows a bin: below that a bin may have none strictly inside."""
    n_samples, n_bins = check_integer(n_samples, name), check_integer(n_bins, "n_bins")
    if n_samples < 2 * n_bins:
        raise ValueError(
            f"{name}={n_samples} is too few for n_bins={n_bins}: the bounds need at least two rows a bin; "
            f"ask for at most {n_samples // 2} bins or for {2 * n_bins} rows."
        )
    return n_samples, n_bins
