"""The how-to pages do what they say: their steps, taken one by one, add to the
library.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from _additions import add_row, edit, export, export_from_the_front, steps
from sklearn.linear_model import LogisticRegression

import skcalib
from skcalib._errors.binned import BinnedError
from skcalib.binning import EqualWidth
from skcalib.evaluation import compare
from skcalib.metrics import (
    Metric,
    _registry,
    calibration_error,
    calibration_error_interval,
    calibration_test,
    get_scorer,
    register_metric,
    reliability_curve,
)

pytestmark = pytest.mark.slow

DOC = Path(__file__).parents[1] / "doc"


def _example(name):
    spec = spec_from_file_location(name, DOC / "examples" / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


@pytest.fixture
def mean_calibration_error(monkeypatch):
    monkeypatch.setattr(_registry, "METRICS", dict(_registry.METRICS))
    return _example("mean_calibration_error")


@pytest.fixture
def overestimation_error(monkeypatch):
    monkeypatch.setattr(_registry, "METRICS", dict(_registry.METRICS))
    return _example("overestimation_error")


def test_a_binned_metric_by_the_way_of_the_page(overestimation_error):
    rng = np.random.default_rng(3)
    scores = rng.random(400)
    y = rng.random(400) < scores**1.5
    for binning in (None, 5, EqualWidth(7)):
        bins = reliability_curve(y, scores, binning=binning)
        excess = np.maximum(bins.mean_score - bins.event_frequency, 0)
        value = overestimation_error(y, scores, binning=binning)
        assert value == pytest.approx(excess @ bins.share, abs=1e-15)
        assert overestimation_error(bins) == pytest.approx(value, abs=1e-15)
        squares = overestimation_error(y, scores, binning=binning, norm=2)
        assert squares == pytest.approx(np.sqrt(excess**2 @ bins.share), abs=1e-15)
    options = {"metric": overestimation_error, "n_resamples": 99, "random_state": 0}
    found = calibration_error_interval(y, scores, binning=5, **options)
    assert found.estimate == overestimation_error(y, scores, binning=5)
    assert 0 < found.low < found.estimate < found.high
    bins = reliability_curve(y, scores, binning=5)
    assert calibration_error_interval(bins, **options) == pytest.approx(found)
    assert calibration_test(y, scores, **options).pvalue <= 0.02
    assert calibration_test(rng.random(400) < scores, scores, **options).pvalue > 0.05
    with pytest.raises(TypeError, match="overestimation_error has no parameter 'bins'"):
        calibration_error_interval(y, scores, bins=5, **options)


def test_a_registered_metric_has_a_scorer_and_is_compared_by_name(overestimation_error):
    X, y = np.random.default_rng(0).standard_normal((90, 3)), np.arange(90) % 3 > 0
    model = LogisticRegression().fit(X, y)
    proba = model.predict_proba(X)
    scorer = get_scorer("neg_overestimation_error", binning=4)
    assert scorer(model, X, y) == -overestimation_error(y, proba, binning=4)
    models = {"model": proba[:, 1], "base rate": np.full(90, y.mean())}
    options = {"metrics": ["overestimation_error"], "n_resamples": 20}
    table = compare(y, models, random_state=0, **options)
    assert table.estimate[0] == overestimation_error(y, proba)


def test_a_metric_of_the_library_keeps_its_name(overestimation_error):
    def calibration_error(y_true, y_proba):
        return 0.0

    with pytest.raises(ValueError, match="calibration_error is a metric of skcalib"):
        register_metric(Metric(calibration_error, BinnedError))


def test_the_metric_of_the_page(mean_calibration_error):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 400)
    y, weight = np.array(["a", "b", "c"])[rng.integers(0, 3, 400)], rng.random(400)
    for options in ({}, {"multiclass": "marginal"}, {"sample_weight": weight}):
        expected = calibration_error(
            y, proba, norm=1, method="plugin", binning=EqualWidth(1), **options
        )
        assert mean_calibration_error(y, proba, **options) == pytest.approx(
            expected, abs=1e-12
        )
    statistics = reliability_curve(y == "a", proba[:, 0], binning=7)
    assert mean_calibration_error(statistics) == pytest.approx(
        mean_calibration_error(y == "a", proba[:, 0])
    )
    found = calibration_error_interval(
        y, proba, metric=mean_calibration_error, n_resamples=50, random_state=0
    )
    assert found.low <= found.high


def test_the_metric_of_the_page_has_the_inverted_interval_and_the_test(
    mean_calibration_error,
):
    # One bin: the interval of the mean is that of the plugin error with one bin, whose
    # limits are exact, and approximated by the draws.
    rng = np.random.default_rng(1)
    scores = rng.random(300)
    y = rng.random(300) < scores**1.3
    options = {"n_resamples": 200, "random_state": 0}
    one_bin = {
        "metric": calibration_error,
        "norm": 1,
        "method": "plugin",
        "binning": EqualWidth(1),
        **options,
    }
    own = {"metric": mean_calibration_error, **options}
    found = calibration_error_interval(y, scores, **own)
    expected = calibration_error_interval(y, scores, **one_bin)
    assert found.estimate == pytest.approx(expected.estimate)
    assert tuple(found) == pytest.approx(tuple(expected), abs=0.01)
    assert found == calibration_error_interval(y, scores, interval="inverted", **own)
    statistics = reliability_curve(y, scores, binning=7)
    assert calibration_error_interval(statistics, **own).low > 0
    clusters = np.arange(300) // 10
    assert calibration_error_interval(y, scores, clusters=clusters, **own).high > 0
    rejected = calibration_test(y, scores, **own).pvalue < 0.05
    assert rejected == (calibration_error_interval(y, scores, **own).low > 0)


def _copy(library):
    shutil.copytree(
        Path(skcalib.__file__).parent,
        library / "skcalib",
        ignore=shutil.ignore_patterns("__pycache__"),
    )


def _run(library, program):
    environment = {**os.environ, "PYTHONPATH": str(library)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=library,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.slow
def test_three_files_add_a_metric(tmp_path):
    (module, _), (package, names), (table, row) = steps("metric")
    _copy(tmp_path)
    text = (DOC / "examples" / "overestimation_error.py").read_text("utf-8")
    text = text[: text.index("\n\nregister_metric(")]
    (tmp_path / module).write_text(text, "utf-8")
    edit(
        tmp_path / module,
        "from skcalib.metrics import CalibrationError, ErrorPower, Metric,"
        " register_metric",
        "from skcalib._errors.error import CalibrationError, ErrorPower",
    )
    export(tmp_path, package, names)
    add_row(tmp_path, table, names, row)
    program = """
import numpy as np
from sklearn.linear_model import LogisticRegression
from skcalib.metrics import calibration_error_interval, get_scorer, overestimation_error
X, y = np.random.default_rng(0).standard_normal((90, 3)), np.array(["a", "b", "c"] * 30)
model = LogisticRegression().fit(X, y)
proba = model.predict_proba(X)
score = get_scorer("neg_overestimation_error")(model, X, y)
found = calibration_error_interval(y, proba, metric=overestimation_error, n_resamples=9)
print(score == -overestimation_error(y, proba), found.estimate == -score)
"""
    assert _run(tmp_path, program) == ["True", "True"]


@pytest.mark.slow
def test_two_files_add_a_strategy(tmp_path):
    (module, _), (package, names) = steps("strategy")
    _copy(tmp_path)
    shutil.copy(DOC / "examples" / "geometric_bins.py", tmp_path / module)
    export(tmp_path, package, names)
    program = """
from skcalib.binning import GeometricBins
from skcalib.metrics import calibration_error
print(calibration_error([0, 1], [0.1, 0.6], norm=1, method="plugin", binning=GeometricBins(4)))
"""  # noqa: E501
    assert _run(tmp_path, program) == ["0.25"]


@pytest.mark.slow
def test_three_files_add_a_recalibrator_with_all_exports(tmp_path):
    (module, _), (room, names), (package, top_names) = steps("recalibrator")
    _copy(tmp_path)
    shutil.copy(DOC / "examples" / "complementary_log_log.py", tmp_path / module)
    export(tmp_path, room, names)
    export_from_the_front(tmp_path, package, top_names)
    program = """
import numpy as np
from skcalib import ComplementaryLogLog
from skcalib.export import from_dict, to_dict, to_onnx, to_sql
scores, y = np.arange(1, 30) / 30, np.arange(29) % 3 == 0
fitted = ComplementaryLogLog().fit(scores, y)
expected = fitted.predict_proba(scores)
print((from_dict(to_dict(fitted)).predict_proba(scores) == expected).all())
many = ComplementaryLogLog().fit(np.random.default_rng(0).dirichlet(np.ones(3), 90), [0, 1, 2] * 30)
print(from_dict(to_dict(many)).slope_ == many.slope_)
sql = to_sql(fitted, dialect="duckdb")
try:
    import duckdb, pandas
    rows = pandas.DataFrame({"p": scores})
    print(np.allclose(duckdb.sql(f"SELECT {sql} AS q FROM rows").df()["q"], expected[:, 1], rtol=0, atol=1e-12))
    from skcalib.engines import PredictionTable
    table = PredictionTable(duckdb.from_df(rows.assign(y=y * 1)), label="y", score="p")
    found = table.apply(fitted, output="q").df().sort_values("p")["q"]
    print(np.allclose(found, expected[:, 1], rtol=0, atol=1e-12))
except ImportError:
    print("True True")
try:
    import onnxruntime
    session = onnxruntime.InferenceSession(to_onnx(fitted, dtype="float64").SerializeToString())
    found = session.run(None, {"scores": scores[:, None]})[0]
    print(np.allclose(found, expected, rtol=0, atol=1e-12))
except ImportError:
    print("True")
"""  # noqa: E501
    assert _run(tmp_path, program) == ["True"] * 5


@pytest.mark.slow
def test_two_files_add_a_display(tmp_path):
    pytest.importorskip("matplotlib")
    (module, _), (package, names) = steps("display")
    _copy(tmp_path)
    shutil.copy(DOC / "examples" / "bias_display.py", tmp_path / module)
    export(tmp_path, package, names)
    program = """
from sklearn.linear_model import LogisticRegression
from skcalib.displays import BiasDisplay
X, y = [[0.0], [1.0], [2.0], [3.0]] * 10, [0, 0, 1, 1] * 10
display = BiasDisplay.from_estimator(LogisticRegression().fit(X, y), X, y)
print(abs(display.biases["LogisticRegression"][0]) < 1e-3, len(display.ax_.patches))
display = BiasDisplay.from_predictions(y, {"a": [0.5] * 40, "b": [0.9] * 40})
print([round(bias, 9) for bias, _, _ in display.biases.values()] == [0.0, 0.4], len(display.ax_.patches))
"""  # noqa: E501
    assert _run(tmp_path, program) == ["True", "1", "True", "2"]


def test_displays_are_made_of_public_names():
    """The example imports nothing private, and each tool says what it takes and
    returns.
    """
    pytest.importorskip("matplotlib")
    validate = pytest.importorskip("numpydoc.validate").validate
    from skcalib.displays import base

    code = (DOC / "examples" / "bias_display.py").read_text("utf-8")
    assert not re.search(r"import _|\._", code.replace("self._", ""))
    page = (DOC / "contributing.md").read_text("utf-8")
    for name in base.__all__:
        if name != "Frame":
            assert f"`{name}`" in page, name
        found = {
            code for code, _ in validate(f"skcalib.displays.base.{name}")["errors"]
        }
        assert not found & {"GL08", "SS01", "SS03", "SS06", "PR01", "PR02", "RT01"}, (
            name,
            found,
        )


def test_what_the_page_on_engines_names_is_there():
    import _engine_tables

    from skcalib.engines import _native

    (file, _), (tests, _), (extras, _) = steps("engine")
    assert Path(skcalib.__file__).parents[1] / file == Path(_native.__file__)
    assert Path(__file__).parents[1] / tests == Path(_engine_tables.__file__)
    assert (Path(__file__).parents[1] / extras).exists()
    page = (DOC / "contributing.md").read_text("utf-8") + (
        DOC.parent / "CONTRIBUTING.md"
    ).read_text("utf-8")
    for module, names in (
        (_native, ("_native_table", "fetched", "with_sql")),
        (_engine_tables, ("native", "_PACKAGES", "LAZY")),
    ):
        for name in names:
            assert name in page
            assert hasattr(module, name)
