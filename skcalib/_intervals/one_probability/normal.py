"""What all limits on the log-odds share that come from a covariance of parameters."""

import numpy as np
from scipy.special import ndtri, stdtrit

from skcalib._intervals.sandwich import (
    quadratic_form,
    too_few_degrees,
    too_few_events,
)


def half_width(state, gradient, level):
    """Return half the width (n,) of the limits of log-odds with gradients (d, n) by the
    parameters: normal ones, Student's with clusters, NaN where these are too few.

    The variance of independent samples is the larger one of two estimates.
    """
    if why_none(state):
        return np.full(gradient.shape[1], np.nan)
    variance = quadratic_form(state["sandwich"], gradient)
    if "model" in state:
        variance = np.maximum(variance, quadratic_form(state["model"], gradient))
    tail = (1 + level) / 2
    if np.isfinite(state["degrees"]):
        quantile = stdtrit(state["degrees"], tail)
    else:
        quantile = ndtri(tail)
    return quantile * np.sqrt(variance)


def limits_about(log_odds, half):
    """Return the probabilities (n,) and (n,) of log-odds (n,) less and plus half a
    width (n,).
    """
    with np.errstate(over="ignore"):  # the odds of a probability of 0
        # in less time than by `expit`
        return 1 / (1 + np.exp(half - log_odds)), 1 / (1 + np.exp(-half - log_odds))


def why_none(state):
    """Return why clusters leave the limits of a state unknown, else "".

    Without clusters, the degrees of freedom of a state are infinite.
    """
    if not np.isfinite(state.get("degrees", np.inf)):
        return ""
    return too_few_events(state["events"]) or too_few_degrees(state["degrees"])
