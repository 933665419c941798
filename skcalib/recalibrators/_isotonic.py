"""Isotonic calibration: the best non-decreasing calibration map."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from skcalib._intervals.one_probability.monotone import monotone
from skcalib._rows.sorting import DistinctScores
from skcalib.binning._base import BinLookup
from skcalib.maps import piecewise_polynomial
from skcalib.maps.checks import knots, shares
from skcalib.recalibrators._binary import BinaryRecalibrator

_ROUNDING = 1e-14  # means of two blocks that differ by less are equal


class IsotonicCalibration(BinaryRecalibrator):
    """Isotonic regression of the labels on the scores, interpolated between knots.

    Parameters
    ----------
    centered : bool, default=False
        Whether to shrink each flat part to a point at its mean score (centered
        isotonic regression [2]_). The map is then strictly increasing between the outer
        knots, where it creates no ties.
    multiclass : {"ovr", "top_label"}, default="ovr"
        For K > 2 classes, whether to calibrate each class against the rest, or only the
        confidence of the predicted class.
    normalize : bool, default=True
        Whether to normalise the K one-vs-rest probabilities to sum to 1.
    input : {"probability", "logit"}, default="probability"
        Scale of the scores; the knots are on the same scale.
    classes : array-like, default=None
        Labels of the columns; required if a class is missing from the calibration set.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    provenance_ : dict
        Provenance of the fit: method, parameters, number of samples, events per class,
        versions, and a hash of the samples.
    score_knots_, probability_knots_ : ndarray of shape (n_knots,)
        Knots of the map, which is linear between the knots and constant beyond them.
        For K > 2 classes, these are lists with one entry per class.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    See Also
    --------
    skcalib.VennAbers : Also gives an interval for each probability.
    skcalib.SplineCalibration : A smooth map without a fixed shape.
    skcalib.binning.PoolAdjacentViolators : The bins of the isotonic fit.

    References
    ----------
    .. [1] Zadrozny and Elkan (2002), Transforming classifier scores into accurate
        multiclass probability estimates.
    .. [2] Oron and Flournoy (2017), Centered isotonic regression: point and interval
        estimation for dose-response studies.

    Examples
    --------
    Samples with score s are events with probability s^2.

    >>> import numpy as np
    >>> from skcalib import IsotonicCalibration
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(1000)
    >>> y = rng.random(1000) < scores**2
    >>> isotonic = IsotonicCalibration().fit(scores, y)
    >>> isotonic.predict_proba([0.1, 0.5, 0.9])[:, 1].round(2).tolist()
    [0.0, 0.21, 0.83]

    The scores .4 and .6 violate the order and are merged.

    >>> from skcalib import IsotonicCalibration
    >>> isotonic = IsotonicCalibration().fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> isotonic.predict_proba([0.2, 0.5, 0.7, 0.9])[:, 1].round(6).tolist()
    [0.0, 0.5, 0.75, 1.0]
    """

    _parameter_constraints = {
        **BinaryRecalibrator._parameter_constraints,
        "centered": ["boolean"],
    }

    _part_attributes = {"score_knots_": knots, "probability_knots_": shares}
    _needs_classes = "any"
    _scale = "given"

    # for two classes; a list with one entry per class for more
    score_knots_: np.ndarray
    probability_knots_: np.ndarray

    def __init__(
        self,
        *,
        centered: bool = False,
        multiclass: Literal["ovr", "top_label"] = "ovr",
        normalize: bool = True,
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.centered = centered
        self.multiclass = multiclass
        self.normalize = normalize
        self.input = input
        self.classes = classes

    def _fit_binary(self, scores, labels, sample_weight):
        """Fit isotonic regression to scores (n,) and boolean labels, and set the knots:
        both ends of each block of equal values, or with `centered` its mean score.
        Return the `LimitsMaker`.
        """
        distinct, weight, events = _weights_by_score(scores, labels, sample_weight)
        solution = isotonic_regression(events / weight, weights=weight)
        # Indices of the first and the last distinct score of each block of one value.
        first = solution.blocks[:-1]
        last = solution.blocks[1:] - 1
        if self.centered:
            # Neighbouring blocks of equal values are one block.
            is_new_value = np.diff(solution.x[first]) > _ROUNDING
            first = first[np.append(True, is_new_value)]
            sum_of_scores = np.add.reduceat(weight * distinct, first)
            self.score_knots_ = sum_of_scores / np.add.reduceat(weight, first)
            self.probability_knots_ = solution.x[first]
        else:
            # Sorted and distinct: a block of one score has equal ends.
            ends = np.flatnonzero(np.bincount(np.append(first, last)))
            self.score_knots_ = distinct[ends]
            self.probability_knots_ = solution.x[ends]
        return monotone(distinct, distinct, weight, events)

    def _limits_position(self, scores):
        return places_among_ranges(self._limits.state, scores)

    def _map(self, score):
        """Return the map from score to probability as a `Node`: lines between
        the knots, and constants beyond the outer ones.
        """
        knots = self.score_knots_.astype(np.float64)
        values = self.probability_knots_
        with np.errstate(over="ignore"):
            slopes = np.diff(values) / np.diff(knots)
        # Between knots that differ by about the smallest float the slope overflows.
        # Hardly a score lies there.
        slopes[~np.isfinite(slopes)] = 0
        # Each line starts from its right end, as `_interpolated` does.
        lines = np.column_stack((values[1:], slopes))
        origins = [knots[0], *knots[1:], knots[-1]]
        coefficients = [values[:1], *lines, values[-1:]]
        return piecewise_polynomial(score, knots, origins, coefficients)


def places_among_ranges(state, scores):
    """Return where scores (n,) are among ranges of scores, counted from 0: 2 j + 1 in
    range j, 2 j below it and above the one before. `state` holds the "first" and the
    "last" score of each range.
    """
    last = state["last"]
    # The first range that does not end below the score; between the edges 0 and 1 a
    # table finds it.
    edges = np.concatenate(([min(0.0, last[0])], last, [1.0]))
    if last[-1] >= 1:
        edges[-1] = np.inf
    at_most = BinLookup(edges, scores)(scores)
    is_inside = np.append(state["first"], np.inf)[at_most] <= scores
    return 2 * at_most + is_inside


def _weights_by_score(scores, labels, sample_weight):
    """Return the increasing distinct scores as float64, the weight at each, and that of
    its events.
    """
    if sample_weight is None:
        table = DistinctScores.from_rows(scores, labels)
        # The table holds cumulative sums, so that differences are those of each score.
        weight = np.diff(table.weight)
        events = np.diff(table.positives)
        return table.scores.astype(np.float64), weight, events
    # `DistinctScores` of weighted rows makes exact sums, which take 1.2 to 1.3 times as
    # long here.
    distinct, inverse = np.unique(scores, return_inverse=True)
    weight = np.bincount(inverse, weights=sample_weight)
    events = np.bincount(inverse, weights=labels * sample_weight)
    return distinct.astype(np.float64), weight, events
