"""Base of the recalibrators: they validate and reduce here, so that a method is two
short functions.
"""

import copy
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax

from skcalib import maps as nodes
from skcalib._cells.reductions import spread_top_label, top_label
from skcalib._defaults import check_fitted
from skcalib._fitting.provenance import provenance
from skcalib._input.labels import hint_at_alphabet
from skcalib._input.scores import (
    MAX_MAGNITUDE,
    check_estimator_scores,
    check_sample_weight,
    check_scores,
    drop_zero_weight,
)
from skcalib._input.sklearn_private import Interval, StrOptions
from skcalib._input.tensors import as_given
from skcalib._rows.blocks import row_blocks, taken
from skcalib._rows.links import (
    LARGEST_GAP,
    clip_probability,
    impossible,
    impossible_at_clip,
    log_odds_against_rest,
    log_probability,
    rounded,
    rounded_up_to,
    row_shares,
    row_softmax,
    tied_where_rounded,
    two_class_log_odds,
    without_impossible,
)
from skcalib.maps import clipped_probability, two_logits
from skcalib.maps._forms import with_cuts
from skcalib.maps._tensors import mapped_tensor
from skcalib.recalibrators._transformer import ProbabilityTransformer

_MOST_MASKS = 2  # distinct logits that stand for impossible classes, at most
# What the strength of a ridge may be: as large as logits and weights.
RIDGE = Interval(Real, 0, MAX_MAGNITUDE, closed="both")


class BaseRecalibrator(ProbabilityTransformer):
    """Base class of all recalibrators, which turn scores into probabilities.

    A subclass defines ``_fit_scores(scores, codes, sample_weight)`` and
    ``_predict_scores(scores)`` for validated scores (n, C). `codes` (n,) holds the
    column index of each label. Treat this array as read-only. Its dtype may be int8.
    Most methods derive from `BinaryRecalibrator` or `LogitRecalibrator` instead.

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
    A method that predicts the base rates, regardless of the scores:

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

    _parameter_constraints: dict = {
        "input": [StrOptions({"probability", "logit"})],
        "classes": ["array-like", None],
    }

    # Which classes must have rows: "all", "two" (any two of them) or "any". The
    # `classes` parameter names the others.
    _needs_classes = "all"
    # Whether `predict` gives the class of the largest score, also where probabilities
    # round or are spread otherwise.
    _keeps_decisions = False

    def __init__(
        self,
        *,
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.input = input
        self.classes = classes

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the calibration map.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
            Scores: probabilities or, with ``input="logit"``, log-odds or logits.
            Columns are in the sorted order of the classes.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), default=None
            Frequency weights: a weight of 2 counts a sample twice.

        Returns
        -------
        self : object
            The fitted recalibrator.

        Raises
        ------
        ValueError
            If scores and labels are inconsistent. The message gives the reason and the
            first offending row.
        """
        self._validate_params()
        vars(self).pop("_has_wide_logits_", None)  # of an earlier fit
        scores, is_impossible = self._possible_scores(X, reset=True)
        codes = self._encoded(y, scores)
        if is_impossible is not None:
            # `scores` has -inf in place of the logits of impossible classes
            logits = check_scores(X, name="X", input=self.input)
            if _are_no_masks(logits, is_impossible, codes):
                self._has_wide_logits_ = True
                scores, is_impossible = self._possible_scores(X, reset=True)
        refuse_impossible_labels(is_impossible, codes)
        if scores.shape[1] == 1 and self.classes is None:
            hint = "give both columns, sorted."
            hint_at_alphabet(scores[:, 0], codes, self.classes_, hint)
        weight = check_sample_weight(sample_weight, len(scores))
        if is_impossible is not None:
            # A row with one possible class is certain, and shows nothing: it gets the
            # weight 0, unless that would leave no row.
            is_open = np.count_nonzero(~is_impossible, axis=1) > 1
            if weight is None:
                weight = np.ones(len(scores))
            if (weight * is_open).any():
                weight = weight * is_open
        scores, codes, weight = drop_zero_weight(weight, scores, codes)
        # Weights that only left rows out are 1 in all that remain: there are none
        # again.
        if sample_weight is None:
            weight = None
        self._fit_encoded(scores, codes, weight)
        if self._has_wide_logits:
            for member in getattr(self, "recalibrators_", []):
                member._has_wide_logits_ = True
        self.provenance_ = provenance(self, scores, codes, weight)
        return self

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores.

        Returns
        -------
        probabilities : ndarray of float64, shape (n, n_classes)
            Calibrated probabilities, with columns in the order of `classes_`.

        Raises
        ------
        ValueError
            If scores are invalid or their number of columns differs from that in `fit`.
        """
        check_fitted(self)
        scores, is_impossible = self._possible_scores(X)
        probabilities = self._predict_encoded(scores)
        # `_predict_encoded` knows an impossible class of K > 2 by its -inf. One of two
        # has a finite logit there: see `_possible_scores`.
        if scores.shape[1] > 2:
            is_impossible = None
        return self._restricted(probabilities, is_impossible)

    def _fit_encoded(self, scores, codes, sample_weight, floor=None):
        """Fit to validated rows; return self.

        `scores` are (n, C), `codes` (n,) column indices of the labels, weights positive
        or None. `floor` is that of a stack (see `ClippedRecalibrator`); None means that
        the method learns its own.
        """
        # Two classes that are found in `y` both have rows, unless weights of 0 take
        # them away: no need to count.
        both_have_rows = (
            len(self.classes_) == 2 and self.classes is None and sample_weight is None
        )
        if not both_have_rows:
            self._check_classes_present(codes)
        # the scores within the floor or the clipping constant, if the method has one
        inside = self._fit_bounded(scores, codes, sample_weight, floor)
        self._fit_scores(inside, codes, sample_weight)
        return self

    def _predict_encoded(self, scores):
        """Return the probabilities (n, K) of validated scores (n, C)."""
        probabilities = self._predict_scores(self._bounded(scores))
        return self._restricted(probabilities, self._impossible_classes(scores))

    def _impossible_classes(self, scores):
        """Return which classes of more than two are impossible in their rows, as a
        logit of -inf says: booleans (n, K), None if none is.
        """
        if self.input != "logit" or scores.shape[1] <= 2 or scores.min() > -np.inf:
            return None
        return np.isneginf(scores)

    def _restricted(self, probabilities, is_impossible):
        """Return probabilities (n, K) with 0 where `is_impossible` (n, K) is true; None
        changes nothing.

        The rest of a row is made larger to sum to 1, unless the method does not
        normalise.
        """
        rescale = getattr(self, "normalize", True) or probabilities.shape[1] == 2
        return without_impossible(probabilities, is_impossible, rescale=rescale)

    def _fit_bounded(self, scores, codes, sample_weight, floor):
        """Return the scores that the method is fitted to, of the same shape.

        Here they are unchanged. Methods with a `clip` keep probabilities away from 0
        and 1, by a floor or a clipping constant that is set here
        (`ClippedRecalibrator`).
        """
        return scores

    def _bounded(self, scores):
        """Return scores to predict from, kept away from 0 and 1 as in the fit: see
        `_fit_bounded`.
        """
        return scores

    def _bounded_node(self, scores):
        """Return what `_bounded` does as a node of the calibration map."""
        return scores

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the most probable class.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores.

        Returns
        -------
        labels : ndarray of shape (n,)
            The first of the classes with the largest probability. Methods that keep the
            predicted class (temperature scaling, and ``multiclass="top_label"``) return
            the class with the largest score.
        """
        check_fitted(self)
        if self._keeps_decisions:
            scores = check_estimator_scores(self, X, input=self.input, reset=False)
            return self.classes_[decisions(scores, self.input)]
        return super().predict(X)

    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Return the smallest scores that reach the given probabilities.

        The map must be increasing. This converts a threshold on the calibrated
        probability into a threshold on the raw score: ``score >=
        inverse_transform([p])`` if and only if ``predict_proba(score)[:, 1] >= p``. At
        a step, the result is the first score of the step.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1) or (n, 2)
            Calibrated probabilities of the positive class, or of both classes.

        Returns
        -------
        scores : ndarray of float64, shape (n,)
            Scores of the positive class: probabilities or, with ``input="logit"``,
            log-odds. If every score reaches a given probability, the corresponding
            result is 0 or minus infinity.

        Raises
        ------
        ValueError
            If there are more than two classes, if the map decreases somewhere or is
            constant, or if no score reaches a probability. Monotonicity is checked at
            about 2,000 scores and on both sides of the knots.

        Examples
        --------
        Grant loans for which the probability of default is below .2:

        >>> from skcalib import HistogramBinning
        >>> scores, defaults = [0.02, 0.1, 0.1, 0.3, 0.3, 0.3], [0, 0, 0, 0, 1, 1]
        >>> bins = HistogramBinning(binning=2).fit(scores, defaults)
        >>> bins.inverse_transform([0.2]).round(6).tolist(), bins.bin_edges_.tolist()
        ([0.2], [0.0, 0.2, 1.0])
        """
        # which fits and forecasts do without
        from skcalib.maps._inverse import smallest_scores

        check_fitted(self)
        return smallest_scores(self, X)

    @property
    def _takes_validated_rows(self):
        """Whether `fit` does nothing but validate before `_fit_encoded`."""
        return type(self).fit is BaseRecalibrator.fit

    @property
    def _predicts_validated_rows(self):
        """Whether `predict_proba` does nothing but validate before
        `_predict_encoded`.
        """
        return type(self).predict_proba is BaseRecalibrator.predict_proba

    @property
    def _has_wide_logits(self):
        """Whether the samples of the fit showed that finite logits far below others do
        not mark impossible classes: only -inf does.
        """
        return getattr(self, "_has_wide_logits_", False)

    def _possible_scores(self, X, reset=False):
        """Return the validated scores (n, C), and which classes are impossible in their
        rows: booleans (n, C), None if none is.

        The scores have -inf for these; of two classes, a logit 700 below the other.
        """
        scores = check_estimator_scores(self, X, input=self.input, reset=reset)
        is_impossible = None
        if self.input == "logit":
            gap = LARGEST_GAP
            if self._has_wide_logits:
                gap = np.inf
            is_impossible = impossible(scores, gap)
        if is_impossible is None:
            return scores, None
        if scores.shape[1] > 2:
            masked = np.where(is_impossible, scores.dtype.type(-np.inf), scores)
            return masked, is_impossible
        lowest = scores.max(axis=1, keepdims=True) - LARGEST_GAP
        return np.where(is_impossible, lowest, scores), is_impossible

    def _check_classes_present(self, codes):
        """Raise unless there are rows of the classes that the method needs."""
        is_present = np.bincount(codes, minlength=len(self.classes_)) > 0
        if self._needs_classes == "any" or is_present.all():
            return
        if self._needs_classes == "two" and np.count_nonzero(is_present) > 1:
            return
        needed = "every class"
        if self._needs_classes == "two":
            present, *_ = self.classes_[is_present].tolist()
            needed = f"two classes, found {present!r} only"
        first_missing, *_ = self.classes_[~is_present].tolist()
        raise ValueError(
            f"{type(self).__name__} needs rows of {needed}: there are none (of positive"
            f" weight) of the class {first_missing!r}."
        )


class BinaryRecalibrator(BaseRecalibrator):
    """Base class of binary methods.

    ``_fit_binary(scores, labels, sample_weight)`` receives scores (n,) on the scale
    named by `_scale`, boolean labels (n,) and positive weights or None, and sets the
    fitted attributes; ``_predict_binary(scores)`` returns the probability of the event.
    For more than two classes, either each class is fitted against the rest, or only the
    confidence of the predicted class is calibrated.

    Instead of ``_predict_binary``, a subclass may define ``_map(score)``, which returns
    the probability as an expression built from the nodes in `skcalib.maps`.
    `predict_proba` then evaluates this expression, and the SQL, ONNX and JavaScript
    exports are generated from it. If a method defines both, ``_predict_binary`` is used
    because it is faster, and a test checks that the two agree.

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

    def _fit_scores(self, scores, codes, sample_weight):
        """Fit one binary problem for two classes, else one for each class or for the
        predicted one.
        """
        vars(self).pop("estimators_", None)  # of an earlier fit to more classes
        if len(self.classes_) == 2:
            self._fit_binary(self._binary_scores(scores), codes == 1, sample_weight)
            return
        self.estimators_ = self._fit_parts(
            self._class_probabilities(scores), codes, sample_weight
        )
        self._collect_attributes()

    def _fit_parts(self, probabilities, codes, sample_weight):
        """Return a list of recalibrators fitted to the binary problems of probabilities
        (n, K): each class against the rest or, for top-label, one problem for whether
        the predicted class is right.
        """
        on_scale = self._scale_of_classes(probabilities)
        if self.multiclass == "top_label":
            predicted, confidence = top_label(probabilities)
            problems = [(confidence, codes == predicted)]
        else:
            # one by one, so that the labels of one class are held at a time
            problems = ((p, codes == k) for k, p in enumerate(probabilities.T))
        # Only an impossible class has a softmax of 0.
        has_impossible = self.input == "logit" and probabilities.min() == 0
        parts = []
        for column, labels in problems:
            scores = self._problem_scores(on_scale(column))
            weight = sample_weight
            if has_impossible:
                is_possible = column > 0
                scores = scores[is_possible]
                labels = labels[is_possible]
                weight = taken(weight, is_possible)
            part = self._part()
            part._fit_binary(scores, labels, weight)
            parts.append(part)
        return parts

    def _problem_scores(self, scores):
        """Return scores (n,) of one of K classes, made equal where they differ by
        rounding alone: logits and their softmax then have the same fit.
        """
        if self._scale == "log_odds" or self._rounds_class_scores:
            return scores
        return tied_where_rounded(scores)

    def _predict_scores(self, scores):
        """Return the probabilities (n, K): of more than two classes each class's map,
        normalised if asked for.
        """
        if len(self.classes_) == 2:
            return self._predict_two_classes(scores)
        probabilities = self._class_probabilities(scores)
        if self.multiclass == "top_label":
            return self._predict_top_label(probabilities)
        on_scale = self._scale_of_classes(probabilities)
        calibrated = np.empty(probabilities.shape)
        for k, part in enumerate(self.estimators_):
            calibrated[:, k] = part._predict_binary(on_scale(probabilities[:, k]))
        if self.normalize:
            return row_shares(calibrated, len(self.classes_))
        return calibrated

    def _predict_two_classes(self, scores):
        """Return the probabilities (n, 2) in blocks of rows."""
        both = np.empty((len(scores), 2))
        # `_predict_binary` is a function of each score alone, and its temporaries are
        # small.
        for rows in row_blocks(len(scores)):
            probability = self._predict_binary(self._binary_scores(scores[rows]))
            np.subtract(1, probability, out=both[rows, 0])
            both[rows, 1] = probability
        return both

    def _predict_top_label(self, probabilities):
        """Return the probabilities (n, K): the calibrated confidence, and the rest
        shared among the other classes.
        """
        _, confidence = top_label(probabilities)
        on_scale = self._scale_of_classes(probabilities)
        confidence = self.estimators_[0]._predict_binary(on_scale(confidence))
        if self._scale == "log_odds":
            # Scaling methods never return 0, also not for a class whose score is 0.
            probabilities = clip_probability(probabilities)
        return spread_top_label(probabilities, confidence)

    def _binary_scores(self, scores):
        """Return the scores of the positive class (n,) on the method's scale."""
        if self.input == "probability" and self._scale != "log_odds":
            return scores[:, -1]
        log_odds = two_class_log_odds(scores, self.input)
        if self._scale == "probability":
            return expit(log_odds)
        return log_odds

    def _class_probabilities(self, scores):
        """Return the probabilities (n, K) that scores (n, K) stand for."""
        if self.input == "logit":
            return softmax(scores.astype(np.float64), axis=1)
        return scores

    def _scale_of_classes(self, probabilities):
        """Return a function from probabilities (n,), one of each row of `probabilities`
        (n, K), to the method's scale.
        """
        if self._scale == "log_odds":
            return log_odds_against_rest(probabilities)
        if self._rounds_class_scores:
            return rounded
        return np.asarray

    @property
    def _rounds_class_scores(self):
        """Whether the probabilities of K classes are rounded, so that those that are
        equal tie on whatever machine, and logits tie where their softmax does.
        """
        return self._is_step_function and len(self.classes_) > 2

    def _part(self):
        """Return an unfitted copy for one binary problem, on probabilities."""
        part = copy.copy(self)
        for name in list(vars(part)):
            if name.endswith("_"):
                delattr(part, name)
        part.input = "probability"
        return part

    def _collect_attributes(self):
        """Set each fitted attribute of the parts on self: a list with one entry per
        class.
        """
        for name in vars(self.estimators_[0]):
            if name.endswith("_"):
                setattr(self, name, [getattr(part, name) for part in self.estimators_])

    def _map_of(self, scores):
        """Return the node of the probabilities, from the node of the scores: what
        `_predict_scores` does, as a map.
        """
        scores = self._bounded_node(scores)
        if len(self.classes_) == 2:
            return self._map(self._score_node(scores))
        probabilities = scores
        if self.input == "logit":
            probabilities = nodes.Softmax(scores, clip=False)
        on_log_odds = self._scale == "log_odds"
        on_scale = probabilities
        if on_log_odds:
            on_scale = nodes.LogOddsAgainstRest(probabilities)
        if self.multiclass == "top_label":
            confidence = self._map_of_part(self.estimators_[0], nodes.RowMax(on_scale))
            if on_log_odds:
                probabilities = clipped_probability(probabilities)
            return nodes.Spread(probabilities, confidence)
        columns = []
        for k, part in enumerate(self.estimators_):
            columns.append(self._map_of_part(part, nodes.OneColumn(on_scale, k)))
        calibrated = nodes.Columns(tuple(columns))
        if self.normalize:
            return nodes.Normalized(calibrated)
        return calibrated

    def _map_of_part(self, part, score):
        """Return the node of a binary problem's probability, from that of its score.

        A map of rounded scores becomes one of the scores themselves: its cuts move to
        the largest scores that round to them.
        """
        node = part._map(score)
        if self._rounds_class_scores:
            return with_cuts(node, rounded_up_to)
        return node

    def _score_node(self, scores):
        """Return the node of the positive class's score on the method's scale, from
        that of the scores of two classes: what `_binary_scores` does, as a map.
        """
        score = scores
        if self.input == "probability":
            if scores.width == 2:
                score = nodes.OneColumn(scores, 1)
            if self._scale == "log_odds":
                return nodes.LogOdds(score)
            return score
        if scores.width == 2:
            score = nodes.Affine(scores, np.array([[-1.0, 1.0]]), np.zeros(1))
        if self._scale == "probability":
            return nodes.Expit(score, clip=False)
        return score

    def _predict_binary(self, scores):
        """Return the event's probabilities (n,) by evaluating the map.

        Methods that override it take .4 to .9 of the time; tests compare them with
        their maps.
        """
        node = self._map(nodes.Scores(1))
        rows = nodes.Rows(scores[:, None])
        return rows(node)[:, 0]


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

    def _fit_scores(self, scores, codes, sample_weight):
        """Fit to the logits of the scores."""
        codes = codes.astype(np.intp, copy=False)
        logits = self._logits(scores)
        if not self._leaves_impossible_out:
            logits = impossible_at_clip(logits, self._impossible_classes(scores))
        self._fit_logits(logits, codes, sample_weight)

    def _predict_encoded(self, scores):
        """Return the probabilities (n, K) of validated scores (n, C), by blocks."""
        probabilities = np.empty((len(scores), len(self.classes_)))
        for rows in row_blocks(len(scores), len(self.classes_)):
            probabilities[rows] = self._predict_block(scores[rows])
        return probabilities

    def _predict_block(self, scores):
        """Return the probabilities (n, K) of a block of validated scores (n, C)."""
        is_impossible = self._impossible_classes(scores)  # (n, K) or None
        # within the floor or the clipping constant of the fit, if the method has one
        logits = self._logits(self._bounded(scores))
        if is_impossible is None:
            return row_softmax(self._predict_logits(logits))
        if not self._leaves_impossible_out:
            # The method's arithmetic is not made for -inf: it gets finite logits, those
            # of the smallest probability that is not clipped. What it makes of them
            # becomes -inf again, and the probability 0.
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
        """Return the node of the probabilities, from the node of the scores: `_map` of
        their logits.
        """
        scores = self._bounded_node(scores)
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
        """Return the two logits that log-odds stand for, for methods that ignore what
        is added to both.
        """
        return two_logits(log_odds)


def _are_no_masks(logits, is_impossible, codes):
    """Return whether classes whose logits are far below others are possible after all:
    some labels name them, and their logits take many values, where masks repeat one
    number. The margins of a linear model of large features are such logits.

    `logits` and `is_impossible` are (n, K), `codes` (n,) the class of each row.
    """
    has_impossible_label = is_impossible[np.arange(len(codes)), codes]
    if not has_impossible_label.any():
        return False
    finite_masks = logits[is_impossible & (logits > -np.inf)]
    return len(np.unique(finite_masks)) > _MOST_MASKS


def refuse_impossible_labels(is_impossible, codes):
    """Raise if the class of a row is impossible according to its logits."""
    if is_impossible is None:
        return
    has_impossible_label = is_impossible[np.arange(len(codes)), codes]
    if has_impossible_label.any():
        row = int(np.argmax(has_impossible_label))
        raise ValueError(
            f"y has a class in row {row} that is impossible according to its logit:"
            f" -inf, or more than {LARGEST_GAP:g} below the largest logit of the row."
            " Drop such rows, or divide logits that are not logarithms of"
            " probabilities by a constant."
        )


def decisions(scores, input):
    """Return the index (n,) of the class with the largest score, the first where
    several tie, of scores (n, 1) or (n, K) on the scale `input`.
    """
    if scores.shape[1] > 1:
        return scores.argmax(axis=1)
    tie = 0.5
    if input == "logit":
        tie = 0
    return (scores[:, 0] > tie).astype(np.intp)
