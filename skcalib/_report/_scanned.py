"""Many files, or one of many rows, read by DuckDB: all of them, or a sample."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from skcalib._report._reader import ReportError, check_names
from skcalib.export._sql_text import DIALECTS

quoted = DIALECTS["duckdb"].identifier  # the name of a column as DuckDB writes it
_PARQUET = (".parquet", ".pq")
_MOST_ROWS = 2_000_000  # that are held in memory as they are
_MOST_SCORES = 20_000_000  # of all classes together
_LARGE_CSV = 2**28  # bytes, from which a CSV file is not read by pandas
_LARGE_PACKED_CSV = 2**26


@dataclass(frozen=True, eq=False)
class ScannedFile:
    """A file, or many, as a lazy table of DuckDB."""

    path: str
    relation: object
    n_rows: int

    @staticmethod
    def takes(path):
        """Return whether a path is for DuckDB: a glob, Parquet with many rows, or a large CSV file."""
        if find_spec("duckdb") is None or find_spec("narwhals") is None:
            return False
        file, name = Path(path), str(path).lower()
        if any(character in name for character in "*?[") and not file.exists():
            return True
        if not file.is_file():
            return False
        if name.endswith(_PARQUET):
            return _n_rows(_opened(path)) > _MOST_ROWS
        return file.stat().st_size > (_LARGE_PACKED_CSV if name.endswith(".gz") else _LARGE_CSV)

    @classmethod
    def opened(cls, path):
        """Open a path."""
        relation = _opened(path)
        return cls(str(path), relation, _n_rows(relation))

    @property
    def names(self):
        """Names of the columns."""
        return list(self.relation.columns)

    def most_rows(self, models):
        """Return how many rows are held in memory as they are."""
        return min(_MOST_ROWS, _MOST_SCORES // max(len(model.columns) for model in models))

    def sample_note(self, models):
        """Return the sentence that explains what a report of a sample is about."""
        return (
            f"The table has {self.n_rows:,} rows. The report is about a random sample of them: about "
            f"{self.most_rows(models):,}."
        )

    def columns(self, names, models, seed):
        """Return columns as arrays, missing values as NaN or None; of more rows than are held in memory a sample."""
        self.check(names)
        relation, most = self.relation, self.most_rows(models)
        wanted = ", ".join(quoted(name) for name in dict.fromkeys(names))
        if self.n_rows > most:
            # The hash of a row's number decides: the same sample each time, whatever the threads do.
            share = int(2**32 * most / self.n_rows)
            rows = f"SELECT {wanted}, row_number() OVER () AS skcalib_row FROM skcalib_file"
            chosen = f"hash(skcalib_row + {int(seed) * 2**32}) % {2**32} < {share}"
            relation = relation.query("skcalib_file", f"SELECT {wanted} FROM ({rows}) WHERE {chosen}")
        else:
            relation = relation.project(wanted)
        return {name: _plain(values) for name, values in relation.fetchnumpy().items()}

    def check(self, names):
        """Refuse columns that are not there."""
        check_names(self.path, names, self.names)


def _opened(path):
    from skcalib.engines import scan

    try:
        return scan(str(path))
    except (FileNotFoundError, ValueError) as error:
        raise ReportError(" ".join(str(error).split())) from error


def _n_rows(relation):
    return relation.aggregate("count(*)").fetchall()[0][0]


def _plain(column):
    if not np.ma.is_masked(column):
        return np.asarray(column)
    if column.dtype.kind in "iuf":
        return np.ma.filled(column.astype(np.float64), np.nan)
    return np.array(column.tolist(), dtype=object)
