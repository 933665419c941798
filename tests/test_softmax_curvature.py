"""The curvature of softmax regression: by second differences, and the solution of
systems with it.
"""

import numpy as np
import pytest
from scipy.special import log_softmax

from skcalib._solvers.affine_maps import DiagonalMap, MatrixMap
from skcalib._solvers.leave_one_out import log_loss_hessian
from skcalib._solvers.newton import damped_solution
from skcalib._solvers.softmax_regression import fit_softmax_regression


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
        losses = -log_softmax(affine_map.apply(parameters, features), axis=0)[
            codes, np.arange(40)
        ]
        return losses @ weight if weighted else losses.sum()

    step, unit = 1e-3, np.eye(len(at))
    expected = [
        [
            sum(
                s * t * loss(at + step * (s * u + t * v))
                for s in (1, -1)
                for t in (1, -1)
            )
            for v in unit
        ]
        for u in unit
    ]
    found = log_loss_hessian(
        affine_map,
        lambda rows: features[:, rows],
        codes,
        weight if weighted else None,
        at,
    )
    np.testing.assert_allclose(found, np.array(expected) / (4 * step**2), atol=1e-3)


@pytest.mark.parametrize("right", [np.arange(4.0), np.arange(8.0).reshape(4, 2)])
def test_damped_solution_of_a_singular_matrix_solves_where_it_can_be_solved(right):
    # the last direction has no curvature
    factor = np.random.default_rng(0).normal(size=(3, 4)) * [1, 1e3, 1e-3, 0]
    matrix = factor.T @ factor
    found = damped_solution(matrix.copy(), matrix @ right)
    np.testing.assert_allclose(matrix @ found, matrix @ right, rtol=1e-6, atol=1e-9)


def test_a_flag_that_blas_raises_for_finite_numbers_is_no_warning():
    features, codes, weight, centre, _ = problem(DiagonalMap)

    class Flagged(DiagonalMap):
        @staticmethod
        def adjoint(residual, features):
            # raises the flag, and its result is not used
            np.subtract(np.float32(np.inf), np.float32(np.inf))
            return DiagonalMap.adjoint(residual, features)

    options = {"centre": centre, "penalty": np.full(len(centre), 0.1)}
    found, expected = (
        fit_softmax_regression(
            one, lambda rows: features[:, rows].copy(), codes, weight, **options
        )
        for one in (Flagged, DiagonalMap)
    )
    np.testing.assert_array_equal(found, expected)
