"""Statements of Kumar, Liang and Ma (2019) and of Gupta and Ramdas (2021), checked against known truths.

Kumar et al.: Example 3.2, Proposition 3.3, Lemmas 4.3 and D.6, Theorems 5.3 and 5.4, and a lemma of their earlier
draft. Gupta and Ramdas: Proposition 1 and Example 1.
"""

from functools import partial

import numpy as np
from scipy import stats

from benchmarks.papers._report import claim, compare, mean_interval
from skcalib.binning import EqualMass, EqualWidth, assign_bins
from skcalib.guarantees import binning_mse_bound, well_balanced_alpha
from skcalib.metrics import calibration_error, validity_curve
from skcalib.simulation import CalibrationModel, roelofs_models

_LEVELS = (np.arange(1 << 16) + 0.5) / (1 << 16)


def run(options):
    """Check all statements."""
    repeats = 5 if options.quick else options.repeats or 20
    rows = _example_32(options.quick) + _binned_errors() + _well_balanced(repeats) + _binning_cost()
    rows += _sample_sizes(repeats, options.quick) + _draft_lemma() + _example_1() + _proposition_1(repeats)
    if options.plot is not None:
        _plot(options.plot)
    return rows


# --- Kumar et al., Section 3 ---


class _Alternating:
    """Event probability 0 or 1 in turn on cells finer than any bins: on average the score, nowhere near it."""

    def __init__(self, n_cells=1000):
        self.breakpoints = np.linspace(0.49, 0.51, n_cells + 1)

    def __call__(self, scores):
        return (np.searchsorted(self.breakpoints[1:-1], scores, side="right") % 2).astype(np.float64)


def _example_32(quick):
    model = CalibrationModel(stats.uniform(0.49, 0.02), _Alternating())
    truth = model.true_calibration_error()
    # Of one sample the signed square of the binned error, without bias; the truth is 0 in the bin that holds them all.
    metric = partial(calibration_error, binning=EqualWidth(15), method="unbiased", squared=True)
    squares = model.estimates(metric, 10_000 if quick else 100_000, 50, random_state=0)
    return [
        compare("Example 3.2: square of the binned error, 15 equal-width bins", 0.0, *mean_interval(squares)),
        claim("Example 3.2: true error of the same model", "at least .49", truth, truth, truth, at_least=0.49),
    ]


def _population(model):
    """Return scores and event probabilities at equally probable points: a population of its own, nearly the model's."""
    scores = model.score_distribution.ppf(_LEVELS)
    return scores, model.calibration_curve(scores)


def _binned_error(scores, truth, edges, norm):
    bins = assign_bins(scores, edges)
    count = np.bincount(bins, minlength=len(edges) - 1)
    gap = np.bincount(bins, scores - truth, len(edges) - 1) / np.maximum(count, 1)
    return (count / len(scores) @ np.abs(gap) ** norm) ** (1 / norm)


def _binned_errors():
    """Proposition 3.3 for three norms, and that nested bins see more and more of the error."""
    excess, steps = [], []
    for model in roelofs_models().values():
        scores, truth = _population(model)
        for norm in (1, 2, 4):
            full = np.mean(np.abs(scores - truth) ** norm) ** (1 / norm)
            for strategy in (EqualWidth, EqualMass):
                edges = [strategy(int(n_bins)).bin_edges(scores) for n_bins in 2 ** np.arange(1, 9)]
                errors = [_binned_error(scores, truth, cut, norm) for cut in edges]
                excess += [error - full for error in errors]
                if strategy is EqualWidth:  # edges of 2^k equal-width bins are nested exactly
                    steps += list(np.diff(errors))
    worst, least = max(excess), min(steps)
    quantity = "Proposition 3.3: largest of binned less true error, 10 fits, l1, l2, l4, B to 256"
    return [
        claim(quantity, "at most 0", worst, worst, worst, at_most=1e-12),
        claim(
            "Nested bins: least change of the binned error as B doubles",
            "at least 0",
            least,
            least,
            least,
            at_least=-1e-12,
        ),
    ]


# --- Kumar et al., Section 4 and Appendix D ---


def _well_balanced(repeats):
    """Lemma 4.3: the n that makes equal-mass bins 2-well-balanced with probability .9 grows as B log(B / .1)."""
    bins = np.array([10, 40, 160])
    scale = bins * np.log(bins / 0.1)
    slopes, ratios = [], []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        sizes = [_least_size(partial(_share_well_balanced, n_bins, rng), 2 * n_bins) for n_bins in bins]
        slopes.append(np.polyfit(np.log(scale), np.log(sizes), 1)[0])
        ratios.append((sizes / scale)[-1] / (sizes / scale)[0])
    return [
        compare("Lemma 4.3: log n per log (B log(B / delta)), delta = .1", 1.0, *mean_interval(slopes), margin=0.15),
        compare("Lemma 4.3: the constant c at B = 160 over that at B = 10", 1.0, *mean_interval(ratios), margin=0.25),
    ]


def _share_well_balanced(n_bins, rng, n):
    held = 0
    for _ in range(100):
        edges = EqualMass(int(n_bins)).bin_edges(rng.random(n))
        held += len(edges) == n_bins + 1 and well_balanced_alpha(np.diff(edges)) <= 2
    return held / 100


def _least_size(share, low, wanted=0.9):
    """Return the least n, to 3 %, with share(n) >= wanted, for a share that grows with n."""
    high = low
    while share(high) < wanted:
        low, high = high, 2 * high
    while high > 1.03 * low:
        middle = int(np.sqrt(low * high))
        low, high = (low, middle) if share(middle) >= wanted else (middle, high)
        if high - low <= 1:
            break
    return high


def _binning_cost():
    """Lemma D.6: replacing outputs by their bin's mean costs at most 2 alpha / B of mean squared error."""
    ratios, gains = [], []
    for model in roelofs_models().values():
        scores, truth = _population(model)
        for n_bins in (5, 10, 50, 100):
            edges = EqualMass(n_bins).bin_edges(scores)
            bins = assign_bins(scores, edges)
            count = np.bincount(bins, minlength=len(edges) - 1)
            binned = (np.bincount(bins, scores) / np.bincount(bins))[bins]
            cost = np.mean((binned - truth) ** 2 - (scores - truth) ** 2)
            balance = max(1.0, count.max() * n_bins / len(scores))
            ratios.append(cost / binning_mse_bound(n_bins, balance=balance))
            gains.append(_error_of(binned, truth) - _error_of(scores, truth))
    worst, largest = max(ratios), max(gains)
    return [
        claim(
            "Lemma D.6: largest of the MSE cost of binning over 2 alpha / B",
            "at most 1",
            worst,
            worst,
            worst,
            at_most=1,
        ),
        claim(
            "Binned by its own mean, CE of the binned less of the map: largest",
            "at most 0",
            largest,
            largest,
            largest,
            at_most=1e-12,
        ),
    ]


def _error_of(predicted, truth):
    """Return the l2 calibration error of predictions, equal ones taken together."""
    distinct, level = np.unique(predicted, return_inverse=True)
    gap = distinct - np.bincount(level, truth) / np.bincount(level)
    return np.sqrt(np.bincount(level) @ gap**2 / len(predicted))


# --- Kumar et al., Section 5 ---


def _sample_sizes(repeats, quick):
    """Theorems 5.3 and 5.4: the n for an estimate within E^2 / 2 nine times of ten, by the number of bins."""
    error, rows = 0.05, []
    bins = np.array([512, 2048]) if quick else np.array([1024, 4096, 16384])
    for method, paper, theorem in (("plugin", 1.0, "5.3"), ("debiased", 0.5, "5.4")):
        slopes = []
        for seed in range(max(3, repeats // 4)):
            rng = np.random.default_rng(seed)
            sizes = [_least_size(partial(_share_close, method, n_bins, error, rng), n_bins) for n_bins in bins]
            slopes.append(np.polyfit(np.log(bins), np.log(sizes), 1)[0])
        quantity = f"Theorem {theorem}, {method}: log n per log B, B = {bins[0]} to {bins[-1]}"
        rows.append(compare(quantity, paper, *mean_interval(slopes), margin=0.1))
        if method == "plugin":
            quantity = "Theorem 5.3: the same, beyond its printed sqrt(B), a misprint"
            rows.append(claim(quantity, "above .5", *mean_interval(slopes), at_least=0.5))
    return rows


def _share_close(method, n_bins, error, rng, n, n_samples=120):
    """Return how often the squared estimate is within half of the truth, in a model of equal bins around 1/2."""
    score = 0.4 + 0.2 * (np.arange(n_bins) + 0.5) / n_bins
    truth = score + error * np.where(np.arange(n_bins) % 2, 1, -1)
    counts = rng.multinomial(n, np.full(n_bins, 1 / n_bins), size=n_samples)
    events = rng.binomial(counts, truth)
    filled = np.maximum(counts, 1)
    frequency = events / filled
    squares = (score - frequency) ** 2
    if method == "debiased":  # Definition 5.2; a bin of one row counts as 0
        squares = np.where(counts > 1, squares - frequency * (1 - frequency) / np.maximum(counts - 1, 1), 0)
    estimates = (counts * squares).sum(axis=1) / n
    return np.mean(np.abs(estimates - error**2) <= error**2 / 2)


def _draft_lemma():
    """CE(f) <= CE(g) + ||f - g||_2: true where f is a function of g, such as g binned; not for any two."""
    rng = np.random.default_rng(0)
    excess = []
    for model in roelofs_models().values():
        scores, truth = _population(model)
        levels = np.round(scores, 2)  # g takes values on a grid, f merges and moves them
        for _ in range(20):
            moved = rng.random(101)[np.round(100 * levels).astype(int) // rng.integers(1, 30)]
            distance = np.sqrt(np.mean((moved - levels) ** 2))
            excess.append(_error_of(moved, truth) - _error_of(levels, truth) - distance)
    worst = max(excess)
    # g = 1/2 is calibrated for a fair coin; f moves each forecast .01 towards the outcome, and can be told from it.
    outcome = np.arange(1000) % 2
    gap = _error_of(0.5 + 0.01 * (2 * outcome - 1), outcome) - 0.01
    return [
        claim(
            "Draft: CE(f) - CE(g) - |f - g|_2, f a function of g, largest",
            "at most 0",
            worst,
            worst,
            worst,
            at_most=1e-12,
        ),
        claim(
            "Draft: the same, f not a function of g, a counterexample", "(condition needed)", gap, gap, gap, at_least=0
        ),
    ]


# --- Gupta and Ramdas ---


def _example_1():
    scores, probability = np.array([0.2, 0.8]), np.array([0.3, 0.6])
    model = CalibrationModel(stats.rv_discrete(values=(scores, [0.9, 0.1])), lambda s: np.where(s < 0.5, *probability))
    # The population as four weighted rows: y = 0 and y = 1 at each score.
    y, rows = np.array([0, 0, 1, 1]), np.tile(scores, 2)
    weight = np.concatenate((1 - probability, probability)) * np.tile([0.9, 0.1], 2)
    marginal, conditional = (
        validity_curve(y, rows, epsilons=[0.1, 0.2], sample_weight=1000 * weight, conditional=kind)[1]
        for kind in (False, True)
    )
    values = {
        "l1 error": (0.11, model.true_calibration_error(1)),
        "l2 error": (0.114, model.true_calibration_error(2)),
        "V(.1): marginal calibration needs alpha >= .1": (0.9, marginal[0]),
        "V(.2)": (1.0, marginal[1]),
        "conditional V(.1)": (0.0, conditional[0]),
        "conditional V(.2)": (1.0, conditional[1]),
    }
    return [
        compare(f"Example 1: {name}", paper, value, value, value, margin=0.0005)
        for name, (paper, value) in values.items()
    ]


def _proposition_1(repeats):
    """Over random binned models: what conditional and marginal calibration say about the l_p errors."""
    rng = np.random.default_rng(1)
    conditional, marginal, ordered, area = [], [], [], []
    for _ in range(20 * repeats):
        n_bins = rng.integers(2, 12)
        share, gap = rng.dirichlet(np.ones(n_bins)), rng.beta(0.5, 3, size=n_bins)
        errors = [(share @ gap**norm) ** (1 / norm) for norm in (1, 2, 4)]
        conditional.append(max(errors) - gap.max())  # conditionally calibrated at epsilon = the largest gap
        ordered.append(max(errors[0] - errors[1], errors[1] - errors[2]))
        epsilons = np.linspace(0, 1, 201)
        validity = (gap <= epsilons[:, None]) @ share  # marginally (epsilon, 1 - V(epsilon))-calibrated
        marginal.append(np.max(errors[0] - epsilons - (1 - validity)))
        area.append(
            abs(1 - np.trapezoid((gap <= (grid := np.linspace(0, 1, 20_001))[:, None]) @ share, grid) - errors[0])
        )
    return [
        claim(f"Proposition 1: {name}", "at most 0", max(values), max(values), max(values), at_most=limit)
        for name, values, limit in (
            ("l_p error less the epsilon of conditional calibration", conditional, 1e-12),
            ("l1 error less epsilon + alpha of marginal calibration", marginal, 1e-12),
            ("l1 less l2 and l2 less l4 error", ordered, 1e-12),
            ("1 - area of the validity curve less l1 error (grid: 1e-3)", area, 1e-3),
        )
    ]


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
        errors = np.array([_binned_error(*population, EqualMass(int(b)).bin_edges(population[0]), 2) for b in bins])
        axes[1].plot(bins, errors / model.true_calibration_error(), "o-", label=name)
    axes[1].set(title="binned over true l2 error, equal mass", xlabel="bins", xscale="log", ylim=(0, 1.05))
    axes[1].legend(fontsize="x-small")
    figure.savefig(path)
