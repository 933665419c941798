"""What a report is about: the forecasts of each model with their labels, weights,
clusters, segments and times.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from skcalib._report._samples import CONFIDENCE_LEVEL, Rows, records, taken
from skcalib.evaluation import compare

_MOST_CLASS_SCORES = 20_000_000  # most scores of all classes together that are judged


def _each_at(columns, rows):
    """Return some rows of each of several arrays, a dict by name."""
    return {name: column[rows] for name, column in columns.items()}


def compared(rows, scores):
    """Return the Brier score and the log-loss of several models, a dict of scores by
    name, and their differences from the first, as a `ModelComparison`. `rows` are the
    `Rows` with the labels and weights of all of them.
    """
    return compare(
        rows.labels,
        scores,
        metrics=("brier_score", "log_loss"),
        confidence_level=CONFIDENCE_LEVEL,
        sample_weight=rows.sample_weight,
        weight_type=rows.weight_type,
        clusters=rows.clusters,
        **rows.options_of_labels,
    )


def brier_difference(comparison, name):
    """Return the difference in Brier score of a model from the reference of a
    `ModelComparison`, a dict of "estimate", "low", "high" and "reason".
    """
    for row in records(comparison.columns()):
        if row["model"] == name and row["metric"] == "brier_score":
            return {
                "estimate": row["difference"],
                "low": row["difference_low"],
                "high": row["difference_high"],
                "reason": row["reason"],
            }
    raise KeyError(name)


@dataclass(frozen=True, eq=False)
class ReportTable:
    """Checked columns, one entry a row.

    Parameters
    ----------
    source : str
        Name of the file.
    label : str
        Name of the label column.
    event : str or None
        The label that is the event; None for classes.
    labels : ndarray of shape (n,)
        Whether the event happened, or positions among the classes.
    scores : dict of ndarray of shape (n,) or (n, K)
        By model.
    weight : ndarray of shape (n,) or None
        Positive weights.
    weight_type : {"frequency", "importance"}
        What they mean.
    weight_name, cluster_name, segment_name, time_name : str or None
        Names of the columns.
    clusters, segments, periods : ndarray of shape (n,) or None
        The cluster, segment and period of each row.
    partitions : dict of ndarray of shape (n,)
        The segments by each column and by their crossing, where there are several
        columns; `segments` is the last of them.
    period_order : list of str or None
        The periods in the order of time.
    moments : ndarray of shape (n,) or None
        Numbers that increase with time and are finer than the periods, such as the
        ranks of days.
    classes : tuple of str or None
        The classes, in the order of the scores' columns.
    columns : dict of tuple of str
        The columns of each model's classes.
    notes : tuple of str
        Notes about how the rows were read.
    modified : str or None
        Day on which the file was written last.
    repeated_keys : tuple of str
        Columns of ids whose values repeat, such as "patient_id", where the user names
        no column of clusters.
    n_of_key : int or None
        Number of distinct values of the first of these columns.
    assumed : tuple of str
        What was assumed in reading, where the user does not say it.
    reading_code : str
        Expression of Python that reads the file with pandas.
    code_of_new : str
        Expression of Python that reads new scores with pandas.
    score_lines, row_lines : tuple of str
        Lines of Python that make probabilities of the columns of scores of the data
        frame `df`, and that prepare its other columns and rows.
    file_columns : dict of tuple of str
        The columns of the file that hold the scores of each model.
    file_classes : tuple of str or None
        The classes of these columns, two if they are those of one event.
    time_reader : str
        Expression that makes dates of the column of times, as in `Periods`.
    value_periods : dict or None
        The period of each value of the column of times, as in `Periods`.
    """

    source: str
    label: str
    event: str | None
    labels: np.ndarray
    scores: dict
    weight: np.ndarray | None = None
    weight_type: str = "frequency"
    weight_name: str | None = None
    cluster_name: str | None = None
    clusters: np.ndarray | None = None
    segment_name: str | None = None
    segments: np.ndarray | None = None
    time_name: str | None = None
    periods: np.ndarray | None = None
    period_order: list | None = None
    classes: tuple | None = None
    columns: dict = field(default_factory=dict)
    notes: tuple = ()
    modified: str | None = None
    partitions: dict = field(default_factory=dict)
    moments: np.ndarray | None = None
    repeated_keys: tuple = ()
    n_of_key: int | None = None
    assumed: tuple = ()
    reading_code: str = ""
    code_of_new: str = ""
    score_lines: tuple = ()
    row_lines: tuple = ()
    file_columns: dict = field(default_factory=dict)
    file_classes: tuple | None = None
    time_reader: str = ""
    value_periods: dict | None = None

    @property
    def n_rows(self):
        """Number of rows."""
        return len(self.labels)

    @property
    def is_weighted(self):
        """Whether there are weights, which the theory of certificates does not take."""
        return self.weight is not None

    @property
    def total_weight(self):
        """Number of rows, the total weight where there are weights."""
        return self.forecasts(self.names[0]).total_weight

    @property
    def names(self):
        """Names of the models."""
        return list(self.scores)

    @property
    def segmentations(self):
        """The ways in which the rows are divided: segments by name of the column."""
        if self.partitions:
            return self.partitions
        if self.segments is None:
            return {}
        return {self.segment_name: self.segments}

    def at(self, rows):
        """Return the table of some of the rows: those of a mask (n_rows,) or of an
        array of positions. Periods without a row are dropped from `period_order`.
        """
        order = self.period_order
        periods = taken(self.periods, rows)
        if order is not None:
            seen = set(periods.tolist())
            order = [name for name in order if name in seen]
        return replace(
            self,
            labels=self.labels[rows],
            scores=_each_at(self.scores, rows),
            weight=taken(self.weight, rows),
            clusters=taken(self.clusters, rows),
            segments=taken(self.segments, rows),
            partitions=_each_at(self.partitions, rows),
            periods=periods,
            period_order=order,
            moments=taken(self.moments, rows),
        )

    def forecasts(self, name):
        """Return all rows of a model as `Rows`."""
        return Rows(
            self.scores[name],
            self.labels,
            self.weight,
            self.clusters,
            weight_type=self.weight_type,
        )

    def event_rows(self, name):
        """Return the `Rows` of a model for one event: the event itself, or "the
        predicted class is right".
        """
        return self.forecasts(name).event_rows

    def by_class(self, name, seed):
        """Return the forecasts of each class against the rest, for a model.

        Returns
        -------
        one_against_rest : Rows
            All samples (of a large table a random sample) as forecasts of the event
            that the first class happens, then all for the second class, and so on.
        class_of_row : ndarray of str, shape (n_classes * n_samples,)
            The class that each of these rows is about.

        The result is None for a table of one event.
        """
        if self.classes is None:
            return None
        n_classes = len(self.classes)
        sample = self.sample(_MOST_CLASS_SCORES // n_classes, seed)
        rows = self.forecasts(name).at(sample)
        n_samples = len(rows.labels)
        sample_of_row = np.tile(np.arange(n_samples), n_classes)
        # (n_classes, n_samples), flattened class by class
        is_class = rows.labels == np.arange(n_classes)[:, None]
        one_against_rest = rows._replace(
            scores=np.ascontiguousarray(rows.scores.T).ravel(),
            labels=is_class.ravel(),
            sample_weight=taken(rows.sample_weight, sample_of_row),
            clusters=taken(rows.clusters, sample_of_row),
        )
        class_of_row = np.repeat(np.array(self.classes), n_samples)
        return one_against_rest, class_of_row

    @cached_property
    def proper_scores(self):
        """The Brier score and the log-loss of all models with their differences from
        the first model, a `ModelComparison`.
        """
        return compared(self.forecasts(self.names[0]), self.scores)

    def losses(self, name):
        """Return the mean losses of a model with their intervals: a dict from
        "brier_score" and "log_loss" to a dict of "estimate", "low", "high" and
        "reason".
        """
        intervals = {}
        for row in records(self.proper_scores.columns()):
            if row["model"] == name:
                keys = ("estimate", "low", "high", "reason")
                intervals[row["metric"]] = {key: row[key] for key in keys}
        return intervals

    def brier_difference(self, name):
        """Return how much larger the Brier score of a model is than that of the first,
        with its interval.
        """
        return brier_difference(self.proper_scores, name)

    def sample(self, most, seed):
        """Return an index of at most `most` rows: the sorted positions of a random
        sample, or a slice of all rows if they are not more.
        """
        if self.n_rows <= most:
            return slice(None)
        rng = np.random.default_rng(seed)
        return np.sort(rng.choice(self.n_rows, most, replace=False))
