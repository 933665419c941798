"""Input that may be rows or their sums by bin, and weights as numbers of rows."""

import reprlib
from collections.abc import Mapping

import numpy as np

from skcalib._cells.cells import Cells
from skcalib._cells.statistics import BinStatistics, unchecked_statistics
from skcalib._cells.tasks import BinaryTask, is_counted, with_fields
from skcalib._input.label_weights import is_importance, label_weights, warn_of_counts
from skcalib._input.scored_labels import ScoredLabels, check_scored_labels
from skcalib._rows.blocks import effective_size

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
        """Return the bins as `Cells` whose `trials` are the numbers of rows of equal
        weight that importance weights are worth; other cells as they are.
        """
        if not self.importance:
            return cells
        if isinstance(cells, BinStatistics):
            cells = Cells.of_bins(cells)
        squares = self.bins.weight_squared[self.bins.weight > 0]
        # Of cells that are not these bins, no squared weights are known.
        if len(squares) != len(cells.weight):
            return cells
        return with_fields(cells, trials=effective_size(cells.weight, squares))

    def cells(self, most=None):
        """Return the cells of the distinct scores; raise a ValueError if a bin holds
        more than one score. With more than `most` cells neighbours are pooled.
        """
        cells = Cells.of_bins(self.bins)
        if np.any(cells.score_variance > _ONE_SCORE):
            self._refuse(
                "a BinStatistics with one distinct score per bin (UniqueScores)"
            )
        # The same as cells of one score, which need no second moments.
        cells = Cells.of_scores(cells.mean_score, cells.weight, cells.weighted_label)
        if most is None:
            return cells
        return cells.condensed(most)

    @property
    def n_rows(self):
        """How many rows the weights w are worth: their sum where they count rows, else
        Kish's effective number (sum w)^2 / sum w^2.
        """
        weight = self.bins.weight
        if is_counted(weight):
            return weight.sum()
        return effective_size(weight.sum(), self.bins.weight_squared.sum())

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
    if isinstance(y_true, (ScoredLabels, BinnedTask)):  # validated before
        return y_true
    options = {"sample_weight": sample_weight, "pos_label": pos_label, "labels": labels}
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
                f" row, found {found}, which contains only sums by bin: pass labels and"
                " probabilities, or omit it."
            )


def counted_rows(data, weight_type, *, warns=True):
    """Return validated data with weights that can be taken for numbers of rows.

    Importance weights w are multiplied by one factor, so that they add up to the
    effective number of rows, (sum w)^2 / sum w^2. The data also get `label_weights`,
    which say how the weights depend on the labels. To have this decided by all rows,
    call the function on all of them first. If it is then called on a subset, such as a
    group, the weights are scaled anew, but the decision is kept.

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
    # The factor is sum w / sum w^2: times sum w it is the effective number of rows.
    if not is_binned:
        factor = weight.sum() / (weight @ weight)
        by_label = data.label_weights  # decided in an earlier call, or None
        if by_label is None:
            by_label = label_weights(
                data.labels, weight, weight_type, data.classes, scores=data.scores
            )
        return data._replace(
            sample_weight=factor * weight, label_weights=by_label.scaled(factor)
        )
    if isinstance(weight_type, Mapping):
        raise ValueError(
            "weight_type={label: weight} needs the weight of each row, which a"
            " BinStatistics does not contain: pass labels and probabilities."
        )
    factor = weight.sum() / data.bins.weight_squared.sum()
    sums = {name: factor * getattr(data.bins, name) for name in _SUMS_OF_WEIGHTS}
    squares = factor**2 * data.bins.weight_squared  # sums of (factor * w)^2
    return BinnedTask(
        unchecked_statistics(
            data.bins.edges, count=data.bins.count, weight_squared=squares, **sums
        ),
        importance=True,
    )
