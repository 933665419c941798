"""The numbers on calibration, accuracy and discrimination that reports on a model have,
each with an interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from scipy.stats import chi2
from scipy.stats import f as f_law
from sklearn.utils import check_random_state

from skcalib._cells.reductions import one_task
from skcalib._errors.bin_free import LoessError
from skcalib._guide import see
from skcalib._inference.hypotheses import Resampling, error_hypotheses
from skcalib._inference.inversion import inverted_limits
from skcalib._inference.results import IntervalEstimate, ResultTable
from skcalib._input.scalars import check_confidence_level, check_int
from skcalib._input.scored_labels import check_one_event, check_scored_labels
from skcalib._input.warn import warn
from skcalib._intervals.sandwich import LogisticRows
from skcalib._rows.blocks import taken
from skcalib._rows.links import log_odds
from skcalib._verdicts import (
    count_words,
    interval_words,
    joined,
    level_words,
    percent_words,
    pvalue_words,
    rounded,
)
from skcalib.evaluation._summary_numbers import OF_ROWS, SummaryRows
from skcalib.metrics._slope import (
    coefficient,
    extreme_words,
    not_estimable,
    rows_and_clusters,
    slope_findings,
    slope_fit,
)

_UNDEFINED = IntervalEstimate(np.nan, np.nan, np.nan)
# What the sentences call each number.
_WORDS = {
    "observed_expected": "the ratio of observed to expected events was",
    "intercept": "calibration in the large",
    "slope": "the calibration slope",
    "ici": "the integrated calibration index was",
    "e50": "E50",
    "e90": "E90",
    "emax": "Emax",
    "brier_score": "The Brier score was",
    "scaled_brier_score": "the scaled Brier score",
    "auc": "the area under the ROC curve",
}
_NAMES = {
    "observed_expected": "Ratio of observed to expected events",
    "intercept": "Calibration in the large",
    "slope": "Calibration slope",
    "ici": "ICI",
    "e50": "E50",
    "e90": "E90",
    "emax": "Emax",
    "brier_score": "Brier score",
    "scaled_brier_score": "Scaled Brier score",
    "auc": "Area under the ROC curve",
    "dxy": "Somers' Dxy",
}
# Quantile of the distance between smooth curve and score; None stands for the mean.
_QUANTILES = {"ici": None, "e50": 0.5, "e90": 0.9, "emax": 1.0}


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationSummary(ResultTable):
    """Statistics usually reported for a model, mostly with intervals. ``print`` gives a
    verdict on calibration and, in the second line, a paragraph for a paper.

    Parameters
    ----------
    n, n_events : float
        Number of samples and of events; with frequency weights, the sums of the
        weights.
    mean_score, event_frequency : float
        Weighted mean probability and share of events.
    observed_expected : IntervalEstimate
        Ratio of observed to expected events: 1 for calibrated scores, above 1 if they
        are too low.
    intercept, slope : IntervalEstimate
        See `calibration_slope_intercept`.
    ici, e50, e90, emax : IntervalEstimate
        Mean, median, 90% quantile and maximum over rows of the distance between the
        smooth calibration curve and the score.
    brier_score, scaled_brier_score : IntervalEstimate
        Mean of (s - y)^2, and its relative reduction compared with predicting the event
        frequency for every sample.
    auc : IntervalEstimate
        Area under the ROC curve (concordance).
    dxy : IntervalEstimate
        Somers' Dxy, ``2 auc - 1``.
    unreliability, joint_pvalue : float
        U of R's ``val.prob``, and the p-value of the hypothesis that the intercept is 0
        and the slope is 1 (U:p).
    nagelkerke_r2 : float
        Nagelkerke's R^2 of the probabilities (R2 of ``val.prob``).
    eci : float
        Estimated calibration index: 100 times the mean squared distance between the
        smooth curve and the scores.
    n_extreme : float
        Number of rows whose score is exactly 0 or 1; with frequency weights, the sum of
        their weights.
    inner_slope : IntervalEstimate
        The slope for the samples with other scores; equal to `slope` if `n_extreme` is
        0.
    confidence_level : float
        Coverage of each interval, in (0, 1).
    n_clusters : int or None
        Number of clusters taken into account in the intervals; None without `clusters`.
    reasons : dict
        Maps the name of a statistic to the reason why it or its limits are NaN.
    """

    _prints_table = False

    n: float
    n_events: float
    mean_score: float
    event_frequency: float
    observed_expected: IntervalEstimate
    intercept: IntervalEstimate
    slope: IntervalEstimate
    ici: IntervalEstimate
    e50: IntervalEstimate
    e90: IntervalEstimate
    emax: IntervalEstimate
    brier_score: IntervalEstimate
    scaled_brier_score: IntervalEstimate
    auc: IntervalEstimate
    dxy: IntervalEstimate
    unreliability: float
    joint_pvalue: float
    nagelkerke_r2: float
    eci: float
    n_extreme: float
    inner_slope: IntervalEstimate
    confidence_level: float
    n_clusters: int | None
    reasons: dict

    def columns(self):
        """Return the statistics as columns.

        Returns
        -------
        columns : dict
            `statistic`, `estimate`, `low` and `high`.
        """
        columns = {"statistic": list(_WORDS), "estimate": [], "low": [], "high": []}
        for name in _WORDS:
            interval = getattr(self, name)
            columns["estimate"].append(interval.estimate)
            columns["low"].append(interval.low)
            columns["high"].append(interval.high)
        return columns

    def _sentences(self):
        """Return the verdict, and the paragraph below it."""
        return f"{self._verdict()}\n{self._paragraph()}"

    def _verdict(self):
        """Return what the limits of slope and intercept say, or else their test."""
        findings = slope_findings(self.slope, self.intercept)
        if findings:
            return f"Miscalibrated: the scores are {joined(findings)}."
        if np.isnan(self.joint_pvalue):
            return "Whether the scores are calibrated cannot be tested."
        shown = pvalue_words(self.joint_pvalue)
        if self.joint_pvalue < 1 - self.confidence_level:
            return (
                "Miscalibrated: the joint test rejects intercept 0 and slope 1"
                f" ({shown})."
            )
        return (
            "No miscalibration is detectable by the joint test of intercept 0 and slope"
            f" 1 ({shown})."
        )

    def _paragraph(self):
        """Return the numbers as a paragraph for a paper, with the items of the
        TRIPOD+AI checklist that it covers.
        """
        level = f"{level_words(self.confidence_level)} CI"
        clauses = {}
        for name, words in _WORDS.items():
            clauses[name] = f"{words} {_shown(getattr(self, name))}"
        # The first interval names the confidence level.
        ratio = _shown(self.observed_expected, level)
        clauses["observed_expected"] = f"{_WORDS['observed_expected']} {ratio}"
        frequency = percent_words(self.event_frequency, self.n)
        mean_score = percent_words(self.mean_score, self.n)
        weighted = ""
        if abs(self.n_events / self.n - self.event_frequency) > 1e-9:
            weighted = "weighted "  # a count never stands beside another share
        joint = ""
        if not np.isnan(self.joint_pvalue):
            shown = pvalue_words(self.joint_pvalue)
            joint = f"; the joint test of intercept 0 and slope 1 gave {shown}"
        text = (
            f"In {count_words(self.n)} samples with {count_words(self.n_events)} events"
            f" ({weighted}{frequency}; {weighted}mean predicted probability"
            f" {mean_score}), {clauses['observed_expected']}, {clauses['intercept']}"
            f" and {clauses['slope']}{joint}. Against a smooth calibration curve"
            f" (loess), {clauses['ici']}, {clauses['e50']}, {clauses['e90']} and"
            f" {clauses['emax']}. {clauses['brier_score']},"
            f" {clauses['scaled_brier_score']} and {clauses['auc']}. "
        )
        if self.n_extreme:
            text += (
                f"{extreme_words(self.n_extreme)}. For the slope, scores are clipped to"
                " [2^-52, 1 - 2^-52]; without those of 0 or 1, the slope is"
                f" {_shown(self.inner_slope)}. "
            )
        text += self._outside_words()
        if self.n_clusters:
            text += (
                f"Intervals allow for the dependence of samples in {self.n_clusters}"
                " clusters. "
            )
        names_by_reason = {}
        for name, reason in self.reasons.items():
            names_by_reason.setdefault(reason, []).append(name)
        for reason, names in names_by_reason.items():
            # A p-value, which is a number without limits, is counted as not defined.
            estimates = [
                getattr(getattr(self, name), "estimate", np.nan) for name in names
            ]
            lead = "Not defined" if np.all(np.isnan(estimates)) else "No interval"
            text += f"{lead}: {' and '.join(names)} ({reason.rstrip('.')}). "
        items = "12d, 12e" if self.n_clusters else "12e"
        return f"{text}(TRIPOD+AI items {items}, 20a and 23a.)"

    def _outside_words(self):
        """Return the sentence on estimates outside their limits, if there are any."""
        outside = []
        for name in _WORDS:
            estimate, low, high = getattr(self, name)
            if estimate < low or estimate > high:
                outside.append(_NAMES[name])
        if outside:
            estimates = "estimate" if len(outside) == 1 else "estimates"
            lies = "lies outside its" if len(outside) == 1 else "lie outside their"
            return (
                f"The {estimates} of {joined(outside)} {lies} limits, which allow for"
                " label noise. "
            )
        return ""


def calibration_summary(
    y_true: ArrayLike,
    y_proba: ArrayLike | None = None,
    *,
    confidence_level: float = 0.95,
    n_resamples: int = 199,
    sample_weight: ArrayLike | None = None,
    weight_type: Literal["frequency", "importance"] | dict = "frequency",
    clusters: ArrayLike | None = None,
    pos_label: float | str | None = None,
    labels: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> CalibrationSummary:
    """Calibration, accuracy and discrimination of a model, with intervals.

    The statistics are those of R's ``val.prob`` and of the TRIPOD+AI guideline [1]_.
    ``print`` formats the result as a paragraph for a paper.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,) or (n, 2)
        Probabilities in [0, 1] for data to which the model was not fitted.
    confidence_level : float, default=0.95
        Coverage of each interval, in (0, 1); 0.95 is usual in reports on prediction
        models.
    n_resamples : int, default=199
        Number of label draws for the intervals of `ici`, `e50`, `e90` and `emax`. The
        default is small because a smooth curve is fitted for each draw.
    sample_weight : array-like of shape (n,), default=None
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"} or dict, default="frequency"
        Meaning of the weights. "frequency": a weight of 2 means two identical samples.
        "importance": each sample was observed once and represents more or less than one
        (to correct for the sampling design).
        A dict gives the weight that each sample would have with each of two labels,
        a number or an array; see `skcalib.evaluation.describe_weights`.
    clusters : array-like of shape (n,), default=None
        Cluster of each sample: dependent samples (from one patient or centre) share a
        value.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (2,), default=None
        The sorted labels of the columns.
    random_state : int, RandomState instance or None, default=None
        Seed for the random draws.

    Returns
    -------
    summary : CalibrationSummary
        Frozen object with one `IntervalEstimate` per statistic, ``to_frame()``, and a
        paragraph of text that ``str`` returns.

    Raises
    ------
    ValueError
        If labels, probabilities, weights or clusters are inconsistent, or if there are
        more than two classes or only one cluster.

    Warns
    -----
    UserWarning
        If weights are not integers and ``weight_type="frequency"``, if clusters have
        few expected events, or if the clipping of scores of exactly 0 or 1 determines
        the slope.

    See Also
    --------
    skcalib.metrics.calibration_slope_intercept : The slope and the intercept alone.
    skcalib.decisions.net_benefit : The value of decisions based on the scores.
    skcalib.displays.ReliabilityDisplay : Plots the curve, and accepts these results as
        ``statistics=``.

    Notes
    -----
    The smooth curve is R's ``loess(y ~ s)``, as in [2]_: local parabolas fitted to the
    nearest 75% of the samples. Scores are first merged to at most 128 values, at which
    the curve is computed. The curve agrees with that of R to all digits at the points
    at which R also computes its curve. R interpolates between these points and extends
    the curve to the outermost samples, so the ICI differs by about .0005, and Emax by
    more. If a parabola leaves [0, 1], the curve is clipped, unlike in R. `ici`, `e50`,
    `e90` and `emax` are above 0 even for calibrated scores, because of the noise in the
    labels. Their intervals account for this by test inversion, as in
    `calibration_error_interval`, so an estimate may lie above its interval.

    The other intervals are valid for any number of events. The interval for the ratio
    is exact if the true log-odds differ from those of the scores by a constant (for
    equal scores, it is the Clopper-Pearson interval), and wider otherwise. The interval
    for the Brier score is a gamma interval. If a few samples contribute most of the
    loss, it is Garwood's interval for a Poisson count [3]_; the lower limit accounts
    for samples with zero loss. The interval for the AUC is computed by Newcombe's
    method 5 [4]_, and is wider if DeLong's variance is larger. If there are only a few
    events and one of them occasionally has a low score, the upper limit is too low:
    with 15 events and an AUC of .99, the coverage of a 95% interval was .92 in a
    simulation. The intervals for slope and intercept are those of
    `calibration_slope_intercept`. With clusters or importance weights, sample sizes are
    divided by the design effect, and the interval for the AUC uses DeLong's variance on
    the log-odds scale. With fewer than 10 events or non-events, this interval and that
    of the scaled Brier score are NaN.

    The guide "Do the guarantees hold?" reports the coverage of these intervals.

    In R, ``val.prob`` from the rms package prints `dxy` as Dxy, `unreliability` as U,
    `joint_pvalue` as U:p, `nagelkerke_r2` as R2, and `slope` as Slope. `intercept` is
    that of ``glm`` with the log-odds as offset, `auc` that of ``pROC::roc``, and `eci`
    that of ``CalibrationCurves::val.prob.ci.2``. With clusters or importance weights,
    the joint test is a Wald test with the sandwich estimator. Scores of exactly 0 and 1
    are excluded from `unreliability`, `joint_pvalue` and `nagelkerke_r2`, as in R.

    A statistic that is undefined is NaN, and `reasons` gives the reason: for example,
    the slope for a single distinct score, or the AUC for one class.

    References
    ----------
    .. [1] Collins and others (2024), TRIPOD+AI statement.
    .. [2] Austin and Steyerberg (2019), The Integrated Calibration Index (ICI) and
        related metrics.
    .. [3] Fay and Feuer (1997), Confidence intervals for directly standardized rates: a
        method based on the gamma distribution.
    .. [4] Newcombe (2006), Confidence intervals for an effect size measure based on the
        Mann-Whitney statistic, part 2.

    Examples
    --------
    All scores are equal, and twice as many events occur as expected: log 3 is the
    distance between 1/4 and 1/2 on the log-odds scale.

    >>> from skcalib.evaluation import calibration_summary
    >>> summary = calibration_summary([1, 0] * 20, [0.25] * 40, random_state=0)
    >>> (
    ...     summary.observed_expected.estimate,
    ...     round(summary.intercept.estimate, 4),
    ...     summary.ici.estimate,
    ... )
    (2.0, 1.0986, 0.25)
    >>> summary.reasons["slope"]
    'y_proba has one distinct score (0.25): there is no calibration slope.'
    """
    level = check_confidence_level(confidence_level)
    check_int(n_resamples, "n_resamples")
    options = {
        "sample_weight": sample_weight,
        "pos_label": pos_label,
        "labels": labels,
        "drop": False,
    }
    data = check_scored_labels(y_true, y_proba, **options)
    check_one_event(data, "the summary")
    data, cluster = rows_and_clusters(data, clusters, weight_type)
    task = one_task(data, "auto")
    rows = SummaryRows.of_task(task, weight_type, cluster, level)
    # By name of the statistic: why it or its limits are not defined, and its interval.
    reasons = not_estimable(task)
    numbers = {}
    for name in ("intercept", "slope"):
        if name not in reasons:
            numbers[name] = coefficient(task, name, level, weight_type, cluster)
    for name, compute in OF_ROWS.items():
        interval_or_reason = compute(rows)
        if isinstance(interval_or_reason, str):
            reasons[name] = interval_or_reason
        else:
            numbers[name] = interval_or_reason
    if "auc" in numbers:
        # Somers' Dxy
        numbers["dxy"] = _rescaled(numbers["auc"], 2, -1)
    resampling = Resampling(
        n_resamples,
        check_random_state(random_state),
        cluster,
    )
    # Draws of the smooth curve under calibration and other true errors, for limits.
    hypotheses = error_hypotheses(LoessError(), data, resampling)
    numbers |= _distances(task, hypotheses, (1 - level) / 2)
    # The estimated calibration index (Van Hoorde et al. 2015): 100 times the mean
    # squared distance of the smooth curve from the scores.
    smooth = LoessError().of_task(task)
    gap = smooth.curve(smooth.cells.event_frequency) - smooth.scores
    eci = 100 * float(gap**2 @ smooth.share)
    for name, number in numbers.items():
        if np.isnan(number.low):
            reasons[name] = number.reason
    counts = rows.weight
    if rows.is_importance:
        counts = np.ones(len(rows.weight))
    is_extreme = (rows.scores == 0) | (rows.scores == 1)
    n_extreme = float(counts @ is_extreme)
    slope = numbers.get("slope", _UNDEFINED)
    joint, inner_slope, joint_reasons = _without_extremes(task, rows, is_extreme, slope)
    reasons |= joint_reasons
    estimates = _described(numbers, level)
    n_clusters = None
    if cluster is not None:
        n_clusters = int(cluster.max()) + 1
    return CalibrationSummary(
        n=float(counts.sum()),
        n_events=float(counts @ rows.labels),
        mean_score=float(np.average(rows.scores, weights=rows.weight)),
        event_frequency=float(np.average(rows.labels, weights=rows.weight)),
        **estimates,
        unreliability=joint.unreliability,
        joint_pvalue=joint.pvalue,
        nagelkerke_r2=joint.nagelkerke_r2,
        eci=eci,
        n_extreme=n_extreme,
        inner_slope=inner_slope,
        confidence_level=level,
        n_clusters=n_clusters,
        reasons=reasons,
    )


def _described(numbers, level):
    """Return the intervals of a summary by name, each with what it is; `numbers` lacks
    those that are not defined.
    """
    intervals = {}
    for name, quantity in _NAMES.items():
        number = numbers.get(name, _UNDEFINED)
        intervals[name] = number._described(quantity, level)
    return intervals


class _JointTest(NamedTuple):
    """Test of intercept 0 and slope 1, and measures of R's val.prob beside it."""

    unreliability: float
    pvalue: float
    nagelkerke_r2: float


def _without_extremes(task, rows, is_extreme, slope):
    """Return the `_JointTest` (NaN if undefined), the slope as an `IntervalEstimate`,
    and why the test is undefined (a dict, by "joint_pvalue"), without the samples that
    have scores of 0 or 1, `is_extreme` (n,); warn of these. `slope` is that of all
    samples.
    """
    inner_slope = slope
    if is_extreme.any():
        inner = ~is_extreme
        weight = task.sample_weight
        task = task._replace(
            scores=task.scores[inner],
            labels=task.labels[inner],
            sample_weight=taken(weight, inner),
        )
        rows = rows.at(inner)
        inner_slope = _UNDEFINED
    reason = "no score lies between 0 and 1"
    if len(rows.scores):
        reason = not_estimable(task).get("slope", "")
    if reason:
        return _JointTest(np.nan, np.nan, np.nan), inner_slope, {"joint_pvalue": reason}
    if is_extreme.any():
        inner_slope = coefficient(
            task,
            "slope",
            rows.level,
            "importance" if rows.is_importance else "frequency",
            rows.cluster,
        )
        warn(
            f"{extreme_words(np.count_nonzero(is_extreme))}. Clipping scores to [2^-52,"
            f" 1 - 2^-52] affects the slope of {rounded(slope.estimate)}; without those"
            f" of 0 or 1, the slope is {_shown(inner_slope)}: see inner_slope."
            f"{see('extreme-scores')}"
        )
    return _joint(task, rows), inner_slope, {}


def _joint(task, rows):
    """Return the `_JointTest`: the unreliability index U of R's val.prob, the p-value
    of "intercept 0 and slope 1", and Nagelkerke's R^2.

    `task` (`BinaryTask`) and `rows` (`SummaryRows`) hold the same samples.
    """
    score_log_odds = log_odds(rows.scores)
    coef = slope_fit(task)  # intercept and slope
    total = rows.weight.sum()
    labels = rows.labels
    weight = rows.weight

    def log_likelihood(logits):
        """Return the log-likelihood of a model with these log-odds (n,)."""
        return weight @ (labels * logits - np.logaddexp(0, logits))

    # Three models: the scores after logistic recalibration, the event frequency for
    # all rows, and the scores unchanged.
    recalibrated = log_likelihood(coef[0] + coef[1] * score_log_odds)
    frequency = labels @ weight / total
    frequency_log_odds = np.log(frequency / (1 - frequency))
    constant = log_likelihood(np.full(len(labels), frequency_log_odds))
    unchanged = log_likelihood(score_log_odds)
    # The likelihood-ratio statistic, and U: the same less its two degrees of freedom,
    # per row.
    chi_squared = max(2 * (recalibrated - unchanged), 0.0)
    unreliability = (chi_squared - 2) / total
    # Nagelkerke (1991): (1 - (L0 / L)^(2 / n)) / (1 - L0^(2 / n)), L0 and L the
    # likelihoods of the constant and of the scores.
    gain = 2 * (unchanged - constant)
    r2 = -np.expm1(-gain / total) / -np.expm1(2 * constant / total)
    if rows.is_plain:
        pvalue = chi2.sf(chi_squared, 2)
    else:
        pvalue = _wald_pvalue(rows, coef, score_log_odds)
    return _JointTest(float(unreliability), float(pvalue), float(r2))


def _wald_pvalue(rows, coef, score_log_odds):
    """Return the p-value of intercept 0 and slope 1 by a Wald test with the sandwich
    covariance and Hotelling's distribution with the smaller degrees of freedom; NaN
    with too few units.
    """
    design = np.stack((np.ones(len(score_log_odds)), score_log_odds))  # (2, n)
    covariance, degrees, reasons = LogisticRows(
        design=design,
        labels=rows.labels,
        fitted=expit(coef @ design),
        scores=rows.scores,
        weight=rows.weight,
        importance=rows.is_importance,
        cluster=rows.cluster,
        label_weights=rows.label_weights,
    ).sandwich()
    if any(reasons):
        return np.nan
    error = coef - np.array([0.0, 1.0])
    square = error @ np.linalg.solve(covariance, error)
    # Hotelling's T^2 of two numbers, times (degrees - 1) / (2 degrees), has an F
    # distribution with 2 and degrees - 1 degrees of freedom.
    least = degrees.min()
    return f_law.sf(square * (least - 1) / (2 * least), 2, least - 1)


def _distances(task, hypotheses, tail):
    """Return the mean ("ici"), median ("e50"), 90 % quantile ("e90") and maximum
    ("emax") of the distance between smooth curve and scores as `IntervalEstimate`. The
    draws of the smooth error's `hypotheses` serve for all; a limit is wrong with
    probability `tail`.
    """
    smooth = LoessError().of_task(task)
    observed_curve = smooth.curve(smooth.cells.event_frequency)
    intervals = {}
    for name, quantile in _QUANTILES.items():
        distance_of_curve = partial(smooth.distance, quantile=quantile)
        estimate = float(distance_of_curve(observed_curve))
        # Draws are event frequencies, to which the curve is fitted first. Frequencies
        # without noise are a curve themselves.
        quantile_hypotheses = replace(
            hypotheses,
            statistic=partial(_fitted_distance, smooth, quantile),
            error=distance_of_curve,
            observed=estimate,
        )
        low, high = inverted_limits(quantile_hypotheses, tail)
        intervals[name] = IntervalEstimate(estimate, float(low), float(high))
    return intervals


def _fitted_distance(smooth, quantile, frequency):
    """Return the mean (`quantile` None) or a quantile of the distance between scores
    and the smooth curve of frequencies.
    """
    return smooth.distance(smooth.curve(frequency), quantile=quantile)


def _rescaled(interval, factor, offset):
    """Return the interval of ``factor * x + offset`` from that of x."""
    estimate, low, high = interval
    return IntervalEstimate(
        factor * estimate + offset,
        factor * low + offset,
        factor * high + offset,
        reason=interval.reason,
    )


def _shown(interval, level=""):
    """Return an `IntervalEstimate` as text; `level` is written before the limits."""
    if np.isnan(interval.estimate):
        return "not defined"
    if np.isnan(interval.low):
        return f"{rounded(interval.estimate)} (no interval)"
    return interval_words(*interval, level=level)
