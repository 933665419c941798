"""Rows as a table, as JSON, and as a section of ``doc/evidence/reproductions.md``."""

import json
import re
from collections import Counter
from dataclasses import asdict

from benchmarks.papers._rules import VERDICTS

__all__ = [
    "json_text",
    "markdown_rows",
    "replace_section",
    "summary",
    "table_text",
    "verdicts_in",
]


def table_text(rows):
    """Return the rows as a table of plain text."""
    width = max(len(row.quantity) for row in rows)
    paper_width = max(5, *(len(row.paper) for row in rows))
    lines = [
        f"{'quantity':<{width}}  {'paper':>{paper_width}}  {'measured':>10} "
        f" {'interval':^23}  verdict"
    ]
    for row in rows:
        numbers = (
            f"{_number(row.measured):>10} "
            f" {f'{_number(row.low):>10} .. {_number(row.high):<9}':^23}"
        )
        lines.append(
            f"{row.quantity:<{width}}  {row.paper:>{paper_width}}  {numbers} "
            f" {_verdict(row)}"
        )
    return "\n".join([*lines, summary(rows)])


def json_text(rows):
    """Return the rows as a JSON list."""
    return json.dumps([asdict(row) for row in rows], indent=1)


def summary(rows):
    """Return how many rows there are with each verdict."""
    counts = Counter(row.verdict for row in rows)
    return (
        f"{len(rows)} rows: "
        + ", ".join(f"{counts[verdict]} {_plural(verdict)}" for verdict in VERDICTS)
        + "."
    )


def markdown_rows(rows, how):
    """Return the section of a reproduction: how it was run, its counts and its rows,
    those that agree folded.
    """
    parts = [how, f"**{summary(rows)}**"]
    agree = [row for row in rows if row.verdict == "agrees"]
    if len(agree) < len(rows):
        parts.append(_table([row for row in rows if row.verdict != "agrees"]))
    if agree:
        parts += [
            f"<details><summary>{len(agree)} rows that agree</summary>",
            _table(agree),
            "</details>",
        ]
    return "\n\n".join(parts)


def _table(rows):
    lines = [
        "| quantity | paper | measured | interval | verdict |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        interval = f"{_number(row.low)} to {_number(row.high)}"
        cells = row.quantity, row.paper, _number(row.measured), interval, _verdict(row)
        lines.append(
            "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
        )
    return "\n".join(lines)


def replace_section(text, name, section):
    """Return a document with what stands between the marks of a section replaced."""
    pattern = re.compile(
        rf"(<!-- begin {re.escape(name)} -->\n).*?(<!-- end {re.escape(name)} -->)",
        re.DOTALL,
    )
    if len(pattern.findall(text)) != 1:
        raise ValueError(
            f"The document needs the marks '<!-- begin {name} -->' and '<!-- end {name}"
            " -->' once."
        )
    return pattern.sub(lambda match: f"{match[1]}{section}\n{match[2]}", text)


def verdicts_in(text):
    """Return {quantity: verdict} of the tables of rows in a document."""
    found = {}
    for line in text.splitlines():
        cells = [
            cell.strip().replace(r"\|", "|")
            for cell in re.split(r"(?<!\\)\|", line)[1:-1]
        ]
        if len(cells) == 5:
            verdict = cells[4].strip("*").partition(" (")[0]
            if verdict in VERDICTS:
                found[cells[0]] = verdict
    return found


def _number(value):
    """Return four digits, and all of those before the point: 18194 and not
    1.819e+04.
    """
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


def _verdict(row):
    if row.needs_width is None:
        return row.verdict
    return (
        f"{row.verdict} (width {row.high - row.low:.2g}, needs {row.needs_width:.2g})"
    )


def _plural(verdict):
    return {
        "agrees": "agree",
        "differs": "differ",
        "not decidable": "are not decidable",
    }[verdict]
