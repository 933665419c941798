"""A histogram of the scores that is split where a question needs it, down to distinct scores."""

import numpy as np
from sklearn.utils import Bunch

from skcalib.engines._cells import coarse_cell
from skcalib.engines._columns import check_no_hidden_nan
from skcalib.engines._native import beside, fetched, narwhals
from skcalib.engines._segments import table_changed

# Sums of the rows' weight times a power of the score, or of its distance from the nearer end; of all rows or of events.
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
# Rows of split cells that are fetched as distinct scores; of more, a finer histogram comes first.
_MOST_FETCHED = 2**21
# Cells of one finer histogram, over all that are split, and of one cell; rows that a cell should hold.
_MOST_CELLS, _MOST_PARTS, _ROWS_OF_PART = 2**20, 2**10, 16
_ROWS_OF_SMALL = 64  # of cells whose scores are fetched rather than split
_SETTLED = -2  # parent of a cell that is not split any more
_LARGEST_EXPONENT = 1000.0


class Cells(Bunch):
    """Sums over the rows of each cell, by segment and score. A cell whose least and greatest score agree is a score.

    Parameters
    ----------
    segment : ndarray of int, shape (n_cells,)
        Index of the segment.
    low, high : ndarray of shape (n_cells,)
        Least and greatest score.
    number : ndarray of int, shape (n_cells,)
        What the engine calls the cell.
    parent : ndarray of int, shape (n_cells,)
        The split cell that it was a part of; -1 for those of the first histogram, -2 for those that stay.
    count, weight, weighted_label : ndarray
        See `BinStatistics`.
    weighted_score, weighted_score_squared, weighted_score_label, weight_squared : ndarray
        The same, where they were asked for, the last one with weights only.
    distance, distance_squared, distance_label, distance_squared_label : ndarray
        Where they were asked for: sums of the distance of the score from the nearer of 0 and 1, of its square, and of
        the events' alone.
    """

    def at(self, index):
        """Return the cells of an index."""
        return Cells(**{name: values[index] for name, values in self.items()})

    def ordered(self):
        """Return the cells by segment, then by score; where least and greatest agree the sums are made from them."""
        cells = self.at(np.lexsort((self.low, self.segment)))
        point = cells.low == cells.high
        base = {"score": cells.low, "distance": np.minimum(cells.low, 1 - cells.low)}
        for name in _SUMS.keys() & cells.keys():
            of, power, factor = _SUMS[name]
            cells[name][point] = (base[of] ** power * cells[factor])[point]
        return cells

    def joined(self, other):
        """Return the cells of both, in order. Each field is given up at once: there may be millions of cells."""
        order = np.lexsort([np.concatenate((self[name], other[name])) for name in ("low", "segment")])
        return Cells(**{name: np.concatenate((self.pop(name), other.pop(name)))[order] for name in list(self)})

    def pooled(self, starts):
        """Return the cells with those between two starts as one; what was a cell's number has no meaning then."""
        first, sums = np.flatnonzero(starts), self.items()
        last = np.append(first[1:], len(starts))[: len(first)] - 1  # no cells: none
        kept = {name: values[first] for name, values in sums if name in ("segment", "low", "number", "parent")}
        kept["high"] = self.high[last]
        return Cells(**kept, **{name: np.add.reduceat(values, first) for name, values in sums if name not in kept})


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
        nw, (rows, keys, segments) = narwhals(), columns.rows()
        self.score_sums = score_sums
        self.weighted = columns.weight is not None
        cell = coarse_cell(_CELLS_OF_SEGMENT if keys else _CELLS) if cell is None else cell
        rows = rows.with_columns(cell.alias("cell"))
        # What the engine knows the cells of the last histogram by: columns of `frame`.
        self.frame, self.names = segments.attached(rows), ["segment", "cell"] if keys else ["cell"]
        extent = [nw.col("score").min().alias("low"), nw.col("score").max().alias("high")]
        if "weighted_score" not in score_sums:  # which finds NaN
            extent.append(nw.col("score").sum().alias("weighted_score"))
        sums = self._sums(rows, [*keys, "cell"], extent, segments)
        columns.check_rows(sums)
        check_no_hidden_nan(sums["weighted_score"], sums["weight"])
        self.segments, codes = segments.found(sums)
        self.segment_numbers = np.unique(sums["segment"]) if keys else None
        parent = np.full(len(sums["count"]), -1)
        self.cells = self._cells(sums, codes, parent, sums["low"], sums["high"], sums["cell"])

    def by_segment(self):
        """Return the cells of each segment, a dict whose keys are tuples."""
        ends = np.searchsorted(self.cells.segment, np.arange(len(self.segments) + 1))
        return {key: self.cells.at(slice(*ends[code : code + 2])) for code, key in enumerate(self.segments)}

    @property
    def n_rows(self):
        """Number of valid rows."""
        return int(self.cells.count.sum())

    def refine(self, is_needed, most_fetched=None, begins=None):
        """Split cells until those that are still needed are distinct scores.

        `is_needed(cells)` is given the cells of one segment and returns a mask. A cell that is not needed once is not
        needed later. Questions to which few of the parts of a cell matter fetch fewer rows. `begins(cells)` returns the
        cells that must stay apart from the one before; others are pooled once neither is needed, which bounds memory.
        """
        most_fetched = _MOST_FETCHED if most_fetched is None else min(most_fetched, _MOST_FETCHED)
        while True:
            masks = [is_needed(cells) for cells in self.by_segment().values()]
            needed = np.concatenate([np.zeros(0, dtype=bool), *masks]) & (self.cells.parent != _SETTLED)
            split = needed & (self.cells.low < self.cells.high)
            if not split.any():
                return
            starts = np.ones(len(split), dtype=bool)
            if begins is not None:
                starts = np.concatenate([begins(cells) for cells in self.by_segment().values()])
                starts |= needed | np.append(True, needed[:-1])
            parents, kept, self.cells = self.cells.at(split), self.cells.at(~split).pooled(starts[~split]), None
            kept.parent[:] = _SETTLED
            parts = self._parts(parents, most_fetched)
            # With weights of 0 and 1 for labels both sums are exact; events need not be with other weights.
            for name in ("count",) if self.weighted else ("count", "weighted_label"):
                sums = np.bincount(parts.parent, getattr(parts, name), len(parents.low))
                if not np.array_equal(sums, getattr(parents, name)):
                    raise table_changed()
            self.cells = kept.joined(parts)

    def _parts(self, parents, most_fetched):
        """Return what the given cells hold: their distinct scores, or a finer histogram where these are too many."""
        nw, n_rows, scale = narwhals(), parents.count.sum(), _scale(parents)
        steps = np.floor((parents.high - parents.low) * scale)
        first = np.append(0, np.cumsum(steps[:-1] + 1)).astype(np.int32)  # number of the first part of each
        keys = {name: self.segment_numbers[parents.segment] for name in self.names[:-1]} | {"cell": parents.number}
        small = {"first": first, "start": parents.low, "scale": scale}
        kept = [nw.col("score"), nw.col("label"), *([nw.col("weight")] if self.weighted else [])]
        # The columns of the join are chosen before they are computed with: Ibis would join to the expressions.
        frame = self.frame.join(beside(self.frame, keys | small), on=list(keys), how="inner").select(*kept, *small)
        # Splitting small cells leaves about as many rows; one too narrow to be divided is fetched, however many it has.
        if (
            n_rows <= most_fetched
            or n_rows <= min(_MOST_FETCHED, _ROWS_OF_SMALL * len(scale))
            or np.any((parents.high - parents.low) * scale < 1)
        ):
            columns = self._sums(frame.select(*kept, nw.col("first").alias("cell")), ["cell", "score"])
            low = high = columns["score"]
        else:
            part = ((nw.col("score") - nw.col("start")) * nw.col("scale")).floor().cast(nw.Int32)
            self.frame, self.names = frame.select(*kept, (nw.col("first") + part).alias("cell")), ["cell"]
            extent = [nw.col("score").min().alias("low"), nw.col("score").max().alias("high")]
            columns = self._sums(self.frame, ["cell"], extent)
            low, high = columns["low"], columns["high"]
        of = np.searchsorted(first, columns["cell"], side="right") - 1
        return self._cells(columns, parents.segment[of], of, low, high, columns["cell"])

    def _cells(self, columns, segment, parent, low, high, number):
        names = ("count", "weight", "weighted_label", "weight_squared", *self.score_sums)
        sums = {name: columns[name] for name in names if name in columns}
        return Cells(segment=segment, low=low, high=high, number=number, parent=parent, **sums).ordered()

    def _sums(self, frame, names, extent=(), segments=None):
        """Return the sums of a group-by as a dict of arrays."""
        nw = narwhals()
        weight, score, label = nw.col("weight"), nw.col("score"), nw.col("label").cast(nw.Float64)
        by_score = "score" in names
        products = {"weighted_label": weight * label if self.weighted else label}
        if not by_score:
            if any(_SUMS[name][0] == "distance" for name in self.score_sums):
                frame = frame.with_columns(nw.when(score <= 0.5).then(score).otherwise(1 - score).alias("of"))
            for name in self.score_sums:
                of, power, factor = _SUMS[name]
                value = score if of == "score" else nw.col("of")
                value = value * value if power == 2 else value
                value = value * weight if self.weighted else value
                products[name] = value * label if factor == "weighted_label" else value
        if self.weighted:
            products["weights"] = weight
            if "weighted_score_squared" in self.score_sums:
                products["weight_squared"] = weight * weight
        frame = frame.with_columns(**products)
        sums = [nw.col(name).sum().alias(f"sum_{name}") for name in products]
        grouped = frame.group_by(names).agg(nw.len().alias("count"), *sums, *extent)
        columns = fetched(grouped if segments is None else segments.attached(grouped))
        columns = {name.removeprefix("sum_"): values for name, values in columns.items()}
        columns["weight"] = columns["weights"] if self.weighted else columns["count"].astype(np.float64)
        if by_score:  # `ordered` makes them
            columns |= {name: np.zeros(len(columns["count"])) for name in self.score_sums}
        return columns


def _scale(parents):
    """Return the power of two by which the scores of each cell are multiplied, so that it falls into several parts."""
    most = min(_MOST_CELLS, int(parents.count.sum()) // _ROWS_OF_PART) // len(parents.low)
    with np.errstate(over="ignore"):
        parts = min(_MOST_PARTS, max(2, most)) / (parents.high - parents.low)
    return np.exp2(np.minimum(np.floor(np.log2(parts)), _LARGEST_EXPONENT))
