"""Calibration maps as SQL: one expression a class, from CASE, LEAST, GREATEST, EXP, LN,
ABS and arithmetic.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator

from skcalib import maps as nodes
from skcalib._fitting.provenance import provenance_text
from skcalib._input.scores import MAX_MAGNITUDE
from skcalib._rows.keys import HEX_DIGITS
from skcalib._rows.links import LARGEST_GAP, PROBABILITY_CLIP
from skcalib.export._segments import one_number_of_classes, segment_items
from skcalib.export._sql_text import (
    case,
    clamped,
    dialect_named,
    exponential,
    linear,
    number,
    piece_tree,
)
from skcalib.export._sql_warehouses import WAREHOUSES, transpiled
from skcalib.export._writers import NodeWriter, no_row_keys, split_decision
from skcalib.maps import calibration_map, linear_form

_LONGEST = 1_000_000  # characters: engines refuse or choke on more
# characters: of the sum of all other classes. For more classes it is 1 - p
_LONGEST_REST = 1000
# characters: beyond, impossible classes are left to NULL
_LONGEST_WITH_IMPOSSIBLE = 500_000
_ROUNDING = 1e-6  # of a row's sum
# expit of this is 1 - 2^-52: beyond it probabilities are clipped.
_CLIPPED_LOG_ODDS = float(np.log1p(-PROBABILITY_CLIP) - np.log(PROBABILITY_CLIP))
# of two logits: the smaller one's class then has a probability below 2^-52
_SURE_DIFFERENCE = 60.0
_NO_OVERFLOW = 700.0


def to_sql(
    recalibrator: BaseEstimator | Mapping | Any,
    *,
    score: str | Sequence[str] = "p",
    dialect: str = "ansi",
    ids: str | None = None,
    group: str | None = None,
) -> Any:
    """Return a fitted recalibrator as one SQL expression, or one per class.

    Parameters
    ----------
    recalibrator : recalibrator
        A fitted recalibrator that has a map: any of this package but a
        `MulticalibratedRecalibrator` with rounds and a `GroupwiseRecalibrator` whose
        `groups` is not the name of a column or ``"predicted_class"``. Or a
        `CertifiedThresholdClassifier` around one in a `FrozenEstimator`.
    score : str or list of str, default="p"
        For two classes the column of the positive class's probability (its log-odds
        with ``input="logit"``). A list names one column per class, in the order of
        `classes_`.
    dialect : {"ansi", "duckdb", "spark", "postgres", "snowflake", "bigquery", \
            "redshift", "databricks", "tsql", "oracle", "mysql", "sqlite"}, \
            default="ansi"
        The dialect of SQL. All but the first four need sqlglot (``pip install
        skcalib[sql]``), which transpiles PostgreSQL's text. The tests of this package
        run DuckDB's, Spark's, PostgreSQL's and SQLite's; the others are parsed, and
        run in DuckDB after that.
    ids : str, default=None
        For a `UniformMassBinning` with ``randomize=True`` the column of the rows' ids,
        strings or integers, also where it is the recalibrator of a
        `GroupwiseRecalibrator`. The result is that of
        ``predict_proba(scores, ids=...)``. For DuckDB, Spark and PostgreSQL.
    group : str, default=None
        For a dict from segment to recalibrator, as `PredictionTable(by=...).fit`
        returns it, the column of the segments. Other segments give NULL.

    Returns
    -------
    expression : str or list of str
        The probability of the positive class; for a list of columns a list with the
        probability of each class. Of a `CertifiedThresholdClassifier` one expression,
        the label that `predict` gives. A comment at the end (of the first) tells rows,
        parameters, versions and the hash of the fit.

    Raises
    ------
    ValueError
        If the recalibrator cannot be written in SQL or in this dialect, `score` does
        not fit its classes, or an expression has more than a million characters. See
        `to_sql_table` for the last.
    ImportError
        If the dialect needs sqlglot, and it is not installed.

    See Also
    --------
    to_sql_table : A table of pieces to be joined, faster for isotonic maps with many
        knots.

    Notes
    -----
    Names are quoted, and columns are cast to double precision. NULL, NaN, and scores
    out of range give NULL: a probability outside [0, 1], a logit beyond 1e100 in size,
    a row of probabilities whose sum is off by more than 1e-6, or a missing group or id.
    Rows of probabilities are not normalised again. No score makes EXP overflow or LN
    fail. Among several logits -inf, or one that is more than 700 below the largest, is
    an impossible class, with probability 0. Where that would take more than 500,000
    characters such rows give NULL. Measured on logits with ``clip=None``: from 9
    classes on for matrix scaling, 11 for Dirichlet and beta calibration, 15 for vector
    scaling, 18 for Platt scaling, and in no case up to 25 for temperature scaling. With
    ``clip=0.01``, from 3 classes on (matrix scaling 6, vector scaling 8); with steps
    and splines from 3 to 9, whatever `clip` is.

    One-vs-rest methods on log-odds compare a class with the sum of the others. With
    more than about fifteen classes that text would be too long for probabilities, and
    1 - p stands for the sum. The result is the same unless a probability is so near to
    1, within about 1e-9, that 1 - p is mostly rounding.

    T-SQL is that of SQL Server 2022 and of Azure, which have LEAST and GREATEST, and
    takes at most ten levels of CASE in each other: maps with many pieces are refused.
    Oracle computes in BINARY_DOUBLE; its groups cannot be booleans. SQLite needs its
    mathematical functions, which Python's `sqlite3` has, and takes a text in the column
    of scores for 0, where other engines fail.

    In a decision a probability that is below the threshold by at most 1e-12 counts as
    equal to it, because engines round in different ways.

    Examples
    --------
    A map of 400 scores of churn in two bins, for the column "churn_score":

    >>> import numpy as np
    >>> from skcalib import HistogramBinning
    >>> from skcalib.binning import EqualWidth
    >>> from skcalib.export import to_sql
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(400)
    >>> histogram = HistogramBinning(EqualWidth(2)).fit(
    ...     scores, rng.random(400) < scores**2
    ... )
    >>> sql = to_sql(histogram, score="churn_score", dialect="duckdb")
    >>> sql[
    ...     sql.index("END+") + 4 : sql.index(") /*")
    ... ]  # before it: NULL for what is no score
    '(CASE WHEN CAST("churn_score" AS DOUBLE)<=0.5e0 THEN 0.07650273224043716e0 ELSE 0.6082949308755761e0 END)'
    """  # noqa: E501
    if isinstance(dialect, str) and dialect in WAREHOUSES:
        _refuse_ids(ids, dialect)
        options = {"score": score, "dialect": "postgres", "group": group}
        written = to_sql(recalibrator, **options)
        if isinstance(written, list):
            return [transpiled(text, dialect) for text in written]
        return transpiled(written, dialect)
    if isinstance(recalibrator, Mapping):
        options = {"score": score, "dialect": dialect, "ids": ids}
        return _by_segment(recalibrator, group, **options)
    dialect = dialect_named(dialect)
    columns = check_score_names(score)
    recalibrator, decision = split_decision(recalibrator)
    n_columns = _n_columns(recalibrator, columns, score)
    as_map = calibration_map(recalibrator, n_columns=n_columns)
    written = guarded_texts(as_map, columns, dialect, ids)
    if decision is not None:
        written = [_decided(decision, [f"({text})" for text in written], dialect)]
    longest = max(map(len, written))
    if longest > _LONGEST:
        instead = "For one score of two classes use to_sql_table."
        if len(written) > 1:
            instead = (
                "to_onnx and to_javascript write it; in SQL a recalibrator with fewer"
                " pieces fits, such as TemperatureScaling."
            )
        raise ValueError(
            f"{type(recalibrator).__name__} takes an expression of {longest:,}"
            f" characters, and engines refuse texts beyond {_LONGEST:,}. {instead}"
        )
    written[0] += provenance_comment(recalibrator)
    if isinstance(score, list | tuple) and decision is None:
        return written
    return written[0]


def _refuse_ids(ids, dialect):
    if ids is not None:
        raise ValueError(
            f"ids={ids!r} needs the md5 of a text as a number, which is written for"
            f" 'duckdb', 'spark' and 'postgres', not for {dialect!r}."
        )


def _by_segment(maps, group, *, score, dialect, ids):
    """Return the CASE of a column of segments over their expressions."""
    if not isinstance(group, str) or not group:
        raise ValueError(
            f"group must name the column of the segments of a dict, found {group!r}."
        )
    named = dialect_named(dialect)
    column = named.identifier(group)
    pairs = segment_items(maps)
    one_number_of_classes(pairs)
    by_class = []
    for segment, recalibrator in pairs:
        condition = f"{column} IS NULL"
        if segment is not None:
            condition = f"{column}={named.label(segment)}"
        texts = to_sql(recalibrator, score=score, dialect=dialect, ids=ids)
        if not isinstance(texts, list):
            texts = [texts]
        by_class.append([(condition, f"({text})") for text in texts])
    expressions = [case(branches) for branches in zip(*by_class, strict=True)]
    longest = max(map(len, expressions))
    if longest > _LONGEST:
        raise ValueError(
            f"The {len(pairs)} maps take an expression of {longest:,} characters, and"
            f" engines refuse texts beyond {_LONGEST:,}: write fewer segments at once."
        )
    return expressions if isinstance(score, list | tuple) else expressions[0]


def _decided(decision, texts, dialect):
    """Return the label of a decision by probabilities (one for each class, or of the
    positive one), NULL for NULL.
    """
    labels = [dialect.label(label) for label in decision.labels]
    reached = f">={number(decision.threshold)}"
    otherwise = f"{texts[-1]} IS NOT NULL", labels[decision.otherwise]
    if decision.is_event:
        return case([(texts[-1] + reached, labels[1]), otherwise])
    if len(texts) <= 2:
        p = texts[-1]
        return case(
            [
                (f"{p}>0.5e0 AND {p}{reached}", labels[1]),
                (f"{p}<=0.5e0 AND 1e0-{p}{reached}", labels[0]),
                otherwise,
            ]
        )
    top = f"GREATEST({','.join(texts)}){reached}"
    largest = zip([*_largest(texts), "1=1"], labels[:-1], strict=True)
    return case(
        [*((f"{top} AND {is_it}", label) for is_it, label in largest), otherwise]
    )


def provenance_comment(recalibrator):
    """Return where a recalibrator comes from, as a comment of SQL."""
    text = provenance_text(recalibrator)
    return f" /* {text} */" if text else ""


def check_score_names(score):
    """Return the names of the columns of scores as a list."""
    columns = list(score) if isinstance(score, list | tuple) else [score]
    if not columns or not all(isinstance(name, str) and name for name in columns):
        raise ValueError(
            f"score must be the name of a column or a list of names, found {score!r}."
        )
    return columns


def guarded_texts(as_map, columns, dialect, ids=None):
    """Return the expressions of a map, each of which is NULL where the row is not
    valid.
    """
    given = [dialect.as_double(dialect.identifier(name)) for name in columns]
    ids = None if ids is None else dialect.identifier(ids)
    conditions = _valid(as_map, given, dialect)
    texts = SqlWriter(given, dialect, ids).write(as_map.output)
    is_long = max(map(len, texts)) > _LONGEST_WITH_IMPOSSIBLE
    if is_long and as_map._leaves_impossible_out:
        # A row with an impossible class is NULL then.
        texts = SqlWriter(given, dialect, ids).write(as_map.unmasked)
        listed = ",".join(given)
        spread = f"GREATEST({listed})-LEAST({listed})"
        conditions.append(f"{spread}<={number(LARGEST_GAP)}")
    if len(as_map.classes) == 2 and len(columns) == 2:
        texts = [f"(1e0-{texts[0]})", texts[0]]
    if ids is not None:
        conditions.append(f"{ids} IS NOT NULL")
    guard = " AND ".join(conditions)
    return [guarded(guard, text, dialect) for text in texts]


def guarded(guard, text, dialect):
    """Return an expression that is NULL where a condition is not met."""
    # no score makes a term fail, so none needs to stand inside the CASE
    if dialect.shares_terms:
        return f"({case([(guard, '0e0')])}+{text})"
    return case([(guard, text)])


def _n_columns(recalibrator, columns, score):
    n_classes = None
    if hasattr(recalibrator, "classes_"):
        n_classes = len(recalibrator.classes_)
    if (
        n_classes is None
        or len(columns) == n_classes
        or (n_classes == 2 and len(columns) == 1)
    ):
        return len(columns)
    if n_classes == 2:
        wanted = "one column, or a list of two"
    else:
        wanted = f"a list of {n_classes} columns, one for each class"
    raise ValueError(f"score must name {wanted}, found {score!r}.")


def valid_score(given, input):
    """Return the two conditions under which a score is valid: NULL and NaN do not meet
    both.
    """
    low, high = (
        (0.0, 1.0) if input == "probability" else (-MAX_MAGNITUDE, MAX_MAGNITUDE)
    )
    return [f"{given}>={number(low)}", f"{given}<={number(high)}"]


def _valid(as_map, given, dialect):
    """Return the conditions under which a row is valid, as a list."""
    conditions = []
    has_impossible = as_map._leaves_impossible_out
    for text in given:
        at_least, at_most = valid_score(text, as_map.input)
        if has_impossible:
            # Less than the least number is -inf alone: an impossible class.
            at_least = f"({at_least} OR {text}<{number(-np.finfo(np.float64).max)})"
        conditions += [at_least, at_most]
    if has_impossible:
        conditions.append(f"GREATEST({','.join(given)})>={number(-MAX_MAGNITUDE)}")
    if as_map.input == "probability" and len(given) > 1:
        conditions.append(f"ABS({'+'.join(given)}-1e0)<={number(_ROUNDING)}")
    if as_map.group_key is not None:
        conditions.append(f"{_group_column(as_map.group_key, dialect)} IS NOT NULL")
    return conditions


def _group_column(key, dialect):
    if key.column is None:
        raise ValueError(
            "GroupwiseRecalibrator was given its groups as an array, so no column is"
            ' known. Fit it with groups="name of the column".'
        )
    return dialect.identifier(key.column)


class SqlWriter(NodeWriter):
    """Writes nodes: a text for each value of one.

    Texts can stand on either side of ``*`` and ``/``: sums are in parentheses.
    """

    format = "SQL"

    def __init__(self, given, dialect, ids=None):
        super().__init__()
        self.given, self.dialect, self.ids = given, dialect, ids

    def _write_Scores(self, node):
        return self.given

    def _write_OneColumn(self, node):
        return [self.write(node.of)[node.index]]

    def _write_Columns(self, node):
        return [text for part in node.parts for text in self.write(part)]

    def _write_Clip(self, node):
        return [clamped(text, node.low, node.high) for text in self.write(node.of)]

    def _write_Scaled(self, node):
        form = _LinearForm(node)
        return [
            f"({self._combination(form, weights, constant)})"
            for weights, constant in form.rows
        ]

    _write_Affine = _write_Scaled

    def _write_Exp(self, node):
        return [exponential(text, _NO_OVERFLOW) for text in self.write(node.of)]

    def _write_Log(self, node):
        return [f"LN({text})" for text in self._inside(node.of)]

    def _write_LogOdds(self, node):
        return [f"LN({text}/(1e0-{text}))" for text in self._inside(node.of)]

    def _write_LogOddsAgainstRest(self, node):
        if isinstance(node.of, nodes.Softmax) and not node.of.clip:
            # The odds against a class are a sum of exponentials of differences.
            limit = -np.log(PROBABILITY_CLIP)
            sums = self._odds_against(node.of.of, _SURE_DIFFERENCE, node.of.possible)
            return [f"(-{_log_of(total, limit)})" for total in sums]
        texts = self._inside(node.of)
        rests = ["+".join(texts[:k] + texts[k + 1 :]) for k in range(len(texts))]
        if max(map(len, rests)) > _LONGEST_REST:
            rests = [f"1e0-{text}" for text in texts]
        return [f"LN({text}/({rest}))" for text, rest in zip(texts, rests, strict=True)]

    def _write_LogSides(self, node):
        if isinstance(node.of, nodes.LogOdds):
            (text,) = self._inside(node.of.of)
            return [f"LN({text})", f"(-LN(1e0-{text}))"]
        (z,) = self.write(node.of)
        softplus = f"LN(1e0+EXP(GREATEST(-ABS({z}),{number(-_NO_OVERFLOW)})))"
        return [f"(LEAST({z},0e0)-{softplus})", f"(GREATEST({z},0e0)+{softplus})"]

    def _write_Expit(self, node):
        limit = _CLIPPED_LOG_ODDS if node.clip else _NO_OVERFLOW
        form = _LinearForm(node.of)
        negated = [
            self._combination(form, -weights, -constant)
            for weights, constant in form.rows
        ]
        return [f"(1e0/(1e0+{exponential(text, limit)}))" for text in negated]

    def _write_Pieces(self, node):
        (x,), score, cuts = self.write(node.of), self.write(node.of)[0], node.cuts
        probability = self._probability(node.of) if node.continuous else None
        if probability is not None:  # shorter, and as good: cuts of the probability
            score = probability
            cuts = expit(cuts)
        pieces = zip(node.origins, node.coefficients, strict=True)
        text = piece_tree(score, cuts, [_polynomial(x, *piece) for piece in pieces])
        constant = not node.coefficients[:, 1:].any()
        return [
            (
                self.dialect.as_double(text)
                if constant and self.dialect.exact_numbers
                else f"({text})"
            )
        ]

    def _write_LogNormalized(self, node):
        if isinstance(node.of, nodes.Log) and not node.possible:
            texts = self._inside(node.of.of)
            return [f"LN({text}/({'+'.join(texts)}))" for text in texts]
        sums = self._sums_of_odds(node.of, _NO_OVERFLOW, node.possible)
        texts = [f"(-LN({total}))" for total in sums]
        return self._open(texts) if node.possible else texts

    def _write_Softmax(self, node):
        form = _LinearForm(node.of)
        texts = self._shares_of_exponentials(form, node.possible)
        if texts is None:
            limit = _SURE_DIFFERENCE if node.clip else _NO_OVERFLOW
            sums = self._sums_of_odds(node.of, limit, node.possible)
            texts = [f"(1e0/({total}))" for total in sums]
        if node.clip:
            texts = [
                clamped(text, PROBABILITY_CLIP, 1 - PROBABILITY_CLIP) for text in texts
            ]
        return self._open(texts) if node.possible else texts

    def _write_Possible(self, node):
        return self._open(self.write(node.of))

    @cached_property
    def _closed(self):
        """The conditions under which a class is impossible."""
        largest = f"GREATEST({','.join(self.given)})-{number(LARGEST_GAP)}"
        return [f"{text}<{largest}" for text in self.given]

    @cached_property
    def _factors(self):
        """1 for classes that are possible, 0 for others."""
        return [f"({case([(closed, '0e0')], '1e0')})" for closed in self._closed]

    def _open(self, texts):
        """Return values with 0 for impossible classes."""
        pairs = zip(self._closed, texts, strict=True)
        return [f"({case([(closed, '0e0')], text)})" for closed, text in pairs]

    def _write_Centred(self, node):
        if not node.possible:
            return self._write_Scaled(node)
        texts = self.write(node.of)
        mean = f"({'+'.join(self._open(texts))})/({'+'.join(self._factors)})"
        return self._open([f"{text}-{mean}" for text in texts])

    def _probability(self, node):
        """Return the probability whose log-odds a node is, None for other nodes."""
        if isinstance(node, nodes.LogOdds):
            return self.write(node.of)[0]
        if isinstance(node, nodes.OneColumn) and isinstance(
            node.of, nodes.LogOddsAgainstRest
        ):
            return self.write(node.of.of)[node.index]
        return None

    def _shares_of_exponentials(self, form, possible):
        """Return the softmax of a form of logarithms by its definition, None where EXP
        could overflow.
        """
        longest = -np.log(PROBABILITY_CLIP)
        largest = max(
            longest * np.abs(weights).sum() + abs(constant)
            for weights, constant in form.rows
        )
        if not isinstance(form.base, nodes.Log) or largest > _NO_OVERFLOW - np.log(
            len(form.rows)
        ):
            return None
        texts = [
            f"EXP({linear(weights, self.write(form.base), constant)})"
            for weights, constant in form.rows
        ]
        if possible:
            texts = [
                f"{factor}*{text}"
                for factor, text in zip(self._factors, texts, strict=True)
            ]
        total = "+".join(texts)
        return [f"({text}/({total}))" for text in texts]

    def _write_Normalized(self, node):
        texts = self.write(node.of)
        if node.possible:
            texts = self._open(texts)
            total = "+".join(texts)
            n_possible = "+".join(self._factors)
            return [
                f"({case([(f'{total}>0e0', f'{text}/({total})')], f'{factor}/({n_possible})')})"  # noqa: E501
                for text, factor in zip(texts, self._factors, strict=True)
            ]
        total = "+".join(texts)
        if _is_positive(node.of):
            return [f"({text}/({total}))" for text in texts]
        uniform = number(1 / len(texts))
        return [
            f"({case([(f'{total}>0e0', f'{text}/({total})')], uniform)})"
            for text in texts
        ]

    def _write_RowKey(self, node):
        if self.dialect.hex_number is None or self.ids is None:
            raise no_row_keys(
                "needs the column of ids, and ANSI SQL has no function for"
            )
        return [
            f"({self.dialect.row_key(node.salt, self.ids, HEX_DIGITS)}/{number(16.0**HEX_DIGITS)})"  # noqa: E501
        ]

    def _write_RowMax(self, node):
        return [f"GREATEST({','.join(self.write(node.of))})"]

    def _write_Spread(self, node):
        scores, (confidence,) = self.write(node.of), self.write(node.confidence)
        largest = _largest(self.write(_same_order(node.of)))
        if node.possible:
            return self._spread_among_possible(scores, confidence, largest)
        written = []
        for k, score in enumerate(scores):
            # the value of class k where class m is the predicted one
            values = []
            for m in range(len(scores)):
                if m == k:
                    values.append(confidence)
                else:
                    others = [*scores[:m], *scores[m + 1 :]]
                    values.append(_share(score, others, confidence))
            written.append(
                f"({case(zip(largest, values[:-1], strict=True), values[-1])})"
            )
        return written

    def _spread_among_possible(self, scores, confidence, largest):
        """Return the confidence for the largest score, and shares of the rest for the
        other possible classes.
        """
        n_possible = "+".join(self._factors)
        confidence = f"({case([(f'{n_possible}<2e0', '1e0')], confidence)})"
        scores = self._open(scores)
        written = []
        for k, score in enumerate(scores):
            values = []
            for m in range(len(scores)):
                if k == m:
                    values.append(confidence)
                    continue
                rest = f"(1e0-{confidence})"
                total = "+".join(scores[:m] + scores[m + 1 :])
                equal = f"{self._factors[k]}*{rest}/GREATEST({n_possible}-1e0,1e0)"
                shares = [(f"{total}>0e0", f"{score}/({total})*{rest}")]
                values.append(f"({case(shares, equal)})")
            branches = zip(largest, values[:-1], strict=True)
            written.append(f"({case(branches, values[-1])})")
        return written

    def _write_Mixture(self, node):
        columns = zip(*(self.write(part) for part in node.parts), strict=True)
        return [f"({linear(node.weights, texts, node.constant)})" for texts in columns]

    def _write_Choice(self, node):
        options = zip(*(self.write(option) for option in node.cases), strict=True)
        return [f"({self._chosen(node.key, texts)})" for texts in options]

    def _chosen(self, key, texts):
        """Return the CASE of a key over one text for each of its numbers."""
        if isinstance(key, nodes.Place):
            return piece_tree(self.write(key.of)[0], key.cuts, texts)
        if isinstance(key, nodes.Largest):
            scores = self.write(_same_order(key.of))
            return case(zip(_largest(scores), texts[:-1], strict=True), texts[-1])
        column = _group_column(key, self.dialect)
        groups = {}
        for group, index in key.cases.items():
            if texts[index] != texts[key.otherwise]:
                groups.setdefault(texts[index], []).append(self.dialect.label(group))
        branches = [
            (f"{column} IN ({','.join(labels)})", text)
            for text, labels in groups.items()
        ]
        if branches:
            return case(branches, texts[key.otherwise])
        return texts[key.otherwise]

    def _inside(self, node):
        """Return probabilities kept in [2^-52, 1 - 2^-52]."""
        if isinstance(node, nodes.Clip) and node.low >= PROBABILITY_CLIP:
            return self.write(node)
        return [
            clamped(text, PROBABILITY_CLIP, 1 - PROBABILITY_CLIP)
            for text in self.write(node)
        ]

    def _combination(self, form, weights, constant, ignores_shift=False):
        """Return the text of a row of a linear form, written by differences where it
        ignores a common shift.
        """
        if not (ignores_shift or form.shift == "values") or len(weights) == 1:
            return linear(weights, self.write(form.base), constant)
        reference = int(np.argmax(np.abs(weights)))
        others = np.delete(np.arange(len(weights)), reference)
        return linear(
            weights[others],
            [self._difference(form.base, i, reference) for i in others],
            constant,
        )

    def _difference(self, node, i, j):
        """Return value i minus value j of a node."""
        if isinstance(node, nodes.Log):
            texts = self._inside(node.of)
            return f"LN({texts[i]}/{texts[j]})"
        texts = self.write(node)
        return f"({texts[i]}-{texts[j]})"

    def _sums_of_odds(self, node, limit, possible=False):
        """Return for each value x_k of a node the sum over j of exp(x_j - x_k), those
        that are possible alone.
        """
        for total in self._odds_against(node, limit, possible):
            yield f"1e0+{total}"

    def _odds_against(self, node, limit, possible):
        """Return the same without the term of x_k itself."""
        form = _LinearForm(node)
        for k, (weights, constant) in enumerate(form.rows):
            differences = [
                self._combination(
                    form,
                    other - weights,
                    other_constant - constant,
                    form.shift is not None,
                )
                for j, (other, other_constant) in enumerate(form.rows)
                if j != k
            ]
            terms = [exponential(text, limit) for text in differences]
            if possible:
                factors = np.delete(self._factors, k)
                terms = [
                    f"{factor}*{term}"
                    for factor, term in zip(factors, terms, strict=True)
                ]
            yield "+".join(terms)


class _LinearForm:
    """``matrix @ values of base + constants``, for a base that is no linear form
    itself.

    `shift` tells what stays the same where one number is added to all values of the
    base: "values", "differences" (of the form's values) or None for neither.
    """

    def __init__(self, node):
        self.base, matrix, constants = linear_form(node)
        self.rows = list(zip(matrix, constants, strict=True))
        sums = matrix.sum(axis=1)
        rounding = 1e-14 * np.abs(matrix).sum()
        same = np.ptp(sums) <= rounding
        self.shift = None
        if same:
            self.shift = "values" if np.abs(sums).max() <= rounding else "differences"


def _log_of(total, limit):
    """Return the logarithm of a sum, kept in [-limit, limit]."""
    bounded = clamped(total, float(np.exp(-limit)), float(np.exp(limit)))
    return f"LN({bounded})"


def _polynomial(x, origin, coefficients):
    """Return a polynomial in x - origin by Horner's rule."""
    first, *others = np.trim_zeros(coefficients, "b")[::-1].tolist() or [0.0]
    if not others:
        return linear([], [], first)
    step = f"({linear([1.0], [x], -origin)})" if origin != 0 else x
    text = linear([first], [step], others[0])
    for coefficient in others[1:]:
        text = linear([1.0], [f"({text})*{step}"], coefficient)
    return text


def _largest(texts):
    """Return for each value but the last the condition that none is larger: to be asked
    one after the other.
    """
    return [
        " AND ".join(f"{text}>={other}" for other in texts if other != text)
        for text in texts[:-1]
    ]


def _same_order(node):
    """Return the node nearest to the scores whose values have the order of a node.

    Equal scores are equal there, and may differ in the last digit after a softmax.
    """
    while True:
        keeps_order = isinstance(node, nodes.Softmax | nodes.Log) or (
            isinstance(node, nodes.Clip)
            and (node.low, node.high) == (PROBABILITY_CLIP, 1 - PROBABILITY_CLIP)
        )
        if isinstance(node, nodes.Scaled):
            has_one_slope = np.ndim(node.slope) == 0 and np.ndim(node.intercept) == 0
            keeps_order = has_one_slope and node.slope > 0
        if not keeps_order:
            return node
        node = node.of


def _share(score, others, confidence):
    """Return the share of the rest that a class gets which is not the predicted one."""
    total = "+".join(others)
    equal = f"(1e0-{confidence})/{number(len(others))}"
    return (
        f"({case([(f'{total}>0e0', f'{score}/({total})*(1e0-{confidence})')], equal)})"
    )


def _is_positive(node):
    """Return whether all values of a node are above 0, whatever the scores are."""
    if isinstance(node, nodes.Columns):
        return all(_is_positive(part) for part in node.parts)
    clips = isinstance(node, nodes.Expit | nodes.Softmax) and node.clip
    return clips or (isinstance(node, nodes.Clip) and node.low > 0)
