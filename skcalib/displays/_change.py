"""What has changed between two data sets: the difference in event frequency, score
by score.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from skcalib._cells.statistics import bin_statistics
from skcalib._input.scalars import check_confidence_level
from skcalib._rows.blocks import weights_or_ones
from skcalib._verdicts import count_words, interval_words, level_words, pvalue_words
from skcalib.binning import EqualMass, check_binning
from skcalib.displays._finish import finish
from skcalib.displays._frames import frame_of_panels
from skcalib.displays._style import (
    curve_styles,
    error_bars,
    neutral,
    reference_style,
    styled,
)
from skcalib.monitoring import calibration_change
from skcalib.monitoring._two_samples import two_samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.patches import StepPatch

    from skcalib.binning import BaseBinning
    from skcalib.metrics import BinStatistics
    from skcalib.monitoring._change import CalibrationChange


_HISTOGRAM_BINS = 30
_HISTOGRAM_HEIGHT = 0.25  # in units of the height of the diagram


class ChangeDisplay:
    """Change in event frequency at each score between two data sets.

    A point above 0 means that events with this score have become more frequent. If only
    the distribution of the scores has changed, the histogram below shifts and the
    points stay at 0. Create the display with `from_predictions`.

    Parameters
    ----------
    change : CalibrationChange
        The result of `calibration_change`.
    statistics : tuple of BinStatistics
        Bin sums of the first and the second data set, for the same bins.
    histograms : tuple of BinStatistics, default=None
        Bin sums of the two data sets for the bins of the histograms; None means
        `statistics`.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).

    Attributes
    ----------
    scores, difference, low, high : ndarray of shape (n_shown,)
        Mean score of each bin that contains samples from both data sets, the change in
        this bin, and its limits.
    ax_ : Axes
        The axes of the change.
    figure_ : Figure
        The figure.
    line_ : Line2D
        The line of the change.
    intervals_ : ErrorbarContainer
        The intervals for the change.
    histograms_ : list of StepPatch
        The shares of samples in both data sets; empty without a histogram.
    legend_ : Legend or None
        The legend.

    See Also
    --------
    skcalib.monitoring.calibration_change : The change without a plot.

    Notes
    -----
    The change in a bin is the difference between the means of y - s, after minus
    before: if the scores are equal, this is the difference between the event
    frequencies. Its interval combines the Wilson limits of the two frequencies by the
    "square and add" method [1]_. Each interval is valid separately; the intervals are
    not valid simultaneously. The p-value in the title is for the whole curve and does
    not use bins.

    References
    ----------
    .. [1] Newcombe (1998), Interval estimation for the difference between independent
        proportions.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.displays import ChangeDisplay
    >>> rng = np.random.default_rng(0)
    >>> before, after = rng.random(2000), rng.random(2000)
    >>> y_before, y_after = rng.random(2000) < before, rng.random(2000) < 0.8 * after
    >>> display = ChangeDisplay.from_predictions(
    ...     y_before, before, y_after, after, random_state=0
    ... )
    >>> bool(display.difference[-1] < -0.1), len(display.scores)
    (True, 10)
    """

    scores: np.ndarray
    difference: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ax_: Axes
    figure_: Figure
    line_: Line2D
    intervals_: ErrorbarContainer
    histograms_: list[StepPatch]
    legend_: Legend | None

    def __init__(
        self,
        change: CalibrationChange,
        statistics: tuple[BinStatistics, BinStatistics],
        *,
        histograms: tuple[BinStatistics, BinStatistics] | None = None,
        confidence_level: float = 0.9,
    ):
        self.change = change
        self.statistics = tuple(statistics)
        self.histograms = self.statistics if histograms is None else tuple(histograms)
        self.confidence_level = confidence_level
        before, after = self.statistics
        in_both = (before.weight > 0) & (after.weight > 0)
        weight = (before.weight + after.weight)[in_both]
        self.scores = (before.weighted_score + after.weighted_score)[in_both] / weight
        bias_before = (before.event_frequency - before.mean_score)[in_both]
        bias_after = (after.event_frequency - after.mean_score)[in_both]
        self.difference = bias_after - bias_before
        # The distances of a Wilson limit from its frequency add up in squares: the
        # lower limit of a difference takes the lower one of `after` and the upper one
        # of `before` (Newcombe 1998).
        below_before, above_before = _distances(before, confidence_level, in_both)
        below_after, above_after = _distances(after, confidence_level, in_both)
        self.low = self.difference - np.hypot(below_after, above_before)
        self.high = self.difference + np.hypot(above_after, below_before)

    @classmethod
    def from_predictions(
        cls,
        y_before: ArrayLike | BinStatistics,
        y_proba_before: ArrayLike | None = None,
        y_after: ArrayLike | BinStatistics | None = None,
        y_proba_after: ArrayLike | None = None,
        *,
        binning: BaseBinning | int | None = None,
        confidence_level: float = 0.9,
        multiclass: Literal["auto", "top_label"] = "auto",
        pos_label: float | str | None = None,
        labels: ArrayLike | None = None,
        norm: float | Literal["l1", "l2", "max"] = 2,
        method: Literal[
            "auto", "plugin", "debiased", "unbiased", "label_binned"
        ] = "auto",
        n_resamples: int = 999,
        sample_weight: ArrayLike | tuple | None = None,
        weight_type: Literal["frequency", "importance"] | dict = "frequency",
        clusters: ArrayLike | tuple | None = None,
        random_state: int | np.random.RandomState | None = None,
        ax: Axes | None = None,
        plot_options: dict[str, Any] | None = None,
    ) -> Self:
        """Compare two data sets and draw the change.

        Parameters
        ----------
        y_before : array-like of shape (n,), or BinStatistics
            Labels of the first data set. Two `BinStatistics` with equal edges may be
            given as the first two arguments.
        y_proba_before : array-like of shape (n,), (n, 2) or (n, K), default=None
            Probabilities of the first data set, in [0, 1].
        y_after : array-like of shape (n,), or BinStatistics, default=None
            Labels of the second data set.
        y_proba_after : array-like of shape (n,), (n, 2) or (n, K), default=None
            Probabilities of the second data set, in [0, 1].
        binning : BaseBinning, int or None, default=None
            Bins of the curve, computed for both data sets together. An int is the
            number of equal-mass bins; None means 10.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).
        multiclass : {"auto", "top_label"}, default="auto"
            See `calibration_change`.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        labels : array-like of shape (K,), default=None
            The sorted labels of the columns.
        norm : float, default=2
            Norm of the error; see `skcalib.metrics.calibration_error`.
        method : {"auto", "plugin", "debiased", "unbiased", "label_binned"}, default="auto"
            Method for estimating the error; see `skcalib.metrics.calibration_error`.
        n_resamples : int, default=999
            Number of draws for the p-value and the intervals for the errors. The
            smallest possible p-value is ``1 / (n_resamples + 1)``.
        sample_weight : pair of array-likes, default=None
            Weights of the samples before and after; see `weight_type`.
        weight_type : {"frequency", "importance"} or dict, default="frequency"
            Meaning of the weights. "frequency": a weight of 2 means two identical
            samples. "importance": each sample was observed once and represents more or
            less than one (to correct for the sampling design or for covariate shift);
            the weights w of a data set correspond to an effective sample size of
            ``sum(w)**2 / sum(w**2)``. A dict gives the weight that each sample would
            have with each of two labels, a number or an array; see
            `skcalib.evaluation.describe_weights`.
        clusters : pair of array-likes, default=None
            The clusters of the samples before and after: samples in the same cluster
            (for example, from one patient or match) may be dependent, even across the
            two data sets. A value that occurs in both is the same cluster: clusters
            that are numbered anew in the second data set need other numbers.
        random_state : int, RandomState instance or None, default=None
            Seed for the random draws.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        plot_options : dict, default=None
            Options of `plot`.

        Returns
        -------
        display : ChangeDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If labels or probabilities are inconsistent, or if the statistics have
            different edges.
        """  # noqa: E501
        level = check_confidence_level(confidence_level)
        data = (y_before, y_proba_before, y_after, y_proba_after)
        input_options = {
            "multiclass": multiclass,
            "pos_label": pos_label,
            "labels": labels,
            "sample_weight": sample_weight,
            "weight_type": weight_type,
        }
        change = calibration_change(
            *data,
            norm=norm,
            method=method,
            confidence_level=level,
            n_resamples=n_resamples,
            clusters=clusters,
            random_state=random_state,
            **input_options,
        )
        samples = two_samples(*data, binning, **input_options)
        statistics, histograms = _binned(samples, binning)
        display = cls(change, statistics, histograms=histograms, confidence_level=level)
        return display.plot(ax, **(plot_options or {}))

    def plot(
        self,
        ax: Axes | None = None,
        *,
        histogram: bool = True,
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
        interval_kw: dict[str, Any] | None = None,
        histogram_kw: dict[str, Any] | None = None,
        legend_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the stored results.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        histogram : bool, default=True
            Whether to draw histograms of the scores of both data sets below the change.
        legend : bool, default=True
            Whether to draw a legend for the data sets and the intervals.
        line_kw, interval_kw, histogram_kw, legend_kw : dict, default=None
            Keyword arguments of the artists (`Axes.plot`, `Axes.errorbar`,
            `Axes.stairs` and `legend`) that override the defaults.

        Returns
        -------
        display : ChangeDisplay
            The display, with the artists as attributes.
        """
        from matplotlib.ticker import MaxNLocator

        strips = (_HISTOGRAM_HEIGHT,) if histogram else ()
        frame = frame_of_panels(ax, 1, strips)
        (axes,) = frame.axes
        # in percentage points
        difference = 100 * self.difference
        low = 100 * self.low
        high = 100 * self.high
        # One solid line, in the colour that the second of two curves would have: it
        # belongs to the data after, whose histogram has the same colour.
        (style,) = curve_styles(1, marked=True)
        _, style_of_second = curve_styles(2)
        style["color"] = style_of_second["color"]
        zero = axes.axhline(0, **reference_style())
        self.intervals_ = error_bars(
            axes, self.scores, difference, low, high, style["color"], interval_kw
        )
        style["label"] = "after minus before"
        (self.line_,) = axes.plot(self.scores, difference, **styled(line_kw, **style))
        keys = {
            "no change": zero,
            f"{level_words(self.confidence_level)} interval": self.intervals_,
        }
        self.histograms_ = []
        if histogram:
            self._draw_histograms(frame.below[0], style["color"], histogram_kw)
            keys["before"], keys["after"] = self.histograms_

        # The horizontal axis shows the range of the scores, and a little room at both
        # ends. Both histograms have the same bins.
        before, after = self.histograms
        filled_bins = np.flatnonzero(before.count + after.count)
        left = before.edges[filled_bins[0]]
        right = before.edges[filled_bins[-1] + 1]
        room = 0.02 * (right - left)
        axes.set_xlim(left - room, right + room)
        n_ticks = 4 if frame.width < 3 else "auto"
        axes.xaxis.set_major_locator(MaxNLocator(n_ticks, steps=[1, 2, 5, 10]))
        return finish(
            self,
            frame,
            keys,
            "Score",
            "Change of event frequency\nat equal scores (points)",
            legend=legend,
            caption=self._captions(),
            legend_kw=legend_kw,
        )

    def _draw_histograms(self, strip, color, histogram_kw):
        """Draw the histograms of the scores in percent of the rows: before as a grey
        area, after as a line.
        """
        looks = (
            {"facecolor": neutral(0.3), "fill": True},
            {"edgecolor": color},
        )
        for look, statistics in zip(looks, self.histograms, strict=True):
            percentages = 100 * statistics.count / statistics.count.sum()
            style = styled(histogram_kw, linewidth=1.2, **look)
            steps = strip.stairs(percentages, statistics.edges, **style)
            self.histograms_.append(steps)
        strip.set(yticks=[], ylabel="Rows")

    def _captions(self):
        """Return captions, the longest first: the numbers of rows, the shift with its
        interval, and the p-value of the test of equal curves; the shift without
        interval and the p-value; the p-value alone.
        """
        change = self.change
        rows = (
            f"{count_words(change.n_before)} samples before,"
            f" {count_words(change.n_after)} after"
        )
        shift = interval_words(*change.shift, scale=100, unit="points", signed=True)
        estimate, _, _ = shift.partition(" (")  # without its interval
        test = f"same curve: {pvalue_words(change.pvalue)}"
        return [
            f"{rows}\nshift {shift}, {test}",
            f"shift {estimate}\n{test}",
            test,
        ]


def _distances(statistics, confidence_level, bins):
    """Return how far Wilson's limits lie below and above the event frequency in the
    selected `bins`, (2, n_selected).
    """
    limits = np.asarray(statistics.interval(confidence_level, interval="wilson"))
    distances = np.abs(limits - statistics.event_frequency)
    return distances[:, bins]


def _binned(samples, binning):
    """Return the (before, after) `BinStatistics` in the bins of `binning`, and in those
    of the histograms: the edges come from both samples together.
    """
    if samples[0].task is None:  # the user gave `BinStatistics`, not rows
        statistics = tuple(sample.statistics for sample in samples)
        return statistics, statistics
    tasks = [sample.task for sample in samples]
    scores = np.concatenate([task.scores for task in tasks])
    labels = np.concatenate([task.labels for task in tasks])
    weight = np.concatenate(
        [weights_or_ones(task.weight, len(task.scores)) for task in tasks]
    )
    strategy = check_binning(binning, EqualMass(10))
    edges = strategy._edges_of(scores, labels, weight)
    histogram_edges = np.histogram_bin_edges(scores, _HISTOGRAM_BINS)
    # NumPy widens the range of a constant score, beyond 0 or 1 if it lies there.
    histogram_edges = np.unique(np.clip(histogram_edges, 0, 1))
    return _in_bins(tasks, edges), _in_bins(tasks, histogram_edges)


def _in_bins(tasks, edges):
    """Return a tuple with the `BinStatistics` of each binary problem (scores, labels
    and weights), all in bins with the same edges.
    """
    return tuple(
        bin_statistics(task.scores, task.labels, edges, task.weight) for task in tasks
    )
