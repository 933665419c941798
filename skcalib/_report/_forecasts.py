"""What a report is about: the forecasts of each model with their labels, segments and times."""

from dataclasses import dataclass, field

import numpy as np

from skcalib._cells.reductions import BinaryTask, top_label
from skcalib._errors.proper_scores import LOSSES
from skcalib._report._statistics import mean_interval

_MOST_CLASS_SCORES = 20_000_000  # that all classes together are judged from


@dataclass(frozen=True, eq=False)
class ReportTable:
    """Checked forecasts, as the rows of a file or as fewer weighted ones.

    Parameters
    ----------
    source : str
        Name of the file.
    label : str
        Name of the label column.
    event : str or None
        The label that is the event; None for classes.
    n_rows : int
        Number of rows of the file.
    is_weighted : bool
        Whether there is a column of weights, which the theory of certificates and of change does not take.
    forecasts : dict of tuple
        By model: scores (n,) or (n, K), labels (booleans, or positions among the classes), weights or None.
    segment_name, time_name : str or None
        Names of the columns of segments and times.
    segments, periods : dict of tuple
        By model: a binary problem, and the segment or period of each of its rows.
    period_order : list of str or None
        The periods in the order of time.
    differences : dict of dict
        For each model but the first: how much larger its Brier score is, with an interval.
    classes : tuple of str or None
        The classes, in the order of the scores' columns.
    columns : dict of tuple of str
        The columns of each model's classes.
    notes : tuple of str
        Notes about how the rows were read.
    is_condensed : bool
        Whether rows of nearly equal scores have become one.
    """

    source: str
    label: str
    event: str | None
    n_rows: int
    is_weighted: bool
    forecasts: dict
    segment_name: str | None = None
    segments: dict = field(default_factory=dict)
    time_name: str | None = None
    periods: dict = field(default_factory=dict)
    period_order: list | None = None
    differences: dict = field(default_factory=dict)
    classes: tuple | None = None
    columns: dict = field(default_factory=dict)
    notes: tuple = ()
    is_condensed: bool = False

    @property
    def total_weight(self):
        """Number of rows, the total weight where there are weights."""
        weight = next(iter(self.forecasts.values()))[2]
        return float(self.n_rows if weight is None else weight.sum())

    @property
    def names(self):
        """Names of the models."""
        return list(self.forecasts)

    def task(self, name):
        """Return the binary problem of a model: the event, or whether the predicted class is right."""
        return binary_task(*self.forecasts[name])

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
        scores, labels, weight = self.forecasts[name]
        return {key: mean_interval(loss(scores, labels), weight) for key, loss in LOSSES.items()}

    def rows(self, name, most, seed):
        """Return scores, labels and weights of a random sample of at most this many rows."""
        return self.sample(name, most, seed)[:3]

    def sample(self, name, most, seed):
        """Return scores, labels, weights, segments, periods and clusters of a random sample of at most this many rows.

        What the table does not have is None. Sums over cells have segments, or else periods, and no clusters.
        """
        random, given = np.random.default_rng(seed), [part.get(name) for part in (self.segments, self.periods)]
        if self.is_condensed:  # each cell as often as it was drawn
            of_segments, of_periods = given
            task, names = of_segments or of_periods or (BinaryTask(*self.forecasts[name]), None)
            weight = task.sample_weight
            drawn = random.multinomial(min(most, int(weight.sum())), weight / weight.sum())
            names = None if names is None else np.repeat(names, drawn)
            parts = (names, None) if of_segments else (None, names)
            return np.repeat(task.scores, drawn), np.repeat(task.labels, drawn), None, *parts, None
        scores, labels, weight = self.forecasts[name]
        rows = slice(None) if len(labels) <= most else np.sort(random.choice(len(labels), most, replace=False))
        others = [weight, *(part and part[1] for part in given), getattr(self, "clusters", None)]
        return scores[rows], labels[rows], *(None if values is None else values[rows] for values in others)


def binary_task(scores, labels, weight):
    """Return the problem of one event, or of many classes whether the predicted one is right."""
    if scores.ndim == 1:
        return BinaryTask(scores, labels, weight)
    predicted, confidence = top_label(scores)
    return BinaryTask(confidence, predicted == labels, weight)
