"""The order of time is never guessed; files that are read stay as they are; PDF."""

import numpy as np
import pytest

from skcalib.__main__ import main
from skcalib._report import _command, _pdf
from skcalib._report._error import ReportError
from skcalib._report._table import read_table
from skcalib._report._times import named_periods

pytestmark = pytest.mark.slow

_REASON = "the report needs pandas and pyarrow (extra report)"
pd = pytest.importorskip("pandas", reason=_REASON)
pytest.importorskip("pyarrow", reason=_REASON)


def _drift(n=1200, seed=0, shuffled=True):
    """Return scores that are 20 points too low in the second of two months."""
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.1, 0.7, n).round(4)
    late = np.arange(n) >= n // 2
    y = (rng.random(n) < score + 0.2 * late).astype(int)
    month = np.where(late, "2024-02", "2024-01")
    frame = pd.DataFrame(
        {
            "y": y,
            "p": score,
            "q": score,
            "month": month,
            "region": rng.choice(["a", "b"], n),
            "shop": rng.choice(["c", "d"], n),
            "w": rng.integers(1, 3, n),
        }
    )
    if shuffled:
        frame = frame.sample(frac=1, random_state=1)
    return frame


def _report(capsys, path, *options):
    """Return the exit status of a report as JSON, its output and its error."""
    command = ["report", str(path), "--label", "y", "--score", "p", *options]
    status = main(command)
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def _summary(capsys, path, renamed, *options):
    import json

    status, out, err = _report(capsys, path, "--json", "--time", "month", *options)
    if status == 2:
        return err
    (model,) = json.loads(out)["models"]
    words = model["summary"]
    for word, month in renamed.items():
        words = words.replace(word, month)
    return words


# --- Order ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        ("pre", "post"),
        pytest.param(("X", "Z"), marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("shuffled", [True, False])
def test_renamed_periods_give_the_same_sentences_or_a_refusal(
    tmp_path, capsys, names, shuffled
):
    frame = _drift(shuffled=shuffled)
    frame.to_csv(tmp_path / "months.csv", index=False)
    expected = _summary(capsys, tmp_path / "months.csv", {})
    assert "from 2024-02 on" in expected
    renamed = dict(zip(("2024-01", "2024-02"), names, strict=True))
    path = tmp_path / "words.csv"
    frame.assign(month=frame["month"].map(renamed)).to_csv(path, index=False)
    back = {f" {word}": f" {month}" for month, word in renamed.items()}
    found = _summary(capsys, path, back)
    if shuffled:
        assert "strings have no chronological order" in found
        assert "--time-order" in found
        found = _summary(capsys, path, back, "--time-order", ",".join(names))
    assert found == expected


def test_words_in_runs_have_the_order_of_the_file_and_it_is_said(tmp_path):
    frame = _drift(shuffled=False)
    frame["month"] = frame["month"].map({"2024-01": "pre", "2024-02": "post"})
    frame.to_csv(tmp_path / "x.csv", index=False)
    table = read_table(tmp_path / "x.csv", label="y", scores=["p"], time="month")
    assert table.period_order == ["pre", "post"]
    (note,) = (note for note in table.notes if "order" in note)
    assert note == (
        "The periods of month are in the order of the file: pre, post. If this is not"
        " their chronological order, give it with --time-order."
    )
    table = read_table(
        tmp_path / "x.csv",
        label="y",
        scores=["p"],
        time="month",
        time_order=["post", "pre"],
    )
    assert table.period_order == ["post", "pre"]
    assert not any("order of the file" in note for note in table.notes)


def test_seasons_and_versions_have_an_order_where_all_numbers_agree():
    def order(*names):
        column = np.array([*names, names[0]], dtype=object)
        return named_periods(column, "t").order

    assert order("2024/25", "2023/24", "2022/23") == ["2022/23", "2023/24", "2024/25"]
    assert order("v1.10", "v1.9") == ["v1.9", "v1.10"]
    with pytest.raises(ReportError, match="strings have no chronological order"):
        order("v1.9", "v2.0", "v1.10")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--time-order", "a,b"], "name the column with --time"),
        (["--time", "month", "--time-order", "2024-01"], "does not name 2024-02"),
        (
            ["--time", "month", "--time-order", "2024-01,2024-02,2024-03"],
            "names 2024-03, but column 'month' contains",
        ),
        (["--time", "month", "--time-order", "2024-01,2024-01"], "a period twice"),
        (["--weight", "y"], "--weight y is the column of the labels"),
        (["--segment", "y"], "--segment y is the column of the labels"),
        (["--time", "y"], "--time y is the column of the labels"),
        (["--cluster", "y"], "--cluster y is the column of the labels"),
        (["--weight", "p"], "--weight p is a column of scores"),
        (
            ["--tolerance", "0"],
            "--tolerance must be above 0 and below 100 percentage points",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path, capsys, options, message):
    _drift(60).to_csv(tmp_path / "x.csv", index=False)
    status, out, err = _report(capsys, tmp_path / "x.csv", "--json", *options)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


# --- Several columns of segments ------------------------------------------------------


def test_several_columns_of_segments_and_their_crossing(tmp_path):
    frame = _drift(400)
    frame.to_csv(tmp_path / "x.csv", index=False)
    table = read_table(
        tmp_path / "x.csv", label="y", scores=["p"], segment=["region", "shop"]
    )
    assert list(table.segmentations) == ["region", "shop", "region × shop"]
    assert set(table.segmentations["region"]) == {"region = a", "region = b"}
    crossed = "region = " + frame["region"] + ", shop = " + frame["shop"]
    assert table.segmentations["region × shop"].tolist() == crossed.tolist()
    one = read_table(tmp_path / "x.csv", label="y", scores=["p"], segment=["region"])
    assert set(one.segments) == {"a", "b"}


def test_a_crossing_with_too_many_segments_is_left_out_with_a_note(tmp_path):
    frame = _drift(1200)
    frame["first"], frame["second"] = np.arange(1200) % 40, np.arange(1200) % 31
    frame.to_csv(tmp_path / "x.csv", index=False)
    table = read_table(
        tmp_path / "x.csv", label="y", scores=["p"], segment=["first", "second"]
    )
    assert list(table.segmentations) == ["first", "second"]
    assert "The combination of first, second has 1,200 groups and is left out" in str(
        table.notes
    )


# --- Files ----------------------------------------------------------------------------


def test_no_file_that_is_read_is_overwritten(tmp_path, capsys):
    frame = _drift(60)
    for name in ("a.csv", "b.csv", "base.csv"):
        frame.to_csv(tmp_path / name, index=False)
    (tmp_path / "link.html").symlink_to(tmp_path / "b.csv")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for file, options in (
        (tmp_path / "?.csv", ["-o", str(tmp_path / "b.csv")]),
        (tmp_path / "*.csv", ["-o", str(tmp_path / "link.html")]),
        (
            tmp_path / "a.csv",
            ["--baseline", str(tmp_path / "bas*.csv"), "-o", f"{tmp_path}/base.csv"],
        ),
    ):
        status, _, err = _report(capsys, file, *options)
        assert status == 2
        assert "is the input: the page would overwrite it" in err
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert after == before


def test_a_pdf_is_a_pdf_or_refused_by_name(tmp_path, capsys, monkeypatch):
    for package in ("matplotlib", "jinja2"):
        pytest.importorskip(package, reason=f"the page needs {package}")
    _drift(60).to_csv(tmp_path / "x.csv", index=False)
    output = tmp_path / "credit.pdf"
    monkeypatch.setattr(_command, "pdf_printer", lambda: None)
    status, _, err = _report(capsys, tmp_path / "x.csv", "-o", str(output))
    assert status == 2
    assert "credit.pdf needs Chromium or WeasyPrint" in err
    assert "-o credit.html" in err
    assert not output.exists()
    monkeypatch.undo()
    if _pdf.pdf_printer() is None:
        pytest.skip("neither Chromium nor WeasyPrint is installed")
    status, _, err = _report(capsys, tmp_path / "x.csv", "-o", str(output))
    assert status == 0, err
    assert output.read_bytes().startswith(b"%PDF-")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["credit.pdf", "x.csv"]


def test_a_browser_that_fails_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(_pdf, "pdf_printer", lambda: "/bin/false")
    with pytest.raises(ReportError, match="/bin/false could not print the page"):
        _pdf.write_pdf("<p>x</p>", tmp_path / "x.pdf")
    assert not list(tmp_path.iterdir())


# --- Seed -----------------------------------------------------------------------------


def test_the_seed_changes_resamples_and_folds(tmp_path, capsys):
    """As the help says; gains depend on the folds alone."""
    import json

    _drift(300).to_csv(tmp_path / "x.csv", index=False)
    found = []
    for seed in ("0", "0", "1"):
        _, out, _ = _report(capsys, tmp_path / "x.csv", "--json", "--seed", seed)
        (model,) = json.loads(out)["models"]
        gains = {row["name"]: row["gain"] for row in model["recalibrators"]}
        found.append((gains["PlattScaling"], model["errors"][0]["low"]))
    assert found[0] == found[1]
    assert found[0][0] != found[2][0]


# --- New scores without labels ----------------------------------------------------


def test_expected_performance_is_that_of_the_library(tmp_path, capsys):
    import json

    from skcalib.monitoring import estimated_performance

    frame, new = _drift(600), _drift(300, seed=1)
    frame.to_csv(tmp_path / "x.csv", index=False)
    new[["p"]].to_csv(tmp_path / "new.csv", index=False)
    options = ["--json", "--unlabelled", str(tmp_path / "new.csv")]
    status, out, err = _report(capsys, tmp_path / "x.csv", *options)
    assert status == 0, err
    (model,) = json.loads(out)["models"]
    expected = estimated_performance(frame["y"], frame["p"], new["p"])
    assert [row["metric"] for row in model["expected"]["rows"]] == [*expected.metric]
    for name in ("estimate", "low", "high"):
        found = [row[name] for row in model["expected"]["rows"]]
        assert found == pytest.approx(getattr(expected, name).tolist())
    assert model["expected"]["n_new"] == 300
    new[["q"]].to_csv(tmp_path / "new.csv", index=False)
    status, _, err = _report(capsys, tmp_path / "x.csv", *options)
    assert status == 2
    assert "has no column 'p'" in err
    status, _, err = _report(
        capsys, tmp_path / "x.csv", *options, "-o", str(tmp_path / "new.csv")
    )
    assert status == 2
    assert "is the input" in err


def test_the_page_shows_the_expected_performance(tmp_path, capsys):
    for package in ("matplotlib", "jinja2"):
        pytest.importorskip(package, reason=f"the page needs {package}")
    _drift(200).to_csv(tmp_path / "x.csv", index=False)
    _drift(200).drop(columns="y").to_csv(tmp_path / "new.csv", index=False)
    options = ["--unlabelled", str(tmp_path / "new.csv")]
    output = tmp_path / "page.html"
    status, _, err = _report(capsys, tmp_path / "x.csv", *options, "-o", str(output))
    assert status == 0, err
    text = output.read_text("utf-8")
    assert "New scores without labels" in text
    assert "expected on 200 new samples" in text


def test_the_caption_speaks_of_a_band_only_where_one_is_drawn(tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    from skcalib._report._pictures import reliability_picture

    _drift(200).to_csv(tmp_path / "x.csv", index=False)
    one = read_table(tmp_path / "x.csv", label="y", scores=["p"])
    two = read_table(tmp_path / "x.csv", label="y", scores=["p", "q"])
    assert "in the grey band" in reliability_picture(one, 0).caption
    assert "grey band" not in reliability_picture(two, 0).caption
