"""The test of a bias by signs of clusters: against all signs, in the table of groups, and by simulation."""

from itertools import product

import numpy as np
import pytest
from _catalog import refused
from scipy.stats import norm

from skcalib._inference import cluster_bias as module
from skcalib._inference.cluster_bias import cluster_bias_test, sign_pvalue
from skcalib.metrics import calibration_by_group


def _all_signs(sums):
    signs = np.array(list(product((-1, 1), repeat=len(sums))))
    return np.mean(np.abs(signs @ sums) >= abs(sums.sum()) * (1 - 1e-12))


@pytest.mark.parametrize("shift", [0.0, 0.5, 1.0])
def test_pvalue_counts_all_signs(shift, monkeypatch):
    sums = np.random.default_rng(3).normal(size=12) + shift
    assert sign_pvalue(sums) == pytest.approx(_all_signs(sums))
    monkeypatch.setattr(module, "_FEW_CLUSTERS", 0)
    assert sign_pvalue(sums) == pytest.approx(_all_signs(sums), rel=0.1)


def test_corner_cases():
    assert sign_pvalue(np.array([1.0, -1.0])) == sign_pvalue(np.zeros(3)) == 1.0
    assert sign_pvalue(np.ones(4)) == 0.125
    assert sign_pvalue(np.ones(20)) == pytest.approx(2.0**-19)
    few = cluster_bias_test(np.array([0.1, 0.3]), np.array([0, 1]), 0.9)
    assert few == (0.5, -1.0, 1.0, 0.5)


def _dependent(seed, n_clusters=30, size=10, bias=0.0):
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n_clusters), size)
    scores = rng.beta(1, 2, len(cluster))
    level = np.sqrt(0.3) * rng.normal(size=n_clusters)[cluster] + np.sqrt(0.7) * rng.normal(size=len(cluster))
    truth = scores * (1 - bias)
    return norm.cdf(level) < truth, scores, cluster, np.mean(scores - truth)


def test_intervals_cover_and_agree_with_the_pvalue():
    covered = []
    for seed in range(100):
        y, scores, cluster, truth = _dependent(seed, bias=0.2)
        found = cluster_bias_test(scores - y, cluster, 0.9)
        covered.append(found.low <= truth <= found.high)
        assert (found.pvalue < 0.1) == (not found.low <= 0 <= found.high)
    assert 0.8 < np.mean(covered) < 0.97


def test_groups_with_clusters():
    y, scores, cluster, _ = _dependent(0, n_clusters=40)
    groups = np.where(cluster % 2, "a", "b")
    options = {"n_resamples": 19, "random_state": 0}
    table = calibration_by_group(y, scores, groups, clusters=cluster, **options)
    plain = calibration_by_group(y, scores, groups, **options)
    np.testing.assert_array_equal(table.bias, plain.bias)
    for k, group in enumerate(("a", "b")):
        rows = groups == group
        expected = cluster_bias_test((scores - y)[rows], cluster[rows], 0.9)
        assert (table.pvalue[k], table.bias_low[k], table.bias_high[k]) == pytest.approx(expected[:3])
    assert np.all(table.bias_high - table.bias_low > plain.bias_high - plain.bias_low)
    weighted = calibration_by_group(y, scores, groups, clusters=cluster, sample_weight=np.full(len(y), 2.0), **options)
    np.testing.assert_allclose(weighted.pvalue, table.pvalue)
    with refused(ValueError, "clusters", "400"):
        calibration_by_group(y, scores, groups, clusters=cluster[:5])
    with refused(ValueError, "clusters has no meaning"):
        calibration_by_group({"a": None}, clusters=cluster)
