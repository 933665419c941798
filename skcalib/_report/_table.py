"""What a report is about: labels, scores, weights, clusters, segments and times of a file, checked."""

from datetime import date
from pathlib import Path

import numpy as np

from skcalib._input.scores import check_sample_weight, check_scores
from skcalib._report._checks import (
    COUNTING,
    checked_column,
    class_codes,
    cluster_column,
    events,
    identifiers,
    repeats_note,
    rescaled,
    segment_names,
)
from skcalib._report._forecasts import ReportTable
from skcalib._report._models import renamed, score_models
from skcalib._report._periods import named_periods
from skcalib._report._reader import ReportError, opened

_FEWEST_ROWS = 10
_MOST_SCORES = 20_000_000  # of all classes together, that are read
_MOST_CLUSTERED = (
    30_000  # rows: draws of dependent labels take 50 times as long as independent ones
)
_WORTH_A_NOTE = 1e-5  # of single precision no reader needs to know


def read_table(
    path,
    *,
    label,
    scores,
    segment=None,
    weight=None,
    weight_type=None,
    cluster=None,
    positive=None,
    time=None,
    classes=None,
    names=(),
    seed=0,
):
    """Read and check the columns of a report.

    Parameters
    ----------
    path : str
        CSV or Parquet file, or with DuckDB a glob of them.
    label : str
        Column of the labels.
    scores : sequence of str
        Columns of scores, probabilities of the event; or patterns with a star, one column per class.
    segment, weight, cluster : str, default=None
        Columns of segments, of weights, and of what rows that are not independent have in common.
    weight_type : {"frequency", "importance"}, default=None
        What the weights are; None means "frequency" for integers.
    positive : str, default=None
        The label that is the event; may be left out for 0 and 1, -1 and 1, and booleans.
    time : str, default=None
        Column of times: periods, or dates as YYYY-MM-DD.
    classes : sequence of str, default=None
        The classes of the score columns.
    names : sequence of str, default=()
        What the models are called; none means as their columns.
    seed : int, default=0
        Seed of the sample that is taken of a large table.

    Returns
    -------
    table : ReportTable
        The columns.

    Raises
    ------
    ReportError
        For anything that makes a report impossible, in one line.
    """
    if weight is None and weight_type is not None:
        raise ReportError(
            "--weight-type says what weights are: name their column with --weight."
        )
    roles = {
        "label": label,
        "segment": segment,
        "weight": weight,
        "time": time,
        "cluster": cluster,
    }
    others = [name for name in roles.values() if name is not None]
    with opened(path) as (header, read):
        models, classes = score_models(scores, classes, header, others, path)
        models = renamed(models, names)
        if classes is not None and positive is not None:
            raise ReportError(
                "--positive is for two classes, but each class has a score here: leave it out."
            )
        used = [*others, *(name for columns in models.values() for name in columns)]
        ids = [] if cluster is not None else identifiers(header, used)
        most = _MOST_SCORES // len(classes or [label])
        columns, n_rows = read(
            [*used, *ids], (label, segment, time, cluster, *ids), most, seed
        )
    notes, sampled = [], len(columns[label]) < n_rows
    if sampled:
        n_drawn = len(columns[label])
        notes.append(
            f"The table has {n_rows:,} rows. The report is about a random sample of {n_drawn:,} of them."
        )
    notes += filter(None, (repeats_note(columns.pop(name), name) for name in ids))
    try:
        return _table_of_columns(
            str(path),
            columns,
            models,
            classes,
            roles,
            positive,
            weight_type,
            notes,
            seed,
        )
    except ReportError as error:
        if not sampled:
            raise
        raise ReportError(
            str(error).replace(
                COUNTING, "Rows are those of a random sample of the file."
            )
        ) from error


def _table_of_columns(
    source, columns, models, classes, roles, positive, weight_type, notes, seed
):
    """Return the table of columns in memory."""
    label, segment, weight, time, cluster = roles.values()
    n_rows, event = len(columns[label]), None
    if n_rows < _FEWEST_ROWS:
        raise ReportError(
            f"{source} has {n_rows} rows; a report takes at least {_FEWEST_ROWS}."
        )
    if classes is None:
        labels, event = events(columns[label], label, positive)
    else:
        labels = class_codes(columns[label], label, classes)
    scores, off = {}, 0.0
    for model, names in models.items():
        checked = [
            checked_column(name, check_scores, columns[name], name="scores")[:, 0]
            for name in names
        ]
        scores[model] = checked[0]
        if classes is not None:
            scores[model], worst = rescaled(np.column_stack(checked), names)
            off = max(off, worst)
    if off > _WORTH_A_NOTE:
        notes.append(
            f"The scores of a row were divided by their sum, which was off by {off:.1g} at most."
        )
    weights = (
        None
        if weight is None
        else checked_column(weight, check_sample_weight, columns[weight], n_rows)
    )
    periods, order = (
        (None, None) if time is None else named_periods(columns[time], time)
    )
    by_row = {
        "labels": labels,
        "weight": weights,
        "segments": None
        if segment is None
        else segment_names(columns[segment], segment),
        "periods": periods,
        "clusters": None
        if cluster is None
        else cluster_column(columns[cluster], cluster, notes),
    }
    kept = np.arange(n_rows) if weights is None else np.flatnonzero(weights > 0)
    if by_row["clusters"] is not None and len(kept) > _MOST_CLUSTERED:
        kept = np.sort(
            np.random.default_rng(seed).choice(kept, _MOST_CLUSTERED, replace=False)
        )
        notes.append(
            f"With clusters the report is about a random sample of {_MOST_CLUSTERED:,} rows."
        )
    if len(kept) < n_rows:
        scores = {name: values[kept] for name, values in scores.items()}
        by_row = {
            name: None if column is None else column[kept]
            for name, column in by_row.items()
        }
        order = (
            None
            if periods is None
            else [name for name in order if name in set(by_row["periods"].tolist())]
        )
    if weights is not None and weight_type is None:
        weight_type = "importance" if (weights % 1).any() else "frequency"
    return ReportTable(
        source=source,
        label=label,
        event=event,
        scores=scores,
        weight_type=weight_type or "frequency",
        weight_name=weight,
        cluster_name=cluster,
        segment_name=segment,
        time_name=time,
        period_order=order,
        classes=classes,
        columns=models,
        notes=tuple(notes),
        # Many files, or a pipe, have no one day.
        modified=date.fromtimestamp(Path(source).stat().st_mtime).isoformat()
        if Path(source).is_file()
        else None,
        **by_row,
    )
