"""Verification of scaling-binning on fresh rows."""

import numpy as np
import pytest

from skcalib import ScalingBinning
from skcalib.binning import UniqueScores
from skcalib.metrics import calibration_error


def problem(n, seed, power=1.0):
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    return scores, (rng.random(n) < scores**power).astype(int)


def test_estimate_is_the_debiased_error_of_the_binned_model():
    model = ScalingBinning().fit(*problem(1000, 0))
    scores, labels = problem(1000, 1)
    estimate, upper_bound, verified = model.verify(scores, labels, 0.1, random_state=0)
    assert estimate == calibration_error(
        labels,
        model.predict_proba(scores)[:, 1],
        binning=UniqueScores(),
        method="debiased",
    )
    assert estimate <= upper_bound
    assert verified is (upper_bound <= 0.1)
    assert not model.verify(scores, labels, upper_bound / 2, random_state=0).verified


@pytest.mark.slow
def test_bound_covers_the_true_error_of_the_binned_model():
    # A model binned for y ~ s meets rows with y ~ s^1.5; its true error is known from
    # 10^6 rows.
    model = ScalingBinning(binning=8).fit(*problem(4000, 0))
    scores, labels = problem(1_000_000, 1, power=1.5)
    truth = calibration_error(
        labels, model.predict_proba(scores)[:, 1], binning=UniqueScores()
    )
    bounds = [
        model.verify(
            *problem(800, seed, power=1.5), 0.1, n_resamples=300, random_state=seed
        ).upper_bound
        for seed in range(2, 202)
    ]
    # 200 runs at 90 %: standard error 2.1 %; three of them and 1 % for the bootstrap's
    # own error
    assert np.mean(np.array(bounds) >= truth) >= 0.9 - 3 * 0.021 - 0.01


def test_many_classes():
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(3), size=3000)
    labels = np.array(["a", "b", "c"])[[rng.choice(3, p=row) for row in scores]]
    fit, fresh = (scores[:1500], labels[:1500]), (scores[1500:], labels[1500:])
    top_label = ScalingBinning(multiclass="top_label").fit(*fit)
    predicted = top_label.predict(fresh[0])
    confidence = np.sum(
        top_label.predict_proba(fresh[0]) * (predicted[:, None] == top_label.classes_),
        axis=1,
    )
    right = predicted == fresh[1]
    expected = calibration_error(right, confidence, binning=UniqueScores())
    assert top_label.verify(*fresh, 0.1, random_state=0).estimate == pytest.approx(
        expected, abs=1e-12
    )
    marginal = ScalingBinning(normalize=False).fit(*fit)
    expected = calibration_error(
        fresh[1],
        marginal.predict_proba(fresh[0]),
        multiclass="marginal",
        binning=UniqueScores(),
    )
    assert marginal.verify(*fresh, 0.1, random_state=0).estimate == pytest.approx(
        expected, abs=1e-12
    )
    with pytest.raises(ValueError, match="normalize=False"):
        ScalingBinning().fit(*fit).verify(*fresh, 0.1)


def test_bad_input():
    model = ScalingBinning().fit(*problem(100, 0))
    scores, labels = problem(100, 1)
    for arguments, message in [
        ((scores, labels, 0), "max_error"),
        ((scores, labels, 0.1, 0.5), "confidence_level"),
        ((scores, labels[:-1], 0.1), "99 rows"),
        ((scores, labels + 5, 0.1), "unknown label"),
        ((scores[:6], labels[:6], 0.1), "fewer than two rows"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.verify(*arguments)


def test_clusters_of_equal_rows_are_verified_later():
    rng = np.random.default_rng(0)
    fitted = rng.random(2000)
    model = ScalingBinning(binning=5).fit(fitted, rng.random(2000) < fitted)
    scores, cluster = np.repeat(rng.random(80), 10), np.repeat(np.arange(80), 10)
    y = np.repeat(rng.random(80) < scores[::10], 10)
    rows = model.verify(scores, y, 0.1, n_resamples=99, random_state=0)
    found = model.verify(
        scores, y, 0.1, n_resamples=99, clusters=cluster, random_state=0
    )
    assert found.estimate == rows.estimate
    assert found.upper_bound > 1.05 * rows.upper_bound


def test_weights_count_rows_or_do_not():
    model = ScalingBinning(binning=5).fit(*problem(2000, 0))
    scores, y = problem(600, 1)
    options = {"n_resamples": 199, "random_state": 0}
    twice = model.verify(scores, y, 0.1, sample_weight=np.full(600, 2), **options)
    again = model.verify(np.tile(scores, 2), np.tile(y, 2), 0.1, **options)
    assert twice == pytest.approx(again)
    plain = model.verify(scores, y, 0.1, **options)
    weight = np.full(600, 2.5)
    equal = model.verify(
        scores, y, 0.1, sample_weight=weight, weight_type="importance", **options
    )
    assert equal == pytest.approx(plain, abs=1e-3)
    with pytest.warns(UserWarning, match="not integers"):
        assert (
            model.verify(scores, y, 0.1, sample_weight=weight, **options).upper_bound
            < plain.upper_bound
        )


@pytest.mark.slow
def test_bound_covers_under_importance_weights():
    rng = np.random.default_rng(0)
    model = ScalingBinning(binning=8).fit(*problem(4000, 0))
    scores, labels = problem(1_000_000, 1, power=1.5)
    truth = calibration_error(
        labels, model.predict_proba(scores)[:, 1], binning=UniqueScores()
    )
    found = []
    for seed in range(2, 202):
        weights = {
            "sample_weight": 1 + rng.pareto(2.2, 800),
            "weight_type": "importance",
        }
        found.append(
            model.verify(
                *problem(800, seed, power=1.5),
                0.1,
                n_resamples=300,
                random_state=seed,
                **weights,
            )
        )
    assert (
        np.mean([one.upper_bound >= truth for one in found]) >= 0.9 - 3 * 0.021 - 0.01
    )
