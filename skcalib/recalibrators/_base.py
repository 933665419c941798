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
from skcalib._input.limits import MAX_MAGNITUDE
from skcalib._input.sklearn_private import Interval, StrOptions
from skcalib._input.tensors import as_given, like
from skcalib._intervals.influence import cluster_codes
from skcalib._intervals.one_probability.lazy import LazyLimits
from skcalib._intervals.one_probability.samples import LimitsMaker
from skcalib._rows.blocks import row_blocks, taken
from skcalib.maps._node import Rows
from skcalib.maps._prediction import predicted_node, probabilities_of_two
from skcalib.maps._tabulated import tabulated
from skcalib.maps._tensors import mapped_tensor
from skcalib.recalibrators._interval_mixin import IntervalMixin
from skcalib.recalibrators._stored_batches import stored_batches
from skcalib.recalibrators._tensor_rows import tensor_decisions
from skcalib.recalibrators._transformer import ProbabilityTransformer
from skcalib.recalibrators._validation_mixin import ValidationMixin

# What the strength of a ridge may be: as large as logits and weights.
RIDGE = Interval(Real, 0, MAX_MAGNITUDE, closed="both")


class BaseRecalibrator(ValidationMixin, IntervalMixin, ProbabilityTransformer):
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

    # A class whose `_fit_scores` takes `Shortcuts` as a fourth argument sets
    # `_takes_shortcuts`. Subclasses do not inherit it: their hooks may have three.
    #
    # A class whose `_fit_scores` computes where a tensor of scores lives sets
    # `_fits_tensors`, which subclasses do not inherit for the same reason.
    #
    # Whether `predict` gives the class of the largest score, also where probabilities
    # round or are spread otherwise.
    _keeps_decisions = False
    # The parameter of the methods that take columns of X beside the scores.
    features = None

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
        self._validate_params()
        with unchanged_if_refused(self):
            rows = self._rows_of_fit(X, y, sample_weight, clusters)
            # Scores may be a tensor: codes and weights become tensors beside it.
            codes = like(rows.scores, rows.codes)
            weight = like(rows.scores, rows.sample_weight)
            if rows.features is None:
                maker = self._fit_scores(rows.scores, codes, weight)
            else:
                maker = self._fit_with_features(
                    rows.scores, codes, weight, rows.features
                )
            self._keep_fit(rows, maker)
        return self

    def _keep_fit(self, rows, maker, weight_type="frequency"):
        """Set `provenance_`, what was fitted to which rows, a `FitRows`, and `_limits`,
        from which `predict_interval` computes limits. `maker` is what the fit returned:
        the `LimitsMaker` of these, or None for a method without limits.
        """
        vars(self).pop("_limits", None)  # of an earlier fit
        if isinstance(maker, LimitsMaker):
            cluster = None if rows.clusters is None else cluster_codes(rows.clusters)
            self._limits = LazyLimits.of_fit(maker, cluster)
        self.provenance_ = provenance(
            self, rows.scores, rows.codes, rows.sample_weight, weight_type
        )
        vars(self).pop("_has_label_tensor", None)  # only the fit needs it

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
        if self.features is not None:
            raise ValueError("fit_batches takes no features: use fit.")
        with TemporaryFile() as file:
            return self.fit(*stored_batches(batches, file, self.input))

    def _fit_member(self, scores, codes, sample_weight, classes, shortcuts):
        """Fit to the rows of a stack, which has validated them: scores (n, C), codes
        and weights (n,), and the labels `classes` of the columns; return self.
        `shortcuts` hold what the stack knows, such as a similar fit to start from.
        """
        self.classes_ = classes
        self.n_features_in_ = scores.shape[1]
        self._check_classes_present(codes)
        if "_takes_shortcuts" in vars(type(self)):
            maker = self._fit_scores(scores, codes, sample_weight, shortcuts)
        else:
            maker = self._fit_scores(scores, codes, sample_weight)
        if isinstance(maker, LimitsMaker) and not shortcuts.only_forecasts:
            self._maker = maker  # the stack makes the limits of the member from it
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
        check_fitted(self)
        if self.features is None:
            probabilities = mapped_tensor(self, X)
            if probabilities is not None:
                return probabilities
        scores, features = self._read_rows(X)
        return as_given(self._predict_checked(scores, features=features), X)

    def _predict_checked(self, scores, ids=None, *, features=None, uses_table=False):
        """Return the probabilities (n, K) of validated scores (n, C): by the map, or by
        ``_predict_scores`` of a method that has none. `ids` are (n,) or None, and
        `features` (n, n_features) or None.

        With `uses_table` the smooth parts of a mixture for two classes are read from a
        table: see `skcalib.maps._tabulated`.
        """
        # Logits of impossible classes become -inf; `is_impossible` (n, C) or None.
        scores, is_impossible = self._with_marks(scores)
        if hasattr(self, "_predict_scores"):
            probabilities = self._predict_scores(self._clipped(scores))
            return self._restricted(probabilities, is_impossible)
        n_classes = len(self.classes_)
        node = predicted_node(self, scores.shape[1])
        if uses_table and n_classes == 2:
            node = tabulated(node, self.input)
        probabilities = np.empty((len(scores), n_classes))
        # Each row is predicted on its own, so blocks of rows change nothing: they keep
        # the memory of intermediate results small.
        for chosen in row_blocks(len(scores), n_classes):
            rows = Rows(
                scores[chosen],
                ids=taken(ids, chosen),
                features=taken(features, chosen),
            )
            rows.is_impossible = None
            if is_impossible is not None:
                rows.is_impossible = self._impossible_classes(scores[chosen])
            if n_classes > 2:
                probabilities[chosen] = rows(node)
            else:
                complement, probability = probabilities_of_two(node, rows)
                probabilities[chosen, :1] = complement
                probabilities[chosen, 1:] = probability
        # The map gives an impossible class of more than two its 0. One of two has a
        # finite logit in `scores`, and gets its 0 here.
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
            if self.features is None:
                columns = tensor_decisions(self, X)
            if columns is not None:
                return self.classes_[columns]
            scores, _ = self._read_rows(X)
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
        """Whether `fit` does nothing but validate before `_fit_scores`."""
        return type(self).fit is BaseRecalibrator.fit

    @property
    def _predicts_validated_rows(self):
        """Whether `predict_proba` does nothing but validate before
        `_predict_checked`.
        """
        return type(self).predict_proba is BaseRecalibrator.predict_proba


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
