"""Statistics that several parts of a report need."""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from skcalib._inference.adjustment import holm
from skcalib.binning import EqualMass, MinimumMass
from skcalib.metrics import calibration_by_group

CONFIDENCE_LEVEL = 0.9
LABELS = [False, True]
# The library's 15 bins, fewer where they would hold too few rows for a debiased error.
REPORT_BINNING = MinimumMass(EqualMass(15), min_weight=10)
# The error of all sentences, of the diagrams and of the tables of groups: percentage points that a reader can picture.
MEAN_ABSOLUTE = {"norm": 1, "binning": REPORT_BINNING}


class Rows(NamedTuple):
    """Rows of one problem: scores (n,) or (n, K), labels, and what says how much they tell together."""

    scores: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None = None
    clusters: np.ndarray | None = None
    weight_type: str = "frequency"

    @property
    def given(self):
        """What a metric of an event is told besides labels and scores."""
        return {"labels": LABELS, "sample_weight": self.sample_weight}

    @property
    def dependence(self):
        """What an interval or a test of an event is told besides labels and scores."""
        return {**self.given, "weight_type": self.weight_type, "clusters": self.clusters}

    def at(self, rows):
        """Return some of the rows."""
        *columns, weight_type = self
        return Rows(*(None if column is None else column[rows] for column in columns), weight_type)

    def interval(self, values):
        """Return the mean of a value a row, with its interval."""
        return mean_interval(values, self.sample_weight, self.weight_type, self.clusters)


def records(columns):
    """Return columns, by name, as one dict a row of Python's own numbers and words."""
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def group_records(task, groups, kind, seed):
    """Return the numbers of each group (segment, class or period) as one dict each, sorted by name."""
    options = {**MEAN_ABSOLUTE, "confidence_level": CONFIDENCE_LEVEL, "random_state": seed, **task.dependence}
    found = calibration_by_group(task.labels, task.scores, groups, **options)
    names = {kind: found.group.astype(str), "n_rows": found.n.astype(float)}
    names |= {name: getattr(found, name) for name in ("mean_score", "event_frequency")}
    names |= {name: getattr(found, name) for name in ("bias", "bias_low", "bias_high")}
    names |= {"estimate": found.error, "low": found.error_low, "high": found.error_high}
    return records({**names, "pvalue": found.pvalue, "adjusted_pvalue": found.adjusted_pvalue})


def adjust(rows, key, adjusted):
    """Add to rows of a table their p-values, where these are known, adjusted for their number."""
    known = [row for row in rows if row[key] is not None]
    for row, pvalue in zip(known, holm(np.array([row[key] for row in known])).tolist(), strict=True):
        row[adjusted] = pvalue


def mean(values, weight):
    """Return the weighted mean as a float."""
    return float(np.average(values, weights=weight))


def mean_interval(values, weight=None, weight_type="frequency", clusters=None):
    """Return a mean with its interval: see `mean_error`."""
    centre, error, degrees = mean_error(values, weight, weight_type, clusters)
    half = float(stdtrit(degrees, (1 + CONFIDENCE_LEVEL) / 2) * error)
    return {"estimate": centre, "low": centre - half, "high": centre + half}


def mean_error(values, weight=None, weight_type="frequency", clusters=None, more_variance=0.0):
    """Return a mean, its standard error from the sums of clusters, where there are any, and degrees of freedom.

    Weights of importance make each row a cluster: a large weight is one row nevertheless.
    """
    centre = mean(values, weight)
    weight = np.ones(len(values)) if weight is None else weight
    residual, total, degrees = values - centre, weight.sum(), np.inf
    if clusters is None and weight_type == "frequency":
        variance = weight @ residual**2 / total**2
    else:
        unit = np.arange(len(values)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
        sums = np.bincount(unit, weight * residual)
        degrees = max(len(sums) - 1, 1)
        variance = sums @ sums / total**2 * len(sums) / degrees
    return centre, np.sqrt(variance + more_variance), degrees
