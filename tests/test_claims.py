"""Claims of the pages that no other test checks: figures that two pages share, counts,
orders, computations.
"""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
import sklearn
from scipy.stats import binom
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.utils.fixes import parse_version

from benchmarks.estimator_means import _ERRORS, mean
from benchmarks.front_page import RESULTS
from benchmarks.levels.page import read_rows
from benchmarks.whole_estimators import read
from skcalib import (
    BetaCalibration,
    ClasswiseTemperatureScaling,
    CrossFittedClassifier,
    EnsembleTemperatureScaling,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    RecalibratedClassifierCV,
    Recalibrator,
    SplineCalibration,
    TemperatureScaling,
)
from skcalib.guarantees import conditional_epsilon
from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    calibration_test,
)
from skcalib.monitoring import CalibrationMonitor, estimated_performance

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
ROWS = read_rows(ROOT / "benchmarks/levels/rows.jsonl").values()


def _text(name):
    """Return the text of README, of a page of the guide, or of evidence; of one section
    only if `name` is ``page#Title of the section``.
    """
    if "#" in name:
        page, _, title = name.partition("#")
        return _text(page).split(f"\n## {title}\n")[1].split("\n## ")[0]
    if name == "README":
        return (ROOT / "README.md").read_text("utf-8")
    for folder in (ROOT / "doc", ROOT / "doc" / "evidence"):
        if (folder / f"{name}.md").exists():
            return (folder / f"{name}.md").read_text("utf-8")
    raise FileNotFoundError(name)


def _page(name):
    """Return the text of a page with single spaces, so that lines can be broken
    anywhere.
    """
    return " ".join(_text(name).split())


def _names(name):
    names = {}
    for block in re.findall(
        r"^```python\n(.*?)^```",
        _text(name),
        flags=re.S | re.M,
    ):
        exec(block, names)
    return names


def _row(page, start):
    """Return the numbers of the first row of a table that begins so."""
    line = re.search(
        rf"^\| {re.escape(start)} \|(.*)\|$",
        _text(page),
        flags=re.M,
    )
    return [
        float(cell.replace(" %", ""))
        for cell in line[1].split("|")
        if re.search(r"\d", cell)
    ]


# --- Figures that two pages share -----------------------------------------------------


@pytest.mark.parametrize(
    ("told", "measured"),
    [
        ("`StackedRecalibrator`", "StackedRecalibrator"),
        ("`SplineCalibration`", "SplineCalibration"),
        ("`PlattScaling`", "PlattScaling"),
        ("scikit-learn's sigmoid", "scikit-learn: sigmoid"),
        ("scikit-learn's isotonic regression", "scikit-learn: isotonic"),
    ],
)
def test_the_guide_quotes_the_arena(told, measured):
    line = re.search(
        rf"^\| {re.escape(told)} \| (\.\d+) \| (\d+) % \|$",
        (ROOT / "doc/which_recalibrator.md").read_text(),
        re.M,
    )
    log_loss, _, _, _, harmed = _row("arena", measured)
    assert [float(one) for one in line.groups()] == pytest.approx(
        [log_loss, harmed], abs=0.5
    )
    assert float(line[1]) == pytest.approx(log_loss, abs=6e-4)


def test_the_guide_quotes_whole_estimators():
    ours, theirs, bare = (
        _row("arena", name)
        for name in (
            "`RecalibratedClassifierCV(model)`",
            "scikit-learn: temperature, `ensemble=True`",
            "the original model",
        )
    )
    evidence = _page("evidence")
    assert "has a mean log-loss of .476 for ten kinds of model" in evidence
    assert "scikit-learn's best setting overall gives .496" in evidence
    assert "no recalibration, 1.479" in evidence
    assert (ours[0], theirs[0], bare[0]) == (0.476, 0.496, 1.479)
    assert ours[2] == 0  # harmed: none of 290
    assert "In none of 290 cases was the default significantly worse" in _page(
        "pipelines"
    )
    arena = _page("arena")
    assert (
        "significantly worse than the original model in none of 290 cases;"
        " scikit-learn's settings are significantly worse in 8 to 92" in arena
    )
    shares = [
        float(one)
        for one in re.findall(
            r"\| scikit-learn: \w+, `ensemble=\w+` \| \S+ \| \S+ \| (\S+) %", arena
        )
    ]
    assert (round(2.9 * min(shares)), round(2.9 * max(shares))) == (8, 92)


def test_the_arena_quotes_the_file_of_whole_estimators():
    cells = {}
    for row in read(RESULTS):
        cell = row["data"], row["model"], row["rows"], row["seed"]
        cells.setdefault(cell, {})[row["form"]] = row
    assert len(cells) == 290
    told = {
        "ours": "`RecalibratedClassifierCV(model)`",
        **{
            f"scikit-learn {method}, {together}": (
                f"scikit-learn: {method}, `ensemble={together}`"
            )
            for method in ("sigmoid", "isotonic", "temperature")
            for together in (True, False)
        },
    }
    for form, name in told.items():
        found = [of_cell[form] for of_cell in cells.values()]
        bare = np.array([of_cell["bare"]["log_loss"] for of_cell in cells.values()])
        log_loss_ = np.array([row["log_loss"] for row in found])
        brier = np.mean([row["brier"] for row in found])
        harmed = 100 * np.mean([row["z"] > 2.33 for row in found])
        expected = log_loss_.mean(), brier, harmed, (log_loss_ - bare).max()
        assert _row("arena", name) == pytest.approx(expected, abs=0.0501)
        assert _row("arena", name)[0] == pytest.approx(log_loss_.mean(), abs=6e-4)
    ours, *theirs = (
        np.array([of_cell[form]["log_loss"] for of_cell in cells.values()])
        for form in told
    )
    best = np.min(theirs, axis=0)
    wins = 100 * (ours < best - 1e-9).mean(), 100 * (ours < theirs[4] - 1e-9).mean()
    text = _page("arena")
    assert f"has a mean log-loss of {best.mean():.3f}, and the default" in text
    assert f"and the default has a lower log-loss in {wins[0]:.0f} % of" in text
    assert f"it, the default has a lower log-loss in {wins[1]:.0f} % of" in text


def test_the_guide_quotes_levels():
    naive = [
        100 * row.measured for row in ROWS if row.promise == "naive search: precision"
    ]
    assert (
        f"violated its limit in {min(naive):.0f} to {max(naive):.0f} % of the data"
        " sets, and in more than 10 % of them for " in _page("which_threshold")
    )
    assert f"{sum(one > 10 for one in naive)} of {len(naive)} kinds of data" in _page(
        "which_threshold"
    )
    broken = max(
        row.measured
        for row in ROWS
        # promises whose search starts where the scores say
        if row.promise in ("error when answered", "precision")
    )
    assert f"at most {100 * broken:.3g} %" in _page("which_threshold")
    worst = max(row.measured for row in ROWS if row.promise == "Hosmer-Lemeshow")
    assert f"rejects up to {100 * worst:.0f} % of calibrated models" in _page(
        "which_error"
    )
    assert "| tests on windows of 500 rows | .77 |" in _page("levels")
    assert "in 77 % of stable runs of 20,000 samples" in _page(
        "after_release#Has it drifted?"
    )


def test_the_guide_quotes_scale():
    assert (
        "A hundred million rows take 4 seconds for Platt scaling, and 17 for isotonic"
        " calibration" in _page("large_tables")
    )
    found = [
        _row("scale", name)[0]
        for name in (
            "fit of `PlattScaling`",
            "fit of isotonic calibration",
        )
    ]
    assert found == pytest.approx([4, 17], abs=0.5)


@pytest.mark.parametrize("position", range(len(_ERRORS)))
def test_means_of_errors(position):
    error = list(_ERRORS.values())[position]
    lines = (
        (ROOT / "doc/evidence/errors.md")
        .read_text("utf-8")
        .split("| samples | 200 | 1,000 | 5,000")[1]
        .splitlines()[1:]
    )
    calibrated, *_, curved, _, _ = (
        float(cell) for cell in re.findall(r"\| (\.\d+)(?= )", lines[position])
    )
    for told, power in ((calibrated, 1.0), (curved, 1.6)):
        assert mean(error, 200, power, 0.06) == pytest.approx(told, abs=0.012)


# --- Small computations ---------------------------------------------------------------


def test_rows_that_a_certified_error_needs():
    text = _page("which_threshold")
    assert (
        "takes at least 45 samples without an error, 77 with one error, 105 with two,"
        " and 184 with five" in text
    )
    for n, errors in ((45, 0), (77, 1), (105, 2), (184, 5)):
        assert binom.cdf(errors, n, 0.05) <= 0.1 < binom.cdf(errors, n - 1, 0.05)


def test_how_tolerance_grows_with_bins_and_falls_with_rows():
    assert (
        "Doubling the number of bins multiplies the tolerance by about 1.5; quadrupling"
        " the number of samples halves it." in _page("how_many_bins")
    )
    for n, n_bins in ((5000, 10), (20_000, 20)):
        assert conditional_epsilon(n, 2 * n_bins) / conditional_epsilon(
            n, n_bins
        ) == pytest.approx(1.5, abs=0.06)
        assert conditional_epsilon(4 * n, n_bins) / conditional_epsilon(
            n, n_bins
        ) == pytest.approx(0.5, abs=0.01)


def test_shares_of_groups_add_up():
    assert r"$6 / (\pi k)^2$" in _page("after_release#Has it drifted?")
    assert sum(6 / (np.pi * k) ** 2 for k in range(1, 100_000)) == pytest.approx(
        1, abs=1e-4
    )


def test_an_interval_excludes_0_exactly_if_the_test_rejects_at_half_its_level():
    excluded = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        scores = rng.random(300)
        labels = rng.random(300) < scores**1.25
        low = calibration_error_interval(labels, scores, random_state=0).low
        pvalue = calibration_test(
            labels, scores, metric=calibration_error, random_state=0
        ).pvalue
        excluded.append((low > 0, pvalue <= 0.05))
    assert all(one == other for one, other in excluded)
    assert len(set(excluded)) == 2


# --- Pages whose code runs ------------------------------------------------------------


@pytest.mark.slow
def test_figures_of_how_many_bins():
    text, names = _page("how_many_bins"), _names("how_many_bins")
    assert f"The fit uses {names['n_bins']} bins" in text
    assert f"{names['certificate'].epsilon:.4f} from the true event frequency" in text
    assert (
        f"Its epsilon is {names['of_countries'].epsilon:.4f}".replace("0.", ".") in text
    )
    closer = names["model"].certificate(interval="clopper_pearson")
    assert closer.epsilon <= names["certificate"].epsilon
    assert (
        f"The search selects {names['chosen']['scalingbinning__binning__n_bins']} bins"
        in text
    )
    found = names["verification"]
    assert (
        f"The estimate is {found.estimate:.3f} with an upper bound of"
        f" {found.upper_bound:.3f}".replace(" 0.", " .")
        in text
    )
    assert found.verified


def test_figures_of_the_page_of_scikit_learn():
    names = _names("coming_from#With scikit-learn 1.8 to 1.12")
    told = re.search(
        r"The log-losses are (\.\d+), (\.\d+) and (\.\d+)\.", _page("coming_from")
    ).groups()
    assert names["log_losses"] == pytest.approx([float(one) for one in told], abs=6e-4)
    X, y = make_classification(4000, random_state=0)
    model = LogisticRegression().fit(X[:2000], y[:2000])
    theirs = CalibratedClassifierCV(FrozenEstimator(model), method="sigmoid").fit(
        X[2000:], y[2000:]
    )
    ours = PlattScaling(input="logit", clip=None).fit(
        model.decision_function(X[2000:]), y[2000:]
    )
    assert (
        abs(
            theirs.predict_proba(X) - ours.predict_proba(model.decision_function(X))
        ).max()
        < 1e-5
    )
    if parse_version(sklearn.__version__) >= parse_version("1.8"):
        theirs = CalibratedClassifierCV(
            FrozenEstimator(model), method="temperature"
        ).fit(X[2000:], y[2000:])
        ours = TemperatureScaling(input="logit", clip=None).fit(
            model.decision_function(X[2000:]), y[2000:]
        )
        beta = theirs.calibrated_classifiers_[0].calibrators[0].beta_
        assert 2 * beta == pytest.approx(1 / ours.temperature_, rel=1e-3)


def test_the_figures_of_small_data():
    section = "which_recalibrator#Small data"
    names = _names(section)
    told = re.search(r"log-loss of (\.\d+) on .* log-loss of (\.\d+)\.", _page(section))
    assert [names["before"], names["after"]] == pytest.approx(
        [float(one) for one in told.groups()], abs=6e-4
    )


def test_figures_of_getting_started():
    names, text = _names("getting_started"), _page("getting_started")
    gain = names["gain"]
    assert f"{gain.estimate:.3f}, with a 90 % interval from {gain.low:.3f}" in text
    for name, loss in names["losses"].items():
        low, high = names["errors"][name].low, names["errors"][name].high
        assert f"| {name} | {loss:.3f} | {low:.3f} to {high:.3f} |" in text
    before, after = names["benefit"].values()
    assert f"from {before[0]:.3f} to {after[0]:.3f}" in text
    assert f"from {before[1]:.3f} to {after[1]:.3f}" in text
    first, second, *_ = np.array_split(np.arange(len(names["y_test"])), 6)
    assert second[0] <= names["monitor"].alarm_row_ <= second[-1]


def test_figures_of_a_judge_and_human_labels():
    pytest.importorskip("pandas", reason="to_frame needs pandas")
    names, text = _names("llm_as_a_judge"), _page("llm_as_a_judge")
    alone, (both,) = names["alone"], names["found"].to_frame().itertuples(index=False)
    for name, one in (("200 human labels alone", alone), ("both", both)):
        numbers = [f"{x:.3f}"[1:] for x in (one.estimate, one.low, one.high)]
        assert "| {} | {} | {} to {} |".format(name, *numbers) in text
    assert f"{names['verdict'].mean():.3f}"[1:] in text
    assert f"{names['right'].mean():.3f}"[1:] + " in truth" in text


def test_the_first_example_of_which_recalibrator():
    text = (ROOT / "doc/which_recalibrator.md").read_text("utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S)[:2]:
        exec(block, names := {})
    told = re.search(
        r"falls from (\.\d+) to (\.\d+)\.", _page("which_recalibrator")
    ).groups()
    assert [names["before"], names["after"]] == pytest.approx(
        [float(one) for one in told], abs=6e-4
    )


def _first(page, n_blocks=1):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", _text(page), flags=re.S)[:n_blocks]:
        exec(block, names)
    return names


def test_figures_of_recalibrating_training_rows():
    names = _first("pipelines")
    for name, value in names["log_losses"].items():
        assert _row("pipelines", name) == pytest.approx([value], abs=6e-4)
    told = re.search(r"the second figure is (\.\d+)", _page("pipelines"))[1]
    spline = (
        SplineCalibration()
        .fit(names["of_training"], names["y_train"])
        .predict_proba(names["new"])
    )
    assert names["log_loss"](names["y_test"], spline) == pytest.approx(
        float(told), abs=6e-4
    )


def test_the_table_of_drift():
    pytest.importorskip("pandas", reason="to_frame makes a data frame")
    change = _first("after_release#Has it drifted?")["change"]
    for _, quantity, *values in change.to_frame().itertuples():
        assert _row("after_release", quantity) == pytest.approx(values, abs=6e-4)


def test_figures_of_after_the_release():
    pytest.importorskip("pandas", reason="to_frame needs pandas")
    page = _text("after_release").split("\n## Has it drifted?\n")[0]
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)  # noqa: S102
    spring = estimated_performance(
        names["defaulted"], names["scores"], names["spring"], metrics="event_frequency"
    )
    autumn = names["expected"]
    found = [
        names["defaulted"].mean(),
        spring.estimate[0],
        spring.low[0],
        spring.high[0],
        names["defaulted_in_spring"].mean(),
        autumn.estimate[1],
        autumn.low[1],
        autumn.high[1],
        names["defaulted_in_autumn"].mean(),
        names["audited"].low[0],
        names["audited"].high[0],
        names["audited"].change.pvalue,
        log_loss(names["outcome"], names["stream"]),
        log_loss(names["outcome"], np.concatenate(names["issued"])),
    ]
    for number in found:
        assert f"{number:.3f}".lstrip("0") in page


def test_the_first_interval_of_which_error():
    told = re.search(
        r"The error is (\.\d+), with a 90 % interval from (\.\d+) to (\.\d+)\.",
        _page("which_error"),
    )
    assert _first("which_error")["interval"] == pytest.approx(
        [float(one) for one in told.groups()], abs=6e-4
    )


def test_log_losses_of_many_classes():
    names = _first("many_classes", 2)
    assert _row("many_classes", "log-loss on held-out data") == pytest.approx(
        list(names["log_losses"].values()), abs=6e-3
    )


def test_how_often_a_calibrated_model_is_recalibrated():
    """About half the time, and by little: the rule asks for half a standard error of
    gain.
    """
    moved = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        scores = rng.random(1000)
        found = Recalibrator().fit(scores, rng.random(1000) < scores)
        moved.append(abs(found.predict_proba(scores)[:, 1] - scores).mean())
    assert 0 < np.count_nonzero(np.array(moved) > 1e-9) < 12
    assert np.mean(moved) < 0.01


def test_alarms_of_the_other_monitors():
    rng = np.random.default_rng(0)
    scores, months = rng.beta(1, 4, 12_000), np.repeat(np.arange(12), 1000)
    truth = 1 / (1 + np.exp(-(np.log(scores / (1 - scores)) + 0.5 * (months >= 8))))
    y = rng.random(12_000) < truth
    alarms = [
        CalibrationMonitor(confidence_level=0.99, restarts=restarts)
        .fit(scores, y)
        .alarm_row_
        for restarts in (False, True)
    ]
    assert (
        f"raises its alarm at sample {alarms[0]:,}, and the second at sample"
        f" {alarms[1]:,}" in _page("after_release#Has it drifted?")
    )


# --- What the tables of methods say ---------------------------------------------------


@pytest.mark.parametrize(
    "method",
    [
        PlattScaling(),
        BetaCalibration(),
        IsotonicCalibration(centered=True),
        SplineCalibration(monotone=True),
    ],
    ids=str,
)
def test_methods_that_keep_the_ranking(method):
    rng = np.random.default_rng(0)
    scores = np.sort(rng.random(500))
    found = method.fit(scores, rng.random(500) < scores**2).predict_proba(scores)[:, 1]
    assert (np.diff(found) >= 0).all()
    inner = (
        found[(found > 0) & (found < 1)]
        if isinstance(method, IsotonicCalibration)
        else found
    )
    assert len(np.unique(inner)) == len(inner) > 400


@pytest.mark.parametrize(
    "method",
    [TemperatureScaling(), ClasswiseTemperatureScaling(), EnsembleTemperatureScaling()],
    ids=str,
)
def test_methods_that_keep_the_predicted_class(method):
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(4), 600)
    labels = [
        rng.choice(4, p=row)
        for row in scores**0.5 / (scores**0.5).sum(axis=1, keepdims=True)
    ]
    found = method.fit(scores, labels).predict_proba(scores)
    assert (found.argmax(axis=1) == scores.argmax(axis=1)).all()


def test_methods_that_predict_exactly_0_and_1():
    scores, labels = np.repeat([0.1, 0.5, 0.9], 20), np.repeat([0, 1], 30)
    for method in (IsotonicCalibration(), HistogramBinning(3)):
        assert set(method.fit(scores, labels).predict_proba(scores)[[0, -1], 1]) == {
            0,
            1,
        }
    smooth = HistogramBinning(3, smoothing=1).fit(scores, labels).predict_proba(scores)
    assert (smooth > 0).all()


def test_the_default_of_the_one_liner():
    model = RecalibratedClassifierCV(LogisticRegression()).fit(
        *make_classification(200, random_state=0)
    )
    assert isinstance(model.calibrated_classifiers_[0].recalibrator, Recalibrator)
    assert model.chosen_
    assert model.gain_.low <= model.gain_.estimate <= model.gain_.high


def test_versions_of_the_installation():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = _page("getting_started")
    assert f"Python {project['requires-python'].removeprefix('>=')}," in text
    for requirement in project["dependencies"]:
        name, version = requirement.split(">=")
        assert f"{name} {version}".lower() in text.lower()
    for extra in ("plot", "report", "engine", "spark", "onnx"):
        assert extra in project["optional-dependencies"]
        assert f'`pip install ".[{extra}]"`' in text


class _Counted(GaussianNB):
    fits = 0

    def fit(self, *arguments, **options):
        type(self).fits += 1
        return super().fit(*arguments, **options)


def test_number_of_fits_with_and_without_memory(tmp_path):
    X, y = make_classification(60, random_state=0)
    counted = []
    for memory in (None, str(tmp_path)):
        _Counted.fits = 0
        steps = [
            ("scores", CrossFittedClassifier(_Counted(), cv=5)),
            ("calibrate", PlattScaling()),
        ]
        grid = {
            "calibrate": [
                PlattScaling(),
                PlattScaling(clip=None),
                BetaCalibration(),
                *map(HistogramBinning, (3, 4, 5)),
            ]
        }
        GridSearchCV(Pipeline(steps, memory=memory), grid, cv=3).fit(X, y)
        counted.append(_Counted.fits)
    assert counted == [114, 24]
    text = _page("pipelines")
    assert (
        "and 6 times at the end: 114 fits. With `memory=`, it fits the classifier 6"
        " times per fold and 6 times at the end: 24 fits." in text
    )
