"""Fits where the logits are: the same as those of NumPy, with at most O(n) numbers
copied off the device, and with the same errors.
"""

import math
import tracemalloc
from contextlib import ExitStack
from fractions import Fraction
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

import skcalib
from skcalib._input.tensors import as_array
from skcalib._solvers import sums
from tests._counting_namespace import counted_copies, off_device, on_device

METHODS = {
    "temperature": lambda **p: skcalib.TemperatureScaling(**p),
    "brier": lambda **p: skcalib.TemperatureScaling(loss="brier", **p),
    "plain": lambda **p: skcalib.TemperatureScaling(clip=None, **p),
    "classwise": lambda **p: skcalib.ClasswiseTemperatureScaling(**p),
    "ensemble": lambda **p: skcalib.EnsembleTemperatureScaling(**p),
    "vector": lambda **p: skcalib.VectorScaling(**p),
    "vector, no ridge": lambda **p: skcalib.VectorScaling(
        alpha=0, center=False, clip=None, **p
    ),
    "matrix": lambda **p: skcalib.MatrixScaling(**p),
    "dirichlet": lambda **p: skcalib.DirichletCalibration(**p),
}
# of probabilities, by the floating type in which a device computes
LIMITS = {"float64": 1e-8, "float32": 2e-5}
SINGLE = ("no_float64", "jax")  # with no other floating type
LIBRARIES = ["device1", "no_float64", "torch", "jax"]


@pytest.fixture(autouse=True)
def dispatch(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    # scikit-learn 1.6 needs the package `array_api_compat`, which later ones carry
    with ExitStack() as stack:
        try:
            stack.enter_context(config_context(array_api_dispatch=True))
        except ImportError as error:
            pytest.skip(str(error))
        yield


def tensor(library, array):
    """Return an array as a tensor of a library, or on a device of the standard's."""
    if array is None:
        return None
    if library == "torch":
        return pytest.importorskip("torch").as_tensor(array)
    if library == "jax":  # float64 becomes float32, unless JAX is told otherwise
        return pytest.importorskip("jax.numpy").asarray(array)
    if library == "no_float64":
        xp = pytest.importorskip("array_api_strict")
        if library not in map(str, _device_names(xp)):
            pytest.skip("a version without this device")
        if array.dtype == np.float64:
            array = array.astype(np.float32)
    return on_device(array, library)


def _device_names(xp):
    return [
        str(device).partition("'")[2].rstrip("')")
        for device in xp.__array_namespace_info__().devices()
    ]


def problem(n_classes, n=400, seed=0, masked=False):
    """Return logits (n, K), labels (n,) and weights (n,), with rows that repeat, rows
    of weight 0 and, if asked for, impossible classes.
    """
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=3, size=(n, n_classes))
    labels = (logits / 1.7 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    if masked:
        rows = np.arange(0, n, 4)
        columns = (labels[rows] + 1) % n_classes
        logits[rows, columns] = np.where(rows % 8, -np.inf, -900.0)
    logits[:20] = logits[0]
    labels[:20] = labels[0]
    weight = rng.integers(0, 4, n).astype(float)
    return logits, labels, weight


# One sample on each device, the others on one.
FITS = [
    ("device1", 4, True, True),
    ("no_float64", 4, True, True),
    ("torch", 4, True, True),
    ("jax", 4, True, True),
    ("jax", 2, False, True),
    ("device1", 4, False, False),
    ("device1", 2, False, True),
    pytest.param("no_float64", 4, False, False, marks=pytest.mark.slow),
    pytest.param("no_float64", 2, False, True, marks=pytest.mark.slow),
    ("torch", 4, False, False),
    ("torch", 2, False, True),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("library", "n_classes", "masked", "weighted"), FITS)
def test_a_fit_is_that_of_numpy(library, method, n_classes, masked, weighted):
    logits, labels, weight = problem(n_classes, masked=masked)
    if not weighted:
        weight = None
    new = METHODS[method](input="logit")
    expected = METHODS[method](input="logit").fit(logits, labels, weight)
    found = new.fit(
        tensor(library, logits), tensor(library, labels), tensor(library, weight)
    )
    limit = LIMITS["float32" if library in SINGLE else "float64"]
    np.testing.assert_allclose(
        found.predict_proba(logits), expected.predict_proba(logits), atol=limit
    )
    assert found.floor_ == expected.floor_
    for name in ("alpha_", "temperature_", "shared_inverse_temperature_"):
        if hasattr(expected, name):
            assert getattr(found, name) == pytest.approx(
                getattr(expected, name), rel=20 * limit
            )
    ours, theirs = found.provenance_, expected.provenance_
    assert ours | {"hash": ""} == theirs | {"hash": ""}
    # labels of NumPy beside a tensor of logits
    again = METHODS[method](input="logit").fit(tensor(library, logits), labels, weight)
    np.testing.assert_array_equal(
        again.predict_proba(logits), found.predict_proba(logits)
    )


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("method", ["vector", "matrix", "dirichlet"])
def test_folds_of_many_classes_are_those_of_numpy(library, method):
    logits, labels, _ = problem(18, n=700)
    expected = METHODS[method](input="logit").fit(logits, labels)
    found = METHODS[method](input="logit").fit(tensor(library, logits), labels)
    assert found.alpha_ == expected.alpha_
    limit = LIMITS["float32" if library in SINGLE else "float64"]
    np.testing.assert_allclose(
        found.predict_proba(logits), expected.predict_proba(logits), atol=limit
    )


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("n_columns", [1, 2, 4])
@pytest.mark.parametrize("method", ["temperature", "ensemble", "dirichlet"])
def test_probabilities_fit_where_they_are(library, n_columns, method):
    logits, labels, _ = problem(max(n_columns, 2))
    scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    if n_columns == 1:
        scores = scores[:, 1]
    expected = METHODS[method]().fit(scores, labels)
    found = METHODS[method]().fit(tensor(library, scores), labels)
    limit = LIMITS["float32" if library in SINGLE else "float64"]
    np.testing.assert_allclose(
        found.predict_proba(scores), expected.predict_proba(scores), atol=limit
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_low_precision_is_read_as_float32(dtype):
    torch = pytest.importorskip("torch")
    logits, labels, _ = problem(5)
    given = torch.as_tensor(logits).to(getattr(torch, dtype))
    expected = skcalib.TemperatureScaling(input="logit").fit(
        given.float().numpy(), labels
    )
    found = skcalib.TemperatureScaling(input="logit").fit(given, labels)
    assert found.temperature_ == pytest.approx(expected.temperature_, rel=1e-5)
    assert found.predict_proba(given).dtype == given.dtype


@pytest.mark.parametrize("library", ["device1", "torch"])
@pytest.mark.parametrize("labels_are_tensors", [False, True])
def test_a_loss_gets_probabilities_and_labels_as_they_were_given(
    library, labels_are_tensors
):
    logits, labels, weight = problem(3)
    weight += 1
    kinds = set()

    def loss(y_true, y_proba, sample_weight):
        kinds.add((type(y_true), type(y_proba)))
        y, p, w = (as_array(values)[0] for values in (y_true, y_proba, sample_weight))
        return float(np.average((1 - p[np.arange(len(y)), y]) ** 2, weights=w))

    expected = skcalib.TemperatureScaling(loss=loss, input="logit")
    expected.fit(logits, labels, weight)
    kinds.clear()
    X = tensor(library, logits)
    y = tensor(library, labels) if labels_are_tensors else labels
    found = skcalib.TemperatureScaling(loss=loss, input="logit").fit(X, y, weight)
    assert kinds == {(type(y), type(X))}
    assert found.temperature_ == pytest.approx(expected.temperature_, rel=1e-6)


def _bad_inputs():
    logits, labels, weight = problem(3)
    nan, large, lone = logits.copy(), logits.copy(), logits.copy()
    nan[7, 1], large[5, 2], lone[3] = np.nan, 1e200, -np.inf
    impossible = logits.copy()
    impossible[9, labels[9]] = -np.inf
    yield from ((bad, labels, None) for bad in (nan, large, lone, impossible))
    yield logits, labels[:-1], None
    yield logits, np.zeros_like(labels), None
    yield logits, labels + np.arange(len(labels)) % 2 * 5, None
    yield logits, labels, -weight
    yield logits, labels, weight * 0
    yield logits, np.linspace(0, 1, len(labels)), None


@pytest.mark.parametrize("case", range(10))
@pytest.mark.parametrize("method", ["temperature", "vector, no ridge"])
def test_what_numpy_refuses_is_refused_with_the_same_words(case, method):
    logits, labels, weight = list(_bad_inputs())[case]
    with pytest.raises(ValueError, match=".") as expected:
        METHODS[method](input="logit").fit(logits, labels, weight)
    new = METHODS[method](input="logit")
    with pytest.raises(ValueError, match=".") as found:
        new.fit(tensor("device1", logits), tensor("device1", labels), weight)
    assert str(found.value) == str(expected.value)
    with pytest.raises(NotFittedError):
        new.predict_proba(logits)


class Network(ClassifierMixin, BaseEstimator):
    """A model of tensors."""

    def __init__(self, n_classes=4):
        self.n_classes = n_classes

    def fit(self, X, y):
        self.classes_ = np.arange(self.n_classes)
        return self

    def decision_function(self, X):
        assert not isinstance(X, np.ndarray)
        return 2 * X

    def predict(self, X):
        return as_array(X)[0].argmax(axis=1)


FREE = 8 * 300**2  # bytes of a Hessian of 18 classes


@pytest.mark.parametrize("n_classes", [2, 4, 18])
@pytest.mark.parametrize("method", METHODS)
def test_a_fit_copies_a_few_numbers_per_row(n_classes, method):
    """Logits, labels and weights lie on the device; parameters are free."""
    n = 3000
    logits, labels, _ = problem(n_classes, n=n)
    X, y = on_device(logits), on_device(labels)
    weight = on_device(np.ones(n))
    with counted_copies() as copies:
        fitted = METHODS[method](input="logit").fit(X, y, weight)
    rows = [size for size in copies if size % n == 0]
    assert rows, "labels are copied"
    assert max(rows) <= 8 * n, (rows, n)
    assert sum(rows) <= 64 * n, (rows, n)
    n_parameters = n_classes * (n_classes + 1)
    parameters = [size for size in copies if size % n]
    assert max(parameters, default=0) <= 8 * n_parameters**2
    with counted_copies() as copies:
        fitted.predict_proba(X)
    assert sum(copies) == 0
    with counted_copies() as copies:
        fitted.predict(X)
    assert sum(copies) <= 8 * n


@pytest.mark.parametrize("method", ["temperature", "vector", "matrix"])
def test_a_network_and_its_recalibrator_stay_on_the_device(method):
    n = 500
    logits, labels, _ = problem(4, n=n)
    X, y = on_device(logits), on_device(labels)
    network = FrozenEstimator(Network().fit(None, None))
    model = skcalib.RecalibratedClassifierCV(network, METHODS[method]())
    with counted_copies() as copies:
        model.fit(X, y)
    copied_by_predict = X.shape[1] * 8 * n  # of the network above, once
    rows = [size for size in copies if size % n == 0]
    rows.remove(copied_by_predict)
    assert max(rows) <= 8 * n
    assert sum(rows) <= 64 * n
    with counted_copies() as copies:
        found = model.predict_proba(X)
    assert sum(copies) == 0
    alone = METHODS[method](input="logit").fit(2 * logits, labels)
    expected = alone.predict_proba(2 * logits)
    np.testing.assert_allclose(off_device(found), expected, atol=1e-8)
    with counted_copies() as copies:
        predicted = model.predict(X)
    assert sum(copies) <= 8 * n
    np.testing.assert_array_equal(predicted, alone.predict(2 * logits))


@pytest.mark.skipif(find_spec("array_api_strict") is None, reason="array-api-strict")
def test_sums_without_double_precision_are_compensated():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 1001)).astype(np.float32)
    values[0, :500] *= 1e6
    weight = rng.uniform(0.5, 2, 1001).astype(np.float32)
    products = values * weight  # rounded to single precision, as on the device
    exact = [float(sum(map(Fraction, map(float, row)))) for row in products]
    found = sums.weighted_sums(
        tensor("no_float64", weight), *(tensor("no_float64", row) for row in values)
    )
    np.testing.assert_allclose(found, exact, rtol=1e-12)
    # which a plain sum in single precision does not reach
    assert not math.isclose(products[0].sum(), exact[0], rel_tol=1e-9)


def _batches(logits, labels, weight=None, size=170):
    for start in range(0, len(logits), size):
        rows = slice(start, start + size)
        batch = (logits[rows], labels[rows])
        yield batch if weight is None else (*batch, weight[rows])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weighted", [False, True])
def test_batches_give_the_fit_of_all_rows(method, weighted):
    logits, labels, weight = problem(4, masked=True)
    weight = weight if weighted else None
    expected = METHODS[method](input="logit").fit(logits, labels, weight)
    found = METHODS[method](input="logit").fit_batches(_batches(logits, labels, weight))
    assert found.provenance_ == expected.provenance_
    np.testing.assert_array_equal(
        found.predict_proba(logits), expected.predict_proba(logits)
    )


def test_batches_of_tensors_and_of_probabilities():
    logits, labels, _ = problem(4)
    on_devices = (
        (on_device(X), on_device(y)) for X, y in _batches(logits, labels, size=90)
    )
    found = skcalib.VectorScaling(input="logit").fit_batches(on_devices)
    expected = skcalib.VectorScaling(input="logit").fit(logits, labels)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    proba = expected.predict_proba(logits)
    found = skcalib.HistogramBinning().fit_batches(_batches(proba, labels))
    expected = skcalib.HistogramBinning().fit(proba, labels)
    np.testing.assert_array_equal(
        found.predict_proba(proba), expected.predict_proba(proba)
    )


@pytest.mark.parametrize(
    ("batches", "words"),
    [
        ([], "batches is empty"),
        ([(np.eye(3), [0, 1, 2]), (np.eye(2), [0, 1])], "2 columns in batch 1"),
        ([(np.eye(3), [0, 1])], r"shape \(2,\) in batch 0"),
        ([(np.eye(3), [0, 1, 2], [1, 1, 1]), (np.eye(3), [0, 1, 2])], "1 of 2 batches"),
    ],
)
def test_batches_that_do_not_match_are_named(batches, words):
    with pytest.raises(ValueError, match=words):
        skcalib.TemperatureScaling(input="logit").fit_batches(batches)


@pytest.mark.slow
def test_a_fit_to_a_file_does_not_read_it_into_memory(tmp_path):
    rng = np.random.default_rng(0)
    n, n_classes = 40_000, 200
    logits = np.memmap(tmp_path / "logits", np.float32, "w+", shape=(n, n_classes))
    logits[:] = rng.standard_normal((n, n_classes), dtype=np.float32) * 2
    labels = logits.argmax(axis=1)
    labels[::5] = rng.integers(0, n_classes, len(labels[::5]))  # needs a floor
    tracemalloc.start()
    scaling = skcalib.TemperatureScaling(input="logit").fit(logits, labels)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < logits.nbytes, peak
    assert scaling.floor_ > 0, "the floored scores are in a file as well"
