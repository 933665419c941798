"""Which promises of the page of levels are about the weights and the clusters of a
function: every public one that takes `weight_type` or `clusters` stands here.
"""

__all__ = ["CLUSTERS", "WEIGHTS"]

_A_MAP = "it fits a map, whose gain `recalibration_gain` measures"
_A_GAIN = "its gains are those of `recalibration_gain`"

# Names of promises whose rows have weights that depend on the label, or the reason why
# there are none.
WEIGHTS = {
    "BinStatistics.interval": ("sampled labels: bars of a diagram",),
    "RecalibratedClassifierCV.fit": _A_MAP,
    "Recalibrator.fit": _A_MAP,
    "ScalingBinning.verify": ("sampled labels: verify, 10 bins",),
    "StackedRecalibrator.fit": _A_MAP,
    "advise": _A_GAIN,
    "calibration_by_group": ("sampled labels: bias",),
    "calibration_change": ("sampled labels: change", "sampled labels: shift"),
    "calibration_error_interval": ("sampled labels: l2, 15 bins",),
    "calibration_slope_intercept": ("sampled labels: calibration slope",),
    "calibration_summary": (
        "sampled labels: O/E ratio",
        "sampled labels: Brier score",
    ),
    "calibration_test": (
        "sampled labels: Spiegelhalter",
        "sampled labels: Kuiper",
        "sampled labels: Kolmogorov-Smirnov",
        "sampled labels: resampled sweep",
    ),
    "calibration_trend": ("sampled labels: no trend", "sampled labels: trend"),
    "compare": ("sampled labels: compare, brier_score",),
    "cross_validate": _A_GAIN,
    "describe_weights": "it says what weights mean, and has no uncertainty",
    "estimated_performance": ("sampled labels: estimated event frequency",),
    "mean_interval": ("mean of squared residuals",),
    "net_benefit": ("sampled labels: net benefit",),
    "recalibration_gain": ("sampled labels: gain of Platt scaling",),
    "reliability_curve": ("sampled labels: bars of a diagram",),
    "segment_calibration_test": ("sampled labels: segments",),
}
_SIMULATED = "limits of one probability in clusters: `tests/test_predict_interval.py`"
_NO_LIMITS = "clusters are for the limits of one probability, which it refuses"
# The same for rows that lie in clusters.
CLUSTERS = {
    "BetaCalibration.fit": _SIMULATED,
    "ClasswiseTemperatureScaling.fit": _NO_LIMITS,
    "DirichletCalibration.fit": _SIMULATED,
    "EnsembleTemperatureScaling.fit": _NO_LIMITS,
    "HistogramBinning.fit": _SIMULATED,
    "IsotonicCalibration.fit": _SIMULATED,
    "MatrixScaling.fit": _SIMULATED,
    "PlattScaling.fit": _SIMULATED,
    "PriorShift.fit": _NO_LIMITS,
    "QuadraticScaling.fit": _SIMULATED,
    "SplineCalibration.fit": _SIMULATED,
    "TemperatureScaling.fit": _SIMULATED,
    "UniformMassBinning.fit": _SIMULATED,
    "VectorScaling.fit": _SIMULATED,
    "VennAbers.fit": _SIMULATED,
    "RecalibratedClassifierCV.fit": _A_MAP,
    "Recalibrator.fit": _A_MAP,
    "ReliabilityDisplay.from_cv_results": ("bars by cluster",),
    "ReliabilityDisplay.from_predictions": ("bars by cluster",),
    "ScalingBinning.fit": _NO_LIMITS,
    "ScalingBinning.verify": ("verify, 10 bins",),
    "StackedRecalibrator.fit": _A_MAP,
    "advise": _A_GAIN,
    "calibration_by_cluster": (
        "O/E of the median hospital",
        "intercept of the median hospital",
        "mean slope over hospitals",
    ),
    "calibration_by_group": ("bias by group", "worst of 5 groups"),
    "calibration_change": ("change", "shift between two samples"),
    "calibration_error_interval": ("l2, 15 bins",),
    "calibration_slope_intercept": ("calibration slope, clusters",),
    "calibration_summary": (
        "summary: observed expected",
        "summary: intercept",
        "summary: auc",
    ),
    "calibration_test": ("resampled sweep", "resampled l2", "resampled Kuiper"),
    "calibration_trend": ("no trend, clusters",),
    "certified_abstention": ("error when answered, in clusters",),
    "certified_routing": ("routing, in clusters",),
    "certified_threshold": ("precision, in clusters",),
    "compare": ("compare in clusters: brier_score", "compare in clusters: log_loss"),
    "cross_validate": _A_GAIN,
    "estimated_performance": ("event frequency, estimated from clusters",),
    "mean_interval": ("mean of squared residuals",),
    "net_benefit": ("net benefit in clusters, at .3",),
    "recalibration_gain": ("gain of Platt scaling, clusters",),
    "reliability_curve": ("bars by cluster",),
    "segment_calibration_test": ("worst segment",),
}
