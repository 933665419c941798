"""Errors of small samples by summation over all outcomes, against plain ones."""

import itertools

import numpy as np
import pytest

from skcalib._inference.few_outcomes import _medians


@pytest.mark.parametrize("kind", ["continuous", "ties", "skewed", "equal"])
def test_medians_are_those_of_sorted_outcomes(kind):
    # Three problems of two bins with 4 and 5 possible numbers of events.
    rng = np.random.default_rng(0)
    masses = [rng.dirichlet(np.ones(k), 3).T for k in (4, 5)]
    statistic = {
        "continuous": rng.normal(size=(20, 3)),
        "ties": rng.integers(0, 4, (20, 3)).astype(float),
        "skewed": rng.random((20, 3)) ** 30,
        "equal": np.full((20, 3), 0.25),
    }[kind]
    expected = []
    for problem in range(3):
        outcomes = itertools.product(masses[0][:, problem], masses[1][:, problem])
        pairs = zip(statistic[:, problem], outcomes, strict=True)
        total = 0.0
        for value, (first, second) in sorted(pairs):
            total += first * second
            if total >= 0.5:
                expected.append(value)
                break
    assert _medians(statistic, masses).tolist() == expected
