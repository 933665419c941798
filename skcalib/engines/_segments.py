"""Segments as integers that the engine gives them."""

from dataclasses import dataclass

import numpy as np

from skcalib.engines._native import numbered, nw


def table_changed():
    """Return the error for rows of a later pass that are not those of an earlier one."""
    return ValueError(
        "The table changed between two passes, or segments do not compare equal: later rows are not those that were "
        "counted first. Use a table that stays as it is, and cast by= to text or integers."
    )


@dataclass(frozen=True)
class Segments:
    """The distinct values of the columns of segments; a segment is the number of a place in the grid that they make.

    A value that went through Python need not compare equal to what the engine has (decimals, nanoseconds, time zones):
    values are for showing, numbers for joining.

    Parameters
    ----------
    keys : list of str
        The columns.
    values : list of list
        For each column its Python values in order, and None.
    tables : list of narwhals LazyFrame
        For each column its values in the engine beside their numbers.
    """

    keys: list
    values: list
    tables: list

    @classmethod
    def of(cls, frame, keys):
        """Return the segments of a lazy frame, which is asked for the distinct values of each column."""
        values, tables = zip(*(numbered(frame, key) for key in keys), strict=True)
        return cls(keys, [[*own, None] for own in values], tables)

    def attached(self, frame, name="segment"):
        """Return a lazy frame with the number of each row's segment as the column `name`, in place of the keys.

        Other frames than that which the segments are of may have other values: their number is negative.
        """
        segment = nw.lit(0)
        if not self.keys:
            return frame
        for key, values, table in zip(self.keys, self.values, self.tables, strict=True):
            place = nw.lit(-1)
            if len(values) > 1:
                frame = frame.join(table, on=key, how="left")
                place = nw.col(f"{key}_number").fill_null(-1)
            place = nw.when(nw.col(key).is_null()).then(nw.lit(len(values) - 1)).otherwise(place)
            frame = frame.with_columns(place.alias(f"{key}_place"))
            place = nw.col(f"{key}_place")
            segment = nw.when((segment >= 0) & (place >= 0)).then(segment * len(values) + place).otherwise(nw.lit(-1))
        is_small = (
            np.prod([len(own) for own in self.values], dtype=float) < 2**31
        )  # groups by small integers are quicker
        frame = frame.with_columns(segment.cast(nw.Int32 if is_small else nw.Int64).alias(name))
        added = [f"{key}{end}" for key in self.keys for end in ("", "_number", "_place")]
        return frame.drop([column for column in added if column in frame.collect_schema()])

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
