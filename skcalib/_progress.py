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
        """Write a line to standard error, unless there was one less than two seconds
        ago: the text `done`, which says what has been done, and the seconds so far.

        If the share of the work that is done is given, in (0, 1], the line also says
        how many seconds are left at the same speed.
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
        """Yield results as they come, and write after each how many of `total` there
        are. `what` names them in the plural.
        """
        for number, result in enumerate(results, start=1):
            self(f"{number:,} of {total:,} {what}", number / total)
            yield result
