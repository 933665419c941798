"""The command ``python -m skcalib report``."""

import json
import os
import sys
from contextlib import contextmanager
from functools import partial
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from threading import Event, Thread
from time import monotonic

from skcalib._input.scales import SCALES
from skcalib._install import install
from skcalib._report._columns import given_classes
from skcalib._report._counts import (
    check_counts_options,
    counts_numbers,
    read_counts,
)
from skcalib._report._database import is_url, without_passwords
from skcalib._report._error import ReportError
from skcalib._report._numbers import report_numbers
from skcalib._report._page import counts_page, report_page
from skcalib._report._pdf import pdf_printer, write_pdf
from skcalib._report._reader import STANDARD_INPUT, shown_source
from skcalib._report._sections import comparisons
from skcalib._report._table import Reading, read_new_scores, read_table

_QUIET_SECONDS = 5  # shorter work shows no progress


def add_report_command(commands):
    """Add ``report`` with its options to the commands of ``python -m skcalib``.

    `commands` are the subparsers of its `argparse.ArgumentParser`.
    """
    parser = commands.add_parser(
        "report",
        help=(
            "write a calibration report for the scores in a file, as a single HTML"
            " page; 'report' may be left out: python -m skcalib FILE"
        ),
    )
    add = parser.add_argument
    column = partial(parser.add_argument, metavar="COLUMN")  # takes a column's name
    add(
        "file",
        metavar="FILE",
        nargs="+",
        help=(
            "CSV, Parquet, Feather, JSON, JSON lines or Excel file, also compressed"
            " (gz, bz2, xz, zst, zip); several files or a glob; - for standard input;"
            " or the URL of a database (duckdb:PATH, sqlite:PATH, postgresql://...)"
        ),
    )
    add(
        "--table",
        metavar="NAME",
        help="table of a database, sheet of a workbook, or file in a ZIP archive",
    )
    add(
        "--query",
        metavar="SQL",
        help="instead of --table: a query to run on a database",
    )
    column("--label", help="column with the labels; optional if only one qualifies")
    column(
        "--time-to-event",
        help=(
            "in place of --label: column with the time to the event, or to the end of"
            " observation; needs --event and --horizon"
        ),
    )
    column(
        "--event",
        help="1 if the event happened at that time, 0 if the time is censored",
    )
    add(
        "--horizon",
        type=float,
        metavar="TIME",
        help=(
            "time up to which events count, in the unit of --time-to-event; samples"
            " censored before it are accounted for by weighting the others"
        ),
    )
    column(
        "--score",
        dest="scores",
        default=[],
        action="append",
        help=(
            "column with the probability of the event, optional if only one qualifies;"
            " repeat it for several models. For several classes, give a quoted pattern:"
            " 'p_*' matches one column per class, and the star stands for the class"
            " name"
        ),
    )
    add(
        "--scores",
        dest="scale",
        choices=SCALES,
        help=(
            "what the scores are, if not probabilities: percent, logit, odds (p / (1 -"
            " p)) or decimal-odds (1 / p)"
        ),
    )
    add(
        "--normalise",
        action="store_true",
        help=(
            "divide the scores of a row by their sum, as for a bookmaker's odds, which"
            " sum to more than 1"
        ),
    )
    add(
        "--missing",
        choices=("error", "drop"),
        default="error",
        help=(
            "rows without a label, a score, a weight, a time or a cluster: refuse them"
            " (default), or leave them out and say how many"
        ),
    )
    add(
        "--classes",
        nargs="+",
        metavar="CLASS",
        help=(
            "classes of the score columns, in the same order, separated by spaces or"
            " commas; the columns then belong to one model. Place this option after"
            " FILE"
        ),
    )
    column(
        "--segment",
        action="append",
        help=(
            "column that divides the rows into groups; with several such options, the"
            " report covers every column and all combinations of them"
        ),
    )
    column(
        "--time",
        help="column with dates, quarters, months, weeks or numbered periods",
    )
    add(
        "--time-format",
        metavar="FORMAT",
        help=(
            "how times are written: a strptime format such as %%d/%%m/%%Y, epoch or"
            " epoch-ms"
        ),
    )
    add(
        "--time-order",
        metavar="PERIODS",
        help=(
            "periods in chronological order, separated by commas, such as pre,post;"
            " needed for periods whose names are words"
        ),
    )
    add(
        "--baseline",
        metavar="FILE",
        help="earlier data with the same columns, for comparison",
    )
    add(
        "--unlabelled",
        metavar="FILE",
        help=(
            "new data without labels but with the same score columns: the page"
            " estimates the performance on them; give FILE itself to use those of"
            " its rows that have no label"
        ),
    )
    column(
        "--count",
        help=(
            "in place of --label, for a table with a row for each grade, category or"
            " bin: column with the number of samples; needs --events and --score"
        ),
    )
    column("--events", help="column with the number of events in each row")
    add(
        "--alternative",
        choices=("two-sided", "greater", "less"),
        default="two-sided",
        help="alternative hypothesis for a table of counts: greater means too many"
        " events",
    )
    add(
        "--adjustment",
        choices=("holm", "exact"),
        default="holm",
        help="how the p-values of a table of counts are adjusted for the number of"
        " rows",
    )
    column("--weight", help="column with the weight of each row")
    add(
        "--weight-type",
        choices=("frequency", "importance"),
        help=(
            "meaning of the weights: frequency (number of repeated rows) or importance"
            " (correction of a single row); default: frequency if all are integers"
        ),
    )
    column(
        "--cluster",
        help="column that identifies dependent rows, such as those of one patient",
    )
    add(
        "--threshold",
        type=float,
        action="append",
        default=[],
        metavar="T",
        help=(
            "decision threshold between 0 and 1: act at scores at or above it; may be"
            " repeated"
        ),
    )
    add(
        "--tolerance",
        type=float,
        default=2.0,
        metavar="POINTS",
        help="largest bias that is acceptable, in percentage points (default: 2)",
    )
    add("--title", help="title of the page")
    add(
        "--name",
        dest="names",
        action="append",
        default=[],
        help="name of a model on the page, once per --score",
    )
    add(
        "--positive",
        metavar="LABEL",
        help="label of the event (not needed for 0 and 1)",
    )
    add(
        "--negative",
        metavar="LABEL",
        help=(
            "label of the non-events, if there are more than two labels: rows with"
            " other labels are left out"
        ),
    )
    add(
        "-o",
        "--output",
        metavar="FILE",
        help=(
            "output file (default: report.html); if its name ends in .pdf, Chromium or"
            " WeasyPrint writes a PDF"
        ),
    )
    add(
        "--code",
        metavar="FILE",
        help="write Python code that reproduces the numbers and applies the advice to a"
        " file",
    )
    add(
        "--json",
        action="store_true",
        help="print the numbers as JSON; write a page only with -o",
    )
    add(
        "--seed",
        type=int,
        default=0,
        help="seed for resampling, subsampling and folds (default: 0)",
    )
    parser.set_defaults(run=run_report)


def run_report(arguments):
    """Run the command and return its exit status: 0, or 2 after an error, which is
    printed as one line on standard error.
    """
    try:
        _report(arguments)
    except ReportError as error:
        print(f"skcalib report: {error}", file=sys.stderr)
        return 2
    return 0


def _report(arguments):
    """Write the report that the command line asks for, and print its summary or its
    numbers.
    """
    output = arguments.output
    if output is None and not arguments.json:
        output = "report.html"
    if "" in (output, arguments.code):
        option = "-o" if output == "" else "--code"
        raise ReportError(f"{option} names no file: give a name such as report.html.")
    if output is not None:
        _check_output(Path(output), arguments)
    if arguments.count is not None or arguments.events is not None:
        _report_of_counts(arguments, output)
        return
    arguments.classes = given_classes(arguments.classes)
    with _progress() as step:
        table, numbers = _table_and_numbers(arguments, step)
        if output is not None:
            _write_page(output, numbers, table, arguments.seed, step)
    _write_code(arguments.code, numbers["code"])
    if arguments.json:
        print(json.dumps(numbers, indent=2, allow_nan=False))
        return
    _print_summary(numbers["models"])
    if numbers["assumed"]:
        print(f"Assumed: {' '.join(numbers['assumed'])}")
    if numbers["notes"]:
        print(f"Note: {' '.join(numbers['notes'])}")
    print(f"The report is in {output}.")


def _table_and_numbers(arguments, step):
    """Return the `ReportTable` of the file and the numbers of the report, a dict.
    `step` is called with a text before each step of the work.
    """
    thresholds = _checked_thresholds(arguments)
    table, baseline = _tables(arguments, step)
    if thresholds and table.classes is not None:
        raise ReportError(
            "--threshold is for one event, but here each class has a score: omit"
            " --threshold."
        )
    new_scores = None
    if arguments.unlabelled is not None:
        step(f"reading {arguments.unlabelled}")
        new_scores = read_new_scores(arguments.unlabelled, table, _reading(arguments))
    # The number of steps, for the share that progress shows: each model has five, and
    # more for some options; two steps write the page.
    n_of_model = 5 + bool(thresholds) + (new_scores is not None)
    if table.classes is not None:
        has_page = arguments.output is not None or not arguments.json
        n_of_model += 2 if has_page else 1  # numbers, and pictures, of the classes
    step.n_steps = step.n_begun + n_of_model * len(table.names) + 2
    try:
        numbers = report_numbers(
            table,
            baseline=baseline,
            thresholds=thresholds,
            tolerance=arguments.tolerance / 100,
            new_scores=new_scores,
            seed=arguments.seed,
            step=step,
        )
    except ValueError as error:
        # The columns are valid, but a number of the report is undefined for them.
        raise ReportError(error) from error
    numbers["unlabelled"] = arguments.unlabelled
    numbers["title"] = arguments.title
    numbers["command"] = _shown_command(arguments)
    return table, numbers


def _write_code(path, code):
    """Write the Python that makes a report to a file, if the user names one."""
    if path is None:
        return
    try:
        Path(path).write_text(f"{code}\n", encoding="utf-8")
    except OSError as error:
        raise ReportError(
            f"--code {path} cannot be written: {error.strerror or error}."
        ) from error


def _shown_command(arguments):
    """Return the command line by which a report was made, without passwords."""
    words = map(without_passwords, arguments.argv)
    return " ".join(["python -m skcalib", *map(quote, words)])


def _report_of_counts(arguments, output):
    """Write the report of a table of counts, and print its summary or its numbers."""
    check_counts_options(arguments)
    _checked_thresholds(arguments)
    statistics, about = read_counts(
        arguments.file,
        count=arguments.count,
        events=arguments.events,
        score=arguments.scores[0],
        reading=_reading(arguments),
    )
    numbers = counts_numbers(
        statistics,
        about,
        tolerance=arguments.tolerance / 100,
        alternative=arguments.alternative,
        adjustment=arguments.adjustment,
    )
    numbers["title"] = arguments.title
    numbers["command"] = _shown_command(arguments)
    if output is not None:
        from skcalib._report._pictures import counts_picture

        page = counts_page(numbers, counts_picture(statistics))
        with _progress() as step:
            _save_page(page, output, step)
    _write_code(arguments.code, numbers["code"])
    if arguments.json:
        print(json.dumps(numbers, indent=2, allow_nan=False))
        return
    print(numbers["summary"])
    print(f"The report is in {output}.")


def _print_summary(models):
    """Print which model to use, and of each its summary and the code of its advice."""
    for line in comparisons(models):
        print(line)
    for model in models:
        print(f"{model['name']}: {model['summary']}")
        if model["advice"]["code"]:
            print(model["advice"]["code"])


def _checked_thresholds(arguments):
    """Return the sorted thresholds, or raise if a threshold or the tolerance is out of
    range.
    """
    thresholds = sorted(set(arguments.threshold))
    if not all(0 < threshold < 1 for threshold in thresholds):
        raise ReportError(
            "--threshold must be above 0 and below 1, found"
            f" {', '.join(f'{threshold:g}' for threshold in thresholds)}."
        )
    if not 0 < arguments.tolerance < 100:
        raise ReportError(
            "--tolerance must be above 0 and below 100 percentage points, found"
            f" {arguments.tolerance:g}."
        )
    return thresholds


def _reading(arguments):
    """Return how the values of files are read, as `Reading`."""
    return Reading(
        scale=arguments.scale,
        normalise=arguments.normalise,
        missing=arguments.missing,
        time_format=arguments.time_format,
        table=arguments.table,
        query=arguments.query,
        has_unlabelled=arguments.unlabelled in arguments.file,
    )


def _tables(arguments, step):
    """Read and return the table of the file, and that of the baseline or None, both
    `ReportTable`. `step` is called with a text before each file is read.
    """
    # Options for both files.
    columns = {
        "label": arguments.label,
        "time_to_event": arguments.time_to_event,
        "event": arguments.event,
        "horizon": arguments.horizon,
        "scores": arguments.scores,
        "classes": arguments.classes,
        "positive": arguments.positive,
        "negative": arguments.negative,
        "cluster": arguments.cluster,
        "seed": arguments.seed,
        "names": arguments.names,
        "weight": arguments.weight,
        "weight_type": arguments.weight_type,
        "reading": _reading(arguments),
    }
    time_order = None
    if arguments.time_order is not None:
        time_order = [name.strip() for name in arguments.time_order.split(",")]
    step(f"reading {shown_source(arguments.file)}")
    table = read_table(
        arguments.file,
        segment=arguments.segment,
        time=arguments.time,
        time_order=time_order,
        **columns,
    )
    if arguments.baseline is None:
        return table, None
    step(f"reading {arguments.baseline}")
    # The baseline must have the columns that were found in the first file.
    if arguments.time_to_event is None:
        columns["label"] = table.label
    if not arguments.scores:
        columns["scores"] = list(table.file_columns)
    return table, read_table(arguments.baseline, **columns)


def _check_output(output, arguments):
    """Raise if the page would replace an input, has no folder, or cannot be drawn with
    the packages that are installed.
    """
    for path in _files_read(arguments):
        if output.exists() and path.exists() and output.samefile(path):
            raise ReportError(
                f"-o {output} is the input: the page would overwrite it. Name another"
                " file."
            )
    folder = output.absolute().parent
    if not folder.is_dir():
        raise ReportError(f"{output} cannot be written: there is no folder {folder}.")
    for package in ("matplotlib", "jinja2"):
        if find_spec(package) is None:
            raise ReportError(
                f"the page needs {package}: {install('report')}, or use --json."
            )
    if output.suffix.lower() == ".pdf" and pdf_printer() is None:
        raise ReportError(
            f"-o {output} needs Chromium or WeasyPrint to write a PDF, and neither is"
            f" installed: {install('pdf')}, or use -o {output.stem}.html."
        )


def _files_read(arguments):
    """Return the paths of all input files; a glob stands for all files that match."""
    found = []
    for name in (*arguments.file, arguments.baseline, arguments.unlabelled):
        if name is None or name == STANDARD_INPUT or is_url(name):
            continue
        path = Path(name)
        if path.exists():
            found.append(path)
        else:
            found += map(Path, glob(name, recursive=True))
    return found


def _write_page(output, numbers, table, seed, step):
    """Draw the pictures and write the page: PDF if `output` ends in .pdf, else HTML.
    `step` is called with a text before each step, which reports the progress.
    """
    from skcalib._report._pictures import class_pictures, reliability_picture

    step("pictures")
    pictures = {"reliability": reliability_picture(table, seed)}
    if numbers["classes"]:
        for model in numbers["models"]:
            step(f"pictures of the classes of {model['name']}")
            pictures["classes", model["name"]] = class_pictures(
                table, model["name"], model["classes"], seed
            )
    step("page")
    _save_page(report_page(numbers, pictures), output, step)


def _save_page(page, output, step):
    """Write a page, a text, to the path `output`, as HTML or PDF; `step` is called with
    a text before the PDF is made.
    """
    path = Path(output).resolve()
    try:
        if path.exists() and not path.is_file():  # a pipe or a device
            path.write_text(page, encoding="utf-8")
            return
        # A temporary file replaces the old one at the end, so that a failed write
        # leaves the old one unchanged.
        temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            if path.suffix.lower() == ".pdf":
                step("PDF")
                write_pdf(page, temporary)
            else:
                temporary.write_text(page, encoding="utf-8")
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ReportError(
            f"{output} cannot be written: {error.strerror or error}."
        ) from error


class _ProgressLines:
    """Lines on standard error with the last step of the work, and the share of the
    steps that are done.
    """

    def __init__(self):
        self.begun = monotonic()
        self.written = self.begun  # time of the last line
        self.n_lines = 0
        self.n_begun = 0  # steps
        self.n_steps = None  # in all, once the file is read
        self.last_step = None

    def __call__(self, what):
        """Note the next step, a text; after the first 5 s also write it."""
        self.last_step = what
        self.n_begun += 1
        if monotonic() - self.begun >= _QUIET_SECONDS:
            self._write()

    def remind(self, done):
        """Write a line whenever none was written for 5 s, until the event `done`."""
        while not done.wait(_QUIET_SECONDS / 5):  # looks once a second
            is_quiet = monotonic() - self.written >= _QUIET_SECONDS
            if self.last_step is not None and is_quiet:
                self._write()

    def end(self):
        """Write that all is done, if anything was written before."""
        if self.n_lines:
            self.last_step = "done"
            self._write(percent=100)

    def _write(self, percent=None):
        """Write a line with the last step, the share of the steps and the time since
        the start.
        """
        self.written = monotonic()
        self.n_lines += 1
        share = ""
        if percent is None and self.n_steps is not None:
            percent = 100 * min((self.n_begun - 1) / self.n_steps, 0.99)
        if percent is not None:
            share = f"{percent:.0f} %, "
        print(
            f"skcalib report: {self.last_step} ({share}"
            f"{self.written - self.begun:.0f} s)",
            file=sys.stderr,
            flush=True,
        )


@contextmanager
def _progress():
    """Yield a function to be called with a text before each step. If the work takes
    more than 5 s, the last step is written to standard error at least every 5 s, and
    100 % at the end.
    """
    lines = _ProgressLines()
    done = Event()
    if _QUIET_SECONDS > 0:  # with 0 each step is written at once, and none repeated
        Thread(target=lines.remind, args=(done,), daemon=True).start()
    try:
        yield lines
        done.set()
        lines.end()
    finally:
        done.set()
