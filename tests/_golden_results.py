"""Results of each stable name on small data, in `golden_results.json`: what a release may not change in silence.

``python tests/_golden_results.py`` computes and writes them anew. That is needed where a result changes on purpose,
which the changelog then says. The data are in the file, too, so that no stream of random numbers decides.
"""

import json
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

import skcalib
from skcalib import binning, evaluation, guarantees, metrics, monitoring, simulation
from skcalib.model_selection import sharpest_within

PATH = Path(__file__).with_name("golden_results.json")


def data():
    """Return the data that are frozen: they are written once, and read from then on."""
    if PATH.exists():
        return json.loads(PATH.read_text("utf-8"))["data"]
    rng = np.random.default_rng(0)
    scores = np.round(
        np.concatenate((rng.beta(0.7, 1.2, 110), [0, 0, 1, 1, 0.5] * 2)), 2
    )
    logits = rng.normal(size=(90, 3)) * 2
    proba = np.round(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), 3)
    proba[:, 2] = np.round(1 - proba[:, 0] - proba[:, 1], 3)
    return {
        "scores": scores.tolist(),
        "y": (rng.random(len(scores)) < scores**1.4).astype(int).tolist(),
        "weight": rng.integers(1, 4, len(scores)).tolist(),
        "cluster": rng.integers(0, 40, len(scores)).tolist(),
        "X": np.round(rng.normal(size=(len(scores), 2)), 2).tolist(),
        "proba": proba.tolist(),
        "label": (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1).tolist(),
    }


def plain(result):
    """Return a result as what JSON holds: numbers, texts, lists and dicts."""
    if isinstance(result, metrics.BinStatistics) or is_dataclass(result):
        named = {field.name: getattr(result, field.name) for field in fields(result)}
        return {
            name: plain(value)
            for name, value in named.items()
            if value is not None and name != "assumptions"
        }
    if hasattr(result, "_asdict"):
        return {name: plain(value) for name, value in result._asdict().items()}
    if isinstance(result, dict):
        return {str(name): plain(value) for name, value in result.items()}
    if isinstance(result, (list, tuple, np.ndarray)):
        return [
            plain(one)
            for one in (result.tolist() if isinstance(result, np.ndarray) else result)
        ]
    if isinstance(result, np.generic):
        return result.item()
    return (
        result
        if result is None or isinstance(result, (bool, int, float, str))
        else repr(result)
    )


def results(given):
    """Yield (public path: what of it, result) for the data."""
    given = {name: np.array(values) for name, values in given.items()}
    y, scores, weight, cluster = (
        given[name] for name in ("y", "scores", "weight", "cluster")
    )
    label, proba = given["label"], given["proba"]
    for name in metrics.__all__:
        if name.endswith("calibration_error") and name not in (
            "decision_calibration_error",
        ):
            error = getattr(metrics, name)
            yield f"metrics.{name}: two classes", error(y, scores)
            yield f"metrics.{name}: weights", error(y, scores, sample_weight=weight)
            yield f"metrics.{name}: three classes", error(label, proba)
            if name not in ("kernel_calibration_error", "groupwise_calibration_error"):
                yield (
                    f"metrics.{name}: marginal",
                    error(label, proba, multiclass="marginal"),
                )
    yield from _of_metrics(y, scores, weight, cluster, label, proba, given["X"])
    yield from _of_bins(y, scores, weight)
    yield from _of_guarantees()
    yield from _of_evaluation(y, scores, cluster)
    yield from _of_simulation(y, scores)
    yield from _of_composition(y, scores, weight, given["X"])


def _of_metrics(y, scores, weight, cluster, label, proba, X):
    for method in ("plugin", "debiased", "unbiased", "label_binned"):
        value = metrics.calibration_error(
            y, scores, method=method, binning=6, squared=method != "label_binned"
        )
        yield f"metrics.calibration_error: {method}", value
    for norm in (1, 3, np.inf):
        yield (
            f"metrics.calibration_error: norm {norm}",
            metrics.calibration_error(y, scores, norm=norm, binning=6),
        )
    interval = metrics.calibration_error_interval
    drawn = {"n_resamples": 99, "random_state": 0}
    yield (
        "metrics.calibration_error_interval: two classes",
        interval(y, scores, **drawn),
    )
    yield (
        "metrics.calibration_error_interval: weights",
        interval(y, scores, sample_weight=weight, **drawn),
    )
    yield (
        "metrics.calibration_error_interval: clusters",
        interval(y, scores, clusters=cluster, **drawn),
    )
    yield (
        "metrics.calibration_error_interval: three classes",
        interval(label, proba, **drawn),
    )
    chi_squared = metrics.calibration_test(
        y, scores, method="hosmer_lemeshow", binning=3
    )
    yield "metrics.calibration_test: hosmer_lemeshow", chi_squared
    for method in ("kuiper", "kolmogorov_smirnov", "spiegelhalter"):
        yield (
            f"metrics.calibration_test: {method}",
            metrics.calibration_test(y, scores, method=method),
        )
    yield (
        "metrics.calibration_test: resampling",
        metrics.calibration_test(y, scores, **drawn),
    )
    yield (
        "metrics.calibration_slope_intercept",
        metrics.calibration_slope_intercept(y, scores),
    )
    groups = np.array(["a", "b", "c"])[cluster % 3]
    yield (
        "metrics.calibration_by_group",
        metrics.calibration_by_group(y, scores, groups, binning=4, **drawn),
    )
    yield (
        "metrics.segment_calibration_test",
        metrics.segment_calibration_test(y, scores, X, max_depth=1, **drawn),
    )
    yield (
        "metrics.groupwise_calibration_error: groups",
        metrics.groupwise_calibration_error(y, scores, groups=groups),
    )
    for loss in ("brier", "log_loss"):
        yield (
            f"metrics.{loss}_decomposition",
            getattr(metrics, f"{loss}_decomposition")(y, np.clip(scores, 0.01, 0.99)),
        )
    yield (
        "metrics.reliability_curve",
        metrics.reliability_curve(y, scores, binning=5, sample_weight=weight),
    )
    yield (
        "metrics.BinStatistics",
        metrics.BinStatistics.from_predictions(y, scores, [0, 0.2, 0.6, 1], weight),
    )
    yield (
        "metrics.validity_curve",
        metrics.validity_curve(y, scores, epsilons=[0.05, 0.1, 0.2], binning=5),
    )
    halves = [(y[::2], scores[::2]), (y[1::2], scores[1::2])]
    yield (
        "metrics.mean_validity_curve",
        metrics.mean_validity_curve(halves, epsilons=[0.1, 0.2], binning=3),
    )
    yield "metrics.get_scorer_names", metrics.get_scorer_names()
    model = GaussianNB().fit(X, y)
    for name in metrics.get_scorer_names():
        if "calibration" in name and "decision" not in name:
            yield f"metrics.get_scorer: {name}", metrics.get_scorer(name)(model, X, y)


def _of_bins(y, scores, weight):
    for name in binning.__all__:
        kind = getattr(binning, name)
        if isinstance(kind, type) and name not in ("BaseBinning", "FixedEdges"):
            yield f"binning.{name}", kind().bin_edges(scores, y)
            yield (
                f"binning.{name}: weights",
                kind().bin_edges(scores, y, sample_weight=weight),
            )
    edges = binning.FixedEdges([0, 0.3, 1]).bin_edges(scores)
    yield "binning.FixedEdges", edges
    yield "binning.assign_bins", binning.assign_bins([0.0, 0.3, 0.31, 1.0], edges)
    yield (
        "binning.check_binning",
        [binning.check_binning(one) for one in (None, 7, binning.EqualWidth(3))],
    )


def _of_guarantees():
    for keep in (False, True):
        yield (
            f"guarantees.conditional_epsilon: {keep}",
            guarantees.conditional_epsilon(3000, 10, keep_boundary=keep),
        )
        yield (
            f"guarantees.marginal_epsilon: {keep}",
            guarantees.marginal_epsilon(3000, 10, keep_boundary=keep),
        )
    yield "guarantees.expected_error_bound", guarantees.expected_error_bound(2000, 10)
    for kind in ("conditional", "marginal"):
        yield (
            f"guarantees.max_n_bins: {kind}",
            guarantees.max_n_bins(5000, 0.1, kind=kind),
        )
        yield (
            f"guarantees.min_n_samples: {kind}",
            guarantees.min_n_samples(10, 0.1, kind=kind),
        )
    yield (
        "guarantees.sample_split_epsilon",
        guarantees.sample_split_epsilon(1500, 1500, 10),
    )
    yield "guarantees.binning_mse_bound", guarantees.binning_mse_bound(100)
    yield (
        "guarantees.well_balanced_alpha",
        guarantees.well_balanced_alpha([20, 25, 30, 25]),
    )
    bounds = {"bounds": (0.5, 2.0), "logit_range": 5.0}
    yield (
        "guarantees.classwise_temperature_bound",
        guarantees.classwise_temperature_bound(10_000, 10, 0.1, **bounds),
    )
    yield (
        "guarantees.per_class_temperature_bound",
        guarantees.per_class_temperature_bound(10_000, 5, 0.1, **bounds),
    )
    events, counts = [3, 20, 50], [60, 60, 60]
    for interval in ("clopper_pearson", "hoeffding", "wilson"):
        found = guarantees.event_frequency_interval(events, counts, interval=interval)
        yield f"guarantees.event_frequency_interval: {interval}", found
    values = np.divide(events, counts)
    of_split = guarantees.independent_bins_certificate(
        events, counts, values, edges="split"
    )
    yield "guarantees.independent_bins_certificate", of_split
    uniform = guarantees.uniform_mass_certificate(
        events, counts, values, n_samples=182, kind="marginal"
    )
    yield "guarantees.uniform_mass_certificate", uniform


def _of_evaluation(y, scores, cluster):
    inside = np.clip(scores, 0.02, 0.98)
    yield (
        "evaluation.calibration_summary",
        evaluation.calibration_summary(y, inside, n_resamples=49, random_state=0),
    )
    models = {"one": inside, "square": inside**2}
    yield (
        "evaluation.compare",
        evaluation.compare(y, models, n_resamples=49, random_state=0),
    )
    yield (
        "evaluation.recalibration_gain",
        evaluation.recalibration_gain(y, inside, recalibrator=skcalib.PlattScaling()),
    )
    parts = [y[::2], inside[::2], y[1::2], inside[1::2]]
    change = monitoring.calibration_change(
        *parts, binning=4, n_resamples=99, random_state=0
    )
    yield "monitoring.calibration_change", change


def _of_simulation(y, scores):
    uniform = stats.uniform()
    curves = [
        simulation.GlmCurve("logit", "log", -0.3, 1.5),
        simulation.PlattCurve(2, 1),
        simulation.PowerCurve(2),
    ]
    for curve in curves:
        model = simulation.CalibrationModel(uniform, curve)
        yield (
            f"simulation.{type(curve).__name__}",
            [model.true_calibration_error(norm) for norm in (1, 2, np.inf)],
        )
    networks = simulation.roelofs_models().items()
    yield (
        "simulation.roelofs_models",
        {name: model.true_calibration_error() for name, model in networks},
    )
    drawn = simulation.CalibrationModel(uniform, curves[2]).sample(5, random_state=0)
    yield "simulation.CalibrationModel", drawn


def _of_composition(y, scores, weight, X):
    crossed = skcalib.CrossFittedClassifier(GaussianNB(), cv=3).fit(X, y)
    yield (
        "CrossFittedClassifier",
        [crossed.fit_transform(X, y)[:5], crossed.transform(X[:5])],
    )
    for ensemble in (True, False):
        model = skcalib.RecalibratedClassifierCV(
            GaussianNB(), skcalib.HistogramBinning(3), cv=3, ensemble=ensemble
        )
        yield (
            f"RecalibratedClassifierCV: {ensemble}",
            model.fit(X, y).predict_proba(X[:5]),
        )
    apart = scores + np.arange(len(scores)) * np.where(scores > 0.5, -1e-6, 1e-6)
    yield (
        "guarantees.CalibrationCertificate",
        skcalib.UniformMassBinning(4).fit(apart, y).certificate(),
    )
    yield "estimate_target_prior", skcalib.estimate_target_prior(scores, 0.5)
    yield (
        "expand_soft_labels",
        skcalib.expand_soft_labels([0.2, 0.6], [0.25, 1.0], [2, 1]),
    )
    rule, candidates = (
        sharpest_within(0.2),
        {"binning": [binning.EqualMass(n) for n in (2, 5, 10)]},
    )
    search = GridSearchCV(
        skcalib.HistogramBinning(), candidates, scoring=rule.scoring, refit=rule, cv=3
    )
    yield "model_selection.sharpest_within", search.fit(scores[:, None], y).best_index_


def _write():
    given = data()
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(plain(result))}"
        for name, result in results(given)
    )
    PATH.write_text(
        f'{{"data": {json.dumps(given)},\n"results": {{\n{lines}\n}}}}\n', "utf-8"
    )


if __name__ == "__main__":
    sys.exit(_write())
