"""Date a drift in one group from monthly batches, with monitors that a service
stores as JSON.

Labels arrive late, so each batch is processed as a whole at the end of its month. The
service may restart at any time: it reads the monitors, updates them with a batch, and
writes them back.
"""

import json
import tempfile
from pathlib import Path

import numpy as np

from skcalib.export import from_dict, to_dict
from skcalib.monitoring import CalibrationMonitor, GroupMonitors

SEGMENTS = ["cards", "loans", "mortgages"]
MONTHS = [f"{year}-{month:02d}" for year in (2024, 2025) for month in range(1, 13)]


def batch(month, rng, n=1500, drift_from="2025-04"):
    """Return the scores, labels and groups of a month. From April 2025 onward, loans
    default more often than predicted.
    """
    scores, segment = rng.beta(2, 8, n), rng.choice(SEGMENTS, n)
    log_odds = np.log(scores / (1 - scores)) + 0.7 * (
        (segment == "loans") & (month >= drift_from)
    )
    return scores, rng.random(n) < 1 / (1 + np.exp(-log_odds)), segment


def month_of_the_service(path, month, scores, labels, segment):
    """Read the monitors if the file exists, update them with a month, and write and
    return them.
    """
    monitors = GroupMonitors(CalibrationMonitor(restarts=True))
    if path.exists():
        monitors = from_dict(json.loads(path.read_text("utf-8")))
    monitors.partial_fit(scores, labels, segment, time=month)
    path.write_text(json.dumps(to_dict(monitors)), encoding="utf-8")
    return monitors


def main(folder):
    """Return the month of the alarm and the final monitors."""
    rng, alarm = np.random.default_rng(0), None
    for month in MONTHS:
        monitors = month_of_the_service(
            folder / "monitors.json", month, *batch(month, rng)
        )
        if monitors.alarm_ and alarm is None:
            alarm = month
            print(f"Alarm in {month}:")
            print(monitors.table_.to_frame().to_string())
    return alarm, monitors


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
