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
    """Return fitted clones by segment (a dict; its keys are tuples)."""
    parts = _parts(columns, recalibrator)
    return {key: _fit(recalibrator, key, columns, *part) for key, part in parts.items()}


def fitted_groupwise(columns, recalibrator):
    """Return a fitted clone of a `GroupwiseRecalibrator`, whose groups are the
    segments: NULL is none.
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
    # All rows are one segment, if there are any.
    model.pooled_recalibrator_ = fitted(columns.pooled(), inner).get(())

    # Groups with what their recalibrator is fitted to, in the order of `groups_`.
    groups = []
    data = []
    for key, data_of_group in _parts(columns, inner).items():
        if key != (None,):
            groups.append(key[0])
            data.append((key, data_of_group))
    if not groups:
        raise ValueError("The table has no valid row with a group: see invalid_rows().")
    model.groups_, codes = check_groups(groups, len(groups))
    data = [data[place] for place in np.argsort(codes)]
    sizes = [rows.sample_weight.sum() for _, (rows, _) in data]
    model.group_sizes_ = np.array(sizes)
    model.n_features_in_ = 1
    model._group_column = columns.by[0]

    # Without merging, each part of the rows is one group.
    part_of_group = model._parts(None, None, None)

    def data_of(part):
        return data[np.flatnonzero(part_of_group == part)[0]]

    def fit(part):
        key, fitted_to = data_of(part)
        return _fit(inner, key, columns, *fitted_to)

    def has_one_class(part):
        _, (rows, _) = data_of(part)
        return len(np.unique(rows.y_true)) < 2

    model._fit_parts(part_of_group, fit, has_one_class)
    model._remember_parameters()
    return model


def _parts(columns, recalibrator):
    """Return by segment the weighted rows that recalibrators are fitted to, and the
    statistics of bins or None.
    """
    if not hasattr(recalibrator, "get_params") or isinstance(recalibrator, type):
        raise TypeError(
            "recalibrator must be a recalibrator such as PlattScaling(), found"
            f" {recalibrator!r}."
        )
    rows = _ROWS.get(type(recalibrator))
    if rows is None:
        raise ValueError(
            f"{type(recalibrator).__name__} cannot be fitted to a table. What can:"
            f" {', '.join(kind.__name__ for kind in _ROWS)}. Others take the rows of"
            " weighted_scores()."
        )
    if recalibrator.input != "probability":
        raise ValueError(
            f"the scores of a table are probabilities: {type(recalibrator).__name__}"
            f" needs input='probability', found {recalibrator.input!r}."
        )
    if rows is _histogram:
        return _histogram(columns, recalibrator)
    return {key: (part, None) for key, part in rows(columns, recalibrator).items()}


def _isotonic(columns, recalibrator):
    """Fit exactly: a block of cells in which the map cannot jump gives its ends, or
    with `centered` its mean.
    """
    score_sums = ()
    if recalibrator.centered:
        score_sums = ("weighted_score",)
    histogram = ScoreHistogram(columns, score_sums)
    histogram.refine(_may_hold_jump, pool=True)
    data = {}
    for key, cells in histogram.by_segment().items():
        scores, weight, events = _blocks(cells, recalibrator.centered)
        data[key] = rows_of_cells(scores, weight, events)
    return data


def _blocks(cells, centered):
    """Return scores, weights and events of the flat stretches of the map.

    Half of each is at its least score and half at its greatest; with `centered` all of
    it is at the mean.
    """
    ends = _minorant(cells)
    starts = ends[:-1]
    weight = np.add.reduceat(cells.weight, starts)
    events = np.add.reduceat(cells.weighted_label, starts)
    low = cells.low[starts]
    high = cells.high[ends[1:] - 1]
    if centered:
        mean = np.add.reduceat(cells.weighted_score, starts) / weight
        return np.clip(mean, low, high), weight, events
    # A stretch of one score stays whole.
    is_wide = low < high
    share = np.where(is_wide, 0.5, 1.0)
    return (
        np.concatenate((low, high[is_wide])),
        np.append(weight * share, (weight / 2)[is_wide]),
        np.append(events * share, (events / 2)[is_wide]),
    )


def _diagram(cells):
    """Return the weight and the events before each cell and after the last."""
    return np.append(0.0, np.cumsum(cells.weight)), np.append(
        0.0, np.cumsum(cells.weighted_label)
    )


def _may_hold_jump(cells):
    """Return the cells in which the greatest convex minorant of the cumulative diagram
    may have a vertex.

    Within a cell the diagram is lowest where all others come before its events: at the
    weight of the others. That point lies above the minorant of the ends of all cells
    for most cells, and no other point of them is a vertex then.
    """
    weight, events = _diagram(cells)
    vertices = _minorant(cells)
    corner = weight[:-1] + cells.weight - cells.weighted_label
    return (
        events[:-1]
        <= np.interp(corner, weight[vertices], events[vertices]) + 1e-12 * weight[-1]
    )


def _minorant(cells):
    """Return the positions of the vertices of the greatest convex minorant of the
    diagram.

    Differences of cumulative weights would lose those that are small beside the sum.
    """
    from scipy.optimize import isotonic_regression

    frequency = cells.weighted_label / cells.weight
    return isotonic_regression(frequency, weights=cells.weight).blocks


def _histogram(columns, recalibrator):
    """Fit unsplit bins exactly, from their statistics."""
    if recalibrator.sample_split is not None:
        raise ValueError(
            "HistogramBinning with sample_split cannot be fitted to a table yet: use"
            " sample_split=None, or the rows of weighted_scores()."
        )
    parts = {}
    for key, statistics in binned(
        columns, check_strategy(recalibrator._strategy())
    ).items():
        filled = statistics.weight > 0
        sums = statistics.mean_score, statistics.weight, statistics.weighted_label
        parts[key] = rows_of_cells(*(values[filled] for values in sums)), statistics
    return parts


def _pairs(columns, recalibrator):
    return label_pairs(columns)


def _spline(columns, recalibrator):
    """Fit to the same rows, with the cells of the knots (quantiles of the scores, and
    both ends) as distinct scores.
    """

    def holds_knot(cells):
        mask = np.zeros(len(cells.low), dtype=bool)
        mask[
            equal_mass_cells(
                cells, recalibrator.n_knots - 1, columns.weight is not None
            )
        ] = mask[[0, -1]] = True
        return mask

    return label_pairs(columns, holds_knot)


def _fit(recalibrator, key, columns, rows, statistics):
    """Return a clone fitted to weighted rows, with the bins of statistics if there are;
    its error has the segment.
    """
    y_true, scores, weight = rows
    if recalibrator.classes is not None:
        y_true = np.asarray(recalibrator.classes)[y_true]
    try:
        fitted = clone(recalibrator).fit(scores, y_true, sample_weight=weight)
    except ValueError as error:
        if not key:
            raise
        where = ", ".join(
            f"{name} = {value!r}" for name, value in zip(columns.by, key, strict=True)
        )
        raise ValueError(f"The segment {where} could not be fitted. {error}") from error
    # it would count and hash cells in place of the table's rows
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
_ROWS = {
    IsotonicCalibration: _isotonic,
    HistogramBinning: _histogram,
    SplineCalibration: _spline,
}
_ROWS |= dict.fromkeys(_PARAMETRIC, _pairs)
