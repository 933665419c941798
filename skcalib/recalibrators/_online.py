"""A recalibrator that learns while it serves."""

from __future__ import annotations

from math import log
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from skcalib._cells.columns import spread_top_label, top_label
from skcalib._defaults import check_fitted, unchanged_if_refused
from skcalib._fitting.wrapped import refuse_features
from skcalib._input.classes import (
    EVENT_HINTS,
    encode_labels,
    hint_at_event,
    in_class_order,
)
from skcalib._input.labels import check_label_vector
from skcalib._input.limits import ROUNDING
from skcalib._input.scalars import check_number, check_option
from skcalib._input.scores import (
    check_estimator_scores,
    check_sample_weight,
    drop_zero_weight,
    refuse_swapped,
)
from skcalib._rows.blocks import weights_or_ones
from skcalib._rows.links import (
    LARGEST_GAP,
    clip_probability,
    impossible,
    log_odds_against_rest,
    row_softmax,
    two_class_log_odds,
)
from skcalib._rows.namespaces import without_impossible
from skcalib._solvers.online_logistic import ForgettingNewton, OnlineNewton
from skcalib.maps.checks import (
    array,
    check_lengths,
    check_same_classes,
    count,
    must_be,
    weights,
)
from skcalib.recalibrators._transformer import ProbabilityTransformer
from skcalib.recalibrators._validation_mixin import refuse_impossible_labels

_PLAIN_KINDS = {list, np.ndarray}
_MEMBERS = (
    ("scores", "learning", "forgetting"),
    ("scores", "fixed", "learning", "forgetting"),
)

# The log-odds of a score of 1, up to rounding, and those with which it is replaced.
_LIMIT = 52 * log(2) - 1e-9
_CERTAIN_LOG_ODDS = log(999)


class OnlineRecalibrator(ProbabilityTransformer):
    """Recalibrator that keeps learning from each batch of labels.

    It mixes up to four forecasts: the original scores, a fixed recalibrator (if given),
    Platt scaling updated with every sample, and the same method with forgetting. The
    forecasts are weighted by their past performance, so that the log-loss stays close
    to that of the best of them, even if a different one becomes the best.

    Parameters
    ----------
    recalibrator : FrozenEstimator, default=None
        A recalibrator fitted to the same kind of scores, in a `FrozenEstimator`, which
        keeps it fitted when the object is cloned.
    half_life : float, default=5000
        Number of samples after which the weight of a sample is halved in the member
        with forgetting.
    switching_rate : "auto" or float, default="auto"
        Share of the weights, in [0, 1), that is redistributed evenly after each sample,
        so that a member that performed badly can recover. "auto" means 1 / (t + 1)
        after t samples, which costs little in the long run. A constant rate ``a`` costs
        up to about ``a`` nats per sample indefinitely, but adapts faster to frequent
        changes.
    input : {"probability", "logit"}, default="probability"
        Scale of the scores. A single column of logits is the log-odds of the positive
        class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    members_ : tuple of str
        Names of the forecasts that are mixed.
    weights_ : ndarray of shape (n_members,)
        Weights of these forecasts, which sum to 1.
    n_rows_ : int
        Number of samples from which the recalibrator has learned.
    n_features_in_ : int
        Number of score columns.
    feature_names_in_ : ndarray of str
        Names of the score columns, if they had names.

    Raises
    ------
    ValueError
        In `fit` and `partial_fit`, if scores and labels are inconsistent, or if
        `recalibrator` is not frozen.

    See Also
    --------
    skcalib.monitoring.CalibrationMonitor : Raises an alarm, but does not correct the
        scores.
    skcalib.PlattScaling : The same map, fitted once.

    Notes
    -----
    For more than two classes, the probability of the predicted class is recalibrated;
    the other classes share the remaining probability in proportion to their scores.

    A batch is predicted with the state before the batch is learned. The weights are
    updated with the losses of the forecasts that were issued; the members learn sample
    by sample. The state therefore depends on how the samples are divided into batches.
    If labels arrive with a delay, the regret described below increases with this delay.

    The learning member is online Platt scaling [1]_. Its regret relative to the best
    fixed sigmoid is of order log(T) after T samples, with a constant that increases
    with the magnitude of the coefficients. The weights follow the fixed-share rule
    [2]_: with ``switching_rate="auto"``, the log-loss of the mixture exceeds that of
    the best member by a total of at most order log(T), and that of the best sequence of
    members with k changes by at most order k log(T). Both statements are about rates of
    growth; they are not bounds for a given T. The method does not guarantee
    calibration.

    References
    ----------
    .. [1] Gupta and Ramdas (2023), Online Platt scaling with calibeating.
    .. [2] Herbster and Warmuth (1998), Tracking the best expert.

    Examples
    --------
    The scores are calibrated in the first half of the stream; in the second half, their
    log-odds are too high by 1:

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib import OnlineRecalibrator
    >>> from sklearn.metrics import log_loss
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=40_000)
    >>> y = rng.random(40_000) < expit(z - (np.arange(40_000) >= 20_000))
    >>> scores, online, issued = expit(z), OnlineRecalibrator(), []
    >>> online = online.partial_fit(scores[:1000], y[:1000])
    >>> for batch in np.split(np.arange(1000, 40_000), 39):
    ...     issued.append(online.predict_proba(scores[batch])[:, 1])
    ...     online = online.partial_fit(scores[batch], y[batch])
    >>> online.members_[online.weights_.argmax()]
    'forgetting'
    >>> round(log_loss(y[1000:], scores[1000:]), 3)
    0.612
    >>> round(log_loss(y[1000:], np.concatenate(issued)), 3)
    0.569
    """

    _attributes = {
        "members_": must_be("the names of the members", lambda it: it in _MEMBERS),
        "weights_": weights,
        "n_rows_": count,
        "_learned": array(),
        "_faded": array(),
    }
    _derived = {
        "_learning": lambda self: OnlineNewton(self._learned),
        "_forgetting": lambda self: ForgettingNewton(self.half_life, self._faded),
    }

    _uses_clusters = False

    # What users read after a fit.
    classes_: np.ndarray
    members_: tuple
    weights_: np.ndarray
    n_rows_: int

    def __init__(
        self,
        recalibrator: FrozenEstimator | None = None,
        *,
        half_life: float = 5000,
        switching_rate: float | Literal["auto"] = "auto",
        input: Literal["probability", "logit"] = "probability",
    ):
        self.recalibrator = recalibrator
        self.half_life = half_life
        self.switching_rate = switching_rate
        self.input = input

    def _why_no_limits(self):
        return "the map keeps learning: its set of samples is not fixed"

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        clusters: None = None,
    ) -> Self:
        """Reset the recalibrator and learn from a first batch.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
            Scores, in the sorted order of the classes.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), default=None
            Weights, by which the losses of the samples are multiplied. Samples with
            weight 0 are ignored.
        clusters : None
            Must be None, because there is no `predict_interval`, for which other
            recalibrators take clusters.

        Returns
        -------
        self : OnlineRecalibrator
            The fitted recalibrator.

        Raises
        ------
        ValueError
            If clusters are given, or if scores and labels are inconsistent.
        """
        if clusters is not None:
            raise ValueError(
                "OnlineRecalibrator does not support clusters: they matter to"
                " predict_interval alone, which is not available, because"
                f" {self._why_no_limits()}."
            )
        return self._learn(X, y, None, sample_weight, reset=True)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from the next batch, after it has been predicted.

        Parameters
        ----------
        X : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
            Scores, in the sorted order of the classes.
        y : array-like of shape (n,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels; required in the first call if its batch lacks a class.
        sample_weight : array-like of shape (n,), default=None
            Weights, by which the losses of the samples are multiplied. Samples with
            weight 0 are ignored.

        Returns
        -------
        self : OnlineRecalibrator
            The recalibrator, which has learned from the batch.
        """
        return self._learn(
            X, y, classes, sample_weight, reset=not hasattr(self, "n_rows_")
        )

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return the forecasts of the current state.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores.

        Returns
        -------
        probabilities : ndarray of float64, shape (n, n_classes)
            Calibrated probabilities, with columns in the order of `classes_`.
        """
        check_fitted(self)
        scores = check_estimator_scores(self, X, input=self.input, reset=False)
        probabilities, log_odds, predicted = self._event(scores)
        forecasts = self._member_forecasts(X, log_odds, predicted)
        event_probability = clip_probability(self.weights_ @ forecasts)
        # Scores of 0 and 1 may have been rounded: their forecasts are bounded by 1 in a
        # thousand, so that an error costs 7 nats at most.
        is_certain = np.abs(log_odds) == _CERTAIN_LOG_ODDS
        lowest = expit(-_CERTAIN_LOG_ODDS)
        bounded = np.clip(event_probability, lowest, 1 - lowest)
        event_probability = np.where(is_certain, bounded, event_probability)
        if predicted is None:
            result = np.column_stack((1 - event_probability, event_probability))
        else:
            result = spread_top_label(probabilities, event_probability)
        return without_impossible(np, result, self._impossible_classes(scores))

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the most probable class; for K > 2, the class with the largest score.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores.

        Returns
        -------
        labels : ndarray of shape (n,)
            Predicted labels.
        """
        check_fitted(self)
        if len(self.classes_) > 2:
            scores = check_estimator_scores(self, X, input=self.input, reset=False)
            return self.classes_[scores.argmax(axis=1)]
        return super().predict(X)

    def _member_names(self):
        """Return the names of the members: "fixed" only with a fitted recalibrator."""
        return _MEMBERS[self.recalibrator is not None]

    def _learn(self, X, y, classes, sample_weight, *, reset):
        """Learn from a batch of samples; return self.

        The members forecast the batch, and their weights are updated by how well they
        did; then the members that learn are updated. With `reset` what was learned
        before is forgotten. `classes` are those of the columns of scores, in their
        order; None stands for those of the recalibrator or of `y`.
        """
        if reset:
            self._check_parameters()
        else:
            check_fitted(self)  # also raises if a parameter was changed after the fit
        row = None  # scores and codes of a single row, checked in less time
        if not reset and classes is None and sample_weight is None:
            row = self._one_plain_row(X, y)
        with unchanged_if_refused(self):
            if row is not None:
                scores, codes = row
            else:
                if reset:
                    if classes is None and self.recalibrator is not None:
                        classes = self.recalibrator.classes_
                    X, classes = in_class_order(
                        X, y, classes, name="X", y_name="y", labels_name="classes"
                    )
                scores = check_estimator_scores(self, X, input=self.input, reset=reset)
                codes = self._codes(y, scores, classes, reset)
            refuse_impossible_labels(self._impossible_classes(scores), codes)
            weight = check_sample_weight(sample_weight, len(scores))
            if reset:
                self._start()
            else:
                # Copies are updated, so that a refused batch leaves the state
                # unchanged.
                self._learning = OnlineNewton(self._learned)
                self._forgetting = ForgettingNewton(self.half_life, self._faded)
            _, log_odds, predicted = self._event(scores)
            if predicted is None:
                events = codes == 1
            else:
                events = codes == predicted
            # (n_members, n); transposed for `drop_zero_weight`, which selects along the
            # first axis
            forecasts = self._member_forecasts(X, log_odds, predicted)
            log_odds, events, forecasts_of_rows, weight = drop_zero_weight(
                weight, log_odds, events, forecasts.T
            )
            weight = weights_or_ones(weight, len(events))
            self._update_weights(forecasts_of_rows.T, events, weight)
            batch = (log_odds.tolist(), events.tolist(), weight.tolist())
            self._learning.learn(*batch)
            self._forgetting.learn(*batch)
            # The states are arrays (5,), which can be written to JSON.
            self._learned = np.array(self._learning.state)
            self._faded = np.array(self._forgetting.state)
        return self

    def _check_parameters(self):
        """Raise a ValueError for a parameter that is out of range."""
        check_option(self.input, "input", ("probability", "logit"))
        check_number(self.half_life, "half_life", above=0)
        if self.switching_rate != "auto":
            check_number(self.switching_rate, "switching_rate", at_least=0, below=1)
        if self.recalibrator is None:
            return
        if not isinstance(self.recalibrator, FrozenEstimator):
            raise ValueError(
                "recalibrator must be a fitted recalibrator in a FrozenEstimator, which"
                " stays fitted when this object is cloned, found"
                f" {self.recalibrator!r}: write FrozenEstimator(recalibrator.fit(...))."
            )
        inner: BaseEstimator = self.recalibrator.estimator
        check_is_fitted(inner)
        refuse_features(inner)
        if getattr(inner, "input", self.input) != self.input:
            raise ValueError(
                f"recalibrator has input={inner.input!r}, but this object has"
                f" input={self.input!r}: both must use the same scores."
            )

    def _one_plain_row(self, X, y):
        """Return the scores (1, C) and the code (1,) of a single sample of two classes
        if a few comparisons show that both are valid; else None.

        A service learns from one label at a time: the checks of a batch take longer
        than the step itself.
        """
        width = self.n_features_in_
        has_names = hasattr(self, "feature_names_in_")
        kinds = {type(X), type(y)}
        if width > 2 or len(self.classes_) > 2 or has_names or kinds - _PLAIN_KINDS:
            return None
        if len(X) != 1 or len(y) != 1:
            return None
        try:
            X = np.asarray(X)
            y = np.asarray(y)
        except ValueError:  # lists of different lengths
            return None
        has_shape = X.size == width and X.ndim <= 2 and y.ndim == 1
        has_type = X.dtype == np.float64 and y.dtype.kind == self.classes_.dtype.kind
        classes = self.classes_.tolist()
        if not has_shape or not has_type or y.tolist()[0] not in classes:
            return None
        scores = X.reshape(1, width)
        (row,) = scores.tolist()
        if self.input == "logit":
            is_valid = all(abs(logit) <= LARGEST_GAP / 2 for logit in row)
        else:
            _, untouched = ROUNDING["float64"]
            is_valid = all(0 <= probability <= 1 for probability in row)
            is_valid &= width == 1 or abs(sum(row) - 1) <= untouched
        if not is_valid:
            return None
        return scores, np.array([classes.index(y.tolist()[0])])

    def _codes(self, y, scores, classes, reset):
        """Return the column index of each label (n,). The first batch (`reset`) sets
        `classes_`, to `classes` or, for None, to the labels found; later ones must
        agree.
        """
        y = check_label_vector(y, len(scores), name="y", scores_name="X")
        refuse_swapped(y, scores, name="y", scores_name="X")
        if not reset:
            if classes is not None and not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"classes must stay {self.classes_.tolist()} after the first batch,"
                    f" found {np.asarray(classes).tolist()}."
                )
            classes = self.classes_
        is_named = classes is not None
        self.classes_, codes = encode_labels(
            y, scores.shape[1], classes, name="y", classes_name="classes"
        )
        if scores.shape[1] == 1 and not is_named:
            hint = EVENT_HINTS[self.input]
            hint_at_event(scores[:, 0], codes, self.classes_, hint)
        return codes

    def _start(self):
        """Set the state before the first row: two learners, the names of the members
        and their weights, which are equal.
        """
        self._remember_parameters()
        self._learning = OnlineNewton()
        self._forgetting = ForgettingNewton(self.half_life)
        self.members_ = self._member_names()
        self.weights_ = np.full(len(self.members_), 1 / len(self.members_))
        self.n_rows_ = 0

    def _check_attributes(self):
        """Raise a ValueError unless the fitted attributes, which were read from a JSON
        document, are consistent with each other.
        """
        self._check_parameters()
        if self.members_ != self._member_names():
            raise ValueError(
                f"members_ are {self.members_}, and recalibrator is"
                f" {self.recalibrator!r:.60}"
            )
        if self.recalibrator is not None:
            check_same_classes(self, self.recalibrator.estimator)
        check_lengths(self, len(self.members_), "weights_")
        check_lengths(self, 5, "_learned", "_faded")
        # The states of the two learners: slope, intercept and a curvature matrix as its
        # entries 11, 12 and 22. It must be positive definite, because steps are divided
        # by it.
        for _, _, a11, a12, a22 in (self._learned, self._faded):
            if not (a11 > 0 and a11 * a22 > a12 * a12):
                raise ValueError("_learned and _faded must contain a curvature")

    def _event(self, scores):
        """Return the probabilities (n, K), the log-odds (n,) of one event, the positive
        class of two or that the predicted class is right, and the predicted class (n,);
        the first and the last are None for two classes.
        """
        if len(self.classes_) == 2:
            log_odds = two_class_log_odds(scores, self.input)
            return None, _without_certainty(log_odds), None
        probabilities = scores
        if self.input == "logit":
            probabilities = row_softmax(scores)
        # The class of the largest logit, also where probabilities round to 1.
        predicted = scores.argmax(axis=1)
        _, confidence = top_label(probabilities)
        log_odds_of = log_odds_against_rest(probabilities)
        log_odds = _without_certainty(log_odds_of(confidence))
        return probabilities, log_odds, predicted

    def _impossible_classes(self, scores):
        """Return which classes are impossible in their rows by their logits, booleans
        (n, K); None if none is.
        """
        if self.input == "logit":
            return impossible(scores)
        return None

    def _member_forecasts(self, X, log_odds, predicted):
        """Return the clipped probabilities (n_members, n) that the members give the
        event: the unchanged scores, the fixed recalibrator if there is one, and the two
        that learn. `predicted` (n,) is None for two classes.
        """
        forecasts = [expit(log_odds)]
        if self.recalibrator is not None:
            probabilities = self.recalibrator.predict_proba(X)
            column = predicted
            if column is None:
                # The event is the second of two classes in every row.
                column = np.ones(len(probabilities), dtype=int)
            forecasts.append(probabilities[np.arange(len(column)), column])
        forecasts.append(expit(self._learning.log_odds(log_odds)))
        forecasts.append(expit(self._forgetting.log_odds(log_odds)))
        return clip_probability(np.array(forecasts))

    def _update_weights(self, forecasts, events, weight):
        """Update the weights of the members, sample by sample, by the fixed-share rule
        of Herbster and Warmuth (1998), for `forecasts` (n_members, n), `events` and
        `weight` (n,). Each weight is multiplied by the member's likelihood; then a
        share of the normalised weights is divided evenly among the members.
        """
        log_likelihood = weight * np.log(np.where(events, forecasts, 1 - forecasts))
        # Only ratios between members matter: with the best at 1 nothing underflows.
        likelihood = np.exp(log_likelihood - log_likelihood.max(axis=0))
        n_members = len(forecasts)
        weights = self.weights_.tolist()
        n_rows = self.n_rows_
        is_auto = self.switching_rate == "auto"
        rate = self.switching_rate
        for sample_likelihood in likelihood.T.tolist():
            n_rows += 1
            if is_auto:
                rate = 1 / (n_rows + 1)
            products = [w * p for w, p in zip(weights, sample_likelihood, strict=True)]
            total = sum(products)
            if total == 0:
                # At a switching rate of 0, weights may underflow to 0. If the other
                # members all give the sample the likelihood 0, it changes nothing.
                continue
            normaliser = (1 - rate) / total
            even_share = rate / n_members
            weights = [normaliser * product + even_share for product in products]
        self.weights_ = np.array(weights)
        self.n_rows_ = n_rows


def _without_certainty(log_odds):
    """Return log-odds (n,) in which scores of 0 and 1, which may have been rounded, are
    replaced by a probability of 1 in a thousand of the opposite.
    """
    is_certain = np.abs(log_odds) >= _LIMIT
    if not is_certain.any():
        return log_odds
    return np.where(is_certain, np.sign(log_odds) * _CERTAIN_LOG_ODDS, log_odds)
