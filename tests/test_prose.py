"""The documentation is plain: few sentences are long. ``python tests/test_prose.py`` counts them page by page."""

import re
import sys
from pathlib import Path

DOC = Path(__file__).parents[1] / "doc"
LONG, SHARE = 30, 0.08  # at most this share of the sentences has more words than LONG


def sentences(text):
    """Return the sentences of a page, without code, formulas, tables, headings and directives."""
    text = re.sub(r"^(```|:::)[^\n]*\n.*?^\1[^\n]*$", "\n", text, flags=re.S | re.M)
    text = re.sub(r"\$\$.*?\$\$", "\n", text, flags=re.S)
    text = re.sub(r"^\s*(#|\|).*$", "\n", text, flags=re.M)
    text = re.sub(r"^\s*([-*+>]|\d+\.)\s+", "\n", text, flags=re.M)  # each item of a list is a paragraph
    text = re.sub(r"(\{\w+\})?`[^`]*`|\$[^$]*\$", "code", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    found = []
    for paragraph in re.split(r"\n\s*\n", text):
        words = " ".join(paragraph.split())
        found += [one for one in re.split(r"(?<=[.!?])[)\"*]*\s+(?=[\"(*A-Z0-9]|code)", words) if re.search(r"\w", one)]
    return found


def count(page):
    """Return the number of long sentences and of all sentences of a page."""
    found = sentences(page.read_text(encoding="utf-8"))
    return sum(len(one.split()) > LONG for one in found), len(found)


def test_sentences_are_found():
    text = "# A heading\n\nOne is `a. B`. Two\nis 0.5 long!\n\n| a. | B. |\n\n* Three.\n* Four (five. Six).\n"
    found = sentences(text + "```python\nx = 1. \n```\n")
    assert found == ["One is code.", "Two is 0.5 long!", "Three.", "Four (five.", "Six)."]


def test_few_sentences_are_long():
    counts = {page.name: count(page) for page in DOC.glob("*.md")}
    long, total = map(sum, zip(*counts.values(), strict=True))
    assert total > 500
    assert long / total <= SHARE, sorted(counts.items(), key=lambda one: -one[1][0])


if __name__ == "__main__":
    pages = [Path(name) for name in sys.argv[1:]] or sorted(DOC.glob("*.md"))
    long, total = 0, 0
    for page in pages:
        here, of = count(page)
        long, total = long + here, total + of
        print(f"{page.name:28} {here:4} of {of:5} sentences, {here / max(of, 1):.1%}")
        if len(sys.argv) > 1:
            print(*(f"  {one}" for one in sentences(page.read_text("utf-8")) if len(one.split()) > LONG), sep="\n")
    print(f"{'all':28} {long:4} of {total:5} sentences, {long / total:.1%}")
