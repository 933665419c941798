"""What the dialects of SQL write differently, and the few forms that expressions are
made of.
"""

from dataclasses import dataclass

import numpy as np

from skcalib._input.scalars import check_option
from skcalib.export._sql_warehouses import WAREHOUSES

# Largest number of pieces that a CASE lists one after the other; more pieces make a
# search tree. Of 4 to 64, 8 is about the fastest for 80 and 900 pieces in databases
# that go through rows one by one, such as PostgreSQL and SQLite; a single list takes 3
# to 6 and 5 to 20 times as long. DuckDB goes through 2,048 rows at once, so that each
# CASE of a tree costs more than some comparisons: 32 take .8 to .9 of the time of 8,
# and a single list 1.4 to 3 times as long as 8.
_FLAT_PIECES = 8
_FLAT_PIECES_OF_BLOCKS = 32


@dataclass(frozen=True)
class Dialect:
    """How a dialect writes a double, a name and a string.

    `exact_numbers`: a literal is a decimal number even if it has an exponent, so that a
    CASE of literals must be cast. `hex_number`: the number whose hexadecimal digits a
    text holds; None where there is no md5. `shares_terms`: terms that several
    expressions have in common are computed once, unless they are inside a CASE.
    `flat_pieces`: the largest number of pieces that a CASE lists one after the other.
    """

    name: str
    double: str = "DOUBLE PRECISION"
    quote: str = '"'
    escapes_backslash: bool = False
    exact_numbers: bool = False
    shares_terms: bool = False
    hex_number: str | None = None
    flat_pieces: int = _FLAT_PIECES

    def identifier(self, name):
        """Return a name in quotes."""
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    def text(self, value):
        """Return a string as a literal, with quotes, and where necessary backslashes,
        escaped.
        """
        if "\0" in value:
            raise ValueError(
                f"The group {value!r} contains a null character, which SQL cannot"
                " represent."
            )
        if self.escapes_backslash:
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return "'" + value.replace("'", "''") + "'"

    def label(self, value):
        """Return a group as a literal of its own type."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int):
            return str(value)
        return number(value)

    def row_key(self, salt, ids, n_digits):
        """Return the first hexadecimal digits of the md5 of the salt, a colon and an
        id, as a double.
        """
        digits = f"SUBSTR(MD5(CONCAT({self.text(salt + ':')},{ids})),1,{n_digits})"
        return self.as_double(self.hex_number.format(digits))

    def as_double(self, text):
        """Return a cast to float64."""
        return f"CAST({text} AS {self.double})"


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("ansi"),
        Dialect(
            "duckdb",
            double="DOUBLE",
            shares_terms=True,
            hex_number="CAST(CONCAT('0x',{}) AS BIGINT)",
            flat_pieces=_FLAT_PIECES_OF_BLOCKS,
        ),
        Dialect(
            "spark",
            double="DOUBLE",
            quote="`",
            escapes_backslash=True,
            hex_number="CONV({},16,10)",
        ),
        Dialect(
            "postgres",
            exact_numbers=True,
            hex_number="CAST(CAST(CONCAT('x000',{}) AS BIT(64)) AS BIGINT)",
        ),
    )
}


def dialect_named(name):
    """Return the dialect with this name."""
    return DIALECTS[check_option(name, "dialect", [*DIALECTS, *WAREHOUSES])]


def number(value):
    """Return a float64 as a literal that reads back exactly; the exponent makes it a
    double and not a decimal.
    """
    text = repr(float(value))
    if not np.isfinite(value):
        raise ValueError(
            f"The map contains the number {text}, which SQL cannot represent."
        )
    if "e" in text:
        return text
    return f"{text.removesuffix('.0')}e0"


def linear(weights, texts, constant=0.0):
    """Return the text of ``sum(weight * text) + constant``; weights of 0 are left out,
    and so is a constant of 0 unless nothing else is left.
    """
    # pairs of a number, of which only the sign is used below, and a text without sign
    terms = []
    for weight, text in zip(weights, texts, strict=True):
        if weight != 0:
            terms.append((weight, _times(abs(weight), text)))
    if constant != 0 or not terms:
        terms.append((constant, number(abs(constant))))
    written = ""
    for weight, text in terms:
        sign = "+"
        if weight < 0:
            sign = "-"
        written += sign + text
    return written.removeprefix("+")


def _times(weight, text):
    """Return the text of the product of a positive number and a text."""
    if weight == 1:
        return text
    return f"{number(weight)}*{text}"


def clamped(text, low, high):
    """Return the text of a value clipped to [low, high]."""
    return f"LEAST(GREATEST({text},{number(low)}),{number(high)})"


def exponential(text, limit):
    """Return the text of EXP of a value clipped to [-limit, limit], which neither
    overflows nor underflows.
    """
    return f"EXP({clamped(text, -limit, limit)})"


def case(branches, otherwise=None):
    """Return the text of a CASE of pairs (condition, value), texts; NULL if none is met
    and `otherwise` is None.
    """
    listed = " ".join(f"WHEN {condition} THEN {value}" for condition, value in branches)
    if otherwise is None:
        return f"CASE {listed} END"
    return f"CASE {listed} ELSE {otherwise} END"


def piece_tree(score, cuts, values, flat_pieces):
    """Return the text of a CASE, nested as a binary search, that chooses among the
    texts `values` by the text of a score: text i is for scores above cut i - 1, up to
    and including cut i. There is one more value than cuts. Up to `flat_pieces` values
    are listed one after the other.
    """
    if len(values) == 1:
        return values[0]
    if len(values) <= flat_pieces:
        branches = []
        for cut, value in zip(cuts, values[:-1], strict=True):
            branches.append((f"{score}<={number(cut)}", value))
        return case(branches, values[-1])
    half = len(cuts) // 2
    below = piece_tree(score, cuts[:half], values[: half + 1], flat_pieces)
    above = piece_tree(score, cuts[half + 1 :], values[half + 1 :], flat_pieces)
    return case([(f"{score}<={number(cuts[half])}", below)], above)
