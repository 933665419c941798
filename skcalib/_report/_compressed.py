"""A table of many rows as few weighted ones: what DuckDB sums over cells of nearly equal scores."""

from dataclasses import dataclass

import numpy as np

from skcalib._cells.reductions import BinaryTask
from skcalib._report._checks import events, refuse_many_segments
from skcalib._report._forecasts import ReportTable
from skcalib._report._periods import named_periods, period_length
from skcalib._report._reader import ReportError
from skcalib._report._scanned import ScannedFile, quoted
from skcalib._report._statistics import interval_of_mean
from skcalib.export._sql_text import DIALECTS

_BITS, _BITS_OF_PARTS = 16, 12  # cells are at most 2^(8 - bits) wide, relative to the score
_MOST_DAYS = 20_000


def condensed_table(file, models, names, positive):
    """Return the sums over cells of the score that DuckDB makes of a file: rows of nearly equal scores are one."""
    label, segment, weight, time = names.values()
    scores = [model.name for model in models]
    file.check([name for name in names.values() if name is not None] + scores)
    event, is_event = _event_of(file, label, positive)
    relation, period, order = file.relation, None, None
    if time is not None:
        relation, period, order = _with_periods(file, time)
    if segment is not None:
        n_segments = relation.aggregate(f"count(DISTINCT {quoted(segment)})").fetchall()[0][0]
        refuse_many_segments(n_segments, segment)
    rows = _Cells(file, relation, label, weight, is_event)
    note = (
        f"The table has {file.n_rows:,} rows. Scores that differ by less than 0.4 % count as one, their mean. "
        "The recalibrators were tried on a random sample of the rows."
    )
    return ReportTable(
        file.path,
        label,
        event,
        file.n_rows,
        weight is not None,
        {score: rows.task(score) for score in scores},
        segment,
        {} if segment is None else {score: rows.parts(score, segment) for score in scores},
        time,
        {} if time is None else {score: rows.parts(score, period) for score in scores},
        order,
        {score: rows.brier_difference(score, scores[0]) for score in scores[1:]},
        notes=(note,),
        is_condensed=True,
    )


@dataclass(frozen=True, eq=False)
class _Cells:
    """Sums over cells of the score."""

    file: ScannedFile
    relation: object
    label: str
    weight: str | None
    is_event: str

    def task(self, score):
        """Return all rows."""
        return self._tasks(score, None, _BITS)[None]

    def parts(self, score, column):
        """Return the rows of each value of a column, and that value."""
        parts = self._tasks(score, column, _BITS_OF_PARTS)
        names = np.array(["(missing)" if key is None or key != key else str(key) for key in parts])
        scores, labels, weight = (np.concatenate(columns) for columns in zip(*parts.values(), strict=True))
        return BinaryTask(scores, labels, weight), np.repeat(names, [len(task.labels) for task in parts.values()])

    def _tasks(self, score, by, bits):
        from skcalib.engines import PredictionTable

        others = [name for name in (score, self.weight, by) if name is not None]
        kept = ", ".join(map(quoted, dict.fromkeys(others)))
        relation = self.relation.project(f"{kept}, {self.is_event} AS skcalib_event")
        try:
            table = PredictionTable(relation, label="skcalib_event", score=score, weight=self.weight, by=by)
            rows = table.weighted_scores(bits)
        except ValueError as error:
            raise ReportError(self._named(score, " ".join(str(error).split()))) from error
        parts = {None: rows} if by is None else rows
        return {key: BinaryTask(part.y_proba, part.y_true == 1, part.sample_weight) for key, part in parts.items()}

    def _named(self, score, message):
        """Return a message that names the column and, if there is one, the first row that cannot be used."""
        conditions = {score: f"{quoted(score)} BETWEEN 0 AND 1", self.label: f"{self.is_event} IS NOT NULL"}
        if self.weight is not None:
            conditions[self.weight] = f"{quoted(self.weight)} >= 0 AND {quoted(self.weight)} < 'inf'::DOUBLE"
        for name, valid in conditions.items():
            rows = f"SELECT {quoted(name)} AS value, ({valid}) AS valid, row_number() OVER () AS place"
            found = f"SELECT min(place), arg_min(value, place) FROM ({rows} FROM skcalib_file) WHERE valid IS NOT TRUE"
            try:
                place, value = self.relation.query("skcalib_file", found).fetchall()[0]
            except Exception:  # a column of words is no score: the error message explains it
                continue
            if place is not None:
                shown = "empty" if value is None else value
                return f"column {name!r}: row {place - 1} is {shown}. {message} Rows are counted from 0."
        return f"{self.file.path}: {message}"

    def brier_difference(self, name, other):
        """Return the Brier score of a score column minus that of another, with its interval."""
        event, weight = f"CAST({self.is_event} AS DOUBLE)", "1" if self.weight is None else quoted(self.weight)
        first, second = (f"power({quoted(column)} - {event}, 2)" for column in (name, other))
        rows = self.relation.project(f"{first} - {second} AS d, CAST({weight} AS DOUBLE) AS w")
        total, mean, square = rows.aggregate("sum(w), sum(w * d) / sum(w), sum(w * d * d) / sum(w)").fetchall()[0]
        return interval_of_mean(mean, max(square - mean**2, 0.0), total)


def _event_of(file, label, positive):
    """Return the name of the event, and an expression that is true where it happened."""
    distinct = file.relation.project(quoted(label)).distinct().limit(1000).fetchall()
    labels = np.array([value for (value,) in distinct if value is not None], dtype=object)
    is_event, name = events(labels, label, positive)
    positives = ", ".join(DIALECTS["duckdb"].label(value) for value in labels[is_event])
    if not positives:
        return name, f"CASE WHEN {quoted(label)} IS NULL THEN NULL ELSE FALSE END"
    return name, f"({quoted(label)} IN ({positives}))"


def _with_periods(file, time):
    """Return the relation with the period of each row, the name of that column, and the periods in their order."""
    column = f"CAST({quoted(time)} AS VARCHAR)"
    n_missing = file.relation.filter(f"{quoted(time)} IS NULL").aggregate("count(*)").fetchall()[0][0]
    if n_missing:
        raise ReportError(f"column {time!r}: there is no time in {n_missing:,} of the rows.")
    distinct = file.relation.project(f"{column} AS t").distinct().limit(_MOST_DAYS).fetchnumpy()["t"]
    if len(distinct) == _MOST_DAYS:  # times of day
        distinct = file.relation.project(f"left({column}, 10) AS t").distinct().limit(_MOST_DAYS).fetchnumpy()["t"]
    distinct = np.array(distinct, dtype=object)
    _, order = named_periods(distinct, time)
    length = period_length(distinct)
    period = column if length is None else f"left({column}, {length})"
    return file.relation.project(f"*, {period} AS skcalib_period"), "skcalib_period", order
