"""Sufficient statistics of bins: plain sums, and merging parts."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from _catalog import refused
from _twins import bin_of

from skcalib._bins import statistics
from skcalib._bins.statistics import BinStatistics
from skcalib._rows import blocks
from skcalib.metrics import reliability_curve

EDGES = np.array([0.0, 0.1, 0.5, 0.6, 0.95, 1.0])
SUMS = [
    "count",
    "weight",
    "weight_squared",
    "weighted_score",
    "weighted_label",
    "weighted_score_squared",
    "weighted_score_label",
]


def _rows(n=400, dtype=np.float64):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 95, n).astype(dtype) / 100  # the last bin stays empty
    return scores, rng.random(n) < scores, rng.random(n) + 0.1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_a_loop(dtype, weighted):
    scores, labels, weights = _rows(dtype=dtype)
    weights = weights if weighted else np.ones(len(scores))
    expected = np.zeros((len(SUMS), len(EDGES) - 1))
    for s, y, w in zip(scores.astype(float).tolist(), labels.tolist(), weights.tolist(), strict=True):
        expected[:, bin_of(s, EDGES)] += [1, w, w * w, w * s, w * y, w * s * s, w * s * y]
    found = BinStatistics.from_scores(scores, labels, EDGES, weights if weighted else None)
    for name, sums in zip(SUMS, expected, strict=True):
        np.testing.assert_allclose(getattr(found, name), sums, atol=1e-10, err_msg=name)
        assert getattr(found, name).dtype == (np.int64 if name == "count" else np.float64)
    filled = expected[1] > 0
    assert filled.tolist() == [True, True, True, True, False]
    np.testing.assert_allclose(found.mean_score[filled], expected[3, filled] / expected[1, filled])
    np.testing.assert_allclose(found.event_frequency[filled], expected[4, filled] / expected[1, filled])
    np.testing.assert_allclose(found.share, expected[1] / expected[1].sum())
    assert found.total_weight == pytest.approx(weights.sum())


@pytest.mark.parametrize("edges", [EDGES, EDGES[[0, -1]], np.array([0.0, 0.0, 0.3, 1.0])], ids=["5", "1", "a point"])
@pytest.mark.parametrize("squares", [False, True])
def test_rows_mostly_in_the_first_bin_are_summed_together(edges, squares, monkeypatch):
    rng = np.random.default_rng(1)
    scores = np.concatenate((np.zeros(50), rng.permutation(np.append(rng.random(400) ** 9, np.full(20, 0.3)))))
    labels = rng.random(len(scores)) < 0.1
    together = BinStatistics.from_scores(scores, labels, edges, squares=squares)
    monkeypatch.setattr(statistics, "_mostly_lowest", lambda scores, edges: False)
    apart = BinStatistics.from_scores(scores, labels, edges, squares=squares)
    for name in SUMS:
        np.testing.assert_allclose(getattr(together, name), getattr(apart, name), rtol=1e-13)


@pytest.mark.parametrize("n_bins", [1, 15])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_rows_may_all_lie_in_the_first_bin(n_bins, dtype):
    # 3000 rows are enough for a look-up table, which then has nothing to look up.
    scores = (np.random.default_rng(4).random(3000) / 16).astype(dtype)
    labels = np.arange(3000) % 4 == 0
    found = BinStatistics.from_scores(scores, labels, np.linspace(0, 1, n_bins + 1))
    assert found.count.tolist() == [3000] + [0] * (n_bins - 1)
    assert found.weighted_label[0] == 750
    assert found.weighted_score[0] == pytest.approx(scores.astype(float).sum())


def test_an_empty_bin_says_its_midpoint_and_knows_nothing():
    curve = BinStatistics.from_scores(np.array([0.3]), np.array([True]), EDGES)
    empty = [0, 2, 3, 4]
    np.testing.assert_allclose(curve.mean_score[empty], [0.05, 0.55, 0.775, 0.975])
    np.testing.assert_allclose(curve.event_frequency[empty], [0.05, 0.55, 0.775, 0.975])
    low, high = curve.interval()
    assert low[empty].tolist() == [0] * 4
    assert high[empty].tolist() == [1] * 4
    assert curve.n_bins == 5


@pytest.mark.parametrize("weighted", [False, True])
def test_merged_parts_are_the_whole(weighted, monkeypatch):
    scores, labels, weights = _rows()
    weights = weights if weighted else None
    whole = BinStatistics.from_scores(scores, labels, EDGES, weights)
    part = lambda rows: BinStatistics.from_scores(  # noqa: E731
        scores[rows], labels[rows], EDGES, None if weights is None else weights[rows]
    )
    merged = part(slice(0, 7)).merge(part(slice(7, 300))).merge(part(slice(300, 400)))
    monkeypatch.setattr(blocks, "_BLOCK_ELEMENTS", 13)
    in_blocks = BinStatistics.from_scores(scores, labels, EDGES, weights)
    for name in SUMS:
        np.testing.assert_allclose(getattr(merged, name), getattr(whole, name), rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(getattr(in_blocks, name), getattr(whole, name), rtol=1e-12, err_msg=name)


def test_other_edges_do_not_merge():
    scores, labels, _ = _rows(20)
    with refused(ValueError, "equal edges", "FixedEdges"):
        BinStatistics.from_scores(scores, labels, EDGES).merge(
            BinStatistics.from_scores(scores, labels, EDGES[[0, 2, 5]])
        )


def test_statistics_are_frozen_and_pickle():
    curve = BinStatistics.from_scores(*_rows(20)[:2], EDGES)
    with pytest.raises(FrozenInstanceError):
        curve.weight = None
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(curve)).weight, curve.weight)


def test_curve_of_each_class():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(3), 200), rng.integers(3, size=200)
    curves = reliability_curve(np.array(["a", "b", "c"])[y], proba, multiclass="marginal", binning=5)
    for k, curve in enumerate(curves):
        alone = reliability_curve(y == k, proba[:, k], binning=5)
        np.testing.assert_array_equal(curve.edges, alone.edges)
        np.testing.assert_array_equal(curve.weighted_label, alone.weighted_label)
    pooled = reliability_curve(y, proba, binning=5)
    assert pooled.weighted_label.sum() == (proba.argmax(axis=1) == y).sum()


def test_weights_count_as_rows_in_the_interval():
    scores, labels, _ = _rows(50)
    weights = 1 + np.arange(50) % 3
    found = BinStatistics.from_scores(scores, labels, EDGES, weights.astype(float)).interval(0.8)
    rows = BinStatistics.from_scores(np.repeat(scores, weights), np.repeat(labels, weights), EDGES).interval(0.8)
    np.testing.assert_allclose(found, rows)
