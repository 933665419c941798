"""Two samples compared: against loops, permutations by brute force, and the levels."""

import warnings
from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from _catalog import refused
from scipy.special import expit, logit
from scipy.stats import norm

from skcalib._cells.tasks import BinaryTask
from skcalib._inference import cluster_draws
from skcalib._inference.differences import square_and_add
from skcalib._inference.results import IntervalEstimate
from skcalib.binning import EqualMass
from skcalib.metrics import (
    BinStatistics,
    calibration_by_group,
    calibration_error_interval,
)
from skcalib.monitoring import calibration_change
from skcalib.monitoring._excess import ResidualLines, _PooledRows, excess_of_rows

INTERVALS = [
    "shift",
    "bias_before",
    "bias_after",
    "bias_difference",
    "error_before",
    "error_after",
    "error_difference",
]


def _samples(n=500, shift=0.0, seed=0, tied=False):
    rng = np.random.default_rng(seed)
    before, after = rng.beta(1, 3, n), rng.beta(2, 3, n)
    if tied:
        before, after = np.round(before, 1), np.round(after, 1)
    y_before = rng.random(n) < before
    y_after = rng.random(n) < np.clip(
        expit(logit(np.clip(after, 1e-9, 1 - 1e-9)) + shift), 0, 1
    )
    return y_before.astype(int), before, y_after.astype(int), after


def _cells(before, after):
    """Return the cell of each row by mid-ranks of the pooled scores, in plain loops."""
    scores = np.concatenate((before, after))
    n = len(scores)
    n_cells = int(n / max(20, sqrt(n)))
    return np.array(
        [
            int(n_cells * (np.sum(scores < s) + np.sum(scores <= s)) / 2 / n)
            for s in scores
        ]
    )


def _about_a_line(scores, residuals, weight, second, importance=False):
    """Return the second sample's excess about a line that is fitted by least squares,
    its weight and, if the curve is the same, its variance without that of the weights.

    With importance weights the squares stay with their weights, which may say something
    about the labels.
    """
    design = np.stack((np.ones(len(scores)), scores - scores.mean()), axis=1)
    if np.ptp(scores) < 1e-9:
        design = design[:, :1]
    root = np.sqrt(weight)[:, None]
    fitted = [
        design @ np.linalg.lstsq(root * design, root[:, 0] * values)[0]
        for values in (residuals, second.astype(float))
    ]
    rest, coefficient = residuals - fitted[0], second - fitted[1]
    effective = weight.sum() - design.shape[1] * np.sum(weight**2) / weight.sum()
    variance = np.sum(weight * rest**2) / effective
    variance *= np.sum((weight * coefficient) ** 2)
    if importance:
        squares = np.sum((weight * coefficient * rest) ** 2)
        variance = squares * weight.sum() / effective
    return (
        np.sum((weight * rest)[second]),
        np.sum((weight * coefficient)[second]),
        variance,
        rest,
    )


def _statistic(cells, scores, residuals, is_after):
    total, low, high, variance = 0.0, 0.0, 0.0, 0.0
    for cell in sorted(set(cells.tolist())):
        rows = cells == cell
        excess, weight, of_excess, _ = _about_a_line(
            scores[rows], residuals[rows], np.ones(rows.sum()), is_after[rows]
        )
        if weight < 1e-9:
            continue
        total += excess
        low, high = min(low, total), max(high, total)
        variance += of_excess
    return (high - low) / sqrt(variance)


@pytest.mark.slow
@pytest.mark.parametrize("tied", [False, True])
def test_the_pvalue_is_that_of_permutations_within_cells(tied):
    y_before, before, y_after, after = _samples(300, 0.25, tied=tied)
    change = calibration_change(
        y_before, before, y_after, after, n_resamples=2000, random_state=0
    )
    cells, scores = _cells(before, after), np.concatenate((before, after))
    residuals = np.concatenate((y_before - before, y_after - after))
    is_after = np.arange(600) >= 300
    assert change.statistic == pytest.approx(
        _statistic(cells, scores, residuals, is_after)
    )
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(100):
        permuted = residuals.copy()
        for cell in set(cells.tolist()):
            own = np.flatnonzero(cells == cell)
            rest = _about_a_line(
                scores[own], residuals[own], np.ones(len(own)), is_after[own]
            )[3]
            permuted[own] = rng.permutation(rest)
        drawn.append(_statistic(cells, scores, permuted, is_after))
    share = np.mean(np.array(drawn) >= change.statistic - 1e-9)
    assert change.pvalue == pytest.approx(
        share, abs=4 * sqrt(max(share * (1 - share), 0.01) / 100)
    )


def test_the_shift_by_hand():
    y_before, before, y_after, after = _samples(300, 0.5)
    cells, scores = _cells(before, after), np.concatenate((before, after))
    residuals = np.concatenate((y_before - before, y_after - after))
    is_after = np.arange(600) >= 300
    excesses, weights, variances = [], [], []
    for cell in set(cells.tolist()):
        rows = cells == cell
        excess, weight, variance, _ = _about_a_line(
            scores[rows], residuals[rows], np.ones(rows.sum()), is_after[rows]
        )
        if weight > 1e-9:
            excesses.append(excess)
            weights.append(weight)
            variances.append(variance)
    change = calibration_change(
        y_before,
        before,
        y_after,
        after,
        confidence_level=0.8,
        n_resamples=9,
        random_state=0,
    )
    estimate = sum(excesses) / sum(weights)
    margin = norm.ppf(0.9) * sqrt(sum(variances)) / sum(weights)
    assert change.shift == pytest.approx(
        (estimate, estimate - margin, estimate + margin)
    )


def test_each_part_is_the_public_one():
    y_before, before, y_after, after = _samples(400, 0.5)
    options = {"norm": 1, "method": "plugin", "binning": 5, "n_resamples": 50}
    change = calibration_change(
        y_before, before, y_after, after, **options, random_state=0
    )
    assert (change.n_before, change.n_after) == (400, 400)
    for name, y, scores in (("before", y_before, before), ("after", y_after, after)):
        table = calibration_by_group(y, scores, np.zeros(400), random_state=0)
        expected = table.bias[0], table.bias_low[0], table.bias_high[0]
        assert getattr(change, f"bias_{name}") == pytest.approx(expected)
        error = calibration_error_interval(y, scores, **options, random_state=0)
        found = getattr(change, f"error_{name}")
        assert found.estimate == pytest.approx(error.estimate)
        assert found[1:] == pytest.approx(error[1:], abs=0.03)  # other draws
    before_, after_ = change.bias_before, change.bias_after
    low = before_.estimate - before_.low, before_.high - before_.estimate
    high = after_.estimate - after_.low, after_.high - after_.estimate
    difference = after_.estimate - before_.estimate
    expected = (
        difference,
        difference - np.hypot(high[0], low[1]),
        difference + np.hypot(high[1], low[0]),
    )
    assert change.bias_difference == pytest.approx(expected)


def test_an_estimate_outside_its_interval():
    # The plugin error .3 lies above [.1, .2]: the difference of the limits counts from
    # .2 = .2 - 0 on.
    found, _ = square_and_add(
        IntervalEstimate(0.3, 0.1, 0.2), IntervalEstimate(0.0, 0.0, 0.05)
    )
    assert found == pytest.approx(
        (0.3, 0.2 - np.hypot(0.1, 0.05), 0.2 + np.hypot(0.0, 0.0))
    )


def test_a_change_of_the_scores_alone_is_none():
    change = calibration_change(*_samples(3000), random_state=0)
    assert change.pvalue > 0.05
    assert change.shift.low < 0 < change.shift.high
    moved = calibration_change(*_samples(3000, 0.5), random_state=0)
    assert moved.pvalue == 0.001
    assert moved.shift.low > 0
    assert moved.bias_difference.high < 0


def test_statistics_take_the_place_of_rows():
    y_before, before, y_after, after = _samples(2000, 0.3)
    edges = EqualMass(60).bin_edges(np.concatenate((before, after)))
    bins = [
        BinStatistics.from_predictions(y, scores, edges)
        for scores, y in ((before, y_before), (after, y_after))
    ]
    change = calibration_change(*bins, random_state=0)
    again = calibration_change(y_before=bins[0], y_after=bins[1], random_state=0)
    rows = calibration_change(y_before, before, y_after, after, random_state=0)
    assert change.pvalue == again.pvalue
    assert (change.n_before, change.n_after) == (2000, 2000)
    for name in ("shift", "bias_before", "bias_difference"):
        assert getattr(change, name) == pytest.approx(getattr(rows, name), abs=0.01)
    assert change.statistic == pytest.approx(rows.statistic, abs=0.5)
    assert change.error_before == pytest.approx(
        calibration_error_interval(bins[0], n_resamples=999), abs=0.02
    )


def test_the_result_is_a_table_of_its_intervals():
    change = calibration_change(*_samples(), random_state=0)
    assert len(change) == 7
    assert change.columns()["quantity"].tolist() == INTERVALS
    first, second, *table = repr(change).split("\n")
    assert first.startswith("No change is detectable (p = 0.57): at equal scores")
    assert second == "500 samples before, 500 after."
    assert len(table) == 8
    assert change._repr_html_().count("<tr>") == 8
    pytest.importorskip("pandas")
    assert change.to_frame()["estimate"].tolist() == [
        getattr(change, name).estimate for name in INTERVALS
    ]
    with pytest.raises(AttributeError):
        change.pvalue = 0.0


def test_one_class_in_one_sample_and_other_labels():
    y_before, before, _, after = _samples()
    change = calibration_change(
        y_before, before, np.zeros(500, dtype=int), after, random_state=0
    )
    assert change.pvalue == 0.001
    texts = np.array(["no", "yes"])
    y = texts[y_before], before, texts[np.zeros(500, dtype=int)], after
    named = calibration_change(
        *y, labels=["no", "yes"], pos_label="yes", random_state=0
    )
    assert named.statistic == change.statistic
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 400)
    many = calibration_change(
        rng.integers(0, 3, 200), proba[:200], rng.integers(0, 3, 200), proba[200:]
    )
    assert many.bias_before.estimate > 0.2  # confidence .6, right in a third
    all_events = np.ones(40, dtype=bool)
    nothing = calibration_change(
        all_events, np.full(40, 0.9), all_events, np.full(40, 0.9)
    )
    assert (nothing.statistic, nothing.pvalue) == (0, 1)


def test_wrong_input_is_named():
    y_before, before, y_after, after = _samples(60)
    with refused(ValueError, "y_proba_after", "NaN", "row 2"):
        calibration_change(
            y_before, before, y_after, np.where(np.arange(60) == 2, np.nan, after)
        )
    with refused(ValueError, "y_before has 59 rows", "y_proba_before has 60"):
        calibration_change(y_before[:59], before, y_after, after)
    with refused(ValueError, "y_after is missing"):
        calibration_change(y_before, before)
    with refused(ValueError, "multiclass", "marginal"):
        calibration_change(y_before, before, y_after, after, multiclass="marginal")
    with refused(ValueError, "'after'", "two rows in each bin"):
        calibration_change(y_before, before, y_after[:3], after[:3])
    with refused(ValueError, "no scores in common"):
        calibration_change(y_before, before / 10, y_after, 0.9 + after / 10)
    bins = BinStatistics.from_predictions(y_before, before, [0, 0.5, 1])
    with refused(ValueError, "equal edges"):
        calibration_change(
            bins, BinStatistics.from_predictions(y_before, before, [0, 0.4, 1])
        )
    with refused(ValueError, "y_after", "BinStatistics", "ndarray"):
        calibration_change(bins, before)
    with refused(ValueError, "binning"):
        calibration_change(bins, bins, binning=5)
    with refused(ValueError, "sample_weight", "BinStatistics"):
        calibration_change(bins, bins, sample_weight=[np.ones(60), np.ones(60)])
    with refused(ValueError, "clusters", "pair"):
        calibration_change(y_before, before, y_after, after, clusters=np.arange(120))
    with refused(ValueError, "sample_weight of the sample 'after'", "row 3"):
        weight = np.ones(60)
        calibration_change(
            y_before,
            before,
            y_after,
            after,
            sample_weight=(weight, np.where(weight.cumsum() == 4, -1, 1)),
        )
    with refused(ValueError, "y_after", "no rows"):
        calibration_change(bins, BinStatistics.from_predictions([], [], [0, 0.5, 1]))


def _other_shares(seed, n=1000):
    """Two clusters of calibrated scores, of which the second sample has other
    shares.
    """
    rng = np.random.default_rng(seed)
    parts = []
    for share in (0.1, 0.88):  # the gap lies in the middle of a cell
        high = rng.random(n) < share
        scores = np.where(high, rng.beta(150, 2, n), rng.beta(2, 150, n))
        parts += [rng.random(n) < scores, scores]
    return parts


@pytest.mark.slow
@pytest.mark.parametrize("n_bins", [0, 3])
def test_clusters_of_scores_that_change_their_shares_are_no_change(n_bins):
    rejected = 0
    for seed in range(8):
        samples = _other_shares(seed)
        if n_bins:
            edges = np.linspace(0, 1, n_bins + 1)
            samples = [
                BinStatistics.from_predictions(*samples[k : k + 2], edges)
                for k in (0, 2)
            ]
        change = calibration_change(
            *samples, norm=1, method="plugin", n_resamples=99, random_state=seed
        )
        rejected += change.pvalue <= 0.05
        assert change.shift.high - change.shift.low < 0.15
    assert rejected <= 2


@pytest.mark.slow
@pytest.mark.parametrize("n_bins", [0, 1, 3])
def test_level_where_the_shares_change(n_bins):
    rejected, missed = 0, 0
    for seed in range(60):
        samples = _other_shares(seed)
        if n_bins:
            edges = np.linspace(0, 1, n_bins + 1)
            samples = [
                BinStatistics.from_predictions(*samples[k : k + 2], edges)
                for k in (0, 2)
            ]
        change = calibration_change(
            *samples, norm=1, method="plugin", n_resamples=99, random_state=seed
        )
        rejected += change.pvalue <= 0.05
        missed += not change.shift.low <= 0 <= change.shift.high
    assert rejected <= 8  # .73 before; more than 8 of 60 has a chance of .3 % at .05
    assert missed <= 13  # of .3 % at .1


@pytest.mark.slow
@pytest.mark.parametrize("tied", [False, True])
def test_level_and_coverage(tied):
    rejected, covered, runs = 0, np.zeros(3), 80
    for seed in range(runs):
        change = calibration_change(
            *_samples(500, seed=seed, tied=tied), n_resamples=99, random_state=seed
        )
        rejected += change.pvalue <= 0.05
        differences = change.shift, change.bias_difference, change.error_difference
        covered += [one.low <= 0 <= one.high for one in differences]
    # more than this of 80 has a chance of .2 % at a level of .05
    assert rejected <= 10
    assert np.all(covered / runs >= 0.79)  # .86 less two standard errors


def test_whole_weights_are_repeated_rows():
    y_before, before, y_after, after = _samples(300, 0.3, tied=True)
    rng = np.random.default_rng(5)
    weights = rng.integers(0, 4, 300), rng.integers(1, 3, 300)
    repeated = [
        np.repeat(one, weights[k // 2])
        for k, one in enumerate((y_before, before, y_after, after))
    ]
    for power, method in ((1, "plugin"), (2, "auto")):
        options = {
            "norm": power,
            "method": method,
            "n_resamples": 50,
            "random_state": 0,
        }
        found = calibration_change(
            y_before, before, y_after, after, sample_weight=weights, **options
        )
        expected = calibration_change(*repeated, **options)
        assert (found.n_before, found.n_after) == (weights[0].sum(), weights[1].sum())
        assert (found.statistic, found.pvalue) == pytest.approx(
            (expected.statistic, expected.pvalue)
        )
        for name in INTERVALS[:4]:
            assert getattr(found, name) == pytest.approx(getattr(expected, name))


def test_importance_weights_by_hand():
    y_before, before, y_after, after = _samples(400, 0.3)
    rng = np.random.default_rng(6)
    weights = 1 + rng.pareto(2.2, 400), 1 + rng.pareto(2.2, 400)
    options = {
        "weight_type": "importance",
        "n_resamples": 50,
        "norm": 1,
        "method": "plugin",
        "random_state": 0,
    }
    found = calibration_change(
        y_before, before, y_after, after, sample_weight=weights, **options
    )
    worth = [weight * weight.sum() / np.sum(weight**2) for weight in weights]
    assert (found.n_before, found.n_after) == pytest.approx(
        [one.sum() for one in worth]
    )
    scores, w = np.concatenate((before, after)), np.concatenate(worth)
    residual, is_after = (
        np.concatenate((y_before - before, y_after - after)),
        np.arange(800) >= 400,
    )
    n_cells = int(w.sum() / max(20, sqrt(w.sum())))
    cells = [
        int(n_cells * (w[scores < s].sum() + w[scores <= s].sum()) / 2 / w.sum())
        for s in scores
    ]
    total, weight, variance = 0.0, 0.0, 0.0
    for cell in sorted(set(cells)):
        rows = np.array(cells) == cell
        excess, of_weight, of_variance, _ = _about_a_line(
            scores[rows], residual[rows], w[rows], is_after[rows], importance=True
        )
        if of_weight > 1e-9:
            total += excess
            weight += of_weight
            variance += of_variance
    margin = norm.ppf(0.95) * sqrt(variance) / weight
    assert found.shift == pytest.approx(
        (total / weight, total / weight - margin, total / weight + margin)
    )
    for k, (y, scores) in enumerate(((y_before, before), (y_after, after))):
        by_group = {
            "sample_weight": weights[k],
            "weight_type": "importance",
            "random_state": 0,
        }
        table = calibration_by_group(y, scores, np.zeros(400), **by_group)
        expected = table.bias[0], table.bias_low[0], table.bias_high[0]
        assert (found.bias_before, found.bias_after)[k] == pytest.approx(expected)
    edges = EqualMass(40).bin_edges(np.concatenate((before, after)))
    bins = [
        BinStatistics.from_predictions(y, scores, edges, weights[k])
        for k, (y, scores) in enumerate(((y_before, before), (y_after, after)))
    ]
    # The rows of a bin count as equal: the label does not change their weight.
    of_bins = calibration_change(*bins, **options)
    declared = calibration_by_group(
        y_after,
        after,
        np.zeros(400),
        sample_weight=weights[1],
        weight_type={0: weights[1], 1: weights[1]},
        random_state=0,
    )
    expected = declared.bias[0], declared.bias_low[0], declared.bias_high[0]
    assert of_bins.bias_after == pytest.approx(expected, abs=0.01)
    assert of_bins.shift == pytest.approx(found.shift, abs=0.03)
    with pytest.warns(UserWarning, match="not integers"):
        calibration_change(*bins, **options | {"weight_type": "frequency"})


@pytest.mark.slow
def test_clusters_of_one_row_are_none_and_repeated_rows_count_once():
    y_before, before, y_after, after = _samples(400, 0.4)
    options = {"norm": 1, "method": "plugin", "n_resamples": 299, "random_state": 0}
    plain = calibration_change(y_before, before, y_after, after, **options)
    rows = [f"a{k}" for k in range(400)], [f"b{k}" for k in range(400)]
    single = calibration_change(
        y_before, before, y_after, after, clusters=rows, **options
    )
    assert single.shift == pytest.approx(plain.shift, abs=0.012)
    assert single.statistic == pytest.approx(plain.statistic, rel=0.15)
    four = [np.tile(one, 4) for one in (y_before, before, y_after, after)]
    clusters = [np.tile(one, 4) for one in rows]
    repeated = calibration_change(*four, clusters=clusters, **options)
    assert (
        repeated.shift.high - repeated.shift.low
        > 1.5 * (plain.shift.high - plain.shift.low) / 2 * 0.9
    )
    assert repeated.shift.estimate == pytest.approx(plain.shift.estimate, abs=0.02)
    # The same patients before and after: what they share cancels, so that the shift is
    # known better.
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(40), 10)
    scores = rng.uniform(0.2, 0.8, 400)
    pushed = np.clip(scores + 0.2 * rng.choice([-1, 1], 40)[patient], 0, 1)
    samples = rng.random(400) < pushed, scores, rng.random(400) < pushed, scores
    same = calibration_change(*samples, clusters=(patient, patient), **options).shift
    other = calibration_change(
        *samples, clusters=(patient, patient + 40), **options
    ).shift
    assert same.high - same.low < other.high - other.low


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["importance", "clusters", "rare clusters"])
def test_level_and_coverage_of_weights_and_clusters(kind):
    from skcalib.monitoring._excess import excess_of_rows, excess_test
    from skcalib.monitoring._two_samples import two_samples

    rejected, missed = 0, 0
    given = {"labels": [0, 1], "pos_label": None, "multiclass": "auto"}
    for seed in range(80):
        rng = np.random.default_rng(seed)
        if kind == "importance":
            scores, n = rng.random(800), 400
            given |= {
                "sample_weight": 1 + rng.pareto(2.2, (2, 400)),
                "weight_type": "importance",
            }
            y = rng.random(800) < scores
        else:
            n, cluster = 600, np.repeat(np.arange(60), 20)
            scores = rng.beta(1, 30, 1200) if "rare" in kind else rng.random(1200)
            y = sqrt(0.2) * rng.normal(size=60)[cluster] + sqrt(0.8) * rng.normal(
                size=1200
            ) < norm.ppf(scores)
            given |= {"clusters": (cluster[:n], cluster[n:])}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # few events
            samples = two_samples(y[:n], scores[:n], y[n:], scores[n:], None, **given)
            weight_type = given.get("weight_type", "frequency")
            rng = np.random.default_rng(seed)
            draws = excess_of_rows(*samples, weight_type, 99, rng)
            _, pvalue, shift = excess_test(draws, 0.9)
        rejected += pvalue <= 0.05
        missed += not shift.low <= 0 <= shift.high
    # more than this of 80 has a chance of .2 % at a level of .05
    assert rejected <= 10
    assert missed <= 17  # of .1 % at .1


# --- Two groups of scores, whose shares change ----------------------------------------


def _two_groups(rng, shares, n, offset=-0.1):
    """Scores about .1 and .9, of which the upper are too high by .1 in both samples."""
    is_high = rng.random(2 * n) < np.repeat(shares, n)
    scores = np.where(is_high, 0.85, 0.05) + 0.1 * rng.random(2 * n)
    labels = rng.random(2 * n) < scores + np.where(is_high, offset, 0)
    return labels[:n], scores[:n], labels[n:], scores[n:]


def test_a_cell_across_a_gap_compares_equal_scores_only():
    """By hand: one cell of 20 rows, at .1 and at .9. The residuals of the upper ones
    are lower by .1 in both samples, and only the shares differ.
    """
    lines = ResidualLines.of_sums(
        n=np.array([[10.0], [10.0]]),
        score=np.array([[9 * 0.1 + 0.9], [0.1 + 9 * 0.9]]),
        score_squared=np.array([[9 * 0.01 + 0.81], [0.01 + 9 * 0.81]]),
        residual=np.array([[-0.1], [-0.9]]),
        residual_score=np.array([[-0.09], [-0.81]]),
    )
    assert lines.slope == pytest.approx([-0.125])
    assert lines.excess == pytest.approx([0], abs=1e-12)
    # 9 and 1 rows at the lower score, 1 and 9 at the upper: 2 x 9 / 10 of 5
    assert lines.weight == pytest.approx([1.8])
    # Where each sample has its own score nothing is told.
    apart = ResidualLines.of_sums(
        n=np.array([[10.0], [10.0]]),
        score=np.array([[1.0], [9.0]]),
        score_squared=np.array([[0.1], [8.1]]),
        residual=np.array([[0.0], [-1.0]]),
        residual_score=np.array([[0.0], [-0.9]]),
    )
    assert apart.weight.tolist() == apart.excess.tolist() == [0]


@pytest.mark.slow
@pytest.mark.parametrize("shares", [(0.1, 0.88), (0.95, 0.05)])
def test_changed_shares_are_no_change_of_the_curve(shares):
    n_samples = 80
    rejected, covered = 0, 0
    for seed in range(n_samples):
        rng = np.random.default_rng(seed)
        found = calibration_change(
            *_two_groups(rng, shares, 1000), n_resamples=99, random_state=seed
        )
        rejected += found.pvalue <= 0.05
        covered += found.shift.low <= 0 <= found.shift.high
    # with cells that span the gap: .112 and .318, covered .83 and .68
    assert rejected / n_samples <= 0.05 + 2.5 * np.sqrt(0.0475 / n_samples)
    assert covered / n_samples >= 0.9 - 2.5 * np.sqrt(0.09 / n_samples)


def test_bins_across_a_gap_compare_equal_scores_as_well():
    rng = np.random.default_rng(1)
    y_before, before, y_after, after = _two_groups(rng, (0.95, 0.05), 4000)
    bins = [
        BinStatistics.from_predictions(y, scores, [0, 1])
        for y, scores in ((y_before, before), (y_after, after))
    ]
    found = calibration_change(*bins, n_resamples=99, random_state=0)
    assert found.pvalue > 0.05
    assert found.shift.low <= 0 <= found.shift.high


def test_two_clusters_have_no_interval_of_the_shift():
    rng = np.random.default_rng(2)
    scores = rng.random(400)
    labels = rng.random(400) < scores
    found = calibration_change(
        labels[:200],
        scores[:200],
        labels[200:],
        scores[200:],
        clusters=(np.zeros(200), np.ones(200)),
        n_resamples=19,
        random_state=0,
    )
    assert np.isnan(found.shift.low)
    assert "number of clusters is 2" in found.shift.reason


def test_labels_that_are_all_the_same_have_no_interval_of_the_shift():
    scores = np.array([0.2, 0.5, 0.2, 0.9])
    never = np.zeros(4, dtype=int)
    for scores_after in (scores, np.array([0.2, 0.2, 0.5, 0.5])):
        found = calibration_change(
            never, scores, never, scores_after, norm=1, method="plugin", labels=[0, 1]
        )
        assert found.shift.estimate == pytest.approx(0, abs=1e-12)
        assert np.isnan(found.shift.low)
        assert "neighbouring scores always have the same label" in found.shift.reason
        assert found.pvalue == 1


@pytest.mark.parametrize("clustered", [False, True])
def test_without_a_level_there_is_a_test_alone(clustered):
    options = {"random_state": 3, "n_resamples": 99}
    if clustered:
        options["clusters"] = (np.arange(500) // 5, np.arange(500) // 5)
    samples = _samples(shift=0.3)
    full = calibration_change(*samples, **options)
    alone = calibration_change(*samples, confidence_level=None, **options)
    assert (alone.statistic, alone.pvalue) == (full.statistic, full.pvalue)
    for name in INTERVALS:
        estimate, low, high = getattr(alone, name)
        assert estimate == getattr(full, name).estimate
        assert np.isnan([low, high]).all()
    assert alone.shift.reason == "confidence_level is None"
    assert "(no interval)" in str(alone)
    few = [array[:4] for array in samples]
    with pytest.raises(ValueError, match="data set 'before' cannot be computed"):
        calibration_change(*few, confidence_level=None, binning=4, **{"n_resamples": 9})


@pytest.mark.parametrize("by_cell", [False, True])
def test_draws_of_clusters_have_the_spread_of_labels_drawn_row_by_row(
    by_cell, monkeypatch
):
    """The plain twin draws a normal deviate for each cluster and each row. The sample
    before has no scores in the upper half, where the excess is 0.
    """
    rng = np.random.default_rng(0)
    n, n_clusters, r = 1500, 60, 0.15
    scores = [0.5 * rng.random(n), rng.random(n)]
    clusters = [rng.integers(0, n_clusters, n), rng.integers(0, n_clusters, n)]

    def labels_of(shared, rng):
        labels = []
        for one, cluster in zip(scores, clusters, strict=True):
            own = rng.standard_normal(n)
            deviate = np.sqrt(r) * shared[cluster] + np.sqrt(1 - r) * own
            labels.append(norm.cdf(deviate) < one)
        return labels

    observed = labels_of(rng.standard_normal(n_clusters), rng)
    monkeypatch.setattr(cluster_draws, "drawn_by_cell", lambda *sizes: by_cell)
    monkeypatch.setattr(cluster_draws, "cluster_correlation", lambda *rows: r)
    samples = []
    for number, (one, labels) in enumerate(zip(scores, observed, strict=True)):
        task = BinaryTask(one, labels, None)
        samples.append(SimpleNamespace(task=task, cluster=clusters[number]))
    excess = excess_of_rows(*samples, "frequency", 2000, np.random.default_rng(0))
    pooled = _PooledRows.of_samples(*samples)
    is_common = pooled.total(pooled.weight).min(axis=0) > 0
    assert 5 < is_common.sum() < pooled.n_cells
    # Twin: event frequency of the second sample less that of the first, by cell.
    number = pooled.total(pooled.weight)[:, is_common]
    drawn = []
    for _ in range(2000):
        labels = np.concatenate(labels_of(rng.standard_normal(n_clusters), rng))
        drawn.append(pooled.total(labels)[:, is_common] / number)
    drawn = np.array(drawn)
    weight = number.prod(axis=0) / number.sum(axis=0)
    twin = (weight * (drawn[:, 1] - drawn[:, 0])).cumsum(axis=1)
    twin = twin[:, -1].std()
    found = excess.drawn[:, is_common].cumsum(axis=1)[:, -1].std()
    assert found == pytest.approx(twin, rel=0.12)
    assert not excess.drawn[:, ~is_common].any()
