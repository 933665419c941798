"""netcal: scaling and binning methods."""

import numpy as np
from netcal.binning import HistogramBinning, IsotonicRegression
from netcal.metrics import ECE
from netcal.scaling import BetaCalibration, LogisticCalibration, TemperatureScaling

from benchmarks.speed.floors import import_seconds
from benchmarks.speed.peers import Contender


def _fit_transform(make, differs=""):
    def run(problem):
        method = make()
        method.fit(problem.scores, problem.labels)
        return method.transform(problem.scores)

    return Contender(run, None, differs)


def _top_label(problem):
    predicted = problem.scores.argmax(axis=1)
    confidence = problem.scores[np.arange(len(predicted)), predicted]
    return ECE(15).measure(confidence, predicted == problem.labels)


JOBS = {
    "equal-width ECE": Contender(
        lambda problem: ECE(15).measure(problem.scores, problem.labels)
    ),
    "top-label ECE": Contender(_top_label),
    "temperature, 1000 classes": _fit_transform(
        TemperatureScaling, "a temperature with a higher log-loss"
    ),
    "temperature, 100 classes": _fit_transform(
        TemperatureScaling, "a temperature with a higher log-loss"
    ),
    "histogram binning": _fit_transform(lambda: HistogramBinning(10)),
    "isotonic": _fit_transform(IsotonicRegression),
    "Platt": _fit_transform(LogisticCalibration),
    "Beta": _fit_transform(BetaCalibration),
    "import": Contender(lambda problem: import_seconds("netcal")),
}
