"""What the default costs: ``python -m benchmarks.checks.price --help``.

Around a classifier of negligible cost, whose scores are the columns of its features:
`RecalibratedClassifierCV` beside the six forms of scikit-learn's
`CalibratedClassifierCV`, and for two classes the stack beside Platt scaling. Forms run
in turns, and each figure is the least processor time of its runs. Compare the ratios.
The log-loss is that of as many other rows, 100,000 at most.

``--full`` adds the default whose members see all rows in every fold.
"""

import argparse
import sys
import time
import warnings
from unittest.mock import patch

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss

from skcalib import PlattScaling, RecalibratedClassifierCV, StackedRecalibrator
from skcalib.recalibrators import _stacked

_SIZES = ((10_000, 2), (10_000, 10), (10_000, 100), (100_000, 2), (100_000, 10))
_LARGE_SIZES = ((100_000, 100), (1_000_000, 2), (1_000_000, 10))
_METHODS = ("sigmoid", "isotonic", "temperature")
_MOST_TEST_ROWS = 100_000
_TARGET, _TARGET_OF_STACK = 5, 20


class GivenScores(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are its features."""

    def fit(self, X, y):
        """Learn the labels."""
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        """Return the features."""
        return X

    def predict(self, X):
        """Return the label of the greatest feature."""
        return self.classes_[X.argmax(axis=1)]


def main(argv=None):
    """Measure and print a table; return the exit status: 1 if a target is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.checks.price", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--rows", type=int, nargs="+", help="only these numbers")
    parser.add_argument("--classes", type=int, nargs="+", help="only these numbers")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each form")
    parser.add_argument("--large", action="store_true", help="also sizes of minutes")
    parser.add_argument(
        "--full", action="store_true", help="also members that see all rows in a fold"
    )
    options = parser.parse_args(argv)
    print(
        "| rows | classes | dearest form of scikit-learn | s | ours / it | log-loss |"
    )
    print("|--:|--:|---|--:|--:|--:|")
    missed = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n_rows, n_classes in _SIZES + _LARGE_SIZES * options.large:
            if n_rows not in (options.rows or [n_rows]):
                continue
            if n_classes not in (options.classes or [n_classes]):
                continue
            missed += print_size(n_rows, n_classes, options)
    return int(missed > 0)


def print_size(n_rows, n_classes, options):
    """Print the lines of one size, and return how many targets it misses."""
    parts = rows_of(n_rows, n_classes, seed=0)
    forms = {
        f"{method}, `ensemble={together}`": CalibratedClassifierCV(
            GivenScores(), method=method, ensemble=together
        )
        for method in _METHODS
        for together in (True, False)
    }
    forms["ours"] = RecalibratedClassifierCV(GivenScores())
    seconds, losses = measured(forms, parts, options.repeats)
    ours = seconds.pop("ours")
    dearest = max(seconds, key=seconds.get)
    ratio = ours / seconds[dearest]
    print(
        f"| {n_rows:,} | {n_classes} | {dearest} | {seconds[dearest]:.3g}"
        f" | {ratio:.2f} | {losses['ours']:.5f} |",
        flush=True,
    )
    if options.full:
        with patch.object(_stacked, "_MOST_TRAIN_ROWS", (np.inf, np.inf)):
            _, full = measured({"ours": RecalibratedClassifierCV(GivenScores())}, parts)
        print(f"| | | members that see all rows | | | {full['ours']:.5f} |", flush=True)
    missed = ratio > _TARGET
    if n_classes == 2:
        found, _ = measured(
            {"stack": StackedRecalibrator(), "Platt": PlattScaling()},
            parts,
            options.repeats,
        )
        ratio = found["stack"] / found["Platt"]
        print(f"| | | the stack, in fits of Platt | | {ratio:.1f} | |", flush=True)
        missed += ratio > _TARGET_OF_STACK
    return missed


def rows_of(n_rows, n_classes, seed):
    """Return scores and labels to fit to, and scores and labels of other rows.

    Scores of two classes are Beta(.7, .7), and events are less sure. Of more classes
    they are overconfident, and some classes are likelier than they say.
    """
    rng = np.random.default_rng(seed)
    n_test = min(n_rows, _MOST_TEST_ROWS)
    n_all = n_rows + n_test
    if n_classes == 2:
        score = rng.beta(0.7, 0.7, n_all)
        log_odds = np.log(score) - np.log1p(-score)
        y = rng.random(n_all) < 1 / (1 + np.exp(0.3 - 0.8 * log_odds))
        scores = np.column_stack((1 - score, score))
    else:
        logits = rng.normal(size=(n_all, n_classes)) * 2
        shift = rng.normal(size=n_classes) * 0.3
        y = (logits + shift + rng.gumbel(size=logits.shape)).argmax(axis=1)
        scores = np.exp(1.5 * logits)
        scores /= scores.sum(axis=1, keepdims=True)
    return scores[:n_rows], y[:n_rows], scores[n_rows:], y[n_rows:]


def measured(forms, parts, repeats=1):
    """Return the least seconds of processor time that the fit of each form takes, and
    its log-loss on other rows.
    """
    scores, y, test_scores, test_y = parts
    seconds = dict.fromkeys(forms, np.inf)
    for _ in range(repeats):
        for name, form in forms.items():
            began = time.process_time()
            form.fit(scores, y)
            seconds[name] = min(seconds[name], time.process_time() - began)
    losses = {
        name: log_loss(test_y, form.predict_proba(test_scores))
        for name, form in forms.items()
    }
    return seconds, losses


if __name__ == "__main__":
    sys.exit(main())
