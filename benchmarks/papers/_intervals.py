"""Measurements: triples of a value and the ends of its 95 % interval."""

import numpy as np
from scipy.stats import binom, norm
from scipy.stats import t as student_t

from skcalib.guarantees import event_frequency_interval

__all__ = [
    "bootstrap",
    "exact",
    "further_mean",
    "mean",
    "median",
    "middle",
    "ratio",
    "share",
]

_LEVEL = 0.95
_HALF = float(norm.ppf((1 + _LEVEL) / 2))


def exact(value):
    """Return a value without sampling error, such as an integral or a statistic of
    given rows.
    """
    return float(value), float(value), float(value)


def mean(samples, *, n_each=1):
    """Return the mean of repeats and its t interval.

    Where all repeats are 0, or all are 1, the interval is that of `share`, of `n_each`
    trials behind each repeat.
    """
    samples = np.asarray(samples)
    if samples.dtype == bool:
        return share(samples)
    value, deviation = float(samples.mean()), float(samples.std(ddof=1))
    if deviation == 0 and value in (0, 1):
        return share(np.repeat(samples == 1, n_each))
    half = (
        float(student_t.ppf((1 + _LEVEL) / 2, len(samples) - 1))
        * deviation
        / len(samples) ** 0.5
    )
    return value, value - half, value + half


def share(holds):
    """Return how often something holds, with the binomial interval of Clopper and
    Pearson: never a point.
    """
    holds = np.asarray(holds, dtype=bool).ravel()
    low, high = event_frequency_interval(
        holds.sum(), holds.size, confidence_level=_LEVEL
    )
    return float(holds.mean()), float(low), float(high)


def median(samples):
    """Return the median of repeats and its binomial interval: two order statistics,
    whatever their distribution.
    """
    ordered = np.sort(samples)
    n = len(ordered)
    below = max(int(binom.ppf((1 - _LEVEL) / 2, n, 0.5)) - 1, 0)
    return (
        float(np.median(ordered)),
        float(ordered[below]),
        float(ordered[n - 1 - below]),
    )


def further_mean(samples, n):
    """Return the mean of repeats and where the mean of `n` others lies, such as the `n`
    behind a printed number.
    """
    value, deviation = float(np.mean(samples)), float(np.std(samples, ddof=1))
    factor = float(student_t.ppf((1 + _LEVEL) / 2, len(samples) - 1))
    half = factor * deviation * (1 / len(samples) + 1 / n) ** 0.5
    return value, value - half, value + half


def ratio(numerators, denominators, *, paired=False):
    """Return the ratio of two means of repeats and its interval, by the delta method on
    the logarithm.
    """
    parts = [
        np.asarray(values, dtype=np.float64) for values in (numerators, denominators)
    ]
    means = [values.mean() for values in parts]
    if paired:
        variance = np.var(parts[0] / means[0] - parts[1] / means[1], ddof=1) / len(
            parts[0]
        )
    else:
        variance = sum(
            np.var(values / mean, ddof=1) / len(values)
            for values, mean in zip(parts, means, strict=True)
        )
    half = _HALF * np.sqrt(variance)
    value = means[0] / means[1]
    return float(value), float(value * np.exp(-half)), float(value * np.exp(half))


def bootstrap(statistic, *samples, paired=False, n_resamples=999):
    """Return a statistic of samples (repeats in the first axis) and its percentile
    interval under resampling.
    """
    rng = np.random.default_rng(0)
    values = []
    for _ in range(n_resamples):
        rows = [rng.integers(len(sample), size=len(sample)) for sample in samples]
        chosen = [rows[0]] * len(samples) if paired else rows
        values.append(
            statistic(
                *(sample[row] for sample, row in zip(samples, chosen, strict=True))
            )
        )
    value = float(statistic(*samples))
    low, high = np.quantile(values, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return value, min(float(low), value), max(float(high), value)


def middle(values, level=0.9):
    """Return the mean over splits and where the middle of them lies: splits share rows,
    so a mean has no s.e.
    """
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    value = float(np.mean(values))
    return value, min(float(low), value), max(float(high), value)
