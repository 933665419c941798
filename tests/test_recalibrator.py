"""Recalibrator: what it chooses, the evidence it shows, and the gain that a
stack measures.
"""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import t as student
from sklearn.base import clone

import skcalib
import skcalib.recalibrators
from skcalib import (
    PlattScaling,
    Recalibrator,
    SplineCalibration,
    StackedRecalibrator,
    TemperatureScaling,
)
from skcalib._fitting.folds import cross_validation_folds
from skcalib.evaluation import recalibration_gain
from skcalib.export import from_dict, to_dict, to_sql
from skcalib.recalibrators._uncalibrated import Uncalibrated


def _rows(n, slope, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, n_classes))
    truth = np.exp(z)
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    scores = np.exp(slope * z)
    return scores / scores.sum(axis=1, keepdims=True), y


def _loss(proba, y):
    return -np.log(proba[np.arange(len(y)), y])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "recalibrator", [None, PlattScaling(), SplineCalibration()], ids=repr
)
def test_what_is_off_is_recalibrated_and_what_is_right_stays(recalibrator, n_classes):
    right, y = _rows(400, 1, n_classes=n_classes)
    kept = Recalibrator(recalibrator, n_standard_errors=2).fit(right, y)
    assert type(kept.chosen_) is Uncalibrated
    np.testing.assert_allclose(kept.predict_proba(right), right, rtol=1e-9)
    np.testing.assert_array_equal(kept.predict(right), right.argmax(axis=1))
    off, y = _rows(400, 3, n_classes=n_classes)
    used = Recalibrator(recalibrator).fit(off, y)
    assert used.chosen_ is used.recalibrator_
    assert used.gain_.low > 0
    np.testing.assert_array_equal(
        used.predict_proba(off), used.recalibrator_.predict_proba(off)
    )


def test_the_gain_is_the_out_of_fold_one():
    scores, y = _rows(300, 2)
    recalibrator = Recalibrator(PlattScaling(), cv=4).fit(scores, y)
    np.testing.assert_allclose(
        recalibrator.gain_,
        recalibration_gain(y, scores, recalibrator=PlattScaling(), cv=4),
        atol=1e-3,
    )
    weight = np.random.default_rng(0).integers(1, 4, 300)
    weighted = Recalibrator(PlattScaling(), cv=4).fit(scores, y, sample_weight=weight)
    rows = np.repeat(np.arange(300), weight)
    repeated = Recalibrator(PlattScaling(), cv=4).fit(scores[rows], y[rows])
    np.testing.assert_allclose(
        weighted.gain_.estimate, repeated.gain_.estimate, rtol=1e-6
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_gain_of_a_stack_by_a_plain_loop(n_classes):
    scores, y = _rows(200, 2, n_classes=n_classes)
    members = [TemperatureScaling(clip=None), PlattScaling(clip=None)]
    stack = StackedRecalibrator(members, cv=4).fit(scores, y)
    folds = cross_validation_folds(4, scores, y, None, "probability")
    predicted = np.empty((3, 200, n_classes))
    for fold in folds:
        for k, member in enumerate([Uncalibrated(), *members]):
            predicted[k, fold.test] = member.fit(
                scores[fold.train], y[fold.train]
            ).predict_proba(scores[fold.test])
    gains = np.empty(200)
    for fold in folds:
        rest = np.setdiff1d(np.arange(200), fold.test)
        losses = np.column_stack([_loss(p, y[rest]) for p in predicted[:, rest]])
        weights = stack._mixture_weights(losses, None, stack._prior(3))
        mixture = np.tensordot(weights, predicted[:, rest], 1)
        temperature = stack._mixture_temperature(mixture, y[rest], None)
        mixture = np.tensordot(weights, predicted[:, fold.test], 1) ** (1 / temperature)
        mixture /= mixture.sum(axis=1, keepdims=True)
        gains[fold.test] = _loss(scores[fold.test], y[fold.test]) - _loss(
            mixture, y[fold.test]
        )
    # Student's quantile for a variance that is estimated from values of this kurtosis
    kurtosis = np.mean((gains - gains.mean()) ** 4) / gains.var() ** 2
    degrees = 2 * 200 / max(kurtosis - 1, 2 / 3)
    error = gains.std() / 200**0.5 * student.ppf(0.95, degrees)
    expected = gains.mean(), gains.mean() - error, gains.mean() + error
    np.testing.assert_allclose(stack.gain_, expected, rtol=1e-6)
    assert (
        StackedRecalibrator(members, uncalibrated_weight=0)
        .fit(scores, y)
        .gain_.estimate
        > 0
    )


MEASURED = [Recalibrator(), Recalibrator(PlattScaling()), StackedRecalibrator()]


@pytest.mark.parametrize("recalibrator", MEASURED, ids=repr)
def test_importance_weights_have_no_scale(recalibrator):
    scores, y = _rows(200, 2)
    weight = np.random.default_rng(0).lognormal(0, 1.2, 200)
    gains = []
    for factor in (1, 1000):
        fitted = clone(recalibrator).fit(
            scores, y, sample_weight=factor * weight, weight_type="importance"
        )
        gains.append(fitted.gain_)
    np.testing.assert_allclose(gains[0], gains[1], rtol=1e-4)
    with pytest.warns(UserWarning, match="not integers") as caught:
        clone(recalibrator).fit(scores, y, sample_weight=weight)
    assert len(caught) == 1


@pytest.mark.parametrize("recalibrator", MEASURED, ids=repr)
def test_clusters_widen_the_gain_and_stay_whole(recalibrator):
    scores, y = _rows(120, 3)
    # ten samples that are the same: worth one
    scores, y = np.repeat(scores, 10, axis=0), np.repeat(y, 10)
    alone = clone(recalibrator).fit(scores, y).gain_
    cluster = np.repeat([f"patient {k}" for k in range(120)], 10)
    together = clone(recalibrator).fit(scores, y, clusters=cluster).gain_
    assert together.high - together.low > 2.5 * (alone.high - alone.low)
    few = clone(recalibrator).fit(scores, y, clusters=np.arange(1200) % 2)
    assert np.isnan(few.gain_.low)
    assert "number of clusters is 2" in few.gain_.reason
    if isinstance(recalibrator, Recalibrator):
        assert type(few.chosen_) is Uncalibrated


def test_samples_of_weight_zero_belong_to_no_cluster():
    scores, y = _rows(200, 3)
    weight = np.tile([1, 0], 100)
    cluster = np.arange(200) // 5
    kept = weight > 0
    recalibrator = Recalibrator(PlattScaling())
    weighted = recalibrator.fit(scores, y, sample_weight=weight, clusters=cluster).gain_
    # `sample_weight` of ones, which leaves the folds as they are
    some = recalibrator.fit(
        scores[kept], y[kept], sample_weight=weight[kept], clusters=cluster[kept]
    ).gain_
    assert weighted == some


def test_one_event_is_too_few_to_choose():
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.3, 0.7, 100)
    for recalibrator in (Recalibrator(), Recalibrator(PlattScaling())):
        fitted = recalibrator.fit(scores, np.arange(100) == 0)
        assert np.isnan(fitted.gain_.low)
        assert "1 of 5 folds" in fitted.gain_.reason
        assert type(fitted.chosen_) is Uncalibrated


def test_a_probability_of_zero_is_lifted_though_no_such_event_was_seen():
    # The stack saves nothing on these rows, and the next event at a score of 0 would
    # cost 36 nats.
    rng = np.random.default_rng(1)
    scores = np.r_[np.zeros(150), rng.uniform(0.05, 0.95, 100), np.ones(150)]
    y = (rng.random(400) < scores).astype(int)
    recalibrator = Recalibrator().fit(scores, y)
    assert recalibrator.chosen_ is recalibrator.recalibrator_
    assert 1e-4 < recalibrator.predict_proba([0.0])[0, 1] < 0.02
    apart = np.r_[np.zeros(150), np.ones(150)]
    assert type(Recalibrator().fit(apart, apart.astype(int)).chosen_) is Uncalibrated


def test_log_odds_and_exports():
    scores, y = _rows(300, 3)
    log_odds = logit(scores[:, 1])
    recalibrator = Recalibrator(input="logit").fit(log_odds, y)
    assert recalibrator.recalibrator_.input == "logit"
    back = from_dict(to_dict(recalibrator))
    np.testing.assert_array_equal(
        back.predict_proba(log_odds), recalibrator.predict_proba(log_odds)
    )
    assert back.gain_ == recalibrator.gain_
    assert back.chosen_ is back.recalibrator_
    kept = Recalibrator(n_standard_errors=1000, input="logit").fit(log_odds, y)
    np.testing.assert_allclose(
        kept.predict_proba(log_odds)[:, 1], expit(log_odds), rtol=1e-9
    )
    # what follows says where it comes from
    assert to_sql(kept).split("/*")[0] == to_sql(kept.chosen_).split("/*")[0]


@pytest.mark.slow
def test_calibrated_scores_are_hardly_harmed():
    losses = []
    for seed in range(40):
        scores, y = _rows(2100, 1, seed)
        recalibrator = Recalibrator().fit(scores[:100], y[:100])
        losses.append(
            np.mean(
                _loss(recalibrator.predict_proba(scores[100:]), y[100:])
                - _loss(scores[100:], y[100:])
            )
        )
    assert np.mean(losses) < 0.005
    assert max(losses) < 0.05


# --- the name that it had before ---


@pytest.mark.parametrize("module", [skcalib, skcalib.recalibrators])
def test_the_old_name_warns_at_the_line_that_uses_it(module):
    with pytest.warns(FutureWarning, match="renamed to Recalibrator") as warned:
        assert module.CautiousRecalibrator is Recalibrator
    assert warned[0].filename == __file__
    assert "CautiousRecalibrator" not in module.__all__
    with pytest.raises(AttributeError, match="has no attribute 'Cautious'"):
        _ = module.Cautious


def test_a_document_with_the_old_name_is_read_without_a_warning():
    scores, y = _rows(300, 2)
    recalibrator = Recalibrator(PlattScaling()).fit(scores, y)
    document = to_dict(recalibrator)
    assert document["class"] == "Recalibrator"
    read = from_dict(document | {"class": "CautiousRecalibrator"})
    assert type(read) is Recalibrator
    np.testing.assert_array_equal(
        read.predict_proba(scores), recalibrator.predict_proba(scores)
    )
    with pytest.raises(ValueError, match="found 'Identity'"):
        from_dict(document | {"class": "Identity"})
