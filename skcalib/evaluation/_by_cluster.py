"""Calibration in each cluster, pooled by a random-effects model, and in a new one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, ndtri

from skcalib._guide import see
from skcalib._inference.results import IntervalEstimate, ResultTable
from skcalib._inference.shift_test import bias_test
from skcalib._input.groups import refuse_measurements
from skcalib._input.labels import check_groups
from skcalib._input.scalars import check_confidence_level
from skcalib._input.scored_labels import check_one_event, check_scored_labels
from skcalib._input.warn import warn
from skcalib._intervals.influence import Influence
from skcalib._intervals.sandwich import fisher_covariance
from skcalib._rows.links import log_odds
from skcalib._solvers.logistic import fit_logistic
from skcalib._solvers.random_effects import pooled, prediction_limits
from skcalib._solvers.random_intercept import common_shift, fit_random_intercept
from skcalib._verdicts import (
    count_words,
    decimals,
    fixed,
    interval_words,
    level_words,
    rounded,
    side_words,
)
from skcalib.metrics._slope import extreme_words, is_inner

_QUANTITIES = ("observed_expected", "intercept", "slope")
_WORDS = {
    "observed_expected": "Ratio of observed to expected events",
    "intercept": "Calibration in the large",
    "slope": "Calibration slope",
}
_FEWEST_CLUSTERS = 3
_NO_LIMIT = "The samples do not determine both limits."


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
        "intercept" and "observed_expected": those of the median cluster. "slope": the
        mean over clusters. "population_observed_expected": the ratio over all samples
        together, which large clusters dominate.
    between : dict of float
        Standard deviation between clusters (tau); for "observed_expected", that of its
        logarithm.
    prediction : dict of IntervalEstimate
        Pooled values, with limits for the true value in a new cluster.
    not_pooled : dict of str
        The reason for each quantity that is not pooled or lacks a limit, and the
        clusters without a slope.
    confidence_level : float
        Coverage of each interval.
    """

    _prints_table = False

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

    def _sentences(self):
        """Say what was pooled, with a sentence on each quantity."""
        first, *others = _QUANTITIES
        lines = [
            self._sentence(first, level_words(self.confidence_level)),
            f"{len(self)} clusters with {count_words(self.n.sum())} samples and"
            f" {count_words(self.n_events.sum())} events.",
        ]
        for name in others:
            lines.append(f"- {self._sentence(name)}")
        if "population_observed_expected" in self.pooled:
            lines.append(f"- {self._population_sentence()}")
        return "\n".join(lines)

    def _population_sentence(self):
        """Return the sentence on the ratio over all samples."""
        name = "population_observed_expected"
        ratio, low, high = self.pooled[name]
        lead = "Ratio of observed to expected events over all samples"
        if name in self.not_pooled:
            return (
                f"{lead}: {rounded(ratio, 3)}, without limits: {self.not_pooled[name]}."
            )
        return f"{lead}: {interval_words(ratio, low, high)}."

    def _sentence(self, name, level=""):
        """Return a sentence on the pooled results of a quantity ("observed_expected",
        "intercept" or "slope"); `level` names the limits.
        """
        if name not in self.pooled:
            return f"{_WORDS[name]}: not pooled. {self.not_pooled[name]}"
        mean, low, high = self.pooled[name]
        if np.isnan(low) or np.isnan(high):
            return f"{_WORDS[name]}: {rounded(mean, 2)}. {self.not_pooled[name]}"
        _, new_low, new_high = self.prediction[name]
        digits = decimals(low, high)
        where = "on average" if name == "slope" else "in the median cluster"
        of_log = " of the log ratio" if name == "observed_expected" else ""
        text = (
            f"{_WORDS[name]}: {interval_words(mean, low, high, level=level)} {where};"
            f" {level and f'{level} '}prediction interval for a new cluster:"
            f" {fixed(new_low, digits)} to {fixed(new_high, digits)};"
            f" between-cluster standard deviation{of_log} (tau):"
            f" {rounded(self.between[name], 2)}."
        )
        if name == "observed_expected":
            text += side_words(
                low,
                high,
                reference=1.0,
                above=" The probabilities are too low.",
                below=" The probabilities are too high.",
                neither=" No deviation of the ratio from 1 is detectable.",
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
    The intercepts are those of one model for all samples: the log-odds of a score plus
    a, plus a normal deviation of the cluster with standard deviation tau [3]_. It keeps
    clusters without events, which have no estimate of their own. Without them, a model
    that is calibrated in every cluster would seem to underestimate. The limits of a are
    those of the profile likelihood, with the squared quantile of Student's distribution
    with one degree of freedom less than there are clusters. The limits for a new
    cluster come from the likelihood, integrated over a and over tau, from 0 to 2. The
    ratio of observed to expected events in the median cluster is the ratio that the
    shift of all scores by a gives. The ratio over all samples is larger where clusters
    differ, and has an interval from the sums of the clusters. Slopes are estimated for
    each cluster and pooled by restricted maximum likelihood, with Hartung and Knapp's
    interval for the mean and a prediction interval based on the confidence distribution
    of tau [1]_ [2]_. They are not pooled if a cluster has one class or separable
    scores: to leave it out because of its outcomes would bias the mean. Results are
    pooled only if there are three or more clusters.

    In simulations with 6 to 60 clusters, of which up to 36 % had no events, the 95 %
    limits covered the intercept of the median cluster in .946 to .998 of the samples,
    and the one of a new cluster in .936 to 1.000.

    References
    ----------
    .. [1] Nagashima, Noma and Furukawa (2019), Prediction intervals for random-effects
        meta-analysis: a confidence distribution approach.
    .. [2] Debray et al. (2017), A guide to systematic review and meta-analysis of
        prediction model performance.
    .. [3] Stijnen, Hamza and Oezdemir (2010), Random effects meta-analysis of event
        outcome in the framework of the generalized linear mixed model.

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
    (0.27, 0.31)
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
            f"{extreme_words(n_extreme)}. For the slopes, scores are clipped to [2^-52,"
            " 1 - 2^-52]. For a slope without those of 0 or 1, see inner_slope in the"
            " calibration_summary of each cluster."
            f"{see('extreme-scores')}"
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
    if len(fits) < _FEWEST_CLUSTERS:
        reason = f"At least {_FEWEST_CLUSTERS} clusters are needed."
        found = _Pooling(level)
        found.not_pooled = dict.fromkeys(_QUANTITIES, reason)
    else:
        found = _Pooling(level)
        codes = np.searchsorted(present, codes)
        found.add_intercept(data.scores[rows], data.labels[rows], weight[rows], codes)
        found.add_slope(fits, names)
    return CalibrationByCluster(
        **columns,
        pooled=found.pooled,
        between=found.between,
        prediction=found.prediction,
        not_pooled=found.not_pooled,
        confidence_level=level,
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
    """The numbers of one cluster.

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
    slope_variance : float
        Variance of the slope, NaN if there is none.
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
        self.intervals = dict.fromkeys(_QUANTITIES, (np.nan, np.nan, np.nan))
        self.slope_variance = np.nan
        # Each method adds its interval, and returns why it cannot, or "".
        reasons = [
            self._add_observed_expected(level),
            self._add_intercept(),
            self._add_slope(),
        ]
        self.reason = "; ".join(reason for reason in reasons if reason)

    def _add_observed_expected(self, level):
        """Add the ratio of observed to expected events with its interval to
        `intervals`; return why there is no ratio, or "".
        """
        expected = self.weight @ self.scores
        if expected == 0:
            return "all scores are 0, so no events are expected"
        mean_score = expected / self.n
        # The exact test under a common shift of the log-odds gives limits of the bias,
        # mean score less event frequency.
        test = bias_test(self.scores, self.n_events, level, self.weight)
        with np.errstate(over="ignore"):  # infinite where next to no event is expected
            low = (mean_score - test.high) / mean_score
            high = (mean_score - test.low) / mean_score
        self.intervals["observed_expected"] = (self.n_events / expected, low, high)
        return ""

    def _add_intercept(self):
        """Add calibration-in-the-large, the shift of the log-odds that gives the
        observed events, to `intervals`; return why there is none, or "".
        """
        if self.has_one_class:
            return "all samples are of one class"
        shift = common_shift(self.log_odds, self.n_events, self.weight)
        frequency = expit(self.log_odds + shift)
        variance = 1 / (self.weight @ (frequency * (1 - frequency)))
        self.intervals["intercept"] = self._normal_interval(shift, variance)
        return ""

    @property
    def has_one_class(self):
        """Whether all samples are events, or none is."""
        return self.n_events in (0, self.n)

    @property
    def is_separable(self):
        """Whether the scores separate the events from the others."""
        events = self.log_odds[self.labels]
        others = self.log_odds[~self.labels]
        return events.min() >= others.max() or events.max() <= others.min()

    def _add_slope(self):
        """Add the slope of a logistic regression on the log-odds of the scores to
        `intervals`, and its variance; return why there is none, or "".
        """
        if self.has_one_class:
            return ""  # the reason is given with the intercept
        if self.log_odds.min() == self.log_odds.max():
            return "one distinct score has no slope"
        if self.is_separable:
            return "the scores separate the classes"
        features = np.stack((np.ones(len(self.log_odds)), self.log_odds))  # (2, n)
        # The fit asks for the features of some rows at a time.
        coef = fit_logistic(lambda rows: features[:, rows], self.labels, self.weight)
        frequency = expit(coef @ features)
        covariance = fisher_covariance(features, frequency, self.weight)
        self.slope_variance = covariance[1, 1]
        slope = float(coef[1])
        self.intervals["slope"] = self._normal_interval(slope, self.slope_variance)
        return ""

    def _normal_interval(self, estimate, variance):
        width = self.z * np.sqrt(variance)
        return estimate, estimate - width, estimate + width


class _Pooling:
    """The fields of `CalibrationByCluster` on the pooling, by quantity.

    Parameters
    ----------
    level : float
        Confidence level.
    """

    def __init__(self, level):
        self.level = level
        self.pooled = {}
        self.between = {}
        self.prediction = {}
        self.not_pooled = {}

    def add_intercept(self, scores, labels, weight, codes):
        """Add the intercept and the ratio of observed to expected events of the median
        cluster, and the ratio over all samples, from scores, labels, weights and
        cluster codes (n,).
        """
        ratio = weight @ labels / (weight @ scores) if scores.any() else np.nan
        if labels.all() or not labels.any():
            reason = "All samples are of one class."
            self.not_pooled |= {"intercept": reason, "observed_expected": reason}
            return
        offsets = log_odds(scores)
        fit = fit_random_intercept(offsets, labels, weight, codes, self.level)
        shifts = np.array([fit.median, fit.low, fit.high, fit.new_low, fit.new_high])
        self._add("intercept", shifts, fit.tau)
        if np.isnan(ratio):
            self.not_pooled["observed_expected"] = "All scores are 0."
            return
        # The ratios after a shift of all scores, and how far their logarithm moves with
        # the shift.
        expected = np.array([weight @ expit(offsets + shift) for shift in shifts])
        frequency = expit(offsets + fit.median)
        derivative = weight @ (frequency * (1 - frequency)) / (weight @ frequency)
        ratios = expected / (weight @ scores)
        self._add("observed_expected", ratios, derivative * fit.tau)
        self._add_population_ratio(ratio, scores, labels, weight, codes)

    def _add_population_ratio(self, ratio, scores, labels, weight, codes):
        """Add the ratio of observed to expected events over all samples, with limits on
        the log scale from the sums of the clusters.
        """
        # Influence on the logarithm of the ratio, by the delta method.
        influence = (labels - ratio * scores) * weight.sum() / (weight @ labels)
        width, reason = Influence(influence, weight, cluster=codes).half_width(
            self.level
        )
        name = "population_observed_expected"
        low = float(ratio * np.exp(-width))
        high = float(ratio * np.exp(width))
        self.pooled[name] = IntervalEstimate(float(ratio), low, high)
        if reason:
            self.not_pooled[name] = reason

    def add_slope(self, fits, names):
        """Add the mean slope, from the `_ClusterFit` of each cluster and the names."""
        left_out = []
        depends_on_outcome = []
        for name, fit in zip(names, fits, strict=True):
            if np.isnan(fit.slope_variance):
                left_out.append(str(name))
                has_spread = fit.log_odds.min() < fit.log_odds.max()
                depends_on_outcome.append(fit.has_one_class or has_spread)
        if any(depends_on_outcome):
            n_left_out = np.count_nonzero(depends_on_outcome)
            self.not_pooled["slope"] = (
                f"{n_left_out} of {len(fits)} clusters have only one class or separable"
                " scores, so they have no slope. The mean of the other slopes would be"
                " biased."
            )
            return
        if left_out:
            self.not_pooled["slope"] = f"Left out: {', '.join(left_out)}."
        with_slope = [fit for fit in fits if not np.isnan(fit.slope_variance)]
        if len(with_slope) < _FEWEST_CLUSTERS:
            clusters = "cluster" if len(with_slope) == 1 else "clusters"
            self.not_pooled["slope"] = (
                f"{len(with_slope)} {clusters} with an estimate: at least"
                f" {_FEWEST_CLUSTERS} are needed."
            )
            return
        slopes = np.array([fit.intervals["slope"][0] for fit in with_slope])
        variances = np.array([fit.slope_variance for fit in with_slope])
        mean = pooled(slopes, variances, self.level)
        low, high = prediction_limits(slopes, variances, self.level)
        # A new cluster is at least as uncertain as the mean.
        new_limits = min(low, mean.low), max(high, mean.high)
        self._add("slope", [*mean[:3], *new_limits], mean.tau)

    def _add(self, quantity, values, tau):
        """Add a pooled estimate, its limits and those of a new cluster, in this order
        in `values` (5,), and the deviation between clusters, `tau`; infinite limits
        become NaN.
        """
        values = np.array(values, dtype=np.float64)
        if not np.isfinite(values).all():
            self.not_pooled[quantity] = _NO_LIMIT
            values[1:] = np.nan  # an interval has both limits or none
        estimate, low, high, new_low, new_high = values.tolist()
        self.pooled[quantity] = IntervalEstimate(estimate, low, high)
        self.between[quantity] = float(tau)
        self.prediction[quantity] = IntervalEstimate(estimate, new_low, new_high)
