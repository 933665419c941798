"""The pictures of a report, as SVG with the words for who cannot see them."""

from functools import partial
from io import BytesIO
from typing import NamedTuple

from skcalib._report._statistics import CONFIDENCE_LEVEL, LABELS, REPORT_BINNING
from skcalib.displays import BinCountDisplay, ReliabilityDisplay
from skcalib.displays._style import format_count, percent, require_matplotlib
from skcalib.metrics import calibration_error

__all__ = ["Picture", "bin_count_picture", "reliability_picture"]

# Fonts and sizes are the page's; what a matplotlibrc says is for other pictures.
_STYLE = {"font.size": 10, "font.family": "sans-serif", "svg.fonttype": "path", "figure.facecolor": "white"}


class Picture(NamedTuple):
    """An SVG picture, its alternative text and its caption."""

    svg: bytes
    alt: str
    caption: str


def reliability_picture(table, seed):
    """Return the reliability diagram of all scores, with their histograms."""

    def draw(ax):
        return ReliabilityDisplay.from_predictions(
            table.y,
            table.scores,
            metric=partial(calibration_error, binning=REPORT_BINNING),  # the error of the summary
            labels=LABELS,
            sample_weight=table.weight,
            random_state=seed,
            ax=ax,
        )

    display, svg = _drawn(draw, (5.2, 7.0))
    parts = []
    for curve in display.curves:
        seen = curve.statistics.weight > 0
        gaps = (curve.statistics.mean_score - curve.statistics.event_frequency)[seen]
        parts.append(
            f"{curve.model} in {seen.sum()} bins, mean score minus event frequency from {percent(gaps.min())} to "
            f"{percent(gaps.max())} points"
        )
    alt = f"Reliability diagram, event frequency against predicted probability: {'; '.join(parts)}."
    caption = (
        f"Event frequency against predicted probability, with {100 * CONFIDENCE_LEVEL:g} % intervals of each bin. On "
        "the dotted line predictions and events agree; below it the scores are too high. At the bottom the histogram "
        "of the scores."
    )
    return Picture(svg, alt, caption)


def bin_count_picture(n_rows):
    """Return the tolerance that each number of bins would be promised."""
    display, svg = _drawn(lambda ax: BinCountDisplay.from_guarantee(n_rows, epsilon=0.05, ax=ax), (5.2, 4.6))
    (curve,) = display.curves
    chosen = "no number of bins" if curve.chosen is None else f"at most {curve.chosen} bins"
    alt = (
        f"Promised tolerance against the number of bins for {format_count(n_rows)} rows: it rises from "
        f"{curve.tolerance[0]:.3f} with {curve.n_bins[0]} to {curve.tolerance[-1]:.3f} with {curve.n_bins[-1]} bins; "
        f"{chosen} for a tolerance of 0.05."
    )
    return Picture(
        svg, alt, f"Tolerance promised for {format_count(n_rows)} rows; a tolerance of 0.05 allows {chosen}."
    )


def _drawn(draw, size):
    """Return what `draw` returns for new axes, and the figure as SVG."""
    plt = require_matplotlib()
    from matplotlib.figure import Figure

    with plt.style.context(["default", {**_STYLE, "svg.hashsalt": "skcalib"}]):
        figure = Figure(figsize=size, layout="constrained")
        display = draw(figure.subplots())
        out = BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    return display, out.getvalue()
