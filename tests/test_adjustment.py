"""Adjusted p-values against the probabilities of all outcomes, and the level of whole
families.
"""

from itertools import product

import numpy as np
import pytest
from _catalog import refused

from skcalib._inference.adjustment import adjusted_pvalues, holm, pvalue_distribution
from skcalib._inference.event_counts import event_count_pmf
from skcalib._inference.shift_test import bias_test
from skcalib.metrics import calibration_by_group

GROUPS = [
    np.array([0.1, 0.2, 0.4]),
    np.array([0.05, 0.5, 0.5, 0.6]),
    np.array([0.3, 0.9]),
]


def _pmf(scores):
    """Return P(S = k) by adding up all vectors of labels."""
    mass = np.zeros(len(scores) + 1)
    for labels in product((0, 1), repeat=len(scores)):
        mass[sum(labels)] += np.prod(np.where(labels, scores, 1 - scores))
    return mass


def _pvalue(mass, k):
    return min(1.0, 2 * min(mass[: k + 1].sum(), mass[k:].sum()))


def test_counts_and_what_a_pvalue_can_be():
    for scores in GROUPS:
        mass = _pmf(scores)
        np.testing.assert_allclose(event_count_pmf(scores), mass)
        values, probabilities = pvalue_distribution(scores)
        possible = np.array([_pvalue(mass, k) for k in range(len(mass))])
        np.testing.assert_allclose(values, np.sort(possible))
        expected = [mass[possible <= value + 1e-12].sum() for value in values]
        assert probabilities[-1] == pytest.approx(1)
        last_of_ties = np.append(np.diff(values) > 1e-12, True)
        np.testing.assert_allclose(
            probabilities[last_of_ties], np.array(expected)[last_of_ties]
        )


def test_the_least_adjusted_pvalue_is_its_probability():
    masses = [_pmf(scores) for scores in GROUPS]
    distributions = [pvalue_distribution(scores) for scores in GROUPS]
    outcomes = list(product(*(range(len(mass)) for mass in masses)))
    probability = np.array(
        [
            np.prod([mass[k] for mass, k in zip(masses, ks, strict=True)])
            for ks in outcomes
        ]
    )
    pvalues = np.array(
        [
            [_pvalue(mass, k) for mass, k in zip(masses, ks, strict=True)]
            for ks in outcomes
        ]
    )
    least = pvalues.min(axis=1)
    for row, ks in zip(pvalues[::7], outcomes[::7], strict=True):
        adjusted = adjusted_pvalues(row, distributions)
        expected = probability[least <= row.min() + 1e-12].sum()
        # never below the p-value itself
        assert adjusted.min() == pytest.approx(max(expected, row.min())), ks
        assert np.all(adjusted <= holm(row) + 1e-12)
        assert np.all(adjusted >= row - 1e-12)
        assert np.all(np.diff(adjusted[np.argsort(row, kind="stable")]) >= 0)


def test_continuous_pvalues_are_adjusted_by_sidak():
    found = adjusted_pvalues(np.array([0.02, 0.01, 1.0]), [None] * 3)
    np.testing.assert_allclose(found, [1 - 0.98**2, 1 - 0.99**3, 1.0])


@pytest.mark.parametrize(
    ("n", "n_groups", "rare"), [(500, 10, False), (500, 10, True), (600, 30, True)]
)
def test_level_of_a_family(n, n_groups, rare):
    """The exact probability that a calibrated family is rejected, from the
    distributions of its p-values.
    """
    rng = np.random.default_rng(0)
    scores, codes = rng.beta(1, 60 if rare else 3, n), np.arange(n) % n_groups
    distributions = [pvalue_distribution(scores[codes == k]) for k in range(n_groups)]

    def rejected(limit):
        chances = [
            np.append(0, p)[np.searchsorted(v, limit, side="right")]
            for v, p in distributions
        ]
        return 1 - np.prod(1 - np.array(chances))

    possible = np.unique(np.concatenate([values for values, _ in distributions]))
    adjusted = {
        p: adjusted_pvalues(np.append(p, np.ones(n_groups - 1)), distributions).min()
        for p in possible[(possible > 1e-4) & (possible < 0.1)]
    }
    exact = max((p for p, value in adjusted.items() if value <= 0.05), default=0.0)
    assert rejected(0.05 / n_groups) < 0.035  # Holm
    assert 0.03 < rejected(exact) <= 0.05


def test_in_the_table():
    rng = np.random.default_rng(1)
    scores, groups = rng.beta(1, 20, 900), np.arange(900) % 30
    y = rng.random(900) < np.where(groups == 3, 0.3, scores)
    options = {"n_resamples": 9, "random_state": 0}
    plain = calibration_by_group(y, scores, groups, **options)
    exact = calibration_by_group(y, scores, groups, adjustment="exact", **options)
    np.testing.assert_array_equal(plain.pvalue, exact.pvalue)
    np.testing.assert_array_equal(plain.adjusted_pvalue, holm(plain.pvalue))
    assert np.all(exact.adjusted_pvalue <= plain.adjusted_pvalue + 1e-12)
    assert exact.adjusted_pvalue[3] < 0.8 * plain.adjusted_pvalue[3]
    expected = [
        bias_test(scores[groups == k], y[groups == k].sum(), 0.9).pvalue
        for k in range(30)
    ]
    np.testing.assert_allclose(exact.pvalue, expected)
    with refused(ValueError, "adjustment", "'holm', 'exact'", "'bonferroni'"):
        calibration_by_group(y, scores, groups, adjustment="bonferroni")
    weights = {
        "sample_weight": np.random.default_rng(0).uniform(0.5, 1, 900),
        "weight_type": "importance",
    }
    weighted = calibration_by_group(
        y, scores, groups, adjustment="exact", **weights, **options
    )
    assert np.all(weighted.adjusted_pvalue >= weighted.pvalue)
