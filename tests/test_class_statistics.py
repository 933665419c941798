"""Sums of batches of K classes: the same as those of all rows, whatever is left out."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from _catalog import refused
from scipy.special import expit, softmax

from skcalib.metrics import (
    BinStatistics,
    ClassBinStatistics,
    calibration_by_group,
    expected_calibration_error,
)

EDGES = np.linspace(0, 1, 11)


def _rows(n=300, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes)) * 2
    y = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits, y


def _batches(*arrays):
    return zip(*(np.array_split(values, 7) for values in arrays), strict=True)


def _same(found, expected):
    for name in ("count", "weight", "weighted_score", "weighted_label"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("input", ["probability", "logit"])
def test_top_label_in_batches(input):
    logits, y = _rows()
    proba = softmax(logits, axis=1)
    scores = proba if input == "probability" else logits
    parts = [
        BinStatistics.from_predictions(y, x, EDGES, labels=range(4), input=input)
        for x, y in _batches(scores, y)
    ]
    predicted = proba.argmax(axis=1)
    expected = BinStatistics.from_predictions(y == predicted, proba.max(axis=1), EDGES)
    _same(reduce(add, parts), expected)
    _same(sum(parts), expected)


def test_each_class_in_batches():
    logits, y = _rows()
    proba, names = softmax(logits, axis=1), np.array(["a", "b", "c", "d"])
    parts = [
        BinStatistics.from_predictions(
            names[y], x, EDGES, labels=names, input="logit", multiclass="marginal"
        )
        for x, y in _batches(logits, y)
    ]
    total = sum(parts)
    assert isinstance(total, ClassBinStatistics)
    assert list(total) == names.tolist()
    assert repr(total) == "300 samples, binned for each of 4 classes."
    for k, name in enumerate(names):
        _same(total[name], BinStatistics.from_predictions(y == k, proba[:, k], EDGES))
    error = expected_calibration_error(y, proba, multiclass="marginal", binning=10)
    of_classes = [expected_calibration_error(one) for one in total.values()]
    assert np.mean(of_classes) == pytest.approx(error)
    assert calibration_by_group(dict(total), n_resamples=9).n.tolist() == [300] * 4


def test_labels_that_are_ignored():
    logits, y = _rows(n=20)
    unlabelled = np.arange(20) % 3 == 0
    marked = np.where(unlabelled, 255, y)
    weight = np.arange(20) + 1.0
    options = {"labels": range(4), "input": "logit"}
    found = BinStatistics.from_predictions(
        marked, logits, EDGES, weight, ignore_label=255, **options
    )
    left = ~unlabelled
    expected = BinStatistics.from_predictions(
        y[left], logits[left], EDGES, weight[left], **options
    )
    _same(found, expected)
    nothing = BinStatistics.from_predictions(
        np.full(20, 255), logits, EDGES, ignore_label=255, multiclass="marginal"
    )
    assert [one.count.sum() for one in nothing.values()] == [0] * 4
    found_as_list = BinStatistics.from_predictions(
        marked.tolist(), logits.tolist(), EDGES, weight, ignore_label=255, **options
    )
    _same(found_as_list, expected)


def test_maps_of_pixels_by_the_documented_line():
    rng = np.random.default_rng(0)
    logits, y = rng.normal(size=(2, 3, 4, 5)), rng.integers(0, 3, (2, 4, 5))
    rows = logits.transpose(0, 2, 3, 1).reshape(-1, 3)
    for place in [(0, 0, 0), (1, 3, 4), (0, 2, 1)]:
        n, h, w = place
        row = np.ravel_multi_index(place, y.shape)
        assert rows[row].tolist() == logits[n, :, h, w].tolist()
        assert y.reshape(-1)[row] == y[place]


def test_one_column_of_logits_and_two_columns():
    logits, y = _rows(n_classes=2)
    z = logits[:, 1] - logits[:, 0]
    expected = BinStatistics.from_predictions(y, expit(z), EDGES)
    _same(BinStatistics.from_predictions(y, z, EDGES, input="logit"), expected)
    _same(BinStatistics.from_predictions(y, logits, EDGES, input="logit"), expected)


def test_what_does_not_fit_is_refused():
    logits, y = _rows()
    with refused(ValueError, "multiclass", "pooled"):
        BinStatistics.from_predictions(y, logits, EDGES, multiclass="pooled")
    with refused(ValueError, "input", "odds"):
        BinStatistics.from_predictions(y, logits, EDGES, input="odds")
    with refused(ValueError, "unknown label 255"):
        BinStatistics.from_predictions(
            np.where(y == 1, 255, y), logits, EDGES, input="logit", labels=range(4)
        )
    options = {"input": "logit", "multiclass": "marginal"}
    one = BinStatistics.from_predictions(y, logits, EDGES, **options)
    other = BinStatistics.from_predictions(
        np.where(y == 3, 9, y), logits, EDGES, labels=[0, 1, 2, 9], **options
    )
    with refused(ValueError, "classes differ", "labels="):
        one + other
    with pytest.raises(TypeError):
        one + one[0]


@pytest.mark.slow
def test_fifty_million_pixels_within_two_gigabytes():
    """In a process of its own, whose largest memory is what is asked for."""
    import subprocess
    import sys

    code = """
import resource
import numpy as np
from skcalib.metrics import BinStatistics
rng, total = np.random.default_rng(0), 0
batch = rng.normal(size=(1_000_000, 19)).astype(np.float32)
y = rng.integers(0, 19, 1_000_000)
y[::7] = 255
for _ in range({n}):
    total += BinStatistics.from_predictions(
        y, batch, np.linspace(0, 1, 16), labels=range(19), input="logit",
        multiclass="marginal", ignore_label=255,
    )
kept = int((y != 255).sum()) * {n}
assert all(one.count.sum() == kept for one in total.values())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""
    # the memory is that of one batch: three of fifty show it
    found = subprocess.run(
        [sys.executable, "-c", code.format(n=3)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(found.stdout) < 2.0
