"""The curvature of softmax regression: by second differences, its inverse, and the fits that start from it."""

import numpy as np
import pytest
from scipy.special import log_softmax

from skcalib._solvers.softmax_curvature import inverse_curvature, log_loss_hessian
from skcalib._solvers.softmax_regression import DiagonalMap, MatrixMap, fit_softmax_regression


def problem(affine_map, n_classes=3, n=40, seed=0):
    rng = np.random.default_rng(seed)
    features = np.vstack((rng.normal(0, 2, (n_classes, n)), np.ones(n)))
    codes, weight = rng.integers(0, n_classes, n), rng.integers(1, 4, n).astype(float)
    centre = affine_map.identity(n_classes)
    return features, codes, weight, centre, centre + 0.1 * rng.normal(size=len(centre))


@pytest.mark.parametrize("affine_map", [DiagonalMap, MatrixMap])
@pytest.mark.parametrize("weighted", [False, True])
def test_hessian_by_second_differences(affine_map, weighted):
    features, codes, weight, _, at = problem(affine_map)

    def loss(parameters):
        losses = -log_softmax(affine_map.apply(parameters, features), axis=0)[codes, np.arange(40)]
        return losses @ weight if weighted else losses.sum()

    step, unit = 1e-3, np.eye(len(at))
    expected = [
        [sum(s * t * loss(at + step * (s * u + t * v)) for s in (1, -1) for t in (1, -1)) for v in unit] for u in unit
    ]
    found = log_loss_hessian(affine_map, lambda rows: features[:, rows], 40, weight if weighted else None, at)
    np.testing.assert_allclose(found, np.array(expected) / (4 * step**2), atol=1e-3)


@pytest.mark.parametrize("affine_map", [DiagonalMap, MatrixMap])
def test_inverse_is_that_of_the_loss_a_row_with_its_ridge(affine_map):
    features, _, weight, _, at = problem(affine_map)
    rows = (lambda rows: features[:, rows]), 40, weight
    penalty = np.linspace(0.1, 2, len(at))
    inverse = inverse_curvature(affine_map, *rows, at, penalty)
    curvature = (log_loss_hessian(affine_map, *rows, at) + 2 * np.diag(penalty)) / weight.sum()
    np.testing.assert_allclose(inverse @ curvature, np.eye(len(at)), atol=1e-9)


def test_many_parameters_are_inverted_class_by_class():
    n_classes, n = 32, 50
    features, _, weight, _, at = problem(MatrixMap, n_classes, n)
    penalty = np.full(len(at), 3.0)
    inverse = inverse_curvature(MatrixMap, lambda rows: features[:, rows], n, weight, at, penalty)
    probability = np.exp(log_softmax(MatrixMap.apply(at, features), axis=0))
    vector = np.random.default_rng(1).normal(size=len(at))
    found = (inverse @ vector).reshape(n_classes, -1)
    for k in range(n_classes):
        variance = probability[k] * (1 - probability[k])
        weighted = np.where(variance > 1e-3, variance * weight, 0)  # other rows say little about the class
        block = (features * weighted) @ features.T + 6 * np.eye(n_classes + 1)
        expected = weight.sum() * np.linalg.solve(block, vector.reshape(n_classes, -1)[k])
        np.testing.assert_allclose(found[k], expected, rtol=1e-4, atol=1e-6)


def test_there_is_none_for_a_thousand_classes():
    features = np.ones((1001, 2))
    for affine_map in (DiagonalMap, MatrixMap):
        centre = affine_map.identity(1000)
        assert inverse_curvature(affine_map, lambda rows: features[:, rows], 2, None, centre, centre + 1) is None


@pytest.mark.parametrize("n_classes", [3, 32])
def test_a_preconditioner_changes_no_fit(n_classes):
    features, codes, weight, centre, _ = problem(MatrixMap, n_classes, 150)
    penalty = np.full(len(centre), 2.0)
    rows = lambda rows: features[:, rows]  # noqa: E731
    alone = fit_softmax_regression(MatrixMap, rows, codes, weight, centre=centre, penalty=penalty)
    inverse = inverse_curvature(MatrixMap, rows, 150, None, alone, 0.5 * penalty)  # of another ridge and other weights
    found = fit_softmax_regression(
        MatrixMap, rows, codes, weight, centre=centre, penalty=penalty, start=alone + 0.01, preconditioner=inverse
    )
    np.testing.assert_allclose(found, alone, atol=1e-6)
