"""Limits of a softmax of logits that are linear in the parameters of a map."""

from functools import partial
from typing import NamedTuple

import numpy as np

from skcalib._intervals.few_events import effective_events
from skcalib._intervals.one_probability.normal import (
    limits_of_shares,
    quantile_of,
)
from skcalib._intervals.one_probability.samples import LimitsMaker
from skcalib._intervals.one_probability.softmax_designs import ClassProbabilities
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
    """Return the `LimitsMaker` of the state of a softmax of linear logits from
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
    return LimitsMaker(partial(_kept, design_of=design_of), make)


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
    """Return the `_Kept` samples that a covariance is computed from, or None if there
    are too many parameters; ``design_of(scores)`` returns a design of
    `softmax_designs`.
    """
    n_rows, n_columns = samples.scores.shape
    example = design_of(np.zeros((1, n_columns)))
    n_parameters = example.n_parameters
    n_classes = example.n_classes
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
    # How many samples the rarest class is worth: with weights, Kish's number.
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
    """Return the state of the limits of a softmax: a dict with the covariance of its
    parameters, the degrees of freedom and the number of events; None for None.

    `kept` are the `_Kept` samples. ``design_of(scores)`` and
    ``probabilities_of(scores)`` return their design and their probabilities (n, K);
    `ridge` is the second derivative of a ridge by each parameter.
    """
    if kept is None:
        return None
    probabilities = probabilities_of(kept.logits)
    design = design_of(kept.logits)
    n_parameters = design.n_parameters
    # Sums over the kept samples are divided by their share to be those of all samples.
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
    # The sandwich covariance, with the usual factor of small samples.
    n_rows = len(scores)
    factor = n_rows / max(n_rows - n_parameters, 1) / kept.share
    covariance = factor * inverse @ (scores.T @ scores) @ inverse
    if not kept.is_dependent:  # the inverse information holds without weights alone
        covariance = _larger_of(inverse, covariance)
    state["covariance"] = covariance
    return state


def _larger_of(model, sandwich):
    """Return a covariance (d, d) by which no linear function of the parameters has a
    smaller variance than by either of two: in the directions in which both are
    uncorrelated it has the larger variance.
    """
    # In coordinates in which `model` is the identity, the eigenvectors of `sandwich`
    # are these directions, and its eigenvalues the ratios of the variances.
    values, vectors = np.linalg.eigh(model)
    is_varied = values > _NO_CURVATURE * values[-1]
    vectors = vectors[:, is_varied]
    deviations = np.sqrt(values[is_varied])
    whitened = vectors / deviations
    ratios, directions = np.linalg.eigh(whitened.T @ sandwich @ whitened)
    root = vectors * deviations @ directions * np.sqrt(np.maximum(ratios, 1.0))
    return root @ root.T


def _information(design, probabilities, weight):
    """Return Fisher's information (n_parameters, n_parameters) of samples with a
    design, probabilities (n, K) and weights (n,): the sum over samples of the
    covariance of the derivatives of the logit of a class that is drawn by these.
    """
    # The derivatives of the mean logit; a covariance is the mean of squares less the
    # square of the mean.
    expected = design.combined(probabilities)
    information = -(expected.T @ (weight[:, None] * expected))
    for k in range(probabilities.shape[1]):
        is_class = np.zeros_like(probabilities)
        is_class[:, k] = 1.0
        root = np.sqrt(weight * probabilities[:, k])[:, None]
        derivatives = root * design.combined(is_class)
        information += derivatives.T @ derivatives
    return information


def _of_clusters(kept, design, probabilities, scores, information):
    """Return what clusters change in the state of a softmax, as a dict: covariance,
    degrees of freedom and the number of events.

    `scores` (n, n_parameters) are the derivatives of the samples' log-likelihoods by
    the parameters, `information` (n_parameters, n_parameters) is Fisher's.
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
        own_information = _information(part, probabilities[rows], weight)
        own_information = basis.T @ own_information @ basis
        score = scores[rows].sum(axis=0) @ basis
        try:
            # what the fit without this cluster changes in the parameters
            step = left_out_steps(score[None], own_information[None], information)
            steps.extend(step)
        except np.linalg.LinAlgError:  # one cluster determines the map
            return {"covariance": np.zeros((len(basis),) * 2), "degrees": 0.0}
        # The cluster's part in the variance of the parameters, if samples are
        # independent, for the degrees of freedom.
        variance = _information(part, probabilities[rows], weight**2)
        variance = basis.T @ variance @ basis
        variances.append(np.trace(np.linalg.solve(information, variance)))
    steps = np.array(steps) @ basis.T
    # 3. The class that is worth fewest samples.
    events = []
    for k, probability in enumerate(probabilities.T):
        is_class = kept.codes == k
        residual = is_class - probability
        n_events = effective_events(
            is_class,
            kept.weight,
            importance=True,
            cluster=kept.cluster,
            residual=residual,
        )
        events.append(n_events)
    return {
        "covariance": left_out_covariance(steps),
        "degrees": float(min(satterthwaite(np.array(variances)), len(steps) - 1)),
        "events": min(events),
    }


def softmax_limits(state, level):
    """Return a function of a design and of the probabilities (n, K) of a softmax with
    it, which returns their limits (n, K) and (n, K), computed on the log-odds of each
    class; (n,) and (n,) for the second of two classes.

    `state` is the dict of the softmax; `level` is the coverage.
    """
    quantile = quantile_of(state, level)
    covariance = state["covariance"]

    def limits_of(design, probabilities):
        """Return the lower and the upper limits of probabilities (n, K)."""
        if probabilities.shape[1] == 2:
            rest, own = probabilities.T
            features, matrix = design.of_two_classes()
            covariance_of_features = matrix @ covariance @ matrix.T
            variance = quadratic_form(covariance_of_features, features)
            return limits_of_shares(own, rest, quantile * np.sqrt(variance))
        low = np.empty_like(probabilities)
        high = np.empty_like(probabilities)
        prepared = design.prepared(covariance)
        for rows in row_blocks(len(probabilities), design.numbers_per_row):
            by_class = ClassProbabilities(np.ascontiguousarray(probabilities[rows].T))
            variance = design.of_rows(rows).variance(prepared, by_class)
            half = quantile * by_class.errors(variance)
            lower, upper = limits_of_shares(by_class.values, by_class.of_others, half)
            low[rows] = lower.T
            high[rows] = upper.T
        return low, high

    return limits_of
