"""Calibration in each cluster, pooled by a random-effects model, and in a new one."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, ndtri

from skcalib._inference.results import IntervalEstimate, ResultTable
from skcalib._inference.shift_test import bias_test
from skcalib._input.groups import refuse_measurements
from skcalib._input.labels import check_groups
from skcalib._input.scalars import check_confidence_level
from skcalib._input.scored_labels import check_one_event, check_scored_labels
from skcalib._input.warn import warn
from skcalib._rows.links import log_odds
from skcalib._solvers.logistic import fit_logistic
from skcalib._solvers.random_effects import pooled, prediction_limits
from skcalib._verdicts import (
    count_words,
    decimals,
    fixed,
    interval_words,
    level_words,
    rounded,
)
from skcalib.metrics._slope import is_inner

_QUANTITIES = ("observed_expected", "intercept", "slope")
_WORDS = {
    "observed_expected": "Observed over expected events",
    "intercept": "Calibration in the large",
    "slope": "Calibration slope",
}
_FEWEST_CLUSTERS = 3
# An intercept is sought between minus and plus this number of log-odds.
_LARGEST_INTERCEPT = 50.0


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationByCluster(ResultTable):
    """Calibration in each cluster and pooled over clusters.

    Parameters
    ----------
    cluster : ndarray
        Sorted names of the clusters.
    n, n_events : ndarray
        Weighted numbers of samples and events in each cluster.
    observed_expected, observed_expected_low, observed_expected_high : ndarray of float
        Ratio of observed to expected events, with exact limits.
    intercept, intercept_low, intercept_high : ndarray of float
        Calibration-in-the-large, with the slope fixed at 1.
    slope, slope_low, slope_high : ndarray of float
        Calibration slope.
    reason : ndarray of str
        The reason why a value is NaN; an empty string if none is NaN.
    pooled : dict of IntervalEstimate
        Means over clusters of "observed_expected" (on the log scale), "intercept" and
        "slope".
    between : dict of float
        Standard deviation between clusters (tau); for "observed_expected", that of its
        logarithm.
    prediction : dict of IntervalEstimate
        Pooled means, with limits for the true value in a new cluster.
    not_pooled : dict of str
        The reason for each quantity that is not pooled, and the clusters that were
        excluded from the other quantities.
    confidence_level : float
        Coverage of each interval.
    """

    cluster: np.ndarray
    n: np.ndarray
    n_events: np.ndarray
    observed_expected: np.ndarray
    observed_expected_low: np.ndarray
    observed_expected_high: np.ndarray
    intercept: np.ndarray
    intercept_low: np.ndarray
    intercept_high: np.ndarray
    slope: np.ndarray
    slope_low: np.ndarray
    slope_high: np.ndarray
    reason: np.ndarray
    pooled: dict
    between: dict
    prediction: dict
    not_pooled: dict
    confidence_level: float

    def _headline(self):
        return f"CalibrationByCluster ({len(self)} clusters)"

    def __str__(self):
        """Say what was pooled, with a sentence on each quantity."""
        lines = [
            f"{len(self)} clusters with {count_words(self.n.sum())} samples and"
            f" {count_words(self.n_events.sum())} events,"
            f" {level_words(self.confidence_level)} limits:"
        ]
        for name in _QUANTITIES:
            lines.append(f"- {self._sentence(name)}")
        return "\n".join(lines)

    def _sentence(self, name):
        """Return a sentence on the pooled results of a quantity ("observed_expected",
        "intercept" or "slope").
        """
        if name not in self.pooled:
            return f"{_WORDS[name]}: not pooled. {self.not_pooled[name]}"
        mean, low, high = self.pooled[name]
        _, new_low, new_high = self.prediction[name]
        digits = decimals(low, high)
        text = (
            f"{_WORDS[name]}: {interval_words(mean, low, high)} on average; in a new"
            f" cluster {fixed(new_low, digits)} to {fixed(new_high, digits)}; between"
            f" clusters tau = {rounded(self.between[name], 2)}."
        )
        if name in self.not_pooled:
            text = f"{text} {self.not_pooled[name]}"
        return text


def calibration_by_cluster(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    clusters: ArrayLike,
    *,
    confidence_level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    pos_label: int | float | bool | str | None = None,
) -> CalibrationByCluster:
    """Calibration of a model by cluster, averaged over clusters, and in a new cluster.

    The ratio of observed to expected events, calibration-in-the-large and slope are
    estimated for each cluster, such as a hospital, and pooled with a random-effects
    model. The prediction interval of this model shows what to expect in a cluster that
    was not in the study.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 1) or (n, 2)
        Probabilities in [0, 1].
    clusters : array-like of shape (n,)
        Cluster of each sample: its hospital, country or study. Samples are assumed to
        be independent given the cluster. More than 30 distinct non-integer floats are
        treated as measurements and rejected.
    confidence_level : float, default=0.95
        Coverage of each interval, in (0, 1); 0.95 is usual in reports on prediction
        models.
    sample_weight : array-like of shape (n,), default=None
        Frequency weights: a sample with weight 2 counts twice.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.

    Returns
    -------
    table : CalibrationByCluster
        One row per cluster, and the dicts `pooled`, `between` and `prediction`.

    Raises
    ------
    ValueError
        If lengths differ or are 0, a label is unknown, a score is missing or outside
        [0, 1], there are more than two classes, clusters are measurements, or weights
        are negative or all zero.

    See Also
    --------
    skcalib.metrics.calibration_by_group : Tests for a few groups that are fixed
        beforehand rather than sampled.
    skcalib.evaluation.calibration_summary : Statistics of all samples together; accepts
        `clusters`.

    Notes
    -----
    The ratio of observed to expected events is pooled on the log scale, with the
    variance sum q (1 - q) / (sum y)^2, where q are the scores after the shift in
    log-odds that makes their sum equal to the observed number of events. Clusters
    without events are excluded, because the logarithm of their ratio does not exist.
    Slopes of clusters with one class or separable scores are also excluded. The result
    names the excluded clusters. The standard deviation tau between clusters is the
    restricted maximum likelihood estimate, the interval for the mean is the
    Hartung-Knapp interval, and the prediction interval is based on the confidence
    distribution of tau [1]_. The usual t interval treats tau as known; with a small tau
    and 5 to 50 simulated clusters, its coverage was .81 to .88 instead of .90. Results
    are pooled only if there are three or more clusters.

    References
    ----------
    .. [1] Nagashima, Noma and Furukawa (2019), Prediction intervals for random-effects
        meta-analysis: a confidence distribution approach.
    .. [2] Debray et al. (2017), A guide to systematic review and meta-analysis of
        prediction model performance.

    Examples
    --------
    Twelve hospitals, in which the log-odds are off by .3 on average, with a standard
    deviation of .4:

    >>> import numpy as np
    >>> from scipy.special import expit, logit
    >>> from skcalib.evaluation import calibration_by_cluster
    >>> rng = np.random.default_rng(0)
    >>> hospital = np.repeat(np.arange(12), 400)
    >>> effect = 0.3 + 0.4 * rng.normal(size=12)
    >>> risk = rng.beta(2, 5, 4800)
    >>> died = rng.random(4800) < expit(logit(risk) + effect[hospital])
    >>> table = calibration_by_cluster(died, risk, hospital)
    >>> mean, low, high = table.pooled["intercept"]
    >>> round(mean, 2), round(table.between["intercept"], 2)
    (0.27, 0.32)
    >>> new = table.prediction["intercept"]
    >>> new.low < low < high < new.high
    True
    """
    level = check_confidence_level(confidence_level)
    data = check_scored_labels(
        y_true, y_proba, sample_weight=sample_weight, pos_label=pos_label, drop=False
    )
    check_one_event(data, "calibration by cluster")
    names, codes = check_groups(clusters, len(data.scores), name="clusters")
    refuse_measurements(names, "clusters")
    rows = data.kept  # positions of the samples with positive weight
    codes = codes[rows]
    present = np.unique(codes)
    weight = data.sample_weight
    if weight is None:
        weight = np.ones(len(data.scores))
    n_extreme = np.count_nonzero(~is_inner(data.scores[rows]))
    if n_extreme:
        warn(
            f"{n_extreme:,} scores are exactly 0 or 1, clipped to 2^-52 in the slopes:"
            " calibration_summary of a cluster has the slope without them, inner_slope."
        )
    fits = []
    for code in present:
        cluster_rows = rows[codes == code]
        fit = _ClusterFit(
            data.scores[cluster_rows],
            data.labels[cluster_rows],
            weight[cluster_rows],
            level,
        )
        fits.append(fit)
    names = np.asarray(names)[present]
    columns = {"cluster": names}
    columns["n"] = _counts([fit.n for fit in fits], sample_weight)
    columns["n_events"] = _counts([fit.n_events for fit in fits], sample_weight)
    for quantity in _QUANTITIES:
        intervals = np.array([fit.intervals[quantity] for fit in fits])
        for position, suffix in enumerate(("", "_low", "_high")):
            columns[quantity + suffix] = intervals[:, position]
    columns["reason"] = np.array([fit.reason for fit in fits], dtype=object)
    return CalibrationByCluster(
        **columns, **_pooled_quantities(fits, names, level), confidence_level=level
    )


def _counts(values, sample_weight):
    """Return the weights of clusters as an array: integers, numbers of samples, if
    `sample_weight` is None.
    """
    counts = np.array(values)
    if sample_weight is None:
        return counts.astype(np.intp)
    return counts


class _ClusterFit:
    """The numbers of one cluster: intervals, and what the pooling takes.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        Probabilities of the event.
    labels : ndarray of bool, shape (n_rows,)
        Whether it happened.
    weight : ndarray of shape (n_rows,)
        Weights, which count repeated rows.
    level : float
        Coverage of the intervals.

    Attributes
    ----------
    n, n_events : float
        Sum of the weights of all rows, and of those with an event.
    log_odds : ndarray of shape (n_rows,)
        Log-odds of the scores.
    intervals : dict
        (estimate, low, high) by quantity: "observed_expected", "intercept" and "slope".
    pooling : dict
        (estimate, variance) by quantity, on the scale of the pooling (the ratio as its
        logarithm); only those that are defined.
    reason : str
        Why an interval is NaN; empty where none is.
    """

    def __init__(self, scores, labels, weight, level):
        self.scores = scores
        self.labels = labels
        self.weight = weight
        # The normal quantile of two-sided intervals.
        self.z = ndtri((1 + level) / 2)
        self.n = weight.sum()
        self.n_events = weight @ labels
        self.log_odds = log_odds(scores)
        # By quantity ("observed_expected", "intercept", "slope"): the triple (estimate,
        # low, high), NaN if there is none, and for pooling over clusters the pair
        # (estimate, variance), of the logarithm for the ratio, missing if there is
        # none.
        self.intervals = {}
        self.pooling = {}
        # Each method adds its quantity to both dicts. It returns why it cannot, or "".
        reasons = [
            self._add_observed_expected(level),
            self._add_intercept(),
            self._add_slope(),
        ]
        self.reason = "; ".join(reason for reason in reasons if reason)

    def _add_observed_expected(self, level):
        """Add the ratio of observed to expected events with its interval to
        `intervals`, and, if there are events, its logarithm with the variance to
        `pooling`; return why there is no ratio, or "".
        """
        expected = self.weight @ self.scores
        if expected == 0:
            self.intervals["observed_expected"] = (np.nan, np.nan, np.nan)
            return "all scores are 0, which expects no events"
        mean_score = expected / self.n
        # The exact test under a common shift of the log-odds gives limits of the bias,
        # mean score less event frequency.
        test = bias_test(self.scores, self.n_events, level, self.weight)
        low = (mean_score - test.high) / mean_score
        high = (mean_score - test.low) / mean_score
        ratio = self.n_events / expected
        self.intervals["observed_expected"] = (ratio, low, high)
        if self.n_events == 0:
            return ""
        # The variance of the number of events is the sum of q (1 - q), q the scores
        # shifted in log-odds to the observed number. Where all rows are events, no
        # finite shift does that: q is then the score itself.
        frequency = self.scores
        if self.n_events < self.n:
            frequency = expit(self.log_odds + self._shift())
        # of the logarithm, by the delta method
        variance = self.weight @ (frequency * (1 - frequency)) / self.n_events**2
        # Where all events had score 1 the variance is 0. The cluster is then left out
        # of the pooling, in which its weight would be infinite.
        if variance > 0:
            self.pooling["observed_expected"] = (np.log(ratio), variance)
        return ""

    def _shift(self):
        """Return the shift of all log-odds that makes the expected number of events the
        observed one. There must be events and non-events.
        """

        def excess(shift):
            """Return expected minus observed events after a shift."""
            return self.weight @ expit(self.log_odds + shift) - self.n_events

        return brentq(excess, -_LARGEST_INTERCEPT, _LARGEST_INTERCEPT, xtol=1e-12)

    def _add_intercept(self):
        """Add calibration-in-the-large, the shift of the log-odds that gives the
        observed number of events, to `intervals` and `pooling`; return why there is
        none, or "".
        """
        if self.n_events in (0, self.n):
            self.intervals["intercept"] = (np.nan, np.nan, np.nan)
            return "all samples are of one class"
        shift = self._shift()
        frequency = expit(self.log_odds + shift)
        variance = 1 / (self.weight @ (frequency * (1 - frequency)))
        self._add("intercept", shift, variance)
        return ""

    def _add_slope(self):
        """Add the slope of a logistic regression on the log-odds of the scores to
        `intervals` and `pooling`; return why there is none, or "".
        """
        self.intervals["slope"] = (np.nan, np.nan, np.nan)
        if self.n_events in (0, self.n):
            return ""  # the reason is given with the intercept
        events = self.log_odds[self.labels]
        non_events = self.log_odds[~self.labels]
        if self.log_odds.min() == self.log_odds.max():
            return "one distinct score has no slope"
        if events.min() >= non_events.max() or events.max() <= non_events.min():
            return "the scores separate the classes"
        features = np.stack((np.ones(len(self.log_odds)), self.log_odds))  # (2, n)
        # The fit asks for the features of some rows at a time.
        coef = fit_logistic(lambda rows: features[:, rows], self.labels, self.weight)
        frequency = expit(coef @ features)
        # The covariance of the coefficients is the inverse of Fisher's information.
        weighted = features * (self.weight * frequency * (1 - frequency))
        covariance = np.linalg.inv(weighted @ features.T)
        variance = covariance[1, 1]
        self._add("slope", float(coef[1]), float(variance))
        return ""

    def _add(self, quantity, estimate, variance):
        """Add a quantity with its normal interval to `intervals`, and with its variance
        to `pooling`.
        """
        width = self.z * np.sqrt(variance)
        self.intervals[quantity] = (estimate, estimate - width, estimate + width)
        self.pooling[quantity] = (estimate, variance)


def _pooled_quantities(fits, names, level):
    """Return the fields of `CalibrationByCluster` on the pooling, as a dict of dicts by
    quantity: "pooled" (mean with interval), "between" (standard deviation between
    clusters), "prediction" (mean with the interval for a new cluster) and "not_pooled"
    (why clusters or the quantity were left out).

    Parameters
    ----------
    fits : list of _ClusterFit
        The estimates of each cluster.
    names : ndarray of shape (n_clusters,)
        Names of the clusters.
    level : float
        Confidence level.
    """
    found = {"pooled": {}, "between": {}, "prediction": {}, "not_pooled": {}}
    for quantity in _QUANTITIES:
        pairs = []  # (estimate, variance) of each cluster that has one
        left_out = []
        for name, fit in zip(names, fits, strict=True):
            if quantity in fit.pooling:
                pairs.append(fit.pooling[quantity])
            else:
                left_out.append(str(name))
        if left_out:
            found["not_pooled"][quantity] = f"Left out: {', '.join(left_out)}."
        if len(pairs) < _FEWEST_CLUSTERS:
            clusters = "cluster" if len(pairs) == 1 else "clusters"
            found["not_pooled"][quantity] = (
                f"{len(pairs)} {clusters} with an estimate: at least"
                f" {_FEWEST_CLUSTERS} are needed."
            )
            continue
        estimates, variances = np.array(pairs).T
        mean = pooled(estimates, variances, level)
        low, high = prediction_limits(estimates, variances, level)
        # A new cluster is at least as uncertain as the mean.
        new_low = min(low, mean.low)
        new_high = max(high, mean.high)
        limits = np.array([mean.mean, mean.low, mean.high, new_low, new_high])
        if quantity == "observed_expected":
            limits = np.exp(limits)
        estimate, mean_low, mean_high, new_low, new_high = limits.tolist()
        found["pooled"][quantity] = IntervalEstimate(estimate, mean_low, mean_high)
        found["between"][quantity] = mean.tau
        found["prediction"][quantity] = IntervalEstimate(estimate, new_low, new_high)
    return found
