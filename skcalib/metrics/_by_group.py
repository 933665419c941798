"""Calibration by group: one table with the bias and the error of each group, and which
of them are more than noise.
"""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc
from sklearn.utils import check_random_state

from skcalib._cells.binned import BinnedTask, counted_rows, refuse_beside_bins
from skcalib._cells.binned_samples import BinnedSamples
from skcalib._cells.columns import resolve_multiclass
from skcalib._cells.groups import group_codes, is_predicted_class, split_by_group
from skcalib._cells.reductions import one_task
from skcalib._cells.statistics import BinStatistics, unchecked_statistics
from skcalib._errors.binned import check_norm
from skcalib._inference.adjustment import adjusted_pvalues, holm, pvalue_distribution
from skcalib._inference.cluster_draws import FEW_EVENTS
from skcalib._inference.hypotheses import Resampling
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
    rounded,
    simultaneous_level,
)
from skcalib.binning import BaseBinning, EqualMass, check_binning
from skcalib.metrics._group_sample import Sample, pvalue_of_sides
from skcalib.metrics._group_tables import GroupCalibration, GroupCalibrationByModel
from skcalib.metrics._many_samples import BiasTests, Samples, SmallSamples

_ORDERS = ("sorted", "given", "error")
_ALTERNATIVES = ("two-sided", "greater", "less")


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
        Number of draws for each error's interval; small groups need none. The default
        is small because there may be many groups, and no p-value depends on it.
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
    `calibration_error_interval`: for a group with few possible outcomes, such as one of
    up to 40 samples in the default bins, it is computed from the exact distribution of
    the error, without draws.

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
    check_option(alternative, "alternative", _ALTERNATIVES)
    if alternative != "two-sided" and confidence_level <= 0.5:
        # The limit would lie on the wrong side of the estimate.
        raise ValueError(
            f"confidence_level={confidence_level} must be above 0.5 for a one-sided"
            " alternative."
        )
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
        errors = found.samples.errors_with_limits(
            {"norm": norm, "method": method},
            resampling,
            (1 - confidence_level) / 2,
            progress,
        )
        table = _table(found, errors, confidence_level, adjustment, alternative)
    if clusters is not None:
        _warn_of_few_events(table)
    # 3. The order of the groups: so far by name. A NaN error comes last.
    keys = {"given": found.first, "error": -table.error}
    if order in keys:
        table = _sorted_rows(table, keys[order])
    return table


def _sorted_rows(table, key):
    """Return a table with its rows in increasing order of a key (n_rows,)."""
    rows = np.argsort(key, kind="stable")
    columns = {name: column[rows] for name, column in table.columns().items()}
    return replace(table, _limits_of_all=table._limits_of_all[:, rows], **columns)


def _by_model(y_true, models, groups, options):
    """Return the table of each model; `models` maps its name to its probabilities."""
    if not models:
        raise ValueError(
            "y_proba is an empty dict: it must contain at least one model."
        )
    tables = GroupCalibrationByModel()
    for name, y_proba in models.items():
        tables[name] = calibration_by_group(y_true, y_proba, groups, **options)
    return tables


class _Groups(NamedTuple):
    """The groups of a table, in the order of their names.

    Attributes
    ----------
    names : ndarray of shape (n_groups,)
        Their names.
    samples : Samples or SmallSamples
        The rows of each group, or its bin sums.
    first : sequence of int
        Where each group comes first: its first row, or its position in a dict.
    """

    names: np.ndarray
    samples: Samples | SmallSamples
    first: Any


def _groups_of_rows(data, names, codes, cluster, multiclass, strategy, weight_type):
    """Return the non-empty groups of validated rows, which include rows of weight zero,
    as `_Groups`. `codes` (n,) are positions in `names`; `cluster` (n,) holds codes or
    is None; `strategy` bins the rows of each group.
    """
    # Many small groups are computed together.
    is_plain = data.sample_weight is None and cluster is None
    if is_plain and type(strategy) is EqualMass:
        largest = np.bincount(codes).max()
        if largest <= BinnedSamples.most_rows:
            small = SmallSamples(one_task(data, multiclass), codes, strategy)
            return _Groups(names[small.codes], small, small.first)
    present = []
    samples = Samples()
    first = []
    for code, rows in split_by_group(data.kept, codes):
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
    if len(set(names)) < len(names):  # means that are equal up to six digits
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
    samples = Samples()
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
    """Return names as an array: of their own type if all are str, int, float or bool,
    else of objects.
    """
    kinds = {type(name) for name in names}
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        return np.array(names)
    # `np.array` would make a matrix of names that are tuples.
    return np.fromiter(names, dtype=object, count=len(names))


def _table(groups, errors, confidence_level, adjustment, alternative):
    """Return the `GroupCalibration` of `_Groups`, in their order.

    `errors` (3, n_groups) are calibration errors, lower limits and upper limits.
    `adjustment` of p-values is "holm" or "exact"; `alternative` is "two-sided",
    "greater" or "less".
    """
    samples = groups.samples
    n = samples.n
    mean_score = samples.mean_score
    event_frequency = samples.event_frequency
    bias_tests = BiasTests(samples, alternative)
    # A reason says why a group has no limits. It is "" for a group with limits.
    tests, reasons = bias_tests.at(confidence_level)
    # The sentence about the worst group needs limits that hold for all groups at once.
    level_of_all = simultaneous_level(confidence_level, len(samples))
    simultaneous_tests, _ = bias_tests.at(level_of_all)
    bias = mean_score - event_frequency
    # In a group without events, or of events alone, one limit is the bias itself. The
    # two are summed in different orders, and may differ by rounding: a limit that the
    # bias exceeds by less than 1e-12 is set to the bias.
    low, high = tests.low, tests.high
    bias_low = np.where(low - bias < 1e-12, np.minimum(low, bias), low)
    bias_high = np.where(bias - high < 1e-12, np.maximum(high, bias), high)
    if adjustment == "holm":
        adjusted = holm(tests.pvalue)
    else:
        distributions = []
        for sample in samples:
            distributions.append(_pvalue_distribution(sample, alternative))
        adjusted = adjusted_pvalues(tests.pvalue, distributions)
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
        pvalue=tests.pvalue,
        adjusted_pvalue=adjusted,
        bias_pvalue=tests.bias_pvalue,
        adjusted_bias_pvalue=holm(tests.bias_pvalue),
        binomial_pvalue=binomial_pvalue(n_events, n, mean_score, alternative),
        jeffreys_pvalue=jeffreys_pvalue(n_events, n, mean_score, alternative),
        reason=np.array(reasons, dtype=str),
        alternative=alternative,
        confidence_level=confidence_level,
        _limits_of_all=np.array([simultaneous_tests.low, simultaneous_tests.high]),
    )


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
    """Return the p-values that a `Sample` can have if its scores are calibrated, and
    their cumulative probabilities; None with clusters or importance weights, where they
    are unknown.
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
            f" {len(few)} of {len(expected)} groups ({reprlib.repr(few)}), so their"
            " tests may not keep the level."
        )
