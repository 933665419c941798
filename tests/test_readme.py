"""What the README and the how-to pages show does run."""

import builtins
import re
import shutil
import symtable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.fixes import parse_version

from benchmarks.whole_estimators import FittedOnce
from skcalib import DirichletCalibration, HistogramBinning, RecalibratedClassifierCV
from skcalib.__main__ import main
from skcalib.metrics import calibration_error

_METHODS = [
    "sigmoid",
    "isotonic",
    *(
        ["temperature"]
        if parse_version(sklearn.__version__) >= parse_version("1.8")
        else []
    ),
]
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
    # `.ci/run` runs the first two lines of such blocks
    assert [len(block.splitlines()) for block in blocks] == [1, 1]
    assert "-m skcalib demo" in blocks[0]
    assert "-m pytest" in blocks[1]
    assert 'pip install ".[plot]"' in "".join(readme.splitlines()[:12])
    first_screen = readme.splitlines()[:12]
    assert "(doc/scikit_learn.md)" in "".join(first_screen)


def test_readme_snippets_name_nothing_that_they_do_not_define(readme):
    """Each block can be pasted alone: what it loads it has imported or assigned
    before.
    """
    for block in re.findall(r"```python\n(.*?)```", readme, flags=re.S):
        table = symtable.symtable(block, "block", "exec")
        unknown = [
            one.get_name()
            for one in table.get_symbols()
            if one.is_referenced() and not one.is_assigned() | one.is_imported()
        ]
        assert set(unknown) <= set(dir(builtins))


def _forms(estimator, frozen=False):
    """Return the forms of scikit-learn's one-liner around an estimator, all of those
    around a frozen one.
    """
    for method in _METHODS:
        for ensemble in ["auto"] if frozen else [True, False]:
            yield CalibratedClassifierCV(estimator, method=method, ensemble=ensemble)


def _best(forms, names):
    """Return the least log-loss of forms that are fitted and judged on the rows of the
    names.
    """
    rows = [(names[f"X_{part}"], names[f"y_{part}"]) for part in ("fit", "test")]
    return min(
        log_loss(rows[1][1], form.fit(*rows[0]).predict_proba(rows[1][0]))
        for form in forms
    )


@pytest.mark.slow
def test_readme_snippets_run_in_order_and_ours_is_the_best(readme, capsys):
    blocks = re.findall(r"```python\n(.*?)```", readme, flags=re.S)
    assert len(blocks) == 3
    for block, (theirs, rows) in zip(
        blocks,
        (("model", "train"), ("forest", "train"), ("model", "calibration")),
        strict=True,
    ):
        names = {}
        exec(block, names)
        printed = re.findall(
            r"^([a-zA-Z -]+?) +(\d\.\d{3})", capsys.readouterr().out, flags=re.M
        )
        assert [name for name, _ in printed][1] == "scikit-learn"
        bare, best, ours = (float(loss) for _, loss in printed)
        assert ours < best < bare
        assert all(loss in readme for _, loss in printed)
        estimator = names["forest"] if theirs == "forest" else GaussianNB()
        names |= {"X_fit": names[f"X_{rows}"], "y_fit": names[f"y_{rows}"]}
        is_fitted = rows == "calibration"
        estimator = (
            FrozenEstimator(names["model"]) if is_fitted else FittedOnce(estimator)
        )
        # none of them is better
        assert _best(_forms(estimator, is_fitted), names) == pytest.approx(
            best, abs=6e-4
        )
        if theirs == "forest":
            _check_search(names)


def _check_search(names):
    search, X, y = names["search"], names["X_test"], names["y_test"]
    assert set(y) == {"benign", "malignant"}
    assert len(search.cv_results_["params"]) == 8
    assert repr(search.best_params_) == "{'recalibrator': QuadraticScaling()}"
    for name in search.scorer_:
        assert np.isfinite(search.cv_results_[f"mean_test_{name}"]).all()
    np.testing.assert_allclose(search.predict_proba(X).sum(axis=1), 1)
    assert search.score(X, y) == pytest.approx(-log_loss(y, search.predict_proba(X)))
    shutil.rmtree(search.estimator.memory)


@pytest.mark.skipif(
    "temperature" not in _METHODS,
    reason="scikit-learn has temperature scaling from 1.8 on",
)
@pytest.mark.slow
def test_what_readme_says_of_the_forest(readme):
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=0
    )
    forest = FittedOnce(RandomForestClassifier(random_state=0))
    ours = RecalibratedClassifierCV(forest, DirichletCalibration(), ensemble=False)
    theirs = CalibratedClassifierCV(forest, method="temperature", ensemble=False)
    models = (forest, theirs, ours)
    losses = [
        log_loss(y_test, model.fit(X_train, y_train).predict_proba(X_test))
        for model in models
    ]
    names = {"X_fit": X_train, "y_fit": y_train, "X_test": X_test, "y_test": y_test}
    assert losses[1] == _best(_forms(forest), names)
    assert losses[2] < losses[1] < losses[0]
    assert all(f"{loss:.3f}" in readme for loss in losses)


@pytest.mark.parametrize("data", ["digits", "breast_cancer"])
def test_demo_prints_a_table_in_which_ours_is_the_best(data, capsys):
    assert main(["demo", "--data", data]) == 0
    rows = [
        line
        for line in capsys.readouterr().out.splitlines()
        if re.search(r"(\d\.\d{4}\s*){4}$", line)
    ]
    figures = {
        row[:42].strip(): [float(figure) for figure in row[42:].split()] for row in rows
    }
    ours = figures["RecalibratedClassifierCV(GaussianNB())"][0]
    theirs = [
        row[0] for name, row in figures.items() if name.startswith("scikit-learn")
    ]
    assert len(theirs) == 2 * len(_METHODS)
    assert ours < min(theirs) < figures["bare model"][0]
    for _, _, plugin, debiased in figures.values():
        assert debiased <= plugin


def test_howto_binning():
    strategy = _example("geometric_bins").GeometricBins(4)
    assert clone(strategy).bin_edges(np.array([0.3])).tolist() == [
        0,
        0.125,
        0.25,
        0.5,
        1,
    ]
    # (1/2) |.1 - 0| + (1/2) |.6 - 1| with one score in the lowest bin and one in the
    # highest
    error = calibration_error(
        [0, 1], [0.1, 0.6], norm=1, method="plugin", binning=strategy
    )
    assert error == pytest.approx(0.25)
    fitted = HistogramBinning(binning=strategy, input="logit").fit(
        [-3.0, -1.0, 0.5, 2.0], [0, 0, 0, 1]
    )
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
