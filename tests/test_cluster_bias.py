"""The test of a bias of dependent rows: against a plain twin, in the table of groups,
and by simulation.
"""

import numpy as np
import pytest
from _catalog import refused
from scipy.stats import norm, t

from skcalib._inference.bias import rows_bias_test
from skcalib._inference.shift_test import bias_test
from skcalib.metrics import calibration_by_group


def cluster_bias_test(scores, labels, cluster, level):
    test, reason = rows_bias_test(scores, labels, level, cluster=cluster)
    assert reason == ""
    return test


def test_the_design_effect_by_hand():
    """Twelve clusters of ten: sums over clusters, jackknifed by 12 / 11, and as many
    degrees of freedom as clusters of equal size.
    """
    y, scores, cluster, _ = _dependent(0, n_clusters=12)
    residual = y - scores
    within = [np.sum(residual[cluster == k] - residual.mean()) for k in range(12)]
    effect = np.sum(np.square(within)) * (12 / 11) ** 2
    effect /= np.sum((residual - residual.mean()) ** 2)
    effect *= (t.ppf(0.95, 12) / norm.ppf(0.95)) ** 2
    expected = bias_test(
        scores, y.sum() / effect, 0.9, np.full(120, 1 / effect), residual.var()
    )
    assert cluster_bias_test(scores, y, cluster, 0.9) == pytest.approx(expected)


def test_corner_cases():
    few, reason = rows_bias_test(
        np.array([0.1, 0.3]), np.array([0, 1]), 0.9, cluster=np.array([0, 1])
    )
    assert (few.pvalue, few.bias_pvalue) == (1, 1)
    assert np.isnan([few.low, few.high]).all()
    assert "number of clusters is 2; at least 3 are needed" in reason
    none, reason = rows_bias_test(
        np.full(40, 0.1), np.zeros(40), 0.9, cluster=np.arange(40) % 10
    )
    assert np.isnan([none.low, none.high]).all()
    assert "same label" in reason
    alone = cluster_bias_test(
        np.full(4000, 0.5), np.arange(4000) % 2, np.arange(4000), 0.9
    )
    rows = bias_test(np.full(4000, 0.5), 2000, 0.9)
    assert alone == pytest.approx(rows, abs=1e-3)


def _dependent(seed, n_clusters=30, size=10, bias=0.0):
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n_clusters), size)
    scores = rng.beta(1, 2, len(cluster))
    level = np.sqrt(0.3) * rng.normal(size=n_clusters)[cluster] + np.sqrt(
        0.7
    ) * rng.normal(size=len(cluster))
    truth = scores * (1 - bias)
    return norm.cdf(level) < truth, scores, cluster, np.mean(scores - truth)


def test_intervals_cover_and_agree_with_the_pvalue():
    covered = []
    for seed in range(60):
        y, scores, cluster, truth = _dependent(seed, bias=0.2)
        found = cluster_bias_test(scores, y, cluster, 0.9)
        covered.append(found.low <= truth <= found.high)
        assert (found.bias_pvalue < 0.1) == (not found.low <= 0 <= found.high)
    assert 0.8 < np.mean(covered) < 0.97


def test_groups_with_clusters():
    y, scores, cluster, _ = _dependent(0, n_clusters=40)
    groups = np.where(cluster % 2, "a", "b")
    options = {"n_resamples": 19, "random_state": 0}
    table = calibration_by_group(y, scores, groups, clusters=cluster, **options)
    plain = calibration_by_group(y, scores, groups, **options)
    np.testing.assert_allclose(table.bias, plain.bias, rtol=1e-12)
    for k, group in enumerate(("a", "b")):
        rows = groups == group
        expected = cluster_bias_test(scores[rows], y[rows], cluster[rows], 0.9)
        assert (
            table.pvalue[k],
            table.bias_low[k],
            table.bias_high[k],
        ) == pytest.approx(expected[:3])
    assert np.all(table.bias_high - table.bias_low > plain.bias_high - plain.bias_low)
    weighted = calibration_by_group(
        y,
        scores,
        groups,
        clusters=cluster,
        sample_weight=np.full(len(y), 2.0),
        **options,
    )
    np.testing.assert_allclose(weighted.bias_high, table.bias_high, atol=1e-3)
    with refused(ValueError, "clusters", "400"):
        calibration_by_group(y, scores, groups, clusters=cluster[:5])
    with refused(ValueError, "clusters", "needs the score and the label of each row"):
        calibration_by_group({"a": None}, clusters=cluster)
