"""The report in a real browser, headless Chromium: nothing fails to load, nothing
scrolls sideways.
"""

from pathlib import Path

import numpy as np
import pytest
from _browser import absent, set_width

from skcalib.__main__ import main


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report with all of its sections, long names and numbers included."""
    if absent() is not None:
        return None
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    scores = rng.random(400).round(4)
    y = rng.random(400) < scores**1.5
    names = [
        "a segment with quite a long name of many words",
        "averyveryverylongsegmentnamewithoutanyspaceinit",
        "c",
    ]
    segments = np.array(names)[rng.integers(3, size=400)]
    lines = [
        f"{int(event)},{s},{round(s**1.5, 4)},{name}"
        for event, s, name in zip(y, scores, segments, strict=True)
    ]
    (folder / "data.csv").write_text(
        "\n".join(["y,p,a_score_with_a_long_name,s", *lines]), encoding="utf-8"
    )
    output = folder / "report.html"
    scored = ["--score", "p", "--score", "a_score_with_a_long_name"]
    assert (
        main(
            [
                "report",
                str(folder / "data.csv"),
                "--label",
                "y",
                *scored,
                "--segment",
                "s",
                "-o",
                str(output),
            ]
        )
        == 0
    )
    return output


@pytest.mark.slow
@pytest.mark.parametrize("width", [380, 1280])
def test_report_in_a_browser(browser, page, width):
    set_width(browser, width)
    browser.get(Path(page).as_uri())

    assert browser.execute_script("return window.innerWidth") == width
    assert [
        entry for entry in browser.get_log("browser") if entry["level"] != "INFO"
    ] == []
    scrolled, visible = browser.execute_script(
        "window.scrollTo(10000, 0); return [document.documentElement.scrollWidth,"
        " document.documentElement.clientWidth]"
    )
    assert scrolled <= visible
    assert browser.execute_script("return window.scrollX") == 0

    pictures = browser.find_elements("tag name", "img")
    assert len(pictures) == 1
    for picture in pictures:
        assert len(picture.get_attribute("alt")) > 40
        complete, natural_width, natural_height, shown_width, shown_height = (
            browser.execute_script(
                "const i = arguments[0]; return [i.complete, i.naturalWidth,"
                " i.naturalHeight, i.width, i.height]",
                picture,
            )
        )
        assert complete
        assert min(natural_width, natural_height) > 300
        assert shown_width <= visible
        assert shown_width / shown_height == pytest.approx(
            natural_width / natural_height, rel=0.01
        )
    loaded = browser.execute_script(
        "return performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    assert all(name.startswith("data:") for name in loaded)


@pytest.fixture(scope="module")
def page_of_classes(tmp_path_factory):
    """A report of four classes over three months."""
    folder = tmp_path_factory.mktemp("classes")
    rng = np.random.default_rng(0)
    names = ["bird", "a class with a long name", "cat", "dog"]
    scores = rng.dirichlet(np.ones(4), 300).round(4)
    labels = [names[rng.choice(4, p=row / row.sum())] for row in scores]
    month = rng.integers(1, 4, 300)
    lines = [
        ",".join(map(str, [label, *row, m]))
        for label, row, m in zip(labels, scores, month, strict=True)
    ]
    header = ",".join(["y", *(f"p_{name}" for name in names), "month"])
    (folder / "data.csv").write_text("\n".join([header, *lines]), encoding="utf-8")
    output = folder / "report.html"
    command = [
        "report",
        str(folder / "data.csv"),
        "--label",
        "y",
        "--score",
        "p_*",
        "--time",
        "month",
    ]
    assert main([*command, "-o", str(output)]) == 0
    return output


@pytest.mark.slow
@pytest.mark.parametrize("width", [380, 1280])
def test_report_of_classes_in_a_browser(browser, page_of_classes, width):
    set_width(browser, width)
    browser.get(page_of_classes.as_uri())
    scrolled, visible = browser.execute_script(
        "return [document.documentElement.scrollWidth,"
        " document.documentElement.clientWidth]"
    )
    assert scrolled <= visible
    assert len(browser.find_elements("css selector", ".grid img")) == 4
    # a table that is cut says how to see the rest
    for box in browser.find_elements("class name", "scroll"):
        whole, shown = browser.execute_script(
            "return [arguments[0].scrollWidth, arguments[0].clientWidth]", box
        )
        assert whole <= shown or (width == 380 and "wide" in box.get_attribute("class"))


@pytest.mark.slow
def test_report_prints_on_a_few_pages(browser, page):
    from base64 import b64decode

    browser.get(Path(page).as_uri())
    printed = b64decode(browser.print_page())
    assert printed.startswith(b"%PDF")
    assert 2 <= printed.count(b"/Type /Page\n") <= 8
