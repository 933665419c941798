"""Roelofs et al. (2022), Tables 1 and 2: fits of score distributions and calibration curves.

Without the paper's networks the fits are checked for consistency: data simulated with the printed parameters must give
them back. With ``--data`` the networks at hand are fitted too, DenseNet-40 on CIFAR-10 against its printed row.
"""

import numpy as np
from joblib import Parallel, delayed

from benchmarks.papers._networks import confidence, networks
from benchmarks.papers._report import claim, compare
from skcalib.simulation import fit_calibration_curve, fit_score_distribution, roelofs_models

_N_TEST = {"c10": 10_000, "c100": 10_000, "imgnet": 25_000}  # rows of the paper's test sets


def run(options):
    """Refit the ten models, and the networks at hand."""
    repeats = 10 if options.quick else options.repeats or 100
    fits, rows = {}, []
    for name, model in roelofs_models().items():
        n = _N_TEST[name.rpartition("_")[2]]
        seeds = np.random.SeedSequence(len(fits)).spawn(repeats)
        fits[name] = Parallel(n_jobs=options.n_jobs)(delayed(_fit)(model, n, seed) for seed in seeds)
        rows += _consistency_rows(name, model, fits[name])
    if options.data is not None:
        rows += _network_rows(options.data, 20 if options.quick else 200)
    if options.plot is not None:
        _plot(fits, options.plot)
    return rows


def _fit(model, n, seed):
    scores, y = model.sample(n, np.random.default_rng(seed))
    return _fit_rows(scores, y)


def _fit_rows(scores, y):
    """Return the Beta parameters, and intercept and slope by candidate, best first."""
    table = fit_calibration_curve(scores, y).table
    return fit_score_distribution(scores).args, {fit.name: (fit.curve.intercept, fit.curve.slope) for fit in table}


def _consistency_rows(name, model, fits):
    """Return the printed parameters against the middle 95 % of those that samples of the test set's size give."""
    curve = model.calibration_curve
    candidate = f"{curve.link}_{curve.transform}_" + ("b1" if curve.intercept == 0 else "b0_b1")
    rows = []
    for column, (parameter, paper) in enumerate(zip(("alpha", "beta"), model.score_distribution.args, strict=True)):
        values = [beta[column] for beta, _ in fits]
        rows.append(compare(f"Table 1, {name}: {parameter}", paper, *_middle(values), margin=0.00005))
    for column, (parameter, paper) in enumerate((("b0", curve.intercept), ("b1", curve.slope))):
        if candidate.endswith("_b1") and not candidate.endswith("b0_b1") and parameter == "b0":
            continue
        values = [curves[candidate][column] for _, curves in fits]
        rows.append(compare(f"Table 2, {name}, {candidate}: {parameter}", paper, *_middle(values), margin=0.005))
    chosen = np.array([_family(next(iter(curves))) == _family(candidate) for _, curves in fits])
    half = 1.96 * chosen.std() / len(chosen) ** 0.5
    quantity = f"Table 2, {name}: share of samples in which AIC chooses its link and transform"
    limits = max(0.0, chosen.mean() - half), min(1.0, chosen.mean() + half)
    rows.append(claim(quantity, "most often", chosen.mean(), *limits, at_least=0.5))
    return rows


def _family(candidate):
    return candidate.split("_b")[0]


def _network_rows(data, n_resamples):
    """Return the fits of the test rows of networks at hand; intervals are over resamples of the rows."""
    rows = []
    for name, _, _, probabilities, labels in networks(data, vision_only=True):
        y, scores = confidence(probabilities, labels)
        draws = np.random.default_rng(0).integers(len(y), size=(n_resamples, len(y)))
        fits = [_fit_rows(scores[rows_], y[rows_]) for rows_ in draws]
        own, printed = _fit_rows(scores, y), roelofs_models().get(name)
        chosen = "logit_logflip" if printed else _family(next(iter(own[1])))
        if printed:
            rows += _printed_rows(name, printed, own, fits)
            rows += _single_precision_rows(name, printed, scores.astype(np.float32), draws)
        share = np.mean([_family(next(iter(curves))) == chosen for _, curves in fits])
        quantity = f"Table 2, the network {name}: share of resamples that choose {chosen}"
        rows.append(
            claim(quantity, "most often" if printed else "(not in the paper)", share, share, share, at_least=0.5)
        )
    return rows


def _printed_rows(name, printed, own, fits):
    rows = []
    limits = np.quantile([beta for beta, _ in fits], [0.025, 0.975], axis=0)
    for column, parameter in enumerate(("alpha", "beta")):
        paper, value = printed.score_distribution.args[column], own[0][column]
        quantity = f"Table 1, the network {name}: {parameter}"
        rows.append(compare(quantity, paper, value, *limits[:, column], margin=0.00005))
    key = "logit_logflip_b1"
    slopes = np.quantile([curves[key][1] for _, curves in fits], [0.025, 0.975])
    paper, value = printed.calibration_curve.slope, own[1][key][1]
    rows.append(compare(f"Table 2, the network {name}, {key}: b1", paper, value, *slopes, margin=0.005))
    return rows


def _single_precision_rows(name, printed, scores, draws):
    """Return the Beta fits between censoring the ones of single precision and reading them as 1 - 2^-53.

    More than half of the scores are exactly 1 in single precision. Which of its scores the paper had is not said, but
    it moved those that were 1 by 1e-16.
    """
    moved = np.minimum(scores.astype(np.float64), 1 - 2.0**-53)
    fits = np.array([(fit_score_distribution(scores[d]).args, fit_score_distribution(moved[d]).args) for d in draws])
    own = np.mean([fit_score_distribution(scores).args, fit_score_distribution(moved).args], axis=0)
    rows = []
    for column, parameter in enumerate(("alpha", "beta")):
        low, high = np.quantile(fits[:, 0, column], 0.025), np.quantile(fits[:, 1, column], 0.975)
        quantity = f"Table 1, the network {name} in single precision, ones censored or moved: {parameter}"
        paper = printed.score_distribution.args[column]
        rows.append(compare(quantity, paper, own[column], low, high, margin=0.00005))
    return rows


def _middle(values):
    return float(np.mean(values)), *(float(value) for value in np.quantile(values, [0.025, 0.975]))


def _plot(fits, path):
    import matplotlib.pyplot as plt
    from scipy import stats

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    scores = np.linspace(0, 1, 1001)
    for name, model in roelofs_models().items():
        line = axes[0].plot(scores[1:-1], stats.beta(*fits[name][0][0]).pdf(scores[1:-1]), label=name)
        axes[1].plot(scores, model.calibration_curve(scores), color=line[0].get_color())
    axes[0].set(title="fitted score densities (Table 1)", xlabel="score", ylim=(0, 2))
    axes[1].set(title="calibration curves (Table 2)", xlabel="score", ylabel="event probability")
    axes[1].plot([0, 1], [0, 1], "k--")
    axes[0].legend()
    figure.savefig(path)
