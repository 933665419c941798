"""Reliability diagrams: event frequency against predicted probability, with what noise
alone would do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

import skcalib.displays._reliability_panel as panel
from skcalib._input.scalars import check_option
from skcalib._input.sklearn_private import safe_indexing
from skcalib._verdicts import level_words
from skcalib.displays._cv_results import named_results, out_of_fold
from skcalib.displays._finish import add_numbers, finish
from skcalib.displays._frames import frame_of_panels, has_room
from skcalib.displays._predictions import FromEstimator, named_models
from skcalib.displays._reliability_curves import CurveMaker, readable_limits
from skcalib.displays._style import CURVE, curve_styles, neutral

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.container import ErrorbarContainer
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.patches import StepPatch

    from skcalib.binning import BaseBinning
    from skcalib.displays._reliability_curves import ReliabilityCurve
    from skcalib.metrics import BinStatistics


_CLASS_NAMES = {
    "binary": ("event", "no event"),
    "top_label": ("right", "wrong"),
    "marginal": ("this class", "other class"),
    "multilabel": ("label", "no label"),
}
_MOST_STRIPS = 4  # histograms below an overlay of several models; more models have none
# Heights of a histogram in units of the height of the diagram: of the only one, and of
# each of several.
_STRIP = 0.25
_LOW_STRIP = 0.12
_HEIGHT_OF_STRIPS = 3.0  # inches that a picture with several histograms needs


class ReliabilityDisplay(FromEstimator):
    """Reliability diagram: observed event frequency against predicted probability.

    It draws the event frequency of each bin, with an interval, against its mean score.
    A band around the diagonal shows where the points of a calibrated model would lie. A
    histogram of the scores is drawn below. The title shows the calibration error with
    its interval. Create the display with `from_estimator`, `from_predictions`,
    `from_cv_results` or `from_statistics`. The results are stored, so `plot` can redraw
    them without recomputing anything.

    Parameters
    ----------
    curves : list of ReliabilityCurve
        One curve for each model in each panel.
    confidence_level : float
        Coverage of each interval, in (0, 1), and of the bands.
    kind : {"binary", "top_label", "marginal", "multilabel"}
        Type of event, for the axis labels.
    error_name : str, default="error"
        Name of the error in the title.
    n_panels_left_out : int, default=0
        Number of classes or groups that are not shown.
    event : str, default=None
        Name of the event, for the axis labels.

    Attributes
    ----------
    ax_ : Axes or ndarray of Axes
        The axes of the diagram, one per panel.
    figure_ : Figure
        The figure.
    histogram_ax_ : Axes or ndarray of Axes or None
        The axes of the histograms: one per panel, or one per model if several models
        share the axes.
    lines_ : list of Line2D
        The curves, in the order of `curves`.
    fold_lines_ : list of Line2D
        The thin lines of the cross-validation folds, starting with those of the first
        curve.
    intervals_ : list of ErrorbarContainer or PolyCollection
        The intervals for the event frequencies: bars, or bands if several models share
        the axes.
    consistency_bands_ : list of PolyCollection
        The bands around the diagonal.
    reference_lines_ : list of Line2D
        The diagonals.
    histograms_ : list of StepPatch
        The histograms; with `split_histogram`, two per curve, events first.
    legend_ : Legend or None
        The legend.

    See Also
    --------
    skcalib.metrics.reliability_curve : The data of the diagram, without a plot.
    skcalib.metrics.calibration_error_interval : The error in the title.

    References
    ----------
    Bröcker and Smith (2007), Increasing the reliability of reliability diagrams.
    Dimitriadis, Gneiting and Jordan (2021), Stable reliability diagrams for
    probabilistic classifiers.

    Examples
    --------
    The scores in this example are too extreme:

    >>> import numpy as np
    >>> from skcalib.displays import ReliabilityDisplay
    >>> rng = np.random.default_rng(0)
    >>> y_proba = rng.random(500)
    >>> y_true = rng.random(500) < 0.2 + 0.6 * y_proba
    >>> display = ReliabilityDisplay.from_predictions(
    ...     y_true, y_proba, name="too sure", random_state=0
    ... )
    >>> display.ax_.get_title(loc="left").splitlines()
    ['too sure, n = 500', 'calibration error 9 % (5 to 13)']
    """

    ax_: Any
    figure_: Figure
    histogram_ax_: Any
    lines_: list[Line2D]
    fold_lines_: list[Line2D]
    intervals_: list[ErrorbarContainer | PolyCollection]
    consistency_bands_: list[PolyCollection]
    reference_lines_: list[Line2D]
    histograms_: list[StepPatch]
    legend_: Legend | None

    def __init__(
        self,
        curves: Sequence[ReliabilityCurve],
        *,
        confidence_level: float,
        kind: Literal["binary", "top_label", "marginal", "multilabel"] = "binary",
        error_name: str = "error",
        n_panels_left_out: int = 0,
        event: str | None = None,
    ):
        self.curves = list(curves)
        self.confidence_level = confidence_level
        self.kind = kind
        self.error_name = error_name
        self.n_panels_left_out = n_panels_left_out
        self.event = event

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        binning: BaseBinning | int | None = None,
        multiclass: Literal["auto", "top_label", "marginal"] = "auto",
        groups: ArrayLike | None = None,
        order: Literal["sorted", "given", "error"] = "sorted",
        interval: Literal["auto", "clopper_pearson", "wilson", "hoeffding", "bootstrap"]
        | None = "auto",
        band: Literal["simultaneous"] | None = None,
        confidence_level: float = 0.9,
        n_resamples: int = 1000,
        metric: Callable[..., float] | Literal["auto"] | None = "auto",
        max_panels: int = 12,
        curve: Literal["bins", "smooth", "both"] = "bins",
        statistics: str | Sequence[str] = (),
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        pos_label: float | str | None = None,
        labels: ArrayLike | None = None,
        name: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        ax: Axes | np.ndarray | Sequence[Axes] | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the reliability diagram of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,) or (n, L)
            Labels, or an indicator matrix for several labels per row. There is one
            panel per label.
        y_proba : array-like of shape (n,), (n, 2), (n, K) or (n, L), or dict of arrays, default=None
            Probabilities in [0, 1], or a dict that maps model names to probabilities,
            to draw several models in the same axes. For bin statistics, use
            `from_statistics`.
        binning : BaseBinning, int or None, default=None
            Binning strategy; an int is the number of equal-mass bins. None starts from
            15 equal-width bins: a bin with more than its share of the samples is split
            into bins of equal mass, and neighbouring bins are merged until each bin
            contains 10 samples. `PoolAdjacentViolators` draws the steps of the isotonic
            fit (CORP).
        multiclass : {"auto", "top_label", "marginal"}, default="auto"
            "auto" means the positive class for one or two columns, and "top_label" for
            more. "marginal" draws one panel per class.
        groups : array-like of shape (n,), default=None
            Group of each sample. There is one panel per group.
        order : {"sorted", "given", "error"}, default="sorted"
            Order of the panels: by the name of the class or group (by column for
            several labels per row), by first occurrence in the data, or by decreasing
            error.
        interval : {"auto", "clopper_pearson", "wilson", "hoeffding", "bootstrap"} or None, default="auto"
            Interval bars for each bin, or a bootstrap band. "auto" means
            Clopper-Pearson intervals, or the bootstrap for label-dependent bins, for
            which no other interval is valid (the bins are recomputed on each resample).
        band : {"simultaneous"} or None, default=None
            "simultaneous" draws, in place of the bars, limits that contain the whole
            calibration curve if it rises with the score; see `reliability_curve`. The
            title says where they exclude the diagonal.
        confidence_level : float, default=0.9
            Level of each bin's interval, of the consistency band (at each score) and of
            the error's interval.
        n_resamples : int, default=1000
            Number of bootstrap resamples.
        metric : callable, "auto" or None, default="auto"
            The error shown in the title, which also orders the panels if
            ``order="error"``. "auto" means `calibration_error`, with the bins given as
            `binning` unless they depend on the labels. With None, no error is shown.
        max_panels : int, default=12
            Maximum number of classes or groups to show: those with the largest errors.
        curve : {"bins", "smooth", "both"}, default="bins"
            What to draw: the bins, a smooth curve (loess, as in `calibration_summary`)
            with a pointwise band, or both, with the bins as points.
        statistics : str or sequence of str, default=()
            Statistics of `calibration_summary` to show in a corner, such as
            ``("intercept", "slope", "auc")``. With several models in the same axes,
            they are shown in the legend, without intervals.
        sample_weight : array-like of shape (n,), default=None
            Frequency weights: a sample with weight 2 counts twice.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample, such as a hospital or a patient. The dependence
            within clusters is taken into account in the intervals for the bins, the
            consistency band, the error and the `statistics`; see Notes.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        labels : array-like of shape (K,) or (L,), default=None
            The sorted labels of the columns, or the names of several labels per row.
        name : str, default=None
            Name of the model in the title.
        random_state : int, RandomState or None, default=None
            Seed for the random draws.
        ax : Axes or array of Axes, default=None
            Axes to draw on; None creates a figure. The display fills the given axes. A
            single axes is divided among several panels. Pass the axes of another
            display to draw on top of it.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : ReliabilityDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If labels and probabilities are inconsistent, if the interval is not valid
            for the bins, or if there is only one cluster.
        ImportError
            If matplotlib is missing.

        Warns
        -----
        UserWarning
            If there are too few `clusters` for the interval for a bin or for a
            bootstrap.

        Notes
        -----
        With `clusters`, the effective number of samples in a bin is reduced by its
        design effect. This accounts for the larger variance of the jackknifed sums of
        its clusters (CR3), compared with independent samples, and for the quantile of
        Student's t distribution with Satterthwaite degrees of freedom, compared with
        the normal quantile. The bar and the consistency band are those for the
        effective number of samples. In a bin whose labels are all equal, the rows of
        one cluster are treated as identical. If the effective number of clusters is
        below three, a bin has no bar, and the diagram shows no error. In simulations
        with 25 hospitals of unequal size, with a correlation of .1 within hospitals on
        the scale of a latent normal variable, the coverage of the 90% bars was .93
        with `clusters` and .52 without.

        For a smooth curve, a design effect is computed at each score, with the weights
        that the curve gives to the samples. The bootstrap draws whole clusters; its
        deviations are widened by the factor by which jackknifed sums and the t quantile
        widen the interval for the mean. For the consistency band of label-dependent
        bins, labels are drawn with within-cluster dependence. In 60 data sets with 24
        such hospitals, the coverage of 90% bands was .95 for the smooth curve (.73
        without `clusters`), .93 for a bootstrap of five bins (.74) and .93 for the
        isotonic fit (.83).

        References
        ----------
        Bell and McCaffrey (2002), Bias reduction in standard errors for linear
        regression with multi-stage samples.
        """  # noqa: E501
        if y_proba is None:
            raise TypeError(
                "from_predictions needs y_true and y_proba, found"
                f" {type(y_true).__name__}. To plot a BinStatistics, or a dict of them,"
                " use ReliabilityDisplay.from_statistics."
            )
        maker = CurveMaker(
            binning,
            interval,
            confidence_level,
            n_resamples,
            metric,
            random_state,
            curve,
            statistics,
            band=band,
        )
        arguments = maker.from_predictions(
            y_true,
            named_models(y_proba, name),
            multiclass=multiclass,
            groups=groups,
            order=order,
            max_panels=max_panels,
            clusters=clusters,
            sample_weight=sample_weight,
            pos_label=pos_label,
            labels=labels,
        )
        return cls(**arguments).plot(ax, **plot_options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        binning: BaseBinning | int | None = None,
        multiclass: Literal["auto", "top_label", "marginal"] = "auto",
        groups: ArrayLike | None = None,
        order: Literal["sorted", "given", "error"] = "sorted",
        interval: Literal["auto", "clopper_pearson", "wilson", "hoeffding", "bootstrap"]
        | None = "auto",
        band: Literal["simultaneous"] | None = None,
        confidence_level: float = 0.9,
        n_resamples: int = 1000,
        metric: Callable[..., float] | Literal["auto"] | None = "auto",
        max_panels: int = 12,
        curve: Literal["bins", "smooth", "both"] = "bins",
        statistics: str | Sequence[str] = (),
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        pos_label: float | str | None = None,
        random_state: int | np.random.RandomState | None = None,
        ax: Axes | np.ndarray | Sequence[Axes] | None = None,
        **plot_options: Any,
    ) -> Self:
        """Predict, and draw reliability diagrams.

        Parameters
        ----------
        estimator : classifier or dict of classifiers by name
            Fitted classifiers with `predict_proba`.
        X : array-like of shape (n, n_features)
            Samples that were not used to fit the classifiers.
        y : array-like of shape (n,) or (n, L)
            Labels; an indicator matrix for several labels per row.
        name : str, default=None
            Name of the model in the figure; None means the name of its class.
        binning : BaseBinning, int or None, default=None
            Binning strategy; an int is the number of equal-mass bins. None starts from
            15 equal-width bins: a bin with more than its share of the samples is split
            into bins of equal mass, and neighbouring bins are merged until each bin
            contains 10 samples. `PoolAdjacentViolators` draws the steps of the isotonic
            fit (CORP).
        multiclass : {"auto", "top_label", "marginal"}, default="auto"
            "auto" means the positive class for one or two columns, and "top_label" for
            more. "marginal" draws one panel per class.
        groups : array-like of shape (n,), default=None
            Group of each sample. There is one panel per group.
        order : {"sorted", "given", "error"}, default="sorted"
            Order of the panels: by the name of the class or group (by column for
            several labels per row), by first occurrence in the data, or by decreasing
            error.
        interval : {"auto", "clopper_pearson", "wilson", "hoeffding", "bootstrap"} or None, default="auto"
            Interval bars for each bin, or a bootstrap band. "auto" means
            Clopper-Pearson intervals, or the bootstrap for label-dependent bins, for
            which no other interval is valid (the bins are recomputed on each resample).
        band : {"simultaneous"} or None, default=None
            "simultaneous" draws, in place of the bars, limits that contain the whole
            calibration curve if it rises with the score; see `reliability_curve`. The
            title says where they exclude the diagonal.
        confidence_level : float, default=0.9
            Level of each bin's interval, of the consistency band (at each score) and of
            the error's interval.
        n_resamples : int, default=1000
            Number of bootstrap resamples.
        metric : callable, "auto" or None, default="auto"
            The error shown in the title, which also orders the panels if
            ``order="error"``. "auto" means `calibration_error`, with the bins given as
            `binning` unless they depend on the labels. With None, no error is shown.
        max_panels : int, default=12
            Maximum number of classes or groups to show: those with the largest errors.
        curve : {"bins", "smooth", "both"}, default="bins"
            What to draw: the bins, a smooth curve (loess, as in `calibration_summary`)
            with a pointwise band, or both, with the bins as points.
        statistics : str or sequence of str, default=()
            Statistics of `calibration_summary` to show in a corner, such as
            ``("intercept", "slope", "auc")``. With several models in the same axes,
            they are shown in the legend, without intervals.
        sample_weight : array-like of shape (n,), default=None
            Frequency weights: a sample with weight 2 counts twice.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample, such as a hospital or a patient. The dependence
            within clusters is taken into account in the intervals for the bins, the
            consistency band, the error and the `statistics`; see Notes.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        random_state : int, RandomState or None, default=None
            Seed for the random draws.
        ax : Axes or array of Axes, default=None
            Axes to draw on; None creates a figure. The display fills the given axes. A
            single axes is divided among several panels. Pass the axes of another
            display to draw on top of it.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : ReliabilityDisplay
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
            binning=binning,
            multiclass=multiclass,
            groups=groups,
            order=order,
            interval=interval,
            band=band,
            confidence_level=confidence_level,
            n_resamples=n_resamples,
            metric=metric,
            max_panels=max_panels,
            curve=curve,
            statistics=statistics,
            sample_weight=sample_weight,
            clusters=clusters,
            pos_label=pos_label,
            random_state=random_state,
            ax=ax,
            **plot_options,
        )

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Mapping[str, Any],
        X: Any,
        y: ArrayLike,
        *,
        binning: BaseBinning | int | None = None,
        multiclass: Literal["auto", "top_label", "marginal"] = "auto",
        interval: Literal["auto", "clopper_pearson", "wilson", "hoeffding", "bootstrap"]
        | None = "auto",
        confidence_level: float = 0.9,
        n_resamples: int = 1000,
        metric: Callable[..., float] | Literal["auto"] | None = "auto",
        max_panels: int = 12,
        curve: Literal["bins", "smooth", "both"] = "bins",
        statistics: str | Sequence[str] = (),
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        pos_label: float | str | None = None,
        name: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        ax: Axes | np.ndarray | Sequence[Axes] | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the reliability diagram of cross-validated models.

        Each sample is predicted by the model of the fold in which it was tested. The
        curve, its intervals and the error are computed from all test samples together;
        the thin lines show the folds.

        Parameters
        ----------
        cv_results : dict, or dict of dict by name
            The result of ``cross_validate(..., return_estimator=True,
            return_indices=True)``; a dict that maps model names to such results draws
            the models in the same axes.
        X : array-like of shape (n, n_features)
            The samples used in the cross-validation.
        y : array-like of shape (n,)
            Labels of these samples.
        binning : BaseBinning, int or None, default=None
            Binning strategy, as for `from_predictions`. The bins of each fold are
            computed from its own samples.
        multiclass : {"auto", "top_label", "marginal"}, default="auto"
            "auto" means the positive class for two classes, and "top_label" for more.
            "marginal" draws one panel per class.
        interval : {"auto", "clopper_pearson", "wilson", "hoeffding", "bootstrap"} or None, default="auto"
            Interval bars for each bin, or a bootstrap band, as for `from_predictions`.
        confidence_level : float, default=0.9
            Level of each bin's interval, of the consistency band (at each score) and of
            the error's interval.
        n_resamples : int, default=1000
            Number of bootstrap resamples.
        metric : callable, "auto" or None, default="auto"
            The error in the title; "auto" means `calibration_error`.
        max_panels : int, default=12
            Maximum number of classes to show: those with the largest errors.
        curve : {"bins", "smooth", "both"}, default="bins"
            What to draw: the bins, a smooth curve, or both, with the bins as points.
            The curves of the folds are of the same kind.
        statistics : str or sequence of str, default=()
            Statistics of `calibration_summary` to show in a corner.
        sample_weight : array-like of shape (n,), default=None
            Frequency weights: a sample with weight 2 counts twice.
        clusters : array-like of shape (n,), default=None
            The cluster of each row of `X`; see `from_predictions`. With folds that keep
            clusters together (`GroupKFold`), each model is tested on clusters that it
            was not trained on.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        name : str, default=None
            Name of the model in the title; None means the name of its class.
        random_state : int, RandomState or None, default=None
            Seed for the random draws.
        ax : Axes or array of Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : ReliabilityDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If estimators or indices are missing, a sample is tested in two folds, or a
            model has no `predict_proba`.

        Notes
        -----
        The models of the folds differ but share training samples. The intervals treat
        the tested samples, or their clusters, as independent, and refer to the average
        over such models.
        """  # noqa: E501
        models = named_results(cv_results, name)
        tested = out_of_fold(models, X)
        maker = CurveMaker(
            binning,
            interval,
            confidence_level,
            n_resamples,
            metric,
            random_state,
            curve,
            statistics,
            tested.folds,
        )
        if sample_weight is not None:
            sample_weight = safe_indexing(sample_weight, tested.rows)
        if clusters is not None:
            clusters = safe_indexing(clusters, tested.rows)
        arguments = maker.from_predictions(
            safe_indexing(y, tested.rows),
            tested.probabilities,
            multiclass=multiclass,
            max_panels=max_panels,
            sample_weight=sample_weight,
            clusters=clusters,
            pos_label=pos_label,
            labels=tested.classes,
        )
        return cls(**arguments).plot(ax, **plot_options)

    @classmethod
    def from_statistics(
        cls,
        statistics: BinStatistics | Mapping[str, BinStatistics] | None = None,
        /,
        *,
        interval: Literal["auto", "clopper_pearson", "wilson", "hoeffding", "bootstrap"]
        | None = "auto",
        confidence_level: float = 0.9,
        n_resamples: int = 1000,
        metric: Callable[..., float] | Literal["auto"] | None = "auto",
        name: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        ax: Axes | np.ndarray | Sequence[Axes] | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the reliability diagram from bin sums, such as those from an engine.

        Parameters
        ----------
        statistics : BinStatistics or dict of BinStatistics
            Bin sums, or a dict that maps model names to bin sums, to draw several
            models. The histogram has the same bins.
        interval : {"auto", "clopper_pearson", "wilson", "hoeffding", "bootstrap"} or None, default="auto"
            Interval bars for each bin, or a bootstrap band. "auto" means
            Clopper-Pearson intervals.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1), and of the consistency band.
        n_resamples : int, default=1000
            Number of resamples.
        metric : callable, "auto" or None, default="auto"
            The error in the title, with the same bins. "auto" means
            `calibration_error`. With None, no error is shown.
        name : str, default=None
            Name of the model in the title.
        random_state : int, RandomState or None, default=None
            Seed for the random draws.
        ax : Axes or array of Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : ReliabilityDisplay
            The drawn display.

        Raises
        ------
        TypeError
            If `statistics` has any other type.
        ValueError
            If the statistics contain no samples.
        """  # noqa: E501
        maker = CurveMaker(
            None, interval, confidence_level, n_resamples, metric, random_state
        )
        arguments = maker.from_statistics(named_models(statistics, name))
        return cls(**arguments).plot(ax, **plot_options)

    def plot(
        self,
        ax: Axes | np.ndarray | Sequence[Axes] | None = None,
        *,
        layout: Literal["overlay", "columns"] = "overlay",
        histogram: bool = True,
        split_histogram: bool = False,
        histogram_scale: Literal["auto", "linear", "log"] = "auto",
        consistency_band: bool | None = None,
        limits: Literal["auto"] | tuple[float, float] = "auto",
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
        interval_kw: dict[str, Any] | None = None,
        consistency_kw: dict[str, Any] | None = None,
        reference_kw: dict[str, Any] | None = None,
        histogram_kw: dict[str, Any] | None = None,
        legend_kw: dict[str, Any] | None = None,
        fold_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the stored results.

        Parameters
        ----------
        ax : Axes or array of Axes, default=None
            Axes to draw on; None creates a figure.
        layout : {"overlay", "columns"}, default="overlay"
            Whether several models share the axes or are drawn side by side. In shared
            axes, the intervals are light bands, and up to four models have a separate
            histogram each.
        histogram : bool, default=True
            Whether the histogram of the scores is drawn below.
        split_histogram : bool, default=False
            Whether events are drawn upwards and non-events downwards.
        histogram_scale : {"auto", "linear", "log"}, default="auto"
            Scale of the number of samples. "auto" is logarithmic if most bars would be
            too small to be seen next to the largest.
        consistency_band : bool, default=None
            Whether the band around the diagonal is drawn; None draws it if a panel has
            a single curve.
        limits : "auto" or tuple of float, default="auto"
            Lowest and highest probability of both axes; "auto" means (0, 1), or a
            narrower range if more than half of (0, 1) would be empty.
        legend : bool, default=True
            Whether the legend lists bands and intervals. Names and errors are always
            shown.
        line_kw, interval_kw, consistency_kw, reference_kw, histogram_kw, legend_kw, fold_kw : dict, default=None
            Keyword arguments of the artists (`Axes.plot`, `Axes.errorbar` or
            `Axes.fill_between`, `Axes.fill_between`, `Axes.plot`, `Axes.stairs`,
            `legend`, and `Axes.plot` of the folds) that override the defaults.

        Returns
        -------
        display : ReliabilityDisplay
            The display, with the artists as attributes.

        Raises
        ------
        ValueError
            If an option is not one of those listed.
        """  # noqa: E501
        check_option(layout, "layout", ("overlay", "columns"))
        check_option(histogram_scale, "histogram_scale", ("auto", "linear", "log"))
        scale = histogram_scale
        if scale == "auto":
            scale = panel.histogram_scale_of(self.curves)
        in_columns = layout == "columns"
        if in_columns and any(curve.panel is not None for curve in self.curves):
            raise ValueError(
                'layout="columns" is for several models without groups or classes in'
                " panels."
            )
        models = list(dict.fromkeys(curve.model for curve in self.curves))
        # The name of the panel that each curve is drawn in, None for the only one.
        panel_names = []
        for curve in self.curves:
            panel_names.append(curve.model if in_columns else curve.panel)
        panels = list(dict.fromkeys(panel_names))
        n_in_axes = 1 if in_columns else len(models)  # models that share the axes
        strips = ()
        if histogram:
            strips = self._strip_heights(ax, n_in_axes, is_one_panel=panels == [None])
        frame = frame_of_panels(ax, len(panels), strips)

        # The styles of curves that an earlier display drew there are not used again.
        n_earlier = sum(line.get_gid() == CURVE for line in frame.axes[0].lines)
        is_alone = n_earlier + n_in_axes == 1
        styles = curve_styles(n_earlier + len(models), marked=True)[n_earlier:]
        style_of = dict(zip(models, styles, strict=True))
        limits = self._limits(limits)
        self.reference_lines_ = [
            panel.draw_reference(axes, limits, reference_kw) for axes in frame.axes
        ]
        self.lines_ = []
        self.fold_lines_ = []
        self.intervals_ = []
        self.consistency_bands_ = []
        self.histograms_ = []
        if consistency_band is None:
            consistency_band = is_alone
        for curve, panel_name in zip(self.curves, panel_names, strict=True):
            panel_number = panels.index(panel_name)
            axes = frame.axes[panel_number]
            style = {**style_of[curve.model], "label": panel.line_label(curve)}
            if consistency_band:
                band_color = None if is_alone else style["color"]
                self.consistency_bands_.append(
                    panel.draw_consistency(axes, curve, band_color, consistency_kw)
                )
            self._draw_curve(
                axes, curve, style, is_alone, line_kw, interval_kw, fold_kw
            )
            if strips:
                # One strip for each of the models that share the axes.
                strips_of_panel = frame.strips[panel_number]
                rank = models.index(curve.model) % len(strips_of_panel)
                self.histograms_ += panel.draw_histogram(
                    strips_of_panel[rank],
                    curve,
                    style,
                    split=split_histogram,
                    filled=is_alone or len(strips) > 1,
                    stairs_kw=histogram_kw,
                )
        self._name_ticks(frame, scale, has_one_strip=len(strips) == 1)
        self._finish(
            frame,
            panels,
            with_curves=len(panels) == 1 or (not is_alone and not in_columns),
            legend=legend,
            is_split=split_histogram,
            legend_kw=legend_kw,
        )
        return self

    def _draw_curve(self, axes, curve, style, is_alone, line_kw, interval_kw, fold_kw):
        """Draw a `ReliabilityCurve` with its intervals, and the lines of its folds if
        it was cross-validated. `is_alone` says whether the axes have no other curve.
        """
        color = style["color"]
        self.intervals_ += panel.draw_intervals(
            axes, curve, color, is_alone, interval_kw
        )
        self.fold_lines_ += panel.draw_folds(axes, curve, color, fold_kw)
        self.lines_.append(panel.draw_curve(axes, curve, style, line_kw))

    def _finish(self, frame, panels, *, with_curves, legend, is_split, legend_kw):
        """Write what stands around the curves: labels, titles or a caption, the legend,
        and statistics in the corners. `panels` are names, [None] for a single panel;
        `with_curves` says whether the legend has an entry for each curve.
        """
        is_one_diagram = panels == [None]
        caption = None
        if is_one_diagram and len(self.curves) == 1:
            caption = panel.caption(self.curves[0], self.error_name)
        titles = None
        if not is_one_diagram:
            titles = panel.panel_titles(self, frame, panels)
        x_label, y_label = panel.axis_labels(self, frame)
        finish(
            self,
            frame,
            self._keys(is_split),
            x_label,
            y_label,
            caption=caption,
            titles=titles,
            note=panel.note(self, panels),
            with_curves=with_curves,
            # A legend of several panels stands below a figure of our own; in given axes
            # there is no room for one.
            legend=legend and (is_one_diagram or frame.is_own),
            legend_kw=legend_kw,
        )
        if not is_one_diagram:
            self.ax_ = frame.axes
        # Statistics stand in the corners only if each panel has one curve.
        if len(panels) == len(self.curves):
            for axes, curve in zip(frame.axes, self.curves, strict=True):
                if curve.numbers:
                    add_numbers(axes, panel.numbers_texts(curve), frame)
        self.histogram_ax_ = None
        if is_one_diagram and len(frame.below) == 1:
            self.histogram_ax_ = frame.below[0]
        elif frame.below:
            self.histogram_ax_ = np.array(frame.below, dtype=object)

    def _limits(self, limits):
        """Return the range of both axes for the user's `limits`: a pair of
        probabilities, or "auto", which fits the curves.
        """
        if isinstance(limits, str) and limits == "auto":
            lows = [curve.limits[0] for curve in self.curves]
            highs = [curve.limits[1] for curve in self.curves]
            return readable_limits(min(lows), max(highs))
        is_pair = not isinstance(limits, str) and len(limits) == 2
        if not is_pair or not 0 <= limits[0] < limits[1] <= 1:
            raise ValueError(
                'limits must be "auto" or two increasing probabilities, found'
                f" {limits!r}."
            )
        return limits

    @staticmethod
    def _strip_heights(ax, n_models, *, is_one_panel):
        """Return the heights of the histograms below each panel, in units of its
        height. A single model has one histogram. Several models have low ones in a
        single panel, unless the models are too many or `ax` is too low.
        """
        if n_models == 1:
            return (_STRIP,)
        has_few_models = n_models <= _MOST_STRIPS
        if is_one_panel and has_few_models and has_room(ax, _HEIGHT_OF_STRIPS):
            return (_LOW_STRIP,) * n_models
        return ()

    @staticmethod
    def _name_ticks(frame, scale, *, has_one_strip):
        """Write numbers at the left and the lowest axes only, and label the histograms,
        whose scale is "linear" or "log".
        """
        for number, axes in enumerate(frame.axes):
            is_left = number % frame.n_columns == 0
            axes.tick_params(labelleft=is_left)
            for strip in frame.strips[number]:
                panel.name_histogram(
                    strip, scale, frame, is_one=has_one_strip, is_named=is_left
                )
                strip.tick_params(labelbottom=strip is frame.lowest[number])

    def _keys(self, is_split):
        """Return the artists that the legend explains once for all curves, by their
        text. `is_split` says whether histograms show events and non-events apart.
        """
        from matplotlib.patches import Patch

        level = level_words(self.confidence_level)
        interval = f"{level} interval"
        named = {
            "perfect calibration": self.reference_lines_,
            f"{level} consistency band": self.consistency_bands_,
            interval: self.intervals_,
            "one fold": self.fold_lines_,
        }
        keys = {label: artists[0] for label, artists in named.items() if artists}
        # The intervals of several curves may be bands, each in the colour of its curve:
        # a grey area stands for all of them. Error bars have no `get_facecolor`.
        is_band = hasattr(keys.get(interval), "get_facecolor")
        if len(self.curves) > 1 and is_band:
            keys[interval] = Patch(facecolor=neutral(0.3))
        if is_split and self.histograms_:
            # The first two artists are the events and the non-events of one histogram.
            events, non_events = self.histograms_[:2]
            event_name, non_event_name = _CLASS_NAMES[self.kind]
            keys[event_name] = events
            keys[non_event_name] = non_events
        return keys
