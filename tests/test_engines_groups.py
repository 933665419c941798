"""From `fit` to `apply` by segment: what one returns the other takes, on every
engine.
"""

import numpy as np
import pytest
from _catalog import refused
from _engine_tables import column, every_engine, native
from sklearn.base import clone

from skcalib import (
    BetaCalibration,
    GroupwiseRecalibrator,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    SplineCalibration,
)
from skcalib.binning import UniqueScores

pytest.importorskip("narwhals")
pytest.importorskip("pyarrow")
from skcalib.engines import PredictionTable  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:Dask support is moving out of Narwhals:FutureWarning"
    ),
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]
NAMES = ["FR", "IT", None, "tiny", "one class"]


def rows(n=1500):
    rng = np.random.default_rng(3)
    score = np.round(rng.beta(1, 2, n), 3)
    place = rng.choice(5, n, p=[0.5, 0.3, 0.17, 0.02, 0.01])
    label = (rng.random(n) < score ** (1 + place / 3)).astype(np.int64)
    label[place == 4] = 0
    return {"p": score, "y": label, "id": np.arange(n), "g": [NAMES[k] for k in place]}


def chosen(columns, name):
    return np.array([value == name for value in columns["g"]])


@pytest.mark.slow
@every_engine
def test_a_dict_goes_from_fit_to_apply(engine):
    columns = rows()
    kept = ~chosen(columns, "one class")
    part = {
        name: [value for value, is_in in zip(values, kept, strict=True) if is_in]
        for name, values in columns.items()
    }
    data = native(engine, **columns)
    for recalibrator in (PlattScaling(), HistogramBinning(UniqueScores()))[
        : 1 if engine == "dask" else 2
    ]:
        fitted = PredictionTable(
            native(engine, **part), label="y", score="p", by="g"
        ).fit(recalibrator)
        assert list(fitted) == ["FR", "IT", "tiny", None]
        table = PredictionTable(data, label="y", score="p", by="g")
        default = clone(recalibrator).fit(columns["p"], columns["y"])
        for given in (None, default):
            forecast = column(
                table.apply(fitted, output="q", default=given), "q", by="id"
            )
            for name in NAMES:
                own, model = chosen(columns, name), fitted.get(name, given)
                wanted = (
                    np.full(own.sum(), np.nan)
                    if model is None
                    else model.predict_proba(columns["p"][own])[:, 1]
                )
                np.testing.assert_allclose(forecast[own], wanted, rtol=0, atol=1e-12)


@pytest.mark.slow
@every_engine
@pytest.mark.parametrize(
    "inner",
    [IsotonicCalibration(), PlattScaling(), HistogramBinning(4), SplineCalibration()],
    ids=str,
)
def test_groupwise_is_that_of_memory(engine, inner):
    if engine in ("dask", "spark", "ibis") and not isinstance(
        inner, IsotonicCalibration
    ):
        return
    columns = rows()
    known = ~chosen(columns, None)
    groups = np.array([name or "none" for name in columns["g"]], dtype=object)[known]
    model = GroupwiseRecalibrator(inner, groups=None, min_group_size=50, shrinkage=20.0)
    data = native(
        engine,
        **{
            name: [v for v, k in zip(values, known, strict=True) if k]
            for name, values in columns.items()
        },
    )
    table = PredictionTable(data, label="y", score="p", by="g")
    fitted = table.fit(model)
    wanted = clone(model).fit(columns["p"][known], columns["y"][known], groups=groups)
    assert (
        fitted.groups_.tolist()
        == wanted.groups_.tolist()
        == ["FR", "IT", "one class", "tiny"]
    )
    np.testing.assert_allclose(fitted.group_sizes_, wanted.group_sizes_, rtol=1e-12)
    own = [
        name
        for name in fitted.groups_
        if fitted.recalibrators_[name] is not fitted.pooled_recalibrator_
    ]
    assert own == ["FR", "IT"]
    forecast = column(table.apply(fitted, output="q"), "q", by="id")
    exact = isinstance(inner, IsotonicCalibration | HistogramBinning)
    found = wanted.predict_proba(columns["p"][known], groups=groups)[:, 1]
    np.testing.assert_allclose(forecast, found, rtol=0, atol=1e-12 if exact else 1e-9)
    assert np.max(np.abs(found - columns["p"][known])) > 0.05


def test_a_parameter_set_after_the_fit_asks_for_a_new_fit():
    table = PredictionTable(native("duckdb", **rows()), label="y", score="p", by="g")
    fitted = table.fit(
        GroupwiseRecalibrator(
            PlattScaling(), groups=None, min_group_size=50, shrinkage=20.0
        )
    )
    scores, groups = np.array([0.2, 0.7]), ["FR", "IT"]
    before = fitted.predict_proba(scores, groups=groups)
    fitted.set_params(shrinkage=3.0)
    for use in (
        lambda: fitted.predict_proba(scores, groups=groups),
        lambda: table.apply(fitted, output="q"),
    ):
        with refused(
            ValueError,
            "GroupwiseRecalibrator was fitted with shrinkage=20.0",
            "Fit it again",
        ):
            use()
    fitted.set_params(shrinkage=20.0)
    np.testing.assert_array_equal(fitted.predict_proba(scores, groups=groups), before)


def test_rows_without_a_group_and_with_weights():
    columns = rows()
    weight = np.random.default_rng(0).integers(1, 4, len(columns["p"])).astype(float)
    data = native("duckdb", w=weight, **columns)
    table = PredictionTable(data, label="y", score="p", weight="w", by="g")
    fitted = table.fit(
        GroupwiseRecalibrator(IsotonicCalibration(), groups=None, min_group_size=10)
    )
    pooled = IsotonicCalibration().fit(columns["p"], columns["y"], sample_weight=weight)
    grid = np.linspace(0, 1, 99)
    for name in ("FR", None):
        own = chosen(columns, name)
        alone = IsotonicCalibration().fit(
            columns["p"][own], columns["y"][own], sample_weight=weight[own]
        )
        forecast = column(table.apply(fitted, output="q"), "q", by="id")[own]
        wanted = (pooled if name is None else alone).predict_proba(columns["p"][own])[
            :, 1
        ]
        np.testing.assert_allclose(forecast, wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        fitted.pooled_recalibrator_.predict_proba(grid),
        pooled.predict_proba(grid),
        atol=1e-12,
    )


def test_several_columns_and_types_that_python_changes():
    columns = rows()
    data = native("duckdb", **columns).project(
        "p, y, id, CAST('9000000000000.00' || (id % 3) AS DECIMAL(18, 3)) AS d, "
        "make_timestamp_ns(1700000000000000000 + id % 2) AS t"
    )
    table = PredictionTable(data, label="y", score="p", by=["d", "t"])
    fitted = table.fit(IsotonicCalibration())
    assert len(fitted) == 6
    forecast = column(table.apply(fitted, output="q"), "q", by="id")
    for a in range(3):
        for b in range(2):
            own = (columns["id"] % 3 == a) & (columns["id"] % 2 == b)
            wanted = (
                IsotonicCalibration()
                .fit(columns["p"][own], columns["y"][own])
                .predict_proba(columns["p"][own])
            )
            np.testing.assert_allclose(forecast[own], wanted[:, 1], rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["duckdb", "polars_lazy"])
def test_many_segments(engine):
    rng = np.random.default_rng(0)
    n = 6_000
    columns = {"p": rng.random(n), "id": np.arange(n), "g": np.arange(n) % 600}
    columns["y"] = (rng.random(n) < columns["p"]).astype(np.int64)
    table = PredictionTable(native(engine, **columns), label="y", score="p", by="g")
    model = PlattScaling().fit(columns["p"], columns["y"])
    maps = {
        k: clone(PlattScaling()).fit(np.array([0.1, 0.4, 0.6, 0.9]), [0, 1, k % 2, 1])
        for k in range(0, 600, 2)
    }
    forecast = column(table.apply(maps, output="q", default=model), "q", by="id")
    for k in (0, 298, 598, 1, 599):
        own = columns["g"] == k
        wanted = maps.get(k, model).predict_proba(columns["p"][own])[:, 1]
        np.testing.assert_allclose(forecast[own], wanted, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_top_label_and_marginal_tables():
    rng = np.random.default_rng(0)
    n, classes = 900, ["cat", "dog", "fish"]
    scores = rng.dirichlet(np.ones(3), n)
    labels = np.array(classes)[
        (rng.random((n, 1)) > scores.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    ]
    columns = {name: scores[:, k] for k, name in enumerate(classes)}
    site = np.arange(n) % 2
    for engine in ("duckdb", "pandas"):
        data = native(engine, y=labels, id=np.arange(n), site=site, **columns)
        names = {"label": "y", "scores": classes, "classes": classes, "by": "site"}
        tables = {
            "top": PredictionTable.top_label(data, **names),
            **PredictionTable.marginal(data, **names),
        }
        for name, table in list(tables.items())[: 2 if engine == "duckdb" else 1]:
            fitted = table.fit(GroupwiseRecalibrator(BetaCalibration(), groups=None))
            assert fitted.groups_.tolist() == [0, 1]
            top = name == "top"
            score = scores.max(axis=1) if top else columns[name]
            event = (
                (labels == np.array(classes)[scores.argmax(axis=1)])
                if top
                else labels == name
            )
            forecast = column(table.apply(fitted, output="q"), "q", by="id")
            by_dict = column(
                table.apply(table.fit(BetaCalibration()), output="q"), "q", by="id"
            )
            for k in (0, 1):
                own = site == k
                wanted = (
                    BetaCalibration()
                    .fit(score[own], event[own].astype(int))
                    .predict_proba(score[own])[:, 1]
                )
                np.testing.assert_allclose(forecast[own], wanted, rtol=0, atol=1e-9)
                np.testing.assert_allclose(by_dict[own], wanted, rtol=0, atol=1e-9)


def test_a_lazy_table_stays_lazy_and_memory_keeps_its_order():
    columns = rows(300)
    for engine in ("duckdb", "polars_lazy", "pandas", "pyarrow", "polars"):
        data = native(engine, **columns)
        table = PredictionTable(data, label="y", score="p", by="g")
        maps = {"FR": PlattScaling().fit(columns["p"], columns["y"])}
        result = table.apply(maps, output="q")
        assert type(result) is type(data)
        if engine in ("pandas", "pyarrow", "polars"):
            assert list(result["id"]) == list(data["id"])


@pytest.mark.parametrize(
    "engine", ["pyarrow", "polars", "polars_lazy", "pandas", "duckdb"]
)
def test_a_column_of_segments_that_is_all_missing(engine):
    columns = rows(300) | {"g": [None] * 300}
    table = PredictionTable(native(engine, **columns), label="y", score="p", by="g")
    fitted = table.fit(HistogramBinning(3))
    assert list(fitted) == [None]
    forecast = column(table.apply(fitted, output="q"), "q", by="id")
    np.testing.assert_allclose(
        forecast, fitted[None].predict_proba(columns["p"])[:, 1], rtol=0, atol=1e-12
    )


def test_what_cannot_be_fitted_or_applied_by_segment_is_refused():
    columns = rows(300)
    data = native("duckdb", **columns)
    model = PlattScaling().fit(columns["p"], columns["y"])
    table, plain = (
        PredictionTable(data, label="y", score="p", by=by) for by in ("g", None)
    )
    for given, message in (
        ({}, "it is empty"),
        ({3: model}, "key of the dict=3 is not a value of the column 'g'"),
    ):
        with pytest.raises(ValueError, match=message):
            table.apply(given, output="q")
    with pytest.raises(ValueError, match="name their columns with by="):
        plain.apply({"FR": model}, output="q")
    with pytest.raises(ValueError, match="default applies only to a dict"):
        table.apply(model, output="q", default=model)
    with pytest.raises(TypeError, match="a fitted recalibrator, found str"):
        table.apply({"FR": "Platt"}, output="q")
    with pytest.raises(ValueError, match="is not a tuple of one value per column"):
        PredictionTable(data, label="y", score="p", by=["g", "id"]).apply(
            {"FR": model}, output="q"
        )
    for groupwise, message in (
        (
            GroupwiseRecalibrator(PlattScaling(), groups=None, merge_small_groups=True),
            "merge_small_groups=True",
        ),
        (
            GroupwiseRecalibrator(PlattScaling(), groups="site"),
            "groups come from two sources",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            table.fit(groupwise)
    with pytest.raises(ValueError, match="name it with by="):
        plain.fit(GroupwiseRecalibrator(PlattScaling(), groups=None))


@pytest.mark.slow
def test_dask_with_empty_parts():
    pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    # In order of the score, so that a filter empties whole parts.
    frame = native("pandas", **rows()).sort_values("p").reset_index(drop=True)
    # Missing values of two kinds are one segment elsewhere; this is about parts.
    frame["g"] = frame["g"].fillna("unknown").replace("one class", "tiny")
    upper = frame[frame["p"] > 0.5]
    parts = dd.from_pandas(frame, npartitions=6)
    parts = parts[parts["p"] > 0.5]
    lengths = parts.map_partitions(len).compute()
    assert 0 in set(lengths)

    options = {"label": "y", "score": "p", "by": "g"}
    table, plain = PredictionTable(parts, **options), PredictionTable(upper, **options)
    statistics, expected = table.bin_statistics(5), plain.bin_statistics(5)
    assert list(statistics) == list(expected)
    for name, found in statistics.items():
        np.testing.assert_array_equal(found.count, expected[name].count)
        np.testing.assert_allclose(found.mean_score, expected[name].mean_score)
    assert table.kuiper() == pytest.approx(plain.kuiper())

    default = PlattScaling().fit(upper["p"], upper["y"])
    fitted = table.fit(default)
    forecast = column(table.apply(fitted, output="q"), "q", by="id")
    plain_forecast = column(plain.apply(plain.fit(default), output="q"), "q", by="id")
    np.testing.assert_allclose(forecast, plain_forecast)

    # No row at all: no segment, and without `by` one error that says so.
    nothing = parts[parts["p"] > 2]
    assert PredictionTable(nothing, **options).bin_statistics(5) == {}
    with pytest.raises(ValueError, match="The table has no valid row"):
        PredictionTable(nothing, label="y", score="p").bin_statistics(5)


def test_a_diagram_of_statistics_names_its_door():
    pytest.importorskip("matplotlib")
    from skcalib.displays import ReliabilityDisplay

    statistics = PredictionTable(
        native("pandas", **rows(300)), label="y", score="p"
    ).bin_statistics(3)
    with pytest.raises(
        TypeError, match=r"found BinStatistics.*ReliabilityDisplay\.from_statistics"
    ):
        ReliabilityDisplay.from_predictions(statistics)
