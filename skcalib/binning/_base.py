"""Base of the binning strategies, and the one rule that assigns a score to a bin."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skcalib._defaults import DefaultObjects
from skcalib._described import DescribedEstimator
from skcalib._input.scalars import as_numbers, check_int, invalid
from skcalib._input.scored_labels import check_score_column
from skcalib._input.tensors import as_array
from skcalib._rows.blocks import inside_unit_interval, row_blocks
from skcalib._rows.sorting import first_rows, score_cells

# Cumulative weights are sums of floats: a cut counts as reached within this share of
# the total. Exact for counts.
WEIGHT_TOLERANCE = 1e-12

_MOST_BINS = 10**6


class BaseBinning(DescribedEstimator, DefaultObjects, BaseEstimator):
    """Base class of the binning strategies; a subclass defines ``_edges``.

    ``_edges(scores, y, sample_weight)`` receives validated arrays of equal length (`y`
    boolean or None, `sample_weight` positive float64 or None) and returns the edges,
    float64 of shape (n_bins + 1,), including the outer edges.

    Attributes
    ----------
    needs_unit_interval : bool
        Whether the edges are meaningful only on [0, 1]. If True, log-odds are first
        mapped to this interval.
    needs_labels : bool
        Whether the edges depend on `y`. A metric is biased if its bins depend on the
        labels that it uses: see the individual strategies.

    See Also
    --------
    skcalib.binning.EqualMass : Bins with equal numbers of samples.
    skcalib.binning.check_binning : Returns a strategy from a number, a strategy or
        None.

    Examples
    --------
    >>> from skcalib.binning import BaseBinning
    >>> from skcalib.metrics import expected_calibration_error
    >>> class Halves(BaseBinning):
    ...     def _edges(self, scores, y, sample_weight):
    ...         return [0, 0.5, 1]
    >>> round(
    ...     expected_calibration_error([1, 1, 0], [0.5, 0.5, 0.9], binning=Halves()), 6
    ... )
    0.633333
    """

    needs_unit_interval = True
    needs_labels = False
    # Up to this number of rows, metrics sort them before they are binned: rows of a bin
    # that stand together are summed faster.
    _sorts_up_to = 0

    def bin_edges(
        self,
        scores: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return the edges of the bins for these scores.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Scores in [0, 1].
        y : array-like of shape (n,), optional
            Labels, 0 and 1 or booleans: whether the event occurred. Required by
            strategies that need labels.
        sample_weight : array-like of shape (n,), optional
            Frequency weights: a sample with weight 2 counts twice.

        Returns
        -------
        edges : ndarray of float64, shape (n_bins + 1,)
            Edges of the resulting bins, in increasing order.

        Raises
        ------
        ValueError
            If scores, labels or weights are invalid, if the strategy needs labels and
            none are given, or if its edges do not increase.
        """
        return self._edges_of(
            *check_score_column(scores, y, sample_weight, labels_name="y")
        )

    def _edges_of(self, scores, y=None, sample_weight=None, support=(0.0, 1.0)):
        """Return the checked edges (n_bins + 1,) of the bins for valid rows of positive
        weight: scores (n,), and labels and weights (n,) or None. `support` replaces the
        outer edges: (-inf, inf) for log-odds. Raise if the strategy needs labels and
        `y` is None, or if edges do not increase.
        """
        if self.needs_labels and y is None:
            raise ValueError(
                f"{type(self).__name__} chooses its edges from the labels: pass y."
            )
        edges = self._edges(scores, y, sample_weight)  # defined by the subclass
        edges = np.array(edges, dtype=np.float64)
        if edges.ndim != 1 or len(edges) < 2:
            raise ValueError(
                f"{type(self).__name__}._edges must return at least two edges, found"
                f" {edges.shape}."
            )
        edges[0], edges[-1] = support
        # The first bin may be a point: scores of exactly 0 that are kept apart from
        # those just above.
        n_rising = np.count_nonzero(edges[1:-1] < edges[2:])
        if not edges[0] <= edges[1] or n_rising < len(edges) - 2:
            raise ValueError(
                f"{type(self).__name__} must return increasing edges, found"
                f" {edges.tolist()}."
            )
        return edges

    def _edges(self, scores, y, sample_weight):
        """Return the edges (n_bins + 1,) for validated scores (n,), labels or None, and
        positive weights or None. The support replaces the outer ones.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define _edges(scores, y, sample_weight)."
        )


def assign_bins(scores: ArrayLike, edges: ArrayLike) -> np.ndarray:
    """Return the index of each score's bin, using the rule shared by all strategies.

    Bins are right-closed; the first bin is closed on both sides.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Scores. Those beyond the outer edges belong to the outer bins.
    edges : array-like of shape (n_bins + 1,)
        Increasing edges.

    Returns
    -------
    bins : ndarray of int, shape (n,)
        Indices from 0 to n_bins - 1.

    Raises
    ------
    ValueError
        If scores or edges are not valid numbers, for example strings or NaN.

    See Also
    --------
    skcalib.binning.FixedEdges : Bins with given edges.
    skcalib.metrics.reliability_curve : Statistics of each bin.

    Examples
    --------
    A score on an edge belongs to the lower bin.

    >>> from skcalib.binning import assign_bins
    >>> assign_bins([0.0, 0.5, 0.51, 1.0], [0.0, 0.5, 1.0]).tolist()
    [0, 0, 1, 1]
    """
    scores, _ = as_array(scores)  # the second result, its library, does not matter
    edges = as_numbers(edges, "edges")
    if scores.dtype.kind != "f":
        # Numbers become float64, anything else raises. Floats stay, without a copy.
        scores = as_numbers(scores, "scores")
    for name, values in (("scores", scores), ("edges", edges)):
        if len(values) and np.isnan(values.min()):
            raise ValueError(
                f"{name} must be numbers, found NaN in row {np.isnan(values).argmax()}:"
                " drop such rows."
            )
    lookup = BinLookup(edges, scores)
    bins = np.empty(len(scores), dtype=np.intp)
    for rows in row_blocks(len(scores)):  # slices that fit the processor's cache
        bins[rows] = lookup(scores[rows])
    return bins


def resolve_n_bins(n_bins, n_rows, sample_weight=None, *, maximum=_MOST_BINS):
    """Return the number of bins that the parameter `n_bins` of a strategy means.

    Parameters
    ----------
    n_bins : int, "sqrt", "cube_root" or callable
        A number, a root of the number of samples (rounded up), or a function of this
        number.
    n_rows : int
        Number of samples.
    sample_weight : ndarray of shape (n,), default=None
        Weights, whose sum replaces `n_rows`.
    maximum : int
        The largest number that is accepted; a number of bins up to the number of
        samples is always accepted.
    """
    if sample_weight is not None:
        n_rows = max(1, round(float(np.sum(sample_weight))))
    if isinstance(n_bins, str):
        rules = {"sqrt": math.sqrt, "cube_root": math.cbrt}
        if n_bins not in rules:
            raise invalid("n_bins", "an int, 'sqrt', 'cube_root' or a callable", n_bins)
        root = rules[n_bins](n_rows)
        return math.ceil(root - 1e-9)  # a root that is an int up to rounding stays one
    if callable(n_bins):
        n_bins = n_bins(n_rows)
    return check_int(n_bins, "n_bins", maximum=max(maximum, n_rows))


def edges_above(ordered, last_of_bin):
    """Return the edges (n_bins + 1,) on [0, 1] of bins that end at the given positions
    among the sorted scores (n,): each inner edge is the midpoint between the score at
    such a position and the next larger score.

    Equal scores are not separated. The largest score has no next one, and no inner edge
    above it.
    """
    # The position of the next larger score is the number of scores up to the last one
    # of a bin, which "right" counts.
    above = ordered.searchsorted(ordered[last_of_bin], side="right")
    # Bins that end among equal scores give the same position more than once.
    distinct = above[first_rows(above)]
    inner = distinct[distinct < len(ordered)]
    return edges_between(ordered[inner - 1], ordered[inner])


def edges_between(lower, upper):
    """Return the edges (m + 2,) on [0, 1] that cut between m pairs of neighbouring
    scores: their midpoints, which belong to the lower score's bin.
    """
    lower = lower.astype(np.float64, copy=False)
    upper = upper.astype(np.float64, copy=False)
    edges = np.empty(len(lower) + 2)
    edges[0] = 0
    edges[-1] = 1
    # The midpoint of adjacent floats can round up to the upper one, which would change
    # its bin.
    middle = lower + (upper - lower) / 2
    np.minimum(middle, np.nextafter(upper, -np.inf), out=edges[1:-1])
    return edges


# Number of cells of equal width: a power of two, so that the product with a score is
# exact. Many cells per bin, and few enough for the processor's cache.
_LEAST_CELLS, _MOST_CELLS, _CELLS_PER_BIN = 1 << 12, 1 << 16, 32
# So many scores show which kind of cells suits them: cells of equal width do if at most
# this share of the scores needs a search.
_SAMPLE, _LARGEST_SHARE_SEARCHED = 1 << 12, 1 / 32
# Stands in a table for a cell that contains several inner edges. It is negative even
# after 1 is added.
_SEVERAL = -2


class BinLookup:
    """Finds the bins of many scores: a quicker ``np.searchsorted(edges[1:-1], scores)``
    for bins that are closed on the right.

    The interval [0, 1] is divided into many narrow cells. For each cell, a table holds
    the number of inner edges below it and the next inner edge. A score above this next
    edge belongs to the following bin. A binary search is needed only for scores whose
    cell contains several inner edges.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Edges in increasing order.
    scores : ndarray of shape (n,)
        All scores to be looked up, block by block. If there are few, no table is built.
    """

    def __init__(self, edges: np.ndarray, scores: np.ndarray):
        # The inner edges, in increasing order, (n_bins - 1,).
        self.cuts = np.asarray(edges[1:-1], dtype=np.float64)
        # A `_CellTable`, or None: then each score is found by a binary search.
        self.table = None
        # Whether some scores lie outside [0, 1], so that they must be clipped to it.
        self.clips = False
        # For few scores a table takes longer than it saves, and cells divide [0, 1].
        has_few_scores = 2 * len(scores) < _LEAST_CELLS
        if has_few_scores or edges[0] != 0 or edges[-1] != 1:
            return
        self.clips = not inside_unit_interval(scores)
        self.table = self._quicker_table(scores)

    def __call__(self, scores):
        """Return the bin (n,) of each score (n,)."""
        if self.table is None:
            return self.cuts.searchsorted(scores)
        bins = self._bins_by_table(self.table, scores)
        if self.table.has_several:
            # Negative bins are those that the table does not know.
            unknown = np.flatnonzero(bins < 0)
            bins[unknown] = np.searchsorted(self.cuts, scores[unknown])
        return bins

    def _quicker_table(self, scores):
        """Return a `_CellTable` of cells of equal width or, if lookup is then quicker,
        of cells that narrow towards 0 and 1.

        A million scores take .8 ms with equal cells and 1.7 ms with the others, which
        separate more edges near 0 or 1: with equal cells and bins of equal mass, half
        of the scores from Beta(.05, .05) need a search.
        """
        # `_cell_table` takes bytes, by which it remembers its last results.
        cuts = self.cuts.tobytes()
        # Powers of two: the next above 32 cells for each inner edge, and the largest
        # that is at most two for each score.
        for_bins = 1 << (_CELLS_PER_BIN * len(self.cuts)).bit_length()
        for_scores = 1 << (2 * len(scores)).bit_length() - 1
        n_cells = min(max(_LEAST_CELLS, for_bins), _MOST_CELLS, for_scores)
        equal_width = _cell_table(cuts, n_cells)
        if len(scores) < _MOST_CELLS // 4:  # too few to make a second table
            return equal_width
        step = -(-len(scores) // _SAMPLE)  # rounded up
        sample = scores[::step]
        share_searched = self._share_searched(equal_width, sample)
        if share_searched <= _LARGEST_SHARE_SEARCHED:
            return equal_width
        narrowing = _cell_table(cuts, n_cells=None)
        if self._share_searched(narrowing, sample) > share_searched:
            return equal_width
        return narrowing

    def _share_searched(self, table, scores):
        """Return the share of scores that take a binary search, since their cell
        contains several inner edges.
        """
        if not table.has_several:
            return 0.0
        return np.mean(self._bins_by_table(table, scores) < 0)

    def _bins_by_table(self, table, scores):
        """Return each score's bin (n,) by a `_CellTable`: the number of inner edges
        below the score's cell, plus 1 if it is above the next edge; negative in cells
        that contain several edges.
        """
        cells = _cells(scores, table.n_cells, self.clips)
        # "clip" is quicker than the default "raise", and changes nothing: no cell is
        # out of range.
        bins = table.n_below.take(cells, mode="clip")
        next_cut = table.next_cut.take(cells, mode="clip")
        return np.add(bins, scores > next_cut, out=bins, dtype=np.intp)


def _cells(scores, n_cells, clips=False):
    """Return the number (n,) of the cell of each score, which never falls as the score
    grows. [0, 1] is divided into `n_cells` cells of equal width, and a score of 1 has a
    cell of its own; None means the cells of `score_cells`. `clips` says whether scores
    outside of [0, 1] are possible.
    """
    if n_cells is None:
        return score_cells(scores)
    cells = np.multiply(scores, n_cells, dtype=np.float64)
    if clips:  # before the conversion: a float may be too large for an integer
        np.clip(cells, 0, n_cells, out=cells)
    return cells.astype(np.intp)


class _CellTable(NamedTuple):
    """For each cell of [0, 1], which bins the scores inside it can have.

    Parameters
    ----------
    n_cells : int or None
        Which cells; see `_cells`.
    n_below : ndarray of int, shape (n_cells + 1,)
        Number of inner edges below each cell; negative for a cell that contains several
        of them.
    next_cut : ndarray of shape (n_cells + 1,)
        The first inner edge that is not below the cell; inf where there is none.
    has_several : bool
        Whether any cell contains several inner edges.
    """

    n_cells: int | None
    n_below: np.ndarray
    next_cut: np.ndarray
    has_several: bool


@lru_cache(maxsize=8)  # the classes of a marginal error share their edges
def _cell_table(cuts, n_cells):
    """Return the `_CellTable` of the increasing inner edges of bins: for each of many
    cells of [0, 1], which bins its scores can have. The edges are given as the bytes of
    a float64 array, because the cache cannot compare arrays. `n_cells` is the number of
    cells of equal width; None for cells that narrow towards 0 and 1.
    """
    cuts = np.frombuffer(cuts)
    length = _MOST_CELLS  # as many as `score_cells` makes
    if n_cells is not None:
        length = n_cells + 1  # a score of 1 has a cell of its own
    n_inside = np.bincount(_cells(cuts, n_cells), minlength=length)
    n_below = np.cumsum(n_inside) - n_inside
    # With k edges below a cell, the next one is cuts[k].
    next_cut = np.append(cuts, np.inf)[n_below]
    has_several = n_inside > 1
    n_below[has_several] = _SEVERAL
    return _CellTable(n_cells, n_below, next_cut, bool(has_several.any()))
