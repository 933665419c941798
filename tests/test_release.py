"""What a release is made of agrees: versions, the changelog, the workflows."""

import json
import re
import tomllib
from pathlib import Path

import pytest

import skcalib

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
needs_workflows = pytest.mark.skipif(
    not WORKFLOWS, reason="a source distribution has no workflows"
)


def test_the_citation_and_the_changelog_have_the_version():
    (cited,) = re.findall(
        r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text("utf-8"), flags=re.M
    )
    assert cited == skcalib.__version__
    metadata = json.loads((ROOT / "codemeta.json").read_text("utf-8"))
    assert metadata["version"] == skcalib.__version__
    newest = re.search(
        r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.M
    ).group(1)
    assert newest == skcalib.__version__.removesuffix(".dev0")


@needs_workflows
def test_actions_are_pinned_to_a_commit():
    for path in WORKFLOWS:
        uses = re.findall(r"uses: (.*)", path.read_text("utf-8"))
        assert uses
        for action in uses:
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", action), (
                path.name,
                action,
            )


@needs_workflows
def test_root_installs_programs_and_does_nothing_else():
    for path in WORKFLOWS:
        assert {
            line.strip()
            for line in path.read_text("utf-8").splitlines()
            if "sudo" in line
        } <= {"run: sudo bash .ci/programs"}
    assert "sudo" not in re.sub(
        r"^\s*#.*", "", (ROOT / ".ci" / "run").read_text("utf-8"), flags=re.M
    )


@needs_workflows
def test_nightly_wheels_may_fail_and_nothing_else():
    jobs = re.split(
        r"^  (?=\w+:$)",
        (ROOT / ".github/workflows/ci.yml").read_text("utf-8"),
        flags=re.M,
    )
    assert [
        job.partition(":")[0] for job in jobs if "continue-on-error: true" in job
    ] == ["nightly"]


@needs_workflows
def test_every_supported_version_of_python_is_tested():
    supported = re.findall(
        r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8")
    )
    tested = re.search(
        r"python: \[(.*)\]", (ROOT / ".github/workflows/ci.yml").read_text("utf-8")
    ).group(1)
    assert supported == re.findall(r"3\.\d+", tested)
    assert f'requires-python = ">={supported[0]}"' in (
        ROOT / "pyproject.toml"
    ).read_text("utf-8")


def test_the_recipe_of_conda_agrees_with_the_package():
    path = ROOT / "recipe" / "recipe.yaml"
    if not path.exists():
        pytest.skip("a source distribution has no recipe")
    recipe = path.read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    run = re.search(r"^  run:\n((?:    - .*\n)+)", recipe, flags=re.M)[1]
    needed = {line.strip(" -").replace(" ", "") for line in run.splitlines()}
    assert needed == set(project["dependencies"]) | {"python>=${{python_min}}"}
    assert f'python_min: "{project["requires-python"].removeprefix(">=")}"' in recipe
    assert f'version: "{skcalib.__version__}"' in recipe
    assert project["description"] in recipe
    for script, target in project["scripts"].items():
        assert f"{script} = {target}" in recipe


def test_the_citation_has_a_date_and_a_repository():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(r'^date-released: "\d{4}-\d\d-\d\d"', citation, flags=re.M)
    assert 'repository-code: "https://github.com/skcalib/skcalib"' in citation
    assert "doi" not in citation.lower()
