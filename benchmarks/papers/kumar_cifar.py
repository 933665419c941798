"""Kumar, Liang and Ma (2019) on CIFAR-10, VGG16: Figures 2 to 4, 6, 7, 13, 14, 16 and
17, and Appendix E.

The network is the authors' own. Where the paper shows one split of the rows, several
are drawn here and the intervals are over those. Figures 4 and 14 are the squared
marginal error of a model that is scaled and binned on 3,000 rows; Figures 13 and 16 the
l1 top-label error of a scaled model, with bins from the same 3,000 rows. Figures 5, 12
and 15 and the first panels of Figures 2 and 7 are ImageNet.
"""

from functools import partial

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from benchmarks.papers._intervals import bootstrap, mean, middle, ratio, share
from benchmarks.papers._rules import above, below, printed
from skcalib import HistogramBinning, PlattScaling, ScalingBinning
from skcalib.binning import EqualMass, EqualWidth, FixedEdges, UniqueScores
from skcalib.metrics import calibration_error

PAPER = "kumar"
NEEDS_DATA = True

_BINS = (5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100)
# The authors' scaling map is a logistic regression on the log-odds without Platt's
# smoothed targets.
_PLATT = PlattScaling(smooth_targets=False, clip=None)
_METHODS = {
    "HB": HistogramBinning,
    "SB": partial(ScalingBinning, _PLATT),
    "SB, smoothed targets": partial(ScalingBinning, PlattScaling(clip=None)),
}
_CALIBRATION_ROWS = 1000
_binned_error = partial(calibration_error, norm=2, squared=True, binning=UniqueScores())
_POSITIVE, _SHARE = (0.0, np.inf), (0.0, 1.0)
# Figures of the estimators: which error, and the numbers of bins.
_ESTIMATES = {
    "Figure 4: squared marginal error": (10, 100),
    "Figure 13: l1 top-label error": (15, 100),
}
_SIZES = (500, 1000, 2000, 4000)
_HISTOGRAMS = {
    "Figure 14": "Figure 4: squared marginal error",
    "Figure 16": "Figure 13: l1 top-label error",
}


def _rules():
    rules = {
        "Figure 3a: B=100, squared marginal CE, SB below HB by %": printed(
            35, margin=0.5, width=10
        ),
        "Figure 3a: B=100, squared marginal CE, SB with Platt's smoothed targets / SB": below(  # noqa: E501
            1, "(no such run)", possible=_POSITIVE
        ),
        "Figure 3b: marginal CE at most 2 %, least MSE, SB below HB by %": printed(
            9, margin=0.5, width=4
        ),
        "Figure 7: B from which SB has the lower top-label CE": printed(
            30, margin=5, width=15, possible=(5, 100)
        ),
        "Figure 7: B=100, squared top-label CE, SB / HB": below(1, possible=_POSITIVE),
        "Figure 17: share of splits whose debiased choice has at least the B of the plugin's": above(  # noqa: E501
            0.8, "on the split shown", possible=_SHARE
        ),
        "Figure 17: share of splits whose debiased choice has at most the MSE of the plugin's": above(  # noqa: E501
            0.5, "on the split shown", possible=_SHARE
        ),
        "Figure 17: largest B with CE at most 1.5 % at 90 %, debiased": printed(
            100, width=20, possible=(0, 101)
        ),
        "Figure 17: largest B with CE at most 1.5 % at 90 %, plugin": printed(
            15, margin=2.5, width=10
        ),
        "Figure 17: MSE of the plugin's choice above that of the debiased choice, %": (
            printed(13, margin=0.5, width=8)
        ),
    }
    for n_bins in (25, 50):
        rules[f"Figure 3a: B={n_bins}, squared marginal CE, SB / HB"] = below(
            1, possible=_POSITIVE
        )
    for n_bins in (25, 50, 100):
        quantity = (
            "Figure 3b: least MSE, SB / HB, where CE is at most that of HB with"
            f" B={n_bins}"
        )
        rules[quantity] = below(1, possible=_POSITIVE)
    for name in (
        "Figure 2: l2, equal mass",
        "Figure 6: l1, equal mass",
        "Figure 6: l1, equal width",
    ):
        for method in ("plugin", "debiased"):
            shown = (
                "grows"
                if name.startswith("Figure 2")
                else "seems to grow, not conclusive in print"
            )
            rules[f"{name}, {method} CE, B=128 minus B=2"] = above(
                0, shown if method == "plugin" else "(not shown)"
            )
    for n_bins in (10, 50):
        for method in ("SB", "HB"):
            rules[
                f"Appendix E: B={n_bins}, squared CE of {method}, no split / split"
            ] = below(1, possible=_POSITIVE)
    for name, bins in _ESTIMATES.items():
        for n_bins in bins:
            for n in _SIZES:
                rules[f"{name}, B={n_bins}, n={n}, MSE, plugin / debiased"] = above(
                    1, possible=_POSITIVE
                )
        few, many = bins
        quantity = f"{name}, n=2000, that ratio, B={many} over B={few}"
        rules[quantity] = above(1, "especially when B is large", possible=_POSITIVE)
        for n_bins in bins:
            quantity = f"{name}, B={n_bins}, that ratio, n=500 over n=4000"
            rules[quantity] = above(1, "especially when n is small", possible=_POSITIVE)
    rules[
        "Figure 14: B=10, n=1000, 95 % quantile of the deviation, debiased / plugin"
    ] = below(1, "avoids very bad estimates", possible=_POSITIVE)
    for figure, bins in (("Figure 14", (100,)), ("Figure 16", (15, 100))):
        for n_bins in bins:
            quantity = (
                f"{figure}: B={n_bins}, n=1000, share of resamples whose debiased"
                " estimate is closer"
            )
            rules[quantity] = above(
                0.5, "much closer: most (our reading)", possible=_SHARE
            )
    return rules


ROWS = _rules()


def measure(options):
    """Measure all figures."""
    with np.load(options.data / "vision" / "cifar10_vgg16.npz") as data:
        probabilities, labels = (
            data["probs"].astype(np.float64),
            data["labels"].astype(int),
        )
    top = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    repeats = 4 if options.quick else options.repeats or 100
    bins = (10, 25, 50, 100) if options.quick else _BINS
    marginal = _by_bins(probabilities, labels, bins, repeats, options.n_jobs)
    confidence = _by_bins(*top, bins, repeats, options.n_jobs)
    yield from _marginal(marginal, bins)
    yield from _top_label(confidence, bins)
    yield from _lower_bounds(*top, n_splits=max(4, repeats // 3))
    yield from _sample_splits(*top, 3 * repeats)
    deviations = _estimator_deviations(probabilities, labels, options.quick)
    yield from _estimators(deviations)
    yield from _certificates(probabilities, labels, options.quick)
    if options.plot is not None:
        _plot(marginal, confidence, deviations, bins, options.plot)


# --- Figures 3 and 7: histogram binning against scaling-binning ---


def _by_bins(scores, labels, bins, repeats, n_jobs):
    """Return squared calibration errors and mean squared errors by method: arrays (2,
    n_bins, repeats).
    """
    seeds = np.random.SeedSequence(3).spawn(repeats)
    tables = Parallel(n_jobs=n_jobs)(
        delayed(_one_sample)(scores, labels, bins, seed) for seed in seeds
    )
    return {
        name: np.stack([table[name] for table in tables], axis=-1) for name in _METHODS
    }


def _one_sample(scores, labels, bins, seed):
    rows = np.random.default_rng(seed).integers(len(labels), size=_CALIBRATION_ROWS)
    classes = None if scores.ndim == 1 else np.arange(scores.shape[1])
    table = {}
    for name, method in _METHODS.items():
        measured = []
        for n_bins in bins:
            model = method(binning=n_bins, normalize=False, classes=classes).fit(
                scores[rows], labels[rows]
            )
            predicted = model.predict_proba(scores)
            if classes is None:
                error = _binned_error(labels, predicted[:, 1], method="plugin")
                squares = (predicted[:, 1] - labels) ** 2
            else:
                error = _binned_error(
                    labels, predicted, method="plugin", multiclass="marginal"
                )
                squares = (predicted - np.eye(len(classes))[labels]) ** 2
            measured.append((error, squares.mean()))
        table[name] = np.transpose(measured)
    return table


def _marginal(measured, bins):
    hb, sb, smoothed = (measured[name] for name in _METHODS)
    last = bins.index(100)
    value, low, high = ratio(sb[0, last], hb[0, last], paired=True)
    yield (
        "Figure 3a: B=100, squared marginal CE, SB below HB by %",
        tuple(100 * (1 - x) for x in (value, high, low)),
    )
    quantity = (
        "Figure 3a: B=100, squared marginal CE, SB with Platt's smoothed targets / SB"
    )
    yield quantity, ratio(smoothed[0, last], sb[0, last], paired=True)
    for n_bins in (25, 50):
        at = bins.index(n_bins)
        quantity = f"Figure 3a: B={n_bins}, squared marginal CE, SB / HB"
        yield quantity, ratio(sb[0, at], hb[0, at], paired=True)
    by_repeat = [np.moveaxis(values, -1, 0) for values in (hb, sb)]
    gain = bootstrap(
        partial(_mse_at_equal_error, budget=0.02**2), *by_repeat, paired=True
    )
    yield (
        "Figure 3b: marginal CE at most 2 %, least MSE, SB below HB by %",
        tuple(100 * (1 - gain[i]) for i in (0, 2, 1)),
    )
    for n_bins in (25, 50, 100):
        gain = partial(_mse_at_equal_error, position=bins.index(n_bins))
        quantity = (
            "Figure 3b: least MSE, SB / HB, where CE is at most that of HB with"
            f" B={n_bins}"
        )
        yield quantity, bootstrap(gain, *by_repeat, paired=True)


def _mse_at_equal_error(hb, sb, position=None, budget=None):
    """Return the least mean squared error of SB over that of HB, among the B with a
    calibration error within budget.
    """
    (hb_errors, hb_squares), (sb_errors, sb_squares) = hb.mean(axis=0), sb.mean(axis=0)
    budget = max(
        hb_errors[position] if budget is None else budget,
        sb_errors.min(),
        hb_errors.min(),
    )
    return sb_squares[sb_errors <= budget].min() / hb_squares[hb_errors <= budget].min()


def _top_label(measured, bins):
    hb, sb = (np.moveaxis(measured[name][0], -1, 0) for name in ("HB", "SB"))
    crossing = bootstrap(partial(_crossing, bins=bins), hb, sb, paired=True)
    yield "Figure 7: B from which SB has the lower top-label CE", crossing
    last = bins.index(100)
    yield (
        "Figure 7: B=100, squared top-label CE, SB / HB",
        ratio(sb[:, last], hb[:, last], paired=True),
    )


def _crossing(hb, sb, bins):
    """Return the B, between those that were measured, from which on SB's mean error is
    the lower one.
    """
    gap = sb.mean(axis=0) - hb.mean(axis=0)
    above = np.flatnonzero(gap > 0)
    if len(above) == 0 or above[-1] == len(bins) - 1:
        return float(bins[0] if len(above) == 0 else bins[-1])
    j = above[-1]
    return float(bins[j] + (bins[j + 1] - bins[j]) * gap[j] / (gap[j] - gap[j + 1]))


# --- Figures 2 and 6: the binned error of a scaled model grows with B ---


def _lower_bounds(scores, labels, n_splits):
    figures = (
        ("Figure 2: l2, equal mass", 2, EqualMass),
        ("Figure 6: l1, equal mass", 1, EqualMass),
        ("Figure 6: l1, equal width", 1, EqualWidth),
    )
    for name, norm, strategy in figures:
        errors = np.array(
            [
                _scaled_errors(scores, labels, (2, 128), norm, strategy, seed)
                for seed in range(n_splits)
            ]
        )
        for column, method in enumerate(("plugin", "debiased")):
            growth = errors[:, column, 1] - errors[:, column, 0]
            yield f"{name}, {method} CE, B=128 minus B=2", middle(growth)


def _scaled_errors(scores, labels, bins, norm, strategy, seed):
    """Return the plugin and debiased errors by B of a Platt-scaled model, with bins
    from rows of their own.
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    scores, labels = scores[order], labels[order]
    scaled = clone(_PLATT).fit(scores[:1000], labels[:1000]).predict_proba(scores)[:, 1]
    errors = []
    for n_bins in bins:
        edges = FixedEdges(strategy(int(n_bins)).bin_edges(scaled[1000:2000]))
        errors.append(
            [
                calibration_error(
                    labels[2000:],
                    scaled[2000:],
                    norm=norm,
                    binning=edges,
                    method=method,
                )
                for method in ("plugin", "debiased")
            ]
        )
    return np.transpose(errors)


# --- Appendix E: one sample for all steps, or a part for each ---


def _sample_splits(scores, labels, repeats):
    for n_bins in (10, 50):
        for name, parts in (("SB", (1 / 3, 1 / 3, 1 / 3)), ("HB", 0.5)):
            errors = {split: [] for split in (parts, None)}
            for seed in range(repeats):
                chosen = np.random.default_rng(seed).integers(
                    len(labels), size=_CALIBRATION_ROWS
                )
                for split, found in errors.items():
                    model = _METHODS[name](
                        binning=n_bins, sample_split=split, random_state=seed
                    )
                    predicted = model.fit(scores[chosen], labels[chosen]).predict_proba(
                        scores
                    )[:, 1]
                    found.append(_binned_error(labels, predicted, method="plugin"))
            quantity = f"Appendix E: B={n_bins}, squared CE of {name}, no split / split"
            yield quantity, ratio(errors[None], errors[parts], paired=True)


# --- Figures 4, 13, 14 and 16: the debiased estimate against the plugin ---


def _estimator_deviations(probabilities, labels, quick):
    """Return by (figure, B, n) the deviations of both estimates from the error on all
    rows: lists of (2, resamples).
    """
    n_splits, n_resamples = (3, 15) if quick else (10, 100)
    top = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    deviations = {}
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(len(labels))
        for name, bins in _ESTIMATES.items():
            for n_bins in bins:
                if name.startswith("Figure 4"):
                    parts = [
                        _scaled_and_binned(
                            probabilities[order, k], labels[order] == k, n_bins
                        )
                        for k in range(10)
                    ]
                else:
                    parts = [_scaled_with_bins(top[0][order], top[1][order], n_bins)]
                for n in _SIZES:
                    deviations.setdefault((name, n_bins, n), []).append(
                        _deviations(parts, n, n_resamples)
                    )
    return deviations


def _scaled_and_binned(scores, events, n_bins, n_rows=3000):
    """Return (metric, predictions, events) of the other rows for a model scaled and
    binned on the first ones.
    """
    model = ScalingBinning(_PLATT, binning=n_bins).fit(scores[:n_rows], events[:n_rows])
    return _binned_error, model.predict_proba(scores[n_rows:])[:, 1], events[n_rows:]


def _scaled_with_bins(scores, events, n_bins, n_rows=3000):
    """Return (l1 error in bins of the first rows, predictions, events) of the others,
    scaled on the first ones.
    """
    scaled = (
        clone(_PLATT).fit(scores[:n_rows], events[:n_rows]).predict_proba(scores)[:, 1]
    )
    edges = FixedEdges(EqualMass(n_bins).bin_edges(scaled[:n_rows]))
    return (
        partial(calibration_error, norm=1, binning=edges),
        scaled[n_rows:],
        events[n_rows:],
    )


def _deviations(parts, n, n_resamples):
    """Return (plugin, debiased) minus the plugin error on all rows, on resamples of n
    rows with replacement.

    The marginal square is the mean over the classes, whose resamples share their rows.
    """
    rng = np.random.default_rng(n)
    chosen = [rng.integers(len(parts[0][2]), size=n) for _ in range(n_resamples)]
    total = np.zeros((2, n_resamples))
    for metric, predicted, events in parts:
        truth = metric(events, predicted, method="plugin")
        for row, method in enumerate(("plugin", "debiased")):
            total[row] += [
                metric(events[rows], predicted[rows], method=method) - truth
                for rows in chosen
            ]
    return total / len(parts)


def _estimators(deviations):
    gains = {
        key: [np.divide(*np.mean(np.square(split), axis=1)) for split in values]
        for key, values in deviations.items()
    }
    for (name, n_bins, n), values in gains.items():
        yield f"{name}, B={n_bins}, n={n}, MSE, plugin / debiased", _geometric(values)
    for name, (few, many) in _ESTIMATES.items():
        quantity = f"{name}, n=2000, that ratio, B={many} over B={few}"
        yield (
            quantity,
            _geometric(np.divide(gains[name, many, 2000], gains[name, few, 2000])),
        )
        for n_bins in (few, many):
            quantity = f"{name}, B={n_bins}, that ratio, n=500 over n=4000"
            yield (
                quantity,
                _geometric(
                    np.divide(gains[name, n_bins, 500], gains[name, n_bins, 4000])
                ),
            )
    marginal = deviations["Figure 4: squared marginal error", 10, 1000]
    worst = [
        np.divide(*np.quantile(np.abs(split[::-1]), 0.95, axis=1)) for split in marginal
    ]
    yield (
        "Figure 14: B=10, n=1000, 95 % quantile of the deviation, debiased / plugin",
        _geometric(worst),
    )
    for figure, name in _HISTOGRAMS.items():
        for n_bins in _ESTIMATES[name] if figure == "Figure 16" else (100,):
            closer = [
                np.mean(np.abs(split[1]) < np.abs(split[0]))
                for split in deviations[name, n_bins, 1000]
            ]
            yield (
                (
                    f"{figure}: B={n_bins}, n=1000, share of resamples whose debiased"
                    " estimate is closer"
                ),
                mean(closer),
            )


def _geometric(ratios):
    return tuple(float(np.exp(value)) for value in mean(np.log(ratios)))


# --- Figure 17: how many bins can be certified ---


def _certificates(probabilities, labels, quick):
    n_splits, n_resamples, bins = (
        (3, 10, (15, 100)) if quick else (20, 30, (10, 15, 20, 30, 40, 60, 80, 100))
    )
    largest, costs = {"debiased": [], "plugin": []}, []
    for seed in range(n_splits):
        bounds, squares = _upper_bounds(probabilities, labels, bins, n_resamples, seed)
        for method in largest:
            certified = np.flatnonzero(bounds[method] <= 0.015)
            largest[method].append(bins[certified[-1]] if len(certified) else 0)
        best = [
            squares[bins.index(b)] if b else np.nan
            for b in (largest["plugin"][-1], largest["debiased"][-1])
        ]
        costs.append(100 * (best[0] / best[1] - 1))
    at_least = np.array(largest["debiased"]) >= np.array(largest["plugin"])
    yield (
        (
            "Figure 17: share of splits whose debiased choice has at least the B of the"
            " plugin's"
        ),
        share(at_least),
    )
    for method, values in largest.items():
        yield (
            f"Figure 17: largest B with CE at most 1.5 % at 90 %, {method}",
            middle(values),
        )
    costs = np.array(costs)[np.isfinite(costs)]  # splits in which both certify some B
    if len(costs):
        yield (
            (
                "Figure 17: share of splits whose debiased choice has at most the MSE"
                " of the plugin's"
            ),
            share(costs >= 0),
        )
        yield (
            (
                "Figure 17: MSE of the plugin's choice above that of the debiased"
                " choice, %"
            ),
            middle(costs),
        )


def _upper_bounds(probabilities, labels, bins, n_resamples, seed):
    """Return 90 % upper bounds of the marginal error by B and method, and the mean
    squared errors.

    Models are scaled and binned on 6,000 rows. The bound is normal, from the deviation
    of resamples of the other 4,000.
    """
    order = np.random.default_rng(seed).permutation(len(labels))
    probabilities, labels = probabilities[order], labels[order]
    fresh = labels[6000:]
    draws = np.random.default_rng(seed).multinomial(
        len(fresh), np.full(len(fresh), 1 / len(fresh)), size=n_resamples
    )
    bounds, squares = {"plugin": [], "debiased": []}, []
    for n_bins in bins:
        parts = [
            _scaled_and_binned(probabilities[:, k], labels == k, n_bins, 6000)
            for k in range(10)
        ]
        predicted = np.column_stack([part[1] for part in parts])
        squares.append(np.mean((predicted - np.eye(10)[fresh]) ** 2))
        for method, found in bounds.items():
            metric = partial(
                _binned_error,
                fresh,
                predicted,
                method=method,
                multiclass="marginal",
                labels=range(10),
            )
            deviation = np.std([metric(sample_weight=weight) for weight in draws])
            found.append(np.sqrt(max(metric() + 1.2816 * deviation, 0)))
    return {method: np.array(found) for method, found in bounds.items()}, np.array(
        squares
    )


def _plot(marginal, confidence, deviations, bins, path):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 5, figsize=(20, 3.8), layout="constrained")
    for ax, measured, title in (
        (axes[0], marginal, "marginal (3a)"),
        (axes[2], confidence, "top-label (7)"),
    ):
        for name, values in measured.items():
            centre, *limits = np.transpose([mean(row) for row in values[0]])
            ax.errorbar(
                bins,
                centre,
                (centre - limits[0], limits[1] - centre),
                fmt="o-",
                capsize=3,
                label=name,
            )
        ax.set(
            title=title,
            xlabel="number of bins",
            ylabel="squared calibration error",
            ylim=(0, None),
        )
        ax.legend()
    for name, values in marginal.items():
        axes[1].plot(*values.mean(axis=-1), "o", label=name)
    axes[1].set(
        title="marginal (3b)",
        xlabel="squared calibration error",
        ylabel="mean squared error",
    )
    axes[1].legend()
    for ax, (label, name) in zip(axes[3:], _HISTOGRAMS.items(), strict=True):
        estimates = np.abs(deviations[name, 100, 1000][0])
        for method, values in zip(("plugin", "debiased"), estimates, strict=True):
            ax.hist(
                values, np.linspace(0, estimates.max(), 30), alpha=0.5, label=method
            )
        ax.set(
            title=f"{label}: B=100, n=1000",
            xlabel="absolute deviation",
            ylabel="resamples",
        )
        ax.legend()
    figure.savefig(path)
