"""Columns as segments: numbers by quantiles, categories by value, missing values apart;
each in words.
"""

from typing import NamedTuple

import numpy as np

from skcalib._input.columns import plain_column
from skcalib._input.groups import exact_text, quantile_cuts


class SplitColumn(NamedTuple):
    """A column of a table, split into parts.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        The part to which each sample belongs.
    words : list of str
        Descriptions of the parts as conditions that select exactly their rows, such as
        "age <= 40".
    """

    codes: np.ndarray
    words: list


def split_column(column, name, max_bins):
    """Split a column (n,) with a name into at most `max_bins` parts, and one more for
    missing values: numbers by quantiles, categories by value. Return a `SplitColumn`.
    """
    values, is_missing = plain_column(column, name=name)
    split = _by_quantiles
    if values.dtype.kind == "O":  # categories; numbers have a dtype of their own
        split = _by_value
    codes = np.zeros(len(values), dtype=np.int64)
    words = []
    if not is_missing.all():
        codes[~is_missing], words = split(values[~is_missing], name, max_bins)
    if is_missing.any():
        codes[is_missing] = len(words)
        words = [*words, f"{name} is missing"]
    return SplitColumn(codes, words)


def _by_quantiles(values, name, max_bins):
    """Cut numbers (n,) at their quantiles into at most `max_bins` parts; return the
    part of each (n,), and the parts in words.
    """
    below, cuts = quantile_cuts(values, max_bins)
    if not cuts:
        only_part = f"{name} <= {exact_text(values.max())}"
        return np.zeros(len(values), dtype=np.int64), [only_part]
    words = [f"{name} <= {cuts[0]}"]
    for low, high in zip(cuts[:-1], cuts[1:], strict=True):
        words.append(f"{low} < {name} <= {high}")
    words.append(f"{name} > {cuts[-1]}")
    return np.searchsorted(below, values, side="left"), words


def _by_value(values, name, max_bins):
    """Give each of the most frequent values a part of its own, and the others one
    together, so that there are at most `max_bins`. Return the part of each value (n,),
    and the parts in words.
    """
    # Codes of the distinct values, in the order in which they first occur.
    index = {}
    codes = []
    try:
        for value in values:
            codes.append(index.setdefault(value, len(index)))
    except TypeError:
        raise ValueError(
            f"{name} must contain numbers, dates or categories, found values that"
            " cannot be hashed."
        ) from None
    codes = np.array(codes, dtype=np.int64)
    texts = _texts(index)
    n_values = len(texts)
    # The most frequent values have a part each, in the order of their texts; the last
    # part is for the others.
    counts = np.bincount(codes)
    by_frequency = sorted(range(n_values), key=lambda k: (-counts[k], texts[k]))
    named = by_frequency
    if n_values > max_bins:
        named = by_frequency[: max_bins - 1]
    named = sorted(named, key=texts.__getitem__)
    part_of_value = np.full(n_values, len(named))
    part_of_value[named] = np.arange(len(named))
    words = [f"{name} = {texts[k]}" for k in named]
    if len(named) < n_values:
        words.append(f"{name} is another value")
    return part_of_value[codes], words


def _texts(values):
    """Return a text for each of different values, no two of them alike."""
    texts = []
    for value in values:
        if isinstance(value, bytes):
            texts.append(value.decode(errors="replace"))
        else:
            texts.append(str(value))
    if len(set(texts)) < len(texts):  # 1 and "1" are two values
        return [repr(value) for value in values]
    return texts
