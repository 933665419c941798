"""Uncertainty of estimates: one variance, one rule for clusters, one treatment of rare
outcomes.
"""

from skcalib._intervals.binomial import binomial_interval

__all__ = ["binomial_interval"]
