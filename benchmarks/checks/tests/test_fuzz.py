"""The fuzzers run, and find a fault that is planted."""

import numpy as np
import pytest

pytest.importorskip("duckdb")
pytest.importorskip("onnxruntime")
pytest.importorskip("narwhals")
from benchmarks.checks import fuzz  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("target", fuzz.TARGETS)
def test_nothing_fails(target, capsys):
    assert not fuzz.main(["--seconds", "3", "--seed", "11", "--only", target])
    assert f"{target}: " in capsys.readouterr().out


def test_a_planted_fault_is_found(monkeypatch, capsys):
    one_off = fuzz.to_sql
    monkeypatch.setattr(
        fuzz, "to_sql", lambda *args, **options: _off(one_off(*args, **options))
    )
    assert fuzz.main(["--seconds", "2", "--only", "export"])
    assert "FAILED export" in capsys.readouterr().out
    monitor = fuzz.CalibrationMonitor()
    with pytest.raises(AssertionError, match="n_rows_ is 1, expected 2"):
        fuzz.same_monitor(
            monitor.fit([0.5], [1]),
            fuzz.CalibrationMonitor().fit([0.5, 0.5], [1, 0]),
            "x",
        )
    with pytest.raises(AssertionError):
        fuzz.of_loop(monitor, np.array([0.5, 0.9]), np.array([True, False]))


def _off(texts):
    return (
        [f"{text} + 1e-9" for text in texts]
        if isinstance(texts, list)
        else f"1e-9 + ({texts})"
    )
