"""The best of six settings, selected on the test data:
``python -m benchmarks.best_afterwards --results FILE.csv``.

`benchmarks.whole_estimators` compares the default with six settings of scikit-learn,
and with the best of these in each case. This setting is selected on the same samples on
which it is evaluated, which favours it. To measure this advantage, each of the six
settings is refitted with different random folds in the cases with 100 samples. The
benchmark counts how often a refitted setting outperforms the best of the six original
fits.

The file of results grows: results that it contains are not computed again.
"""

import argparse
import sys
import warnings
from argparse import Namespace
from pathlib import Path

import numpy as np

from benchmarks.front_page import RESULTS
from benchmarks.whole_estimators import _SKLEARN_FORMS, cells, read, run, write

_ROWS = 100
_FOLDS = "StratifiedKFold(5, shuffle=True, random_state=1)"
_AGAIN = {
    f"{name}, again": f"{expression[:-1]}, cv={_FOLDS})"
    for name, expression in _SKLEARN_FORMS.items()
}


def main(argv=None):
    """Fill the file of results and print the shares; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.best_afterwards",
        description=__doc__.splitlines()[0],
    )
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", help="only these data sets")
    options = parser.parse_args(argv)
    wanted = Namespace(
        data=None, cells="middle", models=None, sets=options.sets, seeds=1, scores=None
    )
    rows = read(options.results)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cell in cells(wanted):
            if cell[2] == _ROWS:
                rows += run(cell, _AGAIN, rows, wanted)
                write(options.results, rows)
    print_shares(by_case(rows + read(RESULTS)))
    return 0


def by_case(rows):
    """Return the log-loss by form of each case that has been fitted again."""
    found = {}
    for row in rows:
        case = row["data"], row["model"], row["rows"], row["seed"]
        found.setdefault(case, {})[row["form"]] = row["log_loss"]
    return {
        case: losses for case, losses in found.items() if set(_AGAIN) <= set(losses)
    }


def print_shares(cases):
    """Print how often each estimator is ahead of the best of the six."""
    ahead = shares_ahead(cases)
    print(f"{len(cases)} cases of {_ROWS} samples, ahead of the best of the six:\n")
    for name, share in ahead.items():
        print(f"{name:<40}{100 * share:6.0f} %")


def shares_ahead(cases):
    """Return by estimator the share of the cases in which it has a lower log-loss than
    the best of the six forms, picked in each case on the test data.
    """
    losses = {
        form: np.array([of_case[form] for of_case in cases.values()])
        for form in ("ours", *_SKLEARN_FORMS, *_AGAIN)
    }
    six = np.array([losses[form] for form in _SKLEARN_FORMS])
    best = six.min(axis=0)
    again = np.array([losses[form] for form in _AGAIN])
    of_best_again = again[six.argmin(axis=0), np.arange(len(best))]
    ahead = {"the default": (losses["ours"] < best - 1e-9).mean()}
    for form in _AGAIN:
        ahead[form] = (losses[form] < best - 1e-9).mean()
    ahead["the form that was best, again"] = (of_best_again < best - 1e-9).mean()
    return ahead


if __name__ == "__main__":
    sys.exit(main())
