"""Bin statistics of a table: edges from the cells of a histogram, sums from cells that
no edge cuts.
"""

from dataclasses import fields
from numbers import Integral

import numpy as np

from skcalib._cells.statistics import BinStatistics, unchecked_statistics
from skcalib.binning import (
    EqualMass,
    EqualWidth,
    FixedEdges,
    UniqueScores,
    check_binning,
)
from skcalib.binning._base import assign_bins, edges_above, resolve_n_bins
from skcalib.binning._equal_mass import equal_mass_cuts
from skcalib.engines._histogram import ScoreHistogram, width_bin

_MOST_DISTINCT = 10**6
_SUMS = [field.name for field in fields(BinStatistics) if field.name != "edges"]


def check_strategy(binning):
    """Return the binning strategy that a user gave, or raise if tables do not support
    it.
    """
    strategy = check_binning(binning)
    if type(strategy) not in (EqualWidth, EqualMass, FixedEdges, UniqueScores):
        raise ValueError(
            "binning must be EqualWidth, EqualMass, FixedEdges or UniqueScores for a"
            f" table, found {strategy!r}. Apply other strategies to the rows of"
            " weighted_scores()."
        )
    return strategy


def binned(columns, strategy):
    """Return a dict from the key of a segment, a tuple, to the `BinStatistics` of a
    table's rows in bins of a binning strategy.
    """
    first_cell = None  # the coarse cells
    if type(strategy) is EqualWidth and isinstance(strategy.n_bins, Integral):
        # The cells are the bins themselves, so that one pass is enough: cells are split
        # only where a score lies next to an edge. A fixed number of bins does not
        # depend on the number of rows, and is only checked here.
        first_cell = width_bin(resolve_n_bins(strategy.n_bins, n_rows=1))
    # Sums over the rows of each cell, a range of scores in one segment.
    histogram = ScoreHistogram(columns, cell=first_cell)
    if type(strategy) is UniqueScores:
        _check_few_scores(histogram)
    weighted = histogram.weighted
    n_bins = []  # of each segment
    for cells in histogram.by_segment().values():
        n_bins.append(_n_bins(cells, strategy, weighted))

    def is_needed(cells):
        """Return a mask of the cells of one segment that must be split."""
        position = cells.segment[0]  # the same for all cells
        return _must_be_split(cells, strategy, n_bins[position], weighted)

    histogram.refine(is_needed)
    statistics = {}
    for (key, cells), n in zip(histogram.by_segment().items(), n_bins, strict=True):
        edges = _edges(cells, strategy, n, weighted)
        statistics[key] = statistics_of(cells, edges)
    return statistics


def statistics_of(cells, edges):
    """Return the `BinStatistics` of `Cells` of one segment, each of which lies within
    one of the bins with these edges.
    """
    bin_of_cell = assign_bins(cells.high, edges)
    sums = {}
    for name in _SUMS:
        if name in cells:
            sums[name] = np.bincount(bin_of_cell, cells[name], len(edges) - 1)
    sums["count"] = sums["count"].astype(np.int64)
    return unchecked_statistics(edges, **sums)


def equal_mass_cells(cells, n_bins, weighted):
    """Return the positions of the cells, in the order of scores, in which a bin of
    equal mass ends and the next one begins.
    """
    mass = cells.weight if weighted else cells.count
    return equal_mass_cuts(np.cumsum(mass), n_bins)


def _must_be_split(cells, strategy, n_bins, weighted):
    """Return a mask of a segment's cells that must be split so that the strategy's
    edges are exact and each cell lies within one bin. `n_bins` is None if the strategy
    has no number; `weighted` says whether the table has weights.
    """
    if type(strategy) is UniqueScores:
        return np.ones(len(cells.low), dtype=bool)
    if type(strategy) is EqualMass:
        holds_edge = np.zeros(len(cells.low), dtype=bool)
        holds_edge[equal_mass_cells(cells, n_bins, weighted)] = True
        return holds_edge
    edges = _edges(cells, strategy, n_bins, weighted)
    return assign_bins(cells.low, edges) != assign_bins(cells.high, edges)


def _edges(cells, strategy, n_bins, weighted):
    """Return the edges (n_bins + 1,) of a segment's bins, exact once the cells in which
    a bin ends are distinct scores; `n_bins` is None for `UniqueScores`.
    """
    if type(strategy) is EqualWidth:
        return EqualWidth(n_bins)._edges_of(cells.low)
    if type(strategy) is FixedEdges:
        return strategy._edges_of(cells.low)
    # Positions of the cells in which a bin ends: all of them, or about n_bins - 1.
    if type(strategy) is UniqueScores:
        last_cells = np.arange(len(cells.low))
    else:
        last_cells = equal_mass_cells(cells, n_bins, weighted)
    # Each edge lies halfway between the lowest score of such a cell and the next score
    # above it; `edges_above` takes positions among sorted scores.
    scores = np.unique(np.append(cells.low, cells.high))
    edges = edges_above(scores, np.searchsorted(scores, cells.low[last_cells]))
    edges[[0, -1]] = 0, 1
    return edges


def _n_bins(cells, strategy, weighted):
    """Return the number of bins, which a rule such as "sqrt" derives from the rows or
    weights; None for `FixedEdges` and `UniqueScores`.
    """
    if type(strategy) not in (EqualWidth, EqualMass):
        return None
    n_rows = int(cells.count.sum())
    if weighted:
        return resolve_n_bins(strategy.n_bins, n_rows, cells.weight)
    if type(strategy) is EqualMass:
        # More bins than rows give one bin per row, so that any number is allowed.
        return resolve_n_bins(strategy.n_bins, n_rows, maximum=2**53)
    return resolve_n_bins(strategy.n_bins, n_rows)


def _check_few_scores(histogram):
    """Refuse a table of too many distinct scores before they are fetched."""
    if histogram.n_rows <= _MOST_DISTINCT:
        return
    n_distinct = histogram.n_distinct_scores()
    if n_distinct > _MOST_DISTINCT:
        raise ValueError(
            f"UniqueScores would give {n_distinct} bins for this table, which is more"
            f" than {_MOST_DISTINCT}. Use EqualMass, or metrics without bins on"
            " weighted_scores()."
        )
