"""cross_validate: recalibrators on the same folds, against plain loops."""

import numpy as np
import pytest
from scipy.stats import t as student
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, KFold

from skcalib import (
    GroupwiseRecalibrator,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
)
from skcalib._intervals.influence import Influence
from skcalib.evaluation import cross_validate, recalibration_gain

N = 240
METHODS = {"platt": PlattScaling(), "temperature": TemperatureScaling()}


def _forecasts(seed=0, n=N):
    """Return labels and overconfident scores."""
    rng = np.random.default_rng(seed)
    truth = rng.uniform(0.05, 0.95, n)
    labels = rng.random(n) < truth
    return labels, truth**2 / (truth**2 + (1 - truth) ** 2)


def _log_loss(scores, labels):
    return -np.log(np.where(labels, scores, 1 - scores))


def test_probabilities_and_losses_by_a_plain_loop():
    labels, scores = _forecasts()
    splits = list(KFold(4, shuffle=True, random_state=0).split(scores))
    result = cross_validate(labels, scores, METHODS, cv=splits)
    for name, method in METHODS.items():
        expected = np.empty(N)
        for train, test in splits:
            fitted = type(method)().fit(scores[train], labels[train])
            expected[test] = fitted.predict_proba(scores[test])[:, 1]
        np.testing.assert_allclose(result.probabilities[name], expected, atol=1e-12)
        np.testing.assert_allclose(
            result.losses["log"][name], _log_loss(expected, labels)
        )
        np.testing.assert_allclose(
            result.losses["brier"][name], (expected - labels) ** 2
        )
        assert result.mean_loss(name, "brier") == pytest.approx(
            np.mean((expected - labels) ** 2)
        )
    np.testing.assert_array_equal(result.probabilities["uncalibrated"], scores)
    for fold, (train, test) in zip(result.folds, splits, strict=True):
        np.testing.assert_array_equal(fold.train, train)
        np.testing.assert_array_equal(fold.test, test)


def _plain_gain(labels, scores, splits, weight, unit):
    """Return the gain of Platt scaling in log-loss, its standard error and degrees of
    freedom, by loops over folds and units; `unit` is None for weights that count.
    """
    n = len(labels)
    by_fit = []
    held_out = np.empty(n)
    for train, test in splits:
        fitted = PlattScaling().fit(
            scores[train], labels[train], sample_weight=weight[train]
        )
        after = fitted.predict_proba(scores)[:, 1]
        by_fit.append(_log_loss(scores, labels) - _log_loss(after, labels))
        held_out[test] = by_fit[-1][test]
    estimate = np.sum(weight * held_out) / weight.sum()
    of_fits = 0.0
    if unit is None:
        for i in range(n):
            of_fits += weight[i] * np.var([gain[i] for gain in by_fit])
        influence = Influence(held_out - estimate, weight)
    else:
        for name in np.unique(unit):
            rows = unit == name
            sums = [np.sum(weight[rows] * gain[rows]) for gain in by_fit]
            of_fits += np.var(sums)
        _, cluster = np.unique(unit, return_inverse=True)
        is_rows = len(np.unique(unit)) == n
        influence = Influence(
            held_out - estimate, weight, True, None if is_rows else cluster
        )
    of_fits *= (len(splits) - 1) / weight.sum() ** 2
    error, degrees, _ = influence.spread()
    return estimate, np.sqrt(error**2 + of_fits), degrees


@pytest.mark.parametrize("kind", ["counts", "importance", "clusters"])
def test_the_gain_by_a_plain_loop(kind):
    labels, scores = _forecasts(1)
    rng = np.random.default_rng(2)
    splits = list(KFold(4, shuffle=True, random_state=0).split(scores))
    weight = np.ones(N)
    options = {}
    unit = None
    if kind == "counts":
        weight = rng.integers(1, 5, N).astype(float)
        options = {"sample_weight": weight}
    elif kind == "importance":
        weight = rng.exponential(size=N)
        weight *= weight.sum() / (weight @ weight)  # adds up to the effective number
        options = {"sample_weight": 1000 * weight, "weight_type": "importance"}
        unit = np.arange(N)
    else:
        unit = np.arange(N) // 6
        options = {
            "clusters": unit,
            "sample_weight": weight,
            "weight_type": "importance",
        }
        splits = list(GroupKFold(4).split(scores, groups=unit))
    result = cross_validate(
        labels, scores, {"platt": PlattScaling()}, cv=splits, **options
    )
    estimate, error, degrees = _plain_gain(labels, scores, splits, weight, unit)
    gain = result.gain("uncalibrated", "platt")
    half = student.ppf(0.95, degrees) * error
    np.testing.assert_allclose(
        gain, (estimate, estimate - half, estimate + half), rtol=1e-6
    )
    back = result.gain("platt", "uncalibrated", confidence_level=0.9)
    assert back.estimate == pytest.approx(-gain.estimate)
    pvalue = result.pvalue("uncalibrated", "platt", alternative="greater")
    assert pvalue == pytest.approx(student.sf(estimate / error, degrees), rel=1e-5)
    assert result.pvalue("uncalibrated", "platt") == pytest.approx(
        2 * student.sf(estimate / error, degrees), rel=1e-5
    )


@pytest.mark.parametrize("factor", [0.01, 1000])
def test_a_factor_of_importance_weights_changes_nothing(factor):
    labels, scores = _forecasts(3)
    weight = np.random.default_rng(0).lognormal(0, 1.2, N)
    gains = []
    for scaled in (weight, factor * weight):
        result = cross_validate(
            labels, scores, METHODS, sample_weight=scaled, weight_type="importance"
        )
        gains.append(result.gain("uncalibrated", "platt"))
    np.testing.assert_allclose(gains[0], gains[1], rtol=1e-5)


def test_weights_that_are_no_counts_are_warned_about():
    labels, scores = _forecasts()
    with pytest.warns(UserWarning, match="not integers"):
        cross_validate(labels, scores, METHODS, sample_weight=np.full(N, 0.5))


def test_a_frequency_weight_is_a_number_of_samples():
    labels, scores = _forecasts(4, 90)
    weight = np.random.default_rng(0).integers(0, 4, 90)
    rows = np.repeat(np.arange(90), weight)
    weighted = cross_validate(labels, scores, METHODS, sample_weight=weight)
    repeated = cross_validate(labels[rows], scores[rows], METHODS)
    for loss in ("log", "brier"):
        np.testing.assert_allclose(
            weighted.gain("platt", "temperature", loss),
            repeated.gain("platt", "temperature", loss),
            rtol=1e-5,
            atol=1e-9,
        )
    # a sample of weight 0 is nowhere, one of more is the mean over its copies
    assert np.isnan(weighted.probabilities["platt"][weight == 0]).all()
    copies = np.bincount(rows, repeated.losses["log"]["platt"], minlength=90)
    used = weight > 0
    np.testing.assert_allclose(
        weighted.losses["log"]["platt"][used], copies[used] / weight[used], rtol=1e-6
    )
    for fold in weighted.folds:
        assert not np.isin(np.flatnonzero(~used), fold.train).any()


def test_no_fold_splits_a_cluster():
    labels, scores = _forecasts()
    clusters = np.array([f"patient {k}" for k in np.arange(N) % 17])
    result = cross_validate(
        labels, scores, METHODS, clusters=clusters, n_repeats=2, random_state=3
    )
    assert len(result.folds) == 10
    for fold in result.folds:
        assert not set(clusters[fold.train]) & set(clusters[fold.test])
        assert len(fold.train) + len(fold.test) == N
    tested = np.concatenate([fold.test for fold in result.folds])
    assert (np.bincount(tested) == 2).all()
    by_group = cross_validate(
        labels, scores, METHODS, clusters=clusters, cv=GroupKFold(3)
    )
    assert len(by_group.folds) == 3
    with pytest.raises(ValueError, match="cv divides a cluster"):
        cross_validate(labels, scores, METHODS, clusters=clusters, cv=KFold(3))
    with pytest.raises(ValueError, match="only one cluster"):
        cross_validate(labels, scores, METHODS, clusters=np.zeros(N))


def test_losses_are_means_over_the_divisions():
    labels, scores = _forecasts()
    both = cross_validate(labels, scores, METHODS, n_repeats=2, random_state=5)
    mean = np.zeros(N)
    for fold, losses in zip(
        both.folds, both.losses_by_fit["log"]["platt"], strict=True
    ):
        mean[fold.test] += losses[fold.test] / 2
    np.testing.assert_allclose(both.losses["log"]["platt"], mean)
    first = cross_validate(labels, scores, METHODS, random_state=5)
    np.testing.assert_array_equal(first.folds[0].test, both.folds[0].test)
    assert not np.array_equal(both.folds[0].test, both.folds[5].test)
    with pytest.raises(ValueError, match="needs an int"):
        cross_validate(labels, scores, METHODS, n_repeats=2, cv=KFold(3))


def test_two_clusters_are_too_few_for_limits():
    labels, scores = _forecasts()
    result = cross_validate(labels, scores, METHODS, clusters=np.arange(N) % 2)
    gain = result.gain("uncalibrated", "platt")
    assert np.isfinite(gain.estimate)
    assert np.isnan([gain.low, gain.high]).all()
    assert "number of clusters is 2" in gain.reason
    assert np.isnan(result.pvalue("uncalibrated", "platt"))
    assert "number of clusters is 2" in str(result)
    assert "number of clusters is 2" in result.columns()["reason"][1]


def test_one_class_has_no_gain():
    _, scores = _forecasts()
    result = cross_validate(np.zeros(N), scores, METHODS, labels=[0, 1])
    gain = result.gain("uncalibrated", "platt")
    assert np.isnan(gain).all()
    assert gain.reason.startswith("all samples have the same label")
    assert str(result).startswith("No recalibrator can be compared: all samples")
    np.testing.assert_array_equal(result.probabilities["platt"], scores)


def test_one_event_leaves_a_fold_without_a_fit():
    _, scores = _forecasts()
    result = cross_validate(np.arange(N) == 7, scores, METHODS)
    gain = result.gain("uncalibrated", "platt")
    assert np.isnan(gain.low)
    assert "1 of 5 folds" in gain.reason


def test_scores_that_were_right_so_far_do_not_prove_that_1_is_better():
    """300 forecasts of .99 or .01, all right, with mean gain .01: the samples show no
    spread. If .99 is right, a forecast of q gains log(q / .99) with probability .99 and
    loses log(.01 / (1 - q)) else, a variance of .0099 (log(q / .99) + log(.01 / (1 -
    q)))^2.
    """

    class Surer(BaseEstimator):
        """Forecasts of .9999 where the score is above .5."""

        def fit(self, X, y):
            return self

        def predict_proba(self, X):
            event = np.where(np.ravel(X) > 0.5, 0.9999, 0.0001)
            return np.column_stack((1 - event, event))

    labels = np.arange(300) % 2 == 0
    scores = np.where(labels, 0.99, 0.01)
    gain = cross_validate(labels, scores, {"surer": Surer()}).gain(
        "uncalibrated", "surer"
    )
    difference = np.log(0.9999 / 0.99) + np.log(0.01 / 0.0001)
    error = np.sqrt(0.99 * 0.01 * difference**2 / 300)
    assert gain.estimate == pytest.approx(np.log(0.9999 / 0.99))
    assert gain.high - gain.low == pytest.approx(2 * 1.6448536 * error)
    assert gain.low < 0


def test_groups_reach_the_recalibrators_that_take_them():
    labels, scores = _forecasts()
    groups = np.where(np.arange(N) % 3 == 0, "a", "b")
    result = cross_validate(
        labels,
        scores,
        {"one map": PlattScaling(), "by group": GroupwiseRecalibrator(PlattScaling())},
        groups=groups,
    )
    fold = result.folds[0]
    fitted = GroupwiseRecalibrator(PlattScaling()).fit(
        scores[fold.train], labels[fold.train], groups=groups[fold.train]
    )
    np.testing.assert_allclose(
        result.probabilities["by group"][fold.test],
        fitted.predict_proba(scores[fold.test], groups=groups[fold.test])[:, 1],
    )
    later = cross_validate(labels, scores, {"one map": PlattScaling()}).extended(
        {"by group": GroupwiseRecalibrator(PlattScaling())}, groups=groups
    )
    assert later.gain("one map", "by group") == result.gain("one map", "by group")
    with pytest.raises(ValueError, match="already in use"):
        later.extended({"by group": PlattScaling()})


def test_several_classes():
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(3), 300)
    labels = np.array(["x", "y", "z"])[(rng.random(300) * 3).astype(int)]
    result = cross_validate(labels, scores, {"vector": VectorScaling()})
    assert result.best == "vector"
    fold = result.folds[2]
    fitted = VectorScaling().fit(scores[fold.train], labels[fold.train])
    expected = fitted.predict_proba(scores[fold.test])
    np.testing.assert_allclose(
        result.probabilities["vector"][fold.test], expected, rtol=1e-6
    )
    indicator = labels[fold.test][:, None] == np.array(["x", "y", "z"])
    np.testing.assert_allclose(
        result.losses["brier"]["vector"][fold.test],
        np.sum((expected - indicator) ** 2, axis=1),
        rtol=1e-6,
    )


@pytest.mark.slow
def test_the_catalogue_is_compared_by_default():
    labels, scores = _forecasts()
    result = cross_validate(labels, scores, cv=2)
    names = result.columns()["recalibrator"].tolist()
    assert names[0] == "uncalibrated"
    assert "StackedRecalibrator" in names
    assert len(result) == len(names) == 8
    rng = np.random.default_rng(0)
    many = cross_validate(rng.integers(0, 21, 210), rng.dirichlet(np.ones(21), 210))
    assert "DirichletCalibration" not in many.probabilities
    assert "VectorScaling" in many.probabilities


def test_the_first_line_is_the_answer():
    labels, scores = _forecasts()
    result = cross_validate(labels, scores, METHODS)
    gain = result.gain("uncalibrated", result.best)
    first = str(result).splitlines()[0]
    assert first.startswith(f"{result.best} has the lowest log-loss on held-out data")
    assert ("chance alone" in first) == (gain.low <= 0)
    rng = np.random.default_rng(0)
    truth = rng.random(2000)
    calibrated = cross_validate(rng.random(2000) < truth, truth, METHODS)
    assert calibrated.best == "uncalibrated"
    assert str(calibrated).startswith("No recalibrator has a lower log-loss")


@pytest.mark.parametrize(
    "recalibrators", [{}, [PlattScaling()], {1: PlattScaling()}, {"uncalibrated": None}]
)
def test_bad_names_are_refused(recalibrators):
    labels, scores = _forecasts()
    with pytest.raises(ValueError, match="recalibrators"):
        cross_validate(labels, scores, recalibrators)


def test_unknown_names_are_refused():
    labels, scores = _forecasts()
    result = cross_validate(labels, scores, METHODS)
    with pytest.raises(ValueError, match="Unknown recalibrator 'beta'"):
        result.gain("uncalibrated", "beta")
    with pytest.raises(ValueError, match="loss"):
        result.gain("uncalibrated", "platt", "hinge")
    with pytest.raises(TypeError, match="fit"):
        cross_validate(labels, scores, {"none": None})


def test_the_gain_of_one_recalibrator_is_that_of_the_cross_validation():
    labels, scores = _forecasts(6)
    options = {"clusters": np.arange(N) // 4, "sample_weight": np.arange(N) % 3 + 0.5}
    options["weight_type"] = "importance"
    result = cross_validate(labels, scores, METHODS, **options)
    for loss in ("log", "brier"):
        found = recalibration_gain(
            labels, scores, recalibrator=PlattScaling(), loss=loss, **options
        )
        assert found == result.gain("uncalibrated", "platt", loss)


def test_gains_of_several_are_a_table():
    pytest.importorskip("pandas")
    labels, scores = _forecasts(7, 900)
    table = recalibration_gain(labels, scores, recalibrator=METHODS)
    result = cross_validate(labels, scores, METHODS)
    frame = table.to_frame().set_index("recalibrator")
    assert frame.index.tolist() == ["uncalibrated", "platt", "temperature"]
    assert frame.loc["uncalibrated", ["gain", "low", "high"]].tolist() == [0, 0, 0]
    pvalues = []
    for name in METHODS:
        gain = frame.loc[name, ["gain", "low", "high"]].tolist()
        assert gain == list(result.gain("uncalibrated", name))
        assert frame.loc[name, "mean_loss"] == result.mean_loss(name)
        pvalues.append(result.pvalue("uncalibrated", name))
        assert frame.loc[name, "pvalue"] == pvalues[-1]
    # Holm: the smaller of two p-values counts twice
    smaller, larger = sorted(pvalues)
    adjusted = sorted(frame["adjusted_pvalue"])[:2]
    assert adjusted[0] == pytest.approx(min(2 * smaller, 1))
    assert adjusted[1] == pytest.approx(max(2 * smaller, larger))
    lines = str(table).splitlines()
    assert len(lines) == 2
    best = frame["gain"].idxmax()
    assert lines[0].startswith(f"{best} lowers the log-loss on held-out data by")
    one_class = recalibration_gain(
        np.zeros(900), scores, recalibrator=METHODS, labels=[0, 1]
    )
    assert "cannot be determined: all samples have the same label" in str(one_class)
