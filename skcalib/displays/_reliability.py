"""Reliability diagrams: event frequency against predicted probability, with what noise alone would do."""

import numpy as np

from skcalib.displays._predictions import named_models, predicted_probabilities
from skcalib.displays._reliability_curves import CurveOptions, diagram_numbers, readable_limits
from skcalib.displays._reliability_panel import (
    HISTOGRAM_HEIGHT,
    draw_band,
    draw_bars,
    draw_consistency,
    draw_curve,
    draw_histogram,
    draw_reference,
    n_curves,
    scale_histogram,
)
from skcalib.displays._style import (
    canonical_keywords,
    colors,
    format_count,
    grid_frame,
    legend_outside,
    mark,
    matplotlib_text,
    percent,
    single_frame,
)

__all__ = ["ReliabilityDisplay"]

_AXIS_LABELS = {
    "binary": ("Predicted probability", "Event frequency"),
    "top_label": ("Probability of the predicted class", "Frequency correct"),
    "marginal": ("Predicted probability", "Frequency of the class"),
}
_CLASS_NAMES = {
    "binary": ("no event", "event"),
    "top_label": ("wrong", "right"),
    "marginal": ("other class", "this class"),
}
_LONGEST_NAME = 24  # letters of a class or group that fit above its panel


class ReliabilityDisplay:
    """Reliability diagram: how often events happen that were predicted with probability s.

    Draws for each model the event frequency of the bins against their mean score with intervals, a band around the
    diagonal within which a calibrated model would stay, the histogram of the scores below, and the calibration error
    with its interval in the legend. Make it with `from_estimator` or `from_predictions`; the numbers are stored, and
    `plot` draws them again without computing anything.

    Parameters
    ----------
    curves : list of ReliabilityCurve
        One for each model in each panel.
    confidence_level : float
        Level of the intervals and bands.
    kind : {"binary", "top_label", "marginal"}
        What the event is, for the labels of the axes.
    error_name : str, default="error"
        What the legend calls the error.
    n_panels_left_out : int, default=0
        Classes or groups that are not shown.

    Attributes
    ----------
    ax_ : Axes or ndarray of Axes
        The axes of the diagram, one a panel.
    figure_ : Figure
        The figure.
    histogram_ax_ : Axes or ndarray of Axes or None
        The axes of the histograms.
    lines_ : list of Line2D
        The curves, in the order of `curves`.
    intervals_ : list of ErrorbarContainer or PolyCollection
        The intervals of the event frequencies.
    consistency_bands_ : list of PolyCollection
        The bands around the diagonal.
    reference_lines_ : list of Line2D
        The diagonals.
    histograms_ : list of StepPatch
        The histograms; with `split_histogram` two a curve, events first.
    legend_ : Legend or None
        The legend.

    See Also
    --------
    skcalib.metrics.reliability_curve : The bins as numbers.
    skcalib.metrics.calibration_error_interval : The error in the legend.

    References
    ----------
    Bröcker and Smith (2007), Increasing the reliability of reliability diagrams. Dimitriadis, Gneiting and Jordan
    (2021), Stable reliability diagrams for probabilistic classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.displays import ReliabilityDisplay
    >>> rng = np.random.default_rng(0)
    >>> y_proba = rng.random(500)
    >>> y_true = rng.random(500) < y_proba
    >>> display = ReliabilityDisplay.from_predictions(y_true, y_proba, name="calibrated", random_state=0)
    >>> display.legend_.get_texts()[0].get_text().splitlines()
    ['calibrated, n = 500', 'calibration error', '0.0 % (0.0 to ...)']
    """

    def __init__(self, curves, *, confidence_level, kind="binary", error_name="error", n_panels_left_out=0):
        self.curves = list(curves)
        self.confidence_level = confidence_level
        self.kind = kind
        self.error_name = error_name
        self.n_panels_left_out = n_panels_left_out

    @classmethod
    def from_estimator(cls, estimator, X, y, *, name=None, **options):
        """Draw the reliability diagram of one or several fitted classifiers.

        Parameters
        ----------
        estimator : classifier or dict of classifiers by name
            Fitted, with `predict_proba`.
        X : array-like of shape (n, n_features)
            Rows that the classifier was not fitted on.
        y : array-like of shape (n,)
            Labels.
        name : str, default=None
            Name in the legend; None is the name of the class.
        **options : dict
            Options of `from_predictions`.

        Returns
        -------
        display : ReliabilityDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If the estimator has no `predict_proba`, and for input that has no answer.
        """
        probabilities, classes = predicted_probabilities(estimator, X, name)
        return cls.from_predictions(y, probabilities, **{"labels": classes, **options})

    @classmethod
    def from_predictions(
        cls,
        y_true,
        y_proba,
        *,
        binning=None,
        multiclass="auto",
        groups=None,
        interval="auto",
        confidence_level=0.9,
        n_resamples=1000,
        metric="auto",
        max_panels=12,
        sample_weight=None,
        pos_label=None,
        labels=None,
        name=None,
        random_state=None,
        ax=None,
        **plot_options,
    ):
        """Draw the reliability diagram of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_proba : array-like of shape (n,), (n, 2) or (n, K), or dict of such
            Probabilities in [0, 1]; a dict draws several models in the same axes, by name.
        binning : BaseBinning, int or None, default=None
            Strategy; an int means so many equal-mass bins. None means 15 equal-mass bins, of which neighbours are
            merged until each holds 10 rows. `PoolAdjacentViolators` draws the steps of the isotonic fit (CORP).
        multiclass : {"auto", "top_label", "marginal"}, default="auto"
            "auto" is the positive class for one or two columns, "top_label" for more. "marginal" gives each class a
            panel of its own, the one with the largest error first.
        groups : array-like of shape (n,), default=None
            Groups of rows that get a panel each, the one with the largest error first.
        interval : {"auto", "clopper_pearson", "wilson", "hoeffding", "bootstrap"} or None, default="auto"
            Bars for each bin, or a bootstrap band. "auto" is Clopper-Pearson, or the bootstrap for bins that depend on
            the labels, for which no other interval is valid (they are made anew on each resample).
        confidence_level : float, default=0.9
            Level of each bin's interval, of the consistency band (at each score) and of the error's interval.
        n_resamples : int, default=1000
            Number of bootstrap resamples.
        metric : callable, "auto" or None, default="auto"
            The error of the legend and of the panels' order. "auto" is `calibration_error`, in the bins given as
            `binning` unless they depend on the labels. None leaves it out.
        max_panels : int, default=12
            Most classes or groups that are shown.
        sample_weight : array-like of shape (n,), default=None
            Weights, which count as repeated rows.
        pos_label : int, float, bool or str, default=None
            The label that one column of scores is the probability of.
        labels : array-like of shape (K,), default=None
            The sorted labels of the columns.
        name : str, default=None
            Name of the model in the legend.
        random_state : int, RandomState or None, default=None
            Seed of the resamples.
        ax : Axes or array of Axes, default=None
            Where to draw; None makes a figure. One axes with several panels is divided. The axes of an earlier display
            may be given, to draw on top of it.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : ReliabilityDisplay
            The drawn display.

        Raises
        ------
        ValueError
            For input that has no answer, and for an interval that is not valid for the bins.
        ImportError
            If matplotlib is missing.
        """
        numbers = diagram_numbers(
            y_true,
            named_models(y_proba, name),
            options=CurveOptions.checked(binning, interval, confidence_level, n_resamples, metric, random_state),
            multiclass=multiclass,
            groups=groups,
            max_panels=max_panels,
            sample_weight=sample_weight,
            pos_label=pos_label,
            labels=labels,
        )
        return cls(**numbers).plot(ax, **plot_options)

    def plot(
        self,
        ax=None,
        *,
        histogram=True,
        split_histogram=False,
        histogram_scale="linear",
        consistency_band=None,
        limits="auto",
        legend=True,
        line_kw=None,
        interval_kw=None,
        consistency_kw=None,
        reference_kw=None,
        histogram_kw=None,
        legend_kw=None,
    ):
        """Draw the stored numbers.

        Parameters
        ----------
        ax : Axes or array of Axes, default=None
            Where to draw; None makes a figure.
        histogram : bool, default=True
            Whether the scores' histogram is drawn below.
        split_histogram : bool, default=False
            Whether events are drawn upwards and the others downwards.
        histogram_scale : {"linear", "log"}, default="linear"
            Scale of the number of rows.
        consistency_band : bool, default=None
            Whether the band around the diagonal is drawn; None draws it where there is one model.
        limits : "auto" or tuple of float, default="auto"
            Lowest and highest probability of both axes; "auto" is (0, 1), or less where more than half would be empty.
        legend : bool, default=True
            Whether there is a legend.
        line_kw, interval_kw, consistency_kw, reference_kw, histogram_kw, legend_kw : dict, default=None
            Keywords of the artists (`Axes.plot`, `Axes.errorbar` or `Axes.fill_between`, `Axes.fill_between`,
            `Axes.plot`, `Axes.stairs` and `legend`) that replace ours.

        Returns
        -------
        display : ReliabilityDisplay
            Itself, with the artists as attributes.
        """
        if histogram_scale not in ("linear", "log"):
            raise ValueError(f'histogram_scale must be "linear" or "log", found {histogram_scale!r}.')
        panels = list(dict.fromkeys(curve.panel for curve in self.curves))
        height = HISTOGRAM_HEIGHT if histogram else None
        if panels == [None]:
            frame = single_frame(ax, height_below=height)
        else:
            frame = grid_frame(ax, len(panels), height_below=height)
        styles, alone = self._styles(frame.axes[0])
        limits = self._limits(limits)
        reference_kw = canonical_keywords(reference_kw)
        self.reference_lines_ = [draw_reference(panel_axes, limits, reference_kw) for panel_axes in frame.axes]
        self.lines_, self.intervals_, self.consistency_bands_, self.histograms_ = [], [], [], []
        place = dict(zip(panels, frame.axes, strict=True))
        for curve in self.curves:
            color, look = styles[curve.model]
            if alone if consistency_band is None else consistency_band:
                self._draw_consistency(
                    place[curve.panel], curve, None if alone else color, canonical_keywords(consistency_kw)
                )
            self._draw_interval(place[curve.panel], curve, color, canonical_keywords(interval_kw))
            label = self._line_label(curve)
            self.lines_.append(draw_curve(place[curve.panel], curve, color, look, canonical_keywords(line_kw), label))
        if histogram:
            place = dict(zip(panels, frame.below, strict=True))
            self._draw_histograms(
                place, styles, alone, split_histogram, histogram_scale, canonical_keywords(histogram_kw)
            )
        self._name_axes(frame, panels)
        self.legend_ = (
            legend_outside(frame, self._legend_title(panels), canonical_keywords(legend_kw)) if legend else None
        )
        self.figure_ = frame.axes[0].figure
        self.ax_, self.histogram_ax_ = frame.axes, np.array(frame.below, dtype=object)
        if panels == [None]:
            self.ax_, self.histogram_ax_ = frame.axes[0], frame.below[0] if histogram else None
        return self

    def _limits(self, limits):
        if isinstance(limits, str) and limits == "auto":
            lows, highs = zip(*(curve.limits for curve in self.curves), strict=True)
            return readable_limits(min(lows), max(highs))
        if isinstance(limits, str) or len(limits) != 2 or not 0 <= limits[0] < limits[1] <= 1:
            raise ValueError(f'limits must be "auto" or two increasing probabilities, found {limits!r}.')
        return limits

    def _draw_histograms(self, place, styles, alone, split, scale, stairs_kw):
        for curve in self.curves:
            steps = draw_histogram(
                place[curve.panel],
                curve,
                *styles[curve.model],
                split=split,
                filled=alone,
                stairs_kw=stairs_kw,
                labels=_CLASS_NAMES[self.kind],
            )
            self.histograms_ += steps
        for ax in place.values():
            scale_histogram(ax, scale)

    def _styles(self, ax):
        """Return colour and mark by model, and whether there is one model only, earlier displays included."""
        models = list(dict.fromkeys(curve.model for curve in self.curves))
        earlier = n_curves(ax)
        palette = colors(earlier + len(models))[earlier:]
        marks = [mark(earlier + rank) for rank in range(len(models))]
        return dict(zip(models, zip(palette, marks, strict=True), strict=True)), earlier + len(models) == 1

    def _draw_consistency(self, ax, curve, color, keywords):
        label = f"{self._level} consistency band" if curve is self.curves[0] else None
        self.consistency_bands_.append(draw_consistency(ax, curve, color, keywords, label))

    def _draw_interval(self, ax, curve, color, keywords):
        label = f"{self._level} interval" if curve is self.curves[0] else None
        if curve.bars is not None:
            self.intervals_.append(draw_bars(ax, curve, color, keywords, label))
        elif curve.band is not None:
            self.intervals_.append(draw_band(ax, curve, color, keywords, label))

    @property
    def _level(self):
        return f"{100 * self.confidence_level:g} %"

    def _line_label(self, curve):
        """Return the legend's words; in small multiples the numbers stand above the panels."""
        if curve.panel is not None:
            return matplotlib_text(curve.model)
        if len(self.curves) > 1:
            return matplotlib_text(curve.model) + ("" if curve.error is None else f": {_with_interval(curve.error)}")
        lines = [f"{matplotlib_text(curve.model)}, n = {format_count(curve.statistics.total_weight)}"]
        if curve.error is not None:
            lines += [self.error_name, _with_interval(curve.error)]
        return "\n".join(lines)

    def _legend_title(self, panels):
        if panels == [None] and len(self.curves) > 1:
            size = f"n = {format_count(self.curves[0].statistics.total_weight)}"
            return size if all(curve.error is None for curve in self.curves) else f"{self.error_name}, {size}"
        if not self.n_panels_left_out:
            return None
        parts = "classes" if self.kind == "marginal" else "groups"
        return f"{len(panels)} of {len(panels) + self.n_panels_left_out} {parts}, the largest error first"

    def _name_axes(self, frame, panels):
        """Name the axes, in a grid only those at its border, and the panels where there are several."""
        x_label, y_label = _AXIS_LABELS[self.kind]
        for i, (upper, panel) in enumerate(zip(frame.axes, panels, strict=True)):
            lowest = frame.below[i] if frame.below else upper
            if panel is not None:
                upper.set_title(self._panel_title(panel), fontsize="small")
            at_left, at_bottom = i % frame.n_columns == 0, i + frame.n_columns >= len(panels)
            upper.set_ylabel(y_label if at_left else "")
            upper.tick_params(labelleft=at_left)
            if frame.below:
                lowest.set_ylabel("Rows" if at_left else "")
            lowest.set_xlabel(x_label if at_bottom else "")

    def _panel_title(self, panel):
        """Return the name of a panel with its number of rows and its errors, in the order of the models."""
        curves = [curve for curve in self.curves if curve.panel == panel]
        statistics = curves[0].statistics
        size = f"n = {format_count(statistics.total_weight)}"
        if self.kind == "marginal":
            size = f"{format_count(statistics.weighted_label.sum())} of {format_count(statistics.total_weight)} rows"
        errors = [percent(curve.error[0]) for curve in curves if curve.error is not None]
        if self.kind == "marginal":
            panel = f"class {panel}"
        name = panel if len(panel) <= _LONGEST_NAME else panel[: _LONGEST_NAME - 1] + "…"
        return "\n".join([matplotlib_text(name), size, *([f"error {', '.join(errors)} %"] if errors else [])])


def _with_interval(error):
    digits = 1 if error[0] == 0 or error[0] >= 0.0095 else 2
    estimate, low, high = (f"{100 * value:.{digits}f}" for value in error)
    return f"{estimate} % ({low} to {high})"
