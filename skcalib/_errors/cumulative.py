"""The cumulative differences of labels and scores: Kolmogorov-Smirnov and Kuiper."""

import numpy as np

from skcalib._errors.power import Power

__all__ = ["KolmogorovSmirnovPower", "KuiperPower"]


class KolmogorovSmirnovPower(Power):
    """The largest absolute sum of w (y - s) over the scores up to one of them (Gupta et al., Eq. 5)."""

    def power(self, frequency):
        """See `Power`."""
        high, low = self._extremes(frequency)
        return np.maximum(high, -low)

    def _extremes(self, frequency):
        sums = np.cumsum(self.share * (frequency - self.scores), axis=-1)
        return np.maximum(sums.max(axis=-1), 0), np.minimum(sums.min(axis=-1), 0)


class KuiperPower(KolmogorovSmirnovPower):
    """The range of these sums (Arrieta-Ibarra et al., ECCE-R)."""

    def power(self, frequency):
        """See `Power`."""
        high, low = self._extremes(frequency)
        return high - low
