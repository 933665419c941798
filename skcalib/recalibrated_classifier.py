"""A classifier and its recalibrator in one estimator."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skcalib._defaults import ParameterHints, check_fitted, unchanged_if_refused
from skcalib._fitting.folds import splits_of
from skcalib._fitting.gains import Design
from skcalib._fitting.wrapped import check_recalibrator, design_parameters
from skcalib._inference.results import IntervalEstimate
from skcalib._input.annotations import CrossValidation
from skcalib._input.classifier_scores import classifier_scores
from skcalib._input.columns import column_positions, select_columns
from skcalib._input.label_weights import is_importance
from skcalib._input.labels import check_clusters
from skcalib._input.scores import check_sample_weight, normalized_again
from skcalib._input.sklearn_private import safe_indexing
from skcalib._input.tensors import as_array, as_given, dispatched_namespace
from skcalib._input.warn import warn
from skcalib._intervals.influence import cluster_codes
from skcalib._intervals.one_probability.samples import widened_limits
from skcalib._rows.blocks import taken
from skcalib._rows.links import rounded
from skcalib._rows.pooling import POOLING_EXPONENT, geometric_pool
from skcalib._solvers.sums import chosen
from skcalib.cross_fitting import (
    ClassifierFitter,
    ClassifierWrapper,
    before_columns,
)
from skcalib.recalibrators import BaseRecalibrator, Recalibrator
from skcalib.recalibrators._certified_mixin import forbid_certificates_of_pairs
from skcalib.recalibrators._tensor_rows import fits_tensors
from skcalib.recalibrators._uncalibrated import Uncalibrated

__all__ = ["RecalibratedClassifierCV"]

# Scores of a model up to which those of all models go through their common recalibrator
# together. A call costs as much as some thousand scores.
_FEW_SCORES = 10_000
# Number of standard errors of the gain above which an average of recalibrated models
# takes the place of the original model. It is negative because the gain compares one
# model with one, and averaging lowers the loss further.
_POOLED_STANDARD_ERRORS = -0.5
# The name of the scale that a recalibrator is told.
_SCALE = {"decision_function": "logit", "predict_proba": "probability"}


def _linear_svc():
    """Return the default classifier; with metadata routing it requests weights."""
    classifier = LinearSVC(random_state=0)
    if get_config()["enable_metadata_routing"]:
        classifier.set_fit_request(sample_weight=True)
    return classifier


class RecalibratedClassifierCV(ClassifierMixin, ParameterHints, ClassifierWrapper):
    """Classifier whose probabilities are recalibrated on held-out samples.

    This is the counterpart of `sklearn.calibration.CalibratedClassifierCV` for any
    recalibrator object. For a classifier with a decision function,
    ``PlattScaling(clip=None)`` and `IsotonicCalibration`, with ``ensemble=True`` or
    ``ensemble=False``, give the same probabilities as scikit-learn.

    Parameters
    ----------
    estimator : classifier, default=None
        The classifier to recalibrate; None means ``LinearSVC(random_state=0)``. Its
        `decision_function` is used if it has one, otherwise its `predict_proba`. With
        ``recalibrator=None``, `predict_proba` is preferred, because the original model
        may be kept. If the classifier is already fitted, wrap it in a
        `sklearn.frozen.FrozenEstimator` and pass held-out data.

    recalibrator : recalibrator, default=None
        Any object with ``fit(scores, y)`` and ``predict_proba(scores)``. None means
        `Recalibrator`: a stack of recalibrators, or the original model if the
        stack would clearly make it worse (see Notes). The recalibrator is
        cloned. Its parameters `input` (the scale of the scores) and `classes` (the
        labels of their columns) are set to match the classifier; in a nested
        recalibrator, the parameters of the inner one are set. The `features` of a
        `PlattScaling`, `BetaCalibration` or `TemperatureScaling` are columns of `X`.

    cv : int, cross-validation splitter or iterable of (train, test), default=None
        How the samples are split into those for the classifier and those for the
        recalibrator. None means 5 stratified folds, and an int is their number. With
        ``ensemble=False``, each sample may be in at most one test set. Samples that are
        in no test set, such as the first ones of a `TimeSeriesSplit`, are used for
        training only.

    n_jobs : int, default=None
        Number of parallel jobs. None means 1 unless a `joblib.parallel_config` says
        otherwise; -1 means all processors.

    ensemble : bool or "auto", default="auto"
        With True, each fold has a classifier fitted to its training samples and a
        recalibrator fitted to its test samples; the probabilities of these pairs are
        averaged. With False, one recalibrator is fitted to the cross-fitted scores of
        all samples, and the classifier to all samples. "auto" combines the fold
        classifiers and a classifier fitted to all samples with a single recalibrator,
        and averages their probabilities: see Notes. "auto" is equivalent
        to False for a `FrozenEstimator` (nothing is split), for a precomputed kernel,
        and for a `cv` that leaves some samples out of all test sets. "auto" is
        equivalent to True for a `cv` with overlapping test sets.

    verbose : bool, default=False
        Whether to write a line to standard error for each fit of the classifier, at
        most one every two seconds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The sorted labels, in the order of the probability columns.

    calibrated_classifiers_ : list
        The fitted pairs, each with its `estimator`, `recalibrator` and `predict_proba`:
        one per fold (with ``ensemble="auto"``, followed by the pair fitted to all
        samples), or a single pair.

    pooling_exponent_ : float or None
        Exponent of the geometric mean over the pairs; None if the mean is arithmetic or
        if there is only one pair.

    gain_ : IntervalEstimate
        Reduction in out-of-fold log-loss, in nats per sample, from recalibrating one
        classifier: the estimate and its approximate 90% limits, low and high.
        Averaging reduces the loss further. Available if all pairs share a recalibrator
        that measures its gain, such as `Recalibrator` (the default) or
        `StackedRecalibrator`.

    chosen_ : recalibrator
        The recalibrator that was chosen: the stack, or ``Uncalibrated()`` for the
        original model, which is then fitted to all samples and is the only pair.
        Available if all pairs share a `Recalibrator`.

    n_features_in_ : int
        Number of features, if the classifier defines this attribute.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the classifier defines this attribute.

    Raises
    ------
    ValueError
        In `fit`, if `y` has only one class, if a test set of `cv` overlaps its training
        set, or, with ``ensemble=False``, if a sample is in two test sets.
    TypeError
        In `fit`, if `estimator` has neither `decision_function` nor `predict_proba`, or
        if `recalibrator` lacks a required method.

    See Also
    --------
    CrossFittedClassifier : The classifier as a separate pipeline step, so that a search
        can reuse its scores.

    Notes
    -----
    An arithmetic mean of calibrated forecasts that differ is underconfident [3]_.
    "auto" therefore uses their normalised geometric mean, raised to the power 1.03,
    where a probability of 0 is treated as 2^-52. Each prediction evaluates all
    classifiers. Since averaging also reduces the log-loss, the default keeps the
    original model only if `gain_` is below 0 by more than half its standard error. If
    nothing is averaged, it keeps the original model unless `gain_` is above 0 by more
    than half its standard error. Use ``ensemble=False`` to deploy or explain a single
    classifier. For a stable model and about a hundred samples, ``ensemble=False`` can
    also be slightly better: logistic regression on 100 samples of iris has a log-loss
    of .105 instead of .111 (10 splits); linear discriminant analysis has a log-loss of
    .057 in both cases.

    A class that is missing from a fold's training samples has probability 0 in that
    fold's pair. Test samples of this class are excluded from the recalibration of the
    pair, because its classifier does not know the class. If a class is missing from a
    fold's test samples, only recalibrators that cannot be fitted without it raise an
    error. A recalibrator that all pairs share is fitted to all samples.

    `sample_weight` is passed to the recalibrator and, if its `fit` accepts it, to the
    classifier. In a `Pipeline` of recalibrators, it is passed to every step that
    accepts it, `input` to the first step, and `classes` to all steps. Other metadata
    are passed to the classifier, and `groups` is passed to the splitter; with metadata
    routing enabled, the requests determine the routing instead. Without routing, a
    search uses `groups` only for its own splitter. In this case, make this estimator a
    step of a pipeline, and address the step by name: ``search.fit(X, y,
    recalibratedclassifiercv__groups=groups)``.

    References
    ----------
    .. [1] Platt, "Probabilistic Outputs for Support Vector Machines and Comparisons to
        Regularized Likelihood Methods", 1999 (``ensemble=False``).
    .. [2] Zadrozny and Elkan, "Transforming Classifier Scores into Accurate Multiclass
        Probability Estimates", KDD 2002.
    .. [3] Ranjan and Gneiting, "Combining probability forecasts", Journal of the Royal
        Statistical Society B, 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import log_loss
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcalib import RecalibratedClassifierCV
    >>> X_train, X_test, y_train, y_test = train_test_split(
    ...     *load_breast_cancer(return_X_y=True), random_state=0
    ... )
    >>> classifier = GaussianNB().fit(X_train, y_train)
    >>> recalibrated = RecalibratedClassifierCV(GaussianNB()).fit(X_train, y_train)
    >>> type(recalibrated.chosen_).__name__, recalibrated.gain_.low > 0
    ('StackedRecalibrator', True)
    >>> before, after = (
    ...     log_loss(y_test, model.predict_proba(X_test))
    ...     for model in (classifier, recalibrated)
    ... )
    >>> after < 0.5 * before
    True
    """

    _default_objects = {"estimator": _linear_svc, "recalibrator": Recalibrator}
    _hints = {
        "method": (
            'recalibrator=PlattScaling() for "sigmoid",'
            ' recalibrator=IsotonicCalibration() for "isotonic",'
            ' recalibrator=TemperatureScaling() for "temperature"'
        ),
        "base_estimator": "estimator=",
    }

    classes_: np.ndarray
    calibrated_classifiers_: list
    gain_: IntervalEstimate
    chosen_: BaseRecalibrator
    pooling_exponent_: float | None
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        estimator: BaseEstimator | None = None,
        recalibrator: BaseEstimator | None = None,
        *,
        cv: CrossValidation | None = None,
        n_jobs: int | None = None,
        ensemble: bool | Literal["auto"] = "auto",
        verbose: bool = False,
    ):
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.n_jobs = n_jobs
        self.ensemble = ensemble
        self.verbose = verbose

    def _state_sentence(self):
        """Return what is used for predictions, and what it gains; nothing before the
        fit, and how to measure the gain if that was not done.
        """
        if not hasattr(self, "calibrated_classifiers_"):
            return ""
        if not hasattr(self, "gain_"):
            n = len(self.calibrated_classifiers_)
            pair = "classifier-recalibrator pair"
            pairs = f"1 {pair}" if n == 1 else f"the average of {n} {pair}s"
            return (
                f"{type(self).__name__} uses {pairs}."
                " Its gain was not measured; with the default, recalibrator=None, it is"
                " measured."
            )
        chosen = type(self.chosen_).__name__
        return f"{type(self).__name__} uses {chosen}. {self.gain_}"

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        weight_type: Literal["frequency", "importance"] = "frequency",
        clusters: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the classifier and the recalibrator.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Samples, in any container that the classifier accepts.

        y : array-like of shape (n_samples,)
            Labels: numbers, booleans or strings.

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights of the samples; None weights them equally.

        weight_type : {"frequency", "importance"}, default="frequency"
            Meaning of the weights for `gain_`, and for the choice that rests on it.
            "frequency": a weight of 2 means two identical samples. "importance": each
            sample was observed once and represents more or less than one.

        clusters : array-like of shape (n_samples,), default=None
            Cluster of each sample: dependent samples (from the same patient or match)
            share a value, and lie in the same fold. An int as `cv` then means
            stratified folds of whole clusters.

        **fit_params : dict
            Metadata for the classifier's `fit`, and `groups` for the splitter.

        Returns
        -------
        self : RecalibratedClassifierCV
            The fitted classifier.

        Raises
        ------
        ValueError
            If `y` has only one class, if a test set of `cv` overlaps its training set,
            or, with ``ensemble=False``, if a sample is in two test sets. Also raised if
            `cv` splits a cluster.
        TypeError
            If `estimator` has neither `decision_function` nor `predict_proba`, or
            if `recalibrator` lacks a required method.
        """
        estimator = self._classifier()
        # The default recalibrator prefers probabilities, any other one decisions.
        methods = ("decision_function", "predict_proba")
        if self.recalibrator is None:
            methods = ("predict_proba", "decision_function")
        params = self._metadata(estimator, sample_weight, fit_params)
        fitter = self._checked_fitter(
            X, y, methods, params, sample_weight=sample_weight
        )
        sample_weight = check_sample_weight(sample_weight, len(fitter.y))
        importance = is_importance(weight_type)
        cv = self.cv
        cluster = None
        if clusters is not None:
            cluster = cluster_codes(check_clusters(clusters, len(fitter.y)))
            cv = _splits_of_clusters(cv, fitter, cluster)
        ensemble = self._resolved_ensemble(estimator)
        recalibrator = self._resolved("recalibrator")
        # This raises if there are weights and the recalibrator does not accept them.
        _weight_params(recalibrator, sample_weight)
        _refuse_columns(check_recalibrator(recalibrator, takes_columns=True))
        # The recalibrator that the classifiers of all folds share, if they share one.
        shared_recalibrator = recalibrator
        if self.recalibrator is None:
            # It requires a smaller gain than that of a single pair; see the constant.
            shared_recalibrator = Recalibrator(
                n_standard_errors=_POOLED_STANDARD_ERRORS
            )
        design = Design(sample_weight, importance, cluster)
        pair_fitter = _PairFitter(fitter, recalibrator, shared_recalibrator, design)
        # Pairs of a fitted classifier and its recalibrator.
        pairs = pair_fitter.pairs(cv, self._run, ensemble)
        forbid_certificates_of_pairs(pairs, estimator)
        is_shared = pairs[0].recalibrator is pairs[-1].recalibrator
        with unchanged_if_refused(self):
            self.classes_ = fitter.classes
            self.calibrated_classifiers_ = pairs
            self._copy_attributes(
                ("n_features_in_", "feature_names_in_"), pairs[0].estimator
            )
            # None stands for the arithmetic mean of the probabilities of all pairs.
            self.pooling_exponent_ = None
            if ensemble == "auto" and is_shared and len(pairs) > 1:
                self.pooling_exponent_ = POOLING_EXPONENT
            # With several recalibrators there is no single gain to report.
            source = pairs[0].recalibrator if is_shared else None
            self._copy_attributes(("gain_", "chosen_"), source)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return recalibrated probabilities, averaged over the fitted pairs.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        y_proba : ndarray of shape (n_samples, n_classes)
            Probability of each class, in the order of `classes_`. With scikit-learn's
            array API dispatch, a tensor input gives a tensor of the same library,
            device and floating-point type.
        """
        self._check_fitted()
        exponent = self.pooling_exponent_
        probabilities = _recalibrated(
            self.calibrated_classifiers_, X, keep_tensor=exponent is None
        )
        if exponent is None:
            return as_given(sum(probabilities) / len(probabilities), X)
        return as_given(geometric_pool(probabilities, exponent), X)

    def predict_interval(self, X: Any, confidence_level: float = 0.9) -> np.ndarray:
        """Return limits for the event frequency at each sample's score.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            New samples.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).

        Returns
        -------
        limits : ndarray of float64, shape (n_samples, 2) or (n_samples, n_classes, 2)
            Lower and upper limit of the frequency of the event, the second class; for
            more than two classes, of each class. They contain the recalibrated
            probability.

        Raises
        ------
        ValueError
            If the recalibrator has no such limits; the message says why.

        Notes
        -----
        These are the limits of the recalibrator's `predict_interval`, and for several
        pairs of a classifier and a recalibrator the means of theirs, which are careful.
        They say how far the map may be off, and take the classifier as given.
        """
        self._check_fitted()
        limits = []
        for pair in self.calibrated_classifiers_:
            recalibrator = pair.recalibrator
            name = type(recalibrator).__name__
            if not hasattr(recalibrator, "predict_interval"):
                raise ValueError(f"{name} has no predict_interval.")
            if not np.array_equal(recalibrator.classes_, self.classes_):
                raise ValueError(
                    "predict_interval needs recalibrators that know all classes:"
                    f" {name} was fitted to {recalibrator.classes_.tolist()}."
                )
            inputs, _ = as_array(pair.inputs(X))
            limits.append(recalibrator.predict_interval(inputs, confidence_level))
        low, high = np.moveaxis(np.mean(limits, axis=0), -1, 0)
        probabilities, _ = as_array(self.predict_proba(X))
        return widened_limits(low, high, probabilities)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            The label with the largest probability, or, with a single pair, the
            prediction of its recalibrator.
        """
        self._check_fitted()
        first, *others = self.calibrated_classifiers_
        if not others and hasattr(first.recalibrator, "predict"):
            return first.predict(X)
        probabilities, _ = as_array(self.predict_proba(X))
        return self.classes_[np.argmax(probabilities, axis=1)]

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how metadata are routed to the classifier's `fit` and to the splitter.

        Returns
        -------
        routing : MetadataRouter
            The routes of `fit`; `sample_weight` is also used by this estimator, for the
            recalibrator.
        """
        return super().get_metadata_routing().add_self_request(self)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # A regressor has no such tags; it is refused in `fit`.
        classifier_tags = get_tags(self._unfitted_classifier()).classifier_tags
        if classifier_tags is not None:
            tags.classifier_tags.multi_class = classifier_tags.multi_class
        return tags

    def _classifier(self):
        """Return a clone of the classifier, or the default one."""
        return self._resolved("estimator")

    def _unfitted_classifier(self):
        """Return the classifier itself, or the default one, to read its tags."""
        if self.estimator is None:
            return _linear_svc()
        return self.estimator

    def _check_fitted(self):
        # scikit-learn's check collects tags first, a tenth of a prediction of one row.
        if not hasattr(self, "calibrated_classifiers_"):
            check_is_fitted(self)

    def _resolved_ensemble(self, estimator):
        """Return `ensemble`, checked: True, False or "auto"; "auto" is False for a
        frozen classifier, and for a precomputed kernel, whose rows cannot be split.
        """
        if self.ensemble != "auto" and not isinstance(self.ensemble, bool | np.bool_):
            raise ValueError(
                f"ensemble must be True, False or 'auto', found {self.ensemble!r}."
            )
        # `estimator` is a clone of the parameter `self.estimator`, or the default
        # classifier if that is None. Only the user's own may be frozen.
        is_frozen = isinstance(self.estimator, FrozenEstimator)
        is_unsplit = is_frozen or get_tags(estimator).input_tags.pairwise
        if self.ensemble == "auto" and is_unsplit:
            return False
        return self.ensemble

    def _metadata(self, estimator, sample_weight, fit_params):
        """Return the further arguments of `fit` for the classifier and the splitter:
        `fit_params`, and `sample_weight` if the classifier accepts weights. With
        metadata routing the weights are always included, since the classifier's
        requests decide.
        """
        takes_weight = has_fit_parameter(estimator, "sample_weight")
        if get_config()["enable_metadata_routing"] or takes_weight:
            return {"sample_weight": sample_weight, **fit_params}
        # A step of a pipeline may get the weights as "step__sample_weight".
        is_given_by_name = any(name.endswith("__sample_weight") for name in fit_params)
        is_unused = not (is_given_by_name or isinstance(estimator, FrozenEstimator))
        if sample_weight is not None and is_unused:
            warn(
                f"{type(estimator).__name__}.fit does not accept sample_weight: the"
                " weights are used only for the recalibration."
            )
        return fit_params


class _PairFitter(NamedTuple):
    """Fits pairs of a classifier and a recalibrator of its held-out scores.

    `fitter` fits clones of the classifier to samples that it holds. `recalibrator` is
    fitted to the scores of a single fold or of a single classifier,
    `shared_recalibrator` to the scores from the classifiers of all folds. Both are
    unfitted; clones of them are fitted. `design` holds the weights and the clusters.
    """

    fitter: ClassifierFitter
    recalibrator: object
    shared_recalibrator: object
    design: Design

    def pairs(self, cv, run, ensemble):
        """Return the list of fitted pairs (`RecalibratedModel`), whose predictions are
        averaged: one with a classifier of all rows, one of each fold, or both with a
        recalibrator that they share.

        `cv` is the parameter of that name, and `ensemble` whether there are pairs of
        folds, or "auto". ``run(calls)`` runs joblib's delayed calls and returns their
        results.
        """
        if not ensemble:
            return [self._single_pair(cv, run)]
        if get_tags(self.fitter.estimator).input_tags.pairwise:
            raise ValueError(
                "ensemble=True cannot predict from a precomputed kernel: use"
                " ensemble=False."
            )
        splits, times_tested = self.fitter.splits(cv)
        if ensemble != "auto" or times_tested.max() > 1:
            return self._pairs_of_folds(splits, run)
        if times_tested.min() == 0:
            # No fold tests the first rows, as in TimeSeriesSplit. The models of the
            # first folds were fitted to few rows: only the model of all rows is used.
            return [self._single_pair(splits, run)]
        return self._pairs_that_share(splits, run)

    def _single_pair(self, cv, run):
        """Return the pair of the classifier fitted to all rows, and a recalibrator of
        the out-of-fold scores of the rows that some fold tests.
        """
        scores, rows, model_of_all, method = self.fitter.cross_fitted(
            cv,
            run,
            tested="at most once",
            keep_tensor=fits_tensors(self.recalibrator)
            and not _feature_keys(self.recalibrator),
        )
        is_labelled = self.fitter.labelled(rows)
        if not is_labelled.all():
            rows = rows[is_labelled]
            scores = chosen(scores, np.flatnonzero(is_labelled))
        recalibrator = self._fitted(self.recalibrator, scores, rows, method)
        return self._pair(model_of_all, recalibrator, method)

    def _pairs_of_folds(self, splits, run):
        """Return the list of the folds' pairs: a classifier fitted to the fold's
        training rows, and a recalibrator fitted to its scores of the test rows. `run`
        runs joblib's delayed calls.
        """
        if any(len(test) < 2 for _, test in splits):
            raise ValueError(
                "cv tests a fold on a single row, which is too few for a"
                " recalibrator: use ensemble=False."
            )
        calls = []
        for fold, (train, test) in enumerate(splits):
            calls.append(delayed(self._pair_of_fold)(fold, train, test))
        return run(calls)

    def _pairs_that_share(self, splits, run):
        """Return the pairs of all folds and of the classifier fitted to all rows, with
        one recalibrator of the out-of-fold scores.
        """
        models, scores, model_of_all, method = self.fitter.of_folds_and_all(splits, run)
        for fold, model in enumerate(models):
            _known_classes(model, fold)  # raises if a fold has a single class
        rows = np.arange(len(scores))
        is_labelled = self.fitter.labelled(rows)
        recalibrator = self._fitted(
            self.shared_recalibrator, scores[is_labelled], rows[is_labelled], method
        )
        if isinstance(getattr(recalibrator, "chosen_", None), Uncalibrated):
            # The scores stay unchanged, so that the original model is kept: an average
            # of the uncalibrated models of the folds is no better.
            models = []
        models = [*models, model_of_all]
        return [self._pair(model, recalibrator, method) for model in models]

    def _pair_of_fold(self, fold, train, test):
        """Return the classifier fitted to the rows `train`, with its recalibrator of
        those rows `test` whose class it knows.
        """
        model, X_test = self.fitter.on_fold(train, test)
        known = _known_classes(model, fold)
        is_known = np.isin(self.fitter.y[test], known)
        if not is_known.any():
            raise ValueError(
                f"In fold {fold} of cv, the training part has none of the classes of"
                " the test part: use a stratified cv."
            )
        method = self.fitter.methods_of(model)[0]
        scores = classifier_scores(model, X_test, known, method, check_columns=True)
        recalibrator = self._fitted(
            self.recalibrator, scores[is_known], test[is_known], method, known
        )
        return self._pair(model, recalibrator, method)

    def _fitted(self, recalibrator, scores, rows, method, classes=None):
        """Return a clone of a recalibrator, fitted to the scores (n_rows, n_scores) of
        these rows by this `method`, a column for each of `classes` (None: all), or one
        for a decision between two.
        """
        if classes is None:
            classes = self.fitter.classes
        recalibrator = clone(recalibrator)
        keys = _feature_keys(recalibrator)
        scale = _SCALE[method]  # "probability" or "logit"
        _describe_scores(recalibrator, {"input": scale, "classes": classes})
        params = _weight_params(recalibrator, taken(self.design.sample_weight, rows))
        cluster = taken(self.design.cluster, rows)
        params |= design_parameters(recalibrator, self.design.importance, cluster)
        labels = self.fitter.y[rows]
        if isinstance(scores, np.ndarray):
            scores = rounded(scores)
        if keys:
            columns = safe_indexing(self.fitter.X, rows)
            _set_positions(recalibrator, scores.shape[1])
            scores = _with_feature_columns(scores, columns, keys, classes)
        return recalibrator.fit(scores, labels, **params)

    def _pair(self, model, recalibrator, method):
        """Return a fitted classifier, which is asked for scores by the method of this
        name, and its recalibrator as a `RecalibratedModel`.
        """
        keys = _feature_keys(self.recalibrator)
        return RecalibratedModel(
            model, recalibrator, self.fitter.classes, method, tuple(keys)
        )


class RecalibratedModel(NamedTuple):
    """A fitted classifier and the recalibrator of its scores.

    `response_method` names the method of the classifier that gives the scores, and
    `classes` (n_classes,) are the labels of the columns of probabilities.
    `feature_keys` are the names or positions of the columns of X that the recalibrator
    takes beside the scores.
    """

    estimator: object
    recalibrator: object
    classes: np.ndarray
    response_method: str
    feature_keys: tuple = ()

    def predict_proba(self, X):
        """Return float64 probabilities with one column for each of `classes`."""
        return self.recalibrated(self.inputs(X))

    def inputs(self, X, keep_tensor=False):
        """Return what the recalibrator takes for the rows of X: the scores (n,
        n_scores), and the columns of features if there are some.
        """
        scores = self.scores(X, keep_tensor and not self.feature_keys)
        if not self.feature_keys:
            return scores
        classes = np.unique(self.recalibrator.classes_)
        return _with_feature_columns(scores, X, self.feature_keys, classes)

    def recalibrated(self, scores):
        """Return the probabilities (n, n_classes) for scores of the classifier, as a
        tensor if the scores are one.
        """
        recalibrator = self.recalibrator
        if not isinstance(scores, np.ndarray) and not self.feature_keys:
            return recalibrator.predict_proba(scores)
        if getattr(recalibrator, "_predicts_validated_rows", False):
            check_fitted(recalibrator)
            if np.array_equal(recalibrator.classes_, self.classes):
                # The scores were checked, so that the probabilities need no check.
                if recalibrator.input == "probability":
                    scores = normalized_again(scores, name="X")
                return recalibrator._predict_checked(scores, uses_table=True)
        probabilities = classifier_scores(
            recalibrator, scores, self.classes, "predict_proba", rows_sum_to_one=False
        )
        return probabilities.astype(np.float64, copy=False)

    def predict(self, X):
        """Return the labels that the recalibrator predicts."""
        return self.recalibrator.predict(self.inputs(X, keep_tensor=True))

    def scores(self, X, keep_tensor=False):
        """Return the classifier's scores (n, n_scores) for the recalibrator, rounded so
        that equal scores stay equal whatever the batch.

        With `keep_tensor`, the scores of a tensor X stay a tensor if the recalibrator
        computes with tensors. They are not rounded, since the maps of these
        recalibrators have no steps.
        """
        # The recalibrator's classes: if the folds share it, it may know more of them
        # than this classifier, which was fitted to a part of the rows.
        classes = np.unique(self.recalibrator.classes_)
        keep_tensor = keep_tensor and dispatched_namespace(X)[0] is not None
        scores = classifier_scores(
            self.estimator,
            X,
            classes,
            self.response_method,
            keep_tensor=keep_tensor and fits_tensors(self.recalibrator),
        )
        if isinstance(scores, np.ndarray):
            scores = rounded(scores)
        return scores


def _recalibrated(pairs, X, keep_tensor):
    """Return the probabilities (n, n_classes) that each `RecalibratedModel` gives to X.

    With few rows, a recalibrator that all pairs share is called once, for the scores of
    all pairs together: most of the time of such a call does not depend on the rows.
    """
    scores_of_pairs = [pair.inputs(X, keep_tensor) for pair in pairs]
    first = pairs[0]
    is_shared = all(pair.recalibrator is first.recalibrator for pair in pairs)
    is_shared = is_shared and isinstance(scores_of_pairs[0], np.ndarray)
    is_shared = is_shared and not first.feature_keys
    if is_shared and scores_of_pairs[0].size <= _FEW_SCORES:
        probabilities = first.recalibrated(np.concatenate(scores_of_pairs))
        return np.split(probabilities, len(pairs))
    probabilities_of_pairs = []
    for pair, scores in zip(pairs, scores_of_pairs, strict=True):
        probabilities_of_pairs.append(pair.recalibrated(scores))
    return probabilities_of_pairs


def _known_classes(model, fold):
    """Return the sorted classes of the model of a fold; raise a ValueError if it has
    only one.
    """
    known = np.unique(model.classes_)
    if len(known) < 2:
        raise ValueError(
            f"cv trains fold {fold} on only one class ({known.tolist()[0]!r}): nothing"
            " can be recalibrated. Use a stratified cv, fewer folds, or"
            " ensemble=False."
        )
    return known


def _describe_scores(recalibrator, description):
    """Tell a recalibrator, or the one that it wraps, what the classifier's scores are:
    the `input` and `classes` of `description`. Later steps of a pipeline get
    probabilities, and `classes` alone.
    """
    if isinstance(recalibrator, Pipeline):
        for step in _steps(recalibrator).values():
            _describe_scores(step, description)
            # Steps after the first one get probabilities, and need the classes only.
            description = {"classes": description["classes"]}
        return
    params = recalibrator.get_params(deep=False)
    own_params = {}
    params_of_wrapped = {}
    for name, setting in description.items():
        if name in params:
            own_params[name] = setting
        else:
            params_of_wrapped[name] = setting
    recalibrator.set_params(**own_params)
    if params_of_wrapped and "recalibrator" in params:
        if params["recalibrator"] is None:  # it stands for a default object
            recalibrator.set_params(recalibrator=recalibrator._resolved("recalibrator"))
        _describe_scores(recalibrator.recalibrator, params_of_wrapped)


def _feature_keys(recalibrator):
    """Return the names or positions of the columns of the classifier's X that a
    recalibrator takes beside the scores, a list.
    """
    if not getattr(recalibrator, "_takes_features", False):
        return []
    return recalibrator._feature_keys


def _with_feature_columns(scores, X, keys, classes):
    """Return the scores (n, n_scores), followed by the columns `keys` of X: a DataFrame
    if X is one, else an array.
    """
    (X,) = indexable(X)
    columns = select_columns(X, column_positions(X, keys, name="features"))
    names = ["score"]
    if scores.shape[1] > 1:
        names = [f"score_{label}" for label in classes]
    names += map(str, getattr(columns, "columns", ()))
    return before_columns(scores, columns, names, name="features")


def _set_positions(recalibrator, n_scores):
    """Tell a recalibrator that its features follow the scores, unless it knows all of
    them by name.
    """
    keys = _feature_keys(recalibrator)
    if not all(isinstance(key, str) for key in keys):
        positions = list(range(n_scores, n_scores + len(keys)))
        recalibrator.set_params(features=positions)


def _refuse_columns(recalibrator):
    """Raise a ValueError if the parameter `features` or `groups` names columns of X,
    which the recalibrator would not get.
    """
    if _feature_keys(recalibrator):
        return  # it gets the columns of its features
    for step in _steps(recalibrator).values():
        for name in ("features", "groups"):
            columns = getattr(step, name, None)
            # A function and "predicted_class" make groups from the scores alone.
            is_text = isinstance(columns, str)
            is_predicted_class = is_text and columns == "predicted_class"
            needs_no_column = callable(columns) or is_predicted_class
            if columns is not None and not needs_no_column:
                kind = type(step).__name__
                raise ValueError(
                    f"recalibrator is a {kind} with {name}={columns!r}, columns of X,"
                    " but RecalibratedClassifierCV passes it only scores. Use"
                    " make_pipeline(CrossFittedClassifier(estimator,"
                    f" passthrough=[...]), {kind}({name}=...)), where passthrough"
                    " appends these columns to the scores."
                )


def _splits_of_clusters(cv, fitter, cluster):
    """Return the splits (train, test) of the parameter `cv`, none of which splits a
    cluster.
    """
    if cv is None or isinstance(cv, Integral):
        cv = StratifiedGroupKFold(cv or 5)
    groups = fitter.routed.splitter.split.get("groups")
    splitter = check_cv(cv, fitter.y, classifier=True)
    return splits_of(splitter, fitter.X, fitter.y, cluster, groups)


def _weight_params(recalibrator, sample_weight):
    """Return the arguments with which the recalibrator's `fit` gets the weights (n,) or
    None: in a pipeline one for each step that takes weights, or with metadata routing
    one for all, which these steps are made to request.
    """
    if sample_weight is None:
        return {}
    weighted_steps = {}
    for name, step in _steps(recalibrator).items():
        if has_fit_parameter(step, "sample_weight"):
            weighted_steps[name] = step
    if not weighted_steps:
        raise ValueError(
            f"sample_weight was passed, but fit of {recalibrator!r} does not accept"
            " it: use a recalibrator that does."
        )
    if isinstance(recalibrator, Pipeline):
        if not get_config()["enable_metadata_routing"]:
            return {f"{name}__sample_weight": sample_weight for name in weighted_steps}
        for step in weighted_steps.values():
            step.set_fit_request(sample_weight=True)
    return {"sample_weight": sample_weight}


def _steps(recalibrator):
    """Return the steps of a pipeline by name; another recalibrator is one step with the
    name "".
    """
    if not isinstance(recalibrator, Pipeline):
        return {"": recalibrator}
    steps = {}
    for name, step in recalibrator.steps:
        if step is not None and not isinstance(step, str):  # "passthrough"
            steps[name] = step
    return steps
