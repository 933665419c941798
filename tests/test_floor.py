"""The learned floor: by a plain search over the candidates, strictly increasing, the
same on every scale.
"""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logit, softmax

from skcalib import MatrixScaling, PlattScaling, TemperatureScaling, VectorScaling
from skcalib._fitting.floor import floored, learned_floor
from skcalib._rows import blocks

FLOORS = [0, 1e-5, 1e-3, 0.01, 0.03, 0.1]


def sample(kind, n_classes, n=300, seed=0):
    """Probabilities and labels: of a forest, which are often exactly 0, or of a model
    that is never sure.
    """
    rng = np.random.default_rng(seed)
    shape = 0.3 if kind == "votes" else 5
    scores = rng.dirichlet(np.full(n_classes, shape), n)
    truth = 0.85 * scores + 0.15 / n_classes
    if kind == "votes":
        scores = np.stack([rng.multinomial(20, row) for row in scores]) / 20
    return scores, np.array([rng.choice(n_classes, p=row) for row in truth])


def smoothed(y, weight, n_classes):
    """Platt's targets (n, K): one row of each of two classes is of the other; of more
    classes it is one of all rows.
    """
    total = np.bincount(y, weight, n_classes)[y] if n_classes == 2 else weight.sum()
    doubt = (1 / (total + 2) * np.ones(len(y)))[:, None]
    return np.where(
        np.arange(n_classes) == y[:, None], 1 - doubt, doubt / (n_classes - 1)
    )


def by_search(scores, y, weight=None):
    """The floor by its definition: a search for the temperature at each candidate, on
    the logarithms themselves.
    """
    n_classes, weight = scores.shape[1], np.ones(len(y)) if weight is None else weight
    targets = smoothed(y, weight, n_classes)
    best, best_likelihood = None, -np.inf
    for floor in FLOORS:
        if n_classes * floor > 0.3 + 1e-9:
            continue
        lifted = (1 - n_classes * floor) * scores + floor
        logits = np.log(np.clip(lifted, 2.0**-52, 1 - 2.0**-52))

        def loss(log_inverse, logits=logits):
            return -weight @ (
                targets * log_softmax(np.exp(log_inverse) * logits, axis=1)
            ).sum(axis=1)

        likelihood = -minimize_scalar(
            loss, bounds=(-8, 5), method="bounded", options={"xatol": 1e-9}
        ).fun
        if likelihood > best_likelihood + 0.5:
            best, best_likelihood = floor, likelihood
    return best


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_classes", [2, 3, 12])
@pytest.mark.parametrize("kind", ["votes", "never sure"])
def test_the_floor_is_that_of_a_plain_search(kind, n_classes, seed):
    scores, y = sample(kind, n_classes, seed=seed)
    expected = by_search(scores, y)
    assert expected > 0 or kind == "never sure"
    assert learned_floor(scores, y, None, "probability") == expected
    weight = np.random.default_rng(seed).integers(1, 4, len(y)).astype(float)
    found = learned_floor(scores, y, weight, "probability")
    assert found == by_search(scores, y, weight)
    repeats = weight.astype(int)
    assert found == learned_floor(
        scores.repeat(repeats, axis=0), y.repeat(repeats), None, "probability"
    )


def test_blocks_of_rows_change_nothing(monkeypatch):
    samples = [sample("votes", n_classes) for n_classes in (2, 4)]
    expected = [learned_floor(scores, y, None, "probability") for scores, y in samples]
    monkeypatch.setattr(blocks, "_BLOCK_ELEMENTS", 40)
    assert [
        learned_floor(scores, y, None, "probability") for scores, y in samples
    ] == expected


def test_all_floors_together_stay_below_three_tenths():
    # Uniform labels: every larger floor is better, and the largest that 20 and 400
    # classes allow is taken.
    rng = np.random.default_rng(0)
    for n_classes, largest in (
        (2, 0.1),
        (3, 0.1),
        (4, 0.03),
        (10, 0.03),
        (11, 0.01),
        (30, 0.01),
        (31, 1e-3),
        (300, 1e-3),
        (301, 1e-5),
    ):
        scores = np.eye(n_classes)[rng.integers(0, n_classes, 400)]
        scores[::2] = rng.dirichlet(np.ones(n_classes), 200)
        y = scores.argmax(axis=1)
        y[1::20] = rng.integers(0, n_classes, 20)
        assert learned_floor(scores, y, None, "probability") == largest


@pytest.mark.parametrize("n_classes", [2, 4])
def test_logits_are_their_probabilities(n_classes):
    scores, y = sample("votes", n_classes)
    scores = (scores + 1e-12) / (1 + n_classes * 1e-12)
    logits = np.log(scores) + np.random.default_rng(0).normal(size=(len(y), 1))
    expected = learned_floor(scores, y, None, "probability")
    assert learned_floor(logits, y, None, "logit") == expected > 0
    lifted = floored(scores, expected, "probability")
    np.testing.assert_allclose(
        lifted, (1 - n_classes * expected) * scores + expected, rtol=1e-15
    )
    np.testing.assert_allclose(
        softmax(floored(logits, expected, "logit"), axis=1), lifted, rtol=1e-12
    )
    if n_classes == 2:
        log_odds = logits[:, [1]] - logits[:, [0]]
        assert learned_floor(log_odds, y, None, "logit") == expected
        np.testing.assert_allclose(
            floored(log_odds, expected, "logit")[:, 0], logit(lifted[:, 1]), atol=1e-11
        )
        np.testing.assert_array_equal(
            floored(scores[:, [1]], expected, "probability"), lifted[:, [1]]
        )


@pytest.mark.parametrize("floor", FLOORS[1:])
def test_is_strictly_increasing(floor):
    p = np.unique(
        np.concatenate(
            [
                10.0 ** -np.arange(16),
                np.linspace(0, 1, 1001),
                1 - 10.0 ** -np.arange(15),
            ]
        )
    )
    assert (np.diff(floored(p[:, None], floor, "probability")[:, 0]) > 0).all()
    z = np.linspace(-30, 30, 2001)
    assert (np.diff(floored(z[:, None], floor, "logit")[:, 0]) > 0).all()


def test_ranking_and_decisions_stay():
    scores, y = sample("votes", 2)
    fit = PlattScaling().fit(scores[:, 1], y)
    assert fit.floor_ > 0
    p = np.linspace(0, 1, 2001)
    assert (np.diff(fit.predict_proba(p)[:, 1]) > 0).all()
    scores, y = sample("votes", 4)
    fit = TemperatureScaling().fit(scores, y)
    assert fit.floor_ > 0
    proba = fit.predict_proba(scores)
    np.testing.assert_array_equal(
        np.argsort(proba, axis=1, kind="stable"),
        np.argsort(scores, axis=1, kind="stable"),
    )


@pytest.mark.parametrize("method", [TemperatureScaling, VectorScaling, MatrixScaling])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_that_gain_nothing_are_untouched(method, dtype):
    scores, y = sample("never sure", 5)
    logits = (np.log(scores) + 3).astype(dtype)
    auto, plain = (
        method(input="logit", clip=clip).fit(logits, y) for clip in ("auto", None)
    )
    assert auto.floor_ == 0
    assert auto.inverse_temperature_ == plain.inverse_temperature_
    np.testing.assert_array_equal(
        auto.predict_proba(logits), plain.predict_proba(logits)
    )


@pytest.mark.parametrize("scale", [1e99, 1e5, 1e-5, 1e-99, 0.0])
@pytest.mark.parametrize("n_classes", [1, 2, 4])
@pytest.mark.parametrize("right", [True, False])
def test_extreme_logits(scale, n_classes, right):
    rng = np.random.default_rng(0)
    y = rng.integers(0, max(n_classes, 2), 200)
    logits = scale * (
        rng.normal(size=(200, n_classes))
        + (2 * y[:, None] - 1 if n_classes == 1 else 0)
    )
    if n_classes > 1:
        logits[np.arange(200), y if right else (y + 1) % n_classes] += 3 * scale
    floor = learned_floor(logits, y, None, "logit")
    assert floor in FLOORS
    assert np.isfinite(
        TemperatureScaling(input="logit").fit(logits, y).predict_proba(logits)
    ).all()


def test_no_row_of_a_class():
    scores, y = sample("votes", 3)
    rows = y != 1
    assert learned_floor(scores[rows], y[rows], None, "probability") == by_search(
        scores[rows], y[rows]
    )
    fit = PlattScaling(classes=[0, 1]).fit([0.1, 0.4, 0.9], [1, 1, 1])
    assert fit.floor_ == 0


def test_single_precision_has_the_floor_and_the_temperature_of_double():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 6, (600, 5)).astype(np.float32)
    y = np.where(rng.random(600) < 0.2, rng.integers(0, 5, 600), logits.argmax(axis=1))
    single, double = (
        TemperatureScaling(input="logit").fit(scores, y)
        for scores in (logits, logits.astype(float))
    )
    assert single.floor_ == double.floor_ > 0
    assert single.temperature_ == pytest.approx(double.temperature_, rel=1e-5)
    np.testing.assert_allclose(
        single.predict_proba(logits), double.predict_proba(logits), atol=1e-6
    )
    blocks = [
        double.predict_proba(logits[rows]) for rows in (slice(0, 7), slice(7, None))
    ]
    np.testing.assert_array_equal(double.predict_proba(logits), np.vstack(blocks))


def test_beyond_256_classes_fewer_rows_are_looked_at():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, (2000, 300))
    y = np.array([rng.choice(300, p=row) for row in softmax(logits, axis=1)])
    assert learned_floor(logits, y, None, "logit") <= 1e-5  # calibrated
    y = np.where(
        rng.random(2000) < 0.3, rng.integers(0, 300, 2000), logits.argmax(axis=1)
    )
    # sure, and wrong in three of ten rows
    assert learned_floor(8 * logits, y, None, "logit") > 1e-5
