"""Temperature scaling against a golden-section search over plain losses."""

from functools import partial

import numpy as np
import pytest
from _catalog import refused
from _twins import minimum, repeated, temperature_loss
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, logit, softmax
from sklearn.metrics import log_loss

from skcalib import TemperatureScaling
from skcalib._rows.links import row_softmax
from skcalib._solvers import temperature
from skcalib._solvers.temperature import (
    fit_brier_temperature,
    fit_inverse_temperature,
    row_derivatives,
)
from skcalib.metrics import expected_calibration_error


def _sample(n=150, n_classes=3, temperature=2.0, dtype=np.float64):
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=3, size=(n, n_classes)).astype(dtype)
    truth = softmax(logits.astype(float) / temperature, axis=1)
    return logits, np.array([rng.choice(n_classes, p=row) for row in truth])


@pytest.mark.parametrize("loss", ["log", "brier"])
@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_is_the_minimum_of_the_loss(loss, n_classes, weighted):
    logits, y = _sample(n_classes=n_classes)
    weights = np.random.default_rng(1).random(len(y)) if weighted else None
    model = TemperatureScaling(loss=loss, input="logit", clip=None).fit(
        logits, y, weights
    )
    twin = minimum(
        lambda inverse: temperature_loss(inverse, logits, y, weights, loss),
        0.05,
        5,
        steps=60,
    )
    assert model.inverse_temperature_ == pytest.approx(twin, rel=1e-6)
    assert model.temperature_ == 1 / model.inverse_temperature_
    np.testing.assert_allclose(
        model.predict_proba(logits),
        softmax(logits * model.inverse_temperature_, axis=1),
    )


def _slope(inverse, logits, y):
    """Return the derivative of the log-loss: the mean of E[z] - z_y."""
    proba = softmax(inverse * logits, axis=1)
    return np.mean((proba * logits).sum(axis=1) - logits[np.arange(len(y)), y])


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1, 1e3, 1e12])
@pytest.mark.parametrize("temperature", [0.2, 1.0, 2.0, 10.0])
def test_log_loss_temperature_is_exact_to_1e_8(scale, temperature):
    logits, y = _sample(400, temperature=temperature)
    exact = brentq(_slope, 1e-4, 1e4, args=(logits, y), xtol=1e-300, rtol=1e-14)
    model = TemperatureScaling(input="logit", clip=None).fit(logits * scale, y)
    assert model.inverse_temperature_ * scale == pytest.approx(exact, rel=1e-8)


def test_float32_logits_are_not_returned_unchanged():
    # Finite differences vanish in float32: a library returns T = 1 without a warning.
    logits, y = _sample(400, dtype=np.float32)
    found = TemperatureScaling(input="logit").fit(logits, y).temperature_
    assert found == pytest.approx(
        TemperatureScaling(input="logit").fit(logits.astype(float), y).temperature_,
        rel=1e-8,
    )
    assert abs(found - 1) > 0.3


@pytest.mark.parametrize(
    "labels", [(1, 2), (-1, 1), (False, True), ("no", "yes"), (0.0, 1.0), (5, 1000)]
)
def test_labels_of_any_type_give_the_same_temperature(labels):
    # Labels {1, 2} give a constant prediction in scikit-learn 1.9.1.
    rng = np.random.default_rng(0)
    z = rng.normal(scale=4, size=300)
    y = (rng.random(300) < expit(z / 2)).astype(int)
    expected = TemperatureScaling(input="logit").fit(z, y)
    model = TemperatureScaling(input="logit").fit(z, np.array(labels)[y])
    assert model.temperature_ == expected.temperature_
    assert 1.5 < model.temperature_ < 2.5  # in Guo's sense, for two classes as well
    np.testing.assert_array_equal(model.predict_proba(z), expected.predict_proba(z))
    assert model.classes_.tolist() == list(labels)


def test_a_series_with_any_index():
    pandas = pytest.importorskip("pandas")
    logits, y = _sample()
    series = pandas.Series(y, index=range(1000, 1150))
    frame = pandas.DataFrame(logits, index=series.index[::-1], columns=list("abc"))
    found = TemperatureScaling(input="logit").fit(frame, series).temperature_
    assert found == TemperatureScaling(input="logit").fit(logits, y).temperature_


def test_one_two_and_probability_columns_agree():
    rng = np.random.default_rng(0)
    z = rng.normal(scale=3, size=200)
    y = rng.random(200) < expit(z / 2)
    expected = TemperatureScaling(input="logit").fit(z, y).temperature_
    two = np.column_stack((0 * z - 5, z - 5))  # a constant in a row does not count
    assert TemperatureScaling(input="logit").fit(two, y).temperature_ == pytest.approx(
        expected
    )
    assert TemperatureScaling().fit(expit(z), y).temperature_ == pytest.approx(expected)
    assert TemperatureScaling().fit(
        softmax(two, axis=1), y
    ).temperature_ == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_a_metric_may_be_the_loss(weighted):
    logits, y = _sample()
    names = np.array(["a", "b", "c"])
    weights = 1.0 + np.arange(len(y)) % 2 if weighted else None
    by_metric = TemperatureScaling(loss=log_loss, input="logit").fit(
        logits, names[y], weights
    )
    by_name = TemperatureScaling(input="logit").fit(logits, names[y], weights)
    assert by_metric.temperature_ == pytest.approx(by_name.temperature_, rel=1e-6)


def test_calibration_error_as_the_loss_is_at_most_that_of_log_loss():
    logits, y = _sample(400)
    error = partial(expected_calibration_error, labels=[0, 1, 2])
    by_error = TemperatureScaling(loss=error, input="logit").fit(logits, y)
    by_log = TemperatureScaling(input="logit").fit(logits, y)
    assert error(y, by_error.predict_proba(logits)) <= error(
        y, by_log.predict_proba(logits)
    )


def test_a_loss_that_does_not_care_leaves_the_temperature_of_log_loss():
    logits, y = _sample()
    model = TemperatureScaling(loss=lambda y_true, y_proba: 1.0, input="logit").fit(
        logits, y
    )
    assert model.temperature_ == pytest.approx(
        TemperatureScaling(input="logit").fit(logits, y).temperature_
    )


@pytest.mark.parametrize("value", [np.nan, None, "low"])
def test_a_loss_must_return_a_number(value):
    with refused(ValueError, "loss must return a number", repr(value)):
        TemperatureScaling(loss=lambda y_true, y_proba: value).fit([0.3, 0.4], [0, 1])


def test_weights_are_repeated_rows():
    logits, y = _sample()
    weights = np.arange(len(y)) % 4
    for loss in ("log", "brier"):
        weighted = TemperatureScaling(loss=loss, input="logit").fit(logits, y, weights)
        rows = TemperatureScaling(loss=loss, input="logit").fit(
            *repeated(weights, logits, y)
        )
        assert weighted.temperature_ == pytest.approx(rows.temperature_, rel=1e-7)


def _doubtful_loss(inverse, logits, y, weights=None):
    """Return the log-loss of Platt's targets: a row more of the other class, for K > 2
    of all rows, is wrong.
    """
    weights = np.ones(len(y)) if weights is None else weights
    n_classes, loss = logits.shape[1], 0.0
    for row, label, weight in zip(inverse * logits, y, weights, strict=True):
        doubt = 1 / ((weights[y == label] if n_classes == 2 else weights).sum() + 2)
        log_proba = row - np.log(np.exp(row - row.max()).sum()) - row.max()
        others = np.delete(log_proba, label).sum() / (n_classes - 1)
        loss -= weight * ((1 - doubt) * log_proba[label] + doubt * others)
    return loss


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_rows_that_are_all_right_are_doubted_as_by_platt(n_classes):
    rng = np.random.default_rng(n_classes)
    logits, weights = rng.normal(0, 2, (40, n_classes)), rng.uniform(0.1, 3, 40)
    y = logits.argmax(axis=1)
    for weight in (None, weights):
        model = TemperatureScaling(input="logit", clip=None).fit(logits, y, weight)
        found = minimize_scalar(
            lambda b, weight=weight: _doubtful_loss(b, logits, y, weight),
            (0.1, 2),
            tol=1e-10,
        )
        assert model.inverse_temperature_ == pytest.approx(found.x, rel=1e-5)
        single = TemperatureScaling(input="logit", clip=None).fit(
            logits.astype(np.float32), y, weight
        )
        assert single.inverse_temperature_ == pytest.approx(found.x, rel=1e-5)
    tied = np.vstack((logits, np.zeros(n_classes)))  # a tie is no mistake
    assert (
        TemperatureScaling(input="logit", clip=None)
        .fit(tied, np.append(y, 1))
        .temperature_
        > 0.01
    )


@pytest.mark.parametrize("scale", [1e-6, 1, 1e6])
@pytest.mark.parametrize("sign", [1, -1])
def test_separable_and_always_wrong_end_somewhere(sign, scale):
    z, y = scale * np.array([-2.0, -4.0, 2.0, 3.0]), np.array([0, 0, 1, 1])
    model = TemperatureScaling(input="logit").fit(sign * z, y)
    proba = model.predict_proba(sign * z)
    np.testing.assert_array_equal(proba.argmax(axis=1), sign * z > 0)
    assert proba.min() >= 2**-52
    assert proba.max() <= 1 - 2**-52
    if sign == 1:  # Platt's targets of two rows a class: 3/4 and 1/4
        found = minimize_scalar(
            lambda b: _doubtful_loss(b / scale, np.column_stack((0 * z, z)), y),
            (0.1, 2),
        )
        assert model.inverse_temperature_ * scale == pytest.approx(found.x, rel=1e-6)
    else:  # the bound of 1e-6 over the largest spread
        assert model.inverse_temperature_ == pytest.approx(1e-6 / (4 * scale))


def test_decisions_never_change():
    logits, y = _sample()
    for loss in ("log", "brier"):
        model = TemperatureScaling(loss=loss, input="logit").fit(logits, y)
        np.testing.assert_array_equal(model.predict(logits), logits.argmax(axis=1))


def test_logits_without_a_spread_keep_their_scale():
    model = TemperatureScaling(input="logit").fit(np.zeros((4, 3)), [0, 1, 2, 0])
    assert model.temperature_ == 1
    np.testing.assert_allclose(model.predict_proba(np.zeros((1, 3))), 1 / 3)


def test_a_class_without_rows_is_no_obstacle():
    logits, y = _sample()
    rows = y > 0
    model = TemperatureScaling(classes=[0, 1, 2], input="logit", clip=None).fit(
        logits[rows], y[rows]
    )
    twin = minimum(
        lambda inverse: temperature_loss(inverse, logits[rows], y[rows]),
        0.05,
        5,
        steps=60,
    )
    assert model.inverse_temperature_ == pytest.approx(twin, rel=1e-6)


def test_one_class_alone_has_no_temperature():
    with refused(ValueError, "TemperatureScaling needs rows of two classes", "'b'"):
        TemperatureScaling(classes=["a", "b"]).fit([0.3, 0.4], ["b", "b"])


@pytest.mark.parametrize("loss", ["hinge", 3, None])
def test_loss_is_checked(loss):
    with pytest.raises(ValueError, match="loss"):
        TemperatureScaling(loss=loss).fit([0.3, 0.4], [0, 1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_many_rows_start_from_a_sample_and_end_where_few_would(weighted, dtype):
    # 9,000 rows: the start is a sample of every fourth; the root of the slope over all
    # rows is the twin.
    logits, y = _sample(9_000, temperature=1.7, dtype=dtype)
    weights = (
        np.random.default_rng(1).integers(1, 4, len(y))
        if weighted
        else np.ones(len(y), dtype=int)
    )
    z, codes = repeated(weights, logits.astype(np.float64), y)
    exact = brentq(_slope, 1e-4, 1e4, args=(z, codes), xtol=1e-300, rtol=1e-14)
    model = TemperatureScaling(input="logit", clip=None).fit(
        logits, y, weights if weighted else None
    )
    assert model.inverse_temperature_ == pytest.approx(exact, rel=1e-11)
    expected = softmax(logits.astype(np.float64) * model.inverse_temperature_, axis=1)
    np.testing.assert_allclose(
        model.predict_proba(logits), expected, rtol=1e-12, atol=1e-15
    )


def test_a_start_that_is_separable_does_no_harm():
    # Every fourth row is right by far, so that the sample alone would have no optimum.
    logits, y = _sample(9_000)
    logits[::4, :] = -50
    logits[np.arange(0, len(y), 4), y[::4]] = 50
    exact = brentq(_slope, 1e-4, 1e4, args=(logits, y), xtol=1e-300, rtol=1e-14)
    model = TemperatureScaling(input="logit", clip=None).fit(logits, y)
    assert model.inverse_temperature_ == pytest.approx(exact, rel=1e-9)


def test_two_classes_are_many_of_which_the_others_are_impossible():
    rng = np.random.default_rng(0)
    logits, codes = rng.normal(0, 5, (400, 2)), rng.integers(0, 2, 400)
    logits[:4] = [[0, 0], [500, -500], [-500, 500], [1e-300, 0]]
    wider = np.column_stack((logits, np.full(400, -1e5)))
    for inverse in (1e-3, 0.7, 3.0, rng.uniform(0.1, 2, 400)):
        ((_, *two),) = row_derivatives(inverse, logits, codes)
        at = np.broadcast_to(inverse, 400)[:, None] * logits
        other = expit(at[np.arange(400), 1 - codes] - at[np.arange(400), codes])
        margin = logits[np.arange(400), codes] - logits[np.arange(400), 1 - codes]
        np.testing.assert_allclose(
            two,
            (-margin * other, margin**2 * other * (1 - other)),
            rtol=1e-12,
            atol=1e-300,
        )
        ((_, *many),) = row_derivatives(inverse, wider, codes)
        if np.min(inverse) > 0.05:  # else the third class is not impossible
            np.testing.assert_allclose(two, many, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        row_softmax(logits), row_softmax(wider)[:, :2], rtol=1e-12
    )


@pytest.mark.parametrize("n_classes", [1, 2, 3, 20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_derivatives_are_central_moments_under_the_probabilities(n_classes, dtype):
    rng = np.random.default_rng(n_classes)
    logits = rng.normal(0, 3, (50, n_classes))
    codes = rng.integers(0, max(n_classes, 2), 50)
    if n_classes > 2:  # one class of each row is impossible, and none a true one
        logits[np.arange(50), (codes + 1) % n_classes] = -np.inf
    wide = logits if n_classes > 1 else np.column_stack((np.zeros(50), logits))
    probability = softmax(0.7 * wide, axis=1)
    z = np.where(np.isinf(wide), 0, wide)
    mean = np.sum(probability * z, axis=1, keepdims=True)
    expected = [
        mean[:, 0] - z[np.arange(50), codes],
        np.sum(probability * (z - mean) ** 2, axis=1),
        np.sum(probability * (z - mean) ** 3, axis=1),
    ]
    ((_, *found),) = row_derivatives(0.7, logits, codes, dtype, n_derivatives=3)
    accuracy = 1e-10 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(found, expected, rtol=accuracy, atol=accuracy)


@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1e-6, 1.0, 300.0, 1e10, 1e37])
@pytest.mark.parametrize("n", [30, 6000])
def test_single_precision_only_gets_close(n, scale):
    logits, y = _sample(n=n, n_classes=5)
    single = (scale / 30 * logits).astype(np.float32)
    found = fit_inverse_temperature(single, y)
    assert found == pytest.approx(
        fit_inverse_temperature(single.astype(np.float64), y), rel=1e-9
    )
    found = fit_inverse_temperature(single, y, np.linspace(0, 2, n))
    assert found == pytest.approx(
        fit_inverse_temperature(single.astype(np.float64), y, np.linspace(0, 2, n)),
        rel=1e-9,
    )


def test_single_precision_of_tiny_logits_has_an_inverse_temperature_beyond_its_range():
    # Right in all rows, with the share 1/92 of doubt: the odds of the true class are
    # 182.
    logits, y = (
        np.float32(1e-38) * np.eye(3, dtype=np.float32)[np.arange(90) % 3],
        np.arange(90) % 3,
    )
    assert fit_inverse_temperature(logits, y) == pytest.approx(
        1e38 * np.log(182), rel=1e-5
    )


def test_separable_single_precision_is_doubted_and_always_wrong_ends_at_the_bound():
    logits, y = (
        np.float32(3) * np.eye(3, dtype=np.float32)[np.arange(90) % 3],
        np.arange(90) % 3,
    )
    assert fit_inverse_temperature(logits, y) == pytest.approx(
        np.log(182) / 3, rel=1e-6
    )
    assert fit_inverse_temperature(logits, (y + 1) % 3) == pytest.approx(1e-6 / 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_the_brier_score_has_no_lower_minimum_elsewhere(seed):
    # Rows of very different spread: one minimum for the sure rows, another for the
    # others.
    rng = np.random.default_rng(seed)
    n, n_classes = rng.choice([5, 8, 15, 40]), rng.choice([2, 3, 5])
    logits = rng.normal(size=(n, n_classes)) * np.exp(rng.normal(0, 2, (n, 1)))
    y = np.where(
        rng.random(n) < 0.6, logits.argmax(axis=1), rng.integers(0, n_classes, n)
    )
    weights = rng.integers(1, 4, n) if seed % 2 else np.ones(n)

    def score(inverse):
        proba = softmax(inverse * logits, axis=1)
        return weights @ (np.sum(proba**2, axis=1) - 2 * proba[np.arange(n), y] + 1)

    grid = np.logspace(-6, 6, 2000) / np.ptp(logits, axis=1).max()
    assert (
        score(fit_brier_temperature(logits, y, weights)) <= min(map(score, grid)) + 1e-9
    )


@pytest.mark.slow
def test_many_rows_end_where_a_callable_brier_score_does():
    logits, y = _sample(120_000)
    brier = (
        TemperatureScaling(loss="brier", input="logit")
        .fit(logits, y)
        .inverse_temperature_
    )

    def loss(y_true, y_proba):
        return np.mean(np.sum((y_proba - np.eye(3)[y_true]) ** 2, axis=1))

    found = (
        TemperatureScaling(loss=loss, input="logit").fit(logits, y).inverse_temperature_
    )
    assert found == pytest.approx(brier, rel=2e-3)


@pytest.mark.parametrize("weighted", [False, True])
def test_many_rows_of_two_classes_have_the_brier_score_that_none_are_condensed_for(
    weighted, monkeypatch
):
    rng = np.random.default_rng(0)
    z = rng.normal(-3, 2, 40_000)
    y = rng.random(40_000) < expit(0.6 * z)
    weight = rng.integers(1, 4, 40_000).astype(float) if weighted else None
    found = (
        TemperatureScaling(loss="brier", input="logit")
        .fit(z, y, sample_weight=weight)
        .temperature_
    )
    monkeypatch.setattr("skcalib._solvers.temperature.condensed", lambda *rows: rows)
    plain = (
        TemperatureScaling(loss="brier", input="logit")
        .fit(z, y, sample_weight=weight)
        .temperature_
    )
    assert found == pytest.approx(plain, rel=1e-9)


def test_few_events_need_no_more_passes_over_the_rows(monkeypatch):
    # Every 20th row is looked at for a start, and none of them is an event.
    scores = np.full(40_000, 0.001)
    labels = (np.arange(40_000) % 400 == 7).astype(int)
    passes, derivatives = [], temperature.row_derivatives

    def counted(inverse, logits, *rest, **options):
        passes.append(len(logits) / 40_000)
        return derivatives(inverse, logits, *rest, **options)

    monkeypatch.setattr(temperature, "row_derivatives", counted)
    found = TemperatureScaling(clip=None).fit(scores, labels).temperature_
    assert found == pytest.approx(logit(0.001) / logit(0.0025), rel=1e-6)
    assert sum(passes) < 10
