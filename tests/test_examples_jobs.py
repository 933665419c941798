"""The jobs and recipes of `doc/examples` run as a whole, and end with what they
promise.
"""

import json
import runpy
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from _engine_tables import spark_session
from test_tensors import _Tensor

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[1] / "doc" / "examples"


def job(name):
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_a_log_by_country_becomes_calibrated_parquet(engine, tmp_path):
    pytest.importorskip("duckdb", reason="needs duckdb")
    if engine == "spark":
        pytest.importorskip("pyspark", reason="needs pyspark")
        spark_session()  # the example takes the session that is there
    names = job("by_country")
    before, after, maps = names["main"](tmp_path, 400_000, engine)
    assert set(before) == {"FR", "IT", "PL", "MT"} == set(maps.groups_.tolist())
    assert min(before["IT"], before["PL"]) > 0.05
    assert max(after[country] for country in ("FR", "IT", "PL")) < 0.01
    assert [
        maps.recalibrators_[one].slope_ for one in ("FR", "IT", "PL")
    ] == pytest.approx([1, 0.6, 1.4], abs=0.05)
    if engine == "spark":  # it writes the rows that DuckDB writes
        written = tmp_path / "calibrated", tmp_path / "calibrated_by_duckdb"
        names["calibrate"](tmp_path / "log", written[1], "duckdb")
        assert names["largest_difference"](*written) < 1e-9


@pytest.mark.slow
def test_a_map_that_spark_fits_is_a_column_and_sql(tmp_path):
    pytest.importorskip("pyspark", reason="needs pyspark")
    pandas = pytest.importorskip("pandas")
    spark_session()
    rng = np.random.default_rng(0)
    p = rng.beta(1, 4, 20_000)
    pandas.DataFrame(
        {"clicked": (rng.random(p.size) < p**1.3).astype(int), "p": p}
    ).to_parquet(tmp_path / "log.parquet")
    expression, (before, after) = job("spark_to_sql")["main"](tmp_path)
    assert expression.count("(") == expression.count(")") > 0
    assert "`p`" in expression
    assert after < 0.01 < 0.03 < before


def test_a_drift_in_one_segment_gets_its_date(tmp_path):
    pytest.importorskip("pandas")
    alarm, monitors = job("drift_by_segment")["main"](tmp_path)
    table = monitors.table_
    changed = dict(zip(table.group.tolist(), table.change_time.tolist(), strict=True))
    assert alarm in ("2025-04", "2025-05")
    assert changed == {"cards": None, "loans": "2025-04", "mortgages": None}
    assert table.n_rows.sum() == 24 * 1500
    # what the service reads next month
    assert json.loads((tmp_path / "monitors.json").read_text("utf-8"))["schema"]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
def test_a_training_loop_ends_in_a_report(tmp_path):
    temperature, difference, pages = job("torch_to_report")["main"](tmp_path)
    assert temperature.temperature_ > 1.2  # the network was trained for too long
    assert difference < 1e-6
    assert all("<html" in page.read_text("utf-8") for page in pages)


@pytest.mark.slow
def test_tensors_by_duck_typing_end_in_a_report(tmp_path):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    names, rng = job("torch_to_report"), np.random.default_rng(0)
    logits = 4 * rng.normal(size=(2000, 3)).astype(np.float32)
    labels = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    tensors = [
        _Tensor(logits[part], "bfloat16") for part in (slice(1000), slice(1000, None))
    ]
    temperature = names["calibrate"](tensors[0], labels[:1000])
    assert temperature.temperature_ == pytest.approx(2, abs=0.2)
    pages = names["report"](temperature, tensors[1], labels[1000:], tmp_path)
    assert all("<html" in page.read_text("utf-8") for page in pages)


def _completion(*top):
    top = [
        {"token": token, "logprob": logprob, "bytes": None} for token, logprob in top
    ]
    return {"choices": [{"logprobs": {"content": [top[0] | {"top_logprobs": top}]}}]}


def test_logprobs_of_a_service():
    answer_logits = job("logprobs")["answer_logits"]
    completion = _completion(
        (" A", np.log(0.5)), ("a", np.log(0.1)), ("The", -3.0), ("C", np.log(0.2))
    )
    found = answer_logits(completion, ["A", "B", "C"])
    assert found == pytest.approx([np.log(0.6), -np.inf, np.log(0.2)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Paris. Confidence: 85 %", 0.85),
        ("I am 99.5% sure", 0.995),
        ("B (confidence 0.7)", 0.7),
        ("In 1998 it was 40 percent", 0.4),
        ("Sure: 1.0", 1.0),
        ("42 is the answer", np.nan),
        ("150 % sure", np.nan),
        ("no idea", np.nan),
    ],
)
def test_stated_confidences(text, expected):
    assert job("logprobs")["stated_confidence"](text) == pytest.approx(
        expected, nan_ok=True
    )


def test_logprobs_and_stated_confidences_are_recalibrated():
    errors = job("logprobs")["main"]()
    assert errors["logprobs"] > 0.15 > 0.09 > errors["logprobs, one temperature"]
    assert errors["stated"] > 0.2 > 0.05 > errors["stated, Platt"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of MLflow's own database
def test_a_run_in_mlflow(tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="needs mlflow")
    run_id = job("mlflow_run")["main"](tmp_path)
    run = mlflow.MlflowClient().get_run(run_id)
    assert {f"calibration_error_{name}" for name in ("estimate", "low", "high")} <= set(
        run.data.metrics
    )
    names = {one.path for one in mlflow.MlflowClient().list_artifacts(run_id)}
    assert {"reliability.png", "report.html"} <= names


@pytest.mark.slow
def test_evidently_beside_a_monitor():
    reason = "needs evidently, which does not start with pandas 3"
    pytest.importorskip("evidently.metrics", reason=reason, exc_type=ImportError)
    drifted, table = job("evidently_beside_monitor")["main"]()
    assert drifted == []
    assert table.change_time.tolist() == ["2025-08"]


def test_labels_are_planned_and_the_promise_holds():
    n_rows, share, fixed, equal = job("plan_labels")["main"](n_repeats=10)
    assert n_rows == 2660
    assert share >= 0.9
    assert max(fixed.epsilon, equal.epsilon) < 0.1


def test_a_metric_is_trusted_by_its_bias_and_power():
    fitted, network, bias, power = job("trust_in_a_metric")["main"](n_simulations=30)
    assert fitted.true_calibration_error() == pytest.approx(
        network.true_calibration_error(), abs=0.02
    )
    assert (
        bias["expected_calibration_error"].mean
        > 0.03
        > 0.01
        > bias["calibration_error"].mean
    )
    assert power[500] < 0.5 < power[50_000]
