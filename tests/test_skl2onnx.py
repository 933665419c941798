"""Pipelines with a recalibrator become one graph; converted models are joined to the
graph of a recalibrator.
"""

import runpy
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import skcalib
from skcalib.export import register_skl2onnx_converters

skl2onnx = pytest.importorskip("skl2onnx", reason="needs skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
EXAMPLE = Path(__file__).parents[1] / "doc" / "examples" / "deploy_onnx.py"


def run(model, **inputs):
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    ).run(None, inputs)


def rows(n_classes, dtype, n=400):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)).astype(dtype)
    y = (X[:, :n_classes] * 2 + rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    return X, np.array(["ash", "birch", "cedar"])[y]


@pytest.mark.parametrize(
    "recalibrator",
    [
        skcalib.PlattScaling(),
        skcalib.TemperatureScaling(),
        skcalib.IsotonicCalibration(multiclass="top_label"),
    ],
    ids=str,
)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_pipeline_in_one_call(recalibrator, n_classes, dtype):
    register_skl2onnx_converters()
    X, y = rows(n_classes, dtype)
    pipeline = make_pipeline(
        StandardScaler(),
        skcalib.CrossFittedClassifier(LogisticRegression()),
        recalibrator,
    )
    pipeline.fit(X, y)
    model = skl2onnx.to_onnx(pipeline, X[:1], options={"zipmap": False})
    labels, probabilities = run(model, X=X)
    expected = pipeline.predict_proba(X)
    # where a score lies on a step, rounding decides
    assert np.mean(np.abs(probabilities - expected) < 1e-5) > 0.99
    assert np.mean(labels == pipeline.predict(X)) > 0.99


@pytest.mark.parametrize("labels", [[0, 1], [3, 7], [False, True]])
def test_a_recalibrator_by_itself(labels):
    register_skl2onnx_converters()
    rng = np.random.default_rng(0)
    scores = rng.random((200, 1))
    y = np.array(labels)[(rng.random(200) < scores[:, 0]).astype(int)]
    for recalibrator in (skcalib.PlattScaling(), skcalib.TemperatureScaling()):
        fitted = recalibrator.fit(scores, y)
        found, probabilities = run(
            skl2onnx.to_onnx(fitted, scores[:1], options={"zipmap": False}), X=scores
        )
        np.testing.assert_allclose(
            probabilities, fitted.predict_proba(scores), rtol=0, atol=1e-12
        )
        np.testing.assert_array_equal(
            found.astype(int), fitted.predict(scores).astype(int)
        )


def test_what_is_not_converted():
    register_skl2onnx_converters()
    X, y = rows(2, np.float64)
    pipeline = make_pipeline(
        skcalib.CrossFittedClassifier(GaussianNB(), passthrough=1),
        skcalib.GroupwiseRecalibrator(groups=-1),
    )
    with pytest.raises(ValueError, match="without passthrough columns"):
        skl2onnx.to_onnx(pipeline.fit(np.round(X), y), X[:1])


def test_joined_to_a_converted_model():
    names = runpy.run_path(str(EXAMPLE))
    assert names["largest_difference"] < 1e-6
