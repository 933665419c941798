"""Limits of a curve that never falls."""

from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit, log_expit, ndtri, xlogy

from skcalib._intervals.one_probability.samples import LimitsMaker

# Scores at which the limits are tabulated, and ranges that a fit keeps as they are.
_MOST_KNOTS = 512
_MOST_KEPT = 1 << 14
# Log-odds beyond 40 are certain; 48 halvings find a root between them to 3e-13.
_CERTAIN = 40.0
_HALVINGS = 48


def monotone(first, last, weight, positives):
    """Return the `LimitsMaker` of the state of a curve that never falls from
    `Samples`: the numbers of samples and events in up to 512 ranges of scores.

    Parameters
    ----------
    first, last : ndarray of shape (m,)
        The ends of ranges of scores in increasing order; ranges of one score each have
        twice that score.
    weight, positives : ndarray of shape (m,)
        Total weight of the samples, and of the events, in each.
    """
    keep = partial(_kept, first=first, last=last, weight=weight, positives=positives)
    return LimitsMaker(keep, _state)


class _Ranges(NamedTuple):
    """Ranges of scores: their ends, the total effective weight of the samples and of
    the events in each (m,), and how many independent samples the rarer label is worth.
    """

    first: np.ndarray
    last: np.ndarray
    weight: np.ndarray
    positives: np.ndarray
    events: float

    def merged(self, most):
        """Return the ranges, neighbours merged to at most `most` of nearly equal
        weight.
        """
        if len(self.first) <= most:
            return self
        # A merged range begins with the range in which the cumulative weight passes the
        # next of `most` equal steps.
        cumulative = np.cumsum(self.weight)
        steps = np.arange(most) / most * cumulative[-1]
        starts = np.unique(np.searchsorted(cumulative, steps, side="right"))
        ends = np.append(starts[1:], len(self.first))
        return self._replace(
            first=self.first[starts],
            last=self.last[ends - 1],
            weight=np.add.reduceat(self.weight, starts),
            positives=np.add.reduceat(self.positives, starts),
        )


def _kept(samples, first, last, weight, positives):
    """Return the `_Ranges` of `Samples` that a fit keeps: the given ones, or where
    there are many or samples have weights or clusters, at most 512.

    `first` and `last` (m,) are the ends of the given ranges, increasing; `weight` and
    `positives` (m,) the total weights of the samples and of the events in each.
    """
    ranges = _Ranges(first, last, weight, positives, events=0.0)
    if len(first) > _MOST_KEPT or samples.is_dependent:
        ranges = ranges.merged(_MOST_KNOTS)
    # How many independent samples a weight of 1 is worth. The residuals about the
    # isotonic fit show how much clusters depend.
    worth_of_weight = 1.0
    fitted = None
    if samples.is_dependent:
        frequency = ranges.positives / ranges.weight
        curve = isotonic_regression(frequency, weights=ranges.weight).x
        fitted = curve[np.searchsorted(ranges.last, samples.scores)]
        worth_of_weight = samples.worth_of_weight / samples.design_effect(fitted)
    return ranges._replace(
        weight=ranges.weight * worth_of_weight,
        positives=ranges.positives * worth_of_weight,
        events=samples.events(fitted),
    )


def _state(ranges):
    """Return the state of a curve that never falls: see `monotone`."""
    ranges = ranges.merged(_MOST_KNOTS)
    return {
        "kind": "monotone",
        "first": ranges.first.astype(np.float64),
        "last": ranges.last.astype(np.float64),
        "count": ranges.weight.astype(np.float64),
        "positives": ranges.positives.astype(np.float64),
        "events": ranges.events,
    }


def monotone_limits(state, level):
    """Return a function that returns the limits (n,) and (n,) of a curve that never
    falls at some places (n,), integers: 2 j + 1 in the range j of scores of the state,
    2 j below it and above the one before.

    Between two ranges, the lower limit of the one below and the upper limit of the one
    above hold.
    """
    # Bytes, and not arrays, are keys of the cache.
    low, high = _monotone_table(
        state["count"].tobytes(), state["positives"].tobytes(), float(level)
    )
    # The places before, in, between and after the ranges: 2 m + 1.
    low_at = np.repeat(np.append(0.0, low), 2)[1:]
    high_at = np.repeat(np.append(high, 1.0), 2)[:-1]
    return lambda place, scores: (low_at[place], high_at[place])


@lru_cache(maxsize=64)
def _monotone_table(count_bytes, positives_bytes, level):
    """Return the likelihood-ratio limits (m,) and (m,) of a monotone curve at m scores,
    from the numbers of samples and events at each, float64 in bytes.

    Notes
    -----
    The limits at score j are all t for which the samples do not reject that the curve
    is t there: twice the log-likelihood that this costs is at most the quantile of the
    chi-square law with one degree of freedom. Given t, the curve of greatest likelihood
    is, below j, isotonic regression of the samples below, capped at t, and above j,
    that of the samples above, raised to t [1]_. The law of that statistic depends on
    the curve; the chi-square quantile is the largest of those known: it is exact for
    isolated scores with many samples, and careful where the curve rises.

    References
    ----------
    .. [1] Banerjee and Wellner (2001), Likelihood ratio tests for monotone functions.
    """
    count = np.frombuffer(count_bytes)
    positives = np.frombuffer(positives_bytes)
    n_scores = len(count)
    fitted = isotonic_regression(positives / count, weights=count).x
    likelihood = np.sum(_log_likelihood(positives, count, fitted))
    sides = (
        _Side.below(count, positives),
        _Side.above(count, positives),
    )
    threshold = ndtri((1 + level) / 2) ** 2

    def costs_too_much(log_odds):
        """Return at which scores the log-odds (m,) of the curve are rejected."""
        log_event = log_expit(log_odds)
        log_other = log_expit(-log_odds)
        restricted = positives * log_event + (count - positives) * log_other
        for side in sides:
            restricted = restricted + side.log_likelihood(
                log_odds, log_event, log_other
            )
        return 2 * (likelihood - restricted) > threshold

    limits = []
    with np.errstate(divide="ignore"):  # a fitted 0 or 1
        estimate = np.log(fitted) - np.log1p(-fitted)
    # Bisection from the estimate, which is not rejected, to either end.
    for end in (-_CERTAIN, _CERTAIN):
        inside = np.clip(estimate, -_CERTAIN, _CERTAIN)
        outside = np.full(n_scores, end)
        is_open = ~costs_too_much(outside)  # the limit is 0 or 1
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            is_rejected = costs_too_much(middle)
            inside = np.where(is_rejected, inside, middle)
            outside = np.where(is_rejected, middle, outside)
        limit = expit(inside)
        limit[is_open] = float(end > 0)
        limits.append(np.sort(limit))  # they rise but for rounding
    return tuple(limits)


class _Side(NamedTuple):
    """Isotonic regressions, for each of m scores, of the samples on one side of it.

    `log_odds` (m, m) has a row for each score, in order of the distance from the other
    end: entries that the score has nothing to do with are infinite, so that no cap
    reaches them. `likelihood`, `positives` and `count` are sums over the entries that
    are left as they are, or capped: (m, m + 1), (m + 1,), (m + 1,).
    """

    log_odds: np.ndarray
    likelihood: np.ndarray
    positives: np.ndarray
    count: np.ndarray

    @classmethod
    def below(cls, count, positives):
        """Return the isotonic regressions of the samples below each of m scores, which
        have `count` (m,) samples and `positives` (m,) events at each.
        """
        n_scores = len(count)
        log_odds = np.full((n_scores, n_scores), -np.inf)
        likelihood = np.zeros((n_scores, n_scores + 1))
        frequency = positives / count
        for j in range(1, n_scores):
            fit = isotonic_regression(frequency[:j], weights=count[:j]).x
            terms = _log_likelihood(positives[:j], count[:j], fit)
            likelihood[j, 1 : j + 1] = np.cumsum(terms)
            with np.errstate(divide="ignore"):
                log_odds[j, :j] = np.log(fit) - np.log1p(-fit)
        return cls(
            log_odds,
            likelihood,
            np.append(0.0, np.cumsum(positives)),
            np.append(0.0, np.cumsum(count)),
        )

    @classmethod
    def above(cls, count, positives):
        """Return the regressions of the samples above each score, as those of the other
        label below it in reversed order.
        """
        return _Reversed(cls.below(count[::-1], (count - positives)[::-1]))

    def log_likelihood(self, log_odds, log_event, log_other):
        """Return the log-likelihood (m,) of the samples on this side of each score,
        under the isotonic regressions capped at the log-odds (m,). `log_event` and
        `log_other` (m,) are the logarithms of the probabilities of both labels there.
        """
        row = np.arange(len(log_odds))
        # Each row rises, so that those above the cap are its last entries: the others
        # keep their own likelihood.
        n_kept = row - np.count_nonzero(self.log_odds > log_odds[:, None], axis=1)
        capped_positives = self.positives[row] - self.positives[n_kept]
        capped_count = self.count[row] - self.count[n_kept]
        capped = capped_positives * log_event
        capped += (capped_count - capped_positives) * log_other
        return self.likelihood[row, n_kept] + capped


class _Reversed(NamedTuple):
    """A `_Side` of samples whose labels are swapped and whose order is reversed."""

    side: _Side

    def log_likelihood(self, log_odds, log_event, log_other):
        """Return what `_Side.log_likelihood` does, in the order of the samples."""
        return self.side.log_likelihood(
            -log_odds[::-1], log_other[::-1], log_event[::-1]
        )[::-1]


def _log_likelihood(positives, count, probability):
    """Return the log-likelihood of each number of events among samples."""
    negatives = count - positives
    return xlogy(positives, probability) + xlogy(negatives, 1 - probability)
