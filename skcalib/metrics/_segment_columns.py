"""Columns as segments: numbers by quantiles, categories by value, missing values apart;
each in words.
"""

from typing import NamedTuple

import numpy as np

from skcalib._input.columns import plain_column
from skcalib._input.groups import exact_text, quantile_cuts


class SplitColumn(NamedTuple):
    """The part that each sample belongs to, and each part in words that select exactly
    its rows.
    """

    codes: np.ndarray
    words: list


def split_column(column, name, max_bins):
    """Split a column into at most `max_bins` parts, and one more for missing values."""
    values, missing = plain_column(column, name=name)
    split = _by_value if values.dtype.kind == "O" else _by_quantiles
    codes = np.zeros(len(values), dtype=np.int64)
    words = []
    if not missing.all():
        codes[~missing], words = split(values[~missing], name, max_bins)
    if missing.any():
        codes[missing] = len(words)
        words = [*words, f"{name} is missing"]
    return SplitColumn(codes, words)


def _by_quantiles(values, name, max_bins):
    """Cut numbers at their quantiles."""
    below, cuts = quantile_cuts(values, max_bins)
    if not cuts:
        one_part = [f"{name} <= {exact_text(values.max())}"]
        return np.zeros(len(values), dtype=np.int64), one_part
    words = [f"{name} <= {cuts[0]}"]
    for low, high in zip(cuts[:-1], cuts[1:], strict=True):
        words.append(f"{low} < {name} <= {high}")
    words.append(f"{name} > {cuts[-1]}")
    return np.searchsorted(below, values, side="left"), words


def _by_value(values, name, max_bins):
    """Give each of the most frequent values a part of its own, and the others one
    together.
    """
    index = {}
    codes = []
    try:
        for value in values:
            codes.append(index.setdefault(value, len(index)))
    except TypeError:
        raise ValueError(
            f"{name} must hold numbers, dates or categories, found values that cannot"
            " be hashed."
        ) from None
    codes = np.array(codes, dtype=np.int64)
    texts = _texts(index)
    counts = np.bincount(codes)
    named = sorted(range(len(texts)), key=lambda k: (-counts[k], texts[k]))
    if len(named) > max_bins:
        named = named[: max_bins - 1]
    named = sorted(named, key=texts.__getitem__)
    part = np.full(len(texts), len(named))
    part[named] = np.arange(len(named))
    words = [f"{name} = {texts[k]}" for k in named]
    if len(named) < len(texts):
        words.append(f"{name} is another value")
    return part[codes], words


def _texts(values):
    """Return different texts of different values."""
    texts = []
    for value in values:
        if isinstance(value, bytes):
            texts.append(value.decode(errors="replace"))
        else:
            texts.append(str(value))
    if len(set(texts)) < len(texts):  # 1 and "1" are two values
        return [repr(value) for value in values]
    return texts
