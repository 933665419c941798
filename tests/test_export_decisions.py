"""A certified threshold around a frozen recalibrator: SQL, ONNX and JavaScript give
what `predict` gives.
"""

import json
import shutil
import subprocess
from importlib.util import find_spec

import numpy as np
import pytest
from _catalog import refused
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skcalib import (
    GroupwiseRecalibrator,
    HistogramBinning,
    PlattScaling,
    TemperatureScaling,
)
from skcalib.decisions import CertifiedThresholdClassifier
from skcalib.export import to_javascript, to_onnx, to_sql

ANSWERS = ["error_when_answered", "answered_and_wrong"]
EVENTS = ["precision", "recall", "false_positive_rate"]


def binary(promise, recalibrator, labels=("no", "yes"), target=0.2, **options):
    """Return a fitted classifier, and scores at, next to and away from its threshold,
    and no scores.
    """
    rng = np.random.default_rng(0)
    scores = rng.random(4000).round(3)
    y = np.array(labels)[(rng.random(4000) < scores).astype(int)]
    recalibrator.fit(scores[:2000], y[:2000])
    target = 1 - target if promise in ("precision", "recall") else target
    model = CertifiedThresholdClassifier(
        FrozenEstimator(recalibrator), promise=promise, target=target, **options
    )
    model.fit(scores[2000:, None], y[2000:])
    proba = recalibrator.predict_proba(scores)
    deciding = proba[:, 1] if promise in EVENTS else proba.max(axis=1)
    # a probability that is some row's own, as an order statistic is
    if recalibrator.__class__ is PlattScaling:
        threshold = deciding[np.argmin(np.abs(deciding - model.threshold_))]
        object.__setattr__(model.certificate_, "threshold", threshold)
        model.threshold_ = threshold
    on_it = np.flatnonzero(deciding == model.threshold_)
    assert len(on_it) or recalibrator.__class__ is not PlattScaling
    rows = np.unique(np.concatenate((scores[on_it], scores[:300], [0, 0.5, 1])))
    decided = model.predict(rows[:, None])
    assert len(set(decided.tolist())) == (3 if promise in ANSWERS else 2)
    return model, rows, decided


def many_classes(labels, target=0.1):
    rng = np.random.default_rng(1)
    logits = 4 * rng.normal(size=(3000, 4))
    logits[::3, 3] = -np.inf
    y = np.array(labels)[(logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)]
    recalibrator = TemperatureScaling(input="logit").fit(logits[:1500], y[:1500])
    model = CertifiedThresholdClassifier(
        FrozenEstimator(recalibrator), target=target
    ).fit(logits[1500:], y[1500:])
    confidence = recalibrator.predict_proba(logits).max(axis=1)
    model.threshold_ = confidence[np.argmin(np.abs(confidence - model.threshold_))]
    object.__setattr__(model.certificate_, "threshold", model.threshold_)
    assert (confidence == model.threshold_).any()
    return model, logits, model.predict(logits)


def in_duckdb(model, rows, **options):
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb")
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE t ({', '.join(f'p{k} DOUBLE' for k in range(rows.shape[1]))}, n"
        " INT)"
    )
    connection.executemany(
        f"INSERT INTO t VALUES ({','.join('?' * (rows.shape[1] + 1))})",
        [(*row, n) for n, row in enumerate(rows.tolist())],
    )
    names = "p0" if rows.shape[1] == 1 else [f"p{k}" for k in range(rows.shape[1])]
    text = to_sql(model, score=names, dialect="duckdb", **options)
    return [
        label
        for (label,) in connection.execute(
            f"SELECT {text} FROM t ORDER BY n"
        ).fetchall()
    ]


def in_onnx(model, rows, dtype="float64", **inputs):
    pytest.importorskip("onnx", reason="needs onnx")
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    graph = to_onnx(model, dtype=dtype).SerializeToString()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    assert [output.name for output in session.get_outputs()] == [
        "calibrated",
        "decision",
    ]
    return session.run(None, {"scores": rows.astype(dtype), **inputs})


def in_javascript(model, rows):
    if not shutil.which("node"):
        pytest.skip("needs node")
    given = [[str(v) if np.isinf(v) else v for v in row] for row in rows.tolist()]
    program = (
        f"{to_javascript(model, name='decide')}\nconst rows ="
        f" {json.dumps(given)};\nconsole.log(JSON.stringify(rows.map(r => r.map(v => v"
        " === '-inf' ? -Infinity : v)).map(r =>"
        f" decide({'r[0]' if rows.shape[1] == 1 else 'r'}))));"
    )
    return json.loads(
        subprocess.run(
            ["node", "-"], input=program, capture_output=True, text=True, check=True
        ).stdout
    )


@pytest.mark.slow
@pytest.mark.parametrize("promise", ANSWERS + EVENTS)
@pytest.mark.parametrize(
    "recalibrator", [PlattScaling, HistogramBinning], ids=lambda one: one.__name__
)
def test_two_classes(promise, recalibrator):
    model, rows, decided = binary(promise, recalibrator())
    rows = rows[:, None]
    assert in_duckdb(model, rows) == decided.tolist()
    assert in_javascript(model, rows) == decided.tolist()
    calibrated, found = in_onnx(model, rows)
    assert found.tolist() == decided.tolist()
    np.testing.assert_allclose(
        calibrated, model.predict_proba(rows), rtol=0, atol=1e-12
    )
    # scores of a thousandth are no float32: those that are decide alike
    float32 = rows.astype(np.float32).astype(np.float64)
    assert (
        in_onnx(model, float32, "float32")[1].tolist()
        == model.predict(float32).tolist()
    )


@pytest.mark.slow
@pytest.mark.parametrize("labels", [[0, 1, 2, 3], ["</script>", "a", "b'", "c"]])
def test_many_classes_and_impossible_ones(labels):
    model, logits, decided = many_classes(labels)
    assert in_onnx(model, logits)[1].tolist() == decided.tolist()
    assert in_javascript(model, logits) == decided.tolist()
    assert in_duckdb(model, logits[1::3]) == decided[1::3].tolist()


def test_what_is_no_score():
    model, _, _ = binary("error_when_answered", PlattScaling())
    assert in_duckdb(model, np.array([[np.nan], [1.5], [0.99]])) == [None, None, "yes"]
    assert in_javascript(model, np.array([[1.5], [0.99]])) == [None, "yes"]
    calibrated, decided = in_onnx(model, np.array([[np.nan], [1.5], [0.99]]))
    assert decided.tolist() == ["abstain", "abstain", "yes"]
    assert np.isnan(calibrated[:2]).all()


@pytest.mark.filterwarnings("ignore:The event is:UserWarning")
def test_no_threshold_answers_nothing():
    with pytest.warns(UserWarning, match="No threshold"):
        model, rows, decided = _hopeless()
    assert set(decided) == {"abstain"}
    assert in_duckdb(model, rows) == decided.tolist()
    assert in_onnx(model, rows)[1].tolist() == decided.tolist()
    assert in_javascript(model, rows) == decided.tolist()


def _hopeless():
    rng = np.random.default_rng(0)
    scores = rng.random((60, 1))
    y = np.where(rng.random(60) < 0.5, "yes", "no")
    model = CertifiedThresholdClassifier(
        FrozenEstimator(PlattScaling().fit(scores, y)), target=0.01
    ).fit(scores, y)
    return model, scores, model.predict(scores)


def test_groups():
    rng = np.random.default_rng(0)
    rows = rng.random((3000, 1))
    site = np.where(rng.random(3000) < 0.5, "north", "south")
    y = (rng.random(3000) < rows[:, 0] ** np.where(site == "north", 2, 1)).astype(int)
    table = np.column_stack((rows.astype(object), site))
    groupwise = GroupwiseRecalibrator(PlattScaling(), groups=1).fit(
        table[:1500], y[:1500]
    )
    model = CertifiedThresholdClassifier(FrozenEstimator(groupwise), target=0.15).fit(
        table[1500:], y[1500:]
    )
    decided = model.predict(table)
    assert set(decided.tolist()) == {-1, 0, 1}
    groupwise.groups = "site"  # the name of the column, which an array has not
    groupwise._remember_parameters()
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb")
    pd = pytest.importorskip("pandas", reason="needs pandas")
    frame = pd.DataFrame({"p": rows[:, 0], "site": site, "n": range(3000)})  # noqa: F841
    found = duckdb.sql(
        f"SELECT {to_sql(model, dialect='duckdb')} AS d FROM frame ORDER BY n"
    ).fetchall()
    assert [label for (label,) in found] == decided.tolist()


def test_what_cannot_be_written():
    X, y = np.random.default_rng(0).normal(size=(600, 2)), np.arange(600) % 2
    X[:, 0] += 3 * y
    model = CertifiedThresholdClassifier(LogisticRegression(), random_state=0).fit(X, y)
    with refused(ValueError, "LogisticRegression"):
        to_sql(model)
    mixed, _, _ = binary("error_when_answered", PlattScaling(), abstain_label=-1)
    for write in (to_sql, to_javascript, *([to_onnx] if find_spec("onnx") else [])):
        with refused(ValueError, "abstain_label", "same type as the classes"):
            write(mixed)


def test_what_is_no_number_is_no_score_in_javascript():
    if not shutil.which("node"):
        pytest.skip("needs node")
    rng = np.random.default_rng(0)
    logits = rng.normal(size=200)
    for input in ("probability", "logit"):
        scores = expit(logits) if input == "probability" else logits
        text = to_javascript(
            PlattScaling(input=input).fit(scores, rng.random(200) < expit(logits))
        )
        program = (
            f"{text}\nconsole.log(JSON.stringify([null, '0.5', true, [0.5], 0.5,"
            " undefined].map(calibrate)));"
        )
        done = subprocess.run(
            ["node", "-"], input=program, capture_output=True, text=True, check=True
        )
        null, word, boolean, array, number, nothing = json.loads(done.stdout)
        assert (null, word, boolean, array, nothing) == (None,) * 5  # JSON has no NaN
        assert 0 < number < 1
