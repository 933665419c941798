"""``python -m benchmarks.peer_pages``: statements of the pages about other libraries,
generated from data.

Names, versions, plans and threads come from ``doc/peers.toml``. The numbers come from
``benchmarks/data/coming_from.csv``, which ``python -m benchmarks.coming_from --record``
writes, and their explanations from `benchmarks.coming_from.DIFFERENCES`.
"""

import csv
import re
import sys
import tomllib
from pathlib import Path

from benchmarks.coming_from import DIFFERENCES, RECORD

DOC = Path(__file__).parents[1] / "doc"
PAGES = ("coming_from.md", "evidence/peers.md")
_BLOCK = re.compile(
    r"(<!-- made from peers\.toml by `python -m benchmarks\.peer_pages`:"
    r" (?P<what>\S+)(?P<rest>[^\n]*) -->\n)(?P<text>.*?)(<!-- end of (?P=what) -->)",
    flags=re.S,
)
_THREADS = "https://github.com/scikit-learn/scikit-learn"


def data():
    """Return the contents of the file."""
    return tomllib.loads((DOC / "peers.toml").read_text("utf-8"))


def table(head, rows):
    """Return a Markdown table."""
    title, *lines = [
        f"| {' | '.join(line)} |".replace("|  |", "| |") for line in [head, *rows]
    ]
    return "\n".join([title, f"|{'---|' * len(head)}", *lines])


def listed(words):
    """Return ``a, b and c``."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def names(known, library):
    """Return a table of the names in another library and in skcalib."""
    for peer in known["peer"] + known["read_only"]:
        if peer["name"] == library:
            return table([peer.get("title", library), "skcalib"], peer["names"])
    raise KeyError(library)


def numbers(known, library):
    """Return a table of the results of both libraries for the same questions."""
    with RECORD.open(encoding="utf-8", newline="") as file:
        answers = [row for row in csv.DictReader(file) if row["peer"] == library]
    reasons = {
        one.question: one.reason.replace("|", r"\|")
        for one in DIFFERENCES
        if one.peer == library
    }
    rows = [
        [one["question"], one["ours"], one["theirs"], reasons[one["question"]]]
        for one in answers
    ]
    return table(
        ["question", "skcalib", f"{library} {_peer(known, library)['version']}", ""],
        rows,
    )


def _peer(known, library):
    (peer,) = (one for one in known["peer"] if one["name"] == library)
    return peer


def comparison(known, _):
    """Return a table of the features of each library, with the version that was run."""
    rows = [
        [
            f"[{peer['title']}](../coming_from.md#{peer['title'].lower()})",
            peer["version"],
            "; ".join(peer["has"]),
        ]
        for peer in known["peer"]
    ]
    return table(["library", "version run", "features"], rows)


def newest(known, library):
    """Return a statement about a newer version that could not be run."""
    peer = _peer(known, library)
    return (
        f"The comparison used version {peer['version']}. The current version,"
        f" {peer['newest']}, requires {peer['needs']} and was not run.\n"
        f"{peer['newer']}"
    )


def assertions(known, _):
    """Return a table of the assertions of other test suites that do not hold in
    skcalib.
    """
    rows = [[one["package"], one["asks"], one["here"]] for one in known["assertion"]]
    return table(["package", "assertion", "skcalib"], rows)


def sources(known, _):
    """Return the versions of scikit-learn that were run, and the date of its plans."""
    about = known["scikit_learn"]
    return (
        f"The code on this page was run with scikit-learn {listed(about['run'])}."
        " Statements about later versions are based on\npublic pull requests"
        f" ({about['read_in']}) and may change."
    )


def changes(known, _):
    """Return a table of what each version of scikit-learn has or plans."""
    about = known["scikit_learn"]
    states = {thread["number"]: thread["state"] for thread in about["thread"]}
    rows = []
    for change in about["change"]:
        cited = [f"#{number}" for number in change.get("threads", ())]
        found = {states[number] for number in change.get("threads", ())}
        suffix = f" ({', '.join([*cited, *sorted(found)])})" if cited else ""
        rows.append([change["version"], change["new"] + suffix, change["here"]])
    return table(["scikit-learn", "new", "skcalib"], rows)


def planned(known, _):
    """Return the names of scorers that scikit-learn plans."""
    about = known["scikit_learn"]
    (thread,) = (one for one in about["thread"] if one["number"] == 34261)
    proposed = _peer(known, "scikit-learn")["planned"]
    return (
        "Calibration errors are available as scorers in skcalib. scikit-learn plans"
        " to use different names"
        f" ({_link(thread)}, {thread['state']} in {about['read_in']}):\n"
        f"{listed([f'`{name}`' for name in proposed])}.\n"
        "skcalib will adopt these names when this pull request is merged."
    )


def _link(thread):
    number = thread["number"]
    return f"[#{number}]({_THREADS}/{thread['kind']}/{number})"


def threads(known, _):
    """Return the threads in which the plans of scikit-learn were read."""
    cited = known["scikit_learn"]["thread"]
    issues = [_link(thread) for thread in cited if thread["kind"] == "issues"]
    pulls = [_link(thread) for thread in cited if thread["kind"] == "pull"]
    return (
        f"scikit-learn issue {listed(issues)} and pull requests\n"
        + ",\n".join(pulls[:-1])
        + f" and\n{pulls[-1]}."
    )


BLOCKS = {
    made.__name__: made
    for made in (
        assertions,
        changes,
        comparison,
        names,
        newest,
        numbers,
        planned,
        sources,
        threads,
    )
}


def written(page):
    """Return the text of a page with its blocks generated again."""
    known = data()

    def block(match):
        what = match["rest"].removeprefix(" of ").strip()
        text = BLOCKS[match["what"]](known, what)
        return f"{match[1]}\n{text}\n\n{match[5]}"

    return _BLOCK.sub(block, page)


def main():
    """Write the pages."""
    for name in PAGES:
        path = DOC / name
        path.write_text(written(path.read_text("utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
