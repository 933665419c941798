"""What kind of file it is, by its first bytes; packed files are unpacked."""

import bz2
import codecs
import gzip
import lzma
import re
import shutil
import zipfile
from pathlib import Path

from skcalib._report._error import ReportError

_FIRST_BYTES = 1024  # that tell the kind of a file
_MOST_LAYERS = 3  # a ZIP archive of a packed file has two
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
_TABLES = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow stream",
    b"SQLite format 3\x00": "sqlite",
}
# What is recognised, but not read, and how to turn it into a file that is.
_AS_CSV = "save it as CSV, or as Parquet"
_WITH_PANDAS = "write it as CSV, for example with pandas: pd.{}({!r}).to_csv(...)"
_STATA = ("a Stata file", _WITH_PANDAS.format("read_stata", "FILE"))
_SAS = ("a SAS file", _WITH_PANDAS.format("read_sas", "FILE"))
_OTHERS = {
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook (.xls)", "save it as .xlsx"),
    b"FEA1": ("a version 1 Feather file", "write it again as Feather or Parquet"),
    b"\x89HDF": ("an HDF5 file", _WITH_PANDAS.format("read_hdf", "FILE")),
    b"ORC": ("an ORC file", _WITH_PANDAS.format("read_orc", "FILE")),
    b"Obj\x01": ("an Avro file", _AS_CSV),
    b"\x93NUMPY": ("a NumPy array", "write it as CSV with a header line"),
    b"$FL2": ("an SPSS file", _WITH_PANDAS.format("read_spss", "FILE")),
    b"<stata_dta>": _STATA,
    **{
        bytes((version, order, 1, 0)): _STATA
        for version in range(110, 116)
        for order in (1, 2)
    },
    b"\x00" * 12 + b"\xc2\xea\x81\x60": _SAS,
    b"HEADER RECORD*******": _SAS,
    b"RDX3": ("an R workspace", "write the table with write.csv()"),
    b"RDX2": ("an R workspace", "write the table with write.csv()"),
    b"X\n\x00\x00": ("an R object (.rds)", "write the table with write.csv()"),
    b"%PDF": ("a PDF", "copy its table into a CSV file"),
    b"\x89PNG": ("a picture (PNG)", "name the file that contains the scores"),
    b"\xff\xd8\xff": ("a picture (JPEG)", "name the file that contains the scores"),
    b"7z\xbc\xaf\x27\x1c": ("a 7-Zip archive", "unpack it"),
    b"Rar!": ("a RAR archive", "unpack it"),
    **{bytes((0x80, version)): ("a Python pickle", _AS_CSV) for version in range(2, 6)},
}
_HTML = (b"<!doctype html", b"<html", b"<table", b"<?xml")


def format_of(path):
    """Return the kind of a plain file: "parquet", "arrow", "arrow stream", "sqlite",
    "duckdb", "excel" or "text". Raise for a kind that is known, but not read.
    """
    first = _first_bytes(path)
    if not first.strip():
        raise ReportError(f"{path} is empty: its first line must name the columns.")
    for magic, kind in _TABLES.items():
        if first.startswith(magic):
            return kind
    if first[8:12] == b"DUCK":
        return "duckdb"
    if first.startswith(b"PK\x03\x04"):
        return "excel"
    _refuse_others(path, first)
    return "text"


def _refuse_others(path, first):
    """Raise if the first bytes of a file are those of a kind that is known, but not
    read.
    """
    if first[257:262] == b"ustar":
        raise ReportError(
            f"{path} is a TAR archive: unpack it and pass the file in it."
        )
    for magic, (kind, cure) in _OTHERS.items():
        if first.startswith(magic):
            raise ReportError(f"{path} is {kind}, which cannot be read: {cure}.")
    text = first.removeprefix(codecs.BOM_UTF8).lstrip().lower()
    if re.match(rb"(%.*\s+)*@relation\b", text):
        raise ReportError(
            f"{path} is a Weka ARFF file, which cannot be read: {_AS_CSV}."
        )
    if text.startswith(_HTML):
        raise ReportError(
            f"{path} is a web page (HTML or XML), not a text table: {_AS_CSV}."
        )


def unpacked(path, folder, member=None):
    """Return the path of a file without its packing (gzip, bzip2, xz, zstandard, ZIP),
    and the names of what was unpacked, as a list.

    Parameters
    ----------
    path : Path
        The file as the user has it; it is returned itself if it is not packed.
    folder : Path
        Where unpacked files are written.
    member : str, default=None
        Which file of a ZIP archive is meant.
    """
    unpacked_as = []
    for _ in range(_MOST_LAYERS):
        first = _first_bytes(path)
        packing = next(
            (kind for magic, kind in _PACKED.items() if first.startswith(magic)), None
        )
        is_archive = packing is None and first.startswith(b"PK")
        if packing is None and not is_archive:
            break
        target = folder / f"{len(unpacked_as)}_unpacked"
        try:
            if is_archive:
                name = _member(path, member)
                if name is None:
                    break  # a workbook is a ZIP archive that is read as it is
                with zipfile.ZipFile(path) as archive, archive.open(name) as source:
                    _copy(source, target)
                unpacked_as.append(f"ZIP archive of {name}")
            else:
                with _decompressed(path, packing) as source:
                    _copy(source, target)
                unpacked_as.append(packing)
        except (EOFError, OSError, zipfile.BadZipFile, lzma.LZMAError) as error:
            kind = "ZIP" if is_archive else packing
            raise ReportError(
                f"{path} is compressed ({kind}), but damaged or truncated ({error}):"
                " copy or download it again."
            ) from error
        except RuntimeError as error:  # zipfile's error for a password
            raise ReportError(
                f"{path} is a ZIP archive with a password: unpack it first."
            ) from error
        path = target
    return path, unpacked_as


def is_packed(path):
    """Return whether a file is packed, other than as a ZIP archive."""
    return _first_bytes(path).startswith(tuple(_PACKED))


def _first_bytes(path):
    with path.open("rb") as file:
        return file.read(_FIRST_BYTES)


def _decompressed(path, packing):
    """Return an open file with the decompressed bytes of a file."""
    if packing == "zstd":
        from pyarrow import input_stream

        return input_stream(str(path), compression="zstd")
    return {"gzip": gzip, "bz2": bz2, "xz": lzma}[packing].open(path, "rb")


def _copy(source, target):
    with target.open("wb") as file:
        shutil.copyfileobj(source, file)


def _member(path, wanted):
    """Return the name of the one file of a ZIP archive, or of the `wanted` one; None
    for a workbook of Excel, which is a ZIP archive as well.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
    except zipfile.BadZipFile as error:
        raise ReportError(
            f"{path} looks like a ZIP archive or an Excel workbook, but is damaged"
            f" ({error}): save or download it again."
        ) from error
    if any(name.startswith("xl/") for name in names):
        return None
    if any(name.startswith("word/") for name in names):
        raise ReportError(f"{path} is a Word document: {_AS_CSV}.")
    if "mimetype" in names and "content.xml" in names:
        raise ReportError(
            f"{path} is an OpenDocument file: save the table as .xlsx or as CSV."
        )
    # What other systems add to an archive is no data.
    names = [
        name
        for name in names
        if not name.startswith("__MACOSX/") and not Path(name).name.startswith(".")
    ]
    if names and all(name.endswith(".npy") for name in names):
        raise ReportError(
            f"{path} holds arrays of NumPy ({', '.join(names[:4])}): write them as the"
            " columns of a CSV file."
        )
    if wanted is not None and wanted not in names:
        raise ReportError(
            f"{path} has no file {wanted!r}; it holds {', '.join(names[:12])}."
        )
    if wanted is None and len(names) != 1:
        held = f"with {len(names)} files: give one of {', '.join(names[:12])}"
        if not names:
            held = "without a file"
        else:
            held += " with --table"
        raise ReportError(f"{path} is a ZIP archive {held}.")
    return wanted or names[0]
