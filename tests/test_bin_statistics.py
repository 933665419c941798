"""Sufficient statistics of bins: plain sums, and merging parts."""

import pickle
from dataclasses import FrozenInstanceError, fields
from functools import partial
from inspect import Parameter, signature

import numpy as np
import pytest
from _catalog import refused
from _twins import bin_of

from skcalib import decisions, displays, evaluation, metrics
from skcalib._cells import bin_sums
from skcalib._cells.statistics import BinStatistics, bin_statistics
from skcalib._rows import blocks
from skcalib.binning import FixedEdges, UniqueScores
from skcalib.metrics import reliability_curve

EDGES = np.array([0.0, 0.1, 0.5, 0.6, 0.95, 1.0])
SUMS = [
    "count",
    "weight",
    "weighted_score",
    "weighted_label",
    "weighted_score_squared",
    "weighted_score_label",
]


def _rows(n=400, dtype=np.float64):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 95, n).astype(dtype) / 100  # the last bin stays empty
    return scores, rng.random(n) < scores, rng.random(n) + 0.1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("is_sorted", [False, True])
def test_sums_are_those_of_a_loop(dtype, weighted, is_sorted):
    scores, labels, weights = _rows(dtype=dtype)
    if is_sorted:  # many of them lie on the edges
        order = np.argsort(scores, kind="stable")
        scores, labels, weights = scores[order], labels[order], weights[order]
    weights = weights if weighted else np.ones(len(scores))
    expected = np.zeros((len(SUMS), len(EDGES) - 1))
    for s, y, w in zip(
        scores.astype(float).tolist(), labels.tolist(), weights.tolist(), strict=True
    ):
        expected[:, bin_of(s, EDGES)] += [1, w, w * s, w * y, w * s * s, w * s * y]
    found = BinStatistics.from_predictions(
        labels, scores, EDGES, weights if weighted else None
    )
    for name, sums in zip(SUMS, expected, strict=True):
        np.testing.assert_allclose(getattr(found, name), sums, atol=1e-10, err_msg=name)
        assert getattr(found, name).dtype == (
            np.int64 if name == "count" else np.float64
        )
    filled = expected[1] > 0
    assert filled.tolist() == [True, True, True, True, False]
    np.testing.assert_allclose(
        found.mean_score[filled], expected[2, filled] / expected[1, filled]
    )
    np.testing.assert_allclose(
        found.event_frequency[filled], expected[3, filled] / expected[1, filled]
    )
    np.testing.assert_allclose(found.share, expected[1] / expected[1].sum())
    assert found.total_weight == pytest.approx(weights.sum())


@pytest.mark.parametrize(
    "edges",
    [EDGES, EDGES[[0, -1]], np.array([0.0, 0.0, 0.3, 1.0])],
    ids=["5", "1", "a point"],
)
@pytest.mark.parametrize("moments", [0, 1, 2])
def test_rows_mostly_in_the_first_bin_are_summed_together(edges, moments, monkeypatch):
    rng = np.random.default_rng(1)
    scores = np.concatenate(
        (
            np.zeros(50),
            rng.permutation(np.append(rng.random(400) ** 9, np.full(20, 0.3))),
        )
    )
    labels = rng.random(len(scores)) < 0.1
    together = bin_statistics(scores, labels, edges, moments=moments)
    monkeypatch.setattr(bin_sums, "_FIRST_FEW", 0)
    apart = bin_statistics(scores, labels, edges, moments=moments)
    for name in SUMS:
        np.testing.assert_allclose(
            getattr(together, name), getattr(apart, name), rtol=1e-13
        )


@pytest.mark.parametrize("moments", [0, 1])
@pytest.mark.parametrize("order", ["given", "sorted", "weighted", "sorted, weighted"])
def test_only_the_moments_that_are_asked_for(order, moments):
    rng = np.random.default_rng(6)
    scores = np.sort(rng.random(300)) if "sorted" in order else rng.random(300)
    labels, weight = (
        rng.random(300) < scores,
        (rng.random(300) if "weighted" in order else None),
    )
    every = bin_statistics(scores, labels, EDGES, weight)
    some = bin_statistics(scores, labels, EDGES, weight, moments=moments)
    shuffled = rng.permutation(300)
    apart = bin_statistics(
        scores[shuffled],
        labels[shuffled],
        EDGES,
        None if weight is None else weight[shuffled],
    )
    for name in SUMS:
        np.testing.assert_allclose(
            getattr(apart, name), getattr(every, name), rtol=1e-12
        )
    powers = dict.fromkeys(SUMS, 0) | {
        "weighted_score": 1,
        "weighted_score_label": 1,
        "weighted_score_squared": 2,
    }
    for name, power in powers.items():
        expected = (
            getattr(every, name)
            if power <= moments
            else np.full(len(EDGES) - 1, np.nan)
        )
        np.testing.assert_array_equal(getattr(some, name), expected)


@pytest.mark.parametrize("n_bins", [1, 15])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_rows_may_all_lie_in_the_first_bin(n_bins, dtype):
    # 3000 rows are enough for a look-up table, which then has nothing to look up.
    scores = (np.random.default_rng(4).random(3000) / 16).astype(dtype)
    labels = np.arange(3000) % 4 == 0
    found = BinStatistics.from_predictions(
        labels, scores, np.linspace(0, 1, n_bins + 1)
    )
    assert found.count.tolist() == [3000] + [0] * (n_bins - 1)
    assert found.weighted_label[0] == 750
    assert found.weighted_score[0] == pytest.approx(scores.astype(float).sum())


def test_an_empty_bin_says_its_midpoint_and_knows_nothing():
    curve = BinStatistics.from_predictions(np.array([True]), np.array([0.3]), EDGES)
    empty = [0, 2, 3, 4]
    np.testing.assert_allclose(curve.mean_score[empty], [0.05, 0.55, 0.775, 0.975])
    np.testing.assert_allclose(curve.event_frequency[empty], [0.05, 0.55, 0.775, 0.975])
    low, high = curve.interval()
    assert low[empty].tolist() == [0] * 4
    assert high[empty].tolist() == [1] * 4
    assert curve.n_bins == 5


@pytest.mark.parametrize("weighted", [False, True])
def test_merged_parts_are_the_whole(weighted, monkeypatch):
    scores, labels, weights = _rows()
    weights = weights if weighted else None
    whole = BinStatistics.from_predictions(labels, scores, EDGES, weights)

    def part(rows):
        weight = None if weights is None else weights[rows]
        return BinStatistics.from_predictions(labels[rows], scores[rows], EDGES, weight)

    merged = part(slice(0, 7)).merge(part(slice(7, 300))).merge(part(slice(300, 400)))
    monkeypatch.setattr(blocks, "_BLOCK_ELEMENTS", 13)
    in_blocks = BinStatistics.from_predictions(labels, scores, EDGES, weights)
    for name in SUMS:
        np.testing.assert_allclose(
            getattr(merged, name), getattr(whole, name), rtol=1e-12, err_msg=name
        )
        np.testing.assert_allclose(
            getattr(in_blocks, name), getattr(whole, name), rtol=1e-12, err_msg=name
        )


def test_other_edges_do_not_merge():
    scores, labels, _ = _rows(20)
    with refused(ValueError, "the same bin edges", "FixedEdges"):
        BinStatistics.from_predictions(labels, scores, EDGES).merge(
            BinStatistics.from_predictions(labels, scores, EDGES[[0, 2, 5]])
        )


def test_statistics_are_frozen_and_pickle():
    curve = BinStatistics.from_predictions(*_rows(20)[1::-1], EDGES)
    with pytest.raises(FrozenInstanceError):
        curve.weight = None
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(curve)).weight, curve.weight
    )


def test_curve_of_each_class():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(3), 200), rng.integers(3, size=200)
    curves = reliability_curve(
        np.array(["a", "b", "c"])[y], proba, multiclass="marginal", binning=5
    )
    for k, curve in enumerate(curves):
        alone = reliability_curve(y == k, proba[:, k], binning=5)
        np.testing.assert_array_equal(curve.edges, alone.edges)
        np.testing.assert_array_equal(curve.weighted_label, alone.weighted_label)
    pooled = reliability_curve(y, proba, binning=5)
    assert pooled.weighted_label.sum() == (proba.argmax(axis=1) == y).sum()


def test_weights_count_as_rows_in_the_interval():
    scores, labels, _ = _rows(50)
    weights = 1 + np.arange(50) % 3
    found = BinStatistics.from_predictions(
        labels, scores, EDGES, weights.astype(float)
    ).interval(0.8)
    rows = BinStatistics.from_predictions(
        np.repeat(labels, weights), np.repeat(scores, weights), EDGES
    ).interval(0.8)
    np.testing.assert_allclose(found, rows)


# In place of rows


def _shapes():
    rng = np.random.default_rng(5)
    for scores in (
        rng.random(900) ** 2,
        np.round(rng.random(900), 1),
        rng.beta(1, 30, 900),
    ):
        yield scores, rng.random(900) < 0.2 + 0.5 * scores, rng.random(900) + 0.5


FROM_SUMS = {
    "default": metrics.calibration_error,
    "squared": partial(metrics.calibration_error, squared=True),
    "unbiased": partial(metrics.calibration_error, method="unbiased"),
    "l1": partial(metrics.calibration_error, norm="l1"),
    "norm 3": partial(metrics.calibration_error, norm=3),
    "max": partial(metrics.calibration_error, norm="max", method="plugin"),
    "ece": metrics.expected_calibration_error,
    "mce": metrics.maximum_calibration_error,
    "brier": metrics.brier_decomposition,
    "log-loss": metrics.log_loss_decomposition,
    "validity": metrics.validity_curve,
    "conditional": partial(
        metrics.validity_curve, epsilons=[0, 0.1, 0.5], conditional=True
    ),
}


@pytest.mark.parametrize("call", FROM_SUMS.values(), ids=FROM_SUMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_in_place_of_rows(call, weighted):
    for scores, labels, weights in _shapes():
        rows = {"sample_weight": weights} if weighted else {}
        statistics = reliability_curve(labels, scores, binning=7, **rows)
        expected = call(labels, scores, binning=FixedEdges(statistics.edges), **rows)
        # sums in another order
        np.testing.assert_allclose(call(statistics), expected, rtol=1e-9, atol=1e-12)
        assert reliability_curve(statistics) is statistics


@pytest.mark.parametrize(
    "metric",
    [metrics.kuiper_calibration_error, metrics.kolmogorov_smirnov_calibration_error],
)
def test_cumulative_differences_of_bins_with_one_score_each(metric):
    rng = np.random.default_rng(6)
    scores, labels, weights = (
        np.round(rng.random(200), 2),
        rng.random(200) < 0.4,
        rng.random(200),
    )
    points = reliability_curve(
        labels, scores, binning=UniqueScores(), sample_weight=weights
    )
    assert metric(points) == pytest.approx(
        metric(labels, scores, sample_weight=weights), abs=1e-12
    )
    with refused(ValueError, "BinStatistics", "UniqueScores", "y_true and y_proba"):
        metric(reliability_curve(labels, scores, binning=3))


NEED_ROWS = {
    "sweep": metrics.sweep_calibration_error,
    "smooth": metrics.smooth_calibration_error,
    "kde": metrics.kde_calibration_error,
    "neighborhood": metrics.neighborhood_calibration_error,
    "groupwise": metrics.groupwise_calibration_error,
    "slope": metrics.calibration_slope_intercept,
    "label-binned": partial(metrics.calibration_error, method="label_binned"),
    "binning": partial(metrics.calibration_error, binning=5),
    "binning of a curve": partial(reliability_curve, binning=5),
    "sample_weight": partial(metrics.calibration_error, sample_weight=np.ones(50)),
    "labels": partial(metrics.brier_decomposition, labels=[0, 1]),
    "pos_label": partial(metrics.validity_curve, pos_label=1),
    "marginal": partial(metrics.calibration_error, multiclass="marginal"),
    "y_proba": lambda statistics: metrics.calibration_error(statistics, [0.5]),
}


@pytest.mark.parametrize("call", NEED_ROWS.values(), ids=NEED_ROWS)
def test_what_needs_rows_refuses_sums_by_name(call):
    statistics = BinStatistics.from_predictions(*_rows(50)[1::-1], EDGES)
    with refused(ValueError, "BinStatistics", "the score and the label of each row"):
        call(statistics)


def _of_labels_and_probabilities():
    """Return all public functions that need labels and probabilities and nothing else,
    by name.
    """
    pytest.importorskip("matplotlib")
    found = {}
    for module in (metrics, evaluation, decisions, displays):
        for name in module.__all__:
            public = getattr(module, name)
            function = (
                getattr(public, "from_predictions", None)
                if isinstance(public, type)
                else public
            )
            parameters = (
                list(signature(function).parameters.values())
                if callable(function)
                else []
            )
            if [one.name for one in parameters[:2]] != ["y_true", "y_proba"]:
                continue
            kinds = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
            if all(
                one.default is not one.empty or one.kind in kinds
                for one in parameters[2:]
            ):
                found[name] = function
    assert len(found) > 30
    return found


def test_sums_where_rows_are_needed_are_refused_in_our_own_words():
    statistics = BinStatistics.from_predictions(*_rows(50)[1::-1], EDGES)
    scores = _rows(50)[0]
    silent = []
    for name, function in _of_labels_and_probabilities().items():
        for given in ((statistics,), (statistics, scores)):
            try:
                function(*given)
            except (TypeError, ValueError) as error:
                if "BinStatistics" not in str(
                    error
                ) and "argument: 'y_proba'" not in str(error):
                    silent.append(f"{name}: {error}")
            else:
                assert len(given) == 1, name
    assert not silent


def test_an_option_of_rows_beside_sums_is_named():
    display = pytest.importorskip("skcalib.displays").ReliabilityDisplay
    statistics = BinStatistics.from_predictions(*_rows(50)[1::-1], EDGES)
    with refused(
        TypeError, "statistics= is a parameter of ReliabilityDisplay.from_predictions"
    ):
        display.from_statistics(statistics, statistics=["slope"])
    with refused(TypeError, "first argument", "BinStatistics"):
        display.from_statistics(statistics=["slope"])


def test_missing_scores_are_named():
    with refused(ValueError, "y_proba", "found None", "ndarray"):
        metrics.calibration_error(np.array([0, 1]))


def test_thin_bins_of_a_table_are_refused_too():
    with refused(ValueError, "fewer than two rows"):
        metrics.calibration_error(
            reliability_curve([0, 1, 1], [0.1, 0.2, 0.3], binning=3)
        )


# Made by hand


SOUND = {
    "edges": [0, 0.5, 1],
    "count": [10, 4],
    "weight": [10, 6.5],
    "weighted_score": [3, 5.2],
    "weighted_label": [4, 5],
    "weighted_score_squared": [1, 4.2],
    "weighted_score_label": [1.2, 4],
}


def test_sums_given_by_hand():
    statistics = BinStatistics(**SOUND)
    assert [field.name for field in fields(BinStatistics)] == [*SOUND, "weight_squared"]
    assert statistics.count.dtype == np.int64
    assert statistics.weight.dtype == np.float64
    # |.3 - .4| of 10 and |.8 - .769| of 6.5
    assert metrics.expected_calibration_error(statistics) == pytest.approx(
        (1 + 0.2) / 16.5
    )
    empty_first = {
        name: [0, *np.atleast_1d(value)[1:]] for name, value in SOUND.items()
    }
    assert metrics.expected_calibration_error(
        BinStatistics(**empty_first)
    ) == pytest.approx(0.2 / 6.5)


def test_squared_weights():
    scores, weights = np.array([0.1, 0.4, 0.6, 0.7, 0.9]), np.array([1.0, 3, 2, 0, 0.5])
    made = BinStatistics.from_predictions([0, 1, 1, 0, 1], scores, [0, 0.5, 1], weights)
    assert made.weight_squared.tolist() == [10, 4.25]
    assert made.merge(made).weight_squared.tolist() == [20, 8.5]
    assert BinStatistics.from_predictions(
        [0, 1], [0.2, 0.7], [0, 0.5, 1]
    ).weight_squared.tolist() == [1, 1]
    # Rows of one weight each, if the sum is not given: 14 rows, of which 4 weigh 6.5.
    assert BinStatistics(**SOUND).weight_squared.tolist() == [10, 6.5**2 / 4]
    with refused(ValueError, "weight_squared", "weight^2 / count", "bin 1"):
        BinStatistics(**SOUND, weight_squared=[10, 6.5**2 / 5])


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("edges", [0, 0.5, 0.5], ["edges", "increasing", "0.5"]),
        ("edges", [0, 0.5, 2], ["edges", "[0, 1]"]),
        ("edges", [0, 1], ["count", "1 bins", "(2,)"]),
        ("edges", [[0, 0.5, 1]], ["edges"]),
        ("count", [10.0, 4.0], ["count", "whole numbers", "float64"]),
        ("count", [10, -4], ["count", "bin 1"]),
        ("count", [10, 0], ["count", "weight", "bin 1"]),
        ("count", ["a", "b"], ["count", "numbers"]),
        ("weight", [10, 0], ["weight", "bin 1"]),
        ("weight", [10, np.nan], ["weight", "finite", "nan"]),
        ("weight", [10, 6, 3], ["weight", "(3,)"]),
        ("weighted_score", [5.2, 5.2], ["weighted_score", "inside the bin", "bin 0"]),
        ("weighted_score", [3, 3], ["weighted_score", "bin 1"]),
        ("weighted_label", [4, 7], ["weighted_label", "between 0 and weight", "bin 1"]),
        ("weighted_label", [-1, 5], ["weighted_label", "bin 0"]),
        ("weighted_score_squared", [0.8, 4.2], ["weighted_score_squared", "bin 0"]),
        ("weighted_score_squared", [1.6, 4.2], ["weighted_score_squared", "bin 0"]),
        ("weighted_score_squared", [np.inf, 4.2], ["weighted_score_squared", "finite"]),
        ("weighted_score_label", [2.1, 4], ["weighted_score_label", "bin 0"]),
        ("weighted_score_label", [1.2, 5.2], ["weighted_score_label", "bin 1"]),
        ("weighted_score_label", [1.2, None], ["weighted_score_label"]),
    ],
)
def test_sums_that_no_rows_have(name, value, words):
    with refused(ValueError, *words):
        BinStatistics(**{**SOUND, name: value})


def test_no_rows_at_all():
    by_hand = BinStatistics(
        **{name: [0, 0] if name != "edges" else value for name, value in SOUND.items()}
    )
    # an empty part of the rows
    part = BinStatistics.from_predictions([], [], SOUND["edges"])
    for empty in (by_hand, part):
        assert repr(empty) == "0 samples in 2 bins."
        assert BinStatistics(**SOUND).merge(empty).weight.tolist() == SOUND["weight"]
        for metric in (
            metrics.calibration_error,
            reliability_curve,
            metrics.brier_decomposition,
        ):
            with refused(ValueError, "BinStatistics", "every bin is empty"):
                metric(empty)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0, 1], [0.2, 1.2], [0, 1]), ["y_proba", "[0, 1]", "row 1"]),
        (([0, 2], [0.2, 0.3], [0, 1]), ["y_true", "0 and 1"]),
        ((["a", "b"], [0.2, 0.3], [0, 1]), ["y_true", "0 and 1"]),
        (([0], [0.2, 0.3], [0, 1]), ["y_true", "1 rows"]),
        (([0, 1], [0.2, 0.3], [0, 0.5, 0.2]), ["edges", "increasing"]),
        (([0, 1], [0.2, 0.3], [0, 1], [1, -1]), ["sample_weight", "row 1"]),
        (([1], [], [0, 1]), ["y_proba", "empty"]),
    ],
)
def test_rows_are_checked(arguments, words):
    with refused(ValueError, *words):
        BinStatistics.from_predictions(*arguments)


def test_rows_of_weight_zero_do_not_count():
    found = BinStatistics.from_predictions(
        [1, 0, 1], [0.2, 0.3, 0.9], [0, 0.5, 1], [1.5, 0, 2]
    )
    assert found.count.tolist() == [1, 1]
    assert found.weighted_label.tolist() == [1.5, 2]


def test_numbers_of_tables_pass():
    # What `from_predictions` makes is sound itself, in any precision and with points
    # and weights.
    for dtype in (np.float64, np.float32):
        for scores, labels, weights in _shapes():
            for weight in (None, weights, weights * 1e-6):
                for edges in (EDGES, [0, 1], np.linspace(0, 1, 400), [0, 0, 0.3, 1]):
                    made = BinStatistics.from_predictions(
                        labels, scores.astype(dtype), edges, weight
                    )
                    BinStatistics(
                        *(getattr(made, field.name) for field in fields(made))
                    )


def test_frame_and_text():
    pytest.importorskip("pandas")
    statistics = BinStatistics(**SOUND)
    frame = statistics.to_frame()
    assert frame.columns.tolist() == [
        "lower_edge", "upper_edge", "count", "weight", "share", "mean_score", "event_frequency",  # noqa: E501
    ]  # fmt: skip
    assert frame["upper_edge"].tolist() == [0.5, 1]
    assert frame["mean_score"].tolist() == pytest.approx([0.3, 0.8])
    assert (
        repr(statistics) == "14 samples in 2 bins: weighted mean score 0.497, weighted"
        " event frequency 0.545."
    )
