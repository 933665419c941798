"""The command:
``python -m benchmarks.arena --data DIR [--peers] [--rows N] [--markdown | --json | --page PAGE]``.
"""  # noqa: E501

import argparse
import io
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

from benchmarks.arena.experiments import few_rows, load, methods, run
from benchmarks.arena.peers import installed
from benchmarks.arena.summary import print_summary, summarize

_BEGIN, _END = (
    "<!-- tables: made by `python -m benchmarks.arena --peers --page` -->\n",
    "<!-- end of the tables -->",
)


def main(argv=None):
    """Run the arena and print its tables; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.arena",
        description="Every recalibrator on many real experiments.",
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="folder of the real data (with arena/)"
    )
    parser.add_argument(
        "--kind", choices=("binary", "multiclass"), help="only these experiments"
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        help="only these, by name or as 'PlattScaling(clip=None)'",
    )
    parser.add_argument(
        "--peers",
        action="store_true",
        help="other libraries' methods, too, those that are installed",
    )
    parser.add_argument(
        "--every",
        type=int,
        default=1,
        help="only every n-th data set, for a quick look",
    )
    parser.add_argument(
        "--rows",
        type=int,
        help="fit to so many random calibration rows of each experiment",
    )
    parser.add_argument("--n-jobs", type=int, default=1)
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "--markdown",
        action="store_true",
        help="print the tables as Markdown, for the guide",
    )
    output.add_argument(
        "--json", action="store_true", help="print JSON in place of the tables"
    )
    output.add_argument("--page", type=Path, help="write the tables into this page")
    options = parser.parse_args(argv)
    report, out = {}, io.StringIO() if options.page else sys.stdout
    if options.page:
        # a page without marks is told before the minutes are spent
        with_tables(options.page.read_text(), "")
    for kind in [options.kind] if options.kind else ["binary", "multiclass"]:
        contenders = methods(kind, options.methods)
        if options.peers:
            peers, missing = installed(kind)
            contenders |= peers
            print(
                *(f"not installed: {name}" for name in missing),
                sep="\n",
                file=sys.stderr,
            )
        data_sets = load(options.data, kind)[:: options.every]
        data_sets = (
            data_sets if options.rows is None else few_rows(data_sets, options.rows)
        )
        results = run(data_sets, contenders, options.n_jobs)
        report[kind] = summarize(results)
        if not options.json:
            print_summary(
                kind,
                results,
                report[kind],
                out,
                markdown=options.markdown or bool(options.page),
            )
    if options.json:
        json.dump(report, sys.stdout, indent=1)
    if options.page:
        options.page.write_text(with_tables(options.page.read_text(), out.getvalue()))
    return 0


def with_tables(page, tables):
    """Return the text of the page with the tables between its marks, and when and with
    what they were made.
    """
    before, rest = page.split(_BEGIN)
    versions = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn")
    )
    made = f"Made on {time.strftime('%Y-%m-%d', time.gmtime())} with {versions}.\n"
    return f"{before}{_BEGIN}\n{made}{tables}\n{_END}" + rest.split(_END)[1]


if __name__ == "__main__":
    sys.exit(main())
