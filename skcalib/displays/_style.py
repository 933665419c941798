"""How every picture looks: colours and marks that survive print and colour-vision
deficiency, lines and bands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skcalib._install import install
from skcalib._verdicts import count_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.container import ErrorbarContainer

# Okabe and Ito (2008), without yellow, which vanishes on white, in an order whose greys
# differ, too.
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


# The `gid` of curves: a display that is drawn on top of another counts them.
CURVE = "skcalib-curve"


def require_matplotlib():
    """Return `matplotlib`, or raise with what to install.

    `matplotlib.pyplot`, whose import takes half a second, is left to who makes a figure
    of its own.
    """
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(f"Displays need matplotlib: {install('plot')}.") from error
    return matplotlib


def colors(n_colors: int) -> list[str]:
    """Return `n_colors` colours from the user's cycle or the Okabe-Ito palette.

    Parameters
    ----------
    n_colors : int
        Number of colours.

    Returns
    -------
    colors : list of str
        Colours in a form that matplotlib accepts, repeated if there are too few.
    """
    rc = require_matplotlib().rcParams
    from matplotlib import rcParamsDefault

    cycle = rc["axes.prop_cycle"]
    palette = _OKABE_ITO
    if cycle != rcParamsDefault["axes.prop_cycle"]:
        palette = cycle.by_key().get("color") or _OKABE_ITO
    return [palette[i % len(palette)] for i in range(n_colors)]


def mark(rank):
    """Return line style and marker of the model of a rank (0 for the first).

    Colours repeat after 7 models. The marks are shifted by one then, so that no two of
    the first 49 models look the same.
    """
    n_rounds = rank // len(_MARKS)
    return _MARKS[(rank + n_rounds) % len(_MARKS)]


def neutral(opacity):
    """Return a mixture of the text's colour, with weight `opacity` in [0, 1], and the
    background's: greys that suit dark styles as well.
    """
    rc = require_matplotlib().rcParams
    from matplotlib.colors import to_hex, to_rgb

    text = np.array(to_rgb(rc["axes.labelcolor"]))
    background = np.array(to_rgb(rc["axes.facecolor"]))
    return to_hex(opacity * text + (1 - opacity) * background)


def canonical_keywords(users):
    """Return the user's keywords of an artist with the names that ours have (``lw`` is
    ``linewidth``).
    """
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if users is None:
        return {}
    return normalize_kwargs(normalize_kwargs(users, Line2D), Patch)


def styled(users: Mapping[str, Any] | None, **ours: Any) -> dict[str, Any]:
    """Return the user's keyword arguments for an artist, completed by defaults.

    Parameters
    ----------
    users : mapping or None
        Keyword arguments given by the user; the short names of matplotlib (``lw``) are
        accepted.
    **ours : dict
        The defaults.

    Returns
    -------
    keywords : dict
        The combined keyword arguments.
    """
    return {**ours, **canonical_keywords(users)}


def reference_style(
    users: Mapping[str, Any] | None = None, **ours: Any
) -> dict[str, Any]:
    """Return the keyword arguments for a reference line: thin, grey and dotted.

    Parameters
    ----------
    users : mapping, default=None
        Keyword arguments given by the user.
    **ours : dict
        Other keyword arguments set by the display.

    Returns
    -------
    keywords : dict
        Keyword arguments for `Axes.plot` or `Axes.axhline`.
    """
    dotted = {
        "color": neutral(0.75),
        "linewidth": 1,
        "linestyle": (0, (1, 1.5)),
        "zorder": 1.5,  # below the curves (3) and their bands (2)
    }
    return styled(users, **{**dotted, **ours})


def curve_styles(n_curves: int, *, marked: bool = False) -> list[dict[str, Any]]:
    """Return keyword arguments for curves with distinct colours, lines and markers.

    Parameters
    ----------
    n_curves : int
        Number of curves.
    marked : bool, default=False
        Whether each point has a marker.

    Returns
    -------
    styles : list of dict
        Keyword arguments for `Axes.plot`. `finish` adds the curves drawn with them to
        the legend.
    """
    styles = []
    for rank, color in enumerate(colors(n_curves)):
        dashes, marker = mark(rank)
        style = {"color": color, "linestyle": dashes, "linewidth": 1.6}
        style |= {"gid": CURVE, "zorder": 3}
        if marked:
            style |= {"marker": marker, "markersize": 4.5, "markeredgewidth": 0}
        styles.append(style)
    return styles


def count_axis(ax):
    """Give axes over counts a logarithmic scale with numbers as people write them."""
    from matplotlib.ticker import LogLocator, NullLocator

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(lambda number, _: count_words(number))


def draw_curve(
    display: Any,
    ax: Axes,
    x: np.ndarray,
    values: Sequence[np.ndarray],
    style: Mapping[str, Any],
    line_kw: Mapping[str, Any] | None,
    band_kw: Mapping[str, Any] | None = None,
) -> None:
    """Draw a curve, and the band between its limits if they are given.

    Parameters
    ----------
    display : object
        The display, to whose lists `lines_` and `bands_` the artists are appended.
    ax : Axes
        Axes to draw on.
    x : ndarray of shape (n,)
        Positions of the points.
    values : sequence of ndarray of shape (n,)
        The curve, or the curve with its lower and upper limits.
    style : mapping
        One of the styles returned by `curve_styles`.
    line_kw, band_kw : mapping or None
        Keyword arguments given by the user.
    """
    value, *limits = values
    display.lines_ += ax.plot(x, value, **styled(line_kw, **style))
    if limits:
        display.bands_.append(draw_band(ax, x, *limits, style["color"], band_kw))


def draw_band(
    ax: Axes,
    x: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    color: str,
    band_kw: Mapping[str, Any] | None,
) -> PolyCollection:
    """Draw a light band between two limits, below the curves.

    Parameters
    ----------
    ax : Axes
        Axes to draw on.
    x, low, high : ndarray of shape (n,)
        Positions, lower and upper limits.
    color : str
        Colour of the curve to which the band belongs.
    band_kw : mapping or None
        Keyword arguments given by the user.

    Returns
    -------
    band : PolyCollection
        The artist.
    """
    style = {"facecolor": color, "alpha": 0.18, "linewidth": 0, "zorder": 2}
    return ax.fill_between(x, low, high, **styled(band_kw, **style))


def error_bars(
    ax: Axes,
    x: np.ndarray,
    value: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    color: str,
    errorbar_kw: Mapping[str, Any] | None,
) -> ErrorbarContainer:
    """Draw intervals as error bars without a marker.

    Parameters
    ----------
    ax : Axes
        Axes to draw on.
    x, value, low, high : ndarray of shape (n,)
        Positions, estimates, lower and upper limits.
    color : str
        Colour of the bars.
    errorbar_kw : mapping or None
        Keyword arguments given by the user.

    Returns
    -------
    bars : ErrorbarContainer
        The artists.
    """
    # A limit can leave its estimate by rounding, and a length must not be negative.
    lengths = np.maximum(0, np.stack((value - low, high - value)))
    style = {"fmt": "none", "ecolor": color, "elinewidth": 1, "capsize": 2, "zorder": 2}
    return ax.errorbar(x, value, yerr=lengths, **styled(errorbar_kw, **style))
