"""Binning strategies: where to cut the scores, and the one rule that assigns a score to a bin."""

import math
from numbers import Integral, Real

import numpy as np
from scipy.optimize import isotonic_regression
from sklearn.base import BaseEstimator

from skcalib._bin_lookup import BinLookup
from skcalib._blocks import row_blocks
from skcalib._cut_search import cut_search_pays, joined_rows
from skcalib._defaults import DefaultObjects
from skcalib._information import least_loss_cuts
from skcalib._sorting import in_order, sorted_scores
from skcalib._sweep import DistinctScores, EqualMassCuts, EqualWidthCuts, sweep

__all__ = [
    "BaseBinning",
    "EqualMass",
    "EqualWidth",
    "FixedEdges",
    "InformationPreserving",
    "MinimumMass",
    "MonotonicSweep",
    "PoolAdjacentViolators",
    "UniqueScores",
    "assign_bins",
    "check_binning",
]

# Cumulative weights are sums of floats: a cut counts as reached within this share of the total. Exact for counts.
_WEIGHT_TOLERANCE = 1e-12


def assign_bins(scores, edges):
    """Return the index of each score's bin: right-closed bins, the first one closed on both sides.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores. Those beyond the outer edges belong to the outer bins.
    edges : ndarray of shape (n_bins + 1,)
        Edges in increasing order.

    Returns
    -------
    bins : ndarray of int, shape (n,)
        Indices from 0 to n_bins - 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.binning import assign_bins
    >>> assign_bins(np.array([0.0, 0.5, 0.51, 1.0]), np.array([0.0, 0.5, 1.0])).tolist()
    [0, 0, 1, 1]
    """
    lookup = BinLookup(edges, len(scores))
    bins = np.empty(len(scores), dtype=np.intp)
    for rows in row_blocks(len(scores)):
        bins[rows] = lookup(scores[rows])
    return bins


def check_binning(binning, default=None):
    """Return a binning strategy for what a user gave as `binning`.

    Parameters
    ----------
    binning : BaseBinning, int or None
        A strategy, a number of equal-mass bins, or None for the caller's default.
    default : BaseBinning, optional
        What None stands for; ``EqualMass()`` if not given.

    Returns
    -------
    strategy : BaseBinning
        The strategy.

    Raises
    ------
    TypeError
        If `binning` is something else.

    Examples
    --------
    >>> from skcalib.binning import check_binning
    >>> check_binning(20)
    EqualMass(n_bins=20)
    """
    if binning is None:
        return EqualMass() if default is None else default
    if isinstance(binning, BaseBinning):
        return binning
    if isinstance(binning, Integral) and not isinstance(binning, bool):
        return EqualMass(int(binning))
    raise TypeError(
        f"binning must be a strategy of skcalib.binning (such as EqualMass(15)), an int or None, found {binning!r}."
    )


class BaseBinning(DefaultObjects, BaseEstimator):
    """Base of the binning strategies: a subclass writes ``_edges``.

    ``_edges(scores, y, sample_weight)`` is given validated arrays of one length (`y` boolean or None, `sample_weight`
    positive float64 or None) and returns the edges, float64 of shape (n_bins + 1,), outer edges included.

    Attributes
    ----------
    needs_unit_interval : bool
        Whether the edges have a meaning on [0, 1] only. Scores that are log-odds are then mapped there first.
    needs_labels : bool
        Whether the edges depend on `y`. A metric that is binned by its own labels is a biased one: see the strategy.

    Examples
    --------
    >>> from skcalib.binning import BaseBinning
    >>> from skcalib.metrics import expected_calibration_error
    >>> class Halves(BaseBinning):
    ...     def _edges(self, scores, y, sample_weight):
    ...         return [0, 0.5, 1]
    >>> round(expected_calibration_error([1, 1, 0], [0.5, 0.5, 0.9], binning=Halves()), 6)
    0.633333
    """

    needs_unit_interval = True
    needs_labels = False

    def bin_edges(self, scores, y=None, sample_weight=None, *, support=(0.0, 1.0)):
        """Return the edges of the bins for these scores.

        Parameters
        ----------
        scores : ndarray of shape (n,)
            Scores.
        y : ndarray of bool, shape (n,), optional
            Whether the event happened; for strategies with `needs_labels`.
        sample_weight : ndarray of shape (n,), optional
            Positive weights, which count as repeated rows.
        support : tuple of float, default=(0.0, 1.0)
            The outer edges; (-inf, inf) for log-odds.

        Returns
        -------
        edges : ndarray of float64, shape (n_bins + 1,)
            Edges in increasing order, of the bins that were actually made.

        Raises
        ------
        ValueError
            If the strategy needs labels and there are none, or makes edges that do not increase.
        """
        if self.needs_labels and y is None:
            raise ValueError(f"{type(self).__name__} places its edges by the labels: pass y.")
        edges = np.array(self._edges(scores, y, sample_weight), dtype=np.float64)
        if edges.ndim != 1 or len(edges) < 2:
            raise ValueError(f"{type(self).__name__}._edges must return at least two edges, found {edges.shape}.")
        edges[0], edges[-1] = support
        # The first bin may be a point: scores of exactly 0 that are kept apart from those just above.
        if not (np.all(edges[1:-1] < edges[2:]) and edges[0] <= edges[1]):
            raise ValueError(f"{type(self).__name__} must make edges that increase, found {edges.tolist()}.")
        return edges

    def _edges(self, scores, y, sample_weight):
        raise NotImplementedError(f"{type(self).__name__} must define _edges(scores, y, sample_weight).")

    def _sorts(self, n_rows):
        """Return whether edges for so many rows take a sort: rows that are also binned are then sorted beforehand."""
        return False


class EqualWidth(BaseBinning):
    """Bins of equal width on [0, 1].

    Parameters
    ----------
    n_bins : int, {"sqrt", "cube_root"} or callable, default=15
        Number of bins, or a rule for it: the square or cube root of the number of rows (rounded up), or a function
        of that number. With weights the total weight is the number of rows.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks.

    Examples
    --------
    >>> from skcalib.binning import EqualWidth
    >>> EqualWidth(4).bin_edges([0.1, 0.9]).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """

    def __init__(self, n_bins=15):
        self.n_bins = n_bins

    def _edges(self, scores, y, sample_weight):
        return np.linspace(0, 1, resolve_n_bins(self.n_bins, len(scores), sample_weight) + 1)


class EqualMass(BaseBinning):
    """Bins that hold equal shares of the rows (uniform-mass, quantile bins).

    Cut i of B is the smallest score whose cumulative weight reaches i W / B, W the total; the edge is the midpoint
    between that score and the next distinct one. Tied scores stay together, equal cuts merge, and so do bins when
    there are fewer distinct scores than bins: there may be fewer bins than asked for.

    Parameters
    ----------
    n_bins : int, {"sqrt", "cube_root"} or callable, default=15
        Number of bins, or a rule for it: see `EqualWidth`.

    References
    ----------
    Zadrozny and Elkan (2001), Obtaining calibrated probability estimates from decision trees and naive Bayesian
    classifiers. Kumar, Liang and Ma (2019), Verified uncertainty calibration.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.binning import EqualMass
    >>> EqualMass(2).bin_edges(np.array([0.1, 0.2, 0.4, 0.9])).round(6).tolist()
    [0.0, 0.3, 1.0]
    """

    needs_unit_interval = False

    def __init__(self, n_bins=15):
        self.n_bins = n_bins

    def _sorts(self, n_rows):
        return not cut_search_pays(n_rows, resolve_n_bins(self.n_bins, n_rows))

    def _edges(self, scores, y, sample_weight):
        n_bins = resolve_n_bins(self.n_bins, len(scores), sample_weight)
        tolerance = 0.0 if sample_weight is None else _WEIGHT_TOLERANCE
        if cut_search_pays(len(scores), n_bins) and not in_order(scores):
            scores, sample_weight = joined_rows(scores, sample_weight, n_bins)
        if sample_weight is None:
            distinct = sorted_scores(scores)  # repetitions do no harm below
            n_bins = min(n_bins, len(scores))  # more bins than rows are one a row
            cuts = -(-np.arange(1, n_bins) * len(scores) // n_bins) - 1
        else:
            distinct, cumulative = _cumulative_weight(scores, sample_weight)
            reached = np.arange(1, n_bins) * (cumulative[-1] * (1 - tolerance))
            cuts = np.searchsorted(cumulative * n_bins, reached, side="left")
        return edges_above(distinct, cuts)


class UniqueScores(BaseBinning):
    """One bin for each distinct score: right for a model with few of them, a binned one above all.

    Edges are the midpoints between neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.binning import UniqueScores
    >>> UniqueScores().bin_edges(np.array([0.25, 0.75, 0.25])).tolist()
    [0.0, 0.5, 1.0]
    """

    needs_unit_interval = False

    def _sorts(self, n_rows):
        return True

    def _edges(self, scores, y, sample_weight):
        distinct = np.unique(scores)
        return edges_above(distinct, np.arange(len(distinct)))


class FixedEdges(BaseBinning):
    """Bins with edges given by the user, the same for every data set.

    Parameters
    ----------
    edges : array-like of shape (n_bins + 1,)
        Increasing probabilities, from 0 to 1.

    Examples
    --------
    >>> from skcalib.binning import FixedEdges
    >>> FixedEdges([0, 0.05, 0.2, 1]).bin_edges([0.5]).tolist()
    [0.0, 0.05, 0.2, 1.0]
    """

    def __init__(self, edges):
        self.edges = edges

    def _edges(self, scores, y, sample_weight):
        try:
            edges = np.asarray(self.edges, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"edges of FixedEdges must be numbers, found {self.edges!r}.") from None
        if edges.ndim != 1 or len(edges) < 2 or edges[0] != 0 or edges[-1] != 1 or not np.all(np.diff(edges) > 0):
            raise ValueError(f"edges of FixedEdges must increase from 0 to 1, found {self.edges!r}.")
        return edges


class MinimumMass(BaseBinning):
    """Bins of another strategy, neighbours merged until each holds enough.

    From the left a bin is closed as soon as it holds `min_weight`; what is left over at the right end joins the last
    one. With equal-width bins this is the hybrid of equal width and equal mass: fine where there are many rows.

    Parameters
    ----------
    base : BaseBinning, int or None, default=None
        The strategy whose bins are merged; None means ``EqualWidth(15)``.
    min_weight : float, default=10
        Least number of rows (total weight) of a bin.

    References
    ----------
    Kumar, Liang and Ma (2019), Verified uncertainty calibration, Appendix D.3.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.binning import EqualWidth, MinimumMass
    >>> MinimumMass(EqualWidth(4), min_weight=2).bin_edges(np.array([0.1, 0.3, 0.9, 0.95])).tolist()
    [0.0, 0.5, 1.0]
    """

    _default_objects = {"base": EqualWidth}

    def __init__(self, base=None, min_weight=10):
        self.base = base
        self.min_weight = min_weight

    @property
    def needs_unit_interval(self):
        """Whether the base strategy needs scores on [0, 1]."""
        return self._base().needs_unit_interval

    @property
    def needs_labels(self):
        """Whether the base strategy needs labels."""
        return self._base().needs_labels

    def _base(self):
        return check_binning(self.base, EqualWidth())

    def _edges(self, scores, y, sample_weight):
        if not isinstance(self.min_weight, Real) or not self.min_weight > 0:
            raise ValueError(f"min_weight must be a positive number, found {self.min_weight!r}.")
        edges = np.asarray(self._base()._edges(scores, y, sample_weight), dtype=np.float64)
        mass = np.bincount(assign_bins(scores, edges), weights=sample_weight, minlength=len(edges) - 1)
        closed, held = [], 0.0
        for j, weight in enumerate(mass):
            held += weight
            if held >= self.min_weight * (1 - _WEIGHT_TOLERANCE):
                closed.append(j + 1)
                held = 0.0
        return np.concatenate((edges[:1], edges[closed[:-1]], edges[-1:]))


class InformationPreserving(BaseBinning):
    """Bins that lose the least of what the scores say: one-dimensional clusters under the Kullback-Leibler divergence.

    Where the scores are calibrated, replacing each by the mean of its bin costs in expected log-loss the divergence of
    the score from that mean. These edges make the sum of it least: finer near 0 and 1 and where there are many scores.
    No label is used. Scaling-binning with them is hardly worse than its smooth family.

    Parameters
    ----------
    n_bins : int, {"sqrt", "cube_root"} or callable, default=None
        Number of bins, or a rule for it: see `EqualWidth`. None means ``4 n^(1/3)``, or with `max_loss` as many as
        that takes.
    max_loss : float, default=None
        Makes the fewest bins that lose at most this share of the mean entropy of the scores, such as 1e-3.

    Notes
    -----
    Exact by dynamic programming for up to 1000 distinct scores, of which neighbours are joined where there are more.

    References
    ----------
    Banerjee, Merugu, Dhillon and Ghosh (2005), Clustering with Bregman divergences. Wang and Song (2011),
    Ckmeans.1d.dp: optimal k-means clustering in one dimension by dynamic programming.

    Examples
    --------
    The scores 0.001 and 0.1 differ more than 0.4 and 0.6 do, in what they say.

    >>> import numpy as np
    >>> from skcalib.binning import InformationPreserving
    >>> scores = np.array([0.001, 0.1, 0.4, 0.6])
    >>> InformationPreserving(3).bin_edges(scores).round(6).tolist()
    [0.0, 0.0505, 0.25, 1.0]
    """

    def __init__(self, n_bins=None, max_loss=None):
        self.n_bins = n_bins
        self.max_loss = max_loss

    def _edges(self, scores, y, sample_weight):
        if self.max_loss is not None and not (isinstance(self.max_loss, Real) and self.max_loss > 0):
            raise ValueError(f"max_loss must be a share of the entropy above 0, such as 1e-3, found {self.max_loss!r}.")
        as_many_as_needed = self.n_bins is None and self.max_loss is not None
        rule = _four_cube_roots if self.n_bins is None else self.n_bins
        n_bins = None if as_many_as_needed else resolve_n_bins(rule, len(scores), sample_weight)
        table = DistinctScores.from_rows(scores, np.zeros(len(scores), dtype=bool), sample_weight)
        below = least_loss_cuts(table, n_bins, self.max_loss or 0.0)
        return edges_above(table.scores, below[1:-1] - 1)


class MonotonicSweep(BaseBinning):
    """The most bins whose event frequencies still rise with the score.

    From two bins on, one more is tried as long as no bin has a lower event frequency than the one before, at most as
    many as there are distinct scores; empty bins do not count. Where the frequency rises from each distinct score to
    the next, equal-mass bins end as one a score. A binned error of few rows is nearly as often too small as too large
    with these bins, whereas a fixed number of them makes it too large.

    Parameters
    ----------
    base : EqualMass or EqualWidth, default=None
        Where the bins are cut; None means ``EqualMass()``. Its `n_bins` is not used.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error estimation.

    Examples
    --------
    Frequencies 0 and 1/2 rise; of three bins the last one would have fallen from 1 to 0.

    >>> import numpy as np
    >>> from skcalib.binning import MonotonicSweep
    >>> scores, y = np.array([0.1, 0.2, 0.4, 0.5, 0.7, 0.8]), np.array([0, 0, 0, 1, 0, 0], dtype=bool)
    >>> MonotonicSweep().bin_edges(scores, y).round(6).tolist()
    [0.0, 0.45, 1.0]
    """

    needs_labels = True
    _default_objects = {"base": EqualMass}

    def __init__(self, base=None):
        self.base = base

    @property
    def needs_unit_interval(self):
        """Whether the base strategy needs scores on [0, 1]."""
        return self._cuts() is EqualWidthCuts

    def _cuts(self):
        base = EqualMass() if self.base is None else self.base
        for strategy, cuts in ((EqualMass, EqualMassCuts), (EqualWidth, EqualWidthCuts)):
            if isinstance(base, strategy):
                return cuts
        raise TypeError(f"base of MonotonicSweep must be EqualMass() or EqualWidth(), found {self.base!r}.")

    def _sorts(self, n_rows):
        return True

    def _edges(self, scores, y, sample_weight):
        cuts = self._cuts()
        table = DistinctScores.from_rows(scores, y, sample_weight)
        n_bins, below = sweep(cuts(table))
        return np.linspace(0, 1, n_bins + 1) if cuts is EqualWidthCuts else edges_above(table.scores, below[1:-1] - 1)


class PoolAdjacentViolators(BaseBinning):
    """The blocks of the isotonic fit: bins whose event frequencies rise, with the least squared error.

    There is nothing to choose: the bins of the CORP reliability diagram and score decomposition.

    References
    ----------
    Dimitriadis, Gneiting and Jordan (2021), Stable reliability diagrams for probabilistic classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.binning import PoolAdjacentViolators
    >>> scores, y = np.array([0.1, 0.2, 0.4, 0.6]), np.array([False, True, False, True])
    >>> PoolAdjacentViolators().bin_edges(scores, y).round(6).tolist()
    [0.0, 0.15, 0.5, 1.0]
    """

    needs_unit_interval = False
    needs_labels = True

    def _sorts(self, n_rows):
        return True

    def _edges(self, scores, y, sample_weight):
        table = DistinctScores.from_rows(scores, y, sample_weight)
        blocks = isotonic_regression(table.event_frequency, weights=np.diff(table.weight)).blocks
        return edges_above(table.scores, blocks[1:-1] - 1)


def resolve_n_bins(n_bins, n_rows, sample_weight=None):
    """Return the number of bins that an `n_bins` parameter means for so many rows."""
    n_rows = n_rows if sample_weight is None else max(1, round(float(np.sum(sample_weight))))
    if isinstance(n_bins, str):
        rules = {"sqrt": math.sqrt, "cube_root": math.cbrt}
        if n_bins not in rules:
            raise ValueError(f"n_bins must be an int, 'sqrt', 'cube_root' or a callable, found {n_bins!r}.")
        return math.ceil(rules[n_bins](n_rows) - 1e-9)
    wanted = n_bins(n_rows) if callable(n_bins) else n_bins
    if not isinstance(wanted, Integral) or isinstance(wanted, bool) or wanted < 1:
        raise ValueError(f"n_bins must be (or return) an int of at least 1, found {wanted!r}.")
    return int(wanted)


def _four_cube_roots(n_rows):
    return math.ceil(4 * math.cbrt(n_rows) - 1e-9)


def edges_above(ordered, positions):
    """Return edges that cut sorted scores above the scores at `positions`: midpoints to the next distinct score."""
    lower = np.unique(ordered[positions]) if len(positions) else ordered[:0]
    above = np.searchsorted(ordered, lower, side="right")
    lower, above = lower[above < len(ordered)].astype(np.float64), above[above < len(ordered)]
    upper = ordered[above].astype(np.float64)
    # The midpoint of adjacent floats can round up to the upper one, which would change its bin.
    middle = np.minimum(lower + (upper - lower) / 2, np.nextafter(upper, -np.inf))
    return np.concatenate(([0.0], middle, [1.0]))


def _cumulative_weight(scores, sample_weight):
    """Return the distinct scores and the cumulative weight at each."""
    distinct, inverse = np.unique(scores, return_inverse=True)
    return distinct, np.cumsum(np.bincount(inverse, weights=sample_weight))
