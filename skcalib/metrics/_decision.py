"""The decision calibration error: what trusting the scores can cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import ArrayLike

from skcalib._cells.binned import check_rows_or_bins
from skcalib._cells.reductions import one_task
from skcalib._cells.statistics import BinStatistics
from skcalib._errors.decision import DecisionError
from skcalib._inference.results import ResultRecord
from skcalib._input.scalars import hint_at_keywords
from skcalib._verdicts import rounded
from skcalib.binning import BaseBinning


@dataclass(frozen=True, eq=False, repr=False)
class WorstThreshold(ResultRecord):
    """Decision calibration error and the threshold at which it is attained.

    Parameters
    ----------
    error : float
        The largest cost of trusting the scores.
    threshold : float
        The first threshold at which this cost is attained.
    """

    error: float
    threshold: float

    def _sentences(self):
        return (
            f"On these samples, trusting the scores costs up to {rounded(self.error)},"
            f" at a threshold of {rounded(self.threshold)}."
        )


@hint_at_keywords
def decision_calibration_error(
    y_true: ArrayLike | BinStatistics,
    y_proba: ArrayLike | None = None,
    *,
    binning: BaseBinning | int | None = None,
    return_threshold: bool = False,
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    class_weight: ArrayLike | dict | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> Any:
    """Decision calibration error: the largest cost of trusting the scores.

    Suppose that a decision maker acts if the score reaches the threshold t at which
    acting breaks even. If the recalibrated score q were used instead of s, the gain
    would increase by the mean of ``(q - t)(1{q >= t} - 1{s >= t})``; the error is the
    maximum over t. The error is at most the mean of ``|q - s|``.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels, or bin sums with one distinct score per bin, which replace `y_true`,
        `y_proba` and all other per-sample arguments.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    binning : BaseBinning, int or None, default=None
        Bins that define q: the event frequency of the bin of s. None means
        ``PoolAdjacentViolators()``, the isotonic fit; an int is the number of
        equal-mass bins. With coarse bins, a calibrated model has an error above 0: a
        single bin with calibrated uniform scores has an error of .0625.
    return_threshold : bool, default=False
        Whether to also return the threshold at which the error is attained.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`; "marginal" is the mean over classes.
    class_weight : array-like of shape (K,) or dict, default=None
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: a sample with weight 2 counts twice.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    error : float or WorstThreshold
        Error in [0, 1], in units of the cost of a false alarm plus that of a miss. This
        is a plugin error, which is inflated by noise. With `return_threshold`, the
        result is the `error` and the `threshold`, in this order when unpacked. The
        threshold is the first of the worst thresholds; it is a score or the next larger
        float.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero. Also raised
        if `return_threshold` is used with ``multiclass="marginal"``.

    See Also
    --------
    skcalib.decisions.net_benefit : The benefit of a strategy at each threshold.
    skcalib.metrics.calibration_error_interval : An error with its confidence interval.

    Notes
    -----
    For the interval and the test of this error, the scores are recalibrated for each
    draw of the labels. With more than 1,024 distinct scores, neighbouring scores are
    merged.

    References
    ----------
    Gupta and Ramdas (2021), Distribution-free calibration guarantees for histogram
    binning without sample splitting (Example 1). Hu and Wu (2024), Predict to minimize
    swap regret for all payoff-bounded tasks.

    Examples
    --------
    Overconfident forecasts: the log-odds are twice what they should be.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import decision_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> error, threshold = decision_calibration_error(
    ...     y_true, y_proba, return_threshold=True
    ... )
    >>> round(error, 3), round(threshold, 2)
    (0.015, 0.12)

    Nine tenths of the samples have score .2 and event frequency .3. With a threshold
    just above .2, each of them loses .3 - .2.

    >>> from skcalib.metrics import decision_calibration_error
    >>> y_true, y_proba = (
    ...     [1] * 27 + [0] * 63 + [1] * 6 + [0] * 4,
    ...     [0.2] * 90 + [0.8] * 10,
    ... )
    >>> error, threshold = decision_calibration_error(
    ...     y_true, y_proba, return_threshold=True
    ... )
    >>> round(error, 6), round(threshold, 6), threshold > 0.2
    (0.09, 0.2, True)
    """
    error = DecisionError(
        binning=binning, multiclass=multiclass, class_weight=class_weight
    )
    data = check_rows_or_bins(
        y_true,
        y_proba,
        binning=binning,
        multiclass=multiclass,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
        multilabel=True,
    )
    if not return_threshold:
        return error.value(data)
    if multiclass == "marginal" or data.is_multilabel:
        raise ValueError(
            'return_threshold=True is for one problem, but multiclass="marginal" has'
            " one for each class."
        )
    task = one_task(data, multiclass, pooled=True)
    worst_error, threshold = error.of_task(task).worst()
    return WorstThreshold(worst_error, threshold)
