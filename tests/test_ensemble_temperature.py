"""Ensemble temperature scaling: the weights against a fine grid, and what it keeps of
temperature scaling.
"""

import numpy as np
import pytest

from skcalib import EnsembleTemperatureScaling, TemperatureScaling


def sample(n=400, n_classes=3, seed=0, doubt=0.2):
    """An over-confident model with a share of rows whose label is drawn at random."""
    rng = np.random.default_rng(seed)
    logits = 3 * rng.standard_normal((n, n_classes))
    p = np.exp(logits / 2 - logits.max(axis=1, keepdims=True) / 2)
    p = (1 - doubt) * p / p.sum(axis=1, keepdims=True) + doubt / n_classes
    return logits, np.array([rng.choice(n_classes, p=row) for row in p])


def log_loss(model, logits, y):
    return -np.mean(np.log(model.predict_proba(logits)[np.arange(len(y)), y]))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_the_best_of_a_fine_grid(n_classes):
    logits, y = sample(n_classes=n_classes)
    model = EnsembleTemperatureScaling(input="logit", clip=None).fit(logits, y)
    tempered = TemperatureScaling(input="logit", clip=None).fit(logits, y)
    assert model.temperature_ == tempered.temperature_
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    rows = np.arange(len(y))
    parts = (
        tempered.predict_proba(logits)[rows, y],
        p[rows, y],
        np.full(len(y), 1 / n_classes),
    )
    best = np.inf
    for first in np.linspace(0, 1, 101):
        for second in np.linspace(0, 1 - first, 101):
            mixture = (
                first * parts[0] + second * parts[1] + (1 - first - second) * parts[2]
            )
            best = min(best, -np.mean(np.log(mixture)))
    found = log_loss(model, logits, y)
    assert best - 1e-4 <= found <= best + 1e-9
    assert model.weights_.sum() == pytest.approx(1)
    expected = model.weights_ @ np.stack(
        (tempered.predict_proba(logits)[:, 0], p[:, 0], np.full(len(y), 1 / n_classes))
    )
    np.testing.assert_allclose(model.predict_proba(logits)[:, 0], expected, rtol=1e-9)


def test_beats_temperature_scaling_where_some_rows_are_noise():
    logits, y = sample(4000)
    fit, held_out = slice(0, 2000), slice(2000, None)
    ensemble, single = (
        log_loss(
            method(input="logit", clip=None).fit(logits[fit], y[fit]),
            logits[held_out],
            y[held_out],
        )
        for method in (EnsembleTemperatureScaling, TemperatureScaling)
    )
    assert ensemble < single - 0.002


def test_never_fits_worse_than_temperature_scaling_or_the_scores():
    for seed in range(10):
        logits, y = sample(60, seed=seed, doubt=0.0)
        models = [
            method(input="logit", clip=None).fit(logits, y)
            for method in (EnsembleTemperatureScaling, TemperatureScaling)
        ]
        assert log_loss(models[0], logits, y) <= log_loss(models[1], logits, y) + 1e-12


def test_keeps_the_order_of_the_classes():
    logits, y = sample()
    found = (
        EnsembleTemperatureScaling(input="logit").fit(logits, y).predict_proba(logits)
    )
    np.testing.assert_array_equal(found.argsort(axis=1), logits.argsort(axis=1))


def test_one_hot_scores_stay_finite():
    # Certain, and wrong in 3 of 20: temperature and doubt together say 17/20 (two
    # classes).
    scores = np.repeat([0.0, 1.0], 20)
    y = np.tile(np.arange(20) < 3, 2) ^ (scores > 0.5)
    model = EnsembleTemperatureScaling().fit(scores, y)
    np.testing.assert_allclose(
        model.predict_proba([0.0, 1.0])[:, 1], [3 / 20, 17 / 20], atol=1e-6
    )


def test_separable_classes_stay_finite():
    scores = np.linspace(0.01, 0.99, 30)
    proba = (
        EnsembleTemperatureScaling()
        .fit(scores, scores > 0.5)
        .predict_proba([0.0, 0.3, 0.7, 1.0])
    )
    assert np.isfinite(np.log(proba)).all()


def test_one_class_is_refused():
    with pytest.raises(
        ValueError, match="EnsembleTemperatureScaling needs rows of two classes"
    ):
        EnsembleTemperatureScaling(classes=[0, 1]).fit([0.2, 0.8], [1, 1])
