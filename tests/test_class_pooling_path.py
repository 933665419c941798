"""``class_pooling="auto"``: the path by its definition, what it gains, weights, logits
and their probabilities.
"""

import numpy as np
import pytest
from _twins import repeated
from scipy.special import softmax

from skcalib import BetaCalibration, PlattScaling, QuadraticScaling
from skcalib._fitting import partial_pooling
from skcalib._fitting.partial_pooling import ClassProblems

METHODS = [BetaCalibration, QuadraticScaling, PlattScaling]
PATH = [1, 0.3, 0.1, 0.03]
over_methods = pytest.mark.parametrize("method", METHODS)


def sample(n=300, n_classes=3, spread=1.0, seed=0):
    """Probabilities of a model, and labels of maps that differ between the classes by
    `spread`.
    """
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=(n, n_classes))
    own = 0.7 + spread * np.linspace(-0.6, 0.6, n_classes)
    truth = softmax(own * logits + spread * np.arange(n_classes), axis=1)
    return softmax(logits, axis=1), (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(
        axis=1
    )


def log_loss(model, proba, y):
    return -np.mean(np.log(model.predict_proba(proba)[np.arange(len(y)), y]))


@pytest.mark.parametrize(
    ("method", "spread"),
    [
        (BetaCalibration, 1.5),
        (QuadraticScaling, 0.0),
        (QuadraticScaling, 1.5),
        (PlattScaling, 0.4),
    ],
)
@pytest.mark.slow
def test_the_path_by_exact_leave_one_out(method, spread):
    # The rule, with a fit without each row in place of the approximation.
    proba, y = sample(90, spread=spread)
    losses, best, rest = [], 0, ~np.eye(len(y), dtype=bool)
    for index, class_pooling in enumerate(PATH):
        model = method(class_pooling=class_pooling, clip=None)
        each = [
            log_loss(model.fit(proba[rest[i]], y[rest[i]]), proba[[i]], y[[i]])
            for i in range(len(y))
        ]
        losses.append(sum(each))
        best = index if losses[index] < losses[best] - 1 else best
        if index > 0 and losses[index] > losses[index - 1]:
            break
    found = method(class_pooling="auto", clip=None).fit(proba, y)
    assert found.class_pooling_ == PATH[best]
    expected = (
        method(class_pooling=PATH[best], clip=None).fit(proba, y).predict_proba(proba)
    )
    np.testing.assert_allclose(found.predict_proba(proba), expected, atol=1e-6)


@pytest.mark.parametrize(
    "method",
    [BetaCalibration(), QuadraticScaling(), PlattScaling(smooth_targets=False)],
    ids=str,
)
@pytest.mark.parametrize(
    ("class_pooling", "weighted"), [(1.0, False), (0.1, False), (0.1, True)]
)
def test_the_loss_of_rows_that_are_left_out(method, class_pooling, weighted):
    # Against fits without each row, near the same pooled map.
    proba, y = sample(45)
    weight = (
        np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
        if weighted
        else None
    )
    problems = ClassProblems.of_classes(proba, y, weight)
    pooled, losses = method._fit_pooled(problems), []
    for i in range(len(y)):
        if weighted:  # a row of weight 3 is three rows: one of them is left out
            less = np.where(np.arange(len(y)) == i, weight - 1, weight)
            rows = less > 0
            others = ClassProblems.of_classes(proba[rows], y[rows], less[rows])
        else:
            others = ClassProblems.of_classes(
                np.delete(proba, i, axis=0), np.delete(y, i), None
            )
        coefs = others.fit_near(pooled, class_pooling)
        log_odds = [
            c @ pooled.features(column[[i]])[:, 0]
            for c, column in zip(coefs, problems.log_odds, strict=True)
        ]
        one = 1 / (1 + np.exp(-np.array(log_odds)))
        losses.append(-np.log(one[y[i]] / one.sum()))
    exact = np.sum(losses if weight is None else weight * losses)
    found = problems.leave_one_out_loss(
        pooled, class_pooling, problems.fit_near(pooled, class_pooling)
    )
    in_sample = log_loss_of_fit(problems, pooled, class_pooling, y, weight)
    assert abs(found - exact) < 0.2 * (exact - in_sample), (found, exact, in_sample)


def log_loss_of_fit(problems, pooled, class_pooling, y, weight):
    coefs = problems.fit_near(pooled, class_pooling)
    log_odds = [
        c @ pooled.features(column)
        for c, column in zip(coefs, problems.log_odds, strict=True)
    ]
    one = 1 / (1 + np.exp(-np.array(log_odds)))
    losses = -np.log(one[y, np.arange(len(y))] / one.sum(axis=0))
    return losses.sum() if weight is None else weight @ losses


@over_methods
def test_is_weak_where_that_predicts_better(method):
    proba, y = sample(1500, n_classes=5)
    auto, held = (
        method(class_pooling="auto").fit(proba, y),
        method(class_pooling=1.0).fit(proba, y),
    )
    assert auto.class_pooling_ < 1
    fresh, labels = sample(1500, n_classes=5, seed=1)
    assert log_loss(auto, fresh, labels) <= log_loss(held, fresh, labels)
    # One temperature for all classes: nothing to gain, and the fit is the one of the
    # strongest ridge exactly.
    proba, y = sample(1500, n_classes=5, spread=0)
    auto, held = (
        method(class_pooling="auto").fit(proba, y),
        method(class_pooling=1.0).fit(proba, y),
    )
    assert auto.class_pooling_ == held.class_pooling_ == 1
    np.testing.assert_array_equal(auto.predict_proba(proba), held.predict_proba(proba))


@over_methods
def test_many_classes_keep_the_strongest(method, monkeypatch):
    proba, y = sample(1500, n_classes=5)
    monkeypatch.setattr(partial_pooling, "_MOST_CLASSES", 4)
    assert method(class_pooling="auto").fit(proba, y).class_pooling_ == 1


@over_methods
def test_weights_are_repeated_rows(method):
    proba, y = sample(200)
    weights = np.random.default_rng(2).integers(0, 4, len(y))
    weighted = method(class_pooling="auto").fit(proba, y, weights)
    rows = method(class_pooling="auto").fit(*repeated(weights, proba, y))
    assert weighted.class_pooling_ == rows.class_pooling_
    np.testing.assert_allclose(
        weighted.predict_proba(proba), rows.predict_proba(proba), rtol=1e-6
    )


@over_methods
def test_nothing_is_held_for_two_classes_and_top_labels(method):
    proba, y = sample()
    model = method(class_pooling="auto").fit(proba, y)
    assert model.class_pooling_ > 0
    assert model.fit(proba[:, 0], y == 0).class_pooling_ == 0
    assert model.set_params(multiclass="top_label").fit(proba, y).class_pooling_ == 0
    assert method(class_pooling=0).fit(proba, y).class_pooling_ == 0


def test_is_the_default():
    assert all(
        method().class_pooling == "auto"
        for method in (BetaCalibration, QuadraticScaling, PlattScaling)
    )
    proba, y = sample()
    assert PlattScaling(loss="squared").fit(proba, y).class_pooling_ == 0
    # fewer than 30 rows a class
    assert PlattScaling().fit(proba[:89], y[:89]).class_pooling_ == 1


@over_methods
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_logits_and_their_probabilities_with_sure_forecasts(method, dtype):
    # Next to 1 a probability loses what it leaves to the others, but its row holds
    # them.
    rng = np.random.default_rng(0)
    logits = 12 * rng.normal(size=(400, 4))
    y = (0.3 * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    logits -= logits.max(axis=1, keepdims=True)
    logits = np.maximum(logits, -30)
    proba = softmax(logits, axis=1).astype(dtype)
    assert np.mean(proba.max(axis=1) > 1 - 1e-7) > 0.1
    of_logits = method(input="logit", clip=None).fit(logits, y).predict_proba(logits)
    of_probabilities = method(clip=None).fit(proba, y).predict_proba(proba)
    np.testing.assert_allclose(
        of_probabilities, of_logits, atol=1e-9 if dtype == np.float64 else 1e-5
    )
    clipped = np.log(np.clip(proba.astype(float), 2**-52, 1))
    again = method(input="logit", clip=None).fit(clipped, y).predict_proba(clipped)
    np.testing.assert_allclose(
        of_probabilities, again, atol=1e-9 if dtype == np.float64 else 1e-5
    )
