"""The error with the event frequency of each score taken over its neighbours."""

import numpy as np

from skcalib._errors.power import Power
from skcalib._input.scalars import check_int


class NeighborhoodPower(Power):
    """The mean over rows of |s_i - mean label of the neighbours of s_i|^p (Roelofs et al., Eq. 2)."""

    def __init__(self, cells, *, norm=1, n_neighbors=None):
        super().__init__(cells, norm=norm)
        self.scores = self.scores.astype(np.float64)
        cumulative = np.append(0, np.cumsum(self.weight))
        n_neighbors = _resolved(n_neighbors, cumulative[-1])
        self.left, self.right = _nearest(self.scores, cumulative, n_neighbors)
        self.near = cumulative[self.right] - cumulative[self.left]

    def power(self, frequency):
        """See `Power`."""
        positives = np.zeros((*frequency.shape[:-1], len(self.weight) + 1))
        np.cumsum(self.weight * frequency, axis=-1, out=positives[..., 1:])
        return self.norm_of(np.abs((positives[..., self.right] - positives[..., self.left]) / self.near - self.scores))


def _resolved(n_neighbors, n_rows):
    """Return the number of neighbours that `n_neighbors` means for this number of rows."""
    if n_neighbors is None:
        return min(np.ceil(np.sqrt(n_rows)), n_rows)  # weights may add up to less than 1
    return check_int(n_neighbors, "n_neighbors", maximum=n_rows)


def _nearest(distinct, cumulative, n_neighbors):
    """Return for each distinct score the range [left, right) of those within the least distance that holds enough."""
    own = np.arange(len(distinct))
    # Narrowest window from each left end that is heavy enough: its right end, infinity where there is none.
    end = np.searchsorted(cumulative, cumulative[:-1] + n_neighbors, side="left") - 1
    end_score = np.append(distinct, np.inf)[end]
    start = _first_true(own, lambda a: end_score[a] - distinct >= distinct - distinct[a])
    wider = np.where(start > 0, distinct - distinct[start - 1], np.inf)
    radius = np.minimum(end_score[start] - distinct, wider)
    left = _first_true(own, lambda a: distinct - distinct[a] <= radius)
    beyond = _first_true(own[::-1], lambda b: distinct[len(own) - 1 - b] - distinct <= radius)
    return left, len(own) - beyond


def _first_true(highest, holds):
    """Return, row by row, the first index in [0, highest] where `holds`; it does at `highest` and from then on."""
    low, high = np.full_like(highest, -1), highest.copy()
    while np.any(high - low > 1):
        middle = np.maximum((low + high) // 2, 0)
        true = holds(middle)
        low, high = np.where(true, low, middle), np.where(true, middle, high)
    return high
