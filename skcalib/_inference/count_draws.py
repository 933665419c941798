"""Event counts of cells, drawn for many event frequencies with the same random numbers."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

BLOCK = 1 << 17  # counts drawn at a time: the temporaries stay in the cache
_FEWEST_DRAWS, _LARGEST_BLOCK = 64, 1 << 22  # draws at a time where the cells are many, and their counts
_KEPT = 1 << 23  # counts whose random numbers are kept in memory
# Draws from which on those of a cell are put in order, once for all frequencies: the counts are the same, and intervals
# of a binned error take .6 to .8 of the time of comparing each draw with each step.
_RANKED = 256
_FEW_CELLS = 8  # from whose steps on each cell is searched by itself
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
        for name in ("trials", "ratio", "excess", "_range"):
            setattr(whole, name, np.concatenate([getattr(one, name) for one in draws], axis=-1))
        whole._blocks = [_JoinedBlock([one._blocks[0] for one in draws])]
        return whole

    @property
    def is_one_block(self):
        """Whether all draws are kept in one block."""
        return self._blocks is not None and len(self._blocks) == 1

    def __call__(self, frequency, c=0):
        """Yield blocks of event frequencies drawn for frequencies (m,)."""
        if np.all(self.trials == 1):
            never = 1 - frequency
            yield from ((block.uniform > never).astype(np.float64) for block in self._uniforms())
            return
        ratio = np.clip(1 - (1 - self.ratio) * (1 + np.minimum(c, 1.0) * self.excess), 0, 1)
        law = self.trials, frequency, ratio
        if np.all(_expected(*law[:2]) >= _MANY):
            yield from (_normal_counts(block.normal, *law) / self.trials for block in self._uniforms())
            return
        kinds = _Kinds.of(*law, *self._range)
        yield from (kinds.counts(block) / self.trials for block in self._uniforms())

    def _uniforms(self):
        if self._blocks is not None:
            return self._blocks
        shapes = ((size, len(self.trials)) for size in self._sizes)
        return (_Block(_uniform(self._seed, k, shape)) for k, shape in enumerate(shapes))

    @cached_property
    def _range(self):
        """The lowest and the highest uniform number of each cell, or about what they can be."""
        if self._blocks is None:
            return np.zeros(len(self.trials)), np.full(len(self.trials), _HIGHEST_RATE)
        low = np.min([block.uniform.min(axis=0) for block in self._blocks], axis=0)
        return low, np.max([block.uniform.max(axis=0) for block in self._blocks], axis=0)


def _expected(trials, frequency):
    return trials * np.minimum(frequency, 1 - frequency)


class _Kinds(NamedTuple):
    """Cells by how their counts are drawn for given frequencies: single rows, many expected events, and few.

    Of the last the cells with many steps of the distribution function come first.
    """

    single: np.ndarray
    many: np.ndarray
    few: np.ndarray
    laws: list
    flipped: np.ndarray
    steps: np.ndarray
    n_steps: np.ndarray

    @classmethod
    def of(cls, trials, frequency, ratio, low, high):
        """Sort the cells, for uniform numbers in a range."""
        is_many, is_single = _expected(trials, frequency) >= _MANY, trials == 1
        single, many, few = map(np.flatnonzero, (is_single & ~is_many, is_many, ~is_many & ~is_single))
        flipped = frequency[few] > 0.5
        rare = np.where(flipped, 1 - frequency[few], frequency[few])
        highest = np.where(flipped, 1 - low[few], high[few])
        steps = _cumulative_probabilities(trials[few], rare, ratio[few], highest)
        n_steps = np.count_nonzero(highest > steps, axis=0)
        order = np.argsort(-n_steps, kind="stable")
        few = few[order]
        laws = [(trials[cells], frequency[cells], ratio[cells]) for cells in (single, many, few)]
        return cls(single, many, few, laws, flipped[order], steps[:, order], n_steps[order])

    def counts(self, block):
        """Return the counts of a block of draws."""
        parts = []
        if len(self.single):
            parts.append(np.take(block.uniform, self.single, axis=1) > 1 - self.laws[0][1])
        if len(self.many):
            parts.append(_normal_counts(np.take(block.normal, self.many, axis=1), *self.laws[1]))
        if len(self.few):
            rare = self._ranked(*block.ranked) if len(block.uniform) >= _RANKED else self._compared(block.uniform)
            parts.append(np.where(self.flipped, self.laws[2][0] - rare, rare) if self.flipped.any() else rare)
        place = np.argsort(np.concatenate(self[:3]))
        return np.take(np.concatenate(parts, axis=1, dtype=np.float64), place, axis=1)

    def _compared(self, uniform):
        """Return the counts of few events, for each draw the steps of the distribution function below it."""
        uniform = np.take(uniform, self.few, axis=1)
        if self.flipped.any():
            uniform = np.where(self.flipped, 1 - uniform, uniform)
        if len(self.few) <= _FEW_CELLS:  # as many passes as cells, and not as steps
            ends = zip(self.steps.T, self.n_steps, strict=True)
            return np.stack([np.searchsorted(below[:n], uniform[:, j]) for j, (below, n) in enumerate(ends)], axis=1)
        counts = np.zeros(uniform.shape, dtype=np.uint8)
        for k, below in enumerate(self.steps):
            cells = slice(np.count_nonzero(self.n_steps > k))
            counts[:, cells] += (uniform[:, cells] > below[cells]).view(np.uint8)
        return counts

    def _ranked(self, order, ranked):
        """Return them for draws in order, which have one count from one step to the next."""
        n_draws, ordered = order.shape[1], [(order[cell], ranked[cell]) for cell in self.few]
        for j in np.flatnonzero(self.flipped):
            ordered[j] = ordered[j][0][::-1], 1 - ordered[j][1][::-1]
        numbers, counts = np.arange(len(self.steps) + 1.0), np.empty((n_draws, len(self.few)))
        ends = np.zeros((len(self.steps) + 2, len(self.few)), dtype=np.intp)
        ends[-1] = n_draws
        for j, (_, uniform) in enumerate(ordered):
            ends[1:-1, j] = np.searchsorted(uniform, self.steps[:, j], side="right")
        lengths = np.diff(ends, axis=0)
        for j, (draws, _) in enumerate(ordered):
            counts[draws, j] = np.repeat(numbers, lengths[:, j])
        return counts


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


def drawn_together(asked):
    """Return blocks of event frequencies for each (draws, frequency, c): in one pass where all are of one block."""
    draws, frequencies, c = zip(*asked, strict=True) if asked else ((), (), ())
    if len(asked) < 2 or not all(isinstance(one, CountDraws) and one.is_one_block for one in draws):
        return [one(*law) for one, *law in asked]
    sizes = [len(frequency) for frequency in frequencies]
    (drawn,) = CountDraws.joined(draws)(np.concatenate(frequencies), np.repeat(c, sizes))
    return [[part] for part in np.split(drawn, np.cumsum(sizes)[:-1], axis=1)]


def _uniform(seed, k, shape):
    return np.random.default_rng([seed, k]).random(shape)


def block_sizes(n_draws, n_cells):
    """Return the numbers of draws that are made at a time."""
    size = max(1, BLOCK // n_cells, min(_FEWEST_DRAWS, _LARGEST_BLOCK // n_cells))
    return [min(size, n_draws - start) for start in range(0, n_draws, size)]


def _normal_counts(normal, n, f, ratio):
    """Round normal deviates, corrected for skewness (Cornish and Fisher), to counts."""
    skewness = (1 - 2 * f) * (1 - ratio) / 6
    counts = normal * normal
    counts *= skewness
    counts += normal * np.sqrt(n * f * (1 - f) * (1 - ratio))
    counts += n * f - skewness
    return np.clip(np.rint(counts, out=counts), 0, n, out=counts)


def _cumulative_probabilities(n, rare, ratio, highest):
    """Return P(count <= k), k = 0, 1, ..., as far as it is below `highest`, of cells with rare events (k, m).

    The law is a binomial of real n' and f' with the wanted mean and variance.
    """
    rate = np.minimum(1 - (1 - rare) * (1 - ratio), _HIGHEST_RATE)
    trials = n * np.divide(rare, rate, out=np.zeros_like(rare), where=rate > 0)
    odds, k = rate / (1 - rate), np.arange(1, _FEWEST_STEPS)[:, None]
    probability = below = np.exp(trials * np.log1p(-rate))
    steps = [np.where(trials > 0, below, 1)[None]]
    while np.any((highest > steps[-1][-1]) & (probability > 0)):
        probabilities = probability * np.cumprod(np.maximum(trials - k + 1, 0) / k * odds, axis=0)
        cumulative = below + np.cumsum(probabilities, axis=0)
        probability, below = probabilities[-1], cumulative[-1]
        steps.append(np.where(trials > k, cumulative, 1))
        k = k[-1] + np.arange(1, 2 * len(k) + 1)[:, None]
    steps = np.concatenate(steps)
    return steps[np.any(highest > steps, axis=1)]
