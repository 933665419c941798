"""The score that belongs to a calibrated probability, for increasing maps of two
classes.
"""

import numpy as np
from scipy.special import expit

from skcalib._input.classes import in_fitted_order
from skcalib._input.limits import MAX_MAGNITUDE
from skcalib._input.scores import check_scores
from skcalib._rows.links import LARGEST_GAP
from skcalib.maps._calibration_map import calibration_map, has_map
from skcalib.maps._choices import Place
from skcalib.maps._node import nodes_below
from skcalib.maps._value_functions import Pieces

_GRID = 1 << 10  # intervals of the even grids of scores, and of log-odds
_FALL = 1e-12  # a fall of the probability up to this size is rounding
_WAY_OUT = "Compare the calibrated probabilities with the threshold instead."


def _probability(recalibrator, scores):
    """Return the calibrated probability of the second class (n,) for scores (n,): its
    probabilities, or log-odds if the recalibrator takes logits.
    """
    columns = scores
    if recalibrator.n_features_in_ == 2:
        # The recalibrator needs a column for the first class, too.
        first = 1 - scores
        if recalibrator.input == "logit":
            first = np.zeros(len(scores))
        columns = np.column_stack((first, scores))
    return recalibrator.predict_proba(columns)[:, 1]


def smallest_scores(recalibrator, probabilities):
    """Return the smallest scores whose calibrated probabilities reach those given; see
    `inverse_transform`.

    Parameters
    ----------
    recalibrator : recalibrator
        A fitted recalibrator for two classes, with an increasing map.
    probabilities : array-like of shape (n,), (n, 1) or (n, 2)
        Calibrated probabilities; the last column is that of the positive class.

    Returns
    -------
    scores : ndarray of shape (n,)
        The positive class's scores: probabilities, or log-odds if the recalibrator
        takes logits. The score is 0 or -inf if the lowest score reaches the
        probability.

    Raises
    ------
    ValueError
        If the map decreases somewhere or is constant, or if no score reaches a
        probability.
    """
    name = type(recalibrator).__name__
    if len(recalibrator.classes_) != 2:
        raise ValueError(
            f"{name} was fitted to {len(recalibrator.classes_)} classes: only a map of"
            " one score can be inverted."
        )
    if getattr(recalibrator, "features", None) is not None:
        raise ValueError(
            f"{name}(features=...) gives the same score different probabilities for"
            " different features, so no unique score leads to a probability."
            f" {_WAY_OUT}"
        )
    if getattr(recalibrator, "randomize", False):
        raise ValueError(
            f"{name} breaks ties at random: a probability has no unique score."
            f" {_WAY_OUT}"
        )
    wanted = check_scores(in_fitted_order(recalibrator, probabilities), name="X")
    if wanted.shape[1] > 2:
        raise ValueError(
            f"X must have one or two columns of probabilities, found {wanted.shape[1]}."
        )
    wanted = wanted[:, -1].astype(np.float64)

    def predict(scores):
        """Return the calibrated probabilities (n,) of scores (n,)."""
        return _probability(recalibrator, scores)

    # 1. The map on a grid: it must rise somewhere and fall nowhere.
    grid = _grid(recalibrator)
    values = _increasing_values(predict(grid), grid, name)
    is_above = wanted > values[-1]
    if is_above.any():
        row = np.argmax(is_above)
        raise ValueError(
            f"No score reaches the probability {wanted[row]:.6g} of X in row {row}: the"
            f" largest that {name} gives is {values[-1]:.6g}."
        )
    # 2. Bisection between two neighbouring points of the grid, of which the upper one
    # is the first to reach the probability. It ends at neighbouring float64 numbers, so
    # that the steps of bins are met exactly, and runs on their ranks: integers in the
    # order of the numbers, of which neighbours differ by 1.
    end = np.searchsorted(values, wanted, side="left")
    start = np.maximum(end - 1, 0)
    low = _rank(grid[start])
    high = _rank(grid[end])
    while np.any(high - low > 1):
        # (low + high) // 2, without the sum, which may overflow an int64
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        is_reached = predict(_score(middle)) >= wanted
        low = np.where(is_reached, low, middle)
        high = np.where(is_reached, middle, high)
    # 3. If the lowest score of the grid reaches the probability, each score does.
    lowest = 0.0 if recalibrator.input == "probability" else -np.inf
    return np.where(end == 0, lowest, _score(high))


def _increasing_values(values, grid, name):
    """Return the probabilities (n_grid,) of increasing scores, with falls by rounding
    removed. Raise a ValueError, with the recalibrator's `name`, if they fall, or are
    all equal.
    """
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
            f"The map of {name} is constant: every score has the probability"
            f" {values[0]:.6g}."
        )
    return values


def _grid(recalibrator):
    """Return increasing scores at which to evaluate a fitted recalibrator's map: about
    2,000 over its range, and those at its knots, each with its two neighbours in
    float64.
    """
    # Log-odds of 36 are the probability 1 - 2^-52.
    log_odds = np.linspace(-36, 36, _GRID + 1)
    knots = [[0.0]]  # log-odds of 0, in the middle; also for a map without knots
    if has_map(type(recalibrator)):
        # The cuts of other values than scores only make the grid larger.
        for node in nodes_below(calibration_map(recalibrator).output):
            if isinstance(node, Pieces | Place):
                knots.append(node.cuts)
    knots = np.concatenate(knots)
    if recalibrator.input == "logit":
        low = -MAX_MAGNITUDE
        high = MAX_MAGNITUDE
        # A class is impossible if its logit is this far below that of the other.
        gaps = [-LARGEST_GAP, LARGEST_GAP]
        places = [log_odds, knots, gaps, [low, high]]
    else:
        low = 0
        high = 1
        even = np.linspace(0, 1, _GRID + 1)
        # It is not known whether a knot is a probability or a log-odds: it is taken for
        # either, since a score too many does no harm.
        places = [even, expit(log_odds), knots, expit(knots), [low, high]]
    scores = np.concatenate(places)
    scores = np.concatenate(
        (scores, np.nextafter(scores, np.inf), np.nextafter(scores, -np.inf))
    )
    return np.unique(np.clip(scores, low, high))


def _rank(scores):
    """Return float64 numbers as int64 ranks in the same order, neighbours 1 apart. The
    bits of negative floats are in reverse order.
    """
    bits = (scores + 0.0).view(np.int64)  # -0.0 becomes 0.0
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _score(rank):
    """Return the float64 numbers (n,) of ranks: the inverse of `_rank`."""
    bits = np.where(rank < 0, np.iinfo(np.int64).min - rank, rank)
    return bits.view(np.float64)
