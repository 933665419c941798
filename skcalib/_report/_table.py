"""What a report is about: labels, scores, weights, segments and times of a file, checked."""

from dataclasses import dataclass, field

import numpy as np

from skcalib._cells.reductions import BinaryTask, top_label
from skcalib._errors.proper_scores import LOSSES
from skcalib._input.scores import check_scores
from skcalib._input.weights import check_sample_weight
from skcalib._report._checks import checked_column, events, refuse_few_rows, refuse_missing, segment_names
from skcalib._report._compressed import CompressedTable
from skcalib._report._models import class_codes, rescaled, score_models
from skcalib._report._periods import named_periods
from skcalib._report._reader import ReportError, column_names, on_disk, read_columns
from skcalib._report._scanned import ScannedFile
from skcalib._report._statistics import mean_interval

__all__ = ["ReportTable", "read_table"]

_WORTH_A_NOTE = 1e-5  # of single precision no reader needs to know
_MOST_CLASS_SCORES = 20_000_000  # that all classes together are judged from


@dataclass(frozen=True, eq=False)
class ReportTable:
    """Checked columns of equal length.

    Parameters
    ----------
    source : str
        Name of the file.
    label : str
        Name of the label column.
    event : str or None
        The label that is the event; None for classes.
    y : ndarray of bool or int, shape (n,)
        Whether the event happened, or the position of the label among the classes.
    scores : dict of ndarray of shape (n,) or (n, K)
        Scores by name of the model.
    weight : ndarray of shape (n,) or None
        Weights.
    segment_name : str or None
        Name of the segment column.
    segments : ndarray of str, shape (n,), or None
        The segment of each row.
    time_name : str or None
        Name of the time column.
    periods : ndarray of str, shape (n,), or None
        The period of each row.
    period_order : list of str or None
        The periods in the order of time.
    classes : tuple of str or None
        The classes, in the order of the scores' columns.
    columns : dict of tuple of str
        The columns of each model's classes.
    notes : tuple of str
        Notes about how the rows were read.
    """

    source: str
    label: str
    event: str | None
    y: np.ndarray
    scores: dict
    weight: np.ndarray | None
    segment_name: str | None
    segments: np.ndarray | None
    time_name: str | None = None
    periods: np.ndarray | None = None
    period_order: list | None = None
    classes: tuple | None = None
    columns: dict = field(default_factory=dict)
    notes: tuple = ()

    @property
    def is_weighted(self):
        """Whether rows have weights, which the theory of certificates and of change does not take."""
        return self.weight is not None

    @property
    def n_rows(self):
        """Number of rows."""
        return len(self.y)

    @property
    def total_weight(self):
        """Number of rows, the total weight where there are weights."""
        return float(len(self.y) if self.weight is None else self.weight.sum())

    @property
    def names(self):
        """Names of the models."""
        return list(self.scores)

    def task(self, name):
        """Return the binary problem of a model: the event, or whether the predicted class is right."""
        if self.classes is None:
            return BinaryTask(self.scores[name], self.y, self.weight)
        predicted, confidence = top_label(self.scores[name])
        return BinaryTask(confidence, predicted == self.y, self.weight)

    def by_segment(self, name):
        """Return a binary problem and the segment of each of its rows, or None."""
        return None if self.segments is None else (self.task(name), self.segments)

    def by_period(self, name):
        """Return a binary problem and the period of each of its rows, or None."""
        return None if self.periods is None else (self.task(name), self.periods)

    def by_class(self, name, seed):
        """Return the problems of each class against the rest in one, and the class of each of its rows, or None."""
        if self.classes is None:
            return None
        scores, codes, weight = self.rows(name, _MOST_CLASS_SCORES // len(self.classes), seed)
        labels = codes == np.arange(len(self.classes))[:, None]
        weight = None if weight is None else np.tile(weight, len(self.classes))
        task = BinaryTask(np.ascontiguousarray(scores.T).ravel(), labels.ravel(), weight)
        return task, np.repeat(np.array(self.classes), len(codes))

    def losses(self, name):
        """Return the Brier score and the log-loss with their intervals, by the names in `LOSSES`."""
        return {key: mean_interval(loss(self.scores[name], self.y), self.weight) for key, loss in LOSSES.items()}

    def brier_difference(self, name, other):
        """Return the Brier score of a model minus that of another, with its interval."""
        brier = LOSSES["brier"]
        return mean_interval(brier(self.scores[name], self.y) - brier(self.scores[other], self.y), self.weight)

    def rows(self, name, most, seed):
        """Return scores, labels and weights of a random sample of at most this many rows."""
        columns = (self.scores[name], self.y, self.weight)
        if len(self.y) <= most:
            return columns
        rows = np.sort(np.random.default_rng(seed).choice(len(self.y), most, replace=False))
        return tuple(None if column is None else column[rows] for column in columns)


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
    table : ReportTable or CompressedTable
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
                return CompressedTable.from_file(file, models, names, positive)
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
        if periods is not None:
            periods = periods[kept]
            order = [name for name in order if name in set(periods.tolist())]
        y, weights = y[kept], weights[kept]
        scores = {name: values[kept] for name, values in scores.items()}
        segments = None if segments is None else segments[kept]
    return ReportTable(
        source, label, event, y, scores, weights, segment, segments, time, periods, order,
        classes, {model.name: model.columns for model in models}, tuple(notes),
    )  # fmt: skip


def _matrix(columns, names):
    """Return the scores of classes as a matrix whose rows sum to 1, and how far they were off."""
    matrix = np.column_stack(columns)
    columns.clear()
    return rescaled(matrix, names)
