"""Recalibrators fitted to a table: from the cells of a histogram, or from two scores
per cell and label.
"""

from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from skcalib._cells.statistics import BinStatistics
from skcalib._fitting.wrapped import refuse_features
from skcalib.engines._histogram import ScoreHistogram
from skcalib.engines._statistics import binned, check_strategy, equal_mass_cells
from skcalib.engines._weighted import WeightedScores, label_pairs, rows_of_cells
from skcalib.recalibrators import (
    BetaCalibration,
    DirichletCalibration,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    QuadraticScaling,
    SplineCalibration,
    TemperatureScaling,
    VectorScaling,
)


def fitted(columns, recalibrator):
    """Return fitted clones of a recalibrator by segment: a dict whose keys are tuples
    of values, with the key () for a table without segments.
    """
    models = {}
    for data in _fit_data(columns, recalibrator):
        models[data.key] = _fit(recalibrator, columns, data)
    return models


class GroupedTable(NamedTuple):
    """A table whose rows have groups, the segments other than NULL: what the fit of a
    `GroupwiseRecalibrator` asks of it.

    `columns` has the groups in the only column of `columns.by`.
    """

    columns: object

    @property
    def column(self):
        """Name of the column of groups."""
        if len(self.columns.by) != 1:
            raise ValueError(
                "GroupwiseRecalibrator takes the groups of rows from one column: name"
                " it with by=."
            )
        return self.columns.by[0]

    def fit_all(self, recalibrator):
        """Return a clone of a recalibrator, fitted to all rows."""
        # Without segments there is one key, (), or none if there are no rows.
        return fitted(self.columns.pooled(), recalibrator).get(())

    def rows_by_group(self, recalibrator):
        """Return a list of the groups and a list of their `_GroupRows`, to which clones
        of this recalibrator are to be fitted.
        """
        groups = []
        rows_of_groups = []
        for data in _fit_data(self.columns, recalibrator):
            (group,) = data.key
            if group is not None:
                groups.append(group)
                rows_of_groups.append(_GroupRows(self.columns, data))
        if not groups:
            raise ValueError(
                "The table has no valid row with a group: see invalid_rows()."
            )
        return groups, rows_of_groups


class _GroupRows(NamedTuple):
    """The rows of one group of a table, as the `_FitData` of its segment."""

    columns: object
    data: "_FitData"

    @property
    def size(self):
        """Total weight."""
        return self.data.rows.sample_weight.sum()

    @property
    def n_classes(self):
        """How many classes have rows."""
        return len(np.unique(self.data.rows.y_true))

    def fit(self, recalibrator):
        """Return a clone of a recalibrator, fitted to these rows."""
        return _fit(recalibrator, self.columns, self.data)


class _FitData(NamedTuple):
    """What the recalibrator of one segment is fitted to.

    Attributes
    ----------
    key : tuple
        Values of the columns that define the segment.
    rows : WeightedScores
        The weighted rows.
    statistics : BinStatistics or None
        The bins of `HistogramBinning`; None for other recalibrators.
    """

    key: tuple
    rows: WeightedScores
    statistics: BinStatistics | None = None


def _fit_data(columns, recalibrator):
    """Return the `_FitData` of each segment that has valid rows; raise if this
    recalibrator cannot be fitted to a table.
    """
    if not hasattr(recalibrator, "get_params") or isinstance(recalibrator, type):
        raise TypeError(
            "recalibrator must be a recalibrator such as PlattScaling(), found"
            f" {recalibrator!r}."
        )
    # the function that makes the rows of this method from the table
    data_for = _DATA_FOR.get(type(recalibrator))
    if data_for is None:
        raise ValueError(
            f"{type(recalibrator).__name__} cannot be fitted to a table. These can:"
            f" {', '.join(kind.__name__ for kind in _DATA_FOR)}. Fit others to the rows"
            " of weighted_scores()."
        )
    if recalibrator.input != "probability":
        raise ValueError(
            f"a table contains probabilities: {type(recalibrator).__name__}"
            f" needs input='probability', found {recalibrator.input!r}."
        )
    refuse_features(recalibrator)
    return data_for(columns, recalibrator)


# Each of the next functions returns the `_FitData` of each segment, a list, for one
# kind of recalibrator.


def _isotonic_data(columns, recalibrator):
    """Return `_FitData` with the same isotonic fit as all rows: the least and the
    greatest score of each block, in which the map is constant, or its mean for a
    `centered` recalibrator.
    """
    score_sums = ()
    if recalibrator.centered:
        score_sums = ("weighted_score",)
    histogram = ScoreHistogram(columns, score_sums)
    # Cells in which the map may jump become distinct scores, the others are merged.
    histogram.refine(_may_hold_jump, pool=True)
    data = []
    for key, cells in histogram.by_segment().items():
        scores, weight, weighted_label = _block_sums(cells, recalibrator.centered)
        data.append(_FitData(key, rows_of_cells(scores, weight, weighted_label)))
    return data


def _block_sums(cells, centered):
    """Return scores that represent the blocks of an isotonic fit, with their weights
    and those of their events, (n_scores,) each: half of the weight at the least score
    and half at the greatest, or with `centered` all of it at the mean.
    """
    bounds = _block_bounds(cells)  # the first cell of each block, and n_cells
    first = bounds[:-1]
    last = bounds[1:] - 1
    # Sums over the cells of each block.
    weight = np.add.reduceat(cells.weight, first)
    events = np.add.reduceat(cells.weighted_label, first)
    low = cells.low[first]
    high = cells.high[last]
    if centered:
        mean = np.add.reduceat(cells.weighted_score, first) / weight
        return np.clip(mean, low, high), weight, events
    # A block of one score has a single point.
    is_wide = low < high
    share_at_low = np.where(is_wide, 0.5, 1.0)
    return (
        np.concatenate((low, high[is_wide])),
        np.append(weight * share_at_low, (weight / 2)[is_wide]),
        np.append(events * share_at_low, (events / 2)[is_wide]),
    )


def _may_hold_jump(cells):
    """Return a mask of a segment's cells in which the isotonic fit to all rows may
    jump.

    It jumps at the vertices of the greatest convex minorant of the cumulative diagram
    of weight and events. Within a cell the diagram is lowest if all non-events come
    first: it has its corner where they end. If that lies above the minorant of the
    cells' diagram, no point within is a vertex.
    """
    # Cumulative weight and events before each cell and after the last, (n_cells + 1,).
    weight = np.append(0.0, np.cumsum(cells.weight))
    events = np.append(0.0, np.cumsum(cells.weighted_label))
    vertices = _block_bounds(cells)
    # The corner of each cell: the events before it, at this cumulative weight.
    non_events = cells.weight - cells.weighted_label
    weight_at_corner = weight[:-1] + non_events
    minorant = np.interp(weight_at_corner, weight[vertices], events[vertices])
    rounding = 1e-12 * weight[-1]
    return events[:-1] <= minorant + rounding


def _block_bounds(cells):
    """Return the first cell of each block of the isotonic fit and, last, the number of
    cells. Blocks are SciPy's: differences of cumulative weights would lose small ones.
    """
    from scipy.optimize import isotonic_regression

    frequency = cells.weighted_label / cells.weight
    return isotonic_regression(frequency, weights=cells.weight).blocks


def _histogram_data(columns, recalibrator):
    """Return `_FitData` with the `BinStatistics` and one row per bin and label at the
    bin's mean score, whose fit equals that to all rows.
    """
    if recalibrator.sample_split is not None:
        raise ValueError(
            "HistogramBinning with sample_split cannot be fitted to a table yet: use"
            " sample_split=None, or the rows of weighted_scores()."
        )
    strategy = check_strategy(recalibrator._strategy())
    data = []
    for key, statistics in binned(columns, strategy).items():
        is_filled = statistics.weight > 0
        rows = rows_of_cells(
            statistics.mean_score[is_filled],
            statistics.weight[is_filled],
            statistics.weighted_label[is_filled],
        )
        data.append(_FitData(key, rows, statistics))
    return data


def _parametric_data(columns, recalibrator):
    """Return a list of `_FitData` with two weighted scores per cell and label."""
    return [_FitData(key, rows) for key, rows in label_pairs(columns).items()]


def _spline_data(columns, recalibrator):
    """Return `_FitData` with two weighted scores per cell and label; cells that hold a
    knot (a quantile, or an end) are split into distinct scores.
    """

    def holds_knot(cells):
        """Return a mask of the cells of one segment that hold a knot."""
        is_weighted = columns.weight is not None
        # K knots are both ends and the K - 2 cuts between K - 1 bins of equal mass.
        n_bins = recalibrator.n_knots - 1
        is_knot = np.zeros(len(cells.low), dtype=bool)
        is_knot[equal_mass_cells(cells, n_bins, is_weighted)] = True
        is_knot[[0, -1]] = True
        return is_knot

    # two scores with the mean and the variance of the rows of each cell and label
    rows_by_segment = label_pairs(columns, holds_knot)
    return [_FitData(key, rows) for key, rows in rows_by_segment.items()]


def _fit(recalibrator, columns, data):
    """Return a clone of a recalibrator that is fitted to the `_FitData` of one segment;
    if the fit fails, the message names the segment.
    """
    y_true, scores, weight = data.rows
    if recalibrator.classes is not None:
        y_true = np.asarray(recalibrator.classes)[y_true]
    try:
        fitted = clone(recalibrator).fit(scores, y_true, sample_weight=weight)
    except ValueError as error:
        if not data.key:  # a table without segments
            raise
        conditions = []
        for name, value in zip(columns.by, data.key, strict=True):
            conditions.append(f"{name} = {value!r}")
        raise ValueError(
            f"The group {', '.join(conditions)} could not be fitted. {error}"
        ) from error
    # `provenance_` would describe the cells of the fit, and not the rows of the table.
    del fitted.provenance_
    if data.statistics is not None:
        fitted._set_bins(data.statistics, weighted=columns.weight is not None)
    return fitted


_PARAMETRIC = (
    PlattScaling,
    BetaCalibration,
    QuadraticScaling,
    TemperatureScaling,
    VectorScaling,
    MatrixScaling,
    DirichletCalibration,
)
# The function that returns what a recalibrator of each class is fitted to.
_DATA_FOR = {
    IsotonicCalibration: _isotonic_data,
    HistogramBinning: _histogram_data,
    SplineCalibration: _spline_data,
}
_DATA_FOR |= dict.fromkeys(_PARAMETRIC, _parametric_data)
