"""The site that ``python -m sphinx -W -b html doc doc/_build`` built last, in headless
Chromium at three widths.
"""

import runpy
from pathlib import Path
from urllib.parse import urlencode

import pytest
from _browser import set_width

DOC = Path(__file__).parents[1] / "doc"
BUILT = DOC / "_build"
WORDS = runpy.run_path(str(DOC / "extensions" / "find_words.py"))["WORDS"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (BUILT / "index.html").exists(), reason="The site is not built: doc/_build."
    ),
]
_NO_PAGE = (
    "genindex",
    "search",
    "py-modindex",
    "_downloads",
    "_static",
    "_modules",
    "_sources",
)
# What is wider than its box and does not scroll in it, and the sizes of headings.
_MEASURE = """
const article = document.querySelector('.bd-article');
const cut = [...article.querySelectorAll('pre, table, img, svg, .formula, h1, h2, h3, p, li, dt')].filter(one => {
  const box = one.getBoundingClientRect();
  if (box.width === 0 || one.closest('details:not([open])')) return false;
  const scrolls = box => ['auto', 'scroll'].includes(getComputedStyle(box).overflowX);
  let scroller = one;
  while (scroller && !scrolls(scroller)) scroller = scroller.parentElement;
  if (one.tagName === 'PRE' && window.innerWidth < 600) return one.scrollWidth > one.clientWidth + 1;
  return !(scroller && article.contains(scroller)) && box.right > document.documentElement.clientWidth + 1;
}).map(one => one.tagName + ': ' + one.textContent.trim().slice(0, 60));
const points = heading => parseFloat(getComputedStyle(heading).fontSize);
const size = tag => Math.max(0, ...[...article.querySelectorAll(tag)].map(points));
return {
  crushed: [...article.querySelectorAll('td, th')].filter(
    cell => cell.textContent.trim().length > 15 && cell.clientWidth > 0 && cell.clientWidth < 50).length,
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  cut: cut, h1: size('h1'), h2: size('h2'), h3: size('h3'),
  missing: [...article.querySelectorAll('img')].filter(i => i.complete && i.naturalWidth === 0).map(i => i.src),
};
"""  # noqa: E501


def _pages():
    found = sorted(
        path
        for path in BUILT.rglob("*.html")
        if not path.relative_to(BUILT).parts[0].startswith(_NO_PAGE)
    )
    return [path for path in found if "bd-article" in path.read_text("utf-8")]


def faults(browser, path):
    """Return what is wrong with a page at the width that is set."""
    browser.get(path.as_uri())
    seen = browser.execute_script(_MEASURE)
    found = [f"cut: {one}" for one in seen["cut"]] + [
        f"missing: {one}" for one in seen["missing"]
    ]
    found += (
        [f"{seen['overflow']} pixels to scroll sideways"]
        if seen["overflow"] > 0
        else []
    )
    found += (
        [f"{seen['crushed']} cells too narrow for their words"]
        if seen["crushed"]
        else []
    )
    sizes = [seen[tag] for tag in ("h1", "h2", "h3") if seen[tag]]
    found += (
        [f"headings of {sizes} pixels"] if sizes != sorted(sizes, reverse=True) else []
    )
    return found


def test_faults_are_found(browser, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(
        '<body><div class="bd-article"><h1 style="font-size:'
        f' 10px">a</h1><h2>b</h2><pre style="white-space: pre">{"x" * 300}</pre><img'
        ' src="lost.png"><table><td style="overflow-wrap: anywhere; width: 1px;'
        ' display: block">seventeen letters</td></table></div></body>'
    )
    set_width(browser, 390)
    assert [one.split(":")[0].split(" ")[0] for one in faults(browser, path)][
        0
    ] == "cut"
    assert any("sideways" in one for one in faults(browser, path))
    assert any("headings" in one for one in faults(browser, path))
    assert any("narrow" in one for one in faults(browser, path))
    assert any("missing" in one for one in faults(browser, path))


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_pages_fit(browser, width):
    set_width(browser, width)
    found = {}
    for path in _pages():
        if wrong := faults(browser, path):
            found[path.relative_to(BUILT).as_posix()] = wrong
    assert not found


def found_first(browser, word):
    """Return the page that the search shows first."""
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"{(BUILT / 'search.html').as_uri()}?{urlencode({'q': word})}")
    first = "#search-results ul.search li a"
    WebDriverWait(browser, 30).until(
        lambda driver: driver.find_elements("css selector", first)
    )
    return (
        browser.find_element("css selector", first)
        .get_attribute("href")
        .split("?")[0]
        .split("#")[0]
    )


@pytest.mark.parametrize("page", WORDS)
def test_the_search_finds_the_page_first(browser, page):
    set_width(browser, 1280)
    found = {
        word: found_first(browser, word).rpartition("/")[2] for word in WORDS[page]
    }
    assert found == dict.fromkeys(WORDS[page], f"{page}.html")
