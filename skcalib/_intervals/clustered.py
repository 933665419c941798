"""How many independent rows the bins of samples in clusters are worth."""

from typing import NamedTuple

import numpy as np

from skcalib._intervals.influence import Influence, too_few_units
from skcalib._rows.blocks import weights_or_ones


class BinDesign(NamedTuple):
    """What clusters make of the samples of each bin.

    Parameters
    ----------
    effect : ndarray of shape (n_bins,)
        How many samples are worth one independent row; 1 for an empty bin.
    reasons : tuple of str
        Why a bin has no interval; empty where it has one. Its effect then is that of
        clusters whose rows are all alike.
    """

    effect: np.ndarray
    reasons: tuple[str, ...]


def bin_design(labels, bins, n_bins, cluster, weight, importance, confidence_level):
    """Return the design effects of the event frequencies of bins.

    They are those of `Influence`, so that an interval for a number of events among
    independent rows keeps its form: at most as many samples as there are, and as few as
    the sums of clusters and the quantile of Student's law say. In a bin of equal labels
    no dependence can be seen, and rows of one cluster are taken to be alike, the most
    that there can be.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        Whether the event happened.
    bins : ndarray of int, shape (n,)
        The bin of each sample.
    n_bins : int
        Number of bins.
    cluster : ndarray of int, shape (n,)
        Code of each sample's cluster.
    weight : ndarray of shape (n,) or None
        Positive weights; None means 1 for each sample.
    importance : bool
        Whether a row was seen once whatever its weight.
    confidence_level : float
        Coverage of the interval, in (0, 1).

    Returns
    -------
    design : BinDesign
        The effects, and why there is no interval.
    """
    weight = weights_or_ones(weight, len(labels))
    effect = np.ones(n_bins)
    reasons = [""] * n_bins
    # The rows of each bin that holds any.
    order = np.argsort(bins, kind="stable")
    filled_bins, starts = np.unique(bins[order], return_index=True)
    rows_of_bins = np.split(order, starts[1:])
    for number, rows in zip(filled_bins, rows_of_bins, strict=True):
        weight_of_row = weight[rows]
        codes = np.unique(cluster[rows], return_inverse=True)[1]
        reasons[number] = too_few_units(weight_of_row, importance, codes)
        events = labels[rows].astype(np.float64)
        if reasons[number] or events.min() == events.max():
            # The design effect of clusters whose rows are all alike.
            cluster_weight = np.bincount(codes, weight_of_row)
            effect[number] = cluster_weight @ cluster_weight / cluster_weight.sum()
            continue
        frequency = weight_of_row @ events / weight_of_row.sum()
        influence = Influence(events - frequency, weight_of_row, importance, codes)
        effect[number], _ = influence.design_effect(confidence_level)
    return BinDesign(effect, tuple(reasons))
