"""The Python that a report prints makes its numbers and its advice again."""

import json

import numpy as np
import pytest

from skcalib.__main__ import main

pd = pytest.importorskip("pandas", reason="the report needs pandas (extra report)")
pytest.importorskip("pyarrow", reason="the report needs pyarrow (extra report)")
pytest.importorskip("matplotlib", reason="a diagram needs matplotlib (extra plot)")


def _run(tmp_path, capsys, frame, *options, **written):
    """Return the numbers of a report, and the names that its Python defines."""
    frame.to_csv(tmp_path / "rows.csv", index=False, **written)
    code = tmp_path / "again.py"
    command = [str(tmp_path / "rows.csv"), "--json", "--code", str(code), *options]
    assert main(command) == 0, capsys.readouterr().err
    numbers = json.loads(capsys.readouterr().out)
    text = code.read_text("utf-8")
    assert text == numbers["code"] + "\n"
    found = {}
    exec(text, found)
    (model,) = numbers["models"]
    for key in ("estimate", "low", "high"):
        again = getattr(found["error"], key)
        assert again == pytest.approx(model["errors"][0][key], rel=1e-12)
    assert found["test"].pvalue == model["test"]["pvalue"]
    assert found["advice"].kind == model["advice"]["kind"]
    return numbers, found


@pytest.mark.slow
def test_one_event_with_percents_weights_segments_and_dates(tmp_path, capsys):
    rng = np.random.default_rng(0)
    n = 300
    score = rng.random(n).round(4)
    frame = pd.DataFrame(
        {
            "y": np.where(rng.random(n) < score**1.5, "yes", "no"),
            "p": [f"{100 * p:.2f} %".replace(".", ",") for p in score],
            "w": rng.integers(0, 4, n),
            "site": rng.choice(["a", "NA", "c"], n),
            "day": pd.date_range("2024-01-01", periods=n).strftime("%d.%m.%Y"),
        }
    )
    frame.loc[:4, "p"] = None
    frame.loc[5:9, "y"] = "open"
    numbers, found = _run(
        tmp_path,
        capsys,
        frame,
        *("--label", "y", "--positive", "yes", "--negative", "no", "--score", "p"),
        *("--weight", "w", "--segment", "site", "--time", "day"),
        *("--missing", "drop"),
        sep=";",
    )
    (model,) = numbers["models"]
    assert len(found["p"]) == numbers["n_rows"] == (frame["w"][10:] > 0).sum()
    by_site = {row["segment"]: row["bias"] for row in model["segments"]}
    table = found["by_group"]
    again = dict(zip(table.group.tolist(), table.bias.tolist(), strict=True))
    assert again == pytest.approx(by_site)
    by_month = {row["period"]: row["bias"] for row in model["periods"]}
    table = found["by_period"]
    again = dict(zip(table.group.tolist(), table.bias.tolist(), strict=True))
    assert again == pytest.approx(by_month)


@pytest.mark.slow
def test_one_event_and_columns_without_a_name(tmp_path, capsys):
    rng = np.random.default_rng(1)
    score = rng.random(80).round(4)
    frame = pd.DataFrame({"y": (rng.random(80) < score).astype(int), "p": score})
    numbers, _ = _run(tmp_path, capsys, frame)
    assert numbers["assumed"] == [
        "Taken: y as the label and p as the score.",
        "The event is y = 1.",
    ]


@pytest.mark.slow
def test_three_classes(tmp_path, capsys):
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([1, 1, 1], 200)
    labels = [rng.choice(["a", "b", "c"], p=row) for row in shares]
    frame = pd.DataFrame(shares, columns=["p_a", "p_b", "p_c"]).assign(y=labels)
    _run(tmp_path, capsys, frame, "--label", "y", "--score", "p_*")


@pytest.mark.slow
def test_times_to_an_event(tmp_path, capsys):
    rng = np.random.default_rng(0)
    risk = rng.random(300).round(4)
    years = rng.exponential(1 / (0.2 + risk)).round(3) + 0.001
    frame = pd.DataFrame(
        {"years": years, "left": (rng.random(300) < 0.7).astype(int), "risk": risk}
    )
    options = ["--time-to-event", "years", "--event", "left", "--horizon", "1"]
    _run(tmp_path, capsys, frame, *options, "--score", "risk")
