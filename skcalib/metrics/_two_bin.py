"""The averaged two-bin error, which does not reward a lie."""

from __future__ import annotations

from typing import Literal

from numpy.typing import ArrayLike

from skcalib._cells.statistics import BinStatistics
from skcalib._errors.two_bin import TwoBinError
from skcalib._input.scalars import hint_at_keywords


@hint_at_keywords
def two_bin_calibration_error(
    y_true: ArrayLike | BinStatistics,
    y_proba: ArrayLike | None = None,
    *,
    multiclass: Literal["auto", "marginal"] = "auto",
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Averaged two-bin calibration error, a truthful calibration measure.

    A threshold q splits the samples into those with scores below q and the rest. The
    error is the mean, over all q in [0, 1], of the squared sums of ``s - y`` on both
    sides, divided by n^2. No forecaster can reduce the expected error by reporting
    probabilities other than their true beliefs. In contrast, binned and smooth errors
    decrease in small samples if the base rate is reported instead of the true
    probabilities.

    Parameters
    ----------
    y_true : array-like of shape (n,) or BinStatistics
        Labels, or bin sums with one distinct score per bin, which replace `y_true`,
        `y_proba` and all other per-sample arguments.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    multiclass : {"auto", "marginal"}, default="auto"
        "auto" evaluates the positive class for one or two columns. For more columns,
        and for "marginal", the errors of each class against the rest are summed. A
        top-label form does not exist, because the label to be assessed would depend on
        the reported probabilities.
    sample_weight : array-like of shape (n,), default=None
        Weights w of the residuals; a common factor has no effect.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    error : float
        Error, in [0, 1] for one event, and at most 2 for a sum over classes. It is on
        the scale of a squared probability; no root is taken.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero. Also raised
        if `multiclass` has any other value.

    See Also
    --------
    skcalib.metrics.calibration_error : The debiased binned error, which is signed and
        unbiased with ``squared=True``.
    skcalib.evaluation.refinement_loss : The loss that recalibration cannot remove.

    Notes
    -----
    This is a plugin error. For independent samples, its expectation is
    ``(1 - 1 / n) ATB + Brier / n``, where ATB is the error for infinitely many samples
    and Brier the expected Brier score. The expectation is therefore above 0 even for
    calibrated scores, and values for different n cannot be compared. With many samples,
    this error ranks models by calibration alone, so select models by a proper score
    instead. Its interval is for ATB.

    References
    ----------
    Hartline, Hu and Wu (2025), A perfectly truthful calibration measure.

    Examples
    --------
    Labels are drawn from probabilities with mean .2. Reporting .2 for every sample has
    the smaller expected calibration error, but the larger two-bin error:

    >>> import numpy as np
    >>> from skcalib.metrics import (
    ...     expected_calibration_error,
    ...     two_bin_calibration_error,
    ... )
    >>> rng = np.random.default_rng(0)
    >>> ece, two_bin = [], []
    >>> for _ in range(500):
    ...     truth = rng.beta(1, 4, size=200)
    ...     y_true = rng.random(200) < truth
    ...     for y_proba in (truth, np.full(200, 0.2)):
    ...         ece.append(expected_calibration_error(y_true, y_proba))
    ...         two_bin.append(1e4 * two_bin_calibration_error(y_true, y_proba))
    >>> np.reshape(ece, (500, 2)).mean(axis=0).round(3).tolist()
    [0.065, 0.023]
    >>> np.reshape(two_bin, (500, 2)).mean(axis=0).round(1).tolist()
    [6.6, 8.0]

    Computed by hand for thresholds up to .2, .6, .9 and 1, from the sums of s - y below
    the threshold and at or above it: ``.2 * .3^2 + .4 * (.2^2 + .5^2) + .3 * (.2^2 +
    .1^2) + .1 * .3^2``, divided by 3^2.

    >>> round(two_bin_calibration_error([0, 1, 1], [0.2, 0.6, 0.9]), 7)
    0.0175556
    """
    error = TwoBinError(multiclass=multiclass)
    return error.value(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )
