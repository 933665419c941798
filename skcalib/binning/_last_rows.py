"""The bins of many samples, found together."""

import numpy as np

from skcalib._rows.sorting import first_rows
from skcalib.binning._base import assign_bins, resolve_n_bins
from skcalib.binning._equal_mass import EqualMass, last_ranks
from skcalib.binning._equal_width import EqualWidth


def can_be_made_together(binning):
    """Return whether `last_rows` takes a strategy. A subclass may have other edges."""
    return type(binning) in _RULES


def last_rows(binning, scores, n_rows):
    """Return the position of the last row of each bin of several samples, without empty
    bins.

    Parameters
    ----------
    binning : EqualMass or EqualWidth
        The bins of each sample.
    scores : ndarray of shape (n,)
        Scores of rows without weights, one sample after the other, and sorted within
        each.
    n_rows : ndarray of int, shape (n_samples,)
        Number of rows of each sample.

    Returns
    -------
    positions : ndarray of int, shape (m,)
        Increasing positions among all rows. A bin is a bin of one sample.
    """
    is_last_of_sample = np.zeros(len(scores), dtype=bool)
    is_last_of_sample[np.cumsum(n_rows) - 1] = True
    return _RULES[type(binning)](binning, scores, n_rows, is_last_of_sample)


def _of_equal_mass(binning, scores, n_rows, is_last_of_sample):
    """Return the `last_rows` of bins of equal mass."""
    starts = np.cumsum(n_rows) - n_rows
    # 1. The last row of each bin, as if all scores of a sample were different. Samples
    # with equally many rows have the same ranks, which are counted from 1.
    is_last_of_bin = is_last_of_sample.copy()
    for n in np.flatnonzero(np.bincount(n_rows)).tolist():
        ranks = last_ranks(n, binning._n_bins_for(n, None))
        starts_of_samples = starts[n_rows == n]
        is_last_of_bin[starts_of_samples[:, None] + ranks - 1] = True
    # 2. Equal scores stay together, in the lower bin: a bin ends with the last row of
    # the score at which it would end.
    next_differs = np.append(scores[1:] != scores[:-1], True)
    ends_of_scores = np.flatnonzero(next_differs | is_last_of_sample)
    ends_of_bins = np.flatnonzero(is_last_of_bin)
    ends = ends_of_scores[np.searchsorted(ends_of_scores, ends_of_bins)]
    return ends[first_rows(ends)]


def _of_equal_width(binning, scores, n_rows, is_last_of_sample):
    """Return the `last_rows` of bins of equal width, which depend on the number of rows
    alone.
    """
    n_bins_by_size = np.zeros(n_rows.max() + 1, dtype=np.intp)
    for n in np.flatnonzero(np.bincount(n_rows)).tolist():
        n_bins_by_size[n] = resolve_n_bins(binning.n_bins, n)
    n_bins = n_bins_by_size[n_rows]
    bins = np.empty(len(scores), dtype=np.intp)
    for n in np.flatnonzero(np.bincount(n_bins)).tolist():
        rows = np.repeat(n_bins == n, n_rows)
        edges = EqualWidth(n)._edges_of(scores)
        bins[rows] = assign_bins(scores[rows], edges)
    next_differs = np.append(bins[1:] != bins[:-1], True)
    return np.flatnonzero(next_differs | is_last_of_sample)


_RULES = {EqualMass: _of_equal_mass, EqualWidth: _of_equal_width}
