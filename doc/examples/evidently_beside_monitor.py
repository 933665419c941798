"""Evidently next to a monitor: Evidently detects drift of the scores, and the monitor
detects loss of calibration.

Evidently needs no labels, and its test says nothing about them. The monitor needs
labels. From August onward, events are more frequent than predicted, and the scores
alone do not show this.
"""

import numpy as np
import pandas as pd
from evidently import DataDefinition, Dataset, Report
from evidently.metrics import ValueDrift

from skcalib.monitoring import CalibrationMonitor, GroupMonitors

MONTHS = [f"2025-{month:02d}" for month in range(1, 13)]


def score_drift(reference, current):
    """Return Evidently's p-value for drift of the scores."""
    definition = DataDefinition(numerical_columns=["p"])
    data = [
        Dataset.from_pandas(pd.DataFrame({"p": p}), data_definition=definition)
        for p in (current, reference)
    ]
    found = (
        Report([ValueDrift(column="p", method="ks", threshold=0.001)]).run(*data).dict()
    )
    return float(found["metrics"][0]["value"])


def main():
    """Return the months with drifting scores, and the table of the monitors."""
    rng, drifted, monitors = (
        np.random.default_rng(0),
        [],
        GroupMonitors(CalibrationMonitor(restarts=True)),
    )
    reference = rng.beta(2, 6, 2000)
    for month in MONTHS:
        scores = rng.beta(2, 6, 2000)
        y = rng.random(2000) < np.minimum(
            scores * (1.3 if month >= "2025-08" else 1), 1
        )
        if score_drift(reference, scores) < 0.001:
            drifted.append(month)
        monitors.partial_fit(scores, y, np.full(2000, "all"), time=month)
    print(f"Evidently: the scores drift in {drifted or 'no month'}.")
    print(monitors.table_.to_frame().to_string())
    return drifted, monitors.table_


if __name__ == "__main__":
    main()
