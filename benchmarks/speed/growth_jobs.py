"""The jobs whose growth is measured: every public function over what its cost grows
with, each beside the plainest job on the same data; see `growth`.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

import skcalib
from benchmarks.speed import problems
from skcalib import binning, decisions, evaluation, metrics, monitoring
from skcalib.binning import EqualMass, EqualWidth, assign_bins

__all__ = ["GROWTH", "REASONS", "Growth"]

_N = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_UP_TO_A_MILLION = _N[:4]
_CLASSES = (2, 10, 100, 1_000, 10_000)
_PARTS = (10, 100, 1_000, 10_000, 100_000)  # groups, clusters, segments, periods


class Growth(NamedTuple):
    """A job over growing sizes.

    Parameters
    ----------
    sizes : tuple of int
        The sizes.
    make : callable
        Returns the run of a size, which takes no arguments; its input is made before.
    sibling : str or None
        Name of the plain job beside it, which has the same sizes.
    """

    sizes: tuple
    make: Callable
    sibling: str | None = None


def _binary(function, n, **params):
    problem = problems.binary(n)
    return partial(function, problem.labels, problem.scores, **params)


def _by_column(function, name, n_parts, **params):
    """Return the run of a function whose argument `name` says which of so many parts
    each sample belongs to, 20 samples in each of many.
    """
    problem, parts = _in_parts(n_parts)
    return partial(function, problem.labels, problem.scores, **{name: parts}, **params)


def _enough(n_parts):
    """Return how many samples are divided into so many parts."""
    return max(200_000, 20 * n_parts)


def _in_parts(n_parts):
    """Return a problem of two classes, and the part of each of its samples (n,)."""
    problem = problems.binary(_enough(n_parts))
    parts = np.random.default_rng(1).integers(0, n_parts, len(problem.labels))
    return problem, parts


def _without_parts(make, n_parts):
    """Return the run of a job of as many samples as are divided into so many parts."""
    return make(_enough(n_parts))


def _periods(n_parts):
    """Return a problem of two classes in the order of time, and the slices of its
    periods.
    """
    problem = problems.binary(_enough(n_parts))
    return problem, _slices(len(problem.labels), n_parts)


def _slices(n, n_parts):
    ends = np.linspace(0, n, n_parts + 1).astype(int)
    return [slice(*pair) for pair in zip(ends[:-1], ends[1:], strict=True)]


def _monitor(n_periods, n_batches=None):
    """Return the run of a monitor that sees a batch a period, or so many batches."""
    problem, periods = _periods(n_periods)
    if n_batches is not None:
        periods = _slices(len(problem.labels), n_batches)

    def run():
        monitor = monitoring.CalibrationMonitor()
        for rows in periods:
            monitor.partial_fit(problem.scores[rows], problem.labels[rows])
        return monitor.history_

    return run


def _group_monitors(n_periods, n_groups):
    """Return the run of monitors of groups that see a batch a period."""
    problem, periods = _periods(n_periods)
    groups = np.random.default_rng(1).integers(0, n_groups, len(problem.labels))

    def run():
        monitors = monitoring.GroupMonitors()
        for number, rows in enumerate(periods):
            monitors.partial_fit(
                problem.scores[rows], problem.labels[rows], groups[rows], time=number
            )
        return monitors.table_

    return run


def _of_periods(function, n_periods, **params):
    """Return the run of a function of labels, scores and times, of so many periods."""
    problem, period = _in_parts(n_periods)
    return partial(function, problem.labels, problem.scores, period, **params)


def _classes(function, n_classes, **params):
    """Return the run of a function of labels and the scores of K classes."""
    problem = problems.many_classes(2_000, n_classes)
    return partial(
        function,
        problem.labels,
        problem.scores,
        labels=np.arange(n_classes),
        **params,
    )


_marginal = partial(_classes, multiclass="marginal")


def _fit(name, n):
    problem = problems.binary(n)
    return partial(getattr(skcalib, name)().fit, problem.scores, problem.labels)


def _fit_classes(name, n_classes):
    problem = problems.many_classes(max(20_000, 2 * n_classes), n_classes)
    model = getattr(skcalib, name)(input="logit")
    return partial(model.fit, problem.logits, problem.labels)


def _by_bins(function, n_bins, strategy=EqualMass, **params):
    return _binary(function, 1_000_000, binning=strategy(n_bins), **params)


def _in_time(function, n, **params):
    problem = problems.binary(n)
    time = np.arange(n) * (1000 / n)
    return partial(function, problem.labels, problem.scores, time, **params)


def _segments(n_segments):
    problem = problems.binary(200_000)
    column = np.random.default_rng(1).integers(0, n_segments, (200_000, 1))
    return partial(
        metrics.segment_calibration_test,
        problem.labels,
        problem.scores,
        column.astype(str),
        max_bins=n_segments,
        min_size=10,
        random_state=0,
    )


def _columns(n_columns):
    """Return the run of a search for segments among columns and pairs of them."""
    problem = problems.binary(10_000)
    columns = np.random.default_rng(1).standard_normal((10_000, n_columns))
    return partial(
        metrics.segment_calibration_test,
        problem.labels,
        problem.scores,
        columns,
        random_state=0,
    )


def _change(n, **params):
    problem = problems.binary(n)
    half = n // 2
    return partial(
        monitoring.calibration_change,
        problem.labels[:half],
        problem.scores[:half],
        problem.labels[half:],
        problem.scores[half:],
        random_state=0,
        **params,
    )


def _change_in_periods(n_periods):
    """Return the run of a change between samples whose clusters are periods."""
    problem, period = _in_parts(n_periods)
    half = len(period) // 2
    return _change(len(problem.labels), clusters=(period[:half], period[half:]))


def _performance(n, **params):
    problem = problems.binary(n)
    new = np.random.default_rng(2).beta(2, 3, n)
    return partial(
        monitoring.estimated_performance,
        problem.labels,
        problem.scores,
        new,
        **params,
    )


def _performance_in_periods(n_periods):
    """Return the run of an estimate from samples whose clusters are periods."""
    problem, period = _in_parts(n_periods)
    return _performance(len(problem.labels), clusters=period)


def _candidates(n_models):
    problem = problems.binary(1_000)
    rng = np.random.default_rng(1)
    models = {
        str(k): np.clip(problem.scores + rng.normal(0, 0.05, 1_000), 0, 1)
        for k in range(n_models)
    }
    return partial(evaluation.compare, problem.labels, models)


def _errors_of_candidates(n_models):
    """Return the run of the errors of so many models, one after the other."""
    problem = problems.binary(1_000)

    def run():
        for _ in range(n_models):
            metrics.calibration_error(problem.labels, problem.scores)

    return run


def _thresholds(function, n_thresholds, **params):
    """Return the run of a function with so many thresholds among 200,000 samples."""
    return _binary(
        function, 200_000, thresholds=np.linspace(0.01, 0.99, n_thresholds), **params
    )


def _routing(n_thresholds):
    """Return the run of a routing with so many thresholds among 200,000 samples."""
    problem = problems.binary(200_000)
    return partial(
        decisions.certified_routing,
        problem.labels,
        problem.labels,
        problem.scores,
        max_loss=0.1,
        thresholds=np.linspace(0.01, 0.99, n_thresholds),
    )


def _of_scores(function, n, **params):
    return partial(function, problems.binary(n).scores, **params)


def _of_columns(function, n, *columns, **params):
    """Return the run of a function of labels, scores and weights: `columns` says which,
    in the order of its arguments.
    """
    problem = problems.binary(n)
    weight = np.random.default_rng(1).exponential(size=n) + 0.1
    by_name = {"y": problem.labels, "p": problem.scores, "w": weight}
    return partial(function, *(by_name[name] for name in columns), **params)


def _fit_bins(model, n_bins):
    problem = problems.binary(1_000_000)
    return partial(model(n_bins).fit, problem.scores, problem.labels)


def _fit_clusters(name, n_clusters):
    problem, clusters = _in_parts(n_clusters)
    model = getattr(skcalib, name)()
    return partial(model.fit, problem.scores, problem.labels, clusters=clusters)


def _mean_in_clusters(n_clusters):
    problem, clusters = _in_parts(n_clusters)
    return partial(
        evaluation.mean_interval, problem.scores, largest=1.0, clusters=clusters
    )


def _fit_groups(n_groups):
    problem, groups = _in_parts(n_groups)
    model = skcalib.GroupwiseRecalibrator(min_group_size=10)
    return partial(model.fit, problem.scores, problem.labels, groups=groups)


def _fit_features(n):
    problem = problems.binary(n)
    feature = np.random.default_rng(1).standard_normal(n)
    model = skcalib.MulticalibratedRecalibrator(features=1, max_rounds=3)
    return partial(
        model.fit, np.column_stack([problem.scores, feature]), problem.labels
    )


def _fit_model(name, n):
    problem = problems.binary(n)
    model = getattr(skcalib, name)(LogisticRegression())
    return partial(model.fit, problem.scores[:, None], problem.labels)


_ECE = "expected_calibration_error, n"
_INTERVAL = {"n_resamples": 1000, "random_state": 0}
_MANY_VALUES = (
    "calibration_error",
    "maximum_calibration_error",
    "sweep_calibration_error",
    "smooth_calibration_error",
    "kde_calibration_error",
    "kolmogorov_smirnov_calibration_error",
    "kuiper_calibration_error",
    "neighborhood_calibration_error",
    "two_bin_calibration_error",
    "kernel_calibration_error",
    "decision_calibration_error",
    "groupwise_calibration_error",
    "reliability_curve",
    "validity_curve",
    "brier_decomposition",
    "log_loss_decomposition",
    "calibration_slope_intercept",
)
_TWO_CLASS_FITS = (
    "BetaCalibration",
    "HistogramBinning",
    "IsotonicCalibration",
    "OnlineRecalibrator",
    "PriorShift",
    "QuadraticScaling",
    "ScalingBinning",
    "SplineCalibration",
    "StackedRecalibrator",
    "TemperatureScaling",
    "UniformMassBinning",
    "VennAbers",
    "Recalibrator",
)
_CLASS_FITS = (
    "ClasswiseTemperatureScaling",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "MatrixScaling",
    "PlattScaling",
    "VectorScaling",
)
_ONE_VS_REST_FITS = (
    "BetaCalibration",
    "HistogramBinning",
    "IsotonicCalibration",
    "OnlineRecalibrator",
    "PriorShift",
    "QuadraticScaling",
    "Recalibrator",
    "ScalingBinning",
    "SplineCalibration",
    "StackedRecalibrator",
    "UniformMassBinning",
    "VennAbers",
)
# Functions of labels and scores that take the clusters of the samples.
_WITH_CLUSTERS = {
    metrics.calibration_error_interval: _INTERVAL,
    metrics.calibration_test: {"random_state": 0},
    metrics.calibration_slope_intercept: {},
    metrics.reliability_curve: {},
    evaluation.calibration_summary: {"random_state": 0},
    evaluation.recalibration_gain: {},
    evaluation.cross_validate: {},
    evaluation.advise: {"random_state": 0},
    decisions.net_benefit: {"random_state": 0},
    decisions.certified_abstention: {"max_error": 0.3},
    decisions.certified_threshold: {"promise": "precision", "target": 0.6},
}
_MARGINAL_ERRORS = (
    "maximum_calibration_error",
    "sweep_calibration_error",
    "smooth_calibration_error",
    "kde_calibration_error",
    "kolmogorov_smirnov_calibration_error",
    "kuiper_calibration_error",
    "neighborhood_calibration_error",
    "two_bin_calibration_error",
    "decision_calibration_error",
    "reliability_curve",
    "brier_decomposition",
    "log_loss_decomposition",
    "calibration_test",
)
# Functions of the probabilities of K classes that look at all or at the predicted one.
_OF_CLASSES = {
    metrics.calibration_slope_intercept: {"multiclass": "top_label"},
    metrics.validity_curve: {},
    evaluation.cross_validate: {},
    evaluation.recalibration_gain: {},
    evaluation.refinement_loss: {},
}
_BINNED = {
    metrics.reliability_curve: {},
    metrics.brier_decomposition: {},
    metrics.decision_calibration_error: {},
    metrics.validity_curve: {},
    metrics.calibration_test: {"method": "hosmer_lemeshow"},
}
_plugin_error_by_bins = partial(_by_bins, metrics.calibration_error, method="plugin")
_STRATEGIES = (
    binning.InformationPreserving,
    binning.MinimumMass,
    binning.MonotonicSweep,
    binning.PoolAdjacentViolators,
    binning.UniqueScores,
)
_PLAIN_ERROR = "expected_calibration_error, parts"
_PERIODS = "CalibrationMonitor of one period"

GROWTH = {
    _ECE: Growth(_N, partial(_binary, metrics.expected_calibration_error)),
    **{
        f"{name}, n": Growth(_N, partial(_binary, getattr(metrics, name)), _ECE)
        for name in _MANY_VALUES
    },
    "calibration_test, n": Growth(_N, partial(_binary, metrics.calibration_test), _ECE),
    "calibration_error_interval, n": Growth(
        _N, partial(_binary, metrics.calibration_error_interval, **_INTERVAL), _ECE
    ),
    "calibration_summary, n": Growth(
        _UP_TO_A_MILLION, partial(_binary, evaluation.calibration_summary), _ECE
    ),
    "update_test, n": Growth(
        _UP_TO_A_MILLION, partial(_binary, evaluation.update_test), _ECE
    ),
    "calibration_trend, n": Growth(
        _N, partial(_in_time, monitoring.calibration_trend), _ECE
    ),
    "error_autocorrelation, n": Growth(
        _UP_TO_A_MILLION, partial(_in_time, monitoring.error_autocorrelation), _ECE
    ),
    "calibration_change, n": Growth(_N, _change, _ECE),
    "estimated_performance, n": Growth(_N, _performance, _ECE),
    **{
        f"{function.__name__}, n": Growth(
            _UP_TO_A_MILLION, partial(_binary, function, **params), _ECE
        )
        for function, params in (
            (evaluation.advise, {"random_state": 0}),
            (evaluation.cross_validate, {}),
            (evaluation.recalibration_gain, {}),
            (evaluation.refinement_loss, {}),
            (decisions.net_benefit, {"random_state": 0}),
            (decisions.certified_abstention, {"max_error": 0.3}),
            (
                decisions.certified_threshold,
                {"promise": "precision", "target": 0.6},
            ),
        )
    },
    **{
        f"{function.__name__}, n": Growth(
            _UP_TO_A_MILLION,
            lambda n, function=function, columns=columns, params=params: _of_columns(
                function, n, *columns, **params
            ),
            _ECE,
        )
        for function, columns, params in (
            (evaluation.describe_weights, "yw", {}),
            (decisions.certified_routing, "yyp", {"max_loss": 0.1}),
            (decisions.mean_cost, "yy", {"cost_matrix": [[0, 1], [2, 0]]}),
            (skcalib.censored_labels, "wy", {"horizon": 1.0}),
            (skcalib.expand_soft_labels, "pp", {}),
        )
    },
    **{
        f"{function.__name__}, n": Growth(
            _UP_TO_A_MILLION, partial(_of_scores, function, **params), _ECE
        )
        for function, params in (
            (evaluation.adjust_pvalues, {}),
            (evaluation.mean_interval, {"largest": 1.0}),
            (evaluation.validation_sample_size, {}),
            (skcalib.estimate_target_prior, {"train_prior": 0.4}),
            (assign_bins, {"edges": np.linspace(0, 1, 16)}),
        )
    },
    "PlattScaling, n": Growth(_UP_TO_A_MILLION, partial(_fit, "PlattScaling")),
    "MulticalibratedRecalibrator, n": Growth(
        _UP_TO_A_MILLION, _fit_features, "PlattScaling, n"
    ),
    **{
        f"{name}, n": Growth(
            _UP_TO_A_MILLION, partial(_fit_model, name), "PlattScaling, n"
        )
        for name in ("CrossFittedClassifier", "RecalibratedClassifierCV")
    },
    **{
        f"{name}, n": Growth(_UP_TO_A_MILLION, partial(_fit, name), "PlattScaling, n")
        for name in _TWO_CLASS_FITS
    },
    "groupwise_calibration_error, groups": Growth(
        _PARTS, partial(_by_column, metrics.groupwise_calibration_error, "groups")
    ),
    "calibration_by_group, groups": Growth(
        _PARTS,
        partial(_by_column, metrics.calibration_by_group, "groups", random_state=0),
        "groupwise_calibration_error, groups",
    ),
    **{
        f"{function.__name__} without clusters": Growth(
            _PARTS, partial(_without_parts, partial(_binary, function, **params))
        )
        for function, params in _WITH_CLUSTERS.items()
    },
    **{
        f"{function.__name__}, clusters": Growth(
            _PARTS,
            partial(_by_column, function, "clusters", **params),
            f"{function.__name__} without clusters",
        )
        for function, params in _WITH_CLUSTERS.items()
    },
    "PlattScaling without clusters": Growth(
        _PARTS, partial(_without_parts, partial(_fit, "PlattScaling"))
    ),
    **{
        f"{name}, clusters": Growth(
            _PARTS, partial(_fit_clusters, name), "PlattScaling without clusters"
        )
        for name in ("PlattScaling", *_TWO_CLASS_FITS)
        if name != "OnlineRecalibrator"  # which takes none
    },
    "calibration_by_cluster, clusters": Growth(
        _PARTS,
        partial(_by_column, evaluation.calibration_by_cluster, "clusters"),
        "groupwise_calibration_error, groups",
    ),
    "marginal error, K": Growth(
        _CLASSES, partial(_marginal, metrics.calibration_error)
    ),
    "interval of the marginal error, K": Growth(
        _CLASSES,
        partial(_marginal, metrics.calibration_error_interval, **_INTERVAL),
        "marginal error, K",
    ),
    **{
        f"{function.__name__}, K": Growth(
            _CLASSES, partial(_classes, function), "marginal error, K"
        )
        for function in (
            metrics.ranked_probability_decomposition,
            metrics.ranked_probability_score,
        )
    },
    **{
        f"{name}, K": Growth(
            _CLASSES, partial(_marginal, getattr(metrics, name)), "marginal error, K"
        )
        for name in _MARGINAL_ERRORS
    },
    **{
        f"{function.__name__}, K": Growth(
            _CLASSES, partial(_classes, function, **params), "marginal error, K"
        )
        for function, params in _OF_CLASSES.items()
    },
    "kernel error, K": Growth(
        _CLASSES,
        lambda n_classes: partial(
            metrics.kernel_calibration_error,
            problems.many_classes(2_000, n_classes).labels,
            problems.many_classes(2_000, n_classes).scores,
            labels=np.arange(n_classes),
        ),
        "marginal error, K",
    ),
    "TemperatureScaling, K": Growth(
        _CLASSES[1:4], partial(_fit_classes, "TemperatureScaling")
    ),
    **{
        f"{name}, K": Growth(
            _CLASSES[1:4], partial(_fit_classes, name), "TemperatureScaling, K"
        )
        for name in (*_CLASS_FITS, *_ONE_VS_REST_FITS)
    },
    "GroupwiseRecalibrator, groups": Growth(
        _PARTS, _fit_groups, "groupwise_calibration_error, groups"
    ),
    "equal-width error, bins": Growth(
        (10, *_PARTS[1:]), partial(_plugin_error_by_bins, strategy=EqualWidth)
    ),
    "equal-mass error, bins": Growth(
        _PARTS,
        _plugin_error_by_bins,
        "equal-width error, bins",
    ),
    "interval of an equal-mass error, bins": Growth(
        _PARTS,
        partial(
            _by_bins, metrics.calibration_error_interval, method="plugin", **_INTERVAL
        ),
        "equal-width error, bins",
    ),
    **{
        f"{function.__name__}, bins": Growth(
            _PARTS,
            partial(_by_bins, function, **params),
            "equal-width error, bins",
        )
        for function, params in _BINNED.items()
    },
    **{
        f"{model.__name__}, bins": Growth(
            _PARTS, partial(_fit_bins, make), "equal-width error, bins"
        )
        for model, make in (
            (
                skcalib.HistogramBinning,
                lambda n_bins: skcalib.HistogramBinning(EqualMass(n_bins)),
            ),
            (
                skcalib.ScalingBinning,
                lambda n_bins: skcalib.ScalingBinning(binning=EqualMass(n_bins)),
            ),
            (skcalib.UniformMassBinning, skcalib.UniformMassBinning),
        )
    },
    **{
        f"error with {strategy.__name__}, n": Growth(
            _UP_TO_A_MILLION,
            lambda n, strategy=strategy: _binary(
                metrics.calibration_error, n, binning=strategy(), method="plugin"
            ),
            _ECE,
        )
        for strategy in _STRATEGIES
    },
    "calibration_test, parts": Growth(
        _PARTS,
        partial(
            _without_parts, partial(_binary, metrics.calibration_test, random_state=0)
        ),
    ),
    "segment_calibration_test, segments": Growth(
        _PARTS[:4], _segments, "calibration_test, parts"
    ),
    "segment_calibration_test, columns": Growth((10, 100), _columns, _PLAIN_ERROR),
    _PLAIN_ERROR: Growth(
        _PARTS,
        partial(_without_parts, partial(_binary, metrics.expected_calibration_error)),
    ),
    _PERIODS: Growth(_PARTS, lambda n_periods: _monitor(n_periods, n_batches=1)),
    "CalibrationMonitor, periods": Growth(_PARTS, _monitor, _PERIODS),
    "GroupMonitors, periods": Growth(
        _PARTS, partial(_group_monitors, n_groups=5), _PERIODS
    ),
    "GroupMonitors, groups": Growth(
        _PARTS, lambda n_groups: _group_monitors(10, n_groups), _PERIODS
    ),
    **{
        f"{function.__name__}, periods": Growth(
            _PARTS, partial(_of_periods, function, **params), _PLAIN_ERROR
        )
        for function, params in (
            (monitoring.calibration_trend, {}),
            (monitoring.error_autocorrelation, {}),
        )
    },
    "calibration_trend, clusters": Growth(
        _PARTS,
        lambda n_clusters: _by_column(
            partial(monitoring.calibration_trend, time=_in_parts(n_clusters)[1]),
            "clusters",
            n_clusters,
        ),
        _PLAIN_ERROR,
    ),
    "mean_interval, clusters": Growth(_PARTS, _mean_in_clusters, _PLAIN_ERROR),
    "error_autocorrelation, groups": Growth(
        _PARTS,
        lambda n_groups: _by_column(
            partial(monitoring.error_autocorrelation, time=_in_parts(n_groups)[1]),
            "groups",
            n_groups,
        ),
        _PLAIN_ERROR,
    ),
    **{
        f"{name} without clusters": Growth(_PARTS, partial(_without_parts, make))
        for name, make in (
            ("calibration_change", _change),
            ("estimated_performance", _performance),
        )
    },
    "calibration_change, periods": Growth(
        _PARTS, _change_in_periods, "calibration_change without clusters"
    ),
    "estimated_performance, periods": Growth(
        _PARTS, _performance_in_periods, "estimated_performance without clusters"
    ),
    "errors of candidates": Growth(_PARTS[:3], _errors_of_candidates),
    "compare, candidates": Growth(_PARTS[:3], _candidates, "errors of candidates"),
    **{
        f"{function.__name__}, candidates": Growth(
            _PARTS, partial(_thresholds, function, **params), _PLAIN_ERROR
        )
        for function, params in (
            (decisions.net_benefit, {"random_state": 0}),
            (decisions.certified_abstention, {"max_error": 0.3}),
            (decisions.certified_threshold, {"promise": "precision", "target": 0.6}),
        )
    },
    "certified_routing, candidates": Growth(_PARTS, _routing, _PLAIN_ERROR),
}

# Why jobs take more than ten times as long as their siblings: what they do, which the
# sibling does not.
_FITS_ON_FOLDS = "several recalibrators are fitted on folds and compared"
_ISOTONIC = "an isotonic regression of all sorted scores"
_DRAWS = "999 sets of labels are drawn"
_LIMITS = "labels are drawn for each hypothesis that a limit is sought among"
_CLUSTER_CODES = "clusters are sorted and numbered"
_CODES = "times or groups are sorted and numbered"
_NEWTON = "Newton steps, each of which passes over all samples"
_ONE_EACH = "each class has a fit of its own, and not one for all"

REASONS = {
    "neighborhood_calibration_error, n": (
        "the window of each score is sought among all scores, by four binary searches"
    ),
    "kernel_calibration_error, n": "every pair of samples is compared",
    "calibration_test, n": _DRAWS,
    "calibration_summary, n": (
        "a dozen numbers with intervals, and a smooth curve, which takes most of the"
        " time"
    ),
    "update_test, n": _NEWTON,
    "calibration_trend, n": (
        "a line is fitted, and the influence of each sample on it is computed"
    ),
    "error_autocorrelation, n": "times are sorted, and five products are added up",
    "calibration_change, n": (
        "the limits of two errors are drawn, at a cost that hardly grows with n"
    ),
    "estimated_performance, n": (
        "four metrics with limits, and both samples sorted to compare their scores"
    ),
    "advise, n": _FITS_ON_FOLDS,
    "cross_validate, n": _FITS_ON_FOLDS,
    "recalibration_gain, n": _FITS_ON_FOLDS,
    "refinement_loss, n": _FITS_ON_FOLDS,
    "net_benefit, n": "two limits at each of 99 thresholds",
    "certified_routing, n": "an exact test at each threshold that is looked at",
    "censored_labels, n": "each time is sought among the sorted ones",
    "adjust_pvalues, n": "p-values are sorted",
    "validation_sample_size, n": "scores are sorted",
    "estimate_target_prior, n": "a mixture is fitted by steps over all samples",
    "MulticalibratedRecalibrator, n": (
        "three rounds on five folds, each of which looks at all groups"
    ),
    "RecalibratedClassifierCV, n": (
        "the model and several recalibrators are fitted on five folds"
    ),
    "OnlineRecalibrator, n": "each sample is a step that depends on those before",
    "decision_calibration_error, n": _ISOTONIC,
    "log_loss_decomposition, n": f"{_ISOTONIC}, and their logarithms",
    "validity_curve, n": "each distinct score has a bin of its own",
    "error with UniqueScores, n": "each distinct score has a bin of its own",
    "error with InformationPreserving, n": (
        "the edges that lose the least are sought for each number of bins, by dynamic"
        " programming"
    ),
    "calibration_slope_intercept, n": f"two logistic regressions: {_NEWTON}",
    "interval of an equal-mass error, bins": (
        f"for each bin {_LIMITS}: some 90 times 1,000 draws of each"
    ),
    "calibration_by_group, groups": (
        "the bias and the error of each group have limits, for which labels are drawn"
    ),
    "calibration_error_interval, clusters": f"dependent {_LIMITS}",
    "calibration_by_cluster, clusters": (
        "the likelihood of a random intercept is tabulated at some 200 shifts of all"
        " samples, and each cluster has its own regression"
    ),
    "reliability_curve, clusters": f"{_CLUSTER_CODES}, and bins have sums of each",
    "certified_abstention, clusters": "each threshold is a bet on all clusters",
    "certified_threshold, clusters": "each threshold is a bet on all clusters",
    "mean_interval, clusters": _CLUSTER_CODES,
    "calibration_trend, clusters": f"{_CLUSTER_CODES}, and a line has influences",
    "calibration_trend, periods": "a line has the influence of each sample",
    "error_autocorrelation, periods": _CODES,
    "error_autocorrelation, groups": _CODES,
    "calibration_change, periods": f"{_DRAWS}, with dependence within clusters",
    "SplineCalibration, clusters": "its smoothness is chosen on folds of clusters",
    "StackedRecalibrator, clusters": "several recalibrators are fitted on folds",
    "Recalibrator, clusters": "several recalibrators are fitted on folds",
    "GroupMonitors, periods": "each group has a step of its own in each period",
    "GroupMonitors, groups": "each group has a monitor of its own",
    "GroupwiseRecalibrator, groups": "each group has a recalibrator of its own",
    "segment_calibration_test, segments": _DRAWS,
    "segment_calibration_test, columns": f"{_DRAWS}, for each pair of columns",
    "compare, candidates": (
        "each error has an interval, each pair a test, and where few labels decide a"
        " loss, the labels are drawn up to 9,999 times"
    ),
    "net_benefit, candidates": "each threshold has two limits, found by bisection",
    "certified_abstention, candidates": "each threshold has an exact test",
    "certified_threshold, candidates": "each threshold has an exact test",
    "smooth_calibration_error, K": (
        "each class has a bandwidth of its own, and the smaller its error, the finer"
        " the grid"
    ),
    "calibration_test, K": f"{_DRAWS}, with a rank for each score and draw",
    "cross_validate, K": _FITS_ON_FOLDS,
    "recalibration_gain, K": _FITS_ON_FOLDS,
    "refinement_loss, K": _FITS_ON_FOLDS,
    "kernel error, K": "every pair of samples is compared",
    "BetaCalibration, K": _ONE_EACH,
    "PlattScaling, K": _ONE_EACH,
    "QuadraticScaling, K": _ONE_EACH,
    "SplineCalibration, K": _ONE_EACH,
    "StackedRecalibrator, K": "several recalibrators are fitted on folds",
    "Recalibrator, K": "several recalibrators are fitted on folds",
    "VennAbers, K": _ONE_EACH,
    "ScalingBinning, K": _ONE_EACH,
    "DirichletCalibration, K": "K x K coefficients are fitted, and not one",
    "MatrixScaling, K": "K x K coefficients are fitted, and not one",
}
