"""The factor of the logits of least log-loss, or of least Brier score: softmax
regression with one parameter.
"""

import numpy as np
from scipy.special import expit

from skcalib._input.tensors import like, namespace_of
from skcalib._rows.blocks import (
    MANY_COLUMNS,
    condensed,
    few_columns_apart,
    row_blocks,
)
from skcalib._rows.namespaces import exponential, row_maxima
from skcalib._solvers.logistic import platt_doubt
from skcalib._solvers.newton import minimise_convex
from skcalib._solvers.sums import (
    blocks_of,
    cast,
    chosen,
    column_dots,
    row_weights,
    transposed,
    true_entries,
    weighted_sums,
    working_dtype,
)

# A sample of the rows gives the start of the steps: it has at least this many rows,
# and about this many misclassified ones, as estimated from so many rows. The last steps
# are on all rows, and find the same optimum: 20,000 rows of 1,000 classes take .6 of
# the time.
_WARM_START_ROWS = 2000
_WARM_START_ERRORS = 20
_LOOKED_AT = 16_000
_LARGEST_IN_SINGLE = 1e12  # spread, whose cube is a number of single precision
# Halley's steps leave the cube of the last one: of those in single precision, which
# that after them in double precision makes a millionth of a millionth.
_ROUGH_TOLERANCE = 0.03
_TOLERANCE = 1e-4
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
    logits, codes, sample_weight=None, bounds=None, start=None, tolerance=_TOLERANCE
):
    """Return the inverse temperature of least log-loss: the factor of the logits.

    If every row is classified right, the log-loss falls for ever in the factor. Without
    `bounds`, Platt's smoothed targets then take the place of the labels.

    Parameters
    ----------
    logits : array of shape (n, K)
        Logits, NumPy's or a tensor; -inf for impossible classes.
    codes : array of int, shape (n,)
        True class of each row, where the logits are.
    sample_weight : array of shape (n,), default=None
        Weights, where the logits are.
    bounds : tuple of two floats, default=None
        Limits of the factor; None means `RELATIVE_BOUNDS` in units of
        1 / `largest_spread`.
    start : float, default=None
        Where the steps begin; None means the optimum of a sample of the rows.
    tolerance : float, default=1e-4
        Relative size of the last step, at most: what it leaves is about its cube.

    Returns
    -------
    inverse_temperature : float
    """
    slope_of_smoothing = 0.0
    spread = np.inf  # not known
    if bounds is None:
        slope_of_smoothing = _slope_of_smoothing(logits, codes, sample_weight)
        spread = largest_spread(logits)
        if spread > 0:
            bounds = tuple(bound / spread for bound in RELATIVE_BOUNDS)
        else:
            # logits that are equal in each row: no temperature changes a forecast
            bounds = (1.0, 1.0)
    # Steps in single precision lead near the optimum in less than half the time. The
    # last one is in that of the fit.
    is_large = logits.shape[1] > 2 and logits.shape[0] > _WARM_START_ROWS
    is_double = working_dtype(logits) == np.float64
    fits_single = 1 / _LARGEST_IN_SINGLE < spread < _LARGEST_IN_SINGLE
    starts_single = is_large and is_double and fits_single
    if start is None:
        dtype = np.float32 if starts_single else None
        start = _start_from_sample(logits, codes, sample_weight, bounds, dtype)
    if starts_single:
        start = _minimum(
            start,
            bounds,
            logits,
            codes,
            sample_weight,
            slope_of_smoothing,
            tolerance=_ROUGH_TOLERANCE,
            dtype=np.float32,
        )
    return _minimum(
        start, bounds, logits, codes, sample_weight, slope_of_smoothing, tolerance
    )


def _start_from_sample(logits, codes, sample_weight, bounds, dtype):
    """Return the inverse temperature of least log-loss for every k-th row, within
    `bounds`, found in `dtype`; 1 if it says nothing. k leaves about
    `_WARM_START_ERRORS` misclassified rows: without one there is no finite optimum.
    """
    n_rows = logits.shape[0]
    looked_at = slice(None, None, max(n_rows // _LOOKED_AT, 1))
    is_wrong = _are_wrong(chosen(logits, looked_at), codes[looked_at])
    n_wrong = float(namespace_of(logits).count_nonzero(is_wrong))
    error_rate = n_wrong / is_wrong.shape[0]
    if error_rate == 0:
        return 1.0
    n_needed = max(_WARM_START_ROWS, _WARM_START_ERRORS / error_rate)
    step = int(n_rows / n_needed)
    if step <= 1:  # all rows are no more than the sample would need
        return 1.0
    sample = slice(None, None, step)
    optimum = _minimum(
        1.0,
        bounds,
        chosen(logits, sample),
        codes[sample],
        chosen(sample_weight, sample),
        tolerance=_ROUGH_TOLERANCE,
        dtype=dtype,
    )
    # on a bound: no row of the sample was misclassified
    if not bounds[0] < optimum < bounds[1]:
        return 1.0
    return optimum


def _are_wrong(logits, codes):
    """Return which rows (n,) have a class whose logit is above that of the true one."""
    largest = row_maxima(namespace_of(logits), logits)[:, 0]
    return true_entries(logits, codes) < largest


def smoothed_inverse_temperature(
    log_odds, labels, sample_weight, cells=None, start=None
):
    """Return the inverse temperature of log-odds (n,) of least log-loss for Platt's
    targets of boolean labels (n,).

    It is positive also for a model that is always wrong. Steps begin at `start`, or if
    that is None at the optimum of `cells`, a triple of condensed rows: log-odds, labels
    and weights (see `condensed`).
    """
    scale = root_mean_square(log_odds, sample_weight)
    if scale == 0:
        return 1.0
    if start is None:
        start = 1 / scale
        if cells is not None and len(cells[0]) < len(log_odds):
            start = smoothed_inverse_temperature(*cells)
    # Platt's targets are the labels plus 1 / (N- + 2) for the first class and minus
    # 1 / (N+ + 2) for the second. A row's log-loss has the term -target * factor *
    # log-odds: the slope by the factor changes by minus the sum of these differences
    # times the log-odds.
    codes = labels.astype(np.int8)
    weight_of_class = np.bincount(codes, sample_weight, 2)
    weighted_log_odds = log_odds
    if sample_weight is not None:
        weighted_log_odds = sample_weight * log_odds
    log_odds_of_class = np.bincount(codes, weighted_log_odds, 2)
    slope_of_smoothing = float(log_odds_of_class / (weight_of_class + 2) @ [-1, 1])
    bounds = [bound / scale for bound in _SMOOTHED_BOUNDS]
    logits = log_odds[:, None]
    return _minimum(start, bounds, logits, codes, sample_weight, slope_of_smoothing)


def root_mean_square(values, sample_weight):
    """Return the root of the weighted mean of the squares of values (n,)."""
    return float(np.sqrt(np.average(values**2, weights=sample_weight)))


def _slope_of_smoothing(logits, codes, sample_weight):
    """Return what Platt's targets, in place of the labels, add to the derivative of the
    summed log-loss by the inverse temperature; 0 if a row is misclassified, because the
    labels then have a finite optimum.

    The targets move a share of each row from its true class to the others. That adds
    the share times the margin of the true logit over the mean of the others.
    """
    xp = namespace_of(logits)
    n_classes = logits.shape[1]
    slope = 0.0
    share = None
    for rows in blocks_of(logits, *logits.shape):
        block = logits[rows, ...]
        # Usually the first block has a misclassified row, and the others are not read.
        if xp.any(_are_wrong(block, codes[rows])):
            return 0.0
        if share is None:
            share = platt_doubt(codes, sample_weight, n_classes)
        weighted_share = share[rows]
        if sample_weight is not None:
            weighted_share = weighted_share * sample_weight[rows]
        margin = _margins(true_entries(block, codes[rows]), block)
        (slope_of_block,) = weighted_sums(weighted_share, margin)
        slope += slope_of_block
    return float(slope)


def _margins(true_logit, logits):
    """Return how far the true class's logit (n,) is above the mean logit of the other
    possible classes; -inf marks an impossible one.
    """
    xp = namespace_of(logits)
    n_classes = logits.shape[1]
    logits = cast(logits, working_dtype(logits))
    # With S the sum over all K classes, the true one included, the margin is
    # true - (S - true) / (K - 1) = (K true - S) / (K - 1).
    if xp.min(logits) > -np.inf:
        total = xp.sum(logits, axis=1)
        return (true_logit * n_classes - total) / (n_classes - 1)
    is_possible = logits > -np.inf
    total = xp.sum(xp.where(is_possible, logits, xp.zeros_like(logits)), axis=1)
    n_possible = xp.sum(xp.astype(is_possible, logits.dtype), axis=1)
    return (true_logit * n_possible - total) / xp.clip(n_possible - 1, 1, n_classes)


def _minimum(
    start,
    bounds,
    logits,
    codes,
    sample_weight,
    slope_of_smoothing=0.0,
    tolerance=_TOLERANCE,
    dtype=None,
):
    """Return the inverse temperature within `bounds` that minimises the summed log-loss
    of logits (n, K) and class indices `codes` (n,), plus its product with
    `slope_of_smoothing`: the convex loss of smoothed targets. Steps begin at `start`
    and end when one is smaller than `tolerance` times the result.
    """
    weight = row_weights(sample_weight, logits)

    def derivatives(inverse):
        """Return the first three derivatives of the loss, (1,) each, by the inverse
        temperature (1,).
        """
        sums = np.array([slope_of_smoothing, 0.0, 0.0])
        blocks = row_derivatives(inverse[0], logits, codes, dtype, n_derivatives=3)
        for rows, *of_rows in blocks:
            sums += weighted_sums(weight[rows], *of_rows)
        return np.split(sums, 3)

    (minimum,) = minimise_convex(derivatives, np.array([start]), bounds, tolerance)
    return float(minimum)


def largest_spread(logits):
    """Return the largest difference, over all rows, between two possible logits of a
    row.
    """
    xp = namespace_of(logits)
    if xp is np and logits.shape[1] == 2:
        log_odds = np.subtract(logits[:, 1], logits[:, 0], dtype=np.float64)
        return float(np.abs(log_odds).max())
    largest = 0.0
    for rows in blocks_of(logits, *logits.shape):
        block = few_columns_apart(logits[rows, ...])
        high = xp.max(block, axis=1)
        low = xp.min(block, axis=1)
        if xp.min(low) == -np.inf:  # of impossible classes
            possible = xp.where(block > -np.inf, block, high[:, None])
            low = xp.min(possible, axis=1)
        dtype = working_dtype(logits)
        spread = xp.max(cast(high, dtype) - cast(low, dtype))
        largest = max(largest, float(spread))
    return largest


def row_derivatives(inverse, logits, codes, dtype=None, n_derivatives=2):
    """Yield, for blocks of rows, a tuple (rows, first, second, ...): the slice of the
    rows, and the first two or three derivatives of each row's log-loss by the inverse
    temperature, (n_rows,) each.

    With z the logits of a row and y its class they are E[z] - z_y, the variance of z
    and its third central moment, under the row's probabilities. `inverse` is one
    inverse temperature, or one per row. One or two columns of logits are two classes.
    All are computed where the logits are, in the floating type `dtype`, by default
    `working_dtype` of the logits.
    """
    xp = namespace_of(logits)
    if xp is np and logits.shape[1] <= 2:
        yield from _two_class_derivatives(inverse, logits, codes, n_derivatives)
        return
    if np.ndim(inverse) == 0:
        inverse = float(inverse)
    if dtype is None:
        dtype = working_dtype(logits)
    ones = like(logits, np.ones(logits.shape[1], dtype))  # a product with it: a sum
    for rows in blocks_of(logits, *logits.shape):
        z = _below_largest(logits[rows, ...], dtype)
        inverse_of_rows = inverse
        if np.ndim(inverse) > 0:
            inverse_of_rows = inverse[rows, None]
        likelihood = exponential(xp, inverse_of_rows * z)
        total = likelihood @ ones
        with np.errstate(invalid="ignore"):
            mean = _row_dots(likelihood, z, ones) / total
        if xp.any(xp.isnan(mean)):
            # Impossible classes have the logit -inf and the likelihood 0.
            z = xp.where(xp.isinf(z), xp.zeros_like(z), z)
            mean = _row_dots(likelihood, z, ones) / total
        first = mean - true_entries(z, codes[rows])
        # in the same memory, first the logits times likelihood, then their squares
        likelihood *= z
        variance = _row_dots(likelihood, z, ones) / total - mean**2
        variance = xp.where(variance > 0, variance, xp.zeros_like(variance))
        if n_derivatives == 2:
            yield rows, first, variance
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            z *= z
            mean_cube = _row_dots(likelihood, z, ones) / total
            third = mean_cube - mean * (3 * variance + mean**2)
        yield rows, first, variance, third


def _below_largest(logits, dtype):
    """Return logits (m, K) less the largest of their row, as a new array in a floating
    type of NumPy.
    """
    xp = namespace_of(logits)
    logits = few_columns_apart(logits)
    largest = row_maxima(xp, logits)
    if dtype == np.float32:  # differences first: they are smaller than logits
        differences = logits - largest
        if xp is np:
            return differences.astype(np.float32, copy=False)
        return cast(differences, dtype)
    differences = cast(logits, dtype)
    differences -= cast(largest, dtype)
    return differences


def _row_dots(first, second, ones):
    """Return the product of each row of two arrays (m, K); `ones` (K,) are 1."""
    xp = namespace_of(first)
    if xp is np and first.shape[1] <= MANY_COLUMNS:  # a third of the time of `vecdot`
        return (first * second) @ ones
    return xp.vecdot(first, second)


def _two_class_derivatives(inverse, logits, codes, n_derivatives):
    """Yield, for blocks of rows, a slice and the first two or three derivatives of the
    log-losses by the inverse temperature t, (n_rows,) each, for two classes.

    With m the logit of the true class less that of the other one, the log-loss of a row
    is log(1 + exp(-t m)), and the other class has the probability q = expit(-t m). The
    derivatives are -m q, m^2 q (1 - q) and -m^3 q (1 - q) (1 - 2 q).
    """
    for rows in row_blocks(*logits.shape):
        first_logit = 0  # a single column holds the log-odds of the second class
        if logits.shape[1] == 2:
            first_logit = logits[rows, 0]
        margin = np.subtract(logits[rows, -1], first_logit, dtype=np.float64)
        margin *= 2 * codes[rows] - 1  # -1 for rows of the first class, 1 for others
        inverse_of_rows = inverse
        if np.ndim(inverse) > 0:
            inverse_of_rows = inverse[rows]
        probability_of_other = expit(-margin * inverse_of_rows)
        slope = -margin * probability_of_other
        curvature = -slope * margin * (1 - probability_of_other)
        if n_derivatives == 2:
            yield rows, slope, curvature
            continue
        third = probability_of_other  # in the same memory
        third *= 2
        third -= 1
        with np.errstate(over="ignore"):
            third *= curvature
            third *= margin
        yield rows, slope, curvature, third


def fit_brier_temperature(logits, codes, sample_weight=None):
    """Return the inverse temperature of least Brier score, the least of its minima, for
    logits (n, K), classes `codes` (n,) and weights (n,) or None.

    Many rows of two classes are condensed first. The minimum found on these cells is
    then refined on all rows.
    """
    if largest_spread(logits) == 0:
        return 1.0
    if namespace_of(logits) is np and logits.shape[1] == 2:
        log_odds = np.subtract(logits[:, 1], logits[:, 0], dtype=np.float64)
        # A cell has the mean log-odds of rows of one class with nearly equal ones.
        of_cells, is_second, weight = condensed(log_odds, codes == 1, sample_weight)
        if len(of_cells) < len(logits):
            logits_of_cells = np.column_stack((np.zeros_like(of_cells), of_cells))
            codes_of_cells = is_second.astype(np.intp)
            start, bounds = _least_minimum(logits_of_cells, codes_of_cells, weight)
            score = _BrierScore(logits, codes, sample_weight)
            (minimum,) = minimise_convex(score.derivatives, np.array([start]), bounds)
            return float(minimum)
    minimum, _ = _least_minimum(logits, codes, sample_weight)
    return minimum


def _least_minimum(logits, codes, sample_weight):
    """Return the inverse temperature of least Brier score, and the pair of bounds
    between which it was found.

    A sample of the rows gives starts; Newton's steps on all rows lead from each of them
    to a minimum, and the least of these is returned.
    """
    # 1. The score of a sample on a grid of half octaves.
    spread = largest_spread(logits)
    n_logits = logits.shape[0] * logits.shape[1]
    sampled = slice(None, None, max(n_logits // _SAMPLE_LOGITS, 1))
    sample = _BrierScore(
        chosen(logits, sampled), codes[sampled], chosen(sample_weight, sampled)
    )
    first_octave, last_octave = _OCTAVES
    n_half_octaves = 2 * (last_octave - first_octave)
    octaves = np.arange(n_half_octaves + 1) / 2 + first_octave
    grid = 2.0**octaves / spread
    candidates = _deepest_minima(sample.at_half_octaves(grid))

    # 2. A minimum of all rows within an octave, two points of the grid, to either side
    # of each candidate; beyond the ends of the grid up to the bounds.
    least = RELATIVE_BOUNDS[0] / spread
    largest = RELATIVE_BOUNDS[1] / spread
    padded_grid = np.concatenate(([least, least], grid, [largest, largest]))
    score = _BrierScore(logits, codes, sample_weight)
    minima = []
    bounds = []
    for k in candidates:
        # grid[k] is padded_grid[k + 2]
        interval = (padded_grid[k], padded_grid[k + 4])
        (minimum,) = minimise_convex(score.derivatives, grid[[k]], interval)
        minima.append(float(minimum))
        bounds.append(interval)

    # 3. The best of them; a single one needs no comparison.
    best = 0
    if len(minima) > 1:
        best = np.argmin([score(minimum) for minimum in minima])
    return minima[best], bounds[best]


def _deepest_minima(scores):
    """Return the indices of the local minima of scores on a grid, lowest first: at most
    `_MOST_CANDIDATES`, and none far above the lowest.
    """
    # each score beside its neighbours; beyond the ends there are none
    padded = np.pad(scores, 1, constant_values=np.inf)
    is_minimum = (scores <= padded[:-2]) & (scores <= padded[2:])
    is_deep = scores <= scores.min() + _GOOD * np.ptp(scores)
    candidates = np.flatnonzero(is_minimum & is_deep)
    lowest_first = np.argsort(scores[candidates], kind="stable")
    return candidates[lowest_first][:_MOST_CANDIDATES]


class _BrierScore:
    """The summed Brier score as a function of the inverse temperature.

    Logits are (n, K); `codes` (n,) are the columns of the true classes. Weights are
    scaled so that the largest is 1.
    """

    def __init__(self, logits, codes, sample_weight):
        self.logits = logits
        self.codes = codes
        self.weight = row_weights(sample_weight, logits)
        if sample_weight is not None:
            # The minimum does not move, and weights of any scale give sums and
            # derivatives of moderate size.
            xp = namespace_of(logits)
            self.weight = self.weight / xp.max(self.weight)

    def __call__(self, inverse):
        """Return the Brier score, summed over the rows, at one inverse temperature."""
        total = 0
        for p, _, codes, weight in self._blocks(inverse):
            # the sum over the classes of (p - [true class])^2
            row_scores = column_dots(p, p) - 2 * true_entries(p.T, codes) + 1
            total += weighted_sums(weight, row_scores)[0]
        return total

    def at_half_octaves(self, grid):
        """Return the scores at the inverse temperatures of a grid, each sqrt(2) times
        the one before.

        Twice an inverse temperature squares the probabilities, up to a factor in each
        row. So exponentials are computed at the first two points, and squares lead from
        each point to the next but one: a fit takes .4 to .9 of the time.
        """
        xp = namespace_of(self.logits)
        scores = np.zeros(len(grid))
        for first in (0, 1):
            for p, _, codes, weight in self._blocks(float(grid[first])):
                # Before each pass `p` (K, m) holds the probabilities at grid[k].
                for k in range(first, len(grid), 2):
                    p_true = true_entries(p.T, codes)
                    p *= p
                    sum_of_squares = xp.sum(p, axis=0)
                    row_scores = sum_of_squares - 2 * p_true + 1
                    scores[k] += weighted_sums(weight, row_scores)[0]
                    p /= sum_of_squares
        return scores

    def derivatives(self, inverse):
        """Return the first two derivatives of the score, (1,) each, at the inverse
        temperature (1,).

        Those of a probability p are p' = p d and p'' = p (d^2 - v): d is the deviation
        of the logit from its mean under the row's probabilities, v its variance.
        """
        sums = np.zeros(2)
        # The score of a row is ``sum p^2 - 2 p_true + 1``, with the first derivative
        # 2 (sum p p' - p_true') and the second 2 (sum p'^2 + sum p p'' - p_true'').
        for p, logits, codes, weight in self._blocks(float(inverse[0])):
            deviation = logits - column_dots(p, logits)
            p_true = true_entries(p.T, codes)
            deviation_of_true = true_entries(deviation.T, codes)
            deviation *= p
            p_prime = deviation  # in the same memory
            variance = column_dots(p_prime, logits)
            slope = column_dots(p, p_prime) - p_true * deviation_of_true
            # sum p p'' = sum p'^2 - v sum p^2
            sums_of_p = 2 * column_dots(p_prime, p_prime) - variance * column_dots(p, p)
            p_true_second = p_true * (deviation_of_true**2 - variance)
            sums += 2 * weighted_sums(weight, slope, sums_of_p - p_true_second)
        return sums[:1], sums[1:]

    def _blocks(self, inverse):
        """Yield, for blocks of m rows, the probabilities (K, m) at an inverse
        temperature, the logits (K, m), the true classes (m,), and the weights (m,).
        """
        xp = namespace_of(self.logits)
        dtype = working_dtype(self.logits)
        for rows in blocks_of(self.logits, *self.logits.shape):
            logits = transposed(self.logits[rows, ...], dtype)
            logits -= xp.max(logits, axis=0)
            p = exponential(xp, inverse * logits)
            p /= xp.sum(p, axis=0)
            if xp.min(logits) == -np.inf:
                # impossible classes have p = 0
                logits = xp.where(xp.isinf(logits), xp.zeros_like(logits), logits)
            yield p, logits, self.codes[rows], self.weight[rows]
