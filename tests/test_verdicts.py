"""One way from an estimate to words: five verdicts, one number format."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import skcalib
from skcalib._verdicts import (
    count_words,
    decimals,
    fixed,
    interval_words,
    overall_verdict,
    percent_words,
    pvalue_words,
    rounded,
    rounded_up,
    simultaneous_level,
    verdict,
)

numbers = st.floats(-3, 3, allow_nan=False)


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        (2.1, 5, "off"),
        (-5, -2.1, "off"),
        (0.1, 5, "off, size unclear"),
        (-5, -0.1, "off, size unclear"),
        (0.3, 1.2, "fine"),
        (-2, 2, "fine"),
        (-2.1, 1, "cannot tell"),
        (0, 2.1, "cannot tell"),
        (np.nan, np.nan, "cannot tell"),
        (-np.inf, 1, "cannot tell"),
    ],
)
def test_verdicts_by_the_limits(low, high, kind):
    assert verdict((low + high) / 2, (low, high), 100, 2).kind == kind


@given(numbers, st.floats(1e-3, 3), st.floats(0.1, 3), st.integers(10, 10**6))
def test_verdicts_are_what_the_interval_says(estimate, half, tolerance, n):
    """Twin in sets: where the interval lies against 0 and the tolerance."""
    low, high = estimate - half, estimate + half
    found = verdict(estimate, (low, high), n, tolerance)
    is_inside = -tolerance <= low and high <= tolerance
    is_beyond = low > tolerance or high < -tolerance
    has_zero = low <= 0 <= high
    expected = {
        (True, False): "fine",
        (False, True): "off",
        (False, False): "cannot tell" if has_zero else "off, size unclear",
    }[is_inside, is_beyond]
    assert found.kind == expected
    if found.kind == "cannot tell" and found.n_needed is not None:
        assert found.n_needed > n
    if half > tolerance and found.kind == "cannot tell":
        # n (half-width / tolerance)^2, the rule of the sentence
        assert found.n_needed == pytest.approx(n * (half / tolerance) ** 2, rel=0.2)
        assert n * (half / tolerance) ** 2 <= found.n_needed + 1e-6


@given(numbers, st.floats(1e-3, 3), st.floats(0.1, 3))
def test_verdicts_are_symmetric_in_sign(estimate, half, tolerance):
    interval = (estimate - half, estimate + half)
    mirrored = (-interval[1], -interval[0])
    found = verdict(estimate, interval, 500, tolerance)
    other = verdict(-estimate, mirrored, 500, tolerance)
    assert (found.kind, found.n_needed) == (other.kind, other.n_needed)
    words = other.words(high="too low", low="too high")
    assert found.words() == words or estimate == 0


def test_n_needed_where_the_interval_is_short_already():
    """Estimate 1.5, half-width 1.6, tolerance 2: not 64 samples, which are fewer than
    the 100 at hand, but 100 (1.6 / 1.5)^2 = 114."""
    found = verdict(1.5, (-0.1, 3.1), 100, 2)
    assert (found.kind, found.n_needed) == ("cannot tell", 114)
    assert found.words() == (
        "inconclusive with 100 samples; at least 120 are needed, if the true value is"
        " near the estimate"
    )


def test_reference_of_a_slope():
    found = verdict(0.66, (0.47, 0.86), 200, 0.1, reference=1.0)
    assert found.kind == "off"
    assert found.words(low="too flat") == "0.34 too flat (0.14 to 0.53)"


def test_fine_is_rounded_up_and_never_beyond_the_tolerance():
    assert verdict(1, (-0.1, 1.91), 100, 2).words() == "fine to within 2.0"
    assert verdict(1, (0.1, 1.94), 100, 1.94).words() == "fine to within 1.94"
    assert verdict(0, (-1e-6, 1e-6), 100, 2).words() == "fine to within 0.1"


def test_verdicts_of_segments_together():
    off = verdict(5, (3, 7), 100, 2)
    below = verdict(-5, (-7, -3), 100, 2)
    fine = verdict(0, (-1, 1), 100, 2)
    unclear = verdict(0, (-4, 4), 100, 2)
    assert overall_verdict([off, fine]).kind == "mixed"
    assert overall_verdict([off, below]).kind == "mixed"
    assert overall_verdict([off, fine]).words() == "mixed"
    assert overall_verdict([off, unclear]) is off
    assert overall_verdict([fine, unclear]) is unclear
    assert overall_verdict([fine, fine]).kind == "fine"


def test_simultaneous_level_keeps_the_error_of_all_together():
    """With independent intervals at 1 - .05/10 all ten hold in .995^10 = .951."""
    assert simultaneous_level(0.95, 10) ** 10 == pytest.approx(0.9511, abs=1e-4)
    assert simultaneous_level(0.95, 1) == pytest.approx(0.95)


@given(st.floats(-1e6, 1e6), st.floats(1e-8, 1e5))
def test_no_more_digits_than_the_interval_supports(low, width):
    digits = decimals(low, low + width)
    unit = 10.0**-digits
    # one more digit only where a limit would be printed as 0
    is_near_zero = min(abs(low), abs(low + width)) < 5 * unit
    finest = width / 2 / (300 if is_near_zero else 30)
    assert digits <= is_near_zero or unit >= finest * (1 - 1e-9)
    assert unit <= max(width / 2 / 3, 1e-10) * (1 + 1e-9) or digits == 0


@given(
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15)
)
def test_numbers_are_never_powers_of_ten(value):
    for text in (rounded(value), fixed(value, 2), interval_words(value, value, value)):
        assert "e" not in text
        assert not re.match(r"-0(\.0*)?$", text)


def test_rounded_keeps_significant_digits():
    assert rounded(19.96) == "20"
    assert rounded(123456.7) == "123,457"
    assert rounded(-0.000123456) == "-0.000123"
    assert fixed(float("nan"), 2) == "unknown"


def test_interval_words_of_a_wide_and_a_narrow_interval():
    assert interval_words(93.97, 88.1, 99.2) == "94 (88 to 99)"
    assert interval_words(93.97, 60, 99) == "94 (60 to 99)"
    assert interval_words(-0.58, -1.21, 0.04) == "-0.58 (-1.21 to 0.04)"
    assert interval_words(0.1, 0.1, 0.1, unit="%") == "0.100 % (0.100 to 0.100)"


def test_percentages_have_the_digits_of_their_samples():
    assert percent_words(0.0, 20) == "0 %"
    assert percent_words(0.5, 1000) == "50 %"
    assert percent_words(0.5, 100_000) == "50.0 %"
    assert percent_words(0.123456) == "12.3 %"


def test_counts():
    assert count_words(1e6) == "1,000,000"
    assert count_words(99.75) == "99.8"
    assert rounded_up(100) == "100"
    assert rounded_up(10_001) == "11,000"


@pytest.mark.parametrize(
    ("pvalue", "smallest", "words"),
    [
        (0, 0, "p < 0.001"),
        (0.0009, 0, "p < 0.001"),
        (0.001, 0.001, "p ≤ 0.001"),
        (0.0051, 0, "p = 0.005"),
        (0.0491, 0, "p = 0.049"),
        (0.05, 0, "p = 0.05"),
        (0.0501, 0, "p = 0.0501"),
        (0.31, 0, "p = 0.31"),
        (1.0, 0, "p > 0.99"),
    ],
)
def test_pvalues(pvalue, smallest, words):
    assert pvalue_words(pvalue, smallest) == words


# Texts with formats of their own: progress, code, option checks.
OWN_FORMATS = {"_code.py", "_command.py", "_advice_code.py", "_checks.py"}
_NUMBER = re.compile(r"[gfe%]$")


def _is_result(path):
    """Return whether a file makes pages, pictures or results that print sentences."""
    if path.name in OWN_FORMATS:
        return False
    if path.parent.name in ("_report", "displays"):
        return True
    text = path.read_text("utf-8")
    return "def __str__" in text or "def _sentences" in text


def _own_formats(tree):
    """Return the lines of formats of real numbers, but not of errors and of cells of
    tables.
    """
    exempt = set()
    for node in ast.walk(tree):
        name = getattr(node, "name", None) or ""
        if (
            isinstance(node, ast.Raise)
            or name in ("_shown", "__repr__")
            or (name.endswith("_code"))
        ):
            exempt |= set(ast.walk(node))
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.FormattedValue)
        and node not in exempt
        and node.format_spec is not None
        and _NUMBER.search(getattr(node.format_spec.values[-1], "value", ""))
    ]


def test_sentences_have_no_other_number_format():
    folder = Path(skcalib.__file__).parent
    found = {
        path.relative_to(folder).as_posix(): lines
        for path in sorted(folder.rglob("*.py"))
        if _is_result(path)
        and (lines := _own_formats(ast.parse(path.read_text("utf-8"))))
    }
    assert found == {}
    seen = _own_formats(ast.parse('f"{a:.3g} {b:,} {c:.1%}"\nraise E(f"{a:.2f}")'))
    assert seen == [1, 1]
