"""What a function in JavaScript takes: typed arrays and groups, no holes and no null.
`test_formats` compares its probabilities.
"""

import json
import subprocess
from shutil import which

import numpy as np
import pytest
from _catalog import refused
from _programs import required

from skcalib import GroupwiseRecalibrator, PlattScaling, TemperatureScaling
from skcalib.export import to_javascript


@pytest.fixture(scope="module", autouse=True)
def _has_node():
    required("SKCALIB_REQUIRE_NODE", which("node"), "needs node")


def in_javascript(program):
    """Return what node prints, a list of JSON values, one a line."""
    done = subprocess.run(
        ["node", "-"], input=program, capture_output=True, text=True, check=True
    )
    return list(map(json.loads, done.stdout.splitlines()))


def run(model, calls):
    program = to_javascript(model) + "console.log(JSON.stringify(["
    program += ",".join(f"calibrate({call})" for call in calls) + "]));"
    (found,) = in_javascript(program)
    return found


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


NOT_PROBABILITIES = [
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
]


def test_no_scores_give_nan(of_probabilities):
    found = run(of_probabilities, NOT_PROBABILITIES)
    assert found == [[None] * 3] * len(NOT_PROBABILITIES)


def test_one_score():
    model = PlattScaling().fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    found = run(model, ["null", "undefined", "'0.5'", "[0.5]", "0.5"])
    wanted = model.predict_proba([0.5])[0, 1]
    assert found[:4] == [None] * 4
    assert found[4] == pytest.approx(wanted, abs=1e-12)


def test_javascript_of_what_is_no_score():
    scores, y = np.arange(1, 31) / 31, np.arange(30) % 3 == 0
    two = to_javascript(PlattScaling().fit(scores, y), name="two")
    logits = to_javascript(
        PlattScaling(input="logit").fit(9 * scores - 4, y), name="$logits"
    )
    many = TemperatureScaling().fit(
        np.random.default_rng(0).dirichlet(np.ones(3), 30), np.arange(30) % 3
    )
    groups = GroupwiseRecalibrator(PlattScaling(), min_group_size=5)
    given = groups.fit(
        scores, y, groups=np.array(["a</script>", "b\u2028"])[np.arange(30) % 2]
    )
    wrong = [
        "two(NaN)",
        "two(-0.1)",
        "two(1.1)",
        "two(undefined)",
        "$logits(Infinity)",
        "$logits(1e101)",
    ]
    wrong += [
        "many([0.5, 0.5])",
        "many([0.5, 0.4, 0.2])",
        "many([0.5, NaN, 0.5])",
        "of(0.5)",
        "of(2, 'a')",
    ]
    calls = [
        f"console.log([{call}].flat().every(Number.isNaN))"
        for call in [*wrong, "of(0.5, null)"]
    ]
    functions = [
        two,
        logits,
        to_javascript(many, name="many"),
        to_javascript(given, name="of"),
    ]
    assert "</script" not in functions[-1]
    assert in_javascript("\n".join([*functions, *calls])) == [True] * len(calls)
    unseen = given.pooled_recalibrator_.predict_proba([0.25])[0, 1]
    assert in_javascript(
        functions[-1] + "console.log(of(0.25, 'never seen'))"
    ) == pytest.approx([unseen], abs=1e-12)
    for name in ("", "a b", "1a", "a;b", None):
        with refused(ValueError, "name"):
            to_javascript(many, name=name)
