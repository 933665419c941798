"""Cross-fitting: every sample is scored by a model that was fitted to other samples."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import (
    BaseEstimator,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
    is_classifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from skcalib._defaults import unchanged_if_refused
from skcalib._described import DescribedEstimator
from skcalib._fitting.folds import row_indices
from skcalib._input.annotations import CrossValidation
from skcalib._input.classes import UNLABELLED, uncounted_rows, unique_labels
from skcalib._input.classifier_scores import classifier_scores
from skcalib._input.columns import column_positions, select_columns
from skcalib._input.labels import check_label_vector
from skcalib._input.scalars import check_option
from skcalib._input.scores import check_sample_weight
from skcalib._input.sklearn_private import (
    check_feature_names_in,
    check_method_params,
    num_samples,
    safe_split,
)
from skcalib._input.tensors import as_array, refuse_repeated_names
from skcalib._progress import Progress

__all__ = ["CrossFittedClassifier"]


class ClassifierWrapper(DescribedEstimator, MetaEstimatorMixin, BaseEstimator):
    """Base of estimators that wrap a classifier. Metadata are routed to its `fit` and,
    if there is a `cv`, to the splitter.
    """

    _callers = ("fit",)  # the methods that fit the classifier

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how metadata are routed: to the classifier's `fit` and, if there is a
        splitter, to its `split`.

        Returns
        -------
        routing : MetadataRouter
            The routes of the methods that fit the classifier.
        """
        to_fit = MethodMapping()
        to_split = MethodMapping()
        for caller in self._callers:  # "fit", and "fit_transform" if there is one
            to_fit.add(caller=caller, callee="fit")
            to_split.add(caller=caller, callee="split")
        router = MetadataRouter(owner=type(self).__name__)
        router.add(estimator=self._classifier(), method_mapping=to_fit)
        if hasattr(self, "cv"):
            router.add(splitter=self.cv, method_mapping=to_split)
        return router

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._unfitted_classifier()).input_tags
        return tags

    def _classifier(self):
        """Return the unfitted classifier."""
        return self.estimator

    def _unfitted_classifier(self):
        """Return the classifier to read its tags, without the cost of a clone: tags are
        asked for often.
        """
        return self._classifier()

    def _checked_fitter(self, X, y, methods, params, caller="fit", sample_weight=None):
        """Check the classifier and the samples, and return their `ClassifierFitter`.
        Scores come from the first of the `methods` that the classifier has.

        `params` are the user's further arguments to the method `caller`.
        `sample_weight` are the weights; None means those among `params`.
        """
        estimator = self._classifier()
        if not hasattr(estimator, "fit") or isinstance(estimator, type):
            raise TypeError(f"estimator must be a classifier, found {estimator!r}.")
        # Whether a classifier has a method may be known only after its fit.
        if not is_classifier(estimator):
            _found_methods(estimator, methods)
        refuse_repeated_names(X)
        (X,) = indexable(X)
        if num_samples(X) == 0:
            raise ValueError(
                "X has no rows: a classifier needs rows of at least two classes."
            )
        y = check_label_vector(y, num_samples(X), name="y", scores_name="X")
        groups = params.get("groups")
        if groups is not None:
            check_label_vector(
                groups, len(y), name="groups", scores_name="X", may_be_missing=True
            )
        routed = self._routed(params, caller)
        if sample_weight is None:
            sample_weight = routed.estimator.fit.get("sample_weight")
        sample_weight = check_sample_weight(sample_weight, len(y))
        return _fitter_with_classes(estimator, X, y, methods, routed, sample_weight)

    def _routed(self, params, caller):
        """Return `params`, further arguments that the user gave to the method `caller`,
        by who gets them: the dicts ``.estimator.fit`` and ``.splitter.split``.
        """
        if get_config()["enable_metadata_routing"]:
            return process_routing(self, caller, **params)
        # Without scikit-learn's metadata routing, groups are for the splitter and all
        # else is for the classifier.
        fit_params = {}
        split_params = {}
        for name, value in params.items():
            if value is None:
                continue
            if name == "groups":
                split_params[name] = value
            else:
                fit_params[name] = value
        return Bunch(
            estimator=Bunch(fit=fit_params), splitter=Bunch(split=split_params)
        )

    def _run(self, calls):
        """Run joblib's delayed calls in `n_jobs` processes, report progress, and return
        their results.
        """
        results = Parallel(n_jobs=self.n_jobs, return_as="generator")(calls)
        progress = Progress(type(self).__name__, self.verbose)
        return list(progress.over(results, len(calls), "fits of the classifier"))

    def _copy_attributes(self, names, source):
        """Copy attributes from `source` by name. Those that it lacks, left over from an
        earlier fit, are deleted.
        """
        for name in names:
            if hasattr(source, name):
                setattr(self, name, getattr(source, name))
            elif hasattr(self, name):
                delattr(self, name)


class CrossFittedClassifier(TransformerMixin, ClassifierWrapper):
    """Wrapper that makes a classifier a pipeline step with out-of-fold scores.

    A model is overconfident on its own training samples, so their scores cannot be used
    to calibrate it. `fit_transform` therefore gives each sample the score of a model
    fitted to the other folds (as `sklearn.preprocessing.TargetEncoder` does), and the
    next step of the pipeline is fitted to out-of-fold scores. `transform` uses one
    model fitted to all samples. ``fit_transform(X, y)`` and ``fit(X, y).transform(X)``
    differ by design.

    Parameters
    ----------
    estimator : classifier
        The classifier to use in the pipeline; it is cloned. A
        `sklearn.frozen.FrozenEstimator` is used unchanged: since it was not fitted to
        the samples, nothing is split or refitted.

    cv : int, cross-validation splitter or iterable of (train, test), default=5
        How the samples are split. An int is the number of stratified folds. Each sample
        must be in exactly one test fold, so repeated and shuffled-split strategies are
        rejected.

    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        Method that computes the scores; "auto" is `predict_proba` if the classifier has
        it, otherwise `decision_function`. A recalibrator after a decision function
        needs ``input="logit"``.

    passthrough : False, str, int or list of these, default=False
        Columns of `X`, by name or position, to append to the scores, such as the groups
        of a groupwise recalibrator.

    n_jobs : int, default=None
        Number of parallel jobs. None means 1 unless a `joblib.parallel_config` says
        otherwise; -1 means all processors.

    verbose : bool, default=False
        Whether to write a line to standard error for each fit of the classifier, at
        most one every two seconds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The sorted labels, in the order of the score columns.

    estimator_ : classifier
        The classifier fitted to all samples.

    response_method_ : str
        Name of the method that computes the scores, with "auto" resolved.

    n_features_in_ : int
        Number of columns of `X`, if `X` is two-dimensional.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    Raises
    ------
    ValueError
        In `fit`, if `y` has only one class, or if a parameter is not one of the options
        listed.

    See Also
    --------
    RecalibratedClassifierCV : Combines a classifier and a recalibrator in one
        estimator.

    Notes
    -----
    Scores have shape (n_samples, n_classes) if they come from `predict_proba` or from a
    decision function for more than two classes, and (n_samples, 1) for a decision
    function for two classes. Their floating-point type is that of the classifier's
    output.

    A class that is missing from the training part of a fold has probability 0 in that
    fold. With logits, its logit is the smallest logit of the row plus log(2^-52), about
    -36. This logit is finite, and corresponds to a smaller probability than the one to
    which 0 is clipped. For two classes, a decision function needs both classes in the
    training part of each fold; otherwise, an error is raised.

    With `passthrough`, a pandas or polars DataFrame gives a DataFrame of the same
    library, so strings and categories are kept. Other containers give a float array if
    the appended columns are numbers, otherwise an object array.

    The methods `fit` and `fit_transform` pass `sample_weight` and other metadata to the
    classifier's `fit`, and `groups` to the splitter. With metadata routing enabled,
    metadata are routed according to the requests instead, as in the rest of
    scikit-learn. In a pipeline without routing, write ``pipe.fit(X, y,
    crossfittedclassifier__groups=groups)``, which also works in a search; a list of
    splits passed as `cv` does not, because it applies to one particular `X`.

    Put a resampler inside this step, together with the classifier:
    ``CrossFittedClassifier(imblearn.pipeline.make_pipeline(RandomUnderSampler(),
    classifier))``. A resampler before this step changes the labels to which the
    recalibrator is fitted, so its probabilities are those for the resampled data. This
    step cannot detect the resampling.

    ``Pipeline(memory=...)`` caches the scores: a search over later steps then requires
    cv + 1 fits of the classifier per outer split, regardless of the number of
    candidates.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines and comparisons to
    regularized likelihood methods, Section 2.1 (scores of left-out folds).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcalib import CrossFittedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> cross_fitted = CrossFittedClassifier(GaussianNB(), cv=5)
    >>> cross_fitted.fit_transform(X, y).shape
    (569, 2)
    >>> cross_fitted.get_feature_names_out()
    array(['crossfittedclassifier_0', 'crossfittedclassifier_1'], dtype=object)

    For a frozen classifier, which was fitted to other data, `fit_transform` and
    `transform` return the same scores:

    >>> from sklearn.frozen import FrozenEstimator
    >>> frozen = CrossFittedClassifier(
    ...     FrozenEstimator(GaussianNB().fit(X[:200], y[:200]))
    ... )
    >>> bool(
    ...     (frozen.fit_transform(X[200:], y[200:]) == frozen.transform(X[200:])).all()
    ... )
    True
    """

    _callers = ("fit", "fit_transform")

    classes_: np.ndarray
    estimator_: BaseEstimator
    response_method_: str
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        estimator: BaseEstimator,
        *,
        cv: CrossValidation | None = 5,
        response_method: Literal["auto", "predict_proba", "decision_function"] = "auto",
        passthrough: bool | str | int | Sequence[str | int] = False,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.estimator = estimator
        self.cv = cv
        self.response_method = response_method
        self.passthrough = passthrough
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: ArrayLike, **params: Any) -> Self:
        """Fit the classifier to all samples, for `transform`.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Samples, in any container that the classifier accepts.

        y : array-like of shape (n_samples,)
            Labels: numbers, booleans or strings.

        **params : dict
            `sample_weight` and other metadata for the classifier; `groups` is accepted
            but not used, because nothing is split here.

        Returns
        -------
        self : CrossFittedClassifier
            The fitted transformer.

        Raises
        ------
        ValueError
            If `y` has only one class, or if a parameter is not one of the options
            listed.
        """
        with unchanged_if_refused(self):
            self._fit(X, y, "fit", params)
        return self

    def fit_transform(self, X: Any, y: ArrayLike, **params: Any) -> Any:
        """Fit the classifier to all samples and return out-of-fold scores.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Samples, in any container that the classifier accepts.

        y : array-like of shape (n_samples,)
            Labels: numbers, booleans or strings.

        **params : dict
            `sample_weight` and other metadata for the classifier, and `groups` for the
            splitter.

        Returns
        -------
        scores : ndarray or DataFrame of shape (n_samples, n_scores)
            Scores of each sample from the model that was fitted without its fold,
            followed by the columns of `passthrough`.

        Raises
        ------
        ValueError
            If `cv` does not put each sample into exactly one test fold, if a test fold
            overlaps its training set, or in the cases listed under `fit`.
        """
        with unchanged_if_refused(self):
            return self._joined(self._fit(X, y, "fit_transform", params), X)

    def transform(self, X: Any) -> Any:
        """Return the scores of the classifier fitted to all training samples.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            New samples.

        Returns
        -------
        scores : ndarray or DataFrame of shape (n_samples, n_scores)
            Scores, followed by the columns of `passthrough`.
        """
        check_is_fitted(self)
        scores = classifier_scores(
            self.estimator_, X, self.classes_, self.response_method_
        )
        return self._joined(scores, X)

    def get_feature_names_out(
        self, input_features: ArrayLike | None = None
    ) -> np.ndarray:
        """Return the names of the score columns and of the columns passed through.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns of `X`; required only if `X` had no column names in
            `fit` and `passthrough` gives positions.

        Returns
        -------
        names : ndarray of str objects
            ``crossfittedclassifier_<label>`` for each class, or for the positive class
            only if a decision function has two classes.
        """
        check_is_fitted(self)
        names_in = check_feature_names_in(
            self, input_features, generate_names=self.passthrough is not False
        )
        labels = self.classes_
        if self.response_method_ == "decision_function" and len(labels) == 2:
            labels = labels[1:]  # one column, the decision for the second class
        prefix = type(self).__name__.lower()
        names = [f"{prefix}_{label}" for label in labels]
        for key in self._passthrough_keys():
            if isinstance(key, str):
                names.append(key)
            else:
                names.append(names_in[key])
        return np.asarray(names, dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _fit(self, X, y, caller, params):
        """Fit the classifier to all samples; for the `caller` "fit_transform" return
        the out-of-fold scores (n, n_scores), for "fit" None. `params` are its further
        arguments, such as weights.
        """
        keys = self._passthrough_keys()
        methods = ("predict_proba", "decision_function")
        check_option(self.response_method, "response_method", ("auto", *methods))
        if self.response_method != "auto":
            methods = (self.response_method,)
        fitter = self._checked_fitter(X, y, methods, params, caller)
        validate_data(self, fitter.X, skip_check_array=True)  # sets `n_features_in_`
        # This raises for an unknown column.
        column_positions(fitter.X, keys, name="passthrough")
        scores = None
        if caller == "fit":
            model = fitter.on_all_rows()
            response_method = fitter.methods_of(model)[0]
        else:
            # The second result, which samples have a score, is all of them.
            scores, _, model, response_method = fitter.cross_fitted(self.cv, self._run)
        self.estimator_ = model
        self.classes_ = fitter.classes
        self.response_method_ = response_method
        return scores

    def _passthrough_keys(self):
        """Return the list of the names or positions of the columns of X that are passed
        through.
        """
        if self.passthrough is False:
            return []
        # A single name or position becomes a list of one.
        keys = np.array(self.passthrough, dtype=object, ndmin=1).tolist()
        for key in keys:
            if isinstance(key, bool) or not isinstance(key, str | Integral):
                raise ValueError(
                    "passthrough must be False or the names or integer positions of"
                    f" columns of X, found {self.passthrough!r}."
                )
        return keys

    def _joined(self, scores, X):
        """Return the scores (n, n_scores) followed by the `passthrough` columns of `X`:
        a DataFrame if `X` is one, else an array.
        """
        keys = self._passthrough_keys()
        if not keys:
            return scores
        (X,) = indexable(X)
        columns = select_columns(X, column_positions(X, keys, name="passthrough"))
        names = []
        if hasattr(columns, "columns"):  # a DataFrame
            names = self.get_feature_names_out().tolist()
        return before_columns(scores, columns, names, name="passthrough")


def _check_split(train, test, fold, name, n_samples):
    """Raise a ValueError if a side of a split is empty, or both sides share a row."""
    if not (len(train) and len(test)):
        raise ValueError(
            f"{name} trains fold {fold} on {len(train)} rows and tests it on"
            f" {len(test)}."
        )
    is_tested = np.zeros(n_samples, dtype=bool)
    is_tested[test] = True
    in_both = is_tested[train]
    if in_both.any():
        raise ValueError(
            f"{name} trains fold {fold} on row {train[in_both].min()} and also tests"
            " it on that row: keep training and test rows apart."
        )


def _check_times_tested(times_tested, tested, name):
    """Raise a ValueError unless each sample is tested by as many folds as `tested`
    allows: "once", "at most once" or "any". `times_tested` (n_samples,) counts them.
    """
    if tested == "once" and (times_tested != 1).any():
        row = int(np.argmax(times_tested != 1))
        raise ValueError(
            f"{name} must put every row into exactly one test fold, but row {row}"
            f" is in {times_tested[row]}. Use a partition such as StratifiedKFold, or"
            " RecalibratedClassifierCV(model, recalibrator, ensemble=False, cv=...),"
            " which does not need a score for every row, with cv=TimeSeriesSplit() or"
            " cv=ShuffleSplit(1). With ensemble=True, it accepts any split."
        )
    if tested == "at most once" and times_tested.max() > 1:
        row = int(np.argmax(times_tested > 1))
        raise ValueError(
            f"{name} must not test a row twice, but row {row} is in"
            f" {times_tested[row]} test folds. Use splits that test each row at"
            " most once, such as StratifiedKFold or TimeSeriesSplit;"
            " ensemble=True accepts any split."
        )


class ClassifierFitter(NamedTuple):
    """Fits clones of a classifier to all or some of the samples (X, y), and scores the
    others by the first of `methods` that the fitted classifiers have.

    `classes` are the sorted labels. `routed.estimator.fit` and `routed.splitter.split`
    are dicts of further arguments, as scikit-learn's metadata routing gives them.
    `is_labelled` (n,) says which samples have one of the classes, and `trains` (n,)
    which the classifier is fitted to: samples without a label may be among them, those
    of a label that has no weight are not. Both are None if all are. `model_of_all` is
    the classifier fitted to all of these if that was done, else None.
    """

    estimator: object
    X: object
    y: np.ndarray
    classes: np.ndarray
    methods: tuple
    routed: Bunch
    is_labelled: np.ndarray | None = None
    trains: np.ndarray | None = None
    model_of_all: object = None

    def on_all_rows(self):
        """Return the classifier fitted to all samples; a frozen classifier is returned
        unchanged.
        """
        if self.model_of_all is not None:
            return self.model_of_all
        if self.trains is None:
            model = clone(self.estimator)
            model.fit(self.X, self.y, **self.routed.estimator.fit)
            self._check_model(model, self.y)
            return model
        model, _ = self.on_fold(np.arange(len(self.y)), np.arange(1))
        return model

    def on_fold(self, train, test):
        """Return the classifier fitted to the samples with the indices `train`, and the
        samples of `X` with the indices `test`.
        """
        if self.trains is not None:
            train = train[self.trains[train]]
        X_train, y_train = safe_split(self.estimator, self.X, self.y, train)
        # A precomputed kernel also needs the columns of the training samples.
        X_test, _ = safe_split(self.estimator, self.X, None, test, train)
        # Weights and the like are cut down to the training samples.
        fit_params = check_method_params(self.X, self.routed.estimator.fit, train)
        model = clone(self.estimator).fit(X_train, y_train, **fit_params)
        self._check_model(model, y_train)
        return model, X_test

    def labelled(self, rows):
        """Return which of the samples `rows`, indices, have a label: booleans."""
        if self.is_labelled is None:
            return np.ones(len(rows), dtype=bool)
        return self.is_labelled[rows]

    def methods_of(self, model):
        """Return those of `methods` that a fitted classifier has, a list; raise a
        TypeError if there is none.

        Only a fitted one knows: a search has the methods of its best estimator.
        """
        return _found_methods(model, self.methods)

    def _check_model(self, model, y):
        """Raise unless a fitted classifier has one of `methods` and knows all labels;
        -1 may mark samples without one.
        """
        self.methods_of(model)
        if self.is_labelled is not None or isinstance(model, FrozenEstimator):
            return
        known, _ = as_array(getattr(model, "classes_", y))
        unknown = ~np.isin(y, known)
        if unknown.any():
            label = y[unknown][:1].tolist()[0]
            raise ValueError(
                f"{type(model).__name__} was fitted to samples with the label"
                f" {label!r}, which is not among its classes_, {known.tolist()}. If it"
                " marks samples without a label, mark them with -1, which works with"
                " two classes; otherwise drop them, or use a classifier that learns all"
                " labels."
            )

    def common_method(self, models):
        """Return the name of the method by which all fitted classifiers, a dict of the
        lists that `methods_of` returns by name, can be asked for scores.
        """
        for method in self.methods:
            if all(method in found for found in models.values()):
                return method
        # For each method, a classifier that has it first, for the message.
        examples = {}
        for name, found in models.items():
            examples.setdefault(found[0], f"{name} has {found[0]}")
        raise ValueError(
            f"The classifiers that {type(self.estimator).__name__} fits to different"
            f" folds have no scoring method in common: {'; '.join(examples.values())}."
            " Let a search choose only among classifiers with predict_proba, or only"
            " among those with decision_function."
        )

    def splits(self, cv, *, tested="any"):
        """Return the splits of the parameter `cv`, a list of pairs (train, test) of
        index arrays, and the number of folds that test each sample, (n_samples,).

        A fold must not test its own training samples. `tested` says how many folds must
        test each sample: exactly one ("once"), one or none ("at most once"), or "any"
        number. Raise a ValueError otherwise.
        """
        if isinstance(cv, str):
            raise ValueError(
                f"cv must be a number of folds or a splitter, found {cv!r}. If the"
                " model is already fitted, wrap it in FrozenEstimator(model) from"
                " sklearn.frozen."
            )
        n_samples = len(self.y)
        strata = self.y
        if self.is_labelled is not None and strata.dtype.kind == "O":
            # Text and -1 together have no order: numbers replace the labels.
            strata = np.full(n_samples, UNLABELLED)
            _, codes = unique_labels(self.y[self.is_labelled], "y")
            strata[self.is_labelled] = codes
        splitter = check_cv(cv, strata, classifier=True)
        # How errors call `cv`: by the class of what the user gave or, for a number of
        # folds, of the splitter that it stands for.
        shown = cv
        if cv is None or isinstance(cv, Integral):
            shown = splitter
        name = f"cv ({type(shown).__name__})"
        splits = []
        split_params = self.routed.splitter.split
        for train, test in splitter.split(self.X, strata, **split_params):
            splits.append((row_indices(train, n_samples), row_indices(test, n_samples)))
        if not splits:
            raise ValueError(
                f"{name} gives no splits. A generator is exhausted after one fit: pass"
                " a list or a splitter."
            )
        for fold, (train, test) in enumerate(splits):
            _check_split(train, test, fold, name, n_samples)
        all_tested = np.concatenate([test for _, test in splits])
        times_tested = np.bincount(all_tested, minlength=n_samples)
        _check_times_tested(times_tested, tested, name)
        return splits, times_tested

    def of_folds_and_all(self, splits, run):
        """Fit the classifier to the training samples of each fold and to all samples.

        Parameters
        ----------
        splits : list of (train, test)
            Index arrays; together the test sets contain each sample once.
        run : callable
            Takes a list of joblib's delayed calls and returns their results.

        Returns
        -------
        models : list of classifiers
            One for each fold.
        scores : ndarray of shape (n_samples, n_scores)
            The scores of each sample by the model of the fold that tests it.
        model_of_all : classifier
            The one fitted to all samples.
        response_method : str
            The method of the scores.
        """
        calls = [delayed(self.on_all_rows)()]
        calls += [delayed(self._model_and_scores)(*split) for split in splits]
        model_of_all, *results_of_folds = run(calls)
        models = [model for model, _, _ in results_of_folds]
        methods_of_folds = [methods for _, methods, _ in results_of_folds]
        method = self._method_of_folds(methods_of_folds, model_of_all)
        if any(methods[0] != method for methods in methods_of_folds):
            # Some models were scored by another method: all are scored again by the
            # common one.
            return self._replace(methods=(method,)).of_folds_and_all(splits, run)
        scores = [fold_scores for _, _, fold_scores in results_of_folds]
        return models, _in_row_order(scores, splits), model_of_all, method

    def _method_of_folds(self, found, model_of_all):
        """Return the method by which all classifiers are asked; `found` lists the
        methods of each fold's classifier.
        """
        models = {f"that of fold {fold}": methods for fold, methods in enumerate(found)}
        models["that of all samples"] = self.methods_of(model_of_all)
        return self.common_method(models)

    def cross_fitted(self, cv, run, *, tested="once", keep_tensor=False):
        """Return the out-of-fold scores (n_tested, n_scores) of the samples that some
        fold tests, the sorted indices (n_tested,) of these samples, the model fitted to
        all samples, and the name of the method of the scores.

        A frozen model is fitted already: it scores all samples itself. `cv` makes the
        folds, and `tested` says how many must test each sample: "once", "at most once"
        or "any". ``run(calls)`` runs joblib's delayed calls and returns their results.
        `keep_tensor` lets a frozen model's tensor of scores stay one.
        """
        if isinstance(self.estimator, FrozenEstimator):
            method = self.methods_of(self.estimator)[0]
            scores = classifier_scores(
                self.estimator,
                self.X,
                self.classes,
                method,
                check_columns=True,
                keep_tensor=keep_tensor,
            )
            return scores, np.arange(len(self.y)), self.estimator, method
        splits, times_tested = self.splits(cv, tested=tested)
        calls = [delayed(self.on_all_rows)()]
        calls += [delayed(self._test_scores)(train, test) for train, test in splits]
        model_of_all, *results_of_folds = run(calls)
        methods_of_folds = [methods for methods, _ in results_of_folds]
        method = self._method_of_folds(methods_of_folds, model_of_all)
        if any(methods[0] != method for methods in methods_of_folds):
            with_common_method = self._replace(methods=(method,))
            return with_common_method.cross_fitted(splits, run, tested=tested)
        scores = _in_row_order([scores for _, scores in results_of_folds], splits)
        return scores, np.flatnonzero(times_tested), model_of_all, method

    def _model_and_scores(self, train, test):
        """Return the model fitted to the samples `train`, the methods that it has, and
        the scores (n_test, n_scores) of `test` by the first.
        """
        model, X_test = self.on_fold(train, test)
        methods = self.methods_of(model)
        scores = classifier_scores(
            model, X_test, self.classes, methods[0], check_columns=True
        )
        return model, methods, scores

    def _test_scores(self, train, test):
        """Return what `_model_and_scores` does, without the model: the call may run in
        another process, which would have to send it back.
        """
        _, methods, scores = self._model_and_scores(train, test)
        return methods, scores


def _in_row_order(scores_of_folds, splits):
    """Return the scores (n_tested, n_scores) of all folds in the order of the tested
    rows.
    """
    tested_rows = np.concatenate([test for _, test in splits])
    scores = np.concatenate(scores_of_folds)
    return scores[np.argsort(tested_rows)]


def _found_methods(model, methods):
    """Return those of `methods` that an estimator has, a list; raise a TypeError if
    there is none.
    """
    found = [method for method in methods if hasattr(model, method)]
    if found:
        return found
    wanted = " or ".join(methods)
    raise TypeError(
        f"estimator must be a classifier with {wanted}, but {type(model).__name__}"
        " has none of them."
    )


def _fitter_with_classes(estimator, X, y, methods, routed, sample_weight):
    """Return the `ClassifierFitter` with the classes of the samples.

    A label that occurs only with weight zero is no class. Neither is -1 if the
    classifier takes it for "unlabelled", and therefore does not list it in its
    `classes_` after a fit. The classes of a frozen classifier are those that it knows.
    """
    is_uncounted = uncounted_rows(y, sample_weight)
    # Rows that the classifier learns from, (n,), None for all.
    trains = None if is_uncounted is None else ~is_uncounted
    fitter = ClassifierFitter(
        estimator, X, y, None, methods, routed, is_labelled=trains, trains=trains
    )
    if isinstance(estimator, FrozenEstimator):
        return fitter._replace(classes=_frozen_classes(estimator, y, trains))
    counted = y if trains is None else y[trains]
    is_marked = counted == UNLABELLED
    if np.any(is_marked):
        classes, _ = unique_labels(counted[~is_marked], "y")
        if len(classes) > 1:
            # The model of all samples is needed anyway, so that it may be asked first.
            is_labelled = y != UNLABELLED
            if trains is not None:
                is_labelled = is_labelled & trains
            fitter = fitter._replace(classes=classes, is_labelled=is_labelled)
            model = fitter.on_all_rows()
            fitter = fitter._replace(model_of_all=model)
            known, _ = as_array(getattr(model, "classes_", ()))
            if not np.isin(UNLABELLED, known):
                return fitter
            fitter = fitter._replace(is_labelled=trains)
    classes, _ = unique_labels(counted, "y")
    if len(classes) < 2:
        where = "" if trains is None else " where sample_weight is positive"
        raise ValueError(
            f"y has only one class ({classes.tolist()[0]!r}){where}: a classifier needs"
            " at least two."
        )
    return fitter._replace(classes=classes)


def _frozen_classes(estimator, y, trains):
    """Return the sorted classes of a frozen classifier, which must know the labels of
    all samples that count: `trains` (n,), None for all.
    """
    check_is_fitted(estimator)
    classes = np.unique(estimator.classes_)
    unknown = ~np.isin(y, classes)
    if trains is not None:
        unknown &= trains
    if unknown.any():
        # `tolist` gives the label as Python's own type, for the message.
        row = int(np.argmax(unknown))
        raise ValueError(
            f"y has the label {y[row : row + 1].tolist()[0]!r} in row {row}, which the"
            f" frozen classifier has not seen; it knows {classes.tolist()}. Leave out"
            " such rows, or write the labels as it knows them."
        )
    return classes


def before_columns(scores, columns, names, *, name):
    """Return scores (n, n_scores) and columns side by side: as a DataFrame of the same
    library if the columns are one of polars or pandas, else as an array.

    `names` are those of all columns of a DataFrame, the scores first; `name` is the
    parameter that says which columns they are.
    """
    if not hasattr(columns, "columns"):
        if columns.dtype.kind not in "biuf":
            # Texts and numbers go together in an array of objects only.
            scores = scores.astype(object)
            columns = columns.astype(object)
        return np.hstack([scores, columns])
    if len(set(names)) < len(names):
        raise ValueError(
            f"{name} gives several columns the same name: {names}. Rename a column"
            " of X."
        )
    n_scores = scores.shape[1]
    DataFrame = type(columns)
    if hasattr(columns, "hstack"):  # polars
        frame = DataFrame(scores, schema=names[:n_scores], orient="row")
        return frame.hstack(columns)
    frame = DataFrame(scores, index=columns.index, columns=names[:n_scores])
    frame[names[n_scores:]] = columns
    return frame
