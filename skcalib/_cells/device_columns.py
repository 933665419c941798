"""Each class against the rest, of scores that stay on a device: their bins and the sums
of the bins are computed there, of all classes together.
"""

from functools import cached_property

import numpy as np

from skcalib._cells.cells import Cells
from skcalib._cells.device_sums import sums_of_trials
from skcalib._cells.statistics import BinStatistics, class_statistics
from skcalib._cells.tasks import (
    BinaryTask,
    PooledTask,
    one_label_a_row,
    with_trials,
)
from skcalib._input.tensors import as_array
from skcalib._rows.namespaces import entries_at, sums_up_to, true_positions
from skcalib._rows.sorting import DistinctScores, exactly_summable
from skcalib.binning import (
    EqualMass,
    EqualWidth,
    FixedEdges,
    MonotonicSweep,
    PoolAdjacentViolators,
    check_binning,
)
from skcalib.binning._base import edges_between
from skcalib.binning._equal_mass import last_ranks, needed_shares

_KNOWN_EDGES = (EqualWidth, FixedEdges)  # strategies that do not read the scores
# Strategies whose edges follow from the labels at the distinct scores.
_OF_LABELS = (MonotonicSweep, PoolAdjacentViolators)
_COLUMN_ELEMENTS = 1 << 26  # scores that are sorted together
_MOST_EDGES = 1 << 8  # that follow from labels: each bin is a pass over the scores


class DeviceColumns:
    """The binary problems of the classes of scores on a device.

    Parameters
    ----------
    data : ScoredLabels
        Validated data, whose scores are `DeviceScores`.
    """

    def __init__(self, data):
        self.data = data
        # The arguments and the result of the last call of `statistics`: the tasks of
        # all classes ask for the same in turn.
        self._last_call = (None, None, None)

    @cached_property
    def codes(self):
        """The column of each label (n,), where each sample has one, on the device."""
        scores = self.data.scores
        codes = self.data.labels.astype(np.int64)
        return scores.xp.asarray(codes, device=scores.device)

    def tasks(self):
        """Yield the problem of each class."""
        for k in range(self.data.scores.shape[1]):
            yield DeviceTask(self, k)

    def statistics(self, strategy, moments):
        """Return a list of the `BinStatistics` of each class, binned by a `BaseBinning`
        strategy; None if the bins cannot be found on the device. `moments`, 0 to 2, is
        the highest power of the scores that is summed.
        """
        # Sums of more moments contain those of fewer.
        last_strategy, last_moments, last_result = self._last_call
        if last_strategy is strategy and last_moments >= moments:
            return last_result
        by_class = None
        if type(strategy) in _OF_LABELS:
            edges = [task.edges_of_labels(strategy) for task in self.tasks()]
            if any(edges_of_class is None for edges_of_class in edges):
                edges = None
        else:
            edges = _edges(self.data.scores, self.data.sample_weight, strategy)
        if edges is not None:
            by_class = class_statistics(self.data, edges, moments=moments)
        self._last_call = (strategy, moments, by_class)
        return by_class


class DeviceTask:
    """The problem of class k of `DeviceColumns`. It takes the place of a `BinaryTask`:
    whatever needs more than sums by bin copies the scores of the class.
    """

    label_weights = None
    n_columns = 1

    def __init__(self, columns, k):
        self._columns = columns
        self._k = k
        self._host_task = None

    def statistics(self, binning=None, *, moments=2):
        """Return the `BinStatistics` of the class, binned by a strategy (None: 15 bins
        of equal mass). `moments`, 0 to 2, is the highest power of the scores that is
        summed.
        """
        strategy = check_binning(binning, EqualMass(15))
        by_class = self._columns.statistics(strategy, moments)
        if by_class is None:  # the strategy needs the scores themselves
            return self.on_processor.statistics(strategy, moments=moments)
        return by_class[self._k]

    bin_cells = BinaryTask.bin_cells
    adjusted = BinaryTask.adjusted
    n_rows = BinaryTask.n_rows

    @property
    def size(self):
        """The number of samples."""
        return len(self._columns.data.scores)

    def cells(self, most=None):
        """Return the cells of the distinct scores, as arrays of NumPy; see
        `BinaryTask.cells`.
        """
        if most is None or not self._has_float64:
            return self.on_processor.cells(most)
        return self.adjusted(self.cells_in_place().condensed(most))

    def cells_in_place(self):
        """Return the cells of the distinct scores on the device; of a device without
        double precision, as arrays of NumPy.
        """
        if not self._has_float64 or self._host_task is not None:
            return self.on_processor.cells()
        scores = self._columns.data.scores
        xp = scores.xp
        score, is_event = self._scores_and_events()
        order = xp.argsort(score)
        ordered = xp.take(score, order)
        is_event = xp.take(is_event, order)
        differs_from_next = ordered[:-1] != ordered[1:]
        is_last = xp.concat((differs_from_next, xp.ones_like(is_event[:1])))
        weight = xp.ones_like(order)
        if self.sample_weight is not None:
            weight = scores.moved(exactly_summable(self.sample_weight))
            weight = xp.take(weight, order)
        last = true_positions(xp, is_last)
        sums = []
        for values in (weight, weight * xp.astype(is_event, weight.dtype)):
            up_to_last = xp.take(xp.cumulative_sum(values, dtype=values.dtype), last)
            before = xp.concat((xp.zeros_like(up_to_last[:1]), up_to_last[:-1]))
            sums.append(up_to_last - before)
        # A weight below 2^-53 of the total is rounded to 0.
        has_weight = true_positions(xp, sums[0] > 0)
        sums = [xp.take(sums_of_scores, has_weight) for sums_of_scores in sums]
        distinct = xp.take(xp.take(ordered, last), has_weight)
        return Cells.of_scores(xp.astype(distinct, xp.float64), *sums)

    def edges_of_labels(self, strategy):
        """Return the edges of a strategy that reads the labels, found on the device;
        None if that has no double precision, or if there are too many bins: the scores
        are copied then.
        """
        cells = self.cells_in_place()
        xp = cells.xp
        if xp is np:
            return None
        table = DistinctScores(
            cells.mean_score,
            sums_up_to(xp, cells.weight),
            sums_up_to(xp, cells.weighted_label),
            xp,
        )
        edges = strategy._edges_of_table(table)
        return edges if len(edges) <= _MOST_EDGES else None

    def _scores_and_events(self):
        """Return the score of each sample and whether its label is that of the class,
        (n,) each, on the device.
        """
        data = self._columns.data
        column = slice(self._k, self._k + 1)
        if data.is_multilabel:
            is_event = data.labels.columns(column)[:, 0] > 0
        else:
            is_event = self._columns.codes == self._k
        return data.scores.columns(column)[:, 0], is_event

    def at(self, rows):
        """Return the task of some samples, which stay on the device."""
        return DeviceTask(DeviceColumns(self._columns.data.at(rows)), self._k)

    @property
    def in_place(self):
        """The scores and the labels (n,), on the device if it has double precision."""
        if self._has_float64:
            return self._scores_and_events()
        return self.scores, self.labels

    @property
    def _has_float64(self):
        """Whether the device has double precision: without, it finds no distinct
        scores, and draws no labels.
        """
        return self._columns.data.scores.has_float64

    @property
    def labels(self):
        """Whether the class of each sample is this one, (n,)."""
        data = self._columns.data
        if data.is_multilabel:
            return data.labels[:, self._k]
        return data.labels == self._k

    @property
    def sample_weight(self):
        """The weights, or None."""
        return self._columns.data.sample_weight

    @property
    def on_processor(self):
        """The `BinaryTask` of the class, whose scores are copied from the device."""
        if self._host_task is None:
            scores = self._columns.data.scores.column(self._k)
            self._host_task = BinaryTask(scores, self.labels, self.sample_weight)
        return self._host_task

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.on_processor, name)

    def __iter__(self):
        return iter(self.on_processor)


class DevicePooledTask(DeviceTask):
    """The pairs of a row and a class of scores on a device, as `PooledTask` has
    them.
    """

    def __init__(self, data):
        super().__init__(DeviceColumns(data), None)
        self.n_columns = data.scores.shape[1]

    def statistics(self, binning=None, *, moments=2):
        """Return the `BinStatistics` of all pairs of a row and a class, binned by a
        strategy (None: 15 bins of equal mass). `moments`, 0 to 2, is the highest power
        of the scores that is summed.
        """
        strategy = check_binning(binning, EqualMass(15))
        data = self._columns.data
        if type(strategy) in _OF_LABELS:
            edges = self.edges_of_labels(strategy)
        else:
            edges = _pooled_edges(data.scores, data.sample_weight, strategy)
        if edges is None:  # the strategy needs the scores themselves
            return self.on_processor.statistics(strategy, moments=moments)
        # All classes have the same bins: the sums over all pairs are those of the
        # classes, added up.
        edges_by_class = [edges] * self.n_columns
        by_class = class_statistics(data, edges_by_class, moments=moments)
        return sum(by_class)

    def adjusted(self, cells):
        """Return cells (groups of pairs of a row and a class with near scores) that
        have the variances of rows with one event each: all pairs of a row in a cell are
        one trial, since at most one of them is the event. Cells of scores that do not
        sum to 1 in each row are returned unchanged.
        """
        data = self._columns.data
        if not one_label_a_row(data.scores):
            return cells
        if isinstance(cells, BinStatistics):
            cells = Cells.of_bins(cells)
        variance, squares, weight = sums_of_trials(data, cells)
        if cells.weighted_score_label is None:  # nothing is known of the labels
            squares = weight = None
        return with_trials(cells, variance, squares, weight)

    def _scores_and_events(self):
        """Return the score of each pair and whether its class is the true one, (n K,)
        each, on the device.
        """
        scores = self._columns.data.scores
        xp = scores.xp
        classes = xp.arange(self.n_columns, device=scores.device)
        is_event = self._columns.codes[:, None] == classes[None, :]
        pairs = scores.columns(slice(None))
        return xp.reshape(pairs, (-1,)), xp.reshape(is_event, (-1,))

    @property
    def size(self):
        """The number of pairs."""
        return self._columns.data.scores.size

    def at(self, rows):
        """Return the task of some samples, which stay on the device."""
        return DevicePooledTask(self._columns.data.at(rows))

    @property
    def labels(self):
        """Whether the class of a pair is the true one, (n K,)."""
        return self.on_processor.labels

    @property
    def sample_weight(self):
        """The weights of the pairs, or None."""
        if self._columns.data.sample_weight is None:
            return None
        return np.repeat(self._columns.data.sample_weight, self.n_columns)

    @property
    def on_processor(self):
        """The `PooledTask`, with all scores copied from the device once."""
        if self._host_task is None:
            data = self._columns.data
            scores = np.asarray(data.scores)
            self._host_task = PooledTask.of(scores, data.labels, data.sample_weight)
        return self._host_task


def cells_in_place(task, most=None):
    """Return ``task.cells(most)`` for an error that is computed on a device as well:
    the distinct scores stay there unless they are condensed.
    """
    if most is None and isinstance(task, DeviceTask):
        return task.cells_in_place()
    return task.cells(most)


def rows_in_place(task):
    """Return a problem for an error whose rows need not be sorted: the cells of its
    distinct scores on a device, and else the rows themselves.
    """
    return task.cells_in_place() if isinstance(task, DeviceTask) else task


def _edges(scores, sample_weight, strategy):
    """Return the edges of the bins of each class of `DeviceScores`, a list of K arrays;
    None if the strategy needs more than order statistics of the scores.
    """
    n_classes = scores.shape[1]
    if type(strategy) in _KNOWN_EDGES:
        # These edges do not depend on the scores: zeros take their place.
        edges = strategy._edges_of(np.zeros(len(scores)), None, sample_weight)
        return [edges] * n_classes
    if not _sorts_on_device(scores, sample_weight, strategy):
        return None
    n_bins = strategy._n_bins_for(len(scores), sample_weight)
    edges = []
    # Classes are sorted together as far as memory allows.
    n_together = max(_COLUMN_ELEMENTS // len(scores), 1)
    for start in range(0, n_classes, n_together):
        columns = scores.columns(slice(start, min(start + n_together, n_classes)))
        edges += _equal_mass_edges(scores, columns, n_bins, sample_weight)
    return edges


def _pooled_edges(scores, sample_weight, strategy):
    """Return the edges of the bins of all classes' scores together, of `DeviceScores`;
    None if the strategy needs more than order statistics of the scores.
    """
    if sample_weight is not None:
        sample_weight = np.repeat(sample_weight, scores.shape[1])
    if type(strategy) in _KNOWN_EDGES:  # which do not read the scores: zeros do
        return strategy._edges_of(np.zeros(scores.size), None, sample_weight)
    if not _sorts_on_device(scores, sample_weight, strategy):
        return None
    n_bins = strategy._n_bins_for(scores.size, sample_weight)
    pairs = scores.xp.reshape(scores.columns(slice(None)), (-1, 1))
    (edges,) = _equal_mass_edges(scores, pairs, n_bins, sample_weight)
    return edges


def _sorts_on_device(scores, sample_weight, strategy):
    """Return whether the device can find a strategy's edges: those that are order
    statistics, of weights only if these can be added up in double precision.
    """
    adds_up = sample_weight is None or scores.has_float64
    return type(strategy) is EqualMass and adds_up


def _equal_mass_edges(scores, columns, n_bins, sample_weight):
    """Return the edges of bins of equal mass for each of some columns (n, m), a list of
    m arrays. An inner edge is the midpoint of the last score of a bin and the next
    larger score of the column.
    """
    xp = scores.xp
    n, n_columns = columns.shape
    if min(n, n_bins) == 1:
        return [np.array([0.0, 1.0])] * n_columns
    # 1. `lower` (n_bins - 1, m): the last score of each bin but the last one.
    if sample_weight is None:
        ordered = xp.sort(columns, axis=0)
        last = xp.asarray(last_ranks(n, n_bins) - 1, device=scores.device)
        lower = xp.take(ordered, last, axis=0)
    else:
        order = xp.argsort(columns, axis=0)
        ordered = entries_at(xp, columns, order)
        # the weights in the order of each column
        weight = xp.asarray(sample_weight, device=scores.device)
        weight_in_order = xp.take(weight, xp.reshape(order, (-1,)))
        weight_in_order = xp.reshape(weight_in_order, (n, n_columns))
        cumulative = xp.cumulative_sum(weight_in_order, axis=0)
        needed = needed_shares(n_bins).tolist()
        last = [_count(xp, cumulative < share * cumulative[-1:, :]) for share in needed]
        lower = entries_at(xp, ordered, xp.stack(last))
    # 2. `upper` (n_bins - 1, m): the next larger score in each column. Its position is
    # the number of scores up to `lower`; n means that there is no larger score.
    position = xp.stack(
        [_count(xp, ordered <= lower[b, :]) for b in range(lower.shape[0])]
    )
    upper = entries_at(xp, ordered, xp.clip(position, None, n - 1))
    lower, _ = as_array(lower)
    upper, _ = as_array(upper)
    position, _ = as_array(position)
    has_larger = position < n
    # 3. Bins of a column that end at the same score are one bin.
    edges = []
    for k in range(n_columns):
        lower_of_column = lower[has_larger[:, k], k]
        upper_of_column = upper[has_larger[:, k], k]
        distinct, first = np.unique(lower_of_column, return_index=True)
        edges.append(edges_between(distinct, upper_of_column[first]))
    return edges


def _count(xp, mask):
    """Return the number of true entries of each column of a mask (n, m)."""
    return xp.sum(xp.astype(mask, xp.int32), axis=0)
