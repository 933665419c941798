"""Statistics that several parts of a report need."""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from skcalib._cells.reductions import top_label
from skcalib._inference.adjustment import holm
from skcalib._rows.blocks import taken, weights_or_ones
from skcalib.binning import EqualMass, MinimumMass
from skcalib.metrics import calibration_by_group

CONFIDENCE_LEVEL = 0.9
SIGNIFICANCE_LEVEL = 0.05
_UNSEEN = 4  # times the variance that the rows show
LABELS = [False, True]
# The library's 15 bins, fewer where they would hold too few rows for a debiased error.
REPORT_BINNING = MinimumMass(EqualMass(15), min_weight=10)
# The error of all sentences, of the diagrams and of the tables of groups: percentage
# points that a reader can picture.
MEAN_ABSOLUTE = {"norm": 1, "binning": REPORT_BINNING}


class Rows(NamedTuple):
    """Rows of one problem: scores (n,) or (n, K), labels, and what else is needed of
    each row.
    """

    scores: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None = None
    clusters: np.ndarray | None = None
    periods: np.ndarray | None = None
    weight_type: str = "frequency"

    @property
    def task(self):
        """The problem of one event, or of many classes whether the predicted one is
        right.
        """
        if self.scores.ndim == 1:
            return self
        predicted, confidence = top_label(self.scores)
        return self._replace(scores=confidence, labels=predicted == self.labels)

    @property
    def given(self):
        """What a metric of an event is told besides labels and scores."""
        return {"labels": LABELS, "sample_weight": self.sample_weight}

    @property
    def dependence(self):
        """What an interval or a test of an event is told besides labels and scores."""
        return {
            **self.given,
            "weight_type": self.weight_type,
            "clusters": self.clusters,
        }

    def at(self, rows):
        """Return some of the rows."""
        *columns, weight_type = self
        return Rows(
            *(taken(column, rows) for column in columns),
            weight_type,
        )

    def interval(self, values):
        """Return the mean of a value a row, with its interval."""
        return dict(
            zip(("estimate", "low", "high"), self.mean(values)[:3], strict=True)
        )

    def mean(self, values, more_variance=0.0, expected_variance=0.0):
        """Return the mean of a value a row, its interval, and the one-sided p-value of
        a mean that is not above 0.

        The standard error is that of the sums of clusters, where there are any. Weights
        of importance make each row a cluster: a large weight is one row nevertheless.
        `more_variance` is added to the variance of the mean. `expected_variance` takes
        its place if it is several times as large: the rows then lack rare values that
        are to be expected.
        """
        n_rows = len(values)
        centre = mean(values, self.sample_weight)
        weight = weights_or_ones(self.sample_weight, n_rows)
        residual = values - centre
        total = weight.sum()
        degrees = np.inf
        if self.clusters is None and self.weight_type == "frequency":
            variance = weight @ residual**2 / total**2
        else:
            cluster = np.arange(n_rows)
            if self.clusters is not None:
                cluster = np.unique(self.clusters, return_inverse=True)[1]
            sums = np.bincount(cluster, weight * residual)
            degrees = max(len(sums) - 1, 1)
            variance = sums @ sums / total**2 * len(sums) / degrees
        if expected_variance > _UNSEEN * variance:
            variance = expected_variance
        error = np.sqrt(variance + more_variance)
        half = float(stdtrit(degrees, (1 + CONFIDENCE_LEVEL) / 2) * error)
        pvalue = 1.0
        if error > 0:
            pvalue = float(stdtr(degrees, -centre / error))
        return centre, centre - half, centre + half, pvalue


def records(columns):
    """Return columns, by name, as one dict a row of Python's own numbers and words."""
    rows = zip(
        *(np.asarray(column).tolist() for column in columns.values()), strict=True
    )
    return [dict(zip(columns, row, strict=True)) for row in rows]


def group_records(task, groups, kind, seed):
    """Return the numbers of each group (segment, class or period) as one dict each,
    sorted by name.
    """
    options = {
        **MEAN_ABSOLUTE,
        "confidence_level": CONFIDENCE_LEVEL,
        "random_state": seed,
        **task.dependence,
    }
    found = calibration_by_group(task.labels, task.scores, groups, **options)
    names = {kind: found.group.astype(str), "n_rows": found.n.astype(float)}
    names |= {name: getattr(found, name) for name in ("mean_score", "event_frequency")}
    names |= {name: getattr(found, name) for name in ("bias", "bias_low", "bias_high")}
    names |= {"estimate": found.error, "low": found.error_low, "high": found.error_high}
    return records(
        {**names, "pvalue": found.pvalue, "adjusted_pvalue": found.adjusted_pvalue}
    )


def adjust(rows, key, adjusted):
    """Add to rows of a table their p-values, where these are known, adjusted for their
    number.
    """
    known = [row for row in rows if row[key] is not None]
    for row, pvalue in zip(
        known, holm(np.array([row[key] for row in known])).tolist(), strict=True
    ):
        row[adjusted] = pvalue


def mean(values, weight):
    """Return the weighted mean as a float."""
    return float(np.average(values, weights=weight))
