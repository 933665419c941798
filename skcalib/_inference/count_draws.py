"""Event frequencies of cells, drawn for many hypotheses with the same random
numbers.
"""

from functools import cached_property

import numpy as np

from skcalib._inference.count_laws import (
    NormalCounts,
    QuietCounts,
    RareCounts,
    SingleRowCounts,
)
from skcalib._inference.uniform_blocks import (
    MOST_LISTED,
    MOST_STORED,
    JoinedBlock,
    ListedNumbers,
    UniformBlock,
    block_sizes,
    uniform_numbers,
)

# expected events and non-events from which on a count is a rounded normal deviate
_MANY = 12
# expected events up to which draws with events are listed one by one
_QUIET = 6
# Listed numbers serve cells with up to about twice the expected events.
_MARGIN = 2
_ALL_CELLS = slice(None)  # in place of the indices of all cells


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
        The cells, whose weights or `trials` count rows.
    n_draws : int
        Number of draws.
    rng : RandomState
        Seeds the draws.
    uniforms : ndarray of shape (n_draws, m), default=None
        Uniform numbers that are dependent between cells; independent ones by default.
    """

    def __init__(self, cells, n_draws, rng, uniforms=None):
        trials = cells.trials
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
        # whether the counts of the cells are independent
        self.is_independent = uniforms is None
        self._uniforms = uniforms
        self._rng = rng
        # The `ListedNumbers`, once they are made, and their floors (m,).
        # Cells with an observed event may have many under a hypothesis.
        self._listed = None
        self._floor = np.where(cells.weighted_label > 0, 0.0, 1.0)
        # number of draws of each block
        self._sizes = block_sizes(n_draws, len(self.trials))

    @cached_property
    def _seed(self):
        """The seed, taken only when needed: problems that are summed over their
        outcomes need none.
        """
        return self._rng.randint(np.iinfo(np.int32).max)

    @property
    def _are_stored(self):
        """Whether the random numbers are kept, because they are few enough."""
        n_numbers = self.n_draws * len(self.trials)
        return self._uniforms is not None or n_numbers <= MOST_STORED

    @cached_property
    def _stored_blocks(self):
        """The random numbers, a list of `UniformBlock`, each for some draws of all
        cells, whatever the hypothesis; None if they are too many to be kept.
        """
        if not self._are_stored:
            return None
        if self._uniforms is not None:
            ends = np.cumsum(self._sizes)
            parts = np.split(self._uniforms, ends[:-1])
            return [UniformBlock(part) for part in parts]
        blocks = []
        for k, size in enumerate(self._sizes):
            numbers = uniform_numbers(self._seed, k, (size, len(self.trials)))
            blocks.append(UniformBlock(numbers))
        return blocks

    @property
    def is_one_block(self):
        """Whether all draws are stored as one block, which `joined` needs."""
        return self._are_stored and len(self._sizes) == 1

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
        joined._stored_blocks = [JoinedBlock(only_blocks)]
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

    def sums(self, functions, frequency, c=0):
        """Return the sums over the cells of functions of their drawn event frequencies,
        an array (n_functions, n_draws).

        The draws are those that a call yields, but for rounding of the random numbers.
        Where most cells have no event, this is many times faster.

        Parameters
        ----------
        functions : list of callable
            ``function(frequency, cells)`` returns one value for each cell, (..., m),
            for event frequencies (..., m) of the cells at these indices, or of all for
            a slice.
        frequency : ndarray of shape (m,)
            Event probability of each cell under the hypothesis.
        c : float or ndarray of shape (m,), default=0
            Share of the excess variance that the drawn numbers of events have: how far
            the variance of the observed residuals exceeds the binomial one. Values
            above 1 count as 1.
        """
        # Each law (distribution), of some of the cells, turns random numbers into
        # numbers of events.
        laws = self._laws(frequency, np.minimum(c, 1.0), lists_events=True)
        # 1. Cells that hardly ever have an event, whose law is the last one. Each
        # function is tabulated for 0, 1, ... events in each of these cells. Its sum is
        # that of no event in any of them, the same for all draws, plus the differences
        # of the few cells with events.
        quiet = None
        sum_without_events = np.zeros((len(functions), 1))
        if isinstance(laws[-1], QuietCounts):
            quiet = laws.pop()
            count = np.arange(quiet.most + 1)[:, None]
            frequency_at_count = np.minimum(count / self.trials[quiet.cells], 1)
            tables = [
                function(frequency_at_count, quiet.cells) for function in functions
            ]
            sum_without_events = np.array([table[:1].sum(axis=1) for table in tables])
            differences = [table - table[0] for table in tables]
            # A cell has an event if its uniform random number is above the threshold.
            threshold = quiet.no_event(len(self.trials))
            if not laws:  # no other cells need the numbers below the thresholds
                listed = self._listed_above(threshold)
                if listed is not None:
                    return sum_without_events + quiet.listed_sums(listed, differences)
        # 2. The sums of each block of draws, with those of the other cells.
        sums = []
        for block in self._blocks():
            sums_of_block = sum_without_events + np.zeros(block.n_draws)
            if quiet is not None:
                sums_of_block += quiet.sums(block, differences, threshold)
            for law in laws:
                drawn = law.counts(block) / self.trials[law.cells]
                for row, function in zip(sums_of_block, functions, strict=True):
                    row += function(drawn, law.cells).sum(axis=1)
            sums.append(sums_of_block)
        return np.concatenate(sums, axis=1)

    def _laws(self, frequency, share_of_excess, *, lists_events=False):
        """Return the laws (distributions) that turn random numbers into numbers of
        events, for event probabilities (m,): one each for cells of one row, for those
        with many events and non-events, and for the rest, as far as there are any.

        `share_of_excess` (0 to 1) is the share of the excess variance of the observed
        residuals that the numbers of events have. With `lists_events`, cells that
        expect hardly any events have a law of their own.
        """
        # The share of the binomial variance that each number of events lacks.
        factor = 1 + share_of_excess * self.excess_variance
        missing = np.clip(1 - (1 - self.missing_variance) * factor, 0, 1)
        is_single = self.trials == 1
        is_many = self.trials * np.minimum(frequency, 1 - frequency) >= _MANY
        is_rare = ~(is_single | is_many)
        is_quiet = np.zeros(len(is_rare), dtype=bool)
        if lists_events:
            is_quiet = is_rare & (frequency <= 0.5)
            is_quiet &= self.trials * frequency <= _QUIET
        laws = []
        for law, has_law in (
            (SingleRowCounts, is_single),
            (NormalCounts, is_many),
            (RareCounts, is_rare & ~is_quiet),
            (QuietCounts, is_quiet),
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

    def _listed_above(self, threshold):
        """Return the `ListedNumbers` above a floor that is at most the threshold (m,)
        of their cell, which serve later calls as well; None if they are many or all
        numbers are stored.
        """
        if self._are_stored:
            return None
        if self._listed is None or np.any(threshold < self._floor):
            # The list goes down to a floor below the threshold, for hypotheses with
            # more events: P(no event) is about exp(-expected events), so that its
            # square is that of twice as many.
            floor = np.minimum(self._floor, threshold**_MARGIN)
            if (1 - floor).sum() * self.n_draws > MOST_LISTED:
                return None
            self._floor = floor
            self._listed = ListedNumbers(self._blocks(), floor, self.n_draws)
        return self._listed

    def _blocks(self):
        """Yield each block of draws as a `UniformBlock`: stored, or made again from the
        seed.
        """
        if self._stored_blocks is not None:
            yield from self._stored_blocks
            return
        for k, size in enumerate(self._sizes):
            yield UniformBlock(uniform_numbers(self._seed, k, (size, len(self.trials))))
