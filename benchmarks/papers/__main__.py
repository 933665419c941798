"""The command ``python -m benchmarks.papers NAME``.

Each module of this folder is a reproduction. `PAPER` is the key of its paper, `ROWS`
its rules by quantity, and ``measure(options)`` yields pairs (quantity, (measured, low,
high)). Its name on the command line has dashes. `options` has `data` (a Path or None),
`repeats` (an int or None for the module's own default), `quick`, `n_jobs` and `plot` (a
path for the figure, or None). The name ``index`` rewrites the index of
``doc/evidence/reproductions.md``.
"""

import argparse
import datetime
import platform
import sys
import time
from pathlib import Path

from benchmarks.papers._index import index_text, modules
from benchmarks.papers._output import (
    json_text,
    markdown_rows,
    replace_section,
    table_text,
    verdicts_in,
)
from benchmarks.papers._rules import judge

PAGE = Path(__file__).parents[2] / "doc" / "evidence" / "reproductions.md"


def main(argv=None):
    """Run one reproduction and print its table; return the exit status."""
    reproductions = modules()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers", description="Reproduce a paper's figures."
    )
    parser.add_argument("name", choices=[*reproductions, "index"])
    parser.add_argument(
        "--data",
        type=Path,
        help="folder of the real data, for the reproductions that need it",
    )
    parser.add_argument(
        "--repeats",
        type=int,
        help="number of repeats (default: the reproduction's own)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="under a minute, with wider intervals"
    )
    parser.add_argument(
        "--n-jobs",
        type=int,
        default=1,
        help="parallel jobs, where a reproduction has them",
    )
    parser.add_argument(
        "--json", action="store_true", help="print JSON in place of the table"
    )
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="also draw the figure (needs matplotlib)",
    )
    parser.add_argument(
        "--markdown",
        type=Path,
        nargs="?",
        const=PAGE,
        help="also write the table and the index into this page",
    )
    options = parser.parse_args(argv)
    if options.name == "index":
        _write_index(options.markdown or PAGE)
        return 0
    module = reproductions[options.name]
    if getattr(module, "NEEDS_DATA", False) and options.data is None:
        parser.error(f"{options.name} needs the real data: --data DIR")
    start = time.process_time()
    rows = judge(module.ROWS, module.measure(options))
    if options.markdown is not None:
        _write_section(options, rows, time.process_time() - start)
    print((json_text if options.json else table_text)(rows), file=sys.stdout)
    return 0


def _write_section(options, rows, seconds):
    arguments = [
        options.name,
        *(["--data DIR"] if options.data else []),
        *(["--quick"] if options.quick else []),
    ]
    arguments += [f"--repeats {options.repeats}"] if options.repeats else []
    how = (
        f"`python -m benchmarks.papers {' '.join(arguments)}`, {seconds:.0f} s of"
        f" processor time, {datetime.date.today()}, {_versions()}."
    )
    text = options.markdown.read_text(encoding="utf-8")
    options.markdown.write_text(
        replace_section(text, options.name, markdown_rows(rows, how)), encoding="utf-8"
    )
    _write_index(options.markdown)


def _write_index(page):
    text = page.read_text(encoding="utf-8")
    page.write_text(
        replace_section(text, "index", index_text(verdicts_in(text))), encoding="utf-8"
    )


def _versions():
    import numpy
    import scipy
    import sklearn

    return (
        f"Python {platform.python_version()}, NumPy {numpy.__version__}, SciPy"
        f" {scipy.__version__}, scikit-learn {sklearn.__version__}"
    )


if __name__ == "__main__":
    sys.exit(main())
