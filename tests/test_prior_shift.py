"""Prior shift against Bayes' rule in fractions, and the estimate of the prior against a
general-purpose solver.
"""

import json
from fractions import Fraction

import numpy as np
import pytest
from _catalog import refused
from _twins import repeated
from scipy.optimize import brentq, minimize
from scipy.special import expit, softmax
from scipy.stats import norm
from sklearn.metrics import brier_score_loss

from skcalib import PriorShift, RecalibratedClassifierCV, estimate_target_prior
from skcalib._inference.results import IntervalEstimate
from skcalib.export import from_dict, to_dict

TRAIN, TARGET = [0.5, 0.3, 0.2], [0.1, 0.2, 0.7]


def _many(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(3), n), np.arange(n) % 3


def test_it_is_bayes_rule():
    proba, y = _many(6)
    model = PriorShift(TRAIN, TARGET).fit(proba, y)
    for row, found in zip(proba, model.predict_proba(proba), strict=True):
        exact = [
            Fraction(p) * Fraction(t) / Fraction(s)
            for p, t, s in zip(row, TARGET, TRAIN, strict=True)
        ]
        np.testing.assert_allclose(
            found, [float(one / sum(exact)) for one in exact], rtol=1e-12
        )
    back = PriorShift(TARGET, TRAIN).fit(proba, y)
    np.testing.assert_allclose(
        back.predict_proba(model.predict_proba(proba)), proba, atol=1e-12
    )
    np.testing.assert_allclose(
        PriorShift(TRAIN, TRAIN).fit(proba, y).predict_proba(proba), proba, atol=1e-12
    )


def test_logits_are_probabilities_on_another_scale():
    proba, y = _many()
    logits = np.log(proba) + 7
    expected = PriorShift(TRAIN, TARGET).fit(proba, y).predict_proba(proba)
    found = (
        PriorShift(TRAIN, TARGET, input="logit").fit(logits, y).predict_proba(logits)
    )
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(softmax(logits, axis=1), proba)


@pytest.mark.filterwarnings("ignore:The event is:UserWarning")
def test_every_form_of_a_prior():
    scores, y = np.array([0.1, 0.4, 0.6, 0.9]), np.array(["no", "yes", "no", "no"])
    expected = PriorShift([0.5, 0.5], [0.75, 0.25]).fit(scores, y).predict_proba(scores)
    for train in (
        "balanced",
        0.5,
        [0.5, 0.5],
        {"no": 0.5, "yes": 0.5},
        np.array([0.5, 0.5]),
    ):
        # None: 1 of 4 labels is "yes"
        for target in (0.25, (0.75, 0.25), {"yes": 0.25, "no": 0.75}, None):
            model = PriorShift(train, target).fit(scores, y)
            np.testing.assert_allclose(
                model.predict_proba(scores), expected, atol=1e-12
            )
            assert model.target_prior_.tolist() == [0.75, 0.25]
            assert model.train_prior_.tolist() == [0.5, 0.5]
    learned = PriorShift(target_prior="balanced").fit(
        scores, y, sample_weight=[1, 5, 1, 3]
    )
    assert learned.train_prior_.tolist() == [0.5, 0.5]


def test_a_model_trained_on_resampled_rows_is_mended():
    # x ~ N(+-1, 1), one event in 50. A model of balanced rows says sigmoid(2 x).
    rng = np.random.default_rng(0)
    y = rng.random(50_000) < 0.02
    x = rng.normal(np.where(y, 1, -1))
    says = 1 / (1 + np.exp(-2 * x))
    truth = 0.02 * norm.pdf(x, 1) / (0.02 * norm.pdf(x, 1) + 0.98 * norm.pdf(x, -1))
    model = PriorShift("balanced").fit(says[:25_000], y[:25_000])
    found = model.predict_proba(says)[:, 1]
    assert np.abs(found - truth).max() < 0.05
    assert brier_score_loss(y, found) < 0.25 * brier_score_loss(y, says)
    exact = PriorShift("balanced", 0.02).fit(says, y).predict_proba(says)[:, 1]
    np.testing.assert_allclose(exact, truth, atol=1e-12)


def test_inside_a_classifier_with_class_weights():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.1).astype(int)
    X = rng.normal(size=(4000, 1)) + 2 * y[:, None]
    weighted = LogisticRegression(class_weight="balanced")
    model = RecalibratedClassifierCV(
        weighted, recalibrator=PriorShift("balanced"), ensemble=False
    ).fit(X, y)
    assert abs(weighted.fit(X, y).predict_proba(X)[:, 1].mean() - 0.1) > 0.1
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(0.1, abs=0.02)


def test_a_class_of_frequency_zero():
    proba, y = _many()
    found = PriorShift(TRAIN, [0.4, 0.6, 0]).fit(proba, y).predict_proba(proba)
    assert found[:, 2].max() <= 2**-52
    assert np.isfinite(np.log(found)).all()
    one_hot = np.eye(3)[y]
    assert np.isfinite(
        np.log(PriorShift(TRAIN, [0.4, 0.6, 0]).fit(one_hot, y).predict_proba(one_hot))
    ).all()
    assert PriorShift(TRAIN, TARGET, classes=[0, 1, 2]).fit(
        proba, np.zeros(60, int)
    ).predict_proba(proba).shape == (
        60,
        3,
    )


def test_bad_priors_are_refused():
    proba, y = _many()
    for options, words in (
        ({"train_prior": [0.5, 0.5, 0.5]}, ["train_prior", "sum to 1"]),
        ({"train_prior": [0.5, 0.5]}, ["train_prior", "3 classes"]),
        ({"train_prior": 0.5}, ["train_prior", "3 classes"]),
        ({"target_prior": [1.2, -0.2, 0]}, ["target_prior", "negative"]),
        ({"target_prior": [np.nan, 0.5, 0.5]}, ["target_prior"]),
        ({"target_prior": ["a", "b", "c"]}, ["target_prior", "numbers"]),
        ({"target_prior": {0: 0.5, 1: 0.5}}, ["target_prior", "keys"]),
        (
            {"train_prior": [1, 0, 0], "target_prior": TARGET},
            ["train_prior", "0 for the class 1"],
        ),
    ):
        with refused(ValueError, *words):
            PriorShift(**options).fit(proba, y)
    with refused(ValueError, "PriorShift", "class 2"):
        PriorShift(TRAIN, classes=[0, 1, 2]).fit(proba, y % 2)
    with refused(
        ValueError, "train_prior must be frequencies", "'balanced'", "found '0.5'"
    ):
        estimate_target_prior([0.1, 0.7], "0.5")
    with refused(ValueError, "train_prior"):
        estimate_target_prior(proba, [1, 0, 0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_priors_the_mean_probability_is_the_frequency(n_classes):
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, (400, n_classes))
    proba, weight = softmax(logits, axis=1), rng.integers(1, 4, 400)
    y = (
        softmax(logits + np.arange(n_classes), axis=1).cumsum(axis=1)
        > rng.random((400, 1))
    ).argmax(axis=1)
    model = PriorShift().fit(proba, y, sample_weight=weight)
    mean, events = (
        np.average(part, axis=0, weights=weight)
        for part in (model.predict_proba(proba), np.eye(n_classes)[y])
    )
    before = np.average(proba, axis=0, weights=weight)
    total = weight.sum()
    # one row of the mean forecast
    np.testing.assert_allclose(mean, (total * events + before) / (total + 1), atol=1e-9)

    def loss(free):  # the same by a general minimiser
        shifted = softmax(logits + np.append(0, free), axis=1)
        return -np.average(np.log(shifted[np.arange(400), y]), weights=weight)

    best = minimize(loss, np.zeros(n_classes - 1)).x
    found = np.diff(np.log(model.predict_proba(proba)) - np.log(proba), axis=1)[
        0
    ].cumsum()
    np.testing.assert_allclose(found, best, atol=0.02)
    absent = (
        PriorShift(classes=range(n_classes))
        .fit(proba, np.zeros(400, int))
        .predict_proba(proba)
    )
    assert np.isfinite(np.log(absent)).all()


# --- The mean of another population


def _shift_of_mean(log_odds, mean, weight):
    """Return the number that gives the log-odds this mean probability, by bisection."""
    return brentq(
        lambda a: np.average(expit(log_odds + a), weights=weight) - mean, -60, 60
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_probability_is_that_which_was_given(weighted):
    rng = np.random.default_rng(3)
    log_odds = rng.normal(-1, 1.5, 300)
    weight = rng.integers(1, 4, 300) if weighted else None
    y = rng.random(300) < 0.4  # plays no part
    given = IntervalEstimate(0.05, 0.03, 0.09, confidence_level=0.8)
    shift = PriorShift(target_mean=given, input="logit").fit(log_odds, y, weight)
    number = PriorShift(target_mean=0.05, input="logit").fit(log_odds, ~y, weight)
    found = shift.predict_proba(log_odds)
    assert (number.predict_proba(log_odds) == found).all()
    assert np.average(found[:, 1], weights=weight) == pytest.approx(0.05, abs=1e-9)
    middle, low, high = (_shift_of_mean(log_odds, m, weight) for m in given)
    for level in (0.8, 0.95):
        ratio = norm.ppf((1 + level) / 2) / norm.ppf(0.9)
        ends = [middle + ratio * (end - middle) for end in (low, high)]
        np.testing.assert_allclose(
            shift.predict_interval(log_odds, level),
            expit(log_odds[:, None] + ends),
            atol=1e-9,
        )
    read = from_dict(json.loads(json.dumps(to_dict(shift))))
    expected = shift.predict_interval([0.0, 1.0])
    assert (read.predict_interval([0.0, 1.0]) == expected).all()
    plain = PriorShift(target_mean=tuple(given), input="logit").fit(log_odds, y, weight)
    # an interval without a level has the level .9
    np.testing.assert_allclose(
        plain.predict_interval([0.3], 0.9), shift.predict_interval([0.3], 0.8)
    )
    with pytest.raises(ValueError, match="only with target_mean=.estimate, low, high"):
        number.predict_interval([0.3])


def test_a_mean_needs_two_classes_and_no_priors():
    proba, y = _many()
    scores, event = proba[:, 0], y == 0
    with refused(ValueError, "target_mean replaces both priors"):
        PriorShift("balanced", target_mean=0.1).fit(scores, event)
    with refused(ValueError, "target_mean is for two classes, found 3"):
        PriorShift(target_mean=0.1).fit(proba, y)
    unknown = IntervalEstimate(0.1, np.nan, np.nan, reason="few clusters")
    no_interval = [(0.1, 0.2), (0.1, 0.2, 0.3), (0.1, 0, 0.2), [0.1, 0.05, 1]]
    for mean in (*no_interval, unknown):
        with refused(ValueError, "target_mean"):
            PriorShift(target_mean=mean).fit(scores, event)
    one_class = PriorShift(target_mean=[0.3], classes=[0, 1]).fit(scores, y * 0)
    assert one_class.predict_proba(scores)[:, 1].mean() == pytest.approx(0.3)
    state = to_dict(PriorShift(target_mean=(0.1, 0.1, 0.2)).fit(scores, event))
    text = json.dumps(state).replace('["level", 0.9]', '["level", 0.0]')
    with pytest.raises(ValueError, match="level between 0 and 1"):
        from_dict(json.loads(text))


# --- The prior of unlabelled scores


def _mixture_loss(free, densities, weights):
    prior = softmax(np.append(free, 0))
    return -weights @ np.log(densities @ prior)


@pytest.mark.parametrize("seed", range(5))
def test_estimate_is_the_maximum_of_the_likelihood(seed):
    proba, _ = _many(80, seed)
    weights = np.random.default_rng(seed).random(80)
    densities = proba / np.array(TRAIN)
    best = minimize(
        _mixture_loss,
        [0, 0],
        args=(densities, weights),
        method="BFGS",
        options={"gtol": 1e-9},
    )
    found = estimate_target_prior(proba, TRAIN, sample_weight=weights)
    assert found.sum() == pytest.approx(1)
    assert -weights @ np.log(densities @ found) == pytest.approx(
        best.fun, abs=1e-7 * weights.sum()
    )
    np.testing.assert_allclose(found, softmax(np.append(best.x, 0)), atol=1e-3)


def test_estimate_finds_the_prior_of_the_population():
    rng = np.random.default_rng(0)
    y = rng.random(40_000) < 0.03
    says = 1 / (1 + np.exp(-2 * rng.normal(np.where(y, 1, -1))))
    assert estimate_target_prior(says)[1] == pytest.approx(0.03, abs=0.01)
    assert says.mean() > 0.1
    two = estimate_target_prior(np.column_stack((1 - says, says)), [0.5, 0.5])
    np.testing.assert_allclose(two, estimate_target_prior(says, 0.5), atol=1e-12)


def test_integer_weights_are_repeated_rows():
    proba, _ = _many()
    weights = np.random.default_rng(2).integers(0, 4, len(proba))
    weighted = estimate_target_prior(proba, TRAIN, sample_weight=weights)
    np.testing.assert_allclose(
        weighted, estimate_target_prior(*repeated(weights, proba), TRAIN), atol=1e-9
    )


def test_estimate_of_sure_scores_is_a_count():
    assert estimate_target_prior([0.0, 1.0, 1.0, 1.0])[1] == pytest.approx(
        0.75, abs=1e-9
    )
    np.testing.assert_allclose(
        estimate_target_prior(np.eye(4)[[0, 1, 1, 3]]), [0.25, 0.5, 0, 0.25], atol=1e-9
    )
    # nothing is known
    np.testing.assert_allclose(estimate_target_prior(np.full((5, 3), 1 / 3)).sum(), 1)


def test_expectation_maximisation_ends_at_the_estimate():
    proba, _ = _many()
    prior = np.array(TRAIN)
    for _ in range(5000):  # Saerens et al., Eq. 2.9
        posterior = proba * prior / TRAIN
        prior = (posterior / posterior.sum(axis=1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(estimate_target_prior(proba, TRAIN), prior, atol=1e-5)
