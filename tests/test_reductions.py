"""Many classes as binary problems."""

import numpy as np
import pytest
from _catalog import refused
from _twins import tasks, top_label

from skcalib._cells import columns
from skcalib._cells.columns import resolve_multiclass, spread_top_label
from skcalib._cells.reductions import binary_tasks
from skcalib._input.scored_labels import check_scored_labels

_RNG = np.random.default_rng(0)
# many ties, also between classes of a row
PROBA = np.round(_RNG.dirichlet(np.ones(4), 200) * 20) / 20
PROBA[:, 3] = 1 - PROBA[:, :3].sum(axis=1)
PROBA = np.clip(PROBA[PROBA[:, 3] >= 0], 0, 1)
Y = _RNG.integers(4, size=len(PROBA))


@pytest.mark.parametrize("multiclass", ["top_label", "marginal"])
def test_tasks_of_many_classes(multiclass):
    found = list(
        binary_tasks(check_scored_labels(Y, PROBA, multiclass=multiclass), multiclass)
    )
    expected = tasks(PROBA.tolist(), Y.tolist(), multiclass)
    assert len(found) == len(expected)
    for task, (scores, labels) in zip(found, expected, strict=True):
        np.testing.assert_allclose(task.scores, scores, atol=1e-15)
        np.testing.assert_array_equal(task.labels, labels)
        assert task.sample_weight is None


@pytest.mark.parametrize("multiclass", ["top_label", "marginal"])
def test_two_columns_are_taken_as_they_are(multiclass):
    # 1 - .18 is not .82 in floats: the score of class 0 must not be computed from that
    # of class 1.
    proba = np.column_stack(((100 - np.arange(101)) / 100, np.arange(101) / 100))
    y = np.arange(101) // 3 % 2
    found = list(
        binary_tasks(check_scored_labels(y, proba, multiclass=multiclass), multiclass)
    )
    for task, (scores, labels) in zip(
        found, tasks(proba.tolist(), y.tolist(), multiclass), strict=True
    ):
        np.testing.assert_array_equal(task.scores, scores)
        np.testing.assert_array_equal(task.labels, labels)


def test_marginal_columns_need_not_sum_to_one():
    proba, y = np.random.default_rng(0).random((50, 2)), np.arange(50) % 2
    none, positive = binary_tasks(
        check_scored_labels(y, proba, multiclass="marginal"), "marginal"
    )
    np.testing.assert_array_equal(none.scores, proba[:, 0])
    np.testing.assert_array_equal(positive.scores, proba[:, 1])


@pytest.mark.parametrize("multiclass", ["top_label", "marginal"])
def test_one_score_counts_as_two_columns(multiclass):
    scores = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    y = np.array([0, 1, 0, 1, 1])
    one = list(
        binary_tasks(check_scored_labels(y, scores, multiclass=multiclass), multiclass)
    )
    two = list(
        binary_tasks(
            check_scored_labels(
                y, np.column_stack((1 - scores, scores)), multiclass=multiclass
            ),
            multiclass,
        )
    )
    for left, right in zip(one, two, strict=True):
        np.testing.assert_array_equal(left.scores, right.scores)
        np.testing.assert_array_equal(left.labels, right.labels)


def test_auto_is_the_positive_class_for_one_or_two_columns_else_the_top_label():
    two = check_scored_labels([0, 1], [[0.4, 0.6], [0.3, 0.7]])
    assert resolve_multiclass("auto", two) == "binary"
    assert resolve_multiclass("auto", check_scored_labels(Y, PROBA)) == "top_label"
    with refused(ValueError, "multiclass", "'ovr'", "'marginal'"):
        resolve_multiclass("ovr", two)


def test_predicted_class_is_the_first_of_the_largest():
    predicted, confidence = columns.top_label(PROBA)
    assert list(zip(predicted.tolist(), confidence.tolist(), strict=True)) == [
        (k, pytest.approx(s)) for k, s in top_label(PROBA.tolist())
    ]


def test_rest_is_spread_in_proportion():
    # The predicted class gets .4; the others share .6 as .1 : .2, and as equals where
    # they have nothing.
    scores = np.array([[0.1, 0.7, 0.2], [0.0, 0.0, 1.0]])
    found = spread_top_label(scores, np.array([0.4, 0.4]))
    np.testing.assert_allclose(found, [[0.2, 0.4, 0.4], [0.3, 0.3, 0.4]])
