"""Zhao, Chen and Oymak (2020): label noise and class size, and calibration by class (tables as orderings, theory).

The paper trains image networks; here one of 100 units learns satimage (6 classes of soil, 36 features) in seconds. Half
the classes are corrupted in the training rows as in the paper: 30 % of their labels are wrong, or 5 % of their rows are
left. Each seed draws a split and a half, and corrupts that half and then the other one; its figures are the means of
both. The rows for calibration and for the test are clean. Figures are means over the seeds. The interval of a figure is
the mean -+ one standard deviation over the seeds, as in the paper's tables; that of a difference is a 95 % interval of
the mean. Quoted figures are those of ResNet-20 on CIFAR-10 with label noise.

Theorem 3.1 is checked in the case that gives its constants: labels are wrong once in 20 n rows. Samples of n rows hold
no wrong label with probability exp(-1/20) = .95; they are separable, and logistic regression is sure of everything.
Larger samples show a wrong label with probability 1 - exp(-30/20) = .78 for 30 n rows (as printed) and
1 - exp(-50/20) = .92 for 50 n rows (as proved); the theorem says 9/10.
"""

import warnings

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.papers._report import claim, compare, mean_interval
from skcalib import ClasswiseTemperatureScaling, TemperatureScaling, VectorScaling
from skcalib._solvers.logistic import fit_logistic
from skcalib.metrics import expected_calibration_error, groupwise_calibration_error

NEEDS_DATA = True

_METHODS = {
    "uncalibrated": None,
    "VS": VectorScaling(),
    "TS": TemperatureScaling(),
    "CTS": ClasswiseTemperatureScaling(np.inf),
}
_CORRUPTIONS = {"noise": "30 % label noise on half the classes", "few": "5 % of the rows of half the classes"}
_ERRORS = ("ECE", "Max-ECE", "Avg-ECE")
# Percent, where the paper's table is at hand.
_PRINTED = {
    ("noise", "ECE"): {"uncalibrated": 6.50, "VS": 1.31, "TS": 3.69, "CTS": 1.19},
    ("noise", "Max-ECE"): {"uncalibrated": 21.09, "VS": 4.37, "TS": 13.85, "CTS": 5.46},
}


def run(options):
    """Measure the tables over seeds, then the two statements."""
    seeds = range(3 if options.quick else options.repeats or 5)
    X, y = _load(options.data)
    measured = {kind: [_one_seed(X, y, kind, seed) for seed in seeds] for kind in ("clean", *_CORRUPTIONS)}
    rows = []
    for kind, name in _CORRUPTIONS.items():
        rows += _table(measured[kind], kind, name) + _differences(measured[kind], name)
    rows += _confidence(measured)
    rows += _theorem_31(2000) + _lemma_33(20)
    if options.plot is not None:
        _plot(measured, options.plot)
    return rows


def _load(data):
    table = np.genfromtxt(data / "tabular" / "satimage.csv.gz", delimiter=",", skip_header=1, dtype=str)
    return table[:, :-1].astype(np.float64), np.unique(table[:, -1], return_inverse=True)[1]


def _one_seed(X, y, kind, seed):
    """Return by method the errors and the accuracy, and how over-confident the uncalibrated model is, in percent."""
    order = np.random.default_rng(seed).permutation(y.max() + 1)
    halves = np.array_split(order, 2)
    results = [_one_half(X, y, np.isin(y, half), kind, seed) for half in halves[: 1 if kind == "clean" else 2]]
    return {
        name: {key: np.mean([one[name][key] for one in results]) for key in results[0][name]} for name in results[0]
    }


def _one_half(X, y, corrupted, kind, seed):
    rng = np.random.default_rng(seed)
    rows, rest = train_test_split(np.arange(len(y)), train_size=0.4, random_state=seed, stratify=y)
    calibration, test = train_test_split(rest, train_size=0.5, random_state=seed, stratify=y[rest])
    rows, labels = _corrupt(rows, y[rows], corrupted[rows], kind, y.max() + 1, rng)
    model = make_pipeline(StandardScaler(), MLPClassifier((100,), max_iter=200, random_state=seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 200 epochs are meant to be the end
        model.fit(X[rows], labels)
    scores = {"calibration": model.predict_proba(X[calibration]), "test": model.predict_proba(X[test])}
    figures = {}
    for name, method in _METHODS.items():
        proba = scores["test"]
        if method is not None:
            proba = method.fit(scores["calibration"], y[calibration]).predict_proba(proba)
        figures[name] = _figures(y[test], proba)
    gap = scores["test"].max(axis=1) - (scores["test"].argmax(axis=1) == y[test])
    return figures | {"over-confidence": {"corrupted": 100 * gap[corrupted[test]].mean(), "all": 100 * gap.mean()}}


def _corrupt(rows, labels, corrupted, kind, n_classes, rng):
    """Return the training rows and labels after the corruption."""
    if kind == "noise":
        wrong = corrupted & (rng.random(len(rows)) < 0.3)
        other = (labels + rng.integers(1, n_classes, len(rows))) % n_classes
        return rows, np.where(wrong, other, labels)
    keep = ~corrupted | (rng.random(len(rows)) < 0.05) if kind == "few" else np.ones(len(rows), dtype=bool)
    return rows[keep], labels[keep]


def _figures(y_true, y_proba):
    errors = [
        expected_calibration_error(y_true, y_proba, multiclass="top_label"),
        groupwise_calibration_error(y_true, y_proba, multiclass="top_label", reduce="max"),
        groupwise_calibration_error(y_true, y_proba, multiclass="top_label", reduce="mean"),
    ]
    return dict(
        zip((*_ERRORS, "accuracy"), 100 * np.array([*errors, np.mean(y_proba.argmax(1) == y_true)]), strict=True)
    )


def _values(results, method, figure):
    return np.array([result[method][figure] for result in results])


def _table(results, kind, name):
    """Return a row for each figure of each method; the claim is its place among the methods."""
    rows = []
    for error in _ERRORS:
        above_cts = {"at_least": _values(results, "CTS", error).mean()}
        below_uncalibrated = {"at_most": _values(results, "uncalibrated", error).mean()}
        for method in _METHODS:
            good = method in ("VS", "CTS")
            place = "below uncalibrated" if good else "above CTS"
            printed = _PRINTED.get((kind, error), {}).get(method)
            rows.append(
                claim(
                    f"{name}: {error} of {method}, %",
                    place if printed is None else f"{place} ({printed:.2f})",
                    *_mean_and_deviation(_values(results, method, error)),
                    **(below_uncalibrated if good else above_cts),
                )
            )
    uncalibrated = _values(results, "uncalibrated", "accuracy").mean()
    for method in _METHODS:
        mean, low, high = _mean_and_deviation(_values(results, method, "accuracy"))
        quantity = f"{name}: accuracy of {method}, %"
        if method == "VS":
            rows.append(claim(quantity, "may change", mean, low, high, at_least=0.0, at_most=100.0))
        else:
            rows.append(compare(quantity, round(uncalibrated, 4), mean, low, high))
    return rows


def _differences(results, name):
    """Return the paired differences between methods, seed by seed."""
    rows = []
    for better, worse, errors in (("TS", "uncalibrated", ("ECE",)), ("CTS", "TS", _ERRORS), ("VS", "TS", _ERRORS)):
        for error in errors:
            difference = _values(results, better, error) - _values(results, worse, error)
            quantity = f"{name}: {error}, {better} less {worse}, %"
            rows.append(claim(quantity, "below 0", *mean_interval(difference), at_most=0.0))
    changed = [
        _values(results, one, "accuracy") - _values(results, "uncalibrated", "accuracy") for one in ("TS", "CTS")
    ]
    most = float(np.abs(changed).max())
    rows.append(claim(f"{name}: accuracy changed by TS or CTS, %", "0", most, most, most, at_most=0.0))
    return rows


def _confidence(measured):
    """Return by how much the uncalibrated model is too sure of the corrupted classes, also against the clean model."""
    gaps = {kind: _values(measured[kind], "over-confidence", "corrupted") for kind in _CORRUPTIONS}
    clean = _values(measured["clean"], "over-confidence", "all")
    return [
        claim(
            "Label noise: confidence less accuracy on the noisy classes, %",
            "below 0: under-confident",
            *mean_interval(gaps["noise"]),
            at_most=0.0,
        ),
        claim(
            "Few rows: confidence less accuracy on the small classes, %",
            "above 0: over-confident",
            *mean_interval(gaps["few"]),
            at_least=0.0,
        ),
        claim(
            "Label noise: the same less that of training on clean rows, %",
            "below 0",
            *mean_interval(gaps["noise"] - clean),
            at_most=0.0,
        ),
        claim(
            "Few rows: the same less that of training on all rows, %",
            "above 0",
            *mean_interval(gaps["few"] - clean),
            at_least=0.0,
        ),
    ]


def _theorem_31(repeats, n=100):
    """Return how often logistic regression is sure of everything, by the size of its sample."""
    rng = np.random.default_rng(0)
    sure = {}
    for times in (1, 30, 50):
        wrong = rng.binomial(times * n, 1 / (20 * n), size=repeats)
        # x = +-1 and y = x unless wrong: one slope, and a single number says how many rows it suits
        counts, of_sample = np.unique(wrong, return_inverse=True)
        confidences = np.array([_confidence_of_fit(count, times * n) for count in counts])
        sure[times] = confidences[of_sample] > 1 - 0.1 / (times * n)
    return [
        claim(
            "Theorem 3.1: share of samples of n rows whose model is over-confident",
            "at least 9/10",
            *mean_interval(sure[1]),
            at_least=0.9,
        ),
        compare(
            "Theorem 3.1: share of samples of 30 n rows whose model is not (as printed: 9/10)",
            0.777,
            *mean_interval(~sure[30]),
            margin=0.0005,
        ),
        compare(
            "Theorem 3.1: share of samples of 50 n rows whose model is not (as proved)",
            0.918,
            *mean_interval(~sure[50]),
            margin=0.0005,
        ),
        claim(
            "Theorem 3.1: the same share for 50 n rows",
            "at least 9/10",
            *mean_interval(~sure[50]),
            at_least=0.9,
        ),
    ]


def _confidence_of_fit(n_wrong, n_rows):
    slope = fit_logistic(np.ones((1, 1)), np.array([1 - n_wrong / n_rows]), np.array([float(n_rows)]))[0]
    return float(expit(slope))


def _lemma_33(repeats, noise=(0.3, 0.1), test_noise=0.05):
    """Return confidence and accuracy of a linear classifier of two far clusters, trained with label noise."""
    confidence, accuracy = {True: [], False: []}, []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        cluster = rng.random(6000) < 0.5
        X = rng.normal(scale=0.1, size=(6000, 5)) + np.where(cluster, 1, -1)[:, None]
        train, test = np.arange(6000) < 4000, np.arange(6000) >= 4000
        flip = rng.random(6000) < np.where(train, np.where(cluster, *noise), test_noise)
        y = cluster ^ flip
        model = LogisticRegression(C=1e6, max_iter=1000).fit(X[train], y[train])
        proba = model.predict_proba(X[test])
        predicted = proba[:, 1] > 0.5
        for side in (True, False):
            confidence[side].append(proba.max(axis=1)[predicted == side].mean())
        accuracy.append(np.mean(predicted == y[test]))
    return [
        compare("Lemma 3.3: confidence where + is predicted, 1 - p+", 1 - noise[0], *mean_interval(confidence[True])),
        compare("Lemma 3.3: confidence where - is predicted, 1 - p-", 1 - noise[1], *mean_interval(confidence[False])),
        compare("Lemma 3.3: test accuracy, 1 - p_test", 1 - test_noise, *mean_interval(accuracy)),
    ]


def _mean_and_deviation(values):
    mean, deviation = values.mean(), values.std(ddof=1)
    return mean, mean - deviation, mean + deviation


def _plot(measured, path):
    from matplotlib.figure import Figure

    axes = Figure(figsize=(9, 3.5), layout="constrained").subplots(1, 2, sharey=True)
    for axis, (kind, name) in zip(axes, _CORRUPTIONS.items(), strict=True):
        for offset, method in enumerate(_METHODS):
            values = [_mean_and_deviation(_values(measured[kind], method, error)) for error in _ERRORS]
            mean, low, _ = np.array(values).T
            axis.bar(np.arange(3) + 0.2 * offset - 0.3, mean, 0.18, yerr=mean - low, label=method)
        axis.set_xticks(range(3), _ERRORS)
        axis.set_title(name)
    axes[0].set_ylabel("error (%), mean and standard deviation")
    axes[0].legend()
    axes[0].figure.savefig(path)
