"""Rows of the tables of segments and of classes."""

import numpy as np

from skcalib._report._judged import judge_groups
from skcalib._report._measures import reason_outside
from skcalib._report._samples import SIGNIFICANCE_LEVEL, adjust, group_records
from skcalib.metrics import calibration_test

# With fewer rows a segment, or a class, may owe its place in the table to chance.
SMALL_SEGMENT = 100
SMALL_CLASS = 30


def segment_rows(event_rows, groups, seed, kind="segment"):
    """Return a list with a dict of numbers for each segment or class, the smallest
    p-value of the bias first.

    `event_rows` are the `Rows`, `groups` (n,) the name of each row's segment or class
    (None gives an empty list), and `kind` is "segment" or "class".
    """
    if groups is None:
        return []
    rows = group_records(event_rows, groups, kind, seed)
    for row in rows:
        row["n_events"] = row["n_rows"] * row["event_frequency"]
        row["reason"] = reason_outside(row["estimate"], row["low"], row["high"])
        if kind == "segment":
            row["is_small"] = row["n_rows"] < SMALL_SEGMENT
        else:
            row["is_small"] = row["n_events"] < SMALL_CLASS
    return sorted(rows, key=_least_likely_first)


def rows_by_column(event_rows, segmentations, seed, tolerance):
    """Return a list with a dict of numbers for each segment of all columns of segments,
    with p-values and verdicts adjusted for the number of all these segments.

    `segmentations` is a dict from the name of a column to the segment of each row,
    (n,).
    """
    rows = []
    n_segments = sum(len(np.unique(groups)) for groups in segmentations.values())
    for column, groups in segmentations.items():
        column_rows = segment_rows(event_rows, groups, seed)
        judge_groups(column_rows, "segment", event_rows, groups, tolerance, n_segments)
        rows += [{**row, "column": column} for row in column_rows]
    if len(segmentations) > 1:
        adjust(rows, "pvalue", "adjusted_pvalue")
        rows.sort(key=_least_likely_first)
    return rows


def _least_likely_first(row):
    """Return a key by which rows are sorted: small p-values, then large biases."""
    return row["pvalue"], -abs(row["bias"])


def class_rows(event_rows, names, seed, tolerance):
    """Return a list with a dict for each class against the rest: first those with a
    significant error, the largest first, then the others by their p-values.

    The test of the error is Kuiper's, which detects deviations that cancel in the bias.
    With clusters it would have to draw labels, which takes long for each class: the
    test of the bias is taken instead.

    `event_rows` holds all samples once for each class, as forecasts of that class
    against the rest; `names` (n,) is the class of each row.
    """
    rows = segment_rows(event_rows, names, seed, kind="class")
    judge_groups(rows, "class", event_rows, names, tolerance)
    for row in rows:
        row["error_pvalue"] = row["pvalue"]
        if event_rows.clusters is None:
            rows_of_class = event_rows.at(names == row["class"])
            tested = calibration_test(
                rows_of_class.labels,
                rows_of_class.scores,
                method="kuiper",
                weight_type=rows_of_class.weight_type,
                **rows_of_class.metric_options,
            )
            row["error_pvalue"] = tested.pvalue
    adjust(rows, "error_pvalue", "adjusted_error_pvalue")

    return sorted(rows, key=_significant_first)


def _significant_first(row):
    """Return a key by which the dicts of classes are sorted: significant errors, the
    largest first, then the others by p-value.
    """
    if row["adjusted_error_pvalue"] < SIGNIFICANCE_LEVEL:
        return 0, -np.nan_to_num(row["estimate"])
    return 1, row["error_pvalue"]
