"""What the limits of one probability are made of: the samples of a fit, and how many
they are worth.

Weights say how much a sample counts that was seen once: they add up to the number of
samples that they are worth.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skcalib._intervals.few_events import effective_events
from skcalib._rows.blocks import weights_or_ones


class LimitsMaker(NamedTuple):
    """How the state of limits, a dict of plain values and small arrays, is made of
    `Samples`. A fit that has limits returns one.

    ``keep(samples)`` returns the little of them that ``make(kept)`` needs: a fit keeps
    it until the limits are first asked for. Where a fit knows all samples but their
    clusters (see `limits_of_rows`), `keep` takes these.
    """

    keep: Callable
    make: Callable


class Samples(NamedTuple):
    """The samples of a problem: scores (n,) and boolean labels (n,), or logits (n, K)
    and the codes of the labels (n,); weights (n,) or None, and the code of each
    sample's cluster (n,) or None.
    """

    scores: np.ndarray
    labels: np.ndarray
    weight: np.ndarray | None
    cluster: np.ndarray | None

    @property
    def is_dependent(self):
        """Whether the samples have weights, or clusters."""
        return self.weight is not None or self.cluster is not None

    @property
    def worth_of_weight(self):
        """How many samples a weight of 1 is worth."""
        if self.weight is None:
            return 1.0
        return self.weight.sum() / np.sum(self.weight**2)

    @property
    def effective_weight(self):
        """Weights (n,) whose sum is the number of samples that they are worth."""
        return weights_or_ones(self.weight, len(self.labels)) * self.worth_of_weight

    def events(self, fitted):
        """Return how many independent samples the rarer of two labels is worth. Only
        clusters need the fitted probabilities (n,), whose residuals show how much their
        samples depend on each other; else they are None.
        """
        if not self.is_dependent:
            n_events = int(np.count_nonzero(self.labels))
            return float(min(n_events, len(self.labels) - n_events))
        residual = None if fitted is None else self.labels - fitted
        return effective_events(
            self.labels,
            self.weight,
            importance=True,
            cluster=self.cluster,
            residual=residual,
        )

    def design_effect(self, fitted):
        """Return the variance of the sum of the residuals, label less fitted
        probability (n,), from the sums of the clusters, divided by that of independent
        samples; at least 1.
        """
        if self.cluster is None:
            return 1.0
        weight = weights_or_ones(self.weight, len(self.labels))
        residual = weight * (self.labels - fitted)
        sums = np.bincount(self.cluster, residual)
        independent_variance = residual @ residual
        if independent_variance == 0:
            return 1.0
        n_clusters = np.count_nonzero(np.bincount(self.cluster))
        # n / (n - 1), since the mean of the sums is estimated as well
        variance = sums @ sums * n_clusters / (n_clusters - 1)
        return max(variance / independent_variance, 1.0)


def limits_of_rows(maker, rows):
    """Return a `LimitsMaker` whose `keep` takes the clusters (n,) of rows, or None, in
    place of `Samples`: all else is known.

    `maker` is the `LimitsMaker` of a fit; anything else, for a method that has no
    limits, gives None. `rows` are the scores, labels and weights; tensors, which stay
    where they are, give None, too.
    """
    scores, *_ = rows
    if not isinstance(maker, LimitsMaker) or not isinstance(scores, np.ndarray):
        return None

    def keep(cluster):
        """Return what `maker` keeps of the rows with their clusters."""
        return maker.keep(Samples(*rows, cluster))

    return maker._replace(keep=keep)


def widened_limits(low, high, probabilities):
    """Return limits, (n, 2) or (n, K, 2), widened to contain the calibrated
    probabilities (n, K), since they are limits about another fit than these.

    `low` and `high` are (n,) for the second of two classes, or (n, K).
    """
    if low.ndim == 1:
        probabilities = probabilities[:, 1]  # of the second class
    limits = np.empty((*low.shape, 2))
    np.minimum(low, probabilities, out=limits[..., 0])
    np.maximum(high, probabilities, out=limits[..., 1])
    return limits
