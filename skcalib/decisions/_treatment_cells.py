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
    cluster_masses,
    cluster_variance,
    intraclass_design_effect,
    tail_degrees,
    too_few_units,
)
from skcalib._intervals.score import score_limits
from skcalib._rows.blocks import effective_size

# With fewer rows on which the model does better than another model, or worse, the
# difference of both has no interval.
_FEWEST_DISCORDANT = 10
# The difference of treatments d, model less reference, in the last axis of cells.
_DIFFERENCE = np.array([1, -1, 0])


class TreatmentCells(NamedTuple):
    """Weights of the samples by what two strategies do with them, at each of m
    thresholds and for both labels (event, non-event).

    A cell is a label and a difference of treatments d: 1 where the model treats and the
    reference does not, -1 the other way round, 0 where both do the same.

    Parameters
    ----------
    weight, squares : ndarray of shape (m, 2, 3)
        Sums of weights, and of squared weights for importance weights; otherwise, the
        sums of weights again. The last axis is d = 1, -1, 0.
    possible : ndarray of bool, shape (m, 3)
        Differences d that are possible between the two strategies.
    treatment_value : ndarray of shape (m, 2)
        What treating a sample of each label adds to the net benefit: 1 and -price, or
        larger values with a given prevalence.
    denominator : ndarray of shape (2,)
        What a sample of each label adds to the denominator: 1 and 1, or 1 and 0 if the
        net benefit is divided by the event frequency.
    is_stratified : bool
        Whether the shares of both labels are given (a case-control sample).
    """

    weight: np.ndarray
    squares: np.ndarray
    possible: np.ndarray
    treatment_value: np.ndarray
    denominator: np.ndarray
    is_stratified: bool

    @property
    def mean_difference(self):
        """Mean of d by label, (m, 2)."""
        return self.weight @ _DIFFERENCE / self._label_weight()

    @property
    def estimate(self):
        """The net benefit of the model minus that of the reference, (m,)."""
        if self.is_stratified:
            # `treatment_value` contains the given shares of both labels.
            return np.sum(self.treatment_value * self.mean_difference, axis=1)
        # Per label, (m, 2), the weight that only the model treats minus that which only
        # the reference treats; each unit of it adds `treatment_value`.
        more_treated = self.weight @ _DIFFERENCE
        gained = np.sum(self.treatment_value * more_treated, axis=1)
        return gained / (self._label_weight() @ self.denominator)

    def _label_weight(self):
        """Return the weight of the rows with each label, (m, 2): positive even without
        rows, since it is divided by.
        """
        return np.maximum(self.weight.sum(axis=2), 1e-300)

    @property
    def offset(self):
        """What is subtracted from the contribution of a sample of each label, d times
        the value of a treatment, so that the contributions of all samples sum to 0, (m,
        2).

        It is their mean within the label if the shares of the labels are given, else
        the net benefit times what the sample adds to the denominator.
        """
        if self.is_stratified:
            return self.treatment_value * self.mean_difference
        return self.estimate[:, None] * self.denominator

    @property
    def residual(self):
        """Influence of a sample of each cell on the net benefit, up to the denominator:
        its contribution minus `offset`, (m, 2, 3).
        """
        contribution = self.treatment_value[..., None] * _DIFFERENCE
        return contribution - self.offset[..., None]

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
        """Return the number of samples on which the model decides better than the
        reference, and the number on which it decides worse, (m, 2) for m thresholds.

        A sample with weights counts by Kish's effective number of the samples of a
        cell: one label, and treated by the model alone, by the reference alone, or
        alike by both.
        """
        # What a sample of each cell adds to the net benefit, (m, 2, 3).
        gain = self.treatment_value[..., None] * _DIFFERENCE
        n_effective = effective_size(self.weight, self.squares)
        n_better = np.sum(n_effective * (gain > 0), axis=(1, 2))
        n_worse = np.sum(n_effective * (gain < 0), axis=(1, 2))
        return np.column_stack((n_better, n_worse))

    def limits(
        self,
        z,
        design_effect,
        *,
        cautious,
        label_decides_weight=False,
        weight_of_event=1.0,
    ):
        """Return the lower and the upper score limit of the net benefit, (m,) each.

        A cell holds the rows with one label and one difference of treatments: 1 where
        only the model treats, -1 where only the reference does, else 0. `score_limits`
        takes numbers of rows in cells, what a row adds to the numerator and to the
        denominator of the net benefit, and whether a cell can have rows. A cell of
        weights w is replaced by n = (sum w)^2 / sum w^2 rows of one weight k =
        sum w^2 / sum w, which have the same sums of w and of w^2. A sample may contain
        only rows of small weight in a cell where the population also has rows of large
        weight. So each cell has a second cell beside it, without rows, whose k is that
        of all rows with the same difference of treatments, as heavy as they would be
        with the label of the cell, if it is larger; of those with the same label, where
        the label is known to decide the weight.

        Parameters
        ----------
        z : ndarray of shape (m,)
            Critical values.
        design_effect : ndarray of shape (m,)
            Design effect of clusters, by which numbers of rows are divided.
        cautious : bool
            Whether a value must be rejected by the likelihood ratio, too, to lie
            outside.
        label_decides_weight : bool, default=False
            Whether the weights of both labels are known.
        weight_of_event : float, default=1.0
            How many times heavier an event is than a non-event, where they are not.
        """
        row_weight = self._row_weight()  # k, (m, 2, 3)
        counts = self.weight / row_weight / design_effect[:, None, None]
        possible = np.broadcast_to(self.possible[:, None], counts.shape)
        if label_decides_weight:
            others = self._row_weight_of_label()
        else:
            others = self._row_weight_of_both_labels(weight_of_event)
        second_weight = np.maximum(row_weight, others)
        # For each label three cells, and three empty ones that may hold other rows, (m,
        # 2, 6).
        counts = np.concatenate((counts, np.zeros_like(counts)), axis=2)
        row_weight = np.concatenate((row_weight, second_weight), axis=2)
        possible = np.concatenate((possible, possible), axis=2)
        if self.is_stratified:
            return self._stratified_limits(counts, row_weight, possible, z, cautious)
        differences = np.tile(_DIFFERENCE, 2)  # model less reference, by cell
        values = self.treatment_value[..., None] * differences * row_weight
        denominators = self.denominator[:, None] * row_weight
        # All cells of both labels in one row.
        shape = (len(z), 12)
        return score_limits(
            counts.reshape(shape),
            values.reshape(shape),
            denominators.reshape(shape),
            possible.reshape(shape),
            z,
            cautious=cautious,
        )

    def _row_weight(self):
        """Return the typical weight of a row in each cell, sum w^2 / sum w, (m, 2, 3)
        for m thresholds: the weight of a row if the cell held an effective number of
        equal rows. A cell without rows gets the number of all rows with its label, or
        of all rows.
        """
        weight = self.weight
        squares = self.squares
        label_weight = np.broadcast_to(weight.sum(axis=2, keepdims=True), weight.shape)
        label_square = np.broadcast_to(squares.sum(axis=2, keepdims=True), weight.shape)
        of_all_rows = squares.sum(axis=(1, 2)) / weight.sum(axis=(1, 2))
        row_weight = np.broadcast_to(of_all_rows[:, None, None], weight.shape).copy()
        np.divide(label_square, label_weight, out=row_weight, where=label_weight > 0)
        np.divide(squares, weight, out=row_weight, where=weight > 0)
        return row_weight

    def _row_weight_of_label(self):
        """Return the typical weight of a row with each label, sum w^2 / sum w, (m, 2,
        1) for m thresholds; 0 if no row has the label.
        """
        # Sums over the rows that the model alone, the reference alone, or both treat
        # alike: all rows with a label.
        weight = self.weight.sum(axis=2, keepdims=True)
        row_weight = np.zeros_like(weight)
        squares = self.squares.sum(axis=2, keepdims=True)
        return np.divide(squares, weight, out=row_weight, where=weight > 0)

    def _row_weight_of_both_labels(self, weight_of_event):
        """Return the typical weight, sum w^2 / sum w, of all rows with each difference
        of treatments, as heavy as they would be with each label, (m, 2, 3) for m
        thresholds; that of all rows if there are none with a difference. Events weigh
        `weight_of_event` times as much as non-events.
        """
        # Weights of non-events: those of events over `weight_of_event`.
        factor = np.array([1 / weight_of_event, 1.0])[:, None]
        weight = np.sum(factor * self.weight, axis=1)
        squares = np.sum(factor**2 * self.squares, axis=1)
        of_all_rows = squares.sum(axis=1) / weight.sum(axis=1)
        row_weight = np.broadcast_to(of_all_rows[:, None], weight.shape).copy()
        np.divide(squares, weight, out=row_weight, where=weight > 0)
        return row_weight[:, None] / factor

    def _stratified_limits(self, counts, row_weight, possible, z, cautious):
        """Return the lower and the upper limit, (m,) each for m thresholds, of a net
        benefit at a given prevalence: the limits of the mean difference within each
        label, joined by "square and add" (Zou and Donner 2008).

        `counts`, `row_weight` and `possible` (m, 2, 6) hold by label the effective
        number of rows in each cell, the weight of a row, and whether the cell can have
        rows; `z` (m,) are critical values.
        """
        differences = np.tile(_DIFFERENCE, 2)  # model less reference, by cell
        # Squared distances from the estimate to both limits, summed over both labels.
        squared_below = 0.0
        squared_above = 0.0
        for label in (0, 1):
            label_weight = row_weight[:, label]
            low, high = score_limits(
                counts[:, label],
                differences * label_weight,
                label_weight,
                possible[:, label],
                z,
                cautious=cautious,
            )
            # A limit of the mean, as a distance of the net benefit from its estimate. A
            # negative value of a treatment exchanges lower and upper limits.
            value = self.treatment_value[:, label]
            mean = self.mean_difference[:, label]
            from_low = value * (low - mean)
            from_high = value * (high - mean)
            squared_below = squared_below + np.minimum(from_low, from_high) ** 2
            squared_above = squared_above + np.maximum(from_low, from_high) ** 2
        low = self.estimate - np.sqrt(squared_below)
        high = self.estimate + np.sqrt(squared_above)
        return low, high


def treated_weight(n_reached, weight, n_thresholds, unit=None, n_units=1):
    """Return the weight of the samples that are treated at each of m increasing
    thresholds, (n_units, m), by independent unit.

    Parameters
    ----------
    n_reached : ndarray of int, shape (n,)
        How many of the thresholds the probability of each sample reaches. The sample is
        treated at these, which are the lowest.
    weight : ndarray of shape (n,)
        Weights.
    n_thresholds : int
        m.
    unit : ndarray of int, shape (n,), default=None
        Code of each sample's unit, such as a cluster; None means a single unit.
    n_units : int, default=1
        Number of units.
    """
    if unit is None:
        unit = np.zeros(len(n_reached), dtype=np.intp)
    # The weight that reaches exactly 0, 1, ..., m thresholds, a line for each unit: one
    # `bincount` of the pair (unit, number) as a single index.
    width = n_thresholds + 1
    table = np.bincount(unit * width + n_reached, weight, n_units * width)
    exactly = table.reshape(n_units, width)
    # The k-th threshold is reached by all that reach k or more: sums from the right.
    at_least = exactly[:, ::-1].cumsum(axis=1)[:, ::-1]
    return at_least[:, 1:]


def cell_sums(events, n_reached, weight, n_thresholds):
    """Return the weight of the samples in each cell, (m, 2, 3): at each of m
    thresholds, with each label (event, non-event), and treated by the model alone, by
    the reference alone, and alike by both.

    Parameters
    ----------
    events : ndarray of bool, shape (n,)
        Whether a sample is an event.
    n_reached : pair of ndarray of int, shape (n,)
        How many thresholds a sample reaches with the model, and with the reference.
    weight : ndarray of shape (n,)
        Weights.
    n_thresholds : int
        m.
    """
    by_model, by_reference = n_reached
    by_both = np.minimum(by_model, by_reference)
    sums = np.empty((n_thresholds, 2, 3))
    for label, has_label in enumerate((events, ~events)):
        label_weight = weight * has_label
        # The weight that is treated at each threshold, (m,).
        (model,) = treated_weight(by_model, label_weight, n_thresholds)
        (reference,) = treated_weight(by_reference, label_weight, n_thresholds)
        (both,) = treated_weight(by_both, label_weight, n_thresholds)
        sums[:, label, 0] = model - both
        sums[:, label, 1] = reference - both
        sums[:, label, 2] = label_weight.sum() - sums[:, label, :2].sum(axis=1)
    # Differences of sums of fractional weights may miss 0 by rounding.
    return np.where(sums > 1e-12 * weight.sum(), sums, 0.0)


class UnitInfluences(NamedTuple):
    """Influences of independent units on the net benefit at m thresholds.

    Parameters
    ----------
    residuals : ndarray of shape (n_units, m) or None
        Sum of the influences of the rows of each unit; None where they are not needed.
    degrees : ndarray of shape (m,)
        Degrees of freedom of their variance; infinite without clusters and without
        weights that say nothing of the other label.
    least_effect : ndarray of shape (m,)
        Smallest design effect: that which the correlation within clusters implies; 1
        without clusters.
    """

    residuals: np.ndarray
    degrees: np.ndarray
    least_effect: np.ndarray


def unit_influences(
    cells,
    events,
    n_reached,
    weight,
    squares,
    cluster,
    *,
    has_unknown_weights=False,
    for_band=True,
):
    """Return the `UnitInfluences` of independent units.

    A unit is a cluster, whose sum is scaled up as in the CR3 estimator. Without
    clusters, all rows with the same label and the same treatments at all thresholds are
    one unit, since they have the same influence.

    Parameters
    ----------
    cells : TreatmentCells
        The cells.
    events : ndarray of bool, shape (n,)
        Whether a row is an event.
    n_reached : pair of ndarray of int, shape (n,)
        How many thresholds a row reaches with the model, and with the reference.
    weight, squares : ndarray of shape (n,)
        What a row adds to a sum, and to a variance. They are the same array unless
        weights are importance weights.
    cluster : ndarray of int, shape (n,), or None
        Codes of clusters.
    has_unknown_weights : bool, default=False
        Whether importance weights say nothing of the other label: the variance then has
        the degrees of freedom that a few heavy rows leave it (see `tail_degrees`).
    for_band : bool, default=True
        Whether residuals are needed for a simultaneous band. They are m for each of up
        to 2 m units, and the limits of each threshold by itself do without them.
    """
    m = len(cells.treatment_value)
    if cluster is None and not (for_band or has_unknown_weights):
        return UnitInfluences(None, np.full(m, np.inf), np.ones(m))
    if cluster is None:
        # Rows with the same label and numbers of reached thresholds have one code.
        pattern = np.ravel_multi_index(
            (events.astype(np.intp), *n_reached), (2, m + 1, m + 1)
        )
        _, first, unit = np.unique(pattern, return_index=True, return_inverse=True)
        # One row replaces them, whose squared weight is the sum of theirs.
        row_weight = np.sqrt(np.bincount(unit, squares))
        row_reached = [numbers[first] for numbers in n_reached]
        row_unit = np.arange(len(first))
        sums = _influence_sums(cells, events[first], row_reached, row_weight, row_unit)
        degrees = np.full(m, np.inf)
        if has_unknown_weights:
            # Influences phi have the sums of w^2 phi^2 and of w^4 phi^4.
            share = np.bincount(unit, squares**2) / np.bincount(unit, squares) ** 2
            square = np.sum(sums**2, axis=0)
            varies = square > 0
            fourth = share @ sums[:, varies] ** 4
            degrees[varies] = tail_degrees(len(events), square[varies], fourth)
        return UnitInfluences(sums, degrees=degrees, least_effect=np.ones(m))
    sums = _influence_sums(cells, events, n_reached, weight, cluster)
    is_importance = squares is not weight
    mass, squared_mass = cluster_masses(weight, is_importance, cluster)
    _, degrees = cluster_variance(sums, mass, squared_mass, cells.row_variance)
    least_effect, degrees_if_alike = intraclass_design_effect(
        sums, mass, squared_mass, cells.row_variance
    )
    # CR3 divides by 1 minus the leverage of the cluster, its share of the weight.
    leverage = mass / mass.sum()
    return UnitInfluences(
        residuals=sums / (1 - leverage)[:, None],
        degrees=np.minimum(degrees, degrees_if_alike),
        least_effect=least_effect,
    )


def _influence_sums(cells, events, n_reached, weight, unit):
    """Return the sums of the rows' influences on the net benefit at each threshold,
    (n_units, m): weight times (d times the value of a treatment, minus the offset of
    the label), where d is whether the model treats the row less whether the reference
    does. `cells` are the `TreatmentCells`, and `unit` (n,) is the code of each row's
    unit.
    """
    m = len(cells.treatment_value)
    n_units = int(unit.max()) + 1
    by_model, by_reference = n_reached
    sums = np.zeros((n_units, m))
    for label, has_label in enumerate((events, ~events)):
        label_weight = weight * has_label
        # Sums of weight times d, (n_units, m), and of the weight, (n_units, 1).
        difference = treated_weight(by_model, label_weight, m, unit, n_units)
        difference -= treated_weight(by_reference, label_weight, m, unit, n_units)
        total = np.bincount(unit, label_weight, n_units)[:, None]
        sums += cells.treatment_value[:, label] * difference
        sums -= total * cells.offset[:, label]
    return sums


def design_effects(cells, influences, cluster):
    """Return the design effect of the clusters at each of m thresholds, (m,): the
    variance of the net benefit over that of independent rows, and at least the smallest
    one of the `UnitInfluences`. It is 1 if `cluster` is None. `cells` are the
    `TreatmentCells`.
    """
    effect = np.ones(len(cells.treatment_value))
    if cluster is not None:
        np.divide(
            np.sum(influences.residuals**2, axis=0),
            cells.variance,
            out=effect,
            where=cells.variance > 0,
        )
    return np.maximum(effect, influences.least_effect)


def critical_values(influences, level, n_draws, rng):
    """Return the critical values (m,) of the intervals at m thresholds, or of a
    simultaneous band.

    For a band, a multiplier bootstrap multiplies the influences of each unit by a
    random normal factor. The quantile of the largest deviation over the thresholds, in
    units of its standard error, replaces the normal quantile.

    Parameters
    ----------
    influences : UnitInfluences
        Influences of the independent units, and their degrees of freedom.
    level : float
        Confidence level.
    n_draws : int or None
        Number of draws for a band; None for intervals.
    rng : RandomState or None
        Random numbers for a band.
    """
    probability = (1 + level) / 2
    degrees = influences.degrees
    z = np.where(np.isinf(degrees), ndtri(probability), stdtrit(degrees, probability))
    if n_draws is None:
        return z
    standard_error = np.sqrt(np.sum(influences.residuals**2, axis=0))
    has_error = standard_error > 0
    if not has_error.any():
        return z
    scaled = influences.residuals[:, has_error] / standard_error[has_error]
    largest = np.empty(n_draws)
    for draw in range(n_draws):
        deviation = rng.standard_normal(len(scaled)) @ scaled
        largest[draw] = np.abs(deviation).max()
    # All intervals become wider by one factor: the quantile of the largest deviation
    # over the normal quantile of a single interval.
    factor = np.quantile(largest, level) / ndtri(probability)
    return z * max(factor, 1.0)


def reasons_for_no_limits(cells, weight, is_importance, cluster, is_against_model):
    """Return why the net benefit at each of m thresholds has no limits, (m,) of str; an
    empty string if it has limits.

    Parameters
    ----------
    cells : TreatmentCells
        The cells.
    weight : ndarray of shape (n,)
        Weights of the rows with positive weight.
    is_importance : bool
        Whether these are importance weights.
    cluster : ndarray of int, shape (n,), or None
        Clusters of these rows.
    is_against_model : bool
        Whether the reference is another model.
    """
    m = len(cells.treatment_value)
    few = too_few_units(weight, is_importance, cluster)
    if few:
        return np.full(m, few, dtype=object)
    reasons = np.full(m, "", dtype=object)
    if is_against_model:
        too_few = cells.discordant().min(axis=1) < _FEWEST_DISCORDANT
        reasons[too_few] = (
            f"fewer than {_FEWEST_DISCORDANT} samples favour one of the models"
        )
    if cluster is not None:
        reasons[(cells.row_variance == 0) & (reasons == "")] = (
            "all samples have the same net benefit, so the variation between clusters"
            " cannot be estimated"
        )
    return reasons
