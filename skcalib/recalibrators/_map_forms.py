"""What maps are built from: forms that several methods share, and the whole map of a fitted recalibrator."""

from dataclasses import dataclass

import numpy as np

import skcalib.recalibrators._maps as nodes
from skcalib._defaults import check_fitted
from skcalib._rows.links import PROBABILITY_CLIP

# Methods that say what is predicted: a class with one of these and no map of its own has none.
_DIRECT_FORMS = {
    "_predict_binary",
    "_predict_logits",
    "_predict_scores",
    "predict_proba",
}


@dataclass(frozen=True, eq=False)
class CalibrationMap:
    """A fitted calibration map as a tree of nodes.

    Attributes
    ----------
    scores : Scores
        Where the tree starts. Width 1 is the positive class's probability, or its log-odds; else one column per class.
    output : node
        Where it ends: the positive class's probability (width 1) for two classes, else the K probabilities.
    input : {"probability", "logit"}
        What the scores are.
    classes : ndarray of shape (n_classes,)
        Labels, in the order of the columns.
    """

    scores: nodes.Scores
    output: object
    input: str
    classes: np.ndarray

    @property
    def group_key(self):
        """The `GroupOf` that chooses between the maps of groups, None where there is none."""
        key = getattr(self.output, "key", None)
        return key if isinstance(key, nodes.GroupOf) else None


def calibration_map(recalibrator, *, n_columns=None):
    """Return what `predict_proba` does to valid scores as a `CalibrationMap`.

    Parameters
    ----------
    recalibrator : recalibrator
        A fitted recalibrator.
    n_columns : int, default=None
        Number of columns of scores. None means 1 for two classes, whatever `fit` was given, else K. For two classes
        one column is the positive class's probability, or its log-odds.

    Returns
    -------
    map : CalibrationMap
        The map, as a tree of nodes.

    Raises
    ------
    ValueError
        If the method, or a part of it, has no such form: the message names it.
    """
    check_fitted(recalibrator)
    n_classes = len(recalibrator.classes_)
    scores = nodes.Scores(n_columns or (1 if n_classes == 2 else n_classes))
    if scores.width > 2 and scores.width != n_classes:
        raise ValueError(
            f"{type(recalibrator).__name__} has {n_classes} classes, found {n_columns} columns of scores."
        )
    return CalibrationMap(
        scores, map_of(recalibrator, scores), recalibrator.input, recalibrator.classes_
    )


def map_of(recalibrator, scores):
    """Return the node of a fitted recalibrator's probabilities: of the positive class alone for two classes."""
    kind = type(recalibrator)
    if not has_map(kind):
        raise ValueError(
            f"{kind.__name__} cannot be written outside Python: it has no method `_map`, so no form in SQL, ONNX, "
            "JavaScript or expressions. Write the recalibrator inside: of a pipeline `pipeline[-1]`, of a "
            "RecalibratedClassifierCV with one pair `model.calibrated_classifiers_[0].recalibrator`."
        )
    return recalibrator._map_of(scores)


def has_map(kind):
    """Return whether a class has a map that tells what it predicts: no class below redefined the prediction alone."""
    for parent in kind.__mro__:
        if "_map" in vars(parent) or _DIRECT_FORMS & vars(parent).keys():
            return "_map" in vars(parent)
    return False


# Forms of one value.


def inside(node):
    """Return probabilities kept in [2^-52, 1 - 2^-52]."""
    if isinstance(node, nodes.Clip) and node.low >= PROBABILITY_CLIP:
        return node
    return nodes.Clip(node, PROBABILITY_CLIP, 1 - PROBABILITY_CLIP)


def polynomials(score, cuts, origins, coefficients):
    """Return continuous pieces, each given by as many coefficients as it has."""
    table = np.zeros((len(coefficients), max(map(len, coefficients))))
    for row, given in zip(table, coefficients, strict=True):
        row[: len(given)] = given
    cuts, origins = (np.asarray(values, dtype=np.float64) for values in (cuts, origins))
    return nodes.Pieces(score, cuts, origins, table, continuous=True)


def steps(score, cuts, values):
    """Return a step function, without the steps that no score reaches or that are as high as the one before."""
    cuts, values = (
        np.asarray(cuts, dtype=np.float64),
        np.asarray(values, dtype=np.float64),
    )
    if len(values) != len(cuts) + 1 or (np.diff(cuts) < 0).any():
        raise ValueError("steps need cuts in order, and one value more than cuts")
    if len(cuts):
        values = values[np.concatenate(([True], np.diff(cuts) > 0, [True]))]
        cuts = np.unique(cuts)
    rises = np.diff(values) != 0
    values = values[np.append(True, rises)]
    return nodes.Pieces(score, cuts[rises], np.zeros(len(values)), values[:, None])


def below(cuts):
    """Return cuts that belong to the step above as those that belong to the step below: the floats next to them."""
    return np.nextafter(np.asarray(cuts, dtype=np.float64), -np.inf)


# Forms of K logits; the logits of two classes may be (0, z) for log-odds z. Those of two classes give one value.


def two_logits(log_odds):
    """Return log-odds as the logits of two classes."""
    return nodes.Affine(log_odds, np.array([[0.0], [1.0]]), np.zeros(2))


def softmax(logits, clip=True):
    """Return the softmax; of two classes the probability of the second."""
    if logits.width > 2:
        return nodes.Softmax(logits, clip)
    log_odds = _log_odds(logits)
    return (
        inside(log_odds.of)
        if isinstance(log_odds, nodes.LogOdds)
        else nodes.Expit(log_odds, clip)
    )


def log_normalized(logits):
    """Return the logarithms of the probabilities whose logits are given."""
    if logits.width > 2:
        return nodes.LogNormalized(logits)
    return nodes.Affine(
        nodes.LogSides(_log_odds(logits)),
        np.array([[0.0, -1.0], [1.0, 0.0]]),
        np.zeros(2),
    )


def normalized(probabilities):
    """Return rows that sum to 1; the one probability of two classes is left as it is."""
    return (
        probabilities if probabilities.width == 1 else nodes.Normalized(probabilities)
    )


def largest(logits):
    """Return the key that tells the predicted class."""
    return (
        nodes.Place(_log_odds(logits), np.zeros(1))
        if logits.width == 2
        else nodes.Largest(logits)
    )


def _log_odds(logits):
    """Return the difference of two logits, as few nodes as there can be."""
    base, matrix, constants = linear_form(logits)
    (slopes,), (constant,) = np.diff(matrix, axis=0), np.diff(constants)
    if len(slopes) > 1:
        return nodes.Affine(base, slopes[None], np.array([constant]))
    return (
        base
        if (slopes[0], constant) == (1, 0)
        else nodes.Scaled(base, float(slopes[0]), float(constant))
    )


def linear_form(node):
    """Return (base, matrix, constants): a node as ``matrix @ base + constants``, of a base that is not linear."""
    width = node.width
    if not isinstance(node, nodes.Scaled | nodes.Affine | nodes.Centred):
        return node, np.eye(width), np.zeros(width)
    base, matrix, constants = linear_form(node.of)
    if isinstance(node, nodes.Centred):
        own, added = np.eye(width) - 1 / width, np.zeros(width)
    elif isinstance(node, nodes.Affine):
        own, added = node.coef, node.intercept
    else:
        own, added = (
            np.diag(np.broadcast_to(node.slope, width)),
            np.broadcast_to(node.intercept, width),
        )
    return base, own @ matrix, own @ constants + added
