"""Gupta and Ramdas (2021), their statements: Example 1, Proposition 1, Lemmas 1 and 2,
Theorems 3 and 4, Corollary 1.

Example 1 and Figure 1a are known populations. The bounds are compared with the printed
formulas, written here a second time, and with the printed values; they are simulated
where a share of samples can break them. Algorithms 1 and 2 are written here line by
line. Appendix B is recomputed from its formulas, without the rounding of the text.
"""

import numpy as np
from scipy import stats

from benchmarks.papers._intervals import exact, mean, share
from benchmarks.papers._rules import Rule, above, below, printed
from skcalib import UniformMassBinning
from skcalib.binning import UniqueScores
from skcalib.guarantees import (
    conditional_epsilon,
    expected_error_bound,
    marginal_epsilon,
    sample_split_epsilon,
)
from skcalib.metrics import calibration_error, validity_curve
from skcalib.simulation import CalibrationModel, PlattCurve

PAPER = "gupta"

_SHARE = (0.0, 1.0)
_TIED_TRUTH = PlattCurve(2, 1)
_EXAMPLE = {
    "l1 error": 0.11,
    "l2 error": 0.114,
    "V(.1), so that marginal calibration needs alpha >= .1": 0.9,
    "V(.2)": 1.0,
    "conditional V(.1)": 0.0,
    "conditional V(.2)": 1.0,
}
_SAME = Rule("0", -1e-12, 1e-12, 1e-9)
# |event frequency - forecast| of ten bins
_FIGURE_1A = 1e-3 * np.array([1.5, 2, 8, 16, 17, 19, 22, 29, 39, 71])
_FIGURE_2 = ((1000, 5, 0.12), (5000, 10, 0.08), (20_000, 22, 0.06))
ROWS = {
    **{
        f"Example 1: {name}": Rule(f"{value:g}", value - 5e-4, value + 5e-4)
        for name, value in _EXAMPLE.items()
    },
    "Proposition 1: l_p error minus the epsilon of conditional calibration": below(
        1e-12, "at most 0"
    ),
    "Proposition 1: l1 error minus epsilon + alpha of marginal calibration": below(
        1e-12, "(ours) at most 0"
    ),
    "Proposition 1: l1 minus l2 and l2 minus l4 error": below(1e-12, "at most 0"),
    "Section 2.1: 1 - area of the validity curve minus l1 error (grid: 1e-3)": below(
        1e-3, "0", possible=(0, 1)
    ),
    "Figure 1a: mean of the ten printed errors, the l1 error": printed(
        0.023, margin=1e-3
    ),
    "Figure 1a: V(.04) of these bins": printed(
        0.9, margin=1e-9, width=1e-6, possible=_SHARE
    ),
    "Figure 1a: V(.03) of these bins": printed(
        0.8, margin=1e-9, width=1e-6, possible=_SHARE
    ),
    "Section 3: epsilon of one bin of 150 rows, alpha = .1": printed(
        0.1, margin=5e-4, width=1e-3
    ),
    "Lemma 1: share of samples whose scores between two order statistics fail a test at .05": printed(  # noqa: E501
        0.05, margin=0.005, width=0.03, possible=_SHARE
    ),
    "Lemma 2: correlation of the mean ranks within neighbouring bins": Rule(
        "0", -0.03, 0.03, 0.1
    ),
    "Algorithm 1: library minus the lines as printed, largest difference of a forecast, 40 samples": (  # noqa: E501
        _SAME
    ),
    "Algorithm 2: share of samples with tied scores and every bin within epsilon, n = 500, B = 10": above(  # noqa: E501
        0.9, possible=_SHARE
    ),
    "Theorem 3: library minus eq. (8), largest difference": _SAME,
    "Corollary 1: library minus eq. (10), largest difference": _SAME,
    "Theorem 4: library minus eq. (11), marginal, largest difference": _SAME,
    "Theorem 4: library minus sqrt(B / 2n), largest difference": _SAME,
    "Corollary 1: epsilon at n = 2900, B = 10, alpha = .1": Rule(
        "below .1, for a round n", 0.098, 0.1
    ),
    "Corollary 1: fewest rows in a bin with eq. (8) at most .1, alpha = .5, B = 5": (
        Rule("from 150", 150, 152)
    ),
    "Corollary 1: largest additional term for these": printed(
        0.007, margin=5e-4, width=1e-3
    ),
    "Theorem 4: marginal epsilon at n = 1500, B = 10, alpha = .1": Rule(
        "below .1, for a round n", 0.098, 0.1
    ),
    **{
        f"Figure 2: epsilon of Theorem 3, n = {n}, B = {n_bins}": Rule(
            f"at most {limit:g}", limit - 0.02, limit
        )
        for n, n_bins, limit in _FIGURE_2
    },
    "Theorem 3: share of samples with every bin within epsilon, n = 500, B = 10, alpha = .1": above(  # noqa: E501
        0.9, possible=_SHARE
    ),
    "Theorem 3: share of samples with every bin within half of epsilon": below(
        0.9, "(not claimed)", possible=_SHARE
    ),
    "Theorem 4: share of fresh rows within the marginal epsilon, n = 500, B = 10, alpha = .1": above(  # noqa: E501
        0.9, possible=_SHARE
    ),
    "Theorem 4: mean l1 error over sqrt(B / 2n)": below(
        1, "at most 1", possible=(0, np.inf)
    ),
    "Theorem 4: mean l2 error over sqrt(B / 2n)": below(
        1, "at most 1", possible=(0, np.inf)
    ),
    "Appendix B: labels in a bin, UMS, (.1, .1), B = 10": printed(
        300, margin=0.5, width=2
    ),
    "Appendix B: rows of the first part": printed(8000, margin=500, width=1),
    "Appendix B: rows of the second part": printed(9500, margin=100, width=1),
    "Appendix B: rows of both, where the text rounds to 17,500": printed(
        17_500, margin=500, width=1
    ),
    "Appendix B: rows of both by the exact law of the counts": below(
        17_500, "less than 17,500", possible=(20, np.inf)
    ),
}


def measure(options):
    """Check all statements."""
    repeats = options.repeats or (100 if options.quick else 1000)
    yield from _example_1()
    yield from _proposition_1(repeats)
    yield from _figure_1a()
    yield from _order_statistics(10 * repeats)
    yield from _algorithms(repeats)
    yield from _formulas()
    yield from _promises(repeats)
    yield from _appendix_b()
    if options.plot is not None:
        _plot(options.plot)


def _example_1():
    scores, probability = np.array([0.2, 0.8]), np.array([0.3, 0.6])
    model = CalibrationModel(
        stats.rv_discrete(values=(scores, [0.9, 0.1])),
        lambda s: np.where(s < 0.5, *probability),
    )
    # The population as four weighted rows: y = 0 and y = 1 at each score.
    y, rows = np.array([0, 0, 1, 1]), np.tile(scores, 2)
    weight = np.concatenate((1 - probability, probability)) * np.tile([0.9, 0.1], 2)
    marginal, conditional = (
        validity_curve(
            y, rows, epsilons=[0.1, 0.2], sample_weight=1000 * weight, conditional=kind
        )[1]
        for kind in (False, True)
    )
    errors = model.true_calibration_error(1), model.true_calibration_error(2)
    for name, value in zip(_EXAMPLE, (*errors, *marginal, *conditional), strict=True):
        yield f"Example 1: {name}", exact(value)


def _proposition_1(repeats):
    """Over random binned models: what conditional and marginal calibration say about
    the l_p errors.
    """
    rng = np.random.default_rng(1)
    conditional, marginal, ordered, area = [], [], [], []
    for _ in range(repeats):
        n_bins = rng.integers(2, 12)
        weight, gap = rng.dirichlet(np.ones(n_bins)), rng.beta(0.5, 3, size=n_bins)
        errors = [(weight @ gap**norm) ** (1 / norm) for norm in (1, 2, 4)]
        # conditionally calibrated at epsilon = the largest gap
        conditional.append(max(errors) - gap.max())
        ordered.append(max(errors[0] - errors[1], errors[1] - errors[2]))
        epsilons = np.linspace(0, 1, 2001)
        # marginally (epsilon, 1 - V(epsilon))-calibrated
        validity = (gap <= epsilons[:, None]) @ weight
        marginal.append(np.max(errors[0] - epsilons - (1 - validity)))
        area.append(abs(1 - np.trapezoid(validity, epsilons) - errors[0]))
    yield (
        "Proposition 1: l_p error minus the epsilon of conditional calibration",
        exact(max(conditional)),
    )
    yield (
        "Proposition 1: l1 error minus epsilon + alpha of marginal calibration",
        exact(max(marginal)),
    )
    yield "Proposition 1: l1 minus l2 and l2 minus l4 error", exact(max(ordered))
    yield (
        "Section 2.1: 1 - area of the validity curve minus l1 error (grid: 1e-3)",
        exact(max(area)),
    )


def _promises(repeats, n=500, n_bins=10):
    """Theorems 3 and 4 for uniform scores and a sigmoid truth, whose bin frequencies
    are sums over a fine grid.
    """
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
    yield (
        f"{name} epsilon, n = 500, B = 10, alpha = .1",
        share(gaps.max(axis=1) <= epsilon),
    )
    yield f"{name} half of epsilon", share(gaps.max(axis=1) <= epsilon / 2)
    quantity = (
        "Theorem 4: share of fresh rows within the marginal epsilon, n = 500, B = 10,"
        " alpha = .1"
    )
    yield quantity, mean((shares * (gaps <= marginal)).sum(axis=1))
    bound = expected_error_bound(n, n_bins)
    for norm in (1, 2):
        errors = (shares * gaps**norm).sum(axis=1) ** (1 / norm)
        yield f"Theorem 4: mean l{norm} error over sqrt(B / 2n)", mean(errors / bound)


# --- Figure 1a, lemmas, algorithms ---


def _figure_1a():
    """Ten bins of equal mass whose forecasts miss the event frequency by the printed
    errors.
    """
    forecast = np.linspace(0.1, 0.9, 10)
    y, rows = np.repeat([0, 1], 10), np.tile(forecast, 2)
    weight = 1e6 * np.concatenate((1 - forecast - _FIGURE_1A, forecast + _FIGURE_1A))
    value = exact(
        calibration_error(
            y,
            rows,
            norm=1,
            method="plugin",
            binning=UniqueScores(),
            sample_weight=weight,
        )
    )
    yield "Figure 1a: mean of the ten printed errors, the l1 error", value
    # the printed errors are rounded: half of the last digit is allowed for
    validity = validity_curve(y, rows, epsilons=[0.0305, 0.0405], sample_weight=weight)[
        1
    ]
    for epsilon, level in zip((0.03, 0.04), validity, strict=True):
        yield f"Figure 1a: V({f'{epsilon:g}'[1:]}) of these bins", exact(level)


def _order_statistics(repeats, n=101, n_bins=4):
    """Lemmas 1 and 2: given the scores at the cuts, those between are independent draws
    from what lies between.
    """
    rng = np.random.default_rng(2)
    cuts = np.ceil(np.arange(n_bins + 1) * (n + 1) / n_bins).astype(int)
    scores = np.sort(rng.random((repeats, n)), axis=1)
    bounds = np.concatenate(
        (np.zeros((repeats, 1)), scores, np.ones((repeats, 1))), axis=1
    )[:, cuts]
    place = [
        (scores[:, low : high - 1] - bounds[:, [b]])
        / (bounds[:, [b + 1]] - bounds[:, [b]])
        for b, (low, high) in enumerate(zip(cuts, cuts[1:], strict=False))
    ]  # order statistics low + 1 to high - 1 of each bin, as places in (0, 1)
    rejected = [stats.kstest(row, "uniform").pvalue <= 0.05 for row in place[1]]
    yield (
        (
            "Lemma 1: share of samples whose scores between two order statistics fail a"
            " test at .05"
        ),
        share(rejected),
    )
    means = [part.mean(axis=1) for part in place]
    correlations = [
        np.corrcoef(*pair)[0, 1] for pair in zip(means, means[1:], strict=False)
    ]
    value, half = np.mean(correlations), 1.96 / np.sqrt(repeats * len(correlations))
    quantity = "Lemma 2: correlation of the mean ranks within neighbouring bins"
    yield quantity, (value, value - half, value + half)


def _printed_algorithm(scores, labels, n_bins, fresh):
    """Algorithm 1, line by line."""
    n, order = len(scores), np.argsort(scores)
    # counted from 1
    S, Y = (
        np.concatenate(([0], scores[order], [1])),
        np.concatenate(([np.nan], labels[order])),
    )
    A = [0, *(int(np.ceil(b * (n + 1) / n_bins)) for b in range(1, n_bins)), n + 1]
    values = [Y[A[b - 1] + 1 : A[b]].mean() for b in range(1, n_bins + 1)]
    return sum(
        value * ((S[A[b]] <= fresh) & (fresh < S[A[b + 1]]))
        for b, value in enumerate(values)
    )


def _algorithms(repeats):
    rng, gaps = np.random.default_rng(3), [0.0]
    fresh = rng.random(200)
    for _ in range(40):
        n, n_bins = rng.integers(40, 300), int(rng.integers(1, 15))
        scores = rng.random(n)
        labels = (rng.random(n) < scores).astype(float)
        labels[:2] = 0, 1
        found = (
            UniformMassBinning(n_bins).fit(scores, labels).predict_proba(fresh)[:, 1]
        )
        gaps += list(found - _printed_algorithm(scores, labels, n_bins, fresh))
    quantity = (
        "Algorithm 1: library minus the lines as printed, largest difference of a"
        " forecast, 40 samples"
    )
    yield quantity, exact(max(gaps, key=abs))
    # Algorithm 2: scores on eleven levels, ties broken at random; truth of the
    # forecasts from many fresh rows
    epsilon, held = conditional_epsilon(500, 10), []
    for seed in range(repeats // 4):
        scores, fresh = (
            np.random.default_rng([4, seed, n]).integers(0, 11, n) / 10
            for n in (500, 100_000)
        )
        model = UniformMassBinning(10, randomize=True, random_state=seed)
        labels = np.random.default_rng([5, seed]).random(500) < _TIED_TRUTH(scores)
        forecast = model.fit(scores, labels).predict_proba(fresh)[:, 1]
        distinct, level = np.unique(forecast, return_inverse=True)
        held.append(
            np.abs(
                np.bincount(level, _TIED_TRUTH(fresh)) / np.bincount(level) - distinct
            ).max()
            <= epsilon
        )
    yield (
        (
            "Algorithm 2: share of samples with tied scores and every bin within"
            " epsilon, n = 500, B = 10"
        ),
        share(held),
    )


# --- printed formulas and values ---


def _formulas():
    cases = [
        (n, b, level)
        for n in (60, 997, 20_000)
        for b in (1, 5, 22)
        for level in (0.5, 0.9, 0.99)
    ]
    gaps = {key: [] for key in ("Theorem 3", "Corollary 1", "Theorem 4", "expected")}
    for n, b, level in cases:
        m, alpha = n // b - 1, 1 - level
        eq_8 = np.sqrt(np.log(2 * b / alpha) / (2 * m))
        gaps["Theorem 3"].append(
            conditional_epsilon(n, b, confidence_level=level) - eq_8
        )
        found = conditional_epsilon(n, b, confidence_level=level, keep_boundary=True)
        gaps["Corollary 1"].append(found - (eq_8 + 1 / (n // b)))
        found = marginal_epsilon(n, b, confidence_level=level)
        gaps["Theorem 4"].append(found - np.sqrt(np.log(2 / alpha) / (2 * m)))
        gaps["expected"].append(expected_error_bound(n, b) - np.sqrt(b / (2 * n)))
    for key, quantity in (
        ("Theorem 3", "Theorem 3: library minus eq. (8), largest difference"),
        ("Corollary 1", "Corollary 1: library minus eq. (10), largest difference"),
        (
            "Theorem 4",
            "Theorem 4: library minus eq. (11), marginal, largest difference",
        ),
        ("expected", "Theorem 4: library minus sqrt(B / 2n), largest difference"),
    ):
        yield quantity, exact(max(gaps[key], key=abs))
    # one bin keeps all rows: the lemma's m is n there, not n - 1
    yield (
        "Section 3: epsilon of one bin of 150 rows, alpha = .1",
        exact(conditional_epsilon(151, 1)),
    )
    quantity = "Corollary 1: epsilon at n = 2900, B = 10, alpha = .1"
    yield quantity, exact(conditional_epsilon(2900, 10, keep_boundary=True))
    rows = next(
        m
        for m in range(2, 1000)
        if conditional_epsilon(5 * m, 5, confidence_level=0.5) <= 0.1
    )
    yield (
        "Corollary 1: fewest rows in a bin with eq. (8) at most .1, alpha = .5, B = 5",
        exact(rows),
    )
    added = conditional_epsilon(5 * rows, 5, confidence_level=0.5, keep_boundary=True)
    added -= conditional_epsilon(5 * rows, 5, confidence_level=0.5)
    yield "Corollary 1: largest additional term for these", exact(added)
    yield (
        "Theorem 4: marginal epsilon at n = 1500, B = 10, alpha = .1",
        exact(marginal_epsilon(1500, 10)),
    )
    for n, n_bins, _ in _FIGURE_2:
        quantity = f"Figure 2: epsilon of Theorem 3, n = {n}, B = {n_bins}"
        yield quantity, exact(conditional_epsilon(n, n_bins))


def _appendix_b(n_bins=10, epsilon=0.1, alpha=0.1):
    """The rows that UMS needs: alpha / 2 for the labels, alpha / 4 each for the bins
    and their counts.
    """
    labels = np.log(2 * n_bins / (alpha / 2)) / (2 * epsilon**2)
    yield "Appendix B: labels in a bin, UMS, (.1, .1), B = 10", exact(labels)
    first = 100 * n_bins * np.log(10 * n_bins / (alpha / 4))
    yield "Appendix B: rows of the first part", exact(first)
    # the root of n' / (2 B) - sqrt(n' log(2 B / delta) / 2) = labels; the text prints
    # n' / log for n' log
    slack = np.sqrt(np.log(2 * n_bins / (alpha / 4)) / 2)
    second = (n_bins * (slack + np.sqrt(slack**2 + 2 * labels / n_bins))) ** 2
    yield "Appendix B: rows of the second part", exact(second)
    yield (
        "Appendix B: rows of both, where the text rounds to 17,500",
        exact(first + second),
    )
    yield (
        "Appendix B: rows of both by the exact law of the counts",
        exact(_rows_for_split()),
    )


def _rows_for_split(n_bins=10, epsilon=0.1):
    """Return the fewest rows, half of them for the bins, whose split version the
    library promises epsilon at .9.
    """
    low, high = 4 * n_bins, 1 << 20
    while high - low > 1:
        middle = (low + high) // 2
        half = middle // 2
        low, high = (
            (low, middle)
            if sample_split_epsilon(half, middle - half, n_bins) <= epsilon
            else (middle, high)
        )
    return high


def _plot(path):
    """Draw epsilon by n for several B: the promise of Theorem 3 at alpha = .1."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
    sizes = np.geomspace(200, 50_000, 60).astype(int)
    for n_bins in (5, 10, 20, 50):
        fits = sizes[sizes >= 4 * n_bins]
        ax.plot(
            fits,
            [conditional_epsilon(int(n), n_bins) for n in fits],
            label=f"B = {n_bins}",
        )
    ax.set(
        xlabel="calibration rows n",
        ylabel="epsilon of Theorem 3, alpha = .1",
        xscale="log",
        ylim=(0, 0.3),
    )
    ax.legend()
    figure.savefig(path)
