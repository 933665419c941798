"""A histogram of the scores that is split where a question needs it, down to distinct
scores.
"""

import numpy as np
from sklearn.utils import Bunch

from skcalib.engines._columns import check_no_hidden_nan, table_changed
from skcalib.engines._native import beside, fetched, nw

# Sums over rows of a factor (the weight, or the weight of events) times a quantity (the
# score, or its distance from the nearer of 0 and 1) to a power, by name.
_SUMS = {
    "weighted_score": ("score", 1, "weight"),
    "weighted_score_squared": ("score", 2, "weight"),
    "weighted_score_label": ("score", 1, "weighted_label"),
    "distance": ("distance", 1, "weight"),
    "distance_squared": ("distance", 2, "weight"),
    "distance_label": ("distance", 1, "weighted_label"),
    "distance_squared_label": ("distance", 2, "weighted_label"),
}
SCORE_SUMS = tuple(_SUMS)[:3]
MOMENTS = tuple(_SUMS)[3:]

# Cells of the first histogram, and of that of a table with segments.
_CELLS = 2**14
_CELLS_OF_SEGMENT = 2**12
# About `_MOST_SPLIT` rows are split at a time, into at most `_MOST_CELLS` cells that
# hold on average at least `_ROWS_OF_PART` rows each.
_MOST_SPLIT = 2**26
_MOST_CELLS = 2**20
_ROWS_OF_PART = 16
# Number of rows of split cells up to which their distinct scores are fetched: a share
# of the table's rows within two bounds. More rows get a finer histogram first. To fetch
# a sixteenth of the table takes about as long as one more pass.
_FETCHED_SHARE = 1 / 16
_FEW_FETCHED = 2**19
_MOST_FETCHED = 2**21
_SETTLED = -1  # depth of a cell that is not split any more
_LARGEST_SCALE = 1e300  # for cells whose width is so small that the scale overflows
# Of the coarse cells a quarter are equally wide; these shares are narrow within 2^-7,
# 2^-13 and 2^-20 of 0 and of 1.
_LINEAR_SHARE = 1 / 4
_SHARES = {2.0**-7: 3 / 8, 2.0**-13: 1 / 4, 2.0**-20: 1 / 8}
_LAST_BAND = 9  # of the fine cells: it reaches from 2^-37 down to 0


def coarse_place(score, n_cells):
    """Return a nondecreasing function of the score, from 0 to `n_cells`, whose floor is
    the number of the coarse cell. `score` is an array or an expression.

    It is the sum of a line and of hyperbolas that are steep near 0 and 1. Sums,
    differences and quotients are rounded correctly on every engine, so that the number
    is the same everywhere and no term falls by rounding. A root or a logarithm would
    take several times as long.
    """
    place = score * (_LINEAR_SHARE * n_cells)
    for width, share in _SHARES.items():
        # Hyperbolas that are steep within `width` of 1 and of 0.
        scale = share * n_cells / 2 * width
        place = place + (scale / (1 + width - score) - scale / (score + width))
    return place


def coarse_cell(n_cells=2**12, name="score"):
    """Return an expression for the number of a column's cell among about `n_cells`,
    which are narrow near 0 and 1.
    """
    return coarse_place(nw.col(name), n_cells).floor().cast(nw.Int32)


def fine_cell(bits):
    """Return an expression for the number of the score's cell among about 2^bits, whose
    widths are in proportion to u = min(s, 1 - s).

    Each band of u, which spans a factor of 16, is scaled by a power of two, which is
    exact, and cut into cells of equal width.
    """
    # Ten bands of about 2^(resolution + 3) cells on each side of 1/2 are about
    # 2^(resolution + 7) cells.
    resolution = bits - 7
    score = nw.col("score")
    least = nw.when(score <= 0.5).then(score).otherwise(1 - score)
    cell = _band(least, resolution, _LAST_BAND)
    for band in reversed(range(_LAST_BAND)):
        is_in_band = least >= 2.0 ** (-5 - 4 * band)  # or in one nearer to 1/2
        cell = nw.when(is_in_band).then(_band(least, resolution, band)).otherwise(cell)
    # Cells above 1/2 have the numbers of those below in the opposite order, moved
    # beyond them.
    mirrored = 2.0 ** (resolution + 5) - cell
    return nw.when(score <= 0.5).then(cell).otherwise(mirrored).cast(nw.Int32)


def _band(least, resolution, band):
    """Return the number of the cell of u = `least` if it lies in a band, which is
    counted from that next to 1/2.
    """
    scaled = least * 2.0 ** (resolution + 4 + 4 * band)
    # Cells of bands nearer to 0 have lower numbers.
    return scaled.floor() - band * 2.0 ** (resolution + 4)


def width_bin(n_bins):
    """Return an expression for the number of the equal-width bin of the column `score`:
    1 to `n_bins`, and 0 for a score of 0.

    It is rarely one too large or too small, where the product s B rounds across an edge
    k / B. The least and the greatest score of a bin show that later.
    """
    # groups by small integers are quicker
    integer = nw.Int8 if n_bins < 127 else nw.Int32
    return (nw.col("score") * float(n_bins)).ceil().cast(integer)


def _product(name, quantities, factors):
    """Return the expression that a sum of `_SUMS` adds up. `quantities` and `factors`
    hold expressions by name; a factor that is missing is 1.
    """
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
        """Return some of the cells: those of a mask, slice or array of positions."""
        return Cells(**{name: values[index] for name, values in self.items()})

    def ordered(self):
        """Return the cells sorted by segment, then by score. Sums of cells with a
        single score are computed from it, which is more exact.
        """
        cells = self.at(np.lexsort((self.low, self.segment)))
        is_point = cells.low == cells.high
        quantities = {
            "score": cells.low,
            "distance": np.minimum(cells.low, 1 - cells.low),
        }
        for name in _SUMS.keys() & cells.keys():
            quantity, power, factor = _SUMS[name]
            exact = quantities[quantity] ** power * cells[factor]
            cells[name][is_point] = exact[is_point]
        return cells

    def joined(self, other):
        """Return the cells of both, sorted by segment and score. Both are emptied field
        by field to save memory: there may be millions of cells.
        """
        low = np.concatenate((self.low, other.low))
        segment = np.concatenate((self.segment, other.segment))
        order = np.lexsort((low, segment))
        joined = Cells()
        for name in list(self):
            joined[name] = np.concatenate((self.pop(name), other.pop(name)))[order]
        return joined

    def pooled(self, starts):
        """Return the cells with each run of neighbours merged into one, whose `number`
        has no meaning.

        `starts` (n_cells,) is True where a run begins, as at the first cell.
        """
        first = np.flatnonzero(starts)
        # A run ends before the next one begins, the last at the end. The slice is for
        # no cells, where there is no run.
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

    Attributes
    ----------
    cells : Cells
        The cells of all segments, sorted by segment and score.
    segments : list of tuple
        Keys of the segments that occur, in order.
    segment_numbers : ndarray of int, shape (n_segments,), or None
        Numbers of these segments in the engine; None without segments.
    frames : list of (LazyFrame, list of str)
        By depth: the rows whose cells have this depth, and the columns that identify
        their cells.
    n_rows : int
        Number of valid rows.
    weighted : bool
        Whether rows have weights.
    """

    def __init__(self, columns, score_sums=SCORE_SUMS, cell=None):
        rows, keys, segments = columns.rows()
        self.score_sums = score_sums
        self.weighted = columns.weight is not None
        if cell is None:
            cell = coarse_cell(_CELLS_OF_SEGMENT if keys else _CELLS)
        rows = rows.with_columns(cell.alias("cell"))
        # By depth: the rows whose cells have this depth, and the columns that identify
        # their cells.
        cell_columns = ["segment", "cell"] if keys else ["cell"]
        self.frames = [(segments.attached(rows), cell_columns)]
        sums = self._sums(rows, [*keys, "cell"], segments)
        columns.check_rows(sums)
        check_no_hidden_nan(sums["weighted_score"], sums["weight"])
        self.n_rows = int(sums["count"].sum())
        # The keys of the segments that occur, the position of each cell's segment among
        # them, and the numbers of the segments in the engine.
        self.segments, codes = segments.found(sums)
        self.segment_numbers = np.unique(sums["segment"]) if keys else None
        self.cells = self._cells(sums, codes, depth=0)

    def by_segment(self):
        """Return the `Cells` of each segment, a dict whose keys are tuples."""
        # Cells are sorted by segment: where each segment begins, and the last ends.
        codes = np.arange(len(self.segments) + 1)
        bounds = np.searchsorted(self.cells.segment, codes)
        cells = {}
        for code, key in enumerate(self.segments):
            cells[key] = self.cells.at(slice(bounds[code], bounds[code + 1]))
        return cells

    def refine(self, is_needed, pool=False):
        """Split cells until those that are still needed are distinct scores.

        `is_needed(cells)` gets the cells of one segment and returns a mask (n_cells,).
        A cell that is not needed once must not be needed later. To bound the memory,
        about 2^26 rows with neighbouring scores are split down to distinct scores
        before others are; with `pool` the cells between two needed ones are merged.
        """
        while True:
            # 1. The cells of all segments that are still needed.
            masks = [is_needed(cells) for cells in self.by_segment().values()]
            cells = self.cells
            no_cells = np.zeros(0, dtype=bool)  # for a table without segments
            needed = np.concatenate([no_cells, *masks])
            needed &= cells.depth != _SETTLED
            cells.depth[~needed] = _SETTLED

            # 2. Those with several scores: first the narrowest, which have been split
            # most often, in the order of their scores.
            wide = np.flatnonzero(needed & (cells.low < cells.high))
            if not len(wide):
                return
            deepest = wide[cells.depth[wide] == cells.depth[wide].max()]
            deepest = deepest[np.argsort(cells.low[deepest], kind="stable")]

            # 3. As many of them as hold about 2^26 rows, at least the first one.
            n_rows = np.cumsum(cells.count[deepest])
            n_batches = max(1, round(n_rows[-1] / _MOST_SPLIT))
            most = n_rows[-1] / n_batches
            split = np.zeros(len(needed), dtype=bool)
            split[deepest[n_rows <= max(most, n_rows[0])]] = True
            parents = cells.at(split)
            others = cells.at(~split)
            self.cells = None  # frees the memory of millions of cells
            if pool:
                # A run that is merged begins after a needed cell. Needed cells are runs
                # of their own.
                starts = needed | np.append(True, needed[:-1])
                others = others.pooled(starts[~split])
            self.cells = others.joined(self._split(parents))

    def _split(self, parents):
        """Return the cells that make up the given ones, all of one depth: their
        distinct scores, or a finer histogram where these would be too many.
        """
        n_rows = parents.count.sum()
        depth = parents.depth[0]
        # A finer histogram divides each parent into parts of equal width, about as many
        # as give a part this number of rows.
        rows_of_part = max(_ROWS_OF_PART, n_rows / _MOST_CELLS)
        n_parts = np.maximum(2, parents.count / rows_of_part)
        # The number of a part within its parent is floor((score - low) * scale).
        with np.errstate(over="ignore"):
            scale = np.minimum(n_parts / (parents.high - parents.low), _LARGEST_SCALE)
        last_part = np.floor((parents.high - parents.low) * scale)
        # Parts of all parents are numbered in sequence: the first number of each
        # parent.
        first = np.append(0, np.cumsum(last_part[:-1] + 1)).astype(np.int32)
        # The rows of this depth; by "cell", and by "segment" if there are any, each is
        # joined to its parent.
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
        # A cell too narrow to be divided is fetched, whatever it holds. Fetched rows
        # are summed by distinct score.
        if n_rows <= most_fetched or not last_part.all():
            frame = frame.select(*row_columns, nw.col("first").alias("cell"))
            columns = self._sums(frame, ["cell", "score"])
        else:
            part = ((score - nw.col("start")) * nw.col("scale")).floor().cast(nw.Int32)
            frame = frame.select(*row_columns, (nw.col("first") + part).alias("cell"))
            # Deeper frames of earlier parents are not needed any more.
            self.frames[depth + 1 :] = [(frame, ["cell"])]
            columns = self._sums(frame, ["cell"])
        # The parent of a part is the last one whose first number is not above its own.
        parent = np.searchsorted(first, columns["cell"], side="right") - 1
        # The parts must add up to their parents. Counts are exact; so are sums of
        # labels without weights.
        exact_sums = ["count"]
        if not self.weighted:
            exact_sums.append("weighted_label")
        for name in exact_sums:
            sums_of_parts = np.bincount(parent, columns[name], len(first))
            if not np.array_equal(sums_of_parts, parents[name]):
                raise table_changed()
        return self._cells(columns, parents.segment[parent], depth=depth + 1)

    def _cells(self, columns, segment, depth):
        """Return sorted `Cells` from arrays of sums by name, for segments (n_cells,)
        and one depth.
        """
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
        depths = np.full(len(segment), depth)
        cells = Cells(segment=segment, number=columns["cell"], depth=depths, **sums)
        return cells.ordered()

    def _sums(self, frame, names, segments=None):
        """Return sums of the frame's rows grouped by some columns, arrays by name.

        `names` are the columns; grouped by `score`, the sums of scores are left 0,
        since `Cells.ordered` computes them. `segments` are given for the first
        histogram: the groups get the numbers of their segments, and a sum of the
        scores, which shows a NaN that the engine's filters have missed.
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
        further = []
        by_score = "score" in names
        if not by_score:
            distance = nw.when(score <= 0.5).then(score).otherwise(1 - score)
            # as a column, so that engines compute it once
            frame = frame.with_columns(distance.alias("nearer_end"))
            quantities = {"score": score, "distance": nw.col("nearer_end")}
            for name in self.score_sums:
                products[name] = _product(name, quantities, products)
            further = [score.min().alias("low"), score.max().alias("high")]
        if segments is not None and "weighted_score" not in products:
            further.append(score.sum().alias("weighted_score"))
        sums = [nw.col(name).sum().alias(f"sum_{name}") for name in products]
        grouped = frame.with_columns(**products).group_by(names)
        result = grouped.agg(nw.len().alias("count"), *sums, *further)
        if segments is not None:
            result = segments.attached(result)
        columns = {}
        for name, values in fetched(result).items():
            columns[name.removeprefix("sum_")] = values
        columns.setdefault("weight", columns["count"].astype(np.float64))
        if by_score:
            for name in self.score_sums:
                columns[name] = np.zeros(len(columns["count"]))
            columns["low"] = columns["score"]
            columns["high"] = columns["score"]
        return columns
