"""The command ``python -m benchmarks.papers NAME``.

Each module of this folder is a reproduction: ``run(options) -> list of Row``, with a docstring that says what of. Its
name on the command line has dashes. `options` has `data` (a Path or None), `repeats` (an int or None for the module's
own default), `quick`, `n_jobs` and `plot` (a path for the figure, or None).
"""

import argparse
import importlib
import pkgutil
import sys
from pathlib import Path

import benchmarks.papers
from benchmarks.papers._report import print_json, print_table


def main(argv=None):
    """Run one reproduction and print its table; return the exit status."""
    names = [module.name for module in pkgutil.iter_modules(benchmarks.papers.__path__) if module.name[0] != "_"]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description="Reproduce a paper's figures.")
    parser.add_argument("name", choices=[name.replace("_", "-") for name in names])
    parser.add_argument("--data", type=Path, help="folder of the real data, for the reproductions that need it")
    parser.add_argument("--repeats", type=int, help="number of repeats (default: the reproduction's own)")
    parser.add_argument("--quick", action="store_true", help="under a minute, with wider intervals")
    parser.add_argument("--n-jobs", type=int, default=1, help="parallel jobs, where a reproduction has them")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw the figure (needs matplotlib)")
    options = parser.parse_args(argv)
    module = importlib.import_module(f"benchmarks.papers.{options.name.replace('-', '_')}")
    if getattr(module, "NEEDS_DATA", False) and options.data is None:
        parser.error(f"{options.name} needs the real data: --data DIR")
    rows = module.run(options)
    (print_json if options.json else print_table)(rows, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
