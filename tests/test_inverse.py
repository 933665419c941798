"""The score that belongs to a calibrated probability: the smallest one that reaches it,
and errors where none does.
"""

import numpy as np
import pytest
from _catalog import refused
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression

from skcalib import (
    BetaCalibration,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    ScalingBinning,
    SplineCalibration,
    StackedRecalibrator,
    TemperatureScaling,
    UniformMassBinning,
    VennAbers,
)
from skcalib.binning import FixedEdges, PoolAdjacentViolators

MONOTONE = [
    BetaCalibration(),
    HistogramBinning(PoolAdjacentViolators()),
    IsotonicCalibration(),
    IsotonicCalibration(centered=True),
    PlattScaling(),
    PlattScaling(clip=0.01),
    ScalingBinning(binning=5),
    SplineCalibration(monotone=True),
    TemperatureScaling(),
]


def sample(n=400, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.beta(1, 2, n)
    return scores, rng.random(n) < scores**1.3


def fitted(recalibrator, columns=1, scale="probability"):
    scores, y = sample()
    given = scores if scale == "probability" else logit(scores)
    if columns == 2:
        given = np.column_stack(
            (1 - scores if scale == "probability" else np.zeros(len(scores)), given)
        )
    return recalibrator.set_params(input=scale).fit(given, y)


def served(recalibrator, scores):
    """Return the probabilities of scores of the positive class."""
    if recalibrator.n_features_in_ == 2:
        rest = (
            1 - scores if recalibrator.input == "probability" else np.zeros(len(scores))
        )
        scores = np.column_stack((rest, scores))
    return recalibrator.predict_proba(scores)[:, 1]


@pytest.mark.parametrize("scale", ["probability", "logit"])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("recalibrator", MONOTONE, ids=repr)
def test_it_is_the_smallest_score_that_reaches_the_probability(
    recalibrator, columns, scale
):
    recalibrator = fitted(clone(recalibrator), columns, scale)
    lowest, highest = (0.0, 1.0) if scale == "probability" else (-1e100, 1e100)
    ends = served(recalibrator, np.array([lowest, highest]))
    wanted = np.concatenate(
        (
            np.linspace(ends[0], ends[1], 40)[1:-1],
            served(recalibrator, np.linspace(0.1, 0.9, 9)),
        )
    )
    found = recalibrator.inverse_transform(wanted)
    inside = np.isfinite(found) & (found > lowest)
    assert np.all(served(recalibrator, np.clip(found, lowest, highest)) >= wanted)
    assert inside.sum() > 20
    below = np.nextafter(found[inside], -np.inf)
    assert np.all(served(recalibrator, below) < wanted[inside])
    # The rule on scores is the rule on probabilities, row by row.
    scores = (
        np.sort(sample()[0]) if scale == "probability" else np.sort(logit(sample()[0]))
    )
    assert np.array_equal(
        scores[:, None] >= found, served(recalibrator, scores)[:, None] >= wanted
    )


def test_closed_forms():
    platt = fitted(PlattScaling(clip=None))
    for p in (0.1, 0.5, 0.9):
        score = platt.inverse_transform([p])[0]
        assert logit(p) == pytest.approx(
            platt.slope_ * logit(score) + platt.intercept_, abs=1e-9
        )
    temperature = fitted(TemperatureScaling(clip=None))
    assert temperature.inverse_transform([[0.8, 0.2]])[0] == pytest.approx(
        expit(logit(0.2) * temperature.temperature_), rel=1e-9
    )
    scores, y = sample()
    twin = IsotonicRegression(out_of_bounds="clip").fit(scores, y)
    isotonic = fitted(IsotonicCalibration())
    x, values = twin.X_thresholds_, twin.y_thresholds_
    wanted = (values[5:-5:5] + values[6:-4:5]) / 2
    first = [np.argmax(values >= p) for p in wanted]
    expected = [x[i - 1] + (p - values[i - 1]) / (values[i] - values[i - 1]) * (x[i] - x[i - 1])  # noqa: E501
                for i, p in zip(first, wanted, strict=True)]  # fmt: skip
    assert isotonic.inverse_transform(wanted) == pytest.approx(expected, rel=1e-6)


def test_steps_are_met_exactly():
    bins = HistogramBinning(binning=2).fit(
        [0.02, 0.1, 0.1, 0.3, 0.3, 0.3], [0, 0, 0, 0, 1, 1]
    )
    edge = bins.bin_edges_[1]
    found = bins.inverse_transform([0.0, 0.1, 2 / 3])
    # bins hold their upper edge
    assert found.tolist() == [0.0, np.nextafter(edge, 1), np.nextafter(edge, 1)]


def test_maps_without_an_inverse():
    scores, y = sample()
    rng = np.random.default_rng(0)
    with refused(ValueError, "PlattScaling", "not increasing", "falls"):
        PlattScaling().fit(1 - scores, y).inverse_transform([0.5])
    bumps = HistogramBinning(binning=40).fit(scores, rng.random(400) < 0.5)
    with refused(ValueError, "HistogramBinning", "not increasing"):
        bumps.inverse_transform([0.5])
    # A single narrow bin that is out of order is found by its edges.
    edges = FixedEdges([0.0, 0.50002, 0.50004, 1.0])
    narrow = HistogramBinning(edges).fit(
        [0.2, 0.2, 0.50003, 0.8, 0.8, 0.8], [0, 0, 1, 1, 1, 0]
    )
    with refused(ValueError, "not increasing", "0.50004"):
        narrow.inverse_transform([0.5])
    flat = HistogramBinning(binning=1).fit(scores, y)
    with refused(ValueError, "constant"):
        flat.inverse_transform([0.3])
    with refused(ValueError, "No score reaches", "0.999", "row 1"):
        HistogramBinning(binning=3).fit(scores, y).inverse_transform([0.1, 0.999])
    many = TemperatureScaling().fit(rng.dirichlet(np.ones(3), 60), np.arange(60) % 3)
    with refused(ValueError, "3 classes"):
        many.inverse_transform([0.5])
    with refused(ValueError, "at random"):
        UniformMassBinning(5, randomize=True).fit(scores, y).inverse_transform([0.5])
    platt = PlattScaling().fit(scores, y)
    with refused(ValueError, "X", "1.5"):
        platt.inverse_transform([1.5])
    with refused(ValueError, "one or two columns"):
        platt.inverse_transform([[0.2, 0.3, 0.5]])


@pytest.mark.parametrize(
    "recalibrator", [VennAbers(), StackedRecalibrator(cv=3)], ids=repr
)
def test_others_invert_or_say_why_not(recalibrator):
    recalibrator = fitted(recalibrator)
    probabilities = served(recalibrator, np.linspace(0, 1, 1025))
    if np.any(np.diff(probabilities) < -1e-9):
        with refused(ValueError, "not increasing"):
            recalibrator.inverse_transform([0.3])
        return
    found = recalibrator.inverse_transform([0.3])
    assert served(recalibrator, found)[0] >= 0.3
    assert served(recalibrator, np.nextafter(found, 0))[0] < 0.3
