"""The report for outcomes that are not known for all samples at the horizon."""

import json

import numpy as np
import pytest

from skcalib import censored_labels
from skcalib.__main__ import main

pytestmark = pytest.mark.slow

pytest.importorskip("pandas")


@pytest.fixture
def study(tmp_path):
    rng = np.random.default_rng(0)
    rate = np.exp(-0.8 + 0.9 * rng.normal(size=600))
    until_event = rng.exponential(1 / rate)
    observed = np.minimum(rng.exponential(1.2, 600), 2)
    left = (until_event <= observed).astype(int)
    time = np.minimum(until_event, observed).round(6)
    risk = (1 - np.exp(-rate)).round(6)
    rows = zip(time, left, risk, strict=True)
    text = "\n".join(f"{t:.6f},{e},{s:.6f}" for t, e, s in rows)
    path = tmp_path / "churn.csv"
    path.write_text(f"years,left,risk\n{text}\n")
    return path, time, left, risk


def test_numbers_are_those_of_the_weighted_samples(study, capsys):
    path, time, left, risk = study
    options = "--time-to-event years --event left --horizon 1 --score risk --json"
    assert main(["report", str(path), *options.split()]) == 0
    numbers = json.loads(capsys.readouterr().out)
    y, weight, _ = censored_labels(time, left, 1)
    (model,) = numbers["models"]
    expected = np.average(risk - y, weights=weight)
    assert model["score_minus_frequency"]["estimate"] == pytest.approx(expected)
    assert numbers["weight_type"] == "importance"
    (note,) = [note for note in numbers["notes"] if "outcome is unknown" in note]
    assert f"{np.count_nonzero(weight == 0)} of 600 rows" in note


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--score risk --label left --horizon 1", "name the column"),
        ("--score risk --time-to-event years", "needs --event"),
        (
            "--score risk --label left --time-to-event years --event left --horizon 1",
            "both given",
        ),
        (
            "--score risk --time-to-event years --event left --horizon 1 --weight risk",
            "omit --weight",
        ),
        (
            "--score risk --time-to-event years --event left --horizon 5",
            "Choose an earlier horizon",
        ),
        (
            "--score risk --time-to-event years --event years --horizon 1",
            "must be 1 or True",
        ),
    ],
)
def test_half_an_outcome_is_refused(study, capsys, options, message):
    assert main(["report", str(study[0]), *options.split(), "--json"]) == 2
    assert message in capsys.readouterr().err
