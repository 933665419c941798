"""Rows of the table of levels: their file, and the page that is made of them."""

import json
from dataclasses import dataclass

__all__ = ["Row", "read_rows", "with_tables"]


@dataclass(frozen=True)
class Row:
    """A promise on a shape of data: how often it was kept, and the standard error of that.

    `measured` is the coverage of an interval, the share of calibrated samples that a test rejects, or the share of
    samples whose certified threshold breaks its promise on new rows; `accepted` is then the mean share of new rows at
    or above it. The verdict is "holds" unless the promise is missed by more than two standard errors.
    """

    kind: str
    promise: str
    shape: str
    promised: float
    measured: float
    standard_error: float
    runs: int
    verdict: str
    accepted: float | None = None


def read_rows(path):
    """Return the rows of a file by promise and shape, of each the last one with the most samples."""
    rows = {}
    for line in path.read_text().splitlines() if path and path.exists() else ():
        row = Row(**json.loads(line))
        if row.runs >= getattr(rows.get((row.promise, row.shape)), "runs", 0):
            rows[row.promise, row.shape] = row
    return rows


def with_tables(page, rows):
    raise NotImplementedError
