"""Pages, docstrings and messages follow `.github/style.md`; code fits into its box."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
from _catalog import every

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


@every("page", PAGES)
def test_words_of_pages(page):
    assert found_in(page.read_text("utf-8")) == []


@pytest.mark.slow
def test_words_of_docstrings_messages_and_examples():
    wrong = {}
    for folder in (ROOT / "skcalib", DOC / "gallery", DOC / "examples"):
        for path in sorted(folder.rglob("*.py")):
            if found := found_in("\n\n".join(texts_of_code(path))):
                wrong[path.relative_to(ROOT).as_posix()] = found
    assert not wrong


@every("page", PAGES)
def test_code_has_at_most_88_columns(page):
    blocks = re.findall(
        r"^ *```(?:python|pycon)\n(.*?)^ *```", page.read_text("utf-8"), re.S | re.M
    )
    long = [line for block in blocks for line in block.splitlines() if len(line) > 88]
    assert long == []


# --- One word for one thing -----------------------------------------------------------

# Samples with one value of a named column, or found by a search, are a *group*.
# *Pooled* is what all groups, classes or clusters give together.
_OTHER_WORDS = re.compile(
    r"(?<!-)\b(segments?|slices?)\b"
    r"|\bpool(s|ed|ing)? (the |their |several |all )?"
    r"(predictions|probabilities|forecasts|classifiers|models|scores)\b"
    r"|\b(predictions|probabilities|forecasts|classifiers|scores) are (first )?pooled",
    re.I,
)
# Their strings are code, names of sentences, or name a key of a document.
_NO_PROSE = {
    "_report/_advice_code.py",
    "_report/_claims.py",
    "_report/_code.py",
    "evaluation/_advice_code.py",
    "export/_json.py",
}


def other_words(text):
    """Return the words for a group that prose has, outside code and names."""
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.S | re.M)
    text = re.sub(r"``[^`]*``|`[^`]*`|\{[^{}]*\}|\]\([^)]*\)", "", text)
    text = re.sub(r"^ *(>>>|\.\.\.) .*$|^ *[\w, ]+ : .*$", "", text, flags=re.M)
    return [one[0] for one in _OTHER_WORDS.finditer(" ".join(text.split()))]


def public_docstrings():
    """Yield the name and the docstring of each public object and its public methods."""
    modules = ["", "binning", "metrics", "evaluation", "decisions", "monitoring"]
    modules += ["export", "engines", "displays", "guarantees", "simulation", "maps"]
    for module in modules:
        package = import_module(f"skcalib.{module}".rstrip("."))
        for name in package.__all__:
            public = getattr(package, name)
            yield name, inspect.getdoc(public) or ""
            for key, member in vars(public).items() if inspect.isclass(public) else ():
                if not key.startswith("_") and callable(member):
                    yield f"{name}.{key}", inspect.getdoc(member) or ""


def test_other_words_are_found():
    assert other_words("The worst `segment`; [a segment](segments.md), ```x```.") == [
        "segment"
    ]
    assert other_words("It pools their probabilities.") == ["pools their probabilities"]
    assert other_words("Two slices, and the pooled map.") == ["slices"]


@every("page", PAGES)
def test_groups_have_one_word_on_pages(page):
    assert other_words(page.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "path", sorted((DOC / "gallery").glob("*.py")), ids=lambda path: path.stem
)
def test_groups_have_one_word_in_examples(path):
    """In the title, and in the comments between the steps."""
    text = path.read_text("utf-8")
    comments = re.findall(r"^# (.*)$", text, flags=re.M)
    assert other_words(" ".join([ast.get_docstring(ast.parse(text)), *comments])) == []


def test_groups_have_one_word_in_docstrings():
    found = {name: other_words(text) for name, text in public_docstrings()}
    assert len(found) > 250
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.slow
def test_groups_have_one_word_in_messages():
    """What is printed: strings with a full stop or a comma that are no docstrings."""
    wrong = {}
    for path in sorted((ROOT / "skcalib").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        docstrings = {
            ast.get_docstring(node, clean=False)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        }
        texts = [
            text
            for text in texts_of_code(path)
            if text not in docstrings and " " in text and re.search("[.,:]", text)
        ]
        name = path.relative_to(ROOT / "skcalib").as_posix()
        if name not in _NO_PROSE and (found := other_words(" ".join(texts))):
            wrong[name] = found
    assert not wrong


def test_groups_have_one_word_in_reports():
    from skcalib._report._claims import CLAIMS

    found = {name: other_words(text) for name, text in CLAIMS.items()}
    assert {name: words for name, words in found.items() if words} == {}
    template = (ROOT / "skcalib/_report/page.html.jinja").read_text("utf-8")
    shown = re.sub(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<[^>]*>", "", template, flags=re.S)
    assert other_words(shown) == []
