"""Rows of a reproduction: what the paper says, what was measured, and whether the intervals meet."""

import json
from dataclasses import asdict, dataclass

import numpy as np
from scipy.stats import norm


@dataclass(frozen=True)
class Row:
    """One quantity of a paper, measured anew.

    `paper` is the printed figure or claim as text or number, [`low`, `high`] the interval of what was `measured`.
    """

    quantity: str
    paper: float | str
    measured: float
    low: float
    high: float
    verdict: str


def compare(quantity, paper, measured, low, high, *, margin=0.0):
    """Return a row whose verdict is "agrees" if the interval meets the paper's figure, give or take its `margin`."""
    agrees = low <= paper + margin and high >= paper - margin
    shown = f"{paper:g} +- {margin:g}" if margin else float(paper)
    return Row(quantity, shown, float(measured), float(low), float(high), _verdict(agrees))


def claim(quantity, paper, measured, low, high, *, at_least=-np.inf, at_most=np.inf):
    """Return a row for a claim such as an ordering: the whole interval must lie within the limits."""
    return Row(quantity, paper, float(measured), float(low), float(high), _verdict(low >= at_least and high <= at_most))


def mean_interval(samples, confidence_level=0.95):
    """Return the mean of repeats and its normal interval."""
    samples = np.asarray(samples, dtype=np.float64)
    mean = float(samples.mean())
    error = float(samples.std(ddof=1) / np.sqrt(len(samples))) if len(samples) > 1 else 0.0
    half = float(norm.ppf((1 + confidence_level) / 2)) * error
    return mean, mean - half, mean + half


def ratio_interval(numerators, denominators, *, paired=False, confidence_level=0.95):
    """Return the ratio of two means of repeats and its interval, by the delta method on the logarithm."""
    parts = [np.asarray(values, dtype=np.float64) for values in (numerators, denominators)]
    means = [values.mean() for values in parts]
    if paired:
        variance = np.var(parts[0] / means[0] - parts[1] / means[1], ddof=1) / len(parts[0])
    else:
        variance = sum(np.var(values / mean, ddof=1) / len(values) for values, mean in zip(parts, means, strict=True))
    half = float(norm.ppf((1 + confidence_level) / 2)) * np.sqrt(variance)
    ratio = means[0] / means[1]
    return float(ratio), float(ratio * np.exp(-half)), float(ratio * np.exp(half))


def bootstrap_interval(statistic, *samples, paired=False, confidence_level=0.95, n_resamples=999):
    """Return a statistic of samples (repeats in the first axis) and its percentile interval under resampling."""
    rng = np.random.default_rng(0)
    values = []
    for _ in range(n_resamples):
        rows = [rng.integers(len(sample), size=len(sample)) for sample in samples]
        chosen = [rows[0]] * len(samples) if paired else rows
        values.append(statistic(*(sample[row] for sample, row in zip(samples, chosen, strict=True))))
    tail = (1 - confidence_level) / 2
    return (float(statistic(*samples)), *(float(value) for value in np.quantile(values, [tail, 1 - tail])))


def print_table(rows, out):
    """Print the rows as a table."""
    width = max(len(row.quantity) for row in rows)
    paper_width = max(5, *(len(_text(row.paper)) for row in rows))
    print(f"{'quantity':<{width}}  {'paper':>{paper_width}}  {'measured':>10}  {'interval':^23}  verdict", file=out)
    for row in rows:
        interval = f"{row.low:10.4g} .. {row.high:<9.4g}"
        print(
            f"{row.quantity:<{width}}  {_text(row.paper):>{paper_width}}  {row.measured:10.4g}  {interval:^23}"
            f"  {row.verdict}",
            file=out,
        )


def print_json(rows, out):
    """Print the rows as a JSON list."""
    json.dump([asdict(row) for row in rows], out, indent=1)
    print(file=out)


def _verdict(agrees):
    return "agrees" if agrees else "differs"


def _text(paper):
    return paper if isinstance(paper, str) else f"{paper:g}"
