"""The binned error with as many bins as keep the event frequency rising."""

from skcalib._errors.binned import check_norm
from skcalib._errors.power import Error, error_value
from skcalib._errors.sweep import SweepPower
from skcalib.binning import MonotonicSweep


def sweep_calibration_error(
    y_true,
    y_proba=None,
    *,
    norm=1,
    base=None,
    multiclass="auto",
    class_weight=None,
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Plugin calibration error with the most bins that stay monotone (ECE_SWEEP).

    The labels choose the number of bins, so the user need not: one more bin is tried as long as the event
    frequency rises from bin to bin. Of the plugin errors it has the least bias for few rows.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    norm : float or {"l1", "l2", "max"}, default=1
        p >= 1 or ``np.inf``.
    base : EqualMass or EqualWidth, default=None
        Where the bins are cut; None means ``EqualMass()``, which is recommended. Its `n_bins` is not used.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`.
    class_weight : array-like of shape (K,) or dict, default=None
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Weights, which count as repeated rows.
    pos_label : int, float, bool or str, default=None
        The event; None is the greater of two labels, the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    error : float
        In [0, 1].

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score is missing or outside [0, 1], or
        weights are negative or all zero.
    TypeError
        If `base` is another strategy.

    See Also
    --------
    skcalib.binning.MonotonicSweep : The most bins whose event frequencies increase.
    skcalib.metrics.calibration_error : The binned error without the bias of few rows.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error estimation.

    Examples
    --------
    Forecasts that are too sure: their log-odds are twice too large.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import sweep_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> round(sweep_calibration_error(y_true, y_proba), 3)
    0.094

    Two bins with frequencies 0 and 1/3 rise, three (0, 1/2, 0) would not: ``|.2 - 0| / 2 + |.7 - 1/3| / 2``.

    >>> from skcalib.metrics import sweep_calibration_error
    >>> round(sweep_calibration_error([0, 0, 0, 1, 0, 0], [0.1, 0.2, 0.3, 0.6, 0.7, 0.8]), 6)
    0.283333
    """
    norm = check_norm(norm)
    error = Error(SweepPower, {"norm": norm, "base": base}, norm, multiclass=multiclass, class_weight=class_weight)
    rows = {"sample_weight": sample_weight, "pos_label": pos_label, "labels": labels}
    return error_value(error, y_true, y_proba, binning=MonotonicSweep(base), **rows)
