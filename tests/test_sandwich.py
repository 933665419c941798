"""The covariance of slope and intercept with importance weights and clusters, against
sums over units written out.
"""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

from skcalib._intervals.sandwich import LogisticRows
from skcalib.evaluation import calibration_summary
from skcalib.metrics import calibration_slope_intercept


def logistic_rows(importance, cluster, seed=0, n=60):
    rng = np.random.default_rng(seed)
    scores = rng.beta(2, 2, n)
    fitted = expit(0.2 + 0.8 * logit(scores))
    return LogisticRows(
        design=np.stack((np.ones(n), logit(scores))),
        labels=(rng.random(n) < scores).astype(float),
        fitted=fitted,
        scores=scores,
        weight=rng.integers(1, 5, n).astype(float),
        importance=importance,
        cluster=cluster,
    )


def plain_variance_and_degrees(rows, coefficient):
    """The variance before it is widened, one unit at a time, and the degrees."""
    units = rows.cluster if rows.cluster is not None else np.arange(len(rows.labels))
    variance = rows.fitted * (1 - rows.fitted)
    x = rows.design.T
    information = sum(
        w * v * np.outer(row, row)
        for w, v, row in zip(rows.weight, variance, x, strict=True)
    )
    names = np.unique(units)
    square = 0.0
    contributions = {"fitted": [], "given": []}
    for name in names:
        inside = units == name
        left = information - sum(
            w * v * np.outer(row, row)
            for w, v, row in zip(
                rows.weight[inside], variance[inside], x[inside], strict=True
            )
        )
        residual = (rows.labels - rows.fitted)[inside]
        score = (rows.weight[inside] * residual) @ x[inside]
        square += (np.linalg.inv(left) @ score)[coefficient] ** 2
        direction = x[inside] @ np.linalg.inv(information)[coefficient]
        power = 2 if rows.importance else 1
        factor = rows.weight[inside] ** power * direction**2
        contributions["fitted"].append(np.sum(factor * variance[inside]))
        given = rows.scores[inside] * (1 - rows.scores[inside])
        contributions["given"].append(np.sum(factor * given))
    degrees = [len(names) - 1]
    for q in contributions.values():
        degrees.append(np.sum(q) ** 2 / np.sum(np.square(q)))
    promised = np.sum(contributions["given"])
    return square * (len(names) - 1) / len(names), min(degrees), promised


@pytest.mark.parametrize("importance", [False, True])
@pytest.mark.parametrize("clustered", [False, True])
def test_equals_the_sum_over_units_left_out(importance, clustered):
    cluster = np.random.default_rng(1).integers(0, 9, 60) if clustered else None
    rows = logistic_rows(importance, cluster)
    found = rows.sandwich()
    for k in (0, 1):
        variance, degrees, promised = plain_variance_and_degrees(rows, k)
        expected = max(variance, promised / 1.5**2)
        assert found.covariance[k, k] == pytest.approx(expected, rel=1e-9)
        assert found.degrees[k] == pytest.approx(degrees)
        # 60 samples in clusters are worth too few events for limits.
        assert ("independent samples, fewer than 20" in found.reasons[k]) == clustered


def test_the_promise_of_the_scores_is_a_floor():
    """Labels that follow the fit too closely: their own variance is too small."""
    rows = logistic_rows(importance=True, cluster=None)
    near = LogisticRows(
        **{**vars(rows), "labels": 0.6 * rows.fitted + 0.4 * rows.labels}
    )
    variance, _, promised = plain_variance_and_degrees(near, 1)
    assert variance < promised / 1.5**2
    assert near.sandwich().covariance[1, 1] == pytest.approx(promised / 1.5**2)
    nearer = LogisticRows(
        **{**vars(rows), "labels": 0.9 * rows.fitted + 0.1 * rows.labels}
    )
    assert "4 times the observed one" in nearer.sandwich().reasons[1]


def test_weights_have_no_unit_and_counts_repeat_rows():
    rng = np.random.default_rng(3)
    scores = rng.beta(2, 2, 200)
    labels = rng.random(200) < scores
    weight = rng.integers(1, 4, 200)
    cluster = np.arange(200) % 12
    importance = {"weight_type": "importance"}
    found = calibration_slope_intercept(
        labels, scores, sample_weight=weight, **importance
    )
    scaled = calibration_slope_intercept(
        labels, scores, sample_weight=weight / 7, **importance
    )
    assert np.allclose(found, scaled, rtol=1e-9, atol=0)
    counted = calibration_slope_intercept(
        labels, scores, sample_weight=weight, clusters=cluster
    )
    repeated = calibration_slope_intercept(
        np.repeat(labels, weight),
        np.repeat(scores, weight),
        clusters=np.repeat(cluster, weight),
    )
    assert np.allclose(counted, repeated, rtol=0, atol=1e-7)


def test_what_few_rows_decide_has_no_limits():
    rng = np.random.default_rng(4)
    scores = rng.random(200)
    labels = rng.random(200) < scores
    weight = np.ones(200)
    weight[:3] = 1000
    options = {"sample_weight": weight, "weight_type": "importance"}
    for result in (
        calibration_slope_intercept(labels, scores, **options),
        calibration_summary(labels, scores, n_resamples=19, random_state=0, **options),
    ):
        assert np.isnan(result.slope.low)
        assert "degrees of freedom, fewer than 4" in result.slope.reason
        assert np.isfinite(result.slope.estimate)
    assert np.isnan(result.joint_pvalue)
    # Six clusters, one of which has nearly all events.
    cluster = np.arange(240) // 40
    labels = (cluster == 0) & (np.arange(240) % 8 > 0)
    labels[100] = True
    found = calibration_slope_intercept(labels, rng.beta(1, 9, 240), clusters=cluster)
    assert np.isnan(found.slope.low)
    assert "independent samples, fewer than 20" in found.slope.reason


def heavy_at_random(rng):
    scores = rng.random(1000)
    weight = np.where(rng.random(1000) < 0.02, 50.0, 1.0)
    return scores, {"sample_weight": weight, "weight_type": "importance"}


def inverse_of_the_score(rng):
    scores = rng.random(1000)
    weight = 1 / np.maximum(scores, 0.01)
    return scores, {"sample_weight": weight, "weight_type": "importance"}


def six_clusters(rng):
    return rng.random(240), {"clusters": np.arange(240) // 40}


@pytest.mark.slow
@pytest.mark.parametrize("world", [heavy_at_random, inverse_of_the_score, six_clusters])
def test_heavy_rows_and_few_clusters_cover(world):
    """400 tables, so +- .015; nearly all are decided."""
    rng = np.random.default_rng(5)
    covered = []
    for _ in range(400):
        scores, options = world(rng)
        if "clusters" in options:
            # A latent variable that rows of a cluster share keeps the marginal risk.
            shared = np.repeat(rng.normal(size=6), 40)
            latent = np.sqrt(0.05) * shared + np.sqrt(0.95) * rng.normal(size=240)
            labels = norm.cdf(latent) < scores
        else:
            labels = rng.random(len(scores)) < scores
        slope = calibration_slope_intercept(labels, scores, **options).slope
        if np.isfinite(slope.low):
            covered.append(slope.low <= 1 <= slope.high)
    assert len(covered) > 360
    assert 0.86 < np.mean(covered) <= 0.99
