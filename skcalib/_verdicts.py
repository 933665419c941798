"""From an estimate to words: the five verdicts, and the one number format of every
sentence.
"""

from dataclasses import dataclass
from html import escape
from math import ceil, floor, isfinite, log10

_MOST_DECIMALS = 10
# The half-width of an interval is at least 3 units of the last decimal that is printed,
# and below 30: finer digits are noise.
_UNITS_IN_HALF_WIDTH = 3
# A limit in "fine to within x" needs no digits finer than this part of the tolerance.
_UNITS_IN_TOLERANCE = 20
# An estimate whose distance from the tolerance is a smaller part of the half-width than
# this would need more than a hundred times as many samples to tell on which side it is.
_MOST_TIMES_CLOSER = 10


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
        The number of samples that are needed at least to tell, where the verdict is
        "cannot tell", or whether the quantity is beyond the tolerance, where it is
        "off, size unclear".
    reason : str
        Why there are no limits (NaN); empty where there are.
    """

    kind: str
    estimate: float
    low: float
    high: float
    n: float
    tolerance: float
    n_needed: int | None = None
    reason: str = ""

    @property
    def is_off(self):
        """Whether the quantity certainly differs from 0, by however little."""
        return self.kind in ("off", "off, size unclear")

    @property
    def needed_if(self):
        """What `n_needed`, the smallest number of samples that may tell, assumes, in
        words.
        """
        half_width = (self.high - self.low) / 2
        if not self.is_off and half_width > self.tolerance:
            # So wide an interval says nothing, wherever its estimate lies.
            return "even if calibration is perfect"
        return "if the true value is near the estimate"

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
        if self.kind == "mixed":
            return "mixed"
        if self.kind == "cannot tell":
            words = f"inconclusive with {count_words(self.n)} {samples}"
            if self.reason:
                words += f" ({self.reason})"
            elif self.n_needed is not None:
                needed = f"at least {rounded_up(self.n_needed)} are needed"
                words += f"; {needed}, {self.needed_if}"
            return words
        if self.kind == "fine":
            limit = self._limit_words(scale)
            return f"fine to within {limit}{_after(limit, unit)}"
        # Off: both limits lie on the same side of 0, which the words "too high" and
        # "too low" say instead of a sign.
        side = high if self.estimate > 0 else low
        digits = decimals(scale * self.low, scale * self.high)
        smaller, larger = sorted((abs(self.low), abs(self.high)))
        limits = f"{fixed(scale * smaller, digits)} to {fixed(scale * larger, digits)}"
        if self.kind == "off":  # "14.8 points too low (95 %: 12.5 to 17.1)"
            size = fixed(abs(scale * self.estimate), digits)
            named_limits = f"{level}: {limits}" if level else limits
            return f"{size}{_after(size, unit)} {side} ({named_limits})"
        # "too high by 1.0 to 5.0 points (95 %)", without the uncertain estimate
        words = f"{side} by {limits}{_after(limits, unit)}"
        return f"{words} ({level})" if level else words

    def _limit_words(self, scale):
        """Return the larger limit times `scale` as text, rounded up, but never above
        the tolerance. `scale` is 100 for percent.
        """
        tolerance = scale * self.tolerance
        # As many decimals as the interval supports, but no more than those with which a
        # unit of the last one is at most a twentieth of the tolerance. Here and below
        # 1e-9 allows for rounding: 14.000000000000002 is 14.
        most_digits = max(0, ceil(-log10(tolerance / _UNITS_IN_TOLERANCE) - 1e-9))
        digits = min(decimals(scale * self.low, scale * self.high), most_digits)
        limit = ceil(scale * self.limit * 10**digits - 1e-9) / 10**digits
        if limit > tolerance:
            return rounded(tolerance)
        return fixed(limit, digits)


def verdict(estimate, interval, n, tolerance, *, reference=0.0, reason=""):
    """Return whether an estimate differs from the value that is right by more than the
    tolerance, as a `Verdict`.

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
    reason : str, default=""
        Why the limits are NaN.

    Returns
    -------
    verdict : Verdict
        All differences are those from `reference`. "off" if the whole interval lies
        beyond the tolerance; "fine" if it lies within; "off, size unclear" if it
        excludes 0 but not the tolerance; else "cannot tell".

    Examples
    --------
    >>> verdict(-0.148, (-0.171, -0.125), 900, 0.02).words(scale=100, unit="points")
    '14.8 points too low (12.5 to 17.1)'
    >>> verdict(0.03, (0.01, 0.05), 900, 0.02).words(scale=100, unit="points")
    'too high by 1.0 to 5.0 points'
    >>> verdict(0.002, (-0.01, 0.014), 900, 0.02).words(scale=100, unit="points")
    'fine to within 1.4 points'
    >>> verdict(0.01, (-0.09, 0.11), 48, 0.02).words(scale=100, unit="points")
    'inconclusive with 48 samples; at least 1,200 are needed, even if calibration is perfect'
    """  # noqa: E501
    estimate = float(estimate) - reference
    low = float(interval[0]) - reference
    high = float(interval[1]) - reference
    if not (isfinite(low) and isfinite(high)):
        return Verdict("cannot tell", estimate, low, high, n, tolerance, reason=reason)
    if low > tolerance or high < -tolerance:
        # the whole interval is beyond the tolerance
        kind = "off"
    elif max(abs(low), abs(high)) <= tolerance:
        # the whole interval is within it
        kind = "fine"
    elif low > 0 or high < 0:
        # it excludes 0, and contains the tolerance or its negative
        needed = _least_n_of_size(estimate, low, high, n, tolerance)
        return Verdict("off, size unclear", estimate, low, high, n, tolerance, needed)
    else:
        needed = _least_n_that_tells(estimate, low, high, n, tolerance)
        return Verdict("cannot tell", estimate, low, high, n, tolerance, needed)
    return Verdict(kind, estimate, low, high, n, tolerance)


def overall_verdict(verdicts):
    """Return one `Verdict` for all segments or periods together.

    It is "mixed" where they disagree: some are off and others fine, or they are off on
    both sides. Otherwise it is the worst of the verdicts: of those that are off, the
    one that is farthest off; if none is off, of those that cannot tell, the one that
    needs the most samples; if all are fine, the one with the largest limit.

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
        # None stands for a number that is not known.
        return max(unclear, key=lambda verdict: verdict.n_needed or float("inf"))
    if not off:
        return max(verdicts, key=lambda verdict: verdict.limit)
    # Compared by the limit that is nearer to 0: each is off at least by that much.
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
    """Return how many decimals the limits of an interval are printed with.

    A unit of the last decimal is at most a third of the half-width of the interval, and
    more than a thirtieth: finer digits are noise. There is one more where a limit would
    be printed as 0 although it is not 0.

    Examples
    --------
    >>> decimals(12.5, 17.1), decimals(0.7, 2.8), decimals(-21, 34), decimals(0.03, 0.9)
    (1, 1, 0, 2)
    """
    half_width = (high - low) / 2
    if not isfinite(half_width):
        return 1
    if half_width <= 0:
        # A number without uncertainty. Three digits are enough: as many as a half-width
        # of a thirtieth of it would give. For 0 any half-width will do.
        half_width = max(abs(low), abs(high)) / 30
        if half_width == 0:
            half_width = 1.0
    # The fewest decimals d for which a unit of the last one, 10^-d, is at most a third
    # of the half-width.
    digits = ceil(-log10(half_width / _UNITS_IN_HALF_WIDTH))
    digits = min(max(digits, 0), _MOST_DECIMALS)
    smallest_shown = 0.5 * 10**-digits
    if 0 < abs(low) < smallest_shown or 0 < abs(high) < smallest_shown:
        digits += 1
    return digits


def fixed(value, digits):
    """Return a number as text with this many decimals and a comma after thousands.
    What rounds to 0 has no minus sign. Infinite numbers and NaN are "unknown".

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
    """Return a number as text with this many significant digits, never in scientific
    notation, and without zeros at the end.

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
    """Return a share in [0, 1] as a percentage, with as many digits as `n` samples
    support, or three if `n` is not given.

    Examples
    --------
    >>> percent_words(0.9397, 48), percent_words(0.9397, 40000), percent_words(0.9)
    ('94 %', '93.97 %', '90 %')
    """
    if n is None:
        return f"{rounded(100 * share)} %"
    return f"{fixed(100 * share, percent_decimals(share, n))} %"


def percent_decimals(share, n):
    """Return with how many decimals a percentage is printed: the share among n samples,
    in [0, 1], times 100. They are as many as the width of its 95 % interval demands.
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
    """Return an estimate with its interval as text, rounded as the width of the
    interval demands; see `decimals`. Without limits (NaN), it says so.

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
    >>> interval_words(0.021, float("nan"), float("nan"), level="90 %")
    '0.021 (no interval)'
    """
    number, limits = interval_texts(
        estimate,
        low,
        high,
        scale=scale,
        level=level,
        signed=signed,
        most_decimals=most_decimals,
    )
    return f"{number}{_after(number, unit)} ({limits})"


def interval_texts(
    estimate,
    low,
    high,
    *,
    scale=1.0,
    level="",
    signed=False,
    most_decimals=_MOST_DECIMALS,
):
    """Return an estimate as text, and its limits as text or "no interval", for a
    sentence that has them at two places. The arguments are those of `interval_words`.

    Examples
    --------
    >>> interval_texts(0.14812, 0.1253, 0.1709, scale=100, level="90 %")
    ('14.8', '90 %: 12.5 to 17.1')
    """
    if not (isfinite(low) and isfinite(high)):
        text = rounded(scale * estimate)
        if signed and estimate > 0:
            text = f"+{text}"
        return text, "no interval"
    digits = min(decimals(scale * low, scale * high), most_decimals)
    texts = []
    for value in (estimate, low, high):
        text = fixed(scale * value, digits)
        if signed and value > 0:
            text = f"+{text}"
        texts.append(text)
    estimate_text, low_text, high_text = texts
    limits = f"{low_text} to {high_text}"
    if level:
        limits = f"{level}: {limits}"
    return estimate_text, limits


def estimate_words(
    quantity, estimate, low, high, *, confidence_level=None, reason="", verdict=""
):
    """Return the sentence about an estimate: what it is, its interval with the level,
    and what that says.

    Parameters
    ----------
    quantity : str
        What is estimated; may be empty.
    estimate, low, high : float
        The estimate and the limits of its interval.
    confidence_level : float, default=None
        Coverage of the interval.
    reason : str, default=""
        Why there are no limits, or why the estimate lies outside them.
    verdict : str, default=""
        What the interval says, as a sentence.

    Examples
    --------
    >>> estimate_words("Brier score", 0.1512, 0.142, 0.161, confidence_level=0.9)
    'Brier score: 0.151 (90 %: 0.142 to 0.161).'
    """
    lead = f"{quantity}: " if quantity else ""
    if not isfinite(estimate):
        return f"{lead}not defined{f' ({reason})' if reason else ''}."
    if not (isfinite(low) and isfinite(high)):
        why = f": {reason}" if reason else ""
        return f"{lead}{rounded(estimate)} (no interval{why})."
    level = ""
    if confidence_level is not None:
        level = level_words(confidence_level)
    size = interval_words(estimate, low, high, level=level)
    if reason:
        size = f"{size[:-1]}; {reason})"
    return f"{lead}{size}." + (f" {verdict}" if verdict else "")


def impossible_words(n, row=None):
    """Return the sentence on samples whose label had the probability 0; nothing if
    there are none.

    Parameters
    ----------
    n : int
        How many there are.
    row : int, default=None
        The row of the first one in the data, counted from 1.

    Examples
    --------
    >>> impossible_words(1, 17)
    '1 outcome occurred although its predicted probability was 0 (row 17 of the data, counted from 1): the log-loss is infinite; here, probabilities are clipped to 2^-52.'
    """  # noqa: E501
    if n == 0:
        return ""
    happened = "1 outcome occurred although its predicted probability was 0"
    if n > 1:
        happened = (
            f"{count_words(n)} outcomes occurred although their predicted probability"
            " was 0"
        )
    place = ""
    if row is not None:
        first = "" if n == 1 else "first: "
        place = f" ({first}row {row:,} of the data, counted from 1)"
    return (
        f"{happened}{place}: the log-loss is infinite; here, probabilities are clipped"
        " to 2^-52."
    )


def side_words(low, high, *, above, below, neither, reference=0.0):
    """Return which of three sentences holds for an interval: `above` if it lies above
    the reference, `below` if below, else `neither`; nothing for limits that are NaN.

    Examples
    --------
    >>> side_words(0.2, 0.4, above="It helps.", below="It hurts.", neither="Unclear.")
    'It helps.'
    """
    if not (isfinite(low) and isfinite(high)):
        return ""
    if low > reference:
        return above
    if high < reference:
        return below
    return neither


def joined(texts):
    """Return texts as an enumeration.

    Examples
    --------
    >>> joined(["a"]), joined(["a", "b"]), joined(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *others, last = texts
    if not others:
        return last
    return f"{', '.join(others)} and {last}"


def conditions_words(assumptions):
    """Return the last sentence of a guarantee with these assumptions."""
    return (
        "The guarantee holds for one model that was fitted to other data, and for"
        " independent samples from the population in which the model is used;"
        f" .assumptions lists all {len(assumptions)} conditions."
    )


def sentences_html(text):
    """Return the lines of a text as HTML: the first in bold, lines that begin with a
    dash as one list at the end, the others as paragraphs.
    """
    first, *lines = (escape(line) for line in text.split("\n"))
    paragraphs = ""
    entries = ""
    for line in lines:
        if line.startswith("- "):
            entries += f"<li>{line[2:]}</li>"
        else:
            paragraphs += f"<p>{line}</p>"
    if entries:
        entries = f"<ul>{entries}</ul>"
    return f"<p><strong>{first}</strong></p>{paragraphs}{entries}"


def count_words(number):
    """Return a number of samples, or a sum of weights, as text.

    Examples
    --------
    >>> count_words(12345), count_words(2.5)
    ('12,345', '2.5')
    """
    if number >= 100 or float(number).is_integer():
        return f"{number:,.0f}"
    return rounded(number)


def rounded_up(number):
    """Return a number of samples as text, rounded up to two significant digits.

    Examples
    --------
    >>> rounded_up(1841), rounded_up(7)
    ('1,900', '7')
    """
    number = ceil(number)
    # What 1 in the second digit is worth: 100 for a number of four digits.
    unit = 10 ** max(len(str(number)) - 2, 0)
    n_units = -(-number // unit)  # rounded up
    return f"{n_units * unit:,}"


def rounded_outwards(number):
    """Return a size as text, rounded up to two significant digits.

    Examples
    --------
    >>> rounded_outwards(4.213), rounded_outwards(13.0)
    ('4.3', '13')
    """
    if not isfinite(number) or number <= 0:
        return fixed(number, 0)
    places = max(1 - floor(log10(number)), 0)
    # 1e-9 allows for rounding: 13.000000000000002 is 13.
    text = fixed(ceil(number * 10**places - 1e-9) / 10**places, places)
    return text.rstrip("0").rstrip(".") if "." in text else text


def sum_words(*terms):
    """Return terms and their sum as texts whose digits add up: a list of str. The
    largest term takes up what rounding leaves.

    Examples
    --------
    >>> sum_words(0.00798, -0.0596, 0.20244)
    ['0.008', '-0.060', '0.203', '0.151']
    """
    total = sum(terms)
    digits = 3
    if 0 < abs(total) < 1:
        digits = max(digits, 2 - floor(log10(abs(total))))
    # In units of the last digit.
    units = [round(term * 10**digits) for term in terms]
    unit_of_total = round(total * 10**digits)
    largest = max(range(len(terms)), key=lambda k: abs(terms[k]))
    units[largest] += unit_of_total - sum(units)
    return [fixed(unit / 10**digits, digits) for unit in (*units, unit_of_total)]


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
        "p = 0.31", or "p < 0.001" below .001.

    Examples
    --------
    >>> pvalue_words(0.312), pvalue_words(2e-9), pvalue_words(0.0499)
    ('p = 0.31', 'p < 0.001', 'p = 0.0499')
    """
    if pvalue < 0.001:
        return "p < 0.001"
    if pvalue > 0.995:  # two decimals would make it 1
        return "p > 0.99"
    digits = 2
    if pvalue < 0.0095:  # two decimals would make it 0.00 or 0.01
        digits = 3
    # A p-value close to the usual level 0.05 gets more decimals, until they show on
    # which side it lies.
    while abs(pvalue - 0.05) < 0.5 * 10**-digits and pvalue != 0.05 and digits < 6:
        digits += 1
    relation = "≤" if pvalue <= smallest else "="
    return f"p {relation} {pvalue:.{digits}f}"


def _after(number, unit):
    """Return what follows a number, given as text: " points", or " point" after 1;
    nothing if the unit is empty.
    """
    if not unit:
        return ""
    if number.lstrip("+-") == "1":
        unit = unit.removesuffix("s")
    return f" {unit}"


def _least_n_of_size(estimate, low, high, n, tolerance):
    """Return the smallest number of samples that tells on which side of the tolerance a
    quantity lies that is off, if the estimate holds; None if no number can be given, or
    a useless one since the estimate is close to the tolerance.
    """
    half_width = (high - low) / 2
    distance = abs(abs(estimate) - tolerance)
    if not half_width / _MOST_TIMES_CLOSER <= distance < half_width:
        return None
    return ceil(n * (half_width / distance) ** 2)


def _least_n_that_tells(estimate, low, high, n, tolerance):
    """Return the smallest number of samples that may replace the verdict "cannot tell"
    by another one, or None if none can be given.

    The interval of n samples contains 0 as well as the tolerance or its negative. With
    N samples its half-width is sqrt(n / N) times as large.
    """
    half_width = (high - low) / 2
    # An interval that is wider than the tolerance must shrink to it, even if it lies
    # about 0. (With 1.8 times as many samples it lies within the tolerance in half of
    # the cases: the estimate is rarely exactly 0.)
    needed = ceil(n * (half_width / tolerance) ** 2)
    if needed > n:
        return needed
    # A narrower one must, about the present estimate, either exclude 0 or lie within
    # the tolerance: whichever allows the larger half-width.
    largest_half_width = max(abs(estimate), tolerance - abs(estimate))
    if largest_half_width <= 0:
        return None
    needed = ceil(n * (half_width / largest_half_width) ** 2)
    if needed > n:
        return needed
    return None
