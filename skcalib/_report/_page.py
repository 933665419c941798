"""The HTML page of a report: numbers and pictures in, one self-contained text out."""

import json
from html import escape
from importlib.resources import files
from string import Template

from skcalib import __version__
from skcalib._report._html import count, figure, percent
from skcalib._report._sections import (
    certificate_section,
    class_section,
    decision_section,
    error_table,
    period_section,
    recalibrator_section,
    segment_section,
)
from skcalib._report._sentences import SIGNIFICANCE_LEVEL, comparison_sentence

_MOST_CLASSES_NAMED = 12
_CONTENTS = {
    "curve": "Diagram",
    "errors": "Errors",
    "classes": "Classes",
    "segments": "Segments",
    "time": "Time",
    "recalibrate": "Recalibration",
    "decisions": "Decisions",
    "promise": "Promises",
}


def report_page(numbers, pictures):
    """Return the report as one HTML text.

    Parameters
    ----------
    numbers : dict
        What `report_numbers` returns.
    pictures : dict of Picture
        The picture of "reliability", and those of a model's classes by ("classes", name of the model).

    Returns
    -------
    page : str
        HTML without any external file.
    """
    names = [model["name"] for model in numbers["models"]]
    template = Template(files("skcalib._report").joinpath("template.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(numbers.get("title") or f"Calibration of {', '.join(names)}"),
        paper=_paper(numbers),
        command=escape(numbers.get("command") or ""),
        decisions=decision_section(numbers),
        data=_data_sentences(numbers),
        summary=_summaries(numbers["models"]),
        contents=_contents(numbers),
        numbers=_machine_readable(numbers),
        reliability=figure(pictures["reliability"]),
        errors=error_table(numbers["models"]),
        classes=class_section(numbers, pictures),
        segments=segment_section(numbers),
        periods=period_section(numbers),
        recalibrators=recalibrator_section(numbers),
        certificates=certificate_section(numbers),
        level=f"{100 * numbers['confidence_level']:g}",
        significance=f"{100 * SIGNIFICANCE_LEVEL:g}",
        version=escape(__version__),
    )


def _data_sentences(numbers):
    weighted = f" of total weight {count(numbers['total_weight'])}" if numbers["weighted"] else ""
    written = f" of {numbers['modified']}" if numbers["modified"] else ""
    size = f"{numbers['source']}{written}: {numbers['n_rows']:,} rows{weighted}"
    if numbers["classes"] is None:
        event = f"{numbers['label']} = {numbers['event']}, in {percent(numbers['event_frequency'])} of them"
        words = [f"{size}; the event is {event}."]
    else:
        names = numbers["classes"]
        more = f" and {len(names) - _MOST_CLASSES_NAMED} more" * (len(names) > _MOST_CLASSES_NAMED)
        shown = ", ".join(names[:_MOST_CLASSES_NAMED]) + more
        words = [f"{size}; the column {numbers['label']} holds {len(names)} classes: {shown}."]
    return escape(" ".join([*words, *numbers["notes"]]))


def _paper(numbers):
    """Return the paragraphs that a paper can cite, folded; nothing where there are none."""
    words = [escape(f"{model['name']}: {model['paper']}") for model in numbers["models"] if model["paper"]]
    if not words:
        return ""
    return f"<details>\n<summary>Numbers for a paper</summary>\n<p>{'</p><p>'.join(words)}</p>\n</details>"


def _summaries(models):
    words = [_summary(model, len(models) > 1) for model in models]
    compared = comparison_sentence(models)
    return "\n".join([*words, *([f"<p>{escape(compared)}</p>"] if compared else [])])


def _summary(model, several):
    name = f"<strong>{escape(model['name'])}.</strong> " if several else ""
    words = name + escape(model["summary"]).replace("\n", "</p>\n<p>")
    for sign, kept in ((" %", "&nbsp;%"), (" = ", "&nbsp;=&nbsp;"), (" ≤ ", "&nbsp;≤&nbsp;")):
        words = words.replace(sign, kept)
    code = model["advice"]["code"]
    return f"<p>{words}</p>" + (f"<pre><code>{escape(code)}</code></pre>" if code else "")


def _contents(numbers):
    given = {
        "classes": numbers["classes"],
        "segments": numbers["segment"],
        "decisions": numbers["thresholds"] or None,
        "time": numbers["time"] or numbers["baseline"],
    }
    return "\n".join(
        f'<a href="#{key}">{name}</a>' for key, name in _CONTENTS.items() if given.get(key, key) is not None
    )


def _machine_readable(numbers):
    """Return the numbers as JSON that cannot end the element around it."""
    return json.dumps(numbers, allow_nan=False).replace("<", "\\u003c").replace("$", "\\u0024")
