"""Score decompositions: they add up to the score, and each part is what it says."""

import math

import numpy as np
import pytest
from _twins import bins, isotonic
from sklearn.metrics import brier_score_loss, log_loss

from skcalib.binning import EqualMass, EqualWidth, PoolAdjacentViolators, UniqueScores
from skcalib.metrics import brier_decomposition, log_loss_decomposition


def sample(seed=0, n=200, ties=True):
    rng = np.random.default_rng(seed)
    scores = rng.integers(1, 20, n) / 20 if ties else rng.random(n)
    return scores, rng.random(n) < scores**1.5, rng.integers(1, 4, n)


def brier(y, q):
    return (q - y) ** 2


def log(y, q):
    q = min(max(q, 2**-52), 1 - 2**-52)
    return -math.log(q) if y else -math.log(1 - q)


def mean_score(score, forecasts, labels, weights):
    terms = [
        w * score(y, q) for q, y, w in zip(forecasts, labels, weights, strict=True)
    ]
    return math.fsum(terms) / sum(weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("decomposition", "score"),
    [(brier_decomposition, brier), (log_loss_decomposition, log)],
)
def test_corp_is_the_difference_of_three_mean_scores(decomposition, score, weighted):
    # Dimitriadis et al.: S of the forecast, of its isotonic recalibration, of the base
    # rate.
    scores, labels, weights = sample()
    w = weights.tolist() if weighted else [1] * len(scores)
    fit = isotonic(scores, labels, w)
    base_rate = sum(a * b for a, b in zip(w, labels, strict=True)) / sum(w)
    forecast = mean_score(score, scores, labels, w)
    recalibrated = mean_score(score, [fit[s] for s in scores], labels, w)
    climate = mean_score(score, [base_rate] * len(scores), labels, w)
    found = decomposition(labels, scores, sample_weight=weights if weighted else None)
    assert found == pytest.approx(
        (forecast - recalibrated, climate - recalibrated, climate), abs=1e-12
    )
    assert found.score == pytest.approx(forecast, abs=1e-12)


@pytest.mark.parametrize(
    "binning", [EqualMass(5), EqualWidth(4), UniqueScores(), 3], ids=repr
)
def test_binned_brier_is_murphy(binning):
    scores, labels, weights = sample(1)
    edges = (EqualMass(3) if binning == 3 else binning).bin_edges(
        scores, labels, weights.astype(float)
    )
    total = weights.sum()
    base_rate = weights @ labels / total
    miscalibration = discrimination = score = 0.0
    for rows in bins(scores, labels, edges, weights):
        n = sum(w for _, _, w in rows)
        s, y = sum(w * s for s, _, w in rows) / n, sum(w * y for _, y, w in rows) / n
        miscalibration += n / total * (s - y) ** 2
        discrimination += n / total * (y - base_rate) ** 2
        # of the forecast that says the bin's mean score
        score += sum(w * (s - y) ** 2 for _, y, w in rows) / total
    found = brier_decomposition(labels, scores, binning=binning, sample_weight=weights)
    assert found == pytest.approx(
        (miscalibration, discrimination, base_rate * (1 - base_rate)), abs=1e-12
    )
    assert found.score == pytest.approx(score, abs=1e-12)


def test_binned_log_loss_is_kullback_leibler():
    # Two bins of ten, means .2 and .8, frequencies .4 and .7, base rate .55.
    scores = np.repeat([0.1, 0.3, 0.8], [5, 5, 10])
    labels = np.r_[np.ones(4), np.zeros(6), np.ones(7), np.zeros(3)]

    def divergence(y, q):
        return y * math.log(y / q) + (1 - y) * math.log((1 - y) / (1 - q))

    found = log_loss_decomposition(labels, scores, binning=EqualWidth(2))
    assert found.miscalibration == pytest.approx(
        (divergence(0.4, 0.2) + divergence(0.7, 0.8)) / 2
    )
    assert found.discrimination == pytest.approx(
        (divergence(0.4, 0.55) + divergence(0.7, 0.55)) / 2
    )
    assert found.uncertainty == pytest.approx(
        -0.55 * math.log(0.55) - 0.45 * math.log(0.45)
    )


@pytest.mark.parametrize(
    "binning", [None, UniqueScores(), PoolAdjacentViolators()], ids=repr
)
def test_adds_up_to_the_score_of_the_forecast_itself(binning):
    scores, labels, weights = sample(2, ties=False)
    scores[:3] = 0, 1, 1  # infinitely wrong at times: clipped as scikit-learn does
    for found, expected in (
        (
            brier_decomposition(labels, scores, binning=binning, sample_weight=weights),
            brier_score_loss,
        ),
        (
            log_loss_decomposition(
                labels, scores, binning=binning, sample_weight=weights
            ),
            log_loss,
        ),
    ):
        assert found.score == pytest.approx(
            expected(labels, scores, sample_weight=weights), rel=1e-12
        )


def test_parts_are_not_negative_and_vanish_where_they_should():
    scores, labels, _ = sample(3)
    for decomposition in (brier_decomposition, log_loss_decomposition):
        for binning in (None, EqualMass(5), UniqueScores()):
            assert min(decomposition(labels, scores, binning=binning)) > -1e-12
        # The isotonic fit has nothing to gain from itself; a monotone map changes its
        # discrimination not at all.
        fit = isotonic(scores, labels)
        recalibrated = decomposition(labels, np.array([fit[s] for s in scores]))
        assert recalibrated.miscalibration == pytest.approx(0, abs=1e-12)
        assert recalibrated.discrimination == pytest.approx(
            decomposition(labels, scores).discrimination, abs=1e-12
        )
        assert decomposition(labels, scores**3).discrimination == pytest.approx(
            recalibrated.discrimination, abs=1e-12
        )


def test_one_row_and_one_class():
    assert brier_decomposition([1], [0.25], labels=[0, 1]) == pytest.approx(
        (0.5625, 0, 0)
    )
    assert log_loss_decomposition([1, 1], [0.25, 0.5], labels=[0, 1]) == pytest.approx(
        (math.log(8) / 2, 0, 0)
    )


def test_many_classes():
    rng = np.random.default_rng(4)
    proba = rng.dirichlet(np.ones(3), 200)
    labels = np.array([rng.choice(3, p=row) for row in proba])
    # The Brier score of K classes is the sum of the one-vs-rest scores, the marginal
    # decomposition their mean.
    marginal = brier_decomposition(labels, proba, multiclass="marginal")
    assert 3 * marginal.score == pytest.approx(
        np.sum((proba - np.eye(3)[labels]) ** 2) / 200
    )
    top = brier_decomposition(labels == proba.argmax(1), proba.max(1))
    assert brier_decomposition(labels, proba) == pytest.approx(top, abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_isotonic_blocks_are_bins(weighted):
    scores, labels, weights = sample(5)
    weights = weights.astype(float) if weighted else None
    edges = PoolAdjacentViolators().bin_edges(scores, labels, weights)
    frequency = {
        s: sum(w * y for _, y, w in rows) / sum(w for _, _, w in rows)
        for rows in bins(scores, labels, edges, weights)
        for s, _, _ in rows
    }
    assert frequency == pytest.approx(isotonic(scores, labels, weights), abs=1e-12)
