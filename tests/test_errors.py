"""Binned calibration errors against plain loops over bins, to 1e-9."""

import numpy as np
import pytest
from _catalog import refused
from _twins import (
    equal_mass_edges,
    normal_absolute_moment,
    power,
    repeated,
    root,
    tasks,
    unique_score_edges,
)

from skcalib._errors.binned import absolute_moment
from skcalib.binning import EqualMass, EqualWidth, UniqueScores
from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    expected_calibration_error,
    groupwise_calibration_error,
    maximum_calibration_error,
)

NORMS = [("plugin", norm) for norm in (1, 1.5, 2, 3, 10, np.inf)]
NORMS += [("debiased", norm) for norm in (1, 1.5, 2, 3, 10)]
NORMS += [("label_binned", norm) for norm in (1, 2, 3)] + [("unbiased", 2)]
every_method = pytest.mark.parametrize(("method", "norm"), NORMS)


def _sample(kind, n=200):
    rng = np.random.default_rng(0)
    scores = {
        "k / 100": lambda: rng.integers(0, 101, n) / 100,
        "12 values": lambda: rng.choice(rng.random(12), n),
        "edges of 10": lambda: rng.integers(0, 11, n) / 10,
        "edges of 20": lambda: rng.integers(0, 21, n) / 20,
        "edges of 100": lambda: rng.choice(np.linspace(0, 1, 101), n),
        "0 and 1": lambda: rng.choice([0.0, 1.0], n),
        "continuous": lambda: rng.random(n),
        "near the ends": lambda: rng.beta(0.05, 0.05, n),
    }[kind]()
    return rng.random(n) < scores**1.5, scores


every_sample = pytest.mark.parametrize(
    "kind",
    [
        "k / 100",
        "12 values",
        "edges of 10",
        "edges of 20",
        "edges of 100",
        "0 and 1",
        "continuous",
        "near the ends",
    ],
)


@every_sample
@every_method
def test_error_is_that_of_a_loop(kind, method, norm):
    y, s = _sample(kind)
    for strategy, edges in (
        (EqualWidth(10), np.linspace(0, 1, 11)),
        (EqualMass(15), equal_mass_edges(s, 15)),
        (EqualMass(4), equal_mass_edges(s, 4)),
    ):
        expected = root(power(s, y, edges, norm=norm, method=method), norm)
        assert calibration_error(
            y, s, norm=norm, method=method, binning=strategy
        ) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n_bins", [2, 10, 20, 100])
@pytest.mark.parametrize(
    "kind", ["k / 100", "edges of 10", "edges of 20", "edges of 100"]
)
def test_scores_on_the_edges(kind, n_bins):
    y, s = _sample(kind)
    edges = np.linspace(0, 1, n_bins + 1)
    for norm, metric in (
        (1, expected_calibration_error),
        (np.inf, maximum_calibration_error),
    ):
        expected = root(power(s, y, edges, norm=norm, method="plugin"), norm)
        assert metric(y, s, binning=EqualWidth(n_bins)) == pytest.approx(
            expected, abs=1e-9
        )


@every_method
def test_weights_are_repeated_rows(method, norm):
    y, s = _sample("k / 100")
    weights = np.arange(len(y)) % 4  # zeros among them
    rows = repeated(weights, y, s)
    for strategy in (
        EqualMass(7),
        EqualWidth(7),
        UniqueScores() if method in ("plugin", "label_binned") else 5,
    ):
        found = calibration_error(
            y, s, norm=norm, method=method, binning=strategy, sample_weight=weights
        )
        expected = calibration_error(*rows, norm=norm, method=method, binning=strategy)
        assert found == pytest.approx(expected, abs=1e-12)
    edges = equal_mass_edges(s, 7, weights)
    expected = root(power(s, y, edges, norm=norm, method=method, weights=weights), norm)
    found = calibration_error(
        y, s, norm=norm, method=method, binning=7, sample_weight=weights
    )
    assert found == pytest.approx(expected, abs=1e-9)


@every_method
def test_weights_may_be_fractions(method, norm):
    y, s = _sample("k / 100")
    weights = np.random.default_rng(1).random(len(y)) * 4
    expected = root(
        power(s, y, np.linspace(0, 1, 8), norm=norm, method=method, weights=weights),
        norm,
    )
    found = calibration_error(
        y, s, norm=norm, method=method, binning=EqualWidth(7), sample_weight=weights
    )
    assert found == pytest.approx(expected, abs=1e-9)


def _classes(n=300, n_classes=4):
    rng = np.random.default_rng(0)
    proba = rng.multinomial(20, rng.dirichlet(np.ones(n_classes), n)) / 20
    codes = np.array(
        [rng.choice(n_classes, p=row) for row in 0.5 * proba + 0.5 / n_classes]
    )
    return codes, proba


@every_method
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("multiclass", ["top_label", "marginal"])
def test_many_classes(n_classes, multiclass, method, norm):
    codes, proba = _classes(n_classes=n_classes)
    problems = tasks(proba.tolist(), codes.tolist(), multiclass)
    powers = [
        power(s, y, equal_mass_edges(s, 5), norm=norm, method=method)
        for s, y in problems
    ]
    # signed powers are summed over the classes, and clipped once
    expected = max(powers) if norm == np.inf else root(sum(powers) / len(powers), norm)
    options = {"norm": norm, "method": method, "binning": 5, "multiclass": multiclass}
    assert calibration_error(codes, proba, **options) == pytest.approx(
        expected, abs=1e-9
    )
    # columns in the order of the labels, reversed
    names = np.array(["d", "c", "b", "a"])[:n_classes]
    assert calibration_error(names[codes], proba[:, ::-1], **options) == pytest.approx(
        (
            expected
            if multiclass == "marginal"
            else calibration_error(n_classes - 1 - codes, proba[:, ::-1], **options)
        ),
        abs=1e-9,
    )


def test_auto_is_top_label_for_many_classes():
    codes, proba = _classes()
    assert calibration_error(codes, proba) == calibration_error(
        codes, proba, multiclass="top_label"
    )
    assert calibration_error(codes, proba) != calibration_error(
        codes, proba, multiclass="marginal"
    )


@pytest.mark.parametrize("method", ["plugin", "debiased", "unbiased"])
def test_class_weight_multiplies_the_squares(method):
    codes, proba = _classes()
    weights = [0.5, 0, 2, 1]
    powers = [
        power(s, y, equal_mass_edges(s, 5), norm=2, method=method)
        for s, y in tasks(proba.tolist(), codes.tolist(), "marginal")
    ]
    options = {
        "method": method,
        "binning": 5,
        "multiclass": "marginal",
        "squared": True,
    }
    expected = pytest.approx(np.dot(weights, powers), abs=1e-9)
    assert calibration_error(codes, proba, class_weight=weights, **options) == expected
    assert (
        calibration_error(
            codes, proba, class_weight=dict(enumerate(weights)), **options
        )
        == expected
    )
    names = np.array(list("abcd"))
    by_name = dict(zip("abcd", weights, strict=True))
    assert (
        calibration_error(names[codes], proba, class_weight=by_name, **options)
        == expected
    )


def test_a_class_of_weight_zero_is_left_out_of_the_largest_error():
    # The third class never happens, and is off by .6; the others by .1 and .5.
    proba, codes = np.tile([0.3, 0.1, 0.6], (10, 1)), np.arange(10) >= 4
    options = {
        "norm": np.inf,
        "multiclass": "marginal",
        "labels": [0, 1, 2],
        "binning": 1,
    }
    assert calibration_error(codes.astype(int), proba, **options) == pytest.approx(0.6)
    assert calibration_error(
        codes.astype(int), proba, class_weight=[1, 1, 0], **options
    ) == pytest.approx(0.5)


def test_class_weight_of_two_classes_goes_by_label():
    y, s = _sample("continuous")
    # rows that do not sum to 1: each class has an error of its own
    proba = np.column_stack((s**2, s))
    alone = [calibration_error(y == k, proba[:, k]) for k in (0, 1)]
    assert abs(alone[0] - alone[1]) > 0.05
    for k in (0, 1):
        weight = {0: 1 - k, 1: k}
        for pos_label in (None, 0, 1):
            found = calibration_error(
                y,
                proba,
                multiclass="marginal",
                class_weight=weight,
                pos_label=pos_label,
            )
            assert found == pytest.approx(alone[k])
    # one column, of class 0, stands for the columns (1 - s, s) of the classes 1 and 0
    zero_only = calibration_error(
        y, 1 - s, multiclass="marginal", class_weight={0: 1, 1: 0}, pos_label=0
    )
    assert zero_only == pytest.approx(calibration_error(~y, 1 - s))


@pytest.mark.parametrize(
    ("class_weight", "words"),
    [
        ({0: 1}, ["no entry", "[1, 2, 3]"]),
        ([1, 2], ["4 finite, non-negative weights"]),
        ([1, 2, 3, np.nan], ["4 finite, non-negative weights"]),
        ([0, 0, 0, 0], ["4 finite, non-negative weights", "all zero"]),
        ([1, 1, 1, -1], ["4 finite, non-negative weights", "negative"]),
        ("balanced", ["numbers", "balanced"]),
    ],
)
def test_class_weights_are_checked(class_weight, words):
    codes, proba = _classes()
    with refused(ValueError, "class_weight", *words):
        calibration_error(
            codes, proba, multiclass="marginal", class_weight=class_weight
        )


def test_class_weight_has_no_meaning_elsewhere():
    codes, proba = _classes()
    with refused(ValueError, "class_weight", 'multiclass="marginal"'):
        calibration_error(codes, proba, class_weight=[1, 1, 1, 1])


@pytest.mark.parametrize("multiclass", ["ovr", None, ["marginal"]])
def test_multiclass_that_is_none_of_the_three(multiclass):
    codes, proba = _classes()
    with refused(ValueError, "multiclass must be", repr(multiclass)):
        calibration_error(codes, proba, multiclass=multiclass)


@pytest.mark.parametrize("method", ["plugin", "debiased", "unbiased", "label_binned"])
@pytest.mark.parametrize("kind", ["k / 100", "continuous"])
def test_squared_is_the_signed_square(kind, method):
    y, s = _sample(kind)
    found = calibration_error(y, s, method=method, binning=10, squared=True)
    assert found == pytest.approx(
        power(s, y, equal_mass_edges(s, 10), norm=2, method=method), abs=1e-9
    )
    assert calibration_error(y, s, method=method, binning=10) == pytest.approx(
        max(found, 0) ** 0.5
    )


def test_squared_may_be_negative():
    # 4 of 8 events at a score of 1/2: the plugin square is 0, and (1/2)(1/2) / 7 is
    # noise.
    y, s = np.arange(8) % 2, np.full(8, 0.5)
    assert calibration_error(y, s, squared=True) == pytest.approx(-1 / 28)
    assert calibration_error(y, s) == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"norm": 0.5}, ["norm", "at least 1", "0.5"]),
        ({"norm": np.nan}, ["norm", "nan"]),
        ({"norm": "l3"}, ["norm", "'l1'", "'max'", "'l3'"]),
        ({"norm": "max", "method": "debiased"}, ["max", 'method="plugin"']),
        ({"norm": True}, ["norm", "True"]),
        ({"norm": np.inf, "method": "unbiased"}, ["norm=np.inf", 'method="plugin"']),
        ({"norm": np.inf, "method": "label_binned"}, ["norm=np.inf", "plugin"]),
        ({"norm": 1, "method": "unbiased"}, ["unbiased", "norm=2", "norm=1"]),
        ({"norm": 1, "squared": True}, ["squared=True", "norm=2"]),
        ({"method": "bayes"}, ["method", "'plugin'", "'bayes'"]),
        ({"multiclass": "ovr"}, ["multiclass", "'marginal'", "'ovr'"]),
        ({"norm": 4000, "method": "plugin"}, ["norm=4000", "np.inf"]),
        ({"norm": 4000, "binning": 2}, ["norm=4000", "np.inf"]),
    ],
)
def test_options_are_checked(options, words):
    with refused(ValueError, *words):
        calibration_error(*_sample("continuous"), **options)


@pytest.mark.parametrize("norm", [20, 50, 100, 200])
def test_large_norms_tend_to_the_largest_gap(norm):
    y, s = _sample("k / 100")
    largest = maximum_calibration_error(y, s, binning=EqualMass(5))
    found = expected_calibration_error(y, s, norm=norm, binning=EqualMass(5))
    # of 5 bins the worst has at least .19 of the weight
    assert largest * 0.19 ** (1 / norm) <= found <= largest


@pytest.mark.parametrize("order", [1, 1.3, 2, 2.5, 3, 7, 10])
def test_absolute_moment_of_a_normal(order):
    for mean in (0, 1e-8, 1e-3, -0.1, 0.5, -1):
        for variance in (0, 1e-18, 1e-9, 1e-4, 1e-2, 0.25):
            found = float(
                absolute_moment(np.float64(mean), np.float64(variance), order)
            )
            assert found == pytest.approx(
                normal_absolute_moment(mean, variance, order), rel=1e-9
            )


def test_debiased_norms_2_and_nearly_2_differ_as_documented():
    # One bin, 5 of 10 at .5: variance / (n - 1) against variance / n, .25 / 9 and .25 /
    # 10.
    y, s = np.arange(10) % 2, np.full(10, 0.6)
    assert calibration_error(y, s, binning=1, squared=True) == pytest.approx(
        0.01 - 0.25 / 9
    )
    y, s = np.arange(1000) % 2, np.full(1000, 0.6)
    assert calibration_error(y, s, binning=1, norm=2 + 1e-9) ** 2 == pytest.approx(
        0.01 - 0.25 / 1000, abs=1e-8
    )


@pytest.mark.parametrize(
    ("norm", "method"),
    [(2, "unbiased"), (1, "debiased"), (2.5, "debiased"), ("max", "plugin")],
)
def test_auto_is_the_method_of_the_norm(norm, method):
    y, s = _sample("continuous")
    assert calibration_error(y, s, norm=norm) == calibration_error(
        y, s, norm=norm, method=method
    )
    found = [
        calibration_error_interval(
            y, s, norm=norm, method=m, n_resamples=20, random_state=0
        )
        for m in ("auto", method)
    ]
    assert found[0] == found[1]


def test_binned_model_has_its_error_in_unique_scores():
    y, s = _sample("12 values")
    expected = root(power(s, y, unique_score_edges(s), norm=1, method="plugin"), 1)
    assert expected_calibration_error(y, s, binning=UniqueScores()) == pytest.approx(
        expected, abs=1e-9
    )


@pytest.mark.parametrize(
    "metric", [calibration_error, expected_calibration_error, maximum_calibration_error]
)
def test_defaults_and_type(metric):
    y, s = _sample("continuous")
    norm, strategy = {
        "calibration_error": (2, EqualMass(15)),
        "expected_calibration_error": (1, EqualWidth(15)),
        "maximum_calibration_error": (np.inf, EqualWidth(15)),
    }[metric.__name__]
    method = "unbiased" if metric is calibration_error else "plugin"
    found = metric(y, s)
    assert type(found) is float
    assert type(expected_calibration_error(y, s, norm=np.float64(3))) is float
    edges = strategy.bin_edges(s)
    assert found == pytest.approx(
        root(power(s, y, edges, norm=norm, method=method), norm), abs=1e-9
    )


def test_input_is_left_alone():
    y, s = _sample("k / 100")
    weights = np.ones(len(y))
    arrays = (y, s, weights)
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    calibration_error(y, s, sample_weight=weights)
    calibration_error(y, s, method="label_binned", sample_weight=weights)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize(
    ("metric", "strategy"),
    [
        (expected_calibration_error, EqualWidth),
        (maximum_calibration_error, EqualWidth),
        (groupwise_calibration_error, EqualWidth),
        (calibration_error, EqualMass),
    ],
)
def test_a_number_of_bins_is_one_of_the_metrics_own_kind(metric, strategy):
    rng = np.random.default_rng(3)
    s = rng.beta(1, 4, 200)
    y = rng.random(200) < s
    assert metric(y, s, binning=7) == metric(y, s, binning=strategy(7))
    intervals = [
        calibration_error_interval(
            y, s, metric=metric, binning=binning, n_resamples=20, random_state=0
        )
        for binning in (7, strategy(7))
    ]
    assert intervals[0] == intervals[1]
