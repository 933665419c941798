"""Calibration maps as SQL: one expression a class, from CASE, LEAST, GREATEST, EXP, LN,
ABS and arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skcalib._fitting.provenance import provenance_text
from skcalib._input.limits import MAX_MAGNITUDE
from skcalib._input.warn import warn
from skcalib._rows.links import LARGEST_GAP
from skcalib.export._segments import one_number_of_classes, segment_items
from skcalib.export._sql_text import (
    case,
    dialect_named,
    number,
)
from skcalib.export._sql_warehouses import WAREHOUSES, transpiled
from skcalib.export._sql_writer import (
    SqlWriter,
    feature_columns,
    group_column,
    largest_conditions,
)
from skcalib.export._writers import split_decision
from skcalib.maps import calibration_map

_LONGEST = 1_000_000  # characters: engines refuse or choke on more
# characters: beyond, impossible classes are left to NULL
_LONGEST_WITH_IMPOSSIBLE = 500_000
_ROUNDING = 1e-6  # of a row's sum
# With 250 pieces the join of a table takes a quarter of the time of an expression, with
# 450 a tenth, and with 1,400 a nineteenth (a million rows in DuckDB). PostgreSQL takes
# as long for both.
_MANY_PIECES = 400


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
        A fitted recalibrator that has a map: any recalibrator in this package except a
        `MulticalibratedRecalibrator` with rounds, and a `GroupwiseRecalibrator` whose
        `groups` is neither the name of a column nor ``"predicted_class"``. It can also
        be a `CertifiedThresholdClassifier` that wraps such a recalibrator in a
        `FrozenEstimator`.
    score : str or list of str, default="p"
        For two classes, the column of the positive class's probability (its log-odds
        with ``input="logit"``). A list names one column per class, in the order of
        `classes_`.
    dialect : {"ansi", "duckdb", "spark", "postgres", "snowflake", "bigquery", \
            "redshift", "databricks", "tsql", "oracle", "mysql", "sqlite"}, \
            default="ansi"
        The SQL dialect. All but the first four require sqlglot (the extra
        ``sql``), which translates the PostgreSQL text. The tests of this package
        run the SQL for DuckDB, Spark, PostgreSQL, SQLite and MySQL (in MariaDB); for
        the other dialects, the SQL is parsed and then run in DuckDB.
    ids : str, default=None
        For a `UniformMassBinning` with ``randomize=True``, including one inside a
        `GroupwiseRecalibrator`, the column of the row ids, which are strings or
        integers. The result is that of ``predict_proba(scores, ids=...)``. Only DuckDB,
        Spark and PostgreSQL are supported.
    group : str, default=None
        For a dict that maps groups to recalibrators, as returned by
        `PredictionTable(by=...).fit`, the column of the groups. Groups that are not
        in the dict give NULL.

    Returns
    -------
    expression : str or list of str
        The probability of the positive class; for a list of columns, a list with the
        probability of each class. For a `CertifiedThresholdClassifier`, one expression
        for the label that `predict` returns. A comment at the end of the (first)
        expression gives the number of samples, the parameters, the versions and the
        hash of the fit.

    Raises
    ------
    ValueError
        If the recalibrator cannot be written in SQL or in this dialect, if `score` does
        not match its classes, or if an expression has more than a million characters;
        in the last case, use `to_sql_table`.
    ImportError
        If the dialect requires sqlglot, which is not installed.

    Warns
    -----
    UserWarning
        If the map of one score has more than 400 pieces: the table of `to_sql_table`
        is faster.

    See Also
    --------
    to_sql_table : Writes a table of pieces to be joined, which is faster for isotonic
        maps with many knots.

    Notes
    -----
    Names are quoted, and columns are cast to double precision. Invalid inputs give
    NULL. An input is invalid if it is NULL, NaN, a probability outside [0, 1], a logit
    above 1e100 in absolute value, a row of probabilities whose sum differs from 1 by
    more than 1e-6, a missing group or id, or a feature that is no finite number. The
    columns of features have the names of the parameter `features`. Rows of probabilities are not normalised
    again. No score makes EXP overflow or LN fail. In a row of several logits, one that
    is -inf, or more than 700 below the largest, marks an impossible class, with
    probability 0. If the SQL for this case would exceed 500,000 characters, such rows
    give NULL. For logits with ``clip=None``, this limit is exceeded with 9 or more
    classes for matrix scaling, 11 for Dirichlet and beta calibration, 15 for vector
    scaling and 18 for Platt scaling; for temperature scaling, it is never exceeded with
    up to 25 classes. With ``clip=0.01``, it is exceeded with 3 or more classes (6 for
    matrix scaling, 8 for vector scaling). For steps and splines, the smallest number of
    classes that exceeds it is between 3 and 9, depending on the method but not on
    `clip`.

    One-vs-rest methods on log-odds compare a class with the sum of the others. For
    probabilities of more than about fifteen classes, the text of this sum would be too
    long, and 1 - p replaces it. The result is the same unless a probability is so close
    to 1, within about 1e-9, that 1 - p is mostly rounding error.

    The dialect "tsql" is intended for SQL Server 2022 and Azure, which support LEAST
    and GREATEST. Both systems accept at most ten nested levels of CASE, so maps with
    many pieces are rejected. Oracle computes in BINARY_DOUBLE, and its groups cannot be
    booleans. SQLite must be built with its mathematical functions, as it is in Python's
    `sqlite3`. SQLite treats text in the column of scores as 0, whereas other engines
    fail.

    In a decision, a probability that is below the threshold by at most 1e-12 is treated
    as equal to it, because engines round in different ways.

    Examples
    --------
    Histogram binning of 400 churn scores in two bins, for the column "churn_score":

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
        if ids is not None:
            raise ValueError(
                f"ids={ids!r} needs the md5 hash of a string as a number, which is"
                f" available for 'duckdb', 'spark' and 'postgres', not for {dialect!r}."
            )
        options = {"score": score, "dialect": "postgres", "group": group}
        written = to_sql(recalibrator, **options)
        if isinstance(written, list):
            return [transpiled(text, dialect) for text in written]
        return transpiled(written, dialect)
    if isinstance(recalibrator, Mapping):
        options = {"score": score, "dialect": dialect, "ids": ids}
        return _by_segment(recalibrator, group, **options)
    written = _of_one(recalibrator, score, dialect, ids)
    _propose_a_table(recalibrator, score)
    return written


def _of_one(recalibrator, score, dialect, ids):
    """Return the expression for one recalibrator, or a list of one per class if `score`
    is a list, in a dialect that needs no translation. `ids` is the name of the column
    of ids, or None.
    """
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
        instead = "For one score and two classes, use to_sql_table."
        if len(written) > 1:
            instead = (
                "Use to_onnx or to_javascript, or a recalibrator with fewer pieces,"
                " such as TemperatureScaling."
            )
        raise ValueError(
            f"{type(recalibrator).__name__} needs an expression of {longest:,}"
            f" characters, but engines reject more than {_LONGEST:,}. {instead}"
        )
    written[0] += provenance_comment(recalibrator)
    if isinstance(score, list | tuple) and decision is None:
        return written
    return written[0]


def _propose_a_table(recalibrator, score):
    """Warn if a table of pieces is much faster than the expression of a map."""
    recalibrator, _ = split_decision(recalibrator)
    if not isinstance(score, str) or not hasattr(recalibrator, "classes_"):
        return
    if len(recalibrator.classes_) > 2:
        return
    as_map = calibration_map(recalibrator)
    n_pieces = len(getattr(as_map.output, "origins", ()))
    if n_pieces > _MANY_PIECES and as_map.output.of is as_map.scores:
        warn(
            f"{type(recalibrator).__name__} has {n_pieces:,} pieces, and an expression"
            " tests all of them for each block of rows. to_sql_table writes them as a"
            " table instead, and joining that table takes DuckDB a tenth of the time."
        )


def _by_segment(maps, group, *, score, dialect, ids):
    """Return the expression for a dict of recalibrators by segment, or a list of one
    per class if `score` is a list: a CASE of the column `group`. `dialect` is the name
    of the dialect, and `ids` that of the column of ids, or None.
    """
    if not isinstance(group, str) or not group:
        raise ValueError(
            "group must be the name of the column that has the keys of the dict, found"
            f" {group!r}."
        )
    named = dialect_named(dialect)
    column = named.identifier(group)
    pairs = segment_items(maps)
    one_number_of_classes(pairs)
    # for each segment a list with (condition, expression) for each class
    branches_of_segments = []
    for segment, recalibrator in pairs:
        condition = f"{column} IS NULL"
        if segment is not None:
            condition = f"{column}={named.label(segment)}"
        texts = _of_one(recalibrator, score, dialect, ids)  # one, or one per class
        if not isinstance(texts, list):
            texts = [texts]
        branches_of_segments.append([(condition, f"({text})") for text in texts])
    expressions = []
    for branches_of_class in zip(*branches_of_segments, strict=True):
        expressions.append(case(branches_of_class))
    longest = max(map(len, expressions))
    if longest > _LONGEST:
        raise ValueError(
            f"The {len(pairs)} maps need an expression of {longest:,} characters, but"
            f" engines reject more than {_LONGEST:,}: write fewer groups at once."
        )
    if isinstance(score, list | tuple):
        return expressions
    return expressions[0]


def _decided(decision, texts, dialect):
    """Return the expression of the label that a `Decision` gives to a row, NULL where
    the probabilities are. `texts` are those of all classes, or of the positive one
    alone.
    """
    labels = [dialect.label(label) for label in decision.labels]
    reaches_threshold = f">={number(decision.threshold)}"
    positive = texts[-1]
    # The label of rows below the threshold, the last branch of the CASE.
    otherwise = (f"{positive} IS NOT NULL", labels[decision.otherwise])
    if decision.is_event:
        return case([(positive + reaches_threshold, labels[1]), otherwise])
    if len(texts) <= 2:
        # of two classes the second is the more probable one above 1/2
        second = f"{positive}>0.5e0 AND {positive}{reaches_threshold}"
        first = f"{positive}<=0.5e0 AND 1e0-{positive}{reaches_threshold}"
        return case([(second, labels[1]), (first, labels[0]), otherwise])
    is_accepted = f"GREATEST({','.join(texts)}){reaches_threshold}"
    # A CASE tests the conditions in order. There is none for the last class, which is
    # the largest where no other is: 1=1 is always true.
    is_largest = [*largest_conditions(texts), "1=1"]
    *class_labels, _ = labels  # without the label for abstaining
    branches = []
    for condition, label in zip(is_largest, class_labels, strict=True):
        branches.append((f"{is_accepted} AND {condition}", label))
    return case([*branches, otherwise])


def provenance_comment(recalibrator):
    """Return the provenance of a recalibrator as an SQL comment, or "" if none."""
    text = provenance_text(recalibrator)
    if not text:
        return ""
    return f" /* {text} */"


def check_score_names(score):
    """Return the names of the columns of scores as a list."""
    columns = [score]
    if isinstance(score, list | tuple):
        columns = list(score)
    if not columns or not all(isinstance(name, str) and name for name in columns):
        raise ValueError(
            f"score must be the name of a column or a list of names, found {score!r}."
        )
    return columns


def guarded_texts(as_map, columns, dialect, ids=None):
    """Return the expressions of the probabilities of a map, each NULL where the row is
    not valid: a list with one per class, or for one column with that of the positive
    class.

    Parameters
    ----------
    as_map : CalibrationMap
        The map.
    columns : list of str
        Names of the columns of scores.
    dialect : Dialect
        The dialect.
    ids : str, default=None
        Name of the column of ids.
    """
    scores = [dialect.as_double(dialect.identifier(name)) for name in columns]
    if ids is not None:
        ids = dialect.identifier(ids)
    conditions = _validity_conditions(as_map, scores, dialect)
    texts = SqlWriter(scores, dialect, ids).write(as_map.output)
    is_long = max(map(len, texts)) > _LONGEST_WITH_IMPOSSIBLE
    if is_long and as_map._leaves_impossible_out:
        # `as_map.unmasked` is the same map without a treatment of impossible classes,
        # and shorter. Rows with such a class, whose logits spread far, give NULL.
        texts = SqlWriter(scores, dialect, ids).write(as_map.unmasked)
        listed = ",".join(scores)
        spread = f"GREATEST({listed})-LEAST({listed})"
        conditions.append(f"{spread}<={number(LARGEST_GAP)}")
    if len(as_map.classes) == 2 and len(columns) == 2:
        texts = [f"(1e0-{texts[0]})", texts[0]]
    if ids is not None:
        conditions.append(f"{ids} IS NOT NULL")
    guard = " AND ".join(conditions)
    return [guarded(guard, text, dialect) for text in texts]


def guarded(guard, text, dialect):
    """Return an expression with the value of `text` where the condition `guard` holds,
    and NULL elsewhere.
    """
    if dialect.shares_terms:
        # The database computes a term that occurs several times once, but not inside a
        # CASE. Therefore the CASE is 0 or NULL, and is added to the text. No score
        # makes the text fail, so that it need not be guarded itself.
        return f"({case([(guard, '0e0')])}+{text})"
    return case([(guard, text)])


def _n_columns(recalibrator, columns, score):
    """Return the number of score columns; raise a ValueError unless the recalibrator
    takes as many.
    """
    n_columns = len(columns)
    if not hasattr(recalibrator, "classes_"):
        return n_columns  # not fitted: an error says so later
    n_classes = len(recalibrator.classes_)
    if n_columns == n_classes or (n_classes == 2 and n_columns == 1):
        return n_columns
    if n_classes == 2:
        wanted = "one column, or a list of two"
    else:
        wanted = f"a list of {n_classes} columns, one for each class"
    raise ValueError(f"score must name {wanted}, found {score!r}.")


def valid_score(given, input):
    """Return the two conditions, at least the lowest and at most the highest score,
    that the score with the text `given` meets if it is valid; NULL and NaN do not.
    """
    low = 0.0
    high = 1.0
    if input == "logit":
        low = -MAX_MAGNITUDE
        high = MAX_MAGNITUDE
    return [f"{given}>={number(low)}", f"{given}<={number(high)}"]


def _validity_conditions(as_map, given, dialect):
    """Return a list of conditions that all hold if a row is valid; `given` are the
    texts of its scores.
    """
    conditions = []
    has_impossible = as_map._leaves_impossible_out
    for text in given:
        at_least, at_most = valid_score(text, as_map.input)
        if has_impossible:
            # Less than the least number is -inf alone: an impossible class.
            at_least = f"({at_least} OR {text}<{number(-np.finfo(np.float64).max)})"
        conditions += [at_least, at_most]
    if has_impossible:
        # one class at least must be possible
        conditions.append(f"GREATEST({','.join(given)})>={number(-MAX_MAGNITUDE)}")
    if as_map.input == "probability" and len(given) > 1:
        conditions.append(f"ABS({'+'.join(given)}-1e0)<={number(_ROUNDING)}")
    if as_map.group_key is not None:
        conditions.append(f"{group_column(as_map.group_key, dialect)} IS NOT NULL")
    if as_map.features is not None:
        for text in feature_columns(as_map.features, dialect):
            conditions += valid_score(text, "logit")  # any finite number
    return conditions
