"""Event frequencies of cells, drawn for many hypotheses with the same random numbers;
also of dependent rows.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from skcalib._cells.cells import Cells
from skcalib._input.warn import warn
from skcalib._rows.blocks import weights_or_ones

BLOCK = 1 << 17  # counts drawn at a time: the temporaries stay in the cache
# draws at a time where the cells are many, and their counts
_FEWEST_DRAWS, _LARGEST_BLOCK = 64, 1 << 22
_KEPT = 1 << 23  # random numbers that are kept in memory
# Steps up to which each draw is compared with each; more are looked up in the draws in
# order, put so once for all frequencies: an interval of 50 bins of 10 rows takes half
# of the time. A search costs as much as 5,000 comparisons.
_COMPARED, _SEARCH = 12, 5_000
_FEWEST_STEPS = 16  # of a distribution function that are computed at once
# of an event: the probability of none of up to 24 of them is then above 0
_HIGHEST_RATE = 1 - 1e-12
# expected events and non-events from which on a count is a rounded normal deviate
_MANY = 12

# expected, below which the dependence within clusters is not known well enough for the
# level
FEW_EVENTS = 40
_CORRELATIONS = np.array([0, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8, 0.99])
_QUANTILES = ndtri((np.arange(100) + 0.5) / 100)  # of what the rows of a cluster share
# probability of a class, and turns that fit rows and cells to each other
_LEAST, _ROUNDS = 1e-12, 10

# correlations of two labels that are tried
_LABEL_CORRELATIONS = np.linspace(-0.95, 0.95, 77)[:, None, None]
# numbers of rows and labels behind the draws of labels that depend on each other
_PAIRS = 1 << 17

# Rows, and scores of them, that show how the counts of classes depend on each other;
# more are thinned to these.
_ROWS, _SCORES = 20_000, 1 << 21


class CountDraws:
    """Draws of event frequencies; calling it with frequencies f yields blocks of shape
    (draws, m).

    A cell's count has mean n f and variance n f (1 - f)(1 - r), r its `score_ratio`: at
    f = s that of labels drawn from the scores themselves, which vary within a cell.
    Towards c = 1 the variance becomes that of the observed residuals: it is multiplied
    by 1 + min(c, 1) (`residual_factor` - 1).

    Parameters
    ----------
    cells : Cells
        The cells, whose weights count rows.
    n_draws : int
        Number of draws.
    rng : RandomState
        Seeds the draws.
    uniforms : ndarray of shape (n_draws, m), default=None
        Uniform numbers that are dependent between cells; independent ones by default.
    trials : ndarray of shape (m,), default=None
        Numbers of rows that the cells are worth; None for their weights.
    """

    def __init__(self, cells, n_draws, rng, uniforms=None, trials=None):
        if trials is None:
            trials = cells.weight
        self.trials = np.maximum(np.rint(trials), 1)
        self.ratio = cells.score_ratio
        self.excess = cells.residual_factor - 1
        self.n_draws = n_draws
        n_cells = len(self.trials)
        seed = rng.randint(np.iinfo(np.int32).max)
        sizes = block_sizes(n_draws, n_cells)
        if uniforms is not None:
            ends = np.cumsum(sizes)
            self._blocks = [_Block(block) for block in np.split(uniforms, ends[:-1])]
        else:
            # Many numbers are drawn anew in each pass, from the seed.
            self._seed = seed
            self._sizes = sizes
            self._blocks = None
            if n_draws * n_cells <= _KEPT:
                self._blocks = []
                for k, size in enumerate(sizes):
                    self._blocks.append(_Block(_uniform(seed, k, (size, n_cells))))
        self.is_one_block = self._blocks is not None and len(self._blocks) == 1

    @classmethod
    def joined(cls, draws):
        """Return the draws of several problems that are one block each, side by side,
        with the same random numbers.
        """
        draws = list(draws)
        joined = object.__new__(cls)
        joined.trials = np.concatenate([draw.trials for draw in draws])
        joined.ratio = np.concatenate([draw.ratio for draw in draws])
        joined.excess = np.concatenate([draw.excess for draw in draws])
        joined._blocks = [_JoinedBlock([draw._blocks[0] for draw in draws])]
        return joined

    def __call__(self, frequency, c=0):
        """Yield blocks of event frequencies drawn for frequencies (m,)."""
        factor = 1 + np.minimum(c, 1.0) * self.excess
        ratio = np.clip(1 - (1 - self.ratio) * factor, 0, 1)
        # Cells of one row, of many events, and the others each have their own law.
        is_single = self.trials == 1
        is_many = self.trials * np.minimum(frequency, 1 - frequency) >= _MANY
        laws = (
            (is_single, _single_counts),
            (is_many, _normal_counts),
            (~(is_single | is_many), _rare_counts),
        )
        # For each law that has cells: these, and a function from random numbers to
        # their counts.
        kinds = []
        for has_law, law in laws:
            if has_law.any():
                cells = np.flatnonzero(has_law)
                if has_law.all():
                    cells = slice(None)
                counts_of = law(
                    cells, self.trials[cells], frequency[cells], ratio[cells]
                )
                kinds.append((cells, counts_of))
        # The counts come kind by kind: these are the places of the cells among them.
        number = np.arange(len(frequency))
        place = np.argsort(np.concatenate([number[cells] for cells, _ in kinds]))
        for block in self._uniforms():
            if len(kinds) == 1:
                ((_, counts_of),) = kinds
                counts = counts_of(block)
                if is_single.all():
                    yield counts.astype(np.float64)
                else:
                    yield counts / self.trials
                continue
            counts = np.concatenate(
                [counts_of(block) for _, counts_of in kinds], axis=1, dtype=np.float64
            )
            yield np.take(counts, place, axis=1) / self.trials

    def _uniforms(self):
        if self._blocks is not None:
            return self._blocks
        shapes = ((size, len(self.trials)) for size in self._sizes)
        return (
            _Block(_uniform(self._seed, k, shape)) for k, shape in enumerate(shapes)
        )


class _Block:
    """Uniform numbers (draws, m), and the normal deviates that belong to them where
    they are asked for.
    """

    def __init__(self, uniform):
        self.uniform = uniform

    @cached_property
    def normal(self):
        return ndtri(self.uniform)

    @cached_property
    def ranked(self):
        """The order of the draws of each cell (m, draws), and their numbers in that
        order.
        """
        columns = np.ascontiguousarray(self.uniform.T)
        order = np.argsort(columns, axis=1)
        return order, np.take_along_axis(columns, order, axis=1)

    def steps_below(self, cells, steps):
        """Return how many of the steps (k, m) of some cells lie below each draw (draws,
        m).
        """
        if len(steps) <= _COMPARED + _SEARCH // len(self.uniform):
            uniform = _columns(self.uniform, cells)
            below = np.zeros(uniform.shape, dtype=np.uint8)
            for step in steps:
                below += uniform > step
            return below
        order, ranked = (values[cells] for values in self.ranked)
        n_cells, n_draws = order.shape
        # The draws of each cell stand in order: a step lies below all from its place
        # on, so that the counts are the cumulative numbers of steps.
        first = np.empty((n_cells, len(steps)), dtype=np.intp)
        for row, numbers, ends in zip(first, ranked, steps.T, strict=True):
            row[:] = numbers.searchsorted(ends)
        cell = (n_draws + 1) * np.arange(n_cells)[:, None]
        rises = np.bincount((first + cell).ravel(), minlength=n_cells * (n_draws + 1))
        rises = rises.reshape(n_cells, -1)
        below = np.empty((n_cells, n_draws))
        np.put_along_axis(below, order, np.cumsum(rises[:, :-1], axis=1), axis=1)
        return below.T


class _JoinedBlock(_Block):
    """Blocks side by side, whose deviates and orders are not made again."""

    def __init__(self, blocks):
        super().__init__(np.concatenate([block.uniform for block in blocks], axis=1))
        self._blocks = blocks

    @cached_property
    def normal(self):
        return np.concatenate([block.normal for block in self._blocks], axis=1)

    @cached_property
    def ranked(self):
        orders, numbers = zip(*(block.ranked for block in self._blocks), strict=True)
        return np.concatenate(orders), np.concatenate(numbers)


def _columns(values, cells):
    """Return the columns of some cells; to take them costs a third of indexing them."""
    return values if isinstance(cells, slice) else np.take(values, cells, axis=1)


def _uniform(seed, k, shape):
    return np.random.default_rng([seed, k]).random(shape)


def block_sizes(n_draws, n_cells):
    """Return the numbers of draws that are made at a time."""
    size = max(1, BLOCK // n_cells, min(_FEWEST_DRAWS, _LARGEST_BLOCK // n_cells))
    return [min(size, n_draws - start) for start in range(0, n_draws, size)]


def _single_counts(cells, n, f, ratio):
    """Return what makes counts of cells of one row each from a block."""
    never = 1 - f
    return lambda block: _columns(block.uniform, cells) > never


def _normal_counts(cells, n, f, ratio):
    """Return the same for many events: normal deviates, corrected for skewness (Cornish
    and Fisher), are rounded.
    """
    skewness = (1 - 2 * f) * (1 - ratio) / 6
    mean = n * f - skewness
    deviation = np.sqrt(n * f * (1 - f) * (1 - ratio))

    def counts_of(block):
        """Return counts for a block of standard normal deviates, corrected for skewness
        (Cornish and Fisher).
        """
        normal = _columns(block.normal, cells)
        counts = normal * normal
        counts *= skewness
        counts += normal * deviation
        counts += mean
        return np.clip(np.rint(counts, out=counts), 0, n, out=counts)

    return counts_of


def _rare_counts(cells, n, f, ratio):
    """Return the same for few events, or few non-events: the steps of the distribution
    function below a draw.
    """
    flipped = f > 0.5
    steps = _cumulative_probabilities(n, np.minimum(f, 1 - f), ratio)
    steps, least = (
        np.where(flipped, 1 - steps[::-1], steps),
        np.where(flipped, n - len(steps), 0),
    )
    return lambda block: least + block.steps_below(cells, steps)


def _cumulative_probabilities(n, rare, ratio):
    """Return P(count <= k), k = 0, 1, ..., as far as it is below `_HIGHEST_RATE`, of
    cells with rare events (k, m).

    The law is a binomial of real n' and f' with the wanted mean and variance.
    """
    # n' f' = n f and n' f' (1 - f') = n f (1 - f) (1 - ratio)
    rate = np.minimum(1 - (1 - rare) * (1 - ratio), _HIGHEST_RATE)
    trials = n * np.divide(rare, rate, out=np.zeros_like(rare), where=rate > 0)
    odds = rate / (1 - rate)
    # P(k) = P(k - 1) (n' - k + 1) / k times the odds, in blocks that double.
    k = np.arange(1, _FEWEST_STEPS)[:, None]
    probability = below = np.exp(trials * np.log1p(-rate))
    steps = [np.where(trials > 0, below, 1)[None]]
    while np.any((steps[-1][-1] < _HIGHEST_RATE) & (probability > 0)):
        probabilities = probability * np.cumprod(
            np.maximum(trials - k + 1, 0) / k * odds, axis=0
        )
        cumulative = below + np.cumsum(probabilities, axis=0)
        probability = probabilities[-1]
        below = cumulative[-1]
        steps.append(np.where(trials > k, cumulative, 1))
        k = k[-1] + np.arange(1, 2 * len(k) + 1)[:, None]
    steps = np.concatenate(steps)
    return steps[np.any(steps < _HIGHEST_RATE, axis=1)]


def exclusive_draws(rows, n_cells, n_draws, rng):
    """Return uniform numbers behind the counts of cells whose rows belong to one class
    each.

    Labels are drawn row by row at the scores: an event in one class is a non-event in
    the others. The rank of each cell's count among the draws is the random number
    behind the count, for other frequencies, too.

    Parameters
    ----------
    rows : RowsInCells
        The rows, by class.
    n_cells : int
        Number of cells.
    n_draws : int
        Number of draws.
    rng : RandomState
        Random numbers.

    Returns
    -------
    uniforms : ndarray of shape (n_draws, n_cells)
        For `CountDraws`.
    """
    n, n_columns = rows.cell.shape
    weight = rows.sample_weight
    most = min(_ROWS, max(_SCORES // n_columns, 1))
    cell_of = rows.cell
    probability = rows.scores
    if n > most or weight is not None:
        drawn = _sampled_rows(n, most, weight, rng)
        cell_of = cell_of[drawn]
        probability = probability[drawn]
    cumulative = np.cumsum(probability, axis=1, dtype=np.float64)
    cumulative = cumulative[:, :-1] / cumulative[:, -1:]
    numbers = np.arange(len(cell_of))
    counts = np.empty((n_draws, n_cells))
    for count in counts:
        labels = np.count_nonzero(
            cumulative <= rng.random_sample((len(numbers), 1)), axis=1
        )
        count[:] = np.bincount(cell_of[numbers, labels], minlength=n_cells)
    return _ranked(counts, rng)


def label_copula(scores, labels, weight, deviation=0.0):
    """Return the dependence of the labels of a row (L, L): normal deviates times its
    transpose have the correlations that the labels show.

    A row has a label where the deviate lies below the quantile of the label's
    probability. The covariance of two labels is a series in the correlation r of their
    deviates, with the quantiles a and b: ``phi(a) phi(b) (r + a b r^2 / 2 +
    (a^2 - 1)(b^2 - 1) r^3 / 6)``. The r is taken at which its sum over the rows is the
    sum of the products of residuals.

    Parameters
    ----------
    scores : ndarray of shape (n, L)
        Probabilities of the labels.
    labels : ndarray of bool, shape (n, L)
        Which labels the rows have.
    weight : ndarray of shape (n,) or None
        Weights.
    deviation : ndarray of shape (n, L), default=0.0
        What the event frequencies are above the scores.
    """
    fitted = np.clip(scores.astype(np.float64) + deviation, 0, 1)
    residual = labels - fitted
    quantile = ndtri(fitted)
    density = np.exp(-(quantile**2) / 2) / np.sqrt(2 * np.pi)
    quantile[density == 0] = 0  # a label that is certain depends on nothing
    weights = 1.0 if weight is None else weight[:, None]

    def summed(values):
        return (weights * values).T @ values

    r = _LABEL_CORRELATIONS
    expected = r * summed(density) + r**2 / 2 * summed(density * quantile)
    expected += r**3 / 6 * summed(density * (quantile**2 - 1))
    nearest = np.abs(expected - summed(residual)).argmin(axis=0)
    correlation = _LABEL_CORRELATIONS[nearest, 0, 0]
    np.fill_diagonal(correlation, 1)
    # Correlations that are estimated pair by pair need not go together: the nearest
    # that do.
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0))
    return root / np.linalg.norm(root, axis=1, keepdims=True)


def copula_draws(rows, n_cells, n_draws, rng):
    """Return uniform numbers behind the counts of cells whose rows have several labels.

    As `exclusive_draws`, for labels that do not exclude each other: those of a row
    depend on each other as in the data.

    Parameters
    ----------
    rows : RowsInCells
        The rows, by label, with their dependence.
    n_cells : int
        Number of cells.
    n_draws : int
        Number of draws.
    rng : RandomState
        Random numbers.

    Returns
    -------
    uniforms : ndarray of shape (n_draws, n_cells)
        For `CountDraws`.
    """
    n, n_labels = rows.cell.shape
    weight = rows.sample_weight
    most = max(_PAIRS // n_labels, 1)
    cell = rows.cell
    threshold = ndtri(rows.scores.astype(np.float64))
    if n > most or weight is not None:
        drawn = _sampled_rows(n, most, weight, rng)
        cell = cell[drawn]
        threshold = threshold[drawn]
    counts = np.empty((n_draws, n_cells))
    for count, labels in zip(
        counts, _copula_labels(threshold, rows.copula, n_draws, rng), strict=True
    ):
        count[:] = np.bincount(cell[labels], minlength=n_cells)
    return _ranked(counts, rng)


def _copula_labels(threshold, copula, n_draws, rng):
    """Yield labels (n, L) of rows: deviates below the thresholds."""
    for _ in range(n_draws):
        yield rng.standard_normal(threshold.shape) @ copula.T < threshold


def _sampled_rows(n, most, weight, rng):
    """Return the places of at most `most` of n rows. With weights they are drawn with
    replacement, in proportion to the weights.
    """
    share = None if weight is None else weight / weight.sum()
    return rng.choice(n, min(n, most), replace=weight is not None, p=share)


def _ranked(counts, rng):
    """Return the rank of each count among the draws as a uniform number, ties in random
    order.
    """
    counts += rng.random_sample(counts.shape)
    ranks = counts.argsort(axis=0).argsort(axis=0)
    return (ranks + rng.random_sample(counts.shape)) / len(counts)


class RowsInCells(NamedTuple):
    """The rows of all groups, by binary problem (n, n_tasks): cells, scores and labels;
    and their weights or None.

    The labels of a row exclude each other, unless there is a `copula`: see
    `label_copula`.
    """

    cell: np.ndarray
    scores: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None
    copula: np.ndarray | None = None


class ClusterDraws:
    """Draws in which the labels of a cluster depend on each other by a normal copula
    with one factor.

    A row is an event where ``sqrt(r) z + sqrt(1 - r) e`` lies below the quantile of its
    probability, z the normal deviate of its cluster and e its own: the probabilities
    stay what they are. The correlation r >= 0 is that for which the squares of the
    clusters' sums of residuals are on average as large as those of the residuals about
    s + d. They are divided by the clusters' weights, so that a large cluster does not
    stand for all.

    Parameters
    ----------
    cells : Cells
        The cells.
    rows : RowsInCells
        The rows. The events of several problems exclude each other, or have the
        dependence of the rows' `copula`: clusters then share a deviate for each label.
    deviation : ndarray of shape (m,)
        The observed deviation d.
    cluster : ndarray of int, shape (n,)
        Code of each row's cluster.
    n_draws : int
        Number of draws.
    rng : RandomState
        Seeds the draws.

    Warns
    -----
    UserWarning
        Where fewer than 40 events or non-events are expected.
    """

    def __init__(self, cells, rows, deviation, cluster, n_draws, rng):
        n, n_tasks = rows.cell.shape
        self._mean_score = cells.mean_score
        self._cell = rows.cell
        self._scores = rows.scores.astype(np.float64)
        n_events = self._scores.sum(axis=0)
        expected = min(n_events.min(), (n - n_events).min())
        if expected < FEW_EVENTS:
            warn(
                f"clusters=: {expected:.2g} events or non-events are expected. Below"
                f" about {FEW_EVENTS} the dependence of the rows within a cluster is"
                " not known well enough, and the level is not held."
            )
        self._cluster = np.unique(cluster, return_inverse=True)[1]
        weight = np.repeat(weights_or_ones(rows.sample_weight, n), n_tasks)
        cell = rows.cell.ravel()
        self._means = csr_array(
            (weight / cells.weight[cell], (cell, np.arange(n * n_tasks))),
            (len(cells.weight), n * n_tasks),
        )
        fitted = np.clip(self._scores + deviation[rows.cell], 0, 1)
        code = (self._cluster[:, None] * n_tasks + np.arange(n_tasks)).ravel()
        self.correlation = cluster_correlation(
            self._scores.ravel(), (rows.labels - fitted).ravel(), weight, code
        )
        self._copula = rows.copula
        self.n_draws = n_draws
        self._sizes = block_sizes(n_draws, n * n_tasks)
        self._seed = rng.randint(np.iinfo(np.int32).max)
        self._kept = None
        n_deviates = n if rows.copula is None else n * n_tasks
        if n_draws * n_deviates <= _KEPT:
            self._kept = [self._latent(k) for k in range(len(self._sizes))]

    def __call__(self, frequency, c=0):
        """Yield blocks of event frequencies drawn for frequencies (m,)."""
        is_exclusive = self._scores.shape[1] > 1 and self._copula is None
        # Each row's scores, shifted by what their cells' frequencies differ from the
        # scores.
        shift = frequency - self._mean_score
        if self._scores.shape[1] == 1:
            probability = self._shifted(frequency, shift)
        elif not is_exclusive:
            probability = np.clip(self._scores + shift[self._cell], 0, 1)
        else:
            probability = np.clip(self._scores + shift[self._cell], _LEAST, 1)
            # Rows that are scaled to sum to 1 no longer have the frequencies as means
            # of the cells: fit both in turn.
            for _ in range(_ROUNDS):
                probability /= probability.sum(axis=1, keepdims=True)
                present = self._means @ probability.ravel()
                factor = np.maximum(frequency, _LEAST) / present
                probability *= factor[self._cell]
            probability = np.cumsum(probability, axis=1)
            probability /= probability[:, -1:]
        # A label is an event where the row's normal deviate is below its threshold.
        threshold = ndtri(probability)
        for k in range(len(self._sizes)):
            if self._kept is None:
                latent = self._latent(k)
            else:
                latent = self._kept[k]
            labels = latent < threshold
            if is_exclusive:
                # the class whose thresholds the deviate lies between
                labels = np.diff(labels, axis=-1, prepend=False)
            # (rows and tasks, draws)
            columns = labels.reshape(len(labels), -1).T.astype(np.float64)
            yield (self._means @ columns).T

    def _shifted(self, frequency, shift):
        """Return the scores, shifted in each cell so that they have these means.

        Scores beyond 0 or 1 are clipped, and the others of the cell go as much farther.
        The mean is concave (upwards) or convex in the shift, so that Newton's steps do
        not overshoot.
        """
        # The ends are reached by all rows, not in the limit.
        shift = np.where(frequency >= 1, 1.0, np.where(frequency <= 0, -1.0, shift))
        for _ in range(_ROUNDS):
            probability = np.clip(self._scores + shift[self._cell], 0, 1)
            gap = frequency - self._means @ probability.ravel()
            if np.abs(gap).max() < _LEAST:
                break
            upwards = gap[self._cell] > 0
            has_room = np.where(upwards, probability < 1, probability > 0)
            room = self._means @ has_room.ravel().astype(np.float64)
            shift = shift + np.divide(gap, room, out=np.zeros_like(gap), where=room > 0)
        return probability

    def _latent(self, k):
        """Return normal deviates (n_draws, n_rows) of a block, correlated within
        clusters: a shared part and one of each row.
        """
        rng = np.random.default_rng([self._seed, k])
        size = self._sizes[k]
        # one deviate a row, or one for each of its labels
        n_deviates = 1 if self._copula is None else len(self._copula)
        n_clusters = self._cluster.max() + 1
        shape = size, n_clusters, n_deviates
        shared = rng.standard_normal(shape, dtype=np.float32)[:, self._cluster]
        shape = size, len(self._cluster), n_deviates
        unshared = rng.standard_normal(shape, dtype=np.float32)
        root = np.float32(self.correlation**0.5)
        other_root = np.float32((1 - self.correlation) ** 0.5)
        deviates = root * shared + other_root * unshared
        if self._copula is None:
            return deviates
        return deviates @ self._copula.T.astype(np.float32)


def cluster_labels(probability, codes, weight, resampling):
    """Yield codes of labels (n,) drawn for probabilities (n, K), with the dependence
    that clusters of `codes` show; or several labels per row (n, L) where these are.
    """
    n, n_classes = probability.shape
    is_multilabel = codes.ndim == 2
    labels = codes if is_multilabel else codes[:, None] == np.arange(n_classes)
    cell = np.arange(n * n_classes).reshape(n, n_classes)
    # a row is a cell in each class
    cells = Cells.of_scores(probability.ravel(), np.ones(cell.size), labels.ravel())
    bias = np.tile(np.average(labels - probability, axis=0, weights=weight), n)
    copula = None
    if is_multilabel:
        copula = label_copula(probability, labels, weight, bias[cell])
    rows = RowsInCells(cell, probability, labels, weight, copula)
    draws = ClusterDraws(
        cells, rows, bias, resampling.cluster, resampling.n_draws, resampling.rng
    )
    for block in draws(cells.mean_score):
        drawn = block.reshape(-1, n, n_classes)
        yield from drawn > 0 if is_multilabel else drawn.argmax(axis=2)


def drawn_labels(data, n_draws, rng):
    """Yield several labels per row (n, L), drawn for the scores of validated data with
    the dependence that the labels of a row show.
    """
    scores = data.scores.astype(np.float64)
    bias = np.average(data.labels - scores, axis=0, weights=data.sample_weight)
    copula = label_copula(scores, data.labels, data.sample_weight, bias)
    yield from _copula_labels(ndtri(scores), copula, n_draws, rng)


def cluster_correlation(scores, residual, weight, cluster):
    """Return the correlation at which the squares of the clusters' sums are on average
    as large as they are.
    """
    mass = np.bincount(cluster, weight)
    # of equal size; their mean is fitted
    n_clusters = max(mass.sum() ** 2 / (mass @ mass), 2.0)

    def squares(values):
        return np.sum(np.bincount(cluster, weight * values) ** 2 / mass)

    observed = squares(residual) * n_clusters / (n_clusters - 1)
    # What the squares are expected to be, for more and more correlation: given the
    # shared deviate z of a cluster its rows are independent.
    quantile = ndtri(scores)
    squared_weight = weight**2 / mass[cluster]
    expected = []
    for correlation in _CORRELATIONS:
        total = 0.0
        for z in _QUANTILES:
            shifted = (quantile - correlation**0.5 * z) / (1 - correlation) ** 0.5
            probability = ndtr(shifted)
            variance = probability * (1 - probability)
            total += squares(probability - scores) + squared_weight @ variance
        expected.append(total / len(_QUANTILES))
        if observed <= expected[-1]:
            break
    rising = np.maximum.accumulate(expected)
    return float(np.interp(observed, rising, _CORRELATIONS[: len(expected)]))
