"""Cumulative differences: how far events and scores drift apart along the scores,
without any bins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from skcalib._inference.closed_form import (
    asymptotic,
    cumulative_differences,
    maximum_pvalue,
    range_pvalue,
)
from skcalib._input.scalars import check_confidence_level, check_option
from skcalib._verdicts import level_words, pvalue_words, rounded
from skcalib.displays._finish import finish
from skcalib.displays._frames import pair_frame
from skcalib.displays._predictions import FromEstimator, cells_of_models, named_models
from skcalib.displays._style import (
    colors,
    curve_styles,
    draw_curve,
    neutral,
    reference_style,
    styled,
)
from skcalib.displays._words import captions, model_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D


_MOST_POINTS = 2000  # of a curve that are drawn, its extremes among them


class CumulativeCurve(NamedTuple):
    """The cumulative differences of one model.

    Parameters
    ----------
    model : str or None
        Name of the model.
    scores, share : ndarray of shape (m + 1,)
        Distinct scores in increasing order, starting from 0, and for each the share of
        the samples whose score is at most this value.
    difference : ndarray of shape (m + 1,)
        Sum of w (y - s) over the samples whose score is at most this value, divided by
        the total weight; the first value is 0.
    deviation : float
        Standard deviation of the last difference for a calibrated model.
    n_rows : float
        Number of samples, or the sum of their weights.
    """

    model: str | None
    scores: np.ndarray
    share: np.ndarray
    difference: np.ndarray
    deviation: float
    n_rows: float

    @property
    def kuiper(self) -> tuple[float, float]:
        """The range of the differences, and its asymptotic p-value."""
        return asymptotic(float(np.ptp(self.difference)), self.deviation, range_pvalue)

    @property
    def kolmogorov_smirnov(self) -> tuple[float, float]:
        """The largest absolute difference, and its asymptotic p-value."""
        return asymptotic(
            float(np.abs(self.difference).max()), self.deviation, maximum_pvalue
        )


class CumulativeDifferenceDisplay(FromEstimator):
    """Cumulative sum of ``y - s`` in the order of the scores, divided by n.

    The curve falls where scores are too high and rises where they are too low; its
    slope is the deviation of the event frequency from the score. A calibrated model
    stays inside the band with probability `confidence_level`. No bins are needed. The
    distance between the lowest and the highest point of the curve is the Kuiper error,
    and its largest distance from 0 is the Kolmogorov-Smirnov error; both are marked.

    Parameters
    ----------
    curves : list of CumulativeCurve
        One curve for each model.
    confidence_level : float, default=0.9
        Probability that a calibrated model stays inside the band.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure.
    lines_ : list of Line2D
        The curves.
    band_ : PolyCollection or None
        The band, if there is a single curve.
    marks_ : list of Line2D
        The lines between the lowest and the highest point, if there is a single curve.
    legend_ : Legend or None
        The legend.

    See Also
    --------
    skcalib.metrics.kuiper_calibration_error : The range of the curve, without a plot.
    skcalib.metrics.calibration_test : The tests based on these differences.

    References
    ----------
    Tygert (2021), Cumulative deviation of a subpopulation from the full population.
    Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu (2022), Metrics of calibration for
    probabilistic predictions.

    Examples
    --------
    If scores are too high, the cumulative sum of label minus score falls:

    >>> import numpy as np
    >>> from skcalib.displays import CumulativeDifferenceDisplay
    >>> rng = np.random.default_rng(0)
    >>> y_proba = rng.random(1000)
    >>> y_true = rng.random(1000) < y_proba**1.5
    >>> display = CumulativeDifferenceDisplay.from_predictions(y_true, y_proba)
    >>> round(float(display.curves[0].difference[-1]), 2)
    -0.08
    """

    ax_: Axes
    figure_: Figure
    lines_: list[Line2D]
    band_: PolyCollection | None
    marks_: list[Line2D]
    legend_: Legend | None

    def __init__(
        self, curves: Sequence[CumulativeCurve], *, confidence_level: float = 0.9
    ):
        self.curves = list(curves)
        self.confidence_level = confidence_level

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        confidence_level: float = 0.9,
        multiclass: Literal["auto", "top_label"] = "auto",
        sample_weight: ArrayLike | None = None,
        pos_label: float | str | None = None,
        labels: ArrayLike | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the cumulative differences of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_proba : array-like of shape (n,), (n, 2) or (n, K), or dict of arrays
            Probabilities in [0, 1], or a dict that maps model names to probabilities,
            to draw several models.
        confidence_level : float, default=0.9
            Probability that a calibrated model stays inside the band.
        multiclass : {"auto", "top_label"}, default="auto"
            See `calibration_error`.
        sample_weight : array-like of shape (n,), default=None
            Frequency weights: a sample with weight 2 counts twice.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        labels : array-like of shape (K,), default=None
            The sorted labels of the columns.
        name : str, default=None
            Name of the model in the title.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : CumulativeDifferenceDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If labels and probabilities are inconsistent, or if `multiclass` is
            "marginal".
        """
        level = check_confidence_level(confidence_level)
        refusal = (
            'multiclass="marginal" has one curve per class: draw the classes one by'
            " one."
        )
        cells = cells_of_models(
            y_true,
            named_models(y_proba, name),
            multiclass,
            refusal,
            sample_weight=sample_weight,
            pos_label=pos_label,
            labels=labels,
        )
        curves = [_curve(model, model_cells) for model, model_cells in cells.items()]
        return cls(curves, confidence_level=level).plot(ax, **plot_options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        confidence_level: float = 0.9,
        multiclass: Literal["auto", "top_label"] = "auto",
        sample_weight: ArrayLike | None = None,
        pos_label: float | str | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Predict, and draw the cumulative differences.

        Parameters
        ----------
        estimator : classifier or dict of classifiers by name
            Fitted classifiers with `predict_proba`.
        X : array-like of shape (n, n_features)
            Samples that were not used to fit the classifiers.
        y : array-like of shape (n,)
            Labels.
        name : str, default=None
            Name of the model in the figure; None means the name of its class.
        confidence_level : float, default=0.9
            Probability that a calibrated model stays inside the band.
        multiclass : {"auto", "top_label"}, default="auto"
            See `calibration_error`.
        sample_weight : array-like of shape (n,), default=None
            Frequency weights: a sample with weight 2 counts twice.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : CumulativeDifferenceDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If the estimator has no `predict_proba`, or if `y` contains labels that are
            not among its classes.
        """
        return super().from_estimator(
            estimator,
            X,
            y,
            name=name,
            confidence_level=confidence_level,
            multiclass=multiclass,
            sample_weight=sample_weight,
            pos_label=pos_label,
            ax=ax,
            **plot_options,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        x: Literal["share", "score"] = "share",
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
        band_kw: dict[str, Any] | None = None,
        mark_kw: dict[str, Any] | None = None,
        legend_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the stored results.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        x : {"share", "score"}, default="share"
            Quantity on the horizontal axis: the share of the samples, in the order of
            their scores, or the score.
        legend : bool, default=True
            Whether to show a legend for the band and the marks.
        line_kw, band_kw, mark_kw, legend_kw : dict, default=None
            Keyword arguments of the artists (`Axes.plot`, `Axes.axhspan`, `Axes.plot`
            and `legend`) that override the defaults.

        Returns
        -------
        display : CumulativeDifferenceDisplay
            The display, with the artists as attributes.

        Raises
        ------
        ValueError
            If `x` is neither "share" nor "score".
        """
        check_option(x, "x", ("share", "score"))
        frame = pair_frame(ax)
        (axes,) = frame.axes
        axes.margins(x=0.02, y=0.08)
        self.lines_ = []
        self.marks_ = []
        self.band_ = None
        keys = {"calibrated on average": axes.axhline(0, **reference_style())}
        styles = curve_styles(len(self.curves))
        for curve, style in zip(self.curves, styles, strict=True):
            position, difference = self._points(curve, x)
            finding = _test_words("Kuiper", curve.kuiper)
            style["label"] = model_label(curve.model, finding)
            draw_curve(self, axes, position, [difference], style, line_kw)
        caption = None
        if len(self.curves) == 1:
            (curve,) = self.curves
            keys |= self._draw_tests(axes, curve, x, band_kw, mark_kw)
            finding = _test_words("Kuiper", curve.kuiper)
            without_pvalue, _, _ = finding.partition(" (")
            caption = captions(curve.model, curve.n_rows, finding, without_pvalue)
        x_label = "Share of the samples, by score" if x == "share" else "Score"
        return finish(
            self,
            frame,
            keys,
            x_label,
            "Cumulative y − s (points)",
            legend=legend,
            caption=caption,
            legend_kw=legend_kw,
        )

    def _points(self, curve, x):
        """Return the positions of a curve's points on the x axis, and the differences
        there in percentage points.
        """
        position = curve.share if x == "share" else curve.scores
        return _thinned(position, 100 * curve.difference)

    def _draw_tests(self, axes, curve, x, band_kw, mark_kw):
        """Draw the band in which the curve of a calibrated model stays, and the
        statistics of Kuiper and of Kolmogorov and Smirnov; return these artists by
        their names in the legend. `x` says what the horizontal axis shows.
        """
        position, difference = self._points(curve, x)  # in percentage points
        # The largest absolute value of Brownian motion on [0, 1] is below `quantile`
        # with the probability `confidence_level`: the p-value of this maximum, which
        # falls from 1 at .05 to 0 at 20, is `error` there.
        error = 1 - self.confidence_level
        quantile = brentq(lambda maximum: maximum_pvalue(maximum) - error, 0.05, 20)
        half_width = 100 * curve.deviation * quantile
        style = {"facecolor": neutral(0.16), "linewidth": 0, "zorder": 1}
        self.band_ = axes.axhspan(-half_width, half_width, **styled(band_kw, **style))

        # Kuiper's statistic, the range of the curve, is drawn at the right border, that
        # of Kolmogorov and Smirnov, its largest distance from 0, where it is attained.
        style = {"color": colors(2)[1], "linewidth": 1.4, "zorder": 2.5}
        # The position is just beyond the end of the curve.
        right = position[0] + 1.02 * (position[-1] - position[0])
        (kuiper,) = axes.plot(
            [right, right],
            [difference.min(), difference.max()],
            **styled(mark_kw, **style, marker="_", markersize=7),
        )
        peak = np.argmax(np.abs(difference))
        (kolmogorov,) = axes.plot(
            [position[peak], position[peak]],
            [0, difference[peak]],
            **styled(mark_kw, **style, linestyle=(0, (2, 1.5))),
        )
        self.marks_ = [kuiper, kolmogorov]
        level = level_words(self.confidence_level)
        return {
            f"band of a calibrated model ({level})": self.band_,
            _test_words("Kuiper", curve.kuiper): kuiper,
            _test_words("Kolmogorov-Smirnov", curve.kolmogorov_smirnov): kolmogorov,
        }


def _curve(model, cells):
    """Return the `CumulativeCurve` of a model, with a first point at share 0 and
    difference 0.
    """
    # The cumulative differences at the scores, and the standard deviation of the last
    # one for a calibrated model.
    differences, deviation = cumulative_differences(cells)
    scores = cells.mean_score
    return CumulativeCurve(
        model,
        scores=np.append(min(0.0, scores[0]), scores),
        share=np.append(0.0, np.cumsum(cells.share)),
        difference=np.append(0.0, differences),
        deviation=float(deviation),
        n_rows=cells.total_weight,
    )


def _thinned(position, difference):
    """Return at most about 2,000 points of a curve: evenly spaced ones, and its first,
    last, lowest and highest.
    """
    if len(position) <= _MOST_POINTS:
        return position, difference
    last = len(position) - 1
    even_positions = np.linspace(position[0], position[-1], _MOST_POINTS)
    evenly_spaced = np.searchsorted(position, even_positions).clip(0, last)
    extremes = [0, last, np.argmin(difference), np.argmax(difference)]
    shown = np.unique(np.concatenate((evenly_spaced, extremes)))
    return position[shown], difference[shown]


def _test_words(name, result):
    """Return the name of a test with its (statistic, p-value); the statistic, a mean
    difference of probabilities, is given in percent.
    """
    statistic, pvalue = result
    size = rounded(100 * statistic, 2)
    return f"{name} {size} % ({pvalue_words(pvalue)})"
