"""Which groups of a `GroupwiseRecalibrator` are fitted together, and to which rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skcalib._fitting.wrapped import design_parameters, fitted_clone
from skcalib._rows.blocks import taken

__all__ = ["PartRows", "parts_of_groups"]


def parts_of_groups(sizes, min_size, residual_sums=None):
    """Return the number of the part (n_groups,) with which each group is fitted, -1 for
    groups that use the pooled fit.

    Each group with a total weight in `sizes` (n_groups,) of at least `min_size` is a
    part. Small groups with similar weighted `residual_sums` (n_groups,) are merged,
    unless these are None.
    """
    is_large = (sizes >= min_size) & (sizes > 0)
    n_large = np.count_nonzero(is_large)
    part_of_group = np.full(len(sizes), -1)
    part_of_group[is_large] = np.arange(n_large)
    small = np.flatnonzero(~is_large & (sizes > 0))
    if residual_sums is None or sizes[small].sum() < min_size:
        return part_of_group
    # Small groups with similar mean residuals are merged. The means are shrunken toward
    # 0, as if each group had `min_size` more rows without a residual.
    shrunken = residual_sums[small] / (sizes[small] + min_size)
    small = small[np.argsort(shrunken, kind="stable")]
    part_of_group[small] = n_large + _merge_neighbours(sizes[small], min_size)
    return part_of_group


def _merge_neighbours(sizes, least):
    """Return each group's part (n_groups,): neighbours are merged until their `sizes`
    reach `least`, as all together must; those left over join the last part.
    """
    part = 0
    size_of_part = 0.0
    part_of_group = []
    for size in sizes:
        part_of_group.append(part)
        size_of_part += size
        if size_of_part >= least:
            part += 1
            size_of_part = 0.0
    last_part = part - 1
    return np.minimum(part_of_group, last_part)


class PartRows(NamedTuple):
    """The rows of one part: those with the indices `index` (n_part,) of all scores
    (n, C), labels `y` (n,), weights (n,) or None and codes of clusters (n,) or None.
    """

    scores: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray | None
    cluster: np.ndarray | None
    index: np.ndarray | slice

    @property
    def n_classes(self):
        """How many classes have rows."""
        return len(np.unique(self.y[self.index]))

    @property
    def clusters(self):
        """Codes of the clusters of those rows that have a weight."""
        cluster = self.cluster[self.index]
        if self.sample_weight is None:
            return cluster
        return cluster[self.sample_weight[self.index] > 0]

    @property
    def has_one_cluster(self):
        """Whether clusters were given, and these rows are of one of them."""
        return self.cluster is not None and np.ptp(self.clusters) == 0

    def fit(self, recalibrator):
        """Return a clone of a recalibrator, fitted to these rows; of one cluster, as if
        they were independent.
        """
        cluster = None
        if not self.has_one_cluster:
            cluster = taken(self.cluster, self.index)
        return fitted_clone(
            recalibrator,
            self.scores[self.index],
            self.y[self.index],
            taken(self.sample_weight, self.index),
            **design_parameters(recalibrator, importance=False, cluster=cluster),
        )
