"""The ranked probability score and its parts against sums over samples and classes."""

import numpy as np
import pytest
from _catalog import refused
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import cross_val_score

from skcalib.binning import EqualWidth
from skcalib.metrics import (
    brier_decomposition,
    get_scorer,
    ranked_probability_decomposition,
    ranked_probability_score,
)

RNG = np.random.default_rng(0)
PROBA = RNG.dirichlet([1, 2, 2, 1], 200)
Y = (RNG.random((200, 1)) > PROBA.cumsum(axis=1)).sum(axis=1)
WEIGHT = RNG.integers(0, 4, 200)


def _plain(ranks, proba, weight):
    """The squared distance between both distribution functions, summed over classes."""
    total = 0.0
    for rank, p, w in zip(ranks, proba, weight, strict=True):
        for k in range(len(p) - 1):
            total += w * (sum(p[: k + 1]) - (rank <= k)) ** 2
    return total / sum(weight)


def test_score_equals_the_sum_over_samples_and_classes():
    expected = _plain(Y, PROBA, WEIGHT)
    found = ranked_probability_score(Y, PROBA, sample_weight=WEIGHT)
    assert found == pytest.approx(expected, rel=1e-12)
    repeated = ranked_probability_score(
        np.repeat(Y, WEIGHT), np.repeat(PROBA, WEIGHT, 0)
    )
    assert repeated == pytest.approx(expected, rel=1e-12)
    assert ranked_probability_score(Y, np.eye(4)[Y]) == 0
    # The farthest miss costs K - 1, a miss by one class 1.
    assert ranked_probability_score([1], [[0, 0, 0, 1]], labels=[1, 2, 3, 4]) == 3
    assert ranked_probability_score([3], [[0, 0, 0, 1]], labels=[1, 2, 3, 4]) == 1


def test_two_classes_are_the_brier_score():
    y, s = Y > 1, PROBA[:, 2:].sum(axis=1)
    brier = brier_score_loss(y, s)
    for labels, order in ((y, None), (np.where(y, "yes", "no"), ["yes", "no"])):
        assert ranked_probability_score(labels, s, order=order) == pytest.approx(brier)
    parts = ranked_probability_decomposition(y, s)
    assert list(parts) == pytest.approx(list(brier_decomposition(y, s)))


def test_parts_are_sums_over_thresholds():
    parts = ranked_probability_decomposition(Y, PROBA, sample_weight=WEIGHT)
    expected = np.zeros(3)
    for k in range(3):
        above = PROBA[:, k + 1 :].sum(axis=1)
        expected += list(brier_decomposition(Y > k, above, sample_weight=WEIGHT))
    assert list(parts) == pytest.approx(expected, abs=1e-12)
    score = ranked_probability_score(Y, PROBA, sample_weight=WEIGHT)
    assert parts.score == pytest.approx(score)
    assert str(parts).startswith(f"Ranked probability score {score:.3f} = ")
    binned = ranked_probability_decomposition(Y, PROBA, binning=EqualWidth(5))
    assert "of the bin means" in str(binned)


def test_words_need_an_order():
    names = np.array(["low", "mid", "top", "xtra"])
    shuffled = np.array(["b_low", "d_mid", "a_top", "c_xtra"])
    columns = np.argsort(shuffled)
    with refused(ValueError, "order of the labels", "order="):
        ranked_probability_score(names[Y], PROBA)
    expected = ranked_probability_score(Y, PROBA)
    found = ranked_probability_score(names[Y], PROBA, order=names)
    assert found == pytest.approx(expected)
    options = {"order": shuffled, "labels": np.sort(shuffled)}
    found = ranked_probability_score(shuffled[Y], PROBA[:, columns], **options)
    assert found == pytest.approx(expected)
    for order in (names[:3], [*names[:3], "low"], ["low"] * 5):
        with refused(ValueError, "order must name each", "once"):
            ranked_probability_score(names[Y], PROBA, order=order)
    with refused(ValueError, "sum"):
        ranked_probability_score(Y, PROBA / 2)


def test_scorer_of_ordered_classes():
    X = RNG.normal(size=(200, 2)) + Y[:, None]
    model = LogisticRegression()
    found = cross_val_score(
        model, X, Y, scoring=get_scorer("neg_ranked_probability_score"), cv=3
    )
    assert np.all((found < 0) & (found > -0.6))
    names = np.array(["c", "a", "d", "b"])
    scorer = get_scorer("neg_ranked_probability_score", order=names)
    assert cross_val_score(model, X, names[Y], scoring=scorer, cv=3) == pytest.approx(
        found, rel=1e-3
    )
