"""The score that belongs to a calibrated probability, for increasing maps of two classes."""

import numpy as np
from scipy.special import expit

from skcalib._input.scores import MAX_MAGNITUDE, check_scores
from skcalib.recalibrators._map_forms import calibration_map, has_map
from skcalib.recalibrators._maps import Node, Pieces, Place

_GRID = 1 << 10  # scores, and log-odds, at which the map must not fall
_FALL = 1e-12  # of a probability, by rounding
_WAY_OUT = "Compare the calibrated probabilities with the threshold instead."


def smallest_scores(recalibrator, probabilities):
    """Return the smallest scores (n,) whose calibrated probabilities reach those given; see `inverse_transform`."""
    name = type(recalibrator).__name__
    if len(recalibrator.classes_) != 2:
        raise ValueError(
            f"{name} was fitted to {len(recalibrator.classes_)} classes: only one score can be inverted."
        )
    if getattr(recalibrator, "randomize", False):
        raise ValueError(
            f"{name} breaks ties at random: no score belongs to a probability. {_WAY_OUT}"
        )
    wanted = check_scores(probabilities, name="X")
    if wanted.shape[1] > 2:
        raise ValueError(
            f"X must have one or two columns of probabilities, found {wanted.shape[1]}."
        )
    wanted = wanted[:, -1].astype(np.float64)

    def predict(scores):
        if recalibrator.n_features_in_ == 2:
            rest = (
                np.zeros(len(scores)) if recalibrator.input == "logit" else 1 - scores
            )
            scores = np.column_stack((rest, scores))
        return recalibrator.predict_proba(scores)[:, 1]

    grid = _grid(recalibrator)
    values = predict(grid)
    if np.any(fall := np.diff(values) < -_FALL):
        at = np.argmax(fall)
        raise ValueError(
            f"The map of {name} is not increasing: from the score {grid[at]:.6g} to {grid[at + 1]:.6g} the probability "
            f"falls from {values[at]:.6g} to {values[at + 1]:.6g}. {_WAY_OUT}"
        )
    values = np.maximum.accumulate(values)
    if values[0] == values[-1]:
        raise ValueError(
            f"The map of {name} is flat: each score has the probability {values[0]:.6g}."
        )
    if np.any(above := wanted > values[-1]):
        row = np.argmax(above)
        raise ValueError(
            f"No score reaches the probability {wanted[row]:.6g} of X in row {row}: the largest that {name} gives is "
            f"{values[-1]:.6g}."
        )
    end = np.searchsorted(values, wanted, side="left")
    low, high = _rank(grid[np.maximum(end - 1, 0)]), _rank(grid[end])
    while np.any(
        high - low > 1
    ):  # of neighbours in float64, so that the steps of bins are met exactly
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        reached = predict(_score(middle)) >= wanted
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return np.where(
        end == 0, 0.0 if recalibrator.input == "probability" else -np.inf, _score(high)
    )


def _grid(recalibrator):
    """Return increasing scores at which the map is looked at: all over its range, and on both sides of its knots."""
    line, is_logit = np.linspace(-36, 36, _GRID + 1), recalibrator.input == "logit"
    knots = (
        list(_knots(calibration_map(recalibrator).output))
        if has_map(type(recalibrator))
        else []
    )
    knots = np.concatenate([*knots, [0.0]])
    if is_logit:
        parts = [line, knots, [-MAX_MAGNITUDE, -700, 700, MAX_MAGNITUDE]]
    else:
        parts = [np.linspace(0, 1, _GRID + 1), expit(line), knots, expit(knots), [0, 1]]
    scores = np.concatenate(parts)
    scores = np.concatenate(
        (scores, np.nextafter(scores, np.inf), np.nextafter(scores, -np.inf))
    )
    ends = (-MAX_MAGNITUDE, MAX_MAGNITUDE) if is_logit else (0, 1)
    return np.unique(np.clip(scores, *ends))


def _knots(node):
    """Yield the cuts of all pieces of a map, which most are of scores or log-odds."""
    if isinstance(node, Pieces | Place):
        yield node.cuts
    parts = list(vars(node).values()) if isinstance(node, Node) else node
    for part in parts if isinstance(parts, list | tuple) else ():
        yield from _knots(part)


def _rank(scores):
    """Return integers in the order of float64 numbers, neighbours next to each other."""
    bits = (scores + 0.0).view(np.int64)
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _score(rank):
    return np.where(rank < 0, np.iinfo(np.int64).min - rank, rank).view(np.float64)
