"""The speed benchmark runs, and its answers are those of the peers that are always
installed. Nothing is timed.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.speed import against

ROOT = Path(__file__).parents[1]
FIELDS = [
    "job",
    "size",
    "ours_s",
    "floor_s",
    "peer",
    "peer_s",
    "ours_over_floor",
    "peer_over_ours",
    "answers_agree",
]
# scikit-learn has the plugin curve only: its answer is another one by design.
OTHER_ANSWER = {("equal-mass ECE, debiased", "scikit-learn")}

pytestmark = pytest.mark.slow  # it times all jobs once


def _command(*arguments):
    command = [sys.executable, "-m", "benchmarks.speed", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT, timeout=300
    )


@pytest.fixture(scope="module")
def rows():
    return json.loads(_command("--quick", "--json").stdout)


def test_each_row_has_the_fields_of_the_report(rows):
    for row in rows:
        assert list(row) == FIELDS
        assert row["ours_s"] > 0
        if row["floor_s"] is not None:
            assert row["ours_over_floor"] == pytest.approx(
                row["ours_s"] / row["floor_s"]
            )
        if row["peer"] is not None:
            assert row["peer_over_ours"] == pytest.approx(row["peer_s"] / row["ours_s"])


def test_answers_agree(rows):
    compared = [row for row in rows if row["peer"] in ("scikit-learn", "plain-loop")]
    # temperature is compared as well where scikit-learn has it, from 1.8 on
    assert {
        "equal-width ECE",
        "equal-mass ECE",
        "isotonic",
        "Platt",
        "matrix scaling, unpenalised",
    } <= {row["job"] for row in compared}
    differ = {
        (row["job"], row["peer"]) for row in compared if row["answers_agree"] is False
    }
    assert differ == OTHER_ANSWER


def test_every_job_is_measured(rows):
    from benchmarks.speed.jobs import JOBS

    skipped = {name for name, job in JOBS.items() if job.needs == "matplotlib"}
    assert {row["job"] for row in rows} | skipped == set(JOBS)


def test_one_job_as_a_table():
    done = _command("--quick", "--job", "sweep")
    header, rule, *body = done.stdout.splitlines()
    assert header.startswith("job | size | ours")
    row, verdict = body
    assert row.startswith("sweep | 20,000")
    assert verdict.startswith("sweep, <= 2 x floor: ")


def test_floors_do_the_work():
    # The floors of the binned errors compute the error itself, but for ties at an edge,
    # of which there are none here.
    from benchmarks.speed import floors, problems
    from skcalib.metrics import calibration_error, expected_calibration_error

    problem = problems.binary(5_000)
    y, s = problem.labels, problem.scores
    np.testing.assert_allclose(
        floors.equal_width(problem), expected_calibration_error(y, s)
    )
    np.testing.assert_allclose(
        floors.equal_mass(problem),
        calibration_error(y, s, norm=1, method="plugin"),
        atol=1e-3,
    )
    many = problems.many_classes(1_000, 5)
    np.testing.assert_allclose(
        floors.top_label(many),
        expected_calibration_error(many.labels, many.scores),
        rtol=1e-5,
    )
    marginal = expected_calibration_error(
        many.labels, many.scores, multiclass="marginal"
    )
    np.testing.assert_allclose(floors.marginal_equal_width(many), marginal, rtol=1e-5)


SHAPES = ("equal-width ECE", "slope and intercept", "top-label ECE")


def test_shapes_are_a_second_axis():
    done = _shapes("--json")
    rows = {row["job"]: row for row in json.loads(done.stdout)}
    assert set(rows) == set(SHAPES)
    for row in rows.values():
        ratios = {
            shape: seconds / row["seconds"]["uniform"]
            for shape, seconds in row["seconds"].items()
        }
        assert (
            row["ratio"]
            == pytest.approx(max(ratios.values()))
            == pytest.approx(ratios[row["worst"]])
        )
        assert row["bytes_a_row"] > 0
    # one score has no slope
    assert "constant" not in rows["slope and intercept"]["seconds"]
    assert rows["slope and intercept"]["in_fits"] > 0


def test_shapes_as_a_table_of_a_page():
    header, rule, *body = _shapes("--markdown", jobs=SHAPES[::2]).stdout.splitlines()
    assert header.startswith("| job | size | s, uniform | extreme")
    assert set(rule) <= set("| -")
    assert [line.split(" | ")[0] for line in body] == [
        "| equal-width ECE",
        "| top-label ECE",
    ]


def _shapes(*arguments, jobs=SHAPES):
    """Run small jobs; the exit status says whether a limit was missed, which is
    not tested.
    """
    command = [
        sys.executable,
        "-m",
        "benchmarks.speed",
        "--shapes",
        "--quick",
        *(argument for job in jobs for argument in ("--job", job)),
        *arguments,
    ]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=300
    )


def test_scores_have_the_shapes_that_they_are_named_for():
    from benchmarks.speed.shapes import SHAPES, binary, many_classes

    scores = {shape: binary(shape, 20_000).scores for shape in SHAPES}
    assert np.mean(np.abs(scores["extreme"] - 0.5) > 0.49) > 0.7
    assert np.mean(scores["sure"] > 0.99) > 0.7
    assert np.mean(scores["rare"] < 0.01) > 0.9
    assert len(np.unique(scores["hundredths"])) == 101
    assert scores["votes"].dtype == np.float32
    assert {0.0, 1.0} <= set(scores["saturated"].tolist())
    assert np.all(np.diff(scores["sorted"]) >= 0)
    assert len(np.unique(scores["constant"])) == 1
    for shape in SHAPES:
        table = many_classes(shape, 500, 4)
        assert table.scores.dtype == np.float32
        np.testing.assert_allclose(table.scores.sum(axis=1), 1, atol=1e-5)
        assert set(table.labels.tolist()) == {0, 1, 2, 3}


def test_another_version_is_compared_in_turns(monkeypatch, capsys, tmp_path):
    """The median of the ratios decides; one run at three times the time does not."""
    turns = []
    here = {"Platt": [1.0, 1.0, 3.0], "Beta": [1.2, 1.3, 1.2]}

    def seconds(name, checkout):
        turns.append((name, checkout == tmp_path))
        if name == "isotonic":
            return None
        return 1.0 if checkout == tmp_path else here[name].pop()

    monkeypatch.setattr(against, "seconds", seconds)
    arguments = [str(tmp_path), "--rounds", "3", "--job", "Platt", "--job", "isotonic"]
    assert against.main(arguments) == 0
    assert turns[:4] == [("Platt", True), ("Platt", False)] * 2
    lines = capsys.readouterr().out.splitlines()[2:]
    assert lines == [
        "| Platt | 1 | 1 | 1.00 |",
        "| isotonic | | | does not run there |",
    ]
    assert against.main([str(tmp_path), "--rounds", "3", "--job", "Beta"]) == 1
    assert capsys.readouterr().out.endswith("| Beta | 1 | 1.2 | 1.20 |\n")
