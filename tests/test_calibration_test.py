"""Tests of calibration: closed forms by hand, resampling against its definition. Levels: test_validity.py."""

import math
import time
from functools import partial

import numpy as np
import pytest
from _catalog import refused
from _twins import bins, equal_mass_edges
from scipy.stats import binom, chi2, norm
from sklearn.metrics import brier_score_loss

from skcalib.binning import EqualWidth, UniqueScores
from skcalib.metrics import (
    calibration_error,
    calibration_test,
    expected_calibration_error,
    kde_calibration_error,
    smooth_calibration_error,
    sweep_calibration_error,
)


def sample(n=300, power=1.0, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.integers(1, 40, n) / 40
    return rng.random(n) < scores**power, scores, rng.integers(1, 4, n)


@pytest.mark.parametrize("weighted", [False, True])
def test_spiegelhalter_equals_the_loop(weighted):
    labels, scores, weights = sample()
    weights = weights if weighted else None
    w = weights if weighted else [1] * len(scores)
    excess = math.fsum(k * (y - s) * (1 - 2 * s) for y, s, k in zip(labels, scores, w, strict=True))
    variance = math.fsum(k * (1 - 2 * s) ** 2 * s * (1 - s) for s, k in zip(scores, w, strict=True))
    z = excess / math.sqrt(variance)
    found = calibration_test(labels, scores, method="spiegelhalter", sample_weight=weights)
    assert found == pytest.approx((z, 2 * norm.sf(abs(z))), rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_hosmer_lemeshow_equals_the_loop(weighted):
    labels, scores, weights = sample(power=1.1)
    weights = weights if weighted else None
    groups = bins(scores, labels, equal_mass_edges(scores, 10, weights), weights)
    statistic = 0.0
    for rows in groups:
        n = sum(w for _, _, w in rows)
        observed, expected = sum(w * y for _, y, w in rows), sum(w * s for s, _, w in rows)
        statistic += (observed - expected) ** 2 / (expected * (1 - expected / n))
    found = calibration_test(labels, scores, method="hosmer_lemeshow", sample_weight=weights)
    assert len(groups) == 10  # degrees of freedom
    assert found == pytest.approx((statistic, chi2.sf(statistic, 10)), rel=1e-9)


def test_hosmer_lemeshow_by_hand():
    # Two bins of ten rows: (5 - 2)^2 / (2 * .8) + (8 - 8)^2 / ... = 5.625 on two degrees of freedom: exp(-5.625 / 2).
    scores = np.repeat([0.2, 0.8], 10)
    labels = np.r_[np.ones(5), np.zeros(5), np.ones(8), np.zeros(2)]
    found = calibration_test(labels, scores, method="hosmer_lemeshow", binning=UniqueScores())
    assert found == pytest.approx((5.625, math.exp(-5.625 / 2)))
    assert found == calibration_test(labels, scores, method="hosmer_lemeshow")  # ten bins merge to the two scores


def test_resampling_pvalue_is_that_of_the_binomial():
    # One distinct score s and the statistic |mean label - s|: the number of events is binomial.
    labels = np.arange(60) < 24
    scores = np.full(60, 0.3)
    extreme = np.abs(np.arange(61) - 18) >= 6
    exact = binom.pmf(np.arange(61), 60, 0.3)[extreme].sum()
    for metric, n_resamples in ((None, 4000), (smooth_calibration_error, 400)):
        found = calibration_test(labels, scores, metric=metric, n_resamples=n_resamples, random_state=0)
        assert found.statistic == pytest.approx(0.1, abs=1e-6)
        three_standard_errors = 3 * math.sqrt(exact * (1 - exact) / n_resamples)
        assert found.pvalue == pytest.approx(exact, abs=three_standard_errors)


def test_the_default_statistic_is_the_sweep():
    labels, scores, weights = sample(power=1.2)
    for weight in (None, weights, weights / 3):
        found = calibration_test(labels, scores, sample_weight=weight, n_resamples=10, random_state=0)
        assert found.statistic == pytest.approx(sweep_calibration_error(labels, scores, sample_weight=weight))
    # The same test through the general path: other random numbers, the same distribution.
    quick = calibration_test(labels, scores, n_resamples=1000, random_state=0)
    general = calibration_test(
        labels, scores, n_resamples=1000, metric=partial(sweep_calibration_error), random_state=1
    )
    assert general.statistic == pytest.approx(quick.statistic)
    assert general.pvalue == pytest.approx(quick.pvalue, abs=0.06)


@pytest.mark.parametrize("metric", [None, kde_calibration_error])
def test_a_weight_of_two_is_two_draws(metric):
    labels, scores, weights = sample(120, power=1.3, seed=4)
    options = {"metric": metric, "n_resamples": 600}
    weighted = calibration_test(labels, scores, sample_weight=weights, random_state=0, **options)
    repeated = calibration_test(np.repeat(labels, weights), np.repeat(scores, weights), random_state=1, **options)
    assert weighted.statistic == pytest.approx(repeated.statistic, rel=1e-9)
    assert weighted.pvalue == pytest.approx(repeated.pvalue, abs=0.08)


def test_miscalibrated_scores_are_found():
    rng = np.random.default_rng(0)
    scores = rng.random(1000)
    labels = rng.random(1000) < 0.2 + 0.6 * scores
    for method in ("resampling", "spiegelhalter", "hosmer_lemeshow"):
        assert calibration_test(labels, scores, method=method, random_state=0).pvalue < 0.01
    assert calibration_test(labels, scores, random_state=0).pvalue == 1 / 1000


def test_spiegelhalter_is_blind_to_errors_that_balance():
    # P(y | s) = s^a: the integral of (s^a - s)(1 - 2 s) over [0, 1], which z is made of, is 0 for a = 2 and small near.
    labels, scores, _ = sample(1000, power=2)
    assert calibration_test(labels, scores, method="spiegelhalter").pvalue > 0.05
    assert calibration_test(labels, scores, random_state=0).pvalue == 1 / 1000


def test_any_metric_of_labels_and_scores():
    labels, scores, weights = sample()
    for metric in (brier_score_loss, calibration_error, partial(expected_calibration_error, binning=EqualWidth(5))):
        found = calibration_test(labels, scores, metric=metric, n_resamples=19, random_state=0)
        assert found.statistic == pytest.approx(metric(labels, scores))
        assert 1 / 20 <= found.pvalue <= 1
        threads = calibration_test(labels, scores, metric=metric, n_resamples=19, n_jobs=2, random_state=0)
        assert threads == found
        calibration_test(labels, scores, metric=metric, n_resamples=5, sample_weight=weights, random_state=0)


def test_many_classes():
    rng = np.random.default_rng(1)
    proba = rng.dirichlet(np.ones(3), 400)
    names = np.array(["a", "b", "c"])
    calibrated = names[[rng.choice(3, p=row) for row in proba]]
    off = names[[rng.choice(3, p=row**2 / (row**2).sum()) for row in proba]]
    for options in (
        {},
        {"multiclass": "marginal"},
        {"metric": expected_calibration_error, "multiclass": "marginal"},
        {"sample_weight": np.full(400, 2), "metric": smooth_calibration_error},
        {"method": "spiegelhalter"},
        {"method": "hosmer_lemeshow"},
    ):
        assert calibration_test(off, proba, n_resamples=99, random_state=0, **options).pvalue <= 0.02
        if "sample_weight" not in options:  # a row that is counted twice is not two labels
            assert calibration_test(calibrated, proba, n_resamples=99, random_state=0, **options).pvalue > 0.02
    # Top-label is the binary problem of the confidence.
    top = calibration_test(calibrated == names[proba.argmax(1)], proba.max(1), method="spiegelhalter")
    assert calibration_test(calibrated, proba, method="spiegelhalter") == pytest.approx(top)


def test_nothing_random():
    for method in ("resampling", "spiegelhalter", "hosmer_lemeshow"):
        right = calibration_test([0, 1, 1], [0.0, 1.0, 1.0], method=method, random_state=0)
        assert right == (0.0, 1.0)
        wrong = calibration_test([1, 1, 1], [0.0, 1.0, 1.0], method=method, labels=[0, 1], random_state=0)
        assert wrong.pvalue == (1 / 1000 if method == "resampling" else 0.0)
    assert calibration_test([0, 1], [0.5, 0.5], method="spiegelhalter") == (0.0, 1.0)
    assert calibration_test([1], [0.5], labels=[0, 1], random_state=0).pvalue == 1.0


def test_ninety_nine_resamples_are_quick():
    labels, scores, _ = sample(400)
    start = time.perf_counter()
    calibration_test(labels, scores, n_resamples=99, random_state=0)
    assert time.perf_counter() - start < 0.2


def test_bad_parameters():
    y, s = [0, 1, 1], [0.2, 0.6, 0.7]
    with refused(ValueError, "method", "'bootstrap'"):
        calibration_test(y, s, method="bootstrap")
    with refused(ValueError, "metric", "spiegelhalter"):
        calibration_test(y, s, method="spiegelhalter", metric=calibration_error)
    with refused(ValueError, "binning", "hosmer_lemeshow", "resampling"):
        calibration_test(y, s, binning=5)
    with refused(TypeError, "metric", "'ece'"):
        calibration_test(y, s, metric="ece")
    with refused(ValueError, "n_resamples", "0"):
        calibration_test(y, s, n_resamples=0)
    with refused(ValueError, "marginal", "top_label"):
        calibration_test(y, s, method="spiegelhalter", multiclass="marginal")
    with refused(ValueError, "sum to 1", "row 0"):
        calibration_test([0, 1, 2], [[0.5, 0.5, 0.5]] * 3, multiclass="marginal")
