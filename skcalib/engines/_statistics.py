"""Bin statistics of a table: edges from the cells of a histogram, sums from cells that no edge cuts."""

from dataclasses import fields
from numbers import Integral

import numpy as np

from skcalib._cells.statistics import BinStatistics, unchecked_statistics
from skcalib.binning import EqualMass, EqualWidth, FixedEdges, UniqueScores, assign_bins, check_binning
from skcalib.binning._base import edges_above, resolve_n_bins
from skcalib.binning._equal_mass import equal_mass_cuts
from skcalib.engines._cells import nearly_width_bin, width_bin
from skcalib.engines._columns import check_no_hidden_nan
from skcalib.engines._histogram import ScoreHistogram
from skcalib.engines._native import fetched, narwhals

__all__ = ["binned", "check_strategy", "equal_mass_cells", "statistics_of"]

_MOST_DISTINCT = 10**6
_SUMS = [field.name for field in fields(BinStatistics) if field.name != "edges"]


def check_strategy(binning):
    """Return the strategy that a user gave, one of those that tables know."""
    strategy = check_binning(binning)
    if type(strategy) not in (EqualWidth, EqualMass, FixedEdges, UniqueScores):
        raise ValueError(
            f"binning must be EqualWidth, EqualMass, FixedEdges or UniqueScores for a table, found {strategy!r}. Other "
            "strategies take the rows of weighted_scores()."
        )
    return strategy


def binned(columns, strategy):
    """Return bin statistics by segment (a dict; its keys are tuples)."""
    if type(strategy) is EqualWidth and isinstance(strategy.n_bins, Integral):
        return _equal_width(columns, resolve_n_bins(strategy.n_bins, 1))
    histogram = ScoreHistogram(columns)
    if type(strategy) is UniqueScores:
        _check_few_scores(histogram)
    histogram.refine(lambda cells: _is_cut(cells, strategy, histogram.weighted))
    parts = histogram.by_segment().items()
    return {key: statistics_of(cells, _edges(cells, strategy, histogram.weighted)) for key, cells in parts}


def statistics_of(cells, edges):
    """Return the bin statistics of cells that no edge cuts."""
    bins = assign_bins(cells.high, edges)
    present = [name for name in _SUMS if getattr(cells, name) is not None]
    sums = {name: np.bincount(bins, getattr(cells, name), len(edges) - 1) for name in present}
    return unchecked_statistics(edges, **sums | {"count": sums["count"].astype(np.int64)})


def equal_mass_cells(cells, n_bins, weighted):
    """Return the positions of the cells that hold a cut of equal-mass bins."""
    return equal_mass_cuts(np.cumsum(cells.weight if weighted else cells.count), n_bins)


def _is_cut(cells, strategy, weighted):
    """Return which cells must be split so that edges are exact and cut none."""
    if type(strategy) is UniqueScores:
        return np.ones(len(cells.low), dtype=bool)
    if type(strategy) is EqualMass:
        needed = np.zeros(len(cells.low), dtype=bool)
        needed[equal_mass_cells(cells, _n_bins(cells, strategy, weighted), weighted)] = True
        return needed
    edges = _edges(cells, strategy, weighted)
    return assign_bins(cells.low, edges) != assign_bins(cells.high, edges)


def _edges(cells, strategy, weighted):
    """Return the edges, once the cells that hold a cut are distinct scores."""
    if type(strategy) is EqualWidth:
        return EqualWidth(_n_bins(cells, strategy, weighted))._edges_of(cells.low)
    if type(strategy) is FixedEdges:
        return strategy._edges_of(cells.low)
    cuts = np.arange(len(cells.low))
    if type(strategy) is EqualMass:
        cuts = equal_mass_cells(cells, _n_bins(cells, strategy, weighted), weighted)
    scores = np.unique(np.append(cells.low, cells.high))
    edges = edges_above(scores, np.searchsorted(scores, cells.low[cuts]))
    edges[[0, -1]] = 0, 1
    return edges


def _n_bins(cells, strategy, weighted):
    # More equal-mass bins than rows are one per row, however many are asked for.
    bound = {"maximum": 2**53} if type(strategy) is EqualMass and not weighted else {}
    return resolve_n_bins(strategy.n_bins, int(cells.count.sum()), cells.weight if weighted else None, **bound)


def _equal_width(columns, n_bins):
    """Return the statistics under equal-width bins from one group-by by bin and label.

    A second one follows where scores lie so near to an edge that the plain rule missed their bin: rounded ones.
    """
    edges = EqualWidth(n_bins)._edges_of(np.zeros(1))
    rows = columns.rows()
    sums = _width_sums(columns, rows, nearly_width_bin(n_bins))
    if np.any((sums["low"] <= edges[sums["bin"]]) & (sums["bin"] > 0)) or np.any(sums["high"] > edges[sums["bin"] + 1]):
        sums = _width_sums(columns, rows, width_bin(n_bins))
    segments, of = rows.segments.found(sums)
    weight, score = sums["weight"], sums["weighted_score"]
    values = {
        "count": sums["count"],
        "weight": weight,
        "weighted_score": score,
        "weighted_label": weight * sums["label"],
        "weighted_score_squared": sums["weighted_score_squared"],
        "weighted_score_label": score * sums["label"],
    }
    if "weight_squared" in sums:
        values["weight_squared"] = sums["weight_squared"]
    cell, shape = of * n_bins + sums["bin"], (len(segments), n_bins)
    sums = {name: np.bincount(cell, of_cell, shape[0] * n_bins).reshape(shape) for name, of_cell in values.items()}
    sums["count"] = sums["count"].astype(np.int64)
    return {
        key: unchecked_statistics(edges, **{name: values[code] for name, values in sums.items()})
        for code, key in enumerate(segments)
    }


def _width_sums(columns, rows, bin_number):
    """Return the sums by segment, bin (from 0) and label; of a single score they are made from it."""
    nw, weighted = narwhals(), columns.weight is not None
    score = nw.col("weight") * nw.col("score") if weighted else nw.col("score")
    frame = rows.frame.with_columns(bin_number.alias("bin"), score.alias("weighted_score"))
    frame = frame.with_columns((nw.col("weighted_score") * nw.col("score")).alias("weighted_score_squared"))
    names = ["weighted_score", "weighted_score_squared"]
    if weighted:
        frame = frame.with_columns((nw.col("weight") * nw.col("weight")).alias("weight_squared"))
        names += ["weight", "weight_squared"]
    extent = [nw.col("score").min().alias("low"), nw.col("score").max().alias("high")]
    grouped = frame.group_by([*rows.keys, "bin", "label"])
    sums = grouped.agg(nw.len().alias("count"), *(nw.col(name).sum().alias(f"sum_{name}") for name in names), *extent)
    sums = fetched(rows.segments.attached(sums))
    sums = {name.removeprefix("sum_"): values for name, values in sums.items()}
    columns.check_rows(sums)
    sums.setdefault("weight", sums["count"].astype(np.float64))
    check_no_hidden_nan(sums["weighted_score"], sums["weight"])
    sums["bin"] = np.maximum(sums["bin"] - 1, 0)
    point = sums["low"] == sums["high"]
    for name, power in (("weighted_score", 1), ("weighted_score_squared", 2)):
        sums[name] = np.where(point, sums["weight"] * sums["low"] ** power, sums[name])
    return sums


def _check_few_scores(histogram):
    """Refuse a table of too many distinct scores before they are fetched."""
    if histogram.n_rows <= _MOST_DISTINCT:
        return
    nw, names = narwhals(), [*histogram.names[:-1], "score"]
    distinct = histogram.frame.group_by(names).agg(nw.len().alias("n"))
    n_distinct = int(fetched(distinct.select(nw.len().alias("n")))["n"][0])
    if n_distinct > _MOST_DISTINCT:
        raise ValueError(
            f"UniqueScores makes {n_distinct} bins of this table, which is more than {_MOST_DISTINCT}. Use EqualMass, "
            "or metrics without bins on weighted_scores()."
        )
