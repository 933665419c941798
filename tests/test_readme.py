"""What the README and the how-to pages show does run."""

import re
import shutil
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from skcalib import HistogramBinning
from skcalib.__main__ import main
from skcalib.metrics import calibration_error

ROOT = Path(__file__).parents[1]


def _example(name):
    spec = spec_from_file_location(name, ROOT / "doc" / "examples" / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def readme():
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_starts_with_two_commands(readme):
    blocks = re.findall(r"```bash\n(.*?)```", readme, flags=re.S)
    assert [len(block.splitlines()) for block in blocks] == [1, 1]
    assert "-m skcalib demo" in blocks[0]
    assert "-m pytest" in blocks[1]


def test_readme_snippets_run_and_choose_bins(readme):
    first, search_bins, after_fit = re.findall(r"```python\n(.*?)```", readme, flags=re.S)
    names = {}
    exec(first.replace("RandomForestClassifier(", "RandomForestClassifier(n_estimators=25, "), names)  # a smaller one
    exec(search_bins.replace("RandomForestClassifier(", "RandomForestClassifier(n_estimators=10, "), names)
    search, X, y = names["search"], names["X_test"], names["y_test"]
    assert set(y) == {"benign", "malignant"}
    assert len(search.cv_results_["params"]) == 6
    for name in search.scorer_:
        assert np.isfinite(search.cv_results_[f"mean_test_{name}"]).all()
    proba = search.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert search.score(X, y) == pytest.approx(-np.mean((proba[:, 1] - (y == "malignant")) ** 2))
    shutil.rmtree(search.estimator.memory)
    names |= {"fitted_model": search.best_estimator_[0].estimator_, "X_calibration": X[::2], "y_calibration": y[::2]}
    names |= {"X_test": X[1::2], "y_test": y[1::2]}
    exec(after_fit, names)
    assert names["y_proba"].shape == (len(X[1::2]), 2)


@pytest.mark.parametrize("data", ["digits", "breast_cancer"])
def test_demo_prints_a_table_in_which_recalibration_pays(data, capsys):
    assert main(["demo", "--data", data]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if re.search(r"(\d\.\d{4}\s*){4}$", line)]
    log_loss = {row.split("(")[0].split()[0]: float(row.split()[-4]) for row in rows}
    assert set(log_loss) == {
        "uncalibrated",
        "PlattScaling",
        "TemperatureScaling",
        "IsotonicCalibration",
        "HistogramBinning",
        "ScalingBinning",
    }
    assert all(log_loss[name] < log_loss["uncalibrated"] for name in log_loss if name != "uncalibrated")


def test_howto_binning():
    strategy = _example("geometric_bins").GeometricBins(4)
    assert clone(strategy).bin_edges(np.array([0.3])).tolist() == [0, 0.125, 0.25, 0.5, 1]
    # (1/2) |.1 - 0| + (1/2) |.6 - 1| with one score in the lowest bin and one in the highest
    error = calibration_error([0, 1], [0.1, 0.6], norm=1, method="plugin", binning=strategy)
    assert error == pytest.approx(0.25)
    fitted = HistogramBinning(binning=strategy, input="logit").fit([-3.0, -1.0, 0.5, 2.0], [0, 0, 0, 1])
    assert fitted.bin_values_.tolist() == [0, (0.125 + 0.25) / 2, 0, 0.5]


def test_howto_recalibrator():
    recalibrator = _example("complementary_log_log").ComplementaryLogLog()
    rng = np.random.default_rng(0)
    log_odds = rng.normal(size=20_000)
    truth = -np.expm1(-np.exp(0.7 * log_odds - 0.5))
    labels = np.where(rng.random(20_000) < truth, "yes", "no")
    fitted = clone(recalibrator).set_params(input="logit").fit(log_odds, labels)
    assert abs(fitted.predict_proba(log_odds)[:, 1] - truth).max() < 0.05
    three = rng.dirichlet(np.ones(3), size=300)
    fitted = clone(recalibrator).fit(three, rng.integers(3, size=300))
    assert len(fitted.slope_) == 3
    np.testing.assert_allclose(fitted.predict_proba(three).sum(axis=1), 1)
