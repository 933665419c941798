"""Curves: what the bins say, as numbers."""

from skcalib._cells.reductions import binary_tasks, check_rows_or_bins, counted_rows, resolve_multiclass
from skcalib._input.scalars import hint_at_keywords
from skcalib.binning import EqualMass, check_binning


@hint_at_keywords
def reliability_curve(
    y_true,
    y_proba=None,
    *,
    binning=None,
    multiclass="auto",
    sample_weight=None,
    weight_type="frequency",
    pos_label=None,
    labels=None,
):
    """Mean score and event frequency by bin: the numbers of a reliability diagram.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels; or the sums of bins, in place of `y_true`, `y_proba`, `binning` and all that describes rows.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    binning : BaseBinning, int or None, default=None
        Strategy; an int is a number of equal-mass bins, None ``EqualMass(15)``.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"}, default="frequency"
        What weights are. "frequency": they count rows, a weight of 2 is two rows. "importance": each row was seen once
        and stands for more or fewer; weights are scaled so that they sum to ``sum(w)**2 / sum(w**2)``, the number of
        rows that they are worth, and the intervals of the bins are as wide as that says.
    pos_label : int, float, bool or str, default=None
        The event; None is the greater of two labels, the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    curve : BinStatistics or list of BinStatistics
        With `edges`, `mean_score`, `event_frequency`, `weight`, `count` and `interval(confidence_level)`; for
        "marginal" one per class.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score is missing or outside [0, 1], or
        weights are negative or all zero.

    See Also
    --------
    skcalib.displays.ReliabilityDisplay : The picture.
    skcalib.metrics.BinStatistics : The sums per bin.

    References
    ----------
    DeGroot and Fienberg (1983), The comparison and evaluation of forecasters.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import reliability_curve
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> curve = reliability_curve(y_true, y_proba, binning=4)
    >>> curve.mean_score.round(2).tolist(), curve.event_frequency.round(2).tolist()
    ([0.09, 0.33, 0.64, 0.9], [0.22, 0.43, 0.61, 0.77])
    >>> low, high = curve.interval(confidence_level=0.9)
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.19, 0.39, 0.57, 0.74], [0.25, 0.46, 0.65, 0.8])
    """
    strategy = check_binning(binning, EqualMass(15))
    rows = {"sample_weight": sample_weight, "pos_label": pos_label, "labels": labels}
    data = check_rows_or_bins(y_true, y_proba, binning=binning, multiclass=multiclass, **rows)
    data = counted_rows(data, weight_type, warns=False)
    curves = [task.statistics(strategy) for task in binary_tasks(data, multiclass, pooled=True)]
    return curves if resolve_multiclass(multiclass, data, pooled=True) == "marginal" else curves[0]
