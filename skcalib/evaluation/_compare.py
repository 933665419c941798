"""Models side by side on the same samples: proper scores and calibration errors, with
paired differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from skcalib._cells.binned import counted_rows
from skcalib._inference.adjustment import holm
from skcalib._input.device_scores import impossible_rows
from skcalib._input.label_weights import label_weights
from skcalib._input.labels import check_groups
from skcalib._input.scalars import check_confidence_level, check_int
from skcalib._input.scored_labels import check_scored_labels
from skcalib._input.tensors import as_array, off_processor
from skcalib._intervals.influence import (
    cluster_codes,
)
from skcalib.evaluation._compared_models import ComparedModels
from skcalib.evaluation._model_comparison import ModelComparison
from skcalib.metrics._interval import unwrapped_metric
from skcalib.metrics._registry import scorers

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
    comparison = ComparedModels(
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
    """Return by model the positions of the samples whose label had probability 0;
    nothing without the log-loss.
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
    reference, for None the first; the errors name the model. `reading` holds how labels
    and weights are read.
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
