"""Roelofs et al. (2022), Tables 1 and 2: fits of score distributions and calibration curves.

Without the paper's networks the fits are checked for consistency: data simulated with the printed parameters must give
them back. With ``--data`` DenseNet-40 on CIFAR-10 is fitted, against its printed row, on all rows and on the least
confident ones. A constant-only fit has AIC 2 + 2 n H(p), p = expit(b0): the printed one of DenseNet-40 gives n = 3,571
where the test set has 10,000 rows. The 3,660 least confident rows have the accuracy .797 that its b0 implies: that is
how their number was chosen, so the accuracy is no row here.
"""

import numpy as np
from joblib import Parallel, delayed

from benchmarks.papers._intervals import exact, mean, middle, share
from benchmarks.papers._networks import confidence, networks
from benchmarks.papers._rules import above, printed
from skcalib.simulation import fit_calibration_curve, fit_score_distribution, roelofs_models

PAPER = "roelofs"

_N_TEST = {"c10": 10_000, "c100": 10_000, "imgnet": 25_000}  # rows of the paper's test sets
_LEAST_CONFIDENT = 3660
_ROWS_USED = {"all rows": 10_000, f"{_LEAST_CONFIDENT} least confident rows": _LEAST_CONFIDENT}
# DenseNet-40: logflip-logflip as printed, and the row that the paper chose.
_DENSENET = {"logflip_logflip_b0_b1": {"b0": -0.31, "b1": 0.24, "AIC": 3001.8}, "logit_logflip_b1": {"b1": -0.26}}
# AICs of the chosen rows that are at hand. That of n rows grows like n: it says how many rows the paper fitted.
_AIC = {"resnet110_SD_c10": 2490.90, "densenet161_imgnet": 18460.70}
_SCORES = ("double precision", "single precision, ones censored", "single precision, ones moved")


def _candidate(model):
    curve = model.calibration_curve
    return f"{curve.link}_{curve.transform}_" + ("b1" if curve.intercept == 0 else "b0_b1")


def _parameters(model):
    """Return the printed parameters by the table that prints them."""
    alpha, beta = model.score_distribution.args
    curve = model.calibration_curve
    intercept = {} if curve.intercept == 0 else {"b0": curve.intercept}
    return {"Table 1": {"alpha": alpha, "beta": beta}, "Table 2": {**intercept, "b1": curve.slope}}


def _rules():
    rules = {}
    for name, model in roelofs_models().items():
        for table, parameters in _parameters(model).items():
            for parameter, value in parameters.items():
                # maximum likelihood is biased a little, by less than 3 %
                rules[f"{table}: {name}, {parameter} of samples with it"] = printed(value, margin=0.03 * abs(value))
        if name in _AIC:
            rules[f"Table 2: {name}, AIC of samples of the test set's size"] = printed(_AIC[name], margin=0.005)
        rules[f"Table 2: {name}, share of samples in which AIC chooses its link and transform"] = above(
            0.5, "most often", possible=(0, 1)
        )
    densenet = roelofs_models()["densenet40_c10"].score_distribution.args
    for rows in _ROWS_USED:
        at = f"the network densenet40_c10, {rows}"
        for parameter, value in zip(("alpha", "beta"), densenet, strict=True):
            for scores in _SCORES if rows == "all rows" else _SCORES[:1]:
                rules[f"Table 1: {at}, {scores}, {parameter}"] = printed(value, margin=5e-5)
        for candidate, values in _DENSENET.items():
            for parameter, value in values.items():
                margin = 0.05 if parameter == "AIC" else 0.005
                rules[f"Table 2: {at}, {candidate}, {parameter}"] = printed(value, margin=margin)
        quantity = f"Table 2: {at}, share of resamples that choose logit_logflip"
        rules[quantity] = above(0.5, "most often", possible=(0, 1))
    return rules


ROWS = _rules()


def measure(options):
    """Refit the ten models, and the network at hand."""
    repeats = 6 if options.quick else options.repeats or 12
    fits = {}
    for name, model in roelofs_models().items():
        n = _N_TEST[name.rpartition("_")[2]]
        seeds = np.random.SeedSequence(len(fits)).spawn(repeats)
        fits[name] = Parallel(n_jobs=options.n_jobs)(delayed(_fit_sample)(model, n, seed) for seed in seeds)
        yield from _consistency(name, model, fits[name])
    if options.data is not None:
        yield from _densenet(options.data, 12 if options.quick else 30)
    if options.plot is not None:
        _plot(fits, options.plot)


def _fit_sample(model, n, seed):
    scores, y = model.sample(n, np.random.default_rng(seed))
    return _fit(scores, y)


def _fit(scores, y):
    """Return the Beta parameters, and b0, b1 and AIC by candidate, best first."""
    table = fit_calibration_curve(scores, y).table
    curves = {fit.name: {"b0": fit.curve.intercept, "b1": fit.curve.slope, "AIC": fit.aic} for fit in table}
    return fit_score_distribution(scores).args, curves


def _consistency(name, model, fits):
    """Yield the mean fit of samples of the test set's size that were drawn with the printed parameters."""
    candidate = _candidate(model)
    for table, parameters in _parameters(model).items():
        for column, parameter in enumerate(parameters):
            values = [beta[column] if table == "Table 1" else curves[candidate][parameter] for beta, curves in fits]
            yield f"{table}: {name}, {parameter} of samples with it", mean(values)
    if name in _AIC:
        yield f"Table 2: {name}, AIC of samples of the test set's size", mean([c[candidate]["AIC"] for _, c in fits])
    chosen = [_family(next(iter(curves))) == _family(candidate) for _, curves in fits]
    yield f"Table 2: {name}, share of samples in which AIC chooses its link and transform", share(chosen)


def _family(candidate):
    return candidate.split("_b")[0]


def _densenet(data, n_resamples):
    """Yield the fits of DenseNet-40's test rows; intervals are over resamples of the rows, that of AIC is a point."""
    name, _, _, probabilities, labels = next(networks(data, vision_only=True))
    correct, scores = confidence(probabilities, labels)
    order = np.argsort(scores, kind="stable")
    for used, n_rows in _ROWS_USED.items():
        y, s = correct[order[:n_rows]], scores[order[:n_rows]]
        at = f"the network {name}, {used}"
        draws = np.random.default_rng(0).integers(len(y), size=(n_resamples, len(y)))
        fits = [_fit(s[draw], y[draw]) for draw in draws]
        betas, curves = _fit(s, y)
        for column, parameter in enumerate(("alpha", "beta")):
            yield (
                f"Table 1: {at}, {_SCORES[0]}, {parameter}",
                _around(betas[column], [beta[column] for beta, _ in fits]),
            )
        if n_rows == len(scores):
            yield from _single_precision(at, s.astype(np.float32), draws)
        for candidate, values in _DENSENET.items():
            for parameter in values:
                value = curves[candidate][parameter]
                found = [curve[candidate][parameter] for _, curve in fits]
                interval = exact(value) if parameter == "AIC" else _around(value, found)
                yield f"Table 2: {at}, {candidate}, {parameter}", interval
        chosen = [_family(next(iter(curve))) == "logit_logflip" for _, curve in fits]
        yield f"Table 2: {at}, share of resamples that choose logit_logflip", share(chosen)


def _single_precision(at, scores, draws):
    """Yield the Beta fits of scores of which half are exactly 1: censored there, or moved to 1 - 2^-53.

    Which scores the paper had is not said; it moved those that were 1 by 1e-16.
    """
    moved = np.minimum(scores.astype(np.float64), 1 - 2.0**-53)
    for kind, values in zip(_SCORES[1:], (scores, moved), strict=True):
        own = fit_score_distribution(values).args
        fits = np.array([fit_score_distribution(values[draw]).args for draw in draws])
        for column, parameter in enumerate(("alpha", "beta")):
            yield f"Table 1: {at}, {kind}, {parameter}", _around(own[column], fits[:, column])


def _around(value, resampled):
    _, low, high = middle(resampled, 0.95)
    return value, min(low, value), max(high, value)


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
