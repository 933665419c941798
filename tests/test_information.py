"""Information-preserving bins: brute force over all partitions, the promise of
`max_loss`, and their use.
"""

import math
from itertools import combinations

import numpy as np
import pytest
from _catalog import refused
from sklearn.model_selection import GridSearchCV

from skcalib import HistogramBinning, PlattScaling, ScalingBinning
from skcalib._rows.sorting import DistinctScores
from skcalib.binning import EqualMass, InformationPreserving
from skcalib.binning._base import assign_bins
from skcalib.binning._information_preserving import least_loss_cuts
from skcalib.metrics import calibration_error


def entropy(probability):
    return sum(-q * math.log(q) for q in (probability, 1 - probability) if q > 0)


def divergence(scores, weights, members):
    """Sum of w KL(s || mean) over the rows of one bin, from the definition."""
    total = sum(weights[i] for i in members)
    mean = sum(weights[i] * scores[i] for i in members) / total
    loss = 0.0
    for i in members:
        for s, m in ((scores[i], mean), (1 - scores[i], 1 - mean)):
            loss += weights[i] * s * math.log(s / m) if s > 0 else 0.0
    return loss


def lost(scores, weights, edges):
    """Divergence summed over the bins that the edges make."""
    bins = assign_bins(scores, np.asarray(edges))
    return sum(
        divergence(scores, weights, np.flatnonzero(bins == b)) for b in np.unique(bins)
    )


def least_lost(scores, weights, n_bins):
    """Brute force: every way to cut the distinct scores into n_bins runs."""
    distinct = sorted(set(scores))
    best = math.inf
    for cuts in combinations(range(1, len(distinct)), min(n_bins, len(distinct)) - 1):
        ends = [0, *cuts, len(distinct)]
        runs = [set(distinct[a:b]) for a, b in zip(ends, ends[1:], strict=False)]
        loss = sum(
            divergence(scores, weights, [i for i, s in enumerate(scores) if s in run])
            for run in runs
        )
        best = min(best, loss)
    return best


@pytest.mark.parametrize("seed", range(40))
def test_loses_no_more_than_any_partition(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 11))
    scores = rng.random(n) ** rng.choice([1, 6])
    scores = np.round(scores, 1) if seed % 3 == 0 else scores  # ties, and exact 0 and 1
    weights = rng.choice([0.5, 1.0, 3.0], n) if seed % 2 else np.ones(n)
    n_bins = int(rng.integers(1, 6))
    edges = InformationPreserving(n_bins).bin_edges(scores, None, weights)
    assert len(edges) - 1 <= n_bins
    assert lost(scores, weights, edges) == pytest.approx(
        least_lost(scores, weights, n_bins), abs=1e-12
    )


@pytest.mark.slow
def test_many_scores_in_cells_lose_hardly_more_than_all_of_them():
    # 3000 distinct scores are joined in 1000 cells; the plain program over all cuts is
    # the reference.
    scores = np.sort(
        1 / (1 + np.exp(-2 * np.random.default_rng(0).standard_normal(3000)))
    )
    n_bins = 12
    events, others = (
        np.append(0, np.cumsum(scores)),
        np.append(0, np.cumsum(1 - scores)),
    )
    least = np.full((n_bins + 1, 3001), math.inf)  # number of bins, scores in them
    least[:, 0] = 0
    for i in range(1, 3001):
        s, t = events[i] - events[:i], others[i] - others[:i]
        cost = (s + t) * np.log(s + t) - s * np.log(s) - t * np.log(t)
        least[1:, i] = np.min(least[:-1, :i] + cost, axis=1)
    exact = least[-1, -1] - sum(entropy(s) for s in scores)
    found = lost(scores, np.ones(3000), InformationPreserving(n_bins).bin_edges(scores))
    assert exact * (1 - 1e-9) <= found <= exact * 1.01


def test_rare_scores_near_the_ends_keep_bins_of_their_own():
    # Of 20,030 scores 15 lie next to 0 and 15 next to 1: cells of equal mass alone
    # would join them with the middle, and lose 14 nats where the bins by hand lose 1.4.
    ends = np.geomspace(1e-6, 1e-2, 15)
    scores = np.concatenate((ends, 1 - ends, np.linspace(0.45, 0.55, 20_000)))

    def entropies(values):
        return -values * np.log(values) - (1 - values) * np.log1p(-values)

    def lost_in_all(edges):
        bins = assign_bins(scores, np.asarray(edges))
        count = np.bincount(bins)
        return (
            count @ entropies(np.bincount(bins, scores) / count)
            - entropies(scores).sum()
        )

    assert lost_in_all(InformationPreserving(8).bin_edges(scores)) < lost_in_all(
        [0, 0.1, 0.47, 0.49, 0.51, 0.53, 0.9, 1]
    )


@pytest.mark.parametrize("max_loss", [0.05, 1e-2, 1e-3, 1e-5])
def test_max_loss_takes_the_fewest_bins(max_loss):
    scores = np.random.default_rng(1).beta(0.7, 1.5, 2000)
    ones, total = np.ones(len(scores)), sum(entropy(s) for s in scores)
    edges = InformationPreserving(max_loss=max_loss).bin_edges(scores)
    assert lost(scores, ones, edges) <= max_loss * total
    if max_loss > 1e-4:  # one bin fewer loses more
        fewer = InformationPreserving(len(edges) - 2).bin_edges(scores)
        assert lost(scores, ones, fewer) > max_loss * total


def test_max_loss_stops_at_n_bins():
    scores = np.random.default_rng(1).random(500)
    assert len(InformationPreserving(5, max_loss=1e-6).bin_edges(scores)) == 6
    assert len(InformationPreserving(50, max_loss=1e-2).bin_edges(scores)) < 20


def test_default_number_of_bins():
    # 4 * 1000^(1/3) = 40
    assert len(InformationPreserving().bin_edges(np.linspace(0, 1, 1000))) == 41


def test_exact_zeros_and_ones_are_bins_of_their_own():
    # They have no entropy: with any other score they lose some.
    scores = np.repeat([0.0, 0.3, 0.35, 1.0], [5, 2, 2, 5])
    edges = InformationPreserving(3).bin_edges(scores)
    assert assign_bins(np.array([0.0, 0.3, 0.35, 1.0]), edges).tolist() == [0, 1, 1, 2]
    assert len(InformationPreserving(max_loss=0.1).bin_edges(scores)) == 4
    assert (
        len(InformationPreserving(max_loss=0.1).bin_edges(np.array([0.0, 1.0, 1.0])))
        == 3
    )


def test_one_row_and_one_score():
    for scores in (np.array([0.3]), np.full(7, 0.3)):
        assert InformationPreserving().bin_edges(scores).tolist() == [0, 1]
        assert InformationPreserving(max_loss=1e-3).bin_edges(scores).tolist() == [0, 1]


def test_weights_are_repeated_rows_and_order_does_not_count():
    rng = np.random.default_rng(2)
    scores, weights = np.round(rng.random(200), 2), rng.integers(1, 4, 200)
    expected = InformationPreserving(7).bin_edges(np.repeat(scores, weights))
    np.testing.assert_array_equal(
        InformationPreserving(7).bin_edges(scores, None, weights.astype(float)),
        expected,
    )
    order = rng.permutation(200)
    np.testing.assert_array_equal(
        InformationPreserving(7).bin_edges(
            scores[order], None, weights[order].astype(float)
        ),
        expected,
    )


def test_single_precision_scores_make_the_same_bins():
    scores = np.random.default_rng(3).random(500).astype(np.float32)
    single, double = (
        InformationPreserving(9).bin_edges(s)
        for s in (scores, scores.astype(np.float64))
    )
    np.testing.assert_allclose(single, double, atol=1e-7)


def test_no_labels_are_needed_and_cuts_cover_all_scores():
    table = DistinctScores.from_rows(
        np.linspace(0, 1, 5000), np.zeros(5000, dtype=bool)
    )
    below = least_loss_cuts(table, 30)
    assert below[0] == 0
    assert below[-1] == 5000
    assert (np.diff(below) > 0).all()
    assert not InformationPreserving.needs_labels


def test_scaling_binning_costs_next_to_nothing():
    # The bins see the scaled scores: the log-loss of their means is that of the smooth
    # map to .1 %.
    rng = np.random.default_rng(4)
    scores = rng.beta(0.6, 1.5, 4000)
    y = rng.random(4000) < scores**1.4
    smooth = PlattScaling().fit(scores, y).predict_proba(scores)[:, 1]
    losses = {}
    for name, binning in {
        "information": InformationPreserving(),
        "mass": EqualMass(10),
    }.items():
        binned = (
            ScalingBinning(binning=binning).fit(scores, y).predict_proba(scores)[:, 1]
        )
        losses[name] = -np.mean(np.log(np.where(y, binned, 1 - binned)))
    reference = -np.mean(np.log(np.where(y, smooth, 1 - smooth)))
    assert abs(losses["information"] / reference - 1) < 1e-3
    assert losses["mass"] / reference > 1.01


def test_works_in_metrics_recalibrators_and_searches():
    rng = np.random.default_rng(5)
    scores = rng.random(300)
    y = (rng.random(300) < scores).astype(int)
    assert 0 <= calibration_error(y, scores, binning=InformationPreserving(8)) < 0.2
    search = GridSearchCV(
        HistogramBinning(InformationPreserving()), {"binning__n_bins": [3, 6]}
    ).fit(scores[:, None], y)
    assert search.best_params_["binning__n_bins"] in (3, 6)


@pytest.mark.parametrize("max_loss", [0, -1, "few"])
def test_refuses_a_loss_that_is_not_a_share(max_loss):
    with refused(ValueError, "max_loss", repr(max_loss)):
        InformationPreserving(max_loss=max_loss).bin_edges(np.array([0.1, 0.2]))


def test_refuses_a_number_of_bins_that_is_none():
    with refused(ValueError, "n_bins", "0"):
        InformationPreserving(0).bin_edges(np.array([0.1, 0.2]))
