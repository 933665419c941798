"""``alpha="auto"``: the path by its definition, what it gains, weights, classes without
rows, many classes.
"""

import numpy as np
import pytest
from _twins import repeated
from scipy.special import softmax

from skcalib import DirichletCalibration, MatrixScaling, VectorScaling
from skcalib._fitting import ridge_path

METHODS = [DirichletCalibration, MatrixScaling, VectorScaling]
PATHS = {
    DirichletCalibration: [1, 0.1, 0.03],
    MatrixScaling: [1, 0.3, 0.1, 0.02],
    VectorScaling: [1, 0.3, 0.1, 0.02],
}
over_methods = pytest.mark.parametrize("method", METHODS)


def sample(n=300, n_classes=3, spread=1.0, seed=0):
    """Logits of a model, and labels of a map of them that differs from temperature
    scaling by `spread`.
    """
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=(n, n_classes))
    matrix = np.eye(n_classes) + spread * np.random.default_rng(9).normal(
        size=(n_classes, n_classes)
    )
    truth = softmax(0.7 * logits @ matrix + spread * np.arange(n_classes), axis=1)
    return logits, (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


def log_loss(model, logits, y):
    return -np.mean(np.log(model.predict_proba(logits)[np.arange(len(y)), y]))


def _chosen(losses, least):
    """Return the last step of the path whose loss is lower by `least` than that of the
    step it replaces.
    """
    best = 0
    for index, loss in enumerate(losses):
        best = index if loss < losses[best] - least else best
    return best


@over_methods
@pytest.mark.parametrize(
    ("spread", "n", "seed"), [(0.0, 90, 0), (0.2, 90, 0), (1.5, 120, 1)]
)
@pytest.mark.slow
def test_the_path_by_exact_leave_one_out(method, spread, n, seed):
    # The rule, with a fit without each row in place of the approximation.
    logits, y = sample(n, spread=spread, seed=seed)
    losses, rest = [], ~np.eye(len(y), dtype=bool)
    for alpha in PATHS[method]:
        model = method(alpha, input="logit", clip=None)
        each = [
            log_loss(model.fit(logits[rest[i]], y[rest[i]]), logits[[i]], y[[i]])
            for i in range(len(y))
        ]
        losses.append(sum(each))
        if losses[-1] > losses[max(len(losses) - 2, 0)]:
            break
    found = method("auto", input="logit", clip=None).fit(logits, y)
    # The approximation may be off by half a nat where a gain is about 5.
    assert found.alpha_ in {
        PATHS[method][_chosen(losses, least)] for least in (4.5, 5, 5.5)
    }
    assert (found.alpha_ < 1) == (spread == 1.5)  # both outcomes of the rule are seen
    expected = (
        method(found.alpha_, input="logit", clip=None)
        .fit(logits, y)
        .predict_proba(logits)
    )
    np.testing.assert_allclose(found.predict_proba(logits), expected, atol=1e-6)


@over_methods
def test_is_weak_where_that_predicts_better(method):
    logits, y = sample(3000, n_classes=5)
    auto = method("auto", input="logit").fit(logits, y)
    assert auto.alpha_ == PATHS[method][-1]
    # Calibrated up to the temperature there is nothing to gain.
    logits, y = sample(3000, n_classes=5, spread=0)
    assert method("auto", input="logit").fit(logits, y).alpha_ == 1


@over_methods
def test_more_classes_leave_out_a_fold(method, monkeypatch):
    monkeypatch.setattr(ridge_path, "_MOST_CLASSES_LEFT_OUT_ROW_BY_ROW", 4)
    logits, y = sample(3000, n_classes=5)
    auto = method("auto", input="logit").fit(logits, y)
    assert auto.alpha_ < 0.1
    expected = method(auto.alpha_, input="logit").fit(logits, y).predict_proba(logits)
    np.testing.assert_allclose(auto.predict_proba(logits), expected, atol=1e-6)
    logits, y = sample(3000, n_classes=5, spread=0)
    assert method("auto", input="logit").fit(logits, y).alpha_ == 1


@over_methods
@pytest.mark.parametrize("most_classes", [2, 16])
def test_weights_are_repeated_rows(method, most_classes, monkeypatch):
    monkeypatch.setattr(ridge_path, "_MOST_CLASSES_LEFT_OUT_ROW_BY_ROW", most_classes)
    logits, y = sample(200)
    weights = np.random.default_rng(2).integers(0, 4, len(y))
    weighted = method("auto", input="logit").fit(logits, y, weights)
    rows = method("auto", input="logit").fit(*repeated(weights, logits, y))
    assert weighted.alpha_ == rows.alpha_
    np.testing.assert_allclose(
        weighted.predict_proba(logits), rows.predict_proba(logits), atol=1e-7
    )


@over_methods
def test_a_class_without_rows(method):
    logits, y = sample(200)
    rows = y != 1
    model = method("auto", input="logit", classes=[0, 1, 2]).fit(logits[rows], y[rows])
    assert np.isfinite(np.log(model.predict_proba(logits))).all()


@over_methods
def test_extreme_scores_stay_finite(method):
    y = np.arange(30) % 3
    for scores in (
        np.eye(3)[y],
        np.eye(3)[np.where(np.arange(30) < 4, 0, y)],
        np.full((30, 3), 1 / 3),
    ):
        proba = method("auto").fit(scores, y).predict_proba(scores)
        assert np.isfinite(np.log(proba)).all()


@over_methods
def test_two_classes(method):
    rng = np.random.default_rng(0)
    scores = rng.random(400)
    model = method("auto").fit(scores, rng.random(400) < scores**2)
    assert model.alpha_ in PATHS[method]


def test_a_part_with_an_alpha_of_its_own_keeps_it():
    logits, y = sample(400)
    model = MatrixScaling("auto", alpha_off_diagonal=1e9, input="logit").fit(logits, y)
    assert np.abs(model.coef_ - np.diag(np.diag(model.coef_))).max() < 1e-6


def test_alpha_is_a_number_or_auto():
    logits, y = sample()
    assert MatrixScaling(0.2, input="logit").fit(logits, y).alpha_ == 0.2
    with pytest.raises(ValueError, match="alpha"):
        MatrixScaling("best", input="logit").fit(logits, y)


@pytest.mark.filterwarnings(
    "ignore:The fit stopped:sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.parametrize("ulps", [1, 4, 64])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("method", [DirichletCalibration, MatrixScaling, VectorScaling])
def test_scores_a_few_ulps_apart(method, n_classes, ulps):
    rng = np.random.default_rng(0)
    scores = (
        np.full((60, n_classes), 1 / n_classes)
        + rng.integers(0, ulps + 1, (60, n_classes)) * 2.0**-54
    )
    y = np.arange(60) % n_classes
    found = method(alpha="auto").fit(scores, y).predict_proba(scores)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    loss = -np.log(found[np.arange(60), y]).mean()
    # hardly anything is learned from rounding
    assert np.log(n_classes) - 0.1 < loss <= np.log(n_classes) + 1e-6


def test_few_rows_a_class_keep_the_strongest_ridge():
    logits, y = sample(89, spread=2.0)
    assert MatrixScaling(input="logit").fit(logits, y).alpha_ == 1
    # weights count as rows
    many = MatrixScaling(input="logit").fit(logits, y, np.full(89, 30.0))
    assert many.alpha_ < 1
