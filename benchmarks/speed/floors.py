"""The floors: the least NumPy work that any implementation of a job must do, nothing
validated.
"""

import os
import subprocess
import sys
from io import BytesIO

import numpy as np
from scipy.optimize import isotonic_regression

_BLOCK_ROWS = 1 << 16
_N_BINS = 15


def equal_width(problem, n_bins=_N_BINS):
    """Three bincounts, block by block, and an index that is a product."""
    sums = np.zeros((3, n_bins + 1))
    for start in range(0, len(problem.scores), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        scores, labels = problem.scores[rows], problem.labels[rows]
        bins = (scores * n_bins).astype(np.intp)
        sums[0] += np.bincount(bins, minlength=n_bins + 1)
        sums[1] += np.bincount(bins, weights=scores, minlength=n_bins + 1)
        sums[2] += np.bincount(bins, weights=labels, minlength=n_bins + 1)
    return np.abs(sums[1] - sums[2]).sum() / len(problem.scores)


def equal_mass(problem, n_bins=_N_BINS):
    """Sort the scores and those of the positives, and search the edges."""
    ordered = np.sort(problem.scores)
    positives = np.sort(problem.scores[problem.labels == 1])
    cuts = np.arange(n_bins + 1) * len(ordered) // n_bins
    events = np.diff(np.searchsorted(positives, np.append(ordered[cuts[:-1]], 2)))
    totals = np.add.reduceat(ordered, cuts[:-1])
    return np.abs(totals - events).sum() / len(ordered)


def validated(problem):
    """Look once at all that is asked of the input: its shapes, scores that are
    probabilities, and labels that are 0 and 1.
    """
    scores, labels = problem.scores, problem.labels
    has_shape = scores.ndim == 1 and scores.shape == labels.shape
    are_finite = np.isfinite(scores).all()
    are_probabilities = scores.min() >= 0 and scores.max() <= 1
    are_binary = ((labels == 0) | (labels == 1)).all()
    return has_shape and are_finite and are_probabilities and are_binary


def drawn_labels(problem, n_draws=999):
    """Draw labels from the scores many times, and sum those of each draw."""
    numbers = np.random.default_rng(0).random((n_draws, len(problem.scores)))
    return np.array([np.sum(row < problem.scores) for row in numbers])


def top_label(problem, n_bins=_N_BINS):
    """Find the largest score of each row; three bincounts."""
    predicted = problem.scores.argmax(axis=1)
    confidence = problem.scores[np.arange(len(predicted)), predicted].astype(np.float64)
    bins = (confidence * n_bins).astype(np.intp)
    gap = np.bincount(bins, weights=confidence) - np.bincount(
        bins, weights=predicted == problem.labels
    )
    return np.abs(gap).sum() / len(predicted)


def marginal_equal_width(problem, n_bins=_N_BINS):
    """Bincount all columns at once: the scores by (class, bin), and those of the
    labels.
    """
    n, n_classes = problem.scores.shape
    cells = (problem.scores * n_bins).astype(np.intp)
    cells += np.arange(n_classes) * (n_bins + 1)
    size = n_classes * (n_bins + 1)
    total = np.bincount(cells.ravel(), weights=problem.scores.ravel(), minlength=size)
    events = np.bincount(cells[np.arange(n), problem.labels], minlength=size)
    return np.abs(total - events).sum() / n / n_classes


def marginal_equal_mass(problem):
    """Sort each column."""
    for column in problem.scores.T:
        np.sort(column)


def softmax(problem):
    """One softmax, in blocks that fit the cache."""
    out = np.empty_like(problem.logits)
    block_rows = max(1, (1 << 16) // out.shape[1])
    for start in range(0, len(out), block_rows):
        block = out[start : start + block_rows]
        logits = problem.logits[start : start + block_rows]
        np.subtract(logits, logits.max(axis=1, keepdims=True), out=block)
        np.exp(block, out=block)
        block /= block.sum(axis=1, keepdims=True)
    return out


def histogram_binning(problem, n_bins=10):
    """Two bincounts and a look-up."""
    bins = (problem.scores * n_bins).astype(np.intp)
    return (np.bincount(bins, weights=problem.labels) / np.bincount(bins))[bins]


def isotonic(problem):
    """Argsort, the regression of SciPy, and back."""
    order = np.argsort(problem.scores)
    values = np.empty(len(order))
    values[order] = isotonic_regression(problem.labels[order].astype(np.float64)).x
    return values


def bare_diagram(problem):
    """Draw fifteen points with bars, a diagonal and a histogram, with matplotlib
    alone.
    """
    from matplotlib.figure import Figure

    axes, below = (figure := Figure()).subplots(2, height_ratios=(4, 1), sharex=True)
    bins = (problem.scores * _N_BINS).astype(np.intp)
    count = np.bincount(bins)
    mean = np.bincount(bins, weights=problem.scores) / count
    frequency = np.bincount(bins, weights=problem.labels) / count
    axes.plot([0, 1], [0, 1], label="calibrated")
    axes.errorbar(
        mean,
        frequency,
        1.645 * np.sqrt(frequency * (1 - frequency) / count),
        label="model",
    )
    axes.fill_between([0, 1], [0, 0.95], [0.05, 1], alpha=0.2)
    axes.legend()
    below.stairs(np.bincount((problem.scores * 40).astype(np.intp)))
    return drawn(figure)


def drawn(figure):
    """Render a figure as a notebook would."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure).print_png(buffer := BytesIO())
    return len(buffer.getvalue())


def import_seconds(module):
    """Return how long a fresh interpreter takes to import a module."""
    code = (
        f"import time; t = time.process_time(); import {module};"
        " print(time.process_time() - t)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return float(done.stdout)
