"""The built site in headless Chromium: its pages at three widths, and its search.

It is the folder that the environment variable ``SKCALIB_SITE`` names, or what
``python -m sphinx -W -b html doc doc/_build`` built last.
"""

import os
import runpy
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlencode

import pytest
from _browser import set_width

DOC = Path(__file__).parents[1] / "doc"
BUILT = Path(os.environ.get("SKCALIB_SITE", DOC / "_build"))
WORDS = runpy.run_path(str(DOC / "extensions" / "find_words.py"))["WORDS"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "SKCALIB_SITE" not in os.environ and not (BUILT / "index.html").exists(),
        reason="The site is not built: doc/_build.",
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
  mute: [...article.querySelectorAll('img')].filter(i => !i.alt).map(i => i.src),
};
"""  # noqa: E501


def _pages():
    assert (BUILT / "index.html").exists(), f"no site in {BUILT}"
    found = sorted(
        path
        for path in BUILT.rglob("*.html")
        if not path.relative_to(BUILT).parts[0].startswith(_NO_PAGE)
    )
    return [path for path in found if "bd-article" in path.read_text("utf-8")]


def faults(browser):
    """Return what is wrong with the page that is open at the width that is set."""
    seen = browser.execute_script(_MEASURE)
    found = [f"cut: {one}" for one in seen["cut"]] + [
        f"missing: {one}" for one in seen["missing"]
    ]
    found += [f"without words: {one}" for one in seen["mute"]]
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
    browser.get(path.as_uri())
    found = faults(browser)
    assert found[0].startswith("cut:")
    for words in ("sideways", "headings", "narrow", "missing", "without words"):
        assert any(words in one for one in found)


def _block(browser, *addresses):
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": addresses})


@pytest.mark.parametrize("part", range(4))  # so that workers share the pages
def test_pages_fit(browser, part, request):
    """The icons and the search, which take a third of the time, stand in the frame that
    pages share: the first page of each part has them.
    """
    found = {}
    request.addfinalizer(partial(_block, browser))
    for number, path in enumerate(_pages()[part::4]):
        if number == 1:
            _block(browser, "*fontawesome*", "*search*")
        browser.get(path.as_uri())
        # the pages of the API reference are alike, and tightest on a telephone
        is_reference = "_generated" in path.parts
        for width in (390,) if is_reference else (390, 768, 1280):
            set_width(browser, width)
            if wrong := faults(browser):
                found[path.relative_to(BUILT).as_posix(), width] = wrong
    assert not found


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Write nothing about requests."""


@pytest.fixture(scope="module")
def address():
    """Serve the site and return its address."""
    handler = partial(_Quiet, directory=str(BUILT))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


# What the search of the site does with words, all of them on one load of its page.
_SEARCH = """
return arguments[0].map(word => {
  const [query, terms, excluded, highlight, objects] = Search._parseQuery(word);
  const found = Search._performSearch(query, terms, excluded, highlight, objects);
  return found.map(result => result[0]).reverse();
});
"""


@pytest.fixture(scope="module")
def search(browser, address):
    """Open the search page and return a function from words to the names of the pages
    that it finds for each, the first one first.
    """
    browser.get(f"{address}/search.html")
    _wait(browser, "typeof Search !== 'undefined' && Search._index !== null")
    return lambda words: browser.execute_script(_SEARCH, words)


def _wait(browser, condition):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 60, poll_frequency=0.1).until(
        lambda driver: driver.execute_script(f"return {condition}")
    )


def test_every_word_finds_its_page_first(search):
    words = [word for page in WORDS for word in WORDS[page]]
    pages = [page for page in WORDS for _ in WORDS[page]]
    found = search(words)
    missed = [
        f"{word}: {page} is not before {results[:2]}"
        for word, page, results in zip(words, pages, found, strict=True)
        if results[:1] != [page]
    ]
    assert missed == []


def test_a_word_that_no_page_has_finds_nothing(search):
    assert search(["qwertyuiop"]) == [[]]


@pytest.mark.parametrize("word", ["XGBoost", "callibration", "temprature scaling"])
def test_a_reader_sees_what_the_search_finds(browser, address, search, word):
    first, *_ = search([word])[0]
    browser.get(f"{address}/search.html?{urlencode({'q': word})}")
    entries = "document.querySelectorAll('#search-results ul.search > li')"
    _wait(browser, f"{entries}.length > 0")
    link = browser.execute_script(f"return {entries}[0].querySelector('a').href")
    assert link.split("?")[0].split("#")[0] == f"{address}/{first}.html"
