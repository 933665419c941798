"""Base of the recalibrators: they validate and reduce here, so that a method is two
short functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from tempfile import TemporaryFile
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from skcalib._defaults import check_fitted, unchanged_if_refused
from skcalib._fitting.provenance import provenance
from skcalib._input.labels import check_groups
from skcalib._input.limits import MAX_MAGNITUDE
from skcalib._input.scalars import check_confidence_level
from skcalib._input.scores import (
    check_estimator_scores,
    check_sample_weight,
    check_scores,
    drop_zero_weight,
)
from skcalib._input.sklearn_private import Interval, StrOptions
from skcalib._input.tensors import (
    as_given,
    dispatched_namespace,
    like,
    namespace_of,
    tensor_on_processor,
)
from skcalib._input.warn import warn
from skcalib._intervals.influence import cluster_codes
from skcalib._intervals.one_probability.lazy import NO_LIMITS, LazyLimits
from skcalib._intervals.one_probability.normal import why_none
from skcalib._intervals.one_probability.samples import Maker, widened_limits
from skcalib._intervals.one_probability.states import has_few_events
from skcalib._rows.blocks import row_blocks
from skcalib._rows.keys import check_ids
from skcalib._rows.links import (
    LARGEST_GAP,
    impossible,
)
from skcalib._rows.namespaces import without_impossible
from skcalib.maps._prediction import predicted
from skcalib.maps._tensors import mapped_tensor
from skcalib.recalibrators._stored_batches import stored_batches
from skcalib.recalibrators._tensor_rows import (
    fits_tensors,
    tensor_decisions,
    tensor_rows,
)
from skcalib.recalibrators._transformer import ProbabilityTransformer

_ARRAYS_OF_LIMITS = 2  # of the size of the probabilities, while limits are computed
_MOST_MARKS = 2  # distinct finite logits that mark impossible classes, at most
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
    # A class whose `_fit_scores` takes `Shortcuts` as a fourth argument sets
    # `_takes_shortcuts`. Subclasses do not inherit it: their hooks may have three.
    #
    # A class whose `_fit_scores` computes where a tensor of scores lives sets
    # `_fits_tensors`, which subclasses do not inherit for the same reason.
    #
    # Whether `predict` gives the class of the largest score, also where probabilities
    # round or are spread otherwise.
    _keeps_decisions = False
    # What the limits of `predict_interval` are computed from.
    _limits = NO_LIMITS

    def __init__(
        self,
        *,
        input: Literal["probability", "logit"] = "probability",
        classes: ArrayLike | None = None,
    ):
        self.input = input
        self.classes = classes

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        clusters: ArrayLike | None = None,
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
            Frequency weights: a sample with weight 2 counts twice.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample: dependent samples (from the same patient or match)
            share a value. They matter to `predict_interval` alone.

        Returns
        -------
        self : object
            The fitted recalibrator.

        Raises
        ------
        ValueError
            If scores and labels are inconsistent. The message gives the reason and the
            first offending row. An earlier fit then stays as it was.
        """

        def fit_rows(scores, codes, names, weight):
            return self._fit_scores(scores, codes, weight)

        return self._fit_validated(
            X, y, sample_weight, fit_rows, cluster_names(clusters, y)
        )

    def _fit_validated(
        self,
        X,
        y,
        sample_weight,
        fit_rows,
        names=None,
        weight_type="frequency",
        columns=(),
    ):
        """Validate what a fit is given, fit with ``fit_rows(scores, codes, names,
        weight, *columns)``, and return self. The arguments of `fit_rows` are what
        `_validated_rows` returns; `names` (n,) are those of the samples' clusters, or
        None, and `columns` further arrays (n, ...).

        `fit_rows` may return the `Maker` of the state of the limits of
        `predict_interval`, from the codes of the clusters, or None.
        """
        self._validate_params()
        with unchanged_if_refused(self):
            if fits_tensors(self):
                # a loss of the user's gets the labels as they were given
                self._has_label_tensor = dispatched_namespace(y)[0] is not None
                y = tensor_on_processor(y)
                sample_weight = tensor_on_processor(sample_weight)
            y = self._with_counted_labels(y, sample_weight, X)
            rows = None
            if fits_tensors(self) and names is None and not columns:
                rows = tensor_rows(self, X, y, sample_weight)
            if rows is None:
                rows = self._validated_rows(X, y, sample_weight, names, *columns)
            scores, codes, *others, weight = rows
            # the rows of tensors have no clusters and no columns
            names, *columns = others or (None,)
            self._check_classes_present(codes)
            vars(self).pop("_limits", None)  # of an earlier fit
            maker = fit_rows(
                scores, like(scores, codes), names, like(scores, weight), *columns
            )
            if isinstance(maker, Maker):
                cluster = None if names is None else cluster_codes(names)
                self._limits = LazyLimits.of_fit(maker, cluster)
            self.provenance_ = provenance(self, scores, codes, weight, weight_type)
            vars(self).pop("_has_label_tensor", None)
        return self

    def fit_batches(self, batches: Iterable[tuple[ArrayLike, ...]]) -> Self:
        """Fit the calibration map to batches, of which one at a time is in memory.

        Fits read the scores several times, and batches can be read only once. The
        scores are therefore written to a temporary file, from which the methods on K
        logits read blocks of samples.

        Parameters
        ----------
        batches : iterable of tuples (X, y) or (X, y, sample_weight)
            The arguments of `fit` for some of the samples, such as the logits of a
            network and their labels: arrays, or tensors on any device. A generator or a
            data loader can be passed.

        Returns
        -------
        self : object
            The fitted recalibrator: the same as that of `fit` for all samples, except
            for the rounding of batches that are less precise than the first one.

        Raises
        ------
        ValueError
            If there is no batch, if batches have different numbers of columns, if only
            some have weights, or as in `fit`.

        Examples
        --------
        >>> import numpy as np
        >>> from skcalib import TemperatureScaling
        >>> def batches():
        ...     for seed in range(4):
        ...         rng = np.random.default_rng(seed)
        ...         logits = rng.normal(size=(2000, 3), scale=2)
        ...         noise = rng.gumbel(size=logits.shape)
        ...         yield 2 * logits, (logits + noise).argmax(axis=1)
        >>> scaling = TemperatureScaling(input="logit").fit_batches(batches())
        >>> round(scaling.temperature_), scaling.provenance_["n_rows"]
        (2, 8000)
        """
        self._validate_params()
        if getattr(self, "features", None) is not None:
            raise ValueError("fit_batches takes no features: use fit.")
        with TemporaryFile() as file:
            return self.fit(*stored_batches(batches, file, self.input))

    def _validated_rows(self, X, y, sample_weight, *arrays):
        """Validate what a fit is given, and set `classes_`; return the scores (n, C),
        in which classes are marked as impossible (see `_possible_scores`), the codes of
        the labels, the further `arrays` (n,) or None of the rows, and the weights (n,)
        or None. Rows without weight, or that are certain by their logits, are left out.
        """
        # A logit far below the others marks an impossible class, until the rows of this
        # fit show otherwise.
        vars(self).pop("_has_wide_logits_", None)
        X, classes = self._in_class_order(X, y)
        scores, is_impossible = self._possible_scores(X, reset=True)
        codes = self._encoded(y, scores, classes)
        if is_impossible is not None:
            logits = check_scores(X, name="X", input=self.input)  # without marks
            if _are_wide_logits(logits, is_impossible, codes):
                self._read_wide_logits()
                scores, is_impossible = self._possible_scores(X, reset=True)
        refuse_impossible_labels(is_impossible, codes)
        weight = check_sample_weight(sample_weight, len(scores))
        if is_impossible is not None:
            weight = _zero_for_certain_rows(weight, is_impossible)
        *rows, weight = drop_zero_weight(weight, scores, codes, *arrays)
        if sample_weight is None:
            # The rows that are left have the weight 1: no weights at all are faster.
            weight = None
        return *rows, weight

    def _fit_member(self, scores, codes, sample_weight, classes, shortcuts):
        """Fit to the rows of a stack, which has validated them: scores (n, C), codes
        and weights (n,), the labels of the columns and the `Shortcuts` that the stack
        knows; return self.
        """
        self.classes_ = classes
        self.n_features_in_ = scores.shape[1]
        self._check_classes_present(codes)
        if "_takes_shortcuts" in vars(type(self)):
            maker = self._fit_scores(scores, codes, sample_weight, shortcuts)
        else:
            maker = self._fit_scores(scores, codes, sample_weight)
        if isinstance(maker, Maker) and not shortcuts.only_forecasts:
            self._maker = maker  # until the stack takes it
        return self

    def _forget_start(self):
        """Delete what is kept only for fits that start from this one."""

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
        return self._probabilities(X)

    def _probabilities(self, X, ids=None):
        """Return the probabilities (n, K) of scores `X`, with the ids (n,) of the rows,
        or None, for a map that goes by them.
        """
        check_fitted(self)
        probabilities = mapped_tensor(self, X)
        if probabilities is not None:
            return probabilities
        scores = check_estimator_scores(self, X, input=self.input, reset=False)
        if ids is not None:
            ids = check_ids(ids, len(scores))
        return as_given(self._predict_checked(scores, ids), X)

    def _predict_checked(self, scores, ids=None, *, features=None, uses_table=False):
        """Return the probabilities (n, K) of scores (n, C) that were validated, in
        which impossible classes are not marked yet; `ids` are (n,) or None, and
        `features` (n, n_features) or None.

        With `uses_table` the smooth parts of a mixture for two classes are read from a
        table: see `skcalib.maps._tabulated`.
        """
        scores, is_impossible = self._with_marks(scores)
        probabilities = self._predict_encoded(
            scores,
            ids,
            features=features,
            uses_table=uses_table,
            all_possible=is_impossible is None,
        )
        # An impossible class of two has a finite logit in `scores` (see
        # `_possible_scores`), and gets its 0 here. One of more classes has -inf, which
        # `_predict_encoded` turns into 0.
        if scores.shape[1] > 2:
            is_impossible = None
        return self._restricted(probabilities, is_impossible)

    def _map_attributes(self):
        """Return the list of the attributes on which the map depends: all but the
        limits, which may hold this object.
        """
        attributes = dict(vars(self))
        attributes.pop("_limits", None)
        return list(attributes.values())

    def _predict_encoded(
        self,
        scores,
        ids=None,
        *,
        features=None,
        uses_table=False,
        all_possible=False,
    ):
        """Return the probabilities (n, K) of validated scores (n, C): by the map, or by
        ``_predict_scores`` of a method that has none. `ids` are (n,) or None,
        `features` (n, n_features) or None, and `all_possible` says that no class is
        known to be impossible.
        """
        if not hasattr(self, "_predict_scores"):
            return predicted(
                self,
                scores,
                ids,
                features=features,
                uses_table=uses_table,
                all_possible=all_possible,
            )
        probabilities = self._predict_scores(self._clipped(scores))
        return self._restricted(probabilities, self._impossible_classes(scores))

    def _impossible_classes(self, scores):
        """Return which of more than two classes have a logit of -inf, and so are
        impossible in their rows: booleans (n, K), None if none is.
        """
        if self.input != "logit" or scores.shape[1] <= 2:
            return None
        xp = namespace_of(scores)
        if xp.min(scores) > -np.inf:
            return None
        return scores == -np.inf

    def _restricted(self, probabilities, is_impossible):
        """Return probabilities (n, K) with 0 where `is_impossible` (n, K) is true; None
        changes nothing.

        The rest of a row is made larger to sum to 1, unless the method does not
        normalise.
        """
        rescale = getattr(self, "normalize", True) or probabilities.shape[1] == 2
        return without_impossible(np, probabilities, is_impossible, rescale=rescale)

    def _start_fit(self, scores, codes, sample_weight, shortcuts):
        """Set what comes before the map, and return the scores (n, C) that it is fitted
        to: here unchanged, with a `clip` kept away from 0 and 1.
        """
        return scores

    def _clipped(self, scores):
        """Return the scores (n, C) to predict from, kept away from 0 and 1 as in
        `_start_fit`.
        """
        return scores

    def _clipped_node(self, scores):
        """Return the expression in `skcalib.maps` for `_clipped(scores)`, for a node
        `scores`.
        """
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
            columns = None
            if getattr(self, "features", None) is None:
                columns = tensor_decisions(self, X)
            if columns is not None:
                return self.classes_[columns]
            return self.classes_[decisions(self._read_scores(X), self.input)]
        return super().predict(X)

    def predict_interval(
        self, X: ArrayLike, confidence_level: float = 0.9
    ) -> np.ndarray:
        """Return limits for the event frequency at each score.

        The calibrated probability estimates how often the event happens among samples
        with this score. The limits say how far it may be off because the map was fitted
        to a finite number of samples. They are pointwise: each interval covers its own
        frequency at about the stated level, if the method's form is right.

        Parameters
        ----------
        X : array-like with as many columns as in `fit`
            Scores.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).

        Returns
        -------
        limits : ndarray of float64, shape (n, 2) or (n, n_classes, 2)
            Lower and upper limit of the frequency of the event, the second class; for
            more than two classes, of each class. They contain the calibrated
            probability.

        Raises
        ------
        ValueError
            If the method has no such limits (the message says why), if scores are
            invalid, or if their number of columns differs from that in `fit`.

        Warns
        -----
        UserWarning
            If there were fewer than ten events, or fewer than ten of the other label:
            the limits then cover less often than stated. Or if clusters leave the
            limits of a regression or a softmax unknown, which then are NaN: their
            variance has fewer than 4 degrees of freedom, or the rarer label is worth
            fewer than 20 independent samples.

        Notes
        -----
        Regressions on the log-odds (`PlattScaling`, `BetaCalibration`,
        `QuadraticScaling`, `TemperatureScaling`): for the limits alone, the curve is
        fitted once more to the labels 0 and 1, with Jeffreys' penalty [1]_ and without
        the ridge of the map; they are normal on the log-odds, with the larger one of
        two variances, the inverse curvature and the sandwich HC3 [2]_ (with weights the
        sandwich). Few samples say how a third parameter bends the ends of a steep
        curve: without weights and clusters, curves of three parameters take in profile
        limits of the penalised likelihood [3]_. In simulations with a curve of that
        form, limits of .9 cover .87 to .95. Limits cannot know that the form is wrong:
        those of a straight line cover .17 of a curve with plateaus at 10,000 samples,
        and those of a temperature nothing where all scores have the frequency .3.
        They take a learned floor as given, and cover .61 to .92 where the truth has a
        floor of .03.

        With clusters, the variance of a regression or a softmax comes from the steps
        that the fit takes without one of them (CR3), with Satterthwaite's degrees of
        freedom [4]_: in simulations of 20 to 40 clusters, of which a few hold most
        samples, limits of .9 cover .89 to .90. Ten clusters mostly leave them NaN; the
        others cover .80 to .84.

        `VectorScaling`, `MatrixScaling`, `DirichletCalibration`, and temperatures of
        more than two classes: the delta method on the log-odds of each class, about the
        fitted curve.

        Bins: Wilson's limits for the frequency among the samples of the score's bin.
        Inside a bin the frequency at one score may differ from it.

        `SplineCalibration`: limits from the posterior of the curve given its penalty,
        at most 1. They are stated, not guaranteed: .79 to .95 in simulations of smooth
        curves, .38 to .72 of plateaus.

        `StackedRecalibrator`: the root mean square, by the members' weights, of the
        distances from the stack's probability to the limits of each member; stated, not
        guaranteed: .89 to .98 in simulations of smooth curves, .66 to .82 where 100
        samples have plateaus or an S-shaped curve. No fit is repeated: a bootstrap of
        the members would cost 25 fits or more. `Recalibrator`: the limits of the map
        that it tried, also where it keeps the scores. `PriorShift`: the probabilities
        at the limits of its `target_mean`, if that is an interval; limits of another
        level than the interval's are normal ones on the log-odds.

        `IsotonicCalibration` and `VennAbers`: all frequencies that the likelihood ratio
        does not reject for a curve that never falls [5]_, at the quantile of the
        chi-square law, which is careful where the curve rises. With ten clusters, those
        of .9 cover .77.

        Samples of a fit with weights were each seen once, whatever they weigh: weights
        that add up to the same total widen the limits the more they differ. The labels
        that `expand_soft_labels` makes of one sample are one cluster.

        References
        ----------
        .. [1] Firth (1993), Bias reduction of maximum likelihood estimates.
        .. [2] MacKinnon and White (1985), Some heteroskedasticity-consistent covariance
           matrix estimators with improved finite sample properties.
        .. [3] Heinze and Schemper (2002), A solution to the problem of separation in
           logistic regression.
        .. [4] Bell and McCaffrey (2002), Bias reduction in standard errors for linear
           regression with multi-stage samples.
        .. [5] Banerjee and Wellner (2001), Likelihood ratio tests for monotone
           functions.

        Examples
        --------
        Samples with score s are events with probability s.

        >>> import numpy as np
        >>> from skcalib import PlattScaling
        >>> rng = np.random.default_rng(0)
        >>> scores = rng.random(300)
        >>> platt = PlattScaling().fit(scores, rng.random(300) < scores)
        >>> platt.predict_interval([0.1, 0.5, 0.9]).round(2).tolist()
        [[0.04, 0.11], [0.38, 0.5], [0.85, 0.94]]
        """
        check_fitted(self)
        level = check_confidence_level(confidence_level)
        reason = self._why_no_limits()
        if reason:
            raise ValueError(self._no_interval(reason))
        unknown = self._why_nan_limits()
        if unknown:
            warn(f"The limits are NaN: {unknown}.")
        elif has_few_events(self._limits.state):
            warn(
                "The recalibrator was fitted to fewer than ten events, or to fewer than"
                " ten samples of the other label: the limits hold less often than"
                " stated."
            )
        scores = self._read_scores(X)
        limits_at = self._limits_at(level)
        n_classes = len(self.classes_)
        shape = (len(scores), 2)
        if n_classes > 2:
            shape = (len(scores), n_classes, 2)
        limits = np.empty(shape)
        for rows in row_blocks(len(scores), _ARRAYS_OF_LIMITS * n_classes):
            probabilities = self._predict_checked(scores[rows])
            marked_scores, _ = self._with_marks(scores[rows])
            limits[rows] = widened_limits(
                *limits_at(marked_scores, probabilities), probabilities
            )
        return limits

    def _why_no_limits(self):
        """Return why there are no limits for one probability, else "". A fit returns
        the `Maker` of `_limits`, which ``_limits_at(level)`` reads: it returns a
        function of validated scores (n, C), in which impossible classes are marked, and
        calibrated probabilities (n, K), which returns the lower and the upper limits:
        (n, K) and (n, K), or (n,) and (n,) for the second of two classes.
        """
        if self._has_limits():
            return ""
        return super()._why_no_limits()

    def _has_limits(self):
        """Return whether there are limits for one probability; make their state."""
        return self._limits.state is not None

    def _read_scores(self, X):
        """Return the validated scores (n, C) of new rows."""
        return check_estimator_scores(self, X, input=self.input, reset=False)

    def _why_nan_limits(self):
        """Return why clusters leave the limits unknown, else an empty text."""
        return why_none(self._limits.state)

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
        """Whether `fit` does nothing but validate before `_fit_scores`."""
        return type(self).fit is BaseRecalibrator.fit

    @property
    def _predicts_validated_rows(self):
        """Whether `predict_proba` does nothing but validate before
        `_predict_encoded`.
        """
        return type(self).predict_proba is BaseRecalibrator.predict_proba

    @property
    def _has_wide_logits(self):
        """Whether only a logit of -inf marks an impossible class: the samples of the
        fit showed that finite logits far below others are of possible classes.
        """
        return getattr(self, "_has_wide_logits_", False)

    def _read_wide_logits(self):
        """Take no finite logit for the mark of an impossible class."""
        self._has_wide_logits_ = True

    def _possible_scores(self, X, reset=False):
        """Return the validated scores (n, C), and which classes are impossible in their
        rows: booleans (n, C), None if none is.

        A logit of -inf, or more than 700 below the largest of its row, marks an
        impossible class. It becomes -inf, or of two classes 700 below the other: the
        log-odds stay finite.
        """
        scores = check_estimator_scores(self, X, input=self.input, reset=reset)
        return self._with_marks(scores)

    def _with_marks(self, scores):
        """Return what `_possible_scores` does, for validated scores (n, C)."""
        is_impossible = None
        if self.input == "logit":
            gap = LARGEST_GAP
            if self._has_wide_logits:
                gap = np.inf
            is_impossible = impossible(scores, gap)
        if is_impossible is None:
            return scores, None
        if scores.shape[1] > 2:
            mark = scores.dtype.type(-np.inf)
        else:
            mark = scores.max(axis=1, keepdims=True) - LARGEST_GAP
        return np.where(is_impossible, mark, scores), is_impossible

    def _check_classes_present(self, codes):
        """Raise a ValueError unless `codes` (n,), the classes of the rows, have the
        classes that the method needs: see `_needs_classes`.
        """
        if self._needs_classes == "any":
            return
        if len(self.classes_) == 2:
            n_events = np.count_nonzero(codes)  # in a tenth of the time of `bincount`
            is_present = np.array([n_events < len(codes), n_events > 0])
        else:
            is_present = np.bincount(codes, minlength=len(self.classes_)) > 0
        if is_present.all():
            return
        if self._needs_classes == "two" and np.count_nonzero(is_present) > 1:
            return
        needed = "every class"
        if self._needs_classes == "two":
            (present,) = self.classes_[is_present].tolist()  # there is only one
            needed = f"two classes, found {present!r} only"
        first_missing, *_ = self.classes_[~is_present].tolist()
        raise ValueError(
            f"{type(self).__name__} needs rows of {needed}: there are none (of positive"
            f" weight) of the class {first_missing!r}."
        )


def _are_wide_logits(logits, is_impossible, codes):
    """Return whether finite logits (n, K) far below others are those of possible
    classes: some labels name such classes, and the logits take many values, as the
    margins of a linear model with large features, where a mark is the same number
    everywhere. `is_impossible` (n, K) says which look like marks, `codes` (n,) are the
    classes.
    """
    has_impossible_label = is_impossible[np.arange(len(codes)), codes]
    if not has_impossible_label.any():
        return False
    finite_marks = logits[is_impossible & (logits > -np.inf)]
    return len(np.unique(finite_marks)) > _MOST_MARKS


def _zero_for_certain_rows(weight, is_impossible):
    """Return weights (n,) with 0 for rows in which all classes but one are impossible:
    they are certain, and show nothing about calibration.

    `weight` (n,) may be None for weights of 1. If no row would be left, all keep their
    weights.
    """
    is_open = np.count_nonzero(~is_impossible, axis=1) > 1
    if weight is None:
        weight = np.ones(len(is_open))
    weight_of_open = weight * is_open
    if weight_of_open.any():
        return weight_of_open
    return weight


def cluster_names(clusters, y):
    """Return the name of each sample's cluster (n,), or None without clusters."""
    if clusters is None:
        return None
    names, codes = check_groups(clusters, len(y), name="clusters", scores_name="X")
    return names[codes]


def refuse_impossible_labels(is_impossible, codes):
    """Raise a ValueError if a row has a label, `codes` (n,), whose class is impossible
    according to its logits: `is_impossible` is (n, K), or None if no class is.
    """
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
    """Return the index (n,) of the class with the largest score, the first of those
    that tie.

    `scores` are (n, K), or (n, 1) for the second of two classes: it is chosen above a
    probability of 1/2, or above log-odds of 0 if `input` is "logit".
    """
    if scores.shape[1] > 1:
        return scores.argmax(axis=1)
    tie = 0.5
    if input == "logit":
        tie = 0
    return (scores[:, 0] > tie).astype(np.intp)
