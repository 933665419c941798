"""Models side by side on the same rows: proper scores and calibration errors, with
paired differences.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, hstack
from scipy.special import ndtr, ndtri, stdtr, stdtrit
from sklearn.utils import check_random_state

from skcalib._cells.reductions import binary_tasks, counted_rows
from skcalib._errors.binned import BinnedError, GroupwiseError
from skcalib._errors.error import ClassPowers
from skcalib._errors.proper_scores import LOSSES, brier_score, log_loss
from skcalib._inference.adjustment import holm
from skcalib._inference.bootstrap import basic_limits
from skcalib._inference.results import IntervalEstimate, ResultTable
from skcalib._input.labels import check_groups
from skcalib._input.scalars import check_confidence_level, check_int
from skcalib._input.scored_labels import check_scored_labels
from skcalib._intervals.influence import (
    Influence,
    cluster_codes,
    tail_degrees,
    too_few_units,
)
from skcalib._intervals.rare import mean_loss_interval
from skcalib._verdicts import interval_words, level_words, pvalue_words, rounded
from skcalib.metrics import calibration_error_interval
from skcalib.metrics._interval import unwrapped_metric
from skcalib.metrics._registry import metric_of, scorers

# pairs of different units in a bin, as a share of all, below which there are none
_FEW = 1e-9
_LATEX = {
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\~{}",
    "^": r"\^{}",
}


_COLUMNS = (
    "model",
    "metric",
    "estimate",
    "low",
    "high",
    "difference",
    "difference_low",
    "difference_high",
    "pvalue",
    "adjusted_pvalue",
    "reason",
)


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(ResultTable):
    """A row for each metric and model: its value, and its difference to the reference.
    Printing it gives sentences.

    Parameters
    ----------
    model, metric : ndarray of shape (n_rows,)
        Names.
    estimate, low, high : ndarray of shape (n_rows,)
        The metric and its interval.
    difference, difference_low, difference_high : ndarray of shape (n_rows,)
        Value of the model minus that of the reference, with its interval; 0 for the
        reference.
    pvalue, adjusted_pvalue : ndarray of shape (n_rows,)
        Two-sided p-value of "the difference is 0", and the same adjusted (Holm) over
        the models of a metric; 1 for the reference. NaN where the samples do not
        determine it.
    reason : ndarray of str, shape (n_rows,)
        Why limits of the metric or of the difference are NaN; empty where they are not.
    reference : str
        Name of the model that the others are compared with.
    confidence_level : float
        Coverage of each interval, in (0, 1).
    """

    model: np.ndarray
    metric: np.ndarray
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    difference: np.ndarray
    difference_low: np.ndarray
    difference_high: np.ndarray
    pvalue: np.ndarray
    adjusted_pvalue: np.ndarray
    reason: np.ndarray
    reference: str
    confidence_level: float

    def to_markdown(self):
        """Return a Markdown table, one row per model and one column per metric; the
        best value of a metric is bold.

        Returns
        -------
        table : str
            A star marks an adjusted p-value of .05 or less for the difference to the
            reference.
        """
        head, *rows = self._cells("**{}**", lambda name: name.replace("|", "\\|"))
        lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def to_latex(self):
        """Return a LaTeX table (package booktabs), one row per model and one column per
        metric; the best value is bold.

        Returns
        -------
        table : str
            A star marks an adjusted p-value of .05 or less for the difference to the
            reference.
        """
        head, *rows = self._cells(
            r"\textbf{{{}}}",
            lambda name: "".join(_LATEX.get(mark, mark) for mark in name),
        )
        lines = [f"{' & '.join(line)} \\\\" for line in (head, *rows)]
        begin = f"\\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}"
        return "\n".join(
            [
                begin,
                r"\toprule",
                lines[0],
                r"\midrule",
                *lines[1:],
                r"\bottomrule",
                r"\end{tabular}",
            ]
        )

    def _cells(self, bold, name):
        """Return the texts of a table by model and metric."""
        models = list(dict.fromkeys(self.model.tolist()))
        metrics = list(dict.fromkeys(self.metric.tolist()))
        header = ["model", *map(name, metrics)]
        lines = [[name(model)] for model in models]
        for k, estimate in enumerate(self.estimate):
            text = rounded(estimate, 4)
            if not np.isnan(self.low[k]):
                text = interval_words(estimate, self.low[k], self.high[k])
            if estimate == self.estimate[self.metric == self.metric[k]].min():
                text = bold.format(text)
            if self.adjusted_pvalue[k] <= 0.05:
                text += "*"
            # the rows of a metric stand together, one for each model
            lines[k % len(models)].append(text)
        return [header, *lines]

    def __str__(self):
        level = f"{level_words(self.confidence_level)} interval"
        said = []
        rows = zip(*self.columns().values(), strict=True)
        for model, metric, *_, difference, low, high, _, pvalue, reason in rows:
            if model == self.reference:
                continue
            if np.isnan(low):
                said.append(
                    f"Whether {model} differs in {metric} from {self.reference}"
                    f" (difference {rounded(difference)}) cannot be said: {reason}."
                )
                continue
            verdict = "lower" if difference < 0 else "higher"
            if pvalue <= 0.05:
                seen = f"has a {verdict} {metric} than"
            else:
                seen = f"is not seen to differ in {metric} from"
            size = interval_words(difference, low, high, level=level)
            said.append(
                f"{model} {seen} {self.reference}: difference {size}, adjusted"
                f" {pvalue_words(pvalue)}."
            )
        return "\n".join(said)


def compare(
    y_true: ArrayLike,
    models: Mapping[str, ArrayLike] | Any,
    *,
    metrics: Sequence[str | Callable] = (
        "log_loss",
        "brier_score",
        "squared_calibration_error",
    ),
    reference: str | None = None,
    confidence_level: float = 0.9,
    n_resamples: int = 999,
    sample_weight: ArrayLike | None = None,
    weight_type: Literal["frequency", "importance"] = "frequency",
    clusters: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> ModelComparison:
    """Compare models on the same rows by proper scores and calibration errors.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    models : dict or DataFrame
        From names to probabilities of these rows, of shape (n,), (n, 2) or (n, K); two
        or more. Each column of a data frame is a model. A recalibrated model is one, with its probabilities for rows that the
        recalibrator was not fitted to.
    metrics : sequence of str and callable, default=("log_loss", "brier_score", "squared_calibration_error")
        Names (those of `get_scorer_names` without ``neg_``), metrics of this library,
        and functions ``metric(y_true, y_proba, sample_weight=...)``; a
        `functools.partial` sets options. Smaller is better.
    reference : str, default=None
        The model that the others are compared with; None is the first.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).
    n_resamples : int, default=999
        Number of draws behind the interval of an error, and of resamples behind a
        function of your own; as many as `calibration_test` draws.
    sample_weight : array-like of shape (n,), default=None
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"}, default="frequency"
        What weights are. "frequency": they count rows, a weight of 2 is two rows.
        "importance": each row was seen once and stands for more or fewer (a sampling
        correction).
    clusters : array-like of shape (n,), default=None
        Rows that are not independent (of one patient or match) have the same entry.
    pos_label : int, float, bool or str, default=None
        The event; None is the greater of two labels, the second column of
        `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    comparison : ModelComparison
        A table with a row for each metric and model:
        `model, metric, estimate, low, high, difference, difference_low, difference_high, pvalue, adjusted_pvalue, reason`.
        A difference is the model minus the reference. P-values are adjusted (Holm) over
        the models of a metric. `to_frame`, `to_markdown` and `to_latex` write it;
        `print` says it.

    Raises
    ------
    ValueError
        For fewer than two models, an unknown reference or metric, an error without an
        interval (the kernel error), and labels, probabilities or weights that do not
        fit together: the message names the model.

    Warns
    -----
    UserWarning
        For weights that are not integers with ``weight_type="frequency"``.

    See Also
    --------
    skcalib.displays.ComparisonDisplay : The differences as a picture.
    skcalib.monitoring.calibration_change : Other rows, before and after.

    Notes
    -----
    The proper scores are means over rows. The test of a difference is that of the mean
    of the rows' differences, with a Student quantile. With `clusters` the variance is
    that of their jackknifed sums (CR3), with Satterthwaite's degrees of freedom at the
    correlation within clusters that the differences show. Clusters that are worth fewer
    than three of equal size give NaN, and `reason` says so. The interval of a Brier
    score itself is the gamma interval of `calibration_summary`.

    The signed square, "squared_calibration_error", is a mean of r_i r_j over pairs of
    rows in a bin, r = y - s (of different clusters, with `clusters`). The variance of
    the difference is the jackknife's, less what the pairs alone contribute, which the
    jackknife counts twice. Where both models are calibrated the test still rejects less
    often than it may.

    Other errors of this library are compared by square-and-add of their two intervals,
    as if the models were independent: conservative, the more so the more alike the
    models are. The p-value belongs to the normal law behind the interval. Where an
    estimate lies above its own interval the difference is that of the intervals' ends.
    A function of your own gets a paired basic bootstrap.

    Level .05 of equally good models and power beside an unpaired test stand in the
    guide, "Do the guarantees hold?".

    References
    ----------
    Diebold and Mariano (1995), Comparing predictive accuracy. Arvesen (1969),
    Jackknifing U-statistics. Zou and Donner (2008), Construction of confidence limits
    about effect measures.

    Examples
    --------
    The second model is too sure by a factor of 2 in log-odds:

    >>> import numpy as np
    >>> from skcalib.evaluation import compare
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(1000)
    >>> y_true, sure = rng.random(1000) < s, s**2 / (s**2 + (1 - s) ** 2)
    >>> found = compare(y_true, {"calibrated": s, "sure": sure}, metrics="brier_score")
    >>> (
    ...     found.model.tolist(),
    ...     found.difference.round(3).tolist(),
    ...     bool(found.adjusted_pvalue[1] < 0.001),
    ... )
    (['calibrated', 'sure'], [0.0, 0.012], True)
    >>> print(found.to_markdown())
    | model | brier_score |
    | --- | ---: |
    | calibrated | **0.166 (0.156 to 0.177)** |
    | sure | 0.178 (0.164 to 0.194)* |
    """  # noqa: E501
    level = check_confidence_level(confidence_level)
    check_int(n_resamples, "n_resamples")
    options_of_data = {
        "sample_weight": sample_weight,
        "pos_label": pos_label,
        "labels": labels,
    }
    given = {
        name: value for name, value in options_of_data.items() if value is not None
    }
    models = _models_by_name(models)
    data, reference = _check_models(y_true, models, reference, given)
    counted_rows(data[reference], weight_type)  # for its checks
    cluster = None
    if clusters is not None:
        n_rows = len(data[reference].scores)
        groups = check_groups(clusters, n_rows, name="clusters")[1]
        cluster = cluster_codes(groups)
    options = {
        "weight_type": weight_type,
        "clusters": cluster,
        "confidence_level": level,
        "n_resamples": n_resamples,
        "random_state": check_random_state(random_state).randint(2**31),
    }
    rows = _Rows(y_true, models, data, reference, given, options)
    columns = {name: [] for name in _COLUMNS}
    is_other = np.array([name != reference for name in models])
    for label, metric in _check_metrics(metrics).items():
        compared = rows.compared(metric)
        pvalues = np.array([row.pvalue for row in compared])
        adjusted = np.ones(len(models))
        adjusted[is_other] = holm(pvalues[is_other])
        for name, row, adjusted_pvalue in zip(models, compared, adjusted, strict=True):
            line = (name, label, *row[:-1], adjusted_pvalue, row.reason)
            for column, value in zip(columns.values(), line, strict=True):
                column.append(value)
    return ModelComparison(
        *map(np.array, columns.values()), reference=reference, confidence_level=level
    )


def _models_by_name(models):
    """Return models as a dict; the columns of a data frame are models."""
    if isinstance(models, dict) or not hasattr(models, "columns"):
        return models
    return {name: models[name] for name in models.columns}


def _check_models(y_true, models, reference, given):
    if (
        not isinstance(models, dict)
        or len(models) < 2
        or any(not isinstance(name, str) for name in models)
    ):
        raise ValueError(
            "models must be a dict from names (str) to probabilities, two or more,"
            f" found {models!r:.80}."
        )
    if reference is None:
        reference = next(iter(models))
    if reference not in models:
        raise ValueError(
            f"reference must be one of the models {list(models)}, found {reference!r}."
        )
    data = {}
    for name, y_proba in models.items():
        try:
            data[name] = check_scored_labels(y_true, y_proba, drop=False, **given)
        except (TypeError, ValueError) as error:
            text = f"models[{name!r}]: {error}"
            raise (TypeError if isinstance(error, TypeError) else ValueError)(
                text
            ) from None
    return data, reference


def _check_metrics(metrics):
    """Return the metrics by the names that the table gives them."""
    known = {
        name.removeprefix("neg_"): partial(metric, **options)
        for name, (metric, options) in scorers().items()
    }
    found = {}
    for metric in (
        [metrics] if isinstance(metrics, str) or callable(metrics) else metrics
    ):
        if isinstance(metric, str):
            if metric not in known:
                raise ValueError(
                    f"metrics: there is no {metric!r}. The names are"
                    f" {', '.join(sorted(known))}."
                )
            name = metric
            metric = known[metric]
        else:
            function, params = unwrapped_metric(metric, {})
            options = ", ".join(
                f"{option}={value!r}" for option, value in params.items()
            )
            name = getattr(
                function, "__name__", type(function).__name__
            ) + f"({options})" * bool(options)
        if name in found:
            raise ValueError(f"metrics holds {name!r} twice.")
        found[name] = metric
    if not found:
        raise ValueError("metrics is empty: name one, for example 'brier_score'.")
    return found


class _Line(NamedTuple):
    """What a line of the table says, but for names and the adjusted p-value."""

    estimate: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    pvalue: float
    reason: str


class _Mean(NamedTuple):
    """A mean, the influence of rows on it, or of units with the sums of their pairs.

    `mass` is the weight of the units, `cluster_mass` the same where these are clusters.
    """

    estimate: float
    influence: object
    sums: object = None
    cluster_mass: np.ndarray | None = None
    mass: np.ndarray | None = None


class _Rows(NamedTuple):
    """The rows of all models, and how they are compared: the arguments of metrics, and
    those of intervals.
    """

    y_true: object
    models: dict
    data: dict
    reference: str
    given: dict
    options: dict

    def compared(self, metric):
        """Return a `_Line` for each model."""
        own, difference = self._method(metric)
        lines = []
        for name in self.models:
            reason = own[name].reason if np.isnan(own[name].low) else ""
            if name == self.reference:
                lines.append(_Line(*own[name], 0.0, 0.0, 0.0, 1.0, reason))
                continue
            found, pvalue = difference(name)
            if np.isnan(found.low):
                reason = found.reason or reason
            lines.append(_Line(*own[name], *found, pvalue, reason))
        return lines

    def _method(self, metric):
        """Return an `IntervalEstimate` by model, and what gives that of a model's
        difference to the reference, and its p-value.
        """
        function, params = unwrapped_metric(metric, {})
        level = self.options["confidence_level"]

        def paired(name):
            return _paired(means[name], means[self.reference], level)

        def as_if_independent(name):
            found = square_and_add(intervals[name], intervals[self.reference])
            return _with_pvalue(*found, level)

        if function in (log_loss, brier_score):
            intervals, means = self._of_losses(function is brier_score)
            return intervals, paired
        row = metric_of(function)
        if row is None:
            return self._bootstrapped(partial(function, **params))
        error = row.error_of(params)
        options = {"metric": metric, **self.given, **self.options}
        intervals = {
            name: calibration_error_interval(self.y_true, scores, **options)
            for name, scores in self.models.items()
        }
        if not _is_mean_over_pairs(error):
            return intervals, as_if_independent
        means = {}
        for name, data in self.data.items():
            means[name] = self._pairs(error, data)
            intervals[name] = intervals[name]._replace(estimate=means[name].estimate)
        return intervals, paired

    def _of_losses(self, is_brier):
        """Return the intervals of mean losses by model, and the means as `_Mean`."""
        level = self.options["confidence_level"]
        loss_of = LOSSES["brier" if is_brier else "log"]
        own, means = {}, {}
        for name, rows in self.data.items():
            data, cluster = self._kept(rows)
            loss = loss_of(data.scores, data.labels)
            estimate = float(np.average(loss, weights=data.sample_weight))
            influence = Influence(
                loss - estimate,
                data.sample_weight,
                self.options["weight_type"] == "importance",
                cluster,
            )
            if is_brier:
                low, high, reason = mean_loss_interval(
                    loss, _largest_brier(data.scores), influence, level
                )
            else:
                low, high, reason = influence.interval(estimate, level)
            own[name] = IntervalEstimate(estimate, low, high, reason=reason)
            means[name] = _Mean(estimate, influence)
        return own, means

    def _bootstrapped(self, metric):
        """Compare a function of labels and probabilities that is no error of the
        library by a basic bootstrap.
        """
        values = {
            name: partial(metric, self.y_true, y_proba, **self.given)
            for name, y_proba in self.models.items()
        }
        level = self.options["confidence_level"]
        base = values[self.reference]

        def interval(function):
            estimate = float(function())
            rng = check_random_state(self.options["random_state"])
            options = level, self.options["n_resamples"], rng
            limits = basic_limits(
                function,
                self.data[self.reference],
                estimate,
                *options,
                cluster=self.options["clusters"],
            )
            return IntervalEstimate(estimate, *limits)

        def difference(name):
            found = interval(lambda **weight: values[name](**weight) - base(**weight))
            return _with_pvalue(found, found.estimate, level)

        own = {name: interval(function) for name, function in values.items()}
        return own, difference

    def _kept(self, data):
        """Return the rows of positive weight, and their clusters."""
        kept = data.kept
        cluster = self.options["clusters"]
        if cluster is None:
            return data.at(kept), None
        return data.at(kept), cluster_codes(cluster[kept])

    def _pairs(self, error, data):
        """Return the signed square as a mean over pairs of units in a bin, its
        influence by the jackknife, and sums.
        """
        data, unit = self._kept(data)
        is_clustered = unit is not None
        if not is_clustered:
            data = self._each_copy_a_row(data)
            unit = np.arange(len(data.scores))
        mass = np.bincount(unit, data.sample_weight)
        names, unit = np.unique(unit, return_inverse=True)
        means = []
        influences = []
        sums = []
        for task in binary_tasks(data, error.multiclass, pooled=True):
            unit_of_pair = np.repeat(unit, task.n_columns)
            of_task = _mean_over_pairs(task, unit_of_pair, len(names), error)
            means.append(of_task[0])
            influences.append(of_task[1])
            sums.append(of_task[2])
        classes = ClassPowers.of(data, error)
        # products of two sums get the weight of their class
        factors = [1.0]
        if classes.weight is not None:
            factors = np.sqrt(classes.weight)
        weighted = [factor * table for factor, table in zip(factors, sums, strict=True)]
        return _Mean(
            float(classes.combine(np.stack(means, axis=-1))),
            classes.combine(np.stack(influences, axis=-1)),
            hstack(weighted, format="csr"),
            mass if is_clustered else None,
            mass,
        )

    def _each_copy_a_row(self, data):
        """Return the rows, each as often as its weight counts it."""
        if data.sample_weight is None or self.options["weight_type"] != "frequency":
            return data
        copies = data.sample_weight.astype(np.intp)
        repeated = data.at(np.repeat(np.arange(len(data.scores)), copies))
        return repeated._replace(sample_weight=None)


def square_and_add(one, other):
    """Return the interval of the difference of two independent estimates, and its
    centre.

    An estimate that lies above its own interval counts as the interval's end: there it
    has no label noise.
    """
    (estimate, low, high), (base, base_low, base_high) = one, other
    first, second = min(max(estimate, low), high), min(max(base, base_low), base_high)
    below = np.hypot(first - low, base_high - second)
    above = np.hypot(high - first, second - base_low)
    centre = first - second
    return (
        IntervalEstimate(estimate - base, float(centre - below), float(centre + above)),
        centre,
    )


def _largest_brier(scores):
    """Return the largest Brier score that a row can have."""
    if scores.ndim == 1:
        return float(np.max(np.maximum(scores, 1 - scores)) ** 2)
    # sum of s_k^2, with s_j^2 replaced by (1 - s_j)^2 for the least likely class j
    squares = np.sum(scores.astype(np.float64) ** 2, axis=1)
    return float(np.max(squares + 1 - 2 * scores.min(axis=1)))


def _with_pvalue(difference, centre, level):
    """Return a difference and the p-value of the normal law behind the interval on the
    side of 0.
    """
    reach = centre - difference.low if centre > 0 else difference.high - centre
    z = abs(centre) / reach * ndtri((1 + level) / 2) if reach > 0 else np.inf
    return difference, float(2 * ndtr(-z)) if centre else 1.0


def _paired(one, other, level):
    """Return the difference of two `_Mean` with its limits, and its p-value."""
    difference = one.estimate - other.estimate
    if one.sums is None:
        values = one.influence.values - other.influence.values
        if difference == 0 and not values.any():  # no row tells the models apart
            return IntervalEstimate(0.0, 0.0, 0.0), 1.0
        error, degrees, reason = replace(one.influence, values=values).spread()
        if error == 0:
            reason = "the models differ by the same in all rows"
    else:
        error, degrees, reason = _spread_of_pairs(one, other)
    if reason:
        return IntervalEstimate(difference, np.nan, np.nan, reason=reason), np.nan
    if error == 0:
        limits = IntervalEstimate(difference, difference, difference)
        return limits, float(difference == 0)
    width = float(stdtrit(degrees, (1 + level) / 2) * error)
    pvalue = float(2 * stdtr(degrees, -abs(difference) / error))
    return (
        IntervalEstimate(difference, difference - width, difference + width),
        pvalue,
    )


def _spread_of_pairs(one, other):
    """Return standard error and degrees of freedom of a difference of means over pairs,
    and why there are none.
    """
    if one.cluster_mass is None:
        reason = too_few_units(one.mass, importance=True)
    else:
        codes = np.arange(len(one.cluster_mass))
        reason = too_few_units(one.cluster_mass, cluster=codes)
    if reason:
        return np.nan, np.nan, reason
    values = one.influence - other.influence
    n_units = len(values)
    square, fourth = np.sum(values**2), np.sum(values**4)
    if square == 0:
        return 0.0, 1.0, ""
    degrees = min(tail_degrees(n_units, square, fourth), n_units - 1)
    if one.cluster_mass is not None:
        # Satterthwaite's with a correlation of 1: pairs do not show another one
        squares = one.cluster_mass**2
        degrees = min(degrees, squares.sum() ** 2 / np.sum(squares**2))
    error = np.sqrt(square * n_units / (n_units - 1)) / n_units
    # the jackknife counts the part of the variance that is of pairs twice
    of_pairs = _variance_of_pairs(one.sums, other.sums)
    error = np.sqrt(max(error**2 - of_pairs, of_pairs))
    return float(error), float(max(degrees, 1.0)), ""


def _is_mean_over_pairs(error):
    """Return whether an error is the unbiased signed square."""
    is_binned = isinstance(error, BinnedError) and not isinstance(error, GroupwiseError)
    return is_binned and error.squared and error.method == "unbiased"


def _mean_over_pairs(task, unit, n_units, error):
    """Return sum over bins of (share) x (mean of r_i r_j over pairs of rows of
    different units), r = y - s.

    Beside it stand the influences of the units, what the sum would change without one
    of them, times n_units - 1; and sums x (n_units, n_bins) of centred residuals whose
    products x_i x_j are the terms of the pairs.
    """
    strategy = error.binning
    edges = strategy._edges_of(*task.sorted_for(strategy))
    n_bins = len(edges) - 1
    weight = task.sample_weight
    if weight is None:
        weight = np.ones(len(unit))
    code = np.searchsorted(edges[1:-1], task.scores)

    # 1. The weight and the sum of residuals of each unit in each bin that it has.
    cells, index = np.unique(unit * n_bins + code, return_inverse=True)
    residual = task.labels - task.scores.astype(np.float64)
    mass = np.bincount(index, weight)
    total = np.bincount(index, weight * residual)
    moments = np.stack((mass, total, mass**2, total**2))

    # 2. The term of each bin, from the sums over its units.
    unit, code = np.divmod(cells, n_bins)
    of_bins = np.stack([np.bincount(code, moment, n_bins) for moment in moments])
    terms = _terms(*of_bins)

    # 3. The mean without each unit in turn, whose terms alone change.
    lost_terms = terms[code] - _terms(*(of_bins[:, code] - moments))
    lost = np.bincount(unit, lost_terms, n_units)
    left_weight = weight.sum() - np.bincount(unit, mass, n_units)
    without = (terms.sum() - lost) / left_weight
    influence = (n_units - 1) * (without.mean() - without)

    # 4. Centred sums, scaled so that their products are the terms of the pairs.
    pairs = of_bins[0] ** 2 - of_bins[2]
    bin_weight = np.maximum(of_bins[0], 1e-300)
    has_pairs = pairs > _FEW * bin_weight**2
    share = np.divide(bin_weight, pairs, out=np.zeros(n_bins), where=has_pairs)
    scale = np.sqrt(share / weight.sum())
    mean_residual = of_bins[1] / bin_weight
    centred = scale[code] * (total - mass * mean_residual[code])
    sums = csr_array((centred, (unit, code)), (n_units, n_bins))
    return terms.sum() / weight.sum(), influence, sums


def _variance_of_pairs(one, other):
    """Return 2 sum over i != j of (x_i x_j - z_i z_j)^2, the variance of a difference
    of means over pairs alone.
    """
    pairs = (one, one, 1), (other, other, 1), (one, other, -2)
    squares = sum(sign * (a.T @ b).power(2).sum() for a, b, sign in pairs)
    own = one.power(2).sum(axis=1) - other.power(2).sum(axis=1)
    return float(max(2 * (squares - own @ own), 0.0))


def _terms(mass, total, squared_mass, squares):
    """Return mass x (mean product of two different units of a bin), 0 where there is
    one unit only.
    """
    pairs = mass**2 - squared_mass
    some = pairs > _FEW * mass**2
    return np.where(some, mass * (total**2 - squares) / np.where(some, pairs, 1), 0)
