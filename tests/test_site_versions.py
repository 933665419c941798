"""The site has a folder for each version, and a switcher that lists them."""

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SITE = runpy.run_path(str(ROOT / "doc" / "versions.py"))


def test_the_last_patch_of_each_minor_version_newest_first():
    tags = ["v0.2.0", "v0.10.0", "v0.2.1", "v1.0.0rc1", "other", "v0.2.10"]
    found = SITE["releases"](tags)
    assert list(found.items()) == [("0.10", "v0.10.0"), ("0.2", "v0.2.10")]


def test_the_newest_release_is_preferred_and_stands_at_the_root():
    dev, newest, older = SITE["switcher"](["0.3", "0.2"])
    assert dev["version"] == "dev"
    assert newest["preferred"]
    assert newest["url"] == f"{SITE['ADDRESS']}/"
    assert not older["preferred"]
    assert older["url"] == f"{SITE['ADDRESS']}/0.2/"


def test_the_file_of_a_checkout_lists_its_own_version():
    text = (ROOT / "doc" / "_static" / "switcher.json").read_text("utf-8")
    assert json.loads(text) == SITE["switcher"]([])


def test_the_logo_is_drawn_by_its_script():
    drawing = runpy.run_path(str(ROOT / "doc" / "examples" / "logo.py"))["drawing"]
    assert (ROOT / "doc" / "_static" / "logo.svg").read_text("utf-8") == drawing()


@pytest.mark.parametrize(
    ("version", "shown"), [("0.2.0.dev0", "dev"), ("0.2.3", "0.2"), ("1.10.0", "1.10")]
)
def test_the_version_that_the_switcher_shows(version, shown):
    assert SITE["shown"](version) == shown
