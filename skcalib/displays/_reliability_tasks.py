"""Which binary problem each panel of a reliability diagram shows, for each model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skcalib._cells.columns import resolve_multiclass
from skcalib._cells.reductions import binary_tasks
from skcalib._cells.tasks import BinaryTask
from skcalib._input.groups import check_named_groups
from skcalib._input.labels import check_groups
from skcalib._input.scored_labels import check_scored_labels
from skcalib._intervals.influence import cluster_codes
from skcalib._rows.blocks import taken


class PanelTasks(NamedTuple):
    """The binary problems of a reliability diagram.

    Attributes
    ----------
    by_panel : dict of dict of BinaryTask
        Problem by panel and model. A panel is a class, a group, or None for the only
        one.
    kind : {"binary", "top_label", "marginal", "multilabel"}
        What the event is: the positive class, "the predicted class is right", or one
        class or label in each panel.
    event : str or None
        Name of the event; None where it has none.
    """

    by_panel: dict
    kind: str
    event: str | None


def panel_tasks(y_true, models, multiclass, groups, order, input_options):
    """Return the `PanelTasks` of labels and the probabilities of models: the scores and
    labels of each panel and model, and what the event is.

    `models` holds probabilities by name, `groups` labels of groups (n,) or None. With
    the `order` "given" groups come in the order of their first rows, else sorted.
    `input_options` holds further arguments of `check_scored_labels`, such as weights.
    """
    by_panel = {}
    for model, y_proba in models.items():
        data = check_scored_labels(
            y_true,
            y_proba,
            multiclass=multiclass,
            drop=False,
            multilabel=True,
            **input_options,
        )
        kind = resolve_multiclass(multiclass, data)
        # One for each class or label ("marginal"), else a single one.
        problems = list(binary_tasks(data, multiclass))
        if data.is_multilabel and groups is not None:
            raise ValueError(
                "groups and several labels per row cannot be combined: each needs"
                " separate panels. Draw one column of y_true and of y_proba at a time."
            )
        if groups is not None:
            panels = _tasks_by_group(problems[0], groups, order)
        elif kind == "marginal":
            panels = zip(map(str, data.classes.tolist()), problems, strict=True)
        else:
            panels = [(None, problems[0])]
        for panel, task in panels:
            by_panel.setdefault(panel, {})[model] = task
    if data.is_multilabel:
        return PanelTasks(by_panel, "multilabel", None)
    # The positive label names the event, unless it is unknown or True.
    event = data.classes[-1]
    if kind != "binary" or event is None or isinstance(event, bool | np.bool_):
        return PanelTasks(by_panel, kind, None)
    if not isinstance(event, str):
        event = f"class {event}"
    return PanelTasks(by_panel, kind, event)


def _tasks_by_group(task, groups, order):
    """Yield (name, BinaryTask) of each group with positive weight, sorted by name, or
    by first row if `order` is "given".
    """
    # codes: for each row the position of its group among the names.
    names, codes = check_named_groups(groups, len(task.scores), takes_max_bins=False)
    present, first_row = np.unique(codes, return_index=True)
    if order == "given":
        present = present[np.argsort(first_row)]
    for code in present:
        group_task = rows_of_task(task, codes == code)
        if group_task.sample_weight is None or group_task.sample_weight.any():
            yield str(names[code]), group_task


def rows_of_task(task, is_row):
    """Return a binary problem of some rows: those where `is_row` (n,) is True."""
    return BinaryTask(*(taken(column, is_row) for column in task))


def clusters_by_panel(clusters, groups, panels, n_rows):
    """Return a dict with the code of the cluster of each row of a panel, by panel; with
    None for each panel if there are no clusters.

    `clusters` and `groups` are labels (n_rows,) or None. A panel shows one of the
    groups, or all rows.
    """
    if clusters is None:
        return dict.fromkeys(panels)
    _, codes = check_groups(clusters, n_rows, name="clusters")
    codes = cluster_codes(codes)  # raises for a single cluster
    if groups is None:
        return dict.fromkeys(panels, codes)
    names, group = check_named_groups(groups, n_rows, takes_max_bins=False)
    return {str(name): codes[group == code] for code, name in enumerate(names)}


def row_arguments(task):
    """Return the possible labels of a problem, and its weights if it has some, as
    keyword arguments of metrics.
    """
    # Both labels are named, since the rows of a panel may all have the same one.
    arguments = {"labels": [False, True]}
    if task.sample_weight is not None:
        arguments["sample_weight"] = task.sample_weight
    return arguments
