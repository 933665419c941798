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
from skcalib.engines._native import fetched, nw

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
    """Return the `BinStatistics` by segment, a dict whose keys are tuples."""
    cell = None
    if type(strategy) is EqualWidth and isinstance(strategy.n_bins, Integral):
        # The bins themselves, so that one pass is enough: cells are split only where a
        # score lies next to an edge. The number of rows does not matter for a fixed
        # number of bins, which is only checked here.
        cell = width_bin(resolve_n_bins(strategy.n_bins, n_rows=1))
    histogram = ScoreHistogram(columns, cell=cell)
    if type(strategy) is UniqueScores:
        _check_few_scores(histogram)
    weighted = histogram.weighted
    # By the number of the segment.
    n_bins = [
        _n_bins(cells, strategy, weighted) for cells in histogram.by_segment().values()
    ]

    def is_cut(cells):
        """Return which cells of a segment must be split."""
        # All cells are of one segment.
        return _is_cut(cells, strategy, n_bins[cells.segment[0]], weighted)

    histogram.refine(is_cut)
    statistics = {}
    for (key, cells), n in zip(histogram.by_segment().items(), n_bins, strict=True):
        edges = _edges(cells, strategy, n, weighted)
        statistics[key] = statistics_of(cells, edges)
    return statistics


def statistics_of(cells, edges):
    """Return the `BinStatistics` of cells that no edge cuts."""
    bins = assign_bins(cells.high, edges)
    sums = {}
    for name in _SUMS:
        if name in cells:
            sums[name] = np.bincount(bins, cells[name], len(edges) - 1)
    sums["count"] = sums["count"].astype(np.int64)
    return unchecked_statistics(edges, **sums)


def equal_mass_cells(cells, n_bins, weighted):
    """Return the positions of the cells, in the order of scores, in which a bin of
    equal mass ends and the next one begins.
    """
    mass = cells.weight if weighted else cells.count
    return equal_mass_cuts(np.cumsum(mass), n_bins)


# In the next functions `cells` are those of one segment, `n_bins` its number of bins or
# None, and `weighted` says whether the table has weights.


def _is_cut(cells, strategy, n_bins, weighted):
    """Return which cells (n_cells,) must be split so that the edges of the binning
    `strategy` are exact and no edge cuts a cell.

    A cell holds the rows with scores from `low` to `high`; `n_bins` is the number of
    bins and `weighted` says whether the table has weights.
    """
    if type(strategy) is UniqueScores:
        return np.ones(len(cells.low), dtype=bool)
    if type(strategy) is EqualMass:
        needed = np.zeros(len(cells.low), dtype=bool)
        needed[equal_mass_cells(cells, n_bins, weighted)] = True
        return needed
    edges = _edges(cells, strategy, n_bins, weighted)
    return assign_bins(cells.low, edges) != assign_bins(cells.high, edges)


def _edges(cells, strategy, n_bins, weighted):
    """Return the edges (n_bins + 1,) of the bins of one segment, whose `cells` hold the
    rows with scores from `low` to `high`. They are exact once the cells that hold a cut
    are distinct scores.
    """
    if type(strategy) is EqualWidth:
        return EqualWidth(n_bins)._edges_of(cells.low)
    if type(strategy) is FixedEdges:
        return strategy._edges_of(cells.low)
    if n_bins is None:  # each distinct score is a bin
        cuts = np.arange(len(cells.low))
    else:
        cuts = equal_mass_cells(cells, n_bins, weighted)
    # Each edge lies between the lowest score of a cell with a cut and the next score
    # above it.
    scores = np.unique(np.append(cells.low, cells.high))
    edges = edges_above(scores, np.searchsorted(scores, cells.low[cuts]))
    edges[[0, -1]] = 0, 1
    return edges


def _n_bins(cells, strategy, weighted):
    """Return the number of bins of a segment from its cells, with a rule such as "sqrt"
    from its rows; None for a strategy that has no number.
    """
    if type(strategy) not in (EqualWidth, EqualMass):
        return None
    # More equal-mass bins than rows are one bin per row, so that any number is allowed.
    options = {}
    if type(strategy) is EqualMass and not weighted:
        options["maximum"] = 2**53
    weight = cells.weight if weighted else None
    return resolve_n_bins(strategy.n_bins, int(cells.count.sum()), weight, **options)


def _check_few_scores(histogram):
    """Refuse a table of too many distinct scores before they are fetched."""
    if histogram.n_rows <= _MOST_DISTINCT:
        return
    # All rows, and the columns of their cells: that of the segment, if any, and "cell".
    frame, (*by_segment, _) = histogram.frames[0]
    distinct = frame.group_by([*by_segment, "score"]).agg(nw.len().alias("n"))
    n_distinct = int(fetched(distinct.select(nw.len().alias("n")))["n"][0])
    if n_distinct > _MOST_DISTINCT:
        raise ValueError(
            f"UniqueScores would give {n_distinct} bins for this table, which is more"
            f" than {_MOST_DISTINCT}. Use EqualMass, or metrics without bins on"
            " weighted_scores()."
        )
