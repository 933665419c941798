"""What has changed between two samples: the difference of the event frequencies, score by score."""

import numpy as np

from skcalib._cells.statistics import bin_statistics
from skcalib._input.scalars import check_confidence_level
from skcalib.binning import EqualMass, check_binning
from skcalib.displays._frames import finish, frame_of_panels
from skcalib.displays._style import (
    bar_key,
    colors,
    error_bars,
    format_count,
    neutral,
    point_style,
    reference_style,
    styled,
)
from skcalib.guarantees import event_frequency_interval
from skcalib.monitoring import calibration_change
from skcalib.monitoring._change import two_samples

_HISTOGRAM_BINS = 30
_HISTOGRAM_HEIGHT = 0.25  # in units of the height of the diagram


class ChangeDisplay:
    """Change of the event frequency at each score between two samples, with the interval of each bin.

    Points above 0 are scores at which events have become more frequent. Scores that merely became higher or lower move
    the histogram below and leave the points at 0. Make it with `from_predictions`.

    Parameters
    ----------
    change : CalibrationChange
        What `calibration_change` returns.
    statistics : tuple of BinStatistics
        Sums of the first and of the second sample, by the same bins.
    histograms : tuple of BinStatistics, default=None
        The same by the bins of the histograms; None means `statistics`.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).

    Attributes
    ----------
    scores, difference, low, high : ndarray of shape (n_shown,)
        Mean score of each bin with rows of both samples, the change there, and its limits, in units of 1.
    ax_ : Axes
        The axes of the change.
    figure_ : Figure
        The figure.
    line_ : Line2D
        The change.
    intervals_ : ErrorbarContainer
        Its intervals.
    histograms_ : list of StepPatch
        The shares of the rows of both samples; empty without histogram.
    legend_ : Legend or None
        The legend.

    See Also
    --------
    skcalib.monitoring.calibration_change : The numbers.

    Notes
    -----
    The change of a bin is the difference of the means of y - s, after minus before: at equal scores that is the
    difference of the event frequencies. Its interval joins Wilson's limits of both frequencies by "square and add"
    [1]_. Each interval stands for itself; the p-value in the title is for the whole curve and uses no bins.

    References
    ----------
    .. [1] Newcombe (1998), Interval estimation for the difference between independent proportions.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.displays import ChangeDisplay
    >>> rng = np.random.default_rng(0)
    >>> before, after = rng.random(2000), rng.random(2000)
    >>> y_before, y_after = rng.random(2000) < before, rng.random(2000) < 0.8 * after
    >>> display = ChangeDisplay.from_predictions(y_before, before, y_after, after, random_state=0)
    >>> bool(display.difference[-1] < -0.1), len(display.scores)
    (True, 10)
    """

    def __init__(self, change, statistics, *, histograms=None, confidence_level=0.9):
        self.change = change
        self.statistics = tuple(statistics)
        self.histograms = self.statistics if histograms is None else tuple(histograms)
        self.confidence_level = confidence_level
        self.scores, self.difference, self.low, self.high = self._curve()

    @classmethod
    def from_predictions(
        cls,
        y_before,
        y_proba_before=None,
        y_after=None,
        y_proba_after=None,
        *,
        binning=None,
        confidence_level=0.9,
        multiclass="auto",
        pos_label=None,
        labels=None,
        ax=None,
        plot_options=None,
        **options,
    ):
        """Compare two samples and draw the change.

        Parameters
        ----------
        y_before : array-like of shape (n,), or BinStatistics
            Labels of the first sample. Two `BinStatistics` with equal edges may be given as the first two arguments.
        y_proba_before : array-like of shape (n,), (n, 2) or (n, K), default=None
            Probabilities of the first sample, in [0, 1].
        y_after : array-like of shape (n,), or BinStatistics, default=None
            Labels of the second sample.
        y_proba_after : array-like of shape (n,), (n, 2) or (n, K), default=None
            Probabilities of the second sample, in [0, 1].
        binning : BaseBinning, int or None, default=None
            Bins of the curve, made for both samples together; an int is a number of equal-mass bins, None 10.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).
        multiclass : {"auto", "top_label"}, default="auto"
            See `calibration_change`.
        pos_label : int, float, bool or str, default=None
            The event; None is the greater of two labels, the second column of `predict_proba`.
        labels : array-like of shape (K,), default=None
            The sorted labels of the columns.
        ax : Axes, default=None
            Where to draw; None makes a figure.
        plot_options : dict, default=None
            Options of `plot`.
        **options : dict
            Other options of `calibration_change`, such as `n_resamples` and `sample_weight`.

        Returns
        -------
        display : ChangeDisplay
            The drawn display.

        Raises
        ------
        ValueError
            For labels or probabilities that do not fit together, and for statistics with other edges.
        """
        level = check_confidence_level(confidence_level)
        samples = y_before, y_proba_before, y_after, y_proba_after
        given = {"multiclass": multiclass, "pos_label": pos_label, "labels": labels}
        change = calibration_change(*samples, confidence_level=level, **given, **options)
        given |= {name: options[name] for name in ("sample_weight", "weight_type") if name in options}
        statistics, histograms = _binned(two_samples(*samples, binning, **given), binning)
        display = cls(change, statistics, histograms=histograms, confidence_level=level)
        return display.plot(ax, **(plot_options or {}))

    def _curve(self):
        """The mean scores of the bins with rows of both samples, the changes there and their limits."""
        both = np.logical_and(*(one.weight > 0 for one in self.statistics))
        count = np.array([one.weight[both] for one in self.statistics])
        frequency = np.array([one.event_frequency[both] for one in self.statistics])
        score = np.array([one.mean_score[both] for one in self.statistics])
        options = {"confidence_level": self.confidence_level, "simultaneous": False, "interval": "wilson"}
        limits = [event_frequency_interval(f * n, n, **options) for f, n in zip(frequency, count, strict=True)]
        below, above = (np.abs(frequency - np.array([one[end] for one in limits])) for end in (0, 1))
        difference = (frequency - score)[1] - (frequency - score)[0]
        mean = np.average(score, axis=0, weights=count)
        return mean, difference, difference - np.hypot(below[1], above[0]), difference + np.hypot(above[1], below[0])

    def plot(
        self, ax=None, *, histogram=True, legend=True, line_kw=None, interval_kw=None, histogram_kw=None, legend_kw=None
    ):
        """Draw the stored numbers.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None makes a figure.
        histogram : bool, default=True
            Whether the scores of both samples are drawn below.
        legend : bool, default=True
            Whether the samples and the intervals are explained.
        line_kw, interval_kw, histogram_kw, legend_kw : dict, default=None
            Keywords of the artists (`Axes.plot`, `Axes.errorbar`, `Axes.stairs` and `legend`) that replace the
            defaults.

        Returns
        -------
        display : ChangeDisplay
            Itself, with the artists as attributes.
        """
        frame = frame_of_panels(ax, 1, (_HISTOGRAM_HEIGHT,) if histogram else ())
        self.ax_, self.figure_ = frame.axes[0], frame.figure
        scores, difference, low, high = self.scores, 100 * self.difference, 100 * self.low, 100 * self.high
        color = colors(2)[1]
        zero = self.ax_.axhline(0, **reference_style())
        self.intervals_ = error_bars(self.ax_, scores, difference, low, high, color, interval_kw)
        style = point_style(color, label="after minus before")
        (self.line_,) = self.ax_.plot(scores, difference, **styled(line_kw, **style))
        self.histograms_ = []
        strips = self._draw_histograms(frame, histogram_kw) if histogram else {}
        keys = {"no change": zero, f"{100 * self.confidence_level:g} % interval": bar_key(color), **strips}
        self._name_axes(frame)
        labels = "" if histogram else "Score", "Change of event frequency\nat equal scores (points)"
        keys = keys if legend else {}
        self.legend_ = finish(frame, keys, *labels, caption=self._captions(), legend_kw=legend_kw)
        return self

    def _draw_histograms(self, frame, histogram_kw):
        """Draw the shares of the rows of both samples and return the handles."""
        strip = frame.below[0]
        looks = {"before": {"facecolor": neutral(0.3), "fill": True}, "after": {"edgecolor": colors(2)[1]}}
        for (label, look), one in zip(looks.items(), self.histograms, strict=True):
            style = styled(histogram_kw, linewidth=1.2, label=label, **look)
            self.histograms_.append(strip.stairs(100 * one.count / one.count.sum(), one.edges, **style))
        return dict(zip(looks, self.histograms_, strict=True))

    def _name_axes(self, frame):
        from matplotlib.ticker import MaxNLocator

        filled = np.flatnonzero(sum(one.count for one in self.histograms))
        edges = self.histograms[0].edges
        low, high = edges[filled[0]], edges[filled[-1] + 1]
        self.ax_.set_xlim(low - 0.02 * (high - low), high + 0.02 * (high - low))
        self.ax_.xaxis.set_major_locator(MaxNLocator(4 if frame.width < 3 else "auto", steps=[1, 2, 5, 10]))
        for strip in frame.below:
            strip.set(yticks=[], xlabel="Score", ylabel="Rows")

    def _captions(self):
        change = self.change
        rows = f"{format_count(change.n_before)} rows before, {format_count(change.n_after)} after"
        shift, low, high = (f"{100 * value:+.1f}" for value in change.shift)
        tested = f"same curve: p = {change.pvalue:.2g}"
        return [f"{rows}\nshift {shift} points ({low} to {high}), {tested}", f"shift {shift} points\n{tested}", tested]


def _binned(samples, binning):
    """Return the sums of both samples by common bins, and by those of the histograms."""
    if samples[0].task is None:
        statistics = tuple(sample.statistics for sample in samples)
        return statistics, statistics
    scores = np.concatenate([sample.task.scores for sample in samples])
    labels = np.concatenate([sample.task.labels for sample in samples])
    weights = [np.ones(len(one.task.scores)) if one.task.weight is None else one.task.weight for one in samples]
    edges = check_binning(binning, EqualMass(10))._edges_of(scores, labels, np.concatenate(weights))
    span = scores.min(), scores.max()
    inner = np.linspace(*span, _HISTOGRAM_BINS + 1)[1:-1] if span[0] < span[1] else []
    around = np.unique(np.clip((span[0], *inner, span[1]), 0, 1))
    even = around if len(around) > 1 else np.array([0.0, 1.0])
    return tuple(
        tuple(bin_statistics(*sample.task[:2], cuts, sample.task.weight) for sample in samples)
        for cuts in (edges, even)
    )
