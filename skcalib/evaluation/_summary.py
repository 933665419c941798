"""The numbers on calibration, accuracy and discrimination that reports on a model have, each with an interval."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import expit, logit
from sklearn.utils import check_random_state

from skcalib._cells.reductions import one_task
from skcalib._errors.bin_free import LoessPower
from skcalib._errors.power import Error
from skcalib._inference.hypotheses import Resampling, error_hypotheses
from skcalib._inference.influence import half_width
from skcalib._inference.inversion import inverted_limits
from skcalib._inference.results import IntervalEstimate, ResultTable
from skcalib._input.scalars import check_confidence_level, check_int
from skcalib._input.scored_labels import check_one_event, check_scored_labels
from skcalib.metrics._slope import coefficient, not_estimable, rows_and_units

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
_QUANTILES = {"ici": None, "e50": 0.5, "e90": 0.9, "emax": 1.0}


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationSummary(ResultTable):
    """The numbers that reports on a model have, each an `IntervalEstimate`. Printing it gives a paragraph to cite.

    Parameters
    ----------
    n, n_events : float
        Number of rows and of events; with weights that count rows their sums.
    mean_score, event_frequency : float
        Mean probability and share of events, weighted.
    observed_expected : IntervalEstimate
        Events per expected event: 1 for calibrated scores, above 1 where they are too low.
    intercept, slope : IntervalEstimate
        See `calibration_slope_intercept`.
    ici, e50, e90, emax : IntervalEstimate
        Mean, median, 90 % quantile and maximum over rows of the distance of a smooth calibration curve from the score.
    brier_score, scaled_brier_score : IntervalEstimate
        Mean of (s - y)^2; and the share of it that is saved against the event frequency as everybody's probability.
    auc : IntervalEstimate
        Area under the ROC curve, the concordance.
    confidence_level : float
        Coverage of each interval, in (0, 1).
    n_clusters : int or None
        Number of clusters that the intervals allow for.
    reasons : dict
        Why a number is NaN, by its name.
    """

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
    confidence_level: float
    n_clusters: int | None
    reasons: dict

    def columns(self):
        """Return the numbers as columns.

        Returns
        -------
        columns : dict
            `statistic`, `estimate`, `low` and `high`.
        """
        parts = zip(*(getattr(self, name) for name in _WORDS), strict=True)
        return {
            "statistic": list(_WORDS),
            **dict(zip(IntervalEstimate._fields, map(list, parts), strict=True)),
        }

    def __str__(self):
        level = f"{100 * self.confidence_level:g} %"
        said = {
            name: f"{words} {_shown(getattr(self, name))}"
            for name, words in _WORDS.items()
        }
        said["observed_expected"] = said["observed_expected"].replace(
            "(", f"({level} CI ", 1
        )
        observed, intercept, slope, ici, e50, e90, emax, brier, scaled, auc = (
            said.values()
        )
        text = (
            f"In {self.n:,.10g} rows with {self.n_events:,.10g} events ({100 * self.event_frequency:.3g} %; mean "
            f"predicted probability {100 * self.mean_score:.3g} %), {observed}, {intercept} and {slope}. Against a "
            f"smooth calibration curve (loess), {ici}, {e50}, {e90} and {emax}. {brier}, {scaled} and {auc}. "
        )
        if self.n_clusters:
            text += f"Intervals allow for the dependence of rows in {self.n_clusters} clusters. "
        for why in dict.fromkeys(self.reasons.values()):
            names = " and ".join(
                name for name, reason in self.reasons.items() if reason == why
            )
            text += f"Not defined: {names} ({why.rstrip('.')}). "
        return f"{text}(TRIPOD+AI items {'12d, ' * bool(self.n_clusters)}12e, 20a and 23a.)"


def calibration_summary(
    y_true,
    y_proba=None,
    *,
    confidence_level=0.95,
    n_resamples=199,
    sample_weight=None,
    weight_type="frequency",
    clusters=None,
    pos_label=None,
    labels=None,
    random_state=None,
):
    """Numbers on calibration, accuracy and discrimination that a report on a model has, each with an interval.

    They are those of R's ``val.prob`` and of the guideline TRIPOD+AI [1]_. Printed, the result is a paragraph to cite.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,) or (n, 2)
        Probabilities in [0, 1], of rows that the model was not fitted on.
    confidence_level : float, default=0.95
        Coverage of each interval, in (0, 1).
    n_resamples : int, default=199
        Number of draws of labels behind the intervals of `ici`, `e50`, `e90` and `emax`.
    sample_weight : array-like of shape (n,), default=None
        Weights; see `weight_type`.
    weight_type : {"frequency", "importance"}, default="frequency"
        What weights are. "frequency": they count rows, a weight of 2 is two rows. "importance": each row was seen once
        and stands for more or fewer (a sampling correction).
    clusters : array-like of shape (n,), default=None
        Rows that are not independent (of one patient or centre) have the same entry.
    pos_label : int, float, bool or str, default=None
        The event; None is the greater of two labels, the second column of `predict_proba`.
    labels : array-like of shape (2,), default=None
        The sorted labels of the columns.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    summary : CalibrationSummary
        Frozen object with one `IntervalEstimate` a number, ``to_frame()`` and sentences as ``str``.

    Raises
    ------
    ValueError
        For labels, probabilities, weights or clusters that do not fit together, more than two classes, and one cluster.

    Warns
    -----
    UserWarning
        For weights that are not integers with ``weight_type="frequency"``, and for clusters with few expected events.

    See Also
    --------
    skcalib.metrics.calibration_slope_intercept : The slope and the intercept alone.
    skcalib.decisions.net_benefit : What decisions are worth.
    skcalib.displays.ReliabilityDisplay : The curve; it takes these numbers as ``statistics=``.

    Notes
    -----
    The smooth curve is R's ``loess(y ~ s)``, as in [2]_: parabolas over the nearest 75 % of the rows. Scores are pooled
    to at most 128 before, and the curve is computed at these. It is R's to all digits where R computes its curve too; R
    interpolates in between and goes to the outermost rows, so that the ICI differs by about .0005, and an Emax more.
    `ici`, `e50`, `e90` and `emax` are above 0 also for calibrated scores, by the noise of labels. Their intervals allow
    for that, by the test inversion of `calibration_error_interval`, and an estimate may lie above its interval. The
    interval of the ratio is that of its logarithm; slope and intercept have those of `calibration_slope_intercept`;
    that of the AUC has DeLong's variance, on the scale of log-odds. Except for Wald intervals of slope and intercept,
    quantiles are Student's, with fewer degrees of freedom where a few rows carry the variance.

    Simulated with 400 samples of ten shapes, intervals of .95 cover .935 to .990, that of E90 in clusters .927.

    A number that has no value is NaN and `reasons` says why: the slope of one distinct score, or the AUC of one class.

    References
    ----------
    .. [1] Collins and others (2024), TRIPOD+AI statement.
    .. [2] Austin and Steyerberg (2019), The Integrated Calibration Index (ICI) and related metrics.

    Examples
    --------
    Twice as many events as expected, at one score: log 3 is the distance of 1/2 from 1/4 in log-odds.

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
    data, cluster, units = rows_and_units(data, clusters, weight_type)
    task = one_task(data, "auto")
    reasons = not_estimable(task)
    numbers = {
        name: coefficient(task, units, name, level)
        for name in ("intercept", "slope")
        if name not in reasons
    }
    weight = (
        np.ones(len(task.scores)) if task.sample_weight is None else task.sample_weight
    )
    for name, found in _means(
        task.scores.astype(np.float64), task.labels, weight
    ).items():
        if isinstance(found, str):
            reasons[name] = found
        else:
            numbers[name] = _with_limits(name, *found, level, weight, units)
    resampling = Resampling(
        n_resamples,
        check_random_state(random_state),
        cluster,
        weight_type == "importance",
    )
    numbers |= _distances(
        task, error_hypotheses(Error(LoessPower, {}), data, resampling), (1 - level) / 2
    )
    counts = np.ones(len(task.scores)) if weight_type == "importance" else weight
    totals = float(counts.sum()), float(counts @ task.labels)
    means = (
        float(np.average(values, weights=weight))
        for values in (task.scores, task.labels)
    )
    estimates = (numbers.get(name, _UNDEFINED) for name in _WORDS)
    n_clusters = None if cluster is None else int(units.max()) + 1
    return CalibrationSummary(*totals, *means, *estimates, level, n_clusters, reasons)


def _distances(task, hypotheses, tail):
    """Return mean and quantiles of the distance of the smooth curve from the scores: one set of draws for all."""
    power, found = LoessPower.of_task(task), {}
    for name, quantile in _QUANTILES.items():
        of_curve = partial(power.distance, quantile=quantile)
        statistic, observed = (
            lambda f, of=of_curve: of(power.curve(f)),
            power.curve(power.cells.event_frequency),
        )
        some = replace(
            hypotheses,
            statistic=statistic,
            error=of_curve,
            observed=float(of_curve(observed)),
        )
        found[name] = IntervalEstimate(
            some.observed, *map(float, inverted_limits(some, tail))
        )
    return found


def _means(s, y, w):
    """Return estimate and influence of the numbers that are smooth functions of means; why not, where there is none."""
    total, events, expected = w.sum(), w @ y, w @ s
    loss = (s - y) ** 2
    brier, frequency = w @ loss / total, events / total
    found = {"brier_score": (brier, loss - brier)}
    if expected > 0 < events:
        ratio = events / expected
        found["observed_expected"] = (
            ratio,
            (y - ratio * s) * total / events,
        )  # of its logarithm
    else:
        found["observed_expected"] = "no event is " + (
            "observed" if expected > 0 else "expected"
        )
    if not 0 < frequency < 1:
        return found | dict.fromkeys(
            ("scaled_brier_score", "auc"), "y_true has one class only"
        )
    spread = frequency * (1 - frequency)
    influence = (loss - brier) / spread - brier * (1 - 2 * frequency) * (
        y - frequency
    ) / spread**2
    found["scaled_brier_score"] = 1 - brier / spread, -influence
    found["auc"] = _auc(s, y, w)
    return found


def _auc(s, y, w):
    """Return the area under the ROC curve and its influence: the components of DeLong, DeLong and Clarke-Pearson."""
    place, influence = np.unique(s, return_inverse=True)[1], np.empty(len(s))
    for event in (False, True):
        own, size = y == event, w[y == event].sum()
        mass = np.bincount(place[~own], w[~own], place.max() + 1)  # of the other class
        below = ((np.cumsum(mass) - mass / 2) / mass.sum())[place[own]]
        component = below if event else 1 - below
        area = w[own] @ component / size  # the same of both classes
        influence[own] = (
            (component - area) * np.sqrt(size / max(size - 1, 1)) * w.sum() / size
        )
    return area, influence


def _with_limits(name, estimate, influence, *options):
    """Return the estimate with its limits: of the ratio those of its logarithm, of the area those of its log-odds."""
    width = half_width(influence, *options)
    if name == "observed_expected":
        limits = estimate * np.exp(-width), estimate * np.exp(width)
    elif name == "auc" and 0 < estimate < 1:
        limits = expit(
            logit(estimate) + np.array((-1, 1)) * width / (estimate * (1 - estimate))
        )
    else:
        limits = (
            max(estimate - width, 0.0 if name == "brier_score" else -np.inf),
            min(estimate + width, 1.0),
        )
    return IntervalEstimate(*map(float, (estimate, *limits)))


def _shown(interval):
    if np.isnan(interval.estimate):
        return "not defined"
    largest = max(np.nanmax(np.abs(interval)), 1e-9)
    digits = 2 if largest >= 1.05 else max(3, 1 - int(np.floor(np.log10(largest))))
    estimate, low, high = (f"{value:.{digits}f}" for value in interval)
    return f"{estimate} ({low} to {high})"
