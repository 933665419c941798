"""Promises of every function that takes weights or clusters, on data that say little:
weights that depend on the label (sampled labels, censoring), rare events, few heavy
rows, and clusters of which many have no event.
"""

from functools import cache, partial

import numpy as np
from scipy.special import betaincinv, expit, ndtri

from benchmarks.levels.few_events import (
    FEW_EVENTS_EXPECTED,
    HEAVY_ROWS,
    models_differ,
)
from benchmarks.levels.promises import Promise
from benchmarks.levels.shapes import SHAPES, Sample, _copula
from skcalib import PlattScaling, ScalingBinning, censored_labels
from skcalib._cells.binned import counted_rows
from skcalib._cells.reductions import one_task
from skcalib._input.scored_labels import check_scored_labels
from skcalib.decisions import net_benefit
from skcalib.evaluation import (
    mean_interval,
    recalibration_gain,
)
from skcalib.evaluation._summary_numbers import OF_ROWS, SummaryRows
from skcalib.metrics import (
    calibration_by_group,
    calibration_error_interval,
    calibration_slope_intercept,
    calibration_test,
    reliability_curve,
    segment_calibration_test,
)
from skcalib.monitoring import (
    CalibrationMonitor,
    GroupMonitors,
    calibration_change,
    calibration_trend,
    estimated_performance,
)

__all__ = [
    "DATA",
    "SAMPLED",
    "SAMPLED_AXES",
    "SAMPLED_FAMILIES",
    "population_of",
    "summary_number",
    "weights_of",
]

_POPULATION = 12_000
_FACTORS = (0.7, 1.4)  # of weights that are hidden
_FOUND = {}  # comparisons of halves, by sample
# Evenly spaced quantiles of the population that true values are taken from.
_QUANTILES = (np.arange(20_000) + 0.5) / 20_000


def _sampled(keep, centre, *, by_score=False, hidden=None, too_high=1.0, n=600):
    """All events of a population and one of `keep` other rows, of which n are seen;
    scores are `too_high` times the probability of the event. The share of other rows
    that is kept also falls with the score where it is `by_score`; with `hidden` weights
    have random factors in this range, and nothing is known of the other label.
    """

    def sample(rng):
        z = rng.normal(size=_POPULATION)
        scores = 1 / (1 + np.exp(-centre - z))
        labels = rng.random(_POPULATION) < scores / too_high
        share = np.full(_POPULATION, 1 / keep)
        if by_score:
            share = np.minimum(share * np.exp(-z / 2), 1.0)
        rows = np.flatnonzero(labels | (rng.random(_POPULATION) < share))[:n]
        without_event = 1 / share[rows]
        weight = np.where(labels[rows], 1.0, without_event)
        weight_type = "importance"
        if by_score:
            weight_type = {0: without_event, 1: 1.0}
        if hidden is not None:
            weight = weight * rng.uniform(*hidden, len(rows))
        scores = scores[rows]
        return Sample(
            scores,
            scores / too_high,
            labels[rows].astype(int),
            weight,
            population=population,
            weight_type=weight_type,
        )

    @cache
    def population():
        scores = expit(centre + ndtri(_QUANTILES))
        return scores, scores / too_high

    return sample


@cache
def _population_of_censored(shape=6.0):
    scores = betaincinv(1.0, shape, _QUANTILES)
    return scores, scores


def _censored(rng, n=800, shape=6.0, censoring_time=2.0):
    """Whether an event happens within one unit of time, with scores that are right;
    times are censored at random, and weights are those of inverse probabilities.
    """
    scores = rng.beta(1.0, shape, n)
    time = rng.exponential(size=n) / -np.log1p(-scores)
    censored = rng.exponential(censoring_time, n)
    labels, weight, weight_type = censored_labels(
        np.minimum(time, censored), time <= censored, 1.0
    )
    return Sample(
        scores,
        scores,
        labels,
        weight,
        population=partial(_population_of_censored, shape),
        weight_type=weight_type,
    )


_CALIBRATED = {
    "events and 1 of 5 others, n = 600": _sampled(5, -1.5),
    "events and 1 of 20 others, n = 600": _sampled(20, -4.0),
    "events and 1 of 200 others, n = 600": _sampled(200, -6.0, n=150),
    "events and 1 of 20 others by score, n = 600": _sampled(20, -3.0, by_score=True),
    "5 events and 1 of 20 others": _sampled(20, -8.3),
    "weights of the label, hidden, n = 600": _sampled(20, -4.0, hidden=_FACTORS),
    "weights of censoring, n = 800": _censored,
}
_TOO_HIGH = {
    "scores 1.2 times too high, 1 of 20 others": _sampled(20, -4.0, too_high=1.2),
    "scores 1.2 times too high, hidden weights": _sampled(
        20, -4.0, hidden=_FACTORS, too_high=1.2
    ),
}
SHAPES.update(_CALIBRATED)
SHAPES.update(_TOO_HIGH)


def _rare_events(number, n=1000):
    """Calibrated scores of a Beta distribution, which expect so many events."""
    shape = n / number - 1

    def sample(rng):
        scores = rng.beta(1.0, shape, n)
        return Sample(
            scores,
            scores,
            rng.random(n) < scores,
            population=partial(_population_of_censored, shape),
        )

    return sample


def _empty_clusters(n_clusters, size, risk, rng):
    """Calibrated clusters, whose rows share a normal deviate."""
    shape = 1 / risk - 1
    draw = _copula(
        [size] * n_clusters, lambda rng, n: rng.beta(1.0, shape, n), correlation=0.1
    )
    return draw(rng)._replace(population=partial(_population_of_censored, shape))


_RARE_EVENTS = {
    f"{number:g} events expected, n = 1000": _rare_events(number)
    for number in (0.1, 1, 3, 10)
}
_EMPTY_CLUSTERS = {
    "60 clusters of 25, 40 % without events": partial(_empty_clusters, 60, 25, 0.04),
    "20 clusters of 50, 20 % without events, calibrated": partial(
        _empty_clusters, 20, 50, 0.04
    ),
}
SHAPES.update(_RARE_EVENTS)
SHAPES.update(_EMPTY_CLUSTERS)


def _rows(sample):
    return sample.labels, sample.scores


def population_of(sample):
    """Return scores and truths of the population: uniform and calibrated by default."""
    if sample.population is None:
        return _QUANTILES, _QUANTILES
    return sample.population()


def weights_of(sample):
    """Return the weights and the clusters, those that a sample has."""
    if sample.clusters is not None:
        return {"clusters": sample.clusters}
    if sample.sample_weight is None:
        return {}
    return {"sample_weight": sample.sample_weight, "weight_type": sample.weight_type}


def _covers_bias(sample, seed):
    table = calibration_by_group(
        *_rows(sample),
        np.zeros(len(sample.scores)),
        labels=[0, 1],
        n_resamples=1,
        random_state=seed,
        **weights_of(sample),
    )
    if np.isnan(table.bias_low[0]):
        return np.nan
    return table.bias_low[0] <= 0 <= table.bias_high[0]


def _covers_ratio(sample, seed):
    """The ratio of observed to expected events."""
    found = summary_number("observed_expected", sample)
    return _holds(found.low, _ratio(sample), found.high)


def task_of(sample):
    """Return the binary task of a sample."""
    data = check_scored_labels(
        *_rows(sample), sample_weight=sample.sample_weight, labels=[0, 1], drop=False
    )
    return one_task(counted_rows(data, sample.weight_type), "auto")


def summary_number(name, sample):
    """Return one number of a summary, at the level of 90 %, without its smooth curve,
    which takes most of the time.
    """
    return OF_ROWS[name](
        SummaryRows.of_task(task_of(sample), sample.weight_type, sample.clusters, 0.9)
    )


def _holds(low, truth, high):
    """Return whether limits hold the truth; NaN where there are none."""
    return np.nan if np.isnan(low) else low <= truth <= high


def _rejected(pvalue):
    """Return whether a test rejects at .05; NaN where it has no p-value."""
    return np.nan if np.isnan(pvalue) else pvalue <= 0.05


def _ratio(sample):
    """The true ratio of observed to expected events, the same for all rows."""
    return sample.truth[0] / sample.scores[0]


def _log_scale_covers_ratio(sample, seed):
    """The limits of r on the log scale, with the variance of w (y - r s)."""
    events = sample.sample_weight @ sample.labels
    expected = sample.sample_weight @ sample.scores
    ratio = events / expected
    residual = sample.sample_weight * (sample.labels - ratio * sample.scores)
    error = np.sqrt(np.sum(residual**2)) / events
    factor = np.exp(ndtri(0.95) * error)
    return ratio / factor <= _ratio(sample) <= ratio * factor


def _covers_brier(sample, seed):
    found = summary_number("brier_score", sample)
    scores, truth = population_of(sample)
    brier = np.mean(truth * (1 - scores) ** 2 + (1 - truth) * scores**2)
    return _holds(found.low, brier, found.high)


def _covers_slope(sample, seed):
    if sample.labels.all() or not sample.labels.any():
        return np.nan  # there is no slope
    try:
        found = calibration_slope_intercept(*_rows(sample), **weights_of(sample))
    except ValueError:
        return np.nan  # the scores separate the labels
    return _holds(found.slope.low, 1.0, found.slope.high)


def _covers_bars(sample, seed):
    curve = reliability_curve(
        *_rows(sample), binning=5, labels=[0, 1], **weights_of(sample)
    )
    low, high = curve.interval()
    scores, truth = population_of(sample)
    bins = np.clip(np.searchsorted(curve.edges, scores) - 1, 0, len(low) - 1)
    frequency = np.bincount(bins, truth, len(low)) / np.bincount(
        bins, minlength=len(low)
    )
    return float(np.mean((low <= frequency) & (frequency <= high)))


def _covers_benefit(sample, seed):
    """The net benefit of treating the upper three tenths."""
    scores, truth = population_of(sample)
    threshold = scores[int(0.7 * len(scores))]
    price = threshold / (1 - threshold)
    benefit = np.mean((scores >= threshold) * (truth - (1 - truth) * price))
    found = net_benefit(
        *_rows(sample), thresholds=[threshold], labels=[0, 1], **weights_of(sample)
    )
    return _holds(found.low[0], benefit, found.high[0])


def _covers_gain(sample, seed):
    """What Platt's map of all rows gains in the population."""
    found = recalibration_gain(
        *_rows(sample),
        recalibrator=PlattScaling(),
        labels=[0, 1],
        **weights_of(sample),
    )
    if np.isnan(found.low):
        return np.nan
    fitted = PlattScaling().fit(
        sample.scores, sample.labels, sample_weight=sample.sample_weight
    )
    scores, truth = population_of(sample)
    return _holds(found.low, _gain_of(fitted, scores, truth), found.high)


def _gain_of(fitted, scores, truth):
    """Return the log-loss of a population less that of its recalibrated scores."""
    after = np.clip(fitted.predict_proba(scores)[:, 1], 1e-15, 1 - 1e-15)
    return np.mean(
        truth * np.log(after / scores)
        + (1 - truth) * np.log((1 - after) / (1 - scores))
    )


def _change(sample, seed):
    """Return the comparison of the first half of the rows with the second, for both
    promises about it.
    """
    key = hash((sample.scores.tobytes(), sample.labels.tobytes(), seed))
    if key not in _FOUND:
        _FOUND[key] = _compared_halves(sample, seed)
    return _FOUND[key]


def _compared_halves(sample, seed):
    half = len(sample.scores) // 2
    first, second = slice(None, half), slice(half, None)
    by_row = weights_of(sample)
    # Weights by row and label are those of all rows.
    weight_type = by_row.pop("weight_type", "frequency")
    if isinstance(weight_type, dict):
        weight_type = "importance"
    return calibration_change(
        sample.labels[first],
        sample.scores[first],
        sample.labels[second],
        sample.scores[second],
        **{name: (one[first], one[second]) for name, one in by_row.items()},
        weight_type=weight_type,
        norm=1,
        method="plugin",
        labels=[0, 1],
        n_resamples=99,
        random_state=seed,
    )


def _covers_shift(sample, seed):
    shift = _change(sample, seed).shift
    return _holds(shift.low, 0.0, shift.high)


def _rejects_change(sample, seed):
    return _rejected(_change(sample, seed).pvalue)


def _times(sample, seed):
    """Times that say nothing; clusters follow each other."""
    if sample.clusters is not None:
        return sample.clusters.astype(float)
    return np.random.default_rng([seed, 3]).random(len(sample.scores))


def _covers_trend(sample, seed):
    slope = calibration_trend(
        *_rows(sample), _times(sample, seed), **weights_of(sample)
    ).slope
    return _holds(slope.low, 0.0, slope.high)


def _rejects_trend(sample, seed):
    found = calibration_trend(
        *_rows(sample), _times(sample, seed), **weights_of(sample)
    )
    return _rejected(found.pvalue)


def _rejects_equal_models(metric, sample, seed):
    return models_differ(metric, sample, seed, **weights_of(sample))


def _covers_frequency(sample, seed):
    """The event frequency of 2,000 new rows of the population."""
    rng = np.random.default_rng([seed, 4])
    scores, truth = population_of(sample)
    rows = rng.integers(0, len(scores), 2000)
    frequency = np.mean(rng.random(2000) < truth[rows])
    found = estimated_performance(
        *_rows(sample),
        scores[rows],
        metrics=["event_frequency"],
        labels=[0, 1],
        **weights_of(sample),
    )
    return _holds(found.low[0], frequency, found.high[0])


def _verifies(sample, seed):
    """The upper bound of the error of a binned map of other rows."""
    rng = np.random.default_rng([seed, 5])
    scores, truth = population_of(sample)
    rows = rng.integers(0, len(scores), 4000)
    # Each is an event and a non-event, since few of them might be drawn as events.
    chance = np.minimum(1.3 * truth[rows], 1)
    model = ScalingBinning(binning=10, classes=[0, 1]).fit(
        np.tile(scores[rows], 2),
        np.repeat([1, 0], len(rows)),
        sample_weight=np.append(chance, 1 - chance),
    )
    binned = model.predict_proba(scores)[:, 1]
    bins = np.unique(binned, return_inverse=True)[1]
    frequency = np.bincount(bins, truth) / np.bincount(bins)
    error = np.sqrt(np.mean((binned - frequency[bins]) ** 2))
    found = model.verify(
        sample.scores,
        sample.labels,
        1,
        n_resamples=200,
        random_state=seed,
        **weights_of(sample),
    )
    return found.upper_bound >= error


def _covers_mean(sample, seed):
    """The mean of (y - s)^2, for calibrated scores that of s (1 - s)."""
    found = mean_interval(
        (sample.labels - sample.scores) ** 2,
        largest=1.0,
        sample_weight=sample.sample_weight,
        weight_type="frequency" if sample.sample_weight is None else "importance",
        clusters=sample.clusters,
    )
    scores, _ = population_of(sample)
    return _holds(found.low, np.mean(scores * (1 - scores)), found.high)


# --- Monitors, which take no weights --------------------------------------------------


def _scores_in_sample(sample):
    """Return the probabilities of the event in a sample of the weights 1 and w0."""
    of_none = sample.sample_weight.max()
    odds = of_none * sample.scores / (1 - sample.scores)
    return odds / (1 + odds)


def _alarms(in_sample, sample, seed):
    scores = _scores_in_sample(sample) if in_sample else sample.scores
    monitor = CalibrationMonitor(confidence_level=0.95)
    return monitor.partial_fit(scores, sample.labels).alarm_


def _alarms_of_groups(in_sample, sample, seed):
    scores = _scores_in_sample(sample) if in_sample else sample.scores
    monitors = GroupMonitors(confidence_level=0.95)
    return monitors.partial_fit(
        scores, sample.labels, np.arange(len(scores)) % 5
    ).alarm_


def _covers_error(sample, seed):
    found = calibration_error_interval(
        *_rows(sample),
        labels=[0, 1],
        n_resamples=199,
        random_state=seed,
        **weights_of(sample),
    )
    if np.isnan(found.low):
        return np.nan
    return found.low <= 0


def _rejects(sample, seed, **options):
    pvalue = calibration_test(
        *_rows(sample), labels=[0, 1], **options, **weights_of(sample)
    ).pvalue
    return _rejected(pvalue)


def _rejects_by_draws(sample, seed):
    return _rejects(sample, seed, n_resamples=199, random_state=seed)


def _rejects_segments(sample, seed):
    pvalue = segment_calibration_test(
        *_rows(sample),
        np.arange(len(sample.scores))[:, None] % 3,
        labels=[0, 1],
        n_resamples=199,
        random_state=seed,
        **weights_of(sample),
    ).pvalue
    return _rejected(pvalue)


_NAMES = tuple(_CALIBRATED)
_CLUSTERED = (
    "clusters, equal, 60 of 20",
    "clusters, unequal, 2 of 150 and 30 of 10",
)
# Data that say little, by the beginning of the names of promises. Each of the functions
# below is looked at on each of them, without those left out.
DATA = {
    "sampled labels": _NAMES,
    "rare events": tuple(_RARE_EVENTS),
    "heavy rows": HEAVY_ROWS[-1:],
    "empty clusters": tuple(_EMPTY_CLUSTERS),
}
_FUNCTIONS = {
    "coverage": {
        "bias": _covers_bias,
        "O/E ratio": _covers_ratio,
        "l2, 15 bins": _covers_error,
        "Brier score": _covers_brier,
        "calibration slope": _covers_slope,
        "bars of a diagram": _covers_bars,
        "net benefit": _covers_benefit,
        "gain of Platt scaling": _covers_gain,
        "shift": _covers_shift,
        "trend": _covers_trend,
        "estimated event frequency": _covers_frequency,
        "verify, 10 bins": _verifies,
        "mean of squared residuals": _covers_mean,
    },
    "size": {
        "Spiegelhalter": partial(_rejects, method="spiegelhalter"),
        "Kuiper": partial(_rejects, method="kuiper"),
        "Kolmogorov-Smirnov": partial(_rejects, method="kolmogorov_smirnov"),
        "resampled sweep": _rejects_by_draws,
        "segments": _rejects_segments,
        "change": _rejects_change,
        "no trend": _rejects_trend,
        **{
            f"compare, {metric}": partial(_rejects_equal_models, metric)
            for metric in ("brier_score", "log_loss", "squared_calibration_error")
        },
    },
}
_LEFT_OUT = {
    # fewer than 20 events in each half
    "sampled labels: shift": ("5 events and 1 of 20 others",),
    # closed forms do not take clusters
    **{
        f"empty clusters: {name}": tuple(_EMPTY_CLUSTERS)
        for name in ("Spiegelhalter", "Kuiper", "Kolmogorov-Smirnov")
    },
}


def _on_all_data(kind):
    """Return the promises of a kind, coverage or size, on all data."""
    promised = {"coverage": 0.9, "size": 0.05}[kind]
    promises = []
    for data, names in DATA.items():
        for function, kept in _FUNCTIONS[kind].items():
            name = f"{data}: {function}"
            left_out = _LEFT_OUT.get(name, ())
            shapes = tuple(shape for shape in names if shape not in left_out)
            if shapes:
                promises.append(Promise(name, promised, kept, shapes))
    return promises


SAMPLED = {
    "coverage": [
        *_on_all_data("coverage"),
        Promise("sampled labels: O/E ratio", 0.9, _covers_ratio, tuple(_TOO_HIGH)),
        Promise(
            "O/E ratio, log scale",
            0.9,
            _log_scale_covers_ratio,
            _NAMES[:4] + tuple(_TOO_HIGH),
        ),
        Promise(
            "mean of squared residuals", 0.9, _covers_mean, (*HEAVY_ROWS, *_CLUSTERED)
        ),
        Promise("gain of Platt scaling, clusters", 0.9, _covers_gain, _CLUSTERED),
        Promise(
            "event frequency, estimated from clusters",
            0.9,
            _covers_frequency,
            _CLUSTERED,
        ),
    ],
    "size": [
        *_on_all_data("size"),
        Promise(
            "no trend, clusters",
            0.05,
            _rejects_trend,
            (*_CLUSTERED, "clusters, rare, 60 of 20"),
        ),
        *(
            Promise(f"{name}, {where}", 0.05, partial(alarms, in_sample), shapes)
            for name, alarms in (
                ("alarm of a monitor", _alarms),
                ("alarm of monitors of groups", _alarms_of_groups),
            )
            for where, in_sample, shapes in (
                ("few events", False, FEW_EVENTS_EXPECTED),
                ("probabilities of the sample", True, _NAMES[:3]),
            )
        ),
    ],
}


# --- Families of worlds to search -----------------------------------------------------


def _sampled_of_world(world, rng):
    hidden = None
    if "spread of weights" in world:
        hidden = np.exp([-world["spread of weights"], world["spread of weights"]])
    keep, centre = world["weight of others"], world["centre of scores"]
    return _sampled(keep, centre, hidden=hidden, n=round(world["rows of log"]))(rng)


def _censored_of_world(world, rng):
    return _censored(
        rng,
        n=round(world["rows of log"]),
        shape=1 / world["mean risk"] - 1,
        censoring_time=world["time of censoring"],
    )


def _of_world(kept):
    """Return a function of a world, a sample and a seed."""
    return lambda world, sample, seed: kept(sample, seed)


SAMPLED_AXES = {
    "rows of log": (40, 1000, True),
    "weight of others": (1.5, 200, True),
    "centre of scores": (-8, 0),  # in log-odds
    "spread of weights": (0.01, 1.0),
    "mean risk": (0.01, 0.5, True),
    "time of censoring": (0.7, 20, True),
}
_LOG = ("rows of log", "weight of others", "centre of scores")
_HIDDEN = (*_LOG, "spread of weights")
_OF_CENSORING = ("rows of log", "mean risk", "time of censoring")
_SPIEGELHALTER = partial(_rejects, method="spiegelhalter")
# The fields of `search.Family`.
SAMPLED_FAMILIES = [
    (f"{name} of a world", kind, promised, axes, draw, _of_world(kept))
    for name, kind, promised, axes, draw, kept in (
        (
            "sampled labels: bias",
            "coverage",
            0.9,
            _LOG,
            _sampled_of_world,
            _covers_bias,
        ),
        (
            "sampled labels: trend",
            "size",
            0.05,
            _LOG,
            _sampled_of_world,
            _rejects_trend,
        ),
        (
            "sampled labels: two models",
            "size",
            0.05,
            _LOG,
            _sampled_of_world,
            partial(_rejects_equal_models, "brier_score"),
        ),
        (
            "hidden weights: bias",
            "coverage",
            0.9,
            _HIDDEN,
            _sampled_of_world,
            _covers_bias,
        ),
        (
            "hidden weights: Spiegelhalter",
            "size",
            0.05,
            _HIDDEN,
            _sampled_of_world,
            _SPIEGELHALTER,
        ),
        (
            "censoring weights: bias",
            "coverage",
            0.9,
            _OF_CENSORING,
            _censored_of_world,
            _covers_bias,
        ),
        (
            "censoring weights: Spiegelhalter",
            "size",
            0.05,
            _OF_CENSORING,
            _censored_of_world,
            _SPIEGELHALTER,
        ),
    )
]
