"""The how-to pages do what they say: their steps, taken one by one, add to the library."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import skcalib
from skcalib.binning import EqualWidth
from skcalib.metrics import calibration_error, calibration_error_interval, reliability_curve

DOC = Path(__file__).parents[1] / "doc"


@pytest.fixture(scope="module")
def mean_calibration_error():
    spec = spec_from_file_location("mean_calibration_error", DOC / "examples" / "mean_calibration_error.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.mean_calibration_error


def test_the_metric_of_the_page(mean_calibration_error):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 400)
    y, weight = np.array(["a", "b", "c"])[rng.integers(0, 3, 400)], rng.random(400)
    for options in ({}, {"multiclass": "marginal"}, {"sample_weight": weight}):
        expected = calibration_error(y, proba, norm=1, method="plugin", binning=EqualWidth(1), **options)
        assert mean_calibration_error(y, proba, **options) == pytest.approx(expected, abs=1e-12)
    statistics = reliability_curve(y == "a", proba[:, 0], binning=7)
    assert mean_calibration_error(statistics) == pytest.approx(mean_calibration_error(y == "a", proba[:, 0]))
    found = calibration_error_interval(y, proba, metric=mean_calibration_error, n_resamples=50, random_state=0)
    assert found.low <= found.high


def test_three_files_add_a_metric(tmp_path):
    page = (DOC / "howto_metric.md").read_text("utf-8")
    steps = re.split(r"^\d\. ", page.split("## Add it to the library")[1], flags=re.M)[1:]
    files = [re.match(r"`([^`]*)`", step).group(1) for step in steps]
    assert len(files) == 3
    code = [re.findall(r"```python\n\s*(.*?)\n\s*```", step, flags=re.S) for step in steps]
    shutil.copytree(Path(skcalib.__file__).parent, tmp_path / "skcalib", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(DOC / "examples" / "mean_calibration_error.py", tmp_path / files[0])
    _edit(tmp_path / files[1], "__all__ = [", code[1][0] + '\n\n__all__ = [\n    "mean_calibration_error",')
    _edit(tmp_path / files[2], "__all__ = [", code[1][0] + "\n\n__all__ = [")
    _edit(tmp_path / files[2], "        Metric(groupwise", f"        {code[2][0]}\n        Metric(groupwise")
    program = """
import numpy as np
from sklearn.linear_model import LogisticRegression
from skcalib.metrics import calibration_error_interval, get_scorer, get_scorer_names, mean_calibration_error
from skcalib.metrics._table import METRICS
X, y = np.random.default_rng(0).standard_normal((90, 3)), np.array(["a", "b", "c"] * 30)
model = LogisticRegression().fit(X, y)
score = get_scorer("neg_mean_calibration_error")(model, X, y)
print(score == -mean_calibration_error(y, model.predict_proba(X)), METRICS["mean_calibration_error"].limits == (0, 1))
"""
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def _edit(path, old, new):
    text = path.read_text("utf-8")
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new), "utf-8")
