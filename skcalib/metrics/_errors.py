"""Binned calibration errors: plugin, debiased, unbiased and label-binned, for any norm."""

import numpy as np
from scipy.special import erf, gamma, hyp1f1

from skcalib._bins.reductions import binary_tasks, check_rows_or_bins, resolve_multiclass
from skcalib._input.scalars import check_option, resolve_norm
from skcalib.binning import EqualMass, EqualWidth, assign_bins, check_binning

__all__ = ["calibration_error", "check_norm", "expected_calibration_error", "maximum_calibration_error"]

# Share of the weight in bins with fewer than two rows beyond which a debiased error would be mostly left out.
_MAX_THIN_SHARE = 0.05

# Up to this norm an error of 1e-9 has a power that float64 holds; beyond, powers below the second number are refused.
_LARGE_NORM, _SMALLEST_POWER = 32, 1e-290


def calibration_error(
    y_true,
    y_proba=None,
    *,
    norm=2,
    binning=None,
    method="debiased",
    multiclass="auto",
    class_weight=None,
    squared=False,
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Binned calibration error of probabilities.

    The l_p distance between the mean score and the event frequency of the bins. By default the bias of small samples is
    removed. For a continuous model the binned error is, in the population, a lower bound of the true one. For a model
    that predicts one value in each bin it is exact.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels; or the sums of bins, in place of `y_true`, `y_proba`, `binning` and all that describes rows.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1]: of the positive class, or of each class in the sorted order of the labels.
    norm : float or {"l1", "l2", "max"}, default=2
        p >= 1, or ``np.inf`` for the largest bin (`method` "plugin" only). "l1", "l2" and "max" are 1, 2 and
        ``np.inf``.
    binning : BaseBinning, int or None, default=None
        Strategy; an int is a number of equal-mass bins, None ``EqualMass(15)``.
    method : {"debiased", "plugin", "unbiased", "label_binned"}, default="debiased"
        "plugin" takes the frequencies at face value and is too large for few rows. "debiased" subtracts the bias of the
        label noise. Norm 2 follows Definition 5.2 of [1]_, which divides by n_b - 1. Other norms follow Definition G.3,
        which divides by n_b, with the expectation in closed form. So norms 2 and 2.0000001 differ slightly. "unbiased"
        (norm 2) subtracts the residuals' sample variance instead and is unbiased for the binned square also where
        scores vary within a bin. "label_binned" averages ``|s_i - y_b|^p`` over rows [2]_ and is never below "plugin".
    multiclass : {"auto", "top_label", "marginal"}, default="auto"
        "auto" is the positive class for one or two columns, "top_label" for more. "top_label" asks whether the
        predicted class is right as often as its score predicts, "marginal" takes every class against the rest.
    class_weight : array-like of shape (K,) or dict, default=None
        Weights w_k of the classes of the marginal error, as they are; None means 1 / K each.
    squared : bool, default=False
        Norm 2 only: return the signed square, which may be negative, and is what should be averaged over folds.
    sample_weight : array-like of shape (n,), default=None
        Weights that count as repeated rows: a weight of 2 is two rows, also in the debiasing.
    pos_label : int, float, bool or str, default=None
        The label that one column of scores is the probability of; inferred for {0, 1} and {-1, 1} only.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns, where not all of them occur in `y_true`.

    Returns
    -------
    error : float
        In [0, 1]; with `squared` the signed square.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score is missing or outside [0, 1], or
        weights are negative or all zero.
        For a debiased or unbiased error also if more than 5 % of the weight lies in bins with fewer than two rows.

    See Also
    --------
    skcalib.metrics.calibration_error_interval : An error with its interval.
    skcalib.metrics.calibration_test : Is the error more than noise?
    skcalib.metrics.expected_calibration_error : The usual ECE.

    Notes
    -----
    A marginal error is ``(sum_k w_k E_k^p)^(1/p)``. Signed powers are summed over the classes, and clipped at zero
    once, at the root. For ``norm=np.inf`` it is the largest error of a class with a positive weight.

    References
    ----------
    .. [1] Kumar, Liang and Ma (2019), Verified uncertainty calibration.
    .. [2] Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error estimation.

    Examples
    --------
    Two bins whose mean scores are off by .1: the plugin error is .1, and label noise explains more than that.

    >>> from skcalib.metrics import calibration_error
    >>> y_true = [0, 0, 0, 1, 0, 1, 1, 1]
    >>> y_proba = [0.15, 0.15, 0.15, 0.15, 0.65, 0.65, 0.65, 0.65]
    >>> round(calibration_error(y_true, y_proba, binning=2, method="plugin"), 6)
    0.1
    >>> calibration_error(y_true, y_proba, binning=2)
    0.0
    >>> round(calibration_error(y_true, y_proba, binning=2, squared=True), 6)
    -0.0525
    """
    return _binned_error(
        y_true,
        y_proba,
        EqualMass(15),
        norm=norm,
        binning=binning,
        method=method,
        class_weight=class_weight,
        squared=squared,
        multiclass=multiclass,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


def expected_calibration_error(
    y_true,
    y_proba=None,
    *,
    norm=1,
    binning=None,
    multiclass="auto",
    class_weight=None,
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Expected calibration error (ECE): the plugin error with 15 equal-width bins and norm 1.

    Widely used, and biased upwards for few rows: prefer `calibration_error`, and see its parameters.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels; or the sums of bins, in place of `y_true`, `y_proba`, `binning` and all that describes rows.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    norm : float or {"l1", "l2", "max"}, default=1
        p >= 1 or ``np.inf``.
    binning : BaseBinning, int or None, default=None
        Strategy; an int is a number of equal-width bins, None ``EqualWidth(15)``.
    multiclass : {"auto", "top_label", "marginal"}, default="auto"
        See `calibration_error`.
    class_weight : array-like of shape (K,) or dict, default=None
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Weights, which count as repeated rows.
    pos_label : int, float, bool or str, default=None
        The label that one column of scores is the probability of.
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
    skcalib.metrics.calibration_error : The debiased binned error.
    skcalib.metrics.sweep_calibration_error : The error in the most bins that stay increasing.
    skcalib.metrics.maximum_calibration_error : The worst bin.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks.

    Examples
    --------
    Right-closed bins: .5 and .5 share the lower of two bins, whose gap of .5 has two thirds of the rows.

    >>> from skcalib.binning import EqualWidth
    >>> from skcalib.metrics import expected_calibration_error
    >>> round(expected_calibration_error([1, 1, 0], [0.5, 0.5, 0.9], binning=EqualWidth(2)), 6)
    0.633333
    """
    return _binned_error(
        y_true,
        y_proba,
        EqualWidth(15),
        norm=norm,
        binning=binning,
        method="plugin",
        class_weight=class_weight,
        multiclass=multiclass,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


def maximum_calibration_error(
    y_true,
    y_proba=None,
    *,
    binning=None,
    multiclass="auto",
    class_weight=None,
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Maximum calibration error (MCE): the largest gap of any bin, 15 equal-width bins by default.

    Small bins decide it: with few rows it is mostly noise.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels; or the sums of bins, in place of `y_true`, `y_proba`, `binning` and all that describes rows.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    binning : BaseBinning, int or None, default=None
        Strategy; an int is a number of equal-width bins, None ``EqualWidth(15)``.
    multiclass : {"auto", "top_label", "marginal"}, default="auto"
        See `calibration_error`.
    class_weight : array-like of shape (K,) or dict, default=None
        Classes of weight zero are left out of the marginal error.
    sample_weight : array-like of shape (n,), default=None
        Weights, which count as repeated rows.
    pos_label : int, float, bool or str, default=None
        The label that one column of scores is the probability of.
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
    skcalib.metrics.calibration_error : The debiased binned error.
    skcalib.binning.MinimumMass : Merges bins until each holds enough rows.

    References
    ----------
    Naeini, Cooper and Hauskrecht (2015), Obtaining well calibrated probabilities using Bayesian binning.

    Examples
    --------
    >>> from skcalib.binning import EqualWidth
    >>> from skcalib.metrics import maximum_calibration_error
    >>> round(maximum_calibration_error([1, 1, 0], [0.5, 0.5, 0.9], binning=EqualWidth(2)), 6)
    0.9
    """
    return expected_calibration_error(
        y_true,
        y_proba,
        norm=np.inf,
        binning=binning,
        multiclass=multiclass,
        class_weight=class_weight,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


def _binned_error(y_true, y_proba, default, *, norm, binning, method, class_weight, squared=False, multiclass, **rows):
    """Return a binned error, of rows or of bin statistics; see `calibration_error` for the arguments."""
    norm = check_norm(norm, method=method, squared=squared)
    strategy = check_binning(binning, default)
    data = check_rows_or_bins(y_true, y_proba, binning=binning, multiclass=multiclass, **rows)
    power = power_over_tasks(
        data, lambda task: binned_power(task, strategy, norm, method), norm, multiclass, class_weight
    )
    return float(power) if squared else error_root(power, norm)


def check_norm(norm, *, method="plugin", squared=False):
    """Return the number that a norm is, or raise where it does not go with the method."""
    check_option(method, "method", _METHODS)
    norm = resolve_norm(norm)
    if norm == np.inf and method != "plugin":
        raise ValueError(f'norm=np.inf ("max") has no {method} form: use method="plugin".')
    if norm != 2 and method == "unbiased":
        raise ValueError(f'method="unbiased" is defined for norm=2, found norm={norm!r}.')
    if norm != 2 and squared:
        raise ValueError(f"squared=True is defined for norm=2, found norm={norm!r}.")
    return norm


def power_over_tasks(data, task_power, norm, multiclass, class_weight=None):
    """Return the p-th power of an error, given as a function of one binary problem, for a metric's validated data."""
    powers = np.array([task_power(task) for task in binary_tasks(data, multiclass)])
    if resolve_multiclass(multiclass, data) == "marginal":
        return over_classes(powers, check_class_weight(class_weight, data.classes), norm)
    if class_weight is not None:
        raise ValueError('class_weight has a meaning for multiclass="marginal" only.')
    return powers[0]


def over_classes(powers, weights, norm):
    """Return the marginal power of the classes' powers (..., K); for norm inf the largest."""
    return powers[..., weights > 0].max(axis=-1) if norm == np.inf else powers @ weights


def error_power(statistics, norm, method):
    """Return the (signed) p-th power of the binned error; for norm inf the error itself.

    Sums with leading axes (..., n_bins) are that many sets of bins at once.
    """
    return _POWERS[method](statistics, norm)


def error_root(power, norm):
    """Return the error for its p-th power, a negative one counting as zero."""
    if _LARGE_NORM < norm < np.inf and not (power < 0 or _SMALLEST_POWER < power < np.inf):
        raise ValueError(f"norm={norm} leaves the range of floating point for errors this small: use norm=np.inf.")
    power = max(float(power), 0.0)
    return power if norm == np.inf else float(power ** (1 / norm))


def absolute_moment(mean, variance, order):
    """Return E|N(mean, variance)|^order in closed form; ``|mean|^order`` where the variance is zero."""
    noisy = variance > 0
    variance = np.where(noisy, variance, 1.0)
    if order == 1:
        spread = np.sqrt(2 * variance)
        folded = spread / np.sqrt(np.pi) * np.exp(-((mean / spread) ** 2)) + mean * erf(mean / spread)
        return np.where(noisy, folded, np.abs(mean))
    with np.errstate(over="ignore", invalid="ignore"):  # see `error_root`
        moment = (
            (2 * variance) ** (order / 2)
            * (gamma((order + 1) / 2) / np.sqrt(np.pi))
            * hyp1f1(-order / 2, 0.5, -(mean**2) / (2 * variance))
        )
    return np.where(noisy, moment, np.abs(mean) ** order)


def _plugin(statistics, norm):
    gap = np.abs(statistics.mean_score - statistics.event_frequency)
    if norm == np.inf:
        return np.where(statistics.weight > 0, gap, 0).max(axis=-1)
    return np.vecdot(statistics.share, gap**norm)


def _debiased(statistics, norm):
    usable = statistics.weight >= 2
    gap, frequency = statistics.mean_score - statistics.event_frequency, statistics.event_frequency
    n_rows = np.where(usable, statistics.weight, 2)
    if norm == 2:
        terms = gap**2 - frequency * (1 - frequency) / (n_rows - 1)  # Kumar et al., Definition 5.2, misprint mended
    else:
        variance = frequency * (1 - frequency) / n_rows
        terms = 2 * np.abs(gap) ** norm - absolute_moment(gap, variance, norm)  # Kumar et al., Definition G.3
    return np.vecdot(statistics.share, np.where(usable, terms, 0))


def _unbiased(statistics, norm):
    usable = statistics.weight >= 2
    n_rows = np.where(usable, statistics.weight, 2)
    gap = statistics.event_frequency - statistics.mean_score
    residual_squares = (
        statistics.weighted_label - 2 * statistics.weighted_score_label + statistics.weighted_score_squared
    )
    variance = np.maximum(residual_squares - n_rows * gap**2, 0) / (n_rows - 1)
    return np.vecdot(statistics.share, np.where(usable, gap**2 - variance / n_rows, 0))


def has_thin_bins(statistics):
    """Return whether too much weight lies in bins with fewer than two rows for a debiased error."""
    return _thin_share(statistics) > _MAX_THIN_SHARE


def _thin_share(statistics):
    return statistics.share[statistics.weight < 2].sum()


def _refuse_thin_bins(statistics):
    """Raise where too much weight lies in bins with fewer than two rows, by weight, which are left out."""
    thin_share = _thin_share(statistics)
    if thin_share > _MAX_THIN_SHARE:
        raise ValueError(
            f"{100 * thin_share:.1f} % of the weight lies in bins with fewer than two rows (at most "
            f"{100 * _MAX_THIN_SHARE:.0f} % can be left out): a debiased error needs two rows a bin. Use fewer bins or "
            'method="plugin". Weights count as repeated rows: scale them to mean 1 if they are not.'
        )


# method -> p-th power of the error from the statistics
_POWERS = {"plugin": _plugin, "debiased": _debiased, "unbiased": _unbiased}
_METHODS = (*_POWERS, "label_binned")  # the last one needs the rows as well


def binned_power(task, strategy, norm, method):
    """Return the p-th power of the binned error of one binary problem."""
    statistics = task.statistics(strategy, moments=2 if method == "unbiased" else 1)
    if method == "label_binned":
        # Roelofs et al.: mean over rows of |s_i - y_b|^p
        frequency = statistics.event_frequency[assign_bins(task.scores, statistics.edges)]
        return np.average(np.abs(task.scores - frequency) ** norm, weights=task.sample_weight)
    if method != "plugin":
        _refuse_thin_bins(statistics)
    return error_power(statistics, norm, method)


def check_class_weight(class_weight, classes):
    """Return the weights of the classes of a marginal error: 1 / K each, or as given (an array by sorted label)."""
    n_classes = len(classes)
    if class_weight is None:
        return np.full(n_classes, 1 / n_classes)
    by_label = isinstance(class_weight, dict)
    if by_label:
        missing = [label for label in classes.tolist() if label not in class_weight]
        if missing:
            raise ValueError(f"class_weight has no entry for the classes {missing}.")
        class_weight = [class_weight[label] for label in classes.tolist()]
    try:
        weights = np.asarray(class_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"class_weight must hold numbers, found {class_weight!r}.") from None
    if weights.shape != (n_classes,) or not np.all(weights >= 0) or not 0 < weights.sum() < np.inf:
        raise ValueError(
            f"class_weight must hold {n_classes} finite weights that are not negative nor all zero, found "
            f"{class_weight!r}."
        )
    descending = n_classes == 2 and classes[0] is not None and classes[0] > classes[1]  # the first is the negative one
    return weights[::-1] if descending and not by_label else weights
