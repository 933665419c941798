"""The search for equal-mass cuts among joined rows, against cuts of all rows in order."""

from fractions import Fraction

import numpy as np
import pytest

from skcalib import _cut_search
from skcalib._cut_search import joined_rows
from skcalib.binning import EqualMass
from skcalib.metrics import calibration_error

_RNG = np.random.default_rng(0)
SCORES = {
    "continuous": _RNG.random(700),
    "skewed": _RNG.random(700) ** 6,
    "ties": _RNG.integers(0, 12, 700) / 11,
    "most at one score": np.where(_RNG.random(700) < 0.8, 0.25, _RNG.random(700)),
    "0 and 1": _RNG.choice([0.0, 1.0, 5e-324, 1 - 2**-53], 700),
    "log-odds": _RNG.normal(0, 3, 700),
    "an outlier": np.append(_RNG.normal(0, 1e-3, 699), 1e90),
    "neighbours": 0.5 + np.spacing(0.5) * _RNG.integers(0, 5, 700),
    "one score": np.full(700, 0.3),
}
WEIGHTS = {
    "none": None,
    "counts": _RNG.integers(1, 6, 700).astype(float),
    "uneven": 10.0 ** _RNG.uniform(-6, 6, 700),
}


@pytest.fixture
def few_cells(monkeypatch):
    monkeypatch.setattr(_cut_search, "_CELLS", 256)
    monkeypatch.setattr(_cut_search, "_LEAST_ROWS", 0)


def _plain_cuts(scores, weight, n_bins):
    """Return the scores that the cuts lie above, by the rule, in exact arithmetic."""
    pairs = sorted(zip(scores.tolist(), [1] * len(scores) if weight is None else weight.tolist(), strict=True))
    total = sum(Fraction(w) for _, w in pairs)
    cuts = set()
    for i in range(1, n_bins):
        reached, wanted = Fraction(0), i * total / n_bins
        k = -1
        while reached < wanted * (1 - (weight is not None) * Fraction(1, 10**12)):
            k += 1
            reached += Fraction(pairs[k][1])
        cuts.add(pairs[k][0])
    return sorted(cuts - {pairs[-1][0]})


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS.keys())
@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES.keys())
def test_joined_rows_have_the_cuts_of_all(scores, weight, dtype, few_cells):
    scores = scores.astype(dtype) if scores.max() < 1e30 else scores
    for n_bins in (1, 2, 3, 7, 16):
        edges = EqualMass(n_bins).bin_edges(scores, None, weight, support=(-np.inf, np.inf))
        distinct = np.unique(scores)
        below = distinct[np.searchsorted(distinct, edges[1:-1], side="right") - 1]
        assert below.tolist() == _plain_cuts(scores, weight, n_bins)


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES.keys())
def test_edges_are_those_of_a_sort(scores, few_cells, monkeypatch):
    searched = [EqualMass(n_bins).bin_edges(scores, support=(-np.inf, np.inf)) for n_bins in range(1, 17)]
    monkeypatch.setattr(_cut_search, "_LEAST_ROWS", 10**9)
    sorted_ = [EqualMass(n_bins).bin_edges(scores, support=(-np.inf, np.inf)) for n_bins in range(1, 17)]
    for one, other in zip(searched, sorted_, strict=True):
        np.testing.assert_array_equal(one, other)


def test_scores_closer_than_the_inverse_of_a_float_are_sorted(few_cells):
    scores = _RNG.permutation(np.arange(700) * 5e-324)
    expected = np.array([-np.inf, 349 * 5e-324, np.inf])  # the 350th score is the last of the first half
    np.testing.assert_array_equal(EqualMass(2).bin_edges(scores, support=(-np.inf, np.inf)), expected)


def test_most_rows_are_joined_and_no_weight_is_lost():
    scores, weight = _RNG.random(10**6), _RNG.random(10**6)
    few, mass = joined_rows(scores, None, 15)
    assert len(few) < 40_000
    assert mass.sum() == 10**6
    few, mass = joined_rows(scores, weight, 15)
    assert len(few) < 40_000
    assert mass.min() > 0
    np.testing.assert_allclose(mass.sum(), weight.sum(), rtol=1e-12)


def test_a_metric_of_many_rows_takes_the_search():
    n = _cut_search._LEAST_ROWS
    scores = _RNG.random(n)
    labels = _RNG.random(n) < scores**2
    searched = calibration_error(labels, scores)
    np.testing.assert_allclose(
        calibration_error(labels, scores, sample_weight=np.full(n, 3.0), method="plugin"),
        calibration_error(labels, scores, method="plugin"),
        rtol=1e-12,
    )
    order = np.argsort(scores)  # rows in order are not searched
    np.testing.assert_allclose(searched, calibration_error(labels[order], scores[order]), rtol=1e-12)
