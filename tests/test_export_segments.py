"""Maps by segment of a table leave Python."""

import json
import subprocess
from shutil import which

import numpy as np
import pytest

from skcalib import GroupwiseRecalibrator, PlattScaling
from skcalib.engines import PredictionTable
from skcalib.export import from_dict, to_dict, to_javascript, to_sql

duckdb = pytest.importorskip("duckdb")
arrow = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p, country = rng.random(900), rng.choice(["it's", "no", "se"], 900)
    y = (rng.random(900) < p ** np.where(country == "no", 2, 1)).astype(int)
    return arrow.table({"p": p, "y": y, "country": country, "n": np.arange(900)})


def in_duckdb(rows, text):
    connection = duckdb.connect()
    connection.register("t", rows)
    found = connection.sql(f"SELECT {text} AS q FROM t ORDER BY n").fetchall()
    return np.array([np.nan if q is None else q for (q,) in found])


@pytest.fixture(scope="module")
def maps(rows):
    return PredictionTable(rows, label="y", score="p", by="country").fit(PlattScaling())


def wanted(maps, rows):
    p, country = rows["p"].to_numpy(), rows["country"].to_pylist()
    by_name = {(k if isinstance(k, str) else k[0]): one for k, one in maps.items()}
    return np.array(
        [
            by_name[c].predict_proba([s])[0, 1]
            for s, c in zip(p[:60], country, strict=False)
        ]
    )


def test_a_dict_of_maps_in_sql(rows, maps):
    text = to_sql(maps, group="country", dialect="duckdb")
    np.testing.assert_allclose(
        in_duckdb(rows, text)[:60], wanted(maps, rows), atol=1e-12
    )
    other = rows.set_column(2, "country", [["fi"] * 900])
    assert np.isnan(in_duckdb(other, text)).all()
    with pytest.raises(ValueError, match="group must name the column"):
        to_sql(maps)


def test_a_dict_of_maps_in_json(rows, maps):
    back = from_dict(json.loads(json.dumps(to_dict(maps))))
    np.testing.assert_array_equal(wanted(back, rows), wanted(maps, rows))
    with pytest.raises(ValueError, match=r"segments\[0\] must hold"):
        from_dict({"schema": 2, "segments": [{"segment": "a"}]})


@pytest.mark.skipif(which("node") is None, reason="no node")
def test_a_dict_of_maps_in_javascript(rows, maps):
    pairs = list(
        zip(rows["p"].to_pylist()[:60], rows["country"].to_pylist()[:60], strict=True)
    )
    program = to_javascript(maps) + f"const rows = {json.dumps([*pairs, [0.5, 'fi']])};"
    program += "console.log(JSON.stringify(rows.map(r => calibrate(...r))));"
    done = subprocess.run(
        ["node", "-"], input=program, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found.pop() is None
    np.testing.assert_allclose(found, wanted(maps, rows), atol=1e-12)


def test_a_groupwise_fit_to_a_table_knows_its_column(rows):
    table = PredictionTable(rows, label="y", score="p", by="country")
    model = table.fit(GroupwiseRecalibrator(PlattScaling(), groups=None))
    expected = model.predict_proba(
        rows["p"].to_numpy(), groups=rows["country"].to_pylist()
    )[:, 1]
    for one in (model, from_dict(to_dict(model))):
        text = to_sql(one, dialect="duckdb")
        np.testing.assert_allclose(in_duckdb(rows, text), expected, atol=1e-12)


@pytest.mark.parametrize("segments", [{}, {("a", "b"): 1}])
def test_other_dicts_are_refused(segments):
    with pytest.raises(ValueError, match="segment"):
        to_sql(segments, group="country")
