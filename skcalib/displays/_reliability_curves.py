"""The numbers of a reliability diagram: bins, interval, consistency band, histogram and error of each curve."""

from dataclasses import dataclass, field
from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.special import bdtrik, ndtri
from sklearn.utils import check_random_state

from skcalib._cells.reductions import BinaryTask, binary_tasks, resolve_multiclass
from skcalib._cells.statistics import BinStatistics, bin_statistics
from skcalib._errors.bin_free import LoessPower
from skcalib._input.labels import check_groups
from skcalib._input.scalars import check_confidence_level, check_int, check_option
from skcalib._input.scored_labels import check_scored_labels
from skcalib._input.scores import drop_zero_weight
from skcalib._intervals import binomial_interval
from skcalib.binning import BaseBinning, EqualMass, MinimumMass, PoolAdjacentViolators, assign_bins, check_binning
from skcalib.displays._reliability_words import NUMBERS
from skcalib.evaluation import calibration_summary
from skcalib.metrics import calibration_error, calibration_error_interval

_HISTOGRAM_BINS = 40
_COMPRESSED_BINS = 500  # rows are pooled to this many scores before a refitted binning is resampled
_BINOMIAL_INTERVALS = ("clopper_pearson", "wilson", "hoeffding")


class _SpreadBins(BaseBinning):
    """Equal-width bins, those with more than their share of the rows cut into parts of equal mass.

    Points spread over the axis, as for a network that is nearly always sure, and over the rows, as for a rare event.
    """

    def __init__(self, n_bins=15):
        self.n_bins = n_bins

    def _edges(self, scores, y, sample_weight):
        edges = np.linspace(0, 1, self.n_bins + 1)
        bins = assign_bins(scores, edges)
        mass = np.bincount(bins, weights=sample_weight, minlength=self.n_bins)
        n_parts = np.round(self.n_bins * mass / mass.sum()).astype(int)
        parts = [edges]
        for full in np.flatnonzero(n_parts > 1):
            inside = bins == full
            weight = None if sample_weight is None else sample_weight[inside]
            parts.append(EqualMass(int(n_parts[full]))._edges(scores[inside], None, weight)[1:-1])
        return np.unique(np.concatenate(parts))


# None of so few rows that its interval would span the picture.
DEFAULT_BINNING = MinimumMass(_SpreadBins(), min_weight=10)


class Band(NamedTuple):
    """Limits of a band over increasing scores, arrays of one shape."""

    scores: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """What one curve of a reliability diagram shows.

    Parameters
    ----------
    model : str or None
        Name of the model.
    panel : str or None
        Name of the class or group, where each has a panel of its own.
    statistics : BinStatistics
        The bins.
    is_step : bool
        Whether the bins are the blocks of an isotonic fit, which is a step function.
    bars : tuple of ndarray of shape (n_bins,) or None
        Low and high limits of each bin's event frequency.
    band : Band or None
        Bootstrap limits of the event frequency as a function of the score.
    consistency : Band
        Limits within which the event frequencies of a calibrated model lie, from the lowest to the highest score.
    histogram : BinStatistics
        Equal-width bins of the scores.
    error : IntervalEstimate or None
        Calibration error with its interval; None where the rows are too few for it.
    smooth : ndarray of shape (n_scores,) or None
        A smooth curve at the scores of `band`, which are its limits.
    has_bins : bool
        Whether the bins are drawn.
    numbers : dict
        Numbers of `calibration_summary` by name, each an `IntervalEstimate`.
    """

    model: str | None
    panel: str | None
    statistics: BinStatistics
    is_step: bool
    bars: tuple[np.ndarray, np.ndarray] | None
    band: Band | None
    consistency: Band
    histogram: BinStatistics
    error: tuple[float, float, float] | None
    smooth: np.ndarray | None = None
    has_bins: bool = True
    numbers: dict = field(default_factory=dict)

    @property
    def limits(self):
        """Smallest and largest probability that is drawn."""
        seen = self.statistics.weight > 0
        limits = [limit[seen] for limit in self.bars or ()]
        band = [] if self.band is None else self.band if self.smooth is None else [self.smooth]  # its band may be cut
        drawn = np.concatenate([self.consistency.scores, self.statistics.event_frequency[seen], *limits, *band])
        return float(drawn.min()), float(drawn.max())


class CurveOptions(NamedTuple):
    """How the curves of one picture are made; see `ReliabilityDisplay.from_predictions`."""

    strategy: BaseBinning
    interval: str | None
    confidence_level: float
    n_resamples: int
    metric: object
    error_binning: BaseBinning
    seed: int
    curve: str = "bins"
    statistics: tuple = ()

    @classmethod
    def checked(cls, binning, interval, confidence_level, n_resamples, metric, random_state, curve="bins", names=()):
        """Return valid options, defaults resolved."""
        check_option(curve, "curve", ("bins", "smooth", "both"))
        for name in (names := (names,) if isinstance(names, str) else tuple(names)):
            check_option(name, "statistics", tuple(NUMBERS))
        strategy = check_binning(binning, DEFAULT_BINNING)
        if interval == "auto":
            interval = "bootstrap" if strategy.needs_labels else "clopper_pearson"
        check_option(interval, "interval", ("auto", "bootstrap", *_BINOMIAL_INTERVALS, None))
        if interval in _BINOMIAL_INTERVALS and strategy.needs_labels:
            raise ValueError(
                f'interval="{interval}" is not valid for bins that the labels made ({type(strategy).__name__}): '
                'use interval="bootstrap".'
            )
        if not (metric is None or metric == "auto" or callable(metric)):
            raise ValueError(f'metric must be "auto", a function or None, found {metric!r}.')
        check_int(n_resamples, "n_resamples")
        # An error in bins that were made from the same labels would be biased. Without given bins the library's default
        # error is used.
        error_binning = EqualMass(15) if binning is None or strategy.needs_labels else strategy
        # One seed for all curves: a panel's limits do not depend on which other panels there are.
        seed = random_state
        if not isinstance(seed, Integral):
            seed = int(check_random_state(seed).randint(np.iinfo(np.int32).max))
        level = check_confidence_level(confidence_level)
        return cls(strategy, interval, level, n_resamples, metric, error_binning, seed, curve, names)


def diagram_numbers(y_true, models, *, options, multiclass="auto", groups=None, order="sorted", max_panels=12, **given):
    """Return what `ReliabilityDisplay` is made of: its arguments.

    `models` holds probabilities by name and `given` is what `check_scored_labels` takes besides; for the other
    arguments see `ReliabilityDisplay.from_predictions`.
    """
    if groups is not None and multiclass == "marginal":
        raise ValueError('groups and multiclass="marginal" exclude each other: both ask for a panel each.')
    if not max_panels >= 1:
        raise ValueError(f"max_panels must be at least 1, found {max_panels!r}.")
    check_option(order, "order", ("sorted", "given", "error"))
    tasks, kind, event = _tasks(y_true, models, multiclass, groups, order, given)
    worst = _worst_first(tasks, options)[:max_panels] if order == "error" or len(tasks) > max_panels else list(tasks)
    panels = worst if order == "error" else [panel for panel in tasks if panel in set(worst)]
    shown = [(panel, model, task) for panel in panels for model, task in tasks[panel].items()]
    lowest, highest = min(task.scores.min() for *_, task in shown), max(task.scores.max() for *_, task in shown)
    limits = readable_limits(float(lowest), float(highest))
    return {
        "curves": [_reliability_curve(task, options, limits, model, panel) for panel, model, task in shown],
        "confidence_level": options.confidence_level,
        "kind": kind,
        "error_name": _error_name(options.metric),
        "n_panels_left_out": len(tasks) - len(panels),
        "event": event if kind == "binary" else None,
    }


def statistics_numbers(models, *, options):
    """Return what `ReliabilityDisplay` is made of, from the `BinStatistics` of each model by name."""
    curves = []
    for model, statistics in models.items():
        if not isinstance(statistics, BinStatistics):
            raise TypeError(
                f"The first argument must be BinStatistics or a dict of them by name, found {statistics!r}."
            )
        seen = statistics.weight > 0
        if not seen.any():
            raise ValueError("statistics hold no row: there is nothing to draw.")
        mean = statistics.mean_score[seen]
        score_range = _score_range(mean)
        bars = band = None
        if options.interval in _BINOMIAL_INTERVALS:
            bars = statistics.interval(options.confidence_level, interval=options.interval)
        elif options.interval == "bootstrap":
            band = _bootstrap_band(statistics, score_range, options)
        consistency = _consistency_band(statistics, score_range, options.confidence_level)
        error = None
        if options.metric is not None:
            metric = {} if options.metric == "auto" else {"metric": options.metric}
            error = calibration_error_interval(statistics, **metric, **_resampling(options))
        curves.append(ReliabilityCurve(model, None, statistics, False, bars, band, consistency, statistics, error))
    return {
        "curves": curves,
        "confidence_level": options.confidence_level,
        "kind": "binary",
        "error_name": _error_name(options.metric),
    }


def _resampling(options):
    return {
        "confidence_level": options.confidence_level,
        "n_resamples": options.n_resamples,
        "random_state": options.seed,
    }


def readable_limits(low, high):
    """Return limits of axes for probabilities: 0 and 1 unless half of that would be empty (a rare event)."""
    if high <= 0.5:
        return 0.0, _next_round(high)
    return (1 - _next_round(1 - low), 1.0) if low >= 0.5 else (0.0, 1.0)


def _reliability_curve(task, options, histogram_limits, model, panel=None):
    """Return the `ReliabilityCurve` of one binary problem."""
    task = BinaryTask(*drop_zero_weight(task.sample_weight, task.scores, task.labels))
    statistics = task.statistics(options.strategy)
    bars = band = None
    score_range = _score_range(task.scores)
    if options.interval in _BINOMIAL_INTERVALS:
        bars = statistics.interval(options.confidence_level, interval=options.interval)
    if options.strategy.needs_labels:
        band, consistency = _refitted_bands(task, score_range, options)
    else:
        consistency = _consistency_band(statistics, score_range, options.confidence_level)
        if options.interval == "bootstrap":
            band = _bootstrap_band(statistics, score_range, options)
    smooth, numbers, has_bins = None, {}, options.curve != "smooth"
    if options.curve != "bins":
        smooth, band, even = _smooth_curve(task, options.confidence_level)
        bars, consistency = (bars, consistency) if has_bins else (None, even)
    if options.statistics:
        drawn = {"confidence_level": options.confidence_level, "random_state": options.seed}
        arguments = {"weight_type": task.weight_type, **drawn, **_row_arguments(task)}
        summary = calibration_summary(task.labels, task.scores, **arguments)
        numbers = {name: getattr(summary, name) for name in options.statistics}
    return ReliabilityCurve(
        smooth=smooth,
        has_bins=has_bins,
        numbers=numbers,
        model=model,
        panel=panel,
        statistics=statistics,
        is_step=isinstance(options.strategy, PoolAdjacentViolators),
        bars=bars,
        band=band,
        consistency=consistency,
        histogram=bin_statistics(
            task.scores, task.labels, np.linspace(*histogram_limits, _HISTOGRAM_BINS + 1), task.sample_weight
        ),
        error=_error_interval(task, options),
    )


def _smooth_curve(task, confidence_level):
    """Return the loess curve at increasing scores, its pointwise band, and that of a calibrated model.

    The limits are those of Clopper and Pearson for as many rows as give the frequency the variance of the curve.
    """
    weight = task.sample_weight
    if task.weight_type == "importance":
        weight = weight * (weight.sum() / (weight @ weight))
    power = LoessPower.of_task(task._replace(sample_weight=weight))
    curve, scores, share = power.curve(power.cells.event_frequency), power.scores, power.smoother.T**2 / power.weight
    variance = share @ (curve * (1 - curve))
    even = 1 / share.sum(axis=1)
    trials = np.divide(curve * (1 - curve), variance, out=even, where=variance * curve * (1 - curve) > 0)
    band = Band(scores, *binomial_interval(trials * curve, trials, confidence_level=confidence_level))
    width = ndtri((1 + confidence_level) / 2) * np.sqrt(share @ (scores * (1 - scores)))
    return curve, band, Band(scores, np.maximum(scores - width, 0), np.minimum(scores + width, 1))


def _next_round(value):
    """Return the smallest round number that is not below a value, at most 1."""
    value = min(max(value, 1e-6), 1.0) * (1 - 1e-9)
    power = 10.0 ** np.floor(np.log10(value))
    return float(power * next(step for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= value))


def _score_range(scores):
    """Return the lowest and the highest score, apart by so much that a band between them can be seen."""
    low, high = float(scores.min()), float(scores.max())
    return (low, high) if high - low > 0.02 else (max(low - 0.01, 0.0), min(high + 0.01, 1.0))


def _curve_error(task, options):
    """Return the error by which panels are ranked; minus infinity where the rows are too few for one."""
    try:
        if options.metric in (None, "auto"):
            return calibration_error(task.labels, task.scores, squared=True, **_error_arguments(task, options))
        return options.metric(task.labels, task.scores, **_row_arguments(task))
    except ValueError:
        return -np.inf


def _row_arguments(task):
    arguments = {"labels": [False, True]}
    return arguments if task.sample_weight is None else {**arguments, "sample_weight": task.sample_weight}


def _error_arguments(task, options):
    return {**_row_arguments(task), "binning": options.error_binning}


def _error_interval(task, options):
    if options.metric is None:
        return None
    resampling = {**_resampling(options), "weight_type": task.weight_type}
    if options.metric != "auto":
        return calibration_error_interval(
            task.labels, task.scores, metric=options.metric, **resampling, **_row_arguments(task)
        )
    try:
        return calibration_error_interval(task.labels, task.scores, **resampling, **_error_arguments(task, options))
    except ValueError:  # the input is valid: the error is refused because its bins hold too few rows
        return None


def _consistency_band(statistics, score_range, confidence_level):
    """Return binomial limits of calibrated bins: exact for equal scores in a bin, else a little wide (Hoeffding 1956).

    Between the mean scores the distance from the diagonal is interpolated; beyond them it stays the same.
    """
    seen = statistics.weight > 0
    mean, weight = statistics.mean_score[seen], statistics.weight[seen]
    low, high = _binomial_limits(weight, mean, confidence_level)
    scores = np.unique(np.concatenate((mean, score_range)))
    return Band(
        scores,
        np.clip(scores + np.interp(scores, mean, low - mean), 0, 1),
        np.clip(scores + np.interp(scores, mean, high - mean), 0, 1),
    )


def _binomial_limits(weight, probability, confidence_level):
    """Return the quantiles of the frequency of an event in `weight` trials."""
    tail = (1 - confidence_level) / 2
    inside = (probability > 0) & (probability < 1)
    safe = np.where(inside, probability, 0.5)
    limits = [np.clip(np.ceil(bdtrik(q, weight, safe)), 0, weight) / weight for q in (tail, 1 - tail)]
    return [np.where(inside, limit, probability) for limit in limits]


def _bootstrap_band(statistics, score_range, options):
    """Return percentile limits of the event frequencies, the (bin, label) cells resampled."""
    seen = statistics.weight > 0
    cells = np.stack((statistics.weight - statistics.weighted_label, statistics.weighted_label))[:, seen]
    counts = _resampled_cells(cells, options)
    total = counts.sum(axis=1)
    frequency = np.divide(
        counts[:, 1], total, out=np.broadcast_to(statistics.event_frequency[seen], total.shape).copy(), where=total > 0
    )
    low, high = _percentiles(frequency, options.confidence_level)
    mean = statistics.mean_score[seen]
    scores = np.unique(np.concatenate((mean, score_range)))
    return Band(scores, np.interp(scores, mean, low), np.interp(scores, mean, high))


def _refitted_bands(task, score_range, options):
    """Return the bootstrap band, if wanted, and the consistency band of bins that are made anew on each resample."""
    pooled = task.statistics(EqualMass(_COMPRESSED_BINS))
    seen = pooled.weight > 0
    scores, weight, positives = pooled.mean_score[seen], pooled.weight[seen], pooled.weighted_label[seen]

    def band(counts):
        low, high = _percentiles(_refit(scores, counts, options.strategy), options.confidence_level)
        reached = np.unique(np.concatenate((scores, score_range)))
        return Band(reached, np.interp(reached, scores, low), np.interp(reached, scores, high))

    trials = np.maximum(1, np.round(weight)).astype(np.int64)
    events = np.random.default_rng(options.seed).binomial(trials, scores, size=(options.n_resamples, len(scores)))
    consistency = band(np.stack((trials - events, events), axis=1).astype(np.float64))
    if options.interval != "bootstrap":
        return None, consistency
    return band(_resampled_cells(np.stack((weight - positives, positives)), options)), consistency


def _resampled_cells(cells, options):
    """Return counts (n_resamples, 2, n_cells) of as many rows as the cells (2, n_cells) weigh."""
    rng = np.random.default_rng(options.seed)
    n_rows = max(1, round(float(cells.sum())))
    counts = rng.multinomial(n_rows, (cells / cells.sum()).ravel(), size=options.n_resamples)
    return counts.reshape(-1, *cells.shape).astype(np.float64)


def _refit(scores, counts, strategy):
    """Return the event frequency at each score in the bins that `strategy` makes of each resample."""
    labels = np.repeat([False, True], len(scores))
    both = np.tile(scores, 2)
    frequency = np.empty((len(counts), len(scores)))
    for row, resample in zip(frequency, counts, strict=True):
        weight = resample.ravel()
        drawn = weight > 0
        resampled = BinaryTask(both[drawn], labels[drawn], weight[drawn]).statistics(strategy)
        row[:] = resampled.event_frequency[assign_bins(scores, resampled.edges)]
    return frequency


def _percentiles(values, confidence_level):
    tail = (1 - confidence_level) / 2
    return np.quantile(values, (tail, 1 - tail), axis=0)


def _tasks(y_true, models, multiclass, groups, order, arguments):
    """Return the binary problems, by panel and model, and what kind of event they are about."""
    tasks = {}
    for model, y_proba in models.items():
        data = check_scored_labels(y_true, y_proba, multiclass=multiclass, drop=False, **arguments)
        kind = resolve_multiclass(multiclass, data)
        if kind == "marginal":
            names = [str(label) for label in data.classes.tolist()]
            parts = zip(names, binary_tasks(data, multiclass), strict=True)
        elif groups is not None:
            parts = _by_group(next(binary_tasks(data, multiclass)), groups, order)
        else:
            parts = [(None, next(binary_tasks(data, multiclass)))]
        for panel, task in parts:
            tasks.setdefault(panel, {})[model] = task
    label = data.classes[-1]
    unnamed = label is None or isinstance(label, bool | np.bool_)
    return tasks, kind, None if unnamed else label if isinstance(label, str) else f"class {label}"


def _by_group(task, groups, order):
    names, codes = check_groups(groups, len(task.scores))
    present, first = np.unique(codes, return_index=True)
    for code in present[np.argsort(first)] if order == "given" else present:
        name = names[code]
        rows_of_group = codes == code
        weight = None if task.sample_weight is None else task.sample_weight[rows_of_group]
        if weight is None or weight.any():
            yield str(name), BinaryTask(task.scores[rows_of_group], task.labels[rows_of_group], weight)


def _worst_first(tasks, options):
    """Return the panels, the largest error of any model first."""
    if len(tasks) == 1:
        return list(tasks)
    largest = {panel: max(_curve_error(task, options) for task in parts.values()) for panel, parts in tasks.items()}
    return sorted(largest, key=largest.get, reverse=True)


def _error_name(metric):
    if metric in (None, "auto"):
        return "calibration error"
    metric = getattr(metric, "func", metric)  # of a functools.partial
    return getattr(metric, "__name__", "error").replace("_", " ")
