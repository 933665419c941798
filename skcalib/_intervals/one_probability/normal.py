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
    """Return the quantile of limits with coverage `level` on the log-odds: Student's
    for clusters, whose `degrees` are finite, else the normal one; NaN where the
    clusters are too few. `state` is the dict that the limits are computed from.
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
    """Return the state of limits, a dict, with its last m parameters multiplied by
    `units` (m,); None for None.
    """
    if state is None:
        return None
    scaled = dict(state)
    # Arrays (d,) are parameters, and arrays (d, d) covariances of these.
    for name, value in state.items():
        if np.ndim(value) > 0:
            factor = np.append(np.ones(len(value) - len(units)), units)
            scaled[name] = value * factor
        if np.ndim(value) == 2:
            scaled[name] *= factor[:, None]
    return scaled


def largest_variance(covariances, gradient):
    """Return the variance (n,) of log-odds whose derivatives by the parameters are
    `gradient` (d, n): the largest by any of the covariances (d, d) of these.
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
    """Return the probabilities whose log-odds are those of the probabilities `own` less
    and plus half a width, arrays of one shape. `rest` is ``1 - own``, computed from the
    other classes without rounding.
    """
    # The odds own / rest are divided and multiplied by exp(half).
    ratio = np.exp(np.minimum(half, _LARGEST_EXPONENT))
    rest = np.maximum(rest, _TINY)
    low = own / (own + rest * ratio)
    raised = own * ratio
    return low, raised / (raised + rest)


def why_none(state):
    """Return why clusters leave the limits of a state unknown, else "".

    Without clusters, the degrees of freedom of a state are infinite.
    """
    if not np.isfinite(state.get("degrees", np.inf)):
        return ""
    return too_few_events(state["events"]) or too_few_degrees(state["degrees"])
