"""The command line: ``python -m skcalib``."""

import argparse
import re
import sys
from pathlib import Path

from skcalib._report._command import add_report_command


def main(argv=None):
    """Run a command and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m skcalib",
        description="Calibrated probabilities for scikit-learn.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser(
        "demo",
        help=(
            "recalibrate a model on bundled data, select the bins and print the gain"
        ),
    )
    demo.add_argument(
        "--data",
        choices=("digits", "breast_cancer"),
        default="digits",
        help="bundled data set",
    )
    demo.add_argument(
        "--seed",
        type=int,
        default=0,
        help="seed for the split into training and held-out data",
    )
    demo.set_defaults(run=_run_demo)
    add_report_command(commands)
    given = list(sys.argv[1:] if argv is None else argv)
    words = list(given)
    # A file alone is a report: it exists, or has a suffix, a folder or a star in it.
    first = words[0] if words else "--help"
    is_option = first.startswith("-") and first != "-"
    looks_like_file = Path(first).exists() or re.search(r"[-./*?:]", first)
    if first not in commands.choices and not is_option and looks_like_file:
        words.insert(0, "report")
    arguments = parser.parse_args(words)
    # A report shows the command line by which it was made.
    arguments.argv = given
    return arguments.run(arguments)


def _run_demo(arguments):
    """Run the demonstration and return the exit status."""
    from skcalib._demo import run_demo

    run_demo(arguments.data, arguments.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
