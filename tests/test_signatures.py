"""Public signatures change on purpose only: names, order, kinds and defaults of all
parameters are those of ``tests/data/signatures.txt``.
"""

import inspect

import pytest
from _signatures import (
    differences,
    found_signatures,
    parameter_lines,
    public_callables,
    stored_signatures,
)

COMMAND = "`python tests/_signatures.py` writes tests/data/signatures.txt anew"


def test_signatures_are_those_of_the_file():
    stored = stored_signatures()
    # A name that is new has no entry yet: test_registry.py asks for one.
    found = {
        path: lines for path, lines in found_signatures().items() if path in stored
    }
    breaking, added = differences(stored, found)
    assert not breaking, f"mend them, or: {COMMAND}, and the changelog names each"
    assert not added, COMMAND


def test_everything_public_is_held():
    paths = public_callables()
    assert "skcalib.PlattScaling" in paths
    assert "skcalib.PlattScaling.fit" in paths
    assert "skcalib.recalibrators.BinaryRecalibrator.predict_proba" in paths
    assert "skcalib.metrics.calibration_error" in paths
    assert "skcalib.metrics.BinStatistics.from_predictions" in paths
    # what scikit-learn defines is scikit-learn's to change
    assert "skcalib.PlattScaling.score" not in paths


def test_lines_show_names_order_kinds_and_defaults():
    def function(first, /, second, third=1, *, fourth, fifth=None, **others):
        """Each kind of parameter."""

    assert parameter_lines(function) == [
        "first (required)",
        "/",
        "second (required)",
        "third = 1",
        "*",
        "fourth (required)",
        "fifth = None",
        "**others",
    ]


def before(scores, base=10, *, weight=None): ...


def with_keyword(scores, base=10, *, weight=None, level=0.9): ...


def with_last_position(scores, base=10, more=1, *, weight=None): ...


def with_other_default(scores, base=15, *, weight=None): ...


def with_other_name(scores, binning=10, *, weight=None): ...


def with_other_order(base, scores, *, weight=None): ...


def with_other_kind(scores, *, base=10, weight=None): ...


def with_position_between(scores, more=1, base=10, *, weight=None): ...


def with_required_keyword(scores, base=10, *, more, weight=None): ...


def without_parameter(scores, *, weight=None): ...


@pytest.mark.parametrize(
    ("after", "is_breaking"),
    [
        (before, False),
        (with_keyword, False),
        (with_last_position, False),
        (with_other_default, True),
        (with_other_name, True),
        (with_other_order, True),
        (with_other_kind, True),
        (with_position_between, True),
        (with_required_keyword, True),
        (without_parameter, True),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_breaks_the_code_of_users_is_named(after, is_breaking):
    stored = {"before": parameter_lines(before)}
    breaking, added = differences(stored, {"before": parameter_lines(after)})
    assert bool(breaking) == is_breaking
    new_names = set(inspect.signature(after).parameters)
    if not is_breaking and new_names > set(inspect.signature(before).parameters):
        assert added


def test_a_name_that_goes_breaks_and_a_new_one_does_not():
    assert differences({"old": []}, {}) == (["old is gone"], [])
    assert differences({}, {"new": []}) == ([], ["new is new"])
