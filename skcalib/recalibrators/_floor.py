"""The learned floor: probabilities are lifted off 0 and 1 where the likelihood pays for it."""

import numpy as np
from scipy.special import expit, log_expit, softmax

from skcalib._rows.blocks import row_blocks
from skcalib._rows.links import PROBABILITY_CLIP, log_odds, log_probability
from skcalib._solvers.inverse_temperature import fit_inverse_temperature
from skcalib._solvers.newton import minimise_convex

# Floors that are tried beside 0; K times the floor stays within the limit. A larger floor must gain this many nats of
# log-likelihood, summed over the rows.
_CANDIDATES = (1e-5, 1e-3, 0.01, 0.03)
_LARGEST_TOTAL = 0.3
_LEAST_GAIN = 1.0
# Inverse temperatures are sought within these multiples of 1 / (largest spread of a row of logits).
_RELATIVE_BOUNDS = (1e-6, 1e6)
# The last Newton step, relative to the inverse temperature: what it leaves of the likelihood is far below a nat.
_TOLERANCE = 1e-2
# A Newton step, relative to the inverse temperature, that is about as good as it promises.
_SHORT_STEP = 0.3
_SMALLEST_LOGARITHM = -80.0  # of a probability above 0 in single precision
# The margins of two classes are put into cells of this width, and further out of a width relative to the margin.
_CELL_WIDTH, _RELATIVE_CELL_WIDTH = 0.05, 0.005
_FAR = 40.0


def floored(scores, floor, input):
    """Return scores whose probabilities are ``(1 - K * floor) * p + floor``, on the scale of `input`.

    The floor is above 0. The map is strictly increasing.
    """
    if input == "logit" and scores.shape[1] == 1:
        return _floored_log_odds(scores.astype(np.float64), floor)
    n_classes, out = max(scores.shape[1], 2), np.empty(scores.shape)
    for rows in row_blocks(*scores.shape):
        block = scores[rows].astype(np.float64)
        block = block if input == "probability" else softmax(block, axis=1)
        block *= 1 - n_classes * floor
        block += floor
        out[rows] = block if input == "probability" else np.log(block, out=block)
    return out


def learned_floor(scores, codes, sample_weight, input):
    """Return the floor that temperature scaling asks for.

    Temperature scaling is fitted to the scores above each candidate, the smallest first. A candidate is taken if its
    log-likelihood exceeds the best so far by more than 1 nat.

    Parameters
    ----------
    scores : ndarray of shape (n, 1) or (n, K)
        Scores.
    codes : ndarray of int, shape (n,)
        Class of each row.
    sample_weight : ndarray of shape (n,) or None
        Weights.
    input : {"probability", "logit"}
        What the scores are.

    Returns
    -------
    floor : float
        From {0, 1e-5, .001, .01, .03}; K times the floor is at most .3.
    inverse_temperature : float or None
        That of the scores as they are, for K > 2 classes and a floor of 0.
    """
    n_classes = max(scores.shape[1], 2)
    floors = [0.0, *(floor for floor in _CANDIDATES if n_classes * floor <= _LARGEST_TOTAL)]
    if n_classes == 2:
        inverse, likelihoods = None, _two_class_likelihoods(floors, scores, codes, sample_weight, input)
    else:
        logits = scores if input == "logit" else log_probability(scores)
        inverse = fit_inverse_temperature(logits, codes, sample_weight)
        likelihoods = _likelihoods(floors[1:], inverse, logits, codes, sample_weight)
    best = 0
    for candidate, likelihood in enumerate(likelihoods):
        if likelihood > likelihoods[best] + _LEAST_GAIN:
            best = candidate
    return floors[best], inverse if best == 0 else None


def _floored_log_odds(log_odds, floor):
    slope = 1 - 2 * floor
    return np.log(slope * expit(log_odds) + floor) - np.log(slope * expit(-log_odds) + floor)


def _two_class_likelihoods(floors, scores, codes, sample_weight, input):
    """Return the log-likelihood of temperature scaling above each floor, from a histogram of the margins.

    The margin is the log-odds of the true class. A floor maps it like the log-odds of any other.
    """
    margin, weight = _margins(scores, codes, sample_weight, input)
    margins = np.stack([margin, *(_floored_log_odds(margin, floor) for floor in floors[1:])])
    spread = np.abs(margins).max(axis=1, keepdims=True)
    margins /= np.where(spread > 0, spread, 1)  # squares of large ones would overflow

    def derivatives(inverse):
        other = expit(-inverse[:, None] * margins)
        slope = other * margins
        return -slope @ weight, (slope * margins * (1 - other)) @ weight

    inverse = minimise_convex(derivatives, spread[:, 0], _RELATIVE_BOUNDS, _TOLERANCE)
    return log_expit(inverse[:, None] * margins) @ weight


def _margins(scores, codes, sample_weight, input):
    """Return the mean margin and the weight of each cell that holds rows."""
    n_side = int(_position(np.array([_largest_log_odds(scores, input)]))[0]) + 1
    weight, total = np.zeros(2 * n_side + 1), np.zeros(2 * n_side + 1)
    for rows in row_blocks(len(scores)):
        margin = _log_odds(scores[rows], input)
        margin *= 2.0 * codes[rows] - 1
        cell = np.rint(_position(margin)).astype(np.intp)
        cell += n_side
        row_weight = None if sample_weight is None else sample_weight[rows]
        weight += np.bincount(cell, row_weight, len(weight))
        total += np.bincount(cell, margin if row_weight is None else margin * row_weight, len(weight))
    held = np.flatnonzero(weight)
    return total[held] / weight[held], weight[held]


def _log_odds(scores, input):
    if input == "probability":
        return log_odds(scores[:, -1], scores[:, 0] if scores.shape[1] == 2 else None)
    return np.subtract(scores[:, -1], scores[:, 0] if scores.shape[1] == 2 else 0, dtype=np.float64)


def _largest_log_odds(scores, input):
    if input == "probability":
        return -np.log(PROBABILITY_CLIP)
    return max(np.abs(_log_odds(scores[rows], input)).max() for rows in row_blocks(len(scores)))


def _position(margin):
    """Return the number of cells between 0 and each margin: their width is constant, and relative further out."""
    position = margin / _CELL_WIDTH
    far = np.abs(margin) > _FAR
    if far.any():
        cells = _FAR / _CELL_WIDTH + np.log(np.abs(margin[far]) / _FAR) / _RELATIVE_CELL_WIDTH
        position[far] = np.copysign(cells, margin[far])
    return position


def _likelihoods(floors, inverse, logits, codes, sample_weight):
    """Return the log-likelihood of temperature scaling at `inverse`, and at the best one above each floor.

    Above a floor that cannot win it is the likelihood near the best inverse temperature of the floor before.
    """
    weight = np.ones(len(codes)) if sample_weight is None else sample_weight
    blocks = [_Rows(logits[rows], codes[rows], weight[rows], inverse) for rows in row_blocks(*logits.shape)]
    likelihoods = [sum(block.likelihood for block in blocks)]
    evaluated = inverse, 0.0, 0.0, 0.0

    def derivatives(at):
        nonlocal evaluated
        evaluated = float(at[0]), *np.sum([block.derivatives(at[0]) for block in blocks], axis=0)
        return np.array(evaluated[2:3]), np.array(evaluated[3:])

    for floor in floors:
        spread = max(block.lift(floor) for block in blocks)
        bounds = tuple(bound / spread for bound in _RELATIVE_BOUNDS) if spread > 0 else (1.0, 1.0)
        found = start = np.clip(np.array([inverse]), *bounds)
        slope, curvature = derivatives(start)
        # Newton's step gains slope^2 / (2 curvature), if it is short: twice that is more than can be gained.
        step = slope / curvature if curvature > 0 else np.array([np.inf])
        if abs(step) > _SHORT_STEP * start or evaluated[1] + slope * step > max(likelihoods) + _LEAST_GAIN:
            found = minimise_convex(derivatives, np.maximum(start - step, start / 10), bounds, _TOLERANCE)
            inverse = float(found[0])
        at, likelihood, slope, curvature = evaluated
        step = float(found[0]) - at
        likelihoods.append(likelihood - slope * step - 0.5 * curvature * step**2)
    return likelihoods


class _Rows:
    """A block of rows: its probabilities, and their logarithms above a floor, in single precision (K, n).

    `likelihood` is the log-likelihood of temperature scaling without a floor.
    """

    def __init__(self, logits, codes, weight, inverse):
        self.label, self.weight = (codes, np.arange(len(codes))), weight
        self.ones = np.ones(logits.shape[1], np.float32)
        z = np.subtract(logits.T, logits.max(axis=1), order="C", dtype=np.result_type(logits, np.float32))
        self.probability = np.exp(np.maximum(z, _SMALLEST_LOGARITHM), dtype=np.float32, casting="same_kind")
        self.probability /= self.ones @ self.probability
        z *= inverse
        true = z[self.label]
        odds = np.exp(np.maximum(z, _SMALLEST_LOGARITHM), dtype=np.float32, casting="same_kind")
        self.likelihood = float(weight @ (true - np.log(self.ones @ odds)))

    def lift(self, floor):
        """Set the logarithms and return their largest spread in a row."""
        self.table = self.probability * np.float32(1 - len(self.ones) * floor)
        self.table += np.float32(floor)
        np.log(self.table, out=self.table)
        self.table -= self.table.max(axis=0)
        self.true = self.table[self.label]
        return float(-self.table.min())

    def derivatives(self, inverse):
        """Return the log-likelihood at an inverse temperature and the first two derivatives of its negative."""
        inverse = np.float32(inverse)
        odds = inverse * self.table
        np.exp(odds, out=odds)
        total = self.ones @ odds
        odds *= self.table
        mean = self.ones @ odds
        mean /= total
        odds *= self.table
        square = self.ones @ odds
        square /= total
        likelihood = self.weight @ (inverse * self.true - np.log(total))
        return likelihood, self.weight @ (mean - self.true), self.weight @ np.maximum(square - mean**2, 0)
