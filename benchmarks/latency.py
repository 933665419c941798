"""The time of a single prediction: ``python -m benchmarks.latency``.

The benchmark predicts one row in one thread. Each time is the median over runs of the
minimum time of a call; compare the ratios within one table.
"""

import argparse
import sys
import time
import warnings
from functools import partial

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import skcalib
from skcalib.export import to_python

_RUNS, _REPEATS = 7, 30
_MAPS = (
    "TemperatureScaling",
    "PlattScaling",
    "BetaCalibration",
    "SplineCalibration",
    "HistogramBinning",
    "IsotonicCalibration",
    "VennAbers",
    "StackedRecalibrator",
    "Recalibrator",
)


def main(argv=None):
    """Print a table of complete estimators and a table of recalibrators."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.latency", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--rows", type=int, default=3000, help="rows of the fits")
    options = parser.parse_args(argv)
    X, y = make_classification(options.rows, flip_y=0.1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        print_estimators(X, y)
        print_recalibrators(X, y)
    return 0


def estimators():
    """Return the complete estimators by their names in the table."""
    classifier = LogisticRegression()
    platt = skcalib.PlattScaling()
    return {
        "the classifier alone": classifier,
        "`CalibratedClassifierCV`": CalibratedClassifierCV(classifier),
        "`RecalibratedClassifierCV`": skcalib.RecalibratedClassifierCV(classifier),
        "`CalibratedClassifierCV`, `ensemble=False`": CalibratedClassifierCV(
            classifier, ensemble=False
        ),
        "`RecalibratedClassifierCV`, Platt, `ensemble=False`": (
            skcalib.RecalibratedClassifierCV(classifier, platt, ensemble=False)
        ),
    }


def print_estimators(X, y):
    """Print the microseconds of each whole estimator, and the ratio to scikit-learn's
    default.
    """
    found = {}
    for name, estimator in estimators().items():
        estimator.fit(X, y)
        found[name] = microseconds(lambda model=estimator: model.predict_proba(X[:1]))
    default = found["`CalibratedClassifierCV`"]
    print("| estimator, one row | microseconds | ratio |\n|---|---|---|")
    for name, value in found.items():
        print(f"| {name} | {value:.0f} | {value / default:.2f} |")


def print_recalibrators(X, y):
    """Print the microseconds of each recalibrator, of the validation in it, and of its
    function of the standard library.
    """
    scores = LogisticRegression().fit(X, y).predict_proba(X)[:, 1] ** 2
    one = scores[:1]
    print("\n| recalibrator, one score | `predict_proba` | validation | `to_python` |")
    print("|---|---|---|---|")
    for name in _MAPS:
        model = getattr(skcalib, name)().fit(scores, y)
        module = {}
        exec(to_python(model), module)
        calibrate = partial(module["calibrate"], float(one[0]))
        cells = (
            microseconds(lambda model=model: model.predict_proba(one)),
            microseconds(lambda model=model: model._possible_scores(one)),
            microseconds(calibrate),
        )
        print(f"| `{name}` | {' | '.join(f'{value:.0f}' for value in cells)} |")


def microseconds(predict):
    """Return the median over runs of the least time of a call."""
    predict()
    return float(np.median([_least(predict) for _ in range(_RUNS)]))


def _least(predict):
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        predict()
        times.append(time.perf_counter() - began)
    return min(times) * 1e6


if __name__ == "__main__":
    sys.exit(main())
