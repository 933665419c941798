"""A trend of the bias over time: a plain twin, level, coverage, weights, clusters."""

from datetime import date

import numpy as np
import pytest
from scipy.stats import t as student

from skcalib.monitoring import calibration_trend


def _data(n=400, seed=0, slope=0.0):
    rng = np.random.default_rng(seed)
    time = rng.uniform(0, 5, n)
    y_proba = rng.uniform(0.1, 0.6, n)
    return rng.random(n) < y_proba - slope * time, y_proba, time


def _twin(y_true, y_proba, time):
    """Least squares by `lstsq`, HC3 by its matrix formula, Student's quantile with the
    degrees that the squares of the influences show.
    """
    residual = y_proba - y_true
    design = np.column_stack((np.ones(len(time)), time))
    coefficients = np.linalg.lstsq(design, residual, rcond=None)[0]
    bread = np.linalg.inv(design.T @ design)
    leverage = np.einsum("ij,jk,ik->i", design, bread, design)
    left = (residual - design @ coefficients) / (1 - leverage)
    terms = (bread @ design.T)[1] * left
    variance = np.sum(terms**2)
    kurtosis = len(time) * np.sum(terms**4) / variance**2
    degrees = 2 * len(time) / (kurtosis - 1)
    half = student.ppf(0.95, degrees) * np.sqrt(variance)
    return coefficients[1], coefficients[1] - half, coefficients[1] + half


def test_slope_and_interval_are_those_of_a_plain_twin():
    y_true, y_proba, time = _data(slope=0.02)
    found = calibration_trend(y_true, y_proba, time)
    assert tuple(found.slope) == pytest.approx(_twin(y_true, y_proba, time), rel=1e-9)
    assert found.unit == "unit of time"


def test_the_statistic_is_the_slope_over_its_error_under_a_constant_bias():
    """With two times the slope is the difference of two means."""
    y_true = np.tile(np.array([0, 1, 1, 0, 1, 1, 1, 0, 1, 1], bool), 10)
    y_true[:10] = True
    y_proba = np.full(100, 0.5)
    time = np.repeat([0, 1], 50)
    found = calibration_trend(y_true, y_proba, time)
    residual = y_proba - y_true
    difference = residual[50:].mean() - residual[:50].mean()
    assert found.slope.estimate == pytest.approx(difference)
    # Under the null both halves have the variance of all residuals, n / (n - 1)
    # times larger for their common mean: SE = 2 sqrt(mean r^2 / 100) 100 / 99.
    centred = residual - residual.mean()
    error = 2 * np.sqrt(np.mean(centred**2) / 100) * 100 / 99
    assert found.statistic == pytest.approx(difference / error)
    assert 0 < found.pvalue <= 1


def test_weights_and_clusters():
    y_true, y_proba, time = _data(120)
    weight = np.random.default_rng(1).integers(1, 4, 120)
    repeated = [np.repeat(column, weight) for column in (y_true, y_proba, time)]
    weighted = calibration_trend(y_true, y_proba, time, sample_weight=weight)
    expected = calibration_trend(*repeated)
    assert tuple(weighted.slope) == pytest.approx(tuple(expected.slope), rel=1e-9)
    assert weighted.pvalue == pytest.approx(expected.pvalue)
    # A factor on weights of importance changes nothing.
    importance = {"weight_type": "importance"}
    once = calibration_trend(
        y_true, y_proba, time, sample_weight=weight * 0.1, **importance
    )
    twice = calibration_trend(
        y_true, y_proba, time, sample_weight=weight * 0.3, **importance
    )
    assert once.slope.estimate == pytest.approx(weighted.slope.estimate)
    assert once.pvalue == pytest.approx(twice.pvalue, rel=1e-3)
    # Each sample twice, in one cluster: the interval is about that of the samples.
    double = [np.tile(column, 2) for column in (y_true, y_proba, time)]
    clustered = calibration_trend(*double, clusters=np.tile(np.arange(120), 2))
    alone = calibration_trend(y_true, y_proba, time)
    assert clustered.slope.low == pytest.approx(alone.slope.low, rel=0.1)
    # A row of weight 0 is not there.
    zero = np.append(np.ones(120), 0)
    added = [np.append(y_true, True), np.append(y_proba, 0.01), np.append(time, 1e6)]
    found = calibration_trend(*added, sample_weight=zero)
    assert found.slope == pytest.approx(alone.slope)


def _is_step_by_least_squares(y_true, y_proba, time, weight):
    """Fit the line and each step to all samples, by `lstsq`."""
    root = np.sqrt(weight)
    residual = root * (y_proba - y_true)
    features = [time.astype(float)]
    features += [(time >= since).astype(float) for since in np.unique(time)[1:]]
    left = []
    for feature in features:
        design = root[:, None] * np.column_stack((np.ones(len(time)), feature))
        fit = np.linalg.lstsq(design, residual, rcond=None)[0]
        left.append(np.sum((residual - design @ fit) ** 2))
    return min(left[1:]) < left[0]


def test_a_step_is_told_from_a_line():
    rng = np.random.default_rng(0)
    answers = []
    for k in range(40):
        time = rng.integers(0, 8, 1500) ** 2
        y_proba = rng.uniform(0.1, 0.5, 1500)
        off = np.where(time >= 16, 0.3, 0.0) if k % 2 else 0.3 * time / 49
        y_true = rng.random(1500) < y_proba + off
        weight = rng.integers(1, 4, 1500)
        found = calibration_trend(y_true, y_proba, time, sample_weight=weight)
        expected = _is_step_by_least_squares(y_true, y_proba, time, weight)
        assert found.is_step is bool(expected)
        answers.append(found.is_step)
    assert sum(answers[1::2]) > 15
    assert sum(answers[::2]) < 10
    # Times of weight 0 are not there.
    weight[time == 16] = 0
    found = calibration_trend(y_true, y_proba, time, sample_weight=weight)
    kept = weight > 0
    alone = calibration_trend(
        y_true[kept], y_proba[kept], time[kept], sample_weight=weight[kept]
    )
    assert found.is_step is alone.is_step


@pytest.mark.parametrize("seed", range(5))
def test_two_times_and_a_constant_bias_have_no_step(seed):
    """A line through two times is as good as a step, up to rounding."""
    y_true, y_proba, _ = _data(100, seed)
    time = np.arange(100) % 2
    assert calibration_trend(y_true, y_proba, time).is_step is False
    label = np.arange(100) % 2 == 0
    constant = calibration_trend(label, np.full(100, 0.3), np.arange(100) // 2)
    assert constant.is_step is False


def test_dates_of_every_kind_are_years():
    y_true, y_proba, _ = _data(200)
    days = np.arange(200) * 7
    first = np.datetime64("2023-01-01")
    expected = calibration_trend(y_true, y_proba, days / 365.25)
    for time in (
        first + days.astype("timedelta64[D]"),
        (first + days.astype("timedelta64[D]")).astype(str),
        [date(2023, 1, 1).fromordinal(738521 + int(day)) for day in days],
    ):
        found = calibration_trend(y_true, y_proba, time)
        assert found.unit == "year"
        assert found.slope == pytest.approx(expected.slope, rel=1e-9)
    # Hours count as well.
    hours = first + np.arange(200).astype("timedelta64[h]")
    expected = calibration_trend(y_true, y_proba, np.arange(200) / 24 / 365.25)
    for time in (hours, [str(hour) for hour in hours.tolist()]):
        found = calibration_trend(y_true, y_proba, time)
        assert found.slope == pytest.approx(expected.slope, rel=1e-9)
    months = np.where(days < 700, "2023-01", "2024-01")
    assert calibration_trend(y_true, y_proba, months).unit == "year"


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (["pre"] * 100 + ["post"] * 100, "row 0 is 'pre': strings have no order"),
        (np.ones(200), "only one value"),
        (np.ones(3), "one value for each of 200 samples"),
        (np.r_[np.nan, np.arange(199)], "missing or infinite in row 0"),
        (["2024-02-31"] * 200, "does not exist"),
    ],
)
def test_times_without_an_order_are_refused(time, message):
    y_true, y_proba, _ = _data(200)
    with pytest.raises(ValueError, match=message):
        calibration_trend(y_true, y_proba, time)


def test_three_classes_are_refused():
    with pytest.raises(ValueError, match="a trend is about one event"):
        calibration_trend([0, 1, 2], np.full((3, 3), 1 / 3), [0, 1, 2])


def test_a_trend_is_seen_sooner_than_a_change_of_one_period():
    """Five seasons, 1 point more each: p of the trend is below that of first against
    last.
    """
    from skcalib.monitoring import calibration_change

    better = 0
    for seed in range(6):
        y_true, y_proba, time = _data(5000, seed, slope=0.012)
        season = np.floor(time)
        first, last = season == 0, season == 4
        change = calibration_change(
            y_true[first],
            y_proba[first],
            y_true[last],
            y_proba[last],
            n_resamples=199,
            random_state=0,
        )
        trend = calibration_trend(y_true, y_proba, season)
        better += trend.pvalue < change.pvalue
    assert better >= 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "rate", "clustered"),
    [(60, 0.3, False), (1000, 0.3, False), (2000, 0.01, False), (900, 0.3, True)],
)
def test_level_and_coverage(n, rate, clustered):
    """1,000 samples: level .05 and coverage .9 within three standard errors."""
    rng = np.random.default_rng(0)
    rejected = covered = 0
    n_samples = 1000
    for _ in range(n_samples):
        time = rng.exponential(size=n)
        odds = np.log(rate / (1 - rate)) + rng.normal(size=n)
        clusters = None
        if clustered:
            clusters = np.arange(n) // 6
            odds = odds + 0.7 * rng.normal(size=n // 6)[clusters]
        truth = 1 / (1 + np.exp(-odds))
        y_proba = np.clip(truth + 0.02, 0, 1)  # a constant bias is no trend
        if clustered:
            y_proba = np.full(n, truth.mean())
        y_true = rng.random(n) < truth
        found = calibration_trend(y_true, y_proba, time, clusters=clusters)
        rejected += found.pvalue < 0.05
        covered += found.slope.low <= 0 <= found.slope.high
    assert rejected / n_samples <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_samples)
    assert covered / n_samples >= 0.9 - 3 * np.sqrt(0.9 * 0.1 / n_samples)
