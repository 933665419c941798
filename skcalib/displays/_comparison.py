"""Differences of models to a reference on the same samples, as a forest plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from skcalib._input.scalars import check_option
from skcalib._verdicts import level_words
from skcalib.displays._forest import ForestMarks, draw_forest, short_names
from skcalib.evaluation import compare

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

    from skcalib.evaluation._model_comparison import ModelComparison


class ComparisonDisplay:
    """Forest plot of models: differences from the reference, with intervals.

    Models that differ significantly from the reference, after adjustment for the number
    of models, are drawn in colour with a filled marker, and the others in grey with an
    open marker. Create the display with `from_predictions`, or from the result of
    `compare`.

    Parameters
    ----------
    comparison : ModelComparison
        The comparison returned by `skcalib.evaluation.compare`.

    Attributes
    ----------
    ax_ : Axes
        The axes. The first model is at the top.
    figure_ : Figure
        The figure.
    intervals_ : list of ErrorbarContainer
        Intervals and markers: those of models that differ significantly, then those of
        the others. An empty container is omitted.
    legend_ : Legend or None
        The legend.

    See Also
    --------
    skcalib.evaluation.compare : The comparison without a plot.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.displays import ComparisonDisplay
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(1000)
    >>> models = {"calibrated": s, "too sure": s**2 / (s**2 + (1 - s) ** 2)}
    >>> display = ComparisonDisplay.from_predictions(
    ...     rng.random(1000) < s, models, metrics="brier_score"
    ... )
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['too sure']
    """

    ax_: Axes
    figure_: Figure
    intervals_: list[ErrorbarContainer]
    legend_: Legend | None

    def __init__(self, comparison: ModelComparison):
        self.comparison = comparison

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        models: Any,
        *,
        metrics: Sequence[str | Callable] = (
            "log_loss",
            "brier_score",
            "squared_calibration_error",
        ),
        reference: str | None = None,
        confidence_level: float = 0.9,
        n_resamples: int = 999,
        sample_weight: ArrayLike | None = None,
        weight_type: Literal["frequency", "importance"] | dict = "frequency",
        clusters: ArrayLike | None = None,
        pos_label: float | str | None = None,
        labels: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
        ax: Axes | None = None,
        plot_options: dict[str, Any] | None = None,
    ) -> Self:
        """Compare the models and draw one metric.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        models : dict
            Maps model names to probabilities for these samples.
        metrics : sequence of str and callable, default=("log_loss", "brier_score", "squared_calibration_error")
            Names (those of `get_scorer_names` without ``neg_``), metrics of this
            library, and functions ``metric(y_true, y_proba, sample_weight=...)``; a
            `functools.partial` sets options. Smaller values are better.
        reference : str, default=None
            The model with which the others are compared; None means the first.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).
        n_resamples : int, default=999
            Number of draws for each error's interval, or of resamples for a custom
            function, as in `calibration_test`.
        sample_weight : array-like of shape (n,), default=None
            Weights; see `weight_type`.
        weight_type : {"frequency", "importance"} or dict, default="frequency"
            Meaning of the weights. "frequency": a weight of 2 means two identical
            samples. "importance": each sample was observed once and represents more or
            less than one (to correct for the sampling design). A dict gives the weight
            that each sample would have with each of two labels, a number or an array;
            see `skcalib.evaluation.describe_weights`.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample: dependent samples (from the same patient or match)
            share a value.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        labels : array-like of shape (K,), default=None
            The sorted labels of the columns.
        random_state : int, RandomState instance or None, default=None
            Seed for the random draws.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        plot_options : dict, default=None
            Options of `plot`.

        Returns
        -------
        display : ComparisonDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If labels, models or metrics are inconsistent.
        """  # noqa: E501
        comparison = compare(
            y_true,
            models,
            metrics=metrics,
            reference=reference,
            confidence_level=confidence_level,
            n_resamples=n_resamples,
            sample_weight=sample_weight,
            weight_type=weight_type,
            clusters=clusters,
            pos_label=pos_label,
            labels=labels,
            random_state=random_state,
        )
        return cls(comparison).plot(ax, **(plot_options or {}))

    def plot(
        self,
        ax: Axes | None = None,
        *,
        metric: str | None = None,
        significance_level: float = 0.05,
        legend: bool = True,
        bar_kw: dict[str, Any] | None = None,
        legend_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the stored differences.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on; None creates a figure that is tall enough for all models.
        metric : str, default=None
            Name of the metric; None means the first metric.
        significance_level : float, default=0.05
            A model is drawn in colour if its adjusted p-value is below this level.
        legend : bool, default=True
            Whether to draw a legend.
        bar_kw, legend_kw : dict, default=None
            Keyword arguments of the artists (`Axes.errorbar` and `legend`) that
            override the defaults.

        Returns
        -------
        display : ComparisonDisplay
            The display, with the artists as attributes.

        Raises
        ------
        ValueError
            If this metric was not used to compare the models.
        """
        # A row of the table is the difference of a model to the reference, by a metric.
        table = self.comparison
        metrics = tuple(dict.fromkeys(table.metric.tolist()))
        if metric is None:
            metric = metrics[0]
        check_option(metric, "metric", metrics)
        is_shown = (table.metric == metric) & (table.model != table.reference)
        shown = np.flatnonzero(is_shown)
        limits = np.stack(
            (
                table.difference[shown],
                table.difference_low[shown],
                table.difference_high[shown],
            )
        )
        is_significant = table.adjusted_pvalue[shown] < significance_level
        models = short_names(table.model[shown].tolist())
        compared, reference = short_names([metric, table.reference])
        level = f"{level_words(table.confidence_level)} intervals"

        def axis_label(frame):
            """Return the label below the axes, in more lines if they are narrow."""
            gap = "\n" if frame.width < 4 else " "
            difference = f"{compared}: difference from{gap}{reference}"
            return f"{difference}\nleft of 0 is better;{gap}{level}"

        # The rows are the models. Each has a single mark, which has no name.
        marks = {None: ForestMarks(limits, is_significant)}
        return draw_forest(
            self,
            ax,
            marks,
            models,
            axis_label,
            significance_level=significance_level,
            legend=legend,
            bar_kw=bar_kw,
            legend_kw=legend_kw,
        )
