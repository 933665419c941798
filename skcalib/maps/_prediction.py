"""The map of a fitted recalibrator, kept from one prediction to the next."""

from operator import is_
from weakref import WeakKeyDictionary

from skcalib.maps._calibration_map import with_zero_for_impossible
from skcalib.maps._leaves import Scores
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
    attributes = recalibrator._map_attributes()  # the objects that decide the map
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


def probabilities_of_two(node, rows):
    """Return the probabilities of the first and of the second class, (n, 1) each, by
    the node of the second one.
    """
    if isinstance(node, Expit):
        return node.both(rows(node.of), rows)
    probability = rows(node)
    return 1 - probability, probability
