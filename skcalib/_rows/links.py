"""Between probabilities and log-odds: one clipping constant, the same everywhere."""

import numpy as np
from scipy.special import expit, logsumexp

from skcalib._rows.blocks import few_columns_apart, row_blocks

# Probabilities are clipped to [2^-52, 1 - 2^-52] before they become log-odds, so that
# |log-odds| <= 36.04. Both ends: a float64 next to 0 may be 1e-300, whose complement is
# exactly 1.
PROBABILITY_CLIP = 2.0**-52
_FEW_VALUES = 1 << 10

# A logit that lies further below the largest of its row says that the class is
# impossible: exp(-745) is 0 in double precision. A limit as near as 36, the clipping
# constant, would remove a third of the entries of saturated networks.
LARGEST_GAP = 700.0

# Binary digits of a score that is rounded, of the 53 of a float64: the others are left
# to rounding errors.
_DIGITS = 36
_DROPPED = 53 - _DIGITS
# Smaller floats have fewer digits.
_SMALLEST_NORMAL = np.finfo(np.float64).smallest_normal


def clip_probability(probability):
    """Return probabilities as float64 inside [2^-52, 1 - 2^-52]."""
    probability = np.asarray(probability, dtype=np.float64)
    if probability.size > _FEW_VALUES:
        return np.clip(probability, PROBABILITY_CLIP, 1 - PROBABILITY_CLIP)
    # a third of the time of `clip` for one value
    return np.minimum(np.maximum(probability, PROBABILITY_CLIP), 1 - PROBABILITY_CLIP)


def row_sums(values):
    """Return the sums of the rows (n, 1): `einsum` takes a fifth to three quarters of
    the time of `sum`.
    """
    return np.einsum("nk->n", values)[:, None]


def row_log_sum_exp(logits):
    """Return the logarithm of the summed exponentials of each row of logits (n,), as
    float64: SciPy's takes three times as long.
    """
    largest = logits.max(axis=1, keepdims=True)
    likelihood = np.subtract(logits, largest, dtype=np.float64)
    np.exp(likelihood, out=likelihood)
    return np.log(np.einsum("nk->n", likelihood)) + largest[:, 0]


def row_softmax(logits):
    """Return the softmax of each row of logits (n, K) as float64 in [2^-52, 1 - 2^-52],
    with one temporary array.
    """
    if logits.shape[1] == 2:  # the logistic function of the difference
        difference = np.subtract(logits[:, 1], logits[:, 0], dtype=np.float64)
        probability = np.column_stack((expit(-difference), expit(difference)))
    else:
        probability = np.subtract(
            logits, logits.max(axis=1, keepdims=True), dtype=np.float64
        )
        np.exp(probability, out=probability)
        probability /= row_sums(probability)
    return np.clip(probability, PROBABILITY_CLIP, 1 - PROBABILITY_CLIP, out=probability)


def log_odds(probability, complement=None):
    """Return log(p / (1 - p)) of probabilities (n,), which are clipped.

    `complement` (n,) is 1 - p if it is known more exactly than the subtraction gives
    it, which loses digits next to p = 1.
    """
    out = np.empty(np.shape(probability))
    for rows in row_blocks(len(out)):
        clipped = clip_probability(probability[rows])
        block = np.log(clipped, out=out[rows])
        if complement is None:
            np.negative(clipped, out=clipped)
            block -= np.log1p(clipped, out=clipped)
        else:
            block -= np.log(clip_probability(complement[rows]))
    return out


def odds_of_two(probabilities):
    """Return the odds (n,) of the second of two classes, from the probabilities (n, 2)
    of both, of which none counts less than 2^-52.
    """
    odds = np.maximum(probabilities[:, 1], PROBABILITY_CLIP)
    odds /= np.maximum(probabilities[:, 0], PROBABILITY_CLIP)
    return odds


def log_odds_of_two(probabilities):
    """Return the log-odds (n,) of the second of two classes, from the probabilities
    (n, 2) of both, of which none counts less than 2^-52. One logarithm is enough.
    """
    odds = odds_of_two(probabilities)
    return np.log(odds, out=odds)


def two_class_log_odds(scores, input):
    """Return the log-odds (n,) of the second of two classes, from scores (n, 1) or
    (n, 2) that are probabilities or logits, as `input` says.
    """
    second = scores[:, -1]
    first = None
    if scores.shape[1] == 2:
        first = scores[:, 0]
    if input == "probability":
        return log_odds(second, first)
    if first is None:
        first = 0  # one column of logits is the log-odds
    return np.subtract(second, first, dtype=np.float64)


def log_odds_against_rest(probabilities):
    """Return a function for one-against-rest log-odds: it takes one probability of each
    row (n,), such as a column of `probabilities` (n, K), and returns its log-odds (n,)
    against the sum of the others.

    The rest is summed from the other probabilities, after clipping: 1 - p would lose
    digits if p is large, and would differ between logits and their probabilities.
    """
    # By row: the sum of all probabilities, and of those that are at most 1/2.
    total = np.empty(len(probabilities))
    small = np.empty(len(probabilities))
    for rows in row_blocks(*probabilities.shape):
        block = clip_probability(probabilities[rows])
        total[rows] = row_sums(block)[:, 0]
        block[block > 0.5] = 0
        small[rows] = row_sums(block)[:, 0]

    def against_rest(column):
        """Return the log-odds (n,) of one probability of each row."""
        # Above 1/2 it is the only such probability of its row: the rest are the small
        # ones, whose sum loses no digits.
        rest = np.where(column > 0.5, small, total - column)
        return log_odds(column, rest)

    return against_rest


def log_probability(probability):
    """Return log(p) of probabilities, which are clipped: logits, up to a constant for
    each row.
    """
    return np.log(clip_probability(probability))


def impossible(logits, largest_gap=LARGEST_GAP):
    """Return which classes are impossible in their rows (n, K), None if there are none.

    A class is impossible if its logit is -inf, or so far below the largest of its row
    that its probability is no number of double precision. A mask of -10,000, or of the
    smallest number of single precision, says the same as -inf. One column of log-odds
    has no impossible class. With an infinite `largest_gap` only -inf is impossible.
    """
    if logits.shape[1] == 1:
        return None
    is_impossible = None
    for rows in row_blocks(*logits.shape):
        block = few_columns_apart(logits[rows])
        smallest = block.min(axis=1)
        # Mostly the smallest logit of every row is possible, and so are all others.
        if largest_gap == np.inf:
            if not np.isneginf(smallest).any():
                continue
            impossible_here = np.isneginf(block)
        else:
            largest = block.max(axis=1)
            lowest_possible = np.subtract(largest, largest_gap, dtype=np.float64)
            if not (smallest < lowest_possible).any():
                continue
            impossible_here = block < lowest_possible[:, None]
        if is_impossible is None:
            is_impossible = np.zeros(logits.shape, dtype=bool)
        is_impossible[rows] = impossible_here
    return is_impossible


def impossible_at_clip(logits, is_impossible):
    """Return logits (n, K) in which impossible classes have the logit that gives them
    the probability 2^-52.

    Methods that do not support a logit of -inf get these logits.

    Parameters
    ----------
    logits : ndarray of shape (n, K)
        Logits.
    is_impossible : ndarray of bool, shape (n, K), or None
        The classes whose logits are replaced; None for none.
    """
    if is_impossible is None:
        return logits
    possible_logits = np.where(is_impossible, -np.inf, logits).astype(np.float64)
    # A class of logit z has the probability exp(z - log_total).
    log_total = logsumexp(possible_logits, axis=1, keepdims=True)
    return np.where(is_impossible, log_total + np.log(PROBABILITY_CLIP), logits)


def rounded(scores):
    """Return scores as float64, rounded to 36 binary digits.

    The same score, computed in two ways, may differ in the last of its 53 digits. After
    rounding both are equal, as they must be for a map that is a step function.
    """
    scores = np.array(scores, dtype=np.float64)
    sizes = np.abs(scores)
    is_subnormal = None
    if sizes.min(initial=np.inf) < _SMALLEST_NORMAL:  # 0, or a subnormal number
        is_subnormal = (sizes < _SMALLEST_NORMAL) & (sizes != 0)
    if is_subnormal is not None and is_subnormal.any():
        # Subnormal numbers have fewer digits, so that the bits below do not apply.
        scores[is_subnormal] = _rounded_digits(scores[is_subnormal])
        scores[~is_subnormal] = rounded(scores[~is_subnormal])
        return scores
    # Half of the last kept digit is added to the bits of each float, and the dropped
    # bits are set to 0. If the last kept digit is even, one bit less than half is
    # added: so a tie is rounded to the even digit.
    bits = scores.view(np.int64)
    added = bits >> _DROPPED
    added &= 1  # whether the last kept digit is odd
    added += (1 << (_DROPPED - 1)) - 1
    bits += added
    bits &= -(1 << _DROPPED)
    return scores


def _rounded_digits(scores):
    """Return scores as `rounded` does, by their mantissas: also those that have fewer
    digits than others.
    """
    # score = mantissa * 2^exponent, with a mantissa from 1/2 to 1
    mantissa, exponent = np.frexp(scores)
    return np.ldexp(np.round(np.ldexp(mantissa, _DIGITS)), exponent - _DIGITS)


def tied_where_rounded(scores):
    """Return scores (n,) in which those that are equal after rounding are made equal:
    all become the first of them in the order of the rows.
    """
    _, first, group = np.unique(rounded(scores), return_index=True, return_inverse=True)
    representatives = scores[first]
    return representatives[group]


def rounded_up_to(cuts):
    """Return for each cut the largest number x with `rounded(x)` at most the cut.

    With these numbers as cuts, a step function of rounded scores becomes the same
    function of the scores themselves. Rounding keeps `_DIGITS` binary digits, and
    rounds the middle between two such numbers to the one whose last digit is even.
    """
    mantissa, exponent = np.frexp(np.asarray(cuts, dtype=np.float64))
    # The cut is `digits`, a whole number, times 2^(exponent - _DIGITS). Numbers up to
    # the middle between it and the next such number are rounded to it.
    digits = np.floor(np.ldexp(mantissa, _DIGITS))
    middle = np.ldexp(digits + 0.5, exponent - _DIGITS)
    # The middle itself is rounded up if the digits are odd.
    is_middle_above = digits % 2 == 1
    largest = np.where(is_middle_above, np.nextafter(middle, -np.inf), middle)
    # 0 has no first digit to count digits from; no other number is rounded to it.
    return np.where(np.asarray(cuts) == 0, 0.0, largest)
