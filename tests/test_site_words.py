"""Words that readers type lead to a page, and pages exist as Markdown for programs."""

import re
import runpy
from pathlib import Path

DOC = Path(__file__).parents[1] / "doc"
WORDS = runpy.run_path(str(DOC / "extensions" / "find_words.py"))["WORDS"]
BREAKS = runpy.run_path(str(DOC / "extensions" / "break_names.py"))
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


def test_names_may_be_broken_after_underscores():
    html = '<a href="a_b"><code><span class="pre">a_b</span></code></a> c_d'
    assert BREAKS["with_breaks"](html) == html.replace(">a_b<", ">a_<wbr>b<")


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


# What a reader who knows scikit-learn asks, and what the page that answers it says.
QUESTIONS = {
    "wrap an unfitted classifier": ("which_recalibrator", "RecalibratedClassifierCV("),
    "calibrate a fitted model (cv='prefit')": ("which_recalibrator", "Recalibrator()"),
    "choose between sigmoid and isotonic": ("which_recalibrator", "Avoid isotonic"),
    "get the ECE of a paper": ("which_error", "expected_calibration_error"),
    "test whether the error is noise": ("which_error", "calibration_test"),
    "compare two models": ("which_error", "paired differences"),
    "draw a calibration curve with error bars": ("displays", "Clopper-Pearson"),
    "use an error as scoring= of a search": ("pipelines", "get_scorer"),
    "keep the samples of a patient in one fold": ("pipelines", "GroupKFold"),
    "pass sample_weight through a pipeline": ("pipelines", "metadata routing"),
    "say which string label is the event": ("pipelines", "pos_label="),
    "calibrate ten classes": ("many_classes", "multiclass="),
    "calibrate the logits of a network": ("neural_networks", 'input="logit"'),
    "calibrate XGBoost with early stopping": ("boosted_trees", "eval_set"),
    "undo SMOTE or class_weight": ("class_imbalance", "PriorShift"),
    "have a map for each country": ("which_recalibrator", "GroupwiseRecalibrator"),
    "act above the right threshold": ("which_threshold", "ExpectedCostClassifier"),
    "see drift in production": ("after_release", "CalibrationMonitor"),
    "run the calibrated model in SQL or ONNX": ("deploying", "to_sql"),
    "make a report from a CSV file": ("reporting", "python -m skcalib report"),
    "know how many samples a validation needs": ("reporting", "validation_sample_size"),
    "install what figures need": ("getting_started", "pip install"),
    "write a recalibrator": ("contributing", "_fit_binary"),
    "replace CalibratedClassifierCV": ("coming_from", "RecalibratedClassifierCV("),
}


def _links_of(page):
    """Return the pages that a click on a page leads to: links, cards, and the bar at
    the top of each page, the contents of the first page.
    """
    text, first = ((DOC / f"{one}.md").read_text("utf-8") for one in (page, "index"))
    linked = set(re.findall(r"\((\w+)\.md[)#]|\{doc\}`(\w+)`|:link: (\w+)", text))
    bar = set(first.split(":hidden:")[1].split())
    return {name for found in linked for name in found if name} | bar


def test_questions_are_answered_within_two_clicks():
    clicks = {"index": 0}
    for number in (1, 2):
        for page in [one for one in clicks if (DOC / f"{one}.md").exists()]:
            for linked in _links_of(page):
                clicks.setdefault(linked, number)
    assert clicks["reporting"] == 1
    assert clicks["displays"] == 2
    for question, (page, words) in QUESTIONS.items():
        assert clicks.get(page, 3) <= 2, question
        assert words in (DOC / f"{page}.md").read_text("utf-8"), question
