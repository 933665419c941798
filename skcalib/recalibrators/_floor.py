"""The learned floor: probabilities are lifted off 0 and 1 where the likelihood pays for it."""

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from skcalib._rows.blocks import row_blocks
from skcalib._rows.links import PROBABILITY_CLIP, log_odds, log_probability
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
# The margins of two classes are put into cells of this width, and further out of a width relative to the margin.
_CELL_WIDTH, _RELATIVE_CELL_WIDTH = 0.05, 0.005
_FAR = 40.0
# Rows of more than two classes that tell: the others cost as much as the fit itself, and change a nat in 1000 rows.
_MOST_ROWS = 1000


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
    """Return the floor that temperature scaling to Platt's targets asks for.

    Temperature scaling is fitted to the scores above each candidate, the smallest first. A candidate is taken if its
    log-likelihood exceeds the best so far by more than 1 nat. The targets say that one row of each class could have
    been of another one, of K > 2 classes one row in all. So sure scores, whose log-odds are 36, cost something even
    where all of them are right: no map that fits the other rows predicts as much.

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
        From {0, 1e-5, .001, .01, .03}; K times the floor is at most .3. For more than two classes and 1000 rows it is
        learned from 1000 quantiles of the rows by the margin of the true class.
    """
    n_classes = max(scores.shape[1], 2)
    floors = [0.0, *(floor for floor in _CANDIDATES if n_classes * floor <= _LARGEST_TOTAL)]
    likelihoods_of = _two_class_likelihoods if n_classes == 2 else _many_class_likelihoods
    likelihoods = likelihoods_of(floors, scores, codes, sample_weight, input)
    best = 0
    for candidate, likelihood in enumerate(likelihoods):
        if likelihood > likelihoods[best] + _LEAST_GAIN:
            best = candidate
    return floors[best]


def _floored_log_odds(log_odds, floor):
    slope = 1 - 2 * floor
    return np.log(slope * expit(log_odds) + floor) - np.log(slope * expit(-log_odds) + floor)


def _two_class_likelihoods(floors, scores, codes, sample_weight, input):
    """Return the log-likelihood of temperature scaling above each floor, from a histogram of the margins by class.

    The margin is the log-odds of the true class. A floor maps it like the log-odds of any other.
    """
    margin, weight, labels = _margins(scores, codes, sample_weight, input)
    margins = np.stack([margin, *(_floored_log_odds(margin, floor) for floor in floors[1:])])
    spread = np.abs(margins).max(axis=1, keepdims=True)
    margins /= np.where(spread > 0, spread, 1)  # squares of large ones would overflow
    doubt = margins @ (weight / (np.bincount(labels, weight)[labels] + 2))  # of the targets: see PlattTargets

    def derivatives(inverse):
        other = expit(-inverse[:, None] * margins)
        slope = other * margins
        return doubt - slope @ weight, (slope * margins * (1 - other)) @ weight

    inverse = minimise_convex(derivatives, spread[:, 0], _RELATIVE_BOUNDS, _TOLERANCE)
    return log_expit(inverse[:, None] * margins) @ weight - inverse * doubt


def _margins(scores, codes, sample_weight, input):
    """Return the mean margin, the weight and the class of each cell that holds rows."""
    n_side = int(_position(np.array([_largest_log_odds(scores, input)]))[0]) + 1
    n_cells = 2 * n_side + 1
    weight, total = np.zeros(2 * n_cells), np.zeros(2 * n_cells)
    for rows in row_blocks(len(scores)):
        margin = _log_odds(scores[rows], input)
        margin *= 2.0 * codes[rows] - 1
        cell = np.rint(_position(margin)).astype(np.intp)
        cell += n_side
        cell += n_cells * codes[rows].astype(np.intp)
        row_weight = None if sample_weight is None else sample_weight[rows]
        weight += np.bincount(cell, row_weight, len(weight))
        total += np.bincount(cell, margin if row_weight is None else margin * row_weight, len(weight))
    held = np.flatnonzero(weight)
    return total[held] / weight[held], weight[held], held // n_cells


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


def _many_class_likelihoods(floors, scores, codes, sample_weight, input):
    """Return the same for more classes, from a sample of the rows."""
    rows, weight = _representatives(scores, codes, sample_weight)
    n_rows = len(codes) if sample_weight is None else sample_weight.sum()
    scores, label, n_classes = scores[rows], (np.arange(len(rows)), codes[rows]), scores.shape[1]
    proba = softmax(scores.astype(np.float64), axis=1) if input == "logit" else scores.astype(np.float64)
    doubt = np.full(proba.shape, weight[:,None] / (n_rows + 2) / (n_classes - 1))
    doubt[label] = -weight / (n_rows + 2)
    found = []
    for floor in floors:
        logits = np.log(proba * (1 - n_classes * floor) + floor) if floor else (log_softmax(scores.astype(np.float64),axis=1) if input == "logit" else log_probability(scores))
        logits -= logits.max(axis=1, keepdims=True)
        linear = weight @ logits[label] + np.sum(doubt * logits)
        spread = -logits.min()
        if spread==0:
            found.append(-weight.sum()*np.log(n_classes)); continue
        logits /= spread
        linear /= spread
        def derivatives(inverse):
            odds = np.exp(inverse * logits)
            total = odds.sum(axis=1)
            odds *= logits
            mean = odds.sum(axis=1) / total
            odds *= logits
            variance = odds.sum(axis=1) / total - mean**2
            return np.array([weight @ mean - linear]), np.array([weight @ np.maximum(variance, 0)])
        inverse = minimise_convex(derivatives, np.array([spread]), _RELATIVE_BOUNDS, _TOLERANCE)
        found.append(float(inverse[0] * linear - weight @ np.log(np.exp(inverse * logits).sum(axis=1))))
    return found


def _representatives(scores, codes, sample_weight):
    """Return quantiles of the rows by the margin of the true class, and how many rows each stands for."""
    weight = np.ones(len(codes)) if sample_weight is None else sample_weight
    if len(codes) <= _MOST_ROWS:
        return np.arange(len(codes)), weight
    margin = scores[np.arange(len(codes)), codes] - scores.max(axis=1)
    order = np.lexsort((scores.max(axis=1)-scores.mean(axis=1), margin))
    total = np.cumsum(weight[order])
    share = total[-1] / _MOST_ROWS
    rows = np.searchsorted(total, share * (np.arange(_MOST_ROWS) + 0.5))
    return order[rows], np.full(_MOST_ROWS, share)
