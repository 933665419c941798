"""Probabilities by the map of a fitted recalibrator, in blocks of rows."""

from operator import is_
from weakref import WeakKeyDictionary

import numpy as np

from skcalib._rows.blocks import row_blocks, taken
from skcalib.maps._calibration_map import with_zero_for_impossible
from skcalib.maps._leaves import Scores
from skcalib.maps._node import Rows
from skcalib.maps._tabulated import tabulated
from skcalib.maps._value_functions import Expit

# Maps each recalibrator that has predicted to the attributes of its map at that time,
# its number of columns, and its map.
_MAPS = WeakKeyDictionary()


def predicted_node(recalibrator, n_columns):
    """Return the map of a fitted recalibrator as a node: the second class's probability
    for two classes, else those of all K, with 0 for impossible classes.

    The map is kept in a cache. It is built again if an attribute of the recalibrator
    has become another object, as after a new fit.
    """
    attributes = recalibrator._map_attributes()
    cached = _MAPS.get(recalibrator)
    if cached is not None:
        cached_attributes, cached_n_columns, node = cached
        is_alike = cached_n_columns == n_columns
        is_alike = is_alike and len(cached_attributes) == len(attributes)
        if is_alike and all(map(is_, cached_attributes, attributes)):
            return node
    node = recalibrator._map_of(Scores(n_columns))
    if recalibrator.input == "logit" and n_columns > 2:
        node = with_zero_for_impossible(node, n_columns)
    _MAPS[recalibrator] = (attributes, n_columns, node)
    return node


def predicted(
    recalibrator,
    scores,
    ids=None,
    *,
    features=None,
    uses_table=False,
    all_possible=False,
):
    """Return the probabilities (n, K) by the map of a fitted recalibrator.

    Parameters
    ----------
    recalibrator : recalibrator
        A fitted recalibrator.
    scores : ndarray of shape (n, C)
        Valid scores.
    ids : ndarray of shape (n,) or None
        Ids of the rows.
    features : ndarray of shape (n, n_features) or None
        Numbers besides the scores, for a map that takes features.
    uses_table : bool, default=False
        Whether the smooth parts of a mixture for two classes are read from a table.
    all_possible : bool, default=False
        Whether no class is impossible in any row; False to look.
    """
    node = predicted_node(recalibrator, scores.shape[1])
    n_classes = len(recalibrator.classes_)
    if uses_table and n_classes == 2:
        node = tabulated(node, recalibrator.input)
    probabilities = np.empty((len(scores), n_classes))
    # Each row is predicted on its own, so blocks of rows change nothing: they keep the
    # memory of intermediate results small.
    for chosen in row_blocks(len(scores), n_classes):
        rows = Rows(
            scores[chosen],
            ids=taken(ids, chosen),
            features=taken(features, chosen),
        )
        rows.is_impossible = None
        if not all_possible:
            rows.is_impossible = recalibrator._impossible_classes(scores[chosen])
        if n_classes > 2:
            probabilities[chosen] = rows(node)
        else:
            complement, probability = probabilities_of_two(node, rows)
            probabilities[chosen, :1] = complement
            probabilities[chosen, 1:] = probability
    return probabilities


def probabilities_of_two(node, rows):
    """Return the probabilities of the first and of the second class, (n, 1) each, by
    the node of the second one.
    """
    if isinstance(node, Expit):
        return node.both(rows(node.of), rows)
    probability = rows(node)
    return 1 - probability, probability
