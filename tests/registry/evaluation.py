"""Entries of summaries, comparisons and calibration over time."""

from dataclasses import replace

from registry._entry import Entry, MetricEntry
from skcalib import PlattScaling
from skcalib.evaluation import (
    adjust_pvalues,
    advise,
    calibration_by_cluster,
    calibration_summary,
    compare,
    cross_validate,
    describe_weights,
    mean_interval,
    recalibration_gain,
    refinement_loss,
    update_test,
    validation_sample_size,
)
from skcalib.monitoring import (
    calibration_change,
    calibration_trend,
    error_autocorrelation,
    estimated_performance,
)

_FEW_DRAWS = {"n_resamples": 20, "random_state": 0}


def _comparison(rows):
    models = {"one": rows.inner_scores, "square": rows.inner_scores**2}
    return compare(rows.y, models, n_resamples=49, random_state=0)


def _change(rows):
    return calibration_change(
        rows.y[::2],
        rows.inner_scores[::2],
        rows.y[1::2],
        rows.inner_scores[1::2],
        binning=4,
        n_resamples=99,
        random_state=0,
    )


def _by_cluster(rows):
    """Round what is found by search, which stops at another digit elsewhere."""
    table = calibration_by_cluster(rows.y, rows.inner_scores, rows.cluster % 5)
    rounded = {"between": {key: round(tau, 4) for key, tau in table.between.items()}}
    for name in ("pooled", "prediction"):
        rounded[name] = {
            key: type(interval)(*(round(value, 4) for value in interval))
            for key, interval in getattr(table, name).items()
        }
    return replace(table, **rounded)


def _advice(rows):
    advice = advise(rows.y, rows.inner_scores**3, groups=rows.cluster % 3)
    return {"kind": advice.kind, "text": str(advice), "code": advice.code()}


ENTRIES = {
    "skcalib.evaluation.adjust_pvalues": Entry(
        job="doc/reporting.md",
        result=lambda rows: adjust_pvalues(rows.inner_scores[:10] / 10),
    ),
    "skcalib.evaluation.advise": Entry(job="doc/reporting.md", result=_advice),
    "skcalib.evaluation.calibration_by_cluster": Entry(
        job="doc/reporting.md",
        result=_by_cluster,
    ),
    "skcalib.evaluation.update_test": Entry(
        job="doc/pipelines.md",
        result=lambda rows: update_test(
            rows.y, rows.inner_scores, features=rows.inner_scores**2
        ),
    ),
    "skcalib.evaluation.validation_sample_size": Entry(
        job="doc/reporting.md",
        result=lambda rows: validation_sample_size(rows.inner_scores, threshold=0.3),
    ),
    "skcalib.evaluation.calibration_summary": MetricEntry(
        job="doc/reporting.md",
        options=_FEW_DRAWS,
        is_random=True,
        one_event=True,
        result=lambda rows: calibration_summary(
            rows.y, rows.inner_scores, n_resamples=49, random_state=0
        ),
    ),
    "skcalib.evaluation.compare": Entry(job="doc/reporting.md", result=_comparison),
    "skcalib.evaluation.describe_weights": Entry(
        job="doc/reporting.md",
        result=lambda rows: describe_weights(rows.y, 1 + 19 * (rows.y == 0)),
        no_paper="it names what the weights say, which is arithmetic",
    ),
    "skcalib.evaluation.mean_interval": Entry(
        job="doc/reporting.md",
        result=lambda rows: mean_interval(rows.y, largest=1, clusters=rows.cluster),
    ),
    "skcalib.evaluation.cross_validate": Entry(
        job="doc/reporting.md",
        result=lambda rows: cross_validate(
            rows.y, rows.inner_scores, {"platt": PlattScaling()}, clusters=rows.cluster
        ).columns(),
    ),
    "skcalib.evaluation.recalibration_gain": MetricEntry(
        job="doc/reporting.md",
        options={"recalibrator": PlattScaling(), "cv": 2},
        result=lambda rows: recalibration_gain(
            rows.y, rows.inner_scores, recalibrator=PlattScaling()
        ),
    ),
    "skcalib.evaluation.refinement_loss": MetricEntry(
        job="doc/pipelines.md",
        options={"recalibrator": PlattScaling(), "cv": 2},
        result=lambda rows: refinement_loss(
            rows.y, rows.inner_scores, recalibrator=PlattScaling()
        ),
    ),
    "skcalib.monitoring.CalibrationMonitor": Entry(job="doc/after_release.md"),
    "skcalib.monitoring.GroupMonitors": Entry(
        job="doc/after_release.md", no_paper="CalibrationMonitor"
    ),
    "skcalib.monitoring.calibration_change": Entry(
        job="doc/after_release.md", result=_change
    ),
    "skcalib.monitoring.calibration_trend": Entry(
        job="doc/after_release.md",
        result=lambda rows: calibration_trend(rows.y, rows.scores, rows.cluster),
    ),
    "skcalib.monitoring.error_autocorrelation": Entry(
        job="doc/after_release.md",
        result=lambda rows: error_autocorrelation(
            rows.y, rows.inner_scores, rows.cluster, groups=rows.cluster % 3
        ),
    ),
    "skcalib.monitoring.estimated_performance": Entry(
        job="doc/after_release.md",
        result=lambda rows: estimated_performance(rows.y, rows.scores, rows.scores**2),
    ),
}
