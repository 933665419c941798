"""Inductive Venn-Abers prediction: two isotonic fits for each score, and the
probability between them.
"""

from __future__ import annotations

from numbers import Integral
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from skcalib._cells.columns import top_label
from skcalib._defaults import check_fitted
from skcalib._input.sklearn_private import Interval
from skcalib._intervals.one_probability.monotone import monotone
from skcalib._rows.sorting import DistinctScores
from skcalib.binning import EqualMass
from skcalib.binning._base import assign_bins
from skcalib.maps import just_below, step_function
from skcalib.maps.checks import check_lengths, knots, shares
from skcalib.recalibrators._binary import BinaryRecalibrator
from skcalib.recalibrators._isotonic import places_among_ranges


class VennAbers(BinaryRecalibrator):
    """Inductive Venn-Abers calibration: isotonic regression under both possible labels.

    If the new sample is added as a non-event, isotonic regression gives the probability
    p0; if it is added as an event, it gives p1. One of the two is perfectly calibrated,
    for any distribution [1]_. The prediction ``p1 / (1 - p0 + p1)`` lies between p0 and
    p1 and minimises the maximum regret in log-loss. It is never 0 or 1.

    Parameters
    ----------
    max_n_knots : int, default=None
        Number of cells of equal mass into which the scores are merged first, which
        makes the model smaller. With 300 cells, the predictions hardly change. None
        keeps every distinct score, which gives the exact predictions.
    multiclass : {"ovr", "top_label"}, default="ovr"
        For K > 2 classes, whether to calibrate each class against the rest, or only the
        confidence of the predicted class.
    normalize : bool, default=True
        Whether to normalise the K one-vs-rest probabilities to sum to 1.
    input : {"probability", "logit"}, default="probability"
        Scale of the scores. Only their order matters.
    classes : array-like, default=None
        Labels of the columns; required if a class is missing from the calibration set.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    provenance_ : dict
        Provenance of the fit: method, parameters, number of samples, events per class,
        versions, and a hash of the samples.
    score_knots_ : ndarray of shape (n_knots,)
        Scores at which the map jumps (with `max_n_knots`, the upper edges of the
        groups). For K > 2 classes, this and the next two attributes are lists with one
        entry per class.
    lower_probability_ : ndarray of shape (n_knots + 1,)
        p0 for scores below the first knot, followed by p0 for scores at or above each
        knot.
    upper_probability_ : ndarray of shape (n_knots + 1,)
        p1 for scores up to each knot, followed by p1 for scores above the last knot.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    skcalib.IsotonicCalibration : A non-decreasing map without a parametric form.
    skcalib.guarantees.event_frequency_interval : Intervals for event frequencies.

    Notes
    -----
    A fit takes O(n log n) time, and a prediction O(log n). The new sample counts as one
    sample; with `sample_weight`, the fit is equivalent to a fit to repeated samples.

    Cross-Venn-Abers prediction [2]_ merges the intervals of several folds. It is
    intended for a classifier that is trained on the other folds. For given scores, it
    has no advantage: in 222 experiments on real data with two classes, its mean
    log-loss is .3149 with five folds and .3146 with ten, compared with .3145 for this
    class. For K classes (one-vs-rest), its log-loss is worse.

    References
    ----------
    .. [1] Vovk and Petej (2014), Venn-Abers predictors.
    .. [2] Vovk, Petej and Fedorova (2015), Large-scale probabilistic predictors with
        and without guarantees of validity.

    Examples
    --------
    Samples with score s are events with probability s^2.

    >>> import numpy as np
    >>> from skcalib import VennAbers
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(1000)
    >>> y = rng.random(1000) < scores**2
    >>> model = VennAbers().fit(scores, y)
    >>> model.predict_proba([0.1, 0.5, 0.9])[:, 1].round(2).tolist()
    [0.02, 0.22, 0.81]
    >>> [bound.round(2).tolist() for bound in model.predict_pair([0.1, 0.5, 0.9])]
    [[0.0, 0.21, 0.8], [0.02, 0.22, 0.83]]

    The calibration set contains one sample of each label. A score between those of the
    two samples has the interval (0, 1) and the prediction 1/2.

    >>> from skcalib import VennAbers
    >>> model = VennAbers().fit([0.2, 0.8], [0, 1])
    >>> model.predict_proba([0.5]).tolist()
    [[0.5, 0.5]]
    >>> [bound.tolist() for bound in model.predict_pair([0.1, 0.2, 0.5])]
    [[0.0, 0.0, 0.0], [0.5, 0.5, 1.0]]
    """

    _parameter_constraints = {
        **BinaryRecalibrator._parameter_constraints,
        "max_n_knots": [Interval(Integral, 1, None, closed="left"), None],
    }

    _part_attributes = {
        "score_knots_": knots,
        "lower_probability_": shares,
        "upper_probability_": shares,
    }
    _needs_classes = "any"
    _scale = "given"
    _is_step_function = True

    # for two classes; a list with one entry per class for more
    score_knots_: np.ndarray
    lower_probability_: np.ndarray
    upper_probability_: np.ndarray

    def __init__(
        self,
        *,
        max_n_knots: int | None = None,
        multiclass: Literal["ovr", "top_label"] = "ovr",
        normalize: bool = True,
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.max_n_knots = max_n_knots
        self.multiclass = multiclass
        self.normalize = normalize
        self.input = input
        self.classes = classes

    def predict_pair(self, X: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return the isotonic probabilities (p0, p1) under each possible label.

        The pair says how far one more label moves the probability. It is no interval
        for the frequency of the event, which lies outside it more often than not: see
        `predict_interval`.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores.

        Returns
        -------
        lower, upper : ndarray of float64, shape (n,) or (n, n_classes)
            p0 and p1 of the positive class. For K > 2 classes, they are those of each
            class against the rest or, with ``multiclass="top_label"``, those of the
            predicted class, of shape (n,).

        Raises
        ------
        ValueError
            If scores are invalid or their number of columns differs from that in `fit`.
        """
        check_fitted(self)
        scores, _ = self._possible_scores(X)
        if len(self.classes_) == 2:
            return self._interval(self._binary_scores(scores))
        scores = self._class_probabilities(scores)
        to_scale = self._conversion_to_scale(scores)
        if self.multiclass == "top_label":
            _, confidence = top_label(scores)
            return self.estimators_[0]._interval(to_scale(confidence))
        lows = []
        highs = []
        for k, estimator in enumerate(self.estimators_):
            low, high = estimator._interval(to_scale(scores[:, k]))
            lows.append(low)
            highs.append(high)
        return np.column_stack(lows), np.column_stack(highs)

    def _fit_binary(self, scores, labels, sample_weight):
        """Compute, for every score at once, the values of isotonic regression with one
        row added there: an event gives the upper probability, a non-event the lower one
        (Vovk, Petej and Fedorova 2015). Between two scores they are those of the next
        above and below.
        """
        if self.max_n_knots is not None:
            scores = _upper_edges(scores, sample_weight, self.max_n_knots)
        table = DistinctScores.from_rows(scores, labels, sample_weight)
        # 1. `upper` (m + 1,): the upper probability at each of the m distinct scores,
        # then that above the last one, where the added event stands alone.
        upper = np.append(_isotonic_with_event(table.weight, table.positives), 1.0)
        # 2. `lower` (m + 1,): the lower probability below the first score, where the
        # added non-event stands alone, then that at each score. A non-event becomes an
        # event if the labels are swapped and the order of the scores is reversed.
        negatives = table.weight - table.positives
        mirrored = _isotonic_with_event(_reversed(table.weight), _reversed(negatives))
        lower = np.append(0.0, 1 - mirrored[::-1])
        # 3. Knots are the scores at which one of the two changes. With `max_n_knots`
        # all are kept: a new score is tied with the group that it falls into.
        is_knot = (np.diff(lower) != 0) | (np.diff(upper) != 0)
        if self.max_n_knots is not None:
            is_knot[:] = True
        self.score_knots_ = table.scores[is_knot]
        # The distinct score i has the entries lower[i + 1] and upper[i]. Those of knots
        # are kept, and the two beyond the scores: lower[0] and upper[m].
        self.lower_probability_ = lower[np.append(True, is_knot)]
        self.upper_probability_ = upper[np.append(is_knot, True)]
        # 4. Limits depend on the first and last score of each range of tied scores.
        first = table.scores
        if self.max_n_knots is not None:
            # Each group reaches from just above the last edge to its own edge.
            first = np.append(-np.inf, np.nextafter(first[:-1], np.inf))
        return monotone(
            first, table.scores, np.diff(table.weight), np.diff(table.positives)
        )

    def _limits_position(self, scores):
        return places_among_ranges(self._limits.state, scores)

    def _map(self, score):
        """Return the map: a step function with one step at each knot and one between
        each two. With `max_n_knots`, scores are tied with the next knot above, the
        upper edge of their group, with one step each.
        """
        lower = self.lower_probability_
        upper = self.upper_probability_
        knots = self.score_knots_
        check_lengths(self, len(knots) + 1, "lower_probability_", "upper_probability_")
        at_knots = _probability(lower[1:], upper[:-1])
        if self.max_n_knots is not None:
            # The last knot is infinity, which is no cut.
            return step_function(score, knots[:-1], at_knots)
        between = _probability(lower, upper)
        # Steps: below the first knot, at it, between it and the next one, and so on.
        cuts = np.column_stack((just_below(knots), knots)).ravel()
        values = np.column_stack((between[:-1], at_knots)).ravel()
        return step_function(score, cuts, np.append(values, between[-1]))

    def _check_attributes(self):
        """Raise a ValueError unless the fitted attributes, which were read from a JSON
        document, are consistent with each other.
        """
        has_groups = self.max_n_knots is not None
        is_open = len(self.score_knots_) > 0 and self.score_knots_[-1] == np.inf
        if has_groups != is_open:
            raise ValueError(
                "score_knots_ must end with infinity if and only if max_n_knots is"
                " given"
            )

    def _interval(self, scores):
        """Return the lower and the upper probability, (n,) each: isotonic regression
        with a non-event added, and with an event.
        """
        # The lower probability is entry k + 1 for a score at knot k, and entry k for
        # one between knots k - 1 and k; the upper one is entry k for both.
        n_below = np.searchsorted(self.score_knots_, scores, side="left")
        if self.max_n_knots is not None:
            # Every score is tied with the knot above it, the upper edge of its group.
            is_at_knot = np.ones(len(scores), dtype=bool)
        else:
            is_at_knot = np.append(self.score_knots_, np.inf)[n_below] == scores
        lower = self.lower_probability_[n_below + is_at_knot]
        return lower, self.upper_probability_[n_below]


def _probability(lower, upper):
    """Return the one probability between two that has the least regret in log-loss
    (Vovk, Petej and Fedorova 2015).
    """
    return upper / (1 - lower + upper)


def _upper_edges(scores, sample_weight, n_groups):
    """Return each score's upper edge in `n_groups` bins of equal total weight; infinity
    in the last bin.
    """
    edges = EqualMass(n_groups)._edges_of(
        scores, None, sample_weight, support=(-np.inf, np.inf)
    )
    upper_edges = edges[1:]
    return upper_edges[assign_bins(scores, edges)]


def _reversed(cumulative):
    """Return the cumulative sums (m + 1,) of the same terms in reverse order."""
    return cumulative[-1] - cumulative[::-1]


def _isotonic_with_event(weight, positives):
    """Return, for each of m distinct scores, the value there of isotonic regression
    with one event added at that score, (m,).

    `weight` and `positives` (m + 1,) are cumulative from 0 on: the points P_0, ..., P_m
    of the cumulative sum diagram. The fit has the slopes of the greatest convex
    function below them; scores with the same slope are a block.

    An event added at score i moves P_i, ..., P_m by (1, 1), and by the max-min formula
    the value at i is max over a < i of min over b >= i of slope(P_a, P_b + (1, 1)). It
    is enough that b runs over the ends of blocks: the value is at least the slope of
    i's block without the event, and a line so steep below the block ends to the right
    lies below all points there. Points before i's block lie above such a line, and do
    not matter for a. So the minimum over block ends b > a depends on a alone.
    """
    # 1. The blocks of isotonic regression without the event: block k consists of the
    # scores start[k], ..., end[k] - 1.
    frequency = np.diff(positives) / np.diff(weight)
    blocks = isotonic_regression(frequency, weights=np.diff(weight)).blocks
    start = blocks[:-1]
    end = blocks[1:]
    # 2. steepest(a) for the start of each block, and for now for all its points.
    block_numbers = np.arange(len(start))
    from_start = _least_slopes(start, block_numbers, weight, positives, end)
    steepest = np.repeat(from_start, end - start)
    # 3. Another point of the block can only have a larger value if it lies below the
    # line with that slope through the block's start. Few points do.
    block_of_point = np.repeat(block_numbers, end - start)
    rise = positives[:-1] - positives[start][block_of_point]
    run = weight[:-1] - weight[start][block_of_point]
    below = np.flatnonzero(rise < steepest * run)
    steepest[below] = _least_slopes(
        below, block_of_point[below], weight, positives, end
    )
    return np.maximum.accumulate(steepest)


def _least_slopes(points, block, weight, positives, end):
    """Return the least slope from some points (n_points,) of the cumulative sum diagram
    (see `_isotonic_with_event`) to the ends, moved by (1, 1), of their `block` and of
    those to the right. The last point of each block is `end` (n_blocks,).
    """
    end_weight = weight[end]
    end_positives = positives[end]
    point_weight = weight[points]
    point_positives = positives[points]

    def slope_to(chosen):
        """Return the slope from each point to the moved end of one block, whose number
        is in `chosen` (n_points,).
        """
        rise = end_positives[chosen] - point_positives + 1
        run = end_weight[chosen] - point_weight + 1
        return rise / run

    # The ends lie on a convex curve, so that the slope from a point first falls from
    # one end to the next, and then rises: it rises from the first block on whose
    # successor is steeper than the slope. Bisection finds that block.
    slope_of_next_block = np.diff(end_positives) / np.diff(end_weight)
    slope_of_next_block = np.append(slope_of_next_block, np.inf)
    low = block
    high = np.full(len(points), len(end) - 1)
    for _ in range(len(end).bit_length()):
        middle = (low + high) // 2
        rises = slope_of_next_block[middle] >= slope_to(middle)
        low = np.where(rises, low, np.minimum(middle + 1, high))
        high = np.where(rises, middle, high)
    return slope_to(low)
