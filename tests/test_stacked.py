"""Stacks: the weights written plainly, what they choose, harm, hard samples, options
and refusals.
"""

import time

import numpy as np
import pytest
from _catalog import refused
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import KFold, train_test_split

from skcalib import (
    DirichletCalibration,
    EnsembleTemperatureScaling,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    SplineCalibration,
    StackedRecalibrator,
    TemperatureScaling,
    VennAbers,
)
from skcalib._fitting import member_fits, ridge_path
from skcalib.recalibrators import _stacked
from skcalib.recalibrators._uncalibrated import Uncalibrated


def sample(n=300, seed=0, slope=0.5):
    """Two classes, log-odds too large by 1 / slope."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 3, n)
    return expit(z), (rng.random(n) < expit(slope * z)).astype(int)


def many(n=400, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.full(n_classes, 0.4), n)
    truth = 0.7 * scores + 0.3 / n_classes
    return scores, np.array([rng.choice(n_classes, p=row) for row in truth])


def likelihoods(members, scores, y, splits):
    """Probability of each row's label by each member fitted to the other folds."""
    table = np.empty((len(y), len(members)))
    for train, test in splits:
        for j, member in enumerate(members):
            proba = (
                clone(member).fit(scores[train], y[train]).predict_proba(scores[test])
            )
            table[test, j] = proba[np.arange(len(test)), y[test]]
    return table


def log_loss(model, scores, y):
    return -np.mean(np.log(model.predict_proba(scores)[np.arange(len(y)), y]))


def test_weights_of_two_classes_by_the_formula():
    scores, y = sample(120)
    scores, splits = scores[:, None], list(KFold(4).split(scores))
    members = [TemperatureScaling(), IsotonicCalibration()]
    stack = StackedRecalibrator(
        members, cv=splits, likelihood_power=0.2, uncalibrated_weight=0.4
    ).fit(scores, y)
    table = np.clip(
        likelihoods([Uncalibrated(), *members], scores, y, splits),
        2.0**-52,
        1 - 2.0**-52,
    )
    np.testing.assert_allclose(
        stack.cv_log_loss_, -np.log(table).mean(axis=0), rtol=1e-9
    )
    powers = [
        prior * np.prod(table[:, j] ** 0.2) for j, prior in enumerate([0.4, 0.3, 0.3])
    ]
    np.testing.assert_allclose(stack.weights_, powers / np.sum(powers), rtol=1e-6)
    refits = [Uncalibrated(), *members]
    mixture = sum(
        w * m.fit(scores, y).predict_proba(scores)
        for w, m in zip(stack.weights_, refits, strict=True)
    )
    np.testing.assert_allclose(stack.predict_proba(scores), mixture, rtol=1e-12)


def test_many_classes_by_the_formulas():
    scores, y = many(200)
    splits = list(KFold(3).split(scores))
    members = [Uncalibrated(), TemperatureScaling(), MatrixScaling(0.1)]
    stack = StackedRecalibrator(members[1:], cv=splits).fit(scores, y)
    left_out = np.empty((3, *scores.shape))
    for train, test in splits:
        for j, member in enumerate(members):
            left_out[j, test] = (
                clone(member).fit(scores[train], y[train]).predict_proba(scores[test])
            )
    table = left_out[:, np.arange(200), y]
    tempered = np.array([0.5, 0.25, 0.25]) * np.exp(0.3 * np.log(table).sum(axis=1))

    def mixture_loss(angles):  # weights that sum to 1 are squares on the sphere
        w = (
            np.append(
                np.cos(angles[0]),
                np.sin(angles[0]) * np.array([np.cos(angles[1]), np.sin(angles[1])]),
            )
            ** 2
        )
        return -np.log(w @ table).sum(), w

    fits = [
        minimize(
            lambda a: mixture_loss(a)[0],
            start,
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-12},
        )
        for start in ([0.5, 0.5], [1.2, 0.3], [0.3, 1.2])
    ]
    likeliest = mixture_loss(min(fits, key=lambda fit: fit.fun).x)[1]
    np.testing.assert_allclose(
        stack.weights_, 0.25 * tempered / tempered.sum() + 0.75 * likeliest, atol=1e-4
    )

    log_mixture = np.log(np.tensordot(stack.weights_, left_out, 1))
    best = minimize_scalar(
        lambda b: -log_softmax(b * log_mixture, axis=1)[np.arange(200), y].sum(),
        bounds=(0.3, 3),
        method="bounded",
        options={"xatol": 1e-9},
    ).x
    p = softmax(best * log_mixture, axis=1)
    variance = (p * log_mixture**2).sum(axis=1) - (p * log_mixture).sum(axis=1) ** 2
    information = best**2 * variance.sum()
    power = np.exp(np.log(best) * information / (information + 10))
    assert stack.temperature_ == pytest.approx(1 / power, rel=1e-6)
    refits = [clone(member).fit(scores, y).predict_proba(scores) for member in members]
    expected = softmax(power * np.log(np.tensordot(stack.weights_, refits, 1)), axis=1)
    np.testing.assert_allclose(stack.predict_proba(scores), expected, atol=1e-6)


def test_fits_to_folds_that_start_from_the_fit_to_all_are_those_from_scratch():
    scores, y = many(300)
    splits = list(KFold(3).split(scores))
    stack = StackedRecalibrator(
        [DirichletCalibration(0.1)], cv=splits, uncalibrated_weight=0
    ).fit(scores, y)
    table = likelihoods([DirichletCalibration(0.1)], scores, y, splits)
    np.testing.assert_allclose(
        stack.cv_log_loss_, -np.log(table).mean(axis=0), rtol=1e-7
    )


def test_what_the_default_members_share_changes_none_of_them():
    # The floor is found once: each member is as if it were fitted alone.
    scores = many(300)[0]
    rng = np.random.default_rng(1)
    y = np.array(
        [rng.choice(4, p=row) for row in softmax(0.6 * np.log(scores), axis=1)]
    )
    splits = list(KFold(3).split(scores))
    stack = StackedRecalibrator(cv=splits).fit(scores, y)
    alone = [
        TemperatureScaling(),
        VennAbers(),
        DirichletCalibration(0.3),
        DirichletCalibration(0.03),
    ]
    assert (
        stack.recalibrators_[1].floor_
        == TemperatureScaling().fit(scores, y).floor_
        == 0
    )
    for member, single in zip(stack.recalibrators_[1:], alone, strict=True):
        expected = clone(single).fit(scores, y).predict_proba(scores)
        np.testing.assert_allclose(member.predict_proba(scores), expected, atol=1e-6)
    alone = [
        clone(one).set_params(clip=None) if hasattr(one, "clip") else one
        for one in alone
    ]
    table = likelihoods([Uncalibrated(), *alone], scores, y, splits)
    np.testing.assert_allclose(
        stack.cv_log_loss_, -np.log(table).mean(axis=0), rtol=1e-7
    )


def test_seconds_and_progress(capsys, monkeypatch):
    monkeypatch.setattr("skcalib._progress._SECONDS", 0.0)
    scores, y = many(80)
    stack = StackedRecalibrator(verbose=True, cv=3).fit(scores, y)
    assert stack.seconds_.shape == stack.weights_.shape
    assert (stack.seconds_ > 0).all()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 5 * 4
    # the first fold says whom to fit to all rows
    for first, name in ((0, "fold 1 of 3"), (5, "all rows"), (10, "fold 2 of 3")):
        assert lines[first].startswith(
            f"[StackedRecalibrator] {name}, member 1 of 5: Uncalibrated, "
        )
    assert (
        "[StackedRecalibrator] fold 3 of 3, member 5 of 5: DirichletCalibration, "
        in lines[-1]
    )
    StackedRecalibrator().fit(scores, y)
    assert capsys.readouterr().err == ""


def test_a_verbose_fit_that_takes_long_is_not_silent(capsys, monkeypatch):
    class Slow(PlattScaling):
        def _fit_scores(self, scores, codes, sample_weight):
            time.sleep(0.05)
            super()._fit_scores(scores, codes, sample_weight)

    monkeypatch.setattr("skcalib._progress._SECONDS", 0.0)
    monkeypatch.setattr(member_fits, "_LONGEST_SILENCE", 0.01)
    stack = StackedRecalibrator([Slow()], verbose=True, cv=2).fit(*sample(60))
    lines = [line for line in capsys.readouterr().err.splitlines() if "Slow" in line]
    assert "all rows, member 2 of 2: Slow, 0 s" in lines[0]
    assert "all rows, member 2 of 2: Slow is still being fitted, 0 s" in lines[1]
    assert sum("still" not in line for line in lines) == 3
    assert stack.seconds_[1] >= 0.15


def test_default_members():
    def types(stack):
        return [type(member) for member in stack.recalibrators_]

    assert types(StackedRecalibrator().fit(*sample(60))) == [
        Uncalibrated,
        TemperatureScaling,
        SplineCalibration,
        VennAbers,
    ]
    stack = StackedRecalibrator(uncalibrated_weight=0).fit(*many(80))
    assert types(stack) == [
        TemperatureScaling,
        VennAbers,
        DirichletCalibration,
        DirichletCalibration,
    ]
    assert [member.alpha for member in stack.recalibrators_[2:]] == [0.3, 0.03]
    assert types(StackedRecalibrator(rank_preserving=True).fit(*many(80))) == [
        Uncalibrated,
        TemperatureScaling,
        EnsembleTemperatureScaling,
    ]


def test_the_learned_floor_reaches_the_members_on_log_odds():
    rng = np.random.default_rng(1)
    votes = rng.binomial(10, rng.beta(0.3, 0.3, 500)) / 10
    y = (rng.random(500) < 0.9 * votes + 0.05).astype(int)
    stack = StackedRecalibrator().fit(votes, y)
    learned = TemperatureScaling().fit(votes, y).floor_
    assert learned > 0
    assert [member.floor_ for member in stack.recalibrators_[1:3]] == [learned] * 2


@pytest.mark.slow
def test_leaves_calibrated_scores_alone_and_mends_others():
    rng = np.random.default_rng(2)
    scores = rng.random(1000)
    calibrated = StackedRecalibrator().fit(
        scores, (rng.random(1000) < scores).astype(int)
    )
    assert calibrated.weights_[0] > 0.3
    np.testing.assert_allclose(
        calibrated.predict_proba(scores)[:, 1], scores, atol=0.05
    )
    scores, y = sample(1000)
    assert StackedRecalibrator().fit(scores, y).weights_[0] < 1e-6


@pytest.mark.parametrize("n_classes", [2, 4])
def test_logits_and_their_probabilities(n_classes):
    # Votes: ties in each column, which the softmax function breaks by rounding.
    rng = np.random.default_rng(0)
    votes = rng.multinomial(20, np.full(n_classes, 1 / n_classes), 400) + 0.5
    y = (np.log(votes) + rng.gumbel(size=votes.shape)).argmax(axis=1)
    logits = 2 * np.log(votes)
    proba = softmax(logits, axis=1)
    found = StackedRecalibrator(input="logit").fit(logits, y).predict_proba(logits)
    expected = StackedRecalibrator().fit(proba, y).predict_proba(proba)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.slow
def test_is_near_the_best_member_and_never_far_from_the_scores():
    # Four kinds of distortion, 20 samples of 250 rows each, scored on 20,000 fresh
    # rows: the mean log-loss is at most .005 nats above the best single member of that
    # distortion, and no sample is worse than no calibration by .02.
    bends = {
        "calibrated": lambda z: z,
        "over-confident": lambda z: 0.4 * z,
        "curved": lambda z: 0.5 * z + 0.15 * z**2,
        "step": lambda z: np.where(z > 1, 2.0, -1.5),
    }
    rng = np.random.default_rng(3)
    for bend in bends.values():
        z = rng.normal(0, 2, 20_000)
        fresh = expit(z), (rng.random(20_000) < expit(bend(z))).astype(int)
        uncalibrated = log_loss(Uncalibrated().fit(*fresh), *fresh)
        losses = []
        for _ in range(20):
            z = rng.normal(0, 2, 250)
            stack = StackedRecalibrator().fit(
                expit(z), (rng.random(250) < expit(bend(z))).astype(int)
            )
            members = [log_loss(member, *fresh) for member in stack.recalibrators_]
            losses.append([log_loss(stack, *fresh), *members])
            assert losses[-1][0] < uncalibrated + 0.02
        mean = np.mean(losses, axis=0)
        assert mean[0] < mean[1:].min() + 0.005


@pytest.mark.slow
def test_beats_each_of_its_members_on_a_forest():
    X, y = load_digits(return_X_y=True)
    X_fit, X_rest, y_fit, y_rest = train_test_split(
        X, y, test_size=0.6, random_state=0, stratify=y
    )
    scores = (
        RandomForestClassifier(20, max_depth=6, random_state=0)
        .fit(X_fit, y_fit)
        .predict_proba(X_rest)
    )
    stack = StackedRecalibrator().fit(scores[:540], y_rest[:540])
    members = [
        log_loss(member, scores[540:], y_rest[540:]) for member in stack.recalibrators_
    ]
    assert log_loss(stack, scores[540:], y_rest[540:]) < min(members) + 0.01
    assert log_loss(stack, scores[540:], y_rest[540:]) < members[0] - 0.2


@pytest.mark.parametrize("data", [sample, many], ids=["two classes", "many classes"])
def test_rank_preserving_stacks_reverse_nothing(data):
    scores, y = data(200)
    proba = (
        StackedRecalibrator(rank_preserving=True).fit(scores, y).predict_proba(scores)
    )
    if scores.ndim == 1:
        assert (np.diff(proba[scores.argsort(), 1]) >= 0).all()
    else:
        for row, given in zip(proba, scores, strict=True):
            assert (np.diff(row[given.argsort()]) >= -1e-15).all()


def test_threads_change_nothing():
    scores, y = sample(150)
    alone, together = (
        StackedRecalibrator(n_jobs=n_jobs).fit(scores, y) for n_jobs in (None, 2)
    )
    np.testing.assert_array_equal(alone.weights_, together.weights_)
    np.testing.assert_array_equal(
        alone.predict_proba(scores), together.predict_proba(scores)
    )


def test_members_take_the_input_and_the_labels_of_the_stack():
    scores, y = sample(100)
    names = np.array(["no", "yes"])[y]
    z = np.log(scores / (1 - scores))
    stack = StackedRecalibrator([PlattScaling(), VennAbers()], input="logit").fit(
        z, names
    )
    for member in stack.recalibrators_:
        assert member.input == "logit"
        assert member.classes_.tolist() == ["no", "yes"]
    assert set(stack.predict(z)) == {"no", "yes"}


# Each in well under a minute, finite, and without a warning (warnings are errors in
# these tests).
rng_ = np.random.default_rng(4)
HARD = {
    "30 rows": sample(30),
    "separable": (np.linspace(0.001, 0.999, 60), (np.arange(60) > 29).astype(int)),
    "separable, 30 rows of three classes": (
        np.repeat(np.eye(3) * 0.9 + 0.1 / 3, 10, axis=0),
        np.repeat([0, 1, 2], 10),
    ),
    "one-hot": (np.eye(2)[rng_.integers(0, 2, 80)], rng_.integers(0, 2, 80)),
    "one-hot, five classes": (
        np.eye(5)[rng_.integers(0, 5, 80)],
        rng_.permutation(np.arange(80) % 5),
    ),
    "one score": (np.full(40, 0.3), np.arange(40) % 4 // 3),
    "one event": (np.linspace(0.1, 0.9, 30), (np.arange(30) == 29).astype(int)),
    "one row of a class": (many(60)[0], np.append(many(60)[1][:-1] % 3, 3)),
    "two rows": (np.array([0.4, 0.6]), np.array([0, 1])),
    "always wrong": (np.linspace(0, 1, 50), (np.arange(50) < 25).astype(int)),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_samples_stay_finite(name):
    scores, y = HARD[name]
    stack = StackedRecalibrator().fit(scores, y)
    proba = stack.predict_proba(scores)
    assert np.isfinite(np.log(proba)).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert stack.weights_.sum() == pytest.approx(1)
    assert np.isfinite(stack.cv_log_loss_).all()


def test_a_class_without_rows():
    scores, y = many(120)
    stack = StackedRecalibrator(classes=[0, 1, 2, 3]).fit(scores[y != 2], y[y != 2])
    proba = stack.predict_proba(scores)
    assert np.isfinite(np.log(proba)).all()
    assert proba[:, 2].mean() < scores[:, 2].mean()


@pytest.mark.slow
def test_150_classes_take_seconds():
    scores, y = many(1500, 150, seed=5)
    stack = StackedRecalibrator(classes=np.arange(150))
    start = time.perf_counter()
    stack.fit(scores, y)
    assert time.perf_counter() - start < 60
    assert [type(member) for member in stack.recalibrators_] == [
        Uncalibrated,
        TemperatureScaling,
        VennAbers,
        DirichletCalibration,
        DirichletCalibration,
    ]
    assert np.isfinite(np.log(stack.predict_proba(scores))).all()


def test_a_fold_that_sees_one_class_only_weighs_nothing():
    # The only event is in one of five folds: its rows count alike for all members, the
    # other rows do not.
    scores, y = np.linspace(0.1, 0.9, 20), (np.arange(20) == 19).astype(int)
    stack = StackedRecalibrator(
        [TemperatureScaling()],
        cv=[(np.arange(10), np.arange(10, 20))[::s] for s in (1, -1)],
    )
    stack.fit(scores[:, None], y)
    # Fold 1 trains on rows 0-9, all of one class, and predicts rows 10-19 as they are.
    # Fold 2 is fitted.
    as_they_are = np.where(y == 1, scores, 1 - scores)
    fitted = (
        TemperatureScaling().fit(scores[10:], y[10:]).predict_proba(scores[:10])[:, 0]
    )
    np.testing.assert_allclose(stack.cv_log_loss_[0], -np.log(as_they_are).mean())
    np.testing.assert_allclose(
        stack.cv_log_loss_[1], -np.log(np.append(fitted, as_they_are[10:])).mean()
    )


def test_one_class_is_refused():
    with refused(ValueError, "StackedRecalibrator needs rows of two classes", "1"):
        StackedRecalibrator(classes=[0, 1]).fit([0.2, 0.8], [1, 1])


def test_options_that_contradict_each_other_are_refused():
    scores, y = sample(40)
    with refused(ValueError, "recalibrators", "none"):
        StackedRecalibrator([]).fit(scores, y)
    with refused(ValueError, "rank_preserving"):
        StackedRecalibrator([PlattScaling()], rank_preserving=True).fit(scores, y)


@pytest.mark.parametrize(
    "option",
    [
        {"likelihood_power": -1},
        {"uncalibrated_weight": 1},
        {"cv": 1},
        {"recalibrators": "all"},
    ],
)
def test_options_out_of_range_are_refused(option):
    with pytest.raises(ValueError, match=next(iter(option))):
        StackedRecalibrator(**option).fit(*sample(40))


@pytest.mark.slow
def test_a_member_without_a_chance_is_fitted_to_one_fold_alone(monkeypatch):
    """A weak ridge overfits 50 rows of each of 20 classes: its weight would be 0."""
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(1000, 20)) * 2
    y = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    scores = softmax(2 * logits, axis=1)
    alphas = []
    fit = DirichletCalibration._fit_logits

    def counted(self, *rows):
        alphas.append(self.alpha)
        return fit(self, *rows)

    monkeypatch.setattr(DirichletCalibration, "_fit_logits", counted)
    stack = StackedRecalibrator().fit(scores, y)
    assert (alphas.count(0.3), alphas.count(0.03)) == (6, 1)
    assert stack.weights_[-1] == 0
    assert stack.weights_.sum() == pytest.approx(1)
    assert stack.cv_log_loss_[-1] > stack.cv_log_loss_[1] + 0.1
    # A list of members is the user's own: each is fitted to every fold.
    alphas.clear()
    StackedRecalibrator([TemperatureScaling(), DirichletCalibration(0.03)]).fit(
        scores, y
    )
    assert len(alphas) == 6


def _floor_alone(self, *members):
    """Return the shortcuts of a member that starts from no other fit."""
    return member_fits.Shortcuts(self.floor, None, None, only_forecasts=False)


def test_where_a_spline_starts_changes_nothing(monkeypatch):
    scores, y = sample(400)
    weight = np.random.default_rng(1).integers(1, 4, 400)
    for monotone in (False, True):
        stack = StackedRecalibrator(rank_preserving=monotone)
        stack.fit(scores, y, sample_weight=weight)
        assert not any(
            hasattr(member, "_inverse_to_start_from") for member in stack.recalibrators_
        )
        with monkeypatch.context() as patched:
            patched.setattr(member_fits.StackFits, "_shortcuts", _floor_alone)
            alone = StackedRecalibrator(rank_preserving=monotone)
            alone.fit(scores, y, sample_weight=weight)
        np.testing.assert_allclose(stack.cv_log_loss_, alone.cv_log_loss_, rtol=1e-8)
        np.testing.assert_allclose(stack.weights_, alone.weights_, rtol=1e-6)


def test_hooks_of_a_subclass_get_three_arguments():
    """A user's member of a class whose own hooks take shortcuts, too."""
    called = []

    class Halved(TemperatureScaling):
        def _fit_logits(self, logits, codes, sample_weight):
            called.append(len(codes))
            super()._fit_logits(logits / 2, codes, sample_weight)

    class Smooth(SplineCalibration):
        def _fit_binary(self, log_odds, labels, sample_weight):
            called.append(len(labels))
            super()._fit_binary(log_odds, labels, sample_weight)

    class Kept(TemperatureScaling):
        def _fit_scores(self, scores, codes, sample_weight):
            called.append(len(codes))
            super()._fit_scores(scores, codes, sample_weight)

    scores, y = sample(60)
    members = [Halved(), Smooth(), Kept()]
    stack = StackedRecalibrator(members, cv=2).fit(scores, y)
    # each is fitted to all rows and to the other half of each fold
    assert sorted(called) == 6 * [30] + 3 * [60]
    alone = Halved().fit(scores, y)
    assert stack.recalibrators_[1].temperature_ == pytest.approx(alone.temperature_)


@pytest.mark.slow
def test_many_rows_find_the_temperature_of_a_left_out_fold_on_some(monkeypatch):
    """Those that the members of the fold were fitted to do as well as all."""
    scores, y = many(4000)
    gains = []
    for most in (500, 10_000):
        monkeypatch.setattr(_stacked, "_MOST_TRAIN_ROWS", (most, most))
        sizes = []
        mixture_temperature = StackedRecalibrator._mixture_temperature

        def counted(self, mixture, *rows, temperature=mixture_temperature, sizes=sizes):
            sizes.append(len(mixture))
            return temperature(self, mixture, *rows)

        with monkeypatch.context() as patched:
            patched.setattr(StackedRecalibrator, "_mixture_temperature", counted)
            gains.append(StackedRecalibrator().fit(scores, y).gain_.estimate)
        assert sizes[0] == 4000
        # every seventh of the 3,200 rows of the other folds
        expected = 3200 / 7 if most == 500 else 3200
        np.testing.assert_allclose(sizes[1:], expected, atol=3)
    assert gains[0] == pytest.approx(gains[1], abs=0.01)


def test_where_a_member_starts_changes_nothing(monkeypatch):
    """Also where a sample of the rows gives the curvature."""
    monkeypatch.setattr(ridge_path, "_CURVATURE_ROWS", 60)
    stack = StackedRecalibrator().fit(*many(300))
    assert not any(hasattr(member, "_curvature") for member in stack.recalibrators_)
    monkeypatch.setattr(member_fits.StackFits, "_shortcuts", _floor_alone)
    monkeypatch.setattr(ridge_path, "_CURVATURE_ROWS", 10_000)
    alone = StackedRecalibrator().fit(*many(300))
    np.testing.assert_allclose(stack.weights_, alone.weights_, atol=1e-6)
    for member, other in zip(
        stack.recalibrators_[-2:], alone.recalibrators_[-2:], strict=True
    ):
        np.testing.assert_allclose(member.coef_, other.coef_, atol=1e-6)
