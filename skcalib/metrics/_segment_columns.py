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
    """Split a column (n,) into at most `max_bins` parts, and one more for missing
    values: numbers at quantiles, categories by value. Return a `SplitColumn`.

    `name` is the name of the column.
    """
    values, is_missing = plain_column(column, name=name)
    codes = np.zeros(len(values), dtype=np.int64)
    words = []
    if not is_missing.all():
        present = values[~is_missing]
        is_numeric = values.dtype.kind != "O"  # categories are objects
        if is_numeric:
            codes[~is_missing], words = _by_quantiles(present, name, max_bins)
        else:
            codes[~is_missing], words = _by_value(present, name, max_bins)
    if is_missing.any():
        codes[is_missing] = len(words)
        words = [*words, f"{name} is missing"]
    return SplitColumn(codes, words)


def _by_quantiles(values, name, max_bins):
    """Return the part of each value (n,), cut at quantiles into at most `max_bins`, and
    a condition for each part, such as "20 < age <= 35" for the column `name`.
    """
    # The upper ends of all parts but the last, as numbers and as text.
    upper_ends, cuts = quantile_cuts(values, max_bins)
    if not cuts:  # all values are equal
        only_part = f"{name} <= {exact_text(values.max())}"
        return np.zeros(len(values), dtype=np.int64), [only_part]
    words = [f"{name} <= {cuts[0]}"]
    for low, high in zip(cuts[:-1], cuts[1:], strict=True):
        words.append(f"{low} < {name} <= {high}")
    words.append(f"{name} > {cuts[-1]}")
    return np.searchsorted(upper_ends, values, side="left"), words


def _by_value(values, name, max_bins):
    """Give each of the most frequent values a part of its own, and all others one
    together, at most `max_bins` in all. Return the number of each value's part (n,),
    and a condition for each part, such as "region = north".
    """
    # Number the distinct values in the order in which they first occur.
    number_of = {}
    codes = []
    try:
        for value in values:
            codes.append(number_of.setdefault(value, len(number_of)))
    except TypeError:
        raise ValueError(
            f"{name} must contain numbers, dates or categories, found values that"
            " cannot be hashed."
        ) from None
    codes = np.array(codes, dtype=np.int64)
    texts = _texts(number_of)
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
        words.append(f"{name} has another value")
    return part_of_value[codes], words


def _texts(values):
    """Return a list with a text for each of several distinct values, such that no two
    texts are equal.
    """
    texts = []
    for value in values:
        if isinstance(value, bytes):
            texts.append(value.decode(errors="replace"))
        else:
            texts.append(str(value))
    if len(set(texts)) < len(texts):  # 1 and "1" are two values
        return [repr(value) for value in values]
    return texts
