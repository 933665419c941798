"""How far long work has come, as lines on standard error."""

import sys
from dataclasses import dataclass, field
from time import monotonic

_SECONDS = 2.0  # between two lines


@dataclass(eq=False)
class Progress:
    """Writes a line, at most every two seconds, each time it is called with what has
    been done.

    Parameters
    ----------
    title : str
        Who is at work: it stands in front of each line.
    verbose : bool
        Whether anything is written.
    """

    title: str
    verbose: bool
    # times in seconds: of the start, and of the last line
    begun: float = field(default_factory=monotonic)
    last: float = field(default=-float("inf"), init=False)

    def __call__(self, done, share=0.0):
        """Write a line with what has been done and the seconds so far, unless there was
        one a moment ago.

        With the share of the work that is done the line also says how many seconds are
        left if it goes on like that.
        """
        now = monotonic()
        if self.verbose and now - self.last >= _SECONDS:
            self.last = now
            seconds = now - self.begun
            left = ""
            if share:
                left = f", about {seconds * (1 / share - 1):.0f} s left"
            print(
                f"[{self.title}] {done}, {seconds:.0f} s{left}",
                file=sys.stderr,
                flush=True,
            )

    def over(self, results, total, what):
        """Yield the results as they come, and write how many of them there are."""
        for number, result in enumerate(results, start=1):
            self(f"{number:,} of {total:,} {what}", number / total)
            yield result
