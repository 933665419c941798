"""Two quick looks at the input against their plain forms: scores of many columns, and
integer labels.
"""

import numpy as np
import pytest

from skcalib._input.labels import sorted_labels
from skcalib._input.scores import _row_summary


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_counted_labels_are_those_that_sorting_finds(dtype):
    rng, limits = np.random.default_rng(0), np.iinfo(dtype)
    ranges = [
        (0, 9),
        (limits.min, limits.min + 90),
        (limits.max - 90, limits.max),
        (limits.min, limits.max),
    ]
    for low, high in ranges:
        for n in (1, 5, 300):
            y = rng.integers(low, high, n, dtype=dtype, endpoint=True)
            for found, expected in zip(
                sorted_labels(y, "y"), np.unique(y, return_inverse=True), strict=True
            ):
                np.testing.assert_array_equal(found, expected)
            assert sorted_labels(y, "y")[0].dtype == y.dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_summed_and_their_largest_scores_found(dtype, order):
    scores = (
        np.random.default_rng(0).dirichlet(np.ones(700), 300).astype(dtype, order=order)
    )
    scores[5] = 0
    total, predicted, largest = _row_summary(scores, True, True)
    np.testing.assert_allclose(
        total, scores.sum(axis=1, dtype=np.float64), rtol=0, atol=4e-7
    )
    np.testing.assert_array_equal(predicted, scores.argmax(axis=1))
    np.testing.assert_array_equal(largest, scores.max(axis=1))


@pytest.mark.parametrize("predict", [False, True])
@pytest.mark.parametrize(
    "bad",
    [np.nan, -np.nan, np.inf, -np.inf, 1.0000001, -1e-300, -0.0, [np.inf, -np.inf]],
)
def test_one_score_that_is_none_is_seen_wherever_it_stands(bad, predict):
    for row, column in ((0, 0), (150, 3), (299, 5)):
        scores = np.random.default_rng(0).dirichlet(np.ones(7), 300)
        scores[row, column : column + np.size(bad)] = bad
        assert _row_summary(scores, True, predict) is None
