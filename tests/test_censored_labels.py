"""Outcomes at a horizon under censoring: exact weights, Kaplan-Meier, coverage."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from skcalib import PlattScaling, censored_labels
from skcalib.metrics import calibration_error, calibration_slope_intercept


def _kaplan_meier(times, marks, until, censored_last):
    """Return the product over marked times up to `until`, in fractions."""
    value = Fraction(1)
    for moment in sorted({t for t, mark in zip(times, marks, strict=True) if mark}):
        if moment > until:
            break
        n_marked = at_risk = 0
        for t, mark in zip(times, marks, strict=True):
            is_marked = t == moment and bool(mark)
            n_marked += is_marked
            is_at_risk = t >= moment if not censored_last else t > moment or is_marked
            at_risk += is_at_risk
        value *= 1 - Fraction(n_marked, at_risk)
    return value


TIMES = [2, 2, 2, 4, 4, 5, 6, 6, 7, 9, 9, 11, 12]
EVENTS = [1, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1]


@pytest.mark.parametrize("horizon", [1, 2, 4, 5.5, 9, 10])
def test_weights_are_exact_with_ties(horizon):
    y, weight, weight_type = censored_labels(TIMES, EVENTS, horizon)
    censored = [1 - event for event in EVENTS]
    expected = []
    for t, event in zip(TIMES, EVENTS, strict=True):
        if event and t <= horizon:
            remaining = _kaplan_meier(TIMES, censored, t - 0.5, censored_last=True)
        elif t > horizon:
            remaining = _kaplan_meier(TIMES, censored, horizon, censored_last=True)
        else:
            expected.append(0.0)
            continue
        expected.append(float(1 / remaining))
    assert weight == pytest.approx(expected)
    assert weight_type == "importance"
    assert y.tolist() == [
        int(event and t <= horizon) for t, event in zip(TIMES, EVENTS, strict=True)
    ]
    # The weighted event frequency is 1 less the Kaplan-Meier curve of the events.
    survival = _kaplan_meier(TIMES, EVENTS, horizon, censored_last=False)
    assert weight.sum() == pytest.approx(len(TIMES))
    assert weight @ y / len(TIMES) == pytest.approx(float(1 - survival))


def test_groups_have_their_own_curves():
    times, events = np.tile(TIMES, 2), np.tile(EVENTS, 2)
    events[len(TIMES) :] = 1  # the second country was observed to the end
    country = np.repeat(["a", "b"], len(TIMES))
    y, weight, _ = censored_labels(times, events, 9, groups=country)
    alone = censored_labels(TIMES, EVENTS, 9)
    assert weight[: len(TIMES)] == pytest.approx(alone.sample_weight)
    assert (weight[len(TIMES) :] == 1).all()
    assert y[: len(TIMES)].tolist() == alone.y.tolist()


def test_known_censoring():
    def remaining(t):
        return np.exp(-t / 10)

    times, events, horizon = [1.0, 4.0, 6.0, 9.0], [True, False, True, False], 5.0
    _, weight, _ = censored_labels(times, events, horizon, censoring=remaining)
    expected = [np.exp(0.1), 0.0, np.exp(0.5), np.exp(0.5)]
    assert weight == pytest.approx(expected)
    given = remaining(np.minimum(times, horizon))
    given[1] = np.nan  # the outcome is not known: its probability is not needed
    same = censored_labels(times, events, horizon, censoring=given)
    assert same.sample_weight == pytest.approx(expected)


@pytest.mark.parametrize(
    ("time", "event", "options", "message"),
    [
        ([1, 2], [1], {}, "one number for each sample"),
        ([], [], {}, "empty"),
        ([1, -2], [1, 0], {}, "time is -2 in row 1"),
        ([1, np.nan], [1, 0], {}, "time is nan in row 1"),
        (["2024-01-05", "x"], [1, 0], {}, "Convert dates"),
        ([1, 9], [1, 2], {}, "pass for example event == 2"),
        ([1, 9], ["died", "alive"], {}, "event is .* in row 0"),
        ([1, 9], [1, 0], {"horizon": 0}, "horizon must be"),
        ([1, 9], [1, 0], {"horizon": [1, 2]}, "horizon must be"),
        ([1, 4], [1, 0], {}, "ends at 4 without an event"),
        ([1, 9], [1, 0], {"censoring": [0.5]}, "one probability for each of the 2"),
        ([1, 9], [1, 0], {"censoring": [0.5, 0.0]}, "censoring is 0 in row 1"),
        ([1, 9], [1, 0], {"groups": ["a"]}, "groups"),
        ([1, 9], [1, 0], {"groups": [0, 1], "censoring": [1, 1]}, "both given"),
        ([1, 9, 2, 3], [1, 0, 1, 0], {"groups": [0, 0, 1, 1]}, "in group 1"),
    ],
)
def test_what_is_no_outcome_is_refused(time, event, options, message):
    horizon = options.pop("horizon", 5)
    with pytest.raises(ValueError, match=message):
        censored_labels(time, event, horizon, **options)


def test_all_events_known_before_the_horizon():
    y, weight, _ = censored_labels([1, 2, 3], [1, 1, 1], 5)
    assert y.tolist() == [1, 1, 1]
    assert weight.tolist() == [1, 1, 1]


def _study(seed, n=500):
    rng = np.random.default_rng(seed)
    rate = np.exp(-0.8 + 0.9 * rng.normal(size=n))
    until_event = rng.exponential(1 / rate)
    observed = np.minimum(rng.exponential(1.2, n), 2)
    event = until_event <= observed
    return np.minimum(until_event, observed), event, 1 - np.exp(-rate)


def test_weights_feed_metrics_and_fits():
    time, event, scores = _study(0)
    y, weight, weight_type = censored_labels(time, event, 1)
    known = weight > 0
    error = calibration_error(y, scores, sample_weight=weight)
    assert error == pytest.approx(
        calibration_error(y[known], scores[known], sample_weight=weight[known])
    )
    fitted = PlattScaling().fit(scores, y, sample_weight=weight)
    assert fitted.slope_ == pytest.approx(1, abs=0.4)
    assert weight_type == "importance"


@pytest.mark.slow
def test_weights_cover_where_simple_answers_do_not():
    covered = []
    for seed in range(100):
        time, event, scores = _study(seed, 1000)
        y, weight, weight_type = censored_labels(time, event, 1)
        known = weight > 0
        found = [
            calibration_slope_intercept(
                y, scores, sample_weight=weight, weight_type=weight_type
            ),
            calibration_slope_intercept(y[known], scores[known]),
            calibration_slope_intercept(event & (time <= 1), scores),
        ]
        covered.append([fit.intercept.low <= 0 <= fit.intercept.high for fit in found])
    weighted, dropped, no_event = np.mean(covered, axis=0)
    # .90, less three standard errors of .03
    assert weighted > 0.81
    assert dropped < 0.1
    assert no_event < 0.1


def test_the_page_has_the_figures_of_its_example():
    page = Path(__file__).parents[1] / "doc" / "outcome_not_known_yet.md"
    text = page.read_text("utf-8")
    names = {}
    for block in text.split("```python\n")[1:]:
        exec(block.split("```")[0], names)
    for name, label in (
        ("dropped", "dropped"),
        ("no_event", "counted as non-events"),
        ("weighted", "represented by weights"),
    ):
        interval = names[name].intercept
        values = [f"{value:.2f}".replace("0.", ".") for value in interval]
        assert f"| {label} | {values[0]} ({values[1]} to {values[2]}) |" in text
