"""The numbers of a reliability diagram: bins, interval, consistency band, histogram and
error of each curve.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skcalib._cells.statistics import BinStatistics, bin_statistics, set_clusters
from skcalib._cells.tasks import BinaryTask
from skcalib._input.scalars import check_confidence_level, check_int, check_option
from skcalib._input.scores import drop_zero_weight
from skcalib._input.sklearn_private import num_samples
from skcalib._input.warn import warn
from skcalib._intervals.influence import too_few_units
from skcalib._rows.blocks import taken
from skcalib._rows.sorting import distinct_values
from skcalib.binning import (
    BaseBinning,
    EqualMass,
    MinimumMass,
    PoolAdjacentViolators,
    check_binning,
)
from skcalib.binning._base import assign_bins
from skcalib.displays._reliability_bands import (
    BINOMIAL_INTERVALS,
    Band,
    BinLimitsMaker,
    smooth_curve,
)
from skcalib.displays._reliability_tasks import (
    clusters_by_panel,
    panel_tasks,
    row_arguments,
    rows_of_task,
)
from skcalib.evaluation import calibration_summary
from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    reliability_curve,
)

# What pictures call the numbers of a `calibration_summary`.
NUMBERS = {
    "observed_expected": "O/E",
    "intercept": "intercept",
    "slope": "slope",
    "ici": "ICI",
    "e50": "E50",
    "e90": "E90",
    "emax": "Emax",
    "brier_score": "Brier",
    "scaled_brier_score": "scaled Brier",
    "auc": "AUC",
}
_N_BINS = 15
_HISTOGRAM_BINS = 40


class _SpreadBins(BaseBinning):
    """Equal-width bins, of which those with more than their share of the samples are
    cut further into bins of equal mass.

    Points are spread over the axis, which suits a network whose scores are nearly all
    close to 0 or 1, and over the samples, which suits a rare event.
    """

    def _edges(self, scores, y, sample_weight):
        """Return the edges (n_bins + 1,) of bins of equal width, with further edges
        inside of those that hold much of the weight. Labels do not matter.
        """
        edges = np.linspace(0, 1, _N_BINS + 1)
        bins = assign_bins(scores, edges)
        # the weight of each bin
        mass = np.bincount(bins, weights=sample_weight, minlength=_N_BINS)
        # A bin with k times the mean weight of a bin is divided into about k bins of
        # equal mass.
        n_finer_bins = np.round(_N_BINS * mass / mass.sum()).astype(int)
        all_edges = [edges]
        for heavy_bin in np.flatnonzero(n_finer_bins > 1):
            inside = bins == heavy_bin
            weight = taken(sample_weight, inside)
            finer = EqualMass(int(n_finer_bins[heavy_bin]))
            edges_inside = finer._edges(scores[inside], y=None, sample_weight=weight)
            all_edges.append(edges_inside[1:-1])
        return np.unique(np.concatenate(all_edges))


# Bins with fewer than 10 rows are merged with the next one: their intervals would be
# nearly as high as the picture.
DEFAULT_BINNING = MinimumMass(_SpreadBins(), min_weight=10)


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """The contents of one curve of a reliability diagram.

    Parameters
    ----------
    model : str or None
        Name of the model.
    panel : str or None
        Name of the class or group, if each has a separate panel.
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
        Calibration error with its interval; None if there are too few samples or
        clusters.
    is_step : bool
        Whether the bins are the blocks of an isotonic fit, which is a step function.
    smooth : ndarray of shape (n_scores,) or None
        A smooth curve at the scores of `band`, which contains its limits.
    has_bins : bool
        Whether the bins are drawn.
    numbers : dict
        Statistics of `calibration_summary` by name, each an `IntervalEstimate`.
    folds : tuple of pair of ndarray
        Scores and event frequencies of the line of each fold, for cross-validated
        models.
    reasons : tuple of str
        With clusters: why a bin has no interval; empty where it has one.
    finding : str or None
        What a simultaneous band says about the diagonal.
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
    finding: str | None = None

    @property
    def limits(self):
        """The smallest and the largest score or event frequency that is drawn, two
        floats: the axes must reach them.
        """
        has_rows = self.statistics.weight > 0
        drawn = [self.consistency.scores, self.statistics.event_frequency[has_rows]]
        if self.bars is not None:
            for limit in self.bars:
                drawn.append(limit[has_rows & ~np.isnan(limit)])
        if self.smooth is not None:
            drawn.append(self.smooth)  # its band may leave the axes
        elif self.band is not None:
            drawn += [self.band.scores, self.band.low, self.band.high]
        for _, frequency in self.folds:
            drawn.append(frequency)
        drawn = np.concatenate(drawn)
        return float(np.nanmin(drawn)), float(np.nanmax(drawn))


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
    # Fold of each row (n,), by the name of the model, for cross-validated models.
    folds: dict = field(default_factory=dict)
    # "simultaneous" for a band that contains the whole curve
    band: str | None = None

    def __post_init__(self):
        """Check the options, replace "auto" by what it means, and set the attributes
        that follow from them: `strategy` (makes the bins of the curves),
        `error_binning` (those of the error), `seed` and `bin_limits` (makes the limits
        around bins).
        """
        if isinstance(self.statistics, str):
            self.statistics = (self.statistics,)
        self.statistics = tuple(self.statistics)
        self.strategy = check_binning(self.binning, DEFAULT_BINNING)
        bins_depend_on_labels = self.strategy.needs_labels
        if self.interval == "auto":
            # Such bins differ between samples: a bootstrap makes them anew, while
            # binomial intervals take bins as given.
            self.interval = "bootstrap" if bins_depend_on_labels else "clopper_pearson"
        self._check_options()
        self.confidence_level = check_confidence_level(self.confidence_level)
        # In bins that depend on the same labels an error would be biased. Instead of
        # these, and of the default bins of the curve, the error has its usual bins.
        self.error_binning = self.strategy
        if self.binning is None or bins_depend_on_labels:
            self.error_binning = EqualMass(15)
        # All curves begin with the same seed, so that the limits in a panel do not
        # depend on which other panels there are.
        self.seed = self.random_state
        if not isinstance(self.seed, Integral):
            rng = check_random_state(self.seed)
            self.seed = int(rng.randint(np.iinfo(np.int32).max))
        self.bin_limits = BinLimitsMaker(
            self.strategy,
            self.interval,
            self.confidence_level,
            self.n_resamples,
            self.seed,
        )

    def _check_options(self):
        """Raise a ValueError if an option is none of those allowed, or if the interval
        is not valid for the bins.
        """
        check_option(self.curve, "curve", ("bins", "smooth", "both"))
        check_option(self.band, "band", (None, "simultaneous"))
        if self.band is not None and self.curve != "bins":
            raise ValueError(
                'band="simultaneous" applies only to bins; a smooth curve has its own'
                ' band: omit band, or pass curve="bins".'
            )
        for name in self.statistics:
            check_option(name, "statistics", tuple(NUMBERS))
        check_option(
            self.interval, "interval", ("auto", "bootstrap", *BINOMIAL_INTERVALS, None)
        )
        if self.interval in BINOMIAL_INTERVALS and self.strategy.needs_labels:
            raise ValueError(
                f'interval="{self.interval}" is not valid for label-dependent bins'
                f' ({type(self.strategy).__name__}): use interval="bootstrap".'
            )
        if not (self.metric is None or self.metric == "auto" or callable(self.metric)):
            raise ValueError(
                f'metric must be "auto", a function or None, found {self.metric!r}.'
            )
        check_int(self.n_resamples, "n_resamples")

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
        **input_options: Any,
    ):
        """Return the arguments with which a `ReliabilityDisplay` is made, as a dict.

        `models` holds the probabilities of each model by name; a class or group of
        `groups` (n,) has a panel, in this `order`, and at most `max_panels` are drawn.
        `input_options` are further arguments of `check_scored_labels`, such as weights.
        """
        if groups is not None and multiclass == "marginal":
            raise ValueError(
                'groups and multiclass="marginal" cannot be combined: each needs'
                " separate panels."
            )
        if not max_panels >= 1:
            raise ValueError(f"max_panels must be at least 1, found {max_panels!r}.")
        check_option(order, "order", ("sorted", "given", "error"))
        # The scores and labels of each curve, by the names of its panel and its model.
        tasks, kind, event = panel_tasks(
            y_true, models, multiclass, groups, order, input_options
        )
        cluster_of_rows = clusters_by_panel(
            clusters, groups, tasks, num_samples(y_true)
        )
        panels = self._shown_panels(tasks, order, max_panels)
        # All histograms have the same edges, which cover the scores of all curves.
        lows = []
        highs = []
        for panel in panels:
            for task in tasks[panel].values():
                lows.append(float(np.min(task.scores)))
                highs.append(float(np.max(task.scores)))
        low, high = readable_limits(min(lows), max(highs))
        histogram_edges = np.linspace(low, high, _HISTOGRAM_BINS + 1)
        curves = []
        for panel in panels:
            for model, task in tasks[panel].items():
                curve = self._curve_of_task(
                    model, panel, task, histogram_edges, cluster_of_rows[panel]
                )
                curves.append(curve)
        _warn_of_missing_bars(curves)
        return self._display_arguments(
            curves, kind=kind, n_panels_left_out=len(tasks) - len(panels), event=event
        )

    def from_statistics(self, models):
        """Return the arguments of `ReliabilityDisplay`, as a dict, for the
        `BinStatistics` of each model by name.
        """
        for statistics in models.values():
            if not isinstance(statistics, BinStatistics):
                raise TypeError(
                    "The first argument must be BinStatistics or a dict of them by"
                    f" name, found {statistics!r}."
                )
            if not statistics.weight.any():
                raise ValueError(
                    "statistics contain no rows: there is nothing to draw."
                )
        curves = []
        for model, statistics in models.items():
            curve = ReliabilityCurve(
                model=model,
                panel=None,
                statistics=statistics,
                histogram=statistics,
                error=self._error(statistics),
                **self.bin_limits.limits(statistics)._asdict(),
            )
            curves.append(curve)
        return self._display_arguments(curves)

    def _shown_panels(self, tasks, order, max_panels):
        """Return the names of the panels that are drawn, in their order: all, or, of
        more than `max_panels`, those with the largest errors (each panel's largest
        among its models).
        """
        panels = list(tasks)
        if order != "error" and len(tasks) <= max_panels:
            return panels
        largest_error = {}
        for panel, by_model in tasks.items():
            errors = [self._error_for_ranking(task) for task in by_model.values()]
            largest_error[panel] = max(errors)
        worst = sorted(panels, key=largest_error.get, reverse=True)[:max_panels]
        if order == "error":
            return worst
        return [panel for panel in panels if panel in worst]

    def _display_arguments(self, curves, **further):
        """Return a dict with the arguments of `ReliabilityDisplay`: the curves, those
        that this object knows, and further ones.
        """
        metric = self.metric
        if metric in (None, "auto"):
            metric = calibration_error
        if isinstance(metric, partial):
            metric = metric.func
        # An object that can be called need not have a name.
        name = getattr(metric, "__name__", "error").replace("_", " ")
        return {
            "curves": curves,
            "confidence_level": self.confidence_level,
            "error_name": name,
            **further,
        }

    def _curve_of_task(self, model, panel, task, histogram_edges, cluster=None):
        """Return the `ReliabilityCurve` of one model in one panel; a name is None where
        there is one only. `task` holds the samples, `cluster` the cluster of each, or
        None for independent ones.
        """
        folds = tuple(
            self._line_of_fold(fold_task) for fold_task in self._fold_tasks(model, task)
        )
        if cluster is not None and task.sample_weight is not None:
            cluster = cluster[task.sample_weight > 0]
        task = BinaryTask(
            *drop_zero_weight(task.sample_weight, task.scores, task.labels)
        )
        statistics = task.statistics(self.strategy)
        # What metrics are told besides labels and scores.
        metric_options = {"weight_type": task.weight_type, **row_arguments(task)}
        if cluster is not None:
            metric_options["clusters"] = cluster
            is_importance = task.weight_type == "importance"
            set_clusters(statistics, *task, cluster, importance=is_importance)
        limits = self._limits(statistics, task, cluster)
        numbers = self._numbers(task, metric_options)
        histogram = bin_statistics(
            task.scores, task.labels, histogram_edges, task.sample_weight
        )
        error = self._error(
            task.labels, task.scores, binning=self.error_binning, **metric_options
        )
        return ReliabilityCurve(
            model,
            panel,
            statistics,
            histogram=histogram,
            error=error,
            is_step=isinstance(self.strategy, PoolAdjacentViolators),
            has_bins=self.curve != "smooth",
            numbers=numbers,
            folds=folds,
            **limits,
        )

    def _limits(self, statistics, task, cluster):
        """Return fields of `ReliabilityCurve`, a dict: the bars and bands and, if one
        is drawn, the smooth curve. `statistics` are the bins of the samples `task`,
        `cluster` (n,) their clusters, or None.
        """
        bin_limits = self.bin_limits.limits(statistics, task, cluster)
        if self.band is not None:
            simultaneous_band = reliability_curve(
                task.labels,
                task.scores,
                sample_weight=task.sample_weight,
                clusters=cluster,
                simultaneous=True,
                confidence_level=self.confidence_level,
                pos_label=True,
            )
            band = _steps(simultaneous_band)
            limits = bin_limits._replace(bars=None, band=band)._asdict()
            return {**limits, "finding": _finding(simultaneous_band)}
        if self.curve == "bins":
            return bin_limits._asdict()
        smooth, band, consistency = smooth_curve(task, self.confidence_level, cluster)
        if self.curve == "smooth":
            # There are no bins that could have bars, and the band about the diagonal is
            # that of smooth curves.
            bin_limits = bin_limits._replace(bars=None, consistency=consistency)
        return {**bin_limits._replace(band=band)._asdict(), "smooth": smooth}

    def _numbers(self, task, metric_options):
        """Return the statistics of `calibration_summary` that the user wants to see, by
        name. `metric_options` are what it is told besides labels and scores.
        """
        if not self.statistics:
            return {}
        summary = calibration_summary(
            task.labels,
            task.scores,
            confidence_level=self.confidence_level,
            random_state=self.seed,
            **metric_options,
        )
        return {name: getattr(summary, name) for name in self.statistics}

    def _fold_tasks(self, model, task):
        """Yield the test rows of each fold of a cross-validated model as a
        `BinaryTask`, unless all have weight 0.
        """
        folds = self.folds.get(model, ())  # the number of each row's fold
        for fold in np.unique(folds):
            fold_task = rows_of_task(task, folds == fold)
            if fold_task.sample_weight is None or fold_task.sample_weight.any():
                yield fold_task

    def _line_of_fold(self, task):
        """Return the scores and event frequencies of a fold's line: the smooth curve,
        or else the same strategy's bins.
        """
        task = BinaryTask(
            *drop_zero_weight(task.sample_weight, task.scores, task.labels)
        )
        if self.curve != "bins":
            smooth, band, _ = smooth_curve(task, self.confidence_level)
            return band.scores, smooth
        bins = task.statistics(self.strategy)
        if isinstance(self.strategy, PoolAdjacentViolators):
            # A step function, by both ends of each step: an inner edge is the end of
            # one step and the beginning of the next.
            edges = np.clip(bins.edges, np.min(task.scores), np.max(task.scores))
            step_ends = np.repeat(edges, 2)[1:-1]
            return step_ends, np.repeat(bins.event_frequency, 2)
        has_rows = bins.weight > 0
        return bins.mean_score[has_rows], bins.event_frequency[has_rows]

    def _error(self, *data, **arguments):
        """Return the calibration error's `IntervalEstimate`; None if the user wants
        none, or for too few samples or clusters.

        `data` are labels and scores, or a `BinStatistics` alone.
        """
        if self.metric is None:
            return None
        cluster = arguments.get("clusters")
        if cluster is not None:
            weight = arguments.get("sample_weight", np.ones(len(cluster)))
            _, codes = distinct_values(cluster)
            if too_few_units(weight, cluster=codes):
                return None
        arguments |= {
            "confidence_level": self.confidence_level,
            "n_resamples": self.n_resamples,
        }
        if self.metric != "auto":
            arguments.pop("binning", None)  # the user's metric has bins of its own
            return calibration_error_interval(
                *data, metric=self.metric, random_state=self.seed, **arguments
            )
        try:
            return calibration_error_interval(
                *data, random_state=self.seed, **arguments
            )
        except ValueError:
            # The input was checked before: there are too few samples.
            return None

    def _error_for_ranking(self, task):
        """Return the error by which panels are ranked; minus infinity if there are too
        few samples for one.
        """
        try:
            if self.metric in (None, "auto"):
                # The signed square is not cut off at 0, so that small errors differ,
                # too. Of scores on a device, the sums by bin alone are copied.
                return calibration_error(
                    task.statistics(self.error_binning), squared=True
                )
            return self.metric(task.labels, task.scores, **row_arguments(task))
        except ValueError:
            return -np.inf


def _warn_of_missing_bars(curves):
    """Warn if bins of the curves have no interval: say how many, and why the first of
    them has none.
    """
    reasons = []
    for curve in curves:
        if curve.bars is not None:
            # The reason is empty for a bin that has an interval.
            reasons += [reason for reason in curve.reasons if reason]
    if reasons:
        n_bins = sum((curve.statistics.weight > 0).sum() for curve in curves)
        warn(
            f"{len(reasons)} of {n_bins} bins have no interval. In the first,"
            f" {reasons[0]}."
        )


def readable_limits(low, high):
    """Return limits of axes for probabilities from `low` to `high`: 0 and 1 unless half
    of that range would be empty, as for a rare event.
    """
    if high <= 0.5:
        return 0.0, _next_round(high)
    if low >= 0.5:
        return 1 - _next_round(1 - low), 1.0
    return 0.0, 1.0


def _next_round(value):
    """Return the smallest round number that is not below a value in [0, 1]."""
    # Slightly less, so that a round number that is larger by rounding stays itself.
    # At least 1e-6, since 0 has no power of ten.
    value = min(max(value, 1e-6), 1.0) * (1 - 1e-9)
    power_of_ten = 10.0 ** np.floor(np.log10(value))
    round_numbers = power_of_ten * np.array([1, 1.5, 2, 3, 4, 5, 6, 8, 10])
    return float(round_numbers[round_numbers >= value][0])


def _steps(band):
    """Return a `ReliabilityBand` as a `Band` of steps: just below a score, the lower
    limit is that of the score before; just above it, the upper limit is that of the
    next.
    """
    scores = np.repeat(band.score, 3)
    low_before = np.append(band.low[:1], band.low[:-1])
    low = np.stack((low_before, band.low, band.low), axis=1).ravel()
    high_after = np.append(band.high[1:], band.high[-1:])
    high = np.stack((band.high, band.high, high_after), axis=1).ravel()
    # Points on a line between equal limits are left out.
    changes = (np.diff(low) != 0) | (np.diff(high) != 0)
    is_corner = np.append(True, changes) | np.append(changes, True)
    return Band(scores[is_corner], low[is_corner], high[is_corner])


def _finding(band):
    """Return what a `ReliabilityBand` says, as a short text for a title."""
    if np.any(band.low > band.high):
        return "no non-decreasing curve fits"
    return ", ".join(band.findings()) or "compatible with the diagonal"
