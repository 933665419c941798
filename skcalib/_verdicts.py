"""From an estimate to words: the five verdicts, and the one number format of every
sentence.
"""

from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

_MOST_DECIMALS = 10
# Half of the width of an interval is between 3 and 30 units of the last decimal that is
# printed: finer digits are noise.
_UNITS_IN_HALF_WIDTH = 3
# A limit in "fine to within x" needs no digits finer than this part of the tolerance.
_UNITS_IN_TOLERANCE = 20


@dataclass(frozen=True)
class Verdict:
    """What an estimate with its interval says about a quantity that should be 0.

    Parameters
    ----------
    kind : {"off", "off, size unclear", "fine", "cannot tell", "mixed"}
        The verdict.
    estimate, low, high : float
        The estimate and the limits of its interval, minus the value that is right.
    n : float
        Number of samples, the effective number where they have weights or clusters.
    tolerance : float
        The size that does not matter.
    n_needed : int or None
        The number of samples below which a quantity of 0 is never told to be fine,
        where the verdict is "cannot tell".
    """

    kind: str
    estimate: float
    low: float
    high: float
    n: float
    tolerance: float
    n_needed: int | None = None

    @property
    def is_off(self):
        """Whether the quantity is off, whatever its size."""
        return self.kind in ("off", "off, size unclear")

    @property
    def needed_if(self):
        """The case in which `n_needed` samples may be enough, in words.

        Where the interval is wider than the tolerance, it must shrink whatever the
        estimate; where it fits into it, the estimate is what stands in the way.
        """
        if (self.high - self.low) / 2 > self.tolerance:
            return "even if nothing is off"
        return "if the estimate holds"

    @property
    def limit(self):
        """The larger limit of the interval in size: the quantity is at most so far
        off.
        """
        return max(abs(self.low), abs(self.high))

    def words(
        self,
        *,
        scale=1.0,
        unit="",
        high="too high",
        low="too low",
        samples="samples",
        level="",
    ):
        """Return the verdict in words.

        Parameters
        ----------
        scale : float, default=1.0
            What numbers are multiplied by: 100 for percentage points.
        unit : str, default=""
            What follows a number: "points", "%".
        high, low : str, default="too high", "too low"
            What being above 0 and below 0 means.
        samples : str, default="samples"
            What `n` counts: "samples", "clusters".
        level : str, default=""
            What names the limits where these are printed: "95 %".

        Returns
        -------
        words : str
            Without a subject and without a full stop.
        """
        if self.kind == "cannot tell":
            words = f"cannot tell with {count_words(self.n)} {samples}"
            if self.n_needed is None:
                return words
            needed = f"at least {rounded_up(self.n_needed)} are needed"
            return f"{words}; {needed}, {self.needed_if}"
        if self.kind == "mixed":
            return "mixed"
        digits = decimals(scale * self.low, scale * self.high)
        if self.kind == "fine":
            limit = self._limit_words(scale, digits)
            return f"fine to within {limit}{_after(limit, unit)}"
        side = high if self.estimate > 0 else low
        # "2 to 5 points too low": both limits are on one side, and have no sign.
        near, far = sorted((abs(self.low), abs(self.high)))
        between = f"{fixed(scale * near, digits)} to {fixed(scale * far, digits)}"
        if self.kind == "off":
            size = fixed(abs(scale * self.estimate), digits)
            limits = f"{level}: {between}" if level else between
            return f"{size}{_after(size, unit)} {side} ({limits})"
        words = f"{side} by {between}{_after(between, unit)}"
        return f"{words} ({level})" if level else words

    def _limit_words(self, scale, digits):
        """Return the larger limit as text, rounded up to so many decimals but not
        beyond the tolerance; `scale` multiplies the quantity, as 100 does for percent.
        """
        tolerance = scale * self.tolerance
        # The fewest decimals d for which 10^-d is at most a twentieth of the tolerance.
        # Here and below 1e-9 allows for rounding: 14.000000000000002 is 14.
        finest = max(0, ceil(-log10(tolerance / _UNITS_IN_TOLERANCE) - 1e-9))
        digits = min(digits, finest)
        limit = ceil(scale * self.limit * 10**digits - 1e-9) / 10**digits
        if limit > tolerance:
            return rounded(tolerance)
        return fixed(limit, digits)


def verdict(estimate, interval, n, tolerance, *, reference=0.0):
    """Return what an estimate says, in one of five words.

    Parameters
    ----------
    estimate : float
        The estimate.
    interval : tuple of float
        Its lower and upper limit. Limits that are not finite tell nothing.
    n : float
        Number of samples, the effective number where they have weights or clusters.
    tolerance : float
        The size, above 0, up to which being off does not matter.
    reference : float, default=0.0
        The value that is right, 1 for a slope.

    Returns
    -------
    verdict : Verdict
        "off" if the whole interval lies beyond the tolerance; "fine" if it lies within;
        "off, size unclear" if it excludes 0 but not the tolerance; else "cannot tell".

    Examples
    --------
    >>> verdict(-0.148, (-0.171, -0.125), 900, 0.02).words(scale=100, unit="points")
    '14.8 points too low (12.5 to 17.1)'
    >>> verdict(0.03, (0.01, 0.05), 900, 0.02).words(scale=100, unit="points")
    'too high by 1.0 to 5.0 points'
    >>> verdict(0.002, (-0.01, 0.014), 900, 0.02).words(scale=100, unit="points")
    'fine to within 1.4 points'
    >>> verdict(0.01, (-0.09, 0.11), 48, 0.02).words(scale=100, unit="points")
    'cannot tell with 48 samples; at least 1,200 are needed, even if nothing is off'
    """
    estimate = float(estimate) - reference
    low = float(interval[0]) - reference
    high = float(interval[1]) - reference
    if not (isfinite(low) and isfinite(high)):
        return Verdict("cannot tell", estimate, low, high, n, tolerance)
    if low > tolerance or high < -tolerance:
        # the whole interval is beyond the tolerance
        kind = "off"
    elif max(abs(low), abs(high)) <= tolerance:
        # the whole interval is within it
        kind = "fine"
    elif low > 0 or high < 0:
        # it excludes 0, and holds the tolerance
        kind = "off, size unclear"
    else:
        needed = _samples_that_tell(estimate, low, high, n, tolerance)
        return Verdict("cannot tell", estimate, low, high, n, tolerance, needed)
    return Verdict(kind, estimate, low, high, n, tolerance)


def overall_verdict(verdicts):
    """Return the verdict of all segments or periods together.

    It is "mixed" where they disagree: some are off and others fine, or they are off on
    both sides. Else it is the one that says most: the largest that is off, else the one
    that needs the most samples, else the one with the widest limit.

    Parameters
    ----------
    verdicts : sequence of Verdict
        One a segment or period, at least one, with simultaneous limits.

    Returns
    -------
    verdict : Verdict
        "mixed" has the numbers of the largest that is off.
    """
    off = []
    unclear = []
    fine = []
    for verdict in verdicts:
        if verdict.is_off:
            off.append(verdict)
        elif verdict.kind == "cannot tell":
            unclear.append(verdict)
        elif verdict.kind == "fine":
            fine.append(verdict)
    if not off and unclear:
        return max(unclear, key=lambda verdict: verdict.n_needed or float("inf"))
    if not off:
        return max(verdicts, key=lambda verdict: verdict.limit)
    # The one that is off by the most for certain: by the limit that is nearer to 0.
    worst = max(off, key=lambda verdict: min(abs(verdict.low), abs(verdict.high)))
    sides = {verdict.estimate > 0 for verdict in off}  # True is too high
    if fine or len(sides) == 2:
        return Verdict(
            "mixed", worst.estimate, worst.low, worst.high, worst.n, worst.tolerance
        )
    return worst


def simultaneous_level(confidence_level, n_intervals):
    """Return the level of each interval at which all of them hold together
    (Bonferroni).

    Examples
    --------
    >>> round(simultaneous_level(0.95, 5), 4)
    0.99
    """
    return 1 - (1 - confidence_level) / max(n_intervals, 1)


def decimals(low, high):
    """Return how many decimals an interval supports.

    The last one is worth between a thirtieth and a third of half its width. There is
    one more where a limit would be printed as 0 although it is not.

    Examples
    --------
    >>> decimals(12.5, 17.1), decimals(0.7, 2.8), decimals(-21, 34), decimals(0.03, 0.9)
    (1, 1, 0, 2)
    """
    half_width = (high - low) / 2
    if not isfinite(half_width):
        return 1
    if half_width <= 0:
        # An interval without width supports all digits. Three are enough: as if half of
        # the width were a thirtieth of the number; of 0 any will do.
        half_width = max(abs(low), abs(high)) / 30
        if half_width == 0:
            half_width = 1.0
    # The fewest decimals d for which a unit of the last one, 10^-d, is at most a third
    # of half the width.
    digits = ceil(-log10(half_width / _UNITS_IN_HALF_WIDTH))
    digits = min(max(digits, 0), _MOST_DECIMALS)
    smallest_shown = 0.5 * 10**-digits
    if 0 < abs(low) < smallest_shown or 0 < abs(high) < smallest_shown:
        digits += 1
    return digits


def fixed(value, digits):
    """Return a number with this many decimals, thousands apart; no "-0.0".

    Examples
    --------
    >>> fixed(12345.678, 1), fixed(-0.04, 1)
    ('12,345.7', '0.0')
    """
    if not isfinite(value):
        return "unknown"
    text = f"{value:,.{digits}f}"
    if not text.strip("-0.,"):
        return text.removeprefix("-")
    return text


def rounded(value, digits=3):
    """Return a number with this many significant digits, never as a power of ten.

    Zeros at the end are dropped, as in a threshold of .5.

    Examples
    --------
    >>> rounded(0.12345678901234567), rounded(0.5), rounded(20.0), rounded(2e-7)
    ('0.123', '0.5', '20', '0.0000002')
    """
    if not isfinite(value) or value == 0:
        return fixed(value, 0)
    places = max(digits - 1 - floor(log10(abs(value))), 0)
    text = fixed(value, places)
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text


def percent_words(share, n=None):
    """Return a share as a percentage, with no more digits than `n` samples support.

    Examples
    --------
    >>> percent_words(0.9397, 48), percent_words(0.9397, 40000), percent_words(0.9)
    ('94 %', '93.97 %', '90 %')
    """
    if n is None:
        return f"{rounded(100 * share)} %"
    return f"{fixed(100 * share, percent_decimals(share, n))} %"


def percent_decimals(share, n):
    """Return how many decimals of a share as a percentage n samples support: as many as
    its 95 % interval does.
    """
    # The variance of a single sample, p (1 - p). A share of 0 or 1 is not exact either:
    # with the variance 1 / n its interval reaches as far as 2 events in n samples.
    least_variance = 1.0
    if n > 0:
        least_variance = 1 / n
    variance = max(share * (1 - share), least_variance)
    # 1.96 standard errors, in percent
    half_width = 196 * (variance / max(n, 1)) ** 0.5
    return decimals(-half_width, half_width)


def level_words(confidence_level):
    """Return a confidence level as a percentage.

    Examples
    --------
    >>> level_words(0.9), level_words(1 - 0.001)
    ('90 %', '99.9 %')
    """
    return f"{100 * confidence_level:.10g} %"


def interval_words(
    estimate,
    low,
    high,
    *,
    scale=1.0,
    unit="",
    level="",
    signed=False,
    most_decimals=_MOST_DECIMALS,
):
    """Return an estimate with its interval, in the digits that this supports.

    Parameters
    ----------
    estimate, low, high : float
        The estimate and the limits of its interval.
    scale : float, default=1.0
        What numbers are multiplied by: 100 for percentage points.
    unit : str, default=""
        What follows the estimate: "points", "%".
    level : str, default=""
        What names the interval: "90 %", "90 % CI".
    signed : bool, default=False
        Whether numbers above 0 have a plus sign.
    most_decimals : int, default=10
        Decimals that there is room for.

    Examples
    --------
    >>> interval_words(0.14812, 0.1253, 0.1709, scale=100, unit="points")
    '14.8 points (12.5 to 17.1)'
    >>> interval_words(0.021, -0.01, 0.052, level="90 %", signed=True)
    '+0.02 (90 %: -0.01 to +0.05)'
    """
    digits = min(decimals(scale * low, scale * high), most_decimals)
    shown = []
    for value in (estimate, low, high):
        text = fixed(scale * value, digits)
        if signed and value > 0:
            text = f"+{text}"
        shown.append(text)
    unit = _after(shown[0], unit)  # with a space before it
    if level:
        level = f"{level}: "
    shown_estimate, shown_low, shown_high = shown
    return f"{shown_estimate}{unit} ({level}{shown_low} to {shown_high})"


def count_words(number):
    """Return a number of samples, or a sum of weights.

    Examples
    --------
    >>> count_words(12345), count_words(2.5)
    ('12,345', '2.5')
    """
    if number >= 100 or float(number).is_integer():
        return f"{number:,.0f}"
    return rounded(number)


def rounded_up(number):
    """Return a number of samples rounded up to two digits.

    Examples
    --------
    >>> rounded_up(1841), rounded_up(7)
    ('1,900', '7')
    """
    number = ceil(number)
    unit = 10 ** max(len(str(number)) - 2, 0)  # value of the second digit
    n_units = -(-number // unit)  # rounded up
    return f"{n_units * unit:,}"


def pvalue_words(pvalue, smallest=0.0):
    """Return a p-value as papers print it.

    Parameters
    ----------
    pvalue : float
        The p-value.
    smallest : float, default=0.0
        The smallest that resampling can give, printed as "at most".

    Returns
    -------
    words : str
        "p = .31", or "p < .001" below .001.

    Examples
    --------
    >>> pvalue_words(0.312), pvalue_words(2e-9), pvalue_words(0.0499)
    ('p = .31', 'p < .001', 'p = .0499')
    """
    if pvalue < 0.001:
        return "p < .001"
    if pvalue > 0.995:  # two decimals would make it 1
        return "p > .99"
    digits = 2
    if pvalue < 0.0095:  # two decimals would make it .00 or .01
        digits = 3
    # Digits are added until it does not look like the usual level .05 unless it is .05.
    while abs(pvalue - 0.05) < 0.5 * 10**-digits and pvalue != 0.05 and digits < 6:
        digits += 1
    relation = "≤" if pvalue <= smallest else "="
    return f"p {relation} " + f"{pvalue:.{digits}f}".removeprefix("0")


def _after(number, unit):
    """Return a space and the unit that follows a number (as text), in the singular for
    1: " point"; nothing without a unit.
    """
    if not unit:
        return ""
    if number.lstrip("+-") == "1":
        unit = unit.removesuffix("s")
    return f" {unit}"


def _samples_that_tell(estimate, low, high, n, tolerance):
    """Return the number of samples that it takes at least to tell whether a quantity is
    within the tolerance, or None where no number can be said.

    The estimate with the limits `low` and `high` is that of n samples. At a bias of 0
    the interval fits into the tolerance once its half-width is that of the tolerance;
    1.8 times as many samples have even odds, as the estimate is not quite 0. Where it
    fits already, the estimate lies between 0 and the tolerance, and the interval must
    become shorter than the way to the farther of them.
    """
    # the half-width falls like 1 / sqrt(n)
    half_width = (high - low) / 2
    needed = ceil(n * (half_width / tolerance) ** 2)
    if needed > n:
        return needed
    # The interval must exclude 0 or lie within the tolerance.
    farther = max(abs(estimate), tolerance - abs(estimate))
    if farther <= 0:
        return None
    needed = ceil(n * (half_width / farther) ** 2)
    if needed > n:
        return needed
    return None
