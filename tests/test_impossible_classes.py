"""Classes that a row's logits say are impossible: removed, and the rest solved among
the others.
"""

import json
import subprocess
from shutil import which

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.base import clone

import skcalib
from skcalib import GroupwiseRecalibrator, TemperatureScaling
from skcalib.export import from_dict, to_dict, to_javascript, to_onnx, to_sql
from skcalib.maps import Rows, calibration_map

N_ROWS, N_CLASSES = 500, 4
MASKS = (-np.inf, -1e4, float(np.finfo(np.float32).min))
METHODS = [
    skcalib.TemperatureScaling(),
    skcalib.TemperatureScaling(loss="brier"),
    skcalib.TemperatureScaling(clip=0.01),
    skcalib.EnsembleTemperatureScaling(),
    skcalib.ClasswiseTemperatureScaling(),
    skcalib.VectorScaling(),
    skcalib.VectorScaling(center=False, alpha=0),
    skcalib.MatrixScaling(),
    skcalib.DirichletCalibration(),
    skcalib.PlattScaling(),
    skcalib.PlattScaling(multiclass="top_label"),
    skcalib.PlattScaling(normalize=False),
    skcalib.BetaCalibration(),
    skcalib.QuadraticScaling(class_pooling=0.0),
    skcalib.IsotonicCalibration(),
    skcalib.HistogramBinning(3),
    skcalib.HistogramBinning(3, multiclass="top_label"),
    skcalib.UniformMassBinning(4),
    skcalib.StackedRecalibrator(
        [TemperatureScaling(), skcalib.VectorScaling(), skcalib.HistogramBinning(3)],
        cv=2,
    ),
    GroupwiseRecalibrator(TemperatureScaling(input="logit")),
    skcalib.PriorShift([0.1, 0.2, 0.3, 0.4]),
]


@pytest.fixture(scope="module")
def rows():
    """Logits, which of them are impossible, and labels of a known vector scaling."""
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(N_ROWS, N_CLASSES))
    closed = rng.random(logits.shape) < 0.3
    closed[np.arange(N_ROWS), logits.argmax(axis=1)] = False
    true = 0.6 * logits + [0.4, 0, -0.3, 0]
    p = softmax(np.where(closed, -np.inf, true), axis=1)
    y = (p.cumsum(axis=1) < rng.random((N_ROWS, 1))).sum(axis=1)
    return logits, closed, y


def fitted(method, logits, y):
    method = clone(method)
    if not isinstance(method, GroupwiseRecalibrator):
        method.set_params(input="logit")
    return method.fit(logits, y)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_every_mask_means_the_same(rows, method):
    logits, closed, y = rows
    found = []
    for mask in MASKS:
        masked = np.where(closed, mask, logits)
        found.append(fitted(method, masked, y).predict_proba(masked))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert (found[0][closed] == 0).all()
    if getattr(method, "normalize", True):
        np.testing.assert_allclose(found[0].sum(axis=1), 1, atol=1e-12)
    # Of single precision, too, where the largest logit minus the mask overflows.
    single = np.where(closed, MASKS[2], logits).astype(np.float32)
    probabilities = fitted(method, single, y).predict_proba(single)
    np.testing.assert_allclose(probabilities, found[0], atol=0.02)


@pytest.mark.parametrize("n_columns", [2, N_CLASSES])
def test_a_map_that_learns(rows, n_columns):
    logits, closed, y = rows
    logits, closed, y = logits[:, :n_columns], closed[:, :n_columns], y % n_columns
    possible = ~closed[np.arange(N_ROWS), y]
    found = []
    for mask in MASKS:
        masked = np.where(closed, mask, logits)[possible]
        masked[0, 1:] = mask  # one class is possible
        model = skcalib.OnlineRecalibrator(input="logit")
        model.fit(masked[1:], y[possible][1:])
        found.append(model.predict_proba(masked))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert (found[0][closed[possible]] == 0).all()
    assert found[0][0].tolist() == [1] + [0] * (n_columns - 1)
    np.testing.assert_allclose(found[0].sum(axis=1), 1, atol=1e-12)
    masked = masked[1:]
    masked[5, y[possible][6]] = -1e4
    with pytest.raises(
        ValueError, match="class in row 5 that is impossible according to its logit"
    ):
        model.partial_fit(masked, y[possible][1:])


@pytest.mark.parametrize("kind", ["temperature", "vector", "matrix"])
def test_the_rest_is_solved_among_the_others(rows, kind):
    """The likelihood among the possible classes, minimised by another optimiser."""
    logits, closed, y = rows
    centred = np.ma.masked_array(logits, closed)
    centred = (centred - centred.mean(axis=1)[:, None]).filled(0.0)

    def forecast(parameters):
        if kind == "temperature":
            values = parameters[0] * logits
        elif kind == "vector":
            slopes, intercepts = parameters.reshape(2, -1)
            values = slopes * centred + intercepts
        else:
            matrix = parameters.reshape(N_CLASSES, -1)
            values = centred @ matrix[:, :-1].T + matrix[:, -1]
        return log_softmax(np.where(closed, -np.inf, values), axis=1)

    def loss(parameters):
        return -forecast(parameters)[np.arange(N_ROWS), y].mean()

    method, start = {
        "temperature": (TemperatureScaling(clip=None), np.ones(1)),
        "vector": (
            skcalib.VectorScaling(alpha=0, clip=None),
            np.repeat([1.0, 0.0], N_CLASSES),
        ),
        "matrix": (
            skcalib.MatrixScaling(alpha=0, clip=None),
            np.eye(N_CLASSES, N_CLASSES + 1).ravel(),
        ),
    }[kind]
    best = minimize(loss, start, method="BFGS", options={"gtol": 1e-8})
    masked = np.where(closed, -1e4, logits)
    found = fitted(method, masked, y).predict_proba(masked)
    np.testing.assert_allclose(found, np.exp(forecast(best.x)), atol=2e-5)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_masks_at_serving_alone_change_no_odds_among_the_others(rows, method):
    """What the others get is in proportion to a fit without masks, where the method
    treats each class by itself.
    """
    logits, _, y = rows
    model = fitted(method, logits, y)
    masked = logits.copy()
    lowest = logits.argmin(axis=1)
    masked[np.arange(N_ROWS), lowest] = -1e4
    found, before = model.predict_proba(masked), model.predict_proba(logits)
    assert (found[np.arange(N_ROWS), lowest] == 0).all()
    kind = type(method).__name__
    if kind in ("TemperatureScaling", "PriorShift"):
        if getattr(model, "floor_", 0) == 0 and getattr(method, "clip", None) != 0.01:
            before[np.arange(N_ROWS), lowest] = 0
            before /= before.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(found, before, atol=1e-12)
    true = found[np.arange(N_ROWS), y]
    assert np.log(true[y != lowest].clip(1e-9)).mean() > -1.2


def test_the_limit_lies_between_saturated_networks_and_masks(rows):
    logits, _, y = rows
    model = fitted(TemperatureScaling(clip=None), logits, y)
    inside, beyond = [[0.0, -1.0, -2.0, -699.0]], [[0.0, -1.0, -2.0, -701.0]]
    assert model.predict_proba(inside)[0, 3] == 2.0**-52
    assert model.predict_proba(beyond)[0, 3] == 0
    certain = model.predict_proba([[0.0, -1e4, -1e4, -np.inf]])
    assert certain.tolist() == [[1, 0, 0, 0]]


def test_a_label_of_an_impossible_class_is_an_error(rows):
    logits, closed, y = rows
    masked = np.where(closed, -1e4, logits)
    masked[7, y[7]] = masked[7].max() - 701
    with pytest.raises(
        ValueError, match="class in row 7 that is impossible according to its logit"
    ):
        fitted(TemperatureScaling(), masked, y)


def test_margins_are_no_masks():
    """Large features make margins of thousands, and labels of all classes."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(400, 3))
    y = (softmax(logits, axis=1).cumsum(axis=1) < rng.random((400, 1))).sum(axis=1)
    small = fitted(TemperatureScaling(), logits, y)
    large = fitted(TemperatureScaling(), 5000 * logits, y)
    assert large.temperature_ == pytest.approx(5000 * small.temperature_, rel=1e-6)
    found = large.predict_proba(5000 * logits)
    np.testing.assert_allclose(found, small.predict_proba(logits), atol=1e-9)
    for way in (of_onnx, of_javascript, of_sql):
        np.testing.assert_allclose(way(large, 5000 * logits[:9]), found[:9], atol=1e-9)
    back = from_dict(to_dict(large)).predict_proba(5000 * logits)
    np.testing.assert_array_equal(back, found)


@pytest.mark.parametrize(
    "method", [skcalib.PlattScaling(), skcalib.HistogramBinning(3)], ids=repr
)
def test_two_columns_of_logits(method):
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(300, 2))
    y = (rng.random(300) < 0.5).astype(int)
    model = fitted(method, logits, y)
    new = np.array([[0.0, -1e4], [-np.inf, 3.0], [0.0, -699.0], [1.0, 2.0]])
    found = model.predict_proba(new)
    assert found[:2].tolist() == [[1, 0], [0, 1]]
    np.testing.assert_array_equal(
        Rows(new)(calibration_map(model, n_columns=2).output)[:, 0], found[:, 1]
    )
    graph = pytest.importorskip("onnxruntime").InferenceSession(
        to_onnx(model, dtype="float64").SerializeToString()
    )
    of_graph = graph.run(["calibrated"], {"scores": new})[0]
    np.testing.assert_allclose(of_graph, found, atol=1e-12)


# --- outside Python ---


@pytest.fixture(scope="module")
def new(rows):
    logits, closed, _ = rows
    first = [np.where(closed, mask, logits)[:25] for mask in MASKS[:2]]
    certain = np.full((N_CLASSES, N_CLASSES), -1e4)
    np.fill_diagonal(certain, 3.0)
    return np.vstack([*first, logits[:10], certain])


def of_onnx(model, new):
    runtime = pytest.importorskip("onnxruntime")
    graph = to_onnx(model, dtype="float64").SerializeToString()
    return runtime.InferenceSession(graph).run(["calibrated"], {"scores": new})[0]


def of_javascript(model, new):
    if which("node") is None:
        pytest.skip("no node")
    rows = json.dumps(new.tolist())
    program = f"{to_javascript(model)}\nconst rows = {rows};\n"
    program += "console.log(JSON.stringify(rows.map(calibrate)));"
    done = subprocess.run(
        ["node", "-"], input=program, capture_output=True, text=True, check=True
    )
    return np.array(json.loads(done.stdout), dtype=float)


def texts_of_sql(model, n_columns):
    names = [f"z{k}" for k in range(n_columns)]
    return to_sql(model, score=names, dialect="duckdb")


def of_sql(model, new, classes=slice(None)):
    duckdb, arrow = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    names = [f"z{k}" for k in range(new.shape[1])]
    texts = texts_of_sql(model, len(names))[classes]
    connection = duckdb.connect()
    columns = {name: new[:, k] for k, name in enumerate(names)}
    connection.register("t", arrow.table({"n": np.arange(len(new)), **columns}))
    # unlike `sql`, `execute` reads the long texts once
    query = f"SELECT {','.join(texts)} FROM t ORDER BY n"
    found = connection.execute(query).fetchnumpy()
    return np.column_stack([np.ma.filled(part, np.nan) for part in found.values()])


@pytest.mark.parametrize(
    "way",
    # DuckDB takes seconds to plan the long texts of some methods.
    [of_onnx, of_javascript, pytest.param(of_sql, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_outside_python(rows, new, method, way):
    logits, closed, y = rows
    masked = np.where(closed, -1e4, logits)
    model = fitted(method, masked, y)
    if way is of_sql and len(texts_of_sql(model, N_CLASSES)[0]) > 100_000:
        # With three classes a text has a tenth of the length.
        model = fitted(method, masked[y < 3, :3], y[y < 3])
        new = new[:-1, :3]
        new = new[new.max(axis=1) > -1e4]
    if not getattr(method, "normalize", True):
        new = new[:-N_CLASSES]  # not rows with one possible class, which are not 1 then
    wanted = model.predict_proba(new)
    np.testing.assert_allclose(
        Rows(new)(calibration_map(model).output), wanted, atol=1e-12
    )
    if way is of_sql:
        # A text for each class: the first and the last one take half as long as all,
        # which `test_formats` has.
        ends = slice(None, None, new.shape[1] - 1)
        found, wanted = of_sql(model, new, ends), wanted[:, ends]
    else:
        found = way(model, new)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_texts_of_sql_that_would_be_too_long_give_null():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(400, 14))
    y = rng.integers(14, size=400)
    model = skcalib.MatrixScaling(input="logit").fit(logits, y)
    duckdb, arrow = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    texts = to_sql(model, score=[f"z{k}" for k in range(14)], dialect="duckdb")
    new = logits[:3].copy()
    new[1, new[1].argmin()] = -1e4
    connection = duckdb.connect()
    connection.register("t", arrow.table({f"z{k}": new[:, k] for k in range(14)}))
    found = connection.execute(f"SELECT {texts[0]} FROM t").fetchall()
    wanted = model.predict_proba(new)[:, 0]
    assert found[1][0] is None
    assert found[0][0] == pytest.approx(wanted[0], abs=1e-12)
