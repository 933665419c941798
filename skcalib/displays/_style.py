"""How every picture looks: colours and marks that survive print and colour-vision deficiency, lines and bands."""

import numpy as np

from skcalib.displays._words import format_count

# Okabe and Ito (2008), without yellow, which vanishes on white, in an order whose greys differ, too.
_OKABE_ITO = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#E69F00",
    "#000000",
)
# The second and third way to tell curves apart: line style and marker.
_MARKS = (
    ("-", "o"),
    ("--", "s"),
    ("-.", "^"),
    (":", "D"),
    ((0, (5, 1, 1, 1, 1, 1)), "v"),
    ((0, (8, 2)), "P"),
    ("-", "X"),
)


# Mark on the curves of displays: a display that is drawn on top of another counts them.
CURVE = "skcalib-curve"


def require_matplotlib():
    """Return `matplotlib.pyplot`, or raise with what to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            'Displays need matplotlib: pip install "skcalib[plot]".'
        ) from error
    return plt


def colors(n_colors):
    """Return this number of colours: the user's cycle if there is one, else Okabe and Ito's."""
    plt = require_matplotlib()
    from matplotlib import rcParamsDefault

    cycle = plt.rcParams["axes.prop_cycle"]
    own = (
        cycle.by_key().get("color")
        if cycle != rcParamsDefault["axes.prop_cycle"]
        else None
    )
    palette = own or _OKABE_ITO
    return [palette[i % len(palette)] for i in range(n_colors)]


def mark(rank):
    """Return line style and marker of the model of that rank: with its colour no two of the first 49 look the same."""
    return _MARKS[(rank + rank // len(_MARKS)) % len(_MARKS)]


def neutral(opacity):
    """Return the colour of the text, thinned to `opacity` by the background: greys that suit dark styles as well."""
    plt = require_matplotlib()
    from matplotlib.colors import to_hex, to_rgb

    text, background = (
        np.array(to_rgb(plt.rcParams[name]))
        for name in ("axes.labelcolor", "axes.facecolor")
    )
    return to_hex(opacity * text + (1 - opacity) * background)


def canonical_keywords(given):
    """Return the user's keywords of an artist with the names that ours have (``lw`` is ``linewidth``)."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return (
        {}
        if given is None
        else normalize_kwargs(normalize_kwargs(given, Line2D), Patch)
    )


def styled(given, **ours):
    """Return our keywords of an artist, those that the user gave in place of ours."""
    return {**ours, **canonical_keywords(given)}


def reference_style(given=None, **ours):
    """Return the keywords of a line to compare with: thin, grey and dotted unless told otherwise."""
    dotted = {
        "color": neutral(0.75),
        "linewidth": 1,
        "linestyle": (0, (1, 1.5)),
        "zorder": 1.5,
    }
    return styled(given, **{**dotted, **ours})


def curve_styles(n_curves, *, marked=False):
    """Return the keywords of the lines of this number of curves, which colour, line style and marks tell apart."""
    styles = []
    for rank, color in enumerate(colors(n_curves)):
        dashes, marker = mark(rank)
        styles.append(
            {
                "color": color,
                "linestyle": dashes,
                "linewidth": 1.6,
                "gid": CURVE,
                "zorder": 3,
            }
        )
        if marked:
            styles[-1] |= {"marker": marker, "markersize": 4.5, "markeredgewidth": 0}
    return styles


def count_axis(ax):
    """Give axes over counts a logarithmic scale with numbers as people write them."""
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(lambda number, _: format_count(number))


def draw_curve(display, ax, x, values, style, line_kw, band_kw=None):
    """Draw a curve, and the band between its limits where `values` has both; add them to `lines_` and `bands_`."""
    value, *limits = values
    display.lines_ += ax.plot(x, value, **styled(line_kw, **style))
    if limits:
        display.bands_.append(draw_band(ax, x, *limits, style["color"], band_kw))


def draw_band(ax, x, low, high, color, band_kw):
    """Draw what lies between two limits, lightly and below the curves; return the artist."""
    return ax.fill_between(
        x,
        low,
        high,
        **styled(band_kw, facecolor=color, alpha=0.18, linewidth=0, zorder=2),
    )


def error_bars(ax, x, value, low, high, color, errorbar_kw):
    """Draw intervals as bars without a mark; return their container."""
    # A limit can leave its estimate by rounding, and a length must not be negative.
    lengths = np.maximum(0, np.stack((value - low, high - value)))
    style = {"fmt": "none", "ecolor": color, "elinewidth": 1, "capsize": 2, "zorder": 2}
    return ax.errorbar(x, value, yerr=lengths, **styled(errorbar_kw, **style))
