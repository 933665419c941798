"""How cost grows: ``python -m benchmarks.speed.growth`` prints, for every public
function, the exponent of its cost and how many times its plain sibling it takes.

A job is run at growing sizes, until a run takes 20 seconds (``--seconds``). The
exponent is the slope of a line through the logarithms of its processor times: 1 for a
cost in proportion. The last sizes count, because the fixed cost of a call flattens the
line at small ones. The sibling is the plainest job on the same data, at the largest
size that both reached. A job that takes more than ten times as long as it is marked as
a cliff, with the reason where it is known.

``--only`` takes a regular expression of job names, ``--most`` a limit of the sizes.
``--memory`` prints what each job allocates at its peak, and marks more than four times
its input and 200 MB.
"""

import argparse
import re
import signal
import sys
import time
import tracemalloc
import warnings
from functools import partial

import numpy as np

from benchmarks.speed.growth_jobs import GROWTH, REASONS, Growth

__all__ = [
    "GROWTH",
    "Growth",
    "input_of",
    "is_cliff",
    "measured",
    "memory_line",
    "peak_of",
    "seconds_of",
    "slope",
]

# A run ends after so many seconds, and no larger size is tried.
_MOST_SECONDS = 20.0
# A cost that is more times that of the sibling is a cliff.
_CLIFF = 10.0
# The most memory beside the input: so many times as much, and so many megabytes.
_TIMES_THE_INPUT, _MEGABYTES = 4, 200


def slope(sizes, seconds):
    """Return the slope of log(seconds) over log(size) of the last three sizes; NaN for
    one size.
    """
    if len(seconds) < 2:
        return np.nan
    last = slice(max(len(seconds) - 3, 0), len(seconds))
    return float(np.polyfit(np.log(sizes[last]), np.log(seconds[last]), 1)[0])


class _TooLongError(Exception):
    """A run takes too many seconds."""


def measured(growth, *, most=np.inf, most_seconds=_MOST_SECONDS):
    """Return the seconds of processor time of the sizes up to `most` (a list), and why
    no larger one was run, or "". A run ends soon after `most_seconds`.
    """
    seconds = []
    for size in growth.sizes:
        if size > most:
            break
        if len(seconds) > 1:
            # What the next size would take if the cost grew as it last did.
            factor = size / growth.sizes[len(seconds) - 1]
            power = slope(growth.sizes, seconds)
            if seconds[-1] * factor**power > 2 * most_seconds:
                return seconds, f"{size:,} would take more than {most_seconds:g} s"
        try:
            run = growth.make(size)
            seconds.append(_ended_after(most_seconds, partial(seconds_of, run)))
        except _TooLongError:
            return seconds, f"{size:,} takes more than {most_seconds:g} s"
        except (ValueError, MemoryError) as error:
            return seconds, f"{size:,}: {str(error)[:60]}"
    return seconds, ""


def _ended_after(most_seconds, measure):
    """Return what ``measure()`` returns, or raise `_TooLongError` after some seconds of
    processor time.
    """

    def end(*_):
        raise _TooLongError

    previous = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, most_seconds)
    try:
        return measure()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def seconds_of(run):
    """Return the processor time of the quickest of up to three runs."""
    best = np.inf
    for _ in range(3):
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run()
        best = min(best, time.process_time() - start)
        if best > 1:
            break
    return max(best, 1e-6)


def peak_of(run):
    """Return the megabytes that a run allocates at its peak, beside its input."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tracemalloc.start()
        try:
            run()
            return tracemalloc.get_traced_memory()[1] / 1e6
        finally:
            tracemalloc.stop()


def input_of(run):
    """Return the megabytes of the arrays that a run is given."""
    if isinstance(run, partial):
        values = [run.func, *run.args, *run.keywords.values()]
    elif isinstance(run, dict):
        values = run.values()
    elif isinstance(run, list | tuple):
        values = run
    else:
        return getattr(run, "nbytes", 0) / 1e6
    return sum(map(input_of, values))


def memory_line(name, growth, *, most=np.inf, most_seconds=_MOST_SECONDS):
    """Return the line of a job's peak memory at the largest size that ends in time, up
    to `most`.
    """
    found = ""
    for size in growth.sizes:
        if size > most:
            break
        try:
            run = growth.make(size)
            peak = _ended_after(most_seconds, partial(peak_of, run))
        except (_TooLongError, ValueError):
            break
        given = input_of(run)
        mark = "" if peak <= _TIMES_THE_INPUT * given + _MEGABYTES else "EXCEEDS"
        found = f"{size:,} | {given:.0f} | {peak:.0f} | {mark}"
    return f"{name} | {found}"


def is_cliff(ratio):
    """Return whether a job takes so many times the time of its sibling that it is a
    cliff.
    """
    return ratio > _CLIFF


def _line(name, growth, seconds, why, sibling):
    """Return the line of a job: exponent, ratio to its sibling, and seconds."""
    shown = ", ".join(
        f"{size:,}: {second:.3g}"
        for size, second in zip(growth.sizes, seconds, strict=False)
    )
    ratio = ""
    if sibling:
        last = min(len(seconds), len(sibling)) - 1
        times = seconds[last] / sibling[last]
        mark = ""
        if is_cliff(times):
            mark = f" CLIFF {REASONS.get(name, '')}".rstrip()
        ratio = f"{times:.3g} x {growth.sibling} at {growth.sizes[last]:,}{mark}"
    exponent = slope(growth.sizes, seconds)
    return f"{name} | {exponent:.2f} | {ratio} | {shown} | {why}"


def main(argv=None):
    """Print a line for each growth; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="regular expression of jobs")
    parser.add_argument("--most", type=float, default=np.inf, help="largest size")
    parser.add_argument(
        "--seconds", type=float, default=_MOST_SECONDS, help="after which a run ends"
    )
    parser.add_argument(
        "--memory", action="store_true", help="print the peak memory of each job"
    )
    options = parser.parse_args(argv)
    limits = {"most": options.most, "most_seconds": options.seconds}
    if options.memory:
        print("job | size | input, MB | peak, MB | beyond the limit")
        for name, growth in GROWTH.items():
            if re.search(options.only, name):
                print(memory_line(name, growth, **limits), flush=True)
        return 0
    print("job | exponent | ratio to the plain sibling | seconds | ended")
    known = {}
    for name, growth in GROWTH.items():
        if not re.search(options.only, name):
            continue
        # A sibling that was not asked for is measured all the same.
        for one in filter(None, (growth.sibling, name)):
            if one not in known:
                known[one] = measured(GROWTH[one], **limits)
        seconds, why = known[name]
        if not seconds:
            print(f"{name} | | | | {why}", flush=True)
            continue
        sibling = known[growth.sibling][0] if growth.sibling else []
        print(_line(name, growth, seconds, why, sibling), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
