"""Few rows per class: ``python -m benchmarks.few_rows_per_class``.

The stack is compared with temperature scaling on data for which temperature scaling is
the true model: logits with standard deviation 1.5 are calibrated, and the scores are
those of twice the logits. The columns are means over the draws: the log-loss of the
stack on held-out rows minus that of temperature scaling, the true gain of the stack
over the uncalibrated scores, `gain_`, and how often its 90 % interval covers the mean
true gain.

``--folds`` selects how the rows are assigned to the folds of the stack: by class
("stratified") or regardless of the class ("plain"); "auto" is the default of the stack.
``--data DIR`` uses random halves of the first K classes of CIFAR-100 instead of the
simulation; there, a single temperature is not the true model.
"""

import argparse
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
from scipy.special import softmax

from skcalib import StackedRecalibrator, TemperatureScaling
from skcalib._fitting import folds
from skcalib._rows.links import log_probability

_FIRST_PLAIN = {"stratified": np.inf, "plain": 0, "auto": folds._MANY_CLASSES}
_TEST_ROWS = 5000


def main(argv=None):
    """Measure and print a table; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.few_rows_per_class",
        description=__doc__.splitlines()[0],
    )
    parser.add_argument("--classes", type=int, nargs="+", default=[100])
    parser.add_argument("--per-class", type=int, nargs="+", default=[3, 5, 10, 20])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--first-draw", type=int, default=0, help="number of a seed")
    parser.add_argument("--folds", nargs="+", choices=_FIRST_PLAIN, default=["auto"])
    parser.add_argument("--data", type=Path, help="folder of the real data")
    options = parser.parse_args(argv)
    print(
        "| classes | rows per class | folds | draws | stack - temperature"
        " | largest | true gain | `gain_` | covered |"
    )
    print("|--:|--:|---|--:|--:|--:|--:|--:|--:|")
    for n_classes in options.classes:
        for per_class in options.per_class:
            for kind in options.folds:
                print_line(n_classes, per_class, kind, options)
    return 0


def print_line(n_classes, per_class, kind, options):
    """Print the means over the draws of one size."""
    excess, gains, told = [], [], []
    for draw in range(options.draws):
        seed = options.first_draw + draw
        if options.data is None:
            rows = simulated(n_classes, n_classes * per_class, seed)
        else:
            rows = of_cifar(options.data, n_classes, n_classes * per_class, seed)
        with patch.object(folds, "_MANY_CLASSES", _FIRST_PLAIN[kind]):
            found = one_draw(*rows, n_classes)
        for values, value in zip((excess, gains, told), found, strict=True):
            values.append(value)
    told = np.array(told)
    gain = np.mean(gains)
    covered = np.mean((told[:, 1] <= gain) & (gain <= told[:, 2]))
    print(
        f"| {n_classes} | {per_class} | {kind} | {options.draws}"
        f" | {np.mean(excess):.4f} +- {np.std(excess) / len(excess) ** 0.5:.4f}"
        f" | {max(excess):.4f} | {gain:.4f} | {told[:, 0].mean():.4f}"
        f" | {covered:.2f} |",
        flush=True,
    )


def one_draw(scores, y, test_scores, test_y, n_classes):
    """Return the excess log-loss of the stack over temperature scaling, its gain, and
    `gain_`.
    """
    classes = np.arange(n_classes)
    stack = StackedRecalibrator(classes=classes).fit(scores, y)
    temperature = TemperatureScaling(classes=classes).fit(scores, y)
    of_stack, of_temperature = (
        log_loss(model.predict_proba(test_scores), test_y)
        for model in (stack, temperature)
    )
    gain = log_loss(test_scores, test_y) - of_stack
    return of_stack - of_temperature, gain, tuple(stack.gain_)


def simulated(n_classes, n_rows, seed):
    """Return calibration scores and labels, and scores and labels of held-out rows."""
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=(n_rows + _TEST_ROWS, n_classes))
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    scores = softmax(2 * logits, axis=1)
    return scores[:n_rows], y[:n_rows], scores[n_rows:], y[n_rows:]


def of_cifar(data, n_classes, n_rows, seed):
    """Return the same from the rows of some classes of CIFAR-100."""
    folder = np.load(data / "vision" / "cifar100_wideresnet164.npz", allow_pickle=False)
    rng = np.random.default_rng(seed)
    classes = np.sort(rng.permutation(100)[:n_classes])
    rows = rng.permutation(np.flatnonzero(np.isin(folder["labels"], classes)))
    y = np.searchsorted(classes, folder["labels"][rows])
    scores = folder["probs"][rows][:, classes].astype(float)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores[:n_rows], y[:n_rows], scores[n_rows:], y[n_rows:]


def log_loss(proba, y):
    """Return the mean log-loss."""
    return -log_probability(proba[np.arange(len(y)), y]).mean()


if __name__ == "__main__":
    sys.exit(main())
