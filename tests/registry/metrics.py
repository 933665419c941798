"""Entries of the metrics."""

import numpy as np
from sklearn.naive_bayes import GaussianNB

from registry._entry import Entry, MetricEntry
from skcalib.metrics import (
    BinStatistics,
    brier_decomposition,
    calibration_by_group,
    calibration_error,
    calibration_error_interval,
    calibration_slope_intercept,
    calibration_test,
    expected_calibration_error,
    get_scorer,
    groupwise_calibration_error,
    kde_calibration_error,
    kernel_calibration_error,
    kolmogorov_smirnov_calibration_error,
    kuiper_calibration_error,
    log_loss_decomposition,
    maximum_calibration_error,
    neighborhood_calibration_error,
    ranked_probability_decomposition,
    ranked_probability_score,
    reliability_curve,
    segment_calibration_test,
    smooth_calibration_error,
    sweep_calibration_error,
    two_bin_calibration_error,
    validity_curve,
)

_FEW_DRAWS = {"n_resamples": 20, "random_state": 0}
_BASE = {"not_frozen": "a base", "no_paper": "a base"}
_ROW_OF_A_TABLE = {
    "not_frozen": "a row of a table",
    "no_paper": "a row of a table",
}
_FROZEN_DRAWS = {"n_resamples": 99, "random_state": 0}


def _error(metric, *, marginal=True):
    """Return a function that gives the values of a calibration error."""

    def results(rows):
        found = {
            "two classes": metric(rows.y, rows.scores),
            "weights": metric(rows.y, rows.scores, sample_weight=rows.weight),
            "three classes": metric(rows.label, rows.proba),
        }
        if marginal:
            found["marginal"] = metric(rows.label, rows.proba, multiclass="marginal")
        return found

    return results


def _calibration_error(rows):
    found = _error(calibration_error)(rows)
    for method in ("plugin", "debiased", "unbiased", "label_binned"):
        found[method] = calibration_error(
            rows.y,
            rows.scores,
            method=method,
            binning=6,
            squared=method != "label_binned",
        )
    for norm in (1, 3, np.inf):
        found[f"norm {norm}"] = calibration_error(
            rows.y, rows.scores, norm=norm, binning=6
        )
    return found


def _groupwise(rows):
    found = _error(groupwise_calibration_error, marginal=False)(rows)
    found["groups"] = groupwise_calibration_error(
        rows.y, rows.scores, groups=_three_groups(rows)
    )
    return found


def _three_groups(rows):
    return np.array(["a", "b", "c"])[rows.cluster % 3]


def _intervals(rows):
    y, scores = rows.y, rows.scores
    interval = calibration_error_interval
    return {
        "two classes": interval(y, scores, **_FROZEN_DRAWS),
        "weights": interval(y, scores, sample_weight=rows.weight, **_FROZEN_DRAWS),
        "clusters": interval(y, scores, clusters=rows.cluster, **_FROZEN_DRAWS),
        "three classes": interval(rows.label, rows.proba, **_FROZEN_DRAWS),
    }


def _tests(rows):
    y, scores = rows.y, rows.scores
    found = {
        "hosmer_lemeshow": calibration_test(
            y, scores, method="hosmer_lemeshow", binning=3
        ),
        "resampling": calibration_test(y, scores, **_FROZEN_DRAWS),
    }
    for method in ("kuiper", "kolmogorov_smirnov", "spiegelhalter"):
        found[method] = calibration_test(y, scores, method=method)
    return found


def _scorers(rows):
    model = GaussianNB().fit(rows.X, rows.y)
    names = (
        "neg_calibration_error",
        "neg_expected_calibration_error",
        "neg_groupwise_calibration_error",
        "neg_kde_calibration_error",
        "neg_kernel_calibration_error",
        "neg_kolmogorov_smirnov_calibration_error",
        "neg_kuiper_calibration_error",
        "neg_l1_calibration_error",
        "neg_maximum_calibration_error",
        "neg_neighborhood_calibration_error",
        "neg_smooth_calibration_error",
        "neg_squared_calibration_error",
        "neg_sweep_calibration_error",
        "neg_two_bin_calibration_error",
    )
    return {name: get_scorer(name)(model, rows.X, rows.y) for name in names}


ENTRIES = {
    "skcalib.metrics.ClassBinStatistics": Entry(
        job="skcalib.metrics.reliability_curve",
        result=lambda rows: dict(
            BinStatistics.from_predictions(
                rows.label, rows.proba, [0, 0.5, 1], multiclass="marginal"
            )
        ),
        no_paper="sums",
    ),
    "skcalib.metrics.BinStatistics": Entry(
        job="skcalib.metrics.reliability_curve",
        result=lambda rows: BinStatistics.from_predictions(
            rows.y, rows.scores, [0, 0.2, 0.6, 1], rows.weight
        ),
        no_paper="sums",
    ),
    "skcalib.metrics.CalibrationError": Entry(
        job="doc/examples/overestimation_error.py", **_BASE
    ),
    "skcalib.metrics.ErrorPower": Entry(
        job="doc/examples/overestimation_error.py", **_BASE
    ),
    "skcalib.metrics.Metric": Entry(
        job="doc/examples/overestimation_error.py", **_ROW_OF_A_TABLE
    ),
    "skcalib.metrics.brier_decomposition": MetricEntry(
        job="doc/scores.md",
        result=lambda rows: brier_decomposition(
            rows.y, np.clip(rows.scores, 0.01, 0.99)
        ),
    ),
    "skcalib.metrics.calibration_by_group": MetricEntry(
        job="doc/which_groups.md",
        options=_FEW_DRAWS,
        is_random=True,
        result=lambda rows: calibration_by_group(
            rows.y, rows.scores, _three_groups(rows), binning=4, **_FROZEN_DRAWS
        ),
    ),
    "skcalib.metrics.calibration_error": MetricEntry(
        job="doc/large_tables.md",
        options={"binning": 3},
        results=_calibration_error,
    ),
    "skcalib.metrics.calibration_error_interval": MetricEntry(
        job="doc/which_error.md",
        options={"binning": 3, **_FEW_DRAWS},
        is_random=True,
        results=_intervals,
    ),
    "skcalib.metrics.calibration_slope_intercept": MetricEntry(
        job="doc/reading_a_diagram.md",
        result=lambda rows: calibration_slope_intercept(rows.y, rows.inner_scores),
    ),
    "skcalib.metrics.calibration_test": MetricEntry(
        job="doc/which_error.md",
        options=_FEW_DRAWS,
        is_random=True,
        results=_tests,
    ),
    "skcalib.metrics.decision_calibration_error": MetricEntry(job="doc/which_error.md"),
    "skcalib.metrics.expected_calibration_error": MetricEntry(
        job="doc/examples/trust_in_a_metric.py",
        results=_error(expected_calibration_error),
    ),
    "skcalib.metrics.get_scorer": Entry(
        job="doc/pipelines.md",
        results=_scorers,
        no_paper="scikit-learn's scorers",
    ),
    "skcalib.metrics.get_scorer_names": Entry(
        job="doc/examples/trust_in_a_metric.py",
        not_frozen="each new error adds a name; those of get_scorer stay",
        no_paper="scikit-learn's scorers",
    ),
    "skcalib.metrics.groupwise_calibration_error": MetricEntry(
        job="doc/many_classes.md", results=_groupwise
    ),
    "skcalib.metrics.kde_calibration_error": MetricEntry(
        job="doc/which_error.md", results=_error(kde_calibration_error)
    ),
    "skcalib.metrics.kernel_calibration_error": MetricEntry(
        job="doc/which_error.md",
        results=_error(kernel_calibration_error, marginal=False),
    ),
    "skcalib.metrics.kolmogorov_smirnov_calibration_error": MetricEntry(
        job="doc/which_error.md",
        results=_error(kolmogorov_smirnov_calibration_error),
    ),
    "skcalib.metrics.kuiper_calibration_error": MetricEntry(
        job="doc/examples/trust_in_a_metric.py",
        results=_error(kuiper_calibration_error),
    ),
    "skcalib.metrics.log_loss_decomposition": MetricEntry(
        job="doc/coming_from.md",
        result=lambda rows: log_loss_decomposition(
            rows.y, np.clip(rows.scores, 0.01, 0.99)
        ),
    ),
    "skcalib.metrics.maximum_calibration_error": MetricEntry(
        job="doc/which_error.md", results=_error(maximum_calibration_error)
    ),
    "skcalib.metrics.neighborhood_calibration_error": MetricEntry(
        job="doc/which_error.md",
        options={"n_neighbors": 2},
        results=_error(neighborhood_calibration_error),
    ),
    "skcalib.metrics.ranked_probability_decomposition": MetricEntry(
        job="doc/many_classes.md",
        result=lambda rows: ranked_probability_decomposition(rows.label, rows.proba),
    ),
    "skcalib.metrics.ranked_probability_score": MetricEntry(
        job="doc/many_classes.md",
        result=lambda rows: ranked_probability_score(rows.label, rows.proba),
    ),
    "skcalib.metrics.reliability_curve": MetricEntry(
        job="doc/coming_from.md",
        result=lambda rows: reliability_curve(
            rows.y, rows.scores, binning=5, sample_weight=rows.weight
        ),
    ),
    "skcalib.metrics.register_metric": Entry(
        job="doc/examples/overestimation_error.py", **_ROW_OF_A_TABLE
    ),
    "skcalib.metrics.segment_calibration_test": MetricEntry(
        job="doc/which_groups.md",
        result=lambda rows: segment_calibration_test(
            rows.y, rows.scores, rows.X, max_depth=1, **_FROZEN_DRAWS
        ),
    ),
    "skcalib.metrics.smooth_calibration_error": MetricEntry(
        job="doc/which_error.md", results=_error(smooth_calibration_error)
    ),
    "skcalib.metrics.sweep_calibration_error": MetricEntry(
        job="doc/which_error.md", results=_error(sweep_calibration_error)
    ),
    "skcalib.metrics.two_bin_calibration_error": MetricEntry(
        job="doc/which_error.md", results=_error(two_bin_calibration_error)
    ),
    "skcalib.metrics.validity_curve": MetricEntry(
        job="doc/examples/plan_labels.py",
        # the curve's own tolerances differ by rounding
        options={"epsilons": [0.013, 0.077, 0.239, 0.613]},
        result=lambda rows: validity_curve(
            rows.y, rows.scores, epsilons=[0.05, 0.1, 0.2], binning=5
        ),
    ),
}
