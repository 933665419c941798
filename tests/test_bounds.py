"""Every printed text keeps its bounds: see `benchmarks.checks.bounds`."""

import numpy as np
import pytest
from scipy.special import expit

import skcalib
from benchmarks.checks.bounds import faults
from skcalib import decisions, evaluation, metrics, monitoring
from skcalib._report._samples import Rows


@pytest.mark.parametrize(
    "text",
    [
        "E50 0.10 (0.14 to 0.27) and Emax 0.3 (0.2 to 0.4).",
        "6.8 points too high (90 % for all groups together: 7.1 to 9.5).",
        "On held-out samples the log-loss is lower by 90 % (90 %: 30 to 150).",
        "The log-loss is lower by 120 %.",
        "In 412 samples with 283 events (50 %; mean predicted probability 47 %), the",
        "Calibration error: 0.1 (90 %: 0.3 to 0.2).",
    ],
)
def test_impossible_statements_are_found(text):
    assert faults(text)


@pytest.mark.parametrize(
    "text",
    [
        "E50 0.10 (0.14 to 0.27). The estimate of E50 lies outside its limits, which",
        "Error: 0.31 (90 %: 0.14 to 0.27; the estimate includes label noise).",
        "6.8 points too high (90 % for all groups together: 4.1 to 9.5).",
        "On held-out samples the log-loss is lower by 90 % (90 %: 30 to 100).",
        "This would raise the log-loss by 120 % (90 %: 10 % lower to 240 % higher).",
        "In 412 samples with 283 events (weighted 50 %; weighted mean predicted",
        "In 1,000 samples with 283 events (28.3 %; mean predicted probability 47 %)",
    ],
)
def test_possible_statements_are_not(text):
    assert faults(text) == []


def _worlds():
    """Yield labels, scores and weights: shifted, too extreme, weighted, with an event
    that had the probability 0, and few events.
    """
    rng = np.random.default_rng(5)
    for name in ("shifted", "extreme", "weighted", "impossible", "rare", "few"):
        n = 60 if name == "few" else 400
        odds = rng.normal(-4 if name == "rare" else -0.5, 1.2, n)
        scores = expit(1.6 * odds if name == "extreme" else odds)
        y = rng.random(n) < expit(odds + 0.5 * (name == "shifted"))
        weight = None
        if name == "weighted":
            weight = np.where(y, 1.5, 4.25)
        if name == "impossible":
            scores[0], y[0] = 0.0, True
        yield pytest.param(y.astype(int), scores, weight, id=name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("y", "scores", "weight"), _worlds())
def test_results_keep_their_bounds(y, scores, weight):
    weights = {"sample_weight": weight}
    if weight is not None:
        weights["weight_type"] = "importance"
    half = np.arange(len(y)) % 2
    draws = {"n_resamples": 19, "random_state": 0}
    makers = [
        lambda: evaluation.calibration_summary(y, scores, **draws, **weights),
        lambda: metrics.calibration_error_interval(y, scores, **draws, **weights),
        lambda: metrics.calibration_by_group(y, scores, half, **draws, **weights),
        lambda: metrics.calibration_slope_intercept(y, scores, **weights),
        lambda: evaluation.recalibration_gain(
            y, scores, recalibrator=skcalib.PlattScaling(), **weights
        ),
        lambda: evaluation.compare(
            y, {"a": scores, "b": scores**1.2}, **draws, **weights
        ),
        lambda: decisions.net_benefit(y, scores, thresholds=[0.1, 0.3], **weights),
        lambda: monitoring.calibration_trend(y, scores, np.arange(len(y)), **weights),
        lambda: monitoring.calibration_change(
            y[half == 0], scores[half == 0], y[half == 1], scores[half == 1], **draws
        ),
    ]
    n_printed = 0
    for make in makers:
        try:
            result = make()
        except ValueError:
            continue  # too few events, or separated classes: nothing is printed
        n_printed += 1
        assert faults(str(result)) == [], str(result)
        assert "nan" not in str(result).split("\n")[0]
    assert n_printed >= 6
    log_loss = str(metrics.log_loss_decomposition(y, scores))
    happened = ((scores == 0) & (y == 1)).any()
    assert ("probability was 0: the log-loss is infinite" in log_loss) == happened


def test_counted_samples_are_not_the_weighted_share():
    """All events and one of 20 others: weights do not make events few."""
    labels = np.repeat([True, False], [200, 1000])
    weight = np.where(labels, 1.0, 20.0)
    rows = Rows(np.full(1200, 0.1), labels, weight, weight_type="importance")
    assert (rows.counted(True), rows.counted(False)) == (200, 1000)
    copies = rows._replace(weight_type="frequency")
    assert (copies.counted(True), copies.counted(False)) == (200, 20_000)
