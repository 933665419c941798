"""The score that belongs to a calibrated probability, for increasing maps of two
classes.
"""

import numpy as np
from scipy.special import expit

from skcalib._input.scores import MAX_MAGNITUDE, check_scores
from skcalib.maps._calibration_map import calibration_map, has_map
from skcalib.maps._nodes import Node, Pieces, Place

_GRID = 1 << 10  # scores, and log-odds, at which the map must not fall
_FALL = 1e-12  # of a probability, by rounding
_WAY_OUT = "Compare the calibrated probabilities with the threshold instead."


def _probability(recalibrator, scores):
    """Return the calibrated probability of the second class, for its scores (n,)."""
    columns = scores
    if recalibrator.n_features_in_ == 2:
        first = 1 - scores
        if recalibrator.input == "logit":
            first = np.zeros(len(scores))
        columns = np.column_stack((first, scores))
    return recalibrator.predict_proba(columns)[:, 1]


def smallest_scores(recalibrator, probabilities):
    """Return the smallest scores (n,) whose calibrated probabilities reach those given;
    see `inverse_transform`.
    """
    name = type(recalibrator).__name__
    if len(recalibrator.classes_) != 2:
        raise ValueError(
            f"{name} was fitted to {len(recalibrator.classes_)} classes: only one score"
            " can be inverted."
        )
    if getattr(recalibrator, "randomize", False):
        raise ValueError(
            f"{name} breaks ties at random: no score belongs to a probability."
            f" {_WAY_OUT}"
        )
    wanted = check_scores(probabilities, name="X")
    if wanted.shape[1] > 2:
        raise ValueError(
            f"X must have one or two columns of probabilities, found {wanted.shape[1]}."
        )
    wanted = wanted[:, -1].astype(np.float64)

    def predict(scores):
        return _probability(recalibrator, scores)

    # 1. The map on a grid: it must rise somewhere and fall nowhere.
    grid = _grid(recalibrator)
    values = predict(grid)
    falls = np.diff(values) < -_FALL
    if falls.any():
        at = np.argmax(falls)
        raise ValueError(
            f"The map of {name} is not increasing: from the score {grid[at]:.6g} to"
            f" {grid[at + 1]:.6g} the probability falls from {values[at]:.6g} to"
            f" {values[at + 1]:.6g}. {_WAY_OUT}"
        )
    values = np.maximum.accumulate(values)
    if values[0] == values[-1]:
        raise ValueError(
            f"The map of {name} is flat: each score has the probability"
            f" {values[0]:.6g}."
        )
    is_above = wanted > values[-1]
    if is_above.any():
        row = np.argmax(is_above)
        raise ValueError(
            f"No score reaches the probability {wanted[row]:.6g} of X in row {row}: the"
            f" largest that {name} gives is {values[-1]:.6g}."
        )
    # 2. Bisection between two points of the grid, down to neighbours in float64, so
    # that the steps of bins are met exactly.
    end = np.searchsorted(values, wanted, side="left")
    low = _rank(grid[np.maximum(end - 1, 0)])
    high = _rank(grid[end])
    while np.any(high - low > 1):
        middle = (low >> 1) + (high >> 1) + (low & high & 1)  # cannot overflow
        is_reached = predict(_score(middle)) >= wanted
        low = np.where(is_reached, low, middle)
        high = np.where(is_reached, middle, high)
    # 3. Where the lowest score reaches the probability already, each score does.
    lowest = 0.0 if recalibrator.input == "probability" else -np.inf
    return np.where(end == 0, lowest, _score(high))


def _grid(recalibrator):
    """Return increasing scores at which the map is looked at: all over its range, and
    on both sides of its knots.
    """
    log_odds = np.linspace(-36, 36, _GRID + 1)
    knots = []
    if has_map(type(recalibrator)):
        knots = list(_knots(calibration_map(recalibrator).output))
    knots = np.concatenate([*knots, [0.0]])
    if recalibrator.input == "logit":
        low = -MAX_MAGNITUDE
        high = MAX_MAGNITUDE
        places = [log_odds, knots, [low, -700, 700, high]]
    else:
        low = 0
        high = 1
        even = np.linspace(0, 1, _GRID + 1)
        places = [even, expit(log_odds), knots, expit(knots), [low, high]]
    scores = np.concatenate(places)
    scores = np.concatenate(
        (scores, np.nextafter(scores, np.inf), np.nextafter(scores, -np.inf))
    )
    return np.unique(np.clip(scores, low, high))


def _knots(node):
    """Yield the cuts of all pieces of a map, which most are of scores or log-odds."""
    if isinstance(node, Pieces | Place):
        yield node.cuts
    if isinstance(node, Node):
        inside = vars(node).values()
    elif isinstance(node, tuple):
        inside = node
    else:
        return
    for part in inside:
        yield from _knots(part)


def _rank(scores):
    """Return integers in the order of float64 numbers, neighbours next to each
    other.
    """
    bits = (scores + 0.0).view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _score(rank):
    return np.where(rank < 0, np.iinfo(np.int64).min - rank, rank).view(np.float64)
