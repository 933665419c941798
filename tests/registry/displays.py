"""Entries of the displays: ``doc/examples/look_book.py`` draws their pictures."""

from registry._entry import DisplayEntry

_PAGE = "doc/displays.md"
_THRESHOLDS = "doc/which_threshold.md"

ENTRIES = {
    "skcalib.displays.BinCountDisplay": DisplayEntry(
        job=_PAGE,
        pictures=("bin_count",),
        no_finding="no title",
    ),
    "skcalib.displays.ChangeDisplay": DisplayEntry(job=_PAGE, pictures=("change",)),
    "skcalib.displays.ComparisonDisplay": DisplayEntry(
        job=_PAGE,
        pictures=("comparison",),
        no_paper="compare",
        no_finding="its intervals are those of ModelComparison",
    ),
    "skcalib.displays.CumulativeDifferenceDisplay": DisplayEntry(
        job=_PAGE, pictures=("cumulative", "cumulative_models")
    ),
    "skcalib.displays.DecisionCurveDisplay": DisplayEntry(
        job=_THRESHOLDS,
        pictures=("decision", "decision_models", "decision_standardised"),
        no_finding="a number of samples; curves are those of NetBenefit",
    ),
    "skcalib.displays.EstimatorBiasDisplay": DisplayEntry(
        job=_PAGE,
        pictures=("estimator_bias", "estimator_bias_lines"),
        no_finding="the truth of a simulation",
    ),
    "skcalib.displays.GroupDisplay": DisplayEntry(
        job=_PAGE, pictures=("groups", "groups_many")
    ),
    "skcalib.displays.MonitorDisplay": DisplayEntry(
        job=_PAGE, pictures=("monitor", "monitors"), no_paper="CalibrationMonitor"
    ),
    "skcalib.displays.MulticalibrationDisplay": DisplayEntry(
        job=_PAGE,
        pictures=("multicalibration",),
        no_finding="a fit's own history",
        no_paper="MulticalibratedRecalibrator",
    ),
    "skcalib.displays.MurphyDisplay": DisplayEntry(
        job=_PAGE,
        pictures=("murphy", "murphy_models"),
        no_finding="the Brier score of the samples",
    ),
    "skcalib.displays.ReliabilityDisplay": DisplayEntry(
        job=_PAGE,
        pictures=(
            "reliability",
            "reliability_split",
            "reliability_log",
            "reliability_corp",
            "reliability_no_name",
            "reliability_overlay",
            "reliability_columns",
            "reliability_groups",
            "reliability_classes",
            "reliability_rare",
        ),
    ),
    "skcalib.displays.RiskCoverageDisplay": DisplayEntry(
        job=_THRESHOLDS,
        pictures=("risk_coverage", "risk_coverage_models"),
        no_finding="the threshold of CertifiedThreshold",
    ),
    "skcalib.displays.SegmentDisplay": DisplayEntry(
        job=_PAGE,
        pictures=("segments", "segments_models"),
        no_finding="the p-values of SegmentTestResult",
        no_paper="segment_calibration_test",
    ),
    "skcalib.displays.ValidityDisplay": DisplayEntry(
        job=_PAGE,
        pictures=("validity",),
        no_finding="no title",
    ),
}
