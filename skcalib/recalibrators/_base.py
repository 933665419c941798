"""Base of the recalibrators: they validate and reduce here, so that a method is two short functions."""

import copy
from numbers import Real

import numpy as np
from scipy.special import expit, softmax

import skcalib.recalibrators._maps as nodes
from skcalib._cells.reductions import spread_top_label, top_label
from skcalib._defaults import check_fitted
from skcalib._input.scores import (
    MAX_MAGNITUDE,
    check_estimator_scores,
    check_sample_weight,
    drop_zero_weight,
)
from skcalib._input.sklearn_private import ARRAY_LIKE, BOOLEAN, Interval, StrOptions
from skcalib._rows.blocks import row_blocks
from skcalib._rows.links import (
    clip_probability,
    log_odds_against_rest,
    log_probability,
    possible,
    row_softmax,
    two_class_log_odds,
    without_impossible,
)
from skcalib.recalibrators._map_forms import inside, two_logits
from skcalib.recalibrators._provenance import provenance
from skcalib.recalibrators._transformer import ProbabilityTransformer

# What the strength of a ridge may be: as large as logits and weights.
RIDGE = Interval(Real, 0, MAX_MAGNITUDE, closed="both")


class BaseRecalibrator(ProbabilityTransformer):
    """Base of all recalibrators: scores in, probabilities out.

    A subclass defines ``_fit_scores(scores, codes, sample_weight)`` and ``_predict_scores(scores)`` for validated
    scores (n, C). `codes` (n,) holds the column index of each label. Treat it as read-only; its dtype may be int8. Most
    methods derive from `BinaryRecalibrator` or `LogitRecalibrator` instead.

    Parameters
    ----------
    input : {"probability", "logit"}, default="probability"
        What the scores are. One column of logits is the log-odds of the positive class.
    classes : array-like, default=None
        Labels of the columns, for a calibration set in which a class is missing.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or not what `input` says, `y` has another length or only one class, or a
        parameter is out of its range.

    Examples
    --------
    The base rates, whatever the scores:

    >>> import numpy as np
    >>> from skcalib.recalibrators import BaseRecalibrator
    >>> class BaseRates(BaseRecalibrator):
    ...     def _fit_scores(self, scores, codes, sample_weight):
    ...         counts = np.bincount(codes, sample_weight, len(self.classes_))
    ...         self.base_rates_ = counts / counts.sum()
    ...
    ...     def _predict_scores(self, scores):
    ...         return np.tile(self.base_rates_, (len(scores), 1))
    >>> BaseRates().fit([0.2, 0.4, 0.8, 0.9], ["no", "no", "yes", "no"]).predict_proba(
    ...     [0.5]
    ... ).tolist()
    [[0.75, 0.25]]
    """

    input: [StrOptions({"probability", "logit"})] = "probability"
    classes: [ARRAY_LIKE, None] = None

    # Which classes must have rows: "all", "two" (any two of them) or "any". The `classes` parameter names the others.
    _needs_classes = "all"
    # Whether `predict` gives the class of the largest score, also where probabilities round or are spread otherwise.
    _keeps_decisions = False

    def fit(self, X, y, sample_weight=None):
        """Fit the calibration map.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
            Scores: probabilities, or log-odds and logits with ``input="logit"``, in the sorted order of the classes.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), default=None
            Weights, which count as repeated rows.

        Returns
        -------
        self : object
            The fitted recalibrator.

        Raises
        ------
        ValueError
            For scores or labels that do not fit together, with the reason and the first offending row.
        """
        self._validate_params()
        scores, impossible = self._possible_scores(X, reset=True)
        codes = self._encoded(y, scores)
        if impossible is not None and impossible[np.arange(len(codes)), codes].any():
            row = np.flatnonzero(impossible[np.arange(len(codes)), codes])[0]
            raise ValueError(
                f"y has a class in row {row} whose logit is -inf there, which says that it is impossible."
            )
        weight = check_sample_weight(sample_weight, len(scores))
        scores, codes, weight = drop_zero_weight(weight, scores, codes)
        self._fit_encoded(scores, codes, weight)
        self.provenance_ = provenance(self, scores, codes, weight)
        return self

    def predict_proba(self, X):
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores.

        Returns
        -------
        probabilities : ndarray of float64, shape (n, n_classes)
            In the order of `classes_`.

        Raises
        ------
        ValueError
            For scores that are not valid, or of another width than those of `fit`.
        """
        check_fitted(self)
        scores, impossible = self._possible_scores(X)
        return without_impossible(self._predict_encoded(scores), impossible)

    def _fit_encoded(self, scores, codes, sample_weight, floor=None):
        """Fit to validated rows, above a floor that is known or learned."""
        if (
            len(self.classes_) > 2
            or self.classes is not None
            or sample_weight is not None
        ):  # else both have rows
            self._check_classes_present(codes)
        self._fit_scores(
            self._fit_inside(scores, codes, sample_weight, floor), codes, sample_weight
        )
        return self

    def _predict_encoded(self, scores):
        """Return the probabilities of validated scores."""
        return self._predict_scores(self._inside(scores))

    def _fit_inside(self, scores, codes, sample_weight, floor):
        """Return the scores that the method is fitted to: as they are, unless it keeps them away from 0 and 1."""
        return scores

    def _inside(self, scores):
        """Return the same for a prediction."""
        return scores

    def _inside_node(self, scores):
        """Return the same as a node of the calibration map."""
        return scores

    def predict(self, X):
        """Return the most probable class.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores.

        Returns
        -------
        labels : ndarray of shape (n,)
            The first of the classes with the largest probability. Methods that keep decisions (temperatures, and
            ``multiclass="top_label"``) return the class of the largest score.
        """
        check_fitted(self)
        if self._keeps_decisions:
            return self.classes_[
                decisions(
                    check_estimator_scores(self, X, input=self.input, reset=False),
                    self.input,
                )
            ]
        return super().predict(X)

    def inverse_transform(self, X):
        """Return the smallest scores whose calibrated probabilities reach those given, for increasing maps.

        A threshold on the calibrated probability becomes one on the raw score: ``score >= inverse_transform([p])``
        exactly where ``predict_proba(score)[:, 1] >= p``. At a step it is the first score of the step.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1) or (n, 2)
            Calibrated probabilities of the positive class, or of both.

        Returns
        -------
        scores : ndarray of float64, shape (n,)
            The positive class's probabilities, or log-odds with ``input="logit"``. Where each score reaches the
            probability it is 0, or minus infinity.

        Raises
        ------
        ValueError
            For more than two classes, a map that falls somewhere or is flat, and a probability that no score reaches.
            That it does not fall is looked at for about 2,000 scores and on both sides of the knots.

        Examples
        --------
        Lend where at most one of five is expected to default:

        >>> from skcalib import HistogramBinning
        >>> scores, defaults = [0.02, 0.1, 0.1, 0.3, 0.3, 0.3], [0, 0, 0, 0, 1, 1]
        >>> bins = HistogramBinning(binning=2).fit(scores, defaults)
        >>> bins.inverse_transform([0.2]).round(6).tolist(), bins.bin_edges_.tolist()
        ([0.2], [0.0, 0.2, 1.0])
        """
        from skcalib.recalibrators._inverse import (
            smallest_scores,
        )  # which fits and forecasts do without

        check_fitted(self)
        return smallest_scores(self, X)

    def _possible_scores(self, X, reset=False):
        """Return the validated scores, those of impossible classes as if of probability 0, and where these are."""
        scores = check_estimator_scores(self, X, input=self.input, reset=reset)
        return possible(scores) if self.input == "logit" else (scores, None)

    def _check_classes_present(self, codes):
        present, needed = (
            np.bincount(codes, minlength=len(self.classes_)) > 0,
            self._needs_classes,
        )
        if (
            needed == "any"
            or present.all()
            or (needed == "two" and np.count_nonzero(present) > 1)
        ):
            return
        rows = (
            "every class"
            if needed == "all"
            else f"two classes, found {self.classes_[present].tolist()[0]!r} only"
        )
        missing = self.classes_[~present].tolist()[0]
        raise ValueError(
            f"{type(self).__name__} needs rows of {rows}: there are none (of positive weight) of the class {missing!r}."
        )


class BinaryRecalibrator(BaseRecalibrator):
    """Base of the methods for one event: a subclass defines ``_fit_binary`` and ``_predict_binary``.

    ``_fit_binary(scores, labels, sample_weight)`` is given scores (n,) on the scale named by `_scale`, boolean labels
    (n,) and positive weights or None, and sets the fitted attributes; ``_predict_binary(scores)`` returns the
    probability of the event. Many classes are fitted one against the rest, or by the predicted class alone.

    In place of ``_predict_binary`` it may define ``_map(score)``: the probability as an expression of the nodes in
    `skcalib.recalibrators._maps`. `predict_proba` then evaluates it, and SQL, ONNX and JavaScript are written from it.
    A method that has both is quicker by the first, and is tested to agree.

    Parameters
    ----------
    multiclass : {"ovr", "top_label"}, default="ovr"
        K > 2 classes: each against the rest, or the confidence of the predicted class alone.
    normalize : bool, default=True
        Whether the K one-vs-rest probabilities are made to sum to 1.
    input : {"probability", "logit"}, default="probability"
        What the scores are. One column of logits is the log-odds of the positive class.
    classes : array-like, default=None
        Labels of the columns, for a calibration set in which a class is missing.

    Attributes
    ----------
    _scale : {"log_odds", "probability", "given"}
        What the method works on; "given" is the scale of the input: log-odds for ``input="logit"``.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or not what `input` says, `y` has another length or only one class, or a
        parameter is out of its range.

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

    multiclass: [StrOptions({"ovr", "top_label"})] = "ovr"
    normalize: [BOOLEAN] = True

    _scale = "probability"

    @property
    def _keeps_decisions(self):
        return len(self.classes_) > 2 and self.multiclass == "top_label"

    def _fit_scores(self, scores, codes, sample_weight):
        vars(self).pop("estimators_", None)  # of an earlier fit to more classes
        if len(self.classes_) == 2:
            self._fit_binary(self._binary_scores(scores), codes == 1, sample_weight)
            return
        self.estimators_ = self._fit_parts(
            self._class_probabilities(scores), codes, sample_weight
        )
        self._collect_attributes()

    def _fit_parts(self, probabilities, codes, sample_weight):
        """Return a recalibrator fitted to each binary problem."""
        on_scale, parts = self._scale_of_classes(probabilities), []
        tasks = ((column, codes == k) for k, column in enumerate(probabilities.T))
        if self.multiclass == "top_label":
            predicted, confidence = top_label(probabilities)
            tasks = [(confidence, codes == predicted)]
        for column, labels in tasks:
            parts.append(self._part())
            parts[-1]._fit_binary(on_scale(column), labels, sample_weight)
        return parts

    def _predict_scores(self, scores):
        if len(self.classes_) == 2:
            both = np.empty((len(scores), 2))
            # `_predict_binary` is a function of each score alone, and its temporaries are small.
            for rows in row_blocks(len(scores)):
                probability = self._predict_binary(self._binary_scores(scores[rows]))
                np.subtract(1, probability, out=both[rows, 0])
                both[rows, 1] = probability
            return both
        scores = self._class_probabilities(scores)
        on_scale = self._scale_of_classes(scores)
        if self.multiclass == "top_label":
            _, confidence = top_label(scores)
            confidence = self.estimators_[0]._predict_binary(on_scale(confidence))
            # Scaling methods never return 0, also not for a class whose score is 0.
            return spread_top_label(
                clip_probability(scores) if self._scale == "log_odds" else scores,
                confidence,
            )
        probabilities = np.empty(scores.shape)
        for k, part in enumerate(self.estimators_):
            probabilities[:, k] = part._predict_binary(on_scale(scores[:, k]))
        return (
            nodes.shares(probabilities, len(self.classes_))
            if self.normalize
            else probabilities
        )

    def _binary_scores(self, scores):
        """Return the scores of the positive class (n,) on the method's scale."""
        if self.input == "probability" and self._scale != "log_odds":
            return scores[:, -1]
        z = two_class_log_odds(scores, self.input)
        return expit(z) if self._scale == "probability" else z

    def _class_probabilities(self, scores):
        return (
            softmax(scores.astype(np.float64), axis=1)
            if self.input == "logit"
            else scores
        )

    def _scale_of_classes(self, probabilities):
        """Return the function that brings columns of the probabilities, or one of each row, to the method's scale."""
        return (
            log_odds_against_rest(probabilities)
            if self._scale == "log_odds"
            else np.asarray
        )

    def _part(self):
        """Return an unfitted recalibrator for one binary problem on probabilities."""
        part = copy.copy(self)
        for name in [name for name in vars(part) if name.endswith("_")]:
            delattr(part, name)
        part.input = "probability"
        return part

    def _collect_attributes(self):
        """Set each fitted attribute of the parts on self: a list with one entry per class."""
        for name in [name for name in vars(self.estimators_[0]) if name.endswith("_")]:
            setattr(self, name, [getattr(part, name) for part in self.estimators_])

    def _map_of(self, scores):
        scores, on_log_odds = self._inside_node(scores), self._scale == "log_odds"
        if len(self.classes_) == 2:
            return self._map(self._score_node(scores))
        probabilities = (
            nodes.Softmax(scores, clip=False) if self.input == "logit" else scores
        )
        on_scale = (
            nodes.LogOddsAgainstRest(probabilities) if on_log_odds else probabilities
        )
        if self.multiclass == "top_label":
            confidence = self.estimators_[0]._map(nodes.RowMax(on_scale))
            return nodes.Spread(
                inside(probabilities) if on_log_odds else probabilities, confidence
            )
        parts = nodes.Columns(
            tuple(
                part._map(nodes.OneColumn(on_scale, k))
                for k, part in enumerate(self.estimators_)
            )
        )
        return nodes.Normalized(parts) if self.normalize else parts

    def _score_node(self, scores):
        """Return the score of the positive class of two: of two probabilities the second, which alone is looked at."""
        if self.input == "probability":
            score = scores if scores.width == 1 else nodes.OneColumn(scores, 1)
            return nodes.LogOdds(score) if self._scale == "log_odds" else score
        score = (
            scores
            if scores.width == 1
            else nodes.Affine(scores, np.array([[-1.0, 1.0]]), np.zeros(1))
        )
        return nodes.Expit(score, clip=False) if self._scale == "probability" else score

    def _predict_binary(self, scores):
        # What the map says. Methods with a form of their own take .4 to .9 of its time, and tests hold both together.
        return nodes.Rows(scores[:, None])(self._map(nodes.Scores(1)))[:, 0]


class LogitRecalibrator(BaseRecalibrator):
    """Base of the methods for K logits: a subclass defines ``_fit_logits`` and ``_predict_logits``.

    ``_fit_logits(logits, codes, sample_weight)`` is given logits (n, K), the column index of each label and positive
    weights or None; ``_predict_logits(logits)`` returns calibrated logits. Two classes given as log-odds z are the
    logits (0, z); probabilities become their logarithms.

    Parameters
    ----------
    input : {"probability", "logit"}, default="probability"
        What the scores are. One column of logits is the log-odds of the positive class.
    classes : array-like, default=None
        Labels of the columns, for a calibration set in which a class is missing.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or not what `input` says, `y` has another length or only one class, or a
        parameter is out of its range.

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

    def _fit_scores(self, scores, codes, sample_weight):
        self._fit_logits(
            self._logits(scores), codes.astype(np.intp, copy=False), sample_weight
        )

    def _predict_encoded(self, scores):
        probabilities = np.empty((len(scores), len(self.classes_)))
        for rows in row_blocks(len(scores), len(self.classes_)):
            probabilities[rows] = row_softmax(
                self._predict_logits(self._logits(self._inside(scores[rows])))
            )
        return probabilities

    def _logits(self, scores):
        if scores.shape[1] == 1:
            return np.column_stack(
                (np.zeros(len(scores)), two_class_log_odds(scores, self.input))
            )
        return scores if self.input == "logit" else log_probability(scores)

    def _map_of(self, scores):
        scores = self._inside_node(scores)
        if scores.width == 1:
            return self._map(
                self._logits_of(
                    scores if self.input == "logit" else nodes.LogOdds(scores)
                )
            )
        return self._map(scores if self.input == "logit" else nodes.Log(scores))

    def _logits_of(self, log_odds):
        """Return the two logits that log-odds stand for, for methods that ignore what is added to both."""
        return two_logits(log_odds)


def decisions(scores, input):
    """Return the column of the class that the scores decide for, the first where several tie."""
    if scores.shape[1] > 1:
        return scores.argmax(axis=1)
    return (scores[:, 0] > (0 if input == "logit" else 0.5)).astype(np.intp)
