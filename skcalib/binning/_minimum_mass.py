"""Bins of another strategy, merged until each contains enough samples."""

from __future__ import annotations

import numpy as np

from skcalib._input.scalars import check_number
from skcalib.binning._base import WEIGHT_TOLERANCE, BaseBinning, assign_bins
from skcalib.binning._equal_mass import check_binning
from skcalib.binning._equal_width import EqualWidth


class MinimumMass(BaseBinning):
    """Bins of another strategy, merged until each contains enough samples.

    Starting from the left, a bin is closed as soon as its total weight reaches
    `min_weight`; the remainder at the right end is added to the last bin. With
    equal-width bins, the result is a hybrid of equal-width and equal-mass bins, with
    fine bins where there are many samples.

    Parameters
    ----------
    base : BaseBinning, int or None, default=None
        The strategy whose bins are merged; None means ``EqualWidth(15)``.
    min_weight : float, default=10
        Minimum number of samples (total weight) in each bin.

    See Also
    --------
    skcalib.binning.EqualMass : Bins with equal numbers of samples.
    skcalib.binning.EqualWidth : Bins of equal width.

    References
    ----------
    Kumar, Liang and Ma (2019), Verified uncertainty calibration, Appendix D.3.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.binning import EqualWidth, MinimumMass
    >>> MinimumMass(EqualWidth(4), min_weight=2).bin_edges(
    ...     np.array([0.1, 0.3, 0.9, 0.95])
    ... ).tolist()
    [0.0, 0.5, 1.0]
    """

    _default_objects = {"base": EqualWidth}

    def __init__(self, base: BaseBinning | int | None = None, min_weight: float = 10):
        self.base = base
        self.min_weight = min_weight

    @property
    def needs_unit_interval(self):
        """Whether the base strategy needs scores on [0, 1]."""
        return self._base().needs_unit_interval

    @property
    def needs_labels(self):
        """Whether the base strategy needs labels."""
        return self._base().needs_labels

    def _base(self):
        """Return the base strategy, as an object."""
        return check_binning(self.base, EqualWidth())

    def _edges(self, scores, y, sample_weight):
        """Return the base strategy's edges, merged from the left until each bin holds
        `min_weight`; a smaller rest joins the last bin.
        """
        check_number(self.min_weight, "min_weight", above=0, infinite=True)
        edges = self._base()._edges(scores, y, sample_weight)
        edges = np.asarray(edges, dtype=np.float64)
        bins = assign_bins(scores, edges)
        mass = np.bincount(bins, weights=sample_weight, minlength=len(edges) - 1)
        # A little less than the minimum, so that the rounding of sums moves no edge.
        needed = self.min_weight * (1 - WEIGHT_TOLERANCE)
        upper_edges = []  # of the merged bins
        held = 0.0  # weight above the last of these edges
        for upper_edge, weight in zip(edges[1:], mass, strict=True):
            held += weight
            if held >= needed:
                upper_edges.append(upper_edge)
                held = 0.0
        # The outer edge replaces the last of them: the rest joins the last merged bin.
        return np.array([edges[0], *upper_edges[:-1], edges[-1]])
