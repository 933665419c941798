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
    """Print the table: the bare model, scikit-learn's forms and ours on rows that none
    of them has seen.
    """
    X, y = getattr(datasets, f"load_{data}")(return_X_y=True)
    X, X_held_out, y, y_held_out = train_test_split(
        X, y, test_size=0.4, stratify=y, random_state=seed
    )
    print(
        f"Naive Bayes on {data}: {len(y)} rows to train and calibrate,"
        f" {len(y_held_out)} held out."
    )
    print(
        "Bins are chosen by 3-fold GridSearchCV (log-loss); nothing is fitted on the"
        " held-out rows.\n"
    )
    print(f"{'model':<42}" + "".join(f"{column:>10}" for column in _COLUMNS))
    for name, model in _models(n_classes=len(set(y))):
        model.fit(X, y)
        figures = (
            -scorer(model, X_held_out, y_held_out) for scorer in _COLUMNS.values()
        )
        print(f"{name:<42}" + "".join(f"{figure:10.4f}" for figure in figures))
        if hasattr(model, "gain_"):
            gain = model.gain_
    print(
        f"\nThe default saves {gain.estimate:.3f} nats per row out of fold"
        f" ({gain.low:.3f} to {gain.high:.3f}).\nECE: norm 1, 15 equal-width bins, of"
        " the predicted class (two classes: of the positive one). Debiased: the\nsame"
        " error less what chance adds to it. 0 means that chance explains all of"
        " it.\nNext: python -m skcalib report FILE --label LABEL --score SCORE makes a"
        " page about your own predictions.",
    )


def _models(n_classes):
    """Yield names and unfitted models, one classifier in each form."""
    yield "bare model", GaussianNB()
    has_temperature = parse_version(sklearn.__version__) >= parse_version("1.8")
    for method in (
        "sigmoid",
        "isotonic",
        *(["temperature"] if has_temperature else []),
    ):
        for ensemble in (True, False):
            name = f"scikit-learn: {method}, ensemble={ensemble}"
            yield (
                name,
                CalibratedClassifierCV(GaussianNB(), method=method, ensemble=ensemble),
            )
    yield (
        "RecalibratedClassifierCV(GaussianNB())",
        RecalibratedClassifierCV(GaussianNB()),
    )
    recalibrator = SplineCalibration() if n_classes == 2 else DirichletCalibration()
    yield f"  with {recalibrator}", RecalibratedClassifierCV(GaussianNB(), recalibrator)
    # the cache of the out-of-fold scores: they are the same for all bins
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
