"""Calibration error by group: what a pooled number hides."""

import numpy as np

from skcalib._cells.reductions import (
    group_codes,
    reduced,
    resolve_multiclass,
    split_by_group,
)
from skcalib._errors.binned import BinnedPower
from skcalib._input.scalars import check_option, hint_at_keywords
from skcalib._input.scored_labels import check_scored_labels
from skcalib.binning import EqualWidth
from skcalib.metrics._errors import error_of


@hint_at_keywords
def groupwise_calibration_error(
    y_true,
    y_proba=None,
    *,
    groups="predicted_class",
    reduce="max",
    norm=1,
    binning=None,
    method="plugin",
    multiclass="auto",
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Binned calibration error within each group: the largest, the mean, or all of them.

    Errors of opposite sign cancel in a pooled error, and a large group hides the error of a small one.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1].
    groups : "predicted_class" or array-like of shape (n,), default="predicted_class"
        The group of each row: subject, site, month, or the class that is predicted for it.
    reduce : {"max", "mean", "weighted", None}, default="max"
        "max" is Max-ECE, "mean" Avg-ECE (each group counts alike), "weighted" weighs groups by their rows, None
        returns the error of each group. Groups without a row are left out.
    norm : float or {"l1", "l2", "max"}, default=1
        p >= 1 or ``np.inf``.
    binning : BaseBinning, int or None, default=None
        Strategy, applied to each group separately; an int is a number of equal-width bins, None ``EqualWidth(15)``.
    method : {"plugin", "auto", "debiased", "unbiased", "label_binned"}, default="plugin"
        See `calibration_error`. The plugin error of a small group is mostly noise: compare groups of unequal size by
        "auto" with few bins.
    multiclass : {"auto", "top_label", "marginal", "pooled"}, default="auto"
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Weights, which count as repeated rows.
    pos_label : int, float, bool or str, default=None
        The event; None is the greater of two labels, the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    error : float or dict
        In [0, 1]; with ``reduce=None`` a dict from group to its error, in sorted order.

    Raises
    ------
    ValueError
        If labels and scores differ in length or are empty, a label is unknown, a score is missing or outside [0, 1], or
        weights are negative or all zero. If the error of one group cannot be computed, the message names the
        group.

    See Also
    --------
    skcalib.metrics.calibration_by_group : Each group with bias, error and intervals.
    skcalib.GroupwiseRecalibrator : One map per group.

    References
    ----------
    Zhao, Chen and Oymak (2020), On the role of dataset quality and heterogeneity in model confidence.

    Examples
    --------
    One model for two hospitals: its risks are .1 too high in Lyon and .1 too low in Turin, which cancels in the pooled
    error.

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
    """
    check_option(reduce, "reduce", ("max", "mean", "weighted", None))
    params = {
        "norm": norm,
        "method": method,
        "binning": binning,
        "multiclass": multiclass,
    }
    one_group = error_of(BinnedPower, params, {"binning": EqualWidth(15)})
    rows = {"sample_weight": sample_weight, "pos_label": pos_label, "labels": labels}
    data = check_scored_labels(
        y_true, y_proba, multiclass=multiclass, drop=False, **rows
    )
    resolve_multiclass(multiclass, data, pooled=True)
    names, codes = group_codes(groups, data)
    errors, weights = {}, []
    for code, rows in split_by_group(data, codes):
        name, part = names[code : code + 1].tolist()[0], data.at(rows)
        try:
            errors[name] = one_group.value(one_group.observed(part))
        except ValueError as error:
            raise ValueError(
                f"groups: the error of group {name!r} cannot be computed. {error}"
            ) from error
        weights.append(
            len(part.scores) if part.sample_weight is None else part.sample_weight.sum()
        )
    return (
        errors
        if reduce is None
        else float(reduced(np.array(list(errors.values())), weights, reduce))
    )
