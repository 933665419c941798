"""Cuts by counting cells, against a plain sort."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skcalib._cells.tasks import BinaryTask
from skcalib._rows.sorting import counting_pays, score_cells, scores_near
from skcalib.binning import EqualMass
from skcalib.binning._equal_mass import equal_mass_cuts
from skcalib.metrics import calibration_error

N = 70_000
_RNG = np.random.default_rng(0)
SPREAD = {
    "uniform": _RNG.random(N),
    "single precision": _RNG.random(N, dtype=np.float32),
    "extreme": _RNG.beta(0.05, 0.05, N),
    "sure": _RNG.beta(2.8, 0.05, N),
    "rare": _RNG.beta(0.5, 200, N),
    "hundredths": np.round(_RNG.random(N), 2),
    "votes": (
        (_RNG.binomial(500, _RNG.beta(0.5, 0.5, N)) / np.float32(500)).astype(
            np.float32
        )
    ),
    "saturated": np.clip(1.5 * _RNG.random(N) - 0.25, 0, 1),
    "sorted": np.sort(_RNG.random(N)),
    "constant": np.full(N, 0.3),
    "eleven": _RNG.integers(0, 11, N) / 10,
    "minus 0": np.where(
        _RNG.random(N) < 0.2, _RNG.choice([0.0, -0.0], N), _RNG.random(N)
    ),
}
CROWDED = {
    "clusters": np.where(_RNG.random(N) < 0.5, 0.3, 0.8) + 1e-9 * _RNG.random(N),
    "subnormal": _RNG.integers(0, 10**6, N) * 5e-324,
    "neighbours": _RNG.choice([0.7, np.nextafter(0.7, 1), np.nextafter(0.7, 0)], N),
    "one cell, single": (0.3 + 1e-4 * _RNG.random(N)).astype(np.float32),
    "log-odds": _RNG.normal(0, 5, N),
}
every_shape = pytest.mark.parametrize(
    "scores", (SPREAD | CROWDED).values(), ids=(SPREAD | CROWDED).keys()
)


def _plain_edges(scores, n_bins, sample_weight=None):
    """Cut i of B is the smallest score whose cumulative weight reaches i W / B; edges
    are midpoints.
    """
    distinct, inverse = np.unique(scores, return_inverse=True)
    cumulative = np.cumsum(np.bincount(inverse, sample_weight))
    n_bins = min(n_bins, len(scores)) if sample_weight is None else n_bins
    wanted = np.arange(1, n_bins) * cumulative[-1]
    if sample_weight is not None:
        wanted = wanted * (1 - 1e-12)
    at = np.unique(np.searchsorted(cumulative * n_bins, wanted))
    at = at[at < len(distinct) - 1]
    low, high = distinct[at].astype(np.float64), distinct[at + 1].astype(np.float64)
    return np.minimum(low + (high - low) / 2, np.nextafter(high, -np.inf))


def _check(scores, n_bins, sample_weight=None):
    cuts = partial(equal_mass_cuts, n_bins=n_bins)
    near, cumulative = scores_near(scores, sample_weight, cuts)
    # The rows that are left out change neither the order nor the cumulative weights of
    # those that are not.
    order = np.argsort(scores, kind="stable")
    weight = np.ones(len(scores)) if sample_weight is None else sample_weight
    last = np.searchsorted(scores[order], near, side="right") - 1
    kept_last = np.searchsorted(near, near, side="right") - 1
    np.testing.assert_allclose(
        cumulative[kept_last], np.cumsum(weight[order])[last], rtol=1e-11
    )
    position = cuts(cumulative)
    high = np.searchsorted(near, near[position], side="right")
    position, high = position[high < len(near)], high[high < len(near)]
    low, high = (
        np.unique(near[position]).astype(np.float64),
        np.unique(near[high]).astype(np.float64),
    )
    found = np.minimum(low + (high - low) / 2, np.nextafter(high, -np.inf))
    np.testing.assert_array_equal(found, _plain_edges(scores, n_bins, sample_weight))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_cells_never_fall(dtype):
    scores = [
        -np.inf,
        -3,
        -5e-324,
        -0.0,
        0.0,
        5e-324,
        1e-310,
        1e-45,
        1e-40,
        1e-38,
        1e-20,
        0.1,
        0.5,
        1,
        2,
        np.inf,
    ]
    scores = np.array(
        [*scores, *np.random.default_rng(0).beta(0.1, 0.1, 1000)], dtype=dtype
    )
    scores = np.sort(
        np.concatenate(
            (scores, np.nextafter(scores, dtype(0.5)), np.nextafter(scores, dtype(2)))
        )
    )
    cells = score_cells(scores)
    assert np.all(cells[1:] >= cells[:-1])
    assert cells[0] == 0
    assert cells[-1] == 2**16 - 1
    inside = scores[(scores > 1e-6) & (scores < 1 - 1e-6)]
    _, first, count = np.unique(
        score_cells(inside), return_index=True, return_counts=True
    )
    low, high = inside[first], inside[first + count - 1]
    assert np.all(high - low <= np.minimum(high, 1 - low) / 128)


@pytest.mark.parametrize("n_bins", [2, 15, 300])
@every_shape
def test_cuts_are_those_of_all_rows(scores, n_bins):
    _check(scores, n_bins)


@every_shape
def test_cuts_of_weighted_rows_are_those_of_all_rows(scores):
    _check(scores, 15, np.random.default_rng(1).gamma(0.5, size=len(scores)))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.floats(0, 1) | st.sampled_from([0.0, 0.25, 0.5, 1.0, 0.1, 1e-300]),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 20),
    st.booleans(),
)
def test_cuts_of_few_rows(scores, n_bins, weighted):
    weight = 1.0 + np.arange(len(scores)) % 3 if weighted else None
    _check(np.array(scores), n_bins, weight)


@pytest.mark.parametrize("n_bins", [1, 15, 5000])
@every_shape
def test_edges_of_many_rows(scores, n_bins):
    support = (-np.inf, np.inf) if scores.min() < 0 else (0, 1)
    found = EqualMass(n_bins)._edges_of(scores, support=support)
    np.testing.assert_array_equal(found[1:-1], _plain_edges(scores, n_bins))
    weight = np.random.default_rng(2).gamma(0.5, size=len(scores))
    found = EqualMass(15)._edges_of(scores, sample_weight=weight, support=support)
    np.testing.assert_array_equal(found[1:-1], _plain_edges(scores, 15, weight))


@every_shape
def test_sums_by_bin_are_those_of_sorted_rows(scores):
    labels = np.random.default_rng(3).random(len(scores)) < np.clip(scores, 0.1, 0.9)
    if scores.min() < 0:
        scores = np.abs(scores) / 100
    found = BinaryTask(scores, labels, None).statistics(EqualMass(15))
    order = np.argsort(scores)
    expected = BinaryTask(scores[order], labels[order], None).statistics(EqualMass(15))
    np.testing.assert_array_equal(found.count, expected.count)
    for name in vars(expected):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-11, err_msg=name
        )


def test_when_a_sort_is_quicker():
    cuts, pays = (
        partial(equal_mass_cuts, n_bins=15),
        partial(counting_pays, is_weighted=True),
    )
    assert all(pays(scores, cuts) for scores in SPREAD.values())
    assert all(counting_pays(np.tile(scores, 4), cuts) for scores in SPREAD.values())
    assert not any(
        pays(scores, cuts) for name, scores in CROWDED.items() if name != "log-odds"
    )
    assert not counting_pays(SPREAD["uniform"], cuts)
    assert not pays(SPREAD["uniform"][:10_000], cuts)
    assert not pays(SPREAD["uniform"], partial(equal_mass_cuts, n_bins=N))


@pytest.mark.parametrize(
    "shape", ["uniform", "single precision", "clusters", "hundredths"]
)
def test_memory_of_the_equal_mass_error(shape):
    scores = np.tile((SPREAD | CROWDED)[shape], 8)
    labels = np.arange(len(scores)) % 3 == 0
    tracemalloc.start()
    try:
        calibration_error(labels, scores)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 17 * len(scores)
