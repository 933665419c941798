"""Pictures of the user guide, from simulated data: python
doc/examples/guide_pictures.py [FOLDER].
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib import (
    BetaCalibration,
    CrossFittedClassifier,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    SplineCalibration,
)
from skcalib.displays import (
    ChangeDisplay,
    CumulativeDifferenceDisplay,
    DecisionCurveDisplay,
    GroupDisplay,
    MonitorDisplay,
    MurphyDisplay,
    ReliabilityDisplay,
    RiskCoverageDisplay,
    SegmentDisplay,
)
from skcalib.monitoring import CalibrationMonitor


def rows():
    """Training, calibration and test parts of a simulated data set."""
    X, y = make_classification(
        12_000,
        n_features=20,
        n_informative=2,
        n_redundant=10,
        weights=[0.7],
        flip_y=0.05,
        random_state=0,
    )
    X_train, X_rest, y_train, y_rest = train_test_split(
        X, y, train_size=2000, random_state=0
    )
    return (
        X_train,
        y_train,
        *train_test_split(X_rest, y_rest, train_size=2000, random_state=0),
    )


def scores():
    """Three models fitted to the same data, two of which are not calibrated."""
    X_train, y_train, _, X_test, _, y_test = rows()
    models = {
        "logistic regression": LogisticRegression(),
        "naive Bayes": GaussianNB(),
        "balanced logistic regression": LogisticRegression(class_weight="balanced"),
    }
    y_proba = {
        name: model.fit(X_train, y_train).predict_proba(X_test)
        for name, model in models.items()
    }
    return ReliabilityDisplay.from_predictions(y_test, y_proba, random_state=0).figure_


def leakage():
    """A forest, recalibrated with its training scores and with out-of-fold scores."""
    X_train, y_train, _, X_test, _, y_test = rows()
    cross_fitted = CrossFittedClassifier(RandomForestClassifier(50, random_state=0))
    honest = cross_fitted.fit_transform(X_train, y_train)
    seen, new = cross_fitted.transform(X_train), cross_fitted.transform(X_test)
    y_proba = {
        "fitted to training rows": (
            IsotonicCalibration().fit(seen, y_train).predict_proba(new)
        ),
        "fitted to out-of-fold scores": (
            IsotonicCalibration().fit(honest, y_train).predict_proba(new)
        ),
    }
    return ReliabilityDisplay.from_predictions(y_test, y_proba, random_state=0).figure_


def maps():
    """Calibration maps of five recalibrators, learned from the same 400 samples."""
    rng = np.random.default_rng(0)
    s = rng.random(400)
    y = rng.random(400) < s**1.6
    grid = np.linspace(0, 1, 1001)
    methods = (
        HistogramBinning(10),
        IsotonicCalibration(),
        PlattScaling(),
        BetaCalibration(),
        SplineCalibration(),
    )
    figure, axes = plt.subplots(
        2, 3, figsize=(8, 5.6), sharex=True, sharey=True, layout="constrained"
    )
    for method, ax in zip(methods, axes.flat, strict=False):
        truth = ax.plot(
            grid, grid**1.6, color="0.4", linestyle=(0, (1, 1.5)), label="truth"
        )
        learned = ax.plot(
            grid,
            method.fit(s, y).predict_proba(grid)[:, 1],
            color="#0072B2",
            label="learned map",
        )
        ax.set(aspect="equal")
        ax.set_title(type(method).__name__, loc="left", fontsize="medium")
    axes[0, 2].tick_params(labelbottom=True)
    axes[1, 2].set_axis_off()
    axes[1, 2].legend(handles=[*learned, *truth], loc="center", frameon=False)
    figure.supxlabel("Score", fontsize="medium")
    figure.supylabel("Recalibrated probability", fontsize="medium")
    return figure


def cumulative():
    """Running mean of label minus score, for scores that are too high in the middle."""
    rng = np.random.default_rng(0)
    s = rng.random(2000)
    y = rng.random(2000) < s**1.2
    return CumulativeDifferenceDisplay.from_predictions(y, s).figure_


def groups():
    """Six sites, one of which has more events than predicted."""
    rng = np.random.default_rng(0)
    s, site = (
        rng.beta(1, 6, 9000),
        rng.choice(list("ABCDEF"), 9000, p=[0.3, 0.2, 0.2, 0.15, 0.1, 0.05]),
    )
    y = rng.random(9000) < np.where(site == "D", np.minimum(1.6 * s, 1), s)
    return GroupDisplay.from_predictions(y, s, site, random_state=0).figure_


def segments():
    """Older people at site 3 have more events than predicted, which a multicalibrated
    map corrects.
    """
    rng = np.random.default_rng(0)
    columns = np.column_stack((rng.integers(20, 90, 6000), rng.integers(0, 5, 6000)))
    s, older = rng.beta(1, 8, 6000), (columns[:, 0] > 70) & (columns[:, 1] == 3)
    repaired = np.where(older, np.minimum(3 * s, 1), s)
    y_proba = {"global map": s, "multicalibrated": repaired}
    options = {"plot_options": {"max_segments": 6}, "random_state": 0}
    table = {"age": columns[:, 0], "site": columns[:, 1].astype(str)}
    return SegmentDisplay.from_predictions(
        rng.random(6000) < repaired, y_proba, pd.DataFrame(table), **options
    ).figure_


def change():
    """Log-odds that rise by .5 in the second year, and scores that rise by less."""
    rng = np.random.default_rng(0)
    before, after = rng.beta(1, 4, 4000), rng.beta(1.4, 4, 4000)
    truth = 1 / (1 + np.exp(-(np.log(after / (1 - after)) + 0.5)))
    y_before, y_after = rng.random(4000) < before, rng.random(4000) < truth
    return ChangeDisplay.from_predictions(
        y_before, before, y_after, after, random_state=0
    ).figure_


def murphy():
    """Logistic regression and naive Bayes on the same samples."""
    X_train, y_train, _, X_test, _, y_test = rows()
    models = {"logistic regression": LogisticRegression(), "naive Bayes": GaussianNB()}
    fitted = {name: model.fit(X_train, y_train) for name, model in models.items()}
    return MurphyDisplay.from_estimator(fitted, X_test, y_test).figure_


def monitor():
    """Monitor of the page on drift: the log-odds rise by .5 after 8,000 samples."""
    rng = np.random.default_rng(0)
    s = rng.beta(1, 4, 12_000)
    truth = 1 / (1 + np.exp(-(np.log(s / (1 - s)) + 0.5 * (np.arange(12_000) >= 8000))))
    y = rng.random(12_000) < truth
    watch = CalibrationMonitor(average_run_length=100_000)
    for start in range(0, 12_000, 200):
        watch.partial_fit(s[start : start + 200], y[start : start + 200])
    return MonitorDisplay.from_monitor(watch).figure_


def weak_measurements():
    """Labels and probabilities for the page on thresholds."""
    data = load_breast_cancer()
    X, y = data.data[:, [1, 4, 8, 9]], (data.target == 0).astype(int)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, random_state=0
    )
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X_train, y_train)
    return y_test, model.predict_proba(X_test)[:, 1]


def decision():
    """Decision curve for the page on thresholds."""
    options = {"threshold": 0.1, "name": "four measurements"}
    return DecisionCurveDisplay.from_predictions(
        *weak_measurements(), **options
    ).figure_


def risk_coverage():
    """Error rate among the answers, for the page on thresholds."""
    options = {"target": 0.1, "name": "four measurements"}
    return RiskCoverageDisplay.from_predictions(*weak_measurements(), **options).figure_


_DRAWN = (
    scores,
    leakage,
    maps,
    cumulative,
    groups,
    segments,
    change,
    murphy,
    monitor,
    decision,
    risk_coverage,
)
PICTURES = {one.__name__: one for one in _DRAWN}

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "doc/pictures")
    for name, draw in PICTURES.items():
        draw().savefig(folder / f"{name}.png", dpi=160)
