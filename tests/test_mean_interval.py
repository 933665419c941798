"""The mean of one number per sample: plain twins of its interval, and its coverage."""

import numpy as np
import pytest
from _catalog import refused
from scipy.stats import chi2
from scipy.stats import t as student

from skcalib.evaluation import adjust_pvalues, compare, mean_interval


def test_student_s_interval_of_clusters_of_one_size():
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(20), 5)
    values = rng.normal(2, 1, 100) + rng.normal(0, 1, 20)[cluster]
    found = mean_interval(values, clusters=cluster, confidence_level=0.95)
    sums = (values - values.mean()).reshape(20, 5).sum(axis=1)
    # CR3 divides each sum by 1 - 1/20; clusters of one size have 20 degrees.
    error = np.sqrt(np.sum((sums / (1 - 1 / 20)) ** 2)) / 100
    half = student.ppf(0.975, 20) * error
    assert tuple(found) == pytest.approx(
        (values.mean(), values.mean() - half, values.mean() + half)
    )
    assert found.reason == ""


def test_a_share_without_an_event_has_garwood_s_upper_limit():
    found = mean_interval(np.zeros(50), largest=1)
    assert (found.estimate, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(chi2.ppf(0.95, 2) / 2 / 50)
    assert mean_interval(np.ones(50), largest=1).high <= 1


def test_it_is_the_interval_of_compare():
    rng = np.random.default_rng(1)
    scores = rng.random(300)
    y = rng.random(300) < scores
    weight = rng.lognormal(size=300)
    options = {
        "sample_weight": weight,
        "weight_type": "importance",
        "clusters": np.arange(300) // 3,
    }
    table = compare(y, {"p": scores}, metrics="log_loss", **options)
    loss = -np.log(np.where(y, scores, 1 - scores))
    found = mean_interval(loss, **options)
    assert tuple(found) == pytest.approx(
        (table.estimate[0], table.low[0], table.high[0])
    )
    assert str(table).startswith("The log_loss of 'p' is ")


def test_weights_count_rows_or_have_any_scale():
    rng = np.random.default_rng(2)
    values = rng.normal(size=60)
    weight = rng.integers(0, 4, 60)
    counted = mean_interval(values, sample_weight=weight)
    assert tuple(counted) == pytest.approx(
        tuple(mean_interval(np.repeat(values, weight)))
    )
    options = {"weight_type": "importance"}
    first = mean_interval(values, sample_weight=weight, **options)
    second = mean_interval(values, sample_weight=1000 * weight, **options)
    assert tuple(first) == pytest.approx(tuple(second))
    with pytest.warns(UserWarning, match="not integers"):
        mean_interval(values, sample_weight=weight + 0.5)


def test_too_few_equal_clusters_give_a_reason_and_not_limits():
    sizes = np.array([600] + [40] * 11)
    cluster = np.repeat(np.arange(12), sizes)
    found = mean_interval(np.random.default_rng(0).normal(size=1040), clusters=cluster)
    assert np.isnan(found.low)
    assert "number of clusters is 2.9" in found.reason


@pytest.mark.slow
@pytest.mark.parametrize("largest_cluster", [40, 300])
def test_the_interval_holds_the_mean_of_unequal_clusters(largest_cluster):
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(12), [largest_cluster] + [40] * 11)
    missed = 0
    for _ in range(600):
        values = rng.normal(0, 0.3, 12)[cluster] + rng.normal(size=len(cluster))
        found = mean_interval(values, clusters=cluster)
        missed += not found.low <= 0 <= found.high
    # 10 % and three standard errors of 600 draws
    assert missed / 600 <= 0.1 + 3 * np.sqrt(0.09 / 600)


def test_holm_s_method():
    """Twins by the rule of the closed test: a p-value is the largest, over the sets
    that hold its hypothesis, of the set's size times its smallest p-value.
    """
    rng = np.random.default_rng(0)
    pvalues = rng.random(5) ** 2
    expected = []
    for k in range(5):
        worst = 0.0
        for members in range(32):
            chosen = [j for j in range(5) if members >> j & 1]
            if k in chosen:
                worst = max(worst, min(1, len(chosen) * pvalues[chosen].min()))
        expected.append(worst)
    np.testing.assert_allclose(adjust_pvalues(pvalues), expected)
    known = adjust_pvalues([0.01, np.nan, 0.02])
    assert known.tolist()[::2] == [0.02, 0.02]
    assert np.isnan(known[1])
    assert len(adjust_pvalues([])) == 0
    with refused(ValueError, "pvalues"):
        adjust_pvalues([0.5, 1.5])


def test_refusals():
    with refused(ValueError, "values", "row 1"):
        mean_interval([0.0, np.nan])
    with refused(ValueError, "values", "largest=1"):
        mean_interval([0.0, 2.0], largest=1)
    with refused(ValueError, "values", "shape"):
        mean_interval([[0.0, 2.0]])
    with refused(ValueError, "largest"):
        mean_interval([0.0, 2.0], largest=0)
    with refused(ValueError, "values", "numbers"):
        mean_interval(["a", "b"])
