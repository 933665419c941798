"""How cost grows: ``python -m benchmarks.speed.growth`` prints, for every public
function, the exponent of its cost and how many times its plain sibling it takes.

A job is run at growing sizes, until one run takes 20 seconds. The exponent is the slope
of a line through the logarithms of its processor times: 1 for a cost in proportion. The
last sizes count, because the fixed cost of a call flattens the line at small ones. The
sibling is the plainest job on the same data, at the largest size that both reached. A
job that takes more than ten times as long as it is marked as a cliff, with the reason
where it is known.

``--only`` takes a regular expression of job names, ``--most`` a limit of the sizes.
"""

import argparse
import re
import sys
import time
import warnings

import numpy as np

from benchmarks.speed.growth_jobs import GROWTH, REASONS, Growth

__all__ = ["GROWTH", "Growth", "is_cliff", "measured", "seconds_of", "slope"]

# A larger size is not tried where a run took, or would take, more seconds than this.
_MOST_SECONDS = 20.0
# A cost that is more times that of the sibling is a cliff.
_CLIFF = 10.0


def slope(sizes, seconds):
    """Return the slope of log(seconds) over log(size) of the last three sizes; NaN for
    one size.
    """
    if len(seconds) < 2:
        return np.nan
    last = slice(max(len(seconds) - 3, 0), len(seconds))
    return float(np.polyfit(np.log(sizes[last]), np.log(seconds[last]), 1)[0])


def measured(growth, *, most=np.inf):
    """Return the seconds of processor time of the sizes up to `most` (a list), and why
    no larger one was run, or "".
    """
    seconds = []
    for size in growth.sizes:
        if size > most:
            break
        if seconds:
            # What the next size would take if the cost grew as it last did, at least
            # in proportion.
            power = max(np.nan_to_num(slope(growth.sizes, seconds), nan=1.0), 1.0)
            factor = size / growth.sizes[len(seconds) - 1]
            if seconds[-1] * factor**power > 2 * _MOST_SECONDS:
                return seconds, f"{size:,} would take more than {_MOST_SECONDS:g} s"
        try:
            run = growth.make(size)
            taken = seconds_of(run)
        except (ValueError, MemoryError) as error:
            return seconds, f"{size:,}: {str(error)[:60]}"
        seconds.append(taken)
        if taken > _MOST_SECONDS:
            return seconds, "ended"
    return seconds, ""


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
    options = parser.parse_args(argv)
    print("job | exponent | ratio to the plain sibling | seconds | ended")
    known = {}
    for name, growth in GROWTH.items():
        if not re.search(options.only, name):
            continue
        # A sibling that was not asked for is measured all the same.
        for one in filter(None, (growth.sibling, name)):
            if one not in known:
                known[one] = measured(GROWTH[one], most=options.most)
        seconds, why = known[name]
        if not seconds:
            print(f"{name} | | | | {why}", flush=True)
            continue
        sibling = known[growth.sibling][0] if growth.sibling else None
        print(_line(name, growth, seconds, why, sibling), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
