"""Base of the methods that predict one value per bin."""

from numbers import Real

import numpy as np
from scipy.special import expit
from sklearn.utils import check_random_state

import skcalib.recalibrators._maps as nodes
from skcalib._defaults import ParameterHints
from skcalib._input.sklearn_private import HasMethods, Interval
from skcalib._input.warn import warn
from skcalib._rows.blocks import row_blocks
from skcalib.binning import EqualMass, check_binning
from skcalib.binning._base import BinLookup
from skcalib.recalibrators._attributes import check_bins
from skcalib.recalibrators._base import BinaryRecalibrator
from skcalib.recalibrators._map_forms import steps

BINNING = [HasMethods("bin_edges"), Interval(Real, 1, None, closed="left"), None]
# A difference between the parts' event frequencies beyond this many standard errors means rows that are sorted.
_SORTED_Z = 5.0

_SURE, _HALVINGS = 750.0, 80  # log-odds whose probability is 0 or 1; steps from there to neighbours in float64


class BinnedRecalibrator(ParameterHints, BinaryRecalibrator):
    """Base of the methods that predict one value per bin."""

    _default_objects = {"binning": lambda: EqualMass(10)}
    _hints = {
        "n_bins": (
            "binning=EqualMass(10) or another strategy of skcalib.binning; binning=10 means the same, and "
            "binning__n_bins=10 in set_params and searches"
        ),
        "strategy": 'binning=EqualMass(10) for "quantile", binning=EqualWidth(10) for "uniform"',
    }
    _needs_classes = "any"

    def _strategy(self):
        return check_binning(self.binning, self._default_objects["binning"]())

    def _predict_binary(self, scores):
        lookup, probability = BinLookup(self.bin_edges_, scores), np.empty(len(scores))
        for rows in row_blocks(len(scores)):
            probability[rows] = self.bin_values_[lookup(scores[rows])]
        return probability

    def _split(self, fractions, n_parts, *rows):
        """Return (scores, labels, weights) of the rows of each step of a fit: the same for all without fractions."""
        if fractions is None:
            return [rows] * n_parts
        parts = _split_rows(rows[1], fractions, self.random_state)
        return [tuple(None if array is None else array[part] for array in rows) for part in parts]

    def _check_attributes(self):
        check_bins(self)

    def _map(self, score):
        cuts = self.bin_edges_[1:-1]
        if isinstance(score, nodes.Expit):  # cuts of the log-odds themselves: engines round EXP in other ways
            score, cuts = score.of, _log_odds_up_to(cuts)
        return steps(score, cuts, self.bin_values_)


def _log_odds_up_to(probabilities):
    """Return the greatest log-odds whose probability, as `expit` rounds it, is at most each given one."""
    low, high = np.full((2, len(probabilities)), [[-_SURE], [_SURE]])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_up_to = expit(middle) <= probabilities
        low, high = np.where(is_up_to, middle, low), np.where(is_up_to, high, middle)
    return low


def _split_rows(labels, fractions, random_state=None):
    """Return the row indices of consecutive parts of the sample, shuffled first if `random_state` is given.

    Parameters
    ----------
    labels : ndarray of bool, shape (n,)
        Labels, to see whether the rows are in an order that a split must not have.
    fractions : tuple of float
        Shares of the parts, which sum to 1.
    random_state : int, RandomState or None, default=None
        None takes the rows in the order in which they come.

    Returns
    -------
    parts : list of ndarray of int
        Indices of each part, every part with at least one row.

    Raises
    ------
    ValueError
        If the fractions are not positive or do not sum to 1, or there are fewer rows than parts.
    """
    n_rows = len(labels)
    if not all(isinstance(part, Real) and part > 0 for part in fractions) or abs(sum(fractions) - 1) > 1e-9:
        raise ValueError(f"sample_split must give positive fractions that sum to 1, found {fractions!r}.")
    if n_rows < len(fractions):
        raise ValueError(f"A split into {len(fractions)} parts needs at least as many rows, found {n_rows}.")
    ends = np.rint(np.cumsum(fractions)[:-1] * n_rows).astype(int)
    ends = np.clip(ends, np.arange(1, len(fractions)), n_rows - np.arange(len(fractions) - 1, 0, -1))
    order = np.arange(n_rows) if random_state is None else check_random_state(random_state).permutation(n_rows)
    if random_state is None:
        _warn_if_sorted(labels, ends[0])
    return np.split(order, ends)


def _warn_if_sorted(labels, end):
    first, rest = labels[:end].mean(), labels[end:].mean()
    pooled = labels.mean()
    standard_error = np.sqrt(pooled * (1 - pooled) * (1 / end + 1 / (len(labels) - end)))
    if abs(first - rest) > _SORTED_Z * standard_error:
        warn(
            f"The event frequency is {first:.3g} in the first part of the rows and {rest:.3g} in the others: they "
            "seem to be sorted, which a sample split must not see. Shuffle them, or set random_state to an int."
        )
