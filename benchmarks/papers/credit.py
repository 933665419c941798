"""Gupta and Ramdas (2021), CREDIT: validity of histogram binning with and without sample splitting (Figures 1, 3-6).

Data set "default of credit card clients" (UCI), features standardised on all rows. Part A trains a logistic regression,
part B fits Platt scaling to it, part C gives the calibration rows and 5,000 test rows of each repeat. The figures are
means over random A/B/C splits; intervals are over the splits, which differ by more than the repeats within one.
"""

import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from benchmarks.papers._report import claim, compare, mean_interval
from skcalib import HistogramBinning, PlattScaling, ScalingBinning, UniformMassBinning
from skcalib.binning import EqualMass, EqualWidth, PoolAdjacentViolators
from skcalib.guarantees import conditional_epsilon, marginal_epsilon
from skcalib.metrics import validity_curve

NEEDS_DATA = True

_N_BINS = 10
_N_TEST = 5000
_EPSILONS = np.round(np.arange(0, 0.2001, 0.01), 2)
_METHODS = {
    "UMD": lambda: UniformMassBinning(_N_BINS),
    "UMS": lambda: HistogramBinning(EqualMass(_N_BINS), sample_split=0.5),
    "fixed width": lambda: HistogramBinning(EqualWidth(_N_BINS)),
    # the step function of the isotonic fit: its blocks are the bins
    "isotonic": lambda: HistogramBinning(PoolAdjacentViolators()),
    "scaling-binning": lambda: ScalingBinning(binning=_N_BINS),
}
_PROTOCOLS = {"10K/5K": (10_000, 5_000), "14K/1K": (14_000, 1_000)}


def run(options):
    """Measure the validity of each method over splits and repeats."""
    n_splits, repeats = (2, 20) if options.quick else (10, options.repeats or 100)
    sizes = [500, 1000] if options.quick else [500, 1000, 3000, 5000, 7000]
    X, y = _load(options.data)
    curves = _measure(X, y, "10K/5K", sizes, n_splits, repeats)
    rows = _headlines(curves)
    for n in sizes:
        rows += _orderings(curves, n)
    small = _measure(X, y, "14K/1K", [1000], n_splits, repeats)
    rows.append(_difference(small, 1000, "UMD", "UMS", 0.05, "14K/1K/1K: V(.05), UMD above UMS"))
    if options.plot is not None:
        _plot(curves, sizes[-4:], options.plot)
    return rows


def _load(data):
    table = np.loadtxt(data / "tabular" / "credit_default.csv.gz", delimiter=",", skiprows=1)
    return scale(table[:, :-1]), table[:, -1].astype(int)


def _measure(X, y, protocol, sizes, n_splits, repeats):
    """Return mean curves by (method, n, conditional): arrays (n_splits, n_epsilons)."""
    collected = {}
    for split in range(n_splits):
        rng = np.random.default_rng(split)
        scores, labels = _scored_part(X, y, *_PROTOCOLS[protocol], rng)
        for n in sizes:
            found = {name: [] for name in _METHODS}
            for _ in range(repeats):
                rows = rng.permutation(len(scores))[: n + _N_TEST]
                for name, curve in _validity(scores[rows], labels[rows], n).items():
                    found[name].append(curve)
            for name, values in found.items():
                collected.setdefault((name, n), []).append(np.mean(values, axis=0))
    return {key: np.array(values) for key, values in collected.items()}


def _scored_part(X, y, n_train, n_platt, rng):
    """Return Platt-scaled scores and labels of part C."""
    train, platt, rest = np.split(rng.permutation(len(y)), [n_train, n_train + n_platt])
    model = LogisticRegression(max_iter=1000).fit(X[train], y[train])
    platt = PlattScaling(input="logit").fit(model.decision_function(X[platt]), y[platt])
    return platt.predict_proba(model.decision_function(X[rest]))[:, 1], y[rest]


def _validity(scores, labels, n):
    """Return the marginal and conditional curves, (2, n_epsilons), of each method fitted on the first n rows."""
    found = {}
    for name, make in _METHODS.items():
        with warnings.catch_warnings():
            # rows are shuffled above; a chance difference between the halves of a split is part of the experiment
            warnings.filterwarnings("ignore", message="The event frequency is", category=UserWarning)
            y_proba = _distinct_by_bin(make().fit(scores[:n], labels[:n]), scores[n:])
        found[name] = [
            validity_curve(labels[n:], y_proba, epsilons=_EPSILONS, conditional=conditional)[1]
            for conditional in (False, True)
        ]
    return found


def _distinct_by_bin(model, scores):
    """Return predictions that differ between bins by an infinitesimal at least.

    Bins often predict the same k / 99; read as one bin they would look better calibrated than they are. The paper's
    randomised algorithm perturbs the bin means for that reason.
    """
    y_proba = model.predict_proba(scores)[:, 1]
    if isinstance(model, ScalingBinning):  # its values increase from bin to bin
        return y_proba
    side = "right" if isinstance(model, UniformMassBinning) else "left"
    bins = np.searchsorted(model.bin_edges_[1:-1], scores, side=side)
    return np.abs(y_proba - 1e-9 * bins)


def _at(curves, name, n, epsilon, conditional=False):
    return curves[name, n][:, int(conditional), np.searchsorted(_EPSILONS, epsilon)]


def _headlines(curves):
    return [
        compare("V(.05) at n = 1000, UMS", 0.63, *mean_interval(_at(curves, "UMS", 1000, 0.05)), margin=0.005),
        compare("V(.05) at n = 1000, UMD", 0.79, *mean_interval(_at(curves, "UMD", 1000, 0.05)), margin=0.005),
        claim(
            "V(.05) at n = 1000, UMD - UMS",
            "at least .12",
            *mean_interval(_at(curves, "UMD", 1000, 0.05) - _at(curves, "UMS", 1000, 0.05)),
            at_least=0.12,
        ),
        claim(
            "V(.1) at n = 500, UMD",
            "at least .9",
            *mean_interval(_at(curves, "UMD", 500, 0.1)),
            at_least=0.9,
        ),
    ]


def _orderings(curves, n):
    """Return the claims of Figures 3 to 6 for one calibration size, as differences between methods."""
    gaps = curves["UMD", n][:, 0] - curves["UMS", n][:, 0]
    open_ = (_EPSILONS >= 0.02) & (curves["UMS", n][:, 0].mean(axis=0) < 0.995)
    lowest = int(np.argmin(np.where(open_, gaps.mean(axis=0), np.inf)))
    rows = [
        claim(
            f"n = {n}: least V(eps), UMD - UMS, eps from .02",
            "above 0",
            *mean_interval(gaps[:, lowest]),
            at_least=0,
        ),
        claim(
            f"n = {n}: conditional V at the theorem's eps, UMD",
            "at least .9",
            *mean_interval(_validity_at_theorem(curves, n)),
            at_least=0.9,
        ),
    ]
    for other in ("isotonic", "fixed width"):
        rows.append(_difference(curves, n, "UMD", other, 0.1, f"n = {n}: conditional V(.1), UMD above {other}", True))
    if n <= 1000:
        rows.append(
            _difference(curves, n, "scaling-binning", "UMD", 0.05, f"n = {n}: V(.05), scaling-binning above UMD")
        )
    return rows


def _validity_at_theorem(curves, n):
    epsilon = np.ceil(100 * conditional_epsilon(n, _N_BINS)) / 100
    return np.ones(1) if epsilon > _EPSILONS[-1] else _at(curves, "UMD", n, epsilon, conditional=True)


def _difference(curves, n, better, worse, epsilon, quantity, conditional=False):
    gap = _at(curves, better, n, epsilon, conditional) - _at(curves, worse, n, epsilon, conditional)
    return claim(quantity, "above 0", *mean_interval(gap), at_least=0)


def _plot(curves, sizes, path):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(sizes), sharex=True, sharey=True, layout="constrained", squeeze=False)
    figure.set_size_inches(3.2 * len(sizes), 6)
    for column, n in enumerate(sizes):
        for row, (kind, bound) in enumerate((("marginal", marginal_epsilon), ("conditional", conditional_epsilon))):
            ax = axes[row, column]
            for name in _METHODS:
                mean = curves[name, n][:, row]
                ax.errorbar(_EPSILONS, mean.mean(axis=0), mean.std(axis=0) / np.sqrt(len(mean)), label=name)
            levels = np.linspace(0.01, 0.999, 200)
            ax.plot([bound(n, _N_BINS, confidence_level=level) for level in levels], levels, "k:", label="theorem, UMD")
            ax.set(title=f"n = {n}, {kind}", xlabel="epsilon", ylabel="V(epsilon)", xlim=(0, _EPSILONS[-1]))
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    figure.savefig(path)
