"""Words that readers type lead to a page, and pages exist as Markdown for programs."""

import runpy
from pathlib import Path

DOC = Path(__file__).parents[1] / "doc"
WORDS = runpy.run_path(str(DOC / "extensions" / "find_words.py"))["WORDS"]
PLAIN = runpy.run_path(str(DOC / "extensions" / "plain_pages.py"))


def test_at_least_sixty_words_lead_to_one_page_each():
    words = [word.lower() for page in WORDS.values() for word in page]
    assert len(words) >= 60
    assert len(set(words)) == len(words)
    assert all((DOC / f"{page}.md").exists() for page in WORDS)
    asked = "XGBoost CatBoost LightGBM Keras oversampling GPU debiased callibration"
    of_fields = "normalised entropy,calibration ratio,central tendency,belt"
    assert {*of_fields.split(","), "traffic light", "pit"} <= set(words)
    assert set(asked.lower().split()) | {"overconfident", "platt"} <= set(words)


def test_the_first_sentence_is_plain():
    text = "# Title\n\n```python\nx = 1\n```\n\n**Use `a`.** See {doc}`scores`. More.\n"
    assert PLAIN["first_sentence"](text) == "Use `a`."
    linked = "# T\n\nIt is [here](x.md) now.\n"
    assert PLAIN["first_sentence"](linked) == "It is here now."


def test_plain_pages_have_what_they_include():
    page = (DOC / "many_classes.md").read_text("utf-8")
    text = PLAIN["with_includes"](page, DOC)
    assert "{include}" in page
    assert "{include}" not in text
    assert "| calibration samples | 2 classes |" in text


def test_the_listing_has_every_page_with_a_sentence():
    pages = sorted(path.stem for path in DOC.glob("*.md"))
    lines = PLAIN["listing"](DOC, "https://example.org", pages).splitlines()
    entries = [line for line in lines if line.startswith("- [")]
    assert len(entries) == len(pages)
    short = [entry for entry in entries if len(entry.split("): ")[-1].split()) < 4]
    assert short == []
