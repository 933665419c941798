"""Pages, docstrings and messages follow `.github/style.md`; code fits into its box."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOC = ROOT / "doc"
STYLE = ROOT / ".github" / "style.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOC.glob("*.md"))]


def avoided():
    """Return the expressions of the table of words to avoid."""
    section = STYLE.read_text("utf-8").split("## Words to avoid")[1].split("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, flags=re.M)


def found_in(text):
    """Return the expressions to avoid that a text contains, across line breaks."""
    words = " ".join(text.split()).lower()
    return [one for one in avoided() if re.search(rf"\b{one.lower()}\b", words)]


def texts_of_code(path):
    """Yield the strings of a file: docstrings, messages, and parts of f-strings."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = [one.value for one in node.values if isinstance(one, ast.Constant)]
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_expressions_are_found():
    assert len(avoided()) >= 10
    assert found_in("With 20 rows\na class, so  you should stop.") == [
        "rows a class",
        "So you should",
    ]
    assert found_in("Rows per class. `always out`.") == []


def test_code_is_read(tmp_path):
    path = tmp_path / "code.py"
    path.write_text('"""One."""\nprint(f"two {1} rows a class")\n')
    assert {"One.", "two  rows a class"} <= set(texts_of_code(path))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_words_of_pages(page):
    assert found_in(page.read_text("utf-8")) == []


def test_words_of_docstrings_messages_and_examples():
    wrong = {}
    for folder in (ROOT / "skcalib", DOC / "gallery", DOC / "examples"):
        for path in sorted(folder.rglob("*.py")):
            if found := found_in("\n\n".join(texts_of_code(path))):
                wrong[path.relative_to(ROOT).as_posix()] = found
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_has_at_most_88_columns(page):
    blocks = re.findall(
        r"^ *```(?:python|pycon)\n(.*?)^ *```", page.read_text("utf-8"), re.S | re.M
    )
    long = [line for block in blocks for line in block.splitlines() if len(line) > 88]
    assert long == []
