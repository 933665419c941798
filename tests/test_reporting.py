"""The page on reporting prints what it says it prints."""

import contextlib
import io
import re
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[1] / "doc" / "reporting.md"
_BLOCKS = re.compile(
    r"^```python\n(.*?)^```(?:\n+^```text\n(.*?)^```)?", flags=re.S | re.M
)


def outputs():
    """Yield what each block of the page prints, and what the page says, both without
    line breaks.
    """
    names = {}
    for code, said in _BLOCKS.findall(PAGE.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, PAGE.name, "exec"), names)
        yield printed.getvalue(), said


def test_the_sentences_are_those_that_come_out():
    pyplot = pytest.importorskip("matplotlib.pyplot")  # the page draws once
    found = list(outputs())
    pyplot.close("all")
    assert len(found) == 13
    for printed, said in found:
        assert printed.split() == said.split()


def write():
    """Write what the blocks print into the page, in lines of 120 columns."""
    from textwrap import fill

    found, text = iter(list(outputs())), PAGE.read_text(encoding="utf-8")

    def block(match):
        lines = next(found)[0].rstrip("\n").split("\n")
        lines = [fill(line, 120) if len(line) > 120 else line for line in lines]
        return f"```python\n{match[1]}```\n\n```text\n" + "\n".join(lines) + "\n```"

    PAGE.write_text(_BLOCKS.sub(block, text), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(write())
