"""The columns of the decision table for more than ten classes:
``python -m benchmarks.decision_table --data DIR``.

Each method is fitted to random parts of the calibration rows of fifteen models. Its
log-loss on held-out rows is compared with that of temperature scaling. All models of a
column have the same weight. ``benchmarks/data/decision_table.txt`` contains the latest
output.
"""

import argparse
import re
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from skcalib import (
    DirichletCalibration,
    Recalibrator,
    StackedRecalibrator,
    TemperatureScaling,
    VectorScaling,
)
from skcalib._rows.links import clip_probability

METHODS = {
    "VectorScaling(alpha=1)": VectorScaling(alpha=1),
    "VectorScaling()": VectorScaling(),
    "DirichletCalibration(alpha=1)": DirichletCalibration(alpha=1),
    "Recalibrator()": Recalibrator(),
    "StackedRecalibrator()": StackedRecalibrator(),
}
SIZES = (40, 150, 500, 2500, 6000)
_OF_THE_ARENA = [
    (name, model)
    for name in ("letter", "texture", "leaf_flavia")
    for model in ("rf", "hgb", "mlp", "svm")
]


def load(data):
    """Yield (column, name, scores and labels to fit on, scores and labels to test on).

    CIFAR-100 has no calibration part: 6,000 rows serve to fit, and 4,000 to test.
    """
    folder = np.load(data / "arena" / "mini_arena_multiclass_dev.npz")
    parts = ("probs_cal", "labels_cal", "probs_test", "labels_test")
    for name, model in _OF_THE_ARENA:
        yield "11 to 100", name, *(folder[f"{name}/{model}/{part}"] for part in parts)
    folder = np.load(data / "vision" / "cifar100_wideresnet164.npz")
    order = np.random.default_rng(0).permutation(len(folder["labels"]))
    scores, labels = folder["probs"][order], folder["labels"][order]
    yield (
        "11 to 100",
        "cifar100",
        scores[:6000],
        labels[:6000],
        scores[6000:],
        labels[6000:],
    )
    folder = np.load(data / "text" / "clinc150.npz")
    for model in ("lr", "mlp"):
        arrays = (folder[f"clinc150/{model}/{part}"] for part in parts)
        yield "more than 100", f"clinc150/{model}", *arrays


def log_loss(proba, labels):
    """Return the mean log-loss, with probabilities clipped as everywhere."""
    return -np.log(clip_probability(proba)[np.arange(len(labels)), labels]).mean()


def measure(scores, labels, test_scores, test_labels, size, rng):
    """Return the log-loss of each method over that of temperature scaling, for one
    random part of the rows; "uncalibrated" is among them.
    """
    part = rng.permutation(len(labels))[:size]

    def loss(recalibrator):
        fitted = recalibrator.fit(scores[part], labels[part])
        return log_loss(fitted.predict_proba(test_scores), test_labels)

    classes = np.arange(scores.shape[1])
    base = loss(TemperatureScaling(classes=classes))
    found = {"uncalibrated": log_loss(test_scores, test_labels) / base}
    for name, method in METHODS.items():
        found[name] = loss(method.set_params(classes=classes)) / base
    return found


RESULTS = Path(__file__).parent / "data" / "decision_table.txt"


def read(text):
    """Return {(column, size): {method: (mean, worst)}} from what `main` prints."""
    tables = {}
    for line in text.splitlines():
        head = re.fullmatch(r"(.+) classes, (\d+) samples", line)
        if head:
            table = tables.setdefault((head[1], int(head[2])), {})
        elif line:
            method, mean, worst = re.fullmatch(
                r"  (\S+) +([\d.]+)  worst +([\d.]+)", line
            ).groups()
            table[method] = float(mean), float(worst)
    return tables


def answers(found):
    """Return the methods that the page may name: temperature scaling, unless other
    methods gain more than 1 % on average and never lose more than 2 %; in that case,
    the methods within half a percent of the best of these.
    """
    better = {
        method: mean
        for method, (mean, worst) in found.items()
        if method in METHODS and mean < 0.99 and worst <= 1.02
    }
    if not better:
        return ["TemperatureScaling()"]
    best = min(better.values())
    return [method for method, mean in better.items() if mean <= best + 0.005]


def main(argv=None):
    """Print for each column, size and method the geometric mean of the ratios and the
    largest one; return the exit status.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.decision_table",
        description=__doc__.split("\n\n")[0],
    )
    parser.add_argument("--data", type=Path, required=True, help="the real data")
    parser.add_argument("--draws", type=int, default=2, help="parts of each size")
    options = parser.parse_args(argv)
    ratios = defaultdict(lambda: defaultdict(list))
    for column, name, *parts in load(options.data):
        for size in SIZES:
            if size > len(parts[1]):
                continue
            began = time.perf_counter()
            for seed in range(options.draws):
                rng = np.random.default_rng(seed)
                for method, value in measure(*parts, size, rng).items():
                    ratios[column, size][method].append(value)
            seconds = time.perf_counter() - began
            print(f"{column} {name} {size}: {seconds:.0f} s", file=sys.stderr)
    for (column, size), found in sorted(ratios.items()):
        print(f"\n{column} classes, {size} samples")
        for method, values in found.items():
            mean = np.exp(np.mean(np.log(values)))
            print(f"  {method:32} {mean:6.3f}  worst {max(values):6.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
