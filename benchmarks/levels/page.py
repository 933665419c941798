"""Rows of the table of levels: their file, and the page that is made of them."""

import json
import re
from collections import Counter
from dataclasses import dataclass

__all__ = ["Row", "read_rows", "reason_of", "with_tables"]

_BEGIN, _END = (
    "<!-- tables: made by `python -m benchmarks.levels --page` -->\n",
    "<!-- end of the tables -->",
)


@dataclass(frozen=True)
class Row:
    """A promise on a shape of data: how often it was kept, and the standard error of
    that.

    `measured` is the coverage of an interval, the share of calibrated samples that a
    test rejects, or the share of samples whose certified threshold breaks its promise
    on new rows; `accepted` is then the mean share of new rows at or above it. The
    verdict is "holds" unless the promise is missed by more than two standard errors.
    `date` is the day of the simulation.
    """

    kind: str
    promise: str
    shape: str
    promised: float
    measured: float
    standard_error: float
    runs: int
    verdict: str
    accepted: float | None = None
    date: str = ""


# Why a promise is missed: the first of these expressions that fits "promise, shape".
_REASONS = [
    ("^Hosmer-Lemeshow", "bins expect too few events for its approximation; it warns"),
    (
        "^Spiegelhalter",
        (
            "few events or non-events are expected, for which a normal approximation is"
            " poor; it warns"
        ),
    ),
    (
        'interval="basic"',
        (
            "resampling adds noise to the noise of the labels; it warns, and is not the"
            " default"
        ),
    ),
    (
        "without clusters",
        "rows in the order of time are taken to be independent; the report notices it",
    ),
    (
        "^l1, plugin, 15 bins, one of 15 bins",
        "the bins without an error look miscalibrated by chance; its docstring says so",
    ),
    (
        "^naive search",
        "a threshold chosen by what the rows at hand look like: not of this library",
    ),
    (
        "^(precision|error when answered), .*of the same rows, ",
        "a map that was fitted to the rows of the certificate; it says so",
    ),
    ("^(uncertainty-calibration|MAPIE|MCGrad|statsmodels)", "of another library"),
    (
        "clusters, rare",
        (
            "39 events or fewer are expected, from which the dependence is not known"
            " well; it warns"
        ),
    ),
    (
        "^verify, 10 bins, s",
        "upper limits are approximate where every bin is off; its docstring says so",
    ),
    ("^(shift|change).*unequal", "one of the two samples consists of two clusters"),
    (
        "^estimated .*(another mix of features$|known twice as early)",
        (
            "the event frequency at a score has changed, or labels are not missing at"
            " random: what is assumed does not hold"
        ),
    ),
    (
        "^estimated .*few of both",
        "200 labelled samples: the curve of the bins is not known well",
    ),
    (
        "^net benefit in clusters at a threshold",
        (
            "few clusters, of which one in 29 is treated as a whole; its docstring"
            " says so"
        ),
    ),
    (
        "^recalibration gain, .*1 % events",
        "ten events: gains of the rows are skewed; its docstring says so",
    ),
    (
        "^standardised net benefit",
        "the ratio by the event frequency is less normal with few events",
    ),
]
_FAMILIES = [  # name, kind, and expression of "promise, shape", the first that fits
    (
        "not recommended: basic bootstrap, naive search, no clusters",
        "",
        "basic|^naive|without clusters",
    ),
    ("other libraries", "", "^(uncertainty-calibration|MAPIE|MCGrad|statsmodels)"),
    (
        "bins, and errors with bins",
        "coverage",
        "^(interval of the|l1|l2|ECE, 15 bins,|maximum|worst class)",
    ),
    (
        "errors without bins",
        "coverage",
        "^(sweep|smooth|KDE|neighborhood|Kolmogorov-Smirnov|Kuiper)",
    ),
    ("`ScalingBinning.verify`", "coverage", "^verify"),
    (
        "bias of a group, shift between two samples",
        "coverage",
        "^(bias by group|shift|importance weights: bias)",
    ),
    (
        "slope, `calibration_summary`, `recalibration_gain`",
        "coverage",
        "^(calibration slope|summary|recalibration gain)",
    ),
    ("net benefit", "coverage", "net benefit"),
    ("performance without labels", "coverage", "^estimated"),
    (
        "clusters: each one, their mean, a new one, bins of a diagram",
        "coverage",
        "(of a new|over|of each) hospitals?,|^bars by cluster",
    ),
    ("tests by resampling", "size", "^resampled"),
    (
        "tests in closed form",
        "size",
        "^(importance weights: |Kuiper|Kolmogorov-Smirnov|Spiegelhalter|Hosmer)",
    ),
    ("tests of groups, segments, changes and models", "size", "."),
    ("certified thresholds and routing", "broken", "."),
    ("other intervals", "coverage", "."),
]
_TITLES = {
    "coverage": (
        "Intervals",
        "interval",
        (
            "Coverage. An interval of a calibrated model can miss the true error 0 on"
            " one side only, in 5 % of samples. So .95 is exact there."
        ),
    ),
    "size": (
        "Tests",
        "test",
        (
            "Share of samples in which a true hypothesis is rejected. The asymptotic"
            " tests of Kuiper and of Kolmogorov and Smirnov\nare conservative for few"
            " rows and ties. If the data have clusters or weights, the test is told so."
        ),
    ),
    "broken": (
        "Certified thresholds",
        "promise",
        (
            "Share of samples whose threshold breaks its promise on new rows. A promise"
            " is a limit of .1 or a floor of .9, with 90 %\nconfidence, so .100 is"
            " allowed. In the folded tables the mean share of new rows that is accepted"
            " (answered, or predicted\nto be an event) stands behind it."
        ),
    ),
}


def read_rows(path):
    """Return the rows of a file by promise and shape, of each the last one with the
    most samples.
    """
    rows = {}
    for line in path.read_text().splitlines() if path and path.exists() else ():
        row = Row(**json.loads(line))
        if row.runs >= getattr(rows.get((row.promise, row.shape)), "runs", 0):
            rows[row.promise, row.shape] = row
    return rows


def reason_of(row):
    """Return why a row misses its promise; None where nobody has named it."""
    found = (
        reason
        for pattern, reason in _REASONS
        if re.search(pattern, f"{row.promise}, {row.shape}")
    )
    return next(
        found,
        "within three standard errors: may be chance" if _missed_by(row) < 3 else None,
    )


def with_tables(page, rows):
    """Return the text of the page with tables of these rows between its marks."""
    before, rest = page.split(_BEGIN)
    parts = [_summary(rows), _misses(rows), *(_of_kind(rows, kind) for kind in _TITLES)]
    return f"{before}{_BEGIN}\n" + "\n".join(parts) + f"\n{_END}" + rest.split(_END)[1]


def _missed_by(row):
    """Return by how many standard errors a promise is missed."""
    return (
        (row.measured - row.promised)
        / row.standard_error
        * (-1 if row.kind == "coverage" else 1)
    )


def _table(head, lines):
    return (
        "\n".join((f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines)) + "\n"
    )


def _misses(rows):
    missed = sorted(
        (row for row in rows if row.verdict == "misses"), key=_missed_by, reverse=True
    )
    folded = {}
    for row in missed:
        folded.setdefault(
            (row.promise, row.promised, reason_of(row) or "**not named**"), []
        ).append(row)
    lines = [
        f"| {promise} | {_few([row.shape for row in some])} | {promised:.3g} |"
        f" {_spread(some)} | {reason} |"
        for (promise, promised, reason), some in folded.items()
    ]
    text = (
        f"## What does not hold\n\n{len(missed)} of {len(rows)} rows miss their promise"
        " by more than two standard errors. A promise that holds exactly\nis missed so"
        " in one row of 44, by chance.\n\n"
    )
    return text + _table(("promise", "data", "promised", "measured", "why"), lines)


def _summary(rows):
    lines, left = [], list(rows)
    for name, kind, pattern in _FAMILIES:
        some = [
            row
            for row in left
            if kind in row.kind and re.search(pattern, f"{row.promise}, {row.shape}")
        ]
        left = [row for row in left if row not in some]
        if some:
            promised = " or ".join(sorted({f"{row.promised:.3g}" for row in some}))
            held = sum(row.verdict == "holds" for row in some)
            lines.append(
                f"| {name} | {promised} | {_spread(some)} | {len(some)} | {held} |"
                f" {_days(some)} |"
            )
    order = lines[2:] + lines[:2]  # what is ours stands first
    text = (
        "An interval is measured by its coverage, a test and a threshold by how often"
        " they are wrong. Rows\nthat were simulated on an earlier day were simulated"
        " with the code of that day.\n\n"
    )
    return f"## In ten lines\n\n{text}" + _table(
        ("what", "promised", "measured", "rows", "hold", "simulated"), order
    )


def _few(shapes, most=3):
    left = len(shapes) - most
    return "; ".join(shapes[: most if left > 1 else None]) + (
        f"; {left} others" if left > 1 else ""
    )


def _spread(rows):
    low, high = (f"{end(row.measured for row in rows):.3f}" for end in (min, max))
    return low if low == high else f"{low} to {high}"


def _days(rows):
    """Return the days on which rows were simulated, with the number of rows of each."""
    days = Counter(row.date for row in rows if row.date)
    if len(days) == 1:
        return next(iter(days))
    return ", ".join(f"{day} ({days[day]})" for day in sorted(days))


def _of_kind(rows, kind):
    title, name, text = _TITLES[kind]
    some = [row for row in rows if row.kind == kind]
    text = f"## {title}\n\n{text}\n\n{_by_promise(some, name)}\n"
    crossed = [
        row
        for row in some
        if kind == "broken" or re.search("^summary: |net benefit", row.promise)
    ]
    parts = [_long([row for row in some if row not in crossed], name)] * (
        kind != "broken"
    ) + [_crossed(crossed)]
    tables = "\n".join(part.strip() + "\n" for part in parts if part)
    return (
        f"{text}<details><summary>All {len(some)}"
        f" rows</summary>\n\n{tables}\n</details>\n"
    )


def _by_promise(rows, name):
    """Return a table with one line for each promise: its shapes, how many hold, and the
    range of what was measured.
    """
    folded = {}
    for row in rows:
        folded.setdefault((row.promise, row.promised), []).append(row)
    lines = []
    for (promise, promised), some in folded.items():
        held = sum(row.verdict == "holds" for row in some)
        lines.append(
            f"| {promise} | {promised:.3g} | {_spread(some)} | {len(some)} | {held} |"
        )
    return _table((name, "promised", "measured", "rows", "hold"), lines)


def _long(rows, name):
    """Return a line for the shapes of a promise on which the same was measured."""
    folded = {}
    for row in rows:
        same = (
            row.promise,
            row.promised,
            f"{row.measured:.3f}",
            f"{row.standard_error:.3f}",
            row.runs,
            row.verdict,
        )
        folded.setdefault(same, []).append(row.shape)
    lines = []
    for (promise, promised, measured, error, runs, verdict), shapes in folded.items():
        mark = " (misses)" if verdict == "misses" else ""
        lines.append(
            f"| {promise} | {'; '.join(shapes)} | {promised:.3g} | {measured}{mark} |"
            f" {error} | {runs:,} |"
        )
    return _table((name, "data", "promised", "measured", "s.e.", "samples"), lines)


def _crossed(rows):
    """Return tables of shapes by promises, one for each set of promises that shapes
    share, with their samples.
    """
    by_shape, text = {}, ""
    for row in rows:
        by_shape.setdefault((row.shape, row.runs), {})[row.promise] = row
    for names in dict.fromkeys(tuple(found) for found in by_shape.values()):
        lines = []
        for (shape, runs), found in by_shape.items():
            if tuple(found) == names:
                cells = map(_cell, found.values())
                lines.append(f"| {shape} | {' | '.join(cells)} | {runs:,} |")
        text += _table(("data", *names, "samples"), lines) + "\n"
    return text


def _cell(row):
    accepted = "" if row.accepted is None else f", {row.accepted:.3g}"
    return f"{row.measured:.3f}{' (misses)' * (row.verdict == 'misses')}{accepted}"
