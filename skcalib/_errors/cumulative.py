"""The cumulative differences of labels and scores: Kolmogorov-Smirnov and Kuiper."""

import numpy as np

from skcalib._errors.power import Power


class KolmogorovSmirnovPower(Power):
    """The largest absolute sum of w (y - s) over the scores up to one of them (Gupta et al., Eq. 5)."""

    def power(self, frequency):
        """See `Power`."""
        return self._of(np.cumsum(self.share * (frequency - self.scores), axis=-1))

    @property
    def observed(self):
        """The power of the labels, in fewer passes over the rows."""
        residuals = self.cells.weighted_label - self.cells.weighted_score
        return float(self._of(np.cumsum(residuals, out=residuals)) / self.weight.sum())

    def _of(self, sums):
        return np.maximum(sums.max(axis=-1), -sums.min(axis=-1))


class KuiperPower(KolmogorovSmirnovPower):
    """The range of these sums (Arrieta-Ibarra et al., ECCE-R)."""

    def _of(self, sums):
        return range_of(sums)


def range_of(sums):
    """Return the range of cumulative sums (..., m) that begin at 0."""
    return np.maximum(sums.max(axis=-1), 0) - np.minimum(sums.min(axis=-1), 0)
