"""Run jobs: ours, the floor and the peers in turn, and compare their times, their
answers and our memory.
"""

import math
import statistics
import time
import tracemalloc
from dataclasses import asdict, dataclass, field, replace

from benchmarks.speed.jobs import JOBS, Target, without_checks
from benchmarks.speed.peers import Contender, installed

__all__ = ["Measured", "combined", "measure", "missed", "verdict"]

_FOR_TABLES = ("reason", "peak_mb", "target", "answers", "unchecked_s", "ranges")
_RATIOS = ("ours_s", "ours_over_floor", "peer_over_ours", "peer_over_unchecked")
_OURS = ("ours", "unchecked", "floor")  # contenders that are no peers
# A contender that has used this many seconds is not timed again.
_PATIENCE = 20.0


@dataclass(frozen=True)
class Measured:
    """One job against one peer (or none): medians in seconds, their ratios, and whether
    the answers agree.

    `reason` says why they do not; `peak_mb` is our memory above the input, the result
    included, at its highest. Both are for the tables; `target` is what the job is meant
    to reach, `answers` are ours and the peer's, if numbers; `unchecked_s` is ours
    without the checks of its input, where a peer has none. `ranges` has the lowest and
    the highest value of figures in several runs, by name.
    """

    job: str
    size: str
    ours_s: float
    floor_s: float | None
    peer: str | None
    peer_s: float | None
    ours_over_floor: float | None
    peer_over_ours: float | None
    answers_agree: bool | None
    reason: str
    peak_mb: float
    target: Target
    answers: tuple
    unchecked_s: float | None = None
    ranges: dict = field(default_factory=dict)

    @property
    def peer_over_unchecked(self):
        """The peer's time over ours without the checks of its input, or None."""
        if self.unchecked_s is None or self.peer_s is None:
            return None
        return self.peer_s / self.unchecked_s

    def as_json(self):
        """Return the fields of the machine-readable report."""
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in _FOR_TABLES
        }


def combined(runs):
    """Return the rows of several runs as one list: for each job and peer the medians,
    and the ranges of the figures.

    Parameters
    ----------
    runs : list of lists of Measured
        The rows of each run, of the same jobs and peers in the same order.
    """
    rows = []
    for same in zip(*runs, strict=True):
        ranges = {}
        for name in _RATIOS:
            values = [getattr(row, name) for row in same]
            if None not in values:
                ranges[name] = (min(values), max(values))
        medians = {
            name: statistics.median(getattr(row, name) for row in same)
            for name in ("ours_s", "ours_over_floor", "peer_over_ours", "peer_s")
            if getattr(same[0], name) is not None
        }
        rows.append(replace(same[0], ranges=ranges, **medians))
    return rows


def measure(names, *, quick=False, slow=False, repeats=5):
    """Yield the rows of the named jobs; peers of minutes are left out of them unless
    `slow` (or `quick`).
    """
    peers, _ = installed()
    for name in names:
        yield from _measure(
            name,
            JOBS[name],
            peers,
            quick=quick,
            slow=slow or quick,
            repeats=2 if quick else repeats,
        )


def _measure(name, job, peers, *, quick, slow, repeats):
    problem = job.make(*(job.quick if quick else job.full))
    contenders = {"ours": Contender(job.ours)}
    if job.floor is not None:
        contenders["floor"] = Contender(job.floor)
    if job.has_trusting_peers:
        contenders["unchecked"] = Contender(without_checks(job.ours))
    contenders |= {
        peer: jobs[name]
        for peer, jobs in peers.items()
        if name in jobs and (slow or peer not in job.slow)
    }
    seconds, answers = _in_turn(job, contenders, problem, repeats)
    peak_mb = _peak_mb(job.ours, problem)
    ours, floor = seconds["ours"], seconds.get("floor")
    rivals = [peer for peer in contenders if peer not in _OURS]
    for peer in rivals or [None]:
        agree, reason = _comparison(job, contenders, answers, peer)
        yield Measured(
            job=name,
            size=problem.size,
            ours_s=ours,
            floor_s=floor,
            peer=peer,
            peer_s=seconds.get(peer),
            ours_over_floor=None if floor is None else ours / floor,
            peer_over_ours=None if peer is None else seconds[peer] / ours,
            answers_agree=agree,
            reason=reason,
            peak_mb=peak_mb,
            target=job.target,
            answers=tuple(
                found
                for found in map(answers.get, ("ours", peer))
                if isinstance(found, float)
            ),
            unchecked_s=seconds.get("unchecked"),
        )


def _in_turn(job, contenders, problem, repeats):
    """Return the median seconds of processor time and the answer of each contender, run
    A B C A B C.
    """
    times, answers = {name: [] for name in contenders}, {}
    for repeat in range(repeats + 1):
        for name, contender in contenders.items():
            if sum(times[name]) > _PATIENCE:
                continue
            start = time.process_time()
            result = contender.run(problem)
            elapsed = time.process_time() - start
            # An import times itself, without the start of the interpreter.
            times[name].append(result if job.make.__name__ == "no_input" else elapsed)
            if repeat == 0 and name != "floor":
                answers[name] = (contender.answer or job.answer)(result, problem)
            del result
    # The first run warms up: lazy imports and the memory that later ones reuse.
    return {
        name: statistics.median(runs[1:] or runs) for name, runs in times.items()
    }, answers


def _comparison(job, contenders, answers, peer):
    if peer is None or answers[peer] is None:
        return None, "" if peer is None else contenders[peer].differs
    if job.agrees(answers["ours"], answers[peer]):
        return True, ""
    return (
        False,
        contenders[peer].differs
        or f"ours {_shown(answers['ours'])}, theirs {_shown(answers[peer])}",
    )


def _shown(answer):
    return (
        f"{answer:.6g}"
        if isinstance(answer, float) and math.isfinite(answer)
        else "other values"
    )


def _peak_mb(run, problem):
    tracemalloc.start()
    try:
        run(problem)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def missed(rows):
    """Return which parts of a job's target its rows miss, as text; "" if it is met."""
    target, first = rows[0].target, rows[0]
    parts = []
    if target.floors is not None and first.ours_over_floor > target.floors:
        parts.append(f"{target.floors:g} floors")
    if target.times is not None:
        rivals = [row for row in rows if row.peer and target.of in (None, row.peer)]
        # A peer that computes something else counts where no peer computes the same.
        rivals = [row for row in rivals if row.answers_agree is not False] or rivals
        if any(row.peer_over_ours < target.times for row in rivals):
            parts.append(f"{target.times:g} x {target.of or 'peers'}")
    if target.megabytes is not None and first.peak_mb > target.megabytes:
        parts.append(f"{target.megabytes:g} MB")
    return ", ".join(parts)


def verdict(rows):
    """Return whether a job's target is met, as text; "" where it has none."""
    target = rows[0].target
    if not str(target):
        return ""
    if target == Target(times=target.times) and not any(row.peer for row in rows):
        return "no peer was measured"
    return f"misses {missed(rows)}" if missed(rows) else "met"
