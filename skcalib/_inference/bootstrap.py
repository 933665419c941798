"""Bootstrap intervals of calibration errors, and of any other metric."""

from functools import partial
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from skcalib._cells.reductions import binary_tasks, resolve_multiclass
from skcalib._inference.results import record_html, record_text
from skcalib._input.scored_labels import ScoredLabels
from skcalib.metrics._binned_error import BinnedError
from skcalib.metrics._errors import check_class_weight, error_power, error_root, over_classes
from skcalib._inference.resampling import cell_units, cluster_units, resampled_statistics, row_units
from skcalib.metrics._table import metric_of

__all__ = ["BootstrapOptions", "IntervalEstimate", "bootstrap_interval"]

_BLOCK_COUNTS = 1 << 21  # counts of resampled units in memory at a time


class IntervalEstimate(NamedTuple):
    """An estimate and the limits of its confidence interval.

    Parameters
    ----------
    estimate, low, high : float
        The estimate, the lower and the upper limit.
    """

    estimate: float
    low: float
    high: float

    __repr__ = record_text
    _repr_html_ = record_html


def bootstrap_interval(metric, params, arguments, given, data, estimate, kind, options):
    """Return the bootstrap interval of a metric.

    Parameters
    ----------
    metric : callable
        The metric.
    params, given : dict
        Its parameters, and those about rows and labels.
    arguments : tuple
        Labels and probabilities, as the user gave them.
    data : ScoredLabels
        The same, validated.
    estimate : float
        The metric.
    kind : {"corrected", "basic", "percentile"}
        See `calibration_error_interval`.
    options : BootstrapOptions
        How to resample.

    Returns
    -------
    interval : IntervalEstimate
        The estimate and its limits.
    """
    rows = _Rows.from_data(data, options.cluster, options.stratify)
    binned = BinnedError.from_metric(metric, params)
    if binned is not None and binned.groups is None and binned.method != "label_binned":
        return _binned_interval(binned, rows, estimate, kind, options)
    if kind == "corrected":
        raise ValueError('interval="corrected" is for the debiased and unbiased methods of calibration_error only.')
    weighted_metric = partial(metric, *arguments, **(given | params))
    resamples = Parallel(n_jobs=options.n_jobs, prefer="threads", verbose=10 if options.verbose else 0)(
        delayed(weighted_metric)(sample_weight=weight)
        for weight in rows.resampled_weights(options.n_resamples, options.rng)
    )
    low, high = _limits(estimate, None, resamples, kind, options.confidence_level)
    row = metric_of(metric)
    low, high = np.clip((low, high), *((-np.inf, np.inf) if row is None else row.limits))
    return IntervalEstimate(float(estimate), float(low), float(high))


class BootstrapOptions(NamedTuple):
    """How to resample rows."""

    confidence_level: float
    n_resamples: int
    cluster: np.ndarray | None
    stratify: bool
    rng: np.random.RandomState
    n_jobs: int | None
    verbose: bool


class _Rows(NamedTuple):
    """The rows of positive weight, and by what they are drawn."""

    data: ScoredLabels
    n_given: int
    kept: np.ndarray
    cluster: np.ndarray | None
    stratum: np.ndarray

    @classmethod
    def from_data(cls, data, cluster, stratify):
        n, kept = len(data.scores), data.kept
        cluster = None if cluster is None else cluster[kept]
        data = data if len(kept) == n else data.at(kept)
        stratum = data.labels.astype(np.int64) if stratify else np.zeros(len(kept), dtype=np.int64)
        return cls(data, n, kept, cluster, stratum)

    def units(self):
        if self.cluster is not None:
            return cluster_units(self.cluster)
        return row_units(self.data.sample_weight, self.stratum)

    def resampled_weights(self, n_resamples, rng):
        """Yield the weight of each given row in each resample."""
        units = self.units()
        values = units.row_values(self.data.sample_weight)
        for _ in range(n_resamples):
            weight = np.zeros(self.n_given)
            weight[self.kept] = values * units.draw(1, rng)[0, units.of_row]
            yield weight


def _binned_interval(error, rows, estimate, kind, options):
    """Return the interval of a binned error for its p-th power, with the bins fixed."""
    debiased = error.method != "plugin"
    if kind == "corrected" and not debiased:
        raise ValueError('interval="corrected" is for the debiased and unbiased methods of calibration_error only.')
    tasks = list(binary_tasks(rows.data, error.multiclass))
    bins = [task.statistics(error.binning) for task in tasks]
    edges = [statistics.edges for statistics in bins]
    one_task = len(tasks) == 1 and rows.cluster is None
    units = cell_units(tasks[0], edges[0], rows.stratum) if one_task else rows.units()
    size = max(1, _BLOCK_COUNTS // len(units.mass))
    n_resamples = options.n_resamples
    resamples = [
        _power(
            error,
            resampled_statistics(tasks, edges, units, options.rng, min(size, n_resamples - start)),
            rows.data,
        )
        for start in range(0, n_resamples, size)
    ]
    power, plugin = _power(error, bins, rows.data), _power(error._replace(method="plugin"), bins, rows.data)
    limits = _limits(power, plugin, np.concatenate(resamples), kind, options.confidence_level)
    if not error.squared:
        limits = [error_root(limit, error.norm) for limit in limits]
    return IntervalEstimate(float(estimate), *map(float, limits))


def _power(error, bins, data):
    powers = np.stack([error_power(statistics, error.norm, error.method) for statistics in bins], axis=-1)
    if resolve_multiclass(error.multiclass, data) != "marginal":
        return powers[..., 0]
    return over_classes(powers, check_class_weight(error.class_weight, data.classes), error.norm)


def _limits(estimate, plugin, resamples, kind, confidence_level):
    tail = (1 - confidence_level) / 2
    low, high = np.quantile(resamples, [tail, 1 - tail])
    if kind == "percentile":
        return low, high
    # The resamples of a debiased power centre on the plugin power, those of any other statistic are taken to be as far
    # from the estimate as the estimate is from the truth.
    centre = plugin if kind == "corrected" else estimate
    return estimate - (high - centre), estimate - (low - centre)
