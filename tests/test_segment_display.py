"""The forest plot of segments: what is drawn is the table, worst first, for one model
or several.
"""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skcalib.guarantees import event_frequency_interval
from skcalib.metrics import segment_calibration_test

matplotlib = pytest.importorskip(
    "matplotlib", reason="displays need matplotlib (extra plot)"
)
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from skcalib.displays import SegmentDisplay  # noqa: E402

RNG = np.random.default_rng(0)
X = np.column_stack((RNG.integers(20, 90, 2000), RNG.integers(0, 3, 2000)))
SCORES = RNG.uniform(0.1, 0.6, 2000)
Y = RNG.random(2000) < SCORES + 0.2 * (X[:, 0] > 70)
QUICK = {"max_bins": 4, "n_resamples": 39, "random_state": 0}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def _drawn(display):
    """Return heights, estimates and limits of all marks, from the artists."""
    points, ends = [], []
    for bars in display.intervals_:
        points.append(bars.lines[0].get_xydata())
        ends.append(np.array(bars.lines[2][0].get_segments())[:, :, 0])
    points, ends = np.concatenate(points), np.concatenate(ends)
    order = np.argsort(points[:, 1], kind="stable")
    return points[order, 1], points[order, 0], ends[order]


def test_bars_are_the_segments_of_the_table():
    result = segment_calibration_test(Y, SCORES, X, **QUICK)
    display = SegmentDisplay.from_result(result)
    table = result.segments
    shown = min(15, len(table))
    heights, bias, ends = _drawn(display)
    assert heights.tolist() == list(range(shown))
    np.testing.assert_allclose(bias, 100 * table.bias[:shown])
    events = np.rint(table.n * table.event_frequency)
    low, high = event_frequency_interval(events, table.n, simultaneous=False)
    np.testing.assert_allclose(
        ends[:, 0], 100 * (table.mean_score - high)[:shown], atol=1e-9
    )
    np.testing.assert_allclose(
        ends[:, 1], 100 * (table.mean_score - low)[:shown], atol=1e-9
    )
    names = [
        text.get_text().replace("\n", " ") for text in display.ax_.get_yticklabels()
    ]
    assert names == table.segment[:shown].tolist()
    assert f"the worst {shown} of {len(table)} groups" in display.ax_.get_xlabel()


def test_significant_segments_are_filled():
    display = SegmentDisplay.from_predictions(Y, SCORES, X, **QUICK)
    table = display.results[None].segments
    n_significant = np.sum(table.adjusted_pvalue[:15] < 0.05)
    assert n_significant > 0
    significant = display.intervals_[0].lines[0]
    assert significant.get_xydata()[:, 1].tolist() == list(range(n_significant))
    assert significant.get_markerfacecolor() != "none"
    assert display.intervals_[1].lines[0].get_markerfacecolor() == "none"
    assert display.plot(legend=False, max_segments=2).legend_ is None
    assert len(display.ax_.get_yticklabels()) == 2


def test_models_are_compared_in_the_worst_segments_of_the_first():
    repaired = SCORES + 0.2 * (X[:, 0] > 70)
    display = SegmentDisplay.from_predictions(
        Y, {"before": SCORES, "after": repaired}, X, **QUICK
    )
    before, after = (display.results[name].segments for name in ("before", "after"))
    heights, bias, _ = _drawn(display)
    shown = before.segment[:15].tolist()
    rows = [after.segment.tolist().index(segment) for segment in shown]
    np.testing.assert_allclose(bias[0::2], 100 * before.bias[:15])
    np.testing.assert_allclose(bias[1::2], 100 * after.bias[rows])
    assert np.all(heights[0::2] < np.arange(15))
    assert np.all(heights[1::2] > np.arange(15))
    assert [text.get_text() for text in display.legend_.get_texts()][:2] == [
        "before",
        "after",
    ]


def test_from_estimator_looks_in_the_columns_that_are_named():
    model = LogisticRegression().fit(SCORES[:, None], Y)
    display = SegmentDisplay.from_estimator(
        model, SCORES[:, None], Y, columns=X, **QUICK
    )
    assert list(display.results) == ["LogisticRegression"]
    expected = segment_calibration_test(
        Y, model.predict_proba(SCORES[:, None]), X, **QUICK
    )
    assert (
        display.results["LogisticRegression"].segments.segment.tolist()
        == expected.segments.segment.tolist()
    )
    own = SegmentDisplay.from_estimator({"a": model}, SCORES[:, None], Y, **QUICK)
    assert {"all rows"} < set(own.results["a"].segments.segment)


def test_results_about_other_segments_are_refused():
    one, other = (
        segment_calibration_test(Y, SCORES, X[:, [j]], **QUICK) for j in (0, 1)
    )
    with pytest.raises(ValueError, match="for different groups"):
        SegmentDisplay.from_result({"one": one, "other": other})
    with pytest.raises(ValueError, match="max_segments"):
        SegmentDisplay.from_result(one, max_segments=0)
