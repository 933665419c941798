"""The out-of-fold gain of recalibrating, in a proper score."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from skcalib._errors.proper_scores import LOSSES
from skcalib._fitting.folds import cross_validation_folds
from skcalib._fitting.gains import gain_interval
from skcalib._fitting.wrapped import (
    check_recalibrator,
    class_parameters,
    fitted_clone,
)
from skcalib._inference.results import IntervalEstimate
from skcalib._input.annotations import CrossValidation
from skcalib._input.scalars import check_confidence_level, check_option
from skcalib._input.scored_labels import check_scored_labels
from skcalib._progress import Progress
from skcalib.recalibrators import StackedRecalibrator


def recalibration_gain(
    y_true: ArrayLike,
    y_proba: ArrayLike | None = None,
    *,
    recalibrator: BaseEstimator | None = None,
    loss: Literal["log", "brier"] = "log",
    cv: CrossValidation | None = 5,
    confidence_level: float = 0.9,
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
    verbose: bool = False,
) -> IntervalEstimate:
    """Out-of-fold gain in a proper score from recalibration, with an interval.

    The recalibrator is fitted to all folds but one and evaluated on the remaining fold.
    For K classes, this measures the miscalibration of all probabilities jointly
    (canonical calibration), whereas binned errors consider one class at a time.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1] for data to which the model was not fitted.
    recalibrator : estimator, default=None
        An object with ``fit(scores, y)`` and ``predict_proba(scores)``; None means
        ``StackedRecalibrator()``.
    loss : {"log", "brier"}, default="log"
        "log" is the log-loss in nats, computed from probabilities clipped to
        [2^-52, 1 - 2^-52]; "brier" is (s - y)^2 for two classes, and its sum over the
        classes if there are more.
    cv : int, splitter or iterable of (train, test), default=5
        Folds in which every sample is predicted once. An int gives random folds that
        depend only on the samples. The folds are not stratified, because equal class
        frequencies in all folds would bias the gain upwards. Each class with at least
        two samples is represented in every training set.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: a sample with weight 2 counts twice.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.
    verbose : bool, default=False
        Whether to write a line to standard error for each fit.

    Returns
    -------
    gain : IntervalEstimate
        Named tuple (estimate, low, high): the mean loss of the original probabilities
        minus that of the recalibrated probabilities. A positive gain means that
        recalibration helps. The gain may be negative if recalibration cannot help and
        the fit adds noise.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero. Also raised
        if the splitter does not put each sample into exactly one test fold.
    TypeError
        If `recalibrator` does not have `fit` and `predict_proba`.

    See Also
    --------
    skcalib.metrics.brier_decomposition : Decomposition of the Brier score.
    skcalib.StackedRecalibrator : Mixes several recalibrators.

    Notes
    -----
    The interval is the normal interval for the mean of the samples' gains, widened to
    account for the noise in the fits. For the log-loss, a single event with a
    probability of 0 makes the interval wide. If the training samples of a fold have
    only one class, the gain in this fold is 0. If only 1% of the samples are events,
    the gains of the samples are skewed; with 1,000 simulated rows, the coverage of a
    90% interval was .94.

    References
    ----------
    Bröcker (2009), Reliability, sufficiency, and the decomposition of proper scores.

    Examples
    --------
    Overconfident forecasts: the log-odds are twice what they should be.

    >>> import numpy as np
    >>> from skcalib.evaluation import recalibration_gain
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(1000)
    >>> y_proba = truth**2 / (truth**2 + (1 - truth) ** 2)
    >>> gain = recalibration_gain(rng.random(1000) < truth, y_proba)
    >>> gain.low > 0, 0.05 < gain.estimate < 0.08
    (True, True)
    """
    check_option(loss, "loss", tuple(LOSSES))
    level = check_confidence_level(confidence_level)
    if recalibrator is None:
        recalibrator = StackedRecalibrator(verbose=verbose)
    recalibrator = check_recalibrator(recalibrator)
    data = check_scored_labels(
        y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )
    codes = data.labels.astype(np.intp)
    columns = data.scores.reshape(len(codes), -1)
    # Not stratified: with equal event frequencies in all folds the gain would be too
    # large.
    folds = cross_validation_folds(
        cv, columns, codes, data.sample_weight, stratified=False
    )
    loss_of = LOSSES[loss]
    before = loss_of(data.scores, data.labels)
    progress = Progress("recalibration_gain", verbose)
    # The gain of every sample by the fit of each fold: how much a sample's gain differs
    # between the fits shows their noise.
    gains = np.empty((len(folds), len(codes)))
    for k, fold in enumerate(folds):
        progress(f"fit {k + 1} of {len(folds)}", k / len(folds))
        recalibrated = recalibrated_by_fold(recalibrator, fold, columns, codes)
        gains[k] = before - loss_of(recalibrated, data.labels)
    return gain_interval(gains, folds, data.sample_weight, level)


def recalibrated_by_fold(recalibrator, fold, columns, codes, groups=None):
    """Return the probabilities of all samples from a recalibrator fitted to the
    training samples of a fold; unchanged if these samples have only one class.

    Parameters
    ----------
    recalibrator : recalibrator
        The recalibrator, which is cloned.
    fold : Fold
        Holds the training samples and their weights.
    columns : ndarray of shape (n, 1) or (n, n_classes)
        Scores: of the event, or of each class.
    codes : ndarray of int, shape (n,)
        Labels as column indices; 1 for the event.
    groups : ndarray of shape (n,), default=None
        Groups of the samples, for a groupwise recalibrator.

    Returns
    -------
    recalibrated : ndarray of shape (n,) or (n, n_classes)
        Probability of the event, or of each class.
    """
    is_binary = columns.shape[1] == 1
    if len(np.unique(codes[fold.train])) < 2:
        return columns[:, 0] if is_binary else columns
    groups_to_fit = {}
    groups_to_predict = {}
    if groups is not None:
        groups_to_fit["groups"] = groups[fold.train]
        groups_to_predict["groups"] = groups
    unfitted = clone(recalibrator)
    # The classes are named, since the training samples may lack one of them. A single
    # column of scores is about two.
    classes = np.arange(max(columns.shape[1], 2))
    unfitted.set_params(**class_parameters(unfitted, classes))
    fitted = fitted_clone(
        unfitted,
        columns[fold.train],
        codes[fold.train],
        fold.train_weight,
        **groups_to_fit,
    )
    recalibrated = fitted.predict_proba(columns, **groups_to_predict)
    return recalibrated[:, 1] if is_binary else recalibrated
