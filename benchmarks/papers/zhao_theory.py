"""Zhao, Chen and Oymak (2020): Theorem 3.1, Lemma 3.3, Theorem 4.1, Corollary 4.2,
Algorithm 1 and Section 5.4.

Theorem 3.1: the distribution of its proof, v, -v and (u + v) / sqrt(2) for orthogonal
unit vectors, labels without noise. The last point is rare: it has probability 1 / (20
n). The linear classifier with weights of norm R at most, and an intercept, is sure of
all three points and wrong at the rare one if a sample lacks it; with it the accuracy is
1. The theorem prints 30 n rows for the larger sample, of which 1 - exp(-30/20) = .777
hold the rare point; its proof has 50 n, of which .918 do. It claims 9/10.

Theorem 4.1 and Corollary 4.2: the printed bounds, for a loss within [0, 1], and those
of the library, which have proofs and constants of their own. The print separates the
two cases of Theorem 4.1 at 1 / (8 sqrt(n) L_f L_c), the sentence after it at 8 /
(sqrt(n) L_f L_c).
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logsumexp
from sklearn.linear_model import LogisticRegression

from benchmarks.papers._class_temperatures import per_class_temperature_bound
from benchmarks.papers._intervals import exact, mean, share
from benchmarks.papers._rules import Rule, above, below, printed
from skcalib import ClasswiseTemperatureScaling
from skcalib.binning import FixedEdges
from skcalib.guarantees import classwise_temperature_bound
from skcalib.metrics import expected_calibration_error, groupwise_calibration_error

PAPER = "zhao"

_SHARE = (0.0, 1.0)
_N, _EPSILON = 100, 0.01
_POINTS = np.array([[1.0, 0.0], [-1.0, 0.0], [0.5**0.5, 0.5**0.5]])
_LABELS = np.array([1.0, 0.0, 0.0])
_RADIUS = 6 * np.log(50 * _N + 1 / _EPSILON)  # of the weights, as in the theorem
_RARE = 2
_NOISE, _TEST_NOISE = {"+": 0.3, "-": 0.1}, 0.05
_BOUNDS = (0.5, 2.0)

_HOLDS = above(0.9, "at least 1 - delta = .9", possible=_SHARE)
ROWS = {
    "Theorem 3.1: largest norm of an input": printed(1, margin=1e-9, width=1e-6),
    "Theorem 3.1: n rows, share of samples whose classifier is overconfident": above(
        0.9, "at least 9/10", possible=_SHARE
    ),
    "Theorem 3.1: n rows, without the rare point, least confidence": above(
        1 - _EPSILON, "at least 1 - eps", possible=_SHARE
    ),
    "Theorem 3.1: n rows, without the rare point, accuracy minus 1 - 1/(20 n)": below(
        1e-12, "at most 0"
    ),
    "Theorem 3.1: n rows, share of samples with accuracy 1": below(
        0.1, "at most 1/10", possible=_SHARE
    ),
    "Theorem 3.1: 30 n rows, share of samples with accuracy 1": above(
        0.9, "at least 9/10, as printed", possible=_SHARE
    ),
    "Theorem 3.1: 50 n rows, share of samples with accuracy 1": above(
        0.9, "at least 9/10, as proved", possible=_SHARE
    ),
    "Theorem 3.1: 30 n rows, with the rare point, least confidence": above(
        1 - _EPSILON, "at least 1 - eps", possible=_SHARE
    ),
    "Theorem 3.1: 50 n rows, with the rare point, least confidence": above(
        1 - _EPSILON, "at least 1 - eps", possible=_SHARE
    ),
    **{
        f"Lemma 3.3: confidence where {sign} is predicted": printed(
            1 - noise, margin=0.005, width=0.03, possible=_SHARE
        )
        for sign, noise in _NOISE.items()
    },
    "Lemma 3.3: test accuracy": printed(
        1 - _TEST_NOISE, margin=0.005, width=0.03, possible=_SHARE
    ),
    "Theorem 4.1: share of samples whose fitted temperatures are within the printed bound, Gamma = 0": (  # noqa: E501
        _HOLDS
    ),
    "Theorem 4.1: share of samples whose fitted temperatures are within the printed bound, Gamma = .3": (  # noqa: E501
        _HOLDS
    ),
    "Theorem 4.1: printed bound at K = 100 over that at K = 10, Gamma = .3": Rule(
        "n linear in K: about sqrt(10)", 2, 3.3
    ),
    "Theorem 4.1: library's bound, share of samples within it": _HOLDS,
    "Corollary 4.2: share of samples within the printed bound in each class": above(
        0.7, "at least 1 - K delta = .7", possible=_SHARE
    ),
    "Corollary 4.2: printed bound for p_min = .05 over that for p_min = .2": printed(
        2, margin=1e-9, width=1e-6
    ),
    "Corollary 4.2: library's bound, share of samples within it in each class": _HOLDS,
    "Corollary 4.2: library's bound for p_min = .05 over that for p_min = .2": above(
        1.5, "about sqrt(.2 / .05) = 2"
    ),
    "Algorithm 1: library's inverse temperatures minus those of slices fitted separately, largest difference": Rule(  # noqa: E501
        "0", -1e-4, 1e-4
    ),
    "Algorithm 1: share of rows whose predicted class changes": below(
        1e-12, "none", possible=_SHARE
    ),
    "Section 5.4: ECE of each class, TS, largest": printed(
        0.08, margin=1e-9, width=1e-6
    ),
    "Section 5.4: ECE of both classes together, TS": printed(
        0, margin=1e-9, width=1e-6
    ),
    "Section 5.4: ECE of each class, CTS, largest": printed(
        0.02, margin=1e-9, width=1e-6
    ),
    "Section 5.4: ECE of both classes together, CTS": printed(
        0.02, margin=1e-9, width=1e-6
    ),
}


def measure(options):
    """Check all statements."""
    yield from _theorem_31(3000 if options.quick else 10 * (options.repeats or 1000))
    yield from _lemma_33(20)
    yield from _printed_bounds(60 if options.quick else 300)
    yield from _bounds(100 if options.quick else 300)
    yield from _slices()
    yield from _worked_case()


def _theorem_31(repeats):
    yield (
        "Theorem 3.1: largest norm of an input",
        exact(np.linalg.norm(_POINTS, axis=1).max()),
    )
    rng = np.random.default_rng(0)
    found = {}
    for times in (1, 30, 50):
        counts = rng.binomial(times * _N, 1 / (20 * _N), size=repeats)
        distinct, of_sample = np.unique(counts, return_inverse=True)
        # one fit for each number of rare points; the others are shared evenly
        fits = np.array(
            [_confidence_and_accuracy(count, times * _N) for count in distinct]
        )
        found[times] = (*fits[of_sample].T, counts > 0)
    confidence, accuracy, rare = found[1]
    over = (confidence >= 1 - _EPSILON) & (accuracy <= 1 - 1 / (20 * _N) + 1e-12)
    yield (
        "Theorem 3.1: n rows, share of samples whose classifier is overconfident",
        share(over),
    )
    yield (
        "Theorem 3.1: n rows, without the rare point, least confidence",
        exact(confidence[~rare].min()),
    )
    quantity = (
        "Theorem 3.1: n rows, without the rare point, accuracy minus 1 - 1/(20 n)"
    )
    yield quantity, exact(accuracy[~rare].max() - (1 - 1 / (20 * _N)))
    for times in (1, 30, 50):
        rows = "n" if times == 1 else f"{times} n"
        confidence, accuracy, rare = found[times]
        yield (
            f"Theorem 3.1: {rows} rows, share of samples with accuracy 1",
            share(accuracy == 1),
        )
        if times > 1:
            yield (
                f"Theorem 3.1: {rows} rows, with the rare point, least confidence",
                exact(confidence[rare].min()),
            )


def _confidence_and_accuracy(n_rare, n_rows):
    """Return the least confidence and the accuracy of a linear classifier of a sample
    with `n_rare` rare points.
    """
    weight = np.array([(n_rows - n_rare) / 2, (n_rows - n_rare) / 2, n_rare])
    with np.errstate(divide="ignore"):
        log_weight = np.log(weight)
    sign = 2 * _LABELS - 1

    # the points can be separated: the best weights have norm R, at some angle
    def log_loss(parameters):
        angle, intercept = parameters
        margin = sign * (
            _RADIUS * _POINTS @ np.array([np.cos(angle), np.sin(angle)]) + intercept
        )
        return logsumexp(log_weight + np.log(np.logaddexp(0, -margin)))

    starts = [(angle, 0.0) for angle in (0.0, -0.6, -1.2)]
    best = min(
        (minimize(log_loss, start, method="Nelder-Mead") for start in starts),
        key=lambda found: found.fun,
    )
    angle, intercept = best.x
    proba = expit(
        _RADIUS * _POINTS @ np.array([np.cos(angle), np.sin(angle)]) + intercept
    )
    share_of_point = np.array(
        [(1 - 1 / (20 * _N)) / 2, (1 - 1 / (20 * _N)) / 2, 1 / (20 * _N)]
    )
    wrong = share_of_point[(proba > 0.5) != _LABELS].sum()
    return np.maximum(proba, 1 - proba).min(), 1 - wrong


def _lemma_33(repeats):
    """Confidence and accuracy of a linear classifier of two far clusters, trained with
    label noise.
    """
    confidence, accuracy = {"+": [], "-": []}, []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        cluster = rng.random(6000) < 0.5
        X = rng.normal(scale=0.1, size=(6000, 5)) + np.where(cluster, 1, -1)[:, None]
        train, test = np.arange(6000) < 4000, np.arange(6000) >= 4000
        flip = rng.random(6000) < np.where(
            train, np.where(cluster, _NOISE["+"], _NOISE["-"]), _TEST_NOISE
        )
        y = cluster ^ flip
        model = LogisticRegression(C=1e6, max_iter=1000).fit(X[train], y[train])
        proba = model.predict_proba(X[test])
        predicted = proba[:, 1] > 0.5
        for sign, side in (("+", True), ("-", False)):
            confidence[sign].append(proba.max(axis=1)[predicted == side].mean())
        accuracy.append(np.mean(predicted == y[test]))
    for sign in _NOISE:
        yield f"Lemma 3.3: confidence where {sign} is predicted", mean(confidence[sign])
    yield "Lemma 3.3: test accuracy", mean(accuracy)


def _bounds(repeats, n=1000, p_min=0.2):
    """The deviation of the mean loss from its expectation, largest over temperatures,
    against the bounds.
    """
    rng = np.random.default_rng(0)
    temperatures = np.linspace(*_BOUNDS, 21)
    population = _losses(*_draw(rng, 200_000, p_min), temperatures)
    pooled, classes = [], []
    pooled_bound = classwise_temperature_bound(n, 3, 0.0, _BOUNDS, logit_range=3.0)
    class_bound = per_class_temperature_bound(n, 3, p_min, _BOUNDS, logit_range=3.0)
    for _ in range(repeats):
        losses = _losses(*_draw(rng, n, p_min), temperatures)
        gaps = {key: np.abs(losses[key] - population[key]).max() for key in losses}
        pooled.append(gaps.pop("all") <= pooled_bound)
        classes.append(max(gaps.values()) <= class_bound)
    yield "Theorem 4.1: library's bound, share of samples within it", share(pooled)
    yield (
        "Corollary 4.2: library's bound, share of samples within it in each class",
        share(classes),
    )
    ratio = np.divide(
        *(
            per_class_temperature_bound(10_000, 5, p, _BOUNDS, logit_range=3.0)
            for p in (0.05, 0.2)
        )
    )
    yield (
        "Corollary 4.2: library's bound for p_min = .05 over that for p_min = .2",
        exact(ratio),
    )


def _printed_bound(n, n_classes, gamma, length, lipschitz, delta=0.1):
    """Theorem 4.1 as printed: what the fitted temperatures lose at most, L_f =
    `length`, L_c = `lipschitz`.
    """
    root, width = np.sqrt(n) * length * lipschitz, _BOUNDS[1] - _BOUNDS[0]
    if gamma <= 1 / (8 * root):
        inner = np.log(1 + 4 * width * root)
    else:
        inner = np.log(width / (2 * gamma)) + (n_classes + 1) * np.log(8 * gamma * root)
    return 8 * np.sqrt(np.log(2 / delta) / n) + 4 * np.sqrt(inner / n)


def _printed_corollary(n, p_min, length, lipschitz, delta=0.1):
    """Corollary 4.2 as printed."""
    inner = np.log(1 + 4 * (_BOUNDS[1] - _BOUNDS[0]) * np.sqrt(n) * length * lipschitz)
    return 6 * np.sqrt(inner / (p_min * n)) + 12 * np.sqrt(
        np.log(2 / delta) / (p_min * n)
    )


def _printed_bounds(repeats, n=1000, p_min=0.2):
    """Fit by half the Brier loss, which is within [0, 1] and 1-Lipschitz in the
    forecast, on a grid of temperatures.
    """
    rng = np.random.default_rng(1)
    grid = np.linspace(*_BOUNDS, 31)
    # rows: predicted class; its share of the loss
    truth = _brier_by_class(*_draw(rng, 200_000, p_min), grid)
    length = 3 * np.sqrt(3)  # of logits within [0, 3]
    held = {0.0: [], 0.3: [], "classes": []}
    for _ in range(repeats):
        logits, labels = _draw(rng, n, p_min)
        sample = _brier_by_class(logits, labels, grid)
        for gamma in (0.0, 0.3):
            excess = truth[np.arange(3), _constrained(sample, grid, gamma)].sum()
            excess -= truth[np.arange(3), _constrained(truth, grid, gamma)].sum()
            held[gamma].append(excess <= _printed_bound(n, 3, gamma, length, 1.0))
        # at least each class's excess
        gaps = (truth[np.arange(3), sample.argmin(axis=1)] - truth.min(axis=1)) / p_min
        held["classes"].append(gaps.max() <= _printed_corollary(n, p_min, length, 1.0))
    for gamma, shown in ((0.0, "0"), (0.3, ".3")):
        quantity = (
            "Theorem 4.1: share of samples whose fitted temperatures are within the"
            " printed bound, Gamma = "
        )
        yield quantity + shown, share(held[gamma])
    values = [_printed_bound(n, k, 0.3, length, 1.0) for k in (100, 10)]
    yield (
        "Theorem 4.1: printed bound at K = 100 over that at K = 10, Gamma = .3",
        exact(values[0] / values[1]),
    )
    yield (
        "Corollary 4.2: share of samples within the printed bound in each class",
        share(held["classes"]),
    )
    ratio = np.divide(*(_printed_corollary(n, p, length, 1.0) for p in (0.05, 0.2)))
    yield (
        "Corollary 4.2: printed bound for p_min = .05 over that for p_min = .2",
        exact(ratio),
    )


def _brier_by_class(logits, labels, grid):
    """Return half the Brier loss by predicted class and inverse temperature, as parts
    of the mean over all rows.
    """
    rows, predicted = np.arange(len(labels)), logits.argmax(axis=1)
    table = []
    for a in grid:
        proba = np.exp(log_softmax(a * logits, axis=1))
        loss = ((proba**2).sum(axis=1) - 2 * proba[rows, labels] + 1) / 2
        table.append(np.bincount(predicted, loss, 3) / len(labels))
    return np.transpose(table)


def _constrained(losses, grid, gamma):
    """Return the best grid positions, by class, within gamma of a shared inverse
    temperature.
    """
    best, chosen = np.inf, None
    for centre in grid:
        allowed = np.abs(grid - centre) <= gamma + 1e-9
        found = np.where(allowed, losses, np.inf).argmin(axis=1)
        total = losses[np.arange(len(losses)), found].sum()
        if total < best:
            best, chosen = total, found
    return chosen


# --- Algorithm 1 and Section 5.4 ---


def _slices():
    """Algorithm 1 with Gamma = inf: the rows predicted as each class, calibrated
    apart.
    """
    logits, labels = _draw(np.random.default_rng(2), 3000, 0.2)
    model = ClasswiseTemperatureScaling(np.inf, input="logit", clip=None).fit(
        logits, labels
    )
    predicted, grid = logits.argmax(axis=1), np.linspace(0.2, 3, 28_001)
    gaps = []
    for k in range(3):
        rows = predicted == k
        loss = [
            -log_softmax(a * logits[rows], axis=1)[
                np.arange(rows.sum()), labels[rows]
            ].mean()
            for a in grid[::100]
        ]
        near = grid[
            max(100 * (int(np.argmin(loss)) - 1), 0) : 100 * (int(np.argmin(loss)) + 1)
            + 1
        ]
        fine = [
            -log_softmax(a * logits[rows], axis=1)[
                np.arange(rows.sum()), labels[rows]
            ].mean()
            for a in near
        ]
        gaps.append(model.inverse_temperature_[k] - near[int(np.argmin(fine))])
    quantity = (
        "Algorithm 1: library's inverse temperatures minus those of slices fitted"
        " separately, largest difference"
    )
    yield quantity, exact(max(gaps, key=abs))
    changed = model.predict_proba(logits).argmax(axis=1) != predicted
    yield (
        "Algorithm 1: share of rows whose predicted class changes",
        exact(changed.mean()),
    )


def _worked_case():
    """Two classes of 100 rows in one bucket of confidence."""
    groups = np.repeat([1, 2], 100)
    correct = np.concatenate((np.arange(100) < 52, np.arange(100) < 48))
    bucket = FixedEdges([0, 0.39, 0.61, 1])
    for method, confidences in (("TS", (0.6, 0.4)), ("CTS", (0.54, 0.5))):
        confidence = np.repeat(confidences, 100)
        worst = groupwise_calibration_error(
            correct, confidence, groups=groups, reduce="max", binning=bucket
        )
        yield f"Section 5.4: ECE of each class, {method}, largest", exact(worst)
        pooled = expected_calibration_error(correct, confidence, binning=bucket)
        yield f"Section 5.4: ECE of both classes together, {method}", exact(pooled)


def _draw(rng, n, p_min):
    """Return logits within [0, 3] and labels; the rarest predicted class has about the
    share `p_min`.
    """
    logits = rng.uniform(0, 2.9, size=(n, 3))
    logits[np.arange(n), rng.choice(3, n, p=[p_min, 0.4, 0.6 - p_min])] = 3.0
    proba = np.exp(log_softmax(0.8 * logits, axis=1)).cumsum(axis=1)
    return logits, (rng.random((n, 1)) > proba[:, :2]).sum(axis=1)


def _losses(logits, labels, temperatures):
    """Return the mean log-loss by inverse temperature: of all rows, and of those
    predicted as each class.
    """
    rows = np.arange(len(labels))
    losses = np.array(
        [-log_softmax(a * logits, axis=1)[rows, labels] for a in temperatures]
    )
    predicted = logits.argmax(axis=1)
    return {"all": losses.mean(axis=1)} | {
        k: losses[:, predicted == k].mean(axis=1) for k in range(3)
    }
