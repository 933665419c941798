"""A recalibrator that Spark fits, as a new column of a Spark frame and as SQL: python
doc/examples/spark_to_sql.py LOG.

LOG is a folder of Parquet files with the label `clicked` and the probability `p`.
"""

import sys

from pyspark.sql import SparkSession

from skcalib import PlattScaling
from skcalib.binning import EqualMass
from skcalib.engines import PredictionTable
from skcalib.export import to_sql
from skcalib.metrics import calibration_error


def main(folder):
    """Fit, write the calibrated column, measure it; return the expression and the
    errors before and after.
    """
    spark = SparkSession.builder.getOrCreate()
    log = spark.read.parquet(f"{folder}/log.parquet")
    table = PredictionTable(log, label="clicked", score="p")
    platt = table.fit(PlattScaling())  # sums on the cluster, the fit here

    # a Spark frame with one more column
    calibrated = table.apply(platt, output="p_calibrated")
    calibrated.write.mode("overwrite").parquet(f"{folder}/calibrated.parquet")
    after = PredictionTable(
        spark.read.parquet(f"{folder}/calibrated.parquet"),
        label="clicked",
        score="p_calibrated",
    )

    # for a query, wherever the scores are
    expression = to_sql(platt, score="p", dialect="spark")
    errors = [
        calibration_error(one.bin_statistics(EqualMass(15)), norm=1)
        for one in (table, after)
    ]
    return expression, errors


if __name__ == "__main__":
    print(*main(sys.argv[1]), sep="\n")
