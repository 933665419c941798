"""What a function in JavaScript takes: typed arrays, and neither holes nor null."""

import json
import subprocess
from shutil import which

import numpy as np
import pytest

from skcalib import PlattScaling, TemperatureScaling
from skcalib.export import to_javascript

pytestmark = pytest.mark.skipif(which("node") is None, reason="no node")


def run(model, calls):
    program = to_javascript(model) + "console.log(JSON.stringify(["
    program += ",".join(f"calibrate({call})" for call in calls) + "]));"
    done = subprocess.run(
        ["node", "-"], input=program, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def of_probabilities():
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(3), 90)
    return TemperatureScaling().fit(scores, np.arange(90) % 3)


def test_typed_arrays(of_probabilities):
    calls = [f"{kind}([0.25, 0.25, 0.5])" for kind in ("", "Float32Array.from")]
    calls += ["new Float64Array([0.25, 0.25, 0.5])", "new Int8Array([0, 0, 1])"]
    found = run(of_probabilities, calls)
    wanted = of_probabilities.predict_proba([[0.25, 0.25, 0.5]] * 3 + [[0, 0, 1]])
    np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize(
    "given",
    [
        "[0.5, , 0.5]",
        "null",
        "undefined",
        "'abc'",
        "0.5",
        "[0.5, null, 0.5]",
        "{length: 3}",
        "[0.5, '0.25', 0.25]",
        "new BigInt64Array(3)",
        "new DataView(new ArrayBuffer(3))",
        "[0.5, 0.5]",
        "new Float32Array([0.5, NaN, 0.5])",
    ],
)
def test_no_scores_give_nan(of_probabilities, given):
    assert run(of_probabilities, [given]) == [[None] * 3]


def test_one_score():
    model = PlattScaling().fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    found = run(model, ["null", "undefined", "'0.5'", "[0.5]", "0.5"])
    wanted = model.predict_proba([0.5])[0, 1]
    assert found[:4] == [None] * 4
    assert found[4] == pytest.approx(wanted, abs=1e-12)
