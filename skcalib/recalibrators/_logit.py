"""Base of the methods that work on the logits of all classes."""

import numpy as np

from skcalib import maps as nodes
from skcalib._input.tensors import namespace_of
from skcalib._intervals.one_probability.samples import limits_of_rows
from skcalib._intervals.one_probability.softmax import softmax_limits
from skcalib._rows.links import (
    impossible_at_clip,
    log_probability,
    two_class_log_odds,
)
from skcalib.maps import class_probabilities, has_map, two_logits
from skcalib.maps._calibration_map import why_not
from skcalib.maps._prediction import probabilities_of_two
from skcalib.maps._python_function import PythonFunction, called_weakly
from skcalib.recalibrators._base import BaseRecalibrator


class LogitRecalibrator(BaseRecalibrator):
    """Base class of methods that work on K logits.

    ``_fit_logits(logits, codes, sample_weight)`` receives logits (n, K), the column
    index of each label and positive weights or None; ``_predict_logits(logits)``
    returns calibrated logits. Instead of ``_predict_logits``, a subclass may define
    ``_map(logits)``, which returns the probabilities as an expression built from the
    nodes in `skcalib.maps`; if a method defines both, `_map` is used. For two classes
    given as log-odds z, the logits are (0, z); probabilities are replaced by their
    logarithms.

    Parameters
    ----------
    input : {"probability", "logit"}, default="probability"
        Scale of the scores. A single column of logits is the log-odds of the positive
        class.
    classes : array-like, default=None
        Labels of the columns; required if a class is missing from the calibration set.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range.

    Examples
    --------
    >>> from skcalib.recalibrators import LogitRecalibrator
    >>> class Halved(LogitRecalibrator):
    ...     def _fit_logits(self, logits, codes, sample_weight):
    ...         pass
    ...
    ...     def _predict_logits(self, logits):
    ...         return logits / 2
    >>> Halved().fit([[0.1, 0.9], [0.9, 0.1]], [1, 0]).predict_proba(
    ...     [[0.1, 0.9]]
    ... ).round(3).tolist()
    [[0.25, 0.75]]
    """

    # Whether `_fit_logits` and `_predict_logits` leave out classes whose logit is -inf.
    # Other methods get the logarithm of the clipping constant in place of -inf.
    _leaves_impossible_out = False

    def _fit_scores(self, scores, codes, sample_weight, shortcuts=None):
        """Fit to the logits of validated scores (n, C), given the column index of each
        label, `codes` (n,). Return the `LimitsMaker`, or None.
        """
        scores = self._start_fit(scores, codes, sample_weight, shortcuts)
        if isinstance(codes, np.ndarray):
            codes = codes.astype(np.intp, copy=False)
        logits = self._logits(scores)
        if not self._leaves_impossible_out:
            # The method needs finite logits: impossible classes get that of the
            # smallest probability.
            logits = impossible_at_clip(logits, self._impossible_classes(scores))
        if shortcuts is None:
            maker = self._fit_logits(logits, codes, sample_weight)
        else:
            maker = self._fit_logits(logits, codes, sample_weight, shortcuts)
        return limits_of_rows(maker, (logits, codes, sample_weight))

    def _why_no_limits(self):
        """Return why the fit has no limits, an empty text if it has some."""
        reason = super()._why_no_limits()
        if reason and hasattr(self, "_limits_design"):
            # The method has limits, but not for this fit.
            return (
                "a fit to tensors, or with more than 250 parameters, has no limits;"
                " fit to arrays, with fewer classes"
            )
        return reason

    def _limits_at(self, level):
        limits_of = softmax_limits(self._limits.state, level)

        def limits_at(scores, probabilities, **columns):
            """Return the lower and upper limits (n, K) at scores (n, C), or (n,) for
            two classes. `columns` may hold the features.
            """
            logits = self._new_logits(scores)
            # how the calibrated logits depend on the fitted parameters
            design = self._limits_design(logits, **columns)
            return limits_of(design, probabilities)

        return limits_at

    def _new_logits(self, scores):
        """Return the logits (n, K) of validated scores (n, C) whose limits are asked
        for.
        """
        clipped = self._clipped(scores)
        if clipped.shape[1] == 1 and self.input == "probability":
            # with one logarithm, as the map computes them
            log_odds = nodes.Rows(clipped)(nodes.LogOdds(nodes.Scores(1)))
            return np.hstack((np.zeros_like(log_odds), log_odds))
        return self._logits(clipped)

    def _logits(self, scores):
        """Return scores (n, C) as logits (n, K); log-odds z as (0, z)."""
        xp = namespace_of(scores)
        if xp is not np:
            node = self._logits_node(nodes.Scores(scores.shape[1]))
            return nodes.Rows(scores)(node)
        if scores.shape[1] == 1:
            log_odds = two_class_log_odds(scores, self.input)
            return np.column_stack((np.zeros(len(scores)), log_odds))
        if self.input == "logit":
            return scores
        return log_probability(scores)

    def _logits_node(self, scores):
        """Return the node of the logits of all classes, from a node of scores kept away
        from 0 and 1.
        """
        logits = scores
        if self.input == "probability":
            if scores.width == 1:
                logits = nodes.LogOdds(scores)
            else:
                logits = nodes.Log(scores)
        if scores.width == 1:
            logits = self._logits_of(logits)
        return logits

    def _map_of(self, scores):
        """Return the calibrated probabilities as an expression in `skcalib.maps`, for a
        node `scores`: `_map` of the logits of all classes.
        """
        logits = self._logits_node(self._clipped_node(scores))
        if has_map(type(self)):
            return self._map(logits)
        n_classes = len(self.classes_)
        calibrated = PythonFunction(
            logits, called_weakly(self._calibrated), n_classes, why_not(self)
        )
        return class_probabilities(calibrated)

    def _calibrated(self, logits, is_impossible):
        """Return the calibrated logits (n, K) of a method without a map, which may need
        finite ones; the softmax leaves impossible classes out.
        """
        if not self._leaves_impossible_out:
            logits = impossible_at_clip(logits, is_impossible)
        return self._predict_logits(logits)

    def _predict_logits(self, logits):
        """Return calibrated logits (n, K), for subclasses that change them: the
        logarithms of the probabilities by `_map`.
        """
        rows = nodes.Rows(logits)
        node = self._map(nodes.Scores(logits.shape[1]))
        if node.width > 1:
            return log_probability(rows(node))
        return log_probability(np.hstack(probabilities_of_two(node, rows)))

    def _logits_of(self, log_odds):
        """Return the node of the logits 0 and the log-odds: for methods to which only
        the difference matters.
        """
        return two_logits(log_odds)
