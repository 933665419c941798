"""Certificates in company: what an estimator around a recalibrator, a search or a class
of one's own does to them.
"""

import json
import pickle

import numpy as np
import pytest
from _catalog import refused
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from skcalib import (
    GroupwiseRecalibrator,
    HistogramBinning,
    MulticalibratedRecalibrator,
    PlattScaling,
    RecalibratedClassifierCV,
    ScalingBinning,
    StackedRecalibrator,
    UniformMassBinning,
)
from skcalib.binning import EqualMass, EqualWidth
from skcalib.export import from_dict, to_dict

CERTIFIED = UniformMassBinning(4)


def _rows(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (rng.random(n) < expit(2 * X[:, 0])).astype(int)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "forecasts are averaged over 6 classifiers"),
        ({"ensemble": False}, "out-of-fold scores of several classifiers"),
        (
            {"cv": ShuffleSplit(1, random_state=0), "ensemble": True},
            "out-of-fold scores",
        ),
    ],
)
@pytest.mark.parametrize(
    "recalibrator",
    [CERTIFIED, make_pipeline(CERTIFIED), GroupwiseRecalibrator(CERTIFIED)],
    ids=str,
)
def test_none_inside_a_recalibrated_classifier(options, reason, recalibrator):
    X, y = _rows()
    fitted = RecalibratedClassifierCV(GaussianNB(), recalibrator, **options).fit(X, y)
    copies = [fitted, pickle.loads(pickle.dumps(fitted))]
    if not hasattr(recalibrator, "steps"):
        copies.append(from_dict(json.loads(json.dumps(to_dict(fitted)))))
    for one in copies:
        inner = one.calibrated_classifiers_[0].recalibrator
        inner = inner[-1] if hasattr(inner, "steps") else inner
        with refused(ValueError, "No certificate", reason, "FrozenEstimator"):
            inner.certificate()
    # a new fit has one
    inner.fit(np.linspace(0, 1, 200), np.arange(200) % 2).certificate()


def test_one_inside_a_recalibrated_classifier_of_a_frozen_model():
    X, y = _rows()
    model = FrozenEstimator(GaussianNB().fit(X[:300], y[:300]))
    fitted = RecalibratedClassifierCV(model, CERTIFIED).fit(X[300:], y[300:])
    alone = (
        UniformMassBinning(4).fit(model.predict_proba(X[300:]), y[300:]).certificate()
    )
    assert (
        fitted.calibrated_classifiers_[0].recalibrator.certificate().epsilon
        == alone.epsilon
    )
    fitted = RecalibratedClassifierCV(model, CERTIFIED, ensemble=True).fit(
        X[300:], y[300:]
    )
    with refused(ValueError, "averaged over 5 classifiers"):
        fitted.calibrated_classifiers_[0].recalibrator.certificate()


def test_none_inside_what_changes_the_forecasts():
    X, y = _rows()
    scores = expit(X[:, 0])
    columns = np.column_stack((scores, X[:, 1]))
    for inner, reason in (
        (
            StackedRecalibrator([CERTIFIED, PlattScaling()])
            .fit(scores, y)
            .recalibrators_[1],
            "mixed with",
        ),
        (ScalingBinning(CERTIFIED).fit(scores, y).recalibrator_, "binned again"),
        (
            MulticalibratedRecalibrator(CERTIFIED, features=1, max_rounds=1)
            .fit(columns, y)
            .recalibrator_,
            "corrections",
        ),
    ):
        with refused(ValueError, "No certificate", reason):
            inner.certificate()


def _of_groups(n=900, seed=0):
    """Return scores, labels and groups: in "b" the event is rarer than the score says."""  # noqa: E501
    rng = np.random.default_rng(seed)
    group = np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    scores = rng.random(n)
    return scores, rng.random(n) < np.where(group == "b", scores**3, scores), group


def test_groups_fixed_beforehand_have_one():
    scores, y, group = _of_groups()
    fitted = GroupwiseRecalibrator(CERTIFIED).fit(scores, y, groups=group)
    certificate = fitted.certificate(0.9)
    alone = {
        name: UniformMassBinning(4).fit(scores[group == name], y[group == name])
        for name in "abc"
    }
    # the union over three groups: each at level 1 - .1 / 3
    assert certificate.epsilon == max(
        one.certificate(1 - 0.1 / 3).epsilon for one in alone.values()
    )
    assert certificate.confidence_level == 0.9
    assert (certificate.n_samples, certificate.n_bins) == (900, (4, 4, 4))
    assert len(certificate.low) == len(certificate.high) == 3
    assumptions = " ".join(certificate.assumptions)
    assert "The guarantee holds for all 3 groups together." in assumptions
    assert "groups were fixed before" in assumptions
    # a random future row is in one group only
    assert fitted.certificate(0.9, "marginal").epsilon == max(
        one.certificate(0.9, "marginal").epsilon for one in alone.values()
    )
    assert from_dict(to_dict(fitted)).certificate(0.9).epsilon == certificate.epsilon
    assert (
        fitted.recalibrators_["a"].certificate().epsilon
        == alone["a"].certificate().epsilon
    )
    with refused(ValueError, "several groups"):
        fitted.pooled_recalibrator_.certificate()
    with refused(ValueError, "PlattScaling has none"):
        GroupwiseRecalibrator(PlattScaling()).fit(scores, y, groups=group).certificate()


@pytest.mark.parametrize(
    ("options", "groups"),
    [
        ({"shrinkage": 5.0}, "'a', 'b', 'c'"),
        ({"min_group_size": 10_000}, "'a', 'b', 'c'"),
        ({"min_group_size": 400, "merge_small_groups": True}, "'a', 'b', 'c'"),
    ],
)
def test_merged_and_mixed_groups_have_none(options, groups):
    scores, y, group = _of_groups()
    fitted = GroupwiseRecalibrator(CERTIFIED, **options).fit(scores, y, groups=group)
    for one in (fitted, from_dict(to_dict(fitted))):
        with refused(ValueError, f"for the groups {groups}", "shrinkage=0"):
            one.certificate()
        with refused(ValueError, "serves several groups or is mixed"):
            one.recalibrators_["a"].certificate()


@pytest.mark.parametrize("kind", ["conditional", "marginal"])
@pytest.mark.parametrize("interval", ["theorem", "clopper_pearson"])
def test_the_union_over_groups_holds(kind, interval):
    """Fails in at most .3 of samples at level .7: uniform scores, so that event
    frequencies of bins are known.
    """
    missed, n_runs = 0.0, 60
    for seed in range(n_runs):
        scores, y, group = _of_groups(n=360, seed=seed)
        fitted = GroupwiseRecalibrator(CERTIFIED, min_group_size=0).fit(
            scores, y, groups=group
        )
        certificate = fitted.certificate(0.7, kind, interval=interval)
        wrong = []
        for name, low, high in zip(
            "abc", certificate.low, certificate.high, strict=True
        ):
            edges = fitted.recalibrators_[name].bin_edges_
            power = 4 if name == "b" else 2
            truth = np.diff(edges**power) / power / np.diff(edges)
            off = (
                abs(fitted.recalibrators_[name].bin_values_ - truth)
                > certificate.epsilon
            )
            off |= (truth < low) | (truth > high)
            wrong.append(np.diff(edges) @ off)  # the share of the group's future rows
        missed += np.mean(wrong) if kind == "marginal" else any(wrong)
    assert missed / n_runs <= 0.3 + 2 * np.sqrt(0.3 * 0.7 / n_runs)


class Quantiles(EqualWidth):
    """Edges that depend on the rows, in a class that calls itself equal width."""

    def _edges(self, scores, y, sample_weight):
        return EqualMass(self.n_bins)._edges(scores, y, sample_weight)


def test_none_for_a_class_of_ones_own():
    scores, y, _ = _of_groups()
    with refused(ValueError, "No certificate", "Quantiles(n_bins=5)"):
        HistogramBinning(Quantiles(5)).fit(scores, y).certificate()
    HistogramBinning(EqualWidth(5)).fit(scores, y).certificate()


def test_after_a_search_the_text_says_so():
    scores, y, _ = _of_groups()
    grid = {"binning__n_bins": [3, 5, 8]}
    search = GridSearchCV(
        HistogramBinning(EqualWidth(4)), grid, scoring="neg_brier_score"
    ).fit(scores[:, None], y)
    best = search.best_estimator_
    assumptions = " ".join(best.certificate().assumptions)
    assert "was not selected from among several" not in assumptions
    assert "No search chose binning__n_bins" in assumptions
    told = best.certificate(n_candidates=search)
    assert told.n_candidates == 3
    assert "among at most 3 candidates" in str(told)
    assert (
        told.epsilon
        == best.certificate(n_candidates=3).epsilon
        > best.certificate().epsilon
    )
    assert str(from_dict(to_dict(best)).certificate()) == str(best.certificate())
    chosen_by_hand = HistogramBinning(EqualWidth(5)).fit(scores, y).certificate()
    assert "was not selected from among several" in chosen_by_hand.assumptions[-1]
