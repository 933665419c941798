"""A confidence band that contains a whole monotone calibration curve."""

import numpy as np

from skcalib._intervals.binomial import binomial_interval
from skcalib._rows.sorting import sorted_rows

_SHORTEST = 4  # samples of a block, at least; the logarithm of n if that is larger
_MOST_SHORT_BLOCKS = 5_000  # of the shortest length: more would decide nothing
_GROWTH = np.sqrt(2)  # from one length of blocks to the next
_STARTS_PER_LENGTH = 4  # blocks start at multiples of a quarter of their length


def monotone_band(scores, labels, level):
    """Return the distinct scores, and limits that contain the event frequency at all of
    them with probability `level` at least, if it rises with the score.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Probabilities.
    labels : ndarray of bool, shape (n,)
        Whether the event happened; samples are independent.
    level : float
        Confidence level of the whole band.

    Returns
    -------
    distinct, low, high : ndarray of shape (m,)
        Scores in increasing order and the limits at each. Between two scores, the lower
        limit of the first and the upper limit of the second hold.

    Notes
    -----
    For the samples of a block, the run from score a to score b, let S be the number of
    events among m. If the curve f rises, S is stochastically at most binomial with m
    and f(b): the lower Clopper-Pearson limit bounds f from below at b and above. The
    upper limit bounds it from above at a and below. Many blocks share the error by
    Bonferroni's inequality [1]_. All pairs (a, b) would be n^2 / 2 blocks; here lengths
    grow by the square root of 2 and starts are a quarter of a length apart, which
    leaves O(n) blocks and narrower limits. Equal scores are never divided.

    References
    ----------
    .. [1] Dimitriadis, Duembgen, Henzi, Puke and Ziegel (2023), Honest calibration
       assessment for binary outcome predictions.
    """
    ordered, events = sorted_rows(scores, labels)
    events_before = np.concatenate(([0], np.cumsum(events)))
    distinct, first = np.unique(ordered, return_index=True)
    edges = np.append(first, len(scores))  # where samples of each score begin and end
    low = np.zeros(len(distinct))
    high = np.ones(len(distinct))
    lengths = _block_lengths(len(scores))
    for length in lengths:
        starts = _block_starts(length, len(scores))
        # Blocks are widened until they begin and end where scores change; those that
        # are then equal count once. Block b holds the distinct scores begin[b] to
        # end[b] - 1.
        begin = np.searchsorted(edges, starts, side="right") - 1
        end = np.searchsorted(edges, starts + length, side="left")
        blocks = np.unique(np.stack((begin, end), axis=1), axis=0)
        begin, end = blocks.T
        n_samples = edges[end] - edges[begin]
        n_events = events_before[edges[end]] - events_before[edges[begin]]
        # each block has a lower and an upper limit
        error = (1 - level) / (2 * len(lengths) * len(blocks))
        lower, upper = binomial_interval(
            n_events, n_samples, confidence_level=1 - 2 * error
        )
        np.maximum.at(low, end - 1, lower)
        np.minimum.at(high, begin, upper)
    # A lower limit holds for all larger scores, an upper one for all smaller scores.
    low = np.maximum.accumulate(low)
    high = np.minimum.accumulate(high[::-1])[::-1]
    return distinct, low, high


def _block_lengths(n_samples):
    """Return the lengths of blocks, increasing whole numbers of samples, of which each
    is about the root of 2 times the last; the largest is all `n_samples`.
    """
    shortest = max(_SHORTEST, np.log(n_samples), n_samples / _MOST_SHORT_BLOCKS)
    lengths = []
    length = min(shortest, n_samples)
    while length < n_samples:
        lengths.append(int(np.ceil(length)))
        length *= _GROWTH
    return np.unique([*lengths, n_samples])


def _block_starts(length, n_samples):
    """Return the positions at which blocks of a length start; the last one ends with
    the last sample.
    """
    step = max(length // _STARTS_PER_LENGTH, 1)
    return np.append(np.arange(0, n_samples - length, step), n_samples - length)
