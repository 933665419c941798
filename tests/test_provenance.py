"""Provenance: what a fit was made of, kept with it and written beside each way out."""

import json
import shutil
import subprocess

import numpy as np
import pytest
from _catalog import RECALIBRATORS, UNWEIGHTED, each_of, refused
from sklearn.base import clone

import skcalib
from skcalib._rows.blocks import label_hash, row_hash
from skcalib.binning import EqualMass
from skcalib.export import (
    from_dict,
    to_dict,
    to_javascript,
    to_onnx,
    to_sql,
    to_sql_table,
)


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.random(n).round(3)
    return scores, rng.random(n) < scores


@pytest.mark.parametrize("recalibrator", each_of(RECALIBRATORS))
def test_two_fits_on_permuted_rows_have_one_hash(recalibrator):
    scores, y = rows()
    order = np.random.default_rng(1).permutation(len(y))
    first = clone(recalibrator).fit(scores, y).provenance_
    second = (
        clone(recalibrator).fit(scores[order].astype(np.float64), y[order]).provenance_
    )
    # The order of the labels has a hash of its own.
    assert first.pop("label_hash") != second.pop("label_hash")
    assert first == second
    assert (first["n_rows"], first["events"]) == (200, [200 - y.sum(), y.sum()])
    assert first["method"] == type(recalibrator).__name__
    assert first["versions"]["skcalib"] == skcalib.__version__
    y[7] = not y[7]
    assert clone(recalibrator).fit(scores, y).provenance_["hash"] != first["hash"]


def test_the_hash_sees_each_number_and_not_the_order_or_the_type():
    scores, y = np.random.default_rng(0).random((50, 3)), np.arange(50) % 3
    plain = row_hash(scores, y)
    order = np.random.default_rng(1).permutation(50)
    assert (
        row_hash(scores[order], y[order])
        == plain
        == row_hash(scores, y.astype(np.int8))
    )
    single = scores.astype(np.float32)
    assert row_hash(single, y) == row_hash(single.astype(np.float64), y) != plain
    seen = {
        plain,
        row_hash(scores, y, np.ones(50)),
        row_hash(scores, y, np.arange(1.0, 51)),
        row_hash(scores[:49], y[:49]),
    }
    for row in range(50):
        for column in range(3):
            changed = scores.copy()
            changed[row, column] = np.nextafter(changed[row, column], 2)
            seen.add(row_hash(changed, y))
        labels = y.copy()
        labels[row] = (y[row] + 1) % 3
        seen.add(row_hash(scores, labels))
    assert len(seen) == 4 + 150 + 50
    swapped = y.copy()
    swapped[[0, 1]] = y[[1, 0]]  # the same scores and the same labels, but other pairs
    assert row_hash(scores, swapped) not in seen
    zeros = np.zeros((4, 1))
    assert row_hash(zeros, np.zeros(4, dtype=bool)) != row_hash(
        zeros[:3], np.zeros(3, dtype=bool)
    )


def test_large_blocks_and_small_ones_agree():
    scores, y = np.random.default_rng(0).random((300_000, 1)), np.arange(300_000) % 2
    halves = [
        int(row_hash(scores[part], y[part]), 16)
        for part in (slice(1000), slice(1000, None))
    ]
    assert int(row_hash(scores, y), 16) == sum(halves) % 2**64


def test_parameters_are_those_of_the_fit():
    scores, y = rows()
    fitted = skcalib.HistogramBinning(EqualMass(4), smoothing=1.0).fit(
        scores, y, sample_weight=np.ones(200)
    )
    found = fitted.provenance_
    assert found["weight_type"] == "frequency"
    assert found["parameters"]["binning"] == {"class": "EqualMass", "n_bins": 4}
    fitted.set_params(smoothing=2.0, binning__n_bins=9)
    assert (
        found["parameters"]["smoothing"],
        found["parameters"]["binning"]["n_bins"],
    ) == (1.0, 4)


def test_every_way_out_carries_it():
    scores, y = rows()
    labels = np.where(y, "*/ DROP TABLE t; --", "it's\n// %s :x ?")
    fitted = skcalib.IsotonicCalibration(classes=np.unique(labels)).fit(scores, labels)
    own = fitted.provenance_["hash"]
    assert (
        from_dict(json.loads(json.dumps(to_dict(fitted)))).provenance_
        == fitted.provenance_
    )
    comment = to_sql(fitted).split("/*")[1]
    assert own in comment
    assert "200" in comment
    assert comment.endswith(" */")
    assert comment.count("*/") == 1
    assert not set(comment) & set("%:?'\n\"")
    assert own in to_sql_table(fitted).create
    text = to_javascript(fitted)
    assert own in text.splitlines()[1]
    if shutil.which("node"):
        call = text + "console.log(calibrate(0.5))"
        done = subprocess.run(
            ["node", "-"], input=call, capture_output=True, text=True, check=True
        )
        assert float(done.stdout) == pytest.approx(
            fitted.predict_proba([0.5])[0, 1], abs=1e-12
        )
    pytest.importorskip("onnx", reason="needs onnx")
    properties = {item.key: item.value for item in to_onnx(fitted).metadata_props}
    assert json.loads(properties["provenance"]) == fitted.provenance_


def test_parameters_without_a_number_in_json():
    fitted = skcalib.ClasswiseTemperatureScaling(max_deviation=np.inf).fit(*rows())
    assert fitted.provenance_["parameters"]["max_deviation"] == "inf"
    json.dumps(fitted.provenance_, allow_nan=False)


@pytest.mark.parametrize(
    "value", [{"array": [1.0], "dtype": "float64"}, {"number": "inf"}], ids=str
)
def test_provenance_that_is_not_plain_is_refused(value):
    document = to_dict(skcalib.PlattScaling().fit(*rows()))
    document["fitted"]["provenance_"]["pairs"][1][1] = value
    with refused(ValueError, "provenance_"):
        from_dict(document)


def test_the_hash_of_labels_sees_their_order_alone():
    _, y = rows()
    one = label_hash(y)
    assert one == label_hash(~y) == label_hash(y.astype(np.int8)) == label_hash(3 * y)
    assert label_hash(np.roll(y, 1)) != one
    assert label_hash(y[:-1]) != one
    codes = np.random.default_rng(0).integers(0, 4, 200)
    renamed = np.array([7, 2, 5, 0])[codes]
    assert label_hash(codes) == label_hash(renamed) != label_hash(codes[::-1])
    # a map of the scores and names of the labels do not matter
    scores, _ = rows()
    fitted = skcalib.PlattScaling().fit(scores**2, np.where(y, "b", "a"))
    assert fitted.provenance_["label_hash"] == one


def test_provenance_of_earlier_versions_is_read():
    document = to_dict(skcalib.PlattScaling().fit(*rows()))
    pairs = document["fitted"]["provenance_"]["pairs"]
    pairs[:] = [pair for pair in pairs if pair[0] != "label_hash"]
    assert "label_hash" not in from_dict(document).provenance_


def test_groups_and_features():
    scores, y = rows()
    sites = np.arange(200) % 2
    by_site = skcalib.GroupwiseRecalibrator(
        skcalib.PlattScaling(), merge_small_groups=True
    ).fit(scores, y, groups=sites)
    assert by_site.provenance_["parameters"]["recalibrator"]["class"] == "PlattScaling"
    assert (
        by_site.provenance_["hash"]
        == skcalib.PlattScaling().fit(scores, y).provenance_["hash"]
    )
    table = np.column_stack((scores, sites))
    corrected = skcalib.MulticalibratedRecalibrator(features=1, max_rounds=0).fit(
        table, y
    )
    assert corrected.provenance_["hash"] == by_site.provenance_["hash"]


def test_weights_count():
    scores, y = rows()
    for recalibrator in RECALIBRATORS:
        if isinstance(recalibrator, UNWEIGHTED):
            continue
        if isinstance(recalibrator, skcalib.PlattScaling | skcalib.IsotonicCalibration):
            one = (
                clone(recalibrator)
                .fit(scores, y, sample_weight=np.full(200, 2.0))
                .provenance_
            )
            assert (one["weight_type"], one["n_rows"]) == ("frequency", 200)
            assert one["hash"] != clone(recalibrator).fit(scores, y).provenance_["hash"]
