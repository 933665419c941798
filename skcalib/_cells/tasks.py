"""Binary problems of rows: scores and labels, of independent rows, of rows with weights
of importance, and of the pairs of a row and a class.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from skcalib._cells.cells import Cells
from skcalib._cells.statistics import BinStatistics, bin_statistics
from skcalib._input.device_scores import sums_of_rows
from skcalib._input.label_weights import few_effective_events, looks_like_counts
from skcalib._input.several_labels import NORMALISED
from skcalib._rows.blocks import effective_size, taken
from skcalib._rows.sorting import in_order, sorted_rows
from skcalib.binning import check_binning


class BinaryTask(NamedTuple):
    """One binary problem: how often an event happens, given its score.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Predicted probabilities of the event.
    labels : ndarray of bool, shape (n,)
        Whether it happened.
    sample_weight : ndarray of shape (n,) or None
        Weights.
    """

    scores: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None
    label_weights = None  # what the weights of a `WeightedTask` say about the labels
    n_columns = 1  # pairs of a score and a label that belong to one row

    def statistics(self, binning, *, moments=2):
        """Return the bin statistics under a binning strategy.

        Parameters
        ----------
        binning : BaseBinning, int or None
            The strategy; an int is a number of equal-mass bins; None means
            ``EqualMass(15)``.
        moments : {0, 1, 2}, default=2
            The highest power of the scores that is summed: sums of higher ones are NaN.

        Returns
        -------
        statistics : BinStatistics
            The sums of the bins.
        """
        strategy = check_binning(binning)
        rows = self.sorted_for(strategy)
        is_ordered = True if rows is not self else None  # None: not known
        return bin_statistics(
            rows.scores,
            rows.labels,
            strategy._edges_of(*rows),
            rows.sample_weight,
            moments=moments,
            is_ordered=is_ordered,
        )

    def sorted_for(self, strategy):
        """Return the problem with its rows sorted by score if the bins of `strategy` (a
        `BaseBinning`) are then made faster; else the problem itself.
        """
        # Of more rows than these, the strategy finds its edges faster without a sort.
        sort_pays = len(self.scores) <= strategy._sorts_up_to
        # The fast sort orders scores and labels, but no weights beside them.
        has_weights = self.sample_weight is not None
        if has_weights or not sort_pays or in_order(self.scores):
            return self
        scores, labels = sorted_rows(self.scores, self.labels)
        return BinaryTask(scores, labels, sample_weight=None)

    @property
    def weight_type(self):
        """What the weights mean if nobody says it: "frequency" (a weight of 2 counts as
        two rows) for whole numbers and without weights, else "importance". That is
        also the meaning of one whole number for each label.

        A subset of the rows may have another answer than all of them.
        """
        if looks_like_counts(self.labels, self.sample_weight):
            return "frequency"
        return "importance"

    @property
    def size(self):
        """The number of scores."""
        return len(self.scores)

    def at(self, rows):
        """Return the problem of some rows, given by their positions."""
        return BinaryTask(
            self.scores[rows], self.labels[rows], taken(self.sample_weight, rows)
        )

    @property
    def n_rows(self):
        """How many rows the weights are worth: their sum where they count rows, else
        Kish's number.
        """
        weight = self.sample_weight
        if weight is None:
            return self.size
        if is_counted(weight):
            return weight.sum()
        return effective_size(weight.sum(), weight @ weight)

    def bin_cells(self, binning):
        """Return the filled bins of a strategy as cells.

        Parameters
        ----------
        binning : BaseBinning, int or None
            The strategy; an int is a number of equal-mass bins; None means
            ``EqualMass(15)``.

        Returns
        -------
        cells : Cells
            The bins that hold rows.
        """
        return self.adjusted(Cells.of_bins(self.statistics(binning)))

    def cells(self, most=None):
        """Return the cells of the distinct scores.

        Parameters
        ----------
        most : int, default=None
            Number of cells beyond which neighbouring scores are pooled. None for one
            cell per score.

        Returns
        -------
        cells : Cells
            The cells. With `most`, labels are to be drawn for them: the method
            `adjusted` gives them the variances of their event frequencies.
        """
        cells = Cells.from_rows(*self)
        if most is None:
            return cells
        return self.adjusted(cells.condensed(most))

    def adjusted(self, cells):
        """Return cells of this problem with the variances of their events: those of
        independent rows, as they are. `PooledTask` overrides it.
        """
        return cells

    @property
    def on_processor(self):
        """The problem with scores of NumPy: itself."""
        return self

    @property
    def in_place(self):
        """The scores and the labels (n,), where they are: on a device for a
        `DeviceTask`.
        """
        return self.scores, self.labels

    @property
    def weight(self):
        """The weights, or None. With `mean_score` and `event_frequency` this lets a
        power take the rows themselves as cells: each has one score, and its event
        frequency is the label.
        """
        return self.sample_weight

    @property
    def mean_score(self):
        """The scores; see `weight`."""
        return self.scores

    @property
    def event_frequency(self):
        """The labels; see `weight`."""
        return self.labels


class WeightedTask(BinaryTask):
    """Rows with weights of importance, whose `label_weights` decide how much the event
    frequency of a cell varies.
    """

    @classmethod
    def of(cls, scores, labels, label_weights):
        """Return the problem of scores (n,), labels (n,) and `LabelWeights`."""
        task = cls(scores, labels, label_weights.weight)
        task.label_weights = label_weights
        return task

    def adjusted(self, cells):
        """Return cells that know how much their event frequencies vary: with `trials`,
        the number of equal rows whose frequency would vary as much or, if the weight
        that a row would have with the other label is unknown, with `noise`, the
        variance itself.

        The variance of an event frequency is V / W^2, with V the variance of the sum of
        w (y - s) over the rows of the cell, and W the sum of their weights. If both
        weights of a row, w1 and w0, are known, V is the sum of w1 w0 s (1 - s), that of
        calibrated scores. Otherwise it is estimated by the sum of (w (y - s))^2. These
        squares are not taken about their mean: so a squared deviation minus this
        variance is unbiased.
        """
        if isinstance(cells, BinStatistics):
            cells = Cells.of_bins(cells)
        n_cells = len(cells.weight)
        cell_of_row = cells.cell_of(self.scores)
        scores = self.scores.astype(np.float64)
        if self.label_weights.is_known:
            # n trials have the variance v / n, with v the weighted mean of s (1 - s):
            # n = v W^2 / V. If all scores of a cell are 0 or 1, so that both are 0, its
            # rows count as if s (1 - s) were 1.
            label_variance = scores * (1 - scores)
            sum_in_cell = np.bincount(cell_of_row, label_variance, n_cells)
            is_certain = sum_in_cell[cell_of_row] == 0
            label_variance = np.where(is_certain, 1.0, label_variance)
            product = self.label_weights.weight * self.label_weights.other  # w1 w0
            variance = np.bincount(cell_of_row, product * label_variance, n_cells)
            weighted_variance = np.bincount(
                cell_of_row, self.sample_weight * label_variance, n_cells
            )
            trials = cells.weight * weighted_variance / variance
            return with_fields(cells, trials=trials)
        residual = self.sample_weight * (self.labels - scores)
        squares = np.bincount(cell_of_row, residual**2, n_cells)
        return with_fields(cells, noise=squares / cells.weight**2)


def weight_of_row(task, bins):
    """Return for each bin (n_bins,) the weight v of one effective row, for a task with
    importance weights; None for other tasks.

    The rows of a bin, of the total weight W, are worth W / v rows of equal weight: the
    event frequency f then has the variance f (1 - f) v / W. If the weight that a row
    would have with the other label is unknown, v follows from the observed squares. In
    a bin with few events it is at least sum w^2 / W.
    """
    if task.label_weights is None:
        return None
    cells = Cells.of_bins(bins)
    if task.label_weights.is_known and task.n_columns == 1:
        effective_weight = cells.weight / task.adjusted(cells).trials
    else:
        frequency = cells.event_frequency
        cell_of_row = cells.cell_of(task.scores)
        residual = task.sample_weight * (task.labels - frequency[cell_of_row])
        squares = np.bincount(cell_of_row, residual**2, len(frequency))
        variance = frequency * (1 - frequency) * cells.weight
        effective_weight = np.divide(
            squares, variance, out=np.zeros(len(variance)), where=variance > 0
        )
        # With few events the observed squares say little: the larger weight counts.
        for k in range(len(effective_weight)):
            rows = cell_of_row == k
            if few_effective_events(task.labels[rows], task.sample_weight[rows]):
                least_weight = cells.weight_squared[k] / cells.weight[k]
                effective_weight[k] = max(effective_weight[k], least_weight)
    weights = np.ones(bins.n_bins)  # 1 in empty bins, which `cells` lacks
    weights[bins.weight > 0] = effective_weight
    return weights


def with_fields(cells, **fields):
    """Return cells with other fields, and the same mean scores."""
    mean_score = cells.mean_score
    cells = replace(cells, **fields)
    # Fill the cached property: a quotient of sums would round.
    object.__setattr__(cells, "mean_score", mean_score)
    return cells


class PooledTask(BinaryTask):
    """The pairs of a row and a class as the rows of one binary problem: the score of
    the pair is that of the class, its label whether the class is the true one. The K =
    `n_columns` pairs of a row stand together.
    """

    # The `LabelWeights` of the rows (n,), where they are of importance.
    label_weights = None

    @classmethod
    def of(cls, scores, codes, weight, label_weights=None):
        """Return the problem whose rows are the n K pairs of a row and a class.

        `scores` are (n, K), `codes` (n,) the true class of each row as a column number,
        and `weight` (n,) or None the weights of the rows, with their `LabelWeights` if
        they are of importance.
        """
        n_columns = scores.shape[1]
        labels = codes[:, None] == np.arange(n_columns)  # (n, K)
        pair_weight = None
        if weight is not None:
            pair_weight = np.repeat(weight, n_columns)
        task = cls(scores.ravel(), labels.ravel(), pair_weight)
        task.n_columns = n_columns
        task.label_weights = label_weights
        return task

    def at(self, rows):
        """Return the problem of some rows, each with all its pairs."""
        first_pair = np.asarray(rows)[:, None] * self.n_columns
        pairs = (first_pair + np.arange(self.n_columns)).ravel()
        task = PooledTask(*super().at(pairs))
        task.n_columns = self.n_columns
        return task

    def adjusted(self, cells):
        """Return cells with the variances of rows that have one event each: the pairs
        of a row in a cell are one trial, since at most one of them is the event; see
        `with_trials`. Cells of scores that do not sum to 1 in each row are returned
        unchanged.
        """
        scores = self.scores.reshape(-1, self.n_columns).astype(np.float64)
        if not one_label_a_row(scores):
            return cells
        if isinstance(cells, BinStatistics):
            cells = Cells.of_bins(cells)
        trials = self._trials(scores, cells)
        variance, squares, weight = trials.sums(cells)
        adjusted = with_trials(cells, variance, squares, weight)
        if self.label_weights is None:
            return adjusted
        # Importance weights: the variance of a frequency is estimated by the squared
        # sums of the residuals of each trial.
        squared_sum = (trials.weight * trials.residual) ** 2
        squares = np.bincount(trials.cell, squared_sum, len(cells.weight))
        return with_fields(adjusted, noise=squares / cells.weight**2)

    def _trials(self, scores, cells):
        """Return the `_Trials` of rows with scores (n, K) in some `Cells`: the pairs of
        a row and a class that lie in one cell are one trial.
        """
        n_rows = len(scores)
        cell_of_pair = cells.cell_of(self.scores)
        # Entry i is the first pair of row i: all rows have K pairs.
        row_starts = np.arange(0, scores.size + 1, self.n_columns)

        def by_row_and_cell(values):
            """Return the sums of values (n K,) of the pairs that a row has in a cell,
            as a sparse array (n, n_cells).
            """
            sums = csr_array(
                (values, cell_of_pair, row_starts),
                (n_rows, len(cells.weight)),
                copy=True,  # the indices serve several arrays, and are overwritten
            )
            sums.sum_duplicates()
            return sums

        score = by_row_and_cell(scores.ravel())
        residual = by_row_and_cell((self.labels - self.scores).astype(np.float64))
        n_pairs = by_row_and_cell(np.ones(scores.size))
        weight = np.ones(n_rows)
        if self.sample_weight is not None:
            weight = self.sample_weight[:: self.n_columns]
        n_trials_of_row = np.diff(score.indptr)
        return _Trials(
            cell=score.indices,
            weight=np.repeat(weight, n_trials_of_row),
            probability=score.data,
            residual=residual.data,
            n_pairs=n_pairs.data,
        )


class _Trials(NamedTuple):
    """The events of pairs by row and cell: one trial, arrays (n_trials,), for each row
    and each cell that holds pairs of it.

    Parameters
    ----------
    cell : ndarray of int
        Number of the cell.
    weight : ndarray
        Weight of the row.
    probability : ndarray
        Sum of the scores of the pairs: the probability q that one of them is the event.
    residual : ndarray
        Number of events, 0 or 1, less q.
    n_pairs : ndarray
        Number of the pairs.
    """

    cell: np.ndarray
    weight: np.ndarray
    probability: np.ndarray
    residual: np.ndarray
    n_pairs: np.ndarray

    def sums(self, cells):
        """Return three sums over the trials of each of the `cells` (n_cells,), for
        `with_trials`: of w q (1 - q), of the weighted squares of the residuals about
        their mean, and of the weights w. The last two are None where nothing is known
        of the labels.
        """
        n_cells = len(cells.weight)
        q = self.probability
        variance = np.bincount(self.cell, self.weight * q * (1 - q), n_cells)
        if cells.weighted_score_label is None:
            return variance, None, None
        # `deviation` is the mean residual of a pair
        centred = self.residual - self.n_pairs * cells.deviation[self.cell]
        squares = np.bincount(self.cell, self.weight * centred**2, n_cells)
        weight = np.bincount(self.cell, self.weight, n_cells)
        return variance, squares, weight


def with_trials(cells, variance, squares, weight):
    """Return cells of the pairs of a row and a class with other sums of w s^2 and of
    w s y. From these sums `Cells` computes variances as if the pairs were independent.
    With the new ones it finds the variances of trials: the pairs of a row in a cell are
    one trial, since at most one of them is the event.

    Parameters
    ----------
    cells : Cells
        The cells of the pairs.
    variance : ndarray of shape (n_cells,)
        Sums over the trials of w q (1 - q), with the weight w of the row and the
        probability q that one of its pairs in the cell is the event.
    squares : ndarray of shape (n_cells,) or None
        Sums of the squared residuals about their mean, the deviation of the cell times
        the number of pairs.
    weight : ndarray of shape (n_cells,) or None
        Sums of the weights.
    """
    total = cells.weight
    mean = cells.mean_score
    # `Cells` takes the mean of s minus the mean of s^2 for the variance of the events.
    # The sums of w s^2 are chosen so that this is the variance of the trials, divided
    # by the weight of the pairs.
    scores_squared = total * (mean - np.minimum(variance / total, mean * (1 - mean)))
    products = None
    if squares is not None:
        # The sums of w s y for which `residual_variance` / (total - 1) is the variance
        # of the mean residual of a cell, with rows as the independent units: the sum of
        # squares about it, made unbiased, over total^2.
        small_sample = weight / np.maximum(weight - 1, 1)
        noise = squares * small_sample * (total - 1) / total**2
        # `residual_variance` is (weighted_label - 2 products + squares) / total -
        # deviation^2, which is solved for the products.
        residual_square = total * (noise + cells.deviation**2)
        products = (cells.weighted_label + scores_squared - residual_square) / 2
    return with_fields(
        cells, weighted_score_squared=scores_squared, weighted_score_label=products
    )


def is_counted(weight):
    """Return whether weights count rows where nobody says what they are: None, or all
    of them whole numbers.
    """
    return weight is None or not (weight % 1).any()


def one_label_a_row(scores):
    """Return whether the scores (n, K) of each row are the probabilities of one
    label.
    """
    return bool(np.all(np.abs(sums_of_rows(scores) - 1) < NORMALISED))
