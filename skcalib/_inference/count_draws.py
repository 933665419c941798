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
# Up to this number of values of a distribution function, each is compared with every
# draw. More are looked up in the sorted draws, which are sorted once for all
# frequencies: an interval of 50 bins of 10 rows takes half of the time. A search costs
# as much as 5,000 comparisons.
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
# correlations of two labels that are tried
_LABEL_CORRELATIONS = np.linspace(-0.95, 0.95, 77)
_ALL_CELLS = slice(None)  # in place of the indices of all cells
# (row, label) pairs from which labels that depend on each other are drawn; more rows
# are thinned to these
_PAIRS = 1 << 17

# Rows, and (row, class) scores, from which labels that exclude each other are drawn;
# more rows are thinned to these.
_ROWS, _SCORES = 20_000, 1 << 21


class CountDraws:
    """Draws of the event frequencies of cells; calling it with event probabilities f
    (m,) yields blocks of shape (draws, m).

    The number of events in a cell of n rows has mean n f and variance n f (1 - f)
    (1 - r). At f = s, the mean score, r is the cell's `score_ratio`: labels that are
    drawn from the scores themselves, which differ within the cell, vary less than a
    binomial number by this share. Towards c = 1 the variance becomes that of the
    observed residuals: it is multiplied by 1 + min(c, 1) (`residual_factor` - 1).

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
        # Three arrays (m,). Number of rows of each cell, a whole number of at least 1.
        self.trials = np.maximum(np.rint(trials), 1)
        # Share of the binomial variance n f (1 - f) that the number of events lacks if
        # the scores are calibrated, because they differ within the cell.
        self.missing_variance = cells.score_ratio
        # By which factor, less 1, the observed residuals vary more than such labels.
        self.excess_variance = cells.residual_factor - 1
        self.n_draws = n_draws
        n_cells = len(self.trials)
        # The random numbers do not depend on the hypothesis. They are drawn once and
        # kept as a list of `_Block`, each for some draws of all cells. If they are too
        # many to be kept, `_stored_blocks` is None: they are made again from the seed
        # in each pass.
        self._seed = rng.randint(np.iinfo(np.int32).max)
        self._sizes = block_sizes(n_draws, n_cells)  # number of draws of each block
        self._stored_blocks = None
        if uniforms is not None:
            ends = np.cumsum(self._sizes)
            self._stored_blocks = [
                _Block(part) for part in np.split(uniforms, ends[:-1])
            ]
        elif n_draws * n_cells <= _MOST_STORED:
            self._stored_blocks = []
            for k, size in enumerate(self._sizes):
                numbers = _uniform(self._seed, k, (size, n_cells))
                self._stored_blocks.append(_Block(numbers))
        # whether all draws are stored as one block, which `joined` needs
        self.is_one_block = (
            self._stored_blocks is not None and len(self._stored_blocks) == 1
        )

    @classmethod
    def joined(cls, draws):
        """Return one `CountDraws` with the cells of several, side by side.

        Each of the `draws` must hold its random numbers in a single block, and all must
        have equally many draws. The random numbers are used as they are, so no seed is
        needed and ``__init__`` is not called.
        """
        draws = list(draws)
        joined = object.__new__(cls)
        joined.trials = np.concatenate([draw.trials for draw in draws])
        joined.missing_variance = np.concatenate(
            [draw.missing_variance for draw in draws]
        )
        joined.excess_variance = np.concatenate(
            [draw.excess_variance for draw in draws]
        )
        only_blocks = [draw._stored_blocks[0] for draw in draws]
        joined._stored_blocks = [_JoinedBlock(only_blocks)]
        return joined

    def __call__(self, frequency, c=0):
        """Yield blocks (draws, m) of drawn event frequencies of the m cells.

        Parameters
        ----------
        frequency : ndarray of shape (m,)
            Event probability of each cell under the hypothesis.
        c : float or ndarray of shape (m,), default=0
            Where the hypothesis lies between calibrated scores (0) and the observed
            frequencies (1 and more): up to 1, this share of the excess variance of the
            observed residuals is given to the drawn numbers of events.

        Yields
        ------
        drawn : ndarray of shape (draws, m)
            Drawn numbers of events divided by the numbers of rows.
        """
        laws = self._laws(frequency, np.minimum(c, 1.0))
        if len(laws) == 1:
            for block in self._blocks():
                counts = laws[0].counts(block)
                if counts.dtype == bool:
                    # Cells of one row: the number of events is the frequency.
                    yield counts.astype(np.float64)
                else:
                    yield counts / self.trials
            return
        # The counts come law by law. `position` says where the count of each cell
        # stands.
        cells_in_order = np.concatenate([law.cells for law in laws])
        position = np.argsort(cells_in_order)
        for block in self._blocks():
            counts_by_law = [law.counts(block) for law in laws]
            counts = np.concatenate(counts_by_law, axis=1, dtype=np.float64)
            yield np.take(counts, position, axis=1) / self.trials

    def _laws(self, frequency, share_of_excess):
        """Return the objects that turn random numbers into numbers of events, for event
        probabilities (m,) of the cells.

        There is one for cells of one row, one for cells with many events and
        non-events, and one for the rest; those without cells are left out.
        `share_of_excess` (0 to 1) is the share of the excess variance that is given to
        the numbers of events.
        """
        factor = 1 + share_of_excess * self.excess_variance
        missing = np.clip(1 - (1 - self.missing_variance) * factor, 0, 1)
        is_single = self.trials == 1
        is_many = self.trials * np.minimum(frequency, 1 - frequency) >= _MANY
        is_rare = ~(is_single | is_many)
        laws = []
        for law, has_law in (
            (_SingleRowCounts, is_single),
            (_NormalCounts, is_many),
            (_RareCounts, is_rare),
        ):
            if not has_law.any():
                continue
            cells = np.flatnonzero(has_law)
            if has_law.all():
                cells = _ALL_CELLS
            laws.append(
                law(cells, self.trials[cells], frequency[cells], missing[cells])
            )
        return laws

    def _blocks(self):
        """Yield the uniform random numbers of each block of draws as a `_Block`: the
        stored ones, or the same numbers made again from the seed.
        """
        if self._stored_blocks is not None:
            yield from self._stored_blocks
            return
        for k, size in enumerate(self._sizes):
            yield _Block(_uniform(self._seed, k, (size, len(self.trials))))


class _Block:
    """Uniform random numbers (draws, m), one for each draw of the number of events in
    each of m cells.

    Their normal deviates and their order within each cell are computed when they are
    first used, and serve all hypotheses.
    """

    def __init__(self, uniform):
        self.uniform = uniform

    @cached_property
    def normal(self):
        """Standard normal deviates (draws, m) that belong to the uniform numbers."""
        return ndtri(self.uniform)

    @cached_property
    def ranked(self):
        """Return, for each cell, the draws sorted by their uniform number, as indices
        (m, draws), and the sorted uniform numbers (m, draws).
        """
        columns = np.ascontiguousarray(self.uniform.T)
        order = np.argsort(columns, axis=1)
        return order, np.take_along_axis(columns, order, axis=1)

    def inverted_counts(self, cells, cumulative):
        """Return numbers of events drawn by inversion of distribution functions: how
        many values of the cell's distribution function lie below the uniform number.

        Parameters
        ----------
        cells : slice or ndarray of int, shape (m,)
            Indices of the cells; a slice stands for all cells.
        cumulative : ndarray of shape (k, m)
            P(count <= 0), P(count <= 1), ... of each of these cells.

        Returns
        -------
        counts : ndarray of shape (draws, m)
            The drawn numbers.
        """
        # A few values are each compared with every draw, which is then faster than a
        # search; see `_COMPARED`.
        if len(cumulative) <= _COMPARED + _SEARCH // len(self.uniform):
            uniform = _columns(self.uniform, cells)
            counts = np.zeros(uniform.shape, dtype=np.uint8)
            for values in cumulative:
                counts += uniform > values
            return counts
        orders, sorted_numbers = self.ranked
        order = orders[cells]
        n_cells, n_draws = order.shape
        # Position among the sorted uniform numbers of a cell, 0 to n_draws, of the
        # first one above each value of its distribution function.
        first_above = np.empty((n_cells, len(cumulative)), dtype=np.intp)
        for row, numbers, values in zip(
            first_above, sorted_numbers[cells], cumulative.T, strict=True
        ):
            row[:] = numbers.searchsorted(values)
        # How many values have each position: one `bincount` for all cells, in which the
        # positions of each cell are shifted behind those of the cell before.
        width = n_draws + 1
        shifted = first_above + width * np.arange(n_cells)[:, None]
        n_values = np.bincount(shifted.ravel(), minlength=n_cells * width)
        n_values = n_values.reshape(n_cells, width)
        # A sorted number exceeds all values with its position or a lower one. These
        # counts, in sorted order, are put back into the order of the draws.
        sorted_counts = np.cumsum(n_values[:, :-1], axis=1)
        counts = np.empty((n_cells, n_draws))
        np.put_along_axis(counts, order, sorted_counts, axis=1)
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
    """Return the columns `cells` of an array (draws, n_cells). They are given by
    indices; a slice stands for all cells.
    """
    if isinstance(cells, slice):
        return values
    return np.take(values, cells, axis=1)  # takes a third of the time of indexing


def _uniform(seed, k, shape):
    """Return uniform numbers of a shape for the k-th block of draws: always the same
    for a seed.
    """
    return np.random.default_rng([seed, k]).random(shape)


def block_sizes(n_draws, n_cells):
    """Return a list with the number of draws of each block, `n_draws` in total.

    A block of draws of `n_cells` cells holds `BLOCK` numbers, which fit the cache. With
    many cells it is larger, so that it has at least 64 draws, unless these would not
    fit into the memory of a large block.
    """
    fitting_cache = BLOCK // n_cells
    fitting_memory = _LARGEST_BLOCK // n_cells
    size = max(fitting_cache, min(_FEWEST_DRAWS, fitting_memory), 1)
    sizes = []
    for start in range(0, n_draws, size):
        sizes.append(min(size, n_draws - start))
    return sizes


class _SingleRowCounts:
    """Numbers of events of cells of one row each: an event where the uniform number is
    above 1 - f.

    Parameters
    ----------
    cells : slice or ndarray of int, shape (m,)
        Indices of the cells; a slice stands for all cells.
    n, f, missing : ndarray of shape (m,)
        Numbers of rows, event probabilities, and the shares of the binomial variance
        that the numbers of events lack. A single row has n = 1, and nothing lacks.
    """

    def __init__(self, cells, n, f, missing):
        self.cells = cells
        # The probability of no event, (m,). With one row neither the number of rows n
        # nor the variance that a count lacks matters.
        self._no_event = 1 - f

    def counts(self, block):
        """Return the numbers of events (draws, m), as booleans, for a `_Block`."""
        return _columns(block.uniform, self.cells) > self._no_event


class _NormalCounts:
    """Numbers of events of cells with many events and non-events: rounded normal
    deviates z, corrected for skewness by the first term of Cornish and Fisher's
    expansion, which replaces z by z + (z^2 - 1) skewness / 6.

    Parameters
    ----------
    cells : slice or ndarray of int, shape (m,)
        Indices of the cells; a slice stands for all cells.
    n, f : ndarray of shape (m,)
        Numbers of rows and event probabilities.
    missing : ndarray of shape (m,)
        Shares by which the variance of a count is below n f (1 - f).
    """

    def __init__(self, cells, n, f, missing):
        # Of each cell, (m,): n rows, the event probability f, and the share `missing`
        # by which the variance of the number of events is below n f (1 - f).
        self.cells = cells
        self._n = n
        # The count is mean + deviation (z + (z^2 - 1) skewness / 6), here sorted by
        # powers of z. The factor of z^2 is deviation times skewness / 6.
        skewness = (1 - 2 * f) * (1 - missing) / 6
        self._square_factor = skewness
        self._deviation = np.sqrt(n * f * (1 - f) * (1 - missing))
        self._constant = n * f - skewness

    def counts(self, block):
        """Return the numbers of events (draws, m) for the normal deviates z of a
        `_Block`: constant + deviation z + factor z^2, rounded, between 0 and n.
        """
        # in one array, which is faster
        normal = _columns(block.normal, self.cells)
        counts = normal * normal
        counts *= self._square_factor
        counts += normal * self._deviation
        counts += self._constant
        return np.clip(np.rint(counts, out=counts), 0, self._n, out=counts)


class _RareCounts:
    """Numbers of events of cells with few events or few non-events, by inversion of
    their distribution functions.

    Parameters
    ----------
    cells : slice or ndarray of int, shape (m,)
        Indices of the cells; a slice stands for all cells.
    n, f : ndarray of shape (m,)
        Numbers of rows and event probabilities.
    missing : ndarray of shape (m,)
        Shares by which the variance of a count is below n f (1 - f).
    """

    def __init__(self, cells, n, f, missing):
        # Of each cell, (m,): n rows, the event probability f, and the share `missing`
        # by which the variance of the number of events is below n f (1 - f).
        self.cells = cells
        # P(count <= 0), P(count <= 1), ..., P(count <= k - 1) of the rarer of events
        # and non-events, (k, m).
        cumulative = _rare_distribution(n, np.minimum(f, 1 - f), missing)
        # If non-events are the rarer ones, the number of events is n minus theirs:
        # P(events <= n - k + j) is 1 minus P(non-events <= k - 1 - j) for j = 0, ...,
        # k - 1, and fewer than n - k events do not occur.
        is_reversed = f > 0.5
        self._smallest = np.where(is_reversed, n - len(cumulative), 0)
        self._cumulative = np.where(is_reversed, 1 - cumulative[::-1], cumulative)

    def counts(self, block):
        """Return the numbers of events (draws, m) for a `_Block`."""
        return self._smallest + block.inverted_counts(self.cells, self._cumulative)


def _rare_distribution(n, rare, missing):
    """Return the distribution function of the number of rare events in each of m cells.

    The law is a binomial with a real number n' of trials and a rate f' that has the
    mean n f and the variance n f (1 - f) (1 - missing).

    Parameters
    ----------
    n : ndarray of shape (m,)
        Numbers of rows.
    rare : ndarray of shape (m,)
        Event probabilities f, at most 1/2.
    missing : ndarray of shape (m,)
        Share of the binomial variance n f (1 - f) that is missing.

    Returns
    -------
    cumulative : ndarray of shape (k, m)
        P(count <= 0), P(count <= 1), ..., as long as it is below 1 - 1e-12 in any cell.
    """
    # n' f' = n f and n' f' (1 - f') = n f (1 - f) (1 - missing)
    rate = np.minimum(1 - (1 - rare) * (1 - missing), _HIGHEST_RATE)
    trials = n * np.divide(rare, rate, out=np.zeros_like(rare), where=rate > 0)
    odds = rate / (1 - rate)
    # P(count = k) = P(count = k - 1) (n' - k + 1) / k times the odds. This is computed
    # for blocks of counts k, each twice as long as the last, until the distribution
    # function of every cell has reached 1. It is 1 in cells without trials and for
    # counts beyond n'.
    k = np.arange(1, _FEWEST_STEPS)[:, None]
    last_probability = np.exp(trials * np.log1p(-rate))  # P(count = 0)
    last_cumulative = last_probability
    blocks = [np.where(trials > 0, last_cumulative, 1)[None]]
    while np.any((blocks[-1][-1] < _HIGHEST_RATE) & (last_probability > 0)):
        factors = np.maximum(trials - k + 1, 0) / k * odds
        probabilities = last_probability * np.cumprod(factors, axis=0)
        cumulative = last_cumulative + np.cumsum(probabilities, axis=0)
        last_probability = probabilities[-1]
        last_cumulative = cumulative[-1]
        blocks.append(np.where(trials > k, cumulative, 1))
        k = k[-1] + np.arange(1, 2 * len(k) + 1)[:, None]
    cumulative = np.concatenate(blocks)
    return cumulative[np.any(cumulative < _HIGHEST_RATE, axis=1)]


def exclusive_draws(rows, n_cells, n_draws, rng):
    """Return uniform random numbers for `CountDraws` that make the counts of cells
    depend on each other, where each row has exactly one of several classes.

    An event in one class is a non-event in all others. For each draw, every row gets a
    class drawn from its scores, and the events of each cell are counted. The rank of a
    count among the draws of its cell, divided by their number, is the uniform number.
    From it `CountDraws` makes a count for any event frequency, and the dependence
    between cells stays.

    Parameters
    ----------
    rows : RowsInCells
        The rows, with a column for each class.
    n_cells : int
        Number of cells of all classes.
    n_draws : int
        Number of draws.
    rng : RandomState
        Random numbers.

    Returns
    -------
    uniforms : ndarray of shape (n_draws, n_cells)
        Numbers in [0, 1].
    """
    n_rows, n_classes = rows.cell.shape
    most_rows = min(_ROWS, max(_SCORES // n_classes, 1))
    cell = rows.cell
    probability = rows.scores
    # Many rows, and weighted ones, are replaced by a random sample of them.
    if n_rows > most_rows or rows.sample_weight is not None:
        sampled = _sampled_rows(n_rows, most_rows, rows.sample_weight, rng)
        cell = cell[sampled]
        probability = probability[sampled]
    # The classes of a row divide [0, 1) in proportion to their probabilities. `limits`
    # are the upper ends of all parts but the last.
    cumulative = np.cumsum(probability, axis=1, dtype=np.float64)
    limits = cumulative[:, :-1] / cumulative[:, -1:]
    row = np.arange(len(cell))
    counts = np.empty((n_draws, n_cells))
    for draw in range(n_draws):
        uniform = rng.random_sample((len(row), 1))
        drawn_class = np.count_nonzero(limits <= uniform, axis=1)
        counts[draw] = np.bincount(cell[row, drawn_class], minlength=n_cells)
    return _ranks_as_uniforms(counts, rng)


def label_copula(scores, labels, weight, deviation=0.0):
    """Return a matrix A (L, L) for drawing the L labels of a row with the dependence
    that the observed labels show: the columns of ``e @ A.T`` have the right
    correlations if e (n, L) holds independent normal deviates.

    A row has label j where its j-th deviate lies below the normal quantile of the
    label's probability. The covariance of two labels with the quantiles a and b is a
    series in the correlation r of their deviates: ``phi(a) phi(b) (r + a b r^2 / 2 +
    (a^2 - 1)(b^2 - 1) r^3 / 6)``. For each pair of labels the r is taken at which the
    sum of the series over the rows is the observed sum of products of residuals.

    Parameters
    ----------
    scores : ndarray of shape (n, L)
        Probabilities of the labels.
    labels : ndarray of bool, shape (n, L)
        Which labels the rows have.
    weight : ndarray of shape (n,) or None
        Weights.
    deviation : ndarray of shape (n, L), default=0.0
        Event frequency minus score: residuals are label - (score + deviation).

    Returns
    -------
    root : ndarray of shape (L, L)
        A, with ``A @ A.T`` the correlation matrix of the deviates.
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

    # 1. The sum of the series for each pair of labels and each of 77 correlations r
    # from -.95 to .95, (77, L, L). For each pair the r is taken whose sum is nearest to
    # the observed one.
    r = _LABEL_CORRELATIONS[:, None, None]
    expected = r * sums_of_products(density)
    expected += r**2 / 2 * sums_of_products(density * quantile)
    expected += r**3 / 6 * sums_of_products(density * (quantile**2 - 1))
    nearest = np.abs(expected - sums_of_products(residual)).argmin(axis=0)
    correlation = _LABEL_CORRELATIONS[nearest]
    np.fill_diagonal(correlation, 1)
    # 2. Correlations that are estimated pair by pair need not be those of any normal
    # vector. Negative eigenvalues are replaced by 0, and the rows of the root are
    # scaled so that the variances are 1 again.
    eigenvalues, eigenvectors = np.linalg.eigh(correlation)
    root = eigenvectors * np.sqrt(np.maximum(eigenvalues, 0))
    return root / np.linalg.norm(root, axis=1, keepdims=True)


def copula_draws(rows, n_cells, n_draws, rng):
    """Return uniform random numbers for `CountDraws` that make the counts of cells
    depend on each other, where a row may have several labels.

    For each draw, every row gets labels drawn from its scores, with the dependence that
    the observed labels show, and the events of each cell are counted. The rank of a
    count among the draws of its cell, divided by their number, is the uniform number;
    see `exclusive_draws`.

    Parameters
    ----------
    rows : RowsInCells
        The rows, with a column for each label, and the dependence of the labels.
    n_cells : int
        Number of cells of all labels.
    n_draws : int
        Number of draws.
    rng : RandomState
        Random numbers.

    Returns
    -------
    uniforms : ndarray of shape (n_draws, n_cells)
        Numbers in [0, 1].
    """
    n_rows, n_labels = rows.cell.shape
    most_rows = max(_PAIRS // n_labels, 1)
    cell = rows.cell
    # A label is drawn where a normal deviate lies below the quantile of its score.
    threshold = ndtri(rows.scores.astype(np.float64))
    # Many rows, and weighted ones, are replaced by a random sample of them.
    if n_rows > most_rows or rows.sample_weight is not None:
        sampled = _sampled_rows(n_rows, most_rows, rows.sample_weight, rng)
        cell = cell[sampled]
        threshold = threshold[sampled]
    counts = np.empty((n_draws, n_cells))
    label_draws = _copula_labels(threshold, rows.copula, n_draws, rng)
    for draw, labels in enumerate(label_draws):
        counts[draw] = np.bincount(cell[labels], minlength=n_cells)
    return _ranks_as_uniforms(counts, rng)


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


def _ranks_as_uniforms(counts, rng):
    """Return uniform random numbers (n_draws, n_cells) that have, in each column, the
    order of the counts (n_draws, n_cells); the counts are overwritten.

    A number is (rank + u) / n_draws with the rank from 0 on and u uniform in [0, 1).
    """
    # Tied counts are ranked at random: a number below 1 is added to each.
    counts += rng.random_sample(counts.shape)
    # `argsort` gives the draws in order; `argsort` of that gives each draw's rank.
    rank = counts.argsort(axis=0).argsort(axis=0)
    return (rank + rng.random_sample(counts.shape)) / len(counts)


class RowsInCells(NamedTuple):
    """The rows of all groups, with a column for each class or label.

    Each column is a binary problem of its own, with its own cells.

    Parameters
    ----------
    cell : ndarray of int, shape (n, n_columns)
        Number of the cell that the score lies in; the cells of the second column are
        numbered after those of the first, and so on.
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
        n, n_columns = rows.cell.shape
        # Of each row and column: the number of its cell, and its score, (n, n_columns).
        self._cell = rows.cell
        self._scores = rows.scores.astype(np.float64)
        _warn_of_few_events(self._scores)
        self._mean_score = cells.mean_score  # of each cell, (m,)
        # Code of each row's cluster, from 0 on, (n,).
        self._cluster = np.unique(cluster, return_inverse=True)[1]
        weight = np.repeat(weights_or_ones(rows.sample_weight, n), n_columns)
        # A matrix (m, n * n_columns): its product with the values of all rows and
        # columns is their weighted mean in each cell.
        cell = rows.cell.ravel()
        self._mean_matrix = csr_array(
            (weight / cells.weight[cell], (cell, np.arange(n * n_columns))),
            (len(cells.weight), n * n_columns),
        )
        # The correlation of normal deviates within a cluster, from the residuals about
        # score + deviation, the observed deviation of the row's cell. Each column has
        # clusters of its own: the pair (cluster, column) is one number.
        fitted = np.clip(self._scores + deviation[rows.cell], 0, 1)
        column_cluster = self._cluster[:, None] * n_columns + np.arange(n_columns)
        self.correlation = cluster_correlation(
            self._scores.ravel(),
            (rows.labels - fitted).ravel(),
            weight,
            column_cluster.ravel(),
        )
        # The dependence of several labels of a row, (n_columns, n_columns); None if the
        # columns are classes, of which a row has one, or if there is one column.
        self._copula = rows.copula
        self.n_draws = n_draws
        self._sizes = block_sizes(n_draws, n * n_columns)  # draws in each block
        self._seed = rng.randint(np.iinfo(np.int32).max)
        # The normal deviates of all blocks if they fit into memory, else None: those of
        # a block are then made again from the seed when they are needed.
        self._stored_deviates = None
        n_deviates = n
        if rows.copula is not None:
            n_deviates = n * n_columns
        if n_draws * n_deviates <= _MOST_STORED:
            self._stored_deviates = [
                self._normal_deviates(k) for k in range(len(self._sizes))
            ]

    def __call__(self, frequency, c=0):
        """Yield blocks (draws, m) of event frequencies of the m cells, drawn for
        hypothetical event probabilities (m,) of the cells.

        `c` is not used; it is an argument because `CountDraws` has it.
        """
        n_columns = self._scores.shape[1]
        are_classes = n_columns > 1 and self._copula is None
        probability = self._probabilities(frequency, are_classes)
        threshold = ndtri(probability)  # (n, n_columns)
        for k in range(len(self._sizes)):
            if self._stored_deviates is None:
                deviates = self._normal_deviates(k)
            else:
                deviates = self._stored_deviates[k]
            # An event where the row's normal deviate is below the threshold of its
            # probability: (draws, n, n_columns).
            is_event = deviates < threshold
            if are_classes:
                # The thresholds of the classes increase. The drawn class is the first
                # whose threshold lies above the deviate.
                is_event = np.diff(is_event, axis=-1, prepend=False)
            # The mean in each cell, from columns of all rows and columns, one for each
            # draw.
            n_drawn = len(is_event)
            columns = is_event.reshape(n_drawn, -1).T.astype(np.float64)
            yield (self._mean_matrix @ columns).T

    def _probabilities(self, frequency, are_classes):
        """Return probabilities (n, n_columns) of the rows whose means in the cells are
        hypothetical event frequencies (m,): the scores, shifted cell by cell.

        If the columns are classes, of which a row has exactly one, the probabilities of
        a row sum to 1 and their cumulative sums are returned.
        """
        shift = frequency - self._mean_score
        if self._scores.shape[1] == 1:
            return self._shifted(frequency, shift)
        shifted = self._scores + shift[self._cell]
        if not are_classes:
            return np.clip(shifted, 0, 1)
        probability = np.clip(shifted, _LEAST, 1)
        # Scaling the rows to the sum 1 changes the means in the cells, and scaling the
        # cells changes the sums: both in turn (iterative proportional fitting).
        for _ in range(_ROUNDS):
            probability /= probability.sum(axis=1, keepdims=True)
            mean_in_cell = self._mean_matrix @ probability.ravel()
            factor = np.maximum(frequency, _LEAST) / mean_in_cell
            probability *= factor[self._cell]
        cumulative = np.cumsum(probability, axis=1)
        cumulative /= cumulative[:, -1:]
        return cumulative

    def _shifted(self, frequency, first_shift):
        """Return the scores (n, 1), shifted by one number in each cell so that their
        mean there is the hypothetical event frequency (m,).

        `first_shift` (m,) is frequency minus mean score. Shifted scores are clipped to
        [0, 1], which changes the mean: the other scores of the cell are then shifted
        further, by Newton's method. Its steps do not overshoot, because the mean is a
        concave function of an upward shift, and a convex one of a downward shift.
        """
        # Frequencies of 0 and 1 are reached by all rows at once, not in the limit.
        shift = np.where(frequency <= 0, -1.0, first_shift)
        shift = np.where(frequency >= 1, 1.0, shift)
        for _ in range(_ROUNDS):
            probability = np.clip(self._scores + shift[self._cell], 0, 1)
            missing = frequency - self._mean_matrix @ probability.ravel()
            if np.abs(missing).max() < _LEAST:
                break
            # The derivative of the mean is the share of the cell's rows that can still
            # move in the direction that is needed.
            must_rise = missing[self._cell] > 0
            can_move = np.where(must_rise, probability < 1, probability > 0)
            slope = self._mean_matrix @ can_move.ravel().astype(np.float64)
            step = np.divide(
                missing, slope, out=np.zeros_like(missing), where=slope > 0
            )
            shift = shift + step
        return probability

    def _normal_deviates(self, k):
        """Return the normal deviates of the k-th block of draws, float32 of shape
        (draws, n_rows, 1 or L): one for each row, or for each of its L labels.

        Rows of one cluster have the correlation r: a deviate is sqrt(r) times one of
        the cluster plus sqrt(1 - r) times one of the row.
        """
        rng = np.random.default_rng([self._seed, k])
        n_draws = self._sizes[k]
        n_deviates = 1
        if self._copula is not None:
            n_deviates = len(self._copula)
        n_clusters = self._cluster.max() + 1
        shape = n_draws, n_clusters, n_deviates
        of_clusters = rng.standard_normal(shape, dtype=np.float32)[:, self._cluster]
        shape = n_draws, len(self._cluster), n_deviates
        of_rows = rng.standard_normal(shape, dtype=np.float32)
        cluster_factor = np.float32(self.correlation**0.5)
        row_factor = np.float32((1 - self.correlation) ** 0.5)
        deviates = cluster_factor * of_clusters + row_factor * of_rows
        if self._copula is None:
            return deviates
        # The matrix of `label_copula` gives the labels of a row their correlations.
        return deviates @ self._copula.T.astype(np.float32)


def cluster_labels(probability, codes, weight, resampling):
    """Yield labels of all rows, drawn from their probabilities with the dependence that
    the observed labels show within clusters.

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
    # `ClusterDraws` draws event frequencies of cells. Each pair of a row and a class is
    # made a cell of its own, so that its drawn frequency, 0 or 1, is a label.
    cell = np.arange(n * n_classes).reshape(n, n_classes)
    cells = Cells.of_scores(probability.ravel(), np.ones(cell.size), labels.ravel())
    # The event frequency of a class differs from the scores by the mean residual, which
    # is taken to be the same for all rows.
    class_deviation = np.average(labels - probability, axis=0, weights=weight)
    copula = None
    if is_multilabel:
        deviation = np.broadcast_to(class_deviation, (n, n_classes))
        copula = label_copula(probability, labels, weight, deviation)
    draws = ClusterDraws(
        cells,
        RowsInCells(cell, probability, labels, weight, copula),
        np.tile(class_deviation, n),
        resampling.cluster,
        resampling.n_draws,
        resampling.rng,
    )
    for block in draws(cells.mean_score):
        is_event = block.reshape(-1, n, n_classes) > 0  # (draws, n, K)
        if is_multilabel:
            yield from is_event
        else:
            yield from is_event.argmax(axis=2)


def drawn_labels(data, n_draws, rng):
    """Yield labels of all rows, boolean (n, L), drawn `n_draws` times from the scores.

    `data` are `ScoredLabels` of rows that may have several labels. The labels of a row
    depend on each other as the observed residuals do, label minus score minus the
    label's mean residual.
    """
    scores = data.scores.astype(np.float64)
    mean_residual = np.average(data.labels - scores, axis=0, weights=data.sample_weight)
    copula = label_copula(scores, data.labels, data.sample_weight, mean_residual)
    yield from _copula_labels(ndtri(scores), copula, n_draws, rng)


def cluster_correlation(scores, residual, weight, cluster):
    """Return the correlation r, within clusters, of normal deviates from which labels
    are drawn: the r at which residuals of one cluster are as similar as observed.

    The model: a label is an event where ``sqrt(r) z + sqrt(1 - r) e`` lies below the
    normal quantile of its probability, z a normal deviate of the cluster and e one of
    the row. The sum over clusters of (sum of w residual)^2 / (sum of w) grows with r;
    the r is returned at which its expectation is the observed sum.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Probabilities.
    residual : ndarray of shape (n,)
        Label minus fitted probability.
    weight : ndarray of shape (n,)
        Weights w.
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
    # The expected sum of squares for larger and larger correlations, up to the first
    # that reaches the observed one. Given z the rows of a cluster are independent, with
    # probabilities p(z): the expectation given z is the sum of squares of p(z) - score
    # plus the variance of the labels. It is averaged over 100 quantiles of z.
    quantile = ndtri(scores)
    variance_weight = weight**2 / cluster_weight[cluster]
    expected = []
    for correlation in _CORRELATIONS:
        total = 0.0
        for z in _QUANTILES:
            threshold = (quantile - correlation**0.5 * z) / (1 - correlation) ** 0.5
            probability = ndtr(threshold)
            variance = probability * (1 - probability)
            total += sum_of_squares(probability - scores) + variance_weight @ variance
        expected.append(total / len(_QUANTILES))
        if observed <= expected[-1]:
            break
    rising = np.maximum.accumulate(expected)
    return float(np.interp(observed, rising, _CORRELATIONS[: len(expected)]))


def _warn_of_few_events(scores):
    """Warn if fewer than `FEW_EVENTS` events or non-events are expected in a column of
    scores (n, n_columns).
    """
    n_events = scores.sum(axis=0)
    expected = min(n_events.min(), (len(scores) - n_events).min())
    if expected < FEW_EVENTS:
        warn(
            f"clusters=: {expected:.2g} events or non-events are expected. Below"
            f" about {FEW_EVENTS} the dependence of the rows within a cluster"
            " cannot be estimated well enough, and the level is not controlled."
        )
