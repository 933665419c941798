"""The demonstration of the command line: a recalibrated scikit-learn model end to
end.
"""

from tempfile import TemporaryDirectory

import sklearn
from sklearn import datasets
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.utils.fixes import parse_version

from skcalib.binning import EqualMass, EqualWidth
from skcalib.cross_fitting import CrossFittedClassifier
from skcalib.metrics import get_scorer
from skcalib.recalibrated_classifier import RecalibratedClassifierCV
from skcalib.recalibrators import (
    DirichletCalibration,
    HistogramBinning,
    SplineCalibration,
)

_SEARCH = {
    "recalibrator__binning": [EqualMass(), EqualWidth()],
    "recalibrator__binning__n_bins": [5, 10, 15, 25],
}
_COLUMNS = {
    "log-loss": get_scorer("neg_log_loss"),
    "Brier": get_scorer("neg_brier_score"),
    "ECE": get_scorer("neg_expected_calibration_error"),
    "debiased": get_scorer("neg_calibration_error", norm=1, binning=EqualWidth(15)),
}


def run_demo(data, seed):
    """Print the losses of a naive Bayes classifier on held-out data, as it is and
    calibrated by scikit-learn and by this library: a row for each model.

    `data` names a data set that scikit-learn bundles, "digits" or "breast_cancer";
    `seed` sets the split into training and held-out data.
    """
    load = getattr(datasets, f"load_{data}")
    X, y = load(return_X_y=True)
    X, X_held_out, y, y_held_out = train_test_split(
        X, y, test_size=0.4, stratify=y, random_state=seed
    )
    print(
        f"Naive Bayes on {data}: {len(y)} samples to train and calibrate,"
        f" {len(y_held_out)} held out."
    )
    print(
        "Bins are chosen by 3-fold GridSearchCV (log-loss); nothing is fitted to the"
        " held-out samples.\n"
    )
    header = f"{'model':<42}"
    for column in _COLUMNS:
        header += f"{column:>10}"
    print(header, flush=True)
    for name, model in _models(n_classes=len(set(y))):
        model.fit(X, y)
        line = f"{name:<42}"
        for scorer in _COLUMNS.values():
            # scorers are negated losses
            loss = -scorer(model, X_held_out, y_held_out)
            line += f"{loss:10.4f}"
        print(line, flush=True)  # also where the output is a pipe
        # Only our model with its default recalibrator estimates its gain in log-loss.
        if hasattr(model, "gain_"):
            gain = model.gain_
    print(
        "\nRecalibratedClassifierCV estimates its own gain from the training data:"
        f"\n{gain}\nECE: norm 1, 15 equal-width bins, for the predicted class"
        " (with two classes, for the positive one).\nDebiased: the same error minus"
        " what chance adds; 0 means that chance explains all of it.\nNext: python -m"
        " skcalib report FILE --label LABEL --score SCORE creates a page about your own"
        " predictions.",
    )


def _models(n_classes):
    """Yield pairs (name, unfitted classifier): naive Bayes alone, in scikit-learn's
    `CalibratedClassifierCV`, and with recalibrators of this library.
    """
    yield "original model", GaussianNB()
    methods = ["sigmoid", "isotonic"]
    if parse_version(sklearn.__version__) >= parse_version("1.8"):
        methods.append("temperature")
    for method in methods:
        for ensemble in (True, False):
            model = CalibratedClassifierCV(
                GaussianNB(), method=method, ensemble=ensemble
            )
            yield f"scikit-learn: {method}, ensemble={ensemble}", model
    yield (
        "RecalibratedClassifierCV(GaussianNB())",
        RecalibratedClassifierCV(GaussianNB()),
    )
    if n_classes == 2:
        recalibrator = SplineCalibration()
    else:
        recalibrator = DirichletCalibration()
    yield f"  with {recalibrator}", RecalibratedClassifierCV(GaussianNB(), recalibrator)
    # The out-of-fold scores are the same for all bins: the pipeline caches them in the
    # folder, which exists until the caller has fitted the model and asks for the next.
    with TemporaryDirectory() as folder:
        steps = [
            ("scores", CrossFittedClassifier(GaussianNB())),
            ("recalibrator", HistogramBinning(smoothing=1)),
        ]
        pipeline = Pipeline(steps, memory=folder)
        search = GridSearchCV(
            pipeline, _SEARCH, scoring=get_scorer("neg_log_loss"), cv=3
        )
        yield "HistogramBinning, its bins searched", search
