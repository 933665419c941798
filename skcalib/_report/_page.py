"""The HTML page of a report: numbers and pictures in, one self-contained text out."""

from base64 import b64encode
from functools import cache

import skcalib._report._format as show
import skcalib._report._sections as say
from skcalib import __version__
from skcalib._report._groups import SMALL_CLASS, SMALL_SEGMENT
from skcalib._report._phrases import listed
from skcalib._report._samples import SIGNIFICANCE_LEVEL
from skcalib._report._table import event_assumed
from skcalib._verdicts import rounded

_MOST_GROUPS = 50  # groups that a page shows; the JSON has all
_MOST_CLASSES_NAMED = 12
# Explanations of measures by their name, and those that differ with several classes.
_EXPLAINED = {
    "mean absolute calibration error": (
        "mean absolute gap between score and event frequency, noise subtracted; up to"
        " 15 equal-mass bins"
    ),
    "root mean square calibration error": (
        "large gaps count more; noise is subtracted from the squares, so this error"
        " may fall below the mean absolute calibration error"
    ),
    "expected calibration error": (
        "mean absolute gap in 15 equal-width bins; noise makes it too large, and its"
        " interval, which allows for that, may lie below it"
    ),
    "maximum calibration error": (
        "largest gap in 15 equal-width bins; bins with fewer than 50 samples are merged"
    ),
    "calibration slope": "1 is right; below 1 the scores are too extreme",
    "calibration in the large": (
        "in log-odds: 0 is right; below 0 the scores are too high"
    ),
    "Brier score": (
        "mean squared difference between score and event; rewards calibration and"
        " sharpness together"
    ),
    "log-loss": "minus the mean log-probability of what happened, in nats",
}
_EXPLAINED_CLASSES = {
    "Brier score": (
        "mean squared difference between score and event, summed over the classes;"
        " rewards calibration and sharpness together"
    ),
    "log-loss": "minus the mean log-probability of the true class, in nats",
}


def report_page(numbers, pictures):
    """Return the report as one HTML text.

    Parameters
    ----------
    numbers : dict
        What `report_numbers` returns.
    pictures : dict of Picture
        The picture of "reliability", and those of a model's classes by ("classes", name
        of the model).

    Returns
    -------
    page : str
        HTML without any external file.
    """
    names = ", ".join(model["name"] for model in numbers["models"])
    return (
        _pages()
        .get_template("page.html.jinja")
        .render(
            numbers,
            numbers=numbers,
            title=numbers.get("title") or f"Calibration of {names}",
            command=numbers.get("command") or "",
            pictures=pictures,
            data=_data_sentence(numbers),
            errors=_error_lines(numbers["models"]),
            # Functions that the template calls: `say` makes sentences, `show` cells.
            say=say,
            listed=listed,
            show=show,
            level=rounded(100 * numbers["confidence_level"]),
            significance=SIGNIFICANCE_LEVEL,
            tolerance_points=show.rounded(100 * numbers["tolerance"]),
            small={"segment": SMALL_SEGMENT, "class": SMALL_CLASS},
            most_groups=_MOST_GROUPS,
            version=__version__,
        )
    )


def counts_page(numbers, picture):
    """Return the report of a table of counts as one HTML text. `numbers` is the dict of
    what it shows, `picture` the `Picture` of its curve.
    """
    return (
        _pages()
        .get_template("counts.html.jinja")
        .render(
            numbers=numbers,
            title=numbers.get("title") or f"Calibration of {numbers['source']}",
            command=numbers.get("command") or "",
            picture=picture,
            show=show,
            version=__version__,
        )
    )


@cache
def _pages():
    """Return the environment of the pages' templates, which are compiled once."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    pages = Environment(
        loader=PackageLoader("skcalib", "_report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # The page embeds its numbers as JSON, which has no NaN.
    pages.policies["json.dumps_kwargs"] = {"allow_nan": False}
    pages.filters["base64"] = lambda data: b64encode(data).decode("ascii")
    return pages


def _error_lines(models):
    """Return for each measure that a model has: its name, its explanation, and each
    model's measure (a dict, or None).
    """
    # By model, the measures by name.
    measured = []
    for model in models:
        measures = [*model["errors"], *model["proper_scores"]]
        measured.append({measure["name"]: measure for measure in measures})
    explained = dict(_EXPLAINED)
    if "classes" in models[0]:
        explained |= _EXPLAINED_CLASSES
    lines = []
    for name, words in explained.items():
        measure_of_models = [measures.get(name) for measures in measured]
        if any(measure_of_models):
            lines.append((name, words, measure_of_models))
    return lines


def _data_sentence(numbers):
    """Return sentences on the data of the report: the file, its rows, the event or the
    classes, and notes.
    """
    weighted = ""
    share = "occurs in {} of them"
    if numbers["weighted"]:
        share = "accounts for {} of the weight"
        weighted = f" with a total weight of {show.count(numbers['total_weight'])}"
    written = ""
    if numbers["modified"]:
        written = f" (modified {numbers['modified']})"
    classes = numbers["classes"]
    if classes is None:
        frequency = show.percent(numbers["event_frequency"], numbers["n_rows"])
        about = (
            f"; the event ({numbers['label']} = {numbers['event']})"
            f" {share.format(frequency)}."
        )
    else:
        named = listed(classes, _MOST_CLASSES_NAMED)
        about = (
            f"; the column {numbers['label']} holds {len(classes)} classes: {named}."
        )
    size = f"{numbers['source']}{written}: {numbers['n_rows']:,} rows{weighted}"
    # That the event is assumed stands in the sentence about the rows.
    of_event = event_assumed(numbers["label"], numbers["event"])
    assumed = [text for text in numbers["assumed"] if text != of_event]
    points = show.rounded(100 * numbers["tolerance"])
    unit = "percentage point" if points == "1" else "percentage points"
    tolerance = f"Tolerance: {points} {unit}."
    return " ".join([size + about, *assumed, tolerance, *numbers["notes"]])
