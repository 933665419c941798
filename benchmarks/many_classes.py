"""Many classes with few rows each: ``python -m benchmarks.many_classes --data DIR``.

CLINC150 (150 classes, 3,000 rows to fit on) and CIFAR-100 (random halves of 10,000 rows). The figure is the log-loss on
the rows that were not fitted over that of temperature scaling, all methods with their defaults. It is judged as it is;
the interval, for a ratio of means over the test rows, paired, says how far other rows may be from it. Not judged are
Platt scaling, which by default fits each class alone, and what that costs with the other methods.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.papers._report import claim, print_json, print_table, ratio_interval
from skcalib import (
    BetaCalibration,
    ClasswiseTemperatureScaling,
    DirichletCalibration,
    GroupwiseRecalibrator,
    MatrixScaling,
    PlattScaling,
    QuadraticScaling,
    TemperatureScaling,
    VectorScaling,
)
from skcalib._rows.links import clip_probability

_METHODS = {
    "VectorScaling": VectorScaling(),
    "MatrixScaling": MatrixScaling(),
    "DirichletCalibration": DirichletCalibration(),
    "ClasswiseTemperatureScaling": ClasswiseTemperatureScaling(),
    "GroupwiseRecalibrator": GroupwiseRecalibrator(),
    "GroupwiseRecalibrator(shrinkage=200)": GroupwiseRecalibrator(shrinkage=200.0),
    "QuadraticScaling": QuadraticScaling(),
    "BetaCalibration": BetaCalibration(),
}
_NOT_JUDGED = {
    'DirichletCalibration(alpha="auto")': DirichletCalibration("auto"),
    "PlattScaling": PlattScaling(),
    "PlattScaling(class_pooling=1)": PlattScaling(class_pooling=1.0),
    "ClasswiseTemperatureScaling(inf)": ClasswiseTemperatureScaling(np.inf),
    "QuadraticScaling(class_pooling=0)": QuadraticScaling(class_pooling=0.0),
    "BetaCalibration(class_pooling=0)": BetaCalibration(class_pooling=0.0),
}
_LIMIT = 1.01


def main(argv=None):
    """Measure and print the table; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.many_classes", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the real data (with text/ and vision/)")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    options = parser.parse_args(argv)
    rows = [row for name, *parts in load(options.data) for row in run(name, *parts)]
    (print_json if options.json else print_table)(rows, sys.stdout)
    return 0


def load(data):
    """Yield the name, scores and labels of the rows to fit on, and of the others."""
    folder = np.load(data / "text" / "clinc150.npz", allow_pickle=False)
    for model in sorted({key.rsplit("/", 1)[0] for key in folder.files}):
        parts = ("probs_cal", "labels_cal", "probs_test", "labels_test")
        yield model, *(folder[f"{model}/{part}"] for part in parts)
    folder = np.load(data / "vision" / "cifar100_wideresnet164.npz", allow_pickle=False)
    for seed in range(2):
        fit, test = np.array_split(np.random.default_rng(seed).permutation(len(folder["labels"])), 2)
        yield (
            f"cifar100, halves {seed}",
            *(folder[key][rows] for rows in (fit, test) for key in ("probs", "labels")),
        )


def run(name, scores, labels, test_scores, test_labels):
    """Return a row for each method."""
    reference = _log_losses(TemperatureScaling().fit(scores, labels).predict_proba(test_scores), test_labels)
    rows = []
    for method, recalibrator in (_METHODS | _NOT_JUDGED).items():
        began = time.perf_counter()
        losses = _log_losses(recalibrator.fit(scores, labels).predict_proba(test_scores), test_labels)
        seconds = time.perf_counter() - began
        ratio, low, high = ratio_interval(losses, reference, paired=True)
        quantity = f"{name}: log-loss of {method} / temperature scaling ({seconds:.1f} s)"
        limit, text = (_LIMIT, f"at most {_LIMIT}") if method in _METHODS else (np.inf, "")
        judged = claim(quantity, text, ratio, ratio, ratio, at_most=limit)
        rows.append(replace(judged, low=low, high=high, verdict=judged.verdict if text else ""))
    return rows


def _log_losses(proba, labels):
    return -np.log(clip_probability(proba)[np.arange(len(labels)), labels])


if __name__ == "__main__":
    sys.exit(main())
