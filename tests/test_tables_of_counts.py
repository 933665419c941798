"""Published tables: one row per grade or category, with samples, events and score."""

import numpy as np
import pytest
from scipy.stats import beta

from skcalib.binning import UniqueScores
from skcalib.metrics import (
    BinStatistics,
    brier_decomposition,
    calibration_by_group,
    calibration_error,
    calibration_test,
    expected_calibration_error,
)

COUNT = np.array([120, 0, 80, 60, 40])
EVENTS = np.array([0, 0, 22, 31, 40])
SCORE = np.array([0.0, 0.1, 0.25, 0.55, 1.0])


def _one_row_per_sample():
    scores = np.repeat(SCORE, COUNT)
    labels = np.concatenate(
        [np.arange(n) < d for n, d in zip(COUNT, EVENTS, strict=True)]
    )
    return labels, scores


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [3, 0, 4, 1, 2]])
def test_a_table_is_worth_its_samples(order):
    labels, scores = _one_row_per_sample()
    table = BinStatistics.from_counts(COUNT[order], EVENTS[order], SCORE[order])
    assert table.count.tolist() == [120, 80, 60, 40]
    assert table.mean_score == pytest.approx([0, 0.25, 0.55, 1])
    own = {"binning": UniqueScores()}
    for metric in (calibration_error, expected_calibration_error):
        assert metric(table) == pytest.approx(metric(labels, scores, **own))
    parts = brier_decomposition(table)
    assert parts == pytest.approx(brier_decomposition(labels, scores, **own))
    test = calibration_test(table, method="hosmer_lemeshow")
    # sum (O - E)^2 / (n p (1 - p)) over the grades with 0 < p < 1, by hand:
    # (22 - 20)^2 / 15 + (31 - 33)^2 / 14.85
    assert test.statistic == pytest.approx(4 / 15 + 4 / 14.85)


def test_grades_are_judged_one_by_one():
    table = calibration_by_group(
        BinStatistics.from_counts(COUNT, EVENTS, SCORE), alternative="greater"
    )
    assert table.group.tolist() == [0, 0.25, 0.55, 1]
    middle = slice(1, 3)
    expected = beta.cdf([0.25, 0.55], [22.5, 31.5], [58.5, 29.5])
    assert table.jeffreys_pvalue[middle] == pytest.approx(expected)
    assert table.n.tolist() == [120, 80, 60, 40]


def test_bins_of_samples_are_groups_as_well():
    rng = np.random.default_rng(0)
    scores = rng.random(400)
    labels = rng.random(400) < scores
    bins = BinStatistics.from_predictions(labels, scores, [0, 0.3, 0.6, 1])
    table = calibration_by_group(bins)
    code = np.digitize(scores, [0.3, 0.6], right=True)
    alone = calibration_by_group(labels, scores, code)
    assert table.n.tolist() == alone.n.tolist()
    assert table.bias == pytest.approx(alone.bias)


def test_rows_with_edges_are_bins():
    table = BinStatistics.from_counts(
        [10, 0, 5], [1, 0, 5], [0.1, np.nan, 0.9], [0, 0.3, 0.6, 1]
    )
    assert table.edges.tolist() == [0, 0.3, 0.6, 1]
    assert table.event_frequency == pytest.approx([0.1, 0.45, 1.0])


def test_equal_scores_are_one_bin():
    table = BinStatistics.from_counts([10, 20], [1, 3], [0.2, 0.2])
    assert table.count.tolist() == [30]
    assert table.event_frequency == pytest.approx([4 / 30])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (([10, 20], [0.1, 0.25], [0.1, 0.2]), "events contains rates"),
        (([10, 20], [1.5, 2], [0.1, 0.2]), "events must hold whole numbers"),
        (([10, 20], [1, 21], [0.1, 0.2]), "events is 21 in row 1"),
        (([10, -2], [1, 0], [0.1, 0.2]), "count must hold whole numbers"),
        (([10, 20], [1, 2], [10, 20]), "Divide percentages by 100"),
        (([10, 20], [1, 2], [0.1, np.nan]), "mean_score is nan in row 1"),
        (([10, 20], [1, 2, 3], [0.1, 0.2]), "events has shape"),
        (([], [], []), "one number for each row"),
        (([0], [0], [0.1]), "count is 0 in every row"),
        (([10, 20], [1, 2], [0.1, 0.2], [0, 0.05, 1]), "must lie inside the bin"),
    ],
)
def test_what_is_no_table_is_refused(table, message):
    with pytest.raises(ValueError, match=message):
        BinStatistics.from_counts(*table)
