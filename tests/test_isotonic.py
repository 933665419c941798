"""Isotonic calibration against pooling adjacent violators by hand, and
scikit-learn's.
"""

import numpy as np
import pytest
from _twins import isotonic, repeated
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from skcalib import IsotonicCalibration
from skcalib.maps import Rows, Scores


def _sample(n=200, values=50):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, values + 1, n) / values
    return scores, rng.random(n) < scores**1.5


@pytest.mark.parametrize("values", [5, 50, 10**6])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_pools_adjacent_violators(values, weighted):
    scores, y = _sample(values=values)
    weights = np.random.default_rng(1).random(len(y)) if weighted else None
    model = IsotonicCalibration().fit(scores, y, weights)
    expected = isotonic(scores, y, weights)
    np.testing.assert_allclose(
        model.predict_proba(scores)[:, 1], [expected[s] for s in scores], atol=1e-12
    )


@pytest.mark.parametrize("input", ["probability", "logit"])
def test_map_is_that_of_scikit_learn(input):
    scores, y = _sample()
    scores = scores if input == "probability" else 6 * scores - 3
    model = IsotonicCalibration(input=input).fit(scores, y)
    grid = np.linspace(scores.min() - 0.0, scores.max(), 999)
    expected = IsotonicRegression(out_of_bounds="clip").fit(scores, y).predict(grid)
    np.testing.assert_allclose(model.predict_proba(grid)[:, 1], expected, atol=1e-12)


def test_map_is_linear_between_knots_and_constant_beyond():
    # .4 and .6 are pooled to 1/2: knots (.2, 0), (.4, 1/2), (.6, 1/2), (.8, 1)
    model = IsotonicCalibration().fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    assert model.score_knots_.tolist() == [0.2, 0.4, 0.6, 0.8]
    assert model.probability_knots_.tolist() == [0, 0.5, 0.5, 1]
    found = model.predict_proba([0.0, 0.3, 0.5, 0.7, 1.0])[:, 1]
    np.testing.assert_allclose(found, [0, 0.25, 0.5, 0.75, 1])


def test_ties_are_one_point():
    # .5 has events 1, 0, 0: its value is 1/3, whatever the order of the rows
    for y in ([1, 0, 0, 1], [0, 0, 1, 1]):
        model = IsotonicCalibration().fit([0.5, 0.5, 0.5, 0.9], y)
        assert model.predict_proba([0.5])[0, 1] == pytest.approx(1 / 3)


def test_decreasing_labels_give_the_base_rate():
    model = IsotonicCalibration().fit([0.1, 0.2, 0.3, 0.4], [1, 1, 0, 0])
    assert model.predict_proba([0.0, 0.25, 1.0])[:, 1].tolist() == [0.5] * 3


def test_scale_of_logits_is_their_own():
    # Half way on the log-odds: expit(1) does not lie half way between expit(0) and
    # expit(2).
    scores, y = np.array([0.0, 2.0]), np.array([0, 1])
    assert (
        IsotonicCalibration(input="logit").fit(scores, y).predict_proba([1.0])[0, 1]
        == 0.5
    )
    probability = (
        IsotonicCalibration().fit(expit(scores), y).predict_proba(expit([1.0]))[0, 1]
    )
    assert probability == pytest.approx((expit(1) - 0.5) / (expit(2) - 0.5))


@pytest.mark.parametrize("weighted", [False, True])
def test_centered_knots_are_mean_scores(weighted):
    scores, y = _sample()
    weights = np.arange(200) % 3 + 1 if weighted else np.ones(200)
    model = IsotonicCalibration(centered=True).fit(
        scores, y, weights if weighted else None
    )
    fitted = isotonic(scores, y, weights)
    for score, value in zip(model.score_knots_, model.probability_knots_, strict=True):
        block = [abs(fitted[s] - value) < 1e-12 for s in scores]
        assert score == pytest.approx(np.average(scores[block], weights=weights[block]))
    inside = np.linspace(model.score_knots_[0], model.score_knots_[-1], 500)
    assert np.all(np.diff(model.predict_proba(inside)[:, 1]) > 0)
    if weighted:
        rows = IsotonicCalibration(centered=True).fit(*repeated(weights, scores, y))
        np.testing.assert_allclose(rows.score_knots_, model.score_knots_)


@pytest.mark.parametrize("centered", [False, True])
def test_map_never_falls(centered):
    scores, y = _sample(values=10**6)
    grid = np.linspace(0, 1, 2001)
    probabilities = (
        IsotonicCalibration(centered=centered).fit(scores, y).predict_proba(grid)[:, 1]
    )
    assert np.all(np.diff(probabilities) >= 0)
    assert probabilities.min() >= 0
    assert probabilities.max() <= 1


@pytest.mark.parametrize("centered", [False, True])
def test_denormal_gaps_are_steps(centered):
    # The slope between such knots would be infinite: half way between them the map has
    # the value of the right one.
    tiny = 5e-324
    model = IsotonicCalibration(centered=centered).fit(
        [0.0, 2 * tiny, 4 * tiny, 0.5], [0, 1, 0, 1]
    )
    found = model.predict_proba([0.0, tiny, 2 * tiny, 3 * tiny, 4 * tiny, 1.0])[:, 1]
    expected = [0, 0.5, 0.5, 0.5, 0.5, 1]
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_monotone_maps_of_the_scores_change_nothing_at_the_scores():
    scores, y = _sample()
    scores = np.clip(scores, 0.01, 0.99)
    plain = IsotonicCalibration().fit(scores, y).predict_proba(scores)
    np.testing.assert_array_equal(
        IsotonicCalibration().fit(scores**3, y).predict_proba(scores**3), plain
    )
    on_logits = (
        IsotonicCalibration(input="logit")
        .fit(logit(scores), y)
        .predict_proba(logit(scores))
    )
    np.testing.assert_array_equal(on_logits, plain)


@pytest.mark.parametrize("scale", [1.0, 40.0], ids=["probabilities", "log-odds"])
@pytest.mark.parametrize("n_knots", [1, 2, 3, 40, 3000])
def test_interpolation_is_that_of_numpy_and_exact_at_the_knots(n_knots, scale):
    rng = np.random.default_rng(n_knots)
    knots = (
        np.unique(np.append(rng.random(n_knots - 1), 1.0)) * scale - (scale > 1) * 20
    )
    values = np.sort(rng.choice([0.0, 1e-300, 0.1, 1 / 3, 0.7, 1.0], n_knots))
    low, high = knots[0] - 0.5 * (scale > 1), knots[-1] + 0.5 * (scale > 1)
    scores = np.sort(
        np.concatenate(
            (rng.uniform(max(low, 0) if scale == 1 else low, high, 5000), knots)
        )
    )
    model = IsotonicCalibration()
    model.score_knots_ = knots
    model.probability_knots_ = values
    node = model._map(Scores())
    found = Rows(scores[:, None])(node)[:, 0]
    np.testing.assert_allclose(
        found, np.interp(scores, knots, values), rtol=0, atol=1e-15
    )
    np.testing.assert_array_equal(Rows(knots[:, None])(node)[:, 0], values)
    assert np.diff(found).min() >= 0
    assert found.min() >= values[0]
    assert found.max() <= values[-1]
