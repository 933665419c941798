"""Gupta and Ramdas (2021): their statements: Example 1, Proposition 1, Corollary 1, Theorems 3 and 4, and the prints.

Example 1 is a known population. Theorems 3 and 4 are bounds: their printed values are recomputed with the library's
functions, and simulated where a share of samples can break them.
"""

import numpy as np
from scipy import stats

from benchmarks.papers._intervals import exact, mean, share
from benchmarks.papers._rules import Rule, above, below, printed
from skcalib import UniformMassBinning
from skcalib.guarantees import conditional_epsilon, expected_error_bound, marginal_epsilon, sample_split_epsilon
from skcalib.metrics import validity_curve
from skcalib.simulation import CalibrationModel, PlattCurve

PAPER = "gupta"

_SHARE = (0.0, 1.0)
_EXAMPLE = {
    "l1 error": 0.11,
    "l2 error": 0.114,
    "V(.1), so that marginal calibration needs alpha >= .1": 0.9,
    "V(.2)": 1.0,
    "conditional V(.1)": 0.0,
    "conditional V(.2)": 1.0,
}
ROWS = {
    **{f"Example 1: {name}": Rule(f"{value:g}", value - 5e-4, value + 5e-4) for name, value in _EXAMPLE.items()},
    "Proposition 1: l_p error less the epsilon of conditional calibration": below(1e-12, "at most 0"),
    "Proposition 1: l1 error less epsilon + alpha of marginal calibration": below(1e-12, "at most 0"),
    "Proposition 1: l1 less l2 and l2 less l4 error": below(1e-12, "at most 0"),
    "Proposition 1: 1 - area of the validity curve less l1 error (grid: 1e-3)": below(1e-3, "0", possible=(0, 1)),
    "Corollary 1: epsilon at n = 2900, B = 10, alpha = .1": below(0.1, "at most .1"),
    "Theorem 4: marginal epsilon at n = 1500, B = 10, alpha = .1": below(0.1, "below .1"),
    "Theorem 3: share of samples with every bin within epsilon, n = 500, B = 10, alpha = .1": above(
        0.9, possible=_SHARE
    ),
    "Theorem 3: share of samples with every bin within half of epsilon": below(0.9, "(not promised)", possible=_SHARE),
    "Theorem 4: share of fresh rows within the marginal epsilon, n = 500, B = 10, alpha = .1": above(
        0.9, possible=_SHARE
    ),
    "Theorem 4: mean l1 error over sqrt(B / 2n)": below(1, "at most 1", possible=(0, np.inf)),
    "Theorem 4: mean l2 error over sqrt(B / 2n)": below(1, "at most 1", possible=(0, np.inf)),
    "Appendix B: fewest rows for which UMS is promised (.1, .1), B = 10": printed(17_500, margin=50),
    # what the formula in print gives, where the text rounds to 17,500
    "Appendix B: the same by 2-well-balanced bins, alpha / 2 each for their counts and labels": printed(
        17_873, margin=0.5
    ),
    "Appendix B: the same, alpha shared out for the fewest rows": printed(17_873, margin=0.5),
}


def measure(options):
    """Check all statements."""
    repeats = 200 if options.quick else options.repeats or 1000
    yield from _example_1()
    yield from _proposition_1(repeats)
    yield (
        "Corollary 1: epsilon at n = 2900, B = 10, alpha = .1",
        exact(conditional_epsilon(2900, 10, keep_boundary=True)),
    )
    yield "Theorem 4: marginal epsilon at n = 1500, B = 10, alpha = .1", exact(marginal_epsilon(1500, 10))
    yield from _promises(repeats)
    yield "Appendix B: fewest rows for which UMS is promised (.1, .1), B = 10", exact(_rows_for_split())
    quantity = "Appendix B: the same by 2-well-balanced bins, alpha / 2 each for their counts and labels"
    yield quantity, exact(_rows_by_balance(0.05))
    fewest = min(map(_rows_by_balance, np.linspace(0.001, 0.099, 99)))
    yield "Appendix B: the same, alpha shared out for the fewest rows", exact(fewest)
    if options.plot is not None:
        _plot(options.plot)


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
    errors = model.true_calibration_error(1), model.true_calibration_error(2)
    for name, value in zip(_EXAMPLE, (*errors, *marginal, *conditional), strict=True):
        yield f"Example 1: {name}", exact(value)


def _proposition_1(repeats):
    """Over random binned models: what conditional and marginal calibration say about the l_p errors."""
    rng = np.random.default_rng(1)
    conditional, marginal, ordered, area = [], [], [], []
    for _ in range(repeats):
        n_bins = rng.integers(2, 12)
        weight, gap = rng.dirichlet(np.ones(n_bins)), rng.beta(0.5, 3, size=n_bins)
        errors = [(weight @ gap**norm) ** (1 / norm) for norm in (1, 2, 4)]
        conditional.append(max(errors) - gap.max())  # conditionally calibrated at epsilon = the largest gap
        ordered.append(max(errors[0] - errors[1], errors[1] - errors[2]))
        epsilons = np.linspace(0, 1, 2001)
        validity = (gap <= epsilons[:, None]) @ weight  # marginally (epsilon, 1 - V(epsilon))-calibrated
        marginal.append(np.max(errors[0] - epsilons - (1 - validity)))
        area.append(abs(1 - np.trapezoid(validity, epsilons) - errors[0]))
    yield "Proposition 1: l_p error less the epsilon of conditional calibration", exact(max(conditional))
    yield "Proposition 1: l1 error less epsilon + alpha of marginal calibration", exact(max(marginal))
    yield "Proposition 1: l1 less l2 and l2 less l4 error", exact(max(ordered))
    yield "Proposition 1: 1 - area of the validity curve less l1 error (grid: 1e-3)", exact(max(area))


def _promises(repeats, n=500, n_bins=10):
    """Theorems 3 and 4 for uniform scores and a sigmoid truth, whose bin frequencies are sums over a fine grid."""
    curve = PlattCurve(2, 1)
    grid = (np.arange(50_000) + 0.5) / 50_000
    truth = curve(grid)
    gaps, shares = [], []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        scores = rng.random(n)
        model = UniformMassBinning(n_bins).fit(scores, rng.random(n) < curve(scores))
        bins = np.searchsorted(model.bin_edges_[1:-1], grid, side="right")
        count = np.bincount(bins, minlength=n_bins)
        predicted = np.bincount(bins, model.predict_proba(grid)[:, 1], n_bins) / count
        gaps.append(np.abs(predicted - np.bincount(bins, truth, n_bins) / count))
        shares.append(count / len(grid))
    gaps, shares = np.array(gaps), np.array(shares)
    epsilon, marginal = conditional_epsilon(n, n_bins), marginal_epsilon(n, n_bins)
    name = "Theorem 3: share of samples with every bin within"
    yield f"{name} epsilon, n = 500, B = 10, alpha = .1", share(gaps.max(axis=1) <= epsilon)
    yield f"{name} half of epsilon", share(gaps.max(axis=1) <= epsilon / 2)
    quantity = "Theorem 4: share of fresh rows within the marginal epsilon, n = 500, B = 10, alpha = .1"
    yield quantity, mean((shares * (gaps <= marginal)).sum(axis=1))
    bound = expected_error_bound(n, n_bins)
    for norm in (1, 2):
        errors = (shares * gaps**norm).sum(axis=1) ** (1 / norm)
        yield f"Theorem 4: mean l{norm} error over sqrt(B / 2n)", mean(errors / bound)


def _rows_for_split(n_bins=10, epsilon=0.1):
    """Return the fewest rows, half of them for the bins, whose split version the library promises epsilon at .9."""
    low, high = 4 * n_bins, 1 << 20
    while high - low > 1:
        middle = (low + high) // 2
        half = middle // 2
        low, high = (low, middle) if sample_split_epsilon(half, middle - half, n_bins) <= epsilon else (middle, high)
    return high


def _rows_by_balance(alpha_counts, n_bins=10, epsilon=0.1, alpha=0.1):
    """Return the fewest rows, half of them for the bins, if each bin has the probability 1 / (2 B) at least.

    Hoeffding's inequality for the counts of the other half, at `alpha_counts`, and for the labels, at the rest.
    """
    needed = np.log(2 * n_bins / (alpha - alpha_counts)) / (2 * epsilon**2)  # labels in each bin
    # the root m of m / (2 B) - sqrt(m log(B / alpha_counts) / 2) = needed
    slack = np.sqrt(np.log(n_bins / alpha_counts) / 2)
    return 2 * np.ceil((n_bins * (slack + np.sqrt(slack**2 + 2 * needed / n_bins))) ** 2)


def _plot(path):
    """Draw epsilon by n for several B: the promise of Theorem 3 at alpha = .1."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
    sizes = np.geomspace(200, 50_000, 60).astype(int)
    for n_bins in (5, 10, 20, 50):
        fits = sizes[sizes >= 4 * n_bins]
        ax.plot(fits, [conditional_epsilon(int(n), n_bins) for n in fits], label=f"B = {n_bins}")
    ax.set(xlabel="calibration rows n", ylabel="epsilon of Theorem 3, alpha = .1", xscale="log", ylim=(0, 0.3))
    ax.legend()
    figure.savefig(path)
