"""Bins of equal width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from skcalib.binning._base import BaseBinning, resolve_n_bins


class EqualWidth(BaseBinning):
    """Bins of equal width on [0, 1].

    Parameters
    ----------
    n_bins : int, {"sqrt", "cube_root"} or callable, default=15
        Number of bins, or a rule for it: the square or cube root of the number of
        samples (rounded up), or a function of that number. With weights, the total
        weight is used instead.

    See Also
    --------
    skcalib.binning.EqualMass : Bins with equal numbers of samples.
    skcalib.binning.FixedEdges : Bins with given edges.
    skcalib.binning.MinimumMass : Merges bins until each contains enough samples.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks.

    Examples
    --------
    >>> from skcalib.binning import EqualWidth
    >>> EqualWidth(4).bin_edges([0.1, 0.9]).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """

    def __init__(
        self, n_bins: int | Literal["sqrt", "cube_root"] | Callable[[int], int] = 15
    ):
        self.n_bins = n_bins

    def _edges(self, scores, y, sample_weight):
        """Return the edges (n_bins + 1,) that divide [0, 1] evenly."""
        n_bins = resolve_n_bins(self.n_bins, len(scores), sample_weight)
        # `np.linspace`, bit by bit, in a quarter of its time; the last edge becomes 1
        return np.arange(n_bins + 1) * (1 / n_bins)
