"""Properties that hold for every sample (hypothesis)."""

import pickle

import numpy as np
import pytest
from _catalog import RECALIBRATORS, UNWEIGHTED, each_of, metrics_, random_metrics
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from skcalib._cells.statistics import BinStatistics
from skcalib.binning import EqualMass, EqualWidth, FixedEdges, MinimumMass, UniqueScores
from skcalib.binning._base import assign_bins
from skcalib.metrics import calibration_error, expected_calibration_error

NORMS = [
    ("plugin", 1),
    ("plugin", 2),
    ("plugin", np.inf),
    ("debiased", 1),
    ("debiased", 2),
    ("unbiased", 2),
]
NORMS += [("label_binned", 1), ("label_binned", 3)]
STRATEGIES = [
    EqualWidth(4),
    EqualMass(3),
    UniqueScores(),
    MinimumMass(EqualWidth(10), 3),
    FixedEdges([0, 0.3, 0.31, 1]),
]

scores_ = st.one_of(
    st.integers(0, 20).map(lambda k: k / 20),
    st.floats(0, 1, allow_subnormal=True),
    st.sampled_from([0.0, 1.0, 5e-324, 1e-300, 0.5, 1 - 2**-53]),
)


@st.composite
def samples(draw, least=2, most=30):
    """Scores and labels with both classes, and integer weights that leave each of them
    a row.
    """
    n = draw(st.integers(least, most))
    scores = np.array(draw(st.lists(scores_, min_size=n, max_size=n)))
    y = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    weights = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    assume(0 < y.sum() < n)
    assume(0 < y[weights > 0].sum() < np.sum(weights > 0))
    return scores, y, weights


def _or_refused(call):
    """Return a result, or the refusal of a debiased error of bins with too few rows."""
    try:
        return call()
    except ValueError as error:
        if "fewer than two rows" in str(error):
            return "refused"
        raise


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@pytest.mark.parametrize(("method", "norm"), NORMS)
@given(sample=samples())
def test_error_knows_no_order_and_weights_are_rows(method, norm, strategy, sample):
    scores, y, weights = sample
    options = {"method": method, "norm": norm, "binning": strategy}
    weighted = _or_refused(
        lambda: calibration_error(y, scores, sample_weight=weights, **options)
    )
    rows = np.repeat(np.arange(len(y)), weights)
    repeated = _or_refused(lambda: calibration_error(y[rows], scores[rows], **options))
    if weighted == "refused":
        assert repeated == "refused"
        return
    # a root near 0 magnifies rounding of 1e-16
    assert repeated == pytest.approx(weighted, abs=1e-7)
    order = np.argsort(scores * 7919 % 1, kind="stable")
    found = calibration_error(
        y[order], scores[order], sample_weight=weights[order], **options
    )
    assert found == pytest.approx(weighted, abs=1e-7)
    assert 0 <= weighted <= 1 + 1e-9


@pytest.mark.filterwarnings("ignore:.*exactly 0 or 1:UserWarning")
@pytest.mark.parametrize("metric", metrics_("sample_weight", "labels"))
@given(sample=samples(least=12))
def test_every_metric_knows_no_order_and_weights_are_rows(metric, sample):
    if metric.__name__ in random_metrics():
        return  # their own tests repeat them
    scores, y, weights = sample
    rows = np.repeat(np.arange(len(y)), weights)
    order = np.random.default_rng(0).permutation(len(y))
    try:
        weighted = metric(y, scores, sample_weight=weights)
    except ValueError:
        with pytest.raises(ValueError, match="."):
            metric(y[rows], scores[rows])
        return
    for other in (
        metric(y[rows], scores[rows]),
        metric(y[order], scores[order], sample_weight=weights[order]),
    ):
        _assert_close(other, weighted)


def _assert_close(found, expected):
    if hasattr(expected, "weighted_score"):
        found, expected = (
            [
                s.edges,
                s.weight,
                s.weighted_score,
                s.weighted_label,
                s.weighted_score_label,
            ]
            for s in (found, expected)
        )
    if isinstance(expected, float):
        found, expected = (found,), (expected,)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@given(sample=samples(), cut=st.integers(0, 30))
def test_merged_parts_are_the_whole(strategy, sample, cut):
    scores, y, weights = sample
    edges = strategy.bin_edges(scores, y, weights + 1.0)
    whole = BinStatistics.from_predictions(y, scores, edges, weights + 1.0)
    parts = [
        BinStatistics.from_predictions(y[p], scores[p], edges, weights[p] + 1.0)
        for p in (slice(cut), slice(cut, None))
    ]
    merged = parts[0].merge(parts[1])
    for name in (
        "count",
        "weight",
        "weighted_score",
        "weighted_label",
        "weighted_score_squared",
        "weighted_score_label",
    ):
        np.testing.assert_allclose(
            getattr(merged, name), getattr(whole, name), rtol=1e-12, atol=1e-300
        )


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@given(sample=samples())
def test_every_score_has_one_bin_and_ties_stay_together(strategy, sample):
    scores, y, _ = sample
    edges = strategy.bin_edges(scores, y)
    bins = assign_bins(scores, edges)
    assert bins.min() >= 0
    assert bins.max() < len(edges) - 1
    order = np.argsort(scores)
    assert np.all(np.diff(bins[order]) >= 0)
    for value in np.unique(scores):
        assert len(set(bins[scores == value])) == 1
    if isinstance(strategy, EqualMass | UniqueScores):
        assert set(bins) == set(range(len(edges) - 1))  # none is empty
    assert np.all(scores <= edges[1:][bins])
    assert np.all((scores > edges[:-1][bins]) | (bins == 0))


@given(
    sample=samples(), fine=st.sets(st.floats(0.01, 0.99), max_size=8), coarse=st.data()
)
def test_refining_bins_never_lowers_the_plugin_error(sample, fine, coarse):
    scores, y, weights = sample
    kept = coarse.draw(st.sets(st.sampled_from(sorted(fine)))) if fine else set()
    for norm in (1, 2, 3):
        errors = [
            expected_calibration_error(
                y,
                scores,
                norm=norm,
                binning=FixedEdges([0, *sorted(inner), 1]),
                sample_weight=weights,
            )
            for inner in (kept, fine)
        ]
        assert errors[0] <= errors[1] + 1e-9


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@given(sample=samples())
def test_norms_rise(strategy, sample):
    scores, y, weights = sample
    for method in ("plugin", "label_binned"):
        norms = (1, 1.5, 2, 7) if method == "label_binned" else (1, 1.5, 2, 7, np.inf)
        options = {"binning": strategy, "method": method, "sample_weight": weights}
        errors = [calibration_error(y, scores, norm=norm, **options) for norm in norms]
        assert all(
            low <= high + 1e-9 for low, high in zip(errors, errors[1:], strict=False)
        )
    plugin = calibration_error(y, scores, norm=1, method="plugin", binning=strategy)
    assert (
        plugin
        <= calibration_error(y, scores, norm=1, method="label_binned", binning=strategy)
        + 1e-9
    )


@given(sample=samples(), power=st.floats(0.2, 5))
def test_equal_mass_bins_follow_a_monotone_map(sample, power):
    scores, y, weights = sample
    mapped = scores**power
    assume(len(np.unique(mapped)) == len(np.unique(scores)))
    for strategy in (EqualMass(4), UniqueScores()):
        bins = [
            assign_bins(s, strategy.bin_edges(s, y, weights + 1.0))
            for s in (scores, mapped)
        ]
        np.testing.assert_array_equal(*bins)


@given(sample=samples())
def test_float32_scores_are_float64_scores(sample):
    scores, y, weights = sample
    single = scores.astype(np.float32)
    for strategy in STRATEGIES:
        options = {
            "binning": strategy,
            "norm": 1,
            "method": "plugin",
            "sample_weight": weights,
        }
        # float64 copies of the same numbers: not a bit may differ
        assert calibration_error(y, single, **options) == calibration_error(
            y, single.astype(float), **options
        )


# Any labels belong to any scores here, also those that fall with the event.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The event is:UserWarning")
@pytest.mark.parametrize("recalibrator", each_of(RECALIBRATORS))
@settings(max_examples=settings.default.max_examples // 2)
@given(sample=samples())
def test_recalibrators_on_any_sample(recalibrator, sample):
    scores, y, weights = sample
    y = np.array(["no", "yes"])[y.astype(int)]
    model = clone(recalibrator).fit(scores, y)
    proba = model.predict_proba(scores)
    assert np.isfinite(proba).all()
    assert proba.min() >= 0
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict_proba(scores), proba
    )
    np.testing.assert_array_equal(
        clone(model).fit(scores, y).predict_proba(scores), proba
    )
    order = np.random.default_rng(0).permutation(len(y))
    np.testing.assert_allclose(
        clone(model).fit(scores[order], y[order]).predict_proba(scores),
        proba,
        atol=1e-5,
    )
    # decisions of a monotone map never change their order
    falling = np.diff(proba[np.argsort(scores, kind="stable"), 1]) < -1e-12
    if type(recalibrator).__name__ in ("IsotonicCalibration", "TemperatureScaling"):
        assert not falling.any()
    if not isinstance(recalibrator, UNWEIGHTED):
        rows = np.repeat(np.arange(len(y)), weights)
        # elsewhere a map that is fitted to separable rows is not unique
        weighted = clone(model).fit(scores, y, weights).predict_proba(scores[rows])
        expected = clone(model).fit(scores[rows], y[rows]).predict_proba(scores[rows])
        np.testing.assert_allclose(weighted, expected, atol=1e-5)
