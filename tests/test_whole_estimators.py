"""The benchmark of whole estimators: the wrapper that fits once, its statistics, and a
file of results that grows.
"""

import csv

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.fixes import parse_version

from benchmarks import best_afterwards
from benchmarks.whole_estimators import FittedOnce, cells, main, z_statistic

pytestmark = pytest.mark.slow


class Counted(GaussianNB):
    """A classifier that counts its fits."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Counted.fits += 1
        return super().fit(X, y, sample_weight)


def test_each_set_of_rows_is_fitted_once():
    X, y = make_classification(200, random_state=0)
    weight = np.arange(200) % 3
    Counted.fits = 0
    for _ in range(2):
        for estimator in (
            FittedOnce(Counted()),
            CalibratedClassifierCV(FittedOnce(Counted()), cv=3),
        ):
            found = clone(estimator).fit(X, y).predict_proba(X)
    assert Counted.fits == 1 + 3
    np.testing.assert_array_equal(
        found, CalibratedClassifierCV(GaussianNB(), cv=3).fit(X, y).predict_proba(X)
    )
    weighted = FittedOnce(Counted()).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(
        weighted.predict_proba(X), GaussianNB().fit(X, y, weight).predict_proba(X)
    )
    assert not hasattr(weighted, "decision_function")
    logistic = FittedOnce(LogisticRegression()).fit(X, y)
    np.testing.assert_array_equal(
        logistic.decision_function(X),
        LogisticRegression().fit(X, y).decision_function(X),
    )


def test_rounding_is_no_harm():
    assert z_statistic(np.array([1.0, 1, 1, 3])) == pytest.approx(3)
    assert abs(z_statistic(np.full(100, 1e-15))) < 1e-5


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"),
    reason="scikit-learn has temperature scaling from 1.8 on",
)
def test_the_file_of_results_grows(tmp_path, capsys):
    results = tmp_path / "results.csv"
    arguments = [
        "--results",
        str(results),
        "--models",
        "bayes",
        "--cells",
        "small",
        "--sets",
        "wine",
    ]
    assert main([*arguments, "--ours", "--scores", str(tmp_path)]) == 0
    with results.open(newline="") as file:
        first = list(csv.DictReader(file))
    assert [row["form"] for row in first] == ["bare", "ours"]
    assert float(first[1]["log_loss"]) < float(first[0]["log_loss"])
    assert (
        main(
            [
                *arguments,
                "--forms",
                "Platt=RecalibratedClassifierCV(model, PlattScaling())",
            ]
        )
        == 0
    )
    with results.open(newline="") as file:
        second = list(csv.DictReader(file))
    assert second[:2] == first
    assert len(second) == 2 + 1 + 6
    assert "1 cells with all of 9 forms" in capsys.readouterr().out


def test_there_are_ten_models_and_ten_data_sets():
    class Options:
        data = models = sets = None
        cells, seeds = "all", 1

    found = cells(Options)
    assert (
        len({data for data, *_ in found})
        == len({model for _, model, *_ in found})
        == 10
    )
    assert {rows for _, _, rows, _ in found} == {0, 100, 300, 1000, 5000, 20_000}
    Options.cells = "small"
    assert len(cells(Options)) == 35


def test_the_best_afterwards_is_compared_with_a_second_fit_of_itself():
    """The first form is best in both cases; its second fit is better in one."""
    six = list(best_afterwards._SKLEARN_FORMS)
    cases = {}
    for case, second in enumerate((0.3, 0.5)):
        cases[case] = dict.fromkeys(six, 0.6) | {six[0]: 0.4, "ours": 0.2}
        cases[case] |= dict.fromkeys(best_afterwards._AGAIN, 0.7)
        cases[case][f"{six[0]}, again"] = second
        cases[case][f"{six[1]}, again"] = 0.1
    ahead = best_afterwards.shares_ahead(cases)
    assert ahead["the default"] == ahead[f"{six[1]}, again"] == 1
    assert ahead["the form that was best, again"] == ahead[f"{six[0]}, again"] == 0.5
    assert ahead[f"{six[2]}, again"] == 0
