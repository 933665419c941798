"""Segments as integers that the engine gives them."""

from dataclasses import dataclass

import numpy as np

from skcalib.engines._native import narwhals, numbered

__all__ = ["Segments", "table_changed", "with_segments"]


def table_changed():
    """Return the error for rows of a later pass that are not those of an earlier one."""
    return ValueError(
        "The table changed between two passes, or segments do not compare equal: later rows are not those that were "
        "counted first. Use a table that stays as it is, and cast by= to text or integers."
    )


@dataclass(frozen=True)
class Segments:
    """The Python values of the columns of segments, in order; a segment is a place in the grid that they make.

    A value that went through Python need not compare equal to what the engine has (decimals, nanoseconds, time zones):
    values are for showing, numbers for joining.

    Parameters
    ----------
    values : list of list
        For each column its distinct values. None is the last of each.
    """

    values: list

    def found(self, sums):
        """Return the keys of the segments of some groups (tuples), in order, and the index of each group's."""
        if not self.values:
            return [()] * bool(len(sums["count"])), np.zeros(len(sums["count"]), dtype=np.int64)
        if not np.all(sums["segment"] >= 0):
            raise table_changed()
        numbers, of = np.unique(sums["segment"].astype(np.int64), return_inverse=True)
        places = np.unravel_index(numbers, [len(values) for values in self.values])
        columns = ([own[place] for place in of_key] for own, of_key in zip(self.values, places, strict=True))
        return list(zip(*columns, strict=True)), of

    def numbers(self, keys):
        """Return the numbers of those of some keys that are segments, a dict by key."""
        places = [{value: place for place, value in enumerate(own)} for own in self.values]
        shape, out = [len(own) for own in self.values], {}
        for key in keys:
            place = [of.get(value) for of, value in zip(places, key, strict=True)]
            if None not in place:
                out[key] = int(np.ravel_multi_index(place, shape))
        return out


def with_segments(frame, distinct, keys, name="segment"):
    """Return a lazy frame with the number of each row's segment as one more column, and the segments.

    Parameters
    ----------
    frame : narwhals LazyFrame
        The rows.
    distinct : narwhals LazyFrame
        The frame whose values get numbers: those of `frame`, or of more rows that are read faster.
    keys : list of str
        Columns of both.
    name : str
        Name of the new column.
    """
    nw = narwhals()
    segment, values = nw.lit(0), []
    for key in keys:
        own, table = numbered(distinct, key)
        place = nw.lit(-1)
        if own:
            frame = frame.join(table, on=key, how="left")
            place = nw.col(f"{key}_number").fill_null(-1)
        place = nw.when(nw.col(key).is_null()).then(nw.lit(len(own))).otherwise(place)
        frame = frame.with_columns(place.alias(f"{key}_place"))
        place = nw.col(f"{key}_place")
        segment = nw.when((segment >= 0) & (place >= 0)).then(segment * (len(own) + 1) + place).otherwise(nw.lit(-1))
        values.append([*own, None])
    is_small = np.prod([len(own) for own in values], dtype=float) < 2**31  # groups by small integers are quicker
    return frame.with_columns(segment.cast(nw.Int32 if is_small else nw.Int64).alias(name)), Segments(values)
