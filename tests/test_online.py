"""The recalibrator that learns while it serves: plain twins, bounds and refusals."""

import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from benchmarks.online_streams import excess
from skcalib import OnlineRecalibrator, PlattScaling, TemperatureScaling
from skcalib._solvers.online_logistic import ForgettingNewton, OnlineNewton
from skcalib.export import from_dict, to_dict
from skcalib.monitoring import CalibrationMonitor


def _stream(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    return expit(z), rng.random(n) < expit(0.6 * z + 0.4)


def test_online_newton_reproduces_the_numbers_of_the_algorithm():
    # x = (1, 1), (-1, 1), (2, 1) with labels 0, 0, 1: by hand from Algorithm 1 of Gupta
    # and Ramdas (2023) with rho = 100, gamma = .1.
    learner, forecasts = OnlineNewton(), []
    for z, y in ((1.0, 0), (-1.0, 0), (2.0, 1)):
        forecasts.append(expit(learner.log_odds(np.array([z]))[0]))
        learner.learn([z], [y], [1.0])
    assert forecasts == pytest.approx([0.731059, 0.268941, 0.859345], abs=1e-6)
    assert learner.state[:2] == pytest.approx([0.982393, -0.085349], abs=1e-6)


def test_online_newton_is_its_matrix_form():
    rng = np.random.default_rng(1)
    z, y = rng.normal(size=200), rng.random(200) < 0.4
    weights = rng.uniform(0.5, 2, 200)
    learner = OnlineNewton()
    learner.learn(z.tolist(), y.tolist(), weights.tolist())
    theta, matrix = np.array([1.0, 0.0]), 100 * np.eye(2)
    for features, label, weight in zip(np.c_[z, np.ones(200)], y, weights, strict=True):
        gradient = weight * (expit(theta @ features) - label) * features
        matrix += np.outer(gradient, gradient)
        theta -= np.linalg.solve(matrix, gradient) / 0.1
    assert learner.state[:2] == pytest.approx(theta, rel=1e-10)


def test_forgetting_is_its_matrix_form():
    rng = np.random.default_rng(2)
    z, y = 3 * rng.normal(size=300), rng.random(300) < 0.4
    learner = ForgettingNewton(50)
    learner.learn(z.tolist(), y.tolist(), [1.0] * 300)
    retention, ridge = 0.5 ** (1 / 50), 4
    theta, matrix = np.array([1.0, 0.0]), ridge * np.eye(2)
    limit = logit(0.99)
    for log_odds, label in zip(z, y, strict=True):
        x = np.array([np.clip(log_odds, -limit, limit), 1])
        p = expit(log_odds + (theta - [1, 0]) @ x)
        matrix = retention * matrix + p * (1 - p) * np.outer(x, x)
        matrix += (1 - retention) * ridge * np.eye(2)
        theta = theta - np.linalg.solve(matrix, (p - label) * x)
    assert learner.state[:2] == pytest.approx(theta, rel=1e-9)


def test_a_step_out_of_the_ball_is_projected_in_the_norm_of_the_matrix():
    learner = OnlineNewton()
    learner.radius = 1.2
    learner.state = [1.1, 0.4, 5.0, 1.0, 0.5]
    learner.learn([0.5], [True], [1.0])
    slope, intercept, a11, a12, a22 = learner.state
    assert math.hypot(slope, intercept) == pytest.approx(1.2)
    # The point before the projection, by one step without a ball.
    free = OnlineNewton()
    free.state = [1.1, 0.4, 5.0, 1.0, 0.5]
    free.learn([0.5], [True], [1.0])
    target, matrix = np.array(free.state[:2]), np.array([[a11, a12], [a12, a22]])
    assert np.linalg.norm(target) > 1.2

    def distance(angle):
        off = 1.2 * np.array([np.cos(angle[0]), np.sin(angle[0])]) - target
        return off @ matrix @ off

    starts = np.linspace(0, 2 * np.pi, 20)
    best = min(minimize(distance, [start], tol=1e-14).fun for start in starts)
    found = np.array([slope, intercept]) - target
    assert found @ matrix @ found == pytest.approx(best, rel=1e-9)


def test_weights_follow_the_fixed_share_rule():
    # By hand: v = .25 * (.9, .5, .1, .3) / .45 and w = .9 v + .1 / 4.
    online = OnlineRecalibrator(switching_rate=0.1)
    online.weights_, online.n_rows_ = np.full(4, 0.25), 0
    forecasts = np.array([[0.9], [0.5], [0.1], [0.3]])
    online._update_weights(forecasts, np.array([True]), np.ones(1))
    assert online.weights_ == pytest.approx([0.475, 0.275, 0.075, 0.175])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_switches", [0, 3])
def test_mixture_is_within_its_bound_of_the_best_sequence_of_members(seed, n_switches):
    # log N + log T + k log(N T) for rate 1 / (t + 1), against any sequence.
    rng = np.random.default_rng(seed)
    n_rows, n_members = 2000, 3
    best = np.repeat(rng.integers(0, 3, n_switches + 1), n_rows // (n_switches + 1))
    labels = rng.random(n_rows) < 0.5
    forecasts = np.where(labels, 0.3, 0.7) * np.ones((n_members, 1))
    forecasts[best, np.arange(n_rows)] = np.where(labels, 0.8, 0.2)
    online = OnlineRecalibrator()
    online.weights_, online.n_rows_ = np.full(n_members, 1 / n_members), 0
    mixture = []
    for row in range(n_rows):
        mixture.append(online.weights_ @ forecasts[:, row])
        batch = forecasts[:, [row]], labels[[row]], np.ones(1)
        online._update_weights(*batch)
    loss = -np.log(np.where(labels, mixture, 1 - np.array(mixture))).sum()
    changes = int((np.diff(best) != 0).sum())
    bound = math.log(n_members) + math.log(n_rows)
    bound += changes * math.log(n_members * n_rows)
    assert loss - n_rows * -math.log(0.8) <= bound


def test_a_batch_is_forecast_with_the_state_before_it():
    scores, y = _stream()
    online = OnlineRecalibrator().fit(scores[:1000], y[:1000])
    before = online.predict_proba(scores[1000:1100])
    again = online.predict_proba(scores[1000:1100])
    assert (before == again).all()
    online.partial_fit(scores[1000:1100], y[1000:1100])
    assert (online.predict_proba(scores[1000:1100]) != before).any()
    assert online.n_rows_ == 1100
    assert online.weights_.sum() == pytest.approx(1)


def test_members_do_not_depend_on_the_batches_and_fit_forgets():
    scores, y = _stream()
    at_once = OnlineRecalibrator().partial_fit(scores, y)
    by_row = OnlineRecalibrator()
    for batch in np.array_split(np.arange(3000), 17):
        by_row.partial_fit(scores[batch], y[batch], classes=[False, True])
    assert by_row._learning.state == pytest.approx(at_once._learning.state, rel=1e-12)
    refitted = by_row.fit(scores, y)
    assert (refitted.predict_proba(scores) == at_once.predict_proba(scores)).all()


def test_learning_comes_near_the_best_map():
    scores, y = _stream(50_000)
    online = OnlineRecalibrator().fit(scores, y)
    slope, intercept = online._learning.state[:2]
    platt = PlattScaling(clip=None, smooth_targets=False).fit(scores, y)
    assert slope == pytest.approx(platt.slope_, abs=0.04)
    assert intercept == pytest.approx(platt.intercept_, abs=0.04)


def test_a_pickled_state_goes_on_with_the_same_path():
    scores, y = _stream()
    online = OnlineRecalibrator().fit(scores[:500], y[:500])
    copy = pickle.loads(pickle.dumps(online))
    for batch in np.split(np.arange(500, 3000), 5):
        online.partial_fit(scores[batch], y[batch])
        copy.partial_fit(scores[batch], y[batch])
        assert (online.weights_ == copy.weights_).all()
    assert (online.predict_proba(scores) == copy.predict_proba(scores)).all()


def _through_json(online):
    return from_dict(json.loads(json.dumps(to_dict(online), allow_nan=False)))


def _json_case(kind):
    """Return an object that has seen nothing, scores and labels."""
    scores, y = _stream()
    if kind == "fixed map":
        platt = PlattScaling().fit(scores[:500], y[:500])
        return OnlineRecalibrator(FrozenEstimator(platt)), scores, y
    if kind == "logits of three classes":
        logits = np.random.default_rng(3).normal(size=(3000, 3))
        y = np.array(["x", "y", "z"])[(logits[:, 0] > 0) + 0 + y]
        return OnlineRecalibrator(input="logit", half_life=300), logits, y
    if kind == "names of columns":
        pd = pytest.importorskip(
            "pandas", reason="names of columns are those of pandas"
        )
        return OnlineRecalibrator(), pd.DataFrame({"score": scores}), y
    return OnlineRecalibrator(switching_rate=0.01), scores, np.where(y, "yes", "no")


@pytest.mark.parametrize(
    "kind", ["text labels", "fixed map", "logits of three classes", "names of columns"]
)
def test_json_goes_on_with_the_same_path_bit_by_bit(kind):
    unbroken, scores, y = _json_case(kind)
    resumed = clone(unbroken).partial_fit(scores[:500], y[:500])
    unbroken.partial_fit(scores[:500], y[:500])
    for start in range(500, 3000, 500):
        batch = slice(start, start + 500)
        resumed = _through_json(resumed)
        expected = unbroken.predict_proba(scores[batch])
        assert (resumed.predict_proba(scores[batch]) == expected).all()
        unbroken.partial_fit(scores[batch], y[batch])
        resumed.partial_fit(scores[batch], y[batch])
        assert (resumed.weights_ == unbroken.weights_).all()
    assert to_dict(resumed) == to_dict(unbroken)
    assert resumed.n_rows_ == 3000
    assert repr(clone(resumed)) == repr(clone(unbroken))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("weights_", {"array": [0.5, 0.5], "dtype": "float64"}, "weights_"),
        ("weights_", {"array": [1.0, 1.0, 1.0], "dtype": "float64"}, "sum to 1"),
        ("members_", {"tuple": ["scores", "mine"]}, "names of the members"),
        (
            "members_",
            {"tuple": ["scores", "fixed", "learning", "forgetting"]},
            "recalibrator is None",
        ),
        ("n_rows_", -1, "count"),
        ("_learned", {"array": [1.0, 0.0], "dtype": "float64"}, "5 entries"),
        (
            "_faded",
            {"array": [1.0, 0.0, 1.0, 2.0, 1.0], "dtype": "float64"},
            "curvature",
        ),
    ],
)
def test_a_state_that_cannot_be_is_refused(name, value, message):
    document = to_dict(OnlineRecalibrator().fit(*_stream(100)))
    document["fitted"][name] = value
    with pytest.raises(ValueError, match=message):
        from_dict(document)


def test_json_refuses_a_map_that_is_not_frozen_or_not_of_this_package():
    scores, y = _stream(200)
    platt = PlattScaling().fit(scores, y)
    document = to_dict(OnlineRecalibrator(FrozenEstimator(platt)).fit(scores, y))
    document["parameters"]["recalibrator"] = to_dict(platt)
    del document["parameters"]["recalibrator"]["schema"]
    with pytest.raises(ValueError, match="in a FrozenEstimator"):
        from_dict(document)
    pipeline = make_pipeline(PlattScaling(), TemperatureScaling()).fit(scores, y)
    online = OnlineRecalibrator(FrozenEstimator(pipeline)).fit(scores, y)
    with pytest.raises(ValueError, match="the class Pipeline"):
        to_dict(online)


@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["no", "yes"]])
@pytest.mark.parametrize("input", ["probability", "logit"])
@pytest.mark.parametrize("width", [1, 2])
def test_single_rows_take_a_short_way_to_the_same_state(width, input, labels):
    """A row in a tuple takes the way of batches, with all their checks."""
    scores, y = _stream(60)
    scores[7:9] = 0, 1
    labels = np.array(labels)[y.astype(int)]
    if input == "logit":
        scores = logit(scores.clip(1e-9, 1 - 1e-9))
    columns = {"probability": (1 - scores, scores), "logit": (-scores / 2, scores / 2)}
    rows = np.column_stack(columns[input][2 - width :])
    if width == 1:
        rows = scores[:, None]
    short, lists, long = (
        OnlineRecalibrator(input=input).fit(rows[:40], labels[:40]) for _ in range(3)
    )
    for row, label in zip(rows[40:], labels[40:], strict=True):
        assert short._one_plain_row(row[None], np.array([label])) is not None
        assert long._one_plain_row((tuple(row),), (label,)) is None
        short.partial_fit(row[None], np.array([label]))
        lists.partial_fit([row.tolist()], [label])
        long.partial_fit((tuple(row),), (label,))
    for other in (lists, long):
        assert short._learned.tolist() == other._learned.tolist()
        assert short._faded.tolist() == other._faded.tolist()
        assert short.weights_.tolist() == other.weights_.tolist()
        assert short.n_rows_ == other.n_rows_ == 60


@pytest.mark.parametrize("bad", [np.nan, np.inf, -0.1, 1.1, 1e200])
@pytest.mark.parametrize("input", ["probability", "logit"])
def test_the_short_way_of_single_rows_refuses_what_batches_refuse(bad, input):
    scores, y = _stream(40)
    if input == "logit":
        scores = logit(scores)
    one = OnlineRecalibrator(input=input).fit(scores, y)
    two = OnlineRecalibrator(input=input).fit(np.column_stack((1 - scores, scores)), y)
    valid = input == "logit" and abs(bad) < 2
    for online, rows in (
        (one, [[bad]]),
        (two, [[0.5, bad]]),
        (two, [[bad, 0.5]]),
        (two, [[0.5]]),
        (one, [[0.5, [0.5]]]),
    ):
        n_columns = online.n_features_in_
        if valid and len(rows[0]) == n_columns and np.size(rows[0][-1]) == 1:
            online.partial_fit(np.array(rows), np.array([True]))
            continue
        with pytest.raises((ValueError, TypeError)):
            online.partial_fit(rows, [True])
    with pytest.raises(ValueError, match="unknown label 2"):
        one.partial_fit(np.array([[0.5]]), np.array([2]))


def test_a_fixed_map_is_a_member_and_survives_clone():
    scores, y = _stream()
    platt = PlattScaling().fit(scores[:1000], y[:1000])
    online = clone(OnlineRecalibrator(FrozenEstimator(platt), half_life=100))
    online.partial_fit(scores[1000:2000], y[1000:2000])
    assert online.members_ == ("scores", "fixed", "learning", "forgetting")
    alone = OnlineRecalibrator(FrozenEstimator(platt))
    alone.fit(scores[:2], y[:2])
    alone.weights_ = np.array([0.0, 1.0, 0.0, 0.0])
    assert alone.predict_proba(scores) == pytest.approx(platt.predict_proba(scores))
    # The labels of the columns are those of the fixed map.
    one_class = OnlineRecalibrator(FrozenEstimator(platt))
    one_class.partial_fit(scores[:1], y[:1])
    assert one_class.classes_.tolist() == [False, True]


def test_logits_are_the_log_odds_of_probabilities():
    scores, y = _stream()
    by_logit = OnlineRecalibrator(input="logit").fit(logit(scores), y)
    by_score = OnlineRecalibrator().fit(scores, y)
    expected = by_score.predict_proba(scores)
    assert by_logit.predict_proba(logit(scores)) == pytest.approx(expected, rel=1e-9)
    two = OnlineRecalibrator().fit(np.c_[1 - scores, scores], y)
    found = two.predict_proba(np.c_[1 - scores, scores])
    assert found == pytest.approx(expected, rel=1e-9)


def test_several_classes_learn_the_confidence_of_the_predicted_class():
    rng = np.random.default_rng(0)
    logits = 3 * rng.normal(size=(20_000, 4))
    truth = np.exp(0.4 * logits)
    truth /= truth.sum(axis=1, keepdims=True)
    y = (rng.random((20_000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    names = np.array(["a", "b", "c", "d"])[y]
    online = OnlineRecalibrator(input="logit")
    for batch in np.split(np.arange(20_000), 20):
        online.partial_fit(logits[batch], names[batch], classes=list("abcd"))
    found = online.predict_proba(logits)
    raw = np.exp(logits - logits.max(axis=1, keepdims=True))
    raw /= raw.sum(axis=1, keepdims=True)
    assert found.sum(axis=1) == pytest.approx(1)
    assert log_loss(y, found) < log_loss(y, raw) - 0.2
    assert (online.predict(logits) == online.classes_[logits.argmax(axis=1)]).all()
    frozen = FrozenEstimator(TemperatureScaling(input="logit").fit(logits, names))
    both = OnlineRecalibrator(frozen, input="logit").fit(logits, names)
    assert both.weights_[1] > 0.9


def test_weights_repeat_the_loss_and_zero_changes_nothing():
    scores, y = _stream(500)
    plain = OnlineRecalibrator().fit(scores, y)
    ones = OnlineRecalibrator().fit(scores, y, sample_weight=np.ones(500))
    assert (plain.weights_ == ones.weights_).all()
    counts = np.repeat([1.0, 0.0], 500)
    twice = (np.tile(scores, 2), np.tile(y, 2))
    zeros = OnlineRecalibrator().fit(*twice, sample_weight=counts)
    zeros.partial_fit(*twice, sample_weight=counts)
    plain.partial_fit(scores, y)
    assert zeros.n_rows_ == plain.n_rows_ == 1000
    assert (zeros.weights_ == plain.weights_).all()
    assert (zeros.predict_proba(scores) == plain.predict_proba(scores)).all()
    heavy = OnlineRecalibrator().fit(scores, y, sample_weight=np.full(500, 1e4))
    assert np.isfinite(heavy.weights_).all()
    certain = OnlineRecalibrator(switching_rate=0.0)
    certain.fit([0.0, 1.0] * 50, [1, 0] * 50)
    assert np.isfinite(certain.predict_proba([0.0, 1.0])).all()


def test_a_monitor_watches_it():
    rng = np.random.default_rng(0)
    z = rng.normal(size=20_000)
    scores, y = expit(z), rng.random(20_000) < expit(z - 1)
    online = OnlineRecalibrator().fit(scores[:2000], y[:2000])
    bare, watched = CalibrationMonitor(), CalibrationMonitor()
    for batch in np.split(np.arange(2000, 20_000), 36):
        bare.partial_fit(scores[batch], y[batch])
        watched.partial_fit(online.predict_proba(scores[batch])[:, 1], y[batch])
        online.partial_fit(scores[batch], y[batch])
    assert bare.alarm_
    assert not watched.alarm_


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"half_life": 0}, "half_life"),
        ({"switching_rate": 1.0}, "switching_rate"),
        ({"input": "score"}, "input"),
        ({"recalibrator": PlattScaling()}, "in a FrozenEstimator"),
    ],
)
def test_parameters_are_checked(params, message):
    with pytest.raises(ValueError, match=message):
        OnlineRecalibrator(**params).fit([0.2, 0.7], [0, 1])


def test_what_does_not_fit_together_is_refused():
    scores, y = _stream(100)
    frozen = FrozenEstimator(PlattScaling().fit(scores, y))
    with pytest.raises(ValueError, match="both must use the same scores"):
        OnlineRecalibrator(frozen, input="logit").fit(logit(scores), y)
    online = OnlineRecalibrator().fit(scores, y)
    with pytest.raises(ValueError, match="classes must stay"):
        online.partial_fit(scores, y, classes=[0, 2])
    with pytest.raises(ValueError, match="2 features"):
        online.partial_fit(np.c_[1 - scores, scores], y)
    with pytest.raises(ValueError, match="classes="):
        OnlineRecalibrator().partial_fit([0.2, 0.4], ["no", "no"])
    online.set_params(half_life=100)
    with pytest.raises(ValueError, match="half_life is now 100"):
        online.partial_fit(scores, y)


@pytest.mark.slow
def test_figures_of_a_stream_are_those_of_the_page():
    doc = Path(__file__).parents[1] / "doc"
    page = (doc / "evidence" / "arena.md").read_text("utf-8")
    table = page[page.index("| stream of 20,000 samples |") :].splitlines()
    titles, _, *rows = ([cell.strip() for cell in line.split("|")] for line in table)
    told = dict(zip(titles, next(row for row in rows if row[1] == "jump"), strict=True))
    found = [excess("jump", 20_000, seed) for seed in range(5)]
    for title in ("scores", "fixed map", "refitted to 2,000", "OnlineRecalibrator"):
        mean = np.mean([by_method[title] for by_method in found])
        name = f"`{title}`" if title[0] == "O" else title
        assert f"{mean:.4f}".lstrip("0") == told[name]


@pytest.mark.slow
def test_streams():
    found = {
        name: excess(name, 20_000, seed=0)
        for name in ("stable", "jump", "slow drift", "adversarial switching")
    }
    for name, by_method in found.items():
        if name != "stable":
            assert by_method["OnlineRecalibrator"] < by_method["fixed map"] / 1.5
    assert found["stable"]["with the fixed map"] < 0.001
