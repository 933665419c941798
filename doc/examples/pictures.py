"""Pictures of a model on scikit-learn's bundled data: python doc/examples/pictures.py
[FOLDER].
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from skcalib import PlattScaling, UniformMassBinning
from skcalib.binning import PoolAdjacentViolators
from skcalib.displays import (
    BinCountDisplay,
    EstimatorBiasDisplay,
    ReliabilityDisplay,
    ValidityDisplay,
)

X, y = load_digits(return_X_y=True)
X_train, X_rest, y_train, y_rest = train_test_split(
    X, y, test_size=0.6, stratify=y, random_state=0
)
digits = GaussianNB().fit(X_train, y_train)

y = np.where(y % 2, "odd", "even")  # the event is the greater label: odd
X_fit, X_test, y_fit, y_test = train_test_split(X, y, train_size=0.2, random_state=0)
X_calibration, X_test, y_calibration, y_test = train_test_split(
    X_test, y_test, test_size=0.5, random_state=0
)
odd = GaussianNB(var_smoothing=1e-3).fit(X_fit, y_fit)
scores = odd.predict_proba(X_calibration)
recalibrators = {"Platt": PlattScaling(), "uniform mass": UniformMassBinning(8)}
fitted = {
    name: model.fit(scores, y_calibration) for name, model in recalibrators.items()
}
recalibrated = {
    name: model.predict_proba(odd.predict_proba(X_test))
    for name, model in fitted.items()
}

pictures = {
    "reliability": ReliabilityDisplay.from_estimator(
        digits, X_rest, y_rest, random_state=0
    ),
    "isotonic": ReliabilityDisplay.from_estimator(
        digits, X_rest, y_rest, binning=PoolAdjacentViolators(), random_state=0
    ),
    "classes": ReliabilityDisplay.from_estimator(
        digits, X_rest, y_rest, multiclass="marginal", max_panels=4, random_state=0
    ),
    "models": ReliabilityDisplay.from_predictions(
        y_test,
        {"naive Bayes": odd.predict_proba(X_test), **recalibrated},
        random_state=0,
    ),
    "validity": ValidityDisplay.from_predictions(
        y_test, recalibrated["uniform mass"], name="uniform mass"
    ),
    "bin_counts": BinCountDisplay.from_guarantee(
        [300, 1_000, 5_000, 20_000], epsilon=0.05
    ),
    "bias": EstimatorBiasDisplay.from_estimator(
        digits, X_rest, y_rest, n_simulations=50, random_state=0
    ),
}

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "doc/pictures")
    for name, display in pictures.items():
        display.figure_.savefig(folder / f"{name}.png", dpi=160)
