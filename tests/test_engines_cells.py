"""Cells of scores in an engine: their numbers rise with the score, and their bounds
hold their scores.
"""

import numpy as np
import pytest
from _engine_tables import every_engine, native

pytest.importorskip("narwhals")
pd = pytest.importorskip("pandas")

import narwhals.stable.v2 as nw  # noqa: E402

from skcalib.engines._histogram import (  # noqa: E402
    coarse_cell,
    coarse_place,
    fine_cell,
)  # noqa: E402
from skcalib.engines._native import fetched  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:Dask support is moving out of Narwhals:FutureWarning"
    ),
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(0)
    low = np.concatenate(
        (
            rng.random(2000) / 2,
            10 ** -rng.uniform(0.4, 300, 2000),
            np.ldexp(1.0, -np.arange(1, 60)),
        )
    )
    return np.unique(
        np.concatenate((low, np.nextafter(low, 1), 1 - low, [0.0, 0.4, 0.5, 1.0]))
    )


def numbers(cell, scores):
    return (
        nw.from_native(pd.DataFrame({"score": scores}))
        .select(cell.alias("cell"))["cell"]
        .to_numpy()
    )


@pytest.mark.parametrize(
    ("cell", "size"),
    [(coarse_cell, 2**12), (coarse_cell, 2**14), (fine_cell, 12), (fine_cell, 20)],
)
def test_numbers_never_fall(cell, size, scores):
    assert (np.diff(numbers(cell(size), scores).astype(np.int64)) >= 0).all()


@pytest.mark.parametrize(
    ("a", "b", "most"),
    [(1, 1, 0.03), (0.5, 200, 0.05), (200, 0.5, 0.05), (0.5, 20000, 0.08)],
)
def test_few_rows_share_a_coarse_cell_with_a_cut(a, b, most):
    rows = np.random.default_rng(1).beta(a, b, 100_000)
    cell = numbers(
        coarse_cell(), np.append(rows, np.quantile(rows, np.arange(1, 20) / 20))
    )
    assert np.isin(cell[:-19], cell[-19:]).mean() < most


@every_engine
def test_numpy_has_the_cells_of_engines(engine, scores):
    frame = nw.from_native(native(engine, score=scores)).lazy()
    found = fetched(
        frame.select(
            "score", *(coarse_cell(n).alias(f"cell_{n}") for n in (2**8, 12_345, 2**16))
        )
    )
    for n_cells in (2**8, 12_345, 2**16):
        np.testing.assert_array_equal(
            found[f"cell_{n_cells}"], np.floor(coarse_place(found["score"], n_cells))
        )
