"""The plain pieces of calibration maps: a small tree from scores to probabilities, for writers of other languages.

Each node is a function of one row. It has a `width`, the number of values that it gives, and points to the nodes that
it takes its values from. A node may be used in several places. All values are float64.

A tree starts at `Scores`: probabilities in [0, 1], or log-odds or logits of at most 1e100 in size. What a writer does
with other scores (NULL, NaN, an error) is the writer's own affair: nodes are defined for valid scores only.
"""

from dataclasses import dataclass

import numpy as np

__all__ = [
    "Above",
    "Affine",
    "Centred",
    "Choice",
    "Clip",
    "Columns",
    "Expit",
    "GroupOf",
    "Largest",
    "Log",
    "LogNormalized",
    "LogOdds",
    "LogOddsAgainstRest",
    "LogSides",
    "Mixture",
    "Normalized",
    "OneColumn",
    "Pieces",
    "RowMax",
    "Scaled",
    "Scores",
    "Softmax",
    "Spread",
]


class _SameWidth:
    """Mixin for functions that give as many values as they take."""

    @property
    def width(self):
        return self.of.width


class _OneValue:
    """Mixin for functions that give one value."""

    width = 1


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of a row: K of them, or the positive class's probability (or log-odds) alone for two classes."""

    width: int


@dataclass(frozen=True, eq=False)
class OneColumn(_OneValue):
    """One of the values of a node."""

    of: object
    index: int


@dataclass(frozen=True, eq=False)
class Columns:
    """The values of several nodes, one beside the other."""

    parts: tuple

    @property
    def width(self):
        return sum(part.width for part in self.parts)


@dataclass(frozen=True, eq=False)
class Clip(_SameWidth):
    """Each value, kept in [low, high]."""

    of: object
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Scaled(_SameWidth):
    """``slope * value + intercept`` for each value; both are numbers or arrays (width,)."""

    of: object
    slope: float | np.ndarray
    intercept: float | np.ndarray = 0.0


@dataclass(frozen=True, eq=False)
class Affine:
    """``coef @ values + intercept``, with coef (width, width of the values) and intercept (width,)."""

    of: object
    coef: np.ndarray
    intercept: np.ndarray

    @property
    def width(self):
        return len(self.coef)


@dataclass(frozen=True, eq=False)
class Log(_SameWidth):
    """The logarithm of probabilities, clipped to [2^-52, 1 - 2^-52] first."""

    of: object


@dataclass(frozen=True, eq=False)
class LogOdds(_SameWidth):
    """``log(p / (1 - p))`` of probabilities, clipped to [2^-52, 1 - 2^-52] first."""

    of: object


@dataclass(frozen=True, eq=False)
class LogOddsAgainstRest(_SameWidth):
    """The log-odds of each of a row's probabilities against the sum of the others, all clipped to the same interval."""

    of: object


@dataclass(frozen=True, eq=False)
class LogSides:
    """``log(p)`` and ``-log(1 - p)`` of the probability whose log-odds are given: two values that sum to these.

    With z the log-odds they are ``min(z, 0) - log(1 + exp(-|z|))`` and ``max(z, 0) + log(1 + exp(-|z|))``.
    """

    of: object
    width = 2


@dataclass(frozen=True, eq=False)
class Expit(_SameWidth):
    """``1 / (1 + exp(-value))``; with `clip` kept in [2^-52, 1 - 2^-52], as all scaling methods do."""

    of: object
    clip: bool = True


@dataclass(frozen=True, eq=False)
class Pieces(_OneValue):
    """A piecewise polynomial of one value x.

    Piece i holds for ``cuts[i - 1] < x <= cuts[i]``; the first piece has no lower end and the last no upper one. Its
    value is the sum over j of ``coefficients[i, j] * (x - origins[i])**j``. The cuts are finite and increase strictly.
    A cut that belongs to the piece above it is written as the float64 just below it.

    Steps (bins) have one coefficient, broken lines two, cubic splines four. `continuous` says that neighbours agree at
    their cut, up to rounding, so that it does not matter on which side of it a value falls.
    """

    of: object
    cuts: np.ndarray
    origins: np.ndarray
    coefficients: np.ndarray
    continuous: bool = False


@dataclass(frozen=True, eq=False)
class Centred(_SameWidth):
    """Each value minus the mean of the row."""

    of: object


@dataclass(frozen=True, eq=False)
class LogNormalized(_SameWidth):
    """Each value minus the row's ``log(sum(exp(values)))``: logarithms of probabilities that sum to 1."""

    of: object


@dataclass(frozen=True, eq=False)
class Softmax(_SameWidth):
    """``exp(values) / sum(exp(values))``; with `clip` kept in [2^-52, 1 - 2^-52], as all scaling methods do."""

    of: object
    clip: bool = True


@dataclass(frozen=True, eq=False)
class Normalized(_SameWidth):
    """The row divided by its sum; a row of zeros becomes uniform."""

    of: object


@dataclass(frozen=True, eq=False)
class RowMax(_OneValue):
    """The largest value of the row."""

    of: object


@dataclass(frozen=True, eq=False)
class Spread(_SameWidth):
    """The first of the largest values is replaced by `confidence`; the others share the rest in proportion.

    Others that are all 0 share it equally.
    """

    of: object
    confidence: object


@dataclass(frozen=True, eq=False)
class Mixture:
    """The weighted sum of the values of several nodes of one width, plus a constant."""

    weights: tuple[float, ...]
    parts: tuple
    constant: float = 0.0

    @property
    def width(self):
        return self.parts[0].width


@dataclass(frozen=True, eq=False)
class Largest:
    """Key of a `Choice`: the column of the first of the largest values."""

    of: object


@dataclass(frozen=True, eq=False)
class Above:
    """Key of a `Choice` of two: 1 where the value is above the threshold, else 0."""

    of: object
    threshold: float


@dataclass(frozen=True, eq=False)
class GroupOf:
    """Key of a `Choice`: the number that belongs to the row's group, `otherwise` for a group that is not named.

    `column` is the name of the column of groups, None where groups come with the call. `cases` maps a group (a string,
    an integer, a boolean or a float) to its number.
    """

    column: str | None
    cases: dict
    otherwise: int


@dataclass(frozen=True, eq=False)
class Choice:
    """The values of one of several nodes of one width: that with the number which the key gives."""

    key: Largest | Above | GroupOf
    cases: tuple

    @property
    def width(self):
        return self.cases[0].width
