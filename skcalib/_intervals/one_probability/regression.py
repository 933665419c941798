"""Limits of a logistic regression on features of the log-odds."""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from skcalib._intervals.one_probability.normal import (
    covariances_of,
    largest_variance,
    limits_about,
    quantile_of,
)
from skcalib._intervals.one_probability.profile import (
    profile_factors,
    profile_table,
)
from skcalib._intervals.one_probability.samples import LimitsMaker
from skcalib._intervals.sandwich import (
    left_out_covariance,
    left_out_covariance_of_cells,
    left_out_steps,
    mean_degrees,
    unit_sums,
)
from skcalib._rows.blocks import condensed, weights_or_ones
from skcalib._solvers.logistic import fit_jeffreys, inverse_curvature

# More independent samples are cells of one label and nearly equal log-odds.
_MOST_ROWS = 4096
_N_CELLS = 1024


def regression(features, coef, centre=None, penalty=None):
    """Return the `LimitsMaker` of the state of a logistic regression from `Samples`
    whose scores are log-odds, or columns (n, c) with the features beside them:
    coefficients and their covariance.

    The limits are about a fit of their own, to the labels 0 and 1 with Jeffreys'
    penalty, which is finite where the classes are separable. Smoothed labels and ridges
    pull a map to the middle, and residuals about it are not noise.

    Parameters
    ----------
    features : callable
        ``features(scores)`` returns the features (d, n) of the scores of samples.
    coef : array-like of shape (d,)
        Coefficients of the map, where the fit starts.
    centre : array-like of shape (d,), default=None
        Point to which a ridge pulls that is a belief about the curve: the limits have
        to contain its pull, so that the inverse curvature counts for weighted samples,
        too. None means no such ridge.
    penalty : array-like of shape (d, d), default=None
        Matrix of that ridge.

    References
    ----------
    Firth (1993), Bias reduction of maximum likelihood estimates. MacKinnon and White
    (1985), Some heteroskedasticity-consistent covariance matrix estimators with
    improved finite sample properties.
    """
    coef = np.asarray(coef, dtype=np.float64)
    make = partial(
        _state, features=features, start=coef, centre=centre, penalty=penalty
    )
    return LimitsMaker(partial(_kept, features=features, coef=coef), make)


class _Rows(NamedTuple):
    """Rows of a regression: scores, labels and total effective weights (n_rows,), the
    squared weights of the samples in each, the clusters of these or None; how many
    independent samples the rarer label is worth, and whether samples have weights or
    clusters.
    """

    scores: np.ndarray
    labels: np.ndarray
    weight: np.ndarray
    square: np.ndarray
    cluster: np.ndarray | None
    events: float
    is_dependent: bool


def _kept(samples, features, coef):
    """Return the `_Rows` that the limits are computed from: the `Samples`, or of many
    without clusters the sums of those with one label and nearly equal log-odds.

    ``features(scores)`` returns the features (d, n) of scores; `coef` (d,) are the
    coefficients of the map.
    """
    scores = samples.scores.astype(np.float64, copy=False)
    labels = samples.labels
    weight = square = fitted = None
    if samples.weight is not None:
        weight = samples.effective_weight
        square = weight**2
    if samples.cluster is not None:
        # the probabilities by the map: the events of clusters are counted by residuals
        fitted = expit(coef @ features(scores))
    elif scores.ndim == 1 and len(labels) > _MOST_ROWS:
        sizes = {"fewest_rows": _MOST_ROWS, "most_cells": _N_CELLS}
        if square is not None:
            _, _, square = condensed(scores, labels, square, **sizes)
        scores, labels, weight = condensed(scores, labels, weight, **sizes)
    weight = weights_or_ones(weight, len(labels))
    if square is None:
        square = weight  # the number of samples, each of weight 1
    return _Rows(
        scores,
        labels,
        weight,
        square,
        samples.cluster,
        samples.events(fitted),
        samples.is_dependent,
    )


def _state(rows, features, start, centre, penalty):
    """Return the state of the limits of a regression of `_Rows`: a dict of its
    coefficients, their covariances, the degrees of freedom and the number of events.

    ``features(scores)`` returns the features (d, n) of scores; the fit begins at
    `start` (d,), the coefficients of the map. `centre` (d,) and `penalty` (d, d) are
    those of a ridge, or None.
    """
    # 1. The fit, and the inverse of its information.
    design = features(rows.scores)
    coef = fit_jeffreys(design, rows.labels, rows.weight, start, centre, penalty)
    fitted = expit(coef @ design)
    curvature = rows.weight * fitted * (1 - fitted)
    information = (design * curvature) @ design.T
    if penalty is not None:
        information = information + penalty
    inverse = inverse_curvature(information)
    # 2. The covariance from the residuals of rows, or of clusters, left out in turn.
    residual = rows.weight * (rows.labels - fitted)
    degrees = np.inf
    if rows.cluster is None:
        share = rows.square / rows.weight**2  # of one of the samples in a row
        sandwich = left_out_covariance_of_cells(
            design, residual, curvature, share, inverse
        )
    else:
        sums = unit_sums(design, residual, curvature, rows.cluster)
        variance = rows.weight * curvature
        try:
            sandwich = left_out_covariance(left_out_steps(*sums, information))
            degrees = mean_degrees(design, variance, rows.cluster, inverse)
        except np.linalg.LinAlgError:  # one cluster determines the curve
            sandwich = np.zeros_like(inverse)
            degrees = 0.0
    state = {
        "kind": "regression",
        "coef": coef,
        "sandwich": sandwich,
        "events": rows.events,
        "degrees": degrees,
    }
    # 3. The inverse information is a second covariance, which weights and clusters make
    # wrong; profile limits need independent samples, too.
    if penalty is not None or not rows.is_dependent:
        state["model"] = inverse
    if penalty is None and not rows.is_dependent and len(coef) > 2:
        state |= profile_table(features, rows.scores, rows.labels, rows.weight, coef)
    return state


def regression_limits(state, level):
    """Return a function of features (d, n), and of the log-odds (n,) of scores, that
    returns the limits (n,) and (n,) of the probabilities of a regression: normal ones
    on the log-odds, or Student's with clusters. Profile limits make them wider.

    `state` is the dict of the regression; `level` is the coverage.
    """
    quantile = quantile_of(state, level)
    covariances = covariances_of(state)

    def limits_of(design, log_odds=None):
        """Return the lower and the upper limits (n,) for features (d, n)."""
        half = quantile * np.sqrt(largest_variance(covariances, design))
        curve = state["coef"] @ design
        if "places" not in state:  # no table of profile limits
            return limits_about(curve, half, half)
        error = np.sqrt(largest_variance([state["model"]], design))
        errors_below, errors_above = profile_factors(state, quantile, log_odds)
        below = np.maximum(half, errors_below * error)
        above = np.maximum(half, errors_above * error)
        return limits_about(curve, below, above)

    return limits_of
