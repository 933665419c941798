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

# With more classes the labels of each are drawn by themselves. Joint draws are stored
# for all cells, and more classes would leave few cells to each.
_MOST_CLASSES = 30
# The dependence between classes is drawn for up to so many counts, cells times draws.
_MOST_COUNTS = 1 << 24
# more distinct scores are pooled to cells of nearly equal scores
_FEWEST_CELLS, _MOST_CELLS = 64, 1 << 13
# Widths in bins over which the observed deviation is smoothed, for two more directions.
_WIDTHS = 1, 3
# Shares of the rows over which the residuals of scores are averaged, for a direction
# each.
_WINDOWS = 0.15, 0.5


class Resampling(NamedTuple):
    """What a test or an interval draws.

    Parameters
    ----------
    n_draws : int
        Number of draws of all labels.
    rng : RandomState
        Random numbers.
    cluster : ndarray of int, shape (n,), or None
        Code of the cluster of each row, whose labels depend on each other.
    importance : bool, default=False
        Whether a weight corrects the sample, and does not count rows.
    progress : Progress
        Writes how far the draws are.
    """

    n_draws: int
    rng: np.random.RandomState
    cluster: np.ndarray | None = None
    importance: bool = False
    progress: Progress = Progress("", False)

    def at(self, rows):
        """Return the resampling of some of the rows, given by their indices: with the
        clusters of these alone.
        """
        if self.cluster is None:
            return self
        return self._replace(cluster=self.cluster[rows])


def error_hypotheses(error, data, resampling):
    """Return what the interval and the resampling test of an error need, for validated
    data: its cells, draws of their events, the error as a function of event
    frequencies, and the directions in which an interval looks for it.

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
    is_dependent = cluster is not None or _labels_depend(error, data, classes)
    most_cells = _MOST_CELLS
    if is_dependent:
        # Dependent draws are kept for all cells at once.
        affordable = _MOST_COUNTS // (resampling.n_draws * classes.n_tasks)
        most_cells = min(max(affordable, _FEWEST_CELLS), _MOST_CELLS)
    # The binary problems, class by class in each group, and the power of each.
    tasks = []
    for segment in segments:
        tasks.extend(binary_tasks(segment, error.reduction(data), pooled=True))
    powers = [error.of_task(task, most_cells) for task in tasks]
    problem = _JoinedPowers(error, classes, powers, weights)
    directions = _directions(powers, problem.cells)
    rows = _TaskRows(tasks, powers, classes.n_tasks)
    # Several labels of a row depend on each other as their residuals about the observed
    # deviation show.
    deviation = None
    if data.is_multilabel and is_dependent:
        deviation = directions[0]
        directions += _shifts(powers)
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
        draw = _count_draws(problem.cells, rows, is_dependent, resampling, deviation)
    return Hypotheses(
        cells=problem.cells,
        draw=draw,
        statistic=problem.statistic,
        error=problem.noiseless,
        observed=problem.observed,
        directions=directions,
        progress=resampling.progress,
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
        # where the cells of each problem but the last end
        n_cells = [len(power.weight) for power in powers]
        self._ends = np.cumsum(n_cells)[:-1]
        # Draws are only compared with each other, for which a single problem has a
        # faster power (`ErrorPower.at`).
        self._drawn_powers = powers
        if len(powers) == 1:
            self._drawn_powers = [powers[0].at(self.cells.event_frequency)]

    def statistic(self, frequency):
        """Return what draws are compared by, (draws,), for event frequencies (draws, m)
        of the cells of all problems.
        """
        if len(self._drawn_powers) == 1 and self._error.groups is None:
            return self._drawn_powers[0].power(frequency)
        by_problem = np.split(frequency, self._ends, axis=-1)
        powers = []
        for power, of_problem in zip(self._drawn_powers, by_problem, strict=True):
            powers.append(power.power(of_problem))
        return self._combined(np.stack(powers, axis=-1))

    @property
    def observed(self):
        """The statistic of the labels, in the scale of `statistic`."""
        powers = np.array([power.observed for power in self._drawn_powers])
        return float(self._combined(powers))

    def noiseless(self, frequency):
        """Return the error itself for frequencies (m,) without noise."""
        by_problem = np.split(frequency, self._ends)
        powers = []
        for power, of_problem in zip(self._powers, by_problem, strict=True):
            powers.append(power.noiseless(of_problem))
        combined = float(self._combined(np.array(powers)))
        if self._error.groups is not None:
            return combined  # the p-th roots have been taken group by group
        return self._error.from_power(combined)

    def _combined(self, powers):
        """Return one number (...) for the powers (..., n_problems) of all problems.

        Without groups it is the power of the error, combined over the classes. With
        groups it is the error: the p-th root of each group's power, reduced over the
        groups.
        """
        if self._error.groups is None:
            return self._classes.combine(powers)
        # the classes of each group first: (..., n_groups, n_classes)
        by_group = (*powers.shape[:-1], len(self._weights), self._classes.n_tasks)
        errors = self._classes.combine(powers.reshape(by_group))
        if self._error.norm != np.inf:
            errors = np.maximum(errors, 0) ** (1 / self._error.norm)
        return reduced(errors, self._weights, self._error.reduce)


def _segments(groups, data, cluster):
    """Split validated data by group.

    Parameters
    ----------
    groups : array-like of shape (n,), "predicted_class" or None
        Group of each row; None makes one segment of all rows.
    data : ScoredLabels or BinnedTask
        The data.
    cluster : ndarray of int, shape (n,), or None
        Code of each row's cluster.

    Returns
    -------
    segments : list of ScoredLabels or BinnedTask
        The rows of positive weight of each group.
    weights : ndarray of shape (n_groups,) or None
        Weight of each group.
    cluster : ndarray of int or None
        The clusters in the order of these rows, group after group.
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
    """Return the sum of the weights of validated rows, or their number without
    weights.
    """
    if data.sample_weight is None:
        return len(data.scores)
    return data.sample_weight.sum()


def _labels_depend(error, data, classes):
    """Return whether the labels of a row are drawn together.

    So are those of up to 30 classes (`_MOST_CLASSES`) or labels, each with its own
    binary problem, and those of a pooled error, whose one problem has each row once for
    each class. Otherwise the problems are drawn as if they were independent. `classes`
    is the `ClassPowers` of the error.
    """
    if data.is_multilabel:
        return 1 < classes.n_tasks <= _MOST_CLASSES
    if error.reduction(data) != "pooled":
        has_few_classes = 1 < classes.n_tasks <= _MOST_CLASSES
        if not has_few_classes or data.sample_weight is not None:
            return False
    # Scores that do not sum to 1 are no probabilities of exclusive classes.
    return data.is_binary or one_label_a_row(data.scores)


def _count_draws(cells, rows, is_dependent, resampling, deviation):
    """Return the `CountDraws` of the cells of rows without clusters.

    Parameters
    ----------
    cells : Cells
        Cells of all problems, m together.
    rows : _TaskRows
        The rows of the problems.
    is_dependent : bool
        Whether the labels of a row depend on each other.
    resampling : Resampling
        What is drawn.
    deviation : ndarray of shape (m,) or None
        Observed deviation, where a row may have several labels; None where the labels
        of a row exclude each other.
    """
    # Numbers of rows that the cells are worth; None for their weights, which then count
    # rows.
    trials = None
    if resampling.importance:
        trials = rows.effective_trials(cells)
    uniforms = None
    n_cells = len(cells.weight)
    if is_dependent and resampling.n_draws * n_cells <= _MOST_COUNTS:
        draws_of = exclusive_draws
        if deviation is not None:
            draws_of = copula_draws
        uniforms = draws_of(
            rows.in_cells(deviation), n_cells, resampling.n_draws, resampling.rng
        )
    return CountDraws(cells, resampling.n_draws, resampling.rng, uniforms, trials)


class _TaskRows(NamedTuple):
    """The rows of binary problems.

    Parameters
    ----------
    tasks : list of BinaryTask or BinnedTask
        The problems, class by class in each group.
    powers : list of ErrorPower
        The power of each, with its cells.
    n_tasks : int
        Number of problems of a group.
    """

    tasks: list
    powers: list
    n_tasks: int

    def in_cells(self, deviation=None):
        """Return the `RowsInCells` of all groups: the rows, with the cell of each
        score.

        Where the labels of a row do not exclude each other, their dependence is
        estimated about the observed deviation (m,) of the cells.
        """
        # The cells of all problems are numbered through: those of each follow the last
        # one's.
        n_cells = 0
        cells = []
        for power, task in zip(self.powers, self.tasks, strict=True):
            cells.append(n_cells + power.cells.of_rows(task.scores))
            n_cells += len(power.weight)
        # All problems of a group have the same weights: those of its first one are
        # taken. A pooled problem has the weight of a row once for each of its
        # `n_columns` pairs, of which one is taken.
        n_columns = self.tasks[0].n_columns
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

    def _by_row(self, values_of_tasks):
        """Return values as an array (n, n_columns) of the rows of all groups, with a
        column for each class.

        They are given for each problem, in the order of `tasks`. A pooled problem holds
        the values of a row and all classes side by side.
        """
        n_columns = self.tasks[0].n_columns
        if n_columns > 1:
            return np.concatenate(values_of_tasks).reshape(-1, n_columns)
        columns = []
        for k in range(self.n_tasks):
            of_class = values_of_tasks[k :: self.n_tasks]  # of each group
            columns.append(np.concatenate(of_class))
        return np.column_stack(columns)

    def effective_trials(self, cells):
        """Return how many equal rows the weights of each of the m cells are worth, by
        Kish's formula (sum w)^2 / sum w^2; None without weights.
        """
        if isinstance(self.tasks[0], BinnedTask):
            return cells.weight**2 / cells.weight_squared
        rows = self.in_cells()
        if rows.sample_weight is None:
            return None
        squares = np.repeat(rows.sample_weight**2, rows.cell.shape[1])
        return cells.weight**2 / np.bincount(rows.cell.ravel(), squares)


def _directions(powers, cells):
    """Return the deviations d (m,) of event frequencies from scores along which an
    interval looks for the error, the observed one first.

    Scores stand for their neighbours: their residuals are averaged. The deviations of
    bins are taken as they are. An unbiased error of norm 2 needs no more, for it
    depends on the sum of their squares alone. Other errors also see how they are
    spread: a smoothed deviation is more even, a shrunk one, without what may be noise,
    less.

    Parameters
    ----------
    powers : list of ErrorPower
        The powers of the binary problems.
    cells : Cells
        The m cells of all of them, one problem after the other.
    """
    if not powers[0].is_binned:
        averaged = []
        for window in _WINDOWS:
            of_problems = [_averaged(power.cells, window) for power in powers]
            averaged.append(np.concatenate(of_problems))
        if np.any(averaged[0]):
            return averaged
        return [_noise_size(cells)]
    deviation = cells.deviation
    if not np.any(deviation):
        deviation = _noise_size(cells)
    if powers[0].is_sum_of_squares:
        return [deviation]
    # 1 / variance, finite also where no event is possible
    precision = 1 / (cells.variance + 0.25 / (cells.weight + 1) ** 2)
    # Smoothed within each problem.
    ends = np.cumsum([len(power.weight) for power in powers])[:-1]
    deviations = np.split(deviation, ends)
    precisions = np.split(precision, ends)
    smooth = []
    for width in _WIDTHS:
        of_problems = []
        for of_problem, weight in zip(deviations, precisions, strict=True):
            of_problems.append(_smoothed(of_problem, weight, width))
        smooth.append(np.concatenate(of_problems))
    # Shrunk by the estimated share of its square that is no noise.
    square = deviation**2
    shrunk = np.divide(
        deviation * square,
        square + cells.variance,
        out=np.zeros_like(deviation),
        where=square > 0,
    )
    return [deviation, *smooth, shrunk]


def _shifts(powers):
    """Return two directions: all cells of a problem move by its mean deviation, and all
    cells of all problems by theirs.

    Where labels depend on each other, what makes an error uncertain is what the labels
    of a row have in common, and most of that is a shift. Of the observed deviation,
    which is mostly noise of the cells, a shift is a small part.
    """
    shifts = []
    for power in powers:
        shifts.append(power.cells.share @ power.cells.deviation)
    sizes = [len(power.weight) for power in powers]
    return [np.repeat(shifts, sizes), np.full(sum(sizes), np.mean(shifts))]


def _noise_size(cells):
    """Return a direction (m,) for cells whose frequencies all equal their scores: the
    standard deviation of each frequency, or a step towards 1/2 where all scores are 0
    or 1.
    """
    noise = np.sqrt(cells.variance)
    if np.any(noise):
        return noise
    towards_half = (0.5 - cells.mean_score) / (cells.weight + 1)
    if np.any(towards_half):
        return towards_half
    return np.ones(len(cells.weight))


def _smoothed(deviation, weight, width):
    """Return the weighted moving mean of the deviations (m,) of neighbouring bins. The
    weights are a Gaussian kernel whose standard deviation is `width` bins, times
    `weight` (m,).
    """
    weighted = gaussian_filter1d(weight * deviation, width, mode="constant")
    return weighted / gaussian_filter1d(weight, width, mode="constant")


def _averaged(cells, window):
    """Return the residuals of the cells (m,), averaged by a moving mean over a share
    `window` of the rows, twice. Next to the ends the window is cut off.
    """
    # Each cell covers an interval of the cumulative weight.
    limits = np.append(0.0, np.cumsum(cells.weight))
    total = limits[-1]
    middle = (limits[1:] + limits[:-1]) / 2
    low = np.maximum(middle - window / 2 * total, 0)
    high = np.minimum(middle + window / 2 * total, total)
    deviation = cells.deviation
    for _ in range(2):
        # The sum between two points of the cumulative weight, linear within a cell.
        sums = np.append(0.0, np.cumsum(cells.weight * deviation))
        sum_in_window = np.interp(high, limits, sums) - np.interp(low, limits, sums)
        deviation = sum_in_window / (high - low)
    return deviation
