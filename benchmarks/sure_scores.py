"""Models that predict 0 and 1, recalibrated inside a whole estimator: ``python -m benchmarks.sure_scores``.

Five kinds of model on four data sets that scikit-learn holds or makes, half of the rows for training, with `ensemble`
on and off. The mean Brier score and log-loss of each recalibrator, over data sets and splits, are given in units of the
better of the bare model and scikit-learn's sigmoid in the same form. Up to 1.02 is the aim. A model is fitted once for
the same rows. Probabilities are clipped to [2^-52, 1 - 2^-52] before the logarithm.
"""

import argparse
import sys
import warnings
from collections import defaultdict

import joblib
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import skcalib
from skcalib._rows.links import clip_probability

_MODELS = {
    "forest": RandomForestClassifier(random_state=0),
    "extra trees": ExtraTreesClassifier(random_state=0),
    "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier()),
    "tree": DecisionTreeClassifier(random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=40, random_state=0),
}
RECALIBRATORS = (
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
    "StackedRecalibrator()",
)
_FITTED, _PREDICTED = {}, {}


class Remembered(ClassifierMixin, BaseEstimator):
    """A classifier that is fitted once for the same rows and labels in this process, and predicts the same rows once.

    Parameters
    ----------
    classifier : classifier
        With `predict_proba`.
    """

    def __init__(self, classifier):
        self.classifier = classifier

    def fit(self, X, y):
        """Fit the classifier, or take the one that was fitted before."""
        self.key_ = joblib.hash((str(self.classifier), X, y))
        if self.key_ not in _FITTED:
            _FITTED[self.key_] = clone(self.classifier).fit(X, y)
        self.classes_ = _FITTED[self.key_].classes_
        return self

    def predict(self, X):
        """Return the most probable class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X):
        """Return the classifier's probabilities."""
        key = self.key_, joblib.hash(X)
        if key not in _PREDICTED:
            _PREDICTED[key] = _FITTED[self.key_].predict_proba(X)
        return _PREDICTED[key].copy()


def data_sets():
    """Return four data sets by name: the digits have ten classes, "three" has three, the others two."""
    return {
        "cancer": load_breast_cancer(return_X_y=True),
        "digits": tuple(array[:900] for array in load_digits(return_X_y=True)),
        "noisy": make_classification(2000, 20, n_informative=5, flip_y=0.1, random_state=0),
        "three": make_classification(1500, 12, n_informative=6, n_classes=3, random_state=1),
    }


def losses(probabilities, y):
    """Return the mean Brier score and the mean log-loss."""
    true = probabilities[np.arange(len(y)), y]
    return np.mean((probabilities**2).sum(axis=1) - 2 * true + 1), -np.mean(np.log(clip_probability(true)))


def measured(recalibrators, data=None, models=None, n_splits=2):
    """Return (model, form, ensemble) -> losses of each data set and split, shape (n, 2).

    The forms are "bare", "sigmoid" and those of the recalibrators.
    """
    found = defaultdict(list)
    for X, y in (data or data_sets()).values():
        for seed in range(n_splits):
            parts = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
            for name, model in (models or _MODELS).items():
                for form, ensemble, estimator in _forms(Remembered(model), recalibrators):
                    fitted = estimator.fit(parts[0], parts[2])
                    found[name, form, ensemble].append(losses(fitted.predict_proba(parts[1]), parts[3]))
            _FITTED.clear()
            _PREDICTED.clear()
    return {key: np.array(values) for key, values in found.items()}


def _forms(model, recalibrators):
    for ensemble in (True, False):
        yield "bare", ensemble, model
        yield "sigmoid", ensemble, CalibratedClassifierCV(model, ensemble=ensemble)
        for name in recalibrators:
            recalibrator = eval(name, vars(skcalib))  # a text of this file or of the command line
            yield name, ensemble, skcalib.RecalibratedClassifierCV(model, recalibrator, ensemble=ensemble)


def main(argv=None):
    """Print a table a score."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sure_scores", description=__doc__.split("\n")[0])
    parser.add_argument("--recalibrators", nargs="+", default=RECALIBRATORS)
    parser.add_argument("--splits", type=int, default=2)
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    found = measured(options.recalibrators, n_splits=options.splits)
    means = {key: values.mean(axis=0) for key, values in found.items()}
    for score, title in enumerate(("Brier score", "log-loss")):
        print(f"\n{title}: in units of the better of bare model and sigmoid, ensemble on, off\n")
        print("".ljust(40), *(name.rjust(13) for name in _MODELS))
        for form in ("bare", "sigmoid", *options.recalibrators):
            cells = []
            for name in _MODELS:
                pair = []
                for ensemble in (True, False):
                    better = min(means[name, "bare", ensemble][score], means[name, "sigmoid", ensemble][score])
                    pair.append(f"{means[name, form, ensemble][score] / better:.3f}")
                cells.append(" ".join(pair).rjust(13))
            print(form.ljust(40), *cells)
    return 0


if __name__ == "__main__":
    sys.exit(main())
