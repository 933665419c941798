"""The contract of tables, on every engine: edges and counts are NumPy's, sums agree to
rounding.
"""

from functools import partial

import numpy as np
import pytest
from _catalog import refused
from _engine_tables import every_engine, every_local_engine, native
from sklearn.base import clone

from skcalib import (
    BetaCalibration,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    QuadraticScaling,
    SplineCalibration,
    TemperatureScaling,
    UniformMassBinning,
)
from skcalib.binning import (
    EqualMass,
    EqualWidth,
    FixedEdges,
    MonotonicSweep,
    UniqueScores,
)
from skcalib.metrics import (
    BinStatistics,
    calibration_error,
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
)

pytest.importorskip("narwhals")
pytest.importorskip("pyarrow")
from skcalib._cells.cells import two_points  # noqa: E402
from skcalib.engines import PredictionTable, _histogram  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:Dask support is moving out of Narwhals:FutureWarning"
    ),
    # Ibis asks DuckDB for tables by an old name.
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

SLOW = ("dask", "spark")  # some cases are left to the other engines
SUMS = (
    "weight",
    "weighted_score",
    "weighted_label",
    "weighted_score_squared",
    "weighted_score_label",
    "weight_squared",
)
STRATEGIES = [
    EqualWidth(10),
    EqualWidth(49),
    EqualWidth("sqrt"),
    EqualMass(),
    EqualMass(7),
    UniqueScores(),
]
STRATEGIES.append(FixedEdges([0, 1e-9, 0.03, 0.3, 0.5, 0.7700001, 1]))
# For slow engines: equal width and mass without weights, mass and given edges with.
FEW_STRATEGIES = {None: STRATEGIES[::4], "w": STRATEGIES[3::3]}


def shapes():
    """Return scores of several kinds, by name."""
    rng = np.random.default_rng(0)
    grid = np.concatenate([np.arange(b + 1) / b for b in (10, 15, 20, 49)])
    around = np.concatenate([grid, np.nextafter(grid, 0), np.nextafter(grid, 1)])
    return {
        "uniform": rng.random(700),
        "rare": rng.beta(0.5, 200, 700),
        "ties": np.round(rng.random(500), 2),
        "edges": around,
        "constant": np.full(300, 0.3),
        "extreme": np.array(
            [0.0, 1.0, 5e-324, 1e-300, 1 - 2.0**-53, 1e-17, 0.5, np.nextafter(0.5, 1)]
        ),
        "near 1": 1 - rng.beta(0.5, 200, 500),
        "one row": np.array([0.25]),
    }


def rows():
    """Return the columns of a table whose segments are the kinds of scores."""
    rng = np.random.default_rng(1)
    score = np.concatenate(list(shapes().values()))
    kind = np.repeat(list(shapes()), [len(values) for values in shapes().values()])
    label = (rng.random(len(score)) < score).astype(np.int64)
    # sums are exact; a weight of 0 is no row
    weight = rng.integers(0, 9, len(score)) / 8
    order = rng.permutation(len(score))
    return {
        "p": score[order],
        "y": label[order],
        "w": weight[order],
        "kind": kind[order].astype(object),
    }


def expected(binning, score, label, weight=None):
    """Return what NumPy makes of the rows."""
    if weight is not None:
        score, label, weight = score[weight > 0], label[weight > 0], weight[weight > 0]
    edges = binning.bin_edges(score, label == 1, weight)
    return BinStatistics.from_predictions(label == 1, score, edges, weight)


def assert_same(found, wanted):
    np.testing.assert_array_equal(found.edges, wanted.edges)
    np.testing.assert_array_equal(found.count, wanted.count)
    for name in SUMS:
        np.testing.assert_allclose(
            getattr(found, name),
            getattr(wanted, name),
            rtol=1e-12,
            atol=1e-300,
            err_msg=name,
        )


@every_engine
@pytest.mark.parametrize("weight", [None, "w"])
def test_bin_statistics_are_those_of_numpy(engine, weight):
    columns = rows()
    data = native(engine, **columns)
    table = PredictionTable(data, label="y", score="p", weight=weight)
    segmented = PredictionTable(data, label="y", score="p", weight=weight, by="kind")
    weights = None if weight is None else columns["w"]
    for binning in FEW_STRATEGIES[weight] if engine in SLOW else STRATEGIES:
        wanted = expected(binning, columns["p"], columns["y"], weights)
        assert_same(table.bin_statistics(binning), wanted)
        by_kind = segmented.bin_statistics(binning)
        for kind, statistics in by_kind.items():
            own = columns["kind"] == kind
            wanted = expected(
                binning,
                columns["p"][own],
                columns["y"][own],
                None if weight is None else weights[own],
            )
            assert_same(statistics, wanted)
        assert list(by_kind) == sorted(shapes())


def damaged():
    """Return columns in which every kind of invalid row occurs, and what they are
    counted as.
    """
    score = [
        0.5,
        None,
        float("nan"),
        -0.1,
        1.5,
        0.2,
        0.2,
        0.2,
        0.2,
        float("inf"),
        0.9,
        None,
        0.3,
    ]
    label = [1.0, 1.0, 0.0, 1.0, 0.0, None, 2.0, 0.0, 1.0, 1.0, float("nan"), None, 0.0]
    weight = [
        1.0,
        1.0,
        1.0,
        1.0,
        1.0,
        1.0,
        1.0,
        -1.0,
        float("inf"),
        None,
        float("nan"),
        1.0,
        2.0,
    ]
    return {"p": score, "y": label, "w": weight}


@every_engine
def test_invalid_rows_are_counted_and_reported(engine):
    data = native(engine, **damaged())
    table = PredictionTable(data, label="y", score="p", weight="w")
    assert table.invalid_rows() == {"missing": 6, "score": 2, "label": 1, "weight": 2}
    with pytest.raises(
        ValueError,
        match=r"invalid rows: 6 \(missing\), 2 \(score\), 1 \(label\), 2 \(weight\)",
    ):
        table.bin_statistics(EqualWidth(4))
    options = {"label": "y", "score": "p", "weight": "w", "on_invalid": "drop"}
    # What is there, but wrong, is an error still.
    with pytest.raises(
        ValueError, match=r"invalid rows: 2 \(score\), 1 \(label\), 2 \(weight\)"
    ):
        PredictionTable(data, **options).bin_statistics(EqualWidth(4))
    lacking = {}
    for name, values in damaged().items():
        lacking[name] = [values[row] for row in (0, 1, 2, 5, 10, 11, 12)]
    kept = PredictionTable(native(engine, **lacking), **options)
    kept = kept.bin_statistics(EqualWidth(4))
    assert kept.count.tolist() == [0, 2, 0, 0]
    assert kept.weight.tolist() == [0, 3, 0, 0]
    unweighted = PredictionTable(data, label="y", score="p")
    assert unweighted.invalid_rows() == {
        "missing": 5,
        "score": 3,
        "label": 1,
        "weight": 0,
    }


@every_local_engine
def test_rows_without_weight_are_valid_and_do_not_count(engine):
    data = native(engine, p=[0.1, 0.2, 0.9], y=[0, 1, 1], w=[0.0, 0.5, 1.0])
    table = PredictionTable(data, label="y", score="p", weight="w")
    assert table.invalid_rows() == {"missing": 0, "score": 0, "label": 0, "weight": 0}
    assert table.bin_statistics(EqualWidth(2)).count.tolist() == [1, 1]
    assert table.bin_statistics(UniqueScores()).n_bins == 2


@every_local_engine
def test_empty_table(engine):
    data = native(engine, p=np.zeros(0), y=np.zeros(0), g=np.zeros(0))
    table = PredictionTable(data, label="y", score="p")
    segmented = PredictionTable(data, label="y", score="p", by="g")
    for strategy in (EqualMass(3), EqualWidth(3))[: 1 if engine in SLOW else 2]:
        with pytest.raises(ValueError, match="no valid row"):
            table.bin_statistics(strategy)
        assert segmented.bin_statistics(strategy) == {}
    with pytest.raises(ValueError, match="no valid row"):
        table.fit(PlattScaling())
    assert segmented.fit(IsotonicCalibration()) == {}
    if engine in SLOW:
        return
    for name in ("weighted_scores", "kolmogorov_smirnov"):
        with pytest.raises(ValueError, match="no valid row"):
            getattr(table, name)()
        assert getattr(segmented, name)() == {}


@every_engine
def test_null_is_a_segment_of_its_own(engine):
    data = native(
        engine,
        p=[0.1, 0.15, 0.2, 0.3, 0.35, 0.4, 0.7],
        y=[0, 1, 0, 1, 1, 0, 1],
        number=[1, 1, 1, None, None, None, 2],
        text=["a", None, None, "b", "b", "b", "b"],
    )
    by_number = PredictionTable(data, label="y", score="p", by="number").bin_statistics(
        EqualMass(2)
    )
    assert list(by_number) == [1, 2, None]
    assert [statistics.count.tolist() for statistics in by_number.values()] == [
        [2, 1],
        [1],
        [2, 1],
    ]
    assert by_number[None].edges.tolist() == [0, 0.375, 1]
    both = PredictionTable(
        data, label="y", score="p", by=["number", "text"]
    ).bin_statistics(EqualMass(2))
    assert list(both) == [(1, "a"), (1, None), (2, "b"), (None, "b")]
    assert [statistics.count.tolist() for statistics in both.values()] == [
        [1],
        [1, 1],
        [1],
        [2, 1],
    ]
    by_one_in_a_list = PredictionTable(
        data, label="y", score="p", by=["number"]
    ).bin_statistics(1)
    assert list(by_one_in_a_list) == [(1,), (2,), (None,)]


@every_local_engine
def test_labels_of_other_kinds(engine):
    data = native(
        engine,
        p=[0.1, 0.6, 0.8],
        text=["no", "yes", "other"],
        flag=[False, True, True],
        code=[1, 2, 3],
        f=[0.0, 1, 2],
    )

    def events(label, **options):
        return (
            PredictionTable(data, label=label, score="p", **options)
            .bin_statistics(1)
            .weighted_label.tolist()
        )

    assert events("text", pos_label="yes", neg_label="no") == [1]
    assert events("flag") == [2]
    assert events("flag", pos_label=False) == [1]
    assert events("code", pos_label=3, neg_label=1) == [1]
    assert events("f", pos_label=2.0, neg_label=0) == [1]
    with pytest.raises(ValueError, match="'text' is String: name the label"):
        events("text")
    with pytest.raises(
        ValueError,
        match="pos_label='1' is not a value of the column 'code', which is Int64",
    ):
        events("code", pos_label="1")
    with pytest.raises(
        ValueError, match="pos_label=nan matches no label in the column 'f'"
    ):
        events("f", pos_label=np.nan)
    for label, pos_label, found, uses in (
        ("text", "Yes", "'no', 'other', 'yes'", ("bin_statistics", "kuiper")),
        ("code", 4, "1, 2, 3", ("weighted_scores", "fit")),
    ):
        table = PredictionTable(data, label=label, score="p", pos_label=pos_label)
        for name in uses:
            use = getattr(table, name)
            if name == "fit":
                use = partial(use, PlattScaling())
            with refused(
                ValueError,
                f"pos_label={pos_label!r} does not occur in the column {label!r}",
                found,
            ):
                use()
    with pytest.raises(ValueError, match=r"invalid rows: 2 \(label\)"):
        events("code")


@every_engine
def test_cumulative_errors_are_exact(engine):
    columns = rows()
    data = native(engine, **columns)
    table = PredictionTable(data, label="y", score="p", weight="w")
    wanted = kolmogorov_smirnov_calibration_error(
        columns["y"], columns["p"], sample_weight=columns["w"]
    )
    assert table.kolmogorov_smirnov() == pytest.approx(wanted, rel=1e-12)
    wanted = kuiper_calibration_error(
        columns["y"], columns["p"], sample_weight=columns["w"]
    )
    assert table.kuiper() == pytest.approx(wanted, rel=1e-12)
    by_kind = PredictionTable(
        data, label="y", score="p", by="kind"
    ).kolmogorov_smirnov()
    for kind, error in by_kind.items():
        own = columns["kind"] == kind
        y, p = columns["y"][own], columns["p"][own]
        assert error == pytest.approx(
            kolmogorov_smirnov_calibration_error(y, p, labels=[0, 1]),
            rel=1e-12,
            abs=1e-15,
        )


@pytest.mark.slow
@every_engine
def test_weighted_scores_keep_what_they_sum(engine):
    columns = rows()
    data = native(engine, **columns)
    table = PredictionTable(data, label="y", score="p", weight="w")
    y_true, y_proba, weight = table.weighted_scores(bits=12)
    counted = columns["w"] > 0
    p, y, w = columns["p"][counted], columns["y"][counted], columns["w"][counted]
    assert len(y_true) < 0.6 * len(p)
    assert weight.sum() == w.sum()
    assert weight[y_true == 1].sum() == w[y == 1].sum()
    assert weight @ y_proba == pytest.approx(w @ p, rel=1e-12)
    assert len(np.unique(np.column_stack((y_true, y_proba)), axis=0)) == len(y_true)
    # A cell is at most 2^-4 wide relative to the lesser of s and 1 - s, down to 2^-41.
    _, neighbours = np.unique(y_proba, return_index=True)
    nearest = np.abs(p[:, None] - y_proba[neighbours]).min(axis=1)
    assert np.all(nearest <= 2.0**-4 * np.minimum(p, 1 - p) + 2.0**-41)
    assert calibration_error(
        y_true, y_proba, sample_weight=weight, norm=1
    ) == pytest.approx(calibration_error(y, p, sample_weight=w, norm=1), abs=0.02)


def test_weighted_scores_bits():
    table = PredictionTable(native("pyarrow", p=[0.5], y=[1]), label="y", score="p")
    for bits in (7, 25, 12.0, True, "12"):
        with pytest.raises(ValueError, match="bits must be an int of at"):
            table.weighted_scores(bits=bits)


FITTED = [
    (IsotonicCalibration(), 1e-12),
    (IsotonicCalibration(centered=True), 1e-12),
    (HistogramBinning(), 1e-12),
    (HistogramBinning(EqualWidth(7), smoothing=1.0), 1e-12),
    (PlattScaling(), 1e-9),
    (TemperatureScaling(), 1e-9),
    (BetaCalibration(), 1e-9),
    (QuadraticScaling(), 1e-9),
    (SplineCalibration(), 1e-9),
]


@pytest.mark.slow
@every_engine
def test_fits_are_those_of_all_rows(engine):
    columns = rows()
    data = native(engine, **columns)
    grid = np.unique(np.concatenate([np.linspace(0, 1, 997), columns["p"]]))
    table = PredictionTable(data, label="y", score="p", weight="w")
    for recalibrator, tolerance in FITTED[:: 3 if engine in SLOW else 1]:
        wanted = (
            clone(recalibrator)
            .fit(columns["p"], columns["y"], columns["w"])
            .predict_proba(grid)
        )
        fitted = table.fit(recalibrator)
        assert not hasattr(recalibrator, "classes_")
        np.testing.assert_allclose(
            fitted.predict_proba(grid), wanted, rtol=0, atol=tolerance
        )


@every_local_engine
def test_fits_by_segment(engine):
    columns = rows()
    data = native(engine, **columns)
    some = np.isin(columns["kind"], ["uniform", "rare", "ties"])
    data = native(engine, **{name: values[some] for name, values in columns.items()})
    by_kind = PredictionTable(data, label="y", score="p", by="kind").fit(
        IsotonicCalibration()
    )
    assert list(by_kind) == ["rare", "ties", "uniform"]
    for kind, fitted in by_kind.items():
        own = columns["kind"] == kind
        wanted = IsotonicCalibration().fit(columns["p"][own], columns["y"][own])
        grid = columns["p"][own]
        np.testing.assert_allclose(
            fitted.predict_proba(grid), wanted.predict_proba(grid), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("exponents", [(-20, 0), (-9, 9)])
def test_isotonic_with_weights_of_all_sizes(exponents):
    """Differences of cumulative weights were 0."""
    rng = np.random.default_rng(0)
    scores = rng.random(2000)
    y = (rng.random(2000) < scores).astype(int)
    weight = 10.0 ** rng.uniform(*exponents, 2000)
    table = native("pyarrow", p=scores, y=y, w=weight)
    fitted = PredictionTable(table, label="y", score="p", weight="w").fit(
        IsotonicCalibration()
    )
    wanted = IsotonicCalibration().fit(scores, y, sample_weight=weight)
    np.testing.assert_allclose(
        fitted.predict_proba(scores), wanted.predict_proba(scores), atol=1e-12
    )


def test_fitted_histogram_has_the_counts_of_all_rows():
    columns = rows()
    table = PredictionTable(native("pyarrow", **columns), label="y", score="p")
    fitted, wanted = (
        table.fit(HistogramBinning(EqualWidth(5))),
        HistogramBinning(EqualWidth(5)).fit(columns["p"], columns["y"]),
    )
    np.testing.assert_array_equal(fitted.bin_counts_, wanted.bin_counts_)
    np.testing.assert_array_equal(fitted.bin_edges_, wanted.bin_edges_)
    np.testing.assert_array_equal(fitted.bin_values_, wanted.bin_values_)
    assert fitted.certificate().epsilon == wanted.certificate().epsilon


def test_what_cannot_be_fitted_is_refused_by_name():
    data = native("pyarrow", p=[0.1, 0.2, 0.7], y=[0, 1, 1], g=[0, 1, 1])
    table = PredictionTable(data, label="y", score="p")
    with pytest.raises(
        ValueError, match="UniformMassBinning cannot be fitted to a table"
    ):
        table.fit(UniformMassBinning(2))
    with pytest.raises(ValueError, match="HistogramBinning with sample_split"):
        table.fit(HistogramBinning(2, sample_split=0.5))
    with pytest.raises(ValueError, match="needs input='probability', found 'logit'"):
        table.fit(PlattScaling(input="logit"))
    with pytest.raises(
        ValueError,
        match="binning must be EqualWidth, EqualMass, FixedEdges or UniqueScores",
    ):
        table.bin_statistics(MonotonicSweep())
    with pytest.raises(ValueError, match="The group g = 0 could not be fitted"):
        PredictionTable(data, label="y", score="p", by="g").fit(TemperatureScaling())


@every_local_engine
def test_a_class_column_keeps_the_name_that_its_user_gave_it(engine):
    data = native(
        engine,
        a=[0.6, 0.3],
        b=[0.4, 0.7],
        y=["a", "a"],
        skcalib=[1.0, 2.0],
        SKCALIB_largest=[3.0, 4.0],
    )
    table = PredictionTable.top_label(
        data, label="y", scores=["a", "b"], classes=["a", "b"]
    )
    assert table.bin_statistics(2).weighted_label.tolist() == [1, 0]
    result = table.apply(
        PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]), output="q"
    )
    assert nw_names(result) == ["a", "b", "y", "skcalib", "SKCALIB_largest", "q"]


def test_wrong_arguments_are_named():
    data = native("pyarrow", p=[0.1, 0.2], y=[0, 1], text=["a", "b"])
    with pytest.raises(
        ValueError,
        match="score='q' is not a column of the table; its columns are p, y, text",
    ):
        PredictionTable(data, label="y", score="q")
    with pytest.raises(
        ValueError, match="score must be numbers, but the column 'text' is String"
    ):
        PredictionTable(data, label="y", score="text")
    with pytest.raises(ValueError, match="weight must be numbers"):
        PredictionTable(data, label="y", score="p", weight="text")
    with pytest.raises(
        ValueError, match="on_invalid must be one of 'raise', 'drop', found 'ignore'"
    ):
        PredictionTable(data, label="y", score="p", on_invalid="ignore")
    with pytest.raises(
        TypeError, match=r"found str\. Open a file with skcalib\.engines\.scan"
    ):
        PredictionTable("log.parquet", label="y", score="p")
    with pytest.raises(TypeError, match="found list"):
        PredictionTable([1, 2], label="y", score="p")
    with pytest.raises(
        TypeError, match="by must be the name of a column or a list of names, found 3"
    ):
        PredictionTable(data, label="y", score="p", by=3)
    for recalibrator in ("platt", PlattScaling):
        with pytest.raises(
            TypeError,
            match=r"a recalibrator such as PlattScaling\(\), found .*[pP]latt",
        ):
            PredictionTable(data, label="y", score="p").fit(recalibrator)


def test_a_frame_of_sqlframe_is_refused(monkeypatch):
    from skcalib.engines import _native

    class Frame:
        implementation = _native.nw.Implementation.SQLFRAME

    # The package itself pins a version of sqlglot that others here do not take.
    monkeypatch.setattr(_native.nw, "from_native", lambda data: data)
    with pytest.raises(TypeError, match="SQLFrame data frames.*a DuckDB relation"):
        PredictionTable(Frame(), label="y", score="p")


def test_a_table_tells_its_columns():
    data = native("pyarrow", p=[0.1, 0.2], q=[0.9, 0.8], y=[0, 1], g=["a", "b"])
    table = PredictionTable(data, label="y", score="p", by="g")
    assert repr(table).endswith("label='y', score='p', by='g')")
    options = {"label": "y", "scores": ["q", "p"], "classes": [0, 1]}
    assert "scores=['q', 'p']" in repr(PredictionTable.top_label(data, **options))
    assert "score='p', pos_label=1" in repr(
        PredictionTable.marginal(data, **options)[1]
    )


def test_too_many_distinct_scores(monkeypatch):
    monkeypatch.setattr("skcalib.engines._statistics._MOST_DISTINCT", 3)
    table = PredictionTable(
        native("pyarrow", p=[0.1, 0.2, 0.2, 0.3, 0.3], y=[0, 1, 0, 1, 1]),
        label="y",
        score="p",
    )
    assert table.bin_statistics(UniqueScores()).n_bins == 3
    table = PredictionTable(
        native("pyarrow", p=[0.1, 0.2, 0.4, 0.3], y=[0, 1, 0, 1]), label="y", score="p"
    )
    with pytest.raises(ValueError, match=r"would give 4 bins .* weighted_scores\(\)"):
        table.bin_statistics(UniqueScores())


@every_local_engine
@pytest.mark.slow
def test_cells_are_split_more_than_once_where_they_hold_too_much(engine, monkeypatch):
    for name, value in (
        ("_MOST_SPLIT", 120),
        ("_MOST_CELLS", 64),
        ("_MOST_FETCHED", 20),
    ):
        monkeypatch.setattr(f"skcalib.engines._histogram.{name}", value)
    rng = np.random.default_rng(2)
    columns = {
        "p": np.append(0.3 + 1e-6 * rng.random(400), rng.random(100)),
        "y": rng.integers(0, 2, 500),
    }
    columns["g"] = rng.integers(0, 2, 500)
    data = native(engine, **columns)
    table, strategy = PredictionTable(data, label="y", score="p"), EqualMass(9)
    if engine not in SLOW:
        p, y = columns["p"], columns["y"]
        assert_same(table.bin_statistics(strategy), expected(strategy, p, y))
        wanted = IsotonicCalibration().fit(p, y).predict_proba(p)
        found = table.fit(IsotonicCalibration()).predict_proba(p)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)
    by_group = PredictionTable(data, label="y", score="p", by="g")
    # slow engines: `test_fits_are_those_of_all_rows`
    maps = {} if engine in SLOW else by_group.fit(IsotonicCalibration())
    for group, statistics in by_group.bin_statistics(strategy).items():
        p, y = (columns[name][columns["g"] == group] for name in ("p", "y"))
        assert_same(statistics, expected(strategy, p, y))
        if maps:
            wanted = IsotonicCalibration().fit(p, y).predict_proba(p)
            found = maps[group].predict_proba(p)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_settled_cells_are_pooled_and_the_map_is_that_of_all_rows(
    centered, weighted, monkeypatch
):
    for name, value in (
        ("_MOST_SPLIT", 8000),
        ("_MOST_CELLS", 512),
        ("_MOST_FETCHED", 200),
    ):
        monkeypatch.setattr(f"skcalib.engines._histogram.{name}", value)
    pooled, kept = _histogram.Cells.pooled, []

    def counted(cells, starts):
        kept.append((len(starts), int(starts.sum())))
        return pooled(cells, starts)

    monkeypatch.setattr(_histogram.Cells, "pooled", counted)
    rng = np.random.default_rng(7)
    scores, segment = rng.random(30_000), rng.integers(0, 2, 30_000)
    scores[:3000] = np.round(scores[:3000], 2)
    labels = (rng.random(len(scores)) < scores ** (1 + segment)).astype(int)
    columns = {
        "p": scores,
        "y": labels,
        "g": segment,
        "w": rng.integers(1, 4, len(scores)).astype(float),
    }
    names = {"weight": "w"} if weighted else {}
    table = PredictionTable(
        native("pyarrow", **columns), label="y", score="p", by="g", **names
    )
    for group, fitted in table.fit(IsotonicCalibration(centered=centered)).items():
        own = segment == group
        weight = columns["w"][own] if weighted else None
        alone = IsotonicCalibration(centered=centered).fit(
            scores[own], labels[own], sample_weight=weight
        )
        expected = alone.predict_proba(scores[own])
        np.testing.assert_allclose(
            fitted.predict_proba(scores[own]), expected, rtol=0, atol=1e-12
        )
    assert len(kept) > 2
    assert any(after < before / 2 for before, after in kept)


def class_rows():
    """Return columns of three classes, with ties, missing and invalid rows, and the
    valid rows as arrays.
    """
    rng = np.random.default_rng(3)
    scores = rng.dirichlet([0.5, 0.7, 1.0], 300)
    scores[:20] = [0.4, 0.4, 0.2]
    labels = np.array(["cat", "dog", "fish"], dtype=object)[rng.integers(0, 3, 300)]
    columns = {name: list(scores[:, k]) for k, name in enumerate(("a", "b", "c"))} | {
        "y": list(labels)
    }
    columns["w"] = list(rng.integers(1, 5, 300) / 4)
    invalid = {
        "a": [None, 0.5, 0.5, 0.2],
        "b": [0.5, 0.6, 0.25, 0.2],
        "c": [0.5, 0.4, 0.25, 0.6],
    }
    invalid |= {"y": ["cat", "cat", None, "bird"], "w": [1.0] * 4}
    return (
        {name: values + invalid[name] for name, values in columns.items()},
        scores,
        labels,
        np.array(columns["w"]),
    )


@pytest.mark.slow
@every_local_engine
def test_top_label_and_marginal_problems(engine):
    columns, scores, labels, weight = class_rows()
    data = native(engine, **columns)
    options = {
        "label": "y",
        "scores": ["a", "b", "c"],
        "classes": ["cat", "dog", "fish"],
        "weight": "w",
    }
    table = PredictionTable.top_label(data, **options)
    assert table.invalid_rows() == {"missing": 2, "score": 1, "label": 1, "weight": 0}
    with pytest.raises(ValueError, match="invalid rows"):
        table.bin_statistics(EqualMass(5))
    without_sum = {name: v[:301] + v[302:303] for name, v in columns.items()}
    table = PredictionTable.top_label(
        native(engine, **without_sum), on_invalid="drop", **options
    )
    right = (
        np.array(["cat", "dog", "fish"], dtype=object)[scores.argmax(axis=1)] == labels
    )
    statistics = table.bin_statistics(EqualMass(5))
    assert_same(statistics, expected(EqualMass(5), scores.max(axis=1), right, weight))
    wanted = calibration_error(
        labels.astype(str), scores, norm=1, binning=EqualMass(5), sample_weight=weight
    )
    assert calibration_error(statistics, norm=1) == pytest.approx(wanted, rel=1e-9)
    result = table.apply(HistogramBinning(2).fit(scores.max(axis=1), right), output="q")
    assert nw_names(result) == ["a", "b", "c", "y", "w", "q"]
    without_bird = {name: values[:303] for name, values in columns.items()}
    tables = PredictionTable.marginal(
        native(engine, **without_bird), on_invalid="drop", **options
    )
    assert list(tables) == ["cat", "dog", "fish"]
    assert tables["fish"].invalid_rows() == {
        "missing": 1,
        "score": 0,
        "label": 0,
        "weight": 0,
    }
    whole = [*range(300), 300, 301]  # these have a label and a score of the class
    fish = np.array([columns["c"][row] for row in whole])
    is_fish = np.array([columns["y"][row] == "fish" for row in whole])
    weights = np.array([columns["w"][row] for row in whole])
    assert_same(
        tables["fish"].bin_statistics(EqualMass(5)),
        expected(EqualMass(5), fish, is_fish, weights),
    )


def nw_names(table):
    import narwhals.stable.v2 as nw

    return nw.from_native(table).collect_schema().names()


def test_class_columns_that_do_not_fit():
    data = native("pyarrow", a=[0.5], b=[0.5], y=["cat"])
    with pytest.raises(
        ValueError, match="classes must be the distinct labels of the 2 columns"
    ):
        PredictionTable.top_label(data, label="y", scores=["a", "b"], classes=["cat"])
    with pytest.raises(
        ValueError, match="scores must be a list that names one column per class"
    ):
        PredictionTable.marginal(data, label="y", scores="a", classes=["cat", "dog"])
    with pytest.raises(TypeError, match="classes must be a list of the labels"):
        PredictionTable.marginal(data, label="y", scores=["a", "b"], classes=None)
    with pytest.raises(
        ValueError, match="classes=0 is not a value of the column 'y', which is String"
    ):
        PredictionTable.top_label(data, label="y", scores=["a", "b"], classes=[0, 1])
    with pytest.raises(ValueError, match="scores='q' is not a column"):
        PredictionTable.marginal(
            data, label="y", scores=["a", "q"], classes=["cat", "dog"]
        )


def test_scores_that_cannot_be_divided_are_fetched(monkeypatch):
    monkeypatch.setattr("skcalib.engines._histogram._MOST_FETCHED", 2)
    scores = np.array(
        [
            0,
            5e-324,
            1e-323,
            1.5e-323,
            1e-300,
            0.5,
            np.nextafter(0.5, 0),
            np.nextafter(0.5, 1),
        ]
        * 3
    )
    labels = np.arange(len(scores)) % 2
    table = PredictionTable(native("pyarrow", p=scores, y=labels), label="y", score="p")
    for strategy in (UniqueScores(), EqualMass(4)):
        assert_same(table.bin_statistics(strategy), expected(strategy, scores, labels))


@pytest.mark.parametrize("shape", ["spread", "concentrated", "near 1"])
@pytest.mark.slow
def test_parametric_fits_of_many_rows(shape, monkeypatch):
    # many more are split
    monkeypatch.setattr("skcalib.engines._histogram._MOST_FETCHED", 20_000)
    rng = np.random.default_rng(5)
    scores = rng.beta(0.4, 1.5, 100000)
    labels = (rng.random(len(scores)) < scores**1.4).astype(int)
    if shape == "concentrated":
        scores = 0.3 + 1e-3 * scores
    if shape == "near 1":
        scores, labels = 1 - 1e-3 * scores, 1 - labels
    table = PredictionTable(native("pyarrow", p=scores, y=labels), label="y", score="p")
    assert len(table.weighted_scores(bits=12).y_true) < len(scores) / 10
    grid = np.concatenate(
        [
            np.linspace(scores.min(), scores.max(), 301),
            np.quantile(scores, np.arange(1, 100) / 100),
        ]
    )
    for recalibrator in (
        PlattScaling(),
        TemperatureScaling(),
        BetaCalibration(),
        QuadraticScaling(),
        SplineCalibration(),
    ):
        wanted = clone(recalibrator).fit(scores, labels).predict_proba(grid)
        found = table.fit(recalibrator).predict_proba(grid)
        np.testing.assert_allclose(
            found, wanted, rtol=0, atol=1e-9, err_msg=repr(recalibrator)
        )


def test_two_points_have_the_mean_and_the_variance_of_the_rows():
    rng = np.random.default_rng(0)
    rows = (
        rng.choice([0.1, 0.12, 0.2, 0.5], (300, 6), p=[0.7, 0.1, 0.1, 0.1])
        + rng.random((300, 6)) * 0.01
    )
    rows[:20] = 0.3
    weight = rng.integers(0, 4, rows.shape) / 4
    total, low, high = weight.sum(axis=1), rows.min(axis=1), rows.max(axis=1)
    sums = (total, (weight * rows).sum(axis=1), (weight * rows**2).sum(axis=1))
    held = np.where(total > 0, total, 1)
    mean = np.clip(sums[1] / held, low, high)
    points = two_points(total, mean, sums[2] / held - mean**2, low, high)
    for power in range(3):
        found = sum(own * place**power for own, place in points)
        np.testing.assert_allclose(found, sums[power], rtol=1e-12)
    for own, place in points:
        assert np.all(own >= 0)
        assert np.all((place >= low - 1e-15) & (place <= high + 1e-15))
