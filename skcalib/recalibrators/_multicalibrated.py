"""Multicalibration: one global map, then corrections where features show that it is
off, stopped on held-out rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from numbers import Integral, Real
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from skcalib._defaults import check_fitted, unchanged_if_refused
from skcalib._fitting.feature_columns import FeatureColumns, cells, cuts_between_cells
from skcalib._fitting.folds import cross_validation_folds
from skcalib._fitting.gains import Design, mean_gain
from skcalib._fitting.provenance import provenance
from skcalib._fitting.wrapped import (
    class_parameters,
    design_parameters,
    fitted_clone,
    refuse_features,
)
from skcalib._input.annotations import CrossValidation
from skcalib._input.columns import column_keys
from skcalib._input.labels import check_clusters
from skcalib._input.scores import (
    check_estimator_scores,
    check_sample_weight,
    drop_zero_weight,
)
from skcalib._input.sklearn_private import (
    HasMethods,
    Interval,
)
from skcalib._intervals.influence import cluster_codes
from skcalib._progress import Progress
from skcalib._rows.links import log_odds, log_probability, row_softmax
from skcalib.maps import map_of
from skcalib.maps.checks import check_same_classes, count, fitted, numbers
from skcalib.recalibrators._base import BaseRecalibrator
from skcalib.recalibrators._certified_mixin import forbid_certificates
from skcalib.recalibrators._spline import SplineCalibration
from skcalib.recalibrators._transformer import RecalibratorOfColumns

_TREES_PER_ROUND = 10
_MAX_LEAVES = 16
_MIN_ROWS_PER_LEAF = 20
_CLIP = 1e-6  # of the probabilities that a Newton step divides by
_PATIENCE = 2  # the search ends after one more round than this without a rise
_ROWS_FOR_THREADS = 50_000
_STANDARD_ERRORS = 2.0  # that the gain of a round has to be above 0


class MulticalibratedRecalibrator(RecalibratorOfColumns):
    """Recalibrator that also calibrates within groups described by features.

    A global map is fitted to the scores alone. It is then corrected in rounds of Newton
    steps, by histogram gradient boosting on the features and the score.
    Cross-validation selects the number of rounds, which is 0 (the global map itself)
    unless a larger number is significantly better.

    Parameters
    ----------
    recalibrator : recalibrator, default=None
        The global map; None means `SplineCalibration`. Its `input` and `classes` apply
        to the whole estimator.
    features : str, int, list of these, or callable
        Columns of `X` by name or position, which are then not scores, or a function of
        `X` that returns a table. Columns may have any type; of the categories in a
        column, the 254 most frequent are used, and the others are treated as missing.
    max_rounds : int, default=20
        Maximum number of rounds; 0 gives the global map.
    learning_rate : float, default=0.1
        Fraction of each Newton step that is applied.
    regularization : float, default=20.0
        Strength of the ridge penalty on each leaf's Newton step, in units of ``sum(w *
        p * (1 - p))``.
    cv : int, splitter or iterable of (train, test), default=5
        Folds for selecting the number of rounds; every sample must be in exactly one
        test set. None means 5.
    random_state : int, RandomState instance or None, default=None
        Seed for histogram gradient boosting, which subsamples the samples if there are
        more than 200,000.
    verbose : bool or int, default=False
        Whether to write the number of completed rounds to standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    provenance_ : dict
        Provenance of the fit: method, parameters, number of samples, events per class,
        versions, and a hash of the samples.
    recalibrator_ : recalibrator
        The global map, fitted to all samples.
    n_rounds_ : int
        Number of rounds used; with 0, the global map is used unchanged.
    gains_ : ndarray of shape (n_tried,)
        Cross-validated log-loss of the global map minus that after each round tried, in
        nats per sample.
    gain_errors_ : ndarray of shape (n_tried,)
        Standard errors of these gains.
    n_features_in_ : int
        Number of columns of `X`, including the features.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of `X`, if they are strings.

    Raises
    ------
    ValueError
        In `fit`, if a score is missing or invalid for `input`, if `y` has a different
        length or contains only one class, or if a parameter is out of range. Also
        raised if the features do not match the scores, or if a column does not exist.

    See Also
    --------
    GroupwiseRecalibrator : A separate map for each given group.
    skcalib.metrics.segment_calibration_test : Tests whether any group is
        miscalibrated.

    Notes
    -----
    Inside a pipeline, pass columns of the data around the classifier, as in the example
    below; `RecalibratedClassifierCV` passes scores only. With K > 2 classes, each class
    has separate steps on the logits of the softmax. Weights are used in the log-loss
    and in the steps, but a leaf needs 20 samples regardless of their weights, so a
    weight of 2 is not exactly equivalent to two samples. Up to 50,000 samples are
    fitted in one thread, and larger data sets in the threads of scikit-learn's
    histogram gradient boosting (``OMP_NUM_THREADS``).

    The number of rounds is the one for which the mean gain minus two standard errors is
    largest, if this difference is above 0. Rounds are added until three in succession
    have not increased the mean gain.

    In 76 fits on 11 data sets, a margin of two standard errors was the best rule: with
    one, the log-loss on new samples increases by up to 1%; with three, a quarter of the
    useful corrections is lost. Requiring that the error of the worst held-out group
    also falls made no difference.

    References
    ----------
    Hebert-Johnson, Kim, Reingold and Rothblum (2018), Multicalibration: calibration for
    the (computationally identifiable) masses. Perini, Haimovich, Linder and others
    (2025), MCGrad: multicalibration at web scale.

    Examples
    --------
    A pipeline for scores that are too low in one region and too high in the other:

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skcalib import CrossFittedClassifier, MulticalibratedRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack((rng.normal(size=2000), rng.integers(0, 2, 2000)))
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-X[:, 0] * (2 * X[:, 1] - 1)))
    >>> model = make_pipeline(
    ...     CrossFittedClassifier(LogisticRegression(), passthrough=[0, 1]),
    ...     MulticalibratedRecalibrator(features=[-2, -1], random_state=0),
    ... ).fit(X, y)
    >>> model[-1].n_rounds_ > 0
    True
    >>> model.predict_proba([[2.0, 0.0], [2.0, 1.0]])[:, 1].round().tolist()
    [0.0, 1.0]
    """

    _parameter_constraints = {
        "recalibrator": [HasMethods(["fit", "predict_proba"]), None],
        "features": [str, Integral, list, tuple, callable],
        "max_rounds": [Interval(Integral, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, 1, closed="right")],
        "regularization": [Interval(Real, 0, None, closed="left")],
        "cv": ["cv_object"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    _default_objects = {"recalibrator": SplineCalibration}

    _attributes = {
        "gains_": numbers,
        "gain_errors_": numbers,
        "n_rounds_": count,
        "recalibrator_": fitted,
        "_seed": count,
    }
    # Made anew where a state is read: states are written only without rounds, which
    # alone need the columns.
    _derived = {"_columns": lambda self: FeatureColumns(), "_rounds": lambda self: []}

    recalibrator_: BaseRecalibrator
    n_rounds_: int
    gains_: np.ndarray
    gain_errors_: np.ndarray

    def __init__(
        self,
        recalibrator: BaseEstimator | None = None,
        *,
        features: str | int | Sequence[str | int] | Callable,
        max_rounds: int = 20,
        learning_rate: float = 0.1,
        regularization: float = 20.0,
        cv: CrossValidation | None = 5,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | int = False,
    ):
        self.recalibrator = recalibrator
        self.features = features
        self.max_rounds = max_rounds
        self.learning_rate = learning_rate
        self.regularization = regularization
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Fit the global map, choose the number of rounds, and fit the rounds.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, n_columns)
            Scores, in the sorted order of the classes, and the feature columns.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), default=None
            Weights.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample: dependent samples (from the same patient or match)
            share a value. They are passed to the fit of the global map, for
            `predict_interval`; the rounds ignore them.

        Returns
        -------
        self : MulticalibratedRecalibrator
            The fitted recalibrator.

        Raises
        ------
        ValueError
            If scores, labels, features or clusters are inconsistent, or if a column is
            missing.
        """
        self._validate_params()
        with unchanged_if_refused(self):
            refuse_features(self._resolved("recalibrator"))
            y = self._with_counted_labels(y, sample_weight, X)
            X, classes = self._in_class_order_with_columns(
                X, y, self._feature_columns(), "features"
            )
            scores, table = self._scores_and_table(X, reset=True)
            codes = self._encoded(y, scores, classes)
            weight = check_sample_weight(sample_weight, len(scores))
            cluster = check_clusters(clusters, len(scores))
            self._columns = FeatureColumns()
            features = self._columns.fit_transform(table, "features")
            scores, features, codes, cluster, weight = drop_zero_weight(
                weight, scores, features, codes, cluster
            )
            if cluster is not None:
                cluster = cluster_codes(cluster)
            random = check_random_state(self.random_state)
            self._seed = random.randint(np.iinfo(np.int32).max)
            rows = _Rows(scores, features, codes, weight)
            with _limited_threads(len(scores)):
                self.gains_, self.gain_errors_ = self._cross_validated_gains(rows)
                # As many rounds as have the largest lower limit of the gain, none if no
                # limit is above 0.
                lower_limits = self.gains_ - _STANDARD_ERRORS * self.gain_errors_
                # The standard error is NaN if the weights amount to too few rows.
                lower_limits = np.nan_to_num(lower_limits, nan=-np.inf)
                self.n_rounds_ = int(np.argmax(np.append(0.0, lower_limits)))
                self._fit_rounds(rows, cluster)
            forbid_certificates(
                self, "rounds of corrections were made, or judged, on the same rows."
            )
            self.provenance_ = provenance(self, scores, codes, weight)
        return self

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like or DataFrame with the same columns as in `fit`
            Scores and features.

        Returns
        -------
        probabilities : ndarray of float64, shape (n, n_classes)
            Calibrated probabilities, with columns in the order of `classes_`.

        Raises
        ------
        ValueError
            If scores are invalid, or if columns differ from those passed to `fit`.
        """
        check_fitted(self)
        scores, table = self._scores_and_table(X, reset=False)
        if self.n_rounds_ == 0:
            return self.recalibrator_.predict_proba(scores)
        features = self._columns.transform(table, "features")
        logits = self._logits(self.recalibrator_, scores)
        with _limited_threads(len(scores)):
            for models in self._rounds:
                logits = self._after_round(models, features, logits)
        return row_softmax(logits)

    def predict_interval(
        self, X: ArrayLike, confidence_level: float = 0.9
    ) -> np.ndarray:
        """Return limits for the event frequency at each score: those of the global map.

        Rounds of corrections have none.

        Parameters
        ----------
        X : array-like or DataFrame with the same columns as in `fit`
            Scores and features.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).

        Returns
        -------
        limits : ndarray of float64, shape (n, 2) or (n, n_classes, 2)
            Lower and upper limits.

        Raises
        ------
        ValueError
            If there are rounds of corrections, or if the global map has no limits.
        """
        check_fitted(self)
        if self.n_rounds_ > 0:
            reason = "the variation of its rounds of corrections is not known"
            raise ValueError(self._no_interval(reason))
        scores, _ = self._scores_and_table(X, reset=False)
        return self.recalibrator_.predict_interval(scores, confidence_level)

    def _map(self, scores):
        """Return the map from scores to probabilities; raise a ValueError if there are
        rounds of trees, which no node represents.
        """
        if self.n_rounds_ > 0:
            raise ValueError(
                "MulticalibratedRecalibrator cannot be exported for use outside Python:"
                f" it has {self.n_rounds_} rounds of corrections by trees. Only a fit"
                " without rounds can be exported."
            )
        return map_of(self.recalibrator_, scores)

    def _check_attributes(self):
        """Raise a ValueError unless the fitted attributes, which were read from a JSON
        document, are consistent with each other.
        """
        check_same_classes(self, self.recalibrator_)
        # Documents hold only fits without rounds, and features by name or position.
        n_columns = 1
        if not isinstance(self.features, str | int):
            n_columns = len(self.features)
        width = self.recalibrator_.n_features_in_ + n_columns
        if self.n_rounds_ != 0 or self.n_features_in_ != width:
            raise ValueError(f"n_rounds_ must be 0 and n_features_in_ {width}")

    def _scores_and_table(self, X, *, reset):
        """Return the validated scores (n, C) and the table of the features."""
        if callable(self.features):
            scores = check_estimator_scores(self, X, input=self.input, reset=reset)
            table = self.features(X)
            if len(table) != len(scores):
                raise ValueError(
                    f"features returned {len(table)} rows for the {len(scores)} rows"
                    " of X."
                )
            return scores, table
        keys = self._feature_columns()
        return self._scores_and_columns(X, keys, "features", reset=reset)

    def _feature_columns(self):
        """Return the names or positions of the columns of X that are features; empty if
        a function makes them.
        """
        if callable(self.features):
            return []
        return column_keys(self.features, name="features")

    def _fit_rounds(self, rows, cluster):
        """Fit the global recalibrator, `recalibrator_`, then `n_rounds_` rounds of
        trees, `_rounds`, to what it leaves. The codes of the rows' clusters (n,), or
        None, are for the limits of the global recalibrator.
        """
        self.recalibrator_ = self._fit_global(rows, cluster)
        self._rounds = []
        logits = self._logits(self.recalibrator_, rows.scores)
        for _ in range(self.n_rounds_):
            models = self._fit_round(rows, logits)
            self._rounds.append(models)
            logits = self._after_round(models, rows.features, logits)

    def _fit_global(self, rows, cluster=None):
        """Return the global recalibrator fitted to a `_Rows` with the codes of their
        clusters (n,) or None.
        """
        recalibrator = self._resolved("recalibrator")
        recalibrator.set_params(**class_parameters(recalibrator, self.classes_))
        return fitted_clone(
            recalibrator,
            rows.scores,
            self.classes_[rows.codes],
            rows.weight,
            **design_parameters(recalibrator, importance=False, cluster=cluster),
        )

    def _logits(self, recalibrator, scores):
        """Return the logits (n, K) of the probabilities of a fitted recalibrator; those
        of two classes are 0 and the log-odds.
        """
        probabilities = recalibrator.predict_proba(scores)
        if len(self.classes_) > 2:
            return log_probability(probabilities)
        return np.column_stack((np.zeros(len(scores)), log_odds(probabilities[:, 1])))

    def _fit_round(self, rows, logits):
        """Fit boosted trees to one Newton step of the log-loss from logits (n, K).

        Return for each class, or the second of two, its index, the cuts that divide its
        logits into cells, and the regressor, which predicts the change of the logit
        from features and cell.
        """
        # Imported here, because this import is slow.
        from sklearn.ensemble import HistGradientBoostingRegressor

        classes = np.arange(len(self.classes_))
        if len(classes) == 2:
            classes = classes[1:]
        # Newton's step for the log-odds of each class: the residual over the curvature.
        probabilities = np.clip(row_softmax(logits)[:, classes], _CLIP, 1 - _CLIP)
        curvature = probabilities * (1 - probabilities)
        is_class = rows.codes[:, None] == classes  # (n, number of classes)
        step = (is_class - probabilities) / curvature
        weight = curvature
        if rows.weight is not None:
            weight = rows.weight[:, None] * curvature
        regressor = HistGradientBoostingRegressor(
            learning_rate=self.learning_rate,
            max_iter=_TREES_PER_ROUND,
            max_leaf_nodes=_MAX_LEAVES,
            min_samples_leaf=_MIN_ROWS_PER_LEAF,
            l2_regularization=self.regularization,
            early_stopping=False,
            categorical_features=np.append(self._columns.is_category, False),
            random_state=self._seed,
        )
        models = []
        for number, k in enumerate(classes.tolist()):
            cuts = cuts_between_cells(logits[:, k])
            columns = np.column_stack((rows.features, cells(logits[:, k], cuts)))
            # scikit-learn refuses a column in which every value is missing.
            columns[:, np.isnan(columns).all(axis=0)] = 0
            fitted = clone(regressor).fit(
                columns, step[:, number], sample_weight=weight[:, number]
            )
            models.append((k, cuts, fitted))
        return models

    def _after_round(self, models, features, logits):
        """Return the logits (n, K) after a round of corrections by `models`, the result
        of `_fit_round`, for features (n, m).
        """
        corrected = logits.copy()
        for k, cuts, regressor in models:
            columns = np.column_stack((features, cells(logits[:, k], cuts)))
            corrected[:, k] += regressor.predict(columns)
        return corrected

    def _cross_validated_gains(self, rows):
        """Return how much log-loss the first round, the first two, and so on save on
        the held-out rows of a cross-validation: means in nats per row, and their
        standard errors, (n_tried,) each.

        Rounds are tried up to `max_rounds`, or until the mean has not risen for some
        rounds.
        """
        if self.max_rounds == 0:
            return np.zeros(0), np.zeros(0)
        table = np.hstack((rows.scores, rows.features))
        folds = []
        for fold in cross_validation_folds(self.cv, table, rows.codes, rows.weight):
            train = rows.at(fold.train, fold.train_weight)
            test = rows.at(fold.test, fold.test_weight)
            folds.append(_FoldRounds(self, train, test))
        weight = None
        if rows.weight is not None:
            weight = np.concatenate([fold.test.weight for fold in folds])
        means = []
        errors = []
        progress = Progress("MulticalibratedRecalibrator", self.verbose)
        while len(means) < self.max_rounds:
            # The round with the largest mean gain so far; 0 stands for no round.
            best_round = np.argmax([0.0, *means])
            if len(means) - 1 - best_round >= _PATIENCE:
                break
            gains = []
            for fold in folds:
                gains.append(fold.next_gains())
                progress(
                    f"round {len(means) + 1} of at most {self.max_rounds}, {len(folds)}"
                    " folds"
                )
            gain = np.concatenate(gains)
            mean, spread = mean_gain(gain, Design(weight))
            means.append(mean)
            errors.append(spread.standard_error)
        return np.array(means), np.array(errors)


class _FoldRounds:
    """The rounds of one fold: fitted to its training rows, judged on its test rows.

    `recalibrator` is the `MulticalibratedRecalibrator`; `train` and `test` are `_Rows`.
    """

    def __init__(self, recalibrator, train, test):
        self.recalibrator = recalibrator
        self.train = train
        self.test = test
        # The logits (n, K) after the rounds so far, at first those of the global map.
        # Gains are measured against its losses on the test rows, (n_test,).
        fitted = recalibrator._fit_global(train)
        self.train_logits = recalibrator._logits(fitted, train.scores)
        self.test_logits = recalibrator._logits(fitted, test.scores)
        self.losses_of_global_map = test.losses(self.test_logits)

    def next_gains(self):
        """Fit one more round; return the log-loss that the rounds so far save in each
        test row (n_test,).
        """
        after_round = self.recalibrator._after_round
        models = self.recalibrator._fit_round(self.train, self.train_logits)
        self.train_logits = after_round(models, self.train.features, self.train_logits)
        self.test_logits = after_round(models, self.test.features, self.test_logits)
        return self.losses_of_global_map - self.test.losses(self.test_logits)


class _Rows(NamedTuple):
    """Validated rows: scores (n, C), features (n, m), codes (n,) and weights or
    None.
    """

    scores: np.ndarray
    features: np.ndarray
    codes: np.ndarray
    weight: np.ndarray | None

    def at(self, index, weight):
        """Return the rows with the given indices, with other weights."""
        return _Rows(
            self.scores[index], self.features[index], self.codes[index], weight
        )

    def losses(self, logits):
        """Return the log-loss of each row (n,) at logits (n, K)."""
        probabilities = row_softmax(logits)
        return -np.log(probabilities[np.arange(len(self.codes)), self.codes])


def _limited_threads(n_rows):
    """Return a context that limits gradient boosting of few rows to one thread: more
    would wait for each other.
    """
    if n_rows > _ROWS_FOR_THREADS:
        return nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="openmp")
