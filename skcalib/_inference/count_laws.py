"""Laws of the number of events in a cell: uniform random numbers become counts."""

import numpy as np

from skcalib._inference.uniform_blocks import columns_of_cells

_FEWEST_STEPS = 4  # of a distribution function that are computed at once
# The highest probability of an event: that of none among up to 24 rows is then above 0.
# Distribution functions end where they reach it.
_HIGHEST_RATE = 1 - 1e-12
_LEAST_LOG = -600  # of a probability that is computed as a product
_LONG_LINE = 256  # from this length on lines are accumulated one by one


class SingleRowCounts:
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
        """Return the numbers of events (draws, m), as booleans, of a `UniformBlock`."""
        return columns_of_cells(block.uniform, self.cells) > self._no_event


class NormalCounts:
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
        # powers of z. The standard deviation and the skewness are the binomial ones,
        # each times sqrt(1 - missing): their product is (1 - 2 f) (1 - missing).
        self._deviation = np.sqrt(n * f * (1 - f) * (1 - missing))
        self._square_factor = (1 - 2 * f) * (1 - missing) / 6
        self._constant = n * f - self._square_factor

    def counts(self, block):
        """Return the numbers of events (draws, m) for the normal deviates z of a
        `UniformBlock`: constant + deviation z + factor z^2, rounded, between 0 and n.
        """
        # in one array, which is faster
        normal = columns_of_cells(block.normal, self.cells)
        counts = normal * normal
        counts *= self._square_factor
        counts += normal * self._deviation
        counts += self._constant
        return np.clip(np.rint(counts, out=counts), 0, self._n, out=counts)


class RareCounts:
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
        """Return the numbers of events (draws, m) for a `UniformBlock`."""
        return self._smallest + block.inverted_counts(self.cells, self._cumulative)


class QuietCounts(RareCounts):
    """`RareCounts` of cells that mostly have no event. The few draws of a cell that do
    are listed, and sums over all cells cost no more than these.
    """

    @property
    def most(self):
        """The largest number of events that is drawn."""
        return len(self._cumulative)

    def no_event(self, n_cells):
        """Return for every cell (n_cells,) the threshold above which its uniform random
        number means an event: P(no event) for the cells of this law, and 2, which no
        uniform number exceeds, for cells that are drawn by other laws.
        """
        threshold = np.full(n_cells, 2.0)
        if self.most > 0:
            threshold[self.cells] = self._cumulative[0]
        return threshold

    def listed_sums(self, listed, differences):
        """Return `sums` from the `ListedNumbers` of all cells, if these have this
        law.
        """
        return listed.sums(self._cumulative, differences)

    def sums(self, block, differences, threshold):
        """Return the sums over the cells of functions of their numbers of events, less
        those of cells without events, a list of arrays (draws,).

        Parameters
        ----------
        block : UniformBlock
            The random numbers, of these and of all other cells.
        differences : list of ndarray of shape (most + 1, m)
            The values of each function for 0, 1, ... events in each cell, less its
            value for none.
        threshold : ndarray of shape (n_cells,)
            The uniform number above which each cell has an event: P(no event) for these
            cells, 2 for all others.
        """
        # 1. The draws of cells with events.
        draw, cell, uniform = block.above(threshold)
        # The number of a cell among those of this law; a slice stands for all cells.
        if not isinstance(self.cells, slice):
            position = np.zeros(len(threshold), dtype=np.intp)
            position[self.cells] = np.arange(len(self.cells))
            cell = position[cell]
        # 2. The index of the value of each such draw in a raveled table (most + 1, m):
        # that of 1 event in its cell, and a row further down for each event more.
        n_cells = len(self._smallest)
        cell = cell.astype(np.intp, copy=False)  # `take` would convert it each time
        entry = cell + n_cells
        may_have_more = None  # the indices of draws; None for all
        for cumulative in self._cumulative[1:]:
            has_more = np.flatnonzero(uniform > cumulative.take(cell))
            if len(has_more) == 0:
                break
            uniform = uniform.take(has_more)
            cell = cell.take(has_more)
            if may_have_more is None:
                may_have_more = has_more
            else:
                may_have_more = may_have_more.take(has_more)
            entry[may_have_more] += n_cells
        # 3. The sums of these values.
        return [
            np.bincount(draw, np.take(values, entry), block.n_draws)
            for values in differences
        ]


def _rate_and_trials(n, rare, missing):
    """Return the rate f' and the real number n' of trials, (m,) each, of the law in
    `_rare_distribution`.
    """
    # n' f' = n f and n' f' (1 - f') = n f (1 - f) (1 - missing), so that 1 - f' is
    # (1 - f) (1 - missing); f' as a sum has all its digits where f is small
    rate = np.minimum(rare + missing * (1 - rare), _HIGHEST_RATE)
    return rate, n * np.divide(rare, rate, out=np.zeros_like(rare), where=rate > 0)


def _rare_distribution(n, rare, missing):
    """Return P(count <= 0), P(count <= 1), ... (k, m) of rare events in m cells, as
    long as it is below 1 - 1e-12 in any.

    The law is a binomial with a real number n' of trials and a rate f' that has the
    mean n f and the variance n f (1 - f) (1 - missing), for n rows of the event
    probability f = `rare` <= 1/2.
    """
    rate, trials = _rate_and_trials(n, rare, missing)
    odds = rate / (1 - rate)
    # P(count = k) = P(count = k - 1) (n' - k + 1) / k times the odds. This is computed
    # for blocks of counts k, each twice as long as the last, and in each block only for
    # the cells whose distribution function has not reached 1. It is 1 in cells without
    # trials and for counts beyond n'.
    last_probability = np.exp(trials * np.log1p(-rate))  # P(count = 0)
    last_cumulative = last_probability
    blocks = [np.where(trials > 0, last_cumulative, 1)[None]]
    k = np.arange(1, _FEWEST_STEPS + 1)[:, None]
    cells = np.arange(len(trials))
    while True:
        goes_on = (blocks[-1][-1, cells] < _HIGHEST_RATE) & (last_probability > 0)
        if not goes_on.any():
            break
        cells = cells[goes_on]
        trials_of_cells = trials[cells]
        values = np.maximum(trials_of_cells - k + 1, 0)
        values /= k
        values *= odds[cells]
        accumulate_lines(np.multiply, values, out=values)
        values *= last_probability[goes_on]
        last_probability = values[-1].copy()
        accumulate_lines(np.add, values, out=values)
        values += last_cumulative[goes_on]
        last_cumulative = values[-1]
        block = np.ones((len(k), len(trials)))
        block[:, cells] = np.where(trials_of_cells > k, values, 1)
        blocks.append(block)
        k = k[-1] + np.arange(1, 2 * len(k) + 1)[:, None]
    cumulative = np.concatenate(blocks)
    return cumulative[np.any(cumulative < _HIGHEST_RATE, axis=1)]


def count_masses(n, f, missing, n_counts):
    """Return the probabilities (n_counts, m) of 0, 1, ... events in each of m cells: of
    a binomial law, with a real number of trials, that has the mean n f and the variance
    n f (1 - f) (1 - missing).

    Parameters
    ----------
    n, f, missing : ndarray of shape (m,)
        Numbers of rows, event probabilities, and the shares of the binomial variance
        that the numbers of events lack; of a single row, nothing lacks.
    n_counts : int
        More than the largest number of rows.
    """
    rare = np.minimum(f, 1 - f)
    missing = np.where(n == 1, 0, missing)
    rate, trials = _rate_and_trials(n, rare, missing)
    # P(count = k) from the ratios (n' - k + 1) / k times the odds. Where P(count = 0)
    # is too small for a float, its logarithm and those of the ratios are added up.
    k = np.arange(1, n_counts)[:, None]
    factors = np.subtract(trials + 1, k)
    np.maximum(factors, 0, out=factors)
    factors /= k
    factors *= rate / (1 - rate)
    log_none = trials * np.log1p(-rate)
    mass = np.empty((n_counts, len(n)))
    mass[0] = np.exp(log_none)
    is_tiny = log_none < _LEAST_LOG
    with np.errstate(over="ignore", invalid="ignore"):  # of tiny ones, replaced below
        accumulate_lines(np.multiply, factors, out=mass[1:])
        mass[1:] *= mass[0]
    if is_tiny.any():
        with np.errstate(divide="ignore"):
            logs = np.cumsum(np.log(factors[:, is_tiny]), axis=0)
        mass[1:, is_tiny] = np.exp(log_none[is_tiny] + logs)
    # n' need not be a whole number. The next larger count gets the probability that
    # the counts up to n' lack.
    last = np.ceil(trials - 1e-9).astype(np.int64)  # not n + 1 by rounding
    mass *= np.arange(n_counts)[:, None] <= last
    cell = np.arange(len(n))
    mass[last, cell] = np.maximum(mass[last, cell] + (1 - mass.sum(axis=0)), 0)
    # Where non-events are the rarer ones, the number of events is n minus theirs.
    reversed_cells = np.flatnonzero(f > 0.5)
    if len(reversed_cells):
        n_rows = n[reversed_cells].astype(np.int64)
        n_non_events = n_rows - np.arange(n_counts)[:, None]
        entry = np.maximum(n_non_events, 0) * len(n) + reversed_cells
        mass[:, reversed_cells] = np.where(n_non_events >= 0, mass.take(entry), 0)
    return mass


def accumulate_lines(ufunc, lines, out):
    """Write the running sums or products of lines (k, m), `np.add` or `np.multiply`,
    into `out`. NumPy accumulates along columns, which takes several times as long.
    """
    if lines.shape[1] < _LONG_LINE:
        ufunc.accumulate(lines, axis=0, out=out)
        return
    out[:1] = lines[:1]
    for k in range(1, len(lines)):
        ufunc(out[k - 1], lines[k], out=out[k])
