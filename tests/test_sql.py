"""SQL in DuckDB: NULL, types, groups, tables of pieces and what `test_formats` does not
compare for every recalibrator.
"""

import re
import warnings

import numpy as np
import pytest
from _catalog import refused
from scipy.special import softmax
from sklearn.base import clone

import skcalib
from skcalib.binning import EqualWidth
from skcalib.export import to_sql, to_sql_table

duckdb = pytest.importorskip("duckdb", reason="needs duckdb")
pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
EXTREME = np.array(
    [
        0,
        5e-324,
        1e-300,
        2.0**-53,
        1e-15,
        0.1,
        0.25,
        0.5,
        np.nextafter(0.5, 1),
        0.75,
        1 - 2.0**-53,
        1,
    ]
)
NOT_SCORES = [None, np.nan, -1e-300, -0.5, np.nextafter(1, 2), 2.0, np.inf, -np.inf]


def run(expressions, columns):
    """Return what DuckDB makes of expressions of columns (a dict): float64 (n, number
    of expressions), NaN for NULL.
    """
    given = {name: pyarrow.array(list(values)) for name, (_, values) in columns.items()}
    n_rows = len(next(iter(given.values())))
    connection = duckdb.connect()
    connection.register("given", pyarrow.table({"row": range(n_rows), **given}))
    casts = ", ".join(
        f'CAST("{name}" AS {kind}) AS "{name}"' for name, (kind, _) in columns.items()
    )
    connection.execute(f'CREATE TABLE t AS SELECT "row", {casts} FROM given')
    listed = ", ".join(f"{text} AS c{i}" for i, text in enumerate(expressions))
    relation = connection.sql(f'SELECT {listed} FROM t ORDER BY "row"')
    assert set(map(str, relation.types)) == {"DOUBLE"}
    return np.array(
        [
            [np.nan if value is None else value for value in row]
            for row in relation.fetchall()
        ]
    )


def run_scores(expressions, scores, names="p"):
    """Return what DuckDB makes of rows of scores (n,) or (n, K) in columns of these
    names.
    """
    columns = np.array(scores, dtype=object).reshape(len(scores), -1).T
    return run(
        expressions,
        {
            name: ("DOUBLE", list(column))
            for name, column in zip(names, columns, strict=True)
        },
    )


def _two_class_rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    scores = np.concatenate(
        (rng.beta(0.5, 0.8, n), np.round(rng.random(60), 1), [0, 0, 1, 1])
    )
    return scores, rng.random(len(scores)) < scores**1.5


def _many_class_rows(n=300, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes)) * 2
    y = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits, y


def _scores_at(fitted):
    """Return scores at, just below and just above the places where a map may break, and
    some others.
    """
    named = ("bin_edges_", "score_knots_")
    breaks = np.concatenate(
        [np.ravel(getattr(fitted, name)) for name in named if hasattr(fitted, name)]
        + [EXTREME]
    )
    breaks = breaks[np.isfinite(breaks)]
    around = np.concatenate((breaks, np.nextafter(breaks, -1), np.nextafter(breaks, 2)))
    return np.concatenate(
        (np.unique(np.clip(around, 0, 1)), np.random.default_rng(1).random(50))
    )


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize(
    "recalibrator",
    [skcalib.PlattScaling(), skcalib.IsotonicCalibration(), skcalib.HistogramBinning()],
    ids=str,
)
def test_what_is_no_score_is_null(recalibrator):
    scores, y = _two_class_rows()
    fitted = clone(recalibrator).fit(scores, y)
    found = run_scores([to_sql(fitted, dialect="duckdb")], [0.5, *NOT_SCORES])
    assert np.isfinite(found[0, 0])
    assert np.isnan(found[1:]).all()
    fitted = clone(recalibrator).set_params(input="logit").fit(8 * scores - 4, y)
    wrong = [None, np.nan, np.inf, -np.inf, 1e101]
    found = run_scores([to_sql(fitted, dialect="duckdb")], [1e100, *wrong])
    assert np.isfinite(found[0, 0])
    assert np.isnan(found[1:]).all()


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "recalibrator",
    [
        skcalib.PlattScaling(),
        skcalib.MatrixScaling(),
        skcalib.TemperatureScaling(),
        skcalib.HistogramBinning(3),
    ],
    ids=str,
)
def test_logits_that_are_far_apart(recalibrator, n_classes):
    logits, y = _many_class_rows(n_classes=n_classes)
    fitted = clone(recalibrator).set_params(input="logit").fit(logits, y)
    names = [f"p{k}" for k in range(n_classes)]
    new = np.concatenate((100 * np.eye(n_classes), np.zeros((1, n_classes))))
    found = run_scores(to_sql(fitted, score=names, dialect="duckdb"), new, names)
    close(found, fitted.predict_proba(new))


@pytest.mark.parametrize("wrong", [[None, 0.5, 0.5], [0.5, 0.5, 0.6], [1.5, -0.5, 0]])
def test_no_probabilities_of_classes_are_null(wrong):
    logits, y = _many_class_rows(n_classes=3)
    fitted = skcalib.PlattScaling().fit(softmax(logits, axis=1), y)
    texts = to_sql(fitted, score=["a", "b", "c"], dialect="duckdb")
    assert np.isnan(run_scores(texts, [wrong], "abc")).all()


@pytest.mark.parametrize(
    "recalibrator", [skcalib.PlattScaling(), skcalib.IsotonicCalibration()], ids=str
)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_expressions_stand_inside_others(recalibrator, n_classes):
    logits, y = _many_class_rows(n_classes=n_classes)
    scores = softmax(logits, axis=1)
    fitted = clone(recalibrator).fit(scores, y)
    names = [f"p{k}" for k in range(n_classes)]
    texts = [
        f"1-2*{text}*0.5" for text in to_sql(fitted, score=names, dialect="duckdb")
    ]
    close(run_scores(texts, scores, names), 1 - fitted.predict_proba(scores))
    if n_classes == 2:
        found = run_scores([f"1-{to_sql(fitted, dialect='duckdb')}"], scores[:, 1])
        close(found[:, 0], fitted.predict_proba(scores)[:, 0])


def test_short_where_the_method_is():
    fitted = skcalib.PlattScaling().fit(*_two_class_rows())
    for dialect in ("ansi", "duckdb", "spark", "postgres"):
        assert (
            len(to_sql(fitted, score="score_of_the_second_model", dialect=dialect))
            < 1000
        )


def test_no_overflow_where_the_slope_is_steep():
    scores, y = np.array([0.1, 0.2, 0.3, 0.4]), [0, 0, 1, 1]
    fitted = skcalib.PlattScaling(smooth_targets=False).fit(scores, y)
    assert fitted.slope_ > 100
    close(
        run_scores([to_sql(fitted, dialect="duckdb")], EXTREME)[:, 0],
        fitted.predict_proba(EXTREME)[:, 1],
    )


def test_other_types_of_the_column_and_names_in_quotes():
    scores, y = _two_class_rows()
    fitted = skcalib.PlattScaling().fit(scores, y)
    single = np.float32([0.1, 0.7])
    text = to_sql(fitted, score='odd "name"; --', dialect="duckdb")
    found = run(
        [text.replace('"odd ""name""; --"', '"p"')], {"p": ("FLOAT", single.tolist())}
    )
    close(found[:, 0], fitted.predict_proba(single.astype(np.float64))[:, 1])
    assert text.count('"odd ""name""; --"') == text.count("CAST")
    assert '`odd "name"; --`' in to_sql(fitted, score='odd "name"; --', dialect="spark")
    decimal = run(
        [to_sql(fitted, dialect="duckdb")], {"p": ("DECIMAL(9, 3)", [0.125, 1])}
    )
    close(decimal[:, 0], fitted.predict_proba([0.125, 1])[:, 1])


def test_groups_by_a_column():
    pandas = pytest.importorskip("pandas")
    scores, y = _two_class_rows()
    names = np.array(["o'clock", "b\\n", "c", "small"])[
        np.minimum(np.arange(len(scores)) % 4, np.arange(len(scores)) % 90)
    ]
    table = pandas.DataFrame({"site": names, "p": scores})
    fitted = skcalib.GroupwiseRecalibrator(
        skcalib.BetaCalibration(), groups="site", shrinkage=10, min_group_size=80
    ).fit(table, y)
    new = pandas.DataFrame(
        {
            "site": np.repeat([*fitted.groups_, "unknown"], len(EXTREME)),
            "p": np.tile(EXTREME, 5),
        }
    )
    with pytest.warns(UserWarning, match="unknown"):
        expected = fitted.predict_proba(new)[:, 1]
    columns = {
        "p": ("DOUBLE", [*new["p"], 0.5]),
        "site": ("VARCHAR", [*new["site"], None]),
    }
    found = run([to_sql(fitted, dialect="duckdb")], columns)[:, 0]
    close(found[:-1], expected)
    assert np.isnan(found[-1])
    assert r"'o\'clock'" in to_sql(fitted, dialect="spark")


def test_groups_of_numbers_and_booleans():
    pandas = pytest.importorskip("pandas")
    scores, y = _two_class_rows()
    for values, kind in (
        ([3, 10, -2], "INTEGER"),
        ([True, False], "BOOLEAN"),
        ([0.5, 1e-9], "DOUBLE"),
    ):
        group = np.array(values)[np.arange(len(scores)) % len(values)]
        table = pandas.DataFrame({"p": scores, "g": group})
        fitted = skcalib.GroupwiseRecalibrator(groups="g").fit(table, y)
        found = run(
            [to_sql(fitted, dialect="duckdb")],
            {"p": ("DOUBLE", scores), "g": (kind, group.tolist())},
        )
        close(found[:, 0], fitted.predict_proba(table)[:, 1])


def test_groups_without_a_column_are_refused():
    scores, y = _two_class_rows()
    fitted = skcalib.GroupwiseRecalibrator().fit(
        scores, y, groups=np.arange(len(y)) % 2
    )
    with refused(ValueError, "GroupwiseRecalibrator", "column"):
        to_sql(fitted)


def test_wrong_arguments():
    fitted = skcalib.PlattScaling().fit(*_two_class_rows())
    with refused(ValueError, "dialect", "'access'", "'ansi'", "'mysql'"):
        to_sql(fitted, dialect="access")
    with refused(ValueError, "score", "3"):
        to_sql(fitted, score=3)
    with refused(ValueError, "score", "list of two", "['a', 'b', 'c']"):
        to_sql(fitted, score=["a", "b", "c"])
    scores, y = _many_class_rows(n_classes=3)
    many = skcalib.PlattScaling(input="logit").fit(scores, y)
    with refused(ValueError, "score", "3 columns", "'p'"):
        to_sql(many)


def test_texts_that_engines_would_refuse():
    scores = (np.arange(20_000) + 0.5) / 20_000
    fitted = skcalib.HistogramBinning(binning=20_000).fit(scores, np.arange(20_000) % 2)
    with refused(ValueError, "HistogramBinning", "characters", "to_sql_table"):
        to_sql(fitted)


def test_long_texts_of_three_classes_name_what_holds_them(monkeypatch):
    monkeypatch.setattr("skcalib.export._sql._LONGEST", 100)
    scores, y = _many_class_rows(n_classes=3)
    fitted = skcalib.PlattScaling(input="logit").fit(scores, y)
    with refused(ValueError, "characters", "to_onnx or to_javascript"):
        to_sql(fitted, score=["a", "b", "c"])


@pytest.mark.parametrize(
    "recalibrator",
    [
        skcalib.IsotonicCalibration(),
        skcalib.HistogramBinning(40),
        skcalib.UniformMassBinning(7),
        skcalib.VennAbers(),
        skcalib.VennAbers(max_n_knots=9),
        skcalib.HistogramBinning(1),
    ],
    ids=str,
)
@pytest.mark.parametrize("input", ["probability", "logit"])
def test_tables_of_pieces(recalibrator, input):
    scores, y = _two_class_rows()
    new = [*_scores_at(clone(recalibrator).fit(scores, y)), None, np.nan, np.inf]
    if input == "logit":
        scores, new = 8 * scores - 4, [*new, -1e100, 900.0, *(8 * scores - 4)]
    fitted = clone(recalibrator).set_params(input=input).fit(scores, y)
    is_score = [one is not None and np.isfinite(one) for one in new]
    table = to_sql_table(fitted, table='pieces"', score="s", dialect="duckdb")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (n INTEGER, s DOUBLE)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(new)))
    connection.execute(table.create)
    found = connection.execute(
        f"SELECT {table.expression} FROM t {table.join} ORDER BY n"
    ).fetchall()
    found = np.array([np.nan if value is None else value for (value,) in found])
    valid = np.array(is_score)
    close(found[valid], fitted.predict_proba(np.array(new, dtype=float)[valid])[:, 1])
    assert len(found) == len(new)
    assert np.isnan(found[~valid]).all()


def test_no_step_lies_between_forecasts_that_differ_by_rounding():
    """Engines round EXP and LN in other ways than NumPy: a step there would give such
    scores another bin.
    """
    scores = np.round(np.random.default_rng(0).random(300), 1)
    scores = np.concatenate((scores, np.nextafter(scores, -1), np.nextafter(scores, 2)))
    scores = np.clip(scores, 0, 1)
    y = np.random.default_rng(1).random(len(scores)) < scores**2
    for n_bins in range(2, 12):
        fitted = skcalib.ScalingBinning(binning=n_bins).fit(scores, y)
        close(
            run_scores([to_sql(fitted, dialect="duckdb")], scores)[:, 0],
            fitted.predict_proba(scores)[:, 1],
        )


def test_equal_width_bins_of_log_odds():
    """The steps are log-odds, so that no engine computes a probability: also as a
    table.
    """
    scores, y = _two_class_rows()
    z = np.round(8 * scores - 4, 1)
    fitted = skcalib.HistogramBinning(EqualWidth(6), input="logit").fit(z, y)
    steps = np.log(np.arange(1, 6) / np.arange(5, 0, -1))
    new = np.concatenate(
        [
            z,
            [-800, 800.0],
            *(steps + shift * np.spacing(steps) for shift in range(-4, 5)),
        ]
    )
    expected = fitted.predict_proba(new)[:, 1]
    table = to_sql_table(fitted, table="pieces", dialect="duckdb")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (n INTEGER, p DOUBLE)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(new.tolist())))
    connection.execute(table.create)
    found = connection.execute(
        f"SELECT {table.expression} FROM t {table.join} ORDER BY n"
    ).fetchall()
    close(np.ravel(found), expected)
    assert "EXP" not in to_sql(fitted)
    close(run_scores([to_sql(fitted, dialect="duckdb")], new)[:, 0], expected)


def test_tables_of_what_has_no_pieces():
    fitted = skcalib.PlattScaling().fit(*_two_class_rows())
    with refused(ValueError, "PlattScaling", "to_sql"):
        to_sql_table(fitted)
    with refused(ValueError, "table"):
        to_sql_table(fitted, table="")


@pytest.mark.parametrize(("dialect", "most"), [("duckdb", 32), ("postgres", 8)])
def test_a_search_tree_ends_in_lists_of_the_length_that_suits_the_database(
    dialect, most
):
    rng = np.random.default_rng(0)
    scores = rng.random(2000)
    fitted = skcalib.VennAbers().fit(scores, rng.random(2000) < scores)
    text = to_sql(fitted, dialect=dialect)
    lists = re.findall(r"CASE (?:(?!CASE|END).)*? END", text)
    n_pieces = [part.count(" THEN ") + part.count(" ELSE ") for part in lists]
    # Halving the pieces leaves lists of at least half that length.
    assert most / 2 <= max(n_pieces) <= most


def test_many_pieces_propose_a_table():
    rng = np.random.default_rng(0)
    scores = rng.random(20_000)
    labels = rng.random(20_000) < scores
    many = skcalib.VennAbers().fit(scores, labels)
    assert len(many.score_knots_) > 800
    with pytest.warns(UserWarning, match="to_sql_table writes them as a table"):
        to_sql(many)
    few = skcalib.IsotonicCalibration().fit(scores, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to_sql(few)
        # No table holds the maps of segments, nor those of two columns.
        to_sql({"a": many, "b": few}, group="site")
        to_sql(many, score=["p", "q"])
