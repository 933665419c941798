"""Forecasts in the engine are those of `predict_proba`."""

import numpy as np
import pytest
from _engine_tables import column, every_engine, every_local_engine, native
from sklearn.base import clone

from skcalib import (
    BetaCalibration,
    ClasswiseTemperatureScaling,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    GroupwiseRecalibrator,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    PriorShift,
    QuadraticScaling,
    ScalingBinning,
    SplineCalibration,
    StackedRecalibrator,
    TemperatureScaling,
    UniformMassBinning,
    VectorScaling,
    VennAbers,
)
from skcalib.binning import EqualWidth, UniqueScores

pytest.importorskip("narwhals")
pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")
from skcalib.engines import PredictionTable  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:Dask support is moving out of Narwhals:FutureWarning"
    ),
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

RECALIBRATORS = [
    HistogramBinning(),
    HistogramBinning(EqualWidth(7)),
    HistogramBinning(UniqueScores()),  # hundreds of pieces
    UniformMassBinning(9),
    ScalingBinning(),
    IsotonicCalibration(),
    IsotonicCalibration(centered=True),
    PlattScaling(),
    PlattScaling(clip=0.01),
    BetaCalibration(),
    QuadraticScaling(),
    TemperatureScaling(),
    SplineCalibration(),
    VennAbers(),
    VennAbers(max_n_knots=20),
    PriorShift(target_prior=[0.4, 0.6]),
    VectorScaling(),
    MatrixScaling(),
    DirichletCalibration(),
    ClasswiseTemperatureScaling(),
    EnsembleTemperatureScaling(),
    StackedRecalibrator(),
    GroupwiseRecalibrator(PlattScaling(), groups="predicted_class"),
]


def training_rows():
    rng = np.random.default_rng(0)
    scores = np.concatenate(
        [rng.random(400), rng.beta(0.3, 20, 200), np.round(rng.random(100), 1), [0, 1]]
    )
    return scores, (rng.random(len(scores)) < scores**1.5).astype(int)


def table_rows(fitted=()):
    """Return scores at and around everything that a map depends on, and invalid ones;
    and an identifier.
    """
    rng = np.random.default_rng(1)
    special = [
        0.0,
        1.0,
        5e-324,
        1e-300,
        1e-16,
        2.0**-52,
        1 - 2.0**-53,
        0.5,
        np.nextafter(0.5, 1),
        2.0**-41,
        2.0**-5,
    ]
    train, _ = training_rows()
    near = np.concatenate(
        [
            train[:150],
            np.nextafter(train[:150], 0),
            np.nextafter(train[:150], 1),
            *fitted,
        ]
    )
    scores = np.concatenate(
        [special, rng.random(300), rng.beta(0.1, 5, 200), near.clip(0, 1)]
    ).tolist()
    scores += [None, float("nan"), -0.1, 1.1, float("inf"), -float("inf")]
    return {
        "p": scores,
        "id": list(range(len(scores))),
        "name": [f"row {i}" for i in range(len(scores))],
    }


def expected(recalibrator, scores):
    scores = np.array([np.nan if value is None else value for value in scores])
    valid = (scores >= 0) & (scores <= 1)
    forecast = np.full(len(scores), np.nan)
    forecast[valid] = recalibrator.predict_proba(scores[valid])[:, 1]
    return forecast


@pytest.mark.slow
@every_engine
def test_forecasts_are_those_of_predict_proba(engine):
    scores, y = training_rows()
    columns = table_rows()
    data = native(engine, **columns)
    table = PredictionTable(data, label="id", score="p")
    for recalibrator in RECALIBRATORS[:: {"dask": 3, "spark": 2}.get(engine, 1)]:
        fitted = clone(recalibrator).fit(scores, y)
        result = table.apply(fitted, output="calibrated")
        assert type(result) is type(data)
        np.testing.assert_allclose(
            column(result, "calibrated", by="id"),
            expected(fitted, columns["p"]),
            rtol=0,
            atol=1e-12,
            err_msg=repr(fitted),
        )
    assert list(nw_columns(result)) == ["p", "id", "name", "calibrated"]


def nw_columns(table):
    import narwhals.stable.v2 as nw

    return nw.from_native(table).collect_schema().names()


@every_local_engine
def test_scores_that_are_missing_or_out_of_range_give_null(engine):
    import narwhals.stable.v2 as nw

    scores, y = training_rows()
    data = native(engine, p=[0.5, None, float("nan"), -0.1, 1.5], id=[0, 1, 2, 3, 4])
    table = PredictionTable(data, label="id", score="p")
    for recalibrator in (PlattScaling(), HistogramBinning(), VennAbers()):
        result = table.apply(recalibrator.fit(scores, y), output="q")
        n_null = (
            nw.from_native(result)
            .lazy()
            .select(nw.col("q").is_null().cast(nw.Int64).sum())
            .collect()["q"][0]
        )
        assert n_null == 4


WITH_FLOOR = [
    PlattScaling(),
    BetaCalibration(),
    QuadraticScaling(),
    TemperatureScaling(),
    SplineCalibration(),
    VectorScaling(),
    DirichletCalibration(),
    ClasswiseTemperatureScaling(),
    EnsembleTemperatureScaling(),
]


def votes(seed=3):
    """Return scores like those of a forest, with wrong labels at 0 and 1: they pay for
    a floor.
    """
    rng = np.random.default_rng(seed)
    scores = np.round(rng.beta(0.4, 0.4, 800) * 20) / 20
    return scores, (rng.random(800) < 0.06 + 0.88 * scores).astype(int)


@every_engine
def test_forecasts_above_a_learned_floor(engine):
    columns = table_rows()
    table = PredictionTable(native(engine, **columns), label="id", score="p")
    for recalibrator in WITH_FLOOR[:: {"dask": 3, "spark": 3}.get(engine, 1)]:
        fitted = clone(recalibrator).fit(*votes())
        assert fitted.floor_ > 0
        forecast = column(table.apply(fitted, output="q"), "q", by="id")
        np.testing.assert_allclose(
            forecast,
            expected(fitted, columns["p"]),
            rtol=0,
            atol=1e-12,
            err_msg=repr(fitted),
        )


@every_engine
def test_sigmoids_that_are_steep_or_end_at_their_bounds(engine):
    columns = table_rows()
    table = PredictionTable(native(engine, **columns), label="id", score="p")
    for slope, intercept in (
        (0.0, -0.3),
        (-1.5, 0.2),
        (1.7, 3.0),
        (25.0, 1.0),
        (1.0, -800.0),
        (-40.0, 900.0),
    ):
        fitted = PlattScaling(clip=None).fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
        fitted.slope_, fitted.intercept_ = slope, intercept
        forecast = column(table.apply(fitted, output="q"), "q", by="id")
        np.testing.assert_allclose(
            forecast,
            expected(fitted, columns["p"]),
            rtol=0,
            atol=1e-12,
            err_msg=str(slope),
        )
        fitted = BetaCalibration(clip=None).fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
        fitted.a_, fitted.b_, fitted.c_ = abs(slope), abs(slope) / 3, intercept
        forecast = column(table.apply(fitted, output="q"), "q", by="id")
        np.testing.assert_allclose(
            forecast,
            expected(fitted, columns["p"]),
            rtol=0,
            atol=1e-12,
            err_msg=str(slope),
        )


@every_local_engine
@pytest.mark.parametrize(
    "recalibrator",
    [
        PlattScaling(),
        BetaCalibration(),
        HistogramBinning(3),
        IsotonicCalibration(),
        ScalingBinning(),
        VennAbers(),
    ],
    ids=lambda recalibrator: type(recalibrator).__name__,
)
def test_each_group_has_its_own_map(engine, recalibrator):
    clean, y_clean = training_rows()
    rough, y_rough = votes()
    scores, y = (
        np.concatenate((clean, rough, clean[:7])),
        np.concatenate((y_clean, y_rough, y_clean[:7])),
    )
    # the last is too small for a map of its own
    groups = np.repeat([4, 7, 9], [len(clean), len(rough), 7])
    model = GroupwiseRecalibrator(recalibrator, groups=None, shrinkage=100.0).fit(
        scores, y, groups=groups
    )
    columns = table_rows()
    group = np.array([4, 7, 9])[np.arange(len(columns["p"])) % 3]
    data = native(engine, g=group, **columns)
    result = PredictionTable(data, label="id", score="p", by="g").apply(
        model, output="q"
    )
    p = np.array([np.nan if value is None else value for value in columns["p"]])
    valid = (p >= 0) & (p <= 1)
    wanted = np.full(len(p), np.nan)
    wanted[valid] = model.predict_proba(p[valid], groups=group[valid])[:, 1]
    np.testing.assert_allclose(column(result, "q", by="id"), wanted, rtol=0, atol=1e-12)


@every_local_engine
def test_groups_come_from_by(engine):
    scores, y = training_rows()
    names = np.array(["a", "b", "c"])[np.arange(len(scores)) % 3]
    model = GroupwiseRecalibrator(PlattScaling(), groups=None, shrinkage=50.0).fit(
        scores, y, groups=names
    )
    p, group = [0.1, 0.7, 0.7, 0.7, None, 0.9], ["a", "b", "c", "never seen", "a", None]
    data = native(engine, p=p, g=group, id=list(range(6)))
    result = PredictionTable(data, label="id", score="p", by="g").apply(
        model, output="q"
    )
    with pytest.warns(UserWarning, match="not seen in fit"):
        wanted = model.predict_proba(
            [0.1, 0.7, 0.7, 0.7, 0.9], groups=["a", "b", "c", "never seen", "none"]
        )[:, 1]
    np.testing.assert_allclose(
        column(result, "q", by="id"),
        [*wanted[:4], np.nan, wanted[4]],
        rtol=0,
        atol=1e-12,
    )
    with pytest.raises(ValueError, match="name it with by="):
        PredictionTable(data, label="id", score="p").apply(model, output="q")


@every_local_engine
def test_a_frame_with_an_index_of_its_own(engine):
    scores, y = training_rows()
    fitted = PlattScaling().fit(scores, y)
    data = native(engine, p=[0.2, 0.8, 0.5], id=[0, 1, 2])
    if engine == "pandas":
        data.index = [7, 7, 3]
    result = PredictionTable(data, label="id", score="p").apply(fitted, output="q")
    np.testing.assert_allclose(
        column(result, "q", by="id"),
        fitted.predict_proba([0.2, 0.8, 0.5])[:, 1],
        rtol=1e-14,
    )
    if engine == "pandas":
        assert result.index.tolist() == [7, 7, 3]


@every_local_engine
def test_columns_that_are_called_like_those_of_this_package(engine):
    scores, y = training_rows()
    names = [
        "skcalib",
        "skcalib_3",
        "SKCALIB_4_cell",
        "skcalib_score",
        "score",
        "label",
        "cell",
        "parent",
        "by0",
    ]
    others = {name: np.arange(8.0) + position for position, name in enumerate(names)}
    data = native(engine, p=np.arange(8) / 10, id=np.arange(8), **others)
    table = PredictionTable(data, label="id", score="p", by="by0")
    for recalibrator in (PlattScaling(), HistogramBinning(UniqueScores())):
        result = table.apply(recalibrator.fit(scores, y), output='a "quoted" name')
        assert nw_columns(result) == ["p", "id", *names, 'a "quoted" name']
        wanted = recalibrator.predict_proba(np.arange(8) / 10)[:, 1]
        np.testing.assert_allclose(
            column(result, 'a "quoted" name', by="id"), wanted, rtol=0, atol=1e-12
        )
        for name, values in others.items():
            np.testing.assert_array_equal(column(result, name, by="id"), values)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["duckdb", "ibis"])
def test_databases_do_not_tell_upper_from_lower_case(engine):
    pytest.importorskip(engine)
    table = PredictionTable(native(engine, p=[0.2], id=[0]), label="id", score="p")
    with pytest.raises(
        ValueError, match="found 'P': the engine cannot distinguish it from 'p'"
    ):
        table.apply(PlattScaling().fit(*training_rows()), output="P")


@every_engine
def test_one_column_after_the_other(engine):
    scores, y = training_rows()
    platt, isotonic = (
        PlattScaling().fit(scores, y),
        IsotonicCalibration().fit(scores, y),
    )
    p = np.linspace(0, 1, 11)
    once = PredictionTable(
        native(engine, p=p, id=np.arange(11)), label="id", score="p"
    ).apply(platt, output="q")
    twice = PredictionTable(once, label="id", score="q").apply(isotonic, output="r {q}")
    q = platt.predict_proba(p)[:, 1]
    np.testing.assert_allclose(column(once, "q", by="id"), q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        column(twice, "r {q}", by="id"),
        isotonic.predict_proba(q)[:, 1],
        rtol=0,
        atol=1e-9,
    )


def test_a_table_of_ibis_without_a_database():
    ibis = pytest.importorskip("ibis")
    fitted = PlattScaling().fit(*training_rows())
    data = ibis.memtable(native("pyarrow", p=[0.2, 0.8], id=[0, 1]))
    result = PredictionTable(data, label="id", score="p").apply(fitted, output="q")
    np.testing.assert_allclose(
        column(result, "q", by="id"), fitted.predict_proba([0.2, 0.8])[:, 1], rtol=1e-12
    )


def test_polars_is_asked_for_nothing_before_it_collects():
    pl = pytest.importorskip("polars")
    seen = []

    def counted(rows):
        seen.append(len(rows))
        return rows

    frame = pl.LazyFrame({"p": [0.2, 0.8], "id": [0, 1], "other": [1, 2]}).with_columns(
        pl.col("p").map_batches(counted, pl.Float64)
    )
    fitted = PlattScaling().fit(*training_rows())
    result = PredictionTable(frame, label="id", score="p").apply(fitted, output="q")
    assert result.collect_schema()["q"] == pl.Float64
    assert seen == []
    assert result.select("other").collect()["other"].to_list() == [1, 2]
    np.testing.assert_allclose(
        result.collect()["q"], fitted.predict_proba([0.2, 0.8])[:, 1], rtol=1e-14
    )


def test_fitted_to_two_columns():
    scores, y = training_rows()
    fitted = PlattScaling().fit(np.column_stack((1 - scores, scores)), y)
    for engine in ("pandas", "duckdb"):
        data = native(engine, p=[0.2, 0.8], id=[0, 1])
        result = PredictionTable(data, label="id", score="p").apply(fitted, output="q")
        wanted = fitted.predict_proba([[0.8, 0.2], [0.2, 0.8]])[:, 1]
        np.testing.assert_allclose(
            column(result, "q", by="id"), wanted, rtol=0, atol=1e-12
        )


def test_what_cannot_be_applied_is_refused_by_name():
    scores, y = training_rows()
    data = native("duckdb", p=[0.2], id=[0])
    table = PredictionTable(data, label="id", score="p")
    fitted = PlattScaling().fit(scores, y)
    for output in ("p", "id", 3, None):
        with pytest.raises(ValueError, match="output must be the name of a new column"):
            table.apply(fitted, output=output)
    with pytest.raises(ValueError, match=r"UniformMassBinning\(randomize=True\)"):
        table.apply(
            UniformMassBinning(4, randomize=True, random_state=0).fit(scores, y),
            output="q",
        )
    with pytest.raises(
        ValueError, match="PlattScaling needs input='probability', found 'logit'"
    ):
        table.apply(PlattScaling(input="logit").fit(9 * scores - 4, y), output="q")
    three = PlattScaling().fit(np.tile([0.2, 0.3, 0.5], (30, 1)), np.arange(30) % 3)
    with pytest.raises(
        ValueError, match="two classes, but PlattScaling was fitted to 3"
    ):
        table.apply(three, output="q")
    with pytest.raises(ValueError, match="not fitted"):
        table.apply(PlattScaling(), output="q")
    with pytest.raises(
        ValueError, match="a dict of recalibrators is for a table with groups"
    ):
        table.apply({"a": fitted}, output="q")
    groups = GroupwiseRecalibrator(PlattScaling(), groups=None).fit(
        scores, y, groups=np.arange(len(y)) % 2
    )
    for engine in ("pandas", "duckdb"):
        data = native(engine, p=[0.2], id=[0], g=["0"])
        with pytest.raises(
            ValueError, match="=0 is not a value of the column 'g', which is String"
        ):
            PredictionTable(data, label="id", score="p", by="g").apply(
                groups, output="q"
            )
