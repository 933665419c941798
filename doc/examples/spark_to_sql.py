"""Fit a recalibrator in Spark, and apply it as a new column and as SQL: python
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
    """Fit the map, write the calibrated column and evaluate it. Return the expression
    and the errors before and after.
    """
    spark = SparkSession.builder.getOrCreate()
    log = spark.read.parquet(f"{folder}/log.parquet")
    table = PredictionTable(log, label="clicked", score="p")
    platt = table.fit(PlattScaling())  # Spark computes the sums, Python the fit

    # a Spark frame with an additional column
    calibrated = table.apply(platt, output="p_calibrated")
    calibrated.write.mode("overwrite").parquet(f"{folder}/calibrated.parquet")
    after = PredictionTable(
        spark.read.parquet(f"{folder}/calibrated.parquet"),
        label="clicked",
        score="p_calibrated",
    )

    # for a query in any database that has the scores
    expression = to_sql(platt, score="p", dialect="spark")
    errors = [
        calibration_error(one.bin_statistics(EqualMass(15)), norm=1)
        for one in (table, after)
    ]
    return expression, errors


if __name__ == "__main__":
    print(*main(sys.argv[1]), sep="\n")
