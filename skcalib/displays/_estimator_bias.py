"""The bias of calibration errors by simulation: a heat map over bins and rows, and bias
against the number of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from skcalib._cells.reductions import binary_tasks
from skcalib._input.scalars import check_option
from skcalib._input.scored_labels import check_scored_labels
from skcalib._verdicts import count_words, fixed, percent_words
from skcalib.binning import EqualWidth
from skcalib.displays._finish import finish, fitting
from skcalib.displays._frames import pair_frame
from skcalib.displays._predictions import FromEstimator
from skcalib.displays._style import (
    count_axis,
    curve_styles,
    draw_curve,
    reference_style,
    styled,
)
from skcalib.displays._words import matplotlib_text
from skcalib.metrics import calibration_error
from skcalib.simulation import (
    CalibrationModel,
    fit_calibration_curve,
    fit_score_distribution,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection, QuadMesh
    from matplotlib.colorbar import Colorbar
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D
    from matplotlib.text import Text


_BIAS = "Bias (percentage points)"
_WIDTH_OF_NUMBER = 2.6  # of "-4.8", in units of the font size
_N_SAMPLES = (200, 400, 800, 1600, 3200, 6400)
_N_BINS = (2, 4, 8, 16, 32, 64)


class EstimatorBiasDisplay(FromEstimator):
    """Bias of estimated calibration errors, by estimator and sample size.

    `from_model` simulates a `CalibrationModel`, whose true error is known;
    `from_predictions` and `from_estimator` first fit such a model to scores and labels.

    Parameters
    ----------
    bias, standard_error : ndarray of shape (n_estimators, n_sizes)
        Bias and its Monte Carlo standard error.
    n_samples : sequence of int, shape (n_sizes,)
        Sample sizes.
    estimators : sequence of str or int, shape (n_estimators,)
        Names of the estimators, or numbers of bins.
    true_error : float
        True value of the estimated error.
    n_simulations : int
        Number of simulated data sets of each size.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure.
    mesh_ : QuadMesh or None
        The heat map.
    texts_ : list of Text
        The values in the cells of the heat map.
    colorbar_ : Colorbar or None
        The colour scale of the heat map.
    lines_ : list of Line2D
        Bias against the number of samples, with one line per estimator.
    bands_ : list of PolyCollection
        Bands of two standard errors on either side of the lines.
    legend_ : Legend or None
        The legend of the lines.

    See Also
    --------
    skcalib.simulation.CalibrationModel : The simulated model.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer (2022), Mitigating bias in calibration error
    estimation, Figure 4.

    Examples
    --------
    >>> from scipy import stats
    >>> from skcalib.displays import EstimatorBiasDisplay
    >>> from skcalib.simulation import CalibrationModel, PowerCurve
    >>> model = CalibrationModel(stats.uniform(), PowerCurve(2))
    >>> display = EstimatorBiasDisplay.from_model(
    ...     model, n_bins=[2, 64], n_samples=[200], n_simulations=20, random_state=0
    ... )
    >>> [
    ...     bool(bias > 0) for bias in display.bias[:, 0]
    ... ]  # two bins hide errors, many find noise
    [False, True]
    """

    ax_: Axes
    figure_: Figure
    mesh_: QuadMesh | None
    texts_: list[Text]
    colorbar_: Colorbar | None
    lines_: list[Line2D]
    bands_: list[PolyCollection]
    legend_: Legend | None

    def __init__(
        self,
        bias: np.ndarray,
        standard_error: np.ndarray,
        *,
        n_samples: Sequence[int],
        estimators: Sequence[str | int],
        true_error: float,
        n_simulations: int,
    ):
        self.bias = np.asarray(bias, dtype=np.float64)
        self.standard_error = np.asarray(standard_error, dtype=np.float64)
        self.n_samples = list(n_samples)
        self.estimators = list(estimators)
        self.true_error = true_error
        self.n_simulations = n_simulations

    @classmethod
    def from_model(
        cls,
        model: CalibrationModel,
        *,
        metrics: Mapping[Any, Callable[..., float]] | None = None,
        n_bins: Sequence[int] = _N_BINS,
        n_samples: Sequence[int] = _N_SAMPLES,
        n_simulations: int = 200,
        norm: float = 2,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Simulate the bias for a model with a known error, and draw it.

        Parameters
        ----------
        model : CalibrationModel
            Distribution of scores and calibration curve.
        metrics : dict of callables by name, default=None
            Functions ``metric(y_true, y_proba)`` that estimate the error with this
            `norm`. None means the plugin error with equal-width bins, for each of
            `n_bins`.
        n_bins : sequence of int, default=(2, 4, 8, 16, 32, 64)
            Numbers of bins, if `metrics` is None.
        n_samples : sequence of int, default=(200, 400, 800, 1600, 3200, 6400)
            Sample sizes.
        n_simulations : int, default=200
            Number of simulated data sets of each size. The default is small because
            each cell of the figure requires this many simulations.
        norm : float, default=2
            Norm of the error; the default is that of `calibration_error`.
        n_jobs : int, default=None
            Number of parallel jobs. None means 1 unless a `joblib.parallel_config` says
            otherwise; -1 means all processors.
        random_state : int, RandomState or None, default=None
            Seed for the random draws.
        verbose : bool, default=False
            Whether to write progress to standard error.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : EstimatorBiasDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If an argument is out of range.
        """
        if metrics is None:
            metrics = {}
            for count in map(int, n_bins):
                metrics[count] = partial(
                    calibration_error,
                    norm=norm,
                    method="plugin",
                    binning=EqualWidth(count),
                    labels=[False, True],
                )
        # (n_estimators, n_sizes)
        bias = np.empty((len(metrics), len(n_samples)))
        standard_error = np.empty_like(bias)
        for column, n in enumerate(n_samples):
            simulated = model.estimator_bias(
                metrics,
                int(n),
                n_simulations,
                norm=norm,
                n_jobs=n_jobs,
                random_state=random_state,
                verbose=verbose,
            )
            for row, name in enumerate(metrics):
                bias[row, column] = simulated[name].bias
                standard_error[row, column] = simulated[name].standard_error
        display = cls(
            bias,
            standard_error,
            n_samples=n_samples,
            estimators=metrics,
            true_error=model.true_calibration_error(norm),
            n_simulations=n_simulations,
        )
        return display.plot(ax, **plot_options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | None = None,
        *,
        multiclass: Literal["auto", "top_label"] = "auto",
        pos_label: float | str | None = None,
        labels: ArrayLike | None = None,
        metrics: Mapping[Any, Callable[..., float]] | None = None,
        n_bins: Sequence[int] = _N_BINS,
        n_samples: Sequence[int] = _N_SAMPLES,
        n_simulations: int = 200,
        norm: float = 2,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Simulate and draw the bias for a model fitted to scores and labels.

        A beta distribution is fitted to the scores. The calibration curve is the one
        that fits the labels best among those proposed by Roelofs et al.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_proba : array-like of shape (n,), (n, 2) or (n, K)
            Probabilities in [0, 1].
        multiclass : {"auto", "top_label"}, default="auto"
            See `calibration_error`.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        labels : array-like of shape (K,), default=None
            The sorted labels of the columns.
        metrics : dict of callables by name, default=None
            Functions ``metric(y_true, y_proba)`` that estimate the error with this
            `norm`. None means the plugin error with equal-width bins, for each of
            `n_bins`.
        n_bins : sequence of int, default=(2, 4, 8, 16, 32, 64)
            Numbers of bins, if `metrics` is None.
        n_samples : sequence of int, default=(200, 400, 800, 1600, 3200, 6400)
            Sample sizes.
        n_simulations : int, default=200
            Number of simulated data sets of each size. The default is small because
            each cell of the figure requires this many simulations.
        norm : float, default=2
            Norm of the error; the default is that of `calibration_error`.
        n_jobs : int, default=None
            Number of parallel jobs. None means 1 unless a `joblib.parallel_config` says
            otherwise; -1 means all processors.
        random_state : int, RandomState or None, default=None
            Seed for the random draws.
        verbose : bool, default=False
            Whether to write progress to standard error.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : EstimatorBiasDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If labels and scores differ in length or are empty, a label is unknown, a
            score is missing or outside [0, 1], or weights are negative or all zero.
            Also raised if such a model cannot be fitted to the scores.
        """
        if "sample_weight" in plot_options:
            raise TypeError(
                f"{cls.__name__} does not support sample_weight: the simulated rows"
                " have no weights."
            )
        if multiclass not in ("auto", "top_label"):
            raise ValueError(
                f"multiclass must be 'auto' or 'top_label', found {multiclass!r}: this"
                " display is for one event."
            )
        data = check_scored_labels(
            y_true, y_proba, multiclass=multiclass, pos_label=pos_label, labels=labels
        )
        task = next(binary_tasks(data, multiclass))
        curve = fit_calibration_curve(task.scores, task.labels).curve
        return cls.from_model(
            CalibrationModel(fit_score_distribution(task.scores), curve),
            metrics=metrics,
            n_bins=n_bins,
            n_samples=n_samples,
            n_simulations=n_simulations,
            norm=norm,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            ax=ax,
            **plot_options,
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        multiclass: Literal["auto", "top_label"] = "auto",
        pos_label: float | str | None = None,
        metrics: Mapping[Any, Callable[..., float]] | None = None,
        n_bins: Sequence[int] = _N_BINS,
        n_samples: Sequence[int] = _N_SAMPLES,
        n_simulations: int = 200,
        norm: float = 2,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Predict, then simulate and draw the bias for a model fitted to the scores.

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
        multiclass : {"auto", "top_label"}, default="auto"
            See `calibration_error`.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        metrics : dict of callables by name, default=None
            Functions ``metric(y_true, y_proba)`` that estimate the error with this
            `norm`. None means the plugin error with equal-width bins, for each of
            `n_bins`.
        n_bins : sequence of int, default=(2, 4, 8, 16, 32, 64)
            Numbers of bins, if `metrics` is None.
        n_samples : sequence of int, default=(200, 400, 800, 1600, 3200, 6400)
            Sample sizes.
        n_simulations : int, default=200
            Number of simulated data sets of each size. The default is small because
            each cell of the figure requires this many simulations.
        norm : float, default=2
            Norm of the error; the default is that of `calibration_error`.
        n_jobs : int, default=None
            Number of parallel jobs. None means 1 unless a `joblib.parallel_config` says
            otherwise; -1 means all processors.
        random_state : int, RandomState or None, default=None
            Seed for the random draws.
        verbose : bool, default=False
            Whether to write progress to standard error.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : EstimatorBiasDisplay
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
            multiclass=multiclass,
            pos_label=pos_label,
            metrics=metrics,
            n_bins=n_bins,
            n_samples=n_samples,
            n_simulations=n_simulations,
            norm=norm,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            ax=ax,
            **plot_options,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: Literal["heatmap", "lines"] = "heatmap",
        legend: bool = True,
        mesh_kw: dict[str, Any] | None = None,
        text_kw: dict[str, Any] | None = None,
        line_kw: dict[str, Any] | None = None,
        band_kw: dict[str, Any] | None = None,
        legend_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the stored results.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        kind : {"heatmap", "lines"}, default="heatmap"
            Whether to draw a cell for each estimator and number of samples, or a line
            for each estimator.
        legend : bool, default=True
            Whether to draw a legend for the lines.
        mesh_kw, text_kw, line_kw, band_kw, legend_kw : dict, default=None
            Keyword arguments of the artists (`Axes.pcolormesh`, `Axes.text`,
            `Axes.plot`, `Axes.fill_between` and `legend`) that override the defaults.

        Returns
        -------
        display : EstimatorBiasDisplay
            The display, with the artists as attributes.
        """
        check_option(kind, "kind", ("heatmap", "lines"))
        frame = pair_frame(ax)
        self.mesh_ = None
        self.texts_ = []
        self.colorbar_ = None
        self.lines_ = []
        self.bands_ = []
        short_note = f"true error {percent_words(self.true_error)}"
        note = f"{short_note}, {count_words(self.n_simulations)} simulations"
        if kind == "heatmap":
            # Estimators without a name of their own are numbers of bins.
            are_bins = all(isinstance(name, int) for name in self.estimators)
            self._draw_heatmap(frame, are_bins, mesh_kw, text_kw or {})
            titles = [fitting([note, short_note], frame)]
            y_label = "Number of bins" if are_bins else ""
            return finish(self, frame, {}, "Number of samples", y_label, titles=titles)
        (axes,) = frame.axes
        styles = curve_styles(len(self.estimators), marked=True)
        for row, (name, style) in enumerate(zip(self.estimators, styles, strict=True)):
            if isinstance(name, int):
                style["label"] = f"{name} bins"
            else:
                style["label"] = matplotlib_text(name)
            points = 100 * self.bias[row]  # percentage points
            error = 2 * 100 * self.standard_error[row]  # two standard errors
            values = [points, points - error, points + error]
            draw_curve(self, axes, self.n_samples, values, style, line_kw, band_kw)
        axes.axhline(0, **reference_style())
        count_axis(axes)
        return finish(
            self,
            frame,
            {},
            "Number of samples",
            _BIAS,
            note=note if legend else None,
            with_curves=legend,
            legend_kw=legend_kw,
        )

    def _draw_heatmap(self, frame, are_bins, mesh_kw, text_kw):
        """Draw the bias as colours with numbers: a row for each estimator, a column for
        each sample size. `are_bins` says whether the estimators are numbers of bins.
        """
        from matplotlib.ticker import EngFormatter

        (axes,) = frame.axes
        points = 100 * self.bias
        # The ends of the colour scale, -largest and largest, must differ even if all
        # biases are 0.
        largest = max(np.abs(points).max(), 1e-9)
        self.mesh_ = axes.pcolormesh(
            points, **styled(mesh_kw, cmap="PuOr_r", vmin=-largest, vmax=largest)
        )
        self.colorbar_ = axes.figure.colorbar(self.mesh_, ax=axes)
        self.colorbar_.set_label(_BIAS, size=frame.size)
        self.colorbar_.ax.tick_params(labelsize=0.9 * frame.size)
        # The largest size of text (points) with which a number fits its cell; the mesh
        # takes about .7 of the width.
        cell_width = 72 * 0.7 * frame.width / points.shape[1]
        largest_size = cell_width / _WIDTH_OF_NUMBER
        for (row, column), value in np.ndenumerate(points):
            # The luminance of the cell's colour, with the weights of ITU-R BT.601.
            rgb = self.mesh_.to_rgba(value)[:3]
            luminance = rgb @ np.array([0.299, 0.587, 0.114])
            style = {
                "ha": "center",
                "va": "center",
                "size": min(frame.size, largest_size),
                "color": "white" if luminance < 0.5 else "black",
                **text_kw,
            }
            text = axes.text(column + 0.5, row + 0.5, fixed(value, 1), **style)
            self.texts_.append(text)
        axes.set_xticks(
            np.arange(len(self.n_samples)) + 0.5,
            map(EngFormatter(sep=""), self.n_samples),
        )
        names = [matplotlib_text(str(name)) for name in self.estimators]
        axes.set_yticks(np.arange(len(names)) + 0.5, names)
        if not are_bins:
            axes.invert_yaxis()  # names are read from the top
