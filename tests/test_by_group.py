"""Calibration by group against exact convolutions, Clopper and Pearson, and the level
of its p-values.
"""

import numpy as np
import pytest
from _catalog import refused
from _twins import repeated
from scipy.optimize import brentq
from scipy.special import comb, expit, logit
from scipy.stats import binomtest

from skcalib._cells.cells import Cells
from skcalib._cells.tasks import BinaryTask
from skcalib._errors.binned import BinnedError, JoinedPowers
from skcalib._inference import event_counts
from skcalib._inference.adjustment import holm
from skcalib._inference.shift_test import BiasProblem, BiasTestsOfRows, bias_test
from skcalib.binning import EqualMass, FixedEdges
from skcalib.metrics import (
    calibration_by_group,
    calibration_error,
    calibration_error_interval,
    reliability_curve,
)

COLUMNS = [
    "group",
    "n",
    "mean_score",
    "event_frequency",
    "bias",
    "bias_low",
    "bias_high",
]
COLUMNS += [
    "error",
    "error_low",
    "error_high",
    "pvalue",
    "adjusted_pvalue",
    "bias_pvalue",
    "adjusted_bias_pvalue",
    "binomial_pvalue",
    "jeffreys_pvalue",
    "reason",
]


def _sample(n=600, n_groups=3, seed=0, shift=1.0):
    """Scores that are right but in the last group, where the log-odds are too low by
    `shift`.
    """
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(-1, 1.5, size=n)
    groups = rng.integers(0, n_groups, n)
    return (
        (rng.random(n) < expit(log_odds + shift * (groups == n_groups - 1))).astype(
            int
        ),
        expit(log_odds),
        groups,
    )


def _convolution(log_odds):
    mass = np.ones(1)
    for z in log_odds:
        mass = np.convolve(mass, [expit(-z), expit(z)])
    return mass


def _twin(scores, events, level):
    """Return p-value and limits by a convolution at every shift of the log-odds."""
    tail = (1 - level) / 2
    log_odds = logit(np.clip(scores, 2.0**-52, 1 - 2.0**-52))

    def upper(delta):
        return _convolution(log_odds + delta)[events:].sum()

    def lower(delta):
        return _convolution(log_odds + delta)[: events + 1].sum()

    def bias(delta):
        return np.mean(scores - expit(log_odds + delta))

    high = (
        bias(brentq(lambda delta: upper(delta) - tail, -60, 60))
        if events > 0
        else scores.mean()
    )
    low = (
        bias(brentq(lambda delta: lower(delta) - tail, -60, 60))
        if events < len(scores)
        else scores.mean() - 1
    )
    return min(1, 2 * min(upper(0), lower(0))), low, high


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
@pytest.mark.parametrize(
    ("n", "a", "b"), [(1, 1, 1), (5, 1, 1), (30, 0.3, 5), (120, 5, 0.2), (180, 1, 30)]
)
def test_few_rows_are_convolved_exactly(n, a, b, level):
    rng = np.random.default_rng(n)
    scores = np.clip(rng.beta(a, b, n), 1e-9, 1 - 1e-9)
    for events in {0, 1, n // 2, n - 1, n}:
        np.testing.assert_allclose(
            bias_test(scores, events, level)[:3],
            _twin(scores, events, level),
            atol=1e-9,
        )


@pytest.mark.parametrize(
    ("a", "b", "tolerance"), [(1, 1, 1e-3), (0.5, 5, 5e-3), (1, 100, 2e-2)]
)
def test_many_rows_by_the_saddlepoint_are_near_the_convolution(a, b, tolerance):
    rng = np.random.default_rng(0)
    scores = np.clip(rng.beta(a, b, 400), 1e-6, 1 - 1e-6)
    for events in np.rint(scores.sum() * np.array([0.7, 1, 1.25])).astype(int):
        found, exact = bias_test(scores, events, 0.9), _twin(scores, events, 0.9)
        assert found.pvalue == pytest.approx(exact[0], rel=tolerance)
        np.testing.assert_allclose(
            found[1:3],
            exact[1:],
            rtol=tolerance,
            atol=tolerance * np.abs(exact[1:]).max(),
        )


def test_cells_of_many_rows_change_nothing_that_is_seen(monkeypatch):
    rng = np.random.default_rng(0)
    scores = rng.beta(0.3, 5, 50_000)
    events = int((rng.random(50_000) < scores).sum()) + 100
    in_cells = bias_test(scores, events, 0.9)
    monkeypatch.setattr(event_counts, "MANY_ROWS", 10**9)
    np.testing.assert_allclose(
        in_cells, bias_test(scores, events, 0.9), rtol=1e-3, atol=1e-6
    )


@pytest.mark.parametrize(
    ("events", "n", "score"),
    [(3, 40, 0.2), (0, 40, 0.2), (40, 40, 0.7), (61, 190, 0.25)],
)
def test_equal_scores_are_the_binomial_test(events, n, score):
    found = bias_test(np.full(n, score), events, 0.9)
    exact = binomtest(events, n).proportion_ci(0.9)  # Clopper and Pearson (1934)
    np.testing.assert_allclose(
        found[1:3], [score - exact.high, score - exact.low], atol=1e-9
    )
    tails = (
        binomtest(events, n, score, "less").pvalue,
        binomtest(events, n, score, "greater").pvalue,
    )
    assert found.pvalue == pytest.approx(min(1, 2 * min(tails)))


@pytest.mark.slow
def test_the_interval_excludes_zero_exactly_where_the_test_rejects():
    rng = np.random.default_rng(1)
    for _ in range(200):
        scores = rng.beta(*rng.choice([0.3, 1, 8], 2), rng.choice([4, 40, 300]))
        events = (
            rng.random(len(scores))
            < expit(logit(np.clip(scores, 1e-9, 1 - 1e-9)) + 0.5)
        ).sum()
        found = bias_test(scores, events, 0.9)
        assert (found.low > 0 or found.high < 0) == (found.pvalue < 0.1)


@pytest.mark.parametrize(
    "scores",
    [np.zeros(50), np.ones(50), np.repeat([0.0, 1.0], 25), np.repeat([0.0, 0.5], 150)],
)
def test_scores_of_zero_and_one(scores):
    possible = int(scores.sum())
    assert bias_test(scores, possible, 0.9).pvalue > 1e-9
    impossible = int(np.count_nonzero(scores > 0)) + 1
    if impossible <= len(scores):
        found = bias_test(scores, impossible, 0.9)
        assert found.pvalue < 1e-9
        assert found.low < found.high < 0


@pytest.mark.parametrize(("n_zeros", "n_ones"), [(2, 5), (11, 8), (4, 2)])
def test_the_order_of_scores_of_zero_and_one_changes_nothing(n_zeros, n_ones):
    """As many events as ones: most shifts expect so many, and the estimated one may be
    so large that 1 - p of a one has no digits left.
    """
    scores = np.repeat([0.0, 1.0], [n_zeros, n_ones])
    expected = _twin(scores, n_ones, 0.9)
    for seed in range(10):
        shuffled = np.random.default_rng(seed).permutation(scores)
        found = bias_test(shuffled, n_ones, 0.9)
        np.testing.assert_allclose(found[:3], expected, atol=1e-9)
        # Five problems of a size are computed together.
        together = BiasTestsOfRows.of([BiasProblem(shuffled, n_ones)] * 5).at(0.9)
        np.testing.assert_allclose(np.transpose(together), [found] * 5, atol=1e-9)


def test_two_points_a_bin_have_its_mean_and_variance():
    rng = np.random.default_rng(0)
    scores = rng.beta(0.3, 2, 5000)
    bins = reliability_curve(
        rng.random(5000) < scores, scores, binning=FixedEdges([0, 0.01, 0.3, 0.99, 1])
    )
    points, weight = Cells.of_bins(bins).two_points()
    assert points.min() >= 0
    assert points.max() <= 1
    assert weight.sum() == pytest.approx(5000)
    assert weight @ points == pytest.approx(scores.sum())
    assert weight @ points**2 == pytest.approx((scores**2).sum())


def test_holm_by_hand():
    # sorted .01 .02 .03 .5 times 4 3 2 1: .04 .06 .06 .5
    assert holm(np.array([0.5, 0.02, 0.01, 0.03])).tolist() == pytest.approx(
        [0.5, 0.06, 0.04, 0.06]
    )
    assert holm(np.array([0.9, 0.8])).tolist() == [1, 1]


def test_each_row_is_its_group_by_itself():
    y, scores, groups = _sample()
    table = calibration_by_group(y, scores, groups, random_state=0)
    assert list(table.columns()) == COLUMNS
    assert len(table) == 3
    for k, group in enumerate(table.group):
        own = groups == group
        assert table.n[k] == own.sum()
        assert table.mean_score[k] == pytest.approx(scores[own].mean())
        assert table.event_frequency[k] == pytest.approx(y[own].mean())
        assert table.bias[k] == pytest.approx(scores[own].mean() - y[own].mean())
        alone = calibration_error(y[own], scores[own], binning=EqualMass("cube_root"))
        assert table.error[k] == pytest.approx(alone)
        test = bias_test(
            scores[own], y[own].sum(), 0.9, None, np.var(y[own] - scores[own])
        )
        row = (
            table.pvalue[k],
            table.bias_low[k],
            table.bias_high[k],
            table.bias_pvalue[k],
        )
        assert row == pytest.approx(tuple(test), abs=1e-9)
    np.testing.assert_allclose(table.adjusted_bias_pvalue, holm(table.bias_pvalue))
    assert table.adjusted_pvalue[2] < 1e-3
    assert table.bias_high[2] < 0


def test_the_error_interval_is_the_public_one():
    y, scores, groups = _sample()
    options = {
        "norm": 1,
        "method": "plugin",
        "binning": 7,
        "confidence_level": 0.8,
        "n_resamples": 50,
    }
    table = calibration_by_group(y, scores, np.zeros(len(y)), **options, random_state=3)
    alone = calibration_error_interval(
        y, scores, **options, random_state=np.random.RandomState(3)
    )
    assert (table.error[0], table.error_low[0], table.error_high[0]) == pytest.approx(
        tuple(alone)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": 1},
        {"norm": 1, "method": "label_binned"},
        {"n_resamples": 300},
        {"confidence_level": 0.6},
    ],
)
def test_intervals_beside_others_are_those_of_groups_alone(options):
    """The searches of many groups are answered together, with the random numbers that
    each has by itself.
    """
    rng = np.random.default_rng(5)
    sizes = [20, 60, 12, 300, 60, 2000, 40]
    groups = np.repeat(np.arange(len(sizes)), sizes)
    scores = np.where(
        groups % 2, rng.beta(0.4, 2, len(groups)), np.round(rng.random(len(groups)), 1)
    )
    y = rng.random(len(scores)) < scores ** np.where(groups == 3, 2, 1)
    weight = rng.integers(1, 3, len(y)).astype(float)
    for kind in ({}, {"sample_weight": weight}):
        table = calibration_by_group(
            y, scores, groups, **kind, **options, random_state=1
        )
        drawn = np.random.RandomState(1)  # whose numbers the groups take in their order
        for k, group in enumerate(table.group):
            own = groups == group
            rows = {name: values[own] for name, values in kind.items()} | {
                "binning": EqualMass("cube_root")
            }
            alone = calibration_error_interval(
                y[own],
                scores[own],
                random_state=drawn,
                **rows,
                **{"n_resamples": 199, **options},
            )
            found = table.error[k], table.error_low[k], table.error_high[k]
            np.testing.assert_allclose(found, tuple(alone), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("slope", [1, 4])
@pytest.mark.parametrize("norm", [1, 2])
def test_limits_of_few_rows_are_sums_over_all_outcomes(norm, slope):
    """The plugin error of two bins of equal scores, by a sum over all pairs of numbers
    of events at each c, and by bisection.
    """
    rng = np.random.default_rng(slope)
    score, n = np.array([0.3, 0.8]), np.array([7, 5])
    scores = np.repeat(score, n)
    y = rng.random(12) < expit(slope * logit(scores))
    found = calibration_error_interval(
        y, scores, binning=FixedEdges([0, 0.5, 1]), norm=norm, method="plugin"
    )
    events = np.array([y[:7].sum(), y[7:].sum()])
    counts = [(j, k) for j in range(8) for k in range(6)]

    def error(frequency):
        return (n / 12 * np.abs(frequency - score) ** norm).sum() ** (1 / norm)

    values = np.array([error(np.array(pair) / n) for pair in counts])
    observed = error(events / n)
    deviation = events / n - score

    pairs = np.array(counts)
    ways = comb(n, pairs).prod(axis=1)

    def masses(c, direction):
        f = np.clip(score + c * direction, 0, 1)
        return ways * (f**pairs * (1 - f) ** (n - pairs)).prod(axis=1)

    order = np.argsort(values)
    cumulative = np.cumsum(masses(0, deviation)[order])
    median = values[order[np.flatnonzero(cumulative >= 0.5 - 1e-12)[0]]]
    is_small = values <= max(observed, median) + 1e-9
    is_large = values >= observed - 1e-9
    distance = np.array(
        [(n * deviation * (np.array(p) / n - score)).sum() for p in counts]
    )
    is_far = distance >= (n * deviation**2).sum() - 1e-9
    is_rejected = masses(0, deviation)[is_large].sum() < 0.05

    def limit(direction, probability, rises):
        """Return the error at the first c of a fine grid, refined by bisection."""
        room = np.where(direction > 0, 1 - score, score)
        grid = np.linspace(0, np.max(room / np.abs(direction)), 201)
        is_beyond = [(probability(c, direction) >= 0.05) == rises for c in grid[1:]]
        if not any(is_beyond):
            return error(np.clip(score + grid[-1] * direction, 0, 1))
        low, high = grid[np.argmax(is_beyond)], grid[np.argmax(is_beyond) + 1]
        for _ in range(40):
            middle = (low + high) / 2
            if (probability(middle, direction) >= 0.05) == rises:
                high = middle
            else:
                low = middle
        return error(np.clip(score + low * direction, 0, 1))

    def small(c, direction):
        return masses(c, direction)[is_small].sum()

    def large(c, direction):
        return masses(c, direction)[is_large].sum()

    def small_and_far(c, direction):
        mass = masses(c, direction)
        return min(mass[is_small].sum(), mass[is_far].sum())

    directions = _spread(deviation, n, score)
    low = 0.0
    high = max(limit(d, small, rises=False) for d in directions)
    if is_rejected:
        low = min(limit(d, large, rises=True) for d in directions)
    else:
        high = max(high, *(limit(-d, small_and_far, rises=False) for d in directions))
    np.testing.assert_allclose(
        (found.estimate, found.low, found.high), (observed, low, high), atol=1e-6
    )


def _spread(deviation, n, score):
    """Return the deviation of two bins, smoothed twice and shrunk."""
    variance = score * (1 - score) / n
    weight = 1 / (variance + 0.25 / (n + 1) ** 2)
    found = [deviation]
    for width in (1, 3):
        kernel = np.exp(-0.5 * (np.subtract.outer([0, 1], [0, 1]) / width) ** 2)
        found.append(kernel @ (weight * deviation) / (kernel @ weight))
    return [*found, deviation**3 / (deviation**2 + variance)]


def test_orders():
    y, scores, groups = (
        np.array([1, 0, 0, 1] * 25),
        np.full(100, 0.5),
        np.repeat(list("cab"), [60, 38, 2]),
    )
    given = calibration_by_group(y, scores, groups, order="given", random_state=0)
    assert given.group.tolist() == ["c", "a", "b"]
    assert calibration_by_group(y, scores, groups, random_state=0).group.tolist() == [
        "a",
        "b",
        "c",
    ]
    y[groups == "a"] = 1
    ranked = calibration_by_group(
        y, scores, groups, order="error", method="debiased", random_state=0
    )
    assert ranked.group[0] == "a"
    assert np.all(np.diff(ranked.error[~np.isnan(ranked.error)]) <= 0)


def test_a_group_too_small_for_a_debiased_error_has_a_bias_all_the_same():
    y, scores, groups = [1, 0, 1, 0, 1], [0.2, 0.4, 0.6, 0.7, 0.9], ["a"] * 4 + ["b"]
    table = calibration_by_group(y, scores, groups, order="error", random_state=0)
    assert table.group.tolist() == ["a", "b"]
    assert np.isnan([table.error[1], table.error_low[1], table.error_high[1]]).all()
    assert np.isfinite(
        [table.error[0], table.pvalue[1], table.bias_low[1], table.bias_high[1]]
    ).all()
    assert table.pvalue[1] == 1  # P(S >= 1) = .9
    assert np.isfinite(
        calibration_by_group(y, scores, groups, method="plugin", random_state=0).error
    ).all()


def test_integer_weights_are_repeated_rows():
    y, scores, groups = _sample(90, seed=2)
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = calibration_by_group(
        y, scores, groups, sample_weight=weight, random_state=0
    )
    repeats = calibration_by_group(*repeated(weight, y, scores, groups), random_state=0)
    for name in set(COLUMNS) - {"error_low", "error_high", "reason"}:
        np.testing.assert_allclose(
            getattr(weighted, name), getattr(repeats, name), atol=1e-9
        )
    options = {"sample_weight": np.full(len(y), 2.5), "random_state": 0}
    with pytest.warns(UserWarning, match=r"not integers.*importance"):
        counted = calibration_by_group(y, scores, groups, **options)
    assert counted.n.sum() == pytest.approx(2.5 * len(y))
    worth = calibration_by_group(y, scores, groups, weight_type="importance", **options)
    plain = calibration_by_group(y, scores, groups, random_state=0)
    for name in COLUMNS[:-1]:
        np.testing.assert_allclose(
            getattr(worth, name), getattr(plain, name), atol=1e-9
        )
    bins = {
        name: reliability_curve(y, scores, binning=4, sample_weight=np.full(90, 2.5))
        for name in "ab"
    }
    known = calibration_by_group(
        bins, weight_type="importance", binning=None, random_state=0
    )
    assert known.n.tolist() == pytest.approx([90, 90])


def test_predicted_classes_and_many_classes():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(3, 0.4), 900)
    y = np.array(["a", "b", "c"])[
        np.minimum((rng.random((900, 1)) > proba.cumsum(axis=1)).sum(axis=1), 2)
    ]
    table = calibration_by_group(y, proba, random_state=0)
    predicted = np.array(["a", "b", "c"])[proba.argmax(axis=1)]
    assert table.group.tolist() == ["a", "b", "c"]
    for k, label in enumerate("abc"):
        assert table.n[k] == np.sum(predicted == label)
        assert table.mean_score[k] == pytest.approx(
            proba.max(axis=1)[predicted == label].mean()
        )
        assert table.event_frequency[k] == pytest.approx(
            np.mean(y[predicted == label] == label)
        )
    with refused(ValueError, "multiclass", "marginal", "top_label"):
        calibration_by_group(y, proba, multiclass="marginal")


def test_a_dict_of_statistics_takes_the_place_of_the_rows():
    y, scores, groups = _sample(3000)
    bins = {
        name: reliability_curve(y[groups == name], scores[groups == name])
        for name in (2, 0, 1)
    }
    table = calibration_by_group(bins, random_state=0)
    rows = calibration_by_group(y, scores, groups, binning=15, random_state=0)
    assert table.group.tolist() == [0, 1, 2]
    assert calibration_by_group(bins, order="given", random_state=0).group.tolist() == [
        2,
        0,
        1,
    ]
    for name in ("n", "mean_score", "event_frequency", "bias", "error"):
        np.testing.assert_allclose(
            getattr(table, name), getattr(rows, name), atol=1e-12
        )
    for name in ("bias_low", "bias_high", "pvalue"):
        np.testing.assert_allclose(getattr(table, name), getattr(rows, name), atol=2e-3)
    missing = calibration_by_group({None: bins[0], ("a", 1): bins[1]}, random_state=0)
    assert missing.group.tolist() == [("a", 1), None]


def test_what_a_dict_does_not_go_with():
    y, scores, groups = _sample(60)
    bins = {"a": reliability_curve(y, scores, binning=3)}
    with refused(ValueError, "y_proba", "dict"):
        calibration_by_group(bins, scores)
    with refused(ValueError, "groups", "dict"):
        calibration_by_group(bins, groups=groups)
    with refused(ValueError, "sample_weight", "dict"):
        calibration_by_group(bins, sample_weight=np.ones(60))
    with refused(ValueError, "empty dict"):
        calibration_by_group({})
    with refused(TypeError, "y_true['a']", "BinStatistics", "list"):
        calibration_by_group({"a": [1]})


def test_parameters_are_checked():
    y, scores, groups = _sample(60)
    with refused(ValueError, "order", "'error'", "'worst'"):
        calibration_by_group(y, scores, groups, order="worst")
    with refused(ValueError, "groups", "predicted_class", "'site'"):
        calibration_by_group(y, scores, "site")
    with refused(ValueError, "norm"):
        calibration_by_group(y, scores, groups, norm=np.inf, method="debiased")
    with refused(ValueError, "n_resamples"):
        calibration_by_group(y, scores, groups, n_resamples=0)


def test_groups_of_any_type_stay_what_they_are():
    y, scores, groups = _sample(60, n_groups=2)
    days = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[ns]")
    assert (
        calibration_by_group(y, scores, days[groups], random_state=0).group.dtype
        == days.dtype
    )
    assert calibration_by_group(
        y, scores, groups == 1, random_state=0
    ).group.tolist() == [False, True]


def test_the_table_is_shown():
    y, scores, groups = _sample(600, n_groups=12)
    table = calibration_by_group(
        y, scores, [f"<{group:02}>" for group in groups], random_state=0
    )
    text = repr(table)
    assert text.startswith("1 of 12 groups is off; worst: <11>, ")
    assert "too low (90 % for all groups together: " in text
    assert "... 2 more" in text
    page = table._repr_html_()
    assert page.count("<tr>") == 13
    assert "&lt;03&gt;" in page
    with pytest.raises(AttributeError):
        table.bias = table.error
    frame = pytest.importorskip("pandas") and table.to_frame()
    assert frame.columns.tolist() == COLUMNS
    assert frame["bias"].tolist() == table.bias.tolist()


SHAPES = {"smooth": (1, 3), "rare": (1, 60), "extreme": (0.3, 0.3)}


def _calibrated(rng, n, shape):
    scores = rng.beta(*SHAPES.get(shape, (1, 3)), n)
    return np.round(scores, 1) if shape == "tied" else scores


def _two_modes(rng, n=400):
    """Scores near .02 and .98 whose slope is wrong and whose bias is 0 (for the
    population).
    """
    truth = rng.choice([0.125, 0.875], n)
    return np.where(truth < 0.5, 0.02, 0.98), truth, rng.random(n) < truth


@pytest.mark.parametrize("events", [2, 40, 100])
def test_the_stretched_interval_by_hand_and_its_dual(events):
    rng = np.random.default_rng(0)
    scores = np.sort(rng.choice([0.05, 0.3, 0.95], 120))
    y = np.arange(120) % 3 < 1 if events == 40 else np.arange(120) < events
    found = bias_test(scores, y.sum(), 0.9, None, np.var(y - scores))
    pvalue, low, high = _twin(scores, int(y.sum()), 0.9)
    stretch = max(1, np.std(y - scores) / np.sqrt(np.mean(scores * (1 - scores))))
    bias, widest = np.mean(scores - y), binomtest(int(y.sum()), 120).proportion_ci(0.9)
    low = min(low, max(bias - stretch * (bias - low), scores.mean() - widest.high))
    high = max(high, min(bias + stretch * (high - bias), scores.mean() - widest.low))
    assert found[:3] == pytest.approx((pvalue, low, high), abs=1e-6)
    for level in (0.999 - found.bias_pvalue, 1.001 - found.bias_pvalue):
        if 0 < level < 1:
            at = bias_test(scores, y.sum(), level, None, np.var(y - scores))
            assert (found.bias_pvalue < 1 - level) == (not at.low <= 0 <= at.high)


@pytest.mark.parametrize("events", [12, 28])
def test_scores_that_tell_nothing_have_the_test_of_their_mean(events):
    # Stretched by the residuals the interval is longer than Clopper and Pearson's,
    # whose test is that of 40 tosses.
    found = bias_test(np.repeat([0.02, 0.98], 20), events, 0.9, None, 0.9)
    expected = binomtest(events, 40, 0.5)
    assert found.bias_pvalue == pytest.approx(expected.pvalue, abs=1e-9)
    limits = expected.proportion_ci(0.9)
    assert found[1:3] == pytest.approx((0.5 - limits.high, 0.5 - limits.low), abs=1e-9)


@pytest.mark.parametrize("n", [220, 900])
def test_one_event_among_many_rows_is_exact(n):
    # The saddlepoint has a relative error of 1 to 8 % here.
    scores = np.clip(np.random.default_rng(n).beta(1, 300, n), 1e-6, 1)
    np.testing.assert_allclose(
        bias_test(scores, 1, 0.9)[:3], _twin(scores, 1, 0.9), rtol=1e-7
    )
    pvalue, low, high = bias_test(1 - scores, n - 1, 0.9)[:3]
    np.testing.assert_allclose((pvalue, -high, -low), _twin(scores, 1, 0.9), rtol=1e-7)


@pytest.mark.parametrize("n", [5, 80])
def test_without_events_the_limits_are_those_of_the_mean_score(n):
    # their spread is larger than that of labels
    scores = np.where(np.arange(n) % 4 < 1, 0.98, 0.02)
    expected = bias_test(np.full(n, scores.mean()), 0, 0.9)
    found = bias_test(scores, 0, 0.9, None, scores.var())
    assert (found.bias_pvalue, *found[1:3]) == pytest.approx(
        (expected.pvalue, *expected[1:3])
    )
    mirrored = bias_test(1 - scores, n, 0.9, None, scores.var())
    assert (mirrored.bias_pvalue, -mirrored.high, -mirrored.low) == pytest.approx(
        (found.bias_pvalue, *found[1:3])
    )


def test_a_wrong_slope_is_no_bias():
    scores = np.repeat([0.02, 0.98], 200)
    # 36 events too many and 26 too few
    y = np.arange(400) % 200 < np.where(scores < 0.5, 40, 170)
    table = calibration_by_group(
        y, scores, np.zeros(400), n_resamples=19, random_state=0
    )
    assert table.pvalue[0] < 0.01
    assert table.bias_pvalue[0] > 0.1
    assert table.bias_low[0] < 0 < table.bias_high[0]


@pytest.mark.slow
def test_bias_zero_with_a_wrong_slope_is_covered():
    covered, rejected = [], []
    for seed in range(300):
        scores, truth, y = _two_modes(np.random.default_rng(seed))
        found = bias_test(scores, y.sum(), 0.9, None, np.var(y - scores))
        bias = np.mean(scores - truth)
        covered.append(found.low <= bias <= found.high)
        rejected.append(found.bias_pvalue <= 0.05)
    assert np.mean(covered) >= 0.87  # .58 for the shift alone
    assert np.mean(rejected) <= 0.09


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["smooth", "rare", "extreme", "tied"])
@pytest.mark.parametrize(("n", "n_groups"), [(500, 10), (2000, 100), (20_000, 300)])
def test_family_wise_level_and_coverage_of_the_bias(n, n_groups, shape):
    rng = np.random.default_rng(0)
    families, covered, groups_seen, rejected = 30, 0, 0, 0
    for _ in range(families):
        scores = _calibrated(rng, n, shape)
        y, groups = rng.random(n) < scores, rng.integers(0, n_groups, n)
        problems = [
            BiasProblem(scores[groups == k], float(y[groups == k].sum()))
            for k in np.unique(groups)[:100]
        ]
        tests = BiasTestsOfRows.of(problems).at(0.9)
        rejected += holm(tests.pvalue).min() <= 0.05
        covered += np.sum((tests.low <= 0) & (tests.high >= 0))
        groups_seen += len(problems)
    assert rejected <= 5  # more than this of 30 has a chance of .3 % at a level of .05
    assert covered / groups_seen >= 0.89


def test_half_an_event_in_a_whole_number_of_rows():
    # Fifteen rows' weight, of which an event has .5: rounded to no event, every
    # probability was as likely as any.
    scores, y, weight = np.full(30, 0.01), np.arange(30) == 0, np.full(30, 0.5)
    options = {"groups": np.zeros(30), "n_resamples": 5, "random_state": 0}
    with pytest.warns(UserWarning, match="not integers"):
        found = calibration_by_group(y, scores, sample_weight=weight, **options)
    assert -0.3 < found.bias_low[0] < found.bias[0] < found.bias_high[0] <= 0.01
    assert 0.1 < found.bias_pvalue[0] <= 1


@pytest.mark.parametrize("exponent", [0, 40])
def test_many_problems_have_the_tails_of_few(exponent):
    """Many exact problems are polynomials, few are sums of scaled masses."""
    rng = np.random.default_rng(3)
    n_groups = 2 * event_counts._MANY_PROBLEMS
    sizes = rng.integers(5, 30, n_groups)
    group = np.repeat(np.arange(n_groups), sizes)
    scores = 10.0 ** -rng.uniform(0, exponent + 1, len(group))
    scores = np.where(rng.random(len(group)) < 0.5, scores, 1 - scores)
    labels = rng.random(len(group)) < rng.random(n_groups)[group]
    options = {"binning": 1, "n_resamples": 9, "order": "given"}
    many = calibration_by_group(labels, scores, group, **options)
    n_events = np.bincount(group, labels)
    is_mixed = (n_events > 0) & (n_events < sizes)
    assert np.count_nonzero(is_mixed) > event_counts._MANY_PROBLEMS
    for part in range(4):
        rows = group % 4 == part
        few = calibration_by_group(labels[rows], scores[rows], group[rows], **options)
        for name in ("bias", "bias_low", "bias_high", "bias_pvalue"):
            np.testing.assert_allclose(
                getattr(many, name)[part::4], getattr(few, name), atol=1e-9
            )


@pytest.mark.parametrize("options", [{"norm": 2}, {"norm": 1}, {"method": "plugin"}])
def test_powers_of_many_problems_are_those_of_each(options):
    rng = np.random.default_rng(0)
    error = BinnedError(**options)
    tasks = []
    for n in (60, 100, 300):
        scores = rng.random(n)
        tasks.append(BinaryTask(scores, rng.random(n) < scores, None))
    powers = [error.of_task(task, 1000) for task in tasks]
    frequencies = [rng.random((5, len(power.weight))) for power in powers]
    found = JoinedPowers(powers)
    expected = np.stack(
        [power.power(f) for power, f in zip(powers, frequencies, strict=True)], axis=1
    )
    side_by_side = np.concatenate(frequencies, axis=1)
    np.testing.assert_allclose(found.each(side_by_side), expected, rtol=1e-12)
    weight = np.array([0.2, 0.0, 0.8])
    np.testing.assert_allclose(
        found.contributions(weight)(side_by_side, slice(None)).sum(axis=1),
        expected @ weight,
        rtol=1e-12,
    )
