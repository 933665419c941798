"""Models that predict 0 and 1, recalibrated inside a whole estimator:
``python -m benchmarks.sure_scores``.

Five kinds of model on four data sets that scikit-learn holds or makes, half of the rows
for training, with `ensemble` on and off. The mean Brier score and log-loss of each
recalibrator, over data sets and splits, are given in units of the better of the bare
model and scikit-learn's sigmoid in the same form. Up to 1.02 is the aim; what is above
is listed. A model is fitted once for the same rows (``--scores DIR`` keeps its scores
between runs). Probabilities are clipped to [2^-52, 1] before the logarithm.
``--forest`` is one check: a forest of 100 trees on the breast cancer data.
"""

import argparse
import pickle
import sys
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import skcalib
from benchmarks.whole_estimators import FittedOnce, losses

_MODELS = {
    "forest": RandomForestClassifier(60, random_state=0),
    "extra trees": ExtraTreesClassifier(60, random_state=0),
    "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier()),
    "tree": DecisionTreeClassifier(random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=40, random_state=0),
}
_DATA = {
    "cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: tuple(array[:900] for array in load_digits(return_X_y=True)),
    "noisy": lambda: make_classification(
        2000, 20, n_informative=5, flip_y=0.1, random_state=0
    ),
    "three": lambda: make_classification(
        1500, 12, n_informative=6, n_classes=3, random_state=1
    ),
}
RECALIBRATORS = (
    "Recalibrator()",
    "StackedRecalibrator()",
    "PlattScaling()",
    "BetaCalibration()",
    "QuadraticScaling()",
    "SplineCalibration()",
    "TemperatureScaling()",
    "EnsembleTemperatureScaling()",
    "ClasswiseTemperatureScaling()",
    "VectorScaling()",
    "MatrixScaling()",
    "DirichletCalibration()",
    "VennAbers()",
    "IsotonicCalibration()",
    "IsotonicCalibration(centered=True)",
    "HistogramBinning()",
    "HistogramBinning(smoothing=1)",
    "UniformMassBinning(5)",
    "ScalingBinning()",
)
_AIM = 1.02


def measured(recalibrators, data=None, models=None, n_splits=1, folder=None):
    """Return (model, form, ensemble) -> mean log-loss and Brier score of each data set
    and split, shape (n, 2).

    The forms are "bare", "sigmoid" and those of the recalibrators.
    """
    found = defaultdict(list)
    for data_set, load in (data or _DATA).items():
        for seed in range(n_splits):
            X, y = load()
            X_train, X_test, y_train, y_test = train_test_split(
                X, y, test_size=0.5, random_state=seed, stratify=y
            )
            for name, model in (models or _MODELS).items():
                print(data_set, name, seed, file=sys.stderr, flush=True)
                kept = (
                    None
                    if folder is None
                    else folder / f"sure-{data_set}-{name}-{seed}.pkl"
                )
                FittedOnce.scores = (
                    pickle.loads(kept.read_bytes())
                    if kept is not None and kept.exists()
                    else {}
                )
                for form, ensemble, estimator in forms(
                    FittedOnce(model), recalibrators
                ):
                    fitted = estimator.fit(X_train, y_train)
                    found[name, form, ensemble].append(
                        [loss.mean() for loss in losses(fitted, X_test, y_test)]
                    )
                if kept is not None:
                    folder.mkdir(parents=True, exist_ok=True)
                    kept.write_bytes(pickle.dumps(FittedOnce.scores))
    return {key: np.array(values) for key, values in found.items()}


def forms(model, recalibrators):
    """Yield the name, `ensemble` and the estimator of each form of a model."""
    for ensemble in (True, False):
        yield "bare", ensemble, model
        yield "sigmoid", ensemble, CalibratedClassifierCV(model, ensemble=ensemble)
        for name in recalibrators:
            # a text of this file or of the command line
            names = {each: getattr(skcalib, each) for each in skcalib.__all__}
            recalibrator = eval(name, names)
            yield (
                name,
                ensemble,
                skcalib.RecalibratedClassifierCV(
                    model, recalibrator, ensemble=ensemble
                ),
            )


def ratios(found):
    """Return (model, form, ensemble) -> log-loss and Brier score in units of the better
    of bare model and sigmoid.
    """
    means = {key: values.mean(axis=0) for key, values in found.items()}
    return {
        (name, form, ensemble): (
            mean
            / np.minimum(
                means[name, "bare", ensemble], means[name, "sigmoid", ensemble]
            )
        )
        for (name, form, ensemble), mean in means.items()
    }


def print_tables(found, out):
    """Print a Markdown table a score, of the cells with `ensemble` on and off, and the
    cells beyond the aim.
    """
    found = ratios(found)
    models, names = (list(dict.fromkeys(key[part] for key in found)) for part in (0, 1))
    for score, title in ((1, "Brier score"), (0, "log-loss")):
        print(
            f"\n| {title}, ensemble on, off | {' | '.join(models)} |",
            "| --- " * (len(models) + 1) + "|",
            sep="\n",
            file=out,
        )
        for form in names:
            pairs = [
                " ".join(f"{found[name, form, on][score]:.3f}" for on in (True, False))
                for name in models
            ]
            print(f"| {form} | {' | '.join(pairs)} |", file=out)
    print(f"\nabove {_AIM} in any of these cells (Brier score, log-loss):\n", file=out)
    for form in names[2:]:
        beyond = [
            f"{n} {on}: {r[1]:.3f}, {r[0]:.3f}"
            for (n, f, on), r in found.items()
            if f == form and r.max() > _AIM
        ]
        print(f"{form}: {'; '.join(beyond) or 'none'}", file=out)


def forest_brier(n_splits=4):
    """Return by form the mean Brier score (one column) of a forest of 100 trees, half
    of the breast cancer data.
    """
    found = measured(
        (
            "PlattScaling()",
            "PlattScaling(smooth_targets=False)",
            "BetaCalibration()",
            "QuadraticScaling()",
            "StackedRecalibrator()",
        ),
        {"cancer": _DATA["cancer"]},
        {"forest": RandomForestClassifier(random_state=0)},
        n_splits,
    )
    return {
        (form, ensemble): values[:, 1].mean() / 2
        for (_, form, ensemble), values in found.items()
    }


def main(argv=None):
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sure_scores", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--recalibrators", nargs="+", default=RECALIBRATORS)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument(
        "--scores",
        type=Path,
        help="folder in which the models' scores are kept between runs",
    )
    parser.add_argument(
        "--sets",
        nargs="+",
        choices=_DATA,
        default=list(_DATA),
        help="only these data sets",
    )
    parser.add_argument(
        "--forest",
        action="store_true",
        help="only the forest on the breast cancer data, four splits",
    )
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    if options.forest:
        for (form, ensemble), brier in forest_brier().items():
            print(f"{form:<40} ensemble={ensemble!s:<6} {brier:.4f}")
        return 0
    data = {name: _DATA[name] for name in options.sets}
    print_tables(
        measured(
            options.recalibrators, data, n_splits=options.splits, folder=options.scores
        ),
        sys.stdout,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
