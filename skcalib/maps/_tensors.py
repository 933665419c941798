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
    dispatch, for maps with nodes that have no function here, and for scores that must
    be rejected or repaired, which is done in one place: `skcalib._input.scores`.

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
        # In this fit only a logit of -inf is impossible; `TensorRows` masks by the gap.
        return None
    scores = _plain_scores(recalibrator, X, xp, device)
    if scores is None:
        return None
    as_map = calibration_map(recalibrator, n_columns=scores.shape[1])
    n_rows = max(_BLOCK_ELEMENTS // as_map.scores.width, 1)
    blocks = []
    try:
        for start in range(0, scores.shape[0], n_rows):
            stop = min(start + n_rows, scores.shape[0])
            rows = TensorRows(xp, device, scores[start:stop, :])
            blocks.append(xp.astype(_of_classes(as_map, rows), X.dtype))
    except NotImplementedError:
        return None
    return blocks[0] if len(blocks) == 1 else xp.concat(blocks)


def _of_classes(as_map, rows):
    """Return the probabilities of all classes (n, K)."""
    xp = rows.xp
    if as_map.output.width > 1:
        return rows(as_map.output)
    probability = rows(as_map.unmasked)
    if as_map.output is not as_map.unmasked and rows.closed is not None:
        # one class of two is certain where the other is impossible
        is_closed = xp.any(rows.closed, axis=1, keepdims=True)
        # the second class is certain where the first is impossible
        is_second = xp.astype(rows.closed[:, :1], probability.dtype)
        probability = xp.where(is_closed, is_second, probability)
    return xp.concat((1 - probability, probability), axis=1)


def _plain_scores(recalibrator, X, xp, device):
    """Return scores (n, C) in the widest floats of the device; None where they may be
    invalid, so that NumPy's checks have to say why.
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
        return _plain_probabilities(scores, xp, str(X.dtype).rpartition(".")[2])
    # The largest of a row tells of NaN and of infinity, and of rows without a class.
    largest = xp.max(scores, axis=1)
    magnitude = min(MAX_MAGNITUDE, float(xp.finfo(scores.dtype).max))
    is_small = (xp.abs(scores) <= magnitude) | xp.isinf(scores)
    is_valid = xp.all(xp.isfinite(largest)) & xp.all(is_small)
    return scores if bool(is_valid) else None


def _plain_probabilities(scores, xp, precision):
    """Return probabilities whose rows sum to 1, up to the rounding of the type
    `precision`, a name, that they came in; None where they may be invalid.
    """
    # How far the sum of a row may be off 1, and up to where it is left as it is.
    refused, untouched = ROUNDING.get(precision, ROUNDING["float64"])
    is_valid = xp.all((scores >= 0) & (scores <= 1))
    if scores.shape[1] == 1:
        return scores if bool(is_valid) else None
    total = xp.sum(scores, axis=1, keepdims=True)
    off = xp.abs(total - 1)
    if not bool(is_valid & xp.all(off <= refused)):
        return None
    return scores / xp.where(off <= untouched, xp.ones_like(total), total)


def _widest_dtype(xp, device):
    """Return float64, or float32 for a device without it."""
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
        # the scores as they were given, and by the id of a node its values (n, width)
        self._given = scores
        self._values = {}

    @cached_property
    def closed(self):
        """Which classes are impossible (n, C): see `Possible`. None where none is."""
        lowest = self.xp.max(self._given, axis=1, keepdims=True) - LARGEST_GAP
        is_closed = self._given < lowest
        return is_closed if bool(self.xp.any(is_closed)) else None

    def scores(self, node):
        """Return the scores; those of excluded classes are made finite."""
        if node.width == 1 or self.closed is None:
            return self._given
        largest = self.xp.max(self._given, axis=1, keepdims=True)
        return self.xp.where(self.closed, largest - 2 * LARGEST_GAP, self._given)

    def constant(self, values):
        """Return numbers as an array on the device of the scores."""
        dtype = self._given.dtype
        return self.xp.asarray(
            np.asarray(values, dtype=np.float64), dtype=dtype, device=self.device
        )

    def at(self, chosen):
        """Return the rows of an index (m,)."""
        given = self.xp.take(self._given, chosen, axis=0)
        return TensorRows(self.xp, self.device, given)

    def __call__(self, node):
        """Return the values of a node (n, width)."""
        if id(node) not in self._values:
            function = _FUNCTIONS.get(type(node))
            if function is None:
                raise NotImplementedError(f"{type(node).__name__} of tensors")
            self._values[id(node)] = function(node, self)
        return self._values[id(node)]

    def open_only(self, node, values, otherwise):
        """Return values, with a given number in place of those of excluded classes."""
        if not node.possible or self.closed is None:
            return values
        return self.xp.where(self.closed, self.constant(otherwise), values)

    def without_impossible(self, node, probabilities):
        """Return probabilities with 0 for excluded classes and the others rescaled in
        proportion.
        """
        if not node.possible or self.closed is None:
            return probabilities
        is_open = self.xp.astype(~self.closed, probabilities.dtype)
        return self.shares(probabilities * is_open, is_open)

    def shares(self, values, otherwise):
        """Return rows divided by their sums; a row of zeros becomes the shares of
        others.
        """
        xp = self.xp
        total = xp.sum(values, axis=1, keepdims=True)
        is_zero = total == 0
        total = xp.where(is_zero, xp.ones_like(total), total)
        return xp.where(
            is_zero,
            otherwise / xp.sum(otherwise, axis=1, keepdims=True),
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
    """Return log(p) and -log(1 - p) of log-odds z (n, 1), as (n, 2)."""
    values = rows(node.of)
    # min(z, 0) = (z - |z|) / 2, max(z, 0) = (z + |z|) / 2
    size = rows.xp.abs(values)
    softplus = rows.xp.log1p(rows.xp.exp(-size))
    sides = ((values - size) / 2 - softplus, (values + size) / 2 + softplus)
    return rows.xp.concat(sides, axis=1)


def _expit(node, rows):
    """Return 1 / (1 + exp(-z)) of values z, without overflow."""
    values = rows(node.of)
    decay = rows.xp.exp(-rows.xp.abs(values))
    sign = rows.xp.where(values >= 0, rows.xp.ones_like(decay), decay)
    return rows.clipped(sign / (1 + decay), node.clip)


def _softmax(node, rows):
    """Return the softmax, over the possible classes if the node says so."""
    values = rows.open_only(node, rows(node.of), -np.inf)
    values = values - rows.xp.max(values, axis=1, keepdims=True)
    likelihood = rows.xp.exp(values)
    probabilities = likelihood / rows.xp.sum(likelihood, axis=1, keepdims=True)
    return rows.without_impossible(node, rows.clipped(probabilities, node.clip))


def _log_normalized(node, rows):
    """Return the values less the logarithm of the sum of their exponentials; 0 for
    classes that are left out.
    """
    xp = rows.xp
    values = rows.open_only(node, rows(node.of), -np.inf)
    values = values - xp.max(values, axis=1, keepdims=True)
    values = values - xp.log(xp.sum(xp.exp(values), axis=1, keepdims=True))
    return rows.open_only(node, values, 0.0)


def _centred(node, rows):
    """Return the values less their mean over the classes that are not left out; 0 for
    the others.
    """
    values = rows.open_only(node, rows(node.of), 0.0)
    is_open = rows.open_only(node, rows.xp.ones_like(values), 0.0)
    total = rows.xp.sum(values, axis=1, keepdims=True)
    mean = total / rows.xp.sum(is_open, axis=1, keepdims=True)
    return rows.open_only(node, values - mean, 0.0)


def _possible(node, rows):
    """Return the values, with 0 for impossible classes."""
    values = rows(node.of)
    if rows.closed is None:
        return values
    return rows.xp.where(rows.closed, rows.constant(0.0), values)


def _normalized(node, rows):
    """Return the shares of the values in the sum of their row."""
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
    """Return the values of the node that each row has chosen, case by case."""
    xp = rows.xp
    values = rows(node.key.of) if hasattr(node.key, "of") else None
    if isinstance(node.key, Largest):
        number = xp.argmax(values, axis=1)
    elif isinstance(node.key, Place):
        is_above = values > rows.constant(node.key.cuts)
        number = xp.sum(xp.astype(is_above, xp.int64), axis=1)
    else:
        raise NotImplementedError(f"{type(node.key).__name__} of tensors")
    places = []
    of_cases = []
    for k, case in enumerate(node.cases):
        (chosen,) = xp.nonzero(number == k)
        if chosen.shape[0] > 0:
            places.append(chosen)
            of_cases.append(rows.at(chosen)(case))
    # The values are in the order of the cases: back into that of the rows.
    order = xp.argsort(xp.concat(places))
    return xp.take(xp.concat(of_cases), order, axis=0)


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
