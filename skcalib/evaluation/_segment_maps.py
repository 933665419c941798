"""Recalibration of some segments, while the other samples keep their scores."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator

from skcalib.recalibrators import GroupwiseRecalibrator

# The group of all samples that have no map of their own.
OTHERS = ""


class SegmentRecalibrator(BaseEstimator):
    """Fits a map to each group but that of the others, which keep their scores.

    Parameters
    ----------
    recalibrator : recalibrator
        What is fitted to each group.
    """

    def __init__(self, recalibrator):
        self.recalibrator = recalibrator

    def fit(self, X, y, sample_weight=None, groups=None) -> Self:
        """Fit the maps to probabilities X and labels (n,); `groups` (n,) is `OTHERS`
        where scores are kept.
        """
        is_mapped = groups != OTHERS
        self.fitted_ = None
        if is_mapped.any() and len(np.unique(y[is_mapped])) > 1:
            weight = None if sample_weight is None else sample_weight[is_mapped]
            self.fitted_ = GroupwiseRecalibrator(self.recalibrator).fit(
                X[is_mapped], y[is_mapped], weight, groups=groups[is_mapped]
            )
        return self

    def predict_proba(self, X, groups):
        """Return the probabilities (n, n_classes)."""
        probabilities = np.array(X, dtype=np.float64)
        if probabilities.shape[1] == 1:
            probabilities = np.column_stack((1 - probabilities, probabilities))
        is_mapped = groups != OTHERS
        if self.fitted_ is not None and is_mapped.any():
            probabilities[is_mapped] = self.fitted_.predict_proba(
                X[is_mapped], groups=groups[is_mapped]
            )
        return probabilities
