"""Forms that several methods share, made of nodes.

Forms of logits take those of K classes, or two logits for two classes, which may be
(0, z) for log-odds z. For two classes they give one value: that of the second class.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

import skcalib.maps._nodes as nodes
from skcalib._rows.links import PROBABILITY_CLIP


def clipped_probability(node: nodes.Node) -> nodes.Clip:
    """Return probabilities clipped to [2^-52, 1 - 2^-52].

    Parameters
    ----------
    node : Node
        The probabilities.

    Returns
    -------
    node : Clip
        The same node if its values already lie there.

    See Also
    --------
    skcalib.maps.Clip : Other limits.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores, clipped_probability
    >>> float(Rows([[0.0]])(clipped_probability(Scores()))[0, 0]) == 2**-52
    True
    """
    if isinstance(node, nodes.Clip) and node.low >= PROBABILITY_CLIP:
        return node
    return nodes.Clip(node, PROBABILITY_CLIP, 1 - PROBABILITY_CLIP)


def piecewise_polynomial(
    score: nodes.Node,
    cuts: ArrayLike,
    origins: ArrayLike,
    coefficients: Sequence[ArrayLike],
) -> nodes.Pieces:
    """Return continuous pieces with different numbers of coefficients.

    Parameters
    ----------
    score : Node
        One value.
    cuts : array-like of shape (n_pieces - 1,)
        Where pieces meet, strictly increasing.
    origins : array-like of shape (n_pieces,)
        Where each polynomial has its origin.
    coefficients : sequence of n_pieces array-likes
        Coefficients of each piece, starting with the constant.

    Returns
    -------
    node : Pieces
        The pieces.

    Raises
    ------
    ValueError
        If cuts do not increase or lengths do not match.

    See Also
    --------
    skcalib.maps.step_function : Pieces that are constant.

    Examples
    --------
    0 below 0, and the square above:

    >>> from skcalib.maps import Rows, Scores, piecewise_polynomial
    >>> hinge = piecewise_polynomial(
    ...     Scores(), [0.0], [0.0, 0.0], [[0.0], [0.0, 0.0, 1.0]]
    ... )
    >>> Rows([[-1.0], [3.0]])(hinge).tolist()
    [[0.0], [9.0]]
    """
    table = np.zeros((len(coefficients), max(map(len, coefficients))))
    for row, coefficients_of_piece in zip(table, coefficients, strict=True):
        row[: len(coefficients_of_piece)] = coefficients_of_piece
    cuts = np.asarray(cuts, dtype=np.float64)
    origins = np.asarray(origins, dtype=np.float64)
    return nodes.Pieces(score, cuts, origins, table, continuous=True)


def step_function(
    score: nodes.Node, cuts: ArrayLike, values: ArrayLike
) -> nodes.Pieces:
    """Return a step function without redundant steps.

    Steps that no score reaches, and steps equal to the previous one, are omitted.

    Parameters
    ----------
    score : Node
        One value.
    cuts : array-like of shape (n_steps - 1,)
        Where steps meet, increasing. A score at a cut belongs to the step below it.
    values : array-like of shape (n_steps,)
        The heights.

    Returns
    -------
    node : Pieces
        The steps.

    Raises
    ------
    ValueError
        If cuts are not in order, or the number of values is not one more than the
        number of cuts.

    See Also
    --------
    skcalib.maps.just_below : For cuts that belong to the step above.

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
        raise ValueError("steps need cuts in order, and one value more than cuts")
    if len(cuts):
        # between two equal cuts there is no score
        is_reached = np.concatenate(([True], np.diff(cuts) > 0, [True]))
        values = values[is_reached]
        cuts = np.unique(cuts)
    is_step = np.diff(values) != 0
    values = values[np.append(True, is_step)]
    return nodes.Pieces(score, cuts[is_step], np.zeros(len(values)), values[:, None])


def with_cuts(node, moved):
    """Return a map of one score with other cuts, given as a function of the cuts.

    Cuts of continuous pieces stay, and so do those of random numbers.
    """
    if isinstance(node, nodes.Pieces):
        if node.continuous or isinstance(node.of, nodes.RowKey):
            return node
        cuts = moved(node.cuts)
        # Two cuts may become one; the piece between them is empty then.
        first = np.append(True, np.diff(cuts) > 0)[: len(cuts)]
        taken = np.append(first, True)
        return nodes.Pieces(
            node.of, cuts[first], node.origins[taken], node.coefficients[taken]
        )
    if isinstance(node, nodes.Choice) and isinstance(node.key, nodes.Place):
        cuts = moved(node.key.cuts)
        first = np.append(True, np.diff(cuts) > 0)[: len(cuts)]
        taken = np.flatnonzero(np.append(first, True))
        cases = [node.cases[number] for number in taken]
        return nodes.Choice(nodes.Place(node.key.of, cuts[first]), tuple(cases))
    return node


def just_below(cuts: ArrayLike) -> np.ndarray:
    """Return the floats just below cuts.

    A cut that belongs to the step above it is written as one that belongs to the step
    below it.

    Parameters
    ----------
    cuts : array-like of shape (n,)
        The cuts.

    Returns
    -------
    cuts : ndarray of float64, shape (n,)
        The next smaller floats.

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


def two_logits(log_odds: nodes.Node) -> nodes.Affine:
    """Return log-odds as the logits of two classes.

    Parameters
    ----------
    log_odds : Node
        One value z.

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
    skcalib.maps.class_probabilities : From logits to probabilities.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores, two_logits
    >>> Rows([[1.5]])(two_logits(Scores())).tolist()
    [[0.0, 1.5]]
    """
    return nodes.Affine(log_odds, np.array([[0.0], [1.0]]), np.zeros(2))


def class_probabilities(logits: nodes.Node, clip: bool = True) -> nodes.Node:
    """Return the softmax of logits; for two classes, the probability of the second.

    Parameters
    ----------
    logits : Node
        Logits of all classes.
    clip : bool, default=True
        Whether probabilities are clipped to [2^-52, 1 - 2^-52], as all scaling methods
        do.

    Returns
    -------
    probabilities : Node
        K values, or one for two classes.

    See Also
    --------
    skcalib.maps.Softmax : The node for K classes.
    skcalib.maps.Expit : The node for two.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores, class_probabilities, two_logits
    >>> Rows([[0.0]])(class_probabilities(two_logits(Scores()))).tolist()
    [[0.5]]
    """
    if logits.width > 2:
        return nodes.Softmax(logits, clip)
    log_odds = _log_odds(logits)
    if isinstance(log_odds, nodes.LogOdds):
        # the probabilities that the log-odds were made of
        return clipped_probability(log_odds.of)
    return nodes.Expit(log_odds, clip)


def log_probabilities(logits: nodes.Node) -> nodes.Node:
    """Return the logarithms of the probabilities whose logits are given.

    Parameters
    ----------
    logits : Node
        Logits of all classes.

    Returns
    -------
    log_probabilities : Node
        Logarithms of the probabilities of all classes, even for two.

    See Also
    --------
    skcalib.maps.LogNormalized : The node for K classes.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores, log_probabilities, two_logits
    >>> Rows([[0.0]])(log_probabilities(two_logits(Scores()))).round(6).tolist()
    [[-0.693147, -0.693147]]
    """
    if logits.width > 2:
        return nodes.LogNormalized(logits)
    # `LogSides` gives log(p) and -log(1 - p) of the second class.
    signs = np.array([[0.0, -1.0], [1.0, 0.0]])
    return nodes.Affine(nodes.LogSides(_log_odds(logits)), signs, np.zeros(2))


def normalized_rows(probabilities: nodes.Node) -> nodes.Node:
    """Return normalised rows; a single probability of two classes is unchanged.

    Parameters
    ----------
    probabilities : Node
        One value for two classes, else K.

    Returns
    -------
    probabilities : Node
        The same number of values.

    See Also
    --------
    skcalib.maps.Normalized : The node for K classes.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores, normalized_rows
    >>> Rows([[0.5, 1.0, 0.5]])(normalized_rows(Scores(3))).tolist()
    [[0.25, 0.5, 0.25]]
    """
    if probabilities.width == 1:
        return probabilities
    return nodes.Normalized(probabilities)


def predicted_class(logits: nodes.Node) -> nodes.Largest | nodes.Place:
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
    skcalib.maps.Choice : One of several nodes, by a key.

    Examples
    --------
    >>> from skcalib.maps import Rows, Scores, predicted_class, two_logits
    >>> predicted_class(two_logits(Scores())).number(
    ...     Rows([[-1.0], [0.0], [1.0]])
    ... ).tolist()
    [0, 0, 1]
    """
    if logits.width == 2:
        return nodes.Place(_log_odds(logits), np.zeros(1))
    return nodes.Largest(logits)


def _log_odds(logits):
    """Return the difference of two logits, in as few nodes as possible."""
    base, matrix, constants = linear_form(logits)
    (slopes,) = np.diff(matrix, axis=0)
    (constant,) = np.diff(constants)
    if len(slopes) > 1:
        return nodes.Affine(base, slopes[None], np.array([constant]))
    if slopes[0] == 1 and constant == 0:
        return base
    return nodes.Scaled(base, float(slopes[0]), float(constant))


def linear_form(node: nodes.Node) -> tuple[nodes.Node, np.ndarray, np.ndarray]:
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
        The product of their matrices.
    constants : ndarray of shape (width,)
        The constants they add.

    See Also
    --------
    skcalib.maps.Affine : One linear node.

    Examples
    --------
    >>> from skcalib.maps import Scaled, Scores, linear_form
    >>> base, matrix, constants = linear_form(Scaled(Scaled(Scores(), 2.0, 1.0), 3.0))
    >>> base, matrix.tolist(), constants.tolist()
    (Scores(width=1), [[6.0]], [3.0])
    """
    width = node.width
    is_linear = isinstance(node, nodes.Scaled | nodes.Affine | nodes.Centred)
    # The mean of the possible classes depends on which they are.
    if not is_linear or getattr(node, "possible", False):
        return node, np.eye(width), np.zeros(width)
    base, matrix, constants = linear_form(node.of)
    if isinstance(node, nodes.Centred):
        coef = np.eye(width) - 1 / width
        intercept = np.zeros(width)
    elif isinstance(node, nodes.Affine):
        coef = node.coef
        intercept = node.intercept
    else:
        coef = np.diag(np.broadcast_to(node.slope, width))
        intercept = np.broadcast_to(node.intercept, width)
    return base, coef @ matrix, coef @ constants + intercept
