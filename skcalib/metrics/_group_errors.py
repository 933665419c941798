"""Calibration error by group: what a pooled number hides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike

from skcalib._errors.binned import GroupwiseError
from skcalib._inference.results import html_table
from skcalib._input.scalars import hint_at_keywords
from skcalib._verdicts import rounded, sentences_html
from skcalib.binning import BaseBinning

if TYPE_CHECKING:
    from pandas import DataFrame


class GroupErrors(dict):
    """Dict that maps groups to errors and can be converted to a table."""

    def to_frame(self) -> DataFrame:
        """Return the errors as a pandas DataFrame.

        Returns
        -------
        frame : pandas.DataFrame
            The columns `group` and `error`.
        """
        import pandas as pd

        return pd.DataFrame(self._columns())

    def _columns(self):
        return {"group": list(self), "error": list(self.values())}

    def __str__(self):
        """Name the group with the largest error."""
        if not self:
            return "No group has samples."
        worst = max(self, key=self.get)
        return (
            f"Largest calibration error among {len(self)} groups:"
            f" {rounded(self[worst])}, in {worst}."
        )

    def __repr__(self):
        return str(self)

    def _repr_html_(self):
        return sentences_html(str(self)) + html_table(self._columns())


@hint_at_keywords
def groupwise_calibration_error(
    y_true: ArrayLike,
    y_proba: ArrayLike | None = None,
    *,
    groups: ArrayLike | Literal["predicted_class"] = "predicted_class",
    reduce: Literal["max", "mean", "weighted"] | None = "max",
    norm: float | Literal["l1", "l2", "max"] = 1,
    binning: BaseBinning | int | None = None,
    method: Literal[
        "auto", "plugin", "debiased", "unbiased", "label_binned"
    ] = "plugin",
    multiclass: Literal["auto", "top_label", "marginal", "pooled"] = "auto",
    sample_weight: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
) -> Any:
    """Binned calibration error by group: the largest, the mean, or all errors.

    In the error of all samples, group errors of opposite sign cancel, and a large group
    hides the error of a small one.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, L)
        Labels, or an indicator matrix of several labels per sample.
    y_proba : array-like of shape (n,), (n, 2), (n, K) or (n, L)
        Probabilities in [0, 1].
    groups : "predicted_class" or array-like of shape (n,), default="predicted_class"
        The group of each sample: subject, site, month, or its predicted class. Missing
        values form the group "missing". Floats with more than 30 distinct values are
        treated as measurements and rejected.
    reduce : {"max", "mean", "weighted", None}, default="max"
        "max" gives Max-ECE, "mean" gives Avg-ECE (all groups have equal weight),
        "weighted" weights groups by their number of samples, and None returns the error
        of each group. Groups without samples are ignored.
    norm : float or {"l1", "l2", "max"}, default=1
        The norm p >= 1, or ``np.inf``.
    binning : BaseBinning, int or None, default=None
        Binning strategy, applied to each group separately; an int is the number of
        equal-width bins, and None means ``EqualWidth(15)``.
    method : {"plugin", "auto", "debiased", "unbiased", "label_binned"}, default="plugin"
        See `calibration_error`; "plugin" is the published definition of Max-ECE. The
        plugin error of a small group is mostly noise: to compare groups of unequal
        size, use "auto" with few bins.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
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
    error : float or GroupErrors
        Error in [0, 1]; with ``reduce=None``, a dict that maps groups to errors, in
        sorted order, with a `to_frame` method.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score
        is missing or outside [0, 1], or weights are negative or all zero. If the error
        of one group cannot be computed, the message names the group.

    See Also
    --------
    skcalib.metrics.calibration_by_group : Bias, error and intervals for each group.
    skcalib.GroupwiseRecalibrator : One map per group.

    References
    ----------
    Zhao, Chen and Oymak (2020), On the role of dataset quality and heterogeneity in
    model confidence.

    Examples
    --------
    One model is used in two hospitals. Its risks are .1 too high in Lyon and .1 too low
    in Turin, and these errors cancel in the error of all samples.

    >>> import numpy as np
    >>> from skcalib.metrics import (
    ...     expected_calibration_error,
    ...     groupwise_calibration_error,
    ... )
    >>> rng = np.random.default_rng(0)
    >>> hospital, risk = (
    ...     np.repeat(["Lyon", "Turin"], 20_000),
    ...     rng.uniform(0.2, 0.8, 40_000),
    ... )
    >>> ill = rng.random(40_000) < risk + np.where(hospital == "Turin", 0.1, -0.1)
    >>> round(expected_calibration_error(ill, risk), 2)
    0.0
    >>> errors = groupwise_calibration_error(ill, risk, groups=hospital, reduce=None)
    >>> {name: round(error, 2) for name, error in errors.items()}
    {'Lyon': 0.1, 'Turin': 0.1}
    """  # noqa: E501
    error = GroupwiseError(
        groups=groups,
        reduce=reduce,
        norm=norm,
        binning=binning,
        method=method,
        multiclass=multiclass,
    )
    value = error.value(
        y_true,
        y_proba,
        sample_weight=sample_weight,
        pos_label=pos_label,
        labels=labels,
    )
    if reduce is None:
        return GroupErrors(value)
    return value
