"""The HTML page of a report: numbers and pictures in, one self-contained text out."""

import json
from base64 import b64encode
from html import escape
from importlib.resources import files
from string import Template

from skcalib import __version__
from skcalib._report._numbers import SMALL_SEGMENT
from skcalib._report._recalibration import MOST_ROWS, N_FOLDS
from skcalib._report._sentences import SIGNIFICANCE_LEVEL, comparison_sentence, pvalue_words, segment_sentence

__all__ = ["report_page"]

_MOST_SEGMENTS = 50  # that a page shows; the JSON has all
_EXPLAINED = {
    "calibration error": "root mean square gap between score and event frequency, noise taken away; up to 15 bins of "
    "equal mass",
    "expected calibration error": "mean absolute gap, 15 bins of equal width; noise makes it too large, so that its "
    "interval, from which that is removed, may lie below it",
    "sweep calibration error": "mean absolute gap, as many bins as keep the event frequency rising",
    "maximum calibration error": "gap of the worst of 15 bins of equal width; a bin with few rows may decide it",
    "calibration slope": "1 is right; below 1 the scores are too extreme",
    "calibration in the large": "0 is right; below 0 the scores are too high, in log-odds",
    "Brier score": "mean squared difference of score and event; rewards calibration and sharpness together",
    "log-loss": "minus the mean log-probability of what happened, in nats",
}
_PLAIN_NUMBERS = {"calibration slope", "calibration in the large", "Brier score", "log-loss"}


def report_page(numbers, pictures):
    """Return the report as one HTML text.

    Parameters
    ----------
    numbers : dict
        What `report_numbers` returns.
    pictures : dict of Picture
        The pictures, by "reliability" and "bin_count"; the latter may be missing.

    Returns
    -------
    page : str
        HTML without any external file.
    """
    template = Template(files("skcalib._report").joinpath("template.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(f"Calibration of {', '.join(model['name'] for model in numbers['models'])}"),
        data=_data_sentence(numbers),
        summary=_summaries(numbers["models"]),
        numbers=_machine_readable(numbers),
        reliability=_figure(pictures["reliability"]),
        errors=_error_table(numbers["models"]),
        segments=_segment_section(numbers),
        periods=_period_section(numbers),
        recalibrators=_recalibrator_section(numbers),
        certificates=_certificate_section(numbers, pictures.get("bin_count")),
        level=f"{100 * numbers['confidence_level']:g}",
        significance=f"{100 * SIGNIFICANCE_LEVEL:g}",
        version=escape(__version__),
    )


def _data_sentence(numbers):
    weighted = f" of total weight {numbers['total_weight']:,.6g}" if numbers["weighted"] else ""
    return escape(
        f"{numbers['source']}: {numbers['n_rows']:,} rows{weighted}; the event is {numbers['label']} = "
        f"{numbers['event']}, in {_percent(numbers['event_frequency'])} of them."
    )


def _summaries(models):
    words = [_summary(model, len(models) > 1) for model in models]
    compared = comparison_sentence(models)
    return "\n".join([*words, *([f"<p>{escape(compared)}</p>"] if compared else [])])


def _machine_readable(numbers):
    """Return the numbers as JSON that cannot end the element around it."""
    return json.dumps(numbers, allow_nan=False).replace("<", "\\u003c").replace("$", "\\u0024")


def _summary(model, several):
    name = f"<strong>{escape(model['name'])}.</strong> " if several else ""
    sentence = escape(model["summary"]).replace(" %", "&nbsp;%").replace(" = ", "&nbsp;=&nbsp;")
    return f"<p>{name}{sentence.replace(' ≤ ', '&nbsp;≤&nbsp;')}</p>"


def _figure(picture):
    """Return a picture inside the page: an image, so that it has a natural size and its words."""
    data = b64encode(picture.svg).decode("ascii")
    return (
        f'<figure><img src="data:image/svg+xml;base64,{data}" alt="{escape(picture.alt, quote=True)}">'
        f"<figcaption>{escape(picture.caption)}</figcaption></figure>"
    )


def _per_model(numbers, section):
    """Return a section's part for each model, under its name where there are several."""
    models = numbers["models"]
    heading = "<h3>{}</h3>\n" if len(models) > 1 else ""
    return "\n".join(heading.format(escape(model["name"])) + section(model) for model in models)


def _error_table(models):
    """Return a table with a line for each measure and a column for each model."""
    measured = [{part["name"]: part for part in [*model["errors"], *model["proper_scores"]]} for model in models]
    lines = []
    for name, explained in _EXPLAINED.items():
        shown = _number if name in _PLAIN_NUMBERS else _percent
        cells = [_with_interval(shown, parts[name]) if name in parts else "–" for parts in measured]
        lines.append([f"{name}<small>{escape(explained)}</small>", *cells])
    tests = [model["test"] for model in models]
    verdicts = [
        f"{escape(pvalue_words(test['pvalue'], test['smallest_pvalue']))}"
        f"<small>{'rejected' if test['rejects'] else 'not rejected'}</small>"
        for test in tests
    ]
    lines.append([f"test of calibration<small>{escape(tests[0]['name'])}</small>", *verdicts])
    return _table("Errors", ["measure", *(model["name"] for model in models)], lines)


def _with_interval(shown, values, estimate="estimate", low="low", high="high"):
    """Return a cell with an estimate and its interval below."""
    if values[low] is None:
        return shown(values[estimate])
    return f"{shown(values[estimate])}<small>{shown(values[low]).removesuffix(' %')} to {shown(values[high])}</small>"


def _segment_section(numbers):
    if numbers["segment"] is None:
        return "<p>No segment column was given (<code>--segment</code>).</p>"
    note = (
        "<p>The bias is the mean score minus the event frequency: above 0 the scores are too high. The segments whose "
        "bias is least likely to be chance come first. The adjusted p-value takes their number into account.</p>"
    )
    if any(row["is_small"] for row in numbers["models"][0]["segments"]):
        note += f"<p>Segments marked * have fewer than {SMALL_SEGMENT} rows.</p>"
    return note + _per_model(numbers, _segment_table)


def _segment_table(model):
    rows = model["segments"]
    shown = rows[:_MOST_SEGMENTS]
    widest = max(max(abs(row["bias_low"]), abs(row["bias_high"])) for row in shown)
    lines = [
        [
            escape(row["segment"]) + " *" * row["is_small"],
            _bias_words(row),
            _bias_picture(row, widest),
            pvalue_words(row["adjusted_pvalue"]).removeprefix("p ").removeprefix("= "),
            f"{row['n_rows']:,.6g}",
            _percent(row["mean_score"]),
            _percent(row["event_frequency"]),
            _with_interval(_percent, row),
        ]
        for row in shown
    ]
    left_out = len(rows) - len(lines)
    more = f"<p>{left_out} more segments with larger p-values are left out.</p>" if left_out else ""
    head = ["segment", "bias", "", "adjusted p", "rows", "mean score", "event frequency", "error"]
    words = f"<p>{escape(segment_sentence(rows))}</p>"
    return words + _table(f"Segments of {model['name']}", head, lines) + more


def _bias_words(row):
    """Return the bias in points, its direction in words where it is significant, and its interval."""
    direction = ""
    if row["adjusted_pvalue"] < SIGNIFICANCE_LEVEL:
        direction = " too high" if row["bias"] > 0 else " too low"
    low, high = (f"{100 * row[key]:+.1f}" for key in ("bias_low", "bias_high"))
    return f"{100 * row['bias']:+.1f}{direction}<small>{low} to {high} points</small>"


def _bias_picture(row, widest):
    """Return a small picture of the bias and its interval around 0."""

    def at(value):
        return 60 + 56 * value / (widest or 1)

    color = "#d55e00" if row["adjusted_pvalue"] < SIGNIFICANCE_LEVEL else "#666"
    low, high, middle = (at(row[key]) for key in ("bias_low", "bias_high", "bias"))
    return (
        '<svg class="bias" width="120" height="16" viewBox="0 0 120 16" role="img" aria-hidden="true">'
        '<line x1="60" y1="1" x2="60" y2="15" stroke="#bbb"/>'
        f'<line x1="{low:.1f}" y1="8" x2="{high:.1f}" y2="8" stroke="{color}" stroke-width="2"/>'
        f'<circle cx="{middle:.1f}" cy="8" r="3.5" fill="{color}"/></svg>'
    )


def _period_section(numbers):
    if numbers["time"] is None and numbers["baseline"] is None:
        return "<p>No time column was given (<code>--time</code>), and no earlier file (<code>--baseline</code>).</p>"
    against = "the first period" if numbers["baseline"] is None else escape(numbers["baseline"])
    note = (
        f"<p>Each period is compared with {against}. The p-value is that of \u201cthe calibration curve has not "
        "changed\u201d, whatever the scores did. It takes the number of periods into account.</p>"
    )
    if numbers["weighted"]:
        note = "<p>Rows with weights have no test of change.</p>"
    return note + _per_model(numbers, _period_table)


def _period_table(model):
    rows = model["periods"]
    widest = max(max(abs(row["bias_low"]), abs(row["bias_high"])) for row in rows)
    lines = [
        [
            escape(row["period"]),
            _bias_words({**row, "adjusted_pvalue": 1.0}),
            _bias_picture({**row, "adjusted_pvalue": _or_one(row["change_adjusted_pvalue"])}, widest),
            _change_words(row["change_adjusted_pvalue"]),
            f"{row['n_rows']:,.6g}",
            _percent(row["mean_score"]),
            _percent(row["event_frequency"]),
            _with_interval(_percent, row),
        ]
        for row in rows
    ]
    head = ["period", "bias", "", "change: adjusted p", "rows", "mean score", "event frequency", "error"]
    return _table(f"Periods of {model['name']}", head, lines)


def _or_one(pvalue):
    return 1.0 if pvalue is None else pvalue


def _change_words(pvalue):
    if pvalue is None:
        return "–"
    words = pvalue_words(pvalue).removeprefix("p ").removeprefix("= ")
    return f"{words}<small>changed</small>" if pvalue < SIGNIFICANCE_LEVEL else words


def _recalibrator_section(numbers):
    note = (
        f"<p>Each recalibrator was fitted on {N_FOLDS - 1} of {N_FOLDS} parts of the rows and judged on the other, in "
        "turn. The gain is the share of the Brier score and of the log-loss that it saves; where its interval lies "
        "above 0, recalibrating pays.</p>"
    )
    if numbers["n_rows"] > MOST_ROWS:
        note += f"<p>From a random sample of {MOST_ROWS:,} rows.</p>"
    return note + _per_model(numbers, _recalibrator_table)


def _recalibrator_table(model):
    if not model["recalibrators"]:
        return f"<p>Not possible: it takes {N_FOLDS} rows with the event and {N_FOLDS} without.</p>"
    before = next(row for row in model["recalibrators"] if row["name"] == "as it is")
    lines = [
        [
            escape(row["name"]),
            "–" if row is before else _gain(row, "brier_gain", before["brier"]),
            "–" if row is before else _gain(row, "gain", before["log_loss"]),
            _number(row["brier"]),
            _number(row["log_loss"]),
            _percent(row["calibration_error"]),
        ]
        for row in model["recalibrators"]
    ]
    head = ["recalibrator", "Brier score saved", "log-loss saved", "Brier score", "log-loss", "calibration error"]
    return _table(f"Recalibrators of {model['name']}", head, lines)


def _gain(row, key, whole):
    """Return a gain and its interval as shares of the score before."""
    if not whole:
        return "–"
    estimate, low, high = (100 * row[name] / whole for name in (key, f"{key}_low", f"{key}_high"))
    return f"{estimate:+.1f} %<small>{low:+.1f} to {high:+.1f}</small>"


def _certificate_section(numbers, picture):
    if numbers["weighted"]:
        return "<p>None: the theory is about rows drawn alike, and these have weights.</p>"
    lines = [
        [str(row["n_bins"]), *(_tolerance(row[key]) for key in ("conditional", "marginal", "expected_error"))]
        for row in numbers["certificates"]
    ]
    head = ["bins", "every probability within", "that of a random row within", "expected error at most"]
    table = _table("Certificates", head, lines)
    return table + (_figure(picture) if picture is not None else "")


def _table(caption, head, lines):
    """Return a table in a box that scrolls by itself where the screen is narrow."""
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = "\n".join(
        f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
        for first, *cells in lines
    )
    label = escape(caption, quote=True)
    return (
        f'<div class="scroll" role="region" aria-label="{label}" tabindex="0"><table><thead><tr>{titles}</tr></thead>'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _percent(share):
    return "–" if share is None else f"{100 * share:.2f} %"


def _number(value):
    return "–" if value is None else f"{value:.4f}"


def _tolerance(value):
    return "nothing" if value >= 1 else f"{value:.4f}"
