"""Overall bias of the scores, with one bar per model."""

from skcalib.displays.base import (
    FromEstimator,
    colors,
    keep_inside,
    matplotlib_text,
    named_models,
    pair_frame,
    size_text,
)
from skcalib.metrics import calibration_by_group

__all__ = ["BiasDisplay"]


class BiasDisplay(FromEstimator):
    """Mean score minus event frequency of each model, as bars with intervals."""

    def __init__(self, biases):
        self.biases = biases

    @classmethod
    def from_predictions(
        cls,
        y_true,
        y_proba,
        *,
        sample_weight=None,
        pos_label=None,
        labels=None,
        name=None,
        ax=None,
        **plot_options,
    ):
        """Draw the bias of one array of probabilities, or of a dict by model."""
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

    def plot(self, ax=None):
        """Draw the stored numbers."""
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
