"""`input="logit"` is softmax and then `input="probability"`, in every exported form."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone

import skcalib
from skcalib._rows.links import rounded, rounded_up_to
from skcalib.binning import EqualWidth, UniqueScores
from skcalib.maps import Rows, calibration_map
from tests.test_impossible_classes import of_javascript, of_onnx, of_sql

METHODS = [
    skcalib.HistogramBinning(5),
    skcalib.HistogramBinning(EqualWidth(4)),
    skcalib.HistogramBinning(UniqueScores()),
    skcalib.HistogramBinning(5, multiclass="top_label"),
    skcalib.UniformMassBinning(5),
    skcalib.UniformMassBinning(5, multiclass="top_label"),
    skcalib.VennAbers(),
    skcalib.VennAbers(max_n_knots=6),
    skcalib.ScalingBinning(binning=5),
    skcalib.IsotonicCalibration(),
]


SLOW = ["continuous", "shifted"]


@pytest.fixture(
    scope="module",
    params=["tied", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)],
)
def rows(request):
    """Logits of three classes: distinct, on a grid, or the same up to a constant."""
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(90, 3))
    if request.param != "continuous":
        logits = np.round(2 * logits) / 2
    if request.param == "shifted":
        logits += rng.normal(size=(90, 1))  # which changes the last digits alone
    y = (softmax(logits, axis=1).cumsum(axis=1) < rng.random((90, 1))).sum(axis=1)
    return request.param, logits, y


@pytest.mark.filterwarnings("ignore:Scores are tied")
@pytest.mark.parametrize(
    "way",
    # DuckDB takes seconds to plan the long texts of some methods.
    [of_onnx, of_javascript, pytest.param(of_sql, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_the_scores_of_the_fit_agree(rows, method, way):
    """Cuts lay on scores: SQL differed in 117 of 500 rows of uniform-mass bins."""
    _, logits, y = rows
    if way is of_sql and getattr(method, "max_n_knots", 6) is None:
        pytest.skip("long to plan")
    model = clone(method).set_params(input="logit").fit(logits, y)
    wanted = model.predict_proba(logits)
    as_nodes = Rows(logits)(calibration_map(model).output)
    np.testing.assert_allclose(as_nodes, wanted, rtol=0, atol=1e-12)
    np.testing.assert_allclose(way(model, logits), wanted, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Scores are tied")
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_it_is_the_softmax(rows, method):
    kind, logits, y = rows
    probabilities = softmax(logits, axis=1)
    if kind != "continuous":
        probabilities = rounded(probabilities)  # equal ones tie, as those of logits do
    of_logits = clone(method).set_params(input="logit").fit(logits, y)
    of_softmax = clone(method).fit(probabilities, y)
    found = of_logits.predict_proba(logits)
    wanted = of_softmax.predict_proba(probabilities)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore:Scores are tied")
@pytest.mark.parametrize("method", METHODS[-6:-2], ids=repr)
def test_a_constant_added_to_a_row_changes_nothing(rows, method):
    _, logits, y = rows
    rng = np.random.default_rng(0)
    model = clone(method).set_params(input="logit").fit(logits, y)
    moved = logits + rng.normal(size=(len(y), 1))
    np.testing.assert_allclose(
        model.predict_proba(moved), model.predict_proba(logits), atol=1e-12
    )


def test_rounded_up_to_is_the_largest_number_that_rounds_to_the_cut():
    rng = np.random.default_rng(1)
    cuts = np.concatenate((rng.random(500), [0.25, 0.5, 1.0, 1e-300, 0.1]))
    cuts = np.concatenate((cuts, rounded(cuts), np.nextafter(rounded(cuts), -1)))
    limits = rounded_up_to(cuts)
    assert (rounded(limits) <= cuts).all()
    assert (rounded(np.nextafter(limits, np.inf)) > cuts).all()
    assert rounded_up_to(0.0) == 0
