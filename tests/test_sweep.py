"""The monotonic sweep against the plain loop over bin counts."""

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from _catalog import refused
from _twins import bins, equal_mass_edges, power, unique_score_edges

from skcalib import HistogramBinning
from skcalib.binning import EqualMass, EqualWidth, MonotonicSweep, UniqueScores
from skcalib.metrics import (
    calibration_error,
    reliability_curve,
    sweep_calibration_error,
)


def frequencies(scores, labels, edges, weights):
    """Return the event frequency of each bin that is not empty, as exact fractions."""
    exact = []
    for rows in bins(scores, labels, edges, weights):
        weight = sum(Fraction(w) for _, _, w in rows)
        exact.append(sum(Fraction(w) * int(y) for _, y, w in rows) / weight)
    return exact


def rises(values):
    return all(a <= b for a, b in zip(values, values[1:], strict=False))


def sweep_edges(scores, labels, weights, base):
    """Try 2, 3, ... bins, at most one a distinct score; with frequencies that rise
    throughout end at one a score.
    """
    distinct = unique_score_edges(scores)
    if base == "mass" and rises(frequencies(scores, labels, distinct, weights)):
        return distinct
    edges = [0.0, 1.0]
    for b in range(2, len(set(scores)) + 1):
        tried = (
            equal_mass_edges(scores, b, weights)
            if base == "mass"
            else list(np.linspace(0, 1, b + 1))
        )
        if not rises(frequencies(scores, labels, tried, weights)):
            break
        edges = tried
    return edges


def sample(rng, kind):
    n = int(rng.integers(1, 40))
    scores = {
        "continuous": rng.random(n),
        "tenths": rng.integers(0, 11, n) / 10,
        "three": rng.integers(0, 3, n) / 2,
        "hundredths": rng.integers(0, 101, n) / 100,
        "confident": rng.beta(3, 0.1, n),
    }[kind]
    labels = rng.random(n) < (
        scores if rng.random() < 0.5 else (scores > 0.5) * 0.9 + 0.05
    )
    return scores, labels


@pytest.mark.slow
@pytest.mark.parametrize("base", ["mass", "width"])
@pytest.mark.parametrize("weighted", ["none", "integer", "fraction"])
@pytest.mark.parametrize(
    "kind", ["continuous", "tenths", "three", "hundredths", "confident"]
)
def test_equals_the_plain_loop(base, weighted, kind):
    rng = np.random.default_rng(len(base) + 10 * len(weighted) + 100 * len(kind))
    strategy = MonotonicSweep(EqualMass() if base == "mass" else EqualWidth())
    for _ in range(40):
        scores, labels = sample(rng, kind)
        n = len(scores)
        # Fractions are eighths: their sums are exact in the twin as well.
        weights = {
            "none": None,
            "integer": rng.integers(1, 5, n),
            "fraction": rng.integers(1, 30, n) / 8,
        }[weighted]
        edges = sweep_edges(scores.tolist(), labels.tolist(), weights, base)
        found = strategy.bin_edges(
            scores, labels, None if weights is None else weights.astype(float)
        )
        assert found.tolist() == pytest.approx(edges, abs=1e-15)
        for norm in (1, 2, math.inf):
            twin = power(
                scores, labels, edges, norm=norm, method="plugin", weights=weights
            )
            twin = twin if norm == math.inf else twin ** (1 / norm)
            error = sweep_calibration_error(
                labels, scores, norm=norm, base=strategy.base, sample_weight=weights
            )
            assert error == pytest.approx(twin, abs=1e-9)


def test_a_golden_case():
    # Two bins: (0 0 1), (1 0 1): 1/3, 2/3. Three: (0 0), (1 1), (0 1) fall from 1 to
    # 1/2. So two bins:
    # |.2 - 1/3| / 2 + |.7 - 2/3| / 2 = 1/15 + 1/60 = 1/12.
    y, s = [0, 0, 1, 1, 0, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.8]
    assert sweep_calibration_error(y, s) == pytest.approx(1 / 12, abs=1e-12)
    assert reliability_curve(y, s, binning=MonotonicSweep()).n_bins == 2


def test_one_row_and_one_distinct_score():
    assert sweep_calibration_error([1], [0.3], labels=[0, 1]) == pytest.approx(0.7)
    assert sweep_calibration_error([0, 1, 1, 1], [0.5] * 4) == pytest.approx(0.25)
    assert MonotonicSweep().bin_edges(np.full(9, 0.5), np.arange(9) < 3).tolist() == [
        0.0,
        1.0,
    ]


def test_labels_without_inversion_end_at_one_bin_a_score():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 50, 400) / 50
    labels = scores > 0.6
    edges = MonotonicSweep().bin_edges(scores, labels)
    assert edges.tolist() == UniqueScores().bin_edges(scores).tolist()
    # Equal widths have no such partition: as many bins as distinct scores.
    assert (
        len(MonotonicSweep(EqualWidth()).bin_edges(scores, labels))
        == len(np.unique(scores)) + 1
    )


def test_weights_that_do_not_add_up_exactly_do_not_invent_inversions():
    # Pure bins are tied at 0 and at 1 whatever the weights; .1 + .2 != .3 must not
    # count as a fall.
    rng = np.random.default_rng(1)
    scores = np.sort(rng.random(3000))
    weights = rng.random(3000) * 10.0 ** rng.integers(-8, 8, 3000)
    edges = MonotonicSweep().bin_edges(scores, scores > 0.5, weights)
    assert len(edges) > 1000  # a weight below 2^-52 of the total has no bin of its own


@pytest.mark.parametrize("base", [EqualMass(), EqualWidth()])
def test_one_inversion_among_many_rows_is_not_quadratic(base):
    # Every bin count up to thousands is monotone here: the plain loop looks at n bins
    # for each of them.
    n = 20_000
    scores = np.sort(np.random.default_rng(2).random(n))
    labels = np.arange(n) > n // 2
    labels[n // 2], labels[n // 2 + 2] = True, False
    start = time.perf_counter()
    n_bins = len(MonotonicSweep(base).bin_edges(scores, labels)) - 1
    assert n_bins > 1000
    assert time.perf_counter() - start < 2


def test_row_order_changes_nothing():
    rng = np.random.default_rng(3)
    scores, weights = rng.integers(0, 200, 500) / 200, rng.random(500)
    labels = rng.random(500) < scores
    order = rng.permutation(500)
    expected = MonotonicSweep().bin_edges(scores, labels, weights)
    assert (
        MonotonicSweep()
        .bin_edges(scores[order], labels[order], weights[order])
        .tolist()
        == expected.tolist()
    )


def test_works_wherever_a_binning_is_taken():
    rng = np.random.default_rng(4)
    scores = rng.random(300)
    labels = (rng.random(300) < scores**2).astype(int)
    n_bins = reliability_curve(labels, scores, binning=MonotonicSweep()).n_bins
    assert (
        HistogramBinning(binning=MonotonicSweep()).fit(scores, labels).n_bins_ == n_bins
    )
    error = calibration_error(
        labels, scores, norm=1, binning=MonotonicSweep(), method="plugin"
    )
    assert error == pytest.approx(sweep_calibration_error(labels, scores), rel=1e-12)
    assert MonotonicSweep().set_params(base__n_bins=7).base.n_bins == 7


def test_many_classes():
    rng = np.random.default_rng(5)
    proba = rng.dirichlet(np.ones(3), 200)
    labels = np.array([rng.choice(3, p=row) for row in proba])
    top = sweep_calibration_error(labels == proba.argmax(1), proba.max(1))
    assert sweep_calibration_error(labels, proba) == pytest.approx(top, abs=1e-12)
    classes = [
        sweep_calibration_error(labels == k, proba[:, k], norm=2) for k in range(3)
    ]
    marginal = sweep_calibration_error(labels, proba, norm=2, multiclass="marginal")
    assert marginal == pytest.approx(math.sqrt(np.mean(np.square(classes))), abs=1e-12)


def test_refuses_other_bases():
    with refused(TypeError, "base of MonotonicSweep", "UniqueScores"):
        sweep_calibration_error([0, 1], [0.2, 0.4], base=UniqueScores())
    with pytest.raises(ValueError, match="pass y"):
        MonotonicSweep().bin_edges(np.array([0.2, 0.4]))


def test_bins_of_the_sweep_error_are_its_binning():
    rng = np.random.default_rng(4)
    scores = rng.random(200)
    y = rng.random(200) < scores
    found = sweep_calibration_error(y, scores, binning=EqualWidth())
    assert found == sweep_calibration_error(y, scores, base=EqualWidth())
    assert found != sweep_calibration_error(y, scores)
    with refused(ValueError, "former name of binning"):
        sweep_calibration_error(y, scores, binning=EqualMass(), base=EqualMass())
