"""The page on speed is made of rows alone: what it says of them is what they hold."""

import inspect
import re
import time
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import skcalib
from benchmarks.speed import beside, costs, growth, growth_jobs
from benchmarks.speed.jobs import JOBS, Target, without_checks
from benchmarks.speed.page import FAMILIES, conditions, with_tables
from benchmarks.speed.run import Measured, combined, missed, verdict
from skcalib import binning, decisions, evaluation, metrics, monitoring

pytestmark = pytest.mark.slow

MARKS = (
    "before\n<!-- measured: made by `python -m benchmarks.speed --page` -->\nold\n<!--"
    " end of the tables -->after\n"
)


NONE = Target()


def row(
    job="sweep",
    peer=None,
    peer_s=None,
    agree=True,
    reason="",
    target=NONE,
    answers=(),
    floor=1.0,
    mb=1.0,
):
    ratio = None if peer_s is None else peer_s / 2.0
    return Measured(
        job,
        "10 x 3",
        2.0,
        floor,
        peer,
        peer_s,
        2.0 / floor,
        ratio,
        agree,
        reason,
        mb,
        target,
        answers,
    )


def test_each_job_belongs_to_one_family():
    for job in JOBS:
        assert sum(job.startswith(begins) for begins in FAMILIES.values()) == 1, job


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (Target(), ""),
        (Target(2.0), ""),
        (Target(1.9), "1.9 floors"),
        (Target(times=1.5), "1.5 x peers"),
        (Target(times=1.0), ""),
        (Target(times=4, of="slow"), ""),
        (Target(1.5, 6, "slow", 0.5), "1.5 floors, 6 x slow, 0.5 MB"),
    ],
)
def test_what_is_missed(target, expected):
    # Of the peers that compute the same the quickest takes as long as ours; one that
    # does not takes half of that.
    rows = [
        row(peer="quick", peer_s=2.0, target=target),
        row(peer="slow", peer_s=10.0, target=target),
        row(peer="other", peer_s=1.0, agree=False, target=target),
    ]
    assert missed(rows) == expected


def test_a_peer_with_another_answer_counts_where_it_is_alone():
    assert (
        missed([row(peer="other", peer_s=1.0, agree=False, target=Target(times=1))])
        == "1 x peers"
    )


def test_a_target_beside_peers_is_not_met_without_one():
    assert verdict([row(target=Target(times=2))]) == "no peer was measured"
    assert verdict([row(target=NONE)]) == ""
    assert verdict([row(target=Target(1.5, 1))]) == "misses 1.5 floors"
    assert verdict([row(target=Target(2.0))]) == "met"


def test_the_page_holds_what_was_measured():
    rows = [
        row(target=Target(1.5, 1)),
        row(
            "Platt",
            "quick",
            1.0,
            False,
            "a temperature with a higher log-loss",
            Target(times=1),
            (0.5, 0.625),
        ),
        row("Platt", "slow", 8.0, target=Target(times=1)),
    ]
    page = with_tables(MARKS, rows, conditions(3, 0.0, 1.5))
    assert page.startswith("before\n")
    assert page.endswith("after\n")
    assert "old" not in page
    assert "1970-01-01" in page
    assert "a load of 1.5" in page
    assert "| sweep | 10 x 3 | 2.00 |  |" in page
    assert (
        "quick .500 (a temperature with a higher log-loss: 0.6250, ours 0.5000), slow"
        " 4.00 |" in page
    )
    assert "| Platt, Beta | .500 to 4.00 | 1 of 2 |" in page
    behind = page.split("## Jobs that are slower")[1]
    assert "sweep" not in behind
    assert "| Platt | quick .500" in behind
    assert not re.search("target|ours / floor", page)
    assert with_tables(page, rows, conditions(3, 0.0, 1.5)) == page


def test_quicker_peers_are_compared_without_our_checks_too():
    """Ours takes 2 s, 1.25 s of it without checks, a peer 1 s."""
    quick = replace(row("top-label ECE", "quick", 1.0), unchecked_s=1.25)
    slow = replace(row("top-label ECE", "slow", 4.0), unchecked_s=1.25)
    behind = with_tables(MARKS, [quick, slow], "").split("## Jobs that are slower")[1]
    assert "| quick .500 | quick .800 | every score" in behind


def test_figures_of_several_runs_are_ranges():
    """Ours takes 2 s in both runs, the peer 1 s and 3 s: the median ratio is 1."""
    target = Target(times=1)
    first = replace(row("top-label ECE", "quick", 1.0, target=target), unchecked_s=1.0)
    second = replace(row("top-label ECE", "quick", 3.0, target=target), unchecked_s=1.0)
    rows = combined([[first], [second]])
    assert rows[0].peer_over_ours == 1
    assert rows[0].ranges["ours_s"] == (2, 2)
    page = with_tables(MARKS, rows, conditions(3, 0.0, 1.5, n_runs=2))
    assert "from 2 runs of" in page
    assert "| 2.00 | quick .500 to 1.50 |" in page
    faster = [replace(one, peer_over_ours=one.peer_over_ours / 2) for one in rows]
    behind = with_tables(MARKS, faster, "").split("## Jobs that are slower")[1]
    assert "| quick .500 to 1.50 | quick 1.00 to 3.00 |" in behind


@pytest.mark.parametrize(
    "name", [name for name, job in JOBS.items() if job.has_trusting_peers]
)
def test_ours_without_validation_has_the_same_result(name):
    job = JOBS[name]
    problem = job.make(*job.quick)
    assert without_checks(job.ours)(problem) == pytest.approx(job.ours(problem))


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="not enough values"):
        with_tables("no marks", [], "")


def test_growth_prints_the_exponent_and_the_ratio_to_the_sibling(monkeypatch, capsys):
    plain = growth.Growth((10, 100, 1000), lambda n: partial(sum, range(n)))
    steep = growth.Growth((10, 100), lambda n: partial(sum, range(n)), "plain")
    monkeypatch.setattr(growth, "GROWTH", {"plain": plain, "steep": steep})
    seconds = {id(plain): [1.0, 2.0, 4.0], id(steep): [1.0, 100.0]}
    monkeypatch.setattr(
        growth, "measured", lambda one, **limits: (seconds[id(one)], "ended")
    )
    assert growth.main(["--only", "steep"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == "steep | 2.00 | 50 x plain at 100 CLIFF | 10: 1, 100: 100 | ended"
    assert growth.slope((10, 100, 1000), [1.0, 2.0, 4.0]) == pytest.approx(
        np.log10(2), rel=1e-12
    )


def test_a_cliff_has_its_reason(monkeypatch, capsys):
    assert set(growth_jobs.REASONS) <= set(growth.GROWTH)
    name = "neighborhood_calibration_error, n"
    job = growth.GROWTH[name]
    seconds = {id(job): [30.0], id(growth.GROWTH[job.sibling]): [1.0]}
    monkeypatch.setattr(
        growth, "measured", lambda one, **limits: (seconds[id(one)], "")
    )
    assert growth.main(["--only", f"^{name}$"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert f"at 1,000 CLIFF {growth_jobs.REASONS[name]} | 1,000: 30" in line


def test_growth_ends_where_a_size_would_take_too_long(monkeypatch):
    taken = iter([1.0, 9.0, 1e9])
    monkeypatch.setattr(growth, "seconds_of", lambda run: next(taken))
    job = growth.Growth((10, 100, 10_000, 100_000), lambda n: None)
    seconds, why = growth.measured(job)
    assert seconds == [1.0, 9.0]
    assert why == "10,000 would take more than 20 s"


def test_growth_ends_a_run_that_takes_too_long():
    def run(size):
        end = time.process_time() + size
        while time.process_time() < end:
            pass

    job = growth.Growth((1e-4, 60), lambda size: partial(run, size))
    seconds, why = growth.measured(job, most_seconds=0.2)
    assert len(seconds) == 1
    assert why == "60 takes more than 0.2 s"


def test_growth_prints_the_peak_memory(monkeypatch, capsys):
    frugal = growth.Growth((10**6,), lambda n: partial(np.sum, np.ones(n)))
    lavish = growth.Growth((10**6, 10**7), lambda n: partial(np.ones, (3, n)))
    monkeypatch.setattr(growth, "GROWTH", {"frugal": frugal, "lavish": lavish})
    assert growth.main(["--memory"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"frugal \| 1,000,000 \| 8 \| 0 \| ", lines[1])
    assert re.fullmatch(r"lavish \| 10,000,000 \| 0 \| 240 \| EXCEEDS", lines[2])


def test_every_growth_has_a_sibling_of_the_same_sizes():
    for name, job in growth.GROWTH.items():
        if job.sibling is None:
            continue
        sibling = growth.GROWTH[job.sibling]
        assert sibling.sibling is None, name
        assert set(job.sizes) <= set(sibling.sizes), name


# Names whose cost does not grow with data.
WITHOUT_GROWTH = {
    "check_binning",
    "get_scorer",
    "get_scorer_names",
    "register_metric",
}
MODULES = (skcalib, binning, decisions, evaluation, metrics, monitoring)


def test_every_public_function_and_recalibrator_has_a_growth():
    public = set()
    for module in MODULES:
        for name in module.__all__:
            found = getattr(module, name)
            is_fit = module is skcalib and hasattr(found, "fit")
            if inspect.isfunction(inspect.unwrap(found)) or is_fit:
                public.add(name)
    measured = {name.split(", ")[0] for name in growth.GROWTH}
    assert public - measured == WITHOUT_GROWTH


@pytest.mark.parametrize("name", growth.GROWTH)
def test_every_growth_runs(name):
    job = growth.GROWTH[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        job.make(job.sizes[0])()


def test_costs_are_one_table_of_twenty_rows():
    assert len(costs.COSTS) == 20
    names = list(costs.COSTS)
    for position, cost in enumerate(costs.COSTS.values()):
        assert not cost.beside or cost.beside in names[:position]
    quick = {
        "sum": costs.Cost("10 numbers", lambda: partial(sum, range(10))),
        "larger": costs.Cost("1,000", lambda: partial(sum, range(1000)), "sum"),
    }
    lines = list(costs.table(quick))
    assert len(lines) == 4
    assert lines[3].startswith("| larger | 1,000 |")
    assert lines[3].endswith("(sum) |")
    page = f"a\n{costs._BEGIN}old\n{costs._END}\nb"
    written = costs.with_table(page, lines)
    assert "old" not in written
    assert all(line in written for line in lines)
    assert costs.with_table(written, lines) == written


def test_a_cliff_is_shown_beside_its_targets(monkeypatch):
    cliffs = {"job": beside.Cliff("9 s", 2.0, {"plain": 4})}
    monkeypatch.setattr(beside, "CLIFFS", cliffs)
    # 2 s are not more than 2 s; they are 4 times .5 s, and 5 times .4 s.
    line = beside.line("job", 2.0, {"plain": 0.5, "other": 1.0})
    assert line.split(" ms", 1)[1] == (
        " (before: 9 s); at most 2000 ms: met; 4.00 of plain (at most 4: met); 2.00 of"
        " other"
    )
    line = beside.line("job", 2.1, {"plain": 0.4})
    assert "at most 2000 ms: MISSED" in line
    assert "5.25 of plain (at most 4: MISSED)" in line
    assert beside.line("new", 0.001, {}).endswith("1.00 ms")


def test_cliffs_that_no_job_measures_are_named(monkeypatch, capsys):
    jobs = {"plain": lambda: [("one", 1.0, {}), ("two", 2.0, {"one": 1.0})]}
    monkeypatch.setattr(beside, "JOBS", jobs)
    monkeypatch.setattr(beside, "CLIFFS", {"two": beside.Cliff("")})
    beside.main([])
    assert "not measured" not in capsys.readouterr().out
    monkeypatch.setattr(beside, "CLIFFS", {"three": beside.Cliff("")})
    beside.main([])
    assert capsys.readouterr().out.splitlines()[-1] == "not measured: three"


def test_single_labels_are_a_cliff():
    [(what, taken, neighbours)] = beside.JOBS["single_labels"]()
    assert what in beside.CLIFFS
    assert taken > neighbours["in a batch"] > 0
