"""Base of the methods that predict one value per bin."""

from numbers import Real

import numpy as np

from skcalib._defaults import ParameterHints
from skcalib._input.sklearn_private import HasMethods, Interval
from skcalib._rows.blocks import row_blocks
from skcalib.binning import EqualMass, check_binning
from skcalib.binning._lookup import BinLookup
from skcalib.recalibrators._attributes import check_bins
from skcalib.recalibrators._base import BinaryRecalibrator
from skcalib.recalibrators._map_forms import steps
from skcalib.recalibrators._splitting import split_rows


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
        return steps(score, self.bin_edges_[1:-1], self.bin_values_)
