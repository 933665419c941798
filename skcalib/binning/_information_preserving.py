"""Bins that lose the least information about the event."""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.special import entr

from skcalib._input.scalars import check_number
from skcalib._rows.sorting import DistinctScores
from skcalib.binning._base import BaseBinning, edges_above, resolve_n_bins
from skcalib.binning._monotonic_sweep import equal_mass_below


class InformationPreserving(BaseBinning):
    """Bins that lose the least information, measured by Kullback-Leibler divergence.

    If the scores are calibrated, replacing each by its bin mean increases the expected
    log-loss by the divergence of the score from that mean. The edges of these bins
    minimise the total increase. The edges are closer together near 0 and 1, and where
    there are many scores. Labels are not used. With these bins, scaling-binning is only
    slightly worse than the smooth map.

    Parameters
    ----------
    n_bins : int, {"sqrt", "cube_root"} or callable, default=None
        Number of bins, or a rule for it: see `EqualWidth`. None means ``4 n^(1/3)`` or,
        if `max_loss` is given, the number that it requires.
    max_loss : float, default=None
        Largest acceptable loss as a share of the mean entropy of the scores, such as
        1e-3. The smallest sufficient number of bins is used.

    See Also
    --------
    skcalib.binning.EqualMass : Bins with equal numbers of samples.
    skcalib.ScalingBinning : A smooth map whose outputs are then binned.

    Notes
    -----
    For up to 1000 distinct scores, the exact solution is found by dynamic programming.
    With more distinct scores, neighbouring scores are merged first.

    References
    ----------
    Banerjee, Merugu, Dhillon and Ghosh (2005), Clustering with Bregman divergences.
    Wang and Song (2011), Ckmeans.1d.dp: optimal k-means clustering in one dimension by
    dynamic programming.

    Examples
    --------
    The probabilities 0.001 and 0.1 differ more in information than 0.4 and 0.6, which
    are therefore put into the same bin.

    >>> import numpy as np
    >>> from skcalib.binning import InformationPreserving
    >>> scores = np.array([0.001, 0.1, 0.4, 0.6])
    >>> InformationPreserving(3).bin_edges(scores).round(6).tolist()
    [0.0, 0.0505, 0.25, 1.0]
    """

    def __init__(
        self,
        n_bins: int | Literal["sqrt", "cube_root"] | Callable[[int], int] | None = None,
        max_loss: float | None = None,
    ):
        self.n_bins = n_bins
        self.max_loss = max_loss

    def _edges(self, scores, y, sample_weight):
        """Return the edges of the bins that lose the least information: of a given
        number, or of the fewest with a given loss; see `BaseBinning._edges`.
        """
        if self.max_loss is not None:
            check_number(self.max_loss, "max_loss", above=0)
        if self.n_bins is not None:
            n_bins = resolve_n_bins(self.n_bins, len(scores), sample_weight)
        elif self.max_loss is None:
            n_bins = resolve_n_bins(_default_n_bins, len(scores), sample_weight)
        else:
            n_bins = None  # as many as the loss asks for
        no_labels = np.zeros(len(scores), dtype=bool)  # the bins do not depend on them
        table = DistinctScores.from_rows(scores, no_labels, sample_weight)
        cuts = least_loss_cuts(table, n_bins, self.max_loss or 0.0)
        last_of_bin = cuts[1:-1] - 1
        return edges_above(table.scores, last_of_bin)


def _default_n_bins(n_rows):
    """Return the number of bins for a number of samples where the user gives neither it
    nor a loss: 4 times its cube root, rounded up.
    """
    # 1e-9: a number that is an int up to rounding stays one
    return math.ceil(4 * math.cbrt(n_rows) - 1e-9)


# Neighbouring distinct scores are first joined into *cells*, of which bins are made:
# about this many cells, or this many times the number of bins if that is more.
_N_CELLS = 1000
_CELLS_PER_BIN = 4
# Cells lose at most this share of what the bins may lose.
_CELL_SHARE = 0.1


def least_loss_cuts(table, n_bins, max_loss=0.0):
    """Return how many distinct scores lie below each cut of the bins that lose the
    least information.

    Replacing a probability by the mean of its bin costs, in expected log-loss, its
    divergence from this mean. The total cost is the entropy of the means minus the
    entropy of the scores. If there are many scores, neighbouring ones are first joined
    into cells, which bins do not divide. For these cells, the exact solution is found
    by dynamic programming over the number of bins.

    Parameters
    ----------
    table : DistinctScores
        Distinct scores in [0, 1] with their cumulative weights.
    n_bins : int or None
        Maximum number of bins; None for as many as `max_loss` requires.
    max_loss : float, default=0.0
        Largest loss, as a share of the mean entropy of the scores; the smallest
        sufficient number of bins is used.

    Returns
    -------
    below : ndarray of int, shape (n_bins_made + 1,)
        From 0 to the number of distinct scores.
    """
    scores = table.scores.astype(np.float64)
    # Sums of w s and of w (1 - s) over the first k distinct scores: (2, n_scores + 1).
    weight_by_class = np.diff(table.weight) * np.stack((scores, 1 - scores))
    sums = np.zeros((2, len(scores) + 1))
    np.cumsum(weight_by_class, axis=1, out=sums[:, 1:])
    # The entropy if each score were a bin: the least that there can be.
    entropy = _entropy(sums, slice(-1), slice(1, None)).sum()
    # 1. Cells of scores, between which the cuts are. To hold a loss rather than a
    # number of bins, the cells may lose only a small share of it.
    if n_bins is None:
        cells = _cells(table, _N_CELLS)
        allowed = _CELL_SHARE * max_loss * entropy
        while _entropy(sums, cells[:-1], cells[1:]).sum() - entropy > allowed:
            cells = _cells(table, 2 * len(cells))
        n_bins = len(cells) - 1
    else:
        cells = _cells(table, max(_N_CELLS, _CELLS_PER_BIN * n_bins))
        n_bins = min(n_bins, len(cells) - 1)
    # 2. least[i]: the entropy of the best bins for the first i cells, one bin to start
    # with, and one more in each step.
    least = _entropy(sums, 0, cells)
    last_cuts = []
    while len(last_cuts) + 1 < n_bins and least[-1] - entropy > max_loss * entropy:
        least, last_cut = _with_one_bin_more(least, cells, sums)
        last_cuts.append(last_cut)
    # 3. The cuts as numbers of cells, from the last one back: where the last of the
    # bins for the cells below a cut begins, there is the cut before it.
    cut = len(cells) - 1
    cuts = [cut]
    for last_cut in reversed(last_cuts):
        cut = last_cut[cut]
        cuts.append(cut)
    return cells[np.unique([0, *cuts])]


def _entropy(sums, start, end):
    """Return the entropy of bins of distinct scores, each from the position `start` up
    to but without `end`, which are ints, slices or arrays of ints.

    `sums` (2, n_scores + 1) are those of w s and of w (1 - s) over the first k scores,
    with weights w. A bin of weight W whose sum of w s is S has the entropy W h(S / W),
    where h is the binary entropy. With e(x) = -x log x that is e(S) + e(W - S) - e(W).
    """
    by_class = sums[:, end] - sums[:, start].reshape(2, -1)
    # Differences of sums may be negative by rounding.
    events, non_events = np.maximum(by_class, 0)
    return entr(events) + entr(non_events) - entr(events + non_events)


def _cells(table, n_cells):
    """Return cuts (numbers of distinct scores below each) into about `n_cells` cells:
    half of them of equal mass, half of equal width in arcsin(sqrt(score)).

    In that coordinate bins of equal width lose the same everywhere, so that rare scores
    near 0 and 1 are kept apart.
    """
    n_half = max(n_cells // 2, 1)  # cells of either kind
    if len(table.scores) <= n_cells:
        return np.arange(len(table.scores) + 1)
    equal_mass = equal_mass_below(table, n_half, np.arange(n_half + 1))
    angles = np.linspace(0, np.pi / 2, n_half + 1)
    inner_scores = np.sin(angles[1:-1]) ** 2
    return np.union1d(equal_mass, np.searchsorted(table.scores, inner_scores))


def _with_one_bin_more(least, cells, sums):
    """Return the least entropy with one bin more, for the first i cells, and where its
    last bin begins: one step of the dynamic program.

    For each i that is the minimum of ``least[j] + entropy(cells j ... i)`` over j <= i.
    The j at which it is found never falls as i grows (the quadrangle inequality of
    clusters on a line). So it is sought between the values of two neighbours that are
    known already. The middle i comes first, then the quarters, and so on, all i of a
    level at once.

    Parameters
    ----------
    least : ndarray of shape (n_cells + 1,)
        Least entropy of the first j cells so far.
    cells : ndarray of int, shape (n_cells + 1,)
        Numbers of distinct scores below the cuts of the cells.
    sums : ndarray of shape (2, n_scores + 1)
        See `_entropy`.

    Returns
    -------
    minimum : ndarray of shape (n_cells + 1,)
        Least entropy of the first i cells.
    last_cut : ndarray of int, shape (n_cells + 1,)
        The first j at which it is found.
    """
    n_cells = len(cells) - 1
    minimum = np.zeros(n_cells + 1)
    last_cut = np.zeros(n_cells + 1, dtype=np.intp)
    # A level has all odd multiples of its step, a power of 2 that is halved each time.
    step = 1 << n_cells.bit_length()
    while step > 1:
        step //= 2
        # The i of a level, and between which j each is sought: those of its neighbours
        # i - step and i + step, which are known from earlier levels.
        i = np.arange(step, n_cells + 1, 2 * step)
        low = last_cut[i - step]
        has_next = i + step <= n_cells
        next_cut = last_cut[np.minimum(i + step, n_cells)]
        high = np.where(has_next, next_cut, n_cells)
        # The values of all pairs (i, j) in one array: first all j of the first i, from
        # its `low` on, then those of the second. Those of an i begin at its `starts`.
        lengths = np.minimum(high, i) - low + 1
        starts = np.cumsum(lengths) - lengths
        j = np.arange(lengths.sum()) - np.repeat(starts - low, lengths)
        value = least[j] + _entropy(sums, cells[j], cells[np.repeat(i, lengths)])
        # The minimum for each i, and the first j at which it is found.
        minimum[i] = np.minimum.reduceat(value, starts)
        is_minimum = value == np.repeat(minimum[i], lengths)
        places = np.flatnonzero(is_minimum)
        first_places = places[np.searchsorted(places, starts)]
        last_cut[i] = j[first_places]
    return minimum, last_cut
