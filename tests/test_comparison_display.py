"""The forest plot of models: what is drawn is the table of `compare`."""

import numpy as np
import pytest
from _catalog import refused

from skcalib.evaluation import compare

matplotlib = pytest.importorskip(
    "matplotlib", reason="displays need matplotlib (extra plot)"
)
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from skcalib.displays import ComparisonDisplay  # noqa: E402

RNG = np.random.default_rng(0)
Z = RNG.normal(size=600)
Y = RNG.random(600) < 1 / (1 + np.exp(-Z))
MODELS = {
    name: 1 / (1 + np.exp(-z))
    for name, z in {
        "raw": 2 * Z,
        "Platt scaling": Z,
        "noisy_raw": 2 * Z + 0.01 * RNG.normal(size=600),
    }.items()
}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.mark.slow
def test_bars_are_the_differences_of_the_table():
    table = compare(Y, MODELS, metrics=["log_loss", "brier_score"])
    for metric, rows in (("log_loss", [1, 2]), ("brier_score", [4, 5])):
        display = ComparisonDisplay(table).plot(metric=metric)
        drawn = np.concatenate(
            [bars.lines[2][0].get_segments() for bars in display.intervals_]
        )
        drawn = drawn[np.argsort(drawn[:, 0, 1])]
        np.testing.assert_allclose(drawn[:, 0, 0], table.difference_low[rows])
        np.testing.assert_allclose(drawn[:, 1, 0], table.difference_high[rows])
        assert metric in display.ax_.get_xlabel()
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == [
        "Platt scaling",
        "noisy_raw",
    ]
    # only Platt scaling differs from the raw model
    assert display.intervals_[0].lines[0].get_ydata().tolist() == [0]
    assert display.legend_.get_texts()[0].get_text() == "adjusted p < 0.05"


def test_options():
    figure, ax = plt.subplots()
    display = ComparisonDisplay.from_predictions(
        Y,
        MODELS,
        metrics="brier_score",
        ax=ax,
        plot_options={"legend": False, "bar_kw": {"color": "red"}},
    )
    assert display.figure_ is figure
    assert display.legend_ is None
    with refused(ValueError, "metric", "'log_loss'", "'brier_score'"):
        display.plot(metric="log_loss")
