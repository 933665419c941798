"""The page on speed: its summary and tables, written between marks from one run. No
sentence depends on a figure.
"""

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby

__all__ = ["FAMILIES", "conditions", "with_tables"]

_BEGIN, _END = (
    "<!-- measured: made by `python -m benchmarks.speed --page` -->\n",
    "<!-- end of the tables -->",
)

FAMILIES = {  # name -> how the names of its jobs begin
    "errors, two classes": ("equal-width", "equal-mass", "sweep", "smECE"),
    "errors, many classes": ("top-label", "marginal"),
    "temperature scaling": ("temperature",),
    "added cost of the learned floor": ("learned floor",),
    "vector and matrix scaling": ("vector", "matrix"),
    "Platt, Beta": ("Platt", "Beta"),
    "binning, isotonic, Venn-Abers": (
        "histogram",
        "scaling-binning",
        "isotonic",
        "Venn-Abers",
    ),
    "reliability diagram, import": ("reliability", "import"),
}
# What a job does that its floor or a faster peer does not.
_REASONS = {
    "equal-width ECE": (
        "scores and labels are validated before binning: three passes instead of two"
    ),
    "top-label ECE": (
        "every score and every row sum is validated; the faster peers do not validate"
    ),
    "temperature, 1000 classes": (
        "a floor is learned, and the temperature is fitted to an accuracy of 1e-6"
    ),
    "temperature, 100 classes": (
        "a floor is learned, and the temperature is fitted to an accuracy of 1e-6"
    ),
    "learned floor, two classes": ("every candidate floor is fitted to condensed rows"),
    "learned floor, 100 classes": "every candidate floor is fitted to 1,024 rows",
    "learned floor, 1000 classes": (
        "a floor above 0 is found: all logits are converted to probabilities and back,"
        " twice, and the temperature without a floor is fitted as well"
    ),
    "vector scaling": '`alpha="auto"` takes two or three fits',
    "matrix scaling, structured": '`alpha="auto"` takes two or three fits',
    "matrix scaling, unpenalised": "a floor and a temperature are fitted first",
    "histogram binning": (
        "labels are encoded, rows are validated and hashed, and the prediction has two"
        " columns"
    ),
    "reliability diagram": (
        "intervals for the error and each bin, and a layout that is computed twice"
    ),
    "import": "the library's own modules in addition to scikit-learn's",
    "marginal, equal width": "every score and every row sum is validated",
}


def conditions(repeats, began, load, n_runs=1):
    """Return the lines that say when, where and how it was measured; `load` is the
    machine's when it began.
    """
    versions = [
        f"{name} {found}"
        for name in ("numpy", "scipy", "scikit-learn", "torch")
        if (found := _version(name))
    ]
    day, minutes = (
        time.strftime("%Y-%m-%d", time.gmtime(began)),
        (time.time() - began) / 60,
    )
    runs = "one run"
    ranges = ""
    if n_runs > 1:
        runs = f"{n_runs} runs"
        ranges = f" Two figures are the range over the {n_runs} runs."
    return (
        f"All measurements are from {runs} of {minutes:.0f} minutes on {day}, started"
        f" at a load of {load:.1f} on {os.cpu_count()} cores.\nTimes are medians of"
        f" processor time over {repeats} repeats, with Python"
        f" {platform.python_version()}, {', '.join(versions)}.\nScores are uniform,"
        f" and parameters have their default values.{ranges}\n"
    )


def with_tables(page, rows, about):
    """Return the text of the page with what the rows show between its marks."""
    before, rest = page.split(_BEGIN)
    jobs = [list(of_job) for _, of_job in groupby(rows, lambda row: row.job)]
    parts = [
        f"## Summary\n\n{about}\n{_summary(jobs)}",
        f"## Measured\n\n{_measured(jobs)}",
        f"## Jobs that are slower than a peer\n\n{_behind(jobs)}",
    ]
    return f"{before}{_BEGIN}\n" + "\n".join(parts) + f"\n{_END}" + rest.split(_END)[1]


def _summary(jobs):
    lines = []
    for name, begins in FAMILIES.items():
        some = [rows for rows in jobs if rows[0].job.startswith(begins)]
        rivals = [row.peer_over_ours for rows in some for row in rows if row.peer]
        if rivals:
            behind = sum(ratio < 1 for ratio in rivals)
            slower = f"{len(rivals) - behind} of {len(rivals)}"
            lines.append(f"| {name} | {_spread(rivals)} | {slower} |")
    return _table(("jobs", "a peer's time / ours", "slower peers"), lines)


def _measured(jobs):
    lines = []
    for rows in jobs:
        first, peers = rows[0], ", ".join(_peer(row) for row in rows if row.peer)
        size = "" if first.size == "0" else first.size
        lines.append(f"| {first.job} | {size} | {_figure(first, 'ours_s')} | {peers} |")
    return _table(("job", "input", "ours, s", "peers: their time / ours"), lines)


def _behind(jobs):
    lines = []
    for rows in jobs:
        faster = ", ".join(
            _peer(row) for row in rows if row.peer and row.peer_over_ours < 1
        )
        if faster:
            lines.append(
                f"| {rows[0].job} | {faster} | {_unchecked(rows)} |"
                f" {_REASONS.get(rows[0].job, '')} |"
            )
    return _table(
        (
            "job",
            "faster peers: their time / ours",
            "the same without our validation",
            "additional work in skcalib",
        ),
        lines,
    )


def _unchecked(rows):
    """Return the ratios of faster peers to ours without the checks of its input, as
    text.
    """
    return ", ".join(
        f"{row.peer} {_figure(row, 'peer_over_unchecked')}"
        for row in rows
        if row.unchecked_s is not None and row.peer and row.peer_over_ours < 1
    )


def _peer(row):
    text = f"{row.peer} {_figure(row, 'peer_over_ours')}"
    if row.answers_agree is not False:
        return text
    if len(row.answers) == 2 and "log-loss" in row.reason:
        return f"{text} ({row.reason}: {row.answers[1]:.4f}, ours {row.answers[0]:.4f})"
    return f"{text} ({row.reason})"


def _figure(row, name):
    """Return a figure of a row as text, and of several runs its range."""
    if name in row.ranges:
        return _spread(row.ranges[name])
    return _number(getattr(row, name))


def _spread(values):
    low, high = (_number(end(values)) if values else "" for end in (min, max))
    return low if low == high else f"{low} to {high}"


def _number(value):
    """Return a number with three digits."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}".removeprefix("0")


def _table(head, lines):
    return (
        "\n".join((f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines)) + "\n"
    )


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None
