"""Logistic regression that learns one sample after the other, in constant memory.

Both methods hold two coefficients: the change of the slope and the intercept that are
added to a given log-odds z, so that (0, 0) leaves z as it is. The model is
``p = expit(z + slope_change * c + intercept)`` with c the log-odds clipped to a range
in which single samples cannot throw the coefficients away.

The loops run over samples in plain Python: each step needs the result of the one
before, and with two coefficients floats are faster than arrays.
"""

from math import exp, sqrt

import numpy as np

_BISECTIONS = 100


class OnlineNewton:
    """Online Newton step for the logistic loss (Gupta and Ramdas, 2023, Algorithm 1).

    Its regret against the best fixed slope and intercept grows like the logarithm of
    the number of samples.

    Attributes
    ----------
    state : list of five floats
        Slope, intercept, and the matrix A as its entries 11, 12 and 22. Where one is
        given, learning goes on from there.
    """

    clip = 11.512925464970229  # log-odds of 1 - 1e-5: the authors' limit for scores
    ridge = 100.0  # rho: A starts as rho times the identity
    step = 0.1  # gamma: A^-1 g is divided by it
    radius = 100.0  # of the ball that holds slope and intercept

    def __init__(self, state=None):
        self.state = _state_or_initial(state, self.ridge)

    def log_odds(self, log_odds):
        """Return the corrected log-odds of samples (n,)."""
        return _corrected(log_odds, self.clip, self.state)

    def learn(self, log_odds, labels, weights):
        """Update the state with samples, one after the other: lists of their log-odds,
        boolean labels and weights.
        """
        slope, intercept, a11, a12, a22 = self.state
        clip = self.clip
        step = self.step
        radius = self.radius
        for z, is_event, weight in zip(log_odds, labels, weights, strict=True):
            x = min(max(z, -clip), clip)
            # The slope multiplies the clipped log-odds x alone. What lies beyond the
            # clip is added as it is: slope * x + (z - x) + intercept.
            corrected = z + (slope - 1) * x + intercept
            residual = weight * (_expit(corrected) - is_event)
            # The gradient of the log-loss by slope and intercept is g = (g1, g2), and A
            # is the ridge plus the sum of g g'. The step is inv(A) g / gamma, with
            # `step` for gamma and the inverse by Cramer's rule.
            g1 = residual * x
            g2 = residual
            a11 += g1 * g1
            a12 += g1 * g2
            a22 += g2 * g2
            determinant = a11 * a22 - a12 * a12
            slope -= (a22 * g1 - a12 * g2) / (determinant * step)
            intercept -= (a11 * g2 - a12 * g1) / (determinant * step)
            if slope * slope + intercept * intercept > radius * radius:
                slope, intercept = _projected(slope, intercept, a11, a12, a22, radius)
        self.state = [slope, intercept, a11, a12, a22]


class ForgettingNewton:
    """Newton steps on a log-loss whose past fades: a sample counts half as much after
    `half_life` others.

    Attributes
    ----------
    state : list of five floats
        Slope, intercept, and the fading curvature A as its entries 11, 12 and 22.
    """

    clip = 4.59511985013459  # log-odds of .99
    ridge = 4.0  # large enough that A does not vanish on a stream of certain scores
    radius = 10.0  # of the ball around (1, 0)

    def __init__(self, half_life, state=None):
        self.retention = 0.5 ** (1 / half_life)
        self.state = _state_or_initial(state, self.ridge)

    def log_odds(self, log_odds):
        """Return the corrected log-odds of samples (n,)."""
        return _corrected(log_odds, self.clip, self.state)

    def learn(self, log_odds, labels, weights):
        """Update the state with samples, one after the other: lists of their log-odds,
        boolean labels and weights.
        """
        slope, intercept, a11, a12, a22 = self.state
        clip = self.clip
        radius = self.radius
        # A, the curvature of the past losses plus a ridge, is multiplied by `retention`
        # with each sample. What the ridge loses by that is added again.
        retention = self.retention
        refill = (1 - retention) * self.ridge
        for z, is_event, weight in zip(log_odds, labels, weights, strict=True):
            # The slope multiplies the clipped log-odds x alone. What lies beyond the
            # clip is added as it is: slope * x + (z - x) + intercept.
            x = min(max(z, -clip), clip)
            p = _expit(z + (slope - 1) * x + intercept)
            curvature = weight * p * (1 - p)
            a11 = retention * a11 + curvature * x * x + refill
            a12 = retention * a12 + curvature * x
            a22 = retention * a22 + curvature + refill
            # Newton's step is inv(A) g, with the gradient g = (g1, g2) by slope and
            # intercept, and the inverse by Cramer's rule.
            g2 = weight * (p - is_event)
            g1 = g2 * x
            determinant = a11 * a22 - a12 * a12
            slope -= (a22 * g1 - a12 * g2) / determinant
            intercept -= (a11 * g2 - a12 * g1) / determinant
            # No further than `radius` from (1, 0), the map that changes nothing.
            squared_distance = (slope - 1) ** 2 + intercept**2
            if squared_distance > radius * radius:
                shrink = radius / sqrt(squared_distance)
                slope = 1 + (slope - 1) * shrink
                intercept *= shrink
        self.state = [slope, intercept, a11, a12, a22]


def _state_or_initial(state, ridge):
    """Return a state, [slope, intercept, A11, A12, A22], as floats; None is the
    identity map with A = `ridge` I.
    """
    if state is None:
        return [1.0, 0.0, ridge, 0.0, ridge]
    return [float(number) for number in state]


def _corrected(log_odds, clip, state):
    """Return log-odds (n,) with a learner's change of slope and intercept."""
    slope, intercept = state[:2]
    # a third of the time of `clip` for one sample
    clipped = np.minimum(np.maximum(log_odds, -clip), clip)
    return log_odds + (slope - 1) * clipped + intercept


def _expit(x):
    """Return 1 / (1 + exp(-x)) of a float, without overflow."""
    if x >= 0:
        return 1 / (1 + exp(-x))
    # Below -745 the exponential would be 0. The limit keeps the probability positive.
    odds = exp(max(x, -700.0))
    return odds / (1 + odds)


def _projected(slope, intercept, a11, a12, a22, radius):
    """Return the point u with ``|u| <= radius`` nearest to an outer point v = (slope,
    intercept), by the distance ``(u - v)' A (u - v)``. With the multiplier mu, ``(A +
    mu I) u = A v``; the norm of u falls with mu, which bisection finds.
    """
    # A v
    right1 = a11 * slope + a12 * intercept
    right2 = a12 * slope + a22 * intercept

    def solve(mu):
        """Return u for a multiplier mu, by Cramer's rule."""
        determinant = (a11 + mu) * (a22 + mu) - a12 * a12
        u1 = ((a22 + mu) * right1 - a12 * right2) / determinant
        u2 = ((a11 + mu) * right2 - a12 * right1) / determinant
        return u1, u2

    # `low` and `high` are multipliers for which u is outside of the ball and inside.
    low = 0.0
    high = 1.0
    while np.hypot(*solve(high)) > radius:
        low = high
        high = 2 * high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if np.hypot(*solve(middle)) > radius:
            low = middle
        else:
            high = middle
    return solve(high)
