"""Base of the methods that predict one value per bin."""

from numbers import Real

import numpy as np
from scipy.special import expit

import skcalib.recalibrators._maps as nodes
from skcalib._defaults import ParameterHints
from skcalib._input.sklearn_private import HasMethods, Interval
from skcalib._rows.blocks import row_blocks
from skcalib.binning import EqualMass, check_binning
from skcalib.binning._lookup import BinLookup
from skcalib.recalibrators._attributes import check_bins
from skcalib.recalibrators._base import BinaryRecalibrator
from skcalib.recalibrators._map_forms import steps
from skcalib.recalibrators._splitting import split_rows

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

    _parameter_constraints = {
        **BinaryRecalibrator._parameter_constraints,
        "binning": [HasMethods("bin_edges"), Interval(Real, 1, None, closed="left"), None],
        "random_state": ["random_state"],
    }

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
        parts = split_rows(rows[1], fractions, self.random_state)
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
