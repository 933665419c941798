"""Groups of rows, and the errors of groups as one number."""

import numpy as np

from skcalib._input.labels import check_groups


def group_codes(groups, data):
    """Return the names of the groups and the code of each row's group."""
    return predicted_class(data) if is_predicted_class(groups) else check_groups(groups, len(data.scores))


def reduced(errors, weights, reduce):
    """Return the largest, the mean or the weighted mean of the groups' errors (..., n_groups)."""
    if reduce == "max":
        return errors.max(axis=-1)
    return np.average(errors, axis=-1, weights=weights if reduce == "weighted" else None)


def is_predicted_class(groups):
    """Return whether groups are the predicted classes; raise for any other text."""
    if isinstance(groups, str) and groups != "predicted_class":
        raise ValueError(f"groups must be 'predicted_class' or an array with one entry a row, found {groups!r}.")
    return isinstance(groups, str)


def predicted_class(data):
    """Return the classes and the index of each row's predicted class among them."""
    if data.is_binary:
        return data.classes, (data.scores > 0.5).astype(np.intp)
    return data.classes, data.scores.argmax(axis=1) if data.predicted is None else data.predicted


def split_by_group(data, codes):
    """Yield the code of each group that has rows of positive weight, and the indices of those rows, in order."""
    kept = data.kept
    order = kept[np.argsort(codes[kept], kind="stable")]
    present, starts = np.unique(codes[order], return_index=True)
    yield from zip(present, np.split(order, starts[1:]), strict=True)
