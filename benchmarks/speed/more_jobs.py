"""Jobs without a floor or a peer: how their time depends on the shape of the scores,
and on a plain fit.
"""

import weakref
from functools import partial

import numpy as np

import skcalib
from benchmarks.speed import problems
from benchmarks.speed.jobs import Job, Target
from skcalib import evaluation, metrics
from skcalib.binning import EqualMass, EqualWidth, InformationPreserving, UniqueScores

__all__ = ["MORE_JOBS"]


def _job(ours, make=problems.binary, **options):
    return Job(make, (), (), ours, None, lambda ours, theirs: True, Target(), **options)


def _metric(function, **params):
    return lambda problem: function(problem.labels, problem.scores, **params)


def _weighted(function, **params):
    """Return a run with weights, which are made outside of the metric: integers from 1
    to 3.
    """

    def run(problem):
        weight = 1.0 + np.arange(len(problem.labels)) % 3
        return function(problem.labels, problem.scores, sample_weight=weight, **params)

    return run


def _fit(recalibrator, field="scores"):
    return lambda problem: recalibrator().fit(getattr(problem, field), problem.labels)


def _weighted_fit(recalibrator):
    def run(problem):
        weight = 1.0 + np.arange(len(problem.labels)) % 3
        return recalibrator().fit(problem.scores, problem.labels, sample_weight=weight)

    return run


def _both(recalibrator):
    return lambda problem: (
        recalibrator().fit(problem.scores, problem.labels).predict_proba(problem.scores)
    )


def _forecast(recalibrator):
    """Return a run that forecasts. The first one of a problem also fits: it is not the
    least of the times.
    """
    fitted = {}

    def run(problem):
        scores, model = fitted.get(id(problem.scores), (lambda: None, None))
        if scores() is not problem.scores:
            model = recalibrator().fit(problem.scores, problem.labels)
            fitted[id(problem.scores)] = weakref.ref(problem.scores), model
        return model.predict_proba(problem.scores)

    return run


def _by_group(problem):
    groups = np.arange(len(problem.labels)) % 5
    return metrics.calibration_by_group(
        problem.labels, problem.scores, groups, random_state=0
    )


def _test(metric, n_resamples=99):
    return _metric(
        metrics.calibration_test, metric=metric, n_resamples=n_resamples, random_state=0
    )


def _brier(y_true, y_proba):
    return float(np.mean((y_proba[:, 1] - (y_true == 1)) ** 2))


_tested = {
    "sweep": metrics.sweep_calibration_error,
    "equal-mass error": metrics.calibration_error,
    "ECE": metrics.expected_calibration_error,
    "KS": metrics.kolmogorov_smirnov_calibration_error,
    "Kuiper": metrics.kuiper_calibration_error,
    "smECE": metrics.smooth_calibration_error,
    "KDE": metrics.kde_calibration_error,
    "neighbourhood": metrics.neighborhood_calibration_error,
}
_one_score = ("constant",)  # has no slope
_classes = partial(_job, make=problems.many_classes)

MORE_JOBS = {
    "equal-mass ECE, weights": _job(
        _weighted(metrics.calibration_error), is_weighted=True
    ),
    "equal-width ECE, weights": _job(
        _weighted(metrics.expected_calibration_error), is_weighted=True
    ),
    "sweep, weights": _job(
        _weighted(metrics.sweep_calibration_error), is_weighted=True
    ),
    "smECE, weights": _job(
        _weighted(metrics.smooth_calibration_error), is_weighted=True
    ),
    "KS": _job(_metric(metrics.kolmogorov_smirnov_calibration_error)),
    "Kuiper": _job(_metric(metrics.kuiper_calibration_error)),
    "KDE": _job(_metric(metrics.kde_calibration_error)),
    "neighbourhood": _job(_metric(metrics.neighborhood_calibration_error)),
    "error of unique scores": _job(
        _metric(metrics.calibration_error, binning=UniqueScores(), method="plugin")
    ),
    "validity curve": _job(_metric(metrics.validity_curve)),
    "Brier decomposition": _job(_metric(metrics.brier_decomposition)),
    "log-loss decomposition": _job(_metric(metrics.log_loss_decomposition)),
    "equal-width error, 1000 bins": _job(
        _metric(metrics.calibration_error, binning=EqualWidth(1000), method="plugin")
    ),
    "bins of least loss": _job(
        _metric(
            metrics.calibration_error,
            binning=InformationPreserving(n_bins=5),
            method="plugin",
        )
    ),
    "calibration by group": _job(_by_group),
    "recalibration gain of Platt": _job(
        _metric(evaluation.recalibration_gain, recalibrator=skcalib.PlattScaling())
    ),
    "interval of the equal-mass error": _job(
        _metric(metrics.calibration_error_interval, random_state=0)
    ),
    "interval of smECE, 199 draws": _job(
        _metric(
            metrics.calibration_error_interval,
            metric=metrics.smooth_calibration_error,
            n_resamples=199,
            random_state=0,
        )
    ),
    "Hosmer-Lemeshow": _job(
        _metric(metrics.calibration_test, method="hosmer_lemeshow")
    ),
    "Spiegelhalter": _job(_metric(metrics.calibration_test, method="spiegelhalter")),
    **{
        f"test, 99 draws: {name}": _job(_test(metric))
        for name, metric in _tested.items()
    },
    "Platt, fit": _job(_fit(skcalib.PlattScaling)),
    "Beta, fit": _job(_fit(skcalib.BetaCalibration)),
    "Platt, weights": _job(_weighted_fit(skcalib.PlattScaling), is_weighted=True),
    "Beta, weights": _job(_weighted_fit(skcalib.BetaCalibration), is_weighted=True),
    "Platt, squared loss": _job(
        _fit(lambda: skcalib.PlattScaling(loss="squared")), fits=("Platt, fit", 12)
    ),
    "slope and intercept": _job(
        _metric(metrics.calibration_slope_intercept),
        fits=("Platt, fit", 2),
        not_for=_one_score,
    ),
    "Quadratic": _job(_fit(skcalib.QuadraticScaling)),
    "Quadratic, monotone": _job(_fit(lambda: skcalib.QuadraticScaling(monotone=True))),
    "spline": _job(_fit(skcalib.SplineCalibration), fits=("Platt, fit", 6)),
    "temperature": _job(_fit(skcalib.TemperatureScaling)),
    "temperature, Brier score": _job(
        _fit(lambda: skcalib.TemperatureScaling(loss="brier")), fits=("temperature", 12)
    ),
    "temperature, callable": _job(
        _fit(lambda: skcalib.TemperatureScaling(loss=_brier)), fits=("temperature", 12)
    ),
    "histogram, equal mass": _job(
        _both(lambda: skcalib.HistogramBinning(binning=EqualMass(10)))
    ),
    "histogram, unique scores": _job(
        _both(lambda: skcalib.HistogramBinning(binning=UniqueScores()))
    ),
    "uniform mass": _job(_both(lambda: skcalib.UniformMassBinning(10, randomize=True))),
    "Venn-Abers, forecast": _job(_forecast(skcalib.VennAbers)),
    "spline, forecast": _job(_forecast(skcalib.SplineCalibration)),
    "isotonic, weights": _job(
        _weighted_fit(skcalib.IsotonicCalibration), is_weighted=True
    ),
    "Dirichlet": _classes(
        _fit(lambda: skcalib.DirichletCalibration(input="logit"), field="logits"),
        largest=10_000,
    ),
    "Beta, one against the rest": _classes(
        _fit(skcalib.BetaCalibration), largest=4_000
    ),
    "spline, one against the rest": _classes(
        _fit(skcalib.SplineCalibration),
        largest=4_000,
        fits=("Beta, one against the rest", 10),
    ),
}
