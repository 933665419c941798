"""Inductive Venn-Abers prediction: two isotonic fits for each score, and the
probability between them.
"""

from numbers import Integral
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from skcalib._cells.reductions import top_label
from skcalib._defaults import check_fitted
from skcalib._input.sklearn_private import Interval
from skcalib._rows.sorting import DistinctScores
from skcalib.binning import EqualMass
from skcalib.binning._base import assign_bins
from skcalib.maps import just_below, step_function
from skcalib.maps.checks import check_lengths, knots, shares
from skcalib.recalibrators._base import BinaryRecalibrator


class VennAbers(BinaryRecalibrator):
    """Inductive Venn-Abers calibration: isotonic regression under both possible labels.

    If the new sample is added as a non-event, isotonic regression gives the probability
    p0; if it is added as an event, it gives p1. One of the two is perfectly calibrated,
    for any distribution [1]_. The prediction ``p1 / (1 - p0 + p1)`` lies between p0 and
    p1 and minimises the maximum regret in log-loss. It is never 0 or 1.

    Parameters
    ----------
    max_n_knots : int, default=None
        Number of groups of equal mass into which the scores are pooled first, which
        makes the model smaller. With 300 groups, the predictions hardly change. None
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
    row; with `sample_weight`, the fit is equivalent to a fit to repeated rows.

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
    >>> [bound.round(2).tolist() for bound in model.predict_interval([0.1, 0.5, 0.9])]
    [[0.0, 0.21, 0.8], [0.02, 0.22, 0.83]]

    The calibration set contains one row of each label. A score between the two has the
    interval (0, 1) and the prediction 1/2.

    >>> from skcalib import VennAbers
    >>> model = VennAbers().fit([0.2, 0.8], [0, 1])
    >>> model.predict_proba([0.5]).tolist()
    [[0.5, 0.5]]
    >>> [bound.tolist() for bound in model.predict_interval([0.1, 0.2, 0.5])]
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

    def predict_interval(self, X: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return the isotonic probabilities (p0, p1) under each possible label.

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
        """Compute at once what isotonic regression would give each score with one row
        more, an event or a non-event (Vovk, Petej and Fedorova 2015).

        Between the fitted scores, the upper probability is that at the next score
        above, and the lower one that at the next score below.
        """
        if self.max_n_knots is not None:
            scores = _upper_edges(scores, sample_weight, self.max_n_knots)
        table = DistinctScores.from_rows(scores, labels, sample_weight)
        # m distinct scores; above the last one an event alone gives 1
        upper = np.append(_isotonic_with_event(table.weight, table.positives), 1.0)
        # A non-event at a score is an event where the labels and the order are
        # reversed; below the first score a non-event alone gives 0.
        negatives = table.weight - table.positives
        mirrored = _isotonic_with_event(_reversed(table.weight), _reversed(negatives))
        lower = np.append(0.0, 1 - mirrored[::-1])
        # Knots are the scores at which one of the two changes. Groups are all kept,
        # because a new score must be tied with its own group.
        is_knot = (np.diff(lower) != 0) | (np.diff(upper) != 0)
        if self.max_n_knots is not None:
            is_knot[:] = True
        self.score_knots_ = table.scores[is_knot]
        # Entry i + 1 of `lower` and entry i of `upper` belong to the distinct score i.
        # Those of knots are kept, with the first of `lower`, below all scores, and the
        # last of `upper`, above them.
        self.lower_probability_ = lower[np.append(True, is_knot)]
        self.upper_probability_ = upper[np.append(is_knot, True)]

    def _predict_binary(self, scores):
        """Return the event's probabilities (n,) for the scores (n,) of a binary
        problem.
        """
        return _probability(*self._interval(scores))

    def _map(self, score):
        """Return the node of a step at each knot and one between each two; with groups
        a score is tied with the knot above it.
        """
        lower = self.lower_probability_
        upper = self.upper_probability_
        knots = self.score_knots_
        check_lengths(self, len(knots) + 1, "lower_probability_", "upper_probability_")
        at_knots = _probability(lower[1:], upper[:-1])
        if self.max_n_knots is not None:
            # the last knot is infinite
            return step_function(score, knots[:-1], at_knots)
        between = _probability(lower, upper)
        # below the first knot, at it, between it and the next one, and so on
        cuts = np.column_stack((just_below(knots), knots)).ravel()
        values = np.column_stack((between[:-1], at_knots)).ravel()
        return step_function(score, cuts, np.append(values, between[-1]))

    def _check_attributes(self):
        """Raise a ValueError unless attributes that were read from a document fit
        together.
        """
        has_groups = self.max_n_knots is not None
        is_open = len(self.score_knots_) > 0 and self.score_knots_[-1] == np.inf
        if has_groups != is_open:
            raise ValueError(
                "score_knots_ must end with infinity if and only if max_n_knots is"
                " given"
            )

    def _interval(self, scores):
        """Return the probabilities (n,) of scores (n,) with a non-event added, and
        those with an event added.
        """
        # the number of knots below each score, and whether the next knot is reached
        n_below = np.searchsorted(self.score_knots_, scores, side="left")
        if self.max_n_knots is not None:
            # A group of scores is tied with its knot, the group's upper edge.
            is_reached = 1
        else:
            is_reached = np.append(self.score_knots_, np.inf)[n_below] == scores
        lower = self.lower_probability_[n_below + is_reached]
        return lower, self.upper_probability_[n_below]


def _probability(lower, upper):
    """Return the one probability between two that has the least regret in log-loss
    (Vovk, Petej and Fedorova 2015).
    """
    return upper / (1 - lower + upper)


def _upper_edges(scores, sample_weight, n_groups):
    """Return for each score (n,) the upper edge of its equal-mass group, infinite for
    the last group.
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
    """Return for each of m distinct scores the isotonic fit there to the sample with
    one event added at that score.

    `weight` and `positives` (m + 1,) are cumulative, from 0 on: the points P_0 ... P_m
    of the cumulative sum diagram. An event added at score i shifts the points i ... m
    by (1, 1), and the fit at i is, by the max-min formula,

        max over a < i of min over b >= i of slope(P_a, P_b + (1, 1)).

    That slope is at least the fit of i's block without the event. A line so steep
    supports the points from i on where it supports the convex minorant from the block's
    end on: b need only run over the ends of blocks. In the same way a need only run
    from the start of the block, since the points before it lie above such a line. So

        steepest(a) = min over block ends b > a of slope(P_a, P_b + (1, 1))

    depends on a alone, and the fit is its running maximum.
    """
    frequency = np.diff(positives) / np.diff(weight)
    blocks = isotonic_regression(frequency, weights=np.diff(weight)).blocks
    start = blocks[:-1]
    end = blocks[1:]
    size = end - start
    # steepest(a) of the starts of the blocks, and first the same for all their points
    numbers = np.arange(len(start))
    from_start = _tangent_slopes(start, numbers, weight, positives, end)
    steepest = np.repeat(from_start, size)
    # Inside a block a steeper tangent needs a point below the line of that slope
    # through the block's start.
    block = np.repeat(numbers, size)  # of each point
    rise = positives[:-1] - positives[start][block]
    run = weight[:-1] - weight[start][block]
    inside = np.flatnonzero(rise < steepest * run)
    steepest[inside] = _tangent_slopes(inside, block[inside], weight, positives, end)
    return np.maximum.accumulate(steepest)


def _tangent_slopes(points, block, weight, positives, end):
    """Return the least slope from each point to the shifted ends of its block and of
    those to the right of it, (n_points,).

    Along the ends, which are convex, that slope falls and then rises: it rises as soon
    as the next block is steeper.

    Parameters
    ----------
    points : ndarray of int, shape (n_points,)
        Indices of points of the cumulative sum diagram.
    block : ndarray of int, shape (n_points,)
        Number of the block of each point.
    weight, positives : ndarray of shape (m + 1,)
        The diagram: see `_isotonic_with_event`.
    end : ndarray of int, shape (n_blocks,)
        Indices of the points where the blocks end.
    """
    end_weight = weight[end]
    end_positives = positives[end]
    weight = weight[points]
    positives = positives[points]
    # the slope of the next block, none after the last
    slope_after = np.append(np.diff(end_positives) / np.diff(end_weight), np.inf)

    def slope(ends):
        """Return the slope from each point to one end, shifted by (1, 1), of each."""
        return (end_positives[ends] - positives + 1) / (end_weight[ends] - weight + 1)

    # Bisection for the first end from which on the slope rises.
    low = block
    high = np.full(len(points), len(end) - 1)
    for _ in range(len(end).bit_length()):
        middle = (low + high) // 2
        rises = slope_after[middle] >= slope(middle)
        low = np.where(rises, low, np.minimum(middle + 1, high))
        high = np.where(rises, middle, high)
    return slope(low)
