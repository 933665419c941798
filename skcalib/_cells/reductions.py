"""Many classes as binary problems: top-label, one-vs-rest (marginal) and pooled, once
for everybody.
"""

import reprlib
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from skcalib._cells.cells import Cells
from skcalib._cells.statistics import (
    BinStatistics,
    bin_statistics,
    unchecked_statistics,
)
from skcalib._input.groups import check_named_groups
from skcalib._input.label_weights import (
    is_importance,
    label_weights,
    looks_like_counts,
    warn_of_counts,
)
from skcalib._input.scalars import check_option
from skcalib._input.scored_labels import ScoredLabels, check_scored_labels
from skcalib._input.several_labels import NORMALISED
from skcalib._rows.blocks import row_blocks
from skcalib._rows.sorting import in_order, sorted_rows
from skcalib.binning import EqualMass, check_binning

# A variance of the scores of a bin below it is that of one score, rounded.
_ONE_SCORE = 1e-12
# The fields of `BinStatistics` that are proportional to the weights.
_SUMS_OF_WEIGHTS = (
    "weight",
    "weighted_score",
    "weighted_label",
    "weighted_score_squared",
    "weighted_score_label",
)
# Columns that are copied at a time: each cache line of the rows is read once for 16 or
# 8 of them. A marginal error of 1,000 classes takes .75 of the time of a copy of each
# column by itself.
_COLUMNS = 32


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
        moments : int, default=2
            See `bin_statistics`.

        Returns
        -------
        statistics : BinStatistics
            The sums of the bins.
        """
        strategy = check_binning(binning, EqualMass(15))
        rows = self.sorted_for(strategy)
        return bin_statistics(
            rows.scores,
            rows.labels,
            strategy._edges_of(*rows),
            rows.sample_weight,
            moments=moments,
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
    def n_rows(self):
        """How many rows the weights are worth: their sum where they count rows, else
        ``sum(w)**2 / sum(w**2)``.
        """
        weight = self.sample_weight
        if weight is None:
            return len(self.scores)
        if is_counted(weight):
            return weight.sum()
        return weight.sum() ** 2 / (weight @ weight)

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
            The cells. With `most`, labels are to be drawn for them: their variances
            are those of `adjusted`.
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
        """Return cells with the numbers of trials that the rows are worth, or, where
        the weights of the other label are unknown, with the noise of their frequencies.

        With V the variance of the sum of w (y - s) over the rows of a cell and W their
        weight, the event frequency has the variance V / W^2. V is that of calibrated
        scores, or the sum of the observed squares. These are not centred: less them, a
        squared deviation is unbiased as it stands.
        """
        if isinstance(cells, BinStatistics):
            cells = Cells.of_bins(cells)
        n_cells = len(cells.weight)
        cell = cells.of_rows(self.scores)
        scores = self.scores.astype(np.float64)
        if self.label_weights.is_known:
            # The weighted mean of s (1 - s) over its variance V / W^2. Scores of 0 and
            # 1 alone have no variance: their rows then count alike.
            label_variance = scores * (1 - scores)
            certain = np.bincount(cell, label_variance, n_cells)[cell] == 0
            label_variance = np.where(certain, 1.0, label_variance)
            product = self.label_weights.weight * self.label_weights.other
            variance = np.bincount(cell, product * label_variance, n_cells)
            label_mean = np.bincount(cell, self.sample_weight * label_variance, n_cells)
            return _with(cells, trials=cells.weight * label_mean / variance)
        residual = self.sample_weight * (self.labels - scores)
        squares = np.bincount(cell, residual**2, n_cells)
        return _with(cells, noise=squares / cells.weight**2)


def _with(cells, **fields):
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

    def adjusted(self, cells):
        """Return cells with the variances of rows that have one event each.

        `Cells` finds variances from the sums of w s^2 and w s y, as if all pairs of a
        row and a class were independent. But the pairs of a row in a cell are one
        trial, since at most one of them is an event. The two sums are replaced by those
        from which `Cells` finds the variances of such trials. Cells of scores that do
        not sum to 1 in each row stay as they are.
        """
        scores = self.scores.reshape(-1, self.n_columns).astype(np.float64)
        if not one_label_a_row(scores):
            return cells
        if isinstance(cells, BinStatistics):
            cells = Cells.of_bins(cells)
        trials = self._trials(scores, cells)
        squares = trials.weighted_score_squared(cells)
        products = None
        if cells.weighted_score_label is not None:
            products = trials.weighted_score_label(cells, squares)
        adjusted = _with(
            cells, weighted_score_squared=squares, weighted_score_label=products
        )
        if self.label_weights is None:
            return adjusted
        # All pairs of a row in a cell are one trial.
        squared_sum = (trials.weight * trials.residual) ** 2
        squares = np.bincount(trials.cell, squared_sum, len(cells.weight))
        return _with(adjusted, noise=squares / cells.weight**2)

    def _trials(self, scores, cells):
        """Return the `_Trials` of rows with scores (n, K) in some `Cells`."""
        n_rows = len(scores)
        cell_of_pair = cells.of_rows(self.scores)
        # Entry i is the first pair of row i: all rows have K pairs.
        row_starts = np.arange(0, scores.size + 1, self.n_columns)

        def by_row_and_cell(values):
            """Return the sums of values (n K,) of the pairs that a row has in a cell,
            as a sparse array (n, n_cells).
            """
            sums = csr_array(
                (values, cell_of_pair, row_starts),
                (n_rows, len(cells.weight)),
                copy=True,
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

    def weighted_score_squared(self, cells):
        """Return the sums of w s^2 (n_cells,) for which s - (mean of s^2), which
        `Cells` takes for the variance of the events, is that of the trials: the sum of
        w q (1 - q), divided by the weight of the pairs.
        """
        total = cells.weight
        mean = cells.mean_score
        q = self.probability
        trial_variance = np.bincount(self.cell, self.weight * q * (1 - q), len(total))
        variance = trial_variance / total
        return total * (mean - np.minimum(variance, mean * (1 - mean)))

    def weighted_score_label(self, cells, squares):
        """Return the sums of w s y (n_cells,) for which `residual_variance` / (total -
        1) is the variance of the mean residual of a cell, with rows as the independent
        units. `squares` (n_cells,) are the sums of w s^2.
        """
        total = cells.weight
        deviation = cells.deviation
        # The variance of the mean residual: the sum of squares about it, made unbiased,
        # over total^2. Times total - 1 it is what `residual_variance` must be.
        centred = self.residual - self.n_pairs * deviation[self.cell]
        noise = np.bincount(self.cell, self.weight * centred**2, len(total))
        n_rows = np.bincount(self.cell, self.weight, len(total))
        small_sample = n_rows / np.maximum(n_rows - 1, 1)
        noise *= small_sample * (total - 1) / total**2
        # `residual_variance` is (weighted_label - 2 products + squares) / total -
        # deviation^2, which is solved for the products.
        residual_square = total * (noise + deviation**2)
        return (cells.weighted_label + squares - residual_square) / 2


class BinnedTask:
    """One binary problem that is known by its `BinStatistics` alone. It takes the place
    of a `BinaryTask`, and of the `ScoredLabels` that this is made from; whatever needs
    rows raises a ValueError.
    """

    is_binary = True
    is_multilabel = False
    label_weights = None  # these are of rows

    def __init__(self, bins, *, importance=False):
        self.bins = bins  # a `BinStatistics` that holds rows
        # Whether the weights are of importance: rows of a bin then count as equal.
        self.importance = importance

    def statistics(self, binning=None, *, moments=2):
        """Return the sums; `check_rows_or_bins` has made sure that no other strategy
        was asked for.
        """
        return self.bins

    bin_cells = BinaryTask.bin_cells

    def adjusted(self, cells):
        """Return cells with the numbers of rows of equal weight that weights of
        importance are worth; other cells as they are.
        """
        if not self.importance:
            return cells
        if isinstance(cells, BinStatistics):
            cells = Cells.of_bins(cells)
        squares = self.bins.weight_squared[self.bins.weight > 0]
        if len(squares) != len(cells.weight):
            return cells
        return _with(cells, trials=cells.weight**2 / squares)

    def cells(self, most=None):
        """Return the cells of the distinct scores; raise a ValueError if a bin holds
        more than one score. With more than `most` cells neighbours are pooled.
        """
        cells = Cells.of_bins(self.bins)
        if np.any(cells.score_variance > _ONE_SCORE):
            self._refuse("a BinStatistics with one distinct score a bin (UniqueScores)")
        # The same as cells of one score, which need no second moments.
        cells = Cells.of_scores(cells.mean_score, cells.weight, cells.weighted_label)
        if most is None:
            return cells
        return cells.condensed(most)

    @property
    def n_rows(self):
        """How many rows the weights are worth: their sum where they count rows, else
        ``sum(w)**2 / sum(w**2)``.
        """
        weight = self.bins.weight
        if is_counted(weight):
            return weight.sum()
        return weight.sum() ** 2 / self.bins.weight_squared.sum()

    def _refuse(self, *needed):
        """Raise: this needs the rows, or one of the other things named in `needed`."""
        needed = " or ".join(
            ["the score and the label of each row (pass y_true and y_proba)", *needed]
        )
        raise ValueError(
            "A BinStatistics contains only sums by bin, but this function needs"
            f" {needed}."
        )

    def __iter__(self):
        self._refuse()

    # What a task of rows has and sums have not: whoever asks is told what to pass, in
    # place of an AttributeError.
    @property
    def scores(self):
        """Refused: only rows have it."""
        self._refuse()

    labels = sample_weight = classes = kept = weight = weight_type = mean_score = (
        event_frequency
    ) = scores


def check_rows_or_bins(
    y_true,
    y_proba,
    *,
    binning=None,
    multiclass="auto",
    sample_weight=None,
    pos_label=None,
    labels=None,
    drop=True,
    multilabel=False,
):
    """Validate the input of a metric that may be a `BinStatistics`: return
    `ScoredLabels`, or a `BinnedTask`.

    `binary_tasks` and `resolve_multiclass` take either. A `BinStatistics` has its bins
    already: `y_proba`, `binning` and the arguments about rows must then be None.
    `drop` says whether rows of weight zero are left out, and `multilabel` whether
    `y_true` (n, L) may hold several labels per row.
    """
    options = {"sample_weight": sample_weight, "pos_label": pos_label, "labels": labels}
    if isinstance(y_true, (ScoredLabels, BinnedTask)):  # validated before
        return y_true
    if not isinstance(y_true, BinStatistics):
        return check_scored_labels(
            y_true,
            y_proba,
            multiclass=multiclass,
            drop=drop,
            multilabel=multilabel,
            **options,
        )
    refuse_beside_bins(
        multiclass=multiclass, y_proba=y_proba, binning=binning, **options
    )
    if not y_true.total_weight > 0:
        raise ValueError("The BinStatistics contains no rows: every bin is empty.")
    return BinnedTask(y_true)


def refuse_beside_bins(found="a BinStatistics", *, multiclass, **arguments):
    """Raise for an argument about rows (by its name; None where it is not given) that
    stands beside sums by bin, which `found` names.
    """
    if multiclass != "auto":
        arguments["multiclass"] = multiclass
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(
                f"{name}={reprlib.repr(value)} needs the score and the label of each"
                f" row, found {found}, which contains only sums of bins: pass labels"
                " and probabilities, or omit it."
            )


def counted_rows(data, weight_type, *, warns=True):
    """Return validated data with weights that can be taken for numbers of rows.

    Importance weights are multiplied by one factor, so that they add up to the number
    of rows of equal weight that they are worth, (sum w)^2 / sum w^2. Rows then have
    `label_weights`. Call it on all rows first: what the weights say about the labels is
    decided there, and stays so where some of the rows are scaled again.

    Parameters
    ----------
    data : ScoredLabels or BinnedTask
        Validated data.
    weight_type : {"frequency", "importance"} or dict
        Meaning of the weights.
    warns : bool, default=True
        Whether to warn of weights that should count rows and do not look like it.

    Returns
    -------
    data : ScoredLabels or BinnedTask
        The data; unchanged if there are no weights, or if they are of the type
        "frequency".
    """
    importance = is_importance(weight_type)
    is_binned = isinstance(data, BinnedTask)
    if is_binned:
        weight = data.bins.weight
    else:
        weight = data.sample_weight
    if weight is None:
        return data
    if not importance:
        if warns:
            warn_of_counts(None if is_binned else data.labels, weight)
        return data
    # The factor f for which sum f w is the number of rows, (sum w)^2 / sum w^2.
    if not is_binned:
        factor = weight.sum() / (weight @ weight)
        known = data.label_weights
        if known is None:
            known = label_weights(data.labels, weight, weight_type, data.classes)
        return data._replace(
            sample_weight=factor * weight, label_weights=known.scaled(factor)
        )
    if isinstance(weight_type, Mapping):
        raise ValueError(
            "weight_type={label: weight} needs the rows, whose weights a BinStatistics"
            " does not hold: pass labels and probabilities."
        )
    factor = weight.sum() / data.bins.weight_squared.sum()
    sums = {name: factor * getattr(data.bins, name) for name in _SUMS_OF_WEIGHTS}
    squares = factor**2 * data.bins.weight_squared  # sums of (f w)^2
    return BinnedTask(
        unchecked_statistics(
            data.bins.edges, count=data.bins.count, weight_squared=squares, **sums
        ),
        importance=True,
    )


def is_counted(weight):
    """Return whether weights count rows where nobody says what they are: None, or all
    of them whole numbers.
    """
    return weight is None or not (weight % 1).any()


def top_label(scores):
    """Return the predicted class of each row (n,), the first of the largest scores, and
    its score (n,), for scores (n, K).
    """
    predicted = scores.argmax(axis=1)
    confidence = np.take_along_axis(scores, predicted[:, None], axis=1)
    return predicted, confidence[:, 0]


def one_label_a_row(scores):
    """Return whether the scores (n, K) of each row are the probabilities of one
    label.
    """
    return bool(np.all(np.abs(scores.sum(axis=1) - 1) < NORMALISED))


def resolve_multiclass(multiclass, data, *, pooled=False):
    """Return "binary", "top_label", "marginal" or, where it is allowed, "pooled" for a
    metric's `multiclass`, of which "auto" depends on the validated data.
    """
    if isinstance(multiclass, str) and multiclass == "auto":
        if data.is_multilabel:
            return "marginal"
        if data.is_binary:
            return "binary"
        return "top_label"
    options = ("auto", "top_label", "marginal")
    if pooled:
        options = (*options, "pooled")
    return check_option(multiclass, "multiclass", options)


def binary_tasks(data, multiclass, *, pooled=False):
    """Yield the binary problems that `multiclass` makes of a metric's validated data.

    One for "auto" with two classes (the positive class), for "top_label" (is the
    predicted class right) and, where it is allowed, for "pooled" (a `PooledTask`); one
    for each class for "marginal", and for each of several labels per row. Two classes
    given as one score count as the columns (1 - s, s).
    """
    if isinstance(data, BinnedTask):
        yield data
        return
    kind = resolve_multiclass(multiclass, data, pooled=pooled)
    scores = data.scores
    if kind == "binary":
        yield _row_task(scores, data.labels, data)
        return
    if data.is_binary:
        scores = np.column_stack((1 - scores, scores))
    if kind == "top_label":
        if data.predicted is None:
            predicted, confidence = top_label(scores)
        else:
            predicted = data.predicted
            confidence = data.confidence
        yield _row_task(confidence, data.labels == predicted, data)
    elif kind == "pooled":
        label_weights = data.label_weights
        if not _vary(label_weights):
            label_weights = None
        yield PooledTask.of(scores, data.labels, data.sample_weight, label_weights)
    else:
        for k, column in enumerate(_columns(scores)):
            if data.is_multilabel:
                labels = data.labels[:, k]
            else:
                labels = data.labels == k
            yield _row_task(column, labels, data)


def _vary(label_weights):
    """Return whether `LabelWeights` (or None) differ between rows: equal ones count
    rows.
    """
    return label_weights is not None and label_weights.form != "constant"


def _row_task(scores, labels, data):
    """Return the binary problem of scores (n,) and labels (n,) with the weights of
    `ScoredLabels`.
    """
    if _vary(data.label_weights):
        return WeightedTask.of(scores, labels, data.label_weights)
    return BinaryTask(scores, labels, data.sample_weight)


def one_task(data, multiclass, *, pooled=False):
    """Return the binary problem that `multiclass` makes; raise where it makes one
    problem for each class.
    """
    if resolve_multiclass(multiclass, data, pooled=pooled) == "marginal":
        raise ValueError(
            'multiclass="marginal" gives one binary problem per class, but this'
            ' function takes only one: use "top_label", or pass one class at a time.'
        )
    return next(binary_tasks(data, multiclass, pooled=pooled))


def _columns(scores):
    """Yield the columns (n,) of scores (n, K) as contiguous arrays.

    Some columns at a time are copied together, in tiles of rows that fit the cache.
    """
    n, n_classes = scores.shape
    for columns in row_blocks(n_classes, n, at_least=_COLUMNS):
        # the length of the slice, which may end beyond the last column
        n_columns = len(range(n_classes)[columns])
        block = np.empty((n_columns, n), dtype=scores.dtype)
        for rows in row_blocks(n, 2 * _COLUMNS):
            block[:, rows] = scores[rows, columns].T
        yield from block


def spread_top_label(scores, confidence):
    """Return probabilities (n, K) in which the predicted class of each row has
    `confidence` (n,), and the other classes share the rest in proportion to their
    scores (n, K), or equally where these are all 0.
    """
    predicted, _ = top_label(scores)
    predicted = predicted[:, None]
    others = scores.astype(np.float64)
    np.put_along_axis(others, predicted, 0, axis=1)
    total = others.sum(axis=1, keepdims=True)
    n_others = scores.shape[1] - 1
    equal_shares = np.full_like(others, 1 / n_others)
    shares = np.divide(others, total, out=equal_shares, where=total > 0)
    probability = shares * (1 - confidence)[:, None]
    np.put_along_axis(probability, predicted, confidence[:, None], axis=1)
    return probability


def group_codes(groups, data, *, max_bins=None, takes_max_bins=False):
    """Return the names of the groups (n_groups,), and the position of each row's group
    among them (n,).

    `groups` is "predicted_class", or an array with the group of each row; `data` are
    `ScoredLabels`. If an array of numbers has more than `max_bins` distinct values, it
    is cut into groups at quantiles; None leaves every value a group of its own.
    `takes_max_bins` says whether an error may advise the user to pass `max_bins`.
    """
    if is_predicted_class(groups):
        return predicted_class(data)
    return check_named_groups(
        groups,
        len(data.scores),
        max_bins=max_bins,
        takes_max_bins=takes_max_bins,
    )


def reduced(errors, weights, reduce):
    """Return one error (...) for those of the groups (..., n_groups): the largest for
    `reduce` "max", the mean for "mean", and the mean with the weights of the groups
    (n_groups,) for "weighted".
    """
    if reduce == "max":
        return errors.max(axis=-1)
    if reduce != "weighted":
        weights = None
    return np.average(errors, axis=-1, weights=weights)


def is_predicted_class(groups):
    """Return whether groups are the predicted classes; raise for any other text."""
    if isinstance(groups, str) and groups != "predicted_class":
        raise ValueError(
            "groups must be 'predicted_class' or an array with one entry per row, found"
            f" {groups!r}."
        )
    return isinstance(groups, str)


def predicted_class(data):
    """Return the classes (K,) and the index of each row's predicted class among them
    (n,), for `ScoredLabels`.
    """
    if data.is_multilabel:
        raise ValueError(
            'groups="predicted_class" is for mutually exclusive classes, but the'
            " columns of y_true are several labels per row: pass an array of groups."
        )
    if data.is_binary:
        return data.classes, (data.scores > 0.5).astype(np.intp)
    if data.predicted is None:
        return data.classes, data.scores.argmax(axis=1)
    return data.classes, data.predicted


def split_by_group(data, codes):
    """Yield, for each group that has rows of positive weight, its code and the
    increasing indices of these rows; `codes` (n,) are the groups of the rows of
    `ScoredLabels`.
    """
    kept = data.kept
    order = kept[np.argsort(codes[kept], kind="stable")]
    present, starts = np.unique(codes[order], return_index=True)
    yield from zip(present, np.split(order, starts[1:]), strict=True)
