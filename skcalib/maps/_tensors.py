"""Maps of tensors: the nodes of calibration maps in functions of the array API
standard, so that scores stay in their library and on their device.
"""

from functools import cached_property

import numpy as np

from skcalib._input.scores import MAX_MAGNITUDE, ROUNDING
from skcalib._input.tensors import dispatched_namespace
from skcalib._rows.links import LARGEST_GAP, PROBABILITY_CLIP
from skcalib.maps._calibration_map import calibration_map, has_map
from skcalib.maps._choices import Choice, Largest, Place
from skcalib.maps._class_functions import (
    Affine,
    Centred,
    LogNormalized,
    Normalized,
    Possible,
    Softmax,
)
from skcalib.maps._combinations import Mixture
from skcalib.maps._leaves import Scores
from skcalib.maps._value_functions import (
    Clip,
    Expit,
    Log,
    LogOdds,
    LogSides,
    Scaled,
)

_BLOCK_ELEMENTS = 1 << 22  # scores of a block: few calls, and small temporaries


def mapped_tensor(recalibrator, X):
    """Return the probabilities of a tensor as a tensor of the same library, device and
    floating-point type; None if they must be computed with NumPy.

    The result is None for objects that are not tensors supported by scikit-learn's
    dispatch, for maps with nodes that have no function here, and for scores that may be
    invalid, so that the checks of `skcalib._input.scores` have to raise the error.

    Parameters
    ----------
    recalibrator : recalibrator
        A fitted recalibrator.
    X : array-like of shape (n,) or (n, C)
        Scores.
    """
    xp, device = dispatched_namespace(X)
    if xp is None or not has_map(type(recalibrator)):
        return None
    if getattr(recalibrator, "_has_wide_logits_", False):
        # For this fit only a logit of -inf marks an impossible class, but `TensorRows`
        # goes by the gap between logits.
        return None
    scores = _valid_scores(recalibrator, X, xp, device)
    if scores is None:
        return None
    as_map = calibration_map(recalibrator, n_columns=scores.shape[1])
    n_rows = max(_BLOCK_ELEMENTS // as_map.scores.width, 1)
    blocks = []
    try:
        for start in range(0, scores.shape[0], n_rows):
            stop = min(start + n_rows, scores.shape[0])
            rows = TensorRows(xp, device, scores[start:stop, :])
            blocks.append(xp.astype(_class_probabilities(as_map, rows), X.dtype))
    except NotImplementedError:
        return None
    return blocks[0] if len(blocks) == 1 else xp.concat(blocks)


def _class_probabilities(as_map, rows):
    """Return the probabilities of all classes (n, K) by a `CalibrationMap`, for a
    `TensorRows`.
    """
    xp = rows.xp
    if as_map.output.width > 1:
        return rows(as_map.output)
    # Of two classes the map gives the probability of the second one. `unmasked` is the
    # map for rows in which both classes are possible, `output` that for all rows, or
    # the same node if no class can be impossible.
    probability = rows(as_map.unmasked)
    may_be_impossible = as_map.output is not as_map.unmasked
    if may_be_impossible and rows.is_impossible is not None:
        # Where one class is impossible, the probability of the second one is 1 if it is
        # the first that is impossible, otherwise 0.
        is_certain = xp.any(rows.is_impossible, axis=1, keepdims=True)
        first_is_impossible = xp.astype(rows.is_impossible[:, :1], probability.dtype)
        probability = xp.where(is_certain, first_is_impossible, probability)
    return xp.concat((1 - probability, probability), axis=1)


def _valid_scores(recalibrator, X, xp, device):
    """Return the scores (n, C) of a tensor X, in the widest floats of its device; None
    if they may be invalid.
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
    scores = xp.astype(scores, _widest_dtype(xp, device))
    if recalibrator.input == "probability":
        name_of_dtype = str(X.dtype).rpartition(".")[2]
        return _valid_probabilities(scores, xp, name_of_dtype)
    # Logits may be -inf, but the largest of a row must be finite: it is NaN if there is
    # a NaN, and -inf if every class is impossible.
    largest = xp.max(scores, axis=1)
    magnitude = min(MAX_MAGNITUDE, float(xp.finfo(scores.dtype).max))
    is_small = (xp.abs(scores) <= magnitude) | xp.isinf(scores)
    is_valid = xp.all(xp.isfinite(largest)) & xp.all(is_small)
    return scores if bool(is_valid) else None


def _valid_probabilities(scores, xp, name_of_dtype):
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
    off = xp.abs(total - 1)
    if not bool(is_valid & xp.all(off <= refused)):
        return None
    return scores / xp.where(off <= untouched, xp.ones_like(total), total)


def _widest_dtype(xp, device):
    """Return float64, or float32 for a device without float64."""
    # Namespaces of older versions of the array API standard do not tell their types.
    info = getattr(xp, "__array_namespace_info__", None)
    if info is not None and "float64" not in info().dtypes(device=device):
        return xp.float32
    return xp.float64


class TensorRows:
    """Rows of a tensor on which nodes are evaluated, each node once: see `Rows`.

    Parameters
    ----------
    xp : module
        The namespace of the array API.
    device : object
        The device of the scores.
    scores : array of shape (n, C)
        Valid scores.
    """

    def __init__(self, xp, device, scores):
        self.xp = xp
        self.device = device
        self._scores = scores  # (n, C), as they were given
        self._values = {}  # maps the Python `id` of a node to its values (n, width)

    @cached_property
    def is_impossible(self):
        """Which classes are impossible in each row, booleans (n, C): those with a logit
        more than 700 below the row's largest. None if no class is in any row.
        """
        lowest = self.xp.max(self._scores, axis=1, keepdims=True) - LARGEST_GAP
        is_below = self._scores < lowest
        return is_below if bool(self.xp.any(is_below)) else None

    def scores(self, node):
        """Return the scores (n, C), with a finite number for impossible classes: -inf
        would become NaN in sums.
        """
        if node.width == 1 or self.is_impossible is None:
            return self._scores
        largest = self.xp.max(self._scores, axis=1, keepdims=True)
        return self.xp.where(
            self.is_impossible, largest - 2 * LARGEST_GAP, self._scores
        )

    def constant(self, values):
        """Return numbers as an array on the device of the scores."""
        dtype = self._scores.dtype
        return self.xp.asarray(
            np.asarray(values, dtype=np.float64), dtype=dtype, device=self.device
        )

    def at(self, chosen):
        """Return the rows of an index (m,)."""
        scores = self.xp.take(self._scores, chosen, axis=0)
        return TensorRows(self.xp, self.device, scores)

    def __call__(self, node):
        """Return the values of a node (n, width)."""
        if id(node) not in self._values:
            function = _FUNCTIONS.get(type(node))
            if function is None:
                raise NotImplementedError(f"{type(node).__name__} of tensors")
            self._values[id(node)] = function(node, self)
        return self._values[id(node)]

    def replace_impossible(self, node, values, replacement):
        """Return values (n, K) with the number `replacement` for impossible classes, if
        ``node.possible`` says that the node leaves them out.
        """
        if not node.possible or self.is_impossible is None:
            return values
        return self.xp.where(self.is_impossible, self.constant(replacement), values)

    def without_impossible(self, node, probabilities):
        """Return probabilities (n, K), if ``node.possible`` is set with 0 for
        impossible classes and the others rescaled to sum to 1.
        """
        if not node.possible or self.is_impossible is None:
            return probabilities
        is_possible = self.xp.astype(~self.is_impossible, probabilities.dtype)
        return self.shares(probabilities * is_possible, is_possible)

    def shares(self, values, values_for_zeros):
        """Return the rows of `values` (n, K) divided by their sums; for a row of zeros,
        that row of `values_for_zeros` (n, K) is used instead.
        """
        xp = self.xp
        total = xp.sum(values, axis=1, keepdims=True)
        is_zero = total == 0
        total = xp.where(is_zero, xp.ones_like(total), total)
        return xp.where(
            is_zero,
            values_for_zeros / xp.sum(values_for_zeros, axis=1, keepdims=True),
            values / total,
        )

    def clipped(self, probabilities, clip=True):
        """Return probabilities, clipped to [2^-52, 1 - 2^-52] if requested."""
        if not clip:
            return probabilities
        return self.xp.clip(probabilities, PROBABILITY_CLIP, 1 - PROBABILITY_CLIP)


def _clip(node, rows):
    return rows.xp.clip(rows(node.of), node.low, node.high)


def _scaled(node, rows):
    return rows(node.of) * rows.constant(node.slope) + rows.constant(node.intercept)


def _affine(node, rows):
    product = rows.xp.matmul(rows(node.of), rows.constant(node.coef.T))
    return product + rows.constant(node.intercept)


def _log(node, rows):
    return rows.xp.log(rows.clipped(rows(node.of)))


def _log_odds(node, rows):
    probability = rows.clipped(rows(node.of))
    return rows.xp.log(probability) - rows.xp.log1p(-probability)


def _log_sides(node, rows):
    """Return log(p) and -log(1 - p) of the probability p with log-odds z (n, 1), as
    (n, 2).
    """
    values = rows(node.of)
    # log(p) = min(z, 0) - log(1 + exp(-|z|)) and -log(1 - p) = max(z, 0) + the same,
    # with min(z, 0) = (z - |z|) / 2 and max(z, 0) = (z + |z|) / 2
    size = rows.xp.abs(values)
    softplus = rows.xp.log1p(rows.xp.exp(-size))
    sides = ((values - size) / 2 - softplus, (values + size) / 2 + softplus)
    return rows.xp.concat(sides, axis=1)


def _expit(node, rows):
    """Return 1 / (1 + exp(-z)) of values z, without overflow."""
    values = rows(node.of)
    # 1 / (1 + exp(-z)) for z >= 0, exp(z) / (1 + exp(z)) for z < 0
    decay = rows.xp.exp(-rows.xp.abs(values))
    numerator = rows.xp.where(values >= 0, rows.xp.ones_like(decay), decay)
    return rows.clipped(numerator / (1 + decay), node.clip)


def _softmax(node, rows):
    """Return the softmax of logits (n, K); with ``node.possible``, impossible classes
    are left out and get 0.
    """
    values = rows.replace_impossible(node, rows(node.of), -np.inf)
    values = values - rows.xp.max(values, axis=1, keepdims=True)
    likelihood = rows.xp.exp(values)
    probabilities = likelihood / rows.xp.sum(likelihood, axis=1, keepdims=True)
    return rows.without_impossible(node, rows.clipped(probabilities, node.clip))


def _log_normalized(node, rows):
    """Return the log-probabilities (n, K) of logits: values less the logarithm of the
    sum of their exponentials. With ``node.possible``, impossible classes are left out
    and get 0.
    """
    xp = rows.xp
    values = rows.replace_impossible(node, rows(node.of), -np.inf)
    values = values - xp.max(values, axis=1, keepdims=True)
    values = values - xp.log(xp.sum(xp.exp(values), axis=1, keepdims=True))
    return rows.replace_impossible(node, values, 0.0)


def _centred(node, rows):
    """Return the values (n, K) less their mean over the classes. With
    ``node.possible``, impossible classes are left out and get 0.
    """
    values = rows.replace_impossible(node, rows(node.of), 0.0)
    # 1 for each class that counts, 0 for the others
    counts = rows.replace_impossible(node, rows.xp.ones_like(values), 0.0)
    total = rows.xp.sum(values, axis=1, keepdims=True)
    mean = total / rows.xp.sum(counts, axis=1, keepdims=True)
    return rows.replace_impossible(node, values - mean, 0.0)


def _possible(node, rows):
    """Return the values, with 0 for impossible classes."""
    values = rows(node.of)
    if rows.is_impossible is None:
        return values
    return rows.xp.where(rows.is_impossible, rows.constant(0.0), values)


def _normalized(node, rows):
    """Return the shares of the values (n, K) in the sum of their row; equal shares for
    a row of zeros.
    """
    values = rows(node.of)
    shares = rows.shares(values, rows.xp.ones_like(values))
    return rows.without_impossible(node, shares)


def _mixture(node, rows):
    """Return the weighted sum of the values of several nodes, plus a constant."""
    total = node.constant
    for weight, part in zip(node.weights, node.parts, strict=True):
        total = total + weight * rows(part)
    return total


def _choice(node, rows):
    """Return the values (n, width) of a `Choice`: for each row those of the node among
    ``node.cases`` that its key selects.
    """
    xp = rows.xp
    # the number of each row's node: the column of its largest value, or how many cuts
    # are below its value
    if isinstance(node.key, Largest):
        number = xp.argmax(rows(node.key.of), axis=1)
    elif isinstance(node.key, Place):
        is_above = rows(node.key.of) > rows.constant(node.key.cuts)
        number = xp.sum(xp.astype(is_above, xp.int64), axis=1)
    else:
        raise NotImplementedError(f"{type(node.key).__name__} of tensors")
    # Each node is evaluated on the rows that select it. The values, joined in the order
    # of the nodes, are then sorted back into the order of the rows.
    selected_rows = []
    values_of_nodes = []
    for k, case in enumerate(node.cases):
        (selected,) = xp.nonzero(number == k)
        if selected.shape[0] > 0:
            selected_rows.append(selected)
            values_of_nodes.append(rows.at(selected)(case))
    order = xp.argsort(xp.concat(selected_rows))
    return xp.take(xp.concat(values_of_nodes), order, axis=0)


_FUNCTIONS = {
    Scores: lambda node, rows: rows.scores(node),
    Clip: _clip,
    Scaled: _scaled,
    Affine: _affine,
    Log: _log,
    LogOdds: _log_odds,
    LogSides: _log_sides,
    Expit: _expit,
    Softmax: _softmax,
    LogNormalized: _log_normalized,
    Centred: _centred,
    Possible: _possible,
    Normalized: _normalized,
    Mixture: _mixture,
    Choice: _choice,
}
