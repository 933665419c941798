"""Shapes of data: scores, true event probabilities, labels drawn from them, weights and
clusters.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

__all__ = ["SHAPES", "Sample"]


class Sample(NamedTuple):
    """Scores, labels and the probabilities that the labels were drawn from.

    `scores` and `truth` are (n,), or (n, K) for K classes. `population`, if there is
    one, returns both for many rows of the same distribution. `weight_type` is the
    meaning of the weights.
    """

    scores: np.ndarray
    truth: np.ndarray
    labels: np.ndarray
    sample_weight: np.ndarray | None = None
    clusters: np.ndarray | None = None
    population: object = None
    weight_type: object = "frequency"


def _binary(n, draw, curve=lambda s: s):
    def sample(rng):
        scores = draw(rng, n)
        truth = curve(scores)
        return Sample(scores, truth, rng.random(n) < truth)

    return sample


def _uniform(rng, n):
    return rng.random(n)


def _weights(rng):
    """Rows that are counted: each distinct (score, label) stands once, with the number
    of its rows as weight.
    """
    scores, weight = rng.random(250), rng.integers(1, 4, 250)
    scores = np.repeat(scores, weight)
    truth = scores**1.3
    labels = rng.random(len(scores)) < truth
    rows, counts = np.unique(
        np.column_stack((scores, labels)), axis=0, return_counts=True
    )
    return Sample(rows[:, 0], rows[:, 0] ** 1.3, rows[:, 1] == 1, counts)


def _clusters(strength, curve, n_clusters=60):
    """Clusters of 20 rows; the probabilities of a cluster all lie above or all below
    those of its scores.
    """

    def sample(rng):
        clusters = np.repeat(np.arange(n_clusters), 20)
        scores = rng.random(len(clusters))
        truth = curve(scores)
        sign = rng.choice([-1, 1], n_clusters)[clusters]
        chance = truth + strength * sign * truth * (1 - truth)
        labels = rng.random(len(clusters)) < chance
        return Sample(scores, truth, labels, clusters=clusters)

    return sample


def _modes(n, places, chances):
    """Scores at a few places, of equal shares, whose event probabilities are the
    chances.
    """

    def sample(rng):
        mode = rng.integers(0, len(places), n)
        truth = np.array(chances)[mode]
        return Sample(np.array(places)[mode], truth, rng.random(n) < truth)

    return sample


def _copula(sizes, draw, correlation=0.2):
    """Calibrated clusters of these sizes, whose rows share a normal deviate."""

    def sample(rng):
        clusters = np.repeat(np.arange(len(sizes)), sizes)
        scores = draw(rng, len(clusters))
        shared, own = (
            rng.normal(size=len(sizes))[clusters],
            rng.normal(size=len(clusters)),
        )
        labels = (
            ndtr(correlation**0.5 * shared + (1 - correlation) ** 0.5 * own) < scores
        )
        return Sample(scores, scores, labels, clusters=clusters)

    return sample


def _other_shares(rng):
    """Two calibrated samples, one after the other, of which the second has more high
    scores.
    """
    high = rng.random(2000) < np.repeat([0.1, 0.88], 1000)
    scores = np.where(high, rng.beta(150, 2, 2000), rng.beta(2, 150, 2000))
    return Sample(scores, scores, rng.random(2000) < scores)


def _importance(rng):
    scores = rng.random(800)
    return Sample(scores, scores, rng.random(800) < scores, 1 + rng.pareto(2.2, 800))


def _classes(power):
    def sample(rng):
        scores = rng.dirichlet(np.ones(4), 600)
        truth = scores**power / (scores**power).sum(axis=1, keepdims=True)
        labels = (rng.random((600, 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
        return Sample(scores, truth, labels)

    return sample


# name -> a sample from a random generator
def _two_models(first, second=None, clusters=None):
    """Scores (n, 2) of two models that are equally good: y = 1{z + u + e > 0} with
    standard normal z, u and e.
    """

    def sample(rng):
        z, u, e = rng.normal(size=(3, 500 if clusters is None else 900))
        if clusters is not None:
            e = (
                np.sqrt(0.3) * rng.normal(size=clusters)[np.arange(900) % clusters]
                + np.sqrt(0.7) * e
            )
        scores = np.column_stack((first(rng, z, u), (second or first)(rng, u, z)))
        code = None if clusters is None else np.arange(900) % clusters
        return Sample(ndtr(scores), ndtr(z + u), z + u + e > 0, clusters=code)

    return sample


def _near(rng, z, u):
    """The sum z + u with noise of a tenth of its variance: P(y | found) = Phi(found /
    (1.1 sqrt(1 + 2 / 11))).
    """
    found = z + u + np.sqrt(0.2) * rng.normal(size=len(z))
    return found / (1.1 * np.sqrt(1 + 2 / 11))


SHAPES = {
    "two models, both calibrated": _two_models(lambda rng, z, u: z / np.sqrt(2)),
    "two models, both too sure": _two_models(lambda rng, z, u: 1.5 * z / np.sqrt(2)),
    "two models, one too high, one too low": _two_models(
        lambda rng, z, u: z + u + 0.3, lambda rng, u, z: z + u - 0.3
    ),
    "two models, calibrated and almost equal": _two_models(_near),
    "two models, both calibrated, 60 clusters of 15": _two_models(
        lambda rng, z, u: z / np.sqrt(2), clusters=60
    ),
    "calibrated, n = 500": _binary(500, _uniform),
    "calibrated, n = 60": _binary(60, _uniform),
    "s^1.1, n = 500": _binary(500, _uniform, lambda s: s**1.1),
    "s^1.6, n = 200": _binary(200, _uniform, lambda s: s**1.6),
    "s^1.6, n = 1500": _binary(1500, _uniform, lambda s: s**1.6),
    "step, n = 500": _binary(500, _uniform, lambda s: np.where(s < 0.5, 0.8 * s, s)),
    "rare, calibrated, n = 500": _binary(500, lambda rng, n: rng.beta(1, 200, n)),
    "rare, twice too low, n = 500": _binary(
        500, lambda rng, n: rng.beta(1, 200, n), lambda s: np.minimum(2 * s, 1)
    ),
    "tied, calibrated, n = 300": _binary(
        300, lambda rng, n: rng.integers(1, 10, n) / 10
    ),
    "tied, s^1.6, n = 300": _binary(
        300, lambda rng, n: rng.integers(1, 10, n) / 10, lambda s: s**1.6
    ),
    "Beta(1, 19), calibrated, n = 200": _binary(200, lambda rng, n: rng.beta(1, 19, n)),
    "Beta(1, 999), calibrated, n = 1000": _binary(
        1000, lambda rng, n: rng.beta(1, 999, n)
    ),
    "calibrated, n = 20": _binary(20, _uniform),
    "constant .01, n = 100": _binary(100, lambda rng, n: np.full(n, 0.01)),
    "sure, calibrated, n = 500": _binary(500, lambda rng, n: rng.beta(2.8, 0.2, n)),
    "weights, s^1.3, 500 rows": _weights,
    "clusters, calibrated, 60 of 20": _clusters(0.8, lambda s: s),
    "clusters, s^1.6, 60 of 20": _clusters(0.8, lambda s: s**1.6),
    "clusters, s^1.6, 1,000 of 20": _clusters(0.8, lambda s: s**1.6, n_clusters=1000),
    "bimodal, calibrated, n = 500": _modes(500, (0.02, 0.98), (0.02, 0.98)),
    "bimodal, high mode .90, n = 500": _modes(500, (0.02, 0.98), (0.02, 0.9)),
    "bimodal, bias 0, slope .5, n = 400": _modes(400, (0.02, 0.98), (0.125, 0.875)),
    "three values, n = 300": _modes(300, (0.1, 0.5, 0.9), (0.1, 0.5, 0.9)),
    "1 % events, calibrated, n = 1000": _binary(
        1000, lambda rng, n: rng.beta(1, 99, n)
    ),
    "groups of five rows, calibrated": _binary(25, _uniform),
    "clusters, equal, 60 of 20": _copula([20] * 60, _uniform),
    "clusters, equal, 100 of 200": _copula([200] * 100, _uniform),
    "clusters, bimodal, 20 of 20": _copula(
        [20] * 20, lambda rng, n: rng.choice([0.02, 0.98], n)
    ),
    "clusters, unequal, 2 of 150 and 30 of 10": _copula(
        [150] * 2 + [10] * 30, _uniform
    ),
    "clusters, rare, 60 of 20": _copula([20] * 60, lambda rng, n: rng.beta(1, 30, n)),
    "importance weights, calibrated, 800 rows": _importance,
    "two modes, other shares, 1000 + 1000": _other_shares,
    "4 classes, calibrated, n = 600": _classes(1.0),
    "4 classes, p^1.5, n = 600": _classes(1.5),
}
