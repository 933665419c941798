"""``python -m benchmarks.levels``: coverage of every interval and size of every test,
with Monte Carlo errors.
"""

import argparse
import json
import re
import sys
import warnings
from dataclasses import asdict
from datetime import date
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from benchmarks.levels.decisions import BANDS, BROKEN
from benchmarks.levels.few_events import FEW_EVENTS
from benchmarks.levels.hard import HARD
from benchmarks.levels.hospitals import HOSPITALS
from benchmarks.levels.page import Row, read_rows, verdict_of, with_tables
from benchmarks.levels.peers import peer_promises
from benchmarks.levels.performance import PERFORMANCE
from benchmarks.levels.probabilities import PROBABILITIES
from benchmarks.levels.promises import INTERVALS, TESTS
from benchmarks.levels.sampled import SAMPLED
from benchmarks.levels.search import FOUND, run
from benchmarks.levels.several_labels import SEVERAL_LABELS
from benchmarks.levels.shapes import SHAPES
from benchmarks.levels.summary import SUMMARY

_RUNS, _QUICK_RUNS = 400, 4


def main(argv=None):
    """Simulate and print the tables; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.levels", description=__doc__.split("``: ")[1]
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{_QUICK_RUNS} samples of each shape: does it run?",
    )
    parser.add_argument("--runs", type=int, default=_RUNS, help="samples of each shape")
    parser.add_argument(
        "--only",
        default="",
        help="regular expression of promises and shapes to look at",
    )
    parser.add_argument(
        "--peers",
        action="store_true",
        help="also the promises of other libraries that are installed",
    )
    parser.add_argument("--n-jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--json", action="store_true", help="print JSON in place of Markdown tables"
    )
    parser.add_argument(
        "--rows",
        type=Path,
        help="file of rows: those with as many samples are not simulated again",
    )
    parser.add_argument(
        "--before",
        default="",
        metavar="DAY",
        help="simulate rows of --rows again that are of an earlier day (YYYY-MM-DD)",
    )
    parser.add_argument(
        "--page",
        type=Path,
        help="write all rows of --rows, or those simulated, into this page",
    )
    parser.add_argument(
        "--search",
        metavar="NAME",
        help="search the worst worlds of the families whose names hold this text; those"
        " found become rows",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=5.0,
        help="of the processor, for the search of each family",
    )
    parser.add_argument(
        "--seed",
        type=int,
        help="of the search; by default another one whenever a world was found",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="search without the worlds that were found before",
    )
    options = parser.parse_args(argv)
    if options.search is not None:
        return _search(options)
    known = read_rows(options.rows)
    intervals, tests, broken, missing = (
        peer_promises() if options.peers else ([], [], [], [])
    )
    promised = {
        "coverage": INTERVALS
        + BANDS
        + SUMMARY
        + PERFORMANCE
        + PROBABILITIES
        + HOSPITALS
        + SEVERAL_LABELS["coverage"]
        + SAMPLED["coverage"]
        + HARD["coverage"]
        + FEW_EVENTS["coverage"]
        + FOUND["coverage"]
        + intervals,
        "size": TESTS
        + SEVERAL_LABELS["size"]
        + SAMPLED["size"]
        + HARD["size"]
        + FEW_EVENTS["size"]
        + FOUND["size"]
        + tests,
        "broken": BROKEN + HARD["broken"] + FOUND["broken"] + broken,
    }
    if missing:
        print(f"not installed: {', '.join(missing)}", file=sys.stderr)
    jobs = [
        (kind, promise, shape)
        for kind, promises in promised.items()
        for promise in promises
        for shape in promise.shapes
        if re.search(options.only, f"{promise.name}, {shape}")
    ]
    runs = _QUICK_RUNS if options.quick else options.runs
    jobs = [
        job
        for job in jobs
        if not _is_known(known.get((job[1].name, job[2])), runs, options.before)
    ]
    rows = []
    for row in Parallel(n_jobs=options.n_jobs, return_as="generator")(
        delayed(measure)(*job, runs) for job in jobs
    ):
        rows.append(row)
        print(f"{len(rows)} of {len(jobs)}: {_line(row)}", file=sys.stderr, flush=True)
        if options.rows:
            with options.rows.open("a") as file:
                print(json.dumps(asdict(row)), file=file)
    if options.page:
        known |= {(row.promise, row.shape): row for row in rows}
        options.page.write_text(
            with_tables(options.page.read_text(), list(known.values()))
        )
    elif options.json:
        json.dump([asdict(row) for row in rows], sys.stdout, indent=1)
        print()
    else:
        print_tables(rows)
    return 0


def _is_known(row, runs, day):
    """Return whether a row has as many samples, and is not of an earlier day."""
    return row is not None and row.runs >= runs and row.date >= day


def _search(options):
    """Search worlds; measure the worst with new samples, and write their rows."""
    found = run(options.search, options.minutes, seed=options.seed, fresh=options.fresh)
    for family, promise in found:
        row = measure(family.kind, promise, promise.shapes[0], options.runs)
        print(_line(row))
        if options.rows:
            with options.rows.open("a") as file:
                print(json.dumps(asdict(row)), file=file)
    return 0


def measure(kind, promise, shape, runs):
    """Return the row of a promise on a shape of data; other numbers of runs draw other
    samples.
    """
    rng = np.random.default_rng([runs, *map(ord, shape)])
    with warnings.catch_warnings():
        # that an approximation is poor: the table shows it
        warnings.simplefilter("ignore", UserWarning)
        kept = np.array(
            [promise.kept(SHAPES[shape](rng), seed) for seed in range(runs)],
            dtype=np.float64,
        )
    # Samples without limits, which say why, are no promise.
    kept = kept.reshape(runs, -1)
    has_answer = ~np.isnan(kept[:, 0])
    decided = float(has_answer.mean())
    measured, *accepted = [np.nan] * kept.shape[1]
    if has_answer.any():
        measured, *accepted = np.nanmean(kept[has_answer], axis=0).tolist()
    # Of a binomial share at the promised level, so that a share of 0 or 1 is not taken
    # to be exact.
    n_measured = max(np.count_nonzero(has_answer), 1)
    error = float(np.sqrt(promise.promised * (1 - promise.promised) / n_measured))
    return Row(
        kind,
        promise.name,
        shape,
        promise.promised,
        measured,
        error,
        runs,
        verdict_of(kind, promise.promised, measured, error),
        *(accepted or [None]),
        date=date.today().isoformat(),
        decided=decided,
    )


def print_tables(rows):
    """Print a Markdown table of the intervals, one of the tests and one of the
    certified thresholds.
    """
    titles = {"coverage": "interval", "size": "test", "broken": "promise"}
    for kind, title in titles.items():
        some = [row for row in rows if row.kind == kind]
        if some:
            accepted = " accepted |" * (kind == "broken")
            head = f"| {title} | data | promised | measured | s.e. |{accepted} |"
            print(f"\n{head}\n{'|---' * (head.count('|') - 1)}|")
        for row in some:
            print(_line(row))


def _line(row):
    numbers = f"{row.promised:.2f} | {row.measured:.3f} | {row.standard_error:.3f}"
    accepted = "" if row.accepted is None else f" {row.accepted:.3f} |"
    return f"| {row.promise} | {row.shape} | {numbers} |{accepted} {row.verdict} |"


if __name__ == "__main__":
    sys.exit(main())
