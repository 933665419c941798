"""From a certificate to an alarm: bin tied scores with a guarantee, apply the bins in
DuckDB, and monitor the segments.

A boosted model with few trees gives many rows the same score.
`UniformMassBinning(randomize=True)` breaks these ties at random. Each random number is
derived from the id of its row, so that Python and the database use the same numbers.
"""

import duckdb
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from skcalib import UniformMassBinning
from skcalib.export import to_sql
from skcalib.monitoring import CalibrationMonitor, GroupMonitors

SEGMENTS = ["cards", "loans", "mortgages"]
MONTHS = [f"2025-{month:02d}" for month in range(1, 13)]


def draw(n, rng, month=0):
    """Draw one month of customers. From August (8) onward, loans default more often."""
    rows = pd.DataFrame(rng.normal(size=(n, 3)), columns=["income", "debt", "age"])
    rows["segment"] = rng.choice(SEGMENTS, n)
    rows["id"] = [f"{month:02d}-{number:06d}" for number in range(n)]
    log_odds = (
        rows["debt"]
        - rows["income"]
        - 1
        + 0.8 * ((rows["segment"] == "loans") & (month >= 8))
    )
    rows["default"] = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    return rows


def main():
    """Run the example. Return the certificate, the largest difference between SQL and
    Python, and the monitors.
    """
    rng = np.random.default_rng(0)
    features = ["income", "debt", "age"]
    training, calibration = draw(4000, rng), draw(6000, rng)
    classifier = HistGradientBoostingClassifier(
        max_iter=15, max_leaf_nodes=4, random_state=0
    )
    classifier.fit(training[features], training["default"])
    scores = classifier.predict_proba(calibration[features])[:, 1]
    print(f"{len(scores):,} rows have {len(np.unique(scores)):,} different scores.")

    recalibrator = UniformMassBinning(n_bins=10, randomize=True, random_state=0).fit(
        scores, calibration["default"]
    )
    certificate = recalibrator.certificate()
    print(certificate)

    # Each month is scored in the database and compared with Python. The labels arrive
    # later.
    expression = to_sql(recalibrator, score="p", ids="id", dialect="duckdb")
    # restarts detect a change sooner after a long calibrated period
    monitors = GroupMonitors(CalibrationMonitor(restarts=True))
    largest_difference = 0.0
    for number, month in enumerate(MONTHS, start=1):
        rows = draw(3000, rng, number)
        rows["p"] = classifier.predict_proba(rows[features])[:, 1]
        rows = duckdb.sql(
            f"SELECT *, {expression} AS calibrated FROM rows ORDER BY id"
        ).df()
        expected = recalibrator.predict_proba(
            rows["p"].to_numpy(), ids=rows["id"].to_numpy()
        )[:, 1]
        largest_difference = max(
            largest_difference, np.abs(rows["calibrated"] - expected).max()
        )
        monitors.partial_fit(
            rows["calibrated"], rows["default"], rows["segment"], time=month
        )
    print(
        f"Largest difference between DuckDB and predict_proba: {largest_difference:.1e}"
    )
    print(monitors.table_.to_frame().to_string())
    return certificate, largest_difference, monitors


if __name__ == "__main__":
    main()
