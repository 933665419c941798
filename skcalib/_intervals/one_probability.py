"""Limits for the event frequency at one score: how far a calibrated probability may be
off because the map was fitted to few samples.

A fit keeps a state, a dict of plain values and small arrays, from which limits of any
level follow. Weights say how much a sample counts that was seen once: they add up to
the number of samples that they are worth.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit, log_expit, ndtri, stdtrit, xlogy

from skcalib._intervals.binomial import binomial_interval
from skcalib._intervals.few_events import FEWEST_FOR_NORMAL, effective_events
from skcalib._rows.blocks import row_blocks, weights_or_ones

# A regression sums over cells of nearly equal log-odds if there are more samples.
_MOST_ROWS = 4096
_N_CELLS = 1024
# Log-odds that a step of a fit may move, at most; the fit ends where a step would gain
# less, in nats.
_LARGEST_STEP = 3.0
_SETTLED = 1e-7
_MOST_STEPS = 40
# A direction that the samples say nothing about has this curvature, in units of the
# largest.
_NO_CURVATURE = 1e-12
# A softmax of more parameters has no limits: its covariance would be larger than its
# samples. Of many samples these numbers suffice for a covariance.
_MOST_PARAMETERS = 250
_MOST_LOGITS = 20_000
_ROWS_PER_PARAMETER = 20
# Scores at which the limits of a monotone curve are tabulated.
_MOST_KNOTS = 512
# Log-odds beyond 40 are certain; 48 halvings find a root between them to 3e-13.
_CERTAIN = 40.0
_HALVINGS = 48


class Maker(NamedTuple):
    """A function that makes the state of limits: what a fit returns that has them. A
    class of its own tells it from what hooks of a user's methods return.
    """

    make: Callable


class Samples(NamedTuple):
    """The samples of a binary problem: scores (n,), boolean labels (n,), weights (n,)
    or None, and the code of each sample's cluster (n,) or None.
    """

    scores: np.ndarray
    labels: np.ndarray
    weight: np.ndarray | None
    cluster: np.ndarray | None

    @property
    def worth_of_weight(self):
        """How many samples a weight of 1 is worth."""
        if self.weight is None:
            return 1.0
        return self.weight.sum() / np.sum(self.weight**2)

    @property
    def effective_weight(self):
        """Weights (n,) whose sum is the number of samples that they are worth."""
        return weights_or_ones(self.weight, len(self.labels)) * self.worth_of_weight

    def events(self, fitted):
        """Return how many independent samples the rarer label is worth, for fitted
        probabilities (n,).
        """
        if self.weight is None and self.cluster is None:
            n_events = int(np.count_nonzero(self.labels))
            return float(min(n_events, len(self.labels) - n_events))
        residual = self.labels - fitted
        return effective_events(self.labels, self.weight, True, self.cluster, residual)

    def design_effect(self, fitted):
        """Return the variance of the sum of residuals with clusters over that without,
        at least 1, for fitted probabilities (n,).
        """
        if self.cluster is None:
            return 1.0
        residual = weights_or_ones(self.weight, len(self.labels)) * (
            self.labels - fitted
        )
        sums = np.bincount(self.cluster, residual)
        independent = residual @ residual
        if independent == 0:
            return 1.0
        n_clusters = np.count_nonzero(np.bincount(self.cluster))
        return max(sums @ sums * n_clusters / (n_clusters - 1) / independent, 1.0)


def limits_of_rows(maker, rows):
    """Return the `Maker` of the state of limits from the clusters (n,) of rows, or
    None.

    `maker` makes it from `Samples`; anything else gives None, for a method that has no
    limits. `rows` are the scores, labels and weights; tensors, which stay where they
    are, give None, too.
    """
    scores, *_ = rows
    if not isinstance(maker, Maker) or not isinstance(scores, np.ndarray):
        return None
    return Maker(lambda cluster: maker.make(Samples(*rows, cluster)))


def widened_limits(low, high, probabilities):
    """Return limits (n, 2) or (n, K, 2) that contain calibrated probabilities (n, K).

    `low` and `high` are (n,) for the second of two classes, or (n, K).
    """
    if low.ndim == 1:
        probabilities = probabilities[:, 1]
    low = np.minimum(low, probabilities)
    high = np.maximum(high, probabilities)
    return np.stack((low, high), axis=-1)


def has_few_events(state):
    """Return whether the limits of a state rest on so few events, or non-events, that
    they cover less often than they say.
    """
    return state["events"] < FEWEST_FOR_NORMAL


# --- logistic regressions on features of the log-odds ---


def regression(features, coef, centre=None, penalty=None, *, bayesian=False):
    """Return the `Maker` of the state of a logistic regression from `Samples` whose
    scores are log-odds: coefficients and their covariance.

    The limits are about a fit of their own, to the labels 0 and 1 with Jeffreys'
    penalty, which is finite where the classes are separable. Smoothed labels pull a map
    to the middle, and residuals about it are not noise.

    Parameters
    ----------
    features : callable
        ``features(log_odds)`` returns the features (d, n) of log-odds (n,).
    coef : array-like of shape (d,)
        Coefficients of the map, where the fit starts.
    centre : array-like of shape (d,), default=None
        Point to which a ridge pulls.
    penalty : array-like of shape (d,) or (d, d), default=None
        The ridge, or its matrix; None means no ridge.
    bayesian : bool, default=False
        Whether the ridge is a belief about the curve, whose pull the limits have to
        contain: the inverse curvature then counts for weighted samples, too.

    References
    ----------
    Firth (1993), Bias reduction of maximum likelihood estimates. MacKinnon and White
    (1985), Some heteroskedasticity-consistent covariance matrix estimators with
    improved finite sample properties.
    """
    coef = np.asarray(coef, dtype=np.float64)
    if penalty is None:
        centre = coef
        penalty = np.zeros(len(coef))
    penalty = np.asarray(penalty, dtype=np.float64)
    if penalty.ndim == 1:
        penalty = np.diag(penalty)
    make = partial(
        _regression_state,
        features=features,
        start=coef,
        centre=np.asarray(centre),
        penalty=penalty,
        bayesian=bayesian,
    )
    return Maker(make)


def _regression_state(samples, features, start, centre, penalty, bayesian):
    """Return the state of a logistic regression: see `regression`."""
    rows = _condensed(samples)
    design = features(rows.scores)
    fit = _jeffreys_fit(design, rows, start, centre, penalty)
    fitted = None
    if _is_dependent(samples):
        fitted = expit(start @ features(samples.scores))
    state = {
        "kind": "regression",
        "coef": fit.coef,
        "sandwich": _sandwich(design, rows, fit),
        "events": samples.events(fitted),
        "degrees": np.inf,
    }
    if samples.cluster is not None:
        n_clusters = np.count_nonzero(np.bincount(samples.cluster))
        state["degrees"] = float(max(n_clusters - 2, 1))
    if bayesian or not _is_dependent(samples):
        state["model"] = fit.inverse
    return state


def _regression_limits(state, design, level):
    """Return the limits (n,) and (n,) of the probabilities of a regression at features
    (d, n): normal ones on the log-odds, or Student's with clusters.
    """
    log_odds = state["coef"] @ design
    half_width = _quantile(state, level) * np.sqrt(_variance(state, design))
    return expit(log_odds - half_width), expit(log_odds + half_width)


def _quantile(state, level):
    """Return the quantile of the standardised log-odds that belongs to a level."""
    tail = (1 + level) / 2
    if np.isfinite(state["degrees"]):
        return stdtrit(state["degrees"], tail)
    return ndtri(tail)


def _variance(state, gradient):
    """Return the variance (n,) of log-odds with gradients (d, n) by the parameters: for
    independent samples the larger one of the two estimates.
    """
    variance = _quadratic_form(state["sandwich"], gradient)
    if "model" in state:
        variance = np.maximum(variance, _quadratic_form(state["model"], gradient))
    return variance


class _Rows(NamedTuple):
    """Rows of a regression: log-odds, labels and total effective weights (n_rows,), the
    squared weights of the samples in each, and clusters or None.
    """

    scores: np.ndarray
    labels: np.ndarray
    weight: np.ndarray
    square: np.ndarray
    cluster: np.ndarray | None


def _is_dependent(samples):
    """Return whether samples have weights, or clusters."""
    return samples.weight is not None or samples.cluster is not None


def _condensed(samples):
    """Return the `_Rows` of a regression: the samples, or where there are many of them
    their cells of one label and nearly equal log-odds.
    """
    log_odds = samples.scores.astype(np.float64, copy=False)
    labels = samples.labels
    if samples.cluster is not None or len(labels) <= _MOST_ROWS:
        weight = samples.effective_weight
        return _Rows(log_odds, labels, weight, weight**2, samples.cluster)
    # of equal width on a scale that is nearly straight where most log-odds are
    cell = (expit(log_odds / 4) * _N_CELLS).astype(np.intp)
    cell += labels * (_N_CELLS + 1)
    if samples.weight is None:
        total = np.bincount(cell).astype(np.float64)
        square = total
        sums = np.bincount(cell, log_odds)
    else:
        weight = samples.effective_weight
        total = np.bincount(cell, weight)
        square = np.bincount(cell, weight**2)
        sums = np.bincount(cell, weight * log_odds)
    used = np.flatnonzero(total)
    return _Rows(
        sums[used] / total[used], used > _N_CELLS, total[used], square[used], None
    )


class _Fit(NamedTuple):
    """Coefficients (d,), fitted probabilities (n_rows,), inverse curvature (d, d)."""

    coef: np.ndarray
    fitted: np.ndarray
    inverse: np.ndarray


def _jeffreys_fit(design, rows, start, centre, penalty):
    """Return the `_Fit` of features (d, n_rows), by steps from `start`."""
    coef = start
    for _ in range(_MOST_STEPS):
        fitted = expit(coef @ design)
        variance = rows.weight * fitted * (1 - fitted)
        inverse = _inverse((design * variance) @ design.T + penalty)
        leverage = variance * _quadratic_form(inverse, design)
        residual = rows.weight * (rows.labels - fitted) + leverage * (0.5 - fitted)
        score = design @ residual - penalty @ (coef - centre)
        step = inverse @ score
        if score @ step < _SETTLED:
            break
        largest = np.abs(step @ design).max()
        coef = coef + step * min(1.0, _LARGEST_STEP / largest)
    return _Fit(coef, fitted, inverse)


def _sandwich(design, rows, fit):
    """Return the covariance (d, d) of the coefficients that residuals show: HC3 for
    samples, the sums of clusters for dependent ones.
    """
    residual = rows.labels - fit.fitted
    if rows.cluster is None:
        # of one sample in the row
        weight = rows.square / rows.weight
        variance = weight * fit.fitted * (1 - fit.fitted)
        leverage = variance * _quadratic_form(fit.inverse, design)
        left_out = residual / np.maximum(1 - leverage, _NO_CURVATURE)
        meat = (design * (rows.square * left_out**2)) @ design.T
        return fit.inverse @ meat @ fit.inverse
    sums = []
    for feature in design:
        sums.append(np.bincount(rows.cluster, rows.weight * residual * feature))
    sums = np.array(sums)[:, np.bincount(rows.cluster) > 0]
    n_clusters = sums.shape[1]
    factor = n_clusters / max(n_clusters - len(design), 1)
    return factor * fit.inverse @ sums @ sums.T @ fit.inverse


def _inverse(curvature):
    """Return the inverse of a matrix (d, d) that is positive, or nearly so; it is huge
    in directions without curvature.
    """
    scale = np.sqrt(np.diag(curvature))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(curvature / np.outer(scale, scale))
    values = np.maximum(values, _NO_CURVATURE * max(values[-1], 1.0))
    return (vectors / values) @ vectors.T / np.outer(scale, scale)


def _quadratic_form(matrix, design):
    """Return ``x @ matrix @ x`` for each column x of a design (d, n), as (n,)."""
    return np.einsum("in,in->n", matrix @ design, design)


# --- softmax of logits that are linear in the parameters ---


class SoftmaxDesign(NamedTuple):
    """How the K logits of samples depend on the parameters of a map.

    `features` are (n, K): the derivative of each logit by the only parameter; or
    (n, K, b): those of the logit of class k by its own b parameters. Parameters are
    then in the order of the classes.
    """

    features: np.ndarray

    @property
    def n_parameters(self):
        """Number of parameters."""
        if self.features.ndim == 2:
            return 1
        return self.features.shape[1] * self.features.shape[2]

    def combined(self, coefficient):
        """Return the derivatives (n, n_parameters) of the sum of the logits times
        coefficients (n, K).
        """
        if self.features.ndim == 2:
            return np.sum(coefficient * self.features, axis=1, keepdims=True)
        product = coefficient[:, :, None] * self.features
        return product.reshape(len(product), -1)

    def of_rows(self, rows):
        """Return the design of some rows, a slice."""
        return SoftmaxDesign(self.features[rows])


def softmax(design_of, probabilities_of, ridge=0.0):
    """Return the `Maker` of the state of a softmax of linear logits from
    `Samples` whose scores are logits (n, K) and whose labels are codes: the covariance
    of the parameters.

    Parameters
    ----------
    design_of, probabilities_of : callable
        Functions of logits (n, K): the `SoftmaxDesign`, and the probabilities (n, K) by
        the map.
    ridge : float or ndarray of shape (n_parameters,), default=0
        Second derivative of the ridge by each parameter.
    """
    make = partial(
        _softmax_state,
        design_of=design_of,
        probabilities_of=probabilities_of,
        ridge=ridge,
    )
    return Maker(make)


def _softmax_state(samples, design_of, probabilities_of, ridge):
    """Return the state of a softmax: see `softmax`."""
    n_rows, n_classes = samples.scores.shape
    n_parameters = design_of(np.zeros((1, n_classes))).n_parameters
    if n_parameters > _MOST_PARAMETERS:
        return None
    # A part of the samples determines the covariance well enough, unless they depend
    # on each other.
    n_chosen = max(_MOST_LOGITS // n_classes, _ROWS_PER_PARAMETER * n_parameters)
    chosen = slice(None)
    if n_rows > n_chosen and samples.cluster is None:
        chosen = np.random.default_rng(0).choice(n_rows, n_chosen, replace=False)
    weight = samples.effective_weight[chosen]
    share = len(weight) / n_rows
    codes = samples.labels[chosen]
    logits = samples.scores[chosen].astype(np.float64, copy=False)
    probabilities = probabilities_of(logits)
    design = design_of(logits)
    information = np.zeros((n_parameters, n_parameters))
    expected = design.combined(probabilities)
    for k in range(n_classes):
        of_class = np.zeros_like(probabilities)
        of_class[:, k] = 1.0
        deviation = design.combined(of_class)
        root = np.sqrt(weight * probabilities[:, k])[:, None]
        information += (root * deviation).T @ (root * deviation)
    information -= expected.T @ (weight[:, None] * expected)
    information = information / share + np.diag(np.broadcast_to(ridge, n_parameters))
    inverse = np.linalg.pinv(information, hermitian=True, rcond=_NO_CURVATURE)
    residual = -probabilities
    residual[np.arange(len(codes)), codes] += 1.0
    scores = weight[:, None] * design.combined(residual)
    n_units = len(weight)
    if samples.cluster is not None:
        is_used = np.bincount(samples.cluster) > 0
        sums = [np.bincount(samples.cluster, column) for column in scores.T]
        scores = np.array(sums).T[is_used]
        n_units = len(scores)
    factor = n_units / max(n_units - n_parameters, 1) / share
    counts = np.bincount(samples.labels, minlength=n_classes)
    state = {
        "kind": "softmax",
        "sandwich": factor * inverse @ (scores.T @ scores) @ inverse,
        "events": float(counts.min()),
        "degrees": np.inf,
    }
    if samples.cluster is not None:
        state["degrees"] = float(max(n_units - 2, 1))
    elif samples.weight is None:
        state["model"] = inverse
    return state


def softmax_limits(state, design, probabilities, level):
    """Return the limits (n, K) and (n, K) of probabilities (n, K) of a softmax: normal
    ones on the log-odds of each class, or Student's with clusters.
    """
    quantile = _quantile(state, level)
    low = np.empty_like(probabilities)
    high = np.empty_like(probabilities)
    for rows in row_blocks(len(probabilities), design.n_parameters):
        block = design.of_rows(rows)
        proba = probabilities[rows]
        for k in range(proba.shape[1]):
            # The log-odds of class k: its logit, less the mean of the others' logits by
            # their shares.
            others = proba.copy()
            others[:, k] = 0.0
            rest = np.maximum(others.sum(axis=1), np.finfo(np.float64).tiny)
            coefficient = -others / rest[:, None]
            coefficient[:, k] = 1.0
            gradient = block.combined(coefficient).T
            half_width = quantile * np.sqrt(_variance(state, gradient))
            own = np.maximum(proba[:, k], np.finfo(np.float64).tiny)
            log_odds = np.log(own) - np.log(rest)
            low[rows, k] = expit(log_odds - half_width)
            high[rows, k] = expit(log_odds + half_width)
    is_impossible = probabilities == 0
    high[is_impossible] = 0.0
    return low, high


# --- bins ---


def bins(bins_of, count, positives):
    """Return the `Maker` of the state of bins from `Samples`: the numbers of
    samples and events, or what weighted or dependent samples are worth.

    ``bins_of(scores)`` returns the bins (n,) of scores (n,); `count` and `positives`
    (n_bins,) are the numbers without weights.
    """
    return Maker(
        partial(_bins_state, bins_of=bins_of, count=count, positives=positives)
    )


def _bins_state(samples, bins_of, count, positives):
    """Return the state of bins: see `bins`."""
    if not _is_dependent(samples):
        return {
            "kind": "bins",
            "count": np.asarray(count, dtype=np.float64),
            "positives": np.asarray(positives, dtype=np.float64),
            "events": samples.events(None),
        }
    bin_of_sample = bins_of(samples.scores)
    n_bins = len(count)
    weight = weights_or_ones(samples.weight, len(samples.labels))
    total = np.bincount(bin_of_sample, weight, n_bins)
    square = np.bincount(bin_of_sample, weight**2, n_bins)
    events = np.bincount(bin_of_sample, weight * samples.labels, n_bins)
    frequency = np.divide(events, total, out=np.zeros(n_bins), where=total > 0)
    fitted = frequency[bin_of_sample]
    worth = np.divide(total, square, out=np.zeros(n_bins), where=square > 0)
    worth = worth / samples.design_effect(fitted)
    return {
        "kind": "bins",
        "count": total * worth,
        "positives": events * worth,
        "events": samples.events(fitted),
    }


def _bins_limits(state, bin_of_score, level):
    """Return the limits (n,) and (n,) of the event frequency in bins (n,): Wilson's."""
    low, high = binomial_interval(
        state["positives"], state["count"], confidence_level=level, interval="wilson"
    )
    return low[bin_of_score], high[bin_of_score]


# --- monotone curves ---


def monotone(first, last, weight, positives):
    """Return the `Maker` of the state of a curve that never falls from
    `Samples`: the numbers of samples and events in up to 512 ranges of scores.

    Parameters
    ----------
    first, last : ndarray of shape (m,)
        The ends of ranges of scores in increasing order; ranges of one score each have
        twice that score.
    weight, positives : ndarray of shape (m,)
        Total weight of the samples, and of the events, in each.
    """
    make = partial(
        _monotone_state, first=first, last=last, weight=weight, positives=positives
    )
    return Maker(make)


def _monotone_state(samples, first, last, weight, positives):
    """Return the state of a curve that never falls: see `monotone`."""
    if len(first) > _MOST_KNOTS:
        cumulative = np.cumsum(weight)
        middle = (cumulative - weight / 2) / cumulative[-1]
        starts = np.flatnonzero(np.diff(np.floor(middle * _MOST_KNOTS), prepend=-1.0))
        last = last[np.append(starts[1:], len(first)) - 1]
        first = first[starts]
        weight = np.add.reduceat(weight, starts)
        positives = np.add.reduceat(positives, starts)
    state = {
        "kind": "monotone",
        "first": first.astype(np.float64),
        "last": last.astype(np.float64),
    }
    worth = 1.0
    fitted = None
    if _is_dependent(samples):
        curve = isotonic_regression(positives / weight, weights=weight).x
        fitted = curve[np.searchsorted(last, samples.scores)]
        worth = samples.worth_of_weight / samples.design_effect(fitted)
    state["count"] = np.asarray(weight * worth, dtype=np.float64)
    state["positives"] = np.asarray(positives * worth, dtype=np.float64)
    state["events"] = samples.events(fitted)
    return state


def _monotone_limits(state, scores, level):
    """Return the limits (n,) and (n,) at scores (n,) of a curve that never falls.

    Between two scores of the state, the lower limit of the one below and the upper
    limit of the one above hold.
    """
    low, high = _monotone_table(
        state["count"].tobytes(), state["positives"].tobytes(), float(level)
    )
    at_most = np.searchsorted(state["last"], scores, side="left")
    first = np.append(state["first"], np.inf)
    is_inside = first[at_most] <= scores
    return (
        np.append(0.0, low)[at_most + is_inside],
        np.append(high, 1.0)[at_most],
    )


@lru_cache(maxsize=64)
def _monotone_table(count_bytes, positives_bytes, level):
    """Return the likelihood-ratio limits (m,) and (m,) of a monotone curve at m scores,
    from the numbers of samples and events at each, float64 in bytes.

    Notes
    -----
    The limits at score j are all t for which the samples do not reject that the curve
    is t there: twice the log-likelihood that this costs is at most the quantile of the
    chi-square law with one degree of freedom. Given t, the curve of greatest likelihood
    is, below j, isotonic regression of the samples below, capped at t, and above j,
    that of the samples above, raised to t [1]_. The law of that statistic depends on
    the curve; the chi-square quantile is the largest of those known: it is exact for
    isolated scores with many samples, and careful where the curve rises.

    References
    ----------
    .. [1] Banerjee and Wellner (2001), Likelihood ratio tests for monotone functions.
    """
    count = np.frombuffer(count_bytes)
    positives = np.frombuffer(positives_bytes)
    n_scores = len(count)
    fitted = isotonic_regression(positives / count, weights=count).x
    likelihood = np.sum(_log_likelihood(positives, count, fitted))
    sides = (
        _Side.below(count, positives),
        _Side.above(count, positives),
    )
    threshold = ndtri((1 + level) / 2) ** 2

    def costs_too_much(log_odds):
        """Return at which scores the log-odds (m,) of the curve are rejected."""
        log_event = log_expit(log_odds)
        log_other = log_expit(-log_odds)
        restricted = positives * log_event + (count - positives) * log_other
        for side in sides:
            restricted = restricted + side.log_likelihood(
                log_odds, log_event, log_other
            )
        return 2 * (likelihood - restricted) > threshold

    limits = []
    with np.errstate(divide="ignore"):
        estimate = np.log(fitted) - np.log1p(-fitted)
    for end in (-_CERTAIN, _CERTAIN):
        inside = np.clip(estimate, -_CERTAIN, _CERTAIN)
        outside = np.full(n_scores, end)
        is_open = ~costs_too_much(outside)
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            is_rejected = costs_too_much(middle)
            inside = np.where(is_rejected, inside, middle)
            outside = np.where(is_rejected, middle, outside)
        limit = expit(inside)
        limit[is_open] = float(end > 0)
        limits.append(np.sort(limit))
    return tuple(limits)


class _Side(NamedTuple):
    """Isotonic regressions, for each of m scores, of the samples on one side of it.

    `log_odds` (m, m) has a row for each score, in order of the distance from the other
    end: entries that the score has nothing to do with are infinite, so that no cap
    reaches them. `likelihood`, `positives` and `count` are sums over the entries that
    are left as they are, or capped: (m, m + 1), (m + 1,), (m + 1,).
    """

    log_odds: np.ndarray
    likelihood: np.ndarray
    positives: np.ndarray
    count: np.ndarray

    @classmethod
    def below(cls, count, positives):
        """Return the regressions of the samples below each score."""
        n_scores = len(count)
        log_odds = np.full((n_scores, n_scores), -np.inf)
        likelihood = np.zeros((n_scores, n_scores + 1))
        frequency = positives / count
        for j in range(1, n_scores):
            fit = isotonic_regression(frequency[:j], weights=count[:j]).x
            terms = _log_likelihood(positives[:j], count[:j], fit)
            likelihood[j, 1 : j + 1] = np.cumsum(terms)
            with np.errstate(divide="ignore"):
                log_odds[j, :j] = np.log(fit) - np.log1p(-fit)
        return cls(
            log_odds,
            likelihood,
            np.append(0.0, np.cumsum(positives)),
            np.append(0.0, np.cumsum(count)),
        )

    @classmethod
    def above(cls, count, positives):
        """Return the regressions of the samples above each score, as those of the other
        label below it in reversed order.
        """
        return _Reversed(cls.below(count[::-1], (count - positives)[::-1]))

    def log_likelihood(self, log_odds, log_event, log_other):
        """Return the log-likelihood (m,) of the samples on this side, under curves that
        are capped at log-odds (m,), of which the logarithms of the probabilities of
        both labels are given.
        """
        row = np.arange(len(log_odds))
        # Each row rises, so that those above the cap are its last entries.
        n_kept = row - np.count_nonzero(self.log_odds > log_odds[:, None], axis=1)
        capped_positives = self.positives[row] - self.positives[n_kept]
        capped_count = self.count[row] - self.count[n_kept]
        capped = capped_positives * log_event
        capped += (capped_count - capped_positives) * log_other
        return self.likelihood[row, n_kept] + capped


class _Reversed(NamedTuple):
    """A `_Side` of samples whose labels are swapped and whose order is reversed."""

    side: _Side

    def log_likelihood(self, log_odds, log_event, log_other):
        """Return what `_Side.log_likelihood` does, in the order of the samples."""
        return self.side.log_likelihood(
            -log_odds[::-1], log_other[::-1], log_event[::-1]
        )[::-1]


def _log_likelihood(positives, count, probability):
    """Return the log-likelihood of each number of events among samples."""
    negatives = count - positives
    return xlogy(positives, probability) + xlogy(negatives, 1 - probability)


# What each kind of state says: functions of a state, of what the limits depend on, and
# of the level.
LIMITS = {
    "regression": _regression_limits,
    "bins": _bins_limits,
    "monotone": _monotone_limits,
}


# By kind of state, the number of axes of its arrays, and the names of its numbers. The
# "model" of a regression or a softmax is not always there.
_KEYS = {
    "regression": ({"coef": 1, "sandwich": 2}, {"events", "degrees"}),
    "softmax": ({"sandwich": 2}, {"events", "degrees"}),
    "mixture": ({}, {"events"}),
    "bins": ({"count": 1, "positives": 1}, {"events"}),
    "monotone": ({"first": 1, "last": 1, "count": 1, "positives": 1}, {"events"}),
    "shift": ({}, {"below", "above", "level", "events"}),
}


def check_limits(value):
    """Return a state that was read from a document; raise a ValueError unless it can be
    one.
    """
    kind = value.get("kind") if isinstance(value, dict) else None
    axes, plain = _KEYS.get(kind, ({}, set()))
    if kind not in _KEYS or value.keys() - {"kind", "model"} != axes.keys() | plain:
        raise ValueError(f"must be the state of limits, found {value!r:.60}")
    for name in plain:
        if type(value[name]) is not float or not value[name] >= 0:
            raise ValueError(f"must have a number of at least 0 as {name}")
    arrays = {name: value[name] for name in value.keys() - plain - {"kind"}}
    for name, array in arrays.items():
        if not _is_valid(array, axes.get(name, 2)):
            raise ValueError(f"must have an array of numbers as {name}")
    if len({length for array in arrays.values() for length in array.shape}) > 1:
        raise ValueError("must have arrays of one length")
    if not 0 < value.get("level", 0.5) < 1:
        raise ValueError("must have a level between 0 and 1")
    if "count" in arrays:
        _check_counts(arrays)
    return value


def _is_valid(array, n_axes):
    """Return whether a value is a filled array of float64 with this number of axes."""
    is_array = isinstance(array, np.ndarray) and array.dtype == np.float64
    return (
        is_array and array.ndim == n_axes and not np.isnan(array).any() and array.size
    )


def _check_counts(arrays):
    """Raise a ValueError unless the numbers of samples and events of bins, or of ranges
    of scores, are possible.
    """
    count = arrays["count"]
    positives = arrays["positives"]
    if not ((positives >= 0) & (positives <= count) & (count < np.inf)).all():
        raise ValueError("must have at least as many samples as events")
    if "first" in arrays:
        ends = np.column_stack((arrays["first"], arrays["last"])).ravel()
        if not (np.diff(ends) >= 0).all() or not (count > 0).all():
            raise ValueError("must have samples in increasing ranges of scores")
