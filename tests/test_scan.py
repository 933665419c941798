"""Files as tables: nothing is lost or kept silently."""

import numpy as np
import pytest

from skcalib.binning import EqualMass, EqualWidth

duckdb = pytest.importorskip("duckdb")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("narwhals")
from skcalib.engines import PredictionTable, scan  # noqa: E402


@pytest.fixture
def log(tmp_path):
    """Two Parquet files, one with a NaN score that Arrow's metadata hides."""
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        score = rng.random(200)
        score[7] = np.nan if name == "b" else 0.5
        label = (rng.random(200) < 0.5).astype(float)
        pq.write_table(
            pa.table({"p": score, "y": label, "w": np.ones(200)}),
            tmp_path / f"{name}.parquet",
        )
    return tmp_path


def test_nan_that_parquet_hides_is_found(log):
    table = PredictionTable(scan(log / "*.parquet"), label="y", score="p")
    assert table.invalid_rows() == {"missing": 1, "score": 0, "label": 0, "weight": 0}
    with pytest.raises(ValueError, match=r"invalid rows: 1 \(missing\)"):
        table.bin_statistics(EqualWidth(3))
    kept = PredictionTable(
        scan(log / "*.parquet"), label="y", score="p", on_invalid="drop"
    )
    for binning in (EqualWidth(3), EqualMass(3)):
        assert kept.bin_statistics(binning).count.sum() == 399


@pytest.mark.parametrize("hidden", ["p", "w", "y"])
def test_a_relation_that_hides_nan_is_refused(tmp_path, hidden):
    rng = np.random.default_rng(0)
    columns = {
        "p": rng.random(100),
        "y": (rng.random(100) < 0.5).astype(float),
        "w": np.ones(100),
    }
    columns[hidden][3] = np.nan
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    table = PredictionTable(
        duckdb.sql(f"SELECT * FROM read_parquet('{tmp_path}/log.parquet')"),
        label="y",
        score="p",
        weight="w",
    )
    for call in (
        lambda: table.bin_statistics(EqualWidth(3)),
        lambda: table.bin_statistics(EqualMass(3)),
        table.weighted_scores,
    ):
        with pytest.raises(ValueError, match=r"skcalib\.engines\.scan|invalid rows: 1"):
            call()
    if hidden == "p":  # DuckDB finds the others
        with pytest.raises(ValueError, match=r"skcalib\.engines\.scan"):
            table.invalid_rows()
    else:
        assert sum(table.invalid_rows().values()) == 1


def test_csv_and_other_suffixes(tmp_path):
    (tmp_path / "log.csv").write_text("p,y\n0.25,1\n0.5,0\n,1\n")
    table = PredictionTable(
        scan(tmp_path / "log.csv"), label="y", score="p", on_invalid="drop"
    )
    assert table.bin_statistics(EqualWidth(2)).count.tolist() == [2, 0]
    assert table.invalid_rows()["missing"] == 1


def test_one_score_only_has_exact_sums():
    relation = duckdb.sql("SELECT 0.3::DOUBLE AS p, i % 2 AS y FROM range(300000) t(i)")
    table = PredictionTable(relation, label="y", score="p")
    for binning in (EqualWidth(10), EqualMass(3)):
        statistics = table.bin_statistics(binning)
        assert statistics.weighted_score.sum() == 300000 * 0.3
        assert statistics.weighted_score_label.sum() == 150000 * 0.3


def test_a_relation_of_another_connection():
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE log AS SELECT i / 1000 AS p, i % 2 AS y, i % 3 AS g FROM"
        " range(1000) t(i)"
    )
    by_g = PredictionTable(
        connection.table("log"), label="y", score="p", by="g"
    ).bin_statistics(EqualMass(4))
    assert [statistics.count.sum() for statistics in by_g.values()] == [334, 333, 333]


def test_files_that_are_not_there_or_not_readable(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        scan(tmp_path / "none.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    with pytest.raises(ValueError, match="cannot be read"):
        scan(tmp_path / "bad.parquet")
    with pytest.raises(TypeError, match="path must be a string or a Path, found int"):
        scan(3)


def test_a_quote_in_a_name(tmp_path):
    (tmp_path / "it's.csv").write_text("p,y\n0.5,1\n")
    assert scan(tmp_path / "it's.csv").fetchall() == [(0.5, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("late", ["0.5", "nan", "1e-3", "oops"])
def test_a_csv_column_that_begins_with_whole_numbers_is_not_rounded(tmp_path, late):
    """DuckDB looks at the first 20,480 rows, and would read 0.5 as 1."""
    path = tmp_path / "log.csv"
    path.write_text("p,y\n" + "0,0\n1,1\n" * 15000 + f"{late},1\n")
    table = PredictionTable(scan(path), label="y", score="p")
    for call in (table.bin_statistics, table.invalid_rows):
        with pytest.raises(ValueError, match="cannot be read"):
            call()
    path.write_text("p,y,id\n" + "0,0,9007199254740993\n1,1,-1\n" * 15000 + ",,\n")
    table = PredictionTable(scan(path), label="y", score="p", on_invalid="drop")
    assert table.bin_statistics(2).count.sum() == 30000
    assert scan(path).limit(1).fetchall() == [(0, 0, 9007199254740993)]


def test_a_folder_is_not_read_as_a_file(tmp_path):
    with pytest.raises(ValueError, match="is a folder: name its files with a glob"):
        scan(tmp_path)


def test_files_of_a_glob_keep_the_types_of_their_scores(tmp_path):
    rng = np.random.default_rng(0)
    score = np.round(rng.random(300), 3)
    columns = {
        "1": pa.array([0, 1]),
        "2": pa.array(score),
        "3": pa.array(score.astype(np.float32)),
    }
    for name, values in columns.items():
        pq.write_table(
            pa.table({"p": values, "y": np.ones(len(values), dtype=int)}),
            tmp_path / f"{name}.parquet",
        )
    found = np.sort(scan(tmp_path / "*.parquet").fetchnumpy()["p"])
    np.testing.assert_array_equal(
        found, np.sort(np.concatenate([[0, 1], score, score.astype(np.float32)]))
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_folder_does_not_replace_a_column_and_may_add_one(tmp_path, suffix):
    for folder in ("y=1", "country=FR", "g=01", "g=1"):
        (tmp_path / folder).mkdir()
        columns = pa.table({"p": [0.25, 0.5], "y": [0, 0]})
        if suffix == "csv":
            (tmp_path / folder / "log.csv").write_text("p,y\n.25,0\n.5,0\n")
        else:
            pq.write_table(columns, tmp_path / folder / "log.parquet")
    assert scan(tmp_path / "y=1" / f"log.{suffix}").fetchall() == [(0.25, 0), (0.5, 0)]
    assert scan(tmp_path / "y=*" / f"*.{suffix}").fetchall() == [(0.25, 0), (0.5, 0)]
    assert scan(tmp_path / "country=*" / f"*.{suffix}").fetchall() == [
        (0.25, 0, "FR"),
        (0.5, 0, "FR"),
    ]
    by_folder = PredictionTable(
        scan(tmp_path / "g=*" / f"*.{suffix}"), label="y", score="p", by="g"
    )
    assert list(by_folder.bin_statistics(1)) == ["01", "1"]


@pytest.mark.parametrize("name", ["log[1]", "log*", "what?", "[!a]"])
def test_a_path_that_exists_is_no_pattern(tmp_path, name):
    for path, score in (
        (f"{name}.csv", 0.25),
        ("log1.csv", 0.5),
        ("logs.csv", 0.5),
        ("whatx.csv", 0.5),
    ):
        (tmp_path / path).write_text(f"p,y\n{score},0\n")
    assert scan(tmp_path / f"{name}.csv").fetchall() == [(0.25, 0)]


@pytest.mark.parametrize("header", ["p,p,y", "p,P,y", '"p",y,p'])
def test_two_headers_of_one_name(tmp_path, header):
    path = tmp_path / "log.csv"
    path.write_text(f"{header}\n.25,.5,0\n")
    with pytest.raises(ValueError, match="2 columns called 'p'"):
        scan(path)
    path.write_text("p,p_1,y\n.25,.5,0\n")
    assert scan(path).columns == ["p", "p_1", "y"]


def test_a_segment_01_is_not_1(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("p,y,g\n" + ".25,0,1\n.5,1,01\n" * 3)
    assert list(
        PredictionTable(scan(path), label="y", score="p", by="g").bin_statistics(1)
    ) == ["01", "1"]
    # Behind the rows from which DuckDB guesses types.
    path.write_text("p,y,g\n" + ".25,0,1\n" * 30_000 + ".5,1,01\n")
    with pytest.raises(
        ValueError, match="begins with whole numbers, but later there is 01"
    ):
        PredictionTable(scan(path), label="y", score="p", by="g").bin_statistics(1)
    path.write_text("p,y,g\n" + "0,0,0\n" * 30_000 + "0.0,1,0\n")
    assert (
        PredictionTable(scan(path), label="y", score="p", by="g")
        .bin_statistics(1)[0]
        .count.sum()
        == 30_001
    )


def test_csv_files_whose_columns_stand_in_another_order(tmp_path):
    (tmp_path / "a.csv").write_text('g,y,p\n"01",1,0\n"1",0,1\n')
    (tmp_path / "b.csv").write_text('p,g,y\n0.25,"it\'s",1\n0.5,"01",0\n')
    (tmp_path / "c.csv").write_text('y,p,g\n1,1e-310,"01"\n')
    table = PredictionTable(scan(tmp_path / "*.csv"), label="y", score="p", by="g")
    found = table.bin_statistics(EqualWidth(2))
    assert {name: one.count.tolist() for name, one in found.items()} == {
        "01": [3, 0],
        "1": [0, 1],
        "it's": [1, 0],
    }
    assert found["01"].weighted_score.sum() == 0.5
    assert found["01"].weighted_label.sum() == 2
