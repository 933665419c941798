"""The plain forms: the jobs as one sort and a few sums, as anyone would write them with
NumPy, nothing validated.
"""

import numpy as np
from scipy.optimize import isotonic_regression

__all__ = ["PLAIN_FORMS"]


def _ordered(problem, *columns):
    """Return the scores in order, and the labels and other columns with them."""
    order = np.argsort(problem.scores)
    return [column[order] for column in (problem.scores, problem.labels, *columns)]


def _weights(problem):
    return 1.0 + np.arange(len(problem.labels)) % 3


def _bins_of_equal_mass(scores, n_bins):
    """Return each score's bin: the scores are sorted alone, and each is searched for
    among the cuts.
    """
    return np.searchsorted(
        np.sort(scores)[np.arange(1, n_bins) * len(scores) // n_bins], scores
    )


def _equal_mass(n_bins):
    def run(problem):
        bins = _bins_of_equal_mass(problem.scores, n_bins)
        gap = np.bincount(bins, problem.scores) - np.bincount(bins, problem.labels)
        return np.abs(gap).sum() / len(bins)

    return run


def _weighted_equal_mass(problem, n_bins=15):
    scores, labels, weight = _ordered(problem, _weights(problem))
    cumulative = np.cumsum(weight)
    first = np.append(
        0,
        np.searchsorted(cumulative, np.arange(1, n_bins) * cumulative[-1] / n_bins) + 1,
    )
    first = first[first < len(scores)]
    return np.abs(
        np.add.reduceat(scores * weight, first)
        - np.add.reduceat(labels * weight, first)
    ).sum()


def _marginal_equal_mass(problem, n_bins=15):
    error = 0.0
    for k, column in enumerate(np.ascontiguousarray(problem.scores.T)):
        bins = _bins_of_equal_mass(column, n_bins)
        error += np.abs(
            np.bincount(bins, column) - np.bincount(bins, problem.labels == k)
        ).sum()
    return error


def _sweep(make_weights):
    def run(problem):
        scores, labels, weight = _ordered(problem, make_weights(problem))
        events, cumulative = (
            np.append(0, np.cumsum(values)) for values in (labels * weight, weight)
        )
        # of tied rows
        last = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1) + 1
        events, cumulative = events[np.append(0, last)], cumulative[np.append(0, last)]
        for n_bins in range(2, len(last) + 1):
            cuts = np.searchsorted(
                cumulative, np.arange(n_bins + 1) * cumulative[-1] / n_bins
            )
            cuts = np.unique(cuts)
            if np.any(np.diff(np.diff(events[cuts]) / np.diff(cumulative[cuts])) < 0):
                break
        return n_bins if len(last) > 1 else 1

    return run


def _cumulative_difference(problem):
    scores, labels = _ordered(problem)
    difference = np.cumsum(labels - scores) / len(scores)
    difference = difference[np.append(scores[1:] > scores[:-1], True)]
    return np.abs(difference).max(), difference.max() - difference.min()


def _by_distinct_score(problem):
    distinct, inverse = np.unique(problem.scores, return_inverse=True)
    count = np.bincount(inverse)
    return (
        distinct,
        inverse,
        count,
        np.bincount(inverse, weights=problem.labels) / count,
    )


def _unique_scores(problem):
    distinct, _, count, frequency = _by_distinct_score(problem)
    return np.sqrt(count @ (distinct - frequency) ** 2 / count.sum())


def _validity_curve(problem):
    distinct, _, count, frequency = _by_distinct_score(problem)
    gap = np.abs(distinct - frequency)
    order = np.argsort(gap)
    return gap[order], np.cumsum(count[order]) / count.sum()


def _unique_score_histogram(problem):
    distinct, _, _, frequency = _by_distinct_score(problem)
    event = frequency[np.searchsorted(distinct, problem.scores)]
    return np.column_stack((1 - event, event))


def _histogram(problem, n_bins=10):
    bins = _bins_of_equal_mass(problem.scores, n_bins)
    event = (np.bincount(bins, problem.labels) / np.maximum(np.bincount(bins), 1))[bins]
    return np.column_stack((1 - event, event))


def _randomised_histogram(problem, n_bins=10):
    order = np.lexsort(
        (np.random.default_rng(0).random(len(problem.scores)), problem.scores)
    )
    scores, labels = problem.scores[order], problem.labels[order]
    first = np.arange(n_bins) * len(scores) // n_bins
    frequency = np.add.reduceat(labels, first) / np.diff(first, append=len(scores))
    event = frequency[np.searchsorted(scores[first[1:]], problem.scores, side="right")]
    return np.column_stack((1 - event, event))


def _isotonic(make_weights):
    def run(problem):
        scores, labels, weight = _ordered(problem, make_weights(problem))
        fitted = isotonic_regression(labels.astype(np.float64), weights=weight).x
        return scores, fitted

    return run


def _isotonic_forecast(problem):
    scores, fitted = _isotonic(lambda problem: np.ones(len(problem.labels)))(problem)
    event = np.interp(problem.scores, scores, fitted)
    return np.column_stack((1 - event, event))


def _brier_decomposition(problem):
    scores, labels = _ordered(problem)
    labels = labels.astype(np.float64)
    best = isotonic_regression(labels).x
    return [
        np.mean((forecast - labels) ** 2) for forecast in (scores, best, labels.mean())
    ]


# job -> its plain form; jobs that nobody does by a sort are left out
PLAIN_FORMS = {
    "equal-mass ECE": _equal_mass(15),
    "equal-mass ECE, debiased": _equal_mass(15),
    "equal-mass ECE, weights": _weighted_equal_mass,
    "marginal, equal mass, debiased": _marginal_equal_mass,
    "Hosmer-Lemeshow": _equal_mass(10),
    "sweep": _sweep(lambda problem: np.ones(len(problem.labels), dtype=np.int64)),
    "sweep, weights": _sweep(_weights),
    "KS": _cumulative_difference,
    "Kuiper": _cumulative_difference,
    "error of unique scores": _unique_scores,
    "validity curve": _validity_curve,
    "Brier decomposition": _brier_decomposition,
    "histogram, equal mass": _histogram,
    "histogram, unique scores": _unique_score_histogram,
    "uniform mass": _randomised_histogram,
    "isotonic": _isotonic_forecast,
    "isotonic, weights": _isotonic(_weights),
}
