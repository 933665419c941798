"""What all limits on the log-odds share that come from a covariance of parameters."""

import numpy as np
from scipy.special import ndtri, stdtrit

from skcalib._intervals.sandwich import (
    quadratic_form,
    too_few_degrees,
    too_few_events,
)

_LARGEST_EXPONENT = 700.0  # whose exponential is a number
_TINY = np.finfo(np.float64).tiny


def quantile_of(state, level):
    """Return the quantile of limits on the log-odds: normal, Student's with clusters,
    NaN where these are too few.
    """
    if why_none(state):
        return np.nan
    tail = (1 + level) / 2
    if np.isfinite(state["degrees"]):
        return stdtrit(state["degrees"], tail)
    return ndtri(tail)


def covariances_of(state):
    """Return the list of the covariances of the parameters of a state: of independent
    samples there are two, and the larger variance counts.
    """
    return [state[name] for name in ("sandwich", "model") if name in state]


def in_units(state, units):
    """Return a state, or None, whose last parameters are those of another one times
    some units (m,).
    """
    if state is None:
        return None
    scaled = dict(state)
    for name, value in state.items():
        if np.ndim(value) > 0:
            factor = np.append(np.ones(len(value) - len(units)), units)
            scaled[name] = value * factor
        if np.ndim(value) == 2:
            scaled[name] *= factor[:, None]
    return scaled


def largest_form(covariances, gradient):
    """Return the largest variance (n,) of log-odds with gradients (d, n) by the
    parameters.
    """
    largest = np.zeros(gradient.shape[1])
    for covariance in covariances:
        np.maximum(largest, quadratic_form(covariance, gradient), out=largest)
    return largest


def limits_about(log_odds, below, above):
    """Return the probabilities (n,) and (n,) of log-odds (n,) less a distance and plus
    another one, (n,) each.
    """
    with np.errstate(over="ignore"):  # the odds of a probability of 0
        # in less time than by `expit`
        return 1 / (1 + np.exp(below - log_odds)), 1 / (1 + np.exp(-above - log_odds))


def limits_of_shares(own, rest, half):
    """Return the probabilities whose log-odds are those of probabilities less and plus
    half a width, arrays of one shape; `rest` is what the other classes have.
    """
    ratio = np.exp(np.minimum(half, _LARGEST_EXPONENT))
    low = own / (own + np.maximum(rest, _TINY) * ratio)
    raised = own * ratio
    return low, raised / (raised + np.maximum(rest, _TINY))


def why_none(state):
    """Return why clusters leave the limits of a state unknown, else "".

    Without clusters, the degrees of freedom of a state are infinite.
    """
    if not np.isfinite(state.get("degrees", np.inf)):
        return ""
    return too_few_events(state["events"]) or too_few_degrees(state["degrees"])
