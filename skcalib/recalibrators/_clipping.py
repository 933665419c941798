"""Clipping of scores before they become log-odds: a given constant, or the one that the likelihood asks for."""

import copy
from numbers import Real

import numpy as np
from scipy.special import log_softmax

from skcalib._input.sklearn_private import Interval, StrOptions
from skcalib._rows.links import PROBABILITY_CLIP, clip_probability

# What the parameter `clip` may be, of the methods that declare `_works_on_log_odds`.
CLIP_CONSTRAINT = {"clip": [Interval(Real, 0, 0.5, closed="neither"), StrOptions({"auto"}), None]}
# Constants that "auto" tries, and the log-likelihood in nats, summed over the rows, that a larger one has to gain.
_CANDIDATES = (1e-7, 1e-5, 1e-4, 1e-3, 0.01, 0.03)
_LEAST_GAIN = 1.0


def clipped(scores, constant, input):
    """Return scores whose probabilities lie in [constant, 1 - constant]; as they are for the library's constant."""
    if constant == PROBABILITY_CLIP:
        return scores
    if input == "probability":
        return np.clip(scores.astype(np.float64), constant, 1 - constant)
    low, high = np.log(constant), np.log1p(-constant)
    if scores.shape[1] == 1:
        return np.clip(scores.astype(np.float64), low - high, high - low)
    return np.clip(log_softmax(scores.astype(np.float64), axis=1), low, high)


def fit_clipped(recalibrator, scores, codes, sample_weight):
    """Fit a recalibrator to scores clipped at its `clip` and set its `clip_`; "auto" is the constant that pays.

    That is the library's own one, and a larger one only where the fit gains more than 1 nat of log-likelihood: a model
    that says exactly 0 or 1 and is wrong (the votes of a forest, naive Bayes) has log-odds of 36 otherwise, which no
    slope can serve together with all the others.
    """
    if recalibrator.clip != "auto":
        recalibrator.clip_ = PROBABILITY_CLIP if recalibrator.clip is None else float(recalibrator.clip)
        recalibrator._fit_scores(clipped(scores, recalibrator.clip_, recalibrator.input), codes, sample_weight)
        return
    best, best_likelihood, rows = None, -np.inf, None
    for constant in (PROBABILITY_CLIP, *_CANDIDATES):
        previous, rows = rows, clipped(scores, constant, recalibrator.input)
        if best is not None and np.array_equal(rows, previous):
            continue
        candidate = copy.copy(recalibrator)
        candidate.clip_ = constant
        candidate._fit_scores(rows, codes, sample_weight)
        likelihood = _log_likelihood(candidate._predict_scores(rows), codes, sample_weight)
        if best is None or likelihood > best_likelihood + _LEAST_GAIN:
            best, best_likelihood = candidate, likelihood
    vars(recalibrator).pop("estimators_", None)  # of an earlier fit to more classes
    vars(recalibrator).update(vars(best))


def _log_likelihood(probabilities, codes, sample_weight):
    """Return the sum of the log-probabilities of the labels; one-vs-rest rows need not sum to 1."""
    p_true = probabilities[np.arange(len(codes)), codes] / probabilities.sum(axis=1)
    return float(np.sum(np.log(clip_probability(p_true)) * (1 if sample_weight is None else sample_weight)))
