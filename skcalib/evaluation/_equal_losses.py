"""The hypothesis that two models have the same expected loss in each sample, and what
few events say about it.
"""

from dataclasses import dataclass

import numpy as np

from skcalib._errors.proper_scores import losses_by_label
from skcalib._intervals.few_events import (
    FEWEST_FOR_NORMAL,
    FEWEST_FOR_SPREAD,
    effective_events,
    sums_of_drawn_labels,
    two_sided_pvalue,
)
from skcalib._intervals.influence import normal_pvalue
from skcalib._rows.blocks import weights_or_ones

# Labels that are drawn in place of a normal distribution: more are as good as normal.
_MOST_DRAWN = 10_000


@dataclass(frozen=True)
class EqualLosses:
    """Samples of two models, with labels under the hypothesis of equal losses.

    Parameters
    ----------
    probability : ndarray of shape (n, K)
        A distribution of the labels between those of both models, under which their
        expected losses are equal. For two classes with the loss differences D1 with and
        D0 without the event, the event has the probability -D0 / (D1 - D0).
    difference : ndarray of shape (n, K)
        Loss of the first model less that of the second, by label.
    codes : ndarray of int, shape (n,)
        The observed labels, as columns.
    influence : Influence
        Weights and clusters of the samples.
    """

    probability: np.ndarray
    difference: np.ndarray
    codes: np.ndarray
    influence: object

    @classmethod
    def of(cls, name, first, second, influence):
        """Return the hypothesis for two `ScoredLabels` of the same samples and the name
        of a loss.
        """
        difference = losses_by_label(first.scores, name)
        difference -= losses_by_label(second.scores, name)
        first_scores = _by_class(first.scores)
        second_scores = _by_class(second.scores)
        # Losses are proper: the first model's labels favour it, and the second's the
        # second model. Between them lies a mixture that favours none.
        favour = -np.vecdot(first_scores, difference)
        against = np.vecdot(second_scores, difference)
        total = favour + against
        share = np.full(len(total), 0.5)
        np.divide(favour, total, out=share, where=total > 0)
        share = np.clip(share, 0, 1)[:, None]
        probability = (1 - share) * first_scores + share * second_scores
        codes = first.labels.astype(np.intp)
        return cls(probability, difference, codes, influence)

    @property
    def _weight(self):
        """The weights (n,), 1 where there are none."""
        return weights_or_ones(self.influence.weight, len(self.codes))

    def _moment(self, power):
        """Return the sum over samples of an expected power of what they add to the sum
        of weighted loss differences.
        """
        weight = self._weight
        if self.influence.importance:
            weight = weight**power
        return float(weight @ np.vecdot(self.probability, self.difference**power))

    @property
    def variance(self):
        """Variance of the sum of weighted loss differences."""
        return self._moment(2)

    def expected_events(self):
        """Return the expected number of events on which that variance rests: of those
        that all change the difference alike, as many as are expected.

        It is the squared variance over the expected sum of fourth powers.
        """
        fourth = self._moment(4)
        if fourth == 0:
            return np.inf
        return self.variance**2 / fourth

    def observed_events(self):
        """Return how many independent samples the rarer label is worth."""
        return _rarer_label(self.codes, self.influence)

    @property
    def is_unequal(self):
        """Whether rows are dependent, or count unequally, so that the law of few events
        is unknown.
        """
        weight = self._weight
        unequal_weights = self.influence.importance and weight.min() < weight.max()
        return self.influence.cluster is not None or bool(unequal_weights)

    def why_no_limits(self):
        """Return why the observed spread gives no interval, else ""."""
        return why_too_few(self.observed_events(), self.is_unequal)

    def pvalue(self, mean_difference):
        """Return the p-value of equal losses for the mean difference of losses; None
        where there are enough events for the observed spread.
        """
        if self.is_unequal:
            return np.nan if self.why_no_limits() else None
        if self.expected_events() >= FEWEST_FOR_SPREAD:
            return None
        total = self._weight.sum()
        n_uncertain = self._weight @ (1 - self.probability.max(axis=1))
        is_few = self.expected_events() < FEWEST_FOR_NORMAL
        if not is_few or n_uncertain > _MOST_DRAWN:
            return normal_pvalue(mean_difference, self.variance / total**2)
        factor = 1.0
        copies = self.influence.weight
        if self.influence.importance:  # equal weights, which count no rows
            factor = self._weight[0]
            copies = None
        # In order, so that the draws do not depend on that of the rows.
        order = np.lexsort(self.difference.T)
        if copies is not None:
            copies = copies[order]
        drawn = sums_of_drawn_labels(
            self.probability[order],
            factor * self.difference[order],
            copies,
            np.random.default_rng(0),
        )
        return two_sided_pvalue(drawn, mean_difference * total)


def too_few_labels(labels, influence):
    """Return why labels, columns (n,), are too few of any but the commonest class for
    the observed spread of a loss, else "".

    `influence` is the `Influence` of the samples on the mean loss.
    """
    return why_too_few(_rarer_label(labels.astype(np.intp), influence), False)


def _rarer_label(codes, influence):
    """Return how many independent samples the rarer label is worth: of K classes, those
    that are not of the commonest. `codes` (n,) are columns, and `influence` knows
    weights and clusters.
    """
    weight = weights_or_ones(influence.weight, len(codes))
    is_other = codes != np.bincount(codes, weight).argmax()
    return effective_events(
        is_other,
        influence.weight,
        influence.importance,
        influence.cluster,
        residual=is_other - np.average(is_other, weights=weight),
    )


def why_too_few(observed, is_unequal):
    """Return why a number of observed events is too small for the observed spread of a
    difference, else "".

    `is_unequal` is whether samples are dependent or count unequally.
    """
    fewest = FEWEST_FOR_SPREAD if is_unequal else FEWEST_FOR_NORMAL
    if observed >= fewest:
        return ""
    return (
        f"the rarer label is worth {observed:.3g} independent samples, fewer than"
        f" {fewest:g}"
    )


@dataclass(frozen=True)
class EqualSquares:
    """The hypothesis that two models have the same squared calibration error.

    Parameters
    ----------
    observed : float
        How many independent samples the rarer label is worth.
    is_unequal : bool
        Whether samples are dependent or count unequally.
    """

    observed: float
    is_unequal: bool

    def why_no_limits(self):
        """Return why the observed spread gives no interval, else ""."""
        return why_too_few(self.observed, self.is_unequal)

    def pvalue(self, difference):
        """Return NaN where there are too few events, and else None: the observed spread
        decides.
        """
        return np.nan if self.why_no_limits() else None


def _by_class(scores):
    """Return scores (n,) of the event or (n, K) as columns, one for each class."""
    scores = scores.astype(np.float64)
    if scores.ndim == 1:
        return np.column_stack((1 - scores, scores))
    return scores
