"""Complete estimators:
``python -m benchmarks.whole_estimators --results FILE.csv [--data DIR]``.

The benchmark compares `RecalibratedClassifierCV` with the original model and with six
settings of scikit-learn's `CalibratedClassifierCV`, for ten kinds of model on ten data
sets with 100 to 20,000 training rows. Each form is fitted to the training rows as a
user would fit it, and evaluated on held-out rows. Each base model is fitted only once
to each set of rows, regardless of how many forms use it.

The file of results grows: results that it contains are not computed again. ``--cells
small`` selects the 35 cases of seven models and five data sets with half of their rows
each; ``--forms NAME=EXPRESSION`` adds a form of skcalib.
"""

import argparse
import csv
import hashlib
import pickle
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_wine,
    make_classification,
)
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.metaestimators import available_if

import skcalib

_MODELS = {
    "forest": RandomForestClassifier(60, random_state=0),
    "extra trees": ExtraTreesClassifier(60, random_state=0),
    "tree": DecisionTreeClassifier(random_state=0),
    "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier()),
    "bayes": GaussianNB(),
    "boosting": HistGradientBoostingClassifier(max_iter=40, random_state=0),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "discriminant": make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()),
    "network": make_pipeline(
        StandardScaler(), MLPClassifier(max_iter=100, random_state=0)
    ),
    "AdaBoost": AdaBoostClassifier(random_state=0),
}
_SMALL_MODELS = (
    "forest",
    "extra trees",
    "tree",
    "neighbours",
    "bayes",
    "boosting",
    "logistic",
)
_LARGE_MODELS = ("forest", "neighbours", "bayes", "boosting", "logistic")
_TEST_ROWS = 10_000
_HALF = 0  # as the number of training rows: half of all


def _made(n_samples, random_state, **options):
    return lambda: make_classification(n_samples, random_state=random_state, **options)


_DATA = {
    "cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: tuple(array[:900] for array in load_digits(return_X_y=True)),
    "wine": lambda: load_wine(return_X_y=True),
    "made": _made(2000, 0, n_features=20, n_informative=5, flip_y=0.1),
    "three": _made(1500, 1, n_features=12, n_informative=6, n_classes=3),
    "rare": _made(
        30_000, 2, n_features=15, n_informative=6, weights=[0.95], flip_y=0.02
    ),
    "noisy": _made(30_000, 3, n_features=10, n_informative=4, flip_y=0.5),
    "wide": _made(
        30_000, 4, n_features=60, n_informative=8, flip_y=0.05, class_sep=0.7
    ),
    "eight": _made(
        30_000,
        5,
        n_features=16,
        n_informative=8,
        n_classes=8,
        n_clusters_per_class=1,
        flip_y=0.05,
    ),
    "plain": _made(
        30_000,
        6,
        n_features=4,
        n_informative=2,
        n_redundant=0,
        n_clusters_per_class=1,
        flip_y=0,
    ),
}
_SMALL_DATA = ("cancer", "digits", "wine", "made", "three")
_SIZES = {
    "cancer": (100, _HALF),
    "digits": (100, _HALF),
    "wine": (_HALF,),
    "made": (100, _HALF),
    "three": (100, _HALF),
}
_OUR_FORMS = {"ours": "RecalibratedClassifierCV(model)"}
_SKLEARN_FORMS = {
    f"scikit-learn {method}, {together}": (
        f"CalibratedClassifierCV(model, method={method!r}, ensemble={together})"
    )
    for method in ("sigmoid", "isotonic", "temperature")
    for together in (True, False)
}
_FIELDS = (
    "data",
    "model",
    "rows",
    "seed",
    "form",
    "log_loss",
    "brier",
    "z",
    "seconds",
    "model_seconds",
    "chosen",
)


class FittedOnce(ClassifierMixin, BaseEstimator):
    """A classifier whose scores are computed once for the same training rows,
    regardless of how often it is cloned and fitted.
    """

    scores, seconds, dirty = {}, 0.0, False

    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y, sample_weight=None):
        """Store the rows; the classifier is fitted when scores are requested that have
        not been computed yet.
        """
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        self.rows_, self.fitted_ = (X, y, sample_weight), None
        self.key_ = _digest(
            repr(self.estimator),
            X,
            y,
            *([] if sample_weight is None else [sample_weight]),
        )
        return self

    def predict_proba(self, X):
        """Return the classifier's probabilities."""
        return self._cached("predict_proba", X)

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))
    def decision_function(self, X):
        """Return the classifier's decision function, if it has one."""
        return self._cached("decision_function", X)

    def predict(self, X):
        """Return the most probable class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _cached(self, method, X):
        key = (self.key_, method, _digest(X))
        if key not in self.scores:
            began = time.perf_counter()
            if self.fitted_ is None:
                X_train, y_train, weight = self.rows_
                weights = {} if weight is None else {"sample_weight": weight}
                self.fitted_ = clone(self.estimator).fit(X_train, y_train, **weights)
            FittedOnce.scores[key] = getattr(self.fitted_, method)(X)
            FittedOnce.seconds += time.perf_counter() - began
            FittedOnce.dirty = True
        return self.scores[key]


def main(argv=None):
    """Fill the file of results and print the tables; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.whole_estimators",
        description=__doc__.splitlines()[0],
    )
    parser.add_argument(
        "--results", type=Path, required=True, help="CSV of results, which grows"
    )
    parser.add_argument(
        "--data",
        type=Path,
        help="folder of the real data (with tabular/), for four more data sets",
    )
    parser.add_argument(
        "--cells", choices=("small", "middle", "large", "real", "all"), default="all"
    )
    parser.add_argument(
        "--models", nargs="+", choices=_MODELS, help="only these models"
    )
    parser.add_argument("--sets", nargs="+", help="only these data sets")
    parser.add_argument("--seeds", type=int, default=1, help="number of random splits")
    parser.add_argument(
        "--forms",
        nargs="+",
        default=[],
        metavar="NAME=EXPRESSION",
        help="other forms, of `model`",
    )
    parser.add_argument(
        "--ours", action="store_true", help="only the bare model and our forms"
    )
    parser.add_argument(
        "--again",
        nargs="+",
        default=[],
        metavar="NAME",
        help="forms that are computed again",
    )
    parser.add_argument(
        "--scores",
        type=Path,
        help="folder in which the base models' scores are kept between runs",
    )
    parser.add_argument(
        "--tables",
        action="store_true",
        help="print the tables of the file and compute nothing",
    )
    options = parser.parse_args(argv)
    forms = (
        {"bare": "model"}
        | _OUR_FORMS
        | dict(form.split("=", 1) for form in options.forms)
    )
    if not options.ours:
        forms |= _SKLEARN_FORMS
    rows = read(options.results)
    wanted = cells(options)
    if not options.tables:
        rows = [
            row
            for row in rows
            if row["form"] not in options.again or _cell_of(row) not in wanted
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for cell in wanted:
                rows += run(cell, forms, rows, options)
                write(options.results, rows)
    print_tables([row for row in rows if _cell_of(row) in wanted], sys.stdout)
    return 0


def cells(options):
    """Return (data, model, training rows, seed) of each requested case."""
    found = []
    for data in [*_DATA, *(_tables(options.data) if options.data else [])]:
        real = data not in _DATA
        for n_rows in _SIZES.get(data, (100, 300, 1000, 5000, 20_000)):
            kind = "large" if n_rows > 1000 else "real" if real else "middle"
            for model in _MODELS:
                is_small = (
                    n_rows == _HALF and data in _SMALL_DATA and model in _SMALL_MODELS
                )
                wanted = options.cells in ("all", kind) or (
                    options.cells == "small" and is_small
                )
                wanted &= kind != "large" or model in _LARGE_MODELS
                wanted &= options.models is None or model in options.models
                wanted &= options.sets is None or data in options.sets
                found += [
                    (data, model, n_rows, seed)
                    for seed in range(options.seeds)
                    if wanted
                ]
    return [
        cell
        for cell in found
        if cell[2] < 20_000 or cell[0] in (*_DATA, "credit_default")
    ]


def run(cell, forms, rows, options):
    """Return a row of results for each form that is missing in the case."""
    data, name, _, _ = cell
    done = {row["form"] for row in rows if _cell_of(row) == cell}
    if not set(forms) - done:
        return []
    print(*cell, file=sys.stderr, flush=True)
    split = load(cell, options.data)
    kept = (
        None
        if options.scores is None
        else options.scores / f"{'-'.join(map(str, cell))}.pkl"
    )
    FittedOnce.scores = (
        pickle.loads(kept.read_bytes()) if kept is not None and kept.exists() else {}
    )
    FittedOnce.dirty = False
    bare, _ = losses(
        FittedOnce(_MODELS[name]).fit(split[0], split[2]), split[1], split[3]
    )
    found = []
    for form, expression in forms.items():
        if form in done:
            continue
        names = {each: getattr(skcalib, each) for each in skcalib.__all__} | {
            "CalibratedClassifierCV": CalibratedClassifierCV,
            "StratifiedKFold": StratifiedKFold,
            "clone": clone,
        }
        model = eval(expression, names | {"model": FittedOnce(clone(_MODELS[name]))})
        models_before, began = FittedOnce.seconds, time.perf_counter()
        try:
            log, brier = losses(model.fit(split[0], split[2]), split[1], split[3])
        except Exception as error:  # of another library: the cell is then in no table
            print(f"{form} fails: {error!r:.200}", file=sys.stderr)
            continue
        total, of_models = (
            time.perf_counter() - began,
            FittedOnce.seconds - models_before,
        )
        found.append(
            dict.fromkeys(_FIELDS, "") | dict(zip(_FIELDS, (*cell, form), strict=False))
        )
        found[-1] |= {
            "log_loss": log.mean(),
            "brier": brier.mean(),
            "z": z_statistic(log - bare),
        }
        found[-1] |= {"seconds": total - of_models, "model_seconds": of_models}
        found[-1]["chosen"] = getattr(model, "chosen_", "")
    if kept is not None and FittedOnce.dirty:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(pickle.dumps(FittedOnce.scores))
    return found


def load(cell, folder=None):
    """Return the training rows, the test rows and their labels for a case."""
    data, _, n_rows, seed = cell
    X, y = (
        _DATA[data]()
        if data in _DATA
        else _table(folder / "tabular" / f"{data}.csv.gz")
    )
    n_test = min(len(y) - n_rows, _TEST_ROWS) if n_rows else 0.5
    return train_test_split(
        X, y, train_size=n_rows or 0.5, test_size=n_test, stratify=y, random_state=seed
    )


def losses(model, X, y):
    """Return the log-loss and the Brier score of each row."""
    probabilities = model.predict_proba(X)
    codes = np.searchsorted(model.classes_, y)
    true = np.clip(probabilities[np.arange(len(y)), codes], 2.0**-52, 1)
    return -np.log(true), (
        (probabilities - np.eye(len(model.classes_))[codes]) ** 2
    ).sum(axis=1)


def z_statistic(differences):
    """Return the mean difference divided by its standard error; differences due to
    rounding count as zero.
    """
    return float(
        differences.mean() / (differences.std(ddof=1) / len(differences) ** 0.5 + 1e-9)
    )


def read(path):
    """Return the results in the file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row |= {name: int(row[name]) for name in ("rows", "seed")}
        row |= {
            name: float(row[name])
            for name in ("log_loss", "brier", "z", "seconds", "model_seconds")
        }
    return rows


def write(path, rows):
    """Write all results."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, _FIELDS)
        writer.writeheader()
        writer.writerows(rows)


def print_tables(rows, out):
    """Print the log-loss by kind of model and, for each form, its means, the cases that
    it harms and its run time in seconds.
    """
    forms = list(dict.fromkeys(row["form"] for row in rows))
    by_cell = {}
    for row in rows:
        by_cell.setdefault(_cell_of(row), {})[row["form"]] = row
    whole = [cell for cell, found in by_cell.items() if len(found) == len(forms)]
    print(
        f"{len(whole)} cells with all of {len(forms)} forms. Mean log-loss by kind of"
        " model:\n",
        file=out,
    )
    best_names = ["bare", *(form for form in forms if form.startswith("scikit-learn"))]
    models = list(dict.fromkeys(model for _, model, _, _ in whole))
    print(
        f"{'model':<14}"
        + "".join(f"{form[-16:]:>18}" for form in forms)
        + f"{'ours / best':>14}",
        file=out,
    )
    for model in models:
        means = _means(
            [by_cell[cell] for cell in whole if cell[1] == model], forms, "log_loss"
        )
        ratio = means.get("ours", np.nan) / max(
            min(means[form] for form in best_names), 1e-12
        )
        print(
            f"{model:<14}"
            + "".join(f"{means[form]:18.4f}" for form in forms)
            + f"{ratio:14.3f}",
            file=out,
        )
    print(
        f"\n{'form':<32}{'log-loss':>10}{'Brier':>10}{'harmed':>10}{'largest':>10}{'seconds':>10}",
        file=out,
    )
    found = [by_cell[cell] for cell in whole]
    log_loss, brier = _means(found, forms, "log_loss"), _means(found, forms, "brier")
    for form in sorted(forms, key=log_loss.get):
        harmed = np.mean([of_cell[form]["z"] > 2.33 for of_cell in found])
        largest = max(
            of_cell[form]["log_loss"] - of_cell["bare"]["log_loss"] for of_cell in found
        )
        seconds = sum(of_cell[form]["seconds"] for of_cell in found)
        print(
            f"{form:<32}{log_loss[form]:10.4f}{brier[form]:10.4f}{harmed:10.3f}{largest:10.4f}{seconds:10.1f}",
            file=out,
        )
    print(
        "\nharmed: share of cells with a log-loss above the bare model's, z > 2.33;"
        " largest: in nats.",
        file=out,
    )


def _means(found, forms, field):
    return {
        form: float(np.mean([of_cell[form][field] for of_cell in found]))
        for form in forms
    }


def _cell_of(row):
    return row["data"], row["model"], row["rows"], row["seed"]


def _tables(folder):
    return [
        name
        for name in ("credit_default", "spambase", "satimage", "happy_3")
        if _path(folder, name).exists()
    ]


def _path(folder, name):
    return folder / "tabular" / f"{name}.csv.gz"


def _table(path):
    """Return the features of a table as numbers, and its labels."""
    import pandas as pd

    frame = pd.read_csv(path)
    X, y = frame.drop(columns="y"), frame["y"].to_numpy()
    encoder = make_column_transformer(
        (SimpleImputer(), make_column_selector(dtype_include="number")),
        (
            OrdinalEncoder(encoded_missing_value=-1),
            make_column_selector(dtype_exclude="number"),
        ),
    )
    return encoder.fit_transform(X), y


def _digest(*parts):
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(
            part.encode()
            if isinstance(part, str)
            else np.ascontiguousarray(part).data.cast("B")
        )
        found.update(str(np.shape(part)).encode())
    return found.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
