"""Boosting stopped by log-loss and by refinement loss, then recalibrated.

``python -m benchmarks.refinement_stopping --data DIR [--seeds N]`` trains gradient
boosting on each table, stops it where the validation samples say so, fits a temperature
to them, and prints the log-loss on held-out samples.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from skcalib import TemperatureScaling
from skcalib.evaluation import refinement_loss

MAX_ROWS = 10_000
N_ITERATIONS = 200


def tables(folder):
    """Yield the name, features and labels of each table; the last column is the
    label.
    """
    for path in sorted(Path(folder).glob("*.csv.gz")):
        frame = pd.read_csv(path)
        target = "target" if "target" in frame else frame.columns[-1]
        labels = frame.pop(target)
        features = frame.apply(
            lambda column: (
                column
                if pd.api.types.is_numeric_dtype(column)
                else column.astype("category").cat.codes.astype(float)
            )
        )
        yield path.name.removesuffix(".csv.gz"), features, labels.astype("category")


def compared(features, labels, seed):
    """Return the held-out log-loss after stopping by log-loss, and by refinement."""
    codes = labels.cat.codes.to_numpy()
    rows = np.random.default_rng(seed).permutation(len(codes))[:MAX_ROWS]
    train, rest = train_test_split(
        rows, train_size=0.5, stratify=codes[rows], random_state=seed
    )
    valid, test = train_test_split(
        rest, train_size=0.5, stratify=codes[rest], random_state=seed
    )
    model = HistGradientBoostingClassifier(
        max_iter=N_ITERATIONS, early_stopping=False, random_state=seed
    )
    values = features.to_numpy(dtype=float)
    # A column without two values in the training samples has nothing to split.
    values = values[:, [len(np.unique(column)) > 1 for column in values[train].T]]
    model.fit(values[train], codes[train])
    of_valid = list(model.staged_predict_proba(values[valid]))
    of_test = list(model.staged_predict_proba(values[test]))
    criteria = {
        "log-loss": [log_loss(codes[valid], p) for p in of_valid],
        "refinement": [
            refinement_loss(codes[valid], p, recalibrator=TemperatureScaling(), cv=None)
            for p in of_valid
        ],
    }
    found = []
    for by_epoch in criteria.values():
        best = int(np.argmin(by_epoch))
        temperature = TemperatureScaling().fit(of_valid[best], codes[valid])
        found.append(log_loss(codes[test], temperature.predict_proba(of_test[best])))
    return found


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print("| table | stopped by log-loss | stopped by refinement | difference |")
    print("|---|---|---|---|")
    for name, features, labels in tables(options.data):
        losses = [compared(features, labels, seed) for seed in range(options.seeds)]
        before, after = np.mean(losses, axis=0)
        line = f"| {name} | {before:.4f} | {after:.4f} | {after - before:+.4f} |"
        print(line, flush=True)


if __name__ == "__main__":
    main()
