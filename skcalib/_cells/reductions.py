"""Many classes as binary problems: top-label, one-vs-rest (marginal) and pooled, once
for everybody.
"""

import numpy as np

from skcalib._cells.binned import BinnedTask
from skcalib._cells.columns import binary_rows, resolve_multiclass
from skcalib._cells.device_columns import DeviceColumns, DevicePooledTask
from skcalib._cells.tasks import BinaryTask, PooledTask, WeightedTask
from skcalib._input.device_scores import DeviceScores


def binary_tasks(data, multiclass, *, pooled=False):
    """Yield the binary problems that `multiclass` makes of a metric's validated data,
    `ScoredLabels` or a `BinnedTask`, as `BinaryTask` or what takes its place.

    One for "auto" with two classes (the positive class), for "top_label" (is the
    predicted class right) and, where it is allowed, for "pooled" (a `PooledTask`); one
    for each class for "marginal", and for each of several labels per row. Two classes
    given as one score count as the columns (1 - s, s).
    """
    if isinstance(data, BinnedTask):
        yield data
        return
    kind = resolve_multiclass(multiclass, data, pooled=pooled)
    if kind == "binary":
        yield _row_task(data.scores, data.labels, data)
        return
    # Scores stay on their device unless importance weights vary: these need each row.
    is_on_device = isinstance(data.scores, DeviceScores)
    if is_on_device and not _vary(data.label_weights):
        if kind == "marginal":
            yield from DeviceColumns(data).tasks()
            return
        if kind == "pooled":
            yield DevicePooledTask(data)
            return
    if kind != "pooled":
        for scores, labels in binary_rows(data, kind):
            yield _row_task(scores, labels, data)
        return
    scores = np.asarray(data.scores)
    if data.is_binary:
        scores = np.column_stack((1 - scores, scores))
    label_weights = data.label_weights
    if not _vary(label_weights):
        label_weights = None
    yield PooledTask.of(scores, data.labels, data.sample_weight, label_weights)


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
