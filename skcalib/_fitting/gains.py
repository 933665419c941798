"""What recalibrating gains on held-out samples, with its uncertainty."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from skcalib._errors.proper_scores import losses_by_label, losses_of_classes
from skcalib._inference.results import gain_estimate
from skcalib._input.device_scores import DeviceScores
from skcalib._intervals.influence import Influence, Spread
from skcalib._rows.blocks import taken, weights_or_ones

# The expected variance replaces the observed one if it exceeds this multiple of it: the
# samples then lack rare labels that are to be expected.
_UNSEEN = 4
ONE_LABEL = "all samples have the same label, so nothing can be fitted"


class Design(NamedTuple):
    """What decides how much independent information samples hold.

    `sample_weight` (n,) is positive, or None. Weights count samples unless
    `importance`. `cluster` (n,) holds codes from 0 on, or is None.
    """

    sample_weight: np.ndarray | None = None
    importance: bool = False
    cluster: np.ndarray | None = None

    def of_folds(self, folds):
        """Return the design of the held-out samples, one fold after the other."""
        rows = np.concatenate([fold.test for fold in folds])
        weight = None
        if self.sample_weight is not None:
            weight = np.concatenate([fold.test_weight for fold in folds])
        return Design(weight, self.importance, taken(self.cluster, rows))


class Gain(NamedTuple):
    """A mean gain and its `Spread`."""

    estimate: float
    spread: Spread

    def interval(self, confidence_level, *, loss="log", after="", before=""):
        """Return the gain with its limits, as an `IntervalEstimate` that says whether
        recalibrating, or `after` instead of `before`, reduces the `loss`.
        """
        width, reason = 0.0, ""
        if self != NO_GAIN:
            width, reason = self.spread.half_width(confidence_level)
        return gain_estimate(
            self.estimate,
            self.estimate - width,
            self.estimate + width,
            confidence_level,
            reason=reason,
            loss=loss,
            after=after,
            before=before,
        )

    def pvalue(self, alternative="two-sided"):
        """Return the p-value of "there is no gain"; see `Spread.pvalue`."""
        return self.spread.pvalue(self.estimate, alternative)


# Of two that have the same loss in every sample.
NO_GAIN = Gain(0.0, Spread(standard_error=0.0, degrees=1.0))


def mean_gain(gains, design, variance_of_fits=0.0, expected_variance=0.0, reason=""):
    """Return the mean of the out-of-fold gains of samples (m,), a `Gain`.

    Parameters
    ----------
    gains : ndarray of shape (m,)
        Loss before minus loss after, of each held-out sample.
    design : Design
        Their weights and clusters.
    variance_of_fits : float
        Variance of the mean over refits, which is added; see `variance_of_fits`.
    expected_variance : float
        Variance of the mean if labels were drawn with the probabilities before; see
        `expected_variance`.
    reason : str
        Why there are no limits, if that is known beforehand.
    """
    estimate = float(np.average(gains, weights=design.sample_weight))
    error, degrees, too_few = Influence(gains - estimate, *design).spread()
    reason = reason or too_few
    if reason:
        return Gain(estimate, Spread(np.nan, np.nan, reason))
    variance = error**2
    if expected_variance > _UNSEEN * variance:
        # The observed gains vary much less than expected, as if rare labels were
        # missing. The expected variance is known, not estimated.
        variance = expected_variance
        degrees = np.inf
    error = float(np.sqrt(variance + variance_of_fits))
    if error == 0 and estimate == 0:
        return NO_GAIN
    return Gain(estimate, Spread(error, degrees))


def has_two_classes(codes):
    """Return whether codes (n,) have two different values: of one class alone nothing
    is learned.
    """
    return len(codes) > 0 and codes.min() < codes.max()


def unfitted_reason(codes, folds):
    """Return why a gain has no limits where the training samples of some folds have one
    class only, so that nothing is fitted to them; else an empty text.

    `codes` (n,) are the classes of all samples.
    """
    if not has_two_classes(codes):
        return ONE_LABEL
    n_unfitted = 0
    for fold in folds:
        n_unfitted += not has_two_classes(codes[fold.train])
    if n_unfitted == 0:
        return ""
    return (
        f"the training samples of {n_unfitted} of {len(folds)} folds have the same"
        " label, so nothing could be fitted to them"
    )


def variance_of_fits(gains, n_folds, design):
    """Return the variance of a mean gain that is due to the fits, by the jackknife.

    `gains` (n_fits, n) holds the gain of every sample under each fit, to all but one of
    `n_folds` folds. The jackknife variance of a sample's gain is n_folds - 1 times its
    variance over the fits; those of independent units are summed.
    """
    weight = weights_or_ones(design.sample_weight, gains.shape[1])
    if design.cluster is not None:
        unit_sums = [np.bincount(design.cluster, weight * gain) for gain in gains]
        unit_variance = np.var(unit_sums, axis=0)
    elif design.importance:
        unit_variance = weight**2 * gains.var(axis=0)
    else:
        # a row of weight w is w samples
        unit_variance = weight * gains.var(axis=0)
    return (n_folds - 1) * unit_variance.sum() / weight.sum() ** 2


def expected_variance(before, after, loss, design, label_weights=None):
    """Return the variance that the mean gain of probabilities `after` over `before`
    would have if labels were drawn with the probabilities `before`.

    It accounts for rare labels that the samples happen not to have: scores of .999 that
    were all right so far do not prove that 1 is better.

    Parameters
    ----------
    before, after : ndarray of shape (n,) or (n, n_classes)
        Probability of the event, or of each class; of classes also `DeviceScores`.
    loss : {"log", "brier"}
        Name of the loss.
    design : Design
        Weights of the samples.
    label_weights : LabelWeights, default=None
        What importance weights say about the labels; None if that is not known.
    """
    weight = weights_or_ones(design.sample_weight, len(before))
    factor = weight  # a row of weight w is w samples
    if design.importance:
        factor = weight**2
        if label_weights is not None:
            factor = weight * label_weights.other_or_same
    if isinstance(before, DeviceScores):
        variance = _expected_on_device(before, after, loss, factor)
    else:
        gains = losses_by_label(before, loss) - losses_by_label(after, loss)
        if before.ndim == 1:
            before = np.column_stack((1 - before, before))
        variance = factor @ _variance_by_row(np, before, gains)
    return float(variance / weight.sum() ** 2)


def _variance_by_row(xp, probability, gains):
    """Return the variance of each row's gain (m,), from the probabilities of its labels
    and the gain with each (m, K).
    """
    mean = xp.sum(probability * gains, axis=1)
    return xp.sum(probability * (gains - mean[:, None]) ** 2, axis=1)


def _expected_on_device(before, after, loss, factor):
    """Return the sum over rows of `factor` (n,) times the variance of the row's gain in
    loss, if labels are drawn with the probabilities `before`; `before` and `after` are
    `DeviceScores` (n, K).
    """
    xp = before.xp
    total = 0.0
    pairs = zip(before.blocks_to_add, after.blocks_to_add, strict=True)
    for (rows, first), (_, second) in pairs:
        first = xp.astype(first, before.sum_dtype)
        second = xp.astype(second, before.sum_dtype)
        gains = losses_of_classes(xp, first, loss) - losses_of_classes(xp, second, loss)
        variance = _variance_by_row(xp, first, gains)
        total += float(xp.sum(variance * before.moved(factor[rows])))
    return total


def standard_error(gain, level):
    """Return the standard error behind a gain's interval: its half-width over the
    normal quantile of its confidence level.
    """
    return (gain.high - gain.low) / (2 * ndtri((1 + level) / 2))
