"""Kumar, Liang and Ma (2019) on CIFAR-10, VGG16: Figures 2 to 7, 12 to 17 and Appendix E.

The network is the authors' own. Where the paper shows one split of the rows, several are drawn here and the intervals
are over those.
"""

from functools import partial

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from benchmarks.papers._report import bootstrap_interval, claim, compare, mean_interval, ratio_interval
from skcalib import HistogramBinning, PlattScaling, ScalingBinning
from skcalib.binning import EqualMass, EqualWidth, FixedEdges, UniqueScores
from skcalib.metrics import calibration_error, reliability_curve

NEEDS_DATA = True

_BINS = tuple(range(5, 101, 5))
# The authors' scaling map is a logistic regression on the log-odds without Platt's smoothed targets.
_PLATT = PlattScaling(smooth_targets=False)
_METHODS = {
    "HB": HistogramBinning,
    "SB": partial(ScalingBinning, _PLATT),
    "SB, smoothed targets": ScalingBinning,
}
_CALIBRATION_ROWS = 1000
_binned_error = partial(calibration_error, norm=2, squared=True, binning=UniqueScores())


def run(options):
    """Measure all figures."""
    with np.load(options.data / "vision" / "cifar10_vgg16.npz") as data:
        probabilities, labels = data["probs"].astype(np.float64), data["labels"].astype(int)
    top = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    repeats = 8 if options.quick else options.repeats or 100
    bins = (10, 25, 50, 100) if options.quick else _BINS
    marginal = _by_bins(probabilities, labels, bins, repeats, options.n_jobs)
    confidence = _by_bins(*top, bins, repeats, options.n_jobs)
    rows = _marginal_rows(marginal, bins) + _top_label_rows(confidence, bins)
    rows += _lower_bound_rows(*top, n_splits=max(4, repeats // 5))
    rows += _split_rows(*top, repeats)
    rows += _estimator_rows(*top, options.quick)
    rows += _certificate_rows(probabilities, labels, options.quick)
    if options.plot is not None:
        _plot(marginal, confidence, bins, options.plot)
    return rows


# --- Figures 3 and 7: histogram binning against scaling-binning ---


def _by_bins(scores, labels, bins, repeats, n_jobs):
    """Return squared calibration errors and mean squared errors by method: arrays (2, n_bins, repeats)."""
    seeds = np.random.SeedSequence(3).spawn(repeats)
    tables = Parallel(n_jobs=n_jobs)(delayed(_one_sample)(scores, labels, bins, seed) for seed in seeds)
    return {name: np.stack([table[name] for table in tables], axis=-1) for name in _METHODS}


def _one_sample(scores, labels, bins, seed):
    rows = np.random.default_rng(seed).integers(len(labels), size=_CALIBRATION_ROWS)
    classes = None if scores.ndim == 1 else np.arange(scores.shape[1])
    table = {}
    for name, method in _METHODS.items():
        measured = []
        for n_bins in bins:
            model = method(binning=n_bins, normalize=False, classes=classes).fit(scores[rows], labels[rows])
            predicted = model.predict_proba(scores)
            if classes is None:
                error = _binned_error(labels, predicted[:, 1], method="plugin")
                squares = (predicted[:, 1] - labels) ** 2
            else:
                error = _binned_error(labels, predicted, method="plugin", multiclass="marginal")
                squares = (predicted - np.eye(len(classes))[labels]) ** 2
            measured.append((error, squares.mean()))
        table[name] = np.transpose(measured)
    return table


def _marginal_rows(measured, bins):
    hb, sb, smoothed = (measured[name] for name in _METHODS)
    last = bins.index(100)
    ratio, low, high = ratio_interval(sb[0, last], hb[0, last], paired=True)
    below = (100 * (1 - value) for value in (ratio, high, low))
    rows = [compare("Figure 3a, B=100: squared marginal CE, SB below HB by %", 35, *below, margin=0.5)]
    ratio = ratio_interval(smoothed[0, last], sb[0, last], paired=True)
    quantity = "Figure 3a, B=100: squared marginal CE, SB with Platt's smoothed targets / SB"
    rows.append(claim(quantity, "at most 1 (no such run)", *ratio, at_most=1))
    for n_bins in (25, 50):
        at = bins.index(n_bins)
        ratio = ratio_interval(sb[0, at], hb[0, at], paired=True)
        rows.append(claim(f"Figure 3a, B={n_bins}: squared marginal CE, SB / HB", "below 1", *ratio, at_most=1))
    for n_bins in (25, 50, 100):
        gain = partial(_mse_at_equal_error, position=bins.index(n_bins))
        interval = bootstrap_interval(gain, *(np.moveaxis(values, -1, 0) for values in (hb, sb)), paired=True)
        quantity = f"Figure 3b: least MSE, SB / HB, where CE is at most that of HB with B={n_bins}"
        rows.append(claim(quantity, "below 1", *interval, at_most=1))
    return rows


def _mse_at_equal_error(hb, sb, position):
    """Return the least mean squared error of SB over that of HB, among the B with a calibration error within budget."""
    (hb_errors, hb_squares), (sb_errors, sb_squares) = hb.mean(axis=0), sb.mean(axis=0)
    budget = max(hb_errors[position], sb_errors.min())
    return sb_squares[sb_errors <= budget].min() / hb_squares[hb_errors <= budget].min()


def _top_label_rows(measured, bins):
    hb, sb = (np.moveaxis(measured[name][0], -1, 0) for name in ("HB", "SB"))
    crossing = bootstrap_interval(partial(_crossing, bins=bins), hb, sb, paired=True)
    rows = [compare("Figure 7: B from which SB has the lower top-label CE", 30, *crossing, margin=5)]
    ratio = ratio_interval(sb[:, bins.index(100)], hb[:, bins.index(100)], paired=True)
    rows.append(claim("Figure 7, B=100: squared top-label CE, SB / HB", "below 1", *ratio, at_most=1))
    return rows


def _crossing(hb, sb, bins):
    """Return the B, between those that were measured, from which on SB's mean error is the lower one."""
    gap = sb.mean(axis=0) - hb.mean(axis=0)
    above = np.flatnonzero(gap > 0)
    if len(above) == 0 or above[-1] == len(bins) - 1:
        return float(bins[0] if len(above) == 0 else bins[-1])
    j = above[-1]
    return float(bins[j] + (bins[j + 1] - bins[j]) * gap[j] / (gap[j] - gap[j + 1]))


# --- Figures 2, 5, 6: the binned error of a scaled model grows with B ---


def _lower_bound_rows(scores, labels, n_splits):
    rows = []
    figures = (("2", 2, EqualMass), ("5", 1, EqualMass), ("6", 1, EqualWidth))
    bins = 2 ** np.arange(1, 8)
    for figure, norm, strategy in figures:
        plugin, debiased = np.transpose(
            [_scaled_errors(scores, labels, bins, norm, strategy, seed) for seed in range(n_splits)], (1, 0, 2)
        )
        rises = (np.diff(plugin, axis=1) > 0).sum(axis=1)
        name = f"Figure {figure}, l{norm}, {'equal mass' if strategy is EqualMass else 'equal width'}"
        rows.append(
            claim(f"{name}: binned CE, B=128 less B=2", "above 0", *_spread(plugin[:, -1] - plugin[:, 0]), at_least=0)
        )
        rows.append(claim(f"{name}: of 6 doublings of B, those with a larger CE", "6", *_spread(rises), at_least=5))
        growth = _spread(debiased[:, -1] - debiased[:, 0])
        rows.append(claim(f"{name}: the same, debiased, B=128 less B=2", "above 0", *growth, at_least=0))
    return rows


def _scaled_errors(scores, labels, bins, norm, strategy, seed):
    """Return the plugin and debiased errors by B of a Platt-scaled model, with bins from rows of their own."""
    order = np.random.default_rng(seed).permutation(len(labels))
    scores, labels = scores[order], labels[order]
    scaled = clone(_PLATT).fit(scores[:1000], labels[:1000]).predict_proba(scores)[:, 1]
    errors = []
    for n_bins in bins:
        edges = FixedEdges(strategy(int(n_bins)).bin_edges(scaled[:2000]))
        errors.append(
            [
                calibration_error(labels[2000:], scaled[2000:], norm=norm, binning=edges, method=method)
                for method in ("plugin", "debiased")
            ]
        )
    return np.transpose(errors)


def _spread(values):
    """Return the mean over splits and where the middle 90 % of the splits lie: splits share rows, a mean has no s.e."""
    return float(np.mean(values)), *(float(value) for value in np.quantile(values, [0.05, 0.95]))


# --- Appendix E: one sample for all three steps, or three parts ---


def _split_rows(scores, labels, repeats):
    rows = []
    for n_bins in (10, 50):
        errors = {"split": [], "no split": []}
        for seed in range(repeats):
            chosen = np.random.default_rng(seed).integers(len(labels), size=_CALIBRATION_ROWS)
            for name, parts in (("split", (1 / 3, 1 / 3, 1 / 3)), ("no split", None)):
                model = ScalingBinning(_PLATT, binning=n_bins, sample_split=parts, random_state=seed)
                predicted = model.fit(scores[chosen], labels[chosen]).predict_proba(scores)[:, 1]
                errors[name].append(_binned_error(labels, predicted, method="plugin"))
        ratio = ratio_interval(errors["no split"], errors["split"], paired=True)
        rows.append(claim(f"Appendix E, B={n_bins}: squared CE of SB, no split / split", "below 1", *ratio, at_most=1))
    return rows


# --- Figures 4 and 12 to 16: the debiased estimate against the plugin ---


def _estimator_rows(scores, labels, quick):
    """Return how much closer to the error on all rows the debiased estimates on a few rows are, over some splits."""
    n_splits, n_resamples = (3, 60) if quick else (10, 400)
    sizes, norms = (2000, 4000, 7000), {"l2 square": (2, True), "l1": (1, False)}
    gains = {(name, n_bins, n): [] for name in norms for n_bins in (10, 100) for n in sizes}
    for seed in range(n_splits):
        for name, n_bins, n in gains:
            norm, squared = norms[name]
            metric = partial(calibration_error, norm=norm, squared=squared, binning=UniqueScores())
            gains[name, n_bins, n].append(_gain(metric, *_binned_model(scores, labels, n_bins, seed), n, n_resamples))
    rows = []
    for (name, n_bins, n), values in gains.items():
        quantity = f"Figures 4, 12-16, {name}, B={n_bins}, n={n}: MSE, plugin / debiased"
        rows.append(claim(quantity, "above 1", *_geometric(values), at_least=1))
    for name in norms:
        relative = np.divide(gains[name, 100, 2000], gains[name, 10, 2000])
        quantity = f"Figures 4, 12-16, {name}, n=2000: that ratio, B=100 over B=10"
        rows.append(claim(quantity, "above 1", *_geometric(relative), at_least=1))
    return rows


def _geometric(ratios):
    return tuple(float(np.exp(value)) for value in mean_interval(np.log(ratios)))


def _binned_model(scores, labels, n_bins, seed):
    """Return predictions of a scaled and binned model on the 7,000 rows that it was not fitted on, and their labels."""
    order = np.random.default_rng(seed).permutation(len(labels))
    scores, labels = scores[order], labels[order]
    scaled = clone(_PLATT).fit(scores[:1000], labels[:1000]).predict_proba(scores)[:, 1]
    edges = EqualMass(n_bins).bin_edges(scaled[:3000])
    values = reliability_curve(labels[1000:3000], scaled[1000:3000], binning=FixedEdges(edges)).mean_score
    return values[np.searchsorted(edges[1:-1], scaled[3000:], side="left")], labels[3000:]


def _gain(metric, predicted, labels, n, n_resamples):
    """Return the mean squared deviation of the plugin estimates over that of the debiased ones, on resamples of n rows.

    The truth is the plugin error on all rows, from which the resamples are drawn.
    """
    # A resample is the counts of the (prediction, label) cells: as good as rows, and few.
    cells, counts = np.unique(np.column_stack((predicted, labels)), axis=0, return_counts=True)
    drawn = np.random.default_rng(n).multinomial(n, counts / counts.sum(), size=n_resamples)
    truth = metric(labels, predicted, method="plugin")
    deviation = {
        method: [metric(cells[:, 1] == 1, cells[:, 0], sample_weight=weight, method=method) - truth for weight in drawn]
        for method in ("plugin", "debiased")
    }
    return np.mean(np.square(deviation["plugin"])) / np.mean(np.square(deviation["debiased"]))


# --- Figure 17: how many bins can be certified ---


def _certificate_rows(probabilities, labels, quick):
    n_splits, n_resamples, bins = (2, 20, (5, 15, 50, 100)) if quick else (5, 100, _BINS)
    largest, costs = {"plugin": [], "debiased": []}, []
    for seed in range(n_splits):
        bounds, squares = _upper_bounds(probabilities, labels, bins, n_resamples, seed)
        for method in largest:
            certified = np.flatnonzero(bounds[method] <= 0.015)
            largest[method].append(bins[certified[-1]] if len(certified) else 0)
        best = [squares[bins.index(b)] if b else np.inf for b in (largest["plugin"][-1], largest["debiased"][-1])]
        costs.append(100 * (best[0] / best[1] - 1))
    rows = [
        compare(f"Figure 17, CE at most 1.5 % at 90 %: largest B, {method}", paper, *_extremes(largest[method]))
        for method, paper in (("debiased", 100), ("plugin", 15))
    ]
    rows.append(
        compare("Figure 17: MSE of the plugin's choice above the debiased one's, %", 13, *_extremes(costs), margin=0.5)
    )
    return rows


def _upper_bounds(probabilities, labels, bins, n_resamples, seed):
    """Return 90 % upper bounds of the marginal error by B and method, and the mean squared errors."""
    order = np.random.default_rng(seed).permutation(len(labels))
    probabilities, labels = probabilities[order], labels[order]
    fresh = labels[6000:]
    draws = np.random.default_rng(seed).multinomial(len(fresh), np.full(len(fresh), 1 / len(fresh)), size=n_resamples)
    bounds, squares = {"plugin": [], "debiased": []}, []
    for n_bins in bins:
        predicted = np.column_stack([_scaled_and_binned(probabilities[:, k], labels == k, n_bins) for k in range(10)])
        squares.append(np.mean((predicted - np.eye(10)[fresh]) ** 2))
        for method, found in bounds.items():
            metric = partial(_binned_error, fresh, predicted, method=method, multiclass="marginal", labels=range(10))
            deviation = np.std([metric(sample_weight=weight) for weight in draws])
            found.append(np.sqrt(max(metric() + 1.2816 * deviation, 0)))
    return {method: np.array(found) for method, found in bounds.items()}, np.array(squares)


def _scaled_and_binned(scores, labels, n_bins):
    """Return predictions for the rows from 6000 on: map and bins from 3,000 rows, bin values from the next 3,000."""
    scaled = clone(_PLATT).fit(scores[:3000], labels[:3000]).predict_proba(scores)[:, 1]
    edges = EqualMass(n_bins).bin_edges(scaled[:3000])
    values = reliability_curve(labels[3000:6000], scaled[3000:6000], binning=FixedEdges(edges)).mean_score
    return values[np.searchsorted(edges[1:-1], scaled[6000:], side="left")]


def _extremes(values):
    return float(np.mean(values)), float(np.min(values)), float(np.max(values))


def _plot(marginal, confidence, bins, path):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
    for ax, measured, title in ((axes[0], marginal, "marginal (3a)"), (axes[2], confidence, "top-label (7)")):
        for name, values in measured.items():
            mean, *limits = np.transpose([mean_interval(row, 0.9) for row in values[0]])
            ax.errorbar(bins, mean, (mean - limits[0], limits[1] - mean), fmt="o-", capsize=3, label=name)
        ax.set(title=title, xlabel="number of bins", ylabel="squared calibration error", ylim=(0, None))
        ax.legend()
    for name, values in marginal.items():
        axes[1].plot(*values.mean(axis=-1), "o", label=name)
    axes[1].set(title="marginal (3b)", xlabel="squared calibration error", ylabel="mean squared error")
    axes[1].legend()
    figure.savefig(path)
