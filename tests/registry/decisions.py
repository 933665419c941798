"""Entries of decisions. They are provisional: their results are not frozen."""

from registry._entry import Entry

_PAGE = "doc/which_threshold.md"

ENTRIES = {
    "skcalib.decisions.CertifiedThreshold": Entry(
        job="skcalib.decisions.certified_threshold", no_paper="a result"
    ),
    "skcalib.decisions.CertifiedThresholdClassifier": Entry(
        job=_PAGE, no_paper="certified_threshold"
    ),
    "skcalib.decisions.ExpectedCostClassifier": Entry(job=_PAGE),
    "skcalib.decisions.certified_abstention": Entry(job="doc/reporting.md"),
    "skcalib.decisions.certified_routing": Entry(job=_PAGE),
    "skcalib.decisions.certified_threshold": Entry(job=_PAGE),
    "skcalib.decisions.mean_cost": Entry(job=_PAGE),
    "skcalib.decisions.net_benefit": Entry(job=_PAGE),
}
