"""Logits in a mapped file: fits, predictions and errors take memory for blocks of rows,
and not for a copy.
"""

import sys
import tracemalloc

import numpy as np
import pytest

from benchmarks import mapped_logits
from skcalib import MatrixScaling, TemperatureScaling, VectorScaling
from skcalib._fitting import ridge_path
from skcalib._solvers import penalised_log_loss
from skcalib.metrics import calibration_error


def few_are_kept(monkeypatch, most=1 << 16):
    """Let the solver and the path of ridges take few logits for too many to keep."""
    monkeypatch.setattr(penalised_log_loss, "MOST_KEPT", most)
    monkeypatch.setattr(ridge_path, "MOST_KEPT", most)
    monkeypatch.setattr(ridge_path, "_SAMPLE", most)


def sample(n, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    logits = (3 * rng.normal(size=(n, n_classes))).astype(np.float32)
    skewed = logits * np.linspace(0.3, 0.7, n_classes) + np.linspace(-1, 1, n_classes)
    return logits, (skewed + rng.gumbel(size=logits.shape)).argmax(axis=1)


@pytest.mark.parametrize(
    ("method", "n"), [(VectorScaling, 6000), (MatrixScaling, 1500)]
)
@pytest.mark.parametrize("alpha", [0, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_not_kept_is_computed_again(method, n, alpha, weighted, monkeypatch):
    logits, y = sample(n, 20)
    weight = np.random.default_rng(1).integers(1, 4, n) if weighted else None
    kept = method(alpha=alpha, input="logit").fit(logits, y, weight)
    few_are_kept(monkeypatch, 1 << 14)
    again = method(alpha=alpha, input="logit").fit(logits, y, weight)
    np.testing.assert_allclose(
        again.predict_proba(logits), kept.predict_proba(logits), rtol=0, atol=1e-7
    )


def test_a_sample_chooses_the_ridge(monkeypatch):
    logits, y = sample(12_000, 20)
    few_are_kept(monkeypatch)
    chosen = VectorScaling(input="logit").fit(logits, y)
    assert chosen.alpha_ < 1  # each class has a slope of its own
    fixed = VectorScaling(alpha=chosen.alpha_, input="logit").fit(logits, y)
    np.testing.assert_allclose(chosen.coef_, fixed.coef_, rtol=0, atol=1e-7)


@pytest.mark.slow
def test_memory_is_that_of_blocks(tmp_path, monkeypatch):
    shape = (60_000, 200)  # 48 MB in the file, 96 as float64
    few_are_kept(monkeypatch, 1 << 20)
    mapped_logits._write(tmp_path, shape)
    labels, logits = (
        np.load(tmp_path / "labels.npy"),
        mapped_logits.mapped(tmp_path, "logits", shape),
    )

    def peak(run):
        tracemalloc.start()
        result = run()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result, most / logits.nbytes

    options = {"input": "logit", "classes": range(shape[1])}
    temperature, share = peak(lambda: TemperatureScaling(**options).fit(logits, labels))
    assert temperature.temperature_ == pytest.approx(2, abs=0.05)
    # a copy is 1, one in double precision 2; a part does not grow with the rows
    assert share < 0.5, share
    vector, share = peak(lambda: VectorScaling(**options).fit(logits, labels))
    assert vector.coef_.mean() == pytest.approx(0.5, abs=0.05)
    # the sample that chooses the ridge, as large as one file in forty of 4 GB
    assert share < 1, share

    out = mapped_logits.mapped(tmp_path, "probabilities", shape, "w+")

    def predict():
        for start in range(0, shape[0], 5000):
            out[start : start + 5000] = temperature.predict_proba(
                logits[start : start + 5000]
            )

    assert peak(predict)[1] < 0.4
    for multiclass in ("top_label", "marginal"):
        error, share = peak(
            lambda kind=multiclass: calibration_error(
                labels, out, multiclass=kind, labels=range(200)
            )
        )
        assert error < 0.03
        assert share < 0.5, (multiclass, share)


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="/proc/self/status is Linux's"
)
def test_the_benchmark_runs(capsys):
    assert (
        mapped_logits.main(
            [
                "--rows",
                "3000",
                "--classes",
                "40",
                "--limit",
                "0.3",
                "--steps",
                "fit vector",
            ]
        )
        == 0
    )
    assert "fit vector" in capsys.readouterr().out
