"""Build the whole site into a folder: ``python doc/versions.py FOLDER``.

``dev/`` is this checkout. Each released minor version has a folder, ``0.2/`` for the
last tag ``v0.2.*``, which is built in an environment of its own. The newest release is
also at the root; before the first one the root is this checkout. All versions get
today's list of versions, from which the switcher in the head of each page is made.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
ADDRESS = "https://skcalib.github.io/skcalib"


def releases(tags):
    """Return the last tag of each minor version: ``{"0.2": "v0.2.1"}``, new first."""
    last = {}
    for tag in tags:
        match = re.fullmatch(r"v(\d+)\.(\d+)\.(\d+)", tag)
        if match:
            *minor, patch = map(int, match.groups())
            last[tuple(minor)] = max(last.get(tuple(minor), -1), patch)
    return {
        f"{major}.{minor}": f"v{major}.{minor}.{last[major, minor]}"
        for major, minor in sorted(last, reverse=True)
    }


def switcher(versions):
    """Return the entries of the version switcher for versions, newest first."""
    entries = [{"name": "dev", "version": "dev", "url": f"{ADDRESS}/dev/"}]
    for number, version in enumerate(versions):
        newest = number == 0
        entries.append(
            {
                "name": f"{version} (stable)" if newest else version,
                "version": version,
                "url": f"{ADDRESS}/" if newest else f"{ADDRESS}/{version}/",
                "preferred": newest,
            }
        )
    return entries


def shown(version):
    """Return the name of a version in the switcher: ``"dev"`` or ``"0.2"``."""
    return "dev" if "dev" in version else ".".join(version.split(".")[:2])


def run(*command, cwd=ROOT):
    """Run a command and return what it prints."""
    return subprocess.run(
        command, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def build(python, source, folder, *options):
    """Build the pages of a checkout."""
    command = (python, "-m", "sphinx", "-q", *options, "-b", "html", "doc", str(folder))
    run(*command, cwd=source)


def build_release(tag, folder):
    """Build the pages of a tag with the package and the tools of that tag."""
    with tempfile.TemporaryDirectory() as scratch:
        source, environment = Path(scratch, "source"), Path(scratch, "environment")
        run("git", "worktree", "add", "--detach", str(source), tag)
        try:
            run(sys.executable, "-m", "venv", str(environment))
            python = str(environment / "bin" / "python")
            run(python, "-m", "pip", "install", "--quiet", ".[doc]", cwd=source)
            build(python, source, folder)
        finally:
            run("git", "worktree", "remove", "--force", str(source))


def main(folder):
    """Build all versions."""
    folder.mkdir(parents=True)
    found = releases(run("git", "tag").split())
    build(sys.executable, ROOT, folder / "dev", "-W", "-j", "auto")
    for version, tag in found.items():
        build_release(tag, folder / version)
    listed = json.dumps(switcher(found), indent=2) + "\n"
    for version in ("dev", *found):
        (folder / version / "_static" / "switcher.json").write_text(listed, "utf-8")
    newest = next(iter(found), "dev")
    shutil.copytree(folder / newest, folder, dirs_exist_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
