"""Mean of a metric over new samples whose scores are distributed like the labelled
ones: a straight line in the score replaces the binned curve.
"""

import numpy as np
from scipy.special import kolmogorov

from skcalib._intervals.influence import Spread
from skcalib._rows.blocks import row_blocks, weights_or_ones

# Below this p-value the scores of labelled and new samples are taken to differ: the
# second where the bins would give no limits.
_LEAST_PVALUE = 0.05
_LEAST_PVALUE_WITHOUT_BINS = 0.001
# Fewer samples, labelled or new, show neither a slope nor a difference of scores.
_FEWEST_SAMPLES = 30


class TunedDifference:
    """The difference estimate, with predictions weighted by their power.

    For a metric that is the mean of ``A(s) + y B(s)``, labelled samples give the mean
    of z = y B(s), and all samples that of the prediction g = s B(s). The estimate is
    ``mean A(t) + mean z + lambda (mean g(t) - mean g(s))`` over new scores t and
    labelled scores s, with the slope lambda of z against g: 0 for useless scores, which
    then do no harm (Angelopoulos, Duchi and Zrnic 2023).

    Parameters
    ----------
    labelled : LabelledSamples
        The labelled samples.
    new_scores : ndarray of shape (n_new,)
        Scores of the new samples.

    Attributes
    ----------
    pvalue : float
        P-value of "labelled and new scores have the same distribution"
        (Kolmogorov-Smirnov); NaN if the estimate is not defined, with importance
        weights, clusters, one label only, or fewer than 30 labelled or new samples.
    """

    def __init__(self, labelled, new_scores):
        self._scores = labelled.scores
        self._events = labelled.events.astype(np.float64)
        self._weight = weights_or_ones(labelled.weight, len(self._scores))
        self._new_scores = new_scores
        self._total = self._weight.sum()
        self.pvalue = np.nan
        n_events = self._weight @ self._events
        if (
            labelled.cluster is None
            and not labelled.is_importance
            and min(self._total, len(new_scores)) >= _FEWEST_SAMPLES
            and 0 < n_events < self._total
        ):
            self.pvalue = _pvalue_of_same_scores(self._scores, self._weight, new_scores)

    def is_valid(self, has_bins):
        """Return whether labelled and new scores do not differ detectably; `has_bins`
        says whether the bins of the labelled scores give limits.
        """
        if has_bins:
            return self.pvalue >= _LEAST_PVALUE
        return self.pvalue >= _LEAST_PVALUE_WITHOUT_BINS

    def estimate(self, constant, slope, slope_of_labelled):
        """Return the estimate of the mean of ``constant + slope * label`` over the new
        samples, and its `Spread`; the standard error is 0 if a line predicts every
        label, which settles nothing.

        Parameters
        ----------
        constant, slope : ndarray of shape (n_new,)
            Terms of the metric at the new scores.
        slope_of_labelled : ndarray of shape (n,)
            The slope at the labelled scores.
        """
        n_new = len(slope)
        share = self._weight / self._total
        observed = slope_of_labelled * self._events
        prediction = slope_of_labelled * self._scores
        new_prediction = slope * self._new_scores
        # The slope of the regression of what was observed on what was predicted.
        centred = prediction - share @ prediction
        square = share @ centred**2
        factor = 0.0
        if square > 1e-12 * (share @ prediction**2):
            factor = share @ (centred * observed) / square
        mean_observed = share @ observed
        difference = new_prediction.mean() - share @ prediction
        estimate = constant.mean() + mean_observed + factor * difference
        # The estimate less the metric of the new samples is the mean residual of the
        # labelled samples less that of the new ones, and the error of the slope.
        residual = observed - mean_observed - factor * centred
        degrees = self._total - 2
        variance = self._weight @ residual**2 / degrees
        if variance <= 1e-20 * (share @ observed**2):  # 0 up to rounding
            variance = 0.0
        n_terms = 1 / self._total + 1 / n_new
        if factor != 0:
            n_terms += difference**2 / (square * self._total)
        return float(estimate), Spread(float(np.sqrt(variance * n_terms)), degrees)


def _pvalue_of_same_scores(scores, weight, new_scores):
    """Return the p-value of the two-sample Kolmogorov-Smirnov test that labelled and
    new scores have one distribution, by its distribution in large samples; the weights
    (n,) of the labelled ones count samples. Ties make it larger.
    """
    order = np.argsort(scores)
    sorted_scores = scores[order]
    sorted_new = np.sort(new_scores)
    cumulative = np.append(0.0, np.cumsum(weight[order]))
    del order  # as long as all rows, and not needed any more
    total = cumulative[-1]
    n_new = len(new_scores)
    distance = 0.0
    # Both distribution functions are compared at all scores of either sample.
    for all_points in (sorted_scores, sorted_new):
        for block in row_blocks(len(all_points)):
            points = all_points[block]
            n_labelled_below = np.searchsorted(sorted_scores, points, side="right")
            n_new_below = np.searchsorted(sorted_new, points, side="right")
            gaps = cumulative[n_labelled_below] / total - n_new_below / n_new
            distance = max(distance, float(np.abs(gaps).max()))
    return float(kolmogorov(distance * np.sqrt(total * n_new / (total + n_new))))
