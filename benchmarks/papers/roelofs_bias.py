"""Roelofs, Cain, Shlens and Mozer (2022): the bias of estimators of the calibration error, simulated.

Figures 1, 4, 5 and Table 3, 6, 7, 8, and 9 to 15, and with ``--data`` Figure 2. Errors and biases are in percent, of
the l2 calibration error unless said otherwise; estimators have 15 bins.
"""

from functools import partial

import numpy as np
from scipy import stats

from benchmarks.papers._networks import recalibrated_errors
from benchmarks.papers._report import bootstrap_interval, claim, compare, mean_interval
from skcalib.binning import EqualMass, EqualWidth
from skcalib.metrics import calibration_error, kde_calibration_error, sweep_calibration_error
from skcalib.simulation import CalibrationModel, GlmCurve, PowerCurve, roelofs_models

_PLUGIN = partial(calibration_error, norm=2, method="plugin")
_ESTIMATORS = {
    "EW": partial(_PLUGIN, binning=EqualWidth(15)),
    "EM": partial(_PLUGIN, binning=EqualMass(15)),
    "EW sweep": partial(sweep_calibration_error, norm=2, base=EqualWidth()),
    "EM sweep": partial(sweep_calibration_error, norm=2),
    "EM debiased": partial(calibration_error, norm=2, binning=EqualMass(15)),
    "KDE": partial(kde_calibration_error, norm=2),
}
_SIZES = (200, 400, 800, 1600, 3200, 6400)
_BINS = (2, 4, 8, 16, 32, 64)
_FIGURE_4 = """
-4.34 -4.52 -4.65 -4.72 -4.78 -4.82
-3.28 -3.71 -4.02 -4.21 -4.34 -4.42
-1.43 -2.14 -2.69 -3.04 -3.26 -3.40
 0.62 -0.37 -1.12 -1.67 -2.01 -2.24
 2.66  1.50  0.52 -0.26 -0.83 -1.22
 4.54  3.32  2.14  1.13  0.30 -0.30
"""
_TABLE_3 = {
    "resnet110_c10": 8.42,
    "resnet110_SD_c10": 8.79,
    "resnet_wide32_c10": 8.44,
    "densenet40_c10": 8.09,
    "resnet110_c100": 18.87,
    "resnet110_SD_c100": 15.78,
    "resnet_wide32_c100": 17.53,
    "densenet40_c100": 19.69,
    "resnet152_imgnet": 9.26,
    "densenet161_imgnet": 6.87,
}


def run(options):
    """Measure all figures."""
    repeats = 60 if options.quick else options.repeats or 1000
    heat = _heat_maps(repeats, options.n_jobs)
    biases = _all_fits((200, 800) if options.quick else _SIZES, repeats, options.n_jobs)
    rows = _figure_1(10 * repeats, options.n_jobs) + _figure_4(heat) + _table_3(repeats, options.n_jobs)
    rows += _figure_6(biases) + _figure_7(repeats, options.n_jobs) + _figure_8(repeats, options.n_jobs)
    rows += _appendix(heat, biases)
    if options.data is not None:
        rows += _figure_2(options.data)
    if options.plot is not None:
        _plot(heat, biases, options.plot)
    return rows


# --- Figures 1, 4 and 5 ---


def _figure_1(repeats, n_jobs):
    """A calibrated model with the scores of a network: its binned error is far from 0."""
    model = CalibrationModel(stats.beta(2.8, 0.05), PowerCurve(1))
    values = 100 * model.estimates(_ESTIMATORS["EW"], 200, repeats, n_jobs=n_jobs, random_state=1)
    low, median, high = np.quantile(values, [0.05, 0.5, 0.95])
    skewed = roelofs_models()["resnet110_c10"]
    other = 100 * (
        skewed.estimates(_ESTIMATORS["EW"], 200, repeats, n_jobs=n_jobs, random_state=1)
        - skewed.true_calibration_error()
    )
    gap = bootstrap_interval(lambda a, b: a.mean() - b.mean(), values, other, n_resamples=199)
    return [
        compare("Figure 1: EW of the sample shown, within the middle 90 % simulated, n=200", 5.08, median, low, high),
        claim("Figure 1: bias of EW, calibrated model less the fitted one, n=200", "above 0", *gap, at_least=0),
    ]


def _heat_maps(repeats, n_jobs):
    """Return the estimates of equal-width and equal-mass errors less the truth, resnet110_c10, by (kind, n_bins, n)."""
    model = roelofs_models()["resnet110_c10"]
    metrics = {
        (kind, n_bins): partial(_PLUGIN, binning=strategy(n_bins))
        for kind, strategy in (("EW", EqualWidth), ("EM", EqualMass))
        for n_bins in _BINS
    }
    heat = {}
    for n in _SIZES:
        # small samples are noisy and cheap
        values = model.estimates(metrics, n, repeats * (5 if n <= 800 else 1), n_jobs=n_jobs, random_state=n)
        heat |= {(*key, n): 100 * (value - model.true_calibration_error()) for key, value in values.items()}
    return heat


def _figure_4(heat):
    rows = []
    for n_bins, line in zip(_BINS, _FIGURE_4.strip().splitlines(), strict=True):
        for n, paper in zip(_SIZES, line.split(), strict=True):
            errors = heat["EW", n_bins, n]
            # a cell agrees within .15 points, or three Monte Carlo standard errors where those are more
            half = max(3 * errors.std(ddof=1) / len(errors) ** 0.5, 0.15)
            bias = errors.mean()
            rows.append(
                compare(f"Figure 4: bias of EW, {n_bins} bins, n={n}", float(paper), bias, bias - half, bias + half)
            )
    return rows


def _table_3(repeats, n_jobs):
    """Return the mean simulated errors on samples as large as the networks' test sets, of Figure 5 and Table 3.

    The printed coefficients have two digits. The interval spans the fits whose coefficients round to them.
    """
    rows = []
    for name, model in roelofs_models().items():
        n = 25_000 if name.endswith("imgnet") else 10_000
        mean = partial(_mean_error, n=n, repeats=max(10, repeats // 20), n_jobs=n_jobs)
        centre = mean(model)
        corners = [mean(corner) for corner in _rounding_corners(model)]
        rows.append(
            compare(
                f"Figure 5, Table 3: mean EW, {name}", _TABLE_3[name], centre, min(corners), max(corners), margin=0.005
            )
        )
    return rows


def _mean_error(model, n, repeats, n_jobs):
    return 100 * model.estimates(_ESTIMATORS["EW"], n, repeats, n_jobs=n_jobs, random_state=3).mean()


def _rounding_corners(model):
    curve = model.calibration_curve
    shifts = [0.0] if curve.intercept == 0 else [-0.005, 0.005]
    for intercept in shifts:
        for slope in (-0.005, 0.005):
            moved = GlmCurve(curve.link, curve.transform, curve.intercept + intercept, curve.slope + slope)
            yield CalibrationModel(model.score_distribution, moved)


# --- Figures 6 to 8 ---


def _all_fits(sizes, repeats, n_jobs):
    """Return the errors of the estimates by (n, estimator): arrays (repeats, n_fits)."""
    models = roelofs_models().values()
    biases = {}
    for n in sizes:
        for model in models:
            values = model.estimates(_ESTIMATORS, n, repeats, n_jobs=n_jobs, random_state=n)
            for name, value in values.items():
                biases.setdefault((n, name), []).append(100 * (value - model.true_calibration_error()))
    return {key: np.transpose(value) for key, value in biases.items()}


def _figure_6(biases):
    rows = []
    for n in sorted({n for n, _ in biases}):
        rows.append(_count_row(f"Figure 6, n={n}: fits of 10 with EM less biased than EW", biases, n, "EM", "EW"))
    for n in sorted({n for n, _ in biases if n <= 800}):
        for other in ("EW", "EM", "EM debiased", "KDE"):
            gap = bootstrap_interval(
                _mean_bias_gap, biases[n, "EM sweep"], biases[n, other], paired=True, n_resamples=199
            )
            quantity = f"Figure 6, n={n}: mean |bias| of the ten fits, EM sweep less {other}"
            rows.append(claim(quantity, "below 0", *gap, at_most=0))
    return rows


def _mean_bias_gap(first, second):
    return np.abs(first.mean(axis=0)).mean() - np.abs(second.mean(axis=0)).mean()


def _count_row(quantity, biases, n, better, worse):
    """Return in how many fits the bias is smaller; from those beyond doubt to those not excluded, at two s.e."""
    first, second = biases[n, better], biases[n, worse]
    gap = np.abs(first.mean(axis=0)) - np.abs(second.mean(axis=0))
    signs = np.sign(first.mean(axis=0)), np.sign(second.mean(axis=0))
    error = (signs[0] * first - signs[1] * second).std(axis=0, ddof=1) / len(first) ** 0.5
    return compare(quantity, 10, (gap < 0).sum(), (gap < -2 * error).sum(), (gap < 2 * error).sum())


def _figure_7(repeats, n_jobs):
    """The bias grows as the true error shrinks: T(s) = s^d, d from 1 (calibrated) to 10."""
    rows = []
    for label, scores in (("U(0, 1)", stats.uniform()), ("Beta(1.1, 0.1)", stats.beta(1.1, 0.1))):
        for n in (200, 5000):
            models = [CalibrationModel(scores, PowerCurve(d)) for d in (1, 1.5, 2, 3, 4, 6, 8, 10)]
            truths = np.array([model.true_calibration_error() for model in models])
            names = ("EW", "EM sweep")
            runs = [
                model.estimates(
                    {k: _ESTIMATORS[k] for k in names}, n, max(50, repeats // 4), n_jobs=n_jobs, random_state=n
                )
                for model in models
            ]
            errors = {k: np.transpose([100 * (run[k] - t) for run, t in zip(runs, truths, strict=True)]) for k in names}
            rank = bootstrap_interval(partial(_rank_correlation, truths), errors["EW"], n_resamples=199)
            rows.append(
                claim(
                    f"Figure 7, {label}, n={n}: rank correlation of the bias of EW and the truth",
                    "below 0",
                    *rank,
                    at_most=0,
                )
            )
            gap = bootstrap_interval(_mean_bias_gap, errors["EM sweep"], errors["EW"], paired=True, n_resamples=199)
            rows.append(claim(f"Figure 7, {label}, n={n}: mean |bias|, EM sweep less EW", "below 0", *gap, at_most=0))
    return rows


def _rank_correlation(truths, errors):
    return stats.spearmanr(truths, errors.mean(axis=0)).statistic


def _figure_8(repeats, n_jobs):
    """Detection of miscalibration at a type I error of .05: how often it is missed."""
    rows = []
    metrics = {name: _ESTIMATORS[name] for name in ("EW", "EM sweep")}
    for d in (1.2, 1.5, 2.0):
        model = CalibrationModel(stats.uniform(), PowerCurve(d))
        for n in (200, 800):
            rates = [
                model.detection_rate(metrics, n, max(100, repeats // 5), n_jobs=n_jobs, random_state=seed)
                for seed in range(5)
            ]
            if max(rate["EW"] for rate in rates) > 0.99:
                continue  # nothing is missed
            gap = mean_interval([rate["EW"] - rate["EM sweep"] for rate in rates])
            truth = 100 * model.true_calibration_error()
            quantity = f"Figure 8, U(0, 1), n={n}, truth {truth:.1f}: missed, EM sweep less EW"
            rows.append(claim(quantity, "below 0", *gap, at_most=0))
    return rows


# --- Figures 9 to 15: more of the same, in the appendix ---


def _appendix(heat, biases):
    rows = []
    smaller = [abs(heat["EM", b, n].mean()) < abs(heat["EW", b, n].mean()) for b in _BINS for n in _SIZES]
    rows.append(_share_row("Figures 9-15: of 36 cells of Figure 4, those with EM less biased than EW", smaller, 18))
    for kind in ("EW", "EM"):
        spread = np.array([[heat[kind, b, n].std() for n in _SIZES] for b in _BINS])
        falls = np.diff(spread, axis=1) < 0
        rows.append(
            _share_row(f"Figures 9-15: of 30 doublings of n, those with a smaller spread of {kind}", falls.ravel(), 29)
        )
    for n in sorted({n for n, _ in biases if n <= 800}):
        rows.append(
            _count_row(
                f"Figures 9-15, n={n}: fits of 10 with EM sweep less biased than EW sweep",
                biases,
                n,
                "EM sweep",
                "EW sweep",
            )
        )
    model = roelofs_models()["resnet110_c10"]
    label_binned = partial(calibration_error, norm=2, method="label_binned", binning=EqualWidth(15))
    both = model.estimates({"label": label_binned, "mean": _ESTIMATORS["EW"]}, 400, 200, random_state=0)
    gap = 100 * (both["label"] - both["mean"])
    rows.append(
        claim("ECE_LB less ECE_BIN, 200 samples", "never below 0", gap.mean(), gap.min() + 1e-9, gap.max(), at_least=0)
    )
    return rows


def _share_row(quantity, holds, at_least):
    count = int(np.sum(holds))
    return claim(quantity, f"at least {at_least}", count, count, count, at_least=at_least)


# --- Figure 2: which recalibrator wins depends on the error it is measured by ---


def _figure_2(data):
    errors = recalibrated_errors(data)
    metrics = list(next(iter(next(iter(errors.values())).values())))
    winners = {
        network: [min(table, key=lambda name: table[name][metric]) for metric in metrics]
        for network, table in errors.items()
    }
    changed = [network for network, won in winners.items() if len(set(won)) > 1]
    quantity = f"Figure 2: of {len(winners)} networks, those in which the error decides who wins"
    return [claim(quantity, "some", len(changed), len(changed), len(changed), at_least=1)]


def _plot(heat, biases, path):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
    for ax, kind in zip(axes, ("EW", "EM"), strict=False):
        bias = np.array([[heat[kind, b, n].mean() for n in _SIZES] for b in _BINS])
        ax.imshow(np.abs(bias), cmap="Reds", vmin=0, vmax=9)
        for (row, column), value in np.ndenumerate(bias):
            ax.text(column, row, f"{value:.2f}", ha="center", va="center")
        ax.set(title=f"bias of {kind} in % (Figure 4)", xlabel="n", ylabel="bins")
        ax.set_xticks(range(6), _SIZES)
        ax.set_yticks(range(6), _BINS)
    sizes = sorted({n for n, _ in biases})
    for name in _ESTIMATORS:
        axes[2].plot(sizes, [np.abs(biases[n, name].mean(axis=0)).mean() for n in sizes], "o-", label=name)
    axes[2].set(title="mean |bias| of the ten fits (Figure 6)", xlabel="n", xscale="log", ylabel="%")
    axes[2].set_xticks(sizes, sizes)
    axes[2].minorticks_off()
    axes[2].legend()
    figure.savefig(path)
