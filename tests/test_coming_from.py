"""The page for users of other libraries gives this library's numbers as they are."""

import re
from pathlib import Path

import pytest
from sklearn import __version__
from sklearn.utils.fixes import parse_version

from benchmarks import coming_from

PAGE = (Path(__file__).parents[1] / "doc" / "coming_from.md").read_text(
    encoding="utf-8"
)


def _answer(question, peer):
    section = PAGE.split(f"| question | skcalib | {peer} ")[1].split("\n\n")[0]
    row = next(
        line for line in section.splitlines() if line.startswith(f"| {question} |")
    )
    return row.split(" | ")[1]


@pytest.mark.parametrize(
    "one", coming_from.DIFFERENCES, ids=lambda one: f"{one.peer}: {one.question}"
)
def test_our_numbers(one):
    assert float(_answer(one.question, one.peer)) == pytest.approx(
        one.ours(), rel=1e-2, abs=2e-4
    )


def test_every_library_has_its_version():
    for peer in {one.peer for one in coming_from.DIFFERENCES}:
        assert re.search(rf"\| question \| skcalib \| {peer} \d+\.\d+", PAGE), peer


@pytest.mark.skipif(
    parse_version(__version__) < parse_version("1.8"),
    reason="no temperature scaling before 1.8",
)
def test_rows_of_the_library_that_is_always_installed(capsys):
    assert coming_from.main(["--only", "scikit-learn", "--markdown"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\n| ") == 1 + sum(
        one.peer == "scikit-learn" for one in coming_from.DIFFERENCES
    )
