"""The decision table's columns for more than ten classes are what was measured."""

from pathlib import Path

import pytest

from benchmarks import decision_table

PAGE = Path(__file__).parents[1] / "doc" / "shared" / "decision_table.md"
FOUND = decision_table.read(decision_table.RESULTS.read_text("utf-8"))
ROWS = {
    40: "below 50",
    150: "50 to 250",
    500: "250 to 1,000",
    2500: "1,000 to 10,000",
    6000: "more than 10,000",
}


@pytest.mark.parametrize(("column", "size"), FOUND)
def test_the_page_names_what_was_measured(column, size):
    lines = [line[2:-2].split(" | ") for line in PAGE.read_text("utf-8").splitlines()]
    head = next(line for line in lines if line[0] == "calibration samples")
    (row,) = (line for line in lines if line[0] == ROWS[size])
    named = row[head.index(f"{column} classes")].strip("`")
    assert named in decision_table.answers(FOUND[column, size])


def test_gains_that_are_small_or_not_safe_leave_temperature_scaling():
    stack, vector = "StackedRecalibrator()", "VectorScaling()"
    answers = decision_table.answers
    assert answers({stack: (0.95, 1.03)}) == ["TemperatureScaling()"]
    assert answers({stack: (0.992, 1.0)}) == ["TemperatureScaling()"]
    assert answers({stack: (0.95, 1.0), vector: (0.96, 1.0)}) == [stack]
    assert answers({stack: (0.95, 1.0), vector: (0.953, 1.0)}) == [stack, vector]


def test_what_is_printed_is_read():
    text = "\n11 to 100 classes, 40 samples\n  A(b=1)     0.990  worst  1.100\n"
    assert decision_table.read(text) == {("11 to 100", 40): {"A(b=1)": (0.99, 1.1)}}
