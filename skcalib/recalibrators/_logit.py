"""Base of the methods that work on the logits of all classes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skcalib import maps as nodes
from skcalib._defaults import check_fitted
from skcalib._input.tensors import as_given
from skcalib._rows.blocks import row_blocks
from skcalib._rows.links import (
    impossible_at_clip,
    log_probability,
    row_softmax,
    two_class_log_odds,
    without_impossible,
)
from skcalib.maps import two_logits
from skcalib.maps._tensors import mapped_tensor
from skcalib.recalibrators._base import BaseRecalibrator


class LogitRecalibrator(BaseRecalibrator):
    """Base class of methods that work on K logits.

    ``_fit_logits(logits, codes, sample_weight)`` receives logits (n, K), the column
    index of each label and positive weights or None; ``_predict_logits(logits)``
    returns calibrated logits. For two classes given as log-odds z, the logits are
    (0, z); probabilities are replaced by their logarithms.

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

    @property
    def _predicts_validated_rows(self):
        return type(self).predict_proba is LogitRecalibrator.predict_proba

    def predict_proba(self, X: ArrayLike) -> Any:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores.

        Returns
        -------
        probabilities : ndarray of float64, shape (n, n_classes)
            Calibrated probabilities, with columns in the order of `classes_`. With
            scikit-learn's array API dispatch
            (``sklearn.config_context(array_api_dispatch=True)``), a tensor input gives
            a tensor of the same library, device and floating-point type.

        Raises
        ------
        ValueError
            If scores are invalid or their number of columns differs from that in `fit`.
        """
        check_fitted(self)
        probabilities = mapped_tensor(self, X)
        if probabilities is None:
            return as_given(super().predict_proba(X), X)
        return probabilities

    # Whether `_fit_logits` and `_predict_logits` leave out classes whose logit is -inf.
    # Other methods get the logarithm of the clipping constant in place of -inf.
    _leaves_impossible_out = False

    def _fit_scores(self, scores, codes, sample_weight, shortcuts=None):
        """Fit to the logits of validated scores (n, C), given the column index of each
        label, `codes` (n,).
        """
        scores = self._start_fit(scores, codes, sample_weight, shortcuts)
        codes = codes.astype(np.intp, copy=False)
        logits = self._logits(scores)
        if not self._leaves_impossible_out:
            # The method needs finite logits: impossible classes get that of the
            # smallest probability.
            logits = impossible_at_clip(logits, self._impossible_classes(scores))
        if shortcuts is None:
            self._fit_logits(logits, codes, sample_weight)
        else:
            self._fit_logits(logits, codes, sample_weight, shortcuts)

    def _predict_encoded(self, scores):
        """Return the probabilities (n, K) of validated scores (n, C), by blocks."""
        probabilities = np.empty((len(scores), len(self.classes_)))
        for rows in row_blocks(len(scores), len(self.classes_)):
            probabilities[rows] = self._predict_block(scores[rows])
        return probabilities

    def _predict_block(self, scores):
        """Return the probabilities (n, K) of a block of validated scores (n, C)."""
        is_impossible = self._impossible_classes(scores)  # (n, K) or None
        logits = self._logits(self._clipped(scores))
        if is_impossible is None:
            return row_softmax(self._predict_logits(logits))
        if not self._leaves_impossible_out:
            # The method needs finite logits, as in the fit. What it makes of them is
            # replaced by -inf, and so by the probability 0.
            logits = impossible_at_clip(logits, is_impossible)
        calibrated = np.where(is_impossible, -np.inf, self._predict_logits(logits))
        return without_impossible(row_softmax(calibrated), is_impossible)

    def _logits(self, scores):
        """Return scores (n, C) as logits (n, K); log-odds z as (0, z)."""
        if scores.shape[1] == 1:
            log_odds = two_class_log_odds(scores, self.input)
            return np.column_stack((np.zeros(len(scores)), log_odds))
        if self.input == "logit":
            return scores
        return log_probability(scores)

    def _map_of(self, scores):
        """Return the calibrated probabilities as an expression in `skcalib.maps`, for a
        node `scores`: `_map` of the logits of all classes.
        """
        scores = self._clipped_node(scores)
        logits = scores
        if self.input == "probability":
            if scores.width == 1:
                logits = nodes.LogOdds(scores)
            else:
                logits = nodes.Log(scores)
        if scores.width == 1:
            logits = self._logits_of(logits)
        return self._map(logits)

    def _logits_of(self, log_odds):
        """Return the node of two logits, 0 and the log-odds, from a node of log-odds:
        for methods to which only their difference matters.
        """
        return two_logits(log_odds)
