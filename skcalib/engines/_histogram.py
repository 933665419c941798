"""A histogram of the scores that is split where a question needs it, down to distinct
scores.
"""

from typing import NamedTuple

import numpy as np
from sklearn.utils import Bunch

from skcalib.engines._columns import check_no_hidden_nan, table_changed
from skcalib.engines._native import fetched, joinable, nw

# Sums over rows, by name: a quantity (the score, or its distance from the nearer of 0
# and 1) to a power, times a factor (the weight, or the weight of events). Near 1 the
# distance is small: from sums of its squares, the variance within a narrow cell is
# computed with more digits than from squares of the score.
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
# A quarter of the coarse cells are equally wide. The others are narrow within a width
# of 0 and of 1: `_SHARES` has the share of cells for each width.
_LINEAR_SHARE = 1 / 4
_SHARES = {2.0**-7: 3 / 8, 2.0**-13: 1 / 4, 2.0**-20: 1 / 8}
_LAST_BAND = 9  # of the fine cells: it reaches from 2^-37 down to 0


def coarse_place(score, n_cells):
    """Return a nondecreasing function of scores in [0, 1] whose floor is the number of
    the score's coarse cell. It is negative near 0, and rises by about `n_cells` in all.

    `score` is an array, or a Narwhals expression for a column. The function is the sum
    of a line and of hyperbolas that are steep near 0 and 1, where cells are therefore
    narrow. NumPy and databases round sums, differences and quotients in the same
    way, so that a score has the same number everywhere, and rounding lets none of the
    terms decrease. A root or a logarithm would take several times as long.
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
    """Return an expression for the number of the score's cell among about 2^bits cells,
    which are narrow near 0 and 1.

    The distance d = min(s, 1 - s) from the nearer of 0 and 1 is divided into ten bands,
    each a factor of 16 wide: [2^-5, 2^-1], [2^-9, 2^-5), and so on; the last reaches
    from 2^-37 down to 0. A band is cut into about 2^(bits - 4) cells of equal width.
    Numbers increase with the score, not always by 1.
    """
    cells_of_band = 2.0 ** (bits - 4)
    score = nw.col("score")
    distance = nw.when(score <= 0.5).then(score).otherwise(1 - score)
    cell = _cell_in_band(distance, _LAST_BAND, cells_of_band)
    # From the last band to the first, the one next to 1/2: each overrides those before.
    for band in reversed(range(_LAST_BAND)):
        is_above_lower_end = distance >= 2.0 ** (-5 - 4 * band)
        cell_if_above = _cell_in_band(distance, band, cells_of_band)
        cell = nw.when(is_above_lower_end).then(cell_if_above).otherwise(cell)
    # Numbers of scores up to 1/2 end at `cells_of_band`. Those above 1/2 have them in
    # the opposite order, beyond it.
    mirrored = 4 * cells_of_band - cell
    return nw.when(score <= 0.5).then(cell).otherwise(mirrored).cast(nw.Int32)


def _cell_in_band(distance, band, cells_of_band):
    """Return the number of the cell of a distance from 0 in this band (0 next to 1/2),
    each with about `cells_of_band` cells.
    """
    # The factor is a power of two, so that the product is exact: from `cells_of_band` /
    # 16 at the lower end of the band up to `cells_of_band` at the upper one.
    scaled = distance * (2 * cells_of_band * 16.0**band)
    # Bands nearer to 0 have lower numbers, by more than a band has cells.
    return scaled.floor() - band * (2 * cells_of_band)


def width_bin(n_bins):
    """Return an expression for the number of the equal-width bin of the column `score`:
    1 to `n_bins`, and 0 for a score of 0.

    It is rarely one too large or too small, where the product s B rounds across an edge
    k / B. The least and the greatest score of a bin show that later.
    """
    # Engines group faster by small integers.
    integer = nw.Int8 if n_bins < 127 else nw.Int32
    return (nw.col("score") * float(n_bins)).ceil().cast(integer)


def _product(name, quantities, factors):
    """Return what one row adds to the sum called `name`: a quantity such as the score,
    or its square, times a factor (the weight, or the weight of an event), 1 without
    weights. `quantities` and `factors` are expressions by name.
    """
    quantity, power, factor = _SUMS[name]
    value = quantities[quantity]
    if power == 2:
        value = value * value
    if factor in factors:
        value = value * factors[factor]
    return value


def _grouped(frame, names, summands, further=()):
    """Return a lazy frame with one row for each group of rows that agree in `names`:
    `count`, sum_NAME for each of `summands`, and `further` aggregates.
    """
    sums = [nw.col(name).sum().alias(f"sum_{name}") for name in summands]
    grouped = frame.with_columns(**summands).group_by(names)
    return grouped.agg(nw.len().alias("count"), *sums, *further)


def _fetched_sums(groups):
    """Return sums over groups of rows, a lazy frame of `_grouped`, as arrays
    (n_groups,) by name; without weights, a group's weight is its number of rows.
    """
    sums = {}
    for name, values in fetched(groups).items():
        sums[name.removeprefix("sum_")] = values
    sums.setdefault("weight", sums["count"].astype(np.float64))
    return sums


class _Parts(NamedTuple):
    """A division of cells, here called parents, into parts of equal width.

    The parts of all parents are numbered in sequence. A score of parent i lies in the
    part ``first[i] + floor((score - low[i]) * scale[i])``.

    Attributes
    ----------
    first : ndarray of int32, shape (n_parents,)
        Number of the first part of each parent.
    low : ndarray of shape (n_parents,)
        Least score of each parent.
    scale : ndarray of shape (n_parents,)
        Number of parts per unit of the score.
    all_are_divided : bool
        Whether every parent has at least two parts.
    """

    first: np.ndarray
    low: np.ndarray
    scale: np.ndarray
    all_are_divided: bool


def _parts_of(parents):
    """Return how some `Cells` are divided into parts of equal width, as `_Parts`: of
    about `_ROWS_OF_PART` rows each, or more rows in at most `_MOST_CELLS` parts.
    """
    rows_of_part = max(_ROWS_OF_PART, parents.count.sum() / _MOST_CELLS)
    n_parts = np.maximum(2, parents.count / rows_of_part)
    width = parents.high - parents.low
    with np.errstate(over="ignore"):
        scale = np.minimum(n_parts / width, _LARGEST_SCALE)
    # The last part of each parent, counted from 0; it is 0 only if the width is so
    # small that the scale was limited.
    last = np.floor(width * scale)
    n_before = np.append(0, np.cumsum(last[:-1] + 1))
    return _Parts(n_before.astype(np.int32), parents.low, scale, bool(last.all()))


class Cells(Bunch):
    """Sums over the rows of each cell, by segment and score.

    A cell is a set of rows of one segment with neighbouring scores; if its least and
    greatest score agree, it holds all rows with one score. It is a dict of columns; a column is an attribute as well: ``cells.low`` is
    ``cells["low"]``.

    Parameters
    ----------
    segment : ndarray of int, shape (n_cells,)
        Index of the segment.
    low, high : ndarray of shape (n_cells,)
        Least and greatest score.
    number : ndarray of int, shape (n_cells,)
        Value of the column `cell` in the engine's frame of rows.
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
        """Return the cells sorted by segment, then by score.

        In cells with a single score the sums of scores and distances are computed from
        that score and the sum of the weights, which is more exact.
        """
        cells = self.at(np.lexsort((self.low, self.segment)))
        has_one_score = cells.low == cells.high
        score = cells.low
        quantities = {"score": score, "distance": np.minimum(score, 1 - score)}
        for name in _SUMS.keys() & cells.keys():
            # The sum is that of quantity^power times the factor, a name of a column.
            quantity, power, factor = _SUMS[name]
            if_one_score = quantities[quantity] ** power * cells[factor]
            cells[name][has_one_score] = if_one_score[has_one_score]
        return cells

    def joined(self, other):
        """Return these cells and the `other` ones, sorted by segment and score. Both
        are emptied field by field to save memory: there may be millions of cells.
        """
        low = np.concatenate((self.low, other.low))
        segment = np.concatenate((self.segment, other.segment))
        order = np.lexsort((low, segment))
        joined = Cells()
        for name in list(self):
            joined[name] = np.concatenate((self.pop(name), other.pop(name)))[order]
        return joined

    def pooled(self, starts):
        """Return the cells with each run of neighbours merged into one cell.

        `starts` (n_cells,) is True where a run begins, as at the first cell. A merged
        cell has the `number` and `depth` of its first one, and must not be split.
        """
        first = np.flatnonzero(starts)
        if len(first) == 0:
            return self  # no cells
        # A run ends before the next one begins, the last run at the last cell.
        last = np.append(first[1:], len(starts)) - 1
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
        Names of the sums of `_SUMS` that are needed: fewer take less time and memory.
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
    rows_by_depth : list of (LazyFrame, list of str)
        Entry d is for cells that result from d splits: a frame of their rows, and the
        columns of this frame that identify a cell.
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
        cell_columns = ["segment", "cell"] if keys else ["cell"]
        # After each number of splits, from 0 on: a lazy frame of the rows, and the
        # names of the columns that identify their cells.
        self.rows_by_depth = [(segments.attached(rows), cell_columns)]
        # The sum of all scores shows a NaN that the engine's filters have missed.
        further = []
        if "weighted_score" not in score_sums:
            further.append(nw.col("score").sum().alias("weighted_score"))
        groups = self._grouped_by_cell(rows, [*keys, "cell"], *further)
        # Joining the groups to the segments is faster than joining all rows.
        sums = _fetched_sums(segments.attached(groups))
        columns.check_rows(sums)
        check_no_hidden_nan(sums["weighted_score"], sums["weight"])
        self.n_rows = int(sums["count"].sum())
        # `segment_of_cell` (n_cells,) holds positions in `self.segments`.
        self.segments, segment_of_cell = segments.found(sums)
        self.segment_numbers = np.unique(sums["segment"]) if keys else None
        self.cells = self._cells(sums, segment_of_cell, depth=0)

    def by_segment(self):
        """Return a dict from the key of a segment, a tuple, to its `Cells`."""
        # Cells are sorted by segment: segment i has those from bounds[i] to
        # bounds[i + 1].
        positions = np.arange(len(self.segments) + 1)
        bounds = np.searchsorted(self.cells.segment, positions)
        cells = {}
        for position, key in enumerate(self.segments):
            cells[key] = self.cells.at(slice(bounds[position], bounds[position + 1]))
        return cells

    def n_distinct_scores(self):
        """Return the number of distinct scores, summed over the segments."""
        rows, cell_columns = self.rows_by_depth[0]
        columns = [name for name in cell_columns if name != "cell"]
        distinct = rows.group_by([*columns, "score"]).agg(nw.len().alias("n"))
        return int(fetched(distinct.select(nw.len().alias("n")))["n"][0])

    def refine(self, is_needed, pool=False):
        """Split cells until those that are needed are distinct scores.

        `is_needed(cells)` gets the `Cells` of one segment and returns a mask
        (n_cells,). A cell that is not needed once must not be needed later. To bound
        the memory, some cells with about 2^26 rows are split down to distinct scores
        before others are; with `pool` the cells between two needed ones are merged.
        """
        while True:
            needed = self._still_needed(is_needed)
            to_split = self._next_to_split(needed)
            if not to_split.any():
                return
            parents = self.cells.at(to_split)
            others = self.cells.at(~to_split)
            self.cells = None  # frees the memory of millions of cells
            if pool:
                # A needed cell is a run of its own, and so are the cells between two
                # needed ones: a run begins at each needed cell and after it.
                follows_needed = np.append(True, needed[:-1])
                starts = needed | follows_needed
                others = others.pooled(starts[~to_split])
            self.cells = others.joined(self._split(parents))

    def _still_needed(self, is_needed):
        """Return a mask of the needed cells of all segments, and mark the others as
        settled: they are not asked for again.
        """
        # Cells are sorted by segment, as the masks are.
        masks = [is_needed(cells) for cells in self.by_segment().values()]
        needed = np.zeros(0, dtype=bool)  # for a table without rows
        if masks:
            needed = np.concatenate(masks)
        needed &= self.cells.depth != _SETTLED
        self.cells.depth[~needed] = _SETTLED
        return needed

    def _next_to_split(self, needed):
        """Return a mask of the cells to be split next: needed cells with several scores
        and the same depth, with about 2^26 rows together. All are False if none must be
        split.
        """
        cells = self.cells
        to_split = np.zeros(len(needed), dtype=bool)
        wide = np.flatnonzero(needed & (cells.low < cells.high))
        if len(wide) == 0:
            return to_split
        # First those that were split most often, in the order of their scores.
        deepest = wide[cells.depth[wide] == cells.depth[wide].max()]
        deepest = deepest[np.argsort(cells.low[deepest], kind="stable")]
        # Batches of about equal numbers of rows; the first cell in any case.
        n_rows_up_to = np.cumsum(cells.count[deepest])
        n_rows = n_rows_up_to[-1]
        n_batches = max(1, round(n_rows / _MOST_SPLIT))
        most_rows = max(n_rows / n_batches, n_rows_up_to[0])
        to_split[deepest[n_rows_up_to <= most_rows]] = True
        return to_split

    def _split(self, parents):
        """Return the cells into which some cells of one depth are split: one for each
        distinct score or, where these would be too many, parts of equal width.
        """
        n_rows = parents.count.sum()
        depth = parents.depth[0]
        parts = _parts_of(parents)
        # Each row with `first`, `start` and `scale` of its parent.
        rows = self._rows_of(parents, parts)
        row_columns = ["score", "label"]
        if self.weighted:
            row_columns.append("weight")
        most_fetched = max(self.n_rows * _FETCHED_SHARE, _FEW_FETCHED)
        most_fetched = min(most_fetched, _MOST_FETCHED)
        # A parent too narrow to be divided has its distinct scores fetched, however
        # many rows there are.
        if n_rows <= most_fetched or not parts.all_are_divided:
            rows = rows.select(*row_columns, nw.col("first").alias("cell"))
            sums = self._sums_by_score(rows)
        else:
            part = ((nw.col("score") - nw.col("start")) * nw.col("scale")).floor()
            cell = nw.col("first") + part.cast(nw.Int32)
            rows = rows.select(*row_columns, cell.alias("cell"))
            # Deeper frames are of parents that were split before: not needed any more.
            self.rows_by_depth[depth + 1 :] = [(rows, ["cell"])]
            sums = _fetched_sums(self._grouped_by_cell(rows, ["cell"]))
        # The parent of a part is the last one whose first part is not after it.
        parent = np.searchsorted(parts.first, sums["cell"], side="right") - 1
        self._check_totals(parents, sums, parent)
        return self._cells(sums, parents.segment[parent], depth=depth + 1)

    def _rows_of(self, parents, parts):
        """Return a lazy frame of the rows of cells of one depth, each with its cell's
        `first`, `start` and `scale`: the entries of the `_Parts`.
        """
        frame, cell_columns = self.rows_by_depth[parents.depth[0]]
        # Rows of other scores are left out as the file is read, before the join.
        score = nw.col("score")
        is_between = (score >= parents.low.min()) & (score <= parents.high.max())
        frame = frame.filter(is_between)
        keys = {"cell": parents.number}
        if "segment" in cell_columns:
            keys["segment"] = self.segment_numbers[parents.segment]
        of_parent = {"first": parts.first, "start": parts.low, "scale": parts.scale}
        table = joinable(frame, {**keys, **of_parent})
        frame = frame.join(table, on=list(keys), how="inner")
        # Columns are selected before they are computed with: Ibis would put the
        # expressions into the join.
        columns = ["score", "label"]
        if self.weighted:
            columns.append("weight")
        return frame.select(*columns, *of_parent)

    def _check_totals(self, parents, sums, parent):
        """Raise unless the new cells add up to their parents, as they do if the table
        has not changed. `parent` holds the parents' positions.
        """
        # Counts are exact, and so are sums of labels without weights.
        exact_sums = ["count"]
        if not self.weighted:
            exact_sums.append("weighted_label")
        for name in exact_sums:
            total = np.bincount(parent, sums[name], len(parents.low))
            if not np.array_equal(total, parents[name]):
                raise table_changed()

    def _cells(self, sums, segment, depth):
        """Return sorted `Cells` from sums over each of them, arrays (n_cells,) by name,
        the position of each cell's segment (n_cells,), and the number of splits behind
        them.
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
        needed = {name: sums[name] for name in names if name in sums}
        depths = np.full(len(segment), depth)
        cells = Cells(segment=segment, number=sums["cell"], depth=depths, **needed)
        return cells.ordered()

    def _summands(self):
        """Return what a row adds to the sums that do not depend on its score: the
        weight (else the count), the weight of an event, and the squared weight, which
        only sums of squared scores need.
        """
        label = nw.col("label").cast(nw.Float64)
        if not self.weighted:
            return {"weighted_label": label}
        weight = nw.col("weight")
        summands = {"weight": weight, "weighted_label": weight * label}
        if "weighted_score_squared" in self.score_sums:
            summands["weight_squared"] = weight * weight
        return summands

    def _grouped_by_cell(self, frame, names, *further):
        """Return a lazy frame with one row per cell, identified by the columns `names`:
        the number of rows, all sums that are needed, the least and the greatest score,
        and `further` aggregates.
        """
        score = nw.col("score")
        # The distance from the nearer of 0 and 1 is a column, so that engines compute
        # it once for all sums.
        distance = nw.when(score <= 0.5).then(score).otherwise(1 - score)
        frame = frame.with_columns(distance.alias("distance_from_end"))
        quantities = {"score": score, "distance": nw.col("distance_from_end")}
        # What a row adds to each sum: first the weights alone, which are also the
        # factors of the others, then a power of the score or distance times a factor.
        factors = self._summands()
        summands = dict(factors)
        for name in self.score_sums:
            summands[name] = _product(name, quantities, factors)
        ends = (score.min().alias("low"), score.max().alias("high"))
        return _grouped(frame, names, summands, [*ends, *further])

    def _sums_by_score(self, frame):
        """Return sums over each cell and distinct score by name; those of scores and
        distances are 0, since `Cells.ordered` computes them.
        """
        groups = _grouped(frame, ["cell", "score"], self._summands())
        sums = _fetched_sums(groups)
        for name in self.score_sums:
            sums[name] = np.zeros(len(sums["count"]))
        sums["low"] = sums["score"]
        sums["high"] = sums["score"]
        return sums
