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
from skcalib import decisions, evaluation, metrics, monitoring
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


def _by_column(function, name, n_parts, *, n=200_000, **params):
    """Return the run of a function whose argument `name` says which of so many parts
    each sample belongs to, 20 samples in each of many.
    """
    n = max(n, 20 * n_parts)
    parts = np.random.default_rng(1).integers(0, n_parts, n)
    return _binary(function, n, **{name: parts}, **params)


def _marginal(function, n_classes, **params):
    problem = problems.many_classes(2_000, n_classes)
    return partial(
        function,
        problem.labels,
        problem.scores,
        multiclass="marginal",
        labels=np.arange(n_classes),
        **params,
    )


def _fit(name, n):
    problem = problems.binary(n)
    return partial(getattr(skcalib, name)().fit, problem.scores, problem.labels)


def _fit_classes(name, n_classes):
    problem = problems.many_classes(max(20_000, 2 * n_classes), n_classes)
    model = getattr(skcalib, name)(input="logit")
    return partial(model.fit, problem.logits, problem.labels)


def _by_bins(function, strategy, n_bins):
    return _binary(function, 1_000_000, binning=strategy(n_bins), method="plugin")


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
        random_state=0,
    )


def _change(n):
    problem = problems.binary(n)
    half = n // 2
    return partial(
        monitoring.calibration_change,
        problem.labels[:half],
        problem.scores[:half],
        problem.labels[half:],
        problem.scores[half:],
        random_state=0,
    )


def _performance(n):
    problem = problems.binary(n)
    new = np.random.default_rng(2).beta(2, 3, n)
    return partial(
        monitoring.estimated_performance, problem.labels, problem.scores, new
    )


def _candidates(n_models):
    problem = problems.binary(1_000)
    rng = np.random.default_rng(1)
    models = {
        str(k): np.clip(problem.scores + rng.normal(0, 0.05, 1_000), 0, 1)
        for k in range(n_models)
    }
    return partial(evaluation.compare, problem.labels, models)


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


def _ordered(function, n_classes):
    problem = problems.many_classes(2_000, n_classes)
    return partial(
        function, problem.labels, problem.scores, labels=np.arange(n_classes)
    )


def _fit_groups(n_groups):
    problem = problems.binary(max(200_000, 20 * n_groups))
    groups = np.random.default_rng(1).integers(0, n_groups, len(problem.labels))
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
    "calibration_error_interval without clusters": Growth(
        _PARTS,
        lambda n_clusters: _binary(
            metrics.calibration_error_interval,
            max(200_000, 20 * n_clusters),
            **_INTERVAL,
        ),
    ),
    "calibration_error_interval, clusters": Growth(
        _PARTS,
        partial(
            _by_column, metrics.calibration_error_interval, "clusters", **_INTERVAL
        ),
        "calibration_error_interval without clusters",
    ),
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
            _CLASSES, partial(_ordered, function), "marginal error, K"
        )
        for function in (
            metrics.ranked_probability_decomposition,
            metrics.ranked_probability_score,
        )
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
        for name in _CLASS_FITS
    },
    "GroupwiseRecalibrator, groups": Growth(
        _PARTS, _fit_groups, "groupwise_calibration_error, groups"
    ),
    "equal-width error, bins": Growth(
        (10, *_PARTS[1:]), partial(_by_bins, metrics.calibration_error, EqualWidth)
    ),
    "equal-mass error, bins": Growth(
        _PARTS,
        partial(_by_bins, metrics.calibration_error, EqualMass),
        "equal-width error, bins",
    ),
    "interval of an equal-mass error, bins": Growth(
        _PARTS,
        partial(
            _by_bins,
            partial(metrics.calibration_error_interval, **_INTERVAL),
            EqualMass,
        ),
        "equal-width error, bins",
    ),
    "segment_calibration_test, segments": Growth(
        _PARTS[:4], _segments, "groupwise_calibration_error, groups"
    ),
    "compare, candidates": Growth(_PARTS[:3], _candidates),
}

# Why jobs take more than ten times as long as their siblings: what they do, which the
# sibling does not.
REASONS = {
    "neighborhood_calibration_error, n": (
        "the window of each score is sought among all scores, by four binary searches"
    ),
    "kernel_calibration_error, n": "every pair of samples is compared",
    "calibration_summary, n": (
        "a dozen numbers with intervals, and a smooth curve, which takes most of the"
        " time"
    ),
    "calibration_change, n": (
        "the limits of two errors are drawn, at a cost that hardly grows with n"
    ),
    "advise, n": "several recalibrators are fitted and compared on folds",
    "decision_calibration_error, n": "an isotonic regression of all sorted scores",
    "log_loss_decomposition, n": (
        "an isotonic regression of all sorted scores, and their logarithms"
    ),
    "validity_curve, n": "each distinct score has a bin of its own",
    "calibration_slope_intercept, n": (
        "two logistic regressions, whose Newton steps pass over all samples"
    ),
    "calibration_error_interval, clusters": (
        "dependent labels are drawn for each hypothesis that a limit is sought among"
    ),
    "calibration_by_cluster, clusters": (
        "the likelihood of a random intercept is tabulated at some 200 shifts of all"
        " samples, and each cluster has its own regression"
    ),
    "kernel error, K": "every pair of samples is compared",
    "DirichletCalibration, K": "K x K coefficients are fitted, and not one",
    "MatrixScaling, K": "K x K coefficients are fitted, and not one",
}
