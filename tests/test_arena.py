"""The arena: its figures by plain loops, experiments from files, contenders that
fail.
"""

import json
import re

import numpy as np
import pytest
from _catalog import public_recalibrators

from benchmarks.arena.__main__ import main
from benchmarks.arena.experiments import load, methods, run
from benchmarks.arena.peers import installed
from benchmarks.arena.summary import harm, head_to_head, summarize, win_rate
from skcalib.metrics import calibration_error


@pytest.fixture
def folder(tmp_path):
    """Two data sets of two classes and one of three, two over-confident models each."""
    rng = np.random.default_rng(0)
    (tmp_path / "arena").mkdir()
    for kind, sets, n_classes in (
        ("binary", ("first", "second"), 2),
        ("multiclass", ("third",), 3),
    ):
        arrays = {}
        for data_set in sets:
            for model in ("lr", "rf"):
                for part in ("cal", "test"):
                    logits = 3 * rng.standard_normal((80, n_classes))
                    p = np.exp(logits - logits.max(axis=1, keepdims=True))
                    truth = np.sqrt(p) / np.sqrt(p).sum(axis=1, keepdims=True)
                    arrays[f"{data_set}/{model}/probs_{part}"] = (
                        p / p.sum(axis=1, keepdims=True)
                    ).astype(np.float32)
                    arrays[f"{data_set}/{model}/labels_{part}"] = [
                        rng.choice(n_classes, p=row) for row in truth
                    ]
        np.savez(tmp_path / "arena" / f"arena_{kind}_small.npz", **arrays)
    return tmp_path


def test_win_rate_is_the_share_of_strict_wins():
    rng = np.random.default_rng(1)
    losses = rng.integers(0, 4, (30, 5)).astype(float)  # with ties
    for j in range(5):
        wins = sum(
            losses[i, j] < losses[i, k] for i in range(30) for k in range(5) if k != j
        )
        assert win_rate(losses, j) == pytest.approx(wins / (30 * 4))


def test_head_to_head_resamples_whole_data_sets():
    mine, other = np.zeros(40), np.r_[np.ones(20), -np.ones(20)]
    groups = np.repeat(["a", "b"], 20)
    share, low, high = head_to_head(mine, other, groups)
    # two data sets, one all won and one all lost
    assert (share, low, high) == (0.5, 0.0, 1.0)
    single = head_to_head(mine, other, np.arange(40))
    assert 0.3 < single[1] < 0.5 < single[2] < 0.7


def test_harm_counts_what_is_worse_by_a_percent_and_a_thousandth():
    uncalibrated = np.array([1.0, 0.05, 1.0, 1.0])
    losses = np.array([1.005, 0.0509, 1.02, 0.5])  # .5 %; 1.8 % but .0009; 2 %; better
    found = harm(losses, uncalibrated, np.array([300, 300, 100, 300]))
    assert found["harmed"] == 0.25
    assert (
        found["worst_harm"] == found["worst_harm_below_250_rows"] == pytest.approx(0.02)
    )
    assert found["worst_harm_from_250_rows"] == pytest.approx(0.005)
    assert harm(losses[3:], uncalibrated[3:], np.array([300]))["worst_harm"] == 0


def test_contenders_are_named_or_given_as_expressions():
    found = methods("binary", ["SplineCalibration", "PlattScaling(clip=None)"])
    assert list(found) == ["SplineCalibration", "PlattScaling(clip=None)"]
    with pytest.raises(NameError):
        methods("binary", ["PlatScaling"])


def test_run_scores_the_test_rows(folder):
    data_sets = load(folder, "binary")
    assert [[name for name, _ in models] for models in data_sets] == [
        ["first/lr", "first/rf"],
        ["second/lr", "second/rf"],
    ]
    results = run(data_sets, methods("binary", ["TemperatureScaling"]))
    name, parts = data_sets[1][0]
    result = results[2]
    assert (result["name"], result["n_cal"], result["n_classes"], result["errors"]) == (
        name,
        80,
        2,
        {},
    )
    log_loss = brier = 0.0
    for p, label in zip(
        parts["probs_test"].astype(float), parts["labels_test"], strict=True
    ):
        p = p / p.sum()
        log_loss -= np.log(p[label]) / 80
        brier += sum((p[k] - (k == label)) ** 2 for k in range(2)) / 80
    y, p = parts["labels_test"], parts["probs_test"].astype(float)
    errors = [
        calibration_error(y, p, multiclass=kind, squared=True)
        for kind in ("top_label", "marginal")
    ]
    assert result["scores"]["uncalibrated"][:4] == pytest.approx(
        (log_loss, brier, *errors), abs=1e-6
    )
    assert result["scores"]["TemperatureScaling"][0] < log_loss


def test_a_peer_that_fails_leaves_the_scores_and_is_counted(folder):
    def breaks(probs_cal, labels_cal, probs_test):
        raise RuntimeError("no")

    def returns_nothing_finite(probs_cal, labels_cal, probs_test):
        return np.full_like(probs_test, np.nan)

    contenders = {"breaks": breaks, "nan": returns_nothing_finite}
    summary = summarize(run(load(folder, "binary"), contenders))
    for name in contenders:
        assert summary[name]["failed"] == 4
        assert summary[name]["log_loss"] == summary["uncalibrated"]["log_loss"]


def test_a_recalibrator_of_ours_that_fails_stops_the_run(folder):
    data_sets = load(folder, "binary")
    data_sets[0][0][1]["probs_cal"][0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        run(data_sets, methods("binary", ["PlattScaling"]))


def test_errors_of_a_table_are_roots_of_mean_signed_squares():
    results = [
        {
            "name": f"{k}/lr",
            "n_cal": 300,
            "errors": {},
            "scores": {
                name: (0.5, 0.2, square, -square, 1.0)
                for name in ("uncalibrated", "same")
            },
        }
        for k, square in enumerate((0.05, -0.01, 0.02))
    ]
    row = summarize(results)["uncalibrated"]
    assert (row["top_label_error"], row["marginal_error"]) == pytest.approx(
        (0.02**0.5, 0.0)
    )


@pytest.mark.slow
def test_peers_take_part(folder, capsys):
    assert main(["--data", str(folder), "--peers", "--methods", "PlattScaling"]) == 0
    printed = capsys.readouterr().out
    assert "Two classes, 4 experiments on 2 data sets" in printed
    assert "K classes, 2 experiments on 1 data sets" in printed


@pytest.mark.slow
def test_command_prints_tables_and_json(folder, capsys):
    assert main(["--data", str(folder), "--kind", "binary", "--markdown"]) == 0
    printed = capsys.readouterr().out.strip()
    assert printed.startswith(
        "## Two classes, 4 experiments on 2 data sets\n\n| method | log-loss | ratio |"
        " Brier |"
    )
    assert printed.count("<details>") == printed.count("</details>") == 2
    tables = re.findall(r"(?:^\|.*\|$\n?)+", printed, flags=re.M)
    assert len(tables) == 3
    for table in tables:
        header, rule, *rows = table.strip().splitlines()
        assert {line.count("|") for line in (header, rule, *rows)} == {
            header.count("|")
        }
        assert len(rows) == 1 + len(methods("binary"))
    assert (
        main(
            [
                "--data",
                str(folder),
                "--kind",
                "multiclass",
                "--methods",
                "StackedRecalibrator",
                "--json",
            ]
        )
        == 0
    )
    report = json.loads(capsys.readouterr().out)["multiclass"]
    assert set(report) == {"uncalibrated", "StackedRecalibrator"}
    assert report["StackedRecalibrator"]["win_rate_log_loss"] == 1


def test_contenders_are_public_recalibrators_that_need_no_option():
    # these need groups, priors, distinct scores
    left_out = {"GroupwiseRecalibrator", "PriorShift", "UniformMassBinning"}
    contenders = {name.split("(")[0] for name in methods("multiclass")}
    public = {recalibrator.__name__ for recalibrator in public_recalibrators()}
    assert contenders <= public - left_out
    assert len(contenders) >= 16


def test_missing_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="arena"):
        load(tmp_path, "binary")


def test_installed_peers_are_named_by_library():
    found, missing = installed("binary")
    assert (
        any(name.startswith("scikit-learn: ") for name in found)
        or "scikit-learn" in missing
    )
    assert {name.split(":")[0] for name in found}.isdisjoint(missing)
