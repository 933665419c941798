"""Calibration by group for language models: ``python -m benchmarks.groups --data DIR``.

The confidence of a language model has a different meaning in each set of questions. For
each model, the rows of all sets are combined and split in two at random: the maps are
fitted to one half, and the other half measures the debiased error (10 equal-mass bins)
of each set and its mean over the sets. The figure is this mean with one fit per set,
divided by the mean with a single fit; its interval is over the models.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from benchmarks.papers._intervals import ratio
from benchmarks.papers._output import json_text, table_text
from benchmarks.papers._rules import below, judge
from skcalib import (
    BetaCalibration,
    GroupwiseRecalibrator,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    QuadraticScaling,
    TemperatureScaling,
)
from skcalib.metrics import groupwise_calibration_error

_METHODS = (
    TemperatureScaling(),
    PlattScaling(),
    BetaCalibration(),
    QuadraticScaling(),
    IsotonicCalibration(),
    HistogramBinning(),
)
_FILES = {"mcqa_bplaut_dev": ("conf",), "lifeeval_noam": ("stated", "token")}
_LIMIT = 0.7


def main(argv=None):
    """Measure and print the table; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.groups", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="folder of the real data (with llm/)"
    )
    parser.add_argument(
        "--repeats", type=int, default=5, help="number of random halves"
    )
    parser.add_argument(
        "--json", action="store_true", help="print JSON in place of the table"
    )
    options = parser.parse_args(argv)
    rows = run(load(options.data), options.repeats)
    print((json_text if options.json else table_text)(rows))
    return 0


def load(data):
    """Return for each language model the confidence, whether it was right, and the set
    of questions, of all rows.
    """
    models = []
    for name, kinds in _FILES.items():
        folder = np.load(data / "llm" / f"{name}.npz", allow_pickle=False)
        for kind in kinds:
            by_model = {}
            for key in folder.files:
                if key.endswith(f"/{kind}"):
                    by_model.setdefault(key.split("/")[1], []).append(key)
            models += [_joined(folder, keys, kind) for keys in by_model.values()]
    return models


def _joined(folder, keys, kind):
    confidence = [folder[key] for key in keys]
    correct = [folder[key.removesuffix(kind) + "correct"] for key in keys]
    groups = [
        np.full(len(part), key.split("/")[0])
        for key, part in zip(keys, confidence, strict=True)
    ]
    return np.concatenate(confidence), np.concatenate(correct), np.concatenate(groups)


def run(models, repeats):
    """Return a row for each method and norm."""
    measured = {}
    for method in _METHODS:
        errors = np.array(
            [
                np.mean([_one_half(*model, method, seed) for seed in range(repeats)], 0)
                for model in models
            ]
        )
        for j, norm in enumerate((1, 2)):
            quantity = (
                f"{type(method).__name__}: mean debiased l{norm} error by set, by set /"
                " pooled fit"
            )
            measured[quantity] = ratio(errors[:, 1, j], errors[:, 0, j], paired=True)
    return judge(dict.fromkeys(measured, below(_LIMIT)), measured.items())


def _one_half(confidence, correct, groups, method, seed):
    """Return the errors (pooled or by set, l1 or l2) on the half of the rows that was
    not fitted.
    """
    order = np.random.default_rng(seed).permutation(len(correct))
    fit, test = order[::2], order[1::2]
    pooled = method.fit(confidence[fit], correct[fit]).predict_proba(confidence[test])
    grouped = GroupwiseRecalibrator(method).fit(
        confidence[fit], correct[fit], groups=groups[fit]
    )
    by_group = grouped.predict_proba(confidence[test], groups=groups[test])
    options = {
        "groups": groups[test],
        "reduce": "mean",
        "method": "debiased",
        "binning": 10,
    }
    return [
        [
            groupwise_calibration_error(
                correct[test], proba[:, 1], norm=norm, **options
            )
            for norm in (1, 2)
        ]
        for proba in (pooled, by_group)
    ]


if __name__ == "__main__":
    sys.exit(main())
