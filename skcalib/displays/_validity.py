"""Validity curves: how much of a forecast is within a tolerance of the truth, and what
theory guarantees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from skcalib._cells.reductions import binary_tasks
from skcalib._input.scalars import check_number, check_option
from skcalib._input.scored_labels import check_scored_labels
from skcalib._input.sklearn_private import num_samples
from skcalib._input.warn import warn
from skcalib._verdicts import count_words, percent_words, rounded
from skcalib.displays._finish import finish
from skcalib.displays._frames import pair_frame
from skcalib.displays._predictions import FromEstimator, named_models
from skcalib.displays._style import curve_styles, draw_curve, reference_style
from skcalib.displays._words import matplotlib_text
from skcalib.guarantees._uniform_mass import uniform_mass_epsilon
from skcalib.metrics import validity_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D

    from skcalib.binning import BaseBinning


# distinct scores that are never too many
_FEWEST_DISTINCT = 20
_KINDS = ("marginal", "conditional")
_TITLES = {
    "marginal": ("Share of the samples within ε"),
    "conditional": "All bins within ε",
}
# confidence levels at which the guarantee is drawn
_LEVELS = np.linspace(0, 1, 402)[1:-1]


class ValidityCurve(NamedTuple):
    """One curve of a validity plot.

    Parameters
    ----------
    model : str
        Name of the model.
    kind : {"marginal", "conditional"}
        Share of the samples within the tolerance, or share of the repeats in which
        every bin is within it.
    epsilons, validity, standard_error : ndarray of shape (n_epsilons,)
        Tolerances, validity, and the standard error of its mean over repeats, which is
        0 for a single repeat.
    n_rows : float
        Number of rows in each data set.
    n_repeats : int
        Number of data sets.
    """

    model: str
    kind: str
    epsilons: np.ndarray
    validity: np.ndarray
    standard_error: np.ndarray
    n_rows: float
    n_repeats: int


class ValidityDisplay(FromEstimator):
    """Validity plot: share of samples whose prediction is within each tolerance.

    It is intended for binned models, whose predictions take few distinct values. Create
    the display with `from_estimator`, `from_predictions`, or `from_repeats` for means
    over repeated experiments.

    Parameters
    ----------
    curves : list of ValidityCurve
        One curve for each model and kind.
    guarantees : dict, default=None
        Points (epsilons, confidence levels) of the theoretical curve, by kind.
    guarantee_label : str, default="guarantee"
        Name of the theoretical curve in the legend.

    Attributes
    ----------
    ax_ : Axes or ndarray of Axes
        The axes, one for each kind.
    figure_ : Figure
        The figure.
    lines_ : list of Line2D
        The curves, in the order of `curves`.
    bands_ : list of PolyCollection
        Bands of one standard error on either side of the mean, for means over repeats.
    guarantee_lines_ : list of Line2D
        The theoretical curves, one per panel.
    epsilon_lines_ : list of Line2D
        The lines that mark the tolerance, one per panel, if one is given.
    legend_ : Legend or None
        The legend.

    See Also
    --------
    skcalib.metrics.validity_curve : The validity curve without a plot.
    skcalib.guarantees.conditional_epsilon : The guaranteed tolerance.

    References
    ----------
    Gupta and Ramdas (2021), Distribution-free calibration guarantees for histogram
    binning without sample splitting, Figures 1 and 3 to 6.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.displays import ValidityDisplay
    >>> y_proba = np.repeat([0.2, 0.8], [90, 10])
    >>> y_true = np.concatenate((np.arange(90) < 27, np.arange(10) < 6))
    >>> display = ValidityDisplay.from_predictions(y_true, y_proba)
    >>> (
    ...     display.curves[0].epsilons.round(6).tolist(),
    ...     display.curves[0].validity.tolist(),
    ... )
    ([0.0, 0.1, 0.2], [0.0, 0.9, 1.0])
    """

    ax_: Any
    figure_: Figure
    lines_: list[Line2D]
    bands_: list[PolyCollection]
    guarantee_lines_: list[Line2D]
    epsilon_lines_: list[Line2D]
    legend_: Legend | None

    def __init__(
        self,
        curves: Sequence[ValidityCurve],
        *,
        guarantees: Mapping[str, tuple[np.ndarray, np.ndarray]] | None = None,
        guarantee_label: str = "guarantee",
    ):
        self.curves = list(curves)
        self.guarantees = guarantees or {}
        self.guarantee_label = guarantee_label

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | Mapping[str, ArrayLike],
        *,
        kind: Literal["marginal", "conditional", "both"] = "marginal",
        name: str | None = None,
        epsilons: ArrayLike | None = None,
        n_samples: int | None = None,
        n_bins: int | None = None,
        binning: BaseBinning | int | None = None,
        multiclass: Literal["auto", "top_label"] = "auto",
        pos_label: float | str | None = None,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        ax: Axes | np.ndarray | Sequence[Axes] | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the exact validity curves of one data set.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_proba : array-like of shape (n,), (n, 2) or (n, K), or dict of arrays
            Probabilities in [0, 1], or a dict that maps model names to probabilities,
            to draw several models.
        kind : {"marginal", "conditional", "both"}, default="marginal"
            "marginal" is the share of the samples within the tolerance, "conditional"
            shows whether every bin is within it, and "both" draws one panel for each.
        name : str, default=None
            Name of the model in the legend.
        epsilons : array-like, default=None
            Tolerances in increasing order; None means a grid from 0 to 0.2, or the
            exact steps of the curve for a single repeat.
        n_samples, n_bins : int, default=None
            Numbers of calibration samples and bins in uniform-mass binning, whose
            guarantee is then also drawn.
        binning : BaseBinning, int or None, default=None
            Bins in which predictions are compared with events; None means
            `UniqueScores`.
        multiclass : {"auto", "top_label"}, default="auto"
            See `calibration_error`.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        labels : array-like of shape (K,), default=None
            The sorted labels of the columns.
        sample_weight : array-like of shape (n,), default=None
            Frequency weights: a sample with weight 2 counts twice. Weights are
            supported only for a single repeat.
        ax : Axes or array of Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : ValidityDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If labels and scores differ in length or are empty, a label is unknown, a
            score is missing or outside [0, 1], or weights are negative or all zero.
        """
        samples = {}
        for model, proba in named_models(y_proba, name).items():
            samples[model] = [(y_true, proba)]
        return cls.from_repeats(
            samples,
            kind=kind,
            epsilons=epsilons,
            n_samples=n_samples,
            n_bins=n_bins,
            binning=binning,
            multiclass=multiclass,
            pos_label=pos_label,
            labels=labels,
            sample_weight=sample_weight,
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
        kind: Literal["marginal", "conditional", "both"] = "marginal",
        epsilons: ArrayLike | None = None,
        n_samples: int | None = None,
        n_bins: int | None = None,
        binning: BaseBinning | int | None = None,
        multiclass: Literal["auto", "top_label"] = "auto",
        pos_label: float | str | None = None,
        sample_weight: ArrayLike | None = None,
        ax: Axes | np.ndarray | Sequence[Axes] | None = None,
        **plot_options: Any,
    ) -> Self:
        """Predict, and draw the exact validity curves.

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
        kind : {"marginal", "conditional", "both"}, default="marginal"
            "marginal" is the share of the samples within the tolerance, "conditional"
            shows whether every bin is within it, and "both" draws one panel for each.
        epsilons : array-like, default=None
            Tolerances in increasing order; None means a grid from 0 to 0.2, or the
            exact steps of the curve for a single repeat.
        n_samples, n_bins : int, default=None
            Numbers of calibration samples and bins in uniform-mass binning, whose
            guarantee is then also drawn.
        binning : BaseBinning, int or None, default=None
            Bins in which predictions are compared with events; None means
            `UniqueScores`.
        multiclass : {"auto", "top_label"}, default="auto"
            See `calibration_error`.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        sample_weight : array-like of shape (n,), default=None
            Frequency weights: a sample with weight 2 counts twice. Weights are
            supported only for a single repeat.
        ax : Axes or array of Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : ValidityDisplay
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
            kind=kind,
            epsilons=epsilons,
            n_samples=n_samples,
            n_bins=n_bins,
            binning=binning,
            multiclass=multiclass,
            pos_label=pos_label,
            sample_weight=sample_weight,
            ax=ax,
            **plot_options,
        )

    @classmethod
    def from_repeats(
        cls,
        samples: Sequence[tuple[ArrayLike, ArrayLike]]
        | Mapping[str, Sequence[tuple[ArrayLike, ArrayLike]]],
        *,
        kind: Literal["marginal", "conditional", "both"] = "marginal",
        epsilons: ArrayLike | None = None,
        n_samples: int | None = None,
        n_bins: int | None = None,
        name: str | None = None,
        binning: BaseBinning | int | None = None,
        multiclass: Literal["auto", "top_label"] = "auto",
        pos_label: float | str | None = None,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        ax: Axes | np.ndarray | Sequence[Axes] | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw mean validity curves over repeated experiments.

        Parameters
        ----------
        samples : list of (y_true, y_proba), or dict of such lists
            Labels and probabilities of each repeat, or a dict that maps model names to
            such lists, to draw several models.
        kind : {"marginal", "conditional", "both"}, default="marginal"
            "marginal" is the mean share of the samples within the tolerance,
            "conditional" is the share of the repeats in which every bin is within it,
            and "both" draws one panel for each.
        epsilons : array-like, default=None
            Tolerances in increasing order; None means a grid from 0 to 0.2, or the
            exact steps of the curve for a single repeat.
        n_samples, n_bins : int, default=None
            Numbers of calibration samples and bins in uniform-mass binning, whose
            guarantee is then also drawn.
        name : str, default=None
            Name of the model in the legend.
        binning : BaseBinning, int or None, default=None
            Bins in which predictions are compared with events; None means
            `UniqueScores`.
        multiclass : {"auto", "top_label"}, default="auto"
            See `calibration_error`.
        pos_label : int, float, bool or str, default=None
            Label of the event. None means the greater of the two labels, which
            corresponds to the second column of `predict_proba`.
        labels : array-like of shape (K,), default=None
            The sorted labels of the columns.
        sample_weight : array-like of shape (n,), default=None
            Frequency weights: a sample with weight 2 counts twice. Weights are
            supported only for a single repeat.
        ax : Axes or array of Axes, default=None
            Axes to draw on; None creates a figure.
        **plot_options : dict
            Options of `plot`.

        Returns
        -------
        display : ValidityDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If labels and scores differ in length or are empty, a label is unknown, a
            score is missing or outside [0, 1], or weights are negative or all zero.
        """
        check_option(kind, "kind", (*_KINDS, "both"))
        if (n_samples is None) != (n_bins is None):
            raise ValueError(
                "n_samples and n_bins must be given together: the guarantee depends on"
                " both."
            )
        kinds = _KINDS if kind == "both" else (kind,)
        options = {
            "binning": binning,
            "multiclass": multiclass,
            "pos_label": pos_label,
            "labels": labels,
            "sample_weight": sample_weight,
        }
        curves = []
        guarantees = {}
        for panel_kind in kinds:
            for model, repeats in named_models(samples, name).items():
                curves.append(_curve(model, repeats, panel_kind, epsilons, options))
            if n_samples is not None:
                guarantees[panel_kind] = _guarantee(n_samples, n_bins, panel_kind)
        guarantee_label = "guarantee"
        if n_samples is not None:
            guarantee_label += f", {count_words(n_samples)} samples in {n_bins} bins"
        display = cls(curves, guarantees=guarantees, guarantee_label=guarantee_label)
        return display.plot(ax, **plot_options)

    def plot(
        self,
        ax: Axes | np.ndarray | Sequence[Axes] | None = None,
        *,
        epsilon: float | None = None,
        max_epsilon: float | None = None,
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
        band_kw: dict[str, Any] | None = None,
        guarantee_kw: dict[str, Any] | None = None,
        epsilon_kw: dict[str, Any] | None = None,
        legend_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the stored curves.

        Parameters
        ----------
        ax : Axes or array of Axes, default=None
            Axes to draw on; None creates a figure.
        epsilon : float, default=None
            A tolerance to mark. The legend then shows the share within this tolerance
            for each curve.
        max_epsilon : float, default=None
            Largest tolerance shown; None means the tolerance at which all curves have
            reached 1.
        legend : bool, default=True
            Whether to draw a legend.
        line_kw, band_kw, guarantee_kw, epsilon_kw, legend_kw : dict, default=None
            Keyword arguments of the artists (`Axes.plot`, `Axes.fill_between`,
            `Axes.plot`, `Axes.axvline` and `legend`) that override the defaults.

        Returns
        -------
        display : ValidityDisplay
            The display, with the artists as attributes.

        Raises
        ------
        ValueError
            If `epsilon` is not a tolerance between 0 and 1.
        """
        if epsilon is not None:
            check_number(epsilon, "epsilon", at_least=0, at_most=1)
        kinds = list(dict.fromkeys(curve.kind for curve in self.curves))
        models = list(dict.fromkeys(curve.model for curve in self.curves))
        frame = pair_frame(ax, len(kinds))
        styles = curve_styles(len(models))
        self.lines_ = []
        self.bands_ = []
        self.guarantee_lines_ = []
        self.epsilon_lines_ = []
        if max_epsilon is None:
            max_epsilon = self._max_epsilon(epsilon)
        for curve in self.curves:
            axes = frame.axes[kinds.index(curve.kind)]
            style = dict(styles[models.index(curve.model)])
            style["label"] = _label(curve, epsilon)
            self._draw(axes, curve, style, max_epsilon, line_kw, band_kw)
        for kind, axes in zip(kinds, frame.axes, strict=True):
            axes.set(xlim=(0, max_epsilon), ylim=(-0.02, 1.02))
            if kind in self.guarantees:
                style = reference_style(
                    guarantee_kw, linewidth=1.5, label=self.guarantee_label
                )
                self.guarantee_lines_ += axes.plot(*self.guarantees[kind], **style)
            if epsilon is not None:
                style = reference_style(
                    epsilon_kw,
                    linestyle=(0, (4, 2)),
                    label=f"tolerance {rounded(epsilon)}",
                )
                self.epsilon_lines_.append(axes.axvline(epsilon, **style))
        explained = [*self.guarantee_lines_, *self.epsilon_lines_]
        keys = {line.get_label(): line for line in explained}
        # One panel says on its axis what it shows, several in their titles.
        y_label = "Validity"
        titles = [_TITLES[kind] for kind in kinds]
        if len(kinds) == 1:
            (y_label,) = titles
            titles = None
        return finish(
            self,
            frame,
            keys,
            "Tolerance ε (probability)",
            y_label,
            titles=titles,
            with_curves=legend,
            legend=legend,
            legend_kw=legend_kw,
        )

    def _draw(self, ax, curve, style, right, line_kw, band_kw):
        """Draw a `ValidityCurve`, to the tolerance `right`: the mean over several data
        sets with a band of one standard error, or the steps of a single one.
        """
        epsilons = curve.epsilons
        if curve.n_repeats > 1:
            low = np.clip(curve.validity - curve.standard_error, 0, 1)
            high = np.clip(curve.validity + curve.standard_error, 0, 1)
            values = [curve.validity, low, high]
        else:
            # The last step is extended to the border.
            style["drawstyle"] = "steps-post"
            epsilons = np.append(epsilons, max(1.0, right))
            values = [np.append(curve.validity, curve.validity[-1])]
        draw_curve(self, ax, epsilons, values, style, line_kw, band_kw)

    def _max_epsilon(self, epsilon):
        """Return the right end of the axes, a little beyond `epsilon` and where the
        curves reach their highest value.
        """
        ends = [0.02]
        if epsilon is not None:
            ends.append(epsilon)
        for curve in self.curves:
            reached = np.argmax(curve.validity >= curve.validity[-1])
            ends.append(curve.epsilons[reached])
        return min(1.0, 1.15 * max(ends))


def _label(curve, epsilon):
    """Return the entry of a curve in the legend, with its validity at `epsilon` if that
    is given.
    """
    words = f"n = {count_words(curve.n_rows)}"
    if curve.n_repeats > 1:
        words += f", {curve.n_repeats} repeats"
    if epsilon is not None:
        # The curve is a step function: its value is that at the last of its tolerances
        # up to `epsilon`, and 0 below the first one.
        last = np.searchsorted(curve.epsilons, epsilon, side="right") - 1
        within = 0.0
        if last >= 0:
            within = curve.validity[last]
        words += f": {percent_words(within, curve.n_rows)} within {rounded(epsilon)}"
    if curve.model is None:
        return words
    return f"{matplotlib_text(curve.model)}, {words}"


def _curve(model, repeats, kind, epsilons, options):
    """Return the `ValidityCurve` of one model, of the `kind` "marginal" or
    "conditional": of one of the `repeats` (pairs of labels and scores), or their mean
    with its standard error, at the tolerances `epsilons` (None: where a curve has its
    steps).
    """
    repeats = list(repeats)
    if not repeats:
        raise ValueError("samples is empty: a curve needs at least one repeat.")
    if options["binning"] is None:
        _warn_of_distinct_scores(*repeats[0], options)
    if len(repeats) > 1:
        if options["sample_weight"] is not None:
            raise ValueError("sample_weight is for a single repeat.")
        if epsilons is None:
            # Curves with steps at different tolerances cannot be averaged.
            epsilons = np.linspace(0, 0.2, 201)
    curves = []
    for y_true, y_proba in repeats:
        epsilons, validity = validity_curve(
            y_true,
            y_proba,
            epsilons=epsilons,
            conditional=kind == "conditional",
            **options,
        )
        curves.append(validity)
    validity = np.mean(curves, axis=0)
    standard_error = np.zeros(len(epsilons))
    if len(curves) > 1:
        standard_error = np.std(curves, axis=0, ddof=1) / np.sqrt(len(curves))
    n_rows = float(np.mean([num_samples(y_true) for y_true, _ in repeats]))
    return ValidityCurve(
        model, kind, epsilons, validity, standard_error, n_rows, len(repeats)
    )


def _guarantee(n_samples, n_bins, kind):
    """Return what uniform-mass binning guarantees, as two arrays (n_levels,): the
    tolerances, and the probabilities with which predictions lie within them.
    """
    tolerances = []
    for level in _LEVELS:
        epsilon = uniform_mass_epsilon(
            n_samples, n_bins, level, kind=kind, keep_boundary=False
        )
        tolerances.append(epsilon)
    return np.array(tolerances), _LEVELS


def _warn_of_distinct_scores(y_true, y_proba, options):
    """Warn if most scores occur only once: without a binning each distinct score is a
    bin. `options` are arguments of `validity_curve`.
    """
    row_options = {name: value for name, value in options.items() if name != "binning"}
    data = check_scored_labels(y_true, y_proba, **row_options)
    task = next(binary_tasks(data, options["multiclass"]))
    n_distinct = len(np.unique(task.scores))
    if n_distinct > max(len(task.scores) / 2, _FEWEST_DISTINCT):
        warn(
            f"{n_distinct} of {len(task.scores)} scores are distinct: each score is"
            " compared with only a few labels, so almost no score can be shown to be"
            " within a tolerance. A validity curve needs a binned model, or bins,"
            " such as binning=EqualMass(15)."
        )
