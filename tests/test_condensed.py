"""Condensed rows: the sums of the rows, by plain loops."""

import numpy as np
import pytest

from skcalib._rows.blocks import condensed


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_by_label_and_cell_are_kept(weighted):
    rng = np.random.default_rng(0)
    z, labels = rng.normal(0, 3, 5_000), rng.random(5_000) < 0.3
    weight = rng.random(5_000) + 0.5 if weighted else None
    few, few_labels, few_weight = condensed(
        z, labels, weight, fewest_rows=1_000, most_cells=64
    )
    assert len(few) <= 128
    of_row = np.ones(5_000) if weight is None else weight
    for label in (False, True):
        np.testing.assert_allclose(
            few_weight[few_labels == label].sum(), of_row[labels == label].sum()
        )
        own = few_labels == label
        np.testing.assert_allclose(
            few[own] @ few_weight[own], z[labels == label] @ of_row[labels == label]
        )
    # A plain loop over the rows: each goes to the cell of its position between the
    # ends.
    width, sums = (z.max() - z.min()) / 63.5, {}
    for value, label, one in zip(z, labels, of_row, strict=True):
        cell = int((value - z.min()) / width), bool(label)
        total, moment = sums.get(cell, (0.0, 0.0))
        sums[cell] = total + one, moment + one * value
    expected = sorted((moment / total, total) for total, moment in sums.values())
    np.testing.assert_allclose(sorted(zip(few, few_weight, strict=True)), expected)


def test_few_rows_and_wide_log_odds_stay_as_they_are():
    z, labels = np.linspace(-1, 1, 1_000), np.arange(1_000) % 2 == 0
    assert condensed(z, labels, None)[0] is z
    wide = np.linspace(-50, 50, 100_000)
    assert condensed(wide, np.arange(100_000) % 2 == 0, None)[0] is wide


def test_one_score_makes_a_row_for_each_label():
    few, labels, weight = condensed(
        np.full(40_000, 0.5), np.arange(40_000) < 10_000, None
    )
    assert few.tolist() == [0.5, 0.5]
    assert (labels.tolist(), weight.tolist()) == ([False, True], [30_000, 10_000])
