"""The page for users of other libraries gives this library's numbers as they are."""

import re
from pathlib import Path

import pytest
from sklearn import __version__
from sklearn.utils.fixes import parse_version

from benchmarks import coming_from

DOC = Path(__file__).parents[1] / "doc"
PAGE = (DOC / "coming_from.md").read_text("utf-8")
EVIDENCE = (DOC / "evidence" / "peers.md").read_text("utf-8")


def _answer(question, peer):
    section = EVIDENCE.split(f"| question | skcalib | {peer} ")[1].split("\n\n")[0]
    row = next(
        line for line in section.splitlines() if line.startswith(f"| {question} |")
    )
    return row.split(" | ")[1]


@pytest.mark.parametrize(
    "one", coming_from.DIFFERENCES, ids=lambda one: f"{one.peer}: {one.question}"
)
def test_our_numbers(one):
    assert float(_answer(one.question, one.peer)) == pytest.approx(
        one.ours(), rel=1e-2, abs=2e-4
    )


def test_every_library_has_its_version():
    for peer in {one.peer for one in coming_from.DIFFERENCES}:
        assert re.search(rf"\| question \| skcalib \| {peer} \d+\.\d+", EVIDENCE), peer


@pytest.mark.skipif(
    parse_version(__version__) < parse_version("1.8"),
    reason="no temperature scaling before 1.8",
)
def test_answers_are_kept(monkeypatch, tmp_path, capsys):
    path = tmp_path / "record.csv"
    head, *kept = coming_from.RECORD.read_text("utf-8").splitlines()
    mine = [line for line in kept if line.startswith("scikit-learn,")]
    others = [line for line in kept if not line.startswith("scikit-learn,")]
    path.write_text("\n".join([head, mine[0], *others]) + "\n")
    record = coming_from.record
    monkeypatch.setattr(coming_from, "record", lambda answers: record(answers, path))
    assert coming_from.main(["--only", "scikit-learn", "--record"]) == 0
    assert capsys.readouterr().out.count("\n  ") == len(mine)
    found = path.read_text("utf-8").splitlines()
    assert found[0] == head
    assert [line.split(f",{__version__},")[0] for line in found[1 : 1 + len(mine)]] == [
        "scikit-learn"
    ] * len(mine)
    assert found[1 + len(mine) :] == others


# --- Old and new code -----------------------------------------------------------------

PEER_SECTIONS = {
    title: text
    for title, text in re.findall(
        r"^## ([^\n]*)\n(.*?)(?=^## |\Z)", PAGE, flags=re.S | re.M
    )
    if "peer_pages`: names of " in text
}


def _block(text, heading, language):
    pattern = rf"\*\*{heading}\*\*\n\n```{language}\n(.*?)^```"
    return re.search(pattern, text, flags=re.S | re.M)[1]


def test_every_library_has_old_and_new_code():
    assert len(PEER_SECTIONS) == len({one.peer for one in coming_from.DIFFERENCES})
    for title, text in PEER_SECTIONS.items():
        assert _block(text, "Before", "py"), title
        assert "skcalib" in _block(text, "After", "python"), title


@pytest.mark.parametrize("title", PEER_SECTIONS)
@pytest.mark.filterwarnings("ignore")
def test_old_code_runs_where_the_library_is_installed(title):
    pytest.importorskip("pandas")
    before = _block(PEER_SECTIONS[title], "Before", "py")
    module = re.search(r"^(?:import|from) ([\w.]+)", before, flags=re.M)[1]
    pytest.importorskip(module, exc_type=ImportError)
    names = {}
    exec(re.search(r"^```python\n(.*?)^```", PAGE, flags=re.S | re.M)[1], names)
    exec(compile(before, f"{title}, before", "exec"), names)
