"""Results of stable names are those of the golden files: a release changes none of them in silence."""

import json

import numpy as np
import pytest
from _golden_recalibrators import _fitted, golden_recalibrators
from _golden_results import PATH, plain, results
from test_api_reference import REFERENCE

GOLDEN = json.loads(PATH.read_text("utf-8"))
# What has no results of its own: pictures, texts for other engines (the golden recalibrators have them), and bases.
ELSEWHERE = (
    "skcalib.displays.",
    "skcalib.engines.",
    "skcalib.export.",
    "skcalib.recalibrators.",
)
TESTED_AS_TOOLS = {
    "skcalib.binning.BaseBinning",
    "skcalib.simulation.fit_calibration_curve",  # by Nelder and Mead's method, to 1e-6: see test_simulation.py
    "skcalib.simulation.fit_score_distribution",
}


def leaves(value, path=""):
    """Yield the path and the value of each number and text."""
    if isinstance(value, (dict, list)):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(one, f"{path}/{key}")
    else:
        yield path, value


def assert_same(found, frozen):
    found, frozen = dict(leaves(found)), dict(leaves(frozen))
    assert found.keys() == frozen.keys()
    for path, value in frozen.items():
        exact = value is None or isinstance(value, str)
        assert (
            found[path] == value
            if exact
            else found[path] == pytest.approx(value, rel=1e-9, abs=1e-11, nan_ok=True)
        ), path


def test_results_are_frozen():
    found = {name: plain(result) for name, result in results(GOLDEN["data"])}
    assert found.keys() == GOLDEN["results"].keys()
    for name, result in found.items():
        assert_same(
            {name: json.loads(json.dumps(result))}, {name: GOLDEN["results"][name]}
        )


@pytest.mark.filterwarnings("ignore:3 rows use the pooled fit:UserWarning")
def test_fits_of_recalibrators_are_frozen():
    frozen = golden_recalibrators()
    fitted = list(_fitted())
    assert len(fitted) == len(frozen)
    for (recalibrator, *_), golden in zip(fitted, frozen, strict=True):
        found = recalibrator.predict_proba(golden.scores, **golden.options)
        np.testing.assert_allclose(
            found, golden.probabilities, rtol=0, atol=1e-9, err_msg=str(golden)
        )


def test_every_stable_name_is_frozen():
    frozen = {f"skcalib.{name.partition(':')[0]}" for name in GOLDEN["results"]}
    frozen |= {
        f"skcalib.{type(golden.recalibrator).__name__}"
        for golden in golden_recalibrators()
    }
    public = {
        f"{module}.{name}"
        for module, title, *_ in REFERENCE.SECTIONS
        for name in REFERENCE.names(module, title)
    }
    stable = {
        path
        for path in public - set(REFERENCE.provisional())
        if not path.startswith(ELSEWHERE)
    }
    assert stable - frozen == TESTED_AS_TOOLS


def test_a_changed_result_is_seen():
    assert_same({"a": [1.0, None, "x"]}, {"a": [1.0 + 1e-12, None, "x"]})
    for other in (
        {"a": [1.0 + 1e-8, None, "x"]},
        {"a": [1.0, None, "y"]},
        {"a": [1.0, None]},
    ):
        with pytest.raises(AssertionError):
            assert_same({"a": [1.0, None, "x"]}, other)
