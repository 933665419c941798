"""uncertainty-calibration: the library of Kumar, Liang and Ma (2019)."""

import calibration
import numpy as np
from calibration.utils import bootstrap_uncertainty

from benchmarks.speed.floors import import_seconds
from benchmarks.speed.jobs import N_RESAMPLES
from benchmarks.speed.peers import Contender


def _debiased(problem):
    return calibration.lower_bound_scaling_ce(problem.scores, problem.labels, num_bins=15)


def _interval(problem):
    np.random.seed(0)  # noqa: NPY002
    return bootstrap_uncertainty(
        list(zip(problem.scores, problem.labels, strict=True)),
        lambda rows: calibration.lower_bound_scaling_ce(*zip(*rows, strict=True), p=1, debias=False, num_bins=15),
        num_samples=N_RESAMPLES,
    )


def _scaling_binning(problem):
    calibrator = calibration.PlattBinnerCalibrator(len(problem.scores), num_bins=10)
    calibrator.train_calibration(problem.scores, problem.labels)
    return calibrator.calibrate(problem.scores)


JOBS = {
    "equal-mass ECE, debiased": Contender(_debiased),
    "marginal, equal mass, debiased": Contender(_debiased, None, "clips each class at 0 before the mean"),
    "1000 bootstrap resamples": Contender(
        _interval, lambda interval, problem: np.array([interval[0], interval[2]]), "makes the bins anew each time"
    ),
    "scaling-binning": Contender(_scaling_binning),
    "import": Contender(lambda problem: import_seconds("calibration")),
}
