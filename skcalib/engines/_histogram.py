"""A histogram of the scores that is split where a question needs it, down to distinct
scores.
"""

import numpy as np
from sklearn.utils import Bunch

from skcalib.engines._columns import check_no_hidden_nan, table_changed
from skcalib.engines._native import beside, fetched, nw

# Sums of the rows' weight times a power of the score, or of its distance from the
# nearer end; of all rows or of events.
_SUMS = {
    "weighted_score": ("score", 1, "weight"),
    "weighted_score_squared": ("score", 2, "weight"),
    "weighted_score_label": ("score", 1, "weighted_label"),
    "distance": ("distance", 1, "weight"),
    "distance_squared": ("distance", 2, "weight"),
    "distance_label": ("distance", 1, "weighted_label"),
    "distance_squared_label": ("distance", 2, "weighted_label"),
}
SCORE_SUMS, MOMENTS = tuple(_SUMS)[:3], tuple(_SUMS)[3:]

_CELLS, _CELLS_OF_SEGMENT = 2**14, 2**12  # of the first histogram
# rows that are split at a time, about, into so many cells and with at least so many
# rows in each
_MOST_SPLIT = 2**26
_MOST_CELLS, _ROWS_OF_PART = 2**20, 16
# Rows of split cells that are fetched as distinct scores; of more, a finer histogram
# comes first. To fetch a sixteenth of the table takes about as long as one more pass.
_FEW_FETCHED, _MOST_FETCHED, _FETCHED_SHARE = 2**19, 2**21, 1 / 16
_SETTLED = -1  # depth of a cell that is not split any more
_LARGEST_SCALE = 1e300
# Of the coarse cells a quarter are equally wide; others are narrow within 2^-7, 2^-13,
# 2^-20 of 0 and of 1.
_LINEAR_SHARE, _SHARES = 1 / 4, {2.0**-7: 3 / 8, 2.0**-13: 1 / 4, 2.0**-20: 1 / 8}
_LAST_BAND = 9  # of the fine cells: it reaches from 2^-37 down to 0


def coarse_place(score, n_cells):
    """Return a number that never falls with the score, an array or an expression: its
    floor is that of the cell.

    Sums, differences and quotients are rounded correctly on every engine, so that each
    part rises with the score, and the number is the same everywhere. A root or a
    logarithm would take several times as long.
    """
    place = score * (_LINEAR_SHARE * n_cells)
    for width, share in _SHARES.items():
        scale = share * n_cells / 2 * width
        place = place + (scale / (1 + width - score) - scale / (score + width))
    return place


def coarse_cell(n_cells=2**12, name="score"):
    """Return the number of one of about `n_cells` cells of a column, narrow near 0 and
    1.
    """
    return coarse_place(nw.col(name), n_cells).floor().cast(nw.Int32)


def fine_cell(bits):
    """Return the number of one of about 2^bits cells of the score s, narrow in relation
    to s, above 1/2 to 1 - s.

    With u the lesser of s and 1 - s, each band of u that spans a factor of 16 is scaled
    by a power of two, which is exact, and cut into cells of equal width.
    """
    resolution = bits - 7
    score = nw.col("score")
    least = nw.when(score <= 0.5).then(score).otherwise(1 - score)
    cell = _band(least, resolution, _LAST_BAND)
    for band in reversed(range(_LAST_BAND)):
        above = least >= 2.0 ** (-5 - 4 * band)
        cell = nw.when(above).then(_band(least, resolution, band)).otherwise(cell)
    return (
        nw.when(score <= 0.5)
        .then(cell)
        .otherwise(2.0 ** (resolution + 5) - cell)
        .cast(nw.Int32)
    )


def _band(least, resolution, band):
    return (least * 2.0 ** (resolution + 4 + 4 * band)).floor() - band * 2.0 ** (
        resolution + 4
    )


def width_bin(n_bins):
    """Return the number of the equal-width bin, from 1, of the column `score`: 0 for 0,
    and rarely one too far.

    The product s B may round across an edge k (1 / B). The least and the greatest score
    of a bin tell.
    """
    # groups by small integers are quicker
    integer = nw.Int8 if n_bins < 127 else nw.Int32
    return (nw.col("score") * float(n_bins)).ceil().cast(integer)


def _product(name, quantities, factors):
    """Return what a sum of `_SUMS` adds for a row; a factor that is missing is 1."""
    quantity, power, factor = _SUMS[name]
    value = quantities[quantity]
    if power == 2:
        value = value * value
    return value * factors[factor] if factor in factors else value


class Cells(Bunch):
    """Sums over the rows of each cell, by segment and score. A cell whose least and
    greatest score agree is a score.

    It is a dict of columns; a column is an attribute as well: ``cells.low`` is
    ``cells["low"]``.

    Parameters
    ----------
    segment : ndarray of int, shape (n_cells,)
        Index of the segment.
    low, high : ndarray of shape (n_cells,)
        Least and greatest score.
    number : ndarray of int, shape (n_cells,)
        What the engine calls the cell.
    depth : ndarray of int, shape (n_cells,)
        How often rows were split until this cell: 0 in the first histogram; -1 for
        those that stay as they are.
    count, weight, weighted_label : ndarray
        See `BinStatistics`.
    weighted_score, weighted_score_squared, weighted_score_label, weight_squared : ndarray
        The same, where they were asked for, the last one with weights only.
    distance, distance_squared, distance_label, distance_squared_label : ndarray
        Where they were asked for: sums of the distance of the score from the nearer of
        0 and 1, of its square, and of the events' alone.
    """  # noqa: E501

    def at(self, index):
        """Return the cells of an index."""
        return Cells(**{name: values[index] for name, values in self.items()})

    def ordered(self):
        """Return the cells by segment, then by score; where least and greatest agree
        the sums are made from them.
        """
        cells = self.at(np.lexsort((self.low, self.segment)))
        point = cells.low == cells.high
        base = {"score": cells.low, "distance": np.minimum(cells.low, 1 - cells.low)}
        for name in _SUMS.keys() & cells.keys():
            quantity, power, factor = _SUMS[name]
            cells[name][point] = (base[quantity] ** power * cells[factor])[point]
        return cells

    def joined(self, other):
        """Return the cells of both, in order. Each field is given up at once: there may
        be millions of cells.
        """
        low = np.concatenate((self.low, other.low))
        segment = np.concatenate((self.segment, other.segment))
        order = np.lexsort((low, segment))
        joined = Cells()
        for name in list(self):
            joined[name] = np.concatenate((self.pop(name), other.pop(name)))[order]
        return joined

    def pooled(self, starts):
        """Return the cells with each run of them as one; what was a cell's number has
        no meaning then.

        `starts` (n_cells,) tells whether a run begins with a cell: the first always.
        """
        first = np.flatnonzero(starts)
        # A run ends before the next one begins, the last at the end. Without cells
        # there is no run, and so no end: hence the slice.
        ends = np.append(first[1:], len(starts))[: len(first)]
        last = ends - 1
        pooled = Cells(high=self.high[last])
        for name, values in self.items():
            if name in ("segment", "low", "number", "depth"):
                pooled[name] = values[first]
            elif name != "high":
                pooled[name] = np.add.reduceat(values, first)  # sums of each run
        return pooled


class ScoreHistogram:
    """The cells of a table's valid rows, by segment.

    Parameters
    ----------
    columns : PredictionColumns
        The table.
    score_sums : tuple of str
        Those of the sums that are needed: fewer take less time and memory.
    cell : narwhals Expr, default=None
        Number of the first cell of a row; None is the coarse cell.
    """

    def __init__(self, columns, score_sums=SCORE_SUMS, cell=None):
        rows, keys, segments = columns.rows()
        self.score_sums = score_sums
        self.weighted = columns.weight is not None
        if cell is None:
            cell = coarse_cell(_CELLS_OF_SEGMENT if keys else _CELLS)
        rows = rows.with_columns(cell.alias("cell"))
        # By depth: the rows, with the columns by which the engine knows the cells.
        self.frames = [
            (segments.attached(rows), ["segment", "cell"] if keys else ["cell"])
        ]
        sums = self._sums(rows, [*keys, "cell"], segments)
        columns.check_rows(sums)
        check_no_hidden_nan(sums["weighted_score"], sums["weight"])
        self.n_rows = int(sums["count"].sum())
        self.segments, codes = segments.found(sums)
        self.segment_numbers = np.unique(sums["segment"]) if keys else None
        self.cells = self._cells(sums, codes, 0)

    def by_segment(self):
        """Return the cells of each segment, a dict whose keys are tuples."""
        ends = np.searchsorted(self.cells.segment, np.arange(len(self.segments) + 1))
        cells = {}
        for code, key in enumerate(self.segments):
            cells[key] = self.cells.at(slice(ends[code], ends[code + 1]))
        return cells

    def refine(self, is_needed, pool=False):
        """Split cells until those that are still needed are distinct scores.

        `is_needed(cells)` is given the cells of one segment and returns a mask. A cell
        that is not needed once is not needed later; with `pool` those between two that
        are needed become one, which bounds the memory. So does the order: a part of the
        rows, near each other in score, is split down to distinct scores before the next
        part is.
        """
        while True:
            # 1. The cells that are needed still, of all segments.
            masks = [is_needed(cells) for cells in self.by_segment().values()]
            cells = self.cells
            needed = np.concatenate([np.zeros(0, dtype=bool), *masks])
            needed &= cells.depth != _SETTLED
            cells.depth[~needed] = _SETTLED

            # 2. Those with several scores; the narrowest, in the order of their scores.
            wide = np.flatnonzero(needed & (cells.low < cells.high))
            if not len(wide):
                return
            deepest = wide[cells.depth[wide] == cells.depth[wide].max()]
            deepest = deepest[np.argsort(cells.low[deepest], kind="stable")]

            # 3. As many of them as hold a part of the rows, at least the first one.
            n_rows = np.cumsum(cells.count[deepest])
            most = n_rows[-1] / max(1, round(n_rows[-1] / _MOST_SPLIT))
            split = np.zeros(len(needed), dtype=bool)
            split[deepest[n_rows <= max(most, n_rows[0])]] = True
            parents = cells.at(split)
            others = cells.at(~split)
            self.cells = None  # the memory of millions of cells is given back first
            if pool:
                starts = needed | np.append(True, needed[:-1])
                others = others.pooled(starts[~split])
            self.cells = others.joined(self._parts(parents))

    def _parts(self, parents):
        """Return what the given cells hold: their distinct scores, or a finer histogram
        where these are too many.
        """
        n_rows = parents.count.sum()
        depth = parents.depth[0]
        rows_of_part = max(_ROWS_OF_PART, n_rows / _MOST_CELLS)
        n_parts = np.maximum(2, parents.count / rows_of_part)
        with np.errstate(over="ignore"):
            scale = np.minimum(n_parts / (parents.high - parents.low), _LARGEST_SCALE)
        steps = np.floor((parents.high - parents.low) * scale)
        # number of the first part of each
        first = np.append(0, np.cumsum(steps[:-1] + 1)).astype(np.int32)
        frame, (*by_segment, _) = self.frames[depth]
        keys = {"cell": parents.number}
        for name in by_segment:
            keys[name] = self.segment_numbers[parents.segment]
        parts = {"first": first, "start": parents.low, "scale": scale}
        score = nw.col("score")
        row_columns = ["score", "label"]
        if self.weighted:
            row_columns.append("weight")
        # Rows of other scores are left out as the file is read, before their cell is
        # looked up.
        is_between = (score >= parents.low.min()) & (score <= parents.high.max())
        frame = frame.filter(is_between)
        # The columns of the join are chosen before they are computed with: Ibis would
        # join to the expressions.
        small_table = beside(frame, {**keys, **parts})
        frame = frame.join(small_table, on=list(keys), how="inner")
        frame = frame.select(*row_columns, *parts)
        most_fetched = max(self.n_rows * _FETCHED_SHARE, _FEW_FETCHED)
        most_fetched = min(most_fetched, _MOST_FETCHED)
        # a cell too narrow to be divided is fetched, whatever it holds
        if n_rows <= most_fetched or not steps.all():
            frame = frame.select(*row_columns, nw.col("first").alias("cell"))
            columns = self._sums(frame, ["cell", "score"])
        else:
            part = ((score - nw.col("start")) * nw.col("scale")).floor().cast(nw.Int32)
            frame = frame.select(*row_columns, (nw.col("first") + part).alias("cell"))
            self.frames[depth + 1 :] = [(frame, ["cell"])]
            columns = self._sums(frame, ["cell"])
        parent = np.searchsorted(first, columns["cell"], side="right") - 1
        # With weights of 0 and 1 for labels both sums are exact; events need not be
        # with other weights.
        exact_sums = ["count"]
        if not self.weighted:
            exact_sums.append("weighted_label")
        for name in exact_sums:
            of_parents = np.bincount(parent, columns[name], len(first))
            if not np.array_equal(of_parents, parents[name]):
                raise table_changed()
        return self._cells(columns, parents.segment[parent], depth + 1)

    def _cells(self, columns, segment, depth):
        names = (
            "low",
            "high",
            "count",
            "weight",
            "weighted_label",
            "weight_squared",
            *self.score_sums,
        )
        sums = {name: columns[name] for name in names if name in columns}
        depth = np.full(len(segment), depth)
        return Cells(
            segment=segment, number=columns["cell"], depth=depth, **sums
        ).ordered()

    def _sums(self, frame, names, segments=None):
        """Return the sums of a group-by as a dict of arrays; those of the first one
        find NaN too.
        """
        score = nw.col("score")
        label = nw.col("label").cast(nw.Float64)
        if self.weighted:
            weight = nw.col("weight")
            products = {"weight": weight, "weighted_label": weight * label}
            if "weighted_score_squared" in self.score_sums:
                products["weight_squared"] = weight * weight
        else:
            products = {"weighted_label": label}
        extent = []
        by_score = "score" in names
        if not by_score:
            distance = nw.when(score <= 0.5).then(score).otherwise(1 - score)
            # a column of its own, so that engines compute it once
            frame = frame.with_columns(distance.alias("nearer_end"))
            quantities = {"score": score, "distance": nw.col("nearer_end")}
            for name in self.score_sums:
                products[name] = _product(name, quantities, products)
            extent = [score.min().alias("low"), score.max().alias("high")]
        if segments is not None and "weighted_score" not in products:
            extent.append(score.sum().alias("weighted_score"))
        sums = [nw.col(name).sum().alias(f"sum_{name}") for name in products]
        grouped = frame.with_columns(**products).group_by(names)
        result = grouped.agg(nw.len().alias("count"), *sums, *extent)
        if segments is not None:
            result = segments.attached(result)
        columns = {}
        for name, values in fetched(result).items():
            columns[name.removeprefix("sum_")] = values
        columns.setdefault("weight", columns["count"].astype(np.float64))
        if by_score:  # `ordered` makes the sums
            for name in self.score_sums:
                columns[name] = np.zeros(len(columns["count"]))
            columns["low"] = columns["score"]
            columns["high"] = columns["score"]
        return columns
