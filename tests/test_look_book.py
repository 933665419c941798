"""Every display at every size: no text overlaps another text or leaves the figure."""

from importlib.util import module_from_spec, spec_from_file_location
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

matplotlib = pytest.importorskip(
    "matplotlib", reason="displays need matplotlib (extra plot)"
)
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.text import Text  # noqa: E402

_PATH = Path(__file__).parents[1] / "doc" / "examples" / "look_book.py"


def _look_book():
    spec = spec_from_file_location("look_book", _PATH)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LOOK_BOOK = _look_book()


def visible_texts(figure):
    """Return the texts that a person sees, with their boxes in pixels: tick labels outside the limits are not drawn."""
    figure.canvas.draw()
    hidden = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            margin = 1e-13 * (high - low)  # a logarithmic axis may begin near 0
            for ticks in (axis.get_major_ticks(), axis.get_minor_ticks()):
                for tick in ticks:
                    if not (
                        ax.axison and low - margin <= tick.get_loc() <= high + margin
                    ):
                        hidden |= {tick.label1, tick.label2}
    texts = []
    for text in figure.findobj(Text):
        if text.get_text().strip() and text not in hidden and _is_visible(text):
            texts.append((text.get_text(), text.get_window_extent()))
    return texts


def _is_visible(artist):
    while artist is not None:
        if not artist.get_visible():
            return False
        artist = (
            getattr(artist, "axes", None)
            if getattr(artist, "axes", None) is not artist
            else None
        )
    return True


def faults(figure):
    """Return what is wrong with the texts of a figure, in words."""
    texts = visible_texts(figure)
    width, height = figure.bbox.width, figure.bbox.height
    found = [
        f"{text!r} leaves the figure"
        for text, box in texts
        if box.x0 < -2 or box.y0 < -2 or box.x1 > width + 2 or box.y1 > height + 2
    ]
    for (one, a), (other, b) in combinations(texts, 2):
        overlap = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        if min(overlap) > 1.5:
            found.append(f"{one!r} overlaps {other!r}")
    return found


def test_faults_are_found():
    figure, ax = plt.subplots(figsize=(3, 3))
    ax.set(xticks=[], yticks=[])
    assert faults(figure) == []
    ax.text(0.5, 0.5, "one")
    ax.text(0.52, 0.5, "two")
    ax.text(3, 0.5, "outside")
    assert faults(figure) == ["'outside' leaves the figure", "'one' overlaps 'two'"]
    plt.close("all")


@pytest.mark.parametrize(
    "size",
    [
        "small",
        *(pytest.param(size, marks=pytest.mark.slow) for size in ("default", "slide")),
    ],
)
@pytest.mark.parametrize("name", LOOK_BOOK.pictures())
def test_texts_have_room(name, size):
    styles = ("default",)  # a style changes colours, not places
    found = {}
    for case, figure in LOOK_BOOK.cases([name], [size], styles):
        if wrong := faults(figure):
            found[case] = wrong
        plt.close("all")
    assert not found


@pytest.mark.slow
@pytest.mark.parametrize("size", [(3, 3), tuple(plt.rcParamsDefault["figure.figsize"])])
@pytest.mark.parametrize(
    "name", ["reliability", "reliability_overlay", "groups", "validity", "change"]
)
def test_given_axes_without_a_layout_keep_their_words_inside(name, size):
    figure, ax = plt.subplots(figsize=size)
    LOOK_BOOK.pictures()[name](ax)
    assert faults(figure) == []
    place = ax.get_position()
    assert place.width > 0.25
    plt.close("all")


def test_the_dark_style_keeps_the_contrast():
    for case, figure in LOOK_BOOK.cases(
        ["reliability", "cumulative"], ["default"], ["dark_background"]
    ):
        figure.canvas.draw()
        grey = LOOK_BOOK.seen(np.asarray(figure.canvas.buffer_rgba()) / 255, "grey")[
            ..., 0
        ]
        assert np.median(grey) < 0.2, case
        assert np.mean(grey > 0.5) > 0.005, case
        plt.close("all")


def test_colours_differ_in_grey_and_for_a_red_green_deficiency():
    y, models, _ = LOOK_BOOK.data()
    display = LOOK_BOOK.ReliabilityDisplay.from_predictions(y, models, metric=None)
    colors = np.array(
        [matplotlib.colors.to_rgb(line.get_color()) for line in display.lines_]
    )[None]
    seen = LOOK_BOOK.seen(colors, "deuteranopia")[0]
    assert min(np.abs(a - b).max() for a, b in combinations(seen, 2)) > 0.15
    marks = {(line.get_marker(), str(line._dash_pattern)) for line in display.lines_}
    assert len(marks) == len(models)
    plt.close("all")
