"""Kumar, Liang and Ma (2019): their statements, checked against known truths.

The errors of several classes in Section 2.2, the statements of Sections 3 to 5 and of
Appendices D to F, and what the earlier draft adds. The estimators of Theorems 5.3, 5.4,
F.6 and F.9 are those of the library. Constants are those of the proofs where they are
printed. Misprints: Proposition D.4 has B = Omega(n) where its proof needs n = Omega(B);
the sentence before Theorem 5.3 has sqrt(B) for the B of the theorem; Definition 5.2 has
(1 - y)^2 for the 1 - y of Lemma F.7.
"""

from functools import partial

import numpy as np
from scipy import stats

from benchmarks.papers._intervals import bootstrap, exact, mean, ratio, share
from benchmarks.papers._known_models import roelofs_models
from benchmarks.papers._rules import Rule, above, below
from skcalib import HistogramBinning, PlattScaling, ScalingBinning
from skcalib.binning import EqualMass, EqualWidth, FixedEdges, UniqueScores
from skcalib.binning._base import assign_bins
from skcalib.guarantees import binning_mse_bound, well_balanced_alpha
from skcalib.metrics import calibration_error, reliability_curve
from skcalib.simulation import CalibrationModel, PlattCurve

PAPER = "kumar"

_FLOAT = 1e-12  # rounding
# Definitions 2.3 and 2.4, and event-pooled calibration, which the paper names and does
# not write down.
_KINDS = {
    "top_label": "top-label error minus that of whether the predicted class is right",
    "marginal": (
        "marginal error minus the root of the mean of K squares, each class against the"
        " rest"
    ),
    "pooled": (
        "event-pooled error minus that of the n K pairs of a row and a class as one"
        " problem"
    ),
}
_HOLDS = above(0.9, "at least 1 - delta = .9", possible=(0, 1))
ROWS = {
    **{
        f"Section 2.2: {kind}, largest difference, 40 samples": Rule(
            "0", -_FLOAT, _FLOAT
        )
        for kind in _KINDS.values()
    },
    "Section 2.2: squared event-pooled minus squared marginal error in the same bins, largest": below(  # noqa: E501
        _FLOAT, "(ours) at most 0"
    ),
    "Example 3.2: square of the binned error, 15 equal-width bins": Rule(
        "0", -1e-5, 1e-5, 1e-5
    ),
    "Example 3.2: true error of the same model": above(
        0.49, "at least .49", possible=(0, 1)
    ),
    "Proposition 3.3: largest of binned minus true error, 10 fits, l1, l2, l4, B to 256": below(  # noqa: E501
        _FLOAT, "at most 0"
    ),
    "Proposition 3.3: least change of the binned error as nested bins double": above(
        -_FLOAT, "at least 0"
    ),
    "Theorem 4.1: share of samples with CE(SB)^2 at most 2 min CE(g)^2 + eps^2, n = B log B + log(B) / eps^2": above(  # noqa: E501
        0.9, "at least 1 - delta = .9", possible=(0, 1)
    ),
    "Theorem 4.1: n for a squared CE of eps^2, B 64 over B 16, SB": below(
        2, "at most 2: B enters once", possible=(0, 99)
    ),
    "Theorem 4.1: n for a squared CE of eps^2, B 64 over B 16, HB": Rule(
        "about 4: B / eps^2", 2.5, 5.5, possible=(0, 99)
    ),
    "Lemma 4.3: log n per log (B log(B / delta)), delta = .1": Rule(
        "1 +- 0.15", 0.85, 1.15
    ),
    "Lemma 4.3: the constant c at B = 160 over that at B = 10": Rule(
        "1 +- 0.25", 0.75, 1.25, possible=(0, 99)
    ),
    "Lemma D.2: share of samples with |SB - its population version|_2^2 at most log(4 B / delta) / n": (  # noqa: E501
        _HOLDS
    ),
    "Lemma D.2: that square, log per log n": Rule("1 / n: -1", -1.15, -0.85),
    "Lemma D.2: that square, B 64 over B 16": below(
        1.28, "at most log 640 / log 160 = 1.27", possible=(0, 99)
    ),
    "Lemma D.2: share of samples with |SB - its population version|_1^2 at most 2 log(4 B / delta) / (B n)": (  # noqa: E501
        _HOLDS
    ),
    "Lemma D.2: the distance in l1, B 64 over B 16": below(
        0.57, "at most sqrt(16 log 640 / 64 log 160) = .56"
    ),
    "Lemma D.3: squared CE of the map minus the least of the family, log per log n": (
        Rule("1 / n: -1", -1.2, -0.8)
    ),
    "Lemma D.5: MSE(f) - MSE(g) - 2 |f - g|_1, largest of 2000 pairs": below(
        _FLOAT, "at most 0"
    ),
    "Lemma D.5: the same without the factor 2": above(0, "(not claimed)"),
    "Proposition D.4: share of samples with MSE of SB at most the least of the family + 1 / B, n = 40 B": above(  # noqa: E501
        0.9, "at least 1 - delta = .9", possible=(0, 1)
    ),
    "Proposition D.4: B times that excess of MSE, B 64 over B 16": below(
        1.0, "at most 1: falls like 1 / B", possible=(0, 99)
    ),
    "Lemma D.6: largest of the MSE cost of binning over 2 alpha / B": below(
        1, "at most 1"
    ),
    "Proposition 3.3: CE of a map binned by its own mean minus that of the map, largest": below(  # noqa: E501
        _FLOAT, "at most 0"
    ),
    "Theorem 5.3: plugin, log n per log B": Rule("1 +- 0.1", 0.9, 1.1),
    "Theorem 5.3: plugin, log n per log B, against the sqrt(B) of the sentence before it": above(  # noqa: E501
        0.6, "above .6"
    ),
    "Theorem 5.4: debiased, log n per log B": Rule("0.5 +- 0.1", 0.4, 0.6),
    "Lemma F.1: share of samples with every bin's share within c(n) of its probability": (  # noqa: E501
        _HOLDS
    ),
    "Lemma F.2: plugin square minus (P1) - (P2) + (P3), largest": Rule(
        "0", -_FLOAT, _FLOAT
    ),
    "Lemma F.3: largest of |(P1) - E^2| over c(n) E^2 where Lemma F.1 holds": below(
        1, possible=(0, np.inf)
    ),
    "Lemma F.4: share of samples with (P2) within its bound": _HOLDS,
    "Lemma F.5: share of samples with (P3) within its bound": _HOLDS,
    "Theorem F.6: share of samples with the plugin square within the bound": above(
        0.7, "at least 1 - 3 delta = .7", possible=(0, 1)
    ),
    "Lemma F.7: debiased square minus (C1) - (C2) + (C3), largest": Rule(
        "0", -_FLOAT, _FLOAT
    ),
    "Lemma F.8: share of samples with (C3) within its bound": _HOLDS,
    "Theorem F.9: share of samples with the debiased square within the bound": above(
        0.6, "at least 1 - 4 delta = .6", possible=(0, 1)
    ),
    "Theorem F.9: its third and fourth term over the third of Theorem F.6, B = 1000, n = 1e6": below(  # noqa: E501
        1, "smaller where B is large", possible=(0, np.inf)
    ),
    "Draft Proposition 1: CE of the map minus the least of the family, log per log n": (
        below(-0.5, "at most -1/2")
    ),
    "Draft Theorem 3: share of samples with CE(SB) at most 3 eps, n = B log B + L^2 d^2 / eps^2": above(  # noqa: E501
        0.9, "at least 1 - delta = .9", possible=(0, 1)
    ),
    "Draft Theorem 3: share of samples whose bins have 1 / 2B at least": above(
        0.9, "at least 1 - delta = .9", possible=(0, 1)
    ),
    "Draft Lemma 2: CE(f) - CE(g) - |f - g|_2, f a function of g, largest": below(
        _FLOAT, "at most 0"
    ),
    "Draft Lemma 2: the same, f not a function of g, a counterexample": above(
        0.0, "a condition is needed"
    ),
}


def measure(options):
    """Check all statements."""
    repeats = 3 if options.quick else options.repeats or 10
    yield from _several_classes()
    yield from _example_32(options.quick)
    yield from _binned_errors()
    yield from _theorem_41(10 * repeats)
    yield from _well_balanced(repeats)
    yield from _empirical_bins(10 * repeats)
    yield from _sharpness(10 * repeats)
    yield from _binning_cost()
    yield from _scaling(10 * repeats)
    yield from _draft_theorem_3(10 * repeats)
    yield from _distances()
    yield from _sample_sizes(options.quick)
    yield from _decompositions(40 * repeats)
    yield from _draft_lemma()
    if options.plot is not None:
        _plot(options.plot)


# --- Section 2.2 ---


def _several_classes(norm=2, n=300):
    """The errors of several classes, each against binary problems put together by
    hand.
    """
    rng, bins = np.random.default_rng(0), EqualWidth(10)
    error = partial(calibration_error, norm=norm, method="plugin", binning=bins)
    gaps, excess = {kind: [] for kind in _KINDS}, []
    for _ in range(40):
        n_classes = int(rng.integers(3, 8))
        scores = rng.dirichlet(np.full(n_classes, rng.uniform(0.2, 2)), n)
        labels = rng.integers(n_classes, size=n)
        events, predicted = (
            labels[:, None] == np.arange(n_classes),
            scores.argmax(axis=1),
        )
        squares = [
            error(events[:, k], scores[:, k], labels=[False, True]) ** 2
            for k in range(n_classes)
        ]
        plain = {
            "top_label": error(
                labels == predicted, scores.max(axis=1), labels=[False, True]
            ),
            "marginal": np.sqrt(np.mean(squares)),
            "pooled": error(events.ravel(), scores.ravel()),
        }
        found = {
            kind: error(labels, scores, multiclass=kind, labels=range(n_classes))
            for kind in _KINDS
        }
        for kind, values in gaps.items():
            values.append(found[kind] - plain[kind])
        excess.append(found["pooled"] ** 2 - found["marginal"] ** 2)
    for kind, words in _KINDS.items():
        yield (
            f"Section 2.2: {words}, largest difference, 40 samples",
            exact(max(gaps[kind], key=abs)),
        )
    quantity = (
        "Section 2.2: squared event-pooled minus squared marginal error in the same"
        " bins, largest"
    )
    yield quantity, exact(max(excess))


# --- Section 3 ---


class _Alternating:
    """Event probability 0 or 1 in turn on cells finer than any bins: on average the
    score, nowhere near it.
    """

    def __init__(self, n_cells=1000):
        self.breakpoints = np.linspace(0.49, 0.51, n_cells + 1)

    def __call__(self, scores):
        return (
            np.searchsorted(self.breakpoints[1:-1], scores, side="right") % 2
        ).astype(np.float64)


def _example_32(quick):
    model = CalibrationModel(stats.uniform(0.49, 0.02), _Alternating())
    # Of one sample the signed square of the binned error, without bias; the truth is 0
    # in the bin that holds them all.
    metric = partial(
        calibration_error, binning=EqualWidth(15), method="unbiased", squared=True
    )
    squares = model.estimates(metric, 30_000 if quick else 100_000, 50, random_state=0)
    yield "Example 3.2: square of the binned error, 15 equal-width bins", mean(squares)
    yield (
        "Example 3.2: true error of the same model",
        exact(model.true_calibration_error()),
    )


_LEVELS = (np.arange(1 << 16) + 0.5) / (1 << 16)


def _population(model):
    """Return scores and event probabilities at equally probable points: a population of
    its own, nearly the model's.
    """
    scores = model.score_distribution.ppf(_LEVELS)
    return scores, model.calibration_curve(scores)


def _binned_error(scores, truth, edges, norm):
    bins = assign_bins(scores, edges)
    count = np.bincount(bins, minlength=len(edges) - 1)
    gap = np.bincount(bins, scores - truth, len(edges) - 1) / np.maximum(count, 1)
    return (count / len(scores) @ np.abs(gap) ** norm) ** (1 / norm)


def _binned_errors():
    """Proposition 3.3 for three norms, and that nested bins see more and more of the
    error.
    """
    excess, steps = [], []
    for model in roelofs_models().values():
        scores, truth = _population(model)
        for norm in (1, 2, 4):
            full = np.mean(np.abs(scores - truth) ** norm) ** (1 / norm)
            for strategy in (EqualWidth, EqualMass):
                edges = [
                    strategy(int(n_bins)).bin_edges(scores)
                    for n_bins in 2 ** np.arange(1, 9)
                ]
                errors = [_binned_error(scores, truth, cut, norm) for cut in edges]
                excess += [error - full for error in errors]
                # edges of 2^k equal-width bins are nested exactly
                if strategy is EqualWidth:
                    steps += list(np.diff(errors))
    yield (
        (
            "Proposition 3.3: largest of binned minus true error, 10 fits, l1, l2, l4,"
            " B to 256"
        ),
        exact(max(excess)),
    )
    yield (
        "Proposition 3.3: least change of the binned error as nested bins double",
        exact(min(steps)),
    )


# --- Section 4 and Appendix D ---


def _theorem_41(repeats, n_bins=16, error=0.05):
    """The calibration bound of scaling-binning where the map is of the family but for a
    known distance.

    Scores are uniform, P(Y | z) is a sigmoid with 2 log-odds and shift 1, so that the
    best map of the family is the truth and min CE(g) = 0. The constant c of the theorem
    is not printed; c = 1 is tried here.
    """
    n = int(n_bins * np.log(n_bins) + np.log(n_bins) / error**2)
    squares = [_squared_errors(n, n_bins, seed)["SB"] for seed in range(repeats)]
    yield (
        (
            "Theorem 4.1: share of samples with CE(SB)^2 at most 2 min CE(g)^2 + eps^2,"
            " n = B log B + log(B) / eps^2"
        ),
        share(np.array(squares) <= error**2),
    )
    n = 4000
    samples = [
        [_squared_errors(n, bins, seed) for seed in range(repeats)] for bins in (64, 16)
    ]
    for method in ("SB", "HB"):
        # the squared error falls like 1 / n, so n times its mean is what an error of 1
        # would need
        needed = [[n * errors[method] for errors in found] for found in samples]
        yield (
            f"Theorem 4.1: n for a squared CE of eps^2, B 64 over B 16, {method}",
            ratio(*needed),
        )


def _squared_errors(n, n_bins, seed):
    """Return the squared CE of histogram binning and scaling-binning against the
    truth.
    """
    rng = np.random.default_rng([n, n_bins, seed])
    curve = PlattCurve(2, 1)
    scores = rng.random(n)
    labels = rng.random(n) < curve(scores)
    grid = (np.arange(20_000) + 0.5) / 20_000
    truth = curve(grid)
    models = {
        "HB": HistogramBinning(n_bins),
        "SB": ScalingBinning(PlattScaling(smooth_targets=False, clip=None), n_bins),
    }
    return {
        name: _error_of(model.fit(scores, labels).predict_proba(grid)[:, 1], truth) ** 2
        for name, model in models.items()
    }


def _well_balanced(repeats):
    """Lemma 4.3: the n that makes equal-mass bins 2-well-balanced with probability .9
    grows as B log(B / .1).
    """
    bins = np.array([10, 40, 160])
    scale = bins * np.log(bins / 0.1)
    slopes, ratios = [], []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        sizes = [
            _least_size(partial(_share_well_balanced, n_bins, rng), 2 * n_bins)
            for n_bins in bins
        ]
        slopes.append(np.polyfit(np.log(scale), np.log(sizes), 1)[0])
        ratios.append((sizes / scale)[-1] / (sizes / scale)[0])
    yield "Lemma 4.3: log n per log (B log(B / delta)), delta = .1", mean(slopes)
    yield "Lemma 4.3: the constant c at B = 160 over that at B = 10", mean(ratios)


def _share_well_balanced(n_bins, rng, n):
    held = 0
    for _ in range(100):
        edges = EqualMass(int(n_bins)).bin_edges(rng.random(n))
        held += len(edges) == n_bins + 1 and well_balanced_alpha(np.diff(edges)) <= 2
    return held / 100


def _least_size(holds, low, wanted=0.9):
    """Return the least n, to 3 %, with holds(n) >= wanted, for a share that grows with
    n.
    """
    high = low
    while holds(high) < wanted:
        low, high = high, 2 * high
    while high > 1.03 * low and high - low > 1:
        middle = int(np.sqrt(low * high))
        low, high = (low, middle) if holds(middle) >= wanted else (middle, high)
    return high


def _empirical_bins(repeats):
    """Lemma D.2: step 3 replaces the population mean of the map in each bin by that of
    n rows.

    The proof bounds the squared difference in each bin by its width^2 log(4 B / delta)
    / (p_b n), and p_b by 2 / B.
    """
    sizes = (1000, 4000, 16_000)
    found = {
        key: _bin_mean_errors(*key, repeats)
        for key in [*((n, 16) for n in sizes), (4000, 64)]
    }
    squares, distances = (
        {key: values[i] for key, values in found.items()} for i in (0, 1)
    )
    bounds = {(n, b): np.log(4 * b / 0.1) / n for n, b in found}
    quantity = (
        "Lemma D.2: share of samples with |SB - its population version|_2^2 at most"
        " log(4 B / delta) / n"
    )
    yield (
        quantity,
        share(
            np.concatenate([values <= bounds[key] for key, values in squares.items()])
        ),
    )
    x = np.log(sizes) - np.mean(np.log(sizes))
    slope = bootstrap(
        lambda *s: x @ np.log([v.mean() for v in s]) / (x @ x),
        *(squares[n, 16] for n in sizes),
    )
    yield "Lemma D.2: that square, log per log n", slope
    yield (
        "Lemma D.2: that square, B 64 over B 16",
        ratio(squares[4000, 64], squares[4000, 16]),
    )
    quantity = (
        "Lemma D.2: share of samples with |SB - its population version|_1^2 at most 2"
        " log(4 B / delta) / (B n)"
    )
    held = [values**2 <= 2 * bounds[n, b] / b for (n, b), values in distances.items()]
    yield quantity, share(np.concatenate(held))
    yield (
        "Lemma D.2: the distance in l1, B 64 over B 16",
        ratio(distances[4000, 64], distances[4000, 16]),
    )


def _bin_mean_errors(n, n_bins, repeats):
    """Return the mean square and the mean size of (empirical minus population bin mean)
    of g(z; 2, 1), z uniform.
    """
    curve, levels = PlattCurve(2, 1), (np.arange(100_000) + 0.5) / 100_000
    values = curve(levels)
    errors = []
    for seed in range(repeats):
        rng = np.random.default_rng([n, n_bins, seed])
        edges = EqualMass(n_bins).bin_edges(curve(rng.random(n)))  # of other rows
        mapped = curve(rng.random(n))
        found = reliability_curve(
            np.zeros(n), mapped, labels=[0, 1], binning=FixedEdges(edges)
        ).mean_score
        bins = assign_bins(values, edges)
        count = np.bincount(bins, minlength=n_bins)
        gap = found - np.bincount(bins, values, n_bins) / count
        errors.append((count @ gap**2 / len(values), count @ np.abs(gap) / len(values)))
    return np.transpose(errors)


def _scaling(repeats):
    """Lemma D.3 and the draft's Proposition 1: step 1 on a truth that is not in the
    family.

    A map of the family is injective, so that two of them differ in squared CE as they
    do in mean squared error.
    """
    grid = (np.arange(20_000) + 0.5) / 20_000
    truth = 0.1 + 0.8 * grid**2
    make = partial(PlattScaling, loss="squared", smooth_targets=False, clip=None)
    # the least of the family: the fit to the population, each grid point with both
    # labels
    y, rows = np.repeat([1, 0], len(grid)), np.tile(grid, 2)
    best = (
        make()
        .fit(rows, y, sample_weight=np.concatenate((truth, 1 - truth)))
        .predict_proba(grid)[:, 1]
    )
    least = np.mean((best - truth) ** 2)
    sizes = (500, 2000, 8000)
    squares, roots = [], []
    for n in sizes:
        errors = []
        for seed in range(repeats):
            rng = np.random.default_rng([n, seed])
            scores = rng.random(n)
            labels = rng.random(n) < 0.1 + 0.8 * scores**2
            errors.append(
                np.mean(
                    (make().fit(scores, labels).predict_proba(grid)[:, 1] - truth) ** 2
                )
            )
        squares.append(np.array(errors) - least)
        roots.append(np.sqrt(errors) - np.sqrt(least))
    x = np.log(sizes) - np.mean(np.log(sizes))
    for quantity, samples in (
        (
            (
                "Lemma D.3: squared CE of the map minus the least of the family, log"
                " per log n"
            ),
            squares,
        ),
        (
            (
                "Draft Proposition 1: CE of the map minus the least of the family, log"
                " per log n"
            ),
            roots,
        ),
    ):
        yield (
            quantity,
            bootstrap(lambda *s: x @ np.log([v.mean() for v in s]) / (x @ x), *samples),
        )


def _draft_theorem_3(repeats, n_bins=16):
    """The draft's final bound: with CE(f*) = eps the three steps, each on rows of its
    own, end below 3 eps.

    Scores are uniform on [.1, .9], where the sigmoid of the log-odds is .6-Lipschitz in
    its two parameters: L = .6. Constants and logarithms of the theorem are not printed;
    those of Theorem 4.1's rows are tried, each step having n.
    """
    grid = 0.1 + 0.8 * (np.arange(20_000) + 0.5) / 20_000
    bent = 0.1 + 0.8 * grid**2
    make = partial(PlattScaling, loss="squared", smooth_targets=False, clip=None)
    y, rows = np.repeat([1, 0], len(grid)), np.tile(grid, 2)
    best = (
        make()
        .fit(rows, y, sample_weight=np.concatenate((bent, 1 - bent)))
        .predict_proba(grid)[:, 1]
    )
    lipschitz = 0.25 * np.hypot(np.log(9), 1)
    close, balanced = [], []
    for bend in (1, 0.5):  # the best map of the family stays the same
        truth = best + bend * (bent - best)
        epsilon = np.sqrt(np.mean((best - truth) ** 2))
        n = int(n_bins * np.log(n_bins) + (2 * lipschitz / epsilon) ** 2)
        for seed in range(repeats):
            rng = np.random.default_rng([n, seed])
            scores = rng.uniform(0.1, 0.9, 3 * n)
            labels = rng.random(3 * n) < np.interp(scores, grid, truth)
            model = ScalingBinning(
                make(), n_bins, sample_split=(1 / 3, 1 / 3, 1 / 3), random_state=seed
            )
            predicted = model.fit(scores, labels).predict_proba(grid)[:, 1]
            close.append(_error_of(predicted, truth) <= 3 * epsilon)
            bins = assign_bins(
                model.recalibrator_.predict_proba(grid)[:, 1], model.bin_edges_
            )
            balanced.append(
                np.bincount(bins, minlength=n_bins).min() >= len(grid) / (2 * n_bins)
            )
    yield (
        (
            "Draft Theorem 3: share of samples with CE(SB) at most 3 eps, n = B log B +"
            " L^2 d^2 / eps^2"
        ),
        share(close),
    )
    yield (
        "Draft Theorem 3: share of samples whose bins have 1 / 2B at least",
        share(balanced),
    )


def _distances():
    """Lemma D.5: maps that are close in l1 are close in mean squared error."""
    rng, gaps, without = np.random.default_rng(0), [], []
    for _ in range(2000):
        f, g, truth = (
            rng.beta(*rng.uniform(0.2, 3, 2), 50),
            rng.random(50),
            rng.beta(0.2, 0.2, 50),
        )
        f = np.where(rng.random(50) < rng.random(), f, g)
        gap = np.mean((f - truth) ** 2 - (g - truth) ** 2)
        gaps.append(gap - 2 * np.abs(f - g).mean())
        without.append(gap - np.abs(f - g).mean())
    yield (
        "Lemma D.5: MSE(f) - MSE(g) - 2 |f - g|_1, largest of 2000 pairs",
        exact(max(gaps)),
    )
    # f = 1 and g = 0.9 where nothing happens: the difference is .19 for a distance of
    # .1
    f, g = np.array([1.0, 0.0]), np.array([0.9, 0.0])
    without.append(np.mean(f**2 - g**2) - np.abs(f - g).mean())
    yield "Lemma D.5: the same without the factor 2", exact(max(without))


def _sharpness(repeats):
    """Proposition D.4: the truth is in the family, so that the excess of MSE is the
    mean square from the truth.
    """
    curve, grid = PlattCurve(2, 1), (np.arange(20_000) + 0.5) / 20_000
    excess = {}
    for n_bins in (16, 64):
        excess[n_bins] = np.empty(repeats)
        for seed in range(repeats):
            rng = np.random.default_rng([n_bins, seed])
            scores = rng.random(40 * n_bins)
            model = ScalingBinning(
                PlattScaling(smooth_targets=False, clip=None), n_bins
            )
            predicted = model.fit(
                scores, rng.random(len(scores)) < curve(scores)
            ).predict_proba(grid)[:, 1]
            excess[n_bins][seed] = np.mean((predicted - curve(grid)) ** 2)
    quantity = (
        "Proposition D.4: share of samples with MSE of SB at most the least of the"
        " family + 1 / B, n = 40 B"
    )
    yield (
        quantity,
        share(
            np.concatenate([n_bins * values <= 1 for n_bins, values in excess.items()])
        ),
    )
    yield (
        "Proposition D.4: B times that excess of MSE, B 64 over B 16",
        ratio(64 * excess[64], 16 * excess[16]),
    )


def _binning_cost():
    """Lemma D.6: replacing outputs by their bin's mean costs at most 2 alpha / B of
    mean squared error.
    """
    ratios, gains = [], []
    for model in roelofs_models().values():
        scores, truth = _population(model)
        for n_bins in (5, 10, 50, 100):
            edges = EqualMass(n_bins).bin_edges(scores)
            bins = assign_bins(scores, edges)
            counts = np.bincount(bins, minlength=len(edges) - 1)
            binned = (np.bincount(bins, scores) / np.bincount(bins))[bins]
            cost = np.mean((binned - truth) ** 2 - (scores - truth) ** 2)
            balance = max(1.0, counts.max() * n_bins / len(scores))
            ratios.append(cost / binning_mse_bound(n_bins, balance=balance))
            gains.append(_error_of(binned, truth) - _error_of(scores, truth))
    yield (
        "Lemma D.6: largest of the MSE cost of binning over 2 alpha / B",
        exact(max(ratios)),
    )
    yield (
        (
            "Proposition 3.3: CE of a map binned by its own mean minus that of the map,"
            " largest"
        ),
        exact(max(gains)),
    )


def _error_of(predicted, truth):
    """Return the l2 calibration error of predictions, equal ones taken together."""
    distinct, level = np.unique(predicted, return_inverse=True)
    gap = distinct - np.bincount(level, truth) / np.bincount(level)
    return np.sqrt(np.bincount(level) @ gap**2 / len(predicted))


# --- Section 5 ---


def _sample_sizes(quick):
    """Theorems 5.3 and 5.4: the n for an estimate within E^2 / 2 nine times of ten, by
    the number of bins.
    """
    error = 0.05
    bins = np.array([512, 2048] if quick else [512, 4096])
    each = 40 if quick else 80
    for method, theorem in (("plugin", "5.3"), ("debiased", "5.4")):
        slopes = []
        for seed in range(3 if quick else 12):
            rng = np.random.default_rng(seed)
            sizes = [
                _least_size(
                    partial(_share_close, method, n_bins, error, rng, n_samples=each),
                    4 * n_bins,
                )
                for n_bins in bins
            ]
            slopes.append(np.polyfit(np.log(bins), np.log(sizes), 1)[0])
        yield f"Theorem {theorem}: {method}, log n per log B", mean(slopes)
        if method == "plugin":
            yield (
                (
                    "Theorem 5.3: plugin, log n per log B, against the sqrt(B) of the"
                    " sentence before it"
                ),
                mean(slopes),
            )


def _share_close(method, n_bins, error, rng, n, n_samples=80):
    """Return how often the library's squared estimate is within half of the truth, in a
    model of bins around 1/2.
    """
    score = 0.4 + 0.2 * (np.arange(n_bins) + 0.5) / n_bins
    truth = score + error * np.where(np.arange(n_bins) % 2, 1, -1)
    counts = rng.multinomial(n, np.full(n_bins, 1 / n_bins), size=n_samples)
    events = rng.binomial(counts, truth)
    # a sample as weighted rows: one of each label at each score
    labels, scores = np.repeat([1, 0], n_bins), np.tile(score, 2)
    metric = partial(
        calibration_error, norm=2, squared=True, binning=UniqueScores(), method=method
    )
    weights = np.concatenate((events, counts - events), axis=1)
    estimates = np.array(
        [metric(labels, scores, sample_weight=weight) for weight in weights]
    )
    return np.mean(np.abs(estimates - error**2) <= error**2 / 2)


def _decompositions(repeats, n=20_000, n_bins=20, delta=0.1):
    """Appendix F: the terms of both estimates and their bounds, on a binned model with
    known truth.
    """
    rng = np.random.default_rng(0)
    score = (np.arange(n_bins) + 0.5) / n_bins
    truth = np.clip(score + 0.05 * np.where(np.arange(n_bins) % 2, 1, -1), 0, 1)
    probability = rng.dirichlet(np.full(n_bins, 20.0))
    error = score - truth
    square = probability @ error**2
    c = np.sqrt(3 / (n * probability.min()) * np.log(2 * n_bins / delta))
    p2_bound = np.sqrt(2 * (1 + c) * square / n * np.log(2 / delta))
    p3_bound = n_bins / (2 * n) * np.log(2 * n_bins / delta)
    c3_bound = 3 * np.sqrt(n_bins) / n * np.log(n / delta) + delta / n
    metric = partial(calibration_error, norm=2, squared=True, binning=UniqueScores())
    labels, scores = np.repeat([1, 0], n_bins), np.tile(score, 2)
    table = []
    for _ in range(repeats):
        count = rng.multinomial(n, probability)
        events = rng.binomial(count, truth)
        share_, noise = count / n, events / count - truth
        p1, p2, p3 = share_ @ error**2, 2 * share_ @ (error * noise), share_ @ noise**2
        c3 = p3 - share_ @ (events / count * (1 - events / count) / (count - 1))
        weight = np.concatenate((events, count - events))
        plugin, debiased = (
            metric(labels, scores, sample_weight=weight, method=m)
            for m in ("plugin", "debiased")
        )
        close = (np.abs(share_ / probability - 1) < c).all()
        gaps = plugin - (p1 - p2 + p3), debiased - (p1 - p2 + c3)
        table.append(
            (
                close,
                abs(p1 - square) / (c * square),
                p2,
                p3,
                c3,
                *gaps,
                plugin,
                debiased,
            )
        )
    close, p1, p2, p3, c3, plugin_gap, debiased_gap, plugin, debiased = np.transpose(
        table
    )
    close = close.astype(bool)
    yield (
        (
            "Lemma F.1: share of samples with every bin's share within c(n) of its"
            " probability"
        ),
        share(close),
    )
    yield (
        "Lemma F.2: plugin square minus (P1) - (P2) + (P3), largest",
        exact(max(plugin_gap, key=abs)),
    )
    yield (
        "Lemma F.3: largest of |(P1) - E^2| over c(n) E^2 where Lemma F.1 holds",
        exact(p1[close].max()),
    )
    yield (
        "Lemma F.4: share of samples with (P2) within its bound",
        share(np.abs(p2) <= p2_bound),
    )
    yield (
        "Lemma F.5: share of samples with (P3) within its bound",
        share(np.abs(p3) <= p3_bound),
    )
    total = c * square + p2_bound
    held = np.abs(plugin - square) <= total + p3_bound
    yield (
        "Theorem F.6: share of samples with the plugin square within the bound",
        share(held),
    )
    yield (
        "Lemma F.7: debiased square minus (C1) - (C2) + (C3), largest",
        exact(max(debiased_gap, key=abs)),
    )
    yield (
        "Lemma F.8: share of samples with (C3) within its bound",
        share(np.abs(c3) <= c3_bound),
    )
    held = np.abs(debiased - square) <= total + c3_bound
    yield (
        "Theorem F.9: share of samples with the debiased square within the bound",
        share(held),
    )
    b, m = 1000, 1e6
    terms = (
        3 * np.sqrt(b) / m * np.log(m / delta) + delta / m,
        b / (2 * m) * np.log(2 * b / delta),
    )
    quantity = (
        "Theorem F.9: its third and fourth term over the third of Theorem F.6, B ="
        " 1000, n = 1e6"
    )
    yield quantity, exact(terms[0] / terms[1])


def _draft_lemma():
    """CE(f) <= CE(g) + ||f - g||_2: true where f is a function of g, such as g binned;
    not for any two.
    """
    rng = np.random.default_rng(0)
    excess = []
    for model in roelofs_models().values():
        scores, truth = _population(model)
        # g takes values on a grid, f merges and moves them
        levels = np.round(scores, 2)
        for _ in range(20):
            moved = rng.random(101)[
                np.round(100 * levels).astype(int) // rng.integers(1, 30)
            ]
            distance = np.sqrt(np.mean((moved - levels) ** 2))
            excess.append(_error_of(moved, truth) - _error_of(levels, truth) - distance)
    # g = 1/2 is calibrated for a fair coin; f moves each forecast .01 towards the
    # outcome, and can be told from it.
    outcome = np.arange(1000) % 2
    gap = _error_of(0.5 + 0.01 * (2 * outcome - 1), outcome) - 0.01
    yield (
        "Draft Lemma 2: CE(f) - CE(g) - |f - g|_2, f a function of g, largest",
        exact(max(excess)),
    )
    yield "Draft Lemma 2: the same, f not a function of g, a counterexample", exact(gap)


def _plot(path):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    curve = _Alternating(40)
    scores = np.linspace(0.49, 0.51, 4001)
    axes[0].plot(scores, curve(scores), linewidth=0.8, label="event probability")
    axes[0].plot(scores, scores, label="score")
    axes[0].set(title="Example 3.2: binned error 0, true error .5", xlabel="score")
    axes[0].set_xticks([0.49, 0.5, 0.51])
    axes[0].legend(loc="center right")
    for name, model in roelofs_models().items():
        population = _population(model)
        bins = 2 ** np.arange(1, 9)
        errors = np.array(
            [
                _binned_error(
                    *population, EqualMass(int(b)).bin_edges(population[0]), 2
                )
                for b in bins
            ]
        )
        axes[1].plot(bins, errors / model.true_calibration_error(), "o-", label=name)
    axes[1].set(
        title="binned over true l2 error, equal mass",
        xlabel="bins",
        xscale="log",
        ylim=(0, 1.05),
    )
    axes[1].legend(fontsize="x-small")
    figure.savefig(path)
