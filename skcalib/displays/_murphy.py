"""Murphy diagrams: what decisions by the scores lose at each threshold, for one model
or several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from skcalib._verdicts import rounded
from skcalib.displays._finish import finish
from skcalib.displays._frames import pair_frame
from skcalib.displays._predictions import FromEstimator, cells_of_models, named_models
from skcalib.displays._style import curve_styles, draw_curve, reference_style
from skcalib.displays._words import captions, model_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D


_N_THRESHOLDS = 1001


class MurphyCurve(NamedTuple):
    """The loss of decisions based on one model.

    Parameters
    ----------
    model : str or None
        Name of the model.
    loss : ndarray of shape (`n_thresholds`,)
        Mean loss at each threshold.
    brier_score : float
        The area under the curve from 0 to 1.
    """

    model: str | None
    loss: np.ndarray
    brier_score: float


class MurphyDisplay(FromEstimator):
    """Murphy diagram: mean loss of acting above each threshold.

    A single diagram shows all thresholds.

    At threshold t, a false alarm costs 2 t and a missed event costs 2 (1 - t), so
    acting and not acting are equally good at a probability of t. A model whose curve is
    nowhere above that of another is at least as good for every cost ratio. The area
    under a curve is its Brier score. The dotted line is the loss of always or never
    acting, whichever is better; the curve of a calibrated model is never above it.

    Parameters
    ----------
    curves : list of MurphyCurve
        One curve for each model.
    thresholds : ndarray of shape (n_thresholds,)
        The thresholds, in increasing order.
    event_frequency : float
        Share of events among the samples.
    n_rows : float
        Number of samples, or the sum of their weights.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure.
    lines_ : list of Line2D
        The curves.
    reference_line_ : Line2D
        The loss of always or never acting.
    legend_ : Legend or None
        The legend.

    See Also
    --------
    skcalib.metrics.brier_decomposition : The part of the Brier score that recalibration
        would remove.

    References
    ----------
    Ehm, Gneiting, Jordan and Krüger (2016), Of quantiles and expectiles: consistent
    scoring functions, Choquet representations and forecast rankings.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.displays import MurphyDisplay
    >>> rng = np.random.default_rng(0)
    >>> y_proba = rng.random(1000)
    >>> display = MurphyDisplay.from_predictions(rng.random(1000) < y_proba, y_proba)
    >>> round(display.curves[0].brier_score, 3)  # 1/6 in the long run
    0.166
    """

    ax_: Axes
    figure_: Figure
    lines_: list[Line2D]
    reference_line_: Line2D
    legend_: Legend | None

    def __init__(
        self,
        curves: Sequence[MurphyCurve],
        thresholds: np.ndarray,
        event_frequency: float,
        n_rows: float,
    ):
        self.curves = list(curves)
        self.thresholds = thresholds
        self.event_frequency = event_frequency
        self.n_rows = n_rows

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        limits: Literal["auto"] | tuple[float, float] = "auto",
        multiclass: Literal["auto", "top_label"] = "auto",
        sample_weight: ArrayLike | None = None,
        pos_label: float | str | None = None,
        labels: ArrayLike | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the Murphy diagram of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_proba : array-like of shape (n,), (n, 2) or (n, K), or dict of arrays
            Probabilities in [0, 1], or a dict that maps model names to probabilities,
            to draw several models.
        limits : "auto" or tuple of float, default="auto"
            Lowest and highest threshold; "auto" means (0, 1), or a range that ends at
            the highest score if this is below 1/2.
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
        display : MurphyDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If labels and probabilities are inconsistent, or if `multiclass` is
            "marginal", or "top_label" for several models, because their events differ.
        """
        refusal = (
            "A Murphy diagram needs the same event for all scores: draw one class at a"
            " time."
        )
        # By model, the weight and the events at each distinct score.
        cells = cells_of_models(
            y_true,
            named_models(y_proba, name),
            multiclass,
            refusal,
            same_event=True,
            sample_weight=sample_weight,
            pos_label=pos_label,
            labels=labels,
        )
        thresholds = _thresholds(limits, cells.values())
        curves = []
        for model, model_cells in cells.items():
            curves.append(_curve(model, model_cells, thresholds))
        # All models have the same event: its frequency is that of any model's cells.
        first = next(iter(cells.values()))
        frequency = float(first.weighted_label.sum()) / first.total_weight
        display = cls(curves, thresholds, frequency, first.total_weight)
        return display.plot(ax, **plot_options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        limits: Literal["auto"] | tuple[float, float] = "auto",
        multiclass: Literal["auto", "top_label"] = "auto",
        sample_weight: ArrayLike | None = None,
        pos_label: float | str | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Predict, and draw the Murphy diagram.

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
        limits : "auto" or tuple of float, default="auto"
            Lowest and highest threshold; "auto" means (0, 1), or a range that ends at
            the highest score if this is below 1/2.
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
        display : MurphyDisplay
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
            limits=limits,
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
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
        reference_kw: dict[str, Any] | None = None,
        legend_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the stored results.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        legend : bool, default=True
            Whether the legend lists the dotted line. Names and Brier scores are always
            shown.
        line_kw, reference_kw, legend_kw : dict, default=None
            Keyword arguments of the artists (`Axes.plot`, `Axes.plot` and `legend`)
            that override the defaults.

        Returns
        -------
        display : MurphyDisplay
            The display, with the artists as attributes.
        """
        frame = pair_frame(ax)
        (axes,) = frame.axes
        t = self.thresholds
        rate = self.event_frequency
        # The smaller loss of never acting, which misses all events at 2 (1 - t) each,
        # and of always acting, which is needless without an event, at 2 t each.
        never_or_always = 2 * np.minimum((1 - t) * rate, t * (1 - rate))
        style = reference_style(reference_kw)
        (self.reference_line_,) = axes.plot(t, never_or_always, **style)
        highest = float(never_or_always.max())
        self.lines_ = []
        styles = curve_styles(len(self.curves))
        for curve, style in zip(self.curves, styles, strict=True):
            style["label"] = model_label(curve.model, rounded(curve.brier_score, 4))
            draw_curve(self, axes, t, [curve.loss], style, line_kw)
            highest = max(highest, float(curve.loss.max()))
        caption = None
        note = "Brier score"
        if len(self.curves) == 1:
            (curve,) = self.curves
            brier = rounded(curve.brier_score, 4)
            caption = captions(
                curve.model, self.n_rows, f"Brier score {brier}", f"Brier {brier}"
            )
            note = None
        # Axes are higher than the curves: by half where the legend stands inside.
        room = 1.5
        if caption is not None or frame.is_own:
            room = 1.06
        axes.set_ylim(0, highest * room)
        return finish(
            self,
            frame,
            {"always or never acting": self.reference_line_},
            "Decision threshold",
            "Mean loss of decisions",
            legend=legend,
            caption=caption,
            note=note,
            legend_kw=legend_kw,
        )


def _thresholds(limits, cells):
    """Return evenly spaced thresholds in the range of the user's `limits`. "auto" means
    from 0 to 1; if no score reaches .5, to a little above the highest score.

    `cells` are the `Cells` of each model: its distinct scores in increasing order.
    """
    if isinstance(limits, str):
        if limits != "auto":
            raise ValueError(
                f'limits must be "auto" or a pair of numbers, found {limits!r}.'
            )
        highest_of_models = [cells_of_model.mean_score[-1] for cells_of_model in cells]
        highest = float(max(highest_of_models))
        end = 1.0
        if 0 < highest < 0.5:
            end = 1.05 * highest
        limits = (0.0, end)
    low, high = limits
    if not 0 <= low < high <= 1:
        raise ValueError(
            "limits must be two thresholds with 0 <= low < high <= 1, found"
            f" {limits!r}."
        )
    return np.linspace(low, high, _N_THRESHOLDS)


def _curve(model, cells, thresholds):
    """Return the `MurphyCurve` of a model: the mean loss at each threshold, from a cell
    for each distinct score, in order.
    """
    events = cells.weighted_label
    non_events = cells.weight - events
    # At a threshold t no action is taken on scores up to t: an event there is missed,
    # which costs 2 (1 - t). A non-event above t is acted on needlessly, for 2 t.
    n_scores_up_to = np.searchsorted(cells.mean_score, thresholds, side="right")
    # Entry k is the sum over the k lowest scores.
    events_below = np.append(0, np.cumsum(events))
    non_events_below = np.append(0, np.cumsum(non_events))
    missed = events_below[n_scores_up_to]
    needless = non_events.sum() - non_events_below[n_scores_up_to]
    loss = 2 * (thresholds * needless + (1 - thresholds) * missed) / cells.total_weight
    scores = cells.mean_score
    squared_error = events @ (1 - scores) ** 2 + non_events @ scores**2
    return MurphyCurve(model, loss, float(squared_error / cells.total_weight))
