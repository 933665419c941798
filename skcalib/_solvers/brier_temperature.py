"""The inverse temperature of least Brier score: the least of several minima."""

import numpy as np

from skcalib._rows.blocks import row_blocks
from skcalib._rows.condensed import condensed
from skcalib._solvers.inverse_temperature import RELATIVE_BOUNDS, largest_spread
from skcalib._solvers.newton import minimise_convex

_SAMPLE_LOGITS = 1_000_000  # that give the score at these octaves of 1 / (largest spread of a row of logits)
_OCTAVES = (-6, 20)
_GOOD, _MOST_CANDIDATES = 0.1, 6  # minima there, up to this share of the range above the least, that are refined


def fit_brier_temperature(logits, codes, sample_weight=None):
    """Return the inverse temperature of least Brier score, which may have several minima.

    A sample of the rows gives the score at every half octave; from each good minimum there Newton's steps follow the
    derivative over all rows to 0, and the least of what they find is taken. For many rows of two classes that is done
    on condensed rows, and all rows have the last steps.
    """
    if largest_spread(logits) == 0:
        return 1.0
    if logits.shape[1] == 2:
        few, is_second, weight = condensed(
            np.subtract(logits[:, 1], logits[:, 0], dtype=np.float64), codes == 1, sample_weight
        )
        if len(few) < len(logits):
            pairs = np.column_stack((np.zeros_like(few), few))
            start, bounds = _least_minimum(pairs, is_second.astype(np.intp), weight)
            score = _BrierScore(logits, codes, sample_weight)
            return float(minimise_convex(score.derivatives, np.array([start]), bounds)[0])
    return _least_minimum(logits, codes, sample_weight)[0]


def _least_minimum(logits, codes, sample_weight):
    """Return the inverse temperature of least Brier score, and a lower and an upper bound of that minimum."""
    spread = largest_spread(logits)
    every = slice(None, None, max(logits.size // _SAMPLE_LOGITS, 1))
    sample = _BrierScore(logits[every], codes[every], None if sample_weight is None else sample_weight[every])
    grid = 2.0 ** (np.arange(2 * np.subtract(*_OCTAVES[::-1]) + 1) / 2 + _OCTAVES[0]) / spread
    scores = sample.at_half_octaves(grid)
    padded = np.pad(scores, 1, constant_values=np.inf)
    good = (scores <= padded[:-2]) & (scores <= padded[2:]) & (scores <= scores.min() + _GOOD * np.ptp(scores))
    candidates = np.flatnonzero(good)[np.argsort(scores[good], kind="stable")[:_MOST_CANDIDATES]]
    score = _BrierScore(logits, codes, sample_weight)
    lower = np.append(RELATIVE_BOUNDS[0] / spread, grid[:-2])[np.maximum(candidates - 1, 0)]
    upper = np.append(grid[2:], RELATIVE_BOUNDS[1] / spread)[np.minimum(candidates, len(grid) - 2)]
    found = [
        float(minimise_convex(score.derivatives, grid[[k]], bounds)[0])
        for k, *bounds in zip(candidates, lower, upper, strict=True)
    ]
    best = min(range(len(found)), key=lambda k: score(found[k])) if len(found) > 1 else 0
    return found[best], (lower[best], upper[best])


class _BrierScore:
    """The summed Brier score as a function of the inverse temperature."""

    def __init__(self, logits, codes, sample_weight):
        self.logits, self.codes = logits, codes
        self.weight = np.ones(len(codes)) if sample_weight is None else sample_weight / sample_weight.max()

    def __call__(self, inverse):
        """Return the score at one inverse temperature."""
        return sum(weight @ (_dot(p, p) - 2 * p[label] + 1) for p, _, label, weight in self._blocks(inverse))

    def at_half_octaves(self, grid):
        """Return the scores on a grid of factors of sqrt(2): squared probabilities are those an octave up."""
        # Two exponentials a logit in place of 53: a fit takes .4 to .9 of the time.
        scores = np.zeros(len(grid))
        for first in range(2):
            for p, _, label, weight in self._blocks(grid[first]):
                for k in range(first, len(grid), 2):
                    true = p[label]
                    p *= p
                    square = p.sum(axis=0)
                    scores[k] += weight @ (square - 2 * true + 1)
                    p /= square
        return scores

    def derivatives(self, inverse):
        """Return the first two derivatives of the score at the inverse temperature (1,).

        Those of a probability p are p d and p (d^2 - v): d is the deviation of the logit from its mean under the row's
        probabilities, v its variance.
        """
        slope, curvature = np.zeros(1), np.zeros(1)
        for p, logits, label, weight in self._blocks(inverse[0]):
            deviation = logits - _dot(p, logits)
            true, of_true = p[label], deviation[label]
            deviation *= p  # the derivative of p
            variance = _dot(deviation, logits)
            slope += 2 * (weight @ (_dot(p, deviation) - true * of_true))
            bend = 2 * _dot(deviation, deviation) - variance * _dot(p, p)
            curvature += 2 * (weight @ (bend - true * (of_true**2 - variance)))
        return slope, curvature

    def _blocks(self, inverse):
        """Yield probabilities and logits (K, m), the place of each label, and weights."""
        for rows in row_blocks(*self.logits.shape):
            logits = np.ascontiguousarray(self.logits[rows].T, dtype=np.float64)
            logits -= logits.max(axis=0)
            p = np.exp(inverse * logits)
            p /= p.sum(axis=0)
            yield p, logits, (self.codes[rows], np.arange(p.shape[1])), self.weight[rows]


def _dot(a, b):
    """Return the sums over the classes of products (K, m)."""
    return np.einsum("kn,kn->n", a, b)
