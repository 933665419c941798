"""Every display at every size: no text overlaps another text or leaves the figure."""

from importlib.util import module_from_spec, spec_from_file_location
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pytest

matplotlib = pytest.importorskip(
    "matplotlib", reason="displays need matplotlib (extra plot)"
)
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.offsetbox import AnchoredText  # noqa: E402
from matplotlib.text import Text  # noqa: E402

pytestmark = pytest.mark.slow

_PATH = Path(__file__).parents[1] / "doc" / "examples" / "look_book.py"


def _look_book():
    spec = spec_from_file_location("look_book", _PATH)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LOOK_BOOK = _look_book()


def visible_texts(figure):
    """Return the texts that a person sees, with their boxes in pixels: tick labels
    outside the limits are not drawn.
    """
    figure.draw_without_rendering()
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
            texts.append((text.get_text(), text.get_window_extent().extents.tolist()))
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
        for text, (x0, y0, x1, y1) in texts
        if x0 < -2 or y0 < -2 or x1 > width + 2 or y1 > height + 2
    ]
    for (one, a), (other, b) in combinations(texts, 2):
        overlap = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        if min(overlap) > 1.5:
            found.append(f"{one!r} overlaps {other!r}")
    return found


@pytest.mark.parametrize(
    ("names", "most", "expected"),
    [
        (["ab", "abcdef"], 4, ["ab", "abc…"]),
        (["ward one", "ward two"], 6, ["war…ne", "war…wo"]),
        # equal at both ends: cut at the beginning
        (["aaaaaa1zzz", "aaaaaa2zzz"], 5, ["…1zzz", "…2zzz"]),
        (["aaaaaa1zzzzz", "aaaaaa2zzzzz"], 5, ["aa… 1", "aa… 2"]),
        (["same name", "same name"], 4, ["sam…", "sam…"]),
    ],
)
def test_names_that_are_cut_stay_different(names, most, expected):
    from skcalib.displays._words import cut_apart

    assert cut_apart(names, most) == expected


def test_rows_of_a_forest_stay_different():
    from skcalib.displays._forest import short_names

    names = [f"Hospital of the Holy Ghost, ward {number}" for number in (1, 2)]
    short = short_names(names)
    assert [name[-6:] for name in short] == ["ward 1", "ward 2"]
    assert max(map(len, short)) == 28
    (two_lines,) = short_names(["x at most 12345678 and y > 4"], separator=" and ")
    assert two_lines == "x at most 12345678 and y > 4"
    (two_lines,) = short_names(
        ["age at most 12345678 and height > 4"], separator=" and "
    )
    assert two_lines == "age at most 12345678 and\nheight > 4"


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
    # On slides, texts have more room.
    ["small", pytest.param("default", marks=pytest.mark.slow)],
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


def covered_curves(figure):
    """Return the axes, by number, in which a legend lies on a curve of a display."""
    figure.draw_without_rendering()
    found = []
    for number, ax in enumerate(figure.axes):
        legend = ax.get_legend()
        if legend is None:
            continue
        box = legend.get_window_extent()
        for line in ax.lines:
            if line.get_gid() == "skcalib-curve":
                path = line.get_path().transformed(line.get_transform())
                if path.intersects_bbox(box, False):
                    found.append(number)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("size", ["default", "slide"])
def test_a_grid_full_of_pictures_with_long_labels(size):
    for case, figure in LOOK_BOOK.grids([size], ["default"]):
        assert faults(figure) == [], case
        assert covered_curves(figure) == [], case
        # Names that begin alike stay different.
        for ax in figure.axes:
            if ax.get_legend() is not None:
                entries = [text.get_text() for text in ax.get_legend().get_texts()]
                assert len(set(entries)) == len(entries), case
        titles = [ax.get_title(loc="left").split("\n")[0] for ax in figure.axes]
        named = [title for title in titles if title.endswith("ward 1")]
        assert named, case
        if size == "default":  # on a slide there is room for the whole name
            assert all("…" in title for title in named), case
        plt.close("all")


def test_numbers_stand_inside_where_a_title_would_lie_on_the_axes_above():
    y, models, _ = LOOK_BOOK.data()
    figure = plt.figure(figsize=(5, 8))
    # Axes in no grid, which no layout moves: there is room for one line of a title.
    upper = figure.add_axes([0.2, 0.56, 0.7, 0.38])
    lower = figure.add_axes([0.2, 0.07, 0.7, 0.4])
    display = LOOK_BOOK.CumulativeDifferenceDisplay
    first = display.from_predictions(y, models["net"], name="above", ax=upper)
    second = display.from_predictions(y, models["net"], name="below", ax=lower)
    assert first.ax_.get_title(loc="left").count("\n") == 1
    assert second.ax_.get_title(loc="left") == "below, n = 1,200"
    (inside,) = lower.findobj(AnchoredText)
    assert inside.txt.get_text() == "Kuiper 6.5 % (p < 0.001)"
    assert not upper.findobj(AnchoredText)
    assert faults(figure) == []
    plt.close("all")


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


@pytest.mark.slow
def test_the_dark_style_keeps_the_contrast():
    names = ["reliability", "cumulative"]
    alone = LOOK_BOOK.cases(names, ["default"], ["dark_background"])
    for case, figure in chain(alone, LOOK_BOOK.grids(["slide"], ["dark_background"])):
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
