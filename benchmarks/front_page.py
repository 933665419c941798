"""The figures of the README: ``python -m benchmarks.front_page [--results FILE.csv]``.

The first table uses the example of the README, a boosted model for two classes, with
many random splits. The second table summarises complete estimators from the file that
``python -m benchmarks.whole_estimators --results FILE.csv`` fills. By default, it uses
the file beside this module, from which the README quotes.
"""

import argparse
import sys
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import train_test_split

from benchmarks.whole_estimators import FittedOnce, read
from skcalib import RecalibratedClassifierCV
from skcalib.metrics import calibration_error

RESULTS = Path(__file__).parent / "data" / "whole_estimators.csv"
FORMS = ("as trained", "scikit-learn", "scikit-learn, best of six", "skcalib")
_METHODS = ("sigmoid", "isotonic", "temperature")


def split(seed):
    """Return the README's data: X_train, X_test, y_train, y_test."""
    X, progression = load_diabetes(return_X_y=True)
    y = progression > 140  # the median
    return train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)


def one_split(seed):
    """Return (log-loss, Brier score, calibration error) by form, for one split.

    The best of the six settings of scikit-learn is picked by its log-loss on the test
    data, which no user can do.
    """
    X_train, X_test, y_train, y_test = split(seed)
    model = FittedOnce(HistGradientBoostingClassifier())

    def figures(form):
        y_proba = form.fit(X_train, y_train).predict_proba(X_test)[:, 1]
        return (
            log_loss(y_test, y_proba),
            brier_score_loss(y_test, y_proba),
            calibration_error(y_test, y_proba, squared=True),
        )

    settings = [
        figures(CalibratedClassifierCV(model, method=method, ensemble=ensemble))
        for method in _METHODS
        for ensemble in (True, False)
    ]
    return {
        "as trained": figures(model),
        "scikit-learn": figures(CalibratedClassifierCV(model)),
        "scikit-learn, best of six": min(settings),
        "skcalib": figures(RecalibratedClassifierCV(model)),
    }


def splits(n_seeds):
    """Return the mean figures of each form over the splits.

    The calibration error is the root of the mean debiased square, cut at 0.
    """
    found = [one_split(seed) for seed in range(n_seeds)]
    means = {form: np.mean([one[form] for one in found], axis=0) for form in FORMS}
    return {
        form: (log, brier, max(square, 0.0) ** 0.5)
        for form, (log, brier, square) in means.items()
    }


def whole_estimators(rows):
    """Return for each of four forms (mean Brier score, median log-loss, share of wins)
    over the cells in which all forms were run, and the number of cells.

    A win is a log-loss below that of the three other forms by more than 1e-9. The best
    of six is picked in each cell on the test data.
    """
    cells = defaultdict(dict)
    for row in rows:
        cell = row["data"], row["model"], row["rows"], row["seed"]
        cells[cell][row["form"]] = row["log_loss"], row["brier"]
    n_forms = max(len(found) for found in cells.values())
    whole = [found for found in cells.values() if len(found) == n_forms]
    figures = np.array([_four_forms(found) for found in whole])
    log_loss_, brier = figures[..., 0], figures[..., 1]
    others = np.array(
        [np.delete(log_loss_, form, axis=1).min(axis=1) for form in range(4)]
    ).T
    wins = (log_loss_ < others - 1e-9).mean(axis=0)
    columns = zip(brier.mean(axis=0), np.median(log_loss_, axis=0), wins, strict=True)
    return dict(zip(FORMS, columns, strict=True)), len(whole)


def _four_forms(found):
    theirs = [value for form, value in found.items() if form.startswith("scikit-learn")]
    as_written = found["scikit-learn sigmoid, True"]
    return found["bare"], as_written, min(theirs), found["ours"]


def main(argv=None):
    """Print both tables; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.front_page", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--seeds", type=int, default=20, help="number of splits")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="CSV of whole estimators"
    )
    options = parser.parse_args(argv)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        means = splits(options.seeds)
    whole, n_cells = whole_estimators(read(options.results))
    boosted = whole_estimators(
        [row for row in read(options.results) if row["model"] == "boosting"]
    )
    _print(f"{options.seeds} splits", ("log-loss", "Brier", "error"), means)
    _print(f"{n_cells} estimators", ("Brier", "median log-loss", "wins"), whole)
    _print(f"{boosted[1]} boosted", ("Brier", "median log-loss", "wins"), boosted[0])
    return 0


def _print(title, names, figures):
    head = "".join(f"{form:>27}" for form in FORMS)
    print(f"\n{title:<18}{head}")
    for number, name in enumerate(names):
        cells = "".join(f"{figures[form][number]:27.3f}" for form in FORMS)
        print(f"{name:<18}{cells}")


if __name__ == "__main__":
    sys.exit(main())
