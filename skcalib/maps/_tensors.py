"""The door of tensors to calibration maps: their scores stay in their library and on
their device.
"""

import numpy as np

from skcalib._input.limits import MAX_MAGNITUDE, ROUNDING
from skcalib._input.tensors import dispatched_namespace, has_float64
from skcalib._rows.links import PROBABILITY_CLIP
from skcalib._rows.namespaces import clipped, row_softmax
from skcalib.maps._node import Rows
from skcalib.maps._prediction import predicted_node, probabilities_of_two

_BLOCK_ELEMENTS = 1 << 22  # scores of a block: few calls, and small temporaries
_TEMPERED_ELEMENTS = 1 << 26  # the same where there are few temporaries
# Logits of this size, and gaps between those of a row, are far below `LARGEST_GAP` in
# every floating type.
_MODERATE = 600.0


def mapped_tensor(recalibrator, X):
    """Return the probabilities of a tensor as a tensor of the same library, device and
    floating-point type; None if they must be computed with NumPy.

    The result is None for objects that are not tensors supported by scikit-learn's
    dispatch, for maps that only NumPy computes, and for scores that may be invalid, so
    that the checks of `skcalib._input.scores` have to raise the error.

    Parameters
    ----------
    recalibrator : recalibrator
        A fitted recalibrator.
    X : array-like of shape (n,) or (n, C)
        Scores.
    """
    xp, device = dispatched_namespace(X)
    # For a fit with wide logits only one of -inf marks an impossible class, but `Rows`
    # goes by the gap between logits.
    has_wide_logits = getattr(recalibrator, "_has_wide_logits_", False)
    if xp is None or hasattr(recalibrator, "_predict_scores") or has_wide_logits:
        return None
    dtype = xp.float64 if has_float64(xp, device) else xp.float32
    scores = _valid_scores(recalibrator, X, xp, dtype)
    if scores is None:
        return None
    node = predicted_node(recalibrator, scores.shape[1])
    if recalibrator.input == "probability":
        return _in_blocks(node, scores, dtype, X.dtype, xp, all_possible=True)
    # The common case takes two passes, of which NaN and all that is rare fail the test.
    largest = xp.max(scores, axis=1, keepdims=True)
    gap = largest - xp.min(scores, axis=1, keepdims=True)
    # Moderate logits, so near to each other that every class is possible.
    all_possible = bool(xp.all((xp.abs(largest) <= _MODERATE) & (gap <= _MODERATE)))
    slope = getattr(node, "_only_slope", None)
    if all_possible and slope is not None:
        return _tempered(xp, scores, largest, gap, slope)
    if not all_possible and not are_valid_logits(scores, xp, dtype):
        return None
    return _in_blocks(node, scores, dtype, X.dtype, xp, all_possible=all_possible)


def _in_blocks(node, scores, dtype, given_dtype, xp, *, all_possible):
    """Return the probabilities (n, K) of valid scores by a node, computed block by
    block in `dtype` and returned in `given_dtype`; None for a node that only NumPy
    computes. With `all_possible` no class is impossible in any row.
    """
    n_classes = max(node.width, 2)
    n_rows = max(_BLOCK_ELEMENTS // n_classes, 1)
    blocks = []
    try:
        for start in range(0, scores.shape[0], n_rows):
            stop = min(start + n_rows, scores.shape[0])
            rows = Rows(xp.astype(scores[start:stop, :], dtype))
            if all_possible:
                rows.is_impossible = None
            probabilities = _class_probabilities(node, rows, n_classes)
            blocks.append(xp.astype(probabilities, given_dtype))
    except NotImplementedError:
        return None
    return blocks[0] if len(blocks) == 1 else xp.concat(blocks)


def _class_probabilities(node, rows, n_classes):
    """Return the probabilities of all classes (n, K) by a node, for the `Rows` of a
    tensor.
    """
    xp = rows.xp
    if n_classes > 2:
        return rows(node)
    # The node gives the probability of the second class, for rows in which both are
    # possible.
    both = xp.concat(probabilities_of_two(node, rows), axis=1)
    if rows.is_impossible is None:
        return both
    is_certain = xp.any(rows.is_impossible, axis=1, keepdims=True)
    return xp.where(is_certain, xp.astype(~rows.is_impossible, both.dtype), both)


def _valid_scores(recalibrator, X, xp, dtype):
    """Return the scores (n, C) of a tensor X, which may be invalid only if they are
    logits; None if other scores may be. Probabilities have the type `dtype`.
    """
    if not xp.isdtype(X.dtype, "real floating") or X.ndim not in (1, 2):
        return None
    if hasattr(X, "detach"):
        X = X.detach()  # without its gradient
    scores = xp.reshape(X, (X.shape[0], -1)) if X.shape[0] else X
    if 0 in X.shape or scores.shape[1] != recalibrator.n_features_in_:
        return None
    if hasattr(recalibrator, "feature_names_in_"):
        return None  # which a tensor lacks
    if recalibrator.input == "logit":
        return scores
    name_of_dtype = str(X.dtype).rpartition(".")[2]
    return valid_probabilities(xp.astype(scores, dtype), xp, name_of_dtype)


def _tempered(xp, logits, largest, gap, slope):
    """Return the softmax (n, K) of `slope` times moderate logits, in few passes and in
    the floating type of the logits. `largest` (n, 1) is the largest logit of each row,
    `gap` (n, 1) its distance from the smallest. Logits of half precision are computed
    in single precision. The largest logit is subtracted before the product with the
    slope, so that large probabilities have no rounding error.
    """
    dtype = logits.dtype
    if xp.finfo(dtype).bits < 32:
        logits = xp.astype(logits, xp.float32)
        largest = xp.astype(largest, xp.float32)
    n_classes = logits.shape[1]
    # No probability is below exp(-widest gap) / K. If that is above the limit of
    # clipping, nothing is clipped.
    widest_gap = float(xp.max(gap)) * slope
    needs_clipping = widest_gap + np.log(n_classes) >= -np.log(PROBABILITY_CLIP)
    n_rows = max(_TEMPERED_ELEMENTS // n_classes, 1)
    blocks = []
    for start in range(0, logits.shape[0], n_rows):
        rows = slice(start, min(start + n_rows, logits.shape[0]))
        differences = logits[rows, :] - largest[rows, :]
        differences *= slope
        probabilities = row_softmax(xp, differences, largest_is_zero=True)
        if needs_clipping:
            probabilities = clipped(xp, probabilities)
        blocks.append(xp.astype(probabilities, dtype, copy=False))
    return blocks[0] if len(blocks) == 1 else xp.concat(blocks)


def are_valid_logits(logits, xp, dtype):
    """Return whether logits (n, C) are valid in the floating type `dtype`.

    They may be -inf, but the largest of a row must be finite: it is NaN if there is a
    NaN, and -inf if every class is impossible.
    """
    largest = xp.max(logits, axis=1)
    types = (logits.dtype, dtype)
    magnitude = min(MAX_MAGNITUDE, *(float(xp.finfo(kind).max) for kind in types))
    is_small = (xp.abs(logits) <= magnitude) | xp.isinf(logits)
    return bool(xp.all(xp.isfinite(largest)) & xp.all(is_small))


def valid_probabilities(scores, xp, name_of_dtype):
    """Return probabilities (n, 1) or (n, K) with rows that sum to 1; None if they may
    be invalid.

    Sums that differ from 1 by the rounding of the type in which the scores were given,
    such as "float32", are valid; the larger ones of these differences are removed.
    """
    # Differences from 1 above the first limit are refused, those up to the second one
    # are left as they are.
    refused, untouched = ROUNDING.get(name_of_dtype, ROUNDING["float64"])
    is_valid = xp.all((scores >= 0) & (scores <= 1))
    if scores.shape[1] == 1:
        return scores if bool(is_valid) else None
    total = xp.sum(scores, axis=1, keepdims=True)
    error_of_sum = xp.abs(total - 1)
    if not bool(is_valid & xp.all(error_of_sum <= refused)):
        return None
    return scores / xp.where(error_of_sum <= untouched, xp.ones_like(total), total)
