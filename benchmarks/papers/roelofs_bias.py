"""Roelofs, Cain, Shlens and Mozer (2022): the bias of estimators of the calibration
error, simulated.

Figures 1 and 4 to 15, Table 3, Algorithm 1 and Equation 4. Errors, biases and
deviations are in percent, of the l2 calibration error; estimators have 15 bins unless a
row says otherwise. Figures 9 to 11 show the bias by bins and n for three networks,
Figures 12 to 14 the root of the variance for the same ones.
"""

from functools import partial

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit

from benchmarks.papers._intervals import bootstrap, exact, mean, median, share
from benchmarks.papers._known_models import roelofs_models
from benchmarks.papers._rules import Rule, above, below, printed
from skcalib.binning import EqualMass, EqualWidth, MonotonicSweep
from skcalib.metrics import (
    calibration_error,
    kde_calibration_error,
    sweep_calibration_error,
)
from skcalib.simulation import CalibrationModel, GlmCurve, PowerCurve

PAPER = "roelofs"

_PLUGIN = partial(calibration_error, norm=2, method="plugin")
_ESTIMATORS = {
    "EW": partial(_PLUGIN, binning=EqualWidth(15)),
    "EM": partial(_PLUGIN, binning=EqualMass(15)),
    "EW sweep": partial(sweep_calibration_error, norm=2, binning=EqualWidth()),
    "EM sweep": partial(sweep_calibration_error, norm=2),
    "EM debiased": partial(
        calibration_error, norm=2, method="debiased", binning=EqualMass(15)
    ),
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
# Networks by their figures: of the bias, of the root of the variance.
_HEAT = {
    "resnet110_c10": ("Figure 9", "Figure 12"),
    "resnet_wide32_c100": ("Figure 10", "Figure 13"),
    "resnet152_imgnet": ("Figure 11", "Figure 14"),
}
_LAWS = {"U(0, 1)": stats.uniform(), "Beta(1.1, 0.1)": stats.beta(1.1, 0.1)}
# of Figure 15
_CURVES = {"calibrated": PowerCurve(1), "uncalibrated": lambda s: expit(10 * s - 5)}
_BIN_SIZES = (200, 800, 3200)
_SHARE, _RATIO = (0.0, 1.0), (0.0, np.inf)
_DATA_SETS = {"CIFAR-10": "_c10", "CIFAR-100": "_c100", "ImageNet": "_imgnet"}
_RISING = (("EW", "CIFAR-10"), ("EW sweep", "CIFAR-10"), ("EW", "CIFAR-100"))
_BY_DATA_SET = (
    "variance of the bias between data sets over that within, geometric mean of six"
    " estimates"
)


def _rules():
    rules = {
        "Figure 1: share of samples of a calibrated model, n=200, whose EW is above 2": above(  # noqa: E501
            0.9, "systematically large: at least .9 (our reading)", possible=_SHARE
        ),
        "Figure 1: bias of EW, calibrated model minus the fitted one, n=200": above(0),
    }
    for n_bins, line in zip(_BINS, _FIGURE_4.strip().splitlines(), strict=True):
        for n, paper in zip(_SIZES, line.split(), strict=True):
            # what the printed coefficients, rounded to two digits, leave open
            rules[f"Figure 4: bias of EW, {n_bins} bins, n={n}"] = printed(
                float(paper), margin=0.12, width=0.4
            )
    for name, paper in _TABLE_3.items():
        # 1,000 simulations behind the print: a standard error of .04
        rules[f"Figure 5, Table 3: mean simulated EW of 1000 rows, {name}"] = printed(
            paper, margin=0.08
        )
    for n in _SIZES:
        rules[f"Figure 6: n={n}, mean |bias| of the ten fits, EM minus EW"] = below(0)
        for other in ("EW", "EM", "EM debiased", "KDE", "EW sweep"):
            rule = (
                below(0, "less biased")
                if n < 1600
                else below(0.2, "similar or less: at most .2 (our reading)")
            )
            rules[
                f"Figure 6: n={n}, mean |bias| of the ten fits, EM sweep minus {other}"
            ] = rule
        rules[f"Figure 6: n={n}, mean |bias| of the ten fits, EW sweep minus EW"] = (
            above(0, "no improvement")
        )
        rules[
            f"Figure 6: n={n}, mean |bias| of the ten fits, KDE minus the largest other"
        ] = above(0, "much higher")
        rules[f"Figure 6: n={n}, {_BY_DATA_SET}"] = above(
            1, "the data set has the greater influence", possible=_RATIO
        )
    for n in _SIZES[2:]:
        for estimator, fits in _RISING:
            rules[
                f"Figure 6: mean |bias| of {estimator} of the {fits} fits, n={n} minus"
                f" n={n // 2}"
            ] = above(0, "rises with n")
    for law in _LAWS:
        for n in (200, 5000):
            rules[
                f"Figure 7: {law}, n={n}, rank correlation of the bias of EW and the"
                " truth"
            ] = below(0, possible=(-1, 1))
            rules[f"Figure 7: {law}, n={n}, mean |bias|, EM sweep minus EW"] = below(0)
    rules["Figure 7: U(0, 1), n=5000, bias of EW of a calibrated model"] = printed(
        2, margin=0.5, width=0.4
    )
    rules["Figure 7: U(0, 1), n=5000, calibrated model, |bias|, EM sweep minus EW"] = (
        below(0, "significantly reduced")
    )
    for law, paper in (("U(0, 1)", 5), ("Beta(1.1, 0.1)", 8)):
        quantity = f"Figure 7: {law}, n=200, TCE whose mean EW is 12 %"
        rules[quantity] = printed(paper, margin=0.5, width=1, possible=(0, 100))
    for truth, n in ((5, 200), (5, 800), (2, 5000), (2, 10_000)):
        quantity = (
            f"Figure 8: U(0, 1), TCE {truth} %, n={n}, share missed, EM sweep minus EW"
        )
        rules[quantity] = below(0, possible=(-1, 1))
    for truth, n, paper in (
        (2, 10_000, "needs over 10,000 rows"),
        (10, 400, "under 500 rows it must exceed 10 %"),
    ):
        quantity = f"Figure 8: U(0, 1), TCE {truth} %, n={n}, share missed by EM sweep"
        rules[quantity] = above(
            0.05, f"{paper}: above .05 (our reading)", possible=_SHARE
        )
    for name, (bias, deviation) in _HEAT.items():
        for better, worse in (("EM", "EW"), ("EM sweep", "EW")):
            rules[
                f"{bias}: {name}, mean |bias| over bins and n, {better} minus {worse}"
            ] = below(0)
        quantity = (
            f"{bias}: {name}, number of bins with the smallest |bias| of EM, n=6400"
            " over n=200"
        )
        rules[quantity] = above(1, "grows with n", possible=(0, 64))
        quantity = (
            f"{deviation}: {name}, mean deviation over n and 8 bins or more, EM"
            " debiased / EM sweep"
        )
        rules[quantity] = above(1, "the sweep's is the smaller", possible=(0, np.inf))
        rules[f"{deviation}: {name}, deviation of EM, n=6400 over n=200"] = below(
            1, "falls", possible=(0, np.inf)
        )
        quantity = f"{deviation}: {name}, mean deviation of EM over n, 64 bins over 8"
        rules[quantity] = Rule(
            "no clear dependence: .5 to 2 (our reading)", 0.5, 2, possible=(0, np.inf)
        )
    for n in _BIN_SIZES:
        at = f"Figure 15: calibrated U(0, 1), n={n}"
        rules[f"{at}, number of EM bins with the smallest |bias|"] = below(
            4, "at most 4", possible=(1, 64)
        )
        rules[f"{at}, median number of bins of the sweep"] = above(
            4, "not a good one", possible=(1, np.inf)
        )
        quantity = (
            f"Figure 15: uncalibrated U(0, 1), n={n}, |bias| of the sweep minus the"
            " least of EM"
        )
        rules[quantity] = below(0.5, "close to optimal: at most .5 (our reading)")
    rules[
        "Algorithm 1: largest difference between the sweep error and a plain loop, 60"
        " samples"
    ] = Rule("0", -1e-12, 1e-12)
    rules["Eq. 4: ECE_LB minus ECE_BIN, 200 samples, share not below 0"] = above(
        0.95, "never below 0", possible=_SHARE
    )
    return rules


ROWS = _rules()


def measure(options):
    """Measure all figures."""
    repeats = 20 if options.quick else options.repeats or 120
    jobs = options.n_jobs
    yield from _figure_1(10 * repeats, jobs)
    first = next(iter(_HEAT))
    heat = {
        name: _heat_map(name, repeats if name == first else repeats // 3, jobs)
        for name in _HEAT
    }
    yield from _figure_4(heat[first])
    yield from _table_3(repeats, jobs)
    errors = _all_fits((200, 400, 800) if options.quick else _SIZES, repeats, jobs)
    yield from _figure_6(errors)
    yield from _figure_7(repeats, jobs)
    yield from _figure_8(repeats, jobs)
    yield from _heat_maps(heat)
    yield from _figure_15(repeats, jobs)
    yield from _algorithm_1()
    yield from _label_binned()
    if options.plot is not None:
        _plot(heat[first], errors, options.plot)


# --- Figures 1, 4 and 5 ---


def _figure_1(repeats, n_jobs):
    """A calibrated model with the scores of a network: its binned error is far
    from 0.
    """
    model = CalibrationModel(stats.beta(2.8, 0.05), PowerCurve(1))
    values = 100 * model.estimates(
        _ESTIMATORS["EW"], 200, repeats, n_jobs=n_jobs, random_state=1
    )
    skewed = roelofs_models()["resnet110_c10"]
    other = 100 * (
        skewed.estimates(_ESTIMATORS["EW"], 200, repeats, n_jobs=n_jobs, random_state=1)
        - skewed.true_calibration_error()
    )
    yield (
        "Figure 1: share of samples of a calibrated model, n=200, whose EW is above 2",
        share(values > 2),
    )
    gap = bootstrap(lambda a, b: a.mean() - b.mean(), values, other, n_resamples=199)
    yield "Figure 1: bias of EW, calibrated model minus the fitted one, n=200", gap


def _heat_map(name, repeats, n_jobs):
    """Return estimates minus the truth of one fit, by (estimator, number of bins or
    None, n).
    """
    model = roelofs_models()[name]
    metrics = {("EM sweep", None): _ESTIMATORS["EM sweep"]}
    for n_bins in _BINS:
        metrics["EW", n_bins] = partial(_PLUGIN, binning=EqualWidth(n_bins))
        metrics["EM", n_bins] = partial(_PLUGIN, binning=EqualMass(n_bins))
        metrics["EM debiased", n_bins] = partial(
            calibration_error, norm=2, method="debiased", binning=EqualMass(n_bins)
        )
    heat, truth = {}, model.true_calibration_error()
    for n in _SIZES:
        # small samples are noisy and cheap
        count = repeats * (10 if n <= 200 else 4 if n <= 800 else 1)
        values = model.estimates(metrics, n, count, n_jobs=n_jobs, random_state=n)
        heat |= {(*key, n): 100 * (value - truth) for key, value in values.items()}
    return heat


def _figure_4(heat):
    for n_bins in _BINS:
        for n in _SIZES:
            yield (
                f"Figure 4: bias of EW, {n_bins} bins, n={n}",
                mean(heat["EW", n_bins, n]),
            )


def _table_3(repeats, n_jobs):
    """Return the mean simulated errors of Figure 5 and Table 3, on samples of 1,000
    rows as in the authors' code.

    The printed coefficients have two digits: the interval spans the fits whose
    coefficients round to them. The authors' are those of the calibration rows, which
    are not printed; see `roelofs_fits` for the network at hand.
    """
    for name, model in roelofs_models().items():
        simulated = partial(_mean_error, repeats=2 * repeats, n_jobs=n_jobs)
        corners = [simulated(corner) for corner in _rounding_corners(model)]
        quantity = f"Figure 5, Table 3: mean simulated EW of 1000 rows, {name}"
        yield quantity, (simulated(model), min(corners), max(corners))


def _mean_error(model, repeats, n_jobs):
    return (
        100
        * model.estimates(
            _ESTIMATORS["EW"], 1000, repeats, n_jobs=n_jobs, random_state=3
        ).mean()
    )


def _rounding_corners(model):
    curve = model.calibration_curve
    shifts = [0.0] if curve.intercept == 0 else [-0.005, 0.005]
    for intercept in shifts:
        for slope in (-0.005, 0.005):
            moved = GlmCurve(
                curve.link,
                curve.transform,
                curve.intercept + intercept,
                curve.slope + slope,
            )
            yield CalibrationModel(model.score_distribution, moved)


# --- Figures 6 to 8 ---


def _all_fits(sizes, repeats, n_jobs):
    """Return the errors of the estimates by (n, estimator): arrays (repeats,
    n_fits).
    """
    errors, count = {}, max(min(40, repeats), repeats // 2)
    for n in sizes:
        for model in roelofs_models().values():
            truth = model.true_calibration_error()
            values = model.estimates(
                _ESTIMATORS, n, count, n_jobs=n_jobs, random_state=n
            )
            for name, value in values.items():
                errors.setdefault((n, name), []).append(100 * (value - truth))
    return {key: np.transpose(value) for key, value in errors.items()}


def _figure_6(errors):
    sizes = sorted({n for n, _ in errors})
    for n in sizes:
        pairs = [
            ("EM", "EW"),
            *(
                ("EM sweep", other)
                for other in ("EW", "EM", "EM debiased", "KDE", "EW sweep")
            ),
        ]
        pairs.append(("EW sweep", "EW"))
        for better, worse in pairs:
            gap = bootstrap(
                _mean_bias_gap,
                errors[n, better],
                errors[n, worse],
                paired=True,
                n_resamples=199,
            )
            yield (
                f"Figure 6: n={n}, mean |bias| of the ten fits, {better} minus {worse}",
                gap,
            )
        all_six = [
            errors[n, name]
            for name in ("KDE", *(name for name in _ESTIMATORS if name != "KDE"))
        ]
        for quantity, statistic in (
            (
                "mean |bias| of the ten fits, KDE minus the largest other",
                _excess_over_others,
            ),
            (_BY_DATA_SET, _between_over_within),
        ):
            yield (
                f"Figure 6: n={n}, {quantity}",
                bootstrap(statistic, *all_six, paired=True, n_resamples=199),
            )
    for n in sizes:
        for estimator, fits in _RISING if n >= 800 else ():
            chosen = [name.endswith(_DATA_SETS[fits]) for name in _TABLE_3]
            parts = (errors[size, estimator][:, chosen] for size in (n, n // 2))
            quantity = (
                f"Figure 6: mean |bias| of {estimator} of the {fits} fits, n={n} minus"
                f" n={n // 2}"
            )
            yield quantity, bootstrap(_mean_bias_gap, *parts, n_resamples=199)


def _mean_bias_gap(first, second):
    return np.abs(first.mean(axis=0)).mean() - np.abs(second.mean(axis=0)).mean()


def _excess_over_others(first, *others):
    """Return the mean |bias| of the first estimate minus the largest of the others."""
    first, *others = (np.abs(errors.mean(axis=0)).mean() for errors in (first, *others))
    return first - max(others)


def _between_over_within(*estimates):
    """Return the F ratio of the biases by data set, as the geometric mean over the
    estimates.
    """
    groups = [
        [name.endswith(ending) for name in _TABLE_3] for ending in _DATA_SETS.values()
    ]
    biases = np.array([errors.mean(axis=0) for errors in estimates])
    parts = [biases[:, group] for group in groups]
    between = sum(
        part.shape[1] * (part.mean(axis=1) - biases.mean(axis=1)) ** 2 for part in parts
    ) / (len(parts) - 1)
    within = sum(part.shape[1] * part.var(axis=1) for part in parts) / (
        biases.shape[1] - len(parts)
    )
    return np.exp(np.mean(np.log(between / within)))


def _figure_7(repeats, n_jobs):
    """The bias grows as the true error shrinks: T(s) = s^d, d from 1 (calibrated) to
    10.
    """
    metrics = {name: _ESTIMATORS[name] for name in ("EW", "EM sweep")}
    for law, scores in _LAWS.items():
        for n in (200, 5000):
            models = [
                CalibrationModel(scores, PowerCurve(d))
                for d in (1, 1.5, 2, 3, 4, 6, 8, 10)
            ]
            truths = np.array([model.true_calibration_error() for model in models])
            count = max(min(50, repeats), repeats // 4)
            runs = [
                model.estimates(metrics, n, count, n_jobs=n_jobs, random_state=n)
                for model in models
            ]
            errors = {
                k: np.transpose(
                    [100 * (run[k] - t) for run, t in zip(runs, truths, strict=True)]
                )
                for k in metrics
            }
            rank = bootstrap(
                partial(_rank_correlation, truths), errors["EW"], n_resamples=199
            )
            yield (
                (
                    f"Figure 7: {law}, n={n}, rank correlation of the bias of EW and"
                    " the truth"
                ),
                rank,
            )
            gap = bootstrap(
                _mean_bias_gap,
                errors["EM sweep"],
                errors["EW"],
                paired=True,
                n_resamples=199,
            )
            yield f"Figure 7: {law}, n={n}, mean |bias|, EM sweep minus EW", gap
            if (law, n) == ("U(0, 1)", 5000):
                yield (
                    "Figure 7: U(0, 1), n=5000, bias of EW of a calibrated model",
                    mean(errors["EW"][:, 0]),
                )
                gap = bootstrap(
                    _mean_bias_gap,
                    errors["EM sweep"][:, :1],
                    errors["EW"][:, :1],
                    paired=True,
                )
                yield (
                    (
                        "Figure 7: U(0, 1), n=5000, calibrated model, |bias|, EM sweep"
                        " minus EW"
                    ),
                    gap,
                )
        models = [CalibrationModel(scores, PowerCurve(d)) for d in np.linspace(1, 2, 9)]
        runs = [
            model.estimates(
                metrics["EW"], 200, 4 * repeats, n_jobs=n_jobs, random_state=7
            )
            for model in models
        ]
        truths = [100 * model.true_calibration_error() for model in models]
        found = bootstrap(
            partial(_truth_at, 12, truths), 100 * np.transpose(runs), n_resamples=199
        )
        yield f"Figure 7: {law}, n=200, TCE whose mean EW is 12 %", found


def _truth_at(estimate, truths, estimates):
    """Return the true error at which the mean estimate, which grows with it, is
    `estimate`.
    """
    return float(np.interp(estimate, estimates.mean(axis=0), truths))


def _rank_correlation(truths, errors):
    return stats.spearmanr(truths, errors.mean(axis=0)).statistic


def _figure_8(repeats, n_jobs):
    """Detection of miscalibration at a type I error of .05: how often it is missed."""
    metrics = {name: _ESTIMATORS[name] for name in ("EW", "EM sweep")}
    for percent, n in ((5, 200), (5, 800), (2, 5000), (2, 10_000)):
        model = _power_model(percent / 100)
        count = max(min(100, repeats), repeats // 4)
        rates = [
            model.detection_rate(metrics, n, count, n_jobs=n_jobs, random_state=seed)
            for seed in range(6)
        ]
        gap = mean([rate["EW"] - rate["EM sweep"] for rate in rates])
        yield (
            (
                f"Figure 8: U(0, 1), TCE {percent} %, n={n}, share missed, EM sweep"
                " minus EW"
            ),
            gap,
        )
        if n == 10_000:
            quantity = (
                f"Figure 8: U(0, 1), TCE {percent} %, n={n}, share missed by EM sweep"
            )
            yield quantity, mean([1 - rate["EM sweep"] for rate in rates])
    model, sweep = _power_model(0.1), {"EM sweep": _ESTIMATORS["EM sweep"]}
    rates = [
        model.detection_rate(
            sweep, 400, 2 * min(100, repeats), n_jobs=n_jobs, random_state=seed
        )["EM sweep"]
        for seed in range(6)
    ]
    yield (
        "Figure 8: U(0, 1), TCE 10 %, n=400, share missed by EM sweep",
        mean(1 - np.array(rates)),
    )


def _power_model(truth):
    """Return the model T(s) = s^d of uniform scores with a true calibration error."""
    models = partial(CalibrationModel, stats.uniform())
    d = brentq(
        lambda d: models(PowerCurve(d)).true_calibration_error() - truth, 1.001, 10
    )
    return models(PowerCurve(d))


# --- Figures 9 to 15 ---


def _heat_maps(heat):
    for name, table in heat.items():
        bias, deviation = _HEAT[name]
        for better, worse in (("EM", "EW"), ("EM sweep", "EW")):
            quantity = (
                f"{bias}: {name}, mean |bias| over bins and n, {better} minus {worse}"
            )
            yield quantity, _mean_of_gaps(_cells(table, better), _cells(table, worse))
        quantity = (
            f"{bias}: {name}, number of bins with the smallest |bias| of EM, n=6400"
            " over n=200"
        )
        small, large = (
            [table["EM", n_bins, n] for n_bins in _BINS] for n in (200, 6400)
        )
        yield (
            quantity,
            bootstrap(
                _best_bins_ratio,
                np.transpose(small),
                np.transpose(large),
                n_resamples=199,
            ),
        )
        cells = [
            table["EM debiased", n_bins, n] for n_bins in _BINS[2:] for n in _SIZES
        ]
        sweep = [table["EM sweep", None, n] for n in _SIZES]
        quantity = (
            f"{deviation}: {name}, mean deviation over n and 8 bins or more, EM"
            " debiased / EM sweep"
        )
        yield (
            quantity,
            bootstrap(_deviation_ratio(len(cells)), *cells, *sweep, n_resamples=199),
        )
        quantity = f"{deviation}: {name}, deviation of EM, n=6400 over n=200"
        cells = [table["EM", n_bins, n] for n in (6400, 200) for n_bins in _BINS]
        yield quantity, bootstrap(_deviation_ratio(len(_BINS)), *cells, n_resamples=199)
        quantity = f"{deviation}: {name}, mean deviation of EM over n, 64 bins over 8"
        cells = [table["EM", n_bins, n] for n_bins in (64, 8) for n in _SIZES]
        yield (
            quantity,
            bootstrap(_deviation_ratio(len(_SIZES)), *cells, n_resamples=199),
        )


def _best_bins_ratio(small, large):
    """Return the number of bins with the smallest |bias| of large samples over that of
    small ones.
    """
    small, large = (
        _BINS[np.abs(errors.mean(axis=0)).argmin()] for errors in (small, large)
    )
    return large / small


def _deviation_ratio(n_first):
    """Return a function of cells: the mean standard deviation of the first ones over
    that of the others.
    """

    def statistic(*cells):
        deviations = [np.std(values, ddof=1) for values in cells]
        return np.mean(deviations[:n_first]) / np.mean(deviations[n_first:])

    return statistic


def _cells(table, estimator):
    return [values for key, values in table.items() if key[0] == estimator]


def _mean_of_gaps(better, worse):
    """Return the difference of the mean |bias| of two lists of cells, and its normal
    interval from their errors.
    """
    parts = [
        (
            np.mean([abs(v.mean()) for v in cells]),
            [v.var(ddof=1) / len(v) for v in cells],
        )
        for cells in (better, worse)
    ]
    # cells of one n share their samples: their errors may add up, so the mean of
    # standard errors is the safe one
    half = 1.96 * sum(np.mean(np.sqrt(variances)) for _, variances in parts)
    gap = parts[0][0] - parts[1][0]
    return gap, gap - half, gap + half


def _figure_15(repeats, n_jobs):
    """Return the best number of bins of uniform scores, and what the sweep picks."""
    metrics = {n_bins: partial(_PLUGIN, binning=EqualMass(n_bins)) for n_bins in _BINS}
    metrics |= {"sweep": _ESTIMATORS["EM sweep"], "sweep bins": _n_sweep_bins}
    for kind, curve in _CURVES.items():
        model = CalibrationModel(stats.uniform(), curve)
        truth = 100 * model.true_calibration_error()
        for n in _BIN_SIZES:
            at = f"Figure 15: {kind} U(0, 1), n={n}"
            values = model.estimates(metrics, n, repeats, n_jobs=n_jobs, random_state=n)
            errors = np.transpose([100 * values[n_bins] - truth for n_bins in _BINS])
            if kind == "calibrated":
                best = bootstrap(_best_bins, errors, n_resamples=199)
                yield f"{at}, number of EM bins with the smallest |bias|", best
                yield (
                    f"{at}, median number of bins of the sweep",
                    median(values["sweep bins"]),
                )
            else:
                gap = bootstrap(
                    _excess_bias,
                    100 * values["sweep"] - truth,
                    errors,
                    paired=True,
                    n_resamples=199,
                )
                yield f"{at}, |bias| of the sweep minus the least of EM", gap


def _best_bins(errors):
    return float(_BINS[np.abs(errors.mean(axis=0)).argmin()])


def _excess_bias(sweep, errors):
    return abs(sweep.mean()) - np.abs(errors.mean(axis=0)).min()


def _n_sweep_bins(y_true, y_proba):
    return float(len(MonotonicSweep().bin_edges(y_proba, y_true)) - 1)


def _algorithm_1():
    """The library's sweep against the loop as printed: one more bin until the bin
    heights are not monotone.
    """
    rng = np.random.default_rng(0)
    gaps = []
    for n in (20, 100, 400):
        for _ in range(20):
            scores = np.round(rng.random(n), rng.integers(1, 6))
            labels = rng.random(n) < scores ** rng.uniform(0.5, 3)
            gaps.append(
                sweep_calibration_error(labels, scores, norm=2, labels=[0, 1])
                - _plain_sweep(scores, labels)
            )
    quantity = (
        "Algorithm 1: largest difference between the sweep error and a plain loop, 60"
        " samples"
    )
    yield quantity, exact(max(gaps, key=abs))


def _plain_sweep(scores, labels):
    kept = None
    for n_bins in range(1, len(scores) + 1):
        bins = np.searchsorted(EqualMass(n_bins).bin_edges(scores)[1:-1], scores)
        groups = [bins == b for b in np.unique(bins)]
        heights = [labels[group].mean() for group in groups]
        if np.any(np.diff(heights) < 0):
            break
        kept = (
            sum(
                group.mean() * (scores[group].mean() - labels[group].mean()) ** 2
                for group in groups
            )
            ** 0.5
        )
    return kept


def _label_binned():
    model = roelofs_models()["resnet110_c10"]
    label_binned = partial(
        calibration_error, norm=2, method="label_binned", binning=EqualWidth(15)
    )
    both = model.estimates(
        {"label": label_binned, "mean": _ESTIMATORS["EW"]}, 400, 200, random_state=0
    )
    holds = both["label"] >= both["mean"] - 1e-12
    yield "Eq. 4: ECE_LB minus ECE_BIN, 200 samples, share not below 0", share(holds)


def _plot(heat, errors, path):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(18, 4), layout="constrained")
    for ax, kind in zip(axes, ("EW", "EM", "EM debiased"), strict=False):
        bias = np.array([[heat[kind, b, n].mean() for n in _SIZES] for b in _BINS])
        ax.imshow(np.abs(bias), cmap="Reds", vmin=0, vmax=9)
        for (row, column), value in np.ndenumerate(bias):
            ax.text(column, row, f"{value:.2f}", ha="center", va="center")
        ax.set(title=f"bias of {kind} in %", xlabel="n", ylabel="bins")
        ax.set_xticks(range(6), _SIZES)
        ax.set_yticks(range(6), _BINS)
    sizes = sorted({n for n, _ in errors})
    for name in _ESTIMATORS:
        axes[3].plot(
            sizes,
            [np.abs(errors[n, name].mean(axis=0)).mean() for n in sizes],
            "o-",
            label=name,
        )
    axes[3].set(
        title="mean |bias| of the ten fits (Figure 6)",
        xlabel="n",
        xscale="log",
        ylabel="%",
    )
    axes[3].set_xticks(sizes, sizes)
    axes[3].minorticks_off()
    axes[3].legend()
    figure.savefig(path)
