"""A classifier that decides by a certified threshold, and may abstain."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from skcalib._defaults import unchanged_if_refused
from skcalib._input.classifier_scores import classifier_scores
from skcalib._input.labels import shown
from skcalib._input.scalars import check_option
from skcalib._input.warn import warn
from skcalib.decisions._certified import (
    ANSWER_PROMISES,
    ONE_MODEL_PROMISES,
    CertifiedThreshold,
)
from skcalib.decisions._certified_threshold import certified_threshold
from skcalib.decisions._expected_cost import WrappedClassifier
from skcalib.decisions._same_rows import provenances


class CertifiedThresholdClassifier(WrappedClassifier):
    """Classifier that abstains below a certified threshold.

    With a guarantee about an event, it does not abstain: it predicts the event at or
    above the threshold, and the other class below.

    Parameters
    ----------
    estimator : classifier
        A classifier with `predict_proba`. Wrap a fitted one in a
        `sklearn.frozen.FrozenEstimator`; all samples passed to `fit` are then used to
        find the threshold, and must not have been used to fit the classifier.

    promise : {"error_when_answered", "answered_and_wrong", "precision", "recall", \
"false_positive_rate", "accuracy"}, default="error_when_answered"
        See `certified_threshold`. With the last four options, `predict` returns the
        second of the two classes at or above the threshold, and the first class below.

    target : float, default=0.05
        The limit: the largest share of errors, or the smallest precision, recall or
        accuracy.

    confidence_level : float, default=0.9
        Probability with which the guarantee holds, in (0, 1).

    abstain_label : object, default=None
        Label that `predict` returns for unanswered samples. None means "abstain" if
        labels are strings and -1 if they are non-negative integers; for other labels,
        it raises an error.

    test_size : float or int, default=0.5
        Share or number of samples reserved for finding the threshold.

    random_state : int, RandomState instance or None, default=None
        Seed for the split.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The sorted labels; `abstain_label` is not among them.

    threshold_ : float
        The certified threshold; infinite if no threshold was found.

    certificate_ : CertifiedThreshold
        The guarantee, which ``print`` explains.

    estimator_ : classifier
        The fitted classifier.

    n_features_in_ : int
        Number of features, if the classifier defines this attribute.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if the classifier defines this attribute.

    Raises
    ------
    ValueError
        In `fit`, if `y`, or the part of it used for the classifier, has only one class;
        if the guarantee is about an event and there are more than two classes; if a
        frozen map with more than two parameters was fitted to the same samples; or if
        no label is left for abstaining.
    TypeError
        In `fit`, if `estimator` has no `predict_proba`.

    See Also
    --------
    skcalib.decisions.certified_threshold : Finds the threshold for given probabilities.
    skcalib.decisions.ExpectedCostClassifier : Makes the decision with the lowest
        expected cost.

    Notes
    -----
    A recalibrated classifier abstains less often:
    ``CertifiedThresholdClassifier(RecalibratedClassifierCV(...))``. The samples are
    split at random, without stratification by class, because the guarantee is about
    samples that are drawn independently. Accuracy (`score`) counts abstentions as
    errors.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import train_test_split
    >>> from skcalib.decisions import CertifiedThresholdClassifier
    >>> X_train, X_test, y_train, y_test = train_test_split(*load_digits(return_X_y=True), random_state=0)
    >>> model = CertifiedThresholdClassifier(LogisticRegression(max_iter=5000), target=0.02, random_state=0)
    >>> y_pred = model.fit(X_train, y_train).predict(X_test)
    >>> answered = y_pred != -1
    >>> print(f"{answered.mean():.2f} answered, {(y_pred != y_test)[answered].mean():.3f} of them wrongly")
    0.91 answered, 0.020 of them wrongly
    """  # noqa: E501

    threshold_: float
    certificate_: CertifiedThreshold

    def __init__(
        self,
        estimator: BaseEstimator,
        *,
        promise: Literal[
            "error_when_answered",
            "answered_and_wrong",
            "precision",
            "recall",
            "false_positive_rate",
            "accuracy",
        ] = "error_when_answered",
        target: float = 0.05,
        confidence_level: float = 0.9,
        abstain_label: Any = None,
        test_size: float = 0.5,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.estimator = estimator
        self.promise = promise
        self.target = target
        self.confidence_level = confidence_level
        self.abstain_label = abstain_label
        self.test_size = test_size
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, **fit_params: Any) -> Self:
        """Fit the classifier on part of the data and find the threshold on the rest.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Samples, in any container that the classifier accepts.

        y : array-like of shape (n_samples,)
            Labels: numbers, booleans or strings.

        **fit_params : dict
            Metadata for the classifier's `fit`. The search for the threshold does not
            use them, because the guarantee is about unweighted samples.

        Returns
        -------
        self : CertifiedThresholdClassifier
            The fitted classifier.

        Raises
        ------
        ValueError
            If `y`, or the part of it used for the classifier, has only one class; if
            the guarantee is about an event and there are more than two classes; if a
            frozen map with more than two parameters was fitted to the same samples; or
            if no label is left for abstaining.
        TypeError
            If `estimator` has no `predict_proba`.
        """
        check_option(self.promise, "promise", ONE_MODEL_PROMISES)
        with unchanged_if_refused(self):
            fits = self._checked_fits(X, y, fit_params)  # the validated data
            if self.promise in ANSWER_PROMISES:
                self._abstain_label()  # raises if no label is left for abstaining
            if isinstance(self.estimator, FrozenEstimator):
                model = self.estimator
                X_test = fits.X
                test = np.arange(len(fits.y))
            else:
                rows = np.arange(len(fits.y))
                train, test = train_test_split(
                    rows, test_size=self.test_size, random_state=self.random_state
                )
                if len(np.unique(fits.y[train])) < 2:
                    raise ValueError(
                        f"The {len(train)} rows for the classifier have only one class"
                        f" ({shown(fits.y[train[:1]])}): pass more rows, a different"
                        " random_state, or a model that is already fitted, in a"
                        " FrozenEstimator."
                    )
                # The model is fitted to the first part; `X_test` is the second part.
                model, X_test = fits.on_fold(train, test)
            y_proba = classifier_scores(model, X_test, self.classes_, "predict_proba")
            is_labelled = fits.labelled(test)
            y_proba = y_proba[is_labelled]
            y_test = fits.y[test[is_labelled]]
            # A frozen recalibrator tells whether it was fitted to these rows.
            fitted_on = model if provenances(model) else None
            self.certificate_ = certified_threshold(
                y_test,
                y_proba,
                promise=self.promise,
                target=self.target,
                confidence_level=self.confidence_level,
                labels=self.classes_,
                fitted_on=fitted_on,
            )
            self.threshold_ = self.certificate_.threshold
            if not self.certificate_.found:
                # The first lines of the certificate say that nothing was found, and
                # why.
                found, why, *_ = str(self.certificate_).split("\n")
                warn(f"{found} {why}")
            return self._set_fitted(model)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict labels; below the threshold, `abstain_label` or the non-event.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Labels.
        """
        proba = self.predict_proba(X)
        accepted = self.certificate_.accepts(proba)
        if self.promise not in ANSWER_PROMISES:
            return self.classes_[accepted.astype(np.intp)]
        abstain_label = self._abstain_label()
        labels = np.append(self.classes_, [abstain_label])
        # If the label for abstaining is of another kind, `append` converts all labels,
        # such as numbers to text: an array of objects keeps them. Signed for unsigned
        # integers, which -1 requires, is no loss.
        kinds = {labels.dtype.kind, self.classes_.dtype.kind}
        if len(kinds) > 1 and kinds != {"i", "u"}:
            labels = np.array([*self.classes_.tolist(), abstain_label], dtype=object)
        # The label for abstaining stands after those of the classes.
        abstain_position = len(self.classes_)
        predicted = np.argmax(proba, axis=1)
        return labels[np.where(accepted, predicted, abstain_position)]

    def _binary_because_of(self):
        """Return the argument that allows only two classes, for a message; "" without
        such a limit.
        """
        if self.promise in ANSWER_PROMISES:
            return ""
        return f"promise={self.promise!r}"

    def _abstain_label(self):
        """Return the label for abstaining, which must not be a class. The default is -1
        if the classes are numbers from 0 on, and "abstain" if they are text.
        """
        classes = self.classes_
        label = self.abstain_label
        # Numbers such as 0 and 1, or 0.0 and 1.0.
        are_counts = (
            classes.dtype.kind in "iuf" and classes[0] >= 0 and np.all(classes % 1 == 0)
        )
        if label is None and are_counts:
            return -1.0 if classes.dtype.kind == "f" else -1
        if label is None and all(isinstance(name, str) for name in classes.tolist()):
            label = "abstain"
        if label is None or label in classes.tolist():
            raise ValueError(
                f"abstain_label must differ from the classes {shown(classes)}, found"
                f" {self.abstain_label!r}."
            )
        return label
