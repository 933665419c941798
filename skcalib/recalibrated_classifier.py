"""A classifier and its recalibrator in one estimator."""

from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from skcalib._defaults import ParameterHints
from skcalib._fitting.wrapped import check_recalibrator
from skcalib._inference.results import IntervalEstimate
from skcalib._input.annotations import CrossValidation
from skcalib._input.classifier_scores import classifier_scores
from skcalib._input.scores import check_sample_weight
from skcalib._input.tensors import as_array, as_given
from skcalib._input.warn import warn
from skcalib._rows.blocks import taken
from skcalib._rows.links import rounded
from skcalib._rows.pooling import POOLING_EXPONENT, geometric_pool
from skcalib.cross_fitting import ClassifierFits, ClassifierWrapper
from skcalib.recalibrators import BaseRecalibrator, CautiousRecalibrator
from skcalib.recalibrators._certified_mixin import forbid_certificates_of_pairs
from skcalib.recalibrators._uncalibrated import Uncalibrated

__all__ = ["RecalibratedClassifierCV"]

# Scores of a model up to which those of all models go through their common recalibrator
# together. A call costs as much as some thousand scores.
_FEW_SCORES = 10_000
# Number of standard errors of the gain above which a pool of recalibrated models takes
# the place of the bare model. It is negative because the gain compares one model with
# one, and what pooling gains comes on top. In 37 of 240 cells of development data .5
# had kept the bare model: this pools 13 of them, which saves .0168 on average, and at
# worst costs .006. Of 336 cells of other data it pools 6 more: one saves .288, one
# costs .017, and the others change by less than .007. A pool of bare models instead is
# no such choice: it saves .0030 in the 37 cells, but harms 7.
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
        `CautiousRecalibrator`: a stack of recalibrators, or the original model if the
        stack does not reduce the log-loss enough (see Notes). The recalibrator is
        cloned. Its parameters `input` (the scale of the scores) and `classes` (the
        labels of their columns) are set to match the classifier; in a nested
        recalibrator, the parameters of the inner one are set.

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
        and pools their probabilities into one forecast: see Notes. "auto" is equivalent
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
        Exponent of the geometric mean that pools the pairs; None if their probabilities
        are averaged or if there is only one pair.

    gain_ : IntervalEstimate
        Reduction in out-of-fold log-loss, in nats per sample, from recalibrating one
        classifier: the estimate and its approximate 90% limits, low and high. Pooling
        reduces the loss further. Available if all pairs share a recalibrator that
        measures its gain, such as `CautiousRecalibrator` (the default) or
        `StackedRecalibrator`.

    chosen_ : recalibrator
        The recalibrator that was chosen: the stack, or ``Uncalibrated()`` for the
        original model, which is then fitted to all samples and is the only pair.
        Available if all pairs share a `CautiousRecalibrator`.

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
    classifiers. Since pooling also reduces the log-loss, the default keeps the original
    model only if `gain_` is below 0 by more than half its standard error. If nothing is
    pooled, it keeps the original model unless `gain_` is above 0 by more than half its
    standard error. Use ``ensemble=False`` to deploy or explain a single classifier. For
    a stable model and about a hundred samples, ``ensemble=False`` can also be slightly
    better: logistic regression on 100 samples of iris has a log-loss of .105 instead of
    .111 (10 splits); linear discriminant analysis has a log-loss of .057 in both cases.

    A class that is missing from a fold's training samples has probability 0 in that
    fold's pair. Test rows of this class are excluded from the recalibration of the
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

    _default_objects = {"estimator": _linear_svc, "recalibrator": CautiousRecalibrator}
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

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
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
            or, with ``ensemble=False``, if a sample is in two test sets.
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
        fits = self._fits(X, y, methods, params)
        sample_weight = check_sample_weight(sample_weight, len(fits.y))
        ensemble = self._resolved_ensemble(estimator)
        recalibrator = self._resolved("recalibrator")
        # raises if there are weights and the recalibrator takes none
        _weight_params(recalibrator, sample_weight)
        _refuse_columns(check_recalibrator(recalibrator))
        self.classes_ = fits.classes
        recalibrator_of_pool = recalibrator
        if self.recalibrator is None:
            # it asks for less gain than that of one pair: see `_POOLED_STANDARD_ERRORS`
            recalibrator_of_pool = CautiousRecalibrator(
                n_standard_errors=_POOLED_STANDARD_ERRORS
            )
        pair_fits = _PairFits(fits, recalibrator, recalibrator_of_pool, sample_weight)
        pairs = pair_fits.pairs(self.cv, self._run, ensemble)
        self.calibrated_classifiers_ = pairs
        forbid_certificates_of_pairs(pairs, estimator)
        self._copy_attributes(
            ("n_features_in_", "feature_names_in_"), pairs[0].estimator
        )
        # One recalibrator may serve the classifiers of all folds, whose scores are then
        # pooled.
        serves_all = pairs[0].recalibrator is pairs[-1].recalibrator
        self.pooling_exponent_ = None
        if ensemble == "auto" and serves_all and len(pairs) > 1:
            self.pooling_exponent_ = POOLING_EXPONENT
        source = None
        if serves_all:
            source = pairs[0].recalibrator
        self._copy_attributes(("gain_", "chosen_"), source)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return recalibrated probabilities, pooled over the fitted pairs.

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
        probabilities = _recalibrated(self.calibrated_classifiers_, X)
        exponent = self.pooling_exponent_
        if exponent is None:
            return as_given(sum(probabilities) / len(probabilities), X)
        return as_given(geometric_pool(probabilities, exponent), X)

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
        """Raise a NotFittedError if this is not fitted."""
        # scikit-learn's check collects tags first, a tenth of a prediction of one row.
        if not hasattr(self, "calibrated_classifiers_"):
            check_is_fitted(self)

    def _resolved_ensemble(self, estimator):
        """Return the parameter `ensemble`, with False in place of "auto" where the rows
        cannot be split: for a frozen classifier or a precomputed kernel.
        """
        if self.ensemble != "auto" and not isinstance(self.ensemble, bool | np.bool_):
            raise ValueError(
                f"ensemble must be True, False or 'auto', found {self.ensemble!r}."
            )
        is_frozen = isinstance(self.estimator, FrozenEstimator)
        is_unsplit = is_frozen or get_tags(estimator).input_tags.pairwise
        if self.ensemble == "auto" and is_unsplit:
            return False
        return self.ensemble

    def _metadata(self, estimator, sample_weight, fit_params):
        """Return the metadata for the classifier and the splitter, as a dict.

        Without metadata routing, the weights are among them if the classifier's `fit`
        takes them. With routing, the requests say who gets them.
        """
        takes_weight = has_fit_parameter(estimator, "sample_weight")
        if get_config()["enable_metadata_routing"] or takes_weight:
            return {"sample_weight": sample_weight, **fit_params}
        if sample_weight is not None and not isinstance(estimator, FrozenEstimator):
            warn(
                f"{type(estimator).__name__}.fit does not accept sample_weight: the"
                " weights are used only for the recalibration."
            )
        return fit_params


class _PairFits(NamedTuple):
    """The fits of a classifier and of recalibrators of its scores to the same rows.

    `recalibrator` is that of a single pair or of the pair of one fold,
    `recalibrator_of_pool` that of all folds together; both are unfitted.
    """

    fits: ClassifierFits
    recalibrator: object
    recalibrator_of_pool: object
    sample_weight: np.ndarray | None

    def pairs(self, cv, run, ensemble):
        """Return the list of fitted `RecalibratedModel`s.

        `cv` is the parameter of that name, ``run(tasks)`` runs delayed calls, and
        `ensemble` is what `_resolved_ensemble` returns.
        """
        fits = self.fits
        if not ensemble:
            scores, rows, model = fits.cross_fitted(cv, run, tested="at most once")
            return [self._pair(model, self._recalibrator(scores, rows))]
        if get_tags(fits.estimator).input_tags.pairwise:
            raise ValueError(
                "ensemble=True cannot predict from a precomputed kernel: use"
                " ensemble=False."
            )
        splits, times_tested = fits.splits(cv)
        if ensemble == "auto" and times_tested.min() == 0 and times_tested.max() == 1:
            # Rows in the order of time, as in TimeSeriesSplit: the models of the first
            # folds were fitted to few rows, so only the model of all rows predicts.
            return self.pairs(splits, run, ensemble=False)
        if ensemble != "auto" or times_tested.max() > 1:
            if any(len(test) < 2 for _, test in splits):
                raise ValueError(
                    "cv tests a fold on a single row, which is too few for a"
                    " recalibrator: use ensemble=False."
                )
            tasks = []
            for fold, (train, test) in enumerate(splits):
                tasks.append(delayed(self._pair_of_fold)(fold, train, test))
            return run(tasks)
        # One recalibrator of the out-of-fold scores serves the models of all folds.
        models, scores, model_of_all = fits.of_folds_and_all(splits, run)
        for fold, model in enumerate(models):
            _known_classes(model, fold)  # raises if a fold has a single class
        pool_fits = self._replace(recalibrator=self.recalibrator_of_pool)
        recalibrator = pool_fits._recalibrator(scores)
        if isinstance(getattr(recalibrator, "chosen_", None), Uncalibrated):
            # The original model is kept: a pool of uncalibrated models is no better.
            models = []
        return [self._pair(model, recalibrator) for model in (*models, model_of_all)]

    def _pair_of_fold(self, fold, train, test):
        """Return the pair of a fold: the classifier fitted to the rows `train`, and its
        recalibrator fitted to those of the rows `test` whose class it knows.
        """
        model, X_test = self.fits.on_fold(train, test)
        known = _known_classes(model, fold)
        is_known = np.isin(self.fits.y[test], known)
        if not is_known.any():
            raise ValueError(
                f"cv trains fold {fold} on none of the classes that it tests: use a"
                " stratified cv."
            )
        scores = classifier_scores(
            model, X_test, known, self.fits.response_method, check_columns=True
        )
        recalibrator = self._recalibrator(scores[is_known], test[is_known], known)
        return self._pair(model, recalibrator)

    def _recalibrator(self, scores, rows=slice(None), classes=None):
        """Return the recalibrator fitted to the scores of some rows, with a column for
        each of `classes`: all by default.
        """
        if classes is None:
            classes = self.fits.classes
        recalibrator = clone(self.recalibrator)
        scale = _SCALE[self.fits.response_method]
        _describe_scores(recalibrator, {"input": scale, "classes": classes})
        weight_params = _weight_params(recalibrator, taken(self.sample_weight, rows))
        return recalibrator.fit(rounded(scores), self.fits.y[rows], **weight_params)

    def _pair(self, model, recalibrator):
        """Return a fitted classifier and its recalibrator as a `RecalibratedModel`."""
        return RecalibratedModel(
            model, recalibrator, self.fits.classes, self.fits.response_method
        )


class RecalibratedModel(NamedTuple):
    """A fitted classifier and the recalibrator of its scores."""

    estimator: object
    recalibrator: object
    classes: np.ndarray
    response_method: str

    def predict_proba(self, X):
        """Return float64 probabilities with one column for each of `classes`."""
        return self.recalibrated(self.scores(X))

    def recalibrated(self, scores):
        """Return the probabilities (n, n_classes) for scores of the classifier."""
        probabilities = classifier_scores(
            self.recalibrator,
            scores,
            self.classes,
            "predict_proba",
            rows_sum_to_one=False,
        )
        return probabilities.astype(np.float64, copy=False)

    def predict(self, X):
        """Return the labels that the recalibrator predicts."""
        return self.recalibrator.predict(self.scores(X))

    def scores(self, X):
        """Return the scores that the classifier passes to the recalibrator."""
        # A recalibrator of all folds knows classes that a fold's classifier may not
        # know.
        classes = np.unique(self.recalibrator.classes_)
        scores = classifier_scores(self.estimator, X, classes, self.response_method)
        return rounded(scores)


def _recalibrated(pairs, X):
    """Return a list of the probabilities (n, n_classes) of each `RecalibratedModel` for
    rows.

    For few rows, a recalibrator that serves all pairs is called once with the scores of
    all classifiers.
    """
    scores_of_pairs = [pair.scores(X) for pair in pairs]
    first = pairs[0]
    is_shared = all(pair.recalibrator is first.recalibrator for pair in pairs)
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
    """Set the parameters `input` and `classes` of the dict `description`, on the
    recalibrator if it has them, otherwise on the one inside it.

    The first step of a pipeline gets the classifier's scores, a later one the
    probabilities of the step before: its `input` stays.
    """
    if isinstance(recalibrator, Pipeline):
        for step in _steps(recalibrator).values():
            _describe_scores(step, description)
            # for the steps after the first one
            description = {"classes": description["classes"]}
        return
    params = recalibrator.get_params(deep=False)
    own_params = {}
    inner_params = {}
    for name, setting in description.items():
        if name in params:
            own_params[name] = setting
        else:
            inner_params[name] = setting
    recalibrator.set_params(**own_params)
    if inner_params and "recalibrator" in params:
        if params["recalibrator"] is None:
            recalibrator.set_params(recalibrator=recalibrator._resolved("recalibrator"))
        _describe_scores(recalibrator.recalibrator, inner_params)


def _refuse_columns(recalibrator):
    """Raise a ValueError if a recalibrator needs columns of X beside the scores, which
    it would not get.
    """
    for step in _steps(recalibrator).values():
        for name in ("features", "groups"):
            columns = getattr(step, name, None)
            is_predicted_class = (
                isinstance(columns, str) and columns == "predicted_class"
            )
            needs_no_column = callable(columns) or is_predicted_class
            if columns is not None and not needs_no_column:
                kind = type(step).__name__
                raise ValueError(
                    f"recalibrator is a {kind} with {name}={columns!r}, columns of X,"
                    " but RecalibratedClassifierCV passes only scores. Use"
                    " make_pipeline(CrossFittedClassifier(estimator,"
                    f" passthrough=[...]), {kind}({name}=...)), where passthrough"
                    " appends these columns to the scores."
                )


def _weight_params(recalibrator, sample_weight):
    """Return the weights as a dict of arguments of the recalibrator's `fit`, empty
    without weights.

    In a pipeline each step that takes weights has an argument of its own; with metadata
    routing, these steps request them instead.
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
    """Return the steps of a pipeline as a dict by their names; a recalibrator that is
    no pipeline is one step with the name "".
    """
    if not isinstance(recalibrator, Pipeline):
        return {"": recalibrator}
    steps = {}
    for name, step in recalibrator.steps:
        if step is not None and not isinstance(step, str):  # "passthrough"
            steps[name] = step
    return steps
