"""uncertainty-calibration: the library of Kumar, Liang and Ma (2019)."""

import calibration

from benchmarks.speed.floors import import_seconds
from benchmarks.speed.peers import Contender


def _debiased(problem):
    return calibration.lower_bound_scaling_ce(
        problem.scores, problem.labels, num_bins=15
    )


def _scaling_binning(problem):
    calibrator = calibration.PlattBinnerCalibrator(len(problem.scores), num_bins=10)
    calibrator.train_calibration(problem.scores, problem.labels)
    return calibrator.calibrate(problem.scores)


JOBS = {
    "equal-mass ECE, debiased": Contender(_debiased),
    "marginal, equal mass, debiased": Contender(
        _debiased, None, "clips each class at 0 before the mean"
    ),
    "scaling-binning": Contender(_scaling_binning),
    "import": Contender(lambda problem: import_seconds("calibration")),
}
