"""Grades and groups: one side, the binomial and Jeffreys p-values, several columns,
rare groups, several models, and group against group.
"""

import numpy as np
import pytest
from _catalog import refused
from scipy.stats import beta, binom

from skcalib.metrics import BinStatistics, calibration_by_group

FAST = {"n_resamples": 9, "random_state": 0}


def _one_grade(k, n, score):
    y = np.arange(n) < k
    return y, np.full(n, score), np.array(["B"] * n)


def test_binomial_and_jeffreys_by_hand():
    """k = 3 of n = 100 at s = .01: .0794 and .0393 for "the PD is too low"."""
    rows = _one_grade(3, 100, 0.01)
    table = calibration_by_group(*rows, alternative="greater", **FAST)
    assert table.binomial_pvalue[0] == pytest.approx(binom.sf(2, 100, 0.01), rel=1e-12)
    assert table.binomial_pvalue[0] == pytest.approx(0.0794, abs=5e-5)
    assert table.jeffreys_pvalue[0] == pytest.approx(beta.cdf(0.01, 3.5, 97.5))
    assert table.jeffreys_pvalue[0] == pytest.approx(0.0393, abs=5e-5)
    # equal scores: the exact p-value of the sum is the binomial one
    assert table.pvalue[0] == pytest.approx(table.binomial_pvalue[0], rel=1e-9)
    less = calibration_by_group(*rows, alternative="less", **FAST)
    assert less.binomial_pvalue[0] == pytest.approx(binom.cdf(3, 100, 0.01), rel=1e-12)
    assert less.jeffreys_pvalue[0] == pytest.approx(1 - table.jeffreys_pvalue[0])
    both = calibration_by_group(*rows, **FAST)
    assert both.binomial_pvalue[0] == pytest.approx(2 * 0.0793732, abs=1e-6)
    assert both.pvalue[0] == pytest.approx(both.binomial_pvalue[0], rel=1e-9)


@pytest.mark.parametrize("k", [0, 1, 7, 199, 200])
def test_both_sides_are_the_exact_tails(k):
    """P(S >= k) and P(S <= k), also where all rows or none have the event."""
    n, score = 200, 0.03 if k < 100 else 0.97
    rows = _one_grade(k, n, score)
    greater = calibration_by_group(*rows, alternative="greater", **FAST)
    less = calibration_by_group(*rows, alternative="less", **FAST)
    assert greater.binomial_pvalue[0] == pytest.approx(binom.sf(k - 1, n, score))
    assert less.binomial_pvalue[0] == pytest.approx(binom.cdf(k, n, score))
    # beyond 199 rows the sum's tails are a saddlepoint approximation
    assert greater.pvalue[0] == pytest.approx(binom.sf(k - 1, n, score), rel=2e-2)
    assert less.pvalue[0] == pytest.approx(binom.cdf(k, n, score), rel=2e-2)


@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_one_limit_excludes_zero_where_the_pvalue_is_small(alternative):
    rng = np.random.default_rng(1)
    seen = set()
    for shift in (-0.1, 0.0, 0.1):
        scores = rng.uniform(0.2, 0.8, 300)
        y = rng.random(300) < scores + shift
        groups = np.arange(300) % 4
        table = calibration_by_group(
            y, scores, groups, alternative=alternative, confidence_level=0.95, **FAST
        )
        if alternative == "greater":
            excludes = table.bias_high < 0
            np.testing.assert_allclose(table.bias_low, table.mean_score - 1)
        else:
            excludes = table.bias_low > 0
            np.testing.assert_allclose(table.bias_high, table.mean_score)
        assert excludes.tolist() == (table.bias_pvalue < 0.05).tolist()
        seen |= set(excludes.tolist())
    assert seen == {True, False}


def test_sides_of_clusters_and_of_bins():
    rng = np.random.default_rng(2)
    scores = rng.uniform(0.2, 0.8, 400)
    y = rng.random(400) < scores + 0.1
    clusters = np.arange(400) // 8
    options = {"groups": np.zeros(400), "alternative": "greater", **FAST}
    alone = calibration_by_group(y, scores, **options)
    together = calibration_by_group(y, scores, clusters=clusters, **options)
    assert alone.pvalue[0] < 0.01
    assert together.pvalue[0] < 0.1
    bins = {"a": BinStatistics.from_predictions(y, scores, np.linspace(0, 1, 21))}
    of_bins = calibration_by_group(bins, alternative="greater", n_resamples=9)
    assert of_bins.pvalue[0] == pytest.approx(alone.pvalue[0], rel=0.1)
    exact = calibration_by_group(y, scores, adjustment="exact", **options)
    assert exact.adjusted_pvalue[0] == pytest.approx(alone.pvalue[0], rel=2e-2)
    with refused(ValueError, "confidence_level", "above 0.5"):
        calibration_by_group(y, scores, confidence_level=0.4, **options)


def test_several_columns_and_the_order_of_a_categorical():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    scores = rng.random(120)
    y = rng.random(120) < scores
    frame = pandas.DataFrame(
        {
            "sex": np.array(["m", "f"])[np.arange(120) % 2],
            "age": pandas.Categorical(
                np.array(["old", "young", "middle"])[np.arange(120) % 3],
                categories=["young", "middle", "old", "never seen"],
                ordered=True,
            ),
        }
    )
    table = calibration_by_group(y, scores, frame["age"], **FAST)
    assert table.group.tolist() == ["young", "middle", "old"]
    crossed = calibration_by_group(y, scores, frame[["sex", "age"]], **FAST)
    assert crossed.group.tolist() == [
        (sex, age) for sex in ("f", "m") for age in ("young", "middle", "old")
    ]
    assert crossed.n.tolist() == [20] * 6
    is_it = (frame["sex"] == "m") & (frame["age"] == "old")
    assert crossed.mean_score[-1] == pytest.approx(scores[is_it].mean())
    frame.loc[0, "sex"] = None
    with_missing = calibration_by_group(y, scores, frame[["sex", "age"]], **FAST)
    assert with_missing.group.tolist()[-1] == ("missing", "old")
    assert with_missing.n.sum() == 120
    as_array = calibration_by_group(
        y, scores, np.column_stack((np.arange(120) % 2, np.arange(120) % 3)), **FAST
    )
    assert as_array.group.tolist() == [(a, b) for a in (0, 1) for b in (0, 1, 2)]


def test_rare_groups_are_one():
    scores = np.linspace(0.1, 0.9, 100)
    y = np.arange(100) % 2 == 0
    groups = np.where(np.arange(100) < 90, "a", "b")
    groups[95:] = "c"
    table = calibration_by_group(y, scores, groups, min_group_size=20, **FAST)
    assert table.group.tolist() == ["a", "other"]
    assert table.n.tolist() == [90, 10]
    same = calibration_by_group(y, scores, groups, min_group_size=5, **FAST)
    assert same.group.tolist() == ["a", "b", "c"]
    groups = np.where(groups == "a", "other", groups)
    with refused(ValueError, "'other'", "min_group_size=20", "rename"):
        calibration_by_group(y, scores, groups, min_group_size=20, **FAST)


def test_a_table_for_each_model():
    pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    scores = rng.random(100)
    y, groups = rng.random(100) < scores, np.arange(100) % 2
    models = {"first": scores, "second": scores**2}
    tables = calibration_by_group(y, models, groups, **FAST)
    for name, proba in models.items():
        alone = calibration_by_group(y, proba, groups, **FAST)
        np.testing.assert_array_equal(tables[name].error_low, alone.error_low)
    frame = tables.to_frame()
    assert frame.columns[:2].tolist() == ["model", "group"]
    assert frame["model"].tolist() == ["first"] * 2 + ["second"] * 2
    assert "second" in tables._repr_html_()
    with refused(ValueError, "at least one model"):
        calibration_by_group(y, {}, groups)


def test_differences_of_groups():
    rng = np.random.default_rng(5)
    scores = rng.uniform(0.2, 0.8, 900)
    groups = np.arange(900) % 3
    y = rng.random(900) < scores + np.array([0.0, 0.0, 0.18])[groups]
    table = calibration_by_group(y, scores, groups, confidence_level=0.95, **FAST)
    pairs = table.differences()
    assert list(zip(pairs.group, pairs.other, strict=True)) == [(0, 1), (0, 2), (1, 2)]
    np.testing.assert_allclose(
        pairs.difference, table.bias[[0, 0, 1]] - table.bias[[1, 2, 2]]
    )
    excludes = (pairs.low > 0) | (pairs.high < 0)
    assert excludes.tolist() == (pairs.pvalue < 0.05).tolist() == [False, True, True]
    assert np.all(pairs.adjusted_pvalue >= pairs.pvalue)
    one_sided = calibration_by_group(y, scores, groups, alternative="less", **FAST)
    with refused(ValueError, "two-sided", "less"):
        one_sided.differences()


@pytest.mark.slow
@pytest.mark.parametrize("low", [0.02, 0.2])
def test_differences_cover_and_hold_their_level(low):
    rng = np.random.default_rng(6)
    covered, rejected, n = 0, 0, 100
    for _ in range(n):
        scores = rng.uniform(low, low + 0.2, 500)
        groups = (np.arange(500) >= 150).astype(int)
        y = rng.random(500) < scores
        pairs = calibration_by_group(
            y, scores, groups, confidence_level=0.9, n_resamples=1
        ).differences()
        covered += pairs.low[0] <= 0 <= pairs.high[0]
        rejected += pairs.pvalue[0] < 0.05
    # three standard errors: .09 and .065; conservative for few events
    assert 0.81 < covered / n < 0.99
    assert rejected / n < 0.115
