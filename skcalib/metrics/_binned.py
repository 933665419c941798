"""Binned calibration errors: plugin, debiased, unbiased, label-binned."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skcalib._cells.statistics import BinStatistics
from skcalib._errors.binned import BinnedError
from skcalib._input.scalars import hint_at_keywords
from skcalib.binning import (
    BaseBinning,
    EqualMass,
    EqualWidth,
    MonotonicSweep,
    check_binning,
)


@hint_at_keywords
def calibration_error(
    y_true: ArrayLike | BinStatistics,
    y_proba: ArrayLike | None = None,
    *,
    norm: float | Literal["l1", "l2", "max"] = 2,
    binning: BaseBinning | int | None = None,
    method: Literal["auto", "plugin", "debiased", "unbiased", "label_binned"] = "auto",
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    class_weight: ArrayLike | dict | None = None,
    squared: bool = False,
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Binned calibration error of probabilities.

    This is the l_p distance between mean score and event frequency over the bins. By
    default, small-sample bias is removed. In the population, the binned error of a
    continuous model is a lower bound on the true error. It is exact for a model that
    predicts a single value per bin.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, L), or BinStatistics
        Labels, an indicator matrix of several labels per sample, or bin sums, which
        replace `y_true`, `y_proba`, `binning` and all other per-sample arguments.
    y_proba : array-like of shape (n,), (n, 2), (n, K) or (n, L)
        Probabilities in [0, 1]: of the positive class, or of each class in the sorted
        order of the labels.
    norm : float or {"l1", "l2", "max"}, default=2
        The norm p >= 1, or ``np.inf`` for the largest bin (`method` "auto" or
        "plugin"). "l1", "l2" and "max" mean 1, 2 and ``np.inf``. An unbiased estimate
        exists for norm 2, the default.
    binning : BaseBinning, int or None, default=None
        Binning strategy; an int is the number of equal-mass bins, and None means
        ``EqualMass(15)``.
    method : {"auto", "plugin", "debiased", "unbiased", "label_binned"}, default="auto"
        "auto" is "unbiased" for norm 2, "plugin" for the largest bin and "debiased" for
        other norms. "plugin" uses the observed frequencies without correction and is
        biased upwards with few samples. "debiased" subtracts the bias due to label
        noise. Norm 2 follows Definition 5.2 of [1]_, which divides by n_b - 1. Other
        norms follow Definition G.3, which divides by n_b, with the expectation in
        closed form. "unbiased" (norm 2) subtracts the sample variance of the residuals
        instead. It is unbiased for the squared binned error even if scores vary within
        a bin, in which case labels vary less than "debiased" assumes. "label_binned"
        averages ``|s_i - y_b|^p`` over samples [2]_ and is never below "plugin".
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        "auto" evaluates the positive class for one or two columns; for more, it means
        "top_label". "top_label" measures whether the predicted class is correct as
        often as its score predicts. "marginal" considers each class against the rest.
        "pooled" treats all n K pairs of a sample and a class as one problem ([1]_,
        Section 2.2); see Notes.
    class_weight : array-like of shape (K,) or dict, default=None
        Weights w_k of the classes in the marginal error, used without normalisation;
        None means 1 / K for each class.
    squared : bool, default=False
        Whether to return the signed square, which may be negative (norm 2 only). Use it
        to average over folds.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: a sample with weight 2 counts twice, including in the
        debiasing.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns, required if not all of them occur in `y_true`,
        or the names of several labels per sample.

    Returns
    -------
    error : float
        Error in [0, 1] or, with `squared`, the signed square.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero. Also raised,
        for a debiased or unbiased error, if more than 5% of the weight lies in bins
        with fewer than two samples.

    See Also
    --------
    skcalib.metrics.calibration_error_interval : An error with its confidence interval.
    skcalib.metrics.calibration_test : Tests whether the error is larger than expected
        by chance.
    skcalib.metrics.expected_calibration_error : The usual ECE.

    Notes
    -----
    A marginal error is ``(sum_k w_k E_k^p)^(1/p)``. Signed powers are summed over the
    classes, and the sum is clipped at zero before the root is taken. For
    ``norm=np.inf``, the marginal error is the largest error of any class with a
    positive weight.

    For several labels per sample (multilabel data), `y_true` is an indicator matrix of
    shape (n, L), and `y_proba` has shape (n, L) or is the list of L arrays (n, 2) that
    scikit-learn's `MultiOutputClassifier` returns. The error is the marginal error over
    the labels. `labels`, or the columns of a DataFrame, give their names in the order
    of the columns. Labels drawn for intervals and tests have the same dependence as the
    observed labels of a sample. Rows with exactly one 1 whose probabilities sum to 1
    may also be one-hot encoded classes: they are rejected unless
    ``multiclass="marginal"`` declares them as labels.

    For a pooled error, each sample contributes K pairs, exactly one of which is an
    event. The "unbiased" method, intervals and tests take this into account: one label
    is drawn per sample. If the columns do not sum to 1, they are drawn independently.

    References
    ----------
    .. [1] Kumar, Liang and Ma (2019), Verified uncertainty calibration.
    .. [2] Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error
        estimation.

    Examples
    --------
    Naive Bayes is overconfident: it assigns extreme probabilities to samples that it
    misclassifies. The error on 285 held-out samples, as a root mean square and as a
    mean, is:

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcalib.metrics import calibration_error
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(
    ...     X, y, test_size=0.5, random_state=0
    ... )
    >>> y_proba = GaussianNB().fit(X_train, y_train).predict_proba(X_test)
    >>> (
    ...     round(calibration_error(y_test, y_proba), 3),
    ...     round(calibration_error(y_test, y_proba, norm=1), 3),
    ... )
    (0.059, 0.036)

    In two bins of four samples each, the mean scores are off by .1, so the plugin error
    is .1. Label noise alone explains more than that, so the signed square is negative
    and the default error is 0.

    >>> y_true = [0, 0, 0, 1, 0, 1, 1, 1]
    >>> y_proba = [0.15, 0.15, 0.15, 0.15, 0.65, 0.65, 0.65, 0.65]
    >>> round(calibration_error(y_true, y_proba, binning=2, method="plugin"), 6)
    0.1
    >>> calibration_error(y_true, y_proba, binning=2)
    0.0
    >>> round(calibration_error(y_true, y_proba, binning=2, squared=True), 6)
    -0.0525
    """
    error = BinnedError(
        norm=norm,
        binning=binning,
        method=method,
        squared=squared,
        multiclass=multiclass,
        class_weight=class_weight,
    )
    return error.value(
        y_true,
        y_proba,
        binning=binning,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


@hint_at_keywords
def expected_calibration_error(
    y_true: ArrayLike | BinStatistics,
    y_proba: ArrayLike | None = None,
    *,
    norm: float | Literal["l1", "l2", "max"] = 1,
    binning: BaseBinning | int | None = None,
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    class_weight: ArrayLike | dict | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Expected calibration error (ECE): the plugin error with 15 equal-width bins.

    The ECE is widely used, but biased upwards with few samples. Prefer
    `calibration_error`, which has the same parameters.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, L), or BinStatistics
        Labels, an indicator matrix of several labels per sample, or bin sums, which
        replace `y_true`, `y_proba`, `binning` and all other per-sample arguments.
    y_proba : array-like of shape (n,), (n, 2), (n, K) or (n, L)
        Probabilities in [0, 1].
    norm : float or {"l1", "l2", "max"}, default=1
        The norm p >= 1, or ``np.inf``.
    binning : BaseBinning, int or None, default=None
        Binning strategy; an int is the number of equal-width bins, and None means
        ``EqualWidth(15)``.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`.
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
    error : float
        Error in [0, 1].

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero.

    See Also
    --------
    skcalib.metrics.calibration_error : The debiased binned error.
    skcalib.metrics.sweep_calibration_error : The error with the largest number of bins
        whose event frequencies are still increasing.
    skcalib.metrics.maximum_calibration_error : The largest gap in any bin.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks.

    Examples
    --------
    Overconfident forecasts: the log-odds are twice what they should be.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import expected_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> round(expected_calibration_error(y_true, y_proba), 3)
    0.098

    Bins are closed on the right: both scores of .5 are in the lower of two bins, which
    has a gap of .5 and contains two thirds of the samples.

    >>> from skcalib.binning import EqualWidth
    >>> from skcalib.metrics import expected_calibration_error
    >>> round(
    ...     expected_calibration_error(
    ...         [1, 1, 0], [0.5, 0.5, 0.9], binning=EqualWidth(2)
    ...     ),
    ...     6,
    ... )
    0.633333
    """
    error = expected_error(
        norm=norm, binning=binning, multiclass=multiclass, class_weight=class_weight
    )
    return error.value(
        y_true,
        y_proba,
        binning=binning,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


@hint_at_keywords
def maximum_calibration_error(
    y_true: ArrayLike | BinStatistics,
    y_proba: ArrayLike | None = None,
    *,
    binning: BaseBinning | int | None = None,
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    class_weight: ArrayLike | dict | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Maximum calibration error (MCE): the largest gap in any bin.

    By default, there are 15 equal-width bins. The bins with the fewest samples dominate
    the error, so with few samples it is mostly noise.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, L), or BinStatistics
        Labels, an indicator matrix of several labels per sample, or bin sums, which
        replace `y_true`, `y_proba`, `binning` and all other per-sample arguments.
    y_proba : array-like of shape (n,), (n, 2), (n, K) or (n, L)
        Probabilities in [0, 1].
    binning : BaseBinning, int or None, default=None
        Binning strategy; an int is the number of equal-width bins, and None means
        ``EqualWidth(15)``.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`.
    class_weight : array-like of shape (K,) or dict, default=None
        Classes with weight zero are excluded from the marginal error.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: a sample with weight 2 counts twice.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    error : float
        Error in [0, 1].

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero.

    See Also
    --------
    skcalib.metrics.calibration_error : The debiased binned error.
    skcalib.binning.MinimumMass : Merges bins until each contains enough samples.

    References
    ----------
    Naeini, Cooper and Hauskrecht (2015), Obtaining well calibrated probabilities using
    Bayesian binning.

    Examples
    --------
    Overconfident forecasts: the log-odds are twice what they should be.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import maximum_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> round(maximum_calibration_error(y_true, y_proba), 3)
    0.195

    >>> from skcalib.binning import EqualWidth
    >>> from skcalib.metrics import maximum_calibration_error
    >>> round(
    ...     maximum_calibration_error(
    ...         [1, 1, 0], [0.5, 0.5, 0.9], binning=EqualWidth(2)
    ...     ),
    ...     6,
    ... )
    0.9
    """
    error = maximum_error(
        binning=binning, multiclass=multiclass, class_weight=class_weight
    )
    return error.value(
        y_true,
        y_proba,
        binning=binning,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


def sweep_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike | None = None,
    *,
    norm: float | Literal["l1", "l2", "max"] = 1,
    binning: EqualMass | EqualWidth | None = None,
    base: EqualMass | EqualWidth | None = None,
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    class_weight: ArrayLike | dict | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Plugin calibration error with the largest number of monotonic bins (ECE_SWEEP).

    The number of bins is chosen from the data: bins are added as long as the event
    frequency increases from bin to bin. Among the plugin errors, this error has the
    smallest bias with few samples.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, L)
        Labels, or an indicator matrix of several labels per sample.
    y_proba : array-like of shape (n,), (n, 2), (n, K) or (n, L)
        Probabilities in [0, 1].
    norm : float or {"l1", "l2", "max"}, default=1
        The norm p >= 1, or ``np.inf``.
    binning : EqualMass or EqualWidth, default=None
        Strategy that forms the bins; None means ``EqualMass()``, which is recommended.
        The `n_bins` of the strategy is not used.
    base : EqualMass or EqualWidth, default=None
        The former name of `binning`. Give only one of the two.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`.
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
    error : float
        Error in [0, 1].

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero. Also raised
        if both `binning` and `base` are given.
    TypeError
        If `binning` is any other strategy.

    See Also
    --------
    skcalib.binning.MonotonicSweep : The largest number of bins whose event frequencies
        increase.
    skcalib.metrics.calibration_error : The debiased binned error.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error
    estimation.

    Examples
    --------
    Overconfident forecasts: the log-odds are twice what they should be.

    >>> import numpy as np
    >>> from scipy.special import expit
    >>> from skcalib.metrics import sweep_calibration_error
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=2000)
    >>> y_true, y_proba = rng.random(2000) < expit(log_odds), expit(2 * log_odds)
    >>> round(sweep_calibration_error(y_true, y_proba), 3)
    0.094

    The event frequencies of two bins, 0 and 1/3, increase; those of three bins (0, 1/2,
    0) do not. The error is therefore ``|.2 - 0| / 2 + |.7 - 1/3| / 2``.

    >>> from skcalib.metrics import sweep_calibration_error
    >>> round(
    ...     sweep_calibration_error([0, 0, 0, 1, 0, 0], [0.1, 0.2, 0.3, 0.6, 0.7, 0.8]),
    ...     6,
    ... )
    0.283333
    """
    error = sweep_error(
        norm=norm,
        binning=binning,
        base=base,
        multiclass=multiclass,
        class_weight=class_weight,
    )
    return error.value(
        y_true,
        y_proba,
        binning=error.binning,  # needs rows: no BinStatistics can stand for them
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )


def expected_error(*, norm=1, binning=None, multiclass="auto", class_weight=None):
    """Return the `BinnedError` whose value is `expected_calibration_error`."""
    return BinnedError(
        norm=norm,
        binning=check_binning(binning, EqualWidth(15)),
        method="plugin",
        multiclass=multiclass,
        class_weight=class_weight,
    )


def maximum_error(*, binning=None, multiclass="auto", class_weight=None):
    """Return the `BinnedError` whose value is `maximum_calibration_error`."""
    return expected_error(
        norm=np.inf, binning=binning, multiclass=multiclass, class_weight=class_weight
    )


def sweep_error(
    *, norm=1, binning=None, base=None, multiclass="auto", class_weight=None
):
    """Return the `BinnedError` whose value is `sweep_calibration_error`."""
    if binning is not None and base is not None:
        raise ValueError("base is the former name of binning: pass only binning.")
    return BinnedError(
        norm=norm,
        binning=MonotonicSweep(base if binning is None else binning),
        method="plugin",
        multiclass=multiclass,
        class_weight=class_weight,
    )
