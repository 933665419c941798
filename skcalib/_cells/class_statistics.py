"""Sums by bin of batches of K classes: of the predicted class, or of each class."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from skcalib._cells.reductions import binary_tasks
from skcalib._cells.statistics import BinStatistics, bin_statistics
from skcalib._input.classes import in_class_order
from skcalib._input.labels import shown
from skcalib._input.scalars import check_option
from skcalib._input.scored_labels import check_score_column, check_scored_labels
from skcalib._input.scores import check_scores
from skcalib._input.tensors import as_array
from skcalib._rows.blocks import row_blocks
from skcalib._rows.links import row_softmax

if TYPE_CHECKING:
    from pandas import DataFrame


class ClassBinStatistics(Mapping):
    """Sums by bin of each class against the rest, as a mapping.

    ``BinStatistics.from_predictions(..., multiclass="marginal")`` returns it. Use ``+``
    to add the statistics of other samples. `calibration_by_group` accepts it like a
    dict, and every metric accepts the `BinStatistics` of one class.

    Parameters
    ----------
    statistics : mapping
        Maps the label of each class to its `BinStatistics`, in the order of the
        columns.

    See Also
    --------
    BinStatistics : The sums of one binary problem.
    calibration_by_group : Bias and error for each class, with intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import BinStatistics, expected_calibration_error
    >>> y_proba = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    >>> options = {"edges": [0, 0.5, 1], "multiclass": "marginal"}
    >>> batch = BinStatistics.from_predictions([0, 1, 2], y_proba, **options)
    >>> both = batch + BinStatistics.from_predictions([0, 2, 2], y_proba, **options)
    >>> {
    ...     label: round(expected_calibration_error(one), 3)
    ...     for label, one in both.items()
    ... }
    {0: 0.233, 1: 0.267, 2: 0.3}
    """

    def __init__(self, statistics: Mapping):
        self._by_class = dict(statistics)

    def __getitem__(self, label) -> BinStatistics:
        return self._by_class[label]

    def __iter__(self) -> Iterator:
        return iter(self._by_class)

    def __len__(self):
        return len(self._by_class)

    def __repr__(self):
        n_rows = 0
        if self:
            of_first_class = next(iter(self.values()))
            n_rows = sum(of_first_class.count)  # each class has all rows
        return f"ClassBinStatistics(n_classes={len(self)}, n_rows={n_rows})"

    def merge(self, other: "ClassBinStatistics") -> "ClassBinStatistics":
        """Return the statistics of both sets of samples; classes and edges must agree.

        Parameters
        ----------
        other : ClassBinStatistics
            Statistics of other samples.

        Returns
        -------
        merged : ClassBinStatistics
            Sums over both sets of samples.

        Raises
        ------
        ValueError
            If classes or edges differ.
        """
        if list(self) != list(other):
            raise ValueError(
                f"The classes differ: {shown(list(self))} and {shown(list(other))}."
                " Name the same labels= for every batch."
            )
        merged = {}
        for label, statistics in self.items():
            merged[label] = statistics.merge(other[label])
        return ClassBinStatistics(merged)

    def __add__(self, other):
        if not isinstance(other, ClassBinStatistics):
            return NotImplemented
        return self.merge(other)

    def __radd__(self, other):
        # `sum` begins with 0 + batch
        if isinstance(other, int) and other == 0:
            return self
        return NotImplemented

    def to_frame(self) -> "DataFrame":
        """Return a pandas DataFrame with a row for each bin of each class.

        Returns
        -------
        frame : pandas.DataFrame
            The column `class`, followed by the columns of ``BinStatistics.to_frame()``.
        """
        import pandas as pd

        frames = []
        for label, statistics in self.items():
            frame = statistics.to_frame()
            frame.insert(0, "class", label)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)


def summed_batch(
    y_true, y_proba, edges, sample_weight, *, multiclass, labels, input, ignore_label
):
    """Return the sums by bin of a batch: `BinStatistics`, or for "marginal"
    `ClassBinStatistics`, those of each class.

    The parameters are those of `BinStatistics.from_predictions`; `edges` are checked.
    """
    check_option(multiclass, "multiclass", ("auto", "top_label", "marginal"))
    check_option(input, "input", ("probability", "logit"))
    if ignore_label is not None:
        y_true, y_proba, sample_weight = _without(
            ignore_label, y_true, y_proba, sample_weight
        )
    if np.size(y_true) == 0 and len(y_proba) == 0:
        return _no_rows(y_proba, edges, multiclass, labels)
    if input == "logit":
        y_proba, labels = in_class_order(
            y_proba,
            y_true,
            labels,
            name="y_proba",
            y_name="y_true",
            labels_name="labels",
        )
        y_proba = _probabilities(y_proba)
    # One column of scores needs fewer checks.
    if np.ndim(y_proba) == 1 and labels is None and multiclass == "auto":
        scores, events, weight = check_score_column(
            y_proba, y_true, sample_weight, name="y_proba", labels_name="y_true"
        )
        return bin_statistics(scores, events, edges, weight)
    data = check_scored_labels(
        y_true,
        y_proba,
        multiclass=multiclass,
        sample_weight=sample_weight,
        labels=labels,
        multilabel=multiclass == "marginal",
    )
    # One binary problem, or for "marginal" one for each class.
    statistics = []
    for task in binary_tasks(data, multiclass):
        weight = task.sample_weight
        statistics.append(bin_statistics(task.scores, task.labels, edges, weight))
    if multiclass != "marginal":
        return statistics[0]
    return ClassBinStatistics(dict(zip(data.classes.tolist(), statistics, strict=True)))


def _without(ignore_label, y_true, y_proba, sample_weight):
    """Return labels, scores and weights without the samples of one label."""
    labels, _ = as_array(y_true)
    is_kept = labels != ignore_label
    if np.all(is_kept):
        return y_true, y_proba, sample_weight
    # A tensor stays one: how much rounding of its scores is tolerated depends on its
    # type.
    scores = y_proba
    if not hasattr(y_proba, "shape"):
        scores, _ = as_array(y_proba)
    if sample_weight is not None:
        weight, _ = as_array(sample_weight)
        sample_weight = weight[is_kept]
    return labels[is_kept], scores[is_kept], sample_weight


def _no_rows(y_proba, edges, multiclass, labels):
    """Return the sums of an empty batch; the classes of a marginal one are the labels,
    or numbers for the columns of `y_proba`.
    """
    empty = bin_statistics(np.empty(0), np.empty(0, dtype=bool), edges)
    if multiclass != "marginal":
        return empty
    if labels is not None:
        classes = np.asarray(labels)
    elif np.ndim(y_proba) == 2:
        classes = np.arange(np.shape(y_proba)[1])
    else:
        classes = np.arange(2)
    return ClassBinStatistics({label: empty for label in classes.tolist()})


def _probabilities(logits):
    """Return the probabilities of one column of log-odds (n,), or of K logits (n, K)
    in their own precision.
    """
    logits = check_scores(logits, name="y_proba", input="logit")
    if logits.shape[1] == 1:
        return expit(logits[:, 0])
    probabilities = np.empty_like(logits)
    for rows in row_blocks(*logits.shape):
        probabilities[rows] = row_softmax(logits[rows])
    return probabilities
