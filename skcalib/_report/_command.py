"""The command ``python -m skcalib report``."""

import json
import os
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from threading import Event, Thread
from time import monotonic

_QUIET_SECONDS = 5  # work that is done by then shows no progress


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
        help="column of the probability of the event; may be given several times, one a model. For several classes a "
        "pattern in quotes: 'p_*' is one column a class, and the star is the name of the class",
    )
    parser.add_argument(
        "--classes",
        nargs="+",
        metavar="CLASS",
        help="the classes of the score columns in their order, with spaces or commas between them; the columns are one "
        "model then. Give it after FILE",
    )
    parser.add_argument("--segment", metavar="COLUMN", help="column by which the rows are divided")
    parser.add_argument(
        "--time", metavar="COLUMN", help="column of dates, quarters, months, weeks or numbered periods, to compare"
    )
    parser.add_argument("--baseline", metavar="FILE", help="earlier rows, of the same columns, to compare with")
    parser.add_argument("--weight", metavar="COLUMN", help="column of weights")
    parser.add_argument(
        "--weight-type",
        choices=("frequency", "importance"),
        help="what weights are: repeated rows, or corrections of one row each (default: frequency for integers)",
    )
    parser.add_argument(
        "--cluster", metavar="COLUMN", help="column of what dependent rows have in common: a patient, a match, a site"
    )
    parser.add_argument(
        "--threshold",
        type=float,
        action="append",
        default=[],
        metavar="T",
        help="score from which a row is treated, above 0 and below 1; may be given several times",
    )
    parser.add_argument("--title", help="title of the page")
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        help="what the page calls a model, once for each --score",
    )
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
    from skcalib._report._models import given_classes
    from skcalib._report._numbers import report_numbers
    from skcalib._report._reader import ReportError
    from skcalib._report._table import read_table

    output = arguments.output or (None if arguments.json else "report.html")
    _check_output(output, arguments)
    classes, thresholds = given_classes(arguments.classes), sorted(set(arguments.threshold))
    if not all(0 < threshold < 1 for threshold in thresholds):
        raise ReportError(f"--threshold {thresholds[0]:g} or {thresholds[-1]:g} is no score above 0 and below 1.")
    with _progress() as step:
        step(f"reading {arguments.file}")
        columns = {"label": arguments.label, "scores": list(dict.fromkeys(arguments.score)), "classes": classes}
        columns |= {"positive": arguments.positive, "cluster": arguments.cluster, "seed": arguments.seed}
        columns |= {"names": arguments.name, "weight": arguments.weight, "weight_type": arguments.weight_type}
        others = {"segment": arguments.segment, "time": arguments.time}
        table = read_table(arguments.file, **columns, **others)
        baseline = None
        if arguments.baseline is not None:
            step(f"reading {arguments.baseline}")
            baseline = read_table(arguments.baseline, **columns)
        if thresholds and table.classes is not None:
            raise ReportError("--threshold is for one event, but each class has a score here: leave it out.")
        try:
            numbers = report_numbers(table, baseline=baseline, thresholds=thresholds, seed=arguments.seed, step=step)
        except ValueError as error:  # the columns are valid; a number of the report is not defined for them
            raise ReportError(" ".join(str(error).split())) from error
        numbers |= {"title": arguments.title, "command": " ".join(["python -m skcalib", *map(quote, arguments.argv)])}
        if output is not None:
            _write_page(output, numbers, table, arguments.seed, step)
    if arguments.json:
        json.dump(numbers, sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        for model in numbers["models"]:
            print(f"{model['name']}: {model['summary']}")
            print(model["advice"]["code"] or "", end="\n" * bool(model["advice"]["code"]))
        print(f"The report is in {output}.")


def _check_output(output, arguments):
    """Refuse a page that would replace an input, and one that cannot be drawn."""
    from skcalib._report._reader import ReportError

    if output is None:
        return
    for given in (arguments.file, arguments.baseline):
        if given is not None and Path(output).exists() and Path(given).exists() and Path(output).samefile(given):
            raise ReportError(f"-o {output} is the input: the page would overwrite it. Name another file.")
    folder = Path(output).absolute().parent
    if not folder.is_dir():
        raise ReportError(f"{output} cannot be written: there is no folder {folder}.")
    for package in ("matplotlib", "jinja2"):
        if find_spec(package) is None:
            raise ReportError(f'the page needs {package}: pip install "skcalib[report]", or ask for --json.')


def _write_page(output, numbers, table, seed, step):
    from skcalib._report._page import report_page
    from skcalib._report._pictures import class_pictures, reliability_picture
    from skcalib._report._reader import ReportError

    step("pictures")
    pictures = {"reliability": reliability_picture(table, seed)}
    for model in numbers["models"] if numbers["classes"] else ():
        step(f"pictures of the classes of {model['name']}")
        pictures["classes", model["name"]] = class_pictures(table, model["name"], model["classes"], seed)
    step("page")
    page = report_page(numbers, pictures)
    try:
        _replace(Path(output).resolve(), page)
    except OSError as error:
        raise ReportError(f"{output} cannot be written: {error.strerror or error}.") from error


def _replace(path, text):
    """Write a file beside the old one and put it in its place at the end: a failed write leaves the old one whole."""
    if path.exists() and not path.is_file():  # a pipe or a device
        path.write_text(text, encoding="utf-8")
        return
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def _progress():
    """Yield a function that is told what is done next; of long work standard error has a line at least every 5 s."""
    begun = written = monotonic()
    steps, done = [], Event()

    def write():
        nonlocal written
        written = monotonic()
        print(f"skcalib report: {steps[-1]} ({written - begun:.0f} s)", file=sys.stderr, flush=True)

    def step(what):
        steps.append(what)
        if monotonic() - begun >= _QUIET_SECONDS:
            write()

    def remind():
        while not done.wait(_QUIET_SECONDS / 5):
            if steps and monotonic() - written >= _QUIET_SECONDS:
                write()

    if _QUIET_SECONDS > 0:
        Thread(target=remind, daemon=True).start()
    try:
        yield step
    finally:
        done.set()
