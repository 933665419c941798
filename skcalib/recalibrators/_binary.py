"""Base of the binary methods: they calibrate the score of one class, and several
classes one by one.
"""

from __future__ import annotations

import copy
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax

from skcalib import maps as nodes
from skcalib._cells.columns import top_label
from skcalib._input.sklearn_private import StrOptions
from skcalib._intervals.one_probability.samples import limits_of_rows
from skcalib._intervals.one_probability.states import LIMITS
from skcalib._rows.blocks import taken
from skcalib._rows.links import (
    log_odds_against_rest,
    rounded,
    rounded_up_to,
    tied_where_rounded,
    two_class_log_odds,
)
from skcalib.maps import clipped_probability, has_map
from skcalib.maps._calibration_map import why_not
from skcalib.maps._forms import with_cuts
from skcalib.maps._python_function import PythonFunction, called_weakly
from skcalib.recalibrators._base import BaseRecalibrator

# The second of two values minus the first.
_DIFFERENCE = np.array([[-1.0, 1.0]])

# Limits are made in blocks of rows, as large as they should be for eight features.


class BinaryRecalibrator(BaseRecalibrator):
    """Base class for binary methods.

    ``_fit_binary(scores, labels, sample_weight)`` receives scores (n,) on the scale
    named by `_scale`, boolean labels (n,) and positive weights or None, and sets the
    fitted attributes; ``_predict_binary(scores)`` returns the probability of the event.
    For more than two classes, either each class is fitted against the rest, or only the
    confidence of the predicted class is calibrated.

    Instead of ``_predict_binary``, a subclass may define ``_map(score)``, which returns
    the probability as an expression built from the nodes in `skcalib.maps`.
    `predict_proba` then evaluates this expression, and the SQL, ONNX and JavaScript
    exports are generated from it. If a method defines both, `_map` is used.

    Parameters
    ----------
    multiclass : {"ovr", "top_label"}, default="ovr"
        For K > 2 classes, whether to calibrate each class against the rest, or only the
        confidence of the predicted class.
    normalize : bool, default=True
        Whether to normalise the K one-vs-rest probabilities to sum to 1.
    input : {"probability", "logit"}, default="probability"
        Scale of the scores. A single column of logits is the log-odds of the positive
        class.
    classes : array-like, default=None
        Labels of the columns; required if a class is missing from the calibration set.

    Attributes
    ----------
    _scale : {"log_odds", "probability", "given"}
        Scale on which the method works; "given" means the scale of the input, which is
        log-odds for ``input="logit"``.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    Examples
    --------
    >>> from skcalib.recalibrators import BinaryRecalibrator
    >>> class Rescaled(BinaryRecalibrator):
    ...     def _fit_binary(self, scores, labels, sample_weight):
    ...         self.ratio_ = labels.mean() / scores.mean()
    ...
    ...     def _predict_binary(self, scores):
    ...         return (self.ratio_ * scores).clip(0, 1)
    >>> Rescaled().fit([0.1, 0.3, 0.7, 0.9], [0, 0, 0, 1]).predict_proba([0.5])[
    ...     0, 1
    ... ].round(3).tolist()
    0.25
    """

    _parameter_constraints = {
        **BaseRecalibrator._parameter_constraints,
        "multiclass": [StrOptions({"ovr", "top_label"})],
        "normalize": ["boolean"],
    }

    _scale = "probability"
    # Whether a calibrated probability jumps where the score passes a cut.
    _is_step_function = False

    def __init__(
        self,
        *,
        multiclass: Literal["ovr", "top_label"] = "ovr",
        normalize: bool = True,
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.multiclass = multiclass
        self.normalize = normalize
        self.input = input
        self.classes = classes

    @property
    def _keeps_decisions(self):
        # The other classes share what the predicted class leaves, so that one of them
        # may have a larger probability: `predict` goes by the scores.
        return len(self.classes_) > 2 and self.multiclass == "top_label"

    def _fit_scores(self, scores, codes, sample_weight, shortcuts=None):
        """Fit the method to scores (n, C): directly for two classes, otherwise to one
        binary problem per class, or to that of the predicted class. Return the
        `LimitsMaker` for two classes, else None.
        """
        scores = self._start_fit(scores, codes, sample_weight, shortcuts)
        vars(self).pop("estimators_", None)  # of an earlier fit to more classes
        if len(self.classes_) == 2:
            rows = (self._binary_scores(scores), codes == 1, sample_weight)
            if shortcuts is None:
                maker = self._fit_binary(*rows)
            else:
                maker = self._fit_binary(*rows, shortcuts)
            return limits_of_rows(maker, rows)
        estimators = self._fit_binary_problems(
            self._class_probabilities(scores), codes, sample_weight
        )
        self._set_problems(estimators)
        return None

    def _why_no_limits(self):
        if len(self.classes_) > 2:
            return (
                "for more than two classes it belongs to the methods on all logits:"
                " TemperatureScaling, VectorScaling, MatrixScaling and"
                " DirichletCalibration"
            )
        return super()._why_no_limits()

    def _limits_at(self, level):
        # By the kind of the method, such as "bins": the function that computes limits.
        state = self._limits.state
        limits_of = LIMITS[state["kind"]](state, level)

        def limits_at(scores, probabilities, **columns):
            """Return the lower and upper limits (n,) of the event's frequency at scores
            (n, C).
            """
            binary_scores = self._new_binary_scores(scores)
            # what limits depend on: the bin of each score, or its features
            position = self._limits_position(binary_scores, **columns)
            return limits_of(position, binary_scores)

        return limits_at

    def _new_binary_scores(self, scores):
        """Return the scores (n,) of the positive class on the method's scale, as its
        map computes them from validated scores (n, 1) or (n, 2).
        """
        clipped = self._clipped_node(nodes.Scores(scores.shape[1]))
        return nodes.Rows(scores)(self._binary_score_node(clipped))[:, 0]

    def _limits_position(self, scores):
        """Return what the limits depend on at scores (n,) on the method's scale:
        features (d, n) of a regression, or bins or other places (n,). A method with a
        parameter `features` takes these, (n, n_features), too.
        """
        return scores

    def _fit_binary_problems(self, probabilities, codes, sample_weight):
        """Return recalibrators fitted to binary problems made of the probabilities (n,
        K) of more than two classes: for ``multiclass="ovr"`` whether the label is this
        class, for "top_label" whether the predicted class is right.
        """
        to_scale = self._conversion_to_scale(probabilities)
        if self.multiclass == "top_label":
            predicted, confidence = top_label(probabilities)
            problems = [(confidence, codes == predicted)]
        else:
            # A generator: the labels of only one class at a time are in memory.
            problems = ((p, codes == k) for k, p in enumerate(probabilities.T))
        # A softmax is 0 only for impossible classes: rows in which the class of a
        # problem is impossible are left out of it.
        has_impossible = self.input == "logit" and probabilities.min() == 0
        estimators = []
        for probability, labels in problems:
            scores = self._tied_scores(to_scale(probability))
            weight = sample_weight
            if has_impossible:
                is_possible = probability > 0
                scores = scores[is_possible]
                labels = labels[is_possible]
                weight = taken(weight, is_possible)
            estimator = self._binary_copy()
            estimator._fit_binary(scores, labels, weight)
            estimators.append(estimator)
        return estimators

    def _tied_scores(self, scores):
        """Return scores (n,) of one of K classes with those equal that differ by
        rounding alone: logits and their softmax then have the same fit.
        """
        # Log-odds need no ties: methods that use them are smooth. Rounded scores are
        # tied already.
        if self._scale == "log_odds" or self._rounds_class_scores:
            return scores
        return tied_where_rounded(scores)

    def _binary_scores(self, scores):
        """Return the scores of the positive class (n,) on the method's scale, `_scale`:
        "log_odds", "probability", or "given" for that of the input.
        """
        if self.input == "probability" and self._scale != "log_odds":
            return scores[:, -1]
        log_odds = two_class_log_odds(scores, self.input)
        if self._scale == "probability":
            return expit(log_odds)
        return log_odds

    def _class_probabilities(self, scores):
        """Return the probabilities (n, K) of more than two classes from scores (n, K),
        which are probabilities or logits.
        """
        if self.input == "logit":
            return softmax(scores.astype(np.float64), axis=1)
        return scores

    def _conversion_to_scale(self, probabilities):
        """Return the function that converts one probability of each row to the method's
        scale. It needs the whole rows (n, K): 1 minus a p next to 1 would lose digits.
        """
        if self._scale == "log_odds":
            return log_odds_against_rest(probabilities)
        if self._rounds_class_scores:
            return rounded
        return np.asarray

    @property
    def _rounds_class_scores(self):
        """Whether the probabilities of K classes are rounded, so that equal ones tie on
        any machine, and logits where their softmax does.
        """
        return self._is_step_function and len(self.classes_) > 2

    def _binary_copy(self):
        """Return an unfitted copy of this recalibrator for one binary problem, whose
        scores are made of probabilities.
        """
        duplicate = copy.copy(self)
        for name in list(vars(duplicate)):
            if name.endswith("_"):  # a fitted attribute
                delattr(duplicate, name)
        duplicate.input = "probability"
        return duplicate

    def _set_problems(self, estimators):
        """Set `estimators_`, fitted to the binary problems, and each of their fitted
        attributes as a list: `slope_` becomes that of their slopes.
        """
        self.estimators_ = estimators
        for name in vars(estimators[0]):
            if name.endswith("_"):
                entries = [getattr(estimator, name) for estimator in estimators]
                setattr(self, name, entries)

    def _map_of(self, scores):
        """Return the calibrated probabilities as an expression in `skcalib.maps`, for a
        node `scores`.
        """
        scores = self._clipped_node(scores)
        if len(self.classes_) == 2:
            return self._event_node(self._binary_score_node(scores))
        probabilities = scores
        if self.input == "logit":
            probabilities = nodes.Softmax(scores, clip=False)
        # The scores of all classes, converted to the scale of the method.
        uses_log_odds = self._scale == "log_odds"
        class_scores = probabilities
        if uses_log_odds:
            class_scores = nodes.LogOddsAgainstRest(probabilities)
        if self.multiclass == "top_label":
            top_score = nodes.RowMax(class_scores)
            confidence = self._binary_problem_node(self.estimators_[0], top_score)
            if uses_log_odds:
                probabilities = clipped_probability(probabilities)
            # The predicted class gets the confidence; the others share the rest.
            return nodes.Spread(probabilities, confidence)
        columns = []
        for k, estimator in enumerate(self.estimators_):
            score = nodes.OneColumn(class_scores, k)
            columns.append(self._binary_problem_node(estimator, score))
        calibrated = nodes.Columns(tuple(columns))
        if self.normalize:
            return nodes.Normalized(calibrated)
        return calibrated

    def _binary_problem_node(self, estimator, score):
        """Return the node of a binary problem's probability for a node `score`. Cuts of
        rounded scores move to the largest that are rounded to them.
        """
        if not self._rounds_class_scores:
            return estimator._event_node(score)
        if not has_map(type(estimator)):
            score = PythonFunction(score, _rounded_scores, 1, why_not(self))
        return with_cuts(estimator._event_node(score), rounded_up_to)

    def _event_node(self, score):
        """Return the node of a binary problem's probability: that of `_map`, or a
        Python function for a method without one.
        """
        if has_map(type(self)):
            return self._map(score)
        return PythonFunction(
            score, called_weakly(self._event_probability), 1, why_not(self)
        )

    def _event_probability(self, scores, is_impossible):
        """Return the event's probabilities (n, 1) for scores (n, 1), by a method
        without a map.
        """
        return self._predict_binary(scores[:, 0])[:, None]

    def _binary_score_node(self, scores):
        """Return the node of the positive class's score on the method's scale, as
        `_binary_scores` computes it, for a node `scores` of two classes: one column or
        two.
        """
        score = scores
        if self.input == "probability":
            if self._scale == "log_odds" and scores.width == 2:
                # The difference of the logarithms is precise also for probabilities
                # next to 1.
                return nodes.Affine(nodes.Log(scores), _DIFFERENCE, np.zeros(1))
            if scores.width == 2:
                score = nodes.OneColumn(scores, 1)
            if self._scale == "log_odds":
                return nodes.LogOdds(score)
            return score
        if scores.width == 2:
            # The log-odds are the second logit minus the first.
            score = nodes.Affine(scores, _DIFFERENCE, np.zeros(1))
        if self._scale == "probability":
            return nodes.Expit(score, clip=False)
        return score

    def _predict_binary(self, scores):
        """Return the event's probabilities (n,) for scores (n,), by evaluating the
        expression that `_map` returns: for subclasses that change them.
        """
        node = self._map(nodes.Scores(1))
        rows = nodes.Rows(scores[:, None])
        return rows(node)[:, 0]


def _rounded_scores(scores, is_impossible):
    """Return the scores (n, 1), rounded as in the fit to several classes."""
    return rounded(scores)
