"""The documentation is plain: few sentences are long. ``python tests/test_prose.py``
counts them page by page.
"""

import re
import sys
from pathlib import Path

DOC = Path(__file__).parents[1] / "doc"
PAGES = [
    *sorted(DOC.glob("*.md")),
    DOC.parent / "README.md",
    DOC.parent / "CONTRIBUTING.md",
]
LONG, SHARE = 30, 0.01  # at most this share of the sentences has more words than LONG
# Phrases that only those understand who know the answer, and metaphors for mechanisms.
RIDDLES = [
    r"\b(rows|nats|points|weights?|cost|bytes) an? (bin|class|method|segment|group)\b",
    r"\blikeliest\b",
    r"\bthat are none\b",
    r"\bof before\b",
    r"\bonce as none\b",
    r"\b(bets?|stakes?|betting)\b",
    r"\bpays?\b",
    r"\bbuys?\b",
    r"\bsure of (itself|themselves)\b",
]


def sentences(text):
    """Return the sentences of a page, without code, formulas, tables, lists of names,
    headings and directives.
    """
    text = re.sub(r"^ *```[^\n]*\n.*?^ *```$", "\n", text, flags=re.S | re.M)
    # fences, options, HTML, targets
    text = re.sub(r"^(:::|:[a-z-]+:|<|\().*$", "\n", text, flags=re.M)
    text = re.sub(r"\$\$.*?\$\$", "\n", text, flags=re.S)
    text = re.sub(r"^\s*(#|\|).*$", "\n", text, flags=re.M)
    # each item of a list is a paragraph
    text = re.sub(r"^\s*([-*+>]|\d+\.)\s+", "\n", text, flags=re.M)
    text = re.sub(r"(\{\w+\})?`[^`]*`|\$[^$]*\$", "code", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    found = []
    for paragraph in re.split(r"\n\s*\n", text):
        words = " ".join(paragraph.split())
        found += [
            one
            for one in re.split(r"(?<=[.!?])[)\"*]*\s+(?=[\"(*A-Z0-9]|code)", words)
            if re.search(r"\w", one)
        ]
    return [
        one
        for one in found
        if re.search(r"[a-z]{2}", re.sub(r"\b(code|and|or)\b", "", one))
    ]


def count(page):
    """Return the number of long sentences and of all sentences of a page."""
    found = sentences(page.read_text(encoding="utf-8"))
    return sum(len(one.split()) > LONG for one in found), len(found)


def test_sentences_are_found():
    text = (
        "# A heading\n\nOne is `a. B`. Two\nis 0.5 long!\n\n| a. | B. |\n\n* Three.\n*"
        " Four (five. Six).\n* `A`, `B`\n"
    )
    text += (
        ":::{card} A. b.\n:link: c."
        " d.\n\nSeven.\n:::\n<details><summary>Ten.</summary>\n\n  ```text\nNo. No.\n "
        " ```\n"
    )
    found = sentences(text + "```python\nx = 1. \n```\n")
    assert found == [
        "One is code.",
        "Two is 0.5 long!",
        "Three.",
        "Four (five.",
        "Six).",
        "Seven.",
    ]


def test_a_long_sentence_is_counted(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Word " + "word " * 29 + "end. Word " + "word " * 28 + "end.")
    assert count(page) == (1, 2)


def test_few_sentences_are_long():
    counts = {page.name: count(page) for page in PAGES}
    long, total = map(sum, zip(*counts.values(), strict=True))
    assert total > 1000
    assert long / total <= SHARE, sorted(counts.items(), key=lambda one: -one[1][0])


def test_the_guide_is_short():
    """Pages and words, code included, outside ``doc/evidence``."""
    texts = [page.read_text("utf-8") for page in DOC.glob("*.md")]
    words = [word for text in texts for word in text.split() if re.search(r"\w", word)]
    assert len(texts) <= 26
    assert len(words) <= 30_000


def test_no_line_is_a_comment():
    """MyST leaves out lines that begin with a percent sign."""
    pages = [*PAGES, *(DOC / "evidence").glob("*.md")]
    found = [
        (page.name, number)
        for page in pages
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1)
        if line.lstrip().startswith("%")
    ]
    assert not found


def test_no_riddles():
    found = [
        (page.name, sentence)
        for page in PAGES
        for sentence in sentences(page.read_text("utf-8"))
        if re.search("|".join(RIDDLES), sentence)
    ]
    assert not found


if __name__ == "__main__":
    pages = [Path(name) for name in sys.argv[1:]] or sorted(DOC.glob("*.md"))
    long, total = 0, 0
    for page in pages:
        here, of = count(page)
        long, total = long + here, total + of
        print(f"{page.name:28} {here:4} of {of:5} sentences, {here / max(of, 1):.1%}")
        if len(sys.argv) > 1:
            print(
                *(
                    f"  {one}"
                    for one in sentences(page.read_text("utf-8"))
                    if len(one.split()) > LONG
                ),
                sep="\n",
            )
    print(f"{'all':28} {long:4} of {total:5} sentences, {long / total:.1%}")
