"""Models side by side on the same samples: proper scores and calibration errors, with
paired differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import hstack
from sklearn.utils import check_random_state

from skcalib._cells.binned import counted_rows
from skcalib._cells.reductions import binary_tasks
from skcalib._errors.error import ClassPowers
from skcalib._errors.proper_scores import (
    LOSSES,
    brier_score,
    largest_brier,
    log_loss,
)
from skcalib._inference.adjustment import holm
from skcalib._inference.bootstrap import basic_limits
from skcalib._inference.differences import square_and_add
from skcalib._inference.results import IntervalEstimate, ResultTable
from skcalib._input.device_scores import DeviceScores, impossible_rows
from skcalib._input.label_weights import is_importance, label_weights
from skcalib._input.labels import check_groups
from skcalib._input.scalars import check_confidence_level, check_int
from skcalib._input.scored_labels import check_scored_labels
from skcalib._input.tensors import as_array, off_processor
from skcalib._intervals.few_events import effective_events
from skcalib._intervals.influence import (
    Influence,
    cluster_codes,
)
from skcalib._intervals.rare import mean_loss_interval
from skcalib._verdicts import (
    impossible_words,
    interval_words,
    level_words,
    pvalue_words,
    rounded,
)
from skcalib.evaluation._equal_losses import (
    EqualLosses,
    EqualSquares,
    too_few_labels,
)
from skcalib.evaluation._paired_differences import (
    Mean,
    is_mean_over_pairs,
    mean_over_pairs,
    paired_difference,
    with_pvalue,
)
from skcalib.metrics import calibration_error_interval
from skcalib.metrics._interval import unwrapped_metric
from skcalib.metrics._registry import metric_of, scorers

# How LaTeX writes the characters that are special in it.
_LATEX = {
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
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
    """Table with one row per metric and model: its value and its difference from the
    reference. ``print`` describes the table in words.

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
        Two-sided p-value of the hypothesis that the difference is 0, without and with
        adjustment over the models of a metric (Holm's method); 1 for the reference. NaN
        if the samples do not determine it.
    reason : ndarray of str, shape (n_rows,)
        The reason why limits of the metric or of the difference are NaN; an empty
        string if they are not.
    reference : str
        Name of the model with which the others are compared.
    confidence_level : float
        Coverage of each interval, in (0, 1).
    impossible : dict of ndarray of int
        By model, the positions of the samples that happened although their probability
        was 0, so that the log-loss is infinite. Empty if the log-loss is not compared.
    """

    _prints_table = False

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
    impossible: dict = field(default_factory=dict)

    def to_markdown(self):
        """Return a Markdown table, one row per model and one column per metric; the
        best value of a metric is in bold.

        Returns
        -------
        table : str
            A star marks an adjusted p-value of .05 or less for the difference from the
            reference.
        """

        def escaped(name):
            """Return a name with the column mark of Markdown escaped."""
            return name.replace("|", "\\|")

        head, *rows = self._table_texts("**{}**", escaped)
        n_metrics = len(head) - 1
        alignment = ["---", *["---:"] * n_metrics]
        lines = [head, alignment, *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def to_latex(self):
        """Return a LaTeX table (package booktabs), one row per model and one column per
        metric; the best value is in bold.

        Returns
        -------
        table : str
            A star marks an adjusted p-value of .05 or less for the difference from the
            reference.
        """

        def escaped(name):
            """Return a name with the special characters of LaTeX escaped."""
            return "".join(_LATEX.get(character, character) for character in name)

        head, *rows = self._table_texts(r"\textbf{{{}}}", escaped)
        header, *lines = [f"{' & '.join(line)} \\\\" for line in (head, *rows)]
        alignment = "l" + "r" * (len(head) - 1)
        return "\n".join(
            [
                f"\\begin{{tabular}}{{{alignment}}}",
                r"\toprule",
                header,
                r"\midrule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}",
            ]
        )

    def _table_texts(self, bold, escaped):
        """Return the texts of a table: a list of rows, each a list of str. The first
        row is the header; then each model has one, with a text for each metric.

        Parameters
        ----------
        bold : str
            A format for the best value of a metric, such as "**{}**".
        escaped : callable
            Returns a name of a model or metric with special characters escaped.
        """
        models = list(dict.fromkeys(self.model.tolist()))
        metrics = list(dict.fromkeys(self.metric.tolist()))
        header = ["model", *map(escaped, metrics)]
        rows = {model: [escaped(model)] for model in models}
        # The lines of this result come metric by metric, with one for each model.
        for k, estimate in enumerate(self.estimate):
            text = rounded(estimate, 4)
            if not np.isnan(self.low[k]):
                text = interval_words(estimate, self.low[k], self.high[k])
            has_metric = self.metric == self.metric[k]
            if estimate == self.estimate[has_metric].min():
                text = bold.format(text)
            if self.adjusted_pvalue[k] <= 0.05:
                text += "*"
            rows[self.model[k]].append(text)
        return [header, *rows.values()]

    def _sentences(self):
        """Say for each metric and model whether it differs from the reference, or what
        it is for a single model.
        """
        sentences = []
        if set(self.model.tolist()) == {self.reference}:
            level = level_words(self.confidence_level)
            for metric, *interval in zip(
                self.metric, self.estimate, self.low, self.high, strict=True
            ):
                size = interval_words(*interval, level=level)
                sentences.append(f"The {metric} of {self.reference} is {size}.")
        for k, model in enumerate(self.model):
            if model != self.reference:
                sentences.append(self._sentence(k))
        for model, positions in self.impossible.items():
            if len(positions):
                sentences.append(f"{model}: {impossible_words(len(positions))}")
        return "\n".join(sentences)

    def _sentence(self, k):
        """Return a sentence on whether the model of line k differs from the
        reference.
        """
        model = self.model[k]
        metric = self.metric[k]
        difference = self.difference[k]
        low = self.difference_low[k]
        high = self.difference_high[k]
        pvalue = self.adjusted_pvalue[k]
        side = "lower" if difference < 0 else "higher"
        if np.isnan(low) and pvalue <= 0.05:
            return (
                f"{model} has a {side} {metric} than {self.reference}, adjusted"
                f" {pvalue_words(pvalue)}; by how much cannot be said:"
                f" {self.reason[k]}."
            )
        if np.isnan(low):
            return (
                f"Whether {model} differs in {metric} from {self.reference}"
                f" (difference {rounded(difference)}) cannot be said: {self.reason[k]}."
            )
        finding = f"does not differ detectably in {metric} from {self.reference}:"
        if pvalue <= 0.05 and low <= 0 <= high:
            # The test knows the law of few labels, which the interval approximates.
            finding = (
                f"differs in {metric} from {self.reference} by the test, but not by the"
                " interval:"
            )
        elif pvalue <= 0.05:
            # Words say which is better, so that the size has no sign.
            finding = f"has a {side} {metric} than {self.reference} by"
            low, high = sorted((abs(low), abs(high)))
            difference = abs(difference)
        level = level_words(self.confidence_level)
        size = interval_words(difference, low, high, level=level)
        return f"{model} {finding} {size}, adjusted {pvalue_words(pvalue)}."


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
    weight_type: Literal["frequency", "importance"] | dict = "frequency",
    clusters: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> ModelComparison:
    """Compare models on the same samples by proper scores and calibration errors.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    models : dict or DataFrame
        One or more models: a dict that maps names to probabilities for these samples,
        of shape (n,), (n, 2) or (n, K). Each column of a data frame is a model. For a
        recalibrated model, use samples to which the recalibrator was not fitted. A
        single model gets its metrics with their intervals.
    metrics : sequence of str and callable, default=("log_loss", "brier_score", "squared_calibration_error")
        Names (those of `get_scorer_names` without ``neg_``), metrics of this library,
        and functions ``metric(y_true, y_proba, sample_weight=...)``; a
        `functools.partial` sets options. Smaller values are better.
    reference : str, default=None
        The model with which the others are compared; None means the first.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).
    n_resamples : int, default=999
        Number of draws for each error's interval, or of resamples for a custom
        function, as in `calibration_test`.
    sample_weight : array-like of shape (n,), default=None
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"} or dict, default="frequency"
        Meaning of the weights. "frequency": a weight of 2 means two identical samples.
        "importance": each sample was observed once and represents more or less than one
        (to correct for the sampling design).
        A dict gives the weight that each sample would have with each of two labels,
        a number or an array; see `skcalib.evaluation.describe_weights`.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample: dependent samples (from the same patient or match) share
        a value.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.
    random_state : int, RandomState instance or None, default=None
        Seed for the random draws.

    Returns
    -------
    comparison : ModelComparison
        A table with a row for each metric and model: `model, metric, estimate, low,
        high, difference, difference_low, difference_high, pvalue, adjusted_pvalue,
        reason`. A difference is the value of the model minus that of the reference.
        P-values are adjusted over the models of each metric by Holm's method.
        `to_frame`, `to_markdown` and `to_latex` convert the table; ``print`` describes
        it in words.

    Raises
    ------
    ValueError
        If there is no model, a reference or metric is unknown, an error
        has no interval (the kernel error), or labels, probabilities or weights are
        inconsistent; the message then names the model.

    Warns
    -----
    UserWarning
        If weights are not integers and ``weight_type="frequency"``.

    See Also
    --------
    skcalib.displays.ComparisonDisplay : Plots the differences.
    skcalib.monitoring.calibration_change : Compares different samples, such as before
        and after a change.

    Notes
    -----
    Proper scores are means over samples. The test of a difference is a t test of the
    mean of the samples' differences. With `clusters`, the variance is the jackknife
    variance of their sums over clusters (CR3), with Satterthwaite degrees of freedom
    for the within-cluster correlation of the differences. If the effective number of
    clusters is below three, the limits are NaN, and `reason` says so. The interval for
    the Brier score itself is the gamma interval of `calibration_summary`; that for the
    log-loss is a t interval, and NaN with fewer than 10 events or non-events.

    If fewer than 20 events are expected, their observed spread says little. The
    hypothesis then is that both models have the same expected loss in each sample,
    which holds for one event probability between their scores. The variance is that of
    labels with these probabilities, and with fewer than 10 expected events, up to 9,999
    sets of labels are drawn with them. Samples whose losses differ much count more: the
    number is the squared variance over the sum of expected fourth powers. With fewer
    than 10 observed events (or non-events, if they are rarer), the difference has no
    limits. With clusters, or with importance weights that say nothing of the weight of
    the other label, it has neither limits nor a p-value with fewer than 20 effective
    events; if the weights of both labels are known, labels have the probabilities that
    these weights give them in the sample. The signed square below has no p-value
    either with fewer than 10, since no drawn labels make two errors in bins equal.

    The signed square, "squared_calibration_error", is a mean of r_i r_j over pairs of
    samples in a bin, where r = y - s (with `clusters`, pairs from different clusters).
    The variance of the difference is the jackknife variance minus the contribution of
    the pairs alone, which the jackknife counts twice. If both models are calibrated,
    the test is conservative in spite of this subtraction.

    Other errors of this library are compared by applying the "square and add" method to
    their two intervals, as if the models were independent. This is conservative,
    especially for similar models. The p-value is derived from the normal distribution
    that underlies the interval. If an estimate lies above its own interval, it is
    replaced in the difference by the nearest limit of that interval. For a custom
    function, a paired basic bootstrap is used; with fewer than 20 effective events,
    neither limits nor a p-value are given.

    The guide "Do the guarantees hold?" reports the level for equally good models and
    the power compared with an unpaired test.

    References
    ----------
    Diebold and Mariano (1995), Comparing predictive accuracy. Arvesen (1969),
    Jackknifing U-statistics. Zou and Donner (2008), Construction of confidence limits
    about effect measures.

    Examples
    --------
    The second model is overconfident by a factor of 2 on the log-odds scale:

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
    # Arguments that are passed to all metrics. Those that were left out are not passed,
    # since a user's metric need not have them.
    reading = {}
    if sample_weight is not None:
        reading["sample_weight"] = sample_weight
    if pos_label is not None:
        reading["pos_label"] = pos_label
    if labels is not None:
        reading["labels"] = labels
    if hasattr(models, "columns") and not isinstance(models, dict):
        models = {name: models[name] for name in models.columns}
    y_true = _copied_once(y_true)
    data, reference = _check_models(y_true, models, reference, reading)
    counted_rows(data[reference], weight_type)  # for its checks
    cluster = None
    if clusters is not None:
        n_rows = len(data[reference].scores)
        _, codes = check_groups(clusters, n_rows, name="clusters")
        cluster = cluster_codes(codes)
    options = {
        "weight_type": weight_type,
        "clusters": cluster,
        "confidence_level": level,
        "n_resamples": n_resamples,
        # One seed, so that all models are judged by the same draws.
        "random_state": check_random_state(random_state).randint(2**31),
    }
    of_reference = data[reference]
    by_label = label_weights(
        of_reference.labels,
        of_reference.sample_weight,
        weight_type,
        of_reference.classes,
        scores=of_reference.scores,
    )
    comparison = _Comparison(
        y_true, models, data, reference, reading, options, by_label
    )
    columns = {name: [] for name in _COLUMNS}
    is_other = np.array([name != reference for name in models])
    for metric_name, metric in _check_metrics(metrics).items():
        lines = comparison.lines(metric)
        pvalues = np.array([line.pvalue for line in lines])
        adjusted = np.ones(len(models))
        adjusted[is_other] = holm(pvalues[is_other])
        for model, line, adjusted_pvalue in zip(models, lines, adjusted, strict=True):
            cells = {
                "model": model,
                "metric": metric_name,
                **line._asdict(),
                "adjusted_pvalue": adjusted_pvalue,
            }
            for name, column in columns.items():
                column.append(cells[name])
    for name, column in columns.items():
        columns[name] = np.array(column)
    return ModelComparison(
        **columns,
        reference=reference,
        confidence_level=level,
        impossible=_impossible_by_model(data, columns["metric"]),
    )


def _copied_once(y_true):
    """Return labels that NumPy cannot read as an array, for all models and metrics."""
    if off_processor(y_true)[0] is None:
        return y_true
    return as_array(y_true)[0]


def _impossible_by_model(data, metric_names):
    """Return the positions of the samples that happened although their probability was
    0, by model; nothing if the log-loss is not among the metrics.
    """
    if "log_loss" not in metric_names:
        return {}
    positions = {}
    for name, rows in data.items():
        kept = rows.at(rows.kept)  # of a weight above 0
        positions[name] = rows.kept[impossible_rows(kept.scores, kept.labels)]
    return positions


def _check_models(y_true, models, reference, reading):
    """Return the validated `ScoredLabels` of each model by name, and the name of the
    reference; the errors name the model.
    """
    are_models = isinstance(models, dict) and len(models) >= 1
    if not are_models or any(not isinstance(name, str) for name in models):
        raise ValueError(
            "models must be a dict from names (str) to probabilities, one or more,"
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
            data[name] = check_scored_labels(y_true, y_proba, drop=False, **reading)
        except TypeError as error:
            raise TypeError(f"models[{name!r}]: {error}") from None
        except ValueError as error:
            raise ValueError(f"models[{name!r}]: {error}") from None
    return data, reference


def _name_of(metric):
    """Return the name of a function, with the options that a partial gives it."""
    function, params = unwrapped_metric(metric, params={})
    name = getattr(function, "__name__", type(function).__name__)
    if not params:
        return name
    options = [f"{option}={value!r}" for option, value in params.items()]
    return f"{name}({', '.join(options)})"


def _check_metrics(metrics):
    """Return the metrics, callables, by their names in the table. `metrics` holds names
    of scorers and callables, or is one of them.
    """
    known = {}
    for name, (metric, options) in scorers().items():
        known[name.removeprefix("neg_")] = partial(metric, **options)
    if isinstance(metrics, str) or callable(metrics):
        metrics = [metrics]
    by_name = {}
    for metric in metrics:
        if isinstance(metric, str) and metric not in known:
            raise ValueError(
                f"metrics: there is no {metric!r}. The names are"
                f" {', '.join(sorted(known))}."
            )
        if isinstance(metric, str):
            name = metric
            metric = known[metric]
        else:
            name = _name_of(metric)
        if name in by_name:
            raise ValueError(f"metrics contains {name!r} twice.")
        by_name[name] = metric
    if not by_name:
        raise ValueError("metrics is empty: name one, for example 'brier_score'.")
    return by_name


class _Line(NamedTuple):
    """A line of the table for a model and a metric, without their names and the
    adjusted p-value: the metric with its limits, the difference from the reference with
    its limits and p-value, and why limits are NaN.
    """

    estimate: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    pvalue: float
    reason: str


class _Comparison(NamedTuple):
    """The samples of all models, and how they are compared.

    Attributes
    ----------
    y_true : array-like
        The user's labels.
    models : dict
        The user's probabilities by name.
    data : dict of ScoredLabels
        Validated samples by the name of the model, those of weight zero among them.
    reference : str
        Name of the reference.
    reading : dict
        Arguments of metrics: weights, `pos_label`, `labels`.
    options : dict
        Arguments of `calibration_error_interval`: `weight_type`, `clusters` (codes or
        None), `confidence_level`, `n_resamples` and `random_state` (a seed).
    label_weights : LabelWeights or None
        What importance weights say about the labels; None if weights count samples.
    """

    y_true: object
    models: dict
    data: dict
    reference: str
    reading: dict
    options: dict
    label_weights: object

    def lines(self, metric):
        """Return a `_Line` for each model: the metric with its interval, and the
        difference from the reference with its interval and p-value.
        """
        intervals, differences = self._intervals_and_differences(metric)
        lines = []
        for name in self.models:
            interval = intervals[name]
            reason = interval.reason if np.isnan(interval.low) else ""
            if name == self.reference:
                # A difference of 0 from itself, with p-value 1.
                lines.append(_Line(*interval, 0.0, 0.0, 0.0, 1.0, reason))
                continue
            difference, pvalue = differences[name]
            if np.isnan(difference.low):
                reason = difference.reason or reason
            lines.append(_Line(*interval, *difference, pvalue, reason))
        return lines

    def _others(self):
        """Return the names of all models but the reference."""
        return [name for name in self.models if name != self.reference]

    def _intervals_and_differences(self, metric):
        """Return two dicts by name of the model: the `IntervalEstimate` of the metric,
        and, for all models but the reference, a pair (`IntervalEstimate` of the
        difference from the reference, p-value).

        The method depends on the metric: mean losses and means over pairs are compared
        row by row, other errors of the library by their intervals alone, and any other
        function by a bootstrap.
        """
        # The function of the library, or of the user, and the options that a partial
        # gives it.
        function, params = unwrapped_metric(metric, params={})
        if function in (log_loss, brier_score):
            loss = "brier" if function is brier_score else "log"
            intervals, means = self._mean_losses(loss)
            return intervals, self._paired_differences(means, loss)
        # What the library knows of its errors: None for any other function.
        known_metric = metric_of(function)
        if known_metric is None:
            return self._bootstrapped(partial(function, **params))
        error = known_metric.error_of(params)
        options = {"metric": metric, **self.reading, **self.options}
        intervals = {}
        for name, y_proba in self.models.items():
            scores = self.data[name].scores
            if isinstance(scores, DeviceScores):
                y_proba = scores  # with what was copied already
            intervals[name] = calibration_error_interval(
                self.y_true, y_proba, **options
            )
        if not is_mean_over_pairs(error):
            return intervals, self._independent_differences(intervals)
        means = {}
        for name, data in self.data.items():
            means[name] = self._mean_over_pairs(error, data)
            intervals[name] = intervals[name]._replace(estimate=means[name].estimate)
        return intervals, self._paired_differences(means)

    def _paired_differences(self, means, loss=None):
        """Return, by model, the difference of its `Mean` from that of the reference,
        with its p-value: compared row by row, or pair by pair. `loss` is the name of a
        loss, None for pairs.
        """
        level = self.options["confidence_level"]
        reference = means[self.reference]
        differences = {}
        for name in self._others():
            if loss is None:
                known = self.label_weights
                is_constant = known is None or known.form == "constant"
                is_unequal = self.options["clusters"] is not None or not is_constant
                observed = means[name].observed_events
                observed = min(observed, reference.observed_events)
                few_events = EqualSquares(observed, is_unequal)
            else:
                label_weights = self.label_weights
                if label_weights is not None:
                    label_weights = label_weights[self.data[self.reference].kept]
                few_events = EqualLosses(
                    loss,
                    self._of_positive_weight(self.data[name])[0],
                    self._of_positive_weight(self.data[self.reference])[0],
                    reference.influence,
                    label_weights,
                )
            differences[name] = paired_difference(
                means[name], reference, level, few_events
            )
        return differences

    def _independent_differences(self, intervals):
        """Return, by model, the difference from the reference, with its p-value, from
        both intervals alone, as if the models were independent: this is conservative.
        """
        differences = {}
        for name in self._others():
            difference, centre = square_and_add(
                intervals[name], intervals[self.reference]
            )
            differences[name] = with_pvalue(
                difference, centre, self.options["confidence_level"]
            )
        return differences

    def _mean_losses(self, loss_name):
        """Return the `IntervalEstimate` of the mean "brier" or "log" loss, and the
        `Mean` with the influence of each row, both as dicts by model.
        """
        level = self.options["confidence_level"]
        intervals = {}
        means = {}
        for name, model_data in self.data.items():
            data, cluster = self._of_positive_weight(model_data)
            loss = LOSSES[loss_name](data.scores, data.labels)
            estimate = float(np.average(loss, weights=data.sample_weight))
            # The influence of a row on its mean loss is its loss less the mean.
            influence = Influence(
                loss - estimate,
                data.sample_weight,
                is_importance(self.options["weight_type"]),
                cluster,
            )
            if loss_name == "brier":
                largest = largest_brier(data.scores)
                low, high, reason = mean_loss_interval(loss, largest, influence, level)
            else:  # there is no largest log-loss
                low, high, reason = influence.interval(estimate, level)
                low = max(low, 0.0)  # no loss is negative
                reason = reason or too_few_labels(data.labels, influence)
            if reason:
                low = high = np.nan
            intervals[name] = IntervalEstimate(estimate, low, high, reason=reason)
            means[name] = Mean(estimate, influence)
        return intervals, means

    def _bootstrapped(self, metric):
        """Return the same two dicts as `_intervals_and_differences` for any function of
        labels and probabilities, by a basic bootstrap.

        All models and differences have the same resamples, so that the comparison is
        paired.
        """
        # Resamples of few events vary as the scores do, not as the labels.
        data, cluster = self._of_positive_weight(self.data[self.reference])
        importance = is_importance(self.options["weight_type"])
        residual = np.zeros(len(data.labels))
        influence = Influence(residual, data.sample_weight, importance, cluster)
        reason = too_few_labels(data.labels, influence, is_unknown=True)
        # The metric of each model as a function of ``sample_weight=``.
        metric_by_model = {}
        intervals = {}
        for name, y_proba in self.models.items():
            of_model = partial(metric, self.y_true, y_proba, **self.reading)
            metric_by_model[name] = of_model
            intervals[name] = self._bootstrap_interval(of_model, reason)
        differences = {}
        for name in self._others():
            of_difference = partial(
                _difference, metric_by_model[name], metric_by_model[self.reference]
            )
            interval = self._bootstrap_interval(of_difference, reason)
            differences[name] = (interval, np.nan)
            if not reason:
                differences[name] = with_pvalue(
                    interval, interval.estimate, self.options["confidence_level"]
                )
        return intervals, differences

    def _bootstrap_interval(self, metric, reason):
        """Return the `IntervalEstimate` of a function by a basic bootstrap, without
        limits if there is a reason for that.

        ``metric()`` returns its value, a float, and ``metric(sample_weight=weights)``
        the value in a resample with these weights (n,).
        """
        estimate = float(metric())
        if reason:
            return IntervalEstimate(estimate, np.nan, np.nan, reason=reason)
        # A seed, so that the resamples are the same in each call.
        rng = check_random_state(self.options["random_state"])
        limits = basic_limits(
            metric,
            self.data[self.reference],
            estimate,
            self.options["confidence_level"],
            self.options["n_resamples"],
            rng,
            cluster=self.options["clusters"],
        )
        return IntervalEstimate(estimate, *limits)

    def _of_positive_weight(self, data):
        """Return the samples of positive weight, and the codes of their clusters or
        None.
        """
        rows = data.kept
        cluster = self.options["clusters"]
        if cluster is None:
            return data.at(rows), None
        return data.at(rows), cluster_codes(cluster[rows])

    def _mean_over_pairs(self, error, data):
        """Return the unbiased squared error of one model as a `Mean` over pairs of
        independent units in a bin, with the jackknife influence of the units.

        A unit is a cluster, or a row (each copy of it, for frequency weights). `error`
        is the `BinnedError` or `GroupwiseError`, `data` the `ScoredLabels` of the
        model.
        """
        data, unit = self._of_positive_weight(data)
        is_clustered = unit is not None
        if not is_clustered:
            data = self._each_copy_a_row(data)
            unit = np.arange(len(data.scores))
        mass = np.bincount(unit, data.sample_weight)  # weight of each unit
        names, unit = np.unique(unit, return_inverse=True)
        # An entry for each binary problem: each class of a marginal error, or the only
        # problem there is. The sums are arrays (n_units, n_bins).
        means = []
        influences = []
        unit_sums = []
        events = []
        for task in binary_tasks(data, error.multiclass, pooled=True):
            # In a pooled problem a sample has a row for each class.
            unit_of_row = np.repeat(unit, task.n_columns)
            mean, influence, sums = mean_over_pairs(
                task, unit_of_row, len(names), error
            )
            means.append(mean)
            influences.append(influence)
            unit_sums.append(sums)
            observed = effective_events(
                task.labels,
                task.sample_weight,
                is_importance(self.options["weight_type"]),
                unit_of_row if is_clustered else None,
                residual=task.labels - task.scores,
            )
            events.append(observed)
        # The problems are combined by the weights of their classes in the error.
        classes = ClassPowers.of(data, error)
        # A term of the mean is a product of two sums of a class: each sum gets the root
        # of the weight.
        factors = [1.0]
        if classes.weight is not None:
            factors = np.sqrt(classes.weight)
        weighted_sums = []
        for factor, sums in zip(factors, unit_sums, strict=True):
            weighted_sums.append(factor * sums)
        return Mean(
            estimate=float(classes.combine(np.stack(means, axis=-1))),
            influence=classes.combine(np.stack(influences, axis=-1)),
            sums=hstack(weighted_sums, format="csr"),
            cluster_mass=mass if is_clustered else None,
            mass=mass,
            observed_events=max(events),
        )

    def _each_copy_a_row(self, data):
        """Return the samples, each repeated as often as its frequency weight says."""
        if data.sample_weight is None or is_importance(self.options["weight_type"]):
            return data
        copies = data.sample_weight.astype(np.intp)
        repeated = data.at(np.repeat(np.arange(len(data.scores)), copies))
        return repeated._replace(sample_weight=None)


def _difference(metric, reference_metric, **weights):
    """Return the difference of two functions of ``sample_weight=``, which is given or
    not.
    """
    return metric(**weights) - reference_metric(**weights)
