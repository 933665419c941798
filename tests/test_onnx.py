"""ONNX: what `test_formats` does not compare for every recalibrator."""

import json

import numpy as np
import pytest
from _catalog import refused
from scipy.special import softmax

import skcalib
from skcalib.export import to_onnx

onnx = pytest.importorskip("onnx", reason="needs onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")


def run(model, scores):
    """Return what onnxruntime makes of scores (n, C)."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (calibrated,) = session.run(["calibrated"], {"scores": scores})
    assert calibrated.dtype == scores.dtype
    return calibrated


def agrees(fitted, scores, **options):
    """Check both types of a graph against `predict_proba` on scores (n, C)."""
    double = run(to_onnx(fitted, dtype="float64", **options), scores)
    np.testing.assert_allclose(double, fitted.predict_proba(scores), rtol=0, atol=1e-12)
    single = scores.astype(np.float32)
    expected = fitted.predict_proba(single)
    np.testing.assert_allclose(
        run(to_onnx(fitted, **options), single), expected, rtol=0, atol=1e-6
    )


def two_class_rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    scores = np.concatenate(
        (rng.beta(0.5, 0.8, n), np.round(rng.random(60), 1), [0, 0, 1, 1])
    )
    return scores, rng.random(len(scores)) < scores**1.5


def many_class_rows(n=200, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes)) * 2
    y = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits, y


@pytest.mark.parametrize("target_opset", [13, 18, 21])
def test_opsets(target_opset):
    logits, y = many_class_rows()
    for recalibrator in (
        skcalib.HistogramBinning(3, multiclass="top_label"),
        skcalib.ClasswiseTemperatureScaling(),
    ):
        fitted = recalibrator.fit(softmax(logits, axis=1), y)
        assert (
            to_onnx(fitted, target_opset=target_opset).opset_import[0].version
            == target_opset
        )
        agrees(fitted, softmax(logits, axis=1), target_opset=target_opset)


def test_groups_by_predicted_class():
    logits, y = many_class_rows()
    for columns in (softmax(logits, axis=1), logits):
        inner = skcalib.PlattScaling(
            input="probability" if columns is not logits else "logit"
        )
        agrees(
            skcalib.GroupwiseRecalibrator(inner, min_group_size=20, shrinkage=9).fit(
                columns, y
            ),
            columns,
        )
    scores, y = two_class_rows()
    agrees(
        skcalib.GroupwiseRecalibrator(min_group_size=20).fit(scores, y), scores[:, None]
    )


def test_rows_that_are_no_scores_give_nan():
    fitted = skcalib.PlattScaling().fit(*two_class_rows())
    wrong = np.array([[np.nan], [-0.1], [1.1], [np.inf], [-np.inf]])
    assert np.isnan(run(to_onnx(fitted, dtype="float64"), wrong)).all()
    rounded = np.float32([[1 + 2e-7], [-1e-7]])
    np.testing.assert_allclose(
        run(to_onnx(fitted), rounded), fitted.predict_proba(rounded), rtol=0, atol=1e-6
    )
    logits, y = many_class_rows()
    many = skcalib.TemperatureScaling().fit(softmax(logits, axis=1), y)
    assert np.isnan(
        run(
            to_onnx(many, dtype="float64"),
            np.array([[0.5, 0.5, 0.5], [0.5, np.nan, 0.5]]),
        )
    ).all()
    with_logits = skcalib.TemperatureScaling(input="logit").fit(logits, y)
    assert np.isnan(
        run(
            to_onnx(with_logits, dtype="float64"),
            np.array([[np.nan, 0, 0], [1e101, 0, 0]]),
        )
    ).all()


def test_rows_are_normalised_as_predict_proba_does():
    logits, y = many_class_rows()
    scores = softmax(logits, axis=1)
    fitted = skcalib.HistogramBinning(5).fit(scores, y)
    agrees(fitted, scores * (1 + 1e-8))


def test_what_the_model_tells():
    scores, y = two_class_rows()
    model = to_onnx(skcalib.PlattScaling().fit(scores, np.where(y, "yes", "no")))
    assert json.loads(model.metadata_props[0].value) == ["no", "yes"]
    assert [one.name for one in model.graph.input] == ["scores"]
    assert [one.name for one in model.graph.output] == ["calibrated"]


def test_wrong_arguments():
    scores, y = two_class_rows()
    fitted = skcalib.PlattScaling().fit(scores, y)
    with refused(ValueError, "dtype", "'float16'"):
        to_onnx(fitted, dtype="float16")
    with refused(ValueError, "target_opset", "13", "3"):
        to_onnx(fitted, target_opset=3)
    with refused(ValueError, "GroupwiseRecalibrator"):
        to_onnx(
            skcalib.GroupwiseRecalibrator(groups=lambda X: np.arange(len(X)) % 2).fit(
                scores, y
            )
        )


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_million_rows(dtype):
    logits, y = many_class_rows(2000, n_classes=5)
    # of double precision, whose tolerance is the rounding, a tenth
    n_rows = 1_000_000 if dtype == "float32" else 100_000
    new = many_class_rows(n_rows, n_classes=5, seed=7)[0].astype(dtype)
    for recalibrator in (
        skcalib.MatrixScaling(),
        skcalib.IsotonicCalibration(),
        skcalib.PlattScaling(),
    ):
        fitted = recalibrator.set_params(input="logit").fit(logits, y)
        tolerance = 1e-12 if dtype == "float64" else 1e-6
        np.testing.assert_allclose(
            run(to_onnx(fitted, dtype=dtype), new),
            fitted.predict_proba(new),
            0,
            tolerance,
        )
