"""Binning strategies against plain loops, and the one rule that assigns a score to a
bin.
"""

import math

import numpy as np
import pytest
from _catalog import refused
from _twins import bin_of, equal_mass_edges, repeated, unique_score_edges
from sklearn.base import clone

from skcalib.binning import (
    BaseBinning,
    EqualMass,
    EqualWidth,
    FixedEdges,
    InformationPreserving,
    MinimumMass,
    MonotonicSweep,
    PoolAdjacentViolators,
    UniqueScores,
    check_binning,
)
from skcalib.binning._base import assign_bins

_RNG = np.random.default_rng(0)
TIED = _RNG.integers(0, 101, 300) / 100
SCORES = {
    "k / 100": TIED,
    "12 values": _RNG.choice(_RNG.random(12), 300),
    "continuous": _RNG.random(300),
    "float32": _RNG.random(300).astype(np.float32),
    "at the ends": _RNG.choice([0.0, 1.0, 0.5], 300),
    "one value": np.full(300, 0.3),
    "few rows": np.array([0.2, 0.9, 0.2]),
    "one row": np.array([0.7]),
}
every_sample = pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES.keys())


@pytest.mark.parametrize("n_bins", [1, 2, 7, 10, 15, 20, 100])
def test_scores_on_an_edge_belong_to_the_bin_below(n_bins):
    edges = EqualWidth(n_bins).bin_edges(TIED)
    np.testing.assert_array_equal(edges, np.linspace(0, 1, n_bins + 1))
    assert assign_bins(edges, edges).tolist() == [0, *range(n_bins)]
    assert assign_bins(np.nextafter(edges[1:-1], 2), edges).tolist() == list(
        range(1, n_bins)
    )
    assert assign_bins(np.array([0.0, -0.0, 1.0]), edges).tolist() == [0, 0, n_bins - 1]
    many = np.tile(edges, 5000)  # these are looked up in a table
    np.testing.assert_array_equal(
        assign_bins(many, edges), np.tile([0, *range(n_bins)], 5000)
    )


@pytest.mark.parametrize("n_bins", [10, 15, 20, 100])
@every_sample
def test_assignment_is_searchsorted_and_a_plain_loop(scores, n_bins):
    edges = np.linspace(0, 1, n_bins + 1)
    found = assign_bins(scores, edges)
    np.testing.assert_array_equal(
        found, np.searchsorted(edges[1:-1], scores, side="left")
    )
    assert found.tolist() == [bin_of(score, edges) for score in scores]


@pytest.mark.parametrize("n_bins", [1, 2, 3, 10, 15, 100, 1000])
@every_sample
def test_equal_mass_follows_the_rule(scores, n_bins):
    assert EqualMass(n_bins).bin_edges(scores).tolist() == equal_mass_edges(
        scores, n_bins
    )


@pytest.mark.parametrize("n_bins", [2, 3, 10, 15])
@every_sample
def test_equal_mass_with_weights(scores, n_bins):
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 5, len(scores))
    found = EqualMass(n_bins).bin_edges(scores, sample_weight=weights.astype(float))
    assert found.tolist() == equal_mass_edges(scores, n_bins, weights)
    assert (
        found.tolist()
        == EqualMass(n_bins).bin_edges(*repeated(weights, scores)).tolist()
    )
    fractions = rng.random(len(scores))
    found = EqualMass(n_bins).bin_edges(scores, sample_weight=fractions)
    assert found.tolist() == equal_mass_edges(scores, n_bins, fractions)


@pytest.mark.parametrize("scale", [1 / 3, 0.1, 1e-9, 1e9])
def test_equal_mass_does_not_depend_on_the_scale_of_the_weights(scale):
    # Sums of w / 3 or w / 10 miss i W / B by rounding: a cut must still count as
    # reached.
    weights = 1.0 + np.arange(300) % 4
    for n_bins in (2, 5, 10):
        expected = EqualMass(n_bins).bin_edges(TIED, sample_weight=weights)
        np.testing.assert_array_equal(
            EqualMass(n_bins).bin_edges(TIED, sample_weight=weights * scale), expected
        )


def test_equal_mass_bins_hold_equal_mass_without_ties():
    counts = np.bincount(
        assign_bins(SCORES["continuous"], EqualMass(10).bin_edges(SCORES["continuous"]))
    )
    assert counts.tolist() == [30] * 10


def test_a_trillion_bins_are_one_a_score():
    assert (
        EqualMass(10**12).bin_edges(TIED).tolist()
        == UniqueScores().bin_edges(TIED).tolist()
    )


def test_equal_mass_never_splits_ties():
    # 6 of 8 rows tied: the cuts at 2, 4 and 6 rows of 8 fall on .5, .5 and .5: one edge
    # is left.
    scores = np.array([0.5] * 6 + [0.7, 0.9])
    assert EqualMass(4).bin_edges(scores).tolist() == [0, 0.6, 1]


@pytest.mark.parametrize("lower", [0.25, 5e-324, 0.0, np.nextafter(1, 0) - 2**-52])
def test_midpoint_of_adjacent_floats_stays_below_the_upper(lower):
    upper = np.nextafter(lower, 1)
    edges = EqualMass(2).bin_edges(np.array([lower, upper]))
    assert len(edges) == 3
    assert assign_bins(np.array([lower, upper]), edges).tolist() == [0, 1]
    assert UniqueScores().bin_edges(np.array([upper, lower])).tolist() == edges.tolist()


@every_sample
def test_unique_scores_has_a_bin_for_each(scores):
    edges = UniqueScores().bin_edges(scores)
    np.testing.assert_allclose(edges, unique_score_edges(scores), rtol=1e-15)
    distinct = np.unique(scores)
    assert assign_bins(distinct, edges).tolist() == list(range(len(distinct)))


@pytest.mark.parametrize(
    "edges",
    [
        [0, 0.5],
        [0.5, 1],
        [0, 0.5, 0.5, 1],
        [0, 0.7, 0.2, 1],
        [0, np.nan, 1],
        [0],
        [[0, 1]],
        [],
        "ab",
    ],
)
def test_fixed_edges_rise_from_zero_to_one(edges):
    with refused(ValueError, "edges of FixedEdges"):
        FixedEdges(edges).bin_edges(TIED)


def test_minimum_mass_merges_neighbours():
    # .1 .3 | .6 .65 .7 | .9 in fifths: 1, 1, 0, 3, 1 rows. At least 2: {1, 1}, {0, 3},
    # and the last 1 joins.
    scores = np.array([0.1, 0.3, 0.65, 0.7, 0.75, 0.9])
    np.testing.assert_allclose(
        MinimumMass(EqualWidth(5), min_weight=2).bin_edges(scores), [0, 0.4, 1]
    )
    # With weights 1, 1, .., 4 the last bin is heavy enough to stay alone.
    weights = np.array([1, 1, 1, 1, 1, 4.0])
    found = MinimumMass(EqualWidth(5), min_weight=2).bin_edges(
        scores, sample_weight=weights
    )
    np.testing.assert_allclose(found, [0, 0.4, 0.8, 1])


@pytest.mark.parametrize(
    "base", [EqualWidth(20), EqualMass(20), UniqueScores(), 20, None]
)
@pytest.mark.parametrize("min_weight", [1, 7, 50, 1000])
@every_sample
def test_minimum_mass_bins_hold_enough(scores, base, min_weight):
    edges = MinimumMass(base, min_weight=min_weight).bin_edges(scores)
    assert set(edges) <= set(check_binning(base, EqualWidth(15)).bin_edges(scores))
    counts = np.bincount(assign_bins(scores, edges), minlength=len(edges) - 1)
    assert counts.min() >= min(min_weight, len(scores))


def test_minimum_mass_needs_a_positive_weight():
    for min_weight in (0, -1, np.nan, "many"):
        with refused(ValueError, "min_weight"):
            MinimumMass(min_weight=min_weight).bin_edges(TIED)


@pytest.mark.parametrize(
    ("n_bins", "n_rows", "expected"),
    [
        ("sqrt", 100, 10),
        ("sqrt", 101, 11),
        ("cube_root", 1000, 10),
        ("cube_root", 1001, 11),
        (lambda n: n // 50, 300, 6),
    ],
)
@pytest.mark.parametrize("strategy", [EqualMass, EqualWidth])
def test_number_of_bins_by_rule(strategy, n_bins, n_rows, expected):
    scores = np.linspace(0, 1, n_rows)
    assert len(strategy(n_bins).bin_edges(scores)) == expected + 1
    # the total weight counts as the number of rows
    weighted = strategy(n_bins).bin_edges(
        np.linspace(0, 1, 50), sample_weight=np.full(50, n_rows / 50)
    )
    assert len(weighted) == min(expected, 50 if strategy is EqualMass else math.inf) + 1


def test_strategies_are_estimators():
    strategies = [
        EqualMass(7),
        EqualWidth("sqrt"),
        FixedEdges([0, 0.3, 1]),
        MinimumMass(EqualMass(3)),
        UniqueScores(),
    ]
    for strategy in strategies:
        assert repr(clone(strategy)) == repr(strategy)
        assert (
            eval(repr(strategy)).bin_edges(TIED).tolist()
            == strategy.bin_edges(TIED).tolist()
        )
    assert MinimumMass().set_params(base__n_bins=3).base.n_bins == 3
    assert type(MinimumMass().set_params(base__n_bins=3).base) is EqualWidth


@pytest.mark.parametrize("given", [10, np.int64(10), EqualMass(10)])
def test_an_int_means_equal_mass(given):
    assert repr(check_binning(given)) == "EqualMass(n_bins=10)"


def test_none_is_the_default_of_the_caller():
    assert repr(check_binning(None)) == "EqualMass()"
    assert check_binning(None, EqualWidth(3)).n_bins == 3


class _Broken(BaseBinning):
    def __init__(self, edges=None):
        self.edges = edges

    def _edges(self, scores, y, sample_weight):
        return self.edges


@pytest.mark.parametrize(
    "edges", [[0.0], [], [[0, 1]], [0, 0.5, 0.2, 1], [0, 0.5, 0.5, 1], [0, np.nan, 1]]
)
def test_edges_of_a_user_are_checked(edges):
    with refused(ValueError, "_Broken"):
        _Broken(edges).bin_edges(TIED)


def test_a_strategy_without_edges_says_so():
    with refused(
        NotImplementedError, "BaseBinning", "_edges(scores, y, sample_weight)"
    ):
        BaseBinning().bin_edges(TIED)


def test_labels_are_asked_for():
    strategy = _Broken([0, 0.5, 1])
    strategy.needs_labels = True
    with refused(ValueError, "_Broken", "pass y"):
        strategy.bin_edges(TIED)
    strategy.bin_edges(TIED, TIED > 0.5)


@pytest.mark.parametrize(
    "scores",
    [["0.1", "0.7"], np.array(["0.1", "0.7"]), np.array(["0.1", 0.7], dtype=object)],
)
def test_text_is_no_score(scores):
    with refused(ValueError, "scores must be numbers"):
        assign_bins(scores, [0, 0.5, 1])
    with refused(ValueError, "edges must be numbers"):
        assign_bins([0.1, 0.7], ["0", "0.5", "1"])
    assert (
        assign_bins([0.1, 0.7], [0, 0.5, 1]).tolist()
        == assign_bins([0, 1], [0, 0.5, 1]).tolist()
        == [0, 1]
    )


def test_support_of_log_odds():
    scores = np.array([-3.0, -1.0, 2.0, 5.0])
    assert EqualMass(2)._edges_of(scores, support=(-np.inf, np.inf)).tolist() == [
        -np.inf,
        0.5,
        np.inf,
    ]
    assert MinimumMass(EqualMass(4), 2)._edges_of(
        scores, support=(-np.inf, np.inf)
    ).tolist() == [-np.inf, 0.5, np.inf]


# What users give to `bin_edges`

STRATEGIES = [
    EqualMass(3), EqualWidth(3), FixedEdges([0, 0.4, 1]), InformationPreserving(3), MinimumMass(min_weight=2),  # noqa: E501
    MonotonicSweep(), PoolAdjacentViolators(), UniqueScores(),
]  # fmt: skip
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)


@every_strategy
def test_edges_of_lists_and_of_rows_without_weight(strategy):
    scores, y = [0.1, 0.2, 0.35, 0.4, 0.6, 0.8], [0, 1, 0, 1, 0, 1]
    expected = strategy.bin_edges(np.array(scores), np.array(y, dtype=bool))
    np.testing.assert_array_equal(strategy.bin_edges(scores, y), expected)
    np.testing.assert_array_equal(
        strategy.bin_edges(np.array(scores)[:, None], y), expected
    )
    with_others = strategy.bin_edges(
        [*scores, 0.05, 0.95], [*y, 1, 0], [1] * 6 + [0, 0]
    )
    np.testing.assert_allclose(with_others, expected)


@every_strategy
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0.1, np.nan], [0, 1]), ["scores", "NaN", "row 1"]),
        (([0.1, 3.0], [0, 1]), ["scores", "[0, 1]", "row 1"]),
        (([], []), ["scores", "empty"]),
        ((["a", "b"], [0, 1]), ["scores", "numbers"]),
        (([[0.1, 0.9]], [1]), ["scores", "one column", "2"]),
        (([0.1, 0.9], [1]), ["y has 1 rows", "2"]),
        (([0.1, 0.9], [1, 2]), ["y must be 0 and 1"]),
        (([0.1, 0.9], [0, 1], [1]), ["sample_weight", "(2,)"]),
        (([0.1, 0.9], [0, 1], [1, -1]), ["sample_weight", "row 1"]),
    ],
)
def test_wrong_rows_are_named(strategy, arguments, words):
    with refused(ValueError, *words):
        strategy.bin_edges(*arguments)
