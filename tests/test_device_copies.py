"""What each public function that takes scores copies off a device: no copy along the
samples of more than 8 n bytes, and 64 n in all. Results are those of NumPy.
"""

import importlib
import inspect
import re
from functools import partial

import numpy as np
import pytest
from _counting_namespace import counted_copies, on_device
from scipy.special import ndtri, softmax

from skcalib import decisions, displays, evaluation, metrics, monitoring
from skcalib._cells.reductions import binary_tasks
from skcalib._inference import label_dependence
from skcalib._input.scored_labels import check_scored_labels
from skcalib._rows.normal_quantiles import normal_quantiles
from skcalib.binning import EqualMass

N, K = 13_000, 12  # a copy of all scores would be 96 n bytes
FREE = 8 * 4097  # sums of the cells of a class: more samples than these are counted
PACKAGES = ("decisions", "displays", "evaluation", "metrics", "monitoring")
SCORES = {"y_proba", "y_proba_before", "models", "scores"}


def _samples():
    """Return labels and probabilities of K classes, of K labels and of two classes."""
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=(N, K))
    y = (logits / 1.3 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    proba = softmax(logits, axis=1)
    labels = rng.random(proba.shape) < proba**0.8
    two = proba[:, :2] / proba[:, :2].sum(axis=1, keepdims=True)
    event = (rng.random(N) < two[:, 1]).astype(int)
    return {"classes": (y, proba), "labels": (labels, proba), "two": (event, two)}


SAMPLES = _samples()
DRAWS = {"n_resamples": 19, "random_state": 0}
TIME, GROUPS = np.arange(N) / N, np.arange(N) % 3
COLUMNS = np.random.default_rng(1).normal(size=(N, 2))
EDGES = np.linspace(0, 1, 11)
HALVES = slice(0, N // 2), slice(N // 2, N)


# Classes in another order than their columns, and weights, some of them 0.
RANKED = {
    "": {},
    "order, weights": {
        "order": np.random.default_rng(2).permutation(K),
        "sample_weight": np.arange(N) % 3,
    },
}


def _two_halves(function, **options):
    """Return a function of labels and scores that passes both halves of them."""

    def called(y, proba):
        before, after = HALVES
        parts = (y[before], proba[before, :], y[after], proba[after, :])
        return function(*parts, **options)

    return called


def _accepted(y, proba):
    threshold = decisions.certified_threshold(
        *SAMPLES["two"], promise="accuracy", target=0.6
    )
    return threshold.accepts(proba[:, 1])


def _of_each(function, **options):
    """Return the jobs of an error: of one problem, of each class, of all classes
    together, and of several labels.
    """
    found = {}
    for kind in ("auto", "marginal", "pooled"):
        if kind == "pooled" and function is metrics.two_bin_calibration_error:
            continue
        found[kind] = ("classes", partial(function, multiclass=kind, **options))
    found["labels"] = ("labels", partial(function, **options))
    return found


ERRORS = [
    metrics.calibration_error,
    metrics.decision_calibration_error,
    metrics.expected_calibration_error,
    metrics.kde_calibration_error,
    metrics.kolmogorov_smirnov_calibration_error,
    metrics.kuiper_calibration_error,
    metrics.maximum_calibration_error,
    metrics.neighborhood_calibration_error,
    metrics.smooth_calibration_error,
    metrics.sweep_calibration_error,
    metrics.two_bin_calibration_error,
]
TESTED = [
    metrics.calibration_error,
    metrics.kuiper_calibration_error,
    metrics.smooth_calibration_error,
    metrics.sweep_calibration_error,
]


def _one(function, samples="classes", **options):
    return {"": (samples, partial(function, **options))}


# The jobs of each public function: the samples that it gets, and a function of these.
JOBS = {function.__name__: _of_each(function) for function in ERRORS}
for _metric in TESTED:
    jobs = _of_each(metrics.calibration_test, metric=_metric, **DRAWS)
    for name, job in jobs.items():
        JOBS.setdefault("calibration_test", {})[f"{_metric.__name__} {name}"] = job
JOBS["calibration_test"]["kuiper"] = (
    "classes",
    partial(metrics.calibration_test, method="kuiper"),
)
JOBS["calibration_test"]["multinomial"] = (
    "classes",
    partial(metrics.calibration_test, method="multinomial"),
)
JOBS |= {
    "calibration_error_interval": _of_each(metrics.calibration_error_interval, **DRAWS),
    "groupwise_calibration_error": {
        kind: (
            "classes",
            partial(
                metrics.groupwise_calibration_error, groups=GROUPS, multiclass=kind
            ),
        )
        for kind in ("auto", "marginal")
    },
    "reliability_curve": {
        kind: (
            "classes",
            lambda y, p, kind=kind: str(
                metrics.reliability_curve(y, p, multiclass=kind)
            ),
        )
        for kind in ("auto", "marginal", "pooled")
    },
    "brier_decomposition": _of_each(metrics.brier_decomposition),
    "log_loss_decomposition": _of_each(metrics.log_loss_decomposition),
    "ranked_probability_score": {
        name: ("classes", partial(metrics.ranked_probability_score, **options))
        for name, options in RANKED.items()
    },
    "ranked_probability_decomposition": {
        name: ("classes", partial(metrics.ranked_probability_decomposition, **options))
        for name, options in (RANKED | {"bins": {"binning": 10}}).items()
    },
    "calibration_slope_intercept": _one(metrics.calibration_slope_intercept),
    "validity_curve": _one(metrics.validity_curve),
    "calibration_by_group": _one(metrics.calibration_by_group, groups=GROUPS, **DRAWS),
    "segment_calibration_test": _one(
        metrics.segment_calibration_test, X=COLUMNS, **DRAWS
    ),
    "BinStatistics.from_predictions": {
        kind: (
            "classes",
            partial(
                metrics.BinStatistics.from_predictions,
                edges=EDGES,
                multiclass=kind,
                labels=np.arange(K),
            ),
        )
        for kind in ("auto", "marginal")
    },
    "compare": {
        "": (
            "classes",
            lambda y, p: evaluation.compare(y, {"a": p, "b": p}, **DRAWS),
        )
    },
    "calibration_by_cluster": _one(
        evaluation.calibration_by_cluster, "two", clusters=np.arange(N) % 20
    ),
    "calibration_summary": _one(evaluation.calibration_summary, "two", **DRAWS),
    "update_test": _one(evaluation.update_test, "two"),
    "validation_sample_size": {
        "": ("two", lambda y, p: evaluation.validation_sample_size(p[:, 1]))
    },
    "certified_threshold": _one(
        decisions.certified_threshold, "two", promise="accuracy", target=0.6
    ),
    "CertifiedThreshold.accepts": {"": ("two", _accepted)},
    "net_benefit": _one(decisions.net_benefit, "two"),
    "calibration_change": {
        "": ("classes", _two_halves(monitoring.calibration_change, **DRAWS))
    },
    "calibration_trend": _one(monitoring.calibration_trend, "two", time=TIME),
    "error_autocorrelation": _one(monitoring.error_autocorrelation, "two", time=TIME),
    "estimated_performance": {
        "": (
            "classes",
            lambda y, p: monitoring.estimated_performance(
                y[HALVES[0]], p[HALVES[0], :], p[HALVES[1], :]
            ),
        )
    },
    "CalibrationMonitor.fit": {
        "": (
            "classes",
            lambda y, p: (
                monitoring.CalibrationMonitor(classes=np.arange(K)).fit(p, y).e_value_
            ),
        )
    },
    "CalibrationMonitor.partial_fit": {
        "": (
            "classes",
            lambda y, p: (
                monitoring.CalibrationMonitor(classes=np.arange(K))
                .partial_fit(p, y)
                .e_value_
            ),
        )
    },
    "GroupMonitors.partial_fit": {
        "": (
            "two",
            lambda y, p: str(monitoring.GroupMonitors().partial_fit(p, y, GROUPS)),
        )
    },
}
# Functions that copy more, and why.
EXEMPT = {
    "kernel_calibration_error": "a copy of 512 rows: see test_devices",
    "advise": "fits recalibrators",
    "cross_validate": "fits recalibrators",
    "recalibration_gain": "fits a recalibrator; on the device if it can be",
    "refinement_loss": "fits a recalibrator",
    "CalibrationError.value": "the value of each error",
    "GroupMonitors.fit": "partial_fit",
}
# Displays draw what these functions return.
DRAWN = {
    "BinCountDisplay",
    "ChangeDisplay",
    "ComparisonDisplay",
    "CumulativeDifferenceDisplay",
    "DecisionCurveDisplay",
    "EstimatorBiasDisplay",
    "GroupDisplay",
    "MurphyDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "SegmentDisplay",
    "ValidityDisplay",
}


def _functions(package):
    """Yield the names and the functions of a package, methods included."""
    module = importlib.import_module(f"skcalib.{package}")
    for name in module.__all__:
        found = getattr(module, name)
        if not inspect.isclass(found):
            yield name, found
            continue
        for method, function in inspect.getmembers(found, callable):
            if not method.startswith(("_", "set_")):
                yield f"{name}.{method}", function


def test_every_public_function_is_measured():
    names = set()
    for package in PACKAGES:
        for name, function in _functions(package):
            try:
                parameters = set(inspect.signature(function).parameters)
            except (TypeError, ValueError):
                continue
            if parameters & SCORES:
                names.add(name)
    expected = set(JOBS) | set(EXEMPT)
    expected |= {f"{name}.from_predictions" for name in DRAWN}
    assert names == expected


def _copies(samples, job):
    """Return the result of a job for arrays of NumPy, that for tensors, and the
    `Copies`.
    """
    y, proba = SAMPLES[samples]
    expected = job(y, proba)
    with counted_copies() as copies:
        found = job(on_device(y), on_device(proba))
    return expected, found, copies


def _assert_equal(found, expected):
    try:
        numbers = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    except (TypeError, ValueError):  # of a result that is no number
        assert str(found) == str(expected)
    else:
        np.testing.assert_allclose(*numbers, rtol=1e-10)


# Draws of labels take long: the fast tests have those of one error.
_IS_SLOW = re.compile(r"(smooth|sweep|kuiper)_calibration_error (marginal|labels)")
CASES = []
for _name, _jobs in JOBS.items():
    for _case in _jobs:
        _marks = [pytest.mark.slow] if _IS_SLOW.match(_case) else []
        CASES.append(pytest.param(_name, _case, marks=_marks))


@pytest.mark.parametrize(("name", "case"), CASES)
def test_little_is_copied(name, case, monkeypatch):
    # Samples from which labels that depend on each other are drawn: at most 20,000.
    monkeypatch.setattr(label_dependence, "_ROWS", 200)
    monkeypatch.setattr(label_dependence, "_PAIRS", 200 * K)
    expected, found, copies = _copies(*JOBS[name][case])
    _assert_equal(found, expected)
    copies.refuse_more_than(N, free=FREE)


@pytest.mark.parametrize("weight_type", ["frequency", "importance"])
def test_with_importance_weights_scores_are_copied_once(weight_type):
    """The variances of such weights need each sample; those that count do not."""
    weight = np.random.default_rng(3).integers(1, 4, N)
    job = partial(
        metrics.calibration_error_interval,
        multiclass="marginal",
        sample_weight=weight,
        weight_type=weight_type,
        **DRAWS,
    )
    expected, found, copies = _copies("classes", job)
    assert str(found) == str(expected)
    if weight_type == "frequency":
        copies.refuse_more_than(N, free=FREE)
    else:
        labels_and_scores = 8 * N * (1 + K)
        assert sum(size for size in copies if size > FREE) == labels_and_scores


DISPLAYED = {
    "ValidityDisplay": partial(
        displays.ValidityDisplay.from_predictions, binning=EqualMass(15)
    ),
    "ChangeDisplay": _two_halves(displays.ChangeDisplay.from_predictions, **DRAWS),
    "ComparisonDisplay": lambda y, p: displays.ComparisonDisplay.from_predictions(
        y, {"a": p, "b": p}, **DRAWS
    ),
    "RiskCoverageDisplay": partial(
        displays.RiskCoverageDisplay.from_predictions, target=0.3
    ),
    "SegmentDisplay": partial(
        displays.SegmentDisplay.from_predictions, X=COLUMNS, **DRAWS
    ),
    "EstimatorBiasDisplay": partial(
        displays.EstimatorBiasDisplay.from_predictions, n_simulations=2, random_state=0
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(DRAWN))
def test_displays_copy_little(name):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    draw = DISPLAYED.get(name, getattr(displays, name).from_predictions)
    y, proba = SAMPLES["two" if name == "DecisionCurveDisplay" else "classes"]
    with counted_copies() as copies:
        draw(on_device(y), on_device(proba))
    matplotlib.pyplot.close("all")
    copies.refuse_more_than(N, free=FREE)


def test_normal_quantiles_on_a_device_are_those_of_scipy():
    xp = pytest.importorskip("array_api_strict")
    rng = np.random.default_rng(0)
    near_zero = 10.0 ** -rng.uniform(0, 300, 2000)
    special = [0, 1, 0.5, 0.075, 0.925, 5e-324, 1 - 2**-53]
    probability = np.concatenate((rng.random(2000), near_zero, 1 - near_zero, special))
    found = np.asarray(normal_quantiles(xp, xp.asarray(probability)))
    np.testing.assert_allclose(found, ndtri(probability), rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_trials_of_pooled_cells_are_those_of_a_loop(dtype, is_weighted):
    """With scores of a row that tie or lie in one cell."""
    rng = np.random.default_rng(0)
    proba = (rng.multinomial(12, [0.2] * 5, 300) / 12).astype(dtype)
    y = rng.integers(0, 5, 300)
    weight = rng.integers(1, 4, 300) / 2 if is_weighted else None
    cells = []
    for scores in (proba, on_device(proba)):
        data = check_scored_labels(y, scores, multiclass="pooled", sample_weight=weight)
        (task,) = binary_tasks(data, "pooled", pooled=True)
        cells += [task.cells(5), task.bin_cells(6)]
    for expected, found in zip(cells[:2], cells[2:], strict=True):
        rtol = 1e-12 if dtype == "float64" else 1e-6
        for name in ("weight", "weighted_label", "weighted_score_squared"):
            np.testing.assert_allclose(
                getattr(found, name), getattr(expected, name), rtol=rtol
            )
    # the variance of a trial is w q (1 - q), q the sum of its scores in the cell
    found = cells[2]
    variance = np.zeros(len(found.weight))
    for i in range(len(y)):
        in_cell = np.zeros(len(variance))
        for score in proba[i]:
            in_cell[np.searchsorted(found.high, score).clip(max=len(variance) - 1)] += (
                score
            )
        variance += (1 if weight is None else weight[i]) * in_cell * (1 - in_cell)
    mean = found.mean_score
    share = np.minimum(variance / found.weight, mean * (1 - mean))
    expected = found.weight * (mean - share)
    np.testing.assert_allclose(found.weighted_score_squared, expected, rtol=1e-6)


def test_an_isotonic_fit_on_a_device_is_that_of_scipy():
    """With many rounds of blocks, and weights."""
    rng = np.random.default_rng(0)
    proba = softmax(rng.normal(size=(3000, 3)), axis=1)
    y = (
        (rng.random(3000)[:, None] > proba.cumsum(axis=1) ** 1.3)
        .sum(axis=1)
        .clip(max=2)
    )
    for weight in (None, rng.integers(1, 5, 3000) / 4):
        options = {"multiclass": "marginal", "sample_weight": weight}
        expected = metrics.decision_calibration_error(y, proba, **options)
        with counted_copies():
            found = metrics.decision_calibration_error(y, on_device(proba), **options)
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_parts_of_tied_scores_on_a_device_are_those_of_numpy(dtype):
    """With sums of probabilities that tie or not by their last digit."""
    rng = np.random.default_rng(0)
    proba = (rng.multinomial(12, [0.2] * 5, 3000) / 12).astype(dtype)
    y = rng.integers(0, 5, 3000)
    for decompose, options in (
        (metrics.ranked_probability_decomposition, {"order": [3, 0, 4, 1, 2]}),
        (metrics.brier_decomposition, {"multiclass": "marginal"}),
        (metrics.brier_decomposition, {"multiclass": "pooled"}),
    ):
        for weight in (None, rng.integers(0, 4, 3000) / 4):
            expected = decompose(y, proba, sample_weight=weight, **options)
            found = decompose(y, on_device(proba), sample_weight=weight, **options)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
            assert str(found) == str(expected)
