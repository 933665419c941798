"""What stands around the curves: names of axes, titles, captions, legends, numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from textwrap import fill
from typing import TYPE_CHECKING, Any

from skcalib.displays._frames import SMALLEST_TEXT, size_text
from skcalib.displays._layout import (
    covers_a_curve,
    drop_long_labels,
    is_free,
    keep_inside,
    neighbours,
    overlap,
)
from skcalib.displays._style import CURVE, canonical_keywords
from skcalib.displays._words import cut, cut_apart, cut_middle

if TYPE_CHECKING:
    from skcalib.displays._frames import Frame

# In this file *curves* are artists by their entry in the legend, "name: finding"; a
# *finding* is a number such as an error; *keys* are artists that are explained once for
# all curves, by their text; *options* are keywords of Matplotlib's legend.

# The `gid` of legends: a display that is drawn on top of another replaces its legend.
_LEGEND = "skcalib-legend"
# A legend inside axes that are narrower than this (inches), or one with more entries,
# explains no keys.
_EXPLAINED = 1.8
_MOST_INSIDE = 5
_LETTER = 0.56  # mean width of a letter in units of the font size
# share of the height of a figure that a legend with keys may take
_LEGEND_SHARE = 0.16
# Findings are left out of a legend if fewer letters would remain for the names.
_FEWEST_LETTERS = 8
_CORNERS = ("upper left", "lower right", "upper right", "lower left")


def finish(
    display: Any,
    frame: Frame,
    keys: Mapping[str, Any],
    x_label: str,
    y_label: str,
    *,
    titles: Sequence[str] | None = None,
    caption: Sequence[str] | None = None,
    note: str | None = None,
    legend: bool = True,
    with_curves: bool = True,
    legend_kw: Mapping[str, Any] | None = None,
) -> Any:
    """Label axes and panels, add caption and legend, and return the display.

    If the display has created the figure, the legend is placed below the axes, where
    the layout makes room. In axes passed by the user, it is placed inside, where it
    covers no curve; entries that do not fit are omitted, starting with the
    explanations. If the second line of a title would overlap the axes above, it is
    moved inside the axes.

    Parameters
    ----------
    display : object
        The display, on which the attributes `ax_`, `figure_` and `legend_` are set.
    frame : Frame
        The axes in which everything else has been drawn.
    keys : mapping
        Artists that are explained once for all curves, by their legend text.
    x_label, y_label : str
        Labels of the axes. With several panels, only the axes at the border are
        labelled.
    titles : sequence of str, default=None
        Title of each panel.
    caption : sequence of str, default=None
        Texts about a single curve, the longest first; shorter ones are used if there is
        less room.
    note : str, default=None
        Title of the legend.
    legend : bool, default=True
        Whether to explain `keys`.
    with_curves : bool, default=True
        Whether the legend has an entry for each curve.
    legend_kw : mapping, default=None
        The user's keyword arguments for the legend.

    Returns
    -------
    display : object
        The same display.
    """
    _name_axes(frame, x_label, y_label)
    display.figure_ = frame.figure
    display.ax_ = frame.axes if len(frame.axes) > 1 else frame.axes[0]
    for artist in [*frame.figure.legends, *frame.axes[0].get_children()]:
        if artist.get_gid() == _LEGEND:  # that of an earlier display
            artist.remove()
    curves = _curves(frame) if with_curves else {}
    title_artists = {}  # by axes
    if titles is not None:
        title_artists = _write_titles(frame, titles)
    elif caption is not None:
        # If this display was drawn on top of another one, there are several curves:
        # their names stand in the legend, and there is no caption.
        is_only_curve = len(curves) == 1
        title_artists = _write_caption(frame, caption if is_only_curve else None)
        if is_only_curve:
            curves = {}
    size_text(frame)
    explained = dict(keys) if legend else {}
    options = _legend_options(frame, canonical_keywords(legend_kw))
    if frame.is_own:
        display.legend_ = _legend_below(frame, curves, explained, note, options)
        drop_long_labels(frame, display.legend_)
        return display
    # In the user's axes the layout makes no room. The second line of a title that would
    # lie on other axes is written inside instead.
    moved_lines = _shorten_crowded_titles(frame, title_artists)
    drop_long_labels(frame)
    keep_inside(frame)
    display.legend_ = _legend_inside(frame, curves, explained, note, options)
    for ax, line in moved_lines.items():
        # The same text for a corner and, if it fits in none, above the axes.
        add_numbers(ax, [line, line], frame)
    if moved_lines:
        keep_inside(frame)
    return display


def _write_titles(frame, titles):
    """Write a title above each panel, cut to its width; return the text artists by
    axes.
    """
    size = 0.9 * frame.size
    artists = {}
    fitted = _fitting_titles(titles, frame, size)
    for ax, title in zip(frame.axes, fitted, strict=True):
        pad = 0.35 * frame.size
        artists[ax] = ax.set_title(title, fontsize=size, loc="left", pad=pad)
    return artists


def _write_caption(frame, caption):
    """Write above the only panel the longest caption that fits, or remove an earlier
    one for None; return the text artist by axes.
    """
    size = 0.95 * frame.size
    text = ""
    if caption is not None:
        text = _fitting_caption(caption, frame, size)
    ax = frame.axes[0]
    return {ax: ax.set_title(text, loc="left", fontsize=size)}


def _name_axes(frame, x_label, y_label):
    """Label the axes: with several panels, the horizontal axes of the last row and the
    vertical axes of the first column.
    """
    last_row = (len(frame.axes) - 1) // frame.n_columns
    # `lowest` is the lowest of the axes below a panel, such as a histogram, or else the
    # panel itself.
    for i, (ax, lowest) in enumerate(zip(frame.axes, frame.lowest, strict=True)):
        row, column = divmod(i, frame.n_columns)
        if row == last_row:
            lowest.set_xlabel(x_label)
        if column == 0:
            ax.set_ylabel(y_label)


def _curves(frame):
    """Return all drawn curves by their label in the legend; displays mark them by the
    `gid` CURVE.
    """
    curves = {}
    for ax in frame.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            if handle.get_gid() == CURVE:
                curves.setdefault(label, handle)
    return curves


def _shorten_crowded_titles(frame, titles):
    """Remove the finding, the second line, from titles that lie on other axes; return
    the removed findings by their axes. `titles` are text artists.
    """
    if not any("\n" in title.get_text() for title in titles.values()):
        return {}
    frame.figure.figure.draw_without_rendering()
    boxes_of_others = neighbours(frame)
    findings = {}
    for ax, title in titles.items():
        box = title.get_window_extent()
        name, _, finding = title.get_text().partition("\n")
        if finding and any(overlap(box, other) for other in boxes_of_others):
            title.set_text(name)
            findings[ax] = finding
    return findings


# --- Words that fit -------------------------------------------------------------------


def _letters(frame, width=None, size=None):
    """Return how many letters fit `width` inches (default: of a panel) at `size` points
    (default: of the frame).
    """
    if width is None:
        width = frame.width
    if size is None:
        size = frame.size
    width_of_letter = _LETTER * size / 72  # inches
    return max(4, int(width / width_of_letter))


def shortened(text, frame, *, width=None, size=None):
    """Return each line of a text cut to what fits `width` inches (of a panel) at `size`
    points.
    """
    most = _letters(frame, width, size)
    return "\n".join(cut(line, most) for line in text.split("\n"))


def fitting(variants, frame, *, width=None, size=None):
    """Return the first of several texts that fits `width` inches at `size` points; the
    last one is cut to fit.
    """
    for text in variants:
        short = shortened(text, frame, width=width, size=size)
        if short == text:
            break
    return short


def _fitting_caption(variants, frame, size):
    """Return the first caption that fits; if none does, the last one with its lines
    cut: the name in its middle, since names such as those of a hospital's wards differ
    at the end.
    """
    text = fitting(variants, frame, size=size)
    if text in variants:
        return text
    name, *findings = variants[-1].split("\n")
    most = _letters(frame, size=size)
    lines = [cut_middle(name, most)]
    lines += [cut(finding, most) for finding in findings]
    return "\n".join(lines)


def _fitting_titles(titles, frame, size):
    """Return titles of panels cut to their width; their first lines, the names, stay
    different.
    """
    most = _letters(frame, size=size)
    first_lines = [title.split("\n")[0] for title in titles]
    fitted = []
    for name, title in zip(cut_apart(first_lines, most), titles, strict=True):
        findings = [cut(line, most) for line in title.split("\n")[1:]]
        fitted.append("\n".join([name, *findings]))
    return fitted


def _entries(labels, most):
    """Return the entries of a legend cut to at most `most` letters, different ones
    still different. In an entry "name: finding" the name is cut.
    """
    if all(len(label) <= most for label in labels):
        return list(labels)
    names = []
    findings = []
    for label in labels:
        name, separator, finding = label.rpartition(": ")
        if not separator:
            return cut_apart(labels, most)
        names.append(name)
        findings.append(separator + finding)
    # Names keep four letters even where the findings leave fewer.
    room = max(most - max(map(len, findings)), 4)
    names = cut_apart(names, room)
    return [name + finding for name, finding in zip(names, findings, strict=True)]


def _leaves_room_for_names(labels, most):
    """Return whether entries of `most` letters leave at least 8 of them for the names
    before the findings and the colon.
    """
    findings = [label.rpartition(": ")[2] for label in labels if ": " in label]
    return max(map(len, findings), default=0) + 2 <= most - _FEWEST_LETTERS


# --- Legends --------------------------------------------------------------------------


def _legend_options(frame, users):
    """Return the keywords of the legend: the user's, and ours where there are none."""
    options = {
        "frameon": False,
        "fontsize": 0.85 * frame.size,
        "title_fontsize": 0.85 * frame.size,
        "handlelength": 1.6,
        "columnspacing": 1.2,
        "handletextpad": 0.5,
        "borderaxespad": 0.3,
    }
    return {**options, **users}


def _legend_below(frame, curves, keys, note, options):
    """Return a legend below the axes in as many columns as fit, or None if it is empty.
    Where it is too high, keys are left out first, then the findings behind names.
    """
    # (entries, title, share of the height of the figure that it may take)
    variants = (
        ({**curves, **keys}, note, _LEGEND_SHARE + 0.05 * len(curves)),
        (curves, note, 0.4),
        (_without_findings(curves), None, 0.4),
    )
    room = frame.figure.bbox
    for entries, title, most in variants:
        most_columns = len(entries)
        if not entries and title:  # a title without entries takes one column
            most_columns = 1
        for n_columns in range(most_columns, 0, -1):
            keywords = {
                "loc": "outside lower center",
                "ncols": n_columns,
                "title": title,
                **options,
            }
            legend = frame.figure.legend(entries.values(), entries.keys(), **keywords)
            legend.set_gid(_LEGEND)
            box = legend.get_window_extent()
            fits = box.width <= room.width and box.height <= most * room.height
            # The number of columns that the user asks for is kept even if it is too
            # large.
            if fits or "ncols" in options:
                return legend
            legend.remove()
    return None


def _legend_inside(frame, curves, keys, note, options):
    """Return a legend inside the first axes that covers no curve, or None.

    It is tried with everything, without keys, with the names of curves alone, and then
    with smaller text. If each covers a curve, the names are written with the data
    shining through. `curves` and `keys` are artists by their entry.
    """
    n_entries = len(curves) + len(keys)
    explains_keys = frame.width >= _EXPLAINED and n_entries <= _MOST_INSIDE
    names = _without_findings(curves)
    # Entries may take three quarters of the width.
    most_letters = _letters(frame, 0.75 * frame.width, 0.85 * frame.size)
    if not _leaves_room_for_names(curves, most_letters):
        # The findings are left out, and with them the note that says what they are.
        curves = names
        note = None
    contents = []  # (curves, keys, note)
    if explains_keys and keys:
        contents.append((curves, keys, note))
    if curves or note is not None:
        contents.append((curves, {}, note))
    if curves:
        contents.append((names, {}, None))
    has_users_place = "loc" in options or "bbox_to_anchor" in options
    legend = None
    for text_share, content in product((1, 0.8), contents):
        if legend is not None:
            legend.remove()
        legend = _write_legend(frame, *content, text_share, options)
        box = legend.get_window_extent()
        if has_users_place or not covers_a_curve(frame.axes[0], box):
            return legend
    if legend is not None and not curves:
        # Keys and a note must not hide what they are about.
        legend.remove()
        return None
    return legend


def _without_findings(curves):
    """Return the curves, given by their entries "name: finding", by their names alone;
    unchanged if two have the same name.
    """
    by_name = {}
    for label, curve in curves.items():
        name = label.rpartition(": ")[0] or label
        by_name[name] = curve
    if len(by_name) < len(curves):
        return curves
    return by_name


def _write_legend(frame, curves, keys, note, text_share, options):
    """Write a legend inside the first axes where there are the fewest data, which shine
    through, and return it. `curves` and `keys` are artists by their entry, `note` is
    its title or None; `text_share` is relative to the usual size of text in `options`.
    """
    size = 0.85 * text_share * frame.size
    most = _letters(frame, 0.75 * frame.width, size)
    labels = _entries(list(curves), most) + [cut(label, most) for label in keys]
    title = None
    if note is not None:
        title = shortened(note, frame, width=0.9 * frame.width, size=size)
    keywords = {"loc": "best", "title": title, "alignment": "left", **options}
    # A size in words, such as "small", is the user's, and stays.
    if not isinstance(options["fontsize"], str):
        for name in ("fontsize", "title_fontsize"):
            keywords[name] = text_share * options[name]
    handles = [*curves.values(), *keys.values()]
    legend = frame.axes[0].legend(handles, labels, **keywords)
    legend.set(gid=_LEGEND, zorder=5, frame_on=True)
    legend.get_frame().set(alpha=0.75, linewidth=0)
    return legend


# --- Numbers --------------------------------------------------------------------------


def add_numbers(ax, texts, frame):
    """Write the first of several texts that fits into a corner of axes without covering
    what is drawn there: all but the last are tried, in large text, then in small.

    If none fits, the last text is written above the axes.
    """
    from matplotlib.offsetbox import AnchoredText

    # Shares of the usual size of text.
    for share, text, corner in product((0.85, SMALLEST_TEXT), texts[:-1], _CORNERS):
        style = {"size": share * frame.size}
        box = ax.add_artist(AnchoredText(text, corner, frameon=False, prop=style))
        if is_free(ax, box.get_window_extent()):
            return
        box.remove()
    size = 0.7 * frame.size
    lines = [fill(texts[-1], _letters(frame, size=size))]
    if ax.get_title(loc="left"):
        lines.insert(0, ax.get_title(loc="left"))
    ax.set_title("\n".join(lines), loc="left", fontsize=size, pad=0.3 * size)
