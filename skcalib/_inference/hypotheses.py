"""An error and its data, as the hypotheses that its interval and its resampling test
are about.
"""

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter1d

from skcalib._cells.binned import BinnedTask
from skcalib._cells.cells import Cells
from skcalib._cells.groups import group_codes, reduced
from skcalib._cells.reductions import binary_tasks
from skcalib._cells.tasks import one_label_a_row
from skcalib._errors.binned import JoinedPowers, can_be_joined
from skcalib._errors.error import ClassPowers
from skcalib._inference.cluster_draws import cluster_draws, drawn_by_cell
from skcalib._inference.count_draws import CountDraws
from skcalib._inference.drawn_hypotheses import Hypotheses
from skcalib._inference.label_dependence import (
    RowsInCells,
    copula_draws,
    exclusive_draws,
    label_copula,
    rows_to_draw,
    values_of_cells,
)
from skcalib._inference.weighted_draws import MultiplierDraws, SampledLabelDraws
from skcalib._input.tensors import library_of
from skcalib._progress import Progress
from skcalib._rows.blocks import taken

# With more classes the labels of each are drawn by themselves. Joint draws are stored
# for all cells, and more classes would leave few cells to each.
_MOST_CLASSES = 30
# The dependence between classes is drawn for up to so many counts, cells times draws.
_MOST_COUNTS = 1 << 24
# From so many rows for each cell on, trials of weighted rows are counted.
_ROWS_TO_COUNT = 20
# more distinct scores are pooled to cells of nearly equal scores
_FEWEST_CELLS, _MOST_CELLS = 64, 1 << 13
# Dependent rows are drawn cell by cell if their scores have at most 256 cells with at
# least 80 rows each.
_MOST_CLUSTER_CELLS, _ROWS_OF_CLUSTER_CELL = 1 << 8, 80
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
    progress : Progress
        Writes how far the draws are.
    """

    n_draws: int
    rng: np.random.RandomState
    cluster: np.ndarray | None = None
    progress: Progress = Progress("", False)

    def at(self, rows):
        """Return the resampling of some of the rows, given by their indices: with the
        clusters of these alone.
        """
        if self.cluster is None:
            return self
        return self._replace(cluster=self.cluster[rows])


def error_hypotheses(error, data, resampling):
    """Return the `Hypotheses` that the interval and the resampling test of a
    calibration error need.

    An error is computed from one or more binary problems: one for each class, or for
    each label, of each group. Each problem sums its rows in cells of the score. The
    error and the drawn labels are functions of the event frequencies of all cells.

    Parameters
    ----------
    error : CalibrationError
        The error with its parameters.
    data : ScoredLabels or BinnedTask
        Validated data, in which rows of weight zero may remain.
    resampling : Resampling
        What is drawn; its clusters have one code for each row of `data`.

    Returns
    -------
    hypotheses : Hypotheses
        For `inverted_limits` and `resampling_pvalue`.
    """
    groups, group_weights, cluster = _split_by_group(
        error.groups, data, resampling.cluster
    )
    # How the p-th powers of the errors of several classes become one number.
    classes = ClassPowers.of(data, error)
    # How many cells a problem has at most. Counts of cells that depend on each other,
    # by clusters or within a row, are kept for all cells at once.
    is_dependent = cluster is not None or _labels_depend(error, data, classes)
    most_cells = _MOST_CELLS
    if is_dependent:
        affordable = _MOST_COUNTS // (resampling.n_draws * classes.n_tasks)
        most_cells = min(max(affordable, _FEWEST_CELLS), _MOST_CELLS)
    if cluster is not None and drawn_by_cell(
        len(cluster), classes.n_tasks, resampling.n_draws
    ):
        most_cells = min(_MOST_CLUSTER_CELLS, len(cluster) // _ROWS_OF_CLUSTER_CELL)
    # 1. The binary problems, group by group and in each group class by class. `powers`
    # are the p-th powers of their errors, as functions of the event frequencies of
    # their cells; `joined` is the whole error as a function of those of all cells.
    tasks = []
    for group in groups:
        tasks.extend(binary_tasks(group, error.reduction(data), pooled=True))
    powers = [error.of_task(task, most_cells) for task in tasks]
    joined = _JoinedPowers(error, classes, powers, group_weights)
    rows = _ProblemRows(tasks, powers, classes.n_tasks)
    # 2. The deviations along which an interval looks for the error, the observed first.
    directions = _directions(powers, joined.cells)
    observed_deviation = directions[0]
    label_deviation = None
    if data.is_multilabel and is_dependent:
        # How the labels of a row depend on each other is estimated from their residuals
        # about score + observed deviation. Chance shifts many cells of such labels
        # together: two more directions shift all cells alike.
        label_deviation = observed_deviation
        directions += _common_shifts(powers)
    # 3. The draws of the event frequencies.
    label_weights = tasks[0].label_weights
    if label_weights is not None:
        draw = _weighted_draws(joined.cells, rows, cluster, resampling)
    elif cluster is not None:
        draw = cluster_draws(
            joined.cells,
            rows.on_processor().in_cells(label_deviation),
            observed_deviation,
            cluster,
            resampling.n_draws,
            resampling.rng,
        )
    else:
        draw = _count_draws(
            joined.cells, rows, is_dependent, resampling, label_deviation
        )
    return Hypotheses(
        cells=joined.cells,
        draw=draw,
        statistic=joined.statistic,
        error=joined.noiseless,
        observed=joined.observed,
        directions=directions,
        progress=resampling.progress,
        power=joined.single_power,
        from_power=error.from_power,
        contribution=joined.contribution,
    )


class _JoinedPowers:
    """An error as a function of the event frequencies of all cells of all its binary
    problems.

    The problems stand group by group, and in each group class by class.

    Parameters
    ----------
    error : CalibrationError
        The error.
    classes : ClassPowers
        How the classes of a group are combined.
    powers : list of ErrorPower
        For each problem, the p-th power of its error as a function of its frequencies.
    weights : ndarray of shape (n_groups,) or None
        Weights of the groups.
    """

    def __init__(self, error, classes, powers, weights):
        self._error = error
        self._classes = classes  # how the problems of a group are combined
        # An `ErrorPower` for each problem: the p-th power of its error as a function of
        # the event frequencies of its cells.
        self._powers = powers
        self._weights = weights  # of the groups, (n_groups,)
        # The cells of all problems, one problem after the other, and where those of
        # each problem but the last end.
        self.cells = Cells.joined([power.cells for power in powers])
        n_cells = [len(power.weight) for power in powers]
        self._ends = np.cumsum(n_cells)[:-1]
        # Draws are only compared with each other and with the observed value. For that
        # a single problem has a faster function, up to a constant (`ErrorPower.at`).
        self._powers_of_draws = powers
        if len(powers) == 1:
            self._powers_of_draws = [powers[0].at(self.cells.event_frequency)]
        # Many problems are computed at once where their powers allow it.
        self._joined = None
        if len(powers) > 1 and can_be_joined(powers):
            self._joined = JoinedPowers(powers)

    @property
    def single_power(self):
        """The power that is the statistic where there is one problem; else None."""
        if len(self._powers_of_draws) == 1 and self._error.groups is None:
            return self._powers_of_draws[0]
        return None

    @cached_property
    def contribution(self):
        """The function that gives what each cell adds to the statistic, where this is a
        sum over cells (see `JoinedPowers.contributions`); else None.
        """
        if self._joined is None or self._error.groups is not None:
            return None
        return self._joined.contributions(self._classes.weight)

    def statistic(self, frequency):
        """Return the number by which draws are compared, (draws,), for drawn event
        frequencies (draws, m) of the cells of all problems.

        Without groups it is the p-th power of the error, with groups the error.
        """
        if self.single_power is not None:
            return self.single_power.power(frequency)
        if self.contribution is not None:
            return self.contribution(frequency, slice(None)).sum(axis=-1)
        if self._joined is not None:
            return self._combined(self._joined.each(frequency))
        by_problem = np.split(frequency, self._ends, axis=-1)
        values = []
        for power, problem_frequency in zip(
            self._powers_of_draws, by_problem, strict=True
        ):
            values.append(power.power(problem_frequency))
        return self._combined(np.stack(values, axis=-1))

    @property
    def observed(self):
        """The `statistic` of the observed labels, a float."""
        values = np.array([power.observed for power in self._powers_of_draws])
        return float(self._combined(values))

    def noiseless(self, frequency):
        """Return the error, a float, if frequencies (m,) are the true event frequencies
        of the cells, so that no noise has to be subtracted.
        """
        by_problem = np.split(frequency, self._ends)
        values = []
        for power, problem_frequency in zip(self._powers, by_problem, strict=True):
            values.append(power.noiseless(problem_frequency))
        combined = float(self._combined(np.array(values)))
        if self._error.groups is not None:
            return combined  # an error: the p-th root of each group has been taken
        return self._error.from_power(combined)

    def _combined(self, powers):
        """Return one number (...) for the p-th powers (..., n_problems) of the errors:
        without groups the p-th power, combined over the classes; with groups the
        errors' weighted mean, maximum or another value.
        """
        if self._error.groups is None:
            return self._classes.combine(powers)
        # the classes of each group first: (..., n_groups, n_classes)
        by_group = (*powers.shape[:-1], len(self._weights), self._classes.n_tasks)
        errors = self._classes.combine(powers.reshape(by_group))
        if self._error.norm != np.inf:
            errors = np.maximum(errors, 0) ** (1 / self._error.norm)
        return reduced(errors, self._weights, self._error.reduce)


def _split_by_group(groups, data, cluster):
    """Return validated data split by group (None: one group), without rows of weight
    zero; the weights (n_groups,), None for binned data; and the clusters of these rows,
    group by group.
    """
    if isinstance(data, BinnedTask) and groups is None:
        return [data], None, None
    # Positions of the rows with weight, sorted by group, and where each group but the
    # first begins among them.
    order = data.kept
    starts = []
    if groups is not None:
        _, codes = group_codes(groups, data)
        codes = codes[order]
        by_group = np.argsort(codes, kind="stable")
        order = order[by_group]
        starts = np.flatnonzero(np.diff(codes[by_group])) + 1
    if groups is None and len(order) == len(data.scores):
        data_of_groups = [data]
    else:
        data_of_groups = [data.at(rows) for rows in np.split(order, starts)]
    weights = np.array([_weight_of(group) for group in data_of_groups])
    return data_of_groups, weights, taken(cluster, order)


def _weight_of(data):
    """Return the sum of the weights of validated rows, or their number without
    weights.
    """
    if data.sample_weight is None:
        return len(data.scores)
    return data.sample_weight.sum()


def _labels_depend(error, data, classes):
    """Return whether the labels of a row are drawn as dependent: for several labels per
    row and for marginal errors, with at most 30 (`_MOST_CLASSES`) binary problems; and
    for pooled errors, in which each row occurs once per class. Otherwise the binary
    problems are drawn independently.
    """
    has_several_problems = 1 < classes.n_tasks <= _MOST_CLASSES
    if data.is_multilabel:
        return has_several_problems
    is_pooled = error.reduction(data) == "pooled"
    if not is_pooled and (not has_several_problems or data.sample_weight is not None):
        return False
    # Scores that do not sum to 1 are no probabilities of exclusive classes.
    return data.is_binary or one_label_a_row(data.scores)


def _count_draws(cells, rows, is_dependent, resampling, label_deviation):
    """Return the `CountDraws` of the m cells of rows without clusters.
    `label_deviation` (m,) is event frequency minus score if a row may have several
    labels; None if they exclude each other.
    """
    # Uniform random numbers that are dependent between cells; None for independent
    # ones.
    uniforms = None
    n_cells = len(cells.weight)
    n_draws, rng = resampling.n_draws, resampling.rng
    if is_dependent and n_draws * n_cells <= _MOST_COUNTS:
        if label_deviation is not None:
            row_columns = rows.in_cells(label_deviation)
            uniforms = copula_draws(row_columns, n_cells, n_draws, rng)
        else:
            uniforms = exclusive_draws(rows.drawn(rng), n_cells, n_draws, rng)
    return CountDraws(cells, n_draws, rng, uniforms)


def _weighted_draws(cells, rows, cluster, resampling):
    """Return the draws of cells whose rows have importance weights.

    A weight that depends on the label changes the frequency of events in the sample.
    Where the weight of the other label is unknown, rows depend on each other, or a row
    has several columns, observed residuals take the place of drawn labels.
    """
    n_draws = resampling.n_draws
    row_columns = rows.on_processor().in_cells()
    n_rows, n_columns = row_columns.cell.shape
    label_weights = rows.label_weights()
    if label_weights is None or cluster is not None or n_columns > 1:
        return MultiplierDraws(cells, row_columns, cluster, n_draws, resampling.rng)
    if n_rows >= _ROWS_TO_COUNT * len(cells.weight):
        # The cells are worth so many trials that these can be counted.
        return CountDraws(cells, n_draws, resampling.rng)
    return SampledLabelDraws(cells, row_columns, label_weights, n_draws, resampling.rng)


class _ProblemRows(NamedTuple):
    """The rows of the binary problems of an error.

    Parameters
    ----------
    tasks : list of BinaryTask or BinnedTask
        The problems, group by group, and in each group class by class.
    powers : list of ErrorPower
        The error of each problem, with the problem's cells.
    n_classes : int
        Number of problems of a group.
    """

    tasks: list
    powers: list
    n_classes: int

    def in_cells(self, deviation=None):
        """Return the rows of all groups as `RowsInCells`: for each row and class, the
        score, the label and the number of the cell, on the device of the scores.

        `deviation` (m,), event frequency minus score in each cell, is given if a row
        may have several labels; the dependence of the labels is then estimated.
        """
        # The cells of the second problem are numbered after those of the first, and so
        # on.
        n_cells_before = 0
        cell_by_problem = []
        scores_by_problem = []
        labels_by_problem = []
        for power, task in zip(self.powers, self.tasks, strict=True):
            scores, labels = task.in_place
            cell_by_problem.append(n_cells_before + power.cells.cell_of(scores))
            scores_by_problem.append(scores)
            labels_by_problem.append(labels)
            n_cells_before += len(power.weight)
        cell = self._by_row(cell_by_problem)
        scores = self._by_row(scores_by_problem)
        labels = self._by_row(labels_by_problem)
        weight = self.sample_weight
        copula = None
        if deviation is not None:
            deviation = values_of_cells(deviation, cell)
            copula = label_copula(scores, labels, weight, deviation)
        return RowsInCells(cell, scores, labels, weight, copula)

    def on_processor(self):
        """Return the same with the scores of NumPy, for draws that need each row."""
        return self._replace(tasks=[task.on_processor for task in self.tasks])

    def drawn(self, rng):
        """Return the `RowsInCells` from which `exclusive_draws` draws: those of many
        rows are a sample.
        """
        n_columns = max(self.tasks[0].n_columns, self.n_classes)
        n_rows = sum(task.size for task in self._first_of_groups)
        n_rows //= self.tasks[0].n_columns
        positions = rows_to_draw(n_rows, n_columns, self.sample_weight, rng)
        if positions is None:
            return self.in_cells()
        if len(self._first_of_groups) == 1:
            chosen = [task.at(positions) for task in self.tasks]
            return self._replace(tasks=chosen).in_cells()
        return self.in_cells().at(positions)

    @property
    def sample_weight(self):
        """The weights (n,) of the rows in the order of `in_cells`, or None.

        All problems of a group have the same weights: those of its first are taken. A
        pooled problem repeats the weight of a row for each of its `n_columns` classes.
        """
        if self._first_of_groups[0].sample_weight is None:
            return None
        weight = np.concatenate([task.sample_weight for task in self._first_of_groups])
        return weight[:: self._first_of_groups[0].n_columns]

    @property
    def _first_of_groups(self):
        """The first problem of each group."""
        return self.tasks[:: self.n_classes]

    def label_weights(self):
        """Return the `LabelWeights` of the rows in the order of `in_cells`, or None
        where the weights of the other label are unknown.
        """
        by_group = [task.label_weights for task in self._first_of_groups]
        if not by_group[0].is_known:
            return None
        return replace(
            by_group[0],
            weight=np.concatenate([weights.weight for weights in by_group]),
            other=np.concatenate([weights.other for weights in by_group]),
        )

    def _by_row(self, values_by_problem):
        """Return values, given problem by problem in the order of `tasks`, as (n,
        n_columns): a line for each row of all groups, a column for each class.
        """
        xp = library_of(values_by_problem[0])
        n_columns = self.tasks[0].n_columns
        if n_columns > 1:
            # A pooled problem holds the values of a row for all classes side by side.
            return xp.reshape(xp.concat(values_by_problem), (-1, n_columns))
        columns = []
        for k in range(self.n_classes):
            values_of_class = values_by_problem[k :: self.n_classes]  # of each group
            columns.append(xp.concat(values_of_class))
        return xp.stack(columns, axis=1)


def _directions(powers, cells):
    """Return the directions of the search for an interval, a list: deviations d (m,),
    so that the event frequencies of the cells, whose mean scores are s, are f = s + c d
    for c >= 0. The observed one is first. Several are tried, since the upper limit
    depends on how deviations are spread over the cells, which is unknown. `powers` are
    the `ErrorPower` of each problem.
    """
    if not powers[0].is_binned:
        return _directions_of_scores(powers, cells)
    deviation = cells.deviation
    if not np.any(deviation):
        deviation = _noise_size(cells)
    sizes = np.array([len(power.weight) for power in powers])
    return _spread_directions(cells, deviation, sizes, powers[0].is_sum_of_squares)


def directions_of_samples(cells, sizes, is_sum_of_squares):
    """Return the directions of the search for the intervals of several binned errors, a
    list of deviations (m,) of the event frequencies from the scores, the observed one
    first.

    Parameters
    ----------
    cells : Cells
        The m bins of all samples, one sample after the other.
    sizes : ndarray of int, shape (n_samples,)
        Number of bins of each sample.
    is_sum_of_squares : bool
        Whether the errors depend on the sum of squared deviations alone.
    """
    deviation = cells.deviation.copy()
    starts = np.cumsum(sizes) - sizes
    is_calibrated = ~np.logical_or.reduceat(deviation != 0, starts)
    for k in np.flatnonzero(is_calibrated):
        bins = slice(starts[k], starts[k] + sizes[k])
        deviation[bins] = _noise_size(cells.at(bins))
    return _spread_directions(cells, deviation, sizes, is_sum_of_squares)


def _spread_directions(cells, deviation, sizes, is_sum_of_squares):
    """Return a list of deviations (m,) of the event frequencies of bins: the given
    ones, then others that are more and less evenly spread over the bins.

    `cells` are the m bins of several problems, of which each has `sizes` (n_problems,)
    bins. `is_sum_of_squares` says that the error depends on the sum of the squared
    deviations alone.
    """
    if is_sum_of_squares:
        # The error depends on the sum of squared deviations alone, and so not on how
        # they are spread.
        return [deviation]
    # More evenly spread deviations: smoothed over neighbouring bins of each problem.
    # Weights are 1 / variance, finite also where no event is possible.
    precision = 1 / (cells.variance + 0.25 / (cells.weight + 1) ** 2)
    # a line for each problem, with weights of 0 behind its bins
    is_bin = np.arange(sizes.max()) < sizes[:, None]
    weight = np.zeros(is_bin.shape)
    weight[is_bin] = precision
    weighted = np.zeros(is_bin.shape)
    weighted[is_bin] = precision * deviation
    smoothed = []
    for width in _WIDTHS:
        # a Gaussian kernel whose standard deviation is `width` bins
        sums = gaussian_filter1d(weighted, width, mode="constant")[is_bin]
        weights = gaussian_filter1d(weight, width, mode="constant")[is_bin]
        smoothed.append(sums / weights)
    # Less evenly spread ones: d d^2 / (d^2 + variance), which is small where d may be
    # noise.
    square = deviation**2
    shrunk = np.divide(
        deviation * square,
        square + cells.variance,
        out=np.zeros_like(deviation),
        where=square > 0,
    )
    return [deviation, *smoothed, shrunk]


def _directions_of_scores(powers, cells):
    """Return a list of directions (m,) for an error whose cells are distinct scores:
    residuals averaged over a small and a large window, since that of a single score is
    mostly noise.
    """
    averaged = []
    for window in _WINDOWS:
        by_problem = [_averaged(power.cells, window) for power in powers]
        averaged.append(np.concatenate(by_problem))
    if np.any(averaged[0]):
        return averaged
    return [_noise_size(cells)]


def _common_shifts(powers):
    """Return two directions (m,), in which all cells of a problem have its mean
    deviation, or all cells that of all problems.

    They are for rows with several labels, each a binary problem. If these depend on
    each other, chance shifts the frequencies of many cells together; the observed
    deviations, mostly noise that differs from cell to cell, hardly contain such a
    shift.
    """
    shifts = []
    for power in powers:
        shifts.append(power.cells.share @ power.cells.deviation)
    n_cells = [len(power.weight) for power in powers]
    shift_of_problem = np.repeat(shifts, n_cells)
    shift_of_all = np.full(sum(n_cells), np.mean(shifts))
    return [shift_of_problem, shift_of_all]


def _noise_size(cells):
    """Return the deviations (m,) to search along where none is observed: the standard
    deviation of each frequency or, if all scores are 0 or 1, a step towards 1/2.
    """
    noise = np.sqrt(cells.variance)
    if np.any(noise):
        return noise
    towards_half = (0.5 - cells.mean_score) / (cells.weight + 1)
    if np.any(towards_half):
        return towards_half
    return np.ones(len(cells.weight))


def _averaged(cells, window):
    """Return the deviations (m,), averaged twice by a moving mean over a share `window`
    of the weight, which is cut off at the ends.
    """
    # Each cell covers an interval of the cumulative weight, and has a window of it.
    limits = np.append(0.0, np.cumsum(cells.weight))
    total = limits[-1]
    middle = (limits[1:] + limits[:-1]) / 2
    low = np.maximum(middle - window / 2 * total, 0)
    high = np.minimum(middle + window / 2 * total, total)
    deviation = cells.deviation
    for _ in range(2):
        # The sum over a window is the difference of two cumulative sums, which are
        # interpolated where the window ends within a cell.
        sums = np.append(0.0, np.cumsum(cells.weight * deviation))
        sum_in_window = np.interp(high, limits, sums) - np.interp(low, limits, sums)
        deviation = sum_in_window / (high - low)
    return deviation
