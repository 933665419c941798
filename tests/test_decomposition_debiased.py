"""The debiased decomposition of the Brier score against loops, and on average."""

import numpy as np
import pytest

from skcalib.binning import EqualWidth, UniqueScores
from skcalib.metrics import BinStatistics, brier_decomposition


def _by_hand(y, p, bins):
    """Return miscalibration, discrimination, uncertainty and the part within bins, bin
    by bin and sample by sample.
    """
    n = len(y)
    base = y.mean()
    whole = base * (1 - base) / (n - 1)
    miscalibration = 0.0
    discrimination = whole
    within = 0.0
    for name in np.unique(bins):
        inside = bins == name
        o, f, m = y[inside].mean(), p[inside].mean(), inside.sum()
        noise = o * (1 - o) / (m - 1) if m > 1 else 0
        miscalibration += m / n * ((f - o) ** 2 - noise)
        discrimination += m / n * ((o - base) ** 2 - noise)
        for score, label in zip(p[inside], y[inside], strict=True):
            within += ((score - f) ** 2 - 2 * (score - f) * (label - o)) / n
    return miscalibration, discrimination, base * (1 - base) + whole, within


@pytest.mark.parametrize("seed", range(5))
def test_parts_add_up_to_the_brier_score(seed):
    rng = np.random.default_rng(seed)
    p = rng.random(rng.integers(20, 200))
    y = (rng.random(len(p)) < p**1.5).astype(float)
    bins = np.minimum(np.ceil(p * 7), 7)
    parts = brier_decomposition(y, p, binning=EqualWidth(7), method="debiased")
    assert [*parts, parts.within_bins] == pytest.approx(_by_hand(y, p, bins))
    assert parts.score == pytest.approx(np.mean((p - y) ** 2))
    grades = np.round(p, 1)
    parts = brier_decomposition(y, grades, binning=UniqueScores(), method="debiased")
    assert [*parts, parts.within_bins] == pytest.approx(_by_hand(y, grades, grades))
    assert parts.within_bins == pytest.approx(0, abs=1e-12)
    count = np.array([np.sum(grades == g) for g in np.unique(grades)])
    events = np.array([y[grades == g].sum() for g in np.unique(grades)])
    table = BinStatistics.from_counts(count, events, np.unique(grades))
    assert brier_decomposition(table, method="debiased") == pytest.approx(tuple(parts))


def test_weights_are_repetitions():
    rng = np.random.default_rng(0)
    p, weight = rng.random(60), rng.integers(1, 4, 60)
    y = (rng.random(60) < p).astype(int)
    options = {"binning": EqualWidth(4), "method": "debiased"}
    repeated = brier_decomposition(
        np.repeat(y, weight), np.repeat(p, weight), **options
    )
    weighted = brier_decomposition(y, p, sample_weight=weight, **options)
    assert [*weighted] == pytest.approx([*repeated])
    assert weighted.within_bins == pytest.approx(repeated.within_bins)


@pytest.mark.slow
def test_bias_is_gone_on_average():
    """Of calibrated forecasts of four values the true miscalibration is 0, and the
    discrimination is the variance of the values; the plugin parts are too large.
    """
    rng = np.random.default_rng(0)
    values = np.array([0.1, 0.3, 0.6, 0.8])
    found = {"plugin": [], "debiased": []}
    for _ in range(400):
        p = np.repeat(values, 10)
        y = (rng.random(40) < p).astype(int)
        for method, parts in found.items():
            parts.append(
                [*brier_decomposition(y, p, binning=UniqueScores(), method=method)]
            )
    plugin, debiased = (np.mean(found[method], axis=0) for method in found)
    truth = [0, np.var(values), np.mean(values) * (1 - np.mean(values))]
    spread = np.std(found["debiased"], axis=0) / 20
    # The base rate varies less than that of independent labels: each value has its 10.
    assert abs(debiased[0] - truth[0]) < 4 * spread[0]
    assert plugin[0] > truth[0] + 4 * spread[0]
    assert abs(debiased[1] - truth[1]) < 4 * spread[1] + 0.002
    assert plugin[1] > debiased[1]


def test_isotonic_blocks_are_refused():
    with pytest.raises(ValueError, match="do not depend on the labels"):
        brier_decomposition([0, 1, 1], [0.2, 0.4, 0.7], method="debiased")
    with pytest.raises(ValueError, match="method must be one of"):
        brier_decomposition([0, 1, 1], [0.2, 0.4, 0.7], method="unbiased")
