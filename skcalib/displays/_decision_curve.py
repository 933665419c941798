"""Decision curves: the net benefit of models, of treating everybody and of treating
nobody, at all thresholds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from skcalib._verdicts import interval_words, level_words, rounded
from skcalib.decisions import net_benefit
from skcalib.displays._finish import finish
from skcalib.displays._frames import pair_frame
from skcalib.displays._predictions import FromEstimator, named_models
from skcalib.displays._style import (
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

    from skcalib.decisions._net_benefit import NetBenefit


_FEWEST_TREATED = 20  # rows: a curve ends where fewer are treated


class DecisionCurveDisplay(FromEstimator):
    """Decision curve: net benefit against the threshold for treatment.

    The threshold t expresses the cost of a false alarm: treating at t means accepting
    ``1 / t - 1`` false alarms per event. At the thresholds of interest, the strategy
    with the highest curve is best; a model whose curve lies below that of treating
    everybody or nobody does harm. A curve ends where fewer than 20 samples are treated.

    Parameters
    ----------
    curves : dict of NetBenefit by name
        One result for each model; the name of a single model may be None.
    threshold : float, default=None
        The threshold of interest, which is marked.

    Attributes
    ----------
    ax_ : Axes or ndarray of Axes
        The axes.
    figure_ : Figure
        The figure.
    lines_ : list of Line2D
        The curves of the models.
    avoided_lines_ : list of Line2D
        With `avoided`, the interventions avoided by each model.
    bands_ : list of PolyCollection
        The intervals or bands of the curves.
    reference_lines_ : list of Line2D
        The lines for treating everybody and for treating nobody.
    threshold_line_ : Line2D or None
        The threshold of interest.
    legend_ : Legend or None
        The legend.

    See Also
    --------
    skcalib.decisions.net_benefit : The net benefits without a plot, and the difference
        between two models.
    skcalib.displays.MurphyDisplay : The loss from both types of error.

    References
    ----------
    Vickers and Elkin (2006), Decision curve analysis: a novel method for evaluating
    prediction models.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.displays import DecisionCurveDisplay
    >>> scores = np.random.default_rng(0).beta(1, 3, 500)
    >>> y = np.random.default_rng(1).random(500) < scores
    >>> display = DecisionCurveDisplay.from_predictions(
    ...     y, {"logistic": scores}, threshold=0.2
    ... )
    >>> display.ax_.get_xlabel()
    'Threshold (probability)'
    """

    ax_: Any
    figure_: Figure
    lines_: list[Line2D]
    avoided_lines_: list[Line2D]
    bands_: list[PolyCollection]
    reference_lines_: list[Line2D]
    threshold_line_: Line2D | None
    legend_: Legend | None

    def __init__(
        self, curves: Mapping[Any, NetBenefit], *, threshold: float | None = None
    ):
        self.curves = curves
        self.threshold = threshold

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | Mapping[str, ArrayLike],
        *,
        threshold: float | None = None,
        name: str | None = None,
        thresholds: ArrayLike | None = None,
        reference: Literal["none", "all"] | ArrayLike = "none",
        standardize: bool = False,
        harm: float = 0.0,
        prevalence: float | None = None,
        confidence_level: float = 0.9,
        simultaneous: bool = False,
        n_resamples: int = 1000,
        sample_weight: ArrayLike | None = None,
        weight_type: Literal["frequency", "importance"] | dict = "frequency",
        clusters: ArrayLike | None = None,
        pos_label: int | float | bool | str | None = None,
        labels: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
        ax: Axes | None = None,
        plot_options: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the decision curves of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_proba : array-like of shape (n,) or (n, 2), or dict of arrays
            Probabilities in [0, 1], or a dict that maps model names to probabilities,
            to draw several models.
        threshold : float, default=None
            The threshold of interest, in [0, 1). It is marked, and the net benefits at
            this threshold are shown.
        name : str, default=None
            Name of the model in the title.
        thresholds : array-like of float, default=None
            Thresholds in [0, 1); None means .01, .02, ..., .99. A sample with a
            probability equal to a threshold is treated.
        reference : {"none", "all"} or array-like of shape (n,) or (n, 2), default="none"
            Strategy whose net benefit is subtracted: treating nobody (net benefit 0),
            treating everybody, or another model, given by its probabilities for the
            same samples.
        standardize : bool, default=False
            Whether to divide the net benefit by the event frequency, so that the
            maximum is 1.
        harm : float, default=0.0
            Cost of the model itself, in units of net benefit (true positives per
            sample): for example, 1 / 30 if 30 tests are as harmful as one missed event.
            The cost is subtracted at every threshold.
        prevalence : float, default=None
            Event frequency of the population, in (0, 1), if samples were selected by
            their label (a case-control study). None means the event frequency of the
            samples.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1), or of the band.
        simultaneous : bool, default=False
            Whether the limits hold at all thresholds simultaneously.
        n_resamples : int, default=1000
            Number of draws for a simultaneous band.
        sample_weight : array-like of shape (n,), default=None
            Weights; see `weight_type`.
        weight_type : {"frequency", "importance"} or dict, default="frequency"
            Meaning of the weights. "frequency": a weight of 2 means two identical
            samples. "importance": each sample was observed once and represents more or
            less than one (to correct for the sampling design, for example by the
            inverse probability of selection). A dict gives the weight that each sample
            would have with each of two labels, a number or an array; see
            `skcalib.evaluation.describe_weights`.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample: samples in the same cluster (for example, from one
            patient or centre) may be dependent.
        pos_label : int, float, bool or str, default=None
            The label whose probability is given by a single column of scores.
        labels : array-like of shape (2,), default=None
            The sorted labels of the columns.
        random_state : int, RandomState instance or None, default=None
            Seed for the random draws.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        plot_options : dict, default=None
            Options of `plot`.

        Returns
        -------
        display : DecisionCurveDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If labels and probabilities are inconsistent, or if there are more than two
            classes.
        """  # noqa: E501
        if thresholds is None:
            thresholds = np.arange(1, 100) / 100
        if threshold is not None:
            thresholds = np.union1d(thresholds, threshold)
        curves = {}
        for model, proba in named_models(y_proba, name).items():
            curves[model] = net_benefit(
                y_true,
                proba,
                thresholds=thresholds,
                reference=reference,
                standardize=standardize,
                harm=harm,
                prevalence=prevalence,
                confidence_level=confidence_level,
                simultaneous=simultaneous,
                n_resamples=n_resamples,
                sample_weight=sample_weight,
                weight_type=weight_type,
                clusters=clusters,
                pos_label=pos_label,
                labels=labels,
                random_state=random_state,
            )
        return cls(curves, threshold=threshold).plot(ax, **(plot_options or {}))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        threshold: float | None = None,
        thresholds: ArrayLike | None = None,
        reference: Literal["none", "all"] | ArrayLike = "none",
        standardize: bool = False,
        harm: float = 0.0,
        prevalence: float | None = None,
        confidence_level: float = 0.9,
        simultaneous: bool = False,
        n_resamples: int = 1000,
        sample_weight: ArrayLike | None = None,
        weight_type: Literal["frequency", "importance"] | dict = "frequency",
        clusters: ArrayLike | None = None,
        pos_label: int | float | bool | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        ax: Axes | None = None,
        plot_options: dict[str, Any] | None = None,
    ) -> Self:
        """Predict, and draw the decision curves.

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
        threshold : float, default=None
            The threshold of interest, in [0, 1). It is marked, and the net benefits at
            this threshold are shown.
        thresholds : array-like of float, default=None
            Thresholds in [0, 1); None means .01, .02, ..., .99. A sample with a
            probability equal to a threshold is treated.
        reference : {"none", "all"} or array-like of shape (n,) or (n, 2), default="none"
            Strategy whose net benefit is subtracted: treating nobody (net benefit 0),
            treating everybody, or another model, given by its probabilities for the
            same samples.
        standardize : bool, default=False
            Whether to divide the net benefit by the event frequency, so that the
            maximum is 1.
        harm : float, default=0.0
            Cost of the model itself, in units of net benefit (true positives per
            sample): for example, 1 / 30 if 30 tests are as harmful as one missed event.
            The cost is subtracted at every threshold.
        prevalence : float, default=None
            Event frequency of the population, in (0, 1), if samples were selected by
            their label (a case-control study). None means the event frequency of the
            samples.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1), or of the band.
        simultaneous : bool, default=False
            Whether the limits hold at all thresholds simultaneously.
        n_resamples : int, default=1000
            Number of draws for a simultaneous band.
        sample_weight : array-like of shape (n,), default=None
            Weights; see `weight_type`.
        weight_type : {"frequency", "importance"} or dict, default="frequency"
            Meaning of the weights. "frequency": a weight of 2 means two identical
            samples. "importance": each sample was observed once and represents more or
            less than one (to correct for the sampling design, for example by the
            inverse probability of selection). A dict gives the weight that each sample
            would have with each of two labels, a number or an array; see
            `skcalib.evaluation.describe_weights`.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample: samples in the same cluster (for example, from one
            patient or centre) may be dependent.
        pos_label : int, float, bool or str, default=None
            The label whose probability is given by a single column of scores.
        random_state : int, RandomState instance or None, default=None
            Seed for the random draws.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        plot_options : dict, default=None
            Options of `plot`.

        Returns
        -------
        display : DecisionCurveDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If the estimator has no `predict_proba`, or if `y` contains labels that are
            not among its classes.
        """  # noqa: E501
        return super().from_estimator(
            estimator,
            X,
            y,
            name=name,
            threshold=threshold,
            thresholds=thresholds,
            reference=reference,
            standardize=standardize,
            harm=harm,
            prevalence=prevalence,
            confidence_level=confidence_level,
            simultaneous=simultaneous,
            n_resamples=n_resamples,
            sample_weight=sample_weight,
            weight_type=weight_type,
            clusters=clusters,
            pos_label=pos_label,
            random_state=random_state,
            ax=ax,
            plot_options=plot_options,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        avoided: bool = False,
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
        band_kw: dict[str, Any] | None = None,
        reference_kw: dict[str, Any] | None = None,
        legend_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the stored results.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        avoided : bool, default=False
            Whether a second panel shows the interventions avoided per 100 samples, net
            of the missed events, compared with treating everybody.
        legend : bool, default=True
            Whether the legend lists bands and reference lines. Model names are always
            shown.
        line_kw, band_kw, reference_kw, legend_kw : dict, default=None
            Keyword arguments of the artists (`Axes.plot`, `Axes.fill_between`,
            `Axes.plot` and `legend`) that override the defaults.

        Returns
        -------
        display : DecisionCurveDisplay
            The display, with the artists as attributes.
        """  # noqa: E501
        frame = pair_frame(ax, 2 if avoided else 1)
        axes = frame.axes[0]
        first = next(iter(self.curves.values()))
        # By model, which thresholds are drawn (n_thresholds,): those above which hardly
        # anybody is treated show only noise.
        fewest = min(_FEWEST_TREATED, first.n_samples)
        shown = {name: curve.n_treated >= fewest for name, curve in self.curves.items()}
        shown_anywhere = np.any(list(shown.values()), axis=0)
        end = first.thresholds[-1]  # of the horizontal axis
        if shown_anywhere.any():
            end = first.thresholds[shown_anywhere][-1]
        styles = curve_styles(len(self.curves))
        self._draw_benefits(axes, shown, styles, line_kw, band_kw)
        self._draw_references(axes, end, reference_kw)
        axes.set(xlim=(0, end), ylim=self._benefit_range(shown))
        treat_all, treat_none = self.reference_lines_
        limits_name = "band" if first.simultaneous else "interval"
        keys = {
            "treat all": treat_all,
            "treat none": treat_none,
            f"{level_words(first.confidence_level)} {limits_name}": self.bands_[0],
        }
        caption = None
        note = None
        if len(self.curves) == 1:
            caption = self._caption()
        elif self.threshold is not None:
            note = f"net benefit at {rounded(self.threshold)}"
        benefit = "Standardised net benefit" if first.standardize else "Net benefit"
        self.avoided_lines_ = []
        titles = None
        if avoided:
            self._draw_avoided(frame.axes[1], shown, styles, end, line_kw, reference_kw)
            titles = [benefit, "Interventions avoided per 100"]
            benefit = ""
        return finish(
            self,
            frame,
            keys,
            "Threshold (probability)",
            benefit,
            titles=titles,
            caption=caption,
            note=note,
            legend=legend,
            legend_kw=legend_kw,
        )

    def _draw_benefits(self, axes, shown, styles, line_kw, band_kw):
        """Draw each model's net benefit with its band, at the thresholds where its
        booleans in `shown` are true. `styles` holds a dict of keywords for each model;
        the other keywords are the user's.
        """
        self.lines_ = []
        self.bands_ = []
        for (name, curve), style in zip(self.curves.items(), styles, strict=True):
            finding = None
            if self.threshold is not None:
                finding = self._benefit_words(curve)
            style["label"] = model_label(name, finding)
            is_shown = shown[name]
            thresholds = curve.thresholds[is_shown]
            values = [
                curve.net_benefit[is_shown],
                curve.low[is_shown],
                curve.high[is_shown],
            ]
            draw_curve(self, axes, thresholds, values, style, line_kw, band_kw)

    def _benefit_range(self, shown):
        """Return the range (low, high) of the vertical axis: from a little below 0,
        since the benefit of treating all falls without bound, to the highest limit
        drawn, but at most 1.3 times a perfect model's benefit.
        """
        first = next(iter(self.curves.values()))
        perfect = 1.0 if first.standardize else first.event_frequency
        highest = perfect
        for name, curve in self.curves.items():
            limits = np.nan_to_num(curve.high[shown[name]])  # NaN: no interval
            highest = max(highest, float(limits.max(initial=0)))
        return -0.12 * perfect, 1.05 * min(highest, 1.3 * perfect)

    def _caption(self):
        """Return the captions of a single model, the longest first, with its benefit at
        a threshold of interest.
        """
        ((name, curve),) = self.curves.items()
        finding = None
        if self.threshold is not None:
            benefit = self._benefit_words(curve)
            finding = f"{benefit} at {rounded(self.threshold)}"
        return captions(name, curve.n_samples, finding)

    def _draw_references(self, axes, end, reference_kw):
        """Draw the net benefit of treating everybody and of treating nobody at
        thresholds up to `end`, and a line at the threshold of interest.
        """
        first = next(iter(self.curves.values()))
        rate = first.event_frequency
        t = np.linspace(0, min(end, 0.999), 400)  # the odds of 1 are infinite
        # True positives less false positives at the odds of the threshold.
        treat_all = rate - (1 - rate) * t / (1 - t)
        if first.standardize and rate:
            # The unit is the benefit of a perfect model, which is the event frequency.
            treat_all = treat_all * (1.0 / rate)
        treat_none = np.zeros(len(t))
        self.reference_lines_ = []
        for benefit, dashes in ((treat_all, (0, (4, 2))), (treat_none, "-")):
            style = reference_style(reference_kw, color=neutral(0.65), linestyle=dashes)
            self.reference_lines_ += axes.plot(t, benefit, **style)
        self.threshold_line_ = None
        if self.threshold is not None:
            self.threshold_line_ = axes.axvline(
                self.threshold, color=neutral(0.65), linestyle=":", linewidth=1
            )

    def _draw_avoided(self, axes, shown, styles, end, line_kw, reference_kw):
        """Draw the interventions avoided per 100 rows up to the threshold `end`, for
        each model where its booleans (n_thresholds,) in `shown` are true, in its style.
        """
        highest = 1.0
        for (name, curve), style in zip(self.curves.items(), styles, strict=True):
            # At a threshold of 0 everybody is treated, and nothing can be avoided.
            is_shown = shown[name] & (curve.thresholds > 0)
            thresholds = curve.thresholds[is_shown]
            values = curve.interventions_avoided[is_shown]
            highest = max(highest, float(values.max(initial=0)))
            # The line has no label, because the model is in the legend already.
            unnamed = styled(line_kw, **(style | {"label": None}))
            self.avoided_lines_ += axes.plot(thresholds, values, **unnamed)
        style = reference_style(
            reference_kw, color=neutral(0.65), linestyle=(0, (4, 2))
        )
        axes.axhline(0, **style)
        if self.threshold is not None:
            axes.axvline(self.threshold, **(style | {"linestyle": ":"}))
        # Near a threshold of 0 a missed event outweighs many interventions, and values
        # fall far below 0: that part is cut off.
        axes.set(xlim=(0, end), ylim=(-0.3 * highest, 1.05 * highest))

    def _benefit_words(self, curve):
        """Return the net benefit at the threshold of interest as text, with its
        interval if it has one.
        """
        position = np.searchsorted(curve.thresholds, self.threshold)
        benefit = curve.net_benefit[position]
        if curve.reason[position] != "":  # why there is no interval
            return rounded(benefit)
        return interval_words(benefit, curve.low[position], curve.high[position])
