"""Calibration maps as columns of a lazy table, from the same pieces as SQL and ONNX."""

import numpy as np

import skcalib.recalibrators._maps as nodes
from skcalib._rows.links import PROBABILITY_CLIP
from skcalib.engines._columns import free_name
from skcalib.engines._native import narwhals
from skcalib.engines._pieces import as_pieces, is_joined, joined

# Nodes that a case holds as expressions; others are columns before it.
_SHORT = (nodes.Affine, nodes.Clip, nodes.Exp, nodes.Expit, nodes.Mixture, nodes.Scaled)
# Log-odds of the two ends that probabilities are clipped to, and the largest argument with a finite exponential.
_LARGEST_LOG_ODDS, _LARGEST_EXPONENT = float(np.log(2.0**52 - 1)), 700.0


class ColumnWriter:
    """Adds the values of nodes to a lazy frame, each as a column of its own.

    An engine repeats the text of an expression wherever it is used; a column it makes once.

    Parameters
    ----------
    frame : narwhals LazyFrame
        The rows.
    score : narwhals Expr
        Their scores.
    group : narwhals Expr or None
        The case of each row, a number, where a `Choice` is by groups.
    """

    def __init__(self, frame, score, group=None):
        self.frame, self.score, self.group = frame, score, group
        self.names, self.in_case, self.prefix = {}, False, free_name(frame.collect_schema().names())

    def is_valid(self):
        """Return whether a row has a valid score, as an expression."""
        clipped = self.names.get(("inside", nodes.Scores))
        return ~(self.column(nodes.Scores(1)) if clipped is None else narwhals().col(clipped)).is_null()

    def column(self, node, *, is_used_once=True):
        """Return the node's value as a column, or as an expression for a case that may be one of few rows."""
        if isinstance(node, nodes.Scores):
            return self.staged(_key(node), lambda: _within(self.score, 0.0, 1.0, self.score))
        is_short = isinstance(node, _SHORT) or (isinstance(node, nodes.Pieces) and not is_joined(node))
        if self.in_case and is_used_once and is_short:
            return self.expression(node)
        return self.staged(_key(node), lambda: self.expression(node))

    def expression(self, node):
        """Return the node's value as an expression."""
        write = getattr(self, f"_write_{type(node).__name__}", None)
        if write is None:
            raise ValueError(f"{type(node).__name__} has no form as an expression of one score.")
        return write(node)

    def case(self, node):
        """Return an expression that an engine evaluates for those rows alone that take it."""
        is_lazy = not self.frame.implementation.is_dask()  # whose numbers are not aligned with what was clipped
        return self._written(is_lazy, lambda: self.column(node))

    def staged(self, key, expression):
        """Return a column that is made once, by a function that returns the expression."""
        if key not in self.names:
            self.names[key] = self.add(self._written(False, expression))
        return narwhals().col(self.names[key])

    def _written(self, in_case, expression):
        outer, self.in_case = self.in_case, in_case
        value = expression()
        self.in_case = outer
        return value

    def add(self, expression):
        """Add a column and return its name."""
        name = f"{self.prefix}_{len(self.frame.collect_schema())}"
        self.frame = self.frame.with_columns(expression.alias(name))
        return name

    def inside(self, node):
        """Return the column of a probability, clipped before its logarithm is taken."""
        low, high, key = PROBABILITY_CLIP, 1 - PROBABILITY_CLIP, ("inside", _key(node))
        if isinstance(node, nodes.Scores):
            return self.staged(key, lambda: _inside(self.score, low, high))
        inside = self.clipped(self.column(node), low, high)
        return inside if self.in_case else self.staged(key, lambda: inside)

    def clipped(self, value, low=None, high=None):
        """Return an expression, kept in [low, high]."""
        if self.frame.implementation.is_dask():  # which takes the parts of a joined table for unaligned
            return value.clip(low, high)
        nw = narwhals()  # whose `clip` repeats the text of the expression on databases
        value = value if high is None else nw.min_horizontal(value, nw.lit(float(high)))
        return value if low is None else nw.max_horizontal(value, nw.lit(float(low)))

    def pair(self, node):
        """Return the two columns of log(p) and -log(1 - p)."""
        nw = narwhals()
        if isinstance(node.of, nodes.LogOdds):
            inside = self.inside(node.of.of)
            return inside.log(), -(1 - inside).log()
        log_odds = self.column(node.of)
        rest = nw.col(self.add((1 + (-log_odds.abs()).exp()).log()))
        return self.clipped(log_odds, high=0) - rest, self.clipped(log_odds, low=0) + rest

    def _write_RowKey(self, node):
        raise nodes.no_row_keys("tables of different engines do not compute alike")

    def _write_Clip(self, node):
        return self.clipped(self.column(node.of), node.low, node.high)

    def _write_Exp(self, node):
        return self.clipped(self.column(node.of), -_LARGEST_EXPONENT, _LARGEST_EXPONENT).exp()

    def _write_LogOdds(self, node):
        inside = self.inside(node.of)
        return (inside / (1 - inside)).log()

    def _write_Scaled(self, node):
        return self.column(node.of) * float(node.slope) + float(node.intercept)

    def _write_Affine(self, node):
        values = self.pair(node.of) if isinstance(node.of, nodes.LogSides) else (self.column(node.of),)
        [coefficients], [constant] = node.coef, node.intercept
        products = (value * float(c) for value, c in zip(values, coefficients, strict=True))
        return sum(products, narwhals().lit(0.0)) + float(constant)

    def _write_Expit(self, node):
        """Return the sigmoid; clipped log-odds are as good as a clipped probability, and never too large."""
        bound, size = _LARGEST_LOG_ODDS if node.clip else _LARGEST_EXPONENT, _size(node.of)
        power = _power(self, node.of) if size <= _LARGEST_EXPONENT else None
        if power is None:
            value = self.column(node.of)
            power = (-(self.clipped(value, -bound, bound) if size > bound else value)).exp()
        elif size > bound:
            power = self.clipped(power, np.exp(-bound), np.exp(bound))
        return 1 / (1 + power)

    def _write_Mixture(self, node):
        parts = [self.column(part) * float(weight) for weight, part in zip(node.weights, node.parts, strict=True)]
        return sum(parts[1:], parts[0]) + float(node.constant)

    def _write_OneColumn(self, node):
        return self.column(node.of)

    def _write_Choice(self, node):
        nw, key = narwhals(), node.key
        if isinstance(key, nodes.Place):
            cases = [self.case(case) for case in node.cases]
            chosen = cases[-1]
            for cut, case in zip(key.cuts[::-1].tolist(), cases[-2::-1], strict=True):
                chosen = nw.when(self.column(key.of) <= cut).then(case).otherwise(chosen)
            return chosen
        if not isinstance(key, nodes.GroupOf) or self.group is None:
            raise ValueError("groups are taken from one column: name it with by=.")
        maps = [as_pieces(case) for case in node.cases]
        if all(own is not None and isinstance(own.of, nodes.Scores) for own in maps) and is_joined(*maps):
            return _joined(self, self.column(maps[0].of), maps, self.add(self.group))
        return _by_case(self.group, [self.case(case) for case in node.cases], 0)

    def _write_Pieces(self, node):
        """Return the value of the piece that holds the argument."""
        argument = self.column(node.of, is_used_once=False)
        return _joined(self, argument, [node]) if is_joined(node) else _case(argument, node, 0, len(node.cuts))


def _key(node):
    """Return what equal nodes have in common: groups often work on the same log-odds."""
    if isinstance(node, nodes.Scores):
        return nodes.Scores
    if isinstance(node, nodes.LogOdds | nodes.Scaled | nodes.Clip):
        numbers = [np.asarray(value).tobytes() for name, value in vars(node).items() if name != "of"]
        return type(node), _key(node.of), *numbers
    return node


def _within(value, low, high, result):
    return narwhals().when((value >= low) & (value <= high)).then(result)


def _inside(score, low, high):
    """Return valid scores clipped, in one expression: nearly all rows need its first case alone."""
    nw = narwhals()
    above = _within(score, high, 1.0, nw.lit(float(high)))
    return _within(score, low, high, score).otherwise(_within(score, 0.0, low, nw.lit(float(low))).otherwise(above))


def _power(writer, node):
    """Return exp(-z) where z is linear in log-odds, as a power of the odds; else None.

    Engines take twice as long for a logarithm and an exponential, and Narwhals asks for the sign of what it takes the
    logarithm of.
    """
    of = getattr(node, "of", None)
    if isinstance(node, nodes.LogOdds):
        inside = writer.inside(of)
        return (1 - inside) / inside
    if isinstance(node, nodes.Scaled) and isinstance(of, nodes.LogOdds):
        inside = writer.inside(of.of)
        return ((1 - inside) / inside) ** float(node.slope) * float(np.exp(-node.intercept))
    if isinstance(node, nodes.Affine) and isinstance(of, nodes.LogSides) and isinstance(of.of, nodes.LogOdds):
        inside, [[of_event, of_rest]] = writer.inside(of.of.of), node.coef.tolist()
        return inside**-of_event * (1 - inside) ** of_rest * float(np.exp(-node.intercept[0]))
    return None


def _size(node):
    """Return a bound on a node's absolute value, where it is known."""
    if isinstance(node, nodes.LogOdds):
        return _LARGEST_LOG_ODDS
    if isinstance(node, nodes.Scaled):
        return abs(float(node.slope)) * _size(node.of) + abs(float(node.intercept))
    if isinstance(node, nodes.Affine) and isinstance(node.of, nodes.LogSides):
        return np.abs(node.coef).sum() * _size(node.of.of) + np.abs(node.intercept).sum()
    return np.inf


def _by_case(number, cases, first):
    """Return that of several expressions which has the row's number, as a balanced tree: engines bound its depth."""
    if len(cases) == 1:
        return cases[0]
    middle = len(cases) // 2
    below, above = _by_case(number, cases[:middle], first), _by_case(number, cases[middle:], first + middle)
    return narwhals().when(number < first + middle).then(below).otherwise(above)


def _joined(writer, argument, maps, group=None):
    nw = narwhals()
    name = writer.add(nw.when(~argument.is_null()).then(argument).otherwise(nw.lit(0.0)))  # a join loses NULL
    writer.frame, (origin, *coefficients) = joined(writer.frame, name, maps, group)
    return _polynomial(nw.col(name), nw.col(origin), [nw.col(column) for column in coefficients])


def _case(argument, node, first, last):
    """Return the pieces from `first` to `last` as a balanced tree of comparisons."""
    if first == last:
        return _polynomial(argument, float(node.origins[first]), node.coefficients[first].tolist())
    middle = (first + last) // 2
    below, above = _case(argument, node, first, middle), _case(argument, node, middle + 1, last)
    return narwhals().when(argument <= float(node.cuts[middle])).then(below).otherwise(above)


def _polynomial(argument, origin, coefficients):
    """Return the polynomial by Horner's rule; for one coefficient a constant."""
    nw = narwhals()
    while len(coefficients) > 1 and isinstance(coefficients[-1], float) and coefficients[-1] == 0:
        coefficients = coefficients[:-1]
    as_columns = [nw.lit(value) if isinstance(value, float) else value for value in coefficients]
    value = as_columns[-1]
    for coefficient in reversed(as_columns[:-1]):
        value = value * (argument - origin) + coefficient
    return value
