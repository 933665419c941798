"""Forecasts do not depend on which of two labels counts as the event."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

from skcalib import (
    RecalibratedClassifierCV,
    Recalibrator,
    SplineCalibration,
    StackedRecalibrator,
)


def rows(n_rows, factor, seed=0):
    """Return log-odds that are `factor` times too far from 0, and labels."""
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(-1, 1.5, n_rows)
    return factor * log_odds, rng.random(n_rows) < 1 / (1 + np.exp(-log_odds))


@pytest.mark.parametrize("n_rows", [70, 301, 1000])
@pytest.mark.parametrize("factor", [1.0, 1.6])
@pytest.mark.parametrize("scale", ["probability", "logit"])
@pytest.mark.parametrize("kind", [SplineCalibration, StackedRecalibrator, Recalibrator])
def test_a_recalibrator(kind, scale, factor, n_rows):
    scores, y = rows(n_rows, factor)
    swapped = -scores
    if scale == "probability":
        scores = 1 / (1 + np.exp(-scores))
        swapped = 1 - scores
    model = kind(input=scale).fit(scores, y)
    mirrored = kind(input=scale).fit(swapped, ~y)
    np.testing.assert_allclose(
        mirrored.predict_proba(swapped)[:, ::-1],
        model.predict_proba(scores),
        rtol=0,
        atol=1e-10,
    )
    chosen, mirrored_chosen = (getattr(m, "chosen_", m) for m in (model, mirrored))
    assert type(mirrored_chosen) is type(chosen)


def test_as_many_events_as_others():
    """Then the scores say which label comes first."""
    scores, y = rows(400, 1.6)
    events, others = np.flatnonzero(y), np.flatnonzero(~y)
    balanced = np.sort(np.concatenate([events[:90], others[:90]]))
    scores, y = scores[balanced], y[balanced]
    assert y.mean() == 0.5
    stack = StackedRecalibrator(input="logit").fit(scores, y)
    mirrored = StackedRecalibrator(input="logit").fit(-scores, ~y)
    np.testing.assert_allclose(
        mirrored.predict_proba(-scores)[:, 1],
        stack.predict_proba(scores)[:, 0],
        rtol=0,
        atol=1e-10,
    )


def test_two_columns_and_weights():
    scores, y = rows(300, 1.6)
    both = np.column_stack((-scores / 2, scores / 2))
    weight = np.random.default_rng(1).integers(1, 4, 300)
    stack = StackedRecalibrator(input="logit").fit(both, y, weight)
    mirrored = StackedRecalibrator(input="logit").fit(both[:, ::-1], ~y, weight)
    np.testing.assert_allclose(
        mirrored.predict_proba(both[:, ::-1])[:, ::-1],
        stack.predict_proba(both),
        rtol=0,
        atol=1e-10,
    )


def test_the_default_around_a_classifier():
    X, y = make_classification(500, weights=[0.7], flip_y=0.2, random_state=0)
    model = RecalibratedClassifierCV(GaussianNB()).fit(X, y)
    mirrored = RecalibratedClassifierCV(GaussianNB()).fit(X, 1 - y)
    assert type(mirrored.chosen_) is type(model.chosen_)
    np.testing.assert_allclose(
        mirrored.predict_proba(X)[:, ::-1], model.predict_proba(X), rtol=0, atol=1e-10
    )
