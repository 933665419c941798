"""Vector, matrix and Dirichlet scaling against a plain objective and scikit-learn's
logistic regression.
"""

import math
import time
import tracemalloc

import numpy as np
import pytest
from _catalog import refused
from _twins import repeated
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from skcalib import (
    BetaCalibration,
    DirichletCalibration,
    MatrixScaling,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
)
from skcalib._rows import blocks
from skcalib._solvers import (
    conjugate_gradients,
    penalised_log_loss,
    softmax_regression,
)
from skcalib._solvers.affine_maps import DiagonalMap, MatrixMap

METHODS = [VectorScaling, MatrixScaling, DirichletCalibration]


def _sample(n=80, n_classes=3, seed=0):
    """Logits, and labels that another affine map of them makes."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=2, size=(n, n_classes)) + rng.normal(size=(n, 1))
    matrix = np.diag(rng.uniform(0.3, 1.2, n_classes)) + rng.normal(
        scale=0.1, size=(n_classes, n_classes)
    )
    truth = softmax(logits @ matrix.T + rng.normal(scale=0.5, size=n_classes), axis=1)
    return logits, np.array([rng.choice(n_classes, p=row) for row in truth])


def _twin_loss(method, parameters, logits, y, weights, inverse_temperature, alphas):
    """Return the penalised log-loss by loops, from the docstrings' formulas."""
    n_classes = logits.shape[1]
    diagonal, off_diagonal, alpha_intercept = alphas
    full = len(parameters) > 2 * n_classes
    *matrix, intercept = np.split(parameters, n_classes + 1 if full else 2)
    matrix = np.array(matrix) if full else np.diag(matrix[0])  # V of the docstring
    total = 0.0
    for row, label, weight in zip(logits, y, weights, strict=True):
        if method is DirichletCalibration:
            features = [
                z - math.log(sum(math.exp(other) for other in row)) for z in row
            ]
        else:
            features = [z - sum(row) / n_classes for z in row]
        mapped = [
            inverse_temperature
            * sum(matrix[k][j] * features[j] for j in range(n_classes))
            + intercept[k]
            for k in range(n_classes)
        ]
        total += weight * (math.log(sum(math.exp(z) for z in mapped)) - mapped[label])
    for k in range(n_classes):
        total += alpha_intercept * n_classes * intercept[k] ** 2
        total += diagonal * n_classes * (matrix[k][k] - 1) ** 2
        for j in range(n_classes):
            if j != k:
                total += off_diagonal * n_classes * (n_classes - 1) * matrix[k][j] ** 2
    return total


@pytest.mark.parametrize("alphas", [(1.0, 1.0, 1.0), (0.3, 0.02, 2.0)])
@pytest.mark.parametrize("method", METHODS)
def test_fit_is_the_minimum_of_the_loss(method, alphas):
    logits, y = _sample(n=40)
    weights = np.random.default_rng(1).random(len(y))
    diagonal, off_diagonal, intercept = alphas
    options = (
        {"alpha_off_diagonal": off_diagonal} if method is not VectorScaling else {}
    )
    model = method(diagonal, alpha_intercept=intercept, input="logit", **options).fit(
        logits, y, weights
    )
    inverse = (
        TemperatureScaling(input="logit").fit(logits, y, weights).inverse_temperature_
    )
    assert model.inverse_temperature_ == pytest.approx(inverse, rel=1e-9)

    def objective(parameters):
        return _twin_loss(method, parameters, logits, y, weights, inverse, alphas)

    fitted = np.concatenate(((model.coef_ / inverse).ravel(), model.intercept_))
    best = minimize(objective, fitted, method="BFGS", options={"gtol": 1e-7})
    assert objective(fitted) == pytest.approx(best.fun, abs=1e-7)
    identity = np.concatenate(
        (np.eye(3).ravel() if model.coef_.ndim == 2 else np.ones(3), np.zeros(3))
    )
    from_afar = minimize(objective, identity, method="BFGS", options={"gtol": 1e-5})
    assert objective(fitted) <= from_afar.fun + 1e-7
    step = 1e-4
    for direction in np.eye(len(fitted)):  # the gradient vanishes
        slope = (
            objective(fitted + step * direction) - objective(fitted - step * direction)
        ) / (2 * step)
        assert slope == pytest.approx(0, abs=2e-5)


@pytest.mark.parametrize("method", METHODS)
def test_prediction_is_the_softmax_of_the_affine_map(method):
    logits, y = _sample()
    model = method(input="logit").fit(logits, y)
    features = (
        log_softmax(logits, axis=1)
        if method is DirichletCalibration
        else logits - logits.mean(1, keepdims=True)
    )
    mapped = (
        features * model.coef_ if method is VectorScaling else features @ model.coef_.T
    )
    np.testing.assert_allclose(
        model.predict_proba(logits),
        softmax(mapped + model.intercept_, axis=1),
        atol=1e-12,
    )


@pytest.mark.parametrize("method", [MatrixScaling, DirichletCalibration])
def test_without_alpha_it_is_multinomial_logistic_regression(method):
    logits, y = _sample(n=400)
    features = (
        log_softmax(logits, axis=1)
        if method is DirichletCalibration
        else logits - logits.mean(1, keepdims=True)
    )
    twin = LogisticRegression(C=1e12, tol=1e-10, max_iter=10_000).fit(features, y)
    model = method(alpha=0, input="logit").fit(logits, y)
    np.testing.assert_allclose(
        model.predict_proba(logits), twin.predict_proba(features), atol=2e-5
    )
    assert (
        log_loss(y, model.predict_proba(logits))
        <= log_loss(y, twin.predict_proba(features)) + 1e-10
    )


@pytest.mark.parametrize("method", METHODS)
def test_great_alpha_is_temperature_scaling(method):
    logits, y = _sample()
    expected = TemperatureScaling(input="logit").fit(logits, y).predict_proba(logits)
    found = method(alpha=1e9, input="logit").fit(logits, y).predict_proba(logits)
    np.testing.assert_allclose(found, expected, atol=1e-7)
    # On the way there the fit to the calibration set never gets better.
    losses = [
        log_loss(
            y, method(alpha=alpha, input="logit").fit(logits, y).predict_proba(logits)
        )
        for alpha in (0, 0.01, 0.1, 1, 10, 100)
    ]
    assert all(np.diff(losses) > 0)


def test_parts_have_alphas_of_their_own():
    logits, y = _sample()
    vector = VectorScaling(0.5, alpha_intercept=0.1, input="logit").fit(logits, y)
    matrix = MatrixScaling(
        0.5, alpha_off_diagonal=1e9, alpha_intercept=0.1, input="logit"
    ).fit(logits, y)
    np.testing.assert_allclose(matrix.coef_, np.diag(vector.coef_), atol=1e-6)
    np.testing.assert_allclose(matrix.intercept_, vector.intercept_, atol=1e-6)
    frozen = MatrixScaling(
        0, alpha_diagonal=1e12, alpha_intercept=1e12, input="logit"
    ).fit(logits, y)
    np.testing.assert_allclose(
        np.diag(frozen.coef_), frozen.inverse_temperature_, atol=1e-6
    )
    np.testing.assert_allclose(frozen.intercept_, 0, atol=1e-6)
    assert np.abs(frozen.coef_ - np.diag(np.diag(frozen.coef_))).max() > 0.05


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_added_to_a_row_changes_nothing(method):
    logits, y = _sample()
    moved = logits + np.random.default_rng(5).normal(scale=10, size=(len(y), 1))
    expected = method(input="logit").fit(logits, y).predict_proba(logits)
    np.testing.assert_allclose(
        method(input="logit").fit(moved, y).predict_proba(moved), expected, atol=1e-9
    )
    # Probabilities are such logits too.
    proba = softmax(logits, axis=1)
    np.testing.assert_allclose(
        method().fit(proba, y).predict_proba(proba), expected, atol=1e-9
    )


def test_two_classes_are_platt_scaling_and_beta_calibration():
    rng = np.random.default_rng(0)
    scores = rng.beta(0.8, 0.8, 500)
    y = rng.random(500) < 0.1 + 0.7 * scores
    for method, binary in (
        (VectorScaling, PlattScaling(smooth_targets=False)),
        (MatrixScaling, PlattScaling(smooth_targets=False)),
        (DirichletCalibration, BetaCalibration(smooth_targets=False)),
    ):
        expected = binary.fit(scores, y).predict_proba(scores)
        np.testing.assert_allclose(
            method(alpha=0).fit(scores, y).predict_proba(scores), expected, atol=1e-6
        )


@pytest.mark.parametrize("alpha", [0, 0.3])
def test_logits_as_they_are(alpha):
    logits, y = _sample(n=300)
    logits = logits + np.random.default_rng(3).normal(scale=2, size=(len(y), 1))
    model = VectorScaling(alpha, center=False, input="logit").fit(logits, y)
    expected = softmax(model.coef_ * logits + model.intercept_, axis=1)
    np.testing.assert_allclose(model.predict_proba(logits), expected, atol=1e-12)

    def loss(parameters):
        coef, intercept = np.split(parameters, 2)
        ridge = np.sum((coef / model.inverse_temperature_ - 1) ** 2) + np.sum(
            intercept**2
        )
        proba = softmax(coef * logits + intercept, axis=1)
        return -np.sum(np.log(proba[np.arange(len(y)), y])) + alpha * 3 * ridge

    found = np.concatenate((model.coef_, model.intercept_))
    best = minimize(loss, np.repeat([1.0, 0.0], 3), options={"gtol": 1e-8})
    assert loss(found) <= best.fun + 1e-9 * len(y)
    np.testing.assert_allclose(_derivative(loss, found), 0, atol=1e-3)
    centred = VectorScaling(alpha, input="logit").fit(logits, y)
    assert np.abs(centred.predict_proba(logits) - expected).max() > 0.01
    moved = logits + np.arange(len(y))[:, None] % 7
    np.testing.assert_allclose(
        centred.predict_proba(moved), centred.predict_proba(logits), atol=1e-12
    )
    assert np.abs(model.predict_proba(moved) - expected).max() > 0.01


def test_a_strong_ridge_leaves_temperature_scaling_whether_logits_are_centred_or_not():
    logits, y = _sample(n=300)
    expected = TemperatureScaling(input="logit").fit(logits, y).predict_proba(logits)
    for center in (True, False):
        found = (
            VectorScaling(1e9, center=center, input="logit")
            .fit(logits + 5, y)
            .predict_proba(logits + 5)
        )
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("alpha", [0, 0.05, 1])
def test_integer_weights_are_repeated_rows(method, alpha):
    logits, y = _sample(n=60)
    weights = np.random.default_rng(2).integers(0, 4, len(y))
    weighted = (
        method(alpha, input="logit").fit(logits, y, weights).predict_proba(logits)
    )
    rows = (
        method(alpha, input="logit")
        .fit(*repeated(weights, logits, y))
        .predict_proba(logits)
    )
    np.testing.assert_allclose(weighted, rows, atol=1e-8)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("alpha", [0, 0.02, 1])
def test_extreme_scores_give_finite_forecasts(method, alpha):
    y = np.arange(30) % 3
    one_hot = np.eye(3)[y]
    with_errors = np.eye(3)[np.where(np.arange(30) < 4, 0, y)]
    unsure = np.full((30, 3), 1 / 3)
    separable = softmax(
        5 * np.eye(3)[y] + np.random.default_rng(0).normal(size=(30, 3)), axis=1
    )
    for scores in (
        one_hot,
        with_errors,
        unsure,
        separable,
        1e90 * one_hot,
        1e-90 * one_hot,
    ):
        model = method(
            alpha,
            input="logit" if scores.max() > 1 or scores.max() < 0.1 else "probability",
        )
        proba = model.fit(scores, y).predict_proba(scores)
        assert np.isfinite(proba).all()
        # Logits that are further apart than 700 say which classes are possible.
        is_certain = scores.max() > 700
        assert is_certain or 0 < proba.min() <= proba.max() < 1
        assert np.isfinite(log_loss(y, proba))


@pytest.mark.parametrize("method", METHODS)
def test_a_missing_class_takes_a_ridge(method):
    logits, y = _sample(n=200)
    rows = y != 2
    model = method(input="logit", classes=[0, 1, 2]).fit(logits[rows], y[rows])
    proba = model.predict_proba(logits)
    assert (
        0
        < proba[:, 2].mean()
        < TemperatureScaling(input="logit")
        .fit(logits, y)
        .predict_proba(logits)[:, 2]
        .mean()
    )
    for options in ({"alpha": 0}, {"alpha_intercept": 0}):
        with refused(ValueError, method.__name__, "class 2"):
            method(input="logit", classes=[0, 1, 2], **options).fit(
                logits[rows], y[rows]
            )
    with refused(ValueError, method.__name__, "two classes", "0 only"):
        method(input="logit", classes=[0, 1, 2]).fit(logits[:5], np.zeros(5, int))


def _loss(affine_map, penalty, n=50, n_classes=3, seed=0, weighted=True):
    """Return the loss of the solver on features of a sample, the features (K + 1, n),
    the labels and the weights.
    """
    logits, y = _sample(n, n_classes, seed)
    features = np.vstack((logits.T, np.ones(n)))
    weights = np.random.default_rng(7).random(n) + 0.1 if weighted else np.ones(n)
    start = affine_map.identity(n_classes)
    loss = penalised_log_loss.PenalisedLogLoss(
        affine_map,
        lambda rows: features[:, rows].copy(),
        y,
        weights,
        start,
        np.full(len(start), penalty),
    )
    return loss, features, y, weights


def _derivative(function, point, step=1e-5):
    return np.array(
        [
            (function(point + d) - function(point - d)) / (2 * step)
            for d in step * np.eye(len(point))
        ]
    )


@pytest.mark.parametrize("penalty", [0, 0.7])
@pytest.mark.parametrize("affine_map", [DiagonalMap, MatrixMap])
def test_loss_and_derivatives_by_loops_and_differences(
    affine_map, penalty, monkeypatch
):
    # many blocks, and blocks of these
    monkeypatch.setattr(blocks, "_BLOCK_ELEMENTS", 40)
    # none of it
    monkeypatch.setattr(penalised_log_loss, "_RIDGE_FOR_SINGLE_PRECISION", np.inf)
    loss, features, y, weights = _loss(affine_map, penalty)
    start, rng = affine_map.identity(3), np.random.default_rng(3)
    point = start + rng.normal(scale=0.3, size=len(start))

    coef, intercept = affine_map.unpacked(point)
    matrix = coef if coef.ndim == 2 else np.diag(coef)
    expected = penalty * sum((point - start) ** 2)
    for row, label, weight in zip(features[:-1].T, y, weights, strict=True):
        z = [
            sum(matrix[k][j] * row[j] for j in range(3)) + intercept[k]
            for k in range(3)
        ]
        expected += weight * (math.log(sum(math.exp(one) for one in z)) - z[label])
    assert loss.evaluate(point) == pytest.approx(expected / weights.sum(), rel=1e-12)

    def gradient(parameters):
        loss.evaluate(parameters)
        return loss.gradient.copy()

    np.testing.assert_allclose(
        gradient(point), _derivative(loss.evaluate, point), atol=1e-8
    )
    expected = _derivative(gradient, point) - np.diag(loss.penalty)
    gradient(point)
    assert len(loss.blocks) == 3
    hessian = sum(block.hessian() for block in loss.blocks)
    np.testing.assert_allclose(hessian, expected, atol=1e-8)
    index, intercept = affine_map.unpacked(np.arange(len(point)))
    second, first = (
        sum(parts)
        for parts in zip(*(block.moments() for block in loss.blocks), strict=True)
    )
    np.testing.assert_allclose(second, np.diag(expected), atol=1e-8)
    with_intercept = affine_map.packed(
        expected[index.T, intercept].T, expected[intercept, intercept]
    )
    np.testing.assert_allclose(first, with_intercept, atol=1e-8)
    direction = rng.normal(size=len(point))
    product = sum(block.hessian_product(direction) for block in loss.blocks)
    np.testing.assert_allclose(product, expected @ direction, atol=1e-8)
    # in the block of a class the diagonal, and the mean features times themselves
    kept = np.zeros_like(expected)
    for k in range(3):
        block = np.append(index[k], intercept[k])
        mean = (
            expected[block, intercept[k]] / expected[intercept[k], intercept[k]] ** 0.5
        )
        spread = (
            np.maximum(expected[block, block] - mean**2, 1e-3 * expected[block, block])
            + loss.penalty[block]
        )
        kept[np.ix_(block, block)] = np.diag(spread) + np.outer(mean, mean)
    preconditioner = conjugate_gradients.Preconditioner(
        affine_map, second, first, loss.penalty
    )
    np.testing.assert_allclose(
        preconditioner.solve(kept @ direction), direction, atol=1e-6
    )
    moved = affine_map.apply(direction, features)
    assert loss.largest_logit_change(direction) == pytest.approx(
        np.abs(moved).max(), rel=1e-12
    )


@pytest.mark.parametrize("affine_map", [DiagonalMap, MatrixMap])
def test_single_precision_is_as_near_as_it_can_be(affine_map):
    single, *_ = _loss(affine_map, penalty=0.7)
    assert single.dtype == np.float32
    point = affine_map.identity(3) + 0.1
    direction = np.random.default_rng(3).normal(size=len(point))
    found = single.evaluate(point), single.gradient
    single.dtype = np.float64
    np.testing.assert_allclose(found[0], single.evaluate(point), rtol=1e-6)
    np.testing.assert_allclose(found[1], single.gradient, atol=1e-6)
    # a block's Hessian is in single precision
    hessian = sum(block.hessian() for block in single.blocks)
    product = sum(block.hessian_product(direction) for block in single.blocks)
    np.testing.assert_allclose(product, hessian @ direction, atol=1e-5)
    # A ridge that is tiny beside the squares of the features does not do.
    assert _loss(affine_map, penalty=1e-7)[0].dtype == np.float64


@pytest.mark.parametrize("alpha", [0.02, 1])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.slow
def test_all_ways_to_a_step_end_in_the_same_optimum(method, alpha, monkeypatch):
    # 20,000 x 10: several blocks. As float32 the same numbers, so that the answers may
    # be compared.
    logits, y = _sample(n=20_000, n_classes=10)
    logits = logits.astype(np.float32)
    fits = [
        method(alpha, input="logit").fit(given, y)
        for given in (logits, logits.astype(float))
    ]
    monkeypatch.setattr(penalised_log_loss, "_RIDGE_FOR_SINGLE_PRECISION", np.inf)
    fits.append(method(alpha, input="logit").fit(logits, y))  # factorises the Hessian
    monkeypatch.setattr(penalised_log_loss, "_LARGEST_DENSE_HESSIAN", 0)
    # conjugate gradients, float64
    best = method(alpha, input="logit").fit(logits, y).predict_proba(logits)
    for fit in fits:
        # 1e-16 nats left are 1e-8 in a logit that is average, and several times that in
        # a row that is far out.
        np.testing.assert_allclose(fit.predict_proba(logits), best, rtol=0, atol=1e-7)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("penalty", [0, 0.7])
@pytest.mark.parametrize("affine_map", [DiagonalMap, MatrixMap])
def test_a_step_leaves_no_more_than_it_says(affine_map, penalty, tolerance):
    # Twice the loss left is bounded by (1 + o(1)) times what is said: 1.5 for reaches
    # up to .1, and rounding.
    for seed in range(5):
        loss, *_ = _loss(affine_map, penalty, n=400, seed=seed)
        loss.dtype = np.float64
        start = affine_map.identity(3)
        parameters, left = softmax_regression._minimised(loss, start, tolerance)
        best, _ = softmax_regression._minimised(loss, start, 1e-20)
        assert left <= tolerance
        assert (
            2 * (loss.evaluate(parameters) - loss.evaluate(best)) <= 1.5 * left + 1e-14
        )


def test_few_passes_over_the_rows(monkeypatch):
    logits, y = _sample(n=5000, n_classes=10)
    passes = []
    evaluate = penalised_log_loss.PenalisedLogLoss.evaluate
    monkeypatch.setattr(
        penalised_log_loss.PenalisedLogLoss,
        "evaluate",
        lambda loss, parameters: (
            passes.append(loss.dtype) or evaluate(loss, parameters)
        ),
    )
    for method in METHODS:
        for alpha in (0, 1):
            passes.clear()
            method(alpha, input="logit").fit(logits, y)
            # In double precision the last ones only, where single precision gives the
            # start.
            assert passes.count(np.float64) <= (6 if alpha == 0 else 2)
            assert len(passes) <= 6


@pytest.mark.parametrize("alpha", [0, 1])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.slow
def test_memory_is_that_of_one_float64_array(method, alpha):
    logits, y = _sample(n=20_000, n_classes=20)
    method(alpha, input="logit").fit(logits[:2000], y[:2000])  # lazy imports
    tracemalloc.start()
    method(alpha, input="logit").fit(logits, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # 8 bytes a score, a few a row, and the temporaries of a block, of a megabyte each.
    assert peak < logits.nbytes + 64 * len(y) + 8e6


@pytest.mark.parametrize("method", METHODS)
def test_weights_of_next_to_nothing_are_rows_left_out(method):
    logits, y = _sample(n=200)
    weights = np.where(np.arange(200) % 4 == 0, 1e-60, 1.0)
    for alpha in (0, 1):
        found = (
            method(alpha, input="logit").fit(logits, y, weights).predict_proba(logits)
        )
        rows = weights == 1
        expected = (
            method(alpha, input="logit")
            .fit(logits[rows], y[rows])
            .predict_proba(logits)
        )
        np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_thousand_classes_with_few_rows(method):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(60, 1000)).astype(np.float32)
    y = rng.integers(0, 1000, 60)
    began = time.perf_counter()
    model = method(input="logit", classes=np.arange(1000)).fit(logits, y)
    assert time.perf_counter() - began < 20
    proba = model.predict_proba(logits)
    assert np.isfinite(proba).all()
    reference = (
        TemperatureScaling(input="logit", classes=np.arange(1000))
        .fit(logits, y)
        .predict_proba(logits)
    )
    assert log_loss(y, proba, labels=np.arange(1000)) < log_loss(
        y, reference, labels=np.arange(1000)
    )


def test_logits_that_hardly_differ_are_refused():
    y = np.arange(30) % 3
    with refused(ValueError, "X", "temperature 2e-301", "rescale the logits"):
        DirichletCalibration(input="logit").fit(1e-300 * np.eye(3)[y], y)


def test_alphas_are_checked():
    logits, y = _sample()
    for name in ("alpha", "alpha_diagonal", "alpha_off_diagonal", "alpha_intercept"):
        with pytest.raises(ValueError, match=f"'{name}' parameter of MatrixScaling"):
            MatrixScaling(**{name: -1.0}).fit(softmax(logits, axis=1), y)


def test_a_fit_that_stops_early_says_so(monkeypatch):
    logits, y = _sample()
    monkeypatch.setattr(softmax_regression, "_MAX_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="nats per sample still to be gained"):
        MatrixScaling(alpha=0, input="logit").fit(logits, y)


def _many_classes(n, n_classes, seed, spread):
    """Over-confident logits of a model that is right in about two of three rows;
    classes differ by `spread`.
    """
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    logits = rng.normal(size=(n, n_classes))
    logits[np.arange(n), labels] += 3.5
    bias = np.random.default_rng(99).normal(scale=spread, size=n_classes)
    return 2 * logits + bias, labels


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [77, 150])
@pytest.mark.parametrize("method", METHODS)
def test_many_classes_with_few_rows_do_not_overfit(method, n_classes):
    # 3,000 rows: 22,650 parameters for 150 classes. The classes are alike, so that
    # there is nothing to gain (the price was .6 to .8 %, on log-probabilities 1.1 and
    # 1.2 %, when this was written).
    fit, test = (_many_classes(3000, n_classes, seed, spread=0) for seed in (0, 1))
    temperature = TemperatureScaling(input="logit").fit(*fit)
    began = time.perf_counter()
    model = method(input="logit").fit(*fit)
    seconds = time.perf_counter() - began
    loss, reference = (
        log_loss(test[1], one.predict_proba(test[0])) for one in (model, temperature)
    )
    assert loss <= (1.015 if method is DirichletCalibration else 1.01) * reference
    assert seconds < 30
    # Where the classes differ the structured maps win.
    fit, test = (_many_classes(3000, n_classes, seed, spread=0.3) for seed in (0, 1))
    temperature = TemperatureScaling(input="logit").fit(*fit)
    loss, reference = (
        log_loss(test[1], one.fit(*fit).predict_proba(test[0]))
        for one in (model, temperature)
    )
    assert loss < 0.98 * reference


@pytest.mark.parametrize("alpha", [10**30, 1e100])
@pytest.mark.parametrize("method", METHODS)
def test_a_ridge_beyond_all_rows_leaves_temperature_scaling(method, alpha):
    logits, y = _sample()
    expected = TemperatureScaling(input="logit").fit(logits, y).predict_proba(logits)
    np.testing.assert_allclose(
        method(alpha, input="logit").fit(logits, y).predict_proba(logits),
        expected,
        atol=1e-9,
    )
    with pytest.raises(ValueError, match="'alpha'.*1e\\+100"):
        method(10**400, input="logit").fit(logits, y)


def test_only_a_fit_without_a_ridge_is_told_to_take_one(monkeypatch):
    logits, y = _sample()
    monkeypatch.setattr(softmax_regression, "_WORTH_A_WARNING", -1.0)
    with pytest.warns(ConvergenceWarning, match="without a ridge"):
        MatrixScaling(0, input="logit").fit(logits, y)
    with pytest.warns(ConvergenceWarning, match="still to be gained. See"):
        DirichletCalibration().fit(softmax(logits, axis=1), y)
