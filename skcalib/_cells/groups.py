"""Groups of rows: their names and codes, and one error for those of the groups."""

import numpy as np

from skcalib._cells.columns import top_label
from skcalib._input.groups import check_named_groups
from skcalib._rows.sorting import first_rows, grouped_rows


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
            'groups="predicted_class" is for mutually exclusive classes, but y_true has'
            " several labels per row: pass an array of groups."
        )
    if data.is_binary:
        return data.classes, (data.scores > 0.5).astype(np.intp)
    if data.predicted is None:
        predicted, _ = top_label(data.scores)
        return data.classes, predicted
    return data.classes, data.predicted


def split_by_group(rows, codes):
    """Yield, for each group of some rows, its code and the increasing indices of these
    rows. `rows` are the indices of all of them, in increasing order, and `codes` (n,)
    the group of each row of the data.
    """
    if len(rows) == 0:
        return
    order = rows[grouped_rows(codes[rows])]
    ordered = codes[order]
    starts = first_rows(ordered)
    yield from zip(ordered[starts], np.split(order, starts[1:]), strict=True)
