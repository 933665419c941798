"""The documentation holds together: its code runs, its links lead somewhere, its
pictures are made by code.
"""

import re
import runpy
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import sklearn
from _catalog import every
from sklearn.utils.fixes import parse_version

from skcalib._guide import see
from skcalib._install import install

ROOT = Path(__file__).parents[1]
DOC = ROOT / "doc"
EVIDENCE = sorted((DOC / "evidence").glob("*.md"))
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(DOC.glob("*.md")),
    *EVIDENCE,
]
# The pages whose code other tests run, to compare what it gives with the page.
RUN_ELSEWHERE = {
    "README.md": "test_readme.py",
    "contributing.md": "test_documentation.py",
    "large_tables.md": "test_large_tables.py",
    "many_classes.md": "test_guide.py",
    "reading_a_diagram.md": "test_guide.py",
    "reporting.md": "test_reporting.py",
    "scores.md": "test_guide.py",
    "which_error.md": "test_guide.py",
    "which_groups.md": "test_guide_groups.py",
    "which_recalibrator.md": "test_guide.py",
    "which_threshold.md": "test_decisions.py",
}
_EXTENSIONS_NEED = {
    "Write your own display": ["matplotlib"],
    "Support tables from another library": ["pyarrow", "narwhals"],
}
# Packages that users bring: their blocks run where they are installed.
PEERS = {"xgboost", "lightgbm", "catboost", "torch", "keras"}
NEEDS = {
    "after_release.md": ["pandas"],
    "coming_from.md": ["pandas"],
    "deploying.md": [
        "duckdb",
        "matplotlib",
        "narwhals",
        "onnx",
        "onnxruntime",
        "pandas",
        "pyarrow",
        "skl2onnx",
    ],
    "displays.md": ["matplotlib"],
}


def _blocks(page):
    """Return the Python blocks of a page that stand at the margin: those of a list are
    steps, which a test takes.
    """
    return re.findall(
        r"^```python\n(.*?)^```", page.read_text("utf-8"), flags=re.S | re.M
    )


def _peers_of(block):
    """Return the packages that a block imports and that no extra installs."""
    imported = re.findall(r"^(?:import|from) (\w+)", block, flags=re.M)
    return sorted(set(imported) & PEERS)


def _run(page, names, peer=None):
    """Run the blocks of a page; those of packages that are not installed are left out,
    all but those of `peer`.
    """
    for number, block in enumerate(_blocks(page), start=1):
        if set(_peers_of(block)) <= {peer}:
            exec(compile(block, f"{page.name}, block {number}", "exec"), names)


def _here():
    for page in PAGES:
        if page.name not in RUN_ELSEWHERE and _blocks(page):
            yield pytest.param(page, id=page.name)


@pytest.mark.slow
@pytest.mark.parametrize("page", _here())
def test_code_runs(page, tmp_path, monkeypatch):
    for package in NEEDS.get(page.name, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    _run(page, {})


@pytest.mark.parametrize(
    ("page", "peer"),
    [
        pytest.param(page, peer, id=f"{page.stem}-{peer}")
        for page in PAGES
        if page.name not in RUN_ELSEWHERE
        for peer in sorted({one for block in _blocks(page) for one in _peers_of(block)})
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_code_of_packages_that_users_bring(page, peer, tmp_path, monkeypatch):
    if peer == "keras" and not find_spec("tensorflow"):
        monkeypatch.setenv("KERAS_BACKEND", "torch")
        pytest.importorskip("torch")
    pytest.importorskip(peer)
    monkeypatch.chdir(tmp_path)
    _run(page, {}, peer)


@pytest.mark.parametrize(
    ("page", "figures"),
    [
        pytest.param("boosted_trees.md", ["before", "after"], marks=pytest.mark.slow),
        ("language_models.md", ["before", "after"]),
        ("neural_networks.md", ["losses", "errors"]),
        ("class_imbalance.md", ["losses"]),
    ],
)
def test_figures_of_the_pages_for_kinds_of_models(page, figures):
    if parse_version(sklearn.__version__) < parse_version("1.8"):
        pytest.skip("older versions of scikit-learn train other models")
    names = {}
    _run(DOC / page, names)
    text = (DOC / page).read_text("utf-8")
    for name in figures:
        for value in np.atleast_1d(names[name]):
            shown = [f"{value:.3f}".lstrip("0"), f"{value:.2f}"]
            assert any(one in text for one in shown), (name, value)


def test_a_block_of_a_package_that_users_bring_is_left_out(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n```python\nimport torch\nx = 2\n```\n")
    names = {}
    _run(page, names)
    assert names["x"] == 1


@pytest.mark.parametrize(
    "title",
    [
        "Write your own binning strategy",
        "Write your own recalibrator",
        "Write your own metric",
        "Write your own display",
        "Support tables from another library",
    ],
)
def test_code_of_extensions_runs(title):
    """The sections of `contributing.md` that show how to extend the library."""
    for package in _EXTENSIONS_NEED.get(title, ()):
        pytest.importorskip(package)
    page = DOC / "contributing.md"
    section = page.read_text("utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    names = {"y_true": [0, 1, 0, 1] * 25, "y_proba": [0.1, 0.4, 0.35, 0.8] * 25}
    for example in re.findall(r"\{literalinclude\} (examples/\S+)", section):
        names |= runpy.run_path(str(DOC / example))
    blocks = re.findall(r"^```python\n(.*?)^```", section, flags=re.S | re.M)
    assert blocks
    for block in blocks:
        exec(compile(block, title, "exec"), names)


def test_pages_that_are_run_elsewhere():
    for page, test in RUN_ELSEWHERE.items():
        text = (ROOT / "tests" / test).read_text("utf-8")
        assert page in text or page.removesuffix(".md") in text


def test_pages_install_as_messages_say():
    place = re.search(r'"(.*)\[plot\]"', install("plot"))[1]
    told = {
        target
        for page in PAGES
        for target in re.findall(r'pip install "([^"]+)"', page.read_text("utf-8"))
    }
    assert len(told) >= 7
    assert all(re.fullmatch(rf"{re.escape(place)}\[[\w,]+\]", one) for one in told)


def test_commands_of_the_pages_start():
    """Each `python -m benchmarks.name` beside a figure is a module that can be imported
    and has a main function.
    """
    pytest.importorskip("pandas", reason="a command reads tables with pandas")
    named = {
        name
        for page in PAGES
        for name in re.findall(r"python -m (benchmarks[\w.]+)", page.read_text("utf-8"))
    }
    assert len(named) > 8
    for name in named:
        found = import_module(name)
        assert callable(
            getattr(
                found if hasattr(found, "main") else import_module(f"{name}.__main__"),
                "main",
                None,
            )
        )


def test_the_first_example_stands_in_one_file():
    example = (DOC / "examples" / "ten_lines.py").read_text("utf-8")
    first = _blocks(ROOT / "README.md")[0]
    assert first in example
    assert first.count("\n") <= 20
    lines = example.splitlines()
    start, stop = map(
        int,
        re.search(
            r":lines: (\d+)-(\d+)", (DOC / "index.md").read_text("utf-8")
        ).groups(),
    )
    assert lines[start - 1 : stop] == first.splitlines()


# --- Links ----------------------------------------------------------------------------


def _without_code(page):
    return re.sub(r"^\s*```.*?^\s*```", "", page.read_text("utf-8"), flags=re.S | re.M)


def _anchors(page):
    """Return the anchors of a page: its headings as GitHub and MyST write them, and
    explicit targets.
    """
    text = _without_code(page)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.M)
    slugs = {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in headings
    }
    return slugs | set(re.findall(r"^\((\S+)\)=$", text, flags=re.M))


def _links(page):
    """Yield the links of a page that stay inside the project."""
    text = re.sub(r"(?<!\])`[^`\n]*`", "", _without_code(page))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:", link):
            yield link


@every("page", PAGES)
def test_links(page):
    lost = []
    for link in _links(page):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if path.startswith(("auto_gallery/", "api")) and page.parent == DOC:
            assert not anchor
            example = DOC / "gallery" / f"{Path(path).stem}.py"
            found = path in ("auto_gallery/index", "api", "api.rst") or example.exists()
        else:
            found = target.exists() and (not anchor or anchor in _anchors(target))
        if not found:
            lost.append(link)
    assert not lost


def _contents(text):
    """Yield the pages that the tables of contents of a page list: a line is a page, or
    ``title <page>``.
    """
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", text, flags=re.S | re.M):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                yield re.sub(r"^.*<(.*)>$", r"\1", line)


@every("page", sorted(DOC.glob("*.md")))
def test_roles_and_directives(page):
    text = page.read_text("utf-8")
    for name in re.findall(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`", text):
        target = name.strip("/")
        gallery = DOC / "gallery" / f"{Path(target).stem}.py"
        assert (
            target in ("api", "auto_gallery/index")
            or (DOC / f"{target}.md").exists()
            or gallery.exists()
        ), name
    for name in re.findall(r"\{(?:image|figure|literalinclude)\} (\S+)", text):
        assert (DOC / name).exists() or name.startswith("_generated/"), name
    for name in _contents(text):
        assert name in ("api", "auto_gallery/index") or (DOC / f"{name}.md").exists(), (
            name
        )


def test_guide_and_examples_know_each_other():
    guide = _contents((DOC / "getting_started.md").read_text("utf-8"))
    texts = {page: (DOC / f"{page}.md").read_text("utf-8") for page in guide}
    named = {
        page: set(re.findall(r"auto_gallery/(plot_\w+)", text))
        for page, text in texts.items()
    }
    assert {path.stem for path in (DOC / "gallery").glob("plot_*.py")} == set().union(
        *named.values()
    )
    # these explain, and have no example of their own
    without = {
        "scores",
        "coming_from",
        "evidence",
        "llm_as_a_judge",
        "outcome_not_known_yet",
        "troubleshooting",
    }
    assert {page for page, examples in named.items() if not examples} == without


def test_the_table_of_the_guide_has_the_order_of_its_navigation():
    text = (DOC / "getting_started.md").read_text("utf-8")
    assert re.findall(r"\| \[[^\]]+\]\((\w+)\.md\) \|$", text, flags=re.M) == list(
        _contents(text)
    )


@pytest.mark.parametrize("page", EVIDENCE, ids=lambda page: page.name)
def test_evidence_is_linked_and_begins_with_a_summary(page):
    assert f"(evidence/{page.name})" in (DOC / "evidence.md").read_text("utf-8")
    if page.name in ("speed.md", "references.md"):  # tables and lists alone
        return
    _, title, summary, *_ = re.split(r"^#+ ", page.read_text("utf-8"), flags=re.M)
    assert summary.startswith("Summary\n")
    lines = re.findall(r"^(?:\* |\| (?!method|---))", summary, flags=re.M)
    assert 8 <= len(lines) <= 15


def test_every_page_is_in_one_table_of_contents():
    listed = [
        name for page in DOC.glob("*.md") for name in _contents(page.read_text("utf-8"))
    ]
    pages = {page.stem for page in DOC.glob("*.md")} - {"index"}
    assert sorted(listed) == sorted(pages | {"api", "auto_gallery/index"})


def test_titles_are_the_same_in_the_guide_and_on_the_page():
    guide = (DOC / "getting_started.md").read_text("utf-8")
    table = re.findall(r"\| \[([^\]]+)\]\((\w+)\.md\) \|$", guide, flags=re.M)
    for title, page in table:
        text = (DOC / f"{page}.md").read_text("utf-8")
        assert text.startswith(f"# {title}\n"), page


# --- Pictures and examples ------------------------------------------------------------


def test_pictures_are_made_by_code_and_shown():
    code = "\n".join(
        path.read_text("utf-8") for path in (DOC / "examples").glob("*.py")
    )
    shown = "\n".join(page.read_text("utf-8") for page in PAGES)
    for picture in (DOC / "pictures").glob("*.png"):
        assert re.search(rf"\b{picture.stem}\b", code), picture.name
        assert f"pictures/{picture.name}" in shown, picture.name


def test_pictures_have_twice_the_pixels_that_they_are_shown_with():
    image = pytest.importorskip("PIL.Image")
    for picture in (DOC / "pictures").glob("*.png"):
        with image.open(picture) as opened:  # a screenshot has no dots per inch
            assert opened.info.get("dpi", (160, 160))[0] > 159, picture.name


@pytest.mark.slow
def test_the_first_picture_and_its_scores(capsys):
    pytest.importorskip("matplotlib")
    runpy.run_path(str(DOC / "examples" / "ten_lines.py"))
    scores = re.findall(r"\d\.\d{3}", capsys.readouterr().out)
    assert len(scores) == 3
    for page in (ROOT / "README.md", DOC / "index.md"):
        assert all(score in page.read_text("utf-8") for score in scores)


EXAMPLES = sorted((DOC / "gallery").glob("plot_*.py"))


@every("path", EXAMPLES)
def test_an_example_has_a_title_a_text_and_steps(path):
    text = path.read_text("utf-8")
    title, line = text.splitlines()[1:3]
    assert line == "=" * len(title)
    assert text.count("\n# %%\n") >= 2
    compile(text, path.name, "exec")


def test_every_thumbnail_is_described():
    pytest.importorskip("docutils")
    path = DOC / "extensions" / "describe_thumbnails.py"
    described = runpy.run_path(str(path))["DESCRIPTIONS"]
    assert set(described) == {path.stem for path in EXAMPLES}


def test_there_are_at_least_twelve_examples():
    assert len(EXAMPLES) >= 12


def test_messages_link_to_their_cure():
    package = DOC.parent / "skcalib"
    linked = {
        anchor
        for path in package.rglob("*.py")
        for anchor in re.findall(
            r"\bsee\(['\"]([\w-]+)['\"]\)", path.read_text("utf-8")
        )
    }
    page = (DOC / "troubleshooting.md").read_text("utf-8")
    sections = set(re.findall(r"^\(([\w-]+)\)=$", page, flags=re.M))
    # the message of a missing extra holds the whole cure
    assert linked == sections - {"missing-extra"}
    assert see("percent").endswith("troubleshooting.html#percent")
