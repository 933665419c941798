"""Recalibrators fitted to a table: from the cells of a histogram, or from two scores
per cell and label.
"""

import numpy as np
from sklearn.base import clone

from skcalib._fitting.wrapped import check_recalibrator, class_parameters
from skcalib._input.labels import check_groups
from skcalib.engines._histogram import ScoreHistogram
from skcalib.engines._statistics import binned, check_strategy, equal_mass_cells
from skcalib.engines._weighted import label_pairs, rows_of_cells
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
    for key, (rows, statistics) in _fit_data(columns, recalibrator).items():
        models[key] = _fit(recalibrator, key, columns, rows, statistics)
    return models


def fitted_groupwise(columns, recalibrator):
    """Return a fitted clone of a `GroupwiseRecalibrator`, whose groups are the segments
    other than NULL.
    """
    if len(columns.by) != 1:
        raise ValueError(
            "GroupwiseRecalibrator takes the groups of rows from one column: name it"
            " with by=."
        )
    if recalibrator.merge_small_groups:
        raise ValueError(
            "GroupwiseRecalibrator(merge_small_groups=True) cannot be fitted to a"
            " table: set it to False."
        )
    model = clone(recalibrator)
    model._validate_params()
    model._check_one_source(columns.by)
    inner = check_recalibrator(model._resolved("recalibrator"))
    model.classes_ = np.array([0, 1])
    if model.classes is not None:
        model.classes_ = np.asarray(model.classes)
    inner.set_params(**class_parameters(inner, model.classes_))
    # Without segments there is one key, (), or none if there are no rows.
    model.pooled_recalibrator_ = fitted(columns.pooled(), inner).get(())

    # Groups, and the segment's key, weighted rows and bin statistics (or None) of each.
    groups = []
    data = []
    for key, (rows, statistics) in _fit_data(columns, inner).items():
        (group,) = key
        if group is not None:
            groups.append(group)
            data.append((key, rows, statistics))
    if not groups:
        raise ValueError("The table has no valid row with a group: see invalid_rows().")
    model.groups_, codes = check_groups(groups, len(groups))
    data = [data[position] for position in np.argsort(codes)]  # as in `groups_`
    sizes = [rows.sample_weight.sum() for _, rows, _ in data]
    model.group_sizes_ = np.array(sizes)
    model.n_features_in_ = 1
    model._group_column = columns.by[0]

    # Without merging, each part of the rows is one group.
    part_of_group = model._parts(group=None, residuals=None, weight=None)

    def data_of(part):
        """Return key, rows and statistics of the group of a part."""
        (group,) = np.flatnonzero(part_of_group == part)
        return data[group]

    def fit(part):
        """Return the recalibrator of a part."""
        key, rows, statistics = data_of(part)
        return _fit(inner, key, columns, rows, statistics)

    def has_one_class(part):
        """Return whether all rows of a part have the same label."""
        _, rows, _ = data_of(part)
        return len(np.unique(rows.y_true)) < 2

    model._fit_parts(part_of_group, fit, has_one_class)
    model._remember_parameters()
    return model


def _fit_data(columns, recalibrator):
    """Return by segment the `WeightedScores` to which the recalibrator is fitted, and
    the `BinStatistics` from which it takes its bins, or None.
    """
    if not hasattr(recalibrator, "get_params") or isinstance(recalibrator, type):
        raise TypeError(
            "recalibrator must be a recalibrator such as PlattScaling(), found"
            f" {recalibrator!r}."
        )
    # The function that makes the weighted rows for recalibrators of this class.
    rows_for = _ROWS.get(type(recalibrator))
    if rows_for is None:
        raise ValueError(
            f"{type(recalibrator).__name__} cannot be fitted to a table. These can:"
            f" {', '.join(kind.__name__ for kind in _ROWS)}. Fit others to the rows of"
            " weighted_scores()."
        )
    if recalibrator.input != "probability":
        raise ValueError(
            f"a table contains probabilities: {type(recalibrator).__name__}"
            f" needs input='probability', found {recalibrator.input!r}."
        )
    if rows_for is _histogram:
        return _histogram(columns, recalibrator)  # with the statistics
    rows_by_segment = rows_for(columns, recalibrator)
    return {key: (rows, None) for key, rows in rows_by_segment.items()}


# Each of the next functions returns the weighted rows of each segment for one kind of
# recalibrator, a dict by key; `_histogram` adds the bins.


def _isotonic(columns, recalibrator):
    """Return weighted rows that give the exact isotonic fit: for each block of cells in
    which the map is constant its lowest and highest score, or with `centered` its mean.
    """
    score_sums = ()
    if recalibrator.centered:
        score_sums = ("weighted_score",)
    histogram = ScoreHistogram(columns, score_sums)
    # Cells in which the map may jump become distinct scores, the others are merged.
    histogram.refine(_may_hold_jump, pool=True)
    data = {}
    for key, cells in histogram.by_segment().items():
        scores, weight, events = _blocks(cells, recalibrator.centered)
        data[key] = rows_of_cells(scores, weight, events)
    return data


def _blocks(cells, centered):
    """Return scores, weights and weights of events, (n_scores,) each, of the blocks of
    an isotonic fit to cells.

    A block is a run of cells, and a cell holds the rows with scores from `low` to
    `high`. Half of a block's weight is at its least score and half at its greatest;
    with `centered` all of it is at the mean.
    """
    bounds = _block_bounds(cells)
    starts = bounds[:-1]
    weight = np.add.reduceat(cells.weight, starts)
    events = np.add.reduceat(cells.weighted_label, starts)
    low = cells.low[starts]
    high = cells.high[bounds[1:] - 1]
    if centered:
        mean = np.add.reduceat(cells.weighted_score, starts) / weight
        return np.clip(mean, low, high), weight, events
    # A block of one score keeps its weight there.
    is_wide = low < high
    share_at_low = np.where(is_wide, 0.5, 1.0)
    return (
        np.concatenate((low, high[is_wide])),
        np.append(weight * share_at_low, (weight / 2)[is_wide]),
        np.append(events * share_at_low, (events / 2)[is_wide]),
    )


def _may_hold_jump(cells):
    """Return the cells, as a mask, in which the isotonic fit to all rows may jump.

    The fit is the slope of the greatest convex minorant of the cumulative diagram, in
    which each row moves to the right by its weight, and an event also upwards. It jumps
    where the minorant has a vertex. Within a cell the diagram is lowest if all
    non-events come before the events. If even that corner lies above the minorant of
    the cells as a whole, no point within the cell is a vertex.
    """
    # Cumulative weight and events before each cell and after the last, (n_cells + 1,).
    weight = np.append(0.0, np.cumsum(cells.weight))
    events = np.append(0.0, np.cumsum(cells.weighted_label))
    vertices = _block_bounds(cells)
    non_events = cells.weight - cells.weighted_label
    corner = weight[:-1] + non_events
    minorant = np.interp(corner, weight[vertices], events[vertices])
    rounding = 1e-12 * weight[-1]
    return events[:-1] <= minorant + rounding


def _block_bounds(cells):
    """Return the positions of the first cell of each block of the isotonic fit to cells
    and, last, the number of cells.

    They are the vertices of the greatest convex minorant. SciPy's blocks are used since
    differences of cumulative weights would lose those that are small beside the sum.
    """
    from scipy.optimize import isotonic_regression

    frequency = cells.weighted_label / cells.weight
    return isotonic_regression(frequency, weights=cells.weight).blocks


def _histogram(columns, recalibrator):
    """Return the pairs (weighted rows, `BinStatistics`) by segment of bins that are
    made from the same rows; the fit equals that to all rows.
    """
    if recalibrator.sample_split is not None:
        raise ValueError(
            "HistogramBinning with sample_split cannot be fitted to a table yet: use"
            " sample_split=None, or the rows of weighted_scores()."
        )
    strategy = check_strategy(recalibrator._strategy())
    data = {}
    for key, statistics in binned(columns, strategy).items():
        is_filled = statistics.weight > 0
        rows = rows_of_cells(
            statistics.mean_score[is_filled],
            statistics.weight[is_filled],
            statistics.weighted_label[is_filled],
        )
        data[key] = (rows, statistics)
    return data


def _pairs(columns, recalibrator):
    """Return two weighted scores per cell and label, for parametric maps."""
    return label_pairs(columns)


def _spline(columns, recalibrator):
    """Return two weighted scores per cell and label, where cells that hold a knot (a
    quantile of the scores, or one of both ends) are distinct scores.
    """

    def holds_knot(cells):
        """Return which cells (n_cells,) hold a knot."""
        is_weighted = columns.weight is not None
        is_knot = np.zeros(len(cells.low), dtype=bool)
        is_knot[equal_mass_cells(cells, recalibrator.n_knots - 1, is_weighted)] = True
        is_knot[[0, -1]] = True
        return is_knot

    return label_pairs(columns, holds_knot)


def _fit(recalibrator, key, columns, rows, statistics):
    """Return a clone fitted to `WeightedScores`, with the bins of `statistics` unless
    that is None. The message of an error names the segment, whose key is `key`.
    """
    y_true, scores, weight = rows
    if recalibrator.classes is not None:
        y_true = np.asarray(recalibrator.classes)[y_true]
    try:
        fitted = clone(recalibrator).fit(scores, y_true, sample_weight=weight)
    except ValueError as error:
        if not key:
            raise
        conditions = []
        for name, value in zip(columns.by, key, strict=True):
            conditions.append(f"{name} = {value!r}")
        raise ValueError(
            f"The segment {', '.join(conditions)} could not be fitted. {error}"
        ) from error
    # The provenance would count and hash cells in place of the table's rows.
    vars(fitted).pop("provenance_", None)
    if statistics is not None:
        fitted._set_bins(statistics, weighted=columns.weight is not None)
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
# What a recalibrator of each class is fitted to.
_ROWS = {
    IsotonicCalibration: _isotonic,
    HistogramBinning: _histogram,
    SplineCalibration: _spline,
}
_ROWS |= dict.fromkeys(_PARAMETRIC, _pairs)
