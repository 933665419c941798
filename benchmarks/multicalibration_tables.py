"""The multicalibrated recalibrator on tables, beside the global map and, where it is
installed, MCGrad.
"""

from importlib.util import find_spec

import numpy as np
from scipy.special import expit
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skcalib import MulticalibratedRecalibrator
from skcalib.metrics import segment_calibration_test

_MODELS = (
    LogisticRegression(max_iter=300),
    RandomForestClassifier(100, min_samples_leaf=3, random_state=0),
    GaussianNB(),
    HistGradientBoostingClassifier(max_iter=60, random_state=0),
)


def run(data=None):
    """Return a row for each table and model: log-loss and worst segment with the global
    map and the corrected one.

    The tables are those that come with scikit-learn and simulated ones, or those of a
    folder.
    """
    tables = _bundled_tables() if data is None else tables_of_folder(data)
    return [
        _compare(name, table, y, model)
        for name, table, y in tables
        for model in _MODELS
    ]


def tables_of_folder(data):
    """Yield the name, the columns and the events of each file; of several classes the
    most frequent is the event.
    """
    import pandas as pd

    for path in sorted(
        (data / "tabular").glob("*.csv.gz"), key=lambda path: path.stat().st_size
    ):
        table = pd.read_csv(path)
        labels = table.pop("y")
        event = labels.mode()[0] if labels.nunique() > 2 else labels.max()
        yield path.name.partition(".")[0], table, (labels == event).to_numpy()


def _bundled_tables():
    """Yield the tables of scikit-learn with some hundred rows and two events, and three
    simulated ones.
    """
    import pandas as pd

    cancer, digits, diabetes = (
        load_breast_cancer(),
        load_digits(),
        load_diabetes(as_frame=True),
    )
    yield "breast_cancer", pd.DataFrame(cancer.data).add_prefix("x"), cancer.target == 1
    yield (
        "digits_even",
        pd.DataFrame(digits.data).add_prefix("x"),
        digits.target % 2 == 0,
    )
    yield "diabetes_high", diabetes.data, (diabetes.target > 150).to_numpy()
    for name, interaction in {
        "no_interaction": 0.0,
        "weak_interaction": 0.5,
        "strong_interaction": 1.5,
    }.items():
        rng = np.random.default_rng(0)
        table = pd.DataFrame(rng.normal(size=(6000, 6)).round(2)).add_prefix("x")
        table["site"] = rng.choice(["a", "b", "c", "d"], 6000)
        log_odds = (
            table.x0
            + 0.5 * table.x1
            - 1
            + interaction * np.where(table.site == "a", table.x2, 0.5 * table.x3)
        )
        yield name, table, (rng.random(6000) < expit(log_odds)).to_numpy()


def _compare(name, table, y, model):
    order = np.random.default_rng(0).permutation(len(y))
    train, fit, test = np.split(order, [int(0.4 * len(y)), int(0.75 * len(y))])
    y_proba = (
        make_pipeline(_plain_numbers(), model)
        .fit(table.iloc[train], y[train])
        .predict_proba(table)[:, 1]
    )
    rows = table.copy()
    rows.insert(0, "score", y_proba)
    fitted = MulticalibratedRecalibrator(
        features=list(table.columns), random_state=0
    ).fit(rows.iloc[fit], y[fit])
    found = {
        "global": fitted.recalibrator_.predict_proba(y_proba[test])[:, 1],
        "multicalibrated": fitted.predict_proba(rows.iloc[test])[:, 1],
    }
    if find_spec("mcgrad"):
        found["mcgrad"] = _mcgrad(rows, y, fit, test)
    row = {
        "table": name,
        "model": type(model).__name__,
        "rows": len(fit),
        "n_rounds": fitted.n_rounds_,
    }
    for method, scores in found.items():
        segments = segment_calibration_test(
            y[test], scores, table.iloc[test], max_bins=4, n_resamples=1
        )
        row[f"log_loss_{method}"] = round(log_loss(y[test], scores), 5)
        row[f"worst_segment_{method}"] = round(segments.statistic, 2)
    return row


def _plain_numbers():
    return make_column_transformer(
        (
            make_pipeline(SimpleImputer(), StandardScaler()),
            make_column_selector(dtype_include="number"),
        ),
        (
            OneHotEncoder(
                handle_unknown="ignore", max_categories=20, sparse_output=False
            ),
            make_column_selector(dtype_exclude="number"),
        ),
    )


def _mcgrad(rows, y, fit, test):
    from mcgrad.methods import MCGrad

    features = rows.columns[1:]
    categories = [name for name in features if rows[name].dtype.kind not in "biuf"]
    columns = {
        "prediction_column_name": "score",
        "categorical_feature_column_names": categories,
        "numerical_feature_column_names": [
            name for name in features if name not in categories
        ],
    }
    model = MCGrad()
    model.fit(
        df_train=rows.iloc[fit].assign(label=y[fit].astype(int)),
        label_column_name="label",
        **columns,
    )
    return np.clip(model.predict(df=rows.iloc[test], **columns), 1e-15, 1 - 1e-15)
