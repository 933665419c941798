"""How far long work has come, as lines on standard error."""

import sys
from time import monotonic

__all__ = ["Progress"]

_SECONDS = 2.0  # between two lines


class Progress:
    """Writes a line, at most every two seconds, each time it is called with what has been done.

    Parameters
    ----------
    title : str
        Who is at work: it stands in front of each line.
    verbose : bool
        Whether anything is written.
    """

    def __init__(self, title, verbose):
        self.title, self.verbose = title, verbose
        self.begun, self.last = monotonic(), -float("inf")

    def __call__(self, done):
        """Write a line with what has been done and the seconds so far, unless there was one a moment ago."""
        now = monotonic()
        if self.verbose and now - self.last >= _SECONDS:
            self.last = now
            print(f"[{self.title}] {done}, {now - self.begun:.0f} s", file=sys.stderr, flush=True)
