"""Promises of decisions: certified thresholds in worlds where the risk of each
threshold is known, and net benefit.
"""

from functools import cache, partial

import numpy as np
from scipy.special import expit, logit
from sklearn.base import clone

from benchmarks.levels.promises import Promise
from benchmarks.levels.shapes import SHAPES, Sample
from skcalib import (
    IsotonicCalibration,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
)
from skcalib.decisions import certified_routing, certified_threshold, net_benefit

__all__ = ["BANDS", "BROKEN", "PEERS", "broken_and_accepted", "out_of_fold"]

_GAINED = 0.03  # share of the answers that a small model gains against a large one
# rows that the risk of a threshold is taken from, without the noise of labels
_POPULATION = 200_000


# --- Worlds: how sure the model is of its predicted class, and how often it is right th


def _mostly(rng, n):
    return 0.5 + 0.5 * rng.beta(2, 1, n)


_WORLDS = {
    "calibrated": (_mostly, lambda s: s),
    "overconfident": (_mostly, lambda s: expit(0.6 * logit(np.minimum(s, 1 - 1e-12)))),
    "sure": (lambda rng, n: 1 - 0.5 * rng.beta(0.4, 1, n), lambda s: s),
    "dipped": (_mostly, lambda s: np.where((s > 0.93) & (s < 0.97), s - 0.25, s)),
    "flat at the limit": (_mostly, lambda s: np.full(len(s), 0.8999)),
    "tied": (lambda rng, n: rng.choice([0.55, 0.7, 0.8, 0.9, 0.95, 1], n, p=[0.1, 0.2, 0.2, 0.2, 0.2, 0.1]),  # noqa: E501
             lambda s: s - 0.02),
}  # fmt: skip


def _of_two(rng, n, world):
    """Return probabilities of the second of two classes, either of which may be the
    predicted one, and their truth.
    """
    draw, curve = _WORLDS[world]
    confidence = draw(rng, n)
    second = rng.random(n) < 0.5
    return tuple(
        np.where(second, one, 1 - one) for one in (confidence, curve(confidence))
    )


def _of_many(rng, n, n_classes):
    """Return probabilities of K classes from logits that are 1.3 times too large, and
    the true ones.
    """
    logits = rng.standard_normal((n, n_classes)) * (2 if n_classes == 3 else 3)
    proba, truth = (
        np.exp(one - logits.max() * factor)
        for one, factor in ((1.3 * logits, 1.3), (logits, 1))
    )
    return tuple(one / one.sum(axis=1, keepdims=True) for one in (proba, truth))


@cache
def _population(draw):
    """Return a function, the same for the same world, that returns scores and truths of
    many rows.
    """
    of_classes = draw(np.random.default_rng(0), 1)[0].ndim == 2
    return partial(
        draw, np.random.default_rng(12345), 20_000 if of_classes else _POPULATION
    )


def _sample(draw, n):
    def sample(rng):
        scores, truth = draw(rng, n)
        if truth.ndim == 1:
            labels = rng.random(n) < truth
        else:
            labels = (rng.random((n, 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
        return Sample(scores, truth, labels, population=_population(draw))

    return sample


def _weighted(draw, n):
    """Rows of which events are kept always and the others in a third of cases, with
    weights that undo that.
    """

    def sample(rng):
        all_rows = _sample(draw, 3 * n)(rng)
        kept = np.flatnonzero(all_rows.labels | (rng.random(3 * n) < 1 / 3))
        weight = np.where(all_rows.labels, 1.0, 3.0)[kept]
        rows = [one[kept] for one in all_rows[:3]]
        return Sample(*rows, weight, np.arange(len(kept)), all_rows.population)

    return sample


def _clustered(draw, n, size=10):
    """Rows in clusters: labels of a cluster have a common tendency."""

    def sample(rng):
        scores, truth = draw(rng, n)
        clusters = np.arange(n) // size
        tendency = rng.choice([-1, 1], n // size + 1)[clusters]
        labels = rng.random(n) < truth + 0.6 * tendency * truth * (1 - truth)
        return Sample(
            scores, truth, labels, clusters=clusters, population=_population(draw)
        )

    return sample


def _routed(n, loss):
    """Answers that are lost to a small model, and its confidence; in all, it loses
    `loss` on balance.
    """

    def sample(rng):
        confidence = rng.random(n)
        truth = _GAINED + 2 * loss * (1 - confidence)
        return Sample(confidence, truth, rng.random(n) < truth)

    return sample


_DRAWS = {world: partial(_of_two, world=world) for world in _WORLDS}
_DRAWS |= {f"{k} classes, too sure": partial(_of_many, n_classes=k) for k in (3, 100)}
SHAPES |= {
    f"{name}, {n} rows": _sample(draw, n)
    for name, draw in _DRAWS.items()
    for n in (100, 300, 2000)
}


def _common(rng, n):
    scores = rng.beta(1, 3, n)
    return scores, scores


def _rare(rng, n):
    scores = rng.beta(1, 9, n)
    return scores, scores


def _twice(rng, n):
    scores = rng.beta(1, 3, n)
    return scores, scores**1.6


SHAPES |= {
    "24 events in 240": _sample(_rare, 240),
    "100 events in 1,000": _sample(_rare, 1000),
    "250 events in 1,000": _sample(_common, 1000),
    "overconfident, 160 events in 1,000": _sample(_twice, 1000),
    "weights, a third of the others": _weighted(_common, 300),
    "60 clusters of 10": _clustered(_common, 600),
    "30 clusters of 10": _clustered(_common, 300),
}
for _n, _loss in ((500, 0.01), (2000, 0.01), (200, 0.05), (500, 0.05), (2000, 0.05)):
    SHAPES[f"small model loses {1.1 * _loss:.3g}, {_n} rows"] = _routed(_n, 1.1 * _loss)


# --- Certified thresholds -------------------------------------------------------------


@cache
def _tail(population, promise):
    """Return the scores of the population in order and, at or above each, the share of
    rows and of what is wrong.
    """
    score, truth = population()
    right = truth
    if score.ndim == 2:
        predicted = score.argmax(axis=1)
        score, right = (one[np.arange(len(one)), predicted] for one in (score, truth))
    elif promise in ("error_when_answered", "answered_and_wrong"):
        score, right = (
            np.maximum(score, 1 - score),
            np.where(score > 0.5, truth, 1 - truth),
        )
    order = np.argsort(score)
    wrong = np.append(np.cumsum((1 - right)[order][::-1])[::-1], 0)
    accepted = np.arange(len(score), -1, -1)
    if promise == "recall":
        events = np.append(np.cumsum(right[order][::-1])[::-1], 0)
        risk = 1 - events / events[0]
    else:
        of = {"answered_and_wrong": len(score), "false_positive_rate": wrong[0]}
        risk = wrong / np.maximum(of.get(promise, accepted), 1)
    return score[order], risk, accepted / len(score)


def broken_and_accepted(promise, limit, sample, threshold):
    """Return whether a threshold breaks its promise on new rows, and what it accepts of
    them.
    """
    scores, risk, accepted = _tail(sample.population, promise)
    at = np.searchsorted(scores, threshold)
    return risk[at] > limit + 1e-9, accepted[at]


def _breaks(promise, limit, sample, seed, **options):
    """Return whether a certified threshold breaks its promise on new rows, and what it
    accepts of them.
    """
    target = 1 - limit if promise in ("precision", "recall") else limit
    labels = np.arange(2 if sample.scores.ndim == 1 else sample.scores.shape[1])
    found = certified_threshold(
        sample.labels,
        sample.scores,
        promise=promise,
        target=target,
        labels=labels,
        **options,
    )
    return broken_and_accepted(promise, limit, sample, found.threshold)


def _naive(promise, limit, sample, seed):
    """Return the same for the most lenient threshold whose error rate in the sample is
    within the limit.
    """
    order = np.argsort(-sample.scores, kind="stable")
    rate = np.cumsum(~sample.labels[order]) / np.arange(1, len(order) + 1)
    last = np.append(np.diff(sample.scores[order]) != 0, True)
    within = np.flatnonzero(last & (rate <= limit))
    threshold = sample.scores[order][within[-1]] if len(within) else np.inf
    return broken_and_accepted(promise, limit, sample, threshold)


def _loses(max_loss, sample, seed):
    """Return whether a routing loses too much, and what it leaves to the small
    model.
    """
    lost, rng = sample.labels, np.random.default_rng([seed, 1])
    gained = ~lost & (rng.random(len(lost)) < _GAINED / (1 - sample.truth))
    both = rng.random(len(lost)) < 0.7
    found = certified_routing(
        gained | both & ~lost, lost | both & ~gained, sample.scores, max_loss=max_loss
    )
    t = min(found.threshold, 1.0)
    slope = (sample.truth[0] - _GAINED) / (1 - sample.scores[0])
    return slope * (1 - t) ** 2 / 2 > max_loss, 1 - t


_BY_WORLD = {
    n: tuple(f"{world}, {n} rows" for world in _WORLDS) for n in (100, 300, 2000)
}
_ALL = tuple(shape for shapes in _BY_WORLD.values() for shape in shapes)
PEERS = tuple(
    f"{world}, {n} rows"
    for world in ("calibrated", "overconfident", "sure")
    for n in (300, 2000)
)
_MANY = tuple(
    f"{k} classes, too sure, {n} rows" for k in (3, 100) for n in (100, 300, 2000)
)
_ROUTED = tuple(f"small model loses {1.1 * 0.01:.3g}, {n} rows" for n in (500, 2000))
_ROUTED_5 = tuple(
    f"small model loses {1.1 * 0.05:.3g}, {n} rows" for n in (200, 500, 2000)
)

BROKEN = [
    Promise(
        "error when answered",
        0.1,
        partial(_breaks, "error_when_answered", 0.1),
        _ALL + _MANY,
    ),
    Promise(
        "error when answered, start .95",
        0.1,
        partial(_breaks, "error_when_answered", 0.1, start=0.95),
        _ALL,
    ),
    Promise(
        "answered and wrong",
        0.1,
        partial(_breaks, "answered_and_wrong", 0.1),
        _ALL + _MANY,
    ),
    Promise("precision", 0.1, partial(_breaks, "precision", 0.1), _ALL),
    Promise("recall", 0.1, partial(_breaks, "recall", 0.1), _ALL),
    Promise(
        "false positive rate", 0.1, partial(_breaks, "false_positive_rate", 0.1), _ALL
    ),
    Promise("routing, loss .01", 0.1, partial(_loses, 0.01), _ROUTED),
    Promise("routing, loss .05", 0.1, partial(_loses, 0.05), _ROUTED_5),
    Promise("naive search: precision", 0.1, partial(_naive, "precision", 0.1), _ALL),
]


# --- Maps that were fitted to the rows of the certificate -----------------------------


def _flat_events(rng, n):
    """Scores that say nothing, in a world just below the floor."""
    return rng.beta(4, 1, n), np.full(n, 0.8999)


SHAPES |= {
    f"scores say nothing, {n} rows": _sample(_flat_events, n) for n in (300, 1000)
}
SHAPES |= {
    f"{world}, 1000 rows": _sample(_DRAWS[world], 1000)
    for world in ("calibrated", "overconfident")
}
SHAPES["50 classes, too sure, 1000 rows"] = _sample(
    partial(_of_many, n_classes=50), 1000
)


def out_of_fold(recalibrator, sample):
    """Return the probabilities of 5 folds, each from a map of the other four."""
    fold = np.arange(len(sample.labels)) % 5
    proba = np.empty(len(sample.labels))
    for held_out in range(5):
        is_held_out = fold == held_out
        fitted = clone(recalibrator).fit(
            sample.scores[~is_held_out], sample.labels[~is_held_out]
        )
        proba[is_held_out] = fitted.predict_proba(sample.scores[is_held_out])[:, 1]
    return proba


def _of_same_rows(recalibrator, promise, limit, way, sample, seed):
    """Return whether a threshold breaks its promise after a map of the same rows, and
    what it accepts of new ones.

    `way` is "unsaid", "said" (by `fitted_on`), or "cross-fitted".
    """
    n_classes = 2 if sample.scores.ndim == 1 else sample.scores.shape[1]
    labels = np.arange(n_classes)
    fitted = clone(recalibrator).fit(sample.scores, sample.labels.astype(int))
    proba = fitted.predict_proba(sample.scores)
    if way == "cross-fitted":
        proba = out_of_fold(recalibrator, sample)
    fitted_on = {"unsaid": None, "said": fitted, "cross-fitted": "cross-fitted"}[way]
    found = certified_threshold(
        sample.labels.astype(int),
        proba,
        promise=promise,
        target=1 - limit if promise == "precision" else limit,
        labels=labels,
        fitted_on=fitted_on,
    )
    scores, truth = sample.population()
    new = fitted.predict_proba(scores)
    accepted = found.accepts(new)
    if not accepted.any():
        return False, 0.0
    right = truth
    if truth.ndim == 2:
        right = truth[np.arange(len(truth)), new.argmax(axis=1)]
    elif promise != "precision":
        right = np.where(new[:, 1] > 0.5, truth, 1 - truth)
    return 1 - right[accepted].mean() > limit + 1e-9, accepted.mean()


_FLAT = ("scores say nothing, 300 rows", "scores say nothing, 1000 rows")
_SAME_BINARY = (
    *_FLAT,
    *(
        f"{world}, {n} rows"
        for world in ("calibrated", "overconfident")
        for n in (300, 1000)
    ),
)
_SAME_CLASSES = ("3 classes, too sure, 300 rows", "50 classes, too sure, 1000 rows")


def _same(name, recalibrator, promise, way, shapes):
    kept = partial(_of_same_rows, recalibrator, promise, 0.1, way)
    return Promise(name, 0.1, kept, shapes)


BROKEN += [
    _same(
        "precision, Platt's map of the same rows",
        PlattScaling(),
        "precision",
        "unsaid",
        _SAME_BINARY,
    ),
    _same(
        "precision, Platt's map of the same rows, fitted_on",
        PlattScaling(),
        "precision",
        "said",
        _SAME_BINARY,
    ),
    _same(
        "precision, isotonic map of the same rows",
        IsotonicCalibration(),
        "precision",
        "unsaid",
        _FLAT,
    ),
    _same(
        "precision, cross-fitted isotonic map",
        IsotonicCalibration(),
        "precision",
        "cross-fitted",
        _FLAT,
    ),
    _same(
        "precision, cross-fitted Platt's map",
        PlattScaling(),
        "precision",
        "cross-fitted",
        _FLAT,
    ),
    _same(
        "error when answered, temperature of the same rows",
        TemperatureScaling(),
        "error_when_answered",
        "unsaid",
        _SAME_CLASSES,
    ),
    _same(
        "error when answered, temperature of the same rows, fitted_on",
        TemperatureScaling(),
        "error_when_answered",
        "said",
        _SAME_CLASSES,
    ),
    _same(
        "error when answered, vector scaling of the same rows",
        VectorScaling(),
        "error_when_answered",
        "unsaid",
        _SAME_CLASSES,
    ),
]


# --- Net benefit ----------------------------------------------------------------------


@cache
def _true_net_benefit(population, thresholds, against_all):
    scores, truth = population()
    thresholds = np.array(thresholds)
    price = thresholds / (1 - thresholds)
    treated = scores[:, None] >= thresholds
    gain = truth[:, None] - (1 - truth[:, None]) * price
    return np.mean((treated ^ against_all) * gain * (-1 if against_all else 1), axis=0)


def _holds(
    thresholds, sample, seed, *, against_all=False, standardize=False, **options
):
    thresholds = np.atleast_1d(thresholds)
    found = net_benefit(
        sample.labels,
        sample.scores,
        thresholds=thresholds,
        reference="all" if against_all else "none",
        standardize=standardize,
        sample_weight=sample.sample_weight,
        clusters=sample.clusters,
        n_resamples=300,
        labels=[0, 1],
        random_state=seed,
        **options,
    )
    truth = _true_net_benefit(
        sample.population, tuple(thresholds.tolist()), against_all
    )
    truth = truth / (sample.population()[1].mean() if standardize else 1)
    return bool(np.all((found.low <= truth) & (truth <= found.high)))


_ROWS = (
    "24 events in 240",
    "100 events in 1,000",
    "250 events in 1,000",
    "overconfident, 160 events in 1,000",
    "weights, a third of the others",
    "60 clusters of 10",
    "30 clusters of 10",
)
_GRID = np.arange(1, 31) / 100

BANDS = [
    Promise("net benefit at .1", 0.9, partial(_holds, 0.1), _ROWS),
    Promise("net benefit at .3", 0.9, partial(_holds, 0.3), _ROWS),
    Promise("net benefit at .6", 0.9, partial(_holds, 0.6), _ROWS[2:]),
    Promise(
        "standardised net benefit at .1",
        0.9,
        partial(_holds, 0.1, standardize=True),
        _ROWS,
    ),
    Promise(
        "net benefit less treat all, at .1",
        0.9,
        partial(_holds, 0.1, against_all=True),
        _ROWS,
    ),
    Promise(
        "net benefit, band .01 to .3",
        0.9,
        partial(_holds, _GRID, simultaneous=True),
        _ROWS,
    ),
]
