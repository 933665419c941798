"""Kumar, Liang and Ma (2019), synthetic experiments: the calibration error by n and by B (Figures 8 to 11).

Histogram binning (HB), scaling-binning (SB) and the scaling map alone are fitted on n rows of a known truth; their
squared calibration error is exact, an integral over the truth rather than an estimate from more rows.
"""

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.interpolate import CubicSpline
from scipy.special import expit
from sklearn.base import clone

from benchmarks.papers._report import bootstrap_interval, claim, compare, ratio_interval
from skcalib import HistogramBinning, PlattScaling, ScalingBinning
from skcalib.simulation import NoisyPlattCurve, PlattCurve

_SIZES = (500, 1000, 1500, 2000, 2500, 3000, 3500, 4000)
_BINS = (5, 10, 15, 20)
_METHODS = ("HB", "SB", "scaling")
# The authors' scaling map is a logistic regression on the log-odds without Platt's smoothed targets.
_PLATT = PlattScaling(smooth_targets=False)


class Truth(NamedTuple):
    """Uniform scores on [low, high] with event probability `curve`, and what its integrals need."""

    curve: object
    low: float
    high: float
    nodes: np.ndarray  # an even rule: the mean over them is the mean over the scores
    integral: object  # z -> integral of the curve from low to z, over the width

    @classmethod
    def of(cls, curve, low=0.0, high=1.0):
        """Prepare the integrals of a curve."""
        n_cells = getattr(curve, "n_cells", 20_000)
        edges = np.linspace(low, high, n_cells + 1)
        nodes = (edges[1:] + edges[:-1]) / 2
        smooth = PlattCurve(curve.a, curve.c)
        spline = CubicSpline(edges, smooth(edges)).antiderivative()
        # what the noise adds: a sum over whole cells, linear within one
        noise = np.concatenate(([0.0], np.cumsum(curve(nodes) - smooth(nodes)) * (high - low) / n_cells))
        return cls(curve, low, high, nodes, lambda z: (spline(z) + np.interp(z, edges, noise)) / (high - low))


def run(options):
    """Measure the squared calibration errors and the papers' ratios of them."""
    repeats = 25 if options.quick else options.repeats or 1000
    steep, straight = Truth.of(PlattCurve(2, 1)), Truth.of(PlattCurve(1, 0))
    noisy = Truth.of(NoisyPlattCurve(2, 1, noise=0.02, low=0.25, high=0.75), 0.25, 0.75)
    plans = {"a=2, c=1": steep, "a=1, c=0": straight}
    errors = {}
    for name, truth in plans.items():
        for n, n_bins in {(n, 10) for n in _SIZES} | {(2000, n_bins) for n_bins in _BINS}:
            errors[name, n, n_bins] = _errors(truth, n, n_bins, repeats, options)
    for n in _SIZES:
        errors["noisy", n, 10] = _errors(noisy, n, 10, repeats, options)
    if options.plot is not None:
        _plot(errors, options.plot)
    return _sample_size_rows(errors) + _bin_count_rows(errors) + _noise_rows(errors)


def _errors(truth, n, n_bins, repeats, options):
    """Return the squared errors of each method: a dict of arrays (repeats,)."""
    seeds = np.random.SeedSequence([n, n_bins]).spawn(repeats)
    batches = [seeds[start::8] for start in range(8)]
    results = Parallel(n_jobs=options.n_jobs)(
        delayed(_batch)(truth.curve, truth.low, truth.high, n, n_bins, batch) for batch in batches
    )
    return dict(zip(_METHODS, np.concatenate(results, axis=1), strict=True))


def _batch(curve, low, high, n, n_bins, seeds):
    truth = Truth.of(curve, low, high)
    return np.transpose([_one(truth, n, n_bins, np.random.default_rng(seed)) for seed in seeds])


def _one(truth, n, n_bins, rng):
    """Return the squared errors of HB, SB and scaling, all fitted on the same rows."""
    scores = rng.uniform(truth.low, truth.high, size=n)
    labels = rng.random(n) < truth.curve(scores)
    histogram = HistogramBinning(n_bins).fit(scores, labels)
    scaling = clone(_PLATT).fit(scores, labels)
    binned = ScalingBinning(_PLATT, n_bins).fit(scores, labels)
    scaler = binned.scaler_
    scaled_edges = np.log(binned.bin_edges_[1:-1]) - np.log1p(-binned.bin_edges_[1:-1])
    score_edges = expit((scaled_edges - scaler.intercept_) / scaler.slope_)
    return (
        _binned_squared_error(truth, histogram.bin_edges_[1:-1], histogram.bin_values_),
        _binned_squared_error(truth, score_edges, binned.bin_values_),
        np.mean((scaling.predict_proba(truth.nodes)[:, 1] - truth.curve(truth.nodes)) ** 2),
    )


def _binned_squared_error(truth, inner_edges, values):
    """Return E (f - E[Y | f])^2 of a step function, its equal values taken together."""
    edges = np.concatenate(([truth.low], inner_edges, [truth.high]))
    distinct, step = np.unique(values, return_inverse=True)
    share = np.bincount(step, weights=np.diff(edges) / (truth.high - truth.low))
    events = np.bincount(step, weights=np.diff(truth.integral(edges)))
    return float(share @ (distinct - events / share) ** 2)


def _sample_size_rows(errors):
    at = errors["a=2, c=1", 1000, 10], errors["a=2, c=1", 2000, 10]
    rows = [
        compare("a=2, c=1, B=10: squared CE, n 1000 / n 2000, HB", 2.00, *_ratio(*at, "HB"), margin=0.06),
        compare("a=2, c=1, B=10: squared CE, n 1000 / n 2000, SB", 1.98, *_ratio(*at, "SB"), margin=0.09),
    ]
    for name in ("a=2, c=1", "a=1, c=0"):
        for method in ("HB", "SB"):
            slope = _log_slope([errors[name, n, 10][method] for n in _SIZES], _SIZES)
            quantity = f"{name}: log squared CE per log n, {method} (1/CE^2 linear in n: -1)"
            rows.append(compare(quantity, -1.0, *slope, margin=0.1))
    return rows


def _bin_count_rows(errors):
    at = errors["a=2, c=1", 2000, 20], errors["a=2, c=1", 2000, 5]
    rows = [
        compare("a=2, c=1, n=2000: squared CE, B 20 / B 5, HB", 3.71, *_ratio(*at, "HB"), margin=0.15),
        compare("a=2, c=1, n=2000: squared CE, B 20 / B 5, SB", 1.02, *_ratio(*at, "SB"), margin=0.07),
    ]
    for name in ("a=2, c=1", "a=1, c=0"):
        for method, paper in (("HB", 1.0), ("SB", 0.0)):
            slope = _log_slope([errors[name, 2000, n_bins][method] for n_bins in _BINS], _BINS)
            quantity = f"{name}: log squared CE per log B, {method} ({'linear in B' if paper else 'nearly flat'})"
            rows.append(compare(quantity, paper, *slope, margin=0.1))
    return rows


def _noise_rows(errors):
    at = errors["noisy", 3000, 10]
    ratio = ratio_interval(at["scaling"], at["SB"], paired=True)
    rows = [compare("noisy, B=10, n=3000: squared CE, scaling / SB", 5.2, *ratio, margin=1.1)]
    # noise^2 is .0004; the signs of the noise do not quite average out against the map, hence the margin
    floor = bootstrap_interval(np.mean, errors["noisy", 4000, 10]["scaling"])
    rows.append(claim("noisy, n=4000: squared CE of scaling, not below noise^2", ">= 0.0004", *floor, at_least=0.00039))
    for n in _SIZES[1::2]:
        ratio = ratio_interval(errors["noisy", n, 10]["SB"], errors["noisy", n, 10]["scaling"], paired=True)
        rows.append(claim(f"noisy, B=10, n={n}: squared CE, SB / scaling", "below 1", *ratio, at_most=1))
    return rows


def _ratio(numerator, denominator, method):
    return ratio_interval(numerator[method], denominator[method])


def _log_slope(samples, sizes):
    """Return the least-squares slope of the log of the mean error on log size, with its interval."""
    x = np.log(sizes) - np.mean(np.log(sizes))
    return bootstrap_interval(lambda *s: x @ np.log([values.mean() for values in s]) / (x @ x), *samples)


def _plot(errors, path):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    panels = (
        ("a=2, c=1", [("a=2, c=1", n, 10) for n in _SIZES], 1, "n", "1 / squared CE"),
        ("a=2, c=1", [("a=2, c=1", 2000, b) for b in _BINS], 2, "B", "1 / squared CE"),
        ("noisy", [("noisy", n, 10) for n in _SIZES], 1, "n", "squared CE"),
    )
    for ax, (title, keys, position, x_label, y_label) in zip(axes, panels, strict=True):
        for method in _METHODS if title == "noisy" else ("HB", "SB"):
            mean = np.array([errors[key][method].mean() for key in keys])
            ax.plot([key[position] for key in keys], mean if y_label == "squared CE" else 1 / mean, "o-", label=method)
        ax.set(title=title, xlabel=x_label, ylabel=y_label)
        ax.legend()
    figure.savefig(path)
