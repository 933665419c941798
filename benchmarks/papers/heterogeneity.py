"""Zhao, Chen and Oymak (2020), networks trained on corrupted rows: satimage and a small network in place of theirs.

The paper trains image networks; here one of 100 units learns satimage (6 classes of soil, 36 features) in seconds. As
in the paper half the classes are corrupted in the training rows: a share of their labels is wrong (noise sweep, Figures
5 and 10) or only a share of their rows is left (sampling sweep, Figures 8 and 14). "Homogeneous" corrupts all classes
(Figures 1, 2, 9 and 12). Rows for calibration and test are clean. Each seed draws a split, a half of the classes and a
corruption; the differences are paired by seed, their intervals are t intervals of the mean.

VS is eq. 4.5 as printed, `VectorScaling(alpha=0, center=False)`, on the raw logits; "VS, centred" has centred
logits and a ridge of 1. Quoted figures are those of ResNet-20 on CIFAR-10 with label noise. The sources of this project
do not say which figure of a pair is CIFAR-10 and which CIFAR-100: the rows name both.
"""

import warnings

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from benchmarks.papers._intervals import mean, share
from benchmarks.papers._rules import above, below
from skcalib import ClasswiseTemperatureScaling, TemperatureScaling, VectorScaling
from skcalib.metrics import expected_calibration_error, groupwise_calibration_error

PAPER = "zhao"
NEEDS_DATA = True

METHODS = {
    "uncalibrated": None,
    "VS": VectorScaling(alpha=0, center=False, input="logit", clip=None),
    "VS, centred": VectorScaling(alpha=1.0, input="logit", clip=None),
    "TS": TemperatureScaling(input="logit", clip=None),
    "CTS": ClasswiseTemperatureScaling(np.inf, input="logit", clip=None),
}
ERRORS = ("ECE", "Max-ECE", "Avg-ECE")
# The orderings of Table 1, with its figures for CIFAR-10 where they are quoted in the sources.
ORDERINGS = {
    ("TS", "uncalibrated", "ECE"): "below 0 (3.69 - 6.50)",
    ("TS", "uncalibrated", "Max-ECE"): "below 0 (13.85 - 21.09)",
    ("CTS", "TS", "ECE"): "below 0 (1.19 - 3.69)",
    ("CTS", "TS", "Max-ECE"): "below 0 (5.46 - 13.85)",
    ("CTS", "TS", "Avg-ECE"): "below 0",
    ("VS", "TS", "ECE"): "below 0 (1.31 - 3.69)",
    ("VS", "TS", "Max-ECE"): "below 0 (4.37 - 13.85)",
    ("VS, centred", "TS", "Max-ECE"): "below 0 (4.37 - 13.85)",
    ("CTS", "VS", "Max-ECE"): "above 0 (5.46 - 4.37)",
}
_NOISE, _FEW = (0.1, 0.2, 0.3), (0.3, 0.1, 0.05)
_SWEEPS = {"noise": ("Figure 5, Figure 10", _NOISE), "few": ("Figure 8, Figure 14", _FEW)}
_PER_CLASS = "Figure 6, Figure 7, Figure 11, Figure 13"
_HOMOGENEOUS = "Figure 1, Figure 2, Figure 9, Figure 12"
CHANGED = "share of test rows whose predicted class TS or CTS changes, %"
_WORDS = {"noise": "30 % label noise on half the classes", "few": "5 % of the rows of half the classes"}


def ordering_rules(prefix, orderings=ORDERINGS):
    """Return the rules of the orderings of Table 1, by quantity."""
    rules = {}
    for (first, second, error), paper in orderings.items():
        rule = above(0, paper) if paper.startswith("above") else below(0, paper)
        rules[f"{prefix}, {error}, {first} less {second}, %"] = rule
    return rules


def _rules():
    rules = ordering_rules(f"Table 1: {_WORDS['noise']}")
    few = {key: "above 0" if paper.startswith("above") else "below 0" for key, paper in ORDERINGS.items()}
    rules |= ordering_rules(f"Figure 8, Figure 14: {_WORDS['few']}", few)
    for kind, label in (("noise", "Table 1"), ("few", "Figure 8, Figure 14")):
        rules[f"{label}: {_WORDS[kind]}, {CHANGED}"] = below(0.1, "none", possible=(0, 100))
    for kind, (label, levels) in _SWEEPS.items():
        for level in levels:
            at = f"{label}: {_level(kind, level)}, confidence less accuracy of the corrupted classes, uncalibrated, %"
            rules[at] = below(0, "under-confident") if kind == "noise" else above(0, "over-confident")
        rules[f"{label}: the same, {_level(kind, levels[-1])} less {_level(kind, levels[0])}, %"] = (
            below(0, "more so") if kind == "noise" else above(0, "more so")
        )
    at = f"{_PER_CLASS}: {_WORDS['noise']}"
    rules[f"{at}, confidence less accuracy, noisy less other classes, uncalibrated, %"] = below(0)
    rules[f"{at}, |confidence less accuracy| of the noisy classes, CTS less TS, %"] = below(0)
    for method in ("VS", "VS, centred"):
        rules[f"{at}, accuracy of the noisy classes, {method} less uncalibrated, %"] = below(0, "VS lowers it")
    rules[f"{_PER_CLASS}: {_WORDS['few']}, confidence less accuracy, small less other classes, uncalibrated, %"] = (
        above(0)
    )
    rules[f"{_HOMOGENEOUS}: 30 % noise in all classes, confidence less accuracy, less that without noise, %"] = below(0)
    rules[f"{_HOMOGENEOUS}: 5 % of all rows, confidence less accuracy, less that of all rows, %"] = above(0)
    return rules


def _level(kind, level):
    return f"{100 * level:g} % label noise" if kind == "noise" else f"{100 * level:g} % of the rows"


ROWS = _rules()


def measure(options):
    """Measure the orderings, the sweeps and the classes over seeds."""
    seeds = range(4 if options.quick else options.repeats or 8)
    X, y = _load(options.data)
    worlds = [("clean", 0), ("all noise", 0.3), ("all few", 0.05)]
    worlds += [(kind, level) for kind, (_, levels) in _SWEEPS.items() for level in levels]
    measured = {world: [_one_seed(X, y, *world, seed) for seed in seeds] for world in worlds}
    yield from orderings(f"Table 1: {_WORDS['noise']}", measured["noise", 0.3])
    yield from orderings(f"Figure 8, Figure 14: {_WORDS['few']}", measured["few", 0.05])
    for kind, label in (("noise", "Table 1"), ("few", "Figure 8, Figure 14")):
        yield f"{label}: {_WORDS[kind]}, {CHANGED}", changed_predictions(measured[kind, _SWEEPS[kind][1][-1]])
    yield from _sweeps(measured)
    yield from _classes(measured)
    if options.plot is not None:
        _plot(measured, options.plot)


def _load(data):
    table = np.genfromtxt(data / "tabular" / "satimage.csv.gz", delimiter=",", skip_header=1, dtype=str)
    return table[:, :-1].astype(np.float64), np.unique(table[:, -1], return_inverse=True)[1]


def _one_seed(X, y, kind, level, seed):
    """Return by method the figures in percent: errors, accuracy, and gap and accuracy of the corrupted classes."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(y.max() + 1)[: (y.max() + 1) // 2]
    corrupted = np.ones(len(y), dtype=bool) if kind.startswith("all") else np.isin(y, chosen)
    rows, rest = train_test_split(np.arange(len(y)), train_size=0.4, random_state=seed, stratify=y)
    calibration, test = train_test_split(rest, train_size=0.5, random_state=seed, stratify=y[rest])
    rows, labels = _corrupt(rows, y[rows], corrupted[rows], kind, level, y.max() + 1, rng)
    scaler = StandardScaler().fit(X[rows])
    model = MLPClassifier((100,), max_iter=150, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 150 epochs are meant to be the end
        model.fit(scaler.transform(X[rows]), labels)
    logits = _logits(model, scaler.transform(X))
    return figures(logits[calibration], y[calibration], logits[test], y[test], corrupted[test])


def _logits(model, X):
    """Return the raw logits of a network with one hidden layer: its outputs before the softmax."""
    hidden = np.maximum(X @ model.coefs_[0] + model.intercepts_[0], 0)
    return hidden @ model.coefs_[1] + model.intercepts_[1]


def _corrupt(rows, labels, corrupted, kind, level, n_classes, rng):
    """Return the training rows and labels after the corruption."""
    if kind.endswith("noise"):
        return rows, noisy(labels, corrupted, level, n_classes, rng)
    keep = ~corrupted | (rng.random(len(rows)) < level) if kind.endswith("few") else np.ones(len(rows), dtype=bool)
    return rows[keep], labels[keep]


def noisy(labels, corrupted, level, n_classes, rng):
    """Return labels of which a share of the corrupted ones is another class, each with equal chance."""
    wrong = corrupted & (rng.random(len(labels)) < level)
    return np.where(wrong, (labels + rng.integers(1, n_classes, len(labels))) % n_classes, labels)


def figures(logits, labels, test_logits, test_labels, corrupted, methods=METHODS):
    """Return by method the figures on the test rows, in percent; calibrated on the first two arguments."""
    found = {}
    for name, method in methods.items():
        if method is None:
            y_proba = softmax(test_logits, axis=1)
        else:  # a class may be missing from the calibration rows
            model = clone(method).set_params(classes=np.arange(logits.shape[1]))
            y_proba = model.fit(logits, labels).predict_proba(test_logits)
        predicted = y_proba.argmax(axis=1)
        right = predicted == test_labels
        gap = y_proba.max(axis=1) - right
        values = {
            "ECE": expected_calibration_error(test_labels, y_proba, multiclass="top_label"),
            "Max-ECE": groupwise_calibration_error(test_labels, y_proba, multiclass="top_label", reduce="max"),
            "Avg-ECE": groupwise_calibration_error(test_labels, y_proba, multiclass="top_label", reduce="mean"),
            "accuracy": right.mean(),
            "gap": gap.mean(),
            "corrupted gap": gap[corrupted].mean(),
            "corrupted accuracy": right[corrupted].mean(),
            "other gap": gap[~corrupted].mean() if not corrupted.all() else np.nan,
        }
        found[name] = {key: 100 * value for key, value in values.items()}
        found[name]["same class"] = predicted == test_logits.argmax(axis=1)  # by row
    return found


def values_of(results, method, figure):
    """Return one figure of one method by seed."""
    return np.array([result[method][figure] for result in results])


def orderings(prefix, results, chosen=ORDERINGS):
    """Yield the differences of Table 1, paired by seed."""
    for first, second, error in chosen:
        difference = values_of(results, first, error) - values_of(results, second, error)
        yield f"{prefix}, {error}, {first} less {second}, %", mean(difference)


def changed_predictions(results):
    """Return the share of test rows, in percent, whose predicted class TS or CTS changes."""
    changed = [~result[method]["same class"] for result in results for method in ("TS", "CTS")]
    return tuple(100 * value for value in share(np.concatenate(changed)))


def _sweeps(measured):
    for kind, (label, levels) in _SWEEPS.items():
        gaps = {level: values_of(measured[kind, level], "uncalibrated", "corrupted gap") for level in levels}
        for level, gap in gaps.items():
            at = f"{label}: {_level(kind, level)}, confidence less accuracy of the corrupted classes, uncalibrated, %"
            yield at, mean(gap)
        first, *_, last = levels
        quantity = f"{label}: the same, {_level(kind, last)} less {_level(kind, first)}, %"
        yield quantity, mean(gaps[last] - gaps[first])


def _classes(measured):
    at, noise = f"{_PER_CLASS}: {_WORDS['noise']}", measured["noise", 0.3]
    gap = {name: values_of(noise, name, "corrupted gap") for name in METHODS}
    difference = gap["uncalibrated"] - values_of(noise, "uncalibrated", "other gap")
    yield f"{at}, confidence less accuracy, noisy less other classes, uncalibrated, %", mean(difference)
    quantity = f"{at}, |confidence less accuracy| of the noisy classes, CTS less TS, %"
    yield quantity, mean(np.abs(gap["CTS"]) - np.abs(gap["TS"]))
    accuracy = {name: values_of(noise, name, "corrupted accuracy") for name in METHODS}
    for method in ("VS", "VS, centred"):
        quantity = f"{at}, accuracy of the noisy classes, {method} less uncalibrated, %"
        yield quantity, mean(accuracy[method] - accuracy["uncalibrated"])
    few = measured["few", 0.05]
    difference = values_of(few, "uncalibrated", "corrupted gap") - values_of(few, "uncalibrated", "other gap")
    quantity = f"{_PER_CLASS}: {_WORDS['few']}, confidence less accuracy, small less other classes, uncalibrated, %"
    yield quantity, mean(difference)
    clean = values_of(measured["clean", 0], "uncalibrated", "gap")
    for world, quantity in (
        (("all noise", 0.3), "30 % noise in all classes, confidence less accuracy, less that without noise, %"),
        (("all few", 0.05), "5 % of all rows, confidence less accuracy, less that of all rows, %"),
    ):
        yield f"{_HOMOGENEOUS}: {quantity}", mean(values_of(measured[world], "uncalibrated", "gap") - clean)


def _plot(measured, path):
    from matplotlib.figure import Figure

    axes = Figure(figsize=(9, 3.5), layout="constrained").subplots(1, 2, sharey=True)
    for axis, world in zip(axes, (("noise", 0.3), ("few", 0.05)), strict=True):
        for offset, method in enumerate(METHODS):
            values = np.array([values_of(measured[world], method, error) for error in ERRORS])
            axis.bar(
                np.arange(3) + 0.16 * offset - 0.32,
                values.mean(axis=1),
                0.15,
                yerr=values.std(axis=1, ddof=1),
                label=method,
            )
        axis.set_xticks(range(3), ERRORS)
        axis.set_title(_WORDS[world[0]])
    axes[0].set_ylabel("error (%), mean and standard deviation")
    axes[0].legend()
    axes[0].figure.savefig(path)
