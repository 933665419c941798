"""The monitor against loops over rows, and its level."""

import pickle

import numpy as np
import pytest
from _catalog import refused
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skcalib.metrics import BinStatistics
from skcalib.monitoring import CalibrationMonitor, GroupMonitors
from skcalib.monitoring._monitor import log_likelihood_ratios

BETS = [
    (a, b)
    for b in (0.6, 1, 1.5)
    for a in (0, 0.13, -0.13, 0.4, -0.4, 1.2, -1.2)
    if (a, b) != (0, 1)
]


def _stream(n=3000, change=1500, shift=0.8, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.beta(1.5, 3, n)
    return scores, rng.random(n) < expit(
        logit(scores) + shift * (np.arange(n) >= change)
    )


def _ratio(score, event, a, b):
    score = min(max(score, 2**-52), 1 - 2**-52)
    bet = expit(b * logit(score) + a)
    return bet / score if event else (1 - bet) / (1 - score)


def _twin(scores, events, threshold, *, restarts=False):
    """Return the evidence after each row, the row of the alarm and of the change, in
    plain loops.
    """
    wealth, sums, left = [0.0 if restarts else 1.0] * 20, [0.0] * 20, [0] * 20
    evidence, alarm, change = [], None, None
    for row, (score, event) in enumerate(zip(scores, events, strict=True)):
        for c, bet in enumerate(BETS):
            ratio = _ratio(score, event, *bet)
            wealth[c] = (wealth[c] + restarts) * ratio
            sums[c] = sums[c] + np.log(ratio)
            if sums[c] <= 0:
                sums[c], left[c] = 0.0, row + 1
        evidence.append(np.mean(wealth))
        if alarm is None and evidence[-1] >= threshold:
            alarm, change = row, left[int(np.argmax(sums))]
    return evidence, alarm, change


@pytest.mark.slow
@pytest.mark.parametrize("average_run_length", [None, 1000])
@pytest.mark.parametrize(
    "ends", [range(1, 3001), range(7, 3007, 7), [400, 401, 3000], [3000]], ids=len
)
def test_it_is_the_loop_over_rows_in_batches_of_any_size(ends, average_run_length):
    scores, events = _stream()
    threshold = 100 if average_run_length is None else average_run_length
    evidence, alarm, change = _twin(
        scores, events, threshold, restarts=average_run_length is not None
    )
    monitor, start = CalibrationMonitor(average_run_length=average_run_length), 0
    for end in ends:
        monitor.partial_fit(scores[start:end], events[start:end])
        start = min(end, 3000)
        assert monitor.e_value_ == pytest.approx(evidence[start - 1], rel=1e-8)
        assert monitor.alarm_ == (alarm < start)
    assert monitor.n_rows_ == 3000
    assert (monitor.alarm_row_, monitor.change_row_) == (alarm, change)
    assert 1500 < alarm < 2200
    assert abs(change - 1500) < 200


def _mixture(scores, events, starts, stakes):
    """Return the e-value of bets of these stakes that begin at these rows; the rest is
    kept back.
    """
    ratios = np.array(
        [
            [_ratio(s, y, *bet) for bet in BETS]
            for s, y in zip(scores, events, strict=True)
        ]
    )
    wealth = sum(
        stake * ratios[start:].prod(axis=0).mean()
        for start, stake in zip(starts, stakes, strict=True)
    )
    return wealth + 1 - sum(stakes)


@pytest.mark.parametrize("ends", [range(1, 301), [7, 200, 300], [300]], ids=len)
def test_restarts_are_a_mixture_of_bets_from_each_row(ends):
    scores, events = _stream(300, change=100)
    share = np.log(10) / np.log(10 + np.arange(301.0))
    monitor, start = CalibrationMonitor(restarts=True), 0
    for end in ends:
        monitor.partial_fit(scores[start:end], events[start:end])
        start = end
        stakes = [0.5, *(0.5 * -np.diff(share[: end + 1]))]
        if end in (7, 200, 300):
            expected = _mixture(scores[:end], events[:end], [0, *range(end)], stakes)
            assert monitor.e_value_ == pytest.approx(expected, rel=1e-8)


def test_restarts_find_a_late_change_sooner():
    scores, events = _stream(9000, change=5000, shift=0.5)
    rows = [
        CalibrationMonitor(restarts=restarts).fit(scores, events).alarm_row_
        for restarts in (True, False)
    ]
    assert 5000 < rows[0] < rows[1] - 300
    parts = [(scores[k : k + 100], events[k : k + 100]) for k in range(0, 9000, 100)]
    by_bins = CalibrationMonitor(restarts=True)
    for part in parts:
        by_bins.partial_fit(
            BinStatistics.from_predictions(*part[::-1], np.linspace(0, 1, 11))
        )
    assert 5000 < by_bins.alarm_row_ < rows[1] + 500
    with refused(ValueError, "restarts=True", "average_run_length"):
        CalibrationMonitor(restarts=True, average_run_length=100).fit([0.5], [1])
    with refused(ValueError, "restarts must be True or False"):
        CalibrationMonitor(restarts="often").fit([0.5], [1])


def test_the_bets_are_fair():
    scores = np.array([0.0, 1e-9, 0.01, 0.3, 0.5, 0.99, 1.0])
    won, lost = (
        np.exp(log_likelihood_ratios(scores, np.full(7, event)))
        for event in (True, False)
    )
    clipped = np.clip(scores, 2**-52, 1 - 2**-52)[:, None]
    np.testing.assert_allclose(clipped * won + (1 - clipped) * lost, 1, rtol=1e-9)
    for row, score in enumerate(scores[1:-1], start=1):
        np.testing.assert_allclose(
            sorted(won[row]),
            sorted(_ratio(score, True, *bet) for bet in BETS),
            rtol=1e-7,
        )
        np.testing.assert_allclose(
            sorted(lost[row]),
            sorted(_ratio(score, False, *bet) for bet in BETS),
            rtol=1e-7,
        )


def test_an_impossible_event_is_an_alarm_at_once():
    monitor = CalibrationMonitor().fit([0.0, 0.0], [False, False])
    assert not monitor.alarm_
    monitor.partial_fit([0.0], [True])
    assert monitor.alarm_
    assert (monitor.alarm_row_, monitor.change_row_) == (2, 2)


def test_the_alarm_stays_until_fit():
    scores, events = _stream()
    monitor = CalibrationMonitor().fit(scores, events)
    row, change = monitor.alarm_row_, monitor.change_row_
    calibrated = np.random.default_rng(1).random(20_000)
    monitor.partial_fit(
        calibrated, np.random.default_rng(2).random(20_000) < calibrated
    )
    assert monitor.alarm_
    assert (monitor.alarm_row_, monitor.change_row_) == (row, change)
    monitor.fit(calibrated[:10], calibrated[:10] > 0.5)
    assert not monitor.alarm_
    assert monitor.n_rows_ == 10
    assert monitor.alarm_row_ is None
    assert monitor.change_row_ is None
    assert len(monitor.history_) == 1


def test_evidence_that_leaves_floating_point_stays_finite():
    monitor = CalibrationMonitor().fit(np.full(5000, 0.01), np.ones(5000, dtype=bool))
    assert monitor.alarm_
    assert np.isfinite(monitor.e_value_)
    assert monitor.e_value_ > 1e300
    monitor.partial_fit(np.full(5000, 0.01), np.zeros(5000, dtype=bool))
    assert np.isfinite(monitor.e_value_)


def test_history_has_a_row_for_each_batch():
    scores, events = _stream()
    monitor = CalibrationMonitor()
    for rows in np.array_split(np.arange(3000), 4):
        monitor.partial_fit(scores[rows], events[rows])
    history = monitor.history_
    assert history.n_rows.tolist() == [750, 1500, 2250, 3000]
    assert history.n.tolist() == [750] * 4
    assert history.mean_score[1] == pytest.approx(scores[750:1500].mean())
    assert history.event_frequency[2] == pytest.approx(events[1500:2250].mean())
    assert history.e_value[-1] == monitor.e_value_
    assert history.alarm.tolist() == [False, False, True, True]
    with pytest.raises(NotFittedError):
        clone(monitor).history_  # noqa: B018


def test_it_is_pickled_and_goes_on():
    scores, events = _stream()
    whole = CalibrationMonitor(average_run_length=500).fit(scores, events)
    part = CalibrationMonitor(average_run_length=500).fit(scores[:900], events[:900])
    part = pickle.loads(pickle.dumps(part)).partial_fit(scores[900:], events[900:])
    assert part.e_value_ == pytest.approx(whole.e_value_)
    assert (part.alarm_row_, part.change_row_) == (whole.alarm_row_, whole.change_row_)
    assert len(part.history_) == 2


@pytest.mark.parametrize("average_run_length", [None, 500])
def test_a_batch_of_statistics_is_one_bet_on_its_bin_means(average_run_length):
    scores, events = _stream()
    edges = np.array([0, 0.2, 0.5, 1])
    wealth = np.zeros(20) if average_run_length else np.ones(20)
    monitor = CalibrationMonitor(average_run_length=average_run_length)
    for rows in np.array_split(np.arange(3000), 6):
        statistics = BinStatistics.from_predictions(events[rows], scores[rows], edges)
        monitor.partial_fit(statistics)
        ratios = np.ones(20)
        for s, k, n in zip(
            statistics.mean_score,
            statistics.weighted_label,
            statistics.count,
            strict=True,
        ):
            ratios *= [
                _ratio(s, True, *bet) ** k * _ratio(s, False, *bet) ** (n - k)
                for bet in BETS
            ]
        wealth = (wealth + len(rows) * (average_run_length is not None)) * ratios
        assert monitor.e_value_ == pytest.approx(wealth.mean(), rel=1e-7)
    assert monitor.alarm_
    assert (monitor.alarm_row_ + 1) % 500 == 0
    assert monitor.change_row_ == 1500
    empty = BinStatistics.from_predictions([], [], edges)
    assert monitor.partial_fit(empty).n_rows_ == 3000


def test_labels_of_any_kind():
    scores, events = _stream(600)
    expected = CalibrationMonitor().fit(scores, events).e_value_
    both = np.column_stack((1 - scores, scores))
    texts = np.array(["no", "yes"])[events.astype(int)]
    for monitor, *batch in (
        (CalibrationMonitor(), scores, events.astype(int)),
        (CalibrationMonitor(), scores.tolist(), events.tolist()),
        (CalibrationMonitor(), both, events.astype(np.float64)),
        (CalibrationMonitor(), scores[:, None], events.astype(np.int8)),
        (CalibrationMonitor(classes=["no", "yes"]), scores, texts),
        (CalibrationMonitor(classes=["no", "yes"]), both, texts),
    ):
        assert monitor.fit(*batch).e_value_ == pytest.approx(expected, rel=1e-9)
    one_class = CalibrationMonitor(classes=["no", "yes"]).fit([0.4], ["yes"])
    assert one_class.n_rows_ == 1
    single = CalibrationMonitor().fit(np.float32([0.25]), [1])
    assert single.e_value_ == pytest.approx(
        np.mean([_ratio(0.25, True, *bet) for bet in BETS])
    )


def test_many_classes_by_the_predicted_class():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 200)
    y = np.array(list("abc"))[rng.integers(0, 3, 200)]
    monitor = CalibrationMonitor(classes=["a", "b", "c"]).fit(proba, y)
    right = np.array(list("abc"))[proba.argmax(axis=1)] == y
    assert monitor.e_value_ == pytest.approx(
        CalibrationMonitor().fit(proba.max(axis=1), right).e_value_
    )
    with refused(ValueError, "scores", "3 columns", "classes="):
        CalibrationMonitor().fit(proba, rng.integers(0, 3, 200))


@pytest.mark.parametrize(
    ("scores", "y", "words"),
    [
        ([0.2, np.nan], [0, 1], ["scores", "NaN", "row 1"]),
        ([0.2, 1.5], [0, 1], ["scores", "[0, 1]", "row 1"]),
        ([0.2, 0.3], [0, 2], ["y", "0 and 1", "classes="]),
        ([0.2, 0.3], ["no", "yes"], ["y", "0 and 1", "classes="]),
        ([0.2, 0.3], [0], ["y has 1 rows", "scores has 2"]),
        ([0.2, 0.3], [0.0, np.nan], ["y", "NaN", "row 1"]),
        ([], [], ["scores", "empty"]),
        ([0.2], None, ["y"]),
    ],
)
def test_wrong_batches_are_named_and_change_nothing(scores, y, words):
    monitor = CalibrationMonitor().fit([0.2, 0.4], [0, 1])
    before = pickle.dumps(monitor)
    with refused(ValueError, *words):
        monitor.partial_fit(scores, y)
    with refused(ValueError, *words):
        monitor.partial_fit(np.array(scores), None if y is None else np.array(y))
    assert pickle.dumps(monitor) == before


def test_wrong_statistics_and_parameters():
    statistics = BinStatistics.from_predictions(
        [0, 1], [0.2, 0.4], [0, 1], sample_weight=[1, 2]
    )
    with refused(ValueError, "weights"):
        CalibrationMonitor().fit(statistics)
    with refused(ValueError, "y", "BinStatistics"):
        CalibrationMonitor().fit(
            BinStatistics.from_predictions([0], [0.2], [0, 1]), [0]
        )
    with refused(ValueError, "confidence_level"):
        CalibrationMonitor(confidence_level=99).fit([0.2], [0])
    with refused(ValueError, "average_run_length"):
        CalibrationMonitor(average_run_length=0).fit([0.2], [0])
    with refused(ValueError, "classes", "sorted"):
        CalibrationMonitor(classes=["yes", "no"]).fit([0.2], ["no"])
    with refused(ValueError, "y", "unknown label"):
        CalibrationMonitor(classes=["no", "yes"]).fit([0.2], ["maybe"])


def test_parameters_are_those_of_scikit_learn():
    monitor = CalibrationMonitor(confidence_level=0.95, classes=["a", "b"])
    assert clone(monitor).get_params() == monitor.get_params()
    assert CalibrationMonitor().fit([0.5], [1]).threshold_ == pytest.approx(100)
    assert CalibrationMonitor(average_run_length=1e4).fit([0.5], [1]).threshold_ == 1e4


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["smooth", "rare", "tied", "extreme"])
def test_stable_runs_hardly_ever_alarm(shape):
    rng = np.random.default_rng(0)
    alarms = np.zeros(2)
    for _ in range(60):
        scores = {
            "smooth": rng.beta(1, 3, 10_000),
            "rare": rng.beta(1, 100, 10_000),
            "tied": rng.integers(0, 11, 10_000) / 10,
            "extreme": rng.beta(0.1, 0.1, 10_000),
        }[shape]
        events = rng.random(10_000) < scores
        for k, restarts in enumerate((False, True)):
            alarms[k] += (
                CalibrationMonitor(confidence_level=0.95, restarts=restarts)
                .fit(scores, events)
                .alarm_
            )
    # more than this of 60 has a chance of .3 % at a level of .05
    assert alarms.max() <= 8


@pytest.mark.slow
def test_the_e_detector_runs_as_long_as_it_says():
    rng = np.random.default_rng(0)
    lengths = []
    for _ in range(300):
        scores = rng.beta(1, 3, 2400)
        monitor = CalibrationMonitor(average_run_length=300).fit(
            scores, rng.random(2400) < scores
        )
        lengths.append(2400 if monitor.alarm_row_ is None else monitor.alarm_row_ + 1)
    assert np.mean(lengths) > 300


@pytest.mark.slow
def test_a_shift_is_found_soon():
    delays = {"process": [], "detector": []}
    for seed in range(40):
        scores, events = _stream(20_000, 5000, 0.6, seed)
        for name, options in {
            "process": {"confidence_level": 0.95},
            "detector": {"average_run_length": 1e5},
        }.items():
            row = CalibrationMonitor(**options).fit(scores, events).alarm_row_
            delays[name].append(np.inf if row is None or row < 5000 else row - 5000)
    assert np.median(delays["process"]) < 1800
    assert np.median(delays["detector"]) < 600


def test_a_monitor_dates_its_alarm_and_the_change():
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.1, 0.6, 6000)
    y = rng.random(6000) < scores + 0.15 * (np.arange(6000) >= 3000)
    month = np.array([f"2025-{1 + k // 500:02d}" for k in range(6000)])
    at_once = CalibrationMonitor().fit(scores, y, month)
    batches = CalibrationMonitor()
    assert batches.partial_fit(scores[:1], y[:1]).alarm_time_ is None
    batches.fit(scores[:500], y[:500], month[0])
    for start in range(500, 6000, 500):
        rows = slice(start, start + 500)
        batches.partial_fit(scores[rows], y[rows], time=month[start])
    groups = GroupMonitors(CalibrationMonitor())
    groups.partial_fit(scores, y, ["all"] * 6000, time=month)
    for monitor in (at_once, batches):
        assert monitor.alarm_
        assert monitor.alarm_time_ == month[monitor.alarm_row_]
        assert monitor.change_time_ == month[monitor.change_row_]
    untimed = CalibrationMonitor().fit(scores, y)
    assert (untimed.alarm_row_, untimed.alarm_time_) == (at_once.alarm_row_, None)
    with pytest.raises(ValueError, match="time"):
        untimed.partial_fit(scores, y, time=month[:5])
    counts = BinStatistics.from_predictions(y, scores, np.linspace(0, 1, 11))
    dated = CalibrationMonitor().partial_fit(counts, time="2025")
    assert dated.alarm_time_ == "2025"
    with pytest.raises(ValueError, match="one name or date for a BinStatistics"):
        dated.partial_fit(counts, time=["a", "b"])
