"""A metric and its data, as the hypotheses that its interval and its resampling test are about."""

from functools import partial
from typing import NamedTuple

import numpy as np

from skcalib._cells.reductions import BinnedTask, binary_tasks, resolve_multiclass
from skcalib._input.scalars import resolve_norm
from skcalib.binning import assign_bins
from skcalib.metrics._bin_free import (
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
    neighborhood_calibration_error,
)
from skcalib.metrics._bin_free_hypotheses import ScoreCells, bin_free_hypotheses
from skcalib.metrics._bin_free_powers import CumulativePower, KernelPower, NeighborhoodPower, SmoothPower
from skcalib.metrics._binned_error import BinnedError
from skcalib.metrics._binned_hypotheses import BinnedPart, binned_hypotheses
from skcalib._inference.dependent_draws import ClusterDraws, one_label_a_row
from skcalib.metrics._errors import check_class_weight, error_root, over_classes
from skcalib.metrics._groupwise import group_codes, reduced
from skcalib.metrics._smoothing import kde_calibration_error, smooth_calibration_error
from skcalib._errors.sweep import SweepPower

__all__ = ["Resampling", "has_hypotheses", "is_calibration_error", "metric_hypotheses"]

_MOST_CLASSES = 30  # whose dependence is drawn
_MOST_COUNTS = 1 << 24  # of cells and draws up to which the dependence between classes is drawn
_FEWEST_CELLS = 64

_BIN_FREE = {
    kde_calibration_error: KernelPower,
    kolmogorov_smirnov_calibration_error: CumulativePower,
    kuiper_calibration_error: partial(CumulativePower, two_sided=True),
    neighborhood_calibration_error: NeighborhoodPower,
    smooth_calibration_error: SmoothPower,
}


class Resampling(NamedTuple):
    """What is drawn: how often, from which random numbers, and whether whole clusters together."""

    n_draws: int
    rng: np.random.RandomState
    cluster: np.ndarray | None = None


def is_calibration_error(metric):
    """Return whether a metric is a calibration error of this library, which is 0 for a calibrated model."""
    return metric in _BIN_FREE or BinnedError.from_metric(metric, {}) is not None


def has_hypotheses(metric, params):
    """Return whether a resampling test of a metric draws sums of cells: its bins must not depend on the labels."""
    if not is_calibration_error(metric):
        return False
    error = BinnedError.from_metric(metric, params)
    return error is None or error.is_sweep or not error.binning.needs_labels


def metric_hypotheses(metric, params, data, resampling):
    """Return the hypotheses about a calibration error of this library, for its validated data.

    Parameters
    ----------
    metric : callable
        The calibration error.
    params : dict
        Its parameters.
    data : ScoredLabels
        Its input; rows of weight zero may be among it.
    resampling : Resampling
        What is drawn; its clusters have one code a row of `data`.

    Returns
    -------
    hypotheses : Hypotheses
        For `inverted_limits` and `resampling_pvalue`.
    """
    error = BinnedError.from_metric(metric, params)
    if error is None:
        return _bin_free(_BIN_FREE[metric], params, data, resampling)
    if error.is_sweep:
        given = {name: params[name] for name in ("multiclass", "class_weight", "squared") if name in params}
        params = {"norm": error.norm, "base": error.binning.base, **given}
        return _bin_free(SweepPower, params, data, resampling)
    return _binned(error, data, resampling)


class _Classes(NamedTuple):
    """How many binary problems there are, and how their powers are one."""

    norm: float
    n_tasks: int
    weight: np.ndarray | None

    @classmethod
    def of(cls, data, multiclass, class_weight, norm):
        if resolve_multiclass(multiclass, data) != "marginal":
            return cls(norm, 1, None)
        return cls(norm, len(data.classes), check_class_weight(class_weight, data.classes))

    def combine(self, powers):
        """Return the power of the whole for those of its binary problems (..., n_tasks)."""
        return powers[..., 0] if self.weight is None else over_classes(powers, self.weight, self.norm)


def _binned(error, data, resampling):
    classes = _Classes.of(data, error.multiclass, error.class_weight, error.norm)
    segments, weights, cluster = _segments(error.groups, data, resampling.cluster)
    dependent = cluster is not None or _is_one_label_a_row(data, classes)
    keep = dependent or error.method == "label_binned"
    parts = [
        BinnedPart(task.statistics(error.binning), task if keep else None)
        for segment in segments
        for task in binary_tasks(segment, error.multiclass)
    ]

    def combine(powers):
        powers = classes.combine(powers.reshape(*powers.shape[:-1], len(segments), classes.n_tasks))
        if error.groups is None:
            return powers[..., 0]
        errors = powers if error.norm == np.inf else np.maximum(powers, 0) ** (1 / error.norm)
        return reduced(errors, weights, error.reduce)

    def root(power):
        return power if error.squared or error.groups is not None else error_root(power, error.norm)

    n_cells = sum(np.count_nonzero(part.statistics.weight) for part in parts)
    draws = None
    if dependent and (cluster is not None or resampling.n_draws * n_cells <= _MOST_COUNTS):
        cell_of = partial(_binned_cells, parts)
        tasks = [part.task for part in parts]
        draws = partial(_dependent_draws, tasks, cell_of, classes.n_tasks, resampling._replace(cluster=cluster))
    return binned_hypotheses(parts, error.norm, error.method, combine, root, resampling.n_draws, resampling.rng, draws)


def _bin_free(power, params, data, resampling):
    params = dict(params)
    multiclass, class_weight = params.pop("multiclass", "auto"), params.pop("class_weight", None)
    squared, norm = params.pop("squared", False), resolve_norm(params.get("norm", 1))
    if "norm" in params:
        params["norm"] = norm
    (data,), _, cluster = _segments(None, data, resampling.cluster)
    classes = _Classes.of(data, multiclass, class_weight, norm)
    dependent = cluster is not None or _is_one_label_a_row(data, classes)
    most = max(_MOST_COUNTS // (resampling.n_draws * classes.n_tasks), _FEWEST_CELLS) if dependent else None
    tasks = list(binary_tasks(data, multiclass))
    parts = [ScoreCells.from_distinct(task.distinct_scores(), most) for task in tasks]
    draws = None
    if dependent:
        cell_of = partial(_pooled_cells, parts, tasks)
        draws = partial(_dependent_draws, tasks, cell_of, classes.n_tasks, resampling._replace(cluster=cluster))
    return bin_free_hypotheses(
        parts,
        partial(power, **params),
        classes.combine,
        lambda value: value if squared else error_root(value, norm),
        resampling.n_draws,
        resampling.rng,
        draws,
    )


def _segments(groups, data, cluster):
    """Return the rows of each group, the weights of the groups, and the clusters in the order of these rows."""
    if isinstance(data, BinnedTask) and groups is None:
        return [data], None, None
    order, starts = data.kept, []
    if groups is not None:
        codes = group_codes(groups, data)[1][order]
        by_group = np.argsort(codes, kind="stable")
        order, starts = order[by_group], np.flatnonzero(np.diff(codes[by_group])) + 1
    if groups is None and len(order) == len(data.scores):
        segments = [data]
    else:
        segments = [data.at(rows) for rows in np.split(order, starts)]
    weights = [len(one.scores) if one.sample_weight is None else one.sample_weight.sum() for one in segments]
    return segments, np.array(weights), None if cluster is None else cluster[order]


def _is_one_label_a_row(data, classes):
    """Return whether a row has a label in several binary problems, which can be drawn together."""
    if not 1 < classes.n_tasks <= _MOST_CLASSES or data.sample_weight is not None:
        return False
    return data.is_binary or bool(np.all(np.abs(data.scores.sum(axis=1) - 1) < 1e-2))


def _binned_cells(parts):
    """Return for each part the cell of each of its rows."""
    cells, first = [], 0
    for part in parts:
        filled = part.statistics.weight > 0
        bins = assign_bins(part.task.scores, part.statistics.edges)
        cells.append(first + (np.cumsum(filled) - 1)[bins])
        first += np.count_nonzero(filled)
    return cells


def _pooled_cells(parts, tasks):
    firsts = np.cumsum([0] + [len(part.weight) for part in parts])
    return [first + part.of_rows(task.scores) for first, part, task in zip(firsts, parts, tasks, strict=False)]


def _dependent_draws(tasks, cell_of, n_tasks, resampling, cells, deviation):
    cell_of = _by_row(cell_of(), n_tasks)
    scores = _by_row([task.scores for task in tasks], n_tasks)
    n_draws, rng, cluster = resampling
    if cluster is None:
        return one_label_a_row(cells, cell_of, scores, n_draws, rng)
    weights = [task.sample_weight for task in tasks[::n_tasks]]
    weight = None if weights[0] is None else np.concatenate(weights)
    residual = _by_row([task.labels for task in tasks], n_tasks) - scores
    return ClusterDraws(cells, cell_of, residual, weight, cluster, deviation, n_draws, rng)


def _by_row(columns, n_tasks):
    """Return (n, n_tasks) for one array per task, those of the first group of rows first."""
    return np.column_stack([np.concatenate(columns[k::n_tasks]) for k in range(n_tasks)])
