"""The worst groups as a forest plot: by how much the scores are off there, for one
model or several.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from skcalib._input.scalars import check_confidence_level, check_int
from skcalib._verdicts import count_words, level_words
from skcalib.displays._finish import shortened
from skcalib.displays._forest import (
    ForestMarks,
    draw_forest,
    places,
    short_names,
)
from skcalib.displays._predictions import named_models, predicted_probabilities
from skcalib.displays._words import matplotlib_text
from skcalib.guarantees import event_frequency_interval
from skcalib.metrics import segment_calibration_test

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

    from skcalib.metrics._segment_test import SegmentTestResult


class SegmentDisplay:
    """Forest plot of the worst groups: the bias of each, with its interval.

    The group with the largest statistic is at the top. Filled markers show groups
    that are significant after adjustment for all groups tested. Several models, such
    as a global map and a multicalibrated one, are compared on the worst groups of the
    first. Create the display with `from_predictions`, `from_estimator` or
    `from_result`.

    Parameters
    ----------
    results : dict
        Maps model names to results of `segment_calibration_test` with the same columns;
        the name of a single model may be None.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure.
    intervals_ : list of ErrorbarContainer
        Intervals and markers, model by model: those of significant groups, then those
        of the others. An empty container is omitted.
    legend_ : Legend or None
        The legend.

    See Also
    --------
    skcalib.metrics.segment_calibration_test : The test without a plot.
    GroupDisplay : Forest plot of groups that you specify.

    Notes
    -----
    The intervals are Clopper-Pearson intervals around the event frequency. Each
    interval is valid separately, but the intervals are not valid simultaneously, and
    the groups shown are the worst of many: base conclusions on the adjusted p-values.
    The statistic also detects scores that are too extreme or not extreme enough: a
    group may be significant although its interval includes 0.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.displays import SegmentDisplay
    >>> rng = np.random.default_rng(0)
    >>> age, y_proba = rng.integers(20, 70, 2000), rng.uniform(0.1, 0.6, 2000)
    >>> y_true = rng.random(2000) < y_proba + 0.2 * (age > 55)
    >>> display = SegmentDisplay.from_predictions(
    ...     y_true, y_proba, age[:, None], random_state=0
    ... )
    >>> bool(display.results[None].segments.bias[0] < 0)
    True
    """

    ax_: Axes
    figure_: Figure
    intervals_: list[ErrorbarContainer]
    legend_: Legend | None

    def __init__(
        self, results: Mapping[Any, SegmentTestResult], *, confidence_level: float = 0.9
    ):
        self.results = dict(results)
        self.confidence_level = confidence_level

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | Mapping[str, ArrayLike],
        X: Any,
        *,
        name: str | None = None,
        confidence_level: float = 0.9,
        max_depth: int = 2,
        max_bins: int = 8,
        min_size: int = 50,
        n_resamples: int = 999,
        multiclass: Literal["auto", "top_label"] = "auto",
        sample_weight: ArrayLike | None = None,
        weight_type: Literal["frequency", "importance"] | dict = "frequency",
        clusters: ArrayLike | None = None,
        pos_label: float | str | None = None,
        labels: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        ax: Axes | None = None,
        plot_options: dict[str, Any] | None = None,
    ) -> Self:
        """Test the groups and draw the worst of them.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_proba : array-like of shape (n,), (n, 2) or (n, K), or dict of arrays
            Probabilities in [0, 1], or a dict that maps model names to probabilities,
            to compare several models.
        X : array-like or DataFrame of shape (n, n_columns)
            Columns in which to search for groups.
        name : str, default=None
            Name of the model in the title.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).
        max_depth : int, default=2
            Maximum number of columns to combine.
        max_bins : int, default=8
            Maximum number of parts of a column, not counting missing values; at least
            2.
        min_size : int, default=50
            Groups with fewer samples are ignored.
        n_resamples : int, default=999
            Number of label vectors drawn. The smallest possible p-value is
            ``1 / (n_resamples + 1)``.
        multiclass : {"auto", "top_label"}, default="auto"
            "auto" evaluates the positive class for one or two columns; for more, it
            means "top_label".
        sample_weight : array-like of shape (n,), default=None
            Weights; see `weight_type`.
        weight_type : {"frequency", "importance"} or dict, default="frequency"
            Meaning of the weights. "frequency": the number of times that each sample is
            repeated (whole numbers). "importance": each sample was observed once and
            represents more or less than one (to correct for the sampling design or for
            covariate shift).
            A dict gives the weight that each sample would have with each of two labels,
            a number or an array; see `skcalib.evaluation.describe_weights`.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample: samples in the same cluster (for example, from one
            patient or match) may be dependent.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        labels : array-like of shape (K,), default=None
            The sorted labels of the columns.
        random_state : int, RandomState instance or None, default=None
            Seed for the random draws.
        verbose : bool, default=False
            Whether to write the number of completed draws to standard error.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        plot_options : dict, default=None
            Options of `plot`.

        Returns
        -------
        display : SegmentDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If labels, probabilities or columns are inconsistent.
        """
        level = check_confidence_level(confidence_level)
        models = named_models(y_proba, name)
        results = {}
        for model, proba in models.items():
            results[model] = segment_calibration_test(
                y_true,
                proba,
                X,
                max_depth=max_depth,
                max_bins=max_bins,
                min_size=min_size,
                n_resamples=n_resamples,
                multiclass=multiclass,
                sample_weight=sample_weight,
                weight_type=weight_type,
                clusters=clusters,
                pos_label=pos_label,
                labels=labels,
                random_state=random_state,
                verbose=verbose,
            )
        return cls(results, confidence_level=level).plot(ax, **(plot_options or {}))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        columns: Any = None,
        name: str | None = None,
        confidence_level: float = 0.9,
        max_depth: int = 2,
        max_bins: int = 8,
        min_size: int = 50,
        n_resamples: int = 999,
        multiclass: Literal["auto", "top_label"] = "auto",
        sample_weight: ArrayLike | None = None,
        weight_type: Literal["frequency", "importance"] | dict = "frequency",
        clusters: ArrayLike | None = None,
        pos_label: float | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        ax: Axes | None = None,
        plot_options: dict[str, Any] | None = None,
    ) -> Self:
        """Predict, test the groups and draw the worst of them.

        Parameters
        ----------
        estimator : classifier or dict of classifiers by name
            Fitted classifiers with `predict_proba`.
        X : array-like or DataFrame of shape (n, n_features)
            Samples that were not used to fit the classifier.
        y : array-like of shape (n,)
            Labels.
        columns : array-like or DataFrame of shape (n, n_columns), default=None
            Columns in which to search for groups; None means `X`.
        name : str, default=None
            Name of the model in the figure; None means the name of its class.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).
        max_depth : int, default=2
            Maximum number of columns to combine.
        max_bins : int, default=8
            Maximum number of parts of a column, not counting missing values; at least
            2.
        min_size : int, default=50
            Groups with fewer samples are ignored.
        n_resamples : int, default=999
            Number of label vectors drawn. The smallest possible p-value is
            ``1 / (n_resamples + 1)``.
        multiclass : {"auto", "top_label"}, default="auto"
            "auto" evaluates the positive class for one or two columns; for more, it
            means "top_label".
        sample_weight : array-like of shape (n,), default=None
            Weights; see `weight_type`.
        weight_type : {"frequency", "importance"} or dict, default="frequency"
            Meaning of the weights. "frequency": the number of times that each sample is
            repeated (whole numbers). "importance": each sample was observed once and
            represents more or less than one (to correct for the sampling design or for
            covariate shift).
            A dict gives the weight that each sample would have with each of two labels,
            a number or an array; see `skcalib.evaluation.describe_weights`.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample: samples in the same cluster (for example, from one
            patient or match) may be dependent.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        random_state : int, RandomState instance or None, default=None
            Seed for the random draws.
        verbose : bool, default=False
            Whether to write the number of completed draws to standard error.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        plot_options : dict, default=None
            Options of `plot`.

        Returns
        -------
        display : SegmentDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If an estimator has no `predict_proba`.
        """
        probabilities, classes = predicted_probabilities(estimator, X, name)
        if columns is None:
            columns = X
        return cls.from_predictions(
            y,
            probabilities,
            columns,
            labels=classes,
            confidence_level=confidence_level,
            max_depth=max_depth,
            max_bins=max_bins,
            min_size=min_size,
            n_resamples=n_resamples,
            multiclass=multiclass,
            sample_weight=sample_weight,
            weight_type=weight_type,
            clusters=clusters,
            pos_label=pos_label,
            random_state=random_state,
            verbose=verbose,
            ax=ax,
            plot_options=plot_options,
        )

    @classmethod
    def from_result(
        cls,
        result: SegmentTestResult | Mapping[Any, SegmentTestResult],
        *,
        name: str | None = None,
        confidence_level: float = 0.9,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the result of `segment_calibration_test`.

        Parameters
        ----------
        result : SegmentTestResult or dict of SegmentTestResult
            One result, or a dict that maps model names to results for the same columns.
        name : str, default=None
            Name of the model in the title.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : SegmentDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If the results are not for the same groups.
        """
        level = check_confidence_level(confidence_level)
        results = named_models(result, name)
        segments_of_results = []
        for tested in results.values():
            segments_of_results.append(set(tested.segments.segment.tolist()))
        first = segments_of_results[0]
        if any(segments != first for segments in segments_of_results):
            raise ValueError(
                "The results are for different groups: test all models with the"
                " same X and min_size."
            )
        return cls(results, confidence_level=level).plot(ax, **plot_options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        significance_level: float = 0.05,
        max_segments: int = 15,
        legend: bool = True,
        bar_kw: dict[str, Any] | None = None,
        legend_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the stored results.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on; None creates a figure that is tall enough for all groups.
        significance_level : float, default=0.05
            A group has a filled marker if its adjusted p-value is below this level.
        max_segments : int, default=15
            Maximum number of groups to show.
        legend : bool, default=True
            Whether to draw a legend.
        bar_kw, legend_kw : dict, default=None
            Keyword arguments of the artists (`Axes.errorbar` and `legend`) that
            override the defaults.

        Returns
        -------
        display : SegmentDisplay
            The display, with the artists as attributes.
        """
        # The segments of the first model, from the worst on.
        first = next(iter(self.results.values())).segments
        shown = first.segment[: check_int(max_segments, "max_segments")].tolist()
        names = short_names(shown, separator=" and ")
        models = {}
        for model, result in self.results.items():
            table = result.segments
            # Where the segments of the first result stand in this one.
            positions = places(shown, table.segment)
            limits = self._bias_with_limits(table, positions)
            is_significant = table.adjusted_pvalue[positions] < significance_level
            models[model] = ForestMarks(limits, is_significant)
        options = {
            "significance_level": significance_level,
            "legend": legend,
            "bar_kw": bar_kw,
            "legend_kw": legend_kw,
        }
        label = partial(self._axis_label, n_shown=len(shown), n_segments=len(first))
        return draw_forest(
            self, ax, models, names, label, counts=first.n[: len(shown)], **options
        )

    def _bias_with_limits(self, table, positions):
        """Return the bias, in percentage points, of the segments at these positions
        (n_shown,), and its lower and upper limits, (3, n_shown).
        """
        n = table.n[positions]
        score = table.mean_score[positions]
        frequency = table.event_frequency[positions]
        # Each bar covers by itself: only p-values are adjusted for many segments.
        options = {"confidence_level": self.confidence_level, "simultaneous": False}
        n_events = np.clip(frequency, 0, 1) * n
        low, high = event_frequency_interval(n_events, n, **options)
        # The upper limit of the frequency is the lower limit of the bias.
        return 100 * np.stack((score - frequency, score - high, score - low))

    def _axis_label(self, frame, n_shown, n_segments):
        """Return the label below the axes: what the bars are, how many segments are
        shown and, if the first model has a name, the name.
        """
        is_wide = frame.width >= 4  # inches
        level = f"{level_words(self.confidence_level)} intervals"
        extent = "all groups"
        if n_shown < n_segments:
            extent = f"the worst {n_shown} of {count_words(n_segments)} groups"
        lines = ["Mean score minus event frequency (percentage points)"]
        if is_wide:
            lines.append(f"{level}; {extent}")
        else:
            lines += [level, extent]
        name = next(iter(self.results))
        if name is None:
            return "\n".join(lines)
        name = matplotlib_text(name)
        if len(self.results) == 1:
            lines.append(shortened(name, frame))
        elif is_wide:
            # Of several models the first one decides which segments are the worst.
            lines[-1] = f"{lines[-1]} for {name}"
        else:
            lines.append(shortened(f"for {name}", frame))
        return "\n".join(lines)
