"""``python -m benchmarks.peers``: which libraries of ``doc/peers.toml`` have a version
on the package index that the pages do not cover. The exit status is 1 if there are any.
pip reports versions for the Python version in which it runs: use 3.12 or newer, which
calibre requires.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

FILE = Path(__file__).parents[1] / "doc" / "peers.toml"


def peers(text=None):
    """Return the libraries of the file, each a dictionary."""
    return tomllib.loads(FILE.read_text("utf-8") if text is None else text)["peer"]


def newest_of(printed):
    """Return the version in the first line of the output of ``pip index versions``."""
    found = re.match(r"\S+ \(([^)]+)\)", printed)
    return found[1] if found else None


def known(peer):
    """Return the newest version of a library that the pages cover."""
    return peer.get("newest", peer["version"])


def report(versions, listed):
    """Return a line for each library whose version on the index differs from the
    version that the pages cover, or was not found.
    """
    lines = []
    for peer in listed:
        found = versions.get(peer["name"])
        if found is None:
            lines.append(f"{peer['name']}: no version found on the package index")
        elif found != known(peer):
            lines.append(f"{peer['name']}: {known(peer)} here, {found} on the index")
    return lines


def on_the_index(name):
    """Ask pip for the newest version of a library."""
    command = [sys.executable, "-m", "pip", "index", "versions", name]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    return newest_of(asked.stdout)


def main():
    listed = peers()
    lines = report(
        {peer["name"]: on_the_index(peer["name"]) for peer in listed}, listed
    )
    print("\n".join(lines) or "No version has moved.")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
