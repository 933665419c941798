"""Limits of a softmax of logits that are linear in the parameters of a map."""

from functools import partial
from typing import NamedTuple

import numpy as np

from skcalib._intervals.few_events import effective_events
from skcalib._intervals.one_probability.normal import (
    limits_of_shares,
    quantile_of,
)
from skcalib._intervals.one_probability.samples import Maker
from skcalib._intervals.one_probability.softmax_designs import Shares
from skcalib._intervals.sandwich import (
    left_out_covariance,
    left_out_steps,
    quadratic_form,
    satterthwaite,
)
from skcalib._rows.blocks import row_blocks

# A softmax of more parameters has no limits: its covariance would be larger than its
# samples. Of many samples these numbers suffice for a covariance.
_MOST_PARAMETERS = 250
_MOST_LOGITS = 20_000
_ROWS_PER_PARAMETER = 20
# A direction of less relative curvature changes no probability.
_NO_CURVATURE = 1e-12


def softmax(design_of, probabilities_of, ridge=0.0):
    """Return the `Maker` of the state of a softmax of linear logits from
    `Samples` whose scores are logits (n, K), perhaps with further columns, and whose
    labels are codes: the covariance of the parameters.

    Parameters
    ----------
    design_of, probabilities_of : callable
        Functions of such scores: a design of `softmax_designs`, and the probabilities
        (n, K) by the map.
    ridge : float or ndarray of shape (n_parameters,), default=0
        Second derivative of the ridge by each parameter.
    """
    make = partial(
        _state, design_of=design_of, probabilities_of=probabilities_of, ridge=ridge
    )
    return Maker(partial(_kept, design_of=design_of), make)


class _Kept(NamedTuple):
    """Samples that suffice for a covariance, logits (n, K) and codes (n,), with
    effective weights and clusters (n,) or None; their share of all samples, the
    effective number of samples of each class, without clusters, and whether all
    samples have weights or clusters.
    """

    logits: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    cluster: np.ndarray | None
    share: float
    events: float
    is_dependent: bool


def _kept(samples, design_of):
    """Return what is kept of `Samples`, or None if there are too many parameters."""
    n_rows, n_columns = samples.scores.shape
    empty = design_of(np.zeros((1, n_columns)))
    n_parameters = empty.n_parameters
    n_classes = empty.n_classes
    if n_parameters > _MOST_PARAMETERS:
        return None
    # A part of the samples determines the covariance well enough, unless they depend
    # on each other.
    n_chosen = max(_MOST_LOGITS // n_classes, _ROWS_PER_PARAMETER * n_parameters)
    chosen = slice(None)
    share = 1.0
    if n_rows > n_chosen and samples.cluster is None:
        chosen = np.random.default_rng(0).integers(n_rows, size=n_chosen)
        share = n_chosen / n_rows
    weight = samples.weight
    events = np.bincount(samples.labels, minlength=n_classes).min()
    if weight is None:
        weight = np.ones(n_rows if share == 1 else n_chosen)
    else:
        weight = samples.effective_weight[chosen]
        total = np.bincount(samples.labels, samples.weight, n_classes)
        square = np.bincount(samples.labels, samples.weight**2, n_classes)
        events = np.min(total**2 / np.where(square > 0, square, 1))
    return _Kept(
        samples.scores[chosen].astype(np.float64, copy=False),
        samples.labels[chosen],
        weight,
        samples.cluster,
        share,
        float(events),
        samples.is_dependent,
    )


def _state(kept, design_of, probabilities_of, ridge):
    """Return the state of a softmax: see `softmax`."""
    if kept is None:
        return None
    probabilities = probabilities_of(kept.logits)
    design = design_of(kept.logits)
    n_parameters = design.n_parameters
    information = _information(design, probabilities, kept.weight) / kept.share
    information += np.diag(np.broadcast_to(ridge, n_parameters))
    inverse = np.linalg.pinv(information, hermitian=True, rcond=_NO_CURVATURE)
    residual = -probabilities
    residual[np.arange(len(kept.codes)), kept.codes] += 1.0
    scores = kept.weight[:, None] * design.combined(residual)
    state = {"kind": "softmax", "events": kept.events, "degrees": np.inf}
    if kept.cluster is not None:
        state |= _of_clusters(kept, design, probabilities, scores, information)
        return state
    n_rows = len(scores)
    factor = n_rows / max(n_rows - n_parameters, 1) / kept.share
    covariance = factor * inverse @ (scores.T @ scores) @ inverse
    if not kept.is_dependent:
        covariance = _larger_of(inverse, covariance)
    state["covariance"] = covariance
    return state


def _larger_of(model, sandwich):
    """Return the covariance that has, in the directions in which both are uncorrelated,
    the larger variance of two: no linear function has less by it than by either.
    """
    values, vectors = np.linalg.eigh(model)
    is_varied = values > _NO_CURVATURE * values[-1]
    vectors = vectors[:, is_varied]
    deviations = np.sqrt(values[is_varied])
    whitened = vectors / deviations
    ratios, directions = np.linalg.eigh(whitened.T @ sandwich @ whitened)
    root = vectors * deviations @ directions * np.sqrt(np.maximum(ratios, 1.0))
    return root @ root.T


def _information(design, probabilities, weight):
    """Return Fisher's information (n_parameters, n_parameters) of samples."""
    expected = design.combined(probabilities)
    information = -(expected.T @ (weight[:, None] * expected))
    for k in range(probabilities.shape[1]):
        of_class = np.zeros_like(probabilities)
        of_class[:, k] = 1.0
        root = np.sqrt(weight * probabilities[:, k])[:, None]
        deviation = root * design.combined(of_class)
        information += deviation.T @ deviation
    return information


def _of_clusters(kept, design, probabilities, scores, information):
    """Return what clusters change in a state: covariance, degrees of freedom and the
    number of events, for the score functions (n, n_parameters) and the information.
    """
    # 1. Directions that change no probability have no information, and none is lost.
    values, vectors = np.linalg.eigh(information)
    basis = vectors[:, values > _NO_CURVATURE * values[-1]]
    information = basis.T @ information @ basis
    # 2. Clusters are left out one by one.
    order = np.argsort(kept.cluster, kind="stable")
    ends = np.flatnonzero(np.diff(kept.cluster[order], append=-1)) + 1
    steps = []
    variances = []
    for rows in np.split(order, ends[:-1]):
        part = design.of_rows(rows)
        weight = kept.weight[rows]
        own = basis.T @ _information(part, probabilities[rows], weight) @ basis
        score = scores[rows].sum(axis=0) @ basis
        try:
            steps.extend(left_out_steps(score[None], own[None], information))
        except np.linalg.LinAlgError:  # one cluster determines the map
            return {"covariance": np.zeros((len(basis),) * 2), "degrees": 0.0}
        variance = _information(part, probabilities[rows], weight**2)
        inside = basis.T @ variance @ basis
        variances.append(np.trace(np.linalg.solve(information, inside)))
    steps = np.array(steps) @ basis.T
    # 3. The class that is worth fewest samples.
    events = []
    for k, probability in enumerate(probabilities.T):
        is_class = kept.codes == k
        residual = is_class - probability
        events.append(
            effective_events(is_class, kept.weight, True, kept.cluster, residual)
        )
    return {
        "covariance": left_out_covariance(steps),
        "degrees": float(min(satterthwaite(np.array(variances)), len(steps) - 1)),
        "events": min(events),
    }


def softmax_limits(state, level):
    """Return a function that returns the limits (n, K) and (n, K) of probabilities (n,
    K) of a softmax with a design, on the log-odds of each class; (n,) and (n,) for the
    second of two classes.
    """
    quantile = quantile_of(state, level)
    covariance = state["covariance"]

    def limits_of(design, probabilities):
        if probabilities.shape[1] == 2:
            rest, own = probabilities.T
            features, matrix = design.of_two_classes()
            of_features = matrix @ covariance @ matrix.T
            half = quantile * np.sqrt(quadratic_form(of_features, features))
            return limits_of_shares(own, rest, half)
        low = np.empty_like(probabilities)
        high = np.empty_like(probabilities)
        form = design.form_of(covariance)
        for rows in row_blocks(len(probabilities), design.numbers_per_row):
            shares = Shares(np.ascontiguousarray(probabilities[rows].T))
            variance = design.of_rows(rows).variance(form, shares)
            half = quantile * shares.errors(variance)
            of_rows = limits_of_shares(shares.probability, shares.rest, half)
            low[rows], high[rows] = (limits.T for limits in of_rows)
        return low, high

    return limits_of
