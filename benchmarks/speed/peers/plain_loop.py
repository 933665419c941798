"""No library: the sweep as a plain loop over bin counts, on one sort and prefix
sums.
"""

import numpy as np

from benchmarks.speed.peers import Contender


def _sweep(problem):
    order = np.argsort(problem.scores)
    n = len(order)
    events = np.concatenate(([0], np.cumsum(problem.labels[order])))
    scores = np.concatenate(([0.0], np.cumsum(problem.scores[order])))
    n_bins = 1
    while n_bins < n:
        cuts = -(-np.arange(n_bins + 2) * n // (n_bins + 1))
        if np.any(np.diff(np.diff(events[cuts]) / np.diff(cuts)) < 0):
            break
        n_bins += 1
    cuts = -(-np.arange(n_bins + 1) * n // n_bins)
    return np.abs(np.diff(events[cuts]) - np.diff(scores[cuts])).sum() / n


JOBS = {"sweep": Contender(_sweep)}
