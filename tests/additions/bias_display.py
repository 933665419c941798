"""How far the scores are off on the whole, one bar a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from numpy.typing import ArrayLike

from skcalib.displays._frames import pair_frame, size_text
from skcalib.displays._layout import keep_inside
from skcalib.displays._predictions import FromEstimator, named_models
from skcalib.displays._style import colors
from skcalib.displays._words import matplotlib_text
from skcalib.metrics import calibration_by_group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class BiasDisplay(FromEstimator):
    """Bar for each model: mean score minus event frequency, with its interval.

    Parameters
    ----------
    biases : dict
        The bias and the ends of its interval, by model.

    Attributes
    ----------
    ax_ : Axes
        The axes.
    figure_ : Figure
        The figure.

    See Also
    --------
    skcalib.metrics.calibration_by_group : The numbers.

    Examples
    --------
    >>> from skcalib.displays import BiasDisplay
    >>> display = BiasDisplay.from_predictions([0, 1] * 20, [0.9, 0.7] * 20)
    >>> round(display.biases["model"][0], 9)
    0.3
    """

    ax_: Axes
    figure_: Figure

    def __init__(self, biases: dict[str, tuple[float, float, float]]):
        self.biases = biases

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | dict[str, ArrayLike],
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: float | str | None = None,
        labels: ArrayLike | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **plot_options: Any,
    ) -> Self:
        """Draw the bias of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_proba : array-like of shape (n,) or (n, 2), or dict of such
            Probabilities, of one model or by model.
        sample_weight : array-like of shape (n,), default=None
            Weights.
        pos_label : int, float, bool or str, default=None
            The event.
        labels : array-like of shape (2,), default=None
            The labels of the columns.
        name : str, default=None
            Name of a single model.
        ax : Axes, default=None
            Axes to draw in.
        **plot_options : dict
            Passed to `plot`.

        Returns
        -------
        display : BiasDisplay
            The display.
        """
        biases = {}
        for model, proba in named_models(y_proba, name).items():
            table = calibration_by_group(
                y_true,
                proba,
                ["all"] * len(y_true),
                sample_weight=sample_weight,
                pos_label=pos_label,
                labels=labels,
            )
            biases[model or "model"] = (
                table.bias[0],
                table.bias_low[0],
                table.bias_high[0],
            )
        return cls(biases).plot(ax, **plot_options)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the stored numbers.

        Parameters
        ----------
        ax : Axes, default=None
            Axes to draw in.

        Returns
        -------
        display : BiasDisplay
            The display.
        """
        frame = pair_frame(ax, 1)
        self.ax_, self.figure_ = frame.axes[0], frame.figure
        for i, ((bias, low, high), color) in enumerate(
            zip(self.biases.values(), colors(len(self.biases)), strict=True)
        ):
            self.ax_.barh(
                i,
                100 * bias,
                xerr=[[100 * (bias - low)], [100 * (high - bias)]],
                color=color,
            )
        self.ax_.set_yticks(
            range(len(self.biases)), [matplotlib_text(model) for model in self.biases]
        )
        size_text(frame)
        self.ax_.set_xlabel("Bias (percentage points)", size=frame.size)
        keep_inside(frame)
        return self
