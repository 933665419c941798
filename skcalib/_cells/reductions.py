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

# A variance of the scores of a bin below it is that of one score, rounded.
_ONE_SCORE = 1e-12
# The fields of `BinStatistics` that are proportional to the weights.
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
        """Return the problem with its rows in the order of the scores, where the bins
        of this strategy (`BaseBinning`) are then made faster; else as it is.
        """
        if (
            self.sample_weight is not None
            or len(self.scores) > strategy._sorts_up_to
            or in_order(self.scores)
        ):
            return self
        return BinaryTask(*sorted_rows(self.scores, self.labels), sample_weight=None)

    @property
    def weight_type(self):
        """What the weights mean if nobody says it: "frequency" (a weight of 2 counts as
        two rows) for whole numbers and without weights, else "importance".

        A subset of the rows may have another answer than all of them.
        """
        if is_counted(self.sample_weight):
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


class PooledTask(BinaryTask):
    """All pairs of a row and a class as one problem. The `n_columns` pairs of a row
    stand together.
    """

    @classmethod
    def of(cls, scores, codes, weight):
        """Return the pooled problem of scores (n, K), the column of the label of each
        row (n,), and the weights of the rows (n,) or None.
        """
        n_columns = scores.shape[1]
        labels = codes[:, None] == np.arange(n_columns)  # (n, K)
        pair_weight = None
        if weight is not None:
            pair_weight = np.repeat(weight, n_columns)
        task = cls(scores.ravel(), labels.ravel(), pair_weight)
        task.n_columns = n_columns
        return task

    def adjusted(self, cells):
        """Return cells with second moments that tell the variance of their events,
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
        row_starts = np.arange(0, scores.size + 1, self.n_columns)

        def by_row(values):
            """Return the sums of values of pairs by row and cell, as a sparse array
            (n_rows, n_cells).
            """
            sums = csr_array(
                (values, cell_of_pair, row_starts), (n_rows, n_cells), copy=True
            )
            sums.sum_duplicates()
            return sums

        # 1. What each row has in each of its cells: arrays of one entry for each such
        # (row, cell), with the cell and the weight of the row beside them.
        score = by_row(scores.ravel())
        residual = by_row((self.labels - self.scores).astype(np.float64)).data
        n_pairs = by_row(np.ones(scores.size)).data
        cell = score.indices
        weight = np.ones(n_rows)
        if self.sample_weight is not None:
            weight = self.sample_weight[:: self.n_columns]
        n_cells_of_row = np.diff(score.indptr)
        weight = np.repeat(weight, n_cells_of_row)
        # 2. The sum of squared scores for which mean - mean square is the variance of
        # the trials: sum of w q (1 - q), divided by the weight.
        total = cells.weight
        mean = cells.mean_score
        trial_variance = weight * score.data * (1 - score.data)
        variance = np.bincount(cell, trial_variance, n_cells) / total
        squares = total * (mean - np.minimum(variance, mean * (1 - mean)))
        # 3. The sum of scores times labels for which `residual_variance` / (total - 1)
        # is the variance of the mean residual of the rows.
        products = cells.weighted_score_label
        if products is not None:
            rows_in_cell = np.bincount(cell, weight, n_cells)
            deviation = cells.deviation
            centred = residual - n_pairs * deviation[cell]
            # The sum of squares, made unbiased, over total^2 is the variance of the
            # mean residual; times total - 1 it is what `residual_variance` must be.
            noise = np.bincount(cell, weight * centred**2, n_cells)
            small_sample = rows_in_cell / np.maximum(rows_in_cell - 1, 1)
            noise *= small_sample * (total - 1) / total**2
            # `residual_variance` is (weighted_label - 2 products + squares) / total
            # - deviation^2
            residual_square = total * (noise + deviation**2)
            products = (cells.weighted_label + squares - residual_square) / 2
        adjusted = replace(
            cells, weighted_score_squared=squares, weighted_score_label=products
        )
        # Fill the cached property: a quotient of sums would round.
        object.__setattr__(adjusted, "mean_score", mean)
        return adjusted


class BinnedTask:
    """One binary problem that is known by its `BinStatistics` alone. It takes the place
    of a `BinaryTask`, and of the `ScoredLabels` that this is made from; whatever needs
    rows raises a ValueError.
    """

    is_binary = True
    is_multilabel = False

    def __init__(self, bins):
        self.bins = bins  # a `BinStatistics` that holds rows

    def statistics(self, binning=None, *, moments=2):
        """Return the sums; `check_rows_or_bins` has made sure that no other strategy
        was asked for.
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
    already: `binning`, the user's argument of any kind, must then be None, like the
    arguments about rows. `drop` says whether rows of weight zero are left out, and
    `multilabel` whether rows may have several labels.
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
    """Return validated data whose weights count as repeated rows.

    Weights of importance are divided by one number, so that they add up to the number
    of equal rows that they are worth, (sum w)^2 / sum w^2.

    Parameters
    ----------
    data : ScoredLabels or BinnedTask
        Validated data.
    weight_type : {"frequency", "importance"}
        Meaning of the weights.
    warns : bool, default=True
        Whether to warn of weights that should count rows and are no integers.

    Returns
    -------
    data : ScoredLabels or BinnedTask
        The data, unchanged without weights and for "frequency".
    """
    check_option(weight_type, "weight_type", ("frequency", "importance"))
    is_binned = isinstance(data, BinnedTask)
    if is_binned:
        weight = data.bins.weight
    else:
        weight = data.sample_weight
    if weight is None:
        return data
    if weight_type == "frequency":
        if warns and (weight % 1).any():
            warn(
                "sample_weight contains weights that are not integers, but"
                ' weight_type="frequency" counts a weight of 2 as two rows. Use'
                ' weight_type="importance" for weights that correct for sampling; round'
                " or scale weights that are counts."
            )
        return data
    # The factor f for which sum f w is the number of rows, (sum w)^2 / sum w^2.
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
            if data.is_multilabel:
                labels = data.labels[:, k]
            else:
                labels = data.labels == k
            yield BinaryTask(column, labels, weight)


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
    """Return the names of the groups, and the code of each row's group among them (n,).

    `groups` is "predicted_class", or anything that `check_named_groups` takes; `data`
    are `ScoredLabels`.
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
