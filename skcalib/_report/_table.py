"""What a report is about: labels, scores, weights, segments and times of a file, checked."""

import numpy as np

from skcalib._errors.proper_scores import LOSSES
from skcalib._input.scores import check_scores
from skcalib._input.weights import check_sample_weight
from skcalib._report._checks import checked_column, events, refuse_few_rows, refuse_missing, segment_names
from skcalib._report._compressed import condensed_table
from skcalib._report._forecasts import ReportTable, binary_task
from skcalib._report._models import class_codes, rescaled, score_models
from skcalib._report._periods import named_periods
from skcalib._report._reader import ReportError, column_names, on_disk, read_columns
from skcalib._report._scanned import ScannedFile
from skcalib._report._statistics import mean_interval

_WORTH_A_NOTE = 1e-5  # of single precision no reader needs to know


def read_table(path, *, label, scores, segment=None, weight=None, positive=None, time=None, classes=None, seed=0):
    """Read and check the columns of a report.

    Parameters
    ----------
    path : str
        CSV or Parquet file, or with DuckDB a glob of them.
    label : str
        Column of the labels.
    scores : sequence of str
        Columns of scores, probabilities of the event; or patterns with a star, one column per class.
    segment, weight : str, default=None
        Columns of segments and of weights.
    positive : str, default=None
        The label that is the event; may be left out for 0 and 1, -1 and 1, and booleans.
    time : str, default=None
        Column of times: periods, or dates as YYYY-MM-DD.
    classes : sequence of str, default=None
        The classes of the score columns.
    seed : int, default=0
        Seed of the sample that is taken of a large table with classes.

    Returns
    -------
    table : ReportTable
        The columns; of a large table of one event few weighted rows.

    Raises
    ------
    ReportError
        For anything that makes a report impossible, in one line.
    """
    names = {"label": label, "segment": segment, "weight": weight, "time": time}
    others = [name for name in names.values() if name is not None]
    notes = []
    if ScannedFile.takes(path):
        file = ScannedFile.opened(path)
        models = score_models(scores, classes, file.names, others, path)
        if file.n_rows > file.most_rows(models):
            if models[0].classes is None:
                return condensed_table(file, models, names, positive)
            notes.append(file.sample_note(models))
        columns = file.columns([*others, *(name for model in models for name in model.columns)], models, seed)
    else:
        with on_disk(path) as file:
            models = score_models(scores, classes, column_names(file), others, path)
            wanted = [*others, *(name for model in models for name in model.columns)]
            columns = read_columns(file, wanted, words=(label, segment, time))
    if models[0].classes is not None and positive is not None:
        raise ReportError("--positive is for two classes, but each class has a score here: leave it out.")
    return _table_of_columns(str(path), columns, models, names, positive, notes)


def _table_of_columns(source, columns, models, names, positive, notes):
    """Return the table of columns in memory."""
    label, segment, weight, time = names.values()
    n_rows = len(columns[label])
    refuse_few_rows(n_rows, source)
    classes, event, scores = models[0].classes, None, {}
    if classes is None:
        y, event = events(columns[label], label, positive)
    else:
        refuse_missing(columns[label], label, "label")
        y = class_codes(columns[label], label, classes)
    worst = 0.0
    for model in models:
        checked = [checked_column(name, check_scores, columns[name], name="scores")[:, 0] for name in model.columns]
        scores[model.name], off = (checked[0], 0.0) if classes is None else _matrix(checked, model.columns)
        worst = max(worst, off)
    if worst > _WORTH_A_NOTE:
        notes.append(f"The scores of a row were divided by their sum, which was off by {worst:.1g} at most.")
    weights = None if weight is None else checked_column(weight, check_sample_weight, columns[weight], n_rows)
    segments = None if segment is None else segment_names(columns[segment], segment)
    periods, order = (None, None) if time is None else named_periods(columns[time], time)
    if weights is not None:
        kept = weights > 0
        scores = {name: values[kept] for name, values in scores.items()}
        y, weights, segments, periods = (
            None if column is None else column[kept] for column in (y, weights, segments, periods)
        )
        order = None if periods is None else [name for name in order if name in set(periods.tolist())]
    return table_of_rows(
        source, label, event, y, scores, weights, (segment, segments), (time, periods, order), classes=classes,
        columns={model.name: model.columns for model in models}, notes=tuple(notes),
    )  # fmt: skip


def table_of_rows(source, label, event, y, scores, weight=None, segments=(None, None), times=(None,) * 3, **options):
    """Return the table of checked rows; `segments` are a name and values, `times` also the periods in their order."""
    forecasts = {name: (values, y, weight) for name, values in scores.items()}
    parts = [
        {} if values is None else {name: (binary_task(*rows), values) for name, rows in forecasts.items()}
        for values in (segments[1], times[1])
    ]
    first, *others = ({name: LOSSES["brier"](values, y) for name, values in scores.items()}).items()
    differences = {name: mean_interval(losses - first[1], weight) for name, losses in others}
    return ReportTable(
        source, label, event, len(y), weight is not None, forecasts, segments[0], parts[0], times[0], parts[1],
        times[2], differences, **options,
    )  # fmt: skip


def _matrix(columns, names):
    """Return the scores of classes as a matrix whose rows sum to 1, and how far they were off."""
    matrix = np.column_stack(columns)
    columns.clear()
    return rescaled(matrix, names)
