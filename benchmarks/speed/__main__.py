"""The command ``python -m benchmarks.speed``."""

import argparse
import json
import sys
from importlib.util import find_spec

from benchmarks.speed.jobs import JOBS
from benchmarks.speed.peers import installed
from benchmarks.speed.run import measure

_COLUMNS = ("job", "size", "ours", "floor", "ours/floor", "peer", "peer s", "peer/ours", "answers", "peak MB", "target")


def main(argv=None):
    """Run the jobs and print their table; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description="Time the library and its peers.")
    parser.add_argument("--job", action="append", choices=list(JOBS), help="one job (may be repeated); default: all")
    parser.add_argument("--quick", action="store_true", help="small inputs: does everything run, do answers agree")
    parser.add_argument("--slow", action="store_true", help="also run the peers that take minutes")
    parser.add_argument("--repeats", type=int, default=5, help="timed runs of each (default: 5)")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    options = parser.parse_args(argv)
    for name in installed()[1]:
        print(f"{name} is not installed: skipped", file=sys.stderr)
    names = [name for name in options.job or JOBS if find_spec(JOBS[name].needs)]
    for name in set(options.job or JOBS) - set(names):
        print(f"{name} needs {JOBS[name].needs}: skipped", file=sys.stderr)
    rows = measure(names, quick=options.quick, slow=options.slow, repeats=options.repeats)
    if options.json:
        json.dump([row.as_json() for row in rows], sys.stdout, indent=1)
        print()
    else:
        print(" | ".join(_COLUMNS))
        print(" | ".join("---" for _ in _COLUMNS))
        for row in rows:
            print(" | ".join(_cells(row)), flush=True)
    return 0


def _cells(row):
    answers = {None: "not compared", True: "agree", False: "differ"}[row.answers_agree] if row.peer else ""
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
        row.target,
    )


def _number(value):
    return "" if value is None else f"{value:.3g}"


if __name__ == "__main__":
    sys.exit(main())
