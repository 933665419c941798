"""The hypothesis that two models have the same expected loss in each sample, and what
few events say about it.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skcalib._errors.proper_scores import losses_of_classes
from skcalib._input.device_scores import DeviceScores
from skcalib._input.tensors import as_array
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


class EqualLosses:
    """Samples of two models, with labels under the hypothesis of equal losses.

    Each sample has a distribution of its label between those of both models, under
    which their expected losses are equal. For two classes with the loss differences D1
    with and D0 without the event, the event has the probability p = -D0 / (D1 - D0).
    Where the weights w1 and w0 of both labels are known, it has the probability p w0 /
    (p w0 + (1 - p) w1) in the sample, and adds w1 D1.

    Parameters
    ----------
    name : {"brier", "log"}
        The loss.
    first, second : ScoredLabels
        The samples with the scores of either model.
    influence : Influence
        Weights and clusters of the samples.
    label_weights : LabelWeights or None
        What importance weights say about the labels; None if weights count samples.
    """

    def __init__(self, name, first, second, influence, label_weights):
        self.loss_name = name
        self._is_binary = first.is_binary
        self.label_weights = label_weights
        # Columns (n, K) for the classes, or scores on a device, which are converted
        # block by block.
        self.scores = (first.scores, second.scores)
        on_device = all(isinstance(scores, DeviceScores) for scores in self.scores)
        if not on_device or self._weights_depend_on_labels:
            self.scores = tuple(_by_class(np.asarray(s)) for s in self.scores)
        self.codes = first.labels.astype(np.intp)  # the class of each sample
        self.influence = influence

    @cached_property
    def _sums(self):
        """Sums over the samples and their copies, (3,): of the expected second and
        fourth power of the difference of losses, and of 1 less the largest probability.
        """
        first, second = self.scores
        copies = self._copies
        if self._weights_depend_on_labels:
            probability, difference = self._null_distribution_in_sample()
            return _moments(np, probability, difference) @ copies
        if not isinstance(first, DeviceScores):
            probability, difference = self._null_distribution(np, first, second)
            return _moments(np, probability, difference) @ copies
        xp, dtype = first.xp, first.sum_dtype
        sums = np.zeros(3)
        pairs = zip(first.blocks_to_add, second.blocks_to_add, strict=True)
        for (rows, block), (_, other) in pairs:
            probability, difference = self._null_distribution(
                xp, xp.astype(block, dtype), xp.astype(other, dtype)
            )
            moments = _moments(xp, probability, difference)
            block_sums, _ = as_array(moments @ first.moved(copies[rows]))
            sums += block_sums
        return sums

    def _null_distribution(self, xp, first, second):
        """Return the probabilities of the labels (m, K) under the hypothesis, and the
        losses by label (m, K) of the first model less those of the second, for their
        scores.
        """
        losses = losses_of_classes(xp, first, self.loss_name)
        difference = losses - losses_of_classes(xp, second, self.loss_name)
        if self._is_binary and self.loss_name == "brier":
            # The loss of one event is half the sum over both classes.
            difference = difference / 2
        # Proper losses favour a model whose probabilities are right. If labels follow
        # those of the first model, its expected loss is smaller by first_gain >= 0; if
        # they follow the second model, its loss is smaller by second_gain >= 0. A
        # mixture favours none of them: (1 - share) first_gain = share second_gain.
        first_gain = -xp.sum(first * difference, axis=1, keepdims=True)
        second_gain = xp.sum(second * difference, axis=1, keepdims=True)
        total = first_gain + second_gain
        is_positive = total > 0
        one = xp.ones_like(total)
        divisor = xp.where(is_positive, total, one)
        share = xp.where(is_positive, first_gain / divisor, one / 2)
        share = xp.clip(share, 0, 1)  # rounding may lead outside
        return (1 - share) * first + share * second, difference

    @property
    def _weights_depend_on_labels(self):
        """Whether the weights of both labels are known, and differ."""
        known = self.label_weights
        return known is not None and known.is_known and known.form != "constant"

    def _null_distribution_in_sample(self):
        """Return the labels' probabilities in the sample (n, K), and what each adds to
        the sum of weighted differences, but for copies.
        """
        first, second = (np.asarray(s, dtype=np.float64) for s in self.scores)
        probability, difference = self._null_distribution(np, first, second)
        if self._weights_depend_on_labels:
            of_event, with_event, without_event = self.label_weights.event_probability(
                probability[:, 1], self.codes
            )
            probability = _by_class(of_event)
            difference = difference * np.column_stack((without_event, with_event))
        elif self.label_weights is not None:
            difference = difference * self.influence.weight[0]  # equal weights
        return probability, difference

    @property
    def _copies(self):
        """How many samples each row stands for, (n,): 1 with importance weights."""
        weight = self.influence.weight
        if self.label_weights is not None:
            weight = None
        return weights_or_ones(weight, len(self.codes))

    def _moment(self, power):
        """Return the sum of an expected power, 2 or 4, of what samples add to the sum
        of weighted differences.
        """
        moment = self._sums[power // 2 - 1]
        if self.label_weights is not None and not self._weights_depend_on_labels:
            moment *= self.influence.weight[0] ** power  # equal weights
        return float(moment)

    @property
    def variance(self):
        """Variance of the sum of weighted loss differences."""
        return self._moment(2)

    def expected_events(self):
        """Return the effective number of events that determine the variance: the
        squared variance over the expected sum of fourth powers.

        It is the expected number of events if all change the difference equally.
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
        """Whether rows are dependent, or have importance weights that say nothing of
        the other labels, so that the law of few events is unknown.
        """
        known = self.label_weights
        is_unknown = known is not None and not known.is_known
        return self.influence.cluster is not None or is_unknown

    def why_no_limits(self):
        """Return why the observed spread gives no interval, else ""."""
        return why_too_few(self.observed_events(), self.is_unequal)

    def pvalue(self, mean_difference):
        """Return the p-value of equal losses for the mean difference of losses; None
        where there are enough events for the observed spread, NaN where there are too
        few for any test.
        """
        if self.is_unequal:  # dependent samples, or unequal weights
            return np.nan if self.why_no_limits() else None
        if self.expected_events() >= FEWEST_FOR_SPREAD:
            return None
        n_rows = len(self.codes)
        total = weights_or_ones(self.influence.weight, n_rows).sum()
        copies = self._copies
        n_uncertain = self._sums[2]  # the sum of 1 less the largest probability
        is_few = self.expected_events() < FEWEST_FOR_NORMAL
        if not is_few or n_uncertain > _MOST_DRAWN:
            return normal_pvalue(mean_difference, self.variance / total**2)
        # Sorted, so that the draws do not depend on the order of the rows.
        probability, difference = self._null_distribution_in_sample()
        order = np.lexsort(difference.T)
        drawn = sums_of_drawn_labels(
            probability[order],
            difference[order],
            copies[order],
            np.random.default_rng(0),
        )
        return two_sided_pvalue(drawn, mean_difference * total)


def _moments(xp, probability, difference):
    """Return the expected second and fourth power of each sample's difference, and 1
    less its largest probability, (3, m).
    """
    squares = difference**2
    return xp.stack(
        (
            xp.sum(probability * squares, axis=1),
            xp.sum(probability * squares**2, axis=1),
            1 - xp.max(probability, axis=1),
        )
    )


def too_few_labels(labels, influence, *, is_unknown=False):
    """Return why labels, columns (n,), are too few of any but the commonest class for
    the observed spread of a loss, else "".

    `influence` is the `Influence` of the samples on the mean loss, and `is_unknown`
    whether nothing is known of the loss.
    """
    return why_too_few(_rarer_label(labels.astype(np.intp), influence), is_unknown)


def _rarer_label(codes, influence):
    """Return how many independent samples the rarer label is worth: of K classes, those
    that are not of the commonest.
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

    `is_unequal` is whether samples are dependent, count unequally, or enter an unknown
    function.
    """
    fewest = FEWEST_FOR_SPREAD if is_unequal else FEWEST_FOR_NORMAL
    if observed >= fewest:
        return ""
    return (
        f"the rarer label amounts to {observed:.3g} independent samples, fewer than"
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
        reason = why_too_few(self.observed, self.is_unequal)
        if reason:
            return f"{reason}; no test of binned errors works with fewer"
        return ""

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
