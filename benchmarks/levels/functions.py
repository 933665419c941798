"""Which promises of the page of levels are about the weights and the clusters of a
function: every public one that takes `weight_type` or `clusters` stands here.
"""

__all__ = ["CLUSTERS", "WEIGHTS"]

_A_MAP = "it fits a map, whose gain `recalibration_gain` measures"
_A_GAIN = "its gains are those of `recalibration_gain`"

_DRAWN = {
    "ChangeDisplay.from_predictions": "it draws the result of `calibration_change`",
    "ComparisonDisplay.from_predictions": "it draws the result of `compare`",
    "DecisionCurveDisplay.from_estimator": "it draws the result of `net_benefit`",
    "DecisionCurveDisplay.from_predictions": "it draws the result of `net_benefit`",
    "GroupDisplay.from_estimator": "it draws the result of `calibration_by_group`",
    "GroupDisplay.from_predictions": "it draws the result of `calibration_by_group`",
    "SegmentDisplay.from_estimator": "it draws a `segment_calibration_test`",
    "SegmentDisplay.from_predictions": "it draws a `segment_calibration_test`",
}
# Names of promises about sampled labels, rare events and heavy rows each ("rare events:
# bias"), or the reason why there are none.
WEIGHTS = {
    **_DRAWN,
    "BinStatistics.interval": ("bars of a diagram",),
    "RecalibratedClassifierCV.fit": _A_MAP,
    "Recalibrator.fit": _A_MAP,
    "ScalingBinning.verify": ("verify, 10 bins",),
    "StackedRecalibrator.fit": _A_MAP,
    "advise": _A_GAIN,
    "calibration_by_group": ("bias",),
    "calibration_change": ("change", "shift"),
    "calibration_error_interval": ("l2, 15 bins",),
    "calibration_slope_intercept": ("calibration slope",),
    "calibration_summary": (
        "O/E ratio",
        "Brier score",
    ),
    "calibration_test": (
        "Spiegelhalter",
        "Kuiper",
        "Kolmogorov-Smirnov",
        "resampled sweep",
    ),
    "calibration_trend": ("no trend", "trend"),
    "compare": (
        "compare, brier_score",
        "compare, log_loss",
        "compare, squared_calibration_error",
    ),
    "cross_validate": _A_GAIN,
    "describe_weights": "it says what weights mean, and has no uncertainty",
    "estimated_performance": ("estimated event frequency",),
    "mean_interval": ("mean of squared residuals",),
    "net_benefit": ("net benefit",),
    "recalibration_gain": ("gain of Platt scaling",),
    "reliability_curve": ("bars of a diagram",),
    "segment_calibration_test": ("segments",),
}
_SIMULATED = "limits of one probability in clusters: `tests/test_predict_interval.py`"
_CERTIFIED = "its certificate is that of `certified_abstention`"
_NO_LIMITS = "clusters are for the limits of one probability, which it refuses"
# The same for rows that lie in clusters, of which some have no event ("empty clusters:
# bias"), with the names of promises about other clusters.
CLUSTERS = {
    **_DRAWN,
    "RiskCoverageDisplay.from_estimator": _CERTIFIED,
    "RiskCoverageDisplay.from_predictions": _CERTIFIED,
    "ReliabilityDisplay.from_estimator": ("bars of a diagram", "bars by cluster"),
    "BetaCalibration.fit": _SIMULATED,
    "ClasswiseTemperatureScaling.fit": _NO_LIMITS,
    "DirichletCalibration.fit": _SIMULATED,
    "EnsembleTemperatureScaling.fit": _NO_LIMITS,
    "GroupwiseRecalibrator.fit": _SIMULATED,
    "GroupwiseRecalibrator.fit_transform": _SIMULATED,
    "HistogramBinning.fit": _SIMULATED,
    "IsotonicCalibration.fit": _SIMULATED,
    "MatrixScaling.fit": _SIMULATED,
    "MulticalibratedRecalibrator.fit": "its limits are those of the global map",
    "OnlineRecalibrator.fit": _NO_LIMITS,
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
    "ReliabilityDisplay.from_cv_results": ("bars of a diagram", "bars by cluster"),
    "ReliabilityDisplay.from_predictions": ("bars of a diagram", "bars by cluster"),
    "ScalingBinning.fit": _SIMULATED,
    "ScalingBinning.verify": ("verify, 10 bins",),
    "StackedRecalibrator.fit": _A_MAP,
    "advise": _A_GAIN,
    "calibration_by_cluster": (
        "O/E of the median hospital",
        "intercept of the median hospital",
        "mean slope over hospitals",
    ),
    "calibration_by_group": ("bias", "bias by group", "worst of 5 groups"),
    "calibration_change": ("change", "shift", "shift between two samples"),
    "calibration_error_interval": ("l2, 15 bins",),
    "calibration_slope_intercept": ("calibration slope", "calibration slope, clusters"),
    "calibration_summary": ("O/E ratio", "Brier score", "summary: auc"),
    "calibration_test": ("resampled sweep", "resampled l2"),
    "calibration_trend": ("no trend", "trend", "no trend, clusters"),
    "certified_abstention": ("error when answered, in clusters",),
    "certified_routing": ("routing, in clusters",),
    "certified_threshold": ("precision, in clusters",),
    "compare": (
        "compare, brier_score",
        "compare, log_loss",
        "compare, squared_calibration_error",
    ),
    "cross_validate": _A_GAIN,
    "estimated_performance": (
        "estimated event frequency",
        "event frequency, estimated from clusters",
    ),
    "mean_interval": ("mean of squared residuals",),
    "net_benefit": ("net benefit", "net benefit in clusters, at .3"),
    "recalibration_gain": ("gain of Platt scaling", "gain of Platt scaling, clusters"),
    "reliability_curve": ("bars of a diagram", "bars by cluster"),
    "segment_calibration_test": ("segments", "worst segment"),
}
