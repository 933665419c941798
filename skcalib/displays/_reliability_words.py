"""What is written in and around a reliability diagram: names of axes, titles, the entries of the legend."""

from skcalib.displays._frames import fitting
from skcalib.displays._style import format_count, matplotlib_text, model_and_size, model_label, percent

_AXIS_LABELS = {
    "binary": ("Predicted probability", "Event frequency"),
    "top_label": ("Probability of the predicted class", "Frequency correct"),
    "marginal": ("Predicted probability", "Frequency of the class"),
}
# What pictures call the numbers of a `calibration_summary`.
NUMBERS = {"observed_expected": "O/E", "intercept": "intercept", "slope": "slope", "ici": "ICI", "e50": "E50"}
NUMBERS |= {"e90": "E90", "emax": "Emax", "brier_score": "Brier", "scaled_brier_score": "scaled Brier", "auc": "AUC"}


def axis_labels(display, frame):
    """Return the names of both axes, with the event where it is known and there is room."""
    names = [[name, name.replace(" the ", " ")] for name in _AXIS_LABELS[display.kind]]
    if display.event is not None:
        event = matplotlib_text(display.event)
        names = [
            [f"{first} of {event}", *rest] for first, rest in zip(("Probability", "Frequency"), names, strict=True)
        ]
    return [fitting(variants, frame) for variants in names]


def numbers_texts(curve):
    """Return the numbers of a curve with their intervals, one a line; without these; and all in one line."""
    bare = [f"{NUMBERS[name]} {_digits(value[0])}" for name, value in curve.numbers.items()]
    limits = ((_digits(low), _digits(high)) for _, low, high in curve.numbers.values())
    full = [f"{words} ({low} to {high})" for words, (low, high) in zip(bare, limits, strict=True)]
    return ["\n".join(full), "\n".join(bare), ", ".join(bare)]


def line_label(curve):
    """Return the entry of a curve in the legend."""
    name = model_label(curve.model)
    if curve.panel is not None:
        return name
    parts = [] if curve.error is None else [_with_interval(curve.error)]
    parts += [f"{NUMBERS[number]} {_digits(value[0])}" for number, value in curve.numbers.items()]
    return f"{name}: {', '.join(parts)}" if parts else name


def captions(curve, error_name):
    """Return what is written about the only curve, in words for more and less room."""
    first, shorter = model_and_size(curve.model, curve.statistics.total_weight)
    if curve.error is None:
        return [first, shorter]
    error = _with_interval(curve.error)
    lines = [(first, f"{error_name} {error}"), (first, f"error {error}"), (shorter, error)]
    return ["\n".join(pair) for pair in lines]


def note(display, panels):
    """Return the text of the legend above its entries."""
    if panels == [None] and len(display.curves) > 1:
        size = f"n = {format_count(display.curves[0].statistics.total_weight)}"
        return size if all(curve.error is None for curve in display.curves) else f"{display.error_name}, {size}"
    if not display.n_panels_left_out:
        return None
    parts = "classes" if display.kind == "marginal" else "groups"
    return f"{len(panels)} of {len(panels) + display.n_panels_left_out} {parts}: those with the largest errors"


def panel_titles(display, frame, panels):
    """Return the titles of the panels, all in the longest words that fit."""
    if panels == [None]:
        return [None]
    variants = list(zip(*(_titles(display, panel) for panel in panels), strict=True))
    size = 0.9 * frame.size
    for titles in variants:
        if all(fitting([title.split("\n")[1]], frame, size=size) in title for title in titles):
            break
    return [fitting([title], frame, size=size) for title in titles]


def _titles(display, panel):
    """Return the name of a panel with its number of rows and its errors, in words for more and less room."""
    curves = [curve for curve in display.curves if panel in (curve.panel, curve.model)]
    statistics = curves[0].statistics
    n_rows = format_count(statistics.total_weight)
    sizes = [f"n = {n_rows}"]
    if display.kind == "marginal":
        sizes.insert(0, f"{format_count(statistics.weighted_label.sum())} of {n_rows} rows")
        panel = f"class {panel}"
    name = matplotlib_text(panel)
    if len(curves) == 1:
        if curves[0].error is None:
            return [f"{name}\n{sizes[0]}", *[f"{name}\n{sizes[-1]}"] * 3]
        error = _with_interval(curves[0].error)
        lines = [f"{sizes[0]}, error {error}", f"error {error}", error, f"{percent(curves[0].error[0])} %"]
    else:
        errors = ", ".join(percent(curve.error[0]) for curve in curves if curve.error is not None)
        lines = [f"{size}, error {errors} %" if errors else size for size in (sizes[0], sizes[0], *[sizes[-1]] * 2)]
    return [f"{name}\n{line}" for line in lines]


def _digits(value):
    return "undefined" if value != value else f"{value:.{3 if abs(value) < 1 else 2}f}"


def _with_interval(error):
    digits = 1 if error[0] == 0 or error[0] >= 0.0095 else 2
    estimate, low, high = (f"{100 * value:.{digits}f}" for value in error)
    return f"{estimate} % ({low} to {high})"
