"""Entries of the binning strategies."""

from registry._entry import Entry
from skcalib.binning import (
    EqualMass,
    EqualWidth,
    FixedEdges,
    InformationPreserving,
    MinimumMass,
    MonotonicSweep,
    PoolAdjacentViolators,
    UniqueScores,
    assign_bins,
    check_binning,
)

_FIXED = FixedEdges([0, 0.3, 1])


def _edges_of(strategy):
    """Return a function that gives the edges of a strategy, with weights and without
    them.
    """

    def results(rows):
        return {
            "": strategy.bin_edges(rows.scores, rows.y),
            "weights": strategy.bin_edges(
                rows.scores, rows.y, sample_weight=rows.weight
            ),
        }

    return results


ENTRIES = {
    "skcalib.binning.BaseBinning": Entry(
        job="doc/examples/geometric_bins.py",
        not_frozen="a base",
        no_paper="a base",
    ),
    "skcalib.binning.EqualMass": Entry(
        job="doc/large_tables.md", results=_edges_of(EqualMass())
    ),
    "skcalib.binning.EqualWidth": Entry(
        job="doc/how_many_bins.md", results=_edges_of(EqualWidth())
    ),
    "skcalib.binning.FixedEdges": Entry(
        job="doc/examples/mean_calibration_error.py",
        result=lambda rows: _FIXED.bin_edges(rows.scores),
        no_paper="bins that are given",
    ),
    "skcalib.binning.InformationPreserving": Entry(
        job="doc/how_many_bins.md", results=_edges_of(InformationPreserving())
    ),
    "skcalib.binning.MinimumMass": Entry(
        job="doc/how_many_bins.md", results=_edges_of(MinimumMass())
    ),
    "skcalib.binning.MonotonicSweep": Entry(
        job="doc/how_many_bins.md", results=_edges_of(MonotonicSweep())
    ),
    "skcalib.binning.PoolAdjacentViolators": Entry(
        job="doc/displays.md", results=_edges_of(PoolAdjacentViolators())
    ),
    "skcalib.binning.UniqueScores": Entry(
        job="doc/how_many_bins.md",
        results=_edges_of(UniqueScores()),
        no_paper="bins that are given",
    ),
    "skcalib.binning.assign_bins": Entry(
        job="doc/contributing.md",
        result=lambda rows: assign_bins([0.0, 0.5, 0.51, 1.0], [0.0, 0.5, 1.0]),
        no_paper="bins that are given",
    ),
    "skcalib.binning.check_binning": Entry(
        job="doc/contributing.md",
        result=lambda rows: [
            check_binning(None),
            check_binning(7),
            check_binning(EqualWidth(3)),
        ],
        no_paper="bins that are given",
    ),
}
