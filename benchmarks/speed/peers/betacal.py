"""betacal: beta calibration of its authors."""

from betacal import BetaCalibration

from benchmarks.speed.peers import Contender


def _fit_predict(problem):
    return (
        BetaCalibration("abm")
        .fit(problem.scores[:, None], problem.labels)
        .predict(problem.scores)
    )


JOBS = {"Beta": Contender(_fit_predict)}
