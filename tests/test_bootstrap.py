"""The basic bootstrap, for a metric that is not of this library: against a bootstrap of
rows, and what it promises.
"""

from functools import partial

import numpy as np
import pytest
from _catalog import refused
from sklearn.metrics import brier_score_loss, roc_auc_score

from skcalib.metrics import (
    calibration_error_interval,
    expected_calibration_error,
    smooth_calibration_error,
)

pytestmark = pytest.mark.filterwarnings("ignore:interval=:UserWarning")


def sample(n=400, power=1.6, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    return rng.random(n) < scores**power, scores


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [False, True])
def test_limits_are_those_of_resampled_rows(clustered):
    labels, scores = sample(200)
    clusters, rng = (
        (np.repeat(np.arange(40), 5) if clustered else np.arange(200)),
        np.random.default_rng(1),
    )
    members = [np.flatnonzero(clusters == c) for c in np.unique(clusters)]
    values = []
    for _ in range(500):
        rows = np.concatenate(
            [members[c] for c in rng.integers(0, len(members), len(members))]
        )
        values.append(brier_score_loss(labels[rows], scores[rows]))
    low, high = np.quantile(values, [0.05, 0.95])
    found = calibration_error_interval(
        labels,
        scores,
        metric=brier_score_loss,
        clusters=clusters,
        n_resamples=500,
        random_state=0,
    )
    assert found.estimate == brier_score_loss(labels, scores)
    expected = 2 * found.estimate - high, 2 * found.estimate - low
    assert found[1:] == pytest.approx(expected, abs=0.1 * (high - low))


@pytest.mark.slow
def test_any_function_of_labels_and_scores():
    labels, scores = sample()
    brier = calibration_error_interval(
        labels, scores, metric=brier_score_loss, n_resamples=200, random_state=0
    )
    assert brier.low < brier.estimate == brier_score_loss(labels, scores) < brier.high

    def negative(y, s, sample_weight=None):
        return -brier_score_loss(y, s, sample_weight=sample_weight)

    mirrored = calibration_error_interval(
        labels, scores, metric=negative, n_resamples=200, random_state=0
    )
    # nothing is cut off at 0
    assert mirrored == pytest.approx((-brier.estimate, -brier.high, -brier.low))
    auc = calibration_error_interval(
        labels, scores, metric=roc_auc_score, n_resamples=20, n_jobs=2, random_state=0
    )
    assert auc == calibration_error_interval(
        labels, scores, metric=roc_auc_score, n_resamples=20, random_state=0
    )


@pytest.mark.parametrize(
    "metric", [expected_calibration_error, smooth_calibration_error]
)
def test_an_error_of_this_library_on_request(metric):
    labels, scores = sample()
    options = {
        "metric": metric,
        "interval": "basic",
        "n_resamples": 50,
        "random_state": 0,
    }
    found = calibration_error_interval(labels, scores, **options)
    assert found.estimate == metric(labels, scores)
    assert 0 <= found.low < found.high < 0.5
    # Nothing is below 0, where the mirrored resamples of a calibrated model end.
    assert calibration_error_interval(*sample(power=1.0), **options).low >= 0


@pytest.mark.filterwarnings("error")
def test_it_warns():
    labels, scores = sample(40)
    for options in ({"metric": brier_score_loss}, {"interval": "basic", "binning": 3}):
        with pytest.warns(UserWarning, match="noise makes larger"):
            calibration_error_interval(labels, scores, n_resamples=5, **options)


def test_stratified_resamples_keep_the_class_frequencies():
    labels, scores = sample(200)

    def base_rate(y, s, sample_weight=None):
        return float(np.average(y, weights=sample_weight))

    fixed = calibration_error_interval(
        labels, scores, metric=base_rate, stratify=True, n_resamples=50, random_state=0
    )
    assert fixed.low == pytest.approx(fixed.high)
    free = calibration_error_interval(
        labels, scores, metric=base_rate, n_resamples=50, random_state=0
    )
    assert free.high - free.low > 0.05


@pytest.mark.slow
def test_weights_are_repetitions():
    labels, scores = sample(300)
    weights = np.random.default_rng(1).integers(0, 4, 300)
    options = {
        "metric": smooth_calibration_error,
        "interval": "basic",
        "n_resamples": 300,
        "random_state": 0,
    }
    weighted = calibration_error_interval(
        labels, scores, sample_weight=weights, **options
    )
    repeated = calibration_error_interval(
        np.repeat(labels, weights), np.repeat(scores, weights), **options
    )
    assert weighted.estimate == pytest.approx(repeated.estimate, rel=1e-9)
    assert weighted[1:] == pytest.approx(
        repeated[1:], abs=0.1 * (repeated.high - repeated.low)
    )


def test_one_row_and_bad_input():
    options = {"interval": "basic", "labels": [0, 1], "n_resamples": 10}
    one = calibration_error_interval(
        [1], [0.25], metric=expected_calibration_error, **options
    )
    assert one == pytest.approx((0.75, 0.75, 0.75))
    with refused(ValueError, "fewer than two rows"):
        calibration_error_interval([1], [0.25], **options)
    call = partial(calibration_error_interval, *sample(40), interval="basic", binning=3)
    with refused(ValueError, "stratify", "clusters"):
        call(stratify=True, clusters=np.arange(40))
    with refused(ValueError, "clusters", "39", "40"):
        call(clusters=np.arange(39))
    with refused(ValueError, "interval", "percentile"):
        calibration_error_interval(*sample(40), interval="percentile")
