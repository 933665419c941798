"""Errors by group: the cancelling cases, the plain loop, and groups of all kinds."""

import numpy as np
import pytest
from _catalog import refused
from numpy.testing import assert_allclose

from skcalib.binning import EqualMass, EqualWidth
from skcalib.metrics import (
    calibration_error,
    expected_calibration_error,
    groupwise_calibration_error,
)


def sample(n=300, k=3, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(k), n)
    return (
        proba,
        np.array([rng.choice(k, p=row**1.5 / (row**1.5).sum()) for row in proba]),
        rng.integers(1, 4, n),
    )


def test_the_cancelling_case():
    # Zhao et al.: two predicted classes of 100 rows, confidence .5, of which 58 and 42
    # are right: .08 each, 0 pooled.
    y_proba = np.repeat([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2]], 100, axis=0)
    y_true = np.r_[np.zeros(58), np.full(42, 2), np.ones(42), np.full(58, 2)].astype(
        int
    )
    assert expected_calibration_error(y_true, y_proba) == pytest.approx(0, abs=1e-12)
    errors = groupwise_calibration_error(y_true, y_proba, reduce=None)
    assert errors == pytest.approx({0: 0.08, 1: 0.08})
    assert list(errors) == [0, 1]  # nobody predicted class 2
    for reduce in ("max", "mean", "weighted"):
        assert groupwise_calibration_error(
            y_true, y_proba, reduce=reduce
        ) == pytest.approx(0.08)


def test_the_printed_case_needs_a_bucket_that_holds_both_scores():
    # Scores .4 and .6 in the middle one of three bins: +.08 in one class, -.08 in the
    # other, nothing pooled.
    y_proba = np.repeat([0.4, 0.6], 50)
    y_true = np.r_[np.ones(24), np.zeros(26), np.ones(26), np.zeros(24)]
    errors = groupwise_calibration_error(
        y_true, y_proba, binning=EqualWidth(3), reduce=None
    )
    assert errors == pytest.approx({0: 0.08, 1: 0.08})
    assert expected_calibration_error(
        y_true, y_proba, binning=EqualWidth(3)
    ) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("method", ["plugin", "debiased", "unbiased", "label_binned"])
def test_equals_the_error_of_each_slice(method):
    proba, labels, weights = sample()
    groups = np.array(["x", "y", "z"])[np.arange(300) % 3]
    options = {"norm": 2, "binning": EqualMass(4), "method": method}
    slices = {
        name: calibration_error(
            labels[groups == name],
            proba[groups == name],
            sample_weight=weights[groups == name],
            **options,
        )
        for name in "xyz"
    }
    share = np.array([weights[groups == name].sum() for name in "xyz"]) / weights.sum()
    expected = {
        None: slices,
        "max": max(slices.values()),
        "mean": np.mean(list(slices.values())),
        "weighted": share @ list(slices.values()),
    }
    for reduce, value in expected.items():
        found = groupwise_calibration_error(
            labels,
            proba,
            groups=groups,
            reduce=reduce,
            sample_weight=weights,
            **options,
        )
        assert found == pytest.approx(value, abs=1e-12)


def test_groups_by_predicted_class_of_two_classes():
    y_proba, y_true = (
        np.array([0.2, 0.4, 0.5, 0.9]),
        np.array(["no", "yes", "no", "yes"]),
    )
    # .5 is not above one half: "no" is predicted, as argmax of (1/2, 1/2) does.
    errors = groupwise_calibration_error(
        y_true, y_proba, pos_label="yes", reduce=None, binning=EqualWidth(1)
    )
    assert errors == pytest.approx({"no": abs(1.1 / 3 - 1 / 3), "yes": 0.1})
    both = groupwise_calibration_error(
        y_true,
        np.column_stack((1 - y_proba, y_proba)),
        reduce=None,
        binning=EqualWidth(1),
    )
    assert both == pytest.approx(errors)
    # Scores of the other class: |1 - .9| again, and the class that is predicted keeps
    # its name.
    other = groupwise_calibration_error(
        y_true, 1 - y_proba + [0, 0, 0.01, 0], pos_label="no", reduce=None, binning=1
    )
    assert other == pytest.approx({"no": abs(1.91 / 3 - 2 / 3), "yes": 0.1})


@pytest.mark.parametrize(
    "groups",
    [
        [3, 3, 1, 1],
        [3.5, 3.5, 0.5, 0.5],
        ["b", "b", "a", "a"],
        [True, True, False, False],
        np.array(["2024-02", "2024-02", "2024-01", "2024-01"], dtype="datetime64[M]"),
        np.array(["b", "b", "a", "a"], dtype=object),
    ],
    ids=str,
)
def test_any_kind_of_group(groups):
    errors = groupwise_calibration_error(
        [0, 1, 1, 1], [0.5, 0.5, 0.8, 0.8], groups=groups, reduce=None
    )
    assert list(errors.values()) == pytest.approx([0.2, 0.0])
    assert all(not isinstance(name, np.generic) for name in errors)


def test_pandas_groups_with_an_unused_category():
    pd = pytest.importorskip("pandas", reason="pandas is an extra")
    groups = pd.Series(
        ["a", "a", "b"], index=[7, 8, 9], dtype=pd.CategoricalDtype(["a", "b", "never"])
    )
    errors = groupwise_calibration_error(
        [0, 1, 1], [0.5, 0.5, 0.8], groups=groups, reduce=None
    )
    assert errors == pytest.approx({"a": 0.0, "b": 0.2})


def test_a_group_of_one_row_one_class_or_no_weight():
    y_true, y_proba, groups = (
        [1, 0, 0, 1],
        [0.7, 0.2, 0.4, 0.9],
        ["one", "zeros", "zeros", "empty"],
    )
    errors = groupwise_calibration_error(
        y_true, y_proba, groups=groups, reduce=None, sample_weight=[1, 1, 1, 0]
    )
    assert errors == pytest.approx({"one": 0.3, "zeros": 0.3})
    assert groupwise_calibration_error([1], [0.7], labels=[0, 1]) == pytest.approx(0.3)
    with refused(ValueError, "'one'", "fewer than two rows"):
        groupwise_calibration_error(
            y_true,
            y_proba,
            groups=["a", "a", "a", "one"],
            norm=2,
            method="debiased",
            binning=1,
        )


def test_order_of_rows_and_weights_as_repetitions():
    proba, labels, weights = sample(seed=1)
    groups = np.arange(300) % 7
    expected = groupwise_calibration_error(
        labels, proba, groups=groups, reduce=None, sample_weight=weights
    )
    order = np.random.default_rng(2).permutation(300)
    shuffled = groupwise_calibration_error(
        labels[order],
        proba[order],
        groups=groups[order],
        reduce=None,
        sample_weight=weights[order],
    )
    assert shuffled == pytest.approx(expected, abs=1e-12)
    repeated = groupwise_calibration_error(
        np.repeat(labels, weights),
        np.repeat(proba, weights, axis=0),
        groups=np.repeat(groups, weights),
        reduce=None,
    )
    assert repeated == pytest.approx(expected, abs=1e-12)


def test_marginal_within_groups():
    proba, labels, _ = sample(seed=3)
    groups = np.arange(300) % 2
    errors = groupwise_calibration_error(
        labels, proba, groups=groups, reduce=None, multiclass="marginal"
    )
    first = expected_calibration_error(labels[::2], proba[::2], multiclass="marginal")
    assert errors[0] == pytest.approx(first, abs=1e-12)


def test_bad_groups():
    y, s = [0, 1, 1], [0.2, 0.6, 0.7]
    for groups, words in (
        ("subject", ["groups", "'predicted_class'", "'subject'"]),
        ([1, 2], ["groups", "2 rows", "3"]),
        ([1, np.inf, 2], ["groups", "infinity", "row 1"]),
        ([[1, 2], [1, 2], [1, 2]], ["groups"]),
        (np.array(["a", 1, "b"], dtype=object), ["groups", "types"]),
        (["a", None, "missing"], ["groups", "'missing'"]),
    ):
        with refused(ValueError, *words):
            groupwise_calibration_error(y, s, groups=groups)
    with refused(ValueError, "reduce", "'median'"):
        groupwise_calibration_error(y, s, reduce="median")


@pytest.mark.parametrize("method", ["plugin", "auto"])
@pytest.mark.parametrize("norm", [1, 2, 3, np.inf])
@pytest.mark.parametrize("binning", [4, EqualWidth("sqrt"), EqualMass(2)])
def test_groups_together_are_as_each_group_alone(norm, method, binning):
    # 1. Small groups with ties, of many sizes, and one group whose bins are made alone.
    rng = np.random.default_rng(0)
    n = 9000
    scores = np.round(rng.random(n), 2)
    y = rng.random(n) < scores**1.5
    groups = np.where(rng.random(n) < 0.6, "large", rng.integers(0, 40, n).astype(str))
    found = groupwise_calibration_error(
        y,
        scores,
        groups=groups,
        reduce=None,
        norm=norm,
        method=method,
        binning=binning,
    )
    # 2. Each by the error of its rows.
    if isinstance(binning, int):
        binning = EqualWidth(binning)
    expected = {}
    for name in sorted(set(groups)):
        rows = groups == name
        expected[name] = calibration_error(
            y[rows], scores[rows], norm=norm, method=method, binning=binning
        )
    assert list(found) == list(expected)
    assert_allclose([*found.values()], [*expected.values()], rtol=0, atol=1e-12)


def test_a_small_group_without_an_error_is_named():
    groups = np.repeat(["a", "b", "c"], [40, 3, 40])
    scores = np.linspace(0.01, 0.99, 83)
    y = np.arange(83) % 2
    with pytest.raises(ValueError, match="error of group 'b' .* 3 samples are too few"):
        groupwise_calibration_error(
            y, scores, groups=groups, method="auto", binning=EqualMass(3)
        )
