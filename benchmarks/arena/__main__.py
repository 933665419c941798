"""The command: ``python -m benchmarks.arena --data DIR [--peers] [--rows N] [--markdown | --json]``."""

import argparse
import json
import sys
from pathlib import Path

from benchmarks.arena.experiments import few_rows, load, methods, run
from benchmarks.arena.peers import installed
from benchmarks.arena.summary import print_summary, summarize


def main(argv=None):
    """Run the arena and print its tables; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.arena", description="Every recalibrator on many real experiments."
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the real data (with arena/)")
    parser.add_argument("--kind", choices=("binary", "multiclass"), help="only these experiments")
    parser.add_argument(
        "--methods",
        nargs="+",
        help="only these, by name or as 'PlattScaling(clip=None)'",
    )
    parser.add_argument("--peers", action="store_true", help="other libraries' methods, too, those that are installed")
    parser.add_argument("--every", type=int, default=1, help="only every n-th data set, for a quick look")
    parser.add_argument("--rows", type=int, help="fit to so many random calibration rows of each experiment")
    parser.add_argument("--n-jobs", type=int, default=1)
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--markdown", action="store_true", help="print the tables as Markdown, for the guide")
    output.add_argument("--json", action="store_true", help="print JSON in place of the tables")
    options = parser.parse_args(argv)
    report = {}
    for kind in [options.kind] if options.kind else ["binary", "multiclass"]:
        contenders = methods(kind, options.methods)
        if options.peers:
            peers, missing = installed(kind)
            contenders |= peers
            print(*(f"not installed: {name}" for name in missing), sep="\n", file=sys.stderr)
        data_sets = load(options.data, kind)[:: options.every]
        data_sets = data_sets if options.rows is None else few_rows(data_sets, options.rows)
        results = run(data_sets, contenders, options.n_jobs)
        report[kind] = summarize(results)
        if not options.json:
            print_summary(kind, results, report[kind], sys.stdout, markdown=options.markdown)
    if options.json:
        json.dump(report, sys.stdout, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
