"""The two samples of a comparison: checked rows or bins, in the same bins."""

import numpy as np

from skcalib._cells.binned import BinnedTask, counted_rows, refuse_beside_bins
from skcalib._cells.reductions import one_task
from skcalib._cells.statistics import BinStatistics
from skcalib._input.classes import hint_at_event
from skcalib._input.label_weights import is_importance
from skcalib._input.labels import check_groups, shown
from skcalib._input.scored_labels import check_scored_labels
from skcalib._input.tensors import as_array
from skcalib._input.warn import warn
from skcalib.binning import EqualMass, check_binning
from skcalib.metrics._group_sample import Sample

_FEWEST_EQUAL = 30  # rows whose labels all agree in both samples: hardly by chance


def two_samples(
    y_before,
    y_proba_before,
    y_after,
    y_proba_after,
    binning,
    *,
    weight_type="frequency",
    multiclass="auto",
    sample_weight=None,
    clusters=None,
    pos_label=None,
    labels=None,
):
    """Return two validated `Sample` objects, from labels and probabilities or from two
    `BinStatistics` (as `y_before` and `y_after`).

    `sample_weight` and `clusters` are pairs (before, after) or None. `binning` is a
    strategy or a number of bins; `weight_type`, `multiclass`, `pos_label` and `labels`
    say how weights and labels are read.
    """
    if isinstance(y_before, BinStatistics):
        # The second BinStatistics may be passed by position, as the next argument.
        after = y_after
        if after is None:
            after = y_proba_before
        return _two_statistics(
            y_before,
            after,
            weight_type,
            multiclass=multiclass,
            clusters=clusters,
            binning=binning,
            y_proba_after=y_proba_after,
            sample_weight=sample_weight,
        )
    shared_labels = None
    if labels is None:
        shared_labels = _shared_labels(
            y_before, y_after, is_one_event=_is_column(y_proba_before)
        )
        labels = shared_labels
    weight_before, weight_after = _pair(sample_weight, "sample_weight")
    clusters_before, clusters_after = _pair(clusters, "clusters")
    strategy = check_binning(binning, EqualMass(15))
    # Arguments that apply to both samples.
    options = {
        "weight_type": weight_type,
        "multiclass": multiclass,
        "pos_label": pos_label,
        "labels": labels,
        "strategy": strategy,
    }
    before = _sample_of_rows(
        "before", y_before, y_proba_before, weight_before, clusters_before, **options
    )
    after = _sample_of_rows(
        "after", y_after, y_proba_after, weight_after, clusters_after, **options
    )
    # Which of two text labels is the event is a guess from the alphabet: the user is
    # told if the scores contradict it.
    if shared_labels is not None and pos_label is None and _is_column(y_proba_before):
        hint_at_event(
            np.concatenate([before.task.scores, after.task.scores]),
            np.concatenate([before.task.labels, after.task.labels]),
            np.asarray(shared_labels),
            f"say so: pos_label={np.asarray(shared_labels)[:1].tolist()[0]!r}.",
        )
    return before, after


def _is_column(y_proba):
    """Return whether probabilities are those of the event alone."""
    shape = y_proba.shape if hasattr(y_proba, "shape") else np.shape(y_proba)
    return len(shape) == 1 or shape[1:] == (1,)


def _two_statistics(before, after, weight_type, **row_arguments):
    """Return two `BinStatistics` as `Sample` objects, or raise unless their edges are
    equal, and `row_arguments`, which need rows, have their defaults.
    """
    if not isinstance(after, BinStatistics):
        raise ValueError(
            "y_after must be a BinStatistics, like y_before, found"
            f" {type(after).__name__}."
        )
    refuse_beside_bins(**row_arguments)
    if not np.array_equal(before.edges, after.edges):
        raise ValueError(
            "y_before and y_after must have equal edges: bin both data sets with the"
            " same FixedEdges."
        )
    for name, statistics in (("before", before), ("after", after)):
        if not statistics.total_weight > 0:
            raise ValueError(f"y_{name} contains no rows.")
    samples = []
    for statistics in (before, after):
        # Importance weights are scaled so that they add up to the number of rows of
        # equal weight that they are worth.
        bins = counted_rows(BinnedTask(statistics), weight_type).bins
        samples.append(Sample(bins, importance=is_importance(weight_type)))
    return tuple(samples)


def _pair(value, name):
    """Return an argument such as `clusters` as a pair (before, after), two times None
    for None; raise if it is no pair.
    """
    if value is None:
        return None, None
    is_pair = hasattr(value, "__len__") and len(value) == 2
    if not is_pair or value[0] is None or value[1] is None:
        raise ValueError(
            f"{name} must be a pair: one for the rows before and one for the rows"
            " after."
        )
    return value


def _shared_labels(y_before, y_after, is_one_event):
    """Return the sorted two labels of both samples together, one of which may hold a
    single class; None unless there are two. With `is_one_event`, scores of one event,
    raise if each sample has two labels of its own.
    """
    try:
        before = np.unique(as_array(y_before)[0])
        after = np.unique(as_array(y_after)[0])
        labels = np.unique(np.concatenate([before, after]))
    except (TypeError, ValueError):
        return None  # refused later, by the argument
    if len(labels) > 2 and len(before) == len(after) == 2 and is_one_event:
        raise ValueError(
            f"y_before has the labels {shown(before)} and y_after {shown(after)}: use"
            " the same labels in both."
        )
    if len(labels) != 2:
        return None
    return labels.tolist()


def _sample_of_rows(
    name,
    y,
    y_proba,
    weight,
    cluster,
    *,
    weight_type,
    multiclass,
    pos_label,
    labels,
    strategy,
):
    """Return the validated `Sample` of one data set: its rows and their sums by the
    bins of `strategy`. `name`, "before" or "after", says in errors which one it is;
    `weight` and `cluster` are (n,) or None, the further options the user's.
    """
    if y is None or y_proba is None:
        missing = f"y_{name}" if y is None else f"y_proba_{name}"
        raise ValueError(
            f"{missing} is missing: pass labels and probabilities of both data sets."
        )
    try:
        data = check_scored_labels(
            y,
            y_proba,
            sample_weight=weight,
            multiclass=multiclass,
            pos_label=pos_label,
            labels=labels,
            drop=False,
        )
        if cluster is not None:
            names, codes = check_groups(cluster, len(data.scores), name="clusters")
            name_of_row = names[codes]
            cluster = name_of_row[data.kept]  # without rows of weight zero
    except (TypeError, ValueError) as error:
        # Say which of the two samples is wrong.
        text = str(error).replace("y_true", f"y_{name}")
        text = text.replace("y_proba", f"y_proba_{name}")
        text = text.replace("sample_weight", f"sample_weight of the sample {name!r}")
        if isinstance(error, TypeError):
            raise TypeError(text) from None
        raise ValueError(text) from None
    # Importance weights are scaled so that they add up to the number of rows of equal
    # weight that they are worth.
    rows = counted_rows(data, weight_type).at(data.kept)
    # Scores of one event, and whether it happened.
    problem = one_task(rows, multiclass)
    problem = problem._replace(labels=np.asarray(problem.labels, dtype=bool))
    return Sample(
        problem.statistics(strategy),
        task=problem,
        binning=strategy,
        cluster=cluster,
        importance=is_importance(weight_type),
        label_weights=rows.label_weights,
    )


def warn_of_equal_rows(before, after):
    """Warn if two samples have identical labels, of both classes: they may be the same
    rows with the scores of two models.
    """
    rows = before.task  # labels, scores and weights; None for bins
    # Weighted rows may be condensed, and are then in another order than the user's.
    if rows is None or rows.sample_weight is not None or before.n < _FEWEST_EQUAL:
        return
    has_both_classes = 0 < rows.labels.sum() < before.n
    if has_both_classes and np.array_equal(rows.labels, after.task.labels):
        warn(
            "y_before and y_after are equal, row by row: this looks like two models on"
            " the same rows, not like two independent data sets."
            " skcalib.evaluation.compare compares models on the same rows."
        )
