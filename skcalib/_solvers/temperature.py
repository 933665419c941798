"""The factor of the logits of least log-loss, or of least Brier score: softmax
regression with one parameter.
"""

import numpy as np
from scipy.special import expit

from skcalib._rows.blocks import condensed, row_blocks, weights_or_ones
from skcalib._solvers.logistic import platt_doubt
from skcalib._solvers.newton import minimise_convex

# A sample of the rows gives the start of the steps: it has at least this many rows,
# and about this many misclassified ones, as estimated from so many rows. The last steps
# are on all rows, and find the same optimum: 20,000 rows of 1,000 classes take .6 of
# the time.
_WARM_START_ROWS = 2000
_WARM_START_ERRORS = 20
_LOOKED_AT = 16_000
# Inverse temperatures are sought within these multiples of 1 / (largest spread of a row
# of logits).
RELATIVE_BOUNDS = (1e-6, 1e6)
# The same with Platt's targets, of 1 / (typical log-odds): the first is for a model
# that ranks the wrong way round.
_SMOOTHED_BOUNDS = (1e-3, 1e6)
# The Brier score is looked at for so many logits, at these octaves of 1 / (largest
# spread of a row of logits).
_SAMPLE_LOGITS = 1_000_000
_OCTAVES = (-6, 20)
# Minima there that are refined: up to this share of the range above the least, and at
# most so many.
_GOOD = 0.1
_MOST_CANDIDATES = 6


def fit_inverse_temperature(
    logits, codes, sample_weight=None, bounds=None, start=None, tolerance=1e-6
):
    """Return the inverse temperature of least log-loss: the factor of the logits.

    Without `bounds`, and where every row is classified right, so that the log-loss
    falls for ever in the factor, it is the factor of least log-loss for Platt's
    targets.

    Parameters
    ----------
    logits : ndarray of shape (n, K)
        Logits; -inf for impossible classes.
    codes : ndarray of int, shape (n,)
        True class of each row.
    sample_weight : ndarray of shape (n,), default=None
        Weights.
    bounds : tuple of two floats, default=None
        Limits of the factor; None means `RELATIVE_BOUNDS` in units of
        1 / `largest_spread`.
    start : float, default=None
        Where the steps begin; None means the optimum of a sample of the rows.
    tolerance : float, default=1e-6
        Relative size of the last step, at most.

    Returns
    -------
    inverse_temperature : float
    """
    doubt_slope = 0.0
    if bounds is None:
        doubt_slope = _doubt_slope(logits, codes, sample_weight)
        spread = largest_spread(logits)
        if spread > 0:
            bounds = tuple(bound / spread for bound in RELATIVE_BOUNDS)
        else:
            # logits that are equal in each row: no temperature changes a forecast
            bounds = (1.0, 1.0)
    inverse = 1.0
    step = 0
    if start is None:
        step = _warm_start_step(logits, codes)
    else:
        inverse = start
    # The steps start from the optimum of every `step`-th row.
    if step > 1:
        weight = None
        if sample_weight is not None:
            weight = sample_weight[::step]
        warm = _minimum(
            inverse, bounds, logits[::step], codes[::step], weight, tolerance=1e-2
        )
        # on a bound the few rows were separable
        if bounds[0] < warm < bounds[1]:
            inverse = warm
    return _minimum(
        inverse, bounds, logits, codes, sample_weight, doubt_slope, tolerance
    )


def smoothed_inverse_temperature(log_odds, labels, sample_weight, few=None, start=None):
    """Return the inverse temperature of log-odds (n,) of least log-loss for Platt's
    targets of boolean labels (n,).

    It is positive also for a model that is always wrong. Without a `start`, `few` gives
    it, a triple of the same rows, condensed: log-odds, labels and weights.
    """
    scale = root_mean_square(log_odds, sample_weight)
    if scale == 0:
        return 1.0
    if start is None:
        start = 1 / scale
        if few is not None and len(few[0]) < len(log_odds):
            start = smoothed_inverse_temperature(*few)
    # Platt's targets differ from the labels by 1 / (N- + 2) for the first class and by
    # -1 / (N+ + 2) for the second. The slope of the loss by the factor changes by the
    # sum of minus this difference times the log-odds.
    codes = labels.astype(np.int8)
    weight_of_class = np.bincount(codes, sample_weight, 2)
    weighted_log_odds = log_odds
    if sample_weight is not None:
        weighted_log_odds = sample_weight * log_odds
    sum_of_class = np.bincount(codes, weighted_log_odds, 2)
    doubt_slope = float(sum_of_class / (weight_of_class + 2) @ [-1, 1])
    bounds = [bound / scale for bound in _SMOOTHED_BOUNDS]
    return _minimum(start, bounds, log_odds[:, None], codes, sample_weight, doubt_slope)


def root_mean_square(values, sample_weight):
    """Return the root of the weighted mean of the squares of values (n,)."""
    return float(np.sqrt(np.average(values**2, weights=sample_weight)))


def _doubt_slope(logits, codes, sample_weight):
    """Return the slope by the inverse temperature that Platt's targets add to that of
    the summed log-loss; 0 where a row is misclassified.

    If a share d of a row's target moves from its true class to the others, its slope
    grows by d times the margin of the true class's logit over their mean.
    """
    n_classes = logits.shape[1]
    slope = 0.0
    doubt = None
    for rows in row_blocks(*logits.shape):
        row_number = np.arange(len(codes[rows]))
        true = logits[rows][row_number, codes[rows]].astype(np.float64)
        # hardly a cost: mostly the first block has such a row
        if (true < logits[rows].max(axis=1)).any():
            return 0.0
        if doubt is None:
            doubt = platt_doubt(codes, sample_weight, n_classes)
        weighted_doubt = doubt[rows]
        if sample_weight is not None:
            weighted_doubt = weighted_doubt * sample_weight[rows]
        slope += _margins(true, logits[rows]) @ weighted_doubt
    return float(slope)


def _margins(true, logits):
    """Return how far the logit of the true class, `true` (n,), is above the mean of
    those of the other possible classes of its row, of logits (n, K).
    """
    n_classes = logits.shape[1]
    # With S the sum over all K classes, true included, the margin is
    # true - (S - true) / (K - 1) = (K true - S) / (K - 1).
    if logits.min() > -np.inf:
        total = logits.sum(axis=1, dtype=np.float64)
        return (true * n_classes - total) / (n_classes - 1)
    possible = logits > -np.inf
    n_possible = np.count_nonzero(possible, axis=1)
    total = logits.sum(axis=1, dtype=np.float64, where=possible)
    return (true * n_possible - total) / np.maximum(n_possible - 1, 1)


def _warm_start_step(logits, codes):
    """Return the step k such that every k-th row is a large enough sample for a start;
    0 where no row that is looked at is misclassified.

    The inverse temperature of a sample without misclassified rows has no limit, so the
    sample must be expected to hold some.
    """
    looked_at = slice(None, None, max(len(codes) // _LOOKED_AT, 1))
    predicted = logits[looked_at].argmax(axis=1)
    error_rate = np.mean(predicted != codes[looked_at])
    if error_rate == 0:
        return 0
    n_needed = max(_WARM_START_ROWS, _WARM_START_ERRORS / error_rate)
    return int(len(codes) / n_needed)


def _minimum(
    start, bounds, logits, codes, sample_weight, doubt_slope=0.0, tolerance=1e-6
):
    """Return the inverse temperature of least log-loss plus `doubt_slope` times it: a
    convex function.
    """
    weight = weights_or_ones(sample_weight, len(logits))

    def derivatives(inverse):
        """Return the first two derivatives of the loss by the inverse temperature."""
        slope = np.full(1, doubt_slope)
        curvature = np.zeros(1)
        blocks = row_derivatives(inverse[0], logits, codes)
        for rows, row_slope, row_curvature in blocks:
            slope += weight[rows] @ row_slope
            curvature += weight[rows] @ row_curvature
        return slope, curvature

    (minimum,) = minimise_convex(derivatives, np.array([start]), bounds, tolerance)
    return float(minimum)


def largest_spread(logits):
    """Return the largest difference, over all rows, between two possible logits of a
    row.
    """
    if logits.shape[1] == 2:
        log_odds = np.subtract(logits[:, 1], logits[:, 0], dtype=np.float64)
        return float(np.abs(log_odds).max())
    largest = 0.0
    for rows in row_blocks(*logits.shape):
        high = logits[rows].max(axis=1)
        low = logits[rows].min(axis=1)
        if low.min() == -np.inf:  # of impossible classes
            possible = logits[rows] > -np.inf
            low = logits[rows].min(axis=1, where=possible, initial=np.inf)
        spread = np.subtract(high, low, dtype=np.float64).max()
        largest = max(largest, float(spread))
    return largest


def row_derivatives(inverse, logits, codes):
    """Yield, for blocks of rows, (rows, first, second): a slice, and the first two
    derivatives of each row's log-loss by the inverse temperature, (n_rows,) each.

    With z the logits of a row and y its class they are E[z] - z_y and Var[z] under the
    row's probabilities. `inverse` is one inverse temperature, or one per row.
    """
    if logits.shape[1] <= 2:
        yield from _two_class_derivatives(inverse, logits, codes)
        return
    ones = np.ones(logits.shape[1])
    inverse = np.asarray(inverse)
    for rows in row_blocks(*logits.shape):
        z = logits[rows].astype(np.float64)
        z -= z.max(axis=1, keepdims=True)
        inverse_of_rows = inverse
        if inverse.ndim > 0:
            inverse_of_rows = inverse[rows, None]
        likelihood = inverse_of_rows * z
        np.exp(likelihood, out=likelihood)
        total = likelihood @ ones
        if z.min() == -np.inf:
            z[np.isneginf(z)] = 0  # impossible classes have the likelihood 0
        mean = np.vecdot(likelihood, z) / total
        z_true = z[np.arange(len(z)), codes[rows]]
        z *= z
        variance = np.maximum(np.vecdot(likelihood, z) / total - mean**2, 0)
        yield rows, mean - z_true, variance


def _two_class_derivatives(inverse, logits, codes):
    """Yield what `row_derivatives` does, for two classes.

    With m the margin of the true class's logit over the other one and q the other
    class's probability, the derivatives are -m q and m^2 q (1 - q). One column of
    logits is the log-odds of the second class.
    """
    for rows in row_blocks(*logits.shape):
        first = 0
        if logits.shape[1] == 2:
            first = logits[rows, 0]
        margin = np.subtract(logits[rows, -1], first, dtype=np.float64)
        margin *= 2 * codes[rows] - 1
        inverse_of_rows = inverse
        if np.ndim(inverse) > 0:
            inverse_of_rows = inverse[rows]
        other = expit(-margin * inverse_of_rows)
        slope = -margin * other
        yield rows, slope, -slope * margin * (1 - other)


def fit_brier_temperature(logits, codes, sample_weight=None):
    """Return the inverse temperature of least Brier score, which may have several
    minima.

    A sample of the rows gives the score at every half octave; from each good minimum
    there Newton's steps follow the derivative over all rows to 0, and the least of what
    they find is taken. For many rows of two classes that is done on condensed rows, and
    all rows have the last steps.
    """
    if largest_spread(logits) == 0:
        return 1.0
    if logits.shape[1] == 2:
        log_odds = np.subtract(logits[:, 1], logits[:, 0], dtype=np.float64)
        few, is_second, weight = condensed(log_odds, codes == 1, sample_weight)
        if len(few) < len(logits):
            few_logits = np.column_stack((np.zeros_like(few), few))
            few_codes = is_second.astype(np.intp)
            start, bounds = _least_minimum(few_logits, few_codes, weight)
            score = _BrierScore(logits, codes, sample_weight)
            (minimum,) = minimise_convex(score.derivatives, np.array([start]), bounds)
            return float(minimum)
    minimum, _ = _least_minimum(logits, codes, sample_weight)
    return minimum


def _least_minimum(logits, codes, sample_weight):
    """Return the inverse temperature of least Brier score, and a lower and an upper
    bound of that minimum.
    """
    # 1. The score of a sample on a grid of half octaves, and its deepest minima there.
    spread = largest_spread(logits)
    sampled = slice(None, None, max(logits.size // _SAMPLE_LOGITS, 1))
    weight = None
    if sample_weight is not None:
        weight = sample_weight[sampled]
    sample = _BrierScore(logits[sampled], codes[sampled], weight)
    first_octave, last_octave = _OCTAVES
    n_half_octaves = 2 * (last_octave - first_octave)
    octaves = np.arange(n_half_octaves + 1) / 2 + first_octave
    grid = 2.0**octaves / spread
    scores = sample.at_half_octaves(grid)
    # each score beside its neighbours, with none beyond the ends
    padded = np.pad(scores, 1, constant_values=np.inf)
    is_minimum = (scores <= padded[:-2]) & (scores <= padded[2:])
    is_deep = scores <= scores.min() + _GOOD * np.ptp(scores)
    candidates = np.flatnonzero(is_minimum & is_deep)
    deepest = np.argsort(scores[candidates], kind="stable")[:_MOST_CANDIDATES]
    candidates = candidates[deepest]

    # 2. A minimum of all rows between the neighbours of each. Beside the ends of the
    # grid are the bounds; the first and the last interval share theirs with the next.
    score = _BrierScore(logits, codes, sample_weight)
    below = np.append(RELATIVE_BOUNDS[0] / spread, grid[:-2])
    above = np.append(grid[2:], RELATIVE_BOUNDS[1] / spread)
    lower = below[np.maximum(candidates - 1, 0)]
    upper = above[np.minimum(candidates, len(grid) - 2)]
    minima = []
    for k, low, high in zip(candidates, lower, upper, strict=True):
        minimum = minimise_convex(score.derivatives, grid[[k]], [low, high])
        minima.append(float(minimum[0]))

    # 3. The best of them.
    best = 0
    if len(minima) > 1:
        best = min(range(len(minima)), key=lambda k: score(minima[k]))
    return minima[best], (lower[best], upper[best])


class _BrierScore:
    """The summed Brier score as a function of the inverse temperature.

    Logits are (n, K), the true classes `codes` (n,); weights are scaled so that the
    largest is 1.
    """

    def __init__(self, logits, codes, sample_weight):
        self.logits = logits
        self.codes = codes
        if sample_weight is None:
            self.weight = np.ones(len(codes))
        else:
            self.weight = sample_weight / sample_weight.max()

    def __call__(self, inverse):
        """Return the score at one inverse temperature."""
        total = 0
        for p, _, label, weight in self._blocks(inverse):
            # sum over the classes of (p - [true class])^2
            total += weight @ (_dot(p, p) - 2 * p[label] + 1)
        return total

    def at_half_octaves(self, grid):
        """Return the scores at the inverse temperatures of a grid, each sqrt(2) times
        the one before.

        Twice the inverse temperature squares the probabilities, up to their sum. So
        each block takes two exponentials per logit in place of one for each point of
        the grid: a fit takes .4 to .9 of the time.
        """
        scores = np.zeros(len(grid))
        for first in range(2):
            for p, _, label, weight in self._blocks(grid[first]):
                # `p` (K, m) are probabilities, `label` the index of the true classes.
                # They become those at grid[first], grid[first + 2], ... in turn.
                for k in range(first, len(grid), 2):
                    true = p[label]
                    p *= p
                    square = p.sum(axis=0)
                    scores[k] += weight @ (square - 2 * true + 1)
                    p /= square
        return scores

    def derivatives(self, inverse):
        """Return the first two derivatives of the score, (1,) each, at the inverse
        temperature (1,).

        Those of a probability p are p d and p (d^2 - v): d is the deviation of the
        logit from its mean under the row's probabilities, v its variance.
        """
        slope = np.zeros(1)
        curvature = np.zeros(1)
        # The score of a row is the sum of p^2 less 2 p of the true class, plus 1.
        for p, logits, label, weight in self._blocks(inverse[0]):
            deviation = logits - _dot(p, logits)
            true_p = p[label]
            true_deviation = deviation[label]
            deviation *= p
            first = deviation  # the first derivative of p, in its memory
            variance = _dot(first, logits)
            slope += 2 * (weight @ (_dot(p, first) - true_p * true_deviation))
            # halves of the second derivatives of sum p^2 and of 2 p of the true class:
            # sum of (p d)^2 + p^2 (d^2 - v), and p (d^2 - v)
            bend = 2 * _dot(first, first) - variance * _dot(p, p)
            bend_of_true = true_p * (true_deviation**2 - variance)
            curvature += 2 * (weight @ (bend - bend_of_true))
        return slope, curvature

    def _blocks(self, inverse):
        """Yield for blocks of m rows: probabilities at an inverse temperature and
        logits (K, m), the index of each row's true class in them, and weights (m,).
        """
        for rows in row_blocks(*self.logits.shape):
            logits = np.ascontiguousarray(self.logits[rows].T, dtype=np.float64)
            logits -= logits.max(axis=0)
            p = np.exp(inverse * logits)
            p /= p.sum(axis=0)
            if logits.min() == -np.inf:
                logits[np.isneginf(logits)] = 0  # impossible classes have p = 0
            label = (self.codes[rows], np.arange(p.shape[1]))
            yield p, logits, label, self.weight[rows]


def _dot(a, b):
    """Return the sums over the classes of ``a * b`` (K, m), as (m,)."""
    return np.einsum("kn,kn->n", a, b)
