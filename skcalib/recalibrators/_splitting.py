"""Sample splitting: parts of the calibration set for the steps of a method."""

from numbers import Real

import numpy as np
from sklearn.utils import check_random_state

from skcalib._input.warn import warn

# A difference between the parts' event frequencies beyond this many standard errors means rows that are sorted.
_SORTED_Z = 5.0


def split_rows(labels, fractions, random_state=None):
    """Return the row indices of consecutive parts of the sample, shuffled first if `random_state` is given.

    Parameters
    ----------
    labels : ndarray of bool, shape (n,)
        Labels, to see whether the rows are in an order that a split must not have.
    fractions : tuple of float
        Shares of the parts, which sum to 1.
    random_state : int, RandomState or None, default=None
        None takes the rows in the order in which they come.

    Returns
    -------
    parts : list of ndarray of int
        Indices of each part, every part with at least one row.

    Raises
    ------
    ValueError
        If the fractions are not positive or do not sum to 1, or there are fewer rows than parts.
    """
    n_rows = len(labels)
    if not all(isinstance(part, Real) and part > 0 for part in fractions) or abs(sum(fractions) - 1) > 1e-9:
        raise ValueError(f"sample_split must give positive fractions that sum to 1, found {fractions!r}.")
    if n_rows < len(fractions):
        raise ValueError(f"A split into {len(fractions)} parts needs at least as many rows, found {n_rows}.")
    ends = np.rint(np.cumsum(fractions)[:-1] * n_rows).astype(int)
    ends = np.clip(ends, np.arange(1, len(fractions)), n_rows - np.arange(len(fractions) - 1, 0, -1))
    order = np.arange(n_rows) if random_state is None else check_random_state(random_state).permutation(n_rows)
    if random_state is None:
        _warn_if_sorted(labels, ends[0])
    return np.split(order, ends)


def _warn_if_sorted(labels, end):
    first, rest = labels[:end].mean(), labels[end:].mean()
    pooled = labels.mean()
    standard_error = np.sqrt(pooled * (1 - pooled) * (1 / end + 1 / (len(labels) - end)))
    if abs(first - rest) > _SORTED_Z * standard_error:
        warn(
            f"The event frequency is {first:.3g} in the first part of the rows and {rest:.3g} in the others: they "
            "seem to be sorted, which a sample split must not see. Shuffle them, or set random_state to an int."
        )
