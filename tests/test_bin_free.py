"""The cumulative difference and the neighbours in score against plain loops."""

import math

import numpy as np
import pytest
from _catalog import refused
from _counting_namespace import on_device

from skcalib.metrics import (
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
    neighborhood_calibration_error,
)

METRICS = [
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
    neighborhood_calibration_error,
]


def kolmogorov_smirnov_twin(scores, labels, weights):
    total, largest = sum(weights), 0.0
    for t in set(scores):
        below = [
            w * (y - s)
            for s, y, w in zip(scores, labels, weights, strict=True)
            if s <= t
        ]
        largest = max(largest, abs(math.fsum(below)) / total)
    return largest


def neighborhood_twin(scores, labels, n_neighbors, norm):
    """Neighbours are all rows as near as the n_neighbors-th nearest one, the row itself
    included.
    """
    powers = []
    for s in scores:
        radius = sorted(abs(s - t) for t in scores)[n_neighbors - 1]
        near = [y for t, y in zip(scores, labels, strict=True) if abs(s - t) <= radius]
        powers.append(abs(s - sum(near) / len(near)) ** norm)
    return (sum(powers) / len(powers)) ** (1 / norm)


def sample(rng, ties):
    n = int(rng.integers(1, 50))
    scores = rng.integers(0, 9, n) / 8 if ties else rng.random(n)
    return scores, rng.random(n) < scores


@pytest.mark.parametrize("ties", [False, True])
def test_kolmogorov_smirnov_equals_the_loop(ties):
    rng = np.random.default_rng(ties)
    for _ in range(50):
        scores, labels = sample(rng, ties)
        weights = rng.random(len(scores)) + 0.1
        twin = kolmogorov_smirnov_twin(
            scores.tolist(), labels.tolist(), weights.tolist()
        )
        assert kolmogorov_smirnov_calibration_error(
            labels, scores, sample_weight=weights
        ) == pytest.approx(twin, abs=1e-12)


@pytest.mark.filterwarnings("ignore:y_true has shape")  # of one sample
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("ties", [False, True])
def test_neighborhood_equals_the_loop(ties, norm):
    rng = np.random.default_rng(10 + ties)
    for _ in range(60):
        scores, labels = sample(rng, ties)
        k = int(rng.integers(1, len(scores) + 1))
        twin = neighborhood_twin(scores.tolist(), labels.tolist(), k, norm)
        error = neighborhood_calibration_error(labels, scores, n_neighbors=k, norm=norm)
        assert error == pytest.approx(twin, abs=1e-12)
        # and where the scores are, of two labels that are the same
        of_two = neighborhood_calibration_error(
            on_device(np.column_stack((labels, labels))),
            on_device(np.column_stack((scores, scores))),
            n_neighbors=k,
            norm=norm,
        )
        assert of_two == pytest.approx(twin, abs=1e-12)


def test_golden_cases():
    # KS: y - s adds up to -.2, -.6, -.2, 0 over four rows. Ties as one: .5 (1 of 2) and
    # .9 (0 of 1): 0, then -.9 of 3.
    assert kolmogorov_smirnov_calibration_error(
        [0, 0, 1, 1], [0.2, 0.4, 0.6, 0.8]
    ) == pytest.approx(0.15)
    assert kolmogorov_smirnov_calibration_error(
        [1, 0, 0], [0.5, 0.5, 0.9]
    ) == pytest.approx(0.3)
    # Two nearest: .1 and .2 see (0, 1), .7 sees (.7, .8), .8 the same: |.1-.5| +
    # |.2-.5| + |.7-1| + |.8-1| = 1.2.
    y, s = [0, 1, 1, 1], [0.1, 0.2, 0.7, 0.8]
    assert neighborhood_calibration_error(y, s, n_neighbors=2) == pytest.approx(0.3)
    # The largest row: .1 against 1/2.
    assert neighborhood_calibration_error(
        y, s, n_neighbors=2, norm=np.inf
    ) == pytest.approx(0.4)
    # .25 and .75 are equally far from .5: three neighbours where two were asked for,
    # |.5 - 2/3|; the ends see .5 and themselves: |.25 - 1/2|, |.75 - 1|.
    error = neighborhood_calibration_error([0, 1, 1], [0.25, 0.5, 0.75], n_neighbors=2)
    assert error == pytest.approx((1 / 4 + 1 / 6 + 1 / 4) / 3)


def test_neighborhood_is_the_residual_for_one_neighbour_and_the_base_rate_for_all():
    rng = np.random.default_rng(20)
    scores = rng.random(100)
    labels = rng.random(100) < scores
    one = neighborhood_calibration_error(labels, scores, n_neighbors=1)
    assert one == pytest.approx(np.abs(labels - scores).mean())
    everybody = neighborhood_calibration_error(labels, scores, n_neighbors=100)
    assert everybody == pytest.approx(np.abs(labels.mean() - scores).mean())
    default = neighborhood_calibration_error(labels, scores)  # sqrt(100)
    assert default == neighborhood_calibration_error(labels, scores, n_neighbors=10)


@pytest.mark.parametrize("metric", METRICS)
def test_weights_are_repetitions_and_order_is_nothing(metric):
    rng = np.random.default_rng(21)
    scores = rng.integers(0, 30, 200) / 29
    labels, weights = rng.random(200) < scores, rng.integers(0, 4, 200)
    expected = metric(np.repeat(labels, weights), np.repeat(scores, weights))
    assert metric(labels, scores, sample_weight=weights) == pytest.approx(
        expected, abs=1e-12
    )
    order = rng.permutation(200)
    assert metric(
        labels[order], scores[order], sample_weight=weights[order]
    ) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_one_row(metric):
    assert metric([1], [0.3], labels=[0, 1]) == pytest.approx(0.7)
    assert metric([0], [0.0], labels=[0, 1], sample_weight=[0.25]) == 0


@pytest.mark.parametrize("metric", METRICS)
def test_many_classes(metric):
    rng = np.random.default_rng(22)
    proba = rng.dirichlet(np.ones(3), 200)
    labels = np.array([rng.choice(3, p=row) for row in proba])
    top = metric(labels == proba.argmax(1), proba.max(1))
    assert metric(labels, proba) == pytest.approx(top, abs=1e-12)
    classes = [metric(labels == k, proba[:, k]) for k in range(3)]
    assert metric(labels, proba, multiclass="marginal") == pytest.approx(
        np.mean(classes), abs=1e-12
    )
    only = metric(labels, proba, multiclass="marginal", class_weight=[0, 1, 0])
    assert only == pytest.approx(classes[1], abs=1e-12)


def test_many_rows():
    # Calibrated and uniform: the cumulative difference is of order .5 / sqrt(n).
    rng = np.random.default_rng(23)
    scores = rng.random(200_000)
    labels = rng.random(200_000) < scores
    assert kolmogorov_smirnov_calibration_error(labels, scores) < 2.5 / math.sqrt(
        200_000
    )
    assert neighborhood_calibration_error(labels, scores, n_neighbors=5000) < 0.01


def test_bad_neighbours():
    for n_neighbors, allowed in (
        (0, "at least 1"),
        (3, "at most 2"),
        (1.5, "an int"),
        (True, "an int"),
        ("all", "an int"),
    ):
        with refused(ValueError, "n_neighbors", allowed, repr(n_neighbors)):
            neighborhood_calibration_error([0, 1], [0.2, 0.4], n_neighbors=n_neighbors)


def kuiper_twin(scores, labels, weights):
    """The largest |sum of w (y - s)| over any interval (a, b] of scores."""
    distinct, total, largest = sorted(set(scores)), sum(weights), 0.0
    for i, low in enumerate(distinct):
        for high in distinct[i:]:
            inside = [
                w * (y - s)
                for s, y, w in zip(scores, labels, weights, strict=True)
                if low <= s <= high
            ]
            largest = max(largest, abs(math.fsum(inside)) / total)
    return largest


@pytest.mark.parametrize("ties", [False, True])
def test_kuiper_equals_the_loop_and_bounds_kolmogorov_smirnov(ties):
    rng = np.random.default_rng(20 + ties)
    for _ in range(50):
        scores, labels = sample(rng, ties)
        weights = rng.random(len(scores)) + 0.1
        twin = kuiper_twin(scores.tolist(), labels.tolist(), weights.tolist())
        kuiper = kuiper_calibration_error(labels, scores, sample_weight=weights)
        assert kuiper == pytest.approx(twin, abs=1e-12)
        one_sided = kolmogorov_smirnov_calibration_error(
            labels, scores, sample_weight=weights
        )
        assert one_sided - 1e-12 <= kuiper <= 2 * one_sided + 1e-12


def test_kuiper_by_hand():
    # y - s = -.2, .6, -.6, .2: cumulative -.2, .4, -.2, 0; from the lowest to the
    # highest .6, of four rows
    assert kuiper_calibration_error(
        [0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8]
    ) == pytest.approx(0.15)
    # all too high: the whole range of scores, as for Kolmogorov and Smirnov
    assert kuiper_calibration_error([0, 0], [0.2, 0.4], labels=[0, 1]) == pytest.approx(
        0.3
    )
    # classes with errors .3 and .1: weights 3 and 1 of them
    proba, y = np.array([[0.7, 0.2, 0.1]]), [0]
    parts = [
        kuiper_calibration_error(np.array([k == 0]), proba[:, k]) for k in range(3)
    ]
    assert parts == pytest.approx([0.3, 0.2, 0.1])
    marginal = kuiper_calibration_error(
        y, proba, labels=[0, 1, 2], multiclass="marginal"
    )
    assert marginal == pytest.approx(0.2)
