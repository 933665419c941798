"""What a report is about: labels, scores, weights, clusters, segments and times of a
file, checked.
"""

from dataclasses import replace
from datetime import date
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skcalib import censored_labels
from skcalib._input.scores import check_sample_weight, check_scores
from skcalib._report._checks import (
    COUNTING,
    checked_column,
    class_codes,
    cluster_column,
    distinct,
    events,
    identifiers,
    left_out_notes,
    repeats,
    repeats_note,
    rescaled,
    segment_columns,
)
from skcalib._report._forecasts import ReportTable
from skcalib._report._models import renamed, score_models
from skcalib._report._reader import ReportError, opened, separator_of
from skcalib._report._times import named_periods
from skcalib._verdicts import count_words, rounded
from skcalib.evaluation import describe_weights

_FEWEST_ROWS = 10
_MOST_SCORES = 20_000_000  # scores of all classes together that are read
# Rows in clusters are sampled to this number: draws of dependent labels take 50 times
# as long as those of independent ones.
_MOST_CLUSTERED = 30_000
_TELLING_ROWS = 20  # with fewer rows it may be chance that all scores are large
_CONFIDENT = 0.5  # no probability of the more probable of two classes is smaller
# A smaller error of a row's sum is that of single precision, and gets no note.
_WORTH_A_NOTE = 1e-5


class _Roles(NamedTuple):
    """The names of the columns that are not scores: those of labels, segments, weights,
    times and clusters. A role without a column is None. A label at a horizon is made of
    two columns, `time_to_event` and `event`, and so is the weight.
    """

    label: str
    segments: list
    weight: str | None
    time: str | None
    cluster: str | None
    time_to_event: str | None = None
    event: str | None = None

    @property
    def names(self):
        """The names of the columns of the file that have a role, each once."""
        outcome = [self.label, self.weight]
        if self.time_to_event is not None:
            outcome = [self.time_to_event, self.event]
        names = [*outcome, *self.segments, self.time, self.cluster]
        return [name for name in dict.fromkeys(names) if name is not None]

    @property
    def words(self):
        """The names of the columns that may hold text: all but numbers."""
        numbers = (self.weight, self.time_to_event, self.event)
        return [name for name in self.names if name not in numbers]


def read_table(
    path,
    *,
    label=None,
    scores,
    time_to_event=None,
    event=None,
    horizon=None,
    segment=None,
    weight=None,
    weight_type=None,
    cluster=None,
    positive=None,
    negative=None,
    time=None,
    time_order=None,
    classes=None,
    names=(),
    seed=0,
):
    """Read and check the columns of a report.

    Parameters
    ----------
    path : str
        CSV or Parquet file, or with DuckDB a glob of them.
    label : str, default=None
        Column of the labels. Required unless `time_to_event` is given.
    scores : sequence of str
        Columns of scores, probabilities of the event; or patterns with a star, one
        column per class.
    time_to_event, event : str, default=None
        Columns of the time to the event or to the end of observation, and of which of
        the two it is.
    horizon : float, default=None
        Time up to which events count.
    segment : str or list of str, default=None
        Columns of segments; of several also their crossing.
    weight, cluster : str, default=None
        Columns of weights, and of what rows that are not independent have in common.
    weight_type : {"frequency", "importance"}, default=None
        What the weights are; None means "frequency" for integers.
    positive : str, default=None
        The label that is the event; may be left out for 0 and 1, -1 and 1, and
        booleans.
    negative : str, default=None
        The label that is no event; rows with further labels are left out. With None
        there must be only two.
    time : str, default=None
        Column of times: periods, or dates as YYYY-MM-DD.
    time_order : list of str, default=None
        The periods in the order of time.
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
            "--weight-type states the meaning of the weights: name their column with"
            " --weight."
        )
    if time is None and time_order is not None:
        raise ReportError(
            "--time-order orders the periods of a column: name it with --time."
        )
    _check_outcome(label, time_to_event, event, horizon, weight)
    roles = _roles(label, segment, weight, time, cluster)
    if time_to_event is not None:
        roles = roles._replace(
            label=f"{event} by {rounded(horizon, 6)}",
            weight="weight for censoring",
            time_to_event=time_to_event,
            event=event,
        )
    with opened(path) as (header, read):
        models, classes = score_models(scores, classes, header, roles.names, path)
        models = renamed(models, names)
        if classes is not None and (positive, negative) != (None, None):
            option = "--negative" if positive is None else "--positive"
            raise ReportError(
                f"{option} is for two classes, but here each class has a score: omit"
                " it."
            )
        score_columns = list(chain.from_iterable(models.values()))
        _check_roles(roles, score_columns)
        used = [*roles.names, *score_columns]
        # Without a column of clusters, read also those that look like ids: a note warns
        # if their values repeat.
        keys = []
        if cluster is None:
            keys = identifiers(header, used)
        n_scores_of_row = 1 if classes is None else len(classes)
        columns, n_rows = read(
            [*used, *keys],
            words=[*roles.words, *keys],
            most=_MOST_SCORES // n_scores_of_row,
            seed=seed,
        )
    notes = []
    n_drawn = len(columns[score_columns[0]])
    is_sampled = n_drawn < n_rows
    if time_to_event is not None:
        weight_type = "importance"
        notes.append(_add_outcome(columns, roles, horizon))
    if is_sampled:
        notes.append(
            f"The table has {n_rows:,} rows. The report is about a random sample of"
            f" {n_drawn:,} of them."
        )
    repeated = [name for name in keys if repeats(columns[name])]
    notes += [repeats_note(columns[name], name) for name in repeated]
    try:
        table = _table_of_columns(
            columns,
            models,
            classes,
            roles,
            (positive, negative),
            weight_type,
            notes,
            time_order,
        )
    except ReportError as error:
        if not is_sampled:
            raise
        counting = "Rows are those of a random sample of the file."
        raise ReportError(str(error).replace(COUNTING, counting)) from error
    table = replace(
        table,
        source=str(path),
        modified=_last_written(Path(path)),
        separator=separator_of(path),
        repeated_keys=tuple(repeated),
        n_of_key=len(distinct(columns[repeated[0]])[0]) if repeated else None,
    )
    return _without_unused_rows(table, seed)


def read_new_scores(path, table):
    """Read and check the scores of samples whose labels are not known.

    Parameters
    ----------
    path : str
        CSV or Parquet file with the score columns of the table.
    table : ReportTable
        The samples with labels.

    Returns
    -------
    scores : dict of ndarray of shape (m,) or (m, K)
        The new scores by model.

    Raises
    ------
    ReportError
        If the file lacks a column, or a score is not valid.
    """
    # models may share a column
    names = list(dict.fromkeys(chain.from_iterable(table.columns.values())))
    with opened(path) as (_, read):
        columns, _ = read(names, words=[])
    if len(next(iter(columns.values()))) == 0:
        raise ReportError(f"{path} has no rows.")
    return _scores_by_model(columns, table.columns, table.classes, notes=[])


def _roles(label, segment, weight, time, cluster):
    """Return the `_Roles` of the options of the command; `segment` is a name, a list of
    names or None.
    """
    if isinstance(segment, str):
        segment = [segment]
    return _Roles(label, list(dict.fromkeys(segment or [])), weight, time, cluster)


def _check_outcome(label, time_to_event, event, horizon, weight):
    """Raise unless either a column of labels is named, or a time to the event with all
    that it needs.
    """
    if time_to_event is None:
        if event is not None or horizon is not None:
            raise ReportError(
                "--event and --horizon are for times: name their column with"
                " --time-to-event."
            )
        if label is None:
            raise ReportError("name the column of the labels with --label.")
        return
    if label is not None:
        raise ReportError(
            "--label and --time-to-event are both given: omit the one that is not the"
            " outcome."
        )
    if event is None or horizon is None:
        raise ReportError(
            "--time-to-event needs --event, the column that says whether the event"
            " happened, and --horizon, the time up to which events count."
        )
    if weight is not None:
        raise ReportError(
            "--time-to-event makes weights of its own, for censored rows: omit"
            " --weight."
        )


def _add_outcome(columns, roles, horizon):
    """Add the columns of the labels at the horizon and of their weights to the dict
    `columns`, in place; return the note about them.
    """
    try:
        labels, weight, _ = censored_labels(
            columns[roles.time_to_event], columns[roles.event], horizon
        )
    except ValueError as error:
        raise ReportError(
            f"--time-to-event {roles.time_to_event}, --event {roles.event}: {error}"
        ) from error
    columns[roles.label] = labels
    columns[roles.weight] = weight
    n_censored = np.count_nonzero(weight == 0)
    return (
        f"The outcome at {rounded(horizon, 6)} is not known for"
        f" {count_words(n_censored)} of {count_words(len(weight))} rows, which are"
        " censored. The others represent them, with inverse-probability-of-censoring"
        " weights."
    )


def _check_roles(roles, score_columns):
    """Raise if the label, or a score, has another role as well."""
    options = {
        "--weight": [roles.weight],
        "--segment": roles.segments,
        "--time": [roles.time],
        "--cluster": [roles.cluster],
        "--score": score_columns,
    }
    for option, names in options.items():
        if roles.label in names:
            raise ReportError(
                f"{option} {roles.label} is the column of the labels: name another one."
            )
    for option in ("--weight", "--cluster"):
        for name in options[option]:
            if name in score_columns:
                raise ReportError(
                    f"{option} {name} is a column of scores: name another one."
                )


def _last_written(path):
    """Return the date of a file's last change as text; None for a glob or a pipe."""
    if not path.is_file():
        return None
    return date.fromtimestamp(path.stat().st_mtime).isoformat()


def _table_of_columns(
    columns, models, classes, roles, named_labels, weight_type, notes, time_order
):
    """Return the `ReportTable` of columns, a dict of arrays by name.

    `models` holds the names of the score columns by model, `roles` those of the others;
    `named_labels`, those of the event and of the non-events, `weight_type` and
    `time_order` are options of the command. Notes for the
    page are appended to the list `notes`.
    """
    n_rows = len(columns[roles.label])
    if n_rows < _FEWEST_ROWS:
        raise ReportError(
            f"The file has {n_rows} rows; a report needs at least {_FEWEST_ROWS}."
        )
    event = None
    is_left_out = np.zeros(n_rows, dtype=bool)
    column = columns[roles.label]
    if classes is None:
        labels, event, is_left_out = events(column, roles.label, *named_labels)
        notes += left_out_notes(column, roles.label, is_left_out)
    else:
        labels = class_codes(column, roles.label, classes)
    scores = _scores_by_model(columns, models, classes, notes)
    weights = None
    if roles.weight is not None:
        weights = checked_column(
            roles.weight, check_sample_weight, columns[roles.weight], n_rows
        )
        is_event = labels
        if classes is not None:
            # Which class is an event says nothing: the weights are judged alone.
            is_event = np.zeros(n_rows)
        described = describe_weights(is_event, weights, weight_type=weight_type)
        weight_type = described.weight_type
        notes.append(str(described))
    time_fields = {}
    if roles.time is not None:
        periods = named_periods(columns[roles.time], roles.time, time_order)
        time_fields = {
            "periods": periods.period_of_row,
            "period_order": periods.order,
            "moments": periods.moments,
        }
        if periods.note is not None:
            notes.append(periods.note)
    partitions = segment_columns(columns, roles.segments, notes)
    clusters = None
    if roles.cluster is not None:
        clusters = cluster_column(columns[roles.cluster], roles.cluster, notes)
    # With several columns of segments the last entry is their crossing.
    segment_name = None
    segments = None
    if partitions:
        *_, segment_name = partitions
        segments = partitions[segment_name]
    table = ReportTable(
        source="",
        label=roles.label,
        event=event,
        labels=labels,
        scores=scores,
        weight=weights,
        weight_type=weight_type or "frequency",
        weight_name=roles.weight,
        cluster_name=roles.cluster,
        clusters=clusters,
        segment_name=segment_name,
        segments=segments,
        partitions=partitions if len(partitions) > 1 else {},
        time_name=roles.time,
        **time_fields,
        classes=classes,
        columns=models,
        notes=tuple(notes),
    )
    return _with_two_labels(table, is_left_out)


def _with_two_labels(table, is_left_out):
    """Return the table without the rows that are left out, (n,) booleans, because of
    their label; raise if too few are left.
    """
    n_kept = table.n_rows - np.count_nonzero(is_left_out)
    if n_kept == table.n_rows:
        return table
    if n_kept < _FEWEST_ROWS:
        raise ReportError(
            f"{n_kept} rows have one of the two labels; a report needs at least"
            f" {_FEWEST_ROWS}."
        )
    return table.at(np.flatnonzero(~is_left_out))


def _scores_by_model(columns, models, classes, notes):
    """Return the checked scores of each model.

    Parameters
    ----------
    columns : dict of ndarray
        The columns of the file by name.
    models : dict of tuple of str
        The names of the score columns of each model: one, or one per class.
    classes : tuple of str or None
        The class of each column; None means that a column is the probability of the
        event.
    notes : list of str
        Notes for the page. One is appended if the probabilities of a row do not sum to
        1 and are rescaled.

    Returns
    -------
    scores : dict of ndarray
        By model, of shape (n,), or (n, K) with `classes`. Rows that do not sum to 1
        because the file holds rounded numbers are divided by their sum.
    """
    scores = {}
    off = 0.0  # how far the sum of any row's probabilities is off 1 at most
    for model, names in models.items():
        checked = []
        for name in names:
            # Errors begin with the column's name, and call its values "scores".
            column = checked_column(name, check_scores, columns[name], name="scores")
            checked.append(column[:, 0])
        if classes is None:
            scores[model] = checked[0]
            if len(checked[0]) >= _TELLING_ROWS and checked[0].min() >= _CONFIDENT:
                notes.append(
                    f"No score of {names[0]!r} is below 0.5: if it is the probability"
                    " of the predicted class, give that of the event instead."
                )
            continue
        scores[model], worst = rescaled(np.column_stack(checked), names)
        off = max(off, worst)
    if off > _WORTH_A_NOTE:
        notes.append(
            "The scores of a row were divided by their sum, which was off by"
            f" {rounded(off, 1)} at most."
        )
    return scores


def _without_unused_rows(table, seed):
    """Return the table without rows of weight 0 and, if it has clusters and many rows,
    with a random sample of them only: with clusters the computations take long.
    """
    used = np.arange(table.n_rows)  # positions of the rows to keep
    notes = list(table.notes)
    if table.weight is not None:
        used = np.flatnonzero(table.weight > 0)
    if table.clusters is not None and len(used) > _MOST_CLUSTERED:
        draw = np.random.default_rng(seed)
        used = np.sort(draw.choice(used, _MOST_CLUSTERED, replace=False))
        notes.append(
            f"With clusters the report is about a random sample of {_MOST_CLUSTERED:,}"
            " rows."
        )
    if len(used) == table.n_rows:
        return table
    return replace(table.at(used), notes=tuple(notes))
