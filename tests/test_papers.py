"""The reproductions run, their verdicts can be lost, and the index of their page is
complete.
"""

import contextlib
import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest, f_oneway

from benchmarks.papers import (
    gupta_theory,
    heterogeneity,
    kumar_synthetic,
    kumar_theory,
    roelofs_bias,
    roelofs_fits,
    zhao_theory,
)
from benchmarks.papers.__main__ import PAGE, main
from benchmarks.papers._index import LISTS, PAPERS, index_lines, index_text, modules
from benchmarks.papers._intervals import (
    bootstrap,
    further_mean,
    mean,
    median,
    ratio,
    share,
)
from benchmarks.papers._known_models import roelofs_models
from benchmarks.papers._networks import single_precision
from benchmarks.papers._output import (
    markdown_rows,
    replace_section,
    summary,
    verdicts_in,
)
from benchmarks.papers._rules import (
    VERDICTS,
    Rule,
    above,
    below,
    judge,
    labels_of,
    printed,
)

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
DATA = os.environ.get("SKCALIB_DATA")

needs_data = pytest.mark.skipif(
    DATA is None, reason="needs the real data: set SKCALIB_DATA to its folder"
)
MODULES = modules()
RULES = [
    (quantity, rule)
    for module in MODULES.values()
    for quantity, rule in module.ROWS.items()
]


# --- rules: each verdict of each row can be had and lost ---


@pytest.mark.parametrize("name", MODULES)
def test_every_row_can_fail(name):
    for quantity, rule in MODULES[name].ROWS.items():
        wrong = rule.wrong_values()
        assert wrong, quantity
        for value in wrong:
            assert rule.possible[0] <= value <= rule.possible[1], quantity
            assert rule.verdict(value, value) == "differs", quantity
        right = _right_value(rule)
        assert rule.verdict(right, right) == "agrees", quantity
        # an interval that holds wrong values and right ones, wider than what decides
        low, high = min(right, *wrong), max(right, *wrong)
        if rule.width is not None and high - low <= rule.width:
            low, high = right - rule.width, right + rule.width
        assert rule.verdict(low, high) == "not decidable", quantity
        assert 0 < rule.width_for_verdict(wrong[0]) < np.inf, quantity


def _right_value(rule):
    low, high = max(rule.low, rule.possible[0]), min(rule.high, rule.possible[1])
    if np.isfinite([low, high]).all():
        return (low + high) / 2
    return low + abs(low) + 1 if np.isfinite(low) else high - abs(high) - 1


def test_rules_that_cannot_fail_are_refused():
    with pytest.raises(ValueError, match="cannot fail"):
        Rule("may change", 0, 100, possible=(0, 100))
    with pytest.raises(ValueError, match="cannot fail"):
        above(-1, possible=(0, 1))
    with pytest.raises(ValueError, match="positive width"):
        printed(0.0)


def test_a_number_agrees_where_a_narrow_interval_meets_it():
    rule = printed(2.0, margin=0.1, width=0.5)
    assert rule.verdict(2.11, 2.2) == "differs"
    assert rule.verdict(2.05, 2.2) == "agrees"
    assert rule.verdict(1.8, 1.9) == "agrees"
    assert rule.verdict(1.5, 2.5) == "not decidable"
    assert rule.verdict(2.2, 4.0) == "differs"
    assert rule.width_for_verdict(2.3) == 0.5


def test_a_claim_is_decided_where_the_whole_interval_is_on_one_side():
    assert above(0).verdict(0.05, 0.2) == "agrees"
    assert above(0).verdict(-0.05, 0.2) == "not decidable"
    assert above(0).verdict(-0.2, -0.05) == "differs"
    assert below(1).verdict(0.8, 1.01) == "not decidable"
    assert below(1).width_for_verdict(0.9) == pytest.approx(0.2)


def test_intervals_end_where_the_possible_values_end():
    (row,) = judge(
        {"Table 1: q": above(0.5, possible=(0, 1))}, [("Table 1: q", (0.98, 0.9, 1.06))]
    )
    assert (row.low, row.high, row.verdict) == (0.9, 1, "agrees")
    with pytest.raises(KeyError):
        judge({}, [("Table 1: undeclared", (0, 0, 0))])


def test_limits_are_declared_before_anything_is_measured():
    """A module imported anew has the same rules: they cannot come from a
    measurement.
    """
    for name, module in MODULES.items():
        # a second module: others hold what the first one has
        fresh = importlib.util.module_from_spec(module.__spec__)
        module.__spec__.loader.exec_module(fresh)
        assert fresh.ROWS, name
        assert {
            quantity: rule for quantity, rule in RULES if quantity in fresh.ROWS
        } == fresh.ROWS


# --- intervals ---


def test_intervals_where_all_repeats_agree_are_binomial():
    expected = binomtest(20, 20).proportion_ci(0.95)
    for found in (
        mean(np.ones(20)),
        mean(np.ones(20, dtype=bool)),
        share([True] * 20),
        mean(np.ones(5), n_each=4),
    ):
        assert found == pytest.approx((1, expected.low, expected.high))
    assert mean(np.zeros(20))[2] == pytest.approx(1 - expected.low)


def test_intervals_of_means_cover():
    samples = np.random.default_rng(0).normal(size=(2000, 4))
    covered = [low <= 0 <= high for _, low, high in map(mean, samples)]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.015)


def test_intervals_of_medians_cover():
    """Counts tie often: their median has an interval of order statistics, which covers
    at least as often as wanted.
    """
    samples = np.random.default_rng(0).poisson(9, size=(1000, 41))
    assert np.mean([low <= 9 <= high for _, low, high in map(median, samples)]) >= 0.95
    assert median([7.0, 7.0, 7.0]) == (7, 7, 7)
    assert median(np.arange(100.0)) == (49.5, 39, 60)


def test_intervals_of_further_means_cover():
    rng = np.random.default_rng(0)
    samples, others = (
        rng.normal(size=(2000, 12)),
        rng.normal(size=(2000, 10)).mean(axis=1),
    )
    limits = [further_mean(sample, 10)[1:] for sample in samples]
    assert np.mean(
        [low <= x <= high for (low, high), x in zip(limits, others, strict=True)]
    ) == pytest.approx(0.95, abs=0.015)


def test_intervals_of_ratios():
    rng = np.random.default_rng(0)
    shared = rng.gamma(3, size=400)
    first, second = shared * rng.gamma(20, size=400), shared * rng.gamma(10, size=400)
    for paired in (True, False):
        closed = ratio(first, second, paired=paired)
        resampled = bootstrap(
            lambda a, b: a.mean() / b.mean(), first, second, paired=paired
        )
        assert closed[0] == pytest.approx(resampled[0])
        assert closed[1:] == pytest.approx(resampled[1:], rel=0.02)
        assert closed[1] < 2 < closed[2]
    assert np.diff(ratio(first, second, paired=True)[1:]) < np.diff(closed[1:])


# --- disturbed inputs flip verdicts ---


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_figure_4_can_be_missed(shift):
    """Estimates centred on the paper's figures agree in each cell; a point further up
    they agree in none.
    """
    figures = np.array(
        [line.split() for line in roelofs_bias._FIGURE_4.strip().splitlines()],
        dtype=float,
    )
    noise = np.tile([-0.5, 0.5], 200)
    heat = {
        ("EW", n_bins, n): figures[i, j] + shift + noise
        for i, n_bins in enumerate(roelofs_bias._BINS)
        for j, n in enumerate(roelofs_bias._SIZES)
    }
    rows = judge(roelofs_bias.ROWS, roelofs_bias._figure_4(heat))
    assert len(rows) == 36
    assert {row.verdict for row in rows} == {"differs" if shift else "agrees"}


def test_fits_by_data_set_are_in_the_order_of_the_models():
    assert list(roelofs_bias._TABLE_3) == list(roelofs_models())


def test_influence_of_the_data_set_is_an_f_ratio():
    """Ten fits of three data sets; two estimates that differ by a factor have the same
    ratio.
    """
    bias = np.array([1.0, 2, 3, 2, 5, 6, 7, 6, 9, 11])
    expected = f_oneway(bias[:4], bias[4:8], bias[8:]).statistic
    assert roelofs_bias._between_over_within(
        bias[None], 3 * bias[None]
    ) == pytest.approx(expected)


@pytest.mark.slow
def test_a_rare_point_that_is_no_trap_is_seen(monkeypatch):
    """Theorem 3.1 where the third point lies on the side of its label: every classifier
    is right there.
    """
    over = "Theorem 3.1: n rows, share of samples whose classifier is overconfident"
    rows = {
        row.quantity: row
        for row in judge(zhao_theory.ROWS, zhao_theory._theorem_31(1000))
    }
    assert rows[over].verdict == "agrees"
    monkeypatch.setattr(
        zhao_theory, "_POINTS", np.array([[1.0, 0.0], [-1.0, 0.0], [-0.6, 0.8]])
    )
    rows = {
        row.quantity: row
        for row in judge(zhao_theory.ROWS, zhao_theory._theorem_31(1000))
    }
    assert rows[over].verdict == "differs"


def test_an_estimator_with_bias_is_seen(monkeypatch):
    """Theorem 5.4 exercises the library's estimator: with the plugin in its place the
    estimates miss.
    """
    share_close = partial(
        kumar_theory._share_close, "debiased", 256, 0.05, n=12_000, n_samples=40
    )
    assert share_close(rng=np.random.default_rng(0)) > 0.9
    plugin = partial(kumar_theory.calibration_error, method="plugin")
    monkeypatch.setattr(
        kumar_theory,
        "calibration_error",
        lambda *args, method, **kwargs: plugin(*args, **kwargs),
    )
    assert share_close(rng=np.random.default_rng(0)) < 0.1


def test_a_method_that_changes_classes_is_seen():
    same, changed = (
        {"same class": np.ones(500, dtype=bool)},
        {"same class": np.arange(500) > 5},
    )
    rules = {
        "Table 1: q": heterogeneity.ROWS[
            f"{heterogeneity._TABLES}, {heterogeneity.CHANGED}"
        ]
    }
    for found, verdict in ((same, "agrees"), (changed, "differs")):
        results = [{"TS": found, "CTS": found}] * 8
        assert (
            judge(rules, [("Table 1: q", heterogeneity.changed_predictions(results))])[
                0
            ].verdict
            == verdict
        )


def test_rows_of_appendix_b():
    """The text rounds 299.6 to 300, 8294 to 8000 and 9568 to 9500; the root, against a
    plain search.
    """
    rows = {
        row.quantity.partition(": ")[2]: row.measured
        for row in judge(gupta_theory.ROWS, gupta_theory._appendix_b())
    }
    needed = np.log(20 / 0.05) / 0.02
    second = next(
        m
        for m in range(9000, 10_000)
        if m / 20 - np.sqrt(m * np.log(20 / 0.025) / 2) >= needed
    )
    assert rows["rows of the second part"] == pytest.approx(second, abs=1)
    assert rows["rows of the first part"] == pytest.approx(1000 * np.log(4000))


def test_curves_are_chosen_by_means_over_resamples_of_their_own():
    tables = [
        {"logit_logflip_b1": {"AIC": 10.0 + i}, "other": {"AIC": 12.0 + i}}
        for i in range(20)
    ]
    assert 0.6 < roelofs_fits._choices(tables).mean() < 0.95
    for table in tables:
        table["other"]["AIC"] += 100
    assert roelofs_fits._choices(tables).all()


def test_single_precision_scores_saturate(tmp_path):
    """A score above about 1 - 1e-6 is 1, one below it keeps its value."""
    gaps = np.array([2.0, 8.0, 13.0, 16.0])
    logits = np.column_stack((np.full(4, 20.0), 20 - gaps)).astype(np.float32)
    (tmp_path / "vision").mkdir()
    np.savez(
        tmp_path / "vision" / "cifar10_net_test.npz",
        logits=logits,
        labels=np.zeros(4, dtype=np.int16),
    )
    correct, scores = single_precision(tmp_path, "net", "test")
    assert correct.all()
    assert scores[:3] == pytest.approx(1 / (1 + np.exp(-gaps[:3])), abs=2e-6)
    assert list(scores == 1) == [False, False, False, True]


def test_exact_error_of_a_step_function_is_the_plain_integral():
    """Kumar's squared error of a fitted step function, against sums over a fine
    grid.
    """
    for curve, low, high in (
        (kumar_synthetic.PlattCurve(2, 1), 0.0, 1.0),
        (kumar_synthetic.NoisyPlattCurve(2, 1), 0.25, 0.75),
    ):
        truth = kumar_synthetic.Truth.of(curve, low, high)
        inner, values = (
            low + (high - low) * np.array([0.31, 0.52, 0.8]),
            np.array([0.3, 0.6, 0.3, 0.9]),
        )
        grid = low + (high - low) * (np.arange(400_000) + 0.5) / 400_000
        step = np.searchsorted(inner, grid)
        expected = 0.0
        for value in (0.3, 0.6, 0.9):  # the two steps at .3 are one forecast
            chosen = values[step] == value
            expected += chosen.mean() * (value - curve(grid[chosen]).mean()) ** 2
        assert kumar_synthetic._binned_squared_error(
            truth, inner, values
        ) == pytest.approx(expected, rel=1e-3)


def test_theorem_31_as_printed():
    """At 30 n rows the claimed 9/10 is not reached, at 50 n rows it is; confidence and
    accuracy as stated.
    """
    rows = {
        row.quantity: row
        for row in judge(zhao_theory.ROWS, zhao_theory._theorem_31(2000))
    }
    assert [quantity for quantity, row in rows.items() if row.verdict != "agrees"] == [
        "Theorem 3.1: 30 n rows, share of samples with accuracy 1"
    ]
    for times, expected in ((1, 1 - np.exp(-1 / 20)), (30, 0.777), (50, 0.918)):
        row = rows[
            f"Theorem 3.1: {'n' if times == 1 else f'{times} n'} rows, share of samples"
            " with accuracy 1"
        ]
        assert row.low < expected < row.high


# --- names, page and index ---


def test_quantities_name_what_they_reproduce():
    """Each label is a line of its paper's index, a letter of a panel aside."""
    for module in MODULES.values():
        for quantity in module.ROWS:
            for label in labels_of(quantity):
                assert (
                    re.sub(r"(Figure \d+)[ab]$", r"\1", label) in LISTS[module.PAPER]
                ), quantity


def test_quantities_are_unique_and_modules_have_a_paper():
    quantities = [quantity for quantity, _ in RULES]
    assert len(set(quantities)) == len(quantities)
    assert {module.PAPER for module in MODULES.values()} == set(PAPERS) == set(LISTS)
    for module in MODULES.values():
        assert module.__doc__


@pytest.mark.parametrize("paper", PAPERS)
def test_index_is_complete_and_names_existing_rows(paper):
    n_figures, n_tables = {
        "kumar": (17, 0),
        "roelofs": (15, 7),
        "gupta": (6, 0),
        "zhao": (14, 2),
    }[paper]
    lines = dict(index_lines(paper))
    assert {f"Figure {i + 1}" for i in range(n_figures)} | {
        f"Table {i + 1}" for i in range(n_tables)
    } <= set(lines)
    assert len(lines) == len(LISTS[paper])
    section = (
        PAGE.read_text(encoding="utf-8")
        .partition("<!-- begin index -->")[2]
        .partition("<!-- end index -->")[0]
    )
    section = section.partition(f"<summary>{PAPERS[paper]}<")[2].partition(
        "</details>"
    )[0]
    for label, rows in lines.items():
        (line,) = [
            line for line in section.splitlines() if line.startswith(f"| {label} |")
        ]
        if isinstance(rows, str):
            assert rows in line
            assert len(rows) > 20
        else:
            for command, quantities in rows.items():
                assert set(quantities) <= set(MODULES[command].ROWS)
                assert f"`{command}` {len(quantities)}" in line


def test_page_is_what_the_commands_write():
    """Its rows exist, are judged by today's rules, and its index is the one of its
    tables.
    """
    text = PAGE.read_text(encoding="utf-8")
    for name, module in MODULES.items():
        section = text.partition(f"<!-- begin {name} -->")[2].partition(
            f"<!-- end {name} -->"
        )[0]
        verdicts = verdicts_in(section)
        assert f"`python -m benchmarks.papers {name}" in section
        assert set(verdicts) <= set(module.ROWS), name
        assert len(verdicts) >= 0.9 * len(module.ROWS), name
        for line in section.splitlines():
            cells = [
                cell.strip().replace(r"\|", "|")
                for cell in re.split(r"(?<!\\)\|", line)[1:-1]
            ]
            if len(cells) == 5 and cells[0] in module.ROWS:
                low, high = (float(value) for value in cells[3].split(" to "))
                assert cells[1] == module.ROWS[cells[0]].paper, cells[0]
                slack = 1e-3 * max(abs(low), abs(high))  # four digits are shown
                possible = {
                    module.ROWS[cells[0]].verdict(low + i * slack, high + j * slack)
                    for i in (-1, 0, 1)
                    for j in (-1, 0, 1)
                }
                assert verdicts[cells[0]] in possible, cells[0]
    index = text.partition("<!-- begin index -->\n")[2].partition(
        "\n<!-- end index -->"
    )[0]
    assert index == index_text(verdicts_in(text))


def test_markdown_round_trip():
    rules = {"Table 1: |a| minus b": below(0), "Table 1: c": printed(2)}
    rows = judge(
        rules, [("Table 1: |a| minus b", (0.1, -1.0, 1.0)), ("Table 1: c", (2, 2, 2))]
    )
    section = markdown_rows(rows, "how")
    assert summary(rows) == "2 rows: 1 agree, 0 differ, 1 are not decidable."
    assert verdicts_in(section) == {
        "Table 1: |a| minus b": "not decidable",
        "Table 1: c": "agrees",
    }
    assert "(width 2, needs 0.2)" in section
    large = judge(
        {"Table 1: rows": printed(17_873.0, margin=0.5)},
        [("Table 1: rows", (18_194, 18_194, 18_194))],
    )
    assert "| 18194 | 18194 to 18194 | differs |" in markdown_rows(large, "how")
    page = "before\n<!-- begin x -->\nold\n<!-- end x -->\nafter"
    assert (
        replace_section(page, "x", "new")
        == "before\n<!-- begin x -->\nnew\n<!-- end x -->\nafter"
    )
    with pytest.raises(ValueError, match="marks"):
        replace_section(page, "y", "new")


# --- the commands ---


def _run(name, *arguments):
    """Run the command and return its rows by quantity."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert main([name, "--quick", "--json", *arguments]) == 0
    rows = json.loads(output.getvalue())
    assert rows
    for row in rows:
        assert list(row) == [
            "quantity",
            "paper",
            "measured",
            "low",
            "high",
            "verdict",
            "needs_width",
        ]
        assert row["verdict"] in VERDICTS
        assert (row["needs_width"] is not None) == (row["verdict"] == "not decidable")
        assert np.isfinite([row["measured"], row["low"], row["high"]]).all()
        assert row["low"] <= row["measured"] <= row["high"]
    assert len({row["quantity"] for row in rows}) == len(rows)
    assert len(rows) >= 0.6 * len(MODULES[name].ROWS)
    return {row["quantity"]: row for row in rows}


def _differing(rows):
    return {quantity for quantity, row in rows.items() if row["verdict"] == "differs"}


@pytest.mark.slow
def test_kumar_synthetic():
    rows = _run("kumar-synthetic")
    # few repeats: wide intervals, but the order of the methods does not depend on them
    assert rows["Figure 11: B=10, n=3000, squared CE, scaling / SB"]["low"] > 2
    assert rows["Figure 9: n=2000, squared CE, B 20 / B 5, HB"]["low"] > 2
    assert rows["Figure 9: n=2000, squared CE, B 20 / B 5, SB"]["high"] < 2
    assert len(_differing(rows)) <= 2


@pytest.mark.slow
def test_roelofs_bias():
    rows = _run("roelofs-bias")
    cells = {
        quantity: row
        for quantity, row in rows.items()
        if quantity.startswith("Figure 4")
    }
    assert len(cells) == 36
    assert not _differing(cells)
    # Table 3 is not recovered by the printed coefficients, and that must be said
    assert any("Table 3" in quantity for quantity in _differing(rows))


@pytest.mark.slow
def test_roelofs_fits():
    rows = _run("roelofs-fits", *(["--data", DATA] if DATA else []))
    consistent = {
        quantity: row
        for quantity, row in rows.items()
        if "from simulated data" in quantity
    }
    # ten times alpha, beta and slope, and eight intercepts
    assert len(consistent) == 38
    assert len(_differing(consistent)) <= 3
    if DATA:  # the paper's own network and its authors' scores
        name = "Table 1: the network densenet40_c10, scores minus 1e-16,"
        for parameter in ("alpha", "beta"):
            assert rows[f"{name} {parameter}"]["verdict"] == "agrees"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kumar-theory", "gupta-theory", "zhao-theory"])
def test_theory(name):
    known = {
        "Lemma 4.3: the constant c at B = 160 over that at B = 10",
        "Theorem 4: marginal epsilon at n = 1500, B = 10, alpha = .1",
        "Theorem 3.1: 30 n rows, share of samples with accuracy 1",
    }
    assert _differing(_run(name)) <= known


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "credit",
        "heterogeneity",
        "kumar-cifar",
        "roelofs-tables",
        "zhao-networks",
    ],
)
def test_with_real_data(name):
    rows = _run(name, "--data", DATA)
    if name == "roelofs-tables":
        assert not [
            quantity
            for quantity in _differing(rows)
            if quantity.startswith(("Table 4", "Table 5"))
        ]


def test_data_are_asked_for(capsys):
    with pytest.raises(SystemExit):
        main(["kumar-cifar", "--quick"])
    assert "--data" in capsys.readouterr().err


@pytest.mark.slow
def test_a_command_writes_its_section_and_the_index(tmp_path):
    page = tmp_path / "page.md"
    shutil.copy(PAGE, page)
    command = [sys.executable, "-W", "error", "-m", "benchmarks.papers", "gupta-theory"]
    command += ["--quick", "--repeats", "20", "--markdown", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Proposition 1" in done.stdout
    text = page.read_text(encoding="utf-8")
    assert "`python -m benchmarks.papers gupta-theory --quick --repeats 20`" in text
    assert text.partition("<!-- begin kumar-cifar -->")[2] != ""
    before = text
    main(["index", "--markdown", str(page)])
    assert page.read_text(encoding="utf-8") == before
