"""Plain slow twins of the library: loops over rows and bins, written from the formulas
and not from the code.

A weight is a number of repeated rows everywhere: twins that need whole rows
(`repeated`) make them.
"""

import math
from fractions import Fraction

import numpy as np
from scipy.integrate import quad


def repeated(weights, *arrays):
    """Return arrays with row i repeated weights[i] times, for integer weights."""
    return [np.repeat(np.asarray(array), weights, axis=0) for array in arrays]


def bin_of(score, edges):
    """Bins are right-closed, the first one on both sides: the bin is the number of
    inner edges below the score.
    """
    return sum(float(score) > float(edge) for edge in edges[1:-1])


def equal_mass_edges(scores, n_bins, weights=None):
    """Cut i of B is the smallest score whose cumulative weight reaches i W / B; the
    edge lies halfway to the next.
    """
    weights = [1] * len(scores) if weights is None else weights
    mass = {}
    for score, weight in zip(scores, weights, strict=True):
        mass[float(score)] = mass.get(float(score), Fraction(0)) + Fraction(
            float(weight)
        )
    distinct = sorted(mass)
    total = sum(mass.values())
    edges = [0.0]
    for i in range(1, n_bins):
        k, held = 0, mass[distinct[0]]
        while held < total * i / n_bins:
            k += 1
            held += mass[distinct[k]]
        if k + 1 < len(distinct):
            middle = (distinct[k] + distinct[k + 1]) / 2
            middle = middle if middle < distinct[k + 1] else distinct[k]
            if middle != edges[-1] or len(edges) == 1:
                edges.append(middle)
    return [*edges, 1.0]


def unique_score_edges(scores):
    distinct = sorted({float(score) for score in scores})
    return [
        0.0,
        *((a + b) / 2 for a, b in zip(distinct, distinct[1:], strict=False)),
        1.0,
    ]


def bins(scores, labels, edges, weights=None):
    """Return for each bin that is not empty its rows (score, label, weight)."""
    weights = [1.0] * len(scores) if weights is None else weights
    rows = {}
    for score, label, weight in zip(scores, labels, weights, strict=True):
        if weight > 0:
            rows.setdefault(bin_of(score, edges), []).append(
                (float(score), float(label), float(weight))
            )
    return [rows[b] for b in sorted(rows)]


def power(scores, labels, edges, *, norm, method, weights=None):
    """Return the (signed) p-th power of a binned error, for norm inf the error."""
    parts = []
    total = sum(
        weight for rows in bins(scores, labels, edges, weights) for _, _, weight in rows
    )
    for rows in bins(scores, labels, edges, weights):
        n = sum(w for _, _, w in rows)
        s = sum(w * s for s, _, w in rows) / n
        y = sum(w * y for _, y, w in rows) / n
        parts.append((n / total, _term(rows, n, s, y, norm, method)))
    if norm == math.inf:
        return max(term for _, term in parts)
    return sum(share * term for share, term in parts)


def _term(rows, n, s, y, norm, method):
    if norm == math.inf:
        return abs(s - y)
    if method == "plugin":
        return abs(s - y) ** norm
    if method == "label_binned":
        return sum(w * abs(score - y) ** norm for score, _, w in rows) / n
    if n < 2:
        return 0.0
    if method == "unbiased":  # the sample variance of the residual, over n
        residual = [(label - score - (y - s), w) for score, label, w in rows]
        return (s - y) ** 2 - sum(w * r**2 for r, w in residual) / (n - 1) / n
    if norm == 2:
        return (s - y) ** 2 - y * (1 - y) / (n - 1)
    return 2 * abs(s - y) ** norm - normal_absolute_moment(s - y, y * (1 - y) / n, norm)


def normal_absolute_moment(mean, variance, order):
    """Integrate |x|^order against a normal density."""
    sd = math.sqrt(variance)
    if sd == 0:
        return abs(mean) ** order
    density = lambda z: (  # noqa: E731
        abs(mean + sd * z) ** order * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    )
    kink = [-mean / sd] if abs(mean) < 12 * sd else None
    return quad(density, -12, 12, points=kink, epsabs=0, epsrel=1e-12, limit=200)[0]


def root(power_, norm):
    return power_ if norm == math.inf else max(power_, 0.0) ** (1 / norm)


def top_label(proba):
    """Return (predicted class, its score) for each row: the first of the largest."""
    predicted = []
    for row in proba:
        best = 0
        for k in range(len(row)):
            if row[k] > row[best]:
                best = k
        predicted.append((best, row[best]))
    return predicted


def tasks(proba, codes, multiclass):
    """Return the binary problems (scores, labels) of K columns."""
    if multiclass == "top_label":
        predicted = top_label(proba)
        return [
            (
                [score for _, score in predicted],
                [c == k for c, (k, _) in zip(codes, predicted, strict=True)],
            )
        ]
    return [
        ([row[k] for row in proba], [c == k for c in codes])
        for k in range(len(proba[0]))
    ]


def histogram_binning(scores, labels, edges, weights=None, smoothing=0.0):
    """Return the value of each bin: event frequency, the midpoint where it is empty."""
    weights = [1.0] * len(scores) if weights is None else weights
    base_rate = sum(w * y for w, y in zip(weights, labels, strict=True)) / sum(weights)
    values = []
    for b in range(len(edges) - 1):
        inside = [
            (y, w)
            for s, y, w in zip(scores, labels, weights, strict=True)
            if bin_of(s, edges) == b
        ]
        n = sum(w for _, w in inside) + smoothing
        events = sum(w * y for y, w in inside) + smoothing * base_rate
        values.append(events / n if n > 0 else (edges[b] + edges[b + 1]) / 2)
    return values


def scaling_binning(scaled_to_bin, scaled_to_average, n_bins):
    """Return edges and values: equal-mass bins of g(T2), the mean of g(T3) in each."""
    edges = equal_mass_edges(scaled_to_bin, n_bins)
    values = []
    for b in range(len(edges) - 1):
        inside = [s for s in scaled_to_average if bin_of(s, edges) == b]
        values.append(
            sum(inside) / len(inside) if inside else (edges[b] + edges[b + 1]) / 2
        )
    return edges, values


def isotonic(scores, labels, weights=None):
    """Pool adjacent violators: return {distinct score: fitted value}."""
    weights = [1.0] * len(scores) if weights is None else weights
    blocks = []  # [events, weight, scores]
    for score in sorted({float(s) for s in scores}):
        tied = [
            (y, w)
            for s, y, w in zip(scores, labels, weights, strict=True)
            if float(s) == score
        ]
        blocks.append([sum(w * y for y, w in tied), sum(w for _, w in tied), [score]])
        while (
            len(blocks) > 1
            and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]
        ):
            events, weight, right = blocks.pop()
            blocks[-1] = [
                blocks[-1][0] + events,
                blocks[-1][1] + weight,
                blocks[-1][2] + right,
            ]
    return {score: events / weight for events, weight, tied in blocks for score in tied}


def temperature_loss(inverse, logits, codes, weights=None, loss="log"):
    """Return the mean log-loss or Brier score of softmax(inverse * logits)."""
    weights = [1.0] * len(logits) if weights is None else weights
    total = 0.0
    for row, code, weight in zip(logits, codes, weights, strict=True):
        highest = max(float(z) for z in row)
        likelihood = [math.exp(inverse * (float(z) - highest)) for z in row]
        p = [v / sum(likelihood) for v in likelihood]
        if loss == "log":
            total -= weight * (
                inverse * (float(row[code]) - highest) - math.log(sum(likelihood))
            )
        else:
            total += weight * sum((q - (k == code)) ** 2 for k, q in enumerate(p))
    return total / sum(weights)


def minimum(function, low, high, steps=200):
    """Return the minimiser of a unimodal function of one variable: golden-section
    search.
    """
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(steps):
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, b) if function(a) < function(b) else (a, high)
    return (low + high) / 2
