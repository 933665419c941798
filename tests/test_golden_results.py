"""Results of stable names are those of the golden files: a release changes none of them
in silence.
"""

import json

import numpy as np
import pytest
from _golden_recalibrators import fits_of, golden_by_name
from _golden_results import PATH, assert_same, plain, results
from registry import REGISTRY
from registry._rows import fit_rows

FREEZE = "run `python tests/freeze.py`"
GOLDEN = json.loads(PATH.read_text("utf-8"))


@pytest.mark.filterwarnings("ignore:.*exactly 0 or 1")
def test_results_are_those_of_the_file():
    found = {name: plain(result) for name, result in results()}
    assert GOLDEN["results"].keys() == found.keys(), FREEZE
    for name, frozen in GOLDEN["results"].items():
        result = json.loads(json.dumps(found[name]))
        assert_same({name: result}, {name: frozen})


@pytest.mark.filterwarnings("ignore:3 rows use the pooled fit:UserWarning")
@pytest.mark.parametrize("name", golden_by_name())
def test_fits_of_recalibrators_are_those_of_the_file(name):
    frozen = golden_by_name()[name]
    fits = list(fits_of(REGISTRY[name], fit_rows()))
    assert len(fits) == len(frozen), FREEZE
    for (fitted, scores, _, _), golden in zip(fits, frozen, strict=True):
        np.testing.assert_array_equal(scores, golden.scores)
        found = fitted.predict_proba(golden.scores, **golden.options)
        np.testing.assert_allclose(
            found, golden.probabilities, rtol=0, atol=1e-9, err_msg=str(golden)
        )


def test_a_changed_result_is_seen():
    assert_same({"a": [1.0, None, "x"]}, {"a": [1.0 + 1e-12, None, "x"]})
    for other in (
        {"a": [1.0 + 1e-8, None, "x"]},
        {"a": [1.0, None, "y"]},
        {"a": [1.0, None]},
    ):
        with pytest.raises(AssertionError):
            assert_same({"a": [1.0, None, "x"]}, other)
