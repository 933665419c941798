"""What a bootstrap draws: rows, clusters of rows, or the (bin, label) cells of a binned error."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array

from skcalib._cells.statistics import unchecked_statistics
from skcalib.binning import assign_bins

__all__ = ["Units", "cell_units", "cluster_units", "resampled_statistics", "row_units"]


class Units(NamedTuple):
    """The units of a bootstrap: the unit of each row, each unit's mass, and the units of each stratum.

    Within a stratum units are drawn in proportion to their mass, as often as the masses add up to. Rows and cells have
    their weight as mass, for weights count as repeated rows; a cluster has mass 1, whatever it holds.
    """

    of_row: np.ndarray
    mass: np.ndarray
    strata: list
    score_variance: np.ndarray | None = None

    def draw(self, size, rng):
        """Return how often each unit was drawn in each of `size` resamples."""
        counts = np.zeros((size, len(self.mass)))
        for units in self.strata:
            total = self.mass[units].sum()
            n_draws = max(1, round(total))
            counts[:, units] = rng.multinomial(n_draws, self.mass[units] / total, size) * (total / n_draws)
        return counts

    def row_values(self, sample_weight):
        """Return what each row weighs once its unit is drawn."""
        return _ones_or(sample_weight, len(self.of_row)) / self.mass[self.of_row]


def row_units(sample_weight, stratum):
    """Draw rows, within strata given by a code a row."""
    return Units(np.arange(len(stratum)), _ones_or(sample_weight, len(stratum)), _by_code(stratum))


def cluster_units(cluster):
    """Draw whole clusters, given by a code a row."""
    present, of_row = np.unique(cluster, return_inverse=True)
    return Units(of_row, np.ones(len(present)), [np.arange(len(present))])


def cell_units(task, edges, stratum):
    """Draw the cells of equal bin, label and stratum: for a binned error as good as rows, and far fewer.

    The scores of the rows that a cell stands for are drawn with it, as a normal deviate of their sum.
    """
    bins = assign_bins(task.scores, edges)
    n_cells = 2 * (len(edges) - 1)  # of one stratum
    cell = stratum * n_cells + bins * 2 + task.labels
    is_present = np.bincount(cell) > 0
    of_row = (np.cumsum(is_present) - 1)[cell]
    weight = _ones_or(task.sample_weight, len(cell))
    mass = np.bincount(of_row, weight)
    mean = np.bincount(of_row, weight * task.scores) / mass
    variance = np.bincount(of_row, weight * (task.scores - mean[of_row]) ** 2) / mass
    return Units(of_row, mass, _by_code(np.flatnonzero(is_present) // n_cells), variance)


def resampled_statistics(tasks, edges, units, rng, size):
    """Return for each binary problem the statistics of `size` resamples at once: sums of shape (size, n_bins)."""
    counts = units.draw(size, rng)
    values = units.row_values(tasks[0].sample_weight)
    return [_task_sums(task, cut, units, values, counts, rng) for task, cut in zip(tasks, edges, strict=True)]


def _task_sums(task, edges, units, values, counts, rng):
    n_bins = len(edges) - 1
    design = _design(task, edges, units, values)
    sums = (counts @ design).reshape(len(counts), 5, n_bins)
    if units.score_variance is not None:
        variance = counts @ (units.score_variance[:, None] * design[:, :n_bins] ** 2)
        sums[:, 1] += np.sqrt(variance) * rng.standard_normal(variance.shape)
    weight, score, label, score_squared, score_label = np.moveaxis(sums, 1, 0)
    return unchecked_statistics(
        edges=edges,
        count=np.rint(weight).astype(np.int64),
        weight=weight,
        weighted_score=score,
        weighted_label=label,
        weighted_score_squared=score_squared,
        weighted_score_label=score_label,
    )


def _design(task, edges, units, values):
    """Return the sums of w, w s, w y, w s^2, w s y by bin (columns) that each unit (row) brings when it is drawn."""
    n_bins = len(edges) - 1
    bins = assign_bins(task.scores, edges)
    scores, labels = task.scores.astype(np.float64), task.labels
    terms = (np.ones_like(scores), scores, labels, scores**2, scores * labels)
    shape = len(units.mass), n_bins
    if shape[0] * shape[1] <= len(scores):  # few cells, not clusters: a dense matrix is made faster
        entry = units.of_row * n_bins + bins
        sums = [np.bincount(entry, values * term, minlength=shape[0] * shape[1]) for term in terms]
        return np.concatenate([total.reshape(shape) for total in sums], axis=1)
    data = np.concatenate([values * term for term in terms])
    columns = np.concatenate([bins + k * n_bins for k in range(len(terms))])
    rows = np.tile(units.of_row, len(terms))
    return coo_array((data, (rows, columns)), shape=(len(units.mass), len(terms) * n_bins)).tocsr()


def _by_code(codes):
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def _ones_or(sample_weight, n):
    return np.ones(n) if sample_weight is None else sample_weight
