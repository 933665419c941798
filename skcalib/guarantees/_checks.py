"""Checks of scalar arguments that the bounds share."""

from functools import partial

from skcalib._input.scalars import check_confidence_level, check_int

# Numbers of rows that a bound asks for may be far beyond any sample.
check_count = partial(check_int, maximum=10**100)


def union_level(confidence_level, n_events):
    """Return the level for each of `n_events` intervals that together keep `confidence_level` (union bound)."""
    return 1.0 - (1.0 - check_confidence_level(confidence_level)) / n_events


def check_rows_per_bin(n_samples, n_bins, *, name="n_samples"):
    """Return both as ints, or raise unless there are two rows in each bin: with fewer a bin may have no row inside."""
    n_samples, n_bins = check_count(n_samples, name), check_count(n_bins, "n_bins")
    if n_samples < 2 * n_bins:
        raise ValueError(
            f"{name}={n_samples} is too few for n_bins={n_bins}: the bounds need at least two rows in each bin; "
            f"ask for at most {n_samples // 2} bins or for {2 * n_bins} rows."
        )
    return n_samples, n_bins
