"""Tensors on a device that NumPy cannot read: results are those of NumPy, and what is
copied off the device is n numbers, or those of bins.
"""

from contextlib import ExitStack
from functools import partial

import numpy as np
import pytest
from _counting_namespace import as_in_cupy, counted_copies, off_device, on_device
from _twins import bin_of
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn import config_context
from sklearn.base import clone

import skcalib
from skcalib._cells.reductions import binary_tasks
from skcalib._inference import label_dependence
from skcalib._input import tensors
from skcalib._input.scored_labels import check_scored_labels
from skcalib._rows.sorting import DistinctScores
from skcalib.binning import (
    EqualMass,
    EqualWidth,
    MinimumMass,
    MonotonicSweep,
    PoolAdjacentViolators,
)
from skcalib.evaluation import compare, recalibration_gain
from skcalib.metrics import (
    BinStatistics,
    _tests,
    brier_decomposition,
    calibration_error,
    calibration_error_interval,
    calibration_slope_intercept,
    calibration_test,
    groupwise_calibration_error,
    kernel_calibration_error,
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
    log_loss_decomposition,
    neighborhood_calibration_error,
    ranked_probability_decomposition,
    ranked_probability_score,
    reliability_curve,
    smooth_calibration_error,
    sweep_calibration_error,
)
from skcalib.monitoring import CalibrationMonitor, calibration_change

DEVICES = [("device1", "float64"), ("device1", "float32"), ("no_float64", "float32")]
EDGES = np.linspace(0, 1, 11)
SUMS = [
    "count",
    "weight",
    "weighted_score",
    "weighted_label",
    "weighted_score_squared",
    "weighted_score_label",
    "weight_squared",
]


def _data(n=600, k=5, dtype="float64", seed=0):
    """Labels, probabilities and logits of an overconfident model."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, k))
    y = (logits / 1.5 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return y, softmax(logits, axis=1).astype(dtype), logits.astype(dtype)


def _monitored(y, proba):
    monitor = CalibrationMonitor(classes=np.arange(5))
    return monitor.partial_fit(proba, y).e_value_


def _changed(y, proba):
    before, after = slice(0, 300), slice(300, 600)
    found = calibration_change(
        y[before], proba[before, :], y[after], proba[after, :], random_state=0
    )
    return found.pvalue


MEASURES = {
    "top label": calibration_error,
    "interval": partial(calibration_error_interval, random_state=0),
    "curve": lambda y, p: reliability_curve(y, p).event_frequency,
    "slope": lambda y, p: calibration_slope_intercept(y, p).slope,
    "classes": partial(calibration_error, multiclass="marginal"),
    "equal width": partial(
        calibration_error, multiclass="marginal", binning=EqualWidth(10)
    ),
    "weights": partial(
        calibration_error, multiclass="marginal", sample_weight=np.arange(600) % 3
    ),
    "groups": groupwise_calibration_error,
    "smooth": smooth_calibration_error,
    "test": lambda y, p: calibration_test(y, p, random_state=0).pvalue,
    "test of classes": lambda y, p: (
        calibration_test(
            y, p, multiclass="marginal", n_resamples=50, random_state=0
        ).pvalue
    ),
    "pooled": partial(calibration_error, multiclass="pooled"),
    "pooled, equal width": partial(
        calibration_error, multiclass="pooled", binning=EqualWidth(10)
    ),
    "pooled, weights": partial(
        calibration_error, multiclass="pooled", sample_weight=np.arange(600) % 3
    ),
    "kernel": lambda y, p: kernel_calibration_error(y[:200], p[:200, :]),
    "kernel, weights": lambda y, p: kernel_calibration_error(
        y[:200], p[:200, :], bandwidth=0.2, sample_weight=np.arange(200) % 3 / 2
    ),
    "neighbors of classes": partial(
        neighborhood_calibration_error, multiclass="marginal"
    ),
    "decomposition": lambda y, p: brier_decomposition(y, p).score,
    "decomposition of classes": lambda y, p: tuple(
        log_loss_decomposition(y, p, multiclass="marginal")
    ),
    "ranks": ranked_probability_score,
    "multinomial": lambda y, p: (
        calibration_test(
            y, p, method="multinomial", sample_weight=np.arange(600) % 3
        ).statistic
    ),
    "parts of ranks": ranked_probability_decomposition,
    "monitor": _monitored,
    "change": _changed,
}


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize(("device", "dtype"), DEVICES)
def test_results_are_those_of_numpy_and_little_is_copied(name, device, dtype):
    y, proba, _ = _data(dtype=dtype)
    expected = MEASURES[name](y, proba)
    for labels in (y, on_device(y, device)):
        with counted_copies() as copies:
            found = MEASURES[name](labels, on_device(proba, device))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        if name == "test of classes":  # draws from the scores of each class
            assert max(copies) <= 8 * len(y)
        else:
            copies.refuse_more_than(len(y), free=_FREE)


_FREE = 8 * 512 * 5  # rows that stand for all in the kernel error; sums of 15 bins


BINS = partial(calibration_error, binning=EqualMass(4))
DRAWN = {
    "classes": {"multiclass": "marginal"},
    "pooled": {"multiclass": "pooled"},
    "weighted, pooled": {
        "multiclass": "pooled",
        "sample_weight": np.arange(600) % 3,
    },
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("kind", ["interval", "test"])
def test_labels_are_drawn_from_the_scores_of_few_samples(name, kind, monkeypatch):
    """Tests and intervals of binned errors, whose classes depend on each other."""
    monkeypatch.setattr(label_dependence, "_ROWS", 40)
    y, proba, _ = _data()
    options = DRAWN[name] | {"random_state": 0, "n_resamples": 99}

    def limits(y, proba):
        if kind == "test":
            return calibration_test(y, proba, metric=BINS, **options).pvalue
        found = calibration_error_interval(y, proba, metric=BINS, **options)
        return [found.estimate, found.low, found.high]

    expected = limits(y, proba)
    with counted_copies() as copies:
        found = limits(on_device(y), on_device(proba))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    copies.refuse_more_than(len(y), free=8 * 40 * 5)


def test_the_counter_counts():
    with counted_copies() as copies:
        off_device(on_device(np.zeros((10, 9))))
    assert copies == [720]
    with pytest.raises(AssertionError):
        copies.refuse_more_than(10)
    with pytest.raises(BufferError), counted_copies():
        np.from_dlpack(on_device(np.zeros(3)))


OF_CLASSES = {
    "sweep": sweep_calibration_error,
    "sweep of equal width": partial(
        calibration_error, binning=MonotonicSweep(EqualWidth())
    ),
    "kuiper": kuiper_calibration_error,
    "kolmogorov_smirnov": kolmogorov_smirnov_calibration_error,
    "neighborhood": neighborhood_calibration_error,
    "two neighbors": partial(
        neighborhood_calibration_error, n_neighbors=2, norm=np.inf
    ),
    "all neighbors": partial(neighborhood_calibration_error, n_neighbors=900, norm=2),
}


@pytest.mark.parametrize("name", OF_CLASSES)
@pytest.mark.parametrize("kind", ["marginal", "pooled", "several labels"])
@pytest.mark.parametrize("ties", [False, True])
def test_scores_of_many_classes_are_sorted_where_they_are(name, kind, ties):
    """With 12 classes, the scores of each would be 96 n bytes."""
    y, proba, _ = _data(2000, k=12, dtype="float32" if ties else "float64")
    rng = np.random.default_rng(0)
    options = {"multiclass": "marginal" if kind == "several labels" else kind}
    if kind == "several labels":
        proba = rng.random(proba.shape).astype(proba.dtype)
        y = rng.random(proba.shape) < proba**1.3
    if ties:
        proba = np.round(proba, 2)
        if kind != "several labels":
            proba[:, 0] += 1 - proba.sum(axis=1)
            proba = np.clip(proba, 0, 1)
            proba /= proba.sum(axis=1, keepdims=True)
        options["sample_weight"] = rng.integers(0, 4, len(y)) / 2
    expected = OF_CLASSES[name](y, proba, **options)
    with counted_copies() as copies:
        found = OF_CLASSES[name](on_device(y), on_device(proba), **options)
    assert found == pytest.approx(expected, rel=1e-6)
    assert max(copies, default=0) <= 8 * len(y)
    assert sum(copies) <= 32 * len(y)


@pytest.mark.parametrize(("device", "dtype"), DEVICES)
def test_labels_of_the_kernel_test_are_drawn_on_the_device(device, dtype, monkeypatch):
    """With 12 classes, their probabilities would be 96 n bytes."""
    y, proba, _ = _data(1000, k=12, dtype=dtype)
    drawn = []

    def recorded(statistics):
        drawn.append(statistics)
        return share_reached(statistics)

    share_reached = _tests._share_reached
    monkeypatch.setattr(_tests, "_share_reached", recorded)
    options = {"metric": kernel_calibration_error, "n_resamples": 9}
    expected = calibration_test(y, proba, random_state=0, **options)
    with counted_copies() as copies:
        found = calibration_test(y, on_device(proba, device), random_state=0, **options)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-5)
    largest = np.abs(drawn[0]).max()  # of sums in single precision
    np.testing.assert_allclose(drawn[1], drawn[0], rtol=1e-5, atol=1e-5 * largest)
    copies.refuse_more_than(len(y), free=8 * 512)  # a column of the landmarks


@pytest.mark.parametrize(
    "strategy",
    [
        MonotonicSweep(EqualMass()),
        MonotonicSweep(EqualWidth()),
        PoolAdjacentViolators(),
    ],
)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_edges_of_labels_on_a_device_are_those_of_numpy(strategy, is_weighted):
    """To the last bit, for the bins of few samples, ties and separable labels."""
    xp = pytest.importorskip("array_api_strict")
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 40, 400, 3000):
        scores = np.round(rng.random(n), rng.integers(1, 5))
        for y in (rng.random(n) < scores, scores > 0.5):
            weight = rng.integers(1, 4, n) / 4 if is_weighted else None
            table = DistinctScores.from_rows(scores, y, weight)
            tensors = [
                xp.asarray(array, device=xp.Device("device1")) for array in table[:3]
            ]
            on_device = DistinctScores(*tensors, xp)
            np.testing.assert_array_equal(
                strategy._edges_of_table(on_device), strategy._edges_of_table(table)
            )


@pytest.mark.parametrize("is_weighted", [False, True])
def test_cells_are_condensed_on_the_device(is_weighted):
    y, proba, _ = _data(k=3)
    weight = np.arange(600) % 4 / 2 if is_weighted else None
    cells = []
    for scores in (proba, on_device(proba)):
        with counted_copies() as copies:
            data = check_scored_labels(y, scores, sample_weight=weight)
            task = list(binary_tasks(data, "marginal"))[1]
            cells.append(task.cells(40))
    copies.refuse_more_than(len(y), free=8 * 41)
    expected, found = cells
    np.testing.assert_array_equal(found.edges, expected.edges)
    np.testing.assert_array_equal(found.weight, expected.weight)
    np.testing.assert_array_equal(found.weighted_label, expected.weighted_label)
    np.testing.assert_allclose(found.mean_score, expected.mean_score, rtol=1e-12)


def test_classes_of_an_unusual_strategy_are_copied_one_by_one():
    y, proba, _ = _data()
    options = {"multiclass": "marginal", "binning": MinimumMass(50)}
    with counted_copies() as copies:
        found = calibration_error(y, on_device(proba), **options)
    assert found == calibration_error(y, proba, **options)
    assert max(copies) == 8 * len(y)


@pytest.mark.parametrize("multiclass", ["marginal", "pooled"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_decompositions_of_tied_and_of_impossible_scores(multiclass, is_weighted):
    rng = np.random.default_rng(0)
    proba = rng.multinomial(20, [0.05, 0.4, 0.55], 2000) / 20
    truth = np.cumsum(proba + 0.1, axis=1) / 1.3
    y = (rng.random((2000, 1)) > truth).sum(axis=1)
    options = {"multiclass": multiclass}
    if is_weighted:
        options["sample_weight"] = rng.integers(0, 4, 2000) / 2
    for decomposition in (brier_decomposition, log_loss_decomposition):
        expected = decomposition(y, proba, **options)
        with counted_copies() as copies:
            found = decomposition(on_device(y), on_device(proba), **options)
        assert str(found) == str(expected)
        np.testing.assert_allclose(tuple(found), tuple(expected), rtol=1e-10)
        copies.refuse_more_than(len(y), free=_FREE)
    assert "probability was 0" in str(expected)


def test_comparisons():
    """Of two models, 64 n bytes are those of all metrics together."""
    y, first, logits = _data()
    second = softmax(logits / 1.5, axis=1)
    names = ("brier_score", "log_loss", "squared_calibration_error")
    for metrics in (names, ["calibration_error"]):
        options = {"metrics": metrics, "random_state": 0, "n_resamples": 99}
        expected = compare(y, {"a": first, "b": second}, **options)
        with counted_copies() as copies:
            models = {"a": on_device(first), "b": on_device(second)}
            found = compare(on_device(y), models, **options)
        assert str(found) == str(expected)
        copies.refuse_more_than(len(y), free=8 * 75)  # sums of 15 bins


@pytest.mark.slow
@pytest.mark.parametrize(("device", "dtype"), DEVICES)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_several_labels_per_row(device, dtype, is_weighted):
    rng = np.random.default_rng(0)
    proba = rng.random((600, 6)).astype(dtype)
    labels = rng.random(proba.shape) < proba**1.3
    weight = rng.integers(0, 3, 600) if is_weighted else None
    for binning in (EqualMass(7), EqualWidth(7)):
        options = {"binning": binning, "sample_weight": weight}
        expected = calibration_error(labels, proba, **options)
        for dtype_of_labels in ("bool", "int32"):
            given = on_device(labels.astype(dtype_of_labels), device)
            with counted_copies() as copies:
                found = calibration_error(given, on_device(proba, device), **options)
            assert found == pytest.approx(expected, rel=1e-6)
            sorts_on_processor = is_weighted and device == "no_float64"
            if binning.n_bins == 7 and not sorts_on_processor:
                copies.refuse_more_than(len(proba), free=8 * 7 * 6 * 8)
    messages = []
    wrong = labels * 2
    for given in (wrong, on_device(wrong, device)):
        with pytest.raises(ValueError, match="0 and 1") as error:
            calibration_error(given, on_device(proba, device))
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_gain_of_a_recalibrator_that_is_fitted_on_the_device(monkeypatch):
    """The number of copied numbers does not depend on that of the classes."""
    pytest.importorskip("array_api_strict")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    copied = []
    for k in (4, 12):
        y, proba, _ = _data(n=300, k=k)
        method = skcalib.TemperatureScaling(clip=None)
        expected = recalibration_gain(y, proba, recalibrator=method)
        with ExitStack() as stack:
            try:
                stack.enter_context(config_context(array_api_dispatch=True))
            except ImportError as error:
                pytest.skip(str(error))
            copies = stack.enter_context(counted_copies())
            found = recalibration_gain(
                on_device(y), on_device(proba), recalibrator=method
            )
            table = recalibration_gain(
                y, on_device(proba), recalibrator={"t": method}, loss="brier"
            )
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        brier = recalibration_gain(y, proba, recalibrator={"t": method}, loss="brier")
        assert str(table) == str(brier)
        assert max(copies) <= 8 * len(y)
        copied.append(sum(size for size in copies if size >= len(y)))
    assert copied[1] <= 1.1 * copied[0]


@pytest.mark.slow
@given(st.integers(0, 10**6), st.sampled_from(["float32", "float64"]))
def test_sums_by_bin_of_classes_are_those_of_a_loop(seed, dtype):
    """With scores that tie, and that lie on edges."""
    rng = np.random.default_rng(seed)
    n, k = rng.integers(3, 30), 3
    proba = rng.multinomial(rng.choice([3, 10]), [0.2, 0.3, 0.5], n).astype(dtype)
    proba /= proba.sum(axis=1, keepdims=True)
    y = rng.integers(0, k, n)
    weight = None
    if rng.random() < 0.5:
        weight = rng.integers(1, 4, n).astype(float)
    edges = np.unique([0, 1, *rng.choice(EDGES, 4)])
    options = {"multiclass": "marginal", "labels": range(k)}
    with counted_copies():
        found = BinStatistics.from_predictions(
            y, on_device(proba), edges, weight, **options
        )
    for c in range(k):
        expected = np.zeros((len(SUMS), len(edges) - 1))
        for i in range(n):
            s = float(proba[i, c])
            event = y[i] == c
            w = 1.0 if weight is None else weight[i]
            terms = [1, w, w * s, w * event, w * s * s, w * s * event, w * w]
            expected[:, bin_of(s, edges)] += terms
        for name, sums in zip(SUMS, expected, strict=True):
            np.testing.assert_allclose(getattr(found[c], name), sums, atol=1e-6)


@pytest.mark.slow
@given(st.integers(0, 10**6), st.integers(1, 40), st.booleans())
def test_bins_of_equal_mass_have_the_edges_of_numpy(seed, n_bins, is_weighted):
    rng = np.random.default_rng(seed)
    n = rng.integers(4, 40)
    proba = rng.multinomial(rng.choice([3, 10, 1000]), [0.2, 0.3, 0.5], n)
    proba = proba / proba.sum(axis=1, keepdims=True)
    y = np.arange(n) % 3
    options = {"multiclass": "marginal", "binning": EqualMass(n_bins)}
    if is_weighted:
        options["sample_weight"] = rng.integers(1, 4, n)
    options["method"] = "plugin"
    with counted_copies():
        found = calibration_error(y, on_device(proba), **options)
    assert found == pytest.approx(calibration_error(y, proba, **options), rel=1e-9)


WRONG = {
    "NaN": (5, 1, np.nan),
    "infinite": (7, 0, np.inf),
    "outside": (3, 2, 1.5),
    "negative": (3, 2, -0.5),
    "a sum": (4, 1, 0.999),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_those_of_numpy(name):
    row, column, value = WRONG[name]
    y, proba, _ = _data()
    proba[row, column] = value
    messages = []
    for scores in (proba, on_device(proba)):
        with counted_copies(), pytest.raises(ValueError, match="row") as error:
            calibration_error(y, scores)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200, -1e200])
def test_errors_about_logits_are_those_of_numpy(value):
    y, _, logits = _data()
    logits[9, 1] = value
    for scores in (logits, on_device(logits)):
        with counted_copies(), pytest.raises(ValueError, match="row 9"):
            BinStatistics.from_predictions(y, scores, EDGES, input="logit")


def test_rounding_is_mended_as_by_numpy():
    y, proba, _ = _data()
    off = proba * (1 + 1e-7 * np.arange(len(y))[:, None] / len(y))
    off[3] = [-1e-8, 1 + 1e-8, 0, 0, 0]
    for scores in (off, off.astype("float32")):
        for options in ({}, {"multiclass": "marginal"}):
            with counted_copies() as copies:
                found = calibration_error(y, on_device(scores), **options)
            expected = calibration_error(y, scores, **options)
            assert found == pytest.approx(expected, rel=1e-6)
            copies.refuse_more_than(len(y))


def test_two_columns_are_one_event():
    y, proba, _ = _data(k=2)
    with counted_copies() as copies:
        assert calibration_error(y, on_device(proba)) == calibration_error(y, proba)
    assert copies == [8 * len(y)]


@pytest.mark.parametrize(("device", "dtype"), DEVICES)
def test_batches_of_pixels_stream_into_statistics(device, dtype):
    """Class maps with the channels first and an ignored label, as in PyTorch."""
    xp = pytest.importorskip("array_api_strict")
    rng = np.random.default_rng(0)
    for multiclass in ("auto", "marginal"):
        options = {"multiclass": multiclass, "input": "logit", "ignore_label": 255}
        options["labels"] = np.arange(4)
        totals = [0, 0]
        for _ in range(3):
            maps = rng.normal(size=(2, 4, 8, 16)).astype(dtype)
            truth = maps.argmax(axis=1)
            truth[rng.random(truth.shape) < 0.4] = 2
            truth[:, 0] = 255
            pixels = np.moveaxis(maps, 1, -1).reshape(-1, 4)
            totals[0] += BinStatistics.from_predictions(
                truth.ravel(), pixels, EDGES, **options
            )
            with counted_copies() as copies:
                tensor = on_device(maps, device)
                logits = xp.reshape(xp.moveaxis(tensor, 1, -1), (-1, 4))
                labels = xp.reshape(on_device(truth, device), (-1,))
                totals[1] += BinStatistics.from_predictions(
                    labels, logits, EDGES, **options
                )
            copies.refuse_more_than(truth.size, free=8 * 3 * 10 * 4)
        pairs = (
            [totals]
            if multiclass == "auto"
            else zip(*(total.values() for total in totals), strict=True)
        )
        for expected, found in pairs:
            for name in SUMS:
                np.testing.assert_allclose(
                    getattr(found, name), getattr(expected, name), rtol=1e-5
                )


def test_displays_draw_tensors():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    y, proba, _ = _data(100)
    draw = skcalib.displays.ReliabilityDisplay.from_predictions
    (expected,) = draw(y, proba).lines_
    for device in ("CPU_DEVICE", "device1"):
        with counted_copies():
            (line,) = draw(on_device(y, device), on_device(proba, device)).lines_
        np.testing.assert_allclose(line.get_xydata(), expected.get_xydata())
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("name", MEASURES)
def test_arrays_of_cupy_are_measured(name):
    y, proba, _ = _data()
    with as_in_cupy():
        found = MEASURES[name](on_device(y), on_device(proba))
    np.testing.assert_allclose(found, MEASURES[name](y, proba), rtol=1e-6)


METHODS = [
    skcalib.TemperatureScaling(input="logit"),
    skcalib.TemperatureScaling(input="logit", loss="brier"),
    skcalib.ClasswiseTemperatureScaling(input="logit"),
    skcalib.EnsembleTemperatureScaling(input="logit"),
    skcalib.VectorScaling(input="logit"),
    skcalib.MatrixScaling(input="logit"),
    skcalib.DirichletCalibration(input="logit"),
    skcalib.PlattScaling(input="logit"),  # fitted by NumPy
]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize("dispatches", [True, False])
def test_arrays_of_cupy_are_fitted_and_predicted(method, dispatches, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    y, _, logits = _data(300)
    weight = np.arange(300) % 3 + 1.0
    expected = clone(method).fit(logits, y, weight)
    with ExitStack() as stack:
        try:
            stack.enter_context(config_context(array_api_dispatch=dispatches))
        except ImportError as error:
            pytest.skip(str(error))
        stack.enter_context(as_in_cupy())
        X, labels = on_device(logits), on_device(y)
        fitted = clone(method).fit(X, labels, on_device(weight))
        found, predicted = fitted.predict_proba(X), fitted.predict(X)
    if dispatches:
        found = off_device(found)
    np.testing.assert_allclose(found, expected.predict_proba(logits), atol=1e-8)
    np.testing.assert_array_equal(predicted, expected.predict(logits))


def test_what_a_namespace_lacks_is_named_with_the_cure(monkeypatch):
    xp = pytest.importorskip("array_api_strict")
    y, proba, _ = _data()
    monkeypatch.delattr(xp, "take")
    monkeypatch.delattr(xp, "clip")
    words = "array_api_strict lacks clip, take of .* update the library, or copy"
    with counted_copies(), pytest.raises(TypeError, match=words):
        calibration_error(y, on_device(proba))


LIBRARY_MEASURES = [
    "top label",
    "classes",
    "equal width",
    "weights",
    "neighbors of classes",
    "ranks",
    "parts of ranks",
    "multinomial",
    "decomposition of classes",
    "monitor",
]


@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_other_libraries(library, monkeypatch):
    """As if their arrays were on another device than the processor."""
    xp = pytest.importorskip(library)
    monkeypatch.setattr(tensors, "_PROCESSOR", None)
    y, proba, logits = _data(dtype="float32")
    for name in LIBRARY_MEASURES:
        found = MEASURES[name](xp.asarray(y), xp.asarray(proba))
        assert found == pytest.approx(MEASURES[name](y, proba), rel=1e-6)
    half = xp.asarray(proba, dtype=xp.float16)
    plain = np.asarray(half).astype("float16")
    assert calibration_error(y, half) == pytest.approx(calibration_error(y, plain))
    for multiclass in ("auto", "marginal"):
        options = {"multiclass": multiclass, "input": "logit", "ignore_label": 3}
        options["labels"] = np.arange(5)
        expected = BinStatistics.from_predictions(y, logits, EDGES, **options)
        found = BinStatistics.from_predictions(
            xp.asarray(y), xp.asarray(logits), EDGES, **options
        )
        if multiclass == "marginal":
            expected, found = expected[2], found[2]
        for sums in SUMS:
            np.testing.assert_allclose(
                getattr(found, sums), getattr(expected, sums), rtol=1e-5
            )
