"""Errors that are alike over time: plain twin, what is subtracted, level, refusals."""

import numpy as np
import pytest
from scipy.stats import norm

from skcalib.binning import EqualMass
from skcalib.monitoring import error_autocorrelation


def _data(n=400, seed=0):
    rng = np.random.default_rng(seed)
    y_proba = rng.beta(2, 3, n)
    return rng.random(n) < y_proba, y_proba, rng.permutation(n)


def _twin(y_true, y_proba, time, columns=()):
    """Loops over samples and groups, straight from the definition."""
    edges = EqualMass(15).bin_edges(y_proba)
    bins = [sum(score > edge for edge in edges[1:-1]) for score in y_proba]
    error = [float(label) - score for label, score in zip(y_true, y_proba, strict=True)]
    for column in (*columns, bins):
        mean_of = {}
        for group in set(column):
            members = [k for k in range(len(error)) if column[k] == group]
            mean_of[group] = sum(error[k] for k in members) / len(members)
        error = [error[k] - mean_of[column[k]] for k in range(len(error))]
    in_time = sorted(range(len(error)), key=lambda k: time[k])
    error = [error[k] for k in in_time]
    square = sum(each**2 for each in error)
    of_lag = []
    squared_products = 0.0
    for lag in range(1, 6):
        products = [error[k] * error[k + lag] for k in range(len(error) - lag)]
        of_lag.append(sum(products) / square)
        squared_products += sum(each**2 for each in products)
    standard_error = squared_products**0.5 / square
    # 1 + 2 x .105 = 1.21 is the square of 1.1.
    pvalue = norm.sf((sum(of_lag) - 0.105) / standard_error)
    return of_lag[0], (1 + 2 * sum(of_lag)) ** 0.5, pvalue


@pytest.mark.parametrize(
    "columns",
    [
        [],
        [np.arange(400) % 3],
        [np.array(list("abcd")).repeat(100), np.arange(400) % 7],
    ],
)
def test_the_numbers_are_those_of_a_plain_twin(columns):
    y_true, y_proba, time = _data()
    expected = _twin(y_true, y_proba, time, [column.tolist() for column in columns])
    found = error_autocorrelation(
        y_true, y_proba, time, groups=dict(enumerate(columns))
    )
    assert found[:3] == pytest.approx(expected, rel=1e-9)
    assert found.reason == ""


def test_groups_of_every_kind_are_the_same():
    pandas = pytest.importorskip("pandas")
    y_true, y_proba, time = _data()
    month = np.arange(400) // 40
    site = np.arange(400) % 3
    options = [
        {"month": month, "site": site},
        np.column_stack([month, site]),
        pandas.DataFrame({"month": month, "site": site}),
    ]
    first, *others = [
        error_autocorrelation(y_true, y_proba, time, groups=groups)
        for groups in options
    ]
    assert others == [first, first]
    # A category without samples changes nothing.
    category = pandas.Categorical(site, categories=[0, 1, 2, 3], ordered=True)
    assert error_autocorrelation(
        y_true, y_proba, time, groups=pandas.Series(category)
    ) == error_autocorrelation(y_true, y_proba, time, groups=site)


def test_the_factor_is_that_of_the_spread_of_means():
    """A label stays with probability .75 and else turns: correlations .5^k, so that
    the variance of a mean is 1 + 2 (.5 + ... + .5^5) = 2.94 times as large; by samples
    of 400 means, without the lags above 5.
    """
    rng = np.random.default_rng(0)
    turns = rng.random((400, 2000)) < 0.25
    turns[:, 0] = rng.random(400) < 0.5
    labels = np.cumsum(turns, axis=1) % 2
    inflation = labels.mean(axis=1).var() / (0.25 / 2000)
    assert np.sqrt(inflation) == pytest.approx(np.sqrt(2.94), rel=0.12)
    found = error_autocorrelation(labels[0], np.full(2000, 0.5), np.arange(2000))
    assert found.factor == pytest.approx(np.sqrt(2.94), rel=0.12)
    assert found.estimate == pytest.approx(0.5, abs=0.06)
    assert found.pvalue < 0.001
    assert str(found).startswith("Consecutive samples have similar errors")
    assert f"too short by a factor of about {found.factor:.1f}" in str(found)


def test_the_order_of_time_counts_and_not_that_of_the_rows():
    rng = np.random.default_rng(0)
    turns = rng.random(500) < 0.1
    labels = np.cumsum(turns) % 2
    hours = np.datetime64("2025-01-01T00") + np.arange(500)
    expected = error_autocorrelation(labels, np.full(500, 0.5), hours)
    assert expected.factor > 2
    order = rng.permutation(500)
    texts = [str(hour) for hour in hours[order].tolist()]
    for time in (hours[order], texts, hours[order].tolist()):
        found = error_autocorrelation(labels[order], np.full(500, 0.5), time)
        assert found[:3] == pytest.approx(expected[:3])


def test_miscalibration_is_not_dependence():
    """Errors of months and of scores are alike in time until they are subtracted."""
    rng = np.random.default_rng(0)
    month = np.repeat(np.arange(10), 200)
    y_true = rng.random(2000) < np.where(month % 2, 0.8, 0.2)
    y_proba = np.full(2000, 0.5)
    time = np.arange(2000)
    assert error_autocorrelation(y_true, y_proba, time).pvalue < 0.001
    assert error_autocorrelation(y_true, y_proba, time, groups=month).pvalue > 0.05
    # Scores rise over time, and all are too low.
    y_proba = np.linspace(0.1, 0.5, 2000)
    y_true = rng.random(2000) < y_proba * 1.8
    assert error_autocorrelation(y_true, y_proba, time).pvalue > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.02, 0.3])
@pytest.mark.parametrize("n", [100, 500])
def test_independent_samples_are_seldom_called_alike(n, rate):
    """200 samples each: level .05 and, since the hypothesis allows for 1.1, less."""
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(200):
        y_proba = np.clip(rate * rng.exponential(size=n), 0, 1)
        y_true = rng.random(n) < y_proba
        found = error_autocorrelation(y_true, y_proba, np.arange(n))
        rejected += found.pvalue < 0.05
        if found.pvalue >= 0.05:
            assert str(found).startswith("Consecutive samples do not have")
    assert rejected <= 10


def test_what_cannot_be_told_is_nan_with_a_reason():
    y_true, y_proba, time = _data()
    cases = {
        "there are 99 samples, fewer than 100": (y_true, y_proba, time, 99),
        "y_true has one class only": (np.zeros(400, int), y_proba, time, 400),
    }
    for reason, (*columns, n) in cases.items():
        found = error_autocorrelation(*[column[:n] for column in columns])
        assert np.isnan(found[:3]).all()
        assert found.reason == reason
        assert str(found) == f"No autocorrelation can be estimated: {reason}."
    # Each sample is a group of its own, and its error is rounding.
    found = error_autocorrelation(y_true, y_proba, time, groups=np.arange(400))
    assert found.reason == "no errors are left to compare"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": ["pre", "post"] * 200}, "strings have no order"),
        ({"time": np.arange(399)}, "one value for each of 400 samples"),
        ({"time": ["2025-01-01 25:00"] * 400}, "does not exist"),
        ({"groups": np.arange(399)}, "groups"),
        ({"y_proba": np.full((400, 3), 1 / 3)}, "about one event"),
    ],
)
def test_bad_input_is_one_clear_error(options, message):
    y_true, y_proba, time = _data()
    arguments = {"y_true": y_true, "y_proba": y_proba, "time": time} | options
    if "y_proba" in options:
        arguments["y_true"] = np.arange(400) % 3
    with pytest.raises(ValueError, match=message):
        error_autocorrelation(**arguments)
