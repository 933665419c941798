"""The artists of one panel of a reliability diagram, and the words around it."""

import itertools

import numpy as np

from skcalib.displays._finish import fitting
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
    format_count,
    matplotlib_text,
    model_label,
    percent,
)

# A mark by which a display drawn on top of another knows what is there.
_REFERENCE = "skcalib-reference"
_VISIBLE = 0.03  # of the largest bar: what can be told from none
# shares: of the axes, and of the rows that would be there if they were spread evenly
_WIDE, _SPARSE = 0.25, 0.1
_AXIS_LABELS = {
    "binary": ("Predicted probability", "Event frequency"),
    "top_label": ("Probability of the predicted class", "Frequency correct"),
    "marginal": ("Predicted probability", "Frequency of the class"),
}


def draw_reference(ax, limits, line_kw):
    """Draw the diagonal unless it is there, give both axes one range and short ticks,
    and return the line.
    """
    from matplotlib.ticker import MaxNLocator

    earlier = [line for line in ax.lines if line.get_gid() == _REFERENCE]
    (line,) = earlier or ax.plot(
        [0, 1], [0, 1], **reference_style(line_kw, gid=_REFERENCE)
    )
    low, high = limits
    margin = 0.02 * (high - low)
    low, high = low - margin, high + margin
    if earlier:
        low, high = min(low, ax.get_xlim()[0]), max(high, ax.get_xlim()[1])
    ax.set(xlim=(low, high), ylim=(low, high))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10]))
        axis.set_major_formatter(lambda value, _: f"{round(value, 12):g}")
    return line


def draw_consistency(ax, curve, color, fill_kw):
    """Draw the band within which a calibrated model would stay and return it: only its
    outline under another band.
    """
    style = (
        {"facecolor": neutral(0.16)}
        if color is None
        else {"facecolor": color, "alpha": 0.12}
    )
    if curve.band is not None:
        style = {
            "facecolor": "none",
            "edgecolor": neutral(0.5),
            "linestyle": (0, (4, 2)),
        }
    style |= {"linewidth": 0 if curve.band is None else 0.8, "zorder": 1}
    return ax.fill_between(*curve.consistency, **styled(fill_kw, **style))


def draw_intervals(ax, curve, color, alone, keywords):
    """Draw the intervals of the bins, as bars of a single curve and else as a light
    band, and the curve's own band.
    """
    drawn = []
    if curve.bars is not None and alone:
        drawn.append(error_bars(ax, *_points(ax, curve, *curve.bars), color, keywords))
    elif curve.bars is not None and curve.band is None:
        mean, frequency, low, high = points = _points(ax, curve, *curve.bars)
        drawn.append(draw_band(ax, mean, low, high, color, keywords))
        missing = np.isnan([np.nan, *mean, np.nan])
        lonely = missing[:-2] & missing[2:] & ~missing[1:-1]
        if lonely.any():  # a band needs neighbours
            error_bars(ax, *(part[lonely] for part in points), color, None)
    if curve.band is not None:  # the keywords are those of bars if there are bars
        drawn.append(
            draw_band(ax, *curve.band, color, keywords if curve.bars is None else {})
        )
    return drawn


def draw_curve(ax, curve, style, line_kw):
    """Draw the event frequencies and return the line."""
    points, statistics = _points(ax, curve), curve.statistics
    line_style = style | {"marker": "None"}
    if curve.smooth is not None:
        if curve.has_bins:
            ax.plot(
                *points, **style | {"linestyle": "none", "label": None, "gid": None}
            )
        return ax.plot(
            curve.band.scores, curve.smooth, **styled(line_kw, **line_style)
        )[0]
    if curve.is_step:
        # From the lowest to the highest score, not over bins without rows at either
        # end.
        edges = np.clip(
            statistics.edges, curve.consistency.scores[0], curve.consistency.scores[-1]
        )
        frequency = np.append(
            statistics.event_frequency, statistics.event_frequency[-1]
        )
        return ax.plot(
            edges, frequency, **styled(line_kw, **line_style, drawstyle="steps-post")
        )[0]
    return ax.plot(*points, **styled(line_kw, **style))[0]


def _points(ax, curve, *columns):
    """Return mean scores and event frequencies of the bins with rows, and columns
    beside them.

    Where a line would cross a quarter of the axes with next to no rows, a missing point
    breaks it.
    """
    seen, histogram = curve.statistics.weight > 0, curve.histogram
    columns = [
        part[seen]
        for part in (
            curve.statistics.mean_score,
            curve.statistics.event_frequency,
            *columns,
        )
    ]
    gaps = []
    for i, (start, stop) in enumerate(itertools.pairwise(columns[0]), start=1):
        between = histogram.weight[
            (histogram.edges[:-1] > start) & (histogram.edges[1:] < stop)
        ]
        width = (stop - start) / np.ptp(ax.get_xlim())
        if (
            width > _WIDE
            and len(between)
            and between.sum() < _SPARSE * width * histogram.weight.sum()
        ):
            gaps.append(i)
    return [np.insert(column, gaps, np.nan) for column in columns]


def histogram_scale_of(curves):
    """Return "log" where most bars of a histogram could not be seen beside the largest,
    else "linear".
    """
    bars = [curve.histogram.weight[curve.histogram.weight > 0] for curve in curves]
    return (
        "log"
        if any(np.median(one) < _VISIBLE * one.max() for one in bars)
        else "linear"
    )


def draw_histogram(ax, curve, style, *, split, filled, stairs_kw):
    """Draw the histogram of the scores, events upwards and the rest downwards if split;
    return the steps.
    """
    statistics = curve.histogram
    keywords = {"edgecolor": style["color"], "linewidth": 0.8, "fill": filled}
    keywords |= (
        {"facecolor": style["color"], "alpha": 0.75}
        if filled
        else {"linestyle": style["linestyle"]}
    )
    drawn = [(statistics.weight, keywords)]
    if split:
        pale = keywords | ({"facecolor": "none", "hatch": "////"} if filled else {})
        drawn = [
            (statistics.weighted_label, keywords),
            (statistics.weighted_label - statistics.weight, pale),
        ]
        ax.axhline(0, color=neutral(0.75), linewidth=0.8)
    return [
        ax.stairs(values, statistics.edges, **styled(stairs_kw, **look))
        for values, look in drawn
    ]


def name_histogram(strip, scale, frame, *, is_one, is_named):
    """Make room for numbers of rows, upwards and downwards, and write few and short
    ones, and what they are.
    """
    from matplotlib.ticker import EngFormatter, FixedLocator, MaxNLocator

    if scale == "log":
        strip.set_yscale("symlog", linthresh=1)  # defined for empty bins, and downwards
        strip.yaxis.set_major_locator(
            FixedLocator(
                [0, *(sign * 10**k for k in range(1, 16, 2) for sign in (1, -1))]
            )
        )
    else:
        strip.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    short, height = (
        EngFormatter(sep=""),
        strip.get_window_extent().height / frame.figure.figure.dpi,
    )
    strip.yaxis.set_major_formatter(lambda number, _: short(abs(number)))
    # else there is no room for numbers above each other
    has_numbers = is_one and height >= 2.2 * frame.size / 72
    if not has_numbers:
        strip.set_yticks([])
        strip.minorticks_off()
    names = ["Rows (log)", "Rows\n(log)", "log"] if scale == "log" else ["Rows"]
    if is_named and (has_numbers or not is_one):
        strip.set_ylabel(fitting(names, frame, width=height))


def axis_labels(display, frame):
    """Return the names of both axes, with the event where it is known and there is
    room.
    """
    names = [[name, name.replace(" the ", " ")] for name in _AXIS_LABELS[display.kind]]
    if display.event is not None:
        event = matplotlib_text(display.event)
        names = [
            [f"Probability of {event}", *names[0]],
            [f"Frequency of {event}", *names[1]],
        ]
    return [fitting(variants, frame) for variants in names]


def numbers_texts(curve):
    """Return the numbers of a curve with their intervals, one a line; without these;
    and all in one line.
    """
    bare = [
        f"{NUMBERS[name]} {_digits(value[0])}" for name, value in curve.numbers.items()
    ]
    limits = ((_digits(low), _digits(high)) for _, low, high in curve.numbers.values())
    full = [
        f"{words} ({low} to {high})"
        for words, (low, high) in zip(bare, limits, strict=True)
    ]
    return ["\n".join(full), "\n".join(bare), ", ".join(bare)]


def line_label(curve):
    """Return the entry of a curve in the legend."""
    parts = [] if curve.error is None else [_with_interval(curve.error)]
    parts += [
        f"{NUMBERS[number]} {_digits(value[0])}"
        for number, value in curve.numbers.items()
    ]
    return model_label(curve.model, ", ".join(parts) if curve.panel is None else None)


def caption(curve, error_name):
    """Return what is written about the only curve, in words for more and less room."""
    error = "" if curve.error is None else _with_interval(curve.error)
    findings = [f"{error_name} {error}", f"error {error}", error] if error else ["", ""]
    return captions(curve.model, curve.statistics.total_weight, *findings)


def note(display, panels):
    """Return the text of the legend above its entries."""
    if panels == [None] and len(display.curves) > 1:
        size = f"n = {format_count(display.curves[0].statistics.total_weight)}"
        return (
            size
            if all(curve.error is None for curve in display.curves)
            else f"{display.error_name}, {size}"
        )
    if not display.n_panels_left_out:
        return None
    parts = "classes" if display.kind == "marginal" else "groups"
    return (
        f"{len(panels)} of {len(panels) + display.n_panels_left_out} {parts}: those"
        " with the largest errors"
    )


def panel_titles(display, frame, panels):
    """Return the titles of the panels, all in the longest words that fit."""
    size = 0.9 * frame.size
    for titles in zip(*(_titles(display, panel) for panel in panels), strict=True):
        if all(
            fitting([title.split("\n")[1]], frame, size=size) in title
            for title in titles
        ):
            break
    return titles


def _titles(display, panel):
    """Return the name of a panel with its number of rows and its errors, in words for
    more and less room.
    """
    curves = [curve for curve in display.curves if panel in (curve.panel, curve.model)]
    statistics, errors = (
        curves[0].statistics,
        [curve.error for curve in curves if curve.error is not None],
    )
    n_rows, name = format_count(statistics.total_weight), matplotlib_text(panel)
    size = long = f"n = {n_rows}"
    if display.kind == "marginal":
        name, long = (
            f"class {name}",
            f"{format_count(statistics.weighted_label.sum())} of {n_rows} rows",
        )
    lines = [long, size, size, size]
    if errors:
        bare = f"{', '.join(percent(error[0]) for error in errors)} %"
        full = _with_interval(errors[0]) if len(curves) == 1 else bare
        lines = [f"{long}, error {full}", f"error {full}", full, bare]
    return [f"{name}\n{line}" for line in lines]


def _digits(value):
    return "undefined" if value != value else f"{value:.{3 if abs(value) < 1 else 2}f}"


def _with_interval(error):
    digits = 1 if error[0] == 0 or error[0] >= 0.0095 else 2
    estimate, low, high = (f"{100 * value:.{digits}f}" for value in error)
    return f"{estimate} % ({low} to {high})"
