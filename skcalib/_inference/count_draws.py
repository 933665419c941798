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
# Many cells are drawn at least so many times at a time, up to so many counts.
_FEWEST_DRAWS, _LARGEST_BLOCK = 64, 1 << 22
_MOST_STORED = 1 << 23  # random numbers that are stored; more are drawn anew each time
# Up to so many steps of a distribution function are each compared with every draw. More
# are looked up in the sorted draws, which are sorted once for all frequencies: an
# interval of 50 bins of 10 rows takes half of the time. A search costs as much as 5,000
# comparisons.
_COMPARED, _SEARCH = 12, 5_000
_FEWEST_STEPS = 16  # of a distribution function that are computed at once
# The highest probability of an event: that of none among up to 24 rows is then above 0.
# Distribution functions end where they reach it.
_HIGHEST_RATE = 1 - 1e-12
# expected events and non-events from which on a count is a rounded normal deviate
_MANY = 12

# With fewer expected events or non-events the dependence within clusters is not known
# well enough for the test to hold its level.
FEW_EVENTS = 40
# Correlations within clusters at which the expected squares of cluster sums are
# computed, and quantiles of the normal deviate that the rows of a cluster share.
_CORRELATIONS = np.array([0, 0.05, 0.1, 0.2, 0.35, 0.55, 0.8, 0.99])
_QUANTILES = ndtri((np.arange(100) + 0.5) / 100)
# The smallest probability of a class, and how often rows and cells are fitted to each
# other in turn.
_LEAST, _ROUNDS = 1e-12, 10
# correlations of two labels that are tried, (77, 1, 1)
_LABEL_CORRELATIONS = np.linspace(-0.95, 0.95, 77)[:, None, None]
# (row, label) pairs from which labels that depend on each other are drawn; more rows
# are thinned to these
_PAIRS = 1 << 17

# Rows, and (row, class) scores, from which labels that exclude each other are drawn;
# more rows are thinned to these.
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
        # Of the m cells: numbers of rows, whole and at least 1; the shares r by which
        # counts vary less than binomial ones; and by which shares of that variance the
        # observed residuals vary more.
        self.trials = np.maximum(np.rint(trials), 1)
        self.ratio = cells.score_ratio
        self.excess = cells.residual_factor - 1
        self.n_draws = n_draws
        n_cells = len(self.trials)
        seed = rng.randint(np.iinfo(np.int32).max)
        sizes = block_sizes(n_draws, n_cells)
        # The random numbers: a list of `_Block`, each of some draws of all cells. None
        # where they are too many to be stored.
        if uniforms is not None:
            ends = np.cumsum(sizes)
            self._blocks = [_Block(block) for block in np.split(uniforms, ends[:-1])]
        else:
            # Numbers that are not stored are drawn anew in each pass, from the seed.
            self._seed = seed
            self._sizes = sizes
            self._blocks = None
            if n_draws * n_cells <= _MOST_STORED:
                self._blocks = []
                for k, size in enumerate(sizes):
                    self._blocks.append(_Block(_uniform(seed, k, (size, n_cells))))
        # whether all draws are stored as one block, which `joined` needs
        self.is_one_block = self._blocks is not None and len(self._blocks) == 1

    @classmethod
    def joined(cls, draws):
        """Return the `CountDraws` of several problems, each of which is drawn as one
        block, as the draws of one problem with the cells of all, side by side.

        The random numbers stay those of each.
        """
        draws = list(draws)
        joined = object.__new__(cls)
        joined.trials = np.concatenate([draw.trials for draw in draws])
        joined.ratio = np.concatenate([draw.ratio for draw in draws])
        joined.excess = np.concatenate([draw.excess for draw in draws])
        joined._blocks = [_JoinedBlock([draw._blocks[0] for draw in draws])]
        return joined

    def __call__(self, frequency, c=0):
        """Yield blocks (draws, m) of drawn event frequencies of the m cells.

        Parameters
        ----------
        frequency : ndarray of shape (m,)
            Event probability of each cell under the hypothesis.
        c : float or ndarray of shape (m,), default=0
            Where the hypothesis lies between calibrated scores (0) and the observed
            frequencies (1 and more): so much of the excess variance that the observed
            residuals show is given to the drawn events, too.

        Yields
        ------
        drawn : ndarray of shape (draws, m)
            Drawn counts divided by the numbers of rows.
        """
        # 1 - r is the share of the binomial variance that a count has. At c = 0 it is
        # that of calibrated scores, from c = 1 on that of the observed residuals.
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
        if len(kinds) == 1:
            ((_, counts_of),) = kinds
            for block in self._uniforms():
                counts = counts_of(block)
                if is_single.all():
                    yield counts.astype(np.float64)  # booleans: one row in each cell
                else:
                    yield counts / self.trials
            return
        # The counts come law by law: `place` puts them back in the order of the cells.
        number = np.arange(len(frequency))
        place = np.argsort(np.concatenate([number[cells] for cells, _ in kinds]))
        for block in self._uniforms():
            counts = np.concatenate(
                [counts_of(block) for _, counts_of in kinds], axis=1, dtype=np.float64
            )
            yield np.take(counts, place, axis=1) / self.trials

    def _uniforms(self):
        """Yield the `_Block` of random numbers of each block of draws: the stored ones,
        or the same numbers made anew from the seed.
        """
        if self._blocks is not None:
            yield from self._blocks
            return
        for k, size in enumerate(self._sizes):
            yield _Block(_uniform(self._seed, k, (size, len(self.trials))))


class _Block:
    """Uniform random numbers (draws, m) behind the counts of m cells, with their normal
    deviates and their order within each cell, which are computed when they are first
    used.
    """

    def __init__(self, uniform):
        self.uniform = uniform

    @cached_property
    def normal(self):
        """Standard normal deviates (draws, m) that belong to the uniform numbers."""
        return ndtri(self.uniform)

    @cached_property
    def ranked(self):
        """Return the draws of each cell in the order of their numbers (m, draws), and
        the sorted numbers (m, draws).
        """
        columns = np.ascontiguousarray(self.uniform.T)
        order = np.argsort(columns, axis=1)
        return order, np.take_along_axis(columns, order, axis=1)

    def steps_below(self, cells, steps):
        """Count the steps of a distribution function that lie below each draw: the
        drawn number of events, by inversion.

        Parameters
        ----------
        cells : slice or ndarray of int, shape (m,)
            Which cells the steps belong to.
        steps : ndarray of shape (k, m)
            P(count <= 0), P(count <= 1), ... of each cell.

        Returns
        -------
        counts : ndarray of shape (draws, m)
            Numbers of steps below the uniform number.
        """
        # Few steps are each compared with every draw, which is then faster than a
        # search; see `_COMPARED`.
        if len(steps) <= _COMPARED + _SEARCH // len(self.uniform):
            uniform = _columns(self.uniform, cells)
            counts = np.zeros(uniform.shape, dtype=np.uint8)
            for step in steps:
                counts += uniform > step
            return counts
        all_orders, all_numbers = self.ranked
        order = all_orders[cells]
        sorted_numbers = all_numbers[cells]
        n_cells, n_draws = order.shape
        # Where each step falls among the sorted draws of its cell: it lies below the
        # draws from there on.
        first_above = np.empty((n_cells, len(steps)), dtype=np.intp)
        for row, numbers, cell_steps in zip(
            first_above, sorted_numbers, steps.T, strict=True
        ):
            row[:] = numbers.searchsorted(cell_steps)
        # How many steps fall at each place, in one `bincount` of (cell, place). Their
        # cumulative sums are the counts in sorted order, which go back to the draws.
        cell_start = (n_draws + 1) * np.arange(n_cells)[:, None]
        steps_at = np.bincount(
            (first_above + cell_start).ravel(), minlength=n_cells * (n_draws + 1)
        ).reshape(n_cells, -1)
        counts = np.empty((n_cells, n_draws))
        np.put_along_axis(counts, order, np.cumsum(steps_at[:, :-1], axis=1), axis=1)
        return counts.T


class _JoinedBlock(_Block):
    """Blocks of the same draws for several problems, side by side; see `_Block`. The
    normal deviates and orders that a block has computed are used again.
    """

    def __init__(self, blocks):
        super().__init__(np.concatenate([block.uniform for block in blocks], axis=1))
        self._blocks = blocks

    @cached_property
    def normal(self):
        """Standard normal deviates (draws, m) of all blocks, side by side."""
        return np.concatenate([block.normal for block in self._blocks], axis=1)

    @cached_property
    def ranked(self):
        """Order and sorted numbers of all blocks; see `_Block.ranked`."""
        orders, numbers = zip(*(block.ranked for block in self._blocks), strict=True)
        return np.concatenate(orders), np.concatenate(numbers)


def _columns(values, cells):
    """Return the columns of some cells (a slice, or indices) of values (draws,
    n_cells); `np.take` costs a third of indexing.
    """
    if isinstance(cells, slice):
        return values
    return np.take(values, cells, axis=1)


def _uniform(seed, k, shape):
    """Return uniform numbers of a shape for the k-th block of draws: always the same
    for a seed.
    """
    return np.random.default_rng([seed, k]).random(shape)


def block_sizes(n_draws, n_cells):
    """Return how many draws each block holds: so many that their counts fit the cache,
    and not too few where there are many cells.
    """
    size = max(1, BLOCK // n_cells, min(_FEWEST_DRAWS, _LARGEST_BLOCK // n_cells))
    sizes = []
    for start in range(0, n_draws, size):
        sizes.append(min(size, n_draws - start))
    return sizes


def _single_counts(cells, n, f, ratio):
    """Return a function from a `_Block` to the counts (draws, m) of cells of one row
    each: an event where the uniform number is above 1 - f.

    All laws have the same arguments: the cells (indices or a slice), and for each of
    them the number n of rows, the event frequency f, and the share `ratio` by which the
    variance of the count is below n f (1 - f).
    """
    no_event = 1 - f
    return lambda block: _columns(block.uniform, cells) > no_event


def _normal_counts(cells, n, f, ratio):
    """Return a function from a `_Block` to the counts (draws, m) of cells with many
    events and non-events: rounded normal deviates, corrected for skewness.

    The arguments are those of `_single_counts`. The correction is the first term of
    Cornish and Fisher's expansion: z + (z^2 - 1) skewness / 6 in place of z.
    """
    # (skewness / 6) times the standard deviation of the count
    skewness = (1 - 2 * f) * (1 - ratio) / 6
    mean = n * f - skewness
    deviation = np.sqrt(n * f * (1 - f) * (1 - ratio))

    def counts_of(block):
        """Return mean + deviation z + skewness z^2, rounded and clipped, for normal
        deviates z (draws, m): in one array, which is faster.
        """
        normal = _columns(block.normal, cells)
        counts = normal * normal
        counts *= skewness
        counts += normal * deviation
        counts += mean
        return np.clip(np.rint(counts, out=counts), 0, n, out=counts)

    return counts_of


def _rare_counts(cells, n, f, ratio):
    """Return a function from a `_Block` to the counts (draws, m) of cells with few
    events or few non-events, by inversion of their distribution functions.

    The arguments are those of `_single_counts`.
    """
    steps = _cumulative_probabilities(n, np.minimum(f, 1 - f), ratio)
    # Where events are the majority the steps are those of the non-events: the events
    # have the distribution function 1 - steps, from the largest count down.
    is_majority = f > 0.5
    smallest_count = np.where(is_majority, n - len(steps), 0)
    steps = np.where(is_majority, 1 - steps[::-1], steps)
    return lambda block: smallest_count + block.steps_below(cells, steps)


def _cumulative_probabilities(n, rare, ratio):
    """Return the distribution function of the numbers of rare events in cells.

    The law is a binomial of real n' and f' whose mean is n f and whose variance is n f
    (1 - f) (1 - ratio).

    Parameters
    ----------
    n : ndarray of shape (m,)
        Numbers of rows.
    rare : ndarray of shape (m,)
        Event frequencies f, at most 1/2.
    ratio : ndarray of shape (m,)
        Share of the binomial variance that is missing.

    Returns
    -------
    steps : ndarray of shape (k, m)
        P(count <= 0), P(count <= 1), ..., as long as it is below 1 - 1e-12 in any cell.
    """
    # n' f' = n f and n' f' (1 - f') = n f (1 - f) (1 - ratio)
    rate = np.minimum(1 - (1 - rare) * (1 - ratio), _HIGHEST_RATE)
    trials = n * np.divide(rare, rate, out=np.zeros_like(rare), where=rate > 0)
    odds = rate / (1 - rate)
    # P(k) = P(k - 1) (n' - k + 1) / k times the odds, in blocks of k that double, until
    # the distribution function of each cell has reached 1. Cells without trials, and
    # counts beyond n', have the value 1.
    k = np.arange(1, _FEWEST_STEPS)[:, None]
    probability = np.exp(trials * np.log1p(-rate))
    below = probability
    steps = [np.where(trials > 0, below, 1)[None]]
    while np.any((steps[-1][-1] < _HIGHEST_RATE) & (probability > 0)):
        factors = np.maximum(trials - k + 1, 0) / k * odds
        probabilities = probability * np.cumprod(factors, axis=0)
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
    n_rows, n_classes = rows.cell.shape
    most_rows = min(_ROWS, max(_SCORES // n_classes, 1))
    cell_of = rows.cell
    probability = rows.scores
    # Many rows, and weighted ones, are replaced by a random sample of them.
    if n_rows > most_rows or rows.sample_weight is not None:
        sampled = _sampled_rows(n_rows, most_rows, rows.sample_weight, rng)
        cell_of = cell_of[sampled]
        probability = probability[sampled]
    # Upper limits of the classes but the last on [0, 1): a uniform number falls into
    # the class that is drawn.
    cumulative = np.cumsum(probability, axis=1, dtype=np.float64)
    limits = cumulative[:, :-1] / cumulative[:, -1:]
    row = np.arange(len(cell_of))
    counts = np.empty((n_draws, n_cells))
    for draw in range(n_draws):
        uniform = rng.random_sample((len(row), 1))
        label = np.count_nonzero(limits <= uniform, axis=1)
        counts[draw] = np.bincount(cell_of[row, label], minlength=n_cells)
    return _ranked(counts, rng)


def label_copula(scores, labels, weight, deviation=0.0):
    """Return the dependence of the labels of a row: independent normal deviates (n, L)
    times the transpose of the result have the correlations that the labels show.

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
        Event frequency minus score.

    Returns
    -------
    root : ndarray of shape (L, L)
        The root of the correlation matrix.
    """
    fitted = np.clip(scores.astype(np.float64) + deviation, 0, 1)
    residual = labels - fitted
    quantile = ndtri(fitted)
    density = np.exp(-(quantile**2) / 2) / np.sqrt(2 * np.pi)
    quantile[density == 0] = 0  # a label that is certain depends on nothing
    weights = 1.0
    if weight is not None:
        weights = weight[:, None]

    def sums_of_products(values):
        """Return the weighted sums over rows (L, L) of the products of two columns."""
        return (weights * values).T @ values

    # 1. The series for each correlation r that is tried, (77, L, L), and for each pair
    # of labels the r whose value is nearest to the observed one.
    r = _LABEL_CORRELATIONS
    expected = r * sums_of_products(density)
    expected += r**2 / 2 * sums_of_products(density * quantile)
    expected += r**3 / 6 * sums_of_products(density * (quantile**2 - 1))
    nearest = np.abs(expected - sums_of_products(residual)).argmin(axis=0)
    correlation = _LABEL_CORRELATIONS[nearest, 0, 0]
    np.fill_diagonal(correlation, 1)
    # 2. Correlations that are estimated pair by pair need not be those of any normal
    # vector: negative eigenvalues become 0, and the variances 1 again.
    eigenvalues, eigenvectors = np.linalg.eigh(correlation)
    root = eigenvectors * np.sqrt(np.maximum(eigenvalues, 0))
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
    n_rows, n_labels = rows.cell.shape
    most_rows = max(_PAIRS // n_labels, 1)
    cell = rows.cell
    threshold = ndtri(rows.scores.astype(np.float64))
    # Many rows, and weighted ones, are replaced by a random sample of them.
    if n_rows > most_rows or rows.sample_weight is not None:
        sampled = _sampled_rows(n_rows, most_rows, rows.sample_weight, rng)
        cell = cell[sampled]
        threshold = threshold[sampled]
    counts = np.empty((n_draws, n_cells))
    all_labels = _copula_labels(threshold, rows.copula, n_draws, rng)
    for draw, labels in enumerate(all_labels):
        counts[draw] = np.bincount(cell[labels], minlength=n_cells)
    return _ranked(counts, rng)


def _copula_labels(threshold, copula, n_draws, rng):
    """Yield drawn labels, boolean (n, L): a row has a label where its normal deviate is
    below the threshold (n, L). The deviates of a row have the dependence `copula` (L,
    L) of `label_copula`.
    """
    for _ in range(n_draws):
        yield rng.standard_normal(threshold.shape) @ copula.T < threshold


def _sampled_rows(n, most, weight, rng):
    """Return the indices of at most `most` of n rows.

    Without weights no row comes twice. With weights (n,) rows are drawn with
    replacement, in proportion to the weights.
    """
    share = None
    if weight is not None:
        share = weight / weight.sum()
    return rng.choice(n, min(n, most), replace=weight is not None, p=share)


def _ranked(counts, rng):
    """Return the ranks of the counts (n_draws, n_cells) among the draws of each cell,
    as uniform numbers of the same shape; tied counts are ranked at random. The counts
    are overwritten.
    """
    counts += rng.random_sample(counts.shape)
    # argsort of the order is the rank, from 0 on
    rank = counts.argsort(axis=0).argsort(axis=0)
    return (rank + rng.random_sample(counts.shape)) / len(counts)


class RowsInCells(NamedTuple):
    """The rows of all groups, with a column for each class or label.

    Parameters
    ----------
    cell : ndarray of int, shape (n, n_columns)
        Number of the cell that the score lies in; the cells of all columns are numbered
        through.
    scores : ndarray of shape (n, n_columns)
        Probabilities.
    labels : ndarray of bool, shape (n, n_columns)
        Events.
    sample_weight : ndarray of shape (n,) or None
        Weights of the rows.
    copula : ndarray of shape (n_columns, n_columns) or None
        Dependence of the labels of a row; see `label_copula`. None where the labels of
        a row exclude each other.
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
        # A task is one of the binary problems: a class, or a label. Arrays (n, n_tasks)
        # hold, for each row and task, the number of the cell and the score.
        n, n_tasks = rows.cell.shape
        self._mean_score = cells.mean_score  # (m,)
        self._cell = rows.cell
        self._scores = rows.scores.astype(np.float64)
        n_events = self._scores.sum(axis=0)
        expected = min(n_events.min(), (n - n_events).min())
        if expected < FEW_EVENTS:
            warn(
                f"clusters=: {expected:.2g} events or non-events are expected. Below"
                f" about {FEW_EVENTS} the dependence of the rows within a cluster"
                " cannot be estimated well enough, and the level is not controlled."
            )
        # code of each row's cluster, from 0 on, (n,)
        self._cluster = np.unique(cluster, return_inverse=True)[1]
        weight = np.repeat(weights_or_ones(rows.sample_weight, n), n_tasks)
        cell = rows.cell.ravel()
        # The matrix (m, n n_tasks) whose product with values of rows and tasks is their
        # weighted mean in each cell.
        self._means = csr_array(
            (weight / cells.weight[cell], (cell, np.arange(n * n_tasks))),
            (len(cells.weight), n * n_tasks),
        )
        fitted = np.clip(self._scores + deviation[rows.cell], 0, 1)
        # each problem has its own clusters: (cluster, task) as one number
        code = (self._cluster[:, None] * n_tasks + np.arange(n_tasks)).ravel()
        self.correlation = cluster_correlation(
            self._scores.ravel(), (rows.labels - fitted).ravel(), weight, code
        )
        self._copula = rows.copula  # (n_tasks, n_tasks), or None
        self.n_draws = n_draws
        self._sizes = block_sizes(n_draws, n * n_tasks)  # draws in each block
        self._seed = rng.randint(np.iinfo(np.int32).max)
        # The normal deviates of all blocks where they fit into memory, else None: each
        # block's are then made again from the seed.
        self._stored = None
        n_deviates = n
        if rows.copula is not None:
            n_deviates = n * n_tasks
        if n_draws * n_deviates <= _MOST_STORED:
            self._stored = [self._latent(k) for k in range(len(self._sizes))]

    def __call__(self, frequency, c=0):
        """Yield blocks (draws, m) of event frequencies of the m cells, drawn for
        hypothetical event frequencies (m,). `c` is an argument because `CountDraws` has
        it; it is not used.
        """
        is_exclusive = self._scores.shape[1] > 1 and self._copula is None
        threshold = ndtri(self._probabilities(frequency, is_exclusive))  # (n, n_tasks)
        for k in range(len(self._sizes)):
            # The normal deviates of the block, (draws, n, 1), or (draws, n, n_tasks)
            # for several labels.
            if self._stored is None:
                latent = self._latent(k)
            else:
                latent = self._stored[k]
            # A label is an event where the row's normal deviate is below its threshold:
            # (draws, n, n_tasks).
            labels = latent < threshold
            if is_exclusive:
                # the class whose thresholds the deviate lies between
                labels = np.diff(labels, axis=-1, prepend=False)
            # (rows and tasks, draws)
            columns = labels.reshape(len(labels), -1).T.astype(np.float64)
            yield (self._means @ columns).T

    def _probabilities(self, frequency, is_exclusive):
        """Return the probability (n, n_tasks) below which each row's label is an event.

        The scores are shifted by what the hypothetical frequencies (m,) of their cells
        differ from the mean scores. Exclusive classes have cumulative probabilities.
        """
        shift = frequency - self._mean_score
        if self._scores.shape[1] == 1:
            return self._shifted(frequency, shift)
        if not is_exclusive:
            return np.clip(self._scores + shift[self._cell], 0, 1)
        probability = np.clip(self._scores + shift[self._cell], _LEAST, 1)
        # Rows that are scaled to sum to 1 no longer have the frequencies as means of
        # the cells: fit both in turn.
        for _ in range(_ROUNDS):
            probability /= probability.sum(axis=1, keepdims=True)
            mean_in_cell = self._means @ probability.ravel()
            factor = np.maximum(frequency, _LEAST) / mean_in_cell
            probability *= factor[self._cell]
        cumulative = np.cumsum(probability, axis=1)
        cumulative /= cumulative[:, -1:]
        return cumulative

    def _shifted(self, frequency, shift):
        """Return the scores (n, 1) shifted so that their mean in each cell is the
        hypothetical frequency (m,), for a first guess `shift` (m,) of the shifts.

        Scores beyond 0 or 1 are clipped, and the others of the cell are shifted
        further. The mean is concave (upwards) or convex in the shift, so that Newton's
        steps do not overshoot.
        """
        # Frequencies of 0 and 1 are reached by all rows at once, not in the limit.
        shift = np.where(frequency <= 0, -1.0, shift)
        shift = np.where(frequency >= 1, 1.0, shift)
        for _ in range(_ROUNDS):
            probability = np.clip(self._scores + shift[self._cell], 0, 1)
            gap = frequency - self._means @ probability.ravel()
            if np.abs(gap).max() < _LEAST:
                break
            # The slope of the mean is the share of the cell's rows that are not
            # clipped.
            is_upwards = gap[self._cell] > 0
            moves = np.where(is_upwards, probability < 1, probability > 0)
            slope = self._means @ moves.ravel().astype(np.float64)
            step = np.divide(gap, slope, out=np.zeros_like(gap), where=slope > 0)
            shift = shift + step
        return probability

    def _latent(self, k):
        """Return the normal deviates of the k-th block of draws, float32 of shape
        (draws, n_rows, 1 or L): one for each row, or for each of its L labels.

        Within a cluster they have the correlation r: sqrt(r) times a deviate of the
        cluster plus sqrt(1 - r) times one of the row.
        """
        rng = np.random.default_rng([self._seed, k])
        size = self._sizes[k]
        n_deviates = 1
        if self._copula is not None:
            n_deviates = len(self._copula)
        n_clusters = self._cluster.max() + 1
        shape = size, n_clusters, n_deviates
        of_clusters = rng.standard_normal(shape, dtype=np.float32)[:, self._cluster]
        shape = size, len(self._cluster), n_deviates
        of_rows = rng.standard_normal(shape, dtype=np.float32)
        cluster_factor = np.float32(self.correlation**0.5)
        row_factor = np.float32((1 - self.correlation) ** 0.5)
        deviates = cluster_factor * of_clusters + row_factor * of_rows
        if self._copula is None:
            return deviates
        return deviates @ self._copula.T.astype(np.float32)


def cluster_labels(probability, codes, weight, resampling):
    """Yield labels of all rows, drawn with the dependence that the observed labels show
    within clusters.

    Parameters
    ----------
    probability : ndarray of shape (n, K)
        Probability of each class, or of each of several labels.
    codes : ndarray of int, shape (n,), or of bool, shape (n, K)
        Observed class of each row, or which labels it has.
    weight : ndarray of shape (n,) or None
        Weights.
    resampling : Resampling
        Number of draws, random numbers and clusters.

    Yields
    ------
    drawn : ndarray of int, shape (n,), or of bool, shape (n, K)
        Drawn labels in the form of `codes`.
    """
    n, n_classes = probability.shape
    is_multilabel = codes.ndim == 2
    if is_multilabel:
        labels = codes
    else:
        labels = codes[:, None] == np.arange(n_classes)
    # Each pair of a row and a class is a cell, so that a drawn frequency is a label.
    cell = np.arange(n * n_classes).reshape(n, n_classes)
    cells = Cells.of_scores(probability.ravel(), np.ones(cell.size), labels.ravel())
    # The observed deviation of every cell is taken to be the mean one of its class.
    bias = np.tile(np.average(labels - probability, axis=0, weights=weight), n)
    copula = None
    if is_multilabel:
        copula = label_copula(probability, labels, weight, bias[cell])
    rows = RowsInCells(cell, probability, labels, weight, copula)
    draws = ClusterDraws(
        cells, rows, bias, resampling.cluster, resampling.n_draws, resampling.rng
    )
    for block in draws(cells.mean_score):
        frequencies = block.reshape(-1, n, n_classes)
        if is_multilabel:
            yield from frequencies > 0
        else:
            yield from frequencies.argmax(axis=2)


def drawn_labels(data, n_draws, rng):
    """Yield labels of all rows, boolean (n, L), drawn `n_draws` times from the scores
    of several labels per row (`ScoredLabels`). The labels of a row depend on each other
    as the observed ones do.
    """
    scores = data.scores.astype(np.float64)
    bias = np.average(data.labels - scores, axis=0, weights=data.sample_weight)
    copula = label_copula(scores, data.labels, data.sample_weight, bias)
    yield from _copula_labels(ndtri(scores), copula, n_draws, rng)


def cluster_correlation(scores, residual, weight, cluster):
    """Return the correlation r of normal deviates behind the labels of a cluster, from
    the sums of residuals over clusters.

    It is the r at which the sum over clusters of (sum of w residual)^2 / (sum of w) is
    expected to be as large as it is observed.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Probabilities.
    residual : ndarray of shape (n,)
        Label minus probability.
    weight : ndarray of shape (n,)
        Weights.
    cluster : ndarray of int, shape (n,)
        Code of each row's cluster, from 0 on.

    Returns
    -------
    correlation : float
        From 0 to .99.
    """
    cluster_weight = np.bincount(cluster, weight)
    # Kish's number of clusters of equal size that they are worth
    n_clusters = cluster_weight.sum() ** 2 / (cluster_weight @ cluster_weight)
    n_clusters = max(n_clusters, 2.0)

    def sum_of_squares(values):
        """Return the sum over clusters of (sum of w value)^2 / (sum of w)."""
        sums = np.bincount(cluster, weight * values)
        return np.sum(sums**2 / cluster_weight)

    # The residuals are about a fitted mean: one degree of freedom less.
    observed = sum_of_squares(residual) * n_clusters / (n_clusters - 1)
    # The expected sum of squares for more and more correlation: given the deviate z
    # that a cluster shares its rows are independent, and the mean over z is taken at
    # its quantiles.
    quantile = ndtri(scores)
    squared_weight = weight**2 / cluster_weight[cluster]
    expected = []
    for correlation in _CORRELATIONS:
        total = 0.0
        for z in _QUANTILES:
            shifted = (quantile - correlation**0.5 * z) / (1 - correlation) ** 0.5
            probability = ndtr(shifted)
            variance = probability * (1 - probability)
            total += sum_of_squares(probability - scores) + squared_weight @ variance
        expected.append(total / len(_QUANTILES))
        if observed <= expected[-1]:
            break
    rising = np.maximum.accumulate(expected)
    return float(np.interp(observed, rising, _CORRELATIONS[: len(expected)]))
