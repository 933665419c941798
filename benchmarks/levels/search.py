"""Search for the worlds that break a promise most.

Where a promise is binomial, its level is summed exactly over a grid. Elsewhere an
optimiser goes through a family of worlds: points of a unit cube, each coordinate of
which is a property of the data. It starts from the worst worlds of earlier searches and
from points at random, and knows none of the shapes of the page of levels.
"""

import json
import sys
import time
import warnings
from functools import lru_cache, partial
from math import exp, log
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtr
from scipy.stats import binom

from benchmarks.levels.few_events import FEW_EVENTS_AXES, FEW_EVENTS_FAMILIES
from benchmarks.levels.performance import half_holds
from benchmarks.levels.probabilities import holds_curve, limits_hold
from benchmarks.levels.promises import Promise
from benchmarks.levels.same_rows import SAME_ROWS, SAME_ROWS_AXES
from benchmarks.levels.sampled import SAMPLED_AXES, SAMPLED_FAMILIES
from benchmarks.levels.shapes import SHAPES, Sample
from skcalib._cells.tasks import BinaryTask
from skcalib.decisions import certified_routing, certified_threshold, net_benefit
from skcalib.evaluation import compare
from skcalib.evaluation._summary_numbers import OF_ROWS, SummaryRows
from skcalib.metrics import calibration_by_group, calibration_test
from skcalib.monitoring import calibration_change

__all__ = ["FAMILIES", "FOUND", "WORLDS", "search"]

WORLDS = Path(__file__).with_name("worlds.jsonl")
_FIRST_RUNS = 30  # samples of a world that is looked at for the first time
_MOST_RUNS = 640  # samples of a world that is among the worst
_FEWEST_WORLDS = 12  # at random, before any is gone into
_POPULATION = 100_000  # rows that true values are taken from


class Axis(NamedTuple):
    """A property of the data: its range, and whether equal steps are factors."""

    low: float
    high: float
    by_factors: bool = False

    def value(self, position):
        """Return the value at a position from 0 to 1."""
        if self.by_factors:
            return exp(log(self.low) + position * (log(self.high) - log(self.low)))
        return self.low + position * (self.high - self.low)

    def position(self, value):
        """Return the position of a value."""
        if self.by_factors:
            return log(value / self.low) / log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


AXES = {
    "n": Axis(10, 1500, True),
    "low mode": Axis(-6, 1),  # in log-odds
    "high mode": Axis(-1, 6),  # in log-odds
    "share of high": Axis(0.02, 0.98),
    "share after": Axis(0.02, 0.98),  # of high scores, in the second sample
    "concentration": Axis(2, 400, True),  # of the Beta distribution of a mode
    "weight of high": Axis(0.01, 100, True),  # beside a weight of 1
    "weight noise": Axis(0, 1),  # standard deviation of the logarithm
    "slope": Axis(0.5, 2, True),  # of the truth in log-odds
    "intercept": Axis(-1.5, 1.5),
    "large clusters": Axis(0, 4),
    "size of large": Axis(10, 400, True),
    "small clusters": Axis(8, 100, True),
    "size of small": Axis(1, 15, True),
    "correlation": Axis(0, 1),  # of rows of one cluster
    "threshold": Axis(-4.6, 4.6),  # in log-odds
    "limit": Axis(0.02, 0.4),
}
for _axes in (SAME_ROWS_AXES, FEW_EVENTS_AXES, SAMPLED_AXES):
    AXES |= {name: Axis(*limits) for name, limits in _axes.items()}
_MIXTURE = ("n", "low mode", "high mode", "share of high", "concentration")
_CURVE = ("slope", "intercept")
_CLUSTERS = (
    "large clusters",
    "size of large",
    "small clusters",
    "size of small",
    "correlation",
)


class Family(NamedTuple):
    """A promise over worlds: what is measured, the axes, how a sample is drawn, and
    whether the promise is kept (a test: whether it rejects; a threshold: whether it
    breaks its promise). `kept` is NaN for a sample that gets no answer, which is no
    promise.
    """

    name: str
    kind: str
    promised: float
    axes: tuple
    draw: object
    kept: object

    def world(self, point):
        """Return the properties at a point of the unit cube."""
        return {
            name: AXES[name].value(position)
            for name, position in zip(self.axes, point, strict=True)
        }

    def point(self, world):
        """Return the point of the unit cube that has these properties."""
        return [AXES[name].position(world[name]) for name in self.axes]

    def excess(self, shares):
        """Return by how much the promise is missed, for shares of samples."""
        if self.kind == "coverage":
            return self.promised - shares
        return shares - self.promised


# --- Samples of a world ---------------------------------------------------------------


def _scores(world, rng, n, share):
    """Return scores in two modes, and whether each is of the high one."""
    is_high = rng.random(n) < share
    return _scores_of_modes(world, rng, is_high), is_high


def _scores_of_modes(world, rng, is_high):
    center = expit(np.where(is_high, world["high mode"], world["low mode"]))
    size = world["concentration"]
    scores = rng.beta(center * size, (1 - center) * size)
    return np.clip(scores, 1e-6, 1 - 1e-6)


def _truth(world, scores):
    if "slope" not in world:
        return scores
    return expit(world["slope"] * logit(scores) + world["intercept"])


def _mixture(world, rng):
    """Independent rows, with weights where the world has them."""
    n = round(world["n"])
    scores, is_high = _scores(world, rng, n, world["share of high"])
    truth = _truth(world, scores)
    weight = None
    if "weight of high" in world:
        weight = np.where(is_high, world["weight of high"], 1.0)
        weight = weight * np.exp(world["weight noise"] * rng.normal(size=n))
    population = partial(_population, tuple(world.items()))
    return Sample(scores, truth, rng.random(n) < truth, weight, population=population)


@lru_cache(maxsize=64)
def _population(items):
    """Return scores and truths of many rows of a world, in order of the scores."""
    world = dict(items)
    rng = np.random.default_rng(12345)
    scores, _ = _scores(world, rng, _POPULATION, world["share of high"])
    scores = np.sort(scores)
    return scores, _truth(world, scores)


def _in_clusters(world, rng):
    """Rows in clusters of unequal size, which share the mode of their scores and a part
    of what decides their labels.
    """
    code = _cluster_codes(world)
    n = len(code)
    n_clusters = code[-1] + 1
    rho = world["correlation"]
    mode, chance = (
        ndtr(
            np.sqrt(rho) * rng.normal(size=n_clusters)[code]
            + np.sqrt(1 - rho) * rng.normal(size=n)
        )
        for _ in range(2)
    )
    is_high = mode < world["share of high"]
    scores = _scores_of_modes(world, rng, is_high)
    population = partial(_population, tuple(world.items()))
    return Sample(scores, scores, chance < scores, clusters=code, population=population)


def _cluster_codes(world):
    n_large = round(world["large clusters"])
    n_small = round(world["small clusters"])
    sizes = [round(world["size of large"])] * n_large
    sizes += [max(round(world["size of small"]), 1)] * n_small
    return np.repeat(np.arange(len(sizes)), sizes)


def _two_samples(world, rng):
    """The rows before, and as many after, of which other shares are high."""
    n = round(world["n"])
    before, _ = _scores(world, rng, n, world["share of high"])
    after, _ = _scores(world, rng, n, world["share after"])
    scores = np.concatenate((before, after))
    truth = _truth(world, scores)
    return Sample(scores, truth, rng.random(2 * n) < truth)


def _two_models(world, rng):
    """Two equally good models of rows in clusters of unequal size."""
    code = _cluster_codes(world)
    n = len(code)
    first, second, noise = rng.normal(size=(3, n))
    # Rows of a cluster share what the second model knows, or what the first does.
    shared = rng.normal(size=(2, code[-1] + 1))
    rho = world["correlation"]
    first = np.sqrt(rho) * shared[0][code] + np.sqrt(1 - rho) * first
    second = np.sqrt(rho) * shared[1][code] + np.sqrt(1 - rho) * second
    scores = np.column_stack((ndtr(first / np.sqrt(2)), ndtr(second / np.sqrt(2))))
    labels = first + second + noise > 0
    return Sample(scores, ndtr(first + second), labels, clusters=code)


# --- Whether a promise is kept --------------------------------------------------------


def _rejects(method, world, sample, seed):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = calibration_test(
            sample.labels,
            sample.scores,
            method=method,
            sample_weight=sample.sample_weight,
            weight_type="importance",
            labels=[0, 1],
        )
    if any("too few for its approximation" in str(one.message) for one in said):
        return np.nan  # how often it rejects then, stands on the page by itself
    return found.pvalue <= 0.05


def _bias_holds(world, sample, seed):
    half = np.arange(len(sample.scores)) % 2
    table = calibration_by_group(
        sample.labels,
        sample.scores,
        half,
        sample_weight=sample.sample_weight,
        weight_type="importance",
        labels=[0, 1],
        n_resamples=19,
        random_state=seed,
    )
    low = np.asarray(table.bias_low)
    high = np.asarray(table.bias_high)
    return float(np.mean(~((low > 0) | (high < 0))))


def _differs(metric, world, sample, seed):
    models = dict(zip(("first", "second"), sample.scores.T, strict=True))
    found = compare(
        sample.labels,
        models,
        metrics=metric,
        clusters=sample.clusters,
        n_resamples=19,
        random_state=seed,
    )
    return found.pvalue[1] <= 0.05


def _change(sample, seed):
    half = len(sample.scores) // 2
    return calibration_change(
        sample.labels[:half],
        sample.scores[:half],
        sample.labels[half:],
        sample.scores[half:],
        norm=1,
        method="plugin",
        labels=[0, 1],
        n_resamples=19,
        random_state=seed,
    )


def _change_or_none(sample, seed):
    """Return the comparison of both samples; None where it is refused because they have
    no scores in common.
    """
    try:
        return _change(sample, seed)
    except ValueError as error:
        if "no scores in common" in str(error):
            return None
        raise


def _changes(world, sample, seed):
    found = _change_or_none(sample, seed)
    return np.nan if found is None else found.pvalue <= 0.05


def _shift_holds(world, sample, seed):
    found = _change_or_none(sample, seed)
    if found is None or np.isnan(found.shift.low):
        return np.nan
    return not (found.shift.low > 0 or found.shift.high < 0)


@lru_cache(maxsize=64)
def _true_net_benefit(items, threshold):
    """Return the mean over the rows of both modes, which weights may count unequally.

    The noise of weights has the same mean everywhere, so that it cancels.
    """
    world = dict(items)
    rng = np.random.default_rng(12345)
    scores, is_high = _scores(world, rng, _POPULATION, world["share of high"])
    truth = _truth(world, scores)
    weight = np.where(is_high, world.get("weight of high", 1.0), 1.0)
    price = threshold / (1 - threshold)
    gain = (scores >= threshold) * (truth - (1 - truth) * price)
    return np.average(gain, weights=weight)


def _net_benefit_holds(world, sample, seed):
    threshold = float(expit(world["threshold"]))
    found = net_benefit(
        sample.labels,
        sample.scores,
        thresholds=[threshold],
        labels=[0, 1],
        sample_weight=sample.sample_weight,
        weight_type="frequency" if sample.sample_weight is None else "importance",
        clusters=sample.clusters,
    )
    if np.isnan(found.low[0]):
        return np.nan
    true_value = _true_net_benefit(tuple(world.items()), threshold)
    return found.low[0] <= true_value <= found.high[0]


@lru_cache(maxsize=64)
def _true_summary(population):
    scores, truth = population()
    events = np.cumsum(truth)
    others = 1 - truth
    return {
        "observed_expected": truth.sum() / scores.sum(),
        "brier_score": np.mean(truth * (1 - scores) ** 2 + others * scores**2),
        # Non-events below each row, with half of the row itself.
        "auc": np.sum(truth * (np.cumsum(others) - others / 2))
        / (events[-1] * others.sum()),
    }


def _summary_holds(name, world, sample, seed):
    is_one_class = sample.labels.all() or not sample.labels.any()
    if name == "auc" and is_one_class:
        return np.nan  # there is no such number
    # One number of a summary without its smooth curve, which takes most of the time.
    task = BinaryTask(sample.scores, sample.labels, None)
    interval = OF_ROWS[name](SummaryRows.of_task(task, "frequency", None, 0.95))
    if np.isnan(interval.low):
        return np.nan
    true_value = _true_summary(sample.population)[name]
    # Rounding is no miss.
    return interval.low - 1e-12 <= true_value <= interval.high + 1e-12


def _precision_breaks(world, sample, seed):
    limit = world["limit"]
    found = certified_threshold(
        sample.labels,
        sample.scores,
        promise="precision",
        target=1 - limit,
        labels=[False, True],
    )
    scores, truth = sample.population()
    accepted = truth[np.searchsorted(scores, found.threshold) :]
    return len(accepted) > 0 and 1 - accepted.mean() > limit + 1e-9


_WEIGHTED = (*_MIXTURE, "weight of high", "weight noise")
FAMILIES = [
    *(
        Family(
            f"importance weights: {method}",
            "size",
            0.05,
            _WEIGHTED,
            _mixture,
            partial(_rejects, method),
        )
        for method in ("kuiper", "kolmogorov_smirnov", "spiegelhalter")
    ),
    Family(
        "importance weights: bias of a group",
        "coverage",
        0.9,
        _WEIGHTED,
        _mixture,
        _bias_holds,
    ),
    *(
        Family(
            f"compare in clusters: {metric}",
            "size",
            0.05,
            _CLUSTERS,
            _two_models,
            partial(_differs, metric),
        )
        for metric in ("log_loss", "brier_score")
    ),
    Family(
        "change between two samples",
        "size",
        0.05,
        (*_MIXTURE, "share after", *_CURVE),
        _two_samples,
        _changes,
    ),
    Family(
        "shift between two calibrated samples",
        "coverage",
        0.9,
        (*_MIXTURE, "share after"),
        _two_samples,
        _shift_holds,
    ),
    Family(
        "net benefit at a threshold",
        "coverage",
        0.9,
        (*_MIXTURE, "threshold"),
        _mixture,
        _net_benefit_holds,
    ),
    Family(
        "net benefit with weights of the score",
        "coverage",
        0.9,
        (*_WEIGHTED, "threshold"),
        _mixture,
        _net_benefit_holds,
    ),
    Family(
        "net benefit in clusters at a threshold",
        "coverage",
        0.9,
        (*_MIXTURE[1:], *_CLUSTERS, "threshold"),
        _in_clusters,
        _net_benefit_holds,
    ),
    *(
        Family(
            f"summary of a world: {name.replace('_', ' ')}",
            "coverage",
            0.95,
            (*_MIXTURE, *_CURVE) if name == "auc" else _MIXTURE,
            _mixture,
            partial(_summary_holds, name),
        )
        for name in ("observed_expected", "brier_score", "auc")
    ),
    Family(
        "certified precision",
        "broken",
        0.1,
        (*_MIXTURE, *_CURVE, "limit"),
        _mixture,
        _precision_breaks,
    ),
    *(
        Family(
            f"limits of one probability of a world: {method}",
            "coverage",
            0.9,
            (*_MIXTURE, *_CURVE),
            _mixture,
            partial(limits_hold, method),
        )
        for method in ("Platt scaling", "isotonic regression")
    ),
    Family(
        "simultaneous band of a world",
        "coverage",
        0.9,
        (*_MIXTURE, *_CURVE),
        _mixture,
        holds_curve,
    ),
    *(
        Family(
            f"estimated performance of a world: {metric.replace('_', ' ')}",
            "coverage",
            0.9,
            (*_MIXTURE, "share after", *_CURVE),
            _two_samples,
            partial(half_holds, metric),
        )
        for metric in ("event_frequency", "brier_score")
    ),
    *(
        Family(*family)
        for family in (*SAME_ROWS, *FEW_EVENTS_FAMILIES, *SAMPLED_FAMILIES)
    ),
]


# --- The optimiser --------------------------------------------------------------------


class _Candidate:
    """A world with what was seen of it."""

    def __init__(self, family, point):
        self.family = family
        self.point = point
        self.world = family.world(point)
        self.kept = []

    def look(self, n_runs, seed):
        """Draw more samples."""
        for _ in range(n_runs):
            number = len(self.kept)
            rng = np.random.default_rng([seed, number])
            sample = self.family.draw(self.world, rng)
            # Of a threshold, what it accepts stands behind it.
            kept = np.ravel(self.family.kept(self.world, sample, number))[0]
            if np.isnan(kept):
                # A world is not bad because most of its samples are refused.
                kept = self.family.kind == "coverage"
            self.kept.append(float(kept))

    def surely(self):
        """Return how much of the excess is not chance: two standard errors less."""
        n = len(self.kept)
        promised = self.family.promised
        share = (sum(self.kept) + promised) / (n + 1)
        error = np.sqrt(max(share * (1 - share), promised * (1 - promised)) / n)
        return float(self.family.excess(share) - 2 * error)


def search(family, minutes, *, seed=0, starts=()):
    """Return the worst world of a family that is found in some minutes of the
    processor, and how many were looked at.

    A third of the new worlds is at random, the others lie near one of the worst so far.
    Worlds that stay among the worst get more samples, so that none is there by chance.
    """
    rng = np.random.default_rng(seed)
    end = time.process_time() + 60 * minutes
    found = []
    waiting = [np.asarray(point, dtype=float) for point in starts]
    while time.process_time() < end or not found:
        if waiting:
            point = waiting.pop()
        elif len(found) < _FEWEST_WORLDS or rng.random() < 1 / 3:
            point = rng.random(len(family.axes))
        else:
            near = found[int(rng.integers(0, min(6, len(found))))].point
            is_moved = rng.random(len(near)) < 0.5
            step = rng.normal(scale=0.2, size=len(near)) * is_moved
            point = np.clip(near + step, 0, 1)
        candidate = _Candidate(family, point)
        candidate.look(_FIRST_RUNS, len(found) + 1)
        found.append(candidate)
        found.sort(key=_Candidate.surely, reverse=True)
        # The worst so far must stay the worst with twice the samples. Before there are
        # a few to choose from, they would be lost on worlds that break nothing.
        if len(found) > _FEWEST_WORLDS and len(found[0].kept) < _MOST_RUNS:
            found[0].look(len(found[0].kept), 10**6 + len(found))
            found.sort(key=_Candidate.surely, reverse=True)
    return found[0], len(found)


def described(world):
    """Return the properties of a world as the name of a shape."""
    properties = [
        f"{name} {value:.0f}" if value >= 1000 else f"{name} {value:.3g}"
        for name, value in world.items()
    ]
    return f"found: {', '.join(properties)}"


# --- Routing: summed exactly ----------------------------------------------------------


def _passes(lost, gained, n, max_loss):
    """Return whether the small model may answer all rows, of which some are lost."""
    large = np.ones(n, dtype=bool)
    small = large.copy()
    small[:lost] = False
    large[lost : lost + gained] = False
    found = certified_routing(
        small, large, np.full(n, 0.9), max_loss=max_loss, thresholds=[0.5]
    )
    return found.found


def routing_level(n, max_loss, shares):
    """Return the largest share of samples that pass though `max_loss` is lost, and the
    share of gains at which it is.
    """
    most_gained = int(binom.ppf(1 - 1e-6, n, max(shares)))
    level = np.zeros(len(shares))
    lost = 0
    for gained in range(most_gained + 1):
        # The most losses that pass do not fall with gains.
        while lost + gained <= n and _passes(lost, gained, n, max_loss):
            lost += 1
        if lost == 0:
            continue
        for position, share in enumerate(shares):
            of_others = min((share + max_loss) / (1 - share), 1.0)
            passing = binom.cdf(lost - 1, n - gained, of_others)
            level[position] += binom.pmf(gained, n, share) * passing
    worst = int(np.argmax(level))
    return float(level[worst]), shares[worst]


def search_routing(minutes, *, seed=0, starts=()):
    """Return the worst number of rows, limit and share of gains, with its exact level,
    and how many were looked at.

    The level is a saw of the number of rows. It jumps where one more loss passes, so
    that the numbers next to the worst so far are looked at, too.
    """
    rng = np.random.default_rng(seed)
    end = time.process_time() + 60 * minutes
    seen = {}
    waiting = [(int(world["n"]), world["loss"]) for world in starts]
    while time.process_time() < end or not seen:
        max_loss = float(rng.choice([0.005, 0.01, 0.02, 0.05, 0.1]))
        n = int(np.exp(rng.uniform(np.log(10), np.log(3000))))
        if seen and rng.random() < 0.5:
            (near, max_loss), _ = max(seen.items(), key=lambda item: item[1][0])
            n = max(10, near + int(rng.integers(-8, 9)))
        if waiting:
            n, max_loss = waiting.pop()
        if (n, max_loss) not in seen:
            shares = [0.0, *np.geomspace(1e-4, min(0.02, 20 / n), 4).tolist()]
            seen[n, max_loss] = routing_level(n, max_loss, shares)
    (n, max_loss), (level, share) = max(seen.items(), key=lambda item: item[1][0])
    world = {"n": n, "loss": max_loss, "gains": share}
    return world, level, len(seen)


def _routed(world, rng):
    """Answers that are lost, all of the same confidence."""
    n = int(world["n"])
    truth = np.full(n, world["gains"] + world["loss"])
    return Sample(np.full(n, 0.9), truth, rng.random(n) < truth)


def _routing_breaks(world, sample, seed):
    rng = np.random.default_rng([seed, 1])
    chance = world["gains"] / (1 - sample.truth)
    gained = ~sample.labels & (rng.random(len(sample.labels)) < chance)
    lost = np.count_nonzero(sample.labels)
    n = len(sample.labels)
    passes = _passes(lost, np.count_nonzero(gained), n, world["loss"])
    return passes, float(passes)


ROUTING = Family("routing of all rows", "broken", 0.1, (), _routed, _routing_breaks)


# --- Worlds that were found -----------------------------------------------------------


def remember(family, world):
    """Keep a world that was found: it is a shape from then on. Return its promise."""
    if world in known_worlds(family):
        return _promise(family, world)
    with WORLDS.open("a") as file:
        print(json.dumps({"family": family.name, "world": world}), file=file)
    return _promise(family, world)


def _promise(family, world):
    shape = described(world)
    SHAPES[shape] = partial(family.draw, world)
    kept = partial(family.kept, world)
    return Promise(family.name, family.promised, kept, (shape,))


def known_worlds(family):
    """Return the worlds that were found before."""
    lines = WORLDS.read_text().splitlines() if WORLDS.exists() else []
    entries = [json.loads(line) for line in lines]
    return [entry["world"] for entry in entries if entry["family"] == family.name]


def _known():
    """Return the promises with the worlds that were found, by their kinds."""
    found = {"coverage": [], "size": [], "broken": []}
    for family in (*FAMILIES, ROUTING):
        found[family.kind] += [_promise(family, one) for one in known_worlds(family)]
    return found


FOUND = _known()


def run(name_contains, minutes, *, seed=None, fresh=False, keep=True):
    """Search each family whose name holds a text; print and return the worst worlds as
    (family, promise) pairs.

    The search begins with the worlds that were found before, unless it is `fresh`. With
    more of them other worlds are drawn, so that a search that is run again goes on.
    """
    worst = []
    for family in (ROUTING, *FAMILIES):
        if name_contains not in family.name:
            continue
        starts = [] if fresh else known_worlds(family)
        options = {"seed": len(starts) if seed is None else seed}
        if family is ROUTING:
            world, level, n_worlds = search_routing(minutes, starts=starts, **options)
            seen = f"exact level {level:.4f}"
        else:
            options["starts"] = [family.point(world) for world in starts]
            with warnings.catch_warnings():
                # that an approximation is poor: the share shows it
                warnings.simplefilter("ignore", UserWarning)
                found, n_worlds = search(family, minutes, **options)
            world = found.world
            seen = f"{np.mean(found.kept):.3f} of {len(found.kept)} samples"
        print(
            f"{family.name}: {seen} [{family.promised}] in {described(world)}"
            f" ({n_worlds} worlds)",
            file=sys.stderr,
            flush=True,
        )
        if keep:
            worst.append((family, remember(family, world)))
    return worst
