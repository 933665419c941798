"""The approximate leave-one-out loss: against its formula with dense matrices a row,
and against fits without a row.
"""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from skcalib._rows import blocks
from skcalib._solvers.affine_maps import DiagonalMap, MatrixMap
from skcalib._solvers.leave_one_out import leave_one_out_loss
from skcalib._solvers.softmax_regression import fit_softmax_regression

MAPS = pytest.mark.parametrize("affine_map", [DiagonalMap, MatrixMap])


def sample(n=40, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, n_classes))
    y = np.array(
        [
            rng.choice(n_classes, p=row)
            for row in softmax(0.6 * logits + rng.normal(size=n_classes), axis=1)
        ]
    )
    return np.vstack((logits.T, np.ones(n))), y


def fitted(affine_map, features, y, weight, alpha=2.0):
    centre = affine_map.identity(len(features) - 1)
    penalty = np.full(len(centre), alpha)
    parameters = fit_softmax_regression(
        affine_map,
        lambda rows: features[:, rows],
        y,
        weight,
        centre=centre,
        penalty=penalty,
    )
    return parameters, penalty


def by_dense_matrices(affine_map, features, y, weight, parameters, penalty):
    """The formula with the matrix X_i of each row, from the map of each unit vector."""
    n_parameters, rows = len(parameters), range(len(y))
    maps = [
        np.column_stack(
            [affine_map.apply(e, features[:, [i]])[:, 0] for e in np.eye(n_parameters)]
        )
        for i in rows
    ]
    probability = [softmax(X @ parameters) for X in maps]
    spread = [np.diag(p) - np.outer(p, p) for p in probability]
    hessian = 2 * np.diag(penalty) + sum(
        w * X.T @ W @ X for w, X, W in zip(weight, maps, spread, strict=True)
    )
    loss = 0
    for i in rows:
        residual = probability[i] - np.eye(len(probability[i]))[y[i]]
        d = maps[i] @ np.linalg.solve(hessian, maps[i].T @ residual)
        left_out = min(weight[i], 1)
        h = np.clip(left_out * (d @ spread[i] @ d) / (residual @ d), 0, 0.95)
        loss -= (
            weight[i] * log_softmax(maps[i] @ parameters + left_out * d / (1 - h))[y[i]]
        )
    return loss


@MAPS
@pytest.mark.parametrize("weighted", [False, True])
def test_formula(affine_map, weighted, monkeypatch):
    monkeypatch.setattr(blocks, "_BLOCK_ELEMENTS", 100)
    features, y = sample()
    weight = (
        np.random.default_rng(1).uniform(0.2, 3, len(y))
        if weighted
        else np.ones(len(y))
    )
    parameters, penalty = fitted(affine_map, features, y, weight)
    found = leave_one_out_loss(
        affine_map,
        lambda rows: features[:, rows],
        y,
        weight if weighted else None,
        parameters,
        penalty,
    )
    expected = by_dense_matrices(affine_map, features, y, weight, parameters, penalty)
    assert found == pytest.approx(expected, rel=1e-8)


@MAPS
@pytest.mark.parametrize("alpha", [0.3, 3.0])
def test_is_near_the_loss_of_fits_without_each_row(affine_map, alpha):
    features, y = sample(60)
    parameters, penalty = fitted(affine_map, features, y, None, alpha)
    exact = inside = 0.0
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        without, _ = fitted(affine_map, features[:, rest], y[rest], None, alpha)
        exact -= log_softmax(affine_map.apply(without, features[:, [i]])[:, 0])[y[i]]
        inside -= log_softmax(affine_map.apply(parameters, features[:, [i]])[:, 0])[
            y[i]
        ]
    found = leave_one_out_loss(
        affine_map, lambda rows: features[:, rows], y, None, parameters, penalty
    )
    assert inside < exact - 1
    assert found == pytest.approx(exact, abs=0.1 * (exact - inside))


@MAPS
def test_weights_are_repeated_rows(affine_map):
    features, y = sample()
    weight = np.random.default_rng(2).integers(1, 4, len(y))
    parameters, penalty = fitted(affine_map, features, y, weight.astype(float))
    found = leave_one_out_loss(
        affine_map,
        lambda rows: features[:, rows],
        y,
        weight.astype(float),
        parameters,
        penalty,
    )
    features, y = features.repeat(weight, axis=1), y.repeat(weight)
    expected = leave_one_out_loss(
        affine_map, lambda rows: features[:, rows], y, None, parameters, penalty
    )
    assert found == pytest.approx(expected, rel=1e-9)
