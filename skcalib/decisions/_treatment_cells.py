"""The samples of a decision curve by label and by what two strategies do with them, and
the limits of their net benefit.

A cell is a label and a difference d: 1 where the model treats and the reference does
not, -1 the other way round, 0 where both do the same. A row of a cell adds d to the net
benefit if it is an event, and -price d if not, with the price t / (1 - t) of a false
positive at the threshold t. Arrays of cells have the shape (m, 2, 3): m thresholds, the
labels event and non-event, and d = 1, -1, 0.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from skcalib._intervals.influence import (
    alike_design,
    cluster_masses,
    cluster_variance,
    too_few_units,
)
from skcalib._intervals.score import score_limits

# With fewer rows on which the model does better than another model, or worse, the
# difference of both has no interval.
_FEWEST_DISCORDANT = 10
_DIFFERENCE = np.array([1, -1, 0])  # d of the columns of an array of cells


class TreatmentCells(NamedTuple):
    """Weights of the cells, for each of m thresholds and both labels (event, other).

    Parameters
    ----------
    weight, squares : ndarray of shape (m, 2, 3)
        Sums of weights, and of squared weights for importance weights; otherwise, the
        sums of weights again.
    possible : ndarray of bool, shape (m, 3)
        Differences that are possible between the two strategies.
    factor : ndarray of shape (m, 2)
        Contribution of a difference of 1 to the estimate: 1 and -price, or larger
        values with a given prevalence.
    base : ndarray of shape (2,)
        Contribution of a row to the denominator: 1 and 1, or 1 and 0 if the net benefit
        is divided by the event frequency.
    is_stratified : bool
        Whether the shares of both labels are given (a case-control sample).
    """

    weight: np.ndarray
    squares: np.ndarray
    possible: np.ndarray
    factor: np.ndarray
    base: np.ndarray
    is_stratified: bool

    @property
    def mean_difference(self):
        """Mean of d by label, (m, 2)."""
        return self.weight @ _DIFFERENCE / self._label_weight()

    @property
    def estimate(self):
        """The net benefit, (m,)."""
        # By label, `factor` is what a difference of treatments of 1 adds, and `base` is
        # what a row adds to the denominator.
        if self.is_stratified:
            return np.sum(self.factor * self.mean_difference, axis=1)
        gained = np.sum(self.factor * (self.weight @ _DIFFERENCE), axis=1)
        return gained / (self._label_weight() @ self.base)

    def _label_weight(self):
        """Return the weight of the rows with each label, (m, 2): positive even without
        rows, since it is divided by.
        """
        return np.maximum(self.weight.sum(axis=2), 1e-300)

    @property
    def offset(self):
        """Amount, for each label, by which a row's contribution to the net benefit is
        reduced so that the differences sum to 0, (m, 2).
        """
        if self.is_stratified:
            return self.factor * self.mean_difference
        return self.estimate[:, None] * self.base

    @property
    def residual(self):
        """Influence of a row of each cell, up to the denominator: (m, 2, 3)."""
        return self.factor[..., None] * _DIFFERENCE - self.offset[..., None]

    @property
    def variance(self):
        """Variance of the sum of the influences of independent rows, (m,)."""
        return np.sum(self.squares * self.residual**2, axis=(1, 2))

    @property
    def row_variance(self):
        """Weighted mean of the squared influences, (m,)."""
        total = self.weight.sum(axis=(1, 2))
        return np.sum(self.weight * self.residual**2, axis=(1, 2)) / total

    def discordant(self):
        """Return the number of samples on which the model performs better than the
        reference, and the number on which it performs worse, (m, 2) for m thresholds.

        A cell contains the samples with one label for which the model treats more than,
        less than or the same as the reference (d = 1, -1, 0).
        """
        # What a sample of each cell adds to the net benefit.
        gain = self.factor[..., None] * _DIFFERENCE
        # Kish's effective number of rows of each cell: (sum w)^2 / sum w^2.
        rows = np.divide(
            self.weight**2,
            self.squares,
            out=np.zeros_like(self.weight),
            where=self.squares > 0,
        )
        for_model = np.sum(rows * (gain > 0), axis=(1, 2))
        against = np.sum(rows * (gain < 0), axis=(1, 2))
        return np.column_stack((for_model, against))

    def limits(self, z, design_effect, *, cautious):
        """Return the lower and the upper score limit of the net benefit, (m,) each, for
        critical values z (m,); `cautious` also uses the likelihood ratio; see
        `score_limits`.

        A cell contains the samples with one label for which the model treats more than,
        less than or the same as the reference (d = 1, -1, 0). Its rows with weights w
        are replaced by n = (sum w)^2 / sum w^2 rows of weight k = sum w^2 / sum w each,
        so that n k and n k^2 are the sums of w and w^2. An empty cell uses the k of its
        label. The numbers of samples are divided by the design effect of clusters.

        A cell in which only rows with small weights were observed could also contain a
        row with a large weight. Each cell therefore has a second cell without rows,
        whose k is that of all rows with the same difference, regardless of their label.
        """
        weight = self.weight
        squares = self.squares
        # k = sum w^2 / sum w of each cell, (m, 2, 3): of its rows, else of its label's
        # rows, else of all rows.
        label_weight = np.broadcast_to(weight.sum(axis=2, keepdims=True), weight.shape)
        label_square = np.broadcast_to(squares.sum(axis=2, keepdims=True), weight.shape)
        average = squares.sum(axis=(1, 2)) / weight.sum(axis=(1, 2))
        size = np.broadcast_to(average[:, None, None], weight.shape).copy()
        np.divide(label_square, label_weight, out=size, where=label_weight > 0)
        np.divide(squares, weight, out=size, where=weight > 0)
        counts = weight / size / design_effect[:, None, None]
        possible = np.broadcast_to(self.possible[:, None], weight.shape)
        # k of the rows of each difference, of both labels, (m, 3).
        both_size = np.broadcast_to(average[:, None], (len(average), 3)).copy()
        both_labels = weight.sum(axis=1)
        np.divide(
            squares.sum(axis=1), both_labels, out=both_size, where=both_labels > 0
        )
        # The cells with the empty ones beside them, (m, 2, 6).
        counts = np.concatenate((counts, np.zeros_like(counts)), axis=2)
        size = np.concatenate((size, np.maximum(size, both_size[:, None])), axis=2)
        possible = np.concatenate((possible, possible), axis=2)
        if self.is_stratified:
            return self._stratified_limits(counts, size, possible, z, cautious)
        shape = (len(z), 12)  # two labels with six cells each
        values = self.factor[..., None] * np.tile(_DIFFERENCE, 2) * size
        base = self.base[:, None] * size
        return score_limits(
            counts.reshape(shape),
            values.reshape(shape),
            base.reshape(shape),
            possible.reshape(shape),
            z,
            cautious=cautious,
        )

    def _stratified_limits(self, counts, size, possible, z, cautious):
        """Return the limits of a net benefit at a given prevalence: those of the mean
        difference in each label, joined by "square and add" (Zou and Donner 2008).

        `counts`, `size` and `possible` are numbers of rows, k and whether a cell can
        have rows, (m, 2, 6); see `limits`.
        """
        # Squared distances from the estimate to both limits, summed over both labels.
        below = 0.0
        above = 0.0
        for label in (0, 1):
            label_size = size[:, label]
            low, high = score_limits(
                counts[:, label],
                np.tile(_DIFFERENCE, 2) * label_size,
                label_size,
                possible[:, label],
                z,
                cautious=cautious,
            )
            factor = self.factor[:, label]
            mean = self.mean_difference[:, label]
            # A negative factor exchanges the ends.
            ends = factor * (low - mean), factor * (high - mean)
            below = below + np.minimum(*ends) ** 2
            above = above + np.maximum(*ends) ** 2
        return self.estimate - np.sqrt(below), self.estimate + np.sqrt(above)


def reached(place, weight, n_thresholds, unit=None, n_units=1):
    """Return the weight of the samples that reach each threshold, (n_units, m).

    `place` (n,) is the number of thresholds that a sample reaches, `weight` (n,) its
    weight, and `unit` (n,) the code of its unit; None means a single unit.
    """
    if unit is None:
        unit = np.zeros(len(place), dtype=np.intp)
    # The weight that reaches exactly 0, 1, ..., m thresholds, by unit.
    width = n_thresholds + 1
    table = np.bincount(unit * width + place, weight, n_units * width)
    by_number = table.reshape(n_units, width)
    # A sample that reaches k thresholds reaches the k lowest: sums from the right.
    at_least = by_number[:, ::-1].cumsum(axis=1)[:, ::-1]
    return at_least[:, 1:]


def cell_sums(events, places, weight, n_thresholds):
    """Return the sums of weights by threshold, label and difference, (m, 2, 3).

    `places` are the numbers of thresholds that each sample reaches with the model and
    with the reference, each of shape (n,).
    """
    model, reference = places
    both = np.minimum(model, reference)
    sums = np.empty((n_thresholds, 2, 3))
    for label, has_label in enumerate((events, ~events)):
        weight_of_label = weight * has_label
        # The weight that is treated at each threshold, (m,).
        (by_model,) = reached(model, weight_of_label, n_thresholds)
        (by_reference,) = reached(reference, weight_of_label, n_thresholds)
        (by_both,) = reached(both, weight_of_label, n_thresholds)
        # treated by the model alone, by the reference alone, and alike by both
        sums[:, label, 0] = by_model - by_both
        sums[:, label, 1] = by_reference - by_both
        sums[:, label, 2] = weight_of_label.sum() - sums[:, label, :2].sum(axis=1)
    # Differences of sums of fractional weights may miss 0 by rounding.
    return np.where(sums > 1e-12 * weight.sum(), sums, 0.0)


def unit_residuals(cells, events, places, weight, squares, cluster):
    """Return the sums of influences over independent units, (n_units, m), their degrees
    of freedom (m,), infinite without clusters, and the least design effect of clusters
    (m,): that which the dependence within clusters implies.

    A unit is a cluster, whose sums are scaled up as in the CR3 estimator, or, without
    clusters, all rows with the same label and the same treatments at all thresholds.

    Parameters
    ----------
    cells : TreatmentCells
        The cells.
    events : ndarray of bool, shape (n,)
        Whether a row is an event.
    places : pair of ndarray of int, shape (n,)
        Numbers of thresholds that a row reaches with the model and with the reference.
    weight, squares : ndarray of shape (n,)
        Contribution of a row to a sum, and to a variance.
    cluster : ndarray of int, shape (n,), or None
        Codes of clusters.
    """
    m = len(cells.factor)
    if cluster is None:
        pattern = np.ravel_multi_index(
            (events.astype(np.intp), *places), (2, m + 1, m + 1)
        )
        _, first, unit = np.unique(pattern, return_index=True, return_inverse=True)
        # A unit is replaced by one row whose squared weight is the sum over its rows.
        weight = np.sqrt(np.bincount(unit, squares))
        events = events[first]
        places = [place[first] for place in places]
        unit = np.arange(len(first))
    else:
        unit = cluster
    n_units = int(unit.max()) + 1
    sums = np.zeros((n_units, m))
    for label, has_label in enumerate((events, ~events)):
        label_weight = weight * has_label
        # Sums of weight times d, (n_units, m), and of the weight, (n_units, 1).
        difference = reached(places[0], label_weight, m, unit, n_units)
        difference -= reached(places[1], label_weight, m, unit, n_units)
        total = np.bincount(unit, label_weight, n_units)[:, None]
        sums += cells.factor[:, label] * difference
        sums -= total * cells.offset[:, label]
    if cluster is None:
        return sums, np.full(m, np.inf), np.ones(m)
    # Only importance weights have squares of their own.
    is_importance = squares is not weight
    mass, squared_mass = cluster_masses(weight, is_importance, cluster)
    masses = mass, squared_mass, cells.row_variance
    _, degrees = cluster_variance(sums, *masses)
    least_effect, degrees_if_alike = alike_design(sums, *masses)
    # CR3 divides by 1 minus the leverage of the cluster, its share of the weight.
    leverage = mass / mass.sum()
    residuals = sums / (1 - leverage)[:, None]
    return residuals, np.minimum(degrees, degrees_if_alike), least_effect


def critical_values(residuals, degrees, level, n_draws, rng):
    """Return the critical values (m,) of the intervals, or of a simultaneous band if
    `n_draws` is not None.

    The critical value of a band is the quantile of the largest deviation over
    thresholds, in units of its standard error, under a multiplier bootstrap: the sums
    of each unit, `residuals` (n_units, m), are multiplied by a random normal factor.
    `degrees` (m,) are degrees of freedom and `level` is the confidence level.
    """
    tail = (1 + level) / 2
    z = np.where(np.isinf(degrees), ndtri(tail), stdtrit(degrees, tail))
    if n_draws is None:
        return z
    error = np.sqrt(np.sum(residuals**2, axis=0))
    has_error = error > 0
    if not has_error.any():
        return z
    scaled = residuals[:, has_error] / error[has_error]
    largest = np.empty(n_draws)
    for draw in range(n_draws):
        deviation = rng.standard_normal(len(scaled)) @ scaled
        largest[draw] = np.abs(deviation).max()
    # All intervals become wider by the same factor: the quantile of the largest
    # deviation over the normal quantile of a single interval.
    return z * max(np.quantile(largest, level) / ndtri(tail), 1.0)


def reasons_for_no_limits(cells, weight, is_importance, cluster, is_paired):
    """Return why each threshold has no limits, (m,) of str; an empty string if it has
    limits.

    `weight` (n,) and `cluster` (n,) or None are those of the rows with positive weight;
    `is_paired` is True if the reference is another model.
    """
    m = len(cells.factor)
    few = too_few_units(weight, is_importance, cluster)
    if few:
        return np.full(m, few, dtype=object)
    reasons = np.full(m, "", dtype=object)
    if is_paired:
        too_few = cells.discordant().min(axis=1) < _FEWEST_DISCORDANT
        reasons[too_few] = (
            f"the models differ for the better, or for the worse, on fewer than"
            f" {_FEWEST_DISCORDANT} rows"
        )
    if cluster is not None:
        reasons[(cells.row_variance == 0) & (reasons == "")] = (
            "all rows are worth the same, so that how far clusters differ cannot be"
            " seen"
        )
    return reasons
