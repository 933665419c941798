"""Five mutations for each command of ``benchmarks.papers``: each turns a row from
"agrees" into "differs".

A mutation is a wrong formula in the part of the library that the command exercises. The
command's own functions then measure a few rows anew, in a small form. Commands that
need the real data are tested where `SKCALIB_DATA` names it.
"""

import functools
import os
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.papers import (
    credit,
    gupta_theory,
    heterogeneity,
    kumar_cifar,
    kumar_synthetic,
    kumar_theory,
    roelofs_bias,
    roelofs_fits,
    roelofs_tables,
    zhao_networks,
    zhao_theory,
)
from benchmarks.papers.__main__ import PAGE
from benchmarks.papers._index import modules
from benchmarks.papers._known_models import roelofs_models
from benchmarks.papers._networks import (
    ERRORS,
    RECALIBRATORS,
    confidence,
    fitted,
    networks,
)
from benchmarks.papers._output import verdicts_in
from benchmarks.papers._rules import judge
from skcalib import (
    ClasswiseTemperatureScaling,
    HistogramBinning,
    PlattScaling,
    ScalingBinning,
    TemperatureScaling,
    UniformMassBinning,
    VectorScaling,
)
from skcalib.binning import EqualMass, EqualWidth
from skcalib.metrics import calibration_error
from skcalib.simulation import CalibrationModel

pytestmark = pytest.mark.slow

DATA = os.environ.get("SKCALIB_DATA") and Path(os.environ["SKCALIB_DATA"])


# --- wrong formulas ---


def replaced(target, name, wrong):
    """Return a patch: `wrong` takes what stands there and the arguments of a call."""

    def patch(monkeypatch):
        if isinstance(target, dict):
            monkeypatch.setitem(target, name, functools.partial(wrong, target[name]))
        elif isinstance(target, type):
            right = getattr(target, name)
            monkeypatch.setattr(
                target,
                name,
                lambda self, *args, **kwargs: wrong(right, self, *args, **kwargs),
            )
        else:
            monkeypatch.setattr(
                target, name, functools.partial(wrong, getattr(target, name))
            )

    return patch


def added_correction(right, *args, method, **kwargs):
    """The debiased error with the wrong sign: the plugin error and what should be taken
    off.
    """
    plugin = right(*args, method="plugin", **kwargs)
    return (
        plugin
        if method == "plugin"
        else 2 * plugin - right(*args, method=method, **kwargs)
    )


def fitted_wrong(recalibrator, change):
    """Return a patch: each fit of the class ends with a change of what was fitted."""

    def wrong(fit, self, scores, y, *args, **kwargs):
        fit(self, scores, y, *args, **kwargs)
        change(self, np.asarray(scores), np.asarray(y))
        return self

    return replaced(recalibrator, "fit", wrong)


def times(factor):
    """Return a wrong formula: the right value by a factor."""
    return lambda right, *args, **kwargs: factor * right(*args, **kwargs)


def without(**changed):
    """Return a wrong formula: the call ignores some of its options."""
    return lambda right, *args, **kwargs: right(*args, **(kwargs | changed))


def set_values(values_of):
    """Return a change of a fitted recalibrator's bin values."""

    def change(model, scores, y):
        model.bin_values_ = np.asarray(values_of(model, scores, y), dtype=np.float64)

    return change


def event_frequencies(model, scores, y):
    """Values of scaling-binning as histogram binning has them."""
    scaled = model.recalibrator_.predict_proba(scores)[:, 1]
    bins = np.searchsorted(model.bin_edges_[1:-1], scaled)
    count = np.bincount(bins, minlength=model.n_bins_)
    return np.bincount(bins, y, model.n_bins_) / np.maximum(count, 1)


def midpoints(model, scores, y):
    """Values in the middle of the bins."""
    return (model.bin_edges_[1:] + model.bin_edges_[:-1]) / 2


def of_half_the_rows(model, scores, y):
    """Event frequencies of every other row."""
    side = "right" if isinstance(model, UniformMassBinning) else "left"
    bins = np.searchsorted(model.bin_edges_[1:-1], scores[::2], side=side)
    count = np.bincount(bins, minlength=model.n_bins_)
    return np.bincount(bins, y[::2], model.n_bins_) / np.maximum(count, 1)


def scale_inverse_temperature(factor):
    """Return a change of fitted temperatures."""

    def change(model, scores, y):
        model.inverse_temperature_ = factor * model.inverse_temperature_

    return change


def share_one_temperature(model, scores, y):
    """All classes have the shared temperature, as with Gamma = 0."""
    model.inverse_temperature_ = np.full_like(
        model.inverse_temperature_, model.shared_inverse_temperature_
    )


def of_the_next_class(model, scores, y):
    """Temperatures of the wrong class."""
    model.inverse_temperature_ = np.roll(model.inverse_temperature_, 1)


def equal_width_cuts(right, self, scores, y, sample_weight):
    """Cuts of equal-mass bins that are of equal width between the smallest and the
    largest score.
    """
    return np.linspace(
        np.min(scores), np.max(scores), len(right(self, scores, y, sample_weight)) + 2
    )[1:-1]


# --- rows in a small form ---


def rows_of(module, *steps):
    """Return a function that measures the rows of some of a module's functions, given
    as (name, arguments).
    """

    @functools.wraps(rows_of)
    def measure():
        found = {}
        for name, *arguments in steps:
            found |= {
                row.quantity: row.verdict
                for row in judge(module.ROWS, getattr(module, name)(*arguments))
            }
        return found

    return measure


def verdicts(module, measurements):
    """Return the verdicts of measurements by quantity."""
    return {row.quantity: row.verdict for row in judge(module.ROWS, measurements)}


def synthetic_rows():
    truth = kumar_synthetic.Truth.of(kumar_synthetic.PlattCurve(2, 1))
    errors = {
        (2000, b): kumar_synthetic._errors(truth, 2000, b, 32, Namespace(n_jobs=1))
        for b in (5, 10, 15, 20)
    }
    return verdicts(kumar_synthetic, kumar_synthetic._bin_counts(errors))


def heat_rows():
    """Figure 4 for the fewest rows and three numbers of bins."""
    model, bins, sizes = roelofs_models()["resnet110_c10"], (2, 16, 64), (200,)
    metrics = {
        b: functools.partial(roelofs_bias._PLUGIN, binning=roelofs_bias.EqualWidth(b))
        for b in bins
    }
    values = model.estimates(metrics, 200, 600, random_state=200)
    truth = model.true_calibration_error()
    measured = [
        (
            f"Figure 4: bias of EW, {b} bins, n={n}",
            roelofs_bias.mean(100 * (values[b] - truth)),
        )
        for b in bins
        for n in sizes
    ]
    return verdicts(roelofs_bias, measured)


def detection_rows():
    """Figure 8 for 400 rows: how often an error of 10 % is missed, and which estimate
    misses more.
    """
    model = roelofs_bias._power_model(0.05)
    metrics = {name: roelofs_bias._ESTIMATORS[name] for name in ("EW", "EM sweep")}
    rates = [
        model.detection_rate(metrics, 800, 100, random_state=seed) for seed in range(4)
    ]
    gap = roelofs_bias.mean([rate["EW"] - rate["EM sweep"] for rate in rates])
    return verdicts(
        roelofs_bias,
        [("Figure 8: U(0, 1), TCE 5 %, n=800, share missed, EM sweep minus EW", gap)],
    )


def fit_rows():
    measured = []
    for name in ("densenet40_c10", "densenet161_imgnet"):
        model = roelofs_models()[name]
        n = roelofs_fits._N_TEST[name.rpartition("_")[2]]
        fits = [
            roelofs_fits._fit_sample(model, n, seed)
            for seed in np.random.SeedSequence(5).spawn(4)
        ]
        measured += roelofs_fits._consistency(name, model, fits)
    return verdicts(roelofs_fits, measured)


@functools.cache
def loaded(module, *network):
    """Return what a command reads from its files."""
    return module._load(DATA, *network)


def credit_rows():
    X, y = loaded(credit)
    curves = credit._measure(X, y, "10K/5K", [500, 1000], 4, 8)
    return verdicts(
        credit, [*credit._figure_1(curves), *credit._orderings(curves, 1000, 8)]
    )


@functools.cache
def trained():
    """Return the arguments of `figures` for two worlds and four seeds: the networks are
    trained once.
    """
    X, y = loaded(heterogeneity)
    found, figures = {}, heterogeneity.figures
    for world in (("noise", 0.3), ("few", 0.05)):
        heterogeneity.figures = lambda *parts, world=world: found.setdefault(
            world, []
        ).append(parts)
        try:
            for seed in range(4):
                heterogeneity._one_seed(X, y, *world, seed)
        finally:
            heterogeneity.figures = figures
    return found


def heterogeneity_rows():
    measured = {
        world: [heterogeneity.figures(*parts) for parts in seeds]
        for world, seeds in trained().items()
    }
    noise, tables = measured["noise", 0.3], heterogeneity._TABLES
    found = verdicts(
        heterogeneity,
        [*heterogeneity.orderings(tables, noise), *heterogeneity._classes(measured)],
    )
    changed = heterogeneity.changed_predictions(noise)
    return found | verdicts(
        heterogeneity, [(f"{tables}, {heterogeneity.CHANGED}", changed)]
    )


def network_rows():
    network = "densenet40_c10"
    pool, labels = loaded(zhao_networks, network)
    noise = [
        zhao_networks._one_repeat(pool, labels, "noisy labels", 0.3, seed)
        for seed in range(3)
    ]
    at = f"Table 2: {network}, noisy labels, 30 %"
    measured = list(zhao_networks.orderings(at, noise))
    measured.append(
        (
            f"Table 2: {network}, {zhao_networks.CHANGED}",
            zhao_networks.changed_predictions(noise),
        )
    )
    for method in ("CTS", "VS"):
        quantity = (
            f"Figure 11: {network}, noisy labels, 30 %,"
            f" {zhao_networks.lower_share(method, 'TS')}"
        )
        measured.append((quantity, zhao_networks.share_of_classes(noise, method, "TS")))
    return verdicts(zhao_networks, measured)


def table_rows():
    name, *data = next(networks(DATA, vision_only=True))
    assert name == "densenet40_c10"
    predictions = {"uncalibrated": confidence(*data[2:])}
    predictions |= {
        method: fitted(make, *data)
        for method, make in roelofs_tables.RECALIBRATORS.items()
    }
    table_3 = roelofs_tables._table_3(predictions["uncalibrated"], DATA)
    return verdicts(
        roelofs_tables, [*roelofs_tables._printed_rows(predictions, data), *table_3]
    )


@functools.cache
def vgg():
    with np.load(DATA / "vision" / "cifar10_vgg16.npz") as table:
        probabilities, labels = (
            table["probs"].astype(np.float64),
            table["labels"].astype(int),
        )
    return probabilities.max(axis=1), probabilities.argmax(axis=1) == labels


def top_label_rows():
    bins = (10, 20, 40, 100)
    return verdicts(
        kumar_cifar,
        kumar_cifar._top_label(kumar_cifar._by_bins(*vgg(), bins, 6, 1), bins),
    )


def estimator_rows():
    """Figures 13 and 16 with 100 bins."""
    name, measured = "Figure 13: l1 top-label error", []
    splits = []
    for seed in range(8):
        order = np.random.default_rng(seed).permutation(len(vgg()[1]))
        parts = [kumar_cifar._scaled_with_bins(vgg()[0][order], vgg()[1][order], 100)]
        splits.append(kumar_cifar._deviations(parts, 1000, 40))
    ratios = [np.divide(*np.mean(np.square(split), axis=1)) for split in splits]
    measured.append(
        (
            f"{name}, B=100, n=1000, MSE, plugin / debiased",
            kumar_cifar._geometric(ratios),
        )
    )
    closer = [np.mean(np.abs(split[1]) < np.abs(split[0])) for split in splits]
    quantity = (
        "Figure 16: B=100, n=1000, share of resamples whose debiased estimate is closer"
    )
    return verdicts(kumar_cifar, [*measured, (quantity, kumar_cifar.mean(closer))])


FORMULAS = rows_of(gupta_theory, ("_formulas",))
ALGORITHMS = rows_of(gupta_theory, ("_algorithms", 8))
DECOMPOSITIONS = rows_of(kumar_theory, ("_decompositions", 20))
BOUNDS = rows_of(zhao_theory, ("_bounds", 20))
SLICES = rows_of(zhao_theory, ("_slices",))

# By command: what is wrong, how to make it so, and the rows that are measured anew.
MUTATIONS = {
    "credit": {
        "UniformMassBinning: means of half the rows": (
            fitted_wrong(UniformMassBinning, set_values(of_half_the_rows)),
            credit_rows,
        ),
        "HistogramBinning: values shrunk to the base rate": (
            fitted_wrong(
                HistogramBinning,
                set_values(lambda m, s, y: (m.bin_values_ + y.mean()) / 2),
            ),
            credit_rows,
        ),
        "EqualMass: cuts of equal width": (
            replaced(EqualMass, "_edges", equal_width_cuts),
            credit_rows,
        ),
        "validity_curve: half the tolerance": (
            replaced(
                credit,
                "validity_curve",
                lambda right, *args, epsilons, **k: right(
                    *args, epsilons=epsilons / 2, **k
                ),
            ),
            credit_rows,
        ),
        "conditional_epsilon: a quarter of it": (
            replaced(credit, "conditional_epsilon", times(0.25)),
            credit_rows,
        ),
    },
    "gupta-theory": {
        "conditional_epsilon: one tail in place of two": (
            replaced(
                gupta_theory,
                "conditional_epsilon",
                lambda right, n, b, confidence_level=0.9, **k: right(
                    n,
                    b,
                    confidence_level=(
                        1 - 2 * (1 - confidence_level)
                        if confidence_level > 0.5
                        else 0.01
                    ),
                    **k,
                ),
            ),
            FORMULAS,
        ),
        "conditional_epsilon: the rows of the cuts counted": (
            replaced(
                gupta_theory,
                "conditional_epsilon",
                lambda right, n, b, **k: right(n + b, b, **k),
            ),
            FORMULAS,
        ),
        "marginal_epsilon: a union over the bins": (
            replaced(
                gupta_theory,
                "marginal_epsilon",
                lambda right, *a, **k: gupta_theory.conditional_epsilon(*a, **k),
            ),
            FORMULAS,
        ),
        "expected_error_bound: n without its 2": (
            replaced(gupta_theory, "expected_error_bound", times(2**0.5)),
            FORMULAS,
        ),
        "UniformMassBinning: the rows of the cuts kept": (
            replaced(gupta_theory, "UniformMassBinning", without(keep_boundary=True)),
            ALGORITHMS,
        ),
    },
    "heterogeneity": {
        "ClasswiseTemperatureScaling: one temperature": (
            fitted_wrong(ClasswiseTemperatureScaling, share_one_temperature),
            heterogeneity_rows,
        ),
        "TemperatureScaling: divides where it multiplies": (
            fitted_wrong(
                TemperatureScaling,
                lambda m, s, y: setattr(
                    m, "inverse_temperature_", 1 / m.inverse_temperature_
                ),
            ),
            heterogeneity_rows,
        ),
        "TemperatureScaling: a third of the temperature": (
            fitted_wrong(TemperatureScaling, scale_inverse_temperature(3)),
            heterogeneity_rows,
        ),
        "ClasswiseTemperatureScaling: that of the next class": (
            fitted_wrong(ClasswiseTemperatureScaling, of_the_next_class),
            heterogeneity_rows,
        ),
        "ClasswiseTemperatureScaling: changes classes": (
            replaced(
                ClasswiseTemperatureScaling,
                "predict_proba",
                lambda right, self, X: np.roll(right(self, X), 1, axis=1),
            ),
            heterogeneity_rows,
        ),
        "VectorScaling: slopes of the wrong sign": (
            fitted_wrong(VectorScaling, lambda m, s, y: setattr(m, "coef_", -m.coef_)),
            heterogeneity_rows,
        ),
    },
    "kumar-cifar": {
        "ScalingBinning: values shrunk to the base rate": (
            fitted_wrong(
                ScalingBinning,
                set_values(lambda m, s, y: (m.bin_values_ + y.mean()) / 2),
            ),
            top_label_rows,
        ),
        "ScalingBinning: midpoints as values": (
            fitted_wrong(ScalingBinning, set_values(midpoints)),
            top_label_rows,
        ),
        "PlattScaling: half the slope": (
            fitted_wrong(
                PlattScaling, lambda m, s, y: setattr(m, "slope_", m.slope_ / 2)
            ),
            top_label_rows,
        ),
        "calibration_error: no correction": (
            replaced(kumar_cifar, "calibration_error", without(method="plugin")),
            estimator_rows,
        ),
        "calibration_error: the correction added": (
            replaced(kumar_cifar, "calibration_error", added_correction),
            estimator_rows,
        ),
    },
    "kumar-synthetic": {
        "ScalingBinning: event frequencies as values": (
            fitted_wrong(ScalingBinning, set_values(event_frequencies)),
            synthetic_rows,
        ),
        "ScalingBinning: midpoints as values": (
            fitted_wrong(ScalingBinning, set_values(midpoints)),
            synthetic_rows,
        ),
        "PlattScaling: a tenth more slope": (
            fitted_wrong(
                PlattScaling, lambda m, s, y: setattr(m, "slope_", 1.1 * m.slope_)
            ),
            synthetic_rows,
        ),
        "PlattScaling: no intercept": (
            fitted_wrong(PlattScaling, lambda m, s, y: setattr(m, "intercept_", 0.0)),
            synthetic_rows,
        ),
        "HistogramBinning: values shrunk to the base rate": (
            fitted_wrong(
                HistogramBinning,
                set_values(lambda m, s, y: (m.bin_values_ + y.mean()) / 2),
            ),
            synthetic_rows,
        ),
    },
    "kumar-theory": {
        "calibration_error: no correction": (
            replaced(kumar_theory, "calibration_error", without(method="plugin")),
            DECOMPOSITIONS,
        ),
        "calibration_error: l1 for l2": (
            replaced(
                kumar_theory,
                "calibration_error",
                lambda right, *a, norm, squared, method, **k: right(
                    *a, norm=1, method=method, **k
                ),
            ),
            DECOMPOSITIONS,
        ),
        "reliability_curve: bin means .1 off": (
            replaced(
                kumar_theory,
                "reliability_curve",
                lambda right, *a, **k: Namespace(
                    mean_score=right(*a, **k).mean_score + 0.1
                ),
            ),
            rows_of(kumar_theory, ("_empirical_bins", 10)),
        ),
        "ScalingBinning: event frequencies as values": (
            fitted_wrong(ScalingBinning, set_values(event_frequencies)),
            rows_of(kumar_theory, ("_theorem_41", 20)),
        ),
        "true_calibration_error: that of one bin": (
            replaced(
                CalibrationModel,
                "true_calibration_error",
                lambda right, self, norm=2: 0.0,
            ),
            rows_of(kumar_theory, ("_example_32", True)),
        ),
        "binning_mse_bound: a hundredth": (
            replaced(kumar_theory, "binning_mse_bound", times(0.01)),
            rows_of(kumar_theory, ("_binning_cost",)),
        ),
    },
    "roelofs-bias": {
        "sweep_calibration_error: eight bins": (
            replaced(
                roelofs_bias,
                "sweep_calibration_error",
                lambda right, y, p, norm, labels=None: calibration_error(
                    y, p, norm=norm, method="plugin", binning=EqualMass(8)
                ),
            ),
            rows_of(roelofs_bias, ("_algorithm_1",)),
        ),
        "true_calibration_error: l1 for l2": (
            replaced(
                CalibrationModel,
                "true_calibration_error",
                lambda right, self, norm=2: right(self, 1),
            ),
            heat_rows,
        ),
        "EqualWidth: one bin more": (
            replaced(
                roelofs_bias, "EqualWidth", lambda right, n_bins: right(n_bins + 1)
            ),
            heat_rows,
        ),
        "calibration_error: label-binned is the mean": (
            replaced(
                roelofs_bias,
                "calibration_error",
                lambda right, *a, method, **k: right(*a, method="plugin", **k) - 1e-6,
            ),
            rows_of(roelofs_bias, ("_label_binned",)),
        ),
        "detection_rate: the other tail": (
            replaced(
                CalibrationModel,
                "detection_rate",
                lambda right, self, *a, **k: {
                    name: 1 - rate for name, rate in right(self, *a, **k).items()
                },
            ),
            detection_rows,
        ),
    },
    "roelofs-fits": {
        "fit_score_distribution: ones left out": (
            replaced(
                roelofs_fits,
                "fit_score_distribution",
                lambda right, scores: right(scores[scores < 1]),
            ),
            fit_rows,
        ),
        "fit_calibration_curve: scores clipped at 1e-3": (
            replaced(
                roelofs_fits,
                "fit_calibration_curve",
                lambda right, scores, y: right(np.clip(scores, 1e-3, 1 - 1e-3), y),
            ),
            fit_rows,
        ),
        "fit_calibration_curve: AIC without its 2": (
            replaced(
                roelofs_fits,
                "fit_calibration_curve",
                lambda right, *a: Namespace(
                    table=[replace(fit, aic=fit.aic / 2) for fit in right(*a).table]
                ),
            ),
            fit_rows,
        ),
        "fit_calibration_curve: events and non-events swapped": (
            replaced(
                roelofs_fits,
                "fit_calibration_curve",
                lambda right, scores, y: right(scores, 1 - y),
            ),
            fit_rows,
        ),
        "sample: labels of the squared frequency": (
            replaced(
                CalibrationModel,
                "sample",
                lambda right, self, n, rng: (
                    lambda s, y: (
                        s,
                        y
                        & (
                            np.random.default_rng(1).random(n)
                            < self.calibration_curve(s)
                        ),
                    )
                )(*right(self, n, rng)),
            ),
            fit_rows,
        ),
    },
    "roelofs-tables": {
        "TemperatureScaling: a tenth less": (
            fitted_wrong(TemperatureScaling, scale_inverse_temperature(1.1)),
            table_rows,
        ),
        "IsotonicCalibration: not normalised": (
            replaced(RECALIBRATORS, "isotonic", without(normalize=False)),
            table_rows,
        ),
        "HistogramBinning: values shrunk to the base rate": (
            replaced(
                roelofs_tables._HISTOGRAMS,
                "20 equal-mass bins, top_label",
                without(smoothing=30),
            ),
            table_rows,
        ),
        "EqualMass: cuts of equal width": (
            replaced(EqualMass, "_edges", equal_width_cuts),
            table_rows,
        ),
        "calibration_error: l1 for l2": (
            replaced(
                roelofs_tables,
                "_l2_error",
                lambda right, *a: calibration_error(
                    *a, norm=1, method="plugin", binning=EqualWidth(15)
                ),
            ),
            table_rows,
        ),
        "calibration_error: one bin more": (
            replaced(ERRORS, "EW", lambda right, *a: right(*a, binning=EqualWidth(16))),
            table_rows,
        ),
    },
    "zhao-networks": {
        "ClasswiseTemperatureScaling: one temperature": (
            fitted_wrong(ClasswiseTemperatureScaling, share_one_temperature),
            network_rows,
        ),
        "ClasswiseTemperatureScaling: that of the next class": (
            fitted_wrong(ClasswiseTemperatureScaling, of_the_next_class),
            network_rows,
        ),
        "ClasswiseTemperatureScaling: changes classes": (
            replaced(
                ClasswiseTemperatureScaling,
                "predict_proba",
                lambda right, self, X: np.roll(right(self, X), 1, axis=1),
            ),
            network_rows,
        ),
        "TemperatureScaling: divides where it multiplies": (
            fitted_wrong(
                TemperatureScaling,
                lambda m, s, y: setattr(
                    m, "inverse_temperature_", 1 / m.inverse_temperature_
                ),
            ),
            network_rows,
        ),
        "VectorScaling: the slopes of the next class": (
            fitted_wrong(
                VectorScaling, lambda m, s, y: setattr(m, "coef_", np.roll(m.coef_, 1))
            ),
            network_rows,
        ),
    },
    "zhao-theory": {
        "ClasswiseTemperatureScaling: one temperature": (
            fitted_wrong(ClasswiseTemperatureScaling, share_one_temperature),
            SLICES,
        ),
        "ClasswiseTemperatureScaling: changes classes": (
            replaced(
                ClasswiseTemperatureScaling,
                "predict_proba",
                lambda right, self, X: np.roll(right(self, X), 1, axis=1),
            ),
            SLICES,
        ),
        "per_class_temperature_bound: without the share of the class": (
            replaced(
                zhao_theory,
                "per_class_temperature_bound",
                lambda right, n, k, p, *a, **o: right(n, k, 0.2, *a, **o),
            ),
            BOUNDS,
        ),
        "classwise_temperature_bound: a fiftieth": (
            replaced(zhao_theory, "classwise_temperature_bound", times(0.02)),
            BOUNDS,
        ),
        "expected_calibration_error: classes do not cancel": (
            replaced(
                zhao_theory,
                "expected_calibration_error",
                lambda right, y, p, **k: zhao_theory.groupwise_calibration_error(
                    y, p, groups=p, reduce="mean", **k
                ),
            ),
            rows_of(zhao_theory, ("_worked_case",)),
        ),
    },
}


def test_each_command_has_five_mutations():
    assert set(MUTATIONS) == set(modules())
    assert {
        command for command, mutations in MUTATIONS.items() if len(mutations) < 5
    } == set()


@functools.cache
def right_verdicts(measure):
    return measure()


ON_THE_PAGE = verdicts_in(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("command", MUTATIONS)
def test_each_mutation_is_flagged(command):
    """A row that agrees on the page, and does not differ in the small form either,
    differs with the mutation.
    """
    if getattr(modules()[command], "NEEDS_DATA", False) and not DATA:
        pytest.skip("needs the real data: set SKCALIB_DATA to its folder")
    missed = []
    for name, (wrong, measure) in MUTATIONS[command].items():
        right = right_verdicts(measure)
        with pytest.MonkeyPatch.context() as monkeypatch:
            wrong(monkeypatch)
            found = measure()
        if not any(
            verdict == "differs" != right[quantity]
            and ON_THE_PAGE.get(quantity) == "agrees"
            for quantity, verdict in found.items()
        ):
            missed.append(name)
    assert missed == []
