"""An error and its data, as the hypotheses that its interval and its resampling test
are about.
"""

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
from skcalib._errors.error import ClassPowers
from skcalib._inference.count_draws import (
    ClusterDraws,
    CountDraws,
    RowsInCells,
    copula_draws,
    exclusive_draws,
    label_copula,
)
from skcalib._inference.inversion import Hypotheses
from skcalib._progress import Progress
from skcalib._rows.blocks import taken

_MOST_CLASSES = 30  # whose dependence is drawn
# of cells and draws up to which the dependence between classes is drawn
_MOST_COUNTS = 1 << 24
# more distinct scores are pooled to cells of nearly equal scores
_FEWEST_CELLS, _MOST_CELLS = 64, 1 << 13
# bins over which the observed deviation is smoothed, for two more directions
_WIDTHS = 1, 3
# shares of the rows over which the residuals of scores are averaged
_WINDOWS = 0.15, 0.5


class Resampling(NamedTuple):
    """What is drawn: how often, from which numbers, which clusters, whether weights do
    not count rows; progress.
    """

    n_draws: int
    rng: np.random.RandomState
    cluster: np.ndarray | None = None
    importance: bool = False
    progress: Progress = Progress("", False)

    def at(self, rows):
        """Return the same for the rows of an index."""
        if self.cluster is None:
            return self
        return self._replace(cluster=self.cluster[rows])


def error_hypotheses(error, data, resampling):
    """Return the hypotheses about an error, for validated data.

    Parameters
    ----------
    error : CalibrationError
        The error with its parameters.
    data : ScoredLabels or BinnedTask
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
    dependent = cluster is not None or _labels_depend(error, data, classes)
    most = _MOST_CELLS
    if dependent:
        # Dependent draws are kept for all cells at once.
        affordable = _MOST_COUNTS // (resampling.n_draws * classes.n_tasks)
        most = min(max(affordable, _FEWEST_CELLS), _MOST_CELLS)
    tasks = []
    for segment in segments:
        tasks.extend(binary_tasks(segment, error.reduction(data), pooled=True))
    powers = [error.of_task(task, most) for task in tasks]
    problem = _JoinedPowers(error, classes, powers, weights)
    directions = _directions(powers, problem.cells)
    rows = _TaskRows(tasks, powers, classes.n_tasks)
    deviation = directions[0] if data.is_multilabel and dependent else None
    if cluster is not None:
        draw = ClusterDraws(
            problem.cells,
            rows.in_cells(deviation),
            directions[0],
            cluster,
            resampling.n_draws,
            resampling.rng,
        )
    else:
        draw = _count_draws(problem.cells, rows, dependent, resampling, deviation)
    return Hypotheses(
        problem.cells,
        draw,
        problem.statistic,
        problem.noiseless,
        problem.observed,
        directions,
        resampling.progress,
    )


class _JoinedPowers:
    """An error as a function of the event frequencies of all cells of all its problems.

    The problems stand group by group, and in each group class by class.

    Parameters
    ----------
    error : CalibrationError
        The error.
    classes : ClassPowers
        How the classes of a group are one number.
    powers : list of ErrorPower
        One for each problem.
    weights : ndarray of shape (n_groups,) or None
        Weights of the groups.
    """

    def __init__(self, error, classes, powers, weights):
        self._error = error
        self._classes = classes
        self._powers = powers
        self._weights = weights
        self.cells = Cells.joined([power.cells for power in powers])
        self._ends = np.cumsum([len(power.weight) for power in powers])[:-1]
        # Draws are only put in order: one problem has a quicker power for that.
        self._drawn = powers
        if len(powers) == 1:
            self._drawn = [powers[0].at(self.cells.event_frequency)]

    def statistic(self, frequency):
        """Return what draws are compared by, for frequencies (draws, m)."""
        if len(self._drawn) == 1 and self._error.groups is None:
            return self._drawn[0].power(frequency)
        pieces = np.split(frequency, self._ends, axis=-1)
        powers = [
            power.power(piece) for power, piece in zip(self._drawn, pieces, strict=True)
        ]
        return self._combined(np.stack(powers, axis=-1))

    @property
    def observed(self):
        """The statistic of the labels."""
        return float(
            self._combined(np.array([power.observed for power in self._drawn]))
        )

    def noiseless(self, frequency):
        """Return the error itself for frequencies (m,) without noise."""
        pieces = np.split(frequency, self._ends)
        powers = []
        for power, piece in zip(self._powers, pieces, strict=True):
            powers.append(power.noiseless(piece))
        combined = float(self._combined(np.array(powers)))
        if self._error.groups is not None:
            return combined  # groups are combined as errors
        return self._error.from_power(combined)

    def _combined(self, powers):
        """Return one number (...) for the powers (..., n_problems): the power of the
        classes, or the reduced errors of the groups.
        """
        if self._error.groups is None:
            return self._classes.combine(powers)
        # the classes of each group first, then the groups: (..., n_groups, n_classes)
        by_group = (*powers.shape[:-1], len(self._weights), self._classes.n_tasks)
        powers = self._classes.combine(powers.reshape(by_group))
        if self._error.norm != np.inf:
            # groups are combined as errors, of which powers are the p-th power
            powers = np.maximum(powers, 0) ** (1 / self._error.norm)
        return reduced(powers, self._weights, self._error.reduce)


def _segments(groups, data, cluster):
    """Return the rows of each group, the weights of the groups, and the clusters in the
    order of these rows.
    """
    if isinstance(data, BinnedTask) and groups is None:
        return [data], None, None
    order = data.kept
    starts = []
    if groups is not None:
        _, codes = group_codes(groups, data)
        codes = codes[order]
        by_group = np.argsort(codes, kind="stable")
        order = order[by_group]
        starts = np.flatnonzero(np.diff(codes[by_group])) + 1
    if groups is None and len(order) == len(data.scores):
        segments = [data]
    else:
        segments = [data.at(rows) for rows in np.split(order, starts)]
    weights = np.array([_weight_of(segment) for segment in segments])
    return segments, weights, taken(cluster, order)


def _weight_of(data):
    if data.sample_weight is None:
        return len(data.scores)
    return data.sample_weight.sum()


def _labels_depend(error, data, classes):
    """Return whether the labels of a row are drawn together: those of several binary
    problems, or of one that has the row several times.
    """
    if data.is_multilabel:
        return 1 < classes.n_tasks <= _MOST_CLASSES
    if error.reduction(data) != "pooled":
        has_few_classes = 1 < classes.n_tasks <= _MOST_CLASSES
        if not has_few_classes or data.sample_weight is not None:
            return False
    return data.is_binary or one_label_a_row(data.scores)


def _count_draws(cells, rows, dependent, resampling, deviation):
    """Return draws of the counts of cells, whose rows have no clusters; with a
    deviation rows have several labels.
    """
    trials = rows.effective_trials(cells) if resampling.importance else None
    uniforms = None
    n_counts = resampling.n_draws * len(cells.weight)
    if dependent and n_counts <= _MOST_COUNTS:
        draws_of = exclusive_draws if deviation is None else copula_draws
        uniforms = draws_of(
            rows.in_cells(deviation),
            len(cells.weight),
            resampling.n_draws,
            resampling.rng,
        )
    return CountDraws(cells, resampling.n_draws, resampling.rng, uniforms, trials)


class _TaskRows(NamedTuple):
    """The rows of binary problems, which stand class by class in each group."""

    tasks: list
    powers: list
    n_tasks: int

    def in_cells(self, deviation=None):
        """Return the rows of all groups with the cells that they lie in.

        With the deviation of the cells the labels of a row do not exclude each other:
        their dependence is estimated.
        """
        # The cells of all problems are numbered through: those of each follow the last
        # one's.
        n_cells = 0
        cells = []
        for power, task in zip(self.powers, self.tasks, strict=True):
            cells.append(n_cells + power.cells.of_rows(task.scores))
            n_cells += len(power.weight)
        n_columns = self.tasks[0].n_columns
        # The weights of the rows, group by group: those of each group's first problem.
        weights = [task.sample_weight for task in self.tasks[:: self.n_tasks]]
        weight = None
        if weights[0] is not None:
            weight = np.concatenate(weights)[::n_columns]
        cell = self._by_row(cells)
        scores = self._by_row([task.scores for task in self.tasks])
        labels = self._by_row([task.labels for task in self.tasks])
        copula = None
        if deviation is not None:
            copula = label_copula(scores, labels, weight, deviation[cell])
        return RowsInCells(cell, scores, labels, weight, copula)

    def _by_row(self, columns):
        """Return values of problems as an array (n, n_columns) of rows of all groups: a
        column for each class, or the pairs of a pooled row.
        """
        n_columns = self.tasks[0].n_columns
        if n_columns > 1:
            return np.concatenate(columns).reshape(-1, n_columns)
        of_classes = [
            np.concatenate(columns[k :: self.n_tasks]) for k in range(self.n_tasks)
        ]
        return np.column_stack(of_classes)

    def effective_trials(self, cells):
        """Return how many equal rows the weights of each cell are worth, W^2 / sum of
        w^2; None without weights.
        """
        if isinstance(self.tasks[0], BinnedTask):
            return cells.weight**2 / cells.weight_squared
        rows = self.in_cells()
        if rows.sample_weight is None:
            return None
        squares = np.repeat(rows.sample_weight**2, rows.cell.shape[1])
        return cells.weight**2 / np.bincount(rows.cell.ravel(), squares)


def _directions(powers, cells):
    """Return the directions, the observed one first, for the powers of binary problems
    and all their cells.

    Scores stand for their neighbours: their residuals are averaged. The deviations of
    bins are taken as they are. An unbiased error of norm 2 needs no more, for it
    depends on the sum of their squares alone. Other errors also see how they are
    spread: a smoothed deviation is more even, a firm one, without what may be noise,
    less.
    """
    if not powers[0].is_binned:
        averaged = []
        for window in _WINDOWS:
            of_problems = [_averaged(power.cells, window) for power in powers]
            averaged.append(np.concatenate(of_problems))
        if np.any(averaged[0]):
            return averaged
        return [_of_the_size_of_noise(cells)]
    deviation = cells.deviation
    if not np.any(deviation):
        deviation = _of_the_size_of_noise(cells)
    if powers[0].is_sum_of_squares:
        return [deviation]
    ends = np.cumsum([len(power.weight) for power in powers])[:-1]
    # finite also where no event is possible
    weight = 1 / (cells.variance + 0.25 / (cells.weight + 1) ** 2)
    # Smoothed within each problem.
    problems = list(zip(np.split(deviation, ends), np.split(weight, ends), strict=True))
    smooth = []
    for width in _WIDTHS:
        of_problems = [_smoothed(*problem, width) for problem in problems]
        smooth.append(np.concatenate(of_problems))
    # Each deviation times the share of its square that is no noise.
    square = deviation**2
    firm = np.divide(
        deviation * square,
        square + cells.variance,
        out=np.zeros_like(deviation),
        where=square > 0,
    )
    return [deviation, *smooth, firm]


def _of_the_size_of_noise(cells):
    """Return a direction where no deviation is seen: the standard deviation of each
    frequency, or what is left where all scores are 0 or 1.
    """
    noise = np.sqrt(cells.variance)
    if np.any(noise):
        return noise
    towards_half = (0.5 - cells.mean_score) / (cells.weight + 1)
    if np.any(towards_half):
        return towards_half
    return np.ones(len(cells.weight))


def _smoothed(deviation, weight, width):
    """Return the weighted mean over neighbouring bins, Gaussian with a deviation of
    `width` bins.
    """
    weighted = gaussian_filter1d(weight * deviation, width, mode="constant")
    return weighted / gaussian_filter1d(weight, width, mode="constant")


def _averaged(cells, window):
    """Return the residuals averaged twice by a moving mean over a share of the rows,
    next to the ends over fewer.
    """
    total = np.append(0.0, np.cumsum(cells.weight))
    middle = (total[1:] + total[:-1]) / 2
    low = np.maximum(middle - window / 2 * total[-1], 0)
    high = np.minimum(middle + window / 2 * total[-1], total[-1])
    deviation = cells.deviation
    for _ in range(2):
        # The sum between two shares of the rows, linear within a cell.
        sums = np.append(0.0, np.cumsum(cells.weight * deviation))
        between = np.interp(high, total, sums) - np.interp(low, total, sums)
        deviation = between / (high - low)
    return deviation
