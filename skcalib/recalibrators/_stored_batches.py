"""Batches of rows that are too many for the memory, in a file from which a fit reads
them block by block.
"""

import numpy as np

from skcalib._input.scores import check_scores
from skcalib._input.tensors import as_array


def stored_batches(batches, file, input):
    """Write the scores of batches to a file, one batch after the other.

    Parameters
    ----------
    batches : iterable of (X, y) or (X, y, sample_weight)
        Scores (m, C), labels (m,) and weights (m,); arrays or tensors.
    file : file object
        An empty file, open for reading and writing in binary mode.
    input : {"probability", "logit"}
        What the scores are.

    Returns
    -------
    scores : memmap of shape (n, C)
        The scores of all batches, of float32 if those of the first one are.
    labels : ndarray of shape (n,)
    sample_weight : ndarray of shape (n,) or None
    """
    labels = []
    weights = []
    n_columns = None
    for number, (X, y, *weight) in enumerate(batches):
        scores = check_scores(X, name="X", input=input)
        if n_columns is None:
            n_columns = scores.shape[1]
            dtype = scores.dtype
        if scores.shape[1] != n_columns:
            raise ValueError(
                f"X has {scores.shape[1]} columns in batch {number}, but {n_columns} in"
                " earlier batches: all batches need the same columns."
            )
        y, _ = as_array(y)
        if y.shape != (len(scores),):
            raise ValueError(
                f"y has shape {y.shape} in batch {number}, and X has {len(scores)}"
                " rows: one label for each row is needed."
            )
        file.write(scores.astype(dtype, order="C", copy=False).data)
        labels.append(y)
        weights += [as_array(values)[0] for values in weight]
    if not labels:
        raise ValueError(
            "batches is empty. A generator is exhausted after one pass: create a new"
            " one."
        )
    if weights and len(weights) < len(labels):
        raise ValueError(
            f"{len(weights)} of {len(labels)} batches have weights: pass them with all"
            " or with none."
        )
    labels = np.concatenate(labels)
    file.flush()
    scores = np.memmap(file, dtype, "r", shape=(len(labels), n_columns))
    return scores, labels, np.concatenate(weights) if weights else None
