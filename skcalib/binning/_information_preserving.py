"""Bins that lose the least information about the event."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.special import entr

from skcalib._input.scalars import check_number
from skcalib._rows.sorting import DistinctScores
from skcalib.binning._base import BaseBinning, edges_above, resolve_n_bins
from skcalib.binning._monotonic_sweep import equal_mass_positions


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
        number, or the fewest that lose at most `max_loss`.
        """
        max_loss = 0.0
        if self.max_loss is not None:
            check_number(self.max_loss, "max_loss", above=0)
            max_loss = self.max_loss
        if self.n_bins is not None:
            n_bins = resolve_n_bins(self.n_bins, len(scores), sample_weight)
        elif self.max_loss is None:
            n_bins = resolve_n_bins(_default_n_bins, len(scores), sample_weight)
        else:
            n_bins = None  # as few as lose at most `max_loss`
        no_labels = np.zeros(len(scores), dtype=bool)  # the bins do not depend on them
        table = DistinctScores.from_rows(scores, no_labels, sample_weight)
        n_below_cut = least_loss_cuts(table, n_bins, max_loss)
        # With k distinct scores below a cut, the last one below it is number k - 1.
        last_of_bin = n_below_cut[1:-1] - 1
        return edges_above(table.scores, last_of_bin)


def _default_n_bins(n_rows):
    """Return the default number of bins: 4 times the cube root of the number of
    samples, rounded up.
    """
    # 1e-9: a number that is an int up to rounding stays one
    return math.ceil(4 * math.cbrt(n_rows) - 1e-9)


# Bins are cut only at candidates: about this many, or this many times the number of
# bins if that is more.
_N_CANDIDATES = 1000
_PER_BIN = 4
# Bins between neighbouring candidates lose at most this share of what bins may lose.
_SHARE_OF_LOSS = 0.1


def least_loss_cuts(table, n_bins, max_loss=0.0):
    """Return the cuts of the bins that lose the least information, each as the number
    of distinct scores below it.

    Replacing a probability by the mean of its bin costs, in expected log-loss, its
    divergence from this mean. The total cost is the entropy of the means minus the
    entropy of the scores. If there are many scores, bins are cut only at some of the
    candidates between them. Among these, the exact solution is found by dynamic
    programming over the number of bins.

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
    cuts : ndarray of int, shape (n_bins_made + 1,)
        From 0 to the number of distinct scores.
    """
    sums = _sums_by_class(table)
    # The entropy if each score has a bin of its own, so that nothing is lost.
    entropy_of_scores = _entropy(sums, slice(-1), slice(1, None)).sum()
    most_lost = max_loss * entropy_of_scores
    # 1. Where bins may be cut.
    if n_bins is None:
        candidates = _candidates_within_loss(table, sums, entropy_of_scores, most_lost)
        n_bins = len(candidates) - 1
    else:
        candidates = _candidate_cuts(table, max(_N_CANDIDATES, _PER_BIN * n_bins))
        n_bins = min(n_bins, len(candidates) - 1)
    # 2. Bins are added one by one, until there are enough of them or little is lost.
    # least[i] is the least entropy of the scores below candidate i with the number of
    # bins reached so far.
    least = _entropy(sums, 0, candidates)  # of one bin
    last_cuts = []  # of each step: where the last bin below candidate i begins
    while len(last_cuts) + 1 < n_bins and least[-1] - entropy_of_scores > most_lost:
        least, last_cut = _with_one_bin_more(least, candidates, sums)
        last_cuts.append(last_cut)
    # 3. The cuts as numbers of candidates, from above all scores down: the bin that
    # ends at a cut begins at the next lower one.
    cut = len(candidates) - 1
    cuts = [cut]
    for last_cut in reversed(last_cuts):
        cut = last_cut[cut]
        cuts.append(cut)
    return candidates[np.unique([0, *cuts])]


def _sums_by_class(table):
    """Return the expected events and non-events among the first k distinct scores, k =
    0, 1, ..., (2, n_scores + 1).
    """
    scores = table.scores.astype(np.float64)
    weight_by_class = np.diff(table.weight) * np.stack((scores, 1 - scores))
    sums = np.zeros((2, len(scores) + 1))
    np.cumsum(weight_by_class, axis=1, out=sums[:, 1:])
    return sums


def _entropy(sums, start, end):
    """Return the entropy of bins of the distinct scores from `start` to before `end`,
    which are ints, slices or arrays.

    A bin of weight W with S expected events has W h(S / W), h the binary entropy: e(S)
    + e(W - S) - e(W) with e(x) = -x log x.
    """
    by_class = sums[:, end] - sums[:, start].reshape(2, -1)
    # Differences of sums may be negative by rounding.
    events, non_events = np.maximum(by_class, 0)
    return entr(events) + entr(non_events) - entr(events + non_events)


def _candidates_within_loss(table, sums, entropy_of_scores, most_lost):
    """Return candidate cuts so close that the bins between them lose only a small share
    of `most_lost`.
    """
    candidates = _candidate_cuts(table, _N_CANDIDATES)
    while True:
        entropy = _entropy(sums, candidates[:-1], candidates[1:]).sum()
        if entropy - entropy_of_scores <= _SHARE_OF_LOSS * most_lost:
            return candidates
        candidates = _candidate_cuts(table, 2 * len(candidates))


def _candidate_cuts(table, n_candidates):
    """Return about `n_candidates` increasing cuts, as numbers of distinct scores below.
    Half divide the weight evenly; half are even in arcsin(sqrt(score)), in which bins
    of equal width lose the same, and keep rare scores near 0 and 1 apart.
    """
    n_scores = len(table.scores)
    if n_scores <= n_candidates:
        return np.arange(n_scores + 1)
    n_half = max(n_candidates // 2, 1)
    equal_mass = equal_mass_positions(table, n_half, cut=np.arange(n_half + 1))
    angles = np.linspace(0, np.pi / 2, n_half + 1)
    inner_scores = np.sin(angles[1:-1]) ** 2
    return np.union1d(equal_mass, np.searchsorted(table.scores, inner_scores))


def _with_one_bin_more(least, candidates, sums):
    """Return the least entropy of the scores below each candidate cut with one bin
    more, and the first place where the last bin may then begin: a step of the dynamic
    program.

    For each i it minimises, over j <= i, ``least[j]`` plus the entropy of a bin from
    candidate j to i. The best j never falls as i grows (the quadrangle inequality of
    clusters on a line): the middle i is solved first, then those in the middle of both
    halves, and so on, a level at once, each with j between those of its solved
    neighbours.
    """
    last = len(candidates) - 1
    minimum = np.zeros(last + 1)
    best = np.zeros(last + 1, dtype=np.intp)
    # A level has all odd multiples of its step, a power of 2 that is halved each time.
    step = 1 << last.bit_length()
    while step > 1:
        step //= 2
        i = np.arange(step, last + 1, 2 * step)
        # The neighbours i - step and i + step were solved on earlier levels; the last i
        # may have none above it.
        lowest_j = best[i - step]
        has_neighbour_above = i + step <= last
        best_above = best[np.minimum(i + step, last)]
        highest_j = np.where(has_neighbour_above, np.minimum(best_above, i), i)
        minimum[i], best[i] = _best_last_bins(
            i, lowest_j, highest_j, least, candidates, sums
        )
    return minimum, best


def _best_last_bins(i, lowest_j, highest_j, least, candidates, sums):
    """Return for each i (m,) the minimum over `lowest_j` <= j <= `highest_j` of
    ``least[j]`` plus the entropy of a bin from candidate j to i, and the first j that
    attains it.
    """
    # The pairs (i, j) in one array: all j of the first i, then all j of the second, and
    # so on. The pairs of each i begin at its entry of `begins`.
    n_pairs = highest_j - lowest_j + 1
    begins = np.cumsum(n_pairs) - n_pairs
    i_of_pair = np.repeat(i, n_pairs)
    number_of_pair = np.arange(n_pairs.sum()) - np.repeat(begins, n_pairs)
    j_of_pair = np.repeat(lowest_j, n_pairs) + number_of_pair
    entropy_of_bin = _entropy(sums, candidates[j_of_pair], candidates[i_of_pair])
    entropy = least[j_of_pair] + entropy_of_bin
    minimum = np.minimum.reduceat(entropy, begins)
    # The first pair of each i that attains its minimum.
    minimal_pairs = np.flatnonzero(entropy == np.repeat(minimum, n_pairs))
    first_pairs = minimal_pairs[np.searchsorted(minimal_pairs, begins)]
    return minimum, j_of_pair[first_pairs]
