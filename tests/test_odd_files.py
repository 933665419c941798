"""Further files as people have them, each of a rare kind: each is read as the one
truth, or refused with its cause and its cure.
"""

import gzip
import json
import zipfile
from datetime import datetime, timedelta
from importlib.util import find_spec

import _postgres
import numpy as np
import pytest
from _programs import required
from test_files_of_people import (
    _REASON,
    FILES,
    FRAME,
    PLAIN,
    READ,
    SCORE,
    N,
    Y,
    _bytes,
    _csv,
    _logit,
    _read,
    _some,
    _text,
    check_code,
    read_or_refused,
)

from skcalib._report._error import ReportError

pd = pytest.importorskip("pandas", reason=_REASON)
pa = pytest.importorskip("pyarrow", reason=_REASON)

LINES = PLAIN.splitlines()
WITH_COMMAS = FRAME.to_csv(index=False, sep=";", decimal=",")
WORDS = np.where(Y == 1, "good", "bad")


def _excel(write):
    """Return a writer of a workbook, to which `write` adds sheets."""

    def write_book(path):
        pytest.importorskip("openpyxl")
        with pd.ExcelWriter(path, engine="openpyxl") as book:
            write(book)

    return write_book


def _title_sheet(book):
    FRAME.to_excel(book, index=False, startrow=3)
    sheet = book.sheets["Sheet1"]
    sheet["A1"] = "Scores of May 2024"
    sheet["A2"] = "confidential"


def _percent_sheet(book):
    FRAME.to_excel(book, index=False)
    for (cell,) in book.sheets["Sheet1"]["C2:C61"]:
        cell.number_format = "0.00%"


def _total_sheet(book):
    FRAME.to_excel(book, index=False)
    book.sheets["Sheet1"].append(["Total", int(Y.sum()), float(SCORE.sum())])


def _index_sheet(book):
    FRAME.set_index("id").to_excel(book)


def _text_sheet(book):
    FRAME.assign(p=[f"{p:.4f}" for p in SCORE]).to_excel(book, index=False)


def _text_comma_sheet(book):
    texts = [f"{p:.4f}".replace(".", ",") for p in SCORE]
    FRAME.assign(p=texts).to_excel(book, index=False)


def _error_sheet(book):
    FRAME.assign(p=_some(SCORE, "#DIV/0!", 2)).to_excel(book, index=False)


def _notes_sheet(book):
    pd.DataFrame({"note": ["made by us"]}).to_excel(book, sheet_name="Notes")
    FRAME.to_excel(book, sheet_name="Data", index=False)


def _mac_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/", "")
        archive.writestr("data/scores.csv", PLAIN)
        archive.writestr("__MACOSX/data/._scores.csv", b"\x00\x05\x16\x07")
        archive.writestr("data/.DS_Store", b"\x00\x00")


def _locked_zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("scores.csv", PLAIN)
    content = bytearray(path.read_bytes())
    content[6] |= 1  # the bit that says "encrypted", in both headers
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)


def _categories(path):
    labels = pd.Categorical(WORDS, categories=["good", "bad"])
    FRAME.assign(y=labels).to_parquet(path)


def _arrow_types(path):
    table = pa.table(
        {
            "y": pa.array(Y.astype(bool)),
            "p": pa.array(SCORE).cast(pa.decimal128(6, 4)),
            "part": pa.array(WORDS).dictionary_encode(),
        }
    )
    pa.parquet.write_table(table, str(path))


def _indexed(path):
    FRAME.set_index("id").to_parquet(path)


def _single(path):
    FRAME.assign(p=SCORE.astype(np.float32)).to_feather(path)


def _evaluation(path):
    """Lines as harnesses of language models write them."""
    records = []
    for k, (y, p) in enumerate(zip(Y.tolist(), SCORE.tolist(), strict=True)):
        record = {"doc_id": k, "metrics": {"acc": y}, "resps": [["a", "b"]]}
        records.append({**record, "scores": {"p_true": p}})
    path.write_text("\n".join(map(json.dumps, records)) + "\n")


def _with_nan(path):
    lines = FRAME.to_dict("records")
    lines[0]["p"] = float("nan")
    path.write_text("\n".join(map(json.dumps, lines)))


def _long_csv(path):
    """Rows of which only one far from the beginning is written otherwise."""
    lines = [f"{k},{y},{p}" for k, (y, p) in enumerate(zip(Y, SCORE, strict=True))]
    rows = lines * 3000
    rows[150_000] = "1,0,0,5"
    path.write_text("\n".join(["id,y,p", *rows]))


def _fixed_width(path):
    rows = [
        f"{k:6d}{y:3d}{p:9.4f}" for k, (y, p) in enumerate(zip(Y, SCORE, strict=True))
    ]
    path.write_text("\n".join(["    id  y        p", *rows]))


def _r_rows(path):
    rows = [f'"{k + 1}",{y},{p}' for k, (y, p) in enumerate(zip(Y, SCORE, strict=True))]
    path.write_text("\n".join(['"y","p"', *rows]))


def _lists_of_classes(path):
    three = np.column_stack([1 - SCORE, SCORE])
    FRAME.assign(p=[f"[{a} {b}]" for a, b in three]).to_csv(path, index=False)


def _decoded(text):
    return lambda path: path.write_bytes(text)


def _label(values, **options):
    """Return a case of labels that are written otherwise."""
    return ("a.csv", _csv(y=values, **options))


STARS = np.clip(np.ceil(5 * SCORE), 1, 5)
BOTH = [
    ["y", "p", "q"],
    *[[y, p, round(1 - p, 4)] for y, p in zip(Y.tolist(), SCORE.tolist(), strict=True)],
]
DAYS = [datetime(2024, 1, 1) + timedelta(days=7 * k) for k in range(N)]


def _classes(**options):
    def write(path):
        shares = np.column_stack([SCORE / 2, SCORE / 2, 1 - SCORE]).round(6)
        frame = pd.DataFrame(shares, columns=["p_a", "p_b", "p_c"])
        label = np.array(["a", "b", "c"])[np.arange(N) % 3]
        frame.assign(y=label, **options).to_csv(path, index=False)

    return write


# By name: file, how it is written, what is to come out ("read" as the truth, or a part
# of the error), and options.
CASES = {
    # Spreadsheets
    "a title above the names, Excel": ("a.xlsx", _excel(_title_sheet), READ),
    "percent cells, Excel": ("a.xlsx", _excel(_percent_sheet), READ),
    "percent cells and --scores percent, Excel": (
        "a.xlsx",
        _excel(_percent_sheet),
        READ,
        {"scale": "percent"},
    ),
    "a total below, Excel": ("a.xlsx", _excel(_total_sheet), "row 60 is 23.76"),
    "an index, Excel": ("a.xlsx", _excel(_index_sheet), READ),
    "numbers as text, Excel": ("a.xlsx", _excel(_text_sheet), READ),
    "decimal commas as text, Excel": ("a.xlsx", _excel(_text_comma_sheet), READ),
    "#DIV/0!, Excel": ("a.xlsx", _excel(_error_sheet), "2 without a score"),
    "a sheet of notes, Excel": ("a.xlsx", _excel(_notes_sheet), "Notes, Data"),
    "a sheet that is named": (
        "a.xlsx",
        _excel(_notes_sheet),
        READ,
        {"table": "Data"},
    ),
    "HTML as .xls": ("a.xls", _text("\ufeff<html><table><tr><td>y"), "HTML"),
    "XML as .xls": ("a.xls", _text('<?xml version="1.0"?><Workbook>'), "HTML or XML"),
    "German Excel": ("a.csv", _text("\ufeff" + WITH_COMMAS), READ),
    "German Excel, Windows-1252": (
        "a.csv",
        _text(WITH_COMMAS.replace("id;", "Größe;"), "cp1252"),
        READ,
    ),
    "TSV with a mark": ("a.tsv", _text("\ufeff" + PLAIN.replace(",", "\t")), READ),
    "UTF-16, big-endian": (
        "a.txt",
        _decoded(b"\xfe\xff" + PLAIN.replace(",", "\t").encode("utf-16-be")),
        READ,
    ),
    "UTF-16 and decimal commas": (
        "a.txt",
        _text(WITH_COMMAS.replace(";", "\t"), "utf-16"),
        READ,
    ),
    # Packed files
    "a ZIP archive of a Mac": ("a.zip", _mac_zip, READ),
    "a ZIP archive with a password": ("a.zip", _locked_zip, "password"),
    "gzip in gzip": (
        "a.csv.gz",
        _bytes(gzip.compress(gzip.compress(PLAIN.encode()))),
        READ,
    ),
    "a suffix that lies": ("a.parquet", _text(PLAIN), READ),
    "gz in the name only": ("a.csv.gz", _text(PLAIN), READ),
    # Columnar files
    "categories": ("a.parquet", _categories, READ, {"positive": "good"}),
    "decimals and booleans": ("a.parquet", _arrow_types, READ),
    "an index": ("a.parquet", _indexed, READ),
    "single precision": ("a.feather", _single, READ),
    # JSON
    "lines of an evaluation": (
        "a.jsonl",
        _evaluation,
        READ,
        {"label": "metrics.acc", "scores": ["scores.p_true"]},
    ),
    "NaN in JSON": ("a.jsonl", _with_nan, "1 without a score"),
    "Windows ends in JSON lines": (
        "a.jsonl",
        _text(FRAME.to_json(orient="records", lines=True).replace("\n", "\r\n")),
        READ,
    ),
    "JSON lines with a mark": (
        "a.jsonl",
        _text("\ufeff" + FRAME.to_json(orient="records", lines=True)),
        READ,
    ),
    "JSON split": ("a.json", lambda path: FRAME.to_json(path, orient="split"), READ),
    "JSON table": ("a.json", lambda path: FRAME.to_json(path, orient="table"), READ),
    "JSON values": (
        "a.json",
        lambda path: FRAME.to_json(path, orient="values"),
        "entry 0",
    ),
    "JSON numbers as text": (
        "a.json",
        _text(FRAME.astype(str).to_json(orient="records")),
        READ,
        {"positive": "1"},
    ),
    # Text
    "a separator in quotes": (
        "a.csv",
        _text(PLAIN.replace("\n1,", '\n"1, one; a",').replace("\n2,", '\n"2\nb",')),
        READ,
    ),
    "single quotes": (
        "a.csv",
        _text(PLAIN.replace("id,y,p", "'id','y','p'")),
        "no column 'y'",
    ),
    "an empty name": ("a.csv", _text(FRAME.to_csv()), READ),
    "names in capitals": (
        "a.csv",
        _text(PLAIN.replace("id,y,p", "ID,Y,P")),
        "Did you mean 'Y'",
    ),
    "rows of R": ("a.csv", _r_rows, READ),
    "columns of fixed width": ("a.txt", _fixed_width, READ),
    "columns of fixed width, one empty": (
        "a.txt",
        _text(
            FRAME.assign(p=_some(SCORE, None, 1), w=1.0).to_string(
                index=False, na_rep=""
            )
        ),
        "line 2 of .* has 3 values for 4 columns",
    ),
    "columns of fixed width, one NA": (
        "a.txt",
        _text(FRAME.assign(p=_some(SCORE, None, 1), w=1.0).to_string(index=False)),
        "1 without a score",
    ),
    "a comment in the middle": (
        "a.csv",
        _text("\n".join([*LINES[:30], "# second half", *LINES[30:]])),
        "1 without a label .* the first is row 29",
    ),
    "a line of units": (
        "a.csv",
        _text("\n".join([LINES[0], ",0/1,prob", *LINES[1:]])),
        "prob",
    ),
    "a total at the end": (
        "a.csv",
        _text(PLAIN + f"Total,{Y.sum()},{SCORE.sum():.4f}\n"),
        "row 60 is 23.76",
    ),
    "a mean at the end": (
        "a.csv",
        _text(PLAIN + f"Mean,{Y.mean():.4f},{SCORE.mean():.4f}\n"),
        "0.2833 in one row",
    ),
    "a footer": (
        "a.csv",
        _text(PLAIN + "(60 rows affected)\n"),
        "1 without a label .* the first is row 60",
    ),
    "the names again": (
        "a.csv",
        _text(PLAIN + PLAIN),
        "'p' in row 60",
    ),
    "a short line": ("a.csv", _text(PLAIN + "60,1\n"), "1 without a score"),
    "empty lines between": ("a.csv", _text(PLAIN.replace("\n", "\n\n")), READ),
    "lines of separators": ("a.csv", _text(PLAIN + ",,\n,,\n"), "2 without"),
    "line ends of an old Mac": ("a.csv", _text(PLAIN.replace("\n", "\r")), READ),
    "one separator far away": ("a.csv", _long_csv, "line 150002 has 4 values"),
    "one column": ("a.csv", _text("p\n" + "0.5\n" * 20), "no column 'y'"),
    "names only": ("a.csv", _text("id,y,p"), "0 rows"),
    "blanks only": ("a.csv", _text("  \n \n"), "is empty"),
    "tildes": ("a.txt", _text(PLAIN.replace(",", "~")), "separat"),
    "carets": ("a.txt", _text(PLAIN.replace(",", "^")), "separat"),
    "two separators": ("a.txt", _text(PLAIN.replace(",", "||")), READ),
    "spaces and commas": ("a.txt", _text(PLAIN.replace(",", " , ")), READ),
    "Markdown": (
        "a.md",
        _text(
            "| y | p |\n|---|---|\n"
            + "".join(f"| {y} | {p} |\n" for y, p in zip(Y, SCORE, strict=True))
        ),
        "'---' in row 0",
    ),
    "LaTeX": (
        "a.tex",
        _text(
            "y & p \\\\\n"
            + "".join(f"{y} & {p} \\\\\n" for y, p in zip(Y, SCORE, strict=True))
        ),
        READ,
    ),
    "ARFF": (
        "a.arff",
        _text(
            "@relation s\n@attribute y {0,1}\n@attribute p numeric\n@data\n"
            + "".join(f"{y},{p}\n" for y, p in zip(Y, SCORE, strict=True))
        ),
        "ARFF",
    ),
    "SVMlight": (
        "a.svm",
        _text("".join(f"{y} 1:{p}\n" for y, p in zip(Y, SCORE, strict=True))),
        "its columns are 0, 1:0.3224",
    ),
    "SAS": (
        "a.sas7bdat",
        _bytes(
            b"\x00" * 12
            + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf\xbd\x92\x08\x00"
            + b"x\0" * 99
        ),
        "SAS",
    ),
    "SAS transport": (
        "a.xpt",
        _text("HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!000000000000000"),
        "SAS",
    ),
    "Stata": ("a.dta", lambda path: FRAME.to_stata(path, version=118), "Stata"),
    "old Stata": ("a.dta", lambda path: FRAME.to_stata(path, version=114), "Stata"),
    "pickle": ("a.pkl", lambda path: FRAME.to_pickle(path), "pickle"),
    "old pickle": (
        "a.pkl",
        lambda path: pd.to_pickle(FRAME, path, protocol=2),
        "pickle",
    ),
    "NumPy archive": (
        "a.npz",
        lambda path: np.savez(path, y=Y, p=SCORE),
        "NumPy",
    ),
    # Numbers
    "scientific numbers": ("a.csv", _csv(p=[f"{p:.6e}" for p in SCORE]), READ),
    "scientific, with a comma": (
        "a.csv",
        _csv(p=[f"{p:.6e}".replace(".", ",") for p in SCORE], sep=";"),
        READ,
    ),
    "no digit before the point": (
        "a.csv",
        _csv(p=[f"{p:.4f}".lstrip("0") for p in SCORE]),
        READ,
    ),
    "plus signs": ("a.csv", _csv(p=[f"+{p}" for p in SCORE]), READ),
    "mixed decimal marks": (
        "a.csv",
        _csv(
            p=[
                str(p) if k % 2 else str(p).replace(".", ",")
                for k, p in enumerate(SCORE)
            ]
        ),
        "several styles",
    ),
    "a no-break space": (
        "a.csv",
        _csv(p=[f"{100 * p:.2f}\u00a0%".replace(".", ",") for p in SCORE], sep=";"),
        READ,
    ),
    "blanks around numbers": ("a.csv", _csv(p=[f" {p} " for p in SCORE]), READ),
    "per cent as words": (
        "a.csv",
        _csv(p=[f"{100 * p:.2f} percent" for p in SCORE]),
        "percent",
    ),
    "per mille": ("a.csv", _csv(p=[f"{1000 * p:.1f}‰" for p in SCORE]), "‰"),
    "fractions": ("a.csv", _csv(p=[f"{round(100 * p)}/100" for p in SCORE]), "/100"),
    "below one per cent": ("a.csv", _csv(p=_some(SCORE, "<0.01")), "<0.01"),
    "Arabic digits": (
        "a.csv",
        _csv(
            p=[
                f"{p:.4f}".translate({48 + d: 0x660 + d for d in range(10)})
                for p in SCORE
            ]
        ),
        READ,
    ),
    "a true minus": (
        "a.csv",
        _csv(p=[f"{v:.6f}".replace("-", "\u2212") for v in _logit(SCORE)]),
        READ,
        {"scale": "logit"},
    ),
    "slightly above 1": (
        "a.csv",
        _csv(p=_some(SCORE, 1.0000001, 1)),
        r"row 0 is 1\.0000001",
    ),
    "infinite": ("a.csv", _csv(p=_some(SCORE, "inf")), "inf"),
    "out of 10": ("a.csv", _csv(p=(10 * SCORE).round(2)), "--scores percent"),
    "stars": ("a.csv", _csv(p=STARS), "--scores percent"),
    "log probabilities": ("a.csv", _csv(p=np.log(SCORE)), "--scores"),
    "odds, as logit": ("a.csv", _csv(p=(SCORE / (1 - SCORE))), "--scores"),
    "percent signs and a name": (
        "a.csv",
        _text(
            FRAME.assign(p=[f"{100 * p:.2f}%" for p in SCORE])
            .to_csv(index=False)
            .replace("id,y,p", "id,y,win %")
        ),
        READ,
        {"scores": ["win %"]},
    ),
    "percent signs and --scores percent": (
        "a.csv",
        _csv(p=[f"{100 * p:.2f}%" for p in SCORE]),
        READ,
        {"scale": "percent"},
    ),
    "fractions beside percentages": (
        "a.csv",
        _csv(q=100 * SCORE),
        "'p' goes up to 0.7758 and 'q' up to 77.58",
        {"scores": ["p", "q"], "scale": "percent"},
    ),
    "weights of 1.000 beside decimal commas": (
        "a.csv",
        _csv(p=[f"{p}".replace(".", ",") for p in SCORE], q=["1.000"] * N, sep=";"),
        "may separate thousands. Use the same",
        {"weight": "q"},
    ),
    # Missing values
    "missing as a dash": ("a.csv", _csv(p=_some(SCORE, "-")), "'-' in row 0"),
    "missing as a point": ("a.csv", _csv(p=_some(SCORE, ".")), r"'\.' in row 0"),
    "missing as -999": ("a.csv", _csv(p=_some(SCORE, -999)), "-999"),
    "missing as null": ("a.csv", _csv(p=_some(SCORE, "null")), "5 without a score"),
    "missing as \\N": ("a.csv", _csv(p=_some(SCORE, "\\N")), r"N' in row 0"),
    "missing as (null)": (
        "a.csv",
        _csv(p=_some(SCORE, "(null)")),
        r"'\(null\)' in row 0",
    ),
    "labels missing as ?": ("a.csv", _csv(y=_some(Y, "?")), r"'\?'"),
    "labels missing as N/A": (*_label(_some(Y, "N/A")), "5 without a label"),
    "labels missing as a dash": (*_label(_some(Y, "-")), "'-'"),
    "labels missing as -1, words": (*_label(_some(WORDS, "-1")), "--positive"),
    # Labels
    "t and f": (*_label(np.where(Y == 1, "t", "f")), "--positive"),
    "T and F": (*_label(np.where(Y == 1, "T", "F")), "--positive"),
    "true and false": (*_label(np.where(Y == 1, "true", "false")), READ),
    "true, TRUE and false": (
        *_label(np.where(Y == 1, np.where(SCORE > 0.5, "TRUE", "true"), "false")),
        READ,
    ),
    "yes, Yes and no": (
        *_label(np.where(Y == 1, np.where(SCORE > 0.5, "Yes", "yes"), "no")),
        "only in case",
        {"positive": "yes"},
    ),
    "-1 and 1": (*_label(np.where(Y == 1, 1, -1)), READ),
    "1 and 2": (*_label(np.where(Y == 1, 2, 1)), "--positive"),
    "1 and 2, named": (*_label(np.where(Y == 1, 2, 1)), READ, {"positive": "2"}),
    "0.0 and 1.0": (*_label([f"{float(y)}" for y in Y]), READ),
    "0,0 and 1,0": (*_label([f"{y},0" for y in Y], sep=";"), "--positive"),
    "0.0 and 1, named 1": (
        *_label([f"{float(y)}" for y in Y]),
        READ,
        {"positive": "1"},
    ),
    "a label that is a count": (*_label(Y * 3), "--positive"),
    "soft labels": (*_label(SCORE), "label"),
    "labels and scores swapped": (
        "a.csv",
        _text(PLAIN),
        "label",
        {"label": "p", "scores": ["y"]},
    ),
    "spaces after labels": (
        *_label(np.where(Y == 1, "yes ", "no ")),
        "Did you mean 'yes '",
        {"positive": "yes"},
    ),
    "bytes of Python": (*_label(np.where(Y == 1, "b'1'", "b'0'")), "--positive"),
    # Columns
    "twice the label": (
        "a.csv",
        _text(PLAIN.replace("id,y,p", "y,y,p")),
        "2 columns called 'y'",
    ),
    "a column of p.1": (
        "a.csv",
        _text(FRAME.assign(**{"p.1": 0.5}).to_csv(index=False)),
        READ,
    ),
    "lists with blanks": ("a.csv", _lists_of_classes, READ),
    "names with blanks": ("a.csv", _text(PLAIN.replace("id,y,p", "id , y , p ")), READ),
    "names with no-break spaces": (
        "a.csv",
        _text(PLAIN.replace("id,y,p", "id,\u00a0y,p\u00a0")),
        READ,
    ),
    "names with a zero-width mark": (
        "a.csv",
        _text(PLAIN.replace("id,y,p", "id,y\u200b,p")),
        "no column 'y'",
    ),
    "a percentage in the name, above 1": (
        "a.csv",
        _text(
            FRAME.assign(p=100 * SCORE)
            .to_csv(index=False)
            .replace("id,y,p", "id,y,PD %")
        ),
        "--scores percent",
        {"scores": ["PD %"]},
    ),
    "basis points": (
        "a.csv",
        _text(FRAME.assign(p=(10_000 * SCORE).round()).to_csv(index=False)),
        "--scores",
    ),
    "percent signs and words": ("a.csv", _csv(p=_some(SCORE, "inf%")), "percent sign"),
    "dash among decimal commas": (
        "a.csv",
        _csv(p=_some([f"{p}".replace(".", ",") for p in SCORE], "-"), sep=";"),
        "'-' in row 0",
    ),
    "NA in JSON, dropped": (
        "a.json",
        _text(FRAME.assign(p=_some(SCORE.tolist(), "NA")).to_json(orient="records")),
        5,
        {"missing": "drop"},
    ),
    "n/a among percent signs, dropped": (
        "a.jsonl",
        _text(
            FRAME.assign(p=_some([f"{100 * p:.2f}%" for p in SCORE], "n/a")).to_json(
                orient="records", lines=True
            )
        ),
        5,
        {"missing": "drop"},
    ),
    "NA in JSON": (
        "a.json",
        _text(FRAME.assign(p=_some(SCORE.tolist(), "NA")).to_json(orient="records")),
        "5 without a score",
    ),
    "a negative weight": (
        "a.csv",
        _csv(q=_some(np.ones(N), -1)),
        "negative",
        {"weight": "q"},
    ),
    "weights with commas": (
        "a.csv",
        _csv(q=["1,234"] * N),
        "decimal comma or separate",
        {"weight": "q"},
    ),
    "weights that lack": (
        "a.csv",
        _csv(q=_some(np.ones(N), None)),
        "5 without a weight",
        {"weight": "q"},
    ),
    "weights of 0": ("a.csv", _csv(q=np.zeros(N)), "weight", {"weight": "q"}),
    "one hot": (
        "a.csv",
        _classes(a=1, b=0, c=0),
        "idxmax",
        {"label": "one_*", "scores": ["p_*"]},
    ),
    "UTF-16, cut off": (
        "a.csv",
        _bytes(b"\xff\xfe" + PLAIN.encode("utf-16-le")[:-1]),
        "encoding",
    ),
    "a mark that lies": (
        "a.csv",
        _bytes(b"\xef\xbb\xbf" + PLAIN.replace("id", "i\xe9").encode("cp1252")),
        "UTF-8",
    ),
    "quoted numbers": ("a.csv", _csv(quoting=1), READ),
    "quoted percent": (
        "a.csv",
        _csv(p=[f"{100 * p:.2f}%" for p in SCORE], quoting=1),
        READ,
    ),
    "backslash quotes": (
        "a.csv",
        _text(PLAIN.replace("\n1,", '\n"a \\"b\\", c",')),
        "line 3 has 4 values",
    ),
    "an index written twice": (
        "a.csv",
        _text(
            ","
            + PLAIN.replace("\n", "\n5,").removesuffix("5,").replace("id,y,p", ",y,p")
        ),
        READ,
    ),
    "dates, Excel": (
        "a.xlsx",
        _excel(lambda b: FRAME.assign(d=DAYS).to_excel(b, index=False)),
        READ,
    ),
    "percent signs as text, Excel": (
        "a.xlsx",
        _excel(
            lambda b: FRAME.assign(p=[f"{100 * p:.2f}%" for p in SCORE]).to_excel(
                b, index=False
            )
        ),
        READ,
    ),
    "text among numbers, Excel": (
        "a.xlsx",
        _excel(lambda b: FRAME.assign(p=_some(SCORE, "0,5")).to_excel(b, index=False)),
        "mixes text and numbers",
    ),
    "n/a, Excel": (
        "a.xlsx",
        _excel(lambda b: FRAME.assign(p=_some(SCORE, "n/a")).to_excel(b, index=False)),
        "5 without a score",
    ),
    "two tables side by side, Excel": (
        "a.xlsx",
        _excel(
            lambda b: (
                FRAME.to_excel(b, index=False),
                FRAME[:5].to_excel(b, index=False, startcol=5),
            )
        ),
        "2 columns called",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_odd_file_is_read_as_the_truth_or_refused_with_its_cause(name, tmp_path):
    read_or_refused(CASES[name], tmp_path)


def test_the_code_reads_odd_files(tmp_path):
    pytest.importorskip("openpyxl")
    names = (
        "a title above the names, Excel",
        "decimal commas as text, Excel",
        "a true minus",
        "percent signs and --scores percent",
        "scientific, with a comma",
        "NA in JSON, dropped",
        "n/a among percent signs, dropped",
    )
    check_code([CASES[name] for name in names], tmp_path)


@pytest.mark.slow
def test_large_text_is_read_as_small_text_is(tmp_path, monkeypatch):
    """DuckDB, which reads large files, gives the truth or refuses, as pandas does."""
    pytest.importorskip("duckdb")
    pytest.importorskip("narwhals")
    monkeypatch.setattr("skcalib._report._reader._LARGE_CSV", -1)
    monkeypatch.setattr("skcalib._report._reader._LARGE_PACKED_CSV", -1)
    refused = []
    for name, (file, write, right, *options) in {**FILES, **CASES}.items():
        if not file.endswith((".csv", ".txt", ".tsv", ".csv.gz")):
            continue
        (options,) = options or [{}]
        write(tmp_path / file)
        try:
            table = _read(tmp_path / file, **options)
        except ReportError as error:
            if right == READ:
                refused.append((name, str(error)))
            continue
        (scores,) = table.scores.values()
        n_dropped = N - len(scores)
        assert n_dropped == (right if isinstance(right, int) else 0)
        np.testing.assert_array_equal(table.labels, Y[n_dropped:] == 1)
        np.testing.assert_allclose(scores, SCORE[n_dropped:], rtol=0, atol=1e-6)
    assert not refused


@pytest.mark.slow
def test_postgres(monkeypatch):
    folder = _postgres.programs()
    required(
        "SKCALIB_REQUIRE_POSTGRES",
        folder and find_spec("psycopg"),
        "needs PostgreSQL's programs and psycopg",
    )
    import psycopg

    # Without DuckDB's extension, which is downloaded.
    reader = "skcalib._report._reader"
    monkeypatch.setattr(f"{reader}.postgres_relation", lambda *_: None)
    create = "CREATE TABLE scores (id INT, y INT, p NUMERIC, q FLOAT8[])"
    with _postgres.server(folder) as at:
        with psycopg.connect(**at) as connection:
            connection.execute(create)
            with connection.cursor().copy("COPY scores FROM STDIN") as copy:
                for k, (y, p) in enumerate(zip(Y, SCORE.tolist(), strict=True)):
                    copy.write_row((k, int(y), p, [1 - p, p]))
            connection.execute("CREATE SCHEMA risk")
            connection.execute("CREATE TABLE risk.part AS SELECT * FROM scores LIMIT 9")
        url = f"postgresql://{at['user']}:secret@/postgres?host={at['host']}"
        for scores in ("p", "q"):
            table = _read(url, scores=[scores], table="scores")
            assert next(iter(table.scores.values())) == pytest.approx(SCORE)
            np.testing.assert_array_equal(table.labels, Y == 1)
            assert "secret" not in f"{table.source} {table.reading_code}"
        query = "SELECT y AS label, p FROM scores WHERE id < 30;"
        table = _read(url, label="label", query=query)
        assert table.scores["p"] == pytest.approx(SCORE[:30])
        with pytest.raises(ReportError, match=r"--table; it has scores, risk\.part"):
            _read(url)
        with pytest.raises(ReportError, match=r"by psycopg: syntax error") as caught:
            _read(url, query="SELEC y")
        assert "secret" not in str(caught.value)
        assert "\n" not in str(caught.value)
    url = "postgresql://u@localhost:1/x?password=secret"
    with pytest.raises(ReportError, match="onnection") as caught:
        _read(url, table="scores")
    assert "secret" not in str(caught.value)


def test_postgres_without_what_reads_it(monkeypatch):
    monkeypatch.setattr("skcalib._report._database.find_spec", lambda _: None)
    with pytest.raises(ReportError, match=r"psycopg\[binary\].*INSTALL postgres"):
        _read("postgresql://localhost/x", table="scores")
