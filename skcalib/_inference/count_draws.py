"""Event counts of cells, drawn for many event frequencies with the same random numbers."""

from functools import cached_property

import numpy as np
from scipy.special import ndtri

BLOCK = 1 << 17  # counts drawn at a time: the temporaries stay in the cache
_FEWEST_DRAWS, _LARGEST_BLOCK = 64, 1 << 22  # draws at a time where the cells are many, and their counts
_KEPT = 1 << 23  # counts whose random numbers are kept in memory
# Steps up to which each draw is compared with each; more are looked up in the draws in order, put so once for all
# frequencies: an interval of 50 bins of 10 rows takes half of the time.
_COMPARED = 12
_FEWEST_STEPS = 16  # of a distribution function that are computed at once
_HIGHEST_RATE = 1 - 1e-12  # of an event: the probability of none of up to 24 of them is then above 0
_MANY = 12  # expected events and non-events from which on a count is a rounded normal deviate


class CountDraws:
    """Draws of event frequencies; calling it with frequencies f yields blocks of shape (draws, m).

    A cell's count has mean n f and variance n f (1 - f)(1 - r), r its `score_ratio`: at f = s that of labels drawn from
    the scores themselves, which vary within a cell. Towards c = 1 the variance becomes that of the observed residuals:
    it is multiplied by 1 + min(c, 1) (`residual_factor` - 1).

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
        self.trials = np.maximum(np.rint(cells.weight if trials is None else trials), 1)
        self.ratio, self.excess, self.n_draws = cells.score_ratio, cells.residual_factor - 1, n_draws
        seed = rng.randint(np.iinfo(np.int32).max)
        sizes = block_sizes(n_draws, len(self.trials))
        if uniforms is not None:
            self._blocks = [_Block(block) for block in np.split(uniforms, np.cumsum(sizes)[:-1])]
        else:
            blocks = (_Block(_uniform(seed, k, (size, len(self.trials)))) for k, size in enumerate(sizes))
            self._blocks = list(blocks) if n_draws * len(self.trials) <= _KEPT else None
            self._seed, self._sizes = seed, sizes

    @classmethod
    def joined(cls, draws):
        """Return the draws of several problems that are one block each, side by side, with the same random numbers."""
        draws, whole = list(draws), object.__new__(cls)
        for name in ("trials", "ratio", "excess"):
            setattr(whole, name, np.concatenate([getattr(one, name) for one in draws]))
        whole._blocks = [_JoinedBlock([one._blocks[0] for one in draws])]
        return whole

    @property
    def is_one_block(self):
        """Whether all draws are kept in one block."""
        return self._blocks is not None and len(self._blocks) == 1

    def __call__(self, frequency, c=0):
        """Yield blocks of event frequencies drawn for frequencies (m,)."""
        ratio = np.clip(1 - (1 - self.ratio) * (1 + np.minimum(c, 1.0) * self.excess), 0, 1)
        is_single, is_many = self.trials == 1, self.trials * np.minimum(frequency, 1 - frequency) >= _MANY
        kinds = []
        for held, counts_of in (
            (is_single, _single_counts),
            (is_many, _normal_counts),
            (~(is_single | is_many), _rare_counts),
        ):
            if held.any():
                cells = slice(None) if held.all() else np.flatnonzero(held)
                law = self.trials[cells], frequency[cells], ratio[cells]
                kinds.append((cells, counts_of(cells, *law)))
        for block in self._uniforms():
            if len(kinds) == 1:
                yield kinds[0][1](block) / self.trials
                continue
            counts = np.empty(block.uniform.shape)
            for cells, counts_of in kinds:
                counts[:, cells] = counts_of(block)
            yield np.divide(counts, self.trials, out=counts)

    def _uniforms(self):
        if self._blocks is not None:
            return self._blocks
        shapes = ((size, len(self.trials)) for size in self._sizes)
        return (_Block(_uniform(self._seed, k, shape)) for k, shape in enumerate(shapes))


class _Block:
    """Uniform numbers (draws, m), and the normal deviates that belong to them where they are asked for."""

    def __init__(self, uniform):
        self.uniform = uniform

    @cached_property
    def normal(self):
        return ndtri(self.uniform)

    @cached_property
    def ranked(self):
        """The order of the draws of each cell (m, draws), and their numbers in that order."""
        columns = np.ascontiguousarray(self.uniform.T)
        order = np.argsort(columns, axis=1)
        return order, np.take_along_axis(columns, order, axis=1)

    def steps_below(self, cells, steps):
        """Return how many of the steps (k, m) of some cells lie below each draw (draws, m)."""
        if len(steps) <= _COMPARED:
            uniform = self.uniform[:, cells]
            below = np.zeros(uniform.shape, dtype=np.uint8)
            for step in steps:
                below += uniform > step
            return below
        order, ranked = (values[cells] for values in self.ranked)
        n_cells, n_draws = order.shape
        first = np.array([numbers.searchsorted(ends) for numbers, ends in zip(ranked, steps.T, strict=True)])
        cell = (n_draws + 1) * np.arange(n_cells)[:, None]
        rises = np.bincount((first + cell).ravel(), minlength=n_cells * (n_draws + 1)).reshape(n_cells, -1)
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
        return tuple(map(np.concatenate, zip(*(block.ranked for block in self._blocks), strict=True)))


def _uniform(seed, k, shape):
    return np.random.default_rng([seed, k]).random(shape)


def block_sizes(n_draws, n_cells):
    """Return the numbers of draws that are made at a time."""
    size = max(1, BLOCK // n_cells, min(_FEWEST_DRAWS, _LARGEST_BLOCK // n_cells))
    return [min(size, n_draws - start) for start in range(0, n_draws, size)]


def _single_counts(cells, n, f, ratio):
    """Return what makes counts of cells of one row each from a block."""
    never = 1 - f
    return lambda block: block.uniform[:, cells] > never


def _normal_counts(cells, n, f, ratio):
    """Return the same for many events: normal deviates, corrected for skewness (Cornish and Fisher), are rounded."""
    skewness = (1 - 2 * f) * (1 - ratio) / 6
    mean, deviation = n * f - skewness, np.sqrt(n * f * (1 - f) * (1 - ratio))

    def counts_of(block):
        normal = block.normal[:, cells]
        counts = normal * normal
        counts *= skewness
        counts += normal * deviation
        counts += mean
        return np.clip(np.rint(counts, out=counts), 0, n, out=counts)

    return counts_of


def _rare_counts(cells, n, f, ratio):
    """Return the same for few events, or few non-events: the steps of the distribution function below a draw."""
    flipped = f > 0.5
    steps = _cumulative_probabilities(n, np.minimum(f, 1 - f), ratio)
    steps, least = np.where(flipped, 1 - steps[::-1], steps), np.where(flipped, n - len(steps), 0)
    return lambda block: least + block.steps_below(cells, steps)


def _cumulative_probabilities(n, rare, ratio):
    """Return P(count <= k), k = 0, 1, ..., as far as it is below `_HIGHEST_RATE`, of cells with rare events (k, m).

    The law is a binomial of real n' and f' with the wanted mean and variance.
    """
    rate = np.minimum(1 - (1 - rare) * (1 - ratio), _HIGHEST_RATE)
    trials = n * np.divide(rare, rate, out=np.zeros_like(rare), where=rate > 0)
    odds, k = rate / (1 - rate), np.arange(1, _FEWEST_STEPS)[:, None]
    probability = below = np.exp(trials * np.log1p(-rate))
    steps = [np.where(trials > 0, below, 1)[None]]
    while np.any((steps[-1][-1] < _HIGHEST_RATE) & (probability > 0)):
        probabilities = probability * np.cumprod(np.maximum(trials - k + 1, 0) / k * odds, axis=0)
        cumulative = below + np.cumsum(probabilities, axis=0)
        probability, below = probabilities[-1], cumulative[-1]
        steps.append(np.where(trials > k, cumulative, 1))
        k = k[-1] + np.arange(1, 2 * len(k) + 1)[:, None]
    steps = np.concatenate(steps)
    return steps[np.any(steps < _HIGHEST_RATE, axis=1)]
