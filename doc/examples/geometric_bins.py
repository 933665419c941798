"""Your own binning strategy: finer bins near 0, for rare events."""

import numpy as np

from skcalib.binning import BaseBinning


class GeometricBins(BaseBinning):
    """Edges at 1, ratio, ratio^2, ...; the lowest bin reaches down to 0."""

    def __init__(self, n_bins=10, ratio=0.5):
        self.n_bins = n_bins
        self.ratio = ratio

    def _edges(self, scores, y, sample_weight):
        return np.concatenate(
            ([0.0], self.ratio ** np.arange(self.n_bins - 1.0, -1.0, -1.0))
        )
