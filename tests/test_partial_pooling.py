"""Many classes against the rest, held near one map for all: against a general-purpose
solver, and on fresh rows.
"""

import math
import tracemalloc

import numpy as np
import pytest
from _catalog import refused
from _twins import repeated
from scipy.optimize import minimize
from scipy.special import expit, logit, softmax
from sklearn.metrics import log_loss

from skcalib import (
    BetaCalibration,
    ClasswiseTemperatureScaling,
    PlattScaling,
    QuadraticScaling,
    TemperatureScaling,
)

POOLED = [
    PlattScaling(class_pooling=1.0, clip=None),
    PlattScaling(class_pooling=1.0, smooth_targets=False, clip=None),
    BetaCalibration(clip=None),
    BetaCalibration("am", clip=None),
    BetaCalibration("ab", clip=None),
    BetaCalibration(smooth_targets=False, clip=None),
    QuadraticScaling(clip=None),
    QuadraticScaling(monotone=True, clip=None),
    QuadraticScaling(0.0, clip=None),
]
over_methods = pytest.mark.parametrize("method", POOLED, ids=repr)


def _sample(n=240, n_classes=4, seed=0, sureness=1.7, signal=2.0):
    """Return a model's probabilities, too sure by one factor for all classes, and
    labels.
    """
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    # whose logits are signal * scores
    scores = rng.normal(size=(n, n_classes)) + signal * np.eye(n_classes)[y]
    return softmax(sureness * signal * scores, axis=1), y


def _log_odds(proba):
    proba = np.clip(proba, 2**-52, 1 - 2**-52)
    return np.log(proba) - np.log1p(-proba)


def _cross_entropy(mapped, targets, weights):
    return float(np.sum(weights * (np.logaddexp(0, mapped) - targets * mapped)))


# What each method's ridge is written in: (columns of features of the scores, the
# slopes' scale, what the pooled fit's own ridge is). Coefficients are slopes first.


def _platt_features(s):
    return np.column_stack((logit(s), np.ones_like(s)))


def _beta_features(s):
    return np.column_stack((np.log(2 * s), -np.log(2 * (1 - s)), np.ones_like(s)))


def _minimised(loss, start, bounds=None):
    return minimize(
        loss,
        start,
        method="L-BFGS-B",
        bounds=bounds,
        options={"ftol": 1e-15, "gtol": 1e-9},
    ).x


@pytest.mark.parametrize("class_pooling", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("kind", ["platt", "beta"])
def test_each_class_is_the_minimum_of_the_written_objective(kind, class_pooling):
    proba, y = _sample()
    n_classes = proba.shape[1]
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y))
    features = {"platt": _platt_features, "beta": _beta_features}[kind]
    bounds = [(0, None), (0, None), (None, None)] if kind == "beta" else None
    problems = [
        (features(proba[:, k]), (y == k).astype(float)) for k in range(n_classes)
    ]

    def all_problems(coef):
        return sum(
            _cross_entropy(block @ coef, labels, weights) for block, labels in problems
        )

    pooled = _minimised(all_problems, np.ones(problems[0][0].shape[1]), bounds)
    scale = np.append(np.full(len(pooled) - 1, pooled[:-1].mean()), 1)
    method = {
        "platt": PlattScaling(smooth_targets=False),
        "beta": BetaCalibration(smooth_targets=False),
    }[kind]
    model = method.set_params(class_pooling=class_pooling).fit(proba, y, weights)
    for k, (block, labels) in enumerate(problems):

        def one_class(coef, block=block, labels=labels):
            ridge = (
                class_pooling * n_classes / 2 * np.sum(((coef - pooled) / scale) ** 2)
            )
            return _cross_entropy(block @ coef, labels, weights) + ridge

        expected = _minimised(one_class, pooled, bounds)
        if kind == "platt":
            found = np.array([model.slope_[k], model.intercept_[k]])
        else:  # c is the intercept at s = 1, m at 1/2
            a, b, c = model.a_[k], model.b_[k], model.c_[k]
            found = np.array([a, b, c - (a - b) * math.log(2)])
        np.testing.assert_allclose(found, expected, atol=2e-3)
        assert one_class(found) <= one_class(expected) + 1e-7


@pytest.mark.parametrize("class_pooling", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_each_parabola_is_the_minimum_of_the_written_objective(alpha, class_pooling):
    proba, y = _sample(seed=1)
    n, n_classes = proba.shape
    z = _log_odds(proba)
    labels = np.arange(n_classes) == y[:, None]
    # The temperature of all problems together, for the targets of n events among n K
    # rows.
    targets = np.where(labels, (n + 1) / (n + 2), 1 / (n * (n_classes - 1) + 2))
    inverse = _minimised(lambda b: _cross_entropy(b * z, targets, 1), [0.5])[0]
    z = inverse * z
    spread = max(math.sqrt(np.mean(z**2)), 0.3)

    def mapped(theta, z):
        return theta[0] + theta[1] * z + theta[2] * z**2 / spread

    def all_problems(theta):
        return _cross_entropy(mapped(theta, z), labels, 1) + alpha / 2 * np.sum(
            (theta - [0, 1, 0]) ** 2
        )

    pooled = _minimised(all_problems, [0, 1, 0])
    model = QuadraticScaling(alpha, class_pooling=class_pooling, clip=None).fit(
        proba, y
    )
    for k in range(n_classes):

        def one_class(theta, k=k):
            ridge = class_pooling * n_classes / 2 * np.sum((theta - pooled) ** 2)
            return _cross_entropy(mapped(theta, z[:, k]), labels[:, k], 1) + ridge

        expected = _minimised(one_class, pooled)
        found = [
            model.intercept_[k],
            model.slope_[k] / inverse,
            model.curvature_[k] * spread / inverse**2,
        ]
        np.testing.assert_allclose(found, expected, atol=1e-3)
        assert one_class(np.array(found)) <= one_class(expected) + 1e-7
        np.testing.assert_allclose(
            model.log_odds_range_[k], (z.min() / inverse, z.max() / inverse)
        )


@pytest.mark.parametrize(
    "method",
    [PlattScaling(), BetaCalibration(), QuadraticScaling(monotone=True)],
    ids=repr,
)
def test_without_class_pooling_each_class_is_fitted_alone(method):
    proba, y = _sample()
    found = (
        method.set_params(class_pooling=0, normalize=False, clip=None)
        .fit(proba, y)
        .predict_proba(proba)
    )
    for k in range(proba.shape[1]):
        alone = method.fit(proba[:, k], y == k).predict_proba(proba[:, k])[:, 1]
        np.testing.assert_allclose(found[:, k], alone, atol=1e-9)


@over_methods
def test_great_class_pooling_is_one_map_for_all(method):
    proba, y = _sample()
    model = method.set_params(class_pooling=1e9).fit(proba, y)
    one = np.column_stack(
        [part._predict_binary(np.linspace(-5, 5, 50)) for part in model.estimators_]
    )
    np.testing.assert_allclose(one, one[:, [0]] @ np.ones((1, 4)), rtol=1e-5)
    method.set_params(class_pooling=1.0)


@over_methods
def test_more_rows_are_held_less(method):
    # Where a class differs its own fit is found in the end: 200 times the rows, a
    # fraction of the distance.
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 300)
    truth = proba ** np.array([0.5, 1, 2])
    y = np.array(
        [rng.choice(3, p=row) for row in truth / truth.sum(axis=1, keepdims=True)]
    )
    distances = []
    for weight in (1, 200):
        weights = np.full(len(y), weight)
        pair = [
            method.set_params(class_pooling=one)
            .fit(proba, y, weights)
            .predict_proba(proba)
            for one in (1.0, 1e-9)
        ]
        distances.append(np.abs(pair[0] - pair[1]).max())
    assert distances[1] < 0.1 * distances[0]
    method.set_params(class_pooling=1.0)


@over_methods
def test_class_pooling_says_nothing_on_two_classes_and_on_top_labels(method):
    proba, y = _sample()
    s = proba[:, 0]
    binary = [
        method.set_params(class_pooling=one).fit(s, y == 0).predict_proba(s)
        for one in (0, 5)
    ]
    np.testing.assert_array_equal(*binary)
    method.set_params(multiclass="top_label")
    top = [
        method.set_params(class_pooling=one).fit(proba, y).predict_proba(proba)
        for one in (0, 5)
    ]
    np.testing.assert_array_equal(*top)
    method.set_params(multiclass="ovr", class_pooling=1.0)


@over_methods
def test_integer_weights_are_repeated_rows(method):
    proba, y = _sample()
    weights = np.random.default_rng(2).integers(0, 4, len(y))
    weighted = method.fit(proba, y, weights).predict_proba(proba)
    rows = method.fit(*repeated(weights, proba, y)).predict_proba(proba)
    np.testing.assert_allclose(weighted, rows, rtol=1e-6)


@pytest.mark.parametrize("class_pooling", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(
    "method",
    [BetaCalibration(), BetaCalibration("ab"), QuadraticScaling(monotone=True)],
    ids=repr,
)
def test_no_map_of_a_class_decreases(method, class_pooling):
    at_bound = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        proba = rng.dirichlet(np.full(4, 0.3), 80)
        # at random, or the other way round
        y = np.append(np.arange(4), rng.integers(0, 4, 76))
        if seed % 2:
            y = np.append(np.arange(4), proba[4:].argmin(axis=1))
        model = method.set_params(class_pooling=class_pooling).fit(proba, y)
        for part in model.estimators_:
            assert (
                np.diff(part._predict_binary(np.linspace(-40, 40, 400))).min() >= -1e-14
            )
        if isinstance(method, BetaCalibration):
            assert min(*model.a_, *model.b_) >= 0
            at_bound += min(*model.a_, *model.b_) == 0
        assert np.isfinite(np.log(model.predict_proba(np.eye(4)))).all()
    assert at_bound > 0 or isinstance(method, QuadraticScaling)


@over_methods
def test_a_class_without_rows_takes_the_map_of_all(method):
    proba, y = _sample()
    rows = y != 2
    model = method.set_params(classes=[0, 1, 2, 3]).fit(proba[rows], y[rows])
    found = model.predict_proba(proba)
    method.set_params(classes=None)
    assert np.isfinite(np.log(found)).all()
    assert 0 < found[:, 2].mean() < 0.25
    with refused(ValueError, "BetaCalibration", "class 2"):
        BetaCalibration(
            class_pooling=0, smooth_targets=False, classes=[0, 1, 2, 3]
        ).fit(proba[rows], y[rows])
    with refused(ValueError, "BetaCalibration", "class 1"):
        BetaCalibration(smooth_targets=False, classes=[0, 1, 2, 3]).fit(
            proba[y == 0], y[y == 0]
        )


@over_methods
@pytest.mark.parametrize(
    "scores", ["sure and right", "sure and wrong", "equal", "with zeros"]
)
def test_extreme_scores_give_finite_forecasts(method, scores):
    y = np.arange(30) % 3
    proba = {
        "sure and right": np.eye(3)[y],
        "sure and wrong": np.eye(3)[(y + 1) % 3],
        "equal": np.full((30, 3), 1 / 3),
        "with zeros": np.eye(3)[np.arange(30) // 10],
    }[scores]
    found = method.fit(proba, y).predict_proba(
        np.vstack((proba, [[0.2, 0.3, 0.5], [0, 0.5, 0.5]]))
    )
    assert np.isfinite(np.log(found)).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)


@pytest.mark.parametrize("sureness", [1.0, 1.7])
@pytest.mark.slow
def test_sixty_classes_of_twenty_rows_do_no_harm(sureness):
    # One temperature is right for all the classes: the case in which more parameters
    # can only do harm.
    harmless = [
        BetaCalibration(),
        QuadraticScaling(),
        QuadraticScaling(monotone=True),
        PlattScaling(class_pooling=1.0),
        ClasswiseTemperatureScaling(),
    ]
    alone = [BetaCalibration(class_pooling=0), ClasswiseTemperatureScaling(np.inf)]
    losses = []
    for seed in range(2):
        proba, y = _sample(
            n=60 * 20, n_classes=60, seed=seed, sureness=sureness, signal=3.0
        )
        fresh, labels = _sample(
            n=60 * 100, n_classes=60, seed=100 + seed, sureness=sureness, signal=3.0
        )
        methods = [TemperatureScaling(), *harmless, *alone]
        losses.append(
            [
                log_loss(labels, method.fit(proba, y).predict_proba(fresh))
                for method in methods
            ]
        )
    ratios = np.mean(losses, axis=0)[1:] / np.mean(losses, axis=0)[0]
    assert ratios[: len(harmless)].max() < 1.01, ratios
    # nothing but smoothed targets holds these classes
    assert ratios[len(harmless) :].min() > 1.04, ratios


def test_classes_that_differ_gain():
    rng = np.random.default_rng(0)
    own = np.linspace(0.4, 2, 5)
    log_odds = rng.normal(scale=2, size=(6000, 5)) - 1.5
    truth = expit(own * log_odds)
    proba = softmax(log_odds, axis=1)
    y = np.array(
        [rng.choice(5, p=row) for row in truth / truth.sum(axis=1, keepdims=True)]
    )
    fit, test = slice(3000), slice(3000, None)
    for method in (BetaCalibration, QuadraticScaling, PlattScaling):
        losses = {
            pooling: log_loss(
                y[test],
                method(class_pooling=pooling)
                .fit(proba[fit], y[fit])
                .predict_proba(proba[test]),
            )
            for pooling in (0.0, 1.0, 1e9)
        }
        assert losses[1.0] < 0.99 * losses[1e9]
        assert losses[1.0] < 1.001 * losses[0.0]


@pytest.mark.slow
def test_no_table_of_all_problems_is_built():
    proba, y = _sample(n=5000, n_classes=200)
    for method in (BetaCalibration(), QuadraticScaling()):
        tracemalloc.start()
        method.fit(proba, y)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        # the log-odds are 1, blocks the rest; features of all would be 2 or 3 more
        assert peak < 2.8 * proba.nbytes


def test_logits_are_their_probabilities():
    proba, y = _sample()
    for method in (
        BetaCalibration(),
        QuadraticScaling(),
        PlattScaling(class_pooling=1.0),
    ):
        expected = method.fit(proba, y).predict_proba(proba)
        method.set_params(input="logit")
        np.testing.assert_allclose(
            method.fit(np.log(proba), y).predict_proba(np.log(proba)),
            expected,
            rtol=1e-6,
        )


def test_parameters_are_checked():
    proba, y = _sample()
    for method in (BetaCalibration, QuadraticScaling, PlattScaling):
        for class_pooling in (-1, np.inf, np.nan, "much"):
            with pytest.raises(ValueError, match="'class_pooling' parameter"):
                method(class_pooling=class_pooling).fit(proba, y)
    with refused(ValueError, "class_pooling", "loss='squared'"):
        PlattScaling(loss="squared", class_pooling=1).fit(proba, y)
