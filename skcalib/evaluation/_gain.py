"""The out-of-fold gain of recalibrating, in a proper score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skcalib._errors.proper_scores import LOSSES
from skcalib._fitting.wrapped import check_recalibrator
from skcalib._inference.adjustment import holm
from skcalib._inference.results import IntervalEstimate, ResultTable, gain_estimate
from skcalib._input.annotations import CrossValidation
from skcalib._input.scalars import check_confidence_level, check_option
from skcalib._verdicts import interval_words, level_words, pvalue_words, rounded
from skcalib.evaluation._cross_validate import UNCALIBRATED, cross_validated
from skcalib.recalibrators import StackedRecalibrator

_NAMES_OF_LOSSES = {"log": "log-loss", "brier": "Brier score"}


@dataclass(frozen=True, eq=False, repr=False)
class RecalibrationGains(ResultTable):
    """Table with one row per recalibrator, the uncalibrated scores first: its
    out-of-fold loss, and its gain over the uncalibrated scores.

    Parameters
    ----------
    recalibrator : ndarray of str, shape (n_rows,)
        Names.
    mean_loss : ndarray of shape (n_rows,)
        Mean out-of-fold loss.
    gain, low, high : ndarray of shape (n_rows,)
        Mean loss of the uncalibrated scores minus that of the recalibrator, with its
        interval: a paired difference. 0 for the uncalibrated scores.
    pvalue, adjusted_pvalue : ndarray of shape (n_rows,)
        Two-sided p-value of the hypothesis that there is no gain, without and with
        adjustment for the number of recalibrators (Holm's method); 1 for the
        uncalibrated scores, NaN if the samples do not determine it.
    reason : ndarray of str, shape (n_rows,)
        The reason why limits are NaN; an empty string if they are not.
    loss : {"log", "brier"}
        The loss.
    confidence_level : float
        Coverage of each interval, in (0, 1).
    """

    _prints_table = False

    recalibrator: np.ndarray
    mean_loss: np.ndarray
    gain: np.ndarray
    low: np.ndarray
    high: np.ndarray
    pvalue: np.ndarray
    adjusted_pvalue: np.ndarray
    reason: np.ndarray
    loss: str
    confidence_level: float

    def _sentences(self):
        """Say for each recalibrator whether it gains, the largest gain first."""
        order = 1 + np.argsort(-self.gain[1:], kind="stable")
        return "\n".join(self._sentence(k) for k in order)

    def _sentence(self, k):
        """Return a sentence about the recalibrator of row k."""
        name = self.recalibrator[k]
        loss = _NAMES_OF_LOSSES[self.loss]
        gain, low, high = self.gain[k], self.low[k], self.high[k]
        if np.isnan(low):
            return (
                f"Whether {name} lowers the {loss} on held-out data (gain"
                f" {rounded(gain)}) cannot be determined: {self.reason[k]}."
            )
        pvalue = self.adjusted_pvalue[k]
        finding = f"{name} does not detectably change the {loss} on held-out data: gain"
        if pvalue <= 0.05 and not low <= 0 <= high:
            verb = "lowers" if gain > 0 else "raises"
            finding = f"{name} {verb} the {loss} on held-out data by"
            low, high = sorted((abs(low), abs(high)))
            gain = abs(gain)
        level = level_words(self.confidence_level)
        size = interval_words(gain, low, high, level=level)
        return f"{finding} {size}, adjusted {pvalue_words(pvalue)}."


@overload
def recalibration_gain(
    y_true: ArrayLike,
    y_proba: ArrayLike | None = None,
    *,
    recalibrator: BaseEstimator | None = None,
    loss: Literal["log", "brier"] = "log",
    cv: CrossValidation | None = 5,
    confidence_level: float = 0.9,
    sample_weight: ArrayLike | None = None,
    weight_type: Literal["frequency", "importance"] | dict = "frequency",
    clusters: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
    verbose: bool = False,
) -> IntervalEstimate: ...


@overload
def recalibration_gain(
    y_true: ArrayLike,
    y_proba: ArrayLike | None = None,
    *,
    recalibrator: Mapping[str, BaseEstimator],
    loss: Literal["log", "brier"] = "log",
    cv: CrossValidation | None = 5,
    confidence_level: float = 0.9,
    sample_weight: ArrayLike | None = None,
    weight_type: Literal["frequency", "importance"] | dict = "frequency",
    clusters: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
    verbose: bool = False,
) -> RecalibrationGains: ...


def recalibration_gain(
    y_true: ArrayLike,
    y_proba: ArrayLike | None = None,
    *,
    recalibrator: BaseEstimator | Mapping[str, BaseEstimator] | None = None,
    loss: Literal["log", "brier"] = "log",
    cv: CrossValidation | None = 5,
    confidence_level: float = 0.9,
    sample_weight: ArrayLike | None = None,
    weight_type: Literal["frequency", "importance"] | dict = "frequency",
    clusters: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
    verbose: bool = False,
) -> IntervalEstimate | RecalibrationGains:
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
    recalibrator : estimator or dict, default=None
        An object with ``fit(scores, y)`` and ``predict_proba(scores)``, or several, by
        their names. None means ``StackedRecalibrator()``.
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
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"} or dict, default="frequency"
        Meaning of the weights. "frequency": a weight of 2 means two identical samples.
        "importance": each sample was observed once and represents more or less than one
        (to correct for the sampling design).
        A dict gives the weight that each sample would have with each of two labels,
        a number or an array; see `skcalib.evaluation.describe_weights`.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample: dependent samples (from the same patient or match) share
        a value, and lie in the same fold.
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
        the fit adds noise. Limits are NaN if the samples do not determine them, and all
        is NaN if they have only one label; `reason` says why. For a dict, a
        `RecalibrationGains`: a table of the uncalibrated scores and each recalibrator,
        with gains, p-values, and p-values adjusted by Holm's method.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero. Also raised
        if the splitter does not put each sample into exactly one test fold, or splits a
        cluster.
    TypeError
        If `recalibrator` does not have `fit` and `predict_proba`.

    Warns
    -----
    UserWarning
        If weights are not integers and ``weight_type="frequency"``.

    See Also
    --------
    cross_validate : The out-of-fold probabilities and losses behind the gain.
    skcalib.metrics.brier_decomposition : Decomposition of the Brier score.
    skcalib.StackedRecalibrator : Mixes several recalibrators.

    Notes
    -----
    The interval is that of the mean of the samples' gains, as in `compare`, widened to
    account for the noise in the fits and for rare labels that the samples may lack; see
    `cross_validate`. For the log-loss, a single event with a probability of 0 makes the
    interval wide. If the training samples of a fold have only one class, its scores are
    left unchanged, and the limits are NaN. If only 1% of the samples are events, the
    gains of the samples are skewed; with 1,000 simulated samples, the coverage of a 90%
    interval was .94.

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
    is_one = not isinstance(recalibrator, Mapping)
    recalibrators = recalibrator
    if recalibrator is None:
        recalibrator = StackedRecalibrator(verbose=verbose)
    if is_one:
        recalibrators = {"recalibrator": check_recalibrator(recalibrator)}
    fits, candidates, _ = cross_validated(
        y_true,
        y_proba,
        recalibrators,
        cv=cv,
        clusters=clusters,
        sample_weight=sample_weight,
        weight_type=weight_type,
        labels=labels,
        pos_label=pos_label,
        verbose=verbose,
        loss_names=(loss,),
    )
    if is_one:
        before, after = candidates.values()  # unchanged scores, and the recalibrator
        gain = fits.gain(before, after, loss).interval(level, loss=loss)
        return gain_estimate(*gain, level, reason=gain.reason, loss=loss)
    return _table(fits, candidates, loss, level)


def _table(fits, candidates, loss, level):
    """Return the `RecalibrationGains` of a cross-validation, the uncalibrated scores
    first. `fits` holds the losses of its `candidates`, which are given by name.
    """
    before = candidates[UNCALIBRATED]
    gains = []
    intervals = []
    for name, candidate in candidates.items():
        gain = fits.gain(before, candidate, loss)
        gains.append(gain)
        names = {"after": name, "before": UNCALIBRATED}
        intervals.append(gain.interval(level, loss=loss, **names))
    estimate, low, high = np.array(intervals).T
    pvalues = np.array([gain.pvalue() for gain in gains])
    mean_losses = [fits.mean_loss(candidate, loss) for candidate in candidates.values()]
    reasons = [gain.reason if np.isnan(gain.low) else "" for gain in intervals]
    return RecalibrationGains(
        recalibrator=np.array(list(candidates)),
        mean_loss=np.array(mean_losses),
        gain=estimate,
        low=low,
        high=high,
        pvalue=pvalues,
        # The first row, the uncalibrated scores, is compared with itself.
        adjusted_pvalue=np.append(1.0, holm(pvalues[1:])),
        reason=np.array(reasons),
        loss=loss,
        confidence_level=level,
    )
