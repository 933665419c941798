"""An error and its data, as the hypotheses that its interval and its resampling test are about."""

from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter1d

from skcalib._cells.cells import Cells
from skcalib._cells.reductions import (
    BinnedTask,
    binary_tasks,
    group_codes,
    one_label_a_row,
    reduced,
)
from skcalib._errors.power import ClassPowers
from skcalib._inference.count_draws import (
    ClusterDraws,
    CountDraws,
    RowsInCells,
    exclusive_draws,
)
from skcalib._inference.inversion import Hypotheses
from skcalib._progress import Progress

_MOST_CLASSES = 30  # whose dependence is drawn
_MOST_COUNTS = (
    1 << 24
)  # of cells and draws up to which the dependence between classes is drawn
_FEWEST_CELLS, _MOST_CELLS = (
    64,
    1 << 13,
)  # more distinct scores are pooled to cells of nearly equal scores
_WIDTHS = (
    1,
    3,
)  # bins over which the observed deviation is smoothed, for two more directions
_WINDOWS = (
    0.15,
    0.5,
)  # shares of the rows over which the residuals of scores are averaged


class Resampling(NamedTuple):
    """What is drawn: how often, from which numbers, which clusters, whether weights do not count rows; progress."""

    n_draws: int
    rng: np.random.RandomState
    cluster: np.ndarray | None = None
    importance: bool = False
    progress: Progress = Progress("", False)

    def at(self, rows):
        """Return the same for the rows of an index."""
        return (
            self if self.cluster is None else self._replace(cluster=self.cluster[rows])
        )


def error_hypotheses(error, data, resampling):
    """Return the hypotheses about an error, for validated data.

    Parameters
    ----------
    error : Error
        The error with its parameters.
    data : ScoredLabels
        The data; rows of weight zero may be among it.
    resampling : Resampling
        What is drawn; its clusters have one code a row of `data`.

    Returns
    -------
    hypotheses : Hypotheses
        For `inverted_limits` and `resampling_pvalue`.
    """
    segments, weights, cluster = _segments(error.groups, data, resampling.cluster)
    classes = ClassPowers.of(data, error)
    dependent = cluster is not None or _is_one_label_a_row(
        data, classes, error.multiclass
    )
    most = (
        max(_MOST_COUNTS // (resampling.n_draws * classes.n_tasks), _FEWEST_CELLS)
        if dependent
        else _MOST_CELLS
    )
    tasks = [
        task
        for segment in segments
        for task in binary_tasks(segment, error.multiclass, pooled=True)
    ]
    powers = [error.of_task(task, min(most, _MOST_CELLS)) for task in tasks]
    cells = Cells.joined([power.cells for power in powers])
    ends = np.cumsum([len(power.weight) for power in powers])[:-1]

    def combine_groups(powers):
        powers = classes.combine(
            powers.reshape(*powers.shape[:-1], len(segments), classes.n_tasks)
        )
        errors = (
            powers
            if error.norm == np.inf
            else np.maximum(powers, 0) ** (1 / error.norm)
        )
        return reduced(errors, weights, error.reduce)

    combine = classes.combine if error.groups is None else combine_groups
    drawn = [powers[0].at(cells.event_frequency)] if len(powers) == 1 else powers

    def statistic(frequency):
        pieces = zip(drawn, np.split(frequency, ends, axis=-1), strict=True)
        return combine(
            np.stack([power.power(piece) for power, piece in pieces], axis=-1)
        )

    if error.groups is None and len(drawn) == 1:
        statistic = drawn[0].power

    def noiseless(frequency):
        pieces = zip(powers, np.split(frequency, ends), strict=True)
        power = float(
            combine(np.array([power.noiseless(piece) for power, piece in pieces]))
        )
        return power if error.groups is not None else error.value(power)

    directions = _directions(powers, cells)
    trials = (
        _effective_trials(tasks, powers, classes.n_tasks, cells)
        if resampling.importance
        else None
    )
    uniforms = None
    if dependent and (
        cluster is not None or resampling.n_draws * len(cells.weight) <= _MOST_COUNTS
    ):
        rows = _rows_of(tasks, powers, classes.n_tasks)
        if cluster is None:
            uniforms = exclusive_draws(
                rows, len(cells.weight), resampling.n_draws, resampling.rng
            )
    if dependent and cluster is not None:
        draw = ClusterDraws(
            cells, rows, directions[0], cluster, resampling.n_draws, resampling.rng
        )
    else:
        draw = CountDraws(cells, resampling.n_draws, resampling.rng, uniforms, trials)
    observed = float(combine(np.array([power.observed for power in drawn])))
    return Hypotheses(
        cells, draw, statistic, noiseless, observed, directions, resampling.progress
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
    weights = [
        len(one.scores) if one.sample_weight is None else one.sample_weight.sum()
        for one in segments
    ]
    return segments, np.array(weights), None if cluster is None else cluster[order]


def _is_one_label_a_row(data, classes, multiclass):
    """Return whether a row has a label in several binary problems, or in one several times, to be drawn together."""
    if multiclass != "pooled" and (
        not 1 < classes.n_tasks <= _MOST_CLASSES or data.sample_weight is not None
    ):
        return False
    return data.is_binary or one_label_a_row(data.scores)


def _rows_of(tasks, powers, n_tasks):
    firsts = np.cumsum([0] + [len(power.weight) for power in powers])

    n_columns = tasks[0].n_columns

    def by_row(columns):
        parts = [np.concatenate(columns[k::n_tasks]) for k in range(n_tasks)]
        return (
            np.column_stack(parts)
            if n_columns == 1
            else parts[0].reshape(-1, n_columns)
        )

    cells = [
        first + power.cells.of_rows(task.scores)
        for first, power, task in zip(firsts, powers, tasks, strict=False)
    ]
    weights = [task.sample_weight for task in tasks[::n_tasks]]
    return RowsInCells(
        by_row(cells),
        by_row([task.scores for task in tasks]),
        by_row([task.labels for task in tasks]),
        None if weights[0] is None else np.concatenate(weights)[::n_columns],
    )


def _effective_trials(tasks, powers, n_tasks, cells):
    """Return how many equal rows the weights of each cell are worth, W^2 / sum of w^2; None without weights."""
    if isinstance(tasks[0], BinnedTask):
        return cells.weight**2 / cells.weight_squared
    rows = _rows_of(tasks, powers, n_tasks)
    if rows.sample_weight is None:
        return None
    return cells.weight**2 / np.bincount(
        rows.cell.ravel(), np.repeat(rows.sample_weight**2, rows.cell.shape[1])
    )


def _directions(powers, cells):
    """Return the directions, the observed one first, for the powers of binary problems and all their cells.

    Scores stand for their neighbours: their residuals are averaged. The deviations of bins are taken as they are. An
    unbiased error of norm 2 needs no more, for it depends on the sum of their squares alone. Other errors also see how
    they are spread: a smoothed deviation is more even, a firm one, without what may be noise, less.
    """
    if not powers[0].is_binned:
        found = [
            np.concatenate([_averaged(power.cells, window) for power in powers])
            for window in _WINDOWS
        ]
        return found if np.any(found[0]) else [_of_the_size_of_noise(cells)]
    deviation = (
        cells.deviation if np.any(cells.deviation) else _of_the_size_of_noise(cells)
    )
    if powers[0].is_sum_of_squares:
        return [deviation]
    ends = np.cumsum([len(power.weight) for power in powers])[:-1]
    weight = 1 / (
        cells.variance + 0.25 / (cells.weight + 1) ** 2
    )  # finite also where no event is possible
    pieces = list(zip(np.split(deviation, ends), np.split(weight, ends), strict=True))
    smooth = [
        np.concatenate([_smoothed(*piece, width) for piece in pieces])
        for width in _WIDTHS
    ]
    square = deviation**2
    firm = np.divide(
        deviation * square,
        square + cells.variance,
        out=np.zeros_like(deviation),
        where=square > 0,
    )
    return [deviation, *smooth, firm]


def _of_the_size_of_noise(cells):
    for deviation in (
        np.sqrt(cells.variance),
        (0.5 - cells.mean_score) / (cells.weight + 1),
    ):
        if np.any(deviation):
            return deviation
    return np.ones(len(cells.weight))


def _smoothed(deviation, weight, width):
    """Return the weighted mean over neighbouring bins, Gaussian with a deviation of `width` bins."""
    weighted, total = (
        gaussian_filter1d(values, width, mode="constant")
        for values in (weight * deviation, weight)
    )
    return weighted / total


def _averaged(cells, window):
    """Return the residuals averaged twice by a moving mean over a share of the rows, next to the ends over fewer."""
    deviation, total = cells.deviation, np.append(0.0, np.cumsum(cells.weight))
    middle = (total[1:] + total[:-1]) / 2
    low = np.maximum(middle - window / 2 * total[-1], 0)
    high = np.minimum(middle + window / 2 * total[-1], total[-1])
    for _ in range(2):
        sums = np.append(0.0, np.cumsum(cells.weight * deviation))
        deviation = (np.interp(high, total, sums) - np.interp(low, total, sums)) / (
            high - low
        )
    return deviation
