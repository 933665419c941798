"""The forest plot of groups: what is drawn is the table."""

import numpy as np
import pytest

from skcalib.metrics import calibration_by_group

matplotlib = pytest.importorskip(
    "matplotlib", reason="displays need matplotlib (extra plot)"
)
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from skcalib.displays import GroupDisplay  # noqa: E402

RNG = np.random.default_rng(0)
SCORES = RNG.random(3000)
GROUPS = RNG.choice(["east", "north", "west"], 3000)
Y = RNG.random(3000) < np.where(GROUPS == "north", SCORES**2, SCORES)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("value", ["bias", "error"])
def test_bars_are_the_intervals_of_the_table(value):
    table = calibration_by_group(Y, SCORES, GROUPS, random_state=0)
    display = GroupDisplay.from_table(table, value=value)
    drawn = np.concatenate(
        [bars.lines[2][0].get_segments() for bars in display.intervals_]
    )
    order = np.argsort(drawn[:, 0, 1])  # heights are positions in the table
    low, high = (100 * getattr(table, f"{value}_{end}") for end in ("low", "high"))
    np.testing.assert_allclose(
        drawn[order][:, 0, 0], np.minimum(low, 100 * getattr(table, value))
    )
    np.testing.assert_allclose(
        drawn[order][:, 1, 0], np.maximum(high, 100 * getattr(table, value))
    )


def test_significant_groups_are_marked_and_order_is_kept():
    display = GroupDisplay.from_predictions(
        Y, SCORES, GROUPS, order="error", random_state=0
    )
    significant = display.intervals_[0].lines[0]
    assert significant.get_ydata().tolist() == [0]  # north, the largest error
    assert [text.get_text() for text in display.ax_.get_yticklabels()][0] == "north"
    assert display.legend_.get_texts()[0].get_text() == "adjusted p < 0.05"
    none = display.plot(significance_level=1e-300)
    assert len(none.intervals_) == 1


def test_of_many_groups_the_least_likely_are_shown():
    table = calibration_by_group(
        Y, SCORES, np.arange(3000) % 30, random_state=0, n_resamples=9
    )
    display = GroupDisplay.from_table(table, max_groups=5)
    shown = [int(text.get_text()) for text in display.ax_.get_yticklabels()]
    assert set(shown) == set(table.group[np.argsort(table.pvalue)[:5]].tolist())
    assert "25 of 30 groups are not shown" in display.ax_.get_xlabel()


def test_groups_without_an_error_are_left_out():
    groups = np.where(np.arange(3000) == 0, "one row", GROUPS)
    display = GroupDisplay.from_predictions(
        Y, SCORES, groups, random_state=0, plot_options={"value": "error"}
    )
    assert len(display.ax_.get_yticklabels()) == 3
    with pytest.raises(ValueError, match="No group has enough samples"):
        GroupDisplay.from_predictions(
            [0, 1], [0.2, 0.8], ["a", "b"], plot_options={"value": "error"}
        )
    with pytest.raises(
        ValueError, match="value must be one of 'bias', 'error', found 'bis'"
    ):
        display.plot(value="bis")


def test_models_are_compared_in_the_same_groups():
    repaired = np.where(GROUPS == "north", SCORES**2, SCORES)
    display = GroupDisplay.from_predictions(
        Y, {"before": SCORES, "after": repaired}, GROUPS, random_state=0
    )
    drawn = np.concatenate([bars.lines[0].get_xydata() for bars in display.intervals_])
    # before and after of east, then of north, then of west
    drawn = drawn[np.argsort(drawn[:, 1])]
    np.testing.assert_allclose(drawn[0::2, 0], 100 * display.tables["before"].bias)
    np.testing.assert_allclose(drawn[1::2, 0], 100 * display.tables["after"].bias)
    assert drawn[2, 1] < 1 < drawn[3, 1]
    assert [text.get_text() for text in display.legend_.get_texts()][:2] == [
        "before",
        "after",
    ]
    assert (
        display.tables["before"].adjusted_pvalue[1]
        < 0.05
        < display.tables["after"].adjusted_pvalue[1]
    )


def test_tables_of_other_groups_are_refused():
    one, other = (
        calibration_by_group(Y, SCORES, GROUPS[order], random_state=0)
        for order in (range(3000), RNG.permutation(3000) // 2)
    )
    with pytest.raises(ValueError, match="different groups"):
        GroupDisplay.from_table({"one": one, "other": other})
