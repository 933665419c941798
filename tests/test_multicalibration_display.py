"""The picture of the rounds: what is drawn are the held-out gains and the number of
rounds that was chosen.
"""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skcalib import CrossFittedClassifier, MulticalibratedRecalibrator, PlattScaling

matplotlib = pytest.importorskip(
    "matplotlib", reason="displays need matplotlib (extra plot)"
)
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from skcalib.displays import MulticalibrationDisplay  # noqa: E402

RNG = np.random.default_rng(0)
X = np.column_stack((RNG.random(800), RNG.integers(0, 2, 800)))
Y = RNG.random(800) < np.where(X[:, 1] == 1, np.sqrt(X[:, 0]), X[:, 0] ** 2)
MODEL = MulticalibratedRecalibrator(
    PlattScaling(), features=1, max_rounds=2, cv=2, random_state=0
)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_points_are_the_gains_and_bars_two_standard_errors():
    fitted = MODEL.fit(X, Y)
    display = MulticalibrationDisplay.from_estimator(fitted)
    np.testing.assert_array_equal(
        display.line_.get_ydata(), np.append(0, fitted.gains_)
    )
    ends = np.array(display.intervals_.lines[2][0].get_segments())[:, :, 1]
    expected = fitted.gains_[:, None] + 2 * fitted.gain_errors_[:, None] * [-1, 1]
    np.testing.assert_allclose(ends, expected)
    assert fitted.n_rounds_ == 1 + np.argmax(expected[:, 0])
    assert display.chosen_.get_xydata().tolist() == [
        [fitted.n_rounds_, fitted.gains_[fitted.n_rounds_ - 1]]
    ]
    assert display.ax_.get_title(loc="left").startswith(
        f"2 rounds tried, {fitted.n_rounds_} used"
    )


def test_a_pipeline_and_no_rounds():
    pipeline = make_pipeline(
        CrossFittedClassifier(LogisticRegression(), cv=2, passthrough=[1]),
        MulticalibratedRecalibrator(PlattScaling(), features=-1, max_rounds=1, cv=2),
    ).fit(X, Y)
    assert MulticalibrationDisplay.from_estimator(
        pipeline
    ).line_.get_xdata().tolist() == [0, 1]
    none = MulticalibrationDisplay([-0.01, -0.02], [0.001, 0.001], 0).plot(legend=False)
    assert none.ax_.get_title(loc="left").endswith("no gain beyond noise")
    assert none.legend_ is None


def test_what_has_no_gains_is_refused():
    with pytest.raises(
        TypeError, match="must be a MulticalibratedRecalibrator .* found PlattScaling"
    ):
        MulticalibrationDisplay.from_estimator(PlattScaling())
    fitted = MulticalibratedRecalibrator(PlattScaling(), features=1, max_rounds=0).fit(
        X, Y
    )
    with pytest.raises(ValueError, match="max_rounds=0"):
        MulticalibrationDisplay.from_estimator(fitted)
