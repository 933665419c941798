"""Roelofs et al. (2022), Tables 4 to 7: the errors of recalibrated networks, for those in the data folder.

Top-label errors in percent on the test rows, recalibrators fitted on the calibration rows. DenseNet-40 on CIFAR-10 is
the paper's own network, with its numbers. For the others its finding is checked, that recalibration lowers the error:
with every method for image networks, with temperature scaling for those of text, whose test sets are small.
"""

from functools import partial

import numpy as np

from benchmarks.papers._networks import ERRORS, RECALIBRATORS, confidence, networks
from benchmarks.papers._report import claim, compare
from skcalib import HistogramBinning
from skcalib.binning import EqualMass, EqualWidth

NEEDS_DATA = True

_PRINTED = {
    ("uncalibrated", "EW"): 5.50,
    ("uncalibrated", "EM sweep"): 5.49,
    ("temperature", "EW"): 0.95,
    ("temperature", "EM sweep"): 0.90,
    ("histogram", "EW"): 1.27,
    ("histogram", "EM sweep"): 1.27,
}
_HISTOGRAMS = [
    partial(HistogramBinning, strategy(15), multiclass=multiclass)
    for strategy in (EqualWidth, EqualMass)
    for multiclass in ("top_label", "ovr")
]


def run(options):
    """Measure the tables."""
    n_resamples = 50 if options.quick else options.repeats or 500
    rows, tables = [], {}
    for name, *data in networks(options.data, vision_only=options.quick):
        tables[name] = predictions = _predictions(*data)
        if name == "densenet40_c10":
            rows += _printed_rows(predictions, *data)
        methods = list(RECALIBRATORS) if name.endswith("_c10") else ["temperature"]
        rows += _improvement_rows(name, predictions, methods, n_resamples)
    if options.plot is not None:
        _plot(tables, options.plot)
    return rows


def _predictions(scores, labels, test_scores, test_labels):
    """Return (correct, confidence) of the test rows by recalibrator."""
    found = {"uncalibrated": confidence(test_scores, test_labels)}
    for name, make in RECALIBRATORS.items():
        found[name] = _fitted(make, scores, labels, test_scores, test_labels)
    return found


def _fitted(make, scores, labels, test_scores, test_labels):
    n_classes = scores.shape[1]
    classes = None if len(np.unique(labels)) == n_classes else np.arange(n_classes)
    return confidence(make(classes=classes).fit(scores, labels).predict_proba(test_scores), test_labels)


def _printed_rows(predictions, *data):
    """Return the paper's numbers, which are printed to .01; its kind of histogram binning is not."""
    histograms = [_fitted(make, *data) for make in _HISTOGRAMS]
    rows = []
    for (method, error), paper in _PRINTED.items():
        value = 100 * ERRORS[error](*predictions[method])
        low = high = value
        quantity = f"Tables 4 and 5, densenet40_c10, {method}: {error}"
        if method == "histogram":
            values = [100 * ERRORS[error](*prediction) for prediction in histograms]
            low, high, quantity = min(values), max(values), f"{quantity} (interval: four kinds of bins)"
        rows.append(compare(quantity, paper, value, low, high, margin=0.005))
    return rows


def _improvement_rows(network, predictions, methods, n_resamples):
    rng = np.random.default_rng(0)
    correct, _ = predictions["uncalibrated"]
    draws = rng.multinomial(len(correct), np.full(len(correct), 1 / len(correct)), size=n_resamples)
    rows = []
    for error, metric in ERRORS.items():
        before = np.array([metric(*predictions["uncalibrated"], sample_weight=draw) for draw in draws])
        for method in methods:
            after = np.array([metric(*predictions[method], sample_weight=draw) for draw in draws])
            change = 100 * (metric(*predictions[method]) - metric(*predictions["uncalibrated"]))
            low, high = 100 * np.quantile(after - before, [0.025, 0.975])
            quantity = f"Tables 4-7, {network}, {error}: {method} less uncalibrated"
            rows.append(claim(quantity, "below 0", change, min(low, change), max(high, change), at_most=0))
    return rows


def _plot(tables, path):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(tables), figsize=(3 * len(tables), 3.5), layout="constrained", squeeze=False)
    for ax, (network, predictions) in zip(axes[0], tables.items(), strict=True):
        for shift, (method, prediction) in enumerate(predictions.items()):
            values = [100 * metric(*prediction) for metric in ERRORS.values()]
            ax.bar(np.arange(len(values)) + 0.15 * shift, values, 0.15, label=method)
        ax.set(title=network, ylabel="error in %")
        ax.set_xticks(np.arange(len(ERRORS)) + 0.3, ERRORS, rotation=45, ha="right")
    axes[0, 0].legend()
    figure.savefig(path)
