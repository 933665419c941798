"""The loss that is left after recalibration, against plain twins."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB

from skcalib import IsotonicCalibration, PlattScaling, TemperatureScaling
from skcalib.evaluation import recalibration_gain, refinement_loss
from skcalib.metrics import get_scorer, get_scorer_names


def _sample(n=600, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.random(n)
    return rng.random(n) < truth, truth**2 / (truth**2 + (1 - truth) ** 2)


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_it_is_the_loss_of_recalibrated_scores_out_of_fold(loss):
    y, scores = _sample()
    folds = list(KFold(4).split(scores))
    recalibrated = np.empty(600)
    for train, test in folds:
        fitted = PlattScaling().fit(scores[train], y[train])
        recalibrated[test] = fitted.predict_proba(scores[test])[:, 1]
    plain = {"log": log_loss, "brier": brier_score_loss}[loss]
    options = {"recalibrator": PlattScaling(), "cv": folds, "loss": loss}
    assert refinement_loss(y, scores, **options) == pytest.approx(
        plain(y, recalibrated)
    )
    gain = recalibration_gain(y, scores, **options)
    expected = plain(y, scores) - gain.estimate
    assert refinement_loss(y, scores, **options) == pytest.approx(expected)


def test_in_sample_is_one_fit_to_all():
    y, scores = _sample()
    fitted = TemperatureScaling().fit(scores, y)
    expected = log_loss(y, fitted.predict_proba(scores))
    options = {"recalibrator": TemperatureScaling(), "cv": None}
    assert refinement_loss(y, scores, **options) == pytest.approx(expected)
    names = np.where(y, "yes", "no")
    columns = np.c_[1 - scores, scores]
    assert refinement_loss(names, columns, **options) == pytest.approx(expected)


def test_a_monotone_map_changes_the_loss_and_not_the_refinement():
    y, scores = _sample(3000)
    stretched = scores**3 / (scores**3 + (1 - scores) ** 3)
    options = {"recalibrator": IsotonicCalibration(), "loss": "brier"}
    assert brier_score_loss(y, stretched) > brier_score_loss(y, scores) + 0.01
    found = [refinement_loss(y, s, **options) for s in (scores, stretched)]
    # Not exactly: between two knots the map is a line in other scores.
    assert found[0] == pytest.approx(found[1], abs=1e-5)


def test_weights_and_classes():
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=(500, 3))
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    count = rng.integers(1, 3, 500)
    options = {"recalibrator": TemperatureScaling(), "cv": None}
    counted = refinement_loss(y, proba, sample_weight=count, **options)
    repeated = refinement_loss(
        np.repeat(y, count), np.repeat(proba, count, axis=0), **options
    )
    assert counted == pytest.approx(repeated, rel=1e-9)
    unseen = y < 2
    found = refinement_loss(y[unseen], proba[unseen], labels=[0, 1, 2], **options)
    assert 0 < found < log_loss(y[unseen], proba[unseen], labels=[0, 1, 2])


def test_samples_of_one_class_keep_their_scores():
    scores = [0.2, 0.4, 0.6]
    found = refinement_loss([0, 0, 0], scores, labels=[0, 1], cv=None)
    assert found == pytest.approx(-np.log(1 - np.array(scores)).mean())


def test_what_is_refused():
    y, scores = _sample(50)
    with pytest.raises(ValueError, match="loss"):
        refinement_loss(y, scores, loss="hinge")
    with pytest.raises(TypeError, match="recalibrator"):
        refinement_loss(y, scores, recalibrator=3, cv=None)


@pytest.mark.parametrize("loss", ["log_loss", "brier_score"])
def test_scorers(loss):
    X, y = load_breast_cancer(return_X_y=True)
    model = GaussianNB().fit(X[::2], y[::2])
    scorer = get_scorer(f"neg_refinement_{loss}", recalibrator=PlattScaling(), cv=3)
    expected = refinement_loss(
        y[1::2],
        model.predict_proba(X[1::2]),
        loss="log" if loss == "log_loss" else "brier",
        recalibrator=PlattScaling(),
        cv=3,
    )
    assert scorer(model, X[1::2], y[1::2]) == -expected
    assert f"neg_refinement_{loss}" in get_scorer_names()
