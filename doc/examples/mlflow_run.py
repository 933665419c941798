"""Calibration in MLflow: log the error as a metric, the diagram as a figure and the
report as an artefact.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd

from skcalib.displays import ReliabilityDisplay
from skcalib.metrics import calibration_error_interval


def log_calibration(y, scores, folder, step=None):
    """Log the calibration of scores to the active run."""
    interval = calibration_error_interval(y, scores, random_state=0)
    for name, value in zip(("estimate", "low", "high"), interval, strict=True):
        mlflow.log_metric(f"calibration_error_{name}", value, step=step)
    mlflow.log_figure(
        ReliabilityDisplay.from_predictions(y, scores).figure_, "reliability.png"
    )
    table, page = folder / "predictions.csv", folder / "report.html"
    pd.DataFrame({"y": y, "p": scores}).to_csv(table, index=False)
    command = [
        sys.executable,
        "-m",
        "skcalib",
        "report",
        table,
        "--label",
        "y",
        "--score",
        "p",
        "-o",
        page,
    ]
    subprocess.run(command, check=True)
    mlflow.log_artifact(str(page))


def main(folder):
    """Log one run to a database, with artefacts in a folder, and return its id."""
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    rng = np.random.default_rng(0)
    scores = rng.beta(1, 3, 3000)
    y = (rng.random(3000) < scores**1.3).astype(int)
    experiment = mlflow.create_experiment(
        "calibration", artifact_location=(folder / "artifacts").as_uri()
    )
    with mlflow.start_run(experiment_id=experiment) as run:
        log_calibration(y, scores, folder)
    return run.info.run_id


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        main(Path(name))
