"""The fast ways to order rows and to look up bins, against the plain ones."""

import numpy as np
import pytest

from skcalib._cells.statistics import BinStatistics
from skcalib._rows.blocks import row_blocks
from skcalib._rows.sorting import (
    DistinctScores,
    distinct_values,
    grouped_rows,
    in_order,
    sorted_rows,
    sorted_scores,
)
from skcalib.binning._base import BinLookup

_RNG = np.random.default_rng(0)
SCORES = {
    "continuous": _RNG.random(500),
    "ties": _RNG.integers(0, 12, 500) / 11,
    "0 and 1": _RNG.choice([0.0, 1.0, 5e-324, 1 - 2**-53], 500),
    "below 2": 2 * _RNG.random(500),
    "log-odds": _RNG.normal(0, 3, 500),
    "minus 0": _RNG.choice([0.0, -0.0, 0.5], 500),
    "one": np.array([0.3]),
}
every_sample = pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES.keys())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_sample
def test_rows_are_sorted_as_pairs(scores, dtype):
    scores = scores.astype(dtype)
    labels = np.random.default_rng(1).random(len(scores)) < 0.4
    given = scores.copy()
    found = sorted_rows(scores, labels)
    assert list(zip(*map(np.ndarray.tolist, found), strict=True)) == sorted(
        zip(scores.tolist(), labels.tolist(), strict=True)
    )
    assert [part.dtype for part in found] == [dtype, np.dtype(bool)]
    np.testing.assert_array_equal(scores, given)
    np.testing.assert_array_equal(sorted_scores(scores), np.sort(scores))


def test_what_is_in_order():
    assert in_order(np.array([]))
    assert in_order(np.array([0.1, 0.1, 0.2]))
    late = np.arange(200.0)
    assert in_order(late)
    assert sorted_scores(late) is late
    late[[150, 151]] = late[[151, 150]]
    assert not in_order(late)
    assert sorted_scores(late).tolist() == list(range(200))


EDGES = {
    "equal width": np.linspace(0, 1, 16),
    "many": np.linspace(0, 1, 1001),
    "more than cells": np.linspace(0, 1, 5001),
    "in one cell": np.array([0.0, 1e-9, 2e-9, 1e-5, 0.5, 0.5 + 2**-53, 1.0]),
    "on the cells": np.array([0.0, 0.25, 0.5, 1 / 4096, 1.0])[[0, 3, 1, 2, 4]],
    "point of zeros": np.array([0.0, 0.0, 0.5, 1.0]),
    "one bin": np.array([0.0, 1.0]),
    "log-odds": np.array([-np.inf, -1.0, 0.0, 2.0, np.inf]),
}


@pytest.mark.parametrize("edges", EDGES.values(), ids=EDGES.keys())
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_lookup_is_searchsorted(edges, dtype):
    inner = edges[np.isfinite(edges)].astype(dtype)
    scores = np.concatenate(
        [
            np.random.default_rng(0).random(5000).astype(dtype),
            inner,
            np.nextafter(inner, dtype(-9)),
            np.nextafter(inner, dtype(9)),
            np.array([0, 1, -1, 2, 1e30, -1e30], dtype=dtype),
        ]
    )
    expected = np.searchsorted(edges[1:-1], scores, side="left")
    # with a table, without, and with the largest
    for every in (scores, scores[:10], np.resize(scores, 10**6)):
        np.testing.assert_array_equal(BinLookup(edges, every)(scores), expected)
        assert BinLookup(edges, every)(scores[:0]).tolist() == []


def test_lookup_of_scores_that_crowd_at_the_edges():
    edges = np.array([0.0, 0.3, 0.3 + 1e-9, 0.3 + 2e-9, 1.0])
    rng = np.random.default_rng(5)
    lookup = BinLookup(edges, rng.random(50_000))
    for scores in (
        0.3 + 3e-9 * rng.random(10_000) - 1e-9,
        rng.random(10_000),
        np.full(9, 0.3),
    ):
        expected = np.searchsorted(edges[1:-1], scores, side="left")
        np.testing.assert_array_equal(lookup(scores), expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("where", ["on a grid", "towards 0", "towards 1", "both"])
def test_lookup_of_scores_that_crowd_at_many_edges(where, dtype):
    rng = np.random.default_rng(6)
    if where == "on a grid":
        cuts = np.arange(1, 1000) / 1000
        scores = rng.integers(0, 1001, 20_000) / 1000
    else:
        near = 10 ** -rng.uniform(1, 12, 300)
        near = {"towards 0": near, "towards 1": 1 - near}.get(
            where, np.append(near[::2], 1 - near[1::2])
        )
        cuts = np.unique(near.astype(dtype).astype(float))
        cuts = cuts[(cuts > 0) & (cuts < 1)]
        scores = np.concatenate(
            (
                rng.choice(cuts, 10_000),
                rng.choice(cuts, 10_000) * rng.uniform(0.9, 1, 10_000),
            )
        )
    scores = rng.permutation(
        np.concatenate((scores, [0, 1, np.nextafter(1, 0), 5e-324, 0.5]))
    ).astype(dtype)
    lookup = BinLookup(np.concatenate(([0.0], cuts, [1.0])), scores)
    np.testing.assert_array_equal(
        lookup(scores), np.searchsorted(cuts, scores, side="left")
    )
    n_cells = lookup.table[0]  # even cells, or those that narrow towards the ends
    assert (n_cells is None) == (where != "on a grid")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("edges", list(EDGES.values())[:-1], ids=list(EDGES)[:-1])
def test_sums_of_ordered_rows_are_those_of_the_same_rows_in_disorder(edges, dtype):
    rng = np.random.default_rng(2)
    scores = np.round(rng.random(3000), 3).astype(dtype)
    labels = rng.random(3000) < scores
    found = BinStatistics.from_predictions(*sorted_rows(scores, labels)[::-1], edges)
    expected = BinStatistics.from_predictions(labels, scores, edges)
    for name in vars(expected):
        np.testing.assert_allclose(
            getattr(found, name),
            getattr(expected, name),
            rtol=1e-12,
            atol=1e-12,
            err_msg=name,
        )


@every_sample
def test_table_of_distinct_scores_is_that_of_a_dict(scores):
    labels = np.random.default_rng(1).random(len(scores)) < 0.4
    table = DistinctScores.from_rows(scores, labels)
    rows, events = {}, {}
    for score, label in zip(scores.tolist(), labels.tolist(), strict=True):
        rows[score] = rows.get(score, 0) + 1
        events[score] = events.get(score, 0) + label
    distinct = sorted(rows)
    assert table.scores.tolist() == distinct
    assert np.diff(table.weight).tolist() == [rows[score] for score in distinct]
    assert np.diff(table.positives).tolist() == [events[score] for score in distinct]
    assert table.is_count


def test_blocks_cover_each_row_once():
    for n_rows, n_columns, at_least in [
        (0, 1, 1),
        (10, 1, 1),
        (200_000, 1, 1),
        (7, 100_000, 1),
        (300_000, 1, 100_000),
    ]:
        rows = [
            row
            for block in row_blocks(n_rows, n_columns, at_least=at_least)
            for row in range(n_rows)[block]
        ]
        assert rows == list(range(n_rows))


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_grouped_rows_keep_their_order(n):
    codes = np.random.default_rng(0).integers(0, 7, n)
    expected = sorted(range(n), key=codes.tolist().__getitem__)
    assert grouped_rows(codes).tolist() == expected


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float64, str])
@pytest.mark.parametrize("spread", [3, 100, 10**6])
def test_distinct_values_are_those_of_numpy(dtype, spread):
    rng = np.random.default_rng(0)
    high = spread
    if dtype is not str and np.dtype(dtype).kind in "iu":
        high = min(spread, np.iinfo(dtype).max)
    values = rng.integers(0, high, 500)
    if dtype is np.int64:
        values -= high // 2
    values = values.astype(dtype)
    found, position = distinct_values(values)
    expected, expected_position = np.unique(values, return_inverse=True)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)
    assert np.array_equal(position, expected_position)
