"""The jobs: what is asked, ours, the floor, and when two answers are the same."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

import skcalib
from benchmarks.speed import floors, problems
from skcalib import metrics
from skcalib.binning import EqualMass, EqualWidth

__all__ = ["JOBS", "Job"]


@dataclass(frozen=True)
class Job:
    """One row of the table for each peer.

    `make(*size)` returns the problem, `full` and `quick` are sizes. `ours` and `floor` are functions of the problem;
    the floor is the least NumPy work that any implementation must do, or None. `answer(result, problem)` is what is
    compared, outside the clock; `agrees(ours, theirs)` says whether two answers are the same. `slow` names the peers
    that are asked for on request only, for the minutes that they take. `target` is what the ratios are meant to be, as
    text. `needs` is an optional library without which ours cannot run. The rest is about the shapes of scores: whether
    there are weights, shapes that the job is not defined for, the most rows, and (a job, how many times its seconds).
    """

    make: Callable
    full: tuple
    quick: tuple
    ours: Callable
    floor: Callable | None
    agrees: Callable
    target: str
    answer: Callable = lambda result, problem: result
    slow: tuple = ()
    needs: str = "numpy"
    is_weighted: bool = False
    not_for: tuple = ()
    largest: int | None = None
    fits: tuple = ()


def _close(tolerance):
    return lambda ours, theirs: bool(np.allclose(ours, theirs, rtol=0, atol=tolerance))


def _no_higher(tolerance):
    return lambda ours, theirs: ours <= theirs + tolerance


def event_probability(result, problem):
    """Return the probability of the event, of which a peer may give one column or two."""
    result = np.asarray(result, dtype=np.float64)
    return result if result.ndim == 1 else result[:, 1]


def log_loss(result, problem):
    """Return the mean log-loss of a calibrated (n, K) forecast."""
    true = np.asarray(result)[np.arange(len(problem.labels)), problem.labels]
    return float(-np.mean(np.log(true.astype(np.float64))))


def _fit_predict(recalibrator, field="scores"):
    def run(problem):
        scores = getattr(problem, field)
        return recalibrator().fit(scores, problem.labels).predict_proba(scores)

    return run


def held_out_log_loss(result, problem):
    """Return the mean log-loss of a calibrated forecast of the second half of the rows."""
    return log_loss(result, problem.halves()[1])


def _fit_then_forecast(recalibrator):
    def run(problem):
        known, fresh = problem.halves()
        return recalibrator().fit(known.logits, known.labels).predict_proba(fresh.logits)

    return run


def _metric(function, **params):
    return lambda problem: function(problem.labels, problem.scores, **params)


def _reliability_diagram(problem):
    import matplotlib.pyplot as plt

    from skcalib.displays import ReliabilityDisplay

    figure = ReliabilityDisplay.from_predictions(problem.labels, problem.scores, random_state=0).figure_
    plt.close(figure)
    return floors.drawn(figure)


_logits_job = partial(_fit_predict, field="logits")

JOBS = {
    "equal-width ECE": Job(
        problems.binary, (10**7,), (20_000,),
        _metric(metrics.expected_calibration_error), floors.equal_width,
        _close(1e-10), "<= 1.5 x floor, 8 x scikit-learn",
    ),
    "equal-mass ECE": Job(
        problems.binary, (10**7,), (20_000,),
        _metric(metrics.calibration_error, norm=1, method="plugin"), floors.equal_mass,
        _close(1e-4), "<= 1.5 x floor, 4 x",
    ),
    "equal-mass ECE, debiased": Job(
        problems.binary, (10**7,), (20_000,),
        _metric(metrics.calibration_error), floors.equal_mass,
        _close(1e-4), "<= 1.5 x floor, 4 x",
        slow=("uncertainty-calibration",),
    ),
    "sweep": Job(
        problems.binary, (10**7,), (20_000,),
        _metric(metrics.sweep_calibration_error), floors.equal_mass,
        _close(1e-10), "<= 2 x floor",
    ),
    "top-label ECE": Job(
        problems.many_classes, (50_000, 1000), (2_000, 20),
        _metric(metrics.expected_calibration_error), floors.top_label,
        _close(1e-5), "<= 2 x floor, 2 x",
    ),
    "marginal, equal width": Job(
        problems.many_classes, (50_000, 1000), (2_000, 20),
        _metric(metrics.expected_calibration_error, multiclass="marginal"), floors.marginal_equal_width,
        _close(1e-6), "<= the floor, with <= 200 MB, 8 x",
    ),
    "marginal, equal mass, debiased": Job(
        problems.many_classes, (50_000, 1000), (2_000, 20),
        _metric(metrics.calibration_error, multiclass="marginal"), floors.marginal_equal_mass,
        _close(1e-3), "25 x",
        slow=("uncertainty-calibration",),
    ),
    "smECE": Job(
        problems.binary, (10**6,), (20_000,),
        _metric(metrics.smooth_calibration_error), None,
        _close(1e-3), "3 x",
    ),
    "temperature, 1000 classes": Job(
        problems.many_classes, (50_000, 1000), (2_000, 20),
        _logits_job(lambda: skcalib.TemperatureScaling(input="logit")), floors.softmax,
        _close(1e-4), "<= 8 softmaxes, 5 x",
        answer=log_loss,
        slow=("netcal", "probmetrics"),
    ),
    "temperature, 100 classes": Job(
        problems.many_classes, (10_000, 100), (2_000, 20),
        _logits_job(lambda: skcalib.TemperatureScaling(input="logit")), floors.softmax,
        _close(1e-4), "<= 12 softmaxes, 3 x",
        answer=log_loss,
    ),
    "vector scaling": Job(
        problems.many_classes, (20_000, 100), (4_000, 20),
        _fit_then_forecast(lambda: skcalib.VectorScaling(input="logit")), None,
        _no_higher(5e-4), "3 x, log-loss no higher",
        answer=held_out_log_loss,
    ),
    "matrix scaling, structured": Job(
        problems.many_classes, (20_000, 100), (4_000, 10),
        _fit_then_forecast(lambda: skcalib.MatrixScaling(input="logit")), None,
        _no_higher(5e-4), "2 x, log-loss no higher",
        answer=held_out_log_loss,
    ),
    "matrix scaling, unpenalised": Job(
        problems.many_classes, (20_000, 10), (4_000, 5),
        _fit_then_forecast(lambda: skcalib.MatrixScaling(alpha=0.0, input="logit")), None,
        _no_higher(5e-4), "1.5 x",
        answer=held_out_log_loss,
    ),
    "histogram binning": Job(
        problems.binary, (10**6,), (20_000,),
        _fit_predict(lambda: skcalib.HistogramBinning(binning=EqualWidth(10))), floors.histogram_binning,
        _close(1e-10), "<= 2.5 x floor",
        answer=event_probability,
    ),
    "scaling-binning": Job(
        problems.binary, (10**6,), (20_000,),
        _fit_predict(lambda: skcalib.ScalingBinning(binning=EqualMass(10))), None,
        lambda ours, theirs: bool(np.mean(np.abs(ours - theirs)) < 2e-3), "6 x",
        answer=event_probability,
    ),
    "isotonic": Job(
        problems.binary, (10**6,), (20_000,),
        _fit_predict(skcalib.IsotonicCalibration), floors.isotonic,
        _close(1e-10), "<= 2 x floor",
        answer=event_probability,
    ),
    "Platt": Job(
        problems.binary, (10**6,), (20_000,),
        _fit_predict(skcalib.PlattScaling), None,
        _close(1e-3), "no slower",
        answer=event_probability,
    ),
    "Beta": Job(
        problems.binary, (10**6,), (20_000,),
        _fit_predict(skcalib.BetaCalibration), None,
        _close(1e-3), "no slower",
        answer=event_probability,
    ),
    "reliability diagram": Job(
        problems.binary, (10**5,), (5_000,),
        _reliability_diagram, floors.bare_diagram,
        lambda ours, theirs: True, "<= 2 x floor",
        answer=lambda result, problem: None,
        slow=("relplot",), needs="matplotlib",
    ),
    "Venn-Abers": Job(
        problems.binary, (10**5,), (2_000,),
        _fit_predict(skcalib.VennAbers), None,
        _close(1e-2), "none stated",
        answer=event_probability,
    ),
    "import": Job(
        problems.no_input, (), (),
        lambda problem: floors.import_seconds("skcalib"),
        lambda problem: floors.import_seconds("sklearn.calibration"),
        lambda ours, theirs: True, "<= 1.1 x floor",
        answer=lambda result, problem: None,
    ),
}  # fmt: skip
