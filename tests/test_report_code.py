"""The code of a report's advice runs on the rows of the file, and fits what was advised."""

import numpy as np
import pytest

from skcalib import GroupwiseRecalibrator, PlattScaling, PriorShift, TemperatureScaling
from skcalib._report._advice_code import advice_code
from skcalib._report._table import read_table

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


def _fitted(
    path,
    recalibrator,
    *,
    name="score",
    segments=(),
    n_segments=0,
    since=None,
    **columns,
):
    """Return the frame, and what the code of an advice fits to it; None where there is no code."""
    frame = _frame()
    frame.to_csv(path, index=False)
    table = read_table(
        path, **{"label": "y", "scores": ["score"], "positive": "yes", **columns}
    )
    advice = {"recalibrator": recalibrator, "segments": list(segments), "since": since}
    code = advice_code(
        table, {"name": name, "advice": advice, "segments": [{}] * n_segments}
    )
    if code is None:
        return frame, None
    names = {"df": pd.read_csv(path)}
    exec(code, names)
    return frame, names["fitted"]


def _assert_same(fitted, expected, scores, **options):
    assert type(fitted) is type(expected)
    given = (np.asarray(scores)[:50],)
    expected, found = (
        expected.predict_proba(*given, **options),
        fitted.predict_proba(*given, **options),
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "rows.csv")


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
class TestCode:
    def test_one_map(self, path):
        frame, fitted = _fitted(path, "PlattScaling", name="A", names=["A"])
        _assert_same(
            fitted,
            PlattScaling().fit(frame["score"], frame["y"] == "yes"),
            frame["score"],
        )
        frame, fitted = _fitted(
            path, "PlattScaling", label="minus", positive=None, weight="w"
        )
        expected = PlattScaling().fit(
            frame["score"], frame["minus"] == 1, sample_weight=frame["w"]
        )
        _assert_same(fitted, expected, frame["score"])

    @pytest.mark.parametrize(
        ("time", "since", "kept"),
        [
            ("month", "2025-08", lambda frame: frame["month"] >= "2025-08"),
            (
                "wave",
                "wave 10",
                lambda frame: frame["wave"].isin(["wave 10", "wave 11"]),
            ),
            ("period", "10", lambda frame: frame["period"] >= 10),
        ],
    )
    def test_rows_since(self, path, time, since, kept):
        frame, fitted = _fitted(path, "PriorShift", time=time, since=since)
        frame = frame[kept(frame)]
        assert 50 < len(frame) < N
        _assert_same(
            fitted,
            PriorShift().fit(frame["score"], frame["y"] == "yes"),
            frame["score"],
        )

    @pytest.mark.parametrize(
        "own", [['b "1"'], ["a", "c"], ["a", "c", "d"], ["a", 'b "1"', "c", "d"]]
    )
    def test_maps_by_segment(self, path, own):
        name = "GroupwiseRecalibrator(PriorShift())"
        frame, fitted = _fitted(path, name, segment="site", segments=own, n_segments=4)
        groups = [
            site if site in own or len(own) > 2 else "others" for site in frame["site"]
        ]
        expected = GroupwiseRecalibrator(PriorShift()).fit(
            frame["score"], frame["y"] == "yes", groups=groups
        )
        assert sorted(fitted.groups_) == sorted(set(groups))
        _assert_same(fitted, expected, frame["score"], groups=groups[:50])

    def test_segments_that_are_numbers(self, path):
        name = "GroupwiseRecalibrator(PriorShift())"
        frame, fitted = _fitted(
            path, name, segment="number", segments=["2"], n_segments=3
        )
        assert sorted(fitted.groups_) == ["2", "others"]
        assert fitted.group_sizes_.tolist() == [
            (frame["number"] == 2).sum(),
            (frame["number"] != 2).sum(),
        ]

    def test_classes_in_the_order_of_their_labels(self, path):
        given = {"label": "class", "positive": None, "scores": ["p_*"], "name": "p_*"}
        assert (
            _fitted(path, "TemperatureScaling", **given)[1] is None
        )  # no row of the class x
        frame = _frame().rename(columns={"p_x": "p_8"})
        frame["class"] = np.random.default_rng(0).choice([8, 9, 10], N)
        frame.to_csv(path, index=False)
        table = read_table(path, label="class", scores=["p_*"])
        advice = {"recalibrator": "TemperatureScaling", "segments": [], "since": None}
        names = {"df": pd.read_csv(path)}
        exec(
            advice_code(table, {"name": "p_*", "advice": advice, "segments": []}), names
        )
        scores = frame[["p_8", "p_9", "p_10"]]
        assert names["fitted"].classes_.tolist() == [8, 9, 10]
        _assert_same(
            names["fitted"], TemperatureScaling().fit(scores, frame["class"]), scores
        )

    def test_nothing_advised(self, path):
        assert _fitted(path, None)[1] is None
