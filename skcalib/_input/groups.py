"""Groups of samples by the values of an array: their names in order, and each sample's
code.

A missing value is a group of its own. Measurements make groups by their quantiles, and
only if that is asked for.
"""

import numpy as np

from skcalib._input.columns import table_columns
from skcalib._input.labels import (
    check_label_vector,
    missing_values,
    plain_labels,
    shown,
    sorted_labels,
)
from skcalib._input.scalars import check_int
from skcalib._input.tensors import first_index

MISSING = "missing"
OTHER = "other"
# A column of floats with more distinct values holds measurements, not names.
_MOST_FLOATS = 30
_MAX_BINS_HINT = "max_bins=10 groups them by quantiles."
_BINS_HINT = "cut it into bins first, and pass the bin of each row."


def check_named_groups(groups, n_samples, *, max_bins=None, takes_max_bins=True):
    """Return the distinct groups, in order, and the index of each sample's group.

    Parameters
    ----------
    groups : array-like of shape (n,) or (n, n_columns)
        The value of each sample. Missing ones are the group "missing", the last.
        Several columns make groups of their combinations. An ordered Categorical keeps
        its order.
    n_samples : int
        Number of samples.
    max_bins : int, default=None
        With more distinct numbers or dates the groups are at most so many quantiles.
    takes_max_bins : bool, default=True
        Whether the caller has the parameter `max_bins`, which an error then names.

    Returns
    -------
    names : ndarray of shape (n_groups,)
        The groups; quantiles are texts with their edges.
    codes : ndarray of shape (n,)
        Which of `names` each sample belongs to.
    """
    if max_bins is not None:
        max_bins = check_int(max_bins, "max_bins", minimum=2)
    if len(getattr(groups, "shape", ())) == 2 and groups.shape[1] > 1:
        options = {"max_bins": max_bins, "takes_max_bins": takes_max_bins}
        return _crossed(table_columns(groups, name="groups"), n_samples, options)
    names, codes = _of_one_column(groups, n_samples, max_bins, takes_max_bins)
    dtype = getattr(groups, "dtype", None)
    if getattr(dtype, "ordered", False) and hasattr(dtype, "categories"):
        return _in_order_of(list(dtype.categories), names, codes)
    return names, codes


def refuse_measurements(names, what):
    """Raise if groups are more than 30 distinct floats that are no whole numbers.

    Such floats are measurements, not names of groups. Whole numbers may be the codes of
    any number of groups: they become floats in a column that had missing values.

    Parameters
    ----------
    names : ndarray
        The distinct groups.
    what : str
        The parameter that holds them.
    """
    if names.dtype.kind == "f" and np.count_nonzero(names % 1) > _MOST_FLOATS:
        raise ValueError(
            f"{what} holds {len(names)} distinct floats ({shown(names, 3)}), each of"
            f" which would become one of the {what}: {_BINS_HINT} Convert them to"
            " strings if they are names."
        )


def _in_order_of(categories, names, codes):
    """Return the names of groups in the order of `categories`, and the codes (n,) that
    belong to them; a group that is no category ("missing") is last.
    """
    position_of = {name: position for position, name in enumerate(categories)}
    positions = [position_of.get(name, len(categories)) for name in names.tolist()]
    order = np.argsort(positions, kind="stable")
    new_code = np.empty(len(order), dtype=np.intp)
    new_code[order] = np.arange(len(order))
    return names[order], new_code[codes]


def _crossed(columns, n_samples, options):
    """Return the combinations of values of several columns that occur, as an array of
    tuples in order, and the position (n_samples,) of each sample's combination in it.

    `columns` holds arrays by name, `options` arguments of `check_named_groups`.
    """
    # The combinations of the columns so far, and that of each sample.
    names = [()]
    code = np.zeros(n_samples, dtype=np.intp)
    for column in columns.values():
        values, codes = check_named_groups(column, n_samples, **options)
        # Each combination so far is followed by each value of this column, in order. Of
        # these, combination c with value v has the number c * len(values) + v.
        extended = []
        for name in names:
            extended += [(*name, value) for value in values.tolist()]
        number = code * len(values) + codes
        # Only those that occur stay.
        present, code = np.unique(number, return_inverse=True)
        names = [extended[k] for k in present]
    return np.fromiter(names, dtype=object, count=len(names)), code


def with_small_groups_pooled(names, codes, kept, min_size):
    """Return groups in which all with fewer than `min_size` samples are a single one,
    the last.

    Parameters
    ----------
    names : ndarray of shape (n_groups,)
        The groups.
    codes : ndarray of shape (n,)
        Which of them each sample belongs to.
    kept : ndarray of int
        The samples that count: those of positive weight.
    min_size : int
        The fewest rows of a group that stays by itself.

    Returns
    -------
    names, codes : ndarray
        The same with the group "other".
    """
    size = np.bincount(codes[kept], minlength=len(names))
    is_small = (size > 0) & (size < min_size)
    if not is_small.any():
        return names, codes
    large = np.flatnonzero(~is_small)
    if OTHER in names[large].tolist():
        raise ValueError(
            f"groups contains {OTHER!r}, the name that min_group_size={min_size} gives"
            " to the small groups it merges: rename that group."
        )
    new_names = [*names[large].tolist(), OTHER]
    # Filled one by one: names may be tuples, of which NumPy would make a matrix.
    pooled = np.fromiter(new_names, dtype=object, count=len(new_names))
    new_code = np.full(len(names), len(large))
    new_code[large] = np.arange(len(large))
    return pooled, new_code[codes]


def _of_one_column(groups, n_samples, max_bins, takes_max_bins):
    """Return the sorted names of the groups of one column, and the position of each
    sample's group among them, (n_samples,).

    More than `max_bins` distinct values become quantiles. Without `max_bins` many
    distinct floats are refused, since they are measurements; the error advises
    `max_bins` if the caller `takes_max_bins`.
    """
    values = check_label_vector(
        groups, n_samples, name="groups", scores_name="y_proba", may_be_missing=True
    )
    is_missing = missing_values(values)
    known = plain_labels(values[~is_missing])
    _refuse_infinity(known, is_missing)
    names, codes = sorted_labels(known, "groups")
    if max_bins is not None and len(names) > max_bins:
        names, codes = _quantiles(known, max_bins)
    elif known.dtype.kind == "f" and len(names) > _MOST_FLOATS:
        hint = _MAX_BINS_HINT if takes_max_bins else _BINS_HINT
        raise ValueError(
            f"groups holds {len(names)} distinct floats ({shown(names, 3)}), each of"
            f" which would become a group: {hint} Convert them to strings if they are"
            " names."
        )
    if not is_missing.any():
        return names, codes
    return _with_missing(names, codes, is_missing)


def _refuse_infinity(known, is_missing):
    """Raise if the values that are not missing, `known`, hold infinity."""
    if known.dtype.kind == "f" and not np.isfinite(known).all():
        (position,) = first_index(~np.isfinite(known))
        rows_of_known = np.flatnonzero(~is_missing)
        row = rows_of_known[position]
        raise ValueError(
            f"groups contains infinity in row {row}: the group of each row must be"
            " known. Drop such rows."
        )


def _with_missing(names, codes, is_missing):
    """Return the names of groups (n_groups + 1,) with "missing" as the last, and the
    position of each sample's group among them (n,). `is_missing` (n,) says which
    samples have no value, and `codes` are the positions of the others.
    """
    if MISSING in names.tolist():
        raise ValueError(
            f"groups contains the string {MISSING!r} and missing values, which would"
            " form one group: rename the string, or fill in the missing values."
        )
    every_code = np.full(len(is_missing), len(names))
    every_code[~is_missing] = codes
    every_name = np.empty(len(names) + 1, dtype=object)
    # `tolist` would turn dates in nanoseconds into integers.
    every_name[:-1] = list(names) if names.dtype.kind in "mM" else names.tolist()
    every_name[-1] = MISSING
    return every_name, every_code


def _quantiles(values, max_bins):
    """Return the names of the intervals between quantiles, such as "(1, 2]", and the
    code (n,) of each value's interval.
    """
    if values.dtype.kind not in "iufmM":
        raise ValueError(
            f"max_bins={max_bins} divides numbers or dates at quantiles, but groups"
            f" contains {shown(values[:1])}: omit max_bins if groups are names."
        )
    below, cuts = quantile_cuts(values, max_bins)
    names = [f"<= {cuts[0]}"]
    for low, high in zip(cuts[:-1], cuts[1:], strict=True):
        names.append(f"({low}, {high}]")
    names.append(f"> {cuts[-1]}")
    return np.array(names), np.searchsorted(below, values, side="left")


def quantile_cuts(values, max_bins):
    """Return the last values of all bins but the highest, (n_cuts,), for bins of about
    as many samples each, and the cuts as texts: each reads back as a number from the
    last value of a bin up to, and without, the first of the next.

    The last value of bin i = 1, ..., max_bins - 1 is the smallest one that has
    i / max_bins of the samples at or below it, and is less than the largest value. With
    no more than `max_bins` distinct values each is a bin.
    """
    ordered = np.sort(values)
    # The first position of each distinct value.
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    if len(starts) <= max_bins:
        below = ordered[starts[:-1]]  # a bin for each value
    else:
        # i n / max_bins rows, rounded up (as minus a floor); never the largest value
        n_rows = -(-np.arange(1, max_bins) * len(ordered) // max_bins)
        second_largest = ordered[starts[-1] - 1]
        below = np.unique(np.minimum(ordered[n_rows - 1], second_largest))
    # The text may be any number from the value up to the next one: the shortest is
    # taken.
    above = ordered[np.searchsorted(ordered, below, side="right")]
    cuts = []
    for low, high in zip(below, above, strict=True):
        cuts.append(exact_text(_shortest_between(low, high)))
    return below, cuts


def _shortest_between(low, high):
    """Return the float with the fewest digits in [low, high); `low` unless it is a
    float.
    """
    if not isinstance(low, np.floating):
        return low
    middle = low / 2 + high / 2
    # 17 digits tell all floats apart.
    for n_digits in range(1, 18):
        for target in (low, middle):
            number = float(f"{target:.{n_digits}g}")
            # A comparison with values of single precision rounds the number to it.
            rounded = low.dtype.type(number)
            if low <= number < high and low <= rounded < high:
                return np.float64(number)
    return low


def exact_text(number):
    """Return a number or a date as text that reads back exactly."""
    if isinstance(number, np.floating):
        return repr(float(number)).removesuffix(".0")
    return str(number)
