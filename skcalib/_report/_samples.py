"""The samples of a report, and how its parts ask the library about them."""

from typing import NamedTuple

import numpy as np

from skcalib.binning import EqualMass, MinimumMass
from skcalib.evaluation import adjust_pvalues, mean_interval
from skcalib.metrics import calibration_by_group

CONFIDENCE_LEVEL = 0.9
SIGNIFICANCE_LEVEL = 0.05
LABELS = [False, True]
# The library's 15 bins, fewer where they would hold too few rows for a debiased error.
REPORT_BINNING = MinimumMass(EqualMass(15), min_weight=10)
# The error of all sentences, of the diagrams and of the tables of groups: percentage
# points that a reader can picture.
MEAN_ABSOLUTE = {"norm": 1, "binning": REPORT_BINNING}


def taken(values, rows):
    """Return some entries of an array (n,), or None for None."""
    return None if values is None else values[rows]


class Rows(NamedTuple):
    """Forecasts with their labels, weights, clusters and periods.

    Attributes
    ----------
    scores : ndarray of shape (n,) or (n, n_classes)
        Probabilities of the event, or of each class.
    labels : ndarray of shape (n,)
        Whether the event happened, or the column index of the class.
    sample_weight, clusters, periods : ndarray of shape (n,) or None
        Weights, clusters of dependent rows, and names of periods.
    weight_type : {"frequency", "importance"}
        Meaning of the weights.
    """

    scores: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None = None
    clusters: np.ndarray | None = None
    periods: np.ndarray | None = None
    weight_type: str = "frequency"

    @property
    def event_rows(self):
        """These samples as forecasts of one event, as `Rows`.

        With several classes the event is that the predicted class is right, and the
        score is the probability of that class.
        """
        if self.scores.ndim == 1:
            return self
        return self._replace(
            scores=self.scores.max(axis=1),
            labels=self.scores.argmax(axis=1) == self.labels,
        )

    @property
    def options_of_labels(self):
        """Keyword arguments that name the labels: of an event, or of all classes."""
        if self.scores.ndim == 1:
            return {"labels": LABELS}
        return {"labels": list(range(self.scores.shape[1]))}

    @property
    def total_weight(self):
        """Number of rows, or the sum of their weights."""
        if self.sample_weight is None:
            return float(len(self.labels))
        return float(self.sample_weight.sum())

    def counted(self, happened):
        """Return the number of samples with the event, or without it unless it
        `happened`; a frequency weight counts copies and an importance weight does not.
        """
        is_meant = self.labels == happened
        if self.sample_weight is None:
            return float(np.count_nonzero(is_meant))
        if self.weight_type == "frequency":
            return float(self.sample_weight[is_meant].sum())
        return float(np.count_nonzero(is_meant & (self.sample_weight > 0)))

    @property
    def metric_options(self):
        """Keyword arguments of a metric of an event: the labels that there are, and the
        weights of the rows.
        """
        return {"labels": LABELS, "sample_weight": self.sample_weight}

    @property
    def inference_options(self):
        """Keyword arguments of an interval or a test of an event: those of a metric,
        the type of the weights and the clusters.
        """
        return {
            **self.metric_options,
            "weight_type": self.weight_type,
            "clusters": self.clusters,
        }

    def at(self, rows):
        """Return some of the rows: those of a mask, slice or array of positions."""
        return self._replace(
            scores=self.scores[rows],
            labels=self.labels[rows],
            sample_weight=taken(self.sample_weight, rows),
            clusters=taken(self.clusters, rows),
            periods=taken(self.periods, rows),
        )

    def share(self, is_counted):
        """Return the share of the rows with True in `is_counted` (n,), with its
        interval, as a dict of "estimate", "low", "high" and "reason".
        """
        found = mean_interval(
            is_counted,
            largest=1,
            confidence_level=CONFIDENCE_LEVEL,
            sample_weight=self.sample_weight,
            weight_type=self.weight_type,
            clusters=self.clusters,
        )
        return interval_record(found)


def interval_record(found):
    """Return an `IntervalEstimate` as a dict of "estimate", "low" and "high", with the
    "reason" why limits are NaN, else None.
    """
    return {**found._asdict(), "reason": found.reason or None}


def records(columns):
    """Return a table, columns by name, as a list with a dict for each row, without the
    types of NumPy.
    """
    lists = [np.asarray(column).tolist() for column in columns.values()]
    rows = zip(*lists, strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def group_records(event_rows, groups, kind, seed):
    """Return a list with a dict of numbers for each group, sorted by name. `kind` is
    the key of the name: "segment", "class" or "period".
    """
    options = {
        **MEAN_ABSOLUTE,
        "confidence_level": CONFIDENCE_LEVEL,
        "random_state": seed,
        **event_rows.inference_options,
    }
    table = calibration_by_group(
        event_rows.labels, event_rows.scores, groups, **options
    )
    columns = {
        kind: table.group.astype(str),
        "n_rows": table.n.astype(float),
        "mean_score": table.mean_score,
        "event_frequency": table.event_frequency,
        "bias": table.bias,
        "bias_low": table.bias_low,
        "bias_high": table.bias_high,
        "estimate": table.error,
        "low": table.error_low,
        "high": table.error_high,
        "pvalue": table.pvalue,
        "adjusted_pvalue": table.adjusted_pvalue,
    }
    return records(columns)


def adjust(rows, key, adjusted_key):
    """Add Holm's adjusted p-values to dicts, the rows of a table, under another key;
    rows without a p-value (None) get none.
    """
    known = [row for row in rows if row[key] is not None]
    pvalues = np.array([row[key] for row in known])
    adjusted_pvalues = adjust_pvalues(pvalues).tolist()
    for row, adjusted in zip(known, adjusted_pvalues, strict=True):
        row[adjusted_key] = adjusted
