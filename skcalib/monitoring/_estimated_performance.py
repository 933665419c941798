"""Performance of a model on new samples whose labels are not known yet, or not all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from skcalib._inference.results import ResultTable
from skcalib._input.label_weights import check_weight_type
from skcalib._input.scalars import check_confidence_level, check_number
from skcalib._intervals.influence import Influence, Spread
from skcalib._verdicts import (
    count_words,
    interval_words,
    joined,
    level_words,
    percent_words,
    pvalue_words,
    rounded,
)
from skcalib.binning import BaseBinning
from skcalib.monitoring._change import CalibrationChange, calibration_change
from skcalib.monitoring._linear_metrics import SHARES, LinearMetric, linear_metrics
from skcalib.monitoring._new_samples import KnownLabels, LabelledSamples, ResidualCurve
from skcalib.monitoring._tuned_difference import TunedDifference

# How a sentence names metrics, where not by their names.
_WORDS = {"log_loss": "log-loss", "brier_score": "Brier score"}
# Above this share of new scores beyond the labelled ones there is no interval, unless
# a random sample of so few labels leaves out as much in one of 1,000 cases.
_MOST_OUTSIDE = 0.05
_RANDOM_OUTSIDE = 0.999
# A ratio such as recall is nearly normal if so many samples are expected below it.
_FEWEST_IN_DENOMINATOR = 10
_SAME_FREQUENCY = (
    "The event frequency at a given score is the same in the new samples as in the"
    " labelled ones. A change in the mix of features alone can violate this, and"
    " scores without labels cannot reveal the violation."
)
_INDEPENDENT = "Labels of new samples are independent of each other, given the scores."
_AT_RANDOM = (
    "Whether a label is known does not depend on the label itself, given the score."
)
_SAMPLED = "Labels became known independently, with the given probabilities."


@dataclass(frozen=True, eq=False, repr=False)
class EstimatedPerformance(ResultTable):
    """Table of the estimated performance on new samples, with one row per metric.

    Parameters
    ----------
    metric : ndarray of str
        Names of the metrics. If few labels are known, a second row for each metric,
        "... (known labels only)", gives the estimate from these labels alone.
    estimate, low, high : ndarray of float
        Estimates and confidence limits of the values of the metric on the new samples.
        Limits that are not determined by the data are NaN.
    reason : ndarray of str
        The reason why limits are NaN; an empty string if they are not.
    outside : float
        Share of new scores outside the range of the labelled scores.
    n_labelled, n_new, n_known : int
        Number of labelled samples, of new samples, and of new samples whose label is
        known.
    confidence_level : float
        Coverage of each interval.
    assumptions : tuple of str
        Conditions for the estimates to be valid.
    change : CalibrationChange or None
        Comparison of the labelled samples with the new samples whose labels are known.
        If there are few of these, its test detects only large changes. None if there
        are fewer than two.
    """

    _prints_table = False

    metric: np.ndarray
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    reason: np.ndarray
    outside: float
    n_labelled: int
    n_new: int
    n_known: int
    confidence_level: float
    assumptions: tuple
    change: CalibrationChange | None = None

    def _sentences(self):
        """Say the estimate of each metric, and what it assumes."""
        level = level_words(self.confidence_level)
        rows = zip(
            self.metric, self.estimate, self.low, self.high, self.reason, strict=True
        )
        found = []
        for name, estimate, low, high, reason in rows:
            size = interval_words(estimate, low, high, level=level)
            if reason:
                size = f"{rounded(estimate)} (no interval: {reason})"
            else:
                level = ""  # the first interval names it
            found.append(f"{_WORDS.get(name, name.replace('_', ' '))} {size}")
        known = f"{self.n_known:,}" if self.n_known else "none"
        lines = [
            f"Estimated {joined(found)}.",
            f"These estimates are for {self.n_new:,} new samples, {known} of them"
            f" labelled, and are based on {self.n_labelled:,} labelled samples.",
        ]
        if self.outside > 0:
            lines.append(
                f"{percent_words(self.outside, self.n_new)} of the new scores lie"
                " outside the range of the labelled ones."
            )
        lines.append("Assumptions:")
        lines.extend(f"- {assumption}" for assumption in self.assumptions)
        if self.change is not None:
            lines.append(
                "Test of whether the event frequency at a given score has changed,"
                " based on the labels known so far:"
                f" {pvalue_words(self.change.pvalue)}."
            )
        return "\n".join(lines)


def estimated_performance(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    y_proba_new: ArrayLike,
    *,
    metrics: Sequence[str | Callable] = (
        "accuracy",
        "event_frequency",
        "log_loss",
        "brier_score",
    ),
    threshold: float = 0.5,
    y_new: ArrayLike | None = None,
    sampling_probability: float | ArrayLike | None = None,
    missing: Literal["at_random"] | None = None,
    binning: BaseBinning | int | None = None,
    confidence_level: float = 0.9,
    sample_weight: ArrayLike | None = None,
    weight_type: Literal["frequency", "importance"] | dict = "frequency",
    clusters: ArrayLike | None = None,
    pos_label: int | float | bool | str | None = None,
    labels: ArrayLike | None = None,
) -> EstimatedPerformance:
    """Estimate the performance on new samples before their labels are known.

    Labelled samples show how often events occur at each score. If this relationship has
    not changed, accuracy, event frequency, log-loss and Brier score can be estimated
    from the new scores alone, with intervals that account for the uncertainty in both
    data sets. If some of the new labels are already available, pass them as `y_new`.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of the labelled samples.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities of the labelled samples, in [0, 1]. For K > 2 classes, the score
        is the probability of the predicted class, and the event is that this class is
        correct.
    y_proba_new : array-like of shape (m,), (m, 2) or (m, K)
        Probabilities of the new samples.
    metrics : sequence of str and callable, default=("accuracy", "event_frequency", \
"log_loss", "brier_score")
        Metrics to estimate. "precision", "recall" and "false_positive_rate" are also
        available for two classes, as are callables ``metric(scores, labels)`` that
        return a value for each sample, given scores (m,) and labels (m,) of 0 and 1;
        the estimate is the mean of these values.
    threshold : float, default=0.5
        Score at or above which the event is predicted, for two classes.
    y_new : array-like of shape (m,), default=None
        Labels of the new samples, with NaN or None for unknown labels.
    sampling_probability : float or array-like of shape (m,), default=None
        Probability in (0, 1] with which the label of each new sample became known; it
        may depend on the label. It may be NaN if the label is unknown.
    missing : {"at_random"}, default=None
        Declares that unknown labels are missing at random: given the score, whether a
        label is known does not depend on the label.
    binning : BaseBinning, int or None, default=None
        Bins of the labelled scores in which mean residuals are computed; None means
        ``ceil(2 * n**(1/3))`` equal-mass bins. The threshold is always an edge.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).
    sample_weight : array-like of shape (n,), default=None
        Weights of the labelled samples; see `weight_type`.
    weight_type : {"frequency", "importance"} or dict, default="frequency"
        "frequency": weights count samples. "importance": each sample was observed once
        and represents more or less than one.
        A dict gives the weight that each sample would have with each of two labels,
        a number or an array; see `skcalib.evaluation.describe_weights`.
    clusters : array-like of shape (n,), default=None
        Cluster of each labelled sample, such as a patient; samples in the same cluster
        may be dependent.
    pos_label : int, float, bool or str, default=None
        Label of the event. None means the greater of the two labels, which corresponds
        to the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    performance : EstimatedPerformance
        Table `metric, estimate, low, high, reason`, with the attributes `outside`,
        `assumptions` and, if there are labels in `y_new`, `change`.

    Raises
    ------
    ValueError
        If labels, scores or options are inconsistent, or if `y_new` has unknown labels
        and neither `sampling_probability` nor ``missing="at_random"`` is given.

    See Also
    --------
    skcalib.monitoring.calibration_change : Tests the assumption once the labels are
        known.
    skcalib.monitoring.CalibrationMonitor : Monitors calibration as labels arrive, and
        raises alarms.

    Notes
    -----
    For a metric that is linear in the label, ``A(s) + y B(s)``, the estimate is the
    mean over new scores t of ``A(t) + B(t) f(t)``. Here f(t) is t plus the mean
    residual y - s of the labelled samples in the bin of t, clipped to [0, 1]. The
    variance of the estimate is ``sum c_b^2 v_b / n_b`` over bins, where c_b is the sum
    of B in the bin, divided by m, and ``v_b = f (1 - f)`` with f = (events + 1/2) /
    (n_b + 1), plus ``sum B^2 f (1 - f) / m^2`` for the labels of the new samples.
    Ratios (precision, recall, false positive rate) are handled by the delta method,
    with the covariance of numerator and denominator.

    If the distributions of labelled and new scores do not differ detectably
    (Kolmogorov-Smirnov, p >= 0.05), as when samples are labelled at random, a straight
    line replaces the bins: with z = y B(s) and g = s B(s), the estimate is
    the mean of A(t), plus the mean of z, plus lambda times the difference of the means
    of g between new and labelled samples. Lambda is the slope of z against g, so that
    useless scores do no harm [1]_. The variance of its residuals, with n - 2 degrees
    of freedom, is divided by n for the labelled samples, and by m for the new ones.
    Clusters, importance weights, `binning`, and fewer than 30 labelled or new samples
    keep the bins.

    If importance weights say nothing of the other label, the first sum over bins is
    replaced by that of squared residuals, each about the mean of the others in its bin
    (HC3). With `clusters`, it is replaced by the jackknife variance of the clusters'
    sums (CR3) if that is larger, and the quantiles are those of Student's t
    distribution with Satterthwaite degrees of freedom. If the effective number of
    clusters is below three, the limits are NaN.

    With known labels and their sampling probabilities pi, the estimate is the mean of
    ``A + B (q f + (y - q f) / pi)``, with the second term for known labels only; this
    is the augmented inverse-probability-weighted (AIPW) estimate, where q in [0, 1] is
    chosen to minimise the variance [1]_. The estimate is valid even if the calibration
    curve has changed. With ``missing="at_random"``, pi is the share of known labels
    among samples with similar scores. With fewer than 30 known labels, or fewer than 10
    of the rarer class, a second row for each metric gives the estimate from the known
    labels alone.

    If more than 5% of the new scores lie outside the range of the labelled scores,
    and more than a random sample of n labels would leave out, `low` and `high` are NaN
    unless the straight line is used.

    References
    ----------
    .. [1] Angelopoulos, Duchi and Zrnic (2023), PPI++: efficient prediction-powered
        inference.

    Examples
    --------
    The labels of last month are known; those of this month are not:

    >>> import numpy as np
    >>> from skcalib.monitoring import estimated_performance
    >>> rng = np.random.default_rng(0)
    >>> last_month, this_month = rng.beta(2, 2, 5000), rng.beta(1, 4, 3000)
    >>> y_last_month = rng.random(5000) < last_month**1.5
    >>> y_this_month = rng.random(3000) < this_month**1.5  # not known yet
    >>> expected = estimated_performance(y_last_month, last_month, this_month)
    >>> for name, low, high in zip(expected.metric, expected.low, expected.high):
    ...     print(f"{name}: {low:.3f} to {high:.3f}")
    accuracy: 0.879 to 0.903
    event_frequency: 0.093 to 0.117
    log_loss: 0.274 to 0.318
    brier_score: 0.080 to 0.094
    >>> round(float(y_this_month.mean()), 3)
    0.098
    """
    level = check_confidence_level(confidence_level)
    check_weight_type(weight_type)
    threshold = check_number(threshold, "threshold", at_least=0, at_most=1)
    labelled = LabelledSamples(
        y_true, y_proba, sample_weight, weight_type, clusters, pos_label, labels
    )
    scores, predicted = labelled.new_scores(y_proba_new)
    if not labelled.is_binary:
        # The event is "the predicted class is right", which is always predicted.
        threshold = 0.0
    by_name = linear_metrics(metrics, threshold, labelled.is_binary)
    curve = ResidualCurve(labelled, scores, binning, threshold)
    outside = float(np.mean((scores < labelled.lowest) | (scores > labelled.highest)))
    known = KnownLabels(
        y_new, scores, predicted, labelled, sampling_probability, missing
    )
    reason = _reason_for_outside(outside, labelled)
    # `line`: a regression on the scores, if labelled and new samples have similar ones
    line = None
    if binning is None and not known.are_enough:
        difference = TunedDifference(labelled, scores)
        if difference.is_valid(has_bins=not reason):
            line = difference
    rows = []
    for name, metric_of in by_name.items():
        metric = metric_of(scores)
        if known.are_enough:
            limits = _from_scores_and_labels(name, metric, curve, known, level)
            rows.append((name, *limits))
            continue
        limits = None
        if line is not None:
            of_labelled = metric_of(labelled.scores)
            limits = _from_line(name, metric, of_labelled, curve, line, level)
        if limits is None:
            limits = _from_scores(name, metric, curve, reason, level)
        rows.append((name, *limits))
        if known.is_known.any():
            rows.append((f"{name} (known labels only)", *_from_labels(metric, known)))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    name, estimate, low, high, reason = columns
    return EstimatedPerformance(
        metric=name,
        estimate=estimate,
        low=low,
        high=high,
        reason=reason.astype(object),
        outside=outside,
        n_labelled=len(labelled.scores),
        n_new=len(scores),
        n_known=int(known.is_known.sum()),
        confidence_level=level,
        assumptions=_assumptions(known, line),
        change=_change(labelled, scores, known),
    )


def _reason_for_outside(outside, labelled):
    """Return why there are no limits if a large share of the new scores, `outside`,
    lies beyond the range of the labelled ones; "" if it is small. For random samples,
    with n of them labelled, this share has the distribution Beta(2, n - 1).
    """
    n_labelled = len(labelled.scores)
    most = _MOST_OUTSIDE
    if n_labelled > 1:
        most = max(most, betaincinv(2, n_labelled - 1, _RANDOM_OUTSIDE))
    if outside <= most:
        return ""
    return (
        f"{percent_words(outside)} of the new scores lie outside the range of the"
        " labelled ones"
    )


def _from_line(name, metric, labelled_metric, curve, line, level):
    """Return (estimate, low, high, reason) of a metric without labels of the new
    samples, by the `TunedDifference` `line`; None if a line predicts every label.
    `metric` holds the terms of the metric at the new scores, `labelled_metric` those at
    the labelled ones; a ratio is linearised around the event frequencies of the
    `curve`.
    """
    reason = _reason_for_ratio(metric, curve.frequency)
    if reason:
        return metric.value(curve.frequency), np.nan, np.nan, reason
    constant, slope = metric.linearised(curve.frequency)
    slope_of_labelled = labelled_metric.slope
    if metric.is_ratio:
        value = metric.value(curve.frequency)
        denominator = metric.denominator(curve.frequency)
        # the delta method for a ratio: (numerator - value * denominator) / its mean
        slope_of_labelled = (
            slope_of_labelled - value * labelled_metric.denominator_slope
        )
        slope_of_labelled = slope_of_labelled / denominator
    estimate, spread = line.estimate(constant, slope, slope_of_labelled)
    if spread.standard_error == 0:
        return None
    half_width, _ = spread.half_width(level)
    return _limits(name, estimate, half_width)


def _from_scores(name, metric, curve, reason_for_outside, level):
    """Return (estimate, low, high, reason) of a metric without labels of the new
    samples, by the `ResidualCurve`; `reason_for_outside` says why scores beyond the
    labelled ones leave no limits, or "".
    """
    # The metric with each unknown label replaced by its estimated probability.
    estimate = metric.value(curve.frequency)
    reason = reason_for_outside or _reason_for_ratio(metric, curve.frequency)
    if reason:
        return estimate, np.nan, np.nan, reason
    # As a function of the labels y the metric is the mean of constant + slope * y: the
    # slopes decide its variance.
    _, slope = metric.linearised(curve.frequency)
    spread = curve.spread_of_curve(slope)
    if spread.reason:
        return estimate, np.nan, np.nan, spread.reason
    curve_variance = spread.standard_error**2
    variance = curve_variance + curve.variance_of_labels(slope)
    # Satterthwaite's degrees of freedom (Biometrics Bulletin 2, 1946) of a sum of
    # variances: (v1 + v2)^2 / (v1^2 / df1 + v2^2 / df2). Here v1 is that of the curve.
    # That of the labels, v2, is known (df2 is infinite), which leaves
    # df1 ((v1 + v2) / v1)^2.
    degrees = spread.degrees
    if curve_variance > 0:
        degrees *= (variance / curve_variance) ** 2
    half_width = 0.0  # where the metric does not depend on the labels
    if variance > 0:
        half_width, _ = Spread(np.sqrt(variance), degrees).half_width(level)
    return _limits(name, estimate, half_width)


def _from_scores_and_labels(name, metric, curve, known, level):
    """Return (estimate, low, high, reason) of a metric by augmented inverse-probability
    weighting: the labels `known` among the new samples, weighted by 1 / probability of
    being known, and the `ResidualCurve` for the rest.
    """
    # A ratio is linearised around the best guess of each label; a second step around
    # the estimate itself would change it by less than a standard error's square.
    guess = known.filled(curve.frequency)
    reason = _reason_for_ratio(metric, guess)
    if reason:
        return metric.value(guess), np.nan, np.nan, reason
    # The metric is the mean of constant + slope * label.
    constant, slope = metric.linearised(guess)
    # Each known label stands for 1 / probability rows, (n_new,). The curve's forecast
    # for the same rows, less its forecast for all rows, has the expectation 0: it is a
    # control variate, which reduces the variance.
    by_label = slope * known.label * known.is_known / known.probability
    control = slope * curve.frequency * (known.is_known / known.probability - 1)
    terms = constant + by_label - _best_factor(by_label, control) * control
    estimate = float(np.mean(terms))
    if not slope.any():  # the metric does not depend on the labels
        return _limits(name, estimate, 0.0)
    # Each row was seen once, whatever its probability of being labelled.
    influence = Influence(terms - estimate, importance=True)
    half_width, reason = influence.half_width(level)
    if reason:
        return estimate, np.nan, np.nan, reason
    return _limits(name, estimate, half_width)


def _from_labels(metric, known):
    """Return (estimate, nan, nan, reason) of the known labels alone, each weighted by 1
    / probability.
    """
    weight = known.is_known / known.probability
    # With a mean of 1 the weights turn each mean over samples, of constant + slope *
    # label, into a weighted mean: constant and slope are multiplied by them.
    weight = weight / weight.mean()
    weighted = LinearMetric(metric.constant * weight, metric.slope * weight)
    if metric.is_ratio:
        weighted = LinearMetric(
            weighted.constant,
            weighted.slope,
            metric.denominator_constant * weight,
            metric.denominator_slope * weight,
        )
    return weighted.value(known.label), np.nan, np.nan, known.reason_for_few


def _limits(name, estimate, half_width):
    """Return (estimate, low, high, ""), with the limits clipped to the range of the
    metric: [0, 1] for shares, at least 0 for the log-loss.
    """
    low = estimate - half_width
    high = estimate + half_width
    if name in SHARES or name == "log_loss":
        low = max(low, 0.0)
    if name in SHARES:
        high = min(high, 1.0)
    return estimate, float(low), float(high), ""


def _reason_for_ratio(metric, label):
    """Return why a ratio has no interval: few samples are expected in its denominator.
    "" if there are enough; `label` (n_new,) may be expected labels.
    """
    if not metric.is_ratio:
        return ""
    expected = metric.denominator(label) * len(label)
    if expected >= _FEWEST_IN_DENOMINATOR:
        return ""
    return (
        f"about {count_words(round(expected))} samples are expected in its denominator"
    )


def _best_factor(by_label, control):
    """Return the f in [0, 1] for which ``by_label - f * control`` has the least
    variance: the regression coefficient, cut at 0 and 1.
    """
    centred = control - control.mean()
    variance = np.mean(centred**2)
    if variance == 0:
        return 0.0
    covariance = np.mean(centred * (by_label - by_label.mean()))
    return float(np.clip(covariance / variance, 0, 1))


def _assumptions(known, line):
    """Return the assumptions of the estimate as sentences, by which labels are known,
    and whether a `line` was used.
    """
    if known.are_enough and known.is_known.all():
        return (_INDEPENDENT,)
    assumptions = []
    if not known.are_enough:
        assumptions.append(_SAME_FREQUENCY)
    if line is not None:
        assumptions.append(
            "Labelled and new samples come from one population. Their scores do not"
            f" differ detectably ({pvalue_words(line.pvalue)})."
        )
    if known.is_known.any() and not known.is_known.all():
        assumptions.append(_SAMPLED if known.sampled else _AT_RANDOM)
    return (*assumptions, _INDEPENDENT)


def _change(labelled, scores, known):
    """Return the `CalibrationChange` from the labelled samples to the new ones whose
    label is known; None where these are too few.
    """
    rows = known.is_known
    n_known = int(rows.sum())
    if n_known == 0:
        return None
    clusters = None
    if labelled.cluster is not None:
        # Each new sample is taken as a cluster of its own.
        first = labelled.cluster.max() + 1
        clusters = (labelled.cluster, first + np.arange(n_known))
    weights, weight_type = _weights_of_change(labelled, known)
    # The default bins of the error may be too small for few or tied scores: one bin is
    # tried then.
    for binning in (None, 1):
        try:
            return calibration_change(
                labelled.events,
                labelled.scores,
                known.label[rows] > 0,
                scores[rows],
                binning=binning,
                sample_weight=weights,
                weight_type=weight_type,
                clusters=clusters,
                labels=[False, True],
                random_state=0,
            )
        except ValueError:
            continue
    return None


def _weights_of_change(labelled, known):
    """Return the pair of weights for `_change`, or None, and their `weight_type`. A
    label that became known with a lower probability stands for more samples: its
    importance weight is 1 / probability.
    """
    known_probability = known.probability[known.is_known]
    is_uneven = known.sampled and np.ptp(known_probability) > 0
    if labelled.weight is None and not is_uneven:
        return None, "frequency"
    labelled_weight = labelled.weight
    if labelled_weight is None:
        labelled_weight = np.ones(len(labelled.scores))
    if is_uneven:
        return (labelled_weight, 1 / known_probability), "importance"
    known_weight = np.ones(len(known_probability))
    weight_type = "importance" if labelled.is_importance else "frequency"
    return (labelled_weight, known_weight), weight_type
