"""Pages and data say the same about other libraries; moved versions are reported."""

import pytest
from test_coming_from import PEER_SECTIONS

from benchmarks import coming_from, peer_pages, peers

LISTED = {peer["name"]: peer for peer in peers.peers()}


@pytest.mark.parametrize("name", peer_pages.PAGES)
def test_the_pages_are_made_from_the_data(name):
    page = (peer_pages.DOC / name).read_text("utf-8")
    assert peer_pages.written(page) == page, "run python -m benchmarks.peer_pages"


def test_a_block_is_made_anew():
    begin = "<!-- made from peers.toml by `python -m benchmarks.peer_pages`: "
    page = f"a\n{begin}numbers of betacal -->\nold\n<!-- end of numbers -->\nb\n"
    lines = peer_pages.written(page).splitlines()
    version = LISTED["betacal"]["version"]
    assert lines[3:5] == [
        f"| question | skcalib | betacal {version} | |",
        "|---|---|---|---|",
    ]
    assert (lines[0], lines[-1]) == ("a", "b")
    assert "old" not in lines


def test_every_library_has_its_blocks():
    page = (peer_pages.DOC / "coming_from.md").read_text("utf-8")
    evidence = (peer_pages.DOC / "evidence" / "peers.md").read_text("utf-8")
    assert set(LISTED) == {one.peer for one in coming_from.DIFFERENCES}
    for name, peer in LISTED.items():
        section = PEER_SECTIONS[peer["title"]]
        assert f"names of {name} -->" in section
        assert f"numbers of {name} -->" in evidence
        assert ("newest" in peer) == (f"newest of {name} -->" in evidence)
    assert "names of R -->" in evidence
    written = {what for what in peer_pages.BLOCKS if f"peer_pages`: {what}" in page}
    written |= {
        what for what in peer_pages.BLOCKS if f"peer_pages`: {what}" in evidence
    }
    assert written == set(peer_pages.BLOCKS)


def test_the_record_is_of_the_versions_of_the_file():
    lines = coming_from.RECORD.read_text("utf-8").splitlines()[1:]
    recorded = {tuple(line.split(",")[:2]) for line in lines}
    assert recorded == {(name, peer["version"]) for name, peer in LISTED.items()}
    assert len(lines) == len(coming_from.DIFFERENCES)


def test_the_page_about_scikit_learn_was_run_with_the_version_of_the_file():
    about = peer_pages.data()["scikit_learn"]
    assert about["run"][-1] == LISTED["scikit-learn"]["version"]
    numbers = [thread["number"] for thread in about["thread"]]
    cited = {number for one in about["change"] for number in one.get("threads", ())}
    assert cited == set(numbers)
    assert {thread["state"] for thread in about["thread"]} <= {"open", "merged"}


def test_each_library_says_what_it_has_and_where_that_was_read():
    for peer in LISTED.values():
        assert peer["has"]
        assert peer["read"]
        assert ("newest" in peer) == ("needs" in peer)


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
