"""The samples of a decision curve by label and by what two strategies do with them, and
the limits of their net benefit.

A cell is a label and a difference d: 1 where the model treats and the reference does
not, -1 the other way round, 0 where both do the same. Its rows are worth d with the
event and -price d without.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from skcalib._intervals.influence import (
    cluster_masses,
    cluster_variance,
    too_few_units,
)
from skcalib._intervals.score import score_limits

# Rows on which the model does better than another one, and worse, below which the
# difference of both has no interval.
_FEWEST_DISCORDANT = 10
_DIFFERENCE = np.array([1, -1, 0])  # d of the columns of an array of cells


class TreatmentCells(NamedTuple):
    """Weights of the cells, for each of m thresholds and both labels (event, other).

    Parameters
    ----------
    weight, squares : ndarray of shape (m, 2, 3)
        Sums of weights, and of squared weights where rows are seen once whatever their
        weight (importance); else the weights again.
    possible : ndarray of bool, shape (m, 3)
        Differences that the two strategies can have.
    factor : ndarray of shape (m, 2)
        What a difference of 1 adds to the estimate: 1 and -price, or more with a given
        prevalence.
    base : ndarray of shape (2,)
        What a row adds to the denominator: 1 and 1, or 1 and 0 where the net benefit is
        divided by the event frequency.
    is_stratified : bool
        Whether both labels have shares that are given (a case-control sample).
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
        return self.weight @ _DIFFERENCE / self._of_label()

    @property
    def estimate(self):
        """The net benefit, (m,)."""
        if self.is_stratified:
            return np.sum(self.factor * self.mean_difference, axis=1)
        gained = np.sum(self.factor * (self.weight @ _DIFFERENCE), axis=1)
        return gained / (self._of_label() @ self.base)

    def _of_label(self):
        return np.maximum(self.weight.sum(axis=2), 1e-300)

    @property
    def offset(self):
        """What the terms of a row of each label are centred by, (m, 2)."""
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
        """Return how many samples speak for the model, and how many against it: (m,
        2).
        """
        gain = self.factor[..., None] * _DIFFERENCE
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
        """Return the score limits of the net benefit, for critical values z (m,).

        Rows of a cell with weights are worth n = (sum w)^2 / sum w^2 rows of weight k =
        sum w^2 / sum w each, so that n k and n k^2 are the sums of w and w^2. An empty
        cell takes the k of its label. The numbers of samples are divided by the design
        effect of clusters.

        A cell that holds light rows alone could hold a heavy one: beside it stands an
        empty cell with the k of all rows of its difference, whatever their label.
        """
        weight = self.weight
        squares = self.squares
        label_weight = np.broadcast_to(weight.sum(axis=2, keepdims=True), weight.shape)
        label_square = np.broadcast_to(squares.sum(axis=2, keepdims=True), weight.shape)
        average = squares.sum(axis=(1, 2)) / weight.sum(axis=(1, 2))
        size = np.broadcast_to(average[:, None, None], weight.shape).copy()
        np.divide(label_square, label_weight, out=size, where=label_weight > 0)
        np.divide(squares, weight, out=size, where=weight > 0)
        counts = weight / size / design_effect[:, None, None]
        possible = np.broadcast_to(self.possible[:, None], weight.shape)
        heavy = np.broadcast_to(average[:, None], (len(average), 3)).copy()
        both_labels = weight.sum(axis=1)
        np.divide(squares.sum(axis=1), both_labels, out=heavy, where=both_labels > 0)
        counts = np.concatenate((counts, np.zeros_like(counts)), axis=2)
        size = np.concatenate((size, np.maximum(size, heavy[:, None])), axis=2)
        possible = np.concatenate((possible, possible), axis=2)
        if self.is_stratified:
            return self._stratified_limits(counts, size, possible, z, cautious)
        shape = (len(z), 12)
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
        """
        below, above = 0.0, 0.0
        for label in (0, 1):
            k = size[:, label]
            low, high = score_limits(
                counts[:, label],
                np.tile(_DIFFERENCE, 2) * k,
                k,
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
    """Return the weight of the samples that reach each threshold, (n_units, m); `place`
    is the number of thresholds that a row reaches.
    """
    if unit is None:
        unit = np.zeros(len(place), dtype=np.intp)
    width = n_thresholds + 1
    table = np.bincount(unit * width + place, weight, n_units * width)
    by_number = table.reshape(n_units, width)
    # Who reaches k thresholds reaches the first k: sums from the right.
    reaches_more = by_number[:, ::-1].cumsum(axis=1)[:, ::-1]
    return reaches_more[:, 1:]


def cell_sums(events, places, weight, n_thresholds):
    """Return the sums of weights by threshold, label and difference, (m, 2, 3)."""
    model, reference = places
    both = np.minimum(model, reference)
    sums = np.empty((n_thresholds, 2, 3))
    for label, has_label in enumerate((events, ~events)):
        weight_of_label = weight * has_label
        # the weight that is treated at each threshold: by the model, the reference, and
        # both
        (by_model,) = reached(model, weight_of_label, n_thresholds)
        (by_reference,) = reached(reference, weight_of_label, n_thresholds)
        (by_both,) = reached(both, weight_of_label, n_thresholds)
        # treated by the model alone, by the reference alone, and alike by both
        sums[:, label, 0] = by_model - by_both
        sums[:, label, 1] = by_reference - by_both
        sums[:, label, 2] = weight_of_label.sum() - sums[:, label, :2].sum(axis=1)
    # differences of sums of weights that are no integers may miss 0 by rounding
    return np.where(sums > 1e-12 * weight.sum(), sums, 0.0)


def unit_residuals(cells, events, places, weight, squares, cluster):
    """Return independent terms whose sum is that of the influences, (n_units, m), and
    degrees of freedom (m,): infinite without clusters.

    With clusters a unit is a cluster (CR3); else rows that no threshold tells apart.
    """
    m = len(cells.factor)
    if cluster is None:
        unit = np.ravel_multi_index(
            (events.astype(np.intp), *places), (2, m + 1, m + 1)
        )
        first, unit = np.unique(unit, return_index=True, return_inverse=True)[1:]
        # one row of each unit, times the root of the sum of squared weights
        weight = np.sqrt(np.bincount(unit, squares))
        events = events[first]
        places = [place[first] for place in places]
        unit = np.arange(len(first))
    else:
        unit = cluster
    n_units = int(unit.max()) + 1
    sums = np.zeros((n_units, m))
    for label, of_label in enumerate((events, ~events)):
        own = weight * of_label
        difference = reached(places[0], own, m, unit, n_units)
        difference -= reached(places[1], own, m, unit, n_units)
        sums += cells.factor[:, label] * difference
        sums -= np.bincount(unit, own, n_units)[:, None] * cells.offset[:, label]
    if cluster is None:
        return sums, np.full(m, np.inf)
    mass = np.bincount(cluster, weight)
    _, of_squares = cluster_masses(weight, squares is not weight, cluster)
    _, degrees = cluster_variance(sums, mass, of_squares, cells.row_variance)
    return sums / (1 - mass / mass.sum())[:, None], degrees


def critical_values(residuals, degrees, level, n_draws, rng):
    """Return the critical value of each threshold's interval, or of a band (m,).

    The band's is the quantile of the largest deviation over thresholds, in units of its
    standard error, where each unit's terms get a normal factor.
    """
    tail = (1 + level) / 2
    z = np.where(np.isinf(degrees), ndtri(tail), stdtrit(degrees, tail))
    if n_draws is None:
        return z
    error = np.sqrt(np.sum(residuals**2, axis=0))
    some = error > 0
    if not some.any():
        return z
    scaled = residuals[:, some] / error[some]
    largest = [
        np.abs(rng.standard_normal(len(scaled)) @ scaled).max() for _ in range(n_draws)
    ]
    return z * max(np.quantile(largest, level) / ndtri(tail), 1.0)


def reasons_for_no_limits(cells, weight, is_importance, cluster, is_paired):
    """Return why the thresholds have no limits, (m,) of str; empty where they have."""
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
