"""Many classes with few rows each: ``python -m benchmarks.many_classes --data DIR``.

The data are CLINC150 (150 classes, 3,000 calibration rows) and CIFAR-100 (random halves
of 10,000 rows). The table shows the log-loss on held-out rows divided by that of
temperature scaling. The intervals are for a ratio of paired means over the test rows.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.papers._intervals import ratio
from skcalib import (
    BetaCalibration,
    ClasswiseTemperatureScaling,
    DirichletCalibration,
    GroupwiseRecalibrator,
    MatrixScaling,
    PlattScaling,
    QuadraticScaling,
    StackedRecalibrator,
    TemperatureScaling,
    VectorScaling,
)
from skcalib._rows.links import clip_probability

_METHODS = {
    "VectorScaling(alpha=1)": VectorScaling(1.0),
    "MatrixScaling(alpha=1)": MatrixScaling(1.0),
    "DirichletCalibration(alpha=1)": DirichletCalibration(1.0),
    'DirichletCalibration(alpha="auto")': DirichletCalibration("auto"),
    "ClasswiseTemperatureScaling": ClasswiseTemperatureScaling(),
    "ClasswiseTemperatureScaling(inf)": ClasswiseTemperatureScaling(np.inf),
    "GroupwiseRecalibrator": GroupwiseRecalibrator(),
    "GroupwiseRecalibrator(shrinkage=200)": GroupwiseRecalibrator(shrinkage=200.0),
    "QuadraticScaling": QuadraticScaling(),
    "QuadraticScaling(class_pooling=0)": QuadraticScaling(class_pooling=0.0),
    "BetaCalibration": BetaCalibration(),
    "BetaCalibration(class_pooling=0)": BetaCalibration(class_pooling=0.0),
    "PlattScaling(class_pooling=1)": PlattScaling(class_pooling=1.0),
    "PlattScaling(class_pooling=0)": PlattScaling(class_pooling=0.0),
    "StackedRecalibrator": StackedRecalibrator(),
}


def main(argv=None):
    """Measure and print the table; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.many_classes", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        help="folder of the real data (with text/ and vision/)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print JSON, a line for each row, in place of the table",
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=_METHODS,
        default=list(_METHODS),
        help="only these",
    )
    options = parser.parse_args(argv)
    for name, *parts in load(options.data):
        for row in run(name, *parts, options.methods):
            line = (
                "{data:30} {method:36} {ratio:.4f} ({low:.4f} to {high:.4f})"
                " {seconds:6.1f} s".format(**row)
            )
            print(json.dumps(row) if options.json else line, flush=True)
    return 0


def load(data):
    """Yield the name, scores and labels of the rows to fit on, and of the others."""
    folder = np.load(data / "text" / "clinc150.npz", allow_pickle=False)
    for model in sorted({key.rsplit("/", 1)[0] for key in folder.files}):
        parts = ("probs_cal", "labels_cal", "probs_test", "labels_test")
        yield model, *(folder[f"{model}/{part}"] for part in parts)
    folder = np.load(data / "vision" / "cifar100_wideresnet164.npz", allow_pickle=False)
    for seed in range(2):
        fit, test = np.array_split(
            np.random.default_rng(seed).permutation(len(folder["labels"])), 2
        )
        yield (
            f"cifar100, halves {seed}",
            *(folder[key][rows] for rows in (fit, test) for key in ("probs", "labels")),
        )


def run(name, scores, labels, test_scores, test_labels, methods):
    """Yield a row for each method: its log-loss over that of temperature scaling."""
    reference = _log_losses(
        TemperatureScaling().fit(scores, labels).predict_proba(test_scores), test_labels
    )
    for method in methods:
        began = time.perf_counter()
        losses = _log_losses(
            _METHODS[method].fit(scores, labels).predict_proba(test_scores), test_labels
        )
        row = dict(
            zip(
                ("ratio", "low", "high"),
                ratio(losses, reference, paired=True),
                strict=True,
            )
        )
        yield {
            "data": name,
            "method": method,
            **row,
            "seconds": time.perf_counter() - began,
        }


def _log_losses(proba, labels):
    return -np.log(clip_probability(proba)[np.arange(len(labels)), labels])


if __name__ == "__main__":
    sys.exit(main())
