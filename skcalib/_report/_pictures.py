"""The pictures of a report, as SVG with the words for who cannot see them."""

import warnings
from functools import partial
from io import BytesIO
from typing import NamedTuple

from skcalib._report._format import n_shown
from skcalib._report._samples import CONFIDENCE_LEVEL, LABELS, MEAN_ABSOLUTE
from skcalib._verdicts import fixed, level_words
from skcalib.displays import ReliabilityDisplay
from skcalib.metrics import calibration_error

# Fonts and sizes are the page's: a matplotlibrc is ignored.
_STYLE = {
    "font.size": 10,
    "font.family": "sans-serif",
    "svg.fonttype": "path",
    "figure.facecolor": "white",
}


class Picture(NamedTuple):
    """An SVG picture, its alternative text and its caption."""

    svg: bytes
    alt: str
    caption: str


def reliability_picture(table, seed):
    """Return the reliability diagram of all scores, with their histograms."""
    # The error of the summary. With clusters its draws take long, and the summary has
    # made them.
    metric = None
    if table.clusters is None:
        metric = partial(calibration_error, **MEAN_ABSOLUTE)
    labels = LABELS
    if table.classes is not None:
        labels = range(len(table.classes))
    display, svg = _drawn(
        (5.2, 7.0),  # inches
        table.labels,
        table.scores,
        metric=metric,
        random_state=seed,
        sample_weight=table.weight,
        clusters=table.clusters,
        labels=labels,
    )
    gaps_of_curves = []
    for curve in display.curves:
        has_rows = curve.statistics.weight > 0  # (n_bins,)
        gaps = curve.statistics.mean_score - curve.statistics.event_frequency
        gaps = gaps[has_rows]
        gaps_of_curves.append(
            f"{curve.model} in {len(gaps)} bins, mean score minus event frequency from"
            f" {_points(gaps.min())} to {_points(gaps.max())} points"
        )
    alt = (
        "Reliability diagram, event frequency against predicted probability:"
        f" {'; '.join(gaps_of_curves)}."
    )
    drawn = "Event frequency against predicted probability"
    if table.classes is not None:
        drawn = (
            "Proportion of correct predictions against the predicted class's"
            " probability"
        )
    caption = (
        f"{drawn}, with {level_words(CONFIDENCE_LEVEL)} intervals for each bin. On the"
        " dotted line, predictions and events agree; below it the scores are too high."
    )
    if display.consistency_bands_:
        caption += (
            f" {level_words(CONFIDENCE_LEVEL)} of the bins of a calibrated model would"
            " lie in the grey band."
        )
    caption += " The histogram at the bottom shows the scores."
    if table.clusters is not None:
        allowing = (
            "intervals and the band" if display.consistency_bands_ else "intervals"
        )
        caption += (
            f" The {allowing} allow for clusters; a bin whose effective"
            " number of clusters is below 3 has no interval."
        )
    return Picture(svg, alt, caption)


def counts_picture(statistics):
    """Return the reliability diagram of a `BinStatistics`."""
    display, svg = _drawn((5.2, 7.0), statistics, from_sums=True)
    (curve,) = display.curves
    gaps = (curve.statistics.mean_score - curve.statistics.event_frequency)[
        curve.statistics.weight > 0
    ]
    alt = (
        f"Reliability diagram, event frequency against score in {len(gaps)} rows: score"
        f" minus event frequency from {_points(gaps.min())} to {_points(gaps.max())}"
        " points."
    )
    caption = (
        f"Event frequency against score, with {level_words(CONFIDENCE_LEVEL)} intervals"
        " for each row. On the dotted line, scores and events agree; below it the"
        " scores are too high."
    )
    return Picture(svg, alt, caption)


def class_pictures(table, name, rows, seed):
    """Return a small diagram of each class of a model, in the order of the rows of its
    table.
    """
    event_rows, groups = table.by_class(name, seed)
    pictures = []
    for row in rows[: n_shown(rows)]:
        rows_of_class = event_rows.at(groups == row["class"])
        models = {row["class"]: rows_of_class.scores}
        _, svg = _drawn(
            (3.0, 3.3),  # inches
            rows_of_class.labels,
            models,
            **rows_of_class.metric_options,
            clusters=rows_of_class.clusters,
            metric=None,  # the table has the error
            random_state=seed,
            legend=False,
        )
        bias = _points(row["bias"])
        alt = (
            f"Reliability diagram of the class {row['class']}: mean score minus"
            f" frequency {bias} points on average."
        )
        pictures.append(Picture(svg, alt, ""))
    return pictures


def _drawn(size, *rows, from_sums=False, **options):
    """Return a `ReliabilityDisplay` and its picture as the bytes of an SVG file. `size`
    is in inches; the rest are arguments of `from_predictions`, or with `from_sums` of
    `from_statistics`.
    """
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(["default", {**_STYLE, "svg.hashsalt": "skcalib"}]):
        figure = Figure(figsize=size, layout="constrained")
        out = BytesIO()
        options |= {"confidence_level": CONFIDENCE_LEVEL, "ax": figure.subplots()}
        with warnings.catch_warnings():
            # The caption says which bins have no interval.
            warnings.filterwarnings("ignore", r"\d+ of \d+ bins have no interval")
            draw = ReliabilityDisplay.from_predictions
            if from_sums:
                draw = ReliabilityDisplay.from_statistics
            display = draw(*rows, **options)
        figure.savefig(out, format="svg", metadata={"Date": None})
    return display, out.getvalue()


def _points(share):
    """Return a difference of shares in percentage points, with one decimal, or two if
    it is below 1.
    """
    points = 100 * share
    return fixed(points, 1 if abs(points) >= 0.95 or points == 0 else 2)
