"""Bias or error of each group as a forest plot: which groups are off, and which of them
are more than noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from skcalib._input.scalars import check_option
from skcalib._verdicts import level_words
from skcalib.displays._forest import (
    ForestMarks,
    draw_forest,
    places,
    short_names,
)
from skcalib.displays._predictions import FromEstimator, named_models
from skcalib.metrics import calibration_by_group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

    from skcalib.binning import BaseBinning
    from skcalib.metrics._group_tables import GroupCalibration


_WORDS = {
    "bias": "Mean score minus event frequency (percentage points)",
    "error": "Calibration error (percent)",
}


class GroupDisplay(FromEstimator):
    """Forest plot of groups: bias or calibration error, with its interval.

    Groups whose bias is significant after adjustment for the number of groups have a
    filled marker, and the others an open one. A dict compares several models on the
    same groups. Create the display with `from_predictions`, `from_estimator` or
    `from_table`.

    Parameters
    ----------
    tables : dict
        Maps model names to tables from `calibration_by_group` for the same groups; the
        name of a single model may be None.
    confidence_level : float, default=0.9
        Coverage of each interval, in (0, 1).

    Attributes
    ----------
    ax_ : Axes
        The axes. The first group is at the top.
    figure_ : Figure
        The figure.
    intervals_ : list of ErrorbarContainer
        Intervals and markers, model by model: those of significant groups, then those
        of the others. An empty container is omitted.
    legend_ : Legend or None
        The legend.

    See Also
    --------
    skcalib.metrics.calibration_by_group : The table without a plot.

    References
    ----------
    Zhao, Chen and Oymak (2020), On the role of dataset quality and heterogeneity in
    model confidence.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.displays import GroupDisplay
    >>> rng = np.random.default_rng(0)
    >>> y_proba, site = rng.random(3000), rng.choice(["east", "north", "west"], 3000)
    >>> y_true = rng.random(3000) < np.where(site == "north", y_proba**2, y_proba)
    >>> display = GroupDisplay.from_predictions(y_true, y_proba, site, random_state=0)
    >>> [text.get_text() for text in display.ax_.get_yticklabels()]
    ['east', 'north', 'west']
    """

    ax_: Axes
    figure_: Figure
    intervals_: list[ErrorbarContainer]
    legend_: Legend | None

    def __init__(
        self, tables: Mapping[Any, GroupCalibration], *, confidence_level: float = 0.9
    ):
        self.tables = dict(tables)
        self.confidence_level = confidence_level

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | Mapping[str, ArrayLike],
        groups: ArrayLike = "predicted_class",
        *,
        confidence_level: float = 0.9,
        norm: float | Literal["l1", "l2", "max"] = 2,
        binning: BaseBinning | int | None = None,
        method: Literal[
            "auto", "plugin", "debiased", "unbiased", "label_binned"
        ] = "auto",
        order: Literal["sorted", "given", "error"] = "sorted",
        max_bins: int | None = None,
        min_group_size: int | None = None,
        alternative: Literal["two-sided", "greater", "less"] = "two-sided",
        adjustment: Literal["holm", "exact"] = "holm",
        n_resamples: int = 199,
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
        """Compute the table of groups and draw it.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_proba : array-like of shape (n,), (n, 2) or (n, K), or dict of arrays
            Probabilities in [0, 1], or a dict that maps model names to probabilities,
            to compare several models.
        groups : array-like of shape (n,) or "predicted_class", default="predicted_class"
            The group of each sample.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).
        norm : float, default=2
            Norm of the error, as in `calibration_error`: p >= 1, or ``np.inf``
            (`method` "plugin" only).
        binning : BaseBinning, int or None, default=None
            Bins for the error, formed separately for each group. An int is the number
            of equal-mass bins, and None means ``EqualMass("cube_root")``.
        method : {"auto", "plugin", "debiased", "unbiased", "label_binned"}, default="auto"
            See `calibration_error`. The plugin error of a small group is mostly noise.
        order : {"sorted", "given", "error"}, default="sorted"
            Order of the groups in the table: sorted, in order of first appearance, or
            in decreasing order of the error (NaN last).
        max_bins : int, default=None
            Numbers or dates with more distinct values than this are grouped into at
            most `max_bins` quantile bins, named by their edges: "<= 20", "(20, 35.5]",
            "> 35.5".
        min_group_size : int, default=None
            Groups with fewer samples are merged into one group, "other". None keeps
            even the smallest groups.
        alternative : {"two-sided", "greater", "less"}, default="two-sided"
            Alternative hypothesis for the p-values and for the limits of the bias.
            "greater" means more events than predicted (for example, a default rate
            above the probability assigned to a rating grade), and "less" means fewer.
            For a one-sided alternative, the other limit (`bias_low` or `bias_high`) is
            the smallest or largest possible value of the bias.
        adjustment : {"holm", "exact"}, default="holm"
            Method by which p-values are adjusted for the number of groups. Holm's
            method is valid for any p-values. "exact" uses the independence of the
            groups and the discreteness of their p-values; it has more power if groups
            have few events.
        n_resamples : int, default=199
            Number of draws for each error's interval; small groups need none. The
            default is small because there may be many groups, and no p-value depends on
            it.
        multiclass : {"auto", "top_label"}, default="auto"
            "auto" evaluates the positive class for one or two columns; for more, it
            means "top_label".
        sample_weight : array-like of shape (n,), default=None
            Weights; see `weight_type`.
        weight_type : {"frequency", "importance"} or dict, default="frequency"
            Meaning of the weights. "frequency": a weight of 2 means two identical
            samples. "importance": each sample was observed once and represents more or
            less than one (to correct for the sampling design or for covariate shift);
            weights w correspond to an effective sample size of ``sum(w)**2 /
            sum(w**2)``, which the table reports as `n`. The variance of the number of
            events is the sum of w^2 s (1 - s) over the samples. A dict gives the weight
            that each sample would have with each of two labels, a number or an array;
            see `skcalib.evaluation.describe_weights`.
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
            Whether to write the number of processed groups to standard error.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        plot_options : dict, default=None
            Options of `plot`.

        Returns
        -------
        display : GroupDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If labels, probabilities or groups are inconsistent.
        """  # noqa: E501
        tables = {}
        for model, proba in named_models(y_proba, None).items():
            tables[model] = calibration_by_group(
                y_true,
                proba,
                groups,
                norm=norm,
                binning=binning,
                method=method,
                order=order,
                max_bins=max_bins,
                min_group_size=min_group_size,
                alternative=alternative,
                adjustment=adjustment,
                confidence_level=confidence_level,
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
        return cls.from_table(
            tables, confidence_level=confidence_level, ax=ax, **(plot_options or {})
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        groups: ArrayLike = "predicted_class",
        confidence_level: float = 0.9,
        norm: float | Literal["l1", "l2", "max"] = 2,
        binning: BaseBinning | int | None = None,
        method: Literal[
            "auto", "plugin", "debiased", "unbiased", "label_binned"
        ] = "auto",
        order: Literal["sorted", "given", "error"] = "sorted",
        max_bins: int | None = None,
        min_group_size: int | None = None,
        alternative: Literal["two-sided", "greater", "less"] = "two-sided",
        adjustment: Literal["holm", "exact"] = "holm",
        n_resamples: int = 199,
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
        """Predict, compute the table of groups and draw it.

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
        groups : array-like of shape (n,) or "predicted_class", default="predicted_class"
            The group of each sample.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).
        norm : float, default=2
            Norm of the error, as in `calibration_error`: p >= 1, or ``np.inf``
            (`method` "plugin" only).
        binning : BaseBinning, int or None, default=None
            Bins for the error, formed separately for each group. An int is the number
            of equal-mass bins, and None means ``EqualMass("cube_root")``.
        method : {"auto", "plugin", "debiased", "unbiased", "label_binned"}, default="auto"
            See `calibration_error`. The plugin error of a small group is mostly noise.
        order : {"sorted", "given", "error"}, default="sorted"
            Order of the groups in the table: sorted, in order of first appearance, or
            in decreasing order of the error (NaN last).
        max_bins : int, default=None
            Numbers or dates with more distinct values than this are grouped into at
            most `max_bins` quantile bins, named by their edges: "<= 20", "(20, 35.5]",
            "> 35.5".
        min_group_size : int, default=None
            Groups with fewer samples are merged into one group, "other". None keeps
            even the smallest groups.
        alternative : {"two-sided", "greater", "less"}, default="two-sided"
            Alternative hypothesis for the p-values and for the limits of the bias.
            "greater" means more events than predicted (for example, a default rate
            above the probability assigned to a rating grade), and "less" means fewer.
            For a one-sided alternative, the other limit (`bias_low` or `bias_high`) is
            the smallest or largest possible value of the bias.
        adjustment : {"holm", "exact"}, default="holm"
            Method by which p-values are adjusted for the number of groups. Holm's
            method is valid for any p-values. "exact" uses the independence of the
            groups and the discreteness of their p-values; it has more power if groups
            have few events.
        n_resamples : int, default=199
            Number of draws for each error's interval; small groups need none. The
            default is small because there may be many groups, and no p-value depends on
            it.
        multiclass : {"auto", "top_label"}, default="auto"
            "auto" evaluates the positive class for one or two columns; for more, it
            means "top_label".
        sample_weight : array-like of shape (n,), default=None
            Weights; see `weight_type`.
        weight_type : {"frequency", "importance"} or dict, default="frequency"
            Meaning of the weights. "frequency": a weight of 2 means two identical
            samples. "importance": each sample was observed once and represents more or
            less than one (to correct for the sampling design or for covariate shift);
            weights w correspond to an effective sample size of ``sum(w)**2 /
            sum(w**2)``, which the table reports as `n`. The variance of the number of
            events is the sum of w^2 s (1 - s) over the samples. A dict gives the weight
            that each sample would have with each of two labels, a number or an array;
            see `skcalib.evaluation.describe_weights`.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample: samples in the same cluster (for example, from one
            patient or match) may be dependent.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        random_state : int, RandomState instance or None, default=None
            Seed for the random draws.
        verbose : bool, default=False
            Whether to write the number of processed groups to standard error.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        plot_options : dict, default=None
            Options of `plot`.

        Returns
        -------
        display : GroupDisplay
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
            groups=groups,
            confidence_level=confidence_level,
            norm=norm,
            binning=binning,
            method=method,
            order=order,
            max_bins=max_bins,
            min_group_size=min_group_size,
            alternative=alternative,
            adjustment=adjustment,
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
    def from_table(
        cls,
        table: GroupCalibration | Mapping[Any, GroupCalibration],
        *,
        confidence_level: float = 0.9,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the result of `calibration_by_group`.

        Parameters
        ----------
        table : GroupCalibration or dict of GroupCalibration
            One table, or a dict that maps model names to tables for the same groups.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1).
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : GroupDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If the tables are not for the same groups of the same samples.
        """
        tables = named_models(table, None)
        # number of rows by group, for each table
        sizes = []
        for model_table in tables.values():
            groups = model_table.group.tolist()
            sizes.append(dict(zip(groups, model_table.n.tolist(), strict=True)))
        if any(table_sizes != sizes[0] for table_sizes in sizes):
            raise ValueError(
                "The tables are for different groups: compare all models on the same"
                ' rows and groups. "predicted_class" gives different groups per model.'
            )
        return cls(tables, confidence_level=confidence_level).plot(ax, **plot_options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        value: Literal["bias", "error"] = "bias",
        significance_level: float = 0.05,
        max_groups: int = 60,
        legend: bool = True,
        bar_kw: dict[str, Any] | None = None,
        legend_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the stored table.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on; None creates a figure that is tall enough for all groups.
        value : {"bias", "error"}, default="bias"
            The value to draw. The error requires several samples per group; groups for
            which it cannot be computed are omitted.
        significance_level : float, default=0.05
            A group has a filled marker if its adjusted p-value is below this level.
        max_groups : int, default=60
            Maximum number of groups to show: those with the smallest p-values (of the
            first model).
        legend : bool, default=True
            Whether to draw a legend.
        bar_kw, legend_kw : dict, default=None
            Keyword arguments of the artists (`Axes.errorbar` and `legend`) that
            override the defaults.

        Returns
        -------
        display : GroupDisplay
            The display, with the artists as attributes.

        Raises
        ------
        ValueError
            If no group has the requested value.
        """
        check_option(value, "value", ("bias", "error"))
        first = next(iter(self.tables.values()))
        shown = _shown(first, value, max_groups)
        groups = first.group[shown].tolist()
        models = {}
        for model, table in self.tables.items():
            # Where the groups of the first table stand in this one.
            positions = places(groups, table.group)
            percentage_points = 100 * _estimates(table, value)[:, positions]
            is_significant = table.adjusted_pvalue[positions] < significance_level
            models[model] = ForestMarks(percentage_points, is_significant)
        label = f"{_WORDS[value]}\n{level_words(self.confidence_level)} intervals"
        n_left_out = len(first) - len(shown)
        if n_left_out > 0:
            label += f"; {n_left_out} of {len(first)} groups are not shown"
        draw_forest(
            self,
            ax,
            models,
            short_names([str(group) for group in groups]),
            lambda frame: label,
            counts=first.n[shown],
            significance_level=significance_level,
            legend=legend,
            bar_kw=bar_kw,
            legend_kw=legend_kw,
        )
        if value == "error":
            self.ax_.set_xlim(left=0)
        return self


def _estimates(table, value):
    """Return the "bias" or the "error" of each group with its lower and upper limits,
    (3, n_groups).
    """
    if value == "bias":
        return np.stack((table.bias, table.bias_low, table.bias_high))
    return np.stack((table.error, table.error_low, table.error_high))


def _shown(table, value, max_groups):
    """Return the increasing positions of the groups that are drawn: those with a
    `value`, or the `max_groups` of them with the smallest p-values.
    """
    estimate, _, _ = _estimates(table, value)
    shown = np.flatnonzero(np.isfinite(estimate))
    if len(shown) == 0:
        raise ValueError(
            f"No group has enough samples for its {value}: plot the bias, or use larger"
            " groups."
        )
    if len(shown) > max_groups:
        by_pvalue = np.argsort(table.pvalue[shown], kind="stable")
        shown = np.sort(shown[by_pvalue[:max_groups]])
    return shown
