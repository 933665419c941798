"""The second axis: the jobs on the scores that models give, each compared with uniform scores.

Processor time, not wall time: a busy machine changes it less. The shapes are timed in turn and the least of several
runs counts.
"""

import time
import tracemalloc
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.speed import problems
from benchmarks.speed.jobs import JOBS
from benchmarks.speed.more_jobs import MORE_JOBS

__all__ = ["ALL_JOBS", "LIMIT", "SHAPES", "WEIGHTED_LIMIT", "ShapesRow", "binary", "many_classes", "measure_shapes"]

LIMIT, WEIGHTED_LIMIT = 1.8, 2.5
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
    "votes": lambda rng, n: (rng.binomial(500, rng.beta(0.5, 0.5, n)) / np.float32(500)).astype(np.float32),
    "saturated": lambda rng, n: np.clip(1.5 * rng.random(n) - 0.25, 0, 1),
    "sorted": lambda rng, n: np.sort(rng.random(n)),
    "constant": lambda rng, n: np.full(n, 0.3),
}

# Jobs of one event and of many classes; those of the first table that are neither time an import.
ALL_JOBS = {name: job for name, job in (JOBS | MORE_JOBS).items() if job.make is not problems.no_input}


@dataclass(frozen=True)
class ShapesRow:
    """One job: the seconds for each shape, the worst ratio to uniform scores, and the most bytes a row."""

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

    @property
    def is_missed(self):
        """Whether the job is beyond its limit, or takes longer than the fits that it may."""
        return self.ratio > self.limit or (self.most_fits is not None and self.in_fits > self.most_fits)

    def as_json(self):
        """Return the fields."""
        return asdict(self)


def binary(shape, n):
    """Return scores of one event in a shape; the event is a little rarer than they say."""
    rng = np.random.default_rng(0)
    scores = SHAPES[shape](rng, n)
    return problems.Problem(scores, (rng.random(n) < scores**1.2).astype(np.int64))


def many_classes(shape, n, n_classes):
    """Return float32 scores of many classes: that of a random class has the shape, the others share the rest."""
    rng = np.random.default_rng(0)
    likely, score = rng.integers(n_classes, size=n), SHAPES[shape](rng, n)
    others = rng.gamma(0.3, size=(n, n_classes)) + 1e-12
    others[np.arange(n), likely] = 0
    scores = others * ((1 - score) / others.sum(axis=1))[:, None]
    scores[np.arange(n), likely] = score
    if shape in ("hundredths", "votes"):
        votes = 100 if shape == "hundredths" else 500
        scores = rng.multinomial(votes, scores / scores.sum(axis=1, keepdims=True)) / votes
    if shape == "constant":
        scores[:] = scores[0]
    scores = scores.astype(np.float32)
    drawn = (np.cumsum(scores, axis=1) < rng.random((n, 1))).sum(axis=1)
    labels = np.where(rng.random(n) < 0.8, np.minimum(drawn, n_classes - 1), rng.integers(n_classes, size=n))
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
        seconds = unit[name, size] = _seconds(job.ours, table, quick)
        if job.fits and (job.fits[0], size) not in unit:
            unit[job.fits[0], size] = _seconds(ALL_JOBS[job.fits[0]].ours, table, quick)
        for _ in range(_AGAIN):
            row = _row(name, job, table, seconds, unit[job.fits[0], size] if job.fits else None, quick)
            if not row.is_missed:
                break
            again = _seconds(job.ours, table, quick)
            seconds |= {shape: min(seconds[shape], again[shape]) for shape in seconds}
        yield row


def _size(job, quick):
    """Return the rows of a job, and its classes if there are many."""
    rows = _QUICK_ROWS if quick else _FULL_ROWS
    if job.make is problems.binary:
        return (min(rows, job.largest or rows),)
    rows, n_classes = _QUICK_TABLE if quick else _FULL_TABLE
    return min(rows, job.largest or rows), min([n_classes, *job.full[1:]])


def _row(name, job, table, seconds, unit, quick):
    ratios = {shape: second / seconds["uniform"] for shape, second in seconds.items()}
    worst = max(ratios, key=ratios.get)
    return ShapesRow(
        job=name,
        size=table["uniform"].size,
        seconds=seconds,
        worst=worst,
        ratio=ratios[worst],
        limit=WEIGHTED_LIMIT if job.is_weighted else LIMIT,
        bytes_a_row=max(_peak(job.ours, problem) / len(problem.labels) for problem in table.values()),
        in_fits=None if unit is None else max(seconds[shape] / unit[shape] for shape in seconds),
        most_fits=None if unit is None or quick else job.fits[1],  # it holds for many rows
        fits="" if unit is None else f"<= {job.fits[1]:g} x {job.fits[0]}",
    )


def _seconds(run, table, quick):
    """Return the least processor time of several runs on each shape, the shapes in turn."""
    best, spent = dict.fromkeys(table, np.inf), dict.fromkeys(table, 0.0)
    budget = _BUDGET / 3 if quick else _BUDGET
    for repeat in range(_MOST):
        for shape, problem in table.items():
            if repeat >= _FEWEST and spent[shape] > budget or spent[shape] > 20 * budget:
                continue
            start = time.process_time()
            run(problem)
            elapsed = time.process_time() - start
            spent[shape] += elapsed
            best[shape] = min(best[shape], elapsed)
    return best


def _peak(run, problem):
    tracemalloc.start()
    try:
        run(problem)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
