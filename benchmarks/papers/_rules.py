"""Rules: what a paper prints, and which measurements agree with it, differ from it or
do not decide.

Rules are written down before anything is measured, so that no row can compare a
measurement with itself.
"""

from dataclasses import dataclass
from math import inf, isfinite

__all__ = ["Row", "Rule", "above", "below", "judge", "labels_of", "printed"]

VERDICTS = ("agrees", "differs", "not decidable")


@dataclass(frozen=True)
class Rule:
    """What a paper prints, and the limits within which a measurement agrees with it.

    Parameters
    ----------
    paper : str
        The printed figure or claim, as text.
    low, high : float
        Limits of agreement.
    width : float or None
        None for a claim: the whole interval must lie within the limits to agree, and
        outside of them to differ. For a printed number: the widest interval that
        decides. Such an interval agrees if it meets the limits.
    possible : tuple of float
        Least and greatest value that a measurement can take. A rule that none of them
        can fail is refused.
    """

    paper: str
    low: float = -inf
    high: float = inf
    width: float | None = None
    possible: tuple[float, float] = (-inf, inf)

    def __post_init__(self):
        if not self.wrong_values():
            raise ValueError(
                f"The rule {self.paper!r} cannot fail: no possible value is outside its"
                " limits."
            )
        if self.width is not None and not self.width > 0:
            raise ValueError(f"The rule {self.paper!r} needs a positive width.")

    def verdict(self, low, high):
        """Return the verdict on the interval [low, high]."""
        if high < self.low or low > self.high:
            return "differs"
        if self.width is None:
            decided = self.low <= low and high <= self.high
        else:
            decided = high - low <= self.width
        return "agrees" if decided else "not decidable"

    def width_for_verdict(self, measured):
        """Return the width below which an interval around `measured` decides."""
        if self.width is not None:
            return self.width
        return 2 * min(
            abs(measured - limit) for limit in (self.low, self.high) if isfinite(limit)
        )

    def wrong_values(self):
        """Return possible values outside the limits, at most one on each side."""
        values = []
        if self.possible[0] < self.low:
            values.append(
                self.possible[0]
                if isfinite(self.possible[0])
                else self.low - 1 - abs(self.low)
            )
        if self.possible[1] > self.high:
            values.append(
                self.possible[1]
                if isfinite(self.possible[1])
                else self.high + 1 + abs(self.high)
            )
        return values


def printed(value, *, margin=0.0, width=None, possible=(-inf, inf)):
    """Return the rule of a printed number, with the paper's own error or the half of
    its last digit as margin.

    By default an interval decides if it is not wider than both margins and a fifth of
    the number.
    """
    shown = f"{value:g} +- {margin:g}" if margin else f"{value:g}"
    width = 2 * margin + 0.2 * abs(value) if width is None else width
    return Rule(shown, value - margin, value + margin, width, possible)


def above(limit, paper=None, *, possible=(-inf, inf)):
    """Return the rule of a claim that something is at least `limit`."""
    return Rule(paper or f"above {limit:g}", low=limit, possible=possible)


def below(limit, paper=None, *, possible=(-inf, inf)):
    """Return the rule of a claim that something is at most `limit`."""
    return Rule(paper or f"below {limit:g}", high=limit, possible=possible)


@dataclass(frozen=True)
class Row:
    """One quantity of a paper, measured anew. `needs_width` is set where the interval
    decides nothing.
    """

    quantity: str
    paper: str
    measured: float
    low: float
    high: float
    verdict: str
    needs_width: float | None = None


def judge(rules, measurements):
    """Return rows of (quantity, (measured, low, high)) pairs, in their order, by the
    rules of their quantities.

    An interval ends where the possible values end.
    """
    rows = []
    for quantity, (measured, low, high) in measurements:
        rule = rules[quantity]
        low, high = max(low, rule.possible[0]), min(high, rule.possible[1])
        verdict = rule.verdict(low, high)
        needs = rule.width_for_verdict(measured) if verdict == "not decidable" else None
        rows.append(
            Row(
                quantity,
                rule.paper,
                float(measured),
                float(low),
                float(high),
                verdict,
                needs,
            )
        )
    return rows


def labels_of(quantity):
    """Return the figures, tables and theorems that a quantity names: all before its
    first colon.
    """
    return quantity.partition(":")[0].split(", ")
