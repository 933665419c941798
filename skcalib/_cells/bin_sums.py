"""The sums of each bin, added block by block in one pass over the rows."""

import numpy as np

from skcalib._rows.blocks import row_blocks, taken
from skcalib._rows.sorting import in_order
from skcalib.binning._base import BinLookup

_FIRST_FEW = 256  # rows that tell whether most lie in the first bin
# The names of the sums, in the order of the fields of `BinStatistics`, with the highest
# power of the score in each: `moments` leaves out higher ones, which cost a pass each.
SUMS = dict(count=0, weight=0, weighted_score=1, weighted_label=0)
SUMS |= dict(weighted_score_squared=2, weighted_score_label=1, weight_squared=2)
# The row of each in the arrays of sums (n_sums, n_bins).
_COUNT, _WEIGHT, _SCORE, _LABEL, _SCORE_SQUARED, _SCORE_LABEL, _WEIGHT_SQUARED = range(
    len(SUMS)
)
# By the highest power of the scores that is summed, the rows of sums of higher ones.
_ABOVE = [
    [row for row, power in enumerate(SUMS.values()) if power > moments]
    for moments in (0, 1, 2)
]


def bin_sums(scores, labels, edges, sample_weight, moments, is_ordered):
    """Return a dict of the sums (n_bins,) of validated rows, by the names in `SUMS`.

    `scores` and boolean `labels` are (n,), `sample_weight` (n,) or None, and `edges`
    (n_bins + 1,). `moments`, 0 to 2, is the highest power of the scores that is summed:
    sums of higher ones are NaN. `is_ordered` says whether the scores never decrease;
    None if this is not known.
    """
    if is_ordered is None:
        is_ordered = in_order(scores)
    lookup = None if is_ordered else BinLookup(edges, scores)
    sums = np.zeros((len(SUMS), len(edges) - 1))
    for rows in row_blocks(len(scores), at_least=4 * len(edges)):
        block = scores[rows].astype(np.float64, copy=False)
        weight = taken(sample_weight, rows)
        # Each of the three functions makes the same sums. Where rows are in order,
        # `_of_runs` takes a third of the time of `_by_bin`.
        if is_ordered:
            sums += _of_runs(block, labels[rows], edges, weight, moments)
        elif weight is None and _most_are_lowest(block, edges):
            sums += _above_lowest(lookup, block, labels[rows], edges, moments)
        else:
            n_bins = sums.shape[1]
            sums += _by_bin(lookup(block), n_bins, block, labels[rows], weight, moments)
    if sample_weight is None:
        sums[_WEIGHT_SQUARED] = sums[_COUNT]  # weights of 1
    for number in _ABOVE[moments]:
        sums[number] = np.nan
    by_name = dict(zip(SUMS, sums, strict=True))
    by_name["count"] = sums[_COUNT].astype(np.int64)
    return by_name


def _most_are_lowest(scores, edges):
    """Return whether most of the first scores lie in the lowest bin."""
    first = scores[:_FIRST_FEW]
    return 2 * np.count_nonzero(first > edges[1]) < len(first)


def _by_bin(bins, n_bins, scores, labels, sample_weight, moments):
    """Return the sums (n_sums, n_bins) of a block of rows: its row `_COUNT` holds the
    counts, and so on.

    `bins` (n,), the bin of each row, is overwritten; `moments` is the highest power of
    the scores that is summed.
    """
    sums = np.zeros((len(SUMS), n_bins))
    weighted_score = scores
    if moments and sample_weight is not None:
        weighted_score = scores * sample_weight
    if moments > 1:
        squares = weighted_score * scores
        sums[_SCORE_SQUARED] = np.bincount(bins, squares, n_bins)
        if sample_weight is not None:
            sums[_WEIGHT_SQUARED] = np.bincount(bins, sample_weight**2, n_bins)
    # One pass gives the sums by bin and label: rows of bin k have the number 2 k
    # without the event, and 2 k + 1 with it. It is computed in the memory of `bins`.
    bin_and_label = bins
    bin_and_label *= 2
    bin_and_label += labels

    def sums_by_label(values):
        """Return the sums (n_bins,) of values (n,), or the counts for None: of all
        rows, and of those with the event.
        """
        by_label = np.bincount(bin_and_label, values, 2 * n_bins)
        of_event = by_label[1::2]
        return by_label[::2] + of_event, of_event

    sums[_COUNT], n_events = sums_by_label(None)
    if sample_weight is None:
        sums[_WEIGHT] = sums[_COUNT]
        sums[_LABEL] = n_events
    else:
        sums[_WEIGHT], sums[_LABEL] = sums_by_label(sample_weight)
    if moments:
        sums[_SCORE], sums[_SCORE_LABEL] = sums_by_label(weighted_score)
    return sums


def _above_lowest(lookup, scores, labels, edges, moments):
    """Return the sums (n_sums, n_bins) of `_by_bin` for rows without weights, most of
    which lie in the lowest bin: ``lookup(scores)``, their bins, is called for those
    above it only. It takes half the time with 1,000 classes, whose scores are mostly
    next to 0.
    """
    is_above = scores > edges[1]
    above = np.flatnonzero(is_above)
    events_below = np.flatnonzero(labels & ~is_above)
    sums = _by_bin(
        lookup(scores[above]),
        len(edges) - 1,
        scores[above],
        labels[above],
        sample_weight=None,
        moments=moments,
    )
    score_below = np.where(is_above, 0, scores)
    sums[[_COUNT, _WEIGHT], 0] += len(scores) - len(above)
    sums[_LABEL, 0] += len(events_below)
    sums[_SCORE, 0] += score_below.sum()
    sums[_SCORE_LABEL, 0] += score_below[events_below].sum()
    sums[_SCORE_SQUARED, 0] += score_below @ score_below
    return sums


def _of_runs(scores, labels, edges, sample_weight, moments):
    """Return the sums (n_sums, n_bins) of `_by_bin` for rows whose scores are in order:
    a bin is a run of such rows, and each sum is one pass of `np.add.reduceat`.
    """
    # `bounds` holds the position at which each bin begins, and last that of the end.
    bounds = np.zeros(len(edges), dtype=np.intp)
    bounds[1:-1] = scores.searchsorted(edges[1:-1], side="right")
    bounds[-1] = len(scores)
    count = bounds[1:] - bounds[:-1]
    sums = np.zeros((len(SUMS), len(count)))
    sums[_COUNT] = count
    # What each row adds, (n,), by the number of the sum; the counts are known already.
    terms = {}
    if sample_weight is None:
        sums[_WEIGHT] = count
        terms[_LABEL] = labels.astype(np.float64)
        weighted_score = scores
    else:
        terms[_WEIGHT] = sample_weight
        terms[_LABEL] = sample_weight * labels
        weighted_score = None
        if moments:
            weighted_score = scores * sample_weight
    if moments:
        terms[_SCORE] = weighted_score
        terms[_SCORE_LABEL] = scores * terms[_LABEL]
    if moments > 1:
        terms[_SCORE_SQUARED] = scores * weighted_score
        if sample_weight is not None:
            terms[_WEIGHT_SQUARED] = sample_weight**2
    # `reduceat` has no empty run, so the bins without rows are left out.
    starts = bounds[:-1]
    filled = slice(None)
    if np.count_nonzero(count) < len(count):
        filled = count > 0
        starts = starts[filled]
    for number, term in terms.items():
        sums[number, filled] = np.add.reduceat(term, starts)
    return sums
