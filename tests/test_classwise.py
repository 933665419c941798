"""Class-wise temperature scaling against separate fits and a grid search over plain
losses.
"""

import numpy as np
import pytest
from _catalog import refused
from _twins import repeated, temperature_loss
from scipy.special import expit, softmax

from skcalib import ClasswiseTemperatureScaling, TemperatureScaling
from skcalib.recalibrators import _classwise


def _sample(n=300, n_classes=3, seed=0):
    """Logits that are too small for the first predicted classes and too large for the
    last.
    """
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=2, size=(n, n_classes))
    true_inverse = np.linspace(2.5, 0.3, n_classes)[logits.argmax(axis=1), None]
    return logits, np.array(
        [rng.choice(n_classes, p=row) for row in softmax(true_inverse * logits, axis=1)]
    )


def _fit(logits, y, max_deviation, **options):
    return ClasswiseTemperatureScaling(
        max_deviation, input="logit", clip=None, **options
    ).fit(logits, y)


def _loss(inverse, logits, y):
    """Return the summed log-loss with one inverse temperature a predicted class."""
    predicted = logits.argmax(axis=1)
    parts = [predicted == k for k in range(logits.shape[1])]
    return sum(
        temperature_loss(inverse[k], logits[rows], y[rows], None, "log") * rows.sum()
        for k, rows in enumerate(parts)
        if rows.any()
    )


def test_without_deviation_it_is_temperature_scaling():
    for n_classes in (2, 3, 10):
        logits, y = _sample(n_classes=n_classes)
        expected = TemperatureScaling(input="logit", clip=None).fit(logits, y)
        model = _fit(logits, y, 0)
        np.testing.assert_allclose(
            model.inverse_temperature_, expected.inverse_temperature_, rtol=1e-8
        )
        assert model.shared_inverse_temperature_ == pytest.approx(
            expected.inverse_temperature_, rel=1e-8
        )
        np.testing.assert_allclose(
            model.predict_proba(logits), expected.predict_proba(logits), atol=1e-9
        )


def test_with_any_deviation_classes_are_fitted_alone():
    logits, y = _sample()
    model = _fit(logits, y, np.inf)
    predicted = logits.argmax(axis=1)
    for k in range(3):
        rows = predicted == k
        alone = TemperatureScaling(input="logit", clip=None, classes=[0, 1, 2]).fit(
            logits[rows], y[rows]
        )
        assert model.inverse_temperature_[k] == pytest.approx(
            alone.inverse_temperature_, rel=1e-8
        )
        np.testing.assert_allclose(
            model.predict_proba(logits[rows]),
            alone.predict_proba(logits[rows]),
            atol=1e-9,
        )


@pytest.mark.parametrize("n_classes", [2, 4])
def test_objective_is_that_of_a_fine_grid_search(n_classes):
    logits, y = _sample(n=200, n_classes=n_classes)
    # Every class's loss on one grid, (n_classes, n_grid).
    step = 0.001
    grid = np.arange(step, 6, step)
    values = []
    for k in range(n_classes):
        rows = logits.argmax(axis=1) == k
        z, label = logits[rows], y[rows]
        shifted = z - z[np.arange(len(z)), label][:, None]
        values.append([np.log(np.exp(one * shifted).sum(axis=1)).sum() for one in grid])
    values = np.array(values)
    for max_deviation in (0.05, 0.3, 0.8, 1.5):
        model = _fit(logits, y, max_deviation)
        inverse, shared = model.inverse_temperature_, model.shared_inverse_temperature_
        assert np.all(np.abs(inverse - shared) <= max_deviation + 1e-12)
        # Around each centre of the grid the least value of each class in the window.
        reach = int(round(max_deviation / step))
        centre = np.arange(len(grid))
        total = np.zeros(len(grid))
        for of_class in values:
            within = np.clip(of_class.argmin(), centre - reach, centre + reach)
            total += of_class[np.clip(within, 0, len(grid) - 1)]
        loss = _loss(inverse, logits, y) / len(y)
        assert loss == pytest.approx(total.min() / len(y), abs=1e-6)


def test_more_deviation_never_fits_worse():
    logits, y = _sample(n_classes=5)
    losses = [
        _loss(_fit(logits, y, gamma).inverse_temperature_, logits, y)
        for gamma in (0, 0.1, 0.3, 1, 3, np.inf)
    ]
    assert all(np.diff(losses) <= 1e-9)
    assert losses[0] > losses[-1] + 1


def test_the_example_by_hand():
    # Log-odds of +-L with L = 2 log 3, right in 30 of 40 and in 36 of 40 rows: alone
    # the optima are alpha L = log 3 and log 9. At a distance of .2 from each other, 40
    # (sigma(a L) - 3/4) + 40 (sigma((a + .2) L) - 9/10) = 0.
    size = 2 * np.log(3)
    log_odds, y = np.repeat([size, -size], 40), np.repeat([1, 0, 0, 1], [30, 10, 36, 4])
    slope = lambda a: expit(a * size) - 0.75 + expit((a + 0.2) * size) - 0.9  # noqa: E731
    low, high = 0.5, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    model = _fit(log_odds, y, 0.1)
    np.testing.assert_allclose(model.inverse_temperature_, [low + 0.2, low], atol=1e-9)
    assert model.shared_inverse_temperature_ == pytest.approx(low + 0.1, abs=1e-9)


def test_of_many_centres_the_one_nearest_the_pooled_optimum():
    logits, y = _sample()
    alone = _fit(logits, y, np.inf).inverse_temperature_
    pooled = (
        TemperatureScaling(input="logit", clip=None).fit(logits, y).inverse_temperature_
    )
    assert _fit(logits, y, np.inf).shared_inverse_temperature_ == pytest.approx(
        pooled, rel=1e-8
    )
    middle = (alone.max() + alone.min()) / 2
    reach = (alone.max() - alone.min()) / 2
    for slack in (0.01, 0.05):
        model = _fit(logits, y, reach + slack)
        # feasible without a price: [max - Gamma, min + Gamma] = middle +- slack
        assert model.shared_inverse_temperature_ == pytest.approx(
            np.clip(pooled, middle - slack, middle + slack), rel=1e-7
        )
        np.testing.assert_allclose(model.inverse_temperature_, alone, rtol=1e-8)


@pytest.mark.parametrize("max_deviation", [0, 0.5, 30, "auto", np.inf])
def test_bounds_hold_and_decisions_stay(max_deviation):
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=3, size=(120, 4))
    predicted = logits.argmax(axis=1)
    # all right, all wrong, noise
    y = np.where(
        predicted == 0, 0, np.where(predicted == 1, 2, rng.integers(0, 4, 120))
    )
    for bounds in ((1e-2, 1e2), (0.5, 2.0), (1.0, 1.0)):
        model = _fit(logits, y, max_deviation, bounds=bounds)
        everything = np.append(
            model.inverse_temperature_, model.shared_inverse_temperature_
        )
        assert bounds[0] <= everything.min() <= everything.max() <= bounds[1]
        assert (
            np.abs(model.inverse_temperature_ - model.shared_inverse_temperature_).max()
            <= model.max_deviation_ + 1e-9
        )
        if max_deviation == np.inf:
            assert model.inverse_temperature_[:2].tolist() == [bounds[1], bounds[0]]
        new = rng.normal(scale=3, size=(500, 4))
        for rows in (logits, new, np.round(new), new.astype(np.float32)):
            np.testing.assert_array_equal(model.predict(rows), rows.argmax(axis=1))
            np.testing.assert_array_equal(
                model.predict_proba(rows).argmax(axis=1), rows.argmax(axis=1)
            )


def test_decisions_stay_where_probabilities_round():
    logits, y = _sample()
    model = _fit(logits, y, np.inf, bounds=(1e-2, 1e-2))
    # a hundredth of them is the same float
    close = np.array([[1.0, np.nextafter(1.0, 2.0), 0.0]])
    assert model.predict(close).tolist() == [1]


def test_sure_and_right_beyond_rounding_ends_on_the_bound():
    # exp(-690 alpha) is 0 from alpha = 1.1 on, where the other classes have theirs:
    # neither slope nor curvature is left, and the loss still falls. With a gap of more
    # than 700 the other classes would be impossible.
    logits = np.array([[690.0, 0, 0]] * 5 + [[0, 0.3, 0]] * 4 + [[0, 0, 0.2]] * 4)
    y = np.array([0] * 5 + [1, 1, 1, 2] + [2, 2, 2, 0])
    assert _fit(logits, y, np.inf).inverse_temperature_[0] == 100


def test_classes_never_predicted_take_the_shared_value():
    logits, y = _sample(n_classes=4)
    rows = logits.argmax(axis=1) != 2
    for gamma in (0.1, np.inf):
        model = _fit(logits[rows], y[rows], gamma)
        assert model.inverse_temperature_[2] == model.shared_inverse_temperature_
    # Rows without a preference say nothing either: the first class is predicted for
    # them alone.
    logits, y = (
        np.array([[0.0, 0, 0]] * 6 + [[0, 2, 0]] * 4 + [[0, 0, 2]] * 4),
        np.arange(14) % 3,
    )
    model = _fit(logits, y, 0.1)
    assert model.inverse_temperature_[0] == model.shared_inverse_temperature_
    nothing = ClasswiseTemperatureScaling().fit(np.full((6, 3), 1 / 3), [0, 1, 2] * 2)
    np.testing.assert_allclose(nothing.predict_proba([[1 / 3, 1 / 3, 1 / 3]]), 1 / 3)


def test_integer_weights_are_repeated_rows():
    logits, y = _sample()
    weights = np.random.default_rng(2).integers(0, 4, len(y))
    for gamma in (0, 0.3, "auto", np.inf):
        weighted = ClasswiseTemperatureScaling(gamma, input="logit", clip=None).fit(
            logits, y, weights
        )
        rows = ClasswiseTemperatureScaling(gamma, input="logit", clip=None).fit(
            *repeated(weights, logits, y)
        )
        np.testing.assert_allclose(
            weighted.inverse_temperature_, rows.inverse_temperature_, rtol=1e-9
        )
        assert weighted.max_deviation_ == pytest.approx(rows.max_deviation_, rel=1e-9)


def _warranted(logits, y, shared):
    """Return the rule for "auto", row by row: the moment estimate of the spread over
    twice the standard error.
    """
    slopes, curvatures = {}, {}
    for row, label in zip(logits, y, strict=True):
        share = np.exp(shared * row) / np.exp(shared * row).sum()
        k = int(row.argmax())
        slopes.setdefault(k, []).append(share @ row - row[label])
        curvatures.setdefault(k, []).append(share @ row**2 - (share @ row) ** 2)
    information = {k: sum(values) for k, values in curvatures.items()}
    total = sum(information.values())
    excess, noise, left = 0.0, 0.0, total
    for k, values in slopes.items():
        scatter = sum(slope**2 for slope in values) / information[k]
        excess += (
            sum(values) ** 2 / information[k] - (1 - information[k] / total) * scatter
        )
        noise += scatter
        left -= information[k] ** 2 / total
    return max(excess, 0) / left / (2 * np.sqrt(noise / total))


def test_the_deviation_that_the_rows_warrant():
    for n_classes, seed in ((3, 0), (10, 1), (30, 2)):
        logits, y = _sample(n=600, n_classes=n_classes, seed=seed)
        model, pooled = (
            _fit(logits, y, "auto"),
            TemperatureScaling(input="logit", clip=None).fit(logits, y),
        )
        expected = _warranted(logits, y, pooled.inverse_temperature_)
        assert 0.1 < expected < 10
        assert model.max_deviation_ == pytest.approx(expected, rel=1e-5)
        same = _fit(logits, y, model.max_deviation_)
        np.testing.assert_array_equal(
            model.inverse_temperature_, same.inverse_temperature_
        )
        assert same.max_deviation_ == model.max_deviation_


def test_with_more_rows_the_warranted_deviation_grows_like_their_root():
    logits, y = _sample(n=3000, n_classes=5)
    once, often = (
        ClasswiseTemperatureScaling(input="logit", clip=None).fit(
            logits, y, np.full(3000, w)
        )
        for w in (1, 10_000)
    )
    assert often.max_deviation_ == pytest.approx(100 * once.max_deviation_, rel=0.2)
    np.testing.assert_allclose(
        often.inverse_temperature_,
        _fit(logits, y, np.inf).inverse_temperature_,
        rtol=1e-9,
    )


def test_plenty_of_rows_are_not_bound():
    logits, y = _sample(n=5_000, n_classes=6)
    np.testing.assert_allclose(
        _fit(logits, y, "auto").inverse_temperature_,
        _fit(logits, y, np.inf).inverse_temperature_,
        rtol=1e-6,
    )


def test_classes_that_do_not_differ_keep_together():
    # The moment estimate is unbiased before it is cut at 0: half of the time it is 0,
    # and small the other half.
    deviations = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        logits = 2 * rng.normal(size=(300, 10))
        y = (softmax(logits, axis=1).cumsum(axis=1) > rng.random((300, 1))).argmax(
            axis=1
        )
        deviations.append(_fit(1.5 * logits, y, "auto").max_deviation_)
    assert 0.25 < np.mean(np.array(deviations) == 0) < 0.75
    assert np.quantile(deviations, 0.9) < 0.1  # of an inverse temperature of 2/3


def test_two_classes_that_differ_are_apart_with_a_few_hundred_rows():
    log_odds = np.repeat([2.2, -2.2], 40)
    y = np.repeat([1, 0, 0, 1], [30, 10, 36, 4])
    few = ClasswiseTemperatureScaling(input="logit", clip=None).fit(log_odds, y)
    assert 0.15 < few.max_deviation_ < 0.25  # the two are .5 apart, of which half binds
    many = ClasswiseTemperatureScaling(input="logit", clip=None).fit(
        np.repeat(log_odds, 10), np.repeat(y, 10)
    )
    alone = ClasswiseTemperatureScaling(np.inf, input="logit", clip=None).fit(
        np.repeat(log_odds, 10), np.repeat(y, 10)
    )
    np.testing.assert_array_equal(many.inverse_temperature_, alone.inverse_temperature_)


def test_nothing_to_tell_classes_apart_warrants_no_deviation():
    # One class is predicted alone; or rows without a preference; or every row right
    # beyond rounding.
    rng = np.random.default_rng(0)
    one = np.column_stack((3 + rng.random(50), rng.random((50, 2))))
    for logits, y in (
        (one, rng.integers(0, 3, 50)),
        (np.zeros((6, 3)), np.arange(6) % 3),
        (1e4 * np.eye(3)[np.arange(9) % 3], np.arange(9) % 3),
    ):
        model = ClasswiseTemperatureScaling(input="logit", clip=None).fit(logits, y)
        assert model.max_deviation_ == 0
        assert np.ptp(model.inverse_temperature_) == 0


def test_parameters_are_checked():
    logits, y = _sample()
    for bounds in ((1, 0.5), (0, 1), (1, np.inf), (1,), ("a", "b"), (np.nan, 1)):
        with refused(ValueError, "bounds"):
            _fit(logits, y, 0.1, bounds=bounds)
    for gamma in (-1, "much", np.nan):
        with pytest.raises(ValueError, match="'max_deviation' parameter"):
            _fit(logits, y, gamma)
    with refused(ValueError, "ClasswiseTemperatureScaling", "two classes"):
        ClasswiseTemperatureScaling(input="logit", classes=[0, 1, 2]).fit(
            logits[:4], np.zeros(4, int)
        )


@pytest.mark.parametrize("max_deviation", [0, 0.3, "auto", np.inf])
def test_classes_without_errors_cost_no_more_passes(monkeypatch, max_deviation):
    # Newton's steps toward infinity have one length: some 200 passes over the rows if
    # the bounds are not tried.
    logits, y = _sample(n=2000, n_classes=10)
    predicted = logits.argmax(axis=1)
    y = np.where(predicted < 5, predicted, y)
    passes = []
    derivatives = _classwise._PredictedClassLosses.derivatives

    def counted(self, inverse):
        passes.append(1)
        return derivatives(self, inverse)

    monkeypatch.setattr(_classwise._PredictedClassLosses, "derivatives", counted)
    _fit(logits, y, max_deviation)
    assert len(passes) < 60
