"""The benchmarks of the default's price and of few rows per class: what they draw, and
that they print a line.
"""

from argparse import Namespace

import numpy as np
import pytest

from benchmarks import few_rows_per_class
from benchmarks.checks import price

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("n_classes", [2, 4])
def test_rows_to_fit_to_and_others_are_drawn_alike(n_classes):
    scores, y, test_scores, test_y = price.rows_of(2000, n_classes, seed=0)
    assert scores.shape == test_scores.shape == (2000, n_classes)
    np.testing.assert_allclose(scores.sum(axis=1), 1)
    shares = [np.bincount(labels.astype(int)) / 2000 for labels in (y, test_y)]
    np.testing.assert_allclose(*shares, atol=0.06)
    model = price.GivenScores().fit(scores, y)
    assert model.predict_proba(scores) is scores


def test_temperature_scaling_is_right_for_the_simulated_rows():
    """Scores are those of twice the logits that labels are drawn by."""
    scores, y, *_ = few_rows_per_class.simulated(3, 4000, seed=1)
    temperature = few_rows_per_class.TemperatureScaling().fit(scores, y).temperature_
    assert temperature == pytest.approx(2, abs=0.15)


def test_both_print_a_line(capsys):
    price.print_size(300, 3, Namespace(repeats=1, full=True))
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("| 300 | 3 | ")
    assert second.startswith("| | | members that see all rows")
    sizes = ["--classes", "3", "--per-class", "10", "--draws", "1"]
    assert few_rows_per_class.main(sizes) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("| 3 | 10 | auto | 1 |")
