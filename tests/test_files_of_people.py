"""Files as people have them, all with one known truth: each is read as the truth, or
refused with its cause and its cure; never a silently different number.
"""

import bz2
import gzip
import json
import lzma
import sqlite3
import tarfile
import zipfile
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest

from skcalib._report._error import ReportError
from skcalib._report._table import Reading, read_new_scores, read_table

_REASON = "the report needs pandas and pyarrow (extra report)"
pd = pytest.importorskip("pandas", reason=_REASON)
pa = pytest.importorskip("pyarrow", reason=_REASON)

N = 60
_RNG = np.random.default_rng(0)
SCORE = _RNG.beta(2, 3, N).round(4)
Y = (_RNG.random(N) < SCORE).astype(int)
FRAME = pd.DataFrame({"id": np.arange(N), "y": Y, "p": SCORE})
PLAIN = FRAME.to_csv(index=False)
ODDS_AGAINST = (1 / SCORE).round(6)


def _some(values, other, rows=5):
    """Return values of which the first rows are another one."""
    return [other] * rows + list(values[rows:])


def _csv(**options):
    """Return a writer of the table as CSV; `options` are those of pandas, or columns
    in place of those of the table.
    """
    columns = {key: options.pop(key) for key in list(options) if key in ("y", "p", "q")}

    def write(path):
        FRAME.assign(**columns).to_csv(path, index=False, **options)

    return write


def _text(text, encoding="utf-8"):
    return lambda path: path.write_bytes(text.encode(encoding))


def _bytes(content):
    return lambda path: path.write_bytes(content)


def _zip(**members):
    def write(path):
        with zipfile.ZipFile(path, "w") as archive:
            for name, text in members.items():
                archive.writestr(f"{name}.csv", text)

    return write


def _zst(path):
    with pa.output_stream(str(path), compression="zstd") as file:
        file.write(PLAIN.encode())


def _tar(path):
    with tarfile.open(path, "w:gz") as archive:
        archive.add(__file__, arcname="a.csv")


def _sqlite(path):
    with sqlite3.connect(path) as connection:
        FRAME.to_sql("scores", connection, index=False)
    connection.close()


def _arrow_stream(path):
    table = pa.Table.from_pandas(FRAME)
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)


def _nested(path):
    records = [
        {"meta": {"id": k}, "doc": {"y": int(y), "p": p}}
        for k, (y, p) in enumerate(zip(Y, SCORE.tolist(), strict=True))
    ]
    path.write_text("\n".join(map(json.dumps, records)))


def _lists(as_text, reverse=False):
    pairs = [[round(1 - p, 4), p] for p in SCORE.tolist()]

    def write(path):
        cells = [str(pair) for pair in pairs] if as_text else pairs
        frame = FRAME.assign(p=cells)
        frame.to_csv(path, index=False) if as_text else frame.to_parquet(path)

    return write


def _spark(path):
    vectors = [
        {"type": 1, "size": None, "indices": None, "values": [1 - p, p]}
        for p in SCORE.tolist()
    ]
    pa.parquet.write_table(pa.table({"y": Y, "p": pa.array(vectors)}), str(path))


def _logit(p):
    return np.log(p / (1 - p))


READ = "read"
# By name: file, how it is written, what is to come out, and options. What comes out is
# "read" (as the truth), or a part of the error.
FILES = {
    "plain": ("a.csv", _text(PLAIN), READ),
    "upper-case suffix": ("A.CSV", _text(PLAIN), READ),
    "no suffix": ("scores", _text(PLAIN), READ),
    "semicolons": ("a.csv", _csv(sep=";"), READ),
    "semicolons and decimal commas": ("a.csv", _csv(sep=";", decimal=","), READ),
    "tabs": ("a.tsv", _csv(sep="\t"), READ),
    "tabs and decimal commas": ("a.tsv", _csv(sep="\t", decimal=","), READ),
    "bars": ("a.csv", _csv(sep="|"), READ),
    "blanks": ("a.txt", _csv(sep=" "), READ),
    "columns of equal width": ("a.txt", _text(FRAME.to_string(index=False)), READ),
    "decimal commas in quotes": (
        "a.csv",
        _csv(p=[f"{p:.4f}".replace(".", ",") for p in SCORE]),
        READ,
    ),
    "percent signs": ("a.csv", _csv(p=[f"{100 * p:.2f}%" for p in SCORE]), READ),
    "percent signs after a blank and a comma": (
        "a.csv",
        _csv(p=[f"{100 * p:.2f} %".replace(".", ",") for p in SCORE], sep=";"),
        READ,
    ),
    "some percent signs": (
        "a.csv",
        _csv(p=_some([f"{100 * p:.2f}%" for p in SCORE], "0.5")),
        "with and without a percent sign",
    ),
    "0 to 100": (
        "a.csv",
        _csv(p=(100 * SCORE).round(2)),
        "--scores percent, logit, odds",
    ),
    "0 to 100, named": (
        "a.csv",
        _csv(p=(100 * SCORE).round(2)),
        READ,
        {"scale": "percent"},
    ),
    "one score of 1.2": (
        "a.csv",
        _csv(p=_some(SCORE, 1.2, 1)),
        r"row 0 is 1\.2 .*1 of 60 are outside",
    ),
    "logits": ("a.csv", _csv(p=_logit(SCORE)), READ, {"scale": "logit"}),
    "logits, not named": ("a.csv", _csv(p=_logit(SCORE)), "--scores percent, logit"),
    "odds": ("a.csv", _csv(p=SCORE / (1 - SCORE)), READ, {"scale": "odds"}),
    "decimal odds": ("a.csv", _csv(p=ODDS_AGAINST), READ, {"scale": "decimal-odds"}),
    "decimal odds below 1": (
        "a.csv",
        _csv(p=SCORE),
        "decimal odds of 1 or more",
        {"scale": "decimal-odds"},
    ),
    "separated thousands": (
        "a.csv",
        _csv(p=[f"{round(1e6 * p):,}" for p in SCORE]),
        "decimal comma or separate thousands",
    ),
    "a percentage in the name": (
        "a.csv",
        _text(PLAIN.replace("id,y,p", "id,y,p (%)")),
        "--scores percent or --scores probability",
        {"scores": ["p (%)"]},
    ),
    "a percentage in the name, settled": (
        "a.csv",
        _text(PLAIN.replace("id,y,p", "id,y,p (%)")),
        READ,
        {"scores": ["p (%)"], "scale": "probability"},
    ),
    "text among scores": ("a.csv", _csv(p=_some(SCORE, "?")), "'?' in row 0"),
    "numbers in two styles": (
        "a.csv",
        _csv(p=_some(SCORE, "0,5")),
        "in several styles",
    ),
    "Yes and No": (
        "a.csv",
        _csv(y=np.where(Y == 1, "Yes", "No")),
        "say with --positive",
    ),
    "Yes, named": (
        "a.csv",
        _csv(y=np.where(Y == 1, "Yes", "No")),
        READ,
        {"positive": "Yes"},
    ),
    "yes for Yes": (
        "a.csv",
        _csv(y=np.where(Y == 1, "Yes", "No")),
        "Did you mean 'Yes'",
        {"positive": "yes"},
    ),
    "blanks around labels": (
        "a.csv",
        _csv(y=_some(np.where(Y == 1, " Yes", "No "), "Yes")),
        "only in case or in surrounding spaces",
        {"positive": "Yes"},
    ),
    "blanks after each comma": (
        "a.csv",
        _text(
            FRAME.assign(y=np.where(Y == 1, "Yes", "No"))
            .to_csv(index=False)
            .replace(",", ", ")
        ),
        READ,
        {"positive": "Yes"},
    ),
    "blanks in the header": (
        "a.csv",
        _text(PLAIN.replace("id,y,p", "id, y, p")),
        READ,
    ),
    "labels that lack": (
        "a.csv",
        _csv(y=_some(Y, None)),
        "5 without a label .*--missing drop",
    ),
    "labels of NA": (
        "a.csv",
        _csv(y=_some(Y, "NA")),
        "5 without a label .*--missing drop",
    ),
    "labels of NA, dropped": (
        "a.csv",
        _csv(y=_some(Y, "NA")),
        5,
        {"missing": "drop"},
    ),
    "a weight with a point among decimal commas": (
        "a.csv",
        _csv(p=[f"{p:.4f}".replace(".", ",") for p in SCORE], q=["1.234"] * N, sep=";"),
        "may separate thousands. Use the same",
        {"weight": "q"},
    ),
    "TAR": ("a.tar.gz", _tar, "is a TAR archive"),
    "scores that lack": (
        "a.csv",
        _csv(p=_some(SCORE, None)),
        "5 without a score .*--missing drop",
    ),
    "scores that lack, dropped": (
        "a.csv",
        _csv(p=_some(SCORE, None)),
        5,
        {"missing": "drop"},
    ),
    "scores of n/a, dropped": (
        "a.csv",
        _csv(p=_some(SCORE, "n/a")),
        5,
        {"missing": "drop"},
    ),
    "dropped beside 1.2": (
        "a.csv",
        _csv(p=[None, 1.2, *SCORE[2:]]),
        r"1\.2 .*--scores",
        {"missing": "drop"},
    ),
    "a third label": (
        "a.csv",
        _csv(y=_some(np.where(Y == 1, "default", "paid"), "open")),
        "'open' .5.: say with --negative",
        {"positive": "default"},
    ),
    "-1 among 0 and 1": (
        "a.csv",
        _csv(y=_some(Y, -1)),
        "--positive 1 --negative 0",
    ),
    "TRUE and FALSE": ("a.csv", _csv(y=np.where(Y == 1, "TRUE", "FALSE")), READ),
    "1.0 and 0.0": ("a.csv", _csv(y=Y.astype(float)), READ),
    "byte-order mark": ("a.csv", _text(PLAIN, "utf-8-sig"), READ),
    "UTF-16": ("a.txt", _text(PLAIN.replace(",", "\t"), "utf-16"), READ),
    "UTF-16 without a mark": ("a.csv", _text(PLAIN, "utf-16-le"), READ),
    "Windows-1252": (
        "a.csv",
        _text(PLAIN.replace("id,", "Straße,"), "cp1252"),
        READ,
    ),
    "first line sep=;": (
        "a.csv",
        _text("sep=;\n" + FRAME.to_csv(index=False, sep=";")),
        READ,
    ),
    "a comment first": ("a.csv", _text("# by a tool, v2\n\n" + PLAIN), READ),
    "names in a comment": ("a.csv", _text("# by a tool\n# " + PLAIN), READ),
    "a title first": (
        "a.csv",
        _text("Scores of May\n" + PLAIN),
        "Remove any lines before it, such as a title",
    ),
    "no names": ("a.csv", _csv(header=False), "it must name the columns"),
    "a separator in a quoted name": (
        "a.csv",
        _text(PLAIN.replace("id,y,p", '"id; of; the; row",y,p')),
        READ,
    ),
    "names of rows, as R writes them": (
        "a.txt",
        _text(
            '"y" "p"\n'
            + "".join(
                f'"{k + 1}" {y} {p}\n'
                for k, (y, p) in enumerate(zip(Y, SCORE, strict=True))
            )
        ),
        READ,
    ),
    "a separator at the end of lines": (
        "a.csv",
        _text(PLAIN.replace("\n", ",\n").replace("id,y,p,", "id,y,p")),
        READ,
    ),
    "line ends of Windows": ("a.csv", _text(PLAIN.replace("\n", "\r\n")), READ),
    "a longer line": (
        "a.csv",
        _text(PLAIN + "99,1,0.5,7\n"),
        "line 62 has 4 values",
    ),
    "a quotation mark that is not closed": (
        "a.csv",
        _text(PLAIN + '99,1,"0.5\n'),
        "never closed",
    ),
    "two columns of one name": (
        "a.csv",
        _text(PLAIN.replace("id,y,p", "p,y,p")),
        "2 columns called 'p'",
    ),
    "empty": ("a.csv", _text(""), "is empty"),
    "names only": ("a.csv", _text("id,y,p\n"), "0 rows"),
    "ZIP": ("a.zip", _zip(a=PLAIN), READ),
    "ZIP of two": ("a.zip", _zip(a=PLAIN, b=PLAIN), "2 files: give one of a.csv"),
    "ZIP of two, named": ("a.zip", _zip(a=PLAIN, b="x"), READ, {"table": "a.csv"}),
    "gzip": ("a.csv.gz", _bytes(gzip.compress(PLAIN.encode())), READ),
    "gzip without suffix": ("a.csv", _bytes(gzip.compress(PLAIN.encode())), READ),
    "gzip cut off": (
        "a.csv.gz",
        _bytes(gzip.compress(PLAIN.encode())[:-40]),
        "damaged or truncated",
    ),
    "bzip2": ("a.csv.bz2", _bytes(bz2.compress(PLAIN.encode())), READ),
    "xz": ("a.csv.xz", _bytes(lzma.compress(PLAIN.encode())), READ),
    "zstandard": ("a.csv.zst", _zst, READ),
    "JSON lines": (
        "a.jsonl",
        lambda path: FRAME.to_json(path, orient="records", lines=True),
        READ,
    ),
    "JSON lines, nested": (
        "a.jsonl",
        _nested,
        READ,
        {"label": "doc.y", "scores": ["doc.p"]},
    ),
    "JSON records": (
        "a.json",
        lambda path: FRAME.to_json(path, orient="records"),
        READ,
    ),
    "JSON columns": ("a.json", lambda path: FRAME.to_json(path), READ),
    "JSON with one list": (
        "a.json",
        lambda path: path.write_text(
            json.dumps({"model": "m", "results": FRAME.to_dict("records")})
        ),
        READ,
    ),
    "JSON cut off": ("a.jsonl", _text('{"y": 1, "p": 0.5}\n{"y": 0, "p"'), "line 2"),
    "Parquet": ("a.parquet", lambda path: FRAME.to_parquet(path), READ),
    "Parquet without suffix": ("a", lambda path: FRAME.to_parquet(path), READ),
    "Feather": ("a.feather", lambda path: FRAME.to_feather(path), READ),
    "Arrow stream": ("a.arrows", _arrow_stream, READ),
    "lists in cells": ("a.parquet", _lists(as_text=False), READ),
    "lists as text": ("a.csv", _lists(as_text=True), READ),
    "vectors of Spark": ("a.parquet", _spark, READ),
    "a workbook that is damaged": (
        "a.xlsx",
        _bytes(b"PK\x03\x04 not a workbook"),
        "an Excel workbook, but is damaged",
    ),
    "an old workbook": ("a.xls", _bytes(b"\xd0\xcf\x11\xe0 old"), "save it as .xlsx"),
    "a page": ("a.csv", _text("<!DOCTYPE html><html>"), "HTML or XML"),
    "a picture": ("a.csv", _bytes(b"\x89PNG\r\n\x1a\n"), "a picture"),
    "other bytes": ("a.csv", _bytes(bytes(range(256))), "not a text table"),
    "SQLite": ("a.db", _sqlite, READ),
}


def _read(path, *, label="y", scores=("p",), positive=None, weight=None, **reading):
    return read_table(
        path,
        label=label,
        scores=list(scores),
        positive=positive,
        weight=weight,
        reading=Reading(**reading),
    )


def read_or_refused(case, folder):
    """Check what comes out of a file that is written into a folder; `case` is a value
    of `FILES`.
    """
    file, write, right, *options = case
    path = folder / file
    write(path)
    (options,) = options or [{}]
    if isinstance(right, str) and right != READ:
        with pytest.raises(ReportError, match=right) as caught:
            _read(path, **options)
        assert "\n" not in str(caught.value)
        assert "codec" not in str(caught.value)
        return
    n_dropped = 0 if right == READ else right
    table = _read(path, **options)
    (scores,) = table.scores.values()
    np.testing.assert_array_equal(table.labels, Y[n_dropped:] == 1)
    np.testing.assert_allclose(scores, SCORE[n_dropped:], rtol=0, atol=1e-6)
    if n_dropped:
        assert f"{n_dropped} rows of 60 were left out" in " ".join(table.assumed)


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_as_the_truth_or_refused_with_its_cause(name, tmp_path):
    read_or_refused(FILES[name], tmp_path)


def test_workbooks(tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "a.xlsx"
    FRAME.to_excel(path, index=False, startrow=2)
    assert _read(path).scores["p"] == pytest.approx(SCORE)
    with pd.ExcelWriter(path) as book:
        FRAME.to_excel(book, sheet_name="May", index=False)
        FRAME.assign(p=0.5).to_excel(book, sheet_name="June", index=False)
    with pytest.raises(ReportError, match=r"\(May, June\): name one with --table"):
        _read(path)
    assert _read(path, table="May").scores["p"] == pytest.approx(SCORE)


def test_several_files_and_globs(tmp_path):
    FRAME[:20].to_csv(tmp_path / "a.csv", index=False)
    FRAME[20:].to_csv(tmp_path / "b.csv", index=False, sep=";")
    for given in (str(tmp_path / "?.csv"), [tmp_path / "a.csv", tmp_path / "b.csv"]):
        table = _read(given)
        assert table.scores["p"] == pytest.approx(SCORE)
    FRAME[20:].to_csv(tmp_path / "b.csv", index=False, sep=";", decimal=",")
    with pytest.raises(ReportError, match="mixes text and numbers"):
        _read(str(tmp_path / "?.csv"))
    FRAME[:20].assign(x=1).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ReportError, match="lacks 'x', unlike"):
        _read(str(tmp_path / "?.csv"))


def test_standard_input(monkeypatch):
    stream = SimpleNamespace(
        buffer=BytesIO(gzip.compress(PLAIN.encode())), isatty=lambda: False
    )
    monkeypatch.setattr("sys.stdin", stream)
    table = _read("-")
    assert table.source == "standard input"
    assert table.scores["p"] == pytest.approx(SCORE)


def test_databases(tmp_path):
    _sqlite(tmp_path / "a.db")
    url = f"sqlite:///{tmp_path / 'a.db'}"
    assert _read(url).scores["p"] == pytest.approx(SCORE)
    query = "SELECT y AS label, p FROM scores WHERE id < 30"
    table = _read(url, label="label", query=query)
    assert table.scores["p"] == pytest.approx(SCORE[:30])
    with pytest.raises(ReportError, match="no table 'x'; it has scores"):
        _read(url, table="x")
    with pytest.raises(ReportError, match="there is no database"):
        _read("sqlite:none.db")
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.register("frame", FRAME)
        connection.execute("CREATE TABLE scores AS SELECT * FROM frame")
        connection.execute("CREATE TABLE other AS SELECT 1 AS x")
    url = f"duckdb:{tmp_path / 'a.duckdb'}"
    assert _read(url, table="scores").scores["p"] == pytest.approx(SCORE)
    with pytest.raises(ReportError, match="with --table; it has other, scores"):
        _read(url)


def test_two_columns_are_two_classes(tmp_path):
    path = tmp_path / "a.csv"
    frame = FRAME.assign(no=1 - SCORE)
    for zero, one in (("p_0", "p_1"), ("P (class=0)", "P (class=1)")):
        renamed = frame.rename(columns={"no": zero, "p": one})
        renamed.to_csv(path, index=False)
        table = _read(path, scores=[zero.replace("0", "*")])
        assert table.classes is None
        assert next(iter(table.scores.values())) == pytest.approx(SCORE)
    words = frame.assign(y=np.where(Y == 1, "good", "bad"))
    words.rename(columns={"no": "p_bad", "p": "p_good"}).to_csv(path, index=False)
    with pytest.raises(ReportError, match="say with --positive which one"):
        _read(path, scores=["p_*"])
    table = _read(path, scores=["p_*"], positive="bad")
    assert next(iter(table.scores.values())) == pytest.approx(1 - SCORE)
    np.testing.assert_array_equal(table.labels, Y == 0)


def test_lists_beside_words_need_their_order(tmp_path):
    path = tmp_path / "a.csv"
    rng = np.random.default_rng(1)
    shares = rng.dirichlet([1, 1, 1], N)
    labels = np.array(["a", "b", "c"])[np.arange(N) % 3]
    pd.DataFrame({"y": labels, "p": [str(list(row)) for row in shares]}).to_csv(path)
    with pytest.raises(ReportError, match="name the classes in their order"):
        read_table(path, label="y", scores=["p"])
    table = read_table(path, label="y", scores=["p"], classes=("c", "a", "b"))
    assert table.scores["p"] == pytest.approx(shares)
    np.testing.assert_array_equal(table.labels, (np.arange(N) + 1) % 3)


def test_an_overround_is_divided_out_only_if_asked(tmp_path):
    path = tmp_path / "a.csv"
    odds = pd.DataFrame({"home": 1 / (1.05 * SCORE), "away": 1 / (1.05 * (1 - SCORE))})
    odds.assign(y=np.where(Y == 1, "home", "away")).to_csv(path, index=False)
    given = {"scores": ["home", "away"], "classes": ("home", "away"), "label": "y"}
    with pytest.raises(ReportError, match=r"sums to 1\.05.*--normalise"):
        read_table(
            path, **given, positive="home", reading=Reading(scale="decimal-odds")
        )
    reading = Reading(scale="decimal-odds", normalise=True)
    table = read_table(path, **given, positive="home", reading=reading)
    (scores,) = table.scores.values()
    assert scores == pytest.approx(SCORE)


def test_columns_that_need_no_name(tmp_path):
    path = tmp_path / "a.csv"
    extra = {"weight": SCORE, "fold": Y, "customer_id": Y, "text": "a"}
    FRAME.assign(**extra).to_csv(path, index=False)
    table = _read(path, label=None, scores=())
    assert table.assumed[0] == "Taken: y as the label and p as the score."
    assert table.scores["p"] == pytest.approx(SCORE)
    FRAME.assign(q=SCORE).to_csv(path, index=False)
    with pytest.raises(ReportError, match="with --score, since several .*: p, q"):
        _read(path, label=None, scores=())
    FRAME.assign(late=Y).to_csv(path, index=False)
    with pytest.raises(ReportError, match="with --label, since several .*: y, late"):
        _read(path, label=None, scores=())
    FRAME.drop(columns="p").to_csv(path, index=False)
    with pytest.raises(ReportError, match="with --score, since no column"):
        _read(path, label=None, scores=())


def test_rows_without_a_label_are_new_samples(tmp_path):
    path = tmp_path / "a.csv"
    FRAME.assign(y=_some(Y, None)).to_csv(path, index=False)
    reading = Reading(has_unlabelled=True)
    table = read_table(path, label="y", scores=["p"], reading=reading)
    assert table.scores["p"] == pytest.approx(SCORE[5:])
    new = read_new_scores(path, table, reading)
    assert new["p"] == pytest.approx(SCORE[:5])


def test_the_code_reads_what_the_report_read(tmp_path):
    """The lines that a page prints give the rows and scores of the report."""
    names = [
        *(
            "semicolons and decimal commas",
            "percent signs",
            "0 to 100, named",
            "logits",
        ),
        *(
            "odds",
            "decimal odds",
            "Windows-1252",
            "first line sep=;",
            "a comment first",
        ),
        *("names in a comment", "gzip without suffix", "JSON lines", "JSON columns"),
        *("JSON lines, nested", "Feather", "lists in cells", "lists as text", "ZIP"),
        *("scores that lack, dropped", "blanks in the header", "UTF-16", "blanks"),
        "percent signs after a blank and a comma",
        "names of rows, as R writes them",
    ]
    check_code([FILES[name] for name in names], tmp_path)


def check_code(cases, tmp_path):
    """Check that the Python of reports of files reads what the reports read."""
    from skcalib._report._advice_code import reading_lines

    for file, write, _, *options in cases:
        (options,) = options or [{}]
        path = tmp_path / file
        write(path)
        table = _read(path, **options)
        imports, lines = reading_lines(table)
        found = {}
        exec("\n".join([*imports, *lines]), found)
        frame = found["df"]
        (model,) = table.columns
        scores = frame[table.columns[model][0]].to_numpy()
        np.testing.assert_allclose(scores, table.scores[model], atol=1e-9)
