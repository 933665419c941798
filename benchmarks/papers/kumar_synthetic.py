"""Kumar, Liang and Ma (2019), synthetic experiments: calibration error by n, by B and
with noise (Figures 8, 9, 11).

Figure 8 draws 1 / CE^2 against n, Figure 9 against B, Figure 11 the squared error of a
truth that is not in the family. The text of Appendix E sends the reader of the second
experiment to Figure 11; its caption is that of Figure 9.

Histogram binning (HB), scaling-binning (SB) and the scaling map alone are fitted on n
rows of a known truth; their squared calibration error is exact, an integral over the
truth rather than an estimate from more rows.
"""

from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.interpolate import CubicSpline
from scipy.special import expit
from sklearn.base import clone

from benchmarks.papers._curves import NoisyPlattCurve
from benchmarks.papers._intervals import bootstrap, mean, ratio
from benchmarks.papers._rules import Rule, above, below, printed
from skcalib import HistogramBinning, PlattScaling, ScalingBinning
from skcalib.simulation import PlattCurve

PAPER = "kumar"

_SIZES = (500, 1000, 1500, 2000, 2500, 3000, 3500, 4000)
_BINS = (5, 10, 15, 20)
_METHODS = ("HB", "SB", "scaling")
# The authors' scaling map is a logistic regression on the log-odds without Platt's
# smoothed targets.
_PLATT = PlattScaling(smooth_targets=False, clip=None)

_POSITIVE = (0.0, np.inf)
_BY_N, _BY_B, _NOISY = "Figure 8: B=10", "Figure 9: n=2000", "Figure 11: B=10"
ROWS = {
    f"{_BY_N}, squared CE, n 1000 / n 2000, HB": printed(
        2.00, margin=0.06, possible=_POSITIVE
    ),
    f"{_BY_N}, squared CE, n 1000 / n 2000, SB": printed(
        1.98, margin=0.09, possible=_POSITIVE
    ),
    f"{_BY_B}, squared CE, B 20 / B 5, HB": printed(
        3.71, margin=0.15, possible=_POSITIVE
    ),
    # "decreases by 2 % +- 7 %"
    f"{_BY_B}, squared CE, B 20 / B 5, SB": printed(
        0.98, margin=0.07, possible=_POSITIVE
    ),
    f"{_BY_B}, log squared CE per log B, HB": Rule(
        "close to linear in B: 1", 0.85, 1.15
    ),
    f"{_BY_B}, log squared CE per log B, SB": Rule("nearly constant: 0", -0.1, 0.1),
    f"{_NOISY}, n=3000, squared CE, scaling / SB": printed(
        5.2, margin=1.1, possible=_POSITIVE
    ),
    # 0.02^2; the signs of the noise do not quite average out against the map, hence
    # .00039
    f"{_NOISY}, n=4000, squared CE of scaling": above(
        0.00039, "not below .02^2 (our reading)", possible=_POSITIVE
    ),
}
for _method in ("HB", "SB"):
    ROWS[f"{_BY_N}, log squared CE per log n, {_method}"] = Rule(
        "1/CE^2 linear in n: -1", -1.1, -0.9
    )
for _n_bins in _BINS:
    # the vertical axis of the figure ends at these values
    ROWS[f"{_BY_B}, B={_n_bins}, 1 / squared CE of SB"] = Rule(
        "6600 to 7800", 6600, 7800, 1000, _POSITIVE
    )
for _n in _SIZES[1::2]:
    ROWS[f"{_NOISY}, n={_n}, squared CE, SB / scaling"] = below(1, possible=_POSITIVE)


class Truth(NamedTuple):
    """Uniform scores on [low, high] with event probability `curve`, and what its
    integrals need.
    """

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
        noise = np.concatenate(
            ([0.0], np.cumsum(curve(nodes) - smooth(nodes)) * (high - low) / n_cells)
        )
        return cls(
            curve,
            low,
            high,
            nodes,
            lambda z: (spline(z) + np.interp(z, edges, noise)) / (high - low),
        )


def measure(options):
    """Yield the paper's ratios of squared calibration errors."""
    repeats = 12 if options.quick else options.repeats or 300
    truth = Truth.of(PlattCurve(2, 1))
    noisy = Truth.of(NoisyPlattCurve(2, 1, noise=0.02, low=0.25, high=0.75), 0.25, 0.75)
    errors = {}
    for n, n_bins in {(n, 10) for n in _SIZES} | {(2000, n_bins) for n_bins in _BINS}:
        # single ratios, and slopes over four B alone, need more repeats than slopes
        # over eight n
        times = 4 if n in (1000, 2000) else 1
        errors[n, n_bins] = _errors(truth, n, n_bins, times * repeats, options)
    noise = {n: _errors(noisy, n, 10, repeats, options) for n in _SIZES}
    if options.plot is not None:
        _plot(errors, noise, options.plot)
    yield from _sample_sizes(errors)
    yield from _bin_counts(errors)
    yield from _noise(noise)


def _errors(truth, n, n_bins, repeats, options):
    """Return the squared errors of each method: a dict of arrays (repeats,)."""
    seeds = np.random.SeedSequence([n, n_bins]).spawn(repeats)
    batches = [seeds[start::8] for start in range(8)]
    results = Parallel(n_jobs=options.n_jobs)(
        delayed(_batch)(truth.curve, truth.low, truth.high, n, n_bins, batch)
        for batch in batches
    )
    return dict(zip(_METHODS, np.concatenate(results, axis=1), strict=True))


def _batch(curve, low, high, n, n_bins, seeds):
    truth = Truth.of(curve, low, high)
    return np.transpose(
        [_one(truth, n, n_bins, np.random.default_rng(seed)) for seed in seeds]
    )


def _one(truth, n, n_bins, rng):
    """Return the squared errors of HB, SB and scaling, all fitted on the same rows."""
    scores = rng.uniform(truth.low, truth.high, size=n)
    labels = rng.random(n) < truth.curve(scores)
    histogram = HistogramBinning(n_bins).fit(scores, labels)
    scaling = clone(_PLATT).fit(scores, labels)
    binned = ScalingBinning(_PLATT, n_bins).fit(scores, labels)
    scaler = binned.recalibrator_
    scaled_edges = np.log(binned.bin_edges_[1:-1]) - np.log1p(-binned.bin_edges_[1:-1])
    score_edges = expit((scaled_edges - scaler.intercept_) / scaler.slope_)
    return (
        _binned_squared_error(truth, histogram.bin_edges_[1:-1], histogram.bin_values_),
        _binned_squared_error(truth, score_edges, binned.bin_values_),
        np.mean(
            (scaling.predict_proba(truth.nodes)[:, 1] - truth.curve(truth.nodes)) ** 2
        ),
    )


def _binned_squared_error(truth, inner_edges, values):
    """Return E (f - E[Y | f])^2 of a step function, its equal values taken together."""
    edges = np.concatenate(([truth.low], inner_edges, [truth.high]))
    distinct, step = np.unique(values, return_inverse=True)
    share = np.bincount(step, weights=np.diff(edges) / (truth.high - truth.low))
    events = np.bincount(step, weights=np.diff(truth.integral(edges)))
    return float(share @ (distinct - events / share) ** 2)


def _sample_sizes(errors):
    for method in ("HB", "SB"):
        quantity = f"{_BY_N}, squared CE, n 1000 / n 2000, {method}"
        yield quantity, ratio(errors[1000, 10][method], errors[2000, 10][method])
        slope = _log_slope([errors[n, 10][method] for n in _SIZES], _SIZES)
        yield f"{_BY_N}, log squared CE per log n, {method}", slope


def _bin_counts(errors):
    for method in ("HB", "SB"):
        quantity = f"{_BY_B}, squared CE, B 20 / B 5, {method}"
        yield quantity, ratio(errors[2000, 20][method], errors[2000, 5][method])
        slope = _log_slope([errors[2000, n_bins][method] for n_bins in _BINS], _BINS)
        yield f"{_BY_B}, log squared CE per log B, {method}", slope
    for n_bins in _BINS:
        value, low, high = mean(errors[2000, n_bins]["SB"])
        yield (
            f"{_BY_B}, B={n_bins}, 1 / squared CE of SB",
            (
                1 / value,
                1 / high,
                1 / low,
            ),
        )


def _noise(errors):
    at = errors[3000]
    yield (
        f"{_NOISY}, n=3000, squared CE, scaling / SB",
        ratio(at["scaling"], at["SB"], paired=True),
    )
    yield f"{_NOISY}, n=4000, squared CE of scaling", mean(errors[4000]["scaling"])
    for n in _SIZES[1::2]:
        both = errors[n]
        yield (
            f"{_NOISY}, n={n}, squared CE, SB / scaling",
            ratio(both["SB"], both["scaling"], paired=True),
        )


def _log_slope(samples, sizes):
    """Return the least-squares slope of the log of the mean error on log size, with its
    interval.
    """
    x = np.log(sizes) - np.mean(np.log(sizes))
    return bootstrap(
        lambda *s: x @ np.log([values.mean() for values in s]) / (x @ x), *samples
    )


def _plot(errors, noise, path):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for method in ("HB", "SB"):
        axes[0].plot(
            _SIZES,
            [1 / errors[n, 10][method].mean() for n in _SIZES],
            "o-",
            label=method,
        )
        axes[1].plot(
            _BINS,
            [1 / errors[2000, n_bins][method].mean() for n_bins in _BINS],
            "o-",
            label=method,
        )
    for method in _METHODS:
        axes[2].plot(
            _SIZES, [noise[n][method].mean() for n in _SIZES], "o-", label=method
        )
    axes[0].set(title="Figure 8", xlabel="n", ylabel="1 / squared CE")
    axes[1].set(title="Figure 9", xlabel="B", ylabel="1 / squared CE")
    axes[2].set(title="Figure 11", xlabel="n", ylabel="squared CE")
    for ax in axes:
        ax.legend()
    figure.savefig(path)
