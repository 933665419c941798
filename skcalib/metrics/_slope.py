"""Calibration slope and calibration-in-the-large: the logistic regression of the labels on the log-odds."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri

from skcalib._cells.reductions import binary_tasks, resolve_multiclass
from skcalib._inference.results import IntervalEstimate, record_html, record_text
from skcalib._input.hints import hint_at_keywords
from skcalib._input.scalars import check_confidence_level
from skcalib._input.scored_labels import check_scored_labels
from skcalib._rows.condensed import condensed
from skcalib._rows.links import log_odds
from skcalib._solvers.logistic import fit_logistic


class CalibrationSlopeIntercept(NamedTuple):
    """Calibration slope and calibration-in-the-large, each with its interval.

    Parameters
    ----------
    slope : IntervalEstimate
        1 for calibrated scores; below 1 they are too extreme (over-confident), above 1 not extreme enough.
    intercept : IntervalEstimate
        Calibration-in-the-large, in log-odds: 0 for calibrated scores, below 0 if they are too high on average.
    """

    slope: IntervalEstimate
    intercept: IntervalEstimate

    __repr__ = record_text
    _repr_html_ = record_html


@hint_at_keywords
def calibration_slope_intercept(
    y_true,
    y_proba=None,
    *,
    confidence_level=0.9,
    multiclass="auto",
    sample_weight=None,
    pos_label=None,
    labels=None,
):
    """Calibration slope and calibration-in-the-large, as clinical prediction models report them.

    The slope is b in ``logit P(y = 1) = a + b logit(s)``. The intercept is a in ``logit P(y = 1) = a + logit(s)``,
    where the slope is held at 1.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_proba : array-like of shape (n,), (n, 2) or (n, K)
        Probabilities in [0, 1], clipped to [2^-52, 1 - 2^-52]: a score of exactly 0 or 1 has a lot of leverage.
    confidence_level : float, default=0.9
        Coverage of the Wald intervals, between 0 and 1.
    multiclass : {"auto", "top_label"}, default="auto"
        See `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Weights, which count as repeated rows.
    pos_label : int, float, bool or str, default=None
        The event; None is the greater of two labels, the second column of `predict_proba`.
    labels : array-like of shape (K,), default=None
        The sorted labels of the columns.

    Returns
    -------
    result : CalibrationSlopeIntercept
        Named tuple (slope, intercept), each a named tuple (estimate, low, high).

    Raises
    ------
    ValueError
        Where there is no finite estimate: one class only, one distinct score, or scores that separate the classes.

    See Also
    --------
    skcalib.PlattScaling : A slope and an intercept on the log-odds.
    skcalib.metrics.calibration_test : Is the error more than noise?

    References
    ----------
    Cox (1958), Two further applications of a model for binary regression. Van Calster, McLernon, van Smeden, Wynants
    and Steyerberg (2019), Calibration: the Achilles heel of predictive analytics.

    Examples
    --------
    Events at .2 and .8 in a fifth and four fifths of the rows: slope 1, intercept 0.

    >>> from skcalib.metrics import calibration_slope_intercept
    >>> result = calibration_slope_intercept([0, 0, 0, 0, 1, 1, 1, 1, 1, 0], [0.2] * 5 + [0.8] * 5)
    >>> round(result.slope.estimate, 6), abs(round(result.intercept.estimate, 6))
    (1.0, 0.0)
    """
    confidence_level = check_confidence_level(confidence_level)
    data = check_scored_labels(
        y_true, y_proba, multiclass=multiclass, sample_weight=sample_weight, pos_label=pos_label, labels=labels
    )
    if resolve_multiclass(multiclass, data) == "marginal":
        raise ValueError('multiclass="marginal" has no single slope: use "top_label", or one class against the rest.')
    (task,) = binary_tasks(data, multiclass)
    logit = log_odds(task.scores)
    _check_estimable(logit, task.labels)
    rows = _Rows(logit, task.labels, task.sample_weight)
    few = _Rows(*condensed(*rows))
    return CalibrationSlopeIntercept(*(_last_coefficient(rows, few, model, confidence_level) for model in _MODELS))


def _check_estimable(logit, labels):
    if labels.all() or not labels.any():
        raise ValueError("y_true has one class only: calibration slope and intercept would be infinite.")
    lowest, highest = logit.min(), logit.max()
    if lowest == highest:
        raise ValueError(f"y_proba has one distinct score ({expit(logit[0]):.6g}): there is no calibration slope.")
    # Of the negatives and the positives, the least and the greatest: the other rows count as the other end.
    least = [np.where(labels == positive, logit, highest).min() for positive in (False, True)]
    greatest = [np.where(labels == positive, logit, lowest).max() for positive in (False, True)]
    if greatest[0] <= least[1] or greatest[1] <= least[0]:
        raise ValueError("The scores separate the classes of y_true: the calibration slope would be infinite.")


class _Rows(NamedTuple):
    """Log-odds, labels and weights of rows."""

    logit: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None


# What the last coefficient belongs to: features (d, m) of log-odds (m,), and whether these are an offset.
_MODELS = (
    (lambda logit: np.stack((np.ones_like(logit), logit)), False),
    (lambda logit: np.ones((1, len(logit))), True),
)


def _last_coefficient(rows, few, model, confidence_level):
    """Return the last coefficient of a logistic regression by maximum likelihood, with its Wald interval.

    `few` are the same rows, condensed: a fit to them is where the fit begins, and the width of the interval is theirs.
    """
    features, is_offset = model
    near = _fit(few, model) if len(few.logit) < len(rows.logit) else None
    coef = _fit(rows, model, near)
    design = features(few.logit)
    probability = expit(coef @ design + (few.logit if is_offset else 0))
    weight = probability * (1 - probability) * (1 if few.sample_weight is None else few.sample_weight)
    information = (design * weight) @ design.T
    width = ndtri((1 + confidence_level) / 2) * np.sqrt(np.linalg.inv(information)[-1, -1])
    return IntervalEstimate(*map(float, (coef[-1], coef[-1] - width, coef[-1] + width)))


def _fit(rows, model, near=None):
    features, is_offset = model
    offset = rows.logit if is_offset else None
    return fit_logistic(
        lambda part: features(rows.logit[part]), rows.labels, rows.sample_weight, offset=offset, near=near
    )
