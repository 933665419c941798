"""Calibration maps as small expressions: each recalibrator's `_map` builds one, and every way out interprets it.

Each node is a function of one row. It has a `width`, the number of values that it gives, and points to the nodes that
it takes its values from. A node may be used in several places. It checks its numbers when it is made; called with
`Rows`, it returns its values as float64 (n, width).

A tree starts at `Scores`: probabilities in [0, 1], or log-odds or logits of at most 1e100 in size. What a writer does
with other scores (NULL, NaN, an error) is the writer's own affair: nodes are defined for valid scores only. For two
classes the tree ends at one value, the positive class's probability.
"""

import numpy as np
from scipy.special import expit, log_softmax
from scipy.special import softmax as softmax_of

from skcalib._rows.keys import row_keys
from skcalib._rows.links import clip_probability, log_odds, log_probability, row_sums

_LARGEST_EXPONENT = 700.0


class Rows:
    """Rows on which nodes are evaluated, each node once.

    Parameters
    ----------
    scores : ndarray of shape (n, C)
        Valid scores.
    groups : list or ndarray of length n, default=None
        Their groups.
    ids : list or ndarray of length n, default=None
        Their ids.
    """

    def __init__(self, scores, groups=None, ids=None):
        labels = (
            None if values is None else np.asarray(values, dtype=object)
            for values in (groups, ids)
        )
        self.inputs = np.asarray(scores, dtype=np.float64), *labels
        self.values = {}

    def __call__(self, node):
        if id(node) not in self.values:
            self.values[id(node)] = (
                node(self),
                node,
            )  # the node is held, so that its id stays its own
        return self.values[id(node)][0]

    def at(self, chosen):
        """Return some of the rows."""
        return Rows(
            *(None if values is None else values[chosen] for values in self.inputs)
        )


class Node:
    """Base of the nodes: a class names its fields. They are checked when a node is made, and do not change then.

    `width` is the number of values that it gives. The constructor is a plain one: `dataclass` takes a quarter of a
    millisecond for each of the 28 classes, in each import of the package.
    """

    _fields = ()

    def __init_subclass__(cls):
        cls._fields = (*cls._fields, *cls.__annotations__)

    def __init__(self, *values, **named):
        vars(self).update(zip(self._fields, values, strict=False), **named)
        for name in self._fields:
            value = getattr(self, name)
            if isinstance(value, float | np.ndarray) and not np.isfinite(value).all():
                raise ValueError(
                    f"{name} of {type(self).__name__} must hold finite numbers"
                )
        self._check()

    def _check(self):
        """Raise a ValueError for numbers that do not fit together."""


def rows_by_code(codes):
    """Yield each code that occurs with the rows that have it."""
    small = (
        codes.astype(np.int16)
        if len(codes) and -1 <= codes.min() and codes.max() < 2**15
        else codes
    )
    order = np.argsort(
        small, kind="stable"
    )  # of 16 bits by counting, some ten times as fast as by comparing
    starts = (
        np.flatnonzero(np.diff(codes[order], prepend=codes[order[:1]] - 1))
        if len(codes)
        else order
    )
    yield from zip(
        codes[order[starts]].tolist(), np.split(order, starts[1:]), strict=True
    )


def shares(values, n_classes):
    """Return rows divided by their sums; a row of zeros becomes uniform."""
    total = row_sums(values)
    return np.divide(
        values, total, out=np.full(values.shape, 1 / n_classes), where=total > 0
    )


def _require(condition, node, what):
    if not condition:
        raise ValueError(f"{type(node).__name__} needs {what}")


class _NodeOf(Node):
    """A node of another one, which gives as many values as that: `_of` of them (n, width)."""

    of: object

    @property
    def width(self):
        return self.of.width

    def __call__(self, rows):
        return self._of(rows(self.of))


class _OneValueOf(_NodeOf):
    width = 1


class Scores(Node):
    """The scores of a row: K of them, or the positive class's probability (or log-odds) alone for two classes."""

    width: int = 1

    def __call__(self, rows):
        return rows.inputs[0]


class OneColumn(_OneValueOf):
    """One of the values of a node."""

    index: int

    def _of(self, values):
        return values[:, [self.index]]


class Columns(Node):
    """The values of several nodes, one beside the other."""

    parts: tuple

    @property
    def width(self):
        return sum(part.width for part in self.parts)

    def __call__(self, rows):
        return np.hstack([rows(part) for part in self.parts])


class Clip(_NodeOf):
    """Each value, kept in [low, high]."""

    low: float
    high: float

    def _of(self, values):
        return np.clip(values, self.low, self.high)


class Scaled(_NodeOf):
    """``slope * value + intercept`` for each value; both are numbers or arrays (width,)."""

    slope: float | np.ndarray
    intercept: float | np.ndarray = 0.0

    def _check(self):
        for values in (self.slope, self.intercept):
            _require(
                np.shape(values) in ((), (self.width,)),
                self,
                f"a number or {self.width}",
            )

    def _of(self, values):
        return self.slope * values + self.intercept


class Affine(_NodeOf):
    """``coef @ values + intercept``, with coef (width, width of the values) and intercept (width,)."""

    coef: np.ndarray
    intercept: np.ndarray

    @property
    def width(self):
        return len(self.coef)

    def _check(self):
        shape = len(self.intercept), self.of.width
        _require(
            np.shape(self.coef) == shape, self, f"coefficients of the shape {shape}"
        )

    def _of(self, values):
        # Not as a matrix product, which rounds by the number of rows.
        return np.einsum("nj,kj->nk", values, self.coef) + self.intercept


class Exp(_NodeOf):
    """``exp(value)`` of values kept in [-700, 700]."""

    def _of(self, values):
        return np.exp(np.clip(values, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))


class Log(_NodeOf):
    """The logarithm of probabilities, clipped to [2^-52, 1 - 2^-52] first."""

    def _of(self, values):
        return log_probability(values)


class LogOdds(_NodeOf):
    """``log(p / (1 - p))`` of probabilities, clipped to [2^-52, 1 - 2^-52] first."""

    def _of(self, values):
        return log_odds(values)


class LogOddsAgainstRest(_NodeOf):
    """The log-odds of each of a row's probabilities against the sum of the others, all clipped to the same interval."""

    def _of(self, values):
        p = clip_probability(values)
        small = np.where(p > 0.5, 0, p).sum(axis=1, keepdims=True)
        rest = np.where(p > 0.5, small, p.sum(axis=1, keepdims=True) - p)
        return np.log(p) - np.log(clip_probability(rest))


class LogSides(_NodeOf):
    """``log(p)`` and ``-log(1 - p)`` of the probability whose log-odds are given: two values that sum to these.

    With z the log-odds they are ``min(z, 0) - log(1 + exp(-|z|))`` and ``max(z, 0) + log(1 + exp(-|z|))``.
    """

    width = 2

    def _of(self, z):
        softplus = np.log1p(np.exp(-np.abs(z)))
        return np.hstack((np.minimum(z, 0) - softplus, np.maximum(z, 0) + softplus))


class Expit(_NodeOf):
    """``1 / (1 + exp(-value))``; with `clip` kept in [2^-52, 1 - 2^-52], as all scaling methods do."""

    clip: bool = True

    def _of(self, values):
        return clip_probability(expit(values)) if self.clip else expit(values)


class Pieces(_OneValueOf):
    """A piecewise polynomial of one value x.

    Piece i holds for ``cuts[i - 1] < x <= cuts[i]``; the first piece has no lower end and the last no upper one. Its
    value is the sum over j of ``coefficients[i, j] * (x - origins[i])**j``. The cuts are finite and increase strictly.
    A cut that belongs to the piece above it is written as the float64 just below it.

    Steps (bins) have one coefficient, broken lines two, cubic splines four. `continuous` says that neighbours agree at
    their cut, up to rounding, so that it does not matter on which side of it a value falls.
    """

    cuts: np.ndarray
    origins: np.ndarray
    coefficients: np.ndarray
    continuous: bool = False

    def _check(self):
        _require((np.diff(self.cuts) > 0).all(), self, "cuts that increase")
        sizes = len(self.origins), len(self.coefficients)
        _require(
            sizes == (len(self.cuts) + 1,) * 2,
            self,
            "a piece between each two cuts and beyond the outer ones",
        )

    def _of(self, values):
        x = values[:, 0]
        piece = np.searchsorted(self.cuts, x, side="left")
        value, step = self.coefficients[piece, -1], x - self.origins[piece]
        for power in reversed(range(self.coefficients.shape[1] - 1)):
            value = value * step + self.coefficients[piece, power]
        return value[:, None]


class Centred(_NodeOf):
    """Each value minus the mean of the row."""

    def _of(self, values):
        return values - values.mean(axis=1, keepdims=True)


class LogNormalized(_NodeOf):
    """Each value minus the row's ``log(sum(exp(values)))``: logarithms of probabilities that sum to 1."""

    def _of(self, values):
        return log_softmax(values, axis=1)


class Softmax(_NodeOf):
    """``exp(values) / sum(exp(values))``; with `clip` kept in [2^-52, 1 - 2^-52], as all scaling methods do."""

    clip: bool = True

    def _of(self, values):
        p = softmax_of(values, axis=1)
        return clip_probability(p) if self.clip else p


class Normalized(_NodeOf):
    """The row divided by its sum; a row of zeros becomes uniform."""

    def _of(self, values):
        return shares(values, self.width)


class RowMax(_OneValueOf):
    """The largest value of the row."""

    def _of(self, values):
        return values.max(axis=1, keepdims=True)


class Spread(_NodeOf):
    """The first of the largest values is replaced by `confidence`; the others share the rest in proportion.

    Others that are all 0 share it equally.
    """

    confidence: object

    def __call__(self, rows):
        values, confidence = rows(self.of), rows(self.confidence)
        largest = values.argmax(axis=1)[:, None] == np.arange(self.width)
        return np.where(
            largest,
            confidence,
            shares(np.where(largest, 0, values), self.width - 1) * (1 - confidence),
        )


class Mixture(Node):
    """The weighted sum of the values of several nodes of one width, plus a constant."""

    weights: tuple[float, ...]
    parts: tuple
    constant: float = 0.0

    @property
    def width(self):
        return self.parts[0].width

    def _check(self):
        _require(
            len(self.weights) == len(self.parts) and np.isfinite(self.weights).all(),
            self,
            "one weight a part",
        )
        _require(
            all(part.width == self.width for part in self.parts),
            self,
            "parts of one width",
        )

    def __call__(self, rows):
        terms = (
            weight * rows(part)
            for weight, part in zip(self.weights, self.parts, strict=True)
        )
        return sum(terms) + self.constant


class RowKey(Node):
    """A number in [0, 1) from the row's id (see `skcalib._rows.keys`), a random one where rows have no ids."""

    salt: str
    width = 1

    def __call__(self, rows):
        scores, _, ids = rows.inputs
        keys = (
            np.random.default_rng().random(len(scores))
            if ids is None
            else row_keys(self.salt, ids)
        )
        return keys[:, None]


def no_row_keys(where):
    """Return the error for a map that needs `RowKey` where there is none."""
    return ValueError(
        f"UniformMassBinning(randomize=True) takes a number from the md5 of a row's id, which {where}. Write it with "
        "to_sql(..., ids='column') for DuckDB, Spark or PostgreSQL, or fit HistogramBinning(sample_split=0.5)."
    )


class Largest(_NodeOf):
    """Key of a `Choice`: the column of the first of the largest values."""

    def number(self, rows):
        """Return which case each row takes."""
        return rows(self.of).argmax(axis=1)


class Place(_NodeOf):
    """Key of a `Choice`: the number of the cuts, which increase strictly, that lie below the value."""

    cuts: np.ndarray

    def _check(self):
        _require((np.diff(self.cuts) > 0).all(), self, "cuts that increase")

    def number(self, rows):
        """Return which case each row takes."""
        return np.searchsorted(self.cuts, rows(self.of)[:, 0], side="left")


class GroupOf(Node):
    """Key of a `Choice`: the number that belongs to the row's group, `otherwise` for a group that is not named.

    `column` is the name of the column of groups, None where groups come with the call. `cases` maps a group (a string,
    an integer, a boolean or a float) to its number.
    """

    column: str | None
    cases: dict
    otherwise: int

    def number(self, rows):
        """Return which case each row takes."""
        return np.array(
            [self.cases.get(group, self.otherwise) for group in rows.inputs[1]],
            dtype=np.intp,
        )


class Choice(Node):
    """The values of one of several nodes of one width: that with the number which the key gives."""

    key: Largest | Place | GroupOf
    cases: tuple

    @property
    def width(self):
        return self.cases[0].width

    def _check(self):
        _require(
            all(case.width == self.width for case in self.cases),
            self,
            "cases of one width",
        )

    def __call__(self, rows):
        number, values = (
            self.key.number(rows),
            np.empty((len(rows.inputs[0]), self.width)),
        )
        for case, chosen in rows_by_code(number):
            values[chosen] = rows.at(chosen)(self.cases[case])
        return values
