"""Calibration errors without bins: the cumulative difference and the neighbours in score."""

from skcalib._errors.bin_free import KolmogorovSmirnovPower, KuiperPower, NeighborhoodPower
from skcalib.metrics._errors import value_of


def kolmogorov_smirnov_calibration_error(
    y_true,
    y_proba=None,
    *,
    multiclass="auto",
    class_weight=None,
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Kolmogorov-Smirnov calibration error: the largest cumulative difference of labels and scores.

    ``max_t |mean of (y - s) over rows with s <= t, all rows counted|``: tied scores enter as one. Errors of opposite
    sign cancel along the way, so the error is a lower bound of the l1 error.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels; or the sums of bins with one distinct score each, in place of `y_true`, `y_proba` and all that
        describes rows.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
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

    See Also
    --------
    skcalib.metrics.kuiper_calibration_error : The worst interval of scores.
    skcalib.metrics.calibration_test : Is the error more than noise?

    References
    ----------
    Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu and Hartley (2021), Calibration of neural networks using splines.

    Examples
    --------
    Forecasts that are too sure: their log-odds are twice too large.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import kolmogorov_smirnov_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> round(kolmogorov_smirnov_calibration_error(y_true, y_proba), 3)
    0.057

    By hand: the differences y - s of these four rows add up to -.2, -.6, -.2 and 0, and .6 / 4 = .15.

    >>> from skcalib.metrics import kolmogorov_smirnov_calibration_error
    >>> round(kolmogorov_smirnov_calibration_error([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.8]), 6)
    0.15
    """
    return value_of(KolmogorovSmirnovPower, locals())


def kuiper_calibration_error(
    y_true,
    y_proba=None,
    *,
    multiclass="auto",
    class_weight=None,
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Kuiper calibration error: the largest cumulative difference of labels and scores over any interval of scores.

    ``max_{a, b} |sum of (y - s) over rows with a < s <= b| / n``: the range of the cumulative differences. The error is
    at least their largest absolute value (`kolmogorov_smirnov_calibration_error`). It is at most twice as large, and a
    lower bound of the l1 error. Also known as ECCE-R and as the cutoff calibration error.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels; or the sums of bins with one distinct score each, in place of `y_true`, `y_proba` and all that
        describes rows.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
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

    See Also
    --------
    skcalib.metrics.kolmogorov_smirnov_calibration_error : The largest cumulative difference.
    skcalib.metrics.calibration_test : Is the error more than noise?

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu (2022), Metrics of calibration for probabilistic predictions.

    Examples
    --------
    Forecasts that are too sure: their log-odds are twice too large.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import kuiper_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> round(kuiper_calibration_error(y_true, y_proba), 3)
    0.057

    The differences y - s add up to -.2, .4, -.2 and .0 over four rows: from -.2 to .4.

    >>> from skcalib.metrics import kuiper_calibration_error
    >>> round(kuiper_calibration_error([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8]), 6)
    0.15
    """
    return value_of(KuiperPower, locals())


def neighborhood_calibration_error(
    y_true,
    y_proba=None,
    *,
    n_neighbors=None,
    norm=1,
    multiclass="auto",
    class_weight=None,
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Calibration error with the event frequency of each row taken over its neighbours in score.

    The neighbours of a row are all rows within the smallest distance that holds `n_neighbors` rows, itself included.
    Tied scores are neighbours together, so the order of the rows does not matter. Like a plugin error with few rows a
    bin it is too large for few neighbours.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    n_neighbors : int, default=None
        Least number of neighbours (total weight), between 1 and n; None means the square root of n, rounded up.
    norm : float or {"l1", "l2", "max"}, default=1
        p >= 1, or ``np.inf`` for the largest row.
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
        weights are negative or all zero. Also if `n_neighbors` is not between 1 and n.

    See Also
    --------
    skcalib.metrics.kde_calibration_error : A kernel estimate without bins.
    skcalib.metrics.calibration_error : The binned error without the bias of few rows.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error estimation, Eq. 2.

    Examples
    --------
    Forecasts that are too sure: their log-odds are twice too large.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import neighborhood_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> round(neighborhood_calibration_error(y_true, y_proba), 3)
    0.105

    With all rows as neighbours the frequency is 1/2 everywhere.

    >>> from skcalib.metrics import neighborhood_calibration_error
    >>> round(neighborhood_calibration_error([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.8], n_neighbors=4), 6)
    0.2
    """
    return value_of(NeighborhoodPower, locals())
