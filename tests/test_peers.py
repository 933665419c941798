"""The file of other libraries agrees with the pages; moved versions are reported."""

import re
from pathlib import Path

from benchmarks import peers

DOC = Path(__file__).parents[1] / "doc"
LISTED = {peer["name"]: peer for peer in peers.peers()}


def test_the_file_has_the_libraries_and_versions_of_the_tables():
    heads = re.findall(
        r"^\| question \| skcalib \| (\S+) (\S+) \|",
        (DOC / "coming_from.md").read_text("utf-8"),
        flags=re.M,
    )
    assert {name: peer["version"] for name, peer in LISTED.items()} == dict(heads)


def test_the_page_about_scikit_learn_has_its_version_and_threads():
    text = (DOC / "scikit_learn.md").read_text("utf-8")
    peer = LISTED["scikit-learn"]
    (run,) = re.findall(r"What was run for this page: scikit-learn (.*?\d)\.\s", text)
    assert run.endswith(f" and {peer['version']}")
    for thread in peer["read"]:
        assert thread in text
    for name in peer["planned"]:
        assert name.removesuffix("calibration_error") in text


def test_a_newer_version_that_was_not_run_stands_on_the_page():
    text = (DOC / "coming_from.md").read_text("utf-8")
    newer = [peer["newest"] for peer in LISTED.values() if "newest" in peer]
    assert newer
    assert all(f"{version} is the current version" in text for version in newer)


def test_each_library_says_what_it_has_and_where_that_was_read():
    for peer in LISTED.values():
        assert peer["has"]
        assert all(
            address.startswith(("https://", "release ")) for address in peer["read"]
        )


def test_versions_that_moved():
    listed = peers.peers(
        """
        [[peer]]
        name = "same"
        version = "1.0"
        [[peer]]
        name = "moved"
        version = "1.0"
        [[peer]]
        name = "seen"
        version = "1.0"
        newest = "2.0"
        [[peer]]
        name = "lost"
        version = "1.0"
        """
    )
    found = {"same": "1.0", "moved": "1.1", "seen": "2.0", "lost": None}
    assert peers.report(found, listed) == [
        "moved: 1.0 here, 1.1 on the index",
        "lost: no version found on the package index",
    ]


def test_what_pip_prints():
    assert peers.newest_of("a-b (1.9.1)\nAvailable versions: 1.9.1, 1.9.0\n") == "1.9.1"
    assert peers.newest_of("") is None
