"""Maps by segment of a table leave Python."""

import json
import subprocess
from shutil import which

import numpy as np
import pytest
from scipy.special import softmax

from skcalib import (
    GroupwiseRecalibrator,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
)
from skcalib.engines import PredictionTable
from skcalib.export import from_dict, to_dict, to_javascript, to_onnx, to_sql

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
    with pytest.raises(ValueError, match="group must be the name of the column"):
        to_sql(maps)


def test_a_dict_of_maps_in_json(rows, maps):
    back = from_dict(json.loads(json.dumps(to_dict(maps))))
    np.testing.assert_array_equal(wanted(back, rows), wanted(maps, rows))
    with pytest.raises(ValueError, match=r"segments\[0\] must contain"):
        from_dict({"schema": 2, "segments": [{"segment": "a"}]})


def test_a_dict_of_maps_in_onnx(rows, maps):
    runtime = pytest.importorskip("onnxruntime")
    graph = to_onnx(maps, dtype="float64").SerializeToString()
    session = runtime.InferenceSession(graph)
    given = {
        "scores": np.append(rows["p"].to_numpy()[:60], [0.5, 1.5])[:, None],
        "group": np.array([*rows["country"].to_pylist()[:60], "fi", "se"])[:, None],
    }
    given["group"] = given["group"].astype(object)
    found = session.run(["calibrated"], given)[0]
    assert np.isnan(found[60:]).all()
    np.testing.assert_allclose(found[:60, 1], wanted(maps, rows), atol=1e-12)
    (provenance,) = (
        one.value for one in to_onnx(maps).metadata_props if one.key == "provenance"
    )
    assert set(json.loads(provenance)) == {"it's", "no", "se"}
    with pytest.raises(ValueError, match="none represents a missing value"):
        to_onnx({None: maps["no"]})
    other = PlattScaling(input="logit").fit([-1.0, 0.0, 0.0, 1.0], [0, 1, 0, 1])
    with pytest.raises(ValueError, match="have the same scores and classes"):
        to_onnx({"a": maps["no"], "b": other})


@pytest.mark.parametrize("is_logit", [False, True])
def test_segments_of_three_classes_in_onnx(is_logit):
    runtime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(90, 3))
    scores = logits if is_logit else softmax(logits, axis=1)
    kind = "logit" if is_logit else "probability"
    maps = {
        7: TemperatureScaling(input=kind).fit(scores, rng.integers(3, size=90)),
        8: VectorScaling(input=kind).fit(scores, rng.integers(3, size=90)),
    }
    new = scores[:20].copy()
    if is_logit:
        new[:5, 0], new[5:9, 1] = -np.inf, -1e4
    graph = to_onnx(maps, dtype="float64").SerializeToString()
    for group, model in maps.items():
        given = {"scores": new, "group": np.full((20, 1), str(group), dtype=object)}
        found = runtime.InferenceSession(graph).run(["calibrated"], given)[0]
        np.testing.assert_allclose(found, model.predict_proba(new), atol=1e-12)


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
    with pytest.raises(ValueError, match="group"):
        to_sql(segments, group="country")
