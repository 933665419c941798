"""The table of a stack's smooth parts: equal to the parts that it replaces."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.naive_bayes import GaussianNB

from skcalib import (
    IsotonicCalibration,
    PlattScaling,
    RecalibratedClassifierCV,
    SplineCalibration,
    StackedRecalibrator,
    TemperatureScaling,
    VennAbers,
)
from skcalib.maps import Affine, Expit, Mixture, Pieces, Rows, Scores
from skcalib.maps._prediction import predicted_node
from skcalib.maps._tabulated import Tabulated, tabulated


def _scores(z, input):
    if input == "logit":
        return z[:, None]
    return np.column_stack((expit(-z), expit(z)))


def _stack(input, seed=0, members=None, n=400):
    rng = np.random.default_rng(seed)
    z = rng.normal(rng.normal(), rng.uniform(0.5, 4), n)
    y = rng.random(n) < expit(rng.uniform(0.3, 2) * z + 0.3 * np.sin(2 * z))
    stack = StackedRecalibrator(members, input=input)
    return stack.fit(_scores(z, input), y)


def _both(stack, input):
    node = predicted_node(stack, stack.n_features_in_)
    return node, tabulated(node, input)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("input", ["probability", "logit"])
def test_a_table_has_the_probabilities_of_its_parts(input, seed):
    node, table = _both(_stack(input, seed), input)
    assert isinstance(table.parts[0], Tabulated)
    assert len(table.parts) < len(node.parts)
    rng = np.random.default_rng(seed)
    # Log-odds everywhere, around the ends of the table, and where most scores are.
    for z in (
        rng.uniform(-40, 40, 5000),
        rng.normal(0, 2, 5000),
        np.array([0.0, -0.0, 36.05, -36.05, 36.04, -36.04, 37, -37, 1e-300]),
    ):
        scores = _scores(z, input)
        exact, found = Rows(scores)(node), Rows(scores)(table)
        np.testing.assert_allclose(found, exact, rtol=1e-8, atol=1e-10)
        assert np.abs(found - exact).max() < 5e-11


def test_rows_outside_of_the_table_are_exact():
    for input, outside in (
        ("logit", np.array([[-500.0], [36.06], [1e100]])),
        ("probability", np.array([[0.2, 0.8 - 1e-7], [0.3 + 1e-7, 0.7]])),
    ):
        node, table = _both(_stack(input), input)
        inside = _scores(np.array([0.3]), input)
        scores = np.concatenate((outside, inside))
        exact, found = Rows(scores)(node), Rows(scores)(table)
        assert found[: len(outside)] == pytest.approx(exact[: len(outside)], rel=1e-15)
        assert found[-1] == pytest.approx(exact[-1], abs=5e-11)


def test_a_rising_map_never_falls_and_a_flat_one_stays_flat():
    z = np.sort(np.random.default_rng(0).normal(0, 3, 20_000))
    members = [PlattScaling(), SplineCalibration(monotone=True)]
    _, table = _both(_stack("logit", members=members), "logit")
    assert isinstance(table.parts[0], Tabulated)
    assert np.diff(Rows(z[:, None])(table)[:, 0]).min() > -1e-15
    flat = PlattScaling(input="logit").fit([-1, -1, 1, 1], [0, 1, 0, 1])
    flat.slope_, flat.intercept_ = 0.0, 0.3
    node = predicted_node(flat, 1)
    table = tabulated(Mixture((0.25, 0.75), (node, node)), "logit")
    assert len(np.unique(Rows(z[:, None])(table))) == 1


def test_what_is_no_sum_of_smooth_parts_stays_as_it_is():
    for members in ([VennAbers(), IsotonicCalibration()], [PlattScaling()]):
        stack = StackedRecalibrator(members, uncalibrated_weight=0, input="logit")
        z = np.random.default_rng(0).normal(size=(200, 1))
        stack.fit(z, z[:, 0] > np.sin(9 * z[:, 0]))
        node, table = _both(stack, "logit")
        assert table is node
    # Two columns of logits are not the one number that the table goes by.
    scores = Scores(2)
    part = predicted_node(TemperatureScaling(input="logit").fit([-1, 1], [0, 1]), 1)
    part = type(part)(Affine(scores, np.array([[-1.0, 1.0]]), np.zeros(1)))
    node = Mixture((0.5, 0.5), (part, part))
    assert tabulated(node, "logit") is node


@pytest.mark.parametrize("angle", [1e-5, 1e-3, 1.0])
def test_the_parts_are_computed_next_to_a_kink(angle):
    kink = Pieces(
        Scores(1),
        np.array([0.123]),
        np.array([0.123, 0.123]),
        np.array([[0.2, 1.0], [0.2, 1.0 + angle]]),
        continuous=True,
    )
    node = Mixture((0.5, 0.5), (Expit(kink), Expit(Scores(1))))
    table = tabulated(node, "logit")
    assert 0 < (~table.parts[0].is_exact).sum() < 9
    z = np.linspace(0, 0.25, 99_999)[:, None]
    assert np.abs(Rows(z)(table) - Rows(z)(node)).max() < 5e-11


def test_a_classifier_uses_the_table_and_gives_one_row_what_a_batch_has():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = rng.random(600) < expit(2 * X[:, 0] + np.sin(3 * X[:, 1]))
    model = RecalibratedClassifierCV(GaussianNB(), StackedRecalibrator())
    model.fit(np.hstack((X, X)), y)  # doubled: the forecasts are too sure
    X = np.hstack((X, X))
    recalibrator = model.calibrated_classifiers_[0].recalibrator
    node, table = _both(recalibrator, "probability")
    assert table is not node
    probabilities = model.predict_proba(X)
    forecasts = []
    for pair in model.calibrated_classifiers_:
        forecasts.append(pair.recalibrator.predict_proba(pair.scores(X)))
    log_odds = np.mean([logit(forecast[:, 1]) for forecast in forecasts], axis=0)
    np.testing.assert_allclose(
        probabilities[:, 1], expit(model.pooling_exponent_ * log_odds), atol=1e-9
    )
    for row in (0, 17, 599):
        one = model.predict_proba(X[row : row + 1])
        np.testing.assert_allclose(one[0], probabilities[row], rtol=1e-13)
