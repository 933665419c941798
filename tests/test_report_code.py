"""The code of a report's advice runs on the rows of the file, and fits what was
advised.
"""

import numpy as np
import pytest

from skcalib import GroupwiseRecalibrator, PlattScaling, PriorShift, TemperatureScaling
from skcalib._report._advice_code import advice_code
from skcalib._report._table import read_table

pytestmark = pytest.mark.slow

pd = pytest.importorskip(
    "pandas", reason="the report needs pandas and pyarrow (extra report)"
)
pytest.importorskip(
    "pyarrow", reason="the report needs pandas and pyarrow (extra report)"
)

N = 400


def _frame():
    rng = np.random.default_rng(0)
    p = rng.random((N, 3)).round(3) + 0.001
    frame = pd.DataFrame(
        p / p.sum(axis=1, keepdims=True), columns=["p_10", "p_9", "p_x"]
    )
    frame["class"] = rng.choice([9, 10], N)
    frame["score"], frame["q"] = rng.random(N), rng.random(N)
    frame["y"] = rng.choice(["no", "yes"], N)
    frame["minus"] = rng.choice([-1, 1], N)
    frame["site"] = rng.choice(["a", 'b "1"', "c", "d"], N)
    frame["number"] = rng.choice([1, 2, 3], N)
    frame["w"] = rng.integers(1, 4, N)
    frame["month"] = [f"2025-{month:02d}" for month in rng.integers(1, 13, N)]
    frame["wave"] = [f"wave {wave}" for wave in rng.integers(7, 12, N)]
    frame["period"] = rng.integers(7, 12, N)
    return frame


ADVICE = {"segments": [], "others": None, "since": None, "column": None}


def _calibrated(
    path, monkeypatch, recalibrator, *, name="score", n_segments=0, **given
):
    """Return the frame of the file, and what the code of an advice writes for new
    scores; None where there is no code.
    """
    advice = {**ADVICE, "recalibrator": recalibrator}
    for key in ("segments", "others", "since"):
        if key in given:
            advice[key] = given.pop(key)
    frame = given.pop("frame", None)
    if frame is None:
        frame = _frame()
    separator = given.pop("separator", ",")
    frame.to_csv(path, index=False, sep=separator)
    columns = {"label": "y", "scores": ["score"], "positive": "yes", **given}
    table = read_table(path, **columns)
    if advice["segments"]:
        advice["column"] = table.segment_name
    rows = [{"column": table.segment_name}] * n_segments
    model = {"name": name, "advice": advice, "segments": rows}
    code = advice_code(table, model)
    if code is None:
        return frame, None
    monkeypatch.chdir(path.parent)
    new = frame.iloc[::-1].drop(columns=["y", "class"])
    new.to_csv("new_scores.csv", index=False, sep=separator)
    exec(code, {})
    calibrated = pd.read_csv("calibrated.csv").iloc[::-1]
    assert len(calibrated) == len(frame)
    return frame, calibrated.filter(like="calibrated").to_numpy().squeeze()


def _assert_same(found, fitted, scores, **options):
    expected = fitted.predict_proba(scores, **options)
    if expected.shape[1] == 2:
        expected = expected[:, 1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.csv"


def test_one_map(path, monkeypatch):
    frame, found = _calibrated(path, monkeypatch, "PlattScaling", name="A", names=["A"])
    fitted = PlattScaling().fit(frame["score"], frame["y"] == "yes")
    _assert_same(found, fitted, frame["score"])
    frame, found = _calibrated(
        path, monkeypatch, "PlattScaling", label="minus", positive=None, weight="w"
    )
    fitted = PlattScaling().fit(
        frame["score"], frame["minus"] == 1, sample_weight=frame["w"]
    )
    _assert_same(found, fitted, frame["score"])


def test_another_separator_and_parquet(path, monkeypatch):
    frame, found = _calibrated(path, monkeypatch, "PlattScaling", separator=";")
    fitted = PlattScaling().fit(frame["score"], frame["y"] == "yes")
    _assert_same(found, fitted, frame["score"])
    frame.to_parquet(path.with_suffix(".parquet"))
    table = read_table(
        path.with_suffix(".parquet"), label="y", scores=["score"], positive="yes"
    )
    advice = {**ADVICE, "recalibrator": "PlattScaling"}
    code = advice_code(table, {"name": "score", "advice": advice, "segments": []})
    frame.to_csv("new_scores.csv", index=False)
    exec(code, {})
    found = pd.read_csv("calibrated.csv")["calibrated"]
    _assert_same(found, fitted, frame["score"])


@pytest.mark.parametrize(
    ("time", "since", "is_later"),
    [
        ("month", "2025-08", lambda frame: frame["month"] >= "2025-08"),
        ("wave", "wave 10", lambda frame: frame["wave"].isin(["wave 10", "wave 11"])),
        ("period", "10", lambda frame: frame["period"] >= 10),
    ],
)
def test_rows_since(path, monkeypatch, time, since, is_later):
    frame, found = _calibrated(path, monkeypatch, "PriorShift", time=time, since=since)
    later = frame[is_later(frame)]
    assert 50 < len(later) < N
    fitted = PriorShift().fit(later["score"], later["y"] == "yes")
    _assert_same(found, fitted, frame["score"])


@pytest.mark.parametrize(
    "own", [['b "1"'], ["a", "c"], ["a", "c", "d"], ["a", 'b "1"', "c", "d"]]
)
def test_maps_by_segment_where_the_others_share_one(path, monkeypatch, own):
    frame, found = _calibrated(
        path,
        monkeypatch,
        "GroupwiseRecalibrator(PriorShift())",
        segment="site",
        segments=own,
        others="shared",
        n_segments=4,
    )
    groups = [
        site if site in own or len(own) > 2 else "others" for site in frame["site"]
    ]
    fitted = GroupwiseRecalibrator(PriorShift()).fit(
        frame["score"], frame["y"] == "yes", groups=groups
    )
    _assert_same(found, fitted, frame["score"], groups=groups)


@pytest.mark.parametrize("own", [['b "1"'], ["a", "c"]])
@pytest.mark.parametrize("weight", [None, "w"])
def test_only_the_segments_that_need_it_are_fitted(path, monkeypatch, own, weight):
    frame, found = _calibrated(
        path,
        monkeypatch,
        "GroupwiseRecalibrator(PriorShift())",
        segment="site",
        segments=own,
        others="unchanged",
        n_segments=4,
        weight=weight,
    )
    expected = frame["score"].to_numpy().copy()
    for name in own:
        rows = (frame["site"] == name).to_numpy()
        part = frame[rows]
        fitted = PriorShift().fit(
            part["score"],
            part["y"] == "yes",
            sample_weight=None if weight is None else part["w"],
        )
        expected[rows] = fitted.predict_proba(part["score"])[:, 1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_new_rows_may_have_none_of_the_segments(path, monkeypatch):
    frame = _frame()
    frame.to_csv(path, index=False)
    table = read_table(
        path, label="y", scores=["score"], positive="yes", segment="site"
    )
    advice = {**ADVICE, "recalibrator": "GroupwiseRecalibrator(PriorShift())"}
    advice |= {"segments": ["a"], "others": "unchanged", "column": "site"}
    rows = [{"column": "site"}] * 4
    code = advice_code(table, {"name": "score", "advice": advice, "segments": rows})
    monkeypatch.chdir(path.parent)
    frame[frame["site"] != "a"].to_csv("new_scores.csv", index=False)
    exec(code, {})
    found = pd.read_csv("calibrated.csv")
    assert (found["calibrated"] == found["score"]).all()


def test_segments_that_are_numbers_missing_or_crossed(path, monkeypatch):
    frame = _frame()
    frame["number"] = frame["number"].where(frame["number"] != 3)
    for segment, own, is_own in (
        ("number", "(missing)", frame["number"].isna()),
        ("number", "2.0", frame["number"] == 2),
        (
            ["number", "site"],
            "number = 2.0, site = a",
            (frame["number"] == 2) & (frame["site"] == "a"),
        ),
    ):
        frame, found = _calibrated(
            path,
            monkeypatch,
            "GroupwiseRecalibrator(PriorShift())",
            frame=frame,
            segment=segment,
            segments=[own],
            others="unchanged",
            n_segments=3,
        )
        part = frame[is_own]
        fitted = PriorShift().fit(part["score"], part["y"] == "yes")
        expected = np.where(
            is_own, fitted.predict_proba(frame["score"])[:, 1], frame["score"]
        )
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_classes_in_the_order_of_their_labels(path, monkeypatch):
    given = {"label": "class", "positive": None, "scores": ["p_*"], "name": "p_*"}
    # no row of the class x
    assert _calibrated(path, monkeypatch, "TemperatureScaling", **given)[1] is None
    frame = _frame().rename(columns={"p_x": "p_8"})
    frame["class"] = np.random.default_rng(0).choice([8, 9, 10], N)
    frame, found = _calibrated(
        path, monkeypatch, "TemperatureScaling", frame=frame, **given
    )
    scores = frame[["p_8", "p_9", "p_10"]]
    _assert_same(found, TemperatureScaling().fit(scores, frame["class"]), scores)


def test_nothing_advised(path, monkeypatch):
    assert _calibrated(path, monkeypatch, None)[1] is None
