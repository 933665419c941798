"""The command ``python -m skcalib report``."""

import json
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import Timer

__all__ = ["add_report_command", "run_report"]

_QUIET_SECONDS = 2  # work that is done by then shows no progress


def add_report_command(commands):
    """Add the parser of the command."""
    parser = commands.add_parser(
        "report", help="write a calibration report of the scores in a CSV or Parquet file, as one HTML page"
    )
    parser.add_argument(
        "file", metavar="FILE", help="CSV (also .gz) or Parquet file with a header; with DuckDB a glob, too"
    )
    parser.add_argument("--label", required=True, metavar="COLUMN", help="column of the labels")
    parser.add_argument(
        "--score",
        required=True,
        action="append",
        metavar="COLUMN",
        help="column of the probability of the event; may be given several times, one a model",
    )
    parser.add_argument("--segment", metavar="COLUMN", help="column by which the rows are divided")
    parser.add_argument("--time", metavar="COLUMN", help="column of periods or dates: calibration over time")
    parser.add_argument("--baseline", metavar="FILE", help="earlier rows, of the same columns, to compare with")
    parser.add_argument("--weight", metavar="COLUMN", help="column of weights, which count as repeated rows")
    parser.add_argument("--positive", metavar="LABEL", help="the label that is the event (not needed for 0 and 1)")
    parser.add_argument("-o", "--output", metavar="FILE", help="where the page goes (default: report.html)")
    parser.add_argument("--json", action="store_true", help="print the numbers; write a page only with -o")
    parser.add_argument("--seed", type=int, default=0, help="seed of resamples and folds (default: 0)")
    parser.set_defaults(run=run_report)


def run_report(arguments):
    """Run the command and return its exit status: 2 with one line on standard error where there is no report."""
    from skcalib._report._reader import ReportError

    try:
        _report(arguments)
    except ReportError as error:
        print(f"skcalib report: {error}", file=sys.stderr)
        return 2
    return 0


def _report(arguments):
    from skcalib._report._numbers import report_numbers
    from skcalib._report._reader import ReportError
    from skcalib._report._table import read_table

    output = arguments.output or (None if arguments.json else "report.html")
    if output is not None and Path(output).exists() and Path(arguments.file).exists():
        if Path(output).samefile(arguments.file):
            raise ReportError(f"-o {output} is the input: the page would overwrite it. Name another file.")
    if output is not None and find_spec("matplotlib") is None:
        raise ReportError('the pictures need matplotlib: pip install "skcalib[report]", or ask for --json.')
    names = list(dict.fromkeys(arguments.score))
    with _progress(2 + 4 * len(names) + 2 * (output is not None)) as step:
        step(f"reading {arguments.file}")
        table = read_table(
            arguments.file,
            label=arguments.label,
            scores=names,
            segment=arguments.segment,
            weight=arguments.weight,
            positive=arguments.positive,
            time=arguments.time,
        )
        baseline = None
        if arguments.baseline is not None:
            given = {"label": arguments.label, "scores": names, "positive": arguments.positive}
            baseline = read_table(arguments.baseline, **given)
        try:
            numbers = report_numbers(table, baseline=baseline, seed=arguments.seed, step=step)
        except ValueError as error:  # the columns are valid; a number of the report is not defined for them
            raise ReportError(" ".join(str(error).split())) from error
        if output is not None:
            _write_page(output, numbers, table, arguments.seed, step)
    if arguments.json:
        json.dump(numbers, sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        for model in numbers["models"]:
            print(f"{model['name']}: {model['summary']}")
        print(f"The report is in {output}.")


def _write_page(output, numbers, table, seed, step):
    from skcalib._report._page import report_page
    from skcalib._report._pictures import bin_count_picture, reliability_picture
    from skcalib._report._reader import ReportError

    step("pictures")
    pictures = {"reliability": reliability_picture(table, seed)}
    if numbers["certificates"]:
        pictures["bin_count"] = bin_count_picture(numbers["n_rows"])
    step("page")
    page = report_page(numbers, pictures)
    try:
        with open(output, "w", encoding="utf-8") as file:
            file.write(page)
    except OSError as error:
        raise ReportError(f"{output} cannot be written: {error.strerror or error}.") from error


@contextmanager
def _progress(n_steps):
    """Yield a function that is told what is done next, and shows it on a terminal if the work takes long."""
    if find_spec("tqdm") is None:
        yield lambda what: None
        return
    from tqdm import tqdm

    # disable=None is tqdm's way to say: where standard error is no terminal
    options = {"delay": _QUIET_SECONDS, "mininterval": 0, "disable": None, "leave": False}
    with tqdm(total=n_steps, file=sys.stderr, **options) as bar:
        begun = []

        def step(what):
            bar.set_description(what, refresh=False)
            bar.update(len(begun) > 0)  # the step before is done
            begun.append(what)

        appears = Timer(_QUIET_SECONDS, bar.refresh)  # also in the middle of a long step
        appears.start()
        try:
            yield step
        finally:
            appears.cancel()
            appears.join()
