"""The jobs: what is asked, ours, the floor, and when two answers are the same."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

import skcalib
from benchmarks.speed import floors, problems
from skcalib import metrics
from skcalib._input import scores as checks
from skcalib.binning import EqualMass, EqualWidth

__all__ = ["JOBS", "Job", "Target"]


class Target(NamedTuple):
    """What a job is meant to reach: at most so many floors, so many times as fast as
    peers (or as one), so many MB.
    """

    floors: float | None = None
    times: float | None = None
    of: str | None = None
    megabytes: float | None = None

    def __str__(self):
        """Return it as text, "" where nothing is asked for."""
        most = {"x floor": self.floors, "MB": self.megabytes}
        parts = [
            f"<= {number:g} {unit}"
            for unit, number in most.items()
            if number is not None
        ]
        return ", ".join(
            parts
            + ([] if self.times is None else [f"{self.times:g} x {self.of or 'peers'}"])
        )


@dataclass(frozen=True)
class Job:
    """One row of the table for each peer.

    `make(*size)` returns the problem, `full` and `quick` are sizes. `ours` and `floor`
    are functions of the problem; the floor is the least NumPy work that any
    implementation must do, or None. `answer(result, problem)` is what is compared,
    outside the clock; `agrees(ours, theirs)` says whether two answers are the same.
    `slow` names the peers that are asked for on request only, for the minutes that they
    take. `target` is what the ratios are meant to be. `needs` is an optional library
    without which ours cannot run. `has_trusting_peers` says that a peer checks nothing
    of its input: ours is then timed without its checks, too. The rest is about the
    shapes of scores: whether there are weights, shapes that the job is not defined for,
    the most rows, and (a job, how many times its seconds).
    """

    make: Callable
    full: tuple
    quick: tuple
    ours: Callable
    floor: Callable | None
    agrees: Callable
    target: Target
    answer: Callable = lambda result, problem: result
    slow: tuple = ()
    needs: str = "numpy"
    has_trusting_peers: bool = False
    is_weighted: bool = False
    not_for: tuple = ()
    largest: int | None = None
    fits: tuple = ()


def _close(tolerance):
    return lambda ours, theirs: bool(np.allclose(ours, theirs, rtol=0, atol=tolerance))


def _no_higher(tolerance):
    return lambda ours, theirs: ours <= theirs + tolerance


def without_checks(run):
    """Return a run of ours in which no look is taken at the scores and at the sums of
    their rows.
    """
    summary = checks._row_summary

    def unchecked(problem):
        with (
            patch.object(checks, "inside_unit_interval", lambda scores: True),
            patch.object(
                checks,
                "_row_summary",
                lambda scores, add, predict: summary(scores, False, predict),
            ),
            patch.object(checks, "_doubtful_in_double", lambda total, *rest: total),
            patch.object(checks, "_normalize_rows", lambda scores, *rest: scores),
        ):
            return run(problem)

    return unchecked


def event_probability(result, problem):
    """Return the probability of the event, of which a peer may give one column or
    two.
    """
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
    """Return the mean log-loss of a calibrated forecast of the second half of the
    rows.
    """
    return log_loss(result, problem.halves()[1])


def _fit_then_forecast(recalibrator):
    def run(problem):
        known, fresh = problem.halves()
        return (
            recalibrator().fit(known.logits, known.labels).predict_proba(fresh.logits)
        )

    return run


def _metric(function, **params):
    return lambda problem: function(problem.labels, problem.scores, **params)


def _reliability_diagram(problem):
    import matplotlib.pyplot as plt

    from skcalib.displays import ReliabilityDisplay

    figure = ReliabilityDisplay.from_predictions(
        problem.labels, problem.scores, random_state=0
    ).figure_
    plt.close(figure)
    return floors.drawn(figure)


def _with_clip(make, clip):
    """Return a fit and forecast of a temperature with the learned floor, or with
    none.
    """
    if make is problems.binary:
        return _fit_predict(lambda: skcalib.TemperatureScaling(clip=clip))
    return _fit_predict(
        lambda: skcalib.TemperatureScaling(input="logit", clip=clip), "logits"
    )


_logits_job = partial(_fit_predict, field="logits")

JOBS = {
    "equal-width ECE": Job(
        problems.binary, (10**7,), (20_000,),
        _metric(metrics.expected_calibration_error), floors.equal_width,
        _close(1e-10), Target(1.5, 8, "scikit-learn"),
        has_trusting_peers=True,
    ),
    "equal-mass ECE": Job(
        problems.binary, (10**7,), (20_000,),
        _metric(metrics.calibration_error, norm=1, method="plugin"), floors.equal_mass,
        _close(1e-4), Target(1.5, 4),
    ),
    "equal-mass ECE, debiased": Job(
        problems.binary, (10**7,), (20_000,),
        _metric(metrics.calibration_error), floors.equal_mass,
        _close(1e-4), Target(1.5, 4),
        slow=("uncertainty-calibration",),
    ),
    "sweep": Job(
        problems.binary, (10**7,), (20_000,),
        _metric(metrics.sweep_calibration_error), floors.equal_mass,
        _close(1e-10), Target(2),
    ),
    "top-label ECE": Job(
        problems.many_classes, (50_000, 1000), (2_000, 20),
        _metric(metrics.expected_calibration_error), floors.top_label,
        _close(1e-5), Target(2, 2),
        has_trusting_peers=True,
    ),
    "marginal, equal width": Job(
        problems.many_classes, (50_000, 1000), (2_000, 20),
        _metric(metrics.expected_calibration_error, multiclass="marginal"), floors.marginal_equal_width,  # noqa: E501
        _close(1e-6), Target(1, 8, megabytes=200),
    ),
    "marginal, equal mass, debiased": Job(
        problems.many_classes, (50_000, 1000), (2_000, 20),
        _metric(metrics.calibration_error, multiclass="marginal"), floors.marginal_equal_mass,  # noqa: E501
        _close(1e-3), Target(times=25),
        slow=("uncertainty-calibration",),
    ),
    "smECE": Job(
        problems.binary, (10**6,), (20_000,),
        _metric(metrics.smooth_calibration_error), None,
        _close(1e-3), Target(times=3),
    ),
    "temperature, 1000 classes": Job(
        problems.many_classes, (50_000, 1000), (2_000, 20),
        _logits_job(lambda: skcalib.TemperatureScaling(input="logit")), floors.softmax,
        _close(1e-4), Target(8, 5),
        answer=log_loss,
        slow=("netcal", "probmetrics"),
    ),
    "temperature, 100 classes": Job(
        problems.many_classes, (10_000, 100), (2_000, 20),
        _logits_job(lambda: skcalib.TemperatureScaling(input="logit")), floors.softmax,
        _close(1e-4), Target(12, 3),
        answer=log_loss,
    ),
    "vector scaling": Job(
        problems.many_classes, (20_000, 100), (4_000, 20),
        _fit_then_forecast(lambda: skcalib.VectorScaling(input="logit")), None,
        _no_higher(5e-4), Target(times=3),
        answer=held_out_log_loss,
    ),
    "matrix scaling, structured": Job(
        problems.many_classes, (20_000, 100), (4_000, 10),
        _fit_then_forecast(lambda: skcalib.MatrixScaling(input="logit")), None,
        _no_higher(5e-4), Target(times=2),
        answer=held_out_log_loss,
    ),
    "matrix scaling, unpenalised": Job(
        problems.many_classes, (20_000, 10), (4_000, 5),
        _fit_then_forecast(lambda: skcalib.MatrixScaling(alpha=0.0, input="logit")), None,  # noqa: E501
        _no_higher(5e-4), Target(times=1.5),
        answer=held_out_log_loss,
    ),
    "histogram binning": Job(
        problems.binary, (10**6,), (20_000,),
        _fit_predict(lambda: skcalib.HistogramBinning(binning=EqualWidth(10))), floors.histogram_binning,  # noqa: E501
        _close(1e-10), Target(2.5),
        answer=event_probability,
    ),
    "scaling-binning": Job(
        problems.binary, (10**6,), (20_000,),
        _fit_predict(lambda: skcalib.ScalingBinning(binning=EqualMass(10))), None,
        lambda ours, theirs: bool(np.mean(np.abs(ours - theirs)) < 2e-3), Target(times=6),  # noqa: E501
        answer=event_probability,
    ),
    "isotonic": Job(
        problems.binary, (10**6,), (20_000,),
        _fit_predict(skcalib.IsotonicCalibration), floors.isotonic,
        _close(1e-10), Target(2),
        answer=event_probability,
    ),
    "Platt": Job(
        problems.binary, (10**6,), (20_000,),
        _fit_predict(skcalib.PlattScaling), None,
        _close(1e-3), Target(times=1),
        answer=event_probability,
    ),
    "Beta": Job(
        problems.binary, (10**6,), (20_000,),
        _fit_predict(skcalib.BetaCalibration), None,
        _close(1e-3), Target(times=1),
        answer=event_probability,
    ),
    "reliability diagram": Job(
        problems.binary, (10**5,), (5_000,),
        _reliability_diagram, floors.bare_diagram,
        lambda ours, theirs: True, Target(2),
        answer=lambda result, problem: None,
        slow=("relplot",), needs="matplotlib",
    ),
    "Venn-Abers": Job(
        problems.binary, (10**5,), (2_000,),
        _fit_predict(skcalib.VennAbers), None,
        _close(1e-2), Target(),
        answer=event_probability,
    ),
    **{
        f"learned floor, {name}": Job(
            make, full, quick,
            _with_clip(make, "auto"), _with_clip(make, None),
            _close(1e-4), Target(1.5),
            answer=lambda result, problem: None,
        )
        for name, make, full, quick in (
            ("two classes", problems.binary, (10**6,), (20_000,)),
            ("100 classes", problems.many_classes, (10_000, 100), (2_000, 20)),
            ("1000 classes", problems.many_classes, (10_000, 1000), (1_000, 50)),
        )
    },
    "import": Job(
        problems.no_input, (), (),
        lambda problem: floors.import_seconds("skcalib"),
        lambda problem: floors.import_seconds("sklearn.calibration"),
        lambda ours, theirs: True, Target(1.1),
        answer=lambda result, problem: None,
    ),
}  # fmt: skip
