"""Features beside the score: ``python -m benchmarks.side_features --data DIR``.

Of each table of `DIR/tabular` a logistic regression learns all columns but one: the
number that is most strongly correlated with the event. This column is then the feature
that matters, and a random permutation of it the one that does not. The figure is the
log-loss of new rows minus that of `PlattScaling` without features, in nats, for maps
fitted to 200 and to 2,000 rows: its mean over random parts of each table and over the
tables, and how many tables lose more than .001.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.multicalibration_tables import tables_of_folder
from skcalib import (
    BetaCalibration,
    GroupwiseRecalibrator,
    MulticalibratedRecalibrator,
    PlattScaling,
)

# The table of a fit has one column of scores, the feature and its third.
_METHODS = {
    "PlattScaling(features)": (PlattScaling(features=1), [0, 1]),
    "BetaCalibration(features)": (BetaCalibration(features=1), [0, 1]),
    "GroupwiseRecalibrator": (GroupwiseRecalibrator(PlattScaling(), groups=1), [0, 2]),
    "MulticalibratedRecalibrator": (
        MulticalibratedRecalibrator(PlattScaling(), features=1, random_state=0),
        [0, 1],
    ),
}
_SIZES = (200, 2000)
_MOST_TEST_ROWS = 5000
_EVENT = "the event"  # a name that no column has
_LOSS = 0.001  # nats: more than this is a loss


def main(argv=None):
    """Measure and print the table; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.side_features", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the data")
    parser.add_argument("--repeats", type=int, default=5, help="number of random parts")
    options = parser.parse_args(argv)
    rises = {}
    for name, table, events in tables_of_folder(options.data):
        for seed in range(options.repeats):
            for key, rise in rises_of(table, events, seed):
                rises.setdefault(key, {}).setdefault(name, []).append(rise)
    for (n_rows, matters, method), by_table in rises.items():
        means = np.array([np.mean(values) for values in by_table.values()])
        kind = "matters" if matters else "does not"
        print(
            f"{n_rows:>5} rows, feature {kind:<8} {method:<28}"
            f" mean {means.mean():+.4f}, {np.count_nonzero(means > _LOSS)} of"
            f" {len(means)} tables lose more than {_LOSS}",
            flush=True,
        )
    return 0


def rises_of(table, events, seed):
    """Yield ((rows, whether the feature matters, method), rise of the log-loss)."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(events))
    train, rest = order[: len(order) // 3], order[len(order) // 3 :]
    feature = _strongest(table.iloc[train], events[train])
    if feature is None:
        return
    others = table.drop(columns=feature)
    model = _model().fit(others.iloc[train], events[train])
    proba = model.predict_proba(others.iloc[rest])[:, 1]
    values = table[feature].to_numpy(float)
    values = np.where(np.isnan(values), np.nanmedian(values[train]), values)[rest]
    for n_rows in _SIZES:
        if len(rest) < 2 * n_rows:
            continue
        for matters in (True, False):
            column = values if matters else rng.permutation(values)
            cuts = np.quantile(column[:n_rows], [1 / 3, 2 / 3])
            thirds = np.searchsorted(cuts, column)
            X = np.column_stack((proba, column, thirds))
            new = slice(n_rows, n_rows + _MOST_TEST_ROWS)
            fit = (X[:n_rows], events[rest][:n_rows])
            if fit[1].min() == fit[1].max():
                continue
            truth = events[rest][new]
            alone = PlattScaling().fit(fit[0][:, 0], fit[1])
            before = log_loss(truth, alone.predict_proba(X[new, 0]))
            for name, (method, columns) in _METHODS.items():
                fitted = method.fit(fit[0][:, columns], fit[1])
                after = log_loss(truth, fitted.predict_proba(X[new][:, columns]))
                yield (n_rows, matters, name), after - before


def _strongest(table, events):
    """Return the name of the number with the largest correlation with the events."""
    numbers = table.select_dtypes("number").assign(**{_EVENT: events.astype(float)})
    correlation = numbers.corr()[_EVENT].drop(_EVENT).abs()
    return None if correlation.isna().all() else correlation.idxmax()


def _model():
    """Return a logistic regression of a table with numbers and categories."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (
            OneHotEncoder(handle_unknown="ignore", max_categories=20),
            make_column_selector(dtype_exclude="number"),
        ),
    )
    return make_pipeline(columns, LogisticRegression(max_iter=300))


if __name__ == "__main__":
    sys.exit(main())
