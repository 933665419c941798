"""The parameter `clip`: a constant, or a learned floor, for every method on log-odds
and on every scale.
"""

import numpy as np
import pytest
from _catalog import RECALIBRATORS, each_of
from sklearn.base import clone

from skcalib import TemperatureScaling
from skcalib._fitting.floor import learned_floor
from skcalib._rows.links import PROBABILITY_CLIP

CLIPPING = [
    clone(one).set_params(clip=None) for one in RECALIBRATORS if hasattr(one, "clip")
]


@pytest.fixture(params=each_of(CLIPPING))
def clipping(request):
    return clone(request.param)


def forest(n=600, n_classes=2):
    """Votes of a small forest: a fifth of them exactly 0 or 1, which are wrong in one
    row of twelve.
    """
    rng = np.random.default_rng(0)
    votes = (
        np.stack(
            [
                rng.multinomial(10, row)
                for row in rng.dirichlet(np.full(n_classes, 0.3), n)
            ]
        )
        / 10
    )
    y = np.array(
        [rng.choice(n_classes, p=row) for row in 0.85 * votes + 0.15 / n_classes]
    )
    return votes, y


def test_a_constant_is_the_same_as_clipped_scores(clipping):
    scores, y = forest()
    by_hand = np.clip(scores, 0.01, 0.99)
    expected = clone(clipping).fit(by_hand, y).predict_proba(by_hand)
    found = clipping.set_params(clip=0.01).fit(scores, y)
    assert found.clip_ == 0.01
    np.testing.assert_allclose(found.predict_proba(scores), expected, atol=1e-9)


def test_a_constant_clips_the_logarithms_of_many_classes():
    scores, y = forest(n_classes=3)
    logits = np.log(np.clip(scores, 0.01, 0.99))
    expected = (
        TemperatureScaling(input="logit", clip=None)
        .fit(logits, y)
        .predict_proba(logits)
    )
    found = TemperatureScaling(clip=0.01).fit(scores, y).predict_proba(scores)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_none_is_the_constant_of_the_library(clipping):
    scores, y = forest()
    assert clipping.fit(scores, y).clip_ == PROBABILITY_CLIP == 2.0**-52
    assert clipping.floor_ == 0
    by_hand = clone(clipping).set_params(clip=2.0**-52).fit(scores, y)
    np.testing.assert_array_equal(
        clipping.predict_proba(scores), by_hand.predict_proba(scores)
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logits_are_clipped_as_their_probabilities(n_classes):
    scores, y = forest(n_classes=n_classes)
    scores = np.clip(scores, 1e-9, 1)
    scores = scores / scores.sum(axis=1, keepdims=True)
    logits = np.log(scores) + 5
    expected = TemperatureScaling(clip=0.02).fit(scores, y)
    found = TemperatureScaling(clip=0.02, input="logit").fit(logits, y)
    np.testing.assert_allclose(
        found.predict_proba(logits), expected.predict_proba(scores), atol=1e-9
    )
    if n_classes == 2:
        log_odds = logits[:, 1] - logits[:, 0]
        found = TemperatureScaling(clip=0.02, input="logit").fit(log_odds, y)
        np.testing.assert_allclose(
            found.predict_proba(log_odds), expected.predict_proba(scores), atol=1e-9
        )


def test_auto_is_a_fit_above_the_floor(clipping):
    scores, y = forest()
    floor = learned_floor(scores, y, None, "probability")
    assert floor > 0
    fit = clone(clipping).set_params(clip="auto").fit(scores, y)
    assert fit.clip_ == fit.floor_ == floor
    lifted = (1 - 2 * floor) * scores + floor
    expected = clipping.fit(lifted, y).predict_proba(lifted)
    np.testing.assert_allclose(fit.predict_proba(scores), expected, atol=1e-12)


@pytest.mark.slow
def test_auto_pays_on_other_rows_of_a_forest(clipping):
    scores, y = forest(4000)
    fit, held_out = slice(0, 2000), slice(2000, None)
    losses = []
    for clip in (None, "auto"):
        proba = (
            clone(clipping)
            .set_params(clip=clip)
            .fit(scores[fit], y[fit])
            .predict_proba(scores[held_out])
        )
        losses.append(-np.mean(np.log(proba[np.arange(2000), y[held_out]])))
    assert losses[1] < losses[0] + 1e-3


def test_auto_changes_nothing_for_a_model_that_is_never_sure(clipping):
    rng = np.random.default_rng(1)
    scores = rng.uniform(0.05, 0.95, 400)
    y = rng.random(400) < scores
    auto = clone(clipping).set_params(clip="auto").fit(scores, y)
    assert auto.clip_ == auto.floor_ == 0
    np.testing.assert_array_equal(
        auto.predict_proba(scores), clipping.fit(scores, y).predict_proba(scores)
    )


def test_auto_keeps_nothing_of_an_earlier_fit_to_more_classes(clipping):
    again = (
        clipping.set_params(clip="auto").fit(*forest(90, n_classes=3)).fit(*forest())
    )
    assert vars(again).keys() == vars(clone(clipping).fit(*forest())).keys()


@pytest.mark.parametrize("clip", [0, 0.5, -1, 2, "some"])
def test_refuses_a_clip_that_is_not_a_probability_below_a_half(clip):
    with pytest.raises(ValueError, match="clip"):
        TemperatureScaling(clip=clip).fit([0.2, 0.8], [0, 1])
