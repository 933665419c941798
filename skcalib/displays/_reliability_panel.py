"""The artists of one panel of a reliability diagram, and the words around it."""

import itertools

import numpy as np

from skcalib._verdicts import count_words, fixed, interval_words, rounded
from skcalib.displays._finish import fitting, shortened
from skcalib.displays._reliability_curves import NUMBERS
from skcalib.displays._style import (
    draw_band,
    error_bars,
    neutral,
    reference_style,
    styled,
)
from skcalib.displays._words import (
    captions,
    matplotlib_text,
    model_label,
    percent,
)

# The `gid` of the diagonal: a display drawn on top of another finds it by this.
_REFERENCE = "skcalib-reference"
_VISIBLE = 0.03  # share of the largest bar below which a bar cannot be seen
# A line is broken between two points that are further apart than this share of the
# axes, if fewer rows lie between them than this share of an even spread.
_WIDE = 0.25
_SPARSE = 0.1
_AXIS_LABELS = {
    "binary": ("Predicted probability", "Event frequency"),
    "top_label": ("Probability of the predicted class", "Frequency correct"),
    "marginal": ("Predicted probability", "Frequency of the class"),
    "multilabel": ("Predicted probability", "Frequency of the label"),
}
_PANEL_NAMES = {"marginal": "class", "multilabel": "label"}


# In this file `curve` is a `ReliabilityCurve`, `ax` or `strip` Matplotlib axes, `frame`
# the `Frame` of the picture, and arguments ending in `_kw` the user's keywords of an
# artist, or None.


def draw_reference(ax, limits, line_kw):
    """Draw the diagonal, unless an earlier display has drawn it there, and return the
    line. Give both axes the range `limits` (low, high) with a small margin.
    """
    from matplotlib.ticker import MaxNLocator

    low, high = limits
    margin = 0.02 * (high - low)
    low -= margin
    high += margin
    earlier = [line for line in ax.lines if line.get_gid() == _REFERENCE]
    if earlier:
        line = earlier[0]
        # The curves of an earlier display in these axes stay in view.
        low = min(low, ax.get_xlim()[0])
        high = max(high, ax.get_xlim()[1])
    else:
        style = reference_style(line_kw, gid=_REFERENCE)
        (line,) = ax.plot([0, 1], [0, 1], **style)
    ax.set(xlim=(low, high), ylim=(low, high))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10]))
        axis.set_major_formatter(lambda value, _: rounded(value, 6))
    return line


def draw_consistency(ax, curve, color, fill_kw):
    """Draw the band within which a calibrated model would stay, and return it.

    It is an outline if the curve has a band of its own, which would hide it; else an
    area in a light `color`, or in grey if that is None.
    """
    if curve.band is not None:
        style = {
            "facecolor": "none",
            "edgecolor": neutral(0.5),
            "linestyle": (0, (4, 2)),
            "linewidth": 0.8,
        }
    elif color is None:
        style = {"facecolor": neutral(0.16), "linewidth": 0}
    else:
        style = {"facecolor": color, "alpha": 0.12, "linewidth": 0}
    return ax.fill_between(*curve.consistency, **styled(fill_kw, zorder=1, **style))


def draw_intervals(ax, curve, color, alone, keywords):
    """Draw the intervals of the bins, as error bars if the curve is the only one, as a
    light band otherwise. Draw the band of a smooth curve or of a bootstrap, too.

    Parameters
    ----------
    ax : Axes
        Axes to draw on.
    curve : ReliabilityCurve
        `bars` are the lower and upper limits of its bins, (n_bins,) each, or None;
        `band` is that of a smooth curve or of a bootstrap, or None.
    color : str
        Colour of the curve.
    alone : bool
        Whether it is the only curve of its axes.
    keywords : dict or None
        Keywords of the user for the artists.

    Returns
    -------
    drawn : list of artist
        Bars or bands.
    """
    drawn = []
    if curve.bars is not None and alone:
        score, frequency, low, high = _points(ax, curve, *curve.bars)
        bars = error_bars(ax, score, frequency, low, high, color, keywords)
        drawn.append(bars)
    elif curve.bars is not None and curve.band is None:
        # All four are NaN where the line has a gap.
        score, frequency, low, high = _points(ax, curve, *curve.bars)
        drawn.append(draw_band(ax, score, low, high, color, keywords))
        # A band shows nothing at a point without neighbours: it has a bar.
        alone = _has_no_neighbour(score)
        if alone.any():
            error_bars(
                ax, score[alone], frequency[alone], low[alone], high[alone], color, None
            )
    if curve.band is not None:
        # The keywords are those of bars if there are bars.
        band_keywords = keywords if curve.bars is None else {}
        drawn.append(draw_band(ax, *curve.band, color, band_keywords))
    return drawn


def _has_no_neighbour(values):
    """Return which values (n,) stand between two NaN, or a NaN and an end; False for a
    NaN itself.
    """
    is_gap = np.isnan(values)
    follows_gap = np.append(True, is_gap[:-1])
    precedes_gap = np.append(is_gap[1:], True)
    return follows_gap & precedes_gap & ~is_gap


def draw_curve(ax, curve, style, line_kw):
    """Draw a `ReliabilityCurve` with the keywords `style` and return the line: the
    smooth curve, the steps of an isotonic fit, or the event frequencies of the bins.
    """
    points = _points(ax, curve)  # mean scores and event frequencies of the bins
    without_marks = {**style, "marker": "None"}
    if curve.smooth is not None:
        if (
            curve.has_bins
        ):  # they are drawn as points, which have no entry in the legend
            marks_alone = {**style, "linestyle": "none", "label": None, "gid": None}
            ax.plot(*points, **marks_alone)
        keywords = styled(line_kw, **without_marks)
        (line,) = ax.plot(curve.band.scores, curve.smooth, **keywords)
    elif curve.is_step:
        # From the lowest to the highest score, not over bins without rows at either
        # end.
        scores = curve.consistency.scores
        edges = np.clip(curve.statistics.edges, scores[0], scores[-1])
        frequency = curve.statistics.event_frequency
        frequency = np.append(frequency, frequency[-1])
        keywords = styled(line_kw, **without_marks, drawstyle="steps-post")
        (line,) = ax.plot(edges, frequency, **keywords)
    else:
        (line,) = ax.plot(*points, **styled(line_kw, **style))
    return line


def draw_folds(ax, curve, color, fold_kw):
    """Draw a thin line for each fold of a cross-validated model behind the curve of all
    its samples, and return the lines.
    """
    style = {"color": color, "linewidth": 0.7, "alpha": 0.55, "zorder": 2}
    lines = []
    for points in curve.folds:
        if curve.smooth is None and not curve.is_step:
            points = _with_gaps(ax, curve.histogram, points)
        lines += ax.plot(*points, **styled(fold_kw, **style))
    return lines


def _points(ax, curve, *further_columns):
    """Return mean scores, event frequencies and further columns (n_bins,) of the filled
    bins, NaN where the line has a gap.
    """
    statistics = curve.statistics
    has_rows = statistics.weight > 0
    columns = []
    for column in (
        statistics.mean_score,
        statistics.event_frequency,
        *further_columns,
    ):
        columns.append(column[has_rows])
    return _with_gaps(ax, curve.histogram, columns)


def _with_gaps(ax, histogram, columns):
    """Return the columns of points, scores first, with NaN where a line would cross a
    quarter of the axes with next to no rows in the narrow bins of the `histogram`.
    """
    gaps = []  # the position of the point after each gap
    for i, (start, stop) in enumerate(itertools.pairwise(columns[0]), start=1):
        is_between = (histogram.edges[:-1] > start) & (histogram.edges[1:] < stop)
        width = (stop - start) / np.ptp(ax.get_xlim())
        # The weight between both points if rows were spread evenly over the axes.
        even_weight = width * histogram.weight.sum()
        is_sparse = histogram.weight[is_between].sum() < _SPARSE * even_weight
        if width > _WIDE and is_between.any() and is_sparse:
            gaps.append(i)
    return [np.insert(column, gaps, np.nan) for column in columns]


def histogram_scale_of(curves):
    """Return "log" if in the histogram of any curve most bars could not be seen beside
    the largest, else "linear".
    """
    for curve in curves:
        weight = curve.histogram.weight
        bars = weight[weight > 0]
        if np.median(bars) < _VISIBLE * bars.max():
            return "log"
    return "linear"


def draw_histogram(ax, curve, style, *, split, filled, stairs_kw):
    """Draw the histogram of the scores, events upwards and non-events downwards if
    `split`; return the artists.

    `style` is that of the curve, `filled` says whether bars are filled or outlined.
    """
    statistics = curve.histogram
    look = {"edgecolor": style["color"], "linewidth": 0.8, "fill": filled}
    if filled:
        look.update(facecolor=style["color"], alpha=0.75)
    else:
        look["linestyle"] = style["linestyle"]
    if not split:
        steps = ax.stairs(
            statistics.weight, statistics.edges, **styled(stairs_kw, **look)
        )
        return [steps]
    events = statistics.weighted_label
    non_events = statistics.weight - events
    look_of_non_events = dict(look)
    if filled:
        look_of_non_events.update(facecolor="none", hatch="////")
    ax.axhline(0, color=neutral(0.75), linewidth=0.8)
    upwards = ax.stairs(events, statistics.edges, **styled(stairs_kw, **look))
    downwards = ax.stairs(
        -non_events, statistics.edges, **styled(stairs_kw, **look_of_non_events)
    )
    return [upwards, downwards]


def name_histogram(strip, scale, frame, *, is_one, is_named):
    """Give a strip with a histogram a scale ("linear" or "log"), few and short ticks,
    and a label where there is room.

    `is_one` says whether it is the only strip below its panel, `is_named` whether it
    stands at the left border.
    """
    from matplotlib.ticker import EngFormatter, FixedLocator, MaxNLocator

    if scale == "log":
        names = ["Rows (log)", "Rows\n(log)", "log"]
        strip.set_yscale("symlog", linthresh=1)  # defined for empty bins, and downwards
        powers = 10.0 ** np.arange(1, 16, 2)  # every second one, for few ticks
        strip.yaxis.set_major_locator(FixedLocator([0, *powers, *-powers]))
    else:
        names = ["Rows"]
        strip.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    short = EngFormatter(sep="")
    strip.yaxis.set_major_formatter(lambda number, _: short(abs(number)))
    # The lowest and the highest number stand above each other, which takes 2.2 times
    # the size of the text.
    height = strip.get_window_extent().height / frame.figure.figure.dpi
    has_numbers = is_one and height >= 2.2 * frame.size / 72
    if not has_numbers:
        strip.set_yticks([])
        strip.minorticks_off()
    if is_named and (has_numbers or not is_one):
        strip.set_ylabel(fitting(names, frame, width=height))


def axis_labels(display, frame):
    """Return the labels of the x and the y axis, with the name of the event where it is
    known and there is room.
    """
    x_label, y_label = _AXIS_LABELS[display.kind]
    # For each axis the longest text first; the last one is without articles.
    x_variants = [x_label, x_label.replace(" the ", " ")]
    y_variants = [y_label, y_label.replace(" the ", " ")]
    if display.event is not None:
        event = matplotlib_text(display.event)
        x_variants.insert(0, f"Probability of {event}")
        y_variants.insert(0, f"Frequency of {event}")
    return fitting(x_variants, frame), fitting(y_variants, frame)


def numbers_texts(curve):
    """Return three texts with the statistics of a curve (`ReliabilityCurve.numbers`):
    one per line with intervals, one per line without, and all in one line without.
    """
    estimates = []
    with_intervals = []
    for name, (estimate, low, high) in curve.numbers.items():
        words = f"{NUMBERS[name]} {_digits(estimate)}"
        estimates.append(words)
        with_intervals.append(f"{words} ({_digits(low)} to {_digits(high)})")
    return ["\n".join(with_intervals), "\n".join(estimates), ", ".join(estimates)]


def line_label(curve):
    """Return the entry of a curve in the legend: the name of the model, and its error
    and statistics unless the curve has a panel, whose title shows them.
    """
    if curve.panel is not None:
        return model_label(curve.model, None)
    findings = []
    if curve.error is not None:
        findings.append(_with_interval(curve.error))
    for name, value in curve.numbers.items():
        findings.append(f"{NUMBERS[name]} {_digits(value[0])}")
    return model_label(curve.model, ", ".join(findings))


def caption(curve, error_name):
    """Return captions for the only curve, the longest first: the name of the model, the
    number of samples, and its error, which is called `error_name`.
    """
    if curve.finding is not None:
        return captions(curve.model, curve.statistics.total_weight, curve.finding)
    findings = ["", ""]
    if curve.error is not None:
        error = _with_interval(curve.error)
        findings = [f"{error_name} {error}", f"error {error}", error]
    return captions(curve.model, curve.statistics.total_weight, *findings)


def note(display, panels):
    """Return the title of the legend: the sample size if several models share the only
    panel, else how many of the panels are shown, if not all; None otherwise.

    `panels` are the names of the panels shown, [None] for the only one.
    """
    if panels == [None] and len(display.curves) > 1:
        size = f"n = {count_words(display.curves[0].statistics.total_weight)}"
        if all(curve.error is None for curve in display.curves):
            return size
        return f"{display.error_name}, {size}"
    if not display.n_panels_left_out:
        return None
    plurals = {"marginal": "classes", "multilabel": "labels"}
    panels_are = plurals.get(display.kind, "groups")
    n_all = len(panels) + display.n_panels_left_out
    return f"{len(panels)} of {n_all} {panels_are}: those with the largest errors"


def panel_titles(display, frame, panels):
    """Return a title for each panel, all in the longest form that fits all panels."""
    size = 0.9 * frame.size
    variants_by_panel = [_titles(display, panel) for panel in panels]
    n_forms = len(variants_by_panel[0])
    for form in range(n_forms):
        titles = [variants[form] for variants in variants_by_panel]
        second_lines = [title.split("\n")[1] for title in titles]
        # `shortened` cuts a text that is too long.
        if all(shortened(line, frame, size=size) == line for line in second_lines):
            break
    return titles


def _titles(display, panel):
    """Return four titles of a panel, the longest first: its name, and below it the
    number of samples and the errors of its curves, as far as there is room.
    """
    curves = [curve for curve in display.curves if panel in (curve.panel, curve.model)]
    statistics = curves[0].statistics
    errors = [curve.error for curve in curves if curve.error is not None]
    percentages = ", ".join(percent(error[0]) for error in errors)
    n_rows = count_words(statistics.total_weight)
    name = matplotlib_text(panel)
    size = f"n = {n_rows}"
    long = size
    if display.kind in ("marginal", "multilabel"):
        name = f"{_PANEL_NAMES[display.kind]} {name}"
        long = f"{count_words(statistics.weighted_label.sum())} of {n_rows} rows"
    # The second line, in four forms from the longest to the shortest. Without an error
    # there is not as much to leave out.
    lines = [long, size, size, size]
    if errors:
        bare = f"{percentages} %"
        full = bare
        if len(curves) == 1:
            full = _with_interval(errors[0])
        lines = [f"{long}, error {full}", f"error {full}", full, bare]
    return [f"{name}\n{line}" for line in lines]


def _digits(value):
    """Return a number as text: three decimals below 1, else two; "undefined" for
    NaN.
    """
    if np.isnan(value):
        return "undefined"
    if abs(value) < 1:
        return fixed(value, 3)
    return fixed(value, 2)


def _with_interval(error):
    """Return an `IntervalEstimate` of an error in percent, with its limits."""
    return interval_words(*error, scale=100, unit="%", most_decimals=2)
