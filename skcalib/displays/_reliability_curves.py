"""The numbers of a reliability diagram: bins, interval, consistency band, histogram and
error of each curve.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom
from sklearn.utils import check_random_state

from skcalib._cells.reductions import BinaryTask, binary_tasks, resolve_multiclass
from skcalib._cells.statistics import BinStatistics, bin_statistics
from skcalib._errors.bin_free import LoessError
from skcalib._input.groups import check_named_groups
from skcalib._input.labels import check_groups
from skcalib._input.scalars import check_confidence_level, check_int, check_option
from skcalib._input.scored_labels import check_scored_labels
from skcalib._input.scores import drop_zero_weight
from skcalib._input.warn import warn
from skcalib._intervals import binomial_interval
from skcalib._intervals.clustered import bin_design
from skcalib._intervals.influence import cluster_codes, too_few_units
from skcalib._rows.blocks import taken
from skcalib.binning import (
    BaseBinning,
    EqualMass,
    MinimumMass,
    PoolAdjacentViolators,
    check_binning,
)
from skcalib.binning._base import assign_bins
from skcalib.evaluation import calibration_summary
from skcalib.metrics import calibration_error, calibration_error_interval

# What pictures call the numbers of a `calibration_summary`.
NUMBERS = {
    "observed_expected": "O/E",
    "intercept": "intercept",
    "slope": "slope",
    "ici": "ICI",
    "e50": "E50",
}
NUMBERS |= {
    "e90": "E90",
    "emax": "Emax",
    "brier_score": "Brier",
    "scaled_brier_score": "scaled Brier",
    "auc": "AUC",
}
_N_BINS, _HISTOGRAM_BINS = 15, 40
# rows are pooled to this many scores before a refitted binning is resampled
_COMPRESSED_BINS = 500
_BINOMIAL_INTERVALS = ("clopper_pearson", "wilson", "hoeffding")


class _SpreadBins(BaseBinning):
    """Equal-width bins, those with more than their share of the samples cut into parts
    of equal mass.

    Points spread over the axis, as for a network that is nearly always sure, and over
    the samples, as for a rare event.
    """

    def _edges(self, scores, y, sample_weight):
        """Return edges of equal width, with further ones inside of bins that hold much
        of the weight.
        """
        edges = np.linspace(0, 1, _N_BINS + 1)
        bins = assign_bins(scores, edges)
        mass = np.bincount(bins, weights=sample_weight, minlength=_N_BINS)
        n_parts = np.round(_N_BINS * mass / mass.sum()).astype(int)
        parts = [edges]
        for full in np.flatnonzero(n_parts > 1):
            inside = bins == full
            weight = taken(sample_weight, inside)
            parts.append(
                EqualMass(int(n_parts[full]))._edges(scores[inside], None, weight)[1:-1]
            )
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
    bars : tuple of ndarray of shape (n_bins,) or None
        Low and high limits of each bin's event frequency.
    band : Band or None
        Bootstrap limits of the event frequency as a function of the score.
    consistency : Band
        Limits within which the event frequencies of a calibrated model lie, from the
        lowest to the highest score.
    histogram : BinStatistics
        Equal-width bins of the scores.
    error : IntervalEstimate or None
        Calibration error with its interval; None where the samples or clusters are too
        few for it.
    is_step : bool
        Whether the bins are the blocks of an isotonic fit, which is a step function.
    smooth : ndarray of shape (n_scores,) or None
        A smooth curve at the scores of `band`, which are its limits.
    has_bins : bool
        Whether the bins are drawn.
    numbers : dict
        Numbers of `calibration_summary` by name, each an `IntervalEstimate`.
    folds : tuple of pair of ndarray
        Scores and event frequencies of each fold's own line, for cross-validated rows.
    reasons : tuple of str
        With clusters: why a bin has no interval; empty where it has one.
    """

    model: str | None
    panel: str | None
    statistics: BinStatistics
    bars: tuple[np.ndarray, np.ndarray] | None
    band: Band | None
    consistency: Band
    histogram: BinStatistics
    error: tuple[float, float, float] | None
    is_step: bool = False
    smooth: np.ndarray | None = None
    has_bins: bool = True
    numbers: dict = field(default_factory=dict)
    folds: tuple = ()
    reasons: tuple[str, ...] = ()

    @property
    def limits(self):
        """Smallest and largest probability that is drawn."""
        seen = self.statistics.weight > 0
        drawn = [self.consistency.scores, self.statistics.event_frequency[seen]]
        for limit in self.bars or ():
            drawn.append(limit[seen & ~np.isnan(limit)])
        if self.band is not None and self.smooth is None:
            drawn += self.band
        elif self.band is not None:
            drawn.append(self.smooth)  # its band may be cut
        for _, frequency in self.folds:
            drawn.append(frequency)
        drawn = np.concatenate(drawn)
        return float(drawn.min()), float(drawn.max())


@dataclass
class CurveMaker:
    """How the curves of one picture are made; for the parameters see
    `ReliabilityDisplay.from_predictions`.
    """

    binning: BaseBinning | int | None = None
    interval: str | None = "auto"
    confidence_level: float = 0.9
    n_resamples: int = 1000
    metric: object = "auto"
    random_state: object = None
    curve: str = "bins"
    statistics: str | tuple = ()
    folds: dict = field(default_factory=dict)  # of each row, by model

    def __post_init__(self):
        """Check the options and resolve the defaults."""
        check_option(self.curve, "curve", ("bins", "smooth", "both"))
        if isinstance(self.statistics, str):
            self.statistics = (self.statistics,)
        self.statistics = tuple(self.statistics)
        for name in self.statistics:
            check_option(name, "statistics", tuple(NUMBERS))
        self.strategy = check_binning(self.binning, DEFAULT_BINNING)
        refits = self.strategy.needs_labels
        if self.interval == "auto":
            self.interval = "bootstrap" if refits else "clopper_pearson"
        check_option(
            self.interval, "interval", ("auto", "bootstrap", *_BINOMIAL_INTERVALS, None)
        )
        if self.interval in _BINOMIAL_INTERVALS and refits:
            raise ValueError(
                f'interval="{self.interval}" is not valid for bins that the labels made'
                f' ({type(self.strategy).__name__}): use interval="bootstrap".'
            )
        if not (self.metric is None or self.metric == "auto" or callable(self.metric)):
            raise ValueError(
                f'metric must be "auto", a function or None, found {self.metric!r}.'
            )
        check_int(self.n_resamples, "n_resamples")
        self.confidence_level = check_confidence_level(self.confidence_level)
        # An error in bins that were made from the same labels would be biased. Without
        # given bins the library's default error is used.
        self.error_binning = self.strategy
        if self.binning is None or refits:
            self.error_binning = EqualMass(15)
        # One seed for all curves: a panel's limits do not depend on which other panels
        # there are.
        self.seed = self.random_state
        if not isinstance(self.seed, Integral):
            self.seed = int(
                check_random_state(self.seed).randint(np.iinfo(np.int32).max)
            )

    def from_predictions(
        self,
        y_true,
        models,
        *,
        multiclass="auto",
        groups=None,
        order="sorted",
        max_panels=12,
        clusters=None,
        **reading: Any,
    ):
        """Return what `ReliabilityDisplay` is made of: its arguments.

        `models` holds probabilities by name and `reading` is what `check_scored_labels`
        takes besides; for the other arguments see
        `ReliabilityDisplay.from_predictions`.
        """
        if groups is not None and multiclass == "marginal":
            raise ValueError(
                'groups and multiclass="marginal" exclude each other: both ask for a'
                " panel each."
            )
        if not max_panels >= 1:
            raise ValueError(f"max_panels must be at least 1, found {max_panels!r}.")
        check_option(order, "order", ("sorted", "given", "error"))
        if clusters is not None:
            self._refuse_beside_clusters()
        tasks, kind, event = _tasks(y_true, models, multiclass, groups, order, reading)
        clusters = _clusters_by_panel(clusters, groups, tasks, len(y_true))
        panels = self._shown_panels(tasks, order, max_panels)
        ends = []
        for panel in panels:
            for task in tasks[panel].values():
                ends.append(_ends(task.scores))
        low, high = readable_limits(*_ends(ends))
        edges = np.linspace(low, high, _HISTOGRAM_BINS + 1)
        curves = []
        for panel in panels:
            for model, task in tasks[panel].items():
                curve = self._of_task(model, panel, task, edges, clusters[panel])
                curves.append(curve)
        _warn_of_missing_bars(curves)
        return self._arguments(
            curves, kind=kind, n_panels_left_out=len(tasks) - len(panels), event=event
        )

    def from_statistics(self, models):
        """Return what `ReliabilityDisplay` is made of, from the `BinStatistics` of each
        model by name.
        """
        for one in models.values():
            if not isinstance(one, BinStatistics):
                raise TypeError(
                    "The first argument must be BinStatistics or a dict of them by"
                    f" name, found {one!r}."
                )
            if not one.weight.any():
                raise ValueError("statistics hold no row: there is nothing to draw.")
        curves = [
            ReliabilityCurve(
                model,
                None,
                one,
                histogram=one,
                error=self._error(one),
                **self._intervals(one),
            )
            for model, one in models.items()
        ]
        return self._arguments(curves)

    def _shown_panels(self, tasks, order, max_panels):
        """Return the panels that are drawn, in order: of many those with the largest
        error of a model.
        """
        panels = list(tasks)
        if order != "error" and len(tasks) <= max_panels:
            return panels
        largest = {}
        for panel, by_model in tasks.items():
            largest[panel] = max(map(self._rank, by_model.values()))
        worst = sorted(panels, key=largest.get, reverse=True)[:max_panels]
        if order == "error":
            return worst
        return [panel for panel in panels if panel in worst]

    def _arguments(self, curves, **others):
        """Return the arguments of `ReliabilityDisplay`."""
        metric = self.metric
        if metric in (None, "auto"):
            metric = calibration_error
        metric = getattr(metric, "func", metric)  # inside a functools.partial
        name = getattr(metric, "__name__", "error").replace("_", " ")
        return {
            "curves": curves,
            "confidence_level": self.confidence_level,
            "error_name": name,
            **others,
        }

    def _of_task(self, model, panel, task, histogram_edges, cluster=None):
        """Return the `ReliabilityCurve` of one binary problem.

        Parameters
        ----------
        model, panel : str or None
            Their names; None where there is one.
        task : BinaryTask
            Scores, labels and weights or None. Whether the weights count rows or are of
            importance follows from themselves: `BinaryTask.weight_type`.
        histogram_edges : ndarray
            Edges of the histogram of the scores.
        cluster : ndarray of int, shape (n,), default=None
            Code of each row's cluster.
        """
        folds = tuple(map(self._line_of_fold, self._fold_tasks(model, task)))
        if cluster is not None and task.sample_weight is not None:
            cluster = cluster[task.sample_weight > 0]
        task = BinaryTask(
            *drop_zero_weight(task.sample_weight, task.scores, task.labels)
        )
        # what functions of rows are told besides labels and scores
        rows = {"weight_type": task.weight_type, **_row_arguments(task)}
        if cluster is not None:
            rows["clusters"] = cluster
        statistics = task.statistics(self.strategy)
        # those fields of the curve that are drawn around it, by name
        drawn = self._intervals(statistics, task, cluster)
        has_bins = self.curve != "smooth"
        if self.curve != "bins":
            smooth, band, consistency_of_smooth = _smooth_curve(
                task, self.confidence_level
            )
            drawn["smooth"] = smooth
            drawn["band"] = band
            if not has_bins:
                # Bars belong to bins. The band about the diagonal is that of smooth
                # curves of calibrated models, in place of that of their bins.
                drawn["bars"] = None
                drawn["consistency"] = consistency_of_smooth
        numbers = {}
        if self.statistics:
            summary = calibration_summary(
                task.labels,
                task.scores,
                confidence_level=self.confidence_level,
                random_state=self.seed,
                **rows,
            )
            numbers = {name: getattr(summary, name) for name in self.statistics}
        return ReliabilityCurve(
            model,
            panel,
            statistics,
            histogram=bin_statistics(
                task.scores, task.labels, histogram_edges, task.sample_weight
            ),
            error=self._error(
                task.labels, task.scores, binning=self.error_binning, **rows
            ),
            is_step=isinstance(self.strategy, PoolAdjacentViolators),
            has_bins=has_bins,
            numbers=numbers,
            folds=folds,
            **drawn,
        )

    def _fold_tasks(self, model, task):
        """Yield the binary problem of each fold that has samples that count."""
        folds = self.folds.get(model, ())
        for fold in np.unique(folds):
            in_fold = folds == fold
            of_fold = BinaryTask(*(taken(column, in_fold) for column in task))
            if of_fold.sample_weight is None or of_fold.sample_weight.any():
                yield of_fold

    def _line_of_fold(self, task):
        """Return scores and event frequencies of a fold: the smooth curve, or bins that
        the same strategy makes of its samples.
        """
        task = BinaryTask(
            *drop_zero_weight(task.sample_weight, task.scores, task.labels)
        )
        if self.curve != "bins":
            smooth, band, _ = _smooth_curve(task, self.confidence_level)
            return band.scores, smooth
        bins = task.statistics(self.strategy)
        if isinstance(self.strategy, PoolAdjacentViolators):
            edges = np.clip(bins.edges, *_ends(task.scores))
            steps = np.repeat(bins.event_frequency, 2)
            return np.repeat(edges, 2)[1:-1], steps
        seen = bins.weight > 0
        return bins.mean_score[seen], bins.event_frequency[seen]

    def _error(self, *data, **arguments):
        """Return the error with its interval, or None where its bins hold too few
        samples, or the clusters are too few.
        """
        if self.metric is None:
            return None
        cluster = arguments.get("clusters")
        if cluster is not None:
            weight = arguments.get("sample_weight", np.ones(len(cluster)))
            codes = np.unique(cluster, return_inverse=True)[1]
            if too_few_units(weight, cluster=codes):
                return None
        arguments |= {
            "confidence_level": self.confidence_level,
            "n_resamples": self.n_resamples,
        }
        if self.metric != "auto":
            arguments.pop("binning", None)
            return calibration_error_interval(
                *data, metric=self.metric, random_state=self.seed, **arguments
            )
        try:
            return calibration_error_interval(
                *data, random_state=self.seed, **arguments
            )
        except ValueError:  # the input is valid
            return None

    def _rank(self, task):
        """Return the error by which panels are ranked; minus infinity where the samples
        are too few for one.
        """
        metric = self.metric
        if metric in (None, "auto"):
            metric = partial(
                calibration_error, squared=True, binning=self.error_binning
            )
        try:
            return metric(task.labels, task.scores, **_row_arguments(task))
        except ValueError:
            return -np.inf

    def _refuse_beside_clusters(self):
        """Raise for what has no variance by cluster."""
        words = None
        if self.strategy.needs_labels:
            words = (
                f"bins that the labels made ({type(self.strategy).__name__}): use"
                " others, such as the default"
            )
        elif self.interval == "bootstrap":
            words = 'interval="bootstrap", which draws rows: use "clopper_pearson"'
        elif self.curve != "bins":
            words = f'curve="{self.curve}": use curve="bins"'
        if words:
            raise ValueError(f"clusters= does not go with {words}.")

    def _intervals(self, statistics, task=None, cluster=None):
        """Return the bars of bins, their bootstrap band, and the band of calibrated
        models.

        Bins that the labels made are made anew on each resample of samples, which are
        pooled to a few hundred scores. Others are resampled as they are, and a
        calibrated model's frequencies in them are binomial: exactly for equal scores in
        a bin, else the limits are a little wide (Hoeffding 1956). Bins of samples in
        clusters count as the number of samples that these are worth.
        """
        refits = task is not None and self.strategy.needs_labels
        cells = statistics
        if refits:
            cells = task.statistics(EqualMass(_COMPRESSED_BINS))
        seen = cells.weight > 0
        scores = cells.mean_score[seen]
        weight = cells.weight[seen]
        events = cells.weighted_label[seen]
        at = _scores_of_bands(scores if task is None else task.scores, scores)

        bars = None
        bootstrap = None
        n_trials = weight
        reasons = ()
        if cluster is not None:
            design = bin_design(
                task.labels,
                assign_bins(task.scores, statistics.edges),
                statistics.n_bins,
                cluster,
                task.sample_weight,
                task.weight_type == "importance",
                self.confidence_level,
            )
            n_trials = weight / design.effect[seen]
            reasons = design.reasons
            bars = _bars_of_clusters(
                statistics, design, self.interval, self.confidence_level
            )
        elif self.interval in _BINOMIAL_INTERVALS:
            bars = statistics.interval(self.confidence_level, interval=self.interval)
        elif self.interval == "bootstrap":
            # numbers of both labels (n_resamples, 2, n_cells)
            shares = np.concatenate((weight - events, events)) / weight.sum()
            n_rows = max(1, round(float(weight.sum())))
            rng = np.random.default_rng(self.seed)
            counts = rng.multinomial(n_rows, shares, size=self.n_resamples)
            counts = counts.reshape(-1, 2, len(scores)).astype(np.float64)
            if refits:
                frequency = _refitted(scores, counts, self.strategy)
            else:
                frequency = _frequency_of(counts, events / weight)
            bootstrap = self._percentiles(at, scores, frequency)
        trials = np.maximum(1, np.round(n_trials)).astype(np.int64)
        if refits:
            consistency = self._refitted_consistency(at, scores, trials)
        else:
            consistency = self._binomial_consistency(at, scores, trials)
        return {
            "bars": bars,
            "band": bootstrap,
            "consistency": consistency,
            "reasons": reasons,
        }

    @property
    def _quantiles(self):
        """The probabilities of both limits."""
        return (1 - self.confidence_level) / 2, (1 + self.confidence_level) / 2

    def _percentiles(self, at, scores, frequency):
        """Return the band of drawn frequencies (n_resamples, n_cells) at scores."""
        low, high = np.quantile(frequency, self._quantiles, axis=0)
        return Band(at, np.interp(at, scores, low), np.interp(at, scores, high))

    def _refitted_consistency(self, at, scores, trials):
        """Return the band of calibrated models for bins that the labels make: these are
        drawn with the scores as frequencies.
        """
        rng = np.random.default_rng(self.seed)
        events = rng.binomial(trials, scores, size=(self.n_resamples, len(scores)))
        counts = np.stack((trials - events, events), axis=1).astype(np.float64)
        return self._percentiles(at, scores, _refitted(scores, counts, self.strategy))

    def _binomial_consistency(self, at, scores, trials):
        """Return the band of calibrated models for bins with a number of trials each.

        Between the mean scores the distance from the diagonal is interpolated; beyond
        them it stays the same.
        """
        limits = []
        for quantile in self._quantiles:
            distance = binom.ppf(quantile, trials, scores) / trials - scores
            limits.append(np.clip(at + np.interp(at, scores, distance), 0, 1))
        return Band(at, *limits)


def _bars_of_clusters(statistics, design, interval, confidence_level):
    """Return the limits of each bin's event frequency, NaN where clusters are too few;
    None without an interval.
    """
    if interval is None:
        return None
    limits = binomial_interval(
        statistics.weighted_label / design.effect,
        statistics.weight / design.effect,
        confidence_level=confidence_level,
        interval=interval,
    )
    is_known = np.array([reason == "" for reason in design.reasons])
    return tuple(np.where(is_known, limit, np.nan) for limit in limits)


def _clusters_by_panel(clusters, groups, panels, n_rows):
    """Return the code of the cluster of each sample of each panel; None without
    clusters.
    """
    if clusters is None:
        return dict.fromkeys(panels)
    codes = cluster_codes(check_groups(clusters, n_rows, name="clusters")[1])
    if groups is None:
        return dict.fromkeys(panels, codes)
    names, group = check_named_groups(groups, n_rows, takes_max_bins=False)
    return {str(name): codes[group == code] for code, name in enumerate(names)}


def _warn_of_missing_bars(curves):
    """Say how many bins have no interval, and why the first has none."""
    reasons = []
    for curve in curves:
        if curve.bars is not None:
            reasons += [reason for reason in curve.reasons if reason]
    if reasons:
        n_bins = sum((curve.statistics.weight > 0).sum() for curve in curves)
        warn(
            f"{len(reasons)} of {n_bins} bins have no interval. In the first"
            f" {reasons[0]}."
        )


def _refitted(scores, counts, strategy):
    """Return the event frequency at each score in the bins that `strategy` makes of
    each resample.
    """
    labels = np.repeat([False, True], len(scores))
    scores_by_label = np.tile(scores, 2)
    frequency = np.empty((len(counts), len(scores)))
    for row, weight in zip(frequency, counts.reshape(len(counts), -1), strict=True):
        drawn = weight > 0
        resample = BinaryTask(scores_by_label[drawn], labels[drawn], weight[drawn])
        bins = resample.statistics(strategy)
        row[:] = bins.event_frequency[assign_bins(scores, bins.edges)]
    return frequency


def _smooth_curve(task, confidence_level):
    """Return the loess curve at increasing scores, its pointwise band, and that of a
    calibrated model.

    The limits are those of Clopper and Pearson for as many samples as give the
    frequency the variance of the curve.
    """
    weight = task.sample_weight
    if task.weight_type == "importance":
        weight = weight * (weight.sum() / (weight @ weight))
    power = LoessError().of_task(task._replace(sample_weight=weight))
    curve = power.curve(power.cells.event_frequency)
    scores = power.scores
    # the variance of each score's value is the sum of these shares of p (1 - p)
    share = power.smoother.T**2 / power.weight
    variance = share @ (curve * (1 - curve))
    even = 1 / share.sum(axis=1)
    trials = np.divide(
        curve * (1 - curve),
        variance,
        out=even,
        where=variance * curve * (1 - curve) > 0,
    )
    band = Band(
        scores,
        *binomial_interval(trials * curve, trials, confidence_level=confidence_level),
    )
    width = ndtri((1 + confidence_level) / 2) * np.sqrt(share @ (scores * (1 - scores)))
    return (
        curve,
        band,
        Band(scores, np.maximum(scores - width, 0), np.minimum(scores + width, 1)),
    )


def _ends(scores):
    """Return the smallest and the largest score."""
    return float(np.min(scores)), float(np.max(scores))


def _scores_of_bands(scores, means):
    """Return the scores in order at which bands are drawn: both ends, and the means of
    bins between them.
    """
    low, high = _ends(scores)
    if high - low <= 0.02:  # a band between them could not be seen
        low = max(low - 0.01, 0.0)
        high = min(high + 0.01, 1.0)
    return np.unique(np.concatenate((means, (low, high))))


def _frequency_of(counts, observed):
    """Return the event frequencies of drawn counts (n_resamples, 2, n_cells) of both
    labels; where none is drawn the observed one.
    """
    total = counts.sum(axis=1)
    frequency = np.broadcast_to(observed, total.shape).copy()
    return np.divide(counts[:, 1], total, out=frequency, where=total > 0)


def readable_limits(low, high):
    """Return limits of axes for probabilities: 0 and 1 unless half of that would be
    empty (a rare event).
    """
    if high <= 0.5:
        return 0.0, _next_round(high)
    if low >= 0.5:
        return 1 - _next_round(1 - low), 1.0
    return 0.0, 1.0


def _next_round(value):
    """Return the smallest round number that is not below a value, at most 1."""
    value = min(max(value, 1e-6), 1.0) * (1 - 1e-9)
    power = 10.0 ** np.floor(np.log10(value))
    steps = power * np.array([1, 1.5, 2, 3, 4, 5, 6, 8, 10])
    return float(steps[steps >= value][0])


def _row_arguments(task):
    """Return the labels of a problem, and its weights if it has some, as keywords of
    metrics.
    """
    arguments = {"labels": [False, True]}
    if task.sample_weight is not None:
        arguments["sample_weight"] = task.sample_weight
    return arguments


def _tasks(y_true, models, multiclass, groups, order, reading):
    """Return the binary problems, by panel and model, what kind of event they are
    about, and its name if it has one.
    """
    tasks = {}
    for model, y_proba in models.items():
        data = check_scored_labels(
            y_true,
            y_proba,
            multiclass=multiclass,
            drop=False,
            multilabel=True,
            **reading,
        )
        kind = resolve_multiclass(multiclass, data)
        problems = list(binary_tasks(data, multiclass))
        if data.is_multilabel and groups is not None:
            raise ValueError(
                "groups and several labels per row exclude each other: both ask for"
                " a panel each. Draw one column of y_true and of y_proba at a time."
            )
        if groups is not None:
            by_panel = _by_group(problems[0], groups, order)
        elif kind == "marginal":
            by_panel = zip(map(str, data.classes.tolist()), problems, strict=True)
        else:
            by_panel = [(None, problems[0])]
        for panel, task in by_panel:
            tasks.setdefault(panel, {})[model] = task
    if data.is_multilabel:
        return tasks, "multilabel", None
    event = data.classes[-1]
    if kind != "binary" or event is None or isinstance(event, bool | np.bool_):
        return tasks, kind, None
    if not isinstance(event, str):
        event = f"class {event}"
    return tasks, kind, event


def _by_group(task, groups, order):
    """Yield the name and the problem of each group that has rows that count."""
    names, codes = check_named_groups(groups, len(task.scores), takes_max_bins=False)
    present, first = np.unique(codes, return_index=True)
    if order == "given":
        present = present[np.argsort(first)]
    for code in present:
        of_group = BinaryTask(*(taken(column, codes == code) for column in task))
        if of_group.sample_weight is None or of_group.sample_weight.any():
            yield str(names[code]), of_group
