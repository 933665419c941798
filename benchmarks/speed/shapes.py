"""The second axis: the jobs on the scores that models give, each compared with uniform
scores.

Processor time, not wall time: a busy machine changes it less. The shapes are timed in
turn and the least of several runs counts.
"""

import time
import tracemalloc
from dataclasses import asdict, dataclass
from itertools import product

import numpy as np

from benchmarks.speed import problems
from benchmarks.speed.jobs import JOBS
from benchmarks.speed.more_jobs import MORE_JOBS
from benchmarks.speed.plain import PLAIN_FORMS

__all__ = [
    "ALL_JOBS",
    "LIMIT",
    "SHAPES",
    "WEIGHTED_LIMIT",
    "ShapesRow",
    "binary",
    "many_classes",
    "measure_shapes",
]

LIMIT, WEIGHTED_LIMIT = 1.8, 2.5
_PLAIN_LIMIT = 1.1  # of the plain form's time: as long, within noise
_QUICK_ROWS, _FULL_ROWS = 50_000, 1_000_000
_QUICK_TABLE, _FULL_TABLE = (2_000, 20), (20_000, 100)
_BUDGET, _FEWEST, _MOST = 0.25, 3, 12  # seconds for a job on a shape, and its runs
_AGAIN = 3  # how often a job that seems to be beyond its limit is timed again

SHAPES = {
    "uniform": lambda rng, n: rng.random(n),
    "extreme": lambda rng, n: rng.beta(0.05, 0.05, n),
    "sure": lambda rng, n: rng.beta(2.8, 0.05, n),
    "rare": lambda rng, n: rng.beta(0.5, 200, n),
    "hundredths": lambda rng, n: np.round(rng.random(n), 2),
    "votes": (
        lambda rng, n: (
            rng.binomial(500, rng.beta(0.5, 0.5, n)) / np.float32(500)
        ).astype(np.float32)
    ),
    "saturated": lambda rng, n: np.clip(1.5 * rng.random(n) - 0.25, 0, 1),
    "sorted": lambda rng, n: np.sort(rng.random(n)),
    "constant": lambda rng, n: np.full(n, 0.3),
}

# Jobs of one event and of many classes; those of the first table that are neither time
# an import.
ALL_JOBS = {
    name: job
    for name, job in (JOBS | MORE_JOBS).items()
    if job.make is not problems.no_input
}


@dataclass(frozen=True)
class ShapesRow:
    """One job: the seconds for each shape, the worst ratio to uniform scores, and the
    most bytes a row.

    `over_plain` is the worst ratio to the plain form, on the shape `worst_plain`: None
    for a job without one.
    """

    job: str
    size: str
    seconds: dict
    worst: str
    ratio: float
    limit: float
    bytes_a_row: float
    in_fits: float | None
    most_fits: float | None
    fits: str
    over_plain: float | None
    most_over_plain: float | None
    worst_plain: str

    @property
    def is_missed(self):
        """Whether the job is beyond its limit, or takes longer than the fits that it
        may, or than its plain form.
        """
        return (
            self.ratio > self.limit
            or (self.most_fits is not None and self.in_fits > self.most_fits)
            or (
                self.most_over_plain is not None
                and self.over_plain > self.most_over_plain
            )
        )

    def as_json(self):
        """Return the fields."""
        return asdict(self)


def binary(shape, n):
    """Return scores of one event in a shape; the event is a little rarer than
    they say.
    """
    rng = np.random.default_rng(0)
    scores = SHAPES[shape](rng, n)
    return problems.Problem(scores, (rng.random(n) < scores**1.2).astype(np.int64))


def many_classes(shape, n, n_classes):
    """Return float32 scores of many classes: that of a random class has the shape, the
    others share the rest.
    """
    rng = np.random.default_rng(0)
    likely, score = rng.integers(n_classes, size=n), SHAPES[shape](rng, n)
    others = rng.gamma(0.3, size=(n, n_classes)) + 1e-12
    others[np.arange(n), likely] = 0
    scores = others * ((1 - score) / others.sum(axis=1))[:, None]
    scores[np.arange(n), likely] = score
    if shape in ("hundredths", "votes"):
        votes = 100 if shape == "hundredths" else 500
        scores = (
            rng.multinomial(votes, scores / scores.sum(axis=1, keepdims=True)) / votes
        )
    if shape == "constant":
        scores[:] = scores[0]
    scores = scores.astype(np.float32)
    drawn = (np.cumsum(scores, axis=1) < rng.random((n, 1))).sum(axis=1)
    labels = np.where(
        rng.random(n) < 0.8,
        np.minimum(drawn, n_classes - 1),
        rng.integers(n_classes, size=n),
    )
    labels[:n_classes] = np.arange(n_classes)
    return problems.Problem(scores, labels, np.log(np.clip(scores, 1e-7, 1)))


def measure_shapes(names, *, quick=False):
    """Yield a row for each of the named jobs."""
    unit = {}
    for name in names:
        job = ALL_JOBS[name]
        make = binary if job.make is problems.binary else many_classes
        size = _size(job, quick)
        shapes = [shape for shape in SHAPES if shape not in job.not_for]
        table = {shape: make(shape, *size) for shape in shapes}
        runs = [job.ours, *([PLAIN_FORMS[name]] if name in PLAIN_FORMS else [])]
        seconds = _seconds(runs, table, quick)
        unit[name, size] = seconds[0]
        # Some jobs leave a shape out.
        if job.fits and not unit.get((job.fits[0], size), {}).keys() >= table.keys():
            (unit[job.fits[0], size],) = _seconds(
                [ALL_JOBS[job.fits[0]].ours], table, quick
            )
        for _ in range(_AGAIN):
            row = _row(
                name,
                job,
                table,
                seconds,
                unit[job.fits[0], size] if job.fits else None,
                quick,
            )
            if not row.is_missed:
                break
            for best, again in zip(seconds, _seconds(runs, table, quick), strict=True):
                best |= {shape: min(best[shape], again[shape]) for shape in best}
        yield row


def _size(job, quick):
    """Return the rows of a job, and its classes if there are many."""
    rows = _QUICK_ROWS if quick else _FULL_ROWS
    if job.make is problems.binary:
        return (min(rows, job.largest or rows),)
    rows, n_classes = _QUICK_TABLE if quick else _FULL_TABLE
    return min(rows, job.largest or rows), min([n_classes, *job.full[1:]])


def _row(name, job, table, seconds, unit, quick):
    seconds, *plain = [dict(best) for best in seconds]
    worst, ratio = _worst(seconds, dict.fromkeys(seconds, seconds["uniform"]))
    worst_plain, over_plain = _worst(seconds, plain[0]) if plain else ("", None)
    return ShapesRow(
        job=name,
        size=table["uniform"].size,
        seconds=seconds,
        worst=worst,
        ratio=ratio,
        limit=WEIGHTED_LIMIT if job.is_weighted else LIMIT,
        bytes_a_row=max(
            _peak(job.ours, problem) / len(problem.labels) for problem in table.values()
        ),
        in_fits=(
            None
            if unit is None
            else max(seconds[shape] / unit[shape] for shape in seconds)
        ),
        # it holds for many rows, as that for plain forms
        most_fits=None if unit is None or quick else job.fits[1],
        fits="" if unit is None else f"<= {job.fits[1]:g} x {job.fits[0]}",
        over_plain=over_plain,
        most_over_plain=_PLAIN_LIMIT if plain and not quick else None,
        worst_plain=worst_plain,
    )


def _worst(seconds, others):
    """Return the shape with the largest ratio of seconds, and the ratio."""
    ratios = {shape: second / others[shape] for shape, second in seconds.items()}
    worst = max(ratios, key=ratios.get)
    return worst, ratios[worst]


def _seconds(runs, table, quick):
    """Return the least processor time of several repeats of each run on each shape, all
    in turn.
    """
    best = [dict.fromkeys(table, np.inf) for _ in runs]
    spent = [dict.fromkeys(table, 0.0) for _ in runs]
    budget = _BUDGET / 3 if quick else _BUDGET
    for repeat, (shape, problem), (k, run) in product(
        range(_MOST), table.items(), enumerate(runs)
    ):
        if (
            repeat >= _FEWEST
            and spent[k][shape] > budget
            or spent[k][shape] > 20 * budget
        ):
            continue
        start = time.process_time()
        run(problem)
        elapsed = time.process_time() - start
        spent[k][shape] += elapsed
        best[k][shape] = min(best[k][shape], elapsed)
    return best


def _peak(run, problem):
    tracemalloc.start()
    try:
        run(problem)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
