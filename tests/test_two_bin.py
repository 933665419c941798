"""The averaged two-bin error: values, its law, truthfulness, and what it refuses."""

from pathlib import Path

import numpy as np
import pytest
from _catalog import refused

from benchmarks import truthfulness
from skcalib.binning import UniqueScores
from skcalib.metrics import (
    calibration_error_interval,
    calibration_test,
    get_scorer,
    reliability_curve,
    two_bin_calibration_error,
)


def _twin(y, scores, weight=None):
    """The integral over thresholds, by a loop over the intervals between scores."""
    weight = np.ones(len(y)) if weight is None else weight
    edges = [-1.0, *sorted(set(scores.tolist())), 1.0]
    total = 0.0
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        below = above = 0.0
        for label, score, size in zip(y, scores, weight, strict=True):
            if score <= low:
                below += size * (score - label)
            else:
                above += size * (score - label)
        total += (high - max(low, 0.0)) * (below**2 + above**2)
    return total / weight.sum() ** 2


@pytest.mark.parametrize(
    ("scores", "y", "expected"),
    [
        ([0.2, 0.6, 0.9], [0, 1, 1], 0.0175556),
        ([0.1, 0.4, 0.4, 0.8], [1, 0, 1, 0], 0.069875),
        ([0.3], [0], 0.09),
    ],
)
def test_sanity_values(scores, y, expected):
    found = two_bin_calibration_error(y, scores, labels=[0, 1])
    assert found == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_value_is_that_of_the_loop(tied, weighted):
    rng = np.random.default_rng(0)
    scores = rng.integers(1, 9, 60) / 10 if tied else rng.random(60)
    y = rng.random(60) < scores
    weight = rng.gamma(2.0, size=60) if weighted else None
    found = two_bin_calibration_error(y, scores, sample_weight=weight)
    assert found == pytest.approx(_twin(y, scores, weight), abs=1e-14)
    bins = reliability_curve(y, scores, binning=UniqueScores(), sample_weight=weight)
    assert two_bin_calibration_error(bins) == pytest.approx(found, abs=1e-14)


def test_integer_weights_are_repeated_rows():
    rng = np.random.default_rng(1)
    scores, weight = rng.random(50), rng.integers(0, 4, 50)
    y = rng.random(50) < scores
    again = two_bin_calibration_error(np.repeat(y, weight), np.repeat(scores, weight))
    found = two_bin_calibration_error(y, scores, sample_weight=weight)
    assert found == pytest.approx(again, abs=1e-14)


def test_classes_are_summed_and_never_top_label():
    rng = np.random.default_rng(2)
    proba, y = rng.dirichlet(np.ones(4), 200), rng.integers(0, 4, 200)
    by_class = [two_bin_calibration_error(y == k, proba[:, k]) for k in range(4)]
    found = two_bin_calibration_error(y, proba)
    assert found == pytest.approx(sum(by_class), abs=1e-14)
    assert two_bin_calibration_error(y, proba, multiclass="marginal") == found
    two = proba[:, :2] / proba[:, :2].sum(axis=1, keepdims=True)
    binary = two_bin_calibration_error(y > 1, two)
    assert binary == two_bin_calibration_error(y > 1, two[:, 1])
    both = two_bin_calibration_error(y > 1, two, multiclass="marginal")
    assert both == pytest.approx(2 * binary, abs=1e-12)
    for kind in ("top_label", "pooled"):
        with refused(ValueError, "multiclass", "marginal", repr(kind), "misreported"):
            two_bin_calibration_error(y, proba, multiclass=kind)


def test_expectation_is_that_of_the_population_and_the_brier_score():
    """E ATB = (1 - 1 / n) ATB + Brier / n, exactly: all 4 values of each of 3 rows, of
    scores .3 and .7 with frequencies .5 and .6.
    """
    scores, frequency, share = np.array([0.3, 0.7]), np.array([0.5, 0.6]), 0.5
    kinds = [
        (s, y, p)
        for s, f in zip(scores, frequency, strict=True)
        for y, p in ((1, share * f), (0, share * (1 - f)))
    ]
    expected = 0.0
    for first in kinds:
        for second in kinds:
            for third in kinds:
                rows = (first, second, third)
                probability = np.prod([row[2] for row in rows])
                value = two_bin_calibration_error(
                    [row[1] for row in rows], [row[0] for row in rows], labels=[0, 1]
                )
                expected += probability * value
    excess = share * (scores - frequency)
    sums = np.append(0, np.cumsum(excess))
    population = np.array([0.3, 0.4, 0.3]) @ (sums**2 + (sums[-1] - sums) ** 2)
    brier = np.mean((scores - frequency) ** 2 + frequency * (1 - frequency))
    assert expected == pytest.approx((1 - 1 / 3) * population + brier / 3, abs=1e-15)


def test_interval_and_test_and_scorer():
    rng = np.random.default_rng(3)
    scores = rng.random(500)
    options = {"metric": two_bin_calibration_error, "random_state": 0}
    off = rng.random(500) < scores**1.5
    found = calibration_error_interval(off, scores, **options)
    assert found.estimate == two_bin_calibration_error(off, scores)
    assert 0 < found.low < found.high
    assert calibration_test(off, scores, n_resamples=99, **options).pvalue == 0.01
    right = rng.random(500) < scores
    found = calibration_error_interval(right, scores, **options)
    assert found.low == 0
    proba = rng.dirichlet(np.ones(3), 300)
    y = (rng.random((300, 1)) > np.cumsum(proba, axis=1)).sum(axis=1)
    options["n_resamples"] = 99
    for params in ({}, {"clusters": np.arange(300) // 3}):
        assert calibration_test(y, proba, **params, **options).pvalue > 0.05
    weight = rng.integers(1, 3, 300)
    found = calibration_error_interval(y, proba, sample_weight=weight, **options)
    assert found.low == 0 < found.high
    assert get_scorer("neg_two_bin_calibration_error")


@pytest.mark.slow
def test_the_table_of_the_page_is_that_of_the_command():
    page = _page_table()
    # a new metric need not be measured: its contributor would have to simulate first
    assert set(page) <= set(truthfulness.errors())
    for title in ("expected_calibration_error", "two_bin_calibration_error"):
        function, options = truthfulness.errors()[title]
        means, _ = truthfulness.mean_values(function, options)
        assert means == pytest.approx(page[title][0], rel=1e-3)
    assert page["two_bin_calibration_error"][1] == "no"
    assert page["expected_calibration_error"][1] == "yes"


def test_many_samples_rank_by_calibration_alone():
    """The figures of the page: .00021 and .00002."""
    rng = np.random.default_rng(0)
    raised, base_rate = [], []
    for _ in range(20):
        truth = rng.beta(1, 4, 10_000)
        y = rng.random(10_000) < truth
        raised.append(two_bin_calibration_error(y, np.minimum(truth + 0.015, 1)))
        base_rate.append(two_bin_calibration_error(y, np.full(10_000, 0.2)))
    assert np.mean(raised) == pytest.approx(0.00021, abs=3e-5)
    assert np.mean(base_rate) == pytest.approx(0.00002, abs=1e-5)


def _page_table():
    """Return (means, whether misreporting is rewarded) of each error of the page."""
    text = (Path(__file__).parents[1] / "doc" / "evidence" / "errors.md").read_text(
        "utf-8"
    )
    lines = text.split("| is misreporting rewarded? |\n")[1].splitlines()[1:]
    table = {}
    for line in lines:
        if not line.startswith("|"):
            break
        title, *means, pays = (cell.strip() for cell in line.strip("|").split("|"))
        table[title.strip("`")] = [float(mean) for mean in means], pays
    return table


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [1.0, 1.6])
def test_intervals_cover(exponent):
    """The error of infinitely many samples; of 100 samples at level .9, 81 are three
    standard errors below.
    """
    grid = (np.arange(20_000) + 0.5) / 20_000
    sums = np.cumsum(grid - grid**exponent) / 20_000
    truth = np.mean(sums**2 + (sums[-1] - sums) ** 2)
    covered = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        scores = rng.random(400)
        y = rng.random(400) < scores**exponent
        low, high = calibration_error_interval(
            y,
            scores,
            metric=two_bin_calibration_error,
            n_resamples=99,
            random_state=seed,
        )[1:]
        covered += low <= truth <= high
    assert covered >= 81
