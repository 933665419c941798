"""What few events say: laws of sums against their enumeration, and tests and intervals
with few events.
"""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from skcalib._intervals.few_events import (
    effective_events,
    sums_given_number_of_events,
    sums_of_drawn_labels,
    two_sided_pvalue,
)
from skcalib.evaluation import compare
from skcalib.monitoring import calibration_trend

LABELS = [False, True]


# --- Laws of sums ---------------------------------------------------------------------


def assert_same_law(drawn, exact):
    """`exact` maps a sum to its probability; 5 standard errors of the share drawn."""
    assert set(np.round(drawn, 6)) <= set(exact)
    for value, probability in exact.items():
        share = np.mean(np.abs(drawn - value) < 1e-6)
        error = np.sqrt(probability * (1 - probability) / len(drawn))
        assert abs(share - probability) < 5 * error + 1e-12


def add(law, value, probability):
    value = round(float(value), 6)
    law[value] = law.get(value, 0) + probability


@pytest.mark.parametrize("heavy", [1.0, 4000.0])
@pytest.mark.parametrize("counted", [False, True])
def test_sums_given_the_number_of_events_are_those_of_all_sets(heavy, counted):
    """A row of much larger odds takes the other way to draw."""
    odds = np.array([heavy, 0.2, 0.3, 0.1, heavy, 0.5, 0.4])
    values = np.array([1.0, 2, 4, 8, 16, 32, 64])
    copies = np.array([1.0, 2, 1, 1, 3, 1, 1]) if counted else None
    row = np.arange(7)
    if counted:
        row = np.repeat(row, copies.astype(int))
    exact = {}
    for chosen in combinations(range(len(row)), 3):
        rows = row[list(chosen)]
        add(exact, values[rows].sum(), np.prod(odds[rows]))
    total = sum(exact.values())
    exact = {value: weight / total for value, weight in exact.items()}
    # The factor of the odds with which 3 events are expected.
    low, high = -30.0, 30.0
    for _ in range(100):
        shift = (low + high) / 2
        probability = expit(np.log(odds) + shift)
        low, high = (shift, high) if probability[row].sum() < 3 else (low, shift)
    drawn = sums_given_number_of_events(
        probability, values, 3, copies, np.random.default_rng(0)
    )
    assert len(drawn) > 2000
    assert_same_law(drawn, exact)


@pytest.mark.parametrize("certain", [0.0, 0.97])
def test_sums_of_drawn_labels_are_those_of_all_labels(certain):
    """Many uncertain labels are all drawn; of few, those that are not the usual."""
    rng = np.random.default_rng(1)
    probability = (1 - certain) * rng.dirichlet(np.ones(3), 4)
    probability += certain * np.eye(3)[[0, 2, 1, 0]]
    values = 10.0 ** np.arange(4)[:, None] * np.array([1, 2, 5])
    exact = {}
    for labels in product(range(3), repeat=4):
        chosen = np.arange(4), np.array(labels)
        add(exact, values[chosen].sum(), np.prod(probability[chosen]))
    drawn = sums_of_drawn_labels(probability, values, None, np.random.default_rng(0))
    assert len(drawn) == 9999
    assert_same_law(drawn, exact)
    # Copies of a row are rows.
    copies = np.array([2.0, 1, 3, 0])
    counted = sums_of_drawn_labels(
        probability[:, :2] / probability[:, :2].sum(axis=1, keepdims=True),
        values[:, :2],
        copies,
        np.random.default_rng(0),
    )
    share = probability[:, 1] / probability[:, :2].sum(axis=1)
    mean = copies @ (values[:, 0] * (1 - share) + values[:, 1] * share)
    step = values[:, 1] - values[:, 0]
    variance = copies @ (step**2 * share * (1 - share))
    assert abs(counted.mean() - mean) < 5 * np.sqrt(variance / len(counted))
    assert counted.var() == pytest.approx(variance, rel=0.06)


def test_what_labels_are_worth():
    labels = np.array([1, 1, 0, 0, 0, 0])
    assert effective_events(labels) == 2
    assert effective_events(1 - labels) == 2
    assert effective_events(np.zeros(5)) == 0
    weight = np.array([3.0, 1, 1, 1, 1, 1])
    assert effective_events(labels, weight) == 4
    # (3 + 1)^2 / (9 + 1)
    assert effective_events(labels, weight, importance=True) == pytest.approx(1.6)
    # Residuals alike in two clusters: their sums have 3 times the variance of
    # independent rows, times G / (G - 1) = 2.
    cluster = np.repeat([0, 1], 3)
    residual = np.repeat([0.5, -0.5], 3)
    found = effective_events(labels, cluster=cluster, residual=residual)
    assert found == pytest.approx(2 / 6)
    found = effective_events(
        labels, cluster=cluster, residual=residual, dependence_factor=1.2
    )
    assert found == pytest.approx(2 / (1 + 1.2 * 5))
    assert two_sided_pvalue(np.arange(-9.0, 10), 9) == pytest.approx(3 / 20)


# --- The trend ------------------------------------------------------------------------


def test_one_event_is_as_likely_as_its_odds():
    """With one event the p-value is the share of the odds of rows whose time is as far
    from the mean, which is enumerated.
    """
    rng = np.random.default_rng(2)
    time = rng.random(50)
    odds = rng.lognormal(-6, 1, 50)
    event = 7
    labels = np.arange(50) == event
    found = calibration_trend(labels, odds / (1 + odds), time)
    low, high = -30.0, 30.0
    for _ in range(100):
        shift = (low + high) / 2
        p = expit(np.log(odds) + shift)
        low, high = (shift, high) if p.sum() < 1 else (low, shift)
    weighted = p * (1 - p)
    centred = time - weighted @ time / weighted.sum()
    share = odds / odds.sum()
    distance = np.abs(centred - share @ centred)
    expected = share[distance >= distance[event] * (1 - 1e-6)].sum()
    assert found.pvalue == pytest.approx(expected, abs=0.02)
    # From ten events on it is a normal distribution.
    labels = np.zeros(400, bool)
    labels[rng.choice(400, 12, replace=False)] = True
    scores = np.full(400, 0.01)
    time = rng.random(400)
    found = calibration_trend(labels, scores, time)
    centred = time - time.mean()
    z = -centred[labels].sum() / np.sqrt(0.03 * 0.97 * centred @ centred)
    assert found.statistic == pytest.approx(z)
    assert found.pvalue == pytest.approx(2 * norm.sf(abs(z)))


def test_non_events_say_as_much_as_events():
    rng = np.random.default_rng(3)
    scores = rng.uniform(0.005, 0.02, 300)
    labels = rng.random(300) < scores
    time = rng.random(300)
    assert 0 < labels.sum() < 10
    found = calibration_trend(labels, scores, time)
    turned = calibration_trend(~labels, 1 - scores, time)
    assert turned.pvalue == pytest.approx(found.pvalue)
    assert turned.statistic == pytest.approx(-found.statistic)
    # The order of rows does not matter, and equal weights say nothing.
    order = rng.permutation(300)
    other = calibration_trend(labels[order], scores[order], time[order])
    assert other.pvalue == found.pvalue
    weighted = calibration_trend(
        labels, scores, time, sample_weight=np.full(300, 4.0), weight_type="importance"
    )
    assert weighted.pvalue == found.pvalue


@pytest.mark.parametrize("value", [False, True])
def test_one_class_says_nothing_about_a_trend(value):
    labels = np.full(200, value)
    scores = np.linspace(0.0001, 0.002, 200)
    scores = 1 - scores if value else scores
    found = calibration_trend(labels, scores, np.arange(200))
    assert np.isnan(found.pvalue)
    assert np.isnan(found.slope.low)
    assert "one class only" in found.slope.reason
    assert "No trend can be estimated" in str(found)


def test_clusters_and_unequal_weights_need_twenty_events():
    rng = np.random.default_rng(4)
    scores = np.full(600, 0.02)
    labels = np.arange(600) % 50 == 0
    for options in (
        {"clusters": np.arange(600) // 5},
        {"sample_weight": rng.uniform(1, 2, 600), "weight_type": "importance"},
    ):
        found = calibration_trend(labels, scores, rng.random(600), **options)
        assert np.isnan([found.pvalue, found.slope.low]).all()
        assert "independent samples, fewer than 20" in found.slope.reason


# --- Two models -----------------------------------------------------------------------


def compared(labels, first, second, **options):
    models = {"first": first, "second": second}
    return compare(labels, models, labels=LABELS, n_resamples=19, **options)


def test_no_event_says_nothing_about_two_models():
    scores = np.linspace(0.0001, 0.002, 200)
    labels = np.zeros(200, bool)
    for turned in (False, True):
        first, second = (1 - scores, 1 - 2 * scores) if turned else (scores, 2 * scores)
        found = compared(labels ^ turned, first, second, random_state=0)
        of_second = found.model == "second"
        assert np.all(~(found.pvalue[of_second] <= 0.05))
        assert np.isnan(found.difference_low[of_second]).all()
        assert "amounts to 0 independent samples" in found.reason[of_second][0]
        assert "cannot be determined" in str(found)


def test_the_null_variance_of_equal_losses():
    """From 10 to 20 expected events a normal test with the variance sum of -D1 D0."""
    rng = np.random.default_rng(5)
    first = np.full(500, 0.02)
    second = np.where(np.arange(500) % 2 == 0, 0.04, 0.045)
    labels = rng.random(500) < 0.05
    for metric in ("brier_score", "log_loss"):
        found = compared(labels, first, second, metrics=metric)
        if metric == "brier_score":
            with_event = (1 - second) ** 2 - (1 - first) ** 2
            without = second**2 - first**2
        else:
            with_event = np.log(first / second)
            without = np.log((1 - first) / (1 - second))
        variance = np.sum(-with_event * without)
        assert 10 < np.sum(-without / (with_event - without)) < 20
        total = np.sum(np.where(labels, with_event, without))
        expected = 2 * norm.sf(abs(total) / np.sqrt(variance))
        assert found.pvalue[1] == pytest.approx(expected)


def test_few_labels_of_many_classes():
    rng = np.random.default_rng(6)
    first = np.column_stack((np.full(300, 0.992), *rng.uniform(0.002, 0.006, (2, 300))))
    first[:, 0] = 1 - first[:, 1:].sum(axis=1)
    second = first.copy()
    second[:, 1] *= 1.5
    second[:, 0] = 1 - second[:, 1:].sum(axis=1)
    labels = np.zeros(300, int)
    found = compare(
        labels,
        {"first": first, "second": second},
        metrics=["brier_score", "log_loss"],
        labels=[0, 1, 2],
    )
    assert np.all(found.pvalue[[1, 3]] > 0.05)
    assert np.isnan(found.difference_low[[1, 3]]).all()


def _brier(y_true, y_proba, sample_weight=None, labels=None):
    return np.average((y_proba - y_true) ** 2, weights=sample_weight)


@pytest.mark.parametrize("n_events", [0, 1, 19, 20])
def test_a_function_of_the_user_needs_twenty_events(n_events):
    """Without an event its resamples vary as the scores do."""
    labels = np.arange(400) < n_events
    scores = np.random.default_rng(4).uniform(0.001, 0.1, 400)
    found = compared(labels, scores, 2 * scores, metrics=[_brier])
    has_limits = n_events >= 20
    assert np.isfinite(found.low[0]) == has_limits
    assert np.isfinite(found.difference_low[1]) == has_limits
    assert np.isfinite(found.pvalue[1]) == has_limits
    assert ("fewer than 20" in found.reason[1]) == (not has_limits)
    by_row = np.average((2 * scores - labels) ** 2 - (scores - labels) ** 2)
    assert found.difference[1] == pytest.approx(by_row)


def test_a_clear_difference_is_told_without_its_size():
    """Eight events that one model expects and the other does not."""
    rng = np.random.default_rng(7)
    scores = rng.uniform(0.001, 0.003, 400)
    labels = np.arange(400) < 8
    better = np.where(labels, 0.3, scores)
    found = compared(labels, better, scores, metrics="log_loss")
    assert found.pvalue[1] < 0.01
    assert "has a higher log_loss than 'first'" in str(found)
    assert "by how much cannot be determined" in str(found)


# --- Levels ---------------------------------------------------------------------------


def moving(events, spread, n=400):
    """Risks that move with time, and spread, with a sum of about `events`."""

    def draw(rng):
        risk = np.linspace(0.5, 1.5, n) * rng.lognormal(0, spread, n)
        risk = np.minimum(risk * events / risk.sum(), 0.6)
        return risk, rng.random(n) < risk

    return draw


@pytest.mark.slow
@pytest.mark.parametrize("events", [0.2, 3, 12, 25])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_levels_with_few_events(events, spread):
    """80 tables, three standard errors of .024 above .05; of .034 below .9."""
    rng = np.random.default_rng(8)
    draw = moving(events, spread)
    rejected = {"trend": [], "half": [], "brier": []}
    covered = {"trend": [], "brier": [], "log": []}
    for _ in range(80):
        risk, labels = draw(rng)
        time = rng.random(len(risk)) if spread else np.arange(len(risk))
        trend = calibration_trend(labels, risk, time)
        rejected["trend"].append(trend.pvalue <= 0.05)
        half = calibration_trend(labels, risk / 2, rng.random(len(risk)))
        rejected["half"].append(half.pvalue <= 0.05)
        if np.isfinite(trend.slope.low):
            covered["trend"].append(trend.slope.low <= 0 <= trend.slope.high)
        factor = np.where(rng.random(len(risk)) < 0.5, 0.5, 1.5)
        table = compared(
            labels,
            factor * risk,
            (2 - factor) * risk,
            metrics=["brier_score", "log_loss"],
        )
        rejected["brier"].append(table.pvalue[1] <= 0.05)
        if np.isfinite(table.difference_low[1]):
            low, high = table.difference_low[1], table.difference_high[1]
            covered["brier"].append(low <= 0 <= high)
        truth = -np.mean(
            risk * np.log(factor * risk) + (1 - risk) * np.log1p(-factor * risk)
        )
        if np.isfinite(table.low[2]):
            covered["log"].append(table.low[2] <= truth <= table.high[2])
    for name, values in rejected.items():
        assert np.mean(values) <= 0.123, (name, np.mean(values))
    for name, values in covered.items():
        assert len(values) < 20 or np.mean(values) >= 0.8, (name, np.mean(values))
