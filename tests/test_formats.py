"""Recalibrator x input x format: each format of a fitted recalibrator gives the
probabilities of `predict_proba`, and NaN for what is no score.

`INPUTS` are the scales and the numbers of columns that scores have, `FORMATS` what a
fit is exported to. What only one format has is tested in that format's file.
"""

import json
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import pytest
from _catalog import RECALIBRATORS, check_each, quick, refused
from _golden_recalibrators import golden_recalibrators
from _programs import required
from scipy.special import softmax
from sklearn.base import clone

from skcalib import (
    GroupwiseRecalibrator,
    PlattScaling,
    maps,
)
from skcalib.export import from_dict, to_dict, to_javascript, to_onnx, to_python, to_sql
from skcalib.recalibrators._logit import LogitRecalibrator

# --- Inputs ---------------------------------------------------------------------------


class Input(NamedTuple):
    """Scores (n, C) and labels to fit to, and scores to export to.

    `new` is for all formats. `precise` is for those in double precision: scores far out
    or where a map may break. `wrong` are no scores.
    """

    scale: str
    scores: np.ndarray
    y: np.ndarray
    new: np.ndarray
    precise: np.ndarray
    wrong: np.ndarray

    def precise_for(self, fitted):
        """Return `precise` with scores at, just below and just above each step."""
        is_one_probability = self.scale == "probability" and self.new.shape[1] < 3
        if not is_one_probability:
            return self.precise
        steps = [self.precise[:, -1]]
        for name in ("bin_edges_", "score_knots_"):
            steps.append(np.ravel(getattr(fitted, name, [])))
        steps = np.concatenate(steps)
        steps = steps[np.isfinite(steps)]
        around = np.concatenate(
            (steps, np.nextafter(steps, -1), np.nextafter(steps, 2))
        )
        return _columns(np.unique(around.clip(0, 1)), self.new.shape[1])


NEAR_THE_ENDS = np.array(
    [0, 5e-324, 1e-300, 2.0**-53, 1e-15, 0.1, 0.25, 0.5, 0.75, 1 - 2.0**-53, 1]
)


def _columns(probability, n_columns):
    """Return the probabilities of an event as one column, or as two."""
    if n_columns == 1:
        return probability[:, None]
    return np.column_stack((1 - probability, probability))


def _probability_of_an_event(n_columns):
    rng = np.random.default_rng(0)
    scores = np.concatenate(
        (rng.beta(0.5, 0.8, 300), np.round(rng.random(60), 1), [0, 0, 1, 1])
    )
    y = rng.random(len(scores)) < scores**1.5
    new = np.concatenate((rng.random(60), scores[:30], NEAR_THE_ENDS))
    wrong = np.array([[np.nan], [-0.5], [1.5], [np.inf], [-np.inf]])
    if n_columns == 2:
        wrong = np.array([[np.nan, 0.5], [0.5, 0.6], [1.5, -0.5]])
    scores, new = _columns(scores, n_columns), _columns(new, n_columns)
    return Input("probability", scores, y, new, new[-11:], wrong)


def _logits_and_labels(n, n_classes, seed):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, n_classes))
    return logits, (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)


def _probabilities_of_classes():
    logits, y = _logits_and_labels(300, 4, seed=0)
    # Other rows: those of the fit lie on knots, where rounding decides.
    new = softmax(_logits_and_labels(60, 4, seed=1)[0], axis=1)
    ties = [[0.25] * 4, [0.375, 0.375, 0.125, 0.125], [0, 0.5, 0.5, 0]]
    new = np.concatenate((new, np.eye(4), ties))
    wrong = np.array([[np.nan, 0.5, 0.5, 0], [0.5] * 4, [1.5, -0.5, 0, 0]])
    return Input("probability", softmax(logits, axis=1), y, new, new[:0], wrong)


def _log_odds():
    logits, y = _logits_and_labels(300, 2, seed=0)
    new = np.array([-37, -3, -0.25, 0, 0.5, 1, 37.0])[:, None]
    precise = np.array([-1e100, -1e4, -40, -1e-17, 1e-17, 800, 1e100])[:, None]
    wrong = np.array([[np.nan], [np.inf], [-np.inf], [1e101]])
    return Input("logit", logits[:, 1:] - logits[:, :1], y, new, precise, wrong)


def _logits(n_columns):
    logits, y = _logits_and_labels(300, n_columns, seed=0)
    new, _ = _logits_and_labels(60, n_columns, seed=1)
    far = 100 * np.eye(n_columns), -50 * np.eye(n_columns), np.zeros((1, n_columns))
    wrong = np.zeros((2, n_columns))
    wrong[:, 0] = np.nan, 1e101
    new, precise = np.concatenate((new, new[:9] + 64, *far)), new[:5] + 1000
    return Input("logit", logits, y, new, precise, wrong)


INPUTS = {
    "one probability": _probability_of_an_event(1),
    "two probabilities": _probability_of_an_event(2),
    "four probabilities": _probabilities_of_classes(),
    "log-odds": _log_odds(),
    "two logits": _logits(2),
    "four logits": _logits(4),
}


# --- Formats: from a fit and scores (n, C) to probabilities ---------------------------


class Format(NamedTuple):
    """A format of a fit: `evaluate(fitted, scores, groups=None, ids=None)` returns its
    probabilities (n, K), or those of the event (n,).
    """

    evaluate: Callable
    tolerance: float
    packages: tuple = ()
    dtype: str = "float64"
    gives_nan: bool = True  # for what is no score, instead of an error
    takes_ids: bool = True


def by_map(fitted, scores, groups=None, ids=None):
    calibration_map = maps.calibration_map(fitted, n_columns=scores.shape[1])
    found = maps.Rows(scores, groups, ids)(calibration_map.output)
    return found[:, 0] if found.shape[1] == 1 else found


def by_json(fitted, scores, groups=None, ids=None):
    read = from_dict(json.loads(json.dumps(to_dict(fitted))))
    options = {"groups": groups, "ids": ids}
    options = {name: given for name, given in options.items() if given is not None}
    return read.predict_proba(scores, **options)


@cache
def _session(fitted, dtype):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    model = to_onnx(fitted, dtype=dtype).SerializeToString()
    return onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"]
    )


def by_onnx(fitted, scores, groups=None, ids=None):
    given = {"scores": scores}
    if groups is not None:
        given["group"] = np.array(groups, dtype=object)[:, None]
    (found,) = _session(fitted, str(scores.dtype)).run(["calibrated"], given)
    assert found.dtype == scores.dtype
    return found


@cache
def _python_function(fitted):
    module = {}
    exec(to_python(fitted), module)
    return module["calibrate"]


def by_python(fitted, scores, groups=None, ids=None):
    calibrate = _python_function(fitted)
    found = []
    for row, score in enumerate(_one_or_list(scores)):
        group = () if groups is None else (groups[row],)
        found.append(calibrate(score, *group))
    return np.array(found, dtype=float)


def _one_or_list(scores):
    """Return rows of scores as lists, and rows of one score as numbers."""
    if scores.shape[1] == 1:
        return scores[:, 0].tolist()
    return scores.tolist()


# What node does with each line: a text of JSON with a program, whose value it prints.
_EVALUATE = """
const lines = require('readline').createInterface({input: process.stdin});
lines.on('line', line => console.log(JSON.stringify((0, eval)(JSON.parse(line)))));
"""


@cache
def _node():
    required("SKCALIB_REQUIRE_NODE", shutil.which("node"), "needs node")
    return subprocess.Popen(
        ["node", "-e", _EVALUATE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def by_javascript(fitted, scores, groups=None, ids=None):
    text = to_javascript(fitted, name="f")
    node = _node()
    rows = json.dumps(_one_or_list(scores))  # with NaN and Infinity, as JavaScript has
    groups = json.dumps(groups or [None] * len(scores))
    program = f"(() => {{ {text}\nconst groups = {groups};"
    program += f" return {rows}.map((row, i) => f(row, groups[i])); }})()"
    node.stdin.write(json.dumps(program) + "\n")
    node.stdin.flush()
    return np.array(json.loads(node.stdout.readline()), dtype=float)


@pytest.fixture(scope="module", autouse=True)
def _node_ends():
    yield
    if _node.cache_info().currsize:
        node = _node()
        node.communicate()
        _node.cache_clear()


@cache
def _duckdb():
    import duckdb

    return duckdb.connect()


def by_sql(fitted, scores, groups=None, ids=None):
    import pyarrow

    names = [f"p{k}" for k in range(scores.shape[1])]
    texts = to_sql(
        fitted, score=names if len(names) > 1 else names[0], dialect="duckdb"
    )
    texts = [texts] if isinstance(texts, str) else texts
    connection = _duckdb()
    columns = dict(zip(names, scores.T, strict=True))
    connection.register("t", pyarrow.table({**columns, "n": range(len(scores))}))
    listed = ", ".join(f"{text} AS c{i}" for i, text in enumerate(texts))
    # unlike `sql`, `execute` reads the long texts once
    done = connection.execute(f"SELECT {listed} FROM t ORDER BY n")
    assert {str(column[1]) for column in done.description} == {"DOUBLE"}
    found = np.array(done.fetchall(), dtype=float)  # NULL is NaN
    return found[:, 0] if found.shape[1] == 1 else found


FORMATS = {
    "map": Format(by_map, 1e-13, gives_nan=False),
    "JSON": Format(by_json, 0, gives_nan=False),
    "SQL": Format(by_sql, 1e-12, ("duckdb", "pyarrow")),
    "ONNX": Format(by_onnx, 1e-12, ("onnx", "onnxruntime"), takes_ids=False),
    "ONNX, float32": Format(
        by_onnx, 1e-6, ("onnx", "onnxruntime"), dtype="float32", takes_ids=False
    ),
    "Python": Format(by_python, 1e-12, takes_ids=False),
    "JavaScript": Format(by_javascript, 1e-12, takes_ids=False),
}


def evaluated(kind, fitted, scores, **options):
    """Return the probabilities (n, K) by a format, from scores of its precision."""
    for package in kind.packages:
        if not find_spec(package):
            pytest.skip(f"needs {package}")
    with np.errstate(over="ignore"):
        scores = scores.astype(kind.dtype)
    found = kind.evaluate(fitted, scores, **options)
    if found.ndim == 1:
        return np.column_stack((1 - found, found))
    return found


# --- The matrix -----------------------------------------------------------------------


@cache
def fit(number, name):
    """Return a recalibrator of the catalogue, fitted to one of the inputs."""
    given = INPUTS[name]
    fitted = clone(RECALIBRATORS[number]).set_params(input=given.scale)
    return fitted.fit(given.scores, given.y)


QUICK = quick(RECALIBRATORS)
QUICK_NUMBERS = [
    pytest.param(RECALIBRATORS.index(recalibrator), id=str(recalibrator))
    for recalibrator in QUICK
]


def _matrix():
    """Yield recalibrator, input and the formats of its fit.

    SQL of several classes is slow: DuckDB reads a text for each class, which is as long
    as its map. That it begins with the softmax of logits where the map is one of
    probabilities is tested in `test_logits_are_probabilities`.
    """
    for number, recalibrator in enumerate(RECALIBRATORS):
        for name, given in INPUTS.items():
            n_columns = given.scores.shape[1]
            fast = [kind for kind in FORMATS if kind != "SQL"]
            if n_columns == 2:
                fast = ["map", "JSON", "ONNX", "ONNX, float32"]
            slow = []
            if n_columns == 1:
                fast.append("SQL")
            elif name != "four logits" or isinstance(recalibrator, LogitRecalibrator):
                slow = ["SQL"]
            # two columns are the same problem as one
            if n_columns == 2 or recalibrator not in QUICK:
                slow += fast
                fast = []
            text = f"{recalibrator}-{name}"
            if fast:
                yield pytest.param(number, name, fast, id=text)
            if slow:
                marks = [pytest.mark.slow]
                yield pytest.param(number, name, slow, marks=marks, id=f"{text}-slow")


@pytest.mark.parametrize(("number", "name", "kinds"), list(_matrix()))
def test_a_format_predicts_what_the_fit_predicts(number, name, kinds):
    def check(kind):
        _check_format(fit(number, name), INPUTS[name], FORMATS[kind])

    check_each(check, kinds)


def _check_format(fitted, given, kind):
    scores = given.new
    if kind.dtype == "float64":
        scores = np.concatenate((scores, given.precise_for(fitted)))
    # one evaluation for both: DuckDB takes seconds to read the texts of some fits
    wrong = given.wrong if kind.gives_nan else given.wrong[:0]
    found = evaluated(kind, fitted, np.concatenate((scores, wrong)))
    expected = fitted.predict_proba(scores.astype(kind.dtype))
    of_scores, of_wrong = np.split(found, [len(scores)])
    np.testing.assert_allclose(of_scores, expected, rtol=0, atol=kind.tolerance)
    assert np.isnan(of_wrong).all()


@pytest.mark.parametrize("name", ["two probabilities", "two logits"])
@pytest.mark.parametrize("number", QUICK_NUMBERS)
def test_a_fit_to_two_columns_takes_one_score(number, name):
    """A probability of the event, or log-odds: Python and JavaScript have no other."""
    fitted, given = fit(number, name), INPUTS[name]
    one = given.new[:, 1:]
    if given.scale == "logit":
        one = one - given.new[:, :1]
    expected = fitted.predict_proba(given.new)

    def check(kind):
        found = evaluated(FORMATS[kind], fitted, one)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)

    check_each(check, ["map", "SQL", "Python", "JavaScript"])


# --- The same for frozen fits, some with groups or ids of rows ------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*groups that were not seen")
@pytest.mark.parametrize("golden", golden_recalibrators(), ids=str)
def test_a_format_of_a_frozen_fit(golden):
    """`test_sql_engines` has SQL, which needs the names of columns."""
    kinds = sorted(FORMATS.keys() - {"SQL"})
    check_each(lambda kind: _check_frozen_fit(golden, FORMATS[kind]), kinds)


def _check_frozen_fit(golden, kind):
    fitted = golden.recalibrator
    if golden.ids is not None and not kind.takes_ids:
        with refused(ValueError, "UniformMassBinning(randomize=True)", "md5"):
            evaluated(kind, fitted, golden.alone)
        return
    scores = golden.scores if kind is FORMATS["JSON"] else golden.alone
    found = evaluated(kind, fitted, scores, groups=golden.groups, ids=golden.ids)
    # float32 holds the others not at all
    same = (scores.astype(kind.dtype) == scores).all(axis=1)
    assert same.sum() > 1
    np.testing.assert_allclose(
        found[same], golden.probabilities[same], rtol=0, atol=max(kind.tolerance, 1e-12)
    )


@pytest.mark.parametrize("kind", ["ONNX", "Python", "JavaScript"])
def test_groups_that_are_numbers(kind):
    scores, y = np.arange(1, 61) / 61, np.arange(60) % 3 == 0
    groups = np.arange(60) % 2 + 7
    by_group = GroupwiseRecalibrator(PlattScaling(), min_group_size=5)
    fitted = by_group.fit(scores, y, groups=groups)
    given = groups.tolist()
    if kind == "ONNX":  # its strings hold every group
        given = [str(group) for group in given]
    found = evaluated(FORMATS[kind], fitted, scores[:, None], groups=given)
    expected = fitted.predict_proba(scores, groups=groups)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
