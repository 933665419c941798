"""Statistics that several parts of a report need."""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from skcalib._cells.reductions import top_label
from skcalib._inference.adjustment import holm
from skcalib._intervals.influence import Influence
from skcalib._rows.blocks import taken
from skcalib.binning import EqualMass, MinimumMass
from skcalib.evaluation import mean_interval
from skcalib.metrics import calibration_by_group

CONFIDENCE_LEVEL = 0.9
SIGNIFICANCE_LEVEL = 0.05
# The expected variance of a mean replaces the observed one if it is larger than this
# number times that.
_UNSEEN = 4
LABELS = [False, True]
# The library's 15 bins, fewer where they would hold too few rows for a debiased error.
REPORT_BINNING = MinimumMass(EqualMass(15), min_weight=10)
# The error of all sentences, of the diagrams and of the tables of groups: percentage
# points that a reader can picture.
MEAN_ABSOLUTE = {"norm": 1, "binning": REPORT_BINNING}


class MeanEstimate(NamedTuple):
    """A weighted mean with the limits of its interval.

    Attributes
    ----------
    estimate, low, high : float
        The mean, and its limits at `CONFIDENCE_LEVEL`; NaN if there are too few
        clusters.
    pvalue : float
        One-sided: the p-value of "the mean is at most 0"; 1 where there are no limits.
    """

    estimate: float
    low: float
    high: float
    pvalue: float


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
        predicted, confidence = top_label(self.scores)
        return self._replace(scores=confidence, labels=predicted == self.labels)

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

    def mean(self, values, more_variance=0.0, expected_variance=0.0):
        """Return the weighted mean of values (n,) with its interval and p-value, as
        `MeanEstimate`.

        Parameters
        ----------
        values : ndarray of shape (n,)
            One value for each sample.
        more_variance : float
            Added to the variance of the mean.
        expected_variance : float
            A variance of the mean that is known from elsewhere. It replaces the one
            estimated from the values if it is more than 4 times as large: these values
            then lack rare ones that are to be expected.
        """
        centre = mean(values, self.sample_weight)
        cluster = None
        if self.clusters is not None:
            _, cluster = np.unique(self.clusters, return_inverse=True)
        spread = Influence(
            values - centre,
            self.sample_weight,
            self.weight_type == "importance",
            cluster,
        ).spread()
        if spread.reason:
            return MeanEstimate(centre, np.nan, np.nan, 1.0)
        variance = spread.standard_error**2
        degrees = spread.degrees
        if expected_variance > _UNSEEN * variance:
            variance = expected_variance
        error = np.sqrt(variance + more_variance)
        # Student's t, which is normal for infinite degrees of freedom.
        half = float(stdtrit(degrees, (1 + CONFIDENCE_LEVEL) / 2) * error)
        pvalue = 1.0
        if error > 0:
            pvalue = float(stdtr(degrees, -centre / error))
        return MeanEstimate(centre, centre - half, centre + half, pvalue)


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
    for row, adjusted in zip(known, holm(pvalues).tolist(), strict=True):
        row[adjusted_key] = adjusted


def mean(values, weight):
    """Return the weighted mean as a float."""
    return float(np.average(values, weights=weight))
