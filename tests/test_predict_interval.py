"""Limits for the event frequency at one score, against plain twins."""

import inspect
import json
import pickle

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.linalg import eigh, orth
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_expit, logit, softmax
from scipy.stats import chi2, norm, t
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import skcalib
from skcalib import (
    BetaCalibration,
    CrossFittedClassifier,
    DirichletCalibration,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    QuadraticScaling,
    RecalibratedClassifierCV,
    Recalibrator,
    ScalingBinning,
    SplineCalibration,
    StackedRecalibrator,
    TemperatureScaling,
    UniformMassBinning,
    VectorScaling,
    VennAbers,
    expand_soft_labels,
)
from skcalib._intervals.one_probability import monotone, regression
from skcalib._solvers.temperature import smoothed_inverse_temperature
from skcalib.export import from_dict, to_dict

NEW = np.array([0.01, 0.2, 0.35, 0.5, 0.77, 0.98])
TWO_CLASSES = [
    PlattScaling(),
    PlattScaling(loss="squared", clip=None),
    BetaCalibration(),
    BetaCalibration("ab"),
    QuadraticScaling(),
    TemperatureScaling(),
    VectorScaling(),
    MatrixScaling(),
    SplineCalibration(),
    HistogramBinning(),
    UniformMassBinning(8),
    ScalingBinning(),
    IsotonicCalibration(),
    IsotonicCalibration(centered=True),
    VennAbers(),
    VennAbers(max_n_knots=10),
]


def rows(n=150, seed=0, slope=0.7):
    rng = np.random.default_rng(seed)
    scores = rng.beta(2, 2, n)
    return scores, rng.random(n) < expit(slope * logit(scores))


def design(scores):
    return np.column_stack((logit(scores), np.ones(len(scores))))


def plain_jeffreys(x, y, weight, ridge=0.0):
    """Return the coefficients of greatest likelihood times Jeffreys' prior, with a
    ridge (d, d).
    """

    def loss(coef):
        p = expit(x @ coef)
        information = sum(
            w * q * (1 - q) * np.outer(row, row)
            for row, q, w in zip(x, p, weight, strict=True)
        )
        information = information + ridge
        likelihood = weight @ log_expit(np.where(y, 1, -1) * (x @ coef))
        likelihood -= 0.5 * np.sum(coef * np.dot(ridge, coef))
        return -likelihood - 0.5 * np.linalg.slogdet(information)[1]

    return minimize(loss, np.zeros(x.shape[1]), tol=1e-10).x


def plain_limits(scores, y, new, *, weight=None, clusters=None, level=0.9):
    """Return the limits of a logistic regression, one sample after the other."""
    x = design(scores)
    w = np.ones(len(y)) if weight is None else weight * weight.sum() / sum(weight**2)
    coef = plain_jeffreys(x, y, w)
    p = expit(x @ coef)
    inverse = np.linalg.inv(x.T @ np.diag(w * p * (1 - p)) @ x)
    quantile = norm.ppf((1 + level) / 2)
    meat = np.zeros((2, 2))
    if clusters is None:
        for i in range(len(y)):
            hat = w[i] * p[i] * (1 - p[i]) * x[i] @ inverse @ x[i]
            score = w[i] * (y[i] - p[i]) / (1 - hat) * x[i]
            meat += np.outer(score, score)
    else:
        names = np.unique(clusters)
        information = np.linalg.inv(inverse)
        variances = []
        for name in names:
            inside = clusters == name
            own = x[inside].T @ np.diag((w * p * (1 - p))[inside]) @ x[inside]
            score = (w[inside] * (y - p)[inside]) @ x[inside]
            # the fit moves by the step without this cluster
            step = np.linalg.solve(information - own, score)
            outer = information @ np.outer(step, step) @ information
            meat += outer * (len(names) - 1) / len(names)
            squares = (w**2 * p * (1 - p))[inside]
            variances.append(np.sum(squares * np.diag(x @ inverse @ x.T)[inside]))
        degrees = sum(variances) ** 2 / sum(np.square(variances))
        quantile = t.ppf((1 + level) / 2, min(degrees, len(names) - 1))
    sandwich = inverse @ meat @ inverse
    limits = []
    for row in design(new):
        variance = row @ sandwich @ row
        if weight is None and clusters is None:
            variance = max(variance, row @ inverse @ row)
        half = quantile * np.sqrt(variance)
        limits.append([expit(row @ coef - half), expit(row @ coef + half)])
    return np.array(limits)


def widened(limits, probability):
    low = np.minimum(limits[:, 0], probability)
    return np.column_stack((low, np.maximum(limits[:, 1], probability)))


@pytest.mark.parametrize("kind", ["plain", "weights", "clusters", "separable"])
def test_regressions_have_the_limits_of_their_own_fit(kind):
    scores, y = rows(80)
    options = {}
    if kind == "weights":
        options["weight"] = np.random.default_rng(1).gamma(2, size=len(y))
    if kind == "clusters":
        options["clusters"] = np.arange(len(y)) // 7
    if kind == "separable":
        y = scores > 0.5
    fitted = PlattScaling(clip=None).fit(
        scores, y, options.get("weight"), clusters=options.get("clusters")
    )
    for level in (0.5, 0.9):
        twin = plain_limits(scores, y, NEW, level=level, **options)
        np.testing.assert_allclose(
            fitted.predict_interval(NEW, level),
            widened(twin, fitted.predict_proba(NEW)[:, 1]),
            atol=1e-4,
        )


def rows_with_features(n=150):
    """Return scores with a feature that matters and two that do not, one of them a
    constant, and labels.
    """
    rng = np.random.default_rng(3)
    scores = rng.beta(2, 2, n)
    age = rng.normal(60, 15, n)
    others = np.column_stack((rng.normal(size=n), np.full(n, 7.0)))
    y = rng.random(n) < expit(0.8 * logit(scores) + 0.05 * (age - 60))
    return np.column_stack((scores, age, others)), y


@pytest.mark.parametrize("method", [PlattScaling, BetaCalibration])
def test_limits_of_a_regression_depend_on_its_features(method):
    """Their coefficients are parameters whose ridge is known."""
    X, y = rows_with_features()
    fitted = method(features=[1, 2, 3], clip=None).fit(X, y)
    assert np.isfinite(fitted.feature_penalty_)
    deviation = np.array([*X[:, 1:3].std(axis=0), np.inf])

    def all_features(X):
        score = X[:, 0]
        own = [logit(score)]
        if method is BetaCalibration:
            own = [np.log(2 * score), -np.log(2 - 2 * score)]
        side = (X[:, 1:] - [*X0.mean(axis=0), 7.0]) / deviation
        return np.column_stack((*own, np.ones(len(X)), side))

    X0 = X[:, 1:3]
    x = all_features(X)
    n_own = x.shape[1] - 3
    ridge = fitted.feature_penalty_ * np.diag([0.0] * n_own + [1.0] * 3)
    coef = plain_jeffreys(x, y, np.ones(len(y)), ridge)
    p = expit(x @ coef)
    inverse = np.linalg.inv(x.T @ np.diag(p * (1 - p)) @ x + ridge)
    meat = 0
    for i in range(len(y)):
        hat = p[i] * (1 - p[i]) * x[i] @ inverse @ x[i]
        score = (y[i] - p[i]) / (1 - hat) * x[i]
        meat = meat + np.outer(score, score)
    new = np.array([[0.3, 40.0, 1.0, 7.0], [0.3, 80.0, 0.0, 7.0], [0.9, 60, 2, 7]])
    rows = all_features(new)
    variances = [
        max(row @ inverse @ row, row @ inverse @ meat @ inverse @ row) for row in rows
    ]
    half = norm.ppf(0.95) * np.sqrt(variances)
    twin = np.column_stack((expit(rows @ coef - half), expit(rows @ coef + half)))
    np.testing.assert_allclose(
        fitted.predict_interval(new),
        widened(twin, fitted.predict_proba(new)[:, 1]),
        atol=1e-4,
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_limits_of_a_temperature_depend_on_its_features(n_classes):
    rng = np.random.default_rng(5)
    n = 300
    logits = 3 * rng.normal(size=(n, n_classes))
    length = rng.normal(100, 20, n)
    factor = np.exp(-0.4 - (length - 100) / 30)
    chance = softmax(logits * factor[:, None], axis=1)
    y = (chance.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    X = np.column_stack((logits, length, rng.normal(size=n)))
    fitted = TemperatureScaling(
        features=[n_classes, n_classes + 1], input="logit", clip=None
    ).fit(X, y)
    assert np.isfinite(fitted.feature_penalty_)
    side = X[:, n_classes:]
    mean, deviation = side.mean(axis=0), side.std(axis=0)

    def by(X, c):
        log_factor = c[0] + (X[:, n_classes:] - mean) / deviation @ c[1:]
        return softmax(X[:, :n_classes] * np.exp(log_factor)[:, None], axis=1)

    start = np.append(
        np.log(fitted.inverse_temperature_), -fitted.feature_coef_ * deviation
    )
    one = np.arange(n)
    scores = gradient(lambda c: np.log(by(X, c)[one, y]), start).T
    # the expected information
    information = np.diag([0.0, *2 * [fitted.feature_penalty_]])
    for k in range(n_classes):
        of_class = gradient(lambda c, k=k: np.log(by(X, c)[:, k]), start)
        information += of_class * by(X, start)[:, k] @ of_class.T
    inverse = np.linalg.inv(information)
    sandwich = n / (n - 3) * inverse @ scores.T @ scores @ inverse
    covariance = larger_of(inverse, sandwich)
    new = X[:4]
    found = fitted.predict_interval(new).reshape(4, -1, 2)
    for k in range(n_classes)[-len(found[0]) :]:
        log_odds = lambda c, k=k: logit(by(new, c)[:, k])  # noqa: E731
        direction = gradient(log_odds, start)
        half = norm.ppf(0.95) * np.sqrt(
            np.einsum("in,ij,jn->n", direction, covariance, direction)
        )
        np.testing.assert_allclose(
            logit(found[:, k - n_classes]),
            np.column_stack((log_odds(start) - half, log_odds(start) + half)),
            rtol=1e-4,
            atol=1e-4,
        )


@pytest.mark.parametrize("method", [PlattScaling, BetaCalibration, TemperatureScaling])
def test_features_that_are_left_out_leave_the_limits_as_they_are(method):
    scores, y = rows(100)
    X = np.column_stack((scores, np.arange(100) % 11))
    fitted = method(features=1, clip=None).fit(X, y)
    assert fitted.feature_penalty_ == np.inf
    np.testing.assert_array_equal(
        fitted.predict_interval(X),
        method(clip=None).fit(scores, y).predict_interval(scores),
    )
    back = from_dict(json.loads(json.dumps(to_dict(fitted))))
    np.testing.assert_array_equal(back.predict_interval(X), fitted.predict_interval(X))


def test_a_quadratic_curve_follows_its_tangents_beyond_the_samples():
    scores, y = rows(400)
    fitted = QuadraticScaling(clip=None).fit(scores, y)
    new = np.array([1e-6, 1e-3, *NEW, 1 - 1e-6])
    features = fitted._limits_position(logit(new))
    coef = np.linalg.lstsq(
        features.T, logit(fitted.predict_proba(new)[:, 1]), rcond=None
    )[0]
    np.testing.assert_allclose(
        coef @ features, logit(fitted.predict_proba(new)[:, 1]), rtol=1e-7
    )


@pytest.mark.parametrize("method", [BetaCalibration, QuadraticScaling])
def test_curves_of_three_parameters_have_profile_limits(method):
    """A general optimiser finds the farthest log-odds that the likelihood allows."""
    scores, y = rows(60, slope=3)
    fitted = method(clip=None).fit(scores, y)
    state = fitted._limits.state
    x = fitted._limits_position(logit(scores))

    def likelihood(coef):
        log_odds = coef @ x
        p = expit(log_odds)
        information = (x * p * (1 - p)) @ x.T
        return (
            np.where(y, log_expit(log_odds), log_expit(-log_odds)).sum()
            + np.linalg.slogdet(information)[1] / 2
        )

    p = expit(state["coef"] @ x)
    inverse = np.linalg.inv((x * p * (1 - p)) @ x.T)
    greatest = likelihood(state["coef"])
    for place in (2, 8, 13):
        (at,) = fitted._limits_position(state["places"][[place]]).T
        error = np.sqrt(at @ inverse @ at)
        for name, sign in (("below", -1), ("above", 1)):
            for j, root in enumerate((1, 2)):
                found = minimize(
                    lambda coef, at=at, sign=sign: -sign * (coef @ at),
                    state["coef"],
                    constraints={
                        "type": "ineq",
                        "fun": lambda c, z=root: likelihood(c) - greatest + z**2 / 2,
                    },
                )
                distance = sign * (found.x - state["coef"]) @ at / error
                assert state[name][place, j] == pytest.approx(distance, rel=0.02)
    # The limits are those of the root of the level, at least the normal ones.
    (low, high) = fitted.predict_interval(expit(state["places"][[8]]), 0.9545)[0]
    (at,) = fitted._limits_position(state["places"][[8]]).T
    error = np.sqrt(at @ inverse @ at)
    curve = state["coef"] @ at
    normal = 2 * np.sqrt(max(at @ state["sandwich"] @ at, error**2))
    below = max(2 * (state["below"][8, 1] / 2) * error, normal)
    above = max(2 * (state["above"][8, 1] / 2) * error, normal)
    assert logit(low) == pytest.approx(curve - below, rel=1e-3)
    assert logit(high) == pytest.approx(curve + above, rel=1e-3)


def test_profile_limits_that_are_none_are_refused():
    document = to_dict(BetaCalibration().fit(*rows(60)))
    pairs = document["fitted"]["_limits"]["pairs"]
    good = dict(pairs)
    falling = {**good["places"], "array": good["places"]["array"][::-1]}
    for name, value in (
        ("below", None),
        ("above", good["places"]),
        ("places", falling),
        ("model", None),
    ):
        broken = [[key, value if key == name else old] for key, old in pairs]
        broken = [pair for pair in broken if pair[1] is not None]
        document["fitted"]["_limits"] = {"pairs": broken}
        with pytest.raises(ValueError, match="_limits"):
            from_dict(document)


@pytest.mark.parametrize("weighted", [False, True])
def test_many_samples_are_condensed_into_cells(weighted, monkeypatch):
    scores, y = rows(6000)
    weight = np.random.default_rng(2).gamma(2, size=len(y)) if weighted else None
    condensed = PlattScaling().fit(scores, y, weight).predict_interval(NEW)
    monkeypatch.setattr(regression, "_MOST_ROWS", 10_000)
    whole = PlattScaling().fit(scores, y, weight).predict_interval(NEW)
    assert np.abs(condensed - whole).max() < 1e-5


def test_bins_have_the_binomial_limits_of_wilson():
    scores, y = rows(200)
    fitted = HistogramBinning(5).fit(scores, y)
    z = norm.ppf(0.95)
    for score, (low, high) in zip(NEW, fitted.predict_interval(NEW), strict=True):
        k = np.searchsorted(fitted.bin_edges_[1:-1], score)
        n = fitted.bin_counts_[k]
        p = fitted.bin_positives_[k] / n
        # |p - q| = z sqrt(q (1 - q) / n) at both limits q
        for q in (low, high):
            assert abs(p - q) == pytest.approx(z * np.sqrt(q * (1 - q) / n))
        assert low <= p <= high


@pytest.mark.parametrize("weighted", [False, True])
def test_bins_of_a_smooth_map_have_the_limits_of_their_events(weighted):
    """The value of a bin is the mean of a map, which its limits contain."""
    scores, y = rows(200)
    weight = np.random.default_rng(0).integers(1, 3, 200) if weighted else None
    fitted = ScalingBinning(binning=5).fit(scores, y, weight)
    found = fitted.predict_interval(NEW)
    value_of_sample = fitted.predict_proba(scores)[:, 1]
    z = norm.ppf(0.95)
    for value, limits in zip(fitted.predict_proba(NEW)[:, 1], found, strict=True):
        own = np.flatnonzero(value_of_sample == value)
        w = np.ones(len(own)) if weight is None else weight[own]
        n = w.sum() ** 2 / np.sum(w**2)
        p = w @ y[own] / w.sum()
        centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        low, high = min(centre - half, value), max(centre + half, value)
        assert limits == pytest.approx([low, high])
    with pytest.raises(ValueError, match="sample_split"):
        ScalingBinning(sample_split=(0.3, 0.3, 0.4)).fit(scores, y).predict_interval(
            NEW
        )


def test_uniform_masses_have_the_limits_of_the_bin_that_predicts():
    scores, y = rows(100)
    fitted = UniformMassBinning(6).fit(scores, y)
    new = np.sort(np.append(fitted.bin_edges_[1:-1], NEW))
    bins = fitted._limits_position(new)
    np.testing.assert_array_equal(
        fitted.bin_values_[bins], fitted.predict_proba(new)[:, 1]
    )


def plain_isotonic(y, weight):
    """Return isotonic regression by its max-min formula."""
    n = len(y)
    mean = np.full((n, n), np.nan)  # from a to b
    for a in range(n):
        mean[a, a:] = np.cumsum(weight[a:] * y[a:]) / np.cumsum(weight[a:])
    return np.array([mean[: i + 1, i:].min(axis=1).max() for i in range(n)])


def plain_monotone_limits(y, weight, j, level):
    """Return the likelihood-ratio limits at sample j of a curve that never falls."""

    def likelihood(p):
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(y, np.log(p), np.log(1 - p))
        return weight @ terms

    free = plain_isotonic(y * 1.0, weight)
    below = plain_isotonic(y[:j] * 1.0, weight[:j]) if j else np.empty(0)
    after = plain_isotonic(y[j + 1 :] * 1.0, weight[j + 1 :])

    def excess(at):
        curve = np.concatenate(([*np.minimum(below, at), at], np.maximum(after, at)))
        return 2 * (likelihood(free) - likelihood(curve)) - chi2.ppf(level, 1)

    limits = []
    for end in (1e-12, 1 - 1e-12):
        if excess(end) < 0:
            limits.append(round(end))
        else:
            start = min(max(free[j], 1e-12), 1 - 1e-12)
            limits.append(brentq(excess, *sorted((end, start)), xtol=1e-14))
    return limits


@pytest.mark.filterwarnings("ignore:.*fewer than ten")
@pytest.mark.parametrize("method", [IsotonicCalibration, VennAbers])
@pytest.mark.parametrize("weighted", [False, True])
def test_monotone_curves_have_likelihood_ratio_limits(method, weighted):
    scores, y = rows(30, seed=3)
    order = np.argsort(scores)
    scores, y = scores[order], y[order]
    weight = None
    worth = np.ones(30)
    if weighted:
        weight = np.random.default_rng(5).gamma(2, size=30)
        worth = weight * weight.sum() / sum(weight**2)
    fitted = method().fit(scores, y, weight)
    found = fitted.predict_interval(scores, 0.8)
    twin = np.array([plain_monotone_limits(y, worth, j, 0.8) for j in range(30)])
    twin = np.sort(twin, axis=0)
    np.testing.assert_allclose(
        found, widened(twin, fitted.predict_proba(scores)[:, 1]), atol=1e-7
    )
    # Between two scores, and beyond the outer ones, neighbours bound the curve.
    between = (scores[10] + scores[11]) / 2
    low, high = fitted.predict_interval([between], 0.8)[0]
    probability = fitted.predict_proba([between])[0, 1]
    assert low == pytest.approx(min(twin[10, 0], probability))
    assert high == pytest.approx(max(twin[11, 1], probability))
    assert fitted.predict_interval([1e-9])[0, 0] == 0
    assert fitted.predict_interval([1 - 1e-9])[0, 1] == 1


def test_a_table_of_ranges_is_near_the_table_of_all_scores(monkeypatch):
    scores, y = rows(500)
    whole = IsotonicCalibration().fit(scores, y)
    assert len(whole._limits.state["count"]) == 500
    monkeypatch.setattr(monotone, "_MOST_KNOTS", 100)
    condensed = IsotonicCalibration().fit(scores, y)
    assert len(condensed._limits.state["count"]) <= 100
    assert condensed._limits.state["count"].sum() == 500
    new = np.linspace(0.1, 0.9, 9)
    difference = condensed.predict_interval(new) - whole.predict_interval(new)
    assert np.abs(difference).max() < 0.05


def three_classes(n=200):
    rng = np.random.default_rng(4)
    logits = 2 * rng.normal(size=(n, 3))
    chance = softmax(0.7 * logits, axis=1)
    return logits, (chance.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)


def gradient(function, at):
    """Return the derivatives of a function of a vector, by central differences."""
    columns = []
    for i in range(len(at)):
        step = np.zeros(len(at))
        step[i] = 1e-5
        columns.append((function(at + step) - function(at - step)) / 2e-5)
    return np.array(columns)


def larger_of(model, sandwich):
    """Return the covariance with the larger variance in each of the directions that a
    generalised eigenvalue problem gives.
    """
    basis = orth(model, rcond=1e-6)
    ratios, directions = eigh(basis.T @ sandwich @ basis, basis.T @ model @ basis)
    image = model @ basis @ directions
    return image * np.maximum(ratios, 1) @ image.T


@pytest.mark.parametrize("clusters", [None, np.arange(200) // 6])
@pytest.mark.parametrize("method", ["temperature", "vector", "matrix"])
def test_classes_have_delta_limits_on_their_log_odds(method, clusters):
    """Derivatives of the loss and of the log-odds are taken numerically."""
    logits, y = three_classes()
    new = logits[:4]
    if method == "temperature":
        fitted = TemperatureScaling(input="logit", clip=None)
    elif method == "vector":
        fitted = VectorScaling(0.3, input="logit", clip=None)
    else:
        fitted = MatrixScaling(0.3, input="logit", clip=None)
    fitted.fit(logits, y, clusters=clusters)
    inverse_temperature = fitted.inverse_temperature_

    def centred(z):
        return inverse_temperature * (z - z.mean(axis=1, keepdims=True))

    if method == "temperature":
        start = np.array([inverse_temperature])
        chance = lambda z, c: softmax(c[0] * z, axis=1)  # noqa: E731
        ridge = np.zeros(1)
    elif method == "vector":
        start = np.append(fitted.coef_ / inverse_temperature, fitted.intercept_)
        chance = lambda z, c: softmax(centred(z) * c[:3] + c[3:], axis=1)  # noqa: E731
        ridge = np.full(6, 2 * 0.3 * 3)
    else:
        start = np.append(fitted.coef_.ravel() / inverse_temperature, fitted.intercept_)

        def chance(z, c):
            return softmax(centred(z) @ c[:9].reshape(3, 3).T + c[9:], axis=1)

        of_matrix = np.where(np.eye(3) > 0, 2 * 0.3 * 3, 2 * 0.3 * 6)
        ridge = np.append(of_matrix.ravel(), np.full(3, 2 * 0.3 * 3))
    one = np.arange(len(y))
    scores = gradient(lambda c: np.log(chance(logits, c)[one, y]), start).T

    def information_of(rows):
        def total_score(c):
            return gradient(lambda d: np.log(chance(logits, d)[one, y])[rows].sum(), c)

        return -gradient(total_score, start)

    information = information_of(one) + np.diag(ridge)
    inverse = np.linalg.pinv(information, rcond=1e-6)
    quantile = norm.ppf(0.95)
    if clusters is None:
        factor = len(scores) / (len(scores) - len(start))
        sandwich = factor * inverse @ scores.T @ scores @ inverse
        covariance = larger_of(inverse, sandwich)
        assert np.linalg.eigvalsh(covariance - inverse).min() > -1e-9
        assert np.linalg.eigvalsh(covariance - sandwich).min() > -1e-9
    else:
        steps, variances = [], []
        for k in set(clusters):
            own = information_of(clusters == k)
            score = scores[clusters == k].sum(axis=0)
            steps.append(np.linalg.solve(information - own, score))
            variances.append(np.trace(inverse @ own))
        steps = np.array(steps)
        covariance = (len(steps) - 1) / len(steps) * steps.T @ steps
        degrees = sum(variances) ** 2 / sum(np.square(variances))
        quantile = t.ppf(0.95, min(degrees, len(steps) - 1))
    found = fitted.predict_interval(new)
    assert found.shape == (4, 3, 2)
    for k in range(3):
        log_odds = lambda c, k=k: logit(chance(new, c)[:, k])  # noqa: E731
        direction = gradient(log_odds, start)
        variance = np.einsum("in,ij,jn->n", direction, covariance, direction)
        half = quantile * np.sqrt(variance)
        np.testing.assert_allclose(
            logit(found[:, k]),
            np.column_stack((log_odds(start) - half, log_odds(start) + half)),
            rtol=2e-3,
            atol=2e-3,
        )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fewer than ten")
@pytest.mark.filterwarnings("ignore:The limits are NaN")
@pytest.mark.parametrize("model", TWO_CLASSES, ids=str)
def test_limits_hold_the_probability_whatever_the_samples(model):
    """A search over sizes, signals, ties and weights."""
    rng = np.random.default_rng(11)
    for _ in range(6):
        n = int(rng.integers(20, 300))
        scores, y = rows(n, seed=rng.integers(1000), slope=rng.normal(0.7, 2))
        if rng.random() < 0.5:
            scores = np.round(scores, 1)
        y[:2] = [True, False]
        options = {}
        if rng.random() < 0.5:
            options["clusters"] = np.arange(n) // 5
        if rng.random() < 0.5 and not isinstance(model, UniformMassBinning):
            options["sample_weight"] = rng.gamma(1, size=n) + 1e-3
        new = np.append(rng.random(20), [0.0, 1.0, scores[0]])
        fitted = model.fit(scores, y, **options)
        narrow, wide = (fitted.predict_interval(new, level) for level in (0.5, 0.99))
        probability = fitted.predict_proba(new)[:, 1]
        if "clusters" in options and np.isnan(wide).all():
            continue  # which is said
        assert ((0 <= wide) & (wide <= 1)).all()
        assert (wide[:, 0] <= narrow[:, 0]).all()
        assert (narrow[:, 1] <= wide[:, 1]).all()
        assert ((narrow[:, 0] <= probability) & (probability <= narrow[:, 1])).all()


@pytest.mark.parametrize("model", TWO_CLASSES, ids=str)
def test_limits_come_back_from_json_and_pickles(model):
    fitted = model.fit(*rows(300))
    document = json.loads(json.dumps(to_dict(fitted)))
    limits = fitted.predict_interval(NEW)
    for again in (from_dict(document), pickle.loads(pickle.dumps(fitted))):  # noqa: S301
        np.testing.assert_array_equal(again.predict_interval(NEW), limits)


def test_a_state_that_is_none_is_refused():
    document = to_dict(PlattScaling().fit(*rows(300)))
    pairs = document["fitted"]["_limits"]["pairs"]
    for name, value in (
        ("kind", "curve"),
        ("coef", {"array": [1.0, 2.0, 3.0], "dtype": "float64"}),
        ("events", -1.0),
        ("sandwich", {"array": [1.0, 2.0], "dtype": "float64"}),
    ):
        broken = [[key, value if key == name else old] for key, old in pairs]
        document["fitted"]["_limits"] = {"pairs": broken}
        with pytest.raises(ValueError, match="_limits"):
            from_dict(document)


def test_weights_and_clusters_say_how_many_samples_there_are():
    scores, y = rows(400)
    for model in (PlattScaling(), HistogramBinning(), IsotonicCalibration()):
        alone = model.fit(scores, y).predict_interval(NEW)
        # The same weight everywhere says nothing.
        equal = model.fit(scores, y, np.full(400, 3.0)).predict_interval(NEW)
        assert np.abs(equal - alone).max() < 0.02
        # Samples that stand three times in their cluster are worth one each.
        tripled = model.fit(
            np.repeat(scores, 3), np.repeat(y, 3), clusters=np.repeat(range(400), 3)
        ).predict_interval(NEW)
        assert np.abs(tripled - alone).max() < 0.02
        naive = model.fit(np.repeat(scores, 3), np.repeat(y, 3)).predict_interval(NEW)
        assert np.ptp(naive, axis=1).mean() < 0.75 * np.ptp(alone, axis=1).mean()


@pytest.mark.parametrize(
    ("clusters", "reason"),
    [
        (np.repeat([0, 1, 2], [80, 10, 10]), "degrees of freedom, fewer than 4"),
        (np.arange(400) // 40, "samples, fewer than 20"),
    ],
)
@pytest.mark.parametrize("method", [PlattScaling, VectorScaling, StackedRecalibrator])
def test_too_few_clusters_leave_limits_unknown(method, clusters, reason):
    scores, y = rows(len(clusters))
    if len(clusters) == 400:
        y = clusters < 4  # which decides all labels of a cluster
    fitted = method().fit(scores, y, clusters=clusters)
    document = json.loads(json.dumps(to_dict(fitted), allow_nan=False))
    for model in (fitted, from_dict(document)):
        with pytest.warns(UserWarning, match=f"limits are NaN: .*{reason}"):
            assert np.isnan(model.predict_interval(NEW)).all()
    assert not np.isnan(method().fit(scores, y).predict_interval(NEW)).any()


@pytest.mark.parametrize("model", TWO_CLASSES, ids=str)
def test_limits_are_made_when_they_are_asked_for(model):
    """A pickle has them, and not what they are made of."""
    fitted = model.fit(*rows(200))
    if hasattr(fitted, "recalibrator_"):
        fitted = fitted.recalibrator_
    fitted.predict_proba(NEW)
    assert "_state" not in vars(fitted._limits)
    again = pickle.loads(pickle.dumps(fitted))  # noqa: S301
    assert again._limits._make is None
    assert again._limits.state["kind"] == fitted._limits.state["kind"]


def test_a_fit_keeps_few_rows_for_its_limits():
    fitted = PlattScaling().fit(*rows(50_000))
    assert len(pickle.dumps(fitted._limits._make.args)) < 100_000
    fitted.predict_interval(NEW)
    assert fitted._limits._make is None


def test_soft_labels_are_clusters_of_their_samples():
    """Labels of .3 everywhere leave nothing to chance."""
    scores = np.random.default_rng(0).random(300)
    soft = np.tile([0.7, 0.3], (300, 1))
    expanded, y, weight = expand_soft_labels(scores, soft)
    sample = np.repeat(np.arange(300), 2)
    in_clusters = PlattScaling().fit(expanded, y, weight, clusters=sample)
    ((low, high),) = in_clusters.predict_interval([0.5])
    assert 0.29 < low < high < 0.31
    ((low, high),) = PlattScaling().fit(expanded, y, weight).predict_interval([0.5])
    assert high - low > 0.03


def test_few_events_are_warned_of_when_limits_are_asked_for():
    scores, y = rows(100)
    y[:] = False
    y[:9] = True
    fitted = PlattScaling().fit(scores, y)
    fitted.predict_proba(NEW)
    with pytest.warns(UserWarning, match="fewer than ten events"):
        fitted.predict_interval(NEW)
    y[9] = True
    PlattScaling().fit(scores, y).predict_interval(NEW)


def test_what_has_no_limits_is_refused_by_name():
    scores, y = rows(60)
    logits, codes = three_classes(90)
    refused = [
        (skcalib.PriorShift(), scores, y, "PriorShift.predict_interval"),
        (PlattScaling(input="logit"), logits, codes, "more than two classes"),
        (UniformMassBinning(4, randomize=True), scores, y, "randomize=True"),
        (HistogramBinning(sample_split=0.5), scores, y, "sample_split"),
    ]
    for model, X, labels, message in refused:
        with pytest.raises(ValueError, match=message):
            model.fit(X, labels).predict_interval(X)
    fitted = PlattScaling().fit(scores, y)
    with pytest.raises(ValueError, match="confidence_level"):
        fitted.predict_interval(NEW, 1.0)
    with pytest.raises(ValueError, match="only one cluster"):
        PlattScaling().fit(scores, y, clusters=np.zeros(60))
    with pytest.raises(ValueError, match="clusters"):
        PlattScaling().fit(scores, y, clusters=np.arange(59))


def test_an_impossible_class_has_the_limits_0():
    logits, y = three_classes(300)
    fitted = DirichletCalibration(input="logit").fit(logits, y)
    limits = fitted.predict_interval([[0.5, -np.inf, 0.2]])
    assert limits[0, 1].tolist() == [0, 0]
    assert 0 < limits[0, 0, 0] < limits[0, 0, 1] < 1


def test_a_new_fit_forgets_the_limits_of_the_last_one():
    scores, y = rows(60)
    fitted = PlattScaling().fit(scores, y)
    fitted.predict_interval(NEW)
    logits, codes = three_classes(90)
    fitted.set_params(input="logit").fit(logits, codes)
    with pytest.raises(ValueError, match="more than two classes"):
        fitted.predict_interval(logits)


def test_a_spline_has_the_limits_of_its_posterior():
    """At its knots a natural spline is B b, with values b and the curvature of its
    log-likelihood plus penalties: the integral of its squared second derivative, over
    temperature-scaled log-odds, and a ridge of .1.
    """
    scores, y = rows(300)
    fitted = SplineCalibration(5, roughness_penalty=0.3, clip=None).fit(scores, y)
    x = logit(scores)
    basis = CubicSpline(fitted.knots_, np.eye(5), bc_type="natural")
    temperature = 1 / smoothed_inverse_temperature(x, y, None)
    grid = np.linspace(*fitted.knots_[[0, -1]], 20_001)
    bends = basis(grid, 2)
    integral = np.trapezoid(bends[:, :, None] * bends[:, None], grid, axis=0)
    penalty = 0.3 * temperature**3 * integral + 0.1 * np.eye(5)
    new = np.quantile(scores, [0.1, 0.3, 0.5, 0.8])
    limits = logit(fitted.predict_interval(new, 0.8))
    centre = logit(fitted.predict_interval(scores, 1e-9)).mean(axis=1)
    p = expit(centre)
    design = basis(x)
    covariance = np.linalg.inv(design.T @ (design * (p * (1 - p))[:, None]) + penalty)
    at_new = basis(logit(new))
    deviation = np.sqrt(np.einsum("ni,ij,nj->n", at_new, covariance, at_new))
    np.testing.assert_allclose(
        np.diff(limits)[:, 0], 2 * norm.ppf(0.9) * deviation, rtol=0.02
    )


def test_a_stack_is_as_far_from_its_members_limits_as_they_are_in_the_mean():
    scores, y = rows(400)
    stack = StackedRecalibrator(cv=2).fit(scores, y, clusters=np.arange(400) // 2)
    p = stack.predict_proba(NEW)[:, 1]
    below, above = np.zeros(6), np.zeros(6)
    for weight, member in zip(stack.weights_, stack.recalibrators_, strict=True):
        low = high = member.predict_proba(NEW)[:, 1]
        if type(member).__name__ != "Uncalibrated" and weight > 0:
            low, high = member.predict_interval(NEW).T
        below += weight * np.clip(p - low, 0, None) ** 2
        above += weight * np.clip(high - p, 0, None) ** 2
    expected = np.column_stack((p - np.sqrt(below), p + np.sqrt(above)))
    np.testing.assert_allclose(stack.predict_interval(NEW), expected, atol=1e-12)
    again = from_dict(json.loads(json.dumps(to_dict(stack))))
    np.testing.assert_allclose(again.predict_interval(NEW), expected, atol=1e-12)
    logits, codes = three_classes(90)
    with pytest.raises(ValueError, match="two classes only"):
        StackedRecalibrator(cv=2, input="logit").fit(logits, codes).predict_interval(
            logits
        )
    halved = StackedRecalibrator([Halved()], cv=2, uncalibrated_weight=0)
    with pytest.raises(ValueError, match="a member that the mixture uses"):
        halved.fit(scores, y).predict_interval(NEW)


class Halved(skcalib.recalibrators.BinaryRecalibrator):
    def _fit_binary(self, scores, labels, sample_weight):
        pass

    def _predict_binary(self, scores):
        return scores / 2


def test_scores_that_are_kept_have_the_limits_of_the_map_that_was_tried():
    scores, y = rows(300, slope=1.0)
    platt = PlattScaling().fit(scores, y)
    kept = Recalibrator(PlattScaling(), n_standard_errors=99).fit(scores, y)
    np.testing.assert_array_equal(kept.predict_proba(NEW)[:, 1], NEW)
    expected = widened(platt.predict_interval(NEW), NEW)
    np.testing.assert_allclose(kept.predict_interval(NEW), expected, atol=1e-12)


def classifier_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    return X, rng.random(300) < expit(X[:, 0])


def test_a_classifier_has_the_limits_of_its_maps():
    X, y = classifier_rows()
    one = RecalibratedClassifierCV(
        LogisticRegression(), PlattScaling(), ensemble=False, cv=3
    ).fit(X, y)
    (pair,) = one.calibrated_classifiers_
    np.testing.assert_allclose(
        one.predict_interval(X[:5]),
        pair.recalibrator.predict_interval(pair.scores(X[:5])),
    )
    several = RecalibratedClassifierCV(
        LogisticRegression(), PlattScaling(), ensemble=True, cv=3
    ).fit(X, y)
    parts = [
        pair.recalibrator.predict_interval(pair.scores(X[:5]))
        for pair in several.calibrated_classifiers_
    ]
    np.testing.assert_allclose(
        several.predict_interval(X[:5]),
        widened(np.mean(parts, axis=0), several.predict_proba(X[:5])[:, 1]),
    )
    with pytest.raises(ValueError, match="PriorShift.predict_interval"):
        one.set_params(recalibrator=skcalib.PriorShift()).fit(X, y).predict_interval(X)


def test_a_pipeline_gives_its_last_step_the_scores():
    X, y = classifier_rows()
    pipe = make_pipeline(CrossFittedClassifier(LogisticRegression()), PlattScaling())
    pipe.fit(X, y)
    limits = pipe[-1].predict_interval(pipe[:-1].transform(X))
    probability = pipe.predict_proba(X)[:, 1]
    assert ((limits[:, 0] <= probability) & (probability <= limits[:, 1])).all()


def test_methods_on_more_columns_refuse_or_pass_on():
    scores, y = rows(80)
    X = np.column_stack((scores, np.arange(80) % 2))
    online = skcalib.OnlineRecalibrator()
    with pytest.raises(ValueError, match="OnlineRecalibrator.predict_interval"):
        online.fit(scores, y).predict_interval(scores)
    with pytest.raises(ValueError, match="does not support clusters"):
        online.fit(scores, y, clusters=np.arange(80))
    clusters = np.arange(80) // 2
    without_rounds = skcalib.MulticalibratedRecalibrator(
        PlattScaling(), features=1, max_rounds=0
    )
    for options in ({}, {"clusters": clusters}, {"sample_weight": clusters % 3}):
        np.testing.assert_allclose(
            without_rounds.fit(X, y, **options).predict_interval(X),
            PlattScaling().fit(scores, y, **options).predict_interval(scores),
        )
    with pytest.raises(ValueError, match="only one cluster"):
        without_rounds.fit(X, y, clusters=np.zeros(80))
    without_rounds.n_rounds_ = 1
    with pytest.raises(ValueError, match="rounds of corrections"):
        without_rounds.predict_interval(X)


def grouped_rows(n=600):
    """Return scores, labels, three groups and clusters of four samples, which may be of
    several groups.
    """
    scores, y = rows(n, seed=8)
    groups = np.array(["east", "north", "west"])[np.arange(n) % 3]
    return scores, y, groups, np.arange(n) // 4


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("inner", [PlattScaling(), IsotonicCalibration()], ids=str)
def test_limits_of_a_group_are_those_of_its_own_fit_with_its_clusters(inner, weighted):
    scores, y, groups, clusters = grouped_rows()
    weight = None
    if weighted:
        weight = np.random.default_rng(0).integers(0, 3, len(y))
    fitted = skcalib.GroupwiseRecalibrator(inner, shrinkage=100).fit(
        scores, y, weight, groups, clusters=clusters
    )
    found = fitted.predict_interval(scores, 0.8, groups=groups)
    probability = fitted.predict_proba(scores, groups=groups)[:, 1]
    for group in fitted.groups_:
        chosen = groups == group
        own = clone(inner).fit(
            scores[chosen],
            y[chosen],
            weight[chosen] if weighted else None,
            clusters=clusters[chosen],
        )
        np.testing.assert_array_equal(
            found[chosen],
            widened(own.predict_interval(scores[chosen], 0.8), probability[chosen]),
        )
    # The pull toward the pooled fit is in the probability, not in the limits.
    without_shrinkage = skcalib.GroupwiseRecalibrator(inner).fit(
        scores, y, weight, groups, clusters=clusters
    )
    assert (probability != without_shrinkage.predict_proba(scores, groups)[:, 1]).any()
    back = from_dict(json.loads(json.dumps(to_dict(fitted))))
    np.testing.assert_array_equal(
        back.predict_interval(scores, 0.8, groups=groups), found
    )


def test_groups_without_a_fit_of_their_own_have_the_limits_of_the_pooled_one():
    scores, y, groups, clusters = grouped_rows()
    groups[:3] = "south"
    fitted = skcalib.GroupwiseRecalibrator(PlattScaling())
    fitted.fit(scores, y, groups=groups, clusters=clusters)
    pooled = PlattScaling().fit(scores, y, clusters=clusters).predict_interval(NEW)
    np.testing.assert_array_equal(
        fitted.predict_interval(NEW, groups=["south"] * 6), pooled
    )
    with pytest.warns(UserWarning, match="not seen in fit: 'elsewhere'"):
        found = fitted.predict_interval(NEW, groups=["elsewhere"] * 6)
    np.testing.assert_array_equal(found, pooled)


def test_limits_by_predicted_class_are_those_of_each_class():
    logits, y = three_classes(400)
    fitted = skcalib.GroupwiseRecalibrator(TemperatureScaling(input="logit"))
    found = fitted.fit(logits, y).predict_interval(logits)
    assert found.shape == (400, 3, 2)
    for k in range(3):
        chosen = logits.argmax(axis=1) == k
        own = TemperatureScaling(input="logit", classes=[0, 1, 2])
        own.fit(logits[chosen], y[chosen])
        np.testing.assert_array_equal(
            found[chosen], own.predict_interval(logits[chosen])
        )


@pytest.mark.parametrize("weighted", [False, True])
def test_a_group_of_one_cluster_has_no_limits(weighted):
    """Groups may be the clusters: hospitals, each with a fit of its own."""
    scores, y, groups, _ = grouped_rows()
    clusters = np.where(groups == "north", np.arange(600), 0)
    weight = None
    if weighted:  # of two clusters, one without weight
        clusters[:3] = 1
        weight = np.where(np.arange(600) < 3, 0, 1)
    fitted = skcalib.GroupwiseRecalibrator(IsotonicCalibration())
    fitted.fit(scores, y, weight, groups, clusters=clusters)
    for model in (fitted, from_dict(json.loads(json.dumps(to_dict(fitted))))):
        with pytest.warns(
            UserWarning, match="groups 'east', 'west': .*only one cluster"
        ):
            found = model.predict_interval(scores, groups=groups)
        np.testing.assert_array_equal(np.isnan(found).all(axis=1), groups != "north")
    assert not np.isnan(
        fitted.fit(scores, y, groups=groups).predict_interval(scores, groups=groups)
    ).any()
    with pytest.raises(ValueError, match="only one cluster"):
        fitted.fit(scores, y, groups=groups, clusters=np.zeros(600))
    with pytest.raises(ValueError, match="clusters"):
        fitted.fit(scores, y, groups=groups, clusters=np.zeros(599))


def test_a_warning_about_limits_names_the_groups():
    scores, y, groups, clusters = grouped_rows()
    y[groups == "east"] = np.arange(200) < 5
    fitted = skcalib.GroupwiseRecalibrator(PlattScaling())
    fitted.fit(scores, y, groups=groups)
    with pytest.warns(UserWarning, match="In the groups 'east': .*fewer than ten"):
        fitted.predict_interval(NEW, groups=["east", "west"] * 3)
    fitted.set_params(recalibrator=skcalib.EnsembleTemperatureScaling())
    with pytest.raises(ValueError, match="weights of its mixture"):
        fitted.fit(scores, y, groups=groups).predict_interval(NEW, groups=["east"] * 6)
    fitted.set_params(recalibrator=make_pipeline(PlattScaling()))
    fitted.fit(scores, y, groups=groups)
    with pytest.raises(ValueError, match="Pipeline has none"):
        fitted.predict_interval(NEW, groups=["east"] * 6)


@pytest.mark.slow
def test_limits_of_groups_with_clusters_cover():
    """In each of two groups, with curves of their own, ten samples share their score
    and half of them their luck.
    """
    rng = np.random.default_rng(5)
    slopes = {"a": 0.5, "b": 1.5}
    held, naive = [], []
    for _ in range(150):
        n = 1600
        cluster = np.arange(n) // 10
        scores = rng.beta(2, 2, n)[cluster]
        luck = rng.random(n)
        luck = np.where(rng.random(n) < 0.5, luck[cluster], luck)
        groups = np.array(["a", "b"])[cluster % 2]
        truth = expit(np.where(groups == "a", 0.5, 1.5) * logit(scores))
        y = luck < truth
        model = skcalib.GroupwiseRecalibrator(PlattScaling(clip=None))
        for results, options in ((held, {"clusters": cluster}), (naive, {})):
            model.fit(scores, y, groups=groups, **options)
            for group, slope in slopes.items():
                points = np.quantile(scores, [0.05, 0.25, 0.5, 0.75, 0.95])
                low, high = model.predict_interval(points, groups=[group] * 5).T
                curve = expit(slope * logit(points))
                results.append((low <= curve) & (curve <= high))
    assert 0.86 <= np.mean(held) <= 0.97
    assert np.mean(naive) < 0.75


def public_recalibrators():
    """Return the recalibrators among the public names of the package by name."""
    found = {}
    for name in skcalib.__all__:
        kind = getattr(skcalib, name)
        if isinstance(kind, type) and hasattr(kind, "predict_interval"):
            found[name] = kind
    return found


# What a recalibrator that has limits for two classes is made with.
WITH_LIMITS = {
    "BetaCalibration": {},
    "DirichletCalibration": {},
    "GroupwiseRecalibrator": {"groups": None},
    "HistogramBinning": {},
    "IsotonicCalibration": {},
    "MatrixScaling": {},
    "MulticalibratedRecalibrator": {
        "recalibrator": PlattScaling(),
        "features": lambda X: np.zeros((len(X), 1)),
        "max_rounds": 0,
    },
    "PlattScaling": {},
    "QuadraticScaling": {},
    "RecalibratedClassifierCV": {
        "estimator": LogisticRegression(),
        "recalibrator": PlattScaling(),
    },
    "Recalibrator": {"recalibrator": PlattScaling()},
    "ScalingBinning": {},
    "SplineCalibration": {},
    "StackedRecalibrator": {
        "recalibrators": [PlattScaling()],
        "uncalibrated_weight": 0,
    },
    "TemperatureScaling": {},
    "UniformMassBinning": {},
    "VectorScaling": {},
    "VennAbers": {},
}


@pytest.mark.parametrize("name", sorted(public_recalibrators()))
def test_every_recalibrator_takes_clusters_and_has_limits_or_refuses(name):
    kind = public_recalibrators()[name]
    clusters = inspect.signature(kind.fit).parameters["clusters"]
    assert clusters.kind is inspect.Parameter.KEYWORD_ONLY
    assert clusters.default is None
    if name not in WITH_LIMITS:
        scores, y = rows(60)
        fitted = kind().fit(scores, y)
        with pytest.raises(ValueError, match=f"{name}.predict_interval"):
            fitted.predict_interval(scores)


@pytest.mark.parametrize("name", WITH_LIMITS)
def test_clusters_of_equal_samples_widen_the_limits(name):
    """Samples that stand twice in their cluster are worth one each."""
    scores, y = rows(300)
    X = scores
    fit_options, options = {}, {}
    if name == "RecalibratedClassifierCV":
        X = logit(scores)[:, None]
    if name == "GroupwiseRecalibrator":
        fit_options["groups"] = np.tile(["a"], 600)
        options["groups"] = ["a"] * 300
    model = public_recalibrators()[name](**WITH_LIMITS[name])
    widths = []
    for clusters in (None, np.tile(np.arange(300), 2)):
        fitted = model.fit(
            np.concatenate((X, X)), np.tile(y, 2), clusters=clusters, **fit_options
        )
        low, high = fitted.predict_interval(X, **options).T
        widths.append(np.mean(high - low))
    assert widths[1] > 1.15 * widths[0]


# --- coverage in worlds of the method's form ---


def _in_middle(rng, n):
    return rng.beta(2, 2, n)


def _line(slope):
    return lambda scores: expit(slope * logit(scores))


def _plateaus(scores):
    return np.select([scores < 0.35, scores < 0.65], [0.2, 0.5], 0.8)


WORLDS = {
    "line": (_in_middle, _line(0.7)),
    "spread scores": (lambda rng, n: expit(3 * rng.normal(size=n)), _line(0.6)),
    "strong": (_in_middle, _line(3.0)),
    "noise": (_in_middle, lambda scores: np.full(len(scores), 0.3)),
    "ties": (lambda rng, n: (rng.binomial(11, 0.5, n) + 0.5) / 12, _line(0.7)),
    "rare": (lambda rng, n: expit(-4 + rng.normal(size=n)), _line(0.8)),
    "weights": (_in_middle, _line(0.7)),
    "clusters": (_in_middle, _line(0.7)),
    "plateaus": (_in_middle, _plateaus),
}


def coverage(model, world, n, n_runs):
    """Return how often limits of .9 hold the frequency at the scores' 5, 25, 50, 75 and
    95 % points. In clusters, ten samples share their score and half of them their luck.
    """
    draw, curve = WORLDS[world]
    rng = np.random.default_rng(list(map(ord, world)))
    held = []
    for _ in range(n_runs):
        scores = draw(rng, n)
        luck = rng.random(n)
        options = {}
        if world == "weights":
            options["sample_weight"] = rng.gamma(1, size=n)
        if world == "clusters":
            cluster = np.arange(n) // 10
            scores = scores[cluster]
            luck = np.where(rng.random(n) < 0.5, luck[cluster], luck)
            options["clusters"] = cluster
        y = luck < curve(scores)
        points = np.quantile(scores, [0.05, 0.25, 0.5, 0.75, 0.95], method="nearest")
        low, high = model.fit(scores, y, **options).predict_interval(points).T
        truth = curve(points)
        held.append((low <= truth) & (truth <= high))
    return np.mean(held)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fewer than ten")
@pytest.mark.parametrize("world", [name for name in WORLDS if name != "plateaus"])
def test_limits_of_a_regression_cover_where_its_form_is_right(world):
    n = 1000 if world in ("rare", "clusters") else 200
    assert 0.85 <= coverage(PlattScaling(), world, n, 75) <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("world", ["line", "plateaus", "noise", "ties", "clusters"])
def test_limits_of_a_monotone_curve_cover(world):
    # the chi-square quantile is careful where the curve rises
    assert 0.85 <= coverage(IsotonicCalibration(), world, 200, 40) <= 0.99


def test_log_odds_of_0_say_nothing_about_a_temperature():
    fitted = TemperatureScaling(input="logit").fit(np.zeros(40), np.arange(40) % 2)
    assert fitted.predict_interval([0.0]).tolist() == [[0.5, 0.5]]
    low, high = fitted.predict_interval([2.0])[0]
    assert low < 1e-6
    assert high > 1 - 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("world", ["line", "strong"])
@pytest.mark.parametrize("method", [PlattScaling, BetaCalibration])
def test_limits_of_a_regression_are_hardly_wider_than_those_of_the_truth(method, world):
    """The delta method at the true frequencies is what no limits can do without."""
    draw, curve = WORLDS[world]
    rng = np.random.default_rng(0)

    def features(scores):
        if method is PlattScaling:
            return design(scores)
        return np.column_stack(
            (np.log(scores), -np.log1p(-scores), np.ones(len(scores)))
        )

    widths = []
    for _ in range(30):
        scores = draw(rng, 400)
        truth = curve(scores)
        points = np.quantile(scores, [0.05, 0.25, 0.5, 0.75, 0.95])
        fitted = method().fit(scores, rng.random(400) < truth)
        low, high = fitted.predict_interval(points).T
        x, new = features(scores), features(points)
        information = (x.T * (truth * (1 - truth))) @ x
        variance = np.sum(new * np.linalg.solve(information, new.T).T, axis=1)
        half = norm.ppf(0.95) * np.sqrt(variance)
        middle = logit(curve(points))
        of_truth = expit(middle + half) - expit(middle - half)
        widths.append((np.mean(high - low), np.mean(of_truth)))
    own, of_truth = np.mean(widths, axis=0)
    assert own <= 1.3 * of_truth
