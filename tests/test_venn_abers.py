"""Venn-Abers: the two isotonic fits with the new score added, done anew for each score;
validity; speed.
"""

import time

import numpy as np
import pytest
from _twins import isotonic

from skcalib import VennAbers


def interval_twin(scores, labels, new_score, weights=None):
    """Add the score with either label and refit, as the definition says; the added row
    has weight 1.
    """
    weights = [1.0] * len(scores) if weights is None else list(weights)
    bounds = []
    for label in (0, 1):
        fitted = isotonic([*scores, new_score], [*labels, label], [*weights, 1.0])
        bounds.append(fitted[float(new_score)])
    return bounds


def draw(seed):
    """Small calibration sets of every kind: ties, few rows, falling and rising
    frequencies, one label only.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    scores = rng.random(n)
    if seed % 2:
        levels = int(rng.integers(1, 9))
        scores = np.round(scores * levels) / levels
    probability = [
        scores,
        1 - scores,
        np.full(n, 0.5),
        np.full(n, float(seed % 8 == 3)),
    ][seed % 4]
    labels = (rng.random(n) < probability).astype(int)
    weights = rng.choice([0.3, 1.0, 2.0, 40.0], n) if seed % 3 == 0 else None
    return rng, scores, labels, weights


@pytest.mark.parametrize("seed", range(60))
def test_equals_two_isotonic_refits_for_each_score(seed):
    rng, scores, labels, weights = draw(seed)
    model = VennAbers(classes=[0, 1]).fit(scores, labels, sample_weight=weights)
    new = np.concatenate((np.unique(scores), rng.random(6), [0.0, 1.0]))
    expected = np.array([interval_twin(scores, labels, s, weights) for s in new])
    lower, upper = model.predict_pair(new)
    np.testing.assert_allclose(lower, expected[:, 0], rtol=0, atol=1e-11)
    np.testing.assert_allclose(upper, expected[:, 1], rtol=0, atol=1e-11)
    np.testing.assert_allclose(
        model.predict_proba(new)[:, 1],
        expected[:, 1] / (1 - expected[:, 0] + expected[:, 1]),
    )


def test_by_hand():
    # Rows (.2, 0), (.4, 1), (.6, 0), (.8, 1). A new .5: as an event the labels 0, 1,
    # [1], 0, 1 pool 1, 1, 0 to 2/3; as a non-event 0, 1, [0], 0, 1 pool 1, 0, 0 to 1/3.
    # Then 2/3 / (1 - 1/3 + 2/3) = 1/2.
    model = VennAbers().fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    lower, upper = model.predict_pair([0.5])
    np.testing.assert_allclose([lower[0], upper[0]], [1 / 3, 2 / 3])
    np.testing.assert_allclose(model.predict_proba([0.5]), [[0.5, 0.5]])


def test_probability_lies_between_and_never_at_the_ends():
    rng = np.random.default_rng(0)
    scores = np.concatenate((rng.random(100), [0, 1]))
    model = VennAbers().fit(scores, scores > 0.5)  # separable
    new = np.linspace(0, 1, 301)
    lower, upper = model.predict_pair(new)
    probability = model.predict_proba(new)[:, 1]
    assert (lower <= probability).all()
    assert (probability <= upper).all()
    assert ((probability > 0) & (probability < 1)).all()
    assert (np.diff(probability) >= 0).all()


def test_one_class_only():
    # Three non-events: an event added at the top is alone there, elsewhere it pools
    # with those above.
    model = VennAbers(classes=[0, 1]).fit([0.2, 0.4, 0.6], [0, 0, 0])
    lower, upper = model.predict_pair([0.1, 0.5, 0.6, 0.9])
    np.testing.assert_array_equal(lower, 0)
    np.testing.assert_allclose(upper, [1 / 4, 1 / 2, 1 / 2, 1])


def test_groups_are_tied_scores():
    rng = np.random.default_rng(1)
    scores = rng.random(500)
    labels = rng.random(500) < scores
    new = rng.random(50)
    grouped = VennAbers(max_n_knots=20).fit(scores, labels)
    # The twin: replace each score by the number of its group, 25 rows each (the scores
    # are distinct).
    cuts = np.sort(scores)[24::25][:-1]
    ties = VennAbers(input="logit").fit(
        np.searchsorted(cuts, scores, side="left").astype(float), labels
    )
    midpoints = np.sort(scores)[24::25][:-1] / 2 + np.sort(scores)[25::25] / 2
    expected = ties.predict_pair(
        np.searchsorted(midpoints, new, side="left").astype(float)
    )
    np.testing.assert_allclose(grouped.predict_pair(new), expected)
    assert len(grouped.score_knots_) == 20
    exact = VennAbers().fit(scores, labels).predict_proba(new)
    np.testing.assert_allclose(
        VennAbers(max_n_knots=1000).fit(scores, labels).predict_proba(new),
        exact,
        atol=0.02,
    )


def test_log_odds_and_probabilities_give_the_same_map():
    rng = np.random.default_rng(2)
    scores, new = rng.random(80) * 0.98 + 0.01, rng.random(20) * 0.98 + 0.01
    labels = rng.random(80) < scores
    logit = np.log(scores / (1 - scores)), np.log(new / (1 - new))
    np.testing.assert_array_equal(
        VennAbers().fit(scores, labels).predict_proba(new),
        VennAbers(input="logit").fit(logit[0], labels).predict_proba(logit[1]),
    )


def test_interval_of_many_classes():
    rng = np.random.default_rng(3)
    scores = rng.dirichlet(np.ones(3), 200)
    labels = np.array(["a", "b", "c"])[[rng.choice(3, p=row) for row in scores]]
    lower, upper = VennAbers().fit(scores, labels).predict_pair(scores[:9])
    for k, name in enumerate("abc"):
        one = VennAbers().fit(scores[:, k], labels == name).predict_pair(scores[:9, k])
        np.testing.assert_array_equal((lower[:, k], upper[:, k]), one)
    top = VennAbers(multiclass="top_label").fit(scores, labels)
    lower, upper = top.predict_pair(scores[:9])
    confidence = top.predict_proba(scores[:9])[np.arange(9), scores[:9].argmax(axis=1)]
    np.testing.assert_allclose(upper / (1 - lower + upper), confidence)


@pytest.mark.slow
def test_one_of_the_two_probabilities_is_perfectly_calibrated():
    # Vovk and Petej (2014), Theorem 1: with S the label itself, p_S is calibrated, for
    # any distribution of exchangeable rows: E[y - p_S | p_S] = 0. Tested in bins of
    # p_S; each mean within 4 standard errors.
    rng = np.random.default_rng(4)
    residual, chosen = [], []
    for _ in range(4000):
        scores = rng.random(31)
        labels = rng.random(31) < np.sin(3 * scores) ** 2  # not monotone
        model = VennAbers(classes=[False, True]).fit(scores[:-1], labels[:-1])
        lower, upper = model.predict_pair(scores[-1:])
        chosen.append(upper[0] if labels[-1] else lower[0])
        residual.append(labels[-1] - chosen[-1])
    residual, bins = np.array(residual), np.searchsorted([0.25, 0.5, 0.75], chosen)
    for b in range(4):
        inside = residual[bins == b]
        assert abs(inside.mean()) < 4 * inside.std() / np.sqrt(len(inside)) + 1e-12


@pytest.mark.slow
def test_cost_grows_as_a_sort_does():
    seconds = []
    for n in (100_000, 800_000):
        scores = np.random.default_rng(5).random(n)
        labels = np.random.default_rng(6).random(n) < scores
        start = time.process_time()
        VennAbers().fit(scores, labels).predict_proba(scores)
        seconds.append(time.process_time() - start)
    # eight times the rows; quadratic cost would be 64 times
    assert seconds[1] < 24 * max(seconds[0], 0.01)
