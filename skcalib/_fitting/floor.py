"""What keeps probabilities away from 0 and 1 before they become log-odds: a learned
floor, or a clipping constant.
"""

import numpy as np
from scipy.special import expit

from skcalib._input.tensors import as_array, like, namespace_of, widest_dtype
from skcalib._rows.blocks import condensed, empty_in_place_of, few_columns_apart
from skcalib._rows.links import two_class_log_odds
from skcalib._rows.namespaces import (
    clipped,
    exponential,
    logarithm,
    row_sums,
)
from skcalib._solvers.logistic import platt_doubt
from skcalib._solvers.newton import minimise_convex
from skcalib._solvers.sums import (
    blocks_of,
    cast,
    chosen,
    row_weights,
    true_entries,
    working_dtype,
)

# Floors that are tried beside 0; K times the floor stays within the limit. A larger
# floor must gain this many nats of log-likelihood, summed over the rows that are looked
# at.
_CANDIDATES = (1e-5, 1e-3, 0.01, 0.03, 0.1)
_LARGEST_TOTAL = 0.3
_LEAST_GAIN = 0.5
# Rows that are looked at. All of them would cost as much as the fit itself; a thousand
# show what counts for a mean loss. Two classes have cells of nearly equal log-odds,
# more classes quantiles of the rows, fewer beyond 256 classes.
_MOST_ROWS = 1 << 10
_MOST_SCORES = 1 << 18
_MOST_CELLS = 1 << 9
# Inverse temperatures are sought within these multiples of 1 / (largest spread of a row
# of logits).
_RELATIVE_BOUNDS = (1e-6, 1e6)
# The last Newton step, relative to the inverse temperature: what it leaves of the
# likelihood is far below a nat.
_TOLERANCE = 1e-2


def floored(scores, floor, input, dtype=np.float64):
    """Return scores whose probabilities are ``(1 - K * floor) * p + floor``, with p
    those of the scores given.

    Scores are (n, 1) or (n, K), probabilities or logits as `input` says, and so is what
    comes back. The floor is above 0. The map is strictly increasing. More than one
    column is returned as `dtype`.
    """
    xp = namespace_of(scores)
    n_classes = max(scores.shape[1], 2)
    factor = 1 - n_classes * floor
    if xp is not np:
        return _floored_tensor(scores, floor, factor, input)
    if input == "logit" and scores.shape[1] == 1:
        return _floored_log_odds(scores.astype(np.float64), floor)
    out = empty_in_place_of(scores, dtype)
    for rows in blocks_of(scores, *scores.shape):
        block = out[rows]
        if input == "probability":
            np.multiply(scores[rows], factor, out=block, dtype=dtype)
        else:
            # softmax, from the largest logit down so that nothing overflows
            largest = scores[rows].max(axis=1, keepdims=True)
            np.subtract(scores[rows], largest, out=block, dtype=dtype)
            np.exp(block, out=block)
            block *= factor / row_sums(np, block)
        block += floor
        if input == "logit":
            np.log(block, out=block)
    return out


def _floored_tensor(scores, floor, factor, input):
    """Return scores whose probabilities are ``factor * p + floor``, with p those of the
    `scores`, a tensor (n, 1) or (n, K) of probabilities or logits as `input` says.
    """
    xp = namespace_of(scores)
    scores = cast(scores, working_dtype(scores))
    if input == "probability":
        return scores * factor + floor
    if scores.shape[1] == 1:
        # The log-odds of the likelier class, whose exponential cannot overflow; those
        # of the event have the sign of the score.
        odds_against = xp.exp(-xp.abs(scores))
        likelier = 1 / (1 + odds_against)
        log_odds = xp.log(factor * likelier + floor)
        log_odds -= xp.log(factor * odds_against * likelier + floor)
        return xp.where(scores < 0, -log_odds, log_odds)
    likelihood = xp.exp(scores - xp.max(scores, axis=1, keepdims=True))
    likelihood *= factor / xp.sum(likelihood, axis=1, keepdims=True)
    return xp.log(likelihood + floor)


def learned_floor(scores, codes, sample_weight, input):
    """Return the floor e with which the probabilities ``(1 - K * e) * p + e`` suit the
    labels best, after temperature scaling: the least probability that a class can have.

    Temperature scaling is fitted with each candidate for e, the smallest first. A
    candidate is taken if its log-likelihood exceeds the best so far by more than half a
    nat. Instead of 0 and 1, the targets are Platt's: of the n rows of a class, the true
    class has the target 1 - 1 / (n + 2) rather than 1 (with K > 2 classes, n is the
    number of all rows). Scores of 0 and 1 therefore cost something even if they are all
    right. With plain labels the floor would be 0 until the first of them is wrong.

    Parameters
    ----------
    scores : array of shape (n, 1) or (n, K)
        Scores, NumPy's or a tensor.
    codes : array of int, shape (n,)
        Class of each row, where the scores are.
    sample_weight : array of shape (n,) or None
        Weights, where the scores are.
    input : {"probability", "logit"}
        What the scores are.

    Returns
    -------
    floor : float
        From {0, 1e-5, .001, .01, .03, .1}; K times the floor is at most .3.
    """
    n_classes = max(scores.shape[1], 2)
    xp = namespace_of(scores)
    if input == "logit" and n_classes > 2 and xp.min(scores) == -np.inf:
        # Rows in which a class is impossible say nothing of a floor under all of them.
        is_finite, _ = as_array(xp.all(xp.isfinite(scores), axis=1))
        if not is_finite.any():
            return 0.0
        rows = np.flatnonzero(is_finite)
        scores = chosen(scores, rows)
        codes = chosen(codes, rows)
        sample_weight = chosen(sample_weight, rows)
    # 1e-9 is for rounding: a floor that is exactly at the limit is tried.
    largest = (_LARGEST_TOTAL + 1e-9) / n_classes
    floors = [0.0, *(floor for floor in _CANDIDATES if floor < largest)]
    if n_classes == 2:
        likelihoods_of = _two_class_likelihoods
    else:
        likelihoods_of = _many_class_likelihoods
    likelihoods = likelihoods_of(floors, scores, codes, sample_weight, input)
    # From the smallest floor up: a larger one must gain enough.
    best = 0
    for candidate, likelihood in enumerate(likelihoods):
        if likelihood > likelihoods[best] + _LEAST_GAIN:
            best = candidate
    return floors[best]


def _floored_log_odds(log_odds, floor):
    """Return the log-odds of ``(1 - 2 * floor) * p + floor``, p = expit(log_odds)."""
    slope = 1 - 2 * floor
    probability = slope * expit(log_odds) + floor
    complement = slope * expit(-log_odds) + floor
    return np.log(probability) - np.log(complement)


def _two_class_likelihoods(floors, scores, codes, sample_weight, input):
    """Return the largest log-likelihood of temperature scaling of the scores with each
    of several floors (n_floors,), for two classes; the first floor is 0.

    `scores` are (n, 1) or (n, 2), probabilities or logits as `input` says, `codes` (n,)
    the classes, `sample_weight` (n,) or None. Rows of nearly equal log-odds are taken
    together.
    """
    # A tensor is copied one column after the other.
    columns = [as_array(scores[:, k])[0] for k in range(scores.shape[1])]
    z = two_class_log_odds(np.column_stack(columns), input)
    codes, _ = as_array(codes)
    if sample_weight is not None:
        sample_weight, _ = as_array(sample_weight)
    z, labels, weight = condensed(
        z, codes == 1, sample_weight, fewest_rows=_MOST_CELLS, most_cells=_MOST_CELLS
    )
    codes = labels.astype(np.intp)
    if weight is None:
        weight = np.ones(len(z))
    floored_log_odds = np.empty((len(floors), len(z)))
    floored_log_odds[0] = z
    for number, floor in enumerate(floors[1:], 1):
        floored_log_odds[number] = _floored_log_odds(z, floor)
    # (2, n_floors, n_cells)
    logits = np.stack((np.zeros_like(floored_log_odds), floored_log_odds))
    # The share of each row's target that Platt gives to the other class.
    doubt = platt_doubt(codes, weight, 2)
    return _likelihoods(logits, codes, weight, doubt)


def _many_class_likelihoods(floors, scores, codes, sample_weight, input):
    """Return the largest log-likelihood of temperature scaling of the scores with each
    of several floors (n_floors,), for more than two classes; the first floor is 0.

    `scores` are (n, K), probabilities or logits as `input` says, `codes` (n,) the
    classes, `sample_weight` (n,) or None. Of many rows a sample is taken.
    """
    n_rows, n_classes = scores.shape
    weight = row_weights(sample_weight, scores)
    # The share of a row's target that Platt gives to the other classes, (n,): it is the
    # same in every row, 1 / (weight of all rows + 2).
    doubt = platt_doubt(codes, weight, n_classes)
    # A sample has at most `_MOST_ROWS` rows and `_MOST_SCORES` scores. With more
    # classes than that it would have no row, and all rows are taken.
    n_quantiles = min(_MOST_ROWS, _MOST_SCORES // n_classes)
    if n_rows > n_quantiles > 0:
        rows, weight_of_quantile = _quantiles(scores, codes, weight, n_quantiles)
        scores = chosen(scores, rows)
        codes = chosen(codes, rows)
        # A row of the sample stands for many rows, but shows no more than one row does:
        # its weight is 1 at most.
        weight = like(scores, np.full(len(rows), min(weight_of_quantile, 1.0)))
        n_rows = len(rows)
    logits = _logits_of_floors(floors, scores, input)
    doubt_of_rows = doubt[:n_rows]  # of the sampled rows: all have the same
    return _likelihoods(logits, codes, weight, doubt_of_rows)


def _logits_of_floors(floors, scores, input):
    """Return the logits (K, n_floors, n) of scores (n, K) with each floor."""
    xp = namespace_of(scores)
    logits_of_floors = []
    for floor in floors:
        with_floor = cast(scores, widest_dtype(scores))
        if floor > 0:
            with_floor = floored(with_floor, floor, input)
        if input == "probability":
            with_floor = logarithm(xp, clipped(xp, with_floor))
        logits_of_floors.append(with_floor.T)
    logits = xp.stack(logits_of_floors, axis=1)  # (K, n_floors, n)
    if xp is np:  # which keeps the order in memory of the scores
        logits = np.ascontiguousarray(logits)
    return logits


def _quantiles(scores, codes, weight, n_quantiles):
    """Return the indices (n_quantiles,) of rows that represent all rows, and the weight
    for which each stands: quantiles in the order of the margin of the true class (its
    score minus the largest of the row), then of the largest score minus the mean.
    Scores are (n, K), `codes` and `weight` (n,).
    """
    xp = namespace_of(scores)
    scores = few_columns_apart(scores)
    largest = xp.max(scores, axis=1)
    mean = row_sums(xp, scores)[:, 0] / scores.shape[1]
    margin = true_entries(scores, codes) - largest
    if xp is np:
        order = np.lexsort((largest - mean, margin))
    else:
        order = xp.argsort(largest - mean, stable=True)
        by_margin = xp.argsort(xp.take(margin, order, axis=0), stable=True)
        order, _ = as_array(xp.take(order, by_margin, axis=0))
        weight, _ = as_array(weight)
    cumulative_weight = np.cumsum(weight[order])
    weight_of_quantile = cumulative_weight[-1] / n_quantiles
    # the rows in the middle of n_quantiles parts of equal weight
    middles = weight_of_quantile * (np.arange(n_quantiles) + 0.5)
    places = np.searchsorted(cumulative_weight, middles)
    return order[places], weight_of_quantile


def _likelihoods(logits, codes, weight, doubt):
    """Return for each of m floors the largest log-likelihood in nats, (m,), of its
    logits over all temperatures.

    At the inverse temperature t, it is ``t * target_sum - sum_i w_i log(sum_k exp(t
    x_ik))`` with ``target_sum = sum_ik w_i y_ik x_ik`` for logits x and targets y.
    `logits` (K, m, n) are overwritten; `doubt` (n,) is the share of a row's target that
    is spread over the other classes.
    """
    xp = namespace_of(logits)
    n_classes = logits.shape[0]
    logits -= xp.max(logits, axis=0)
    # The target of a row is `other_target` for every class, and `own_excess` more for
    # its own class: (n,) each.
    other_target = doubt / (n_classes - 1)
    own_excess = 1 - doubt - other_target
    n_floors = logits.shape[1]
    widest = widest_dtype(logits)
    own_logits = [true_entries(logits[:, m, :].T, codes) for m in range(n_floors)]
    own_logits = xp.stack(own_logits)  # (m, n)
    target_sum = xp.sum(logits, axis=0) @ (weight * other_target)
    target_sum += own_logits @ (weight * own_excess)
    target_sum, _ = as_array(target_sum)
    # Logits in units of the largest difference within a row: squares of large ones
    # would overflow.
    spread, _ = as_array(-xp.min(logits, axis=(0, 2)))
    scale = np.where(spread > 0, spread, 1)
    logits /= like(logits, scale[:, None])
    target_sum = target_sum / scale
    # Single precision finds a temperature to 1e-2 in half the time; the likelihood
    # there is computed in double.
    rough_logits = logits
    if n_classes > 2:
        rough_logits = cast(logits, np.float32)

    def derivatives(inverse):
        """Return the first and the second derivative (m,) of the loss of each floor at
        its inverse temperature (m,).

        The first is the sum over rows of the mean logit of a row under the softmax,
        less `target_sum`, the same under the targets. The second is the sum of the
        variances of the logits under the softmax.
        """
        # exp(t x) of all logits x, (K, m, n), each with the t of its floor
        factor = _with_dtype_of(rough_logits, inverse[:, None])
        exponentials = exponential(xp, factor * rough_logits)
        total = xp.sum(exponentials, axis=0)  # over the classes
        # The same memory then holds x exp(t x), and x^2 exp(t x).
        moments = exponentials
        moments *= rough_logits
        mean = xp.sum(moments, axis=0) / total
        moments *= rough_logits
        variance = xp.sum(moments, axis=0) / total - mean**2
        # a variance of rounding alone may be below 0
        variance = xp.where(variance > 0, variance, xp.zeros_like(variance))
        # the sums over the rows, (m,)
        mean_sum, _ = as_array(cast(mean, widest) @ weight)
        variance_sum, _ = as_array(cast(variance, widest) @ weight)
        return mean_sum - target_sum, variance_sum

    # The search starts at temperature 1, which is `spread` for logits divided by it.
    inverse = minimise_convex(derivatives, spread, _RELATIVE_BOUNDS, _TOLERANCE)
    likelihoods = exponential(xp, _with_dtype_of(logits, inverse[:, None]) * logits)
    log_totals = xp.log(xp.sum(likelihoods, axis=0))  # (m, n)
    log_total, _ = as_array(log_totals @ weight)
    return inverse * target_sum - log_total


def _with_dtype_of(array, values):
    """Return NumPy's values in the floating type of an array, where it is."""
    if namespace_of(array) is np:
        return values.astype(array.dtype)
    return namespace_of(array).astype(like(array, values), array.dtype)
