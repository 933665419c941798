"""Limits of the frequency in a bin."""

from functools import partial

import numpy as np

from skcalib._intervals.binomial import binomial_interval
from skcalib._intervals.one_probability.samples import LimitsMaker
from skcalib._rows.blocks import weights_or_ones


def bins(bins_of, count, positives):
    """Return the `LimitsMaker` of the state of bins from `Samples`: the numbers of
    samples and events, or what weighted or dependent samples are worth.

    ``bins_of(scores)`` returns the bins (n,) of scores (n,); `count` and `positives`
    (n_bins,) are the numbers without weights.
    """
    state = partial(_state, bins_of=bins_of, count=count, positives=positives)
    return LimitsMaker(state, dict)  # nothing is left to be made


def _state(samples, bins_of, count, positives):
    """Return the state of the limits of bins, a dict, for `Samples`: the numbers of
    samples and events (n_bins,) of each bin, and how many independent samples the rarer
    label is worth. ``bins_of(scores)`` returns the bin (n,) of each score; `count` and
    `positives` (n_bins,) are numbers without weights.
    """
    if not samples.is_dependent:
        return {
            "kind": "bins",
            "count": np.asarray(count, dtype=np.float64),
            "positives": np.asarray(positives, dtype=np.float64),
            "events": samples.events(None),
        }
    bin_of_sample = bins_of(samples.scores)
    n_bins = len(count)
    weight = weights_or_ones(samples.weight, len(samples.labels))
    total = np.bincount(bin_of_sample, weight, n_bins)
    square = np.bincount(bin_of_sample, weight**2, n_bins)
    events = np.bincount(bin_of_sample, weight * samples.labels, n_bins)
    frequency = np.divide(events, total, out=np.zeros(n_bins), where=total > 0)
    fitted = frequency[bin_of_sample]
    # How many independent samples a weight of 1 is worth: by Kish's number total^2 /
    # square, divided by the design effect of clusters.
    worth_of_weight = np.divide(total, square, out=np.zeros(n_bins), where=square > 0)
    worth_of_weight = worth_of_weight / samples.design_effect(fitted)
    return {
        "kind": "bins",
        "count": total * worth_of_weight,
        "positives": events * worth_of_weight,
        "events": samples.events(fitted),
    }


def bins_limits(state, level):
    """Return a function of the bins (n,) of scores that returns the limits (n,) and
    (n,) of the event frequency in them: Wilson's.
    """
    low, high = binomial_interval(
        state["positives"], state["count"], confidence_level=level, interval="wilson"
    )
    return lambda bin_of_score, scores: (low[bin_of_score], high[bin_of_score])
