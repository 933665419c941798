"""`multiclass="pooled"`: all pairs of a row and a class as one problem, in which a row
has one event.
"""

import numpy as np
import pytest
from _catalog import refused
from _twins import bin_of, equal_mass_edges, power, root

from skcalib.metrics import (
    brier_decomposition,
    calibration_by_group,
    calibration_error,
    calibration_error_interval,
    calibration_test,
    expected_calibration_error,
    groupwise_calibration_error,
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
    reliability_curve,
    sweep_calibration_error,
)

POOLED = {"multiclass": "pooled"}


def _rows(n=200, n_classes=3, seed=0, exponent=1.0, ties=False):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), n)
    if ties:
        proba = np.round(proba * 8) / 8
        proba = proba[proba.sum(axis=1) == 1]
    true = proba**exponent / (proba**exponent).sum(axis=1, keepdims=True)
    return np.array([rng.choice(n_classes, p=row) for row in true]), proba


def _pairs(y, proba):
    return [s for row in proba for s in row], [
        int(k == c) for c in y for k in range(proba.shape[1])
    ]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    ("norm", "method"),
    [(1, "plugin"), (2, "plugin"), (2, "debiased"), (1, "label_binned")],
)
def test_value_is_that_of_the_pairs(n_classes, norm, method):
    y, proba = _rows(n_classes=n_classes, exponent=2)
    scores, labels = _pairs(y, proba)
    expected = root(
        power(scores, labels, equal_mass_edges(scores, 6), norm=norm, method=method),
        norm,
    )
    assert calibration_error(
        y, proba, norm=norm, method=method, binning=6, **POOLED
    ) == pytest.approx(expected)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_unbiased_square_takes_the_noise_of_rows(n_classes):
    y, proba = _rows(n_classes=n_classes, ties=n_classes == 3)
    scores, labels = _pairs(y, proba)
    edges, expected = equal_mass_edges(scores, 4), 0.0
    for b in range(len(edges) - 1):
        cells = [
            (i, k)
            for i, row in enumerate(proba)
            for k in range(n_classes)
            if bin_of(row[k], edges) == b
        ]
        pairs = [(i, proba[i][k] - (k == y[i])) for i, k in cells]
        mean = sum(gap for _, gap in pairs) / len(pairs)
        of_row = {}
        for i, gap in pairs:
            of_row[i] = of_row.get(i, 0) + gap - mean
        n_rows = len(of_row)
        noise = (
            n_rows
            / (n_rows - 1)
            * sum(gap**2 for gap in of_row.values())
            / len(pairs) ** 2
        )
        expected += len(pairs) / len(scores) * (mean**2 - noise)
    assert calibration_error(
        y, proba, binning=4, squared=True, **POOLED
    ) == pytest.approx(expected, abs=1e-12)


def test_integer_weights_are_repeated_rows():
    y, proba = _rows(ties=True)
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    again = np.repeat(y, weight), np.repeat(proba, weight, axis=0)
    for metric in (
        calibration_error,
        expected_calibration_error,
        kuiper_calibration_error,
        sweep_calibration_error,
    ):
        found = metric(y, proba, sample_weight=weight, **POOLED)
        assert found == pytest.approx(metric(*again, **POOLED), abs=1e-12)


def test_two_classes_in_one_bin_never_err():
    """One bin holds both pairs of each row, whose residuals add up to 0: error and
    noise are 0, however wrong.
    """
    y, s = np.array([1, 1, 0, 1]), np.array([0.1, 0.2, 0.3, 0.4])
    assert calibration_error(y, s, binning=1, squared=True, **POOLED) == pytest.approx(
        0, abs=1e-15
    )
    options = {"binning": 1, "n_resamples": 99, "random_state": 0, **POOLED}
    y, s = np.tile(y, 20), np.tile(s, 20)
    assert (
        calibration_error_interval(
            y, s, metric=expected_calibration_error, **options
        ).low
        == 0
    )
    both = np.column_stack((1 - s, s))
    assert expected_calibration_error(y, s, **POOLED) == pytest.approx(
        expected_calibration_error(y, both, **POOLED)
    )


def test_other_metrics_take_the_pairs():
    y, proba = _rows()
    scores, labels = _pairs(y, proba)
    assert kuiper_calibration_error(y, proba, **POOLED) == pytest.approx(
        kuiper_calibration_error(labels, scores)
    )
    assert brier_decomposition(y, proba, **POOLED) == pytest.approx(
        brier_decomposition(labels, scores)
    )
    curve = reliability_curve(y, proba, binning=5, **POOLED)
    assert (curve.weight.sum(), curve.weighted_label.sum()) == (600, 200)
    by_class = groupwise_calibration_error(y, proba, reduce=None, binning=3, **POOLED)
    rows = proba.argmax(axis=1) == 1
    assert by_class[1] == pytest.approx(
        expected_calibration_error(y[rows], proba[rows], binning=3, **POOLED)
    )


@pytest.mark.parametrize(
    "metric", [calibration_error, kolmogorov_smirnov_calibration_error]
)
def test_power_and_interval_with_weights(metric):
    y, proba = _rows(n=400, exponent=3)
    options = {"metric": metric, "random_state": 0, "n_resamples": 199, **POOLED}
    found = calibration_error_interval(y, proba, **options)
    assert 0 < found.low < found.estimate < found.high
    assert calibration_test(y, proba, **options).pvalue <= 0.01
    halves = calibration_error_interval(
        y, proba, sample_weight=np.full(400, 0.5), weight_type="importance", **options
    )
    assert halves == pytest.approx(found, rel=0.1)


@pytest.mark.parametrize("multiclass", ["marginal", "pooled"])
def test_clusters_of_one_row_give_the_interval_without_clusters(multiclass):
    """The classes of a row sum to 1 at any c, and the cells still have the frequencies
    (they once were .03 off).
    """
    y, proba = _rows(n=400, exponent=3)
    options = {
        "multiclass": multiclass,
        "random_state": 0,
        "n_resamples": 199,
        "binning": 5,
    }
    found = calibration_error_interval(y, proba, **options)
    own = calibration_error_interval(y, proba, clusters=np.arange(400), **options)
    assert own == pytest.approx(found, rel=0.05)


@pytest.mark.parametrize(
    "metric", [calibration_error, kolmogorov_smirnov_calibration_error]
)
def test_clusters_of_copies_are_worth_one_row(metric):
    y, proba = _rows(n=400, exponent=3)
    options = {"metric": metric, "random_state": 0, "n_resamples": 199, **POOLED}
    found = calibration_error_interval(y, proba, **options)
    pairs = calibration_error_interval(
        y.repeat(2), proba.repeat(2, axis=0), clusters=np.arange(800) // 2, **options
    )
    assert pairs == pytest.approx(found, rel=0.2)


def test_columns_that_do_not_sum_to_one_are_drawn_independently():
    rng = np.random.default_rng(0)
    proba = rng.random((300, 3))
    y = rng.integers(0, 3, 300)
    assert (
        calibration_test(
            y, proba, metric=expected_calibration_error, random_state=0, **POOLED
        ).pvalue
        == 0.001
    )
    with refused(ValueError, "sum to", "y_proba"):
        calibration_test(
            y, proba, metric=lambda y, p, **_: 0.0, n_resamples=9, **POOLED
        )


def test_method_kuiper_draws_one_label_a_row():
    y, proba = _rows()
    found = calibration_test(y, proba, method="kuiper", random_state=0, **POOLED)
    assert found == calibration_test(
        y, proba, metric=kuiper_calibration_error, random_state=0, **POOLED
    )
    with refused(ValueError, "hosmer_lemeshow", "pooled", "independent labels"):
        calibration_test(y, proba, method="hosmer_lemeshow", **POOLED)


def test_what_is_about_one_event_refuses():
    y, proba = _rows()
    with refused(ValueError, "multiclass", "'pooled'", "'top_label'"):
        calibration_by_group(y, proba, np.arange(200) % 2, **POOLED)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize(
    "metric", [calibration_error, expected_calibration_error, kuiper_calibration_error]
)
def test_level(metric, n_classes):
    """Independent pairs rejected .083 at K = 2 and .02 at K = 10; of 100 samples 5 are
    expected, more than 11 have a chance of .4 %.
    """
    rejected = 0
    for seed in range(100):
        y, proba = _rows(n=300, n_classes=n_classes, seed=seed)
        options = {
            "n_resamples": 99,
            "random_state": seed,
            "labels": np.arange(n_classes),
            **POOLED,
        }
        rejected += calibration_test(y, proba, metric=metric, **options).pvalue <= 0.05
    assert 1 <= rejected <= 11
