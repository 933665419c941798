"""Forms that several methods share, made of nodes.

Forms of logits take those of K classes, or two logits for two classes, which may be
(0, z) for log-odds z. For two classes they give one value: that of the second class.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from skcalib._rows.links import PROBABILITY_CLIP
from skcalib.maps._choices import Choice, Largest, Place
from skcalib.maps._class_functions import (
    Affine,
    Centred,
    LogNormalized,
    Normalized,
    Softmax,
)
from skcalib.maps._leaves import RowKey
from skcalib.maps._node import Node
from skcalib.maps._value_functions import Clip, Expit, LogOdds, LogSides, Pieces, Scaled


def clipped_probability(node: Node) -> Clip:
    """Return probabilities clipped to [2^-52, 1 - 2^-52].

    Parameters
    ----------
    node : Node
        The probabilities.

    Returns
    -------
    node : Clip
        The clipped probabilities; the same node if its values are already within these
        limits.

    See Also
    --------
    skcalib.maps.Clip : Clips to other limits.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores, clipped_probability
    >>> float(Rows([[0.0]])(clipped_probability(Scores()))[0, 0]) == 2**-52
    True
    """
    if isinstance(node, Clip) and node.low >= PROBABILITY_CLIP:
        return node
    return Clip(node, PROBABILITY_CLIP, 1 - PROBABILITY_CLIP)


def piecewise_polynomial(
    score: Node,
    cuts: ArrayLike,
    origins: ArrayLike,
    coefficients: Sequence[ArrayLike],
) -> Pieces:
    """Return a continuous piecewise polynomial.

    Parameters
    ----------
    score : Node
        A node with one value.
    cuts : array-like of shape (n_pieces - 1,)
        Points at which the pieces meet, strictly increasing.
    origins : array-like of shape (n_pieces,)
        Origin of each polynomial.
    coefficients : sequence of n_pieces array-likes
        Coefficients of each piece, starting with the constant. Pieces may have
        different numbers of coefficients.

    Returns
    -------
    node : Pieces
        The pieces.

    Raises
    ------
    ValueError
        If the cuts are not strictly increasing or the lengths do not match.

    See Also
    --------
    skcalib.maps.step_function : Constant pieces.

    Examples
    --------
    A function that is 0 for negative values and the square of positive values:

    >>> from skcalib.maps import Rows, Scores, piecewise_polynomial
    >>> hinge = piecewise_polynomial(
    ...     Scores(), [0.0], [0.0, 0.0], [[0.0], [0.0, 0.0, 1.0]]
    ... )
    >>> Rows([[-1.0], [3.0]])(hinge).tolist()
    [[0.0], [9.0]]
    """
    # pieces with fewer coefficients are filled up with zeros: (n_pieces, longest)
    table = np.zeros((len(coefficients), max(map(len, coefficients))))
    for row, coefficients_of_piece in zip(table, coefficients, strict=True):
        row[: len(coefficients_of_piece)] = coefficients_of_piece
    cuts = np.asarray(cuts, dtype=np.float64)
    origins = np.asarray(origins, dtype=np.float64)
    return Pieces(score, cuts, origins, table, continuous=True)


def step_function(score: Node, cuts: ArrayLike, values: ArrayLike) -> Pieces:
    """Return a step function without redundant steps.

    Steps that no score reaches, and steps equal to the previous one, are omitted.

    Parameters
    ----------
    score : Node
        A node with one value.
    cuts : array-like of shape (n_steps - 1,)
        Points at which the steps meet, in increasing order. A score at a cut belongs to
        the step below it.
    values : array-like of shape (n_steps,)
        Height of each step.

    Returns
    -------
    node : Pieces
        The steps.

    Raises
    ------
    ValueError
        If the cuts are not in increasing order, or if the number of values is not the
        number of cuts plus one.

    See Also
    --------
    skcalib.maps.just_below : Converts cuts that belong to the step above.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores, step_function
    >>> bins = step_function(Scores(), [0.2, 0.5], [0.1, 0.1, 0.7])
    >>> bins.cuts.tolist(), Rows([[0.5], [0.6]])(bins).tolist()
    ([0.5], [[0.1], [0.7]])
    """
    cuts = np.asarray(cuts, dtype=np.float64)
    values = np.asarray(values, dtype=np.float64)
    if len(values) != len(cuts) + 1 or (np.diff(cuts) < 0).any():
        raise ValueError("steps need sorted cuts, and one more value than cuts")
    if len(cuts):
        # between two equal cuts there is no score
        is_reached = np.concatenate(([True], np.diff(cuts) > 0, [True]))
        values = values[is_reached]
        cuts = np.unique(cuts)
    # only the cuts at which the value changes are written
    is_jump = np.diff(values) != 0
    values = values[np.append(True, is_jump)]
    # A step is a polynomial of degree 0, a constant, which is the same for any origin.
    origins = np.zeros(len(values))
    return Pieces(score, cuts[is_jump], origins, values[:, None])


def with_cuts(node, move_cuts):
    """Return a step function of scores with its cuts moved.

    Parameters
    ----------
    node : Node
        `Pieces`, or a `Choice` by the `Place` of a score between cuts. Any other node
        is returned as it is, and so are continuous pieces, for which a cut may as well
        stay, and pieces of a `RowKey`, whose cuts are no scores.
    move_cuts : callable
        ``move_cuts(cuts)`` returns the new cuts (n_cuts,) in the same order. Some may
        become equal: the piece between two equal cuts is left out.
    """
    if isinstance(node, Pieces):
        if node.continuous or isinstance(node.of, RowKey):
            return node
        cuts = move_cuts(node.cuts)
        is_kept = _is_not_empty(cuts)
        return Pieces(
            node.of,
            # A piece that is left out takes along the cut at its upper end. The last
            # piece has none.
            cuts[is_kept[:-1]],
            node.origins[is_kept],
            node.coefficients[is_kept],
        )
    if isinstance(node, Choice) and isinstance(node.key, Place):
        cuts = move_cuts(node.key.cuts)
        is_kept = _is_not_empty(cuts)
        cases = [node.cases[number] for number in np.flatnonzero(is_kept)]
        return Choice(Place(node.key.of, cuts[is_kept[:-1]]), tuple(cases))
    return node


def _is_not_empty(cuts):
    """Return a mask (n_cuts + 1,) of the pieces below, between and above increasing
    cuts, false between equal ones.
    """
    is_kept = np.ones(len(cuts) + 1, dtype=bool)
    is_kept[1:-1] = np.diff(cuts) > 0
    return is_kept


def just_below(cuts: ArrayLike) -> np.ndarray:
    """Return the floats just below the cuts.

    A cut that belongs to the step above it is thereby turned into one that belongs to
    the step below it.

    Parameters
    ----------
    cuts : array-like of shape (n,)
        The cuts.

    Returns
    -------
    cuts : ndarray of float64, shape (n,)
        The next smaller float for each cut.

    See Also
    --------
    skcalib.maps.step_function : Steps whose cuts belong to the step below.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores, just_below, step_function
    >>> Rows([[0.5]])(step_function(Scores(), just_below([0.5]), [0.1, 0.7])).tolist()
    [[0.7]]
    """
    return np.nextafter(np.asarray(cuts, dtype=np.float64), -np.inf)


def two_logits(log_odds: Node) -> Affine:
    """Return log-odds as the logits of two classes.

    Parameters
    ----------
    log_odds : Node
        A node with one value z.

    Returns
    -------
    logits : Affine
        The logits (0, z).

    Raises
    ------
    ValueError
        If the node has several values.

    See Also
    --------
    skcalib.maps.class_probabilities : Converts logits to probabilities.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores, two_logits
    >>> Rows([[1.5]])(two_logits(Scores())).tolist()
    [[0.0, 1.5]]
    """
    return Affine(log_odds, np.array([[0.0], [1.0]]), np.zeros(2))


def class_probabilities(logits: Node, clip: bool = True) -> Node:
    """Return the softmax of logits; for two classes, only the second probability.

    Parameters
    ----------
    logits : Node
        Logits of all classes.
    clip : bool, default=True
        Whether probabilities are clipped to [2^-52, 1 - 2^-52], as in all scaling
        methods.

    Returns
    -------
    probabilities : Node
        A node with K values, or with one value for two classes.

    See Also
    --------
    skcalib.maps.Softmax : The corresponding node for K classes.
    skcalib.maps.Expit : The corresponding node for two classes.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores, class_probabilities, two_logits
    >>> Rows([[0.0]])(class_probabilities(two_logits(Scores()))).tolist()
    [[0.5]]
    """
    if logits.width > 2:
        return Softmax(logits, clip)
    log_odds = log_odds_of(logits)
    if isinstance(log_odds, LogOdds):
        # the probabilities that the log-odds were made of
        return clipped_probability(log_odds.of)
    return Expit(log_odds, clip)


def log_probabilities(logits: Node) -> Node:
    """Compute the logarithms of the probabilities from the logits.

    Parameters
    ----------
    logits : Node
        Logits of all classes.

    Returns
    -------
    log_probabilities : Node
        Logarithms of the probabilities of all classes; if there are two classes, of
        both.

    See Also
    --------
    skcalib.maps.LogNormalized : The corresponding node for K classes.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores, log_probabilities, two_logits
    >>> Rows([[0.0]])(log_probabilities(two_logits(Scores()))).round(6).tolist()
    [[-0.693147, -0.693147]]
    """
    if logits.width > 2:
        return LogNormalized(logits)
    # With p the probability of the second class, `LogSides` gives log(p) and
    # -log(1 - p). The result is log(1 - p), minus the second one, and log(p).
    matrix = np.array([[0.0, -1.0], [1.0, 0.0]])
    return Affine(LogSides(log_odds_of(logits)), matrix, np.zeros(2))


def normalized_rows(probabilities: Node) -> Node:
    """Return normalised rows; a single probability of two classes is unchanged.

    Parameters
    ----------
    probabilities : Node
        A node with one value for two classes, otherwise with K values.

    Returns
    -------
    probabilities : Node
        A node with the same number of values.

    See Also
    --------
    skcalib.maps.Normalized : The corresponding node for K classes.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores, normalized_rows
    >>> Rows([[0.5, 1.0, 0.5]])(normalized_rows(Scores(3))).tolist()
    [[0.25, 0.5, 0.25]]
    """
    if probabilities.width == 1:
        return probabilities
    return Normalized(probabilities)


def predicted_class(logits: Node) -> Largest | Place:
    """Return the key of the predicted class.

    Parameters
    ----------
    logits : Node
        Logits of all classes.

    Returns
    -------
    key : Largest or Place
        Key of a `Choice`; a tie goes to the first class.

    See Also
    --------
    skcalib.maps.Choice : Selects one of several nodes by a key.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores, predicted_class, two_logits
    >>> predicted_class(two_logits(Scores())).number(
    ...     Rows([[-1.0], [0.0], [1.0]])
    ... ).tolist()
    [0, 0, 1]
    """
    if logits.width == 2:
        return Place(log_odds_of(logits), np.zeros(1))
    return Largest(logits)


def log_odds_of(logits):
    """Return the second logit minus the first, for a node `logits` of two values.

    Linear nodes that `logits` consists of are merged into one, or into none.
    """
    # logits = matrix @ base + constants
    base, matrix, constants = linear_form(logits)
    (slopes,) = np.diff(matrix, axis=0)  # (width of the base,)
    (constant,) = np.diff(constants)
    if len(slopes) > 1:
        return Affine(base, slopes[None], np.array([constant]))
    if slopes[0] == 1 and constant == 0:
        return base
    return Scaled(base, float(slopes[0]), float(constant))


def linear_form(node: Node) -> tuple[Node, np.ndarray, np.ndarray]:
    """Rewrite a node as ``matrix @ base + constants`` with a base that is not linear.

    Parameters
    ----------
    node : Node
        The node.

    Returns
    -------
    base : Node
        The node to which the linear nodes are applied.
    matrix : ndarray of shape (width, width of the base)
        Product of the matrices of these nodes.
    constants : ndarray of shape (width,)
        Constants that these nodes add.

    See Also
    --------
    skcalib.maps.Affine : A single linear node.

    Examples
    --------
    >>> from skcalib.maps import Scaled, Scores, linear_form
    >>> base, matrix, constants = linear_form(Scaled(Scaled(Scores(), 2.0, 1.0), 3.0))
    >>> base, matrix.tolist(), constants.tolist()
    (Scores(width=1), [[6.0]], [3.0])
    """
    width = node.width
    is_linear = isinstance(node, Scaled | Affine | Centred)
    # `Centred` subtracts a mean, which is not linear if it is over the possible classes
    # of the row.
    if not is_linear or getattr(node, "possible", False):
        return node, np.eye(width), np.zeros(width)
    base, matrix, constants = linear_form(node.of)
    # the node itself is `coef @ values + intercept` of its own input
    if isinstance(node, Centred):
        coef = np.eye(width) - 1 / width
        intercept = np.zeros(width)
    elif isinstance(node, Affine):
        coef = node.coef
        intercept = node.intercept
    else:
        coef = np.diag(np.broadcast_to(node.slope, width))
        intercept = np.broadcast_to(node.intercept, width)
    # coef @ (matrix @ base + constants) + intercept
    return base, coef @ matrix, coef @ constants + intercept
