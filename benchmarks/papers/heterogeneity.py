"""Zhao, Chen and Oymak (2020), networks trained on corrupted rows: satimage and a small
network in place of theirs.

The paper trains image networks; here one of 100 units learns satimage (6 classes of
soil, 36 features) in seconds. It stands in for both data sets of the paper, CIFAR-100
(Figures 1 to 8, Table 1) and CIFAR-10 (Figures 9 to 14, Table 2): a row names both
figures of a pair. As in the paper half of the classes are corrupted in the training
rows. A share of their labels is drawn anew from all labels (Figures 3, 5, 6, 10 and 11,
the tables), or a share of their rows is left (Figures 4, 7, 8, 13 and 14). Figures 1,
2, 9 and 12 corrupt all classes. Rows for calibration and test are clean. A seed draws a
split, half of the classes and a corruption. Differences are paired by seed, with t
intervals of the mean.

VS is eq. 4.5 as printed, `VectorScaling(alpha=0, center=False)`, on the raw logits.
"""

import warnings

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from benchmarks.papers._intervals import exact, mean, share
from benchmarks.papers._rules import Rule, above, below
from skcalib import ClasswiseTemperatureScaling, TemperatureScaling, VectorScaling
from skcalib.metrics import expected_calibration_error, groupwise_calibration_error

PAPER = "zhao"
NEEDS_DATA = True

METHODS = {
    "uncalibrated": None,
    "VS": VectorScaling(alpha=0, center=False, input="logit", clip=None),
    "TS": TemperatureScaling(input="logit", clip=None),
    "CTS": ClasswiseTemperatureScaling(np.inf, input="logit", clip=None),
}
ERRORS = ("ECE", "Max-ECE", "Avg-ECE")
# Differences of Tables 1 and 2, in percent.
ORDERINGS = {
    ("TS", "uncalibrated", "ECE"): ("below 0", 3.64 - 3.78, 3.69 - 6.50),
    ("TS", "uncalibrated", "Max-ECE"): ("below 0", 32.74 - 36.83, 13.85 - 21.09),
    ("CTS", "TS", "ECE"): ("below 0", 3.21 - 3.64, 1.19 - 3.69),
    ("CTS", "TS", "Max-ECE"): ("below 0", 23.70 - 32.74, 5.46 - 13.85),
    ("VS", "TS", "ECE"): ("below 0", 3.26 - 3.64, 1.31 - 3.69),
    ("VS", "TS", "Max-ECE"): ("below 0", 18.30 - 32.74, 4.37 - 13.85),
    ("CTS", "VS", "Max-ECE"): ("above 0", 23.70 - 18.30, 5.46 - 4.37),
    ("VS", "uncalibrated", "accuracy"): ("above 0", 1.29, 0.29),
}
_NOISE, _FEW = (0.1, 0.2, 0.3), (0.3, 0.1, 0.05)
_TABLES = "Table 1, Table 2: 30 % label noise on half the classes"
CHANGED = "share of test rows whose predicted class TS or CTS changes, %"
OVERALL = (
    "share of repeats and rates in which TS has the lower ECE of all rows, CTS the"
    " higher"
)
SOMETIMES = Rule(
    "TS sometimes outperforms: .05 to .95 (our reading)", 0.05, 0.95, possible=(0, 1)
)
# Percentage points: two methods that differ by rounding alone are not in an order.
_ROUNDING = 1e-9
MOST = above(0.5, "all shown; most in our results (our reading)", possible=(0, 1))


def lower_share(first, second):
    """Return the words of the share that `share_of_classes` measures."""
    return (
        f"share of classes whose ECE is lower with {first} than"
        f" {'uncalibrated' if second != 'TS' else 'with TS'}"
    )


def ordering_rules(prefix, tables):
    """Return the rules of the differences of Tables 1 and 2 by quantity; `tables` are
    those whose figures are shown.
    """
    rules = {}
    for (first, second, error), (side, *printed) in ORDERINGS.items():
        shown = f"{side} ({', '.join(f'{printed[table - 1]:.2f}' for table in tables)})"
        quantity = f"{prefix}, {error}, {first} minus {second}, %"
        if side == "above 0":
            rules[quantity] = above(_ROUNDING, shown)
        else:
            rules[quantity] = below(-_ROUNDING, shown)
    return rules


def _rules():
    rules = ordering_rules(_TABLES, (1, 2))
    rules[f"{_TABLES}, {CHANGED}"] = below(0.1, "none", possible=(0, 100))
    gap = "confidence minus accuracy, uncalibrated"
    rules[f"Figure 1, Figure 9: clean rows, {gap}, %"] = above(0, "overconfident")
    rules[f"Figure 1, Figure 9: 30 % label noise in all classes, {gap}, %"] = below(
        0, "underconfident"
    )
    rules[f"Figure 1, Figure 9: 10 % of all rows, {gap}, minus that of all rows, %"] = (
        above(0, "more overconfident")
    )
    rules[f"Figure 2, Figure 12: {gap}, 5 % of all rows minus 60 %, %"] = above(
        0, "grows as rows get fewer"
    )
    rules["Figure 2, Figure 12: accuracy, 5 % of all rows minus 60 %, %"] = below(
        0, "falls as rows get fewer"
    )
    at = f"Figure 3: 30 % label noise on half the classes, {gap}"
    rules[f"{at}, noisy classes, %"] = below(0, "underconfident (-6.2)")
    rules[f"{at}, clean classes, %"] = above(0, "overconfident (1.3)")
    at = f"Figure 4: 10 % of the rows of half the classes, {gap}"
    rules[f"{at}, small classes, %"] = above(0, "overconfident (33.2)")
    rules[f"{at}, complete classes, %"] = above(0, "overconfident (6.8)")
    rules[f"{at}, small minus complete classes, %"] = above(0, "above 0 (26.4)")
    for level in _NOISE:
        for error in ("ECE", "Max-ECE"):
            rules[
                f"Figure 5, Figure 10: {_level('noise', level)}, {error}, CTS minus"
                " TS, %"
            ] = below(0)
    quantity = (
        "Figure 5, Figure 10: Max-ECE, CTS minus TS, 30 % label noise minus 10 %, %"
    )
    rules[quantity] = below(0, "more with more noise")
    at = "Figure 6, Figure 11: 30 % label noise on half the classes"
    for method in ("CTS", "VS"):
        for other in ("TS", "uncalibrated"):
            rules[f"{at}, {lower_share(method, other)}"] = MOST
    rules[f"{at}, accuracy of the noisy classes, VS minus uncalibrated, %"] = below(
        0, "VS lowers it"
    )
    rules[f"{at}, accuracy of the clean classes, VS minus uncalibrated, %"] = above(
        0, "VS raises it"
    )
    at = "Figure 7, Figure 13: 5 % (13: 6 %) of the rows of half the classes, ECE"
    rules[f"{at} of the small classes, TS minus uncalibrated, %"] = above(
        0, "TS inflates it"
    )
    rules[f"{at} of the complete classes, TS minus uncalibrated, %"] = below(0)
    for other in ("uncalibrated", "TS"):
        rules[f"{at} of the small classes, CTS minus {other}, %"] = below(0)
    rules[f"{at} of the complete classes, CTS minus uncalibrated, %"] = below(0)
    at = at.removesuffix(", ECE")
    rules[f"{at}, {lower_share('CTS', 'uncalibrated')}"] = MOST
    rules[f"Figure 8, Figure 14: {OVERALL}"] = SOMETIMES
    for level in _FEW:
        for error in ("Max-ECE", "Avg-ECE"):
            rules[
                f"Figure 8, Figure 14: {_level('few', level)}, {error}, CTS minus TS, %"
            ] = below(0)
    return rules


def _level(kind, level):
    return (
        f"{100 * level:g} % label noise"
        if kind == "noise"
        else f"{100 * level:g} % of the rows of half the classes"
    )


ROWS = _rules()


def measure(options):
    """Measure the tables, the sweeps and the classes over seeds."""
    seeds = range(2 if options.quick else options.repeats or 16)
    epochs = 40 if options.quick else 150
    X, y = _load(options.data)
    worlds = [
        ("clean", 0),
        ("all noise", 0.3),
        *(("all few", level) for level in (0.6, 0.1, 0.05)),
    ]
    worlds += [("noise", level) for level in _NOISE] + [
        ("few", level) for level in _FEW
    ]
    measured = {
        world: [_one_seed(X, y, *world, seed, epochs) for seed in seeds]
        for world in worlds
    }
    yield from orderings(_TABLES, measured["noise", 0.3])
    yield f"{_TABLES}, {CHANGED}", changed_predictions(measured["noise", 0.3])
    yield from _homogeneous(measured)
    yield from _halves(measured)
    yield from _sweeps(measured)
    yield from _classes(measured)
    if options.plot is not None:
        _plot(measured, options.plot)


def _load(data):
    table = np.genfromtxt(
        data / "tabular" / "satimage.csv.gz", delimiter=",", skip_header=1, dtype=str
    )
    return (
        table[:, :-1].astype(np.float64),
        np.unique(table[:, -1], return_inverse=True)[1],
    )


def _one_seed(X, y, kind, level, seed, epochs=150):
    """Return by method the figures in percent: errors, accuracy, and gap and accuracy
    of the corrupted classes.
    """
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(y.max() + 1)[: (y.max() + 1) // 2]
    corrupted = (
        np.ones(len(y), dtype=bool) if kind.startswith("all") else np.isin(y, chosen)
    )
    rows, rest = train_test_split(
        np.arange(len(y)), train_size=0.4, random_state=seed, stratify=y
    )
    calibration, test = train_test_split(
        rest, train_size=0.5, random_state=seed, stratify=y[rest]
    )
    rows, labels = _corrupt(
        rows, y[rows], corrupted[rows], kind, level, y.max() + 1, rng
    )
    scaler = StandardScaler().fit(X[rows])
    model = MLPClassifier((100,), max_iter=epochs, random_state=seed)
    with warnings.catch_warnings():
        # that number of epochs is meant to be the end
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(scaler.transform(X[rows]), labels)
    logits = _logits(model, scaler.transform(X))
    return figures(
        logits[calibration], y[calibration], logits[test], y[test], corrupted[test]
    )


def _logits(model, X):
    """Return the raw logits of a network with one hidden layer: its outputs before the
    softmax.
    """
    hidden = np.maximum(X @ model.coefs_[0] + model.intercepts_[0], 0)
    return hidden @ model.coefs_[1] + model.intercepts_[1]


def _corrupt(rows, labels, corrupted, kind, level, n_classes, rng):
    """Return the training rows and labels after the corruption."""
    if kind.endswith("noise"):
        return rows, noisy(labels, corrupted, level, n_classes, rng)
    keep = (
        ~corrupted | (rng.random(len(rows)) < level)
        if kind.endswith("few")
        else np.ones(len(rows), dtype=bool)
    )
    return rows[keep], labels[keep]


def noisy(labels, corrupted, level, n_classes, rng):
    """Return labels of which a share of the corrupted ones is drawn anew, from all
    classes.
    """
    return np.where(
        corrupted & (rng.random(len(labels)) < level),
        rng.integers(0, n_classes, len(labels)),
        labels,
    )


def figures(logits, labels, test_logits, test_labels, corrupted, methods=METHODS):
    """Return by method the figures on the test rows, in percent; calibrated on the
    first two arguments.
    """
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
        by_class = groupwise_calibration_error(
            test_labels, y_proba, multiclass="top_label", reduce=None
        )
        chosen = set(np.unique(test_labels[corrupted]))
        values = {
            "ECE": expected_calibration_error(
                test_labels, y_proba, multiclass="top_label"
            ),
            "Max-ECE": max(by_class.values()),
            "Avg-ECE": np.mean(list(by_class.values())),
            "corrupted ECE": np.mean(
                [error for k, error in by_class.items() if k in chosen]
            ),
            "other ECE": np.mean(
                [error for k, error in by_class.items() if k not in chosen] or [np.nan]
            ),
            "accuracy": right.mean(),
            "gap": gap.mean(),
            "corrupted gap": gap[corrupted].mean(),
            "corrupted accuracy": right[corrupted].mean(),
            "other gap": gap[~corrupted].mean() if not corrupted.all() else np.nan,
            "other accuracy": (
                right[~corrupted].mean() if not corrupted.all() else np.nan
            ),
        }
        found[name] = {key: 100 * value for key, value in values.items()}
        found[name]["same class"] = predicted == test_logits.argmax(axis=1)  # by row
        found[name]["by class"] = by_class
    return found


def values_of(results, method, figure):
    """Return one figure of one method by seed."""
    return np.array([result[method][figure] for result in results])


def difference(results, first, second, figure):
    """Return the mean difference of one figure between two methods, paired by seed;
    without an interval where all seeds have the same difference.
    """
    gaps = values_of(results, first, figure) - values_of(results, second, figure)
    return exact(gaps[0]) if np.ptp(gaps) == 0 else mean(gaps)


def orderings(prefix, results):
    """Yield the differences of Tables 1 and 2, paired by seed."""
    for first, second, error in ORDERINGS:
        yield (
            f"{prefix}, {error}, {first} minus {second}, %",
            difference(results, first, second, error),
        )


def share_of_classes(results, first, second):
    """Return the share of (seed, class) pairs whose error is lower with the first
    method.
    """
    pairs = [
        (result[first]["by class"], result[second]["by class"]) for result in results
    ]
    return share([a[k] < b[k] for a, b in pairs for k in a.keys() & b.keys()])


def share_of_repeats(by_rate):
    """Return the share of (repeat, rate) pairs in which TS has a lower error of all
    rows than CTS.
    """
    return share(
        [
            result["TS"]["ECE"] < result["CTS"]["ECE"]
            for results in by_rate
            for result in results
        ]
    )


def changed_predictions(results):
    """Return the share of test rows, in percent, whose predicted class TS or CTS
    changes.
    """
    changed = [
        ~result[method]["same class"] for result in results for method in ("TS", "CTS")
    ]
    return tuple(100 * value for value in share(np.concatenate(changed)))


def _homogeneous(measured):
    gap = "confidence minus accuracy, uncalibrated"
    found = {
        world: values_of(results, "uncalibrated", "gap")
        for world, results in measured.items()
    }
    yield f"Figure 1, Figure 9: clean rows, {gap}, %", mean(found["clean", 0])
    yield (
        f"Figure 1, Figure 9: 30 % label noise in all classes, {gap}, %",
        mean(found["all noise", 0.3]),
    )
    few = found["all few", 0.1] - found["clean", 0]
    yield (
        f"Figure 1, Figure 9: 10 % of all rows, {gap}, minus that of all rows, %",
        mean(few),
    )
    few = found["all few", 0.05] - found["all few", 0.6]
    yield f"Figure 2, Figure 12: {gap}, 5 % of all rows minus 60 %, %", mean(few)
    accuracy = [
        values_of(measured["all few", level], "uncalibrated", "accuracy")
        for level in (0.05, 0.6)
    ]
    yield (
        "Figure 2, Figure 12: accuracy, 5 % of all rows minus 60 %, %",
        mean(np.subtract(*accuracy)),
    )


def _halves(measured):
    at = (
        "Figure 3: 30 % label noise on half the classes, confidence minus accuracy,"
        " uncalibrated"
    )
    yield (
        f"{at}, noisy classes, %",
        mean(values_of(measured["noise", 0.3], "uncalibrated", "corrupted gap")),
    )
    yield (
        f"{at}, clean classes, %",
        mean(values_of(measured["noise", 0.3], "uncalibrated", "other gap")),
    )
    at = (
        "Figure 4: 10 % of the rows of half the classes, confidence minus accuracy,"
        " uncalibrated"
    )
    small, whole = (
        values_of(measured["few", 0.1], "uncalibrated", f"{kind} gap")
        for kind in ("corrupted", "other")
    )
    yield f"{at}, small classes, %", mean(small)
    yield f"{at}, complete classes, %", mean(whole)
    yield f"{at}, small minus complete classes, %", mean(small - whole)


def _sweeps(measured):
    for kind, label, levels, errors in (
        ("noise", "Figure 5, Figure 10", _NOISE, ("ECE", "Max-ECE")),
        ("few", "Figure 8, Figure 14", _FEW, ("Max-ECE", "Avg-ECE")),
    ):
        for level in levels:
            for error in errors:
                quantity = f"{label}: {_level(kind, level)}, {error}, CTS minus TS, %"
                yield quantity, difference(measured[kind, level], "CTS", "TS", error)
    yield (
        f"Figure 8, Figure 14: {OVERALL}",
        share_of_repeats(measured["few", level] for level in _FEW),
    )
    gains = [
        values_of(measured["noise", level], "CTS", "Max-ECE")
        - values_of(measured["noise", level], "TS", "Max-ECE")
        for level in (0.3, 0.1)
    ]
    yield (
        "Figure 5, Figure 10: Max-ECE, CTS minus TS, 30 % label noise minus 10 %, %",
        mean(np.subtract(*gains)),
    )


def _classes(measured):
    at, noise = (
        "Figure 6, Figure 11: 30 % label noise on half the classes",
        measured["noise", 0.3],
    )
    for method in ("CTS", "VS"):
        for other in ("TS", "uncalibrated"):
            yield (
                f"{at}, {lower_share(method, other)}",
                share_of_classes(noise, method, other),
            )
    for kind, figure in (("noisy", "corrupted"), ("clean", "other")):
        quantity = f"{at}, accuracy of the {kind} classes, VS minus uncalibrated, %"
        yield quantity, difference(noise, "VS", "uncalibrated", f"{figure} accuracy")
    at, few = (
        "Figure 7, Figure 13: 5 % (13: 6 %) of the rows of half the classes, ECE",
        measured["few", 0.05],
    )
    for kind, figure in (("small", "corrupted"), ("complete", "other")):
        quantity = f"{at} of the {kind} classes, TS minus uncalibrated, %"
        yield quantity, difference(few, "TS", "uncalibrated", f"{figure} ECE")
    for other in ("uncalibrated", "TS"):
        yield (
            f"{at} of the small classes, CTS minus {other}, %",
            difference(few, "CTS", other, "corrupted ECE"),
        )
    yield (
        f"{at} of the complete classes, CTS minus uncalibrated, %",
        difference(few, "CTS", "uncalibrated", "other ECE"),
    )
    at = at.removesuffix(", ECE")
    yield (
        f"{at}, {lower_share('CTS', 'uncalibrated')}",
        share_of_classes(few, "CTS", "uncalibrated"),
    )


def _plot(measured, path):
    from matplotlib.figure import Figure

    axes = Figure(figsize=(9, 3.5), layout="constrained").subplots(1, 2, sharey=True)
    for axis, world in zip(axes, (("noise", 0.3), ("few", 0.05)), strict=True):
        for offset, method in enumerate(METHODS):
            values = np.array(
                [values_of(measured[world], method, error) for error in ERRORS]
            )
            axis.bar(
                np.arange(3) + 0.16 * offset - 0.32,
                values.mean(axis=1),
                0.15,
                yerr=values.std(axis=1, ddof=1),
                label=method,
            )
        axis.set_xticks(range(3), ERRORS)
        axis.set_title(f"{_level(*world)} of half the classes")
    axes[0].set_ylabel("error (%), mean and standard deviation")
    axes[0].legend()
    axes[0].figure.savefig(path)
