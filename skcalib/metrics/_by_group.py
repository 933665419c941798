"""Calibration by group: one table with the bias and the error of each group, and which
of them are more than noise.
"""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, ndtr, ndtri
from sklearn.utils import check_random_state

from skcalib._cells.binned import BinnedTask, counted_rows, refuse_beside_bins
from skcalib._cells.columns import resolve_multiclass
from skcalib._cells.groups import group_codes, is_predicted_class, split_by_group
from skcalib._cells.reductions import one_task
from skcalib._cells.statistics import BinStatistics, unchecked_statistics
from skcalib._errors.binned import (
    check_norm,
    has_thin_bins,
    resolved_method,
)
from skcalib._inference.adjustment import adjusted_pvalues, holm, pvalue_distribution
from skcalib._inference.cluster_draws import FEW_EVENTS
from skcalib._inference.hypotheses import Resampling
from skcalib._inference.inversion import limits_of_each
from skcalib._inference.results import ResultTable
from skcalib._input.groups import with_small_groups_pooled
from skcalib._input.label_weights import is_importance
from skcalib._input.labels import check_groups
from skcalib._input.scalars import (
    check_confidence_level,
    check_int,
    check_option,
    hint_at_keywords,
)
from skcalib._input.scored_labels import check_scored_labels
from skcalib._input.warn import warn
from skcalib._progress import Progress
from skcalib._rows.blocks import taken
from skcalib._verdicts import (
    Verdict,
    interval_words,
    level_words,
    pvalue_words,
    rounded,
    rounded_outwards,
    simultaneous_level,
)
from skcalib.binning import BaseBinning, EqualMass, check_binning
from skcalib.metrics._group_sample import Sample, bias_tests_of, pvalue_of_sides

if TYPE_CHECKING:
    from pandas import DataFrame

_ORDERS = ("sorted", "given", "error")
_ALTERNATIVES = ("two-sided", "greater", "less")
_LEVEL = 0.05  # below which the sentence on pairs says that two groups differ


@dataclass(frozen=True, eq=False, repr=False)
class GroupCalibration(ResultTable):
    """Table of `calibration_by_group`: arrays with one entry per group.

    Parameters
    ----------
    group : ndarray
        The groups.
    n : ndarray
        Number of samples; with frequency weights, the sum of the weights, and with
        importance weights, the effective sample size.
    mean_score, event_frequency : ndarray of float
        Means of the scores and of the labels.
    bias, bias_low, bias_high : ndarray of float
        Mean score minus event frequency, and its confidence interval; positive if the
        scores are too high.
    error, error_low, error_high : ndarray of float
        Calibration error and its confidence interval; NaN if a group is too small for a
        debiased error.
    pvalue, adjusted_pvalue : ndarray of float
        P-value of the hypothesis that the group is calibrated, computed from its number
        of events, without and with adjustment for the number of groups.
    bias_pvalue, adjusted_bias_pvalue : ndarray of float
        P-value of the hypothesis that the bias of the group is 0, regardless of its
        slope, without and with adjustment (Holm's method).
    binomial_pvalue, jeffreys_pvalue : ndarray of float
        P-values for k events among n independent rows that all have the mean score, as
        reported in validations of rating grades: ``P(X >= k)`` of the binomial
        distribution and ``P(Beta(k + 1/2, n - k + 1/2) <= score)`` for
        ``alternative="greater"``.
    reason : ndarray of str
        The reason why the bias of the group has no limits; an empty string if it has
        limits.
    """

    group: np.ndarray
    n: np.ndarray
    mean_score: np.ndarray
    event_frequency: np.ndarray
    bias: np.ndarray
    bias_low: np.ndarray
    bias_high: np.ndarray
    error: np.ndarray
    error_low: np.ndarray
    error_high: np.ndarray
    pvalue: np.ndarray
    adjusted_pvalue: np.ndarray
    bias_pvalue: np.ndarray
    adjusted_bias_pvalue: np.ndarray
    binomial_pvalue: np.ndarray
    jeffreys_pvalue: np.ndarray
    reason: np.ndarray
    alternative: str = "two-sided"
    confidence_level: float = 0.9
    # limits (2, n_groups) of the biases that hold for all groups together
    _limits_of_all: np.ndarray | None = None

    def _printed_columns(self):
        columns = self.columns()
        for name in ("pvalue", "bias_pvalue", "binomial_pvalue", "jeffreys_pvalue"):
            del columns[name]
        if not any(self.reason):
            del columns["reason"]
        return columns

    def _sentences(self):
        """Say how many groups are off, and which one is worst."""
        n = len(self)
        off = np.flatnonzero(self.adjusted_pvalue < 1 - self.confidence_level)
        n_unknown = np.count_nonzero(np.isnan(self.adjusted_pvalue))
        unknown = ""
        if n_unknown:
            unknown = f" {n_unknown} cannot be judged."
        if len(off) == 0:
            return f"{self._none_off()}{unknown}"
        verb = "is" if len(off) == 1 else "are"
        lead = f"{len(off)} of {n} groups {verb} off"
        low, high = self._limits_of_all[:, off]
        # Each bias is at least so large; 0 where the limits contain 0.
        least = np.maximum(low, -high)
        if np.nanmax(least, initial=0) > 0:
            worst = off[np.nanargmax(least)]
            return f"{lead}; worst: {self._bias_words(worst)}.{unknown}"
        clearest = off[np.argmin(self.adjusted_pvalue[off])]
        shown = pvalue_words(self.adjusted_pvalue[clearest])
        return (
            f"{lead}; clearest: {self.group[clearest]} (adjusted {shown}), whose mean"
            f" bias is not.{unknown}"
        )

    def _level_words(self):
        """Return what names the limits that hold for all groups together."""
        level = level_words(self.confidence_level)
        return level if len(self) == 1 else f"adjusted {level}"

    def _bias_words(self, k):
        """Return the bias of group k with the limits that hold for all groups."""
        low, high = self._limits_of_all[:, k]
        level = self._level_words()
        if self.alternative == "two-sided":
            off = Verdict("off", self.bias[k], low, high, self.n[k], tolerance=0.0)
            size = off.words(scale=100, unit="points", level=level)
        else:  # one of the limits only bounds a probability
            side = "high" if low > 0 else "low"
            least = 100 * max(low, -high)
            size = (
                f"{rounded(100 * abs(self.bias[k]))} points too {side} ({level}: at"
                f" least {rounded(least)})"
            )
        return f"{self.group[k]}, {size}"

    def _none_off(self):
        """Return the sentence on groups of which none is off."""
        n = len(self)
        lead = f"None of {n} groups is detectably off on average"
        if n == 1:
            lead = f"The group {self.group[0]} is not detectably off on average"
        limits = np.abs(self._limits_of_all)
        if self.alternative != "two-sided" or np.all(np.isnan(limits)):
            return f"{lead}."
        most = rounded_outwards(100 * np.nanmax(limits))
        return f"{lead}: no bias is larger than {most} points ({self._level_words()})."

    def differences(self) -> GroupDifferences:
        """Compare the bias of each pair of groups.

        Returns
        -------
        table : GroupDifferences
            One row for each pair: `group, other, difference, low, high, pvalue,
            adjusted_pvalue`. The difference is the bias of the first group minus that
            of the second.

        Raises
        ------
        ValueError
            If the `alternative` of the table is not "two-sided", because the limits are
            then one-sided.

        Notes
        -----
        The limits of both biases are combined by MOVER [1]_: the distance from the
        difference to each of its limits is the square root of the sum of the two
        squared distances from which it is formed. The interval excludes 0 exactly when
        ``pvalue < 1 - confidence_level``. The p-values are adjusted over all pairs by
        Holm's method. Groups are assumed to be independent, which does not hold if a
        cluster has rows in several groups.

        References
        ----------
        .. [1] Zou and Donner (2008), Construction of confidence limits about effect
           measures: a general approach.
        """
        if self.alternative != "two-sided":
            raise ValueError(
                f"This table has alternative={self.alternative!r}, and limits of one"
                ' side. Make it with "two-sided" to compare groups.'
            )
        # The positions of both groups of each pair.
        first, second = np.triu_indices(len(self), 1)
        difference = self.bias[first] - self.bias[second]
        # Distances from each bias to its limits, and from each difference to its own:
        # the difference is lowest if the first bias is low and the second one high.
        below = self.bias - self.bias_low
        above = self.bias_high - self.bias
        lower = np.hypot(below[first], above[second])
        upper = np.hypot(above[first], below[second])
        # The p-value is that of a normal estimate whose interval reaches as far
        # towards 0.
        z = ndtri((1 + self.confidence_level) / 2)
        toward_zero = np.where(difference > 0, lower, upper)
        with np.errstate(divide="ignore", invalid="ignore"):
            pvalue = 2 * ndtr(-z * np.abs(difference) / toward_zero)
        # Two groups without any spread differ for certain (p = 0), or not at all.
        is_certain = toward_zero == 0
        pvalue[is_certain] = difference[is_certain] == 0
        adjusted = np.full(len(pvalue), np.nan)
        is_known = ~np.isnan(pvalue)
        adjusted[is_known] = holm(pvalue[is_known])
        return GroupDifferences(
            group=self.group[first],
            other=self.group[second],
            difference=difference,
            low=difference - lower,
            high=difference + upper,
            pvalue=pvalue,
            adjusted_pvalue=adjusted,
            confidence_level=self.confidence_level,
        )


@dataclass(frozen=True, eq=False, repr=False)
class GroupDifferences(ResultTable):
    """Table of ``GroupCalibration.differences``: arrays with one entry per pair.

    Parameters
    ----------
    group, other : ndarray
        The two groups.
    difference, low, high : ndarray of float
        Bias of `group` minus that of `other`, and its confidence interval.
    pvalue, adjusted_pvalue : ndarray of float
        P-value of the hypothesis that both groups have the same bias, without and with
        adjustment for the number of pairs by Holm's method. NaN where a bias has no
        limits.
    """

    group: np.ndarray
    other: np.ndarray
    difference: np.ndarray
    low: np.ndarray
    high: np.ndarray
    pvalue: np.ndarray
    adjusted_pvalue: np.ndarray
    confidence_level: float = 0.9

    def _sentences(self):
        """Say which pair differs most clearly."""
        n = len(self)
        if n == 0:
            return "There is one group, and nothing to compare."
        known = np.flatnonzero(~np.isnan(self.adjusted_pvalue))
        if len(known) == 0:
            return f"None of {n} pairs of groups can be compared."
        k = known[np.argmin(self.pvalue[known])]
        shown = pvalue_words(self.adjusted_pvalue[k])
        pair = f"{self.group[k]} and {self.other[k]}"
        size = interval_words(
            self.difference[k],
            self.low[k],
            self.high[k],
            scale=100,
            unit="points",
            level=level_words(self.confidence_level),
        )
        if self.adjusted_pvalue[k] < _LEVEL:
            return (
                f"The biases of {pair} differ by {size}, the clearest of {n} pairs"
                f" (adjusted {shown})."
            )
        return (
            f"No difference between groups is detectable; clearest of {n} pairs:"
            f" {pair}, {size} (adjusted {shown})."
        )


class GroupCalibrationByModel(dict):
    """Dict that maps model names to tables and can be converted to a single table."""

    def __str__(self):
        """Return what the table of each model says."""
        return "\n".join(
            f"{name}: {table._sentences()}" for name, table in self.items()
        )

    def __repr__(self):
        return str(self)

    def to_frame(self) -> DataFrame:
        """Return the tables, concatenated by row.

        Returns
        -------
        frame : pandas.DataFrame
            The column `model` and the columns of `GroupCalibration`.
        """
        import pandas as pd

        frames = []
        for name, table in self.items():
            frame = table.to_frame()
            frame.insert(0, "model", name)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True)

    def _repr_html_(self):
        """Return the tables as HTML for a notebook, each below its model's name."""
        html = ""
        for name, table in self.items():
            html += f"<p>{escape(str(name))}</p>{table._repr_html_()}"
        return html


@hint_at_keywords
def calibration_by_group(
    y_true: ArrayLike | BinStatistics | Mapping[Any, BinStatistics],
    y_proba: ArrayLike | Mapping[str, ArrayLike] | None = None,
    groups: ArrayLike | Literal["predicted_class"] = "predicted_class",
    *,
    norm: float | Literal["l1", "l2", "max"] = 2,
    binning: BaseBinning | int | None = None,
    method: Literal["auto", "plugin", "debiased", "unbiased", "label_binned"] = "auto",
    order: Literal["sorted", "given", "error"] = "sorted",
    max_bins: int | None = None,
    min_group_size: int | None = None,
    alternative: Literal["two-sided", "greater", "less"] = "two-sided",
    adjustment: Literal["holm", "exact"] = "holm",
    confidence_level: float = 0.9,
    n_resamples: int = 199,
    multiclass: Literal["auto", "top_label"] = "auto",
    sample_weight: ArrayLike | None = None,
    weight_type: Literal["frequency", "importance"] | dict = "frequency",
    clusters: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    verbose: bool = False,
) -> Any:
    """Bias, calibration error, intervals and p-values for each group.

    The bias (mean score minus event frequency) of each group has an interval and a
    p-value that are valid even for small samples and rare events; the p-values are
    adjusted for the number of groups. The calibration error also captures deviations
    that cancel in the bias.

    Parameters
    ----------
    y_true : array-like of shape (n,), BinStatistics or dict
        Labels. `BinStatistics`, such as a table of rating grades, is judged bin by bin,
        with mean scores as group names. A dict that maps groups to `BinStatistics`
        replaces labels, probabilities and groups.
    y_proba : array-like of shape (n,), (n, 2) or (n, K), or dict, default=None
        Probabilities in [0, 1]. A dict that maps model names to probabilities gives one
        table per model.
    groups : array-like of shape (n,) or (n, n_columns), or "predicted_class", \
            default="predicted_class"
        The group of each sample: subject, site, month, or its predicted class. With
        several columns (``frame[["sex", "age_band"]]``), each combination is a group,
        named by a tuple. An ordered Categorical keeps its order. Missing values form
        the group "missing". Floats with more than 30 distinct values are treated as
        measurements, and require `max_bins`.
    norm : float, default=2
        Norm of the error, as in `calibration_error`: p >= 1, or ``np.inf`` (`method`
        "plugin" only).
    binning : BaseBinning, int or None, default=None
        Bins for the error, formed separately for each group. An int is the number of
        equal-mass bins, and None means ``EqualMass("cube_root")``.
    method : {"auto", "plugin", "debiased", "unbiased", "label_binned"}, default="auto"
        See `calibration_error`. The plugin error of a small group is mostly noise.
    order : {"sorted", "given", "error"}, default="sorted"
        Order of the groups in the table: sorted, in order of first appearance, or in
        decreasing order of the error (NaN last).
    max_bins : int, default=None
        Numbers or dates with more distinct values than this are grouped into at most
        `max_bins` quantile bins, named by their edges: "<= 20", "(20, 35.5]", "> 35.5".
    min_group_size : int, default=None
        Groups with fewer samples are merged into one group, "other". None keeps even
        the smallest groups.
    alternative : {"two-sided", "greater", "less"}, default="two-sided"
        Alternative hypothesis for the p-values and for the limits of the bias.
        "greater" means more events than predicted (for example, a default rate above
        the probability assigned to a rating grade), and "less" means fewer. For a
        one-sided alternative, the other limit (`bias_low` or `bias_high`) is the
        smallest or largest possible value of the bias.
    adjustment : {"holm", "exact"}, default="holm"
        Method by which p-values are adjusted for the number of groups. Holm's method is
        valid for any p-values. "exact" uses the independence of the groups and the
        discreteness of their p-values; it has more power if groups have few events.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).
    n_resamples : int, default=199
        Number of draws for each error's interval. The default is small because there
        may be many groups, and no p-value depends on it.
    multiclass : {"auto", "top_label"}, default="auto"
        "auto" evaluates the positive class for one or two columns; for more, it means
        "top_label".
    sample_weight : array-like of shape (n,), default=None
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"} or dict, default="frequency"
        Meaning of the weights. "frequency": a weight of 2 means two identical samples.
        "importance": each sample was observed once and represents more or less than one
        (to correct for the sampling design or for covariate shift); weights w
        correspond to an effective sample size of ``sum(w)**2 / sum(w**2)``, which the
        table reports as `n`. The variance of the number of events is the sum of w^2 s
        (1 - s) over the samples.
        A dict gives the weight that each sample would have with each of two labels,
        a number or an array; see `skcalib.evaluation.describe_weights`.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample: samples in the same cluster (for example, from one
        patient or match) may be dependent.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.
    random_state : int, RandomState instance or None, default=None
        Seed for the random draws.
    verbose : bool, default=False
        Whether to write the number of processed groups to standard error.

    Returns
    -------
    table : GroupCalibration or GroupCalibrationByModel
        Frozen table of arrays (`group, n, mean_score, event_frequency, bias, bias_low,
        bias_high, error, error_low, error_high, pvalue, adjusted_pvalue, bias_pvalue,
        adjusted_bias_pvalue, binomial_pvalue, jeffreys_pvalue, reason`) with ``len``,
        ``to_frame()`` and ``differences()``, which compares groups. For a dict of
        models, the result is a dict of such tables, with ``to_frame()``.

    Raises
    ------
    ValueError
        If labels, probabilities, groups or parameters are inconsistent, if groups are
        measurements and `max_bins` is None, or if `multiclass` is "marginal", which
        consists of several binary problems.
    TypeError
        If a dict contains values other than `BinStatistics`.

    Warns
    -----
    UserWarning
        If weights are not integers and ``weight_type="frequency"``. If `clusters` are
        given and a group has fewer than 40 expected events or non-events.

    See Also
    --------
    groupwise_calibration_error : The largest or mean error of the groups, as a single
        number.
    segment_calibration_test : Searches features for miscalibrated groups.

    Notes
    -----
    `pvalue` tests calibration using the distribution of the number of events given the
    scores. This distribution is computed exactly for fewer than 200 samples, and by a
    saddlepoint approximation otherwise. The interval for the bias is derived from a
    common shift in the log-odds; for equal scores, it is the Clopper-Pearson interval.
    If the residuals y - s vary more than that shift implies, the length of each side is
    multiplied by the ratio of the standard deviations. The interval excludes 0 exactly
    when ``bias_pvalue < 1 - confidence_level``. A group with bias 0 and a slope other
    than 1 may have a small `pvalue`, which is then not evidence of a bias. Each
    interval is valid separately, whereas the adjusted p-values are valid for all groups
    simultaneously. The error and its interval are those of
    `calibration_error_interval`.

    The probability that any calibrated group has an adjusted p-value below .05 is at
    most .05. With Holm's method, this probability is .04 if groups have 200 or more
    samples, but only .01 to .03 for groups with 10 to 70 samples or only a few events,
    because the p-values of such groups are coarse. With ``adjustment="exact"``, it is
    .045 to .05 (for groups of up to 2,000 samples without fractional weights; the
    p-values of larger groups are treated as continuous) [1]_.

    With `clusters`, the effective number of samples in a group is reduced by its design
    effect, the ratio of the jackknife variance of the clusters' sums of residuals to
    the variance of independent samples, with Satterthwaite degrees of freedom. Both
    p-values and the interval take it into account, and dependent labels are drawn for
    the error's interval. If the effective number of clusters is below three, the limits
    are NaN and the p-values are 1, and `reason` says so. In groups with fewer than 40
    expected events or non-events, the type I error rate is not controlled.

    References
    ----------
    Lugannani and Rice (1980), Saddle point approximation for the distribution of the
    sum of independent random variables. Holm (1979), A simple sequentially rejective
    multiple test procedure.

    .. [1] Westfall and Wolfinger (1997), Multiple tests with discrete distributions.

    Examples
    --------
    At two sites, all scores are 1/2. At one of them, 14 of 16 samples are events, and
    ``P(S >= 14) = 137 / 2^16``.

    >>> from skcalib.metrics import calibration_by_group
    >>> y_true = [1] * 14 + [0] * 2 + [1] * 8 + [0] * 8
    >>> table = calibration_by_group(
    ...     y_true, [0.5] * 32, ["north"] * 16 + ["south"] * 16, random_state=0
    ... )
    >>> (
    ...     table.group.tolist(),
    ...     table.bias.tolist(),
    ...     table.pvalue.round(6).tolist(),
    ...     round(2 * 137 / 2**16, 6),
    ... )
    (['north', 'south'], [-0.375, 0.0], [0.004181, 1.0], 0.004181)
    >>> table.adjusted_pvalue.round(6).tolist()
    [0.008362, 1.0]
    """  # noqa: E501
    if isinstance(y_proba, Mapping):
        options = {
            "norm": norm,
            "binning": binning,
            "method": method,
            "order": order,
            "max_bins": max_bins,
            "min_group_size": min_group_size,
            "alternative": alternative,
            "adjustment": adjustment,
            "confidence_level": confidence_level,
            "n_resamples": n_resamples,
            "multiclass": multiclass,
            "sample_weight": sample_weight,
            "weight_type": weight_type,
            "clusters": clusters,
            "pos_label": pos_label,
            "labels": labels,
            "random_state": random_state,
            "verbose": verbose,
        }
        return _by_model(y_true, y_proba, groups, options)
    norm = check_norm(norm, method=method)
    confidence_level = check_confidence_level(confidence_level)
    check_int(n_resamples, "n_resamples")
    _check_alternative(alternative, confidence_level)
    if min_group_size is not None:
        check_int(min_group_size, "min_group_size")
    check_option(order, "order", _ORDERS)
    check_option(adjustment, "adjustment", ("holm", "exact"))
    # 1. The groups, in the order of their names.
    rows = {"sample_weight": sample_weight, "pos_label": pos_label, "labels": labels}
    if isinstance(y_true, BinStatistics):
        y_true = _bins_as_groups(y_true)
    if isinstance(y_true, Mapping):
        rows |= {"y_proba": y_proba, "binning": binning, "clusters": clusters}
        rows |= {"max_bins": max_bins, "min_group_size": min_group_size}
        refuse_beside_bins("a dict of BinStatistics", multiclass=multiclass, **rows)
        found = _groups_of_statistics(y_true, groups, weight_type)
    else:
        data = check_scored_labels(
            y_true, y_proba, multiclass=multiclass, drop=False, **rows
        )
        resolve_multiclass(multiclass, data)  # raises for "pooled"
        # What the weights say about the labels is decided on all rows. They are scaled
        # again group by group below.
        data = counted_rows(data, weight_type)
        cluster = None
        if clusters is not None:
            _, cluster = check_groups(clusters, len(data.scores), name="clusters")
        strategy = check_binning(binning, EqualMass("cube_root"))
        names, codes = group_codes(groups, data, max_bins=max_bins, takes_max_bins=True)
        if min_group_size is not None:
            names, codes = with_small_groups_pooled(
                names, codes, data.kept, min_group_size
            )
        found = _groups_of_rows(
            data, names, codes, cluster, multiclass, strategy, weight_type
        )
    # 2. The errors with their limits, and the table.
    resampling = Resampling(
        n_resamples,
        check_random_state(random_state),
    )
    progress = Progress("calibration_by_group", verbose)
    with warnings.catch_warnings():
        # These warnings are given once for all groups, not for each of them.
        warnings.filterwarnings(
            "ignore", "clusters=|sample_weight contains", UserWarning
        )
        errors = _errors_with_limits(
            found.samples,
            {"norm": norm, "method": method},
            resampling,
            confidence_level,
            progress,
        )
        table = _table(found, errors, confidence_level, adjustment, alternative)
    if clusters is not None:
        _warn_of_few_events(table)
    # 3. The order of the groups: so far by name. A NaN error comes last.
    if order == "given":
        table = _sorted_rows(table, found.first)
    elif order == "error":
        table = _sorted_rows(table, -table.error)
    return table


def _sorted_rows(table, key):
    """Return a table with its rows in increasing order of a key (n_rows,)."""
    rows = np.argsort(key, kind="stable")
    columns = {name: column[rows] for name, column in table.columns().items()}
    return replace(table, _limits_of_all=table._limits_of_all[:, rows], **columns)


def _by_model(y_true, models, groups, options):
    """Return the table of each model, `models` being a dict from its name to its
    probabilities, with the other arguments of `calibration_by_group`.
    """
    if not models:
        raise ValueError(
            "y_proba is an empty dict: it must contain at least one model."
        )
    tables = GroupCalibrationByModel()
    for name, y_proba in models.items():
        tables[name] = calibration_by_group(y_true, y_proba, groups, **options)
    return tables


def _check_alternative(alternative, confidence_level):
    """Raise for an unknown alternative, and for a one-sided limit of level .5 or less,
    which would lie on the wrong side of the estimate.
    """
    check_option(alternative, "alternative", _ALTERNATIVES)
    if alternative != "two-sided" and confidence_level <= 0.5:
        raise ValueError(
            f"confidence_level={confidence_level} must be above 0.5 for a one-sided"
            " alternative."
        )


class _Groups(NamedTuple):
    """The groups of a table, in the order of their names.

    Attributes
    ----------
    names : ndarray of shape (n_groups,)
        Their names.
    samples : list of Sample
        The rows of each group, or its bin sums.
    first : list of int
        Where each group comes first: its first row, or its position in a dict.
    """

    names: np.ndarray
    samples: list
    first: list


def _groups_of_rows(data, names, codes, cluster, multiclass, strategy, weight_type):
    """Split validated rows by group, and return the groups that have rows as `_Groups`.

    Parameters
    ----------
    data : ScoredLabels
        The n rows; those of weight zero are among them.
    names : ndarray of shape (n_names,)
        Names of the groups.
    codes : ndarray of int, shape (n,)
        Index of each row's group among the names.
    cluster : ndarray of int, shape (n,), or None
        Code of each row's cluster.
    multiclass, weight_type : str
        See `calibration_by_group`.
    strategy : BaseBinning
        The bins.
    """
    present = []
    samples = []
    first = []
    for code, rows in split_by_group(data, codes):
        group = counted_rows(data.at(rows), weight_type, warns=False)
        task = one_task(group, multiclass)
        sample = Sample(
            task.statistics(strategy),
            task,
            binning=strategy,
            cluster=taken(cluster, rows),
            importance=is_importance(weight_type),
            label_weights=group.label_weights,
        )
        samples.append(sample)
        present.append(code)
        first.append(rows[0])
    return _Groups(names[present], samples, first)


def _bins_as_groups(statistics):
    """Return a dict from the mean score of each bin with samples to the statistics of
    that bin alone.
    """
    filled = np.flatnonzero(statistics.count)
    names = [float(rounded(mean, 6)) for mean in statistics.mean_score[filled]]
    if len(set(names)) < len(names):
        names = statistics.mean_score[filled].tolist()
    groups = {}
    for name, position in zip(names, filled, strict=True):
        sums = {
            field: getattr(statistics, field)[[position]]
            for field in vars(statistics)
            if field != "edges" and not field.startswith("_")
        }
        edges = statistics.edges[position : position + 2]
        groups[name] = unchecked_statistics(edges, **sums)
    return groups


def _groups_of_statistics(mapping, groups, weight_type):
    """Check a dict from group to `BinStatistics`, and return its groups as `_Groups`.

    `groups` and `weight_type` are arguments of `calibration_by_group`; `groups` must
    not be given.
    """
    if not is_predicted_class(groups):
        raise ValueError(
            "groups are the keys of the dict of BinStatistics: omit groups."
        )
    if not mapping:
        raise ValueError(
            "y_true is an empty dict: it must contain the BinStatistics of at least"
            " one group."
        )
    for name, statistics in mapping.items():
        if not isinstance(statistics, BinStatistics):
            raise TypeError(
                f"y_true[{name!r}] must be a BinStatistics, found"
                f" {type(statistics).__name__}."
            )
        if not statistics.total_weight > 0:
            raise ValueError(f"y_true[{name!r}] contains no rows: omit such groups.")
    keys = list(mapping)
    names = _sorted_names(keys)
    samples = []
    first = []  # the place of each group in the user's dict
    for name in names:
        # Bins in which frequency weights are numbers of rows.
        bins = counted_rows(BinnedTask(mapping[name]), weight_type).bins
        samples.append(Sample(bins, importance=is_importance(weight_type)))
        first.append(keys.index(name))
    return _Groups(_as_array(names), samples, first)


def _sorted_names(names):
    """Return a list of names in order, None last; names that cannot be compared are
    sorted by their texts.
    """
    in_order = [name for name in names if name is not None]
    try:
        in_order.sort()
    except TypeError:
        in_order.sort(key=str)
    if len(in_order) < len(names):
        in_order.append(None)  # at most one: names are the keys of a dict
    return in_order


def _as_array(names):
    """Return a list of names as an array (n_names,): of their own type if all are str,
    int, float or bool, else of objects.
    """
    kinds = {type(name) for name in names}
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        return np.array(names)
    # `np.array` would make a matrix of names that are tuples.
    return np.fromiter(names, dtype=object, count=len(names))


def _errors_with_limits(samples, params, resampling, confidence_level, progress):
    """Return the calibration error of each group with its limits, (3, n_samples): rows
    for errors, lower limits and upper limits, NaN where bins have too few rows for a
    debiased error.

    Parameters
    ----------
    samples : list of Sample
        The groups.
    params : dict
        `norm` and `method` of the binned error.
    resampling : Resampling
        What is drawn for the limits.
    confidence_level : float
        Coverage of each interval.
    progress : Progress
        Writes how many groups are done.
    """
    is_debiased = resolved_method(**params) in ("debiased", "unbiased")
    errors = np.full((3, len(samples)), np.nan)
    has_error = []  # positions of the groups
    for k, sample in enumerate(samples):
        if not (is_debiased and has_thin_bins(sample.statistics)):
            has_error.append(k)

    def hypotheses_of_groups():
        """Yield the `Hypotheses` of one group after the other, and write its error into
        ``errors[0]``. `limits_of_each` takes them in blocks: those of all groups would
        need much memory.
        """
        for k in has_error:
            progress(f"errors of {k:,} of {len(samples):,} groups", k / len(samples))
            error, hypotheses = samples[k].error_and_hypotheses(params, resampling)
            errors[0, k] = error
            yield hypotheses

    tail = (1 - confidence_level) / 2
    for k, limits in zip(
        has_error, limits_of_each(hypotheses_of_groups(), tail), strict=True
    ):
        if not samples[k].reason_without_limits:
            errors[1:, k] = limits
    return errors


def _table(groups, errors, confidence_level, adjustment, alternative):
    """Return the `GroupCalibration` of `_Groups`, in their order.

    `errors` (3, n_groups) are calibration errors, lower limits and upper limits; the
    other arguments are those of `calibration_by_group`.
    """
    samples = groups.samples
    # The numbers of rows are ints, unless a group has weights: see `Sample.n`.
    n = np.array([sample.n for sample in samples])
    mean_score = np.array([sample.mean_score for sample in samples])
    event_frequency = np.array([sample.event_frequency for sample in samples])
    # Why there are no limits: empty texts where there are.
    tests, reasons = bias_tests_of(samples, confidence_level, alternative)
    pvalue, bias_low, bias_high, bias_pvalue = tests
    bias = mean_score - event_frequency
    # In a group without events, or of events alone, one limit is the bias itself. The
    # two are summed in different orders, and may differ by rounding: a limit that the
    # bias exceeds by less than 1e-12 is set to the bias.
    bias_low = np.where(bias_low - bias < 1e-12, np.minimum(bias_low, bias), bias_low)
    bias_high = np.where(
        bias - bias_high < 1e-12, np.maximum(bias_high, bias), bias_high
    )
    if adjustment == "holm":
        adjusted = holm(pvalue)
    else:
        distributions = []
        for sample in samples:
            distributions.append(_pvalue_distribution(sample, alternative))
        adjusted = adjusted_pvalues(pvalue, distributions)
    error, error_low, error_high = errors
    n_events = n * event_frequency
    return GroupCalibration(
        group=groups.names,
        n=n,
        mean_score=mean_score,
        event_frequency=event_frequency,
        bias=bias,
        bias_low=bias_low,
        bias_high=bias_high,
        error=error,
        error_low=error_low,
        error_high=error_high,
        pvalue=pvalue,
        adjusted_pvalue=adjusted,
        bias_pvalue=bias_pvalue,
        adjusted_bias_pvalue=holm(bias_pvalue),
        binomial_pvalue=binomial_pvalue(n_events, n, mean_score, alternative),
        jeffreys_pvalue=jeffreys_pvalue(n_events, n, mean_score, alternative),
        reason=np.array(reasons, dtype=str),
        alternative=alternative,
        confidence_level=confidence_level,
        _limits_of_all=_limits_of_all(samples, confidence_level, alternative),
    )


def _limits_of_all(samples, confidence_level, alternative):
    """Return limits (2, n_groups) of the biases that hold for all groups together."""
    level = simultaneous_level(confidence_level, len(samples))
    tests, _ = bias_tests_of(samples, level, alternative)
    return np.array([tests.low, tests.high])


def binomial_pvalue(n_events, n, score, alternative):
    """Return the p-values (m,) of binomial tests of k events among n rows with the
    same score. All arrays have shape (m,), and k and n may be fractional.

    The alternative "greater" is that the event frequency is greater than the score.
    """
    # P(X >= k) = I_s(k, n - k + 1), the regularised incomplete beta function. It is not
    # defined for k = 0, where the probability is 1: any positive number stands for k.
    n_others = n - n_events
    at_least = betainc(np.maximum(n_events, 1e-9), n_others + 1, score)
    at_least = np.where(n_events > 0, at_least, 1.0)
    # P(X <= k) is that of at least n - k non-events.
    at_most = betainc(np.maximum(n_others, 1e-9), n_events + 1, 1 - score)
    at_most = np.where(n_others > 0, at_most, 1.0)
    return pvalue_of_sides(at_least, at_most, alternative)


def jeffreys_pvalue(n_events, n, score, alternative):
    """Return the posterior probability (m,) that the alternative is false, after k
    events among n rows and with Jeffreys' prior Beta(1/2, 1/2).

    All arrays have shape (m,). For "greater" it is the probability that the event
    frequency is below the score, for "less" that it is above, and for "two-sided" twice
    the smaller one.
    """
    a = n_events + 0.5
    b = n - n_events + 0.5
    below_score = betainc(a, b, score)
    above_score = betainc(b, a, 1 - score)
    return pvalue_of_sides(below_score, above_score, alternative)


def _pvalue_distribution(sample, alternative):
    """Return the distribution of the p-value of a `Sample` under calibration, as
    `pvalue_distribution` does. None with clusters and importance weights, for which it
    is not known.
    """
    if sample.cluster is not None or sample.importance:
        return None
    scores, weight = sample.scores_and_weights()
    return pvalue_distribution(scores, weight, alternative)


def _warn_of_few_events(table):
    """Warn of the groups of a table, made with clusters, in which fewer than 40 events
    or non-events are expected.
    """
    expected = table.n * np.minimum(table.mean_score, 1 - table.mean_score)
    few = table.group[expected < FEW_EVENTS].tolist()
    if few:
        warn(
            f"clusters=: fewer than {FEW_EVENTS} events or non-events are expected in"
            f" {len(few)} of {len(expected)} groups ({reprlib.repr(few)}), for which"
            " the level is not controlled."
        )
