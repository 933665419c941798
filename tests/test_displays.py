"""The drawn data of the displays, and what can be said about their looks without
looking.
"""

import re
import subprocess
import sys
import time
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from skcalib import HistogramBinning, UniformMassBinning
from skcalib.binning import (
    EqualMass,
    EqualWidth,
    MonotonicSweep,
    PoolAdjacentViolators,
    UniqueScores,
)
from skcalib.displays import (
    BinCountDisplay,
    EstimatorBiasDisplay,
    ReliabilityDisplay,
    ValidityDisplay,
)
from skcalib.guarantees import conditional_epsilon, marginal_epsilon, max_n_bins
from skcalib.metrics import (
    calibration_error,
    calibration_error_interval,
    expected_calibration_error,
    reliability_curve,
    validity_curve,
)
from skcalib.simulation import CalibrationModel, PowerCurve

matplotlib = pytest.importorskip(
    "matplotlib", reason="displays need matplotlib (extra plot)"
)
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def _scores(n, seed=0, curve=lambda s: s):
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    return rng.random(n) < curve(scores), scores


def _overlap(first, second):
    """Return the area in pixels that two artists share."""
    a, b = first.get_window_extent(), second.get_window_extent()
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    return max(width, 0) * max(height, 0)


def _assert_tidy(display):
    """Assert that the legend hides no axes and that nothing leaves the figure."""
    figure = display.figure_.figure
    figure.canvas.draw()
    if display.legend_ is not None:
        with_data = [ax for ax in figure.axes if ax.axison]
        assert all(_overlap(display.legend_, ax) < 1 for ax in with_data)
    box = figure.get_tightbbox()  # inches
    width, height = figure.get_size_inches()
    assert box.x0 > -0.03
    assert box.y0 > -0.03
    assert box.x1 < width + 0.03
    assert box.y1 < height + 0.03


# --- ReliabilityDisplay: the numbers --------------------------------------------------


def test_lines_end_where_next_to_no_rows_are():
    y, scores = _scores(2000)
    # all rows below .05 or above .95
    heaps = np.where(scores < 0.5, 0.1 * scores, 1 - 0.1 * (1 - scores))
    alone = (
        ReliabilityDisplay.from_predictions(y, heaps, binning=10, random_state=0)
        .lines_[0]
        .get_xydata()
    )
    (gap,) = np.flatnonzero(np.isnan(alone[:, 0]))
    assert alone[gap - 1, 0] < 0.05
    assert alone[gap + 1, 0] > 0.9
    three = ReliabilityDisplay.from_predictions(
        y, scores, binning=EqualWidth(3), random_state=0
    )
    # far apart, with rows between
    assert np.isfinite(three.lines_[0].get_xydata()).all()


@pytest.mark.slow
def test_a_logarithmic_number_of_rows_says_so():
    rng = np.random.default_rng(0)
    rare = rng.beta(0.3, 30, 5000)
    y = rng.random(5000) < rare
    for models in (rare, {"one": rare, "other": rare / 2}):
        display = ReliabilityDisplay.from_predictions(
            y, models, random_state=0, limits=(0, 1)
        )
        strips = np.ravel(display.histogram_ax_)
        assert all(
            ax.get_yscale() == "symlog" and "log" in ax.get_ylabel() for ax in strips
        )
        _assert_tidy(display)


@pytest.mark.parametrize("binning", [7, EqualWidth(10), UniqueScores()], ids=repr)
def test_line_bars_and_histogram_are_the_bins(binning):
    y, scores = _scores(800)
    scores = scores.round(1)
    display = ReliabilityDisplay.from_predictions(
        y, scores, binning=binning, random_state=0
    )
    bins = reliability_curve(y, scores, binning=binning)
    seen = bins.weight > 0
    np.testing.assert_array_equal(display.lines_[0].get_xdata(), bins.mean_score[seen])
    np.testing.assert_array_equal(
        display.lines_[0].get_ydata(), bins.event_frequency[seen]
    )
    low, high = bins.interval(0.9)
    segments = np.array(display.intervals_[0].lines[2][0].get_segments())
    np.testing.assert_allclose(segments[:, 0, 1], low[seen], atol=1e-12)
    np.testing.assert_allclose(segments[:, 1, 1], high[seen], atol=1e-12)
    heights, edges, _ = display.histograms_[0].get_data()
    # right-closed bins, the first closed on both sides, as everywhere in the library
    bounds = zip(edges[:-1], edges[1:], strict=True)
    inside = [
        ((scores > low) | ((low == 0) & (scores == 0))) & (scores <= high)
        for low, high in bounds
    ]
    assert heights.tolist() == [mask.sum() for mask in inside]


def test_split_histogram_has_events_upwards_and_the_rest_downwards():
    y, scores = _scores(300)
    display = ReliabilityDisplay.from_predictions(
        y, scores, random_state=0, split_histogram=True
    )
    up, down = (steps.get_data().values for steps in display.histograms_)
    assert up.sum() == y.sum()
    assert -down.sum() == (~y).sum()
    assert {"event", "no event"} <= {
        text.get_text() for text in display.legend_.get_texts()
    }
    tall = ReliabilityDisplay.from_predictions(
        y, scores, random_state=0, histogram_scale="log", split_histogram=True
    )
    assert tall.histogram_ax_.get_yscale() == "symlog"


def test_names_with_a_colon_stay_whole_in_a_small_legend():
    y, scores = _scores(300)
    models = {"forest: v1": scores, "forest: v2": scores**1.2}
    with matplotlib.rc_context({"figure.figsize": (2.2, 2.2)}):
        for metric in ("auto", None):
            display = ReliabilityDisplay.from_predictions(
                y, models, random_state=0, metric=metric
            )
            texts = [text.get_text() for text in display.legend_.get_texts()]
            assert [text[:10] for text in texts[:2]] == list(models)


@pytest.mark.slow
def test_histogram_of_one_high_bar_is_logarithmic():
    y, scores = _scores(1000)
    # the bars of the others would be one or two rows high
    heaped = np.where(np.arange(1000) < 960, 0.0, scores)
    for chosen, scale in ((scores, "linear"), (heaped, "symlog")):
        display = ReliabilityDisplay.from_predictions(
            y, chosen, random_state=0, metric=None
        )
        assert display.histogram_ax_.get_yscale() == scale
        assert display.histogram_ax_.get_ylabel() == (
            "Rows (log)" if scale == "symlog" else "Rows"
        )
    plain = ReliabilityDisplay.from_predictions(
        y, heaped, random_state=0, metric=None, histogram_scale="linear"
    )
    assert plain.histogram_ax_.get_yscale() == "linear"


def test_default_bins_spread_over_the_axis_and_the_rows():
    rng = np.random.default_rng(0)
    # a network that is nearly always sure
    sure = np.concatenate((rng.random(500), 1 - rng.random(20_000) / 1000))
    bins = ReliabilityDisplay.from_predictions(
        np.ones_like(sure, bool), sure, labels=[0, 1], random_state=0
    ).curves[0]
    assert (bins.statistics.mean_score < 0.95).sum() >= 10
    assert (bins.statistics.mean_score > 0.99).sum() >= 10
    assert bins.statistics.count.min() >= 10
    y, few = _scores(30)
    assert (
        ReliabilityDisplay.from_predictions(y, few, random_state=0)
        .curves[0]
        .statistics.n_bins
        <= 3
    )


def test_legend_error_is_the_metric_with_its_interval():
    y, scores = _scores(2000, curve=lambda s: s**1.5)
    for binning in (None, 12, EqualWidth(8)):
        display = ReliabilityDisplay.from_predictions(
            y, scores, binning=binning, random_state=3
        )
        expected = calibration_error_interval(
            y, scores, binning=binning or EqualMass(15), random_state=3
        )
        assert display.curves[0].error == pytest.approx(expected)
        assert display.curves[0].error.estimate == calibration_error(
            y, scores, binning=binning
        )
    metric = partial(expected_calibration_error, binning=EqualWidth(10))
    display = ReliabilityDisplay.from_predictions(
        y, scores, metric=metric, name="A", random_state=3
    )
    estimate = metric(y, scores)
    title = display.ax_.get_title(loc="left")
    assert title.startswith(
        "A, n = 2,000\nexpected calibration error " + f"{100 * estimate:.1f} % ("
    )
    bare = ReliabilityDisplay.from_predictions(y, scores, metric=None)
    assert bare.curves[0].error is None
    assert bare.ax_.get_title(loc="left") == "n = 2,000"


def test_consistency_band_is_binomial():
    y, scores = _scores(3000)
    curve = ReliabilityDisplay.from_predictions(
        y, scores, binning=EqualWidth(6), random_state=0
    ).curves[0]
    bins = curve.statistics
    at_means = np.searchsorted(curve.consistency.scores, bins.mean_score)
    for i, (count, mean) in enumerate(zip(bins.count, bins.mean_score, strict=True)):
        low, high = stats.binom.ppf([0.05, 0.95], count, mean) / count
        assert curve.consistency.low[at_means[i]] == pytest.approx(low)
        assert curve.consistency.high[at_means[i]] == pytest.approx(high)
    assert (curve.consistency.scores[0], curve.consistency.scores[-1]) == (
        scores.min(),
        scores.max(),
    )


@pytest.mark.slow
@pytest.mark.parametrize("binning", [EqualMass(8), PoolAdjacentViolators()], ids=repr)
def test_consistency_band_keeps_calibrated_models_inside(binning):
    # at least 90 % at each score; 60 sets at 4 places that depend on each other: a
    # standard error of about .03
    inside = []
    for seed in range(60):
        y, scores = _scores(400, seed)
        options = {
            "binning": binning,
            "interval": None,
            "metric": None,
            "n_resamples": 100,
            "random_state": seed,
        }
        curve = ReliabilityDisplay.from_predictions(
            y, scores, legend=False, histogram=False, **options
        ).curves[0]
        plt.close("all")
        at = np.array([0.2, 0.4, 0.6, 0.8])
        bins = np.searchsorted(curve.statistics.edges[1:-1], at)
        if binning.needs_labels:
            drawn = curve.statistics.event_frequency[bins]
        else:
            drawn, at = (
                curve.statistics.event_frequency[bins],
                curve.statistics.mean_score[bins],
            )
        low, high = (
            np.interp(at, curve.consistency.scores, limit)
            for limit in curve.consistency[1:]
        )
        inside.append((low - 1e-12 <= drawn) & (drawn <= high + 1e-12))
    assert np.mean(inside) > 0.84


@pytest.mark.slow
def test_isotonic_bins_are_drawn_as_the_steps_of_the_isotonic_fit():
    y, scores = _scores(500)
    display = ReliabilityDisplay.from_predictions(
        y, scores, binning=PoolAdjacentViolators(), random_state=0
    )
    (line,) = display.lines_
    assert line.get_drawstyle() == "steps-post"
    fitted = IsotonicRegression().fit_transform(scores, y)
    x, frequency = line.get_data()
    step = np.clip(np.searchsorted(x, scores, side="left") - 1, 0, len(x) - 2)
    np.testing.assert_allclose(frequency[step], fitted, atol=1e-12)
    assert (x[0], x[-1]) == (scores.min(), scores.max())
    assert display.curves[0].bars is None
    assert len(display.intervals_) == 1  # the bootstrap band


@pytest.mark.slow
def test_bootstrap_band_is_that_of_rows():
    y, scores = _scores(400)
    options = {"interval": "bootstrap", "n_resamples": 4000, "random_state": 0}
    curve = ReliabilityDisplay.from_predictions(
        y, scores, binning=EqualWidth(4), **options
    ).curves[0]
    rng = np.random.default_rng(1)
    frequencies = []
    for _ in range(2000):  # the plain way: rows with replacement
        rows = rng.integers(400, size=400)
        frequencies.append(
            [
                y[rows][(scores[rows] > low) & (scores[rows] <= low + 0.25)].mean()
                for low in np.arange(4) / 4
            ]
        )
    low, high = np.quantile(frequencies, [0.05, 0.95], axis=0)
    means = curve.statistics.mean_score
    np.testing.assert_allclose(
        np.interp(means, curve.band.scores, curve.band.low), low, atol=0.015
    )
    np.testing.assert_allclose(
        np.interp(means, curve.band.scores, curve.band.high), high, atol=0.015
    )


@pytest.mark.slow
def test_bootstrap_band_of_isotonic_bins_refits_them():
    y, scores = _scores(300, curve=lambda s: s**2)
    options = {
        "binning": PoolAdjacentViolators(),
        "n_resamples": 1000,
        "random_state": 0,
    }
    band = ReliabilityDisplay.from_predictions(y, scores, **options).curves[0].band
    rng = np.random.default_rng(1)
    fits = []
    for _ in range(600):
        rows = rng.integers(300, size=300)
        fits.append(
            IsotonicRegression(out_of_bounds="clip")
            .fit(scores[rows], y[rows])
            .predict([0.3, 0.5, 0.7])
        )
    low, high = np.quantile(fits, [0.05, 0.95], axis=0)
    np.testing.assert_allclose(
        np.interp([0.3, 0.5, 0.7], band.scores, band.low), low, atol=0.05
    )
    np.testing.assert_allclose(
        np.interp([0.3, 0.5, 0.7], band.scores, band.high), high, atol=0.05
    )


@pytest.mark.parametrize(
    "binning", [None, EqualMass(6), PoolAdjacentViolators(), MonotonicSweep()], ids=repr
)
def test_integer_weights_equal_repeated_rows(binning):
    y, scores = _scores(200)
    weight = np.random.default_rng(1).integers(0, 4, size=200)
    options = {"binning": binning, "random_state": 0, "n_resamples": 50, "metric": None}
    weighted = ReliabilityDisplay.from_predictions(
        y, scores, sample_weight=weight, **options
    ).curves[0]
    repeated = ReliabilityDisplay.from_predictions(
        np.repeat(y, weight), np.repeat(scores, weight), **options
    ).curves[0]
    np.testing.assert_allclose(
        weighted.statistics.event_frequency, repeated.statistics.event_frequency
    )
    np.testing.assert_allclose(weighted.histogram.weight, repeated.histogram.weight)
    np.testing.assert_allclose(weighted.consistency.low, repeated.consistency.low)


def test_fractional_weights_have_a_band():
    y, scores = _scores(200)
    curve = ReliabilityDisplay.from_predictions(
        y, scores, sample_weight=np.full(200, 0.7), random_state=0
    ).curves[0]
    assert np.all(np.isfinite(curve.consistency.low))
    assert np.all(curve.consistency.low <= curve.consistency.high)


def test_second_plot_recomputes_nothing(monkeypatch):
    y, scores = _scores(300)
    display = ReliabilityDisplay.from_predictions(y, scores, random_state=0)
    first = display.lines_[0]

    def refuse(*args, **kwargs):
        raise AssertionError("computed again")

    monkeypatch.setattr("skcalib._cells.tasks.BinaryTask.statistics", refuse)
    monkeypatch.setattr("skcalib._cells.statistics.BinStatistics.interval", refuse)
    monkeypatch.setattr(
        "skcalib.displays._reliability_curves.calibration_error_interval", refuse
    )
    assert display.plot() is display
    assert display.lines_[0] is not first
    np.testing.assert_array_equal(display.lines_[0].get_xydata(), first.get_xydata())


# --- ReliabilityDisplay: classes, groups, models --------------------------------------


@pytest.mark.slow
def test_from_estimator_equals_from_predictions():
    X, y = load_breast_cancer(return_X_y=True)
    y = np.array(["benign", "malignant"])[y]
    model = GaussianNB().fit(X[::2], y[::2])
    proba = model.predict_proba(X[1::2])
    shown = ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2], random_state=0)
    given = ReliabilityDisplay.from_predictions(
        y[1::2], proba[:, 1], pos_label="malignant", random_state=0
    )
    np.testing.assert_array_equal(
        shown.lines_[0].get_xydata(), given.lines_[0].get_xydata()
    )
    assert shown.ax_.get_title(loc="left").startswith("GaussianNB, n = 284")
    other = ReliabilityDisplay.from_estimator(
        model, X[1::2], y[1::2], pos_label="benign", random_state=0
    )
    np.testing.assert_allclose(
        other.curves[0].histogram.weight, given.curves[0].histogram.weight[::-1], atol=2
    )
    several = ReliabilityDisplay.from_estimator(
        {"Bayes": model, "smooth": GaussianNB(var_smoothing=0.1).fit(X[::2], y[::2])},
        X[1::2],
        y[1::2],
    )
    assert [curve.model for curve in several.curves] == ["Bayes", "smooth"]


@pytest.mark.slow
def test_marginal_panels_are_the_classes_in_the_order_asked_for():
    X, y = load_iris(return_X_y=True)
    proba = GaussianNB().fit(X, y).predict_proba(X)
    options = {"multiclass": "marginal", "random_state": 0}
    display = ReliabilityDisplay.from_predictions(y, proba, **options)
    assert [curve.panel for curve in display.curves] == ["0", "1", "2"]
    display = ReliabilityDisplay.from_predictions(y, proba, order="error", **options)
    errors = {k: calibration_error(y == k, proba[:, k], squared=True) for k in range(3)}
    assert [curve.panel for curve in display.curves] == [
        str(k) for k in sorted(errors, key=errors.get, reverse=True)
    ]
    assert display.ax_.shape == (3,)
    assert (
        display.ax_[0]
        .get_title(loc="left")
        .startswith(f"class {display.curves[0].panel}\nerror ")
    )
    np.testing.assert_array_equal(
        display.curves[0].statistics.weighted_label.sum(),
        (y == int(display.curves[0].panel)).sum(),
    )
    top = ReliabilityDisplay.from_predictions(y, proba, random_state=0)
    assert top.ax_.get_ylabel() == "Frequency correct"


@pytest.mark.slow
def test_at_most_twelve_panels():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(20), size=2000)
    y = rng.integers(20, size=2000)
    display = ReliabilityDisplay.from_predictions(
        y, proba, multiclass="marginal", n_resamples=20, random_state=0
    )
    assert len(display.curves) == 12
    assert (
        display.legend_.get_title().get_text()
        == "12 of 20 classes: those with the largest errors"
    )
    _assert_tidy(display)


@pytest.mark.slow
def test_groups_are_panels_also_those_with_one_class_or_row():
    y, scores = _scores(400)
    groups = np.repeat(["a", "b", "c"], [250, 149, 1])
    y[groups == "b"] = True
    display = ReliabilityDisplay.from_predictions(
        y, scores, groups=groups, order="error", random_state=0
    )
    # c has no error and comes last
    assert [curve.panel for curve in display.curves] == ["b", "a", "c"]
    assert display.curves[-1].error is None
    part = reliability_curve(
        y[groups == "a"],
        scores[groups == "a"],
        binning=display.curves[1].statistics.n_bins,
    )
    assert part.weight.sum() == display.curves[1].statistics.weight.sum() == 250
    with pytest.raises(ValueError, match="cannot be combined"):
        ReliabilityDisplay.from_predictions(
            y, scores, groups=groups, multiclass="marginal"
        )
    weight = np.where(groups == "c", 0, 1)
    weighted = ReliabilityDisplay.from_predictions(
        y, scores, groups=groups, sample_weight=weight, random_state=0
    )
    assert [curve.panel for curve in weighted.curves] == ["a", "b"]
    names = np.repeat(["z", "a", "m"], [100, 200, 100])
    for order, expected in (("given", ["z", "a", "m"]), ("sorted", ["a", "m", "z"])):
        display = ReliabilityDisplay.from_predictions(
            y, scores, groups=names, order=order, metric=None
        )
        assert [curve.panel for curve in display.curves] == expected
    with pytest.raises(
        ValueError, match="order must be one of 'sorted', 'given', 'error', found"
    ):
        ReliabilityDisplay.from_predictions(y, scores, groups=names, order="worst")


def test_several_models_share_axes_and_differ_in_more_than_colour():
    y, scores = _scores(500)
    models = {f"model {k}": scores ** (1 + k / 10) for k in range(9)}
    display = ReliabilityDisplay.from_predictions(
        y, models, random_state=0, n_resamples=50
    )
    marks = [(line._dash_pattern, line.get_marker()) for line in display.lines_]
    inks = [line.get_color() for line in display.lines_]
    assert len(set(map(str, marks[:7]))) == len(set(inks[:7])) == 7
    assert len(set(map(str, zip(marks, inks, strict=True)))) == 9
    assert display.consistency_bands_ == []  # nine bands would hide each other
    assert display.histogram_ax_ is None  # nor nine histograms
    _assert_tidy(display)


@pytest.mark.slow
def test_display_on_top_of_another():
    y, scores = _scores(500)
    first = ReliabilityDisplay.from_predictions(y, scores, name="A", random_state=0)
    second = ReliabilityDisplay.from_predictions(
        y, scores**2, name="B", random_state=0, ax=first.ax_
    )
    assert second.ax_ is first.ax_
    assert second.histogram_ax_ is first.histogram_ax_
    assert second.reference_lines_ == first.reference_lines_
    assert second.lines_[0].get_color() != first.lines_[0].get_color()
    texts = [text.get_text() for text in second.legend_.get_texts()]
    assert [text.split(":")[0] for text in texts[:2]] == ["A", "B"]
    assert second.ax_.get_title(loc="left") == ""
    assert len(texts) == len(set(texts))
    assert len(second.figure_.legends) == 1
    _assert_tidy(second)
    _, axes = plt.subplots(1, 2, figsize=(12, 7), layout="constrained")
    for name in "ABC":
        display = ReliabilityDisplay.from_predictions(
            y, scores, name=name, random_state=0, ax=axes[1]
        )
    names = [text.get_text().split(":")[0] for text in display.legend_.get_texts()]
    assert names == ["A", "B", "C", "perfect calibration", "90 % interval"]
    assert sum(ax.get_legend() is not None for ax in display.figure_.axes) == 1


# --- ReliabilityDisplay: looks --------------------------------------------------------


@pytest.mark.parametrize("histogram", [True, False])
def test_axes_are_about_square_with_equal_limits(histogram):
    y, scores = _scores(300)
    display = ReliabilityDisplay.from_predictions(
        y, scores, random_state=0, histogram=histogram
    )
    display.figure_.canvas.draw()
    box = display.ax_.get_window_extent()
    assert box.width == pytest.approx(box.height, rel=0.12)
    assert (
        display.ax_.get_xlim() == display.ax_.get_ylim() == pytest.approx((-0.02, 1.02))
    )
    assert (
        display.ax_.get_xlabel()
        or display.histogram_ax_.get_xlabel() == "Predicted probability"
    )
    assert display.ax_.get_ylabel() == "Event frequency"
    if histogram:
        assert display.histogram_ax_.get_window_extent().width == pytest.approx(
            box.width, abs=0.5
        )
        assert display.histogram_ax_.get_ylabel() == "Rows"
    _assert_tidy(display)


@pytest.mark.slow
def test_rare_events_fill_the_axes():
    rng = np.random.default_rng(0)
    scores = rng.beta(1, 200, size=20_000)
    y = rng.random(20_000) < scores
    display = ReliabilityDisplay.from_predictions(y, scores, random_state=0)
    assert scores.max() < display.ax_.get_xlim()[1] < 2 * scores.max()
    assert display.ax_.get_xlim() == display.ax_.get_ylim()
    assert display.plot(limits=(0, 1)).ax_.get_xlim() == pytest.approx((-0.02, 1.02))
    frequent = ReliabilityDisplay.from_predictions(~y, 1 - scores, random_state=0)
    assert frequent.ax_.get_xlim()[0] > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("size", [(2.2, 2.2), (3, 4.5), (10, 10)], ids=str)
def test_the_users_size_of_a_figure_is_kept(size):
    y, scores = _scores(300)
    with plt.rc_context({"figure.figsize": size}):
        display = ReliabilityDisplay.from_predictions(
            y, scores, name="a model", random_state=0
        )
    assert tuple(display.figure_.get_size_inches()) == size
    _assert_tidy(display)


def test_long_names_are_shortened_in_the_legend_of_given_axes():
    y, scores = _scores(300)
    _, ax = plt.subplots(figsize=(3, 3))
    models = {
        "gradient boosting with monotone constraints and two hundred trees": scores,
        "other": scores**2,
    }
    display = ReliabilityDisplay.from_predictions(y, models, ax=ax, random_state=0)
    display.figure_.draw_without_rendering()
    assert display.legend_.get_window_extent().width <= ax.get_window_extent().width


def test_a_legend_in_given_axes_stands_beside_the_diagonal():
    y, scores = _scores(300)
    _, ax = plt.subplots(figsize=(5, 5))
    display = ReliabilityDisplay.from_predictions(
        y, scores, name="a model", ax=ax, random_state=0
    )
    display.figure_.draw_without_rendering()
    legend = display.legend_.get_window_extent()
    corners = ax.transAxes.inverted().transform(legend.corners())
    above, below = corners[:, 1] > corners[:, 0], corners[:, 1] < corners[:, 0]
    assert above.all() or below.all()


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["constrained", None])
@pytest.mark.parametrize(("n_rows", "n_columns"), [(1, 2), (2, 3)])
def test_a_diagram_fills_the_axes_that_are_given(n_rows, n_columns, layout):
    y, scores = _scores(300)
    # Without a layout the place is kept where words have room beside other axes.
    spaces = {} if layout else {"wspace": 0.7, "hspace": 0.7}
    figure, axes = plt.subplots(n_rows, n_columns, layout=layout, gridspec_kw=spaces)
    place = axes.flat[1].get_position()
    display = ReliabilityDisplay.from_predictions(
        y, scores, name="a model", random_state=0, ax=axes.flat[1]
    )
    assert display.ax_ is axes.flat[1]
    assert display.figure_ is figure
    if layout is None:
        upper, lower = display.ax_.get_position(), display.histogram_ax_.get_position()
        assert (upper.x0, upper.x1, upper.y1, lower.y0) == pytest.approx(
            (place.x0, place.x1, place.y1, place.y0)
        )
        assert upper.height > 0.7 * place.height
    figure.canvas.draw()
    if display.legend_ is not None:  # inside, where no data are
        box = display.legend_.get_window_extent()
        assert _overlap(display.legend_, display.ax_) == pytest.approx(
            box.width * box.height, rel=1e-6
        )
        points = display.ax_.transData.transform(display.lines_[0].get_xydata())
        assert not box.count_contains(points)


@pytest.mark.slow
def test_panels_share_the_place_of_one_axes_or_take_many():
    y, scores = _scores(400)
    groups = np.arange(400) % 3
    figure, axes = plt.subplots(1, 2, figsize=(14, 9), layout="constrained")
    display = ReliabilityDisplay.from_predictions(
        y, scores, groups=groups, random_state=0, ax=axes[1]
    )
    figure.canvas.draw()
    assert len(display.ax_) == 3
    assert all(
        panel.get_window_extent().x0 > axes[0].get_window_extent().x1
        for panel in display.ax_
    )
    _, many = plt.subplots(1, 3, figsize=(14, 9), layout="constrained")
    display = ReliabilityDisplay.from_predictions(
        y, scores, groups=groups, random_state=0, ax=many
    )
    assert list(display.ax_) == list(many)
    with pytest.raises(ValueError, match="ax contains 3 axes but there are 4 panels"):
        ReliabilityDisplay.from_predictions(
            y, scores, groups=np.arange(400) % 4, ax=many
        )


@pytest.mark.slow
def test_axes_without_a_grid_and_in_a_subfigure():
    y, scores = _scores(300)
    free = plt.figure().add_axes((0.1, 0.4, 0.5, 0.5))
    display = ReliabilityDisplay.from_predictions(y, scores, random_state=0, ax=free)
    display.figure_.canvas.draw()
    assert _overlap(display.ax_, display.histogram_ax_) == 0
    left, _ = plt.figure(figsize=(12, 7), layout="constrained").subfigures(1, 2)
    display = ReliabilityDisplay.from_predictions(
        y, scores, random_state=0, ax=left.subplots()
    )
    assert display.figure_ is left
    left.figure.canvas.draw()


def test_user_settings_are_respected():
    y, scores = _scores(300)
    models = {"A": scores, "B": scores**2}
    with plt.rc_context(
        {"axes.prop_cycle": plt.cycler(color=["#123456", "#abcdef"]), "font.size": 7}
    ):
        display = ReliabilityDisplay.from_predictions(y, models, random_state=0)
        assert [line.get_color() for line in display.lines_] == ["#123456", "#abcdef"]
        assert display.ax_.yaxis.label.get_size() == 7
    with plt.style.context("dark_background"):
        display = ReliabilityDisplay.from_predictions(y, scores, random_state=0)
        assert display.figure_.get_facecolor()[:3] == (0, 0, 0)
        # a dark grey on black
        assert display.consistency_bands_[0].get_facecolor()[0][:3].max() < 0.5
    assert (
        ReliabilityDisplay.from_predictions(y, scores, random_state=0)
        .lines_[0]
        .get_color()
        == "#0072B2"
    )


def test_keywords_of_each_artist():
    y, scores = _scores(300)
    display = ReliabilityDisplay.from_predictions(
        y,
        scores,
        random_state=0,
        line_kw={"c": "red", "lw": 5},
        interval_kw={"ecolor": "green"},
        consistency_kw={"facecolor": "yellow"},
        reference_kw={"color": "blue", "ls": "-"},
        histogram_kw={"fc": "pink"},
        legend_kw={"title": "words"},
    )
    assert (display.lines_[0].get_color(), display.lines_[0].get_linewidth()) == (
        "red",
        5,
    )
    assert matplotlib.colors.same_color(
        display.intervals_[0].lines[2][0].get_color()[0], "green"
    )
    assert matplotlib.colors.same_color(
        display.consistency_bands_[0].get_facecolor()[0], "yellow"
    )
    assert (
        display.reference_lines_[0].get_color(),
        display.reference_lines_[0].get_linestyle(),
    ) == ("blue", "-")
    assert matplotlib.colors.same_color(
        display.histograms_[0].get_facecolor()[:3], "pink"
    )
    assert display.legend_.get_title().get_text() == "words"
    assert display.plot(legend=False, histogram=False).legend_ is None
    assert display.histogram_ax_ is None


def test_colours_differ_in_grey():
    display = ReliabilityDisplay.from_predictions(*_scores(200), random_state=0)
    from skcalib.displays._style import colors

    luminance = [
        np.dot(matplotlib.colors.to_rgb(color), (0.299, 0.587, 0.114))
        for color in colors(4)
    ]
    assert display.lines_[0].get_color() == colors(1)[0]
    assert (
        min(abs(a - b) for i, a in enumerate(luminance) for b in luminance[:i]) > 0.02
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("y", "scores", "options"),
    [
        ([1], [0.3], {"labels": [0, 1]}),
        ([0] * 50, np.linspace(0, 1, 50), {"labels": [0, 1]}),
        ([0, 1] * 50, np.full(100, 0.5), {}),
        ([0, 1] * 50, [0.0, 1.0] * 50, {}),
        ([1, 0] * 50, [0.0, 1.0] * 50, {}),
        ([False] * 40 + [True] * 40, np.linspace(0, 1, 80, dtype=np.float32), {}),
        (["no", "yes"] * 40, np.linspace(0, 1, 80), {"pos_label": "yes"}),
    ],
    ids=[
        "one row",
        "one class",
        "one score",
        "exact",
        "exactly wrong",
        "separated float32",
        "strings",
    ],
)
@pytest.mark.parametrize(
    "binning", [None, PoolAdjacentViolators()], ids=["default", "isotonic"]
)
def test_extreme_data_are_drawn(y, scores, options, binning):
    display = ReliabilityDisplay.from_predictions(
        y, scores, binning=binning, random_state=0, n_resamples=50, **options
    )
    _assert_tidy(display)
    curve = display.curves[0]
    assert np.all(np.isfinite(np.concatenate(curve.consistency)))
    # visible also where all scores are the same
    assert len(curve.consistency.scores) >= 2
    assert curve.histogram.weight.sum() == len(y)


@pytest.mark.slow
def test_a_million_rows_are_quick():
    rng = np.random.default_rng(0)
    scores = rng.beta(0.7, 1.5, size=10**6)
    y = rng.random(10**6) < scores
    # imports and fonts
    ReliabilityDisplay.from_predictions(y[:100], scores[:100], random_state=0)
    start = time.process_time()
    ReliabilityDisplay.from_predictions(y, scores, random_state=0)
    # .5 s on a machine that has nothing else to do
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interval": "normal"}, "interval must be one of"),
        (
            {"interval": "wilson", "binning": PoolAdjacentViolators()},
            "not valid for label-dependent bins",
        ),
        ({"metric": "ece"}, "metric must be"),
        ({"n_resamples": 0}, "n_resamples"),
        ({"confidence_level": 90}, "confidence_level"),
        ({"histogram_scale": "sqrt"}, "histogram_scale must be"),
        ({"binning": 0}, "n_bins"),
        ({"groups": [1, 2]}, "groups has 2 rows"),
        ({"limits": (0.5, 0.2)}, "limits must be"),
        ({"limits": "tight"}, "limits must be"),
        ({"max_panels": 0}, "max_panels must be at least 1"),
    ],
    ids=str,
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        ReliabilityDisplay.from_predictions(*_scores(50), **options)


def test_bad_models():
    y, scores = _scores(50)
    with pytest.raises(ValueError, match="the dict is empty"):
        ReliabilityDisplay.from_predictions(y, {})
    with pytest.raises(ValueError, match="name='A' is for a single model"):
        ReliabilityDisplay.from_predictions(y, {"B": scores}, name="A")
    X = scores[:, None]
    with pytest.raises(
        ValueError, match="LinearSVC has no predict_proba.*RecalibratedClassifierCV"
    ):
        ReliabilityDisplay.from_estimator(LinearSVC().fit(X, y), X, y)
    first, second = (
        GaussianNB().fit(X, y),
        GaussianNB().fit(X, np.where(y, "yes", "no")),
    )
    with pytest.raises(ValueError, match="same classes_"):
        ReliabilityDisplay.from_estimator({"A": first, "B": second}, X, y)


def test_names_are_shown_as_they_are():
    y, scores = _scores(200)
    names = {"_hidden": scores, "cost in $ or $x": scores**2, "50 %_^\\": scores**3}
    display = ReliabilityDisplay.from_predictions(
        y, names, groups=np.where(y, "$^$", "_b"), random_state=0
    )
    display.figure_.canvas.draw()
    assert [text.get_text() for text in display.legend_.get_texts()][:1] == [" _hidden"]
    shown = [
        text.get_text().replace(r"\$", "$").strip()
        for text in display.legend_.get_texts()[:3]
    ]
    assert shown == list(names)


@pytest.mark.slow
def test_pictures_of_the_user_guide():
    guide = Path(__file__).parents[1] / "doc"
    spec = spec_from_file_location("pictures", guide / "examples" / "pictures.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    for display in module.pictures.values():
        _assert_tidy(display)
    shown = re.findall(
        r"{image} pictures/(\w+)\.png",
        (guide / "displays.md").read_text(encoding="utf-8"),
    )
    # of guide_pictures.py
    others = {"cumulative", "groups", "segments", "change", "murphy", "monitor"}
    assert set(shown) - others == set(module.pictures)
    assert all((guide / "pictures" / f"{name}.png").exists() for name in shown)


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install .*\[plot\]"):
        ReliabilityDisplay.from_predictions(*_scores(50))


@pytest.mark.slow
def test_importing_displays_does_not_import_matplotlib():
    code = "import sys, skcalib.displays; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- ValidityDisplay ------------------------------------------------------------------


def test_validity_of_one_sample_is_the_exact_step_function():
    y, scores = _scores(2000)
    models = {"A": scores.round(1), "B": scores.round(1) ** 2}
    display = ValidityDisplay.from_predictions(y, models)
    nameless = (
        ValidityDisplay.from_predictions(y, models["A"])
        .legend_.get_texts()[0]
        .get_text()
    )
    assert nameless.startswith("n = ")
    for line, proba in zip(display.lines_, models.values(), strict=True):
        epsilons, validity = validity_curve(y, proba)
        assert line.get_drawstyle() == "steps-post"
        np.testing.assert_array_equal(line.get_xdata()[:-1], epsilons)
        np.testing.assert_array_equal(line.get_ydata()[:-1], validity)
    assert display.bands_ == []
    _assert_tidy(display)
    both = ValidityDisplay.from_predictions(y, models["A"], kind="both", name="A")
    assert both.ax_.shape == (2,)
    np.testing.assert_array_equal(
        both.lines_[1].get_ydata()[:-1],
        validity_curve(y, models["A"], conditional=True)[1],
    )
    _assert_tidy(both)


@pytest.mark.slow
def test_validity_over_repeats_with_the_guarantee():
    def repeat(seed):
        y, scores = _scores(1500, seed)
        model = UniformMassBinning(5).fit(scores[:500], y[:500])
        return y[500:], model.predict_proba(scores[500:])[:, 1]

    samples = [repeat(seed) for seed in range(8)]
    display = ValidityDisplay.from_repeats(
        samples, kind="both", n_samples=500, n_bins=5, epsilons=np.linspace(0, 0.3, 61)
    )
    for curve, conditional in zip(display.curves, (False, True), strict=True):
        each = [
            validity_curve(*one, epsilons=curve.epsilons, conditional=conditional)[1]
            for one in samples
        ]
        np.testing.assert_array_equal(curve.validity, np.mean(each, axis=0))
        np.testing.assert_allclose(
            curve.standard_error, np.std(each, axis=0, ddof=1) / np.sqrt(8), atol=1e-15
        )
    assert len(display.bands_) == 2
    for line, promised in zip(
        display.guarantee_lines_, (marginal_epsilon, conditional_epsilon), strict=True
    ):
        epsilons, level = line.get_data()
        assert epsilons[200] == promised(500, 5, confidence_level=level[200])
        assert np.all(np.diff(epsilons) > 0)
    # What is promised is kept: the mean over repeats lies above, up to its noise.
    conditional, (epsilons, level) = (
        display.curves[1],
        display.guarantee_lines_[1].get_data(),
    )
    promised = np.interp(conditional.epsilons, epsilons, level, left=0)
    assert np.all(
        conditional.validity + 3 * conditional.standard_error + 1e-12 >= promised - 0.05
    )
    assert "8 repeats" in display.legend_.get_texts()[0].get_text()
    _assert_tidy(display)


def test_validity_of_a_recalibrator_and_bad_options():
    y, scores = _scores(600)
    model = HistogramBinning().fit(scores[:300], y[:300])
    display = ValidityDisplay.from_estimator(model, scores[300:], y[300:])
    epsilons, validity = validity_curve(
        y[300:], model.predict_proba(scores[300:])[:, 1]
    )
    np.testing.assert_array_equal(display.curves[0].validity, validity)
    with pytest.warns(UserWarning, match="300 of 300 scores are distinct.*a binned"):
        ValidityDisplay.from_predictions(y[:300], scores[:300])
    binned = ValidityDisplay.from_predictions(y[:300], scores[:300], binning=10)
    assert len(binned.curves[0].epsilons) == 11  # the bins and 0
    scores = scores.round(2)
    with pytest.raises(ValueError, match="kind must be one of 'marginal'"):
        ValidityDisplay.from_predictions(y, scores, kind="joint")
    with pytest.raises(ValueError, match="given together"):
        ValidityDisplay.from_predictions(y, scores, n_bins=5)
    with pytest.raises(ValueError, match="samples is empty"):
        ValidityDisplay.from_repeats([])
    with pytest.raises(ValueError, match="single repeat"):
        ValidityDisplay.from_repeats([(y, scores)] * 2, sample_weight=np.ones(600))
    weight = np.random.default_rng(0).integers(1, 4, size=600)
    weighted = ValidityDisplay.from_predictions(
        y, scores.round(1), sample_weight=weight
    )
    repeated = ValidityDisplay.from_predictions(
        np.repeat(y, weight), np.repeat(scores.round(1), weight)
    )
    np.testing.assert_allclose(weighted.curves[0].validity, repeated.curves[0].validity)


class _AsItIs(HistogramBinning):
    """A recalibrator that changes nothing."""

    def _predict_binary(self, scores):
        return scores


# --- BinCountDisplay ------------------------------------------------------------------


@pytest.mark.slow
def test_bin_counts_by_guarantee():
    display = BinCountDisplay.from_guarantee([300, 20_000], epsilon=0.05)
    few, many = display.curves
    assert few.chosen is None
    assert many.chosen == max_n_bins(20_000, 0.05) == 17
    assert many.tolerance.tolist() == [
        conditional_epsilon(20_000, int(b)) for b in many.n_bins
    ]
    np.testing.assert_array_equal(display.lines_[1].get_ydata(), many.tolerance)
    assert display.chosen_[0].get_xdata().tolist() == [17]
    texts = [text.get_text() for text in display.legend_.get_texts()]
    assert texts[:2] == ["n = 300: no number of bins", "n = 20,000: 17 bins"]
    assert display.ax_.get_ylim()[1] <= 1
    _assert_tidy(display)
    marginal = BinCountDisplay.from_guarantee(1000, kind="marginal", n_bins=[5, 10])
    assert marginal.curves[0].tolerance.tolist() == [
        marginal_epsilon(1000, 5),
        marginal_epsilon(1000, 10),
    ]
    with pytest.raises(ValueError, match="two rows in each bin"):
        BinCountDisplay.from_guarantee(1)
    with pytest.raises(ValueError, match="kind must be one of 'conditional'"):
        BinCountDisplay.from_guarantee(100, kind="total")


@pytest.mark.slow
def test_bin_counts_on_data_are_cross_validated():
    y, scores = _scores(1000, curve=lambda s: s**2)
    display = BinCountDisplay.from_predictions(
        y,
        scores,
        recalibrators=HistogramBinning(),
        n_bins=[2, 10, 20],
        max_error=0.15,
        cv=4,
    )
    (curve,) = display.curves
    squares, sharpness = np.zeros((3, 4)), np.zeros((3, 4))
    variances = []
    for j, (fit, test) in enumerate(StratifiedKFold(4).split(scores, y)):
        variance = y[test].mean() * (1 - y[test].mean())
        variances.append(variance)
        for i, n_bins in enumerate([2, 10, 20]):
            model = HistogramBinning(binning=EqualMass(n_bins)).fit(scores[fit], y[fit])
            after = model.predict_proba(scores[test])[:, 1]
            squares[i, j] = calibration_error(
                y[test], after, squared=True, binning=UniqueScores()
            )
            sharpness[i, j] = (
                variance - brier_score_loss(y[test], after) + squares[i, j]
            )
    np.testing.assert_allclose(curve.squared_error, squares.mean(axis=1))
    np.testing.assert_allclose(
        curve.squared_error_deviation, squares.std(axis=1, ddof=1) / 2
    )
    np.testing.assert_allclose(
        curve.sharpness, sharpness.mean(axis=1) / np.mean(variances)
    )
    # Two bins tell less apart than ten do.
    assert curve.sharpness[0] < curve.sharpness[1]
    assert curve.chosen in (10, 20)
    # drawn are means with the neighbours, which count half as much
    first, second, third = squares.mean(axis=1)
    smooth = np.array(
        [
            (2 * first + second) / 3,
            (first + 2 * second + third) / 4,
            (second + 2 * third) / 3,
        ]
    )
    np.testing.assert_allclose(
        display.lines_[0].get_ydata(), np.sqrt(np.maximum(smooth, 0))
    )
    assert display.chosen_[0].get_xdata().tolist() == [curve.chosen]
    assert display.limit_line_.get_ydata()[0] == 0.15
    _assert_tidy(display)
    generous = BinCountDisplay(display.curves, limit=0.6).plot()
    assert generous.ax_[0].get_ylim()[1] >= 0.6  # the limit is seen, too
    # Nothing that this recalibrator does makes wrong scores right.
    wrong = np.where(y, 0.1, 0.9)
    given = BinCountDisplay.from_predictions(
        y, wrong, recalibrators=_AsItIs(), n_bins=[2], max_error=0.05, cv=4
    )
    assert given.curves[0].chosen is None
    assert "no number of bins" in given.legend_.get_texts()[0].get_text()


@pytest.mark.slow
def test_bin_counts_of_many_classes():
    X, y = load_iris(return_X_y=True)
    model = GaussianNB().fit(X[::2], y[::2])
    top = BinCountDisplay.from_estimator(
        model, X, y, n_bins=[2, 5], recalibrators={"UMD": UniformMassBinning()}
    )
    assert "top-label" in top.caption
    marginal = BinCountDisplay.from_estimator(
        model, X, y, n_bins=[2], multiclass="marginal"
    )
    proba = model.predict_proba(X)
    each = [
        BinCountDisplay.from_predictions(y == k, proba[:, k], n_bins=[2]).curves[0]
        for k in range(3)
    ]
    mean = np.mean([curve.squared_error for curve in each])
    # folds are stratified differently
    assert marginal.curves[0].squared_error[0] == pytest.approx(mean, abs=0.01)
    with pytest.raises(ValueError, match="n_bins must be from 1 to 6"):
        BinCountDisplay.from_estimator(model, X, y, n_bins=[2, 100])
    with pytest.raises(ValueError, match="10 rows in 5 folds and more bins"):
        BinCountDisplay.from_predictions([0, 1] * 5, np.linspace(0, 1, 10))


# --- EstimatorBiasDisplay -------------------------------------------------------------


def test_estimator_bias():
    model = CalibrationModel(stats.uniform(), PowerCurve(2))
    options = {
        "n_bins": [2, 8],
        "n_samples": [100, 400],
        "n_simulations": 10,
        "random_state": 0,
    }
    display = EstimatorBiasDisplay.from_model(model, **options)
    plain = partial(
        calibration_error, method="plugin", binning=EqualWidth(8), labels=[False, True]
    )
    expected = model.estimator_bias(plain, 400, 10, random_state=0)
    assert display.bias[1, 1] == pytest.approx(expected.bias)
    assert display.standard_error[1, 1] == pytest.approx(expected.standard_error)
    assert display.true_error == pytest.approx(model.true_calibration_error())
    np.testing.assert_allclose(
        display.mesh_.get_array().reshape(2, 2), 100 * display.bias
    )
    assert [text.get_text() for text in display.texts_] == [
        f"{value + 0.0:.1f}" for value in 100 * display.bias.ravel()
    ]
    assert [text.get_text() for text in display.ax_.get_xticklabels()] == ["100", "400"]
    _assert_tidy(display)
    display.plot(kind="lines")
    np.testing.assert_allclose(display.lines_[0].get_ydata(), 100 * display.bias[0])
    assert [text.get_text() for text in display.legend_.get_texts()] == [
        "2 bins",
        "8 bins",
    ]
    assert display.ax_.get_ylabel() == "Bias (percentage points)"
    _assert_tidy(display)


def test_estimator_bias_of_a_fitted_model():
    X, y = load_breast_cancer(return_X_y=True)
    model = GaussianNB().fit(X[::2, :1], y[::2])
    metrics = {
        "plugin": partial(calibration_error, method="plugin"),
        "debiased": calibration_error,
    }
    display = EstimatorBiasDisplay.from_estimator(
        model,
        X[1::2, :1],
        y[1::2],
        metrics=metrics,
        n_samples=[200, 400],
        n_simulations=20,
        random_state=0,
    )
    assert display.estimators == ["plugin", "debiased"]
    assert display.bias[0, 0] > display.bias[1, 0]  # debiasing subtracts
    with pytest.raises(ValueError, match="kind must be one of 'heatmap'"):
        display.plot(kind="bars")
    with pytest.raises(ValueError, match="display is for one event"):
        EstimatorBiasDisplay.from_predictions(
            y, np.full(len(y), 0.5), multiclass="marginal"
        )


@pytest.mark.parametrize("display", [BinCountDisplay, EstimatorBiasDisplay])
def test_displays_without_weights_say_so(display):
    y, scores = _scores(300)
    with pytest.raises(
        TypeError, match=f"{display.__name__} does not support sample_weight"
    ):
        display.from_predictions(y, scores, sample_weight=np.ones(300))


@pytest.mark.parametrize(
    ("keyword", "write"),
    [
        ("color", 'line_kw={"color": ...}'),
        ("lw", 'line_kw={"linewidth": ...}'),
        ("linestyle", 'line_kw={"linestyle": ...}'),
    ],
)
def test_keywords_of_matplotlib_lead_to_the_artist(keyword, write):
    y, scores = _scores(100)
    with pytest.raises(TypeError, match=re.escape(f"write {write}")):
        ReliabilityDisplay.from_predictions(y, scores, metric=None, **{keyword: 2})


@pytest.mark.parametrize(
    "option", ["n_bins", "strategy", "ref_line", "curve_kwargs", "response_method"]
)
def test_options_of_scikit_learn_have_a_hint(option):
    X, y = load_breast_cancer(return_X_y=True)
    model = GaussianNB().fit(X, y)
    with pytest.raises(TypeError, match=f"no parameter '{option}': write "):
        ReliabilityDisplay.from_estimator(model, X, y, **{option: 5})


def test_what_the_hints_say_can_be_written():
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.5
    display = ReliabilityDisplay.from_predictions(
        y,
        rng.random(200),
        binning=EqualWidth(10),
        reference_kw={"visible": False},
        line_kw={"color": "red"},
        random_state=0,
    )
    assert not display.reference_lines_[0].get_visible()
    assert display.lines_[0].get_color() == "red"
