"""Tests of calibration: closed forms by hand, resampling against its definition.
Levels: test_validity.py.
"""

import math
import time
from functools import partial

import numpy as np
import pytest
from _catalog import refused
from _twins import bins, equal_mass_edges
from scipy.stats import beta, binom, chi2, norm
from sklearn.metrics import brier_score_loss

from skcalib._cells.cells import Cells
from skcalib._cells.tasks import BinaryTask
from skcalib._inference.closed_form import maximum_pvalue, range_pvalue
from skcalib._inference.cluster_cells import ClusterCellDraws, _beta_draws
from skcalib._inference.cluster_draws import ClusterDraws, cluster_correlation
from skcalib._inference.label_dependence import RowsInCells
from skcalib.binning import EqualMass, EqualWidth, UniqueScores
from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    calibration_test,
    expected_calibration_error,
    kde_calibration_error,
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
    reliability_curve,
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
    excess = math.fsum(
        k * (y - s) * (1 - 2 * s) for y, s, k in zip(labels, scores, w, strict=True)
    )
    variance = math.fsum(
        k * (1 - 2 * s) ** 2 * s * (1 - s) for s, k in zip(scores, w, strict=True)
    )
    z = excess / math.sqrt(variance)
    found = calibration_test(
        labels, scores, method="spiegelhalter", sample_weight=weights
    )
    assert found == pytest.approx((z, 2 * norm.sf(abs(z))), rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_hosmer_lemeshow_equals_the_loop(weighted):
    labels, scores, weights = sample(power=1.1)
    weights = weights if weighted else None
    groups = bins(scores, labels, equal_mass_edges(scores, 10, weights), weights)
    statistic = 0.0
    for rows in groups:
        n = sum(w for _, _, w in rows)
        observed, expected = (
            sum(w * y for _, y, w in rows),
            sum(w * s for s, _, w in rows),
        )
        statistic += (observed - expected) ** 2 / (expected * (1 - expected / n))
    found = calibration_test(
        labels, scores, method="hosmer_lemeshow", sample_weight=weights
    )
    assert len(groups) == 10  # degrees of freedom
    assert found == pytest.approx((statistic, chi2.sf(statistic, 10)), rel=1e-9)


def test_hosmer_lemeshow_by_hand():
    # Two bins of ten rows: (5 - 2)^2 / (2 * .8) + (8 - 8)^2 / ... = 5.625 on two
    # degrees of freedom: exp(-5.625 / 2).
    scores = np.repeat([0.2, 0.8], 10)
    labels = np.r_[np.ones(5), np.zeros(5), np.ones(8), np.zeros(2)]
    found = calibration_test(
        labels, scores, method="hosmer_lemeshow", binning=UniqueScores()
    )
    assert found == pytest.approx((5.625, math.exp(-5.625 / 2)))
    # ten bins merge to the two scores
    assert found == calibration_test(labels, scores, method="hosmer_lemeshow")


def test_resampling_pvalue_is_that_of_the_binomial():
    # One distinct score s and the statistic |mean label - s|: the number of events is
    # binomial.
    labels = np.arange(60) < 24
    scores = np.full(60, 0.3)
    extreme = np.abs(np.arange(61) - 18) >= 6
    exact = binom.pmf(np.arange(61), 60, 0.3)[extreme].sum()
    for metric, n_resamples in ((None, 4000), (smooth_calibration_error, 400)):
        found = calibration_test(
            labels, scores, metric=metric, n_resamples=n_resamples, random_state=0
        )
        assert found.statistic == pytest.approx(0.1, abs=1e-6)
        three_standard_errors = 3 * math.sqrt(exact * (1 - exact) / n_resamples)
        assert found.pvalue == pytest.approx(exact, abs=three_standard_errors)


def test_the_default_statistic_is_the_sweep():
    labels, scores, weights = sample(power=1.2)
    for weight, kind in (
        (None, "frequency"),
        (weights, "frequency"),
        (weights / 3, "importance"),
    ):
        options = {"weight_type": kind, "n_resamples": 10, "random_state": 0}
        found = calibration_test(labels, scores, sample_weight=weight, **options)
        assert found.statistic == pytest.approx(
            sweep_calibration_error(labels, scores, sample_weight=weight)
        )
    # The same test through the general path: other random numbers, the same
    # distribution.
    quick = calibration_test(labels, scores, n_resamples=1000, random_state=0)
    general = calibration_test(
        labels,
        scores,
        n_resamples=1000,
        metric=partial(sweep_calibration_error),
        random_state=1,
    )
    assert general.statistic == pytest.approx(quick.statistic)
    assert general.pvalue == pytest.approx(quick.pvalue, abs=0.06)


@pytest.mark.parametrize("metric", [None, kde_calibration_error])
def test_a_weight_of_two_is_two_draws(metric):
    labels, scores, weights = sample(120, power=1.3, seed=4)
    options = {"metric": metric, "n_resamples": 600}
    weighted = calibration_test(
        labels, scores, sample_weight=weights, random_state=0, **options
    )
    repeated = calibration_test(
        np.repeat(labels, weights),
        np.repeat(scores, weights),
        random_state=1,
        **options,
    )
    assert weighted.statistic == pytest.approx(repeated.statistic, rel=1e-9)
    assert weighted.pvalue == pytest.approx(repeated.pvalue, abs=0.08)


def brownian(pvalue, x):
    """P-value of Brownian motion by the series that needs few terms for small x."""
    k = np.arange(1, 400) - 0.5
    if pvalue == "range":
        return 1 - math.fsum(
            (8 / x**2 + 2 / (k * np.pi) ** 2) * np.exp(-2 * (k * np.pi / x) ** 2)
        )
    signs = (-1.0) ** np.arange(len(k))
    return 1 - 2 / np.pi * math.fsum(signs / k * np.exp(-((k * np.pi / x) ** 2) / 2))


@pytest.mark.parametrize("x", [0.3, 0.8, 1.49, 1.51, 2.2, 3.5, 5.0])
def test_both_series_of_brownian_motion_agree(x):
    assert range_pvalue(x) == pytest.approx(brownian("range", x), abs=1e-12)
    assert maximum_pvalue(x) == pytest.approx(brownian("maximum", x), abs=1e-12)


def test_far_tails_are_not_rounded_to_zero():
    # max |B| beyond 8: 4 P(Z > 8), next to nothing else; the range: twice that.
    assert maximum_pvalue(8.0) == pytest.approx(4 * norm.sf(8), rel=1e-9)
    assert range_pvalue(8.0) == pytest.approx(8 * norm.sf(8), rel=1e-9)
    assert maximum_pvalue(0.0) == range_pvalue(0.0) == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_cumulative_tests_equal_the_loop(weighted):
    labels, scores, weights = sample(power=1.3)
    w = weights if weighted else np.ones(len(scores))
    sums, total = [0.0], 0.0
    for score in sorted(set(scores.tolist())):
        total += math.fsum(w[scores == score] * (labels[scores == score] - score))
        sums.append(total)
    x = np.array([max(sums) - min(sums), np.abs(sums).max()]) / math.sqrt(
        math.fsum(w * scores * (1 - scores))
    )
    weights = weights if weighted else None
    kuiper = calibration_test(labels, scores, method="kuiper", sample_weight=weights)
    smirnov = calibration_test(
        labels, scores, method="kolmogorov_smirnov", sample_weight=weights
    )
    assert kuiper == pytest.approx(
        ((max(sums) - min(sums)) / w.sum(), brownian("range", x[0]))
    )
    assert smirnov == pytest.approx(
        (np.abs(sums).max() / w.sum(), brownian("maximum", x[1]))
    )
    assert kuiper.statistic == pytest.approx(
        kuiper_calibration_error(labels, scores, sample_weight=weights)
    )


def test_asymptotic_and_resampled_pvalues_agree():
    rng = np.random.default_rng(3)
    scores = rng.random(4000)
    labels = rng.random(4000) < scores**1.03
    for method, metric in (
        ("kuiper", kuiper_calibration_error),
        ("kolmogorov_smirnov", kolmogorov_smirnov_calibration_error),
    ):
        asymptotic = calibration_test(labels, scores, method=method).pvalue
        resampled = calibration_test(
            labels, scores, metric=metric, n_resamples=1999, random_state=0
        ).pvalue
        assert resampled == pytest.approx(asymptotic, abs=0.05)


def test_clusters_of_equal_rows_are_one_row_each():
    # Ten copies of each row: as independent rows they are ten times as certain as the
    # 150 clusters that they are.
    labels, scores, _ = sample(150, power=1.3, seed=2)
    clusters = np.repeat(np.arange(150), 10)
    labels, scores = np.repeat(labels, 10), np.repeat(scores, 10)
    for options in (
        {},
        {"metric": calibration_error},
        {"method": "kuiper"},
        {"method": "kolmogorov_smirnov"},
    ):
        rows = calibration_test(labels, scores, random_state=0, **options)
        found = calibration_test(
            labels, scores, clusters=clusters, random_state=0, **options
        )
        assert found.statistic == pytest.approx(rows.statistic)
        assert found.pvalue > 3 * rows.pvalue


def dependent(seed, n_clusters=20, size=20, scores=None, correlation=0.3):
    """Calibrated labels that depend on each other within clusters; the default scores
    are .02 and .98.
    """
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(n_clusters), size)
    scores = (
        rng.choice([0.02, 0.98], len(clusters))
        if scores is None
        else scores(rng, len(clusters))
    )
    shared, own = rng.normal(size=n_clusters)[clusters], rng.normal(size=len(clusters))
    return (
        norm.cdf(correlation**0.5 * shared + (1 - correlation) ** 0.5 * own) < scores,
        scores,
        clusters,
    )


def test_dependent_draws_have_the_scores_as_margins_and_the_squares_of_the_clusters():
    labels, scores, clusters = dependent(
        0, 40, 15, lambda rng, n: np.round(rng.beta(1, 2, n), 1)
    )
    bins = BinaryTask(scores, labels, None).statistics(UniqueScores())
    cells = Cells.of_bins(bins)
    rows = RowsInCells(
        cells.cell_of(scores)[:, None], scores[:, None], labels[:, None], None
    )
    zero = np.zeros(len(cells.weight))
    draws = ClusterDraws(cells, rows, zero, clusters, 4000, np.random.RandomState(0))
    drawn = np.concatenate(list(draws(cells.mean_score)))
    assert drawn.mean(axis=0) == pytest.approx(cells.mean_score, abs=0.01)
    moved = np.concatenate(list(draws(np.clip(cells.mean_score + 0.1, 0, 1), 1)))
    assert moved.mean(axis=0) == pytest.approx(
        np.clip(cells.mean_score + 0.1, 0, 1), abs=0.01
    )
    # A plain twin with the same correlation: labels row by row.
    rng, squares, totals = np.random.default_rng(1), [], []
    for _ in range(2000):
        shared, own = rng.normal(size=40)[clusters], rng.normal(size=600)
        y = draws.correlation**0.5 * shared + (
            1 - draws.correlation
        ) ** 0.5 * own < norm.ppf(scores)
        squares.append(np.sum(np.bincount(clusters, y - scores) ** 2))
        totals.append(np.sum(y))
    observed = np.sum(np.bincount(clusters, labels - scores) ** 2) * 40 / 39
    assert np.mean(squares) == pytest.approx(observed, rel=0.06)
    assert np.std(drawn @ cells.weight) == pytest.approx(np.std(totals), rel=0.06)


@pytest.mark.parametrize("frequency", [0.0, 0.03, 0.4, 0.9, 1.0])
def test_dependent_draws_of_a_bin_with_scores_of_0_and_1_have_its_frequency(frequency):
    """Scores that are clipped at 0 or 1 leave their shift to the others of the bin."""
    scores = np.tile([0.0, 0.1, 0.5, 0.95, 1.0], 60)
    labels = np.arange(300) % 3 == 0
    cells = Cells.of_bins(BinaryTask(scores, labels, None).statistics(EqualMass(1)))
    rows = RowsInCells(
        np.zeros((300, 1), dtype=int), scores[:, None], labels[:, None], None
    )
    draws = ClusterDraws(
        cells,
        rows,
        cells.deviation,
        np.arange(300) // 5,
        2000,
        np.random.RandomState(0),
    )
    drawn = np.concatenate(list(draws(np.array([frequency]), 1)))
    assert drawn.mean() == pytest.approx(frequency, abs=0.005)
    if frequency in (0, 1):
        assert drawn == pytest.approx(frequency, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_clusters", [30, 1500])
def test_dependent_draws_by_cell_are_those_of_rows(n_clusters, weighted):
    """The deviation of all cells together depends on the clusters: its spread is that
    of labels drawn row by row, whether the deviates of all clusters are drawn (30) or
    those of the largest (1,500).
    """
    labels, scores, clusters = dependent(
        0, n_clusters, 3000 // n_clusters, lambda rng, n: rng.beta(1, 3, n)
    )
    weight = None
    if weighted:
        weight = np.random.default_rng(1).integers(1, 4, 3000).astype(float)
    cells = BinaryTask(scores, labels, weight).bin_cells(EqualMass(5))
    rows = RowsInCells(
        cells.cell_of(scores)[:, None], scores[:, None], labels[:, None], weight
    )
    by_row = ClusterDraws(
        cells, rows, np.zeros(5), clusters, 1500, np.random.RandomState(0)
    )
    by_cell = ClusterCellDraws(
        cells,
        rows,
        clusters,
        np.ones(3000) if weight is None else weight,
        by_row.correlation,
        1500,
        np.random.RandomState(0),
    )
    for frequency in cells.mean_score, (1.3 * cells.mean_score).clip(0, 1):
        expected = np.concatenate(list(by_row(frequency)))
        found = np.concatenate(list(by_cell(frequency)))
        noise = expected.std(axis=0) / 1500**0.5
        assert np.abs(found.mean(axis=0) - frequency).max() < 5 * noise.max()
        assert found.std(axis=0) == pytest.approx(expected.std(axis=0), rel=0.08)
        assert np.cov(found.T) == pytest.approx(
            np.cov(expected.T), abs=0.12 * np.var(expected, axis=0).max()
        )
        sums = [
            np.abs(drawn - cells.mean_score).sum(axis=1) for drawn in (found, expected)
        ]
        assert np.quantile(sums[0], [0.05, 0.5, 0.95]) == pytest.approx(
            np.quantile(sums[1], [0.05, 0.5, 0.95]), rel=0.08
        )


@pytest.mark.parametrize("frequency", [0.0, 1.0])
def test_dependent_draws_by_cell_reach_frequencies_of_0_and_1(frequency):
    labels, scores, clusters = dependent(0, 20, 50, lambda rng, n: rng.random(n))
    cells = BinaryTask(scores, labels, None).bin_cells(EqualMass(2))
    rows = RowsInCells(
        cells.cell_of(scores)[:, None], scores[:, None], labels[:, None], None
    )
    draws = ClusterCellDraws(
        cells, rows, clusters, np.ones(1000), 0.3, 50, np.random.RandomState(0)
    )
    drawn = np.concatenate(list(draws(np.full(2, frequency))))
    assert drawn.shape == (50, 2)
    assert np.all(drawn == frequency)


def test_draws_by_cell_have_beta_distributions():
    """Few events: the quantiles are those of the beta distribution with the mean and
    the variance; many: those of a normal one with its skewness.
    """
    levels = np.array([0.02, 0.3, 0.5, 0.9, 0.99])
    means, relative = np.array([0.01, 0.4, 0.98]), np.array([0.2, 0.01, 0.001])
    drawn = _beta_draws(
        np.tile(means, (5, 1)), relative, np.tile(norm.ppf(levels)[:, None], 3)
    )
    total = 1 / relative - 1
    exact = beta.ppf(levels[:, None], means * total, (1 - means) * total)
    assert drawn == pytest.approx(exact, abs=2e-4)


def test_correlation_of_many_rows_is_found_from_their_grades(monkeypatch):
    labels, scores, clusters = dependent(
        1, 300, 10, lambda rng, n: rng.beta(2, 2, n), correlation=0.4
    )
    rows = scores, labels, np.ones(3000), clusters
    of_rows = cluster_correlation(*rows)
    monkeypatch.setattr("skcalib._inference.cluster_draws._ROWS_OF_GRADES", 1000)
    assert cluster_correlation(*rows) == pytest.approx(of_rows, abs=0.005)


@pytest.mark.parametrize("most_rows", [1 << 13, 1000])
def test_miscalibrated_scores_hide_no_dependence(most_rows, monkeypatch):
    """The truth is s^2, so that labels vary less than the scores promise: the
    correlation is that of the labels nevertheless, not one third less.
    """
    monkeypatch.setattr("skcalib._inference.cluster_draws._ROWS_OF_GRADES", most_rows)
    labels, truth, clusters = dependent(3, 400, 20, lambda rng, n: rng.random(n) ** 2)
    scores = np.sqrt(truth)
    cells = BinaryTask(scores, labels, None).bin_cells(EqualMass(15))
    cell = cells.cell_of(scores)[:, None]
    rows = RowsInCells(cell, scores[:, None], labels[:, None], None)
    draws = ClusterDraws(
        cells, rows, cells.deviation, clusters, 9, np.random.RandomState(0)
    )
    assert draws.correlation == pytest.approx(0.3, abs=0.04)


@pytest.mark.slow
def test_interval_of_many_rows_in_clusters_is_that_of_draws_by_row(monkeypatch):
    labels, scores, clusters = dependent(2, 40, 30, lambda rng, n: rng.random(n))
    options = {"binning": 5, "clusters": clusters, "n_resamples": 999}
    run = partial(
        calibration_error_interval, labels, scores**1.3, **options, random_state=0
    )
    by_row = run()
    monkeypatch.setattr("skcalib._inference.cluster_draws.MOST_STORED", 1)
    by_cell = run()
    assert by_cell[0] == by_row[0]
    assert by_cell[1:] == pytest.approx(by_row[1:], rel=0.08, abs=0.003)


def test_few_events_in_clusters_warn():
    labels, scores, clusters = dependent(0, scores=lambda rng, n: np.full(n, 0.05))
    with pytest.warns(UserWarning, match="20 events.*40.*may not keep its level"):
        calibration_test(
            labels, scores, metric=calibration_error, clusters=clusters, n_resamples=9
        )


@pytest.mark.slow
def test_any_metric_has_clusters():
    """Ten copies of each row: the resampled p-value is that of 100 rows, not of
    1,000.
    """
    rng = np.random.default_rng(0)
    scores = rng.random(100)
    labels = rng.random(100) < scores**1.2
    options = {"metric": brier_score_loss, "n_resamples": 199, "random_state": 0}
    one = calibration_test(labels, scores, **options).pvalue
    rows = labels.repeat(10), scores.repeat(10)
    ten = calibration_test(*rows, clusters=np.arange(1000) // 10, **options).pvalue
    assert ten > 0.02
    assert ten == pytest.approx(one, abs=0.1)
    # as independent rows they are ten times as sure
    assert calibration_test(*rows, **options).pvalue == 0.005


@pytest.mark.slow
def test_level_of_two_modes_in_clusters():
    metric, rejected = partial(calibration_error, binning=10), 0
    for seed in range(200):
        labels, scores, clusters = dependent(seed)
        rejected += (
            calibration_test(
                labels, scores, metric=metric, clusters=clusters, n_resamples=99
            ).pvalue
            <= 0.05
        )
    assert rejected <= 19  # .14 before; more than 19 of 200 has a chance of .4 % at .05


def test_poor_approximations_warn():
    rng = np.random.default_rng(0)
    constant, few = np.full(100, 0.01), rng.random(20)
    rare = rng.beta(1, 999, 1000)
    with pytest.warns(UserWarning, match="spiegelhalter.*resampling"):
        calibration_test(np.arange(100) < 1, constant, method="spiegelhalter")
    for scores in (constant, few, rare, rng.beta(1, 19, 200)):
        with pytest.warns(UserWarning, match="hosmer_lemeshow.*resampling"):
            calibration_test(
                np.arange(len(scores)) < 1, scores, method="hosmer_lemeshow"
            )


def test_sums_of_bins_in_place_of_rows():
    labels, scores, _ = sample(power=1.4)
    bins = reliability_curve(labels, scores, binning=10)
    rows = calibration_test(
        labels,
        scores,
        metric=partial(calibration_error, binning=10),
        n_resamples=99,
        random_state=0,
    )
    assert calibration_test(
        bins, metric=calibration_error, n_resamples=99, random_state=0
    ) == pytest.approx(rows)
    chi_squared = calibration_test(labels, scores, method="hosmer_lemeshow")
    assert calibration_test(bins, method="hosmer_lemeshow") == pytest.approx(
        chi_squared
    )
    distinct = reliability_curve(labels, scores, binning=UniqueScores())
    for options in ({"method": "kuiper"}, {"metric": kuiper_calibration_error}):
        options = {"n_resamples": 99, "random_state": 0, **options}
        assert calibration_test(distinct, **options) == pytest.approx(
            calibration_test(labels, scores, **options)
        )
    with refused(ValueError, "BinStatistics"):
        calibration_test(bins, method="spiegelhalter")
    with refused(ValueError, "BinStatistics"):
        calibration_test(bins, clusters=np.arange(10))
    with refused(ValueError, "BinStatistics"):
        calibration_test(bins, metric=brier_score_loss)


@pytest.mark.slow
def test_ten_million_rows_cost_about_one_sort():
    # 999 draws of 4,096 cells; the rows are sorted once. 400,000 here: well under the
    # seconds of 999 sorts.
    rng = np.random.default_rng(0)
    scores = rng.random(400_000)
    labels = rng.random(400_000) < scores
    start = time.perf_counter()
    pvalue = calibration_test(
        labels, scores, metric=kuiper_calibration_error, random_state=0
    ).pvalue
    assert 0.001 < pvalue <= 1
    assert time.perf_counter() - start < 10


def test_miscalibrated_scores_are_found():
    rng = np.random.default_rng(0)
    scores = rng.random(1000)
    labels = rng.random(1000) < 0.2 + 0.6 * scores
    for method in ("resampling", "spiegelhalter", "hosmer_lemeshow"):
        assert (
            calibration_test(labels, scores, method=method, random_state=0).pvalue
            < 0.01
        )
    assert calibration_test(labels, scores, random_state=0).pvalue == 1 / 1000


def test_spiegelhalter_is_blind_to_errors_that_balance():
    # P(y | s) = s^a: the integral of (s^a - s)(1 - 2 s) over [0, 1], which z is made
    # of, is 0 for a = 2 and small near.
    labels, scores, _ = sample(1000, power=2)
    assert calibration_test(labels, scores, method="spiegelhalter").pvalue > 0.05
    assert calibration_test(labels, scores, random_state=0).pvalue == 1 / 1000


def test_any_metric_of_labels_and_scores():
    labels, scores, weights = sample()
    for metric in (
        brier_score_loss,
        calibration_error,
        partial(expected_calibration_error, binning=EqualWidth(5)),
    ):
        found = calibration_test(
            labels, scores, metric=metric, n_resamples=19, random_state=0
        )
        assert found.statistic == pytest.approx(metric(labels, scores))
        assert 1 / 20 <= found.pvalue <= 1
        threads = calibration_test(
            labels, scores, metric=metric, n_resamples=19, n_jobs=2, random_state=0
        )
        assert threads == found
        calibration_test(
            labels,
            scores,
            metric=metric,
            n_resamples=5,
            sample_weight=weights,
            random_state=0,
        )


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
        assert (
            calibration_test(
                off, proba, n_resamples=99, random_state=0, **options
            ).pvalue
            <= 0.02
        )
        # a row that is counted twice is not two labels
        if "sample_weight" not in options:
            assert (
                calibration_test(
                    calibrated, proba, n_resamples=99, random_state=0, **options
                ).pvalue
                > 0.02
            )
    # Top-label is the binary problem of the confidence.
    top = calibration_test(
        calibrated == names[proba.argmax(1)], proba.max(1), method="spiegelhalter"
    )
    assert calibration_test(calibrated, proba, method="spiegelhalter") == pytest.approx(
        top
    )


def test_nothing_random():
    for method in ("resampling", "spiegelhalter", "hosmer_lemeshow"):
        right = calibration_test(
            [0, 1, 1], [0.0, 1.0, 1.0], method=method, random_state=0
        )
        assert right == (0.0, 1.0)
        wrong = calibration_test(
            [1, 1, 1], [0.0, 1.0, 1.0], method=method, labels=[0, 1], random_state=0
        )
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
    with refused(ValueError, "clusters", "spiegelhalter", "kuiper"):
        calibration_test(y, s, method="spiegelhalter", clusters=[0, 1, 1])
    with refused(ValueError, "clusters", "2", "3"):
        calibration_test(y, s, clusters=[0, 1])
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
