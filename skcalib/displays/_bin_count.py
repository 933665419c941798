"""How many bins: what theory guarantees for each number, and what they cost and gain on
data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import GridSearchCV, check_cv

from skcalib._cells.columns import resolve_multiclass
from skcalib._cells.reductions import binary_tasks
from skcalib._input.scalars import check_int, check_option
from skcalib._input.scored_labels import check_scored_labels
from skcalib._progress import Progress
from skcalib._verdicts import count_words, level_words, rounded
from skcalib.binning import UniqueScores
from skcalib.displays._finish import finish
from skcalib.displays._frames import pair_frame
from skcalib.displays._predictions import FromEstimator, named_models
from skcalib.displays._style import (
    count_axis,
    curve_styles,
    draw_curve,
    reference_style,
    styled,
)
from skcalib.displays._words import model_label, plural
from skcalib.guarantees import max_n_bins
from skcalib.guarantees._uniform_mass import uniform_mass_epsilon
from skcalib.model_selection import sharpest_within
from skcalib.recalibrators import HistogramBinning, ScalingBinning

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D


# Numbers of bins that are tried where the user gives none.
_USUAL_N_BINS = (2, 3, 5, 10, 15, 20, 30, 50, 75, 100)
# Mean number of rows of a test fold in a bin: few bins then have less than the two rows
# that debiasing takes.
_ROWS_PER_BIN = 5


class BinCountCurve(NamedTuple):
    """Results of one recalibrator or sample size for each number of bins.

    Parameters
    ----------
    name : str
        Name in the legend.
    n_bins : ndarray of int, shape (n_counts,)
        Numbers of bins.
    tolerance : ndarray of shape (n_counts,) or None
        Guaranteed tolerance.
    squared_error, squared_error_deviation : ndarray of shape (n_counts,) or None
        Mean over folds of the signed square of the debiased l2 error, and the standard
        error of this mean.
    sharpness, sharpness_deviation : ndarray of shape (n_counts,) or None
        Share of the variance of the labels that is explained by the event frequencies
        of the bins, as a mean over folds, and its standard error.
    chosen : int or None
        Number of bins to mark.
    """

    name: str
    n_bins: np.ndarray
    tolerance: np.ndarray | None = None
    squared_error: np.ndarray | None = None
    squared_error_deviation: np.ndarray | None = None
    sharpness: np.ndarray | None = None
    sharpness_deviation: np.ndarray | None = None
    chosen: int | None = None


class BinCountDisplay(FromEstimator):
    """Error, sharpness or guaranteed tolerance against the number of bins.

    `from_guarantee` draws the tolerance that uniform-mass binning guarantees before any
    data are seen, for several sample sizes, and the largest number of bins that meets a
    required tolerance. `from_predictions` and `from_estimator` recalibrate scores by
    cross-validation and draw calibration error and sharpness.

    Parameters
    ----------
    curves : list of BinCountCurve
        One curve for each sample size or recalibrator.
    limit : float, default=None
        The required tolerance or error.
    caption : str, default=None
        Text above the entries of the legend.

    Attributes
    ----------
    ax_ : Axes or ndarray of Axes
        The axes, or the two axes for error and sharpness.
    figure_ : Figure
        The figure.
    lines_ : list of Line2D
        The curves: tolerances, or the error and then the sharpness of each
        recalibrator.
    bands_ : list of PolyCollection
        Bands of one standard error on either side of the mean over folds, in the order
        of `lines_`.
    chosen_ : list of Line2D
        The markers of the chosen numbers of bins.
    limit_line_ : Line2D or None
        The required tolerance or error.
    legend_ : Legend or None
        The legend.

    See Also
    --------
    skcalib.guarantees.max_n_bins : The largest number of bins for a given tolerance.
    skcalib.model_selection.sharpest_within : The rule that chooses the number of bins
        from data.

    References
    ----------
    Gupta and Ramdas (2021), Distribution-free calibration guarantees for histogram
    binning without sample splitting, Figure 2. Kumar, Liang and Ma (2019), Verified
    uncertainty calibration, Figures 3 and 17.

    Examples
    --------
    >>> from skcalib.displays import BinCountDisplay
    >>> display = BinCountDisplay.from_guarantee([1_000, 20_000], epsilon=0.05)
    >>> [curve.chosen for curve in display.curves]
    [1, 17]
    """

    ax_: Any
    figure_: Figure
    lines_: list[Line2D]
    bands_: list[PolyCollection]
    chosen_: list[Line2D]
    limit_line_: Line2D | None
    legend_: Legend | None

    def __init__(
        self,
        curves: Sequence[BinCountCurve],
        *,
        limit: float | None = None,
        caption: str | None = None,
    ):
        self.curves = list(curves)
        self.limit = limit
        self.caption = caption

    @classmethod
    def from_guarantee(
        cls,
        n_samples: int | Sequence[int],
        *,
        epsilon: float | None = None,
        confidence_level: float = 0.9,
        kind: Literal["conditional", "marginal"] = "conditional",
        n_bins: ArrayLike | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the tolerance that uniform-mass binning guarantees.

        Parameters
        ----------
        n_samples : int or sequence of int
            Number of calibration samples.
        epsilon : float, default=None
            Required tolerance. The largest number of bins that meets it, if any, is
            marked.
        confidence_level : float, default=0.9
            Probability with which the guarantee holds, in (0, 1).
        kind : {"conditional", "marginal"}, default="conditional"
            Whether the guarantee is for all bins simultaneously ("conditional") or for
            the bin of a random sample ("marginal").
        n_bins : array-like of int, default=None
            Numbers of bins; None means 1 to 100, or up to twice the marked number.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : BinCountDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If no number of bins has at least two samples per bin, or an argument is out
            of range.
        """
        check_option(kind, "kind", ("conditional", "marginal"))
        curves = []
        for n in np.atleast_1d(n_samples).tolist():
            n = check_int(n, "n_samples")
            curves.append(_guaranteed_curve(n, kind, confidence_level, epsilon, n_bins))
        caption = f"{kind} guarantee, {level_words(confidence_level)} confidence"
        return cls(curves, limit=epsilon, caption=caption).plot(ax, **plot_options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | None = None,
        *,
        recalibrators: Any = None,
        n_bins: Sequence[int] | None = None,
        max_error: float | None = None,
        cv: Any = 5,
        multiclass: Literal["auto", "top_label", "marginal"] = "auto",
        pos_label: float | str | None = None,
        labels: ArrayLike | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        ax: Axes | np.ndarray | Sequence[Axes] | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw calibration error and sharpness against the number of bins.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_proba : array-like of shape (n,), (n, 2) or (n, K)
            Scores in [0, 1] of a model that was fitted to other data.
        recalibrators : recalibrator or dict of recalibrators by name, default=None
            Binned recalibrators for two classes; None means `HistogramBinning` and
            `ScalingBinning`.
        n_bins : sequence of int, default=None
            Numbers of bins; None means those from 2 to 100 for which each test fold has
            at least five samples per bin.
        max_error : float, default=None
            Largest acceptable l2 calibration error; of the numbers of bins that satisfy
            it, the one with the highest sharpness is marked (see `sharpest_within`).
        cv : int, cross-validation splitter or iterable, default=5
            Cross-validation folds; an int is the number of stratified folds.
        multiclass : {"auto", "top_label", "marginal"}, default="auto"
            See `calibration_error`; "marginal" averages over the classes, each taken
            against the rest.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        labels : array-like of shape (K,), default=None
            The sorted labels of the columns.
        n_jobs : int, default=None
            Number of parallel jobs. None means 1 unless a `joblib.parallel_config` says
            otherwise; -1 means all processors.
        verbose : bool, default=False
            Whether to write a line to standard error for each recalibrator, at most
            once every two seconds.
        ax : array of two Axes, or Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : BinCountDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If labels and scores differ in length or are empty, a label is unknown, a
            score is missing or outside [0, 1], or weights are negative or all zero.
            Also raised if a fold has fewer samples than bins.
        """
        if "sample_weight" in plot_options:
            raise TypeError(
                f"{cls.__name__} does not support sample_weight: its"
                " cross-validation treats all rows alike."
            )
        data = check_scored_labels(
            y_true, y_proba, multiclass=multiclass, pos_label=pos_label, labels=labels
        )
        tasks = list(binary_tasks(data, multiclass))
        n_rows = len(data.scores)
        splitter = check_cv(cv, tasks[0].labels, classifier=True)
        n_folds = splitter.get_n_splits(tasks[0].scores, tasks[0].labels)
        n_bins = _checked_n_bins(n_bins, n_rows, n_folds)
        if recalibrators is None:
            recalibrators = {
                "histogram binning": HistogramBinning(),
                "scaling-binning": ScalingBinning(),
            }
        name = None
        if not isinstance(recalibrators, dict):
            name = type(recalibrators).__name__
        models = named_models(recalibrators, name)
        # A generator: each curve is measured when the progress asks for it.
        measured = (
            _measured_curve(
                model, recalibrator, tasks, n_bins, splitter, max_error, n_jobs
            )
            for model, recalibrator in models.items()
        )
        progress = Progress("BinCountDisplay", verbose)
        curves = list(progress.over(measured, len(models), "recalibrators"))
        kind = resolve_multiclass(multiclass, data).replace("_", "-")
        caption = f"n = {count_words(n_rows)}, {kind} calibration"
        return cls(curves, limit=max_error, caption=caption).plot(ax, **plot_options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        recalibrators: Any = None,
        n_bins: Sequence[int] | None = None,
        max_error: float | None = None,
        cv: Any = 5,
        multiclass: Literal["auto", "top_label", "marginal"] = "auto",
        pos_label: float | str | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
        ax: Axes | np.ndarray | Sequence[Axes] | None = None,
        **plot_options: Any,
    ) -> Self:
        """Predict, cross-validate the numbers of bins and draw the curves.

        Parameters
        ----------
        estimator : classifier
            Fitted classifier with `predict_proba`.
        X : array-like of shape (n, n_features)
            Samples that were not used to fit the classifier.
        y : array-like of shape (n,)
            Labels.
        name : str, default=None
            Name of the model in the figure; None means the name of its class.
        recalibrators : recalibrator or dict of recalibrators by name, default=None
            Binned recalibrators for two classes; None means `HistogramBinning` and
            `ScalingBinning`.
        n_bins : sequence of int, default=None
            Numbers of bins; None means those from 2 to 100 for which each test fold has
            at least five samples per bin.
        max_error : float, default=None
            Largest acceptable l2 calibration error; of the numbers of bins that satisfy
            it, the one with the highest sharpness is marked (see `sharpest_within`).
        cv : int, cross-validation splitter or iterable, default=5
            Cross-validation folds; an int is the number of stratified folds.
        multiclass : {"auto", "top_label", "marginal"}, default="auto"
            See `calibration_error`; "marginal" averages over the classes, each taken
            against the rest.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        n_jobs : int, default=None
            Number of parallel jobs. None means 1 unless a `joblib.parallel_config` says
            otherwise; -1 means all processors.
        verbose : bool, default=False
            Whether to write a line to standard error for each recalibrator, at most
            once every two seconds.
        ax : array of two Axes, or Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : BinCountDisplay
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
            recalibrators=recalibrators,
            n_bins=n_bins,
            max_error=max_error,
            cv=cv,
            multiclass=multiclass,
            pos_label=pos_label,
            n_jobs=n_jobs,
            verbose=verbose,
            ax=ax,
            **plot_options,
        )

    def plot(
        self,
        ax: Axes | np.ndarray | Sequence[Axes] | None = None,
        *,
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
        band_kw: dict[str, Any] | None = None,
        chosen_kw: dict[str, Any] | None = None,
        limit_kw: dict[str, Any] | None = None,
        legend_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the stored results.

        Parameters
        ----------
        ax : Axes or array of Axes, default=None
            Axes to draw on; None creates a figure.
        legend : bool, default=True
            Whether to draw a legend.
        line_kw, band_kw, chosen_kw, limit_kw, legend_kw : dict, default=None
            Keyword arguments of the artists (`Axes.plot`, `Axes.fill_between`,
            `Axes.plot`, `Axes.axhline` and `legend`) that override the defaults.

        Returns
        -------
        display : BinCountDisplay
            The display, with the artists as attributes.
        """
        is_guarantee = self.curves[0].tolerance is not None
        # One panel for each quantity, by the label of its vertical axis.
        quantities = _GUARANTEED if is_guarantee else _MEASURED
        frame = pair_frame(ax, len(quantities))
        styles = curve_styles(len(self.curves), marked=not is_guarantee)
        self.lines_ = []
        self.bands_ = []
        self.chosen_ = []
        self.limit_line_ = None
        keys = {}  # artists that the legend explains, by their text
        if self.limit is not None:  # first, so that the axes reach up to it
            style = reference_style(limit_kw)
            self.limit_line_ = frame.axes[0].axhline(self.limit, **style)
            keys[f"wanted: at most {rounded(self.limit)}"] = self.limit_line_
        panels = zip(frame.axes, quantities.items(), strict=True)
        for axes, (label, get_values) in panels:
            for curve, style in zip(self.curves, styles, strict=True):
                values = get_values(curve)
                self._draw(axes, curve, values, style, line_kw, band_kw, chosen_kw)
            axes.set(ylabel=label, ylim=(0, min(1.0, axes.get_ylim()[1])))
            count_axis(axes)
        return finish(
            self,
            frame,
            keys,
            "Number of bins",
            next(iter(quantities)),
            legend=legend,
            with_curves=legend,
            note=self.caption if legend else None,
            legend_kw=legend_kw,
        )

    def _draw(self, ax, curve, values, style, line_kw, band_kw, chosen_kw):
        """Draw a quantity of a `BinCountCurve`, with a circle at the chosen number of
        bins. `values` holds one array (n_counts,), or three with the lower and upper
        limits; `style` has the keywords of the line, the others are the user's.
        """
        # What the legend says behind the name of the curve, if there is a limit.
        finding = None
        if self.limit is not None and curve.chosen is None:
            finding = "no number of bins"
        elif self.limit is not None:
            finding = f"{curve.chosen} {plural('bin', curve.chosen)}"
        style["label"] = model_label(curve.name, finding)
        draw_curve(self, ax, curve.n_bins, values, style, line_kw, band_kw)
        if curve.chosen is not None:
            circle = styled(
                chosen_kw,
                color=style["color"],
                marker="o",
                markersize=11,
                fillstyle="none",
                zorder=4,
                linestyle="none",
                markeredgewidth=1.8,
            )
            is_chosen = curve.n_bins == curve.chosen
            value = values[0][is_chosen]
            self.chosen_ += ax.plot(curve.n_bins[is_chosen], value, **circle)


# The next functions return the arrays that are drawn of a `BinCountCurve`: the line,
# and the limits of its band if it has one.


def _tolerance(curve):
    """Return the tolerance; beyond 1 there is no guarantee."""
    return [np.where(curve.tolerance <= 1, curve.tolerance, np.nan)]


def _error_with_limits(curve):
    """Return the calibration error for each number of bins, and its limits one standard
    error below and above, (3, n_counts). Squares are smoothed before the root: that of
    a single debiased square would zigzag between 0 and noise.
    """
    square = _smoothed(curve.squared_error)
    deviation = _smoothed(curve.squared_error_deviation)
    return np.sqrt(np.maximum([square, square - deviation, square + deviation], 0))


def _smoothed(values):
    """Return weighted means (n,) of each value and its neighbours: weights 1, 2, 1."""
    # The sum of the weights is 4, at both ends 3.
    weight = np.convolve(np.ones(len(values)), [1, 2, 1])[1:-1]
    return np.convolve(values, [1, 2, 1])[1:-1] / weight


def _sharpness_with_limits(curve):
    """Return the sharpness for each number of bins, and its limits one standard error
    below and above.
    """
    return [
        curve.sharpness,
        curve.sharpness - curve.sharpness_deviation,
        curve.sharpness + curve.sharpness_deviation,
    ]


# What the panels show: by the label of the vertical axis, the function that takes the
# values of a curve, and the limits of its band if it has one, from a `BinCountCurve`.
_GUARANTEED = {"Tolerance ε (probability)": _tolerance}
_MEASURED = {
    "Calibration error (l2)": _error_with_limits,
    "Sharpness (share of variance)": _sharpness_with_limits,
}


def _guaranteed_curve(n_samples, kind, confidence_level, epsilon, n_bins):
    """Return the `BinCountCurve` of the "conditional" or "marginal" tolerance that
    `n_samples` calibration samples guarantee, for each of `n_bins` (None: up to 200
    numbers from 1 on). `chosen` is the most bins whose tolerance is at most `epsilon`,
    or None.
    """
    fewest = 1
    if n_bins is not None:
        fewest = int(np.min(n_bins))
    if n_samples < 2 * fewest:
        raise ValueError(
            f"n_samples={n_samples} is too small for a guarantee with {fewest}"
            f" {plural('bin', fewest)}, which needs two rows in each bin."
        )
    options = {
        "confidence_level": confidence_level,
        "kind": kind,
        "keep_boundary": False,
    }
    chosen = None
    # With one bin the tolerance is smallest.
    if epsilon is not None and uniform_mass_epsilon(n_samples, 1, **options) <= epsilon:
        chosen = max_n_bins(n_samples, epsilon, **options)
    if n_bins is None:
        largest = 100
        if chosen is not None:
            largest = max(100, 2 * chosen)
        n_bins = np.geomspace(1, largest, 200).round()
    counts = np.unique(np.asarray(n_bins, dtype=np.int64))
    if chosen is not None:
        counts = np.union1d(counts, [chosen])
    counts = counts[2 * counts <= n_samples]  # a bin takes two rows
    tolerance = [
        uniform_mass_epsilon(n_samples, count, **options) for count in counts.tolist()
    ]
    return BinCountCurve(
        f"n = {count_words(n_samples)}",
        counts,
        tolerance=np.array(tolerance),
        chosen=chosen,
    )


def _checked_n_bins(n_bins, n_rows, n_folds):
    """Return the user's numbers of bins, sorted, or, for None, those of 2 to 100 that
    leave each test fold five rows per bin. Raise a ValueError if a number is below 1 or
    leaves fewer rows.
    """
    most = n_rows // (n_folds * _ROWS_PER_BIN)
    if n_bins is None:
        # At least the smallest usual number, for which the folds may be too small.
        fewest = _USUAL_N_BINS[0]
        n_bins = [count for count in _USUAL_N_BINS if count == fewest or count <= most]
    n_bins = np.unique(np.asarray(n_bins, dtype=np.int64))
    if n_bins[0] < 1 or n_bins[-1] > most:
        wrong = n_bins[0] if n_bins[0] < 1 else n_bins[-1]
        raise ValueError(
            f"n_bins must be from 1 to {most}, found {wrong}: with {n_rows} rows in"
            f" {n_folds} folds and more bins, each would hold fewer than"
            f" {_ROWS_PER_BIN} rows of a test fold."
        )
    return n_bins


def _measured_curve(name, recalibrator, tasks, n_bins, splitter, max_error, n_jobs):
    """Return the `BinCountCurve` of the cross-validated error and sharpness for each of
    `n_bins`, means over the binary `tasks`; `splitter` divides the rows into folds.
    `chosen` is the sharpest number whose error is at most `max_error`, or None.
    """
    # The rule has scorers for the squared calibration error and the Brier score. It
    # chooses only if there is a limit: without one any valid limit will do here.
    limit = 1.0 if max_error is None else max_error
    rule = sharpest_within(limit, binning=UniqueScores())
    scoring = {**rule.scoring, "variance": _label_variance}
    scores = _mean_test_scores(recalibrator, tasks, n_bins, scoring, splitter, n_jobs)
    # Each (n_counts, n_folds). Scorers of losses return them negated.
    square = -_by_fold(scores, "squared_calibration_error")
    brier = -_by_fold(scores, "objective")
    variance = _by_fold(scores, "variance")
    # Kumar et al. (2019): Brier score = variance of the labels - sharpness + squared
    # calibration error. Sharpness is drawn as a share of the variance.
    sharpness = (variance - brier + square) / variance.mean()
    square_deviation = _standard_error(square)
    chosen = None
    if max_error is not None:
        upper = square.mean(axis=1) + rule.n_standard_errors * square_deviation
        # The rule is asked only if some number of bins is within the limit: else it
        # would return the one with the smallest error.
        if (upper <= max_error**2).any():
            chosen = int(n_bins[rule(scores)])
    return BinCountCurve(
        name,
        n_bins,
        tolerance=None,
        squared_error=square.mean(axis=1),
        squared_error_deviation=square_deviation,
        sharpness=sharpness.mean(axis=1),
        sharpness_deviation=_standard_error(sharpness),
        chosen=chosen,
    )


def _mean_test_scores(recalibrator, tasks, n_bins, scoring, splitter, n_jobs):
    """Return test scores, (n_counts,) each, of a grid search over `n_bins`, as means
    over the tasks. They are named as in `cv_results_`; `scoring` holds the scorers by
    name.
    """
    parameter = "binning__n_bins"
    if "n_bins" in recalibrator.get_params():
        parameter = "n_bins"
    search = GridSearchCV(
        recalibrator,
        {parameter: n_bins.tolist()},
        scoring=scoring,
        refit=False,
        cv=splitter,
        n_jobs=n_jobs,
        error_score="raise",
    )
    results = [search.fit(task.scores, task.labels).cv_results_ for task in tasks]
    scores = {}
    for key in results[0]:
        if "_test_" in key:
            scores[key] = np.mean([result[key] for result in results], axis=0)
    return scores


def _standard_error(by_fold):
    """Return the standard error (n_counts,) of the mean over the folds of values
    (n_counts, n_folds).
    """
    return by_fold.std(axis=1, ddof=1) / np.sqrt(by_fold.shape[1])


def _by_fold(scores, name):
    """Return the test scores of the scorer `name` as an array (n_counts, n_folds), from
    columns of `cv_results_` such as ``split0_test_objective``.
    """
    columns = []
    for key, fold_scores in scores.items():
        if key.startswith("split") and key.endswith(f"_test_{name}"):
            columns.append(fold_scores)
    return np.column_stack(columns)


def _label_variance(estimator, X, y):
    """Return the variance of binary labels, with the signature of a scorer."""
    return float(y.mean() * (1 - y.mean()))
