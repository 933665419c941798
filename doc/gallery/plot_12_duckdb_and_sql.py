"""
From a DuckDB table to SQL
==========================

A log of predictions may not fit into memory. `PredictionTable` computes sums in the
engine, and derives every metric from them. A recalibrator fitted this way becomes an
SQL expression that runs in the database.
"""

# %%
# Write a Parquet file with 200,000 rows. The scores are too high.
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(0)
p = rng.beta(1, 5, 200_000)
folder = TemporaryDirectory()
path = Path(folder.name) / "log.parquet"
pq.write_table(
    pa.table({"p": p, "clicked": (rng.random(len(p)) < p**1.3).astype(int)}), path
)

# %%
# DuckDB reads the file and computes the sums of 20 bins. The interval needs only these
# sums.
from skcalib.binning import EqualWidth
from skcalib.engines import PredictionTable, scan
from skcalib.metrics import calibration_error_interval

log = PredictionTable(scan(str(path)), label="clicked", score="p")
before = log.bin_statistics(EqualWidth(20))
print(calibration_error_interval(before, norm=1, random_state=0))

# %%
# Fit the recalibrator to the table, and write its map as SQL.
from skcalib import PlattScaling
from skcalib.export import to_sql

recalibrator = log.fit(PlattScaling())
expression = to_sql(recalibrator, score="p", dialect="duckdb")
print(expression)

# %%
# The database computes the new column. The diagrams are drawn from bin sums, before and
# after recalibration.
import duckdb

duckdb.sql(
    f"COPY (SELECT *, {expression} AS calibrated FROM '{path}') TO"
    f" '{path.with_name('new.parquet')}'"
)
new = PredictionTable(
    scan(str(path.with_name("new.parquet"))), label="clicked", score="calibrated"
)
after = new.bin_statistics(EqualWidth(20))
print(calibration_error_interval(after, norm=1, random_state=0))

from skcalib.displays import ReliabilityDisplay

display = ReliabilityDisplay.from_statistics(
    {"before": before, "after": after}, layout="columns", random_state=0
)
display.ax_[0].set_ylabel("Frequency of a click")
for histogram in display.histogram_ax_:
    histogram.set_xlabel("Probability of a click")
folder.cleanup()

# %%
# **See also:** :doc:`/large_tables`, :doc:`/deploying`. Reference: `PredictionTable`,
# `to_sql`, `BinStatistics`.
