"""Recalibrate a log by country and write it as Parquet, without loading rows into
Python:
``python by_country.py [ROWS] [duckdb|spark]``.

A click model is calibrated in France, overconfident in Italy and underconfident in
Poland. Each country gets its own map, and a country with few rows gets nearly the
pooled map. The maps are fitted and applied in the engine.
"""

import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np

from skcalib import GroupwiseRecalibrator, PlattScaling
from skcalib.binning import EqualMass
from skcalib.engines import PredictionTable, scan
from skcalib.metrics import calibration_by_group

# The log-odds of a click are `slope` times those of the score. One row in a thousand
# is from Malta.
LOG = """
SELECT p, country, CAST(u < 1 / (1 + exp(-slope * ln(p / (1 - p)))) AS TINYINT) AS clicked FROM (
  SELECT least(greatest(p, 1e-9), 1 - 1e-9) AS p, u, CASE WHEN c < 1e-3 THEN 'MT' WHEN c < .4 THEN 'FR' WHEN c < .8
    THEN 'IT' ELSE 'PL' END AS country, CASE WHEN c < .4 THEN 1 WHEN c < .8 THEN .6 ELSE 1.4 END AS slope
  FROM (SELECT random() AS p, random() AS u, random() AS c FROM range({rows})))
"""  # noqa: E501


def write_log(folder, rows, files=4):
    """Write a log that consists of several Parquet files."""
    duckdb.sql("SELECT setseed(0.5)")
    for number in range(files):
        query = LOG.format(rows=rows // files)
        duckdb.sql(
            f"COPY ({query}) TO '{folder / f'part-{number}.parquet'}' (FORMAT parquet)"
        )


def opened(path, engine):
    """Open the files of a folder as a table of the engine."""
    if engine == "duckdb":
        return scan(f"{path}/*.parquet")
    from pyspark.sql import SparkSession

    return SparkSession.builder.master("local[2]").getOrCreate().read.parquet(str(path))


def errors(path, engine, score):
    """Return the error of each country, from sums that the engine computes."""
    table = PredictionTable(
        opened(path, engine), label="clicked", score=score, by="country"
    )
    found = calibration_by_group(table.bin_statistics(EqualMass(15)), random_state=0)
    return dict(zip(found.group.tolist(), found.error.tolist(), strict=True))


def calibrate(log, calibrated, engine):
    """Fit by country, write the calibrated log, and return the maps."""
    start = time.perf_counter()
    table = PredictionTable(
        opened(log, engine), label="clicked", score="p", by="country"
    )
    maps = table.fit(GroupwiseRecalibrator(PlattScaling(), groups=None, shrinkage=1000))
    print(
        f"fitted {len(maps.groups_)} countries in {time.perf_counter() - start:.1f} s"
    )
    start = time.perf_counter()
    result = table.apply(maps, output="p_calibrated")
    if engine == "duckdb":
        calibrated.mkdir()
        result.write_parquet(f"{calibrated}/part-0.parquet")
    else:
        result.write.parquet(str(calibrated))
    print(f"wrote the calibrated rows in {time.perf_counter() - start:.1f} s")
    return maps


def main(folder, rows=20_000_000, engine="duckdb"):
    """Write and calibrate a log. Return the errors before and after, and the maps."""
    log, calibrated = folder / "log", folder / "calibrated"
    log.mkdir()
    write_log(log, rows)
    maps = calibrate(log, calibrated, engine)
    start = time.perf_counter()
    before, after = errors(log, engine, "p"), errors(calibrated, engine, "p_calibrated")
    print(f"compared in {time.perf_counter() - start:.1f} s")
    for country, error in before.items():
        print(f"{country}: error {error:.4f} before, {after[country]:.4f} after")
    assert np.isfinite(list(after.values())).all()
    return before, after, maps


def largest_difference(one, other):
    """Return the largest difference between the probabilities of two calibrated logs
    with the same rows.
    """
    files = f"['{one}/*.parquet', '{other}/*.parquet']"
    spread = "max(p_calibrated) - min(p_calibrated) AS d"
    rows = (
        f"SELECT count(*) AS n, {spread} FROM read_parquet({files}) GROUP BY p, country"
    )
    [(same_rows, difference)] = duckdb.sql(
        f"SELECT bool_and(n % 2 = 0), max(d) FROM ({rows})"
    ).fetchall()
    assert same_rows
    return difference


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(
            Path(name), int(sys.argv[1]) if sys.argv[1:] else 20_000_000, *sys.argv[2:3]
        )
