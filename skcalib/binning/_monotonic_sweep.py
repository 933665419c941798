"""The most bins whose event frequencies rise with the score."""

import numpy as np

from skcalib.binning._base import BaseBinning, edges_above
from skcalib.binning._distinct_scores import DistinctScores
from skcalib.binning._equal_mass import EqualMass
from skcalib.binning._equal_width import EqualWidth
from skcalib.binning._sweep import EqualMassCuts, EqualWidthCuts, sweep


class MonotonicSweep(BaseBinning):
    """The most bins whose event frequencies still rise with the score.

    Starting from two bins, one bin more is tried as long as no bin has a lower event frequency than the one before.
    There are at most as many bins as distinct scores. Empty bins are ignored. Where the frequency rises from each
    distinct score to the next, equal-mass bins end as one per score. With these bins a binned error from few rows has
    less bias than with a fixed number of bins. It is still too large for a model that is calibrated or nearly so.

    Parameters
    ----------
    base : EqualMass or EqualWidth, default=None
        Where the bins are cut; None means ``EqualMass()``. Its `n_bins` is not used.

    See Also
    --------
    skcalib.binning.PoolAdjacentViolators : The bins of the isotonic fit.
    skcalib.metrics.sweep_calibration_error : The error in the most bins that stay increasing.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error estimation.

    Examples
    --------
    Frequencies 0 and 1/2 rise; of three bins the last one would have fallen from 1 to 0.

    >>> import numpy as np
    >>> from skcalib.binning import MonotonicSweep
    >>> scores, y = np.array([0.1, 0.2, 0.4, 0.5, 0.7, 0.8]), np.array([0, 0, 0, 1, 0, 0], dtype=bool)
    >>> MonotonicSweep().bin_edges(scores, y).round(6).tolist()
    [0.0, 0.45, 1.0]
    """

    needs_labels = True
    _default_objects = {"base": EqualMass}

    def __init__(self, base=None):
        self.base = base

    @property
    def needs_unit_interval(self):
        """Whether the base strategy needs scores on [0, 1]."""
        return cuts_of(self.base) is EqualWidthCuts

    def _sorts(self, scores):
        return True

    def _edges(self, scores, y, sample_weight):
        cuts = cuts_of(self.base)
        table = DistinctScores.from_rows(scores, y, sample_weight)
        n_bins, below = sweep(cuts(table))
        return np.linspace(0, 1, n_bins + 1) if cuts is EqualWidthCuts else edges_above(table.scores, below[1:-1] - 1)


def cuts_of(base):
    """Return the class of the cuts that a sweep with this base goes through."""
    for strategy, cuts in ((EqualMass, EqualMassCuts), (EqualWidth, EqualWidthCuts)):
        if isinstance(EqualMass() if base is None else base, strategy):
            return cuts
    raise TypeError(f"base of MonotonicSweep must be EqualMass() or EqualWidth(), found {base!r}.")
