"""Curves: what the bins say, as numbers."""

from skcalib._cells.reductions import binary_tasks, check_rows_or_bins, counted_rows, resolve_multiclass
from skcalib._input.hints import hint_at_keywords
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

    Examples
    --------
    >>> from skcalib.metrics import reliability_curve
    >>> curve = reliability_curve([0, 1, 1, 1], [0.2, 0.4, 0.8, 0.9], binning=2)
    >>> curve.event_frequency.tolist()
    [0.5, 1.0]
    >>> low, high = curve.interval(confidence_level=0.9)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.025, 0.224], [0.975, 1.0])
    """
    strategy = check_binning(binning, EqualMass(15))
    rows = {"sample_weight": sample_weight, "pos_label": pos_label, "labels": labels}
    data = check_rows_or_bins(y_true, y_proba, binning=binning, multiclass=multiclass, **rows)
    data = counted_rows(data, weight_type, warns=False)
    curves = [task.statistics(strategy) for task in binary_tasks(data, multiclass, pooled=True)]
    return curves if resolve_multiclass(multiclass, data, pooled=True) == "marginal" else curves[0]
