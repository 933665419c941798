"""Jobs against another version of the library: ``python -m benchmarks.speed.against
CHECKOUT [--job NAME ...]``.

``CHECKOUT`` is a folder with the other version, such as that of ``git worktree add``.
Each run is a process of its own, with one thread, that imports the version and does the
job once. The versions take turns, and the table has the median of the ratios of their
processor time, import included. The status is 1 if a job takes more than 1.1 times as
much here.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks.speed.jobs import JOBS

_HERE = Path(__file__).parents[2]
_LARGEST_RATIO = 1.1
# What a run does: its seconds are those of the process up to the end of the job, less
# those in which the problem is made.
_RUN = """
import sys
import time

from benchmarks.speed.jobs import JOBS

job = JOBS[sys.argv[1]]
began = time.process_time()
problem = job.make(*job.full)
making = time.process_time() - began
job.ours(problem)
print(time.process_time() - making)
"""


def main(argv=None):
    """Time the jobs and print their ratios; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.against", description=__doc__.splitlines()[0]
    )
    parser.add_argument("checkout", type=Path, help="folder of the other version")
    parser.add_argument(
        "--job", action="append", choices=list(JOBS), help="one job (repeat for more)"
    )
    parser.add_argument("--rounds", type=int, default=5, help="runs of each version")
    options = parser.parse_args(argv)
    print("| job | there s | here s | here / there |\n|---|--:|--:|--:|")
    slower = 0
    for name in options.job or JOBS:
        pairs = timed(name, options.checkout, options.rounds)
        if pairs is None:
            print(f"| {name} | | | does not run there |", flush=True)
            continue
        there, here = map(statistics.median, zip(*pairs, strict=True))
        ratio = statistics.median(here / there for there, here in pairs)
        print(f"| {name} | {there:.3g} | {here:.3g} | {ratio:.2f} |", flush=True)
        slower += ratio > _LARGEST_RATIO
    return int(slower > 0)


def timed(name, checkout, rounds):
    """Return the seconds of a job there and here, a pair for each round, or None if it
    does not run there.
    """
    pairs = []
    for _ in range(rounds):
        there = seconds(name, checkout)
        if there is None:
            return None
        here = seconds(name, _HERE)
        if here is None:
            raise RuntimeError(f"the job {name!r} does not run")
        pairs.append((there, here))
    return pairs


def seconds(name, checkout):
    """Return the processor time of one run in a checkout, or None if it fails."""
    folder = checkout.resolve()
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    found = subprocess.run(
        [sys.executable, "-c", _RUN, name],
        cwd=folder,
        env=os.environ | threads | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )
    return float(found.stdout) if found.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())
