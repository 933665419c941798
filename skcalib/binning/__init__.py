"""Binning strategies and the rule that assigns scores to bins."""

from skcalib.binning._base import BaseBinning, assign_bins
from skcalib.binning._equal_mass import EqualMass, check_binning
from skcalib.binning._equal_width import EqualWidth
from skcalib.binning._fixed_edges import FixedEdges
from skcalib.binning._information_preserving import InformationPreserving
from skcalib.binning._minimum_mass import MinimumMass
from skcalib.binning._monotonic_sweep import MonotonicSweep
from skcalib.binning._pool_adjacent_violators import PoolAdjacentViolators
from skcalib.binning._unique_scores import UniqueScores

__all__ = [
    "BaseBinning",
    "EqualMass",
    "EqualWidth",
    "FixedEdges",
    "InformationPreserving",
    "MinimumMass",
    "MonotonicSweep",
    "PoolAdjacentViolators",
    "UniqueScores",
    "assign_bins",
    "check_binning",
]


def __dir__():
    """Return the public names, for completion in an editor or a notebook."""
    return sorted(__all__)
