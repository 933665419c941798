"""The smooth curve of a reliability diagram, the numbers in its corner, and the event
that its axes name.
"""

import numpy as np
import pytest
from _catalog import refused

from skcalib._cells.tasks import BinaryTask
from skcalib.displays import ReliabilityDisplay
from skcalib.displays._reliability_bands import smooth_curve
from skcalib.evaluation import calibration_summary

plt = pytest.importorskip("matplotlib.pyplot")

STATISTICS = ("observed_expected", "intercept", "slope", "ici", "auc")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def _rows(n, seed=0, power=1.3, draw=lambda rng, n: rng.random(n)):
    rng = np.random.default_rng(seed)
    scores = draw(rng, n)
    return rng.random(n) < scores**power, scores


def _drawn(y, scores, **options):
    options = {"metric": None, "random_state": 0, **options}
    return ReliabilityDisplay.from_predictions(y, scores, **options)


def _corner(ax):
    """Return the text of the numbers, which stands inside the axes."""
    texts = ax.findobj(plt.matplotlib.text.Text)
    (numbers,) = [
        one for one in texts if "slope" in one.get_text() and one is not ax.title
    ]
    return numbers


# --- The curve ------------------------------------------------------------------------


def test_the_curve_is_that_of_the_summary():
    y, scores = _rows(100)
    curve = _drawn(y, scores, curve="smooth").curves[0]
    assert curve.band.scores == pytest.approx(np.sort(scores))
    found = calibration_summary(y, scores, n_resamples=1, random_state=0)
    assert np.mean(np.abs(curve.smooth - curve.band.scores)) == pytest.approx(
        found.ici.estimate
    )
    assert np.all((curve.band.low <= curve.smooth) & (curve.smooth <= curve.band.high))


@pytest.mark.slow
def test_what_is_drawn():
    y, scores = _rows(300)
    bins, smooth, both = (
        _drawn(y, scores, curve=kind) for kind in ("bins", "smooth", "both")
    )
    assert len(bins.lines_[0].get_xdata()) < 20
    assert np.array_equal(smooth.lines_[0].get_ydata(), smooth.curves[0].smooth)
    assert smooth.lines_[0].get_marker() == both.lines_[0].get_marker() == "None"
    assert len(smooth.intervals_) == 1
    assert len(both.intervals_) == 2  # bars and a band
    points = [line for line in both.ax_.lines if line.get_marker() == "o"]
    assert points[0].get_ydata() == pytest.approx(bins.lines_[0].get_ydata())
    assert not [line for line in smooth.ax_.lines if line.get_marker() == "o"]
    two = _drawn(y, {"A": scores, "B": scores**2}, curve="both", statistics="slope")
    assert [
        text.get_text().startswith(name)
        for name, text in zip("AB", two.legend_.get_texts(), strict=False)
    ]


def test_weights_are_repetitions():
    y, scores = _rows(80)
    weight = np.random.default_rng(1).integers(0, 4, 80)
    weighted = _drawn(
        y, scores, curve="smooth", sample_weight=weight, statistics=STATISTICS
    ).curves[0]
    repeated = _drawn(
        np.repeat(y, weight),
        np.repeat(scores, weight),
        curve="smooth",
        statistics=STATISTICS,
    ).curves[0]
    for name in ("scores", "low", "high"):
        assert getattr(weighted.band, name) == pytest.approx(
            getattr(repeated.band, name)
        )
    for name in STATISTICS:
        assert weighted.numbers[name] == pytest.approx(repeated.numbers[name], abs=1e-7)
    # of importance
    large = _drawn(y, scores, curve="smooth", sample_weight=np.full(80, 1000.5)).curves[
        0
    ]
    plain = _drawn(y, scores, curve="smooth").curves[0]
    assert large.band.low == pytest.approx(plain.band.low)


@pytest.mark.parametrize(
    "scores", [[0.3] * 20, [0.2, 0.7] * 10, [0.0] * 10 + [1.0] * 10]
)
def test_few_scores(scores):
    curve = _drawn([0, 1] * 10, scores, curve="smooth").curves[0]
    assert np.isfinite(
        [curve.smooth, curve.band.low, curve.band.high, curve.consistency.low]
    ).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "draw", "power"),
    [
        (300, lambda rng, n: rng.random(n), 1.0),
        (300, lambda rng, n: rng.random(n), 1.6),
        (1500, lambda rng, n: rng.random(n), 1.6),
        (2400, lambda rng, n: rng.beta(1, 99, n), 1.0),
        (300, lambda rng, n: rng.integers(1, 10, n) / 10, 1.6),
    ],
)
def test_the_band_covers_at_each_score(n, draw, power):
    places, runs = np.linspace(0.02, 0.98, 9), 200
    covered = np.zeros(9)
    for seed in range(runs):
        y, scores = _rows(n, seed, power, draw)
        # what the display draws
        _, band, _ = smooth_curve(BinaryTask(scores, y, None), 0.9)
        at = np.searchsorted(band.scores, np.quantile(scores, places)).clip(
            0, len(band.scores) - 1
        )
        truth = band.scores**power
        covered += ((band.low <= truth) & (truth <= band.high))[at]
    # .9 at each of nine scores, with the standard error .021 and some bias at the ends.
    assert covered.mean() / runs > 0.89
    assert covered.min() / runs > 0.83, covered / runs


# --- The numbers ----------------------------------------------------------------------


def test_the_numbers_are_those_of_the_summary():
    y, scores = _rows(1000)
    display = _drawn(
        y, scores, curve="smooth", statistics=STATISTICS, confidence_level=0.95
    )
    found = calibration_summary(y, scores, random_state=0)
    lines = _corner(display.ax_).get_text().split("\n")
    assert (
        lines[2] == f"slope {found.slope.estimate:.2f} ({found.slope.low:.3f} to"
        f" {found.slope.high:.2f})"
    )
    assert (
        lines[-1]
        == f"AUC {found.auc.estimate:.3f} ({found.auc.low:.3f} to {found.auc.high:.3f})"
    )
    undefined = _drawn([0, 1] * 20, [0.3] * 40, statistics="slope")
    assert (
        undefined.curves[0].numbers["slope"].estimate
        != undefined.curves[0].numbers["slope"].estimate
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "size", "inside", "n_rows"),
    [
        ("smooth", (6.4, 4.8), False, 1000),
        pytest.param("smooth", (3, 3.4), True, 1000, marks=pytest.mark.slow),
        ("smooth", (3, 3.4), False, 60),  # a wide band
        ("both", (3, 3.4), False, 1000),
        pytest.param("both", (6.4, 4.8), True, 1000, marks=pytest.mark.slow),
        pytest.param("bins", (12, 9), True, 1000, marks=pytest.mark.slow),
    ],
)
def test_the_numbers_cover_no_data(kind, size, inside, n_rows):
    y, scores = _rows(n_rows, draw=lambda rng, n: rng.beta(1, 2, n))
    with plt.rc_context({"figure.figsize": size}):
        ax = plt.subplots(1, 2, layout="constrained")[1][0] if inside else None
        display = _drawn(
            y, scores, curve=kind, statistics=STATISTICS, ax=ax, metric="auto"
        )
    display.figure_.canvas.draw()
    titles = display.ax_.get_title(loc="left")
    if "slope" in titles:
        return
    numbers = _corner(display.ax_)
    box = numbers.get_window_extent()
    curve = display.curves[0]
    points = [display.lines_[0].get_xydata()]
    if curve.band is not None:
        points += [
            np.column_stack((curve.band.scores, limit)) for limit in curve.band[1:]
        ]
    if curve.bars is not None:
        points += [
            np.column_stack((curve.statistics.mean_score, limit))
            for limit in curve.bars
        ]
    pixels = display.ax_.transData.transform(np.concatenate(points))
    assert box.count_contains(pixels) == 0
    legend = display.ax_.get_legend()
    if legend is not None:
        assert not box.overlaps(legend.get_window_extent())


def test_many_numbers_go_above_the_axes_where_the_data_are_everywhere():
    rng = np.random.default_rng(0)
    scores = rng.random(150)
    names = (*STATISTICS, "e50", "e90", "emax", "brier_score", "scaled_brier_score")
    display = _drawn(
        rng.random(150) < 0.5,
        scores,
        curve="both",
        statistics=names,
        confidence_level=0.9999,
    )
    assert "scaled Brier" in display.ax_.get_title(loc="left")


def test_what_is_refused():
    y, scores = _rows(50)
    with refused(ValueError, "curve", "loess"):
        _drawn(y, scores, curve="loess")
    with refused(ValueError, "statistics", "brier"):
        _drawn(y, scores, statistics=("brier",))


# --- The event ------------------------------------------------------------------------


def _names(display):
    lowest = display.ax_ if display.histogram_ax_ is None else display.histogram_ax_
    return lowest.get_xlabel(), display.ax_.get_ylabel()


def test_axes_name_the_event():
    y, scores = _rows(100)
    words = np.where(y, "death", "alive")
    assert _names(_drawn(words, scores)) == (
        "Probability of death",
        "Frequency of death",
    )
    assert (
        _names(_drawn(words, 1 - scores, pos_label="alive"))[0]
        == "Probability of alive"
    )
    assert _names(_drawn(y.astype(int), scores))[0] == "Probability of class 1"
    assert _names(_drawn(y, scores)) == ("Predicted probability", "Event frequency")
    long = np.where(
        y,
        "death within thirty days of the operation, whatever its cause may be",
        "alive",
    )
    assert _names(_drawn(long, scores)) == ("Predicted probability", "Event frequency")
