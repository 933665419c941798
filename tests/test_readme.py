"""What the README and the how-to pages show does run."""

import builtins
import re
import symtable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.utils.fixes import parse_version

from benchmarks import front_page
from benchmarks.whole_estimators import read
from skcalib import HistogramBinning
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
    assert "(doc/coming_from.md#with-scikit-learn" in "".join(first_screen)


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


@pytest.mark.slow
def test_readme_snippets_print_what_the_text_says(
    readme, capsys, tmp_path, monkeypatch
):
    """All blocks after the set-up, in the order of the page and in one folder."""
    for package in ("pandas", "pyarrow", "jinja2", "matplotlib"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    first, *jobs, fitted = re.findall(r"```python\n(.*?)```", readme, flags=re.S)
    exec(first, {})
    lines = capsys.readouterr().out.splitlines()
    shown = re.search(
        rf"{re.escape(first)}```\n\n```text\n(.*?)```", readme, flags=re.S
    )
    for line, told in zip(lines, shown[1].splitlines(), strict=True):
        assert line.split()[1] == told.split()[1]
        assert float(line.split()[0]) == pytest.approx(float(told.split()[0]), abs=2e-3)
    search, scorers, file_of_report = jobs
    for job in (search, scorers):
        exec(job, {})
        assert capsys.readouterr().out
    exec(file_of_report, {})
    command = re.search(r"^python -m skcalib (report .*)$", readme, flags=re.M)[1]
    assert main(command.split()) == 0
    assert "The report is in report.html." in capsys.readouterr().out
    exec(fitted, {})
    before, after = re.findall(r"log-loss (\d\.\d{3})", capsys.readouterr().out)
    assert float(after) < float(before)


@pytest.mark.skipif(
    "temperature" not in _METHODS,
    reason="scikit-learn has temperature scaling from 1.8 on",
)
@pytest.mark.slow
def test_the_table_of_random_splits(readme):
    """The figures of scikit-learn are exact; ours may move by .002 when the default
    method gets better.
    """
    found = front_page.splits(20)
    for number, name in enumerate(("log-loss", "Brier score", "calibration error")):
        row = re.search(rf"^\| {name} \|(.*)\|$", readme, flags=re.M)[1]
        told = [float(cell) for cell in row.split("|")]
        measured = [found[form][number] for form in front_page.FORMS]
        assert told[:3] == pytest.approx(measured[:3], abs=6e-4)
        assert told[3] == pytest.approx(measured[3], abs=2e-3)


def test_the_table_of_whole_estimators(readme):
    found, n_cells = front_page.whole_estimators(read(front_page.RESULTS))
    assert f"| {n_cells} complete estimators |" in readme
    names = ("Brier score, mean", "log-loss, median", "best of the four")
    for number, name in enumerate(names):
        row = re.search(rf"^\| {name} \|(.*)\|$", readme, flags=re.M)[1]
        told = [float(cell.replace("%", "")) for cell in row.split("|")]
        scale = 100 if number == 2 else 1
        measured = [scale * found[form][number] for form in front_page.FORMS]
        assert told == pytest.approx(measured, abs=0.51 if number == 2 else 6e-4)


def test_the_means_of_boosted_models(readme):
    """Gradient boosting and AdaBoost: the figures of 58 models in the text."""
    cells = {}
    for row in read(front_page.RESULTS):
        if row["model"] in ("boosting", "AdaBoost"):
            cell = row["data"], row["model"], row["rows"], row["seed"]
            cells.setdefault(cell, {})[row["form"]] = row["log_loss"]
    best, default, ours = [], [], []
    for found in cells.values():
        theirs = [found[form] for form in found if form.startswith("scikit-learn")]
        best.append(min(theirs))
        default.append(found["scikit-learn sigmoid, True"])
        ours.append(found["ours"])
    text = " ".join(readme.split())
    assert f"Over {len(cells)} boosted models" in text
    assert f"its mean log-loss is {np.mean(ours):.3f}" in text
    assert f"that of the best setting is {np.mean(best):.3f}" in text
    assert f"that of `CalibratedClassifierCV(model)` {np.mean(default):.3f}" in text


def test_readme_fits_into_190_lines(readme):
    assert len(readme.splitlines()) <= 190


@pytest.mark.parametrize(
    "data", ["breast_cancer", pytest.param("digits", marks=pytest.mark.slow)]
)
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
    assert ours < min(theirs) < figures["original model"][0]
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
