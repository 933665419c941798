"""Many classes as binary problems: top-label, one-vs-rest (marginal) and pooled, once
for everybody.
"""

import reprlib
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
from skcalib._input.scalars import check_option
from skcalib._input.scored_labels import ScoredLabels, check_scored_labels
from skcalib._input.several_labels import NORMALISED
from skcalib._input.warn import warn
from skcalib._rows.blocks import row_blocks
from skcalib._rows.sorting import in_order, sorted_rows
from skcalib.binning import EqualMass, check_binning

_ONE_SCORE = 1e-12  # a variance below it is that of one score, rounded
_WEIGHTED = (
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
    """One binary problem: scores of an event, whether it happened, weights or None."""

    scores: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None
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
        """Return the problem with its rows in order where the strategy sorts the
        scores, or makes a bin for each.
        """
        if (
            self.sample_weight is not None
            or len(self.scores) > strategy._sorts_up_to
            or in_order(self.scores)
        ):
            return self
        return BinaryTask(*sorted_rows(self.scores, self.labels), None)

    @property
    def weight_type(self):
        """What the weights mean where nobody says it, as they show themselves.

        "frequency" (a weight of 2 counts as two rows) for whole numbers and without
        weights, else "importance". A subset of the
        rows may differ in this from the whole.
        """
        return "frequency" if is_counted(self.sample_weight) else "importance"

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
            Number of cells beyond which neighbours are pooled, and their events given
            the variance that draws need; None for the exact cells.

        Returns
        -------
        cells : Cells
            The cells.
        """
        cells = Cells.from_rows(*self)
        if most is None:
            return cells
        return self.adjusted(cells.condensed(most))

    def adjusted(self, cells):
        """Return its cells with the variances of their events."""
        return cells

    @property
    def weight(self):
        """The weights, or None: rows are cells of one score whose event frequency is
        the label.
        """
        return self.sample_weight

    @property
    def mean_score(self):
        """The scores."""
        return self.scores

    @property
    def event_frequency(self):
        """The labels."""
        return self.labels


class PooledTask(BinaryTask):
    """All pairs of a row and a class as one problem. The `n_columns` pairs of a row
    stand together.
    """

    @classmethod
    def of(cls, scores, codes, weight):
        """Return it for scores (n, K), the column of each label, and the weights of the
        rows or None.
        """
        n_columns = scores.shape[1]
        task = cls(
            scores.ravel(),
            (codes[:, None] == np.arange(n_columns)).ravel(),
            None if weight is None else np.repeat(weight, n_columns),
        )
        task.n_columns = n_columns
        return task

    def adjusted(self, cells):
        """Return the cells with second moments that tell the variance of their events,
        where each row has exactly one event among its pairs.

        `Cells` count the pairs of a row and a class as if they were independent. Here
        the events of a row in a cell are one trial, whose probability q is the sum of
        its scores there: it adds q (1 - q) to the variance, and the noise of the cell
        is that of means of rows, not of pairs. Cells of scores that do not sum to 1
        stay as they are.
        """
        scores = self.scores.reshape(-1, self.n_columns).astype(np.float64)
        if not one_label_a_row(scores):
            return cells
        if isinstance(cells, BinStatistics):
            cells = Cells.of_bins(cells)
        n_rows = len(scores)
        n_cells = len(cells.weight)
        cell_of_pair = cells.of_rows(self.scores)
        starts = np.arange(0, scores.size + 1, self.n_columns)

        def by_row(values):
            """Return the sums of values of pairs by row and cell, as a sparse array."""
            sums = csr_array(
                (values, cell_of_pair, starts), (n_rows, n_cells), copy=True
            )
            sums.sum_duplicates()
            return sums

        # 1. What each row has in each of its cells: arrays of one entry each, with the
        # cell and the weight of the row beside them.
        score = by_row(scores.ravel())
        residual = by_row((self.labels - self.scores).astype(np.float64)).data
        n_pairs = by_row(np.ones(scores.size)).data
        cell = score.indices
        weight = np.ones(n_rows)
        if self.sample_weight is not None:
            weight = self.sample_weight[:: self.n_columns]
        weight = np.repeat(weight, np.diff(score.indptr))

        # 2. The square of the scores with which mean - square is the variance of
        # trials.
        total = cells.weight
        mean = cells.mean_score
        of_trials = weight * score.data * (1 - score.data)
        variance = np.bincount(cell, of_trials, n_cells) / total
        squares = total * (mean - np.minimum(variance, mean * (1 - mean)))

        # 3. The product of scores and labels with which `residual_variance` / (total -
        # 1) is the variance of the mean of the rows.
        products = cells.weighted_score_label
        if products is not None:
            rows_in_cell = np.bincount(cell, weight, n_cells)
            deviation = cells.deviation
            off = residual - n_pairs * deviation[cell]
            noise = np.bincount(cell, weight * off**2, n_cells)
            correction = rows_in_cell / np.maximum(rows_in_cell - 1, 1)
            noise *= correction * (total - 1) / total**2
            products = (
                cells.weighted_label + squares - total * (noise + deviation**2)
            ) / 2
        adjusted = replace(
            cells, weighted_score_squared=squares, weighted_score_label=products
        )
        vars(adjusted)["mean_score"] = mean  # a quotient of sums would round
        return adjusted


class BinnedTask:
    """One binary problem that is known by its sums alone; whoever asks for its rows
    raises a ValueError.
    """

    is_binary = True
    is_multilabel = False

    def __init__(self, bins):
        self.bins = bins

    def statistics(self, binning=None, *, moments=2):
        """Return the sums; the gate has seen to it that no other strategy was asked
        for.
        """
        return self.bins

    bin_cells = BinaryTask.bin_cells
    adjusted = BinaryTask.adjusted

    def cells(self, most=None):
        """Return the cells of the distinct scores, where each bin holds one."""
        cells = Cells.of_bins(self.bins)
        if np.any(cells.score_variance > _ONE_SCORE):
            self._refuse("a BinStatistics with one distinct score a bin (UniqueScores)")
        cells = Cells.of_scores(cells.mean_score, cells.weight, cells.weighted_label)
        if most is None:
            return cells
        return cells.condensed(most)

    @property
    def n_rows(self):
        """See `BinaryTask`."""
        weight = self.bins.weight
        if is_counted(weight):
            return weight.sum()
        return weight.sum() ** 2 / self.bins.weight_squared.sum()

    def _refuse(self, *needed):
        needed = " or ".join(
            ["the score and the label of each row (pass y_true and y_proba)", *needed]
        )
        raise ValueError(f"A BinStatistics holds sums by bin, and this needs {needed}.")

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

    `binary_tasks` and `resolve_multiclass` take either. `binning` is what the user
    gave, of any kind: the bins of a `BinStatistics` are made, so that it must be None
    there, like the other arguments about rows. For `multilabel` see
    `check_scored_labels`.
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
        raise ValueError("The BinStatistics holds no rows: every bin is empty.")
    return BinnedTask(y_true)


def refuse_beside_bins(found="a BinStatistics", *, multiclass, **given):
    """Raise for an argument about rows that is given beside sums by bin."""
    for name, value in {
        **given,
        "multiclass": None if multiclass == "auto" else multiclass,
    }.items():
        if value is not None:
            raise ValueError(
                f"{name}={reprlib.repr(value)} needs the score and the label of each"
                f" row, found {found}, which holds the sums of its bins: pass labels"
                " and probabilities, or leave it out."
            )


def counted_rows(data, weight_type, *, warns=True):
    """Return validated data whose weights count as repeated rows; those of importance
    are scaled to do so.

    The sum of importance weights w becomes ``sum(w)**2 / sum(w**2)``, the number of
    equal rows that they are worth. That is one factor for all rows: in a single bin
    they may be worth more or less.

    Parameters
    ----------
    data : ScoredLabels or BinnedTask
        Rows, or sums of bins. Without weights they are returned as they are.
    weight_type : {"frequency", "importance"}
        Meaning of the weights.
    warns : bool, default=True
        Whether to warn of frequency weights that are not integers.
    """
    check_option(weight_type, "weight_type", ("frequency", "importance"))
    is_binned = isinstance(data, BinnedTask)
    weight = data.bins.weight if is_binned else data.sample_weight
    if weight is None:
        return data
    if weight_type == "frequency":
        if warns and (weight % 1).any():
            warn(
                "sample_weight holds weights that are no integers, and"
                ' weight_type="frequency" counts a weight of 2 as two rows. Take'
                ' weight_type="importance" for weights that correct a sample; round or'
                " scale weights that count."
            )
        return data
    if not is_binned:
        factor = weight.sum() / (weight @ weight)
        return data._replace(sample_weight=factor * weight)
    factor = weight.sum() / data.bins.weight_squared.sum()
    sums = {name: factor * getattr(data.bins, name) for name in _WEIGHTED}
    squares = factor**2 * data.bins.weight_squared
    return BinnedTask(
        unchecked_statistics(
            data.bins.edges, count=data.bins.count, weight_squared=squares, **sums
        )
    )


def is_counted(weight):
    """Return whether weights count rows where nobody says what they are: None, or all
    of them whole numbers.
    """
    return weight is None or not (weight % 1).any()


def top_label(scores):
    """Return the predicted class (first of the largest) and its score, for scores (n,
    K).
    """
    predicted = scores.argmax(axis=1)
    return predicted, np.take_along_axis(scores, predicted[:, None], axis=1)[:, 0]


def one_label_a_row(scores):
    """Return whether the scores (n, K) of each row are the probabilities of one
    label.
    """
    return bool(np.all(np.abs(scores.sum(axis=1) - 1) < NORMALISED))


def resolve_multiclass(multiclass, data, *, pooled=False):
    """Return "binary", "top_label", "marginal" or, where it is allowed, "pooled" for a
    metric's `multiclass`.
    """
    if isinstance(multiclass, str) and multiclass == "auto":
        if data.is_multilabel:
            return "marginal"
        return "binary" if data.is_binary else "top_label"
    return check_option(
        multiclass,
        "multiclass",
        ("auto", "top_label", "marginal", *["pooled"] * pooled),
    )


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
    weight = data.sample_weight
    if kind == "binary":
        yield BinaryTask(scores, data.labels, weight)
        return
    if data.is_binary:
        scores = np.column_stack((1 - scores, scores))
    if kind == "top_label":
        if data.predicted is None:
            predicted, confidence = top_label(scores)
        else:
            predicted = data.predicted
            confidence = data.confidence
        yield BinaryTask(confidence, data.labels == predicted, weight)
    elif kind == "pooled":
        yield PooledTask.of(scores, data.labels, weight)
    else:
        for k, column in enumerate(_columns(scores)):
            labels = data.labels[:, k] if data.is_multilabel else data.labels == k
            yield BinaryTask(column, labels, weight)


def one_task(data, multiclass, *, pooled=False):
    """Return the binary problem that `multiclass` makes; raise where it makes one
    problem for each class.
    """
    if resolve_multiclass(multiclass, data, pooled=pooled) == "marginal":
        raise ValueError(
            'multiclass="marginal" makes one binary problem a class, and this is about'
            ' one: use "top_label", or one class at a time.'
        )
    return next(binary_tasks(data, multiclass, pooled=pooled))


def _columns(scores):
    """Yield the columns of scores (n, K) as contiguous arrays, tiles of rows transposed
    within the cache.
    """
    n, n_classes = scores.shape
    for columns in row_blocks(n_classes, n, at_least=_COLUMNS):
        block = np.empty((len(range(n_classes)[columns]), n), dtype=scores.dtype)
        for rows in row_blocks(n, 2 * _COLUMNS):
            block[:, rows] = scores[rows, columns].T
        yield from block


def spread_top_label(scores, confidence):
    """Return rows in which the predicted class has `confidence` and the others share
    the rest in proportion.
    """
    predicted, _ = top_label(scores)
    rest = scores.astype(np.float64)
    np.put_along_axis(rest, predicted[:, None], 0, axis=1)
    total = rest.sum(axis=1, keepdims=True)
    n_others = scores.shape[1] - 1
    rest = (
        np.divide(rest, total, out=np.full_like(rest, 1 / n_others), where=total > 0)
        * (1 - confidence)[:, None]
    )
    np.put_along_axis(rest, predicted[:, None], confidence[:, None], axis=1)
    return rest


def group_codes(groups, data, *, max_bins=None, takes_max_bins=False):
    """Return the names of the groups and the code of each row's group."""
    if is_predicted_class(groups):
        return predicted_class(data)
    return check_named_groups(
        groups,
        len(data.scores),
        max_bins=max_bins,
        takes_max_bins=takes_max_bins,
    )


def reduced(errors, weights, reduce):
    """Return the largest, the mean or the weighted mean of the groups' errors (...,
    n_groups).
    """
    if reduce == "max":
        return errors.max(axis=-1)
    return np.average(
        errors, axis=-1, weights=weights if reduce == "weighted" else None
    )


def is_predicted_class(groups):
    """Return whether groups are the predicted classes; raise for any other text."""
    if isinstance(groups, str) and groups != "predicted_class":
        raise ValueError(
            "groups must be 'predicted_class' or an array with one entry a row, found"
            f" {groups!r}."
        )
    return isinstance(groups, str)


def predicted_class(data):
    """Return the classes and the index of each row's predicted class among them."""
    if data.is_multilabel:
        raise ValueError(
            'groups="predicted_class" is for classes that exclude each other, and a'
            " y_true of several columns holds labels that do not: pass groups of rows."
        )
    if data.is_binary:
        return data.classes, (data.scores > 0.5).astype(np.intp)
    return data.classes, (
        data.scores.argmax(axis=1) if data.predicted is None else data.predicted
    )


def split_by_group(data, codes):
    """Yield the code of each group that has rows of positive weight, and the indices of
    those rows, in order.
    """
    kept = data.kept
    order = kept[np.argsort(codes[kept], kind="stable")]
    present, starts = np.unique(codes[order], return_index=True)
    yield from zip(present, np.split(order, starts[1:]), strict=True)
