"""What a report is about: labels, scores, weights, clusters, groups and times of a
file, checked.
"""

from dataclasses import dataclass, replace
from datetime import date
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skcalib._input.scores import check_sample_weight
from skcalib._report._censored_outcome import add_outcome, check_outcome, outcome_code
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
    segment_columns,
)
from skcalib._report._columns import (
    renamed,
    score_models,
    spread_lists,
    taken_columns,
)
from skcalib._report._error import ReportError
from skcalib._report._forecasts import ReportTable
from skcalib._report._missing import without_missing
from skcalib._report._reader import opened
from skcalib._report._score_columns import one_event, scores_by_model, to_probabilities
from skcalib._report._sources import literal
from skcalib._report._times import named_periods
from skcalib._report._values import numbered_labels
from skcalib._verdicts import rounded
from skcalib.evaluation import describe_weights

_FEWEST_ROWS = 10
_MOST_SCORES = 20_000_000  # scores of all classes together that are read
# Rows in clusters are sampled to this number: draws of dependent labels take 50 times
# as long as those of independent ones.
_MOST_CLUSTERED = 30_000


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


class Reading(NamedTuple):
    """How the values of a file are read, as options of the command.

    Attributes
    ----------
    scale : str or None
        What the scores are, one of `SCALES`; None means probabilities.
    normalise : bool
        Whether the scores of a row are divided by their sum, however far that is from
        1.
    missing : {"error", "drop"}
        What to do with rows that lack a value.
    time_format : str or None
        How times are written.
    table, query : str or None
        The table or the SQL query of a database.
    has_unlabelled : bool
        Whether the rows without a label are new samples, which are left out.
    """

    scale: str | None = None
    normalise: bool = False
    missing: str = "error"
    time_format: str | None = None
    table: str | None = None
    query: str | None = None
    has_unlabelled: bool = False


def read_table(
    path,
    *,
    label=None,
    scores=(),
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
    reading=None,
):
    """Read and check the columns of a report.

    Parameters
    ----------
    path : str or list of str
        File, files or database, as `opened` takes them.
    label : str, default=None
        Column of the labels; with None, and without `time_to_event`, the only column
        that can be it.
    scores : sequence of str, default=()
        Columns of scores, probabilities of the event; or patterns with a star, one
        column per class. Without any, the only column that can be it.
    time_to_event, event : str, default=None
        Columns of the time to the event or to the end of observation, and of which of
        the two it is.
    horizon : float, default=None
        Time up to which events count.
    segment : str or list of str, default=None
        Columns of groups; of several also their crossing.
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
    reading : Reading, default=None
        How values are read; None means the defaults.

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
            "--time-order orders the periods of a column: name the column with --time."
        )
    check_outcome(label, time_to_event, event, horizon, weight)
    if isinstance(segment, str):
        segment = [segment]
    segments = list(dict.fromkeys(segment or []))
    roles = _Roles(label, segments, weight, time, cluster)
    if time_to_event is not None:
        weight_type = "importance"
        roles = roles._replace(
            label=f"{event} by {rounded(horizon, 6)}",
            weight="weight for censoring",
            time_to_event=time_to_event,
            event=event,
        )
    reading = reading or Reading()
    with opened(path, reading.table, reading.query) as file:
        read = _read_columns(file, roles, scores, classes, names, seed)
    roles = read.roles
    try:
        prepared = _prepared(file, read, (positive, negative), horizon, reading)
        repeated = [name for name in read.keys if repeats(prepared.columns[name])]
        for name in repeated:
            prepared.notes.append(repeats_note(prepared.columns[name], name))
        table = _table_of_columns(prepared, roles, weight_type, time_order, reading)
    except ReportError as error:
        if not read.is_sampled:
            raise
        counting = "The rows are a random sample of the file."
        raise ReportError(str(error).replace(COUNTING, counting)) from error
    n_of_key = None
    if repeated:
        n_of_key = len(distinct(prepared.columns[repeated[0]])[0])
    table = replace(
        table,
        source=file.name,
        file_columns=read.models,
        file_classes=prepared.file_classes,
        reading_code=file.code(keep_words=bool(roles.segments)),
        code_of_new=file.code_of_new(keep_words=bool(roles.segments)),
        score_lines=tuple(prepared.score_lines),
        row_lines=tuple(prepared.row_lines),
        modified=_last_written(path),
        repeated_keys=tuple(repeated),
        n_of_key=n_of_key,
    )
    return _without_unused_rows(table, seed)


class _ReadColumns(NamedTuple):
    """Columns of a file, and what they are.

    Attributes
    ----------
    roles : _Roles
        The columns that are not scores.
    columns : dict of ndarray
        The columns by name.
    n_rows : int
        Rows of the file, of which these may be a sample.
    models : dict of tuple of str
        The score columns of each model.
    classes : tuple of str or None
        The classes of the score columns.
    keys : list of str
        Further columns that look like ids.
    taken : list of str
        Which columns were taken without a name, a text or none.
    """

    roles: _Roles
    columns: dict
    n_rows: int
    models: dict
    classes: tuple | None
    keys: list
    taken: list

    @property
    def n_drawn(self):
        """Number of rows that were read."""
        return len(next(iter(self.columns.values())))

    @property
    def is_sampled(self):
        """Whether the columns are a sample of the rows of the file."""
        return self.n_drawn < self.n_rows


def _read_columns(file, roles, scores, classes, names, seed):
    """Return the columns of an `OpenedFile` that a report needs, as `_ReadColumns`.
    `roles` are the names of the columns by what they hold; `scores`, `classes`, `names`
    and `seed` are options of the command.
    """
    taken = []
    if not scores or roles.label is None:
        found = taken_columns(file, roles.label, scores, roles.names)
        roles = roles._replace(label=found.label)
        scores = found.scores
        taken.append(found.note)
    models, classes = score_models(scores, classes, file.header, roles.names, file.name)
    models = renamed(models, names)
    score_columns = list(chain.from_iterable(models.values()))
    _check_roles(roles, score_columns)
    used = [*roles.names, *score_columns]
    # Without a column of clusters, read also those that look like ids: a note warns if
    # their values repeat.
    keys = []
    if roles.cluster is None:
        keys = identifiers(file.header, used)
    n_scores_of_row = 1 if classes is None else len(classes)
    columns, n_rows = file.read(
        [*used, *keys],
        words=[*roles.words, *keys],
        most=_MOST_SCORES // n_scores_of_row,
        seed=seed,
    )
    return _ReadColumns(roles, columns, n_rows, models, classes, keys, taken)


@dataclass
class _Prepared:
    """Columns of complete rows, with probabilities for scores.

    Attributes
    ----------
    columns : dict of ndarray
        The columns by name.
    models, classes : dict, tuple or None
        The score columns of each model, and their classes; None means one event.
    file_classes : tuple or None
        The classes of the columns in the file, which may be two.
    named_labels : tuple of (str or None, str or None)
        The labels of the event and of the non-events.
    notes, assumed : list of str
        For the page.
    score_lines, row_lines : list of str
        Lines of Python, as in `ReportTable`.
    """

    columns: dict
    models: dict
    classes: tuple | None
    file_classes: tuple | None
    named_labels: tuple
    notes: list
    assumed: list
    score_lines: list
    row_lines: list


def _prepared(file, read, named_labels, horizon, reading):
    """Return the columns of complete rows, with probabilities for scores, as
    `_Prepared`.

    `file` is the `OpenedFile`, `read` the `_ReadColumns`, `named_labels` are those of
    the event and of the non-events or None, `reading` is the `Reading`.
    """
    roles = read.roles
    score_columns = set(chain.from_iterable(read.models.values()))
    score_lines = []
    row_lines = []
    for name, line in file.conversions.items():
        (score_lines if name in score_columns else row_lines).append(line)
    columns = dict(read.columns)
    if roles.label in columns:
        columns[roles.label] = numbered_labels(columns[roles.label])
    labels = columns.get(roles.label, np.zeros(0))
    models, classes = spread_lists(columns, read.models, read.classes, labels)
    has_label = roles.time_to_event is None  # else times define labels and weights
    needed = {
        "label": [roles.label] if has_label else [],
        "score": list(dict.fromkeys(chain.from_iterable(models.values()))),
        "weight": [roles.weight] if has_label else [],
        "time": [roles.time],
        "cluster": [roles.cluster],
        "time to the event": [roles.time_to_event],
        "event": [roles.event],
    }
    columns, dropped, line = without_missing(
        columns,
        needed,
        reading.missing,
        leave_out=("label",) if reading.has_unlabelled else (),
    )
    notes = []
    assumed = [*file.notes, *read.taken]
    if read.is_sampled:
        notes.append(
            f"The table has {read.n_rows:,} rows. The report covers a random sample of"
            f" {read.n_drawn:,} of them."
        )
    if dropped:
        assumed.append(dropped)
        row_lines.append(line)
    if roles.time_to_event is not None:
        notes.append(add_outcome(columns, roles, horizon))
        row_lines += outcome_code(roles, horizon)
    if reading.scale not in (None, "probability"):
        assumed.append(f"The scores are read as {reading.scale}.")
    score_lines += to_probabilities(columns, models, classes, reading, file.percentages)
    file_classes = classes
    if classes is not None and len(classes) == 2:
        models, named_labels, lines = one_event(
            columns, models, classes, named_labels, reading.normalise
        )
        score_lines += lines
        classes = None
    elif classes is not None and named_labels != (None, None):
        option = "--negative" if named_labels[0] is None else "--positive"
        raise ReportError(
            f"{option} is for two classes, but here each class has a score: omit"
            f" {option}."
        )
    return _Prepared(
        columns,
        models,
        classes,
        file_classes,
        named_labels,
        notes,
        assumed,
        score_lines,
        row_lines,
    )


def read_new_scores(path, table, reading=None):
    """Read and check the scores of samples whose labels are not known.

    Parameters
    ----------
    path : str or list of str
        File with the score columns of the table; if it is that of the table, its rows
        without a label.
    table : ReportTable
        The samples with labels.
    reading : Reading, default=None
        How values are read; None means the defaults.

    Returns
    -------
    scores : dict of ndarray of shape (m,) or (m, K)
        The new scores by model.

    Raises
    ------
    ReportError
        If the file lacks a column, or a score is not valid.
    """
    reading = reading or Reading()
    models = table.file_columns
    classes = table.file_classes
    names = list(dict.fromkeys(chain.from_iterable(models.values())))
    with opened(path, reading.table, reading.query) as file:
        is_same_file = file.name == table.source
        label = [table.label] if is_same_file else []
        columns, _ = file.read([*names, *label], words=label)
    if is_same_file:
        _, positions = distinct(columns.pop(table.label))
        columns = {name: column[positions < 0] for name, column in columns.items()}
    if len(columns[names[0]]) == 0:
        without = " without a label" if is_same_file else ""
        raise ReportError(f"{file.name} has no rows{without}.")
    models, _ = spread_lists(columns, models, classes, np.zeros(0))
    scores = {"score": list(dict.fromkeys(chain.from_iterable(models.values())))}
    columns, _, _ = without_missing(columns, scores, reading.missing)
    to_probabilities(columns, models, classes, reading, file.percentages)
    if classes is not None and len(classes) == 2:
        models, _, _ = one_event(
            columns, models, classes, (table.event, None), reading.normalise
        )
        classes = None
    return scores_by_model(
        columns, models, classes, notes=[], normalise=reading.normalise
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
    """Return the date of a file's last change as text; None for a glob, a pipe, several
    files or a database.
    """
    if not isinstance(path, str | Path):
        if len(path) > 1:
            return None
        (path,) = path
    path = Path(path)
    if not path.is_file():
        return None
    return date.fromtimestamp(path.stat().st_mtime).isoformat()


def _table_of_columns(prepared, roles, weight_type, time_order, reading):
    """Return the `ReportTable` of `_Prepared` columns, to whose notes further ones are
    appended.

    `roles` are the names of the columns; `weight_type`, `time_order` and `reading` are
    options of the command.
    """
    columns = prepared.columns
    notes = prepared.notes
    classes = prepared.classes
    n_rows = len(columns[roles.label])
    if n_rows < _FEWEST_ROWS:
        raise ReportError(
            f"The file has {n_rows} rows; a report needs at least {_FEWEST_ROWS}."
        )
    event = None
    is_left_out = np.zeros(n_rows, dtype=bool)
    column = columns[roles.label]
    if classes is None:
        labels, event, is_left_out = events(column, roles.label, *prepared.named_labels)
        notes += left_out_notes(column, roles.label, is_left_out)
        if is_left_out.any():
            kept, _ = distinct(column[~is_left_out])
            line = f"df = df[df[{literal(roles.label)}].isin({kept!r})]"
            prepared.row_lines.append(line)
        if prepared.named_labels[0] is None and roles.time_to_event is None:
            prepared.assumed.append(event_assumed(roles.label, event))
    else:
        labels = class_codes(column, roles.label, classes)
    scores = scores_by_model(
        columns, prepared.models, classes, notes, reading.normalise
    )
    weights = None
    if roles.weight is not None:
        weights, weight_type = _described_weights(
            prepared, roles.weight, labels, weight_type
        )
        if weights.min() == 0:
            name = literal(roles.weight)
            prepared.row_lines.append(f"df = df[df[{name}] > 0]")
    time_fields = _time_fields(prepared, roles.time, time_order, reading.time_format)
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
        columns=prepared.models,
        notes=tuple(notes),
        assumed=tuple(prepared.assumed),
    )
    return _with_two_labels(table, is_left_out)


def _described_weights(prepared, name, labels, weight_type):
    """Return the checked weights and their type; append a note, and what was assumed if
    the user did not name the type.
    """
    column = prepared.columns[name]
    weights = checked_column(name, check_sample_weight, column, len(labels))
    is_event = labels
    if prepared.classes is not None:
        # With several classes, the type is inferred from the weights alone.
        is_event = np.zeros(len(labels))
    described = describe_weights(is_event, weights, weight_type=weight_type)
    if weight_type is None:
        prepared.assumed.append(f"The weights are {described.weight_type} weights.")
    prepared.notes.append(str(described))
    return weights, described.weight_type


def _time_fields(prepared, name, time_order, time_format):
    """Return the fields of a `ReportTable` that hold its times, none without a column;
    append a note on what was assumed.
    """
    if name is None:
        return {}
    periods = named_periods(prepared.columns[name], name, time_order, time_format)
    if periods.note is not None:
        prepared.notes.append(periods.note)
    return {
        "periods": periods.period_of_row,
        "period_order": periods.order,
        "moments": periods.moments,
        "time_reader": periods.reader,
        "value_periods": periods.value_periods,
    }


def _with_two_labels(table, is_left_out):
    """Return the table without the rows `is_left_out` (n,), which have neither of two
    labels; raise if too few are left.
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


def event_assumed(label, event):
    """Return what is assumed of the event where the user does not name it."""
    return f"The event is {label} = {event}."


def _without_unused_rows(table, seed):
    """Return the table without rows of weight 0; if it has clusters, which take long,
    and many rows, a random sample of these.
    """
    used = np.arange(table.n_rows)  # positions of the rows to keep
    notes = list(table.notes)
    if table.weight is not None:
        used = np.flatnonzero(table.weight > 0)
    if table.clusters is not None and len(used) > _MOST_CLUSTERED:
        draw = np.random.default_rng(seed)
        used = np.sort(draw.choice(used, _MOST_CLUSTERED, replace=False))
        notes.append(
            f"With clusters, the report covers a random sample of {_MOST_CLUSTERED:,}"
            " rows."
        )
    if len(used) == table.n_rows:
        return table
    return replace(table.at(used), notes=tuple(notes))
