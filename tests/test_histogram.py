"""Histogram binning and scaling-binning against plain loops."""

import inspect

import numpy as np
import pytest
from _catalog import refused
from _twins import (
    equal_mass_edges,
    histogram_binning,
    repeated,
    scaling_binning,
    unique_score_edges,
)
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import log_loss

from skcalib import (
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    ScalingBinning,
    TemperatureScaling,
)
from skcalib.binning import EqualMass, EqualWidth, FixedEdges, MinimumMass, UniqueScores


def _sample(n=300, values=100):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, values + 1, n) / values
    return scores, rng.random(n) < scores**1.5


STRATEGIES = [
    (EqualMass(7), lambda s, w: equal_mass_edges(s, 7, w)),
    (7, lambda s, w: equal_mass_edges(s, 7, w)),
    (None, lambda s, w: equal_mass_edges(s, 10, w)),
    (EqualWidth(20), lambda s, w: np.linspace(0, 1, 21)),
    (UniqueScores(), lambda s, w: unique_score_edges(s)),
    (FixedEdges([0, 0.05, 0.7, 1]), lambda s, w: [0, 0.05, 0.7, 1]),
]
every_strategy = pytest.mark.parametrize(
    ("binning", "edges"), STRATEGIES, ids=lambda one: "" if callable(one) else repr(one)
)


@every_strategy
@pytest.mark.parametrize("smoothing", [0.0, 2.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_bins_predict_their_event_frequency(binning, edges, smoothing, weighted):
    scores, y = _sample()
    weights = 1 + np.arange(len(y)) % 3 if weighted else None
    model = HistogramBinning(binning, smoothing=smoothing).fit(scores, y, weights)
    expected = edges(scores, weights)
    np.testing.assert_allclose(model.bin_edges_, expected, rtol=1e-15)
    np.testing.assert_allclose(
        model.bin_values_, histogram_binning(scores, y, expected, weights, smoothing)
    )
    assert model.bin_counts_.sum() == len(y)
    assert model.n_bins_ == len(expected) - 1
    if weighted:
        rows = HistogramBinning(binning, smoothing=smoothing).fit(
            *repeated(weights, scores, y)
        )
        np.testing.assert_array_equal(rows.bin_edges_, model.bin_edges_)
        np.testing.assert_allclose(rows.bin_values_, model.bin_values_)


@every_strategy
def test_training_scores_get_the_frequency_of_their_bin(binning, edges):
    # A library that bins [a, b) in fit and (a, b] in transform predicts 0 for its own
    # scores at an edge.
    scores, y = _sample(values=20)
    model = HistogramBinning(binning).fit(scores, y)
    bins = np.searchsorted(model.bin_edges_[1:-1], scores)
    for score, b in zip(scores, bins, strict=True):
        assert model.predict_proba([score])[0, 1] == pytest.approx(y[bins == b].mean())


def test_an_empty_bin_predicts_its_midpoint():
    model = HistogramBinning(EqualWidth(4)).fit([0.1, 0.9], [0, 1])
    assert model.bin_values_.tolist() == [0, 0.375, 0.625, 1]
    # with pseudo-counts the base rate
    model = HistogramBinning(EqualWidth(4), smoothing=1).fit([0.1, 0.9], [0, 1])
    assert model.bin_values_.tolist() == [0.25, 0.5, 0.5, 0.75]


def test_smoothing_keeps_the_log_loss_finite():
    scores, y = np.array([0.1, 0.2, 0.8, 0.9]), np.array([0, 0, 1, 1])
    assert HistogramBinning(2).fit(scores, y).predict_proba(scores)[:, 1].tolist() == [
        0,
        0,
        1,
        1,
    ]
    smooth = HistogramBinning(2, smoothing=1).fit(scores, y).predict_proba(scores)
    # (2 + 1 / 2) / (2 + 1)
    assert log_loss(y, smooth) == pytest.approx(-np.log(2.5 / 3))


@pytest.mark.parametrize("random_state", [None, 0])
def test_split_places_edges_on_one_part_and_counts_the_other(random_state):
    scores, y = _sample(101)
    weights = 1.0 + np.arange(101) % 2
    model = HistogramBinning(5, sample_split=0.3, random_state=random_state).fit(
        scores, y, weights
    )
    order = (
        np.arange(101)
        if random_state is None
        else np.random.RandomState(0).permutation(101)
    )
    first, rest = order[:30], order[30:]
    edges = equal_mass_edges(scores[first], 5, weights[first])
    np.testing.assert_allclose(model.bin_edges_, edges)
    np.testing.assert_allclose(
        model.bin_values_,
        histogram_binning(scores[rest], y[rest], edges, weights[rest]),
    )
    assert model.bin_counts_.sum() == 71


def test_split_warns_of_sorted_rows():
    scores, y = _sample(400)
    order = np.argsort(y, kind="stable")
    with pytest.warns(UserWarning, match="sorted"):
        HistogramBinning(5, sample_split=0.5).fit(scores[order], y[order])
    HistogramBinning(5, sample_split=0.5, random_state=0).fit(scores[order], y[order])


@pytest.mark.parametrize("sample_split", [0, 1, 1.5, -0.1, np.nan, "half"])
def test_split_is_a_share(sample_split):
    with pytest.raises(ValueError, match="sample_split"):
        HistogramBinning(sample_split=sample_split).fit(*_sample(20))


def test_split_needs_two_rows():
    with refused(ValueError, "2 parts", "found 1"):
        HistogramBinning(sample_split=0.5, classes=[0, 1]).fit([0.3], [1])


def test_logits_are_binned_where_they_are_or_on_the_unit_interval():
    scores, y = _sample()
    scores = np.clip(scores, 0.01, 0.99)
    by_mass = HistogramBinning(EqualMass(5), input="logit").fit(logit(scores), y)
    assert by_mass.bin_edges_[[0, -1]].tolist() == [-np.inf, np.inf]
    expected = HistogramBinning(EqualMass(5)).fit(scores, y)
    np.testing.assert_array_equal(
        by_mass.predict_proba(logit(scores)), expected.predict_proba(scores)
    )
    by_width = HistogramBinning(EqualWidth(7), input="logit").fit(logit(scores), y)
    assert by_width.bin_edges_.tolist() == np.linspace(0, 1, 8).tolist()
    hybrid = HistogramBinning(MinimumMass(EqualWidth(20), 30), input="logit").fit(
        logit(scores), y
    )
    assert hybrid.bin_edges_[[0, -1]].tolist() == [0, 1]
    assert hybrid.bin_counts_.min() >= 30


def test_an_empty_bin_of_logits_predicts_the_middle_of_its_probabilities():
    # The split leaves the bin above 0 without a row: (expit(0) + expit(inf)) / 2.
    scores, y = np.array([-2.0, 2.0, -1.0, -3.0]), np.array([0, 1, 0, 1])
    model = HistogramBinning(2, input="logit", sample_split=0.5).fit(scores, y)
    assert model.bin_edges_.tolist() == [-np.inf, 0, np.inf]
    assert model.bin_values_.tolist() == [0.5, 0.75]


def test_many_classes_have_a_list_of_bins_each():
    rng = np.random.default_rng(0)
    proba, y = rng.dirichlet(np.ones(3), 200), rng.integers(3, size=200)
    model = HistogramBinning(4, normalize=False).fit(proba, y)
    for k in range(3):
        alone = HistogramBinning(4).fit(proba[:, k], y == k)
        # Scores of K classes are rounded to 36 binary digits: their softmax ties then.
        np.testing.assert_allclose(
            model.bin_edges_[k], alone.bin_edges_, rtol=0, atol=2**-36
        )
        np.testing.assert_array_equal(model.bin_counts_[k], alone.bin_counts_)
        np.testing.assert_array_equal(
            model.predict_proba(proba)[:, k], alone.predict_proba(proba[:, k])[:, 1]
        )
    assert model.n_bins_ == [4, 4, 4]
    top = HistogramBinning(4, multiclass="top_label").fit(proba, y)
    assert len(top.bin_values_) == 1
    alone = HistogramBinning(4).fit(proba.max(axis=1), proba.argmax(axis=1) == y)
    np.testing.assert_array_equal(top.bin_values_[0], alone.bin_values_)


def test_refit_forgets_the_classes_before():
    rng = np.random.default_rng(0)
    model = HistogramBinning(4).fit(
        rng.dirichlet(np.ones(3), 60), rng.integers(3, size=60)
    )
    scores, y = _sample(60)
    fresh = HistogramBinning(4).fit(scores, y)
    assert set(vars(model.fit(scores, y))) == set(vars(fresh))
    np.testing.assert_array_equal(model.bin_values_, fresh.bin_values_)


# --- Scaling-binning


@pytest.mark.parametrize(
    "scaler",
    [None, PlattScaling(loss="squared"), IsotonicCalibration(), TemperatureScaling()],
)
@pytest.mark.parametrize("input", ["probability", "logit"])
def test_scaling_binning_takes_three_steps(scaler, input):
    scores, y = _sample()
    scores = np.clip(scores, 0.01, 0.99) if input == "probability" else 4 * scores - 2
    model = ScalingBinning(scaler, 6, input=input).fit(scores, y)
    smooth = (
        clone(PlattScaling() if scaler is None else scaler)
        .set_params(input=input)
        .fit(scores, y)
    )
    scaled = smooth.predict_proba(scores)[:, 1]
    edges, values = scaling_binning(scaled, scaled, 6)
    np.testing.assert_allclose(model.bin_edges_, edges)
    np.testing.assert_allclose(model.bin_values_, values)  # the mean of g, not of y
    np.testing.assert_allclose(
        model.predict_proba(scores)[:, 1],
        np.take(values, np.searchsorted(edges[1:-1], scaled)),
    )
    assert model.bin_counts_.sum() == len(y)


def test_scaling_binning_with_three_parts():
    scores, y = _sample(200)
    model = ScalingBinning(binning=4, sample_split=(0.5, 0.2, 0.3)).fit(scores, y)
    smooth = PlattScaling().fit(scores[:100], y[:100])
    edges, values = scaling_binning(
        smooth.predict_proba(scores[100:140])[:, 1],
        smooth.predict_proba(scores[140:])[:, 1],
        4,
    )
    np.testing.assert_allclose(model.bin_edges_, edges)
    np.testing.assert_allclose(model.bin_values_, values)
    assert model.recalibrator_.slope_ == smooth.slope_


def test_scaling_binning_weighs_every_step():
    scores, y = _sample(100)
    weights = np.arange(100) % 3
    weighted = ScalingBinning(binning=4).fit(scores, y, weights)
    rows = ScalingBinning(binning=4).fit(*repeated(weights, scores, y))
    np.testing.assert_allclose(
        weighted.predict_proba(scores), rows.predict_proba(scores), atol=1e-9
    )


@pytest.mark.parametrize(
    "sample_split", [(0.5, 0.5), (0.5, 0.5, 0.5), (1, 0, 0), ("a", 0.5, 0.5), [0.2] * 5]
)
def test_scaling_binning_needs_three_shares(sample_split):
    with refused(ValueError, "sample_split"):
        ScalingBinning(sample_split=sample_split).fit(*_sample(20))


def test_scaling_binning_leaves_its_recalibrator_alone():
    scaler = PlattScaling()
    scores, y = _sample()
    model = ScalingBinning(scaler, 4, input="logit").fit(3 * scores - 1, y)
    assert not hasattr(scaler, "slope_")
    assert scaler.input == "probability"
    assert model.recalibrator_.input == "logit"
    assert (
        ScalingBinning()
        .set_params(recalibrator__loss="squared", binning__n_bins=3)
        .get_params()["recalibrator__loss"]
        == "squared"
    )


@pytest.mark.parametrize("method", [HistogramBinning, ScalingBinning])
def test_parameters_of_other_libraries_get_a_hint(method):
    with refused(
        TypeError,
        f"{method.__name__} has no parameter 'n_bins'",
        "binning=EqualMass(10)",
    ):
        method(n_bins=10)
    with refused(
        TypeError, "'strategy'", "binning=EqualMass(10)", "binning=EqualWidth(10)"
    ):
        method(strategy="quantile")
    with pytest.raises(TypeError, match="n_bin"):
        method(n_bin=10)
    parameters = list(inspect.signature(method).parameters)
    assert "binning" in parameters
    assert not {"args", "params", "self"} & set(parameters)


def test_hints_are_inherited_by_a_class_of_ones_own():
    class Mine(HistogramBinning):
        def __init__(self, binning=None, extra=1):
            super().__init__(binning)
            self.extra = extra

    assert clone(Mine(5, extra=2)).get_params()["extra"] == 2
    assert list(inspect.signature(Mine).parameters) == ["binning", "extra"]
    with refused(TypeError, "Mine has no parameter 'n_bins'"):
        Mine(n_bins=3)


class _Shrink(BaseEstimator):
    """A scaling family of somebody else, which knows `input` and `classes` and no base
    class.
    """

    def __init__(self, input="probability", classes=None):
        self.input = input
        self.classes = classes

    def fit(self, scores, y, sample_weight=None):
        self.mean_ = np.mean(y)
        return self

    def predict_proba(self, scores):
        scores = expit(scores) if self.input == "logit" else scores
        return np.column_stack(
            (1 - (scores + self.mean_) / 2, (scores + self.mean_) / 2)
        )


def test_scaling_binning_takes_a_foreign_family():
    scores, y = _sample()
    model = ScalingBinning(_Shrink(), 4).fit(scores, y)
    scaled = (scores + y.mean()) / 2
    edges, values = scaling_binning(scaled, scaled, 4)
    np.testing.assert_allclose(model.bin_values_, values)
