"""Limits of one probability on semi-real scores, beside what is taken for them.

``python -m benchmarks.one_probability [--samples 200] [--sizes 200 1000]`` takes the
out-of-fold scores of naive Bayes and of a forest for the digits of scikit-learn (is it
odd?), and a spline that was fitted to all of them as the true event frequency at each
score. Labels are drawn from it for random rows. Printed are how often limits hold that
frequency at the scores' 5, 25, 50, 75 and 95 % points, and how wide they are:
`predict_interval` of five methods, the pair of Venn-Abers, and Wilson's limits of the
score's bin, one of ten of equal width.
"""

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

from skcalib import (
    BetaCalibration,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    SplineCalibration,
    VennAbers,
)
from skcalib.binning import EqualWidth

__all__ = ["coverage", "scores_and_truth"]

_LEVEL = 0.9
_POINTS = (0.05, 0.25, 0.5, 0.75, 0.95)
_MODELS = {
    "naive Bayes": GaussianNB(),
    "forest": RandomForestClassifier(30, min_samples_leaf=5, random_state=0),
}


def _interval(model):
    def limits(scores, labels, points):
        return model.fit(scores, labels).predict_interval(points, _LEVEL)

    return limits


def _pair(scores, labels, points):
    return np.column_stack(VennAbers().fit(scores, labels).predict_pair(points))


_LIMITS = {
    "PlattScaling": _interval(PlattScaling()),
    "BetaCalibration": _interval(BetaCalibration()),
    "SplineCalibration": _interval(SplineCalibration()),
    "IsotonicCalibration": _interval(IsotonicCalibration()),
    "VennAbers": _interval(VennAbers()),
    "pair of VennAbers": _pair,
    "Wilson, bin of ten": _interval(HistogramBinning(EqualWidth(10))),
}


def scores_and_truth(model):
    """Return the out-of-fold scores (n,) of a model for "the digit is odd", and the
    event frequency (n,) that is taken for true at each.
    """
    X, digit = load_digits(return_X_y=True)
    is_odd = digit % 2 == 1
    scores = cross_val_predict(model, X, is_odd, cv=5, method="predict_proba")[:, 1]
    curve = SplineCalibration(monotone=True).fit(scores, is_odd)
    return scores, curve.predict_proba(scores)[:, 1]


def coverage(scores, truth, n, n_samples, rng):
    """Return by name how often limits hold the truth, and their mean width."""
    found = {name: [] for name in _LIMITS}
    for _ in range(n_samples):
        rows = rng.integers(len(scores), size=n)
        labels = rng.random(n) < truth[rows]
        order = np.argsort(scores[rows])
        at = rows[order[(np.array(_POINTS) * (n - 1)).round().astype(int)]]
        for name, limits in _LIMITS.items():
            low, high = limits(scores[rows], labels, scores[at]).T
            held = (low <= truth[at]) & (truth[at] <= high)
            found[name].append((held.mean(), (high - low).mean()))
    return {name: np.mean(values, axis=0) for name, values in found.items()}


def main(argv=None):
    """Print a table for each model and size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=200, help="data sets of a size")
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 1000])
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore", UserWarning)  # few events
    for name, model in _MODELS.items():
        scores, truth = scores_and_truth(model)
        for n in options.sizes:
            rng = np.random.default_rng(n)
            print(f"\n{name}, n = {n:,}\n\n| limits | covered | width |\n|---|--:|--:|")
            table = coverage(scores, truth, n, options.samples, rng)
            for method, (held, width) in table.items():
                print(f"| {method} | {held:.3f} | {width:.3f} |", flush=True)


if __name__ == "__main__":
    main()
