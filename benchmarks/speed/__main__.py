"""The command ``python -m benchmarks.speed``."""

import argparse
import json
import os
import sys
import time
from importlib.util import find_spec
from itertools import chain, groupby
from pathlib import Path

from benchmarks.speed.jobs import JOBS
from benchmarks.speed.page import conditions, with_tables
from benchmarks.speed.peers import installed
from benchmarks.speed.run import combined, measure, verdict
from benchmarks.speed.shapes import ALL_JOBS, SHAPES, measure_shapes

_COLUMNS = (
    "job",
    "size",
    "ours",
    "floor",
    "ours/floor",
    "peer",
    "peer s",
    "peer/ours",
    "answers",
    "peak MB",
    "target",
)
_SHAPE_COLUMNS = (
    "job",
    "size",
    "s, uniform",
    *list(SHAPES)[1:],
    "worst",
    "limit",
    "bytes a row",
    "in fits",
    "over plain",
)


def main(argv=None):
    """Run the jobs and print their table; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed", description="Time the library and its peers."
    )
    parser.add_argument(
        "--job",
        action="append",
        choices=list(JOBS | ALL_JOBS),
        help="one job (repeat for more)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small inputs: does everything run, do answers agree",
    )
    parser.add_argument(
        "--slow", action="store_true", help="also run the peers that take minutes"
    )
    parser.add_argument(
        "--shapes",
        action="store_true",
        help="the second axis: each job on scores of many shapes",
    )
    parser.add_argument(
        "--markdown", action="store_true", help="print a table for a page"
    )
    parser.add_argument(
        "--page", type=Path, help="write the measured tables into this page"
    )
    parser.add_argument(
        "--repeats", type=int, default=5, help="timed runs of each (default: 5)"
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=1,
        help="runs of all jobs, of which --page shows the ranges",
    )
    parser.add_argument(
        "--json", action="store_true", help="print JSON in place of the table"
    )
    options = parser.parse_args(argv)
    if options.shapes:
        return _shapes(options)
    for name in installed()[1]:
        print(f"{name} is not installed: skipped", file=sys.stderr)
    asked = [name for name in options.job or JOBS if name in JOBS]
    names = [name for name in asked if find_spec(JOBS[name].needs)]
    for name in set(asked) - set(names):
        print(f"{name} needs {JOBS[name].needs}: skipped", file=sys.stderr)
    if options.page:
        _write_page(options, names)
        return 0
    rows = _measured(options, names)
    if options.json:
        json.dump([row.as_json() for row in rows], sys.stdout, indent=1)
        print()
    else:
        _print_targets(_printed(rows, options.markdown))
    return 0


def _measured(options, names):
    return measure(
        names, quick=options.quick, slow=options.slow, repeats=options.repeats
    )


def _write_page(options, names):
    """Measure, print each run, and write the tables into the page."""
    page = options.page.read_text()
    # a page without marks is told before the minutes are spent
    with_tables(page, [], "")
    began = time.time()
    load = os.getloadavg()[0]
    runs = []
    for _ in range(options.runs):
        runs.append(_printed(_measured(options, names), options.markdown))
    about = conditions(options.repeats, began, load, options.runs)
    medians = combined(runs)
    _print_targets(medians)
    options.page.write_text(with_tables(page, medians, about))


def _printed(rows, markdown):
    """Print each row when it is measured, and return all as a list."""
    found = []
    cells = (_cells(row) for row in rows if not found.append(row))
    _print_table(_COLUMNS, cells, markdown)
    return found


def _print_targets(rows):
    """Print whether each job meets its target: floors are of interest here, and not on
    the page.
    """
    for job, of_job in groupby(rows, lambda row: row.job):
        of_job = list(of_job)
        if words := verdict(of_job):
            print(f"{job}, {of_job[0].target}: {words}")


def _shapes(options):
    """Print the table of shapes; return 1 where a limit is missed."""
    names = [
        name for name in options.job or ALL_JOBS if find_spec(ALL_JOBS[name].needs)
    ]
    rows, missed = measure_shapes(names, quick=options.quick), []
    if options.json:
        json.dump([row.as_json() for row in rows], sys.stdout, indent=1)
        print()
        return 0

    def cells():
        for row in rows:
            missed.extend([row.job] * row.is_missed)
            yield _shape_cells(row)

    _print_table(_SHAPE_COLUMNS, cells(), options.markdown)
    print(f"beyond a limit: {', '.join(missed) or 'none'}", file=sys.stderr)
    return int(bool(missed))


def _print_table(columns, rows, markdown):
    first, last = ("| ", " |") if markdown else ("", "")
    for row in chain((columns, ["---"] * len(columns)), rows):
        print(first + " | ".join(row) + last, flush=True)


def _shape_cells(row):
    uniform = row.seconds["uniform"]
    ratios = [
        f"{row.seconds[shape] / uniform:.2f}" if shape in row.seconds else ""
        for shape in list(SHAPES)[1:]
    ]
    fits = "" if row.in_fits is None else f"{row.in_fits:.1f} ({row.fits})"
    worst = f"{row.ratio:.2f} ({row.worst})"
    plain = (
        "" if row.over_plain is None else f"{row.over_plain:.2f} ({row.worst_plain})"
    )
    return (
        row.job,
        row.size,
        _number(uniform),
        *ratios,
        worst,
        f"{row.limit:g}",
        f"{row.bytes_a_row:.1f}",
        fits,
        plain,
    )


def _cells(row):
    answers = (
        {None: "not compared", True: "agree", False: "differ"}[row.answers_agree]
        if row.peer
        else ""
    )
    answers += f" ({row.reason})" if row.reason else ""
    return (
        row.job,
        row.size,
        _number(row.ours_s),
        _number(row.floor_s),
        _number(row.ours_over_floor),
        row.peer or "",
        _number(row.peer_s),
        _number(row.peer_over_ours),
        answers,
        f"{row.peak_mb:.0f}",
        str(row.target),
    )


def _number(value):
    return "" if value is None else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
