"""The joint test of the intercepts and slopes of all classes against a plain twin."""

import numpy as np
import pytest
from _catalog import refused
from scipy.special import logit, softmax
from scipy.stats import chi2

from skcalib.metrics import calibration_test


def _test(y, proba, **options):
    return calibration_test(y, proba, method="multinomial", **options)


def _sample(n, n_classes, seed=0, temperature=1.0):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(n_classes), n)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    return y, softmax(np.log(truth) / temperature, axis=1)


def _plain(y, proba, weight):
    """Return the statistic and its degrees of freedom, from the score of each sample
    and the exact covariance matrix of its label.
    """
    n_classes = proba.shape[1]
    score, information = np.zeros(2 * n_classes), 0.0
    for label, p, w in zip(y, proba, weight, strict=True):
        z = np.log(p) - np.mean(np.log(p))
        # d log-likelihood / d (a, b) for each possible label
        by_label = []
        for k in range(n_classes):
            residual = np.eye(n_classes)[k] - p
            by_label.append(np.concatenate([residual, residual * z]))
        score += w * by_label[label]
        information = information + w * sum(
            q * np.outer(u, u) for q, u in zip(p, by_label, strict=True)
        )
    rank = np.linalg.matrix_rank(information, tol=1e-8)
    inverse = np.linalg.pinv(information, rcond=1e-9, hermitian=True)
    return score @ inverse @ score, rank


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_statistic_equals_that_of_each_sample(n_classes):
    y, proba = _sample(150, n_classes, temperature=0.7)
    weight = np.random.default_rng(1).integers(1, 4, 150)
    statistic, rank = _plain(y, proba, weight)
    assert rank == (2 if n_classes == 2 else 2 * n_classes - 1)
    found = _test(y, proba, sample_weight=weight)
    assert found.statistic == pytest.approx(statistic, rel=1e-8)
    assert found.pvalue == pytest.approx(chi2.sf(statistic, rank), rel=1e-7)
    repeated = _test(np.repeat(y, weight), np.repeat(proba, weight, axis=0))
    assert repeated == pytest.approx(found, rel=1e-8)
    if n_classes == 2:
        assert _test(y, proba[:, 1], sample_weight=weight) == pytest.approx(found)


def test_two_classes_are_the_joint_test_of_intercept_and_slope():
    """The score test of the logistic regression of the label on the log-odds."""
    y, proba = _sample(200, 2, seed=3)
    s = proba[:, 1]
    design = np.column_stack((np.ones(200), logit(s)))
    score = design.T @ (y - s)
    information = (design.T * (s * (1 - s))) @ design
    statistic = score @ np.linalg.solve(information, score)
    found = _test(y, s)
    assert found.statistic == pytest.approx(statistic, rel=1e-9)
    assert found.pvalue == pytest.approx(chi2.sf(statistic, 2), rel=1e-8)


def test_it_does_not_depend_on_the_order_of_the_classes():
    y, proba = _sample(300, 4, temperature=0.8)
    order = np.array([2, 0, 3, 1])
    place = np.argsort(order)
    assert _test(place[y], proba[:, order]) == pytest.approx(_test(y, proba), rel=1e-8)
    names = np.array(["a", "b", "c", "d"])[y]
    assert _test(names, proba) == pytest.approx(_test(y, proba))


def test_it_finds_extreme_scores_and_a_shifted_class():
    y, proba = _sample(600, 4)
    assert _test(y, proba).pvalue > 0.05
    _, extreme = _sample(600, 4, temperature=0.6)
    assert _test(y, extreme).pvalue < 1e-4
    shifted = proba * [1, 1, 1, 2]
    shifted /= shifted.sum(axis=1, keepdims=True)
    assert _test(y, shifted).pvalue < 1e-4


def test_certain_scores():
    y = np.arange(30) % 3
    right = np.eye(3)[y]
    assert _test(y, right) == (0.0, 1.0)
    assert _test(np.roll(y, 1), right).pvalue == 0
    mixed = np.vstack([right, np.full((30, 3), 1 / 3)])
    assert 0 <= _test(np.tile(y, 2), mixed).pvalue <= 1


def test_what_it_refuses_and_warns_of():
    y, proba = _sample(60, 3)
    with refused(ValueError, "clusters", "multinomial"):
        _test(y, proba, clusters=np.arange(60) // 2)
    with refused(ValueError, "importance", "kernel_calibration_error"):
        _test(y, proba, sample_weight=np.arange(1, 61) / 7, weight_type="importance")
    with refused(ValueError, 'multiclass="auto"'):
        _test(y, proba, multiclass="marginal")
    with refused(ValueError, "one label per sample"):
        _test(np.tile([[0, 1, 1], [1, 0, 0]], (30, 1)), proba)
    with pytest.warns(UserWarning, match="samples of a class are expected"):
        _test(y[:9], proba[:9])


@pytest.mark.slow
@pytest.mark.parametrize("concentration", [[1, 1, 1], [0.2] * 4, [5, 5, 0.5], [1, 4]])
def test_size(concentration):
    """Calibrated forecasts, 1,000 tables of 200: a standard error of .007."""
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(1000):
        proba = rng.dirichlet(concentration, 200)
        y = (rng.random((200, 1)) > proba.cumsum(axis=1)).sum(axis=1)
        y = np.minimum(y, len(concentration) - 1)
        rejected += _test(y, proba, labels=np.arange(len(concentration))).pvalue < 0.05
    assert 0.025 < rejected / 1000 < 0.075
