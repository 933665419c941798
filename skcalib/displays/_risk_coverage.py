"""Risk against coverage: the share of errors among the answers, against the share of
rows that is answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from skcalib._intervals import binomial_interval
from skcalib._verdicts import level_words, percent_words, rounded
from skcalib.decisions._certified_threshold import (
    certify,
    check_guarantees,
    scores_and_errors,
)
from skcalib.decisions._search import AcceptedSets
from skcalib.displays._finish import finish
from skcalib.displays._frames import pair_frame
from skcalib.displays._predictions import FromEstimator, named_models
from skcalib.displays._style import (
    curve_styles,
    draw_curve,
    mark,
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

    from skcalib.decisions import CertifiedThreshold


_FEWEST_ANSWERED = 10  # rows: a curve begins there
# What is written for the `reason` of a `CertifiedThreshold` that was not found.
_NOT_FOUND = {
    "few_rows": "no threshold found, too few samples",
    "margin": "no threshold found, too few samples",
    "start": "not certified, overconfident scores",
    "sequence": "not certified",
}


class RiskCoverageCurve(NamedTuple):
    """Error rate among the answers of one model.

    Parameters
    ----------
    answered : ndarray of shape (m,)
        Share of the samples that is answered, in increasing order.
    error, low, high : ndarray of shape (m,)
        Share of errors among the answers, and its interval.
    certified : CertifiedThreshold or None
        The certified threshold.
    """

    answered: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    certified: CertifiedThreshold | None = None


class RiskCoverageDisplay(FromEstimator):
    """Share of errors among the answers against the share of samples answered.

    The most confident samples are answered first.

    If the curve starts near 0 and rises, the confidence of the model indicates where it
    is wrong. The point marks the threshold of `certified_threshold`, which meets the
    target at the confidence level; the intervals for the curve hold only pointwise. A
    threshold read off where the curve crosses the target would miss the target about
    half the time.

    Parameters
    ----------
    curves : dict of RiskCoverageCurve by name
        One curve for each model; the name of a single model may be None.
    n_rows : int
        Number of samples.
    confidence_level : float
        Coverage of each interval, in (0, 1).
    target : float, default=None
        Largest share of errors among the answers.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure.
    lines_ : list of Line2D
        The curves.
    bands_ : list of PolyCollection
        The pointwise intervals for the curves.
    points_ : list of Line2D
        The markers of the certified thresholds.
    target_line_ : Line2D or None
        The target.
    legend_ : Legend or None
        The legend.

    See Also
    --------
    skcalib.decisions.certified_threshold : The threshold that is marked.

    References
    ----------
    El-Yaniv and Wiener (2010), On the foundations of noise-free selective
    classification.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.displays import RiskCoverageDisplay
    >>> scores = np.random.default_rng(0).random(1000)
    >>> y = np.random.default_rng(1).random(1000) < scores
    >>> display = RiskCoverageDisplay.from_predictions(y, scores, target=0.1)
    >>> [certified] = [curve.certified for curve in display.curves.values()]
    >>> certified and certified.threshold
    0.855
    """

    ax_: Axes
    figure_: Figure
    lines_: list[Line2D]
    bands_: list[PolyCollection]
    points_: list[Line2D]
    target_line_: Line2D | None
    legend_: Legend | None

    def __init__(
        self,
        curves: Mapping[Any, RiskCoverageCurve],
        n_rows: int,
        confidence_level: float,
        *,
        target: float | None = None,
    ):
        self.curves = curves
        self.n_rows = n_rows
        self.confidence_level = confidence_level
        self.target = target

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | Mapping[str, ArrayLike],
        *,
        target: float | None = None,
        confidence_level: float = 0.9,
        name: str | None = None,
        thresholds: ArrayLike | None = None,
        start: float | ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        pos_label: object = None,
        labels: ArrayLike | None = None,
        ax: Axes | None = None,
        plot_options: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the error rate against the share of samples answered.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_proba : array-like of shape (n,), (n, 2) or (n, K), or dict of arrays
            Probabilities in [0, 1], or a dict that maps model names to probabilities,
            to draw several models.
        target : float, default=None
            Largest share of errors among the answers. The line of the target and the
            certified point are drawn.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1), and the confidence level of the
            certified point.
        name : str, default=None
            Name of the model in the title.
        thresholds : array-like of float, default=None
            Candidate thresholds, fixed beforehand. None means a fixed grid: 0; 1; all
            values from .1 to .9 with three decimal places; below .1, all values p with
            two significant digits, down to 1e-9; and above .9, the corresponding values
            1 - p.
        start : float, or array-like of shape (m,), (m, 2) or (m, K), default=None
            Start of the search. None means that it depends on the scores. With a fixed
            threshold, or probabilities of *other* samples, the guarantee is exact for
            new samples.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample; samples in the same cluster, such as visits by one
            patient, may be dependent. The tests then use whole clusters, and many
            clusters are required.
        pos_label : int, float, bool or str, default=None
            The label whose probability is given by a single column of scores. This
            label is also the event in guarantees about an event.
        labels : array-like of shape (K,), default=None
            The sorted labels of the columns.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        plot_options : dict, default=None
            Options of `plot`.

        Returns
        -------
        display : RiskCoverageDisplay
            The drawn display.

        Raises
        ------
        ValueError
            If labels and probabilities are inconsistent, or the target is outside (0,
            1).
        """
        curves = {}
        promise = "error_when_answered"
        for model, proba in named_models(y_proba, name).items():
            data = scores_and_errors(y_true, proba, promise, pos_label, labels)
            # The score of the predicted class, and whether it is wrong, both (n,).
            _, scores, is_error = data
            certified = None
            if target is not None:
                certified = certify(
                    data,
                    check_guarantees(promise, target),
                    target,
                    confidence_level,
                    thresholds=thresholds,
                    start=start,
                    clusters=clusters,
                )
            # Each distinct score is a threshold: rows at or above it are answered.
            answers = AcceptedSets.from_rows(scores, is_error, np.unique(scores))
            low, high = binomial_interval(
                answers.n_wrong, answers.n_rows, confidence_level=confidence_level
            )
            curves[model] = RiskCoverageCurve(
                answers.n_rows / len(scores),
                answers.n_wrong / answers.n_rows,
                low,
                high,
                certified,
            )
        display = cls(curves, len(scores), confidence_level, target=target)
        return display.plot(ax, **(plot_options or {}))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        name: str | None = None,
        target: float | None = None,
        confidence_level: float = 0.9,
        thresholds: ArrayLike | None = None,
        start: float | ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        pos_label: object = None,
        ax: Axes | None = None,
        plot_options: dict[str, Any] | None = None,
    ) -> Self:
        """Predict, and draw the error rate against the share of samples answered.

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
        target : float, default=None
            Largest share of errors among the answers. The line of the target and the
            certified point are drawn.
        confidence_level : float, default=0.9
            Coverage of each interval, in (0, 1), and the confidence level of the
            certified point.
        thresholds : array-like of float, default=None
            Candidate thresholds, fixed beforehand. None means a fixed grid: 0; 1; all
            values from .1 to .9 with three decimal places; below .1, all values p with
            two significant digits, down to 1e-9; and above .9, the corresponding values
            1 - p.
        start : float, or array-like of shape (m,), (m, 2) or (m, K), default=None
            Start of the search. None means that it depends on the scores. With a fixed
            threshold, or probabilities of *other* samples, the guarantee is exact for
            new samples.
        clusters : array-like of shape (n,), default=None
            Cluster of each sample; samples in the same cluster, such as visits by one
            patient, may be dependent. The tests then use whole clusters, and many
            clusters are required.
        pos_label : int, float, bool or str, default=None
            The label whose probability is given by a single column of scores. This
            label is also the event in guarantees about an event.
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        plot_options : dict, default=None
            Options of `plot`.

        Returns
        -------
        display : RiskCoverageDisplay
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
            target=target,
            confidence_level=confidence_level,
            thresholds=thresholds,
            start=start,
            clusters=clusters,
            pos_label=pos_label,
            ax=ax,
            plot_options=plot_options,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        legend: bool = True,
        line_kw: dict[str, Any] | None = None,
        band_kw: dict[str, Any] | None = None,
        point_kw: dict[str, Any] | None = None,
        target_kw: dict[str, Any] | None = None,
        legend_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the stored results.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw on; None creates a figure.
        legend : bool, default=True
            Whether the legend lists bands, points and the target. Model names are
            always shown.
        line_kw, band_kw, point_kw, target_kw, legend_kw : dict, default=None
            Keyword arguments of the artists (`Axes.plot`, `Axes.fill_between`,
            `Axes.plot`, `Axes.axhline` and `legend`) that override the defaults.

        Returns
        -------
        display : RiskCoverageDisplay
            The display, with the artists as attributes.
        """
        frame = pair_frame(ax)
        (axes,) = frame.axes
        self.lines_ = []
        self.bands_ = []
        self.points_ = []
        self.target_line_ = None
        highest = 0.0 if self.target is None else self.target
        # The errors among few answers are noise and are left out.
        smallest_share = min(_FEWEST_ANSWERED / self.n_rows, 1)
        styles = curve_styles(len(self.curves))
        for rank, (name, curve) in enumerate(self.curves.items()):
            finding = self._finding(curve)
            is_shown = curve.answered >= smallest_share
            share = curve.answered[is_shown]
            values = [curve.error[is_shown], curve.low[is_shown], curve.high[is_shown]]
            style = {**styles[rank], "label": model_label(name, finding)}
            # It appends the artists to `lines_` and `bands_`.
            draw_curve(self, axes, share, values, style, line_kw, band_kw)
            highest = max(highest, curve.error[is_shown].max())
            certified = curve.certified  # the threshold that meets the target
            if self.target is not None and certified.found:
                _, marker = mark(rank)
                point = styled(
                    point_kw,
                    color=style["color"],
                    marker=marker,
                    markersize=7,
                    zorder=4,
                    linestyle="none",
                )
                error = certified.n_wrong / certified.n_accepted
                self.points_ += axes.plot(certified.accepted, error, **point)
        keys = {f"{level_words(self.confidence_level)} interval": self.bands_[0]}
        if self.target is not None:
            self.target_line_ = axes.axhline(self.target, **reference_style(target_kw))
            keys[f"target {rounded(self.target)}"] = self.target_line_
        if self.points_:
            keys["certified"] = self.points_[0]
        # A quarter of the height above the curves is for the legend. Without any error
        # the axis ends at .1.
        top = 0.1
        if highest > 0:
            top = min(1.25 * highest, 1)
        axes.set(xlim=(0, 1), ylim=(0, top))
        caption = None
        if len(self.curves) == 1:
            ((name, curve),) = self.curves.items()
            caption = captions(name, self.n_rows, self._finding(curve))
        return finish(
            self,
            frame,
            keys,
            "Share of samples answered",
            "Errors among answers",
            legend=legend,
            caption=caption,
            legend_kw=legend_kw,
        )

    def _finding(self, curve):
        """Return, if there is a target, the share of the rows answered at the certified
        threshold, or why there is none.
        """
        if self.target is None:
            return None
        certified = curve.certified
        if not certified.found:
            return _NOT_FOUND.get(certified.reason, "no threshold found")
        return f"{percent_words(certified.accepted, certified.n_samples)} answered"
