"""The contract of tables, on every engine: edges and counts are NumPy's, sums agree to rounding."""

import numpy as np
import pytest
from _engine_tables import every_engine, every_local_engine, native

from skcalib import IsotonicCalibration, PlattScaling
from skcalib._bins.statistics import BinStatistics
from skcalib.binning import EqualMass, EqualWidth, FixedEdges, UniqueScores
from skcalib.metrics import calibration_error, kolmogorov_smirnov_calibration_error

pytest.importorskip("narwhals")
from skcalib.engines import PredictionTable  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:Dask support is moving out of Narwhals:FutureWarning"),
    # Ibis asks DuckDB for tables by an old name.
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    # Spark leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

SUMS = ("weight", "weighted_score", "weighted_label", "weighted_score_squared", "weighted_score_label")
STRATEGIES = [EqualWidth(10), EqualWidth(49), EqualWidth("sqrt"), EqualMass(), EqualMass(7), UniqueScores()]
STRATEGIES.append(FixedEdges([0, 1e-9, 0.03, 0.3, 0.5, 0.7700001, 1]))


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
        "extreme": np.array([0.0, 1.0, 5e-324, 1e-300, 1 - 2.0**-53, 1e-17, 0.5, np.nextafter(0.5, 1)]),
        "near 1": 1 - rng.beta(0.5, 200, 500),
        "one row": np.array([0.25]),
    }


def rows():
    """Return the columns of a table whose segments are the kinds of scores."""
    rng = np.random.default_rng(1)
    score = np.concatenate(list(shapes().values()))
    kind = np.repeat(list(shapes()), [len(values) for values in shapes().values()])
    label = (rng.random(len(score)) < score).astype(np.int64)
    weight = rng.integers(0, 9, len(score)) / 8  # sums are exact; a weight of 0 is no row
    order = rng.permutation(len(score))
    return {"p": score[order], "y": label[order], "w": weight[order], "kind": kind[order].astype(object)}


def expected(binning, score, label, weight=None):
    """Return what NumPy makes of the rows."""
    if weight is not None:
        score, label, weight = score[weight > 0], label[weight > 0], weight[weight > 0]
    edges = binning.bin_edges(score, label == 1, weight)
    return BinStatistics.from_scores(score, label == 1, edges, weight)


def assert_same(found, wanted):
    np.testing.assert_array_equal(found.edges, wanted.edges)
    np.testing.assert_array_equal(found.count, wanted.count)
    for name in SUMS:
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-12, atol=1e-300, err_msg=name)


@every_engine
@pytest.mark.parametrize("weight", [None, "w"])
def test_bin_statistics_are_those_of_numpy(engine, weight):
    columns = rows()
    data = native(engine, **columns)
    table = PredictionTable(data, label="y", score="p", weight=weight)
    segmented = PredictionTable(data, label="y", score="p", weight=weight, by="kind")
    weights = None if weight is None else columns["w"]
    for binning in STRATEGIES[:: 3 if engine == "dask" else 1]:  # Dask is slow
        wanted = expected(binning, columns["p"], columns["y"], weights)
        assert_same(table.bin_statistics(binning), wanted)
        by_kind = segmented.bin_statistics(binning)
        for kind, statistics in by_kind.items():
            own = columns["kind"] == kind
            wanted = expected(binning, columns["p"][own], columns["y"][own], None if weight is None else weights[own])
            assert_same(statistics, wanted)
        assert list(by_kind) == sorted(shapes())
